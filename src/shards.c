/* Which shards a database has: the list of them, and what a new one conflicts with. */
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
#include "declaration.h"
#include "id_sequence.h"
#include "layout.h"

PG_FUNCTION_INFO_V1(instaid_list_shards);
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
 * The shards of the database, a List of ListedShard.  This sees the catalogs as they are now, in
 * every isolation level: a shard ID can be taken since the snapshot.
 */
static List *
read_list(void)
{
	List	   *shards = NIL;
	MemoryContext list_context = CurrentMemoryContext;
	MemoryContext row_context;
	Relation	procs;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	AcceptInvalidationMessages();
	row_context = AllocSetContextCreate(CurrentMemoryContext, "instaid declaration",
										ALLOCSET_SMALL_SIZES);
	procs = table_open(ProcedureRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_proc_prolang, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(get_language_oid(LANGUAGE, false)));
	scan = systable_beginscan(procs, InvalidOid, false, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(tuple);
		ListedShard shard = {.function = proc->oid,.schema = proc->pronamespace};
		bool		is_shard;

		MemoryContextSwitchTo(row_context);
		is_shard = shard_function_declares(proc) &&
			declaration_read(tuple, &shard.declaration) == NULL;
		MemoryContextSwitchTo(list_context);
		MemoryContextReset(row_context);
		if (is_shard)
		{
			ListedShard *listed = palloc(sizeof(ListedShard));

			*listed = shard;
			shards = lappend(shards, listed);
		}
	}
	systable_endscan(scan);
	table_close(procs, AccessShareLock);
	MemoryContextDelete(row_context);
	return shards;
}

/* The shard ID in the IDs of a shard; NODE_SHARD if this server has none */
static int32
listed_shard_id(const ListedShard *shard)
{
	return shard->declaration.shard_id == NODE_SHARD ?
		node_shard_id : shard->declaration.shard_id;
}

/* The schema of a shard; null if another session has dropped it */
static Datum
schema_name(const ListedShard *shard, bool *isnull)
{
	char	   *name = get_namespace_name(shard->schema);

	*isnull = name == NULL;
	return name == NULL ? (Datum) 0 : DirectFunctionCall1(namein, CStringGetDatum(name));
}

/* The shard of the node is listed if its shard ID is set. */
Datum
instaid_list_shards(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	List	   *shards = read_list();
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	foreach(lc, shards)
	{
		const ListedShard *shard = lfirst(lc);
		int32		shard_id = listed_shard_id(shard);
		Datum		values[6];
		bool		nulls[6] = {false};

		values[0] = schema_name(shard, &nulls[0]);
		if (shard_id == NODE_SHARD || nulls[0])
			continue;
		values[1] = Int32GetDatum(shard_id);
		values[2] = TimestampTzGetDatum(ms_timestamp(shard->declaration.epoch_ms));
		values[3] = ObjectIdGetDatum(shard->declaration.sequence);
		values[4] = ObjectIdGetDatum(shard->function);
		values[5] = BoolGetDatum(id_sequence_is_frozen(shard->declaration.sequence, NULL));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

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

	/*
	 * A prepared transaction keeps the place of a session that goes on, or
	 * that another one has.
	 */
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
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int32		shard_id = PG_GETARG_INT32(1);
	Oid			schema;
	Oid			routine;
	const ListedShard *taken = NULL;
	const ListedShard *other = NULL;
	ListCell   *lc;
	Datum		values[4] = {0};
	bool		nulls[4] = {true, true, true, true};

	foreach(lc, shard_id < 0 ? NIL : read_list())
	{
		const ListedShard *it = lfirst(lc);

		if (listed_shard_id(it) == shard_id)
			taken = it;
		if (it->declaration.shard_id != NODE_SHARD &&
			(other == NULL || it->declaration.shard_id < other->declaration.shard_id))
			other = it;
	}
	schema = get_namespace_oid(name, true);
	routine = OidIsValid(schema) ? find_routine(schema) : InvalidOid;

	if (taken != NULL)
		values[0] = schema_name(taken, &nulls[0]);
	values[1] = ObjectIdGetDatum(routine);
	nulls[1] = !OidIsValid(routine);
	if (other != NULL)
	{
		values[2] = schema_name(other, &nulls[2]);
		values[3] = TimestampTzGetDatum(ms_timestamp(other->declaration.epoch_ms));
		nulls[3] = nulls[2];
	}
	PG_RETURN_DATUM(make_row(fcinfo, values, nulls));
}
