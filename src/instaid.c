/*-------------------------------------------------------------------------
 *
 * instaid.c
 *	  The module's face: magic block and start.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "utils/guc.h"

#include "ids/generator.h"
#include "ids/shards.h"
#include "tickets/autocreate.h"
#include "tickets/segments.h"
#include "tickets/source.h"

#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "instaid", .version = INSTAID_VERSION);
#else
PG_MODULE_MAGIC;
#endif

void		_PG_init(void);

void
_PG_init(void)
{
	/*
	 * A superuser's setting, because it weakens what other users of the same
	 * sequence see of the clock.
	 */
	DefineCustomIntVariable("instaid.max_drift",
							"Sets how far IDs may run ahead of the clock under overload.",
							"A call that would go further first waits, 64 ms at most.",
							&instaid_max_drift,
							1000, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS,
							NULL, NULL, NULL);

	/* Superusers', because a source is connected to with the server's files. */
	DefineCustomStringVariable("instaid.source_role",
							   "Sets the role whose members may set the source of a ticket.",
							   "Without one, only superusers may.",
							   &instaid_source_role,
							   "",
							   PGC_SUSET, 0,
							   NULL, NULL, NULL);

	instaid_generator_init();
	shards_init();
	autocreate_init();
	segments_init();
	source_init();
	MarkGUCPrefixReserved("instaid");
}
