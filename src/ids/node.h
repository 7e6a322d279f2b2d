/*-------------------------------------------------------------------------
 *
 * node.h
 *	  The shard ID of this server: see node.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_NODE_H
#define INSTAID_NODE_H

/*
 * In place of a shard ID: that of this server, from the setting
 * instaid.node_shard_id.  It is read when an ID is formatted, because it can
 * change between two calls.
 */
#define NODE_SHARD	(-1)

extern void ids_init(void);
extern int32 ids_node_shard(void);
extern const char *ids_refused_node_shard(void);
extern void ids_check_node_shard(void);
extern int32 ids_node_shard_or_error(void);

#endif							/* INSTAID_NODE_H */
