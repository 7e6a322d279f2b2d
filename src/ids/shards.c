/*
 * Which shards a database has: the list of them, what is wrong with one, and
 * what a new one conflicts with.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_database.h"
#include "catalog/pg_namespace.h"
#include "commands/dbcommands.h"
#include "commands/proclang.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "common.h"
#include "ids/ids.h"
#include "sequence.h"

PG_FUNCTION_INFO_V1(instaid_list_shards);
PG_FUNCTION_INFO_V1(instaid_odd_declarations);
PG_FUNCTION_INFO_V1(instaid_lock_shard_id);
PG_FUNCTION_INFO_V1(instaid_find_conflict);

/* A shard of the database */
typedef struct ListedShard
{
	Oid			function;		/* its declaration */
	Oid			schema;
	Declaration declaration;
} ListedShard;

/*
 * The shards of the database when function_invalidations was listed_invalidations.
 * Monitoring systems ask again and again, and reading thousands of declarations takes longer than
 * reading the sequences.
 */
static ListedShard *listed = NULL;
static int	listed_count = 0;
static uint64 listed_invalidations = 0;

/*
 * Listing
 */

/*
 * Call visit() for each function in the language, in a memory context of its own.  It sees the
 * catalogs as they are now, in every isolation level: a shard ID can be taken since the snapshot.
 */
static void
scan_functions(void (*visit) (HeapTuple tuple, void *arg), void *arg)
{
	MemoryContext row_context = AllocSetContextCreate(CurrentMemoryContext, "instaid declaration",
													  ALLOCSET_SMALL_SIZES);
	Relation	procs;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	procs = table_open(ProcedureRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_proc_prolang, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(get_language_oid(LANGUAGE, false)));
	scan = systable_beginscan(procs, InvalidOid, false, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		MemoryContext query_context = MemoryContextSwitchTo(row_context);

		visit(tuple, arg);
		MemoryContextSwitchTo(query_context);
		MemoryContextReset(row_context);
	}
	systable_endscan(scan);
	table_close(procs, AccessShareLock);
	MemoryContextDelete(row_context);
}

/* Add a function to the list of shards if it declares one. */
static void
list_shard(HeapTuple tuple, void *arg pg_attribute_unused())
{
	Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
	ListedShard shard = {.function = proc->oid,.schema = proc->pronamespace};

	if (!is_declaration(proc) || read_declaration(tuple, &shard.declaration) != NULL)
		return;
	/* room for 64 more */
	if (listed_count % 64 == 0)
	{
		Size		size = (listed_count + 64) * sizeof(ListedShard);

		listed = listed == NULL ? MemoryContextAlloc(TopMemoryContext, size) :
			repalloc(listed, size);
	}
	listed[listed_count++] = shard;
}

/* Read the list of shards, unless it is known and no function has changed. */
static void
read_list(void)
{
	uint64		invalidations;

	AcceptInvalidationMessages();
	invalidations = function_invalidations;
	if (listed_invalidations == invalidations)
		return;
	listed_count = 0;
	scan_functions(list_shard, NULL);
	listed_invalidations = invalidations;
}

/* The shard ID in the IDs of a shard; NODE_SHARD if this server has none */
static int32
listed_shard_id(const ListedShard *shard)
{
	return shard->declaration.shard_id == NODE_SHARD ?
		node_shard_id : shard->declaration.shard_id;
}

/* The name of a schema; false if another session has dropped the schema. */
static bool
get_schema_name(Oid schema, Name name)
{
	char	   *found = get_namespace_name(schema);

	if (found != NULL)
		namestrcpy(name, found);
	return found != NULL;
}

/* The shard of the node is listed if its shard ID is set. */
Datum
instaid_list_shards(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	read_list();
	for (int i = 0; i < listed_count; i++)
	{
		const ListedShard *shard = &listed[i];
		int32		shard_id = listed_shard_id(shard);
		NameData	schema_name;
		Datum		values[6];
		bool		nulls[6] = {false};

		if (shard_id == NODE_SHARD || !get_schema_name(shard->schema, &schema_name))
			continue;
		values[0] = NameGetDatum(&schema_name);
		values[1] = Int32GetDatum(shard_id);
		values[2] = TimestampTzGetDatum(ms_timestamp(shard->declaration.epoch_ms));
		values[3] = ObjectIdGetDatum(shard->declaration.sequence);
		values[4] = ObjectIdGetDatum(shard->function);
		values[5] = BoolGetDatum(is_frozen(shard->declaration.sequence, NULL));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

static void
add_fault(HeapTuple tuple, void *arg)
{
	ReturnSetInfo *rsinfo = arg;
	const char *code;
	const char *fault = shard_function_fault(tuple, &code);
	Datum		values[3];
	bool		nulls[3] = {false};

	if (fault == NULL)
		return;
	values[0] = ObjectIdGetDatum(((Form_pg_proc) GETSTRUCT(tuple))->oid);
	values[1] = CStringGetTextDatum(code);
	values[2] = CStringGetTextDatum(fault);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* A function of one role must not keep other roles from reading the list: no error here. */
Datum
instaid_odd_declarations(PG_FUNCTION_ARGS)
{
	InitMaterializedSRF(fcinfo, 0);
	scan_functions(add_fault, fcinfo->resultinfo);
	return (Datum) 0;
}

/*
 * Creating
 */

/* Check that the current role may create this schema, or objects in it. */
static void
check_may_create(const char *schema_name)
{
	Oid			schema = get_namespace_oid(schema_name, true);

	if (OidIsValid(schema) && isAnyTempNamespace(schema))
		ereport(ERROR,
				(errcode(ERRCODE_RESERVED_NAME),
				 errmsg("temporary schema %s cannot be a shard", quote_identifier(schema_name)),
				 errdetail("PostgreSQL drops the objects in it when the session ends."),
				 errhint("Choose another schema.")));
	if (OidIsValid(schema))
	{
		if (object_aclcheck(NamespaceRelationId, schema, GetUserId(), ACL_CREATE) != ACLCHECK_OK)
			aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SCHEMA, schema_name);
	}
	else if (object_aclcheck(DatabaseRelationId, MyDatabaseId, GetUserId(), ACL_CREATE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_DATABASE, get_database_name(MyDatabaseId));
}

/*
 * The shard with this ID or, with or_above, the one with the lowest ID that is not below it;
 * NULL if there is none.
 */
static const ListedShard *
find_shard_id(int32 shard_id, bool or_above)
{
	const ListedShard *found = NULL;

	read_list();
	for (const ListedShard *it = listed; it < listed + listed_count; it++)
	{
		int32		id = it->declaration.shard_id;

		if ((id == shard_id || (or_above && id > shard_id)) &&
			(found == NULL || id < found->declaration.shard_id))
			found = it;
	}
	return found;
}

/* A function of the schema that has the signature of one that a shard gets */
static Oid
find_routine(Oid schema)
{
	static const struct
	{
		const char *name;
		int			nargs;
		Oid			types[2];
	}			signatures[] = {
		{DECLARATION, 2, {INT4OID, REGCLASSOID}},
		{DECLARATION, 1, {INT4OID}},
		/* a call with a literal would find this one rather than the shard's */
		{"next_id", 1, {TEXTOID}},
		{"next_id", 1, {REGCLASSOID}},
		/* the one that is adopted comes last: it hides no other */
		{"next_id", 0, {InvalidOid}},
	};
	Oid			found = InvalidOid;

	for (size_t i = 0; i < lengthof(signatures) && !OidIsValid(found); i++)
		found = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
								CStringGetDatum(signatures[i].name),
								PointerGetDatum(buildoidvector(signatures[i].types, signatures[i].nargs)),
								ObjectIdGetDatum(schema));
	return found;
}

/* The process that holds a lock; 0 if it has ended, or is a prepared transaction */
static int
lock_holder(const LOCKTAG *tag, LOCKMODE mode)
{
	VirtualTransactionId *holders = GetLockConflicts(tag, mode, NULL);
	PGPROC	   *proc = VirtualTransactionIdIsValid(*holders) ?
		VirtualTransactionGetProc(*holders) : NULL;

	/* A prepared transaction keeps the place of a session that goes on, or that another one has. */
	return proc == NULL || PROC_LOCAL_XID(proc) != holders->localTransactionId ? 0 : proc->pid;
}

/*
 * An advisory lock whose last field is neither that of users' locks, 1 or 2, nor one of Citus' or of
 * tickets.  It is not waited for: any role that may create some schema can hold it as long as it
 * likes.
 */
Datum
instaid_lock_shard_id(PG_FUNCTION_ARGS)
{
	int32		shard_id = PG_GETARG_INT32(1);
	LOCKTAG		tag;

	check_may_create(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, get_language_oid(LANGUAGE, false), shard_id, 29);
	if (LockAcquire(&tag, ShareUpdateExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
	{
		int			pid = lock_holder(&tag, ShareUpdateExclusiveLock);

		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("another transaction is creating a shard with ID %d", shard_id),
				 pid == 0 ? errdetail("It has not ended yet.") :
				 errdetail("Process %d has the lock of this ID until its transaction ends.", pid),
				 errhint("Repeat the call when it has ended.")));
	}
	/* its last owner may have created the shard */
	AcceptInvalidationMessages();
	PG_RETURN_VOID();
}

Datum
instaid_find_conflict(PG_FUNCTION_ARGS)
{
	char	   *schema_name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int32		shard_id = PG_GETARG_INT32(1);
	const ListedShard *other;
	const ListedShard *taken;
	Oid			schema;
	Oid			routine;
	Oid			taken_by;
	NameData	names[2];
	Datum		values[4];
	bool		nulls[4];

	taken = find_shard_id(shard_id, false);
	other = find_shard_id(0, true);
	taken_by = taken ? taken->schema : InvalidOid;
	if (!OidIsValid(taken_by) && shard_id == node_shard_id)
		taken_by = get_func_namespace(fcinfo->flinfo->fn_oid);
	schema = get_namespace_oid(schema_name, true);
	routine = OidIsValid(schema) ? find_routine(schema) : InvalidOid;

	nulls[0] = !get_schema_name(taken_by, &names[0]);
	nulls[1] = !OidIsValid(routine);
	nulls[2] = nulls[3] = other == NULL || !get_schema_name(other->schema, &names[1]);
	values[0] = NameGetDatum(&names[0]);
	values[1] = ObjectIdGetDatum(routine);
	values[2] = NameGetDatum(&names[1]);
	values[3] = TimestampTzGetDatum(other ? ms_timestamp(other->declaration.epoch_ms) : 0);
	PG_RETURN_DATUM(make_row(fcinfo, values, nulls));
}
