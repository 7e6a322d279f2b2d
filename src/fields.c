/* The SQL-callable functions that pack and read IDs, without a sequence. */
#include "postgres.h"

#include "utils/timestamp.h"

#include "arguments.h"
#include "common.h"
#include "layout.h"

PG_FUNCTION_INFO_V1(instaid_max_shard_id);
PG_FUNCTION_INFO_V1(instaid_max_sequence);
PG_FUNCTION_INFO_V1(instaid_max_tick);
PG_FUNCTION_INFO_V1(instaid_default_epoch);
PG_FUNCTION_INFO_V1(instaid_make_id);
PG_FUNCTION_INFO_V1(instaid_extract_timestamp);
PG_FUNCTION_INFO_V1(instaid_extract_shard_id);
PG_FUNCTION_INFO_V1(instaid_decode);
PG_FUNCTION_INFO_V1(instaid_min_id);
PG_FUNCTION_INFO_V1(instaid_max_id);
PG_FUNCTION_INFO_V1(instaid_min_id_from);
PG_FUNCTION_INFO_V1(instaid_max_id_before);

/* The numbers of layout.h that SQL needs */
Datum
instaid_max_shard_id(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_INT32(MAX_SHARD_ID);
}

Datum
instaid_max_sequence(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_INT32(MAX_SEQUENCE);
}

Datum
instaid_max_tick(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_INT64(MAX_TICK);
}

/* Not an SQL function: each statement that uses the default would inline it again. */
Datum
instaid_default_epoch(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_TIMESTAMPTZ(ms_timestamp(DEFAULT_EPOCH_MS));
}

/* The milliseconds from the epoch to a time, which must be from 0 to MAX_MS */
static int64
ms_since_epoch(TimestampTz time, TimestampTz epoch)
{
	int64		epoch_ms = epoch_to_ms(epoch);
	int64		ms = TIMESTAMP_NOT_FINITE(time) ? -1 : time_ms(time) - epoch_ms;

	if (ms < 0 || ms > MAX_MS)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("time %s is out of range for an ID", time_str(time)),
				 errdetail("The time must be between the epoch, %s, and %lld ms after it.",
						   time_str(epoch), (long long) MAX_MS)));
	return ms;
}

Datum
instaid_make_id(PG_FUNCTION_ARGS)
{
	int32		shard_id = PG_GETARG_INT32(1);

	check_shard_id(shard_id);
	PG_RETURN_INT64(pack_id(ms_since_epoch(PG_GETARG_TIMESTAMPTZ(0),
										   PG_GETARG_TIMESTAMPTZ(3)),
							shard_id, tick_sequence(PG_GETARG_INT64(2))));
}

/*
 * The time of an ID.  All its bits count: a negative ID is of a time after the
 * last positive one.
 */
static inline TimestampTz
id_timestamp(int64 id, TimestampTz epoch)
{
	(void) epoch_to_ms(epoch);	/* checks it */
	return epoch + id_ms(id) * 1000;
}

Datum
instaid_extract_timestamp(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(id_timestamp(PG_GETARG_INT64(0), PG_GETARG_TIMESTAMPTZ(1)));
}

Datum
instaid_extract_shard_id(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(id_shard_id(PG_GETARG_INT64(0)));
}

Datum
instaid_decode(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	bool		nulls[3] = {false};
	Datum		values[3];

	values[0] = TimestampTzGetDatum(id_timestamp(id, PG_GETARG_TIMESTAMPTZ(1)));
	values[1] = Int32GetDatum(id_shard_id(id));
	values[2] = Int32GetDatum(id_sequence(id));
	PG_RETURN_DATUM(make_row(fcinfo, values, nulls));
}

/*
 * The millisecond of a time, counted from the epoch.  A time before the epoch
 * is -1, and a time after the last millisecond of positive IDs is LAST_MS + 1.
 */
static int64
clamped_ms(TimestampTz time, TimestampTz epoch)
{
	int64		epoch_ms = epoch_to_ms(epoch);

	if (TIMESTAMP_NOT_FINITE(time))
		return time < epoch ? -1 : LAST_MS + 1;
	return Max(-1, Min(time_ms(time) - epoch_ms, LAST_MS + 1));
}

/*
 * The first millisecond of positive IDs that begins at a time or after it;
 * LAST_MS + 1 if there is none.
 */
static int64
first_ms_from(TimestampTz time, TimestampTz epoch)
{
	int64		before = clamped_ms(TIMESTAMP_NOT_FINITE(time) ? time : time - 1, epoch);

	return Min(before, LAST_MS) + 1;
}

Datum
instaid_min_id(PG_FUNCTION_ARGS)
{
	int64		ms = clamped_ms(PG_GETARG_TIMESTAMPTZ(0), PG_GETARG_TIMESTAMPTZ(1));

	PG_RETURN_INT64(pack_id(Max(0, Min(ms, LAST_MS)), 0, 0));
}

Datum
instaid_max_id(PG_FUNCTION_ARGS)
{
	int64		ms = clamped_ms(PG_GETARG_TIMESTAMPTZ(0), PG_GETARG_TIMESTAMPTZ(1));

	PG_RETURN_INT64(pack_id(Max(0, Min(ms, LAST_MS)), MAX_SHARD_ID, MAX_SEQUENCE));
}

/*
 * The bounds of created_between():
 *
 *					before the epoch	in the format		after it
 *	_min_id_from	0					smallest, time >=	null
 *	_max_id_before	-1					largest, time <		9223372036854775807
 *
 * _min_id_from() is null after the format's end, because no bigint is above the
 * last ID, and the last ID must not count as one after the end.
 */
Datum
instaid_min_id_from(PG_FUNCTION_ARGS)
{
	int64		ms = first_ms_from(PG_GETARG_TIMESTAMPTZ(0), PG_GETARG_TIMESTAMPTZ(1));

	if (ms > LAST_MS)
		PG_RETURN_NULL();
	PG_RETURN_INT64(pack_id(ms, 0, 0));
}

Datum
instaid_max_id_before(PG_FUNCTION_ARGS)
{
	int64		ms = first_ms_from(PG_GETARG_TIMESTAMPTZ(0), PG_GETARG_TIMESTAMPTZ(1));

	if (ms == 0)
		PG_RETURN_INT64(-1);
	PG_RETURN_INT64(pack_id(ms - 1, MAX_SHARD_ID, MAX_SEQUENCE));
}
