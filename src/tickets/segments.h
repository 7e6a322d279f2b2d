/*-------------------------------------------------------------------------
 *
 * segments.h
 *	  Segments of tickets in shared memory: see segments.c and worker.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_SEGMENTS_H
#define INSTAID_SEGMENTS_H

#include "nodes/pg_list.h"

#include "sequence.h"
#include "tickets/stripe.h"

/* What the worker is to get for a ticket */
typedef struct SegmentRequest
{
	Oid			ticket;
	char		name[NAMEDATALEN];
	int64		count;			/* how many values */
	int			turn;			/* at which of several sources to begin */
	uint64		generation;		/* of the buffer, when they were taken */
	Stripes		stripes;		/* what is known of the sources */
	int64		started;		/* instaid_monotonic_time() */
} SegmentRequest;

/* instaid.segment_duration, instaid.segment_timeout, both in milliseconds */
extern int	instaid_segment_duration;
extern int	instaid_segment_timeout;
/* instaid.max_buffered_tickets */
extern int	instaid_max_buffered_tickets;

/* for sessions */
extern bool instaid_take_buffered(Relation rel, bool has_source, TicketBlock *block);
extern void instaid_no_buffer_error(Relation rel);
extern void instaid_before_taking(Relation rel, Buffer page, Form_pg_sequence_data data);
extern uint64 instaid_after_taking(Relation rel, Buffer page, Form_pg_sequence_data data);

/* for the worker */
extern bool instaid_attach_worker(void);
extern List *instaid_requests(bool retire, int64 *next_due);
extern void instaid_detach_worker(void);
extern bool instaid_begin_refill(Oid ticket, const char *name, int64 step,
								 SegmentRequest *request);
extern void instaid_publish(const SegmentRequest *request, const TicketBlock *block,
							int64 count, const char *problem);
extern void instaid_refill_failed(const SegmentRequest *request, const char *problem,
								  bool try_again);
extern void instaid_remember_stripes(const SegmentRequest *request);
extern void instaid_forget_buffer(Oid ticket);

extern void instaid_segments_init(void);

#endif							/* INSTAID_SEGMENTS_H */
