/*
 * A library for ticket_source_faults.pl, which reserves 1 GB of private memory and does not touch
 * it.
 */
#include "postgres.h"

#include <sys/mman.h>

#include "fmgr.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	if (mmap(NULL, (size_t) 1 << 30, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		elog(ERROR, "could not map memory: %m");
}
