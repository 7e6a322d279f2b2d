/* What is there of a move, read from both sides. */
#include <string.h>

#include "move.h"

static PGresult *
read_side(Move *m, Server *s, Server *other, SideEvidence *e)
{
	PGresult   *row = rows(s, &sql_evidence, m->shards, m->name, other->id);

	e->mark = mark_of(column(row, 0, "mark"));
	e->one_way = is_true(row, 0, "one_way");
	e->by_dump = is_true(row, 0, "by_dump");
	e->has_slot = is_true(row, 0, "has_slot");
	e->slot_lost = is_true(row, 0, "slot_lost");
	e->has_subscription = column(row, 0, "subscription") != NULL;
	e->attached = is_true(row, 0, "attached");
	e->enabled = is_true(row, 0, "enabled");
	e->refuses = is_true(row, 0, "refuses");
	e->publishes_all = is_true(row, 0, "publishes_all");
	e->serves = column(row, 0, "serves") != NULL;
	if (column(row, 0, "other"))
		note_error(s, fmt("schema %s belongs to %s, and would refuse writes for ever: drop it", m->name,
						  column(row, 0, "other")));
	s->slot = fmt("%s_%s", m->name, strchr(s->id, '/') + 1);
	s->subscription = column(row, 0, "subscription");
	s->lsn = column(row, 0, "lsn");
	s->time = column(row, 0, "time");
	s->serves = column(row, 0, "serves");
	return row;
}

/* See the state of the move; false if one of the servers has an error. */
bool
read_evidence(Move *m)
{
	SideEvidence *sides[2] = {&m->seen.source, &m->seen.target};
	PGresult   *found[2] = {read_side(m, m->source, m->target, sides[0]), read_side(m, m->target, m->source, sides[1])};

	/*
	 * a subscription that does not know all published tables yet has not
	 * copied them
	 */
	for (int i = 0; i < 2; i++)
		sides[i]->ready = sides[i]->has_subscription && is_true(found[i], 0, "ready")
			&& number_of(found[i], 0, "known") == number_of(found[1 - i], 0, "published");
	m->state = classify(&m->seen);
	return !m->source->error && !m->target->error;
}

/* The command that marks a move from one side to the other */
char *
mark(Move *m, Server *from, Server *to, Mark state, bool one_way)
{
	char	   *command = value(from, &sql_mark, m->shards, m->name, m->frozen, from->id, to->id, mark_names[state],
								one_way ? "t" : "f", m->options.by_dump ? "t" : "f", m->full);

	return command ? command : "SELECT";
}
