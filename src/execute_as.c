/* Running a command with the rights of another role, who owns what it touches. */
#include "postgres.h"

#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/syscache.h"

#include "compat.h"

PG_FUNCTION_INFO_V1(instaid_execute_as);

/*
 * Functions that a superuser may call on objects of other roles use this.  The owner of a table
 * decides what code runs when the table is read or altered: CHECK constraints, triggers,
 * policies, and the index expressions that the planner evaluates.  This code must not get the
 * rights of the caller.  As core's maintenance commands do, this therefore switches to the role
 * in a security-restricted operation, with a search_path in which no other role can create
 * objects, and restores the settings afterwards.  After an error, the end of the
 * (sub)transaction restores role and settings.
 *
 * A direct call gives no additional rights: the caller must be able to SET ROLE to the role.  If
 * the role is the session's own, there is no restricted operation, and the command can use
 * temporary tables.
 */
Datum
instaid_execute_as(PG_FUNCTION_ARGS)
{
	Oid			role = PG_GETARG_OID(0);
	char	   *command = text_to_cstring(PG_GETARG_TEXT_PP(1));
	MemoryContext caller_context = CurrentMemoryContext;
	char	   *result = NULL;
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
				 errmsg("permission denied to act as role \"%s\"", GetUserNameFromId(role, false)),
				 errdetail("Role \"%s\" cannot SET ROLE to it.", GetUserNameFromId(caller, false))));

	if (role != caller || role != GetSessionUserId())
		SetUserIdAndSecContext(role, sec_context | SECURITY_RESTRICTED_OPERATION);
	nest_level = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);

	SPI_connect();
	status = SPI_execute(command, false, 0);
	if (status == SPI_ERROR_TRANSACTION || status == SPI_ERROR_COPY)
		ereport(ERROR,
				(errcode(status == SPI_ERROR_COPY ? ERRCODE_FEATURE_NOT_SUPPORTED :
						 ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("cannot execute \"%s\" in a function", command)));
	if (status < 0)
		elog(ERROR, "SPI_execute failed: %s", SPI_result_code_string(status));
	if (SPI_tuptable != NULL && SPI_tuptable->numvals > 0 && SPI_tuptable->tupdesc->natts > 0)
	{
		char	   *value = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);

		if (value != NULL)
			result = MemoryContextStrdup(caller_context, value);
	}
	SPI_finish();

	AtEOXact_GUC(false, nest_level);
	SetUserIdAndSecContext(caller, sec_context);

	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(result));
}
