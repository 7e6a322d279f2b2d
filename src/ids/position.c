/* The SQL-callable functions that say where a sequence stands. */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "functions.h"
#include "ids/ids.h"
#include "sequence.h"

PG_FUNCTION_INFO_V1(instaid_last_id);
PG_FUNCTION_INFO_V1(instaid_sequence_state);

Datum
instaid_last_id(PG_FUNCTION_ARGS)
{
	Oid			sequence = PG_GETARG_OID(0);
	int32		shard_id = PG_GETARG_INT32(1);
	int64		epoch_ms = epoch_to_ms(PG_GETARG_TIMESTAMPTZ(2));
	FormData_pg_sequence_data data;

	check_shard_id(shard_id);

	if (!sequence_read(sequence, NULL, NULL, &data) || !data.is_called ||
		!tick_has_id(data.last_value, epoch_ms))
		PG_RETURN_NULL();
	PG_RETURN_INT64(tick_to_id(data.last_value, shard_id, epoch_ms));
}

/* The last value can be no tick, because setval() can set anything. */
Datum
instaid_sequence_state(PG_FUNCTION_ARGS)
{
	Oid			sequence = PG_GETARG_OID(0);
	FormData_pg_sequence_data data;
	const char *problem;
	const char *cure;
	Datum		values[4] = {0};
	bool		nulls[4] = {true, true, true, true};

	if (sequence_read(sequence, NULL, NULL, &data) && data.is_called)
	{
		values[0] = Int64GetDatum(data.last_value);
		values[1] = TimestampTzGetDatum(tick_timestamp(data.last_value));
		nulls[0] = false;
		nulls[1] = data.last_value < 0 || data.last_value > MAX_TICK;
	}
	problem = requirements_fault(sequence, &cure);
	if (problem != NULL)
	{
		values[2] = CStringGetTextDatum(problem);
		values[3] = CStringGetTextDatum(cure);
		nulls[2] = nulls[3] = false;
	}
	PG_RETURN_DATUM(make_row(fcinfo, values, nulls));
}
