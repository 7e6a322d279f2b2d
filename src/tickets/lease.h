/*-------------------------------------------------------------------------
 *
 * lease.h
 *	  The client of the servers that a ticket has its values from: see lease.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_LEASE_H
#define INSTAID_LEASE_H

#include "lib/stringinfo.h"
#include "libpq-fe.h"

#include "tickets/block.h"
#include "tickets/stripe.h"

/* how much is shown of text that comes from elsewhere, in bytes */
#define MAX_FOREIGN_TEXT	400

/* A server that can be asked */
typedef struct LeaseServer
{
	char	   *name;
	const char *refusal;		/* why it is not asked, or NULL */
	const char **keywords;		/* connection options of libpq, up to a NULL */
	const char **values;
	bool		needs_password; /* must it ask for the password? */
	int			timeout;		/* ms that it may take */
} LeaseServer;

/* The servers of a source, in the order in which they are asked */
typedef struct LeaseServers
{
	int			count;
	uint32		hash;			/* of what they are; not 0 */
	LeaseServer servers[MAX_SERVERS];
} LeaseServers;

typedef enum LeaseState
{
	LEASE_PENDING,
	LEASE_DONE,
	LEASE_FAILED
} LeaseState;

/* What is done with the server that is being asked */
typedef enum LeasePhase
{
	LEASE_CONNECTING,
	LEASE_DESCRIBING,			/* asking which values it gives */
	LEASE_DRAWING
} LeasePhase;

/* A lease of values, done or under way */
typedef struct Lease
{
	MemoryContext context;		/* that it is in */

	/* what is wanted */
	const char *name;			/* of the sequence */
	char	   *sequence;		/* the qualified name, as a literal */
	int64		wanted;			/* how many values */
	int64		last_of_type;	/* none above this one */
	int64		started;		/* monotonic time */

	/* the servers */
	LeaseServers source;
	int			turn;			/* the one that is to give the values */
	Stripes		stripes;		/* what is known of them */
	int			given_up;		/* how many have been asked for values in vain */
	bool		looked_at[MAX_SERVERS]; /* was it asked during this lease? */
	bool		failed[MAX_SERVERS];

	/* the one that is being asked */
	PGconn	   *conn;
	int			server;
	LeasePhase	phase;
	uint32		events;			/* of its socket, to be waited for */
	int64		asked_at;		/* monotonic time */
	bool		answered;		/* with the row that is wanted */
	bool		committed;
	bool		ask_again;		/* ask once more which values it gives */
	bool		asked_again;
	char		warning[MAX_FOREIGN_TEXT + 2];	/* of the commit, if any */

	/* when it is done */
	TicketBlock block;
	int64		count;
	/* why servers gave nothing; empty if none failed */
	StringInfoData failure;
} Lease;

extern Lease *lease_start(const LeaseServers *source, const char *name, int64 wanted,
						  int64 last_of_type, int turn, const Stripes *stripes);
extern LeaseState lease_advance(Lease *lease, uint32 events);
extern long lease_time_left(const Lease *lease);
extern void lease_end(Lease *lease);

#endif							/* INSTAID_LEASE_H */
