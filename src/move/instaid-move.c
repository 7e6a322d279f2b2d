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
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plan.h"
#include "queries.h"
#include "servers.h"

/* the test of 040_move.pl compiles it with a function that can kill */
#ifdef INSTAID_MOVE_STEP
extern void INSTAID_MOVE_STEP(const char *name);
#define step(name) INSTAID_MOVE_STEP(name)
#else
#define step(name) ((void) 0)
#endif

/* the WAL that may be left to apply when the source is stopped; it may be more the longer that takes */
#define SMALL_LAG (128 * 1024)
/* how long a command waits for a lock of others, who wait behind it */
#define PATIENCE "300ms"

enum
{
	MOVE, CHECK_ONLY, PREPARE, STATUS, SWITCH, VERIFY, FINISH, CANCEL
};

static Side source = {.name = "source"};
static Side target = {.name = "target"};
static Side *const from = &source;
static Side *const to = &target;

static int	mode = MOVE;
static bool one_way = false;
static bool by_dump = false;
static bool verify_rows = true;
static bool reverse = false;
static bool take_over = false;
static bool refuses_reads = false;
static double max_wait = 60;
static double max_stop = 3;
static const char *hook = NULL;
static char *patterns = NULL;	/* the arguments, an array; null for all */

/* the move at work: what its publications and subscriptions are called, and its shards */
static char *name = NULL;
static char *shards = NULL;
static char *frozen = NULL;		/* those that were frozen before the move */
static char *shown = NULL;
static int	shard_count = 0;

static bool may_be_told = true;	/* --on-switch, that the shards are switched; a killed run may have */

static volatile sig_atomic_t interrupted = 0;

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
"  --refuse-reads       refuse reads at the source after the switch, except by superusers and\n"
"                       pg_read_all_data\n"
"  --no-verify          do not compare the rows after the switch\n"
"  --take-over          end another run of the same move\n"
"  --source-for-target CONNECTION, --target-for-source CONNECTION\n"
"                       how the servers reach each other, if not as this program does; the\n"
"                       servers store it, and the password in it\n"
"\n"
"Exit status: 0 done, 1 a command failed, 2 wrong usage, 3 no connection, 4 another run is at\n"
"work, 5 something is in the way, 6 the sides differ, 7 the replication does not go on, 8 not\n"
"switched within --max-wait, 9 --on-switch failed. After 5 to 9 of a switch that was not made,\n"
"the source takes writes.\n";

/* Append to an array, as a literal of PostgreSQL. */
char *
append(char *array, const char *element)
{
	char	   *longer = malloc((array ? strlen(array) : 2) + 2 * strlen(element) + 4);
	char	   *end;

	strcpy(longer, array ? array : "{}");
	end = longer + strlen(longer) - 1;
	if (end > longer + 1)
		*end++ = ',';
	*end++ = '"';
	for (; *element; element++)
	{
		if (*element == '"' || *element == '\\')
			*end++ = '\\';
		*end++ = *element;
	}
	strcpy(end, "\"}");
	free(array);
	return longer;
}

/* The command that marks a move from one side to the other. */
static char *
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

static int	verify(PGconn *of_source, PGconn *of_target, bool is_quiet);

static void
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

static void
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
static void
look(void)
{
	read_marks(from, to, true);
	read_marks(to, from, true);
	look_at(from);
	look_at(to);
}

static bool
is_state(Side *side, const char *state)
{
	return side->marked && strcmp(side->state, state) == 0;
}

/* Does it serve the shards since a move that is cleaned up? */
static bool
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
	char	   *count = value(from, "SELECT cardinality($1::text[])", shards, NULL);

	shard_count = atoi(count);
	free(count);
	free(shown);
	shown = value(from, "SELECT CASE WHEN cardinality($1::text[]) <= 4"
				  " THEN array_to_string($1::text[], ', ')"
				  " ELSE format('%s shards', cardinality($1::text[])) END", shards, NULL);
}

/* End because of who holds a lock, as any role can. */
void
stop_busy(Side *side, const char *number, const char *what, const char *next)
{
	stop(BUSY, fmt("%s with the %s", what, side->name), value(side, LOCK_HOLDER, number, NULL), next);
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
		char	   *holder;
		bool		mine = got[0] == 't';

		free(got);
		if (mine)
			break;
		if (take_over && (holder = value(side, LOCK_HOLDER, number, NULL)))
		{
			say("ending another run on the %s: %s", side->name, holder);
			free(value(side, "SELECT pg_terminate_backend(substring($1, '[0-9]+')::integer, 5000)", holder,
					   NULL));
			free(holder);
		}
		else if (now() > until)
			stop_busy(side, number, fmt("another run is moving %s", shown),
					  "Wait for it, or end it with --take-over.");
		nap(0.2);
	}
}

/* Does a side have the extension, and the other one the SQL edition, of one version? */
static bool
is_mixed(void)
{
	static int	mixed = -1;

	if (mixed < 0)
	{
		char	   *editions[2] = {value(from, EDITION, NULL, NULL), value(to, EDITION, NULL, NULL)};

		/* "no instaid" has no version */
		mixed = strcmp(editions[0], editions[1]) != 0
			&& strcmp(strrchr(editions[0], ' '), strrchr(editions[1], ' ')) == 0;
		free(editions[0]);
		free(editions[1]);
	}
	return mixed;
}

/* The sequences that issue IDs on one side or the other, if these have different editions; or null */
static char *
id_sequences(void)
{
	char	   *of_source,
			   *of_target,
			   *both;

	if (!is_mixed())
		return NULL;
	of_source = value(from, ID_SEQUENCES, shards, NULL);
	of_target = value(to, ID_SEQUENCES, shards, NULL);
	both = value(from, "SELECT ($1::text[] || $2::text[])::text", of_source, of_target);
	free(of_source);
	free(of_target);
	return both;
}

/*
 * Compare the definitions, on both sides at the same time.  This is also done while writes are
 * refused, and to plan the query takes longer than to run it.
 */
static int
compare_definitions(void)
{
	static bool is_prepared = false;
	bool		is_same = PQserverVersion(from->conn) / 10000 == PQserverVersion(to->conn) / 10000;
	char	   *sequences = id_sequences();
	const char *values[] = {shards, is_same ? "t" : "f", sequences};
	PGresult   *of_source;

	for (int i = 0; i < 2 && !is_prepared; i++)
		PQclear(PQprepare((i ? to : from)->conn, "definitions", DEFINITIONS, 3, NULL));
	is_prepared = true;
	PQsendQueryPrepared(from->conn, "definitions", 3, values, NULL, NULL, 0);
	PQsendQueryPrepared(to->conn, "definitions", 3, values, NULL, NULL, 0);
	of_source = answer(from, from->conn);
	free(sequences);
	return print_lines(differences(of_source, answer(to, to->conn)), 20);
}

static int	faults;

static void
fault(char sign, const char *text)
{
	printf("  %c %s\n", sign, text);
	faults += sign == '!';
}

static void
faults_of(Side *side, const char *sql, const char *p1, const char *p2)
{
	PGresult   *found = query(side, sql, p1, p2);

	for (int i = 0; i < PQntuples(found); i++)
		if (!PQgetisnull(found, i, 0))
			fault(PQgetvalue(found, i, 0)[0], PQgetvalue(found, i, 0) + 1);
	PQclear(found);
}

/* That a command failed because one server does not reach the other, and the option that helps */
static char *
unreachable(Side *side, Side *other)
{
	if (side->lacks_right)
		return fmt("the %s's server cannot use the %s: %s", side->name, other->name, side->error);
	return fmt("the %s's server cannot use the %s: %s; give --%s%s", side->name, other->name, side->error,
			   (other == from) != reverse ? "source-for-target" : "target-for-source",
			   reverse ? ", also with --reverse" : "");
}

/* Can one server connect to the other?  A subscription that is not kept tells. */
static bool
can_reach(Side *side, Side *other)
{
	return try(side, fmt("BEGIN; CREATE SUBSCRIPTION instaid_move_probe CONNECTION %s"
						 " PUBLICATION instaid_move_probe WITH (slot_name = NONE, create_slot = false,"
						 " enabled = false, copy_data = false); ROLLBACK", literal(side, other->reach)));
}

/* Name all that would stop the move. */
static void
check(void)
{
	char	   *editions[2] = {value(from, EDITION, NULL, NULL), value(to, EDITION, NULL, NULL)};
	char	   *tables = value(from, "SELECT count(*)::text " TABLES, shards, NULL);
	char	   *size = value(from, "SELECT pg_size_pretty(COALESCE(sum(pg_total_relation_size(c.oid)), 0)) "
							 TABLES, shards, NULL);
	char	   *used = value(from, "SELECT array_agg(x)::text FROM (" OBJECTS_USED ") AS u (x)", shards,
							 NULL);
	char	   *ids = value(from, "SELECT array_agg(shard_id)::text FROM instaid.shards"
							" WHERE schema_name = ANY ($1::text[])", shards, NULL);
	char	   *missing,
			   *owner,
			   *encodings[2] = {value(from, ENCODING, NULL, NULL), value(to, ENCODING, NULL, NULL)};
	PGresult   *dependants,
			   *tickets;
	int			versions[2] = {PQserverVersion(from->conn), PQserverVersion(to->conn)};

	faults = 0;
	say("%s: %s tables, %s", shown, tables, size);
	if (by_dump)
		say("--dump: writes will be refused while all of that is copied and compared");
	else
		faults_of(from, CHECK_PUBLISHER, shards, tables);
	/* no query tells how much is free */
	fault('-', fmt("the target needs %s of free disk or more, which is not checked", size));
	faults_of(from, CHECK_SOURCE, shards, NULL);
	dependants = query(from, DEPENDANTS, shards, NULL);
	/* partitions and children are told above, with another cure */
	for (int i = 0; i < PQntuples(dependants); i++)
		if (PQgetvalue(dependants, i, 1)[0] == 'f')
			fault('!', fmt("%s of the source uses the shards, and stays: drop it",
						   PQgetvalue(dependants, i, 0)));
	PQclear(dependants);
	if (strcmp(editions[0], editions[1]) != 0 && !is_mixed())
		fault('!', fmt("the source has %s, and the target %s: install the same version there",
					   editions[0], editions[1]));
	else
		faults_of(to, CHECK_TARGET, shards, ids);
	if (is_mixed())
		faults_of(from, CHECK_OTHER_EDITION, shards, NULL);
	faults_of(to, CHECK_OWNERS, value(from, OWNERS, shards, NULL), NULL);
	if (!by_dump)
		faults_of(to, CHECK_SUBSCRIBER, NULL, NULL);
	if (versions[1] / 10000 < versions[0] / 10000)
		fault('!', fmt("the target's PostgreSQL, %d, is older than the source's, %d",
					   versions[1] / 10000, versions[0] / 10000));
	for (int i = 0; i < 2 && used; i++)
		if ((missing = value(to, "SELECT string_agg(x, ', ') FROM (" OBJECTS_MISSING ") AS m (x)"
							 " WHERE (x ~ '^\\w+ instaid(_sql)?\\.') = $2::boolean", used, i ? "t" : "f")))
			fault('!', fmt(i ? "instaid of the target lacks what the shards use: %s; let nothing use it" :
						   "the target lacks what the shards use: %s; create it there", missing));
	tickets = query(from, TICKETS_USED, shards, NULL);
	for (int i = 0; i < PQntuples(tickets); i++)
	{
		const char *column = PQgetvalue(tickets, i, 0),
				   *ticket = PQgetvalue(tickets, i, 1),
				   *last = PQgetvalue(tickets, i, 2);

		if (value(to, HAS_TICKET, ticket, NULL))
			fault('-', fmt("%s values of ticket %s, which does not move: see that those of the target's"
						   " are others, or above %s", column, ticket, last));
		else
			fault('!', fmt("%s values of ticket %s, which does not move, and which the target lacks: run %s"
						   " there, with N well above %s, because the source goes on until the switch, and grant"
						   " the same rights on it", column, ticket, PQgetvalue(tickets, i, 3), last));
	}
	PQclear(tickets);
	if (strcmp(encodings[0], encodings[1]) != 0)
		fault('-', fmt("encoding and locale are %s on the source, %s on the target", encodings[0],
					   encodings[1]));
	for (int i = 0; i < 2; i++)
	{
		Side	   *side = i ? to : from;

		if ((owner = value(side, EDITION_OWNER, NULL, NULL)))
			fault('-', fmt("schema instaid of the %s belongs to %s: its functions run with your rights",
						   side->name, owner));
	}
	if (!by_dump && !can_reach(to, from))
		fault('!', unreachable(to, from));
	if (!one_way)
	{
		faults_of(to, CHECK_BACK_TARGET, NULL, NULL);
		if (!can_reach(from, to))
			fault('!', fmt("%s, or move with --one-way", unreachable(from, to)));
	}
	if (faults)
		stop(IN_THE_WAY, fmt("%d thing%s in the way", faults, faults > 1 ? "s are" : " is"),
			 "Each line with ! above tells the cure. Nothing was changed.",
			 "Run the same command again.");
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

/* Create the publication of a move from here: FOR TABLE ONLY, which does not break what is created
 * meanwhile. */
static char *
publication(Side *f, Side *t, const char *state, bool is_one_way)
{
	char	   *tables = is_one_way || by_dump ? NULL : value(f, PUBLISHED_TABLES, shards, NULL);
	char	   *comment = mark(f, t, state, is_one_way);
	char	   *command = fmt("CREATE PUBLICATION %s%s%s; %s", name, tables ? " FOR TABLE " : "",
							  tables ? tables : "", comment);

	free(tables);
	free(comment);
	return command;
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

/* The functions of the guards: let writes pass, or refuse them. */
static char *
guards(Side *side, const char *body)
{
	return value(side, GUARD_FUNCTION, shards, body);
}

/*
 * Run commands that need locks on tables that clients use, one by one, with as little waiting
 * as helps.
 */
static void
run_patiently(Side *side, const char *sql, const char *what)
{
	double		until = now() + max_wait;

	run(side, "SET lock_timeout = '" PATIENCE "'");
	while (!run_each(side, sql, shards, name))
	{
		if (now() > until)
			stop(NOT_NOW, fmt("cannot %s", what), side->error,
				 "Run the same command again when no long transaction uses the tables.");
		nap(0.3);
	}
	run(side, "SET lock_timeout = '10s'");
}

static void
create_slot(Side *side)
{
	char	   *writers = value(side, "SELECT string_agg(pid::text, ', ') FROM pg_stat_activity"
								" WHERE backend_xid IS NOT NULL AND xact_start < now() - interval '1 s'",
								NULL, NULL);

	if (writers)
		say("the slot waits for the open transactions of the %s's sessions %s", side->name, writers);
	free(writers);
	/* nothing of others waits behind this */
	run(side, "SET lock_timeout = 0");
	free(value(side, "SELECT pg_create_logical_replication_slot($1, 'pgoutput')", side->slot, NULL));
	run(side, "SET lock_timeout = '10s'");
	side->has_slot = true;
}

/* The definitions of the shards, or a section of them, as pg_dump writes them */
static char *
dump(const char *section)
{
	PGresult   *names = query(from, "SELECT '\"' || replace(s, '\"', '\"\"') || '\"'"
							  " FROM unnest($1::text[]) AS s", shards, NULL);
	char	  **args = calloc(2 * PQntuples(names) + 8, sizeof(char *));
	char	   *text = NULL,
			   *key;
	size_t		room = 0;
	int			n = 0,
				status,
				out[2];
	pid_t		child;
	FILE	   *output;
	bool		is_read;

	args[n++] = "pg_dump";
	args[n++] = (char *) section;
	args[n++] = "--no-publications";
	args[n++] = "--no-subscriptions";
	for (int i = 0; i < PQntuples(names); i++)
	{
		args[n++] = "-n";
		args[n++] = PQgetvalue(names, i, 0);
	}
	args[n++] = "-d";
	args[n++] = (char *) from->conninfo;
	if (pipe(out) != 0 || (child = fork()) < 0)
		stop(FAILED, "cannot start pg_dump", strerror(errno), NULL);
	if (child == 0)
	{
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		execvp(args[0], args);
		fprintf(stderr, "pg_dump: %s\n", strerror(errno));
		_exit(127);
	}
	close(out[1]);
	if (!(output = fdopen(out[0], "r")))
		abort();
	/* all of it: a dump in plain text has no zero byte */
	is_read = getdelim(&text, &room, '\0', output) > 0 && !ferror(output);
	fclose(output);
	if (waitpid(child, &status, 0) != child || status != 0 || !is_read)
		stop(FAILED, "pg_dump failed", "Its message is above.",
			 "Have the pg_dump of the source's version first in PATH, and run the same command again.");

	/*
	 * What pg_dump writes for psql, and for servers that are newer than the target.  Nothing of the
	 * shards comes before these lines.
	 */
	if ((key = strstr(text, "\\restrict ")) && key < strstr(text, "SET "))
	{
		char	   *line = strndup(key, strcspn(key, "\n"));
		char	   *end = fmt("\n\\un%s", line + 1);
		char	   *last = NULL;

		memcpy(key, "--", 2);
		for (char *at = text; (at = strstr(at, end)); at++)
			last = at;
		if (last)
			memcpy(last + 1, "--", 2);
		free(line);
		free(end);
	}
	if (PQserverVersion(to->conn) < 170000
		&& (key = strstr(text, "\nSET transaction_timeout = 0;")))
		memcpy(key + 1, "--", 2);
	/* there, the guards belong to the role that makes the shards */
	for (char *at = text; (at = strstr(at, ".instaid_move_guard() OWNER TO ")); at++)
	{
		for (key = at; key > text && key[-1] != '\n';)
			key--;
		if (strncmp(key, "ALTER FUNCTION ", 15) == 0)
			memcpy(key, "--", 2);
	}
	/* the SQL edition lacks this language; no body is looked at before _convert_shard() drops it */
	for (char *at = text; is_mixed() && (at = strstr(at, "\n    LANGUAGE instaid ")); at++)
		memcpy(at + 14, "plpgsql", 7);
	PQclear(names);
	free(args);
	return text;
}

/* After a dump: undo what it has set, and let what it has made be shards of the target's edition. */
static bool
adapt(bool has_made_shards)
{
	return try(to, "SET search_path = pg_catalog, pg_temp; SET client_min_messages = error;"
			   " SET check_function_bodies = on; SET client_encoding = 'UTF8'")
		&& (!has_made_shards || !is_mixed()
			|| (run_each(to, CONVERT, shards, NULL) && run_each(to, DROP_OLD_FUNCTIONS, shards, NULL)));
}

/* Make definitions of the shards on the target, in its transaction. */
static bool
restore(const char *section)
{
	char	   *text = dump(section);
	bool		good;

	step("dumped");
	good = try(to, text);

	free(text);
	return good && adapt(strcmp(section, "--section=post-data") != 0);
}

/* Begin the transaction that makes all definitions of the shards on the target. */
static void
make_shards(void)
{
	char	   *existing = value(to, EXISTING, shards, NULL);

	if (existing)
		stop(IN_THE_WAY, fmt("the target has %s already, and not by this move", existing), NULL,
			 "Drop or rename it there, and run the same command again, or --cancel.");
	run(to, "BEGIN");
	if (!restore("--schema-only"))
		stop(DIFFERENT, "the definitions do not fit the target", to->error,
			 "Create there what is missing, or have the pg_dump of the source's version first in PATH,"
			 " and run the same command again, or --cancel.");
}

/*
 * Make the shards on the target, frozen and guarded, and the subscription that fills them, in one
 * transaction.  The subscription does not connect: it would wait for itself if both databases
 * are on one server.
 */
static void
define(void)
{
	char	   *conninfo = literal(to, from->reach),
			   *refuse;

	make_shards();
	if (!run_each(to, FREEZE, shards, NULL))
		stop(FAILED, "cannot freeze the shards on the target", to->error,
			 "Run the same command again, or --cancel.");
	refuse = guards(to, REFUSES);
	run(to, refuse);
	if (compare_definitions())
		stop(DIFFERENT, "the definitions that arrived differ",
			 "A setting of the target, as its default privileges, has changed them.",
			 "Remove the cause there, and run the same command again, or --cancel.");
	run(to, fmt("CREATE SUBSCRIPTION %s CONNECTION %s PUBLICATION %s"
				" WITH (connect = false, slot_name = %s); COMMIT", name, conninfo, name, from->slot));
	prepare_session(to, to->conn);
	PQfreemem(conninfo);
	free(refuse);
	step("defined");
	look();
}

/* A source that moved is reached as this command says, and no more as the first one did. */
static void
set_connection(void)
{
	PGresult   *same = try_query(to, "SELECT FROM pg_subscription WHERE oid = $1::oid"
								 " AND subconninfo = $2", to->sub, from->reach);

	if (PQntuples(same) == 0)
	{
		if (!can_reach(to, from))
			stop(BROKEN, "cannot change the connection of the target", unreachable(to, from), NULL);
		run(to, fmt("ALTER SUBSCRIPTION %s CONNECTION %s", name, literal(to, from->reach)));
	}
	PQclear(same);
}

/* Let the target know which tables are published. */
static void
refresh(void)
{
	if (!try(to, fmt("ALTER SUBSCRIPTION %s REFRESH PUBLICATION", name)))
		stop(BROKEN, "the target cannot ask the source for its tables", to->error,
			 "See that its server reaches the source, and run the same command again.");
}

/* Add tables to the publication that both sides have since it was made, and let the target know. */
static void
publish_new_tables(void)
{
	char	   *count = value(from, "SELECT count(*) FROM (" UNPUBLISHED_TABLES ") AS u", shards, name);
	char	   *published = value(from, "SELECT count(*) FROM pg_publication_rel AS r JOIN pg_publication AS p"
								  " ON p.oid = r.prpubid WHERE p.pubname = $1", name, NULL);
	char	   *known = value(to, "SELECT count(*) FROM pg_subscription_rel WHERE srsubid = $1::oid",
							  to->sub, NULL);

	if (atoi(count) > 0 && !run_each(from, UNPUBLISHED_TABLES, shards, name))
		stop(FAILED, "cannot publish the new tables", from->error, "Run the same command again.");
	if (atoi(count) > 0 || strcmp(published, known) != 0)
	{
		refresh();
		step("refreshed");
	}
	free(count);
	free(published);
	free(known);
}

/*
 * The end of a table's copy drops its slot on the source, and then commits that on the target.  A
 * crash between leaves a table that waits for this slot for ever, and no error is counted.
 * Such a table is copied again.  It still is one of these until the last step is done.
 */
static bool
copy_again(void)
{
	char	   *id = fmt("%.*s", (int) strcspn(to->id, "/"), to->id);
	char	   *copied = value(to, COPIED_TABLES, to->sub, id);
	PGresult   *lost = copied ? query(from, LOST_COPIES, copied, NULL) : NULL;
	int			n = lost ? PQntuples(lost) : 0;
	char	   *still = NULL;

	if (n)
	{
		/* a copy that ends now loses its slot a moment before the table is ready */
		nap(3);
		still = value(to, COPIED_TABLES, to->sub, id);
		if (!still || strcmp(still, copied) != 0)
			n = 0;
	}
	for (int i = 0; i < n; i++)
	{
		const char *table = PQgetvalue(lost, i, 0);
		char	   *code;

		say("copying %s again: a server crashed at the end of its copy", table);
		/* no code of the table's owner may run with our rights */
		run(to, fmt("BEGIN; LOCK TABLE ONLY %s IN SHARE ROW EXCLUSIVE MODE", table));
		if ((code = value(to, CODE_OF_TABLE, table, NULL)))
			stop(BROKEN, fmt("%s cannot be copied again", table), code, "--cancel, and begin again.");
		run(to, fmt("SET LOCAL session_replication_role = replica; DELETE FROM ONLY %s; COMMIT", table));
		run(from, fmt("ALTER PUBLICATION %s DROP TABLE ONLY %s", name, table));
	}
	if (n)
		refresh();
	PQclear(lost);
	free(copied);
	free(still);
	free(id);
	return n > 0;
}

/*
 * Wait until the target has all tables, however long that takes, and then until it is near the end
 * of the source's WAL.
 */
static void
follow(double until)
{
	char	   *last = strdup("");
	double		told = 0,
				compared = 0,
				waiting = now();
	int			errors = -1,
				copied = -1;
	double		failing = 0,
				since = now();

	if (!to->enabled)
	{
		run(to, fmt("ALTER SUBSCRIPTION %s ENABLE", name));
		step("enabled");
	}
	for (;;)
	{
		PGresult   *progress,
				   *slot;
		char	   *creators,
				   *line;
		bool		is_active,
					is_there;
		double		lag;

		/* what is not committed yet cannot be compared, and is told if it lasts */
		creators = value(from, CREATORS, shards, NULL);
		if (!creators && now() - compared > 1)
		{
			compared = now();
			if (compare_definitions())
			{
				char	   *rights = value(from, KEEP_RIGHTS, shards, value(to, ALL_KEPT_RIGHTS, shards, NULL));

				stop(DIFFERENT, "the definitions of the two sides differ",
					 "They were changed since the move began.",
					 fmt("Make the same change on the target%s%s, and run the same command again, or --cancel.",
						 rights ? ", which keeps rights on a schema in a comment: " : "", rights ? rights : ""));
			}
			publish_new_tables();
		}
		if (now() - waiting > 10)
		{
			if (copy_again())
				compared = 0;
			waiting = now();
		}
		progress = query(to, PROGRESS, to->sub, NULL);
		slot = query(from, SLOT, from->slot, NULL);
		if (PQntuples(slot) == 0 || strcmp(PQgetvalue(slot, 0, 1), "lost") == 0)
			stop(BROKEN, fmt("the slot %s of the source is lost", from->slot),
				 PQntuples(slot) ? "It held more WAL than max_slot_wal_keep_size permits." :
				 "Somebody has dropped it.", "--cancel, and begin again.");
		is_active = PQgetvalue(slot, 0, 0)[0] == 't';
		lag = atof(PQgetvalue(slot, 0, 2));
		is_there = strcmp(PQgetvalue(progress, 0, 0), PQgetvalue(progress, 0, 1)) == 0;
		/* a source that was down for a while causes errors, too */
		if (atoi(PQgetvalue(progress, 0, 0)) != copied)
		{
			waiting = now();
			copied = atoi(PQgetvalue(progress, 0, 0));
			errors = atoi(PQgetvalue(progress, 0, 3));
			failing = now();
		}
		if (atoi(PQgetvalue(progress, 0, 3)) > errors + 3 && now() > failing + 10
			&& !(is_there && is_active))
			stop(BROKEN, "the target fails again and again to apply or to copy",
				 "Its server log tells why.",
				 "Remove the cause there, and run the same command again, or --cancel.");
		line = fmt("%s of %s tables copied, %s; %.0f kB behind, %s of WAL held%s%s%s",
				   PQgetvalue(progress, 0, 0), PQgetvalue(progress, 0, 1),
				   PQgetvalue(progress, 0, 2), lag / 1024, PQgetvalue(slot, 0, 3),
				   strcmp(PQgetvalue(slot, 0, 1), "unreserved") == 0 ? ", and the slot will be lost soon" : "",
				   is_active ? "" : "; no worker yet",
				   creators ? fmt("; session %s creates something in the schema", creators) : "");
		if (strcmp(line, last) != 0 && now() - told > (is_there ? 5 : 1))
		{
			say("%s", line);
			told = now();
		}
		free(last);
		last = line;
		PQclear(progress);
		PQclear(slot);
		if (!is_there)
			since = now();
		if (is_there && is_active && !creators
			&& lag < SMALL_LAG * (1 + (now() - since) * (now() - since)))
			break;
		free(creators);
		if (is_there && !until)
			until = now() + max_wait;
		if (is_there && now() > until)
			stop(NOT_NOW, fmt("not ready to switch within %.0f s", max_wait), last,
				 "Run the same command again when that has ended; the source serves, and the target follows.");
		nap(is_there ? 0.05 : 0.2);
	}
	free(last);
}

/* Wait until no worker of a disabled subscription is left, and drop its slots. */
static void
drop_slots(Side *slots, Side *sub)
{
	char	   *which = fmt("slot_name = '%s'%s", slots->slot, sub->sub ?
							fmt(" OR slot_name ~ '^pg_%s_sync_[0-9]+_%.*s$'", sub->sub,
								(int) strcspn(sub->id, "/"), sub->id) : "");
	double		until = now() + 30;

	for (;;)
	{
		char	   *workers = sub->sub ? value(sub, "SELECT count(pid) FROM pg_stat_subscription"
											   " WHERE subid = $1::oid", sub->sub, NULL) : strdup("0");
		bool		ended = strcmp(workers, "0") == 0;

		free(workers);
		if (ended || now() > until)
		{
			/* the walsender of a worker that is gone, or of a network that is */
			free(value(slots, fmt("SELECT count(pg_terminate_backend(active_pid, 1000))"
								  " FROM pg_replication_slots WHERE active AND (%s)", which), NULL, NULL));
			if (try(slots, fmt("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
							   " WHERE database = current_database() AND (%s)", which)))
				break;
			if (now() > until)
				stop(FAILED, "cannot drop the slots of the move", slots->error,
					 "Run the same command again.");
		}
		nap(0.1);
	}
	free(which);
	slots->has_slot = false;
}

/* Detach a subscription from its slot. */
static void
detach(Side *sub)
{
	if (sub->sub)
		run(sub, fmt("ALTER SUBSCRIPTION %s DISABLE; ALTER SUBSCRIPTION %s SET (slot_name = NONE)",
					 name, name));
}

/* Drop what the way back of a move from one side to the other consists of. */
static void
drop_way_back(Side *f, Side *t)
{
	detach(f);
	drop_slots(t, f);
	run(f, fmt("DROP SUBSCRIPTION IF EXISTS %s", name));
	run(t, fmt("DROP PUBLICATION IF EXISTS %s", name));
	look_at(f);
}

/* Prepare the way back: the subscription knows its tables, and starts after the switch. */
static void
prepare_way_back(void)
{
	drop_way_back(from, to);
	run(to, publication(to, from, "prepared", one_way));
	step("way back published");
	if (!one_way)
	{
		create_slot(to);
		step("way back slot");
		if (!try(from, fmt("CREATE SUBSCRIPTION %s CONNECTION %s PUBLICATION %s WITH (create_slot = false,"
						   " slot_name = %s, copy_data = false, enabled = false)", name,
						   literal(from, to->reach), name, to->slot)))
			stop(FAILED, "cannot prepare the way back", unreachable(from, to),
				 "Run the same command again.");
	}
	step("way back");
	look();
}

/* Tell the router, within a time; returns what has gone wrong, or null. */
static char *
run_hook(const char *what, double seconds)
{
	pid_t		child = fork();
	double		until = now() + seconds;
	int			status;

	if (child == 0)
	{
		setpgid(0, 0);
		setenv("INSTAID_MOVE", what, 1);
		setenv("INSTAID_MOVE_SHARDS", shards, 1);
		execl("/bin/sh", "sh", "-c", hook, (char *) NULL);
		_exit(127);
	}
	while (child > 0 && waitpid(child, &status, WNOHANG) == 0)
	{
		if (now() > until)
		{
			kill(-child, SIGKILL);
			waitpid(child, &status, 0);
			return fmt("it took longer than %s", strcmp(what, "back") == 0 ? "60 s" : "--max-stop");
		}
		nap(0.002);
	}
	if (child < 0)
		return "it could not be started";
	if (WIFSIGNALED(status))
		return fmt("it was ended by signal %d", WTERMSIG(status));
	return status == 0 ? NULL : fmt("it failed with exit status %d", WEXITSTATUS(status));
}

/* The first signal lets the source serve again, and the second one ends the program. */
static void
interrupt(int number)
{
	interrupted = 1;
	signal(number, SIG_DFL);
}

static void
catch_signals(void (*handler) (int))
{
	static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};

	for (int i = 0; i < 3; i++)
		if (signal(numbers[i], handler) == SIG_IGN)
			signal(numbers[i], SIG_IGN);
}

/* Let the source serve again. */
static void
take_back(void)
{
	char	   *pass,
			   *thaw,
			   *unmark,
			   *why;
	const char *before = strncmp(from->state, "back", 4) == 0 ? "back" : "copying";

	answer_by = 0;
	pass = guards(from, LETS_PASS);
	thaw = value(from, THAW, shards, frozen);
	unmark = mark(from, to, before, false);
	run(from, fmt("SET lock_timeout = '10s'; SET synchronous_commit = on; %s; %s; %s",
				  pass ? pass : "SELECT", thaw ? thaw : "SELECT", unmark));
	free(pass);
	free(thaw);
	free(unmark);
	set(&from->state, before);
	if (hook && may_be_told && (why = run_hook("back", 60)))
		say("--on-switch was told INSTAID_MOVE=back: %s", why);
	may_be_told = false;
	step("taken back");
}

/* Wait until a copy has all that its source has written; false if it takes too long. */
static bool
wait_for_copy(Side *f, double until)
{
	bool		is_there = false;

	/* the copy confirms this message at once; its commit also flushes all earlier ones */
	char	   *last = value(f, "SELECT pg_logical_emit_message(true, 'instaid', '')"
							 " FROM set_config('synchronous_commit', 'on', false)", NULL, NULL);

	for (;;)
	{
		char	   *there = value(f, "SELECT confirmed_flush_lsn >= $2::pg_lsn FROM pg_replication_slots"
								  " WHERE slot_name = $1", f->slot, last);

		is_there = there && there[0] == 't';
		free(there);
		if (is_there || now() > until || interrupted)
			break;
		nap(0.002);
	}
	free(last);
	return is_there;
}

/* Would the definitions arrive as they are?  This is seen before writes are refused. */
static void
rehearse(void)
{
	make_shards();
	if (compare_definitions())
		stop(DIFFERENT, "the definitions would arrive differently",
			 "A setting of the target, as its default privileges, changes them.",
			 "Remove the cause there, and run the same command again, or --cancel.");
	run(to, "ROLLBACK");
	step("rehearsed");
}

/*
 * Make the shards on the target, with all rows, in the transaction that will thaw them there.  The
 * source refuses writes meanwhile.
 */
static bool
copy_shards(int *status, char **why)
{
	PGresult   *tables = query(from, DUMPED_TABLES, shards, NULL);
	int			count = PQntuples(tables);
	double		bytes = 0,
				told = now();

	*status = FAILED;
	run(to, "BEGIN");
	if (!restore("--section=pre-data"))
		return *why = to->error, false;
	step("made");
	for (int i = 0; i < count; i++)
	{
		if ((*why = copy_rows(from, to, PQgetvalue(tables, i, 0), &bytes, &interrupted)))
			return *status = interrupted ? NOT_NOW : FAILED, false;
		if (now() > told + 5)
		{
			told = now();
			say("%d of %d tables copied, %.0f MB; writes are refused", i + 1, count, bytes / 1e6);
		}
	}
	PQclear(tables);
	step("copied");
	if (!restore("--section=post-data") || !run_each(to, UNANALYZED, shards, NULL))
		return *why = to->error, false;
	say("%d tables copied, %.0f MB", count, bytes / 1e6);
	if (verify_rows && verify(from->snapshot, to->conn, true))
		return *status = DIFFERENT, *why = "rows differ", false;
	step("verified");
	*status = NOT_NOW;
	return true;
}

/*
 * Stop the source and start the target.  No lock is held while another is waited for: the guards
 * are there already, and a change of their functions refuses all later writes at once.  Then the
 * transactions end that may have passed before.  If anything fails or takes too long, the
 * caller takes it back.
 */
static bool
attempt(int *status, char **why)
{
	char	   *stopping = mark(from, to, is_moved(from) ? "back, stopping" : "copying, stopping",
							false),
			   *refuse = guards(from, REFUSES),
			   *pass = guards(to, LETS_PASS),
			   *thaw = value(to, THAW, shards, "{}"),
			   *reads = value(to, GIVE_BACK_READS, shards, NULL),
			   *freeze = value(to, "SELECT COALESCE(string_agg(format("
							   "'SELECT instaid.freeze_shard(%L)', s), ';'), 'SELECT')"
							   " FROM unnest($1::text[]) AS s", frozen, NULL),
			   *text;
	double		began,
				stopped,
				applied,
				hooked,
				until;
	PGresult   *result;
	bool		ready;

	*status = NOT_NOW;
	began = now();
	until = began + max_stop;
	/* what is slow is taken back, and tried again; what hangs ends the program */
	answer_by = until + 1;
	at_end = take_back;
	/* wait_for_copy() flushes this, and the freeze; a dump does not call it */
	if (!try(from, fmt("SET synchronous_commit = %s; %s; %s", by_dump ? "on" : "off", stopping, refuse)))
		return *why = from->error, false;
	step("stopping");

	/* those that may have passed the guards */
	if (!(result = try_query(from, HOLDERS, shards, "0")))
		return *why = from->error, false;
	if (!PQgetisnull(result, 0, 0))
		for (;;)
		{
			char	   *left = value(from, HOLDERS_LEFT, PQgetvalue(result, 0, 0), NULL);

			ready = strcmp(left, "0") == 0;
			free(left);
			if (ready)
				break;
			if (now() > until || interrupted)
				return *why = fmt("transactions that write are open, of session %s",
								  PQgetvalue(result, 0, 1)), false;
			nap(0.002);
		}
	PQclear(result);
	step("guarded");
	if (!run_each(from, FREEZE, shards, NULL))
		return *why = from->error, false;
	stopped = now();
	step("stopped");

	if (by_dump)
	{
		answer_by = 0;
		if (!copy_shards(status, why))
			return false;
		until = now() + max_stop;
		answer_by = until + 1;
		pass = guards(to, LETS_PASS);
		thaw = value(to, THAW, shards, "{}");
	}
	else if (!wait_for_copy(from, until))
		return *why = "the target does not apply the last changes in time", false;
	applied = now();
	step("applied");

	/* what was created since: nobody may be creating, and both sides have the same */
	if ((text = value(from, CREATORS, shards, NULL)))
		return *why = fmt("session %s creates something in the schema", text), false;
	if (!(result = try_query(from, "SELECT p.*, EXISTS (" MISSING_GUARDS ") FROM (" POSITIONS ") AS p",
							 shards, id_sequences())))
		return *why = from->error, false;
	if (PQgetvalue(result, 0, 1)[0] == 'f')
		return *why = "the position of a sequence cannot be read", false;
	if (PQgetvalue(result, 0, 2)[0] == 't')
		return *why = "a table was created that has no guard", false;
	if (compare_definitions())
		return *status = DIFFERENT, *why = "the definitions differ", false;
	for (int i = 0; i < 2 && verify_rows; i++)
		PQsendQuery((i ? from : to)->snapshot,
					"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1");
	for (int i = 0; i < 2 && verify_rows; i++)
		PQclear(answer(i ? from : to, (i ? from : to)->snapshot));
	may_be_told = true;
	if (hook && (*why = run_hook("switch", until - now())))
		return *status = HOOK_FAILED, false;
	hooked = now();
	step("told");
	if (interrupted)
		return *why = "interrupted", false;

	if (!try(to, fmt("BEGIN; SET LOCAL lock_timeout = '2s'; %s; %s; %s; %s; %s;"
					 " %s", reads ? reads : "SELECT", pass, thaw,
					 PQgetisnull(result, 0, 0) ? "SELECT" : PQgetvalue(result, 0, 0),
					 freeze, by_dump ? publication(to, from, "switched", true) :
					 fmt("ALTER SUBSCRIPTION %s DISABLE; ALTER SUBSCRIPTION %s SET (slot_name = NONE); %s",
						 name, name, mark(to, from, "switched", one_way)))))
		return *why = to->error, false;
	if (now() > until)
	{
		PQclear(PQexec(to->conn, "ROLLBACK"));
		return *why = "it took longer than --max-stop", false;
	}
	step("started");

	/*
	 * Until here, the target forgets it all if the program ends.  If there is no answer from here
	 * on, only the target knows whether it serves them.
	 */
	at_end = NULL;
	answer_by = 0;
	if (!try(to, "COMMIT"))
		return *why = to->error, false;
	say("switched: writes were refused for %.0f ms (%.0f to stop, %.0f to %s, %.0f on-switch,"
		" %.0f to start)", (now() - began) * 1000, (stopped - began) * 1000,
		(applied - stopped) * 1000, by_dump ? "copy" : "apply", hook ? (hooked - applied) * 1000 : 0,
		(now() - (hook ? hooked : applied)) * 1000);
	PQclear(result);
	step("switched");
	return true;
}

/*
 * Sessions that compare rows.  A superuser must not read a view that the owner of a table
 * puts in its place: its functions would run with the superuser's rights.
 */
static void
open_readers(void)
{
	for (int i = 0; i < 2; i++)
	{
		Side	   *side = i ? from : to;

		side->snapshot = open_connection(side);
		if (!try_on(side, side->snapshot, "SELECT set_config(name, 'view, foreign-table', false)"
					" FROM pg_settings WHERE name = 'restrict_nonsystem_relation_kind'"))
			stop(FAILED, fmt("cannot prepare a session of the %s", side->name), side->error, NULL);
	}
}

/* Try to switch until it succeeds, or until --max-wait. */
static void
switch_over(void)
{
	double		until = now() + max_wait;
	bool		is_told = false;

	if (!by_dump)
	{
		prepare_way_back();
		run(to, fmt("ALTER SUBSCRIPTION %s SET (synchronous_commit = 'local')", name));
	}
	if (verify_rows)
		open_readers();
	for (int n = 0;;)
	{
		int			status;
		char	   *why;
		PGresult   *holders;
		bool		is_done;

		if (!by_dump)
			follow(until);
		run_patiently(from, MISSING_GUARDS, "put guards on the tables");
		run_patiently(to, MISSING_GUARDS, "put guards on the tables");
		/* a transaction that is old already will not end soon */
		holders = query(from, HOLDERS, shards, "1");
		if (!PQgetisnull(holders, 0, 0))
		{
			if (now() > until)
				stop(NOT_NOW, fmt("not switched within %.0f s", max_wait),
					 fmt("Transactions of session %s have been open for over a second.",
						 PQgetvalue(holders, 0, 1)),
					 "Run the same command again when they have ended, or --cancel.");
			if (!is_told)
				say("waiting for the open transactions of session %s", PQgetvalue(holders, 0, 1));
			is_told = true;
			PQclear(holders);
			nap(0.2);
			continue;
		}
		PQclear(holders);
		catch_signals(interrupt);
		for (int i = 0; i < 2; i++)
			run(i ? to : from, "SET lock_timeout = '" PATIENCE "'");
		n++;
		is_done = attempt(&status, &why);
		if (!is_done)
		{
			why = strdup(why);
			at_end = NULL;
			if (by_dump)
				PQclear(PQexec(to->conn, "ROLLBACK"));
			take_back();
		}
		for (int i = 0; i < 2; i++)
			run(i ? to : from, "SET lock_timeout = '10s'");
		if (is_done)
			break;
		catch_signals(SIG_DFL);
		for (int i = 0; i < 2 && verify_rows; i++)
			try_on(i ? from : to, (i ? from : to)->snapshot, "ROLLBACK");
		if (status != NOT_NOW || now() > until || interrupted)
			stop(status, status == HOOK_FAILED ? "not switched: --on-switch" :
				 fmt("not switched after %d attempt%s", n, n > 1 ? "s" : ""), why,
				 fmt("The source serves the shards%s. Run the same command again, or --cancel.",
					 by_dump ? "" : ", and the target follows"));
		say("attempt %d was taken back: %s", n, why);
		free(why);
		nap(0.3 + 0.1 * (n % 7));
	}
	catch_signals(SIG_DFL);
	/* what a dump has set */
	if (by_dump)
		prepare_session(to, to->conn);
	look();
}

/* After the switch: drop what has served, and start the way back.  Each part can be done again. */
static void
clean_up(void)
{
	if (from->marked)
	{
		run(from, mark(from, to, "left", false));
		step("source marked");
	}
	drop_slots(from, to);
	step("slot dropped");
	run(to, fmt("DROP SUBSCRIPTION IF EXISTS %s", name));
	step("subscription dropped");
	run(from, fmt("DROP PUBLICATION IF EXISTS %s", name));
	step("publication dropped");
	if (is_state(to, "switched"))
	{
		if (!to->one_way)
		{
			/*
			 * What was applied up to the switch must not come back.  A crash of the target forgets
			 * where its slot was advanced to.  The source keeps its own place, which only superusers
			 * may set.  An earlier run can have enabled the subscription already.
			 */
			run(from, fmt("ALTER SUBSCRIPTION %s DISABLE", name));
			for (double until = now() + 10; now() < until
				 && value(to, "SELECT true FROM pg_replication_slots WHERE slot_name = $1 AND active",
						  to->slot, NULL);)
				nap(0.05);
			free(value(to, "SELECT pg_replication_slot_advance(slot_name, $2::pg_lsn)"
					   " FROM pg_replication_slots WHERE slot_name = $1 AND NOT active"
					   " AND confirmed_flush_lsn < $2::pg_lsn", to->slot, to->lsn));
			free(value(from, "SELECT pg_replication_origin_advance('pg_' || oid, $2::pg_lsn)"
					   " FROM pg_subscription AS s WHERE subname = $1 AND subdbid = " DATABASE
					   " AND CASE WHEN has_function_privilege('pg_replication_origin_advance(text, pg_lsn)',"
					   "  'EXECUTE') AND has_function_privilege('pg_replication_origin_progress(text, bool)',"
					   "  'EXECUTE') THEN COALESCE(pg_replication_origin_progress('pg_' || oid, false)"
					   "  < $2::pg_lsn, true) END", name, to->lsn));
			step("advanced");
			run(from, fmt("ALTER SUBSCRIPTION %s ENABLE", name));
			step("way back enabled");
		}
		/* with --dump, the rows were compared before */
		run(to, mark(to, from, by_dump ? "back" : NOT_COMPARED, to->one_way));
	}
	look();
}

/* After the switch: what is read at the source would be old. */
static void
refuse_reads(void)
{
	run_patiently(from, REFUSE_READS, "refuse reads at the source");
	step("reads refused");
	say("%s: the source refuses reads, except by superusers and pg_read_all_data", shown);
}

/* Ask both sides the same, at the same time. */
static char **
ask_both(PGconn *of_source, PGconn *of_target, const char *sql, const char *p1, double *rows)
{
	PGresult   *s;

	send_query(of_source, sql, p1);
	send_query(of_target, sql, p1);
	s = answer(from, of_source);
	for (int i = 0; rows && i < PQntuples(s); i++)
		*rows += atof(PQgetvalue(s, i, 1));
	return differences(s, answer(to, of_target));
}

/*
 * Compare the rows of both sides: sums by buckets of keys, and the rows of the buckets that
 * differ.  While clients write, a row differs as long as its change is on the way.  Therefore only
 * a difference that is the same after the copy had it all is told.
 */
static int
verify(PGconn *of_source, PGconn *of_target, bool is_quiet)
{
	PGresult   *tables = query(from, COMPARED_TABLES, shards, NULL);
	int			differ = 0;
	double		rows = 0,
				began = now();

	step("comparing");
	for (int i = 0; i < PQntuples(tables); i++)
	{
		char	   *of_rows = PQgetvalue(tables, i, 1);
		char	   *sql = fmt(BUCKETS, of_rows);
		char	  **lines = ask_both(of_source, of_target, sql, NULL, &rows);
		char	   *buckets = NULL;

		for (int n = 0; n < 16 && lines[n]; n++)
			buckets = append(buckets, strtok(strchr(lines[n], ':') + 2, " "));
		free(sql);
		sql = fmt(ROWS, of_rows);
		for (int look = 0; buckets && look < (is_quiet ? 1 : 2); look++)
		{
			char	  **before = lines;
			int			kept = 0;

			if (look > 0 && !wait_for_copy(to->sub ? from : to, now() + max_wait))
				stop(NOT_NOW, "the copy does not follow", "It is far behind, or has no worker.",
					 "--status tells how far.");
			lines = ask_both(of_source, of_target, sql, buckets, NULL);
			for (int n = 0, b = 0; look > 0 && lines[n]; n++)
			{
				/* in the order of what comes after "only on the source: " */
				while (before[b] && strcmp(before[b] + 20, lines[n] + 20) < 0)
					b++;
				if (before[b] && strcmp(before[b], lines[n]) == 0)
					lines[kept++] = lines[n];
			}
			if (look > 0)
				lines[kept] = NULL;
		}
		if (buckets && lines[0])
		{
			differ++;
			printf("table %s differs\n", PQgetvalue(tables, i, 0));
			print_lines(lines, 10);
		}
		free(buckets);
		free(sql);
	}
	if (!differ)
		say("verified: %d tables, %.0f rows, the same on both sides (%.1f s)", PQntuples(tables), rows,
			now() - began);
	PQclear(tables);
	return differ;
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
	bool		has_copy = t->sub || f->one_way;

	if (has_copy)
		check_copy(t);
	detach(t);
	step("detached");
	drop_slots(f, t);
	step("slots dropped");
	if (has_copy)
	{
		/* a schema is of this move as long as its subscription is there: both go at once */
		char	   *drop = value(t, "SELECT string_agg(format('DROP SCHEMA %I CASCADE', nspname), ';')"
								 " FROM pg_namespace WHERE nspname = ANY ($1::text[])", shards, NULL);

		if (!try(t, fmt("DROP SUBSCRIPTION IF EXISTS %s; %s", name, drop ? drop : "SELECT")))
			stop(NOT_NOW, fmt("cannot drop the shards of the %s", t->name), t->error,
				 "Run the same command again.");
		free(drop);
	}
	step("copy dropped");
	run_patiently(f, DROP_GUARDS, "drop the guards of the tables");
	step("guards dropped");
	run(f, fmt("DROP PUBLICATION IF EXISTS %s", name));
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

		if (value(f, GIVE_BACK_READS, shards, NULL))
			printf("  reads:   the %s refuses them, except by superusers and pg_read_all_data\n", f->name);
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
			printf("            %s of %s tables, %s, %s error%s%s\n", PQgetvalue(result, 0, 0),
				   PQgetvalue(result, 0, 1), PQgetvalue(result, 0, 2), PQgetvalue(result, 0, 3),
				   strcmp(PQgetvalue(result, 0, 3), "1") == 0 ? "" : "s",
				   atoi(PQgetvalue(result, 0, 3)) == 0 ? "" :
				   fmt(": see the server log of the %s", t->name));
			PQclear(result);
		}
	}
	printf("  next:    %s\n", next);
}

/* From wherever the move is to its end. */
static void
move(void)
{
	char	   *pass,
			   *why;

	if (refuses_reads && (why = value(from, CANNOT_REFUSE_READS, shards, NULL)))
		stop(IN_THE_WAY, "this role cannot refuse reads", why,
			 "Use a superuser, or leave out --refuse-reads.");
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
		if (!(pass = guards(from, LETS_PASS)))
			stop(IN_THE_WAY, fmt("the source has no schema of %s", shown),
				 "It was dropped or renamed since the move began.",
				 "Rename it back, and run the same command again, or --cancel.");
		run(from, pass);
		free(pass);
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
	if (refuses_reads)
		refuse_reads();
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
		O_NO_VERIFY, O_TAKE_OVER, O_DUMP, O_REFUSE_READS, O_HELP
	};
	static const struct option options[] = {
		{"from", required_argument, NULL, O_FROM}, {"to", required_argument, NULL, O_TO},
		{"source-for-target", required_argument, NULL, O_FROM_REACH},
		{"target-for-source", required_argument, NULL, O_TO_REACH},
		{"max-wait", required_argument, NULL, O_WAIT}, {"max-stop", required_argument, NULL, O_STOP},
		{"on-switch", required_argument, NULL, O_HOOK}, {"one-way", no_argument, NULL, O_ONE_WAY},
		{"no-verify", no_argument, NULL, O_NO_VERIFY}, {"take-over", no_argument, NULL, O_TAKE_OVER},
		{"check-only", no_argument, NULL, CHECK_ONLY}, {"prepare", no_argument, NULL, PREPARE},
		{"status", no_argument, NULL, STATUS}, {"switch", no_argument, NULL, SWITCH},
		{"verify", no_argument, NULL, VERIFY}, {"finish", no_argument, NULL, FINISH},
		{"cancel", no_argument, NULL, CANCEL}, {"reverse", no_argument, NULL, O_REVERSE},
		{"dump", no_argument, NULL, O_DUMP}, {"refuse-reads", no_argument, NULL, O_REFUSE_READS},
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
			case O_TAKE_OVER:
				take_over = true;
				break;
			case O_REFUSE_READS:
				refuses_reads = true;
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
