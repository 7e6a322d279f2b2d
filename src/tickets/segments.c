/*
 * Segments of tickets that have a source, in shared memory, for all sessions.
 *
 * A ticket in use has a slot, with room for two segments.  When a tenth of one is
 * used, a session starts a background worker, which leases the other one, stores it
 * in the slot and ends.  The state of the slot tells of this worker:
 *
 *	state		becomes		when
 *	IDLE		REFILLING	a call needs a segment, and starts a worker
 *	REFILLING	IDLE		the worker has stored a segment
 *				FAILED		no authority gave one, or the worker has ended, or a
 *							call finds that it is past its deadline
 *	FAILED		REFILLING	a call needs a segment, after a pause
 *
 * Each refill has a number.  A worker whose number is not the slot's any more is late, and what
 * it has leased is left out.  Segments are not on disk, because a backup or a copy of a database
 * would have the same values: they are lost at a restart.
 *
 * Each slot has a lock, which protects its content.  Another ticket gets the slot under this lock
 * and that of the table.  Thus a slot keeps its ticket for as long as a session holds one of the
 * two.  A session that needs both takes that of the table first.  If another one took them in the
 * other order, the two could wait for each other forever.
 */
#include "postgres.h"

#include <limits.h>

#include "access/xact.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/wait_event.h"

#include "sequence.h"
#include "tickets/tickets.h"

/* how many tickets with a source can be in use at once */
#define SLOT_COUNT		1000
/* how long a slot must be unused, in ms, before another ticket can have it */
#define MIN_IDLE		10000

/* the most values of a segment, unless one step is more */
#define MAX_SEGMENT		1000000

/* how long calls do not ask again after a failure, in ms: first, and at most */
#define FIRST_BACKOFF	100
#define LAST_BACKOFF	5000
/* if a worker has not begun after this time, in ms, it counts as failed */
#define START_TIMEOUT	5000
/* how often a call that waits looks at its slot, or for a free worker, in ms */
#define LOOK_INTERVAL	1000
#define WORKER_RETRY_INTERVAL	100

#define FAILURE_LENGTH	512

PG_FUNCTION_INFO_V1(instaid_segment_state);
PGDLLEXPORT void instaid_refill_worker(Datum main_arg);

typedef struct Segment
{
	int64		next;			/* the value that comes next, if any is left */
	int64		increment;
	int64		left;
	int64		size;
} Segment;

typedef enum SlotState
{
	IDLE,
	REFILLING,
	FAILED
} SlotState;

/* Times are monotonic, except those that the view shows. */
typedef struct Slot
{
	/* whose slot it is; changed under both locks */
	Oid			database;
	Oid			ticket;			/* InvalidOid: free */

	LWLock		lock;			/* protects what follows */
	ConditionVariable changed;	/* of the state */
	int64		last_used;
	NameData	name;			/* by which authorities were asked */
	uint32		source;			/* hash of the authorities, 0 before the first */

	Segment		segments[2];
	int			current;		/* the one that values are taken from */
	int64		current_since;

	SlotState	state;
	uint64		refill;			/* number of the last one */
	int64		deadline;		/* of REFILLING */
	int64		retry_at;		/* no refill starts before */
	int			failures_in_a_row;

	int64		steps;			/* how many steps long the next segment is */
	int64		lasted;			/* ms that the last one did, or -1 */
	int			turn;			/* which authority is asked first */
	Mark		marks[MARK_COUNT];

	/* for the view */
	int64		segment_size;
	NameData	server;			/* that gave the last segment */
	int64		refills;
	TimestampTz refilled_at;
	int64		refill_duration;	/* microseconds */
	int64		waits;
	int64		failures;
	TimestampTz failed_at;
	char		failure[FAILURE_LENGTH];
} Slot;

typedef struct SlotTable
{
	LWLock	   *lock;			/* protects whose the slots are */
	Slot		slots[SLOT_COUNT];
} SlotTable;

/* What a worker is to do */
typedef struct Refill
{
	int			place;			/* of the slot */
	Oid			database;
	Oid			ticket;
	uint64		number;
	NameData	name;
} Refill;

static int	segment_target_duration;
static int	segment_timeout;

static SlotTable *table = NULL;
static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(sizeof(SlotTable));
	RequestNamedLWLockTranche("instaid", 1);
}

static void
startup_shmem(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	table = ShmemInitStruct("instaid", sizeof(SlotTable), &found);
	if (!found)
	{
		memset(table, 0, sizeof(SlotTable));
		table->lock = &GetNamedLWLockTranche("instaid")->lock;
		for (Slot *slot = table->slots; slot < table->slots + SLOT_COUNT; slot++)
		{
			LWLockInitialize(&slot->lock, table->lock->tranche);
			ConditionVariableInit(&slot->changed);
			slot->last_used = -MIN_IDLE * INT64CONST(1000);
		}
	}
	LWLockRelease(AddinShmemInitLock);
}

/* Begin anew in a slot.  A worker that was started before is late. */
static void
reset_slot(Slot *slot, const char *name, int64 now)
{
	uint64		refill = slot->refill;

	memset((char *) slot + offsetof(Slot, last_used), 0, sizeof(Slot) - offsetof(Slot, last_used));
	slot->refill = refill + 1;
	slot->last_used = now;
	namestrcpy(&slot->name, name);
	slot->steps = 1;
	slot->lasted = -1;
}

static bool
is_slot_of(const Slot *slot, Oid ticket)
{
	return slot->ticket == ticket && slot->database == MyDatabaseId;
}

/*
 * The slot of a ticket, locked: the one that it has, or else the one that was idle for longest.
 * NULL if none was idle.  The caller remembers its place, which is -1 at first.
 *
 * The search does not take the locks of the slots.  It is right about whose a slot is, but a slot
 * that seems idle can come into use.  Therefore the lock of the slot is taken, and the slot is
 * looked at again, before another ticket gets it.
 */
static Slot *
lock_slot(Oid ticket, const char *name, int *place)
{
	for (;;)
	{
		int64		now = monotonic_time();
		Slot	   *found = NULL;

		if (*place >= 0)
		{
			LWLockAcquire(&table->slots[*place].lock, LW_EXCLUSIVE);
			if (is_slot_of(&table->slots[*place], ticket))
				return &table->slots[*place];
			LWLockRelease(&table->slots[*place].lock);
		}

		LWLockAcquire(table->lock, LW_EXCLUSIVE);
		for (Slot *slot = table->slots; slot < table->slots + SLOT_COUNT; slot++)
		{
			if (is_slot_of(slot, ticket))
			{
				found = slot;
				break;
			}
			if ((found == NULL || slot->last_used < found->last_used) &&
				now - slot->last_used >= MIN_IDLE * 1000 &&
				(slot->state != REFILLING || now >= slot->deadline))
				found = slot;
		}
		*place = found == NULL ? -1 : found - table->slots;

		/* in any case, the next turn locks what is found, or searches again */
		if (found != NULL && !is_slot_of(found, ticket))
		{
			LWLockAcquire(&found->lock, LW_EXCLUSIVE);
			if (now - found->last_used >= MIN_IDLE * 1000)
			{
				found->database = MyDatabaseId;
				found->ticket = ticket;
				reset_slot(found, name, now);
			}
			LWLockRelease(&found->lock);
		}
		LWLockRelease(table->lock);
		if (found == NULL)
			return NULL;
	}
}

/* Take a value from a slot. */
static bool
take_value(Slot *slot, int64 now, int64 *value)
{
	Segment    *segment = &slot->segments[slot->current];

	if (segment->left == 0)
	{
		if (slot->segments[1 - slot->current].left == 0)
			return false;
		slot->current = 1 - slot->current;
		slot->current_since = now;
		segment = &slot->segments[slot->current];
	}
	*value = segment->next;
	segment->left--;
	if (segment->left > 0)
		segment->next += segment->increment;
	else
		slot->lasted = (now - slot->current_since) / 1000;
	return true;
}

/* Note why a refill, or a part of one, failed. */
static void
note_failure(Slot *slot, const char *failure)
{
	slot->failures++;
	slot->failed_at = GetCurrentTimestamp();
	strlcpy(slot->failure, failure,
			1 + pg_mbcliplen(failure, strlen(failure), FAILURE_LENGTH - 1));
}

/* A refill has failed.  Returns true for the first of several in a row, which is logged. */
static bool
fail_refill(Slot *slot, const char *failure)
{
	int64		backoff = Min((int64) FIRST_BACKOFF << Min(slot->failures_in_a_row, 16), LAST_BACKOFF);

	note_failure(slot, failure);
	slot->state = FAILED;
	slot->refill++;				/* if its worker still comes, it is late */
	slot->retry_at = monotonic_time() + backoff * 1000;
	/* the segment may have been too long for what is left there */
	slot->steps = Max(slot->steps / 2, 1);
	return slot->failures_in_a_row++ == 0;
}

static void
log_failure(int level, const char *name, const char *failure)
{
	ereport(level,
			(errmsg("could not refill ticket \"%s\"", name),
			 errdetail_internal("%s", failure),
			 errhint("Calls ask again, after %d ms at first and %d ms at most; instaid.segments shows failures.",
					 FIRST_BACKOFF, LAST_BACKOFF)));
}

/* Begin a refill if it is time for it.  The caller then starts a worker. */
static bool
begin_refill(Slot *slot, int64 now, Refill *refill)
{
	Segment    *segment = &slot->segments[slot->current];

	if (slot->state == REFILLING || slot->retry_at > now ||
		slot->segments[1 - slot->current].left > 0 ||
		(segment->size - segment->left) < segment->size / 10.0)
		return false;
	slot->state = REFILLING;
	slot->deadline = now + START_TIMEOUT * INT64CONST(1000);
	refill->place = slot - table->slots;
	refill->database = slot->database;
	refill->ticket = slot->ticket;
	refill->number = ++slot->refill;
	refill->name = slot->name;
	return true;
}

/* Lock the slot of a refill.  Returns NULL if the refill is not wanted any more. */
static Slot *
lock_refilled(const Refill *refill)
{
	Slot	   *slot = &table->slots[refill->place];

	LWLockAcquire(&slot->lock, LW_EXCLUSIVE);
	if (slot->state == REFILLING && slot->refill == refill->number)
		return slot;
	LWLockRelease(&slot->lock);
	return NULL;
}

/*
 * Start the worker of a refill.  Returns false if none is free: servers that hang may take
 * half of the workers, and not all.
 */
static bool
start_worker(const Refill *refill)
{
	int			running = 0;
	Slot	   *slot;

	for (int i = 0; i < SLOT_COUNT; i++)
		running += table->slots[i].state == REFILLING &&
			table->slots[i].deadline > monotonic_time();
	if (running <= Max(max_worker_processes / 2, 1) &&
		background_start("instaid_refill_worker", "instaid segments", refill, sizeof(Refill),
						 (Datum) 0, NULL))
		return true;
	slot = lock_refilled(refill);
	if (slot != NULL)
	{
		/* not FAILED, since calls do better to wait */
		note_failure(slot, "no background worker is free; half of max_worker_processes can refill tickets");
		slot->state = IDLE;
		slot->retry_at = monotonic_time() + WORKER_RETRY_INTERVAL * INT64CONST(1000);
		LWLockRelease(&slot->lock);
	}
	return false;
}

/* The error for a ticket that has no value */
static void
empty_error(Oid ticket, const char *name, const Slot *copy, bool no_worker)
{
	const char *failure = source_may_see_failures(ticket) ? copy->failure :
		"<insufficient privilege>; its owner and members of pg_read_all_stats see it in instaid.segments";

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("ticket \"%s\" has no values left from its source", name),
			 no_worker ?
			 errdetail("No background worker was free within %d ms.", segment_timeout) :
			 copy->state == FAILED ?
			 errdetail("The last attempt, at %s, failed: %s",
					   timestamptz_to_str(copy->failed_at), failure) :
			 errdetail("The source has not answered within %d ms.", segment_timeout),
			 no_worker ? errhint("Increase max_worker_processes.") :
			 errhint("Call again: a source that failed is asked again within %d s.",
					 LAST_BACKOFF / 1000)));
}

/*
 * Take the next value of a ticket that has a source.  If there is none, wait for a segment, up
 * to instaid.segment_timeout.  The caller remembers the place: see lock_slot().
 */
int64
segments_take(Oid ticket, const char *name, int *place)
{
	static uint32 wait_event = 0;
	static const char *const overdue = "the background worker has not ended in time";
	int64		give_up_at = 0;
	int64		value = 0;
	bool		no_worker = false;

	if (table == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ticket \"%s\" has a source, and the library instaid is not preloaded", name),
				 errdetail("Values from a source are kept in shared memory, which a library gets when the server starts."),
				 errhint("Add instaid to shared_preload_libraries, and restart the server.")));
	if (wait_event == 0)
		wait_event = WaitEventExtensionNew("InstaidTicketSegment");

	for (;;)
	{
		int64		now = monotonic_time();
		Slot	   *slot = lock_slot(ticket, name, place);
		Slot		copy;
		Refill		refill;
		int64		left;
		bool		taken;
		bool		begins;
		bool		is_first_failure = false;

		if (slot == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("ticket \"%s\" has a source, and no room for its values is free", name),
					 errdetail("%d tickets with a source are in use.", SLOT_COUNT),
					 errhint("A ticket that is not used for %d s makes room.", MIN_IDLE / 1000)));
		slot->last_used = now;
		/* renamed: the values, and what was had, are those of the old name */
		if (strcmp(NameStr(slot->name), name) != 0)
			reset_slot(slot, name, now);
		taken = take_value(slot, now, &value);
		if (slot->state == REFILLING && now >= slot->deadline)
			is_first_failure = fail_refill(slot, overdue);
		begins = begin_refill(slot, now, &refill);
		if (!taken && give_up_at == 0)
		{
			give_up_at = now + segment_timeout * INT64CONST(1000);
			slot->waits++;
		}
		if (!taken)
			copy = *slot;
		LWLockRelease(&slot->lock);

		if (is_first_failure)
			log_failure(LOG_SERVER_ONLY, name, overdue);
		if (begins)
			no_worker = !start_worker(&refill);
		if (taken)
			break;
		left = (give_up_at - now) / 1000;
		if (left <= 0 || copy.state == FAILED)
			empty_error(ticket, name, &copy, no_worker);
		(void) ConditionVariableTimedSleep(&slot->changed,
										   Min(left, no_worker ? WORKER_RETRY_INTERVAL : LOOK_INTERVAL),
										   wait_event);
	}
	ConditionVariableCancelSleep();
	return value;
}

/*
 * Find out how many values a worker is to lease, and from which authority first.  Returns
 * false if the refill is not wanted any more.  The size follows Leaf's rule, as the
 * setting instaid.segment_target_duration says.
 */
static bool
plan_refill(const Refill *refill, const Source *source, int64 *wanted, int *turn)
{
	Slot	   *slot = lock_refilled(refill);
	int64		timeouts = START_TIMEOUT;

	if (slot == NULL)
		return false;
	/* other servers: what the old ones gave is not used any more */
	if (slot->source != 0 && slot->source != source->hash)
		slot->segments[0].left = slot->segments[1].left = 0;
	slot->source = source->hash;

	if (slot->lasted >= 0 && slot->lasted < segment_target_duration)
		slot->steps *= 2;
	else if (slot->lasted >= 2 * (int64) segment_target_duration)
		slot->steps /= 2;
	/* how long a segment lasted counts once, even if the refill fails */
	slot->lasted = -1;
	slot->steps = Max(Min(slot->steps, MAX_SEGMENT / source->step), 1);
	*wanted = slot->segment_size = slot->steps * source->step;
	*turn = slot->turn % source->count;
	for (int i = 0; i < source->count; i++)
		timeouts += source->authorities[i].timeout;
	slot->deadline = monotonic_time() + timeouts * 1000;
	LWLockRelease(&slot->lock);
	return true;
}

/*
 * Store what an authority has leased, unless it is not wanted any more.  Returns NULL, or
 * why the lease is refused.  Failures of other authorities are noted.
 */
static char *
store_lease(const Refill *refill, const Source *source, int turn, const Lease *lease,
			int64 began, const char *failures)
{
	Slot	   *slot = lock_refilled(refill);
	const char *server = source->authorities[turn].name;
	Segment    *spare;
	bool		recovered;

	if (slot == NULL)
		return NULL;
	if (!lease_raises_mark(lease, slot->marks))
	{
		LWLockRelease(&slot->lock);
		return psprintf("server \"%s\": it leased %lld to %lld by %lld, and this server has had such values: it counts as another authority does, or was set back",
						server, (long long) lease->first, (long long) lease->last,
						(long long) lease->increment);
	}
	spare = &slot->segments[1 - slot->current];
	spare->next = lease->first;
	spare->increment = lease->increment;
	spare->left = spare->size = lease->count;
	recovered = slot->failures_in_a_row > 0;
	slot->state = IDLE;
	slot->failures_in_a_row = 0;
	slot->retry_at = 0;
	slot->turn = turn;
	/* before the time of the refill: the last attempt did not fail */
	if (failures[0] != '\0')
		note_failure(slot, failures);
	slot->refills++;
	slot->refilled_at = GetCurrentTimestamp();
	slot->refill_duration = monotonic_time() - began;
	namestrcpy(&slot->server, server);
	LWLockRelease(&slot->lock);
	ConditionVariableBroadcast(&slot->changed);

	if (recovered)
		ereport(LOG, (errmsg("ticket \"%s\" is refilled again, from server \"%s\"",
							 source->ticket, server)));
	if (failures[0] != '\0')
		ereport(WARNING,
				(errmsg("could not refill ticket \"%s\" from one of its servers", source->ticket),
				 errdetail_internal("%s", failures),
				 errhint("The next segments come from server \"%s\", as long as it answers.",
						 server)));
	return NULL;
}

/* A refill has failed, unless it is not wanted any more. */
static void
give_up(const Refill *refill, const char *failure)
{
	Slot	   *slot = lock_refilled(refill);
	bool		is_first = slot != NULL && fail_refill(slot, failure);

	if (slot == NULL)
		return;
	LWLockRelease(&slot->lock);
	ConditionVariableBroadcast(&slot->changed);
	if (is_first)
		log_failure(WARNING, NameStr(refill->name), failure);
}

/* The worker ends.  If it has not finished, it was terminated, or had an error. */
static void
worker_exit(int code pg_attribute_unused(), Datum arg)
{
	give_up((Refill *) DatumGetPointer(arg),
			"the background worker was terminated, or had an error that the server's log shows");
}

/* The background worker asks authorities until one leases a segment, and ends. */
void
instaid_refill_worker(Datum main_arg)
{
	static Refill refill;
	Source		source;
	int64		began = monotonic_time();
	int64		wanted;
	int			turn;
	bool		found;
	StringInfoData failures;

	background_begin(&refill, sizeof(refill), main_arg);
	before_shmem_exit(worker_exit, PointerGetDatum(&refill));
	/* a database that refuses new connections may have old ones */
	BackgroundWorkerInitializeConnectionByOid(refill.database, InvalidOid,
											  BGWORKER_BYPASS_ALLOWCONN);
	pgstat_report_activity(STATE_RUNNING, "refill of a ticket");

	StartTransactionCommand();
	MemoryContextSwitchTo(TopMemoryContext);
	found = source_find(refill.ticket, &source);
	CommitTransactionCommand();
	MemoryContextSwitchTo(TopMemoryContext);
	if (!found || strcmp(source.ticket, NameStr(refill.name)) != 0)
		give_up(&refill, "the ticket was dropped or renamed, or its transaction is not committed");
	else if (plan_refill(&refill, &source, &wanted, &turn))
	{
		initStringInfo(&failures);
		for (int i = 0; i < source.count; i++, turn = (turn + 1) % source.count)
		{
			Lease		lease;
			char	   *failure = lease_values(&source, turn, wanted, &lease);

			if (failure == NULL)
				failure = store_lease(&refill, &source, turn, &lease, began, failures.data);
			if (failure == NULL)
				break;
			appendStringInfo(&failures, "%s%s", failures.len > 0 ? "; " : "", failure);
		}
		/* if there was no break, all have failed */
		give_up(&refill, failures.data);
	}
}

/* Is the library preloaded? */
bool
segments_exist(void)
{
	return table != NULL;
}

Datum
instaid_segment_state(PG_FUNCTION_ARGS)
{
	static const char *const states[] = {"idle", "refilling", "failed"};
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; table != NULL && i < SLOT_COUNT; i++)
	{
		Slot		slot;
		Segment    *used,
				   *spare;
		Datum		values[17];
		bool		nulls[17] = {false};

		/* the catalogs are not to be read under the lock */
		LWLockAcquire(&table->slots[i].lock, LW_SHARED);
		slot = table->slots[i];
		LWLockRelease(&table->slots[i].lock);
		if (!OidIsValid(slot.ticket) || slot.database != MyDatabaseId ||
			!sequence_is_visible(slot.ticket, SOURCE_READ_RIGHTS))
			continue;
		used = &slot.segments[slot.current];
		spare = &slot.segments[1 - slot.current];
		values[0] = ObjectIdGetDatum(slot.ticket);
		values[1] = CStringGetTextDatum(states[slot.state]);
		values[2] = Int64GetDatum(used->next);
		values[3] = Int64GetDatum(used->next + (used->left - 1) * used->increment);
		values[4] = Int64GetDatum(used->left);
		values[5] = Int64GetDatum(spare->next);
		values[6] = Int64GetDatum(spare->next + (spare->left - 1) * spare->increment);
		values[7] = Int64GetDatum(spare->left);
		values[8] = Int64GetDatum(slot.waits);
		values[9] = Int64GetDatum(slot.refills);
		values[10] = Int64GetDatum(slot.segment_size);
		values[11] = CStringGetTextDatum(NameStr(slot.server));
		values[12] = TimestampTzGetDatum(slot.refilled_at);
		values[13] = Int64GetDatum(slot.refill_duration);
		values[14] = Int64GetDatum(slot.failures);
		values[15] = TimestampTzGetDatum(slot.failed_at);
		values[16] = CStringGetTextDatum(source_may_see_failures(slot.ticket) ?
										 slot.failure : "<insufficient privilege>");
		nulls[2] = nulls[3] = used->left == 0;
		nulls[5] = nulls[6] = spare->left == 0;
		nulls[10] = nulls[11] = nulls[12] = nulls[13] = slot.refills == 0;
		nulls[15] = nulls[16] = slot.failures == 0;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

void
segments_init(void)
{
	/* not a session's, since the worker uses it */
	DefineCustomIntVariable("instaid.segment_target_duration",
							"Sets how long a segment of a ticket with a source should last.",
							"If a segment lasts for less time, the next one has twice its size; if it lasts for more than twice the time, half its size.",
							&segment_target_duration,
							15 * 60 * 1000, 1, INT_MAX, PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("instaid.segment_timeout",
							"Sets how long a call waits for a segment of a ticket with a source when none is left.",
							"After that, the call fails.",
							&segment_timeout,
							5000, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	if (!process_shared_preload_libraries_in_progress)
		return;

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
}
