/*-------------------------------------------------------------------------
 *
 * epoch.c
 *	  What is wrong with an epoch.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "ids/epoch.h"

static const char *
time_str(TimestampTz time)
{
	return pstrdup(timestamptz_to_str(time));	/* it has one buffer */
}

/* Complain of an epoch that is not legal. */
pg_noinline void
instaid_epoch_error(TimestampTz epoch)
{
	if (TIMESTAMP_NOT_FINITE(epoch))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("epoch %s is not a point in time", time_str(epoch)),
				 errdetail("An epoch must be finite.")));
	if (epoch < MIN_EPOCH || epoch >= END_EPOCH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("epoch %s is out of range", time_str(epoch)),
				 errdetail("An epoch is between %s and %s.",
						   time_str(MIN_EPOCH), time_str(END_EPOCH - 1000))));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("epoch %s is not a whole millisecond", time_str(epoch)),
			 errdetail("It is %d us past one; IDs count milliseconds.",
					   (int) ((uint64) (epoch - MIN_EPOCH) % 1000)),
			 errhint("Pass %s.",
					 time_str(epoch - (epoch - MIN_EPOCH) % 1000))));
}

/*
 * Complain of an epoch in which a tick has no ID.
 *
 * A tick is not behind the clock, so one that is before the epoch means that
 * the epoch is still to come.  One that is after the end of the epoch's IDs may
 * be there before the clock is: the sequence was set too far.
 */
pg_noinline void
instaid_no_id_error(int64 tick, int64 epoch_ms)
{
	TimestampTz epoch = (epoch_ms - POSTGRES_EPOCH_MS) * 1000;
	TimestampTz now = GetCurrentTimestamp();

	if (tick_ms(tick) > epoch_ms && time_ms(now) <= epoch_ms + LAST_MS)
		ereport(ERROR,
				(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
				 errmsg("the sequence is past the last ID of epoch %s", time_str(epoch)),
				 errdetail("The sequence stands at %lld, of %s; the clock reads %s.",
						   (long long) tick,
						   time_str(tick_timestamp(tick)),
						   time_str(now)),
				 errhint("If it was set too far by mistake, set it back with setval().")));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 tick_ms(tick) < epoch_ms ?
			 errmsg("epoch %s is in the future", time_str(epoch)) :
			 errmsg("the IDs of epoch %s are used up", time_str(epoch)),
			 errdetail("The clock reads %s; an epoch can be up to %.1f years before it.",
					   time_str(now), LAST_MS / (365.25 * SECS_PER_DAY * 1000)),
			 errhint("Set the clock of the server right, or pass the epoch of the shard.")));
}
