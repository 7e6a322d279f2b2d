/*
 * A clock that goes on by 20 microseconds with each reading, to be preloaded by
 * bench/instructions.sh.
 *
 * valgrind slows a server some fifty times, and another process beside it more.
 * By the real clock it would depend on that how many IDs come in a millisecond:
 * how many of a reserve are dropped, whether the sequence runs ahead.  By this
 * one it is 50, whatever the machine does, and each run is like the last.
 *
 * 50 IDs a millisecond is a busy shard, and about what a session gets under
 * valgrind by the real clock.  It matters for CACHE only.  At 500 a millisecond
 * the sequence runs ahead of the clock now and then, where CACHE counts as 1:
 * an ID of CACHE 32 takes some 130 instructions then instead of 50.
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
		sec = time(NULL);
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
