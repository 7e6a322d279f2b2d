/*-------------------------------------------------------------------------
 *
 * segments.c
 *	  Segments of tickets in shared memory, for all sessions.
 *
 * A ticket whose sequence has CACHE > 1 is given out by segments of so many
 * values, which a background worker (refill.c) takes from the sequence ahead of
 * demand.  There are two in the ticket's buffer: when a tenth of the one is
 * used, the worker is asked for the other, so that nobody waits at its end.
 *
 * Every value in a buffer is taken: the WAL that takes the sequence past it is
 * flushed, and the commit of who took it is done.  So to lose a buffer leaves
 * values out and repeats none.
 *
 * The sequence remains the authority.  A session that takes a value looks at its
 * page, under a shared lock, and gives up what is buffered when setval(), ALTER
 * SEQUENCE or nextval() has been there; and when the buffer stays empty, it
 * takes a value of the sequence itself.
 *
 * Locks are taken in this order: the sequence's relation lock, its page's, the
 * table's, the buffer's.  A pointer to a buffer is good while the relation is
 * locked, since only those of relations that are gone are removed, or while the
 * table is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
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
#include "utils/inval.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "segments.h"

/* the longest segment, if the step is not longer */
#define MAX_SEGMENT		1000000

/* how long a refill that failed is not tried again, in ms: first, and at most */
#define FIRST_BACKOFF	100
#define LAST_BACKOFF	5000

/* a worker that has not come by then, in ms, is started again */
#define WORKER_START	1000

#define PROBLEM_LENGTH	512

PG_FUNCTION_INFO_V1(instaid_segment_state);

typedef struct Segment
{
	int64		next;			/* the value that comes next, if any is left */
	int64		increment;
	int64		left;
	int64		size;
} Segment;

typedef struct BufferKey
{
	Oid			database;
	Oid			ticket;
} BufferKey;

struct TicketBuffer
{
	BufferKey	key;			/* hash key */
	LWLock		lock;			/* protects what follows */
	ConditionVariable refilled;

	Segment		segments[2];
	int			current;		/* the one that is given out */
	TimestampTz current_since;
	TimestampTz empty_since;	/* when a session found neither, or 0 */

	/* the sequence, as we left it */
	RelFileLocator file;
	XLogRecPtr	lsn;
	int64		last_value;
	uint64		generation;		/* goes up when what was taken is given up */

	/* the other segment */
	bool		requested;
	int64		blocks;			/* its length in steps */
	int64		lasted;			/* ms that the last one did, or -1 */
	int			turn;			/* which of several sources is next */
	Stripes		stripes;		/* what they are known to give */
	int			failures_in_a_row;
	TimestampTz retry_at;

	/* for the view */
	int64		refills;
	TimestampTz refilled_at;
	int64		refill_took;	/* microseconds */
	int64		failures;
	TimestampTz failed_at;
	char		problem[PROBLEM_LENGTH];
	int64		waits;
	int64		bypassed;
};

/* The worker of a database */
typedef struct WorkerSlot
{
	Oid			database;		/* InvalidOid: free */
	Latch	   *latch;			/* null until it has come */
	TimestampTz launched_at;
} WorkerSlot;

typedef struct SharedState
{
	LWLock	   *lock;			/* protects the slots, and the table */
	int			tranche;
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
	}
	ctl.keysize = sizeof(BufferKey);
	ctl.entrysize = sizeof(TicketBuffer);
	buffers = ShmemInitHash("instaid tickets", instaid_max_buffered_tickets, &ctl,
							HASH_ELEM | HASH_BLOBS);
	LWLockRelease(AddinShmemInitLock);
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
}

/*
 * Buffers of tickets and databases that are gone, when there is no room left.
 */
static void
forget_dropped(void)
{
	static TimestampTz last_time = 0;
	TimestampTz now = GetCurrentTimestamp();
	HASH_SEQ_STATUS scan;
	TicketBuffer *buffer;
	BufferKey  *keys;
	int			count = 0;

	if (last_time != 0 && !TimestampDifferenceExceeds(last_time, now, 10000))
		return;
	last_time = now;

	/* the catalogs are not to be read under the lock */
	LWLockAcquire(shared->lock, LW_SHARED);
	keys = palloc(hash_get_num_entries(buffers) * sizeof(BufferKey));
	hash_seq_init(&scan, buffers);
	while ((buffer = hash_seq_search(&scan)) != NULL)
		keys[count++] = buffer->key;
	LWLockRelease(shared->lock);

	AcceptInvalidationMessages();
	for (int i = 0; i < count; i++)
	{
		if (keys[i].database == MyDatabaseId ?
			SearchSysCacheExists1(RELOID, ObjectIdGetDatum(keys[i].ticket)) :
			SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(keys[i].database)))
			continue;
		LWLockAcquire(shared->lock, LW_EXCLUSIVE);
		hash_search(buffers, &keys[i], HASH_REMOVE, NULL);
		LWLockRelease(shared->lock);
	}
	pfree(keys);
}

/* Find a buffer, in the table that the caller has locked. */
static TicketBuffer *
lookup(Oid ticket)
{
	BufferKey	key = {MyDatabaseId, ticket};

	return hash_search(buffers, &key, HASH_FIND, NULL);
}

/*
 * A file that the transaction in progress has made has no buffer: it may be gone
 * again when others look.
 */
static bool
is_uncommitted(Relation rel)
{
	return rel->rd_createSubid != InvalidSubTransactionId ||
		rel->rd_firstRelfilelocatorSubid != InvalidSubTransactionId;
}

/* Make a buffer for a ticket that has none, or return NULL if there is no room. */
static TicketBuffer *
create_buffer(Oid ticket)
{
	BufferKey	key = {MyDatabaseId, ticket};
	TicketBuffer *buffer = NULL;
	bool		found = false;

	if (hash_get_num_entries(buffers) >= instaid_max_buffered_tickets)
		forget_dropped();

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	if (hash_get_num_entries(buffers) < instaid_max_buffered_tickets || lookup(ticket) != NULL)
		buffer = hash_search(buffers, &key, HASH_ENTER_NULL, &found);
	if (buffer != NULL && !found)
	{
		memset((char *) buffer + sizeof(BufferKey), 0, sizeof(TicketBuffer) - sizeof(BufferKey));
		LWLockInitialize(&buffer->lock, shared->tranche);
		ConditionVariableInit(&buffer->refilled);
		buffer->blocks = 1;
		buffer->lasted = -1;
	}
	LWLockRelease(shared->lock);
	return buffer;
}

/*
 * The buffer of a ticket, or NULL if it has none, and cannot have one or is not
 * to get it.
 */
TicketBuffer *
instaid_find_buffer(Relation rel, bool create)
{
	TicketBuffer *buffer;

	if (shared == NULL || is_uncommitted(rel))
		return NULL;

	LWLockAcquire(shared->lock, LW_SHARED);
	buffer = lookup(RelationGetRelid(rel));
	LWLockRelease(shared->lock);
	if (buffer == NULL && create)
		buffer = create_buffer(RelationGetRelid(rel));
	return buffer;
}

/*
 * Give up what is buffered if the sequence, whose page the caller has locked, is
 * not as we left it: somebody has said what comes next.
 *
 * setval() always writes WAL, and ALTER SEQUENCE another file.  So does
 * nextval() write, or it moves the value; that it costs the buffer is the price
 * for not having to tell it from what may lie behind it.
 */
static void
follow_sequence(TicketBuffer *buffer, Relation rel, Buffer page, Form_pg_sequence_data data)
{
	XLogRecPtr	lsn = PageGetLSN(BufferGetPage(page));

	if (RelFileLocatorEquals(buffer->file, rel->rd_locator) &&
		buffer->lsn == lsn && buffer->last_value == data->last_value)
		return;
	buffer->segments[0].left = buffer->segments[1].left = 0;
	buffer->lasted = -1;
	buffer->generation++;
	buffer->file = rel->rd_locator;
	buffer->lsn = lsn;
	buffer->last_value = data->last_value;
}

/* Somebody who has locked the page exclusively is about to take of it ... */
void
instaid_before_taking(TicketBuffer *buffer, Relation rel, Buffer page, Form_pg_sequence_data data)
{
	LWLockAcquire(&buffer->lock, LW_EXCLUSIVE);
	follow_sequence(buffer, rel, page, data);
	LWLockRelease(&buffer->lock);
}

/* ... and has taken.  Returns what publishing compares. */
uint64
instaid_after_taking(TicketBuffer *buffer, Buffer page, Form_pg_sequence_data data)
{
	uint64		generation;

	LWLockAcquire(&buffer->lock, LW_EXCLUSIVE);
	buffer->lsn = PageGetLSN(BufferGetPage(page));
	buffer->last_value = data->last_value;
	generation = buffer->generation;
	LWLockRelease(&buffer->lock);
	return generation;
}

/* Take a value out of the buffer, which the caller has locked. */
static bool
take_value(TicketBuffer *buffer, int64 *value)
{
	Segment    *segment = &buffer->segments[buffer->current];

	if (segment->left == 0)
	{
		TimestampTz now = GetCurrentTimestamp();
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
	*value = segment->next;
	segment->left--;
	if (segment->left > 0)
		segment->next += segment->increment;
	else
		buffer->lasted = TimestampDifferenceMilliseconds(buffer->current_since,
														 GetCurrentTimestamp());
	return true;
}

/*
 * Ask for the other segment when it is time, in the buffer that the caller has
 * locked.  Returns whether the worker has to be told.
 */
static bool
request_segment(TicketBuffer *buffer)
{
	Segment    *segment = &buffer->segments[buffer->current];

	if (buffer->requested ||
		buffer->segments[1 - buffer->current].left > 0 ||
		(segment->size - segment->left) < segment->size / 10.0 ||
		(buffer->retry_at != 0 && buffer->retry_at > GetCurrentTimestamp()))
		return false;
	buffer->requested = true;
	/* who waits, waits for this attempt */
	if (segment->left == 0)
		buffer->empty_since = GetCurrentTimestamp();
	return true;
}

/*
 * See to it that the worker of this database looks for requests.  Returns false
 * if there is none and none can be started.
 */
static bool
wake_worker(void)
{
	BackgroundWorker worker = {0};
	TimestampTz now = GetCurrentTimestamp();
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
			!TimestampDifferenceExceeds(s->launched_at, now, WORKER_START);

		if (s->database == MyDatabaseId && (waiting || s->latch != NULL))
		{
			/* another session was faster */
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

/* A ticket that has a source is of no use without a buffer. */
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

/* There is nothing buffered of a ticket that has nothing else. */
static void
empty_error(Relation rel, TicketBuffer *buffer)
{
	char		problem[PROBLEM_LENGTH];
	bool		failing;
	TimestampTz failed_at;

	LWLockAcquire(&buffer->lock, LW_SHARED);
	failing = buffer->failures_in_a_row > 0;
	failed_at = buffer->failed_at;
	strlcpy(problem, buffer->problem, sizeof(problem));
	LWLockRelease(&buffer->lock);

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("ticket \"%s\" has no values left from its source",
					RelationGetRelationName(rel)),
			 failing && !may_see_problem(RelationGetRelid(rel)) ?
			 errdetail("The last attempt, at %s, failed. The ticket's owner and members of pg_read_all_stats see the reason in instaid.segments.",
					   timestamptz_to_str(failed_at)) :
			 failing ?
			 errdetail("The last attempt, at %s, failed: %s",
					   timestamptz_to_str(failed_at), problem) :
			 errdetail("The source has not answered within %d ms.", instaid_segment_timeout),
			 failing ?
			 errhint("It is asked again, at most %d s after that, when values are wanted.",
					 LAST_BACKOFF / 1000) :
			 errhint("It goes on by itself when the source answers; instaid.segments shows it.")));
}

/*
 * Take the next value of an open ticket from its buffer.  Waits for a segment if
 * there is none, up to instaid.segment_timeout after the buffer became empty.
 *
 * Returns false if there is no value: the caller then takes it from the
 * sequence.  If the ticket has a source and a buffer, that is an error (55000).
 */
bool
instaid_take_buffered(Relation rel, bool has_source, int64 *value)
{
	TicketBuffer *buffer = instaid_find_buffer(rel, true);
	bool		waiting = false;

	if (buffer == NULL)
		return false;

	for (;;)
	{
		Buffer		page = InvalidBuffer;
		Form_pg_sequence_data data = NULL;
		bool		taken;
		bool		wanted;
		bool		give_up;
		TimestampTz empty_since;
		long		timeout;

		if (!has_source)
			data = lock_sequence_page(rel, &page, BUFFER_LOCK_SHARE);
		LWLockAcquire(&buffer->lock, LW_EXCLUSIVE);
		if (!has_source)
			follow_sequence(buffer, rel, page, data);
		taken = take_value(buffer, value);
		wanted = request_segment(buffer) || (!taken && buffer->requested);
		/* after a failure it is not asked for again for a while */
		give_up = !wanted;
		empty_since = buffer->empty_since;
		timeout = instaid_segment_timeout;
		if (!taken && !give_up)
		{
			timeout -= TimestampDifferenceMilliseconds(empty_since, GetCurrentTimestamp());
			give_up = timeout <= 0;
		}
		if (!taken && give_up && !has_source)
			buffer->bypassed++;
		LWLockRelease(&buffer->lock);
		if (!has_source)
			UnlockReleaseBuffer(page);

		/* also when it was asked before: it may have ended without a word */
		if (wanted && !wake_worker())
		{
			SegmentRequest request = {.ticket = RelationGetRelid(rel)};

			strlcpy(request.name, RelationGetRelationName(rel), NAMEDATALEN);
			instaid_refill_failed(&request, "no background worker is free; max_worker_processes can be increased");
			if (!taken && !give_up)
				continue;
		}
		if (taken || give_up)
		{
			if (waiting)
				ConditionVariableCancelSleep();
			if (!taken && has_source)
				empty_error(rel, buffer);
			return taken;
		}
		if (!waiting)
		{
			LWLockAcquire(&buffer->lock, LW_EXCLUSIVE);
			buffer->waits++;
			LWLockRelease(&buffer->lock);
			waiting = true;
		}
		(void) ConditionVariableTimedSleep(&buffer->refilled, Min(timeout, WORKER_START),
										   PG_WAIT_EXTENSION);
	}
}

/* This process is no worker any more; the caller has locked the slots. */
static void
free_slot(void)
{
	for (int i = 0; i < shared->slot_count; i++)
	{
		if (shared->slots[i].latch == MyLatch)
			memset(&shared->slots[i], 0, sizeof(WorkerSlot));
	}
}

static void
detach_worker(int code, Datum arg)
{
	(void) code;
	(void) arg;
	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	free_slot();
	LWLockRelease(shared->lock);
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
		before_shmem_exit(detach_worker, (Datum) 0);
	}
	LWLockRelease(shared->lock);
	return slot != NULL;
}

/*
 * The tickets of this database that want a segment.  If there are none, and the
 * worker is to retire, it is the worker no more: who makes a request from now on
 * finds that it is gone, and starts another.
 */
List *
instaid_requests(bool retire)
{
	HASH_SEQ_STATUS scan;
	TicketBuffer *buffer;
	List	   *tickets = NIL;

	LWLockAcquire(shared->lock, retire ? LW_EXCLUSIVE : LW_SHARED);
	hash_seq_init(&scan, buffers);
	while ((buffer = hash_seq_search(&scan)) != NULL)
	{
		if (buffer->key.database == MyDatabaseId && buffer->requested)
			tickets = lappend_oid(tickets, buffer->key.ticket);
	}
	if (retire && tickets == NIL)
		free_slot();
	LWLockRelease(shared->lock);
	return tickets;
}

/*
 * What is wanted of a ticket.  The length is by Leaf's rule: twice that of the
 * last segment if that lasted for less than instaid.segment_duration, half of it
 * if for more than twice that; from the step to a million.
 */
SegmentRequest
instaid_begin_refill(Oid ticket, const char *name, int64 step)
{
	TicketBuffer *buffer;
	int64		most = Max(MAX_SEGMENT / step, 1);
	SegmentRequest request = {.ticket = ticket,.count = step};

	strlcpy(request.name, name, NAMEDATALEN);
	request.started = GetCurrentTimestamp();

	LWLockAcquire(shared->lock, LW_SHARED);
	buffer = lookup(ticket);
	if (buffer != NULL)
	{
		LWLockAcquire(&buffer->lock, LW_EXCLUSIVE);
		if (buffer->lasted >= 0 && buffer->lasted < instaid_segment_duration)
			buffer->blocks *= 2;
		else if (buffer->lasted >= 2 * (int64) instaid_segment_duration)
			buffer->blocks /= 2;
		buffer->blocks = Max(Min(buffer->blocks, most), 1);
		/* a segment tells this once, also if the refill fails */
		buffer->lasted = -1;
		request.count = buffer->blocks * step;
		request.turn = buffer->turn;
		request.stripes = buffer->stripes;
		request.generation = buffer->generation;
		LWLockRelease(&buffer->lock);
	}
	LWLockRelease(shared->lock);
	return request;
}

/* An attempt, or a part of one, was in vain.  The caller has locked the buffer. */
static void
note_problem(TicketBuffer *buffer, const char *problem)
{
	buffer->failures++;
	buffer->failed_at = GetCurrentTimestamp();
	strlcpy(buffer->problem, problem,
			1 + pg_mbcliplen(problem, strlen(problem), PROBLEM_LENGTH - 1));
}

/*
 * A segment of count values, which were taken as requested, is there.  There may
 * have been a problem, with one of several servers.
 */
void
instaid_publish(const SegmentRequest *request, const TicketBlock *block, int64 count,
				const char *problem)
{
	TicketBuffer *buffer;
	bool		mended = false;

	LWLockAcquire(shared->lock, LW_SHARED);
	buffer = lookup(request->ticket);
	if (buffer != NULL)
	{
		TimestampTz now = GetCurrentTimestamp();

		LWLockAcquire(&buffer->lock, LW_EXCLUSIVE);
		/* somebody may have set the sequence meanwhile */
		if (request->generation == buffer->generation)
		{
			Segment    *other = &buffer->segments[1 - buffer->current];

			Assert(other->left == 0);
			other->next = block->first;
			other->increment = block->increment;
			other->left = other->size = count;
			buffer->empty_since = 0;
		}
		mended = buffer->failures_in_a_row > 0;
		buffer->failures_in_a_row = 0;
		buffer->retry_at = 0;
		buffer->turn = request->turn;
		buffer->requested = false;
		buffer->refills++;
		buffer->refilled_at = now;
		buffer->refill_took = now - request->started;
		if (problem)
			note_problem(buffer, problem);
		LWLockRelease(&buffer->lock);
		ConditionVariableBroadcast(&buffer->refilled);
	}
	LWLockRelease(shared->lock);
	if (mended)
		ereport(LOG, (errmsg("ticket \"%s\" gets segments again", request->name)));
	if (problem)
		ereport(WARNING,
				(errmsg("ticket \"%s\" gets no segment from one of its servers", request->name),
				 errdetail_internal("%s", problem),
				 errhint("It stays with the one that gave it this segment, as long as that does.")));
}

/* None could be had: say so the first time, and let it rest. */
void
instaid_refill_failed(const SegmentRequest *request, const char *problem)
{
	TicketBuffer *buffer;
	bool		first = false;

	LWLockAcquire(shared->lock, LW_SHARED);
	buffer = lookup(request->ticket);
	if (buffer != NULL)
	{
		int64		backoff;

		LWLockAcquire(&buffer->lock, LW_EXCLUSIVE);
		first = buffer->failures_in_a_row == 0;
		backoff = Min((int64) FIRST_BACKOFF << Min(buffer->failures_in_a_row, 16), LAST_BACKOFF);
		buffer->failures_in_a_row++;
		note_problem(buffer, problem);
		/* a segment may have been too long for a slow server */
		buffer->blocks = Max(buffer->blocks / 2, 1);
		buffer->retry_at = TimestampTzPlusMilliseconds(buffer->failed_at, backoff);
		buffer->requested = false;
		LWLockRelease(&buffer->lock);
		ConditionVariableBroadcast(&buffer->refilled);
	}
	LWLockRelease(shared->lock);
	if (first)
		ereport(WARNING,
				(errmsg("ticket \"%s\" gets no segment", request->name),
				 errdetail_internal("%s", problem),
				 errhint("It is tried again when values are wanted, after %d ms at first, %d ms at most; instaid.segments shows it.",
						 FIRST_BACKOFF, LAST_BACKOFF)));
}

/* Keep what was learnt of the sources of a ticket. */
void
instaid_remember_stripes(const SegmentRequest *request)
{
	TicketBuffer *buffer;

	LWLockAcquire(shared->lock, LW_SHARED);
	buffer = lookup(request->ticket);
	if (buffer != NULL)
	{
		LWLockAcquire(&buffer->lock, LW_EXCLUSIVE);
		buffer->stripes = request->stripes;
		LWLockRelease(&buffer->lock);
	}
	LWLockRelease(shared->lock);
}

/* A ticket is gone: no session has it locked. */
void
instaid_forget_buffer(Oid ticket)
{
	BufferKey	key = {MyDatabaseId, ticket};

	LWLockAcquire(shared->lock, LW_EXCLUSIVE);
	hash_search(buffers, &key, HASH_REMOVE, NULL);
	LWLockRelease(shared->lock);
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
		bool		overlap = false;

		if (pg_class_aclcheck_ext(buffer->key.ticket, GetUserId(),
								  ACL_SELECT | ACL_USAGE, &missing) != ACLCHECK_OK)
			continue;
		values[column++] = ObjectIdGetDatum(buffer->key.ticket);
		values[column++] = Int64GetDatum(buffer->blocks);
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
