/*-------------------------------------------------------------------------
 *
 * source.c
 *	  Segments that are leased from other servers.
 *
 * The source of a ticket is a libpq connection string, to servers that have a
 * sequence of the ticket's name in the schema instaid_tickets.  They need not
 * have this extension.  It is kept as the security label of the ticket's own
 * sequence: there it is dumped, renamed and dropped with it, and we are asked
 * who may set it.
 *
 * A lease is a session of its own with the server, which draws the values with
 * nextval().  It is never waited for: instaid_advance_lease() does what can be
 * done, so that one worker can have leases from many servers, of which some do
 * not answer.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "catalog/namespace.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "commands/seclabel.h"
#include "common/int.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "source.h"

#define LABEL_PROVIDER	"instaid"

/* how long a server may take, in ms, unless the source has a connect_timeout */
#define SERVER_TIMEOUT	2000

/* the most values that are asked for at once */
#define MAX_LEASE		1000000

char	   *instaid_source_role = NULL;

/* Options that come in a list, an item for each server: the n-th of it. */
static char *
list_item(const char *list, int n)
{
	if (strchr(list, ',') == NULL)
		return pstrdup(list);
	for (; n > 0 && list != NULL; n--)
		list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL;
	if (list == NULL)
		return pstrdup("");
	return pnstrdup(list, strcspn(list, ","));
}

static const char *
option_value(const PQconninfoOption *options, const char *keyword)
{
	for (; options->keyword != NULL; options++)
	{
		if (strcmp(options->keyword, keyword) == 0)
			return options->val;
	}
	return NULL;
}

/* The first option that is not for everybody to see, or NULL */
static char *
secret_option(const PQconninfoOption *options)
{
	for (; options->keyword != NULL; options++)
	{
		/* that is how libpq marks those, and what is for itself */
		if (options->val != NULL && options->dispchar[0] != '\0')
			return pstrdup(options->keyword);
	}
	return NULL;
}

static bool
is_list(const char *keyword)
{
	return strcmp(keyword, "host") == 0 || strcmp(keyword, "hostaddr") == 0 ||
		strcmp(keyword, "port") == 0;
}

/* Refuse what is not the source of a ticket, and who may not set it. */
static void
check_source(const ObjectAddress *object, const char *source)
{
	Oid			role = instaid_source_role[0] == '\0' ? InvalidOid :
		get_role_oid(instaid_source_role, true);
	HeapTuple	tuple = NULL;
	PQconninfoOption *options;
	char	   *problem = NULL;
	char	   *secret;

	if (!superuser() &&
		!(OidIsValid(role) && has_privs_of_role(GetUserId(), role)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to set the source of a ticket"),
				 errdetail("The server connects to it with its own files of passwords and keys. Only superusers and members of the role that instaid.source_role names may set it."),
				 errhint("A superuser can let the members of a role do so: ALTER SYSTEM SET instaid.source_role = '...'; SELECT pg_reload_conf();")));

	if (object->classId == RelationRelationId && object->objectSubId == 0 &&
		get_rel_namespace(object->objectId) == get_namespace_oid(TICKET_SCHEMA, true))
		tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(object->objectId));
	if (!HeapTupleIsValid(tuple) ||
		!instaid_has_source(object->objectId, (Form_pg_sequence) GETSTRUCT(tuple)))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s cannot have a source", getObjectDescription(object, false)),
				 errdetail("Only a ticket that was created with a source can have another one."),
				 errhint("Use create_ticket(..., source => '...').")));
	ReleaseSysCache(tuple);

	if (source == NULL)
		return;
	options = PQconninfoParse(source, &problem);
	if (options == NULL)
	{
		char	   *copy = pstrdup(problem ? pchomp(problem) : "out of memory");

		PQfreemem(problem);
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the source of a ticket is not a connection string"),
				 errdetail_internal("%s", copy),
				 errhint("An example: host=ticket1,ticket2 dbname=tickets")));
	}
	secret = secret_option(options);
	PQconninfoFree(options);
	if (secret != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the source of a ticket must not have a secret"),
				 errdetail("It has \"%s\", and everybody can read the source.", secret),
				 errhint("Put passwords into the password file, or a service file, of the user that runs the server.")));
}

/* The source of a ticket, or NULL */
char *
instaid_source_of(Oid ticket)
{
	ObjectAddress object;

	ObjectAddressSet(object, RelationRelationId, ticket);
	return GetSecurityLabel(&object, LABEL_PROVIDER);
}

static void
ignore_notice(void *arg, const char *message)
{
	(void) arg;
	(void) message;
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

/* Begin to ask the next server.  Returns false if there is none left. */
static bool
ask_next_server(Lease *lease)
{
	const char **keywords;
	const char **values;
	int			n = 0;

	close_connection(lease);
	if (lease->asked == lease->server_count)
		return false;
	/* the one that gave the last segment comes first */
	if (lease->asked++ > 0)
		lease->request.turn = (lease->request.turn + 1) % lease->server_count;

	while (lease->options[n].keyword != NULL)
		n++;
	keywords = palloc((n + 3) * sizeof(char *));
	values = palloc((n + 3) * sizeof(char *));
	n = 0;
	for (PQconninfoOption *option = lease->options; option->keyword != NULL; option++)
	{
		if (option->val == NULL || option->val[0] == '\0')
			continue;
		keywords[n] = option->keyword;
		values[n++] = is_list(option->keyword) ?
			list_item(option->val, lease->request.turn % lease->server_count) : option->val;
	}
	keywords[n] = "fallback_application_name";
	values[n++] = "instaid";
	keywords[n] = "client_encoding";
	values[n++] = GetDatabaseEncodingName();
	keywords[n] = values[n] = NULL;

	/* without a connection, it counts as one that was refused */
	if (AcquireExternalFD())
	{
		lease->conn = PQconnectStartParams(keywords, values, false);
		if (lease->conn != NULL)
			PQsetNoticeProcessor(lease->conn, ignore_notice, NULL);
		else
			ReleaseExternalFD();
	}
	lease->sent = lease->committed = false;
	lease->count = 0;
	lease->events = WL_SOCKET_WRITEABLE;
	lease->deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), lease->timeout);
	return true;
}

/* Add to the problems of a lease, on one line. */
static void
add_problem(Lease *lease, const char *problem)
{
	StringInfo	all = &lease->problem;

	if (all->len > 0)
		appendStringInfoString(all, "; ");
	for (; *problem != '\0'; problem++)
	{
		if (!isspace((unsigned char) *problem))
			appendStringInfoChar(all, *problem);
		else if (problem[1] != '\0' && !isspace((unsigned char) problem[1]))
			appendStringInfoChar(all, ' ');
	}
}

/* The server that is being asked gives nothing, for this reason; ask the next. */
static LeaseState
give_up_server(Lease *lease, const char *problem)
{
	add_problem(lease, problem);
	while (ask_next_server(lease))
	{
		if (PQstatus(lease->conn) != CONNECTION_BAD)
			return LEASE_PENDING;
		add_problem(lease, PQerrorMessage(lease->conn));
	}
	return LEASE_FAILED;
}

/*
 * Begin to lease a segment, in the current memory context.  The source is a
 * connection string that check_source() has let pass.
 *
 * What the server is asked: values that go together, and that are on its disk.
 *
 * - A lock keeps others who lease away, so that their values do not lie between
 *	 ours.  Who calls nextval() does not heed it; of what they split, the longest
 *	 part is used, and the rest is left out.  They cannot split what nextval()
 *	 takes at once, the sequence's CACHE, and so that is asked for as a whole:
 *	 the session ends, and gives no other part of it to anybody.
 * - No more than it gives in half of the time that it has: a server that is too
 *	 slow for a long segment gives a shorter one.
 * - A message in the WAL makes the commit flush it.  nextval() alone may have
 *	 nothing to write: a record of somebody else's, which is not flushed yet,
 *	 covers its values.
 */
Lease *
instaid_start_lease(const char *source, const SegmentRequest *request, int64 last_of_type)
{
	Lease	   *lease = palloc0(sizeof(Lease));
	char	   *sequence;
	const char *hosts;
	const char *timeout;

	lease->context = CurrentMemoryContext;
	lease->request = *request;
	lease->last_of_type = last_of_type;
	initStringInfo(&lease->problem);
	lease->options = PQconninfoParse(source, NULL);
	if (lease->options == NULL)
	{
		add_problem(lease, "the source is not a connection string");
		return lease;
	}

	hosts = option_value(lease->options, "hostaddr");
	if (hosts == NULL)
		hosts = option_value(lease->options, "host");
	lease->server_count = 1;
	for (; hosts != NULL && *hosts != '\0'; hosts++)
		lease->server_count += *hosts == ',';
	timeout = option_value(lease->options, "connect_timeout");
	lease->timeout = timeout != NULL && atoi(timeout) > 0 ?
		Min(atoi(timeout), 3600) * 1000 : SERVER_TIMEOUT;

	sequence = quote_literal_cstr(quote_qualified_identifier(TICKET_SCHEMA, request->name));
	lease->query = psprintf("BEGIN;"
							" SET LOCAL search_path = pg_catalog;"
							" SET LOCAL statement_timeout = %d;"
							" SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off';"
							" SELECT pg_advisory_xact_lock('pg_sequence'::regclass::oid::integer, %s::regclass::oid::integer);"
							" SELECT pg_logical_emit_message(true, 'instaid', '');"
							" SELECT min(value), max(value), count(*), increment, start"
							" FROM (SELECT seqincrement AS increment, seqstart AS start, n,"
							" CASE WHEN n = 1 OR clock_timestamp() < now() + %d * interval '1 ms' THEN nextval(seqrelid::regclass) END AS value"
							" FROM (SELECT seqrelid, seqincrement, seqstart,"
							" generate_series(1, greatest(1, least(%d, div(%d + seqcache - 1::numeric, seqcache) * seqcache,"
							" div(seqmax::numeric - coalesce(pg_sequence_last_value(seqrelid), seqstart::numeric - seqincrement), seqincrement)))::bigint) AS n"
							" FROM pg_sequence JOIN pg_class ON pg_class.oid = seqrelid"
							" WHERE seqrelid = %s::regclass AND seqincrement > 0 AND NOT seqcycle AND relpersistence = 'p'"
							" OFFSET 0) AS wanted OFFSET 0) AS drawn"
							" WHERE value IS NOT NULL"
							" GROUP BY increment, start, value - increment * n ORDER BY count(*) DESC LIMIT 1;"
							" COMMIT",
							lease->timeout, sequence, lease->timeout / 2,
							MAX_LEASE, (int) Min(request->count, MAX_LEASE), sequence);

	(void) ask_next_server(lease);
	return lease;
}

/* The row of what was drawn: first, last, count, increment and start. */
static const char *
read_drawn(Lease *lease, PGresult *result)
{
	TicketBlock *block = &lease->block;
	int64		start;
	uint64		distance;
	int64		span;
	int64		last;

	if (PQntuples(result) == 0)
		return psprintf("%s.%s does not count up, or has CYCLE, or is UNLOGGED, or is no sequence",
						TICKET_SCHEMA, lease->request.name);
	block->first = strtoi64(PQgetvalue(result, 0, 0), NULL, 10);
	block->last = strtoi64(PQgetvalue(result, 0, 1), NULL, 10);
	lease->count = strtoi64(PQgetvalue(result, 0, 2), NULL, 10);
	block->increment = strtoi64(PQgetvalue(result, 0, 3), NULL, 10);
	start = strtoi64(PQgetvalue(result, 0, 4), NULL, 10);

	/* what was drawn, and no value between */
	if (block->increment <= 0 || lease->count <= 0 || lease->count > 2 * MAX_LEASE ||
		pg_mul_s64_overflow(lease->count - 1, block->increment, &span) ||
		pg_add_s64_overflow(block->first, span, &last) || last != block->last)
		return psprintf("%s.%s gave values that do not go together",
						TICKET_SCHEMA, lease->request.name);
	distance = block->first >= start ? (uint64) block->first - (uint64) start :
		(uint64) start - (uint64) block->first;
	if (distance % (uint64) block->increment != 0)
		return psprintf("%s.%s stands at a value of another server",
						TICKET_SCHEMA, lease->request.name);
	if (block->first > lease->last_of_type)
		return psprintf("%s.%s is past the end of the ticket's type, at %lld",
						TICKET_SCHEMA, lease->request.name, (long long) block->first);
	if (block->last > lease->last_of_type)
	{
		lease->count = 1 + (lease->last_of_type - block->first) / block->increment;
		block->last = block->first + (lease->count - 1) * block->increment;
	}
	return NULL;
}

/* Read what the server has answered, as far as it is here. */
static LeaseState
read_answer(Lease *lease)
{
	int			unsent = PQflush(lease->conn);

	if (unsent < 0 || !PQconsumeInput(lease->conn))
		return give_up_server(lease, PQerrorMessage(lease->conn));
	lease->events = WL_SOCKET_READABLE | (unsent ? WL_SOCKET_WRITEABLE : 0);

	while (!PQisBusy(lease->conn))
	{
		PGresult   *result = PQgetResult(lease->conn);
		const char *problem = NULL;

		if (result == NULL)
		{
			if (!lease->committed || lease->count == 0)
				return give_up_server(lease, "the connection ended");
			return LEASE_DONE;
		}
		switch (PQresultStatus(result))
		{
			case PGRES_TUPLES_OK:
				if (PQnfields(result) == 5)
					problem = read_drawn(lease, result);
				break;
			case PGRES_COMMAND_OK:
				lease->committed |= strcmp(PQcmdStatus(result), "COMMIT") == 0;
				break;
			default:
				problem = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
				problem = pstrdup(problem ? problem : PQerrorMessage(lease->conn));
		}
		PQclear(result);
		if (problem != NULL)
			return give_up_server(lease, psprintf("server \"%s\", port %s: %s", PQhost(lease->conn),
												  PQport(lease->conn), problem));
	}
	return LEASE_PENDING;
}

/* Do what can be done, when its socket has these events or some time has gone by. */
LeaseState
instaid_advance_lease(Lease *lease, uint32 events)
{
	MemoryContext saved = MemoryContextSwitchTo(lease->context);
	LeaseState	state = LEASE_PENDING;

	if (PQstatus(lease->conn) == CONNECTION_BAD)
		state = give_up_server(lease, PQerrorMessage(lease->conn));
	else if ((events & lease->events) == 0)
	{
		if (GetCurrentTimestamp() >= lease->deadline)
			state = give_up_server(lease, psprintf("server \"%s\", port %s: no answer within %d ms",
												   PQhost(lease->conn), PQport(lease->conn), lease->timeout));
	}
	else if (lease->sent)
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
				lease->sent = PQsetnonblocking(lease->conn, 1) == 0 &&
					PQsendQuery(lease->conn, lease->query);
				state = lease->sent ? read_answer(lease) :
					give_up_server(lease, PQerrorMessage(lease->conn));
				break;
			default:
				state = give_up_server(lease, PQerrorMessage(lease->conn));
		}
	}
	MemoryContextSwitchTo(saved);
	return state;
}

/* Free a lease, with its connection. */
void
instaid_end_lease(Lease *lease)
{
	close_connection(lease);
	PQconninfoFree(lease->options);
	MemoryContextDelete(lease->context);
}

void
instaid_source_init(void)
{
	register_label_provider(LABEL_PROVIDER, check_source);
}
