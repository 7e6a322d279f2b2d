/*-------------------------------------------------------------------------
 *
 * source.h
 *	  The other servers that a ticket has its values from: see source.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_SOURCE_H
#define INSTAID_SOURCE_H

#include "sequence.h"
#include "tickets/lease.h"

/* What this session knows of a ticket */
typedef struct TicketCacheEntry
{
	Oid			relid;			/* hash key */
	bool		label_known;	/* an invalidation of the relation unsets it */
	bool		has_label;		/* of a source */
} TicketCacheEntry;

extern TicketCacheEntry *source_cache_ticket(Oid ticket);
extern bool source_exists(Oid ticket, Form_pg_sequence options);
extern bool source_find_servers(Oid ticket, LeaseServers *servers);
extern void source_init(void);

#endif							/* INSTAID_SOURCE_H */
