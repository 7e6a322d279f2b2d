/*-------------------------------------------------------------------------
 *
 * instaid.c
 *	  The module's face: magic block, settings, start.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include "ids/generator.h"
#include "tickets/segments.h"
#include "ids/shards.h"
#include "tickets/source.h"
#include "tickets/tickets.h"

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

	/* Anybody's, since creating needs CREATE on the schema, too. */
	DefineCustomBoolVariable("instaid.auto_create_tickets",
							 "Creates a ticket when its name is first used.",
							 "Otherwise next_ticket() fails for a name that does not exist.",
							 &instaid_auto_create_tickets,
							 false,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);

	/*
	 * Superusers' settings, because they say which values are this server's:
	 * with another's, it gives what that one gives.
	 */
	DefineCustomIntVariable("instaid.ticket_server",
							"Sets which of the servers this is, for tickets that are created on first use.",
							"It is from 1 to instaid.ticket_servers.",
							&instaid_ticket_server,
							1, 1, INT_MAX,
							PGC_SUSET, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("instaid.ticket_servers",
							"Sets how many servers share tickets that are created on first use.",
							"Each server issues every Nth value.",
							&instaid_ticket_servers,
							1, 1, INT_MAX,
							PGC_SUSET, 0,
							NULL, NULL, NULL);

	/* The worker's setting, not a session's. */
	DefineCustomIntVariable("instaid.segment_duration",
							"Sets how long a segment of a ticket should last.",
							"The next is twice as long as one that lasted for less, half as long as one for more than twice that.",
							&instaid_segment_duration,
							15 * 60 * 1000, 1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	/* Anybody's, since it is the caller who waits. */
	DefineCustomIntVariable("instaid.segment_timeout",
							"Sets how long to wait for a segment of a ticket when none is left.",
							"After that the value is taken from the ticket's sequence itself; if the ticket has a source, the call fails.",
							&instaid_segment_timeout,
							5000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);

	/* Superusers', because a source is connected to with the server's files. */
	DefineCustomStringVariable("instaid.source_role",
							   "Sets the role whose members may set the source of a ticket.",
							   "Without one, only superusers may.",
							   &instaid_source_role,
							   "",
							   PGC_SUSET, 0,
							   NULL, NULL, NULL);

	/* It is the size of shared memory. */
	if (process_shared_preload_libraries_in_progress)
		DefineCustomIntVariable("instaid.max_buffered_tickets",
								"Sets how many tickets can have segments in shared memory.",
								"Others are served one value at a time.",
								&instaid_max_buffered_tickets,
								1000, 1, 1000000,
								PGC_POSTMASTER, 0,
								NULL, NULL, NULL);
	MarkGUCPrefixReserved("instaid");

	instaid_generator_init();
	shards_init();
	instaid_segments_init();
	source_init();
}
