/*-------------------------------------------------------------------------
 *
 * sequence.c
 *	  What every use of a PostgreSQL sequence checks first.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "sequence.h"

/* schema.sequence, quoted for use in a statement */
char *
instaid_qualified_name(Relation rel)
{
	return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
									  RelationGetRelationName(rel));
}

void
instaid_check_is_sequence(Relation rel)
{
	if (rel->rd_rel->relkind != RELKIND_SEQUENCE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a sequence",
						RelationGetRelationName(rel)),
				 errhint("Pass a sequence; CREATE SEQUENCE makes one that can serve.")));
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary sequence \"%s\" of another session",
						RelationGetRelationName(rel)),
				 errhint("Create the sequence without TEMPORARY.")));
}

/* the rights that nextval() needs */
void
instaid_check_permission(Relation rel)
{
	if (pg_class_aclcheck(RelationGetRelid(rel), GetUserId(),
						  ACL_USAGE | ACL_UPDATE) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for sequence %s",
						RelationGetRelationName(rel)),
				 errhint("Its owner can permit it: GRANT USAGE ON SEQUENCE %s TO %s;",
						 instaid_qualified_name(rel),
						 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}
