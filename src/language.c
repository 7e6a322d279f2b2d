/*
 * The language instaid, whose functions declare a shard: a call of one of them, and what a session
 * remembers of their declarations.
 *
 * An INSERT that is not prepared plans its defaults each time.  To read the declaration for each
 * takes 23 % more instructions (103,454 instead of 84,043).  Therefore a session remembers the
 * functions that it has called, until any function or sequence changes.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "commands/proclang.h"
#include "funcapi.h"
#include "utils/acl.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "common.h"
#include "declaration.h"
#include "generator.h"
#include "id_sequence.h"
#include "language.h"
#include "next_id.h"
#include "sequence.h"
#include "shard_sequences.h"

/* how many functions a session remembers before it forgets all of them */
#define MAX_FUNCTIONS 1024

PG_FUNCTION_INFO_V1(instaid_call_handler);

/* What the session remembers of one function */
typedef struct ShardFunction
{
	Oid			oid;			/* hash key */
	uint64		invalidations;	/* how many there had been when it was read,
								 * or 0 */
	Declaration declaration;

	/*
	 * What the last call was checked for, and locked in: its transaction, the
	 * sequence that it passes, or InvalidOid, and what was declared.
	 */
	LocalTransactionId lxid;
	Oid			passed;
	Declaration checked;
	Oid			sequence;		/* of which it takes IDs */
} ShardFunction;

static HTAB *functions = NULL;

/* how many invalidations there were of functions and of sequences' options, and one more */
static uint64 invalidations = 1;

/* The function that was called last; NULL after the transaction has ended, or an invalidation */
static ShardFunction *current = NULL;

static void
xact_callback(XactEvent event pg_attribute_unused(), void *arg pg_attribute_unused())
{
	current = NULL;
}

static void
syscache_callback(Datum arg pg_attribute_unused(), SysCacheIdentifier cacheid pg_attribute_unused(),
				  uint32 hashvalue pg_attribute_unused())
{
	invalidations++;
	current = NULL;
}

static void
create_hash(void)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(ShardFunction)};

	functions = hash_create("instaid functions", 16, &ctl, HASH_ELEM | HASH_BLOBS);
}

void
language_init(void)
{
	create_hash();
	CacheRegisterSyscacheCallback(PROCOID, syscache_callback, (Datum) 0);
	CacheRegisterSyscacheCallback(SEQRELID, syscache_callback, (Datum) 0);
	RegisterXactCallback(xact_callback, NULL);
}

/* Read what a function declares, or raise an error that says why it makes no IDs. */
static void
read_function(Oid oid, Declaration *declaration)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	const char *fault;

	/* a cursor can outlive its function */
	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("function with OID %u does not exist", oid),
				 errdetail("It was dropped after the statement began.")));
	if (((Form_pg_proc) GETSTRUCT(tuple))->prolang != get_language_oid(LANGUAGE, true))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("function %s is not in language %s",
						shard_function_name((Form_pg_proc) GETSTRUCT(tuple)), LANGUAGE),
				 errhint("Call next_id() or next_ids() of a shard.")));
	fault = shard_function_read(tuple, declaration);
	if (fault)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("function %s makes no IDs",
						shard_function_name((Form_pg_proc) GETSTRUCT(tuple))),
				 errdetail_internal("%s", fault),
				 errhint("ALTER FUNCTION or a DROP has changed what instaid.create_shard() created; instaid.audit() says what to do.")));
	ReleaseSysCache(tuple);
}

/* Find a function, and read it unless it was read since the last invalidation. */
static ShardFunction *
find_function(Oid oid)
{
	uint64		invalidations_before = invalidations;
	ShardFunction *function;
	bool		found;

	if (hash_get_num_entries(functions) >= MAX_FUNCTIONS &&
		hash_search(functions, &oid, HASH_FIND, NULL) == NULL)
	{
		HTAB	   *forgotten = functions;

		/* an error must not leave what is freed */
		current = NULL;
		create_hash();
		hash_destroy(forgotten);
	}
	function = hash_search(functions, &oid, HASH_ENTER, &found);
	if (!found)
		memset((char *) function + sizeof(Oid), 0, sizeof(ShardFunction) - sizeof(Oid));
	if (function->invalidations != invalidations)
	{
		function->invalidations = 0;	/* in case of an error below */
		read_function(oid, &function->declaration);
		function->invalidations = invalidations_before;
	}
	return function;
}

pg_noreturn static void
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
check_passed(const ShardFunction *function, Oid passed)
{
	HeapTuple	tuple;
	char	   *name;

	if (shard_has_sequence(get_func_namespace(function->oid), &function->declaration, passed))
		return;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function->oid));
	name = HeapTupleIsValid(tuple) ? shard_function_name((Form_pg_proc) GETSTRUCT(tuple)) : "?";
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("sequence %s is not one of this shard", sequence_qualified_name(passed)),
			 errdetail("Function %s is SECURITY DEFINER. It takes IDs of the declared sequence, and of those that defaults of its owner's tables pass to next_id(regclass).",
					   name),
			 errhint("Let a column of such a table default to next_id() of this sequence, or use ALTER FUNCTION %s SECURITY INVOKER.",
					 name)));
}

/*
 * May a call that passes a sequence lock the declared one?  Otherwise a role could declare any
 * relation, and keep its owner waiting as long as it likes.
 */
static bool
may_lock_declared(const Declaration *declaration, Oid passed)
{
	Oid			owner = relation_owner(declaration->sequence);

	return get_rel_relkind(declaration->sequence) == RELKIND_SEQUENCE &&
		relation_owner(passed) == owner && has_privs_of_role(declaration->owner, owner);
}

/* Has this transaction made the checks of such a call?  The declaration can have changed since. */
static bool
is_checked(const ShardFunction *function, Oid passed)
{
	return function->lxid == MyLocalTransactionId && function->passed == passed &&
		function->checked.sequence == function->declaration.sequence &&
		function->checked.owner == function->declaration.owner &&
		function->checked.is_definer == function->declaration.is_definer;
}

/*
 * Read a function, and lock the declared sequence before it or the passed one, unless that is
 * invalid, gives an ID.  Refuse the call if the shard is frozen.
 *
 * freeze_shard() and renumber_shard() lock it first, too.  Thus they wait for all who have taken
 * IDs of the shard, also by sequences that they do not know, and whoever waits for them sees what
 * they have left: the declaration is read again after the lock.
 */
static pg_noinline const ShardFunction *
load_function(Oid oid, Oid passed)
{
	ShardFunction *function;

	current = NULL;
	while (!is_checked(function = find_function(oid), passed))
	{
		const Declaration declaration = function->declaration;

		if (OidIsValid(passed) && declaration.is_definer)
			check_passed(function, passed);
		if (!OidIsValid(passed))
			generator_open(declaration.sequence);
		else if (may_lock_declared(&declaration, passed))
		{
			sequence_check_rights(passed, SEQUENCE_RIGHTS);
			sequence_lock(declaration.sequence);
		}
		else
		{
			generator_open(passed);
			function = find_function(oid);
			id_sequence_check_not_frozen(function->declaration.sequence);
			function->sequence = passed;
			return function;
		}
		function->lxid = MyLocalTransactionId;
		function->passed = passed;
		function->checked = declaration;
	}
	if (OidIsValid(passed))
		id_sequence_check_not_frozen(function->declaration.sequence);
	function->sequence = OidIsValid(passed) ? passed : function->declaration.sequence;
	if (function->invalidations == invalidations)
		current = function;
	return function;
}

/* A function whose call may take IDs now; it passes a sequence, or InvalidOid if it has no argument */
static inline const ShardFunction *
open_function(Oid oid, Oid passed)
{
	if (unlikely(current == NULL || current->oid != oid || current->passed != passed))
		return load_function(oid, passed);
	return current;
}

/* The sequence that a call passes as this argument */
static inline Oid
passed_sequence(FunctionCallInfo fcinfo, int argument)
{
	if (unlikely(PG_ARGISNULL(argument)))
		null_error();
	/* as regclass, '-' is InvalidOid: an error here */
	if (unlikely(!OidIsValid(PG_GETARG_OID(argument))))
		sequence_check_rights(InvalidOid, SEQUENCE_RIGHTS);
	return PG_GETARG_OID(argument);
}

/* The first call of next_ids(count integer, sequence regclass) */
static pg_noinline void
begin_next_ids(FunctionCallInfo fcinfo)
{
	const ShardFunction *function;

	if (PG_ARGISNULL(0))
		null_error();
	function = open_function(fcinfo->flinfo->fn_oid, passed_sequence(fcinfo, 1));
	next_ids_begin(fcinfo, function->sequence, function->declaration.shard_id,
				   function->declaration.epoch_ms, PG_GETARG_INT32(0));
}

/* The next ID, or IDs, of a declared shard.  The executor calls this directly for each row. */
Datum
instaid_call_handler(PG_FUNCTION_ARGS)
{
	const ShardFunction *function;

	if (fcinfo->flinfo->fn_retset)
	{
		if (SRF_IS_FIRSTCALL())
			begin_next_ids(fcinfo);
		return next_ids_return(fcinfo);
	}

	function = open_function(fcinfo->flinfo->fn_oid,
							 PG_NARGS() > 0 ? passed_sequence(fcinfo, 0) : InvalidOid);
	PG_RETURN_INT64(id_of_tick(generator_take_tick(function->sequence),
							   function->declaration.shard_id, function->declaration.epoch_ms));
}
