/* The client of an authority: see lease.c. */
#ifndef INSTAID_LEASE_H
#define INSTAID_LEASE_H

#include "source.h"

/* Values that an authority has leased: first, first + increment, ... last */
typedef struct Lease
{
	int64		first;
	int64		last;
	int64		increment;
	int64		count;
} Lease;

/* how many progressions of values are remembered for a ticket */
#define MARK_COUNT		32

/* The largest value that this server has had with an increment and residue */
typedef struct Mark
{
	int64		increment;		/* 0 if there is none */
	int64		residue;
	int64		last;
} Mark;

extern char *lease_values(const Source *source, int turn, int64 wanted, Lease *lease);
extern bool lease_raises_mark(const Lease *lease, Mark *marks);

#endif							/* INSTAID_LEASE_H */
