/*
 * The servers that a ticket has its values from, its authorities.
 *
 * A ticket with a source is a foreign table in the schema of the tickets.  Its server
 * is the first authority.  Each further authority is the server of another foreign
 * table that inherits from the first.  PostgreSQL itself then checks who may use a
 * server, dumps and restores all of this, follows renames of tickets and servers, and
 * refuses to drop a server that a ticket needs.  The foreign-data wrapper has no
 * handler, so nobody can read or write such a table.  Its first column has the type of
 * the values, and its option "step" is the step.
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "catalog/pg_class.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "common/hashfn.h"
#include "foreign/foreign.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "common.h"
#include "compat.h"
#include "sequence.h"
#include "source.h"

/* the foreign-data wrapper of the authorities */
#define WRAPPER			"instaid"

/* how long a server may take, in ms, unless it has a connect_timeout */
#define SERVER_TIMEOUT	2000

/* The value of an option, or NULL */
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

/* The server of a foreign table of our wrapper, and the table's options; NULL if it is none */
static ForeignServer *
find_server(Oid table, List **options)
{
	HeapTuple	tuple = SearchSysCache1(FOREIGNTABLEREL, ObjectIdGetDatum(table));
	ForeignServer *server;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	/* it takes a null for no options */
	*options = untransformRelOptions(SysCacheGetAttr(FOREIGNTABLEREL, tuple,
													 Anum_pg_foreign_table_ftoptions, &isnull));
	server = GetForeignServerExtended(((Form_pg_foreign_table) GETSTRUCT(tuple))->ftserver,
									  FSV_MISSING_OK);
	ReleaseSysCache(tuple);
	return server != NULL && server->fdwid == get_foreign_data_wrapper_oid(WRAPPER, true) ?
		server : NULL;
}

/* Is a relation a foreign table of our wrapper? */
bool
source_exists(Oid relation)
{
	List	   *options;

	return get_rel_relkind(relation) == RELKIND_FOREIGN_TABLE &&
		find_server(relation, &options) != NULL;
}

/* The options of a role's user mapping, or of PUBLIC's, in a server; false if there is none */
static bool
find_mapping(Oid role, Oid server, List **options)
{
	HeapTuple	tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(role),
										ObjectIdGetDatum(server));
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		tuple = SearchSysCache2(USERMAPPINGUSERSERVER, ObjectIdGetDatum(InvalidOid),
								ObjectIdGetDatum(server));
	if (!HeapTupleIsValid(tuple))
		return false;
	*options = untransformRelOptions(SysCacheGetAttr(USERMAPPINGUSERSERVER, tuple,
													 Anum_pg_user_mapping_umoptions, &isnull));
	ReleaseSysCache(tuple);
	return true;
}

/*
 * How the owner of a ticket connects to a server, or why not.  What the server is,
 * without the password, is appended to identity.
 *
 * The rule of dblink holds: unless a superuser chose where to connect, as which
 * user, and for whom, the connection must not rest on what the user that runs
 * this server is or has, such as peer authentication and files of passwords.
 */
static void
find_authority(Oid owner, ForeignServer *server, Authority *found, StringInfo identity)
{
	const char *role = GetUserNameFromId(owner, false);
	List	   *mapping = NIL;
	bool		is_mapped = find_mapping(owner, server->serverid, &mapping);
	List	   *options;
	const char *password = option_value(mapping, "password");
	const char *timeout = option_value(server->options, "connect_timeout");
	int			n = 0;
	ListCell   *lc;

	found->name = server->servername;
	found->needs_password = !superuser_arg(owner) || !superuser_arg(server->owner);
	if (object_aclcheck(ForeignServerRelationId, server->serverid, owner, ACL_USAGE) != ACLCHECK_OK)
		found->refusal = psprintf("role \"%s\" has no USAGE on it", role);
	else if (!is_mapped)
		found->refusal = psprintf("there is no user mapping for role \"%s\"", role);
	else if (found->needs_password && (password == NULL || password[0] == '\0'))
		found->refusal = psprintf("the user mapping for role \"%s\" has no password", role);

	found->timeout = timeout != NULL && atoi(timeout) > 0 ?
		Min(atoi(timeout), 30) * 1000 : SERVER_TIMEOUT;

	options = list_concat_copy(server->options, mapping);
	found->keywords = palloc((list_length(options) + 3) * sizeof(char *));
	found->values = palloc((list_length(options) + 3) * sizeof(char *));
	foreach(lc, options)
	{
		DefElem    *option = lfirst(lc);

		found->keywords[n] = option->defname;
		found->values[n] = defGetString(option);
		if (strcmp(option->defname, "password") != 0)
			appendStringInfo(identity, "%s=%s\n", found->keywords[n], found->values[n]);
		n++;
	}
	found->keywords[n] = "fallback_application_name";
	found->values[n++] = "instaid";
	found->keywords[n] = "client_encoding";
	found->values[n++] = GetDatabaseEncodingName();
	found->keywords[n] = found->values[n] = NULL;
	/* the end of this server's options */
	appendStringInfoChar(identity, '\n');
}

/*
 * Find the servers of a ticket's source, in the current memory context.  Returns false if it has
 * none, or is gone.
 */
bool
source_find(Oid ticket, Source *source)
{
	Oid			owner = relation_owner(ticket);
	List	   *options;
	List	   *tables;
	ListCell   *lc;
	const char *step;
	StringInfoData identity;

	if (!OidIsValid(owner))
		return false;

	/*
	 * By OID, which is the order of create_ticket() unless OIDs have wrapped
	 * around since.  It fails if the ticket is gone.
	 */
	tables = lcons_oid(ticket, find_inheritance_children(ticket, NoLock));
	source->ticket = get_rel_name(ticket);
	if (source->ticket == NULL || find_server(ticket, &options) == NULL)
		return false;
	step = option_value(options, "step");
	source->step = step != NULL ? atoi(step) : 1;
	source->last_of_type = sequence_type_max(get_atttype(ticket, 1));

	initStringInfo(&identity);
	source->authorities = palloc0(list_length(tables) * sizeof(Authority));
	source->count = 0;
	foreach(lc, tables)
	{
		ForeignServer *server = find_server(lfirst_oid(lc), &options);

		if (server != NULL)
			find_authority(owner, server, &source->authorities[source->count++], &identity);
	}
	source->hash = hash_bytes((unsigned char *) identity.data, identity.len) | 1;
	return true;
}
