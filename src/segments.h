/*-------------------------------------------------------------------------
 *
 * segments.h
 *	  Segments of tickets in shared memory: see segments.c and refill.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef INSTAID_SEGMENTS_H
#define INSTAID_SEGMENTS_H

#include "datatype/timestamp.h"
#include "nodes/pg_list.h"

#include "sequence.h"
#include "stripe.h"
#include "tickets.h"

/* the buffer of a ticket, which only segments.c looks into */
typedef struct TicketBuffer TicketBuffer;

/* What the worker is to get for a ticket */
typedef struct SegmentRequest
{
	Oid			ticket;
	char		name[NAMEDATALEN];
	int64		count;			/* how many values */
	int			turn;			/* at which of several sources to begin */
	uint64		generation;		/* of the buffer, when they were taken */
	Stripes		stripes;		/* what is known of the sources */
	TimestampTz started;
} SegmentRequest;

/* instaid.segment_duration, instaid.segment_timeout, both in milliseconds */
extern int	instaid_segment_duration;
extern int	instaid_segment_timeout;
/* instaid.max_buffered_tickets */
extern int	instaid_max_buffered_tickets;

/* for sessions */
extern bool instaid_take_buffered(Relation rel, bool has_source, int64 *value);
extern void instaid_no_buffer_error(Relation rel);
extern TicketBuffer *instaid_find_buffer(Relation rel, bool create);
extern void instaid_before_taking(TicketBuffer *buffer, Relation rel, Buffer page,
								  Form_pg_sequence_data data);
extern uint64 instaid_after_taking(TicketBuffer *buffer, Buffer page,
								   Form_pg_sequence_data data);

/* for the worker */
extern bool instaid_attach_worker(void);
extern List *instaid_requests(bool retire);
extern SegmentRequest instaid_begin_refill(Oid ticket, const char *name, int64 step);
extern void instaid_publish(const SegmentRequest *request, const TicketBlock *block,
							int64 count, const char *problem);
extern void instaid_refill_failed(const SegmentRequest *request, const char *problem);
extern void instaid_remember_stripes(const SegmentRequest *request);
extern void instaid_forget_buffer(Oid ticket);

extern void instaid_segments_init(void);

#endif							/* INSTAID_SEGMENTS_H */
