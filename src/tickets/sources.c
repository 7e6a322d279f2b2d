/*
 * Tickets that have a source, which another library serves: instaid_sources.
 *
 * It has libpq, and their values in shared memory, so the server must preload it.  It then leaves
 * its functions in a variable that libraries share.  Thus this library needs neither, nor even
 * the file of the other one.
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "funcapi.h"
#include "utils/guc.h"

#include "source.h"
#include "tickets/tickets.h"

PG_FUNCTION_INFO_V1(instaid_segment_state);

static int	segment_target_duration;
static int	segment_timeout;

/* What the server has preloaded, of any version, or NULL */
static const SourcesInterface *
preloaded(void)
{
	return *find_rendezvous_variable(SOURCES_INTERFACE);
}

/* Has the server preloaded the library that belongs to this one? */
bool
sources_are_served(void)
{
	return preloaded() != NULL && strcmp(preloaded()->version, INSTAID_VERSION) == 0;
}

/* Take the next value of a ticket that has a source: see segments_take(). */
int64
sources_take(Oid ticket, const char *name, int *place)
{
	const SourcesInterface *library = preloaded();

	if (library == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ticket \"%s\" has a source, and the library instaid_sources is not preloaded",
						name),
				 errdetail("Values from a source are kept in shared memory, which a library gets when the server starts."),
				 errhint("Install instaid_sources if this server lacks it, add it to shared_preload_libraries, and restart the server.")));
	if (!sources_are_served())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ticket \"%s\" has a source, and the library instaid_sources has another version than instaid",
						name),
				 errdetail("The server has preloaded instaid_sources %s, and this session has loaded instaid %s.",
						   library->version, INSTAID_VERSION),
				 errhint("Install instaid and instaid_sources of one version, and restart the server.")));
	return library->take(ticket, name, place, segment_timeout, segment_target_duration);
}

Datum
instaid_segment_state(PG_FUNCTION_ARGS)
{
	if (sources_are_served())
		return preloaded()->state(fcinfo);
	InitMaterializedSRF(fcinfo, 0);
	return (Datum) 0;
}

void
sources_init(void)
{
	/* not a session's: the next segment is for all sessions */
	DefineCustomIntVariable("instaid.segment_target_duration",
							"Sets how long a segment of a ticket with a source should last.",
							"If a segment lasts for less time, the next one has twice its size; if it lasts for more than twice the time, half its size.",
							&segment_target_duration,
							15 * 60 * 1000, 1, INT_MAX, PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("instaid.segment_timeout",
							"Sets how long a call waits for a segment of a ticket with a source when none is left.",
							"After that, the call fails.",
							&segment_timeout,
							5000, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
}
