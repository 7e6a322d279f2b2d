/* A clock that nobody sets, for whatever waits or is tried again. */
#ifndef INSTAID_MONOTONIC_H
#define INSTAID_MONOTONIC_H

#include <time.h>

/* in microseconds */
static inline int64
monotonic_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif							/* INSTAID_MONOTONIC_H */
