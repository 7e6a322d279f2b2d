/*-------------------------------------------------------------------------
 *
 * shards.c
 *	  The language instaid, whose functions declare a shard, and the list of the
 *	  shards that a database has.
 *
 * A shard is a schema with three functions in this language:
 *
 *	  next_ids(count integer, sequence regclass DEFAULT 'insta5.table_id_seq')
 *								AS 'shard 5, epoch 2011-08-24 21:07:01.721+00'
 *	  next_id()					AS 'as next_ids(integer, regclass)'
 *	  next_id(sequence regclass) AS 'as next_ids(integer, regclass)'
 *
 * (The declaration in the extension's own schema says 'node shard' instead: its
 * shard ID is a setting of the server.)
 *
 * The first is the declaration, and the others refer to the declaration in
 * their own schema.  No body names a schema, a table or a sequence: pg_dump
 * copies bodies as text, and a rename does not change them.  The sequence is
 * the default of a parameter, for which core records a dependency and whose
 * new name it shows.
 *
 * A session reads a declaration from the catalogs once, and again when pg_proc
 * has changed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "access/detoast.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_language.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "commands/proclang.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "ids/generator.h"
#include "ids/ids.h"
#include "ids/layout.h"
#include "ids/settled.h"
#include "ids/shards.h"
#include "sequence.h"

#define LANGUAGE	"instaid"
#define DECLARATION "next_ids"
#define REFERENCE	"as next_ids(integer, regclass)"
#define NODE_DECLARATION "node shard, "

/* the hint of all errors about a declaration */
#define DECLARATION_HINT \
	"Use instaid.create_shard(), which declares a shard by CREATE FUNCTION next_ids(count integer, sequence regclass DEFAULT '...') RETURNS SETOF bigint LANGUAGE instaid STRICT COST 1 AS 'shard 5, epoch 2011-08-24 21:07:01.721+00'."

/*
 * A body has about 50 characters, and a default that is a constant of type
 * regclass about 150.  Nothing longer is read: a default could be nested too
 * deeply for the stack.
 */
#define MAX_TEXT_LENGTH		1000

/*
 * How many shards create_shards() creates in one transaction.  Each takes at
 * least three locks.  By default the lock table has room for 64 locks a
 * connection.
 */
#define SHARDS_PER_BATCH	512

/*
 * A declaration depends on the language twice: as every function does, and
 * with its shard ID plus 1 as the number of a sub-object.  Thus the index of
 * pg_depend finds the declaration of a shard ID.  Reading all of 8,192
 * declarations took 12 ms for each shard that was created.
 */
#define SUB_OBJECT(shard_id)	((shard_id) + 1)

/* how many functions a session remembers before it forgets all of them */
#define MAX_KNOWN_FUNCTIONS 1024

PG_FUNCTION_INFO_V1(instaid_call_handler);
PG_FUNCTION_INFO_V1(instaid_validator);
PG_FUNCTION_INFO_V1(instaid_settled_id_of_shard);
PG_FUNCTION_INFO_V1(instaid_list_shards);
PG_FUNCTION_INFO_V1(instaid_odd_declarations);
PG_FUNCTION_INFO_V1(instaid_lock_shard_id);
PG_FUNCTION_INFO_V1(instaid_find_conflicts);
PG_FUNCTION_INFO_V1(instaid_check_name);
PG_FUNCTION_INFO_V1(instaid_create_shards);

/*
 * The functions of a shard, by their parameters, which ALTER FUNCTION cannot
 * change
 */
typedef enum ShardFunction
{
	NEXT_IDS,					/* (integer, regclass): the declaration */
	NEXT_ID,					/* () */
	NEXT_ID_OF_SEQUENCE,		/* (regclass) */
	NO_SHARD_FUNCTION
} ShardFunction;

/* What a declaration says */
typedef struct Declaration
{
	Oid			sequence;
	int32		shard_id;		/* or NODE_SHARD */
	int64		epoch_ms;		/* since 1970 */
} Declaration;

/* A version of a row of pg_proc */
typedef struct RowVersion
{
	TransactionId xmin;
	ItemPointerData tid;
} RowVersion;

/* What the session remembers of one function */
typedef struct KnownFunction
{
	Oid			function;		/* hash key */
	uint64		generation;		/* proc_generation when it was read */
	RowVersion	version;
	Oid			declared_by;	/* the function, or the one it refers to */
	RowVersion	declared_version;
	Declaration declaration;
} KnownFunction;

/*
 * What a call keeps in fn_extra: a copy, because the hash table can be emptied
 */
typedef struct CachedCall
{
	uint64		generation;
	Declaration declaration;
} CachedCall;

static HTAB *known_functions = NULL;

/* the number of invalidations of pg_proc so far */
static uint64 proc_generation = 1;

static void
proc_callback(Datum arg pg_attribute_unused(),
			  SysCacheIdentifier cacheid pg_attribute_unused(),
			  uint32 hashvalue pg_attribute_unused())
{
	proc_generation++;
}

void
shards_init(void)
{
	CacheRegisterSyscacheCallback(PROCOID, proc_callback, (Datum) 0);
}

/* The name and the parameters of a function, for messages */
static char *
function_name(Form_pg_proc proc)
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

static ShardFunction
which_function(Form_pg_proc proc)
{
	const Oid  *types = proc->proargtypes.values;

	if (proc->pronargs == 2 && types[0] == INT4OID && types[1] == REGCLASSOID)
		return NEXT_IDS;
	if (proc->pronargs == 1 && types[0] == REGCLASSOID)
		return NEXT_ID_OF_SEQUENCE;
	if (proc->pronargs == 0)
		return NEXT_ID;
	return NO_SHARD_FUNCTION;
}

/*
 * Does a function in the language declare a shard?  Under another name it does
 * not: a schema is one shard, and has one shard ID.
 */
static bool
is_declaration(Form_pg_proc proc)
{
	return which_function(proc) == NEXT_IDS && strcmp(NameStr(proc->proname), DECLARATION) == 0;
}

/*
 * Reading a declaration
 *
 * These functions return NULL, or a sentence on what is wrong.  The validator
 * raises it as an error.  The list of shards leaves out the function, and
 * audit() reports it.
 */

/*
 * Read a number of this many digits, and move past it.  Returns -1 if there is
 * none.
 */
static int
read_digits(const char **input, int digits)
{
	int			value = 0;

	for (int i = 0; i < digits; i++)
	{
		if (**input < '0' || **input > '9')
			return -1;
		value = value * 10 + (*(*input)++ - '0');
	}
	return value;
}

/*
 * Read YYYY-MM-DD HH:MM:SS[.mmm]+00.  timestamptz_in() cannot be used, because
 * DateStyle and TimeZone would change the meaning.
 */
static bool
read_epoch(const char *input, int64 *epoch_ms)
{
	static const char format[] = "Y-M-D h:m:s";
	int			fields[6];
	int			ms = 0;
	int			n = 0;
	int64		seconds;

	for (const char *f = format; *f != '\0'; f++)
	{
		if (isalpha((unsigned char) *f))
		{
			fields[n] = read_digits(&input, *f == 'Y' ? 4 : 2);
			if (fields[n++] < 0)
				return false;
		}
		else if (*input++ != *f)
			return false;
	}
	if (*input == '.')
	{
		input++;
		ms = read_digits(&input, 3);
	}
	if (ms < 0 || strcmp(input, "+00") != 0)
		return false;
	if (fields[0] < 1 || fields[1] < 1 || fields[1] > MONTHS_PER_YEAR ||
		fields[2] < 1 || fields[2] > day_tab[isleap(fields[0])][fields[1] - 1] ||
		fields[3] >= HOURS_PER_DAY || fields[4] >= MINS_PER_HOUR || fields[5] >= SECS_PER_MINUTE)
		return false;

	seconds = (date2j(fields[0], fields[1], fields[2]) - UNIX_EPOCH_JDATE) * (int64) SECS_PER_DAY +
		fields[3] * SECS_PER_HOUR + fields[4] * SECS_PER_MINUTE + fields[5];
	*epoch_ms = seconds * 1000 + ms;
	return true;
}

/* Read "epoch ...", the end of a declaration.  This changes the text. */
static char *
read_epoch_clause(char *body, Declaration *declaration)
{
	char	   *word = body;

	body += strcspn(body, " ");
	if (*body != '\0')
		*body++ = '\0';
	if (strcmp(word, "epoch") != 0)
		return psprintf("The shard ID is followed by \"%s\"; it must be followed by \"epoch\".", word);
	if (!read_epoch(body, &declaration->epoch_ms))
		return psprintf("Epoch \"%s\" is not of the form YYYY-MM-DD HH:MM:SS+00 or YYYY-MM-DD HH:MM:SS.mmm+00.", body);
	return NULL;
}

/*
 * Read "shard N, epoch ..." or "node shard, epoch ...".  This changes the
 * text.
 */
static char *
read_body(char *body, Declaration *declaration)
{
	char	   *word;
	char	   *end;
	long		shard_id;

	/* people often write a body on a line of its own */
	body += strspn(body, " \t\r\n");
	end = body + strlen(body);
	while (end > body && strchr(" \t\r\n", end[-1]) != NULL)
		*--end = '\0';

	if (strncmp(body, NODE_DECLARATION, strlen(NODE_DECLARATION)) == 0)
	{
		declaration->shard_id = NODE_SHARD;
		body += strlen(NODE_DECLARATION);
		return read_epoch_clause(body, declaration);
	}

	word = body;
	body += strcspn(body, " ");
	if (*body != '\0')
		*body++ = '\0';
	if (strcmp(word, "shard") != 0)
		return psprintf("Its body begins with \"%s\"; it must begin with \"shard\".", word);

	errno = 0;
	shard_id = strtol(body, &end, 10);
	if (end == body || !isdigit((unsigned char) *body) || strncmp(end, ", ", 2) != 0)
		return psprintf("\"shard\" is followed by \"%s\"; it must be followed by a shard ID and a comma.", body);
	*end = '\0';
	if (errno != 0 || shard_id > MAX_SHARD_ID)
		return psprintf("Shard ID %s is out of range. A shard ID is between 0 and %d.", body, MAX_SHARD_ID);
	declaration->shard_id = shard_id;

	return read_epoch_clause(end + 2, declaration);
}

/* Read the default of the parameter "sequence". */
static char *
read_default(HeapTuple tuple, Declaration *declaration)
{
	bool		isnull;
	Datum		defaults = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proargdefaults, &isnull);
	List	   *list = NIL;
	Const	   *constant;

	if (!isnull && ((Form_pg_proc) GETSTRUCT(tuple))->pronargdefaults == 1 &&
		toast_raw_datum_size(defaults) < MAX_TEXT_LENGTH)
		list = (List *) stringToNode(TextDatumGetCString(defaults));
	if (list_length(list) == 1 && IsA(linitial(list), Const))
	{
		constant = linitial_node(Const, list);
		if (constant->consttype == REGCLASSOID && !constant->constisnull &&
			OidIsValid(DatumGetObjectId(constant->constvalue)))
		{
			declaration->sequence = DatumGetObjectId(constant->constvalue);
			return NULL;
		}
	}
	return pstrdup("The default of its parameter \"sequence\" must be a constant of type regclass.");
}

static char *
read_declaration(HeapTuple tuple, Declaration *declaration)
{
	char	   *fault = read_body(function_body(tuple), declaration);

	return fault ? fault : read_default(tuple, declaration);
}

/*
 * Calling
 */

/* The declaration of a schema, as a tuple that the caller releases; or NULL */
static HeapTuple
find_declaration(Oid schema)
{
	static const Oid types[] = {INT4OID, REGCLASSOID};

	return SearchSysCache3(PROCNAMEARGSNSP, CStringGetDatum(DECLARATION),
						   PointerGetDatum(buildoidvector(types, lengthof(types))),
						   ObjectIdGetDatum(schema));
}

static bool
is_reference(HeapTuple tuple)
{
	return strcmp(function_body(tuple), REFERENCE) == 0;
}

/*
 * Which version of its row a tuple is.  A row that the current transaction
 * wrote gets no valid version, and is read again at each invalidation: the
 * transaction can write several versions, and VACUUM FULL can put the last at
 * the place of the first.
 */
static RowVersion
row_version(HeapTuple tuple)
{
	RowVersion	version = {HeapTupleHeaderGetRawXmin(tuple->t_data), tuple->t_self};

	if (TransactionIdIsCurrentTransactionId(version.xmin))
		version.xmin = InvalidTransactionId;
	return version;
}

static bool
is_version(HeapTuple tuple, const RowVersion *version)
{
	return HeapTupleHeaderGetRawXmin(tuple->t_data) == version->xmin &&
		ItemPointerEquals(&tuple->t_self, unconstify(ItemPointerData *, &version->tid));
}

static pg_noinline void
declaration_error(HeapTuple tuple, const char *fault)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
			 errmsg("function %s does not declare a shard",
					function_name((Form_pg_proc) GETSTRUCT(tuple))),
			 errdetail_internal("%s", fault),
			 errhint(DECLARATION_HINT)));
}

/* The declaration that a function refers to, or an error if there is none */
static HeapTuple
referenced_declaration(HeapTuple tuple)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	HeapTuple	declared = find_declaration(proc->pronamespace);

	if (!HeapTupleIsValid(declared) ||
		((Form_pg_proc) GETSTRUCT(declared))->prolang != proc->prolang)
	{
		/* no lock keeps another session from dropping the schema */
		char	   *schema = get_namespace_name(proc->pronamespace);

		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("schema %s does not declare a shard",
						schema ? quote_identifier(schema) : "?"),
				 errdetail("Function %s refers to %s(integer, regclass) in its own schema, in language %s.",
						   function_name(proc), DECLARATION, LANGUAGE),
				 errhint(DECLARATION_HINT)));
	}
	return declared;
}

/*
 * Read what a function declares, or the declaration that it refers to.
 *
 * ALTER FUNCTION does not run the validator.  Therefore this checks what ALTER
 * FUNCTION can break.
 */
static void
read_function(HeapTuple tuple, KnownFunction *known)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	HeapTuple	declared = tuple;
	char	   *fault;

	if (proc->provolatile != PROVOLATILE_VOLATILE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("function %s is not volatile", function_name(proc)),
				 errdetail("PostgreSQL could call it once for all rows of a statement, and each row needs its own ID."),
				 errhint("Use ALTER FUNCTION %s VOLATILE.", function_name(proc))));

	if (which_function(proc) != NEXT_IDS)
		declared = referenced_declaration(tuple);
	else if (!is_declaration(proc))
		declaration_error(tuple, "It is not named next_ids.");
	fault = read_declaration(declared, &known->declaration);
	if (fault)
		declaration_error(declared, fault);

	known->version = row_version(tuple);
	known->declared_by = ((Form_pg_proc) GETSTRUCT(declared))->oid;
	known->declared_version = row_version(declared);
	if (declared != tuple)
		ReleaseSysCache(declared);
}

/* Are a function and its declaration still those that were read? */
static bool
is_unchanged(const KnownFunction *known, HeapTuple tuple)
{
	HeapTuple	declared;
	bool		unchanged;

	if (!is_version(tuple, &known->version))
		return false;
	if (known->declared_by == known->function)
		return true;
	declared = SearchSysCache1(PROCOID, ObjectIdGetDatum(known->declared_by));
	if (!HeapTupleIsValid(declared))
		return false;
	unchanged = is_version(declared, &known->declared_version);
	ReleaseSysCache(declared);
	return unchanged;
}

/*
 * What a function declares, from the session's memory if that is still valid
 */
static pg_noinline void
look_up(Oid function, Declaration *declaration)
{
	uint64		generation_before = proc_generation;
	KnownFunction *known = NULL;

	if (known_functions != NULL)
		known = hash_search(known_functions, &function, HASH_FIND, NULL);
	if (known == NULL || known->generation != proc_generation)
	{
		HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));

		/* a cursor can outlive its function */
		if (!HeapTupleIsValid(tuple))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_FUNCTION),
					 errmsg("function with OID %u does not exist", function),
					 errdetail("It was dropped after the statement began.")));
		if (known == NULL || !is_unchanged(known, tuple))
		{
			KnownFunction fresh = {.function = function};

			read_function(tuple, &fresh);
			if (known_functions != NULL &&
				hash_get_num_entries(known_functions) >= MAX_KNOWN_FUNCTIONS)
			{
				hash_destroy(known_functions);
				known_functions = NULL;
			}
			if (known_functions == NULL)
			{
				HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(KnownFunction)};

				known_functions = hash_create("instaid functions", 16, &ctl,
											  HASH_ELEM | HASH_BLOBS);
			}
			known = hash_search(known_functions, &function, HASH_ENTER, NULL);
			*known = fresh;
		}
		known->generation = generation_before;
		ReleaseSysCache(tuple);
	}
	*declaration = known->declaration;
}

static pg_noinline void
null_error(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("arguments of a shard's functions must not be null"),
			 errdetail("The function has been altered to CALLED ON NULL INPUT."),
			 errhint("Use ALTER FUNCTION ... STRICT.")));
}

/* Copy into a call's fn_extra what its function declares. */
static pg_noinline CachedCall *
cache_call(FmgrInfo *flinfo)
{
	CachedCall *call = flinfo->fn_extra;
	uint64		generation_before = proc_generation;

	if (call == NULL)
		call = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(CachedCall));
	look_up(flinfo->fn_oid, &call->declaration);
	call->generation = generation_before;
	flinfo->fn_extra = call;
	return call;
}

/* The first call of next_ids(count integer, sequence regclass) */
static pg_noinline void
begin_next_ids(FunctionCallInfo fcinfo)
{
	Declaration declaration;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		null_error();
	look_up(fcinfo->flinfo->fn_oid, &declaration);
	ids_begin_set(fcinfo, PG_GETARG_OID(1), declaration.shard_id,
				  declaration.epoch_ms, PG_GETARG_INT32(0));
}

/*
 * The handler of the language returns the next ID, or IDs, of a declared
 * shard.
 *
 * The executor calls it directly for each row.  It uses the sequence of the
 * declaration, unless the caller passes one.
 */
Datum
instaid_call_handler(PG_FUNCTION_ARGS)
{
	CachedCall *call;
	Oid			sequence;

	if (fcinfo->flinfo->fn_retset)
	{
		if (SRF_IS_FIRSTCALL())
			begin_next_ids(fcinfo);
		return ids_return_next(fcinfo);
	}

	call = fcinfo->flinfo->fn_extra;
	if (unlikely(call == NULL || call->generation != proc_generation))
		call = cache_call(fcinfo->flinfo);

	sequence = call->declaration.sequence;
	if (PG_NARGS() > 0)
	{
		if (unlikely(PG_ARGISNULL(0)))
			null_error();
		sequence = PG_GETARG_OID(0);
	}
	PG_RETURN_INT64(ids_format(generator_take_tick(sequence), call->declaration.shard_id,
							   call->declaration.epoch_ms));
}

/* _check_name(what text, name text) -> void */
Datum
instaid_check_name(PG_FUNCTION_ARGS)
{
	check_object_name(text_to_cstring(PG_GETARG_TEXT_PP(0)),
					  text_to_cstring(PG_GETARG_TEXT_PP(1)));
	PG_RETURN_VOID();
}

/*
 * settled_id(schema_name text, wait boolean) -> bigint
 *
 * The ID is one of the sequence that the shard declares.
 */
Datum
instaid_settled_id_of_shard(PG_FUNCTION_ARGS)
{
	char	   *schema_name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	HeapTuple	tuple;
	Form_pg_proc proc;
	Declaration declaration;
	int64		id;

	check_object_name("schema", schema_name);
	tuple = find_declaration(LookupExplicitNamespace(schema_name, false));
	if (!HeapTupleIsValid(tuple) ||
		(proc = (Form_pg_proc) GETSTRUCT(tuple))->prolang != get_language_oid(LANGUAGE, false))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("schema %s is not a shard", quote_identifier(schema_name)),
				 errhint("instaid.shards lists the shards of this database.")));
	look_up(proc->oid, &declaration);
	ReleaseSysCache(tuple);

	if (declaration.shard_id == NODE_SHARD)
		declaration.shard_id = ids_node_shard_or_error();
	if (!settled_find_id(declaration.sequence, declaration.shard_id, declaration.epoch_ms,
						 PG_GETARG_BOOL(1), &id))
		PG_RETURN_NULL();
	PG_RETURN_INT64(id);
}

/*
 * Validating
 */

/*
 * Is a type bigint, or the type "id" of this schema, which is the extension's?
 */
static bool
is_id_type(Oid type, Oid schema)
{
	return type == INT8OID ||
		type == GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
								CStringGetDatum("id"), ObjectIdGetDatum(schema));
}

/* The name that create_shard() gives a function */
static const char *
proper_name(Form_pg_proc proc)
{
	return which_function(proc) == NEXT_IDS ? DECLARATION : "next_id";
}

static bool
has_proper_name(Form_pg_proc proc)
{
	return strcmp(NameStr(proc->proname), proper_name(proc)) == 0;
}

static bool
has_proper_attributes(Form_pg_proc proc)
{
	return proc->provolatile == PROVOLATILE_VOLATILE && proc->proisstrict &&
		proc->proparallel == PROPARALLEL_UNSAFE;
}

/*
 * Check what a function is, apart from its body.  In a restore, it may be
 * whatever ALTER FUNCTION makes of a function that was created properly: if one
 * function were refused, the tables whose default it is would not be restored.
 */
static void
check_signature(HeapTuple tuple, Oid schema)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	ShardFunction which = which_function(proc);

	if (which == NO_SHARD_FUNCTION || (check_function_bodies && !has_proper_name(proc)) ||
		proc->prokind != PROKIND_FUNCTION || proc->proretset != (which == NEXT_IDS) ||
		OidIsValid(proc->provariadic) || !is_id_type(proc->prorettype, schema))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("%s cannot be a function of a shard", function_name(proc)),
				 errdetail("A shard has next_ids(integer, regclass) RETURNS SETOF bigint, next_id() RETURNS bigint and next_id(regclass) RETURNS bigint. The type can be instaid.id instead of bigint."),
				 errhint("instaid.create_shard() creates all three.")));
	if (check_function_bodies && !has_proper_attributes(proc))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("function %s must be VOLATILE STRICT PARALLEL UNSAFE", function_name(proc)),
				 errdetail("It returns a new ID at each call, and null for a null."),
				 errhint("VOLATILE and PARALLEL UNSAFE are the defaults; add STRICT.")));
}

/*
 * Check the sequence of a declaration.  A sequence with another epoch is
 * refused, because IDs are unique for one sequence, epoch and shard ID.  A
 * declaration of a role without rights on the sequence does not count: every
 * role can write one.
 */
static void
check_sequence(HeapTuple tuple, const Declaration *declaration)
{
	Oid			language = ((Form_pg_proc) GETSTRUCT(tuple))->prolang;
	char	   *name = get_rel_name(declaration->sequence);
	Relation	depend;
	SysScanDesc scan;
	ScanKeyData key[2];
	HeapTuple	dependency;

	if (name == NULL || get_rel_relkind(declaration->sequence) != RELKIND_SEQUENCE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a sequence", name ? name : "?"),
				 errdetail("It is the default of the parameter \"sequence\" of %s.",
						   function_name((Form_pg_proc) GETSTRUCT(tuple))),
				 errhint("Create a sequence with CREATE SEQUENCE, and use it as the default.")));
	if (pg_class_aclcheck(declaration->sequence, GetUserId(), SEQUENCE_RIGHTS) != ACLCHECK_OK)
		sequence_no_permission_error(get_namespace_name(get_rel_namespace(declaration->sequence)), name);

	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(declaration->sequence));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, lengthof(key), key);
	while (HeapTupleIsValid(dependency = systable_getnext(scan)))
	{
		Form_pg_depend row = (Form_pg_depend) GETSTRUCT(dependency);
		HeapTuple	other;
		Form_pg_proc proc;
		Declaration others;

		if (row->classid != ProcedureRelationId)
			continue;
		other = SearchSysCache1(PROCOID, ObjectIdGetDatum(row->objid));
		if (!HeapTupleIsValid(other))
			continue;
		proc = (Form_pg_proc) GETSTRUCT(other);
		if (proc->prolang == language && is_declaration(proc) &&
			read_declaration(other, &others) == NULL &&
			others.epoch_ms != declaration->epoch_ms &&
			pg_class_aclcheck(declaration->sequence, proc->proowner, SEQUENCE_RIGHTS) == ACLCHECK_OK)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("sequence \"%s\" serves another epoch", name),
					 errdetail("Function %s uses it with another epoch than function %s. IDs of two epochs on one sequence can repeat.",
							   function_name(proc), function_name((Form_pg_proc) GETSTRUCT(tuple))),
					 errhint("Declare the shard with the same epoch, or with a sequence of its own.")));
		ReleaseSysCache(other);
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
}

/*
 * Record that a function depends on another object.  Every role can call the
 * validator for any function.  Only the transaction that creates the function
 * records anything.
 */
static void
record_dependency(HeapTuple tuple, Oid class, Oid object, int32 sub_object)
{
	ObjectAddress function;
	ObjectAddress referenced;

	if (!TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetRawXmin(tuple->t_data)))
		return;
	ObjectAddressSet(function, ProcedureRelationId, ((Form_pg_proc) GETSTRUCT(tuple))->oid);
	ObjectAddressSubSet(referenced, class, object, sub_object);
	recordDependencyOn(&function, &referenced, DEPENDENCY_NORMAL);
}

/*
 * Refuse CREATE OR REPLACE with another epoch, which could repeat IDs of the
 * sequence.  The snapshot of the statement still sees the old row.
 */
static void
check_replaced(HeapTuple tuple, const Declaration *declaration)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	Relation	procs;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	old;
	Declaration replaced;

	if (!ActiveSnapshotSet() ||
		!TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetRawXmin(tuple->t_data)))
		return;
	procs = table_open(ProcedureRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_proc_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(proc->oid));
	scan = systable_beginscan(procs, ProcedureOidIndexId, true, GetActiveSnapshot(), 1, &key);
	old = systable_getnext(scan);
	if (HeapTupleIsValid(old) &&
		((Form_pg_proc) GETSTRUCT(old))->prolang == proc->prolang &&
		which_function((Form_pg_proc) GETSTRUCT(old)) == NEXT_IDS &&
		read_declaration(old, &replaced) == NULL &&
		replaced.sequence == declaration->sequence &&
		replaced.epoch_ms != declaration->epoch_ms)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("function %s already declares another epoch", function_name(proc)),
				 errdetail("Its sequence has made IDs of that epoch. IDs of two epochs on one sequence can repeat."),
				 errhint("Keep the epoch, or declare another sequence.")));
	systable_endscan(scan);
	table_close(procs, AccessShareLock);
}

/*
 * Check the reference of a function to the declaration of its schema, and
 * record it.
 */
static void
check_reference(HeapTuple tuple)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	HeapTuple	declared;

	if (!is_reference(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("function %s does not refer to a declaration", function_name(proc)),
				 errdetail("Its body is \"%s\"; it must be \"%s\".", function_body(tuple), REFERENCE),
				 errhint("instaid.create_shard() creates all functions of a shard.")));

	declared = find_declaration(proc->pronamespace);
	if (!HeapTupleIsValid(declared))
	{
		if (check_function_bodies)
			(void) referenced_declaration(tuple);
		return;
	}

	/* so that pg_dump dumps the declaration first */
	record_dependency(tuple, ProcedureRelationId, ((Form_pg_proc) GETSTRUCT(declared))->oid, 0);
	ReleaseSysCache(declared);
}

/*
 * The validator of the language refuses what is not a function of a shard.
 *
 * A restore turns check_function_bodies off, because other objects can be
 * missing.  Then the name and the attributes of the function, the sequence, its
 * other declarations, and the existence of a declaration are not checked.
 */
Datum
instaid_validator(PG_FUNCTION_ARGS)
{
	Oid			function = PG_GETARG_OID(0);
	HeapTuple	tuple;

	if (!CheckFunctionValidatorAccess(fcinfo->flinfo->fn_oid, function))
		PG_RETURN_VOID();
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);

	check_signature(tuple, get_func_namespace(fcinfo->flinfo->fn_oid));
	if (which_function((Form_pg_proc) GETSTRUCT(tuple)) == NEXT_IDS)
	{
		Declaration declaration;
		char	   *fault = read_declaration(tuple, &declaration);

		if (fault)
			declaration_error(tuple, fault);
		if (declaration.shard_id == NODE_SHARD &&
			((Form_pg_proc) GETSTRUCT(tuple))->pronamespace != get_func_namespace(fcinfo->flinfo->fn_oid))
			declaration_error(tuple, "Only the extension itself declares the shard of the node.");
		if (check_function_bodies)
		{
			check_sequence(tuple, &declaration);
			check_replaced(tuple, &declaration);
		}
		if (declaration.shard_id != NODE_SHARD)
			record_dependency(tuple, LanguageRelationId, ((Form_pg_proc) GETSTRUCT(tuple))->prolang,
							  SUB_OBJECT(declaration.shard_id));
	}
	else
		check_reference(tuple);

	ReleaseSysCache(tuple);
	PG_RETURN_VOID();
}

/*
 * Listing
 */

/*
 * Make a row from a function in the language, in the current memory context.
 * Returns false if the function gets no row.
 */
typedef bool (*RowMaker) (HeapTuple tuple, Datum *values, bool *nulls);

/* the most columns of such a row */
#define MAX_COLUMNS 5

/*
 * Return a row for each function in the language that gets one.
 *
 * This reads the catalogs as they are now, without the transaction's snapshot:
 * a session that waited for another create_shard() must see its shard.
 */
static Datum
list_functions(FunctionCallInfo fcinfo, RowMaker make_row)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext row_context;
	Relation	procs;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	InitMaterializedSRF(fcinfo, 0);
	row_context = AllocSetContextCreate(CurrentMemoryContext, "instaid declaration",
										ALLOCSET_SMALL_SIZES);

	procs = table_open(ProcedureRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_proc_prolang, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(get_language_oid(LANGUAGE, false)));
	scan = systable_beginscan(procs, InvalidOid, false, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		MemoryContext query_context = MemoryContextSwitchTo(row_context);
		Datum		values[MAX_COLUMNS];
		bool		nulls[MAX_COLUMNS] = {false};

		if (make_row(tuple, values, nulls))
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		MemoryContextSwitchTo(query_context);
		MemoryContextReset(row_context);
	}
	systable_endscan(scan);
	table_close(procs, AccessShareLock);
	MemoryContextDelete(row_context);
	return (Datum) 0;
}

/* The name of a schema; false if another session has dropped the schema. */
static bool
get_schema_name(Oid schema, Name name)
{
	char	   *found = OidIsValid(schema) ? get_namespace_name(schema) : NULL;

	if (found == NULL)
		return false;
	namestrcpy(name, found);
	pfree(found);
	return true;
}

static bool
shard_row(HeapTuple tuple, Datum *values, bool *nulls pg_attribute_unused())
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	Declaration declaration;
	Name		schema_name = palloc(sizeof(NameData));

	if (!is_declaration(proc) || isAnyTempNamespace(proc->pronamespace) ||
		read_declaration(tuple, &declaration) != NULL ||
		!get_schema_name(proc->pronamespace, schema_name))
		return false;
	if (declaration.shard_id == NODE_SHARD)
		declaration.shard_id = ids_node_shard();
	if (declaration.shard_id == NODE_SHARD)
		return false;			/* this server has none */

	values[0] = NameGetDatum(schema_name);
	values[1] = Int32GetDatum(declaration.shard_id);
	values[2] = TimestampTzGetDatum(ms_timestamp(declaration.epoch_ms));
	values[3] = ObjectIdGetDatum(declaration.sequence);
	values[4] = ObjectIdGetDatum(proc->oid);
	return true;
}

/*
 * list_shards()
 *	-> setof (schema_name name, shard_id integer, epoch timestamptz,
 *			  sequence regclass, declaration oid)
 *
 * One row for each declaration that is not temporary.  The shard of the node
 * has one if its shard ID is set.
 */
Datum
instaid_list_shards(PG_FUNCTION_ARGS)
{
	return list_functions(fcinfo, shard_row);
}

/*
 * What is wrong with a function of a shard since it was created; or NULL.  All
 * of this can come of ALTER FUNCTION or of DROP.
 */
static const char *
find_fault(HeapTuple tuple)
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	Declaration declaration;
	HeapTuple	declared;
	const char *fault;

	if (!has_proper_name(proc))
		return psprintf("is not named %s%s", proper_name(proc),
						which_function(proc) == NEXT_IDS ? ", and declares no shard" : "");
	if (proc->provolatile != PROVOLATILE_VOLATILE)
		return "does not work: it is not VOLATILE";
	if (!proc->proisstrict)
		return "fails for a null: it is not STRICT";
	if (proc->proparallel != PROPARALLEL_UNSAFE)
		return "can fail in a parallel query: it is not PARALLEL UNSAFE";
	if (which_function(proc) == NEXT_IDS)
	{
		fault = read_declaration(tuple, &declaration);
		if (fault != NULL)
			return psprintf("does not work: %s", fault);
		if (get_rel_relkind(declaration.sequence) != RELKIND_SEQUENCE)
			return "does not work: its sequence does not exist";
		if (declaration.shard_id == NODE_SHARD && ids_refused_node_shard() != NULL)
			return "does not work: this session was started with a wrong instaid.node_shard_id";
		return NULL;
	}

	declared = find_declaration(proc->pronamespace);
	if (!HeapTupleIsValid(declared))
		return "does not work: it refers to next_ids(integer, regclass), which does not exist";
	fault = ((Form_pg_proc) GETSTRUCT(declared))->prolang == proc->prolang ? NULL :
		"does not work: it refers to next_ids(integer, regclass), which does not declare a shard";
	ReleaseSysCache(declared);
	return fault;
}

static bool
fault_row(HeapTuple tuple, Datum *values, bool *nulls pg_attribute_unused())
{
	const char *fault = find_fault(tuple);

	if (fault == NULL)
		return false;
	values[0] = ObjectIdGetDatum(((Form_pg_proc) GETSTRUCT(tuple))->oid);
	values[1] = CStringGetTextDatum(fault);
	return true;
}

/*
 * _odd_declarations() -> setof (function oid, problem text)
 *
 * The functions in the language with a problem.  They raise no error,
 * because a function of one role must not keep other roles from reading the
 * list.
 */
Datum
instaid_odd_declarations(PG_FUNCTION_ARGS)
{
	return list_functions(fcinfo, fault_row);
}

/*
 * Creating
 */

/* Check that the current role may create this schema, or objects in it. */
static void
check_may_create(const char *schema_name)
{
	Oid			schema = get_namespace_oid(schema_name, true);

	if (OidIsValid(schema) && isAnyTempNamespace(schema))
		ereport(ERROR,
				(errcode(ERRCODE_RESERVED_NAME),
				 errmsg("temporary schema %s cannot be a shard", quote_identifier(schema_name)),
				 errdetail("PostgreSQL drops the objects in it when the session ends."),
				 errhint("Choose another schema.")));
	if (OidIsValid(schema))
	{
		if (object_aclcheck(NamespaceRelationId, schema, GetUserId(), ACL_CREATE) != ACLCHECK_OK)
			aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SCHEMA, schema_name);
	}
	else if (object_aclcheck(DatabaseRelationId, MyDatabaseId, GetUserId(), ACL_CREATE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_DATABASE, get_database_name(MyDatabaseId));
}

/*
 * _lock_shard_id(schema_name text, shard_id integer) -> void
 *
 * Keep other sessions from creating a shard with this ID until the transaction
 * ends.  The lock is on the language, with the shard ID as its sub-object.
 * Other roles wait for it, and therefore only a role that may create the shard
 * gets it.
 */
Datum
instaid_lock_shard_id(PG_FUNCTION_ARGS)
{
	int32		shard_id = PG_GETARG_INT32(1);

	check_may_create(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	LockDatabaseObject(LanguageRelationId, get_language_oid(LANGUAGE, false),
					   (uint16) SUB_OBJECT(shard_id), ShareUpdateExclusiveLock);
	PG_RETURN_VOID();
}

/*
 * The declaration with this shard ID, or, with or_above, the one with the
 * lowest ID that is not below it; as a tuple that the caller releases.  NULL
 * if there is none.
 */
static HeapTuple
find_shard_id(int32 shard_id, bool or_above)
{
	HeapTuple	found = NULL;
	Relation	depend;
	SysScanDesc scan;
	ScanKeyData key[3];
	HeapTuple	dependency;

	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(LanguageRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(get_language_oid(LANGUAGE, false)));
	ScanKeyInit(&key[2], Anum_pg_depend_refobjsubid,
				or_above ? BTGreaterEqualStrategyNumber : BTEqualStrategyNumber,
				or_above ? F_INT4GE : F_INT4EQ, Int32GetDatum(SUB_OBJECT(shard_id)));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, lengthof(key), key);
	while (found == NULL && HeapTupleIsValid(dependency = systable_getnext(scan)))
	{
		found = SearchSysCache1(PROCOID, ObjectIdGetDatum(((Form_pg_depend) GETSTRUCT(dependency))->objid));
		/* it can have been renamed */
		if (found != NULL &&
			(!is_declaration((Form_pg_proc) GETSTRUCT(found)) ||
			 isAnyTempNamespace(((Form_pg_proc) GETSTRUCT(found))->pronamespace)))
		{
			ReleaseSysCache(found);
			found = NULL;
		}
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return found;
}

/* A function of the schema that has the signature of one that a shard gets */
static Oid
find_routine(Oid schema)
{
	static const struct
	{
		const char *name;
		int			nargs;
		Oid			types[2];
	}			signatures[] = {
		{DECLARATION, 2, {INT4OID, REGCLASSOID}},
		{DECLARATION, 1, {INT4OID}},
		/* the function that is adopted comes last: it hides none of the others */
		{"next_id", 1, {REGCLASSOID}},
		{"next_id", 0, {InvalidOid}},
	};
	Oid			found = InvalidOid;

	for (size_t i = 0; i < lengthof(signatures) && !OidIsValid(found); i++)
		found = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
								CStringGetDatum(signatures[i].name),
								PointerGetDatum(buildoidvector(signatures[i].types, signatures[i].nargs)),
								ObjectIdGetDatum(schema));
	return found;
}

/*
 * _find_conflicts(schema_name text, shard_id integer)
 *	-> (taken_by name, routine oid, other_schema name, other_epoch timestamptz)
 *
 * What a new shard conflicts with: the schema that has its ID already; a
 * function in its schema with the signature of one of the shard's functions;
 * and the schema and the epoch of another shard, whose epoch should be the
 * same.
 *
 * Each is looked up by an index, because thousands of shards are created one
 * by one.
 */
Datum
instaid_find_conflicts(PG_FUNCTION_ARGS)
{
	Oid			schema = get_namespace_oid(text_to_cstring(PG_GETARG_TEXT_PP(0)), true);
	HeapTuple	taken_by = find_shard_id(PG_GETARG_INT32(1), false);
	HeapTuple	other = find_shard_id(0, true);
	Oid			routine = OidIsValid(schema) ? find_routine(schema) : InvalidOid;
	TupleDesc	tupdesc;
	Datum		values[4] = {0};
	bool		nulls[4] = {true, true, true, true};
	NameData	names[2];
	Declaration declaration;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	ids_check_node_shard();

	if (taken_by != NULL)
	{
		nulls[0] = !get_schema_name(((Form_pg_proc) GETSTRUCT(taken_by))->pronamespace, &names[0]);
		values[0] = NameGetDatum(&names[0]);
		ReleaseSysCache(taken_by);
	}
	else if (PG_GETARG_INT32(1) == ids_node_shard())
	{
		nulls[0] = !get_schema_name(get_func_namespace(fcinfo->flinfo->fn_oid), &names[0]);
		values[0] = NameGetDatum(&names[0]);
	}
	if (OidIsValid(routine))
	{
		nulls[1] = false;
		values[1] = ObjectIdGetDatum(routine);
	}
	if (other != NULL)
	{
		if (read_declaration(other, &declaration) == NULL &&
			get_schema_name(((Form_pg_proc) GETSTRUCT(other))->pronamespace, &names[1]))
		{
			nulls[2] = nulls[3] = false;
			values[2] = NameGetDatum(&names[1]);
			values[3] = TimestampTzGetDatum(ms_timestamp(declaration.epoch_ms));
		}
		ReleaseSysCache(other);
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), values, nulls)));
}

/*
 * create_shards(format text, first integer, last integer, epoch timestamptz)
 *
 * A procedure that creates many shards, and commits after each batch, because
 * one transaction cannot hold the locks of 8,192 shards.  It skips shards that
 * exist: after an interrupted call, the same call creates the rest.  In a
 * transaction block, where it cannot commit, it creates one batch at most.
 */
Datum
instaid_create_shards(PG_FUNCTION_ARGS)
{
	static const Oid types[] = {TEXTOID, INT4OID, INT4OID, TIMESTAMPTZOID};
	bool		in_block = castNode(CallContext, fcinfo->context)->atomic;
	int32		first;
	int32		last;
	Datum		args[lengthof(types)];

	for (size_t i = 0; i < lengthof(types); i++)
	{
		if (PG_ARGISNULL(i))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("arguments of create_shards() must not be null"),
					 errdetail("Argument %zu is null.", i + 1)));
		args[i] = PG_GETARG_DATUM(i);
	}
	first = PG_GETARG_INT32(1);
	last = PG_GETARG_INT32(2);
	if (first < 0 || last > MAX_SHARD_ID || first > last)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("shard IDs %d to %d are out of range", first, last),
				 errdetail("Shard IDs are between 0 and %d, and the first must not be above the last.",
						   MAX_SHARD_ID)));
	if (in_block && last - first >= SHARDS_PER_BATCH)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("create_shards() cannot create %d shards inside a transaction block",
						last - first + 1),
				 errdetail("It commits after each %d shards, because one transaction cannot hold the locks of all of them.",
						   SHARDS_PER_BATCH),
				 errhint("Call it outside a transaction block, or for at most %d shards.",
						 SHARDS_PER_BATCH)));

	SPI_connect_ext(in_block ? 0 : SPI_OPT_NONATOMIC);
	for (int32 next = first; next <= last; next += SHARDS_PER_BATCH)
	{
		int32		batch_end = Min(next + SHARDS_PER_BATCH - 1, last);

		args[1] = Int32GetDatum(next);
		args[2] = Int32GetDatum(batch_end);
		if (SPI_execute_with_args("SELECT instaid._create_batch($1, $2, $3, $4)",
								  lengthof(types), (Oid *) types, args, NULL,
								  false, 0) != SPI_OK_SELECT)
			elog(ERROR, "could not call _create_batch()");
		if (!in_block)
			SPI_commit();
		ereport(NOTICE,
				(errmsg("shards %d to %d of %d to %d exist now", next, batch_end, first, last)));
	}
	SPI_finish();
	PG_RETURN_VOID();
}
