/*
 * The client of a host: one question, one answer.
 *
 * A host is a server with this extension, which has the sequence.  A lease is a session of its own
 * with it, in which lease() is called.  Nothing is trusted: how long it takes, how much is sent,
 * which numbers, nor that text is text.  Values that are not received as they should be are left
 * out.
 */
#include "postgres.h"

#include <ctype.h>
#ifndef WIN32
#include <sys/resource.h>
#endif
#include <unistd.h>

#include "catalog/pg_database.h"
#include "common/int.h"
#include "lib/stringinfo.h"
#include "libpq-fe.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/wait_event.h"

#include "common.h"
#include "compat.h"
#include "sources.h"

/* how much is shown of text that comes from elsewhere, in bytes */
#define MAX_FOREIGN_TEXT	400

/* how often it is looked whether the database is to be dropped, in ms */
#define LOOK_INTERVAL	500

/* how many times an answer is read from the socket; an honest one takes a few */
#define MAX_READS		100

/* how much memory this process can get for an answer, in bytes */
#define MAX_ANSWER		(64 * 1024 * 1024)

typedef struct Session
{
	PGconn	   *conn;
	int64		deadline;		/* monotonic time */
	int			reads;			/* how many times the socket was read */
	const char *failure;		/* why it cannot be used any more, or NULL */
} Session;

/*
 * Text that comes from elsewhere, on one line, and shortened if it is long.  What is
 * not valid in our encoding becomes "?", as do control characters.
 */
static char *
foreign_text(const char *from)
{
	StringInfoData to;
	int			rest = strnlen(from, MAX_FOREIGN_TEXT);
	bool		cut = from[rest] != '\0';
	bool		space = false;

	initStringInfo(&to);
	while (rest > 0)
	{
		int			length = pg_encoding_verifymbchar(GetDatabaseEncoding(), from, rest);
		unsigned char c = length == 1 ? *from : '\0';

		if (length < 0 && cut && rest <= MAX_MULTIBYTE_CHAR_LEN)
			break;
		if (isascii(c) && isspace(c))
			space = to.len > 0;
		else
		{
			if (space)
				appendStringInfoChar(&to, ' ');
			space = false;
			if (length < 0 || (length == 1 && iscntrl(c)))
				appendStringInfoChar(&to, '?');
			else
				appendBinaryStringInfo(&to, from, length);
		}
		length = Max(length, 1);
		from += length;
		rest -= length;
	}
	if (cut)
		appendStringInfoString(&to, "...");
	return to.data;
}

/*
 * libpq makes room for a message as soon as the server has said how long it will be, up to
 * 1 GB.  Let it fail instead, in this process only, which ends soon.  What counts for the limit
 * is what the process may write, not what it has written: a preloaded library can reserve more.
 */
static void
limit_memory(void)
{
#ifdef RLIMIT_DATA
	struct rlimit limit;
	unsigned long pages;
	FILE	   *statm = AllocateFile("/proc/self/statm", "r");

	/* the sixth number: private and writable */
	if (statm != NULL && fscanf(statm, "%*u %*u %*u %*u %*u %lu", &pages) == 1 &&
		getrlimit(RLIMIT_DATA, &limit) == 0)
	{
		limit.rlim_cur = Min(limit.rlim_cur, (rlim_t) pages * sysconf(_SC_PAGESIZE) + MAX_ANSWER);
		(void) setrlimit(RLIMIT_DATA, &limit);
	}
	if (statm != NULL)
		FreeFile(statm);
#endif
}

/* libpq calls this for messages, which are of no use to anybody here. */
static void
ignore_notice(void *arg pg_attribute_unused(), const PGresult *result pg_attribute_unused())
{
}

static bool
fail(Session *session, const char *failure)
{
	session->failure = failure;
	return false;
}

/*
 * Does a session wait until nobody uses this database, to drop, rename or copy it?  It has locked
 * the database, and no new session can connect.
 */
static bool
is_in_the_way(void)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
	if (LockAcquire(&tag, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, RowExclusiveLock, true);
	return false;
}

/* Wait until the socket has one of these events.  Returns false if it is too late. */
static bool
wait_for_socket(Session *session, int events)
{
	static uint32 wait_event = 0;

	if (wait_event == 0)
		wait_event = WaitEventExtensionNew("InstaidTicketAuthority");
	for (;;)
	{
		int64		left = (session->deadline - monotonic_time()) / 1000;
		int			found;

		if (left <= 0)
			return fail(session, "no answer in time");
		found = WaitLatchOrSocket(MyLatch, events | WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
								  PQsocket(session->conn), Min(left, LOOK_INTERVAL), wait_event);
		if (found & WL_LATCH_SET)
			ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (found & events)
			return true;
		if (is_in_the_way())
			return fail(session, "the database of the ticket is to be dropped, renamed or copied");
	}
}

static bool
connect_to(Session *session, const Source *source)
{
	session->conn = PQconnectStartParams(source->keywords, source->values, false);
	PQsetNoticeReceiver(session->conn, ignore_notice, NULL);
	/* libpq says that one waits as if to write at first */
	for (PostgresPollingStatusType status = PGRES_POLLING_WRITING;
		 status != PGRES_POLLING_OK; status = PQconnectPoll(session->conn))
	{
		/* Windows tells of a connection by an event of its own; elsewhere it is that of writing */
		int			writable = PQstatus(session->conn) == CONNECTION_STARTED ?
			WL_SOCKET_CONNECTED : WL_SOCKET_WRITEABLE;

		if (PQstatus(session->conn) == CONNECTION_BAD || ++session->reads > MAX_READS)
			return fail(session, PQerrorMessage(session->conn));
		if (!wait_for_socket(session, status == PGRES_POLLING_READING ?
							 WL_SOCKET_READABLE : writable))
			return false;
	}
	if (source->needs_password && !PQconnectionUsedPassword(session->conn))
		return fail(session, "it did not ask for a password; it must, unless superusers own both the ticket and the server");
	return true;
}

/* The next result of the query, or NULL if there is none, or the session failed */
static PGresult *
next_result(Session *session)
{
	while (PQisBusy(session->conn))
	{
		int			unsent = PQflush(session->conn) == 1 ? WL_SOCKET_WRITEABLE : 0;

		if (!wait_for_socket(session, WL_SOCKET_READABLE | unsent))
			return NULL;
		if (++session->reads > MAX_READS)
			session->failure = "its answer is too long";
		else if (!PQconsumeInput(session->conn))
			session->failure = PQerrorMessage(session->conn);
		if (session->failure != NULL)
			return NULL;
	}
	return PQgetResult(session->conn);
}

static bool
read_number(const PGresult *result, int column, int64 *number)
{
	const char *text = PQgetvalue(result, 0, column);
	char	   *end;

	errno = 0;
	*number = strtoi64(text, &end, 10);
	return end > text &&*end == '\0' && errno == 0;
}

/*
 * Read one row of three numbers, first, last and increment.  Rows are taken one by
 * one, so that the second one, which is a failure, is not even stored.
 */
static void
read_lease(Session *session, Lease *lease)
{
	PGresult   *result;

	while (session->failure == NULL && (result = next_result(session)) != NULL)
	{
		ExecStatusType status = PQresultStatus(result);

		if (status == PGRES_SINGLE_TUPLE && PQnfields(result) == 3 && lease->count == 0 &&
			read_number(result, 0, &lease->first) && read_number(result, 1, &lease->last) &&
			read_number(result, 2, &lease->increment))
			lease->count = 1;
		else if (status == PGRES_SINGLE_TUPLE || (status == PGRES_TUPLES_OK && lease->count == 0))
			session->failure = "its answer is not one row of three numbers";
		else if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		{
			const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

			if (message == NULL)
				message = PQresultErrorMessage(result);
			session->failure = message[0] != '\0' ? foreign_text(message) :
				psprintf("unexpected answer, %s", PQresStatus(status));
		}
		PQclear(result);
	}
	if (session->failure == NULL && lease->count == 0)
		session->failure = "the connection ended";
}

/* Are these so many values?  Those that do not fit into the ticket's type are left out. */
static void
check_lease(Session *session, Lease *lease, int64 wanted, int64 last_of_type)
{
	int64		span;
	int64		last;

	if (lease->first <= 0 || lease->increment <= 0 ||
		pg_mul_s64_overflow(wanted - 1, lease->increment, &span) ||
		pg_add_s64_overflow(lease->first, span, &last) || last != lease->last)
		session->failure = psprintf("it leased %lld to %lld by %lld, which are not %lld values above 0",
									(long long) lease->first, (long long) lease->last,
									(long long) lease->increment, (long long) wanted);
	else if (lease->first > last_of_type)
		session->failure = psprintf("it leased values from %lld on, past the end of the ticket's type",
									(long long) lease->first);
	else
		lease->count = Min(wanted, 1 + (last_of_type - lease->first) / lease->increment);
}

/*
 * Lease values of a ticket from a host, within its time.  Returns NULL, or why
 * there are none.
 *
 * The server ends a lease that takes too long, too: otherwise each attempt would
 * leave it a session that waits for the lock of a ticket that is being altered.
 */
char *
lease_values(Source *source, int host, int64 wanted, Lease *lease)
{
	Session		session = {
		.deadline = monotonic_time() + source->timeout * INT64CONST(1000),
		.failure = source->refusal
	};
	char	   *failure = NULL;

	source_aim(source, host);
	memset(lease, 0, sizeof(*lease));
	limit_memory();
	if (session.failure == NULL && connect_to(&session, source))
	{
		char	   *query = psprintf("SET statement_timeout = %d; SELECT * FROM instaid_tickets.lease(%s, %lld)",
									 source->timeout, quote_literal_cstr(source->sequence),
									 (long long) wanted);

		/* a server that reads nothing must not stop us either */
		if (PQsetnonblocking(session.conn, 1) != 0 || !PQsendQuery(session.conn, query) ||
			!PQsetSingleRowMode(session.conn))
			session.failure = PQerrorMessage(session.conn);
		else
			read_lease(&session, lease);
	}
	if (session.failure == NULL)
		check_lease(&session, lease, wanted, source->last_of_type);
	/* before libpq frees its message */
	if (session.failure != NULL)
		failure = psprintf("server \"%s\", host \"%s\": %s", source->server, source->host,
						   foreign_text(session.failure));
	PQfinish(session.conn);
	return failure;
}

/*
 * Is a lease above every value with its increment and residue that this server has
 * had?  Then remember its last value.  The lowest mark gives way if there is no room.
 */
bool
lease_raises_mark(const Lease *lease, Mark *marks)
{
	int64		residue = lease->first % lease->increment;
	Mark	   *mark = marks;

	for (Mark *it = marks; it < marks + MARK_COUNT; it++)
	{
		if (it->increment == lease->increment && it->residue == residue)
		{
			if (lease->first <= it->last)
				return false;
			mark = it;
			break;
		}
		if (it->last < mark->last)
			mark = it;
	}
	mark->increment = lease->increment;
	mark->residue = residue;
	mark->last = lease->last;
	return true;
}
