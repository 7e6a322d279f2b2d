/*-------------------------------------------------------------------------
 *
 * instaid.c
 *	  The module's face: magic block, start and version.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "ids/generator.h"
#include "ids/ids.h"
#include "ids/shards.h"
#include "tickets/autocreate.h"
#include "tickets/segments.h"
#include "tickets/source.h"

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
	generator_init();
	ids_init();
	shards_init();
	autocreate_init();
	segments_init();
	source_init();
	MarkGUCPrefixReserved("instaid");
}

/*
 * _check_library(version text) -> void
 *
 * The scripts of a version call this first.  The loaded library can be of
 * another version: a server that preloads it keeps the version that it started
 * with.
 */
Datum
instaid_check_library(PG_FUNCTION_ARGS)
{
	char	   *version = text_to_cstring(PG_GETARG_TEXT_PP(0));

	if (strcmp(version, INSTAID_VERSION) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("instaid %s cannot use the library of instaid %s", version, INSTAID_VERSION),
				 errhint("Install instaid %s, restart the server if it preloads the library, and try again in a new session.",
						 version)));
	PG_RETURN_VOID();
}
