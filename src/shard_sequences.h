/* Which sequences are a shard's: see shard_sequences.c. */
#ifndef INSTAID_SHARD_SEQUENCES_H
#define INSTAID_SHARD_SEQUENCES_H

#include "declaration.h"

extern bool shard_has_sequence(Oid schema, const Declaration *declaration, Oid sequence);

#endif							/* INSTAID_SHARD_SEQUENCES_H */
