/* The view instaid.segments: the slots of the tickets of this database. */
#include "postgres.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "relation.h"
#include "source.h"
#include "sources/segments.h"
#include "sources/slots.h"

/* SQL's _segment_state(), which instaid.so calls */
Datum
segments_state(FunctionCallInfo fcinfo)
{
	static const char *const states[] = {"idle", "refilling", "failed"};
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < SLOT_COUNT; i++)
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
