/*
 * The definitions of the shards of a move: what would stop it, and the shards that pg_dump lets the
 * target have, for a subscription or for --dump.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "move.h"
#include "queries.h"

/*
 * Compare the definitions, on both sides at the same time.  This is also done while writes are
 * refused, and to plan the query takes longer than to run it.
 */
int
compare_definitions(void)
{
	static bool is_prepared = false;
	bool		is_same = PQserverVersion(from->conn) / 10000 == PQserverVersion(to->conn) / 10000;
	const char *values[] = {shards, is_same ? "t" : "f"};
	PGresult   *of_source;

	for (int i = 0; i < 2 && !is_prepared; i++)
		PQclear(PQprepare((i ? to : from)->conn, "definitions", DEFINITIONS, 2, NULL));
	is_prepared = true;
	PQsendQueryPrepared(from->conn, "definitions", 2, values, NULL, NULL, 0);
	PQsendQueryPrepared(to->conn, "definitions", 2, values, NULL, NULL, 0);
	of_source = answer(from, from->conn);
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
char *
unreachable(Side *side, Side *other)
{
	if (side->lacks_right)
		return fmt("the %s's server cannot use the %s: %s", side->name, other->name, side->error);
	return fmt("the %s's server cannot use the %s: %s; give --%s%s", side->name, other->name, side->error,
			   (other == from) != reverse ? "source-for-target" : "target-for-source",
			   reverse ? ", also with --reverse" : "");
}

/* Can one server connect to the other?  A subscription that is not kept tells. */
bool
can_reach(Side *side, Side *other)
{
	return try(side, fmt("BEGIN; CREATE SUBSCRIPTION instaid_move_probe CONNECTION %s"
						 " PUBLICATION instaid_move_probe WITH (slot_name = NONE, create_slot = false,"
						 " enabled = false, copy_data = false); ROLLBACK", literal(side, other->reach)));
}

/* Name all that would stop the move. */
void
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
	PGresult   *dependants;
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
	if (strcmp(editions[0], editions[1]) != 0)
		fault('!', fmt("the source has %s, and the target %s: install the same there, and convert the"
					   " database before or after the move", editions[0], editions[1]));
	else
		faults_of(to, CHECK_TARGET, shards, ids);
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
	if (strcmp(encodings[0], encodings[1]) != 0)
		fault('-', fmt("encoding and locale are %s on the source, %s on the target", encodings[0],
					   encodings[1]));
	for (int i = 0; i < 2; i++)
	{
		Side	   *side = i ? to : from;

		/* whoever may create schemas could have made it, to stop writes */
		if (value(side, REFUSES, name, NULL))
			fault('!', fmt("schema %s exists on the %s, which this move would take for its own: drop it", name,
						   side->name));
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

	if (!args)
		abort();
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
	 * What pg_dump writes for psql, and for servers that are newer than the
	 * target.  Nothing of the shards comes before these lines.
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
	PQclear(names);
	free(args);
	return text;
}

/* Make definitions of the shards on the target, in its transaction, and undo what the dump has set. */
bool
restore(const char *section)
{
	char	   *text = dump(section);
	bool		good;

	step("dumped");
	good = try(to, text) && try(to, "SET search_path = pg_catalog, pg_temp;"
								" SET client_min_messages = error; SET check_function_bodies = on;"
								" SET client_encoding = 'UTF8'");
	free(text);
	return good;
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

/* Would the definitions arrive as they are?  This is seen before writes are refused. */
void
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
 * Make the shards on the target, frozen and guarded, and the subscription that fills them, in one
 * transaction.  The subscription does not connect: it would wait for itself if both databases
 * are on one server.
 */
void
define(void)
{
	char	   *conninfo = literal(to, from->reach);

	make_shards();
	if (!run_each(to, FREEZE, shards, NULL))
		stop(FAILED, "cannot freeze the shards on the target", to->error,
			 "Run the same command again, or --cancel.");
	run(to, fmt("CREATE SCHEMA %s", name));
	if (compare_definitions())
		stop(DIFFERENT, "the definitions that arrived differ",
			 "A setting of the target, as its default privileges, has changed them.",
			 "Remove the cause there, and run the same command again, or --cancel.");
	run(to, fmt("CREATE SUBSCRIPTION %s CONNECTION %s PUBLICATION %s"
				" WITH (connect = false, slot_name = %s); COMMIT", name, conninfo, name, from->slot));
	prepare_session(to, to->conn);
	PQfreemem(conninfo);
	step("defined");
	look();
}
