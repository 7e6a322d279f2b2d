/*-------------------------------------------------------------------------
 *
 * layout.h
 *	  The 64 bits of an ID and the 50 bits of a tick.
 *
 *	  bit 63                          23 22          10 9          0
 *		  +-----------------------------+--------------+------------+
 *		  | 41 bits: ms since the epoch | 13: shard ID | 10: nextval|
 *		  |                             |   0..8191    |   mod 1024 |
 *		  +-----------------------------+--------------+------------+
 *
 * The layout is the one that Instagram published in "Sharding & IDs at
 * Instagram" (2012).  A tick is an ID without its shard: ms << 10 | sequence.
 * It is what a shard's PostgreSQL sequence counts.
 *
 * Packing and unpacking know all 41 bits of time, so that any bigint can be
 * read back.  IDs are made for the first 2^40 ms only: after that the top bit,
 * which is bigint's sign, would be set, and IDs would no longer sort by time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_LAYOUT_H
#define INSTAID_LAYOUT_H

#define SEQUENCE_BITS	10
#define SHARD_ID_BITS	13
#define MS_BITS			41

#define SHARD_ID_SHIFT	SEQUENCE_BITS
#define MS_SHIFT		(SEQUENCE_BITS + SHARD_ID_BITS)

#define TICKS_PER_MS	(1 << SEQUENCE_BITS)
#define MAX_SEQUENCE	(TICKS_PER_MS - 1)
#define MAX_SHARD_ID	((1 << SHARD_ID_BITS) - 1)
#define MAX_MS			((INT64CONST(1) << MS_BITS) - 1)

/* the last millisecond, and the last tick, of which an ID is positive */
#define LAST_MS			(MAX_MS >> 1)
#define LAST_TICK		((LAST_MS << SEQUENCE_BITS) | MAX_SEQUENCE)

StaticAssertDecl(MS_BITS + SHARD_ID_BITS + SEQUENCE_BITS == 64,
				 "the fields of an ID must fill 64 bits");

static inline int64
pack_id(int64 ms, int32 shard_id, int32 sequence)
{
	return (int64) ((uint64) ms << MS_SHIFT |
					(uint64) shard_id << SHARD_ID_SHIFT |
					(uint64) sequence);
}

static inline int64
id_ms(int64 id)
{
	return (int64) ((uint64) id >> MS_SHIFT);
}

static inline int32
id_shard_id(int64 id)
{
	return (int32) (id >> SHARD_ID_SHIFT) & MAX_SHARD_ID;
}

static inline int32
id_sequence(int64 id)
{
	return (int32) id & MAX_SEQUENCE;
}

static inline int64
pack_tick(int64 ms, int32 sequence)
{
	return (int64) ((uint64) ms << SEQUENCE_BITS | (uint64) sequence);
}

/* A tick may be negative: what setval() leaves in a sequence may be anything. */
static inline int64
tick_ms(int64 tick)
{
	return tick >> SEQUENCE_BITS;
}

static inline int32
tick_sequence(int64 tick)
{
	return (int32) tick & MAX_SEQUENCE;
}

#endif							/* INSTAID_LAYOUT_H */
