/* Running one thing in a background worker: see background.c. */
#ifndef INSTAID_BACKGROUND_H
#define INSTAID_BACKGROUND_H

#include <time.h>

#include "postmaster/bgworker.h"

/* for sessions */
extern bool background_start(const char *function, const char *type, const void *request,
							 Size size, Datum main_arg, BackgroundWorkerHandle **handle);
extern bool background_run(const char *function, const char *type, const void *request,
						   Size size, ErrorData *error);

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
