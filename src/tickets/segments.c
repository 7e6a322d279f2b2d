/*-------------------------------------------------------------------------
 *
 * segments.c
 *	  Segments of tickets in shared memory, for all sessions.
 *
 * If a ticket's sequence has CACHE > 1, a background worker (worker.c) takes
 * segments of that many values from the sequence before sessions need them.  The
 * ticket's buffer has room for two: when a tenth of one is used, the worker is
 * asked for the other, so that no session waits at its end.
 *
 * Every value in a buffer has been taken: the WAL that takes the sequence past it
 * is as durable as the worker's synchronous_commit says.  Losing a buffer
 * therefore skips values and repeats none.  A session whose synchronous_commit
 * asks for more waits for that before it returns a value.
 *
 * setval(), ALTER SEQUENCE and nextval() still work on the sequence.  A session
 * that takes a value looks at the sequence's page, under a shared lock, and drops
 * what is buffered if one of them has changed the page.  While the buffer stays
 * empty, sessions take values from the sequence itself.
 *
 * Locks are taken in this order: the sequence's relation lock, its page's, the
 * table's, the buffer's.  A pointer to a buffer is valid only while the table is
 * locked: a buffer is removed when its ticket is dropped, or when another ticket
 * needs it and this one is idle or cannot be refilled.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "catalog/objectaccess.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/bufmgr.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "sequence.h"
#include "tickets/launch.h"
#include "tickets/monotonic.h"
#include "tickets/segments.h"

/* the most values of a segment, unless one step is more */
#define MAX_SEGMENT		1000000

/* how long the worker waits after a failed refill, in ms: first, and at most */
#define FIRST_BACKOFF	100
#define LAST_BACKOFF	5000

/* how soon a waiting call looks again for a free background worker, in ms */
#define WORKER_RETRY_INTERVAL	100

/*
 * how long a buffer must be unused, in ms, before another ticket may have it,
 * unless it is empty and its last refill failed
 */
#define MIN_IDLE		10000
/* how long calls do not look for a buffer after all were in use, in ms */
#define FULL_INTERVAL	1000

/* how many condition variables the tickets share */
#define SIGNAL_COUNT	16

#define FAILURE_LENGTH	512

PG_FUNCTION_INFO_V1(instaid_segment_state);

typedef struct Segment
{
	int64		next;			/* the value that comes next, if any is left */
	int64		increment;
	int64		left;
	int64		size;
	XLogRecPtr	lsn;			/* of the WAL that covers it; none if it is
								 * leased */
} Segment;

typedef struct BufferKey
{
	Oid			database;
	Oid			ticket;
} BufferKey;

/* Times are monotonic, except those that the view shows. */
typedef struct SegmentBuffer
{
	BufferKey	key;			/* hash key */
	LWLock		lock;			/* protects what follows */

	Segment		segments[2];
	int			current;		/* the one that values are taken from */
	int64		current_since;
	int64		empty_since;	/* when a call found both empty, or 0 */
	int64		last_used;

	/* the name by which a source was asked; empty without a source */
	char		name[NAMEDATALEN];

	/* the sequence, as we left it */
	RelFileLocator file;
	XLogRecPtr	lsn;
	int64		last_value;
	uint64		buffer_generation;	/* changes when values are dropped */

	/* the other segment */
	bool		requested;		/* the worker gets it, perhaps after a pause */
	int64		steps;			/* how many steps long it is */
	int64		lasted;			/* ms that the last one did, or -1 */
	int			turn;			/* which server of a source is next */
	Stripes		stripes;		/* what is known of the servers */
	int			failures_in_a_row;
	int64		retry_at;

	/* for the view */
	int64		refills;
	TimestampTz refilled_at;
	int64		refill_duration;	/* microseconds */
	int64		failures;
	TimestampTz failed_at;
	char		failure[FAILURE_LENGTH];
	int64		waits;
	int64		bypasses;
} SegmentBuffer;

typedef struct SharedState
{
	LWLock	   *lock;			/* protects the table of buffers */
	int			tranche;
	pg_atomic_uint64 full_until;	/* until then, all buffers are in use */
	pg_atomic_uint64 last_buffer_generation;
	ConditionVariable refilled[SIGNAL_COUNT];	/* by ticket */
} SharedState;

/* What a call has got from a buffer */
typedef struct Attempt
{
	bool		taken;			/* it has a value */
	int64		value;
	XLogRecPtr	lsn;			/* of the WAL that covers the value */
	bool		wake_worker;	/* the worker is to get a segment */
	int64		wait;			/* without a value: ms to wait for a segment */
} Attempt;

/* settings: see segments_init() */
static int	segment_target_duration;
static int	segment_timeout;
static int	max_buffered_tickets;

static SharedState *shared = NULL;
static HTAB *buffers = NULL;
static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;
static object_access_hook_type prev_object_access_hook = NULL;

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(add_size(sizeof(SharedState),
									hash_estimate_size(max_buffered_tickets,
													   sizeof(SegmentBuffer))));
	RequestNamedLWLockTranche("instaid", 1);
	launch_request_shmem();
}

static void
startup_shmem(void)
{
	HASHCTL		ctl = {.keysize = sizeof(BufferKey),.entrysize = sizeof(SegmentBuffer)};
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("instaid", sizeof(SharedState), &found);
	if (!found)
	{
		shared->lock = &GetNamedLWLockTranche("instaid")->lock;
		shared->tranche = shared->lock->tranche;
		pg_atomic_init_u64(&shared->full_until, 0);
		pg_atomic_init_u64(&shared->last_buffer_generation, 0);
		for (int i = 0; i < SIGNAL_COUNT; i++)
			ConditionVariableInit(&shared->refilled[i]);
	}
	buffers = ShmemInitHash("instaid tickets", max_buffered_tickets, &ctl,
							HASH_ELEM | HASH_BLOBS);
	launch_startup_shmem();
	LWLockRelease(AddinShmemInitLock);
}

/* Find a buffer, in the table that the caller has locked. */
static SegmentBuffer *
find_segment_buffer(Oid ticket)
{
	BufferKey	key = {MyDatabaseId, ticket};

	return hash_search(buffers, &key, HASH_FIND, NULL);
}

/* The buffer of a ticket, locked, and with it the table; or NULL if it has none. */
static SegmentBuffer *
lock_buffer(Oid ticket)
{
	SegmentBuffer *buffer;

	LWLockAcquire(shared->lock, LW_SHARED);
	buffer = find_segment_buffer(ticket);
	if (buffer != NULL)
		LWLockAcquire(&buffer->lock, LW_EXCLUSIVE);
	else
		LWLockRelease(shared->lock);
	return buffer;
}

static void
unlock_buffer(SegmentBuffer *buffer)
{
	LWLockRelease(&buffer->lock);
	LWLockRelease(shared->lock);
}

/* The condition variable on which sessions wait for a segment; tickets share it. */
static ConditionVariable *
refill_signal(Oid ticket)
{
	return &shared->refilled[ticket % SIGNAL_COUNT];
}

/* The next buffer of a database in a scan of the table, or NULL */
static SegmentBuffer *
next_buffer(HASH_SEQ_STATUS *scan, Oid database)
{
	SegmentBuffer *buffer;

	do
		buffer = hash_seq_search(scan);
	while (buffer != NULL && buffer->key.database != database);
	return buffer;
}

/* Remove all buffers of a database. */
static void
forget_database(Oid database)
{
	HASH_SEQ_STATUS scan;
	SegmentBuffer *buffer;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	hash_seq_init(&scan, buffers);
	while ((buffer = next_buffer(&scan, database)) != NULL)
		hash_search(buffers, &buffer->key, HASH_REMOVE, NULL);
	LWLockRelease(shared->lock);
	pg_atomic_write_u64(&shared->full_until, 0);
}

/*
 * Remove the buffers of what is dropped.  If the transaction is rolled back, their
 * values are skipped.
 */
static void
on_object_access(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, class, object, sub, arg);
	if (access != OAT_DROP || sub != 0 || shared == NULL)
		return;
	if (class == RelationRelationId)
		segments_forget_ticket(object);
	else if (class == DatabaseRelationId)
		forget_database(object);
}

/*
 * Remove a buffer that is of little use from the table that the caller has locked:
 * one that has no values because its last refill failed, or else one that has been
 * idle for MIN_IDLE; the one that was not used for longest.  No ticket can take the
 * values of a ticket that is in use.
 */
static bool
evict_buffer(int64 now)
{
	HASH_SEQ_STATUS scan;
	SegmentBuffer *buffer;
	SegmentBuffer *idle = NULL;
	SegmentBuffer *failed = NULL;
	SegmentBuffer *victim;

	hash_seq_init(&scan, buffers);
	while ((buffer = hash_seq_search(&scan)) != NULL)
	{
		if (buffer->failures_in_a_row > 0 &&
			buffer->segments[0].left == 0 && buffer->segments[1].left == 0)
		{
			if (failed == NULL || buffer->last_used < failed->last_used)
				failed = buffer;
		}
		else if (now - buffer->last_used >= MIN_IDLE * 1000 &&
				 (idle == NULL || buffer->last_used < idle->last_used))
			idle = buffer;
	}
	victim = failed != NULL ? failed : idle;
	if (victim == NULL)
		return false;
	hash_search(buffers, &victim->key, HASH_REMOVE, NULL);
	return true;
}

/*
 * Create a buffer for a ticket that has none.  If all buffers are taken, it replaces
 * another one.  Returns false if all are in use, or were a moment ago: a search of
 * the whole table under its lock is too much for each call.
 */
static bool
create_buffer(Oid ticket)
{
	BufferKey	key = {MyDatabaseId, ticket};
	int64		now = monotonic_time();
	bool		found;

	if (now < (int64) pg_atomic_read_u64(&shared->full_until))
		return false;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	found = find_segment_buffer(ticket) != NULL;
	if (!found &&
		(hash_get_num_entries(buffers) < max_buffered_tickets || evict_buffer(now)))
	{
		SegmentBuffer *buffer = hash_search(buffers, &key, HASH_ENTER_NULL, NULL);

		if (buffer != NULL)
		{
			memset((char *) buffer + sizeof(BufferKey), 0, sizeof(SegmentBuffer) - sizeof(BufferKey));
			LWLockInitialize(&buffer->lock, shared->tranche);
			buffer->buffer_generation = pg_atomic_add_fetch_u64(&shared->last_buffer_generation, 1);
			buffer->last_used = now;
			buffer->steps = 1;
			buffer->lasted = -1;
			found = true;
		}
	}
	/* before the lock is released: the removal of a buffer resets it */
	if (!found)
		pg_atomic_write_u64(&shared->full_until, now + FULL_INTERVAL * 1000);
	LWLockRelease(shared->lock);
	return found;
}

/* Drop the values of a buffer, and of the segment that is on its way. */
static void
drop_values(SegmentBuffer *buffer)
{
	buffer->segments[0].left = buffer->segments[1].left = 0;
	buffer->lasted = -1;
	buffer->buffer_generation = pg_atomic_add_fetch_u64(&shared->last_buffer_generation, 1);
}

/*
 * Drop what is buffered if the ticket, which has a source, was renamed: the values
 * belong to the sequence that has the old name at the source.  Also drop what the
 * ticket's own sequence gave before it had a source.
 */
static void
follow_name(SegmentBuffer *buffer, const char *name)
{
	if (strcmp(buffer->name, name) == 0)
		return;
	drop_values(buffer);
	buffer->retry_at = 0;
	strlcpy(buffer->name, name, NAMEDATALEN);
}

/*
 * Drop what is buffered if the sequence, whose page the caller has locked, is not
 * as we left it.
 *
 * setval() always writes WAL, ALTER SEQUENCE creates another file, and nextval()
 * writes WAL or moves the value.  After nextval() alone the buffer would still be
 * valid, but that looks like setval() followed by nextval().
 */
static void
follow_sequence(SegmentBuffer *buffer, Relation rel, Buffer page, Form_pg_sequence_data data)
{
	XLogRecPtr	lsn = PageGetLSN(BufferGetPage(page));

	if (RelFileLocatorEquals(buffer->file, rel->rd_locator) &&
		buffer->lsn == lsn && buffer->last_value == data->last_value)
		return;
	drop_values(buffer);
	/* what is buffered from now on comes from no source: see follow_name() */
	buffer->name[0] = '\0';
	buffer->file = rel->rd_locator;
	buffer->lsn = lsn;
	buffer->last_value = data->last_value;
}

/*
 * The buffer of a sequence from which values are taken directly, locked, or NULL.
 * An uncommitted sequence has none, as its transaction may be rolled back.
 */
static SegmentBuffer *
lock_buffer_if_any(Relation rel)
{
	return shared == NULL || sequence_is_uncommitted(rel) ? NULL : lock_buffer(RelationGetRelid(rel));
}

/* To be called before values are taken from the sequence, whose page is locked */
void
segments_before_taking(Relation rel, Buffer page, Form_pg_sequence_data data)
{
	SegmentBuffer *buffer = lock_buffer_if_any(rel);

	if (buffer == NULL)
		return;
	follow_sequence(buffer, rel, page, data);
	unlock_buffer(buffer);
}

/*
 * To be called afterwards, while the page is still locked.  Returns the generation
 * of the buffer, which segments_finish_refill() compares.
 */
uint64
segments_after_taking(Relation rel, Buffer page, Form_pg_sequence_data data)
{
	SegmentBuffer *buffer = lock_buffer_if_any(rel);
	uint64		buffer_generation;

	if (buffer == NULL)
		return 0;
	buffer->lsn = PageGetLSN(BufferGetPage(page));
	buffer->last_value = data->last_value;
	buffer_generation = buffer->buffer_generation;
	unlock_buffer(buffer);
	return buffer_generation;
}

/* Take a value from the buffer, which the caller has locked. */
static bool
take_value(SegmentBuffer *buffer, int64 now, Attempt *attempt)
{
	Segment    *segment = &buffer->segments[buffer->current];

	buffer->last_used = now;
	if (segment->left == 0)
	{
		Segment    *other = &buffer->segments[1 - buffer->current];

		if (other->left == 0)
		{
			if (buffer->empty_since == 0)
				buffer->empty_since = now;
			return false;
		}
		buffer->current = 1 - buffer->current;
		buffer->current_since = now;
		segment = other;
	}
	attempt->value = segment->next;
	attempt->lsn = segment->lsn;
	segment->left--;
	if (segment->left > 0)
		segment->next += segment->increment;
	else
		buffer->lasted = (now - buffer->current_since) / 1000;
	return true;
}

/* Is the worker waiting before it tries again? */
static bool
is_backing_off(SegmentBuffer *buffer, int64 now)
{
	return buffer->retry_at > now;
}

/*
 * Request the other segment if it is time for it, in the buffer that the caller
 * has locked.  Returns true if the worker has to be told.
 */
static bool
request_segment(SegmentBuffer *buffer, int64 now)
{
	Segment    *segment = &buffer->segments[buffer->current];

	if (buffer->requested ||
		buffer->segments[1 - buffer->current].left > 0 ||
		(segment->size - segment->left) < segment->size / 10.0 ||
		is_backing_off(buffer, now))
		return false;
	buffer->requested = true;
	/* the time that calls wait begins with this request */
	if (segment->left == 0)
		buffer->empty_since = now;
	return true;
}

/* Try to take a value from the buffer, which the caller has locked. */
static Attempt
try_buffer(SegmentBuffer *buffer)
{
	int64		now = monotonic_time();
	Attempt		attempt = {0};

	attempt.taken = take_value(buffer, now, &attempt);
	attempt.wake_worker = request_segment(buffer, now);
	if (!attempt.taken && buffer->requested && !is_backing_off(buffer, now))
	{
		/* even if it was asked before: it may have been killed since */
		attempt.wake_worker = true;
		attempt.wait = Max(segment_timeout - (now - buffer->empty_since) / 1000, 0);
	}
	return attempt;
}

/* Count a call that waits, when it begins to. */
static void
count_wait(Oid ticket, bool *waiting)
{
	SegmentBuffer *buffer = *waiting ? NULL : lock_buffer(ticket);

	if (buffer == NULL)
		return;
	buffer->waits++;
	unlock_buffer(buffer);
	*waiting = true;
}

/* The error for a ticket that has a source, and cannot have a buffer */
static void
no_buffer_error(Relation rel)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("ticket \"%s\" has a source, but no buffer", RelationGetRelationName(rel)),
			 shared == NULL ?
			 errdetail("The server was started without instaid in shared_preload_libraries.") :
			 sequence_is_uncommitted(rel) ?
			 errdetail("This transaction has created or altered it.") :
			 errdetail("All buffers are in use: instaid.max_buffered_tickets is %d.",
					   max_buffered_tickets),
			 shared == NULL ?
			 errhint("Add instaid to shared_preload_libraries, and restart the server.") :
			 sequence_is_uncommitted(rel) ?
			 errhint("Commit first.") :
			 errhint("Increase instaid.max_buffered_tickets, and restart the server.")));
}

/*
 * May the role see why a refill failed?  libpq's messages name files of the
 * server: sockets, passwords, certificates.
 */
static bool
may_see_failure(Oid ticket)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(ticket));
	Oid			owner = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
		ReleaseSysCache(tuple);
	}
	return (OidIsValid(owner) && has_privs_of_role(GetUserId(), owner)) ||
		has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

/* The error for a ticket that has a source, and whose buffer is empty */
static void
empty_error(Relation rel, bool no_worker)
{
	SegmentBuffer *buffer = lock_buffer(RelationGetRelid(rel));
	char		failure[FAILURE_LENGTH] = "";
	bool		failing = false;
	TimestampTz failed_at = 0;

	if (buffer != NULL)
	{
		failing = buffer->failures_in_a_row > 0 && !no_worker;
		failed_at = buffer->failed_at;
		strlcpy(failure, buffer->failure, sizeof(failure));
		unlock_buffer(buffer);
	}

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("ticket \"%s\" has no values left from its source",
					RelationGetRelationName(rel)),
			 no_worker ?
			 errdetail("No background worker was free within %d ms.", segment_timeout) :
			 failing && !may_see_failure(RelationGetRelid(rel)) ?
			 errdetail("The last attempt, at %s, failed. The ticket's owner and members of pg_read_all_stats see the reason in instaid.segments.",
					   timestamptz_to_str(failed_at)) :
			 failing ?
			 errdetail("The last attempt, at %s, failed: %s",
					   timestamptz_to_str(failed_at), failure) :
			 errdetail("The source has not answered within %d ms.", segment_timeout),
			 no_worker ?
			 errhint("Increase max_worker_processes.") :
			 failing ?
			 errhint("The background worker asks the source again, at most %d s after that.",
					 LAST_BACKOFF / 1000) :
			 errhint("The background worker keeps asking; instaid.segments shows the outcome.")));
}

/* No worker can be had: let calls do without a segment for a while. */
static void
note_no_worker(Relation rel)
{
	SegmentRequest request = {.ticket = RelationGetRelid(rel)};

	strlcpy(request.name, RelationGetRelationName(rel), NAMEDATALEN);
	segments_fail_refill(&request, "no background worker is free; max_worker_processes can be increased", false);
}

/*
 * Take the next value of an open ticket that has no source.  If both segments are
 * empty, wait for one, until instaid.segment_timeout after that was found.  When
 * this returns a value, it is as durable as sequence_make_durable() makes it.
 *
 * Returns false if there is no value, and the caller must take it from the
 * sequence.
 */
bool
segments_take(Relation rel, int64 *value)
{
	Oid			ticket = RelationGetRelid(rel);
	bool		waiting = false;
	Attempt		attempt;

	if (shared == NULL || sequence_is_uncommitted(rel))
		return false;

	for (;;)
	{
		Buffer		page;
		Form_pg_sequence_data data = sequence_lock_page(rel, &page, BUFFER_LOCK_SHARE);
		SegmentBuffer *buffer = lock_buffer(ticket);

		attempt.taken = false;
		if (buffer != NULL)
		{
			follow_sequence(buffer, rel, page, data);
			attempt = try_buffer(buffer);
			if (!attempt.taken && attempt.wait == 0)
				buffer->bypasses++;
			unlock_buffer(buffer);
		}
		UnlockReleaseBuffer(page);

		if (buffer == NULL)
		{
			/* this is the ticket's first use, or its buffer was removed */
			CHECK_FOR_INTERRUPTS();
			if (!create_buffer(ticket))
				break;
			continue;
		}
		if (attempt.wake_worker && !launch_wake_worker())
		{
			note_no_worker(rel);
			if (!attempt.taken && attempt.wait > 0)
				continue;		/* which finds that the worker is backing off */
		}
		if (attempt.taken || attempt.wait == 0)
			break;
		count_wait(ticket, &waiting);
		(void) ConditionVariableTimedSleep(refill_signal(ticket),
										   Min(attempt.wait, WORKER_START_TIMEOUT),
										   PG_WAIT_EXTENSION);
	}
	ConditionVariableCancelSleep();
	if (!attempt.taken)
		return false;
	sequence_make_durable(attempt.lsn);
	*value = attempt.value;
	return true;
}

/*
 * Take the next value of an open ticket that has a source.  It needs a buffer.
 * Waits as segments_take() does, and for a free background worker, too.
 *
 * Errors: it has no buffer, or has no value within that time (55000).
 */
int64
segments_take_leased(Relation rel)
{
	Oid			ticket = RelationGetRelid(rel);
	bool		waiting = false;
	bool		no_worker = false;
	Attempt		attempt;

	if (shared == NULL || sequence_is_uncommitted(rel))
		no_buffer_error(rel);

	for (;;)
	{
		SegmentBuffer *buffer = lock_buffer(ticket);

		if (buffer == NULL)
		{
			CHECK_FOR_INTERRUPTS();
			if (!create_buffer(ticket))
			{
				ConditionVariableCancelSleep();
				no_buffer_error(rel);
			}
			continue;
		}
		follow_name(buffer, RelationGetRelationName(rel));
		attempt = try_buffer(buffer);
		unlock_buffer(buffer);

		if (attempt.wake_worker)
			no_worker = !launch_wake_worker();
		if (attempt.wake_worker && no_worker && attempt.taken)
			note_no_worker(rel);
		if (attempt.taken || attempt.wait == 0)
			break;
		count_wait(ticket, &waiting);
		(void) ConditionVariableTimedSleep(refill_signal(ticket),
										   Min(attempt.wait, no_worker ? WORKER_RETRY_INTERVAL : WORKER_START_TIMEOUT),
										   PG_WAIT_EXTENSION);
	}
	ConditionVariableCancelSleep();
	if (!attempt.taken)
		empty_error(rel, no_worker);
	sequence_make_durable(attempt.lsn);
	return attempt.value;
}

/*
 * The tickets of this database that need a segment now.  Stores in how many ms the
 * next one needs one, or -1.
 */
List *
segments_requested(int64 *next_due)
{
	HASH_SEQ_STATUS scan;
	SegmentBuffer *buffer;
	List	   *tickets = NIL;
	int64		now = monotonic_time();

	*next_due = -1;
	LWLockAcquire(shared->lock, LW_SHARED);
	hash_seq_init(&scan, buffers);
	while ((buffer = next_buffer(&scan, MyDatabaseId)) != NULL)
	{
		if (!buffer->requested)
			continue;
		if (is_backing_off(buffer, now))
		{
			int64		due = (buffer->retry_at - now) / 1000 + 1;

			if (*next_due < 0 || due < *next_due)
				*next_due = due;
		}
		else
			tickets = lappend_oid(tickets, buffer->key.ticket);
	}
	LWLockRelease(shared->lock);
	return tickets;
}

/*
 * Forget what was requested from the worker of this database, which has ended, so
 * that sessions request it from the next one.
 */
void
segments_forget_requests(void)
{
	HASH_SEQ_STATUS scan;
	SegmentBuffer *buffer;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	hash_seq_init(&scan, buffers);
	while ((buffer = next_buffer(&scan, MyDatabaseId)) != NULL)
		buffer->requested = false;
	LWLockRelease(shared->lock);
}

/* How many values so many steps are.  MAX_SEGMENT limits the number of steps. */
static int64
segment_size(int64 *steps, int64 step)
{
	*steps = Max(Min(*steps, MAX_SEGMENT / step), 1);
	return *steps * step;
}

/*
 * Begin to refill a ticket.  Returns false if its buffer is gone.
 *
 * The size follows Leaf's rule: a segment that lasted for less than
 * instaid.segment_target_duration is followed by one of twice its size, and a
 * segment that lasted for more than twice that time by one of half its size.
 */
bool
segments_begin_refill(Oid ticket, const char *name, int64 step, SegmentRequest *request)
{
	SegmentBuffer *buffer = lock_buffer(ticket);

	if (buffer == NULL)
		return false;
	if (buffer->name[0] != '\0')
		follow_name(buffer, name);
	if (buffer->lasted >= 0 && buffer->lasted < segment_target_duration)
		buffer->steps *= 2;
	else if (buffer->lasted >= 2 * (int64) segment_target_duration)
		buffer->steps /= 2;
	/* how long a segment lasted counts once, even if the refill fails */
	buffer->lasted = -1;

	memset(request, 0, sizeof(*request));
	request->ticket = ticket;
	strlcpy(request->name, name, NAMEDATALEN);
	request->started = monotonic_time();
	request->count = segment_size(&buffer->steps, step);
	request->turn = buffer->turn;
	request->stripes = buffer->stripes;
	request->buffer_generation = buffer->buffer_generation;
	/* the time that calls wait begins with this attempt */
	if (buffer->empty_since != 0)
		buffer->empty_since = request->started;
	unlock_buffer(buffer);
	return true;
}

/* Note that an attempt, or a part of one, failed.  The caller has locked the buffer. */
static void
note_failure(SegmentBuffer *buffer, const char *failure)
{
	buffer->failures++;
	buffer->failed_at = GetCurrentTimestamp();
	strlcpy(buffer->failure, failure,
			1 + pg_mbcliplen(failure, strlen(failure), FAILURE_LENGTH - 1));
}

/*
 * Put a segment of count values, which were taken for this request, into the
 * buffer.  If a server of a source failed before another one gave the segment,
 * failure says why.
 */
void
segments_finish_refill(const SegmentRequest *request, const TicketBlock *block, int64 count,
					   const char *failure)
{
	SegmentBuffer *buffer = lock_buffer(request->ticket);
	bool		recovered = false;

	if (buffer != NULL)
	{
		/* not if the sequence was set meanwhile, or the ticket renamed */
		if (request->buffer_generation == buffer->buffer_generation)
		{
			Segment    *other = &buffer->segments[1 - buffer->current];

			Assert(other->left == 0);
			other->next = block->first;
			other->increment = block->increment;
			other->left = other->size = count;
			other->lsn = block->lsn;
			buffer->empty_since = 0;
		}
		recovered = buffer->failures_in_a_row > 0;
		buffer->failures_in_a_row = 0;
		buffer->retry_at = 0;
		buffer->turn = request->turn;
		buffer->requested = false;
		buffer->refills++;
		buffer->refilled_at = GetCurrentTimestamp();
		buffer->refill_duration = monotonic_time() - request->started;
		if (failure)
			note_failure(buffer, failure);
		unlock_buffer(buffer);
		ConditionVariableBroadcast(refill_signal(request->ticket));
	}
	if (recovered)
		ereport(LOG, (errmsg("ticket \"%s\" can be refilled again", request->name)));
	if (failure)
		ereport(WARNING,
				(errmsg("could not refill ticket \"%s\" from one of its servers", request->name),
				 errdetail_internal("%s", failure),
				 errhint("The next segments come from the server that gave this one, as long as it answers.")));
}

/*
 * Note that a refill failed, and let the worker wait before the next attempt.  The
 * worker makes that by itself if try_again is set, and else when a session requests
 * a segment.  Only the first of several failures in a row is logged.
 */
void
segments_fail_refill(const SegmentRequest *request, const char *failure, bool try_again)
{
	SegmentBuffer *buffer = lock_buffer(request->ticket);
	bool		first = false;

	if (buffer != NULL)
	{
		int64		backoff;

		first = buffer->failures_in_a_row == 0;
		backoff = Min((int64) FIRST_BACKOFF << Min(buffer->failures_in_a_row, 16), LAST_BACKOFF);
		buffer->failures_in_a_row++;
		note_failure(buffer, failure);
		/* the segment may have been too large for a slow server */
		buffer->steps = Max(buffer->steps / 2, 1);
		buffer->retry_at = monotonic_time() + backoff * 1000;
		if (buffer->empty_since != 0)
			buffer->empty_since = buffer->retry_at;
		buffer->requested = try_again;
		unlock_buffer(buffer);
		ConditionVariableBroadcast(refill_signal(request->ticket));
	}
	if (first)
		ereport(WARNING,
				(errmsg("could not refill ticket \"%s\"", request->name),
				 errdetail_internal("%s", failure),
				 try_again ?
				 errhint("Attempts continue, after %d ms at first and %d ms at most; instaid.segments shows them.",
						 FIRST_BACKOFF, LAST_BACKOFF) :
				 errhint("The next attempt is made when a call needs a value; instaid.segments shows it.")));
}

/* Keep what was learnt about the servers of a source. */
void
segments_remember_stripes(const SegmentRequest *request)
{
	SegmentBuffer *buffer = lock_buffer(request->ticket);

	if (buffer == NULL)
		return;
	buffer->stripes = request->stripes;
	unlock_buffer(buffer);
}

/* Remove the buffer of a ticket, if it has one. */
void
segments_forget_ticket(Oid ticket)
{
	BufferKey	key = {MyDatabaseId, ticket};
	bool		found;

	LWLockAcquire(shared->lock, LW_SHARED);
	found = find_segment_buffer(ticket) != NULL;
	LWLockRelease(shared->lock);
	if (!found)
		return;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	hash_search(buffers, &key, HASH_REMOVE, NULL);
	LWLockRelease(shared->lock);
	pg_atomic_write_u64(&shared->full_until, 0);
}

/*
 * _segment_state() -> setof record
 *
 * The buffers of this database whose tickets the role may use or see: see the
 * view instaid.segments.
 */
Datum
instaid_segment_state(PG_FUNCTION_ARGS)
{
#define SEGMENT_COLUMNS 17
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	HASH_SEQ_STATUS scan;
	SegmentBuffer *found;
	SegmentBuffer *copies;
	int			count = 0;

	InitMaterializedSRF(fcinfo, 0);
	if (shared == NULL)
		return (Datum) 0;

	/* the catalogs are not to be read under the lock */
	LWLockAcquire(shared->lock, LW_SHARED);
	copies = palloc_extended(hash_get_num_entries(buffers) * sizeof(SegmentBuffer), MCXT_ALLOC_HUGE);
	hash_seq_init(&scan, buffers);
	while ((found = next_buffer(&scan, MyDatabaseId)) != NULL)
	{
		LWLockAcquire(&found->lock, LW_SHARED);
		copies[count++] = *found;
		LWLockRelease(&found->lock);
	}
	LWLockRelease(shared->lock);

	for (SegmentBuffer *buffer = copies; buffer < copies + count; buffer++)
	{
		Datum		values[SEGMENT_COLUMNS] = {0};
		bool		nulls[SEGMENT_COLUMNS] = {false};
		int			column = 0;
		HeapTuple	tuple;
		bool		overlap = false;

		if (!sequence_is_visible(buffer->key.ticket))
			continue;
		tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(buffer->key.ticket));
		if (!HeapTupleIsValid(tuple))
			continue;
		values[column++] = ObjectIdGetDatum(buffer->key.ticket);
		values[column++] = Int64GetDatum(segment_size(&buffer->steps,
													  ((Form_pg_sequence) GETSTRUCT(tuple))->seqcache));
		ReleaseSysCache(tuple);
		for (int i = 0; i < 2; i++)
		{
			Segment    *segment = &buffer->segments[i ^ buffer->current];

			nulls[column] = nulls[column + 1] = segment->left == 0;
			values[column++] = Int64GetDatum(segment->next);
			values[column++] = Int64GetDatum(segment->next + (segment->left - 1) * segment->increment);
			values[column++] = Int64GetDatum(segment->left);
		}
		values[column++] = Int64GetDatum(buffer->refills);
		nulls[column] = nulls[column + 1] = buffer->refills == 0;
		values[column++] = TimestampTzGetDatum(buffer->refilled_at);
		values[column++] = Int64GetDatum(buffer->refill_duration);
		values[column++] = Int64GetDatum(buffer->waits);
		values[column++] = Int64GetDatum(buffer->bypasses);
		values[column++] = Int64GetDatum(buffer->failures);
		nulls[column] = nulls[column + 1] = buffer->failures == 0;
		values[column++] = TimestampTzGetDatum(buffer->failed_at);
		values[column++] = CStringGetTextDatum(may_see_failure(buffer->key.ticket) ?
											   buffer->failure : "<insufficient privilege>");
		for (int i = 0; i < MAX_SERVERS; i++)
			overlap |= stripes_find_overlap(&buffer->stripes, i) >= 0;
		values[column++] = BoolGetDatum(overlap);
		Assert(column == SEGMENT_COLUMNS);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

void
segments_init(void)
{
	/* not a session's, since the worker uses it */
	DefineCustomIntVariable("instaid.segment_target_duration",
							"Sets how long a segment of a ticket should last.",
							"If a segment lasts for less time, the next one has twice its size; if it lasts for more than twice the time, half its size.",
							&segment_target_duration,
							15 * 60 * 1000, 1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("instaid.segment_timeout",
							"Sets how long a call waits for a segment of a ticket when none is left.",
							"After that, the call takes its value from the ticket's sequence; if the ticket has a source, the call fails.",
							&segment_timeout,
							5000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);
	if (!process_shared_preload_libraries_in_progress)
		return;

	/* it is the size of shared memory */
	DefineCustomIntVariable("instaid.max_buffered_tickets",
							"Sets how many tickets can have segments in shared memory.",
							"Each call for another ticket takes its value from the ticket's sequence.",
							&max_buffered_tickets,
							1000, 1, 1000000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
	prev_object_access_hook = object_access_hook;
	object_access_hook = on_object_access;
}
