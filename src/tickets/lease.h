/*-------------------------------------------------------------------------
 *
 * lease.h
 *	  The client of an authority: see lease.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_LEASE_H
#define INSTAID_LEASE_H

#include "tickets/source.h"

/* Values that an authority has leased: first, first + increment, ... last. */
typedef struct Lease
{
	int64		first;
	int64		last;
	int64		increment;
	int64		count;
} Lease;

extern char *lease_values(const Source *source, int turn, int64 wanted, Lease *lease);

#endif							/* INSTAID_LEASE_H */
