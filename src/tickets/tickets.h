/* What other files may call of each file of the tickets.  tickets.c is the first to read. */
#ifndef INSTAID_TICKETS_H
#define INSTAID_TICKETS_H

#include <time.h>

#include "postmaster/bgworker.h"

/* where tickets live */
#define TICKET_SCHEMA	"instaid_tickets"

/* tickets.c: named, dense, durable integers */
extern void tickets_init(void);

/* segments.c: segments of tickets that have a source, in shared memory */
extern int64 segments_take(Oid ticket, const char *name, int *place);
extern bool segments_exist(void);
extern void segments_init(void);

/* autocreate.c: tickets that are created on first use */
extern bool autocreate_ticket(const char *name);
extern void autocreate_init(void);

/* source.c: the servers that a ticket has its values from */

/* the rights to take values of a ticket that has a source, and to look at it */
#define SOURCE_RIGHTS		ACL_UPDATE
#define SOURCE_READ_RIGHTS	(ACL_SELECT | ACL_UPDATE)

/* A server that can be asked */
typedef struct Authority
{
	char	   *name;
	const char *refusal;		/* why it is not asked, or NULL */
	const char **keywords;		/* connection options of libpq, up to a NULL */
	const char **values;
	bool		needs_password; /* must it ask for the password? */
	int			timeout;		/* ms that it may take */
} Authority;

/* Where a ticket has its values from */
typedef struct Source
{
	char	   *ticket;			/* its name */
	int64		step;
	int64		last_of_type;	/* no value is above this one */
	int			count;
	Authority  *authorities;	/* in the order in which they are asked */
	uint32		hash;			/* of the servers and their options; not 0 */
} Source;

extern bool source_exists(Oid relation);
extern bool source_find(Oid ticket, Source *source);
extern bool source_may_see_failures(Oid ticket);

/* lease.c: the client of an authority */

/* Values that an authority has leased: first, first + increment, ... last */
typedef struct Lease
{
	int64		first;
	int64		last;
	int64		increment;
	int64		count;
} Lease;

/* how many progressions of values are remembered for a ticket */
#define MARK_COUNT		32

/* The largest value that this server has had with an increment and residue */
typedef struct Mark
{
	int64		increment;		/* 0 if there is none */
	int64		residue;
	int64		last;
} Mark;

extern char *lease_values(const Source *source, int turn, int64 wanted, Lease *lease);
extern bool lease_raises_mark(const Lease *lease, Mark *marks);

/* background.c: running one thing in a background worker */
extern bool background_start(const char *function, const char *type, const void *request,
							 Size size, Datum main_arg, BackgroundWorkerHandle **handle);
extern bool background_run(const char *function, const char *type, const void *request,
						   Size size, ErrorData *error);
extern void background_begin(void *request, Size size, Datum main_arg);
extern bool background_is_in_the_way(void);

/* A clock that nobody sets, in microseconds, for whatever waits or is tried again */
static inline int64
monotonic_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif							/* INSTAID_TICKETS_H */
