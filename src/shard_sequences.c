/*
 * Which sequences issue the IDs of a shard.
 *
 * They are the declared one, and those that defaults pass to the shard's next_id(regclass).  Any
 * role can write such a default.  Therefore the function, the table and the sequence must belong
 * to the owner of the declaration.  freeze_shard() stops these sequences, views and dumps show
 * where they stand, and a SECURITY DEFINER function takes IDs of no others.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "common.h"
#include "shard_sequences.h"

PG_FUNCTION_INFO_V1(instaid_shard_sequences);

/* Begin to read rows of pg_depend by the first two columns of one of its indexes. */
static SysScanDesc
scan_depend(Relation depend, Oid index, AttrNumber class_column, Oid class, Oid object)
{
	ScanKeyData key[2];

	ScanKeyInit(&key[0], class_column, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(class));
	ScanKeyInit(&key[1], class_column + 1, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(object));
	return systable_beginscan(depend, index, true, NULL, lengthof(key), key);
}

/* Can a default's sequence be a shard's?  Another session's temporary one is out of reach. */
static bool
is_sequence_of(Oid relation, Oid owner)
{
	return get_rel_relkind(relation) == RELKIND_SEQUENCE &&
		get_rel_persistence(relation) != RELPERSISTENCE_TEMP && relation_owner(relation) == owner;
}

/* Add the sequences that a default passes, if its table belongs to the owner. */
static List *
add_sequences_of_default(List *sequences, Relation depend, Oid attrdef, Oid owner)
{
	SysScanDesc scan;
	HeapTuple	tuple;

	if (relation_owner(GetAttrDefaultColumnAddress(attrdef).objectId) != owner)
		return sequences;
	scan = scan_depend(depend, DependDependerIndexId, Anum_pg_depend_classid,
					   AttrDefaultRelationId, attrdef);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->refclassid == RelationRelationId && is_sequence_of(form->refobjid, owner))
			sequences = list_append_unique_oid(sequences, form->refobjid);
	}
	systable_endscan(scan);
	return sequences;
}

/* The sequences of a shard, the declared one first */
static List *
shard_sequences(Oid schema, const Declaration *declaration)
{
	static const Oid types[] = {REGCLASSOID};
	List	   *sequences = NIL;
	HeapTuple	function = shard_function_find("next_id", types, lengthof(types), schema);
	Relation	depend;
	SysScanDesc scan;
	HeapTuple	tuple;

	/* any relation can be declared */
	if (get_rel_relkind(declaration->sequence) == RELKIND_SEQUENCE)
		sequences = list_make1_oid(declaration->sequence);
	if (!HeapTupleIsValid(function))
		return sequences;

	depend = table_open(DependRelationId, AccessShareLock);
	scan = scan_depend(depend, DependReferenceIndexId, Anum_pg_depend_refclassid,
					   ProcedureRelationId, ((Form_pg_proc) GETSTRUCT(function))->oid);
	while (((Form_pg_proc) GETSTRUCT(function))->proowner == declaration->owner &&
		   HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->classid == AttrDefaultRelationId)
			sequences = add_sequences_of_default(sequences, depend, form->objid,
												 declaration->owner);
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	ReleaseSysCache(function);
	return sequences;
}

bool
shard_has_sequence(Oid schema, const Declaration *declaration, Oid sequence)
{
	return sequence == declaration->sequence ||
		(is_sequence_of(sequence, declaration->owner) &&
		 list_member_oid(shard_sequences(schema, declaration), sequence));
}

/* No row if the schema is not a shard */
Datum
instaid_shard_sequences(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			schema = get_namespace_oid(text_to_cstring(PG_GETARG_TEXT_PP(0)), true);
	HeapTuple	tuple = OidIsValid(schema) ? declaration_find(schema) : NULL;
	Declaration declaration;
	List	   *sequences = NIL;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (!HeapTupleIsValid(tuple))
		return (Datum) 0;
	if (declaration_read(tuple, &declaration) == NULL)
		sequences = shard_sequences(schema, &declaration);
	ReleaseSysCache(tuple);
	foreach(lc, sequences)
	{
		Datum		sequence = ObjectIdGetDatum(lfirst_oid(lc));
		bool		isnull = false;

		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &sequence, &isnull);
	}
	return (Datum) 0;
}
