/* The clocked sequence: see generator.c. */
#ifndef INSTAID_GENERATOR_H
#define INSTAID_GENERATOR_H

extern int64 generator_take_tick(Oid sequence);
extern int	generator_take_ticks(Oid sequence, int wanted, int64 *first);
extern void generator_skip_ticks(Oid sequence, int64 tick);
extern void generator_init(void);

#endif							/* INSTAID_GENERATOR_H */
