/*-------------------------------------------------------------------------
 *
 * autocreate.c
 *	  Creating a ticket on first use, apart from the caller's transaction.
 *
 * Other sessions use the ticket at once, so it must not disappear when the
 * transaction that needed it first is rolled back.  Therefore a background worker
 * creates it, in a transaction of its own: in the same database, and with the
 * rights of the calling role only.  The worker is launched when it is needed, and
 * does not need shared_preload_libraries.
 *
 * The deadlock detector does not see that the caller waits for the worker.
 * Therefore the worker waits for locks only for a limited time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "libpq/pqformat.h"
#include "libpq/pqmq.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "tickets/autocreate.h"
#include "tickets/block.h"
#include "tickets/monotonic.h"

/* how long a call waits for a free worker, and a worker for a lock, in ms */
#define AUTOCREATE_TIMEOUT	10000
/* how soon a waiting call looks again for a free worker, in ms */
#define AUTOCREATE_RETRY_INTERVAL	50

/* size of the queue; a longer message is sent in parts */
#define QUEUE_SIZE		8192

/* A ticket that the worker is to create; the queue for its messages follows. */
typedef struct AutocreateRequest
{
	Oid			database;
	Oid			authenticated_role; /* the role that has logged in */
	Oid			role;			/* the role whose rights apply */
	int			sec_context;
	int			server;
	int			servers;
	int			lock_timeout;	/* in ms */
	char		name[NAMEDATALEN];
} AutocreateRequest;

/* settings: see autocreate_init() */
static bool auto_create_tickets;
static int	ticket_server;
static int	ticket_servers;

PG_FUNCTION_INFO_V1(instaid_lock_ticket_name);
PGDLLEXPORT void instaid_ticket_worker(Datum main_arg);

static shm_mq *
request_queue(AutocreateRequest *request)
{
	return (shm_mq *) ((char *) request + MAXALIGN(sizeof(AutocreateRequest)));
}

/* The background worker creates the ticket, and ends. */
void
instaid_ticket_worker(Datum main_arg)
{
	static const Oid types[] = {TEXTOID, INT4OID, INT4OID};
	Datum		args[lengthof(types)];
	dsm_segment *segment;
	AutocreateRequest *request;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	MemoryContextSwitchTo(TopMemoryContext);

	/*
	 * From here on the caller gets our errors.  If it is gone, there is no
	 * work.
	 */
	segment = dsm_attach(DatumGetUInt32(main_arg));
	if (segment == NULL)
		proc_exit(0);
	request = dsm_segment_address(segment);
	shm_mq_set_sender(request_queue(request), MyProc);
	pq_redirect_to_shm_mq(segment, shm_mq_attach(request_queue(request), segment, NULL));
	/* a database that refuses new connections may have old ones */
	BackgroundWorkerInitializeConnectionByOid(request->database, request->authenticated_role,
											  BGWORKER_BYPASS_ALLOWCONN);
	/* the caller expects errors in the encoding of the database */
	SetClientEncoding(GetDatabaseEncoding());
	SetConfigOption("lock_timeout", psprintf("%d", request->lock_timeout),
					PGC_USERSET, PGC_S_SESSION);
	/* the caller's transaction may write */
	SetConfigOption("default_transaction_read_only", "off", PGC_USERSET, PGC_S_SESSION);

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	SetUserIdAndSecContext(request->role, request->sec_context | SECURITY_LOCAL_USERID_CHANGE);
	SPI_connect();
	PushActiveSnapshot(GetTransactionSnapshot());
	pgstat_report_activity(STATE_RUNNING, "SELECT instaid.create_ticket($1, $2, $3)");

	args[0] = CStringGetTextDatum(request->name);
	args[1] = Int32GetDatum(request->server);
	args[2] = Int32GetDatum(request->servers);
	if (SPI_execute_with_args("SELECT instaid.create_ticket($1, $2, $3)",
							  lengthof(types), (Oid *) types, args, NULL,
							  false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not call create_ticket()");

	SPI_finish();
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* How long a call that began at this time may still wait, in ms */
static int
time_left(int64 began)
{
	return (int) Max(AUTOCREATE_TIMEOUT - (monotonic_time() - began) / 1000, 0);
}

/* Launch the worker.  If none is free, wait for one. */
static BackgroundWorkerHandle *
launch_worker(dsm_segment *segment, const char *name, int64 began)
{
	BackgroundWorker worker = {0};
	BackgroundWorkerHandle *handle;

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "instaid", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "instaid_ticket_worker", sizeof(worker.bgw_function_name));
	snprintf(worker.bgw_name, BGW_MAXLEN, "instaid ticket \"%s\"", name);
	strlcpy(worker.bgw_type, "instaid ticket", sizeof(worker.bgw_type));
	worker.bgw_main_arg = UInt32GetDatum(dsm_segment_handle(segment));
	worker.bgw_notify_pid = MyProcPid;

	while (!RegisterDynamicBackgroundWorker(&worker, &handle))
	{
		if (time_left(began) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("no background worker is free to create ticket \"%s\"", name),
					 errdetail("The call has waited for %d s.", AUTOCREATE_TIMEOUT / 1000),
					 errhint("Increase max_worker_processes, or create the ticket with create_ticket().")));
		CHECK_FOR_INTERRUPTS();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 AUTOCREATE_RETRY_INTERVAL, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
	return handle;
}

/*
 * Let a worker create the ticket, and wait for it.  Raises the worker's errors,
 * unless the name was taken: the caller finds the ticket that has it.
 */
static void
create_apart(const char *name, int64 began)
{
	dsm_segment *segment = dsm_create(MAXALIGN(sizeof(AutocreateRequest)) + QUEUE_SIZE, 0);
	AutocreateRequest *request = dsm_segment_address(segment);
	shm_mq_handle *queue;
	Size		length;
	void	   *data;
	bool		failed = false;
	ErrorData	error;

	request->database = MyDatabaseId;
	request->authenticated_role = GetAuthenticatedUserId();
	GetUserIdAndSecContext(&request->role, &request->sec_context);
	request->server = ticket_server;
	request->servers = ticket_servers;
	request->lock_timeout = LockTimeout > 0 ?
		Min(LockTimeout, AUTOCREATE_TIMEOUT) : AUTOCREATE_TIMEOUT;
	strlcpy(request->name, name, NAMEDATALEN);

	shm_mq_create(request_queue(request), QUEUE_SIZE);
	shm_mq_set_receiver(request_queue(request), MyProc);
	queue = shm_mq_attach(request_queue(request), segment, NULL);
	shm_mq_set_handle(queue, launch_worker(segment, name, began));

	/* The worker detaches from the queue when it ends, done or not. */
	while (shm_mq_receive(queue, &length, &data, false) == SHM_MQ_SUCCESS)
	{
		StringInfoData message;

		initStringInfo(&message);
		appendBinaryStringInfo(&message, data, length);
		if (pq_getmsgbyte(&message) == 'E')
		{
			pq_parse_errornotice(&message, &error);
			failed = true;
		}
	}
	dsm_detach(segment);

	if (failed && error.sqlerrcode != ERRCODE_DUPLICATE_TABLE)
	{
		/* a FATAL error ends the worker, not this session */
		error.elevel = ERROR;
		error.context = error.context ?
			psprintf("%s\ncreating ticket \"%s\" on first use", error.context, name) :
			psprintf("creating ticket \"%s\" on first use", name);
		ThrowErrorData(&error);
	}
}

/* The fourth field of a lock on a name.  Users' advisory locks have 1 or 2 there. */
typedef enum NameLock
{
	QUEUE_LOCK = 3,				/* for sessions that create on first use */
	CREATE_LOCK = 4				/* for transactions that create the ticket */
} NameLock;

/*
 * The tag of a lock on a ticket's name.  No function of PostgreSQL takes this
 * lock, and we take it only for roles that may create the ticket: it keeps others
 * from creating it.
 */
static void
set_name_tag(LOCKTAG *tag, NameLock lock, Oid schema, const char *name)
{
	Datum		hash = DirectFunctionCall1Coll(hashtext, DEFAULT_COLLATION_OID,
											   CStringGetTextDatum(name));

	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, schema, DatumGetUInt32(hash), lock);
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

/*
 * _lock_ticket_name(name text) -> void
 *
 * Keeps other transactions from creating a ticket of this name until this one ends.
 */
Datum
instaid_lock_ticket_name(PG_FUNCTION_ARGS)
{
	LOCKTAG		tag;

	set_name_tag(&tag, CREATE_LOCK, creation_schema(), text_to_cstring(PG_GETARG_TEXT_PP(0)));
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	/* the transaction that had the lock may have created it */
	AcceptInvalidationMessages();
	PG_RETURN_VOID();
}

/* Take a lock for the session, waiting for it no longer than the call may wait. */
static void
lock_in_time(const LOCKTAG *tag, const char *name, int64 began)
{
	MemoryContext context = CurrentMemoryContext;
	int			saved = LockTimeout;
	int			left = Max(time_left(began), 1);

	if (LockTimeout > 0 && LockTimeout <= left)
	{
		(void) LockAcquire(tag, ExclusiveLock, true, false);
		return;
	}

	LockTimeout = left;
	PG_TRY();
	{
		(void) LockAcquire(tag, ExclusiveLock, true, false);
	}
	PG_CATCH();
	{
		LockTimeout = saved;
		if (geterrcode() != ERRCODE_LOCK_NOT_AVAILABLE)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("could not create ticket \"%s\" on first use", name),
				 errdetail("The call has waited for %d s for other sessions that are creating it.",
						   AUTOCREATE_TIMEOUT / 1000),
				 errhint("Call again. If no background worker is free, increase max_worker_processes, or create the ticket with create_ticket().")));
	}
	PG_END_TRY();
	LockTimeout = saved;
}

/* Are tickets created on first use? */
bool
autocreate_is_enabled(void)
{
	return auto_create_tickets;
}

/*
 * Create a ticket that this session did not find, unless another session creates
 * it.  The caller looks again afterwards.
 *
 * Sessions that want the same name wait for each other, so that only one of them
 * launches a worker.  They hold the queue lock as sessions, not as transactions,
 * so none waits for the end of this transaction.  If this call is cancelled, its
 * worker continues, and the lock that create_ticket() takes keeps another worker
 * from creating the ticket at once.  This function waits for that lock, too: the
 * deadlock detector then sees that it waits for a transaction that creates the
 * ticket.
 */
void
autocreate_ticket(const char *name)
{
	Oid			schema = creation_schema();
	LOCKTAG		create_tag;
	LOCKTAG		queue_tag;
	int64		began = monotonic_time();

	set_name_tag(&create_tag, CREATE_LOCK, schema, name);
	set_name_tag(&queue_tag, QUEUE_LOCK, schema, name);

	lock_in_time(&queue_tag, name, began);
	PG_TRY();
	{
		lock_in_time(&create_tag, name, began);
		LockRelease(&create_tag, ExclusiveLock, true);

		AcceptInvalidationMessages();
		if (!OidIsValid(get_relname_relid(name, schema)))
			create_apart(name, began);
	}
	PG_FINALLY();
	{
		LockRelease(&queue_tag, ExclusiveLock, true);
	}
	PG_END_TRY();
	AcceptInvalidationMessages();
}

void
autocreate_init(void)
{
	/* any role may set it, since creating a ticket needs CREATE on the schema */
	DefineCustomBoolVariable("instaid.auto_create_tickets",
							 "Creates a ticket when its name is first used.",
							 "If this is off, next_ticket() fails for a name that does not exist.",
							 &auto_create_tickets,
							 false,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);

	/*
	 * These are superusers' settings, because a server with the number of
	 * another server would issue the other server's values.
	 */
	DefineCustomIntVariable("instaid.ticket_server",
							"Sets this server's number, for tickets that are created on first use.",
							"It is from 1 to instaid.ticket_servers.",
							&ticket_server,
							1, 1, INT_MAX,
							PGC_SUSET, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("instaid.ticket_servers",
							"Sets the number of servers, for tickets that are created on first use.",
							"Each server issues every Nth value.",
							&ticket_servers,
							1, 1, INT_MAX,
							PGC_SUSET, 0,
							NULL, NULL, NULL);
}
