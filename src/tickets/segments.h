/* Segments of tickets in shared memory: see segments.c. */
#ifndef INSTAID_SEGMENTS_H
#define INSTAID_SEGMENTS_H

extern int64 segments_take(Oid ticket, const char *name, int *place);
extern bool segments_exist(void);
extern void segments_init(void);

#endif							/* INSTAID_SEGMENTS_H */
