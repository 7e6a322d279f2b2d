/* What PostgreSQL calls when it loads the library, and what the install script calls. */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/guc.h"

#include "clocked_sequence.h"
#include "declaration.h"
#include "generator.h"
#include "language.h"

#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "instaid",.version = INSTAID_VERSION);
#else
PG_MODULE_MAGIC;
#endif

PG_FUNCTION_INFO_V1(instaid_check_library);

void		_PG_init(void);

void
_PG_init(void)
{
	clocked_sequence_init();
	generator_init();
	declaration_init();
	language_init();
	MarkGUCPrefixReserved("instaid");
}

/*
 * The scripts of a version call this first.  The loaded library can be older: a server that
 * preloads it keeps the version that it started with.  A newer one serves what older scripts
 * created, and an update goes through their versions.
 */
Datum
instaid_check_library(PG_FUNCTION_ARGS)
{
	char	   *version = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int			needed[2];
	int			loaded[2];

	if (sscanf(version, "%d.%d", &needed[0], &needed[1]) != 2 ||
		sscanf(INSTAID_VERSION, "%d.%d", &loaded[0], &loaded[1]) != 2 ||
		loaded[0] < needed[0] || (loaded[0] == needed[0] && loaded[1] < needed[1]))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("instaid %s cannot use the library of instaid %s", version, INSTAID_VERSION),
				 errhint("Install instaid %s, restart the server if it preloads the library, and try again in a new session.",
						 version)));
	PG_RETURN_VOID();
}
