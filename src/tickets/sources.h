/* Tickets that have a source, which another library serves: see sources.c. */
#ifndef INSTAID_TICKETS_SOURCES_H
#define INSTAID_TICKETS_SOURCES_H

extern bool sources_are_served(void);
extern int64 sources_take(Oid ticket, const char *name, int *place);
extern void sources_init(void);

#endif							/* INSTAID_TICKETS_SOURCES_H */
