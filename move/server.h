/*
 * A database of a move: its connection, and what it answers.
 *
 * The first error of a server stays: until forget_error(), nothing more is sent to it, rows() has none, value() is
 * null and run() is false.  So a step reads from top to bottom, and asks at its end what has gone wrong.  No function
 * here ends the program, which gives back its memory when it ends.
 */
#ifndef MOVE_SERVER_H
#define MOVE_SERVER_H

#include <stdbool.h>
#include <libpq-fe.h>

#include "sql.h"

/* states of our own, beside the SQLSTATEs of servers, which have some for other connections */
#define NO_CONNECTION "-CONN"
#define LOST "-LOST"
#define SILENT "-WAIT"

typedef struct Server
{
	const char *name;			/* "source" or "target" */
	const char *conninfo;
	const char *reach;			/* how the other server reaches it */
	PGconn	   *conn;
	PGconn	   *reader;			/* compares rows */
	bool		is_prepared[QUERIES];
	char	   *id;				/* system identifier/OID of the database */
	char	   *started;		/* tells it from its standbys */
	char	   *edition;		/* of instaid there, and its version */
	double		answer_by;		/* when to stop waiting for it; 0: never */
	char	   *error;			/* the first one, with the server's name */
	char		sqlstate[6];

	/* what it has of the move at work, besides the evidence */
	char	   *slot;			/* the name of the one of a move from here */
	char	   *subscription;	/* the OID of the one of a move to here */
	char	   *lsn;			/* of its mark */
	char	   *time;			/* of its mark */
	char	   *serves;			/* shards that it serves */

	/* of its definitions when they were compared in this run */
	char	   *fingerprint_query;
	bool		is_asked;		/* for the fingerprint, and nothing since */
	char	   *fingerprint;
} Server;

extern char *fmt(const char *format,...) __attribute__((format(printf, 1, 2)));
extern int	control_at(const char **at);
extern const char *plain(const char *text);
extern const char *quoted(const char *text);
extern void say(const char *format,...) __attribute__((format(printf, 1, 2)));
extern double now(void);
extern void nap(double seconds);
extern void *grown(void *array, int count, size_t size);
extern char *append(const char *array, const char *element);
extern char *column(PGresult *rows, int row, const char *name);
extern bool is_true(PGresult *rows, int row, const char *name);
extern double number_of(PGresult *rows, int row, const char *name);

extern bool server_connect(Server *s);
extern bool open_reader(Server *s);
extern bool is_lost(const Server *s);
extern void forget_error(Server *s);
extern void note_error(Server *s, const char *error);
extern bool reset_session(Server *s);
extern PGresult *rows(Server *s, const Query *query,...);
extern char *value(Server *s, const Query *query,...);
extern bool run_each(Server *s, const Query *query,...);
extern bool run(Server *s, const char *format,...) __attribute__((format(printf, 2, 3)));
extern bool run_text(Server *s, const char *text);
extern bool run_secretly(Server *s, const char *format,...) __attribute__((format(printf, 2, 3)));
extern void send_text(Server *s, PGconn *conn, const char *text, const char *parameter);
extern PGresult *receive(Server *s, PGconn *conn);
extern PGresult *judged(Server *s, PGconn *conn, PGresult *result);
extern PGresult *rows_of_text(Server *s, PGconn *conn, const char *text);
extern char *literal(Server *s, const char *text);

#endif
