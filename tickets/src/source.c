/*
 * Where a ticket has its values from.
 *
 * A ticket with a source is a foreign table of our wrapper.  The option "sequence" names the sequence
 * at the foreign server.  It has no default, which a rename of the table would change.  The option
 * "step" is the step.  The foreign server is one host or several, as libpq writes them: 'ticket1,ticket2'.
 * PostgreSQL itself then checks who may use a server, dumps and restores all of this, follows
 * renames, and refuses to drop a server that a ticket needs.  The wrapper has no handler, so nobody
 * can read or write such a table.  Its first column has the type of the values.
 */
#include "postgres.h"

#include "access/reloptions.h"
#include "catalog/pg_class.h"
#include "catalog/pg_foreign_data_wrapper.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_user_mapping.h"
#include "commands/defrem.h"
#include "common/hashfn.h"
#include "common/int.h"
#include "foreign/foreign.h"
#include "libpq-fe.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "common.h"
#include "compat.h"
#include "sequence.h"
#include "tickets.h"

/* the foreign-data wrapper of the servers */
#define WRAPPER			"instaid_tickets"

/* how long a host may take, in ms, unless the server has a connect_timeout */
#define HOST_TIMEOUT	2000

/* the options of libpq that are lists of hosts */
static const char *const host_options[] = {"host", "hostaddr", "port"};

PG_FUNCTION_INFO_V1(instaid_tickets_validator);

/* May an object of this catalog have this option? */
static bool
is_option(const char *name, Oid catalog)
{
	static PQconninfoOption *known = NULL;

	if (catalog == ForeignTableRelationId)
		return strcmp(name, "sequence") == 0 || strcmp(name, "step") == 0;
	if (catalog != ForeignServerRelationId && catalog != UserMappingRelationId)
		return false;
	/* kept for the session */
	if (known == NULL && (known = PQconndefaults()) == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	for (PQconninfoOption *it = known; it->keyword != NULL; it++)
	{
		if (strcmp(it->keyword, name) == 0)
			return strchr(it->dispchar, 'D') == NULL && strcmp(name, "client_encoding") != 0 &&
				(strcmp(name, "user") == 0 || strchr(it->dispchar, '*') != NULL) ==
				(catalog == UserMappingRelationId);
	}
	return false;
}

Datum
instaid_tickets_validator(PG_FUNCTION_ARGS)
{
	Oid			catalog = PG_GETARG_OID(1);
	bool		has_sequence = false;
	ListCell   *lc;

	foreach(lc, untransformRelOptions(PG_GETARG_DATUM(0)))
	{
		DefElem    *option = lfirst(lc);

		if (!is_option(option->defname, catalog))
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
					 errmsg("invalid option \"%s\"", option->defname),
					 catalog == ForeignTableRelationId ?
					 errhint("A ticket has the options sequence and step.") :
					 errhint("User and passwords are options of a user mapping, and other options of libpq of a server.")));
		if (strcmp(option->defname, "step") == 0 && pg_strtoint32(defGetString(option)) < 1)
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("step %s is out of range", defGetString(option)),
					 errdetail("A step is at least 1.")));
		has_sequence |= strcmp(option->defname, "sequence") == 0;
	}
	if (catalog == ForeignTableRelationId && !has_sequence)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_OPTION_NAME_NOT_FOUND),
				 errmsg("option \"sequence\" is missing"),
				 errhint("It names a sequence of the server, as in OPTIONS (sequence 'app.invoices').")));
	PG_RETURN_VOID();
}

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

static int
count_hosts(const char *list)
{
	int			count = 1;

	for (; *list != '\0'; list++)
		count += *list == ',';
	return count;
}

/*
 * Find the server of a ticket and how its owner connects to it, or why not, in the current memory
 * context.  Returns false if it has none, or is gone.
 *
 * The rule of dblink holds: unless a superuser chose where to connect, as which user, and for whom,
 * the connection must not rest on what the user that runs this server is or has, such as peer
 * authentication and files of passwords.
 */
bool
source_find(Oid ticket, Source *source)
{
	Oid			owner = relation_owner(ticket);
	List	   *of_table;
	List	   *mapping = NIL;
	ForeignServer *server = find_server(ticket, &of_table);
	List	   *options;
	bool		is_mapped;
	const char *role;
	const char *value;
	int			n = lengthof(host_options);
	ListCell   *lc;
	StringInfoData identity;

	memset(source, 0, sizeof(*source));
	/* each can be gone by now; what is found here is not looked up again, since no lock keeps it */
	if (!OidIsValid(owner) || server == NULL || (value = option_value(of_table, "sequence")) == NULL)
		return false;
	source->sequence = value;
	source->sequence_hash = hash_bytes((unsigned char *) source->sequence,
									   strlen(source->sequence)) | 1;
	value = option_value(of_table, "step");
	source->step = value ? pg_strtoint32(value) : 1;
	source->last_of_type = sequence_type_max(get_atttype(ticket, 1));

	source->server = server->servername;
	role = GetUserNameFromId(owner, false);
	is_mapped = find_mapping(owner, server->serverid, &mapping);
	source->needs_password = !superuser_arg(owner) || !superuser_arg(server->owner);
	value = option_value(mapping, "password");
	/* first: without one, the server can be gone, and then the next check is an error */
	if (!is_mapped)
		source->refusal = psprintf("there is no user mapping for role \"%s\"", role);
	else if (object_aclcheck(ForeignServerRelationId, server->serverid, owner, ACL_USAGE) != ACLCHECK_OK)
		source->refusal = psprintf("role \"%s\" has no USAGE on it", role);
	else if (source->needs_password && (value == NULL || value[0] == '\0'))
		source->refusal = psprintf("the user mapping for role \"%s\" has no password", role);
	value = option_value(server->options, "connect_timeout");
	source->timeout = value != NULL && atoi(value) > 0 ? Min(atoi(value), 30) * 1000 : HOST_TIMEOUT;

	options = list_concat_copy(server->options, mapping);
	source->keywords = palloc0((n + list_length(options) + 3) * sizeof(char *));
	source->values = palloc0((n + list_length(options) + 3) * sizeof(char *));
	initStringInfo(&identity);
	foreach(lc, options)
	{
		DefElem    *option = lfirst(lc);
		int			i = 0;

		value = defGetString(option);
		if (strcmp(option->defname, "password") != 0)
			appendStringInfo(&identity, "%s=%s\n", option->defname, value);
		while (i < (int) lengthof(host_options) && strcmp(option->defname, host_options[i]) != 0)
			i++;
		if (i < (int) lengthof(host_options))
			source->lists[i] = value;
		else
		{
			source->keywords[n] = option->defname;
			source->values[n++] = value;
		}
	}
	source->keywords[n] = "fallback_application_name";
	source->values[n++] = "instaid_tickets";
	source->keywords[n] = "client_encoding";
	source->values[n++] = GetDatabaseEncodingName();
	source->hash = hash_bytes((unsigned char *) identity.data, identity.len) | 1;
	/* as libpq counts them */
	source->count = count_hosts(source->lists[1] ? source->lists[1] :
								source->lists[0] ? source->lists[0] : "");
	return true;
}

/* Let the options of the connection be those of one host. */
void
source_aim(Source *source, int host)
{
	for (int i = 0; i < (int) lengthof(host_options); i++)
	{
		const char *from = source->lists[i] ? source->lists[i] : "";

		/* one port serves all hosts */
		for (int n = count_hosts(from) > 1 ? host : 0; n > 0 && *from != '\0'; n--)
			from += strcspn(from, ",") + (strchr(from, ',') != NULL);
		source->keywords[i] = host_options[i];
		source->values[i] = pnstrdup(from, strcspn(from, ","));
	}
	source->host = source->values[0][0] != '\0' ? source->values[0] : source->values[1];
	if (source->values[2][0] != '\0')
		source->host = psprintf("%s:%s", source->host, source->values[2]);
}
