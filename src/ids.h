/*-------------------------------------------------------------------------
 *
 * ids.h
 *	  What functions.c makes of IDs for declared shards.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_IDS_H
#define INSTAID_IDS_H

#include "fmgr.h"

extern Datum instaid_return_ids(FunctionCallInfo fcinfo, Oid sequence, int32 shard_id,
								int64 epoch_ms, int32 count);

#endif							/* INSTAID_IDS_H */
