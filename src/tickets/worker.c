/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The background worker that refills the tickets of a database.
 *
 * Sessions launch it (launch.c).  It ends when no segment has been requested for
 * a while, to keep out of the way of DROP DATABASE.  While a request fails, the
 * worker stays and tries again, but still makes way for DROP DATABASE.
 *
 * A sequence that is locked is tried again later, and several leases from other
 * servers can be under way at once.  Only a wait for a synchronous standby or for a
 * name server delays other tickets.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "tickets/launch.h"
#include "tickets/monotonic.h"
#include "tickets/segments.h"
#include "tickets/source.h"
#include "tickets/tickets.h"

/* how long the worker stays when there is nothing to do, in ms */
#define IDLE_TIME		1000
/* how soon a sequence that was locked is tried again, in ms */
#define LOCKED_RETRY_INTERVAL	10

PGDLLEXPORT void instaid_refill_worker(Datum main_arg);

/* A segment that is being leased */
typedef struct Refill
{
	SegmentRequest request;
	Lease	   *lease;
} Refill;

/* leases that are under way */
static List *refills = NIL;

static bool
is_leasing(Oid ticket)
{
	ListCell   *lc;

	foreach(lc, refills)
	{
		if (((Refill *) lfirst(lc))->request.ticket == ticket)
			return true;
	}
	return false;
}

/* Begin to lease a segment for a ticket.  Returns false if it has no source. */
static bool
begin_lease(const SegmentRequest *request, int64 last_of_type)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "instaid lease",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext saved = MemoryContextSwitchTo(context);
	LeaseServers servers;
	Refill	   *refill;

	if (!source_find_servers(request->ticket, &servers))
	{
		MemoryContextSwitchTo(saved);
		return false;
	}
	refill = palloc(sizeof(Refill));
	refill->request = *request;
	refill->lease = lease_start(&servers, request->name, request->count, last_of_type,
								request->turn, &request->stripes);

	/* it outlives the transaction */
	MemoryContextSetParent(context, TopMemoryContext);
	MemoryContextSwitchTo(TopMemoryContext);
	refills = lappend(refills, refill);
	MemoryContextSwitchTo(saved);
	return true;
}

/*
 * Refill a ticket from its sequence, or begin to lease a segment from its source.
 * Returns false if the sequence is locked.
 */
static bool
refill_ticket(Oid ticket)
{
	MemoryContext saved = CurrentMemoryContext;
	HeapTuple	tuple;
	FormData_pg_sequence options;
	SegmentRequest request;
	TicketBlock block = {0};
	volatile int64 count = 0;
	ErrorData  *volatile error = NULL;

	StartTransactionCommand();
	if (!ConditionalLockRelationOid(ticket, RowExclusiveLock))
	{
		CommitTransactionCommand();
		return false;
	}
	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(ticket));
	if (!HeapTupleIsValid(tuple))
	{
		segments_forget_ticket(ticket);
		CommitTransactionCommand();
		return true;
	}
	options = *(Form_pg_sequence) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	if (!segments_begin_refill(ticket, get_rel_name(ticket), options.seqcache, &request))
	{
		CommitTransactionCommand();
		return true;
	}

	PG_TRY();
	{
		if (begin_lease(&request, tickets_last_of_type(options.seqtypid)))
			 /* the lease goes on in wait_for_work() */ ;
		else if (source_exists(ticket, &options))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("ticket \"%s\" has no source any more, as its security label is gone", request.name),
					 errhint("SECURITY LABEL FOR instaid ON SEQUENCE ... IS 'server, ...' sets it.")));
		else
			count = tickets_take_values(ticket, 1, request.count, &block);
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(saved);
		error = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(saved);

	if (error != NULL)
		segments_fail_refill(&request, error->detail ?
							 psprintf("%s: %s", error->message, error->detail) : error->message,
							 error->sqlerrcode != ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED);
	else if (count > 0)
	{
		request.buffer_generation = block.buffer_generation;
		segments_finish_refill(&request, &block, count, NULL);
	}
	return true;
}

/* Advance a lease whose socket has these events, and end it if it is over. */
static void
advance(Refill *refill, uint32 events)
{
	Lease	   *lease = refill->lease;
	LeaseState	state = lease_advance(lease, events);

	if (state == LEASE_PENDING)
		return;
	refill->request.turn = lease->turn;
	refill->request.stripes = lease->stripes;
	if (state == LEASE_DONE)
		segments_finish_refill(&refill->request, &lease->block, lease->count,
							   lease->failure.len > 0 ? lease->failure.data : NULL);
	else
		segments_fail_refill(&refill->request, lease->failure.data, true);
	segments_remember_stripes(&refill->request);
	refills = list_delete_ptr(refills, refill);
	lease_end(lease);
}

/*
 * Wait for the latch, for a lease, or for some time, in ms, and advance the leases.
 * Returns true if the latch was set.
 */
static bool
wait_for_work(long timeout)
{
	WaitEventSet *set;
	WaitEvent  *events;
	int			count;
	bool		latch_set = false;
	ListCell   *lc;

	/* leases that could not even connect have no socket to wait for */
	foreach(lc, list_copy(refills))
	{
		if (PQstatus(((Refill *) lfirst(lc))->lease->conn) == CONNECTION_BAD)
			advance(lfirst(lc), 0);
	}

	count = list_length(refills) + 2;
	set = CreateWaitEventSet(NULL, count);
	events = palloc(count * sizeof(WaitEvent));
	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	foreach(lc, refills)
	{
		Refill	   *refill = lfirst(lc);
		Lease	   *lease = refill->lease;

		timeout = Min(timeout, lease_time_left(lease));
		AddWaitEventToSet(set, lease->events, PQsocket(lease->conn), NULL, refill);
	}
	count = WaitEventSetWait(set, timeout, events, count, PG_WAIT_EXTENSION);
	FreeWaitEventSet(set);

	for (int i = 0; i < count; i++)
	{
		if (events[i].events & WL_LATCH_SET)
			latch_set = true;
		else
			advance(events[i].user_data, events[i].events);
	}
	/* give up servers that have taken too long */
	foreach(lc, list_copy(refills))
		advance(lfirst(lc), 0);
	return latch_set;
}

/*
 * Is a session waiting until nobody uses this database, to drop, rename or copy
 * it?  That session has locked it, and no new session can connect to it.
 */
static bool
is_database_wanted(void)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
	if (LockAcquire(&tag, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, RowExclusiveLock, true);
	return false;
}

static void
detach(void)
{
	if (launch_detach())
		segments_forget_requests();
}

static void
detach_at_exit(int code, Datum arg)
{
	(void) code;
	(void) arg;
	detach();
}

/* launch.c starts this by its name. */
void
instaid_refill_worker(Datum main_arg)
{
	MemoryContext context;
	int64		busy_at;

	pqsignal(SIGTERM, die);
	/* if a wait for a standby were cancelled, a segment would be skipped */
	pqsignal(SIGINT, PG_SIG_IGN);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	/* a database that refuses new connections may have old ones */
	BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(main_arg), InvalidOid,
											  BGWORKER_BYPASS_ALLOWCONN);
	if (!launch_attach())
		return;
	before_shmem_exit(detach_at_exit, (Datum) 0);

	context = AllocSetContextCreate(TopMemoryContext, "instaid segments", ALLOCSET_DEFAULT_SIZES);
	pgstat_report_activity(STATE_IDLE, NULL);
	busy_at = monotonic_time();
	for (;;)
	{
		List	   *requests;
		ListCell   *lc;
		bool		locked = false;
		bool		idle;
		int64		next_due;

		MemoryContextReset(context);
		MemoryContextSwitchTo(context);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}

		idle = monotonic_time() - busy_at > IDLE_TIME * 1000;
		requests = segments_requested(&next_due);
		if (idle && requests == NIL && next_due < 0)
		{
			/*
			 * From now on, a session that requests a segment launches another
			 * worker.  Look once more for requests from before.
			 */
			launch_detach();
			requests = segments_requested(&next_due);
			if ((requests == NIL && next_due < 0) || !launch_attach())
				return;
		}
		if (idle && is_database_wanted())
		{
			/* if a session needs a worker, it launches another one */
			detach();
			return;
		}
		foreach(lc, requests)
		{
			if (is_leasing(lfirst_oid(lc)))
				continue;
			/* the last transaction's end has switched to another context */
			MemoryContextSwitchTo(context);
			if (refill_ticket(lfirst_oid(lc)))
				SetLatch(MyLatch);	/* waiting for a standby resets it */
			else
				locked = true;
			busy_at = monotonic_time();
		}
		MemoryContextSwitchTo(context);
		pgstat_report_stat(true);

		if (wait_for_work(locked ? LOCKED_RETRY_INTERVAL :
						  next_due >= 0 ? Min(next_due, IDLE_TIME + 1) : IDLE_TIME + 1))
			ResetLatch(MyLatch);
	}
}
