/* Shard IDs and epochs that callers pass. */
#include "postgres.h"

#include "utils/timestamp.h"

#include "arguments.h"
#include "layout.h"

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
