/*-------------------------------------------------------------------------
 *
 * epoch.h
 *	  The epoch of an ID: which are legal, and what is wrong with others.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_EPOCH_H
#define INSTAID_EPOCH_H

#include "ids/layout.h"

extern void instaid_epoch_error(TimestampTz epoch);
extern void instaid_no_id_error(int64 tick, int64 epoch_ms);

/* An epoch as it was passed, in milliseconds since 1970. */
static inline int64
check_epoch(TimestampTz epoch)
{
	if (unlikely(!epoch_is_legal(epoch)))
		instaid_epoch_error(epoch);
	return time_ms(epoch);
}

/*
 * The ID of a tick that was taken.  That there is none is found out here, where
 * the epoch comes in; the tick is lost then, as a value of nextval() is by a
 * rollback.
 */
static inline int64
format_id(int64 tick, int32 shard_id, int64 epoch_ms)
{
	if (unlikely(!tick_has_id(tick, epoch_ms)))
		instaid_no_id_error(tick, epoch_ms);
	return tick_to_id(tick, shard_id, epoch_ms);
}

#endif							/* INSTAID_EPOCH_H */
