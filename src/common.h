/* What SQL functions of IDs and of tickets share. */
#ifndef INSTAID_COMMON_H
#define INSTAID_COMMON_H

#include "fmgr.h"

extern void check_object_name(const char *what, const char *name);
extern Datum make_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls);

#endif							/* INSTAID_COMMON_H */
