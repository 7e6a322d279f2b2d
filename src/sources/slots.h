/* Tickets that have a source, in shared memory: see slots.c. */
#ifndef INSTAID_SLOTS_H
#define INSTAID_SLOTS_H

#include "datatype/timestamp.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"

#include "sources/lease.h"

/* how many tickets with a source can be in use at once */
#define SLOT_COUNT		1000
/* how long a slot must be unused, in ms, before another ticket can have it */
#define MIN_IDLE		10000

#define FAILURE_LENGTH	512

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

/* NULL unless the server has preloaded the library */
extern SlotTable *slot_table;

extern void slots_init(void);
extern Slot *slot_lock(Oid ticket, const char *name, int *place);
extern void slot_reset(Slot *slot, const char *name, int64 now);

#endif							/* INSTAID_SLOTS_H */
