/*-------------------------------------------------------------------------
 *
 * sequence.c
 *	  What every use of a PostgreSQL sequence checks first.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/lwlock.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "sequence.h"

/* schema.sequence, quoted for use in a statement */
char *
instaid_qualified_name(Relation rel)
{
	return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
									  RelationGetRelationName(rel));
}

void
instaid_check_is_sequence(Relation rel)
{
	if (rel->rd_rel->relkind != RELKIND_SEQUENCE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a sequence",
						RelationGetRelationName(rel)),
				 errhint("Pass a sequence; CREATE SEQUENCE makes one that can serve.")));
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary sequence \"%s\" of another session",
						RelationGetRelationName(rel)),
				 errhint("Create the sequence without TEMPORARY.")));
}

/* The error for a role that lacks the rights that nextval() needs */
void
instaid_no_permission_error(const char *schema, const char *sequence)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for sequence %s", sequence),
			 errhint("Its owner can permit it: GRANT USAGE ON SEQUENCE %s TO %s;",
					 quote_qualified_identifier(schema, sequence),
					 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

void
instaid_check_permission(Relation rel)
{
	if (pg_class_aclcheck(RelationGetRelid(rel), GetUserId(),
						  SEQUENCE_RIGHTS) != ACLCHECK_OK)
		instaid_no_permission_error(get_namespace_name(RelationGetNamespace(rel)),
									RelationGetRelationName(rel));
}

/* Has this session read that there are synchronous standbys? */
static bool
named_standbys(void)
{
	return SyncRepStandbyNames != NULL && SyncRepStandbyNames[0] != '\0';
}

/*
 * Return when WAL up to this LSN is where a commit of this session would have it:
 * flushed here, and, as synchronous_commit says, on synchronous standbys.
 *
 * Errors: the wait for a standby was cancelled (57014).  The session's end, while
 * it waits, is its end.
 */
void
instaid_make_durable(XLogRecPtr lsn)
{
	/* how far standbys have told that they are, as this session knows */
	static XLogRecPtr confirmed[NUM_SYNC_REP_WAIT_MODE];
	int			mode = synchronous_commit == SYNCHRONOUS_COMMIT_REMOTE_WRITE ?
		SYNC_REP_WAIT_WRITE : SYNC_REP_WAIT_FLUSH;

	if (lsn == InvalidXLogRecPtr)
		return;
	XLogFlush(lsn);
	if (!SyncRepRequested() || lsn <= confirmed[mode])
		return;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		HOLD_INTERRUPTS();

		/*
		 * What is not a commit is not waited for until it is applied, as
		 * standbys do not tell this at once.  It is flushed there, then.
		 */
		SyncRepWaitForLSN(lsn, false);
		RESUME_INTERRUPTS();

		if (named_standbys() || InterruptPending)
		{
			LWLockAcquire(SyncRepLock, LW_SHARED);
			confirmed[mode] = WalSndCtl->lsn[mode];
			LWLockRelease(SyncRepLock);
		}

		/*
		 * The wait ends when a standby has confirmed, or none is asked for any
		 * more; or when it is cancelled, with a warning, and the cancellation
		 * is forgotten.  Whether standbys are asked for is not looked up in
		 * shared memory, since its place there has changed in minor releases.
		 */
		if (lsn <= confirmed[mode] || !(InterruptPending || ProcDiePending))
			return;
		if (ProcDiePending || named_standbys())
			break;
		/* It may have been any other interrupt: there was nothing to wait for. */
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
