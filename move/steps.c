/* The steps of a move.  Each ends with what both servers say of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "move.h"
#include "steps.h"

/* The bytes from which on a table's indexes, but for keys, are made after its copy */
#define LARGE_TABLE "104857600"

#define HAS_ERROR(m) ((m)->source->error || (m)->target->error)

/* Run commands that need locks on tables that clients use, one by one, with as little waiting as helps.  The first
 * parameter of the query is the shards, or some of their tables, and the second one the name of the move. */
bool
patiently(Move *m, Server *s, const Query *query, const char *shards)
{
	double		until = now() + m->options.max_wait;

	/* others wait behind it */
	run(s, "SET lock_timeout = '300ms'");
	while (!run_each(s, query, shards, m->name) && !is_lost(s) && now() < until)
	{
		forget_error(s);
		nap(0.3);
	}
	if (s->error && !is_lost(s))
		memcpy(s->sqlstate, "55P03", 6);
	return run(s, "SET lock_timeout = '10s'");
}

/* Wait until the copy of a side has all that was written there; false if it takes too long. */
bool
has_confirmed(Move *m, Server *from, double until)
{
	char	   *last = value(from, &sql_last_change);

	while (last && !value(from, &sql_has_confirmed, from->slot, last))
	{
		if (HAS_ERROR(m) || now() > until || interrupted)
			return false;
		nap(0.002);
	}
	return last != NULL && !from->error;
}

static void
publish(Move *m, Server *from, Server *to, Mark state, bool one_way)
{
	char	   *command = value(from, &sql_publication, m->shards, m->name, one_way || m->options.by_dump ? "t" : "f");

	run(from, "%s; %s", command ? command : "SELECT", mark(m, from, to, state, one_way));
}

static void
create_slot(Server *s)
{
	char	   *writers = value(s, &sql_slow_writers);

	if (writers)
		say("the slot waits for open transactions of the %s: %s", s->name, writers);
	/* nothing of others waits behind this */
	run(s, "SET lock_timeout = 0");
	value(s, &sql_create_slot, s->slot);
	run(s, "SET lock_timeout = '10s'");
}

/* Wait until no worker of a subscription without a slot is left, and drop its slots. */
static void
drop_slots(Server *from, Server *to)
{
	char	   *system = fmt("%.*s", (int) strcspn(to->id, "/"), to->id);

	for (double until = now() + 30;;)
	{
		char	   *left = to->subscription ? value(to, &sql_workers, to->subscription) : NULL;

		if (to->error)
			return;
		if (!left || strcmp(left, "0") == 0 || now() > until)
		{
			value(from, &sql_end_senders, from->slot, to->subscription, system);
			value(from, &sql_drop_slots, from->slot, to->subscription, system);
			if (!from->error || is_lost(from) || now() > until)
				return;
			forget_error(from);
		}
		nap(0.1);
	}
}

static void
detach(Move *m, Server *s)
{
	run(s, "ALTER SUBSCRIPTION %s DISABLE; ALTER SUBSCRIPTION %s SET (slot_name = NONE)", m->name, m->name);
}

static void
drop_publication(Move *m, Server *s)
{
	if (patiently(m, s, &sql_unpublish, m->shards))
	{
		kill_point("unpublished");
		run(s, "DROP PUBLICATION IF EXISTS %s", m->name);
	}
}

/* The option that tells how the other server reaches a side */
const char *
reach_option(Move *m, Server *s)
{
	return (s == m->source) != m->options.reverse ? "source-for-target" : "target-for-source";
}

/* That a command failed because one server does not reach the other, and the option that helps */
int
unreachable(Move *m, Server *s, Server *other, const char *what)
{
	/* it can have gone just now */
	run(other, "SELECT");
	if (is_lost(other))
		forget_error(s);
	if (is_lost(s) || is_lost(other))
		return settled(m, what);
	return fail(m, BROKEN, what, strcmp(s->sqlstate, "42501") == 0 ?
				fmt("the %s's server cannot use the %s: %s", s->name, other->name, s->error) :
				fmt("the %s's server cannot use the %s: %s; give --%s%s", s->name, other->name, s->error,
					reach_option(m, other), m->options.reverse ? ", also with --reverse" : ""),
				"Run the same command again.");
}

/* A source that moved is reached as this command says, and no more as the first one did. */
int
set_connection(Move *m)
{
	char	   *has = value(m->target, &sql_connection, m->target->subscription);
	bool		same = has && strcmp(has, m->source->reach) == 0;

	/* a role that may not read the connection sets it */
	if (m->target->error && !is_lost(m->target))
		forget_error(m->target);
	if (!same && (!reaches(m->target, m->source)
				  || !run_secretly(m->target, "ALTER SUBSCRIPTION %s CONNECTION %s", m->name,
								   literal(m->target, m->source->reach))))
		return unreachable(m, m->target, m->source, "cannot change the connection of the target");
	return settled(m, "cannot read the connection of the target");
}

/*** To the switch ***/

int
step_begin(Move *m)
{
	int			status = check(m);
	PGresult   *others[2];

	if (status)
		return status;
	/* two runs with one shard in common have two locks */
	if (!run(m->source, "BEGIN; SELECT pg_advisory_xact_lock(hashtext('instaid-move'), -1)") && !is_lost(m->source))
		return fail(m, BUSY, fmt("another move begins with the %s", m->source->name), busy_session(m->source, "-1"),
					"Wait for it, or end the session with pg_terminate_backend().");
	others[0] = rows(m->source, &sql_marks, m->shards);
	others[1] = rows(m->target, &sql_marks, m->shards);
	for (int i = 0; i < 2; i++)
		if (PQntuples(others[i]) > 0)
			return fail(m, IN_THE_WAY, fmt("a shard of %s is in another move, or in the way back of one", m->shown),
						fmt("Publication %s is its mark.", column(others[i], 0, "name")),
						"Finish or cancel that one first.");
	publish(m, m->source, m->target, MARK_COPYING, false);
	run(m->source, "COMMIT");
	return settled(m, "cannot publish the shards");
}

int
step_create_slot(Move *m)
{
	patiently(m, m->source, &sql_give_identity, m->full);
	patiently(m, m->source, &sql_put_guards, m->shards);
	kill_point("guards");
	create_slot(m->source);
	return settled(m, "cannot put guards on the tables, or create the slot");
}

/*
 * Make the shards on the target, frozen and guarded, and the subscription that fills them, in one transaction.  The
 * subscription does not connect: it would wait for itself if both databases are on one server.
 */
int
step_define(Move *m)
{
	int			status = make_shards(m);

	if (status)
		return status;
	run_each(m->target, &sql_freeze, m->shards);
	run_secretly(m->target, "CREATE SCHEMA %s; CREATE SUBSCRIPTION %s CONNECTION %s PUBLICATION %s"
				 " WITH (connect = false, slot_name = %s); COMMIT", m->name, m->name,
				 literal(m->target, m->source->reach), m->name, m->source->slot);
	reset_session(m->target);
	if ((status = settled(m, "cannot make the shards on the target")))
		return status;
	kill_point("subscribed");
	return compare_arrived(m);
}

int
step_enable(Move *m)
{
	PGresult   *late = rows(m->source, &sql_late_indexes, m->shards, LARGE_TABLE);
	char	   *known = value(m->target, &sql_known, m->name);
	bool		is_empty = known && strcmp(known, "0") == 0;

	run(m->target, "BEGIN");
	for (int i = 0; is_empty && i < PQntuples(late); i++)
		run(m->target, "DROP INDEX IF EXISTS %s; COMMENT ON SCHEMA %s IS 'without all indexes'",
			column(late, i, "name"), m->name);
	run(m->target, "ALTER SUBSCRIPTION %s ENABLE; COMMIT", m->name);
	return settled(m, "cannot start the copy");
}

/* Make the indexes without which the rows were copied. */
static int
make_indexes(Move *m)
{
	PGresult   *late = rows(m->source, &sql_late_indexes, m->shards, "0");
	Server	   *to = m->target;

	if (!value(to, &sql_lacks_indexes, m->name))
		return settled(m, "cannot see the indexes");
	/* only the copy itself waits behind this */
	run(to, "SET lock_timeout = 0");
	for (int i = 0; i < PQntuples(late); i++)
	{
		int			status;

		if (value(to, &sql_has_relation, column(late, i, "name")))
			continue;
		/* its text names functions, and others can have come during the copy */
		if ((status = trust_again(m, m->source)) || (status = trust_again(m, to)))
			return status;
		say("making index %s", column(late, i, "name"));
		run_text(to, column(late, i, "definition"));
		kill_point("index");
	}
	run(to, "SET lock_timeout = '10s'; COMMENT ON SCHEMA %s IS NULL", m->name);
	to->fingerprint = NULL;
	return settled(m, "cannot make the indexes");
}

/*
 * Have the target forget a table that is going to be copied, and delete what it has of it: the rows of an older copy,
 * whose end was lost, or of another table of this name, which was dropped on the source.
 */
static int
empty_copies(Move *m, PGresult *tables)
{
	Server	   *to = m->target;
	bool		is_forgotten = false;

	for (int i = 0; i < PQntuples(tables); i++)
	{
		const char *table = column(tables, i, "name");
		char	   *code;

		if (!value(to, &sql_has_copy, table, to->subscription))
			continue;

		/*
		 * nothing is applied to it any more, and what was sent before has
		 * been
		 */
		if (!is_forgotten && !run(to, "ALTER SUBSCRIPTION %s REFRESH PUBLICATION", m->name))
			return unreachable(m, to, m->source, "the target cannot ask the source for its tables");
		if (!is_forgotten && !has_confirmed(m, m->source, now() + m->options.max_wait) && !HAS_ERROR(m))
			return fail(m, NOT_NOW, fmt("%s cannot be copied again yet", table), worker_message(m, to),
						"Run the same command again when the target has caught up, or --cancel.");
		is_forgotten = true;
		say("copying %s again: the target has an older copy, or that of a table that was dropped", table);
		/* no code of the table's owner may run with our rights */
		run(to, "BEGIN; LOCK TABLE ONLY %s IN SHARE ROW EXCLUSIVE MODE", table);
		if ((code = value(to, &sql_code_of_table, table)))
			return fail(m, BROKEN, fmt("%s cannot be copied again", table), code, "--cancel, and begin again.");
		run(to, "SET LOCAL session_replication_role = replica; DELETE FROM ONLY %s; COMMIT", table);
	}
	return settled(m, "cannot empty the tables that are copied again");
}

/* Add tables to the publication that both sides have since it was made, and let the target know. */
static int
publish_new(Move *m, bool *has_changed)
{
	PGresult   *added = rows(m->source, &sql_unpublished, m->shards, m->name);
	bool		is_new = PQntuples(added) > 0;
	char	   *published,
			   *known;
	int			status;

	if (is_new && show_findings(m, rows(m->source, &sql_check_identity, m->shards, "f")))
		return fail(m, IN_THE_WAY, "a table that was created since cannot be replicated", NULL,
					"Each line with ! above tells the cure. Run the same command again.");
	if ((status = empty_copies(m, added)))
		return status;
	PQclear(added);
	run_each(m->source, &sql_unpublished, m->shards, m->name);
	published = value(m->source, &sql_published, m->name);
	known = value(m->target, &sql_known, m->name);
	if (HAS_ERROR(m))
		return settled(m, "cannot publish the new tables");
	if (is_new || strcmp(published, known) != 0)
	{
		/* PostgreSQL 15 applies rows to them with our rights */
		if ((status = trust_again(m, m->source)) || (status = trust_again(m, m->target)))
			return status;
		*has_changed = true;
		if (!run(m->target, "ALTER SUBSCRIPTION %s REFRESH PUBLICATION", m->name))
			return unreachable(m, m->target, m->source, "the target cannot ask the source for its tables");
		kill_point("refreshed");
	}
	return DONE;
}

/*
 * The end of a table's copy drops its slot on the source, and then commits that on the target.  A crash between leaves
 * a table that waits for this slot for ever, and no error is counted.  Take such a table from the publication, and
 * publish_new() copies it again.
 */
static int
copy_again(Move *m)
{
	Server	   *to = m->target;
	char	   *system = fmt("%.*s", (int) strcspn(to->id, "/"), to->id);
	char	   *copied = value(to, &sql_copied_tables, to->subscription, system),
			   *still;
	PGresult   *lost = copied ? rows(m->source, &sql_lost_copies, copied) : NULL;

	if (!lost || PQntuples(lost) == 0)
		return settled(m, "cannot see the copies");
	/* a copy that ends now loses its slot a moment before the table is ready */
	nap(3);
	still = value(to, &sql_copied_tables, to->subscription, system);
	if (!still || strcmp(still, copied) != 0)
		return settled(m, "cannot see the copies");
	for (int i = 0; i < PQntuples(lost); i++)
		run(m->source, "ALTER PUBLICATION %s DROP TABLE ONLY %s", m->name, PQgetvalue(lost, i, 0));
	run(to, "ALTER SUBSCRIPTION %s REFRESH PUBLICATION", m->name);
	return settled(m, "cannot copy tables again");
}

/* What a subscription's workers failed with last, as its server's log tells, if this role may read it; or where to look */
char *
worker_message(Move *m, Server *s)
{
	char	   *message = s->subscription ? value(s, &sql_worker_message, s->subscription, m->name) : NULL;

	if (s->error && !is_lost(s))
		forget_error(s);
	return message ? fmt("The %s's log says: %s", s->name, message) :
		fmt("The server log of the %s tells why.", s->name);
}

/*
 * Wait until the target has all tables, however long that takes, and nobody creates any more; then for --max-wait, or
 * until a time that is not 0.
 */
int
follow(Move *m, double until, bool *has_changed)
{
	Server	   *from = m->source,
			   *to = m->target;
	char	   *last = strdup("");
	double		told = 0,
				compared = 0,
				waiting = now(),
				failing = now(),
				standing = now(),
				bytes = -1;
	int			status,
				errors = -1,
				copied = -1;

	for (;;)
	{
		PGresult   *progress,
				   *slot;
		char	   *line,
				   *creators = value(from, &sql_creators, m->shards);
		bool		is_there,
					is_active;

		/*
		 * what is not committed yet cannot be compared, and is told if it
		 * lasts
		 */
		if (!creators && now() - compared > 1)
		{
			compared = now();

			/*
			 * PostgreSQL 15 applies rows with our rights, and what they run
			 * can be new
			 */
			if (!are_unchanged(m) && ((status = compare_definitions(m)) || (status = trust_again(m, from))
									  || (status = trust_again(m, to))))
				return status;
			if ((status = publish_new(m, has_changed)))
				return status;
		}
		if (now() - waiting > 10)
		{
			if ((status = copy_again(m)))
				return status;
			waiting = now();
		}
		progress = rows(to, &sql_progress, to->subscription);
		slot = rows(from, &sql_slot, from->slot);
		if (HAS_ERROR(m))
			return settled(m, "cannot see how the copy goes");
		if (PQntuples(slot) == 0 || strcmp(column(slot, 0, "wal_status"), "lost") == 0)
			return fail(m, BROKEN, fmt("the slot %s of the source is lost", from->slot), PQntuples(slot) ?
						"It held more WAL than max_slot_wal_keep_size permits." : "Somebody has dropped it.",
						"--cancel, and begin again.");
		is_active = is_true(slot, 0, "active");
		is_there = number_of(progress, 0, "copied") == number_of(progress, 0, "tables");
		/* a source that was down for a while causes errors, too */
		if ((int) number_of(progress, 0, "copied") != copied)
		{
			waiting = failing = now();
			copied = number_of(progress, 0, "copied");
			errors = number_of(progress, 0, "errors");
		}
		if (number_of(progress, 0, "errors") > errors + 3 && now() > failing + 10 && !(is_there && is_active))
			return fail(m, BROKEN, "the target fails again and again to apply or to copy", worker_message(m, to),
						"Remove the cause there, and run the same command again, or --cancel.");
		line = fmt("%s of %s tables copied, %s; %.0f kB behind, %s of WAL held%s%s%s", column(progress, 0, "copied"),
				   column(progress, 0, "tables"), column(progress, 0, "size"), number_of(slot, 0, "behind") / 1024,
				   column(slot, 0, "held"), strcmp(column(slot, 0, "wal_status"), "unreserved") == 0 ?
				   ", and the slot will be lost soon" : "", is_active ? "" : "; no worker yet",
				   creators ? fmt("; session %s creates something in the schema", creators) : "");
		if (number_of(progress, 0, "bytes") != bytes)
		{
			bytes = number_of(progress, 0, "bytes");
			standing = now();
		}
		else if (now() - standing > 10 && !is_there && value(to, &sql_lacks_workers))
		{
			say("no logical replication worker of the target is free: raise max_logical_replication_workers there and"
				" restart, or --cancel another move");
			standing = now() + 60;
		}
		if (strcmp(line, last) != 0 && now() - told > (is_there ? 5 : 1))
		{
			say("%s", line);
			told = now();
		}
		free(last);
		last = line;
		PQclear(progress);
		PQclear(slot);
		if (is_there && is_active && !creators)
			return DONE;
		if (is_there && until == 0)
			until = now() + m->options.max_wait;
		if (is_there && now() > until)
			return fail(m, NOT_NOW, fmt("not ready to switch within %.0f s", m->options.max_wait),
						is_active ? last : fmt("%s.\n%s", last, worker_message(m, to)),
						"Run the same command again when that has ended; the source serves, and the target follows.");
		nap(is_there ? 0.05 : 0.2);
	}
}

int
step_follow(Move *m)
{
	bool		has_changed = false;
	int			status = follow(m, 0, &has_changed);

	if (status || (status = make_indexes(m)))
		return status;
	if (!run_each(m->target, &sql_unanalyzed, m->shards) && !is_lost(m->target))
	{
		say("cannot ANALYZE: %s", m->target->error);
		forget_error(m->target);
	}
	return settled(m, "cannot follow the copy");
}

/* The subscription knows its tables, and starts after the switch. */
int
step_make_way_back(Move *m)
{
	Server	   *from = m->source,
			   *to = m->target;
	bool		one_way = m->options.one_way,
				has_changed = false;
	char	   *published,
			   *known;
	int			status = follow(m, 0, &has_changed);

	/* a table that came since is copied first */
	if (status || has_changed)
		return status;
	publish(m, to, from, MARK_PREPARED, one_way);
	kill_point("way back published");
	if (!one_way)
	{
		create_slot(to);
		kill_point("way back slot");
		if (HAS_ERROR(m))
			return settled(m, "cannot prepare the way back");

		/*
		 * what the copy writes to the target does not come back; before 16,
		 * step_start_way_back() sees to that
		 */
		if (!run_secretly(from, "CREATE SUBSCRIPTION %s CONNECTION %s PUBLICATION %s WITH (create_slot = false,"
						  " slot_name = %s, copy_data = false, enabled = false%s)", m->name, literal(from, to->reach),
						  m->name, to->slot, PQserverVersion(from->conn) >= 160000 ? ", origin = none" : ""))
			return unreachable(m, from, to, "cannot prepare the way back");
		published = value(to, &sql_published, m->name);
		known = value(from, &sql_known, m->name);
		if (!HAS_ERROR(m) && strcmp(published, known) != 0)
		{
			detach(m, from);
			run(from, "DROP SUBSCRIPTION %s", m->name);
			return fail(m, BROKEN, "cannot prepare the way back", "The source's server reaches another database than the"
						" target.", fmt("Run the same command again, with the right --%s.", reach_option(m, to)));
		}
	}
	m->seen.is_new = true;
	return settled(m, "cannot prepare the way back");
}

int
step_drop_way_back(Move *m)
{
	if (m->seen.source.has_subscription)
		detach(m, m->source);
	drop_slots(m->target, m->source);
	kill_point("way back slot dropped");
	run(m->source, "DROP SUBSCRIPTION IF EXISTS %s", m->name);
	kill_point("way back subscription dropped");
	drop_publication(m, m->target);
	return settled(m, "cannot drop the way back");
}

int
step_switch(Move *m)
{
	run(m->target, "ALTER SUBSCRIPTION %s SET (synchronous_commit = 'local')", m->name);
	return switch_over(m);
}

/* With --dump: the definitions are tried before writes are refused, and then all is copied. */
int
step_dump(Move *m)
{
	patiently(m, m->source, &sql_put_guards, m->shards);
	kill_point("guards");
	if (HAS_ERROR(m))
		return settled(m, "cannot put guards on the tables");
	return switch_over(m);
}

/*** After the switch ***/

int
step_end_copy(Move *m)
{
	drop_slots(m->source, m->target);
	kill_point("slot dropped");
	run(m->target, "DROP SUBSCRIPTION IF EXISTS %s", m->name);
	return settled(m, "cannot end the copy");
}

int
step_drop_publication(Move *m)
{
	drop_publication(m, m->source);
	return settled(m, "cannot drop the publication of the source");
}

/*
 * What was applied up to the switch must not come back.  From 16 on, the subscription asks for what is of this origin.
 * Before, its owner is a superuser, who may set the source's own place: a crash of the target forgets where its slot was
 * advanced to.  An earlier run can have enabled the subscription already.
 */
int
step_start_way_back(Move *m)
{
	Server	   *from = m->source,
			   *to = m->target;

	run(from, "ALTER SUBSCRIPTION %s DISABLE", m->name);
	for (double until = now() + 10; now() < until && value(to, &sql_is_active, to->slot);)
		nap(0.05);
	value(to, &sql_advance_slot, to->slot, to->lsn);
	if (PQserverVersion(from->conn) < 160000)
		value(from, &sql_advance_origin, m->name, to->lsn);
	kill_point("advanced");
	run(from, "ALTER SUBSCRIPTION %s ENABLE", m->name);
	return settled(m, "cannot start the way back");
}

int
step_mark_moved(Move *m)
{
	/* with --dump, the rows were compared before */
	run_text(m->target, mark(m, m->target, m->source,
							 m->seen.target.by_dump && m->options.compares ? MARK_SERVES : MARK_NOT_COMPARED,
							 m->seen.target.one_way || !m->seen.source.has_subscription));
	return settled(m, "cannot mark the move");
}

int
step_compare(Move *m)
{
	/* the snapshots of the switch are gone with the run that made it */
	bool		is_late = !m->has_snapshots;
	int			status;

	if (!m->options.compares)
		say("the rows were not compared: --verify does it, and --finish");
	else
	{
		if (is_late)
			say("%s: comparing the rows", m->shown);
		if (!open_reader(m->source) || !open_reader(m->target))
			return settled(m, "cannot compare the rows");
		status = compare_rows(m, m->source->reader, m->target->reader, !is_late);
		if (status == DIFFERENT)
			return fail(m, DIFFERENT, fmt("%s is moved, and rows differ", m->shown),
						"The lines above name them. The target serves the shards.", m->seen.target.one_way ?
						"Repair the side that lacks rows, and run the command again, or with --no-verify." :
						"Repair the side that lacks rows, and run the command again; --reverse lets the source serve.");
		if (status)
			return status;
	}
	run_text(m->target, mark(m, m->target, m->source, MARK_SERVES, m->seen.target.one_way));
	return settled(m, "cannot mark the move");
}

/*** The end, before a switch, or --finish of the other direction ***/

/* See that nothing else would be dropped with the shards. */
static int
check_copy(Move *m)
{
	Server	   *to = m->target;
	PGresult   *others = rows(to, &sql_dependants, m->shards);

	for (int i = 0; i < PQntuples(others); i++)
		printf("  ! %s\n", plain(PQgetvalue(others, i, 0)));
	return PQntuples(others) == 0 ? DONE :
		fail(m, IN_THE_WAY, fmt("the %s has what would be dropped with the shards", to->name),
			 "The lines above name it. Nothing was dropped.", "Drop or change it, and run the same command again.");
}

int
step_detach(Move *m)
{
	int			status = check_copy(m);

	if (status)
		return status;
	detach(m, m->target);
	return settled(m, "cannot stop the copy");
}

int
step_drop_slots(Move *m)
{
	drop_slots(m->source, m->target);
	return settled(m, "cannot drop the slots");
}

int
step_drop_copy(Move *m)
{
	int			status = check_copy(m);

	if (status)
		return status;
	if (!drop_copy(m) && !is_lost(m->target))
		return fail(m, NOT_NOW, fmt("cannot drop the shards of the %s", m->target->name), who_locks(m, m->target),
					"Run the same command again.");
	return settled(m, "cannot drop the copy");
}

int
step_end(Move *m)
{
	patiently(m, m->source, &sql_drop_guards, m->shards);
	patiently(m, m->source, &sql_take_identity, m->full);
	kill_point("guards dropped");
	drop_publication(m, m->source);
	return settled(m, "cannot drop the guards of the tables, or the publication");
}
