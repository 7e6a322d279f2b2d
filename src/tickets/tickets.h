/* Named, dense, durable integers: see tickets.c. */
#ifndef INSTAID_TICKETS_H
#define INSTAID_TICKETS_H

extern void tickets_forget(Oid relid);
extern void tickets_init(void);

#endif							/* INSTAID_TICKETS_H */
