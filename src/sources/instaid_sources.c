/* What PostgreSQL calls when it loads the library of tickets that have a source. */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"

#include "source.h"
#include "sources/sources.h"

#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "instaid_sources",.version = INSTAID_VERSION);
#else
PG_MODULE_MAGIC;
#endif

void		_PG_init(void);

/* A session can load the library, too.  That is of no use, because there is no shared memory. */
void
_PG_init(void)
{
	static SourcesInterface interface = {
		.version = INSTAID_VERSION,
		.take = segments_take,
		.state = segments_state
	};

	if (!process_shared_preload_libraries_in_progress)
		return;

	/*
	 * When the files are replaced, sessions thus keep both libraries of one
	 * version, until the server restarts.
	 */
	load_file("instaid", false);
	slots_init();
	*find_rendezvous_variable(SOURCES_INTERFACE) = &interface;
}
