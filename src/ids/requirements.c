/* What a sequence must be to serve as a source of IDs. */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "ids/declaration.h"
#include "ids/layout.h"
#include "ids/requirements.h"
#include "sequence.h"

/*
 * Was a sequence given a range in which ticks do not fit?  Such a range mostly
 * keeps its values apart from those of other sequences.  The default bounds of
 * CREATE SEQUENCE, for each type and direction, do not count.  Neither does the
 * MAXVALUE of a frozen shard.
 */
static bool
has_own_range(Form_pg_sequence options, bool is_frozen)
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
		(!is_frozen && options->seqmax < MAX_TICK && options->seqmax != default_max);
}

/* Why a sequence cannot serve, as a sentence; NULL if it can */
static const char *
sequence_fault(Form_pg_sequence options, bool is_frozen)
{
	if (has_own_range(options, is_frozen))
		return psprintf("It has a range of its own, %lld to %lld. A source of IDs needs MINVALUE 1 or less and MAXVALUE %lld or more.",
						(long long) options->seqmin,
						(long long) options->seqmax,
						(long long) MAX_TICK);
	if (options->seqtypid != INT8OID)
		return psprintf("Its type is %s; it must be bigint.",
						format_type_be(options->seqtypid));
	if (options->seqincrement != 1)
		return psprintf("Its INCREMENT is %lld; it must be 1.",
						(long long) options->seqincrement);
	if (options->seqcycle)
		return "It has CYCLE, and would repeat its values.";
	return NULL;
}

/* What to do about that.  The name is quoted and qualified. */
static const char *
fault_cure(Form_pg_sequence options, bool is_frozen, const char *name)
{
	if (options->seqmin > 1)
		return "Leave the range as it is: it can keep the values of this copy apart from those on other servers. If Citus made the copy for a worker, insert on the coordinator, and let INSERT ... SELECT read a subquery with OFFSET 0 or a temporary table. The default instaid.next_id() works on each node. Otherwise use another sequence.";
	if (has_own_range(options, is_frozen))
		return "If it is a sequence of a shard, use instaid.thaw_shard(), or instaid.freeze_shard() if the shard should issue no IDs. Otherwise use a sequence without MAXVALUE.";
	return psprintf("ALTER SEQUENCE %s AS bigint INCREMENT BY 1%s NO CYCLE;",
					name, is_frozen ? "" : " NO MAXVALUE");
}

/*
 * Refuse a sequence of a shard in this schema that cannot serve as a source of IDs, or
 * could not if it were thawed.  Returns whether the shard is frozen.
 *
 * Only the MAXVALUE tells each call that the declaration is to be looked up.
 */
bool
requirements_check(Relation rel, Form_pg_sequence options, Oid schema)
{
	bool		is_frozen = options->seqmax < MAX_TICK && is_declared_frozen(schema);
	const char *fault = sequence_fault(options, is_frozen);

	if (fault)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" cannot serve as a source of IDs",
						RelationGetRelationName(rel)),
				 errdetail_internal("%s", fault),
				 errhint("%s", fault_cure(options, is_frozen,
										  sequence_qualified_name(RelationGetRelid(rel))))));
	return is_frozen;
}

/*
 * Why a sequence cannot serve as a source of IDs, and what to do; NULL if it can, or was
 * dropped.
 */
const char *
requirements_fault(Oid sequence, bool is_frozen, const char **cure)
{
	char	   *schema = get_namespace_name(get_rel_namespace(sequence));
	char	   *name = get_rel_name(sequence);
	HeapTuple	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
	const char *fault;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	fault = name != NULL ? sequence_fault((Form_pg_sequence) GETSTRUCT(tuple), is_frozen) : NULL;
	if (fault != NULL)
		*cure = fault_cure((Form_pg_sequence) GETSTRUCT(tuple), is_frozen,
						   quote_qualified_identifier(schema, name));
	ReleaseSysCache(tuple);
	return fault;
}

/* The error for a call that wants an ID of this sequence, which a frozen shard uses */
pg_noinline void
frozen_error(Oid schema, Oid sequence)
{
	/* no lock keeps another session from dropping either */
	char	   *schema_name = get_namespace_name(schema);
	char	   *sequence_name = get_rel_name(sequence);

	if (schema_name == NULL)
		schema_name = "?";
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("shard %s is frozen", quote_identifier(schema_name)),
			 errdetail("Its sequence \"%s\" makes no IDs until the shard is thawed.",
					   sequence_name ? sequence_name : "?"),
			 errhint("If the shard was moved, use it in its new place. Otherwise its owner can thaw it: SELECT instaid.thaw_shard(%s);",
					 quote_literal_cstr(schema_name))));
}
