/* What IDs and tickets need of PostgreSQL's sequences. */
#ifndef INSTAID_SEQUENCE_H
#define INSTAID_SEQUENCE_H

#include "access/htup_details.h"
#include "access/xlogdefs.h"
#include "catalog/pg_sequence.h"
#include "catalog/pg_type.h"
#include "storage/bufmgr.h"
#include "utils/acl.h"

#include "compat.h"

/* nextval() needs one of these rights */
#define SEQUENCE_RIGHTS	(ACL_USAGE | ACL_UPDATE)
/* the view pg_sequences needs one of these rights */
#define SEQUENCE_READ_RIGHTS	(ACL_SELECT | ACL_USAGE)

extern char *sequence_qualified_name(Oid sequence);
extern bool sequence_copy_options(Oid sequence, Form_pg_sequence options);
pg_noreturn extern void sequence_no_permission_error(Oid sequence, AclMode rights);
extern void sequence_check_rights(Oid sequence, AclMode rights);
extern void sequence_lock(Oid sequence);
extern Relation sequence_open_locked(Oid sequence, AclMode rights, Form_pg_sequence options);
extern ErrorData *sequence_copy_page(Oid sequence, RelFileLocator locator, char persistence,
									 Form_pg_sequence_data data, XLogRecPtr *lsn);
extern bool sequence_read(Oid sequence, Form_pg_sequence options, char *persistence,
						  Form_pg_sequence_data data);
pg_noreturn extern void sequence_page_error(Buffer buffer, Oid sequence);
extern XLogRecPtr sequence_log_page(Buffer buffer, RelFileLocator file,
									Form_pg_sequence_data data, int64 last_value);
extern void sequence_make_durable(XLogRecPtr lsn);

/* Has the current transaction created the sequence, or given it a new file? */
static inline bool
sequence_is_uncommitted(Relation rel)
{
	return rel->rd_createSubid != InvalidSubTransactionId ||
		rel->rd_firstRelfilelocatorSubid != InvalidSubTransactionId;
}

/* The greatest value of a sequence's type */
static inline int64
sequence_type_max(Oid type)
{
	return type == INT2OID ? PG_INT16_MAX : type == INT4OID ? PG_INT32_MAX : PG_INT64_MAX;
}

/* A page with a tuple of another length has a format that we do not know. */
#define SEQUENCE_TUPLE_LENGTH \
	(MAXALIGN(SizeofHeapTupleHeader) + offsetof(FormData_pg_sequence_data, is_called) + sizeof(bool))

/* The one tuple of a sequence's page, which the caller has locked. */
static inline ItemId
sequence_item(Page page)
{
	ItemId		item = PageGetItemId(page, FirstOffsetNumber);

	Assert(ItemIdIsNormal(item));
	return item;
}

/* The state of a sequence in its page, which the caller has locked. */
static inline Form_pg_sequence_data
sequence_read_page(Buffer buffer, Oid sequence)
{
	Page		page = BufferGetPage(buffer);
	sequence_magic *sm = (sequence_magic *) PageGetSpecialPointer(page);
	ItemId		item = sequence_item(page);
	HeapTupleHeader tuple;

	if (unlikely(sm->magic != SEQ_MAGIC || ItemIdGetLength(item) != SEQUENCE_TUPLE_LENGTH))
		sequence_page_error(buffer, sequence);

	tuple = (HeapTupleHeader) PageGetItem(page, item);
	return (Form_pg_sequence_data) ((char *) tuple + tuple->t_hoff);
}

/*
 * In core, log_cnt is how many values the last WAL record of the sequence still covers.  That is
 * true only in the file for which the record was written.  CREATE DATABASE ... TEMPLATE and ALTER
 * SEQUENCE copy the page into another file, with its log_cnt and without a record.  Values that
 * the copy gave without a record of its own would come again after a crash.  Therefore our log_cnt
 * also names the file in which it is true:
 *
 *		-1 - (file << 32 | values left)
 *
 * This format never changes: the libraries of instaid and instaid_tickets read it, in any two
 * versions.  Another one would have to cover nothing by this one's rules, and the reverse.
 *
 * The file is the sum of database and relfilenumber, modulo 2^31.  Core's nextval() takes the mark for
 * "nothing is covered", because it is below 1, and writes a record.  A log_cnt of 0 or more was
 * written by core, or by replay.
 *
 * A file has another number until the transaction that created it has committed.  Thus no call
 * after the commit relies on a record from before.  A crash can keep such a record and lose the
 * commit.  The sequence is then in its old file again, which repeats the values.  The first call
 * after the commit writes a new record.  When that is flushed, the commit is flushed, too.
 */
static inline uint32
sequence_file_number(Relation rel)
{
	uint32		file = RelFileLocatorDatabase(rel->rd_locator) +
		RelFileLocatorNumber(rel->rd_locator);

	return (sequence_is_uncommitted(rel) ? ~file : file) & PG_INT32_MAX;
}

static inline int64
sequence_log_cnt(uint32 file, int64 left)
{
	return -1 - (int64) ((uint64) file << 32 | (uint64) Min(left, (int64) PG_UINT32_MAX));
}

/* Has core or replay written this log_cnt? */
static inline bool
sequence_is_cores(Form_pg_sequence_data data)
{
	return data->log_cnt >= 0;
}

/* How many values the last record covers: none, if it is core's, or for another file */
static inline int64
sequence_values_covered(uint32 file, Form_pg_sequence_data data)
{
	int64		left = sequence_log_cnt(file, 0) - data->log_cnt;

	return left >= 0 && left <= (int64) PG_UINT32_MAX ? left : 0;
}

#endif							/* INSTAID_SEQUENCE_H */
