/* What other files may call of each file of the tickets that have a source. */
#ifndef INSTAID_SOURCES_H
#define INSTAID_SOURCES_H

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"

#include "tickets.h"

/* lease.c: the client of a host */

/* Values that a host has leased: first, first + increment, ... last */
typedef struct Lease
{
	int64		first;
	int64		last;
	int64		increment;
	int64		count;
} Lease;

/* how many progressions of values are remembered for a ticket */
#define MARK_COUNT		32

/* The largest value that this server has had with an increment and residue */
typedef struct Mark
{
	int64		increment;		/* 0 if there is none */
	int64		residue;
	int64		last;
} Mark;

extern char *lease_values(Source *source, int host, int64 wanted, Lease *lease);
extern bool lease_raises_mark(const Lease *lease, Mark *marks);

/* slots.c: the tickets in shared memory */

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
	uint32		source;			/* hash of the server, 0 before the first */
	uint32		sequence;		/* hash of the name of the sequence there */

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
	int			turn;			/* which host is asked first */
	Mark		marks[MARK_COUNT];

	/* for the view */
	int64		segment_size;
	NameData	host;			/* that gave the last segment */
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
extern Slot *slot_lock(Oid ticket, int *place);

/* refill.c: refills of slots */

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
} Refill;

extern bool refill_begin(Slot *slot, int64 now, Refill *refill);
extern bool refill_start(const Refill *refill);
extern bool refill_fail(Slot *slot, const char *failure);
extern void refill_log_failure(int level, const char *name, const char *failure);

/* segments.c: values, and the view of them */

extern int	segment_target_duration;	/* a setting, in ms */

extern int64 segments_take(Oid ticket, int *place);
extern void segments_init(void);

#endif							/* INSTAID_SOURCES_H */
