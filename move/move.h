/* A move, and what the parts of the program do for it. */
#ifndef MOVE_H
#define MOVE_H

#include <signal.h>

#include "server.h"
#include "state.h"

/* exit statuses, which --help describes */
enum
{
	DONE, FAILED, USAGE, DISCONNECTED, BUSY, IN_THE_WAY, DIFFERENT, BROKEN, NOT_NOW, HOOK_FAILED
};

typedef struct Options
{
	double		max_wait;
	double		max_stop;
	const char *hook;
	const char *trusted;		/* an array of roles, or null */
	bool		one_way;
	bool		by_dump;
	bool		full_identity;	/* for tables without a replica identity */
	bool		compares;		/* the rows after the switch */
	bool		reverse;
	bool		json;
} Options;

struct Move
{
	Options		options;
	Server	   *source;
	Server	   *target;
	char	   *name;			/* of the publications, the subscriptions and
								 * the schemas that refuse writes */
	char	   *shards;			/* arrays */
	char	   *frozen;			/* those that were frozen before */
	char	   *full;			/* tables with REPLICA IDENTITY FULL for the
								 * time of the move, behind what they had */
	char	   *shown;
	Evidence	seen;
	MoveState	state;
	bool		has_snapshots;	/* of the switch */
	bool		may_be_told;	/* --on-switch, that the shards are switched:
								 * a killed run may have */
	int			findings;		/* of the check, and those that are in the way */
	int			errors;

	/* what has gone wrong */
	const char *what;
	const char *why;
	const char *next;
};

/* set by a signal while writes are refused */
extern volatile sig_atomic_t interrupted;

/* the tests compile the program with a function that can kill it */
#ifdef INSTAID_MOVE_STEP
extern void INSTAID_MOVE_STEP(const char *name);
#define kill_point(name) INSTAID_MOVE_STEP(name)
#else
#define kill_point(name) ((void) 0)
#endif

/* main.c */
extern int	fail(Move *m, int status, const char *what, const char *why, const char *next);
extern const char *who_locks(Move *m, Server *s);
extern int	settled(Move *m, const char *what);
extern const char *busy_session(Server *s, const char *number);
extern void show_status(Move *m);

/* evidence.c */
extern bool read_evidence(Move *m);
extern char *mark(Move *m, Server *from, Server *to, Mark mark, bool one_way);

/* steps.c */
extern bool patiently(Move *m, Server *s, const Query *query, const char *shards);
extern bool has_confirmed(Move *m, Server *from, double until);
extern int	follow(Move *m, double until, bool *has_changed);
extern int	set_connection(Move *m);
extern int	unreachable(Move *m, Server *s, Server *other, const char *what);
extern char *worker_message(Move *m, Server *s);
extern const char *reach_option(Move *m, Server *s);

/* stop.c */
extern int	switch_over(Move *m);

/* dump.c */
extern int	rehearse(Move *m);
extern int	copy_shards(Move *m);

/* definitions.c */
extern int	restore(Move *m, const char *section);
extern int	make_shards(Move *m);
extern int	compare_definitions(Move *m);
extern int	compare_arrived(Move *m);
extern void ask_fingerprint(Server *s);
extern bool are_unchanged(Move *m);
extern bool drop_copy(Move *m);

/* rows.c */
extern char **differences(PGresult *source, PGresult *target);
extern int	print_lines(char **lines, int at_most);
extern int	compare_rows(Move *m, PGconn *of_source, PGconn *of_target, bool is_quiet);
extern char *positions_query(Move *m);

/* check.c */
extern int	check(Move *m);
extern int	trust_again(Move *m, Server *of);
extern int	show_findings(Move *m, PGresult *found);
extern bool reaches(Server *s, Server *other);
extern void print_json(const char *text);

#endif
