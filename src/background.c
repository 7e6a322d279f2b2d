/* Background workers, each for one task: it starts, does it and ends. */
#include "postgres.h"

#include "miscadmin.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"

#include "common.h"
#include "compat.h"

/*
 * Start a worker of this type, which calls a function of a library with a request of up to
 * BGW_EXTRALEN bytes.  Returns false if max_worker_processes are running already.
 */
bool
background_start(const char *library, const char *function, const char *type,
				 const void *request, Size size, BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION |
		BGWORKER_INTERRUPTIBLE;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, library, sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, function, sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, type, BGW_MAXLEN);
	strlcpy(worker.bgw_type, type, BGW_MAXLEN);
	Assert(size <= BGW_EXTRALEN);
	memcpy(worker.bgw_extra, request, size);
	worker.bgw_notify_pid = handle != NULL ? MyProcPid : 0;
	return RegisterDynamicBackgroundWorker(&worker, handle);
}

/* Begin as a worker: get the request. */
void
background_begin(void *request, Size size)
{
	memcpy(request, MyBgworkerEntry->bgw_extra, size);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	MemoryContextSwitchTo(TopMemoryContext);
}
