/*
 * What a session remembers of the sequences that it takes ticks of, and what a sequence must be to
 * make IDs.
 *
 * To lock a sequence, to check the role's rights and to find the page are most of the cost of
 * nextval().  Here each is done once a transaction, or once for a role, and what was found is
 * kept until an invalidation.  The page of the sequence that was used last stays pinned until
 * the transaction ends, which halved the cost ("make bench-instructions").
 */
#include "postgres.h"

#include "access/relation.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"

#include "ids/ids.h"
#include "ids/session.h"
#include "sequence.h"

/* how many sequences a session remembers before it forgets all of them */
#define MAX_SEQUENCES		1024

static HTAB *sequences = NULL;

/* how many invalidations there were that can concern a remembered sequence */
static uint64 invalidations = 1;

/* The sequence that this session used last.  No other one is pinned. */
static ClockedSequence *latest = NULL;

ClockedSequence *session_current = NULL;

/* The top transaction owns the pin, as it owns the lock. */
static void
release_pin(void)
{
	ResourceOwner saved = CurrentResourceOwner;

	if (latest == NULL || !latest->is_pinned)
		return;
	CurrentResourceOwner = TopTransactionResourceOwner;
	ReleaseBuffer(latest->buffer);
	CurrentResourceOwner = saved;
	latest->is_pinned = false;
}

/* At a rollback, the resource owner of the transaction releases the pin. */
static void
xact_callback(XactEvent event, void *arg pg_attribute_unused())
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
		release_pin();
	else if (event != XACT_EVENT_ABORT)
		return;
	else if (latest != NULL)
		latest->is_pinned = false;
	session_current = NULL;
}

/*
 * A relation has changed: it has a new file, new options or another GRANT.  All can have, or what a
 * role may do, if this is InvalidOid.
 */
void
session_forget(Oid relid)
{
	if (OidIsValid(relid) && hash_search(sequences, &relid, HASH_FIND, NULL) == NULL)
		return;
	invalidations++;
	session_current = NULL;
}

static void
create_hash(void)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(ClockedSequence)};

	sequences = hash_create("instaid sequences", 16, &ctl,
							HASH_ELEM | HASH_BLOBS);
}

void
session_init(void)
{
	create_hash();
	RegisterXactCallback(xact_callback, NULL);
}

/* Make a sequence the latest. */
static void
find_sequence(Oid relid)
{
	bool		found;

	release_pin();
	if (hash_get_num_entries(sequences) >= MAX_SEQUENCES &&
		hash_search(sequences, &relid, HASH_FIND, NULL) == NULL)
	{
		HTAB	   *forgotten = sequences;

		/* an error, or a callback, must not find what is freed */
		latest = NULL;
		create_hash();
		hash_destroy(forgotten);
	}
	latest = hash_search(sequences, &relid, HASH_ENTER, &found);
	if (!found)
	{
		memset(latest, 0, sizeof(ClockedSequence));
		latest->relid = relid;
	}
}

/* Is what the session has found out still valid for this role? */
static bool
is_valid(const ClockedSequence *seq)
{
	return seq->invalidations == invalidations && seq->role == GetUserId();
}

/* Check that a locked sequence can serve the current role, and note how. */
static void
load_sequence(ClockedSequence *seq)
{
	uint64		invalidations_before = invalidations;
	Relation	rel;
	FormData_pg_sequence options;

	seq->invalidations = 0;		/* in case of an error below */
	release_pin();				/* the sequence can have another file */

	rel = sequence_open_locked(seq->relid, SEQUENCE_RIGHTS, &options);
	requirements_check(rel, &options);
	/* a call that has waited for freeze_shard() ends here */
	check_not_frozen(seq->relid);
	seq->cache = options.seqcache;

	/* in a new file the session's reserved ticks are invalid */
	if (!RelFileLocatorEquals(seq->locator, rel->rd_locator))
	{
		seq->locator = rel->rd_locator;
		seq->next = seq->end;
	}
	seq->file = sequence_file_number(rel);
	seq->is_temp = rel->rd_islocaltemp;
	seq->needs_wal = RelationNeedsWAL(rel);
	seq->may_pin = !seq->is_temp && !sequence_is_uncommitted(rel);

	relation_close(rel, NoLock);

	seq->role = GetUserId();
	seq->invalidations = invalidations_before;
}

/*
 * Find a sequence, lock it unless this transaction has locked it, and check it unless it was
 * checked since the last invalidation.
 */
pg_noinline ClockedSequence *
session_load(Oid relid)
{
	ClockedSequence *seq;
	bool		was_locked;

	session_current = NULL;
	if (latest == NULL || latest->relid != relid)
		find_sequence(relid);
	seq = latest;

	was_locked = seq->lxid == MyLocalTransactionId;
	if (!was_locked)
	{
		/* a role asks for no lock after its rights were revoked */
		AcceptInvalidationMessages();
		if (!is_valid(seq))
			sequence_check_rights(relid, SEQUENCE_RIGHTS);
		sequence_lock(relid);
		seq->lxid = MyLocalTransactionId;

		/*
		 * between two transactions, no lock would show settled.c what CACHE
		 * has left
		 */
		seq->next = seq->end;
	}

	/* taking the lock has processed invalidations, too */
	if (!is_valid(seq) || !(was_locked || (seq->needs_wal && seq->may_pin)))
		load_sequence(seq);

	/* another invalidation can have arrived while it was loaded */
	if (is_valid(seq))
		session_current = seq;
	return seq;
}

/*
 * Pin the page of a sequence.  ReadRecentBuffer() needs no look-up in the buffer table, and no
 * relation.  The pin is kept beyond the call unless the transaction has created the file: a
 * rollback to a savepoint drops such a file, and a pinned buffer is then an error.
 */
pg_noinline void
session_pin_page(ClockedSequence *seq)
{
	if (!BufferIsValid(seq->buffer) ||
		!ReadRecentBuffer(seq->locator, MAIN_FORKNUM, 0, seq->buffer))
	{
		Relation	rel = relation_open(seq->relid, NoLock);

		seq->buffer = ReadBuffer(rel, 0);
		relation_close(rel, NoLock);
	}

	/* After what can fail, give the pin to the top transaction. */
	if (seq->may_pin)
	{
		ResourceOwner saved = CurrentResourceOwner;

		CurrentResourceOwner = TopTransactionResourceOwner;
		IncrBufferRefCount(seq->buffer);
		CurrentResourceOwner = saved;
		seq->is_pinned = true;
		ReleaseBuffer(seq->buffer);
	}
}

/* Why a sequence cannot serve, as a sentence, and what to do about that; NULL if it can */
static const char *
find_fault(Form_pg_sequence options, const char **cure)
{
	const char *fault;

	/* a MINVALUE keeps values of copies apart; a MAXVALUE freezes */
	if (options->seqmin > 1)
	{
		*cure = "On Citus, insert on the coordinator, and let INSERT ... SELECT read a temporary table. Elsewhere, use another sequence. Leave the range as it is: it can keep the values of this copy apart from those on other servers.";
		return psprintf("It has a range of its own, %lld to %lld. A source of IDs needs MINVALUE 1 or less.",
						(long long) options->seqmin, (long long) options->seqmax);
	}
	if (options->seqtypid != INT8OID)
		fault = psprintf("Its type is %s; it must be bigint.", format_type_be(options->seqtypid));
	else if (options->seqincrement != 1)
		fault = psprintf("Its INCREMENT is %lld; it must be 1.", (long long) options->seqincrement);
	else if (options->seqcycle)
		fault = "It has CYCLE, and would repeat its values.";
	else
		return NULL;
	/* a descending sequence ends at -1 by default */
	*cure = psprintf("ALTER SEQUENCE %s AS bigint INCREMENT BY 1%s NO CYCLE;",
					 sequence_qualified_name(options->seqrelid),
					 options->seqincrement < 0 && options->seqmax == -1 ? " NO MAXVALUE" : "");
	return fault;
}

/* Refuse a sequence that cannot serve as a source of IDs, or could not if it were thawed. */
void
requirements_check(Relation rel, Form_pg_sequence options)
{
	const char *cure;
	const char *fault = find_fault(options, &cure);

	if (fault)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" cannot serve as a source of IDs",
						RelationGetRelationName(rel)),
				 errdetail_internal("%s", fault),
				 errhint("%s", cure)));
}

/* Why a sequence cannot serve, and what to do about that; NULL if it can, or is gone */
const char *
requirements_fault(Oid sequence, const char **cure)
{
	FormData_pg_sequence options;

	return sequence_copy_options(sequence, &options) ? find_fault(&options, cure) : NULL;
}

/*
 * Is a sequence frozen?  It is if it could serve, but its MAXVALUE, which goes into max_value
 * unless that is NULL, is too low for ticks.
 *
 * freeze_shard() leaves nothing else, and a shard is frozen if the sequence of its declaration is.
 * A word in the declaration could disagree with the sequence, and ALTER SEQUENCE waits for the
 * transactions that have taken IDs.  A low MAXVALUE of others stops the shard, too: the error names
 * it.
 */
bool
is_frozen(Oid sequence, int64 *max_value)
{
	FormData_pg_sequence options;
	const char *cure;

	if (!sequence_copy_options(sequence, &options))
		return false;
	if (max_value != NULL)
		*max_value = options.seqmax;
	return options.seqmax < MAX_TICK && find_fault(&options, &cure) == NULL;
}

/*
 * Refuse a call that wants an ID of a frozen sequence, or of a shard that declares it.  The
 * message names a shard if it declares this sequence in its own schema, as most do.
 */
void
check_not_frozen(Oid sequence)
{
	Declaration declaration = {0};
	int64		max_value;
	HeapTuple	tuple;
	Oid			schema;
	char	   *name;
	char	   *schema_name;

	if (!is_frozen(sequence, &max_value))
		return;
	/* no lock may keep another session from dropping them */
	name = sequence_qualified_name(sequence);
	schema = get_rel_namespace(sequence);
	schema_name = get_namespace_name(schema);
	tuple = find_declaration(schema);
	if (HeapTupleIsValid(tuple))
		(void) read_declaration(tuple, &declaration);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 schema_name != NULL && declaration.sequence == sequence ?
			 errmsg("shard %s is frozen", quote_identifier(schema_name)) :
			 errmsg("sequence %s is frozen", name),
			 errdetail("The MAXVALUE of sequence %s is %lld, which is too low for IDs.",
					   name, (long long) max_value),
			 errhint("If the shard was moved, use it in its new place; otherwise use instaid.thaw_shard(). If the sequence is not a shard's, use one without MAXVALUE.")));
}
