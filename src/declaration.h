/* What the functions of a shard say: see declaration.c. */
#ifndef INSTAID_DECLARATION_H
#define INSTAID_DECLARATION_H

#include "access/htup_details.h"
#include "catalog/pg_proc.h"

#include "compat.h"

/* Dumps and create_shard() name the language, so only a rename back mends a rename of it. */
#define LANGUAGE	"instaid"
#define DECLARATION "next_ids"

/* Stands for the shard ID of this server, a setting that is read when an ID is made: it can change. */
#define NODE_SHARD	(-1)

/* What a declaration says */
typedef struct Declaration
{
	Oid			owner;			/* of the declaring function */
	bool		is_definer;		/* does the function that is called have its
								 * owner's rights? */
	Oid			sequence;
	int32		shard_id;		/* or NODE_SHARD */
	int64		epoch_ms;		/* since 1970 */
} Declaration;

/* instaid.node_shard_id: the shard ID of this server, or NODE_SHARD if it has none */
extern int	node_shard_id;

extern void declaration_init(void);
extern int32 declaration_node_shard_id(void);
extern const char *declaration_read(HeapTuple tuple, Declaration *declaration);
extern HeapTuple declaration_find(Oid schema);
pg_noreturn extern void declaration_error(HeapTuple tuple, const char *fault);
extern char *shard_function_name(Form_pg_proc proc);
extern bool shard_function_declares(Form_pg_proc proc);
extern HeapTuple shard_function_find(const char *name, const Oid *types, int nargs, Oid schema);
extern const char *shard_function_read(HeapTuple tuple, Declaration *declaration);

#endif							/* INSTAID_DECLARATION_H */
