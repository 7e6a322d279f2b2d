/*
 * A sequence that makes IDs: what it must be, whether it is frozen, where it stands, and the lock
 * that waits for those who have taken IDs of it.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "common.h"
#include "declaration.h"
#include "id_sequence.h"
#include "layout.h"
#include "sequence.h"

PG_FUNCTION_INFO_V1(instaid_sequence_state);
PG_FUNCTION_INFO_V1(instaid_lock_sequence);

/* Why a sequence cannot serve, as a sentence, and what to do about that; NULL if it can */
static const char *
fault_of_options(Form_pg_sequence options, const char **cure)
{
	const char *fault;

	/* a MINVALUE keeps values of copies apart; a MAXVALUE freezes */
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
	/* a descending sequence ends at -1 by default */
	*cure = psprintf("ALTER SEQUENCE %s AS bigint INCREMENT BY 1%s NO CYCLE;",
					 sequence_qualified_name(options->seqrelid),
					 options->seqincrement < 0 && options->seqmax == -1 ? " NO MAXVALUE" : "");
	return fault;
}

/* Refuse a sequence that cannot serve as a source of IDs, or could not if it were thawed. */
void
id_sequence_check(Relation rel, Form_pg_sequence options)
{
	const char *cure;
	const char *fault = fault_of_options(options, &cure);

	if (fault)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" cannot serve as a source of IDs",
						RelationGetRelationName(rel)),
				 errdetail_internal("%s", fault),
				 errhint("%s", cure)));
}

/*
 * Is a sequence frozen?  It is if it could serve, but its MAXVALUE, which goes into max_value
 * unless that is NULL, is too low for ticks.
 *
 * freeze_shard() leaves nothing else, and a shard is frozen if the sequence of its declaration is.
 * A word in the declaration could disagree with the sequence, and ALTER SEQUENCE waits for the
 * transactions that have taken IDs.  A low MAXVALUE of others stops the shard, too: the error names
 * it.
 */
bool
id_sequence_is_frozen(Oid sequence, int64 *max_value)
{
	FormData_pg_sequence options;
	const char *cure;

	if (!sequence_copy_options(sequence, &options))
		return false;
	if (max_value != NULL)
		*max_value = options.seqmax;
	return options.seqmax < MAX_TICK && fault_of_options(&options, &cure) == NULL;
}

/*
 * Refuse a call that wants an ID of a frozen sequence, or of a shard that declares it.  The
 * message names a shard if it declares this sequence in its own schema, as most do.
 */
void
id_sequence_check_not_frozen(Oid sequence)
{
	Declaration declaration = {0};
	int64		max_value;
	HeapTuple	tuple;
	Oid			schema;
	char	   *name;
	char	   *schema_name;

	if (!id_sequence_is_frozen(sequence, &max_value))
		return;
	/* no lock may keep another session from dropping them */
	name = sequence_qualified_name(sequence);
	schema = get_rel_namespace(sequence);
	schema_name = get_namespace_name(schema);
	tuple = declaration_find(schema);
	if (HeapTupleIsValid(tuple))
		(void) declaration_read(tuple, &declaration);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 schema_name != NULL && declaration.sequence == sequence ?
			 errmsg("shard %s is frozen", quote_identifier(schema_name)) :
			 errmsg("sequence %s is frozen", name),
			 errdetail("The MAXVALUE of sequence %s is %lld, which is too low for IDs.",
					   name, (long long) max_value),
			 errhint("If the shard was moved, use it in its new place; otherwise use instaid.thaw_shard(). If the sequence is not a shard's, use one without MAXVALUE.")));
}

/* The last value can be no tick, because setval() can set anything. */
Datum
instaid_sequence_state(PG_FUNCTION_ARGS)
{
	Oid			sequence = PG_GETARG_OID(0);
	FormData_pg_sequence options;
	FormData_pg_sequence_data data;
	bool		is_read = sequence_read(sequence, NULL, NULL, &data);
	const char *problem;
	const char *cure;
	Datum		values[5] = {0};
	bool		nulls[5] = {true, true, true, true, false};

	if (is_read && data.is_called)
	{
		values[0] = Int64GetDatum(data.last_value);
		values[1] = TimestampTzGetDatum(tick_timestamp(data.last_value));
		nulls[0] = false;
		nulls[1] = data.last_value < 0 || data.last_value > MAX_TICK;
	}
	if (sequence_copy_options(sequence, &options) &&
		(problem = fault_of_options(&options, &cure)) != NULL)
	{
		values[2] = CStringGetTextDatum(problem);
		values[3] = CStringGetTextDatum(cure);
		nulls[2] = nulls[3] = false;
	}
	values[4] = BoolGetDatum(is_read);
	PG_RETURN_DATUM(make_row(fcinfo, values, nulls));
}

/* Check that the current role has the rights of the owner of a sequence. */
static void
check_owner(Oid sequence)
{
	Oid			owner = relation_owner(sequence);

	if (!OidIsValid(owner) || get_rel_relkind(sequence) != RELKIND_SEQUENCE)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("sequence with OID %u does not exist", sequence)));
	if (!has_privs_of_role(GetUserId(), owner))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE, get_rel_name(sequence));
}

/* This waits for all transactions that have taken values of the sequence. */
Datum
instaid_lock_sequence(PG_FUNCTION_ARGS)
{
	Oid			sequence = PG_GETARG_OID(0);

	check_owner(sequence);
	LockRelationOid(sequence, ShareRowExclusiveLock);
	check_owner(sequence);
	PG_RETURN_VOID();
}
