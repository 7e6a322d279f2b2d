/* What instaid.so calls of instaid_sources.so. */
#ifndef INSTAID_INTERFACE_H
#define INSTAID_INTERFACE_H

#include "fmgr.h"

/* the rendezvous variable that points to it, if the server has preloaded the library */
#define SOURCES_INTERFACE "instaid_sources"

/*
 * A library that was preloaded can be of another version than instaid.so.  Therefore the version
 * comes first, in every version, and what follows changes only with it.
 */
typedef struct SourcesInterface
{
	const char *version;
	int64		(*take) (Oid ticket, const char *name, int *place, int timeout,
						 int target_duration);
	Datum		(*state) (FunctionCallInfo fcinfo);
} SourcesInterface;

#endif							/* INSTAID_INTERFACE_H */
