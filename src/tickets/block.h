/*-------------------------------------------------------------------------
 *
 * block.h
 *	  Where tickets live, and the values that are taken of one together.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_BLOCK_H
#define INSTAID_BLOCK_H

#include "access/xlogdefs.h"

/* where tickets live, a sequence each */
#define TICKET_SCHEMA	"instaid_tickets"

/* Values that were taken together: first, first + increment, ... last. */
typedef struct TicketBlock
{
	int64		first;
	int64		last;
	int64		increment;
	XLogRecPtr	lsn;			/* of the WAL that takes the sequence past
								 * them */
	uint64		buffer_generation;	/* when they were taken: see segments.c */
} TicketBlock;

#endif							/* INSTAID_BLOCK_H */
