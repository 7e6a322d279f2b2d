/* What the catalogs say of a relation of any kind. */
#ifndef INSTAID_RELATION_H
#define INSTAID_RELATION_H

#include "utils/acl.h"

extern Oid	relation_owner(Oid relation);
extern bool relation_is_visible(Oid relation, AclMode rights);

#endif							/* INSTAID_RELATION_H */
