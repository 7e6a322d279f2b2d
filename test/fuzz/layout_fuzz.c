/*-------------------------------------------------------------------------
 *
 * layout_fuzz.c
 *	  The functions of layout.h against a model of them, for libFuzzer.
 *
 * The model is arithmetic: an ID, read as unsigned, is
 *
 *		ms * 8388608 + shard ID * 1024 + sequence
 *
 * and a tick is ms * 1024 + sequence, in numbers of 128 bits, where nothing
 * overflows.  The ms of a tick are those of its ID and of the epoch together;
 * times are in microseconds since 2000.  It has no shift, no mask and no
 * constant of layout.h's.
 *
 *-------------------------------------------------------------------------
 */
#include "c.h"

#include "layout.h"

typedef __int128 wide;

#define SEQUENCES		1024
#define SHARDS			8192
#define MILLISECONDS	INT64CONST(2199023255552)	/* 2^41 */
#define POSITIVE_TICKS	INT64CONST(1125899906842624)	/* 2^50 */
#define TICKS			INT64CONST(9007199254740992)	/* 2^53 */
#define MS_OF_2000		INT64CONST(946684800000)	/* date -d 2000-01-01Z */
#define FIRST_TIME		INT64CONST(-211813488000000000) /* 4714-11-24 BC */
#define END_TIME		INT64CONST(9223371331200000000) /* 294277-01-01 */
#define TWO_TO_64		((wide) PG_UINT64_MAX + 1)

/* not fprintf(), which c.h replaces with one of PostgreSQL's library */
#define CHECK(condition) \
	do { \
		if (!(condition)) \
		{ \
			fputs("layout_fuzz.c:" CppAsString2(__LINE__) ": " #condition "\n", stderr); \
			abort(); \
		} \
	} while (0)

/* One input; what is missing at its end is zero. */
typedef struct
{
	int64		a;				/* an ID, and a tick */
	int64		b;				/* another tick, a time, and an epoch */
	uint32		c;				/* a shard ID and a sequence */
} Input;

int			LLVMFuzzerTestOneInput(const uint8 *data, size_t size);

static wide
as_unsigned(int64 id)
{
	return id < 0 ? id + TWO_TO_64 : id;
}

/* Any bigint is an ID, and its fields give it back. */
static void
check_id(int64 id)
{
	wide		model = as_unsigned(id);

	CHECK(id_ms(id) == model / (SHARDS * SEQUENCES));
	CHECK(id_shard_id(id) == model / SEQUENCES % SHARDS);
	CHECK(id_sequence(id) == model % SEQUENCES);

	CHECK(id_ms(id) >= 0 && id_ms(id) < MILLISECONDS);
	CHECK(id_shard_id(id) >= 0 && id_shard_id(id) < SHARDS);
	CHECK(id_sequence(id) >= 0 && id_sequence(id) < SEQUENCES);

	CHECK(pack_id(id_ms(id), id_shard_id(id), id_sequence(id)) == id);
}

/* Any fields are an ID, and it gives them back. */
static void
check_fields(int64 ms, int32 shard_id, int32 sequence)
{
	int64		id = pack_id(ms, shard_id, sequence);

	CHECK(as_unsigned(id) ==
		  ((wide) ms * SHARDS + shard_id) * SEQUENCES + sequence);
	CHECK(id_ms(id) == ms);
	CHECK(id_shard_id(id) == shard_id);
	CHECK(id_sequence(id) == sequence);
}

/* Any bigint is a tick; the sequence of a negative one is not negative. */
static void
check_tick(int64 tick)
{
	int64		ms = tick_ms(tick);
	int32		sequence = tick_sequence(tick);

	CHECK(sequence >= 0 && sequence < SEQUENCES);
	CHECK((wide) ms * SEQUENCES + sequence == tick);
	CHECK(pack_tick(ms, sequence) == tick);
}

/* Ticks sort as their times do, then as their sequences. */
static void
check_tick_order(int64 a, int64 b)
{
	bool		before = tick_ms(a) < tick_ms(b) ||
		(tick_ms(a) == tick_ms(b) && tick_sequence(a) < tick_sequence(b));

	CHECK(before == (a < b));
}

/* The milliseconds of any time are rounded down. */
static void
check_time(TimestampTz time)
{
	wide		begin = ((wide) time_ms(time) - MS_OF_2000) * 1000;

	CHECK(begin <= time && time < begin + 1000);
}

/* An epoch is a whole ms, and all times that count from it are timestamps. */
static void
check_epoch(TimestampTz epoch)
{
	wide		last = (wide) epoch + (wide) (MILLISECONDS - 1) * 1000 + 999;

	CHECK(epoch_is_legal(epoch) ==
		  (epoch >= FIRST_TIME && last < END_TIME && epoch % 1000 == 0));
}

/* A tick has an ID if that is positive; both are of one time and sequence. */
static void
check_id_of_tick(int64 tick, int32 shard_id, int64 epoch_ms)
{
	wide		ms = (wide) tick / SEQUENCES - epoch_ms;
	bool		has_id = ms >= 0 && ms < MILLISECONDS / 2;

	CHECK(tick <= MAX_TICK);
	CHECK(time_ms(tick_timestamp(tick)) == tick / SEQUENCES);
	CHECK(tick_has_id(tick, epoch_ms) == has_id);
	if (has_id)
	{
		int64		id = tick_to_id(tick, shard_id, epoch_ms);

		CHECK(id == (ms * SHARDS + shard_id) * SEQUENCES + tick % SEQUENCES);
	}
}

/* While IDs are positive, those of a shard and an epoch sort as their ticks do. */
static void
check_id_order(int64 a, int64 b, int32 shard_id)
{
	int64		id_a = tick_to_id(a, shard_id, 0);
	int64		id_b = tick_to_id(b, shard_id, 0);

	CHECK(id_a >= 0 && id_b >= 0);
	CHECK((id_a < id_b) == (a < b));
}

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	Input		in = {0};
	int32		shard_id;

	if (size > 0)
		memcpy(&in, data, Min(size, sizeof(in)));
	shard_id = in.c % SHARDS;

	check_id(in.a);
	check_fields(as_unsigned(in.b) % MILLISECONDS, shard_id,
				 in.c / SHARDS % SEQUENCES);
	check_tick(in.a);
	check_tick_order(in.a, in.b);
	check_time(in.b);
	check_epoch(in.a);
	check_epoch(in.b);
	/* whole milliseconds, near the bounds too */
	check_epoch(in.b / 1000 * 1000);
	/* an epoch that may be the tick's, and any */
	check_id_of_tick(as_unsigned(in.a) % TICKS, shard_id,
					 (int64) (as_unsigned(in.a) % TICKS / SEQUENCES)
					 - (int64) (as_unsigned(in.b) % MILLISECONDS) + in.c % 4);
	check_id_of_tick(as_unsigned(in.a) % TICKS, shard_id, in.b / 1000);
	check_id_order(as_unsigned(in.a) % POSITIVE_TICKS,
				   as_unsigned(in.b) % POSITIVE_TICKS, shard_id);
	return 0;
}
