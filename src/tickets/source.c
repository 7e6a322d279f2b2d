/*-------------------------------------------------------------------------
 *
 * source.c
 *	  The other servers that a ticket has its values from.
 *
 * The source of a ticket is a list of foreign servers, each of which has a
 * sequence of the ticket's name in the schema instaid_tickets.  Where a server is,
 * who may use it and with which password are what CREATE SERVER, GRANT and CREATE
 * USER MAPPING say.
 *
 * The list is the security label of the ticket's own sequence, with the names of
 * the servers in the order in which they are asked.  A label is the only text that
 * PostgreSQL dumps with a sequence, with -t and -n, too, and that goes with it.  A
 * foreign table would be dumped, too, but has one server, and needs a name beside
 * those of tickets.  When the label is set, the sequence is made to depend on the
 * servers in pg_depend.  A dump has them in this order: servers, sequence, label.
 *
 * A server that is renamed is not followed, as a dump could not be restored then.
 * It counts as one that is not there, until the label has its new name.  A server
 * that gets the old name meanwhile is not asked, as the ticket does not depend on
 * it: whoever created it did not set the source of the ticket.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "commands/seclabel.h"
#include "common/hashfn.h"
#include "foreign/foreign.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "tickets/block.h"
#include "tickets/source.h"

PG_FUNCTION_INFO_V1(instaid_source_failure);

#define LABEL_PROVIDER	"instaid"

/* the foreign-data wrapper whose servers can be a source */
#define WRAPPER			"instaid"

/* how long a server may take, in ms, unless it has a connect_timeout */
#define SERVER_TIMEOUT	2000

static HTAB *ticket_cache = NULL;

/* The names of a ticket's servers, as the label has them, or NULL */
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
 * for it.  The caller has locked the relation.  A ticket that has no label gets none
 * meanwhile, as is_unused() takes a lock that conflicts.
 */
TicketCacheEntry *
source_cache_ticket(Oid ticket)
{
	TicketCacheEntry *entry = hash_search(ticket_cache, &ticket, HASH_FIND, NULL);

	if (entry == NULL || !entry->label_known)
	{
		bool		has_label = get_source(ticket) != NULL;

		entry = hash_search(ticket_cache, &ticket, HASH_ENTER, NULL);
		entry->has_label = has_label;
		entry->label_known = true;
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

/*
 * Has the sequence of a ticket given nothing yet?  pg_restore finds it in this
 * state, even if its options had been altered before the dump.  The lock keeps it
 * in this state until the source is there.
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

/* Refuse to set the source of what cannot have one. */
static void
check_ticket(const ObjectAddress *object, bool remove)
{
	HeapTuple	tuple = NULL;
	bool		altered;

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

	if (remove && altered && get_source(object->objectId) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("%s must keep its source", getObjectDescription(object, false)),
				 errdetail("It was altered: without the source, it would give values of its own, which the source has given."),
				 errhint("Set another source, or drop the ticket.")));
}

/* The first option of this name, or NULL */
static const char *
option_value(List *options, const char *name)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = lfirst(lc);

		if (strcmp(option->defname, name) == 0)
			return defGetString(option);
	}
	return NULL;
}

/* Does a server have several hosts?  libpq would ask any of them. */
static bool
has_host_list(ForeignServer *server)
{
	const char *host = option_value(server->options, "host");
	const char *hostaddr = option_value(server->options, "hostaddr");

	return (host != NULL && strchr(host, ',') != NULL) ||
		(hostaddr != NULL && strchr(hostaddr, ',') != NULL);
}

/* Make a ticket depend on a server that can be of its source. */
static void
depend_on_server(const ObjectAddress *ticket, char *name)
{
	Relation	rel = NULL;
	ObjectAddress object = get_object_address(OBJECT_FOREIGN_SERVER, (Node *) makeString(name),
											  &rel, AccessShareLock, true);
	ForeignServer *server;
	char	   *wrapper;

	if (!OidIsValid(object.objectId))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("server \"%s\" does not exist", name),
				 strchr(name, ',') == NULL ? 0 :
				 errhint("To give a ticket several servers, use create_ticket(..., source => ARRAY['...', '...']).")));
	server = GetForeignServer(object.objectId);
	wrapper = GetForeignDataWrapper(server->fdwid)->fdwname;
	if (object_aclcheck(ForeignServerRelationId, object.objectId, GetUserId(),
						ACL_USAGE) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for foreign server %s", name),
				 errhint("Its owner can permit it: GRANT USAGE ON FOREIGN SERVER %s TO %s;",
						 quote_identifier(name),
						 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
	if (strcmp(wrapper, WRAPPER) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("server \"%s\" cannot be the source of a ticket", name),
				 errdetail("Its foreign-data wrapper is \"%s\".", wrapper),
				 errhint("Create a server with FOREIGN DATA WRAPPER " WRAPPER ".")));
	if (has_host_list(server))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("server \"%s\" has several hosts", name),
				 errdetail("A server of a source is one host, since the values that each server gives are remembered."),
				 errhint("Create a server for each host, and give the ticket an array of servers.")));
	recordDependencyOn(ticket, &object, DEPENDENCY_NORMAL);
}

/* SECURITY LABEL FOR instaid ON SEQUENCE instaid_tickets... IS 'server, ...' */
static void
set_source(const ObjectAddress *object, const char *source)
{
	List	   *names = NIL;
	ListCell   *lc;

	check_ticket(object, source == NULL);
	/* sessions remember whether there is one */
	CacheInvalidateRelcacheByRelid(object->objectId);
	deleteDependencyRecordsForClass(RelationRelationId, object->objectId,
									ForeignServerRelationId, DEPENDENCY_NORMAL);
	if (source == NULL)
		return;
	if (!SplitIdentifierString(pstrdup(source), ',', &names) || names == NIL ||
		list_length(names) > MAX_SERVERS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the source of a ticket is not a list of servers: \"%.*s\"",
						pg_mbcliplen(source, strlen(source), MAX_FOREIGN_TEXT), source),
				 errdetail("It has 1 to %d names of foreign servers, with commas between them.",
						   MAX_SERVERS)));
	foreach(lc, names)
	{
		char	   *name = lfirst(lc);

		for (int i = 0; i < foreach_current_index(lc); i++)
		{
			if (strcmp(list_nth(names, i), name) == 0)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("server \"%s\" is named twice", name),
						 errdetail("A source has each of its servers once.")));
		}
		depend_on_server(object, name);
	}
}

/* Does a ticket depend on a server, as set_source() makes it? */
static bool
depends_on_server(Oid ticket, Oid server)
{
	Relation	rel = table_open(DependRelationId, AccessShareLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found = false;

	ScanKeyInit(&keys[0], Anum_pg_depend_classid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_objid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(ticket));
	scan = systable_beginscan(rel, DependDependerIndexId, true, NULL, 2, keys);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend depend = (Form_pg_depend) GETSTRUCT(tuple);

		found = depend->refclassid == ForeignServerRelationId && depend->refobjid == server;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/* The options of the mapping of a role to a server; false if there is none */
static bool
find_mapping(Oid role, Oid server, List **options)
{
	HeapTuple	tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(role),
										ObjectIdGetDatum(server));
	Datum		datum;
	bool		isnull;

	/* the mapping of PUBLIC */
	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid),
								ObjectIdGetDatum(server));
	if (!HeapTupleIsValid(tuple))
		return false;
	datum = SysCacheGetAttr(USERMAPPINGUSERSERVER, tuple,
							Anum_pg_user_mapping_umoptions, &isnull);
	*options = isnull ? NIL : untransformRelOptions(datum);
	ReleaseSysCache(tuple);
	return true;
}

/*
 * How the owner of this ticket connects to a server of this name, or why not.  What
 * the server is, without the password, is appended to identity.
 *
 * The rule of dblink holds: unless a superuser chose where to connect, as which
 * user, and for whom, the connection must not rest on what the user that runs
 * this server is or has, such as peer authentication and files of passwords.
 */
static void
find_server(Oid ticket, Oid owner, char *name, LeaseServer *found, StringInfo identity)
{
	Oid			serverid = get_foreign_server_oid(name, true);
	ForeignServer *server;
	List	   *options = NIL;
	const char *password;
	const char *timeout;
	int			n = 0;
	ListCell   *lc;

	found->name = name;
	found->timeout = SERVER_TIMEOUT;
	if (!OidIsValid(serverid))
	{
		found->refusal = "there is no such foreign server";
		return;
	}
	server = GetForeignServer(serverid);
	found->needs_password = !superuser_arg(owner) || !superuser_arg(server->owner);
	if (!find_mapping(owner, serverid, &options))
		found->refusal = psprintf("there is no user mapping for role \"%s\"",
								  GetUserNameFromId(owner, false));
	password = option_value(options, "password");
	if (found->refusal == NULL && found->needs_password &&
		(password == NULL || password[0] == '\0'))
		found->refusal = psprintf("the user mapping for role \"%s\" has no password",
								  GetUserNameFromId(owner, false));
	if (object_aclcheck(ForeignServerRelationId, serverid, owner, ACL_USAGE) != ACLCHECK_OK)
		found->refusal = psprintf("role \"%s\" has no USAGE on it",
								  GetUserNameFromId(owner, false));
	if (has_host_list(server))
		found->refusal = "it has several hosts";
	if (!depends_on_server(ticket, serverid))
		found->refusal = "the source was set when another server had this name";

	timeout = option_value(server->options, "connect_timeout");
	if (timeout != NULL && atoi(timeout) > 0)
		found->timeout = Min(atoi(timeout), 3600) * 1000;

	options = list_concat_copy(server->options, options);
	found->keywords = palloc((list_length(options) + 3) * sizeof(char *));
	found->values = palloc((list_length(options) + 3) * sizeof(char *));
	foreach(lc, options)
	{
		DefElem    *option = lfirst(lc);

		found->keywords[n] = option->defname;
		found->values[n] = defGetString(option);
		if (strcmp(option->defname, "password") != 0)
		{
			appendBinaryStringInfo(identity, found->keywords[n], strlen(found->keywords[n]) + 1);
			appendBinaryStringInfo(identity, found->values[n], strlen(found->values[n]) + 1);
		}
		n++;
	}
	found->keywords[n] = "fallback_application_name";
	found->values[n++] = "instaid";
	found->keywords[n] = "client_encoding";
	found->values[n++] = GetDatabaseEncodingName();
	found->keywords[n] = found->values[n] = NULL;
	/* the end of this server's options */
	appendStringInfoChar(identity, '\0');
}

/*
 * Find the servers of a ticket's source, in the current memory context.  Returns
 * false if it has no source.
 */
bool
source_find_servers(Oid ticket, LeaseServers *servers)
{
	char	   *source = get_source(ticket);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(ticket));
	List	   *names = NIL;
	ListCell   *lc;
	StringInfoData identity;
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		return false;
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	if (source == NULL)
		return false;
	/* set_source() has let it pass */
	if (!SplitIdentifierString(source, ',', &names) || names == NIL ||
		list_length(names) > MAX_SERVERS)
		elog(ERROR, "the source of ticket %u is not a list of servers", ticket);

	memset(servers, 0, sizeof(*servers));
	initStringInfo(&identity);
	foreach(lc, names)
		find_server(ticket, owner, lfirst(lc), &servers->servers[servers->count++], &identity);
	servers->hash = hash_bytes((unsigned char *) identity.data, identity.len) | 1;
	return true;
}

/*
 * _source_failure(ticket regclass) -> text
 *
 * Which servers of a ticket's source cannot be asked, and why; null if all can be,
 * as far as is known here.
 */
Datum
instaid_source_failure(PG_FUNCTION_ARGS)
{
	LeaseServers servers;
	StringInfoData failure;

	initStringInfo(&failure);
	if (source_find_servers(PG_GETARG_OID(0), &servers))
	{
		for (int i = 0; i < servers.count; i++)
		{
			if (servers.servers[i].refusal != NULL)
				appendStringInfo(&failure, "%sserver \"%s\": %s", failure.len > 0 ? "; " : "",
								 servers.servers[i].name, servers.servers[i].refusal);
		}
	}
	if (failure.len == 0)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(failure.data));
}

void
source_init(void)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(TicketCacheEntry)};

	ticket_cache = hash_create("instaid tickets", 16, &ctl, HASH_ELEM | HASH_BLOBS);
	CacheRegisterRelcacheCallback(forget_label, (Datum) 0);
	register_label_provider(LABEL_PROVIDER, set_source);
}
