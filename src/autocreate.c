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
#include "storage/shm_mq.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "tickets.h"

/* how long a caller waits for a free worker slot, and a worker for a lock, in ms */
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

	BackgroundWorkerInitializeConnectionByOid(order->database, order->authenticated_role, 0);
	SetConfigOption("lock_timeout", psprintf("%d", order->lock_timeout),
					PGC_USERSET, PGC_S_SESSION);

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

/* Start the worker; wait for a free slot if there is none. */
static BackgroundWorkerHandle *
start_worker(dsm_segment *segment, const char *name)
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

	for (int waited = 0; !RegisterDynamicBackgroundWorker(&worker, &handle); waited += RETRY_INTERVAL)
	{
		if (waited >= MAX_WAIT)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("no background worker is free to create ticket \"%s\"", name),
					 errdetail("%d s were not enough to wait for one.", MAX_WAIT / 1000),
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
create_apart(const char *name)
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
	shm_mq_set_handle(queue, start_worker(segment, name));

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
	Oid			schema = get_namespace_oid(TICKET_SCHEMA, false);
	Datum		hash = DirectFunctionCall1Coll(hashtext, DEFAULT_COLLATION_OID,
											   CStringGetTextDatum(name));
	LOCKTAG		create_tag;
	LOCKTAG		queue_tag;

	/* as pg_advisory_xact_lock(schema, hashtext(name)) has it */
	SET_LOCKTAG_ADVISORY(create_tag, MyDatabaseId, schema, DatumGetUInt32(hash), 2);
	/* 3, where users' advisory locks have 1 or 2, is for us */
	SET_LOCKTAG_ADVISORY(queue_tag, MyDatabaseId, schema, DatumGetUInt32(hash), 3);

	(void) LockAcquire(&queue_tag, ExclusiveLock, true, false);
	PG_TRY();
	{
		(void) LockAcquire(&create_tag, ExclusiveLock, true, false);
		LockRelease(&create_tag, ExclusiveLock, true);

		AcceptInvalidationMessages();
		if (!OidIsValid(get_relname_relid(name, schema)))
			create_apart(name);
	}
	PG_FINALLY();
	{
		LockRelease(&queue_tag, ExclusiveLock, true);
	}
	PG_END_TRY();
	AcceptInvalidationMessages();
}
