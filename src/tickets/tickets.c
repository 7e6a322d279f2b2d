/*
 * Named, dense, durable integers: the values of PostgreSQL sequences.
 *
 * A ticket is a sequence in a schema of its own, and is configured by the options of that sequence
 * alone: INCREMENT is the number of servers, START modulo INCREMENT tells which server this is,
 * MAXVALUE is a guard, and CACHE is the step.  A ticket that has its values from other servers is a
 * foreign table instead: see sources.c.
 *
 * Values are taken from the sequence's page as by nextval(), with three differences:
 *
 * - A value is returned when the WAL that takes the sequence past it is as durable as
 *	 synchronous_commit says.  nextval() leaves that to the commit of the transaction that wrote
 *	 the record, which may still be running.  Therefore no XID is needed.
 * - A value equals START modulo INCREMENT, whatever setval() did.
 * - CACHE is the step: how many values one WAL record covers.  No session keeps values.  Sessions
 *	 that come before the record is flushed share the flush.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "common/hashfn.h"
#include "common/int.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"

#include "common.h"
#include "sequence.h"
#include "source.h"
#include "tickets/tickets.h"

/* how many values a WAL record covers, unless the ticket has a step */
#define DEFAULT_STEP	32

/* how many tickets a session remembers */
#define MEMORY_SIZE		64

PG_FUNCTION_INFO_V1(instaid_next_ticket);
PG_FUNCTION_INFO_V1(instaid_lease_ticket);
PG_FUNCTION_INFO_V1(instaid_ticket_sequence);
PG_FUNCTION_INFO_V1(instaid_ticket_state);

/* What this session knows of a ticket, for this role, until an invalidation */
typedef struct Ticket
{
	char		name[NAMEDATALEN];
	int			length;			/* of the name, or -1 after an invalidation */
	Oid			role;			/* InvalidOid if it is not to be remembered */
	LocalTransactionId lxid;	/* transaction in which we hold the lock */

	Oid			relid;
	bool		has_source;		/* then it has only this: */
	int			place;			/* of its slot: see src/sources/slots.c */

	FormData_pg_sequence options;
	int64		step;
	bool		needs_wal;
	RelFileLocator locator;
	uint32		file;			/* see sequence_file_number() */
	Buffer		buffer;			/* of its page, as a hint */
} Ticket;

/*
 * A ticket has one place, which depends on its name only.  Without this memory, next_ticket() took
 * 7,239 instructions instead of 1,218 ("make bench-instructions").
 */
static Ticket memory[MEMORY_SIZE];

/* The values that a ticket has left */
typedef struct TicketState
{
	int64		next;			/* the value that comes next, if any is left */
	int64		left;			/* how many there are, up to MAXVALUE */
	bool		off_stripe;		/* it stands at a value of another server */
} TicketState;

/* Why a sequence cannot serve as a ticket, or NULL if it can */
static const char *
ticket_fault(char persistence, Form_pg_sequence options)
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
	uint64		start = options->seqstart;
	int64		next = data->last_value;
	int64		gap;
	TicketState state = {0};

	/* how far it is below the stripe's next value; 0 if it is in the stripe */
	gap = (next < options->seqstart ? start - next :
		   increment - ((uint64) next - start) % increment) % increment;
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

static void
used_up_error(const Ticket *ticket, int64 left, int64 wanted)
{
	int64		last = ticket->options.seqmax;
	Oid			type = ticket->options.seqtypid;
	bool		guarded = last < sequence_type_max(type);

	ereport(ERROR,
			(errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
			 guarded ?
			 errmsg("ticket \"%s\" has reached its guard", ticket->name) :
			 errmsg("ticket \"%s\" is used up", ticket->name),
			 errdetail("Values wanted: %lld; values left until %lld, %s: %lld.",
					   (long long) wanted, (long long) last,
					   guarded ? "its MAXVALUE" :
					   psprintf("the end of %s", format_type_be(type)),
					   (long long) left),
			 guarded ?
			 errhint("If the number of servers is being changed, continue with restripe_ticket(); otherwise the owner can remove the guard: ALTER SEQUENCE %s NO MAXVALUE;",
					 sequence_qualified_name(ticket->relid)) :
			 type != INT8OID ?
			 errhint("If the columns that store its values are of type bigint, its owner can widen it: ALTER SEQUENCE %s AS bigint;",
					 sequence_qualified_name(ticket->relid)) :
			 left > 0 ?
			 errhint("Lease at most as many as are left.") :
			 errhint("If it was set too far by mistake, set it back with setval().")));
}

/*
 * Store the last of so many values in the locked page.  Returns the LSN up to which WAL
 * must be flushed for the sequence to be there after a crash.  A record is due if
 *
 *	- the last record does not cover the values, which would come again after a crash,
 *	- or the values do not follow the page's last value in steps of INCREMENT, in which
 *	  what the last record covers is counted,
 *	- or a checkpoint began after the last record, which replay would not read then.
 */
static XLogRecPtr
store_block(const Ticket *ticket, Form_pg_sequence_data data, int64 last, int64 count, int64 left)
{
	int64		increment = ticket->options.seqincrement;
	Page		page = BufferGetPage(ticket->buffer);
	int64		covered;
	int64		ahead;
	bool		log_it;

	/* before GetRedoRecPtr(): see sequence_log_page() */
	MarkBufferDirty(ticket->buffer);

	covered = sequence_values_covered(ticket->file, data);
	log_it = covered < count ||
		(uint64) last - (uint64) data->last_value != (uint64) count * (uint64) increment ||
		PageGetLSN(page) <= GetRedoRecPtr();
	ahead = log_it ? Min(ticket->step - 1, left - count) : covered - count;

	if (log_it && ticket->needs_wal)
		sequence_log_page(ticket->buffer, ticket->locator, data, last + ahead * increment);

	/* with wal_level = minimal, no record covers anything until the commit */
	data->last_value = last;
	data->is_called = true;
	data->log_cnt = sequence_log_cnt(ticket->file, ticket->needs_wal ? ahead : 0);

	return ticket->needs_wal ? PageGetLSN(page) : InvalidXLogRecPtr;
}

/* Take so many values of a ticket that has no source, and return the first one. */
static int64
take_block(Ticket *ticket, int64 count)
{
	Form_pg_sequence_data data;
	TicketState state;
	XLogRecPtr	lsn;

	if (!BufferIsValid(ticket->buffer) ||
		!ReadRecentBuffer(ticket->locator, MAIN_FORKNUM, 0, ticket->buffer))
		ticket->buffer = ReadBufferWithoutRelcache(ticket->locator, MAIN_FORKNUM, 0,
												   RBM_NORMAL, NULL, true);
	LockBuffer(ticket->buffer, BUFFER_LOCK_EXCLUSIVE);
	data = sequence_read_page(ticket->buffer, ticket->relid);
	state = read_state(&ticket->options, data);
	if (state.left < count)
	{
		UnlockReleaseBuffer(ticket->buffer);
		used_up_error(ticket, state.left, count);
	}
	lsn = store_block(ticket, data, state.next + (count - 1) * ticket->options.seqincrement,
					  count, state.left);
	UnlockReleaseBuffer(ticket->buffer);

	sequence_make_durable(lsn);
	return state.next;
}

/*
 * Refuse a relation that is no ticket.  If it is to be locked, refuse a role that may not
 * take values of it, too, which would hold the lock until its transaction ends.
 */
static void
check_before_lock(const RangeVar *relation, Oid relid, Oid old_relid pg_attribute_unused(),
				  void *arg)
{
	bool		has_source = source_exists(relid);

	/* last: a relation that was dropped meanwhile is none */
	char		relkind = get_rel_relkind(relid);
	bool		missing = false;

	if (relkind == '\0')
		return;
	if (has_source ? has_superclass(relid) : relkind != RELKIND_SEQUENCE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a ticket", relation->relname),
				 has_source ?
				 errdetail("It is a foreign table of a ticket that has several servers as its source.") :
				 errdetail("A ticket is a sequence or a foreign table of instaid; %s is another kind of relation.",
						   quote_qualified_identifier(relation->schemaname, relation->relname)),
				 has_source ?
				 errhint("Use the ticket, from whose foreign table it inherits.") :
				 errhint("Use another name, or rename that relation.")));
	if (*(LOCKMODE *) arg == NoLock ||
		pg_class_aclcheck_ext(relid, GetUserId(), has_source ? SOURCE_RIGHTS : SEQUENCE_RIGHTS,
							  &missing) == ACLCHECK_OK || missing)
		return;
	if (has_source)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FOREIGN_TABLE, relation->relname);
	sequence_no_permission_error(relid, SEQUENCE_RIGHTS);
}

/* The relation that is a ticket, or InvalidOid */
static Oid
find_ticket(const char *name, LOCKMODE lockmode)
{
	check_object_name("ticket", name);
	return RangeVarGetRelidExtended(makeRangeVar(pstrdup(TICKET_SCHEMA), pstrdup(name), -1),
									lockmode, RVR_MISSING_OK, check_before_lock, &lockmode);
}

static void
no_ticket_error(const char *name, bool autocreated)
{
	bool		has_citus = OidIsValid(get_relname_relid("pg_dist_local_group", PG_CATALOG_NAMESPACE));

	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("ticket \"%s\" does not exist", name),
			 autocreated ?
			 errdetail("This transaction has dropped or renamed it, or another one has just done so.") :
			 errdetail("The view instaid.tickets lists all tickets."),
			 autocreated ?
			 errhint("Commit, and call again.") :
			 has_citus ?
			 errhint("Create it on the coordinator of Citus, and use it there: SELECT instaid.create_ticket(%s);",
					 quote_literal_cstr(name)) :
			 errhint("Create it: SELECT instaid.create_ticket(%s); or let tickets be created on first use: SET instaid.auto_create_tickets = on;",
					 quote_literal_cstr(name))));
}

/*
 * Find or create a ticket, lock it for the transaction, and find out what a call needs to
 * know.  No invalidation announces a commit: what the running transaction has created is not
 * remembered.  Nor is a ticket that turns out to be unfit.
 */
static void
load_ticket(Ticket *ticket, const char *name)
{
	Relation	rel;
	bool		autocreated = false;
	const char *fault;

	memset(ticket, 0, sizeof(*ticket));
	ticket->relid = find_ticket(name, RowExclusiveLock);
	if (!OidIsValid(ticket->relid) && (autocreated = autocreate_ticket(name)))
		ticket->relid = find_ticket(name, RowExclusiveLock);
	if (!OidIsValid(ticket->relid))
		no_ticket_error(name, autocreated);
	strlcpy(ticket->name, name, NAMEDATALEN);
	ticket->length = strlen(name);
	ticket->place = -1;

	/* beyond the end of a subtransaction */
	sequence_lock(ticket->relid);
	ticket->lxid = MyLocalTransactionId;
	ticket->has_source = source_exists(ticket->relid);
	if (ticket->has_source)
	{
		rel = relation_open(ticket->relid, NoLock);
		if (rel->rd_createSubid != InvalidSubTransactionId)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("ticket \"%s\" has a source, and is not committed", name),
					 errdetail("This transaction has created it, and a background worker cannot see it."),
					 errhint("Commit first.")));
	}
	else
	{
		rel = sequence_open_locked(ticket->relid, SEQUENCE_RIGHTS, &ticket->options);
		fault = ticket_fault(rel->rd_rel->relpersistence, &ticket->options);
		if (fault)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("sequence \"%s\" cannot serve as a ticket", name),
					 errdetail_internal("%s", fault),
					 errhint("Its owner can set it right with ALTER SEQUENCE %s.",
							 sequence_qualified_name(ticket->relid))));
		ticket->step = ticket->options.seqcache > 1 ? ticket->options.seqcache : DEFAULT_STEP;
		ticket->needs_wal = RelationNeedsWAL(rel);
		ticket->locator = rel->rd_locator;
		ticket->file = sequence_file_number(rel);
	}
	if (!sequence_is_uncommitted(rel))
		ticket->role = GetUserId();
	relation_close(rel, NoLock);
}

static bool
is_remembered(const Ticket *ticket, const char *name, int length)
{
	return ticket->length == length && ticket->role == GetUserId() &&
		memcmp(ticket->name, name, length) == 0;
}

/* The ticket of which an SQL function takes values, locked for the transaction */
static Ticket *
open_ticket(const text *argument, const char *function)
{
	const char *name = VARDATA_ANY(argument);
	int			length = VARSIZE_ANY_EXHDR(argument);
	Ticket	   *ticket = &memory[hash_bytes((const unsigned char *) name, length) % MEMORY_SIZE];

	/* nextval() has these rules, too */
	PreventCommandIfReadOnly(function);
	PreventCommandIfParallelMode(function);

	if (is_remembered(ticket, name, length) && ticket->lxid != MyLocalTransactionId)
	{
		/* a role asks for no lock after its rights were revoked */
		AcceptInvalidationMessages();
		if (ticket->length == length)
		{
			sequence_lock(ticket->relid);
			ticket->lxid = MyLocalTransactionId;
		}
	}
	if (!is_remembered(ticket, name, length))
		load_ticket(ticket, text_to_cstring(argument));
	return ticket;
}

/* A relation has changed; all can have, if this is InvalidOid. */
void
tickets_forget(Oid relid)
{
	for (Ticket *ticket = memory; ticket < memory + MEMORY_SIZE; ticket++)
	{
		if (ticket->relid == relid || !OidIsValid(relid))
			ticket->length = -1;
	}
}

Datum
instaid_next_ticket(PG_FUNCTION_ARGS)
{
	Ticket	   *ticket = open_ticket(PG_GETARG_TEXT_PP(0), "instaid.next_ticket()");

	PG_RETURN_INT64(ticket->has_source ?
					sources_take(ticket->relid, ticket->name, &ticket->place) :
					take_block(ticket, 1));
}

Datum
instaid_lease_ticket(PG_FUNCTION_ARGS)
{
	int64		count = PG_GETARG_INT64(1);
	Ticket	   *ticket;
	int64		first;
	Datum		values[3];
	bool		nulls[3] = {false};

	if (count < 1)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("count %lld is out of range", (long long) count),
				 errdetail("A lease has at least one value.")));

	ticket = open_ticket(PG_GETARG_TEXT_PP(0), "instaid.lease_ticket()");
	if (ticket->has_source)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ticket \"%s\" has its values from a source", ticket->name),
				 errdetail("It has no values of its own to lease."),
				 errhint("Use next_ticket(), or lease the values on a server of the source.")));
	first = take_block(ticket, count);
	values[0] = Int64GetDatum(first);
	values[1] = Int64GetDatum(first + (count - 1) * ticket->options.seqincrement);
	values[2] = Int64GetDatum(ticket->options.seqincrement);
	PG_RETURN_DATUM(make_row(fcinfo, values, nulls));
}

Datum
instaid_ticket_sequence(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Oid			relid = find_ticket(name, NoLock);

	if (!OidIsValid(relid))
	{
		if (PG_GETARG_BOOL(1))
			PG_RETURN_NULL();
		no_ticket_error(name, false);
	}
	PG_RETURN_OID(relid);
}

Datum
instaid_ticket_state(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Datum		values[6] = {0};
	bool		nulls[6] = {true, true, true, true, true, true};
	FormData_pg_sequence options;
	char		persistence;
	FormData_pg_sequence_data data;
	Source		source;

	if (sequence_read(relid, &options, &persistence, &data))
	{
		if (ticket_fault(persistence, &options) == NULL)
		{
			TicketState state = read_state(&options, &data);

			values[0] = Int64GetDatum(data.last_value);
			values[1] = Int64GetDatum(state.left);
			values[2] = BoolGetDatum(state.off_stripe);
			nulls[0] = !data.is_called;
			nulls[1] = nulls[2] = false;
		}
	}
	else if (source_find(relid, &source))
	{
		StringInfoData servers;

		initStringInfo(&servers);
		for (Authority *it = source.authorities; it < source.authorities + source.count; it++)
			appendStringInfo(&servers, "%s%s", servers.len > 0 ? ", " : "",
							 quote_identifier(it->name));
		values[3] = CStringGetTextDatum(servers.data);
		values[4] = Int64GetDatum(source.step);
		values[5] = BoolGetDatum(sources_are_served());
		nulls[3] = nulls[4] = nulls[5] = false;
	}
	PG_RETURN_DATUM(make_row(fcinfo, values, nulls));
}
