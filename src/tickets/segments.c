/*-------------------------------------------------------------------------
 *
 * segments.c
 *	  Segments of tickets in shared memory, for all sessions.
 *
 * A ticket whose sequence has CACHE > 1 is given out by segments of so many
 * values, which a background worker (worker.c) takes from the sequence ahead of
 * demand.  There are two in the ticket's buffer: when a tenth of the one is
 * used, the worker is asked for the other, so that nobody waits at its end.
 *
 * Every value in a buffer is taken: the WAL that takes the sequence past it is
 * where the worker's synchronous_commit says.  So to lose a buffer leaves values
 * out and repeats none.  A session whose synchronous_commit asks for more waits
 * for that before it returns a value.
 *
 * The sequence remains the authority.  A session that takes a value looks at its
 * page, under a shared lock, and gives up what is buffered when setval(), ALTER
 * SEQUENCE or nextval() has been there; and when the buffer stays empty, it
 * takes a value of the sequence itself.
 *
 * Locks are taken in this order: the sequence's relation lock, its page's, the
 * table's, the buffer's.  A pointer to a buffer is good while the table is locked,
 * and no longer: a buffer goes when its ticket is dropped, or when another ticket
 * needs it and this one has been idle.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

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
#include "postmaster/bgworker.h"
#include "storage/bufmgr.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "tickets/segments.h"

/* the longest segment, if the step is not longer */
#define MAX_SEGMENT		1000000

/* how long a refill that failed is not tried again, in ms: first, and at most */
#define FIRST_BACKOFF	100
#define LAST_BACKOFF	5000

/* how long a worker has to start, in ms, before another one is launched */
#define WORKER_START	1000
/* how soon a call tries again to launch one when no slot was free, in ms */
#define WORKER_RETRY	100

/* after how long without use, in ms, another ticket can have a buffer */
#define MIN_IDLE		10000
/* how long no idle buffer is looked for after none was found, in ms */
#define FULL_FOR		1000

/* how many condition variables the tickets share */
#define SIGNAL_COUNT	16

#define PROBLEM_LENGTH	512

PG_FUNCTION_INFO_V1(instaid_segment_state);

typedef struct Segment
{
	int64		next;			/* the value that comes next, if any is left */
	int64		increment;
	int64		left;
	int64		size;
	XLogRecPtr	lsn;			/* of the WAL that covers it; none if it is leased */
} Segment;

typedef struct BufferKey
{
	Oid			database;
	Oid			ticket;
} BufferKey;

/* Times are those of instaid_monotonic_time(), but where a view shows them. */
typedef struct TicketBuffer
{
	BufferKey	key;			/* hash key */
	LWLock		lock;			/* protects what follows */

	Segment		segments[2];
	int			current;		/* the one that is given out */
	int64		current_since;
	int64		empty_since;	/* when a call found both empty, or 0 */
	int64		last_used;

	/* the name by which a source was asked; empty without a source */
	char		name[NAMEDATALEN];

	/* the sequence, as we left it */
	RelFileLocator file;
	XLogRecPtr	lsn;
	int64		last_value;
	uint64		generation;		/* goes up when what was taken is given up */

	/* the other segment */
	bool		requested;		/* the worker sees to it, perhaps after a rest */
	int64		blocks;			/* its length in steps */
	int64		lasted;			/* ms that the last one did, or -1 */
	int			turn;			/* which of several sources is next */
	Stripes		stripes;		/* what they are known to give */
	int			failures_in_a_row;
	int64		retry_at;

	/* for the view */
	int64		refills;
	TimestampTz refilled_at;
	int64		refill_took;	/* microseconds */
	int64		failures;
	TimestampTz failed_at;
	char		problem[PROBLEM_LENGTH];
	int64		waits;
	int64		bypassed;
} TicketBuffer;

/* The worker of a database */
typedef struct WorkerSlot
{
	Oid			database;		/* InvalidOid: free */
	Latch	   *latch;			/* null until it has attached */
	int64		launched_at;
} WorkerSlot;

typedef struct SharedState
{
	LWLock	   *lock;			/* protects the slots, and the table */
	int			tranche;
	pg_atomic_uint64 full_until;	/* before, no buffer is idle */
	pg_atomic_uint64 generation;	/* the last that a buffer got */
	ConditionVariable refilled[SIGNAL_COUNT];	/* by ticket */
	int			slot_count;
	WorkerSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} SharedState;

int			instaid_segment_duration = 15 * 60 * 1000;
int			instaid_segment_timeout = 5000;
int			instaid_max_buffered_tickets = 1000;

static SharedState *shared = NULL;
static HTAB *buffers = NULL;
static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;
static object_access_hook_type prev_object_access_hook = NULL;

static Size
state_size(void)
{
	return add_size(offsetof(SharedState, slots),
					mul_size(max_worker_processes, sizeof(WorkerSlot)));
}

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(add_size(state_size(),
									hash_estimate_size(instaid_max_buffered_tickets,
													   sizeof(TicketBuffer))));
	RequestNamedLWLockTranche("instaid", 1);
}

static void
startup_shmem(void)
{
	HASHCTL		ctl;
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct("instaid", state_size(), &found);
	if (!found)
	{
		memset(shared, 0, state_size());
		shared->lock = &GetNamedLWLockTranche("instaid")->lock;
		shared->tranche = shared->lock->tranche;
		shared->slot_count = max_worker_processes;
		pg_atomic_init_u64(&shared->full_until, 0);
		pg_atomic_init_u64(&shared->generation, 0);
		for (int i = 0; i < SIGNAL_COUNT; i++)
			ConditionVariableInit(&shared->refilled[i]);
	}
	ctl.keysize = sizeof(BufferKey);
	ctl.entrysize = sizeof(TicketBuffer);
	buffers = ShmemInitHash("instaid tickets", instaid_max_buffered_tickets, &ctl,
							HASH_ELEM | HASH_BLOBS);
	LWLockRelease(AddinShmemInitLock);
}

/* Find a buffer, in the table that the caller has locked. */
static TicketBuffer *
lookup(Oid ticket)
{
	BufferKey	key = {MyDatabaseId, ticket};

	return hash_search(buffers, &key, HASH_FIND, NULL);
}

/* The buffer of a ticket, locked, and with it the table; or NULL if it has none. */
static TicketBuffer *
lock_buffer(Oid ticket)
{
	TicketBuffer *buffer;

	LWLockAcquire(shared->lock, LW_SHARED);
	buffer = lookup(ticket);
	if (buffer != NULL)
		LWLockAcquire(&buffer->lock, LW_EXCLUSIVE);
	else
		LWLockRelease(shared->lock);
	return buffer;
}

static void
unlock_buffer(TicketBuffer *buffer)
{
	LWLockRelease(&buffer->lock);
	LWLockRelease(shared->lock);
}

/* What sessions sleep on that wait for a segment.  Some wait for another ticket's. */
static ConditionVariable *
refilled(Oid ticket)
{
	return &shared->refilled[ticket % SIGNAL_COUNT];
}

/* Remove all buffers of a database. */
static void
forget_database(Oid database)
{
	HASH_SEQ_STATUS scan;
	TicketBuffer *buffer;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	hash_seq_init(&scan, buffers);
	while ((buffer = hash_seq_search(&scan)) != NULL)
	{
		if (buffer->key.database == database)
			hash_search(buffers, &buffer->key, HASH_REMOVE, NULL);
	}
	LWLockRelease(shared->lock);
	pg_atomic_write_u64(&shared->full_until, 0);
}

/*
 * Remove the buffers of what is dropped.  Should the transaction be rolled back,
 * what they had is left out.
 */
static void
on_object_access(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, class, object, sub, arg);
	if (access != OAT_DROP || sub != 0 || shared == NULL)
		return;
	if (class == RelationRelationId)
		instaid_forget_buffer(object);
	else if (class == DatabaseRelationId)
		forget_database(object);
}

void
instaid_segments_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
	prev_object_access_hook = object_access_hook;
	object_access_hook = on_object_access;
}

/*
 * Has the transaction in progress created the sequence, or given it a new file?
 * Such a sequence is not buffered, as the transaction may be rolled back.
 */
static bool
is_uncommitted(Relation rel)
{
	return rel->rd_createSubid != InvalidSubTransactionId ||
		rel->rd_firstRelfilelocatorSubid != InvalidSubTransactionId;
}

/*
 * Remove the buffer that has been idle for longest, and for at least min_idle ms,
 * from the table that the caller has locked.  A buffer for which a segment is on
 * its way must have been idle for MIN_IDLE, as calls may be waiting for it.
 */
static bool
evict_idle(int64 now, int64 min_idle)
{
	HASH_SEQ_STATUS scan;
	TicketBuffer *buffer;
	TicketBuffer *victim = NULL;

	hash_seq_init(&scan, buffers);
	while ((buffer = hash_seq_search(&scan)) != NULL)
	{
		int64		least = buffer->requested ? MIN_IDLE : min_idle;

		if (now - buffer->last_used >= least * 1000 &&
			(victim == NULL || buffer->last_used < victim->last_used))
			victim = buffer;
	}
	if (victim == NULL)
		return false;
	hash_search(buffers, &victim->key, HASH_REMOVE, NULL);
	return true;
}

/*
 * Make a buffer for a ticket that has none.  Returns false if there is no room.
 *
 * When all are taken, it replaces an idle one.  A ticket that has a source cannot
 * do without a buffer.  So it replaces the one that was not used for longest, idle
 * or not.
 */
static bool
create_buffer(Oid ticket, bool has_source)
{
	BufferKey	key = {MyDatabaseId, ticket};
	int64		now = instaid_monotonic_time();
	bool		there;

	if (!has_source && now < (int64) pg_atomic_read_u64(&shared->full_until))
		return false;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	there = lookup(ticket) != NULL;
	if (!there &&
		(hash_get_num_entries(buffers) < instaid_max_buffered_tickets ||
		 evict_idle(now, has_source ? 0 : MIN_IDLE)))
	{
		TicketBuffer *buffer = hash_search(buffers, &key, HASH_ENTER_NULL, NULL);

		if (buffer != NULL)
		{
			memset((char *) buffer + sizeof(BufferKey), 0, sizeof(TicketBuffer) - sizeof(BufferKey));
			LWLockInitialize(&buffer->lock, shared->tranche);
			buffer->generation = pg_atomic_add_fetch_u64(&shared->generation, 1);
			buffer->last_used = now;
			buffer->blocks = 1;
			buffer->lasted = -1;
			there = true;
		}
	}
	LWLockRelease(shared->lock);
	if (!there)
		pg_atomic_write_u64(&shared->full_until, now + FULL_FOR * 1000);
	return there;
}

/* Give up what is buffered, and what is on its way. */
static void
give_up_values(TicketBuffer *buffer)
{
	buffer->segments[0].left = buffer->segments[1].left = 0;
	buffer->lasted = -1;
	buffer->generation = pg_atomic_add_fetch_u64(&shared->generation, 1);
}

/*
 * Give up what is buffered if the ticket, which has a source, has another name
 * now: the source has been asked for another ticket's values.
 */
static void
follow_name(TicketBuffer *buffer, const char *name)
{
	if (strcmp(buffer->name, name) == 0)
		return;
	if (buffer->name[0] != '\0')
	{
		give_up_values(buffer);
		buffer->retry_at = 0;
	}
	strlcpy(buffer->name, name, NAMEDATALEN);
}

/*
 * Give up what is buffered if the sequence, whose page the caller has locked, is
 * not as we left it: somebody has said what comes next.
 *
 * setval() always writes WAL, ALTER SEQUENCE another file, and nextval() writes
 * WAL or moves the value.  After a nextval() alone the buffer would still be good,
 * but it cannot be told from a nextval() that came after a setval().
 */
static void
follow_sequence(TicketBuffer *buffer, Relation rel, Buffer page, Form_pg_sequence_data data)
{
	XLogRecPtr	lsn = PageGetLSN(BufferGetPage(page));

	if (RelFileLocatorEquals(buffer->file, rel->rd_locator) &&
		buffer->lsn == lsn && buffer->last_value == data->last_value)
		return;
	give_up_values(buffer);
	buffer->file = rel->rd_locator;
	buffer->lsn = lsn;
	buffer->last_value = data->last_value;
}

/* The buffer of a sequence that is about to be taken of, locked, or NULL */
static TicketBuffer *
lock_buffer_beside(Relation rel)
{
	return shared == NULL || is_uncommitted(rel) ? NULL : lock_buffer(RelationGetRelid(rel));
}

/* To be called before values are taken of the sequence, whose page is locked. */
void
instaid_before_taking(Relation rel, Buffer page, Form_pg_sequence_data data)
{
	TicketBuffer *buffer = lock_buffer_beside(rel);

	if (buffer == NULL)
		return;
	follow_sequence(buffer, rel, page, data);
	unlock_buffer(buffer);
}

/*
 * To be called afterwards, while the page is still locked.  Returns the generation
 * of the buffer, which instaid_publish() compares.
 */
uint64
instaid_after_taking(Relation rel, Buffer page, Form_pg_sequence_data data)
{
	TicketBuffer *buffer = lock_buffer_beside(rel);
	uint64		generation;

	if (buffer == NULL)
		return 0;
	buffer->lsn = PageGetLSN(BufferGetPage(page));
	buffer->last_value = data->last_value;
	generation = buffer->generation;
	unlock_buffer(buffer);
	return generation;
}

/* Take a value out of the buffer, which the caller has locked. */
static bool
take_value(TicketBuffer *buffer, int64 now, TicketBlock *block)
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
	block->first = segment->next;
	block->lsn = segment->lsn;
	segment->left--;
	if (segment->left > 0)
		segment->next += segment->increment;
	else
		buffer->lasted = (now - buffer->current_since) / 1000;
	return true;
}

/* After a failure it is not asked for a segment for a while. */
static bool
is_resting(TicketBuffer *buffer, int64 now)
{
	return buffer->retry_at > now;
}

/*
 * Ask for the other segment when it is time, in the buffer that the caller has
 * locked.  Returns whether the worker has to be told.
 */
static bool
request_segment(TicketBuffer *buffer, int64 now)
{
	Segment    *segment = &buffer->segments[buffer->current];

	if (buffer->requested ||
		buffer->segments[1 - buffer->current].left > 0 ||
		(segment->size - segment->left) < segment->size / 10.0 ||
		is_resting(buffer, now))
		return false;
	buffer->requested = true;
	/* the time that calls wait is counted from this request */
	if (segment->left == 0)
		buffer->empty_since = now;
	return true;
}

/*
 * Wake the worker of this database, or launch one.  Returns false if there is none
 * and no slot for background workers is free.
 */
static bool
wake_worker(void)
{
	BackgroundWorker worker = {0};
	int64		now = instaid_monotonic_time();
	WorkerSlot *slot = NULL;
	bool		there = false;

	LWLockAcquire(shared->lock, LW_SHARED);
	for (int i = 0; i < shared->slot_count && !there; i++)
	{
		if (shared->slots[i].database == MyDatabaseId && shared->slots[i].latch != NULL)
		{
			SetLatch(shared->slots[i].latch);
			there = true;
		}
	}
	LWLockRelease(shared->lock);
	if (there)
		return true;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < shared->slot_count; i++)
	{
		WorkerSlot *s = &shared->slots[i];
		bool		waiting = s->latch == NULL && OidIsValid(s->database) &&
			now < s->launched_at + WORKER_START * 1000;

		if (s->database == MyDatabaseId && (waiting || s->latch != NULL))
		{
			/* it has come, or another session has launched it */
			LWLockRelease(shared->lock);
			return true;
		}
		if (s->latch == NULL && !waiting && slot == NULL)
			slot = s;
	}
	if (slot != NULL)
	{
		worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION |
			BGWORKER_INTERRUPTIBLE;
		worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
		worker.bgw_restart_time = BGW_NEVER_RESTART;
		strlcpy(worker.bgw_library_name, "instaid", sizeof(worker.bgw_library_name));
		strlcpy(worker.bgw_function_name, "instaid_refill_worker", sizeof(worker.bgw_function_name));
		strlcpy(worker.bgw_name, "instaid segments", BGW_MAXLEN);
		strlcpy(worker.bgw_type, "instaid segments", BGW_MAXLEN);
		worker.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId);

		there = RegisterDynamicBackgroundWorker(&worker, NULL);
		if (there)
		{
			slot->database = MyDatabaseId;
			slot->launched_at = now;
		}
	}
	LWLockRelease(shared->lock);
	return there;
}

/* The error for a ticket that has a source, but cannot have a buffer */
void
instaid_no_buffer_error(Relation rel)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("ticket \"%s\" has a source, but no buffer", RelationGetRelationName(rel)),
			 shared == NULL ?
			 errdetail("The server was started without instaid in shared_preload_libraries.") :
			 is_uncommitted(rel) ?
			 errdetail("This transaction has created or altered it.") :
			 errdetail("All of them are taken: instaid.max_buffered_tickets is %d.",
					   instaid_max_buffered_tickets),
			 shared == NULL ?
			 errhint("Add it there, and restart the server.") :
			 is_uncommitted(rel) ?
			 errhint("Commit first.") :
			 errhint("Raise it, and restart the server.")));
}

/*
 * May the role see why a segment could not be had?  The reasons name files of
 * the server, as libpq's messages do: sockets, passwords, certificates.
 */
static bool
may_see_problem(Oid ticket)
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
	TicketBuffer *buffer = lock_buffer(RelationGetRelid(rel));
	char		problem[PROBLEM_LENGTH] = "";
	bool		failing = false;
	TimestampTz failed_at = 0;

	if (buffer != NULL)
	{
		failing = buffer->failures_in_a_row > 0 && !no_worker;
		failed_at = buffer->failed_at;
		strlcpy(problem, buffer->problem, sizeof(problem));
		unlock_buffer(buffer);
	}

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("ticket \"%s\" has no values left from its source",
					RelationGetRelationName(rel)),
			 no_worker ?
			 errdetail("No background worker was free within %d ms to ask it.", instaid_segment_timeout) :
			 failing && !may_see_problem(RelationGetRelid(rel)) ?
			 errdetail("The last attempt, at %s, failed. The ticket's owner and members of pg_read_all_stats see the reason in instaid.segments.",
					   timestamptz_to_str(failed_at)) :
			 failing ?
			 errdetail("The last attempt, at %s, failed: %s",
					   timestamptz_to_str(failed_at), problem) :
			 errdetail("The source has not answered within %d ms.", instaid_segment_timeout),
			 no_worker ?
			 errhint("Increase max_worker_processes.") :
			 failing ?
			 errhint("It is asked again by itself, at most %d s after that.",
					 LAST_BACKOFF / 1000) :
			 errhint("It goes on by itself when the source answers; instaid.segments shows it.")));
}

/* No worker can be had: let calls take their values from the sequence for a while. */
static void
note_no_worker(Relation rel)
{
	SegmentRequest request = {.ticket = RelationGetRelid(rel)};

	strlcpy(request.name, RelationGetRelationName(rel), NAMEDATALEN);
	instaid_refill_failed(&request, "no background worker is free; max_worker_processes can be increased", false);
}

/*
 * Take the next value of an open ticket from its buffer.  Waits for a segment if
 * there is none, up to instaid.segment_timeout after the buffer became empty.
 * When it returns a value, that is as durable as sequence_make_durable() has it.
 *
 * Returns false if there is no value: the caller then takes it from the
 * sequence.  If the ticket has a source and a buffer, that is an error (55000).
 */
bool
instaid_take_buffered(Relation rel, bool has_source, TicketBlock *block)
{
	Oid			ticket = RelationGetRelid(rel);
	bool		waiting = false;
	bool		no_worker = false;

	if (shared == NULL || is_uncommitted(rel))
		return false;

	for (;;)
	{
		TicketBuffer *buffer;
		Buffer		page = InvalidBuffer;
		Form_pg_sequence_data data = NULL;
		bool		there;
		bool		taken = false;
		bool		wanted = false;
		bool		give_up = true;
		int64		timeout = instaid_segment_timeout;

		if (!has_source)
			data = sequence_lock_page(rel, &page, BUFFER_LOCK_SHARE);
		buffer = lock_buffer(ticket);
		there = buffer != NULL;
		if (there)
		{
			int64		now = instaid_monotonic_time();

			if (has_source)
				follow_name(buffer, RelationGetRelationName(rel));
			else
				follow_sequence(buffer, rel, page, data);
			taken = take_value(buffer, now, block);
			wanted = request_segment(buffer, now) ||
				(!taken && buffer->requested && !is_resting(buffer, now));
			give_up = !wanted;
			if (!taken && !give_up)
			{
				timeout -= (now - buffer->empty_since) / 1000;
				give_up = timeout <= 0;
			}
			if (!taken && give_up && !has_source)
				buffer->bypassed++;
			unlock_buffer(buffer);
		}
		if (!has_source)
			UnlockReleaseBuffer(page);

		if (!there)
		{
			/* this is its first use, or the buffer was removed */
			CHECK_FOR_INTERRUPTS();
			if (create_buffer(ticket, has_source))
				continue;
			ConditionVariableCancelSleep();
			return false;
		}

		/* even if it was asked before: it may have been killed since */
		if (wanted)
		{
			no_worker = !wake_worker();
			/* without a source, the sequence will do */
			if (no_worker && (taken || !has_source))
			{
				note_no_worker(rel);
				if (!taken && !give_up)
					continue;
			}
		}
		if (taken || give_up)
		{
			ConditionVariableCancelSleep();
			if (!taken && has_source)
				empty_error(rel, no_worker);
			if (taken)
				sequence_make_durable(block->lsn);
			return taken;
		}
		if (!waiting && (buffer = lock_buffer(ticket)) != NULL)
		{
			buffer->waits++;
			unlock_buffer(buffer);
			waiting = true;
		}
		(void) ConditionVariableTimedSleep(refilled(ticket),
										   Min(timeout, no_worker ? WORKER_RETRY : WORKER_START),
										   PG_WAIT_EXTENSION);
	}
}

/*
 * This process is the worker no more.  The caller has locked the slots.  What was
 * requested of it is forgotten, so that sessions request it of the next one.
 */
static void
free_slot(void)
{
	HASH_SEQ_STATUS scan;
	TicketBuffer *buffer;

	for (int i = 0; i < shared->slot_count; i++)
	{
		if (shared->slots[i].latch != MyLatch)
			continue;
		memset(&shared->slots[i], 0, sizeof(WorkerSlot));
		hash_seq_init(&scan, buffers);
		while ((buffer = hash_seq_search(&scan)) != NULL)
		{
			if (buffer->key.database == MyDatabaseId)
				buffer->requested = false;
		}
	}
}

void
instaid_detach_worker(void)
{
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	free_slot();
	LWLockRelease(shared->lock);
}

static void
detach_at_exit(int code, Datum arg)
{
	(void) code;
	(void) arg;
	instaid_detach_worker();
}

/* Be the worker of this database, unless there is one. */
bool
instaid_attach_worker(void)
{
	WorkerSlot *slot = NULL;

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < shared->slot_count; i++)
	{
		WorkerSlot *s = &shared->slots[i];

		if (s->database == MyDatabaseId && s->latch != NULL)
		{
			LWLockRelease(shared->lock);
			return false;
		}
		if (s->database == MyDatabaseId || (slot == NULL && !OidIsValid(s->database)))
			slot = s;
	}
	if (slot != NULL)
	{
		slot->database = MyDatabaseId;
		slot->latch = MyLatch;
		before_shmem_exit(detach_at_exit, (Datum) 0);
	}
	LWLockRelease(shared->lock);
	return slot != NULL;
}

/*
 * The tickets of this database that need a segment now, and in how many ms the
 * next one is due, or -1.  If there are neither, and the worker wants to retire,
 * its slot is freed under the same lock: a session whose request comes later finds
 * no worker, and launches another.
 */
List *
instaid_requests(bool retire, int64 *next_due)
{
	HASH_SEQ_STATUS scan;
	TicketBuffer *buffer;
	List	   *tickets = NIL;
	int64		now = instaid_monotonic_time();

	*next_due = -1;
	LWLockAcquire(shared->lock, retire ? LW_EXCLUSIVE : LW_SHARED);
	hash_seq_init(&scan, buffers);
	while ((buffer = hash_seq_search(&scan)) != NULL)
	{
		if (buffer->key.database != MyDatabaseId || !buffer->requested)
			continue;
		if (is_resting(buffer, now))
		{
			int64		due = (buffer->retry_at - now) / 1000 + 1;

			if (*next_due < 0 || due < *next_due)
				*next_due = due;
		}
		else
			tickets = lappend_oid(tickets, buffer->key.ticket);
	}
	if (retire && tickets == NIL && *next_due < 0)
		free_slot();
	LWLockRelease(shared->lock);
	return tickets;
}

/*
 * The length of a segment of so many steps: no longer than a million values, or
 * the step if that is longer.
 */
static int64
segment_length(int64 *blocks, int64 step)
{
	*blocks = Max(Min(*blocks, MAX_SEGMENT / step), 1);
	return *blocks * step;
}

/*
 * What the worker is to get for a ticket.  Returns false if its buffer is gone.
 *
 * The length is by Leaf's rule: twice that of the last segment if that lasted for
 * less than instaid.segment_duration, half of it if for more than twice that.
 */
bool
instaid_begin_refill(Oid ticket, const char *name, int64 step, SegmentRequest *request)
{
	TicketBuffer *buffer = lock_buffer(ticket);

	if (buffer == NULL)
		return false;
	if (buffer->name[0] != '\0')
		follow_name(buffer, name);
	if (buffer->lasted >= 0 && buffer->lasted < instaid_segment_duration)
		buffer->blocks *= 2;
	else if (buffer->lasted >= 2 * (int64) instaid_segment_duration)
		buffer->blocks /= 2;
	/* how long a segment lasted counts once, even if the refill fails */
	buffer->lasted = -1;

	memset(request, 0, sizeof(*request));
	request->ticket = ticket;
	strlcpy(request->name, name, NAMEDATALEN);
	request->started = instaid_monotonic_time();
	request->count = segment_length(&buffer->blocks, step);
	request->turn = buffer->turn;
	request->stripes = buffer->stripes;
	request->generation = buffer->generation;
	/* the time that calls wait is counted from this attempt */
	if (buffer->empty_since != 0)
		buffer->empty_since = request->started;
	unlock_buffer(buffer);
	return true;
}

/* Note that an attempt, or a part of one, failed.  The caller has locked the buffer. */
static void
note_problem(TicketBuffer *buffer, const char *problem)
{
	buffer->failures++;
	buffer->failed_at = GetCurrentTimestamp();
	strlcpy(buffer->problem, problem,
			1 + pg_mbcliplen(problem, strlen(problem), PROBLEM_LENGTH - 1));
}

/*
 * Put a segment of count values, which were taken for this request, into the
 * buffer.  If one of several servers of a source failed before, problem says why.
 */
void
instaid_publish(const SegmentRequest *request, const TicketBlock *block, int64 count,
				const char *problem)
{
	TicketBuffer *buffer = lock_buffer(request->ticket);
	bool		mended = false;

	if (buffer != NULL)
	{
		/* not if the sequence was set meanwhile, or the ticket renamed */
		if (request->generation == buffer->generation)
		{
			Segment    *other = &buffer->segments[1 - buffer->current];

			Assert(other->left == 0);
			other->next = block->first;
			other->increment = block->increment;
			other->left = other->size = count;
			other->lsn = block->lsn;
			buffer->empty_since = 0;
		}
		mended = buffer->failures_in_a_row > 0;
		buffer->failures_in_a_row = 0;
		buffer->retry_at = 0;
		buffer->turn = request->turn;
		buffer->requested = false;
		buffer->refills++;
		buffer->refilled_at = GetCurrentTimestamp();
		buffer->refill_took = instaid_monotonic_time() - request->started;
		if (problem)
			note_problem(buffer, problem);
		unlock_buffer(buffer);
		ConditionVariableBroadcast(refilled(request->ticket));
	}
	if (mended)
		ereport(LOG, (errmsg("ticket \"%s\" gets segments again", request->name)));
	if (problem)
		ereport(WARNING,
				(errmsg("ticket \"%s\" gets no segment from one of its servers", request->name),
				 errdetail_internal("%s", problem),
				 errhint("It stays with the one that gave it this segment, as long as that does.")));
}

/*
 * An attempt to get a segment failed.  Log the first failure of a row of them, and
 * let the ticket rest.  After that the worker tries again by itself, if try_again
 * says so, or else when a session asks.
 */
void
instaid_refill_failed(const SegmentRequest *request, const char *problem, bool try_again)
{
	TicketBuffer *buffer = lock_buffer(request->ticket);
	bool		first = false;

	if (buffer != NULL)
	{
		int64		backoff;

		first = buffer->failures_in_a_row == 0;
		backoff = Min((int64) FIRST_BACKOFF << Min(buffer->failures_in_a_row, 16), LAST_BACKOFF);
		buffer->failures_in_a_row++;
		note_problem(buffer, problem);
		/* a segment may have been too long for a slow server */
		buffer->blocks = Max(buffer->blocks / 2, 1);
		buffer->retry_at = instaid_monotonic_time() + backoff * 1000;
		if (buffer->empty_since != 0)
			buffer->empty_since = buffer->retry_at;
		buffer->requested = try_again;
		unlock_buffer(buffer);
		ConditionVariableBroadcast(refilled(request->ticket));
	}
	if (first)
		ereport(WARNING,
				(errmsg("ticket \"%s\" gets no segment", request->name),
				 errdetail_internal("%s", problem),
				 errhint("It is tried again, after %d ms at first, %d ms at most; instaid.segments shows it.",
						 FIRST_BACKOFF, LAST_BACKOFF)));
}

/* Keep what was learnt of the sources of a ticket. */
void
instaid_remember_stripes(const SegmentRequest *request)
{
	TicketBuffer *buffer = lock_buffer(request->ticket);

	if (buffer == NULL)
		return;
	buffer->stripes = request->stripes;
	unlock_buffer(buffer);
}

/* Remove the buffer of a ticket, if it has one. */
void
instaid_forget_buffer(Oid ticket)
{
	BufferKey	key = {MyDatabaseId, ticket};
	bool		found;

	LWLockAcquire(shared->lock, LW_SHARED);
	found = lookup(ticket) != NULL;
	LWLockRelease(shared->lock);
	if (!found)
		return;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	hash_search(buffers, &key, HASH_REMOVE, NULL);
	LWLockRelease(shared->lock);
	pg_atomic_write_u64(&shared->full_until, 0);
}

/*
 * segment_state() -> setof record
 *
 * The buffers of this database, of tickets that the role may use; see the view
 * instaid.segments.
 */
Datum
instaid_segment_state(PG_FUNCTION_ARGS)
{
#define SEGMENT_COLUMNS 17
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	HASH_SEQ_STATUS scan;
	TicketBuffer *found;
	TicketBuffer *copies;
	int			count = 0;

	InitMaterializedSRF(fcinfo, 0);
	if (shared == NULL)
		return (Datum) 0;

	/* the catalogs are not to be read under the lock */
	LWLockAcquire(shared->lock, LW_SHARED);
	copies = palloc_extended(hash_get_num_entries(buffers) * sizeof(TicketBuffer), MCXT_ALLOC_HUGE);
	hash_seq_init(&scan, buffers);
	while ((found = hash_seq_search(&scan)) != NULL)
	{
		if (found->key.database != MyDatabaseId)
			continue;
		LWLockAcquire(&found->lock, LW_SHARED);
		copies[count++] = *found;
		LWLockRelease(&found->lock);
	}
	LWLockRelease(shared->lock);

	for (TicketBuffer *buffer = copies; buffer < copies + count; buffer++)
	{
		Datum		values[SEGMENT_COLUMNS] = {0};
		bool		nulls[SEGMENT_COLUMNS] = {false};
		int			column = 0;
		bool		missing = false;
		HeapTuple	tuple;
		bool		overlap = false;

		if (pg_class_aclcheck_ext(buffer->key.ticket, GetUserId(),
								  ACL_SELECT | ACL_USAGE, &missing) != ACLCHECK_OK)
			continue;
		tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(buffer->key.ticket));
		if (!HeapTupleIsValid(tuple))
			continue;
		values[column++] = ObjectIdGetDatum(buffer->key.ticket);
		values[column++] = Int64GetDatum(segment_length(&buffer->blocks,
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
		values[column++] = Int64GetDatum(buffer->refill_took);
		values[column++] = Int64GetDatum(buffer->waits);
		values[column++] = Int64GetDatum(buffer->bypassed);
		values[column++] = Int64GetDatum(buffer->failures);
		nulls[column] = nulls[column + 1] = buffer->failures == 0;
		values[column++] = TimestampTzGetDatum(buffer->failed_at);
		values[column++] = CStringGetTextDatum(may_see_problem(buffer->key.ticket) ?
											   buffer->problem : "<insufficient privilege>");
		for (int i = 0; i < MAX_SERVERS; i++)
			overlap |= find_overlap(&buffer->stripes, i) >= 0;
		values[column++] = BoolGetDatum(overlap);
		Assert(column == SEGMENT_COLUMNS);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
