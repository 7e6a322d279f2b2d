/* Shard IDs and epochs that callers pass: see arguments.c. */
#ifndef INSTAID_ARGUMENTS_H
#define INSTAID_ARGUMENTS_H

#include "datatype/timestamp.h"

/* The epoch that was passed last */
extern TimestampTz last_epoch;
extern int64 last_epoch_ms;

extern void check_shard_id(int32 shard_id);
extern const char *time_str(TimestampTz time);
extern void remember_epoch(TimestampTz epoch);

/*
 * Check an epoch, and convert it to milliseconds since 1970.  Most calls pass the epoch of
 * the call before, which needs no check.
 */
static inline int64
epoch_to_ms(TimestampTz epoch)
{
	if (unlikely(epoch != last_epoch))
		remember_epoch(epoch);
	return last_epoch_ms;
}

#endif							/* INSTAID_ARGUMENTS_H */
