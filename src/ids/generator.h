/*-------------------------------------------------------------------------
 *
 * generator.h
 *	  The clocked sequence: see generator.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_GENERATOR_H
#define INSTAID_GENERATOR_H

/* The state of a sequence, from its page and its options */
typedef struct SequenceState
{
	int64		last_value;		/* meaningless unless is_called */
	bool		is_called;
	bool		is_frozen;
} SequenceState;

extern int64 generator_take_tick(Oid sequence);
extern int	generator_take_ticks(Oid sequence, int wanted, int64 *first);
extern int64 generator_first_tick(void);
extern bool generator_last_tick(Oid sequence, SequenceState *state);
extern void generator_skip_ticks(Oid sequence, int64 tick);
extern void generator_init(void);

#endif							/* INSTAID_GENERATOR_H */
