/*-------------------------------------------------------------------------
 *
 * tickets.c
 *	  Named, dense, durable integers: the values of PostgreSQL sequences.
 *
 * A ticket is a sequence in a schema of its own, and is configured by the options
 * of that sequence alone: INCREMENT is the number of servers, START modulo
 * INCREMENT tells which server this is, and MAXVALUE is a guard.
 *
 * Values are taken from the sequence's page by the rules of nextval_internal()
 * in src/backend/commands/sequence.c, with three differences:
 *
 * - A value is returned when the WAL that takes the sequence past it is as
 *	 durable as synchronous_commit says: flushed, and on synchronous standbys.
 *	 nextval() leaves that to the commit of the transaction that wrote the
 *	 record, which may still be running.  Therefore no XID is needed.
 * - A value equals START modulo INCREMENT, whatever setval() did.
 * - CACHE does not say how many values a session keeps, as those are lost when it
 *	 ends.  It is the step of segments that all sessions share: see segments.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_sequence.h"
#include "catalog/pg_type.h"
#include "common/int.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "sequence.h"
#include "tickets/autocreate.h"
#include "tickets/block.h"
#include "tickets/segments.h"
#include "tickets/source.h"
#include "tickets/tickets.h"

/* how many values a WAL record covers ahead of those that are taken; as in core */
#define TICKET_LOG_AHEAD	32

PG_FUNCTION_INFO_V1(instaid_next_ticket);
PG_FUNCTION_INFO_V1(instaid_lease_ticket);
PG_FUNCTION_INFO_V1(instaid_ticket_sequence);
PG_FUNCTION_INFO_V1(instaid_ticket_state);

/* The values that a ticket has left */
typedef struct TicketState
{
	int64		next;			/* the value that comes next, if any is left */
	int64		left;			/* how many there are, up to MAXVALUE */
	bool		off_stripe;		/* it stands at a value of another server */
} TicketState;

/* Why a sequence cannot serve as a ticket, or NULL if it can. */
static const char *
find_fault(char persistence, Form_pg_sequence options)
{
	if (options->seqincrement <= 0)
		return psprintf("Its INCREMENT is %lld; it must count up.",
						(long long) options->seqincrement);
	if (options->seqcycle)
		return "It is defined with CYCLE; a ticket must not repeat its values.";
	if (persistence != RELPERSISTENCE_PERMANENT)
		return "It is UNLOGGED; a crash would set it back.";
	return NULL;
}

/*
 * The values after the state of the page.  The next one is the first of this
 * server's stripe, START plus a multiple of INCREMENT, that is not below what
 * nextval() would return.
 */
static TicketState
read_state(Form_pg_sequence options, Form_pg_sequence_data data)
{
	uint64		increment = options->seqincrement;
	int64		next = data->last_value;
	int64		gap;
	TicketState state = {0};

	/* how far it is below the stripe's next value; 0 if it is in the stripe */
	if (next >= options->seqstart)
	{
		uint64		past = ((uint64) next - (uint64) options->seqstart) % increment;

		gap = past == 0 ? 0 : increment - past;
	}
	else
		gap = ((uint64) options->seqstart - (uint64) next) % increment;
	state.off_stripe = gap != 0;

	/* a value of the stripe that was taken is followed by another */
	if (gap == 0 && data->is_called)
		gap = increment;
	if (!pg_add_s64_overflow(next, gap, &state.next) &&
		state.next <= options->seqmax)
		state.left = 1 + (int64) Min(((uint64) options->seqmax - (uint64) state.next) / increment,
									 PG_INT64_MAX - 1);
	return state;
}

/* The largest value of a sequence's type */
int64
tickets_last_of_type(Oid type)
{
	return type == INT2OID ? PG_INT16_MAX : type == INT4OID ? PG_INT32_MAX : PG_INT64_MAX;
}

static void
used_up_error(Relation rel, Form_pg_sequence options, int64 left, int64 wanted)
{
	bool		guarded = options->seqmax < tickets_last_of_type(options->seqtypid);

	ereport(ERROR,
			(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
			 guarded ?
			 errmsg("ticket \"%s\" has reached its guard", RelationGetRelationName(rel)) :
			 errmsg("ticket \"%s\" is used up", RelationGetRelationName(rel)),
			 errdetail("Values wanted: %lld; values left until %lld, %s: %lld.",
					   (long long) wanted, (long long) options->seqmax,
					   guarded ? "its MAXVALUE" :
					   psprintf("the end of %s", format_type_be(options->seqtypid)),
					   (long long) left),
			 guarded ?
			 errhint("If the number of servers is being changed, continue with restripe_ticket(); otherwise the owner can remove the guard: ALTER SEQUENCE %s NO MAXVALUE;",
					 sequence_qualified_name(RelationGetRelid(rel))) :
			 options->seqtypid != INT8OID ?
			 errhint("If the columns that store its values are of type bigint, its owner can widen it: ALTER SEQUENCE %s AS bigint;",
					 sequence_qualified_name(RelationGetRelid(rel))) :
			 left > 0 ?
			 errhint("Lease at most as many as are left.") :
			 errhint("If it was set too far by mistake, set it back with setval().")));
}

/*
 * Store the last value of the block in the locked page.  Returns the LSN up to
 * which WAL must be flushed for the sequence to be there after a crash.
 */
static XLogRecPtr
store_block(Relation rel, Buffer buffer, Form_pg_sequence_data data,
			const TicketBlock *block, int64 count, int64 left)
{
	Page		page = BufferGetPage(buffer);
	uint32		file = sequence_file(rel);
	bool		needs_wal = RelationNeedsWAL(rel);
	int64		covered;
	int64		ahead;
	bool		log_it;

	/*
	 * This comes before XLogInsert(): see SyncOneBuffer().  It also comes
	 * before the look at the redo pointer: otherwise a checkpoint that begins
	 * in between would not write the page, which is still clean, and only a
	 * record from before its redo point would cover the block.
	 */
	MarkBufferDirty(buffer);

	/*
	 * A record is due when the last one does not cover the block, when it is
	 * not of the block's stripe, and after a checkpoint, as replay would
	 * start behind it.
	 */
	covered = sequence_values_covered(file, data);
	log_it = covered < count ||
		(uint64) block->last - (uint64) data->last_value !=
		(uint64) count * (uint64) block->increment ||
		PageGetLSN(page) <= GetRedoRecPtr();
	ahead = log_it ? Min(TICKET_LOG_AHEAD, left - count) : covered - count;

	if (log_it && needs_wal)
		sequence_log_page(buffer, rel->rd_locator, data,
						  block->last + ahead * block->increment);

	/*
	 * Plain stores cannot fail, so they need no critical section.  Where no
	 * WAL is written until the commit (wal_level = minimal), no record covers
	 * anything.
	 */
	data->last_value = block->last;
	data->is_called = true;
	data->log_cnt = sequence_log_cnt(file, needs_wal ? ahead : 0);

	return needs_wal ? PageGetLSN(page) : InvalidXLogRecPtr;
}

/*
 * Lock and open the sequence of a ticket, if the role may take values of it, and
 * copy its options.
 *
 * Errors are those of nextval(), and one more: the sequence cannot serve as a
 * ticket (55000).
 */
static Relation
open_ticket_sequence(Oid ticket, FormData_pg_sequence *options)
{
	Relation	rel;
	const char *fault;

	sequence_lock(ticket);
	rel = sequence_open_locked(ticket, SEQUENCE_RIGHTS, options);
	fault = find_fault(rel->rd_rel->relpersistence, options);
	if (fault)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" cannot serve as a ticket",
						RelationGetRelationName(rel)),
				 errdetail_internal("%s", fault),
				 errhint("Its owner can set it right with ALTER SEQUENCE %s.",
						 sequence_qualified_name(RelationGetRelid(rel)))));
	return rel;
}

/*
 * Take values as tickets_take_values() does, from a sequence that is open and has
 * no source.
 */
static int64
take_block(Relation rel, Form_pg_sequence options, int64 least, int64 most,
		   TicketBlock *block)
{
	bool		has_segments = options->seqcache > 1;
	Buffer		buffer;
	Form_pg_sequence_data data;
	TicketState state;
	int64		count;

	data = sequence_lock_page(rel, &buffer, BUFFER_LOCK_EXCLUSIVE);
	state = read_state(options, data);
	if (state.left < least)
	{
		UnlockReleaseBuffer(buffer);
		used_up_error(rel, options, state.left, least);
	}
	count = Min(most, state.left);
	block->first = state.next;
	block->increment = options->seqincrement;
	block->last = state.next + (count - 1) * options->seqincrement;
	if (has_segments)
		segments_before_taking(rel, buffer, data);
	block->lsn = store_block(rel, buffer, data, block, count, state.left);
	if (has_segments)
		block->buffer_generation = segments_after_taking(rel, buffer, data);
	UnlockReleaseBuffer(buffer);

	sequence_make_durable(block->lsn);
	return count;
}

/*
 * Take values of a ticket, from least to most of them, in one write.  Returns how
 * many there were.  The WAL that takes the sequence past them is then as durable as
 * synchronous_commit says.
 *
 * The caller has checked that the transaction may write.  Errors are those of
 * open_ticket_sequence(), and two more: fewer values than least are left (2200H),
 * or the ticket has a source (55000).
 */
int64
tickets_take_values(Oid ticket, int64 least, int64 most, TicketBlock *block)
{
	FormData_pg_sequence options;
	Relation	rel = open_ticket_sequence(ticket, &options);
	int64		count;

	if (source_exists(ticket, &options))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ticket \"%s\" has its values from a source", RelationGetRelationName(rel)),
				 errdetail("Its own sequence has no values to lease."),
				 errhint("Use next_ticket(), or lease the values on a server of the source.")));
	count = take_block(rel, &options, least, most, block);
	relation_close(rel, NoLock);
	return count;
}

/*
 * Refuse a relation that is no sequence.  If it is to be locked, refuse a role that
 * may not take values of it, too: the role would hold the lock until its transaction
 * ends.  Without a lock, a role learns only that the ticket exists, as pg_class
 * shows to all.
 */
static void
check_before_lock(const RangeVar *relation, Oid relid, Oid old_relid, void *arg)
{
	LOCKMODE	lockmode = *(LOCKMODE *) arg;
	bool		missing = false;
	char		relkind = OidIsValid(relid) ? get_rel_relkind(relid) : '\0';

	(void) old_relid;
	if (relkind == '\0')
		return;
	if (relkind != RELKIND_SEQUENCE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a sequence", relation->relname),
				 errdetail("A ticket is a sequence; %s is another kind of relation.",
						   quote_qualified_identifier(relation->schemaname, relation->relname)),
				 errhint("Use another name, or rename that relation.")));
	if (lockmode != NoLock &&
		pg_class_aclcheck_ext(relid, GetUserId(), SEQUENCE_RIGHTS,
							  &missing) != ACLCHECK_OK && !missing)
		sequence_no_permission_error(relation->schemaname, relation->relname);
}

/*
 * The sequence of a ticket, or InvalidOid.  A name that is too long is refused: if
 * it were truncated, it could be the name of another ticket.
 */
static Oid
find_ticket(const char *name, LOCKMODE lockmode)
{
	if (name[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("a ticket must have a name"),
				 errdetail("The name is empty.")));
	if (strlen(name) >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_TOO_LONG),
				 errmsg("ticket name \"%.*s...\" is too long",
						pg_mbcliplen(name, strlen(name), NAMEDATALEN - 1), name),
				 errdetail("It has %zu bytes; a name has up to %d.",
						   strlen(name), NAMEDATALEN - 1)));

	return RangeVarGetRelidExtended(makeRangeVar(pstrdup(TICKET_SCHEMA), pstrdup(name), -1),
									lockmode, RVR_MISSING_OK, check_before_lock, &lockmode);
}

static void
no_ticket_error(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("ticket \"%s\" does not exist", name),
			 errdetail("The view instaid.tickets lists all tickets."),
			 errhint("Create it: SELECT instaid.create_ticket(%s); or let tickets be created on first use: SET instaid.auto_create_tickets = on;",
					 quote_literal_cstr(name))));
}

/*
 * Find and lock the sequence of a ticket from which an SQL function takes values,
 * or create the ticket if that is enabled.
 */
static Oid
find_or_create_ticket(const char *name, const char *function)
{
	Oid			relid;

	/* nextval() has these rules, too */
	PreventCommandIfReadOnly(function);
	PreventCommandIfParallelMode(function);

	relid = find_ticket(name, RowExclusiveLock);
	if (OidIsValid(relid))
		return relid;
	if (!autocreate_is_enabled())
		no_ticket_error(name);

	autocreate_ticket(name);
	relid = find_ticket(name, RowExclusiveLock);
	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("could not create ticket \"%s\" on first use", name),
				 errdetail("The background worker ended without creating it."),
				 errhint("The server's log may say why.")));
	return relid;
}

/*
 * next_ticket(name text) -> bigint
 *
 * Returns the next value of a ticket.  No other call returns it.
 */
Datum
instaid_next_ticket(PG_FUNCTION_ARGS)
{
	Oid			ticket = find_or_create_ticket(text_to_cstring(PG_GETARG_TEXT_PP(0)),
											   "instaid.next_ticket()");
	FormData_pg_sequence options;
	Relation	rel = open_ticket_sequence(ticket, &options);
	int64		value;

	if (source_exists(ticket, &options))
		value = segments_take_leased(rel);
	else if (options.seqcache == 1 || !segments_take(rel, &value))
	{
		TicketBlock block;

		take_block(rel, &options, 1, 1, &block);
		value = block.first;
	}
	relation_close(rel, NoLock);
	PG_RETURN_INT64(value);
}

/*
 * lease_ticket(name text, count bigint)
 *	-> (first bigint, last bigint, increment bigint)
 *
 * Takes the next values of a ticket together.
 */
Datum
instaid_lease_ticket(PG_FUNCTION_ARGS)
{
	int64		count = PG_GETARG_INT64(1);
	TicketBlock block;
	TupleDesc	tupdesc;
	Datum		values[3];
	bool		nulls[3] = {false, false, false};

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (count < 1)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("count %lld is out of range", (long long) count),
				 errdetail("A lease has at least one value.")));

	tickets_take_values(find_or_create_ticket(text_to_cstring(PG_GETARG_TEXT_PP(0)),
											  "instaid.lease_ticket()"),
						count, count, &block);
	values[0] = Int64GetDatum(block.first);
	values[1] = Int64GetDatum(block.last);
	values[2] = Int64GetDatum(block.increment);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}

/*
 * ticket_sequence(name text, missing_ok boolean) -> regclass
 *
 * Returns the sequence of a ticket.  If there is none, this is an error, or null
 * if missing_ok.
 */
Datum
instaid_ticket_sequence(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Oid			relid = find_ticket(name, NoLock);

	if (!OidIsValid(relid))
	{
		if (PG_GETARG_BOOL(1))
			PG_RETURN_NULL();
		no_ticket_error(name);
	}
	PG_RETURN_OID(relid);
}

/*
 * _ticket_state(sequence regclass)
 *	-> (last_value bigint, values_left bigint, off_stripe boolean)
 *
 * Returns where a ticket stands.  All columns are null if the sequence is no ticket,
 * has a source, is being altered or dropped by another transaction, cannot be read
 * here, or may not be seen by the role.  last_value is null until a value was taken.
 */
Datum
instaid_ticket_state(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	TupleDesc	tupdesc;
	Datum		values[3] = {0};
	bool		nulls[3] = {true, true, true};
	FormData_pg_sequence options;
	FormData_pg_sequence_data data;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	if (sequence_try_lock(relid))
	{
		if (sequence_read_locked(relid, &options, &data) &&
			find_fault(get_rel_persistence(relid), &options) == NULL &&
			!source_exists(relid, &options))
		{
			TicketState state = read_state(&options, &data);

			values[0] = Int64GetDatum(data.last_value);
			nulls[0] = !data.is_called;
			values[1] = Int64GetDatum(state.left);
			values[2] = BoolGetDatum(state.off_stripe);
			nulls[1] = nulls[2] = false;
		}
		UnlockRelationOid(relid, RowExclusiveLock);
	}
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
