/*
 * What both wings, IDs and tickets, know of PostgreSQL's sequences.
 *
 * Both take values from a sequence's page themselves, by the rules of
 * nextval_internal() in src/backend/commands/sequence.c.
 *
 * PostgreSQL 17 has sequence_open() and sequence_close(), so these names are
 * not free.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_control.h"
#include "miscadmin.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#include "sequence.h"

/* schema.sequence of a sequence that is locked, quoted for use in a statement */
char *
sequence_qualified_name(Oid sequence)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(sequence)),
									  get_rel_name(sequence));
}

/* The owner of a sequence, or of any other relation; InvalidOid if it is gone */
Oid
sequence_owner(Oid sequence)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(sequence));
	Oid			owner = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
		ReleaseSysCache(tuple);
	}
	return owner;
}

/*
 * The error for a role that lacks the rights that nextval() needs.  The schema
 * is NULL if it was dropped meanwhile.
 */
void
sequence_no_permission_error(const char *schema, const char *sequence)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for sequence %s", sequence),
			 errhint("Its owner can permit it: GRANT USAGE ON SEQUENCE %s TO %s;",
					 quote_qualified_identifier(schema, sequence),
					 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

static void
check_sequence(Oid sequence, AclMode rights)
{
	char		relkind = get_rel_relkind(sequence);
	bool		missing = relkind == '\0';
	char	   *name;

	if (relkind == RELKIND_SEQUENCE &&
		pg_class_aclcheck_ext(sequence, GetUserId(), rights, &missing) == ACLCHECK_OK)
		return;

	name = get_rel_name(sequence);
	if (missing || name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("sequence with OID %u does not exist", sequence)));
	if (relkind != RELKIND_SEQUENCE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a sequence", name),
				 errhint("Pass a sequence. CREATE SEQUENCE creates one.")));
	sequence_no_permission_error(get_namespace_name(get_rel_namespace(sequence)), name);
}

/*
 * Refuse a role that has none of these rights, before it gets the lock.  A lock
 * of the top transaction stays when a savepoint is rolled back, and other
 * sessions wait for it.  sequence_open_locked() checks again, because
 * a REVOKE can be committed before the lock is taken.
 */
void
sequence_check_rights(Oid sequence, AclMode rights)
{
	/* a GRANT that was committed since the transaction began counts */
	AcceptInvalidationMessages();
	check_sequence(sequence, rights);
}

/*
 * Lock a sequence as nextval() does.  The lock keeps ALTER SEQUENCE away until
 * the top transaction ends.
 */
void
sequence_lock(Oid sequence)
{
	ResourceOwner saved = CurrentResourceOwner;

	CurrentResourceOwner = TopTransactionResourceOwner;
	LockRelationOid(sequence, RowExclusiveLock);
	CurrentResourceOwner = saved;
}

/*
 * Open a sequence that the caller has locked, if the role has one of these
 * rights, and copy its options.
 */
Relation
sequence_open_locked(Oid sequence, AclMode rights, FormData_pg_sequence *options)
{
	Relation	rel;
	HeapTuple	tuple;

	check_sequence(sequence, rights);
	rel = relation_open(sequence, NoLock);
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary sequence \"%s\" of another session",
						RelationGetRelationName(rel)),
				 errhint("Create the sequence without TEMPORARY.")));

	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for sequence %u", sequence);
	*options = *(Form_pg_sequence) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	return rel;
}

/*
 * May the role see where a sequence stands?  Members of pg_read_all_stats may,
 * because roles of monitors are members.  Others need one of the rights to read it.
 * A sequence that is gone cannot be seen.
 */
static bool
is_visible(Oid sequence)
{
	bool		is_missing = false;

	return get_rel_relkind(sequence) == RELKIND_SEQUENCE &&
		(has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		 pg_class_aclcheck_ext(sequence, GetUserId(), SEQUENCE_READ_RIGHTS,
							   &is_missing) == ACLCHECK_OK);
}

/*
 * Lock a sequence in RowExclusiveLock, to read it.  The caller unlocks it
 * afterwards.  Returns false if it is no sequence, or is gone, or the role may
 * not see it, or another transaction is altering or dropping it.
 *
 * A superuser may list all sequences, and any role may have locked one of them.
 * Therefore this asks for no lock without the right to read, and waits for none.
 */
bool
sequence_try_lock(Oid sequence)
{
	return is_visible(sequence) &&
	/* the mode of pg_sequence_last_value(): it keeps ALTER SEQUENCE away */
		ConditionalLockRelationOid(sequence, RowExclusiveLock);
}

/* Pin and lock the page of a sequence to read it. */
static Form_pg_sequence_data
lock_page_of_class(Form_pg_class class, Buffer *buffer)
{
	/* tablespace, database, file: their names differ between versions */
	RelFileLocator locator = {
		OidIsValid(class->reltablespace) ? class->reltablespace : MyDatabaseTableSpace,
		MyDatabaseId, class->relfilenode
	};

	if (class->relpersistence == RELPERSISTENCE_TEMP)
	{
		/* local buffers are found by the relation only */
		Relation	rel = relation_open(class->oid, NoLock);
		Form_pg_sequence_data data;

		data = sequence_lock_page(rel, buffer, BUFFER_LOCK_SHARE);
		relation_close(rel, NoLock);
		return data;
	}

	*buffer = ReadBufferWithoutRelcache(locator, MAIN_FORKNUM, 0, RBM_NORMAL, NULL,
										class->relpersistence == RELPERSISTENCE_PERMANENT);
	LockBuffer(*buffer, BUFFER_LOCK_SHARE);
	return sequence_read_page(*buffer, class->oid);
}

/*
 * Copy the options, unless they are not wanted (NULL), and the state of a
 * sequence that sequence_try_lock() has locked.  Returns false if it was dropped
 * before that, or cannot be read: it is temporary and another session's, or not
 * permanent and this is a standby.
 *
 * There may be thousands of sequences, and so the relation is not opened, which
 * would build it for each.
 */
bool
sequence_read_locked(Oid sequence, FormData_pg_sequence *options,
					 FormData_pg_sequence_data *data)
{
	HeapTuple	class_tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(sequence));
	HeapTuple	options_tuple = options == NULL ? NULL :
		SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
	bool		readable = false;

	if (HeapTupleIsValid(class_tuple) && (options == NULL || HeapTupleIsValid(options_tuple)))
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(class_tuple);

		if (class->relpersistence == RELPERSISTENCE_TEMP)
			readable = isTempNamespace(class->relnamespace);
		else
			readable = class->relpersistence == RELPERSISTENCE_PERMANENT || !RecoveryInProgress();
		if (readable)
		{
			Buffer		buffer;

			if (options != NULL)
				*options = *(Form_pg_sequence) GETSTRUCT(options_tuple);
			*data = *lock_page_of_class(class, &buffer);
			UnlockReleaseBuffer(buffer);
		}
	}
	if (HeapTupleIsValid(class_tuple))
		ReleaseSysCache(class_tuple);
	if (HeapTupleIsValid(options_tuple))
		ReleaseSysCache(options_tuple);
	return readable;
}

/*
 * Write a WAL record of a sequence whose page the caller has locked exclusively,
 * and marked dirty.  Replay sets the sequence to last_value.  Until the caller
 * stores another state, the page stands there, too.  Returns the record's LSN.
 */
XLogRecPtr
sequence_log_page(Buffer buffer, RelFileLocator file, Form_pg_sequence_data data,
				  int64 last_value)
{
	Page		page = BufferGetPage(buffer);
	ItemId		item = sequence_item(page);
	xl_seq_rec	xlrec;
	XLogRecPtr	lsn;

	START_CRIT_SECTION();

	XLogBeginInsert();
	XLogRegisterBuffer(0, buffer, REGBUF_WILL_INIT);

	data->last_value = last_value;
	data->is_called = true;
	data->log_cnt = 0;

	XLogSequenceLocator(xlrec) = file;
	XLogRegisterData((char *) &xlrec, sizeof(xl_seq_rec));
	XLogRegisterData((char *) PageGetItem(page, item), ItemIdGetLength(item));

	lsn = XLogInsert(RM_SEQ_ID, XLOG_SEQ_LOG);
	PageSetLSN(page, lsn);

	END_CRIT_SECTION();
	return lsn;
}

/* Does this session know of synchronous standbys? */
static bool
has_named_standbys(void)
{
	return SyncRepStandbyNames != NULL && SyncRepStandbyNames[0] != '\0';
}

/* Write an empty WAL record, to have an LSN.  Returns the LSN. */
static XLogRecPtr
log_empty_record(void)
{
	char		nothing = 0;

	XLogBeginInsert();
	XLogRegisterData(&nothing, sizeof(nothing));
	return XLogInsert(RM_XLOG_ID, XLOG_NOOP);
}

/*
 * Wait until WAL up to this LSN is as durable as a commit of this session would be:
 * flushed here, and on synchronous standbys as synchronous_commit says.
 *
 * Errors: the wait for a standby was cancelled (57014).  If the session is
 * terminated while it waits, it ends.
 */
void
sequence_make_durable(XLogRecPtr lsn)
{
	/* the LSN that standbys have confirmed, as far as this session knows */
	static XLogRecPtr confirmed[NUM_SYNC_REP_WAIT_MODE];
	int			mode = synchronous_commit == SYNCHRONOUS_COMMIT_REMOTE_WRITE ?
		SYNC_REP_WAIT_WRITE : SYNC_REP_WAIT_FLUSH;
	bool		wait = SyncRepRequested() && lsn > confirmed[mode];

	if (lsn == InvalidXLogRecPtr)
		return;

	/*
	 * Several sessions can need one record of a sequence.  An assertion of
	 * syncrep.c fails if two sessions wait for the same LSN, as no two
	 * commits do.  Nothing else in syncrep.c needs different LSNs.
	 */
	if (wait && has_named_standbys())
		lsn = log_empty_record();
	XLogFlush(lsn);
	if (!wait)
		return;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		HOLD_INTERRUPTS();

		/*
		 * Even with remote_apply, wait only until the standby has flushed the
		 * WAL: it does not report at once that it has applied WAL that is not
		 * a commit.
		 */
		SyncRepWaitForLSN(lsn, false);
		RESUME_INTERRUPTS();

		if (has_named_standbys() || InterruptPending)
		{
			LWLockAcquire(SyncRepLock, LW_SHARED);
			confirmed[mode] = WalSndCtl->lsn[mode];
			LWLockRelease(SyncRepLock);
		}

		/*
		 * The wait ends when a standby has confirmed the LSN, or when there
		 * are no synchronous standbys any more.  It also ends when it is
		 * cancelled: SyncRepWaitForLSN() then warns, and forgets the
		 * cancellation.  Shared memory says whether there are synchronous
		 * standbys, but not in the same place in all minor releases, so this
		 * does not look there.
		 */
		if (lsn <= confirmed[mode] || !(InterruptPending || ProcDiePending))
			return;
		if (ProcDiePending || has_named_standbys())
			break;
		/* some other interrupt has ended it: try again */
	}

	if (!ProcDiePending)
		QueryCancelPending = true;
	InterruptPending = true;
	CHECK_FOR_INTERRUPTS();
	ereport(ERROR,
			(errcode(ERRCODE_QUERY_CANCELED),
			 errmsg("canceling statement that waits for a synchronous standby"),
			 errdetail("The standby has not confirmed that it has the values that were taken.")));
}
