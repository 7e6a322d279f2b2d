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
#include "texts.h"

/* of the definitions when they were compared, as the catalogs say; null if they were not */
static char *fingerprints[2] = {NULL, NULL};

static char *id_sequences[2] = {NULL, NULL};

/* Ask both sides for their fingerprint, at the same time: to plan the query takes longer than to run it. */
static void
take_fingerprints(char *taken[2])
{
	static bool is_prepared = false;

	for (int i = 0; i < 2; i++)
	{
		Side	   *side = i ? to : from;
		const char *values[] = {shards, NULL};

		if (!is_prepared)
			PQclear(PQprepare(side->conn, "fingerprint", FINGERPRINT, 2, NULL));
		if (!id_sequences[i])
			id_sequences[i] = value(side, ID_SEQUENCES, shards, NULL);
		values[1] = id_sequences[i];
		PQsendQueryPrepared(side->conn, "fingerprint", 2, values, NULL, NULL, 0);
	}
	is_prepared = true;
	for (int i = 0; i < 2; i++)
	{
		PGresult   *result = answer(i ? to : from, (i ? to : from)->conn);

		taken[i] = strdup(PQgetvalue(result, 0, 0));
		PQclear(result);
	}
}

/*
 * Are the definitions as they were when they were compared?  With --dump, the target has none.
 */
bool
are_unchanged(void)
{
	char	   *taken[2];
	bool		are_same = fingerprints[0] != NULL;

	if (!are_same)
		return false;
	take_fingerprints(taken);
	for (int i = 0; i < 2; i++)
	{
		are_same &= (i == 1 && by_dump) || strcmp(taken[i], fingerprints[i]) == 0;
		free(taken[i]);
	}
	return are_same;
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

/* The option that tells how the other server reaches a side */
static const char *
reach_option(Side *side)
{
	return (side == from) != reverse ? "source-for-target" : "target-for-source";
}

/* That a command failed because one server does not reach the other, and the option that helps */
char *
unreachable(Side *side, Side *other)
{
	if (side->lacks_right)
		return fmt("the %s's server cannot use the %s: %s", side->name, other->name, side->error);
	return fmt("the %s's server cannot use the %s: %s; give --%s%s", side->name, other->name, side->error,
			   reach_option(other), reverse ? ", also with --reverse" : "");
}

/* Can one server connect to the other?  A subscription that is not kept tells. */
bool
can_reach(Side *side, Side *other)
{
	return try_secretly(side, fmt("BEGIN; CREATE SUBSCRIPTION instaid_move_probe CONNECTION %s"
								  " PUBLICATION instaid_move_probe WITH (slot_name = NONE, create_slot = false,"
								  " enabled = false, copy_data = false); ROLLBACK", literal(side, other->reach)));
}

static void
timeouts_of(Side *side)
{
	PGresult   *found = query(side, CHECK_TIMEOUT, reach_option(side), side->reach);

	for (int i = 0; i < PQntuples(found); i++)
		fault('!', fmt("the %s's %s", side->name, PQgetvalue(found, i, 0) + 1));
	PQclear(found);
}

/*
 * Who restores a definition runs its owner's functions.  On the way back, PostgreSQL 15 runs those in
 * expressions as the subscription's owner, too.
 */
static void
check_trust(void)
{
	char	   *definers = value(from, DEFINERS, shards, NULL);

	for (int i = 0; i < 2 && definers; i++)
	{
		Side	   *side = i ? from : to;
		PGresult   *found = query(side, UNTRUSTED, definers, trusted);

		if (i == 1 && (one_way || PQserverVersion(from->conn) >= 160000))
			break;
		for (int n = 0; n < PQntuples(found); n++)
			fault('!', fmt("the shards have definitions of %s, whose functions would run with the rights of %s on the"
						   " %s: connect as %s to it, or trust this role: --trust %s", PQgetvalue(found, n, 0),
						   PQuser(side->conn), side->name, PQgetvalue(found, n, 0), PQgetvalue(found, n, 0)));
		PQclear(found);
	}
	free(definers);
}

/* A column whose sequence stays would get the same values on the target. */
static void
check_outer_sequences(void)
{
	PGresult   *found = query(from, OUTER_SEQUENCES, shards, NULL);

	for (int i = 0; i < PQntuples(found); i++)
	{
		char	   *sequence = PQgetvalue(found, i, 0),
				   *last = PQgetvalue(found, i, 1);

		if (value(to, IS_BEYOND, sequence, last))
			fault('-', fmt("columns take values of sequence %s, which does not move; the one of the target is beyond",
						   sequence));
		else
			fault('!', fmt("columns take values of sequence %s, which does not move, and stands at %s: ALTER SEQUENCE ..."
						   " SET SCHEMA, or set the one of the target well beyond", sequence, last));
	}
	PQclear(found);
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
	{
		faults_of(from, CHECK_PUBLISHER, shards, tables);
		faults_of(from, CHECK_IDENTITY, shards, NULL);
		timeouts_of(from);
	}
	/* no query tells how much is free */
	fault('-', fmt("the target needs %s of free disk or more, which is not checked", size));
	faults_of(from, CHECK_SOURCE, shards, NULL);
	dependants = query(from, DEPENDANTS, shards, NULL);
	/* partitions, children and extensions are told above, with another cure */
	for (int i = 0; i < PQntuples(dependants); i++)
		if (PQgetvalue(dependants, i, 1)[0] == 'f'
			&& strncmp(PQgetvalue(dependants, i, 0), "extension ", 10) != 0)
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
		if (value(side, HAS_PUBLICATION, name, NULL))
			fault('!', fmt("publication %s exists on the %s, and this role does not take it for its own: drop it",
						   name, side->name));
		if (value(side, REFUSES, name, NULL))
			fault('!', fmt("schema %s exists on the %s, which this move would take for its own: drop it", name,
						   side->name));
		if ((owner = value(side, EDITION_OWNER, NULL, NULL)))
			fault('-', fmt("schema instaid of the %s belongs to %s: its functions run with your rights",
						   side->name, owner));
	}
	if (!by_dump && !can_reach(to, from))
		fault('!', unreachable(to, from));
	check_trust();
	check_outer_sequences();
	if (!one_way)
	{
		faults_of(to, CHECK_BACK_TARGET, NULL, NULL);
		timeouts_of(to);
		if (!can_reach(from, to))
			fault('!', fmt("%s, or move with --one-way", unreachable(from, to)));
	}
	if (faults)
		stop(IN_THE_WAY, fmt("%d thing%s in the way", faults, faults > 1 ? "s are" : " is"),
			 "Each line with ! above tells the cure. Nothing was changed.",
			 "Run the same command again.");
}

/* What a program writes, or null if it fails */
static char *
output_of(char *const *args)
{
	char	   *text = NULL;
	size_t		room = 0;
	int			status,
				out[2];
	pid_t		child;
	FILE	   *output;
	bool		is_read;

	if (pipe(out) != 0 || (child = fork()) < 0)
		stop(FAILED, fmt("cannot start %s", args[0]), strerror(errno), NULL);
	if (child == 0)
	{
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		execv(args[0], args);
		fprintf(stderr, "%s: %s\n", args[0], strerror(errno));
		_exit(127);
	}
	close(out[1]);
	if (!(output = fdopen(out[0], "r")))
		abort();
	/* all of it: a text has no zero byte */
	is_read = getdelim(&text, &room, '\0', output) > 0 && !ferror(output);
	fclose(output);
	return waitpid(child, &status, 0) == child && status == 0 && is_read ? text : NULL;
}

/* The pg_dump in PATH that comes closest to a major version from above; the first of several */
static char *
find_pg_dump(int least)
{
	char	   *path = strdup(getenv("PATH") ? getenv("PATH") : ""),
			   *best = NULL;
	int			best_version = 0;

	for (char *dir = strtok(path, ":"); dir; dir = strtok(NULL, ":"))
	{
		char	   *program = fmt("%s/pg_dump", dir);
		char	   *args[] = {program, "--version", NULL};
		char	   *answer = access(program, X_OK) == 0 ? output_of(args) : NULL;
		int			version = answer ? atoi(answer + strcspn(answer, "0123456789")) : 0;

		if (version >= least && (!best || version < best_version))
		{
			best = program;
			best_version = version;
		}
		free(answer);
	}
	free(path);
	if (!best)
		stop(FAILED, fmt("there is no pg_dump for PostgreSQL %d in PATH", least), NULL,
			 "Add the directory of that version's programs to PATH, and run the same command again.");
	return best;
}

/* Is it a line for psql?  Those of pg_dump begin and end what it writes but for comments. */
static bool
is_for_psql(const char *line)
{
	return strncmp(line, "\\restrict ", 10) == 0 || strncmp(line, "\\unrestrict ", 12) == 0;
}

/* The definitions of the shards on a side, or a section of them, as pg_dump writes them */
static char *
dump(Side *side, const char *program, const char *section)
{
	PGresult   *names = query(from, "SELECT '--schema=\"' || replace(s, '\"', '\"\"') || '\"'"
							  " FROM unnest($1::text[]) AS s", shards, NULL);
	char	  **args = grown(NULL, PQntuples(names) + 8, sizeof(char *));
	char	   *text,
			   *first,
			   *last = NULL;
	int			n = 0;

	args[n++] = (char *) program;
	args[n++] = (char *) section;
	args[n++] = "--no-publications";
	args[n++] = "--no-subscriptions";
	args[n++] = fmt("--lock-wait-timeout=%.0f", 1000 * (max_wait < 1 ? 1 : max_wait));
	for (int i = 0; i < PQntuples(names); i++)
		args[n++] = PQgetvalue(names, i, 0);
	args[n++] = "-d";
	args[n++] = (char *) side->conninfo;
	args[n] = NULL;
	if (!(text = output_of(args)))
	{
		/* a server that is gone is told as such */
		run(side, "SELECT");
		stop(FAILED, fmt("pg_dump of the %s failed", side->name), "Its message is above.",
			 "Run the same command again.");
	}
	PQclear(names);
	free(args);

	/* the first and the last line that are no comment are for psql, or for no one */
	for (first = text; *first == '\n' || strncmp(first, "--", 2) == 0; first += strcspn(first, "\n") + 1)
		;
	for (char *line = text; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] != '\0'))
		if (*line != '\n' && strncmp(line, "--", 2) != 0)
			last = line;
	if (is_for_psql(first))
		memcpy(first, "--", 2);
	if (last && is_for_psql(last))
		memcpy(last, "--", 2);
	return text;
}

/*
 * Compare the definitions of both sides, as one pg_dump writes them, and remember what the catalogs said
 * before.  Nothing of this happens while writes are refused: there, are_unchanged() is asked.
 */
int
compare_definitions(void)
{
	int			versions[2] = {PQserverVersion(from->conn) / 10000, PQserverVersion(to->conn) / 10000};
	char	   *program = find_pg_dump(versions[0] > versions[1] ? versions[0] : versions[1]);
	char	   *taken[2],
			   *texts[2];
	PGresult   *maximums[2];
	int			differ;

	for (int i = 0; i < 2; i++)
		set(&id_sequences[i], NULL);
	take_fingerprints(taken);
	for (int i = 0; i < 2; i++)
	{
		texts[i] = dump(i ? to : from, program, "--schema-only");
		maximums[i] = query(i ? to : from, MAXIMUMS, shards, id_sequences[i]);
	}
	step("both dumped");
	differ = compare_texts(texts[0], texts[1], versions[0] == versions[1]);
	/* a sequence that only one side has was told */
	if (!differ)
		differ = print_lines(differences(maximums[0], maximums[1]), 20);
	for (int i = 0; i < 2; i++)
	{
		free(texts[i]);
		set(&fingerprints[i], differ ? NULL : taken[i]);
		free(taken[i]);
	}
	return differ;
}

/* Make definitions of the shards on the target, in its transaction, and undo what the dump has set. */
bool
restore(const char *section)
{
	char	   *text = dump(from, find_pg_dump(PQserverVersion(from->conn) / 10000), section);
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

/* Drop what the target has of the move: its schemas are of the move as long as its subscription is there. */
bool
drop_copy(Side *side)
{
	char	   *drop = value(side, DROP_SCHEMAS, shards, name);

	return try(side, fmt("DROP SUBSCRIPTION IF EXISTS %s; %s", name, drop ? drop : "SELECT"));
}

/* Compare the definitions that have arrived, which no client uses yet, and drop them if they differ. */
static void
compare_arrived(void)
{
	int			differ = compare_definitions();

	if (!differ)
		return;
	look();
	detach(to);
	if (!drop_copy(to))
		say("cannot drop the shards of the target again: %s", to->error);
	stop(DIFFERENT, "the definitions that arrived differ",
		 "A setting of the target, as its default privileges, has changed them.",
		 "Remove the cause there, and run the same command again, or --cancel.");
}

/*
 * Would the definitions arrive as they are?  This is seen before writes are refused.  The schema with the
 * name of the move tells that the others are its own.
 */
void
rehearse(void)
{
	if (value(to, REFUSES, name, NULL) && !drop_copy(to))
		stop(NOT_NOW, "cannot drop the shards of an earlier rehearsal on the target", to->error,
			 "Run the same command again.");
	make_shards();
	if (!run_each(to, FREEZE, shards, NULL))
		stop(FAILED, "cannot freeze the shards on the target", to->error,
			 "Run the same command again, or --cancel.");
	run(to, fmt("CREATE SCHEMA %s; COMMIT", name));
	prepare_session(to, to->conn);
	step("rehearsing");
	compare_arrived();
	if (!drop_copy(to))
		stop(NOT_NOW, "cannot drop the shards of the rehearsal on the target", to->error,
			 "Run the same command again.");
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
	if (!try_secretly(to, fmt("CREATE SCHEMA %s; CREATE SUBSCRIPTION %s CONNECTION %s PUBLICATION %s"
							  " WITH (connect = false, slot_name = %s); COMMIT", name, name, conninfo, name,
							  from->slot)))
		stop(FAILED, "cannot create the subscription on the target", to->error,
			 "Remove the cause, and run the same command again, or --cancel.");
	prepare_session(to, to->conn);
	PQfreemem(conninfo);
	step("defined");
	compare_arrived();
	look();
}
