/*
 * Creating a ticket on first use, apart from the caller's transaction.
 *
 * Other sessions use the ticket at once, so it must not disappear when the transaction that needed
 * it first is rolled back.  Therefore a background worker creates it, in the same database, and
 * with the rights of the calling role only.  The deadlock detector does not see that the caller
 * waits for the worker, so the worker waits for locks only for a limited time.
 */
#include "postgres.h"

#include <limits.h>

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "libpq/pqformat.h"
#include "libpq/pqmq.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#include "common.h"
#include "compat.h"
#include "tickets/tickets.h"

/* how long a call waits for a free worker, and a worker for a lock, in ms */
#define AUTOCREATE_TIMEOUT	10000
/* how soon a waiting call looks again for the ticket or a free worker, in ms */
#define RETRY_INTERVAL	50

/* size of the queue for the worker's messages; a longer message is sent in parts */
#define QUEUE_SIZE		8192

/* A ticket that the worker is to create */
typedef struct AutocreateRequest
{
	Oid			database;
	Oid			authenticated_role; /* the role that has logged in */
	Oid			role;			/* the role whose rights apply */
	int			sec_context;
	int			server;
	int			servers;
	int			lock_timeout;	/* in ms */
	dsm_handle	queue;			/* for its errors */
	char		name[NAMEDATALEN];
} AutocreateRequest;

static bool auto_create_tickets;
static int	ticket_server;
static int	ticket_servers;

PG_FUNCTION_INFO_V1(instaid_lock_ticket_name);
PGDLLEXPORT void instaid_ticket_worker(Datum main_arg);

/* The worker's errors go to the session that waits.  If it is gone, there is no work. */
static void
attach_queue(dsm_handle handle)
{
	dsm_segment *segment = dsm_attach(handle);
	shm_mq	   *messages;

	if (segment == NULL)
		proc_exit(0);
	messages = dsm_segment_address(segment);
	shm_mq_set_sender(messages, MyProc);
	pq_redirect_to_shm_mq(segment, shm_mq_attach(messages, segment, NULL));
}

/* The background worker creates the ticket, and ends. */
void
instaid_ticket_worker(Datum main_arg pg_attribute_unused())
{
	AutocreateRequest request;
	char	   *query;

	background_begin(&request, sizeof(request));
	attach_queue(request.queue);
	/* a database that refuses new connections may have old ones */
	BackgroundWorkerInitializeConnectionByOid(request.database, request.authenticated_role,
											  BGWORKER_BYPASS_ALLOWCONN);
	/* the caller expects errors in the encoding of the database */
	SetClientEncoding(GetDatabaseEncoding());
	SetConfigOption("lock_timeout", psprintf("%d", request.lock_timeout),
					PGC_USERSET, PGC_S_SESSION);
	/* the caller's transaction may write */
	SetConfigOption("default_transaction_read_only", "off", PGC_USERSET, PGC_S_SESSION);

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	SetUserIdAndSecContext(request.role, request.sec_context | SECURITY_LOCAL_USERID_CHANGE);
	SPI_connect();
	PushActiveSnapshot(GetTransactionSnapshot());
	query = psprintf("SELECT instaid.create_ticket(%s, %d, %d)",
					 quote_literal_cstr(request.name), request.server, request.servers);
	pgstat_report_activity(STATE_RUNNING, query);
	(void) SPI_execute(query, false, 0);
	SPI_finish();
	PopActiveSnapshot();
	CommitTransactionCommand();
}

/*
 * Let a worker create the ticket, and wait until it ends.  Raises the worker's errors, unless the
 * name was taken.  Returns false if no worker is free.
 */
static bool
create_apart(const char *name)
{
	dsm_segment *segment = dsm_create(QUEUE_SIZE, 0);
	shm_mq	   *messages = shm_mq_create(dsm_segment_address(segment), QUEUE_SIZE);
	shm_mq_handle *queue;
	AutocreateRequest request = {
		.database = MyDatabaseId,
		.authenticated_role = GetAuthenticatedUserId(),
		.server = ticket_server,
		.servers = ticket_servers,
		.lock_timeout = LockTimeout > 0 ? Min(LockTimeout, AUTOCREATE_TIMEOUT) : AUTOCREATE_TIMEOUT,
		.queue = dsm_segment_handle(segment)
	};
	BackgroundWorkerHandle *worker;
	ErrorData	error = {0};
	Size		length;
	void	   *data;

	GetUserIdAndSecContext(&request.role, &request.sec_context);
	strlcpy(request.name, name, NAMEDATALEN);
	shm_mq_set_receiver(messages, MyProc);
	queue = shm_mq_attach(messages, segment, NULL);
	if (!background_start("instaid", "instaid_ticket_worker", "instaid ticket", &request,
						  sizeof(request), &worker))
	{
		dsm_detach(segment);
		return false;
	}
	shm_mq_set_handle(queue, worker);

	/* The worker detaches from the queue when it ends, done or not. */
	while (shm_mq_receive(queue, &length, &data, false) == SHM_MQ_SUCCESS)
	{
		StringInfoData message;

		initStringInfo(&message);
		appendBinaryStringInfo(&message, data, length);
		if (pq_getmsgbyte(&message) == 'E')
			pq_parse_errornotice(&message, &error);
	}
	dsm_detach(segment);

	/* without an error, its elevel is 0 */
	if (error.elevel != 0 && error.sqlerrcode != ERRCODE_DUPLICATE_TABLE)
	{
		/* a FATAL error ends the worker, not this session */
		error.elevel = ERROR;
		error.context = psprintf("%s%screating ticket \"%s\" on first use",
								 error.context ? error.context : "", error.context ? "\n" : "", name);
		ThrowErrorData(&error);
	}
	return true;
}

/* The schema of tickets, on which the role must have CREATE */
static Oid
creation_schema(void)
{
	Oid			schema = get_namespace_oid(TICKET_SCHEMA, false);

	if (object_aclcheck(NamespaceRelationId, schema, GetUserId(), ACL_CREATE) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for schema %s", TICKET_SCHEMA),
				 errdetail("Creating a ticket needs CREATE on that schema."),
				 errhint("Its owner can permit it: GRANT CREATE ON SCHEMA %s TO %s;", TICKET_SCHEMA,
						 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
	return schema;
}

/* The lock of a transaction that creates the ticket.  Users' advisory locks end in 1 or 2. */
static LOCKTAG
name_tag(Oid schema, const char *name)
{
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, schema,
						 hash_bytes((const unsigned char *) name, strlen(name)), 4);
	return tag;
}

/*
 * This waits.  A role that may create tickets can also hold a name by CREATE SEQUENCE, for which
 * PostgreSQL itself makes others wait.
 */
Datum
instaid_lock_ticket_name(PG_FUNCTION_ARGS)
{
	LOCKTAG		tag = name_tag(creation_schema(), text_to_cstring(PG_GETARG_TEXT_PP(0)));

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	/* the transaction that had the lock may have created it */
	AcceptInvalidationMessages();
	PG_RETURN_VOID();
}

/*
 * Create a ticket that this session did not find, unless another session creates it.  The caller
 * looks again afterwards.  Returns false if this is not enabled.
 *
 * Each session that wants a name can start a worker, and the lock that create_ticket() takes lets
 * one of them create it.  This waits for that lock, too, so that the deadlock detector sees it.
 * If the call is cancelled, its worker continues.
 */
bool
autocreate_ticket(const char *name)
{
	LOCKTAG		tag;
	Oid			schema;
	int64		began = monotonic_time();

	if (!auto_create_tickets)
		return false;
	schema = creation_schema();
	tag = name_tag(schema, name);
	for (;;)
	{
		(void) LockAcquire(&tag, ShareLock, false, false);
		LockRelease(&tag, ShareLock, false);
		AcceptInvalidationMessages();
		if (OidIsValid(get_relname_relid(name, schema)) || create_apart(name))
			break;
		if (monotonic_time() - began > AUTOCREATE_TIMEOUT * INT64CONST(1000))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("no background worker is free to create ticket \"%s\"", name),
					 errdetail("The call has waited for %d s.", AUTOCREATE_TIMEOUT / 1000),
					 errhint("Increase max_worker_processes, or create the ticket with create_ticket().")));
		CHECK_FOR_INTERRUPTS();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 RETRY_INTERVAL, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
	AcceptInvalidationMessages();
	return true;
}

void
autocreate_init(void)
{
	/* any role may set it, since creating a ticket needs CREATE on the schema */
	DefineCustomBoolVariable("instaid.auto_create_tickets",
							 "Creates a ticket when its name is first used.",
							 "If this is off, next_ticket() fails for a name that does not exist.",
							 &auto_create_tickets, false,
							 PGC_USERSET, 0, NULL, NULL, NULL);

	/*
	 * superusers' settings: two servers with one number would issue the same
	 * values
	 */
	DefineCustomIntVariable("instaid.ticket_server",
							"Sets this server's number, for tickets that are created on first use.",
							"It is from 1 to instaid.ticket_servers.",
							&ticket_server, 1, 1, INT_MAX,
							PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("instaid.ticket_servers",
							"Sets the number of servers, for tickets that are created on first use.",
							"Each server issues every Nth value.",
							&ticket_servers, 1, 1, INT_MAX,
							PGC_SUSET, 0, NULL, NULL, NULL);
}
