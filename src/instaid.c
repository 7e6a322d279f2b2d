/* What PostgreSQL calls when it loads the library, and what the install script calls. */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/syscache.h"

#include "ids.h"
#include "session.h"

#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "instaid",.version = INSTAID_VERSION);
#else
PG_MODULE_MAGIC;
#endif

PG_FUNCTION_INFO_V1(instaid_check_library);

void		_PG_init(void);

/* A relation has changed; all can have, if this is InvalidOid. */
static void
relcache_callback(Datum arg pg_attribute_unused(), Oid relid)
{
	session_forget(relid);
}

/* A role may have other rights. */
static void
syscache_callback(Datum arg pg_attribute_unused(), SysCacheIdentifier cacheid pg_attribute_unused(),
				  uint32 hashvalue pg_attribute_unused())
{
	session_forget(InvalidOid);
}

void
_PG_init(void)
{
	generator_init();
	session_init();
	node_init();
	language_init();

	CacheRegisterRelcacheCallback(relcache_callback, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, syscache_callback, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHOID, syscache_callback, (Datum) 0);
	/* its owner is a member of pg_database_owner */
	CacheRegisterSyscacheCallback(DATABASEOID, syscache_callback, (Datum) 0);
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
