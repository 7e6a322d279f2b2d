/*
 * Connections to the two databases of a move, and their answers.
 *
 * A text of several commands goes to the server as one message: the server runs nothing
 * after the first error, and never a COMMIT behind it.
 */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "queries.h"
#include "servers.h"

/* Names mean the system's only, and values look alike on both sides. */
#define SESSION \
	"RESET ALL; SET search_path = pg_catalog, pg_temp; SET client_min_messages = error;" \
	"SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout'," \
	" 'transaction_timeout', 'idle_session_timeout', 'idle_in_transaction_session_timeout');" \
	"SET lock_timeout = '10s'; SET default_transaction_isolation = 'read committed';" \
	"SET default_transaction_read_only = off; SET row_security = off;" \
	"SET synchronous_commit = on; SET standard_conforming_strings = on;" \
	"SET quote_all_identifiers = off; SET plan_cache_mode = force_generic_plan;" \
	"SET client_encoding = 'UTF8'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = postgres;" \
	"SET TimeZone = 'UTC'; SET extra_float_digits = 1; SET bytea_output = hex;" \
	"SET lc_monetary = 'C'"

char *
fmt(const char *format,...)
{
	va_list		args;
	char	   *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	return text;
}

double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void
nap(double seconds)
{
	struct timespec t = {(time_t) seconds, (long) ((seconds - (time_t) seconds) * 1e9)};

	nanosleep(&t, NULL);
}

/* Tell the user, with the seconds since the start. */
void
say(const char *format,...)
{
	static double began;
	va_list		args;

	if (began == 0)
		began = now();
	printf("%8.2f  ", now() - began);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

/* what is still to be done if the program ends now */
void		(*at_end) (void) = NULL;

/* End with what happened, why, and what to do next. */
void
stop(int status, const char *what, const char *why, const char *next)
{
	fflush(stdout);
	fprintf(stderr, "instaid-move: %s\n", what);
	if (why)
	{
		/* all lines of it */
		fputs("  why:  ", stderr);
		for (const char *line = why; *line; line += strcspn(line, "\n") + (strchr(line, '\n') != NULL))
			fprintf(stderr, "%s%.*s\n", line == why ? "" : "        ", (int) strcspn(line, "\n"), line);
	}
	if (next)
		fprintf(stderr, "  next: %s\n", next);
	if (at_end)
	{
		void		(*last) (void) = at_end;

		/* it can come here, too */
		at_end = NULL;
		last();
	}
	exit(status);
}

/* A second command is an error. */
void
set_command(int *command, int chosen)
{
	if (*command != 0)
		stop(USAGE, "more than one command", NULL, "See --help.");
	*command = chosen;
}

/* The number that an option gives; a whole one if the range begins with 1 */
double
number(const char *option, const char *text, double least, double most)
{
	char	   *end;
	double		value = strtod(text, &end);

	/* a NaN is not in this range, either */
	if (end == text ||*end || !(value >= least && value <= most)
		|| (least == 1 && value != (int) value))
		stop(USAGE, fmt("%s is not a number for --%s", text, option),
			 fmt("It is from %g to %g.", least, most), "See --help.");
	return value;
}

void
prepare_session(Side *side, PGconn *conn)
{
	PGresult   *result = PQexec(conn, SESSION);

	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		stop(FAILED, fmt("cannot prepare a session of the %s", side->name), PQerrorMessage(conn),
			 NULL);
	PQclear(result);

	/*
	 * a session whose program was killed ends, even if it waits; not on every
	 * system
	 */
	PQclear(PQexec(conn, "SET client_connection_check_interval = '1s'"));
	/* a wait for autovacuum ends it */
	PQclear(PQexec(conn, "SET deadlock_timeout = '100ms'"));
}

PGconn *
open_connection(Side *side)
{
	/*
	 * what comes before "dbname" is a default: a network that is gone is
	 * found within a minute
	 */
	static const char *const keywords[] = {"connect_timeout", "keepalives_idle", "keepalives_interval",
	"keepalives_count", "tcp_user_timeout", "dbname", "fallback_application_name", NULL};
	const char *values[] = {getenv("PGCONNECT_TIMEOUT") ? NULL : "10", "15", "5", "4", "30000",
	side->conninfo, "instaid-move", NULL};
	PGconn	   *conn = PQconnectdbParams(keywords, values, 1);

	if (PQstatus(conn) != CONNECTION_OK)
		stop(DISCONNECTED, fmt("cannot connect to the %s", side->name), PQerrorMessage(conn),
			 "Run the same command again when it can.");
	prepare_session(side, conn);
	return conn;
}

/* Look at a result: end if the connection is lost, and keep the error if there is one. */
static bool
is_good(Side *side, PGconn *conn, PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	if (PQstatus(conn) != CONNECTION_OK)
		stop(DISCONNECTED, fmt("the connection to the %s is lost", side->name),
			 message ? message : PQerrorMessage(conn),
			 "Run the same command again: it goes on from there. --status tells the state.");
	if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_COPY_IN
		|| status == PGRES_COPY_OUT)
		return true;
	side->lacks_right = strcmp(state ? state : "", "42501") == 0;
	free(side->error);
	side->error = fmt("%s: %s%s%s%s", side->name, message ? message : PQerrorMessage(conn),
					  detail ? " (" : "", detail ? detail : "", detail ? ")" : "");
	side->error[strcspn(side->error, "\n")] = '\0';
	return false;
}

/* When the program stops waiting for an answer; 0: never */
double		answer_by = 0;

/* The last answer to what was sent; null if nothing could be sent */
static PGresult *
last_answer(Side *side, PGconn *conn)
{
	PGresult   *last = NULL,
			   *next;

	for (;;)
	{
		while (answer_by > 0 && PQisBusy(conn))
		{
			struct pollfd server = {PQsocket(conn), POLLIN, 0};
			double		left = answer_by - now();

			if (left <= 0)
				stop(DISCONNECTED, fmt("the %s does not answer", side->name),
					 "It hangs or is slow, or the network is gone.",
					 "Run the same command again when it answers; a larger --max-stop waits longer.");
			if (poll(&server, 1, (int) (left * 1000) + 1) > 0 && !PQconsumeInput(conn))
				break;
		}
		if (!(next = PQgetResult(conn)))
			return last;
		PQclear(last);
		last = next;
	}
}

/* Throw away an answer that was no more waited for. */
static void
make_ready(PGconn *conn)
{
	PGresult   *result;

	while ((result = PQgetResult(conn)))
		PQclear(result);
}

/*
 * Run commands, in one transaction if they are several; false if one of them fails, and then
 * nothing of them has happened.
 */
bool
try_on(Side *side, PGconn *conn, const char *sql)
{
	PGresult   *result;
	bool		good;

	make_ready(conn);
	PQsendQuery(conn, sql);
	result = last_answer(side, conn);
	good = is_good(side, conn, result);
	PQclear(result);
	if (PQtransactionStatus(conn) == PQTRANS_INERROR)
		PQclear(PQexec(conn, "ROLLBACK"));
	return good;
}

bool
try(Side *side, const char *sql)
{
	return try_on(side, side->conn, sql);
}

/*
 * Run a command that has a connection string, with the password in it, and let no log, no statistics and no
 * list of sessions show it, as far as this role may.
 */
bool
try_secretly(Side *side, const char *sql)
{
	char	   *error;
	bool		lacks_right,
				good;

	try(side, "SELECT set_config(s.name, x.value, false) FROM pg_roles AS r, (VALUES ('log_statement', 'none'),"
		" ('log_min_error_statement', 'panic'), ('log_min_duration_statement', '-1'),"
		" ('log_min_duration_sample', '-1'), ('log_transaction_sample_rate', '0'), ('track_activities', 'off'),"
		" ('pg_stat_statements.track', 'none'), ('pg_stat_statements.track_utility', 'off'),"
		" ('auto_explain.log_min_duration', '-1')) AS x (name, value)"
		" JOIN pg_settings AS s ON s.name = x.name WHERE r.rolname = current_user AND r.rolsuper");
	good = try(side, sql);
	error = side->error ? strdup(side->error) : NULL;
	lacks_right = side->lacks_right;
	if (PQstatus(side->conn) == CONNECTION_OK)
		try(side, "SELECT set_config(name, reset_val, false) FROM pg_settings WHERE name IN ('log_statement',"
			" 'log_min_error_statement', 'log_min_duration_statement', 'log_min_duration_sample',"
			" 'log_transaction_sample_rate', 'track_activities', 'pg_stat_statements.track',"
			" 'pg_stat_statements.track_utility', 'auto_explain.log_min_duration')"
			" AND setting IS DISTINCT FROM reset_val");
	if (!good)
	{
		free(side->error);
		side->error = error;
		side->lacks_right = lacks_right;
	}
	return good;
}

void
run(Side *side, const char *sql)
{
	if (!try(side, sql))
		stop(FAILED, fmt("a command on the %s failed", side->name), side->error,
			 "Remove the cause, and run the same command again, or --cancel.");
}

/* How many parameters, up to two, a query has */
static int
parameters(const char *sql)
{
	return strstr(sql, "$2") ? 2 : strstr(sql, "$1") ? 1 : 0;
}

/* Ask with parameters; null if that fails. */
PGresult *
ask(Side *side, const char *sql, int n, const char *const *values)
{
	PGresult   *result;

	make_ready(side->conn);
	PQsendQueryParams(side->conn, sql, n, NULL, values, NULL, NULL, 0);
	result = last_answer(side, side->conn);
	if (is_good(side, side->conn, result))
		return result;
	PQclear(result);
	return NULL;
}

/* Ask with up to two parameters; null if that fails. */
PGresult *
try_query(Side *side, const char *sql, const char *p1, const char *p2)
{
	const char *values[] = {p1, p2};

	return ask(side, sql, parameters(sql), values);
}

PGresult *
query(Side *side, const char *sql, const char *p1, const char *p2)
{
	PGresult   *result = try_query(side, sql, p1, p2);

	if (!result)
		stop(FAILED, fmt("a query on the %s failed", side->name), side->error,
			 "Remove the cause, and run the same command again, or --cancel.");
	return result;
}

/* The first value of an answer, or null */
char *
value(Side *side, const char *sql, const char *p1, const char *p2)
{
	PGresult   *result = query(side, sql, p1, p2);
	char	   *first = NULL;

	if (PQntuples(result) > 0 && !PQgetisnull(result, 0, 0))
		first = strdup(PQgetvalue(result, 0, 0));
	PQclear(result);
	return first;
}

/* Run each command that a query answers, in a transaction of its own. */
bool
run_each(Side *side, const char *sql, const char *p1, const char *p2)
{
	PGresult   *result = try_query(side, sql, p1, p2);
	bool		good = result != NULL;

	for (int i = 0; good && i < PQntuples(result); i++)
		good = try(side, PQgetvalue(result, i, 0));
	PQclear(result);
	return good;
}

char *
literal(Side *side, const char *text)
{
	return PQescapeLiteral(side->conn, text, strlen(text));
}

/* Ask without waiting; answer() waits. */
void
send_query(PGconn *conn, const char *sql, const char *p1)
{
	PQsendQueryParams(conn, sql, p1 ? 1 : 0, NULL, &p1, NULL, NULL, 0);
}

PGresult *
answer(Side *side, PGconn *conn)
{
	PGresult   *result = last_answer(side, conn);

	if (!is_good(side, conn, result))
		stop(FAILED, fmt("a query on the %s failed", side->name), side->error, NULL);
	return result;
}

/* Read what is left of a COPY. */
static bool
end_copy(Side *side)
{
	PGresult   *result;
	bool		good = true;
	char	   *row;

	while ((result = PQgetResult(side->conn)))
	{
		good &= is_good(side, side->conn, result);
		if (PQresultStatus(result) == PGRES_COPY_OUT)
			while (PQgetCopyData(side->conn, &row, 0) > 0)
				PQfreemem(row);
		PQclear(result);
	}
	return good;
}

static bool
begin_copy(Side *side, const char *table, const char *how)
{
	char	   *sql = fmt("COPY %s %s", table, how);
	PGresult   *result = PQexec(side->conn, sql);
	bool		good = is_good(side, side->conn, result);

	PQclear(result);
	free(sql);
	return good;
}

/* Copy the rows of a table from one side to the other.  Returns what has gone wrong, or null. */
char *
copy_rows(Side *source, Side *target, const char *table, double *bytes,
		  volatile sig_atomic_t *interrupted)
{
	char	   *row,
				error[256];
	int			length = -1;
	bool		writes = false,
				good;

	if (!begin_copy(source, table, "TO STDOUT"))
		return source->error;
	writes = begin_copy(target, table, "FROM STDIN");
	while (writes && !*interrupted && (length = PQgetCopyData(source->conn, &row, 0)) > 0)
	{
		*bytes += length;
		writes = PQputCopyData(target->conn, row, length) == 1;
		PQfreemem(row);
	}
	if (!writes || *interrupted)
	{
		PGcancel   *cancel = PQgetCancel(source->conn);

		PQcancel(cancel, error, sizeof(error));
		PQfreeCancel(cancel);
		end_copy(source);
		if (PQstatus(target->conn) == CONNECTION_OK && !writes)
			return target->error;
		PQputCopyEnd(target->conn, "interrupted");
		end_copy(target);
		return "interrupted";
	}
	good = end_copy(source);
	/* an end that is not the table's must not look like it */
	PQputCopyEnd(target->conn, good && length == -1 ? NULL : "not all rows were read");
	if (!end_copy(target) && good)
		return target->error;
	return good ? NULL : source->error;
}

/*
 * Compare two answers of one column in the order of bytes.  Returns what only one has, a line
 * each, up to a null.
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

		if (order < 0)
			lines[n++] = fmt("only on the source: %s", PQgetvalue(source, s, 0));
		else if (order > 0)
			lines[n++] = fmt("only on the target: %s", PQgetvalue(target, t, 0));
		s += order <= 0;
		t += order >= 0;
	}
	PQclear(source);
	PQclear(target);
	return lines;
}

/* Print some of these lines, and free them; returns how many they are. */
int
print_lines(char **lines, int at_most)
{
	int			n;

	for (n = 0; lines[n]; n++)
	{
		if (n < at_most)
			printf("  %s\n", lines[n]);
		free(lines[n]);
	}
	if (n > at_most)
		printf("  and %d more\n", n - at_most);
	fflush(stdout);
	free(lines);
	return n;
}

/* Make room for more of an array, which can be null. */
void *
grown(void *array, int count, size_t size)
{
	void	   *larger = realloc(array, count * size);

	if (!larger)
		abort();
	return larger;
}

/* Append to an array, as a literal of PostgreSQL. */
char *
append(char *array, const char *element)
{
	char	   *longer = grown(NULL, (array ? strlen(array) : 2) + 2 * strlen(element) + 4, 1);
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

/* End because of who holds a lock, as any role can. */
void
stop_busy(Side *side, const char *number, const char *what, const char *next)
{
	stop(BUSY, fmt("%s with the %s", what, side->name), value(side, LOCK_HOLDER, number, NULL), next);
}
