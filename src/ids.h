/*-------------------------------------------------------------------------
 *
 * ids.h
 *	  Making IDs, for the SQL-callable functions and for declared shards.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_IDS_H
#define INSTAID_IDS_H

#include "datatype/timestamp.h"
#include "fmgr.h"

extern int64 instaid_make_next_id(Oid sequence, int32 shard_id, TimestampTz epoch);
extern Datum instaid_return_ids(FunctionCallInfo fcinfo, Oid sequence, int32 shard_id,
								int32 count, TimestampTz epoch);

#endif							/* INSTAID_IDS_H */
