/* What instaid.so calls of instaid_sources.so. */
#ifndef INSTAID_INTERFACE_H
#define INSTAID_INTERFACE_H

#include "fmgr.h"

/* the library, and the variable of find_rendezvous_variable() in which it leaves this */
#define SOURCES_LIBRARY "instaid_sources"

/*
 * A server keeps the library that it has preloaded, and the file of instaid.so can be another
 * version's.  Therefore each version begins with its number.  Without another number, nothing
 * here changes.
 */
typedef struct SourcesInterface
{
	const char *version;
	int64		(*take) (Oid ticket, const char *name, int *place, int timeout,
						 int target_duration);
	Datum		(*state) (FunctionCallInfo fcinfo);
} SourcesInterface;

#endif							/* INSTAID_INTERFACE_H */
