/*-------------------------------------------------------------------------
 *
 * source.h
 *	  Segments that are leased from other servers: see source.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_SOURCE_H
#define INSTAID_SOURCE_H

#include "libpq-fe.h"

#include "segments.h"

typedef enum LeaseState
{
	LEASE_PENDING,
	LEASE_DONE,
	LEASE_FAILED
} LeaseState;

/* A segment that is being leased */
typedef struct Lease
{
	SegmentRequest request;
	MemoryContext context;		/* this is in */

	/* the servers to ask, one after the other */
	PQconninfoOption *options;
	int			server_count;
	int			asked;
	int			timeout;		/* ms for each */

	/* the one that is being asked */
	PGconn	   *conn;
	bool		sent;			/* the query, or is it still connecting? */
	uint32		events;			/* of its socket, to be waited for */
	TimestampTz deadline;
	bool		committed;

	char	   *query;
	int64		last_of_type;

	/* when it is done */
	TicketBlock block;
	int64		count;
	/* when it has failed */
	StringInfoData problem;
} Lease;

/* instaid.source_role */
extern char *instaid_source_role;

extern char *instaid_source_of(Oid ticket);
extern Lease *instaid_start_lease(const char *source, const SegmentRequest *request,
								  int64 last_of_type);
extern LeaseState instaid_advance_lease(Lease *lease, uint32 events);
extern void instaid_end_lease(Lease *lease);
extern void instaid_source_init(void);

#endif							/* INSTAID_SOURCE_H */
