/* What both extensions share, file by file, and a clock that nobody sets. */
#ifndef INSTAID_COMMON_H
#define INSTAID_COMMON_H

#include <time.h>

#include "fmgr.h"
#include "utils/acl.h"

/* common.c: what SQL functions of IDs and of tickets share */
extern void check_object_name(const char *what, const char *name);
extern Datum make_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls);

/* relation.c: what the catalogs say of a relation of any kind */
extern Oid	relation_owner(Oid relation);
extern bool relation_is_visible(Oid relation, AclMode rights);

/* Microseconds, for whatever waits or is tried again */
static inline int64
monotonic_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif							/* INSTAID_COMMON_H */
