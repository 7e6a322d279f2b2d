/*-------------------------------------------------------------------------
 *
 * background.h
 *	  Running one thing in a background worker: see background.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_BACKGROUND_H
#define INSTAID_BACKGROUND_H

#include <time.h>

#include "postmaster/bgworker.h"

/* What is to be run */
typedef struct BackgroundTask
{
	const char *function;		/* of this library; the worker calls it */
	const char *type;			/* of the worker, in pg_stat_activity */
	const void *request;		/* what the function gets */
	Size		size;			/* of the request, up to BGW_EXTRALEN */
} BackgroundTask;

/* for sessions */
extern bool background_start(const BackgroundTask *task, Datum main_arg,
							 BackgroundWorkerHandle **handle);
extern bool background_run(const BackgroundTask *task, ErrorData *error);

/* for the worker */
extern void background_begin(void *request, Size size, Datum main_arg);
extern bool background_is_in_the_way(void);

/* A clock that nobody sets, in microseconds, for whatever waits or is tried again */
static inline int64
monotonic_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif							/* INSTAID_BACKGROUND_H */
