/* What a sequence must be to serve as a source of IDs: see id_sequence.c. */
#ifndef INSTAID_ID_SEQUENCE_H
#define INSTAID_ID_SEQUENCE_H

#include "catalog/pg_sequence.h"
#include "utils/rel.h"

extern void id_sequence_check(Relation rel, Form_pg_sequence options);
extern bool id_sequence_is_frozen(Oid sequence, int64 *max_value);
extern void id_sequence_check_not_frozen(Oid sequence);

#endif							/* INSTAID_ID_SEQUENCE_H */
