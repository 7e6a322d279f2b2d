/* The replication of a move: publications, slots and subscriptions, there and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "move.h"
#include "queries.h"

/* the WAL that may be left to apply when the source is stopped; it may be more the longer that takes */
#define SMALL_LAG (128 * 1024)

/* Create the publication of a move from here: FOR TABLE ONLY, which does not break what is created
 * meanwhile. */
char *
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

/*
 * Drop the publication of a move from here.  An UPDATE or DELETE that begins at that moment can fail
 * with "cache lookup failed for publication": it has read which publications its table is in, and
 * then looks for this one.  Therefore the tables leave it first, each while nobody writes to it.
 */
void
drop_publication(Side *side)
{
	run_patiently(side, UNPUBLISH, "end the publication of the tables");
	step("unpublished");
	run(side, fmt("DROP PUBLICATION IF EXISTS %s", name));
}

void
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

/* A source that moved is reached as this command says, and no more as the first one did. */
void
set_connection(void)
{
	PGresult   *same = try_query(to, "SELECT FROM pg_subscription WHERE oid = $1::oid"
								 " AND subconninfo = $2", to->sub, from->reach);

	/* a role that may not read the connection sets it */
	if ((!same || PQntuples(same) == 0)
		&& (!can_reach(to, from)
			|| !try_secretly(to, fmt("ALTER SUBSCRIPTION %s CONNECTION %s", name, literal(to, from->reach)))))
		stop(BROKEN, "cannot change the connection of the target", unreachable(to, from), NULL);
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

	if (atoi(count) > 0)
	{
		PGresult   *faults = query(from, CHECK_IDENTITY, shards, NULL);

		for (int i = 0; i < PQntuples(faults); i++)
			printf("  ! %s\n", PQgetvalue(faults, i, 0) + 1);
		if (PQntuples(faults))
			stop(IN_THE_WAY, "a table that was created since cannot be replicated", NULL,
				 "Each line with ! above tells the cure. Run the same command again.");
		PQclear(faults);
	}
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
		/*
		 * a copy that ends now loses its slot a moment before the table is
		 * ready
		 */
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
 * What a subscription's workers failed with last, as its server's log tells, if this role may read it; or where to
 * look.
 */
char *
worker_message(Side *side)
{
	PGresult   *found = side->sub ? try_query(side, WORKER_MESSAGE, side->sub, name) : NULL;
	char	   *message = found && PQntuples(found) && !PQgetisnull(found, 0, 0) ?
		fmt("\nThe %s's log says: %s", side->name, PQgetvalue(found, 0, 0)) :
		fmt("\nThe server log of the %s tells why.", side->name);

	PQclear(found);
	return message;
}

/*
 * Wait until the target has all tables, however long that takes, and then until it is near the end
 * of the source's WAL.
 */
void
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

		/*
		 * what is not committed yet cannot be compared, and is told if it
		 * lasts
		 */
		creators = value(from, CREATORS, shards, NULL);
		if (!creators && now() - compared > 1)
		{
			compared = now();
			if (!are_unchanged() && compare_definitions())
				stop(DIFFERENT, "the definitions of the two sides differ",
					 "They were changed since the move began.",
					 "Make the same change on the other side, and run the same command again, or --cancel.");
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
			stop(BROKEN, "the target fails again and again to apply or to copy", worker_message(to) + 1,
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
			stop(NOT_NOW, fmt("not ready to switch within %.0f s", max_wait),
				 fmt("%s.%s", last, is_active ? "" : worker_message(to)),
				 "Run the same command again when that has ended; the source serves, and the target follows.");
		nap(is_there ? 0.05 : 0.2);
	}
	free(last);
}

/* Wait until no worker of a disabled subscription is left, and drop its slots. */
void
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
void
detach(Side *sub)
{
	if (sub->sub)
		run(sub, fmt("ALTER SUBSCRIPTION %s DISABLE; ALTER SUBSCRIPTION %s SET (slot_name = NONE)",
					 name, name));
}

/* Drop what the way back of a move from one side to the other consists of. */
void
drop_way_back(Side *f, Side *t)
{
	detach(f);
	drop_slots(t, f);
	run(f, fmt("DROP SUBSCRIPTION IF EXISTS %s", name));
	drop_publication(t);
	look_at(f);
}

/* Prepare the way back: the subscription knows its tables, and starts after the switch. */
void
prepare_way_back(void)
{
	drop_way_back(from, to);
	run(to, publication(to, from, "prepared", one_way));
	step("way back published");
	if (!one_way)
	{
		create_slot(to);
		step("way back slot");
		/* what the copy writes to the target does not come back; before 16, clean_up() sees to that */
		if (!try_secretly(from, fmt("CREATE SUBSCRIPTION %s CONNECTION %s PUBLICATION %s WITH (create_slot = false,"
									" slot_name = %s, copy_data = false, enabled = false%s)", name,
									literal(from, to->reach), name, to->slot,
									PQserverVersion(from->conn) >= 160000 ? ", origin = none" : "")))
			stop(FAILED, "cannot prepare the way back", unreachable(from, to),
				 "Run the same command again.");
	}
	step("way back");
	look();
}

/* Wait until a copy has all that its source has written; false if it takes too long. */
bool
wait_for_copy(Side *f, double until)
{
	bool		is_there = false;

	/*
	 * the copy confirms this message at once; its commit also flushes all
	 * earlier ones
	 */
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
