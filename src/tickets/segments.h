/*-------------------------------------------------------------------------
 *
 * segments.h
 *	  Segments of tickets in shared memory: see segments.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_SEGMENTS_H
#define INSTAID_SEGMENTS_H

#include "nodes/pg_list.h"

#include "sequence.h"
#include "tickets/block.h"
#include "tickets/stripe.h"

/* A segment that the worker is to get */
typedef struct SegmentRequest
{
	Oid			ticket;
	char		name[NAMEDATALEN];
	int64		count;			/* how many values */
	int			turn;			/* which server of a source to begin with */
	uint64		buffer_generation;	/* when the values were taken */
	Stripes		stripes;		/* what is known of the servers */
	int64		started;		/* monotonic time */
} SegmentRequest;

/* for sessions */
extern bool segments_take(Relation rel, int64 *value);
extern int64 segments_take_leased(Relation rel);
extern void segments_before_taking(Relation rel, Buffer page, Form_pg_sequence_data data);
extern uint64 segments_after_taking(Relation rel, Buffer page, Form_pg_sequence_data data);

/* for the worker */
extern List *segments_requested(int64 *next_due);
extern void segments_forget_requests(void);
extern bool segments_begin_refill(Oid ticket, const char *name, int64 step,
								  SegmentRequest *request);
extern void segments_finish_refill(const SegmentRequest *request, const TicketBlock *block,
								   int64 count, const char *failure);
extern void segments_fail_refill(const SegmentRequest *request, const char *failure,
								 bool try_again);
extern void segments_remember_stripes(const SegmentRequest *request);
extern void segments_forget_ticket(Oid ticket);

extern void segments_init(void);

#endif							/* INSTAID_SEGMENTS_H */
