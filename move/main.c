/* instaid-move: move shards to another database, by logical replication.  state.h tells how. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "move.h"

typedef enum Mode
{
	MOVE, CHECK_ONLY, PREPARE, STATUS, SWITCH, VERIFY, FINISH, CANCEL
} Mode;

static const char usage[] =
"instaid-move moves shards to another database, while clients use them.\n"
"\n"
"  instaid-move --from CONNECTION --to CONNECTION [SHARD...] [COMMAND] [OPTION...]\n"
"\n"
"A CONNECTION is a connection string of libpq. A SHARD is the name of a schema, or a\n"
"pattern with %, quoted. All of them move together. Without a SHARD, the command is for the\n"
"move that is under way between the two databases.\n"
"\n"
"Without a COMMAND, it checks, copies, follows, switches and compares all rows. Whatever ends\n"
"it, the same command goes on. Commands:\n"
"  --check-only   name what would stop the move, and change nothing\n"
"  --prepare      copy, and follow; --switch goes on\n"
"  --switch       switch a move that is prepared\n"
"  --status       tell the state of each move between the two databases\n"
"  --verify       compare the rows of both sides\n"
"  --cancel       before the switch: leave both sides as they were; of a --reverse: the way back\n"
"                 stays\n"
"  --reverse      after the switch: bring the shards back, with what was written meanwhile\n"
"  --finish       after the switch: drop the shards on the source, and the way back\n"
"  --states       print the states of a move, and the steps between them\n"
"\n"
"Options:\n"
"  --max-stop SECONDS   take a switch back if writes are refused for longer (3); with --dump, the\n"
"                       time of the copy does not count\n"
"  --max-wait SECONDS   try to switch for so long (60)\n"
"  --on-switch COMMAND  run this while writes are refused, to tell the clients' router: with\n"
"                       INSTAID_MOVE=switch, or =back if the switch is taken back after it,\n"
"                       and the shards in INSTAID_MOVE_SHARDS, as {insta5,insta6}\n"
"  --one-way            prepare no way back: the target's wal_level can be replica\n"
"  --dump               do not replicate, for roles that may not: copy the rows while writes are\n"
"                       refused; there is no way back\n"
"  --full-identity      give tables without a key REPLICA IDENTITY FULL for the time of the move\n"
"  --trust ROLE         restore definitions of this role, whose functions run with the rights of\n"
"                       yours\n"
"  --no-verify          do not compare the rows after the switch\n"
"  --json               print what --check-only and --status tell as JSON\n"
"  --source-for-target CONNECTION, --target-for-source CONNECTION\n"
"                       how the servers reach each other, if not as this program does; the\n"
"                       servers store it, and the password in it\n"
"\n"
"Exit status: 0 done, 1 a command failed, 2 wrong usage, 3 no connection, 4 another run is at\n"
"work, 5 something is in the way, 6 the sides differ, 7 the replication does not go on, 8 not\n"
"ready within --max-wait, 9 --on-switch failed. After 5 to 9 of a switch that was not made, the\n"
"source takes writes.\n";

/*** What has gone wrong ***/

/* Note it, and return the exit status for it. */
int
fail(Move *m, int status, const char *what, const char *why, const char *next)
{
	m->what = what;
	m->why = why;
	m->next = next;
	return status;
}

/* The error of a side that has waited for a lock, and whose sessions have locks of the shards */
const char *
who_locks(Move *m, Server *s)
{
	char	   *error = s->error,
			   *sessions;
	char		sqlstate[sizeof(s->sqlstate)];

	memcpy(sqlstate, s->sqlstate, sizeof(sqlstate));
	forget_error(s);
	sessions = value(s, &sql_lockers, m->shards);
	s->error = error;
	memcpy(s->sqlstate, sqlstate, sizeof(sqlstate));
	return sessions ? fmt("%s\nLocks of the shards have: %s.", error, sessions) : error;
}

/* Has one of the servers an error? */
int
settled(Move *m, const char *what)
{
	Server	   *s = m->source->error && (is_lost(m->source) || !is_lost(m->target)) ? m->source : m->target;

	if (!s->error)
		return DONE;
	if (strcmp(s->sqlstate, NO_CONNECTION) == 0)
		return fail(m, DISCONNECTED, fmt("cannot connect to the %s", s->name), s->error,
					"Run the same command again when it can.");
	if (strcmp(s->sqlstate, SILENT) == 0)
		return fail(m, DISCONNECTED, fmt("the %s does not answer", s->name), s->error,
					"Run the same command again when it answers; a larger --max-stop waits longer.");
	if (is_lost(s))
		return fail(m, DISCONNECTED, fmt("the connection to the %s is lost", s->name), s->error,
					"Run the same command again: it goes on from there. --status tells the state.");
	if (strcmp(s->sqlstate, "55P03") == 0 || strcmp(s->sqlstate, "40P01") == 0)
		return fail(m, NOT_NOW, what, who_locks(m, s), "Run the same command again when no long transaction uses the tables.");
	return fail(m, FAILED, what, s->error, "Remove the cause, and run the same command again, or --cancel.");
}

/* Print it, with all lines of the cause. */
static void
print_failure(const Move *m)
{
	fflush(stdout);
	fprintf(stderr, "instaid-move: %s\n", plain(m->what));
	if (m->why)
	{
		fputs("  why:  ", stderr);
		for (const char *line = m->why; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
			fprintf(stderr, "%s%s\n", line == m->why ? "" : "        ",
					plain(fmt("%.*s", (int) strcspn(line, "\n"), line)));
	}
	if (m->next)
		fprintf(stderr, "  next: %s\n", plain(m->next));
}

/*** Which move ***/

/* Take the marks of a side that the arguments choose. */
static int
read_marks(Move *m, Server *s, Server *other, const char *patterns)
{
	PGresult   *marks = rows(s, &sql_marks, patterns);

	for (int i = 0; i < PQntuples(marks); i++)
	{
		char	   *name = column(marks, i, "name"),
				   *from = column(marks, i, "from"),
				   *to = column(marks, i, "to");

		if (!from || strcmp(from, s->id) != 0)
			return fail(m, IN_THE_WAY, fmt("publication %s of the %s is not of this database", name, s->name),
						fmt("It is the mark of a move from %s, and this database is %s: a copy?", from, s->id),
						fmt("If it is a copy, DROP PUBLICATION %s.", name));
		if (!to || strcmp(to, other->id) != 0)
			continue;
		if (m->name && strcmp(name, m->name) != 0)
			return fail(m, USAGE, "more than one move is under way between these databases",
						fmt("%s and %s are two of them.", name, m->name),
						"Name the shards of one of them; --status shows all.");
		if (patterns && !is_true(marks, i, "is_all"))
			return fail(m, USAGE, "these are not the shards of the move that is under way",
						fmt("It moves %s.", column(marks, i, "shown")), "Name all of them, or none.");
		m->name = name;
		m->shards = column(marks, i, "shards");
		/* that of a way back is as old as its preparation */
		if (!m->frozen || !is_true(marks, i, "is_prepared"))
			m->frozen = column(marks, i, "frozen");
		m->full = column(marks, i, "full");
	}
	return settled(m, "cannot find the move");
}

/* Refuse if another role may have a move of the shards: its mark is not believed, and its copy would seem to be in the way. */
static int
check_others(Move *m, const char *patterns)
{
	for (int i = 0; i < 2; i++)
	{
		Server	   *s = i ? m->target : m->source;
		PGresult   *found = rows(s, &sql_other_marks, patterns, (i ? m->source : m->target)->id);
		char	   *role = column(found, 0, "owner");

		if (role)
			return fail(m, IN_THE_WAY, fmt("role %s has a move of these shards, or claims to have one", role),
						fmt("Publication %s of the %s belongs to it.", column(found, 0, "name"), s->name),
						fmt("Run the command as %s. If this role moves nothing, drop its publication.", role));
	}
	return settled(m, "cannot find the move");
}

/* Choose the shards of a new move; each argument chooses one. */
static int
choose_shards(Move *m, const char *patterns)
{
	char	   *missing = value(m->source, &sql_unmatched, patterns),
			   *there;
	PGresult   *found;

	if (missing)
	{
		there = value(m->target, &sql_matched, missing);
		return fail(m, IN_THE_WAY, fmt("the source has no such shard: %s", value(m->source, &sql_shown, missing, "9999")),
					there ? fmt("The target has %s.", there) : "The target has not, either.",
					"SELECT schema_name FROM instaid.shards lists them.");
	}
	found = rows(m->source, &sql_shards, patterns);
	m->shards = column(found, 0, "shards");
	m->name = column(found, 0, "name");
	m->frozen = column(found, 0, "frozen");
	m->full = m->options.full_identity ? value(m->source, &sql_full_identity, m->shards) : "{}";
	return settled(m, "cannot find the shards");
}

/* Who holds a lock, as any role can */
const char *
busy_session(Server *s, const char *number)
{
	forget_error(s);
	return value(s, &sql_lock_holder, number);
}

static int
lock(Move *m)
{
	const char *number = m->name + strlen("instaid_move_");

	for (int i = 0; i < 2; i++)
	{
		Server	   *s = i ? m->target : m->source;
		double		until = now() + 5;
		char	   *got;

		while ((got = value(s, &sql_lock, number)) && got[0] != 't')
		{
			if (now() > until)
				return fail(m, BUSY, fmt("another run is moving %s with the %s", m->shown, s->name),
							busy_session(s, number),
							"Wait for it, or end the session with pg_terminate_backend().");
			nap(0.2);
		}
	}
	return settled(m, "cannot lock the move");
}

/*** --status ***/

/* Is a side's slot in use for a second?  That of a worker that fails is so only at times, since it starts again. */
static bool
stays_in_use(Server *s)
{
	for (int i = 0; i < 10; i++)
	{
		if (!value(s, &sql_is_active, s->slot))
			return false;
		nap(0.1);
	}
	return true;
}

/* How far a copy is: its bytes, and those in a second and the seconds that are left, or 0 */
static void
measure(Move *m, double copied, double *total, double *rate, double *left)
{
	PGresult   *size = rows(m->source, &sql_size, m->shards, m->source->time);
	double		seconds = number_of(size, 0, "seconds");

	*total = number_of(size, 0, "bytes");
	*rate = seconds > 0 ? copied / seconds : 0;
	*left = *rate > 0 && copied < *total ? (*total - copied) / *rate : 0;
}

static const char *
serving(Move *m)
{
	bool		source = m->seen.source.serves && !m->seen.source.refuses,
				target = m->seen.target.serves && !m->seen.target.refuses;

	return source && target ? "both sides: FREEZE ONE" : source ? "the source" : target ? "the target" : "none";
}

/* Can a move that was made be reversed? */
static bool
has_way_back(Move *m)
{
	return !m->seen.target.one_way && m->seen.target.has_slot && !m->seen.target.slot_lost;
}

/* Tell of what goes from one side to the other; returns whether it fails. */
static bool
show_copy(Move *m, Server *from, Server *to, const char *name)
{
	PGresult   *slot = rows(from, &sql_slot, from->slot),
			   *progress = to->subscription ? rows(to, &sql_progress, to->subscription) : NULL;
	double		errors = progress ? number_of(progress, 0, "errors") : 0,
				total = 0,
				rate = 0,
				left = 0;
	bool		is_copying = progress && m->state == COPYING;

	if (PQntuples(slot) == 0)
		return false;
	if (is_copying)
		measure(m, number_of(progress, 0, "bytes"), &total, &rate, &left);
	if (m->options.json)
	{
		printf(",\n   \"%s\": {\"slot\": \"%s\", \"active\": %s, \"wal\": \"%s\", \"behind_bytes\": %.0f",
			   from == m->source ? "copy" : "way_back", from->slot, is_true(slot, 0, "active") ? "true" : "false",
			   column(slot, 0, "wal_status"), number_of(slot, 0, "behind"));
		if (progress)
			printf(", \"tables\": %.0f, \"tables_copied\": %.0f, \"bytes_copied\": %.0f, \"errors\": %.0f",
				   number_of(progress, 0, "tables"), number_of(progress, 0, "copied"), number_of(progress, 0, "bytes"),
				   errors);
		if (is_copying)
			printf(", \"bytes\": %.0f, \"bytes_per_second\": %.0f, \"seconds_left\": %.0f", total, rate, left);
		putchar('}');
		return errors > 0;
	}
	printf("  %s: slot %s, WAL %s, %.0f kB behind, holds %s%s\n", name, is_true(slot, 0, "active") ? "in use" :
		   "not in use", column(slot, 0, "wal_status"), number_of(slot, 0, "behind") / 1024,
		   column(slot, 0, "held") ? column(slot, 0, "held") : "nothing", progress ? "" : ", no subscription");
	if (progress)
		printf("            %s of %s tables, %s, %.0f error%s\n", column(progress, 0, "copied"),
			   column(progress, 0, "tables"), column(progress, 0, "size"), errors, errors == 1 ? "" : "s");
	if (is_copying)
		printf("            %.1f of %.1f MB, %.1f MB/s, about %.0f s left\n", number_of(progress, 0, "bytes") / 1e6,
			   total / 1e6, rate / 1e6, left);
	if (is_copying && value(to, &sql_lacks_workers))
		printf("            no logical replication worker of the %s is free\n", to->name);
	if (errors > 0)
		printf("            %s\n", plain(worker_message(m, to)));
	return errors > 0;
}

/* The state in words, and what to do next */
void
show_status(Move *m)
{
	const StateText *text = &state_texts[m->state];
	const char *next = text->next,
			   *run = value(m->source, &sql_lock_holder, m->name + strlen("instaid_move_"));
	bool		fails;

	if (m->options.json)
	{
		printf("  {\"move\": \"%s\", \"shards\": ", m->name);
		print_json(m->shown);
		printf(", \"state\": \"%s\", \"serves\": \"%s\",\n   \"source\": \"%s\",\n   \"target\": \"%s\"", text->name,
			   serving(m), side_text(&m->seen.source), side_text(&m->seen.target));
		printf(",\n   \"run\": ");
		print_json(run ? run : "none");
	}
	else
		printf("%s: %s\n  serves:  %s\n  run:     %s\n", plain(m->shown), text->name, serving(m), run ? plain(run) : "none");
	for (int i = 0; i < 2 && m->state == CONTRADICTORY && !m->options.json; i++)
		if ((i ? m->target : m->source)->serves)
			printf("  %s:  has %s, not frozen\n", i ? "target" : "source", plain((i ? m->target : m->source)->serves));
	show_copy(m, m->source, m->target, "copy   ");
	fails = show_copy(m, m->target, m->source, "way back");

	if (m->seen.source.by_dump && m->state == STOPPING)
		next = "run the command again with --dump, or --cancel";

	/*
	 * what was changed on the side that serves cannot come back before the
	 * other has it, too
	 */
	if (m->state == MOVED && !has_way_back(m))
		next = m->seen.target.one_way ? "--finish" : "--finish: the slot of the way back is lost";
	else if (m->state == MOVED && fails && !stays_in_use(m->target))
		next = "let the way back apply the changes, which fails, or --finish";
	if (m->options.json)
	{
		printf(",\n   \"next\": ");
		print_json(next);
		putchar('}');
	}
	else
		printf("  next:    %s\n", next);
}

/* Tell the state of each move between the two databases. */
static int
show_all(Move *m, const char *patterns)
{
	PGresult   *marks[2] = {rows(m->source, &sql_marks, patterns), rows(m->target, &sql_marks, patterns)};
	int			found = 0;

	for (int i = 0; i < 2; i++)
		for (int row = 0; row < PQntuples(marks[i]); row++)
		{
			const char *to = column(marks[i], row, "to");

			if (!to || strcmp(to, (i ? m->source : m->target)->id) != 0)
				continue;
			m->name = column(marks[i], row, "name");
			m->shards = column(marks[i], row, "shards");
			m->frozen = column(marks[i], row, "frozen");
			m->shown = value(m->source, &sql_shown, m->shards, "4");
			/* what both sides have was told */
			if (!read_evidence(m) || (i && m->seen.source.mark))
				continue;
			if (m->options.json)
				printf(found ? ",\n" : "[\n");
			found++;
			show_status(m);
		}
	if (m->options.json && (found || (!m->source->error && !m->target->error)))
		printf(found ? "\n]\n" : "[]\n");
	else if (!m->options.json && !found && !m->source->error && !m->target->error)
		printf("no move is under way between these databases\n");
	return found ? settled(m, "cannot see the state") : check_others(m, patterns);
}

/*** The work ***/

/* That a state has no step to a goal, and why */
static int
refuse(Move *m)
{
	const StateText *text = &state_texts[m->state];

	if (m->state == OTHER_DIRECTION)
		return fail(m, IN_THE_WAY, fmt("a move of %s in the other direction is under way", m->shown),
					"It is not at its end.", m->options.reverse && m->seen.source.mark == MARK_SWITCHED ?
					"Run the command without --reverse, to its end." :
					"Run the --reverse again; or exchange --from and --to, and run it, or --cancel it.");
	if (is_switched(m->state))
		return fail(m, IN_THE_WAY, fmt("%s cannot be cancelled any more", m->shown),
					"It was switched, and the target serves it.",
					m->state < NOT_COMPARED ? "Run the command without --cancel, to its end." :
					has_way_back(m) ? "Bring it back with --reverse." :
					"--finish the move, and then move it with --from and --to exchanged.");
	if (m->state == OLD_COPY || m->state == ALONE)
		return fail(m, IN_THE_WAY, fmt("there is no way back for %s", m->shown), "It was moved with --one-way or --dump.",
					"--finish the move, and then move it with --from and --to exchanged.");
	if (m->state == SLOT_LOST)
		return fail(m, BROKEN, fmt("the slot %s of the source is lost", m->source->slot),
					"It held more WAL than max_slot_wal_keep_size permits, or somebody has dropped it.",
					m->seen.source.mark == MARK_COPYING ? "--cancel, and begin again." : m->options.reverse ?
					"--finish the move, and then move it with --from and --to exchanged." :
					"Exchange --from and --to, and --finish; then begin again.");
	return fail(m, IN_THE_WAY, fmt("%s: %s", m->shown, text->name), m->target->serves ?
				fmt("The target has %s, not frozen%s.", m->target->serves, m->source->serves ?
					fmt(", and the source %s", m->source->serves) : "") : "This command cannot go on from there.",
				text->next);
}

/* The whole program: see what is there, and do the next step, until the goal. */
static int
reach(Move *m, Goal goal)
{
	for (int n = 0; n < 100; n++)
	{
		const Transition *t;
		int			status;

		if (!read_evidence(m))
			return settled(m, "cannot see the state");
		/* nothing can compare them later but --finish, which needs the mark */
		if (is_end(m->state, goal) || (goal != GOAL_CANCELLED && m->state == NOT_COMPARED && m->seen.target.one_way
									   && !m->options.compares))
			return DONE;
		if (!(t = find_transition(m->state, goal)))
			return refuse(m);
		if ((status = t->step(m)))
			return status;
		kill_point(t->name);
	}
	return fail(m, FAILED, "the move does not get on", state_texts[m->state].name, "--status tells the state.");
}

static int
verify(Move *m)
{
	int			status;

	if (!m->seen.source.has_subscription && !m->seen.target.has_subscription)
		return fail(m, USAGE, fmt("%s has no copy to compare", m->shown), "--status tells the state.", NULL);
	if (!open_reader(m->source) || !open_reader(m->target))
		return settled(m, "cannot compare the rows");
	status = compare_rows(m, m->source->reader, m->target->reader, false);
	return status;
}

/*
 * Before the copy is dropped: a row that only it has was not copied, or was written where nobody should have written.
 * Rows that were not compared, or differ, are dropped only with --no-verify.
 */
static int
compare_before(Move *m)
{
	bool		has_no_way_back;
	int			status;

	if (!read_evidence(m))
		return settled(m, "cannot see the state");
	has_no_way_back = m->state == OLD_COPY || m->state == DETACHED || m->state == SLOTLESS;
	if (!m->options.compares || m->state == ALONE || (has_no_way_back && m->seen.source.mark == MARK_SERVES))
		return DONE;
	if (!open_reader(m->source) || !open_reader(m->target))
		return settled(m, "cannot compare the rows");
	status = compare_rows(m, m->source->reader, m->target->reader, false);
	/* the readers name the sides by what is left */
	if (status == DIFFERENT)
		return fail(m, DIFFERENT, "rows differ, and nothing was dropped",
					fmt("The lines above name them; \"source\" is who serves %s, and \"target\" the copy.", m->shown),
					"Repair the rows, and run the same command again, or --finish with --no-verify.");
	if (status == NOT_NOW)
		return fail(m, NOT_NOW, "the way back does not follow, and nothing was dropped",
					fmt("Rows differ, and the %s does not apply what the %s has sent.", m->target->name, m->source->name),
					"Remove the cause, and run the same command again, or --finish with --no-verify.");
	/* a later run has no way back by which it could compare */
	if (!status && m->seen.source.mark == MARK_NOT_COMPARED)
		run_text(m->source, mark(m, m->source, m->target, MARK_SERVES, m->seen.source.one_way));
	return status ? status : settled(m, "cannot mark the move");
}

/* Drop the old shards, and the way back to them, of a move that was made to the source. */
static int
drop_old(Move *m)
{
	char	   *tables = value(m->target, &sql_table_names, m->shards),
			   *missing = tables ? value(m->source, &sql_missing_tables, tables) : NULL;
	int			status;

	if (missing)
		return fail(m, DIFFERENT, fmt("the %s has tables that the %s lacks", m->target->name, m->source->name), missing,
					"Drop them, if nobody needs their rows, and run the same command again.");
	if (!(status = compare_before(m)) && (status = reach(m, GOAL_CANCELLED)) == DONE)
		say("%s: finished, only the %s has it", m->shown, m->source->name);
	return status;
}

static int
cancel(Move *m)
{
	char	   *renamed = is_switched(m->state) ? NULL : value(m->source, &sql_renamed, m->shards, m->name);
	int			status;

	if (renamed)
		return fail(m, IN_THE_WAY, fmt("the source has %s, and not %s", renamed, m->shown),
					"It was renamed since the move began.", "Rename it back, and run the same command again.");

	/*
	 * a --reverse is taken back, and only --finish drops the way back: this
	 * command may be run twice
	 */
	if (m->state != CONTRADICTORY && (m->seen.source.mark == MARK_SERVES || m->seen.source.mark == MARK_NOT_COMPARED))
	{
		if (!m->seen.target.attached)
			return fail(m, IN_THE_WAY, fmt("the source serves %s, which was moved there", m->shown), NULL,
						"To finish that move, exchange --from and --to.");
		if (m->state == SLOT_LOST)
			return refuse(m);
		if ((status = m->state == STOPPING || m->state == WAY_BACK_PARTLY ? reach(m, GOAL_PREPARED) : DONE) == DONE)
			say("%s: the source serves it, and the way back is kept", m->shown);
		return status;
	}
	if ((status = reach(m, GOAL_CANCELLED)) == DONE)
		say("%s: cancelled, both sides are as before", m->shown);
	return status;
}

/* What is left of a move that was made is a move in the other direction. */
static int
finish(Move *m)
{
	Server	   *from = m->source;

	if (m->state == OTHER_DIRECTION || m->state == CONTRADICTORY)
		return refuse(m);
	if (m->seen.source.mark == MARK_SERVES || m->seen.source.mark == MARK_NOT_COMPARED)
		return fail(m, IN_THE_WAY, fmt("the source serves %s, which was moved there", m->shown), NULL,
					"To finish that move, exchange --from and --to.");
	if (m->state != MOVED && m->state != NOT_COMPARED)
		return fail(m, IN_THE_WAY, fmt("%s is not moved yet", m->shown), "The source may still serve it.",
					"Run the command without --finish, to its end.");
	m->source = m->target;
	m->target = from;
	return drop_old(m);
}

/* See that a move that is under way can go on by this command. */
static int
check_going_on(Move *m, Mode mode)
{
	bool		by_dump = m->seen.source.by_dump && m->seen.source.mark == MARK_COPYING;
	char	   *missing;

	/* reach() begins, ends or refuses these */
	if (m->state == NOT_BEGUN || is_switched(m->state) || m->state >= OLD_COPY)
		return DONE;
	if (mode == SWITCH && !(m->seen.target.has_subscription && m->seen.target.enabled))
		return fail(m, USAGE, fmt("the move of %s is not prepared", m->shown), "The target does not follow yet.",
					"Run it with --prepare, or without a command.");
	if (by_dump && !m->options.by_dump)
		return fail(m, USAGE, fmt("the move of %s has begun with --dump", m->shown),
					m->state == STOPPING ? "Writes are refused." : NULL, "Run it with --dump, or --cancel it.");
	if (!by_dump && m->options.by_dump)
		return fail(m, USAGE, fmt("the move of %s has begun without --dump", m->shown), NULL,
					"Run it without --dump, or --cancel it.");
	missing = value(m->source, &sql_missing_schemas, m->shards);
	if (missing)
		return fail(m, IN_THE_WAY, fmt("the source has no schema %s", missing),
					"It was dropped or renamed since the move began.",
					"Rename it back, and run the same command again, or --cancel.");
	return m->seen.target.attached && m->state != SLOT_LOST ? set_connection(m) : settled(m, "cannot go on");
}

static int
move(Move *m, Mode mode)
{
	int			status;

	if (m->options.reverse && m->state == NOT_BEGUN)
		return fail(m, IN_THE_WAY, fmt("there is no way back for %s", m->shown), "It was not moved from there.", NULL);
	if (mode == CHECK_ONLY && m->state != NOT_BEGUN && !is_switched(m->state) && m->state != OTHER_DIRECTION)
		return fail(m, USAGE, fmt("the move of %s has begun", m->shown), "It was checked then.",
					"--status tells how far it is.");
	if (mode == CHECK_ONLY && m->state == NOT_BEGUN)
	{
		if ((status = check(m)) == DONE && !m->options.json)
			say("nothing is in the way");
		return status;
	}
	if ((status = check_going_on(m, mode)))
		return status;
	if (mode == PREPARE && !is_switched(m->state))
	{
		if ((status = reach(m, GOAL_PREPARED)) == DONE)
			say("%s: prepared, the target follows; --switch goes on", m->shown);
		return status;
	}
	if ((status = reach(m, m->options.by_dump ? GOAL_DUMPED : GOAL_MOVED)))
		return status;
	if (m->state == NOT_COMPARED)
		say("the rows were not compared: --finish does it");
	say("%s: moved, the %s serves it; next%s: --finish%s", m->shown, m->target->name,
		m->options.reverse ? ", with --from and --to exchanged" : "", has_way_back(m) ? ", or --reverse" : "");
	return DONE;
}

static int
work(Move *m, Mode mode, const char *patterns)
{
	bool		is_new = mode == MOVE || mode == PREPARE || mode == CHECK_ONLY;
	int			status;

	for (int i = 0; i < 2; i++)
	{
		Server	   *s = i ? m->target : m->source;
		PGresult   *found = rows(s, &sql_edition, m->options.trusted);
		char	   *role = column(found, 0, "owner");

		if (role)
			return fail(m, IN_THE_WAY, fmt("%s of the %s belongs to %s", column(found, 0, "name"), s->name, role),
						"What this role puts there would run with your rights.",
						fmt("Drop it, or connect as %s, or trust this role: --trust %s", role, quoted(role)));
		s->edition = column(found, 0, "edition");
		if (!s->edition && !s->error)
			return fail(m, IN_THE_WAY, fmt("the %s has no instaid", s->name), "Its database is empty, or another one.",
						"CREATE EXTENSION instaid there, or install the SQL edition, and run the same command again.");
	}
	if (mode == STATUS)
		return show_all(m, patterns);
	if ((status = read_marks(m, m->source, m->target, patterns))
		|| (status = read_marks(m, m->target, m->source, patterns))
		|| (!m->name && (status = check_others(m, patterns)))
		|| (!m->name && is_new && patterns && (status = choose_shards(m, patterns))))
		return status;
	if (!m->name && is_new)
		return fail(m, USAGE, "no move is under way between these databases", NULL, "Name the shards to move.");
	if (!m->name)
	{
		printf("no such move is under way between these databases\n");
		return mode == CANCEL || mode == FINISH ? DONE : IN_THE_WAY;
	}
	m->shown = value(m->source, &sql_shown, m->shards, "4");
	if (mode != VERIFY && (status = lock(m)))
		return status;
	if (!read_evidence(m))
		return settled(m, "cannot see the state");
	return mode == VERIFY ? verify(m) : mode == CANCEL ? cancel(m) : mode == FINISH ? finish(m) : move(m, mode);
}

/*** Arguments ***/

/*
 * A connection string for the servers.  The copy of a table would lack the rows that row security hides from its role,
 * or from one that the database's owner has set for all sessions: it fails instead.
 */
static const char *
for_server(const char *conninfo)
{
	PQconninfoOption *given = PQconninfoParse(conninfo, NULL);
	char	   *text = "";

	/* what is wrong is told when it is used */
	for (PQconninfoOption *o = given; o && o->keyword; o++)
	{
		bool		is_options = strcmp(o->keyword, "options") == 0;
		char	   *value = is_options ? fmt("%s -c role=none -c row_security=off", o->val ? o->val : "") : o->val;

		if (!value)
			continue;
		text = fmt("%s%s%s='", text, *text ? " " : "", o->keyword);
		for (; *value; value++)
			text = fmt(*value == '\'' || *value == '\\' ? "%s\\%c" : "%s%c", text, *value);
		text = fmt("%s'", text);
	}
	return given ? text : conninfo;
}

/* The number that an option gives; false if it gives none */
static bool
read_number(const char *option, const char *given, double least, double *number)
{
	char	   *end;
	const double most = 86400;

	*number = strtod(given, &end);
	/* a NaN is not in this range, either */
	if (end != given && !*end && *number >= least && *number <= most)
		return true;
	fprintf(stderr, "instaid-move: %s is not a number for --%s\n  why:  It is from %g to %g.\n  next: See --help.\n",
			given, option, least, most);
	return false;
}

/* Wrong arguments; returns the exit status. */
static int
wrong(const char *what, const char *why)
{
	fprintf(stderr, "instaid-move: %s\n", what);
	if (why)
		fprintf(stderr, "  why:  %s\n", why);
	fprintf(stderr, "  next: See --help.\n");
	return USAGE;
}

int
main(int argc, char **argv)
{
	enum
	{
		O_FROM = 1000, O_TO, O_FROM_REACH, O_TO_REACH, O_WAIT, O_STOP, O_HOOK, O_REVERSE, O_ONE_WAY,
		O_NO_VERIFY, O_DUMP, O_FULL, O_TRUST, O_JSON, O_STATES, O_HELP
	};
	static const struct option options[] = {
		{"from", required_argument, NULL, O_FROM}, {"to", required_argument, NULL, O_TO},
		{"source-for-target", required_argument, NULL, O_FROM_REACH},
		{"target-for-source", required_argument, NULL, O_TO_REACH},
		{"max-wait", required_argument, NULL, O_WAIT}, {"max-stop", required_argument, NULL, O_STOP},
		{"on-switch", required_argument, NULL, O_HOOK}, {"one-way", no_argument, NULL, O_ONE_WAY},
		{"no-verify", no_argument, NULL, O_NO_VERIFY},
		{"check-only", no_argument, NULL, CHECK_ONLY}, {"prepare", no_argument, NULL, PREPARE},
		{"status", no_argument, NULL, STATUS}, {"switch", no_argument, NULL, SWITCH},
		{"verify", no_argument, NULL, VERIFY}, {"finish", no_argument, NULL, FINISH},
		{"cancel", no_argument, NULL, CANCEL}, {"reverse", no_argument, NULL, O_REVERSE},
		{"dump", no_argument, NULL, O_DUMP}, {"full-identity", no_argument, NULL, O_FULL},
		{"trust", required_argument, NULL, O_TRUST},
		{"json", no_argument, NULL, O_JSON}, {"states", no_argument, NULL, O_STATES},
		{"help", no_argument, NULL, O_HELP}, {NULL, 0, NULL, 0}
	};
	static Server source = {.name = "source"},
				target = {.name = "target"};
	Move		m = {.options = {.max_wait = 60,.max_stop = 3,.compares = true},.source = &source,.target = &target,
	.may_be_told = true};
	Mode		mode = MOVE;
	char	   *patterns = NULL;
	int			option,
				commands = 0,
				status;

	signal(SIGPIPE, SIG_IGN);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (option)
		{
			case O_FROM:
				source.conninfo = optarg;
				break;
			case O_TO:
				target.conninfo = optarg;
				break;
			case O_FROM_REACH:
				source.reach = optarg;
				break;
			case O_TO_REACH:
				target.reach = optarg;
				break;
			case O_WAIT:
				if (!read_number("max-wait", optarg, 0, &m.options.max_wait))
					return USAGE;
				break;
			case O_STOP:
				if (!read_number("max-stop", optarg, 0.001, &m.options.max_stop))
					return USAGE;
				break;
			case O_HOOK:
				m.options.hook = optarg;
				break;
			case O_ONE_WAY:
				m.options.one_way = true;
				break;
			case O_DUMP:
				m.options.by_dump = m.options.one_way = true;
				break;
			case O_NO_VERIFY:
				m.options.compares = false;
				break;
			case O_FULL:
				m.options.full_identity = true;
				break;
			case O_TRUST:
				m.options.trusted = append(m.options.trusted, optarg);
				break;
			case O_JSON:
				m.options.json = true;
				break;
			case O_REVERSE:
				m.options.reverse = true;
				commands++;
				break;
			case O_STATES:
				print_states();
				return DONE;
			case O_HELP:
				fputs(usage, stdout);
				return DONE;
			case '?':
				return USAGE;
			default:
				mode = option;
				commands++;
		}
	if (commands > 1)
		return wrong("more than one command", NULL);
	if (!source.conninfo || !target.conninfo)
		return wrong("--from and --to are needed", NULL);
	if (m.options.by_dump && (mode == PREPARE || mode == SWITCH || m.options.reverse))
		return wrong("--dump has no --prepare, --switch or --reverse", "It copies while writes are refused.");
	for (; optind < argc; optind++)
		patterns = append(patterns, argv[optind]);
	if (m.options.reverse)
	{
		Server		other = source;

		say("the way back: from here on, the source is what --to names");
		source.conninfo = target.conninfo;
		source.reach = target.reach;
		target.conninfo = other.conninfo;
		target.reach = other.reach;
	}
	source.reach = for_server(source.reach ? source.reach : source.conninfo);
	target.reach = for_server(target.reach ? target.reach : target.conninfo);
	server_connect(&source);
	server_connect(&target);
	status = settled(&m, "cannot connect");
	if (!status && strcmp(source.id, target.id) == 0)
		status = fail(&m, USAGE, "--from and --to are one database", source.id, NULL);
	if (!status)
		status = work(&m, mode, patterns);
	if (status && m.what)
		print_failure(&m);
	return status;
}
