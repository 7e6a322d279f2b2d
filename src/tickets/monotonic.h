/*-------------------------------------------------------------------------
 *
 * monotonic.h
 *	  A clock to measure intervals by, as the wall clock can be set.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_MONOTONIC_H
#define INSTAID_MONOTONIC_H

#include <time.h>

/* Microseconds since a time before the server started, equal in all processes */
static inline int64
monotonic_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif							/* INSTAID_MONOTONIC_H */
