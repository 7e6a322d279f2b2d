/*-------------------------------------------------------------------------
 *
 * position.c
 *	  Where a sequence stands, in C and for SQL.
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
#include "ids/layout.h"
#include "ids/position.h"
#include "sequence.h"

PG_FUNCTION_INFO_V1(instaid_last_id);
PG_FUNCTION_INFO_V1(instaid_last_tick);

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
 * _last_tick(sequence regclass)
 *	-> (tick bigint, used boolean, issued_at timestamptz)
 *
 * The last value of a sequence, which setval() may have set to something that
 * is no tick; null if the sequence was never used.  issued_at is null if the
 * value is no tick.  All are null if the state of the sequence cannot be read.
 */
Datum
instaid_last_tick(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	FormData_pg_sequence_data data;
	Datum		values[3] = {0};
	bool		nulls[3] = {true, true, true};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (read_position(PG_GETARG_OID(0), &data))
	{
		values[0] = Int64GetDatum(data.last_value);
		nulls[0] = !data.is_called;
		values[1] = BoolGetDatum(data.is_called);
		nulls[1] = false;
		values[2] = TimestampTzGetDatum(tick_timestamp(data.last_value));
		nulls[2] = !data.is_called ||
			data.last_value < 0 || data.last_value > MAX_TICK;
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), values, nulls)));
}
