/*
 * A clock that a test moves or stops while a server runs, to be preloaded.
 *
 * The file that MOVED_CLOCK names holds two numbers of 64 bits: how many
 * microseconds the clock is ahead of the real one and, if it is not 0, the time
 * since 1970 at which it stands still.
 *
 * libfaketime would read a file at each call, and allocate memory for that.
 * Under load PostgreSQL asks for the time in signal handlers, where this breaks
 * the heap.  Reading mapped memory does not.  Clocks that measure durations stay
 * real.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *moved;

__attribute__((constructor))
static void
map_file(void)
{
	const char *name = getenv("MOVED_CLOCK");
	int			file = name ? open(name, O_RDONLY) : -1;

	if (file >= 0)
	{
		void	   *mapped = mmap(NULL, 16, PROT_READ, MAP_SHARED, file, 0);

		if (mapped != MAP_FAILED)
			moved = mapped;
		close(file);
	}
}

static int64_t
microseconds(void)
{
	struct timespec real;

	if (moved && moved[1] != 0)
		return moved[1];
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
	return real.tv_sec * INT64_C(1000000) + real.tv_nsec / 1000 + (moved ? moved[0] : 0);
}

int
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	int64_t		now = microseconds();

	(void) tz;
	tv->tv_sec = now / 1000000;
	tv->tv_usec = now % 1000000;
	return 0;
}

time_t
time(time_t *result)
{
	time_t		now = microseconds() / 1000000;

	if (result)
		*result = now;
	return now;
}
