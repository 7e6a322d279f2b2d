/* The switch of a move: the source refuses writes, and the target serves the same rows. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "move.h"
#include "queries.h"

/* how long a command waits for a lock of others, who wait behind it */
#define PATIENCE "300ms"

static bool may_be_told = true; /* --on-switch, that the shards are switched;
								 * a killed run may have */

volatile sig_atomic_t interrupted = 0;

/*
 * Run commands that need locks on tables that clients use, one by one, with as little waiting
 * as helps.
 */
void
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

/* Tell the router, within a time; returns what has gone wrong, or null. */
static char *
run_hook(const char *what, double seconds)
{
	double		until = now() + seconds;
	int			status;
	pid_t		child;

	if (seconds <= 0)
		return "there was no time left for it";
	child = fork();
	if (child == 0)
	{
		setpgid(0, 0);
		setenv("INSTAID_MOVE", what, 1);
		setenv("INSTAID_MOVE_SHARDS", shards, 1);
		execl("/bin/sh", "sh", "-c", hook, (char *) NULL);
		_exit(127);
	}
	/* whoever comes first: what it starts ends with it */
	if (child > 0)
		setpgid(child, child);
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
void
take_back(void)
{
	char	   *thaw,
			   *unmark,
			   *why;
	const char *before = strncmp(from->state, "back", 4) == 0 ? "back" : "copying";

	answer_by = 0;
	thaw = value(from, THAW, shards, frozen);
	unmark = mark(from, to, before, false);
	run(from, fmt("SET lock_timeout = '10s'; SET synchronous_commit = on; DROP SCHEMA IF EXISTS %s; %s; %s",
				  name, thaw ? thaw : "SELECT", unmark));
	free(thaw);
	free(unmark);
	set(&from->state, before);
	if (hook && may_be_told && (why = run_hook("back", 60)))
		say("--on-switch was told INSTAID_MOVE=back: %s", why);
	may_be_told = false;
	step("taken back");
}

/*
 * Sessions that compare rows.  A superuser must not read a view that the owner of a table
 * puts in its place: its functions would run with the superuser's rights.
 */
void
open_readers(void)
{
	for (int i = 0; i < 2; i++)
	{
		Side	   *side = i ? from : to;

		side->snapshot = open_connection(side);
		/* a hash table of 1024 sums, where a sort would write all rows to temporary files */
		if (!try_on(side, side->snapshot, "SET enable_sort = off; SET enable_hashagg = on; SET jit = off;"
					"SELECT set_config(name, 'view, foreign-table', false)"
					" FROM pg_settings WHERE name = 'restrict_nonsystem_relation_kind'"))
			stop(FAILED, fmt("cannot prepare a session of the %s", side->name), side->error, NULL);
	}
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

/* The positions of a side's sequences: name, last value, whether it was issued, whether it makes IDs, up or down */
static PGresult *
positions(Side *side, PGconn *reader)
{
	char	   *sql = value(side, SEQUENCES, shards, value(side, ID_SEQUENCES, shards, NULL));
	PGresult   *result;

	send_query(reader, sql ? sql : "SELECT WHERE false", NULL);
	result = answer(side, reader);
	free(sql);
	return result;
}

/*
 * Does the side that serves stand where the other one stopped, or beyond?  Sequences have no snapshot, and clients
 * go on.  One that cycles may stand anywhere.  Returns how many do not.
 */
static int
compare_sequences(PGconn *of_source, PGconn *of_target)
{
	PGresult   *stopped = positions(from, of_source),
			   *serving = positions(to, of_target);
	int			behind = 0;

	for (int i = 0, j = 0; i < PQntuples(stopped); i++)
	{
		long long	last[2];
		bool		called[2];

		while (j < PQntuples(serving) && strcmp(PQgetvalue(serving, j, 0), PQgetvalue(stopped, i, 0)) != 0)
			j++;
		if (j == PQntuples(serving))
			break;
		for (int n = 0; n < 2; n++)
		{
			last[n] = atoll(PQgetvalue(n ? serving : stopped, n ? j : i, 1));
			called[n] = PQgetvalue(n ? serving : stopped, n ? j : i, 2)[0] == 't';
		}
		/* those of IDs that were not used begin at the clock */
		if (PQgetisnull(stopped, i, 4) || (PQgetvalue(stopped, i, 3)[0] == 't' && !called[0]))
			continue;
		if ((PQgetvalue(stopped, i, 4)[0] == 't' ? last[1] < last[0] : last[1] > last[0])
			|| (last[0] == last[1] && called[0] && !called[1]))
		{
			behind++;
			printf("sequence %s stands at %lld%s on the source, and at %lld%s on the target\n",
				   PQgetvalue(stopped, i, 0), last[0], called[0] ? "" : ", not issued", last[1],
				   called[1] ? "" : ", not issued");
		}
	}
	PQclear(stopped);
	PQclear(serving);
	return behind;
}

/*
 * Compare the rows of both sides: sums by buckets of keys, and the rows of the buckets that
 * differ.  While clients write, a row differs as long as its change is on the way.  Therefore only
 * a difference that is the same after the copy had it all is told.  The copy can also be ahead:
 * a commit is sent to it when it is in the WAL, and its own server shows it a little later.
 * Therefore a difference must last for 3 s.
 */
int
verify(PGconn *of_source, PGconn *of_target, bool is_quiet)
{
	bool		are_alike = strcmp(PQparameterStatus(from->conn, "server_encoding"),
								   PQparameterStatus(to->conn, "server_encoding")) == 0;
	PGresult   *tables = query(from, COMPARED_TABLES, shards, are_alike ? "t" : "f");
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
		for (int look = 0; buckets && lines[0] && look < (is_quiet ? 1 : 6); look++)
		{
			char	  **before = lines;
			int			kept = 0;

			if (look > 1)
				nap(0.05 * (1 << look));
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
	if (to->marked && !is_state(to, "prepared"))
		differ += compare_sequences(of_source, of_target);
	if (!differ)
		say("verified: %d tables, %.0f rows, the same on both sides (%.1f s)", PQntuples(tables), rows,
			now() - began);
	PQclear(tables);
	return differ;
}

/* The commands that let the target's sequences go on where the source stopped */
static char *
set_positions(void)
{
	char	   *query_text = value(from, SEQUENCES, shards, value(from, ID_SEQUENCES, shards, NULL)),
			   *sql,
			   *commands = NULL;
	PGresult   *result;

	if (!query_text)
		return strdup("SELECT");
	sql = fmt(POSITIONS, query_text);
	send_query(from->snapshot, sql, NULL);
	result = answer(from, from->snapshot);
	if (!PQgetisnull(result, 0, 0))
		commands = strdup(PQgetvalue(result, 0, 0));
	PQclear(result);
	free(query_text);
	free(sql);
	return commands ? commands : strdup("SELECT");
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
	run(to, "SET LOCAL enable_sort = off; SET LOCAL enable_hashagg = on; SET LOCAL jit = off");
	if (verify_rows && verify(from->snapshot, to->conn, true))
		return *status = DIFFERENT, *why = "rows differ", false;
	step("verified");
	*status = NOT_NOW;
	return true;
}

/*
 * Stop the source and start the target.  No lock is held while another is waited for: the guards
 * are there already, and a schema that they look for refuses all later writes at once.  Then the
 * transactions end that may have passed before.  If anything fails or takes too long, the
 * caller takes it back.
 */
static bool
attempt(int *status, char **why)
{
	char	   *stopping = mark(from, to, is_moved(from) ? "back, stopping" : "copying, stopping",
								false),
			   *thaw = value(to, THAW, shards, "{}"),
			   *freeze = value(to, "SELECT COALESCE(string_agg(format("
							   "'SELECT instaid.freeze_shard(%L)', s), ';'), 'SELECT')"
							   " FROM unnest($1::text[]) AS s", frozen, NULL),
			   *text,
			   *sequences;
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

	/*
	 * what is slow is taken back, and tried again; what hangs ends the
	 * program
	 */
	answer_by = until + 1;
	at_end = take_back;
	/* wait_for_copy() flushes this, and the freeze; a dump does not call it */
	if (!try(from, fmt("SET synchronous_commit = %s; %s; CREATE SCHEMA %s", by_dump ? "on" : "off",
					   stopping, name)))
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
		thaw = value(to, THAW, shards, "{}");
	}
	else if (!wait_for_copy(from, until))
		return *why = "the target does not apply the last changes in time", false;
	applied = now();
	step("applied");

	/*
	 * what was created since: nobody may be creating, and both sides have the
	 * same
	 */
	if ((text = value(from, CREATORS, shards, NULL)))
		return *why = fmt("session %s creates something in the schema", text), false;
	if (value(from, "SELECT true WHERE EXISTS (" MISSING_GUARDS ")", shards, name))
		return *why = "a table was created that has no guard", false;
	if (!are_unchanged())
		return *why = "the definitions have changed", false;
	sequences = set_positions();
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

	if (!try(to, fmt("BEGIN; SET LOCAL lock_timeout = '2s'; DROP SCHEMA IF EXISTS %s; %s; %s; %s; %s", name, thaw,
					 sequences,
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
	 * Until here, the target forgets it all if the program ends.  If there is
	 * no answer from here on, only the target knows whether it serves them.
	 */
	at_end = NULL;
	answer_by = 0;
	if (!try(to, "COMMIT"))
		return *why = to->error, false;
	say("switched: writes were refused for %.0f ms (%.0f to stop, %.0f to %s, %.0f on-switch,"
		" %.0f to start)", (now() - began) * 1000, (stopped - began) * 1000,
		(applied - stopped) * 1000, by_dump ? "copy" : "apply", hook ? (hooked - applied) * 1000 : 0,
		(now() - (hook ? hooked : applied)) * 1000);
	free(sequences);
	step("switched");
	return true;
}

/* Try to switch until it succeeds, or until --max-wait. */
void
switch_over(void)
{
	double		until = 0;
	bool		is_told = false,
				is_behind = false;

	if (!by_dump)
	{
		prepare_way_back();
		run(to, fmt("ALTER SUBSCRIPTION %s SET (synchronous_commit = 'local')", name));
	}
	open_readers();
	for (int n = 0;;)
	{
		int			status;
		char	   *why;
		PGresult   *holders;
		bool		is_done;

		if (!by_dump)
			follow(until);
		else if (!are_unchanged())
			rehearse();
		/* when it is ready for the first time */
		if (until == 0)
			until = now() + max_wait;
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
		/* a copy that does not apply would stop writes in vain; a healthy one needs some ms */
		if (!by_dump && !wait_for_copy(from, now() + (max_stop > 0.1 ? max_stop / 2 : 0.05)))
		{
			if (now() > until)
				stop(NOT_NOW, fmt("not switched within %.0f s", max_wait),
					 fmt("The target does not apply the last changes within half of --max-stop.%s", worker_message(to)),
					 "The source serves. Run the same command again when the target has caught up, or --cancel.");
			if (!is_behind)
				say("waiting: the target does not apply the last changes within half of --max-stop");
			is_behind = true;
			nap(0.2);
			continue;
		}
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
		for (int i = 0; i < 2; i++)
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
void
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
	drop_publication(from);
	step("publication dropped");
	if (is_state(to, "switched"))
	{
		if (!to->one_way)
		{
			/*
			 * What was applied up to the switch must not come back.  From 16
			 * on, the subscription asks for what is of this origin.  Before,
			 * its owner is a superuser, who may set the source's own place: a
			 * crash of the target forgets where its slot was advanced to.  An
			 * earlier run can have enabled the subscription already.
			 */
			run(from, fmt("ALTER SUBSCRIPTION %s DISABLE", name));
			for (double until = now() + 10; now() < until
				 && value(to, "SELECT true FROM pg_replication_slots WHERE slot_name = $1 AND active",
						  to->slot, NULL);)
				nap(0.05);
			free(value(to, "SELECT pg_replication_slot_advance(slot_name, $2::pg_lsn)"
					   " FROM pg_replication_slots WHERE slot_name = $1 AND NOT active"
					   " AND confirmed_flush_lsn < $2::pg_lsn", to->slot, to->lsn));
			if (PQserverVersion(from->conn) < 160000)
				free(value(from, "SELECT pg_replication_origin_advance('pg_' || oid, $2::pg_lsn)"
						   " FROM pg_subscription AS s WHERE subname = $1 AND subdbid = " DATABASE
						   " AND COALESCE(pg_replication_origin_progress('pg_' || oid, false)"
						   "  < $2::pg_lsn, true)", name, to->lsn));
			step("advanced");
			run(from, fmt("ALTER SUBSCRIPTION %s ENABLE", name));
			step("way back enabled");
		}
		/* with --dump, the rows were compared before */
		run(to, mark(to, from, by_dump ? "back" : NOT_COMPARED, to->one_way));
	}
	look();
}
