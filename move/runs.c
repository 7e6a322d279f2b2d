/*
 * The moves of instaid-move --plan: each one is a run of this program for a set of shards that go
 * from one server to another.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "plan.h"

static const char *const resources[] = {
	"free replication slots (max_replication_slots)", "free WAL senders (max_wal_senders)",
	"free logical replication workers (max_logical_replication_workers)",
	"free origins of subscriptions (max_replication_slots, from 18 max_active_replication_origins)"
};

/* what a move needs of source and target while it runs, and what its way back keeps until --finish */
static const int copy_needs[2][RESOURCES] = {{5, 5, 0, 0}, {0, 0, 3, 3}};
static const int way_back_needs[2][RESOURCES] = {{0, 0, 1, 1}, {1, 1, 0, 0}};

/* The arguments of a move's run, up to a null */
static char **
arguments(Move *move)
{
	char	  **args = grown(NULL, passed_count + move->count + 16, sizeof(char *));
	int			n = 0;

	args[n++] = program;
	args[n++] = "--from";
	args[n++] = (char *) move->from->side.conninfo;
	args[n++] = "--to";
	args[n++] = (char *) move->to->side.conninfo;
	if (move->from->side.reach)
	{
		args[n++] = "--source-for-target";
		args[n++] = (char *) move->from->side.reach;
	}
	if (move->to->side.reach)
	{
		args[n++] = "--target-for-source";
		args[n++] = (char *) move->to->side.reach;
	}
	if (move->finishes || task == CHECK || task == SHOW || task == UNDO)
		args[n++] = move->finishes ? "--finish" : task == CHECK ? "--check-only" :
			task == SHOW ? "--status" : "--cancel";
	for (int i = 0; i < passed_count; i++)
		args[n++] = passed[i];
	args[n++] = "--";
	for (int i = 0; i < move->count; i++)
		args[n++] = move->shards[i];
	args[n] = NULL;
	return args;
}

/* Print a command for the shell. */
void
print_command(Move *move)
{
	char	  **args = arguments(move);

	for (int i = 0; args[i]; i++)
	{
		printf("%s", i ? " " : "");
		if (args[i][0] && !args[i][strspn(args[i], "abcdefghijklmnopqrstuvwxyz"
										  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@,")])
		{
			printf("%s", args[i]);
			continue;
		}
		putchar('\'');
		for (char *c = args[i]; *c; c++)
			if (*c == '\'')
				printf("'\\''");
			else
				putchar(*c);
		putchar('\'');
	}
	putchar('\n');
	free(args);
}

/* Take what a move needs from what is free, or give it back. */
static void
account(Move *move, int sign, bool is_end)
{
	for (int r = 0; r < RESOURCES; r++)
	{
		move->from->free[r] += sign * copy_needs[0][r] * replicates;
		move->to->free[r] += sign * copy_needs[1][r] * replicates;
		/* the way back stays, unless it is finished */
		if (keeps_way_back && !(is_end && !finishes))
		{
			move->from->free[r] += sign * way_back_needs[0][r];
			move->to->free[r] += sign * way_back_needs[1][r];
		}
	}
}

static bool
fits(Move *move)
{
	for (int r = 0; r < RESOURCES; r++)
		for (int i = 0; i < 2; i++)
			if ((i ? move->to : move->from)->free[r] < copy_needs[i][r] * replicates
				+ (keeps_way_back ? way_back_needs[i][r] : 0))
				return false;
	return true;
}

/* See that the ways back of all moves find room. */
void
check_room(void)
{
	int			faults = 0;

	for (int i = 0; i < server_count && keeps_way_back && !finishes; i++)
		for (int r = 0; r < RESOURCES; r++)
		{
			int			needed = 0;

			for (int n = 0; n < move_count; n++)
				for (int side = 0; side < 2 && moves[n].state == NEW; side++)
					if ((side ? moves[n].to : moves[n].from) == &servers[i])
						needed += way_back_needs[side][r];
			if (needed <= servers[i].free[r])
				continue;
			printf("  ! the ways back need %d of the %d %s of the %s until --finish\n", needed,
				   servers[i].free[r], resources[r], servers[i].side.name);
			faults++;
		}
	if (faults)
		stop(IN_THE_WAY, "the servers have no room for so many ways back",
			 "Each move keeps one until it is finished. Nothing was changed.",
			 "Raise the settings above, move more shards together by --per-move, or run with --finish, or"
			 " with --one-way.");
}

static void
start(Move *move)
{
	char	  **args = arguments(move);
	int			out[2];
	pid_t		parent = getpid();

	fflush(stdout);
	if (pipe(out) != 0 || (move->pid = fork()) < 0)
		stop(FAILED, "cannot start a move", strerror(errno), "Run the same command again.");
	if (move->pid == 0)
	{
#ifdef __linux__
		/* a move does not go on when nobody sees it */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(1);
#endif
		(void) parent;
		dup2(out[1], 1);
		dup2(out[1], 2);
		close(out[0]);
		close(out[1]);
		setenv("INSTAID_MOVE_FROM", move->from->name, 1);
		setenv("INSTAID_MOVE_TO", move->to->name, 1);
		execvp(args[0], args);
		printf("cannot run %s: %s\n", args[0], strerror(errno));
		fflush(stdout);
		_exit(127);
	}
	close(out[1]);
	move->out = out[0];
	move->run = RUNNING;
	free(args);
}

/* Print what a run prints, by whole lines.  Returns whether it has ended, and its exit status. */
static bool
read_output(Move *move, int number, int *status)
{
	ssize_t		got = read(move->out, move->line + move->length, sizeof(move->line) - 1 - move->length);
	char	   *line = move->line,
			   *end;

	if (got < 0 && errno == EINTR)
		return false;
	move->length += got > 0 ? got : 0;
	move->line[move->length] = '\0';
	/* the rest of a line that is too long, or of the last one */
	if (move->length > 0 && (got <= 0 || move->length == sizeof(move->line) - 1)
		&& !strchr(move->line, '\n'))
		move->line[move->length - 1] = '\n';
	while ((end = strchr(line, '\n')))
	{
		printf("[%d %s > %s] %.*s\n", number, move->from->name, move->to->name, (int) (end - line),
			   line);
		line = end + 1;
	}
	fflush(stdout);
	move->length -= line - move->line;
	memmove(move->line, line, move->length);
	if (got > 0)
		return false;
	close(move->out);
	waitpid(move->pid, status, 0);
	*status = WIFEXITED(*status) ? WEXITSTATUS(*status) : FAILED;
	return true;
}

/* Run all moves that are wanted; returns the exit status. */
int
run_moves(void)
{
	int			made = 0,
				failed = 0,
				first = 0,
				running = 0;

	for (;;)
	{
		struct pollfd fds[64];
		Move	   *polled[64];
		int			n = 0;

		/* a cause that is not in one move stops the others, too */
		for (int i = 0; i < move_count && running < jobs && failed < 3; i++)
			if (moves[i].run == WAITING && is_wanted(&moves[i])
				&& (task != RUN || running == 0 || fits(&moves[i])))
			{
				moves[i].finishes = moves[i].state == MOVED && task != SHOW;
				account(&moves[i], -1, false);
				start(&moves[i]);
				running++;
			}
		for (int i = 0; i < move_count; i++)
			if (moves[i].run == RUNNING)
			{
				fds[n].fd = moves[i].out;
				fds[n].events = POLLIN;
				polled[n++] = &moves[i];
			}
		if (n == 0)
			break;
		if (poll(fds, n, -1) < 0)
			continue;
		for (int i = 0; i < n; i++)
		{
			Move	   *move = polled[i];
			int			status;

			if (!fds[i].revents || !read_output(move, (int) (move - moves) + 1, &status))
				continue;
			if (status == 0 && task == RUN && finishes && !move->finishes)
			{
				move->finishes = true;
				start(move);
				continue;
			}
			move->run = ENDED;
			running--;
			account(move, 1, true);
			made += status == 0;
			failed += status != 0;
			if (!first)
				first = status;
			if (status != 0)
				say("move %d, %s > %s, failed with exit status %d", (int) (move - moves) + 1,
					move->from->name, move->to->name, status);
		}
	}
	if (task == RUN || failed)
	{
		int			left = 0;

		for (int i = 0; i < move_count; i++)
			left += moves[i].run == WAITING && is_wanted(&moves[i]);
		say("%d of %d moves made%s%s", made, made + failed + left,
			failed ? fmt(", %d failed: remove the causes above, and run the same command again", failed) :
			"", failed || finishes ? "" : "; next: --plan --finish");
	}
	return first;
}
