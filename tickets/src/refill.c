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
#include "postmaster/bgworker.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "common.h"
#include "compat.h"
#include "sequence.h"
#include "sources.h"

/* the most values of a segment, unless one step is more */
#define MAX_SEGMENT		1000000

/* if a worker has not begun after this time, in ms, it counts as failed */
#define START_TIMEOUT	5000

PGDLLEXPORT void instaid_tickets_refill_worker(Datum main_arg);

/* the name of the ticket, in the worker */
static const char *worker_ticket = "?";

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
			(errmsg("could not refill ticket %s", name),
			 errdetail_internal("%s", failure),
			 errhint("Calls ask again, after %d ms at first and %d ms at most; instaid_tickets.segments shows failures.",
					 FIRST_BACKOFF, LAST_BACKOFF)));
}

/* Begin a refill if it is time for it.  The caller then starts a worker. */
bool
refill_begin(Slot *slot, int64 now, Refill *refill)
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

/* Returns false if max_worker_processes are running already. */
static bool
register_worker(const Refill *refill)
{
	BackgroundWorker worker = {
		.bgw_name = "instaid_tickets segments",
		.bgw_type = "instaid_tickets segments",
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION |
		BGWORKER_INTERRUPTIBLE,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "instaid_tickets",
		.bgw_function_name = "instaid_tickets_refill_worker"
	};

	StaticAssertStmt(sizeof(Refill) <= BGW_EXTRALEN, "a request fits");
	memcpy(worker.bgw_extra, refill, sizeof(Refill));
	return RegisterDynamicBackgroundWorker(&worker, NULL);
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
		register_worker(refill))
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
 * setting instaid_tickets.segment_target_duration says.
 */
static bool
plan_refill(const Refill *refill, const Source *source, int64 *wanted, int *turn)
{
	Slot	   *slot = lock_refilled(refill);

	if (slot == NULL)
		return false;
	/* other servers: what the old ones gave is not used any more */
	if (slot->source != 0 &&
		(slot->source != source->hash || slot->sequence != source->sequence_hash))
		slot->segments[0].left = slot->segments[1].left = 0;
	slot->source = source->hash;
	/* another sequence: what was had says nothing about its values */
	if (slot->sequence != source->sequence_hash)
		memset(slot->marks, 0, sizeof(slot->marks));
	slot->sequence = source->sequence_hash;

	if (slot->lasted >= 0 && slot->lasted < segment_target_duration)
		slot->steps *= 2;
	else if (slot->lasted >= 2 * (int64) segment_target_duration)
		slot->steps /= 2;
	/* how long a segment lasted counts once, even if the refill fails */
	slot->lasted = -1;
	slot->steps = Max(Min(slot->steps, MAX_SEGMENT / source->step), 1);
	*wanted = slot->segment_size = slot->steps * source->step;
	*turn = slot->turn % source->count;
	slot->deadline = monotonic_time() +
		(START_TIMEOUT + source->count * (int64) source->timeout) * 1000;
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
	const char *host = source->host;
	Segment    *spare;
	bool		recovered;

	if (slot == NULL)
		return NULL;
	if (!lease_raises_mark(lease, slot->marks))
	{
		LWLockRelease(&slot->lock);
		return psprintf("server \"%s\", host \"%s\": it leased %lld to %lld by %lld, and this server has had such values: it counts as another authority does, or was set back",
						source->server, host, (long long) lease->first, (long long) lease->last,
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
	namestrcpy(&slot->host, host);
	LWLockRelease(&slot->lock);
	ConditionVariableBroadcast(&slot->changed);

	if (recovered)
		ereport(LOG, (errmsg("ticket %s is refilled again, from host \"%s\"",
							 worker_ticket, host)));
	if (failures[0] != '\0')
		ereport(WARNING,
				(errmsg("could not refill ticket %s from one of its hosts", worker_ticket),
				 errdetail_internal("%s", failures),
				 errhint("The next segments come from host \"%s\", as long as it answers.",
						 host)));
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
		refill_log_failure(WARNING, worker_ticket, failure);
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
instaid_tickets_refill_worker(Datum main_arg pg_attribute_unused())
{
	static Refill refill;
	Source		source;
	int64		began = monotonic_time();
	int64		wanted;
	int			turn;
	bool		found;
	StringInfoData failures;

	memcpy(&refill, MyBgworkerEntry->bgw_extra, sizeof(refill));
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	MemoryContextSwitchTo(TopMemoryContext);
	before_shmem_exit(worker_exit, PointerGetDatum(&refill));
	/* a database that refuses new connections may have old ones */
	BackgroundWorkerInitializeConnectionByOid(refill.database, InvalidOid,
											  BGWORKER_BYPASS_ALLOWCONN);
	pgstat_report_activity(STATE_RUNNING, "refill of a ticket");

	StartTransactionCommand();
	MemoryContextSwitchTo(TopMemoryContext);
	worker_ticket = sequence_qualified_name(refill.ticket);
	found = source_find(refill.ticket, &source);
	CommitTransactionCommand();
	MemoryContextSwitchTo(TopMemoryContext);
	if (!found)
		give_up(&refill, "the ticket was dropped, or its transaction is not committed");
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
