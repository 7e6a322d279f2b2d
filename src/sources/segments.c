/* Taking values of tickets that have a source from their segments in shared memory. */
#include "postgres.h"

#include "storage/condition_variable.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "monotonic.h"
#include "source.h"
#include "sources/refill.h"
#include "sources/segments.h"

/* how often a call that waits looks at its slot, in ms */
#define LOOK_INTERVAL	1000

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

/* The error for a ticket that has no value */
static void
empty_error(Oid ticket, const char *name, const Slot *copy, bool no_worker, int timeout)
{
	const char *failure = source_may_see_failures(ticket) ? copy->failure :
		"<insufficient privilege>; its owner and members of pg_read_all_stats see it in instaid.segments";

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("ticket \"%s\" has no values left from its source", name),
			 no_worker ?
			 errdetail("No background worker was free within %d ms.", timeout) :
			 copy->state == FAILED ?
			 errdetail("The last attempt, at %s, failed: %s",
					   timestamptz_to_str(copy->failed_at), failure) :
			 errdetail("The source has not answered within %d ms.", timeout),
			 no_worker ? errhint("Increase max_worker_processes.") :
			 errhint("Call again: a source that failed is asked again within %d s.",
					 LAST_BACKOFF / 1000)));
}

/*
 * Take the next value of a ticket that has a source.  If there is none, wait for a segment, up
 * to the timeout in ms.  The caller remembers the place: see slot_lock().
 */
int64
segments_take(Oid ticket, const char *name, int *place, int timeout, int target_duration)
{
	static uint32 wait_event = 0;
	static const char *const overdue = "the background worker has not ended in time";
	int64		give_up_at = 0;
	int64		value = 0;
	bool		no_worker = false;

	if (wait_event == 0)
		wait_event = WaitEventExtensionNew("InstaidTicketSegment");

	for (;;)
	{
		int64		now = monotonic_time();
		Slot	   *slot = slot_lock(ticket, name, place);
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
			slot_reset(slot, name, now);
		taken = take_value(slot, now, &value);
		if (slot->state == REFILLING && now >= slot->deadline)
			is_first_failure = refill_fail(slot, overdue);
		begins = refill_begin(slot, now, target_duration, &refill);
		if (!taken && give_up_at == 0)
		{
			give_up_at = now + timeout * INT64CONST(1000);
			slot->waits++;
		}
		if (!taken)
			copy = *slot;
		LWLockRelease(&slot->lock);

		if (is_first_failure)
			refill_log_failure(LOG_SERVER_ONLY, name, overdue);
		if (begins)
			no_worker = !refill_start(&refill);
		if (taken)
			break;
		left = (give_up_at - now) / 1000;
		if (left <= 0 || copy.state == FAILED)
			empty_error(ticket, name, &copy, no_worker, timeout);
		(void) ConditionVariableTimedSleep(&slot->changed,
										   Min(left, no_worker ? WORKER_RETRY_INTERVAL : LOOK_INTERVAL),
										   wait_event);
	}
	ConditionVariableCancelSleep();
	return value;
}
