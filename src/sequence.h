/*-------------------------------------------------------------------------
 *
 * sequence.h
 *	  A PostgreSQL sequence, as those see it who write its page themselves.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_SEQUENCE_H
#define INSTAID_SEQUENCE_H

#include "access/htup_details.h"
#include "storage/bufmgr.h"

#include "compat.h"

/* the rights that nextval() needs, any of them */
#define SEQUENCE_RIGHTS	(ACL_USAGE | ACL_UPDATE)

extern char *instaid_qualified_name(Relation rel);
extern void instaid_check_is_sequence(Relation rel);
extern void instaid_no_permission_error(const char *schema, const char *sequence);
extern void instaid_check_permission(Relation rel);
extern void instaid_make_durable(XLogRecPtr lsn);

/* The one tuple of a sequence's page, which the caller has locked. */
static inline HeapTupleHeader
page_tuple(Page page)
{
	ItemId		lp = PageGetItemId(page, FirstOffsetNumber);

	Assert(ItemIdIsNormal(lp));
	return (HeapTupleHeader) PageGetItem(page, lp);
}

static inline uint32
page_tuple_length(Page page)
{
	return ItemIdGetLength(PageGetItemId(page, FirstOffsetNumber));
}

/* The state of a sequence in its page, which the caller has locked. */
static inline Form_pg_sequence_data
read_page(Buffer buffer, Oid relid)
{
	Page		page = BufferGetPage(buffer);
	sequence_magic *sm = (sequence_magic *) PageGetSpecialPointer(page);
	HeapTupleHeader tuple;

	if (unlikely(sm->magic != SEQ_MAGIC))
		elog(ERROR, "bad magic number in sequence with OID %u: %08X",
			 relid, sm->magic);

	tuple = page_tuple(page);
	return (Form_pg_sequence_data) ((char *) tuple + tuple->t_hoff);
}

/* Pin and lock the page of a sequence, and find its state. */
static inline Form_pg_sequence_data
lock_sequence_page(Relation rel, Buffer *buffer, int mode)
{
	*buffer = ReadBuffer(rel, 0);
	LockBuffer(*buffer, mode);
	return read_page(*buffer, RelationGetRelid(rel));
}

#endif							/* INSTAID_SEQUENCE_H */
