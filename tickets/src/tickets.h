/* What other files may call of each file of the tickets. */
#ifndef INSTAID_TICKETS_H
#define INSTAID_TICKETS_H

#include "utils/acl.h"

/* the rights to take values of a ticket that has a source, and to look at it */
#define SOURCE_RIGHTS		ACL_UPDATE
#define SOURCE_READ_RIGHTS	(ACL_SELECT | ACL_UPDATE)

/* tickets.c: dense, durable integers */
extern void tickets_init(void);

/* source.c: where a ticket has its values from */

/* The hosts of a foreign server, each of which can lease values of a sequence */
typedef struct Source
{
	char	   *server;
	const char *sequence;		/* its name there */
	int64		step;
	int64		last_of_type;	/* no value is above this one */
	const char *refusal;		/* why the server is not asked, or NULL */
	const char **keywords;		/* connection options of libpq, up to a NULL */
	const char **values;		/* the first three are those of one host: see source_aim() */
	const char *lists[3];		/* of all hosts, or NULL */
	const char *host;			/* the one that is asked now, for messages */
	int			count;			/* how many hosts there are; at least 1 */
	bool		needs_password; /* must they ask for the password? */
	int			timeout;		/* ms that each may take */
	uint32		hash;			/* of the server and its options; not 0 */
	uint32		sequence_hash;	/* of the sequence's name; not 0 */
} Source;

extern bool source_exists(Oid relation);
extern bool source_find(Oid ticket, Source *source);
extern void source_aim(Source *source, int host);

#endif							/* INSTAID_TICKETS_H */
