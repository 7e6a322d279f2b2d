/*-------------------------------------------------------------------------
 *
 * generator.c
 *	  The clocked sequence: a PostgreSQL sequence that keeps up with the clock.
 *
 * The value of a shard's sequence is a tick, ms << 10 | sequence, with the
 * milliseconds since 1970.  Nothing here knows an epoch.  The next tick is
 * what nextval() would give, moved up to the clock's millisecond when the
 * sequence is behind it; its low ten bits run on.  Time and sequence are
 * advanced together, under the exclusive lock of the sequence's only page, so
 * no two calls can pair the same sequence number with the same millisecond.
 *
 * Everything that must survive the session is in the sequence itself, written
 * by the rules of nextval_internal() in src/backend/commands/sequence.c, so
 * that core's functions, crash recovery and standbys understand it.
 *
 * The invariant: a tick is handed out only when the clock, or WAL that is
 * flushed, guarantees already that it will not be handed out again.
 *
 * What few calls need is in functions of its own, marked pg_noinline, so that
 * the other calls save no registers and check no stack for it.  The page stays
 * pinned until the transaction ends, as long as the lock on the sequence is
 * held.  Looking the page up, pinning it and releasing it at each call was half
 * of the cost ("make bench-instructions").
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_sequence.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "ids/generator.h"
#include "ids/layout.h"
#include "sequence.h"

/*
 * Core logs 32 values ahead.  A busy tick moves by 1,024 a millisecond, so it
 * is logged one second ahead: a WAL record a second, and after a crash the
 * sequence resumes at most a second ahead of where it was.
 */
#define LOG_AHEAD		(1000 * TICKS_PER_MS)

/* What core's nextval() leaves in log_cnt at most (its SEQ_LOG_VALS). */
#define CORE_LOG_VALS	32

/* the longest that one call waits for the clock, in ms */
#define MAX_WAIT		64

/* 2026-01-01: the first freeze_shard() came later */
#define FIRST_FREEZE_MS	INT64CONST(1767225600000)

/* how many sequences a session keeps in mind */
#define MAX_SEQUENCES	1024

/* how often a session speaks of drift, in microseconds */
#define WARNING_INTERVAL	(60 * USECS_PER_SEC)

/* What this session knows of one sequence. */
typedef struct ClockedSequence
{
	Oid			relid;			/* hash key */

	/*
	 * What load_sequence() found out.  It is valid for this role until an
	 * invalidation.  needs_wal = false and may_pin = false hold for this
	 * transaction only: no invalidation announces the commit of the
	 * transaction that created the sequence.
	 */
	LocalTransactionId lxid;	/* transaction in which we hold the lock */
	Oid			role;
	uint64		generation;		/* value of "generation" then, or 0 */
	RelFileLocator locator;
	int64		cache;			/* CACHE n of the sequence */
	bool		is_temp;
	bool		needs_wal;
	bool		must_log;		/* not a tick yet from this file */

	Buffer		buffer;			/* where its page was last seen, just a hint
								 * unless it is pinned */
	bool		may_pin;		/* past a call: see pin_page() */

	/*
	 * Ticks from next up to but not including end are reserved for this
	 * session.  end stays when they are used up, also when the sequence gets
	 * another file: whatever happens to it, the session does not go back.
	 */
	int64		next;
	int64		end;
	TimestampTz reserved_at;	/* the start of the clock's millisecond then */

	TimestampTz warned_at;
} ClockedSequence;

/* instaid.max_drift */
int			instaid_max_drift = 1000;

static HTAB *sequences = NULL;

/*
 * Up to here WAL is known to be where this value of synchronous_commit has it.
 * XLogFlush() would find that out, too, but takes 30 instructions, for each ID
 * that is ahead of the clock.
 */
static XLogRecPtr durable = InvalidXLogRecPtr;
static int	durable_for = SYNCHRONOUS_COMMIT_OFF;

/* Counts the invalidations that may concern what we know of a sequence. */
static uint64 generation = 1;

/*
 * The clock in milliseconds since 1970.
 *
 * This is the wall clock, which may be set back; nothing here relies on it to
 * be monotonic.  Past LAST_TICK there are no ticks.
 */
static inline int64
clock_ms(void)
{
	TimestampTz now = GetCurrentTimestamp() + POSTGRES_EPOCH_MS * 1000;

	return (uint64) Max(now, 0) / 1000;
}

/* The sequence that this session used last */
static ClockedSequence *latest = NULL;

/*
 * The buffer of "latest" that is pinned until the transaction ends, or another
 * sequence is used, or this one may have got another file.
 *
 * The pin is the top transaction's, as the lock is, and lives no longer: as long
 * as the page cannot be another's, it need not be looked for.
 */
static Buffer pinned = InvalidBuffer;

static pg_noinline void
release_pin(void)
{
	ResourceOwner saved = CurrentResourceOwner;

	CurrentResourceOwner = TopTransactionResourceOwner;
	ReleaseBuffer(pinned);
	CurrentResourceOwner = saved;
	pinned = InvalidBuffer;
}

/* When a transaction is rolled back, its resource owner releases its pins. */
static void
xact_callback(XactEvent event, void *arg pg_attribute_unused())
{
	if (!BufferIsValid(pinned))
		return;
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
		release_pin();
	else if (event == XACT_EVENT_ABORT)
		pinned = InvalidBuffer;
}

static void
relcache_callback(Datum arg pg_attribute_unused(), Oid relid)
{
	if (!OidIsValid(relid) ||
		hash_search(sequences, &relid, HASH_FIND, NULL) != NULL)
		generation++;
}

static void
role_callback(Datum arg pg_attribute_unused(),
			  SysCacheIdentifier cacheid pg_attribute_unused(),
			  uint32 hashvalue pg_attribute_unused())
{
	generation++;
}

static void
create_hash(void)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(ClockedSequence)};

	sequences = hash_create("instaid sequences", 16, &ctl,
							HASH_ELEM | HASH_BLOBS);
}

void
instaid_generator_init(void)
{
	create_hash();

	/* a new file, new options or a GRANT, and whatever changes a role */
	CacheRegisterRelcacheCallback(relcache_callback, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, role_callback, (Datum) 0);
	CacheRegisterSyscacheCallback(AUTHOID, role_callback, (Datum) 0);
	/* its owner is a member of pg_database_owner */
	CacheRegisterSyscacheCallback(DATABASEOID, role_callback, (Datum) 0);
	RegisterXactCallback(xact_callback, NULL);
}

/*
 * Is this as freeze_shard() leaves a sequence?  The sequence stands at its
 * MAXVALUE, so that to nextval() it is used up, and pg_dump takes that along.
 * It stands there at a tick of its past, which is not before 2004 (2^40 ms); or
 * at the first value that can be a MAXVALUE, if it was never used.  A sequence
 * that was given a MAXVALUE for other reasons, and reached it, is not frozen.
 *
 * A dump without data restores the MAXVALUE, and a sequence that has given
 * nothing.  It is frozen, too, if the MAXVALUE can be what freeze_shard() chose.
 */
static bool
is_frozen(Form_pg_sequence options, Form_pg_sequence_data data)
{
	int64		ms = tick_ms(options->seqmax);

	if (options->seqmin > 1 || options->seqmax >= LAST_TICK || options->seqincrement < 0)
		return false;
	if (options->seqmax == Max(options->seqmin + 1, options->seqstart))
		return !data->is_called || data->last_value == options->seqmax;
	if (data->is_called)
		return data->last_value == options->seqmax && ms > LAST_MS;
	return data->last_value == options->seqstart &&
		ms >= FIRST_FREEZE_MS && ms <= clock_ms() + LAST_MS;
}

/*
 * Has somebody given the sequence a range in which ticks do not fit?  That is
 * to keep its values from others' mostly, and must not be undone.  The bounds
 * that CREATE SEQUENCE gives by itself, for the type and the direction, are no
 * such range.
 */
static bool
has_own_range(Form_pg_sequence options)
{
	int64		default_max;

	if (options->seqincrement < 0)
		default_max = -1;
	else if (options->seqtypid == INT2OID)
		default_max = PG_INT16_MAX;
	else if (options->seqtypid == INT4OID)
		default_max = PG_INT32_MAX;
	else
		default_max = PG_INT64_MAX;
	return options->seqmin > 1 ||
		(options->seqmax < LAST_TICK && options->seqmax != default_max);
}

/* Ticks must be free to grow by one as far as they go. */
static void
check_options(Relation rel, Form_pg_sequence options)
{
	const char *complaint = NULL;

	if (has_own_range(options))
	{
		Buffer		buffer;
		bool		frozen;

		frozen = is_frozen(options,
						   sequence_lock_page(rel, &buffer, BUFFER_LOCK_SHARE));
		UnlockReleaseBuffer(buffer);
		if (frozen)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("shard %s is frozen",
							quote_identifier(get_namespace_name(RelationGetNamespace(rel)))),
					 errdetail("Its sequence \"%s\" gives no IDs until the shard is thawed.",
							   RelationGetRelationName(rel)),
					 errhint("If it was moved, use it where it is now; else its owner can thaw it: SELECT instaid.thaw_shard(%s);",
							 quote_literal_cstr(get_namespace_name(RelationGetNamespace(rel))))));
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" cannot serve as a source of IDs",
						RelationGetRelationName(rel)),
				 errdetail("It has a range of its own, %lld to %lld; a source of IDs has MINVALUE 1 or less and MAXVALUE %lld or more.",
						   (long long) options->seqmin,
						   (long long) options->seqmax,
						   (long long) LAST_TICK),
				 errhint("If Citus made this copy for a worker, take the IDs on the coordinator; otherwise use a sequence that was created without MINVALUE and MAXVALUE.")));
	}

	if (options->seqtypid != INT8OID)
		complaint = psprintf("Its type is %s; it must be bigint.",
							 format_type_be(options->seqtypid));
	else if (options->seqincrement != 1)
		complaint = psprintf("Its INCREMENT is %lld; it must be 1.",
							 (long long) options->seqincrement);
	else if (options->seqcycle)
		complaint = "It is defined with CYCLE; it must not come round.";

	if (complaint)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" cannot serve as a source of IDs",
						RelationGetRelationName(rel)),
				 errdetail_internal("%s", complaint),
				 errhint("Use ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE NO CYCLE.",
						 sequence_qualified_name(rel))));
}

/*
 * Lock the sequence for this transaction, check that it can serve the current
 * role, and note what reserve_ticks() needs.
 */
static pg_noinline void
load_sequence(ClockedSequence *seq)
{
	uint64		generation_before;
	Relation	rel;
	FormData_pg_sequence options;

	if (seq->lxid != MyLocalTransactionId)
	{
		sequence_lock(seq->relid);
		seq->lxid = MyLocalTransactionId;

		/*
		 * The lock has also brought what was invalidated.  If that was
		 * nothing of ours, all is as it was in our last transaction.
		 */
		if (seq->generation == generation && seq->role == GetUserId() &&
			seq->needs_wal && seq->may_pin)
			return;
	}

	generation_before = generation;
	seq->generation = 0;		/* for as long as an error may get us out */
	if (BufferIsValid(pinned))
		release_pin();			/* it may have another file */

	rel = sequence_open_locked(seq->relid, &options);
	check_options(rel, &options);
	seq->cache = options.seqcache;

	/*
	 * In a new file the session's reserve counts for nothing.  Nor does
	 * log_cnt: ALTER SEQUENCE and CREATE DATABASE ... TEMPLATE copy it without
	 * the record that it speaks of.
	 */
	if (!RelFileLocatorEquals(seq->locator, rel->rd_locator))
	{
		seq->locator = rel->rd_locator;
		seq->next = seq->end;
		seq->must_log = true;
	}
	seq->is_temp = rel->rd_islocaltemp;
	seq->needs_wal = RelationNeedsWAL(rel);
	seq->may_pin = !seq->is_temp &&
		rel->rd_createSubid == InvalidSubTransactionId &&
		rel->rd_firstRelfilelocatorSubid == InvalidSubTransactionId;

	relation_close(rel, NoLock);

	seq->role = GetUserId();
	seq->generation = generation_before;
}

static pg_noinline void
find_sequence(Oid relid)
{
	bool		found;

	if (BufferIsValid(pinned))
		release_pin();

	/* a session that uses very many sequences forgets them all now and then */
	if (hash_get_num_entries(sequences) >= MAX_SEQUENCES &&
		hash_search(sequences, &relid, HASH_FIND, NULL) == NULL)
	{
		hash_destroy(sequences);
		create_hash();
	}
	latest = hash_search(sequences, &relid, HASH_ENTER, &found);
	if (!found)
		*latest = (ClockedSequence) {.relid = relid};
}

/* Find a sequence that this role may use in this transaction. */
static inline ClockedSequence *
open_sequence(Oid relid)
{
	ClockedSequence *seq;

	if (unlikely(latest == NULL || latest->relid != relid))
		find_sequence(relid);
	seq = latest;

	/*
	 * Opening a relation and checking its ACL are most of what nextval()
	 * costs, and one statement may need a million IDs.
	 */
	if (unlikely(seq->generation != generation ||
				 seq->lxid != MyLocalTransactionId ||
				 seq->role != GetUserId()))
		load_sequence(seq);

	/* the same rules as nextval()'s, for the same reasons */
	if (unlikely(XactReadOnly) && !seq->is_temp)
		PreventCommandIfReadOnly("instaid.next_id()");
	if (unlikely(IsInParallelMode()))
		PreventCommandIfParallelMode("instaid.next_id()");

	return seq;
}

/*
 * Pin the sequence's page.
 *
 * ReadRecentBuffer() finds the page where it was without a look-up in the
 * buffer table and without the relation.
 *
 * The pin is kept past the call if the file cannot be dropped before the
 * transaction ends: a file that the transaction has created is, if it goes back
 * to a savepoint, and a buffer that is pinned then is an error.
 */
static pg_noinline void
pin_page(ClockedSequence *seq)
{
	ResourceOwner saved = CurrentResourceOwner;

	if (seq->may_pin)
		CurrentResourceOwner = TopTransactionResourceOwner;
	if (!BufferIsValid(seq->buffer) ||
		!ReadRecentBuffer(seq->locator, MAIN_FORKNUM, 0, seq->buffer))
	{
		Relation	rel = relation_open(seq->relid, NoLock);

		seq->buffer = ReadBuffer(rel, 0);
		relation_close(rel, NoLock);
	}
	CurrentResourceOwner = saved;
	if (seq->may_pin)
		pinned = seq->buffer;
}

/* Lock the sequence's page, and find its state. */
static inline Form_pg_sequence_data
lock_page(ClockedSequence *seq)
{
	if (unlikely(!BufferIsValid(pinned)))
		pin_page(seq);
	LockBuffer(seq->buffer, BUFFER_LOCK_EXCLUSIVE);
	return sequence_read_page(seq->buffer, seq->relid);
}

static inline void
unlock_page(ClockedSequence *seq)
{
	LockBuffer(seq->buffer, BUFFER_LOCK_UNLOCK);
	if (unlikely(!BufferIsValid(pinned)))
		ReleaseBuffer(seq->buffer);
}

/* Wait, with the page locked, for the millisecond after this one. */
static pg_noinline int64
let_millisecond_pass(int64 running)
{
	int64		now = running;

	for (int i = 0; i < 100 && now == running; i++)
	{
		pg_usleep(1000);
		now = clock_ms();
	}
	return now;
}

/*
 * Pick the next tick from the state of the locked page and from the clock,
 * which is put into *now.  Past LAST_TICK there is none.
 */
static inline int64
next_tick(ClockedSequence *seq, Form_pg_sequence_data data, int64 *now)
{
	int64		next;
	int64		floor;

	*now = clock_ms();
	floor = pack_tick(*now, 0);

	/* setval() may have left anything, but past the last tick is past it */
	next = Min(data->last_value, LAST_TICK + 1) + (data->is_called ? 1 : 0);

	/*
	 * log_cnt is 0 after setval(), RESTART or a restore, and 32 at most if
	 * nextval() was called since; we never leave it so.  Where the sequence
	 * stood before is lost; it may have been anywhere in the running
	 * millisecond.  Let that pass, and let nobody else take from the page
	 * meanwhile.  A signal cuts a sleep short, so what counts is the clock; it
	 * may stand still, so do not look at it for ever.
	 */
	if (unlikely(data->log_cnt >= 0 && data->log_cnt <= CORE_LOG_VALS) &&
		tick_ms(next) <= *now)
	{
		int64		running = *now;

		*now = let_millisecond_pass(running);
		floor = pack_tick(Max(*now, running + 1), 0);
	}

	/*
	 * This session also remembers ticks that were ahead of the clock.  If
	 * they were ahead by more than load can explain, the sequence was set
	 * back for a reason.
	 */
	if (seq->end > floor &&
		tick_ms(seq->end) - *now <= (int64) instaid_max_drift + MAX_WAIT)
		floor = seq->end;

	/* Move up to the first such tick; its low bits run on. */
	if (next < floor)
	{
		next = pack_tick(tick_ms(floor), tick_sequence(next));
		if (next < floor)
			next += TICKS_PER_MS;
	}
	return next;
}

/*
 * Write the WAL record that covers the ticks up to logged, with the page as it
 * is replayed.
 */
static pg_noinline void
log_ticks(ClockedSequence *seq, Form_pg_sequence_data data, int64 logged)
{
	XLogRecPtr	lsn;

	/* With an XID, the commit flushes the record and waits for standbys. */
	GetTopTransactionId();
	lsn = sequence_log_page(seq->buffer, seq->locator, data, logged);

	/*
	 * A transaction that goes on, or is rolled back, does not flush the record;
	 * let the WAL writer do so, as for an asynchronous commit.
	 */
	XLogSetAsyncXactLSN(lsn);
}

/*
 * Store the last tick taken in the locked page, by the rules of
 * nextval_internal().  Returns the LSN up to which WAL must be flushed for
 * the page to be where it is after a crash.
 */
static inline XLogRecPtr
store_tick(ClockedSequence *seq, Form_pg_sequence_data data, int64 last)
{
	Page		page = BufferGetPage(seq->buffer);
	int64		logged;
	bool		log_it;

	/*
	 * Before XLogInsert(): see SyncOneBuffer().  And before the look at the
	 * redo pointer, which core's nextval() takes first: a checkpoint that
	 * begins in between would pass by a page that is still clean, and leave
	 * the tick to a record from before its redo point.
	 */
	MarkBufferDirty(seq->buffer);
	logged = data->last_value + data->log_cnt;

	/*
	 * A record is due when the last one is nearly used up, so that next_tick()
	 * can tell what is left of it from what setval() and nextval() leave; and,
	 * as in core, after a checkpoint: replay would start behind it.
	 */
	log_it = seq->must_log || last + CORE_LOG_VALS >= logged ||
		PageGetLSN(page) <= GetRedoRecPtr();
	if (unlikely(log_it))
	{
		logged = Min(last + LOG_AHEAD, LAST_TICK);
		if (seq->needs_wal)
			log_ticks(seq, data, logged);
		seq->must_log = false;
	}

	/*
	 * Plain stores cannot fail, so they need no critical section.  Where no
	 * WAL is written, be it until the commit only (wal_level = minimal), no
	 * record covers anything: -1 makes core log, too.
	 */
	data->last_value = last;
	data->is_called = true;
	data->log_cnt = seq->needs_wal ? logged - last : -1;

	return seq->needs_wal ? PageGetLSN(page) : InvalidXLogRecPtr;
}

/* Sleep, ready to be interrupted. */
static pg_noinline void
wait_for_clock(long timeout)
{
	long		left = timeout;
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);

	while (left > 0)
	{
		instr_time	elapsed;

		CHECK_FOR_INTERRUPTS();
		if (WaitLatch(MyLatch,
					  WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					  left, PG_WAIT_EXTENSION) & WL_TIMEOUT)
			break;
		ResetLatch(MyLatch);

		INSTR_TIME_SET_CURRENT(elapsed);
		INSTR_TIME_SUBTRACT(elapsed, start);
		left = Min(left, timeout - (long) INSTR_TIME_GET_MILLISEC(elapsed));
	}
	CHECK_FOR_INTERRUPTS();
}

/*
 * Tell of a sequence that is further ahead of the clock than load explains,
 * once a minute; also at once when the clock was set back since.
 */
static pg_noinline void
warn_of_drift(ClockedSequence *seq, int64 drift)
{
	TimestampTz now = GetCurrentTimestamp();

	if (now >= seq->warned_at && now - seq->warned_at < WARNING_INTERVAL)
		return;
	seq->warned_at = now;

	ereport(WARNING,
			(errmsg("IDs of sequence \"%s\" are %lld ms ahead of the clock",
					get_rel_name(seq->relid), (long long) drift),
			 errdetail("instaid.max_drift is %d ms; calls wait to keep to it.",
					   instaid_max_drift),
			 errhint("The server's clock was set back, the sequence was set ahead, or the server has just restarted after a crash.")));
}

static pg_noinline void
make_durable(XLogRecPtr lsn)
{
	sequence_make_durable(lsn);
	durable = lsn;
	durable_for = synchronous_commit;
}

/*
 * Reserve up to wanted ticks for this session, at least one, all of one
 * millisecond.
 */
static void
reserve_ticks(ClockedSequence *seq, int wanted)
{
	Form_pg_sequence_data data;
	XLogRecPtr	lsn;
	int64		now;
	int64		next;
	int64		drift;
	int64		count;
	bool		waited = false;

	for (;;)
	{
		data = lock_page(seq);
		next = next_tick(seq, data, &now);
		if (next > LAST_TICK)
		{
			int64		last_value = data->last_value;

			unlock_page(seq);
			ereport(ERROR,
					(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
					 errmsg("sequence \"%s\" has reached the last tick",
							get_rel_name(seq->relid)),
					 errdetail("The sequence stands at %lld; the last tick is %lld.",
							   (long long) last_value, (long long) LAST_TICK),
					 errhint("If it was set too far by mistake, set it back with setval().")));
		}
		drift = tick_ms(next) - now;

		/*
		 * Too far ahead, do not open another millisecond at once.  One wait is
		 * enough: it bounds the pace of each session, and never stops it.
		 */
		if (drift <= instaid_max_drift || waited ||
			tick_ms(next) <= tick_ms(data->last_value))
			break;

		unlock_page(seq);
		wait_for_clock(Min(drift - instaid_max_drift, MAX_WAIT));
		waited = true;
	}

	/*
	 * CACHE is for the millisecond that the clock reads.  A sequence that is
	 * ahead of the clock is not pushed further by what may be dropped.
	 */
	if (drift == 0)
		count = Max(wanted, seq->cache);
	else
		count = wanted;
	count = Min(count, TICKS_PER_MS - tick_sequence(next));
	lsn = store_tick(seq, data, next + count - 1);
	unlock_page(seq);

	seq->end = next + count;
	seq->reserved_at = (now - POSTGRES_EPOCH_MS) * 1000;

	/*
	 * The invariant.  What is not ahead of the clock cannot come again, since
	 * a restarted sequence catches up with the clock first; what is ahead
	 * needs the record that takes it past, here and, as synchronous_commit
	 * says, on the standby that may take over.
	 */
	if (drift > 0)
	{
		seq->next = seq->end;	/* for as long as an error may get us out */
		if (unlikely(lsn > durable || synchronous_commit > durable_for))
			make_durable(lsn);
	}
	seq->next = next;

	if (unlikely(drift > (int64) instaid_max_drift + MAX_WAIT))
		warn_of_drift(seq, drift);
}

/*
 * Make sure that the session has ticks that it may give now.
 *
 * What CACHE left over is good while the clock reads the millisecond in which
 * it was reserved, lest it be older than another session's.  The clock's
 * microseconds tell that without a division.
 */
static inline void
ensure_ticks(ClockedSequence *seq, int wanted)
{
	if (seq->next >= seq->end ||
		(uint64) (GetCurrentTimestamp() - seq->reserved_at) >= 1000)
		reserve_ticks(seq, wanted);
}

/*
 * Take a tick of a sequence for the calling session.
 *
 * Errors are those of nextval(), and besides: a sequence that cannot count
 * ticks (55000), the last tick passed (2200H).
 */
int64
instaid_take_tick(Oid sequence)
{
	ClockedSequence *seq = open_sequence(sequence);

	ensure_ticks(seq, 1);
	return seq->next++;
}

/*
 * Take up to wanted ticks, 1 to TICKS_PER_MS: consecutive ones from *first on,
 * all in one millisecond.  Returns how many, at least 1.
 */
int
instaid_take_ticks(Oid sequence, int wanted, int64 *first)
{
	ClockedSequence *seq = open_sequence(sequence);
	int			count;

	ensure_ticks(seq, wanted);
	count = Min(wanted, seq->end - seq->next);
	*first = seq->next;
	seq->next += count;
	return count;
}

/*
 * Where a sequence stands: the last tick that it gave, or reserved for a
 * session; or whatever setval() left there.  Returns false if sequence_try_lock()
 * or sequence_read_locked() cannot tell.
 */
bool
instaid_last_tick(Oid sequence, SequenceState *state)
{
	FormData_pg_sequence options;
	FormData_pg_sequence_data data;
	bool		readable;

	if (!sequence_try_lock(sequence))
		return false;
	readable = sequence_read_locked(sequence, &options, &data);
	UnlockRelationOid(sequence, RowExclusiveLock);
	if (!readable)
		return false;

	state->last_value = data.last_value;
	state->is_called = data.is_called;
	state->is_frozen = is_frozen(&options, &data);
	return true;
}

/*
 * From now on, give only ticks that are greater.  Errors are those of
 * instaid_take_ticks() and setval().
 *
 * The record that covers the page may be another session's, and need not be
 * flushed by our commit: that is waited for, as for a tick that is ahead of the
 * clock.
 */
void
instaid_skip_ticks(Oid sequence, int64 tick)
{
	ClockedSequence *seq = open_sequence(sequence);
	Form_pg_sequence_data data;
	XLogRecPtr	lsn;

	/* moving it is more than taking from it, as with setval() */
	if (pg_class_aclcheck(sequence, GetUserId(), ACL_UPDATE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SEQUENCE, get_rel_name(sequence));

	data = lock_page(seq);
	if (data->last_value < tick)
	{
		store_tick(seq, data, tick);
		/* what the session has reserved is below */
		seq->next = seq->end = tick + 1;
	}
	lsn = seq->needs_wal ? PageGetLSN(BufferGetPage(seq->buffer)) : InvalidXLogRecPtr;
	unlock_page(seq);

	make_durable(lsn);
}
