/* The lock that freeze_shard() needs. */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "ids/ids.h"
#include "sequence.h"

PG_FUNCTION_INFO_V1(instaid_lock_sequence);

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
