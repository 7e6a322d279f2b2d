/*-------------------------------------------------------------------------
 *
 * generator.h
 *	  The clocked sequence: see generator.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_GENERATOR_H
#define INSTAID_GENERATOR_H

#include "datatype/timestamp.h"

/* instaid.max_drift: milliseconds that ticks may run ahead of the clock */
extern int	instaid_max_drift;

extern bool instaid_ms_since_epoch(TimestampTz time, TimestampTz epoch, int64 *ms);
extern int64 instaid_take_tick(Oid sequence, TimestampTz epoch);
extern int	instaid_take_ticks(Oid sequence, TimestampTz epoch, int wanted,
					   int64 *first);
extern bool instaid_last_tick(Oid sequence, int64 *tick);
extern void instaid_skip_ticks(Oid sequence, int64 tick);
extern void instaid_generator_init(void);

#endif							/* INSTAID_GENERATOR_H */
