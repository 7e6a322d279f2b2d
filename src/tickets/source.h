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

#include "tickets/segments.h"

/* how much is shown of text that comes from elsewhere, in bytes */
#define MAX_FOREIGN_TEXT	400

typedef enum LeaseState
{
	LEASE_PENDING,
	LEASE_DONE,
	LEASE_FAILED
} LeaseState;

/* What is done with the server that is being asked */
typedef enum LeaseStep
{
	LEASE_CONNECTING,
	LEASE_DESCRIBING,			/* asking which values it gives */
	LEASE_DRAWING
} LeaseStep;

/* A segment that is being leased */
typedef struct Lease
{
	SegmentRequest request;
	MemoryContext context;		/* this is in */

	/* the servers; request.turn is the one that is to give the segment */
	PQconninfoOption *options;
	int			server_count;
	int			given_up;		/* how many have been asked for it in vain */
	int			timeout;		/* ms for each */
	bool		looked_at[MAX_SERVERS]; /* is its stripe of this lease? */
	bool		failed[MAX_SERVERS];

	/* the one that is being asked */
	PGconn	   *conn;
	int			server;
	LeaseStep	step;
	uint32		events;			/* of its socket, to be waited for */
	int64		asked_at;		/* monotonic time */
	bool		answered;		/* with the row that is wanted */
	bool		committed;
	bool		ask_again;		/* which values it gives: they were others */
	bool		asked_again;
	char		warning[MAX_FOREIGN_TEXT + 2];	/* of the commit, if it had one */

	char	   *sequence;		/* its name, as a literal */
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
extern long instaid_lease_time_left(const Lease *lease);
extern void instaid_end_lease(Lease *lease);
extern void instaid_source_init(void);

#endif							/* INSTAID_SOURCE_H */
