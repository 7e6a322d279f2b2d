/* The states of a move, and the steps between them.  See state.h. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "state.h"
#include "steps.h"

const char *const mark_names[MARKS] = {"", "copying", "prepared", "switched", "back, not compared", "back"};

#define AGAIN "run the command again"
#define TO_ITS_END "run the command again, to its end"
#define OR_CANCEL "run the command again or --switch, or --cancel"

const StateText state_texts[STATES] = {
	[NOT_BEGUN] = {"not begun", "nothing", "run the command"},
	[BEGUN] = {"begun", "a publication on the source; triggers, which let writes pass",
	AGAIN ", or --cancel"},
	[SLOT_MADE] = {"begun, with a slot", "its slot, too", AGAIN ", or --cancel"},
	[DEFINED] = {"defined",
		"on the target, from one transaction: the frozen schema, a schema named as the move, and the subscription",
	AGAIN ", or --cancel"},
	[COPYING] = {"being copied", "the subscription copies; then indexes of large tables are made",
	AGAIN ", or --cancel"},
	[FOLLOWING] = {"the target follows", "all tables are copied", OR_CANCEL},
	[WAY_BACK_PARTLY] = {"the target follows, with a part of a way back", "a way back that is not whole, or not of this run",
	OR_CANCEL},
	[WAY_BACK_READY] = {"the target follows, with a way back",
		"publication and slot on the target, subscription on the source, disabled",
	OR_CANCEL},
	[STOPPING] = {"stopping: the source refuses writes",
		"a schema named as the move on the source, which the triggers look for, inside the step `switched`",
	"at once, " OR_CANCEL},
	[DUMP_BEGUN] = {"begun, with --dump", "a publication without tables on the source; triggers, which let writes pass",
	AGAIN ", or --cancel"},
	[REHEARSING] = {"rehearsing, with --dump", "the definitions on the target, frozen",
	AGAIN ", or --cancel"},
	[SWITCHED] = {"switched, the target serves it; not cleaned up",
		"one transaction has dropped the schema named as the move on the"
	" target, thawed the shard and set its sequences", TO_ITS_END},
	[LEFT] = {"switched, the target serves it; the copy has ended", "of the copy, only the publication is left",
	TO_ITS_END},
	[CLEANED] = {"switched, the target serves it; cleaned up", "nothing of the copy is left", TO_ITS_END},
	[WAY_BACK_STARTED] = {"switched, the target serves it; the source follows", "the way back is enabled, if there is one",
	TO_ITS_END},
	[NOT_COMPARED] = {"moved, the target serves it; not compared", "only the way back is left",
	AGAIN ", which compares the rows"},
	[MOVED] = {"moved, the target serves it", "the same, and the rows were compared",
	"--finish, or --reverse"},
	[SLOT_LOST] = {"the slot of the source is lost", "the target cannot get what is missing",
	"--cancel, and begin again"},
	[DETACHED] = {"being dropped: the copy is detached", "the subscription has no slot",
	"--cancel, or the --finish that was begun"},
	[SLOTLESS] = {"being dropped: the slot is gone", "the slot is dropped, too",
	"--cancel, or the --finish that was begun"},
	[OLD_COPY] = {"moved without a way back", "the old shards, frozen",
	"exchange --from and --to, and --finish"},
	[ALONE] = {"moved, with nothing but its mark", "only the publication that is the mark",
	"exchange --from and --to, and --finish"},
	[OTHER_DIRECTION] = {"a move in the other direction is under way",
		"one of these states, seen from the other side",
	"run the --reverse again, or exchange --from and --to"},
	[CONTRADICTORY] = {"the two sides do not belong together",
		"one was restored from a backup, came back after it was given up for lost, or was made or thawed by somebody else",
		"keep clients from the side that they shall not use; freeze its shard if it was thawed, drop it if it is new, or"
	" clean it up by hand if it was given up for lost"},
};

#define P GOAL_PREPARED
#define M GOAL_MOVED
#define D GOAL_DUMPED
#define C GOAL_CANCELLED

const Transition transitions[] = {
	{NOT_BEGUN, P | M, BEGUN, step_begin, "begun"},
	{BEGUN, P | M, SLOT_MADE, step_create_slot, "slot"},
	{SLOT_MADE, P | M, DEFINED, step_define, "defined"},
	{DEFINED, P | M, COPYING, step_enable, "enabled"},
	{COPYING, P | M, FOLLOWING, step_follow, "following"},
	{FOLLOWING, M, WAY_BACK_READY, step_make_way_back, "way back"},
	{WAY_BACK_PARTLY, P | M | C, FOLLOWING, step_drop_way_back, "way back dropped"},
	{WAY_BACK_READY, M, SWITCHED, step_switch, "switched"},
	{STOPPING, P | M | D | C, WAY_BACK_PARTLY, step_serve_again, "served again"},

	{NOT_BEGUN, D, DUMP_BEGUN, step_begin, "begun"},
	{DUMP_BEGUN, D, LEFT, step_dump, "switched"},
	{REHEARSING, D | C, DUMP_BEGUN, step_drop_copy, "copy dropped"},
	{DUMP_BEGUN, C, NOT_BEGUN, step_end, "ended"},

	{SWITCHED, M | D, LEFT, step_end_copy, "copy ended"},
	{LEFT, M | D, CLEANED, step_drop_publication, "publication dropped"},
	{CLEANED, M | D, WAY_BACK_STARTED, step_start_way_back, "way back enabled"},
	{WAY_BACK_STARTED, M | D, NOT_COMPARED, step_mark_moved, "marked"},
	{NOT_COMPARED, M | D, MOVED, step_compare, "compared"},

	{WAY_BACK_READY, C, FOLLOWING, step_drop_way_back, "way back dropped"},
	{FOLLOWING, C, DETACHED, step_detach, "detached"},
	{COPYING, C, DETACHED, step_detach, "detached"},
	{DEFINED, C, DETACHED, step_detach, "detached"},
	{SLOT_LOST, C, DETACHED, step_detach, "detached"},
	{DETACHED, C, SLOTLESS, step_drop_slots, "slots dropped"},
	{SLOTLESS, C, BEGUN, step_drop_copy, "copy dropped"},
	{OLD_COPY, C, ALONE, step_drop_copy, "copy dropped"},
	{SLOT_MADE, C, BEGUN, step_drop_slots, "slots dropped"},
	{BEGUN, C, NOT_BEGUN, step_end, "ended"},
	{ALONE, C, NOT_BEGUN, step_end, "ended"},
};
const int	transition_count = sizeof(transitions) / sizeof(transitions[0]);

/* Every combination of evidence is one state. */
MoveState
classify(const Evidence *e)
{
	const SideEvidence *s = &e->source,
			   *t = &e->target;
	bool		has_way_back = t->mark == MARK_PREPARED && e->is_new
		&& (t->one_way || (t->publishes_all && t->has_slot && !t->slot_lost && s->has_subscription && s->attached));

	/* the target serves */
	if (t->mark == MARK_SWITCHED)
		return s->mark == MARK_PREPARED || s->mark == MARK_SWITCHED || s->serves || t->refuses ? CONTRADICTORY :
			s->has_slot || t->has_subscription ? SWITCHED : s->mark != NO_MARK ? LEFT :
			t->one_way || !s->has_subscription || s->enabled ? WAY_BACK_STARTED : CLEANED;
	if (t->mark == MARK_NOT_COMPARED || t->mark == MARK_SERVES)
	{
		if (s->mark == MARK_COPYING || s->mark == MARK_NOT_COMPARED || s->mark == MARK_SERVES)
			return CONTRADICTORY;

		/*
		 * the preparations of a way back to the source can be there, or a
		 * switch of it
		 */
		return s->mark == MARK_SWITCHED || t->refuses ? OTHER_DIRECTION : s->serves ? CONTRADICTORY :
			t->mark == MARK_SERVES ? MOVED : NOT_COMPARED;
	}

	/*
	 * the source serves, or nobody does, as far as a move of this direction
	 * is concerned
	 */
	if (s->mark == MARK_PREPARED || s->mark == MARK_SWITCHED || t->mark == MARK_COPYING)
		return s->mark == MARK_PREPARED || s->mark == MARK_SWITCHED || s->mark == NO_MARK ? OTHER_DIRECTION :
			CONTRADICTORY;
	if (s->mark == NO_MARK)
		return t->mark == NO_MARK ? NOT_BEGUN : CONTRADICTORY;
	/*
	 * one was given up for lost and is back, or somebody has thawed it; the
	 * source can serve again beside a copy that refuses, too
	 */
	if (t->serves && !(s->refuses && t->refuses))
		return CONTRADICTORY;
	if (s->refuses)
		return STOPPING;
	if (s->mark == MARK_COPYING && s->by_dump)
		return t->refuses ? REHEARSING : DUMP_BEGUN;
	if (!t->has_subscription)
		return t->mark == MARK_PREPARED || s->has_subscription ? WAY_BACK_PARTLY :
			s->has_slot ? (s->mark == MARK_COPYING ? SLOT_MADE : DETACHED) :
			s->mark == MARK_COPYING ? BEGUN : t->refuses ? OLD_COPY : ALONE;
	if (has_way_back && t->attached && t->enabled && t->ready && s->has_slot && !s->slot_lost)
		return WAY_BACK_READY;
	if (t->mark == MARK_PREPARED || s->has_subscription || t->has_slot)
		return WAY_BACK_PARTLY;
	if (!t->attached)
		return s->has_slot ? DETACHED : SLOTLESS;
	if (!s->has_slot || s->slot_lost)
		return SLOT_LOST;
	return !t->enabled ? DEFINED : !t->ready ? COPYING : FOLLOWING;
}

const Transition *
find_transition(MoveState state, Goal goal)
{
	for (int i = 0; i < transition_count; i++)
		if (transitions[i].from == state && (transitions[i].goals & goal))
			return &transitions[i];
	return NULL;
}

bool
is_end(MoveState state, Goal goal)
{
	return goal == GOAL_MOVED || goal == GOAL_DUMPED ? state == MOVED : goal == GOAL_CANCELLED ? state == NOT_BEGUN :
		state == FOLLOWING || state == WAY_BACK_READY;
}

/* Does the target serve, by a move of this direction? */
bool
is_switched(MoveState state)
{
	return state >= SWITCHED && state <= MOVED;
}

Mark
mark_of(const char *name)
{
	for (int i = 1; i < MARKS; i++)
		if (name && strcmp(name, mark_names[i]) == 0)
			return i;
	return NO_MARK;
}

/* What a side has, in words; the next four calls leave it as it is */
const char *
side_text(const SideEvidence *side)
{
	static char texts[4][200];
	static int	next = 0;
	char	   *text = texts[next++ % 4];

	snprintf(text, sizeof(texts[0]), "%s%s%s%s%s%s%s%s%s%s%s", mark_names[side->mark],
			 side->one_way ? ", one-way" : "", side->by_dump ? ", by dump" : "",
			 side->slot_lost ? ", lost slot" : side->has_slot ? ", slot" : "",
			 side->has_subscription ? ", subscription" : "", side->attached ? ", attached" : "",
			 side->enabled ? ", enabled" : "", side->ready ? ", ready" : "", side->refuses ? ", refuses" : "",
			 side->serves ? ", serves" : "", side->mark && side->publishes_all ? ", publishes" : "");
	return *text == ',' ? text + 2 : text;
}

/* Print the steps from a state to one of the goals. */
static void
print_steps(MoveState state, int goals)
{
	const char *between = "";

	for (int i = 0; i < transition_count; i++)
		if (transitions[i].from == state && (transitions[i].goals & goals))
		{
			printf("%s`%s`: %s", between, transitions[i].name, state_texts[transitions[i].to].name);
			between = "; ";
		}
	if (!*between)
		printf(is_end(state, goals & C ? GOAL_CANCELLED : GOAL_MOVED) ? "done" : "refused");
}

/* Print the table of the page. */
void
print_states(void)
{
	printf("| `--status` | what is there | a step of a move, and what comes then | the same of `--cancel` and `--finish` |\n"
		   "|---|---|---|---|\n");
	for (int i = 0; i < STATES; i++)
	{
		printf("| %s | %s | ", state_texts[i].name, state_texts[i].there);
		print_steps(i, P | M | D);
		printf(" | ");
		print_steps(i, C);
		printf(" |\n");
	}
}
