/* What a sequence must be to serve as a source of IDs. */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "ids/ids.h"
#include "sequence.h"

/* Why a sequence cannot serve, as a sentence, and what to do about that; NULL if it can */
static const char *
find_fault(Form_pg_sequence options, const char **cure)
{
	const char *fault;

	/* a MINVALUE keeps values apart from those of other sequences; a MAXVALUE freezes */
	if (options->seqmin > 1)
	{
		*cure = "On Citus, insert on the coordinator, and let INSERT ... SELECT read a temporary table. Elsewhere, use another sequence. Leave the range as it is: it can keep the values of this copy apart from those on other servers.";
		return psprintf("It has a range of its own, %lld to %lld. A source of IDs needs MINVALUE 1 or less.",
						(long long) options->seqmin, (long long) options->seqmax);
	}
	if (options->seqtypid != INT8OID)
		fault = psprintf("Its type is %s; it must be bigint.", format_type_be(options->seqtypid));
	else if (options->seqincrement != 1)
		fault = psprintf("Its INCREMENT is %lld; it must be 1.", (long long) options->seqincrement);
	else if (options->seqcycle)
		fault = "It has CYCLE, and would repeat its values.";
	else
		return NULL;
	/* a descending sequence ends at -1 by default; any other low MAXVALUE stays */
	*cure = psprintf("ALTER SEQUENCE %s AS bigint INCREMENT BY 1%s NO CYCLE;",
					 sequence_qualified_name(options->seqrelid),
					 options->seqincrement < 0 && options->seqmax == -1 ? " NO MAXVALUE" : "");
	return fault;
}

/* Refuse a sequence that cannot serve as a source of IDs, or could not if it were thawed. */
void
requirements_check(Relation rel, Form_pg_sequence options)
{
	const char *cure;
	const char *fault = find_fault(options, &cure);

	if (fault)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" cannot serve as a source of IDs",
						RelationGetRelationName(rel)),
				 errdetail_internal("%s", fault),
				 errhint("%s", cure)));
}

/* Why a sequence cannot serve, and what to do about that; NULL if it can, or is gone */
const char *
requirements_fault(Oid sequence, const char **cure)
{
	FormData_pg_sequence options;

	return sequence_copy_options(sequence, &options) ? find_fault(&options, cure) : NULL;
}

/*
 * Is a sequence frozen?  It is if it could serve, but its MAXVALUE is too low for ticks.
 *
 * freeze_shard() leaves nothing else, and a shard is frozen if the sequence of its declaration is.
 * A word in the declaration could disagree with the sequence, and ALTER SEQUENCE waits for the
 * transactions that have taken IDs, as a change of the declaration does not.  A low MAXVALUE
 * that somebody else has set stops the shard as well; therefore the error names it.
 */
bool
is_frozen(Oid sequence)
{
	FormData_pg_sequence options;
	const char *cure;

	return sequence_copy_options(sequence, &options) && options.seqmax < MAX_TICK &&
		find_fault(&options, &cure) == NULL;
}

/*
 * Refuse a call that wants an ID of a frozen sequence, or of a shard that declares it.  The
 * message names a shard if it declares this sequence in its own schema, as most do.
 */
void
check_not_frozen(Oid sequence)
{
	FormData_pg_sequence options = {0};
	Declaration declaration = {0};
	HeapTuple	tuple;
	Oid			schema;
	char	   *name;
	char	   *schema_name;

	if (!is_frozen(sequence))
		return;
	/* no lock may keep another session from dropping them */
	name = sequence_qualified_name(sequence);
	schema = get_rel_namespace(sequence);
	schema_name = get_namespace_name(schema);
	(void) sequence_copy_options(sequence, &options);
	tuple = find_declaration(schema);
	if (HeapTupleIsValid(tuple))
		(void) read_declaration(tuple, &declaration);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 schema_name != NULL && declaration.sequence == sequence ?
			 errmsg("shard %s is frozen", quote_identifier(schema_name)) :
			 errmsg("sequence %s is frozen", name),
			 errdetail("The MAXVALUE of sequence %s is %lld, which is too low for IDs.",
					   name, (long long) options.seqmax),
			 errhint("If the shard was moved, use it in its new place; otherwise use instaid.thaw_shard(). If the sequence is not a shard's, use one without MAXVALUE.")));
}
