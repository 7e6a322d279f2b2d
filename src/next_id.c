/* The SQL-callable functions that take IDs of a sequence. */
#include "postgres.h"

#include "funcapi.h"
#include "utils/timestamp.h"

#include "arguments.h"
#include "generator.h"
#include "next_id.h"

/* the most IDs that one call of next_ids() returns */
#define MAX_COUNT	1000000

PG_FUNCTION_INFO_V1(instaid_next_id);
PG_FUNCTION_INFO_V1(instaid_advance_past);

/*
 * Report that a tick has no ID in an epoch.  A tick is never behind the clock.  Therefore a tick
 * before the epoch means that the epoch is in the future.  A tick after the epoch's last ID can be
 * ahead of the clock: then the sequence was set too far.
 */
pg_noinline void
no_id_error(int64 tick, int64 epoch_ms)
{
	TimestampTz epoch = ms_timestamp(epoch_ms);
	TimestampTz now = GetCurrentTimestamp();

	if (tick_ms(tick) > epoch_ms && time_ms(now) <= epoch_ms + LAST_MS)
		ereport(ERROR,
				(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
				 errmsg("the sequence is past the last ID of epoch %s", time_str(epoch)),
				 errdetail("The sequence is at %lld, a tick of %s. The clock reads %s.",
						   (long long) tick, time_str(tick_timestamp(tick)), time_str(now)),
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

Datum
instaid_next_id(PG_FUNCTION_ARGS)
{
	Oid			sequence = PG_GETARG_OID(0);
	int32		shard_id = PG_GETARG_INT32(1);
	int64		epoch_ms = PG_NARGS() == 2 ? DEFAULT_EPOCH_MS :
		epoch_to_ms(PG_GETARG_TIMESTAMPTZ(2));

	check_shard_id(shard_id);

	PG_RETURN_INT64(id_of_tick(generator_take_tick(sequence), shard_id, epoch_ms));
}

/* A set of IDs that is being returned */
typedef struct IdSet
{
	Oid			sequence;
	int32		shard_id;
	int64		epoch_ms;
	int64		next;			/* IDs that are taken and not yet returned, */
	int64		end;			/* up to, but not including, this one */
} IdSet;

/* The first call of a function that returns a set of IDs */
void
next_ids_begin(FunctionCallInfo fcinfo, Oid sequence, int32 shard_id,
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
 * Take as many of the wanted IDs as the sequence gives at once.  All are of one millisecond, in
 * which consecutive ticks are consecutive IDs.
 */
static pg_noinline void
take_ids(IdSet *ids, uint64 wanted)
{
	int64		first;
	int			taken = generator_take_ticks(ids->sequence, Min(wanted, TICKS_PER_MS), &first);

	ids->next = id_of_tick(first, ids->shard_id, ids->epoch_ms);
	ids->end = ids->next + taken;
}

/* Every call of a function that returns a set of IDs: the next ID, or the end */
Datum
next_ids_return(FunctionCallInfo fcinfo)
{
	FuncCallContext *funcctx = SRF_PERCALL_SETUP();
	IdSet	   *ids = funcctx->user_fctx;

	if (funcctx->call_cntr >= funcctx->max_calls)
		SRF_RETURN_DONE(funcctx);
	if (unlikely(ids->next == ids->end))
		take_ids(ids, funcctx->max_calls - funcctx->call_cntr);
	SRF_RETURN_NEXT(funcctx, Int64GetDatum(ids->next++));
}

/* The sequence goes on after the millisecond of the ID, so that no shard ID matters. */
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
		no_id_error(now_tick, epoch_ms);

	generator_advance(sequence, pack_tick(epoch_ms + id_ms(id), MAX_SEQUENCE));
	PG_RETURN_VOID();
}
