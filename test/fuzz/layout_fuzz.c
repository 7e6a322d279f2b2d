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
 * overflows.  It has no shift, no mask and no constant of layout.h's.
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
	int64		b;				/* another tick, and a time */
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

/* While IDs are positive, those of a shard sort as their ticks do. */
static void
check_id_order(int64 a, int64 b, int32 shard_id)
{
	int64		id_a = pack_id(tick_ms(a), shard_id, tick_sequence(a));
	int64		id_b = pack_id(tick_ms(b), shard_id, tick_sequence(b));

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
	check_id_order(as_unsigned(in.a) % POSITIVE_TICKS,
				   as_unsigned(in.b) % POSITIVE_TICKS, shard_id);
	return 0;
}
