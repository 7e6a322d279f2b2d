/*
 * What IDs and tickets need of PostgreSQL's sequences.
 *
 * Both take values from a sequence's page themselves, by the rules of
 * nextval_internal() in src/backend/commands/sequence.c.  PostgreSQL 17 has
 * sequence_open() and sequence_close(), so these names are not free.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_control.h"
#include "miscadmin.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/lmgr.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#include "common.h"
#include "sequence.h"

/* schema.sequence, quoted for use in a statement */
char *
sequence_qualified_name(Oid sequence)
{
	char	   *name = get_rel_name(sequence);

	/* no lock may keep another session from dropping it */
	return name == NULL ? pstrdup("?") :
		quote_qualified_identifier(get_namespace_name(get_rel_namespace(sequence)), name);
}

/* Copy the options of a sequence.  Returns false if it is gone. */
bool
sequence_copy_options(Oid sequence, Form_pg_sequence options)
{
	HeapTuple	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));

	if (!HeapTupleIsValid(tuple))
		return false;
	*options = *(Form_pg_sequence) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	return true;
}

/* The error for a role that has none of these rights */
void
sequence_no_permission_error(Oid sequence, AclMode rights)
{
	char	   *name = get_rel_name(sequence);

	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for sequence %s", name ? name : "?"),
			 errhint("Its owner can permit it: GRANT %s ON SEQUENCE %s TO %s;",
					 rights & ACL_SELECT ? "SELECT" : rights & ACL_USAGE ? "USAGE" : "UPDATE",
					 sequence_qualified_name(sequence),
					 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

/*
 * Refuse a role that has none of these rights, before it gets the lock: other sessions wait for
 * the lock, and a rollback to a savepoint does not end it.  sequence_open_locked() asks again,
 * because a REVOKE can be committed before the lock is taken.
 */
void
sequence_check_rights(Oid sequence, AclMode rights)
{
	char		relkind;
	bool		missing;
	char	   *name;

	/* a GRANT that was committed since the transaction began counts */
	AcceptInvalidationMessages();
	relkind = get_rel_relkind(sequence);
	missing = relkind == '\0';
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
	sequence_no_permission_error(sequence, rights);
}

/* Lock a sequence as nextval() does: no ALTER SEQUENCE until the top transaction ends. */
void
sequence_lock(Oid sequence)
{
	ResourceOwner saved = CurrentResourceOwner;

	CurrentResourceOwner = TopTransactionResourceOwner;
	LockRelationOid(sequence, RowExclusiveLock);
	CurrentResourceOwner = saved;
}

/* Open a sequence that the caller has locked, if the role has one of these rights. */
Relation
sequence_open_locked(Oid sequence, AclMode rights, FormData_pg_sequence *options)
{
	Relation	rel;

	sequence_check_rights(sequence, rights);
	rel = relation_open(sequence, NoLock);
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary sequence \"%s\" of another session",
						RelationGetRelationName(rel)),
				 errhint("Create the sequence without TEMPORARY.")));
	if (!sequence_copy_options(sequence, options))
		elog(ERROR, "cache lookup failed for sequence %u", sequence);
	return rel;
}

/*
 * The error for a page that is not a sequence's, or has another format.  The top transaction can have pinned it.  Since
 * PostgreSQL 19, the end of a subtransaction does not unlock such a page, and the error can be
 * caught in one.
 */
void
sequence_page_error(Buffer buffer, Oid sequence)
{
	Page		page = BufferGetPage(buffer);
	sequence_magic *sm = (sequence_magic *) PageGetSpecialPointer(page);
	uint32		magic = sm->magic;
	unsigned	length = ItemIdGetLength(sequence_item(page));

	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	if (magic != SEQ_MAGIC)
		elog(ERROR, "bad magic number in sequence with OID %u: %08X", sequence, magic);
	elog(ERROR, "tuple of sequence with OID %u has %u bytes, not %u", sequence, length,
		 (unsigned) SEQUENCE_TUPLE_LENGTH);
}

static void
copy_page(Oid sequence, RelFileLocator locator, char persistence, Form_pg_sequence_data data,
		  XLogRecPtr *lsn)
{
	Buffer		buffer;

	if (persistence == RELPERSISTENCE_TEMP)
	{
		/* local buffers are found by the relation only */
		Relation	rel = relation_open(sequence, NoLock);

		buffer = ReadBuffer(rel, 0);
		relation_close(rel, NoLock);
	}
	else
		buffer = ReadBufferWithoutRelcache(locator, MAIN_FORKNUM, 0, RBM_NORMAL, NULL,
										   persistence == RELPERSISTENCE_PERMANENT);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	*data = *sequence_read_page(buffer, sequence);
	*lsn = PageGetLSN(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
}

/*
 * Copy the state of a sequence that the caller has locked, and the LSN of its page.  Returns NULL,
 * or why the file cannot be read.
 *
 * ALTER SEQUENCE gives a sequence another file.  A standby replays that without a lock, and can
 * remove the file between the look-up of its name and here.  AccessShareLock does not prevent
 * that on a primary, either.  A subtransaction catches the error.  A query with parallel workers,
 * which cannot begin one before PostgreSQL 17, fails.
 *
 * If ALTER SEQUENCE has dropped the file's pages from the shared buffers and has not removed the
 * file yet, this reads the page once more, and nobody drops it again.  It is clean, so it is never
 * written; the next use of its buffer evicts it.  A relation that gets the number of the file
 * meanwhile, after a wraparound of OIDs, fails to extend ("unexpected data beyond EOF").  Only a
 * lock that makes ALTER SEQUENCE wait would prevent that, and each such lock would also wait for
 * those who take IDs, or keep settled_id() waiting.
 */
ErrorData *
sequence_copy_page(Oid sequence, RelFileLocator locator, char persistence,
				   Form_pg_sequence_data data, XLogRecPtr *lsn)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;
	int			category;

	if (IsInParallelMode())
	{
		copy_page(sequence, locator, persistence, data, lsn);
		return NULL;
	}

	BeginInternalSubTransaction(NULL);
	PG_TRY();
	{
		copy_page(sequence, locator, persistence, data, lsn);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (error == NULL)
		return NULL;
	/* a cancellation, or a lack of memory; only now, after the subtransaction */
	category = ERRCODE_TO_CATEGORY(error->sqlerrcode);
	if (category != ERRCODE_SYSTEM_ERROR && category != ERRCODE_INTERNAL_ERROR &&
		error->sqlerrcode != ERRCODE_INSUFFICIENT_PRIVILEGE)
		ReThrowError(error);
	return error;
}

/*
 * Copy the state of a sequence, and its options and persistence unless they are NULL.
 * Returns false if it is no sequence, or is gone; the role may not see it; another
 * transaction is altering or dropping it; its file cannot be read; or it is temporary and
 * another session's, or not permanent and this is a standby.
 *
 * A superuser may list all sequences, and any role may have locked one of them.
 * Therefore this asks for no lock without the right to read, and waits for none.  There
 * may be thousands, and so the relation is not opened, which would build it for each.
 */
bool
sequence_read(Oid sequence, Form_pg_sequence options, char *persistence,
			  Form_pg_sequence_data data)
{
	bool		is_read = false;
	HeapTuple	tuple;

	/* not the lock of those who take IDs, for whom settled_id() waits */
	if (get_rel_relkind(sequence) != RELKIND_SEQUENCE ||
		!relation_is_visible(sequence, SEQUENCE_READ_RIGHTS) ||
		!ConditionalLockRelationOid(sequence, AccessShareLock))
		return false;

	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(sequence));
	if (HeapTupleIsValid(tuple) && (options == NULL || sequence_copy_options(sequence, options)))
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(tuple);

		/* tablespace, database, file: their names differ between versions */
		RelFileLocator locator = {
			OidIsValid(class->reltablespace) ? class->reltablespace : MyDatabaseTableSpace,
			MyDatabaseId, class->relfilenode
		};
		XLogRecPtr	lsn;

		if (persistence != NULL)
			*persistence = class->relpersistence;
		if (class->relpersistence == RELPERSISTENCE_TEMP ?
			isTempNamespace(class->relnamespace) :
			class->relpersistence == RELPERSISTENCE_PERMANENT || !RecoveryInProgress())
			is_read = sequence_copy_page(sequence, locator, class->relpersistence, data,
										 &lsn) == NULL;
	}
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	UnlockRelationOid(sequence, AccessShareLock);
	return is_read;
}

/*
 * Write a WAL record of a sequence whose page the caller has locked exclusively and marked dirty.
 * Returns the LSN of the record.
 *
 * Replay of the record sets the sequence to last_value.  So does this function, in the page.  The
 * caller then stores the last value that it has really taken: otherwise the values up to last_value
 * would be lost.
 *
 * The caller must mark the page dirty before it compares GetRedoRecPtr() with the page's LSN.  In
 * the other order, a checkpoint could begin between the two.  The caller has then seen the
 * old redo point, and writes no record if the last one covers the value.  The checkpoint does not
 * write the page, which is still clean: see SyncOneBuffer().  After a crash, replay begins at the
 * new redo point, and reads no record of the value, which comes again.
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

static bool standbys_wait_cancelled;

static void
note_cancellation(ErrorData *edata)
{
	if (edata->elevel == WARNING)
	{
		standbys_wait_cancelled = true;
		edata->output_to_server = false;
	}
}

/*
 * Wait until synchronous standbys, if there are any, have flushed WAL up to this LSN.  Even with
 * remote_apply, wait for no more: a standby reports at once that it has applied a commit, but not
 * other WAL.  Returns false if the wait was cancelled.
 *
 * SyncRepWaitForLSN() is for transactions that have committed.  It swallows a cancellation, and
 * warns that the commit stands.  There is no commit here, so neither client nor log may have that
 * warning, but nothing else tells a cancellation from a removal of the standbys.
 */
static bool
wait_for_standbys(XLogRecPtr lsn)
{
	emit_log_hook_type hook = emit_log_hook;
	int			nest_level = 0;

	/* this takes long, and most servers have no standbys */
	if (has_named_standbys())
	{
		nest_level = NewGUCNestLevel();
		(void) set_config_option("client_min_messages", "error", PGC_SUSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
		(void) set_config_option("log_min_messages", "warning", PGC_SUSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
	}
	standbys_wait_cancelled = false;
	emit_log_hook = note_cancellation;

	/* a commit cannot fail: this raises no error */
	HOLD_INTERRUPTS();
	SyncRepWaitForLSN(lsn, false);
	RESUME_INTERRUPTS();

	emit_log_hook = hook;
	if (nest_level > 0)
		AtEOXact_GUC(false, nest_level);
	return !standbys_wait_cancelled;
}

/*
 * Wait until WAL up to this LSN is as durable as a commit of this session would be:
 * flushed here, and on synchronous standbys as synchronous_commit says.  It is an error
 * (57014) if the wait for a standby is cancelled.
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
	 * commits do.  Nothing else there needs different LSNs.  Therefore each
	 * waits for an empty record of its own.
	 */
	if (wait && has_named_standbys())
	{
		char		nothing = 0;

		XLogBeginInsert();
		XLogRegisterData(&nothing, sizeof(nothing));
		lsn = XLogInsert(RM_XLOG_ID, XLOG_NOOP);
	}
	XLogFlush(lsn);
	if (!wait)
		return;

	CHECK_FOR_INTERRUPTS();
	if (!wait_for_standbys(lsn))
	{
		/* the end of the session is an error of its own */
		InterruptPending = true;
		CHECK_FOR_INTERRUPTS();
		ereport(ERROR,
				(errcode(ERRCODE_QUERY_CANCELED),
				 errmsg("canceling statement that waits for a synchronous standby"),
				 errdetail("The standby has not confirmed that it has the values that were taken.")));
	}
	if (has_named_standbys())
	{
		LWLockAcquire(SyncRepLock, LW_SHARED);
		confirmed[mode] = WalSndCtl->lsn[mode];
		LWLockRelease(SyncRepLock);
	}
}
