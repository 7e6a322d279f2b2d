/*
 * Dense, durable integers: the values of any sequence.
 *
 * A ticket is configured by the options of its sequence alone: INCREMENT is the number of servers,
 * START modulo INCREMENT tells which server this is, MAXVALUE is a guard, and CACHE is the step.  A
 * ticket that has its values from other servers is a foreign table instead: see source.c.
 *
 * Values are taken from the sequence's page as by nextval(), with three differences:
 *
 * - A value is returned when the WAL that takes the sequence past it is as durable as
 *	 synchronous_commit says.  nextval() leaves that to the commit of the transaction that wrote
 *	 the record, which may still be running.  Therefore no XID is needed.
 * - A value equals START modulo INCREMENT, whatever setval() did.
 * - CACHE is the step: how many values one WAL record covers.  No session keeps values.  Sessions
 *	 that come before the record is flushed share the flush.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "commands/proclang.h"
#include "common/int.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "common.h"
#include "sequence.h"
#include "sources.h"
#include "tickets.h"

/* how many values a WAL record covers, unless the ticket has a step */
#define DEFAULT_STEP	32

/* how many tickets a session remembers */
#define MEMORY_SIZE		64

PG_FUNCTION_INFO_V1(instaid_tickets_next);
PG_FUNCTION_INFO_V1(instaid_tickets_lease);
PG_FUNCTION_INFO_V1(instaid_tickets_lock);
PG_FUNCTION_INFO_V1(instaid_tickets_state);

/* What this session knows of a ticket, for this role, until an invalidation */
typedef struct Ticket
{
	Oid			relid;
	bool		is_valid;		/* no invalidation came since */
	Oid			role;			/* InvalidOid if it is not to be remembered */
	LocalTransactionId lxid;	/* transaction in which we hold the lock */

	bool		has_source;		/* then it has only this: */
	int			place;			/* of its slot: see slots.c */

	FormData_pg_sequence options;
	int64		step;
	bool		needs_wal;
	RelFileLocator locator;
	uint32		file;			/* see sequence_file_number() */
	Buffer		buffer;			/* of its page, as a hint */
} Ticket;

/* A ticket has one place, which depends on its OID only. */
static Ticket memory[MEMORY_SIZE];

/* The values that a ticket has left */
typedef struct TicketState
{
	int64		next;			/* the value that comes next, if any is left */
	int64		left;			/* how many there are, up to MAXVALUE */
	bool		off_stripe;		/* it stands at a value of another server */
} TicketState;

/* The function's language and, unless owner is NULL, its owner; InvalidOid if it is gone */
static Oid
function_language(Oid function, Oid *owner)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			language = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		language = ((Form_pg_proc) GETSTRUCT(tuple))->prolang;
		if (owner != NULL)
			*owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
		ReleaseSysCache(tuple);
	}
	return language;
}

/* Does a column default call a function of instaid, or one in its language? */
static bool
default_makes_ids(Relation depend, Oid attrdef, Oid language)
{
	Oid			extension = getExtensionOfObject(LanguageRelationId, language);
	bool		found = false;
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key[0], Anum_pg_depend_classid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(AttrDefaultRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_objid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(attrdef));
	scan = systable_beginscan(depend, DependDependerIndexId, true, NULL, lengthof(key), key);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		found = form->refclassid == ProcedureRelationId &&
			(function_language(form->refobjid, NULL) == language ||
			 getExtensionOfObject(ProcedureRelationId, form->refobjid) == extension);
	}
	systable_endscan(scan);
	return found;
}

/*
 * Does a sequence issue IDs of the extension instaid?  Then a function in its language depends on the
 * sequence, or a column default that calls such a function.  Anybody can create objects that depend
 * on any sequence.  Therefore only those count whose owner has the rights of the sequence's owner.
 */
static bool
makes_ids(Oid sequence)
{
	Oid			language = get_language_oid("instaid", true);
	bool		found = false;
	Relation	depend;
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!OidIsValid(language))
		return false;
	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(sequence));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, lengthof(key), key);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);
		Oid			owner = InvalidOid;

		if (form->classid == ProcedureRelationId)
			found = function_language(form->objid, &owner) == language;
		else if (form->classid == AttrDefaultRelationId &&
				 default_makes_ids(depend, form->objid, language))
		{
			owner = relation_owner(GetAttrDefaultColumnAddress(form->objid).objectId);
			found = true;
		}
		found = found && OidIsValid(owner) && has_privs_of_role(owner, relation_owner(sequence));
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return found;
}

/* Why a sequence cannot serve as a ticket, or NULL if it can */
static const char *
ticket_fault(Oid sequence, char persistence, Form_pg_sequence options)
{
	if (options->seqincrement <= 0)
		return psprintf("Its INCREMENT is %lld; it must count up.",
						(long long) options->seqincrement);
	if (options->seqcycle)
		return "It is defined with CYCLE; a ticket must not repeat its values.";
	if (persistence == RELPERSISTENCE_TEMP)
		return "It is temporary; it ends with the session.";
	if (persistence != RELPERSISTENCE_PERMANENT)
		return "It is UNLOGGED; a crash would set it back.";
	if (makes_ids(sequence))
		return "It issues IDs of the extension instaid, whose values are times.";
	return NULL;
}

/* Refuse a sequence that cannot serve as a ticket, and which the caller has locked. */
static void
check_fitness(Relation sequence, Form_pg_sequence options)
{
	const char *fault = ticket_fault(RelationGetRelid(sequence),
									 sequence->rd_rel->relpersistence, options);

	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" cannot serve as a ticket",
						RelationGetRelationName(sequence)),
				 errdetail_internal("%s", fault),
				 errhint("Use a sequence that is permanent, counts up, does not cycle, and issues nothing else.")));
}

/*
 * The values after the state of the page.  The next one is the first of this
 * server's stripe, START plus a multiple of INCREMENT, that is not below what
 * nextval() would return.
 */
static TicketState
read_state(Form_pg_sequence options, Form_pg_sequence_data data)
{
	uint64		increment = options->seqincrement;
	uint64		start = options->seqstart;
	int64		next = data->last_value;
	int64		gap;
	TicketState state = {0};

	/* how far it is below the stripe's next value; 0 if it is in the stripe */
	gap = (next < options->seqstart ? start - next :
		   increment - ((uint64) next - start) % increment) % increment;
	state.off_stripe = gap != 0;

	/* a value of the stripe that was taken is followed by another */
	if (gap == 0 && data->is_called)
		gap = increment;
	if (!pg_add_s64_overflow(next, gap, &state.next) &&
		state.next <= options->seqmax)
		state.left = 1 + (int64) Min(((uint64) options->seqmax - (uint64) state.next) / increment,
									 PG_INT64_MAX - 1);
	return state;
}

static void
used_up_error(const Ticket *ticket, int64 left, int64 wanted)
{
	int64		last = ticket->options.seqmax;
	Oid			type = ticket->options.seqtypid;
	bool		guarded = last < sequence_type_max(type);

	ereport(ERROR,
			(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
			 guarded ?
			 errmsg("ticket %s has reached its guard", sequence_qualified_name(ticket->relid)) :
			 errmsg("ticket %s is used up", sequence_qualified_name(ticket->relid)),
			 errdetail("Values wanted: %lld; values left until %lld, %s: %lld.",
					   (long long) wanted, (long long) last,
					   guarded ? "its MAXVALUE" :
					   psprintf("the end of %s", format_type_be(type)),
					   (long long) left),
			 guarded ?
			 errhint("If the number of servers is being changed, continue with instaid_tickets.restripe(); otherwise the owner can remove the guard: ALTER SEQUENCE %s NO MAXVALUE;",
					 sequence_qualified_name(ticket->relid)) :
			 type != INT8OID ?
			 errhint("If the columns that store its values are of type bigint, its owner can widen it: ALTER SEQUENCE %s AS bigint;",
					 sequence_qualified_name(ticket->relid)) :
			 left > 0 ?
			 errhint("Lease at most as many as are left.") :
			 errhint("If it was set too far by mistake, set it back with setval().")));
}

/*
 * Store the last of so many values in the locked page.  Returns the LSN up to which WAL
 * must be flushed for the sequence to be there after a crash.  A record is due if
 *
 *	- the last record does not cover the values, which would come again after a crash,
 *	- or the values do not follow the page's last value in steps of INCREMENT, in which
 *	  what the last record covers is counted,
 *	- or a checkpoint began after the last record, which replay would not read then.
 */
static XLogRecPtr
store_block(const Ticket *ticket, Form_pg_sequence_data data, int64 last, int64 count, int64 left)
{
	int64		increment = ticket->options.seqincrement;
	Page		page = BufferGetPage(ticket->buffer);
	int64		covered;
	int64		ahead;
	bool		log_it;

	/* before GetRedoRecPtr(): see sequence_log_page() */
	MarkBufferDirty(ticket->buffer);

	covered = sequence_values_covered(ticket->file, data);
	log_it = covered < count ||
		(uint64) last - (uint64) data->last_value != (uint64) count * (uint64) increment ||
		PageGetLSN(page) <= GetRedoRecPtr();
	ahead = log_it ? Min(ticket->step - 1, left - count) : covered - count;

	if (log_it && ticket->needs_wal)
		sequence_log_page(ticket->buffer, ticket->locator, data, last + ahead * increment);

	/* with wal_level = minimal, no record covers anything until the commit */
	data->last_value = last;
	data->is_called = true;
	data->log_cnt = sequence_log_cnt(ticket->file, ticket->needs_wal ? ahead : 0);

	return ticket->needs_wal ? PageGetLSN(page) : InvalidXLogRecPtr;
}

/* Take so many values of a ticket that has no source, and return the first one. */
static int64
take_block(Ticket *ticket, int64 count)
{
	Form_pg_sequence_data data;
	TicketState state;
	XLogRecPtr	lsn;

	if (!BufferIsValid(ticket->buffer) ||
		!ReadRecentBuffer(ticket->locator, MAIN_FORKNUM, 0, ticket->buffer))
		ticket->buffer = ReadBufferWithoutRelcache(ticket->locator, MAIN_FORKNUM, 0,
												   RBM_NORMAL, NULL, true);
	LockBuffer(ticket->buffer, BUFFER_LOCK_EXCLUSIVE);
	data = sequence_read_page(ticket->buffer, ticket->relid);
	state = read_state(&ticket->options, data);
	if (state.left < count)
	{
		UnlockReleaseBuffer(ticket->buffer);
		used_up_error(ticket, state.left, count);
	}
	lsn = store_block(ticket, data, state.next + (count - 1) * ticket->options.seqincrement,
					  count, state.left);
	UnlockReleaseBuffer(ticket->buffer);

	sequence_make_durable(lsn);
	return state.next;
}

/*
 * Lock a ticket for the transaction, and find out what a call needs to know.  No invalidation
 * announces a commit: what the running transaction has created is not remembered.  Nor is a ticket
 * that turns out to be unfit.
 */
static void
load_ticket(Ticket *ticket, Oid relid)
{
	Relation	rel;

	memset(ticket, 0, sizeof(*ticket));
	ticket->relid = relid;
	/* an invalidation from here on counts, because a REVOKE waits for no lock */
	ticket->is_valid = true;
	ticket->place = -1;

	/* before the lock, which lasts beyond the end of a subtransaction */
	ticket->has_source = source_exists(relid);
	if (ticket->has_source)
	{
		if (pg_class_aclcheck(relid, GetUserId(), SOURCE_RIGHTS) != ACLCHECK_OK)
			aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FOREIGN_TABLE, get_rel_name(relid));
	}
	else
		sequence_check_rights(relid, SEQUENCE_RIGHTS);
	sequence_lock(relid);
	if (ticket->has_source)
	{
		rel = relation_open(relid, NoLock);
		if (rel->rd_createSubid != InvalidSubTransactionId)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("ticket %s has a source, and is not committed",
							sequence_qualified_name(relid)),
					 errdetail("This transaction has created it, and a background worker cannot see it."),
					 errhint("Commit first.")));
	}
	else
	{
		rel = sequence_open_locked(relid, SEQUENCE_RIGHTS, &ticket->options);
		check_fitness(rel, &ticket->options);
		ticket->step = ticket->options.seqcache > 1 ? ticket->options.seqcache : DEFAULT_STEP;
		ticket->needs_wal = RelationNeedsWAL(rel);
		ticket->locator = rel->rd_locator;
		ticket->file = sequence_file_number(rel);
	}
	ticket->lxid = MyLocalTransactionId;
	if (!sequence_is_uncommitted(rel))
		ticket->role = GetUserId();
	relation_close(rel, NoLock);
}

static bool
is_remembered(const Ticket *ticket, Oid relid)
{
	return ticket->relid == relid && ticket->is_valid && ticket->role == GetUserId();
}

/* The ticket of which an SQL function takes values, locked for the transaction */
static Ticket *
open_ticket(Oid relid, const char *function)
{
	Ticket	   *ticket = &memory[relid % MEMORY_SIZE];

	/* nextval() has these rules, too */
	PreventCommandIfReadOnly(function);
	PreventCommandIfParallelMode(function);

	if (is_remembered(ticket, relid) && ticket->lxid != MyLocalTransactionId)
	{
		/* a role asks for no lock after its rights were revoked */
		AcceptInvalidationMessages();
		if (is_remembered(ticket, relid))
		{
			sequence_lock(relid);
			ticket->lxid = MyLocalTransactionId;
		}
	}
	if (!is_remembered(ticket, relid))
		load_ticket(ticket, relid);
	return ticket;
}

/* A relation has changed; all can have, if this is InvalidOid. */
static void
relcache_callback(Datum arg pg_attribute_unused(), Oid relid)
{
	for (Ticket *ticket = memory; ticket < memory + MEMORY_SIZE; ticket++)
	{
		if (ticket->relid == relid || !OidIsValid(relid))
			ticket->is_valid = false;
	}
}

/* A role may have other rights. */
static void
syscache_callback(Datum arg, SysCacheIdentifier cacheid pg_attribute_unused(),
				  uint32 hashvalue pg_attribute_unused())
{
	relcache_callback(arg, InvalidOid);
}

void
tickets_init(void)
{
	CacheRegisterRelcacheCallback(relcache_callback, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, syscache_callback, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHOID, syscache_callback, (Datum) 0);
	/* its owner is a member of pg_database_owner */
	CacheRegisterSyscacheCallback(DATABASEOID, syscache_callback, (Datum) 0);
}

Datum
instaid_tickets_next(PG_FUNCTION_ARGS)
{
	Ticket	   *ticket = open_ticket(PG_GETARG_OID(0), "instaid_tickets.next()");

	PG_RETURN_INT64(ticket->has_source ? segments_take(ticket->relid, &ticket->place) :
					take_block(ticket, 1));
}

Datum
instaid_tickets_lease(PG_FUNCTION_ARGS)
{
	int64		count = PG_GETARG_INT64(1);
	Ticket	   *ticket;
	int64		first;
	Datum		values[3];
	bool		nulls[3] = {false};

	if (count < 1)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("count %lld is out of range", (long long) count),
				 errdetail("A lease has at least one value.")));

	ticket = open_ticket(PG_GETARG_OID(0), "instaid_tickets.lease()");
	if (ticket->has_source)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ticket %s has its values from a source",
						sequence_qualified_name(ticket->relid)),
				 errdetail("It has no values of its own to lease."),
				 errhint("Use next(), or lease the values on a server of the source.")));
	first = take_block(ticket, count);
	values[0] = Int64GetDatum(first);
	values[1] = Int64GetDatum(first + (count - 1) * ticket->options.seqincrement);
	values[2] = Int64GetDatum(ticket->options.seqincrement);
	PG_RETURN_DATUM(make_row(fcinfo, values, nulls));
}

/* Only a sequence has an owner that counts here; sequence_open_locked() refuses other relations. */
static void
check_owner(Oid relid)
{
	if (get_rel_relkind(relid) == RELKIND_SEQUENCE &&
		!has_privs_of_role(GetUserId(), relation_owner(relid)))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE, get_rel_name(relid));
}

/* ALTER SEQUENCE takes this lock, too; but it finds a sequence by its name. */
Datum
instaid_tickets_lock(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Relation	rel;
	FormData_pg_sequence options;

	check_owner(relid);
	LockRelationOid(relid, ShareRowExclusiveLock);
	/* it can have been dropped, or given to another role, before the lock */
	rel = sequence_open_locked(relid, SEQUENCE_RIGHTS, &options);
	check_owner(relid);
	check_fitness(rel, &options);
	relation_close(rel, NoLock);
	PG_RETURN_VOID();
}

/*
 * Where a sequence stands as a ticket, or why it cannot be one; and whether next() or lease() was the
 * last to write its page, which nextval(), setval() and recovery hide until the next call.
 */
Datum
instaid_tickets_state(PG_FUNCTION_ARGS)
{
	Oid			sequence = PG_GETARG_OID(0);
	Datum		values[5] = {0};
	bool		nulls[5] = {true, true, true, true, true};
	FormData_pg_sequence options;
	char		persistence;
	FormData_pg_sequence_data data;

	if (sequence_read(sequence, &options, &persistence, &data))
	{
		const char *fault = ticket_fault(sequence, persistence, &options);

		if (fault == NULL)
		{
			TicketState state = read_state(&options, &data);

			values[0] = Int64GetDatum(data.last_value);
			values[1] = Int64GetDatum(state.left);
			values[2] = BoolGetDatum(state.off_stripe);
			nulls[0] = !data.is_called;
			nulls[1] = nulls[2] = false;
		}
		else
		{
			values[3] = CStringGetTextDatum(fault);
			nulls[3] = false;
		}
		values[4] = BoolGetDatum(fault == NULL && !sequence_is_cores(&data));
		nulls[4] = false;
	}
	PG_RETURN_DATUM(make_row(fcinfo, values, nulls));
}
