/* What SQL-callable functions of both wings share. */
#ifndef INSTAID_FUNCTIONS_H
#define INSTAID_FUNCTIONS_H

#include "fmgr.h"

extern void check_object_name(const char *what, const char *name);
extern Datum make_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls);

#endif							/* INSTAID_FUNCTIONS_H */
