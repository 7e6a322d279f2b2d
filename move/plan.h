/* Several servers: plan.c says which shards move where, and runs.c runs the moves. */
#ifndef MOVE_PLAN_H
#define MOVE_PLAN_H

#include <sys/types.h>

#include "servers.h"

/* what a server has little of, in the order of LIMITS */
enum
{
	SLOTS, SENDERS, WORKERS, ORIGINS, RESOURCES
};

typedef struct
{
	Side		side;			/* its name, connections and database */
	char	   *name;			/* in the file */
	bool		is_drained;
	int			free[RESOURCES];
	/* now, and as planned */
	int			count,
				planned_count;
	double		weight,
				planned_weight;
	int			small;			/* planned */
} Server;

/* A move that is under way, or to be made */
typedef struct
{
	Server	   *from,
			   *to;
	char	   *mark;			/* the name of its publication, or null */
	enum
	{
		NEW, BEGUN, SWITCHED, UNCOMPARED, MOVED
	}			state;
	char	  **shards;
	int			count;
	double		size;
	/* its run */
	enum
	{
		WAITING, RUNNING, ENDED
	}			run;
	bool		finishes;		/* runs --finish */
	pid_t		pid;
	int			out;
	char		line[4096];
	size_t		length;
} Move;

enum
{
	PRINT, RUN, CHECK, SHOW, UNDO
};
extern Server *servers;
extern int	server_count;
extern Move *moves;
extern int	move_count;
extern int	task;
extern bool finishes;
extern bool keeps_way_back;
extern bool replicates;
extern int	jobs;
extern char *program;
extern char **passed;			/* the options for each move */
extern int	passed_count;

/* plan.c */
extern const char plan_usage[];
extern int	plan(int argc, char **argv);
extern bool is_wanted(Move *move);

/* runs.c */
extern void print_command(Move *move);
extern void check_room(void);
extern int	run_moves(void);

#endif
