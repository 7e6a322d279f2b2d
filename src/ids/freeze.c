/*
 * What freeze_shard() and thaw_shard() need from C.
 *
 * They change the declaration of a shard and the MAXVALUE of its sequences.  While they wait for
 * a lock, the owner of a schema can rename it, and give its name to another one.  Therefore both
 * functions here go by OIDs, and by the catalogs as they are now, not by the snapshot.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "commands/proclang.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "ids/ids.h"
#include "sequence.h"

PG_FUNCTION_INFO_V1(instaid_lock_sequence);
PG_FUNCTION_INFO_V1(instaid_declare_frozen);

/* Check that the current role has the rights of the owner of a sequence. */
static void
check_owner(Oid sequence)
{
	Oid			owner = sequence_owner(sequence);

	if (!OidIsValid(owner) || get_rel_relkind(sequence) != RELKIND_SEQUENCE)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("sequence with OID %u does not exist", sequence)));
	if (!has_privs_of_role(GetUserId(), owner))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SEQUENCE, get_rel_name(sequence));
}

/* This waits for all transactions that have taken values of the sequence. */
Datum
instaid_lock_sequence(PG_FUNCTION_ARGS)
{
	Oid			sequence = PG_GETARG_OID(0);

	check_owner(sequence);
	LockRelationOid(sequence, ShareRowExclusiveLock);
	check_owner(sequence);
	PG_RETURN_VOID();
}

/*
 * Check that a function declares a shard with this sequence, and that its owner has
 * the rights of the owner of the sequence.  A function can name any sequence.
 */
static void
check_declaration(HeapTuple tuple, Oid sequence)
{
	Form_pg_proc proc = HeapTupleIsValid(tuple) ? (Form_pg_proc) GETSTRUCT(tuple) : NULL;
	Declaration declaration;

	if (proc == NULL || proc->prolang != get_language_oid(LANGUAGE, true) ||
		!is_declaration(proc) || read_declaration(tuple, &declaration) != NULL ||
		declaration.sequence != sequence)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("the declaration of the shard has changed meanwhile"),
				 errdetail("It does not declare sequence \"%s\" any more.",
						   get_rel_name(sequence)),
				 errhint("Try again.")));
	if (!has_privs_of_role(proc->proowner, sequence_owner(sequence)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("sequence \"%s\" does not belong to the owner of function %s",
						get_rel_name(sequence), shard_function_name(proc))));
}

/*
 * Lock the row of a function, and copy it; NULL if there is none.  This waits for a transaction
 * that has changed it, for example by a GRANT.  A system cache can still have a version of the row
 * that was pruned, whose place another row can have: this looks at the table.
 */
static HeapTuple
lock_function(Relation procs, Oid function)
{
	for (;;)
	{
		SysScanDesc scan;
		ScanKeyData key;
		HeapTuple	found;
		HeapTupleData locked;
		Buffer		buffer;
		TM_FailureData failure;
		TM_Result	result;

		/* what was committed while this waited */
		AcceptInvalidationMessages();
		ScanKeyInit(&key, Anum_pg_proc_oid, BTEqualStrategyNumber, F_OIDEQ,
					ObjectIdGetDatum(function));
		scan = systable_beginscan(procs, ProcedureOidIndexId, true, NULL, 1, &key);
		found = systable_getnext(scan);
		if (HeapTupleIsValid(found))
			locked.t_self = found->t_self;
		systable_endscan(scan);
		if (!HeapTupleIsValid(found))
			return NULL;

		result = heap_lock_tuple(procs, &locked, GetCurrentCommandId(false),
								 LockTupleNoKeyExclusive, LockWaitBlock, false, &buffer, &failure);
		found = result == TM_Ok ? heap_copytuple(&locked) : NULL;
		ReleaseBuffer(buffer);
		if (result == TM_Ok)
			return found;
		if (result != TM_Updated && result != TM_Deleted)
			elog(ERROR, "unexpected result of heap_lock_tuple(): %d", result);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * This updates the row itself, because CREATE OR REPLACE FUNCTION names the function, and
 * needs CREATE on the schema and USAGE on the language.  Whoever may alter the sequence, which
 * the caller has locked, may freeze the shard.
 */
Datum
instaid_declare_frozen(PG_FUNCTION_ARGS)
{
	Oid			function = PG_GETARG_OID(0);
	Oid			sequence = PG_GETARG_OID(1);
	Relation	procs;
	HeapTuple	tuple;
	Datum		values[Natts_pg_proc] = {0};
	bool		nulls[Natts_pg_proc] = {false};
	bool		replaces[Natts_pg_proc] = {false};

	PreventCommandIfReadOnly("instaid._declare_frozen()");
	check_owner(sequence);

	/* before the lock of the row, and again when it is there */
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	check_declaration(tuple, sequence);
	ReleaseSysCache(tuple);

	procs = table_open(ProcedureRelationId, RowExclusiveLock);
	tuple = lock_function(procs, function);
	check_declaration(tuple, sequence);

	values[Anum_pg_proc_prosrc - 1] = CStringGetTextDatum(declaration_body(tuple, PG_GETARG_BOOL(2)));
	replaces[Anum_pg_proc_prosrc - 1] = true;
	tuple = heap_modify_tuple(tuple, RelationGetDescr(procs), values, nulls, replaces);
	CatalogTupleUpdate(procs, &tuple->t_self, tuple);
	InvokeObjectPostAlterHook(ProcedureRelationId, function, 0);
	table_close(procs, NoLock);
	CommandCounterIncrement();
	PG_RETURN_VOID();
}
