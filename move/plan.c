/*
 * instaid-move --plan: which shards to move where, so that the servers of a list have about
 * the same weight, or some of them no shard.
 *
 * No plan is stored.  The marks of the moves tell a later run what is under way, which it ends
 * first, and it plans the rest as if that were done.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "queries.h"

typedef struct
{
	char	   *name;
	char	   *id;
	double		size,
				weight;
	Server	   *at;
	Server	   *planned;
	bool		stays;			/* by the arguments, or by a move that is not
								 * finished */
	bool		is_small;
	bool		is_done;		/* has been put into a set */
} Shard;

Server	   *servers;
int			server_count;
static Shard *shards;
static int	shard_count;
Move	   *moves;
int			move_count;

int			task = PRINT;
bool		finishes = false;
bool		keeps_way_back = true;
bool		replicates = true;
static const char *weights;
int			jobs = 2;
static int	per_move = 20;
char	   *program;
char	  **passed;				/* the options for each move */
int			passed_count;

const char	plan_usage[] =
"\n"
"  instaid-move --plan --servers FILE [SHARD...] [COMMAND] [OPTION...]\n"
"\n"
"plans moves between several servers, so that each one has the same weight, and prints the\n"
"commands. Only the SHARDs are moved, if there are any. Each line of FILE is the name of a server\n"
"and its connection. A second line for a name tells how the other servers reach it. Commands:\n"
"  --run          make the moves; what is under way comes first\n"
"  --finish       --finish all moves that are made; with --run, each one when it is made\n"
"  --check-only, --status, --cancel\n"
"                 run this for each move\n"
"Options, besides those of each move:\n"
"  --drain NAME         move all shards of this server to the others, and no others\n"
"  --weights QUERY      the weights of a server's shards: rows of schema and number; without it,\n"
"                       a shard weighs its size\n"
"  --per-move N         so many shards are moved, and refused, together (20)\n"
"  --jobs N             so many moves at a time, if the servers have enough slots, WAL senders\n"
"                       and workers for them (2)\n";

#define LIMITS \
	"SELECT current_setting('max_replication_slots')::integer" \
	"  - (SELECT count(*) FROM pg_replication_slots)," \
	" current_setting('max_wal_senders')::integer - (SELECT count(*) FROM pg_stat_replication)," \
	" current_setting('max_logical_replication_workers')::integer" \
	"  - (SELECT count(pid) FROM pg_stat_subscription)," \
	" COALESCE(current_setting('max_active_replication_origins', true)," \
	"  current_setting('max_replication_slots'))::integer - (SELECT count(*) FROM pg_replication_origin)"

#define SIZES \
	"SELECT s.schema_name, s.shard_id, COALESCE(z.size, 0)," \
	" $1::text[] IS NOT NULL AND NOT " MATCHES("s.schema_name::text") \
	" FROM instaid.shards AS s LEFT JOIN" \
	" (SELECT n.nspname, sum(pg_total_relation_size(c.oid)) AS size FROM pg_class AS c" \
	"  JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'm')" \
	"  GROUP BY n.nspname) AS z ON z.nspname = s.schema_name ORDER BY s.shard_id"

/* the shards of each mark */
#define MARKED \
	"SELECT m.pubname, m.f, m.t, m.state, s FROM (" MARKS ") AS m (pubname, f, t, state, lsn, one_way," \
	" json, shards, frozen, is_all) CROSS JOIN LATERAL unnest(m.shards::text[]) AS s"

static void
read_servers(const char *file)
{
	FILE	   *in = fopen(file, "r");
	char	   *line = NULL;
	size_t		room = 0;

	if (!in)
		stop(USAGE, fmt("cannot read %s", file), strerror(errno), NULL);
	for (int n = 1; getline(&line, &room, in) >= 0; n++)
	{
		char	   *name = line + strspn(line, " \t"),
				   *conninfo;
		Server	   *server = NULL;

		line[strcspn(line, "\r\n")] = '\0';
		if (*name == '\0' || *name == '#')
			continue;
		conninfo = name + strcspn(name, " \t");
		if (*conninfo)
			*conninfo++ = '\0';
		conninfo += strspn(conninfo, " \t");
		if (*conninfo == '\0')
			stop(USAGE, fmt("line %d of %s has no connection", n, file), name,
				 "Each line is the name of a server, and its connection string.");
		for (int i = 0; i < server_count; i++)
			if (strcmp(servers[i].name, name) == 0)
				server = &servers[i];
		if (server && server->side.reach)
			stop(USAGE, fmt("line %d of %s is the third one for %s", n, file, name), NULL,
				 "The first is its connection, and the second is how the other servers reach it.");
		if (server)
			server->side.reach = strdup(conninfo);
		else
		{
			servers = grown(servers, server_count + 1, sizeof(Server));
			server = &servers[server_count++];
			memset(server, 0, sizeof(Server));
			server->name = strdup(name);
			server->side.name = fmt("server %s", name);
			server->side.conninfo = strdup(conninfo);
		}
	}
	free(line);
	fclose(in);
	if (server_count < 2)
		stop(USAGE, fmt("%s has fewer than two servers", file), NULL,
			 "Each line is the name of a server, and its connection string.");
}

static Server *
find_server(const char *id)
{
	for (int i = 0; i < server_count; i++)
		if (strcmp(servers[i].side.id, id) == 0)
			return &servers[i];
	return NULL;
}

static Shard *
find_shard(Server *at, const char *name)
{
	for (int i = 0; at && i < shard_count; i++)
		if (shards[i].at == at && strcmp(shards[i].name, name) == 0)
			return &shards[i];
	return NULL;
}

/* Read the shards of a server, with their weights. */
static void
read_shards(Server *server, const char *patterns)
{
	PGresult   *found = query(&server->side, SIZES, patterns, NULL);

	shards = grown(shards, shard_count + PQntuples(found) + 1, sizeof(Shard));
	for (int i = 0; i < PQntuples(found); i++)
	{
		Shard	   *shard = &shards[shard_count++];

		memset(shard, 0, sizeof(Shard));
		shard->name = strdup(PQgetvalue(found, i, 0));
		shard->id = strdup(PQgetvalue(found, i, 1));
		shard->size = atof(PQgetvalue(found, i, 2));
		shard->weight = weights ? 0 : shard->size;
		shard->stays = PQgetvalue(found, i, 3)[0] == 't';
		shard->at = shard->planned = server;
	}
	PQclear(found);
	if (!weights)
		return;
	run(&server->side, "BEGIN READ ONLY");
	found = query(&server->side, fmt("SELECT * FROM (\n%s\n) AS weights", weights), NULL, NULL);
	if (PQnfields(found) != 2)
		stop(USAGE, "--weights must have two columns", fmt("It has %d.", PQnfields(found)),
			 "They are the schema of a shard, and its weight.");
	for (int i = 0; i < PQntuples(found); i++)
	{
		Shard	   *shard = find_shard(server, PQgetvalue(found, i, 0));
		char	   *end;
		double		weight = strtod(PQgetvalue(found, i, 1), &end);

		if (!shard || PQgetisnull(found, i, 1))
			continue;
		if (*end || !isfinite(weight) || weight < 0)
			stop(USAGE, fmt("%s is not a weight", PQgetvalue(found, i, 1)),
				 fmt("It is the one of %s on the %s.", shard->name, server->side.name),
				 "A weight is a number, and not below 0.");
		shard->weight = weight;
	}
	PQclear(found);
	run(&server->side, "COMMIT");
}

static void
add_to(Move *move, Shard *shard, const char *name)
{
	move->shards = grown(move->shards, move->count + 1, sizeof(char *));
	move->shards[move->count++] = strdup(name);
	move->size += shard ? shard->size : 0;
}

static Move *
add_move(Server *from, Server *to)
{
	Move	   *move;

	moves = grown(moves, move_count + 1, sizeof(Move));
	move = &moves[move_count++];
	memset(move, 0, sizeof(Move));
	move->from = from;
	move->to = to;
	return move;
}

/*
 * Read the marks of a server: those of moves that are switched first, since the source of such a
 * move may still have the mark of before.  Their shards stay where the moves have them at their
 * end, and the copies do not count.
 */
static void
read_moves(Server *server, bool are_switched)
{
	PGresult   *found = query(&server->side, MARKED, NULL, NULL);

	for (int i = 0; i < PQntuples(found); i++)
	{
		char	   *mark = PQgetvalue(found, i, 0),
				   *state = PQgetvalue(found, i, 3),
				   *name = PQgetvalue(found, i, 4);
		bool		is_moved = strcmp(state, "back") == 0;
		bool		is_uncompared = strcmp(state, NOT_COMPARED) == 0;
		bool		is_target = is_moved || is_uncompared || strcmp(state, "switched") == 0;
		bool		is_left = strcmp(state, "left") == 0;
		Server	   *other = find_server(PQgetvalue(found, i, 2));
		Server	   *from = is_target ? other : server,
				   *to = is_target ? server : other,
				   *owner = is_left ? other : server;
		Shard	   *shard,
				   *copy;
		Move	   *move = NULL;
		bool		is_known = false;

		if (strcmp(PQgetvalue(found, i, 1), server->side.id) != 0)
			stop(IN_THE_WAY, fmt("publication %s of the %s is not of this database", mark,
								 server->side.name), "It is the mark of a move from another one: a copy?",
				 fmt("If it is a copy, DROP PUBLICATION %s.", mark));

		/*
		 * "prepared" is the way back of a move that the other server's mark
		 * tells
		 */
		if (strcmp(state, "prepared") == 0 || (is_target || is_left) != are_switched)
			continue;
		for (int n = 0; n < move_count; n++)
			if (moves[n].from == from && moves[n].to == to && strcmp(moves[n].mark, mark) == 0)
				move = &moves[n];
		if (move && move->state != BEGUN && !are_switched)
			continue;
		shard = find_shard(owner, name);
		copy = find_shard(owner == server ? other : server, name);
		if (copy)
			copy->at = copy->planned = NULL;
		if (shard)
		{
			shard->stays = true;
			shard->planned = other ? to : shard->at;
		}
		/* a move to or from a server that is not of the plan */
		if (!other)
			continue;
		if (!move)
		{
			move = add_move(from, to);
			move->mark = strdup(mark);
			move->state = is_moved ? MOVED : is_uncompared ? UNCOMPARED : are_switched ? SWITCHED : BEGUN;
		}
		/* both sides have a mark of it for a while */
		for (int n = 0; n < move->count; n++)
			is_known |= strcmp(move->shards[n], name) == 0;
		if (!is_known)
			add_to(move, shard, name);
	}
	PQclear(found);
}

/* Forget copies, and see that no shard is on two servers. */
static void
check_shards(void)
{
	int			kept = 0;

	for (int i = 0; i < shard_count; i++)
		if (shards[i].at)
			shards[kept++] = shards[i];
	shard_count = kept;
	for (int i = 0; i < shard_count; i++)
		for (int j = 0; j < i; j++)
			if (strcmp(shards[i].id, shards[j].id) == 0)
				stop(IN_THE_WAY, fmt("shard ID %s is on two servers", shards[i].id),
					 fmt("It is %s of the %s, and %s of the %s.", shards[j].name,
						 shards[j].at->side.name, shards[i].name, shards[i].at->side.name),
					 "Only one of them can have it: drop or renumber the other.");
}

static int
by_weight(const void *a, const void *b)
{
	const Shard *x = a,
			   *y = b;

	return x->weight < y->weight ? 1 : x->weight > y->weight ? -1 : atoi(x->id) - atoi(y->id);
}

static void
put(Shard *shard, Server *to)
{
	shard->planned->planned_count--;
	shard->planned->planned_weight -= shard->weight;
	shard->planned->small -= shard->is_small;
	shard->planned = to;
	to->planned_count++;
	to->planned_weight += shard->weight;
	to->small += shard->is_small;
}

/* The server that gets the next shard: the lightest one, or the one with the fewest small ones */
static Server *
emptiest(bool is_small)
{
	Server	   *best = NULL;

	for (int i = 0; i < server_count; i++)
	{
		Server	   *server = &servers[i];

		if (!server->is_drained
			&& (!best || (is_small ? server->small < best->small :
						  server->planned_weight < best->planned_weight)))
			best = server;
	}
	return best;
}

static bool
may_go(Shard *shard, Server *from)
{
	return !shard->stays && shard->at == from && shard->planned == from;
}

/* Spread small shards by their number: they are filled later. */
static void
spread_small(void)
{
	for (;;)
	{
		Server	   *to = emptiest(true);
		Shard	   *best = NULL;

		for (int i = 0; i < shard_count; i++)
			if (shards[i].is_small && may_go(&shards[i], shards[i].at)
				&& (!best || shards[i].at->small > best->at->small))
				best = &shards[i];
		if (!best || best->at->small - to->small <= 1 + to->small / 20)
			return;
		put(best, to);
	}
}

/* Move large shards, as few as help: each one brings two servers nearer to the mean. */
static void
balance(double mean)
{
	for (;;)
	{
		Server	   *to = emptiest(false);
		Shard	   *best = NULL;

		for (int i = 0; i < server_count; i++)
		{
			Server	   *from = &servers[i];
			double		above = from->planned_weight - mean,
						below = mean - to->planned_weight,
						room = above < below ? above : below,
						apart = above + below;

			if (from->planned_weight < mean * 1.05
				|| (best && best->at->planned_weight >= from->planned_weight))
				continue;

			/*
			 * the heaviest that fits, or one that is too heavy and still
			 * worth it
			 */
			for (int n = 0; n < shard_count; n++)
				if (may_go(&shards[n], from) && !shards[n].is_small && shards[n].weight > 0
					&& (shards[n].weight <= room || shards[n].weight * 1.75 < apart))
				{
					if (!best || best->at != from || best->weight > room)
						best = &shards[n];
					if (best->weight <= room)
						break;
				}
		}
		if (!best)
			return;
		put(best, to);
	}
}

static void
plan_moves(void)
{
	double		total = 0;
	int			active = 0;
	bool		drains = false;

	for (int i = 0; i < server_count; i++)
	{
		active += !servers[i].is_drained;
		drains |= servers[i].is_drained;
	}
	if (active == 0)
		stop(USAGE, "all servers are drained", NULL, "Name those to --drain that are to be emptied.");
	qsort(shards, shard_count, sizeof(Shard), by_weight);
	for (int i = 0; i < shard_count; i++)
		total += shards[i].weight;
	for (int i = 0; i < shard_count; i++)
	{
		Shard	   *shard = &shards[i];

		shard->is_small = shard->weight * shard_count <= total / 10;
		shard->at->count++;
		shard->at->weight += shard->weight;
		shard->planned->planned_count++;
		shard->planned->planned_weight += shard->weight;
		shard->planned->small += shard->is_small;
	}
	for (int i = 0; i < shard_count; i++)
		if (shards[i].at->is_drained && may_go(&shards[i], shards[i].at))
			put(&shards[i], emptiest(shards[i].is_small));
	if (!drains)
	{
		spread_small();
		balance(total / active);
	}
}

/* Put the shards that go the same way into sets, the largest first; a large one moves alone. */
static void
make_sets(void)
{
	for (int i = 0; i < shard_count; i++)
	{
		Move	   *move;

		if (shards[i].stays || shards[i].planned == shards[i].at || shards[i].is_done)
			continue;
		move = add_move(shards[i].at, shards[i].planned);
		for (int n = i; n < shard_count && move->count < per_move; n++)
		{
			Shard	   *shard = &shards[n];

			if (shard->at != move->from || shard->planned != move->to || shard->stays
				|| shard->is_done
				|| (move->count > 0 && move->size + shard->size > 1024.0 * 1024 * 1024))
				continue;
			add_to(move, shard, shard->name);
			shard->is_done = true;
		}
	}
}

/* A weight for people */
static char *
amount(double weight, bool is_size)
{
	static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
	int			unit = 0;

	if (!is_size)
		return fmt("weight %.6g", weight);
	for (; weight >= 10240 && unit < 4; unit++)
		weight /= 1024;
	return fmt("%.0f %s", weight, units[unit]);
}

/* Does this run have something to do with a move? */
bool
is_wanted(Move *move)
{
	switch (task)
	{
		case SHOW:
			return move->mark != NULL;
		case UNDO:
			return move->state == BEGUN;
		case CHECK:
			return move->state == NEW;
		default:
			return move->state == MOVED ? finishes : task == RUN || !finishes;
	}
}

static void
print_plan(void)
{
	static const char *const states[] = {"new", "begun", "switched, not cleaned up",
	"moved, not compared", "moved"};
	int			new_moves = 0;
	int			to_move = 0;
	int			moved = 0;
	double		size = 0;

	for (int i = 0; i < server_count; i++)
		printf("# %s: %d shards, %s; then %d shards, %s%s\n", servers[i].name, servers[i].count,
			   amount(servers[i].weight, !weights), servers[i].planned_count,
			   amount(servers[i].planned_weight, !weights), servers[i].is_drained ? "; drained" : "");
	for (int i = 0; i < move_count; i++)
		if (moves[i].state == NEW)
		{
			new_moves++;
			to_move += moves[i].count;
			size += moves[i].size;
		}
		else
		{
			printf("# under way: %d shards from %s to %s, %s\n", moves[i].count, moves[i].from->name,
				   moves[i].to->name, states[moves[i].state]);
			moved += moves[i].state == MOVED;
		}
	printf("# %d move%s of %d shard%s, %s\n", new_moves, new_moves == 1 ? "" : "s", to_move,
		   to_move == 1 ? "" : "s", amount(size, true));
	for (int i = 0; i < server_count; i++)
		if (servers[i].is_drained && servers[i].planned_count > 0)
			printf("# %s keeps %d shards: the arguments leave them out, or another move has them\n",
				   servers[i].name, servers[i].planned_count);
	if (moved > 0 && !finishes)
		printf("# %d move%s made: the shards stay until --finish\n", moved, moved == 1 ? " is" : "s are");
	fflush(stdout);
}

int
plan(int argc, char **argv)
{
	enum
	{
		O_PLAN = 1000, O_SERVERS, O_DRAIN, O_WEIGHTS, O_JOBS, O_PER_MOVE, O_FINISH, O_HELP, O_ONE_WAY,
		O_DUMP, O_PASS
	};
	static const struct option options[] = {
		{"plan", no_argument, NULL, O_PLAN}, {"servers", required_argument, NULL, O_SERVERS},
		{"drain", required_argument, NULL, O_DRAIN}, {"weights", required_argument, NULL, O_WEIGHTS},
		{"jobs", required_argument, NULL, O_JOBS}, {"per-move", required_argument, NULL, O_PER_MOVE},
		{"run", no_argument, NULL, RUN}, {"check-only", no_argument, NULL, CHECK},
		{"status", no_argument, NULL, SHOW}, {"cancel", no_argument, NULL, UNDO},
		{"finish", no_argument, NULL, O_FINISH}, {"help", no_argument, NULL, O_HELP},
		{"one-way", no_argument, NULL, O_ONE_WAY}, {"dump", no_argument, NULL, O_DUMP},
		{"max-wait", required_argument, NULL, O_PASS}, {"max-stop", required_argument, NULL, O_PASS},
		{"on-switch", required_argument, NULL, O_PASS}, {"no-verify", no_argument, NULL, O_PASS},
		{"trust", required_argument, NULL, O_PASS},
		{NULL, 0, NULL, 0}
	};
	const char *file = NULL;
	char	  **drained = calloc(argc + 1, sizeof(char *));
	int			drained_count = 0,
				option,
				which = 0;
	char	   *patterns = NULL,
			   *missing;

	program = argv[0];
	passed = calloc(2 * argc + 1, sizeof(char *));
	while ((option = getopt_long(argc, argv, "", options, &which)) != -1)
		switch (option)
		{
			case O_PLAN:
				break;
			case O_SERVERS:
				file = optarg;
				break;
			case O_DRAIN:
				drained[drained_count++] = optarg;
				break;
			case O_WEIGHTS:
				weights = optarg;
				break;
			case O_JOBS:
				jobs = number("jobs", optarg, 1, 64);
				break;
			case O_PER_MOVE:
				per_move = number("per-move", optarg, 1, 8192);
				break;
			case O_FINISH:
				finishes = true;
				break;
			case O_HELP:
				fputs(plan_usage + 1, stdout);
				return 0;
			case O_ONE_WAY:
			case O_DUMP:
			case O_PASS:
				keeps_way_back &= option == O_PASS;
				replicates &= option != O_DUMP;
				passed[passed_count++] = fmt("--%s", options[which].name);
				if (optarg)
					passed[passed_count++] = optarg;
				break;
			case '?':
				return USAGE;
			default:
				set_command(&task, option);
		}
	if (!file)
		stop(USAGE, "--plan needs --servers", NULL, "See --help.");
	if (finishes && task != RUN)
		set_command(&task, PRINT);
	read_servers(file);
	for (int i = 0; i < drained_count; i++)
	{
		int			n = 0;

		while (n < server_count && strcmp(servers[n].name, drained[i]) != 0)
			n++;
		if (n == server_count)
			stop(USAGE, fmt("%s has no server %s", file, drained[i]), NULL,
				 "--drain takes a name of that file.");
		servers[n].is_drained = true;
	}
	for (; optind < argc; optind++)
		patterns = append(patterns, argv[optind]);
	missing = patterns;

	for (int i = 0; i < server_count; i++)
	{
		Side	   *side = &servers[i].side;
		PGresult   *limits;
		char	   *got;

		side->conn = open_connection(side);
		side->id = value(side, WHO, NULL, NULL);
		for (int n = 0; n < i; n++)
			if (strcmp(servers[n].side.id, side->id) == 0)
				stop(USAGE, fmt("%s and %s are one database", servers[n].name, servers[i].name), side->id,
					 NULL);
		/* one plan at a time; the moves have locks of their own */
		if (task == RUN || finishes)
		{
			got = value(side, "SELECT pg_try_advisory_lock(hashtext('instaid-move'), -2)", NULL, NULL);
			if (got[0] != 't')
				stop_busy(side, "-2", "another plan is run", "Wait for it, or end the session with pg_terminate_backend().");
			free(got);
		}
		limits = query(side, LIMITS, NULL, NULL);
		for (int r = 0; r < RESOURCES; r++)
			servers[i].free[r] = atoi(PQgetvalue(limits, 0, r));
		PQclear(limits);
		read_shards(&servers[i], patterns);
		if (missing)
			missing = value(side, UNMATCHED, missing, NULL);
	}
	if (missing)
		stop(IN_THE_WAY, fmt("no server has such a shard: %s", value(&servers[0].side, SHOWN, missing, NULL)), NULL,
			 "SELECT schema_name FROM instaid.shards lists them.");
	for (int i = 0; i < 2 * server_count; i++)
		read_moves(&servers[i % server_count], i < server_count);
	check_shards();
	plan_moves();
	make_sets();
	print_plan();
	if (task == PRINT && !finishes)
	{
		for (int i = 0; i < move_count; i++)
			if (is_wanted(&moves[i]))
				print_command(&moves[i]);
		return 0;
	}
	if (task == RUN || task == CHECK)
		check_room();
	if (task == RUN)
		say("up to %d moves at a time", jobs);
	return run_moves();
}
