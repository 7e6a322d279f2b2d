/*-------------------------------------------------------------------------
 *
 * lease.c
 *	  The client of the servers that a ticket has its values from.
 *
 * A server has a sequence of the ticket's name in the schema instaid_tickets.  It
 * need not have this extension.  A lease is a session of its own with the server,
 * which draws values with nextval().
 *
 * A lease does not wait, except for a name server: lease_advance() does what can be
 * done, and the caller waits for the socket.  One worker can therefore have leases
 * from many servers at once, some of which do not answer.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "common/int.h"
#include "mb/pg_wchar.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "tickets/lease.h"
#include "tickets/monotonic.h"

/* the most values that are asked for at once */
#define MAX_LEASE		1000000

/* how often a lease tries to get the lock, in ms */
#define LOCK_INTERVAL	10

/* how long the answer of a server about its values is valid, in ms */
#define LOOK_INTERVAL	60000

/*
 * Append text that comes from elsewhere, on one line, and shortened if it is
 * long.  A server sends what it likes, and before it has been told the encoding
 * that we want, it sends its own: what is not valid here becomes "?", as do
 * control characters.
 */
static void
append_foreign_text(StringInfo to, const char *from)
{
	int			encoding = GetDatabaseEncoding();
	int			rest = strnlen(from, MAX_FOREIGN_TEXT);
	bool		cut = from[rest] != '\0';
	int			start = to->len;

	while (rest > 0)
	{
		int			length = pg_encoding_verifymbchar(encoding, from, rest);

		if (length > 1)
			appendBinaryStringInfo(to, from, length);
		else if (length == 1 && isascii((unsigned char) *from) && isspace((unsigned char) *from))
		{
			if (to->len > start && to->data[to->len - 1] != ' ')
				appendStringInfoChar(to, ' ');
		}
		else if (length == 1 && !iscntrl((unsigned char) *from))
			appendStringInfoChar(to, *from);
		else if (length == 1 || !cut || rest > MAX_MULTIBYTE_CHAR_LEN)
			appendStringInfoChar(to, '?');
		length = Max(length, 1);
		from += length;
		rest -= length;
	}
	while (to->len > start && to->data[to->len - 1] == ' ')
		to->data[--to->len] = '\0';
	if (cut)
		appendStringInfoString(to, "...");
}

/* Keep a warning of the commit of what was drawn.  libpq calls this. */
static void
note_warning(void *arg, const PGresult *result)
{
	Lease	   *lease = arg;
	const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	if (lease->phase == LEASE_DRAWING && severity != NULL && strcmp(severity, "WARNING") == 0)
		strlcpy(lease->warning, message != NULL && message[0] != '\0' ? message : severity,
				sizeof(lease->warning));
}

static void
close_connection(Lease *lease)
{
	if (lease->conn == NULL)
		return;
	PQfinish(lease->conn);
	lease->conn = NULL;
	ReleaseExternalFD();
}

/* Count a socket, and leave one file for the WaitEventSet of worker.c. */
static bool
acquire_socket(void)
{
	if (!AcquireExternalFD())
		return false;
	if (!AcquireExternalFD())
	{
		ReleaseExternalFD();
		return false;
	}
	ReleaseExternalFD();
	return true;
}

/* Begin to ask a server. */
static void
connect_to(Lease *lease, int server)
{
	close_connection(lease);
	lease->server = server;
	/* without a connection, it counts as one that was refused */
	if (lease->source.servers[server].refusal == NULL && acquire_socket())
	{
		lease->conn = PQconnectStartParams(lease->source.servers[server].keywords,
										   lease->source.servers[server].values, false);
		if (lease->conn != NULL)
			PQsetNoticeReceiver(lease->conn, note_warning, lease);
		else
			ReleaseExternalFD();
	}
	lease->phase = LEASE_CONNECTING;
	lease->events = WL_SOCKET_WRITEABLE;
	lease->asked_at = monotonic_time();
}

/* The next server to be looked at before one gives values, or -1 */
static int
next_to_look_at(Lease *lease)
{
	for (int i = 0; i < lease->source.count; i++)
	{
		int64		asked_at = lease->stripes.servers[i].asked_at;

		if (i != lease->turn && !lease->looked_at[i] &&
			(asked_at == 0 || lease->started - asked_at >= LOOK_INTERVAL * 1000))
			return i;
	}
	return -1;
}

/*
 * Begin to ask the next server.  Two servers that give the same values must be
 * found before one of them gives any.  Therefore servers that were not asked for a
 * while are asked first.
 */
static void
ask_next_server(Lease *lease)
{
	int			server = next_to_look_at(lease);

	connect_to(lease, server >= 0 ? server : lease->turn);
}

/* Add to the failures of a lease. */
static void
add_failure(Lease *lease, const char *failure)
{
	if (lease->failure.len > 0)
		appendStringInfoString(&lease->failure, "; ");
	append_foreign_text(&lease->failure, failure);
}

/* Note why the server that is being asked gives nothing, and ask the next one. */
static LeaseState
give_up_server(Lease *lease, const char *failure)
{
	add_failure(lease, failure);
	lease->stripes.servers[lease->server].asked_at = lease->started;
	lease->looked_at[lease->server] = lease->failed[lease->server] = true;
	while (lease->failed[lease->turn])
	{
		if (++lease->given_up == lease->source.count)
			return LEASE_FAILED;
		lease->turn = (lease->turn + 1) % lease->source.count;
	}
	ask_next_server(lease);
	return LEASE_PENDING;
}

static const char *
server_name(const Lease *lease, int server)
{
	return psprintf("server \"%s\"", lease->source.servers[server].name);
}

/* Give up the server that is being asked, whose connection is bad or not wanted. */
static LeaseState
give_up_connection(Lease *lease)
{
	const char *refusal = lease->source.servers[lease->server].refusal;

	return give_up_server(lease, psprintf("%s: %s", server_name(lease, lease->server),
										  refusal ? refusal :
										  lease->conn ? PQerrorMessage(lease->conn) :
										  "could not open a connection: the background worker has too many open files, or is out of memory"));
}

/* How long the server that is being asked may take, in ms */
static int
timeout_of(const Lease *lease)
{
	return lease->source.servers[lease->server].timeout;
}

/*
 * Begin to lease values, in the current memory context, which is the lease's from
 * now on.
 */
Lease *
lease_start(const LeaseServers *source, const char *name, int64 wanted,
			int64 last_of_type, int turn, const Stripes *stripes)
{
	Lease	   *lease = palloc0(sizeof(Lease));

	Assert(source->count > 0);
	lease->context = CurrentMemoryContext;
	lease->name = pstrdup(name);
	lease->sequence = quote_literal_cstr(quote_qualified_identifier(TICKET_SCHEMA, name));
	lease->wanted = wanted;
	lease->last_of_type = last_of_type;
	lease->started = monotonic_time();
	lease->source = *source;
	lease->turn = turn % source->count;
	initStringInfo(&lease->failure);

	/* nothing is known of the servers of another source */
	if (stripes->source == source->hash)
		lease->stripes = *stripes;
	else
		lease->stripes.source = source->hash;
	ask_next_server(lease);
	return lease;
}

/* Send a query to the server that is being asked. */
static LeaseState
send_query(Lease *lease, LeasePhase phase, const char *query)
{
	lease->phase = phase;
	lease->answered = lease->committed = lease->ask_again = false;
	lease->warning[0] = '\0';
	if (PQsendQuery(lease->conn, query) == 0)
		return give_up_connection(lease);
	lease->events = WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE;
	return LEASE_PENDING;
}

/* a sequence that can serve as a ticket's source */
#define IS_SUITABLE " seqincrement > 0 AND NOT seqcycle AND relpersistence = 'p'"

/* Ask which values the server gives, without taking any; a standby can answer. */
static LeaseState
ask_stripe(Lease *lease)
{
	return send_query(lease, LEASE_DESCRIBING,
					  psprintf("BEGIN;"
							   " SET LOCAL search_path = pg_catalog;"
							   " SET LOCAL statement_timeout = %d;"
							   " SELECT system_identifier, pg_database.oid, seqstart, seqmax, seqincrement"
							   " FROM pg_sequence JOIN pg_class ON pg_class.oid = seqrelid, pg_control_system(), pg_database"
							   " WHERE datname = current_database() AND seqrelid = %s::regclass AND" IS_SUITABLE ";"
							   " COMMIT",
							   timeout_of(lease), lease->sequence));
}

/*
 * Ask for values that follow each other, and that are on the server's disk and on
 * its synchronous standbys.
 *
 * - An advisory lock keeps other leases away, whose values would lie between ours.
 *	 A role with USAGE can take no stronger lock on a sequence.  Any role that can
 *	 connect can hold an advisory lock.  Therefore there are many: the lease takes
 *	 the first one that no role without rights to the sequence holds.  It waits
 *	 half of the server's time for it, and then draws without the lock.
 * - If others take values meanwhile, the longest part is used, and the rest is left
 *	 out.  They cannot split what one nextval() takes, which is the sequence's CACHE.
 *	 Therefore whole caches are asked for: the session ends then, and gives the rest
 *	 of a cache to nobody.
 * - Values are drawn for half of the server's time, or for a quarter after the lock.
 *	 A server that is too slow for a long segment gives a shorter one.
 * - No more values are asked for than are left.  Only the first value tells how many
 *	 that are: a role with USAGE cannot see whether setval() has set is_called.
 * - A message in the WAL makes the commit flush it.  nextval() alone may write
 *	 nothing, because a record of another session covers its values, and that record
 *	 may not be flushed yet.
 * - A warning of the commit makes the lease fail.  The server has then given up
 *	 waiting for its standby, because of its statement_timeout or a cancel, and the
 *	 standby may lack the values.
 */
static LeaseState
ask_values(Lease *lease)
{
	const char *sequence = lease->sequence;

	return send_query(lease, LEASE_DRAWING,
					  psprintf("BEGIN READ WRITE;"
							   " SET LOCAL search_path = pg_catalog;"
							   " SET LOCAL client_min_messages = error;"
							   " SET LOCAL statement_timeout = %d;"
							   " SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off';"
							   " WITH strangers AS (SELECT objid::bigint AS key FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)"
							   " WHERE locktype = 'advisory' AND classid = %s::regclass AND objsubid = 2 AND granted"
							   " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
							   " AND has_sequence_privilege(usesysid, %s::regclass, 'USAGE, UPDATE') IS NOT TRUE),"
							   " free AS (SELECT min(key)::integer AS key FROM generate_series(0, (SELECT count(*) FROM strangers)) AS key"
							   " WHERE key NOT IN (SELECT key FROM strangers))"
							   " SELECT FROM free, generate_series(1, %d) AS attempt"
							   " WHERE CASE WHEN pg_try_advisory_xact_lock(%s::regclass::oid::integer, key) THEN true"
							   " ELSE pg_sleep(%d / 1000.0 + 0 * attempt) IS NULL END LIMIT 1;"
							   " SELECT pg_logical_emit_message(true, 'instaid', '');"
							   " WITH first AS (SELECT seqrelid, seqincrement, seqstart, seqmax, seqcache, nextval(seqrelid::regclass) AS value,"
							   " greatest(now() + %d * interval '1 ms', clock_timestamp() + %d * interval '1 ms') AS until"
							   " FROM pg_sequence JOIN pg_class ON pg_class.oid = seqrelid"
							   " WHERE seqrelid = %s::regclass AND" IS_SUITABLE ")"
							   " SELECT min(drawn), max(drawn), count(*), seqincrement, seqstart"
							   " FROM (SELECT seqincrement, seqstart, value, n,"
							   " CASE WHEN n = 1 THEN value WHEN clock_timestamp() < until THEN nextval(seqrelid::regclass) END AS drawn"
							   " FROM (SELECT first.*,"
							   " generate_series(1, least(%d, div(%d + seqcache - 1::numeric, seqcache) * seqcache,"
							   " 1 + div(seqmax::numeric - value, seqincrement))::bigint) AS n"
							   " FROM first OFFSET 0) AS wanted OFFSET 0) AS values"
							   " WHERE drawn IS NOT NULL"
							   " GROUP BY seqincrement, seqstart, drawn - value - seqincrement * (n - 1) ORDER BY count(*) DESC LIMIT 1;"
							   " SET LOCAL client_min_messages = warning;"
							   " COMMIT",
							   timeout_of(lease), sequence, sequence,
							   timeout_of(lease) / 2 / LOCK_INTERVAL, sequence, LOCK_INTERVAL,
							   timeout_of(lease) / 2, timeout_of(lease) / 4, sequence,
							   MAX_LEASE, (int) Min(lease->wanted, MAX_LEASE)));
}

static int64
read_number(PGresult *result, int column)
{
	return strtoi64(PQgetvalue(result, 0, column), NULL, 10);
}

static const char *
unsuitable(Lease *lease)
{
	return psprintf("%s.%s does not count up, or has CYCLE, or is UNLOGGED, or is no sequence",
					TICKET_SCHEMA, lease->name);
}

/* The row of which values the server gives: its system, database, start, maximum and increment. */
static const char *
read_stripe(Lease *lease, PGresult *result)
{
	Stripes    *stripes = &lease->stripes;
	Stripe	   *stripe = &stripes->servers[lease->server];
	Stripe		found = {.asked_at = lease->started};

	if (PQntuples(result) == 0)
		return unsuitable(lease);
	found.system = (uint64) read_number(result, 0);
	found.database = (Oid) read_number(result, 1);
	found.start = read_number(result, 2);
	found.maximum = read_number(result, 3);
	found.increment = read_number(result, 4);
	if (found.increment <= 0)
		return unsuitable(lease);

	/*
	 * It was restriped: the others may be, too, and are asked again.  What is
	 * known of one that is away still counts, as its values were given.
	 */
	if (stripe->increment != 0 &&
		(stripe->start != found.start || stripe->increment != found.increment))
	{
		for (int i = 0; i < lease->source.count; i++)
		{
			if (!lease->looked_at[i])
				stripes->servers[i].asked_at = 0;
		}
	}
	*stripe = found;
	lease->looked_at[lease->server] = true;
	lease->answered = true;
	return NULL;
}

/*
 * What was drawn cannot be used.  The sequence may be altered just now: ask once
 * more, and leave out what was drawn, before that counts as a failure.
 */
static const char *
leave_out_drawn(Lease *lease, const char *failure)
{
	if (lease->asked_again)
		return failure;
	lease->ask_again = lease->asked_again = true;
	return NULL;
}

/* The row of what was drawn: first, last, count, increment and start. */
static const char *
read_drawn(Lease *lease, PGresult *result)
{
	TicketBlock *block = &lease->block;
	Stripe	   *stripe = &lease->stripes.servers[lease->server];
	int64		start;
	int64		span;
	int64		last;
	const char *failure = NULL;

	/*
	 * There is no row, either, if the first value is past the MAXVALUE that
	 * the query has seen.
	 */
	if (PQntuples(result) == 0)
		return leave_out_drawn(lease, unsuitable(lease));
	block->first = read_number(result, 0);
	block->last = read_number(result, 1);
	lease->count = read_number(result, 2);
	block->increment = read_number(result, 3);
	start = read_number(result, 4);

	/* they must be count values, one increment apart */
	if (block->increment <= 0 || lease->count <= 0 || lease->count > 2 * MAX_LEASE ||
		pg_mul_s64_overflow(lease->count - 1, block->increment, &span) ||
		pg_add_s64_overflow(block->first, span, &last) || last != block->last)
		return psprintf("%s.%s returned values that are not one series",
						TICKET_SCHEMA, lease->name);

	/* other servers were compared only with values from START to MAXVALUE */
	if (start != stripe->start || block->increment != stripe->increment ||
		last > stripe->maximum)
		failure = psprintf("%s.%s was altered meanwhile", TICKET_SCHEMA, lease->name);
	else if (block->first < start)
		failure = psprintf("%s.%s stands below its START, %lld, at %lld",
						   TICKET_SCHEMA, lease->name,
						   (long long) start, (long long) block->first);
	else if (((uint64) block->first - (uint64) start) % (uint64) block->increment != 0)
		failure = psprintf("%s.%s stands at a value of another server",
						   TICKET_SCHEMA, lease->name);
	if (failure != NULL)
		return leave_out_drawn(lease, failure);
	if (block->first > lease->last_of_type)
		return psprintf("%s.%s is past the end of the ticket's type, at %lld",
						TICKET_SCHEMA, lease->name, (long long) block->first);
	if (block->last > lease->last_of_type)
	{
		lease->count = 1 + (lease->last_of_type - block->first) / block->increment;
		block->last = block->first + (lease->count - 1) * block->increment;
	}
	lease->answered = true;
	return NULL;
}

/* The server has answered to the end. */
static LeaseState
go_on(Lease *lease)
{
	Stripes    *stripes = &lease->stripes;
	int			other;

	if (!lease->committed || !(lease->answered || lease->ask_again))
		return give_up_server(lease, "the connection ended");
	if (lease->warning[0] != '\0')
		return give_up_server(lease, psprintf("%s: %s", server_name(lease, lease->server),
											  lease->warning));
	if (lease->ask_again)
		return ask_stripe(lease);
	if (lease->phase == LEASE_DRAWING)
		return LEASE_DONE;

	other = stripes_find_overlap(stripes, lease->server);
	if (other >= 0 && lease->looked_at[other])
		return give_up_server(lease,
							  psprintf("%s gives values that %s gives, too: START %lld INCREMENT %lld, and START %lld INCREMENT %lld",
									   server_name(lease, lease->server), server_name(lease, other),
									   (long long) stripes->servers[lease->server].start,
									   (long long) stripes->servers[lease->server].increment,
									   (long long) stripes->servers[other].start,
									   (long long) stripes->servers[other].increment));
	/* what is known of the other one may be old */
	if (other >= 0)
		stripes->servers[other].asked_at = 0;

	if (lease->server == lease->turn && next_to_look_at(lease) < 0)
		return ask_values(lease);
	ask_next_server(lease);
	return LEASE_PENDING;
}

/* Read as much of the server's answer as has arrived. */
static LeaseState
read_answer(Lease *lease)
{
	int			unsent = PQflush(lease->conn);

	if (unsent < 0 || !PQconsumeInput(lease->conn))
		return give_up_connection(lease);
	lease->events = WL_SOCKET_READABLE | (unsent ? WL_SOCKET_WRITEABLE : 0);

	while (!PQisBusy(lease->conn))
	{
		PGresult   *result = PQgetResult(lease->conn);
		const char *failure = NULL;

		if (result == NULL)
			return go_on(lease);
		switch (PQresultStatus(result))
		{
			case PGRES_TUPLES_OK:
				if (lease->phase == LEASE_DESCRIBING && PQnfields(result) == 5)
					failure = read_stripe(lease, result);
				else if (lease->phase == LEASE_DRAWING && PQnfields(result) == 5)
					failure = read_drawn(lease, result);
				break;
			case PGRES_COMMAND_OK:
				lease->committed |= strcmp(PQcmdStatus(result), "COMMIT") == 0;
				break;
			default:
				failure = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
				if (failure == NULL)
					failure = PQerrorMessage(lease->conn);
				/* COPY, say, which is no error */
				if (failure[0] == '\0')
					failure = psprintf("unexpected answer, %s", PQresStatus(PQresultStatus(result)));
				failure = pnstrdup(failure, MAX_FOREIGN_TEXT + 1);
		}
		PQclear(result);
		if (failure != NULL)
			return give_up_server(lease, psprintf("%s: %s", server_name(lease, lease->server), failure));
	}
	return LEASE_PENDING;
}

/* How long the server that is being asked may still take, in ms. */
long
lease_time_left(const Lease *lease)
{
	return Max(timeout_of(lease) - (monotonic_time() - lease->asked_at) / 1000, 0);
}

/* Do what can be done, when its socket has these events or some time has gone by. */
LeaseState
lease_advance(Lease *lease, uint32 events)
{
	MemoryContext saved = MemoryContextSwitchTo(lease->context);
	LeaseState	state = LEASE_PENDING;

	if (PQstatus(lease->conn) == CONNECTION_BAD)
		 /* it is given up below */ ;
	else if ((events & lease->events) == 0)
	{
		if (lease_time_left(lease) == 0)
			state = give_up_server(lease, psprintf("%s: no answer within %d ms",
												   server_name(lease, lease->server), timeout_of(lease)));
	}
	else if (lease->phase != LEASE_CONNECTING)
		state = read_answer(lease);
	else
	{
		switch (PQconnectPoll(lease->conn))
		{
			case PGRES_POLLING_READING:
				lease->events = WL_SOCKET_READABLE;
				break;
			case PGRES_POLLING_WRITING:
				lease->events = WL_SOCKET_WRITEABLE;
				break;
			case PGRES_POLLING_OK:
				if (lease->source.servers[lease->server].needs_password &&
					!PQconnectionUsedPassword(lease->conn))
					state = give_up_server(lease, psprintf("%s: it did not ask for a password; it must, unless superusers own both the ticket and the server",
														   server_name(lease, lease->server)));
				else if (PQsetnonblocking(lease->conn, 1) == 0)
					state = ask_stripe(lease);
				else
					state = give_up_connection(lease);
				break;
			default:
				state = give_up_connection(lease);
		}
	}
	while (state == LEASE_PENDING && PQstatus(lease->conn) == CONNECTION_BAD)
		state = give_up_connection(lease);
	MemoryContextSwitchTo(saved);
	return state;
}

/* Free a lease, with its connection. */
void
lease_end(Lease *lease)
{
	close_connection(lease);
	MemoryContextDelete(lease->context);
}
