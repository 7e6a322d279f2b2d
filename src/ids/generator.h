/*-------------------------------------------------------------------------
 *
 * generator.h
 *	  The clocked sequence: see generator.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_GENERATOR_H
#define INSTAID_GENERATOR_H

/* What the page and the options of a sequence tell. */
typedef struct SequenceState
{
	int64		last_value;		/* if it is called */
	bool		is_called;
	bool		is_frozen;
} SequenceState;

/* instaid.max_drift: milliseconds that ticks may run ahead of the clock */
extern int	instaid_max_drift;

extern int64 instaid_take_tick(Oid sequence);
extern int	instaid_take_ticks(Oid sequence, int wanted, int64 *first);
extern bool instaid_last_tick(Oid sequence, SequenceState *state);
extern void instaid_skip_ticks(Oid sequence, int64 tick);
extern void instaid_generator_init(void);

#endif							/* INSTAID_GENERATOR_H */
