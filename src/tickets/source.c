/*-------------------------------------------------------------------------
 *
 * source.c
 *	  Segments that are leased from other servers.
 *
 * The source of a ticket is a libpq connection string, to servers that have a
 * sequence of the ticket's name in the schema instaid_tickets.  They need not
 * have this extension.  It is kept as the security label of the ticket's own
 * sequence: there it is dumped, renamed and dropped with it, and we are asked
 * who may set it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "commands/seclabel.h"
#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "tickets/source.h"

#define LABEL_PROVIDER	"instaid"

/* how long a server may take, in ms, unless the source has a connect_timeout */
#define SERVER_TIMEOUT	2000

char	   *instaid_source_role = NULL;

static HTAB *ticket_cache = NULL;

/* The source of a ticket, or NULL */
static char *
get_source(Oid ticket)
{
	ObjectAddress object;

	ObjectAddressSet(object, RelationRelationId, ticket);
	return GetSecurityLabel(&object, LABEL_PROVIDER);
}

/* A relation, or all of them if it is InvalidOid, has changed. */
static void
forget_label(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS scan;
	TicketCacheEntry *entry;

	(void) arg;
	if (OidIsValid(relid))
	{
		entry = hash_search(ticket_cache, &relid, HASH_FIND, NULL);
		if (entry != NULL)
			entry->label_known = false;
		return;
	}
	hash_seq_init(&scan, ticket_cache);
	while ((entry = hash_seq_search(&scan)) != NULL)
		entry->label_known = false;
}

/*
 * Look up what this session knows of a ticket; the first time, read the catalogs
 * for it.  The caller has locked the relation, which keeps a label from coming
 * meanwhile.
 */
TicketCacheEntry *
source_cache_ticket(Oid ticket)
{
	TicketCacheEntry *entry = hash_search(ticket_cache, &ticket, HASH_FIND, NULL);

	if (entry == NULL || !entry->label_known)
	{
		bool		has_label = get_source(ticket) != NULL;
		bool		found;

		entry = hash_search(ticket_cache, &ticket, HASH_ENTER, &found);
		entry->has_label = has_label;
		entry->label_known = true;
		if (!found)
			memset(&entry->logged, 0, sizeof(entry->logged));
	}
	return entry;
}

/*
 * Does a ticket get its values from other servers?  Its own sequence is at its
 * end then, below 0; or somebody has altered it, but the label remains.
 */
bool
source_exists(Oid ticket, Form_pg_sequence options)
{
	return (options->seqmax < 0 && options->seqincrement > 0) ||
		source_cache_ticket(ticket)->has_label;
}

/* Options that come in a list, an item for each server: the n-th of it. */
static char *
list_item(const char *list, int n)
{
	if (strchr(list, ',') == NULL)
		return pstrdup(list);
	for (; n > 0 && list != NULL; n--)
		list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL;
	if (list == NULL)
		return pstrdup("");
	return pnstrdup(list, strcspn(list, ","));
}

static const char *
option_value(const PQconninfoOption *options, const char *keyword)
{
	for (; options->keyword != NULL; options++)
	{
		if (strcmp(options->keyword, keyword) == 0)
			return options->val;
	}
	return NULL;
}

/* The first option that is not for everybody to see, or NULL */
static char *
secret_option(const PQconninfoOption *options)
{
	for (; options->keyword != NULL; options++)
	{
		/* that is how libpq marks those, and what is for itself */
		if (options->val != NULL && options->dispchar[0] != '\0')
			return pstrdup(options->keyword);
	}
	return NULL;
}

static bool
is_list(const char *keyword)
{
	return strcmp(keyword, "host") == 0 || strcmp(keyword, "hostaddr") == 0 ||
		strcmp(keyword, "port") == 0;
}

/* How many servers a source has: the hosts, as libpq counts them */
static int
count_servers(const PQconninfoOption *options)
{
	const char *hosts = option_value(options, "hostaddr");
	int			count = 1;

	if (hosts == NULL)
		hosts = option_value(options, "host");
	for (; hosts != NULL && *hosts != '\0'; hosts++)
		count += *hosts == ',';
	return count;
}

/*
 * Has the sequence of a ticket given nothing yet?  That is how pg_restore finds
 * it, also if its options had been altered when it was dumped.  The lock keeps it
 * so until the source is there.
 */
static bool
is_unused(Oid ticket)
{
	Relation	rel;
	Buffer		buffer;
	bool		unused;

	LockRelationOid(ticket, ShareRowExclusiveLock);
	rel = relation_open(ticket, NoLock);
	unused = !sequence_lock_page(rel, &buffer, BUFFER_LOCK_SHARE)->is_called;
	UnlockReleaseBuffer(buffer);
	relation_close(rel, NoLock);
	return unused;
}

/* Refuse what is not the source of a ticket, and roles that may not set one. */
static void
check_source(const ObjectAddress *object, const char *source)
{
	Oid			role = instaid_source_role[0] == '\0' ? InvalidOid :
		get_role_oid(instaid_source_role, true);
	HeapTuple	tuple = NULL;
	bool		altered;
	PQconninfoOption *options;
	char	   *problem = NULL;
	char	   *secret;
	int			server_count;

	if (!superuser() &&
		!(OidIsValid(role) && has_privs_of_role(GetUserId(), role)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to set the source of a ticket"),
				 errdetail("The server connects to it with its own files of passwords and keys. Only superusers and members of the role that instaid.source_role names may set it."),
				 errhint("A superuser can let the members of a role do so: ALTER SYSTEM SET instaid.source_role = '...'; SELECT pg_reload_conf();")));

	if (object->classId == RelationRelationId && object->objectSubId == 0 &&
		get_rel_namespace(object->objectId) == get_namespace_oid(TICKET_SCHEMA, true))
		tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(object->objectId));
	altered = HeapTupleIsValid(tuple) &&
		((Form_pg_sequence) GETSTRUCT(tuple))->seqmax > 0;
	if (!HeapTupleIsValid(tuple) ||
		!(source_exists(object->objectId, (Form_pg_sequence) GETSTRUCT(tuple)) ||
		  is_unused(object->objectId)))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("%s cannot have a source", getObjectDescription(object, false)),
				 errdetail("Only a ticket that was created with a source, or has given no value yet, can have one."),
				 errhint("Use create_ticket(..., source => '...').")));
	ReleaseSysCache(tuple);
	/* sessions remember whether there is one */
	CacheInvalidateRelcacheByRelid(object->objectId);

	if (source == NULL)
	{
		if (altered && get_source(object->objectId) != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("%s must keep its source", getObjectDescription(object, false)),
					 errdetail("It was altered: without the source, it would give values of its own, which the source has given."),
					 errhint("Set another source, or drop the ticket.")));
		return;
	}
	options = PQconninfoParse(source, &problem);
	if (options == NULL)
	{
		StringInfoData text;

		initStringInfo(&text);
		lease_append_text(&text, problem ? problem : "out of memory");
		PQfreemem(problem);
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the source of a ticket is not a connection string"),
				 errdetail_internal("%s", text.data),
				 errhint("An example: host=ticket1,ticket2 dbname=tickets")));
	}
	secret = secret_option(options);
	server_count = count_servers(options);
	PQconninfoFree(options);
	if (secret != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the source of a ticket must not have a secret"),
				 errdetail("It has \"%s\", and everybody can read the source.", secret),
				 errhint("Put passwords into the password file, or a service file, of the user that runs the server.")));
	if (server_count > MAX_SERVERS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the source of a ticket has too many servers: %d", server_count),
				 errdetail("It can have up to %d.", MAX_SERVERS)));
}


/*
 * Find the servers of a ticket's source, in the current memory context.  Returns
 * false if it has no source.
 */
bool
source_find_servers(Oid ticket, LeaseServers *servers)
{
	char	   *source = get_source(ticket);
	PQconninfoOption *options;
	const char *timeout;

	if (source == NULL)
		return false;
	/* check_source() has let it pass */
	options = PQconninfoParse(source, NULL);
	if (options == NULL || count_servers(options) > MAX_SERVERS)
		elog(ERROR, "the source is not a connection string for tickets");
	servers->count = count_servers(options);
	servers->hash = hash_bytes((const unsigned char *) source, strlen(source)) | 1;
	timeout = option_value(options, "connect_timeout");

	for (int i = 0; i < servers->count; i++)
	{
		LeaseServer *server = &servers->servers[i];
		const char *host = option_value(options, "host");
		const char *port = option_value(options, "port");
		int			n = 0;

		if (host == NULL || host[0] == '\0')
			host = option_value(options, "hostaddr");
		server->name = psprintf("\"%s\", port %s", list_item(host ? host : "", i),
								list_item(port ? port : DEF_PGPORT_STR, i));
		server->timeout = timeout != NULL && atoi(timeout) > 0 ?
			Min(atoi(timeout), 3600) * 1000 : SERVER_TIMEOUT;

		while (options[n].keyword != NULL)
			n++;
		server->keywords = palloc((n + 3) * sizeof(char *));
		server->values = palloc((n + 3) * sizeof(char *));
		n = 0;
		for (PQconninfoOption *option = options; option->keyword != NULL; option++)
		{
			if (option->val == NULL || option->val[0] == '\0')
				continue;
			server->keywords[n] = pstrdup(option->keyword);
			server->values[n++] = is_list(option->keyword) ? list_item(option->val, i) :
				pstrdup(option->val);
		}
		server->keywords[n] = "fallback_application_name";
		server->values[n++] = "instaid";
		server->keywords[n] = "client_encoding";
		server->values[n++] = GetDatabaseEncodingName();
		server->keywords[n] = server->values[n] = NULL;
	}
	PQconninfoFree(options);
	return true;
}

void
source_init(void)
{
	HASHCTL		ctl;

	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(TicketCacheEntry);
	ticket_cache = hash_create("instaid tickets", 16, &ctl, HASH_ELEM | HASH_BLOBS);
	CacheRegisterRelcacheCallback(forget_label, (Datum) 0);
	register_label_provider(LABEL_PROVIDER, check_source);
}
