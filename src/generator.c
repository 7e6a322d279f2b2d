/*
 * The clocked sequence: a PostgreSQL sequence that keeps up with the clock.
 *
 * The value of a shard's sequence is a tick, ms << SEQUENCE_BITS | sequence, with the ms
 * since 1970.  The next tick is the next value of nextval(), moved up to the clock's millisecond
 * if the sequence is behind the clock; its sequence field runs on.  Time and sequence advance
 * together, under the exclusive lock of the sequence's only page.  Therefore no two calls can
 * pair the same sequence number with the same millisecond.
 *
 * Whatever must survive the session is in the sequence itself, written by the rules of
 * nextval_internal() in src/backend/commands/sequence.c.  Therefore core's functions, recovery
 * and standbys understand it.
 *
 * The invariant: a tick is given out only when the clock, or flushed WAL, already guarantees
 * that it will not be given out again.
 *
 * Code that few calls need is in separate functions, marked pg_noinline, so that the other
 * calls save no registers and check no stack for it.
 */
#include "postgres.h"

#include <limits.h>

#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "clocked_sequence.h"
#include "common.h"
#include "generator.h"
#include "layout.h"
#include "sequence.h"

PG_FUNCTION_INFO_V1(instaid_drift_limit);

/*
 * Core logs 32 values ahead.  A busy sequence is logged one second ahead, so that it writes one
 * WAL record a second.  After a crash it goes on that far ahead of its last tick at most.
 */
#define TICKS_LOGGED_AHEAD	(1000 * TICKS_PER_MS)

/* the longest time that one call waits for the clock, in ms */
#define MAX_CLOCK_WAIT		64

/* how often a session warns of drift, in microseconds */
#define WARNING_INTERVAL	(60 * USECS_PER_SEC)

/* instaid.max_drift: see generator_init() */
static int	max_drift;

/*
 * WAL up to this LSN is as durable as this value of synchronous_commit demands.  To find that out
 * takes 250 instructions otherwise, for each ID that is ahead of the clock.
 */
static XLogRecPtr durable = InvalidXLogRecPtr;
static int	durable_for = SYNCHRONOUS_COMMIT_OFF;

/* The wall clock in milliseconds since 1970.  It can be set back. */
static inline int64
clock_ms(void)
{
	TimestampTz now = GetCurrentTimestamp() + POSTGRES_EPOCH_MS * 1000;

	return (uint64) Max(now, 0) / 1000;
}

void
generator_init(void)
{
	/* a superuser's: IDs ahead of the clock concern all users */
	DefineCustomIntVariable("instaid.max_drift",
							"Sets how far IDs may run ahead of the clock under overload.",
							"An ID that would go further waits first, 64 ms at most.",
							&max_drift, 1000, 0, INT_MAX, PGC_SUSET, GUC_UNIT_MS,
							NULL, NULL, NULL);
}

/*
 * How far a sequence can be ahead of the clock: load takes it up to max_drift and one wait, and a
 * crash as far as is logged ahead.
 */
Datum
instaid_drift_limit(PG_FUNCTION_ARGS)
{
	Interval   *limit = palloc0(sizeof(Interval));

	(void) fcinfo;
	limit->time = ((int64) max_drift + MAX_CLOCK_WAIT + TICKS_LOGGED_AHEAD / TICKS_PER_MS) * 1000;
	PG_RETURN_INTERVAL_P(limit);
}

/* Sleep, ready to be interrupted. */
static pg_noinline void
wait_for_clock(long timeout)
{
	static uint32 wait_event = 0;
	int64		end = monotonic_time() + timeout * INT64CONST(1000);

	if (wait_event == 0)
		wait_event = WaitEventExtensionNew("InstaidClock");

	for (long left = timeout; left > 0; left = (end - monotonic_time()) / 1000)
	{
		CHECK_FOR_INTERRUPTS();
		if (WaitLatch(MyLatch,
					  WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					  left, wait_event) & WL_TIMEOUT)
			break;
		ResetLatch(MyLatch);
	}
	CHECK_FOR_INTERRUPTS();
}

/*
 * Wait until the clock leaves a millisecond.  The page stays locked meanwhile, so that no other
 * session takes a tick of that millisecond.  A signal can end a sleep early, and a clock can
 * stand still: therefore this is a loop, and it ends.
 */
static pg_noinline int64
let_millisecond_pass(int64 running)
{
	int64		now = running;

	for (int i = 0; i < MAX_CLOCK_WAIT && now == running; i++)
	{
		pg_usleep(1000);
		now = clock_ms();
	}
	return now;
}

/*
 * Can core have set the sequence back from a tick of the running millisecond?  If so, that tick
 * would come again, unless the caller lets the millisecond pass.  The log_cnt of core is 0 after
 * setval() and RESTART, and above 0 after nextval().
 *
 *	log_cnt		next tick is of		answer
 *	0			an earlier ms		yes
 *	0			this ms				yes: from a greater tick of this ms
 *	0			a later ms			no: no tick of this ms follows
 *	above 0		an earlier ms		yes: nextval() can have followed setval()
 *	above 0		this or a later ms	no
 *
 * The last answer is wrong in one case: setval() has set the sequence back to a tick of this
 * millisecond, and nextval() has followed, all within the millisecond.  Nothing in the page shows
 * that.
 */
static bool
can_be_set_back(Form_pg_sequence_data data, int64 next, int64 now)
{
	return tick_ms(next) < now + (data->log_cnt == 0 ? 1 : 0);
}

/*
 * The next tick, by the state of the locked page and by the clock, whose time goes into *now.
 * If it is above MAX_TICK, there is none.
 */
static inline int64
next_tick(ClockedSequence *seq, Form_pg_sequence_data data, int64 *now)
{
	int64		next;
	int64		lowest;			/* the next tick must not be below this */

	*now = clock_ms();
	lowest = pack_tick(*now, 0);

	/* setval() can have set any value, and adding 1 must not overflow */
	next = Min(data->last_value, MAX_TICK + 1) + (data->is_called ? 1 : 0);

	if (unlikely(sequence_is_cores(data)) && can_be_set_back(data, next, *now))
	{
		int64		running = *now;

		*now = let_millisecond_pass(running);
		lowest = pack_tick(Max(*now, running + 1), 0);
	}

	/*
	 * The sequence can have been set back below ticks that this session has
	 * had.  They must not come again: go on after them.  But if they are
	 * further ahead of the clock than load explains, the sequence had been
	 * set ahead, and someone has now corrected this.  The session must not
	 * undo the correction.
	 */
	if (seq->end > lowest &&
		tick_ms(seq->end) - *now <= (int64) max_drift + MAX_CLOCK_WAIT)
		lowest = seq->end;

	/* move up to the first tick that is high enough and whose low bits run on */
	if (next < lowest)
	{
		next = pack_tick(tick_ms(lowest), tick_sequence(next));
		if (next < lowest)
			next += TICKS_PER_MS;
	}
	return next;
}

/* Write the WAL record that covers the ticks up to this one. */
static pg_noinline void
log_ticks(ClockedSequence *seq, Form_pg_sequence_data data, int64 logged)
{
	XLogRecPtr	lsn;

	/*
	 * With an XID, the commit flushes the record and waits for standbys.
	 * Assigning one can fail.  Since PostgreSQL 19, the end of a
	 * subtransaction then unlocks only pages that it has itself pinned.
	 */
	IncrBufferRefCount(seq->buffer);
	GetTopTransactionId();
	ReleaseBuffer(seq->buffer);

	lsn = sequence_log_page(seq->buffer, seq->locator, data, logged);

	/*
	 * a transaction that goes on, or is rolled back, does not flush it: the
	 * WAL writer does
	 */
	XLogSetAsyncXactLSN(lsn);
}

/*
 * Store the last tick that was taken in the locked page, by the rules of nextval_internal().
 * Returns the LSN up to which WAL must be flushed so that a crash does not set it back.
 */
static inline XLogRecPtr
store_tick(ClockedSequence *seq, Form_pg_sequence_data data, int64 last)
{
	Page		page = BufferGetPage(seq->buffer);
	int64		logged;
	bool		log_it;

	/* before GetRedoRecPtr(): see sequence_log_page() */
	MarkBufferDirty(seq->buffer);
	logged = data->last_value + sequence_values_covered(seq->file, data);

	/*
	 * as in core, also after a checkpoint: replay starts after the last
	 * record then
	 */
	log_it = last >= logged || PageGetLSN(page) <= GetRedoRecPtr();
	if (unlikely(log_it))
	{
		logged = last;
		if (seq->needs_wal)
		{
			logged = Min(last + TICKS_LOGGED_AHEAD, MAX_TICK);
			log_ticks(seq, data, logged);
		}
	}

	/* Plain stores cannot fail, so they need no critical section. */
	data->last_value = last;
	data->is_called = true;
	data->log_cnt = sequence_log_cnt(seq->file, logged - last);

	return seq->needs_wal ? PageGetLSN(page) : InvalidXLogRecPtr;
}

/* The error for a sequence that has no further tick; the page is locked */
pg_noreturn static pg_noinline void
no_tick_error(ClockedSequence *seq, Form_pg_sequence_data data)
{
	int64		last_value = data->last_value;

	clocked_sequence_unlock_page(seq);
	ereport(ERROR,
			(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
			 errmsg("sequence \"%s\" has reached the last tick", get_rel_name(seq->relid)),
			 errdetail("The sequence is at %lld. The last tick is %lld.",
					   (long long) last_value, (long long) MAX_TICK),
			 errhint("If the sequence was set too far by mistake, set it back with setval().")));
}

/*
 * Warn that a sequence is further ahead of the clock than load explains: once a minute, and
 * again when the clock was set back.
 */
static pg_noinline void
warn_of_drift(ClockedSequence *seq, int64 drift)
{
	TimestampTz now = GetCurrentTimestamp();

	if (now >= seq->warned_at && now - seq->warned_at < WARNING_INTERVAL)
		return;
	seq->warned_at = now;

	ereport(WARNING,
			(errmsg("IDs of sequence %s are %lld ms ahead of the clock",
					sequence_qualified_name(seq->relid), (long long) drift),
			 errdetail("instaid.max_drift is %d ms. Calls wait to reduce the drift to it.",
					   max_drift),
			 errhint("Either the server's clock was set back, or the sequence was set ahead, or the server has just restarted after a crash.")));
}

static pg_noinline void
make_durable(XLogRecPtr lsn)
{
	sequence_make_durable(lsn);
	durable = lsn;
	durable_for = synchronous_commit;
}

/*
 * Take ticks of one millisecond: at least one, and at most as many as wanted.  They are consecutive
 * from *first on.  Returns how many they are.
 */
static inline int
take_ticks(ClockedSequence *seq, int wanted, int64 *first)
{
	Form_pg_sequence_data data;
	XLogRecPtr	lsn;
	int64		now;
	int64		next;
	int64		drift;
	int			count;
	bool		waited = false;

	for (;;)
	{
		data = clocked_sequence_lock_page(seq);
		next = next_tick(seq, data, &now);
		if (unlikely(next > MAX_TICK))
			no_tick_error(seq, data);
		drift = tick_ms(next) - now;

		/*
		 * If the sequence is too far ahead, wait before taking the first tick
		 * of another millisecond.  One wait limits the rate of each session,
		 * and never stops it.
		 */
		if (likely(drift <= max_drift) || waited ||
			tick_ms(next) <= tick_ms(data->last_value))
			break;

		clocked_sequence_unlock_page(seq);
		wait_for_clock(Min(drift - max_drift, MAX_CLOCK_WAIT));
		waited = true;
	}

	count = Min(wanted, TICKS_PER_MS - tick_sequence(next));
	lsn = store_tick(seq, data, next + count - 1);
	clocked_sequence_unlock_page(seq);
	seq->end = next + count;

	/*
	 * The invariant.  A tick that is not ahead of the clock cannot come
	 * again, because the sequence catches up with the clock after a restart.
	 * A tick that is ahead needs a durable WAL record past it, here and, as
	 * synchronous_commit says, on standbys.
	 */
	if (drift > 0 && unlikely(lsn > durable || synchronous_commit > durable_for))
		make_durable(lsn);

	if (unlikely(drift > (int64) max_drift + MAX_CLOCK_WAIT))
		warn_of_drift(seq, drift);

	*first = next;
	return count;
}

/* Check a sequence, and lock it until the transaction ends, as the functions below do. */
void
generator_open(Oid sequence)
{
	(void) clocked_sequence_open(sequence, "instaid.next_id()");
}

/*
 * Take a tick of a sequence for the calling session.  Errors are those of nextval(), and two
 * more: the sequence cannot count ticks (55000), or has reached the last tick (2200H).
 */
int64
generator_take_tick(Oid sequence)
{
	int64		tick;

	(void) take_ticks(clocked_sequence_open(sequence, "instaid.next_id()"), 1, &tick);
	return tick;
}

/*
 * Take up to wanted ticks, where wanted is 1 to TICKS_PER_MS.  They are consecutive from *first
 * on, and of one millisecond.  Returns how many they are, at least 1.
 */
int
generator_take_ticks(Oid sequence, int wanted, int64 *first)
{
	return take_ticks(clocked_sequence_open(sequence, "instaid.next_ids()"), wanted, first);
}

/*
 * From now on, give only ticks above this one.  Another session can have written the WAL record
 * that covers the page, and our commit need not flush it.  Therefore this waits until it is
 * durable.
 */
void
generator_advance(Oid sequence, int64 tick)
{
	ClockedSequence *seq = clocked_sequence_open(sequence, "instaid.advance_past()");
	Form_pg_sequence_data data;
	XLogRecPtr	lsn;

	/* like setval(), this needs more rights than nextval() */
	sequence_check_rights(sequence, ACL_UPDATE);

	data = clocked_sequence_lock_page(seq);
	if (data->last_value < tick || (data->last_value == tick && !data->is_called))
	{
		bool		was_set = sequence_is_cores(data);

		store_tick(seq, data, tick);
		/* next_tick() must still see that setval() was called */
		if (was_set)
			data->log_cnt = 0;
		/* setval() can have set it back, but the session must not go back */
		seq->end = Max(seq->end, tick + 1);
	}
	lsn = seq->needs_wal ? PageGetLSN(BufferGetPage(seq->buffer)) : InvalidXLogRecPtr;
	clocked_sequence_unlock_page(seq);

	make_durable(lsn);
}
