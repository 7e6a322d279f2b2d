/* What a sequence must be to serve as a source of IDs. */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "ids/ids.h"
#include "sequence.h"

/* Why a sequence cannot serve, as a sentence, and what to do about that; NULL if it can */
static const char *
find_fault(Oid sequence, Form_pg_sequence options, bool is_frozen, const char **cure)
{
	int64		default_max = options->seqincrement < 0 ? -1 :
		sequence_type_max(options->seqtypid);
	const char *fault;

	/*
	 * A range in which ticks do not fit mostly keeps values apart from those
	 * of other sequences. The default bounds of CREATE SEQUENCE, for each
	 * type and direction, do not count, nor does the MAXVALUE of a frozen
	 * shard.
	 */
	if (options->seqmin > 1 ||
		(!is_frozen && options->seqmax < MAX_TICK && options->seqmax != default_max))
	{
		*cure = options->seqmin > 1 ?
			"On Citus, insert on the coordinator, and let INSERT ... SELECT read a temporary table. Elsewhere, use another sequence. Leave the range as it is: it can keep the values of this copy apart from those on other servers." :
			"If it is a sequence of a shard, use instaid.thaw_shard(), or instaid.freeze_shard() if the shard should issue no IDs. Otherwise use a sequence without MAXVALUE.";
		return psprintf("It has a range of its own, %lld to %lld. A source of IDs needs MINVALUE 1 or less and MAXVALUE %lld or more.",
						(long long) options->seqmin, (long long) options->seqmax,
						(long long) MAX_TICK);
	}
	if (options->seqtypid != INT8OID)
		fault = psprintf("Its type is %s; it must be bigint.", format_type_be(options->seqtypid));
	else if (options->seqincrement != 1)
		fault = psprintf("Its INCREMENT is %lld; it must be 1.", (long long) options->seqincrement);
	else if (options->seqcycle)
		fault = "It has CYCLE, and would repeat its values.";
	else
		return NULL;
	*cure = psprintf("ALTER SEQUENCE %s AS bigint INCREMENT BY 1%s NO CYCLE;",
					 sequence_qualified_name(sequence), is_frozen ? "" : " NO MAXVALUE");
	return fault;
}

/*
 * Refuse a sequence of a shard in this schema that cannot serve as a source of IDs, or could not if
 * it were thawed.  Returns whether the shard is frozen.  Its declaration is read only if MAXVALUE
 * is too low for ticks, since most calls have no time for that.
 */
bool
requirements_check(Relation rel, Form_pg_sequence options, Oid schema)
{
	bool		is_frozen = options->seqmax < MAX_TICK && is_declared_frozen(schema);
	const char *cure;
	const char *fault = find_fault(RelationGetRelid(rel), options, is_frozen, &cure);

	if (fault)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" cannot serve as a source of IDs",
						RelationGetRelationName(rel)),
				 errdetail_internal("%s", fault),
				 errhint("%s", cure)));
	return is_frozen;
}

/* Why a sequence cannot serve, and what to do about that; NULL if it can, or is gone */
const char *
requirements_fault(Oid sequence, bool is_frozen, const char **cure)
{
	FormData_pg_sequence options;

	return sequence_copy_options(sequence, &options) ?
		find_fault(sequence, &options, is_frozen, cure) : NULL;
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
