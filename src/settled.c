/*
 * How far the IDs of a sequence are settled: every transaction that took one of them has ended.
 *
 * A transaction that takes a tick first locks the sequence in RowExclusiveLock, and keeps the
 * lock until it ends, or until COMMIT PREPARED, as with core's nextval().  Therefore:
 *
 *	  1. read the last tick that the sequence has given,
 *	  2. ask the lock table which transactions hold that lock,
 *	  3. wait until they have ended, as CREATE INDEX CONCURRENTLY does.
 *
 * A transaction that took a tick up to the one of step 1 had the lock before step 1.  In step 2
 * it either holds the lock or has ended.  A transaction is visible to new snapshots before it
 * releases its locks.  One that begins to take ticks after step 1 gets greater ones.
 *
 * No session keeps a tick for its next transaction.  What core's nextval() keeps if the sequence
 * has CACHE above 1 is not covered.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "common.h"
#include "declaration.h"
#include "id_sequence.h"
#include "layout.h"
#include "sequence.h"

PG_FUNCTION_INFO_V1(instaid_settled_id);

/* Refuse a session whose next query could miss rows, whatever is waited for. */
static void
check_sees_commits(void)
{
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("settled_id() cannot be used during recovery"),
				 errdetail("Only the primary knows which transactions have taken IDs."),
				 errhint("Call it on the primary, then pg_logical_emit_message(true, '', ''), and read here when pg_last_wal_replay_lsn() has reached the position that this returns.")));
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("settled_id() cannot be used in a transaction with isolation level %s",
						IsolationIsSerializable() ? "serializable" : "repeatable read"),
				 errdetail("All its queries have one snapshot, which does not show what is committed during the call."),
				 errhint("Use BEGIN ISOLATION LEVEL READ COMMITTED.")));
}

/* The greatest ID that is not above a tick; 0 if there is none. */
static int64
greatest_id(int64 tick, int32 shard_id, int64 epoch_ms)
{
	if (tick_ms(tick) < epoch_ms)
		return 0;
	return tick_has_id(tick, epoch_ms) ? tick_to_id(tick, shard_id, epoch_ms) :
		pack_id(LAST_MS, shard_id, MAX_SEQUENCE);
}

/*
 * An ID such that each row with an ID up to it, whose transaction is committed, is visible to
 * every snapshot taken from now on, and that no such ID is inserted later.  Null if wait is
 * false and there is a transaction to wait for.
 */
static Datum
find_settled_id(FunctionCallInfo fcinfo, Oid sequence, int32 shard_id, int64 epoch_ms,
				bool wait)
{
	RelFileLocator file = {0};
	FormData_pg_sequence_data data;
	ErrorData  *error;
	XLogRecPtr	lsn;
	LOCKTAG		tag;
	int64		tick;
	int			count = 0;

	check_sees_commits();

	/*
	 * Keep it from being dropped.  The lock that keeps ALTER SEQUENCE away,
	 * too, would let calls in other sessions wait for this transaction.
	 */
	sequence_check_rights(sequence, SEQUENCE_READ_RIGHTS);
	if (wait)
		LockRelationOid(sequence, AccessShareLock);
	else if (!ConditionalLockRelationOid(sequence, AccessShareLock))
		PG_RETURN_NULL();

	/* ALTER SEQUENCE can replace the file before it is read */
	do
	{
		RelFileLocator tried = file;
		FormData_pg_sequence options;
		Relation	rel = sequence_open_locked(sequence, SEQUENCE_READ_RIGHTS, &options);

		id_sequence_check(rel, &options);

		/*
		 * Step 2 does not find locks of this transaction, and a lock does not
		 * tell why it is held.
		 */
		if (CheckRelationLockedByMe(rel, RowExclusiveLock, true))
			ereport(ERROR,
					(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
					 errmsg("this transaction itself holds a lock on sequence \"%s\"",
							RelationGetRelationName(rel)),
					 errdetail("For example, it has taken IDs, altered or commented on the sequence, or read the view pg_sequences. settled_id() would have to wait until it ends."),
					 errhint("Call settled_id() first in the transaction, or in another transaction.")));

		file = rel->rd_locator;
		error = sequence_copy_page(sequence, file, rel->rd_rel->relpersistence, &data, &lsn);
		if (!RelationNeedsWAL(rel))
			lsn = InvalidXLogRecPtr;
		relation_close(rel, NoLock);
		if (error != NULL && RelFileLocatorEquals(file, tried))
			ReThrowError(error);
	} while (error != NULL);
	UnlockRelationOid(sequence, AccessShareLock);

	/* if the sequence has given no tick, this is the tick before its first */
	tick = Max(data.last_value, 0) - (data.is_called ? 0 : 1);

	/*
	 * The sequence must not stand lower after a crash.  take_ticks() relies
	 * on the clock for ticks that are not ahead of it, but the next call can
	 * come before a tick is taken, and the clock can be set back.
	 */
	sequence_make_durable(lsn);

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, sequence);
	if (wait)
		WaitForLockers(tag, ShareLock, false);
	else
		(void) GetLockConflicts(&tag, ShareLock, &count);
	if (count > 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(greatest_id(tick, shard_id, epoch_ms));
}

/* Refuse the sequence of another shard, whose IDs have another shard ID or epoch. */
static void
check_sequence(Oid sequence, Oid schema)
{
	Oid			other = get_rel_namespace(sequence);
	HeapTuple	tuple = OidIsValid(other) && other != schema ? declaration_find(other) : NULL;

	if (!HeapTupleIsValid(tuple))
		return;
	ReleaseSysCache(tuple);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("sequence %s is in the schema of another shard",
					sequence_qualified_name(sequence)),
			 errdetail("Its IDs are not those of the shard in schema %s.",
					   quote_identifier(get_namespace_name(schema))),
			 errhint("Pass the schema of that shard.")));
}

Datum
instaid_settled_id(PG_FUNCTION_ARGS)
{
	char	   *schema_name;
	Declaration before;
	Declaration now = {0};
	Datum		id = (Datum) 0;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		PG_RETURN_NULL();
	schema_name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	check_object_name("schema", schema_name);

	/* renumber_shard() can end before the tick is read: look again */
	for (;;)
	{
		HeapTuple	tuple;
		const char *fault;
		Oid			schema;
		Oid			sequence;

		AcceptInvalidationMessages();
		schema = LookupExplicitNamespace(schema_name, false);
		tuple = declaration_find(schema);
		if (!HeapTupleIsValid(tuple))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("schema %s is not a shard", quote_identifier(schema_name)),
					 errhint("instaid.shards lists the shards of this database.")));
		before = now;
		fault = declaration_read(tuple, &now);
		if (fault != NULL)
			declaration_error(tuple, fault);
		ReleaseSysCache(tuple);

		if (now.sequence == before.sequence && now.shard_id == before.shard_id &&
			now.epoch_ms == before.epoch_ms)
			return id;
		fcinfo->isnull = false;
		sequence = PG_ARGISNULL(1) ? now.sequence : PG_GETARG_OID(1);
		if (!PG_ARGISNULL(1))
			check_sequence(sequence, schema);
		id = find_settled_id(fcinfo, sequence,
							 now.shard_id == NODE_SHARD ? declaration_node_shard_id() : now.shard_id,
							 now.epoch_ms, PG_GETARG_BOOL(2));
	}
}
