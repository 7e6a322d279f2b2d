/* The servers that a ticket has its values from, and what instaid.so calls of instaid_sources.so. */
#ifndef INSTAID_SOURCE_H
#define INSTAID_SOURCE_H

#include "fmgr.h"
#include "utils/acl.h"

/* the rights to take values of a ticket that has a source, and to look at it */
#define SOURCE_RIGHTS		ACL_UPDATE
#define SOURCE_READ_RIGHTS	(ACL_SELECT | ACL_UPDATE)

/* A server that can be asked */
typedef struct Authority
{
	char	   *name;
	const char *refusal;		/* why it is not asked, or NULL */
	const char **keywords;		/* connection options of libpq, up to a NULL */
	const char **values;
	bool		needs_password; /* must it ask for the password? */
	int			timeout;		/* ms that it may take */
} Authority;

/* Where a ticket has its values from */
typedef struct Source
{
	char	   *ticket;			/* its name */
	int64		step;
	int64		last_of_type;	/* no value is above this one */
	int			count;
	Authority  *authorities;	/* in the order in which they are asked */
	uint32		hash;			/* of the servers and their options; not 0 */
} Source;

extern bool source_exists(Oid relation);
extern bool source_find(Oid ticket, Source *source);

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

#endif							/* INSTAID_SOURCE_H */
