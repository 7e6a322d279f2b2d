/*
 * A test of state.c without a server.  A model of what each step leaves behind, apply(), walks from each combination of
 * evidence to each goal.  In TAP.  With an argument, it prints the evidence after each step of a move: move_program.pl
 * compares it with what real steps leave behind.
 */
#include <stdio.h>
#include <string.h>

#include "../state.h"
#include "../steps.h"

#define STEP(f) int f(Move *m) { (void) m; return 0; }
STEP(step_begin)
STEP(step_create_slot)
STEP(step_define)
STEP(step_enable)
STEP(step_follow)
STEP(step_make_way_back)
STEP(step_drop_way_back)
STEP(step_switch)
STEP(step_serve_again)
STEP(step_dump)
STEP(step_end_copy)
STEP(step_drop_publication)
STEP(step_start_way_back)
STEP(step_mark_moved)
STEP(step_compare)
STEP(step_detach)
STEP(step_drop_slots)
STEP(step_drop_copy)
STEP(step_end)

static const Goal goals[] = {GOAL_PREPARED, GOAL_MOVED, GOAL_DUMPED, GOAL_CANCELLED};

#define GOALS 4

static int	tests = 0,
			failures = 0,
			failed = 0;

/* Note a failure of the test at work. */
static void
wrong(const char *what, const Evidence *e, Goal goal)
{
	if (failed++ < 5)
		printf("# %s: goal %d, source: %s, target: %s; %s\n", what, goal, side_text(&e->source), side_text(&e->target),
			   state_texts[classify(e)].name);
}

/* End it. */
static void
ok(const char *name)
{
	printf("%s %d - %s\n", failed ? "not ok" : "ok", ++tests, name);
	failures += failed > 0;
	failed = 0;
}

/* What a step leaves behind, as steps.c, stop.c and dump.c make it */
static void
apply(Step step, Evidence *e, bool one_way, bool by_dump)
{
	SideEvidence *s = &e->source,
			   *t = &e->target;

	if (step == step_begin)
		s->mark = MARK_COPYING, s->publishes_all = !by_dump, s->by_dump = by_dump, s->one_way = false;
	if (step == step_create_slot)
		s->has_slot = true;
	if (step == step_define)
		t->has_subscription = t->attached = t->refuses = true, t->enabled = t->ready = false;
	if (step == step_enable)
		t->enabled = true;
	if (step == step_follow)
		t->ready = true;
	if (step == step_make_way_back)
	{
		t->mark = MARK_PREPARED, t->one_way = one_way, t->by_dump = false, t->publishes_all = !one_way;
		t->has_slot = s->has_subscription = s->attached = s->ready = !one_way, s->enabled = t->slot_lost = false;
		e->is_new = true;
	}
	if (step == step_drop_way_back)
	{
		t->mark = NO_MARK;
		t->has_slot = t->slot_lost = t->publishes_all = t->one_way = false;
		s->has_subscription = s->attached = s->enabled = s->ready = false;
	}
	if (step == step_serve_again)
		s->refuses = false, s->serves = true;
	if (step == step_switch || step == step_dump)
	{
		t->mark = MARK_SWITCHED, s->refuses = true, t->refuses = t->attached = t->enabled = false;
		s->serves = false, t->serves = true;
		t->publishes_all &= !by_dump, t->by_dump = by_dump, t->one_way |= by_dump;
	}
	if (step == step_end_copy)
		s->has_slot = s->slot_lost = t->has_subscription = t->ready = t->attached = t->enabled = false;
	if (step == step_drop_publication)
		s->mark = NO_MARK, s->one_way = s->by_dump = s->publishes_all = false;
	if (step == step_start_way_back)
		s->enabled = true;
	if (step == step_mark_moved)
		t->mark = t->by_dump ? MARK_SERVES : MARK_NOT_COMPARED, t->one_way |= !s->has_subscription;
	if (step == step_compare)
		t->mark = MARK_SERVES;
	if (step == step_detach)
		t->attached = t->enabled = false;
	if (step == step_drop_slots)
		s->has_slot = s->slot_lost = false;
	if (step == step_drop_copy)
		t->has_subscription = t->attached = t->enabled = t->ready = t->refuses = false;
	if (step == step_end)
		s->mark = NO_MARK, s->one_way = s->by_dump = s->publishes_all = false;
}

/* From an evidence to a goal; returns the number of steps, -1 for a refusal, or -2 for a circle */
static int
walk(Evidence *e, Goal goal, bool one_way)
{
	for (int n = 0; n < 40; n++)
	{
		MoveState	state = classify(e);
		const Transition *t = find_transition(state, goal);

		if (is_end(state, goal))
			return n;
		if (!t)
			return -1;
		apply(t->step, e, one_way, goal == GOAL_DUMPED);
	}
	return -2;
}

/* From each state on the way of a move, each goal is reached, or refused for a reason. */
static void
test_from_here(const Evidence *e, bool one_way, bool by_dump, bool is_way_back)
{
	MoveState	state = classify(e);
	Evidence	other = {e->target, e->source, false};

	for (int i = 0; i < GOALS; i++)
	{
		Evidence	copy = *e;
		bool		is_late = is_switched(state) && goals[i] != GOAL_MOVED && goals[i] != GOAL_DUMPED,
					is_other_way = state != NOT_BEGUN && !is_switched(state)
			&& (goals[i] == GOAL_DUMPED) != by_dump && goals[i] != GOAL_CANCELLED;

		/* check_going_on() refuses these */
		if (!is_other_way && (walk(&copy, goals[i], one_way) < 0) != is_late)
			wrong("a goal is not reached, or not refused", e, goals[i]);
		if (is_end(classify(&copy), goals[i]) && (goals[i] == GOAL_PREPARED || goals[i] == GOAL_CANCELLED)
			&& copy.source.refuses)
			wrong("the source refuses writes in the end", &copy, goals[i]);
	}
	/* whoever exchanges the sides drops nothing */
	if (state != NOT_BEGUN && state < NOT_COMPARED && !(is_way_back && state < SWITCHED)
		&& classify(&other) != OTHER_DIRECTION)
		wrong("the other direction is not seen", &other, 0);
}

static void
print_evidence(const char *name, const Evidence *e)
{
	printf("%s: %s", name, side_text(&e->source));
	printf(" | %s\n", side_text(&e->target));
}

/* The way of a move, and if it has one, the way back */
static void
test_move(bool one_way, bool by_dump, bool prints)
{
	Evidence	e = {{.serves = true}, {0}, false};
	Goal		goal = by_dump ? GOAL_DUMPED : GOAL_MOVED;
	const Transition *t;

	for (int direction = 0; direction < (one_way ? 1 : 2); direction++)
	{
		Evidence	other = {e.target, e.source, false};

		if (direction)
			e = other;
		while (!is_end(classify(&e), goal) && (t = find_transition(classify(&e), goal)))
		{
			Evidence	stopped = e;

			test_from_here(&e, one_way, by_dump, direction);
			/* killed while writes are refused */
			stopped.source.refuses = true;
			stopped.source.serves = false;
			stopped.is_new = false;
			if (t->step == step_switch || t->step == step_dump)
			{
				if (classify(&stopped) != STOPPING)
					wrong("a stop is not seen", &stopped, goal);
				test_from_here(&stopped, one_way, by_dump, direction);
			}
			/* a rehearsal leaves the target refusing */
			stopped = e;
			stopped.target.refuses = true;
			if (t->step == step_dump)
				test_from_here(&stopped, one_way, by_dump, direction);
			apply(t->step, &e, one_way, by_dump);
			if (prints)
				print_evidence(t->name, &e);
			if (classify(&e) != t->to && !(one_way && (t->to == CLEANED || t->to == NOT_COMPARED)))
				wrong("a step leads elsewhere", &e, goal);
		}
		if (!is_end(classify(&e), goal))
			wrong("the move does not get on", &e, goal);
		test_from_here(&e, one_way, by_dump, direction);
		e.is_new = false;
	}
	/* --finish is the cancellation of the way back */
	{
		Evidence	other = {e.target, e.source, false};

		while ((t = find_transition(classify(&other), GOAL_CANCELLED)))
		{
			apply(t->step, &other, false, false);
			if (prints)
				print_evidence(t->name, &other);
		}
		if (classify(&other) != NOT_BEGUN || strcmp(side_text(&other.source), "serves") != 0
			|| *side_text(&other.target))
			wrong("something is left", &other, GOAL_CANCELLED);
	}
}

/* Each combination of evidence is a state, from which no goal is a circle. */
static void
test_all(void)
{
	int			seen[STATES] = {0},
				combinations = 0;

	for (int marks = 0; marks < MARKS * MARKS; marks++)
		for (int bits = 0; bits < 1 << 23; bits++)
		{
			int			b = bits;
			Evidence	e = {{.mark = marks / MARKS}, {.mark = marks % MARKS}, false};
			SideEvidence *sides[2] = {&e.source, &e.target};

			for (int i = 0; i < 2; i++, b >>= 11)
			{
				sides[i]->one_way = b & 1;
				sides[i]->has_slot = b & 2;
				sides[i]->has_subscription = b & 4;
				sides[i]->attached = b & 8;
				sides[i]->enabled = b & 16;
				sides[i]->ready = b & 32;
				sides[i]->refuses = b & 64;
				sides[i]->publishes_all = b & 128;
				sides[i]->by_dump = b & 256;
				sides[i]->slot_lost = b & 512;
				sides[i]->serves = b & 1024;
			}
			e.is_new = b & 1;
			if ((e.source.slot_lost && !e.source.has_slot) || (e.target.slot_lost && !e.target.has_slot)
				|| (!e.source.has_subscription && (e.source.attached || e.source.enabled || e.source.ready))
				|| (!e.target.has_subscription && (e.target.attached || e.target.enabled || e.target.ready))
				|| (!e.source.mark && (e.source.one_way || e.source.by_dump))
				|| (!e.target.mark && (e.target.one_way || e.target.by_dump))
				|| (e.is_new && e.target.mark != MARK_PREPARED))
				continue;
			combinations++;
			if (classify(&e) < 0 || classify(&e) >= STATES)
				wrong("no state", &e, 0);
			else
				seen[classify(&e)]++;
			for (int i = 0; i < GOALS; i++)
			{
				Evidence	copy = e;

				if (walk(&copy, goals[i], b & 1) == -2)
					wrong("a circle", &e, goals[i]);
			}
		}
	ok("each combination of evidence is a state, and no goal is a circle");
	printf("# %d combinations\n", combinations);
	for (int i = 0; i < STATES; i++)
		if (!seen[i])
			printf("# never: %s\n", state_texts[i].name), failed++;
	ok("each state is seen");
}

int
main(int argc, char **argv)
{
	(void) argv;
	if (argc > 1)
	{
		test_move(false, false, true);
		return failed > 0;
	}
	for (int a = 0; a < transition_count; a++)
		for (int b = 0; b < a; b++)
			if (transitions[a].from == transitions[b].from && (transitions[a].goals & transitions[b].goals))
				printf("# %s, %s\n", transitions[a].name, transitions[b].name), failed++;
	ok("a state has one step to a goal");
	for (int a = 0; a < STATES; a++)
		for (int b = 0; b < a; b++)
			if (strcmp(state_texts[a].name, state_texts[b].name) == 0)
				printf("# %s\n", state_texts[a].name), failed++;
	ok("a state has a name of its own");
	test_move(false, false, false);
	ok("a move, back and its end: from each state, each goal is reached or refused");
	test_move(true, false, false);
	ok("the same --one-way");
	test_move(true, true, false);
	ok("the same with --dump");
	test_all();
	printf("1..%d\n", tests);
	return failures > 0;
}
