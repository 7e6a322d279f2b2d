/*-------------------------------------------------------------------------
 *
 * stripe.h
 *	  Which values each server of a source gives.
 *
 * A server gives start, start + increment, and so on up to its maximum.  Two
 * servers of one source must have no value in common.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_STRIPE_H
#define INSTAID_STRIPE_H

/* the most servers that a source can have */
#define MAX_SERVERS		16

/* What a server of a source answered last */
typedef struct Stripe
{
	uint64		system;			/* which database cluster it is */
	Oid			database;		/* which database of the cluster */
	int64		start;
	int64		maximum;
	int64		increment;		/* 0 if nothing is known */
	int64		asked_at;		/* monotonic time, answer or not; 0 for never */
} Stripe;

/* The stripes of a source, in the order of its servers */
typedef struct Stripes
{
	uint32		source;			/* hash of the servers' options, 0 for none */
	Stripe		servers[MAX_SERVERS];
} Stripes;

static inline int64
stripe_residue(int64 value, int64 modulus)
{
	int64		residue = value % modulus;

	return residue < 0 ? residue + modulus : residue;
}

/*
 * Do two servers give the same values?  Their ranges must overlap, and their
 * residues must be equal modulo what divides both increments.  While servers
 * are added, a range ends at the boundary on those that count in the old way, and
 * begins above it on the others.
 *
 * A primary and its standby are one server: they have one system identifier, and
 * each database has one OID on both.
 */
static inline bool
stripes_overlap(const Stripe *a, const Stripe *b)
{
	int64		divisor = a->increment;
	int64		rest = b->increment;

	if (a->increment <= 0 || b->increment <= 0 ||
		(a->system == b->system && a->database == b->database) ||
		a->start > b->maximum || b->start > a->maximum)
		return false;
	while (rest != 0)
	{
		int64		next = divisor % rest;

		divisor = rest;
		rest = next;
	}
	return stripe_residue(a->start, divisor) == stripe_residue(b->start, divisor);
}

/* The first of the known servers that gives values of this one too, or -1 */
static inline int
stripes_find_overlap(const Stripes *stripes, int server)
{
	for (int i = 0; i < MAX_SERVERS; i++)
	{
		if (i != server && stripes_overlap(&stripes->servers[i], &stripes->servers[server]))
			return i;
	}
	return -1;
}

#endif							/* INSTAID_STRIPE_H */
