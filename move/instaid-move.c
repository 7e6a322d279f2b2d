/*
 * instaid-move: move shards to another database, by logical replication.
 *
 * A move has a publication and a slot on the source, and a subscription on the target.  The
 * comment of the publication is its mark: it names the shards and the state, and is written in
 * the transaction of the step that it tells.  Before the switch, the same is made for the way
 * back.  The switch exchanges the two: what remains of a move is the way back, which is a move
 * in the other direction that has not been switched.  So --reverse is the switch of that one,
 * and --finish its cancellation.
 *
 *	 nothing	-> publication on the source -> slot on the source
 *				-> schemas, frozen, and subscription on the target, in one transaction
 *				-> the subscription follows
 *				-> way back: publication and slot on the target, subscription on the source, disabled
 *	 "stopping" -> the source refuses writes
 *	 "switched" on the target's publication, in the transaction that thaws the shards there; from
 *				here on, the target has them.  The subscription of the way back starts.
 *	 "back, not compared", and "back" when the rows were compared
 *
 * With --dump there is only the mark on the source until then: one transaction makes, fills, compares
 * and thaws the shards on the target, while the source refuses writes.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "move.h"
#include "plan.h"
#include "queries.h"

enum
{
	MOVE, CHECK_ONLY, PREPARE, STATUS, SWITCH, VERIFY, FINISH, CANCEL
};

static Side source = {.name = "source"};
static Side target = {.name = "target"};
Side	   *const from = &source;
Side	   *const to = &target;

static int	mode = MOVE;
bool		one_way = false;
bool		by_dump = false;
bool		verify_rows = true;
bool		reverse = false;
double		max_wait = 60;
double		max_stop = 3;
const char *hook = NULL;
char	   *trusted = NULL;
static char *patterns = NULL;	/* the arguments, an array; null for all */

/* the move at work: what its publications and subscriptions are called, and its shards */
char	   *name = NULL;
char	   *shards = NULL;
char	   *frozen = NULL;		/* those that were frozen before the move */
char	   *shown = NULL;

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
"  --cancel       before the switch: leave both sides as they were\n"
"  --reverse      after the switch: bring the shards back, with what was written meanwhile\n"
"  --finish       after the switch: drop the shards on the source, and the way back\n"
"\n"
"Options:\n"
"  --max-stop SECONDS   take a switch back if writes are refused for longer (3)\n"
"  --max-wait SECONDS   try to switch for so long (60)\n"
"  --on-switch COMMAND  run this while writes are refused, to tell the clients' router: with\n"
"                       INSTAID_MOVE=switch, or =back if the switch is taken back after it,\n"
"                       and the shards in INSTAID_MOVE_SHARDS\n"
"  --one-way            prepare no way back: the target's wal_level can be replica\n"
"  --dump               do not replicate, for roles that may not: copy the rows while writes are\n"
"                       refused; there is no way back\n"
"  --trust ROLE         restore definitions of this role, whose functions run with the rights of\n"
"                       yours\n"
"  --no-verify          do not compare the rows after the switch\n"
"  --source-for-target CONNECTION, --target-for-source CONNECTION\n"
"                       how the servers reach each other, if not as this program does; the\n"
"                       servers store it, and the password in it\n"
"\n"
"Exit status: 0 done, 1 a command failed, 2 wrong usage, 3 no connection, 4 another run is at\n"
"work, 5 something is in the way, 6 the sides differ, 7 the replication does not go on, 8 not\n"
"switched within --max-wait, 9 --on-switch failed. After 5 to 9 of a switch that was not made,\n"
"the source takes writes.\n";

/* The command that marks a move from one side to the other. */
char *
mark(Side *f, Side *t, const char *state, bool is_one_way)
{
	const char *values[] = {name, shards, frozen, f->id, t->id, state, is_one_way ? "t" : "f"};
	PGresult   *result = ask(f, MARK, 7, values);
	char	   *command;

	if (!result)
		stop(FAILED, fmt("a query on the %s failed", f->name), f->error,
			 "Run the same command again.");
	command = strdup(PQgetvalue(result, 0, 0));
	PQclear(result);
	return command;
}

void
set(char **variable, const char *text)
{
	free(*variable);
	*variable = text ? strdup(text) : NULL;
}

/* Read the marks of a side that the arguments choose, or the one of the move at work. */
static void
read_marks(Side *side, Side *other, bool by_name)
{
	PGresult   *marks = query(side, MARKS, by_name ? NULL : patterns, NULL);

	side->marked = false;
	for (int i = 0; i < PQntuples(marks); i++)
	{
#define GET(column) PQgetvalue(marks, i, column)
		if (strcmp(GET(1), side->id) != 0)
			stop(IN_THE_WAY, fmt("publication %s of the %s is not of this database", GET(0),
								 side->name),
				 fmt("It is the mark of a move from %s, and this database is %s: a copy?",
					 GET(1), side->id),
				 fmt("If it is a copy, DROP PUBLICATION %s.", GET(0)));
		if (strcmp(GET(2), other->id) != 0 || (by_name && strcmp(GET(0), name) != 0))
			continue;
		if (name && strcmp(GET(0), name) != 0)
			stop(USAGE, "more than one move is under way between these databases",
				 fmt("%s and %s are two of them.", GET(0), name),
				 "Name the shards of one of them; --status shows all.");
		if (!by_name && patterns && GET(9)[0] != 't')
			stop(USAGE, "these are not the shards of the move that is under way",
				 fmt("It moves %s.", GET(6)), "Name all of them, or none.");
		set(&name, GET(0));
		set(&shards, GET(7));
		set(&frozen, GET(8));
		side->marked = true;
		set(&side->state, GET(3));
		set(&side->lsn, PQgetisnull(marks, i, 4) ? NULL : GET(4));
		side->one_way = GET(5)[0] == 't';
#undef GET
	}
	PQclear(marks);
}

void
look_at(Side *side)
{
	PGresult   *sub = query(side, SUBSCRIPTION, name, NULL);
	bool		there = PQntuples(sub) > 0;
	char	   *slots;

	set(&side->sub, there ? PQgetvalue(sub, 0, 0) : NULL);
	side->enabled = there && PQgetvalue(sub, 0, 1)[0] == 't';
	PQclear(sub);
	free(side->slot);
	side->slot = fmt("%s_%s", name, strchr(side->id, '/') + 1);
	slots = value(side, "SELECT 1 FROM pg_replication_slots WHERE slot_name = $1", side->slot, NULL);
	side->has_slot = slots != NULL;
	free(slots);
}

/* See what is there of the move at work. */
void
look(void)
{
	read_marks(from, to, true);
	read_marks(to, from, true);
	look_at(from);
	look_at(to);
}

bool
is_state(Side *side, const char *state)
{
	return side->marked && strcmp(side->state, state) == 0;
}

/* Does it serve the shards since a move that is cleaned up? */
bool
is_moved(Side *side)
{
	return is_state(side, "back") || is_state(side, NOT_COMPARED);
}

/* Does the target have the shards since this move, or since an earlier run of it? */
static bool
is_switched(void)
{
	return is_state(to, "switched") || is_moved(to);
}

/* The source refuses writes, and the move can still be taken back. */
static bool
is_stopping(void)
{
	return is_state(from, "copying, stopping") || is_state(from, "back, stopping");
}

/* Is it a move in the other direction, which is not at its end? */
static bool
is_other_way(void)
{
	return !is_switched() && ((to->marked && !is_state(to, "prepared")) || is_state(from, "prepared")
							  || is_state(from, "switched"));
}

/* What this direction calls a copy may have rows that the other side has not yet. */
static void
refuse_other_way(void)
{
	if (is_other_way())
		stop(IN_THE_WAY, fmt("a move of %s in the other direction is under way", shown),
			 "It is not at its end.", "Exchange --from and --to, and run it, or --cancel it.");
}

static void
show_shards(void)
{
	free(shown);
	shown = value(from, "SELECT CASE WHEN cardinality($1::text[]) <= 4"
				  " THEN array_to_string($1::text[], ', ')"
				  " ELSE format('%s shards', cardinality($1::text[])) END", shards, NULL);
}

/*
 * One run at a time: a lock in the sessions that do the work.  The server ends such a session,
 * and with it the lock, when its program is gone.
 */
static void
lock(Side *side)
{
	double		until = now() + 5;
	const char *number = name + strlen("instaid_move_");

	for (;;)
	{
		char	   *got = value(side, "SELECT pg_try_advisory_lock(hashtext('instaid-move'), $1::integer)",
								number, NULL);
		bool		mine = got[0] == 't';

		free(got);
		if (mine)
			break;
		if (now() > until)
			stop_busy(side, number, fmt("another run is moving %s", shown),
					  "Wait for it, or end the session with pg_terminate_backend().");
		nap(0.2);
	}
}

/* See that each argument chooses a shard of the source. */
static void
check_names(void)
{
	char	   *missing = value(from, UNMATCHED, patterns, NULL),
			   *there;

	if (!missing)
		return;
	there = value(to, "SELECT string_agg(schema_name, ', ') FROM instaid.shards WHERE "
				  MATCHES("schema_name::text"), missing, NULL);
	stop(IN_THE_WAY, fmt("the source has no such shard: %s",
						 value(from, SHOWN, missing, NULL)),
		 there ? fmt("The target has %s.", there) : "The target has not, either.",
		 "SELECT schema_name FROM instaid.shards lists them.");
}

/* Choose the shards of a new move, or find the move at work. */
static void
find_move(void)
{
	PGresult   *found;

	read_marks(from, to, false);
	read_marks(to, from, false);
	if (!name)
	{
		if (!patterns || (mode != MOVE && mode != PREPARE && mode != CHECK_ONLY))
			return;
		check_names();
		found = query(from, SHARDS, patterns, NULL);
		set(&shards, PQgetvalue(found, 0, 0));
		name = fmt("instaid_move_%s", PQgetvalue(found, 0, 1));
		set(&frozen, PQgetvalue(found, 0, 2));
		PQclear(found);
	}
	show_shards();
	if (mode != STATUS && mode != VERIFY)
	{
		lock(from);
		lock(to);
	}
	look();
}

static void
begin(void)
{
	char	   *other;
	char	   *command = publication(from, to, "copying", false);

	/* two runs with one shard in common have two locks */
	if (!try(from, "BEGIN; SELECT pg_advisory_xact_lock(hashtext('instaid-move'), -1)"))
		stop_busy(from, "-1", "another move begins",
				  "Wait for it, or end the session with pg_terminate_backend().");
	other = value(from, "SELECT pubname FROM (" MARKS ") AS m LIMIT 1", shards, NULL);
	if (!other)
		other = value(to, "SELECT pubname FROM (" MARKS ") AS m LIMIT 1", shards, NULL);
	if (other)
		stop(IN_THE_WAY, fmt("a shard of %s is in another move, or in the way back of one", shown),
			 fmt("Publication %s is its mark.", other), "Finish or cancel that one first.");
	run(from, fmt("%s; COMMIT", command));
	free(command);
	step("begun");
}

/* See that a side does not serve the shards, and that nothing else would be dropped with them. */
static void
check_copy(Side *side)
{
	char	   *live = value(side, LIVE, shards, NULL);
	PGresult   *dependants;

	if (live)
		stop(IN_THE_WAY, fmt("the %s serves %s", side->name, live), "It is not dropped.",
			 "--status tells the state.");
	dependants = query(side, DEPENDANTS, shards, NULL);
	for (int i = 0; i < PQntuples(dependants); i++)
		printf("  ! %s\n", PQgetvalue(dependants, i, 0));
	if (PQntuples(dependants) > 0)
		stop(IN_THE_WAY, fmt("the %s has what would be dropped with the shards", side->name),
			 "The lines above name it. Nothing was dropped.",
			 "Drop or change it, and run the same command again.");
	PQclear(dependants);
}

/* End a move from one side to the other, and drop its copy. */
static void
dismantle(Side *f, Side *t)
{
	/* without a subscription, as by --dump, the schema of the move tells */
	bool		has_copy = t->sub || value(t, REFUSES, name, NULL);

	if (has_copy)
		check_copy(t);
	detach(t);
	step("detached");
	drop_slots(f, t);
	step("slots dropped");
	if (has_copy)
	{
		if (!drop_copy(t))
			stop(NOT_NOW, fmt("cannot drop the shards of the %s", t->name), t->error,
				 "Run the same command again.");
	}
	step("copy dropped");
	run_patiently(f, DROP_GUARDS, "drop the guards of the tables");
	step("guards dropped");
	drop_publication(f);
}

static void
cancel(void)
{
	char	   *renamed;

	if (is_switched())
		stop(IN_THE_WAY, fmt("%s cannot be cancelled any more", shown),
			 "It was switched, and the target serves it.",
			 is_state(to, "switched") ? "Run the command without --cancel, to its end." :
			 to->one_way ? "--finish the move, and then move it with --from and --to exchanged." :
			 "Bring it back with --reverse.");
	refuse_other_way();
	if ((renamed = value(from, RENAMED, shards, name)))
		stop(IN_THE_WAY, fmt("the source has %s, and not %s", renamed, shown),
			 "It was renamed since the move began.", "Rename it back, and run the same command again.");
	if (to->sub)
		check_copy(to);
	if (is_stopping())
		take_back();
	step("served again");
	drop_way_back(from, to);
	step("way back dropped");
	dismantle(from, to);
	say("%s: cancelled, both sides are as before", shown);
}

static void
finish(void)
{
	char	   *tables,
			   *missing;

	refuse_other_way();
	if (is_moved(from))
		stop(IN_THE_WAY, fmt("the source serves %s, which was moved there", shown), NULL,
			 "To finish that move, exchange --from and --to.");
	if (!is_moved(to))
		stop(IN_THE_WAY, fmt("%s is not moved yet", shown), "The source may still serve it.",
			 "Run the command without --finish, to its end.");
	tables = value(from, "SELECT array_agg(format('%I.%I', n.nspname, c.relname))::text " TABLES, shards,
				   NULL);
	missing = tables ? value(to, "SELECT string_agg(x, ', ') FROM unnest($1::text[]) AS x"
							 " WHERE to_regclass(x) IS NULL", tables, NULL) : NULL;
	if (missing)
		stop(DIFFERENT, fmt("the %s has tables that the %s lacks", from->name, to->name), missing,
			 "Drop them, if nobody needs their rows, and run the same command again.");
	/* a --reverse that did not come to its end prepared one */
	drop_way_back(to, from);
	dismantle(to, from);
	say("%s: finished, only the %s has it", shown, to->name);
}

/* Is the slot of a move from here dropped, or without its WAL? */
static bool
is_lost(Side *side)
{
	return !value(side, "SELECT true FROM pg_replication_slots WHERE slot_name = $1"
				  " AND wal_status <> 'lost'", side->slot, NULL);
}

/* Is a side's slot in use for a second?  That of a worker that fails is so only at times, since it starts again. */
static bool
stays_in_use(Side *side)
{
	for (int i = 0; i < 10; i++)
	{
		PGresult   *slot = query(side, SLOT, side->slot, NULL);
		bool		is_in_use = PQntuples(slot) && PQgetvalue(slot, 0, 0)[0] == 't';

		PQclear(slot);
		if (!is_in_use)
			return false;
		nap(0.1);
	}
	return true;
}

/* The state in words, and what to do next */
static void
status(void)
{
	const char *state,
			   *next;
	PGresult   *result;
	char	   *live[2] = {value(from, LIVE, shards, NULL), value(to, LIVE, shards, NULL)};

	if (is_switched())
	{
		state = is_state(to, "switched") ? "switched, the target serves it; not cleaned up" :
			"moved, the target serves it";
		next = is_state(to, "switched") ? "run the command again, to its end" :
			is_state(to, NOT_COMPARED) ? "run the command again, which compares the rows" :
			to->one_way ? "--finish" :
			is_lost(to) ? "--finish: the slot of the way back is lost" : "--finish, or --reverse";
	}
	else if (is_other_way())
	{
		state = "a move in the other direction is under way";
		next = "exchange --from and --to";
	}
	else if (from->marked)
	{
		state = is_stopping() ? "stopping: the source refuses writes" :
			to->sub && to->enabled ? "the target follows" : "being copied";
		next = to->sub && is_lost(from) ? "the slot of the source is lost: --cancel, and begin again" :
			"run the command again or --switch, or --cancel";
	}
	else
	{
		state = "not begun";
		next = "run the command";
	}
	printf("%s: %s\n", shown, state);
	printf("  serves:  %s\n", live[0] && live[1] ? "both sides: FREEZE ONE" :
		   live[0] ? "the source" : live[1] ? "the target" : "none");
	for (int i = 0; i < 2; i++)
	{
		Side	   *f = i ? to : from,
				   *t = i ? from : to;

		if (!f->has_slot)
			continue;
		result = query(f, SLOT, f->slot, NULL);
		printf("  %s: slot %s, WAL %s, %.0f kB behind, holds %s%s\n", i ? "way back" : "copy   ",
			   PQgetvalue(result, 0, 0)[0] == 't' ? "in use" : "not in use",
			   PQgetvalue(result, 0, 1), atof(PQgetvalue(result, 0, 2)) / 1024,
			   PQgetvalue(result, 0, 3), t->sub ? "" : ", no subscription");
		PQclear(result);
		if (t->sub)
		{
			result = query(t, PROGRESS, t->sub, NULL);
			printf("            %s of %s tables, %s, %s error%s\n", PQgetvalue(result, 0, 0),
				   PQgetvalue(result, 0, 1), PQgetvalue(result, 0, 2), PQgetvalue(result, 0, 3),
				   strcmp(PQgetvalue(result, 0, 3), "1") == 0 ? "" : "s");
			if (atoi(PQgetvalue(result, 0, 3)) > 0)
				printf("            %s\n", worker_message(t) + 1);
			/* what was changed on the side that serves cannot come back before the other has it, too */
			if (i && is_switched() && atoi(PQgetvalue(result, 0, 3)) > 0 && !stays_in_use(f))
				next = "let the way back apply the changes, which fails, or --finish";
			PQclear(result);
		}
	}
	printf("  next:    %s\n", next);
}

/* From wherever the move is to its end. */
static void
move(void)
{
	char	   *existing;

	if (!is_switched())
	{
		refuse_other_way();
		if (reverse && !from->marked)
			stop(IN_THE_WAY, fmt("there is no way back for %s", shown), "It was not moved from there.",
				 NULL);
		if (reverse && from->one_way)
			stop(IN_THE_WAY, fmt("there is no way back for %s", shown), "It was moved --one-way.",
				 "--finish the move, and then move it with --from and --to exchanged.");
		if (!from->marked)
		{
			check();
			if (mode == CHECK_ONLY)
			{
				say("nothing is in the way");
				return;
			}
			begin();
			look();
		}
		else if (mode == CHECK_ONLY)
			stop(USAGE, fmt("the move of %s has begun", shown), "It was checked then.",
				 "--status tells how far it is.");
		if (mode == SWITCH && !(to->sub && to->enabled))
			stop(USAGE, fmt("the move of %s is not prepared", shown), "The target does not follow yet.",
				 "Run it with --prepare, or without a command.");
		if (by_dump && (to->sub || from->has_slot))
			stop(USAGE, fmt("the move of %s has begun without --dump", shown), NULL,
				 "Run it without --dump, or --cancel it.");
		if (!by_dump && !is_moved(from) && !to->sub && !from->has_slot
			&& value(from, BEGUN_BY_DUMP, shards, name))
			stop(USAGE, fmt("the move of %s has begun with --dump", shown),
				 is_stopping() ? "Writes are refused." : NULL, "Run it with --dump, or --cancel it.");
		if (is_stopping())
			take_back();
		if (!(existing = value(from, EXISTING, shards, NULL)))
			stop(IN_THE_WAY, fmt("the source has no schema of %s", shown),
				 "It was dropped or renamed since the move began.",
				 "Rename it back, and run the same command again, or --cancel.");
		free(existing);
		run_patiently(from, MISSING_GUARDS, "put guards on the tables");
		step("guards");
		if (by_dump)
			rehearse();
		else if (!to->sub)
		{
			if (!from->has_slot)
			{
				create_slot(from);
				step("slot");
			}
			define();
		}
		else
			set_connection();
		if (!by_dump && !from->has_slot)
			stop(BROKEN, fmt("the slot %s of the source is gone", from->slot), NULL,
				 "--cancel, and begin again.");
		if (!by_dump)
			follow(0);
		if (!run_each(to, UNANALYZED, shards, NULL))
			say("cannot ANALYZE: %s", to->error);
		step("following");
		if (mode == PREPARE)
		{
			say("%s: prepared, the target follows; --switch goes on", shown);
			return;
		}
		switch_over();
	}
	if (is_state(to, "switched"))
		clean_up();
	if (is_state(to, NOT_COMPARED))
	{
		/* the snapshots of the switch are gone with the run that made it */
		bool		is_late = !from->snapshot;

		if (is_late && verify_rows && !to->one_way)
		{
			say("%s: comparing the rows", shown);
			open_readers();
		}
		if (!from->snapshot)
			say("the rows were not compared%s", to->one_way ? "" : ": --verify does it");
		else if (verify(from->snapshot, to->snapshot, !is_late))
			stop(DIFFERENT, fmt("%s is moved, and rows differ", shown),
				 "The lines above name them. The target serves the shards.",
				 "--reverse brings them back; or repair the rows on the target.");
		run(to, mark(to, from, "back", to->one_way));
	}
	say("%s: moved, the %s serves it; next%s: --finish%s", shown, to->name,
		reverse ? ", with --from and --to exchanged" : "", to->one_way ? "" : ", or --reverse");
}

/* Tell the state of each move between the two databases. */
static int
show_status(void)
{
	PGresult   *names[2] = {query(from, MARKS, patterns, NULL), query(to, MARKS, patterns, NULL)};
	int			found = 0;

	for (int i = 0; i < 2; i++)
		for (int row = 0; row < PQntuples(names[i]); row++)
		{
			const char *other = (i ? from : to)->id;

			set(&name, PQgetvalue(names[i], row, 0));
			if (strcmp(PQgetvalue(names[i], row, 2), other) != 0)
				continue;
			look();
			/* what both sides have was told */
			if (i && from->marked)
				continue;
			show_shards();
			status();
			found++;
		}
	if (!found)
		printf("no move is under way between these databases\n");
	return 0;
}

static int
nothing_found(void)
{
	if (mode != MOVE && mode != PREPARE && mode != CHECK_ONLY)
	{
		printf("no such move is under way between these databases\n");
		return mode == CANCEL || mode == FINISH ? 0 : IN_THE_WAY;
	}
	stop(USAGE, "no move is under way between these databases", NULL, "Name the shards to move.");
}

int
main(int argc, char **argv)
{
	enum
	{
		O_FROM = 1000, O_TO, O_FROM_REACH, O_TO_REACH, O_WAIT, O_STOP, O_HOOK, O_REVERSE, O_ONE_WAY,
		O_NO_VERIFY, O_DUMP, O_TRUST, O_HELP
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
		{"dump", no_argument, NULL, O_DUMP}, {"trust", required_argument, NULL, O_TRUST},
		{"help", no_argument, NULL, O_HELP}, {NULL, 0, NULL, 0}
	};
	int			option;

	signal(SIGPIPE, SIG_IGN);
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--plan") == 0)
			return plan(argc, argv);
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (option)
		{
			case O_FROM:
				from->conninfo = optarg;
				break;
			case O_TO:
				to->conninfo = optarg;
				break;
			case O_FROM_REACH:
				from->reach = optarg;
				break;
			case O_TO_REACH:
				to->reach = optarg;
				break;
			case O_WAIT:
				max_wait = number("max-wait", optarg, 0, 86400);
				break;
			case O_STOP:
				max_stop = number("max-stop", optarg, 0.001, 86400);
				break;
			case O_HOOK:
				hook = optarg;
				break;
			case O_ONE_WAY:
				one_way = true;
				break;
			case O_DUMP:
				by_dump = one_way = true;
				break;
			case O_NO_VERIFY:
				verify_rows = false;
				break;
			case O_TRUST:
				trusted = append(trusted, optarg);
				break;
			case O_REVERSE:
				reverse = true;
				break;
			case O_HELP:
				fputs(usage, stdout);
				fputs(plan_usage, stdout);
				return 0;
			case '?':
				return USAGE;
			default:
				set_command(&mode, option);
		}
	if (!from->conninfo || !to->conninfo)
		stop(USAGE, "--from and --to are needed", NULL, "See --help.");
	if (by_dump && (mode == PREPARE || mode == SWITCH || reverse))
		stop(USAGE, "--dump has no --prepare, --switch or --reverse", "It copies while writes are refused.",
			 "See --help.");
	for (; optind < argc; optind++)
		patterns = append(patterns, argv[optind]);
	if (reverse)
	{
		Side		other = *from;

		set_command(&mode, MOVE);
		say("the way back: from here on, the source is what --to names");
		from->conninfo = to->conninfo;
		from->reach = to->reach;
		to->conninfo = other.conninfo;
		to->reach = other.reach;
	}
	for (int i = 0; i < 2; i++)
	{
		Side	   *side = i ? to : from;

		if (!side->reach)
			side->reach = side->conninfo;
		side->conn = open_connection(side);
		side->id = value(side, WHO, NULL, NULL);
	}
	if (strcmp(from->id, to->id) == 0)
		stop(USAGE, "--from and --to are one database", from->id, NULL);
	if (mode == STATUS)
		return show_status();
	find_move();
	if (!name)
		return nothing_found();
	switch (mode)
	{
		case CANCEL:
			cancel();
			break;
		case FINISH:
			finish();
			break;
		case VERIFY:
			if (!(from->sub ? from : to)->sub)
				stop(USAGE, fmt("%s has no copy to compare", shown), NULL, "--status tells the state.");
			open_readers();
			if (verify(from->snapshot, to->snapshot, false))
				stop(DIFFERENT, "rows differ", "The lines above name them.",
					 "Repair the copy, or --cancel the move.");
			break;
		default:
			move();
	}
	return 0;
}
