/*
 * Refills of tickets that have a source.
 *
 * When a tenth of a segment is used, a session starts a background worker, which leases
 * the other one, stores it in the slot and ends.  The state of the slot tells of this
 * worker:
 *
 *	state		becomes		when
 *	IDLE		REFILLING	a call needs a segment, and starts a worker
 *	REFILLING	IDLE		the worker has stored a segment
 *				FAILED		no authority gave one, or the worker has ended, or a
 *							call finds that it is past its deadline
 *	FAILED		REFILLING	a call needs a segment, after a pause
 *
 * Each refill has a number.  A worker whose number is not the slot's any more is late, and what
 * it has leased is left out.
 */
#include "postgres.h"

#include "access/xact.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "common.h"
#include "sources/sources.h"

/* the most values of a segment, unless one step is more */
#define MAX_SEGMENT		1000000

/* if a worker has not begun after this time, in ms, it counts as failed */
#define START_TIMEOUT	5000

PGDLLEXPORT void instaid_refill_worker(Datum main_arg);

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
bool
refill_fail(Slot *slot, const char *failure)
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

void
refill_log_failure(int level, const char *name, const char *failure)
{
	ereport(level,
			(errmsg("could not refill ticket \"%s\"", name),
			 errdetail_internal("%s", failure),
			 errhint("Calls ask again, after %d ms at first and %d ms at most; instaid.segments shows failures.",
					 FIRST_BACKOFF, LAST_BACKOFF)));
}

/* Begin a refill if it is time for it.  The caller then starts a worker. */
bool
refill_begin(Slot *slot, int64 now, int target_duration, Refill *refill)
{
	Segment    *segment = &slot->segments[slot->current];

	if (slot->state == REFILLING || slot->retry_at > now ||
		slot->segments[1 - slot->current].left > 0 ||
		(segment->size - segment->left) < segment->size / 10.0)
		return false;
	slot->state = REFILLING;
	slot->deadline = now + START_TIMEOUT * INT64CONST(1000);
	refill->place = slot - slot_table->slots;
	refill->database = slot->database;
	refill->ticket = slot->ticket;
	refill->number = ++slot->refill;
	refill->name = slot->name;
	refill->target_duration = target_duration;
	return true;
}

/* Lock the slot of a refill.  Returns NULL if the refill is not wanted any more. */
static Slot *
lock_refilled(const Refill *refill)
{
	Slot	   *slot = &slot_table->slots[refill->place];

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
bool
refill_start(const Refill *refill)
{
	int			running = 0;
	Slot	   *slot;

	for (int i = 0; i < SLOT_COUNT; i++)
		running += slot_table->slots[i].state == REFILLING &&
			slot_table->slots[i].deadline > monotonic_time();
	if (running <= Max(max_worker_processes / 2, 1) &&
		background_start("instaid_sources", "instaid_refill_worker", "instaid segments", refill, sizeof(Refill),
						 NULL))
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

	if (slot->lasted >= 0 && slot->lasted < refill->target_duration)
		slot->steps *= 2;
	else if (slot->lasted >= 2 * (int64) refill->target_duration)
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
	bool		is_first = slot != NULL && refill_fail(slot, failure);

	if (slot == NULL)
		return;
	LWLockRelease(&slot->lock);
	ConditionVariableBroadcast(&slot->changed);
	if (is_first)
		refill_log_failure(WARNING, NameStr(refill->name), failure);
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
instaid_refill_worker(Datum main_arg pg_attribute_unused())
{
	static Refill refill;
	Source		source;
	int64		began = monotonic_time();
	int64		wanted;
	int			turn;
	bool		found;
	StringInfoData failures;

	background_begin(&refill, sizeof(refill));
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
