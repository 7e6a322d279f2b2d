/* The definitions of the shards: how they come to the target, and whether both sides have the same. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "move.h"
#include "steps.h"
#include "texts.h"

/*** What pg_dump writes ***/

/* What a program writes, or null if it fails; its messages are printed, which can have names in them */
static char *
output_of(char *const *args)
{
	char	   *text = NULL,
			   *line = NULL;
	size_t		room = 0,
				line_room = 0;
	int			status,
				out[2];
	pid_t		child;
	FILE	   *output,
			   *messages;
	bool		is_read;

	if (pipe(out) != 0 || !(messages = tmpfile()))
		return NULL;
	if ((child = fork()) < 0)
	{
		fclose(messages);
		return NULL;
	}
	if (child == 0)
	{
		dup2(out[1], 1);
		dup2(fileno(messages), 2);
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
	is_read &= waitpid(child, &status, 0) == child && status == 0;
	rewind(messages);
	while (getline(&line, &line_room, messages) > 0)
		fprintf(stderr, "%s\n", plain(fmt("%.*s", (int) strcspn(line, "\n"), line)));
	fclose(messages);
	return is_read ? text : NULL;
}

/* The pg_dump in PATH that comes closest to a major version from above; the first of several; or null */
static char *
find_pg_dump(int least)
{
	char	   *path = strdup(getenv("PATH") ? getenv("PATH") : ""),
			   *best = NULL;
	int			best_version = 0;

	for (char *dir = strtok(path, ":"); dir && best_version != least; dir = strtok(NULL, ":"))
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
	}
	return best;
}

/* Is it a line for psql?  Those of pg_dump begin and end what it writes but for comments. */
static bool
is_for_psql(const char *line)
{
	return strncmp(line, "\\restrict ", 10) == 0 || strncmp(line, "\\unrestrict ", 12) == 0;
}

/*
 * The definitions of the shards on a side, or a section of them, as the pg_dump for a version writes them, of a snapshot
 * unless that is null; null if it fails
 */
static char *
dump(Move *m, Server *s, int version, const char *section, const char *snapshot)
{
	PGresult   *names = rows(s, &sql_dump_patterns, m->shards);
	char	  **args = grown(NULL, PQntuples(names) + 11, sizeof(char *));
	char	   *text,
			   *first,
			   *last = NULL;
	int			n = 0;

	if (!(args[n++] = find_pg_dump(version / 10000)))
	{
		fail(m, FAILED, fmt("there is no pg_dump for PostgreSQL %d in PATH", version / 10000), NULL,
			 "Add the directory of that version's programs to PATH, and run the same command again.");
		return NULL;
	}
	args[n++] = (char *) section;
	if (snapshot)
		args[n++] = fmt("--snapshot=%s", snapshot);
	/* as both sessions have it, whatever the databases have */
	args[n++] = "--encoding=UTF8";
	args[n++] = fmt("--role=%s", PQuser(s->conn));
	args[n++] = "--no-publications";
	args[n++] = "--no-subscriptions";
	args[n++] = fmt("--lock-wait-timeout=%.0f", 1000 * (m->options.max_wait < 1 ? 1 : m->options.max_wait));
	for (int i = 0; i < PQntuples(names); i++)
		args[n++] = PQgetvalue(names, i, 0);
	args[n++] = "-d";
	args[n++] = (char *) s->conninfo;
	args[n] = NULL;
	if (!(text = output_of(args)))
	{
		fail(m, FAILED, fmt("pg_dump of the %s failed", s->name), "Its message is above.", "Run the same command again.");
		return NULL;
	}

	/*
	 * the first and the last line that are no comment are for psql, or for no
	 * one
	 */
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

/* pg_dump failed, unless its server is gone */
static int
dump_failed(Move *m)
{
	run(m->source, "SELECT");
	run(m->target, "SELECT");
	return is_lost(m->source) || is_lost(m->target) ? settled(m, NULL) : FAILED;
}

/*** To the target ***/

/*
 * Make definitions of the shards on the target, in its transaction, and undo what the dump has set.  Then ask once more
 * whom they trust there, since another role can have committed a function meanwhile that fits better.
 */
int
restore(Move *m, const char *section)
{
	Server	   *from = m->source;
	static const char old_strings[] = "\nSET standard_conforming_strings = off;";
	char	   *usage = value(from, &sql_usage_of_public, m->shards),
			   *snapshot,
			   *text,
			   *strings;
	int			status;

	/* the owners and the dump are of one snapshot */
	run(from, "BEGIN ISOLATION LEVEL REPEATABLE READ");
	snapshot = value(from, &sql_export_snapshot);
	text = dump(m, from, PQserverVersion(from->conn), section, snapshot);
	status = text ? trust_again(m, from) : dump_failed(m);

	run(from, "COMMIT");
	if (status)
		return status;
	kill_point("dumped");

	/*
	 * all of it is parsed before its first command runs, and the database can
	 * set that pg_dump writes strings in the old way
	 */
	strings = strstr(text, "\nSET standard_conforming_strings = ");
	if (strings && strncmp(strings, old_strings, strlen(old_strings)) == 0)
		run_text(m->target, old_strings);
	run_text(m->target, text);
	if (usage)
		run_text(m->target, usage);
	run(m->target, "SET search_path = pg_catalog, pg_temp; SET client_min_messages = error;"
		" SET check_function_bodies = on; SET client_encoding = 'UTF8'; SET standard_conforming_strings = on");
	status = settled(m, "the definitions do not fit the target");
	return status ? status : trust_again(m, m->target);
}

/* Begin the transaction that makes all definitions of the shards on the target. */
int
make_shards(Move *m)
{
	char	   *existing = value(m->target, &sql_existing, m->shards);
	int			status;

	if (existing)
		return fail(m, IN_THE_WAY, fmt("the target has %s already, and not by this move", existing), NULL,
					"Drop or rename it there, and run the same command again, or --cancel.");
	run(m->target, "BEGIN");
	status = restore(m, "--schema-only");
	if (m->target->error && !is_lost(m->target))
		return fail(m, DIFFERENT, m->what, m->target->error, "Create there what is missing, or have the pg_dump of the"
					" source's version first in PATH, and run the same command again, or --cancel.");
	return status;
}

/* Drop what the target has of the move: its schemas are of the move as long as its subscription is there. */
bool
drop_copy(Move *m)
{
	char	   *schemas = value(m->target, &sql_drop_schemas, m->shards, m->name);

	return run(m->target, "DROP SUBSCRIPTION IF EXISTS %s; %s", m->name, schemas ? schemas : "SELECT");
}

/*** Are they the same? ***/

/* Ask a side for its fingerprint, which are_unchanged() receives. */
void
ask_fingerprint(Server *s)
{
	send_text(s, s->conn, s->fingerprint_query, NULL);
	s->is_asked = true;
}

/* Take the fingerprints of both sides, at the same time. */
static bool
take_fingerprints(Move *m, char *taken[2])
{
	for (int i = 0; i < 2; i++)
	{
		Server	   *s = i ? m->target : m->source;

		if (!s->is_asked)
			ask_fingerprint(s);
		s->is_asked = false;
	}
	for (int i = 0; i < 2; i++)
	{
		Server	   *s = i ? m->target : m->source;
		PGresult   *result = receive(s, s->conn);

		taken[i] = PQntuples(result) > 0 ? fmt("%s", PQgetvalue(result, 0, 0)) : NULL;
		PQclear(result);
	}
	return taken[0] && taken[1];
}

/* Are the definitions as they were when they were compared?  With --dump, the target has none. */
bool
are_unchanged(Move *m)
{
	char	   *taken[2];

	if (!m->source->fingerprint || !m->target->fingerprint || !take_fingerprints(m, taken))
		return false;
	return strcmp(taken[0], m->source->fingerprint) == 0
		&& (m->options.by_dump || strcmp(taken[1], m->target->fingerprint) == 0);
}

/*
 * Compare the definitions of both sides, as one pg_dump writes them, and remember what the catalogs said before.
 * Nothing of this happens while writes are refused: there, are_unchanged() is asked.
 */
int
compare_definitions(Move *m)
{
	int			versions[2] = {PQserverVersion(m->source->conn), PQserverVersion(m->target->conn)};
	char	   *ids[2],
			   *taken[2],
			   *texts[2];
	PGresult   *maximums[2];
	bool		lacks_indexes = value(m->target, &sql_lacks_indexes, m->name) != NULL;
	int			found,
				differ;

	for (int i = 0; i < 2; i++)
	{
		Server	   *s = i ? m->target : m->source;

		ids[i] = value(s, &sql_id_sequences, m->shards);
		s->fingerprint_query = value(s, &sql_fingerprint, m->shards, ids[i]);
		s->fingerprint = NULL;
	}
	if (!take_fingerprints(m, taken))
		return settled(m, "cannot read the definitions");
	found = show_findings(m, rows(m->source, &sql_check_children, m->shards));
	/* one of the target alone differs */
	if (!m->options.by_dump)
		found += show_findings(m, rows(m->source, &sql_check_triggers, m->shards));
	if (found)
		return fail(m, IN_THE_WAY, "something cannot be moved", "It has come since the check.",
					"Each line with ! above tells the cure. Run the same command again.");
	for (int i = 0; i < 2; i++)
	{
		Server	   *s = i ? m->target : m->source;

		/* a connection of its own finds the snapshot on the same server only */
		run(s, "BEGIN ISOLATION LEVEL REPEATABLE READ");
		texts[i] = dump(m, s, versions[0] > versions[1] ? versions[0] : versions[1], "--schema-only",
						value(s, &sql_export_snapshot));
		run(s, "COMMIT");
		if (!texts[i])
			return dump_failed(m);
		maximums[i] = rows(s, &sql_maximums, m->shards, ids[i]);
	}
	kill_point("both dumped");
	if (m->source->error || m->target->error)
		return settled(m, "cannot read the definitions");
	differ = compare_texts(texts[0], texts[1], versions[0] / 10000 == versions[1] / 10000, lacks_indexes);
	/* a sequence that only one side has was told */
	if (!differ)
		differ = print_lines(differences(maximums[0], maximums[1]), 20);
	if (differ)
		return fail(m, DIFFERENT, "the definitions of the two sides differ", "They were changed since the move began.",
					"Make the same change on the other side, and run the same command again, or --cancel.");
	m->source->fingerprint = taken[0];
	m->target->fingerprint = taken[1];
	return DONE;
}

/* Compare the definitions that have arrived, which no client uses yet, and drop them if they differ. */
int
compare_arrived(Move *m)
{
	int			status = compare_definitions(m);

	if (status != DIFFERENT)
		return status;
	/* with --dump, there is no subscription */
	if (!m->options.by_dump)
		run(m->target, "ALTER SUBSCRIPTION %s SET (slot_name = NONE)", m->name);
	if (!drop_copy(m))
		say("cannot drop the shards of the target again: %s", m->target->error);
	return fail(m, DIFFERENT, "the definitions that arrived differ",
				"A setting of the target, as its default privileges, has changed them.",
				"Remove the cause there, and run the same command again, or --cancel.");
}
