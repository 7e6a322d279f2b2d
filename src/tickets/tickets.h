/*-------------------------------------------------------------------------
 *
 * tickets.h
 *	  Named tickets: see tickets.c and autocreate.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_TICKETS_H
#define INSTAID_TICKETS_H

#include <time.h>

#include "access/xlogdefs.h"
#include "catalog/pg_sequence.h"

/* where tickets live, a sequence each */
#define TICKET_SCHEMA	"instaid_tickets"

/* Values that were taken together: first, first + increment, ... last. */
typedef struct TicketBlock
{
	int64		first;
	int64		last;
	int64		increment;
	XLogRecPtr	lsn;			/* of the WAL that takes the sequence past them */
	uint64		generation;		/* of the ticket's buffer then: see segments.c */
} TicketBlock;

/*
 * Microseconds since some moment before the server started, the same in all
 * processes.  Intervals are measured by it, as the wall clock can be set.
 */
static inline int64
instaid_monotonic_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* instaid.auto_create_tickets, instaid.ticket_server, instaid.ticket_servers */
extern bool instaid_auto_create_tickets;
extern int	instaid_ticket_server;
extern int	instaid_ticket_servers;

extern int64 instaid_take_values(Oid ticket, int64 least, int64 most,
								 TicketBlock *block);
extern bool instaid_has_source(Oid ticket, Form_pg_sequence options);
extern int64 instaid_last_of_type(Oid type);
extern void instaid_autocreate_ticket(const char *name);
extern void instaid_tickets_init(void);

#endif							/* INSTAID_TICKETS_H */
