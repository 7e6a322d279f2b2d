/*-------------------------------------------------------------------------
 *
 * autocreate.c
 *	  Creating a ticket on first use, apart from the caller's transaction.
 *
 * A ticket that others use at once must not go away when the transaction that
 * happened to be the first is rolled back.  So a background worker creates it,
 * in a transaction of its own: in the same database, with the rights of the
 * calling role and no others.  It is started when it is needed, and so needs
 * no shared_preload_libraries.
 *
 * The caller waits for it in a way that the deadlock detector does not see.
 * Hence the worker does not wait for locks without end.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "libpq/pqformat.h"
#include "libpq/pqmq.h"
#include "libpq/pqsignal.h"
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
#include "tickets/tickets.h"

/*
 * How long a call waits for its turn and a free worker slot, and a worker for a
 * lock, in ms
 */
#define MAX_WAIT		10000
#define RETRY_INTERVAL	50

/* room for what the worker has to say; longer messages go through in parts */
#define QUEUE_SIZE		8192

/* What the worker is to do; the queue for its messages follows. */
typedef struct TicketOrder
{
	Oid			database;
	Oid			authenticated_role; /* who logged in */
	Oid			role;			/* whose rights count */
	int			sec_context;
	int			server;
	int			servers;
	int			lock_timeout;	/* in ms */
	char		name[NAMEDATALEN];
} TicketOrder;

bool		instaid_auto_create_tickets = false;
int			instaid_ticket_server = 1;
int			instaid_ticket_servers = 1;

PG_FUNCTION_INFO_V1(instaid_lock_ticket_name);
PGDLLEXPORT void instaid_ticket_worker(Datum main_arg);

static shm_mq *
order_queue(TicketOrder *order)
{
	return (shm_mq *) ((char *) order + MAXALIGN(sizeof(TicketOrder)));
}

/* The background worker: create the ticket, and end. */
void
instaid_ticket_worker(Datum main_arg)
{
	static const Oid types[] = {TEXTOID, INT4OID, INT4OID};
	Datum		args[lengthof(types)];
	dsm_segment *segment;
	TicketOrder *order;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	MemoryContextSwitchTo(TopMemoryContext);

	/* From here on the caller gets our errors; if it is gone, nobody does. */
	segment = dsm_attach(DatumGetUInt32(main_arg));
	if (segment == NULL)
		proc_exit(0);
	order = dsm_segment_address(segment);
	shm_mq_set_sender(order_queue(order), MyProc);
	pq_redirect_to_shm_mq(segment, shm_mq_attach(order_queue(order), segment, NULL));

	/* it works for a session that is there, even where no others may come */
	BackgroundWorkerInitializeConnectionByOid(order->database, order->authenticated_role,
											  BGWORKER_BYPASS_ALLOWCONN);
	SetConfigOption("lock_timeout", psprintf("%d", order->lock_timeout),
					PGC_USERSET, PGC_S_SESSION);
	/* the caller's transaction may write */
	SetConfigOption("default_transaction_read_only", "off", PGC_USERSET, PGC_S_SESSION);

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	SetUserIdAndSecContext(order->role, order->sec_context | SECURITY_LOCAL_USERID_CHANGE);
	SPI_connect();
	PushActiveSnapshot(GetTransactionSnapshot());
	pgstat_report_activity(STATE_RUNNING, "SELECT instaid.create_ticket($1, $2, $3)");

	args[0] = CStringGetTextDatum(order->name);
	args[1] = Int32GetDatum(order->server);
	args[2] = Int32GetDatum(order->servers);
	if (SPI_execute_with_args("SELECT instaid.create_ticket($1, $2, $3)",
							  lengthof(types), (Oid *) types, args, NULL,
							  false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not call create_ticket()");

	SPI_finish();
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* How long a call that began then may still wait, in ms. */
static int
time_left(int64 began)
{
	return (int) Max(MAX_WAIT - (instaid_monotonic_time() - began) / 1000, 0);
}

/* Start the worker; wait for a free slot if there is none. */
static BackgroundWorkerHandle *
start_worker(dsm_segment *segment, const char *name, int64 began)
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
					 errdetail("The call has waited for %d s.", MAX_WAIT / 1000),
					 errhint("Increase max_worker_processes, or create the ticket with create_ticket().")));
		CHECK_FOR_INTERRUPTS();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 RETRY_INTERVAL, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
	return handle;
}

/*
 * Let a worker create the ticket, and wait for it.  Errors are the worker's,
 * except that there is a relation of that name already: whoever created it, the
 * caller will find it.
 */
static void
create_apart(const char *name, int64 began)
{
	dsm_segment *segment = dsm_create(MAXALIGN(sizeof(TicketOrder)) + QUEUE_SIZE, 0);
	TicketOrder *order = dsm_segment_address(segment);
	shm_mq_handle *queue;
	Size		length;
	void	   *data;
	bool		failed = false;
	ErrorData	error;

	order->database = MyDatabaseId;
	order->authenticated_role = GetAuthenticatedUserId();
	GetUserIdAndSecContext(&order->role, &order->sec_context);
	order->server = instaid_ticket_server;
	order->servers = instaid_ticket_servers;
	order->lock_timeout = LockTimeout > 0 ? Min(LockTimeout, MAX_WAIT) : MAX_WAIT;
	strlcpy(order->name, name, NAMEDATALEN);

	shm_mq_create(order_queue(order), QUEUE_SIZE);
	shm_mq_set_receiver(order_queue(order), MyProc);
	queue = shm_mq_attach(order_queue(order), segment, NULL);
	shm_mq_set_handle(queue, start_worker(segment, name, began));

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
		/* a FATAL error was the end of the worker only */
		error.elevel = ERROR;
		error.context = error.context ?
			psprintf("%s\ncreating ticket \"%s\" on first use", error.context, name) :
			psprintf("creating ticket \"%s\" on first use", name);
		ThrowErrorData(&error);
	}
}

/* What tells the locks of a ticket's name from users' advisory locks, which have 1 or 2 */
typedef enum NameLock
{
	QUEUE_LOCK = 3,				/* of sessions that want it created on first use */
	CREATE_LOCK = 4				/* of transactions that create it */
} NameLock;

/*
 * The tag of a lock on a ticket's name.  No function of core's takes it, and we
 * take it only for roles that may create the ticket: others could stop those
 * with it.
 */
static void
set_name_tag(LOCKTAG *tag, NameLock lock, Oid schema, const char *name)
{
	Datum		hash = DirectFunctionCall1Coll(hashtext, DEFAULT_COLLATION_OID,
											   CStringGetTextDatum(name));

	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, schema, DatumGetUInt32(hash), lock);
}

/* The schema of tickets, in which the role must be allowed to create */
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
 * Keep others from creating a ticket of this name until the transaction ends.
 */
Datum
instaid_lock_ticket_name(PG_FUNCTION_ARGS)
{
	LOCKTAG		tag;

	set_name_tag(&tag, CREATE_LOCK, creation_schema(), text_to_cstring(PG_GETARG_TEXT_PP(0)));
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
	/* whom we have waited for may have created it */
	AcceptInvalidationMessages();
	PG_RETURN_VOID();
}

/*
 * Take a lock for the session, but do not wait longer for it than the call may.
 */
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
				 errdetail("The call has waited for %d s for other sessions that are creating it.", MAX_WAIT / 1000),
				 errhint("Call again. If no background worker is free, increase max_worker_processes, or create the ticket with create_ticket().")));
	}
	PG_END_TRY();
	LockTimeout = saved;
}

/*
 * Create a ticket that this session did not find, unless another session does;
 * the caller looks again afterwards.
 *
 * Sessions that want the same name go one after the other, so that there is one
 * worker for it.  Their lock is the session's, not the transaction's: nobody
 * waits for the end of our transaction.  Should we be cancelled, the worker
 * goes on, and the lock that create_ticket() takes keeps it from meeting
 * another.  That lock we also wait for, so that a transaction that is creating
 * the ticket is waited for here, where the deadlock detector sees it.
 */
void
instaid_autocreate_ticket(const char *name)
{
	Oid			schema = creation_schema();
	LOCKTAG		create_tag;
	LOCKTAG		queue_tag;
	int64		began = instaid_monotonic_time();

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
