/* The shard ID of this server, which instaid.next_id() uses. */
#include "postgres.h"

#include "utils/guc.h"
#include "utils/memutils.h"

#include "ids/ids.h"

/* instaid.node_shard_id: see node_init() */
static int	shard_id_setting;

/*
 * The value that the session had before it loaded the library, until one is
 * accepted.  The sessions of a server that preloads the library inherit it.
 */
static char *refused_value = NULL;

/* Forget the value that was refused when PostgreSQL has accepted another. */
static void
assign_node_shard_id(int newval, void *extra pg_attribute_unused())
{
	if (newval != NODE_SHARD && refused_value != NULL)
	{
		pfree(refused_value);
		refused_value = NULL;
	}
}

void
node_init(void)
{
	const char *placeholder = GetConfigOption("instaid.node_shard_id", true, false);

	if (placeholder != NULL && strcmp(placeholder, "-1") != 0)
		refused_value = MemoryContextStrdup(TopMemoryContext, placeholder);

	/*
	 * A session cannot set it, not even a superuser's: two shard IDs for one
	 * sequence, or one for two servers, repeat IDs.
	 */
	DefineCustomIntVariable("instaid.node_shard_id",
							"Sets the shard ID of this server, for the IDs of instaid.next_id().",
							"No other server may have it. -1 means that it is not set: instaid.next_id() fails.",
							&shard_id_setting,
							NODE_SHARD, NODE_SHARD, MAX_SHARD_ID,
							PGC_SIGHUP, 0,
							NULL, assign_node_shard_id, NULL);
}

/*
 * The value of instaid.node_shard_id that PostgreSQL refused with a WARNING
 * when it loaded the library, or NULL.  The value was out of range, or it was
 * set for the session, the role or the database, and then hid the one in
 * postgresql.conf.  The shard ID of this server is not known to such a
 * session.
 */
const char *
node_refused_value(void)
{
	return refused_value;
}

/* The shard ID of this server, or NODE_SHARD if it has none */
int32
node_shard_id(void)
{
	return shard_id_setting;
}

/* Fail if the session does not know the shard ID of this server. */
void
node_check_not_refused(void)
{
	const char *refused = node_refused_value();

	if (refused != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("value \"%s\" of instaid.node_shard_id was refused", refused),
				 errdetail("It must be a number from 0 to %d, in postgresql.conf or by ALTER SYSTEM. It cannot be set for a session, a role or a database.",
						   MAX_SHARD_ID),
				 errhint("Correct the value, or remove it from the options of the connection, or by ALTER ROLE or ALTER DATABASE ... RESET ALL. Then start a new session.")));
}

int32
node_shard_id_or_error(void)
{
	node_check_not_refused();
	if (shard_id_setting == NODE_SHARD)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("instaid.node_shard_id is not set"),
				 errdetail("It is the shard ID in the IDs that instaid.next_id() makes on this server."),
				 errhint("A superuser sets it to a number from 0 to %d that no other server and no other shard has: ALTER SYSTEM SET instaid.node_shard_id = number; and then SELECT pg_reload_conf();",
						 MAX_SHARD_ID)));
	return shard_id_setting;
}
