/* The SQL-callable functions that pack and read IDs, without a sequence. */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/int.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "common.h"
#include "ids/ids.h"

PG_FUNCTION_INFO_V1(instaid_max_shard_id);
PG_FUNCTION_INFO_V1(instaid_max_sequence);
PG_FUNCTION_INFO_V1(instaid_max_tick);
PG_FUNCTION_INFO_V1(instaid_default_epoch);
PG_FUNCTION_INFO_V1(instaid_make_id);
PG_FUNCTION_INFO_V1(instaid_make_ids);
PG_FUNCTION_INFO_V1(instaid_extract_timestamp);
PG_FUNCTION_INFO_V1(instaid_extract_shard_id);
PG_FUNCTION_INFO_V1(instaid_extract_sequence);
PG_FUNCTION_INFO_V1(instaid_decode);
PG_FUNCTION_INFO_V1(instaid_min_id);
PG_FUNCTION_INFO_V1(instaid_max_id);
PG_FUNCTION_INFO_V1(instaid_min_id_from);
PG_FUNCTION_INFO_V1(instaid_max_id_before);
PG_FUNCTION_INFO_V1(instaid_interval_to_ids);

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

/* The milliseconds from the epoch to a time, which must be from 0 to last_ms */
static int64
ms_since_epoch(TimestampTz time, TimestampTz epoch, int64 last_ms)
{
	int64		ms = 0;
	int64		epoch_ms = epoch_to_ms(epoch);

	if (!TIMESTAMP_NOT_FINITE(time))
		ms = time_ms(time) - epoch_ms;
	if (TIMESTAMP_NOT_FINITE(time) || ms < 0 || ms > last_ms)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("time %s is out of range for an ID", time_str(time)),
				 errdetail("The time must be between the epoch, %s, and %lld ms after it.",
						   time_str(epoch), (long long) last_ms)));
	return ms;
}

Datum
instaid_make_id(PG_FUNCTION_ARGS)
{
	int32		shard_id = PG_GETARG_INT32(1);

	check_shard_id(shard_id);
	PG_RETURN_INT64(pack_id(ms_since_epoch(PG_GETARG_TIMESTAMPTZ(0),
										   PG_GETARG_TIMESTAMPTZ(3), MAX_MS),
							shard_id, tick_sequence(PG_GETARG_INT64(2))));
}

/*
 * Check times, and turn each into its milliseconds since 1970.  The array is changed in
 * place.
 */
static void
times_to_ms(Datum *times, const bool *nulls, int count, TimestampTz epoch)
{
	TimestampTz before = DT_NOBEGIN;

	for (int i = 0; i < count; i++)
	{
		TimestampTz time;

		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("times must not contain a null"),
					 errdetail("Time %d of %d is null.", i + 1, count),
					 errhint("Leave such rows out, or pass another time for them.")));
		time = DatumGetTimestampTz(times[i]);
		if (time < before)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("time %s is earlier than the time before it, %s",
							time_str(time), time_str(before)),
					 errdetail("It is time %d of %d. IDs increase, and so must their times.",
							   i + 1, count),
					 errhint("Sort the times, as in array_agg(created_at ORDER BY created_at).")));
		times[i] = Int64GetDatum(epoch_to_ms(epoch) + ms_since_epoch(time, epoch, LAST_MS));
		before = time;
	}
}

/* Above 1,024 in a millisecond, IDs are of the next one, as those of a sequence. */
Datum
instaid_make_ids(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int32		shard_id = PG_GETARG_INT32(1);
	TimestampTz epoch = PG_GETARG_TIMESTAMPTZ(2);
	int64		epoch_ms = epoch_to_ms(epoch);
	int64		tick = pack_tick(epoch_ms, 0) - 1;
	Datum	   *times;
	bool	   *nulls;
	int			count;

	check_shard_id(shard_id);
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(0), TIMESTAMPTZOID, sizeof(TimestampTz),
					  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &times, &nulls, &count);
	times_to_ms(times, nulls, count, epoch);
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	for (int i = 0; i < count; i++)
	{
		int64		ms = DatumGetInt64(times[i]);
		Datum		id;
		bool		isnull = false;

		CHECK_FOR_INTERRUPTS();
		if (tick_ms(tick + 1) < ms)
		{
			int32		sequence = tick_sequence(tick + 1);
			int			rows = 1;	/* of this millisecond, 1,024 if there are
									 * more */

			while (rows < TICKS_PER_MS && i + rows < count && DatumGetInt64(times[i + rows]) == ms)
				rows++;

			/*
			 * the low bits run on, unless the rows would not fit into the
			 * millisecond
			 */
			tick = pack_tick(ms, sequence + rows <= TICKS_PER_MS ? sequence : 0);
		}
		else
			tick++;
		if (!tick_has_id(tick, epoch_ms))
			ereport(ERROR,
					(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
					 errmsg("the IDs of epoch %s are used up", time_str(epoch)),
					 errdetail("Time %d of %d, %s, is one of more than %d in the last milliseconds.",
							   i + 1, count, time_str(ms_timestamp(ms)), TICKS_PER_MS),
					 errhint("Pass a later epoch.")));
		id = Int64GetDatum(tick_to_id(tick, shard_id, epoch_ms));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &id, &isnull);
	}
	return (Datum) 0;
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
instaid_extract_sequence(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(id_sequence(PG_GETARG_INT64(0)));
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

static const char *
interval_to_str(Interval *interval)
{
	return DatumGetCString(DirectFunctionCall1(interval_out,
											   IntervalPGetDatum(interval)));
}

/*
 * The length of an interval in milliseconds, rounded down.  A day has 24
 * hours, as in UTC.  A month has no fixed length, and an infinite interval has
 * months.
 */
static int64
interval_ms(Interval *interval)
{
	int64		days,
				length;

	if (interval->month != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("interval %s has no fixed length", interval_to_str(interval)),
				 errdetail("Months and years differ in length."),
				 errhint("Give the interval in days, such as 30 days.")));
	if (pg_mul_s64_overflow(interval->day, USECS_PER_DAY, &days) ||
		pg_add_s64_overflow(days, interval->time, &length) ||
		length < 1000 || length / 1000 > LAST_MS)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("interval %s is out of range", interval_to_str(interval)),
				 errdetail("The interval must be between 1 and %lld ms.",
						   (long long) LAST_MS)));
	return length / 1000;
}

Datum
instaid_interval_to_ids(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(pack_id(interval_ms(PG_GETARG_INTERVAL_P(0)), 0, 0));
}
