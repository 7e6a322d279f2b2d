/*-------------------------------------------------------------------------
 *
 * settled.h
 *	  How far the IDs of a sequence are settled: see settled.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_SETTLED_H
#define INSTAID_SETTLED_H

#include "fmgr.h"

extern Datum settled_return_id(FunctionCallInfo fcinfo, Oid sequence, int32 shard_id,
							   int64 epoch_ms, bool wait);

#endif							/* INSTAID_SETTLED_H */
