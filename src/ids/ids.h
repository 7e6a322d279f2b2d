/*-------------------------------------------------------------------------
 *
 * ids.h
 *	  IDs made of ticks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_IDS_H
#define INSTAID_IDS_H

#include "fmgr.h"

#include "ids/layout.h"
#include "ids/node.h"

extern void ids_no_id_error(int64 tick, int64 epoch_ms);
extern void ids_begin_set(FunctionCallInfo fcinfo, Oid sequence, int32 shard_id,
						  int64 epoch_ms, int32 count);
extern Datum ids_return_next(FunctionCallInfo fcinfo);

/*
 * The ID of a tick that was taken.  If the tick has no ID in this epoch, the
 * call fails and the tick is lost, as a rollback loses a value of nextval().
 */
static inline int64
ids_format(int64 tick, int32 shard_id, int64 epoch_ms)
{
	if (unlikely(!tick_has_id(tick, epoch_ms)))
		ids_no_id_error(tick, epoch_ms);
	if (unlikely(shard_id == NODE_SHARD))
		shard_id = ids_node_shard_or_error();
	return tick_to_id(tick, shard_id, epoch_ms);
}

#endif							/* INSTAID_IDS_H */
