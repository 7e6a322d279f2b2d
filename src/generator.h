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
extern int	max_drift;

extern bool ms_since_epoch(TimestampTz time, TimestampTz epoch, int64 *ms);
extern int	take_ticks(Oid sequence, TimestampTz epoch, int wanted,
					   int64 *first);
extern bool last_tick(Oid sequence, int64 *tick);
extern void generator_init(void);

#endif							/* INSTAID_GENERATOR_H */
