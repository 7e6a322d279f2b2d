/* The next tick of a sequence: see generator.c. */
#ifndef INSTAID_GENERATOR_H
#define INSTAID_GENERATOR_H

extern void generator_init(void);
extern void generator_open(Oid sequence);
extern int64 generator_take_tick(Oid sequence);
extern int	generator_take_ticks(Oid sequence, int wanted, int64 *first);
extern void generator_advance(Oid sequence, int64 tick);

#endif							/* INSTAID_GENERATOR_H */
