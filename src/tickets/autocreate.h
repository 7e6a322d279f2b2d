/* Tickets that are created on first use: see autocreate.c. */
#ifndef INSTAID_AUTOCREATE_H
#define INSTAID_AUTOCREATE_H

/* where tickets live */
#define TICKET_SCHEMA	"instaid_tickets"

extern bool autocreate_ticket(const char *name);
extern void autocreate_init(void);

#endif							/* INSTAID_AUTOCREATE_H */
