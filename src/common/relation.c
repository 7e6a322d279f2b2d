/* What the catalogs say of a relation of any kind. */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/syscache.h"

#include "common.h"

/* InvalidOid if it is gone */
Oid
relation_owner(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			owner = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
		ReleaseSysCache(tuple);
	}
	return owner;
}

/*
 * May the role see the state of a relation?  Members of pg_read_all_stats may, because
 * roles of monitors are members.  Others need one of these rights, and the relation.
 */
bool
relation_is_visible(Oid relation, AclMode rights)
{
	bool		is_missing = false;

	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		pg_class_aclcheck_ext(relation, GetUserId(), rights, &is_missing) == ACLCHECK_OK;
}
