/* Where a sequence stands: see position.c. */
#ifndef INSTAID_POSITION_H
#define INSTAID_POSITION_H

#include "commands/sequence.h"

extern bool read_position(Oid sequence, FormData_pg_sequence_data *data);

#endif							/* INSTAID_POSITION_H */
