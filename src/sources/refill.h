/* Refills of slots: see refill.c. */
#ifndef INSTAID_REFILL_H
#define INSTAID_REFILL_H

#include "sources/slots.h"

/* how long calls do not ask again after a failure, in ms: first, and at most */
#define FIRST_BACKOFF	100
#define LAST_BACKOFF	5000
/* how often a call looks for a free worker, in ms */
#define WORKER_RETRY_INTERVAL	100

/* What a worker is to do */
typedef struct Refill
{
	int			place;			/* of the slot */
	Oid			database;
	Oid			ticket;
	uint64		number;
	NameData	name;
	int			target_duration;	/* of the segment, in ms */
} Refill;

extern bool refill_begin(Slot *slot, int64 now, int target_duration, Refill *refill);
extern bool refill_start(const Refill *refill);
extern bool refill_fail(Slot *slot, const char *failure);
extern void refill_log_failure(int level, const char *name, const char *failure);

#endif							/* INSTAID_REFILL_H */
