/*-------------------------------------------------------------------------
 *
 * tickets.h
 *	  Named tickets: see tickets.c and autocreate.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_TICKETS_H
#define INSTAID_TICKETS_H

#include "sequence.h"

/* instaid.auto_create_tickets, instaid.ticket_server, instaid.ticket_servers */
extern bool instaid_auto_create_tickets;
extern int	instaid_ticket_server;
extern int	instaid_ticket_servers;

extern int64 instaid_take_values(Oid ticket, int64 least, int64 most,
								 TicketBlock *block);
extern int64 instaid_last_of_type(Oid type);
extern void instaid_autocreate_ticket(const char *name);

#endif							/* INSTAID_TICKETS_H */
