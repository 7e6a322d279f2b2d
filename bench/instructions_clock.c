/*
 * A clock that goes on by 20 microseconds with each reading, to be preloaded by
 * bench/instructions.sh.
 *
 * valgrind slows a server some fifty times, and another process beside it more.
 * By the real clock it would depend on that how many IDs come in a millisecond,
 * and whether the sequence runs ahead.  By this one it is 50, whatever the
 * machine does, and each run is like the last.
 *
 * 50 IDs a millisecond is a busy shard, and about what a session gets under
 * valgrind by the real clock.
 */
#include <sys/time.h>
#include <time.h>

#define STEP 20

int
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	static time_t sec;
	static long usec;

	(void) tz;
	if (sec == 0)
		sec = time(NULL) + 60;	/* after the IDs that were made by the real clock */
	usec += STEP;
	if (usec >= 1000000)
	{
		usec -= 1000000;
		sec++;
	}
	tv->tv_sec = sec;
	tv->tv_usec = usec;
	return 0;
}
