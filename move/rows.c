/* Compare the rows and the sequences of both sides. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "move.h"

/* the parts of a table whose sums are compared; a power of 2 */
#define BUCKETS 1024

/*
 * Compare two answers by their first column, in the order of bytes.  Returns what only one has, a line each, up to a
 * null.
 */
char	  **
differences(PGresult *source, PGresult *target)
{
	int			s = 0,
				t = 0,
				n = 0;
	char	  **lines = calloc(PQntuples(source) + PQntuples(target) + 1, sizeof(char *));

	while (s < PQntuples(source) || t < PQntuples(target))
	{
		int			order = s == PQntuples(source) ? 1 : t == PQntuples(target) ? -1 :
			strcmp(PQgetvalue(source, s, 0), PQgetvalue(target, t, 0));

		if (order != 0)
			lines[n++] = fmt("only on the %s: %s", order < 0 ? "source" : "target",
							 order < 0 ? PQgetvalue(source, s, 0) : PQgetvalue(target, t, 0));
		s += order <= 0;
		t += order >= 0;
	}
	return lines;
}

/* Print some of these lines; returns how many they are. */
int
print_lines(char **lines, int at_most)
{
	int			n;

	for (n = 0; lines[n]; n++)
		if (n < at_most)
			printf("  %s\n", plain(lines[n]));
	if (n > at_most)
		printf("  and %d more\n", n - at_most);
	fflush(stdout);
	return n;
}

/* Ask both sides the same, at the same time, and count the rows. */
static char **
ask_both(Move *m, PGconn *conns[2], const char *sql, const char *buckets, double *total)
{
	PGresult   *answers[2];
	char	  **lines;

	for (int i = 0; i < 2; i++)
		send_text(i ? m->target : m->source, conns[i], sql, buckets);
	for (int i = 0; i < 2; i++)
		answers[i] = receive(i ? m->target : m->source, conns[i]);
	for (int i = 0; total && i < PQntuples(answers[0]); i++)
		*total += number_of(answers[0], i, "n");
	lines = differences(answers[0], answers[1]);
	if (m->source->error || m->target->error)
		lines[0] = NULL;
	PQclear(answers[0]);
	PQclear(answers[1]);
	return lines;
}

/* Does one side get what is written on the other? */
static bool
is_followed(Move *m)
{
	const SideEvidence *copy = m->seen.target.has_subscription ? &m->seen.target : &m->seen.source,
			   *of = m->seen.target.has_subscription ? &m->seen.source : &m->seen.target;

	return copy->has_subscription && copy->attached && copy->enabled && of->has_slot && !of->slot_lost;
}

/* Of the buckets that differed, leave those whose sums differ again. */
static void
keep_buckets(bool *differ, char **lines)
{
	bool		again[BUCKETS] = {false};

	/* "only on the source: 17 3 4711" */
	for (; *lines; lines++)
		again[atoi(strchr(*lines, ':') + 1)] = true;
	for (int i = 0; i < BUCKETS; i++)
		differ[i] &= again[i];
}

/* Take some of these buckets, as an array; null if there is none. */
static char *
some_buckets(bool *differ)
{
	char	   *buckets = NULL;

	for (int i = 0, n = 0; i < BUCKETS && n < 16; i++)
		if (differ[i])
		{
			buckets = append(buckets, fmt("%d", i));
			differ[i] = false;
			n++;
		}
	return buckets;
}

/*
 * What differs of the rows of some buckets.  While clients write, a row differs as long as its change is on the way.
 * Therefore only a difference that is the same after the copy had it all is told.  The copy can also be ahead: a commit
 * is sent to it when it is in the WAL, and its own server shows it a little later.  Therefore a difference must last for
 * 3 s.
 */
static int
look_at_rows(Move *m, PGconn *conns[2], const char *sql, const char *buckets, bool is_quiet, char ***lines)
{
	*lines = ask_both(m, conns, sql, buckets, NULL);
	for (int look = 1; (*lines)[0] && look < (is_quiet ? 1 : 6); look++)
	{
		char	  **before = *lines;
		int			kept = 0;

		if (look > 1)
			nap(0.05 * (1 << look));
		if (!is_followed(m))
		{
			say("no copy follows: what was written since the switch differs, too");
			break;
		}
		if (!has_confirmed(m, m->seen.target.has_subscription ? m->source : m->target, now() + m->options.max_wait)
			&& !m->source->error && !m->target->error)
			return fail(m, NOT_NOW, "the copy does not follow", "It is far behind, or has no worker.",
						"--status tells how far.");
		*lines = ask_both(m, conns, sql, buckets, NULL);
		for (int i = 0, b = 0; (*lines)[i]; i++)
		{
			/* in the order of what comes after "only on the source: " */
			while (before[b] && strcmp(before[b] + 20, (*lines)[i] + 20) < 0)
				b++;
			if (before[b] && strcmp(before[b], (*lines)[i]) == 0)
				(*lines)[kept++] = (*lines)[i];
		}
		(*lines)[kept] = NULL;
	}
	return DONE;
}

/*
 * Compare the rows of a table: sums by buckets of keys, and the rows of the buckets that differ, some at a time.  If
 * those were only on the way, so are most others: the sums are asked again, until no bucket has differed each time.
 */
static int
compare_table(Move *m, PGconn *conns[2], const char *name, const char *of_rows, bool is_quiet, double *total)
{
	char	   *sums = fmt("SELECT line, n FROM (SELECT format('%%s %%s %%s', hashtext(k) & %d, count(*), sum(h)), count(*)"
						   " FROM (%s) AS t GROUP BY hashtext(k) & %d) AS s (line, n) ORDER BY line COLLATE \"C\"",
						   BUCKETS - 1, of_rows, BUCKETS - 1);
	char	   *sql = fmt("SELECT line FROM (SELECT format('row %%s, hash %%s', k, h) FROM (%s) AS t"
						  " WHERE hashtext(k) & %d = ANY ($1::integer[])) AS s (line) ORDER BY line COLLATE \"C\"",
						  of_rows, BUCKETS - 1);
	char	  **lines = ask_both(m, conns, sums, NULL, total),
			   *buckets;
	bool		differ[BUCKETS];
	int			status;

	memset(differ, true, sizeof(differ));
	for (keep_buckets(differ, lines); (buckets = some_buckets(differ)) != NULL; keep_buckets(differ, lines))
	{
		if ((status = look_at_rows(m, conns, sql, buckets, is_quiet, &lines)))
			return status;
		if (lines[0])
		{
			printf("table %s differs\n", plain(name));
			print_lines(lines, 10);
			if (memchr(differ, 1, sizeof(differ)))
				printf("  and perhaps more\n");
			return DIFFERENT;
		}
		if (!memchr(differ, 1, sizeof(differ)))
			break;
		lines = ask_both(m, conns, sums, NULL, NULL);
	}
	return DONE;
}

/* A query for the positions of a side's sequences, or null if there is none */
static char *
position_query(Move *m, Server *s)
{
	return value(s, &sql_sequences, m->shards, value(s, &sql_id_sequences, m->shards));
}

/*
 * Does the side that serves stand where the other one stopped, or beyond?  Sequences have no snapshot, and clients go on.
 * One that cycles may stand anywhere, and a crash takes one ahead by the 32 values that are logged at a time, and
 * leaves none of them.  Returns how many do not.
 */
static int
compare_sequences(Move *m, bool is_exact)
{
	char	   *queries[2] = {position_query(m, m->source), position_query(m, m->target)};
	PGresult   *stopped,
			   *serving;
	int			behind = 0;

	if (!queries[0] || !queries[1])
		return 0;
	stopped = rows_of_text(m->source, m->source->reader, queries[0]);
	serving = rows_of_text(m->target, m->target->reader, queries[1]);
	for (int i = 0, j = 0; i < PQntuples(stopped); i++)
	{
		long long	last[2],
					step = is_exact ? 0 : llabs(atoll(column(stopped, i, "step"))),
					ahead = step < 1000000 ? 32 * step : 0;
		bool		called[2];

		while (j < PQntuples(serving) && strcmp(PQgetvalue(serving, j, 0), PQgetvalue(stopped, i, 0)) != 0)
			j++;
		if (j == PQntuples(serving))
			break;
		for (int n = 0; n < 2; n++)
		{
			last[n] = atoll(column(n ? serving : stopped, n ? j : i, "last"));
			called[n] = is_true(n ? serving : stopped, n ? j : i, "called");
		}
		/* those of IDs that were not used begin at the clock */
		if (!column(stopped, i, "up") || (is_true(stopped, i, "is_id") && !called[0]))
			continue;
		if ((is_true(stopped, i, "up") ? last[1] < last[0] - ahead : last[1] > last[0] + ahead)
			|| (last[0] == last[1] && called[0] && !called[1]))
		{
			behind++;
			printf("sequence %s stands at %lld%s on the source, and at %lld%s on the target\n",
				   plain(column(stopped, i, "name")), last[0], called[0] ? "" : ", not issued", last[1],
				   called[1] ? "" : ", not issued");
		}
	}
	return behind;
}

/* A query of the source for the commands that let the target's sequences go on where the source stopped */
char *
positions_query(Move *m)
{
	char	   *query = position_query(m, m->source);

	return query ? value(m->source, &sql_positions, query) : "SELECT 'SELECT'";
}

/* Compare all rows, and after the switch the sequences; only the first are quiet, where nobody writes. */
int
compare_rows(Move *m, PGconn *of_source, PGconn *of_target, bool is_quiet)
{
	PGconn	   *conns[2] = {of_source, of_target};
	bool		are_alike = strcmp(PQparameterStatus(m->source->conn, "server_encoding"),
								   PQparameterStatus(m->target->conn, "server_encoding")) == 0;
	PGresult   *tables = rows(m->source, &sql_compared_tables, m->shards, are_alike ? "t" : "f"),
			   *others = rows(m->target, &sql_compared_tables, m->shards, are_alike ? "t" : "f");
	int			differ = 0;
	double		total = 0,
				began = now();

	kill_point("comparing");
	for (int i = 0; i < PQntuples(tables); i++)
	{
		char	   *of_rows = column(tables, i, "rows");
		bool		is_there = false;
		int			status;

		/* after the switch, one side can have got other columns */
		for (int j = 0; j < PQntuples(others); j++)
			is_there |= strcmp(of_rows, column(others, j, "rows")) == 0;
		if (!is_there)
		{
			printf("table %s has other columns on the target, or another key: make the same change on both sides\n",
				   plain(column(tables, i, "name")));
			differ++;
			continue;
		}
		status = compare_table(m, conns, column(tables, i, "name"), of_rows, is_quiet, &total);

		if (status && status != DIFFERENT)
			return status;
		differ += status != 0;
	}
	if (is_switched(m->state))
		differ += compare_sequences(m, is_quiet);
	if (m->source->error || m->target->error)
		return settled(m, "cannot compare the rows");
	if (differ)
		return fail(m, DIFFERENT, "rows differ", "The lines above name them.", is_switched(m->state) ?
					"Repair the copy, and run the same command again." : "Repair the copy, or --cancel the move.");
	say("verified: %d tables, %.0f rows, the same on both sides (%.1f s)", PQntuples(tables), total,
		now() - began);
	return DONE;
}
