/*
 * The states of a move, told from what is there on both sides, and the steps between them.  No query and no
 * connection: evidence.c has these.
 *
 * A move has a publication and a slot on the source, and a subscription on the target.  The comment of the publication
 * is its mark.  It is written in the transaction of the step that it tells.  Before the switch, the same is made for the
 * way back.  The switch exchanges the two: what remains of a move is the way back, which is a move in the other
 * direction that has not been switched.  So --reverse is the switch of that one, and --finish its cancellation.
 */
#ifndef MOVE_STATE_H
#define MOVE_STATE_H

#include <stdbool.h>

/* what the comment of a side's publication says of a move from this side to the other */
typedef enum Mark
{
	NO_MARK, MARK_COPYING, MARK_PREPARED, MARK_SWITCHED, MARK_NOT_COMPARED, MARK_SERVES, MARKS
} Mark;

/* what a side has */
typedef struct SideEvidence
{
	Mark		mark;
	bool		one_way;
	bool		by_dump;
	bool		has_slot;		/* of the move from here */
	bool		slot_lost;		/* ... without the WAL that it needs */
	bool		has_subscription;	/* of the move to here */
	bool		attached;		/* ... with a slot */
	bool		enabled;
	bool		ready;			/* ... and all tables are copied */
	bool		refuses;		/* writes */
	bool		serves;			/* a shard that is not frozen */
	bool		publishes_all;	/* its tables */
} SideEvidence;

typedef struct Evidence
{
	SideEvidence source;
	SideEvidence target;
	bool		is_new;			/* this run has made the way back */
} Evidence;

typedef enum MoveState
{
	NOT_BEGUN, BEGUN, SLOT_MADE, DEFINED, COPYING, FOLLOWING, WAY_BACK_PARTLY, WAY_BACK_READY, STOPPING,
	DUMP_BEGUN, REHEARSING,
	SWITCHED, LEFT, CLEANED, WAY_BACK_STARTED, NOT_COMPARED, MOVED,
	SLOT_LOST, DETACHED, SLOTLESS, OLD_COPY, ALONE, OTHER_DIRECTION, CONTRADICTORY, STATES
} MoveState;

typedef enum Goal
{
	GOAL_PREPARED = 1, GOAL_MOVED = 2, GOAL_DUMPED = 4, GOAL_CANCELLED = 8
} Goal;

typedef struct Move Move;
typedef int (*Step) (Move *move);	/* 0, or an exit status */

typedef struct Transition
{
	MoveState	from;
	int			goals;
	MoveState	to;				/* or one that is farther, or behind if
								 * something new has come */
	Step		step;
	const char *name;			/* what was done: the tests kill the program
								 * after it */
} Transition;

typedef struct StateText
{
	const char *name;			/* of --status */
	const char *there;			/* what is there */
	const char *next;			/* what to do */
} StateText;

extern const Transition transitions[];
extern const int transition_count;
extern const StateText state_texts[STATES];
extern const char *const mark_names[MARKS];

extern MoveState classify(const Evidence *e);
extern const Transition *find_transition(MoveState state, Goal goal);
extern bool is_end(MoveState state, Goal goal);
extern bool is_switched(MoveState state);
extern Mark mark_of(const char *name);
extern const char *side_text(const SideEvidence *side);
extern void print_states(void);

#endif
