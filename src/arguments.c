/* Shard IDs and epochs: checks of those that callers pass, and the shard ID of this server. */
#include "postgres.h"

#include "utils/guc.h"
#include "utils/timestamp.h"

#include "ids.h"

void
check_shard_id(int32 shard_id)
{
	if (shard_id < 0 || shard_id > MAX_SHARD_ID)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("shard ID %d is out of range", shard_id),
				 errdetail("A shard ID is between 0 and %d.", MAX_SHARD_ID)));
}

const char *
time_str(TimestampTz time)
{
	/* timestamptz_to_str() has one buffer, and a message can show two times */
	return pstrdup(timestamptz_to_str(time));
}

/* The epoch that was passed last */
TimestampTz last_epoch = (DEFAULT_EPOCH_MS - POSTGRES_EPOCH_MS) * 1000;
int64		last_epoch_ms = DEFAULT_EPOCH_MS;

pg_noinline void
remember_epoch(TimestampTz epoch)
{
	if (epoch < MIN_EPOCH || epoch >= END_EPOCH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("epoch %s is out of range", time_str(epoch)),
				 errdetail("An epoch must be between %s and %s.",
						   time_str(MIN_EPOCH), time_str(END_EPOCH - 1000))));
	if (!epoch_is_legal(epoch))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("epoch %s is not a whole millisecond", time_str(epoch)),
				 errdetail("It is %d us after a whole millisecond. IDs count milliseconds.",
						   (int) ((uint64) (epoch - MIN_EPOCH) % 1000)),
				 errhint("Pass %s.", time_str(epoch - (epoch - MIN_EPOCH) % 1000))));
	last_epoch_ms = time_ms(epoch);
	last_epoch = epoch;
}

/* instaid.node_shard_id: the shard ID of this server, or NODE_SHARD if it has none */
int			node_shard_id;

void
node_init(void)
{
	/*
	 * not for sessions: two shard IDs for one sequence, or one for two
	 * servers, repeat IDs
	 */
	DefineCustomIntVariable("instaid.node_shard_id",
							"Sets the shard ID of this server, for the IDs of instaid.next_id().",
							"No other server may have it. -1 means that it is not set: instaid.next_id() fails.",
							&node_shard_id, NODE_SHARD, NODE_SHARD, MAX_SHARD_ID, PGC_SIGHUP, 0,
							NULL, NULL, NULL);
}

int32
node_shard_id_or_error(void)
{
	if (node_shard_id == NODE_SHARD)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("instaid.node_shard_id is not set"),
				 errdetail("It is the shard ID in the IDs that instaid.next_id() makes on this server."),
				 errhint("A superuser sets it to a number from 0 to %d that no other server and no other shard has: ALTER SYSTEM SET instaid.node_shard_id = number; and then SELECT pg_reload_conf();",
						 MAX_SHARD_ID)));
	return node_shard_id;
}
