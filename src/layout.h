/*
 * The 64 bits of an ID and the 53 bits of a tick.
 *
 *	  bit 63                          23 22          10 9          0
 *		  +-----------------------------+--------------+------------+
 *		  | 41 bits: ms since the epoch | 13: shard ID | 10: nextval|
 *		  |                             |   0..8191    |   mod 1024 |
 *		  +-----------------------------+--------------+------------+
 *
 * The layout is the one that Instagram published in "Sharding & IDs at Instagram" (2012).
 *
 *	  bit 52                               10 9          0
 *		  +----------------------------------+------------+
 *		  | 43 bits: ms since 1970-01-01 UTC | 10: nextval|
 *		  +----------------------------------+------------+
 *
 * The sequence of a shard counts ticks.  The epoch is subtracted when a tick becomes an ID, so no
 * epoch that a caller passes can move the sequence away from the clock.  The highest tick is
 * 2^53 - 1, in the year 2248: JavaScript reads all integers up to there exactly.
 *
 * Packing and unpacking use all 41 bits of time, so that any bigint can be read.  IDs are made for
 * the first 2^40 ms only: later ones would be negative, and would no longer sort by time.
 */
#ifndef INSTAID_LAYOUT_H
#define INSTAID_LAYOUT_H

#include "datatype/timestamp.h"

#define SEQUENCE_BITS	10
#define SHARD_ID_BITS	13
#define MS_BITS			41
#define TICK_MS_BITS	43

#define SHARD_ID_SHIFT	SEQUENCE_BITS
#define MS_SHIFT		(SEQUENCE_BITS + SHARD_ID_BITS)

#define TICKS_PER_MS	(1 << SEQUENCE_BITS)
#define MAX_SEQUENCE	(TICKS_PER_MS - 1)
#define MAX_SHARD_ID	((1 << SHARD_ID_BITS) - 1)
#define MAX_MS			((INT64CONST(1) << MS_BITS) - 1)

/* the last millisecond after an epoch whose IDs are positive */
#define LAST_MS			(MAX_MS >> 1)

#define MAX_TICK		((INT64CONST(1) << (TICK_MS_BITS + SEQUENCE_BITS)) - 1)

/* 2000-01-01, the origin of a TimestampTz, in milliseconds since 1970 */
#define POSTGRES_EPOCH_MS \
	((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * 1000)

/* the epoch that Instagram published: 2011-08-24 21:07:01.721 UTC */
#define DEFAULT_EPOCH_MS	INT64CONST(1314220021721)

/* With an epoch from MIN_EPOCH and before END_EPOCH, every ID's time is a timestamp. */
#define MIN_EPOCH		MIN_TIMESTAMP
#define END_EPOCH		(END_TIMESTAMP - MAX_MS * 1000)

StaticAssertDecl(MS_BITS + SHARD_ID_BITS + SEQUENCE_BITS == 64,
				 "the fields of an ID must fill 64 bits");
StaticAssertDecl(MIN_EPOCH % 1000 == 0,
				 "epoch_is_legal() counts from MIN_EPOCH, which must be a whole millisecond");

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

/* A tick can be negative, because setval() can set a sequence to any value. */
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

/* Milliseconds since 1970, rounded down.  The time must be finite. */
static inline int64
time_ms(TimestampTz time)
{
	return time / 1000 - (time % 1000 < 0) + POSTGRES_EPOCH_MS;
}

static inline TimestampTz
ms_timestamp(int64 ms)
{
	return (ms - POSTGRES_EPOCH_MS) * 1000;
}

/* The start of a tick's millisecond.  The tick must be between 0 and MAX_TICK. */
static inline TimestampTz
tick_timestamp(int64 tick)
{
	return ms_timestamp(tick_ms(tick));
}

/* An epoch must be a whole millisecond.  An infinite one is out of range, too. */
static inline bool
epoch_is_legal(TimestampTz epoch)
{
	uint64		since_first = (uint64) epoch - (uint64) MIN_EPOCH;

	return since_first < (uint64) END_EPOCH - (uint64) MIN_EPOCH &&
		since_first % 1000 == 0;
}

/* Does a tick have an ID, which is never negative, in the epoch epoch_ms? */
static inline bool
tick_has_id(int64 tick, int64 epoch_ms)
{
	return (uint64) (tick_ms(tick) - epoch_ms) <= (uint64) LAST_MS;
}

/* The ID of a tick, for which tick_has_id() must be true. */
static inline int64
tick_to_id(int64 tick, int32 shard_id, int64 epoch_ms)
{
	return pack_id(tick_ms(tick) - epoch_ms, shard_id, tick_sequence(tick));
}

#endif							/* INSTAID_LAYOUT_H */
