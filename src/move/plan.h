/* Which shards to move where, between several servers. */
#ifndef MOVE_PLAN_H
#define MOVE_PLAN_H

extern const char plan_usage[];
extern int	plan(int argc, char **argv);

#endif
