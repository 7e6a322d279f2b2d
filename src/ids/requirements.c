/*-------------------------------------------------------------------------
 *
 * requirements.c
 *	  What a sequence must be to serve as a source of IDs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "ids/layout.h"
#include "ids/requirements.h"
#include "sequence.h"

/* 2026-01-01: freeze_shard() did not exist before */
#define FIRST_FREEZE_MS		INT64CONST(1767225600000)

/*
 * Has freeze_shard() frozen a sequence?
 *
 * A frozen sequence is at its MAXVALUE.  Thus it is used up for nextval(), and
 * a dump contains both.  The MAXVALUE is the last tick, which is not before
 * 2004 (2^40 ms); or the lowest possible MAXVALUE, if the sequence was never
 * used.  A sequence that got its MAXVALUE for other reasons, and reached it,
 * is not frozen.
 *
 * A dump without data restores the MAXVALUE and an unused sequence.  That
 * sequence is frozen, too, if freeze_shard() can have chosen its MAXVALUE.
 */
bool
requirements_is_frozen(Form_pg_sequence options, Form_pg_sequence_data data)
{
	int64		ms = tick_ms(options->seqmax);

	if (options->seqmin > 1 || options->seqmax >= MAX_TICK || options->seqincrement < 0)
		return false;
	if (options->seqmax == Max(options->seqmin + 1, options->seqstart))
		return !data->is_called || data->last_value == options->seqmax;
	if (data->is_called)
		return data->last_value == options->seqmax && ms > LAST_MS;
	return data->last_value == options->seqstart &&
		ms >= FIRST_FREEZE_MS && ms <= time_ms(GetCurrentTimestamp()) + LAST_MS;
}

/*
 * Was a sequence given a range in which ticks do not fit?  Such a range mostly
 * keeps its values apart from those of other sequences, and must not be
 * removed.  The default bounds of CREATE SEQUENCE, for each type and
 * direction, do not count.
 */
static bool
has_own_range(Form_pg_sequence options)
{
	int64		default_max;

	if (options->seqincrement < 0)
		default_max = -1;
	else if (options->seqtypid == INT2OID)
		default_max = PG_INT16_MAX;
	else if (options->seqtypid == INT4OID)
		default_max = PG_INT32_MAX;
	else
		default_max = PG_INT64_MAX;
	return options->seqmin > 1 ||
		(options->seqmax < MAX_TICK && options->seqmax != default_max);
}

/* Has freeze_shard() given a sequence its range? */
static bool
has_frozen_range(Relation rel, Form_pg_sequence options)
{
	Buffer		buffer;
	bool		frozen;

	if (!has_own_range(options))
		return false;
	frozen = requirements_is_frozen(options,
					   sequence_lock_page(rel, &buffer, BUFFER_LOCK_SHARE));
	UnlockReleaseBuffer(buffer);
	return frozen;
}

void
requirements_check_not_frozen(Relation rel, Form_pg_sequence options)
{
	if (has_frozen_range(rel, options))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("shard %s is frozen",
						quote_identifier(get_namespace_name(RelationGetNamespace(rel)))),
				 errdetail("Its sequence \"%s\" makes no IDs until the shard is thawed.",
						   RelationGetRelationName(rel)),
				 errhint("If the shard was moved, use it in its new place. Otherwise its owner can thaw it: SELECT instaid.thaw_shard(%s);",
						 quote_literal_cstr(get_namespace_name(RelationGetNamespace(rel))))));
}

/* Check that a sequence can count ticks, now or when it is thawed. */
void
requirements_check(Relation rel, Form_pg_sequence options)
{
	const char *complaint = NULL;

	if (has_own_range(options) && !has_frozen_range(rel, options))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" cannot serve as a source of IDs",
						RelationGetRelationName(rel)),
				 errdetail("It has a range of its own, %lld to %lld. A source of IDs needs MINVALUE 1 or less and MAXVALUE %lld or more.",
						   (long long) options->seqmin,
						   (long long) options->seqmax,
						   (long long) MAX_TICK),
				 errhint("If Citus made this copy for a worker, insert on the coordinator, and let INSERT ... SELECT read a subquery with OFFSET 0 or a temporary table. The default instaid.next_id() works on each node. Otherwise use a sequence that was created without MINVALUE and MAXVALUE.")));

	if (options->seqtypid != INT8OID)
		complaint = psprintf("Its type is %s; it must be bigint.",
							 format_type_be(options->seqtypid));
	else if (options->seqincrement != 1)
		complaint = psprintf("Its INCREMENT is %lld; it must be 1.",
							 (long long) options->seqincrement);
	else if (options->seqcycle)
		complaint = "It has CYCLE, and would repeat its values.";

	if (complaint)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" cannot serve as a source of IDs",
						RelationGetRelationName(rel)),
				 errdetail_internal("%s", complaint),
				 errhint("Use ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE NO CYCLE.",
						 sequence_qualified_name(RelationGetRelid(rel)))));
}
