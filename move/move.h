/* A move: what it is called, and what each part of the program does for it. */
#ifndef MOVE_H
#define MOVE_H

#include "servers.h"

/* the test of 040_move.pl compiles it with a function that can kill */
#ifdef INSTAID_MOVE_STEP
extern void INSTAID_MOVE_STEP(const char *name);
#define step(name) INSTAID_MOVE_STEP(name)
#else
#define step(name) ((void) 0)
#endif

/* the two sides, whose connections --reverse exchanges */
extern Side *const from;
extern Side *const to;

/* options */
extern bool one_way,
			by_dump,
			verify_rows,
			reverse;
extern double max_wait,
			max_stop;
extern const char *hook;
extern char *trusted;			/* an array of roles, or null */

/* the move at work: what its publications and subscriptions are called, and its shards */
extern char *name,
		   *shards,
		   *frozen,				/* those that were frozen before the move */
		   *shown;

/* instaid-move.c: the states */
extern char *mark(Side *f, Side *t, const char *state, bool is_one_way);
extern void set(char **variable, const char *text);
extern void look_at(Side *side);
extern void look(void);
extern bool is_state(Side *side, const char *state);
extern bool is_moved(Side *side);

/* definitions.c */
extern bool are_unchanged(void);
extern int	compare_definitions(void);
extern char *unreachable(Side *side, Side *other);
extern bool can_reach(Side *side, Side *other);
extern void check(void);
extern bool restore(const char *section);
extern bool drop_copy(Side *side);
extern void rehearse(void);
extern void define(void);

/* replication.c */
extern char *publication(Side *f, Side *t, const char *state, bool is_one_way);
extern void drop_publication(Side *side);
extern void create_slot(Side *side);
extern void set_connection(void);
extern char *worker_message(Side *side);
extern void follow(double until);
extern void drop_slots(Side *slots, Side *sub);
extern void detach(Side *sub);
extern void drop_way_back(Side *f, Side *t);
extern void prepare_way_back(void);
extern bool wait_for_copy(Side *f, double until);

/* switch.c */
extern volatile sig_atomic_t interrupted;
extern void run_patiently(Side *side, const char *sql, const char *what);
extern void take_back(void);
extern void open_readers(void);
extern int	verify(PGconn *of_source, PGconn *of_target, bool is_quiet);
extern void switch_over(void);
extern void clean_up(void);

#endif
