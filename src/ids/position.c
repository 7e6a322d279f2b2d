/*-------------------------------------------------------------------------
 *
 * position.c
 *	  The SQL-callable functions that tell where a sequence stands.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "storage/lmgr.h"
#include "utils/timestamp.h"

#include "ids/arguments.h"
#include "ids/generator.h"
#include "ids/layout.h"
#include "ids/requirements.h"
#include "sequence.h"

PG_FUNCTION_INFO_V1(instaid_last_id);
PG_FUNCTION_INFO_V1(instaid_last_tick);
PG_FUNCTION_INFO_V1(instaid_first_tick);

/* The state of a sequence, from its page and its options */
typedef struct SequenceState
{
	int64		last_value;		/* meaningless unless is_called */
	bool		is_called;
	bool		is_frozen;
} SequenceState;

/*
 * Read the last tick that a sequence gave, or reserved for a session; or the
 * value that setval() has set.  Returns false if sequence_try_lock() or
 * sequence_read_locked() does.
 */
static bool
read_position(Oid sequence, SequenceState *state)
{
	FormData_pg_sequence options;
	FormData_pg_sequence_data data;
	bool		readable;

	if (!sequence_try_lock(sequence))
		return false;
	readable = sequence_read_locked(sequence, &options, &data);
	UnlockRelationOid(sequence, RowExclusiveLock);
	if (!readable)
		return false;

	state->last_value = data.last_value;
	state->is_called = data.is_called;
	state->is_frozen = requirements_is_frozen(&options, &data);
	return true;
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

	if (!read_position(sequence, &state) || !state.is_called ||
		!tick_has_id(state.last_value, epoch_ms))
		PG_RETURN_NULL();
	PG_RETURN_INT64(tick_to_id(state.last_value, shard_id, epoch_ms));
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

	if (read_position(PG_GETARG_OID(0), &state))
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

/* _first_tick() -> bigint */
Datum
instaid_first_tick(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_INT64(generator_first_tick());
}
