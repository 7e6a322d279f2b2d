/* Connections, and what is sent over them.  See server.h. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server.h"

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

/* The code of a control character, with the pointer moved to its last byte, or -1 for another character */
int
control_at(const char **at)
{
	const unsigned char *c = (const unsigned char *) *at;

	if (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0)
	{
		(*at)++;
		return c[1];
	}
	return c[0] < ' ' || c[0] == 0x7f ? c[0] : -1;
}

/* A text for a line of its own: names may have line breaks, and what terminals obey. */
const char *
plain(const char *text)
{
	char	   *copy = grown(NULL, 4 * strlen(text) + 1, 1),
			   *end = copy;

	for (const char *c = text; *c; c++)
	{
		int			code = control_at(&c);

		end += code >= 0 && code != '\t' ? sprintf(end, "\\x%02x", code) : sprintf(end, "%c", *c);
	}
	*end = '\0';
	return copy;
}

/* A text as a word for a shell, into which a cure may be pasted */
const char *
quoted(const char *text)
{
	char	   *copy,
			   *end;

	if (strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == strlen(text))
		return text;
	copy = end = grown(NULL, 4 * strlen(text) + 3, 1);
	*end++ = '\'';
	for (; *text; text++)
		end += sprintf(end, *text == '\'' ? "'\\''" : "%c", *text);
	strcpy(end, "'");
	return copy;
}

/* Tell the user, with the seconds since the start. */
void
say(const char *format,...)
{
	static double began;
	va_list		args;
	char	   *text;

	if (began == 0)
		began = now();
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	printf("%8.2f  %s\n", now() - began, plain(text));
	free(text);
	fflush(stdout);
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

/* Append to an array, as a literal of PostgreSQL; null is an empty one. */
char *
append(const char *array, const char *element)
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
	return longer;
}

/* A value of an answer, or null */
char *
column(PGresult *rows, int row, const char *name)
{
	int			n = PQfnumber(rows, name);

	return row >= PQntuples(rows) || n < 0 || PQgetisnull(rows, row, n) ? NULL : PQgetvalue(rows, row, n);
}

bool
is_true(PGresult *rows, int row, const char *name)
{
	char	   *value = column(rows, row, name);

	return value && value[0] == 't';
}

double
number_of(PGresult *rows, int row, const char *name)
{
	char	   *value = column(rows, row, name);

	return value ? atof(value) : 0;
}

/*** Errors ***/

bool
is_lost(const Server *s)
{
	return s->error && s->sqlstate[0] == '-';
}

void
forget_error(Server *s)
{
	s->error = NULL;
	s->sqlstate[0] = '\0';
}

static void
keep_error(Server *s, const char *state, const char *text, const char *detail)
{
	if (s->error)
		return;
	s->error = fmt("%s: %s%s%s%s", s->name, text, detail ? " (" : "", detail ? detail : "", detail ? ")" : "");
	s->error[strcspn(s->error, "\n")] = '\0';
	snprintf(s->sqlstate, sizeof(s->sqlstate), "%s", state);
}

void
note_error(Server *s, const char *error)
{
	keep_error(s, "XX000", error, NULL);
}

/* Look at a result: one that is an error is kept as such, and ends the transaction. */
PGresult *
judged(Server *s, PGconn *conn, PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE),
			   *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	if (PQstatus(conn) != CONNECTION_OK)
		keep_error(s, LOST, message ? message : PQerrorMessage(conn), NULL);
	else if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_COPY_IN
			 || status == PGRES_COPY_OUT)
		return result;
	else
		keep_error(s, state ? state : "XX000", message ? message : PQerrorMessage(conn),
				   PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL));
	PQclear(result);
	if (PQtransactionStatus(conn) == PQTRANS_INERROR)
		PQclear(PQexec(conn, "ROLLBACK"));
	return PQmakeEmptyPGresult(conn, PGRES_FATAL_ERROR);
}

/*** Commands and queries ***/

/* Send a text, of one command if it has a parameter; receive() waits for the answer. */
void
send_text(Server *s, PGconn *conn, const char *text, const char *parameter)
{
	PGresult   *late;

	if (s->error)
		return;
	/* an answer that was no more waited for */
	while ((late = PQgetResult(conn)))
		PQclear(late);
	if (parameter)
		PQsendQueryParams(conn, text, 1, NULL, &parameter, NULL, NULL, 0);
	else
		PQsendQuery(conn, text);
}

/* The last answer to what was sent */
PGresult *
receive(Server *s, PGconn *conn)
{
	PGresult   *last = NULL,
			   *next;

	if (s->error)
		return PQmakeEmptyPGresult(conn, PGRES_FATAL_ERROR);
	for (;;)
	{
		while (s->answer_by > 0 && PQisBusy(conn))
		{
			struct pollfd server = {PQsocket(conn), POLLIN, 0};
			double		left = s->answer_by - now();

			if (left <= 0)
			{
				keep_error(s, SILENT, "It hangs or is slow, or the network is gone.", NULL);
				return PQmakeEmptyPGresult(conn, PGRES_FATAL_ERROR);
			}
			if (poll(&server, 1, (int) (left * 1000) + 1) > 0 && !PQconsumeInput(conn))
				break;
		}
		if (!(next = PQgetResult(conn)))
			return judged(s, conn, last);
		PQclear(last);
		last = next;
	}
}

PGresult *
rows_of_text(Server *s, PGconn *conn, const char *text)
{
	send_text(s, conn, text, NULL);
	return receive(s, conn);
}

static void
send_of(Server *s, const Query *query, va_list args)
{
	const char *values[10];
	PGresult   *late;

	for (int i = 0; i < query->parameters; i++)
		values[i] = va_arg(args, const char *);
	if (s->error)
		return;
	while ((late = PQgetResult(s->conn)))
		PQclear(late);

	/*
	 * to plan some takes longer than to run them, which counts while writes
	 * are refused
	 */
	if (!s->is_prepared[query->number])
	{
		PQsendPrepare(s->conn, query->name, query->text, 0, NULL);
		PQclear(receive(s, s->conn));
		/* one that does not answer will have done it */
		s->is_prepared[query->number] = !s->error || is_lost(s);
	}
	if (!s->error)
		PQsendQueryPrepared(s->conn, query->name, query->parameters, values, NULL, NULL, 0);
}

PGresult *
rows(Server *s, const Query *query,...)
{
	va_list		args;

	va_start(args, query);
	send_of(s, query, args);
	va_end(args);
	return receive(s, s->conn);
}

/* The first value of an answer, or null */
char *
value(Server *s, const Query *query,...)
{
	va_list		args;
	PGresult   *result;
	char	   *first;

	va_start(args, query);
	send_of(s, query, args);
	va_end(args);
	result = receive(s, s->conn);
	/* an answer takes some kB, and loops ask for hours */
	first = PQntuples(result) > 0 && !PQgetisnull(result, 0, 0) ? fmt("%s", PQgetvalue(result, 0, 0)) : NULL;
	PQclear(result);
	return first;
}

/* Run each command that a query answers, in a transaction of its own. */
bool
run_each(Server *s, const Query *query,...)
{
	va_list		args;
	PGresult   *result;

	va_start(args, query);
	send_of(s, query, args);
	va_end(args);
	result = receive(s, s->conn);
	for (int i = 0; i < PQntuples(result); i++)
		run_text(s, PQgetvalue(result, i, 0));
	PQclear(result);
	return !s->error;
}

/*
 * Several commands are one message, and one transaction: the server runs nothing after the first error, and never a
 * COMMIT behind it.
 */
bool
run_text(Server *s, const char *text)
{
	PQclear(rows_of_text(s, s->conn, text));
	return !s->error;
}

bool
run(Server *s, const char *format,...)
{
	va_list		args;
	char	   *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	run_text(s, text);
	free(text);
	return !s->error;
}

/* Run a command that has a connection string, with the password in it. */
bool
run_secretly(Server *s, const char *format,...)
{
	va_list		args;
	char	   *text;
	Server		first;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	run_text(s, sql_hide.text);
	run_text(s, text);
	free(text);
	first = *s;
	if (!is_lost(s))
	{
		forget_error(s);
		run_text(s, sql_show.text);
	}
	if (first.error)
	{
		s->error = first.error;
		memcpy(s->sqlstate, first.sqlstate, sizeof(first.sqlstate));
	}
	return !s->error;
}

char *
literal(Server *s, const char *text)
{
	return PQescapeLiteral(s->conn, text, strlen(text));
}

/*** Connections ***/

static void
prepare_session(Server *s, PGconn *conn)
{
	PQclear(rows_of_text(s, conn, sql_session.text));
	if (s->error)
		return;

	/*
	 * a session whose program was killed ends, even if it waits; not on every
	 * system
	 */
	PQclear(PQexec(conn, "SET client_connection_check_interval = '1s'"));
	/* a wait for autovacuum ends it; only superusers may */
	PQclear(PQexec(conn, "SET deadlock_timeout = '100ms'"));
}

/* Undo what a dump has set. */
bool
reset_session(Server *s)
{
	prepare_session(s, s->conn);
	return !s->error;
}

static PGconn *
open_connection(Server *s)
{
	/*
	 * what comes before "dbname" is a default: a network that is gone is
	 * found within a minute
	 */
	static const char *const keywords[] = {"connect_timeout", "keepalives_idle", "keepalives_interval",
	"keepalives_count", "tcp_user_timeout", "dbname", "fallback_application_name", NULL};
	const char *values[] = {getenv("PGCONNECT_TIMEOUT") ? NULL : "10", "15", "5", "4", "30000",
	s->conninfo, "instaid-move", NULL};
	PGconn	   *conn = PQconnectdbParams(keywords, values, 1);

	if (PQstatus(conn) != CONNECTION_OK)
		keep_error(s, NO_CONNECTION, PQerrorMessage(conn), NULL);
	else
		prepare_session(s, conn);
	return conn;
}

bool
server_connect(Server *s)
{
	s->conn = open_connection(s);
	s->id = value(s, &sql_identity);
	s->started = value(s, &sql_started);
	return !s->error;
}

/*
 * Open the session that compares rows.  Behind one address can be several servers, and a standby has the system
 * identifier of its primary, and older positions of sequences.
 */
bool
open_reader(Server *s)
{
	PGresult   *started;

	if (s->reader || s->error)
		return !s->error;
	s->reader = open_connection(s);
	started = rows_of_text(s, s->reader, sql_started.text);
	if (!s->error && strcmp(PQgetvalue(started, 0, 0), s->started) != 0)
		keep_error(s, NO_CONNECTION, "Its address leads to several servers.", NULL);
	PQclear(started);
	PQclear(rows_of_text(s, s->reader, sql_reader.text));
	return !s->error;
}
