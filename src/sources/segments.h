/* Values of tickets that have a source: see segments.c, and segments_view.c. */
#ifndef INSTAID_SEGMENTS_H
#define INSTAID_SEGMENTS_H

#include "fmgr.h"

extern int64 segments_take(Oid ticket, const char *name, int *place, int timeout,
						   int target_duration);
extern Datum segments_state(FunctionCallInfo fcinfo);

#endif							/* INSTAID_SEGMENTS_H */
