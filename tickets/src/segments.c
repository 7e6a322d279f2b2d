/* Segments in shared memory: taking values of them, and the view instaid_tickets.segments. */
#include "postgres.h"

#include <limits.h>

#include "catalog/pg_authid.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "utils/wait_event.h"

#include "common.h"
#include "compat.h"
#include "sequence.h"
#include "sources.h"

/* how often a call that waits looks at its slot, in ms */
#define LOOK_INTERVAL	1000

PG_FUNCTION_INFO_V1(instaid_tickets_segment_state);
PG_FUNCTION_INFO_V1(instaid_tickets_is_preloaded);

int			segment_target_duration;
static int	segment_timeout;

/* Take a value from a slot.  Returns false if it has none left. */
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

/* May the role see failures of servers?  libpq's messages name files of this server. */
static bool
may_see_failures(Oid ticket)
{
	Oid			owner = relation_owner(ticket);

	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		(OidIsValid(owner) && has_privs_of_role(GetUserId(), owner));
}

/* The error for a ticket that has no value */
static void
empty_error(Oid ticket, const Slot *copy, bool no_worker)
{
	const char *failure = may_see_failures(ticket) ? copy->failure :
		"<insufficient privilege>; its owner and members of pg_read_all_stats see it in instaid_tickets.segments";

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("ticket %s has no values left from its source", sequence_qualified_name(ticket)),
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
 * to the timeout.  The caller remembers the place: see slot_lock().
 */
int64
segments_take(Oid ticket, int *place)
{
	static uint32 wait_event = 0;
	static const char *const overdue = "the background worker has not ended in time";
	int64		give_up_at = 0;
	int64		value = 0;
	bool		no_worker = false;

	if (slot_table == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ticket %s has a source, and the library instaid_tickets is not preloaded",
						sequence_qualified_name(ticket)),
				 errdetail("Values from a source are kept in shared memory, which a library gets when the server starts."),
				 errhint("Add instaid_tickets to shared_preload_libraries, and restart the server.")));
	if (wait_event == 0)
		wait_event = WaitEventExtensionNew("InstaidTicketSegment");

	for (;;)
	{
		int64		now = monotonic_time();
		Slot	   *slot = slot_lock(ticket, place);
		Slot		copy;
		Refill		refill;
		int64		left;
		bool		taken;
		bool		begins;
		bool		is_first_failure = false;

		if (slot == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("ticket %s has a source, and no room for its values is free",
							sequence_qualified_name(ticket)),
					 errdetail("%d tickets with a source are in use.", SLOT_COUNT),
					 errhint("A ticket that is not used for %d s makes room.", MIN_IDLE / 1000)));
		slot->last_used = now;
		taken = take_value(slot, now, &value);
		if (slot->state == REFILLING && now >= slot->deadline)
			is_first_failure = refill_fail(slot, overdue);
		begins = refill_begin(slot, now, &refill);
		if (!taken && give_up_at == 0)
		{
			give_up_at = now + segment_timeout * INT64CONST(1000);
			slot->waits++;
		}
		if (!taken)
			copy = *slot;
		LWLockRelease(&slot->lock);

		if (is_first_failure)
			refill_log_failure(LOG_SERVER_ONLY, sequence_qualified_name(ticket), overdue);
		if (begins)
			no_worker = !refill_start(&refill);
		if (taken)
			break;
		left = (give_up_at - now) / 1000;
		if (left <= 0 || copy.state == FAILED)
			empty_error(ticket, &copy, no_worker);
		(void) ConditionVariableTimedSleep(&slot->changed,
										   Min(left, no_worker ? WORKER_RETRY_INTERVAL : LOOK_INTERVAL),
										   wait_event);
	}
	ConditionVariableCancelSleep();
	return value;
}

Datum
instaid_tickets_is_preloaded(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	PG_RETURN_BOOL(slot_table != NULL);
}

Datum
instaid_tickets_segment_state(PG_FUNCTION_ARGS)
{
	static const char *const states[] = {"idle", "refilling", "failed"};
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; slot_table != NULL && i < SLOT_COUNT; i++)
	{
		Slot		slot;
		Segment    *used,
				   *spare;
		Datum		values[17];
		bool		nulls[17] = {false};

		/* the catalogs are not to be read under the lock */
		LWLockAcquire(&slot_table->slots[i].lock, LW_SHARED);
		slot = slot_table->slots[i];
		LWLockRelease(&slot_table->slots[i].lock);
		if (!OidIsValid(slot.ticket) || slot.database != MyDatabaseId ||
			!relation_is_visible(slot.ticket, SOURCE_READ_RIGHTS))
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
		values[11] = CStringGetTextDatum(NameStr(slot.host));
		values[12] = TimestampTzGetDatum(slot.refilled_at);
		values[13] = Int64GetDatum(slot.refill_duration);
		values[14] = Int64GetDatum(slot.failures);
		values[15] = TimestampTzGetDatum(slot.failed_at);
		values[16] = CStringGetTextDatum(may_see_failures(slot.ticket) ?
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
	/* not a session's: the next segment is for all sessions */
	DefineCustomIntVariable("instaid_tickets.segment_target_duration",
							"Sets how long a segment of a ticket with a source should last.",
							"If a segment lasts for less time, the next one has twice its size; if it lasts for more than twice the time, half its size.",
							&segment_target_duration,
							15 * 60 * 1000, 1, INT_MAX, PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("instaid_tickets.segment_timeout",
							"Sets how long a call waits for a segment of a ticket with a source when none is left.",
							"After that, the call fails.",
							&segment_timeout,
							5000, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
}
