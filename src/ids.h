/*
 * What other files may call of each file of the IDs.  layout.h, text_forms.h and session.h are
 * headers of their own.
 */
#ifndef INSTAID_IDS_H
#define INSTAID_IDS_H

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_sequence.h"
#include "fmgr.h"

#include "compat.h"
#include "layout.h"

/* language.c: a call of a shard's function */
extern uint64 function_invalidations;

extern void language_init(void);

/* generator.c: the clocked sequence */
extern void generator_lock(Oid sequence);
extern int64 generator_take_tick(Oid sequence);
extern int	generator_take_ticks(Oid sequence, int wanted, int64 *first);
extern void generator_advance(Oid sequence, int64 tick);
extern void generator_init(void);

/* id_sequence.c: what a sequence must be to serve as a source of IDs */
extern void requirements_check(Relation rel, Form_pg_sequence options);
extern bool is_frozen(Oid sequence, int64 *max_value);
extern void check_not_frozen(Oid sequence);

/* declaration.c: what the functions of a shard say */

/* Dumps and create_shard() name the language, so only a rename back mends a rename of it. */
#define LANGUAGE	"instaid"
#define DECLARATION "next_ids"

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

extern char *shard_function_name(Form_pg_proc proc);
extern bool is_declaration(Form_pg_proc proc);
extern const char *read_declaration(HeapTuple tuple, Declaration *declaration);
extern HeapTuple find_declaration(Oid schema);
extern const char *read_shard_function(HeapTuple tuple, Declaration *declaration);
extern bool is_sequence_of_shard(Oid sequence, Oid schema, const Declaration *declaration);
pg_noreturn extern void declaration_error(HeapTuple tuple, const char *fault);

/* arguments.c: the shard ID of this server, and shard IDs and epochs that callers pass */

/* Stands for that shard ID, a setting that is read when an ID is made: it can change. */
#define NODE_SHARD	(-1)

extern int	node_shard_id;

extern void node_init(void);
extern int32 node_shard_id_or_error(void);

extern TimestampTz last_epoch;
extern int64 last_epoch_ms;

extern void check_shard_id(int32 shard_id);
extern const char *time_str(TimestampTz time);
extern void remember_epoch(TimestampTz epoch);

/*
 * Check an epoch, and convert it to milliseconds since 1970.  Most calls pass the epoch of
 * the call before, which needs no check.
 */
static inline int64
epoch_to_ms(TimestampTz epoch)
{
	if (unlikely(epoch != last_epoch))
		remember_epoch(epoch);
	return last_epoch_ms;
}

/* next_id.c: IDs made of ticks */

pg_noreturn extern void no_id_error(int64 tick, int64 epoch_ms);
extern void begin_ids(FunctionCallInfo fcinfo, Oid sequence, int32 shard_id,
					  int64 epoch_ms, int32 count);
extern Datum return_next_id(FunctionCallInfo fcinfo);

/*
 * The ID of a tick that was taken.  If the tick has no ID in this epoch, the call fails and
 * the tick is lost, as a rollback loses a value of nextval().
 */
static inline int64
id_of_tick(int64 tick, int32 shard_id, int64 epoch_ms)
{
	if (unlikely(!tick_has_id(tick, epoch_ms)))
		no_id_error(tick, epoch_ms);
	if (unlikely(shard_id == NODE_SHARD))
		shard_id = node_shard_id_or_error();
	return tick_to_id(tick, shard_id, epoch_ms);
}

#endif							/* INSTAID_IDS_H */
