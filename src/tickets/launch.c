/*-------------------------------------------------------------------------
 *
 * launch.c
 *	  The background workers that refill tickets, one for each database.
 *
 * A session that wants a segment wakes the worker of its database, or launches
 * one.  A slot in shared memory says which database has a worker.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "compat.h"
#include "tickets/launch.h"
#include "tickets/monotonic.h"

typedef struct WorkerSlot
{
	Oid			database;		/* InvalidOid: free */
	Latch	   *latch;			/* null until the worker has attached */
	int64		launched_at;	/* monotonic time */
} WorkerSlot;

typedef struct WorkerSlots
{
	LWLock	   *lock;
	int			count;
	WorkerSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} WorkerSlots;

static WorkerSlots *workers = NULL;

static Size
shmem_size(void)
{
	return add_size(offsetof(WorkerSlots, slots),
					mul_size(max_worker_processes, sizeof(WorkerSlot)));
}

void
launch_request_shmem(void)
{
	RequestAddinShmemSpace(shmem_size());
	RequestNamedLWLockTranche("instaid workers", 1);
}

/* The caller holds AddinShmemInitLock. */
void
launch_startup_shmem(void)
{
	bool		found;

	workers = ShmemInitStruct("instaid workers", shmem_size(), &found);
	if (found)
		return;
	memset(workers, 0, shmem_size());
	workers->lock = &GetNamedLWLockTranche("instaid workers")->lock;
	workers->count = max_worker_processes;
}

/* Has a worker been launched that may still attach to this slot? */
static bool
is_starting(const WorkerSlot *slot)
{
	return slot->latch == NULL && OidIsValid(slot->database) &&
		monotonic_time() < slot->launched_at + WORKER_START_TIMEOUT * 1000;
}

/* The slot of this database's worker, attached or starting, or NULL */
static WorkerSlot *
find_worker(void)
{
	for (WorkerSlot *slot = workers->slots; slot < workers->slots + workers->count; slot++)
	{
		if (slot->database == MyDatabaseId && (slot->latch != NULL || is_starting(slot)))
			return slot;
	}
	return NULL;
}

static WorkerSlot *
find_free_slot(void)
{
	for (WorkerSlot *slot = workers->slots; slot < workers->slots + workers->count; slot++)
	{
		if (slot->latch == NULL && !is_starting(slot))
			return slot;
	}
	return NULL;
}

/* Returns false if max_worker_processes are running already. */
static bool
register_worker(void)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION |
		BGWORKER_INTERRUPTIBLE;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "instaid", sizeof(worker.bgw_library_name));
	/* in worker.c */
	strlcpy(worker.bgw_function_name, "instaid_refill_worker", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "instaid segments", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "instaid segments", BGW_MAXLEN);
	worker.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId);
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

/*
 * Wake the worker of this database, or launch one if there is none.  Returns false
 * if no background worker is free.
 */
bool
launch_wake_worker(void)
{
	WorkerSlot *slot;

	LWLockAcquire(workers->lock, LW_EXCLUSIVE);
	slot = find_worker();
	if (slot == NULL)
	{
		slot = find_free_slot();
		if (slot != NULL && register_worker())
		{
			slot->database = MyDatabaseId;
			slot->launched_at = monotonic_time();
		}
		else
			slot = NULL;
	}
	else if (slot->latch != NULL)
		SetLatch(slot->latch);
	LWLockRelease(workers->lock);
	return slot != NULL;
}

/* Make this process the worker of its database.  Returns false if there is one. */
bool
launch_attach(void)
{
	WorkerSlot *slot;
	bool		attached;

	LWLockAcquire(workers->lock, LW_EXCLUSIVE);
	slot = find_worker();
	if (slot == NULL)
		slot = find_free_slot();
	attached = slot != NULL && slot->latch == NULL;
	if (attached)
	{
		slot->database = MyDatabaseId;
		slot->latch = MyLatch;
	}
	LWLockRelease(workers->lock);
	return attached;
}

/* This process is no longer the worker.  Returns false if it was not. */
bool
launch_detach(void)
{
	bool		attached = false;

	LWLockAcquire(workers->lock, LW_EXCLUSIVE);
	for (WorkerSlot *slot = workers->slots; slot < workers->slots + workers->count; slot++)
	{
		if (slot->latch == MyLatch)
		{
			memset(slot, 0, sizeof(WorkerSlot));
			attached = true;
		}
	}
	LWLockRelease(workers->lock);
	return attached;
}
