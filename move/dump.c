/*
 * Moves by --dump: the definitions are tried on the target before writes are refused, and then one transaction makes,
 * fills, compares and thaws the shards there.
 */
#include <stdio.h>
#include <string.h>

#include "move.h"
#include "steps.h"

/* Would the definitions arrive as they are?  The schema with the name of the move tells that the others are its own. */
int
rehearse(Move *m)
{
	int			status = make_shards(m);

	if (status)
		return status;
	run_each(m->target, &sql_freeze, m->shards);
	run(m->target, "CREATE SCHEMA %s; COMMIT", m->name);
	reset_session(m->target);
	if ((status = settled(m, "cannot make the shards on the target")))
		return status;
	kill_point("rehearsing");
	if ((status = compare_arrived(m)))
		return status;
	if (!drop_copy(m) && !is_lost(m->target))
		return fail(m, NOT_NOW, "cannot drop the shards of the rehearsal on the target", m->target->error,
					"Run the same command again.");
	kill_point("rehearsed");
	return settled(m, NULL);
}

/* Read what is left of a COPY. */
static void
end_copy(Server *s)
{
	PGresult   *result;
	char	   *row;

	while ((result = PQgetResult(s->conn)))
	{
		result = judged(s, s->conn, result);
		if (PQresultStatus(result) == PGRES_COPY_OUT)
			while (PQgetCopyData(s->conn, &row, 0) > 0)
				PQfreemem(row);
		PQclear(result);
	}
}

static bool
begin_copy(Server *s, const char *table, const char *how)
{
	char	   *sql = fmt("COPY %s %s", table, how);

	PQclear(judged(s, s->conn, PQexec(s->conn, sql)));
	return !s->error;
}

/* Copy the rows of a table from one side to the other, and count their bytes. */
static void
copy_rows(Move *m, const char *table, double *bytes)
{
	PGconn	   *from = m->source->conn,
			   *to = m->target->conn;
	char	   *row,
				error[256];
	int			length = -1;
	bool		writes;

	if (!begin_copy(m->source, table, "TO STDOUT"))
		return;
	writes = begin_copy(m->target, table, "FROM STDIN");
	while (writes && !interrupted && (length = PQgetCopyData(from, &row, 0)) > 0)
	{
		*bytes += length;
		writes = PQputCopyData(to, row, length) == 1;
		PQfreemem(row);
	}
	if (!writes || interrupted)
	{
		PGcancel   *cancel = PQgetCancel(from);

		PQcancel(cancel, error, sizeof(error));
		PQfreeCancel(cancel);
	}
	end_copy(m->source);
	/* an end that is not the table's must not look like it */
	PQputCopyEnd(to, !m->source->error && length == -1 && writes && !interrupted ? NULL : "not all rows were read");
	end_copy(m->target);
	/* the cause is the first of both errors */
	if (!writes && m->target->error && !is_lost(m->source))
		forget_error(m->source);
}

/*
 * Make the shards on the target, with all rows, in the transaction that will thaw them there.  The source refuses writes
 * meanwhile.
 */
int
copy_shards(Move *m)
{
	PGresult   *tables = rows(m->source, &sql_dumped_tables, m->shards);
	double		bytes = 0,
				told = now();
	int			status;

	run(m->target, "BEGIN");
	if ((status = restore(m, "--section=pre-data")))
		return status;
	kill_point("made");
	for (int i = 0; i < PQntuples(tables); i++)
	{
		copy_rows(m, PQgetvalue(tables, i, 0), &bytes);
		if (interrupted)
			return fail(m, NOT_NOW, NULL, "interrupted", NULL);
		if (m->source->error || m->target->error)
			return settled(m, NULL);
		if (now() > told + 5)
		{
			told = now();
			say("%d of %d tables copied, %.0f MB; writes are refused", i + 1, PQntuples(tables), bytes / 1e6);
		}
	}
	kill_point("copied");
	if ((status = restore(m, "--section=post-data")))
		return status;
	run_each(m->target, &sql_unanalyzed, m->shards);
	say("%d tables copied, %.0f MB", PQntuples(tables), bytes / 1e6);
	run(m->target, "SET LOCAL enable_sort = off; SET LOCAL enable_hashagg = on; SET LOCAL jit = off");
	if (m->options.compares && (status = compare_rows(m, m->source->reader, m->target->conn, true)))
		return status;
	kill_point("verified");
	return settled(m, NULL);
}
