/*-------------------------------------------------------------------------
 *
 * instaid.c
 *	  The module's face: magic block and start.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/guc.h"

#include "ids/generator.h"
#include "ids/shards.h"
#include "tickets/autocreate.h"
#include "tickets/segments.h"
#include "tickets/source.h"

#ifdef PG_MODULE_MAGIC_EXT
PG_MODULE_MAGIC_EXT(.name = "instaid",.version = INSTAID_VERSION);
#else
PG_MODULE_MAGIC;
#endif

void		_PG_init(void);

void
_PG_init(void)
{
	generator_init();
	shards_init();
	autocreate_init();
	segments_init();
	source_init();
	MarkGUCPrefixReserved("instaid");
}
