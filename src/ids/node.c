/*-------------------------------------------------------------------------
 *
 * node.c
 *	  The shard ID of this server, which instaid.next_id() uses.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/guc.h"
#include "utils/memutils.h"

#include "ids/layout.h"
#include "ids/node.h"

/* instaid.node_shard_id: see ids_init() */
static int	node_shard_id;

/*
 * The value that the session had before it loaded the library, until one is
 * accepted.  The sessions of a server that preloads the library inherit it.
 */
static char *refused_node_shard_id = NULL;

/* Forget the value that was refused when PostgreSQL has accepted another. */
static void
assign_node_shard_id(int newval, void *extra pg_attribute_unused())
{
	if (newval != NODE_SHARD && refused_node_shard_id != NULL)
	{
		pfree(refused_node_shard_id);
		refused_node_shard_id = NULL;
	}
}

void
ids_init(void)
{
	const char *placeholder = GetConfigOption("instaid.node_shard_id", true, false);

	if (placeholder != NULL && strcmp(placeholder, "-1") != 0)
		refused_node_shard_id = MemoryContextStrdup(TopMemoryContext, placeholder);

	/*
	 * A session cannot set it, not even a superuser's: two shard IDs for one
	 * sequence, or one for two servers, repeat IDs.
	 */
	DefineCustomIntVariable("instaid.node_shard_id",
							"Sets the shard ID of this server, for the IDs of instaid.next_id().",
							"No other server may have it. -1 means that it is not set: instaid.next_id() fails.",
							&node_shard_id,
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
ids_refused_node_shard(void)
{
	return refused_node_shard_id;
}

/* The shard ID of this server, or NODE_SHARD if it has none */
int32
ids_node_shard(void)
{
	return node_shard_id;
}

/* Fail if the session does not know the shard ID of this server. */
void
ids_check_node_shard(void)
{
	const char *refused = ids_refused_node_shard();

	if (refused != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("value \"%s\" of instaid.node_shard_id was refused", refused),
				 errdetail("It must be a number from 0 to %d, in postgresql.conf or by ALTER SYSTEM. It cannot be set for a session, a role or a database.",
						   MAX_SHARD_ID),
				 errhint("Correct the value, or remove it from the options of the connection, or by ALTER ROLE or ALTER DATABASE ... RESET ALL. Then start a new session.")));
}

int32
ids_node_shard_or_error(void)
{
	ids_check_node_shard();
	if (node_shard_id == NODE_SHARD)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("instaid.node_shard_id is not set"),
				 errdetail("It is the shard ID in the IDs that instaid.next_id() makes on this server."),
				 errhint("A superuser sets it to a number from 0 to %d that no other server and no other shard has: ALTER SYSTEM SET instaid.node_shard_id = number; and then SELECT pg_reload_conf();",
						 MAX_SHARD_ID)));
	return node_shard_id;
}
