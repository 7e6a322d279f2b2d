/*-------------------------------------------------------------------------
 *
 * ids.h
 *	  What ids.c makes of IDs for declared shards.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_IDS_H
#define INSTAID_IDS_H

#include "fmgr.h"

extern void instaid_begin_ids(FunctionCallInfo fcinfo, Oid sequence, int32 shard_id,
							  int64 epoch_ms, int32 count);
extern Datum instaid_return_id(FunctionCallInfo fcinfo);

#endif							/* INSTAID_IDS_H */
