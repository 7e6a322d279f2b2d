/* The shard ID of this server: see node.c. */
#ifndef INSTAID_NODE_H
#define INSTAID_NODE_H

/*
 * Stands for the shard ID of this server, which is the setting
 * instaid.node_shard_id.  The setting is read when an ID is made, because it can
 * change between two calls.
 */
#define NODE_SHARD	(-1)

extern void node_init(void);
extern int32 node_shard_id(void);
extern const char *node_refused_value(void);
extern void node_check_not_refused(void);
extern int32 node_shard_id_or_error(void);

#endif							/* INSTAID_NODE_H */
