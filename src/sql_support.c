/*-------------------------------------------------------------------------
 *
 * sql_support.c
 *	  What the SQL and PL/pgSQL functions of the extension need, and SQL does
 *	  not offer.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(instaid_base_type);

/*
 * _base_type(type regtype) -> regtype
 *
 * The type that a domain is over, at the bottom of a stack of domains; any
 * other type is its own.  Unlike getBaseType(), null for a type that is gone: a
 * query over the catalogs must not fail because somebody drops a type meanwhile.
 */
Datum
instaid_base_type(PG_FUNCTION_ARGS)
{
	Oid			type = PG_GETARG_OID(0);

	for (;;)
	{
		HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
		Form_pg_type form;
		Oid			base;

		if (!HeapTupleIsValid(tuple))
			PG_RETURN_NULL();
		form = (Form_pg_type) GETSTRUCT(tuple);
		base = form->typtype == TYPTYPE_DOMAIN ? form->typbasetype : InvalidOid;
		ReleaseSysCache(tuple);

		if (!OidIsValid(base))
			PG_RETURN_OID(type);
		type = base;
	}
}
