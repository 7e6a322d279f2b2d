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
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "nodes/parsenodes.h"
#include "nodes/readfuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

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
	if (query->commandType != CMD_SELECT || list_length(query->targetList) != 1)
		return NULL;
	return (Node *) linitial_node(TargetEntry, query->targetList)->expr;
}

/*
 * The arguments of a call of next_id(regclass, integer, timestamptz) in the
 * given schema, as three Consts; NIL if the expression is anything else.
 */
static List *
generator_arguments(Node *expression, Oid schema)
{
	FuncExpr   *call;
	ListCell   *lc;

	/* adds the arguments that were left to their default, and folds */
	expression = eval_const_expressions(NULL, expression);
	if (!IsA(expression, FuncExpr))
		return NIL;
	call = (FuncExpr *) expression;
	if (get_func_namespace(call->funcid) != schema ||
		strcmp(get_func_name(call->funcid), "next_id") != 0)
		return NIL;
	foreach(lc, call->args)
	{
		if (!IsA(lfirst(lc), Const) || lfirst_node(Const, lc)->constisnull)
			return NIL;
	}
	return list_length(call->args) == 3 ? call->args : NIL;
}

/*
 * list_shards()
 *	-> setof (schema_name name, shard_id integer, epoch timestamptz,
 *			  sequence regclass)
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
		List	   *args;
		Datum		values[4];
		bool		nulls[4] = {false, false, false, false};

		if (proc->pronargs != 0)
			continue;
		body = body_expression(tuple);
		if (body == NULL)
			continue;
		args = generator_arguments(body, schema);
		if (args == NIL)
			continue;

		values[0] = CStringGetDatum(get_namespace_name(proc->pronamespace));
		values[1] = lsecond_node(Const, args)->constvalue;
		values[2] = lthird_node(Const, args)->constvalue;
		values[3] = linitial_node(Const, args)->constvalue;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}

	ReleaseSysCacheList(procs);
	return (Datum) 0;
}
