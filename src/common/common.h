/* What both extensions share, and a clock that nobody sets. */
#ifndef INSTAID_COMMON_H
#define INSTAID_COMMON_H

#include "fmgr.h"
#include "portability/instr_time.h"
#include "utils/acl.h"

extern void check_object_name(const char *what, const char *name);
extern Datum make_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls);
extern Oid	relation_owner(Oid relation);
extern bool relation_is_visible(Oid relation, AclMode rights);

/* Microseconds, for whatever waits or is tried again */
static inline int64
monotonic_time(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return INSTR_TIME_GET_MICROSEC(now);
}

#endif							/* INSTAID_COMMON_H */
