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
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/syscache.h"

#include "compat.h"

PG_FUNCTION_INFO_V1(instaid_base_type);
PG_FUNCTION_INFO_V1(instaid_execute_as);

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

/*
 * _execute_as(role regrole, command text) -> text
 *
 * Run a command with the rights of a role, and return the first column of its
 * first row as text, or null.
 *
 * For functions that a superuser may run on other roles' objects.  The owner of
 * a table decides what code runs when the table is read or altered: CHECKs,
 * triggers, policies, and whatever the planner evaluates of its indexes.  That
 * code must have its owner's rights and no way back to the caller's.  So this
 * does what core's maintenance commands do: it switches the role, in a
 * security-restricted operation, with a search_path that nobody can put anything
 * into, and undoes the settings that were changed meanwhile.
 *
 * A caller who could not SET ROLE to the role is refused, so that a direct call
 * gives nobody a right.  A session that runs a command with its own role's rights
 * has nothing to be protected from, and may use its temporary tables.
 *
 * On an error, the end of the (sub)transaction restores role and settings.
 */
Datum
instaid_execute_as(PG_FUNCTION_ARGS)
{
	Oid			role = PG_GETARG_OID(0);
	char	   *command = text_to_cstring(PG_GETARG_TEXT_PP(1));
	MemoryContext caller_context = CurrentMemoryContext;
	text	   *result = NULL;
	Oid			caller;
	int			sec_context;
	int			nest_level;
	int			status;

	GetUserIdAndSecContext(&caller, &sec_context);
	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(role)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("role with OID %u does not exist", role)));
	if (!member_can_set_role(caller, role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to act as role \"%s\"",
						GetUserNameFromId(role, false)),
				 errdetail("Role \"%s\" cannot SET ROLE to it.",
						   GetUserNameFromId(caller, false))));

	if (role != caller || role != GetSessionUserId())
		SetUserIdAndSecContext(role, sec_context | SECURITY_RESTRICTED_OPERATION);
	nest_level = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp",
							 PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);

	SPI_connect();
	status = SPI_execute(command, false, 0);
	if (status == SPI_ERROR_TRANSACTION)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("invalid transaction termination")));
	if (status == SPI_ERROR_COPY)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot COPY to or from the client in a function")));
	if (status < 0)
		elog(ERROR, "SPI_execute failed: %s", SPI_result_code_string(status));
	if (SPI_tuptable != NULL && SPI_tuptable->numvals > 0 && SPI_tuptable->tupdesc->natts > 0)
	{
		char	   *value = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);

		if (value != NULL)
		{
			MemoryContext spi_context = MemoryContextSwitchTo(caller_context);

			result = cstring_to_text(value);
			MemoryContextSwitchTo(spi_context);
		}
	}
	SPI_finish();

	AtEOXact_GUC(false, nest_level);
	SetUserIdAndSecContext(caller, sec_context);

	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(result);
}
