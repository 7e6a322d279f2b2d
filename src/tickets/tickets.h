/*-------------------------------------------------------------------------
 *
 * tickets.h
 *	  Named tickets: see tickets.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_TICKETS_H
#define INSTAID_TICKETS_H

#include "tickets/block.h"

extern int64 tickets_take_values(Oid ticket, int64 least, int64 most, TicketBlock *block);
extern int64 tickets_last_of_type(Oid type);

#endif							/* INSTAID_TICKETS_H */
