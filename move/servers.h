/* The two databases of a move: connections, and what they answer. */
#ifndef MOVE_SERVERS_H
#define MOVE_SERVERS_H

#include <signal.h>
#include <stdbool.h>
#include <libpq-fe.h>

/* exit statuses, which --help describes */
#define FAILED 1
#define USAGE 2
#define DISCONNECTED 3
#define BUSY 4
#define IN_THE_WAY 5
#define DIFFERENT 6
#define BROKEN 7
#define NOT_NOW 8
#define HOOK_FAILED 9

/* the mark of a move that is cleaned up, until its rows are compared; then it is "back" */
#define NOT_COMPARED "back, not compared"

typedef struct Side
{
	const char *name;			/* "source" or "target" */
	const char *conninfo;
	const char *reach;			/* how the other server reaches it */
	PGconn	   *conn;
	char	   *error;			/* of the last command that failed */
	bool		lacks_right;	/* it was refused to this role */
	PGconn	   *snapshot;		/* sees the rows of the switch */
	char	   *id;				/* system identifier/OID of the database */
	char	   *slot;			/* the slot that this move has here */
	/* of the publication that is the mark of a move from here */
	bool		marked;
	char	   *state;
	char	   *lsn;
	bool		one_way;
	/* of the subscription that applies a move to here */
	char	   *sub;			/* its OID */
	bool		enabled;
	bool		has_slot;		/* the slot of a move from here is there */
} Side;

extern void (*at_end) (void);
extern double answer_by;

extern char *fmt(const char *format,...) __attribute__((format(printf, 1, 2)));
extern void say(const char *format,...) __attribute__((format(printf, 1, 2)));
extern void stop(int status, const char *what, const char *why, const char *next)
			__attribute__((noreturn));
extern void *grown(void *array, int count, size_t size);
extern char *append(char *array, const char *element);
extern void stop_busy(Side *side, const char *number, const char *what, const char *next)
			__attribute__((noreturn));
extern void set_command(int *command, int chosen);
extern double number(const char *option, const char *text, double least, double most);
extern double now(void);
extern void nap(double seconds);

extern PGconn *open_connection(Side *side);
extern void prepare_session(Side *side, PGconn *conn);
extern bool try(Side *side, const char *sql);
extern bool try_on(Side *side, PGconn *conn, const char *sql);
extern bool try_secretly(Side *side, const char *sql);
extern void run(Side *side, const char *sql);
extern PGresult *ask(Side *side, const char *sql, int n, const char *const *values);
extern PGresult *query(Side *side, const char *sql, const char *p1, const char *p2);
extern PGresult *try_query(Side *side, const char *sql, const char *p1, const char *p2);
extern char *value(Side *side, const char *sql, const char *p1, const char *p2);
extern bool run_each(Side *side, const char *sql, const char *p1, const char *p2);
extern char *literal(Side *side, const char *text);
extern void send_query(PGconn *conn, const char *sql, const char *p1);
extern PGresult *answer(Side *side, PGconn *conn);
extern char *copy_rows(Side *source, Side *target, const char *table, double *bytes,
					   volatile sig_atomic_t *interrupted);
extern char **differences(PGresult *source, PGresult *target);
extern int	print_lines(char **lines, int at_most);

#endif
