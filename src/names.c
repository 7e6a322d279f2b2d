/* Checks of the names of objects that callers pass. */
#include "postgres.h"

#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include "names.h"

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

/* _check_name(what text, name text) -> void */
Datum
instaid_check_name(PG_FUNCTION_ARGS)
{
	check_object_name(text_to_cstring(PG_GETARG_TEXT_PP(0)),
					  text_to_cstring(PG_GETARG_TEXT_PP(1)));
	PG_RETURN_VOID();
}
