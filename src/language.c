/*
 * The language instaid, whose functions declare a shard: a call of one of them, and what a session
 * remembers of their declarations.  It reads one once, and again when any function has changed.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "funcapi.h"
#include "utils/acl.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "common.h"
#include "ids.h"
#include "sequence.h"

/* how many functions a session remembers before it forgets all of them */
#define MAX_KNOWN_FUNCTIONS 1024

PG_FUNCTION_INFO_V1(instaid_call_handler);

/* What the session remembers of one function */
typedef struct KnownFunction
{
	Oid			function;		/* hash key */
	Declaration declaration;
} KnownFunction;

/* What a call keeps in fn_extra: a copy, because the hash table can be emptied */
typedef struct CachedCall
{
	uint64		generation;		/* call_generation when it was read, or 0 */
	Declaration declaration;
} CachedCall;

/* the functions that were read since an invalidation, and how many there were by then */
static HTAB *known_functions = NULL;
static uint64 known_since = 0;

/* the declared sequence that was locked last in this transaction */
static Oid	locked_sequence = InvalidOid;

/* how many invalidations of pg_proc there were, and one more */
uint64		function_invalidations = 1;

/* changes whenever a function, a sequence or the transaction does */
static uint64 call_generation = 1;

static void
xact_callback(XactEvent event pg_attribute_unused(), void *arg pg_attribute_unused())
{
	locked_sequence = InvalidOid;
	call_generation++;
}

static void
syscache_callback(Datum arg pg_attribute_unused(), SysCacheIdentifier cacheid,
				  uint32 hashvalue pg_attribute_unused())
{
	if (cacheid == PROCOID)
		function_invalidations++;
	call_generation++;
}

void
language_init(void)
{
	CacheRegisterSyscacheCallback(PROCOID, syscache_callback, (Datum) 0);
	CacheRegisterSyscacheCallback(SEQRELID, syscache_callback, (Datum) 0);
	RegisterXactCallback(xact_callback, NULL);
}

/* Read what a function declares, or raise an error that says why it makes no IDs. */
static void
read_function(Oid function, Declaration *declaration)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	const char *fault;

	/* a cursor can outlive its function */
	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("function with OID %u does not exist", function),
				 errdetail("It was dropped after the statement began.")));
	fault = read_shard_function(tuple, declaration);
	if (fault)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("function %s makes no IDs",
						shard_function_name((Form_pg_proc) GETSTRUCT(tuple))),
				 errdetail_internal("%s", fault),
				 errhint("ALTER FUNCTION or a DROP has changed what instaid.create_shard() created; instaid.audit() says what to do.")));
	ReleaseSysCache(tuple);
}

/* What a function declares, from the session's memory if no function has changed */
static pg_noinline void
look_up(Oid function, Declaration *declaration)
{
	uint64		invalidations_before = function_invalidations;
	KnownFunction *known;

	if (known_functions == NULL || known_since != function_invalidations ||
		hash_get_num_entries(known_functions) >= MAX_KNOWN_FUNCTIONS)
	{
		HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(KnownFunction)};

		if (known_functions != NULL)
			hash_destroy(known_functions);
		known_functions = NULL; /* in case of an error below */
		known_functions = hash_create("instaid functions", 16, &ctl, HASH_ELEM | HASH_BLOBS);
		known_since = function_invalidations;
	}
	known = hash_search(known_functions, &function, HASH_FIND, NULL);
	if (known != NULL)
	{
		*declaration = known->declaration;
		return;
	}
	read_function(function, declaration);
	/* what changed meanwhile can have been read before */
	if (function_invalidations == invalidations_before)
	{
		known = hash_search(known_functions, &function, HASH_ENTER, NULL);
		known->declaration = *declaration;
	}
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

/*
 * Refuse a sequence that is not the shard's, if the function has the rights of its owner.  Any caller
 * can pass any sequence.
 */
static void
check_passed(Oid function, Oid passed, const Declaration *declaration)
{
	static Oid	checked_function = InvalidOid;
	static Oid	checked_sequence = InvalidOid;
	static uint64 checked_generation = 0;
	uint64		generation_before = call_generation;
	Oid			schema;
	HeapTuple	tuple;

	if (checked_generation == call_generation && checked_function == function &&
		checked_sequence == passed)
		return;
	schema = get_func_namespace(function);
	if (!is_sequence_of_shard(passed, schema, declaration))
	{
		char	   *name;

		tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
		name = HeapTupleIsValid(tuple) ?
			shard_function_name((Form_pg_proc) GETSTRUCT(tuple)) : "?";
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("sequence %s is not one of this shard", sequence_qualified_name(passed)),
				 errdetail("Function %s is SECURITY DEFINER. It takes IDs of the declared sequence, and of those that defaults of its owner's tables pass to next_id(regclass).",
						   name),
				 errhint("Let a column of such a table default to next_id() of this sequence, or use ALTER FUNCTION %s SECURITY INVOKER.",
						 name)));
	}
	checked_function = function;
	checked_sequence = passed;
	checked_generation = generation_before;
}

/*
 * Lock the declared sequence before it or the passed one, unless that is invalid, gives an ID, and
 * refuse the call if the shard is frozen.
 *
 * freeze_shard() and renumber_shard() lock it first, too.  Thus they wait for all who have taken
 * IDs of the shard, also by sequences that they do not know, and whoever waits for them sees what
 * they have left: the declaration is read again after the lock.
 *
 * It is not locked if the passed one has another owner, or the declaration's owner has no rights on
 * it.  Otherwise a role could declare any relation, and keep its owner waiting as long as it likes.
 *
 * Returns whether the result may be kept for further calls of the transaction.
 */
static bool
lock_declared(Oid function, Oid passed, Declaration *declaration)
{
	bool		is_ours = true;

	if (OidIsValid(passed) && declaration->is_definer)
		check_passed(function, passed, declaration);

	while (is_ours && declaration->sequence != locked_sequence)
	{
		Oid			sequence = declaration->sequence;

		is_ours = !OidIsValid(passed) ||
			(get_rel_relkind(sequence) == RELKIND_SEQUENCE &&
			 relation_owner(passed) == relation_owner(sequence) &&
			 has_privs_of_role(declaration->owner, relation_owner(sequence)));
		if (OidIsValid(passed) && is_ours)
		{
			sequence_check_rights(passed, SEQUENCE_RIGHTS);
			sequence_lock(sequence);
		}
		else
			generator_lock(OidIsValid(passed) ? passed : sequence);
		if (is_ours)
			locked_sequence = sequence;
		look_up(function, declaration);
	}
	if (OidIsValid(passed))
		check_not_frozen(declaration->sequence);
	/* the next call can pass another one */
	return is_ours && !(OidIsValid(passed) && declaration->is_definer);
}

/* Copy into a call's fn_extra what its function declares. */
static pg_noinline CachedCall *
cache_call(FunctionCallInfo fcinfo)
{
	FmgrInfo   *flinfo = fcinfo->flinfo;
	CachedCall *call = flinfo->fn_extra;
	uint64		generation_before = call_generation;
	Oid			passed = InvalidOid;

	if (PG_NARGS() > 0)
	{
		if (PG_ARGISNULL(0))
			null_error();
		passed = PG_GETARG_OID(0);
	}
	if (call == NULL)
		call = MemoryContextAllocZero(flinfo->fn_mcxt, sizeof(CachedCall));
	call->generation = 0;
	flinfo->fn_extra = call;
	look_up(flinfo->fn_oid, &call->declaration);

	if (lock_declared(flinfo->fn_oid, passed, &call->declaration))
		call->generation = generation_before;
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
	(void) lock_declared(fcinfo->flinfo->fn_oid, PG_GETARG_OID(1), &declaration);
	begin_ids(fcinfo, PG_GETARG_OID(1), declaration.shard_id,
			  declaration.epoch_ms, PG_GETARG_INT32(0));
}

/* The next ID, or IDs, of a declared shard.  The executor calls this directly for each row. */
Datum
instaid_call_handler(PG_FUNCTION_ARGS)
{
	CachedCall *call;
	Oid			sequence;

	if (fcinfo->flinfo->fn_retset)
	{
		if (SRF_IS_FIRSTCALL())
			begin_next_ids(fcinfo);
		return return_next_id(fcinfo);
	}

	call = fcinfo->flinfo->fn_extra;
	if (unlikely(call == NULL || call->generation != call_generation))
		call = cache_call(fcinfo);

	sequence = call->declaration.sequence;
	if (PG_NARGS() > 0)
	{
		if (unlikely(PG_ARGISNULL(0)))
			null_error();
		sequence = PG_GETARG_OID(0);
	}
	PG_RETURN_INT64(id_of_tick(generator_take_tick(sequence), call->declaration.shard_id,
							   call->declaration.epoch_ms));
}
