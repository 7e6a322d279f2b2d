/* What PostgreSQL calls when it loads the library. */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include "sources.h"
#include "tickets.h"

#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "instaid_tickets",.version = INSTAID_VERSION);
#else
PG_MODULE_MAGIC;
#endif

void		_PG_init(void);

/* Only tickets that have a source need a preloaded library: it gets shared memory. */
void
_PG_init(void)
{
	tickets_init();
	segments_init();
	if (process_shared_preload_libraries_in_progress)
		slots_init();
	MarkGUCPrefixReserved("instaid_tickets");
}
