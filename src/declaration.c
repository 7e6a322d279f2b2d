/*
 * What the functions of a shard say: to read it, and to refuse what is wrong.
 *
 * A shard is a schema with three functions in the language instaid:
 *
 *	  next_ids(count integer, sequence regclass DEFAULT 'insta5.table_id_seq')
 *								AS 'shard 5, epoch 1314220021721'
 *	  next_id()					AS 'as next_ids(integer, regclass)'
 *	  next_id(sequence regclass) AS 'as next_ids(integer, regclass)'
 *
 * The first is the declaration.  In the extension's own schema it says 'node shard' instead, whose
 * shard ID is a setting of the server.  The others refer to the declaration in their own schema.
 *
 * No body names a schema, a table or a sequence: pg_dump copies bodies as text, and a rename
 * does not change them.  The sequence is the default of a parameter, for which core records a
 * dependency and whose new name it shows.
 *
 * Why a language, and not RETURN instaid.next_id('insta5.table_id_seq', 5)?  Such a function would
 * need no validator, and no handler.  But an INSERT that is not prepared plans its defaults each
 * time, and the planner looks up, parses and inlines the function.  These are parts of the
 * instructions of an INSERT with bigserial, by callgrind on PostgreSQL 15, as "insert sent" and
 * "insert prepared" of bench/instructions.sh with other defaults:
 *
 *					not prepared	prepared
 *		language		0.92		0.98
 *		RETURN			1.41		0.96
 *		RETURN, with epoch	1.50		0.96
 */
#include "postgres.h"

#include <ctype.h>

#include "access/detoast.h"
#include "access/genam.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "commands/proclang.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "common.h"
#include "declaration.h"
#include "layout.h"
#include "sequence.h"

#define REFERENCE	"as next_ids(integer, regclass)"
#define NODE_DECLARATION "node shard"

/* the hint of all errors about a declaration */
#define DECLARATION_HINT \
	"Use instaid.create_shard(), which declares a shard by CREATE FUNCTION next_ids(count integer, sequence regclass DEFAULT '...') RETURNS SETOF bigint LANGUAGE instaid STRICT COST 1 AS 'shard 5, epoch 1314220021721'."

/*
 * A body has about 50 characters, and a default that is a constant of type regclass about
 * 150.  Nothing longer is read: a default could be nested too deeply for the stack.
 */
#define MAX_TEXT_LENGTH		1000

PG_FUNCTION_INFO_V1(instaid_validator);
PG_FUNCTION_INFO_V1(instaid_function_fault);

int			node_shard_id;

void
declaration_init(void)
{
	/*
	 * not for sessions: two shard IDs for one sequence, or one for two
	 * servers, repeat IDs
	 */
	DefineCustomIntVariable("instaid.node_shard_id",
							"Sets the shard ID of this server, for the IDs of instaid.next_id().",
							"No other server may have it. -1 means that it is not set: instaid.next_id() fails.",
							&node_shard_id, NODE_SHARD, NODE_SHARD, MAX_SHARD_ID, PGC_SIGHUP, 0,
							NULL, NULL, NULL);
}

int32
declaration_node_shard_id(void)
{
	if (node_shard_id == NODE_SHARD)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("instaid.node_shard_id is not set"),
				 errdetail("It is the shard ID in the IDs that instaid.next_id() makes on this server."),
				 errhint("A superuser sets it to a number from 0 to %d that no other server and no other shard has: ALTER SYSTEM SET instaid.node_shard_id = number; and then SELECT pg_reload_conf();",
						 MAX_SHARD_ID)));
	return node_shard_id;
}

/* The name and the parameters of a function, for messages */
char *
shard_function_name(Form_pg_proc proc)
{
	StringInfoData name;
	char	   *schema = get_namespace_name(proc->pronamespace);

	initStringInfo(&name);
	appendStringInfo(&name, "%s(", quote_qualified_identifier(schema, NameStr(proc->proname)));
	for (int i = 0; i < proc->pronargs; i++)
		appendStringInfo(&name, "%s%s", i > 0 ? ", " : "",
						 format_type_be(proc->proargtypes.values[i]));
	appendStringInfoChar(&name, ')');
	return name.data;
}

/* The body of a function; empty if it is too long for a function of a shard */
static char *
function_body(HeapTuple tuple)
{
	bool		isnull;
	Datum		body = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);

	if (isnull || toast_raw_datum_size(body) > MAX_TEXT_LENGTH)
		return pstrdup("");
	return TextDatumGetCString(body);
}

/* Has a function the parameters of next_ids()?  ALTER FUNCTION cannot change them. */
static bool
has_declaring_signature(Form_pg_proc proc)
{
	const Oid  *types = proc->proargtypes.values;

	return proc->pronargs == 2 && types[0] == INT4OID && types[1] == REGCLASSOID;
}

/*
 * Does a function in the language declare a shard?  Under another name it does not: a schema is
 * one shard, and has one shard ID.
 */
bool
shard_function_declares(Form_pg_proc proc)
{
	return has_declaring_signature(proc) && strcmp(NameStr(proc->proname), DECLARATION) == 0;
}

/*
 * Reading a declaration
 *
 * These functions return NULL, or a sentence on what is wrong.  The validator raises it as an
 * error.  The list of shards leaves out the function, and audit() reports it.
 */

/* Read an epoch, in milliseconds since 1970, as Instagram's function has it. */
static bool
read_epoch(const char *input, int64 *epoch_ms)
{
	char	   *end;

	errno = 0;
	*epoch_ms = strtoi64(input, &end, 10);
	return isdigit((unsigned char) input[*input == '-']) && *end == '\0' && errno == 0 &&
		*epoch_ms >= time_ms(MIN_EPOCH) && *epoch_ms < time_ms(END_EPOCH);
}

/* Take white space away from both ends of a body, which people often write on a line of its own. */
static char *
trim_body(char *body)
{
	char	   *end;

	body += strspn(body, " \t\r\n");
	end = body + strlen(body);
	while (end > body && strchr(" \t\r\n", end[-1]) != NULL)
		*--end = '\0';
	return body;
}

/* Read "shard N, epoch ..." or "node shard, epoch ...". */
static const char *
read_body(char *body, Declaration *declaration)
{
	char	   *end = NULL;
	long		shard_id = NODE_SHARD;

	body = trim_body(body);
	if (strncmp(body, NODE_DECLARATION, strlen(NODE_DECLARATION)) == 0)
		end = body + strlen(NODE_DECLARATION);
	else if (strncmp(body, "shard ", 6) == 0 && isdigit((unsigned char) body[6]))
		shard_id = strtol(body + 6, &end, 10);
	if (end == NULL || shard_id > MAX_SHARD_ID || strncmp(end, ", epoch ", 8) != 0 ||
		!read_epoch(end + 8, &declaration->epoch_ms))
		return psprintf("Its body is \"%s\"; it must be \"shard N, epoch MS\", where N is between 0 and %d, and MS is in milliseconds since 1970.",
						body, MAX_SHARD_ID);
	declaration->shard_id = shard_id;
	return NULL;
}

/* Read the default of the parameter "sequence". */
static const char *
read_default(HeapTuple tuple, Declaration *declaration)
{
	bool		isnull;
	Datum		defaults = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proargdefaults, &isnull);
	Const	   *constant = NULL;

	if (!isnull && ((Form_pg_proc) GETSTRUCT(tuple))->pronargdefaults == 1 &&
		toast_raw_datum_size(defaults) < MAX_TEXT_LENGTH)
		constant = linitial((List *) stringToNode(TextDatumGetCString(defaults)));
	if (constant == NULL || !IsA(constant, Const) || constant->consttype != REGCLASSOID ||
		constant->constisnull || !OidIsValid(DatumGetObjectId(constant->constvalue)))
		return "The default of its parameter \"sequence\" must be a constant of type regclass.";
	declaration->sequence = DatumGetObjectId(constant->constvalue);
	return NULL;
}

const char *
declaration_read(HeapTuple tuple, Declaration *declaration)
{
	const char *fault = read_body(function_body(tuple), declaration);

	declaration->owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	return fault ? fault : read_default(tuple, declaration);
}

/* A function of a schema in the language, as a tuple that the caller releases; or NULL */
HeapTuple
shard_function_find(const char *name, const Oid *types, int nargs, Oid schema)
{
	HeapTuple	tuple;

	tuple = SearchSysCache3(PROCNAMEARGSNSP, CStringGetDatum(name),
							PointerGetDatum(buildoidvector(types, nargs)),
							ObjectIdGetDatum(schema));
	if (!HeapTupleIsValid(tuple) ||
		((Form_pg_proc) GETSTRUCT(tuple))->prolang == get_language_oid(LANGUAGE, true))
		return tuple;
	ReleaseSysCache(tuple);
	return NULL;
}

/* The declaration of a schema, as a tuple that the caller releases; or NULL */
HeapTuple
declaration_find(Oid schema)
{
	static const Oid types[] = {INT4OID, REGCLASSOID};

	return shard_function_find(DECLARATION, types, lengthof(types), schema);
}

pg_noinline void
declaration_error(HeapTuple tuple, const char *fault)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
			 errmsg("function %s does not declare a shard",
					shard_function_name((Form_pg_proc) GETSTRUCT(tuple))),
			 errdetail_internal("%s", fault),
			 errhint(DECLARATION_HINT)));
}

/*
 * What a function of a shard declares, by itself or by the declaration of its schema.  ALTER
 * FUNCTION and DROP run no validator, so this checks what they can break.  Returns NULL, or a
 * sentence on why the function makes no IDs.
 */
const char *
shard_function_read(HeapTuple tuple, Declaration *declaration)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	HeapTuple	declared;
	const char *fault;

	if (proc->provolatile != PROVOLATILE_VOLATILE)
		return "It is not VOLATILE: PostgreSQL could call it once for all rows of a statement.";
	declaration->is_definer = proc->prosecdef;
	if (has_declaring_signature(proc))
		return shard_function_declares(proc) ? declaration_read(tuple, declaration) :
			"It is not named next_ids.";

	declared = declaration_find(proc->pronamespace);
	if (!HeapTupleIsValid(declared))
		return "Its schema has no next_ids(integer, regclass) in language instaid, to which it refers.";
	fault = declaration_read(declared, declaration);
	ReleaseSysCache(declared);
	if (fault)
		return psprintf("The next_ids() of its schema declares no shard. %s", fault);
	if (proc->prosecdef && proc->proowner != declaration->owner)
		return "It is SECURITY DEFINER, and the next_ids() of its schema belongs to another role.";
	return NULL;
}

/*
 * Validating
 */

/* Has a function the name that create_shard() gives it? */
static bool
has_proper_name(Form_pg_proc proc)
{
	return strcmp(NameStr(proc->proname),
				  has_declaring_signature(proc) ? DECLARATION : "next_id") == 0;
}

/* What is wrong with the attributes of a function; or NULL */
static const char *
attribute_fault(Form_pg_proc proc)
{
	if (proc->provolatile != PROVOLATILE_VOLATILE)
		return "is not VOLATILE";
	if (!proc->proisstrict)
		return "fails for a null: it is not STRICT";
	if (proc->proparallel != PROPARALLEL_UNSAFE)
		return "can fail in a parallel query: it is not PARALLEL UNSAFE";
	return NULL;
}

/*
 * Check what a function is, apart from its body.  In a restore, it may be whatever ALTER
 * FUNCTION can make of a proper one: tables that default to it are not restored without it.
 */
static void
check_signature(HeapTuple tuple, Oid our_schema)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	bool		is_known = has_declaring_signature(proc) || proc->pronargs == 0 ||
		(proc->pronargs == 1 && proc->proargtypes.values[0] == REGCLASSOID);
	Oid			our_type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum("id"),
										   ObjectIdGetDatum(our_schema));

	if (!is_known || (check_function_bodies && !has_proper_name(proc)) ||
		proc->prokind != PROKIND_FUNCTION || proc->proretset != has_declaring_signature(proc) ||
		OidIsValid(proc->provariadic) ||
		(proc->prorettype != INT8OID && proc->prorettype != our_type))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("%s cannot be a function of a shard", shard_function_name(proc)),
				 errdetail("A shard has next_ids(integer, regclass) RETURNS SETOF bigint, next_id() RETURNS bigint and next_id(regclass) RETURNS bigint. The type can be instaid.id instead of bigint."),
				 errhint("instaid.create_shard() creates all three.")));
	/* core lets no function move into the schema later */
	if (isAnyTempNamespace(proc->pronamespace))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("temporary function %s cannot be a function of a shard",
						NameStr(proc->proname)),
				 errdetail("PostgreSQL drops it when the session ends."),
				 errhint("Choose another schema.")));
	if (check_function_bodies && attribute_fault(proc) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("function %s must be VOLATILE STRICT PARALLEL UNSAFE", shard_function_name(proc)),
				 errdetail("It returns a new ID at each call, and null for a null."),
				 errhint("VOLATILE and PARALLEL UNSAFE are the defaults; add STRICT.")));
}

/*
 * Check the reference of a function to the declaration of its schema.  CREATE FUNCTION, which has
 * just deleted what was recorded for the function, also records it, so that pg_dump dumps the
 * declaration first, and DROP knows what needs it.
 */
static void
check_reference(HeapTuple tuple, bool is_created)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	HeapTuple	declared;
	ObjectAddress function;
	ObjectAddress declaration;

	if (strcmp(function_body(tuple), REFERENCE) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("function %s does not refer to a declaration", shard_function_name(proc)),
				 errdetail("Its body is \"%s\"; it must be \"%s\".", function_body(tuple), REFERENCE),
				 errhint("instaid.create_shard() creates all functions of a shard.")));

	declared = declaration_find(proc->pronamespace);
	if (!HeapTupleIsValid(declared))
	{
		if (check_function_bodies)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_FUNCTION),
					 errmsg("schema %s does not declare a shard",
							quote_identifier(get_namespace_name(proc->pronamespace))),
					 errdetail("Function %s refers to %s(integer, regclass) in its own schema, in language %s.",
							   shard_function_name(proc), DECLARATION, LANGUAGE),
					 errhint(DECLARATION_HINT)));
		return;
	}

	if (is_created)
	{
		ObjectAddressSet(function, ProcedureRelationId, proc->oid);
		ObjectAddressSet(declaration, ProcedureRelationId,
						 ((Form_pg_proc) GETSTRUCT(declared))->oid);
		recordDependencyOn(&function, &declaration, DEPENDENCY_NORMAL);
	}
	ReleaseSysCache(declared);
}

/*
 * Warn if another schema declares the shard ID of this declaration, as after a dump of a schema
 * whose name was replaced.  create_shard() refuses such a shard ID, and a restore does not.
 * Another session's declaration counts when it is committed.  All declarations are read: a restore
 * of 4,000 shards takes a third longer for it.
 */
static void
warn_of_twin(Form_pg_proc proc, int32 shard_id)
{
	Oid			twin = InvalidOid;
	Relation	procs = table_open(ProcedureRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_proc_proname, BTEqualStrategyNumber, F_NAMEEQ,
				CStringGetDatum(DECLARATION));
	scan = systable_beginscan(procs, ProcedureNameArgsNspIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_proc it = (Form_pg_proc) GETSTRUCT(tuple);
		Declaration declaration;

		if (it->oid != proc->oid && it->prolang == proc->prolang &&
			shard_function_declares(it) &&
			read_body(function_body(tuple), &declaration) == NULL &&
			declaration.shard_id == shard_id)
			twin = it->pronamespace;
	}
	systable_endscan(scan);
	table_close(procs, AccessShareLock);

	if (OidIsValid(twin))
	{
		const char *here = quote_identifier(get_namespace_name(proc->pronamespace));
		char	   *there = get_namespace_name(twin);

		/* dropped by another session */
		if (there == NULL)
			return;
		ereport(WARNING,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("schemas %s and %s both have shard ID %d", here, quote_identifier(there),
						shard_id),
				 errdetail("Unless one of them is frozen, they issue the same IDs."),
				 errhint("To give one a number that is free on all your servers, its owner runs: SELECT instaid.renumber_shard(%s, number);",
						 quote_literal_cstr(get_namespace_name(proc->pronamespace)))));
	}
}

/*
 * The validator of the language refuses what is not a function of a shard.  A restore turns
 * check_function_bodies off, because other objects can be missing.  A query that calls it, which
 * only superusers may, has an expression, and CREATE FUNCTION has none.
 */
Datum
instaid_validator(PG_FUNCTION_ARGS)
{
	Oid			function = PG_GETARG_OID(0);
	Oid			our_schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	HeapTuple	tuple;
	Form_pg_proc proc;

	if (!CheckFunctionValidatorAccess(fcinfo->flinfo->fn_oid, function))
		PG_RETURN_VOID();
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	proc = (Form_pg_proc) GETSTRUCT(tuple);

	check_signature(tuple, our_schema);
	if (has_declaring_signature(proc))
	{
		Declaration declaration;
		const char *fault = declaration_read(tuple, &declaration);

		if (fault == NULL && declaration.shard_id == NODE_SHARD && proc->pronamespace != our_schema)
			fault = "Only the extension itself declares the shard of the node.";
		if (fault)
			declaration_error(tuple, fault);
		if (check_function_bodies)
			sequence_check_rights(declaration.sequence, SEQUENCE_RIGHTS);
		if (declaration.shard_id != NODE_SHARD && fcinfo->flinfo->fn_expr == NULL)
			warn_of_twin(proc, declaration.shard_id);
	}
	else
		check_reference(tuple, fcinfo->flinfo->fn_expr == NULL);

	ReleaseSysCache(tuple);
	PG_RETURN_VOID();
}

/*
 * What ALTER FUNCTION or a DROP has made wrong with a function of a shard, and the code of the
 * finding; NULL if all is well
 */
static const char *
find_fault(HeapTuple tuple, const char **code)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	Declaration declaration;
	const char *fault;

	*code = "shard_function_attributes";
	fault = attribute_fault(proc);
	if (fault != NULL)
		return fault;

	*code = "shard_function_name";
	if (!has_proper_name(proc))
		return has_declaring_signature(proc) ?
			"is not named next_ids, and declares no shard" : "is not named next_id";

	*code = "shard_function_broken";
	fault = shard_function_read(tuple, &declaration);
	if (fault == NULL && has_declaring_signature(proc) &&
		get_rel_relkind(declaration.sequence) != RELKIND_SEQUENCE)
		fault = "Its sequence does not exist.";
	return fault ? psprintf("makes no IDs. %s", fault) : NULL;
}

/* A function of one role must not keep other roles from reading the list: no error here. */
Datum
instaid_function_fault(PG_FUNCTION_ARGS)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, PG_GETARG_DATUM(0));
	const char *fault;
	const char *code;
	Datum		values[2];
	bool		nulls[2] = {false};

	if (!HeapTupleIsValid(tuple))
		PG_RETURN_NULL();
	fault = find_fault(tuple, &code);
	ReleaseSysCache(tuple);
	if (fault == NULL)
		PG_RETURN_NULL();
	values[0] = CStringGetTextDatum(code);
	values[1] = CStringGetTextDatum(fault);
	PG_RETURN_DATUM(make_row(fcinfo, values, nulls));
}
