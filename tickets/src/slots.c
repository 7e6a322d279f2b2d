/*
 * Tickets that have a source, in shared memory, for all sessions.
 *
 * A ticket in use has a slot, with room for two segments.  Segments are not on disk, because a
 * backup or a copy of a database would have the same values: they are lost at a restart.
 *
 * Each slot has a lock, which protects its content.  Another ticket gets the slot under this lock
 * and that of the table.  Thus a slot keeps its ticket for as long as a session holds one of the
 * two.  A session that needs both takes that of the table first.  If another one took them in the
 * other order, the two could wait for each other forever.
 *
 * With one lock for all, eight sessions took 30 % fewer values of eight tickets on two processors.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/builtins.h"

#include "common.h"
#include "sources.h"

SlotTable  *slot_table = NULL;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();
	RequestAddinShmemSpace(sizeof(SlotTable));
	RequestNamedLWLockTranche("instaid_tickets", 1);
}

static void
startup_shmem(void)
{
	bool		found;

	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	slot_table = ShmemInitStruct("instaid_tickets", sizeof(SlotTable), &found);
	if (!found)
	{
		memset(slot_table, 0, sizeof(SlotTable));
		slot_table->lock = &GetNamedLWLockTranche("instaid_tickets")->lock;
		for (Slot *slot = slot_table->slots; slot < slot_table->slots + SLOT_COUNT; slot++)
		{
			LWLockInitialize(&slot->lock, slot_table->lock->tranche);
			ConditionVariableInit(&slot->changed);
			slot->last_used = -MIN_IDLE * INT64CONST(1000);
		}
	}
	LWLockRelease(AddinShmemInitLock);
}

void
slots_init(void)
{
	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
}

/* Begin anew in a slot.  A worker that was started before is late. */
static void
slot_reset(Slot *slot, int64 now)
{
	uint64		refill = slot->refill;

	memset((char *) slot + offsetof(Slot, last_used), 0, sizeof(Slot) - offsetof(Slot, last_used));
	slot->refill = refill + 1;
	slot->last_used = now;
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
Slot *
slot_lock(Oid ticket, int *place)
{
	/* each turn locks the slot that the turn before it has found, or searches */
	for (;;)
	{
		int64		now = monotonic_time();
		Slot	   *found = NULL;

		if (*place >= 0)
		{
			LWLockAcquire(&slot_table->slots[*place].lock, LW_EXCLUSIVE);
			if (is_slot_of(&slot_table->slots[*place], ticket))
				return &slot_table->slots[*place];
			LWLockRelease(&slot_table->slots[*place].lock);
		}

		LWLockAcquire(slot_table->lock, LW_EXCLUSIVE);
		for (Slot *slot = slot_table->slots; slot < slot_table->slots + SLOT_COUNT; slot++)
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
		*place = found == NULL ? -1 : found - slot_table->slots;

		if (found != NULL && !is_slot_of(found, ticket))
		{
			LWLockAcquire(&found->lock, LW_EXCLUSIVE);
			if (now - found->last_used >= MIN_IDLE * 1000)
			{
				found->database = MyDatabaseId;
				found->ticket = ticket;
				slot_reset(found, now);
			}
			LWLockRelease(&found->lock);
		}
		LWLockRelease(slot_table->lock);
		if (found == NULL)
			return NULL;
	}
}
