/*-------------------------------------------------------------------------
 *
 * shards.c
 *	  Which shards a database has, as its catalogs tell.
 *
 * A shard is a schema whose function next_id() calls instaid.next_id() with
 * constants.  The call itself is what is read here: it is what makes the IDs,
 * so no record of it can be out of date.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "layout.h"

PG_FUNCTION_INFO_V1(instaid_list_shards);

/* The one expression of a function's standard SQL body, or NULL. */
static Node *
body_expression(HeapTuple proc)
{
	Datum		body;
	bool		isnull;
	Node	   *node;
	Query	   *query;

	body = SysCacheGetAttr(PROCNAMEARGSNSP, proc,
						   Anum_pg_proc_prosqlbody, &isnull);
	if (isnull)
		return NULL;

	/* RETURN ... is one query, BEGIN ATOMIC ... END a list in a list */
	node = stringToNode(TextDatumGetCString(body));
	if (IsA(node, List))
	{
		List	   *queries = linitial_node(List, (List *) node);

		if (list_length(queries) != 1)
			return NULL;
		node = linitial(queries);
	}
	query = castNode(Query, node);
	if (query->commandType != CMD_SELECT || query->jointree->fromlist != NIL ||
		list_length(query->targetList) != 1)
		return NULL;
	return (Node *) linitial_node(TargetEntry, query->targetList)->expr;
}

/* What a shard's next_id() passes to instaid.next_id(). */
typedef struct ShardCall
{
	Oid			sequence;
	int32		shard_id;
	TimestampTz epoch;
	bool		default_epoch;	/* it passes none */
} ShardCall;

/*
 * Is the expression a call of next_id(regclass, integer, timestamptz) in the
 * given schema, with constants that it would accept?
 *
 * The expression is anybody's, and whoever lists the shards may be a
 * superuser: so nothing of it is evaluated, not even to fold constants.
 */
static bool
is_shard_call(Node *expression, Oid schema, ShardCall *result)
{
	static const Oid types[] = {REGCLASSOID, INT4OID, TIMESTAMPTZOID};
	Datum		values[lengthof(types)] = {0};
	FuncExpr   *call;
	char	   *name;
	int			nargs;

	if (!IsA(expression, FuncExpr))
		return false;
	call = (FuncExpr *) expression;
	if (get_func_namespace(call->funcid) != schema)
		return false;
	name = get_func_name(call->funcid);
	if (name == NULL || strcmp(name, "next_id") != 0)
		return false;

	/* an epoch that is left to its default is not in the call */
	nargs = list_length(call->args);
	if (nargs != 2 && nargs != 3)
		return false;
	for (int i = 0; i < nargs; i++)
	{
		Const	   *arg = list_nth(call->args, i);

		if (!IsA(arg, Const) || arg->consttype != types[i] || arg->constisnull)
			return false;
		values[i] = arg->constvalue;
	}

	result->sequence = DatumGetObjectId(values[0]);
	result->shard_id = DatumGetInt32(values[1]);
	result->epoch = DatumGetTimestampTz(values[2]);
	result->default_epoch = nargs == 2;

	return get_rel_relkind(result->sequence) == RELKIND_SEQUENCE &&
		result->shard_id >= 0 && result->shard_id <= MAX_SHARD_ID &&
		!TIMESTAMP_NOT_FINITE(result->epoch) &&
		result->epoch < END_TIMESTAMP - (LAST_MS + 1) * 1000;
}

/*
 * list_shards()
 *	-> setof (schema_name name, shard_id integer, epoch timestamptz,
 *			  sequence regclass)
 *
 * The epoch is null where the shard leaves it to the default.
 *
 * Reads the catalogs as they are now, not as the transaction's snapshot has
 * them: whoever waited for another create_shard() must see what it did.
 */
Datum
instaid_list_shards(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			schema = get_func_namespace(fcinfo->flinfo->fn_oid);
	CatCList   *procs;

	InitMaterializedSRF(fcinfo, 0);

	AcceptInvalidationMessages();
	procs = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum("next_id"));

	for (int i = 0; i < procs->n_members; i++)
	{
		HeapTuple	tuple = &procs->members[i]->tuple;
		Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
		Node	   *body;
		ShardCall	call;
		char	   *schema_name;
		NameData	name;
		Datum		values[4];
		bool		nulls[4] = {false, false, false, false};

		if (proc->pronargs != 0 || isAnyTempNamespace(proc->pronamespace))
			continue;
		body = body_expression(tuple);
		if (body == NULL || !is_shard_call(body, schema, &call))
			continue;

		/* while we look, the schema may be dropped */
		schema_name = get_namespace_name(proc->pronamespace);
		if (schema_name == NULL)
			continue;

		namestrcpy(&name, schema_name);
		values[0] = NameGetDatum(&name);
		values[1] = Int32GetDatum(call.shard_id);
		values[2] = TimestampTzGetDatum(call.epoch);
		nulls[2] = call.default_epoch;
		values[3] = ObjectIdGetDatum(call.sequence);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}

	ReleaseSysCacheList(procs);
	return (Datum) 0;
}
