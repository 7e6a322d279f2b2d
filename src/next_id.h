/* IDs made of ticks: see next_id.c. */
#ifndef INSTAID_NEXT_ID_H
#define INSTAID_NEXT_ID_H

#include "fmgr.h"

#include "declaration.h"
#include "layout.h"

pg_noreturn extern void no_id_error(int64 tick, int64 epoch_ms);
extern void next_ids_begin(FunctionCallInfo fcinfo, Oid sequence, int32 shard_id,
						   int64 epoch_ms, int32 count);
extern Datum next_ids_return(FunctionCallInfo fcinfo);

/*
 * The ID of a tick that was taken.  If the tick has no ID in this epoch, the call fails and
 * the tick is lost, as a rollback loses a value of nextval().
 */
static inline int64
id_of_tick(int64 tick, int32 shard_id, int64 epoch_ms)
{
	if (unlikely(!tick_has_id(tick, epoch_ms)))
		no_id_error(tick, epoch_ms);
	if (unlikely(shard_id == NODE_SHARD))
		shard_id = declaration_node_shard_id();
	return tick_to_id(tick, shard_id, epoch_ms);
}

#endif							/* INSTAID_NEXT_ID_H */
