/* What a session remembers of the sequences that it takes ticks of: see clocked_sequence.c. */
#ifndef INSTAID_CLOCKED_SEQUENCE_H
#define INSTAID_CLOCKED_SEQUENCE_H

#include "access/xact.h"
#include "datatype/timestamp.h"
#include "miscadmin.h"

#include "sequence.h"

/* What the session remembers of one sequence */
typedef struct ClockedSequence
{
	Oid			relid;			/* hash key */
	LocalTransactionId lxid;	/* transaction in which we hold the lock */

	/*
	 * What load_sequence() found out.  It holds for this role, until an
	 * invalidation.
	 *
	 * No invalidation announces the commit of the transaction that creates
	 * the sequence.  needs_wal and may_pin can be true after it, so
	 * clocked_sequence_load() does not believe that they are false in the
	 * next transaction.  Without WAL, ticks would come again after a crash.
	 */
	Oid			role;
	uint64		invalidations;	/* how many there had been by then, or 0 */
	RelFileLocator locator;
	uint32		file;			/* see sequence_file_number() */
	bool		is_temp;
	bool		needs_wal;
	bool		may_pin;		/* beyond a call */

	bool		is_pinned;		/* beyond this call */
	Buffer		buffer;			/* of its page; only a hint unless pinned */

	/*
	 * The tick after the last one that this session has had.  If the sequence
	 * is set back or gets another file, the session still knows it.
	 */
	int64		end;

	TimestampTz warned_at;
} ClockedSequence;

/* The sequence that was used last; NULL after the transaction has ended, or an invalidation */
extern ClockedSequence *clocked_sequence_current;

extern void clocked_sequence_init(void);
extern ClockedSequence *clocked_sequence_load(Oid relid);
extern void clocked_sequence_pin_page(ClockedSequence *seq);

/*
 * Find a sequence that the transaction has locked and this role may use.  The name of the
 * function that is called is for errors.
 */
static inline ClockedSequence *
clocked_sequence_open(Oid relid, const char *function)
{
	ClockedSequence *seq = clocked_sequence_current;

	if (unlikely(seq == NULL || seq->relid != relid || seq->role != GetUserId()))
		seq = clocked_sequence_load(relid);

	/* nextval() has these rules, too */
	if (unlikely(XactReadOnly) && !seq->is_temp)
		PreventCommandIfReadOnly(function);
	if (unlikely(IsInParallelMode()))
		PreventCommandIfParallelMode(function);

	return seq;
}

/* Lock the page of a sequence, and find its state. */
static inline Form_pg_sequence_data
clocked_sequence_lock_page(ClockedSequence *seq)
{
	if (unlikely(!seq->is_pinned))
		clocked_sequence_pin_page(seq);
	LockBuffer(seq->buffer, BUFFER_LOCK_EXCLUSIVE);
	return sequence_read_page(seq->buffer, seq->relid);
}

static inline void
clocked_sequence_unlock_page(ClockedSequence *seq)
{
	LockBuffer(seq->buffer, BUFFER_LOCK_UNLOCK);
	if (unlikely(!seq->is_pinned))
		ReleaseBuffer(seq->buffer);
}

#endif							/* INSTAID_CLOCKED_SEQUENCE_H */
