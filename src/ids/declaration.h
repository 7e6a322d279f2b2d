/* What the functions of a shard say: see declaration.c. */
#ifndef INSTAID_DECLARATION_H
#define INSTAID_DECLARATION_H

#include "access/htup.h"
#include "catalog/pg_proc.h"

#include "compat.h"

#define LANGUAGE	"instaid"
#define DECLARATION "next_ids"

/*
 * A declaration depends on the language twice: as every function does, and
 * with its shard ID plus 1 as the number of a sub-object.  Thus the index of
 * pg_depend finds the declaration of a shard ID.  Reading all of 8,192
 * declarations took 12 ms for each shard that was created.
 */
#define SUB_OBJECT(shard_id)	((shard_id) + 1)

/*
 * The functions of a shard, by their parameters, which ALTER FUNCTION cannot
 * change
 */
typedef enum ShardFunction
{
	NEXT_IDS,					/* (integer, regclass): the declaration */
	NEXT_ID,					/* () */
	NEXT_ID_OF_SEQUENCE,		/* (regclass) */
	NO_SHARD_FUNCTION
} ShardFunction;

/* What a declaration says */
typedef struct Declaration
{
	Oid			sequence;
	int32		shard_id;		/* or NODE_SHARD */
	int64		epoch_ms;		/* since 1970 */
	bool		is_frozen;
} Declaration;

extern char *shard_function_name(Form_pg_proc proc);
extern ShardFunction which_shard_function(Form_pg_proc proc);
extern bool is_declaration(Form_pg_proc proc);
extern char *read_declaration(HeapTuple tuple, Declaration *declaration);
extern HeapTuple find_declaration(Oid schema);
extern bool is_declared_frozen(Oid schema);
extern char *declaration_body(HeapTuple tuple, bool frozen);
extern HeapTuple referenced_declaration(HeapTuple tuple);
pg_noreturn extern void declaration_error(HeapTuple tuple, const char *fault);
extern const char *shard_function_fault(HeapTuple tuple);

#endif							/* INSTAID_DECLARATION_H */
