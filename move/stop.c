/* The switch: the source refuses writes, and the target serves the same rows. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "move.h"
#include "steps.h"

/* a time in which the source refuses writes, and its parts */
typedef struct Stop
{
	double		began,
				stopped,
				applied,
				until,
				hook;			/* seconds of --on-switch */
	bool		is_unknown;		/* whether the target serves */
} Stop;

volatile sig_atomic_t interrupted = 0;

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

/* Tell the router, within a time; returns what has gone wrong, or null. */
static const char *
run_hook(Move *m, const char *what, double seconds)
{
	double		until = now() + seconds;
	int			status;
	pid_t		child;

	if (seconds <= 0)
		return "there was no time left for it";
	if ((child = fork()) < 0)
		return "it could not be started";
	if (child == 0)
	{
		setpgid(0, 0);
		setenv("INSTAID_MOVE", what, 1);
		setenv("INSTAID_MOVE_SHARDS", m->shards, 1);
		execl("/bin/sh", "sh", "-c", m->options.hook, (char *) NULL);
		_exit(127);
	}
	/* whoever comes first: what it starts ends with it */
	setpgid(child, child);
	while (waitpid(child, &status, WNOHANG) == 0)
	{
		if (now() > until)
		{
			kill(-child, SIGKILL);
			waitpid(child, &status, 0);
			return fmt("it took longer than %s", strcmp(what, "back") == 0 ? "60 s" : "--max-stop");
		}
		nap(0.002);
	}
	if (WIFSIGNALED(status))
		return fmt("it was ended by signal %d", WTERMSIG(status));
	return status == 0 ? NULL : fmt("it failed with exit status %d", WEXITSTATUS(status));
}

static int
not_now(Move *m, const char *why)
{
	return fail(m, NOT_NOW, NULL, why, NULL);
}

/* Begin a snapshot of the rows on both sides. */
static void
take_snapshots(Move *m)
{
	for (int i = 0; i < 2; i++)
		send_text(i ? m->target : m->source, (i ? m->target : m->source)->reader,
				  "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT 1", NULL);
	for (int i = 0; i < 2; i++)
		PQclear(receive(i ? m->target : m->source, (i ? m->target : m->source)->reader));
}

/* The commands that a query answers, as one text */
static char *
joined(PGresult *commands)
{
	char	   *text = "SELECT";

	for (int i = 0; i < PQntuples(commands); i++)
		text = fmt("%s; %s", text, PQgetvalue(commands, i, 0));
	return text;
}

/* Begin the transaction in which the target starts to serve, with texts by thaw.sql, positions.sql and freeze.sql. */
static void
begin_start(Move *m, const char *thaw, const char *positions, const char *freeze, const char *rest)
{
	run(m->target, "BEGIN; SET LOCAL lock_timeout = '2s'; DROP SCHEMA IF EXISTS %s; %s; %s; %s; %s", m->name, thaw, positions,
		freeze, rest);
}

/*
 * Note in the mark which shards are frozen before they are stopped, which stay so: their owners may freeze and thaw them
 * at any time until then.
 */
static void
note_frozen(Move *m)
{
	char	   *frozen = value(m->source, &sql_frozen, m->shards);

	if (!frozen || strcmp(frozen, m->frozen) == 0)
		return;
	m->frozen = frozen;
	run_text(m->source, mark(m, m->source, m->target, m->seen.source.mark, m->seen.source.one_way));
}

/*
 * Stop the source and start the target.  No lock is held while another is waited for: the guards are there already, and
 * a schema that they look for refuses all later writes at once.  Then the transactions end that may have passed before.
 * If anything fails or takes too long, the caller takes it back.
 */
static int
stop_and_start(Move *m, Stop *stop)
{
	Server	   *from = m->source,
			   *to = m->target;
	bool		by_dump = m->options.by_dump;
	char	   *thaw = joined(rows(to, &sql_thaw, m->shards, "{}")),
			   *freeze = joined(rows(to, &sql_freeze, m->frozen)),
			   *positions = positions_query(m),
			   *creators,
			   *begins;
	const char *why;
	PGresult   *holders,
			   *sequences;
	int			status;

	/* what was asked above is known before writes are refused */
	if (from->error || to->error)
		return settled(m, NULL);
	stop->began = now();
	stop->until = stop->began + m->options.max_stop;

	/*
	 * what is slow is taken back, and tried again; what hangs ends the
	 * program
	 */
	from->answer_by = to->answer_by = stop->until + 1;
	/* has_confirmed() flushes this, and the freeze; with --dump, nothing does */
	run(from, "SET synchronous_commit = %s; CREATE SCHEMA %s", by_dump ? "on" : "off", m->name);
	/* the target has nothing else to do for a while */
	if (!by_dump)
		ask_fingerprint(to);
	kill_point("stopping");

	/* those that may have passed the guards */
	holders = rows(from, &sql_holders, m->shards, "0");
	while (column(holders, 0, "transactions")
		   && value(from, &sql_holders_left, column(holders, 0, "transactions")))
	{
		if (now() > stop->until || interrupted)
			return not_now(m, fmt("transactions that write are open, of session %s", column(holders, 0, "sessions")));
		nap(0.002);
	}
	kill_point("guarded");
	run_each(from, &sql_freeze, m->shards);
	stop->stopped = now();
	kill_point("stopped");

	if (by_dump)
	{
		from->answer_by = to->answer_by = 0;
		if ((status = settled(m, NULL)) || (status = copy_shards(m)))
			return status;
		stop->until = now() + m->options.max_stop;
		from->answer_by = to->answer_by = stop->until + 1;
		thaw = joined(rows(to, &sql_thaw, m->shards, "{}"));
	}
	else if (!has_confirmed(m, from, stop->until) && !from->error && !to->error)
		return not_now(m, "the target does not apply the last changes in time");
	stop->applied = now();
	kill_point("applied");

	/*
	 * what was created since: nobody may be creating, and both sides are as
	 * they were when they were compared
	 */
	if ((creators = value(from, &sql_creators, m->shards)))
		return not_now(m, fmt("session %s creates something in the schema", creators));
	if (PQntuples(rows(from, &sql_put_guards, m->shards, m->name)) > 0)
		return not_now(m, "a table was created that has no guard");
	if (!are_unchanged(m) && !from->error && !to->error)
		return not_now(m, "the definitions have changed");
	if (from->error || to->error)
		return settled(m, NULL);
	sequences = rows_of_text(from, from->reader, positions);
	if (m->options.compares && !by_dump)
		take_snapshots(m);
	if (from->error || to->error)
		return settled(m, NULL);
	m->may_be_told = true;
	stop->hook = now();
	if (m->options.hook && (why = run_hook(m, "switch", stop->until - now())))
		return fail(m, HOOK_FAILED, NULL, why, NULL);
	stop->hook = now() - stop->hook;
	kill_point("told");
	if (interrupted)
		return not_now(m, "interrupted");

	/*
	 * the position of the mark in the WAL is where the way back begins: what
	 * was applied up to here must not come back
	 */
	begins = by_dump ? fmt("CREATE PUBLICATION %s", m->name) :
		fmt("ALTER SUBSCRIPTION %s DISABLE; ALTER SUBSCRIPTION %s SET (slot_name = NONE)", m->name, m->name);
	begin_start(m, thaw, PQgetvalue(sequences, 0, 0), freeze,
				fmt("%s; %s", begins, mark(m, to, from, MARK_SWITCHED, by_dump || m->seen.target.one_way)));
	if (now() > stop->until && !from->error && !to->error)
		return not_now(m, "it took longer than --max-stop");
	kill_point("started");

	/*
	 * Until here, the target forgets it all if the program ends.  If there is
	 * no answer from here on, only the target knows whether it serves them.
	 */
	if (from->error || to->error)
		return settled(m, NULL);
	to->answer_by = 0;
	run(to, "COMMIT");
	stop->is_unknown = is_lost(to);
	return settled(m, NULL);
}

/*
 * Run a command on a server, whoever holds a lock that it needs: any role can hold one for as long as it likes, and
 * writes are refused meanwhile.  Who does so for two seconds is ended while we are next in the queue, or named if this
 * role may not do that.
 */
static void
insist(Server *s, const char *command)
{
	const char *told = "";
	double		asked = now();

	send_text(s, s->conn, command, NULL);
	while (!s->error)
	{
		PGresult   *blockers;

		s->answer_by = asked + 2;
		receive(s, s->conn);
		s->answer_by = 0;
		/* the two seconds go on, or who causes deadlocks would never be ended */
		if (strcmp(s->sqlstate, "40P01") == 0)
		{
			forget_error(s);
			send_text(s, s->conn, command, NULL);
			continue;
		}
		if (strcmp(s->sqlstate, SILENT) != 0)
			return;
		asked = now();
		forget_error(s);
		open_reader(s);
		/* a comparison may have left an old snapshot there */
		PQclear(rows_of_text(s, s->reader, "ROLLBACK"));
		send_text(s, s->reader, sql_end_blockers.text, fmt("%d", PQbackendPID(s->conn)));
		blockers = receive(s, s->reader);
		for (int i = 0; i < PQntuples(blockers); i++)
		{
			const char *line = fmt(is_true(blockers, i, "is_ended") ? "ended %s, for whom the %s could not serve again" :
								   "waiting for %s before the %s can serve again", column(blockers, i, "name"), s->name);

			if (strcmp(line, told) != 0)
				say("%s", told = line);
		}
		if (PQstatus(s->conn) == CONNECTION_OK)
			forget_error(s);
	}
}

/*
 * Let the source serve again.  The schema goes last, since it tells that the source is stopping: whoever comes after
 * this was cut off does it again.  Each shard is thawed by itself, so that who locks two of them causes no deadlock.
 */
int
step_serve_again(Move *m)
{
	PGresult   *thaw = rows(m->source, &sql_thaw, m->shards, m->frozen);
	const char *why;

	run(m->source, "SET lock_timeout = 0; SET synchronous_commit = on");
	for (int i = 0; i < PQntuples(thaw); i++)
		insist(m->source, PQgetvalue(thaw, i, 0));
	kill_point("thawed");
	insist(m->source, fmt("DROP SCHEMA IF EXISTS %s", m->name));
	run(m->source, "SET lock_timeout = '10s'");
	if (m->options.hook && m->may_be_told && !m->source->error && (why = run_hook(m, "back", 60)))
		say("--on-switch was told INSTAID_MOVE=back: %s", why);
	m->may_be_told = false;
	kill_point("taken back");
	return settled(m, "cannot let the source serve again");
}

/*
 * Let the source serve again, whatever has happened, and keep what was said of it: what is said of a server that is
 * gone, too.
 */
static int
take_back(Move *m, int status)
{
	Server	   *from = m->source,
			   *to = m->target;
	const char *what = m->what,
			   *why = m->why,
			   *next = m->next;

	from->answer_by = to->answer_by = 0;
	/* the answer of one that was slow is thrown away */
	if (PQstatus(from->conn) == CONNECTION_OK)
		forget_error(from);
	if (!is_lost(to))
		forget_error(to);
	/* what it still answers is thrown away */
	to->is_asked = false;
	if (!is_lost(to) && PQtransactionStatus(to->conn) == PQTRANS_INTRANS)
		run(to, "ROLLBACK");
	step_serve_again(m);
	if (from->error && status != DISCONNECTED)
		return settled(m, "cannot let the source serve again");
	for (int i = 0; i < 2; i++)
		PQclear(rows_of_text(i ? to : from, (i ? to : from)->reader, "ROLLBACK"));
	run(to, "SET lock_timeout = '10s'");
	return fail(m, status, what, why, next);
}

/* Is a switch worth trying?  NOT_NOW, and why, if it would stop writes in vain. */
static int
look_before(Move *m)
{
	PGresult   *old = rows(m->source, &sql_holders, m->shards, "1");

	/* a transaction that is old already will not end soon */
	if (column(old, 0, "sessions"))
		return fail(m, NOT_NOW, fmt("waiting for the open transactions of session %s", column(old, 0, "sessions")),
					fmt("Transactions of session %s have been open for over a second.", column(old, 0, "sessions")),
					"Run the same command again when they have ended, or --cancel.");

	/*
	 * what the target is going to run: it may refuse that, and the first time
	 * takes longer
	 */
	if (!m->options.by_dump)
		begin_start(m, joined(rows(m->target, &sql_thaw, m->shards, "{}")), "SELECT",
					joined(rows(m->target, &sql_freeze, m->frozen)),
					fmt("ALTER SUBSCRIPTION %s DISABLE; ROLLBACK", m->name));
	if (m->target->error && !is_lost(m->target))
	{
		const char *why = m->target->error;

		forget_error(m->target);
		return fail(m, NOT_NOW, "waiting: the target cannot thaw the shards", why,
					"Remove the cause there, and run the same command again, or --cancel.");
	}
	/* a copy that does not apply: a healthy one needs some ms */
	if (!m->options.by_dump && !has_confirmed(m, m->source, now() + (m->options.max_stop > 0.1 ?
																	 m->options.max_stop / 2 : 0.05))
		&& !m->source->error && !m->target->error)
		return fail(m, NOT_NOW, "waiting: the target does not apply the last changes within half of --max-stop",
					fmt("The target does not apply the last changes within half of --max-stop.\n%s",
						worker_message(m, m->target)),
					"The source serves. Run the same command again when the target has caught up, or --cancel.");
	return settled(m, "cannot switch");
}

/* Try to switch until it succeeds, or until --max-wait. */
int
switch_over(Move *m)
{
	double		until = 0;
	const char *told = "";

	for (int n = 0;;)
	{
		Stop		stop = {0};
		bool		has_changed = false;
		int			status;

		status = !m->options.by_dump ? follow(m, until, &has_changed) : are_unchanged(m) ? DONE : rehearse(m);
		/* a table that came since is to be copied first, and in the way back */
		if (status || has_changed)
			return status;
		/* when it is ready for the first time */
		if (until == 0)
			until = now() + m->options.max_wait;
		patiently(m, m->source, &sql_put_guards, m->shards);
		if (!m->options.by_dump)
			patiently(m, m->target, &sql_put_guards, m->shards);
		open_reader(m->source);
		open_reader(m->target);
		if ((status = settled(m, "cannot put guards on the tables")))
			return status;
		note_frozen(m);
		if ((status = look_before(m)))
		{
			if (status != NOT_NOW || m->source->error || m->target->error)
				return status;
			if (now() > until)
				return fail(m, NOT_NOW, fmt("not switched within %.0f s", m->options.max_wait), m->why, m->next);
			if (strcmp(told, m->what) != 0)
				say("%s", told = m->what);
			nap(0.2);
			continue;
		}

		n++;
		catch_signals(interrupt);
		run(m->source, "SET lock_timeout = '300ms'");
		run(m->target, "SET lock_timeout = '300ms'");
		status = stop_and_start(m, &stop);
		m->source->answer_by = m->target->answer_by = 0;
		if (stop.is_unknown)
			return status;
		if (!status)
		{
			catch_signals(SIG_DFL);
			m->has_snapshots = m->options.compares && !m->options.by_dump;
			say("switched: writes were refused for %.0f ms (%.0f to stop, %.0f to %s, %.0f on-switch, %.0f to start)",
				(now() - stop.began) * 1000, (stop.stopped - stop.began) * 1000, (stop.applied - stop.stopped) * 1000,
				m->options.by_dump ? "copy" : "apply", m->options.hook ? stop.hook * 1000 : 0,
				(now() - stop.applied - stop.hook) * 1000);
			run(m->source, "SET lock_timeout = '10s'");
			/* what a dump has set, too */
			reset_session(m->target);
			return settled(m, "cannot go on");
		}
		status = take_back(m, status);
		catch_signals(SIG_DFL);
		/* one that is gone can be seen only now */
		if (status != DISCONNECTED && (is_lost(m->source) || is_lost(m->target)))
			status = settled(m, NULL);
		if (status == DISCONNECTED)
			return status;

		/*
		 * what a server refuses may be otherwise a moment later, but for a
		 * copy by --dump
		 */
		if (status == FAILED && !m->options.by_dump)
			status = NOT_NOW;
		if (status != NOT_NOW || now() > until || interrupted)
			return fail(m, status, status == HOOK_FAILED ? "not switched: --on-switch" :
						fmt("not switched after %d attempt%s", n, n > 1 ? "s" : ""), m->why,
						m->options.by_dump ? "The source serves the shards. Run the same command again, or --cancel." :
						"The source serves the shards, and the target follows. Run the same command again, or --cancel.");
		say("attempt %d was taken back: %s", n, m->why);
		nap(0.3 + 0.1 * (n % 7));
	}
}
