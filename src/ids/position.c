/* Where a sequence stands, in C and for SQL. */
#include "postgres.h"

#include "access/htup_details.h"
#include "fmgr.h"
#include "funcapi.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "ids/arguments.h"
#include "ids/layout.h"
#include "ids/position.h"
#include "ids/requirements.h"
#include "sequence.h"

PG_FUNCTION_INFO_V1(instaid_last_id);
PG_FUNCTION_INFO_V1(instaid_sequence_state);

/*
 * Read the last tick that a sequence gave, or reserved for a session; or the
 * value that setval() has set.  Returns false if sequence_try_lock() or
 * sequence_read_locked() does.
 */
bool
read_position(Oid sequence, FormData_pg_sequence_data *data)
{
	bool		readable;

	if (!sequence_try_lock(sequence))
		return false;
	readable = sequence_read_locked(sequence, NULL, data);
	UnlockRelationOid(sequence, RowExclusiveLock);
	return readable;
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
	FormData_pg_sequence_data data;

	check_shard_id(shard_id);

	if (!read_position(sequence, &data) || !data.is_called ||
		!tick_has_id(data.last_value, epoch_ms))
		PG_RETURN_NULL();
	PG_RETURN_INT64(tick_to_id(data.last_value, shard_id, epoch_ms));
}

/*
 * _sequence_state(sequence regclass, is_frozen boolean)
 *	-> (tick bigint, issued_at timestamptz, problem text, cure text)
 *
 * The last value of a sequence, which setval() may have set to something that
 * is no tick; null if the sequence was never used, or its state cannot be read.
 * issued_at is null if the value is no tick.  Why the sequence cannot serve as a
 * source of IDs, and what to do; nulls if it can.
 */
Datum
instaid_sequence_state(PG_FUNCTION_ARGS)
{
	Oid			sequence = PG_GETARG_OID(0);
	TupleDesc	tupdesc;
	FormData_pg_sequence_data data;
	const char *problem;
	const char *cure;
	Datum		values[4] = {0};
	bool		nulls[4] = {true, true, true, true};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (read_position(sequence, &data) && data.is_called)
	{
		values[0] = Int64GetDatum(data.last_value);
		nulls[0] = false;
		values[1] = TimestampTzGetDatum(tick_timestamp(data.last_value));
		nulls[1] = data.last_value < 0 || data.last_value > MAX_TICK;
	}
	problem = requirements_fault(sequence, PG_GETARG_BOOL(1), &cure);
	if (problem != NULL)
	{
		values[2] = CStringGetTextDatum(problem);
		values[3] = CStringGetTextDatum(cure);
		nulls[2] = nulls[3] = false;
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), values, nulls)));
}
