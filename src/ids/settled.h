/*-------------------------------------------------------------------------
 *
 * settled.h
 *	  How far the IDs of a sequence are settled: see settled.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_SETTLED_H
#define INSTAID_SETTLED_H

extern bool settled_find_id(Oid sequence, int32 shard_id, int64 epoch_ms, bool wait,
							int64 *id);

#endif							/* INSTAID_SETTLED_H */
