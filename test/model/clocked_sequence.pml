/*
 * clocked_sequence.pml
 *	  The clocked sequence of src/generator.c, small enough to look at whole.
 *
 * Two sessions take ticks of one sequence; the server flushes WAL, writes the
 * page out, runs checkpoints and crashes whenever it likes.  spin looks at
 * every interleaving.  test/model.sh runs it, once for each claim and once for
 * each fault made on purpose (the -D macros); docs/model.md says what it shows.
 *
 * The wall clock is not a variable: it may step forward and back at any time,
 * so each reading of it is any value, but for the proviso.
 */
#ifndef CLOCK_MAX
#define CLOCK_MAX		3		/* readings are 1 to this */
#endif
#ifndef LAST_TICK
#define LAST_TICK		9		/* one ms ahead of the clock */
#endif
#ifndef MAX_RECORDS
#define MAX_RECORDS		3		/* since the redo pointer */
#endif
#define TICKS_PER_MS	2
#define LOG_AHEAD		2

#define MS(tick)		((tick) / TICKS_PER_MS)
#define MAX(a, b)		((a) > (b) -> (a) : (b))
#define MIN(a, b)		((a) < (b) -> (a) : (b))

/*
 * log_cnt of ours is negative in C, and here 1 + how many ticks the last record
 * still covers.  0 is from replay.
 */
typedef SequencePage { byte last_value, log_cnt }
#define LOG_CNT(left)	(1 + (left))
#define COVERED			(page.log_cnt -> page.log_cnt - 1 : 0)

SequencePage page;				/* in shared buffers */
byte page_lsn;
bool locked;					/* its exclusive content lock */
bool dirty;
SequencePage disk;				/* as last written out */

/*
 * WAL.  Only the sequence's records matter.  LSNs count them from the redo
 * pointer of the last complete checkpoint, so that this is always 0.
 */
byte inserted, flushed;
byte record[MAX_RECORDS + 2];	/* the last_value that replay restores */

/* The checkpoint at work, and the redo pointer that it will have. */
#define IDLE			0
#define REDO_CHOSEN		1		/* but GetRedoRecPtr() does not know it yet */
#define REDO_SHARED		2
#define SCANNED			3
byte checkpoint;
byte next_redo;
bool to_write;					/* BM_CHECKPOINT_NEEDED */

byte lsn[2];					/* what store_tick() returned to a session */
bool down;
byte gone;						/* sessions that have noticed */

/*
 * The assertions look at one ID that was handed out, any one.  covered_at is
 * the LSN that will cover it, if only the clock does so far.  When a crash
 * loses that, clock_passed is the clock's reading that did.
 */
byte watched;
bool committed;
byte covered_at, clock_passed;

#ifdef REACH
byte takers;					/* sessions that have an ID, one bit each */
bool gave_ahead, crashed_after;
#endif

inline read_clock(ms, from)		/* clock_ms() */
{
	ms = from;
	do
	:: ms < CLOCK_MAX -> ms++
	:: break
	od
}

inline flush_one()
{
	record[flushed] = 0;		/* replay goes on to the next */
	flushed++;
	covered_at = (covered_at == flushed -> 0 : covered_at)
}

inline flush(upto)				/* XLogFlush() */
{
	do
	:: flushed < upto -> flush_one()
	:: else -> break
	od
}

inline write_out()				/* FlushBuffer(): WAL before data */
{
	flush(page_lsn);
	disk.last_value = page.last_value;
	disk.log_cnt = page.log_cnt;
	dirty = false;
	to_write = false
}

/* The proviso: the first tick after a crash reads the clock past clock_passed. */
#if defined(FREE_CLOCK)
#define earliest		1
#elif defined(SAME_MS)
#define earliest		(clock_passed + (clock_passed == 0))
#else
#define earliest		(clock_passed + 1)
#endif

inline next_tick()
{
	read_clock(now, earliest);
	base = now * TICKS_PER_MS;
	next = page.last_value + 1;
	/*
	 * Let the ms pass that setval() may have lost.  In the running ms, C does not; here
	 * it may, so that each search gets here.
	 */
	if
	:: page.log_cnt == 0 && MS(next) <= now ->
		base = (now + 1) * TICKS_PER_MS;
		read_clock(now, 1);
		base = MAX(base, now * TICKS_PER_MS)
	:: page.log_cnt != 0 || MS(next) >= now
	fi;
	if
	:: next < base -> next = base + next % TICKS_PER_MS
	:: else
	fi
}

#ifdef NO_LOG_AFTER_CHECKPOINT
#define after_redo		true
#else							/* PageGetLSN(page) > GetRedoRecPtr() */
#define after_redo		(page_lsn > (checkpoint < REDO_SHARED -> 0 : next_redo))
#endif

/* take_ticks() and its caller: one transaction after the other */
proctype session(byte me)
{
	byte next, last, logged;
	byte now, base;				/* within the first step only */
	bool ahead;

again:
	{
		do
		:: atomic {				/* lock_page(), next_tick() */
			!locked && page.last_value < LAST_TICK && earliest <= CLOCK_MAX &&
				inserted < MAX_RECORDS ->
#ifndef NO_LOCK
			locked = true;
#endif
			next_tick();
#ifdef ORDER
			assert(next > watched);
#endif
			ahead = MS(next) > now;
			last = next;
			now = 0; base = 0;
#if !defined(DIRTY_AFTER_REDO) && !defined(DIRTY_AFTER_INSERT)
			dirty = true		/* MarkBufferDirty() */
#endif
			}

			atomic {			/* store_tick(): is a record due? */
			logged = page.last_value + COVERED;
			if
			:: logged = 0		/* yes; or not, as more than due do no harm */
			:: last < logged && after_redo
			fi
			}
#ifdef DIRTY_AFTER_REDO
			dirty = true;
#endif
			atomic {
			if
			:: logged == 0 ->	/* XLogInsert() */
				logged = MIN(last + LOG_AHEAD, LAST_TICK);
				inserted++;
#ifdef NO_LOG_AHEAD
				record[inserted] = last;
#else
				record[inserted] = logged;
#endif
				page_lsn = inserted
			:: else
			fi;
#ifdef DIRTY_AFTER_INSERT
			}
			dirty = true;
			atomic {
#endif
			page.last_value = last;
			page.log_cnt = LOG_CNT(logged - last);
			logged = 0;
			lsn[me] = page_lsn;
			if					/* what covers this tick covers those before it */
			:: clock_passed && page_lsn > flushed -> covered_at = page_lsn
			:: else
			fi;
			clock_passed = 0;
			locked = false
			}

hand_out:	atomic {			/* the invariant; then the ID is out */
#ifndef NO_FLUSH
			if
			:: ahead -> flush(lsn[me])
			:: else
			fi;
#endif
			assert(next != watched);
#ifdef REACH
			takers = takers | (1 << me);
			gave_ahead = gave_ahead || ahead;
			assert(!(takers == 3 && crashed_after));
#endif
			if
			:: watched == 0 ->
				watched = next;
				covered_at = (!ahead && lsn[me] > flushed -> lsn[me] : 0)
			:: goto next_id		/* an unwatched commit is a flush at any time */
			fi
			}
			atomic {
			if
			:: true				/* ROLLBACK */
			:: committed = true;
#ifndef ASYNC_COMMIT
				flush(inserted)
#endif
			fi;
next_id:	next = 0; last = 0; lsn[me] = 0; ahead = false
			}
		od
	} unless {
		atomic {
			down -> next = 0; last = 0; lsn[me] = 0; ahead = false; logged = 0;
			gone++;
			!down -> goto again
		}
	}
}

inline crash()
{
	down = true;
	gone == 2;

	/* replay what is flushed, from the redo pointer on: seq_redo() */
	if
	:: flushed > 0 ->
		page.last_value = record[flushed];
		page.log_cnt = 0
	:: else ->
		page.last_value = disk.last_value;
		page.log_cnt = disk.log_cnt
	fi;
	do
	:: inserted > 0 -> record[inserted] = 0; inserted--
	:: else -> break
	od;
	clock_passed = (covered_at -> MS(watched) : clock_passed);
	covered_at = 0;
#ifdef COMMITTED_ONLY
	watched = (committed -> watched : 0);
#endif
#ifdef REACH
	crashed_after = crashed_after || gave_ahead;
	takers = 0;
#endif
	locked = false; dirty = false; to_write = false;

	/* with the checkpoint at the end of recovery */
	disk.last_value = page.last_value;
	disk.log_cnt = page.log_cnt;
	checkpoint = IDLE;
	next_redo = 0; flushed = 0; page_lsn = 0;
	gone = 0; down = false
}

inline complete_checkpoint()
{
	flush(inserted);
	/* from now on, LSNs count from the new redo pointer */
	inserted = inserted - next_redo;
	flushed = inserted;
	page_lsn = MAX(page_lsn, next_redo) - next_redo;
	if
	:: next_redo > 0 ->
		record[inserted] = (inserted -> record[inserted + next_redo] : 0);
		record[inserted + next_redo] = 0
	:: else
	fi;
	lsn[0] = 0; lsn[1] = 0;		/* flushed */
	next_redo = 0;
	checkpoint = IDLE
}

active proctype server()
{
	atomic {
		page.last_value = TICKS_PER_MS - 1; page.log_cnt = LOG_CNT(LOG_AHEAD);
		disk.last_value = TICKS_PER_MS - 1; disk.log_cnt = LOG_CNT(LOG_AHEAD);
		run session(0); run session(1)
	}

end:
	do
	:: atomic { flushed < inserted -> flush_one() }
	:: atomic { dirty && !locked -> write_out() }

	/* CreateCheckPoint(), BufferSync() */
	:: atomic { checkpoint == IDLE && inserted > 0 ->
		next_redo = inserted; checkpoint = REDO_CHOSEN }
	:: atomic { checkpoint == REDO_CHOSEN -> checkpoint = REDO_SHARED }
	:: atomic { checkpoint == REDO_SHARED ->	/* looks at dirty without a lock */
		to_write = dirty; checkpoint = SCANNED }
	:: atomic { checkpoint == SCANNED && !to_write -> complete_checkpoint() }

	:: atomic { crash() }
	od
}
