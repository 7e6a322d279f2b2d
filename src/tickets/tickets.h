/* What other files may call of each file of the tickets. */
#ifndef INSTAID_TICKETS_H
#define INSTAID_TICKETS_H

/* where tickets live */
#define TICKET_SCHEMA	"instaid_tickets"

/* tickets.c: named, dense, durable integers */
extern void tickets_forget(Oid relid);

/* autocreate.c: tickets that are created on first use */
extern bool autocreate_ticket(const char *name);
extern void autocreate_init(void);

/* sources.c: tickets that have a source, which another library serves */
extern bool sources_are_served(void);
extern int64 sources_take(Oid ticket, const char *name, int *place);
extern void sources_init(void);

#endif							/* INSTAID_TICKETS_H */
