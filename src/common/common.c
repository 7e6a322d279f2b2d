/* What both extensions share: names that callers pass, relations, rows that functions return. */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

#include "common.h"

PG_FUNCTION_INFO_V1(instaid_check_name);

/*
 * Refuse a name that is empty or too long.  If it were truncated, it could be the
 * name of another object.
 */
void
check_object_name(const char *what, const char *name)
{
	size_t		length = strlen(name);

	if (length == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("%s name is empty", what),
				 errdetail("A name has 1 to %d bytes.", NAMEDATALEN - 1)));
	if (length >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_TOO_LONG),
				 errmsg("%s name \"%.*s...\" is too long", what,
						pg_mbcliplen(name, length, NAMEDATALEN - 1), name),
				 errdetail("It has %zu bytes; a name has up to %d.",
						   length, NAMEDATALEN - 1)));
}

Datum
instaid_check_name(PG_FUNCTION_ARGS)
{
	check_object_name(text_to_cstring(PG_GETARG_TEXT_PP(0)),
					  text_to_cstring(PG_GETARG_TEXT_PP(1)));
	PG_RETURN_VOID();
}

/* The result of a function with OUT parameters */
Datum
make_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	TupleDesc	tupdesc;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc), values, nulls));
}

/* The owner of a relation of any kind; InvalidOid if it is gone */
Oid
relation_owner(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			owner = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
		ReleaseSysCache(tuple);
	}
	return owner;
}

/*
 * May the role see the state of a relation?  Members of pg_read_all_stats may, because
 * roles of monitors are members.  Others need one of these rights, and the relation.
 */
bool
relation_is_visible(Oid relation, AclMode rights)
{
	bool		is_missing = false;

	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		pg_class_aclcheck_ext(relation, GetUserId(), rights, &is_missing) == ACLCHECK_OK;
}
