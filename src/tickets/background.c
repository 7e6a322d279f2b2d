/*
 * Running one thing in a background worker.
 *
 * A session starts a worker for one task, waits for it (autocreate.c) or not (segments.c), and the
 * worker ends.
 */
#include "postgres.h"

#include "catalog/pg_database.h"
#include "libpq/pqformat.h"
#include "libpq/pqmq.h"
#include "miscadmin.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"

#include "compat.h"
#include "tickets/tickets.h"

/* size of the queue for messages; a longer message is sent in parts */
#define QUEUE_SIZE		8192

/*
 * Start a worker of this type, which calls a function of this library with a request of up to
 * BGW_EXTRALEN bytes.  Returns false if max_worker_processes are running already.
 */
bool
background_start(const char *function, const char *type, const void *request, Size size,
				 Datum main_arg, BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION |
		BGWORKER_INTERRUPTIBLE;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "instaid", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, function, sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, type, BGW_MAXLEN);
	strlcpy(worker.bgw_type, type, BGW_MAXLEN);
	Assert(size <= BGW_EXTRALEN);
	memcpy(worker.bgw_extra, request, size);
	worker.bgw_main_arg = main_arg;
	worker.bgw_notify_pid = handle != NULL ? MyProcPid : 0;
	return RegisterDynamicBackgroundWorker(&worker, handle);
}

/*
 * Start a worker, and wait until it ends.  Returns false if none is free.  If the worker raised
 * no error, the elevel of the copy is 0.
 */
bool
background_run(const char *function, const char *type, const void *request, Size size,
			   ErrorData *error)
{
	dsm_segment *segment = dsm_create(QUEUE_SIZE, 0);
	shm_mq	   *messages = shm_mq_create(dsm_segment_address(segment), QUEUE_SIZE);
	shm_mq_handle *queue;
	BackgroundWorkerHandle *worker;
	Size		length;
	void	   *data;

	memset(error, 0, sizeof(*error));
	shm_mq_set_receiver(messages, MyProc);
	queue = shm_mq_attach(messages, segment, NULL);
	if (!background_start(function, type, request, size,
						  UInt32GetDatum(dsm_segment_handle(segment)), &worker))
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
			pq_parse_errornotice(&message, error);
	}
	dsm_detach(segment);
	return true;
}

/*
 * Begin as a worker: get the request.  A session that waits gets our errors from here on; if it is
 * gone, there is no work.
 */
void
background_begin(void *request, Size size, Datum main_arg)
{
	memcpy(request, MyBgworkerEntry->bgw_extra, size);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	MemoryContextSwitchTo(TopMemoryContext);

	if (main_arg != (Datum) 0)
	{
		dsm_segment *segment = dsm_attach(DatumGetUInt32(main_arg));
		shm_mq	   *messages;

		if (segment == NULL)
			proc_exit(0);
		messages = dsm_segment_address(segment);
		shm_mq_set_sender(messages, MyProc);
		pq_redirect_to_shm_mq(segment, shm_mq_attach(messages, segment, NULL));
	}
}

/*
 * Does a session wait until nobody uses this database, to drop, rename or copy it?  It has locked
 * the database, and no new session can connect.
 */
bool
background_is_in_the_way(void)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
	if (LockAcquire(&tag, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, RowExclusiveLock, true);
	return false;
}
