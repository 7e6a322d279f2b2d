/*-------------------------------------------------------------------------
 *
 * ids.c
 *	  The SQL-callable functions that make and read IDs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "ids/generator.h"
#include "ids/ids.h"
#include "ids/layout.h"
#include "ids/settled.h"

/* the most IDs that one call of next_ids() returns */
#define MAX_COUNT	1000000

PG_FUNCTION_INFO_V1(instaid_default_epoch);
PG_FUNCTION_INFO_V1(instaid_next_id);
PG_FUNCTION_INFO_V1(instaid_next_ids);
PG_FUNCTION_INFO_V1(instaid_last_id);
PG_FUNCTION_INFO_V1(instaid_settled_id);
PG_FUNCTION_INFO_V1(instaid_last_tick);
PG_FUNCTION_INFO_V1(instaid_tick_to_id);
PG_FUNCTION_INFO_V1(instaid_max_tick);
PG_FUNCTION_INFO_V1(instaid_first_tick);
PG_FUNCTION_INFO_V1(instaid_advance_past);
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

/* instaid.node_shard_id: see ids_init() */
static int	node_shard_id;

/*
 * The value that the session had before it loaded the library, until one is
 * accepted.  The sessions of a server that preloads the library inherit it.
 */
static char *refused_node_shard_id = NULL;

/* Forget the value that was refused when PostgreSQL has accepted another. */
static void
assign_node_shard_id(int newval, void *extra pg_attribute_unused())
{
	if (newval != NODE_SHARD && refused_node_shard_id != NULL)
	{
		pfree(refused_node_shard_id);
		refused_node_shard_id = NULL;
	}
}

void
ids_init(void)
{
	const char *placeholder = GetConfigOption("instaid.node_shard_id", true, false);

	if (placeholder != NULL && strcmp(placeholder, "-1") != 0)
		refused_node_shard_id = MemoryContextStrdup(TopMemoryContext, placeholder);

	/*
	 * A session cannot set it, not even a superuser's: two shard IDs for one
	 * sequence, or one for two servers, repeat IDs.
	 */
	DefineCustomIntVariable("instaid.node_shard_id",
							"Sets the shard ID of this server, for the IDs of instaid.next_id().",
							"No other server may have it. -1 means that it is not set: instaid.next_id() fails.",
							&node_shard_id,
							NODE_SHARD, NODE_SHARD, MAX_SHARD_ID,
							PGC_SIGHUP, 0,
							NULL, assign_node_shard_id, NULL);
}

/*
 * The value of instaid.node_shard_id that PostgreSQL refused with a WARNING
 * when it loaded the library, or NULL.  The value was out of range, or it was
 * set for the session, the role or the database, and then hid the one in
 * postgresql.conf.  The shard ID of this server is not known to such a
 * session.
 */
const char *
ids_refused_node_shard(void)
{
	return refused_node_shard_id;
}

static void
check_shard_id(int32 shard_id)
{
	if (shard_id < 0 || shard_id > MAX_SHARD_ID)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("shard ID %d is out of range", shard_id),
				 errdetail("A shard ID is between 0 and %d.", MAX_SHARD_ID)));
}

static const char *
time_str(TimestampTz time)
{
	/* timestamptz_to_str() has one buffer, and a message can show two times */
	return pstrdup(timestamptz_to_str(time));
}

static void
check_epoch(TimestampTz epoch)
{
	if (epoch_is_legal(epoch))
		return;
	if (TIMESTAMP_NOT_FINITE(epoch))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("epoch %s is not a point in time", time_str(epoch)),
				 errdetail("An epoch must be finite.")));
	if (epoch < MIN_EPOCH || epoch >= END_EPOCH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("epoch %s is out of range", time_str(epoch)),
				 errdetail("An epoch must be between %s and %s.",
						   time_str(MIN_EPOCH), time_str(END_EPOCH - 1000))));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("epoch %s is not a whole millisecond", time_str(epoch)),
			 errdetail("It is %d us after a whole millisecond. IDs count milliseconds.",
					   (int) ((uint64) (epoch - MIN_EPOCH) % 1000)),
			 errhint("Pass %s.",
					 time_str(epoch - (epoch - MIN_EPOCH) % 1000))));
}

/*
 * Report that a tick has no ID in an epoch.
 *
 * A tick is never behind the clock.  Therefore a tick before the epoch means
 * that the epoch is in the future.  A tick after the epoch's last ID can be
 * ahead of the clock: then the sequence was set too far.
 */
pg_noinline void
ids_no_id_error(int64 tick, int64 epoch_ms)
{
	TimestampTz epoch = ms_timestamp(epoch_ms);
	TimestampTz now = GetCurrentTimestamp();

	if (tick_ms(tick) > epoch_ms && time_ms(now) <= epoch_ms + LAST_MS)
		ereport(ERROR,
				(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
				 errmsg("the sequence is past the last ID of epoch %s", time_str(epoch)),
				 errdetail("The sequence is at %lld, a tick of %s. The clock reads %s.",
						   (long long) tick,
						   time_str(tick_timestamp(tick)),
						   time_str(now)),
				 errhint("If the sequence was set too far by mistake, set it back with setval().")));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 tick_ms(tick) < epoch_ms ?
			 errmsg("epoch %s is in the future", time_str(epoch)) :
			 errmsg("the IDs of epoch %s are used up", time_str(epoch)),
			 errdetail("The clock reads %s; an epoch can be up to %.1f years before it.",
					   time_str(now), LAST_MS / (365.25 * SECS_PER_DAY * 1000)),
			 errhint("Correct the server's clock, or pass the epoch of the shard.")));
}

/* The epoch that was passed last */
static TimestampTz last_epoch = (DEFAULT_EPOCH_MS - POSTGRES_EPOCH_MS) * 1000;
static int64 last_epoch_ms = DEFAULT_EPOCH_MS;

static pg_noinline void
remember_epoch(TimestampTz epoch)
{
	check_epoch(epoch);
	last_epoch_ms = time_ms(epoch);
	last_epoch = epoch;
}

/*
 * Check an epoch, and convert it to milliseconds since 1970.  Most calls pass
 * the epoch of the call before, which needs no check.
 */
static inline int64
epoch_to_ms(TimestampTz epoch)
{
	if (unlikely(epoch != last_epoch))
		remember_epoch(epoch);
	return last_epoch_ms;
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
	int64		before;

	before = clamped_ms(TIMESTAMP_NOT_FINITE(time) ? time : time - 1, epoch);
	return Min(before, LAST_MS) + 1;
}

/*
 * The time of an ID.  All 41 bits count: a negative ID is of a time more than
 * 34.8 years after the epoch.
 */
static inline TimestampTz
id_timestamp(int64 id, TimestampTz epoch)
{
	(void) epoch_to_ms(epoch);	/* checks it */
	return epoch + id_ms(id) * 1000;
}

/*
 * default_epoch() -> timestamptz
 *
 * This is not an SQL function, because each statement that uses the default of
 * an epoch would inline it again.
 */
Datum
instaid_default_epoch(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_TIMESTAMPTZ(ms_timestamp(DEFAULT_EPOCH_MS));
}

/*
 * next_id(sequence regclass, shard_id integer [, epoch timestamptz]) -> bigint
 *
 * The next ID of a sequence; with CACHE 1, greater than all before it.
 */
Datum
instaid_next_id(PG_FUNCTION_ARGS)
{
	Oid			sequence = PG_GETARG_OID(0);
	int32		shard_id = PG_GETARG_INT32(1);
	int64		epoch_ms = PG_NARGS() == 2 ? DEFAULT_EPOCH_MS :
		epoch_to_ms(PG_GETARG_TIMESTAMPTZ(2));

	check_shard_id(shard_id);

	PG_RETURN_INT64(ids_format(generator_take_tick(sequence), shard_id, epoch_ms));
}

/* A set of IDs that is being returned */
typedef struct IdSet
{
	Oid			sequence;
	int32		shard_id;
	int64		epoch_ms;
	int64		next;			/* IDs from here on are taken, not returned, */
	int64		end;			/* up to but not including this one */
} IdSet;

/* The shard ID of this server, or NODE_SHARD if it has none */
int32
ids_node_shard(void)
{
	return node_shard_id;
}

/* Fail if the session does not know the shard ID of this server. */
void
ids_check_node_shard(void)
{
	const char *refused = ids_refused_node_shard();

	if (refused != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("value \"%s\" of instaid.node_shard_id was refused", refused),
				 errdetail("It must be a number from 0 to %d, in postgresql.conf or by ALTER SYSTEM. It cannot be set for a session, a role or a database.",
						   MAX_SHARD_ID),
				 errhint("Correct the value, or remove it from the options of the connection, or by ALTER ROLE or ALTER DATABASE ... RESET ALL. Then start a new session.")));
}

int32
ids_node_shard_or_error(void)
{
	ids_check_node_shard();
	if (node_shard_id == NODE_SHARD)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("instaid.node_shard_id is not set"),
				 errdetail("It is the shard ID in the IDs that instaid.next_id() makes on this server."),
				 errhint("A superuser sets it to a number from 0 to %d that no other server and no other shard has: ALTER SYSTEM SET instaid.node_shard_id = number; and then SELECT pg_reload_conf();",
						 MAX_SHARD_ID)));
	return node_shard_id;
}

/* The first call of a function that returns a set of IDs */
void
ids_begin_set(FunctionCallInfo fcinfo, Oid sequence, int32 shard_id,
			  int64 epoch_ms, int32 count)
{
	FuncCallContext *funcctx;
	IdSet	   *ids;

	if (count < 1 || count > MAX_COUNT)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("count %d is out of range", count),
				 errdetail("The count must be between 1 and %d.", MAX_COUNT)));

	funcctx = SRF_FIRSTCALL_INIT();
	funcctx->max_calls = count;
	ids = MemoryContextAllocZero(funcctx->multi_call_memory_ctx, sizeof(IdSet));
	ids->sequence = sequence;
	ids->shard_id = shard_id;
	ids->epoch_ms = epoch_ms;
	funcctx->user_fctx = ids;
}

/*
 * Take as many of the wanted IDs as the sequence gives at once.
 *
 * All of them are of one millisecond, in which consecutive ticks are
 * consecutive IDs.  Other sessions can take IDs between two calls of this
 * function.
 */
static pg_noinline void
take_ids(IdSet *ids, uint64 wanted)
{
	int64		first;
	int			taken;

	taken = generator_take_ticks(ids->sequence, Min(wanted, TICKS_PER_MS), &first);
	ids->next = ids_format(first, ids->shard_id, ids->epoch_ms);
	ids->end = ids->next + taken;
}

/*
 * Every call of a function that returns a set of IDs: the next ID, or the end
 */
Datum
ids_return_next(FunctionCallInfo fcinfo)
{
	FuncCallContext *funcctx = SRF_PERCALL_SETUP();
	IdSet	   *ids = funcctx->user_fctx;

	if (funcctx->call_cntr >= funcctx->max_calls)
		SRF_RETURN_DONE(funcctx);
	if (unlikely(ids->next == ids->end))
		take_ids(ids, funcctx->max_calls - funcctx->call_cntr);
	SRF_RETURN_NEXT(funcctx, Int64GetDatum(ids->next++));
}

/*
 * next_ids(sequence regclass, shard_id integer, count integer,
 *			epoch timestamptz) -> setof bigint
 *
 * The next IDs, in increasing order.
 */
Datum
instaid_next_ids(PG_FUNCTION_ARGS)
{
	if (SRF_IS_FIRSTCALL())
	{
		int32		shard_id = PG_GETARG_INT32(1);

		check_shard_id(shard_id);
		ids_begin_set(fcinfo, PG_GETARG_OID(0), shard_id,
					  epoch_to_ms(PG_GETARG_TIMESTAMPTZ(3)), PG_GETARG_INT32(2));
	}
	return ids_return_next(fcinfo);
}

/*
 * last_id(sequence regclass, shard_id integer, epoch timestamptz) -> bigint
 *
 * The last ID that a sequence gave, or reserved for a session.  Null if there
 * is none, or if the state of the sequence cannot be read.
 */
Datum
instaid_last_id(PG_FUNCTION_ARGS)
{
	Oid			sequence = PG_GETARG_OID(0);
	int32		shard_id = PG_GETARG_INT32(1);
	int64		epoch_ms = epoch_to_ms(PG_GETARG_TIMESTAMPTZ(2));
	SequenceState state;

	check_shard_id(shard_id);

	if (!generator_last_tick(sequence, &state) || !state.is_called ||
		!tick_has_id(state.last_value, epoch_ms))
		PG_RETURN_NULL();
	PG_RETURN_INT64(tick_to_id(state.last_value, shard_id, epoch_ms));
}

/*
 * settled_id(sequence regclass, shard_id integer, epoch timestamptz,
 *			  wait boolean) -> bigint
 */
Datum
instaid_settled_id(PG_FUNCTION_ARGS)
{
	int32		shard_id = PG_GETARG_INT32(1);
	int64		epoch_ms = epoch_to_ms(PG_GETARG_TIMESTAMPTZ(2));
	int64		id;

	check_shard_id(shard_id);
	if (!settled_find_id(PG_GETARG_OID(0), shard_id, epoch_ms, PG_GETARG_BOOL(3), &id))
		PG_RETURN_NULL();
	PG_RETURN_INT64(id);
}

/*
 * _last_tick(sequence regclass)
 *	-> (tick bigint, frozen boolean, issued_at timestamptz)
 *
 * The last value of a sequence, which setval() may have set to something that
 * is no tick; null if the sequence was never used.  issued_at is null if the
 * value is no tick.  All are null if the state of the sequence cannot be read.
 */
Datum
instaid_last_tick(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc = fcinfo->flinfo->fn_extra;
	SequenceState state;
	Datum		values[3] = {0};
	bool		nulls[3] = {true, true, true};

	/* the view instaid.shards calls this for each of thousands of shards */
	if (tupdesc == NULL)
	{
		MemoryContext saved = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);

		if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		tupdesc = BlessTupleDesc(tupdesc);
		fcinfo->flinfo->fn_extra = tupdesc;
		MemoryContextSwitchTo(saved);
	}

	if (generator_last_tick(PG_GETARG_OID(0), &state))
	{
		values[0] = Int64GetDatum(state.last_value);
		nulls[0] = !state.is_called;
		values[1] = BoolGetDatum(state.is_frozen);
		nulls[1] = false;
		values[2] = TimestampTzGetDatum(tick_timestamp(state.last_value));
		nulls[2] = !state.is_called ||
			state.last_value < 0 || state.last_value > MAX_TICK;
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

/*
 * _tick_to_id(tick bigint, shard_id integer, epoch timestamptz) -> bigint
 *
 * The ID that a shard makes of a tick; null if the tick has no ID in this
 * epoch.
 */
Datum
instaid_tick_to_id(PG_FUNCTION_ARGS)
{
	int64		tick = PG_GETARG_INT64(0);
	int64		epoch_ms = epoch_to_ms(PG_GETARG_TIMESTAMPTZ(2));

	if (!tick_has_id(tick, epoch_ms))
		PG_RETURN_NULL();
	PG_RETURN_INT64(tick_to_id(tick, PG_GETARG_INT32(1), epoch_ms));
}

/* _max_tick() -> bigint */
Datum
instaid_max_tick(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_INT64(MAX_TICK);
}

/*
 * advance_past(sequence regclass, id bigint, epoch timestamptz) -> void
 *
 * Make the sequence go on after the millisecond of an ID.  All IDs that it
 * gives from now on are greater than this one, for any shard ID.
 */
Datum
instaid_advance_past(PG_FUNCTION_ARGS)
{
	Oid			sequence = PG_GETARG_OID(0);
	int64		id = PG_GETARG_INT64(1);
	int64		epoch_ms = epoch_to_ms(PG_GETARG_TIMESTAMPTZ(2));
	int64		now_tick = pack_tick(time_ms(GetCurrentTimestamp()), 0);

	if (id < 0)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("ID %lld is out of range", (long long) id),
				 errdetail("An ID must be between 0 and %lld.", (long long) PG_INT64_MAX)));
	/* an epoch in the future has no IDs yet */
	if (tick_ms(now_tick) < epoch_ms)
		ids_no_id_error(now_tick, epoch_ms);

	generator_skip_ticks(sequence, pack_tick(epoch_ms + id_ms(id), MAX_SEQUENCE));
	PG_RETURN_VOID();
}

/*
 * The milliseconds from the epoch to a time, which must be from 0 to last_ms
 */
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

/* _first_tick() -> bigint */
Datum
instaid_first_tick(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_INT64(generator_first_tick());
}

/*
 * make_id(created_at timestamptz, shard_id integer, sequence bigint,
 *		   epoch timestamptz) -> bigint
 *
 * Pack an ID from its fields.  The sequence is taken modulo 1024, as in the
 * published function, and the time is rounded down to the millisecond.
 */
Datum
instaid_make_id(PG_FUNCTION_ARGS)
{
	int32		shard_id = PG_GETARG_INT32(1);

	check_shard_id(shard_id);
	PG_RETURN_INT64(pack_id(ms_since_epoch(PG_GETARG_TIMESTAMPTZ(0),
										   PG_GETARG_TIMESTAMPTZ(3), MAX_MS),
							shard_id, tick_sequence(PG_GETARG_INT64(2))));
}

/* IDs of given times, which are being returned */
typedef struct PastIds
{
	Datum	   *times;
	bool	   *nulls;
	int			count;
	int32		shard_id;
	TimestampTz epoch;
	int64		epoch_ms;
	int64		last;			/* tick of the last ID */
} PastIds;

static void
begin_past_ids(FunctionCallInfo fcinfo)
{
	FuncCallContext *funcctx = SRF_FIRSTCALL_INIT();
	MemoryContext saved = MemoryContextSwitchTo(funcctx->multi_call_memory_ctx);
	PastIds    *ids = palloc(sizeof(PastIds));

	ids->shard_id = PG_GETARG_INT32(1);
	check_shard_id(ids->shard_id);
	ids->epoch = PG_GETARG_TIMESTAMPTZ(2);
	ids->epoch_ms = epoch_to_ms(ids->epoch);
	ids->last = pack_tick(ids->epoch_ms, 0) - 1;
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(0), TIMESTAMPTZOID, sizeof(TimestampTz),
					  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
					  &ids->times, &ids->nulls, &ids->count);
	funcctx->user_fctx = ids;
	MemoryContextSwitchTo(saved);
}

/*
 * Check the i-th time, of which those before it are legal, and return its
 * milliseconds since 1970.
 */
static int64
past_ms(const PastIds *ids, int i)
{
	TimestampTz time,
				before;

	if (ids->nulls[i])
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("times must not contain a null"),
				 errdetail("Time %d of %d is null.", i + 1, ids->count),
				 errhint("Leave such rows out, or pass another time for them.")));
	time = DatumGetTimestampTz(ids->times[i]);
	before = i == 0 ? time : DatumGetTimestampTz(ids->times[i - 1]);
	if (time < before)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("time %s is earlier than the time before it, %s",
						time_str(time), time_str(before)),
				 errdetail("It is time %d of %d. IDs increase, and so must their times.",
						   i + 1, ids->count),
				 errhint("Sort the times, as in array_agg(created_at ORDER BY created_at).")));
	return ids->epoch_ms + ms_since_epoch(time, ids->epoch, LAST_MS);
}

/*
 * How many times from the i-th on are of its millisecond?  1,024 stands for
 * any number above, too.
 */
static int
count_in_ms(const PastIds *ids, int i, int64 ms)
{
	int			n = 1;

	while (n < TICKS_PER_MS && i + n < ids->count && !ids->nulls[i + n] &&
		   time_ms(DatumGetTimestampTz(ids->times[i + n])) == ms)
		n++;
	return n;
}

/*
 * make_ids(times timestamptz[], shard_id integer, epoch timestamptz)
 *	-> setof bigint
 *
 * IDs of rows that were created at these times, in increasing order.  Above
 * 1,024 in a millisecond, they are of the next one, as those of a sequence.
 */
Datum
instaid_make_ids(PG_FUNCTION_ARGS)
{
	FuncCallContext *funcctx;
	PastIds    *ids;
	int			i;
	int64		ms;

	if (SRF_IS_FIRSTCALL())
		begin_past_ids(fcinfo);
	funcctx = SRF_PERCALL_SETUP();
	ids = funcctx->user_fctx;
	i = (int) funcctx->call_cntr;
	if (i >= ids->count)
		SRF_RETURN_DONE(funcctx);

	ms = past_ms(ids, i);
	if (tick_ms(ids->last + 1) < ms)
		ids->last = first_tick_of_rows(ids->last, ms, count_in_ms(ids, i, ms));
	else
		ids->last++;
	if (!tick_has_id(ids->last, ids->epoch_ms))
		ereport(ERROR,
				(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
				 errmsg("the IDs of epoch %s are used up", time_str(ids->epoch)),
				 errdetail("Time %d of %d, %s, is one of more than %d in the last milliseconds.",
						   i + 1, ids->count,
						   time_str(DatumGetTimestampTz(ids->times[i])), TICKS_PER_MS),
				 errhint("Pass a later epoch.")));
	SRF_RETURN_NEXT(funcctx, Int64GetDatum(tick_to_id(ids->last, ids->shard_id, ids->epoch_ms)));
}

Datum
instaid_extract_timestamp(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	TimestampTz epoch = PG_GETARG_TIMESTAMPTZ(1);

	PG_RETURN_TIMESTAMPTZ(id_timestamp(id, epoch));
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

/*
 * decode(id bigint, epoch timestamptz)
 *	-> (created_at timestamptz, shard_id integer, sequence integer)
 */
Datum
instaid_decode(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	TimestampTz epoch = PG_GETARG_TIMESTAMPTZ(1);
	TupleDesc	tupdesc;
	Datum		values[3];
	bool		nulls[3] = {false, false, false};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	values[0] = TimestampTzGetDatum(id_timestamp(id, epoch));
	values[1] = Int32GetDatum(id_shard_id(id));
	values[2] = Int32GetDatum(id_sequence(id));

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}

/*
 * min_id(created_at timestamptz, epoch timestamptz) -> bigint
 * max_id(created_at timestamptz, epoch timestamptz) -> bigint
 *
 * The smallest and the largest ID of a millisecond.  A time before the epoch
 * counts as the first millisecond of positive IDs, and a time after their end
 * as the last.
 */
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
 * min_id_from(created_at timestamptz, epoch timestamptz) -> bigint
 * max_id_before(created_at timestamptz, epoch timestamptz) -> bigint
 *
 * The bounds of created_between():
 *
 *					before the epoch	in the format		after it
 *	min_id_from		0					smallest, time >=	null
 *	max_id_before	-1					largest, time <		9223372036854775807
 *
 * min_id_from() is null after the format's end, because no bigint is above the
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

/*
 * interval_to_ids(interval) -> bigint
 *
 * The difference between the IDs of two times that are this far apart.
 */
Datum
instaid_interval_to_ids(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(pack_id(interval_ms(PG_GETARG_INTERVAL_P(0)), 0, 0));
}
