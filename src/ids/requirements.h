/* What a sequence must be to serve as a source of IDs: see requirements.c. */
#ifndef INSTAID_REQUIREMENTS_H
#define INSTAID_REQUIREMENTS_H

#include "catalog/pg_sequence.h"

#include "compat.h"

extern const char *requirements_fault(Oid sequence, bool is_frozen, const char **cure);
extern bool requirements_check(Relation rel, Form_pg_sequence options, Oid schema);
pg_noreturn extern void frozen_error(Oid schema, Oid sequence);

#endif							/* INSTAID_REQUIREMENTS_H */
