# The benchmark: every generator that there is does the same work, in turns.
# Started by test/lib/run.  SCALE (default 1) makes it smaller or larger.
#
# The result is a line for each turn, in SCRATCH/result; bench/report.pl makes
# tables of it.

set -eu
. test/lib/private.sh

load=$(cut -d ' ' -f 1-3 /proc/loadavg 2>/dev/null || :)	# before it builds anything
scale=${SCALE:-1}
tab=$(printf '\t')

# scaled NUMBER LEAST: the number times SCALE, at least LEAST
scaled()
{
	awk -v n="$1" -v least="$2" -v s="$scale" 'BEGIN { n = int(n * s + 0.5); print (n > least ? n : least) }'
}

rows=$(scaled 1000000 1600)
rounds=$(awk -v s="$scale" 'BEGIN { print (s < 0.1 ? 1 : s < 1 ? 3 : 5) }')
# how long clients go on: seconds, or when that is less than one, transactions
if [ "$(scaled 2 0)" -ge 1 ]; then
	length="-T $(scaled 2 1)"
else
	length="-t $(scaled 200 3)"
fi

# sql: run statements, print values with spaces between
sql()
{
	psql -XqAt -F ' ' -v ON_ERROR_STOP=1 "$@"
}

# Settings that let no generator pay for another: the tables fit into memory,
# checkpoints and vacuums do not fall into one turn.  Durability is as by
# default: fsync and synchronous_commit are on.  Turns are short, and connections
# live long, so that no turn pays for loading the library.
settings="shared_preload_libraries=instaid_tickets shared_buffers=2GB work_mem=512MB max_connections=100 max_wal_size=16GB min_wal_size=4GB
	checkpoint_timeout=1h autovacuum=off jit=off max_parallel_workers_per_gather=0 timezone=UTC client_min_messages=warning"

echo 'Building instaid and starting a private server ...'
install_private
start_server $settings
sql -f bench/setup.sql >/dev/null
seq "$rows" >"$SCRATCH/rows"
paste "$SCRATCH/rows" "$SCRATCH/rows" >"$SCRATCH/rows with IDs"

# Drift, every 50 ms until the server stops: the time and the milliseconds.
echo 'SELECT extract(epoch FROM clock_timestamp()), bench.drift() \watch 0.05' |
	sql >"$SCRATCH/drift" 2>/dev/null &

# What it ran on
{
	echo "date: $(date -u +%Y-%m-%d)"
	echo "scale: $scale ($rows rows, $rounds rounds)"
	echo "instaid: $(sed -n "s/^default_version *= *'\(.*\)'/\1/p" instaid.control)"
	echo "server: $(sql -c 'SELECT version()')"
	echo "extensions: $(sql -c "SELECT coalesce(string_agg(extname || ' ' || extversion, ', '), 'none')
		FROM pg_extension WHERE extname NOT IN ('plpgsql', 'instaid')")"
	echo "machine: $(nproc) processors$(sed -n 's/^model name[^:]*: */ (/p' /proc/cpuinfo 2>/dev/null | sed 's/$/)/; q'),\
 $(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo 2>/dev/null | awk '{ printf "%.0f", $1 / 1048576 }') GB,\
 $(uname -sr)"
	echo "load when it began: $load"
	echo "settings: $(echo $settings)"
	echo "durability: $(sql -c "SELECT string_agg(name || '=' || setting, ' ' ORDER BY name) FROM pg_settings
		WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'wal_sync_method')")"
} | sed 's/^/# /' | tee "$SCRATCH/result"
printf 'work\tgenerator\tmax_drift\tshards\tclients\tround\tids\tseconds\twal_bytes\tindex_bytes\tduplicates\tinversions\tmost_in_ms\tdrift_ms\n' >>"$SCRATCH/result"

# begin [STATEMENTS]: make the server ready for a turn, the clock ahead of all
# sequences; set start and lsn
begin()
{
	set -- $(sql -c "$*" -c CHECKPOINT -c 'DO $$ BEGIN
			WHILE bench.drift() > 0 LOOP PERFORM pg_sleep(0.01); END LOOP;
		END $$' -c 'SELECT extract(epoch FROM clock_timestamp()), pg_current_wal_insert_lsn()')
	start=$1 lsn=$2
}

# finish TABLE MS: see what a turn has made of the table; set wal, index, ids,
# duplicates, inversions, most and drift
finish()
{
	set -- $(sql -c "SELECT extract(epoch FROM clock_timestamp()), pg_current_wal_insert_lsn() - '$lsn',
		coalesce(nullif(pg_indexes_size(to_regclass('$1')), 0)::text, '-')" \
		-c "SELECT ids, duplicates, inversions, coalesce(most::text, '-') FROM bench.look('$1', '$2')")
	wal=$2 index=$3 ids=$4 duplicates=$5 inversions=$6 most=$7
	drift=-
	if [ "$name" = instaid ]; then
		drift=$(awk -v a="$start" -v b="$1" '$1 >= a && $1 <= b && $2 > d { d = $2 } END { printf "%.0f", d }' "$SCRATCH/drift")
	fi
}

# note WORK CLIENTS: add a turn to the result
note()
{
	echo "$1$tab$name$tab$max_drift$tab$shards$tab$2$tab$round$tab$ids$tab$seconds$tab$wal$tab$index$tab$duplicates$tab$inversions$tab$most$tab$drift" >>"$SCRATCH/result"
	printf '.'
}

# timed STATEMENT: set seconds that it takes, with its commit
timed()
{
	seconds=$(sql <<-SQL
		SELECT clock_timestamp() AS start \gset
		\o /dev/null
		$1;
		\o
		SELECT extract(epoch FROM clock_timestamp() - :'start');
	SQL
	)
}

# clients COUNT LENGTH [PROTOCOL]: let clients run SCRATCH/script; set seconds,
# without the time that connecting takes.  n is the number of a client's
# transaction.
clients()
{
	threads=$1
	[ "$threads" -le 2 ] || threads=2
	pgbench -n -M ${3:-prepared} -c "$1" -j $threads $2 -D n=0 -f "$SCRATCH/script" >"$SCRATCH/log/pgbench.log" 2>&1 ||
		{ tail -n 20 "$SCRATCH/log/pgbench.log" >&2; exit 1; }
	seconds=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p; s/^tps = \([0-9.]*\).*/\1/p' \
		"$SCRATCH/log/pgbench.log" | awk 'NR == 1 { n = $1 } NR == 2 { print n / $1 }')
}

# Each work is one turn of the generator that name, expr, tbl and ms tell of.

# IDs and nothing else.  They are kept, and looked at when the time is taken.
ids()
{
	begin "DROP TABLE IF EXISTS bench.made, bench.timing" \
		"; CREATE UNLOGGED TABLE bench.timing (seconds float8, wal numeric, drift float8)" \
		"; CREATE UNLOGGED TABLE bench.made AS SELECT NULL::integer AS client, i::integer AS n, $expr AS id FROM generate_series(1::bigint, 1) AS i WITH NO DATA"
	type=$(sql -c "SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = 'bench.made'::regclass AND attname = 'id'")
	sql <<-SQL
		DO \$\$
		DECLARE
			ids $type[];
			start timestamptz;
			lsn pg_lsn;
		BEGIN
			-- a session's first ID loads and plans
			SELECT array_agg($expr) INTO ids FROM generate_series(1::bigint, 1) AS i;
			start := clock_timestamp();
			lsn := pg_current_wal_insert_lsn();
			SELECT array_agg($expr) INTO ids FROM generate_series(1::bigint, $rows) AS i;
			INSERT INTO bench.timing
				SELECT extract(epoch FROM clock_timestamp() - start), pg_current_wal_insert_lsn() - lsn, bench.drift();
			INSERT INTO bench.made SELECT NULL, n, id FROM unnest(ids) WITH ORDINALITY AS u (id, n);
		END
		\$\$;
	SQL
	finish bench.made "$ms"
	set -- $(sql -c 'SELECT seconds, wal, round(drift) FROM bench.timing')
	seconds=$1 wal=$2
	[ "$drift" = - ] || [ "$drift" -ge "$3" ] || drift=$3
	note ids 1
}

insert()
{
	begin "TRUNCATE $tbl"
	case $name in
		given*) timed "INSERT INTO $tbl (id, n) SELECT i, i FROM generate_series(1, $rows) AS i" ;;
		*) timed "INSERT INTO $tbl (n) SELECT i FROM generate_series(1, $rows) AS i" ;;
	esac
	finish "$tbl" "$ms"
	note insert 1
}

copy()
{
	begin "TRUNCATE $tbl"
	case $name in
		given*) timed "COPY $tbl (id, n) FROM '$SCRATCH/rows with IDs'" ;;
		*) timed "COPY $tbl (n) FROM '$SCRATCH/rows'" ;;
	esac
	finish "$tbl" "$ms"
	note "$work" 1
}

# Many clients, as many rows in all as above
load()
{
	printf '%s\n' '\set n :n + 1' \
		"INSERT INTO $tbl (client, n) SELECT :client_id, :n * 100 + i FROM generate_series(1, 100) AS i;" >"$SCRATCH/script"
	begin "TRUNCATE $tbl"
	clients 16 "-t $((rows / 1600))"
	finish "$tbl" "$ms"
	note load 16
}

# Many clients, a row and a commit at a time
single()
{
	sql -c "ALTER DATABASE $PGDATABASE SET synchronous_commit = ${commit:-on}"
	printf '%s\n' '\set n :n + 1' "INSERT INTO $tbl (client, n) VALUES (:client_id, :n);" >"$SCRATCH/script"
	begin "TRUNCATE $tbl"
	clients "$count" "$length" ${protocol:-}
	finish "$tbl" "$ms"
	note "$work" "$count"
}

# Likewise, but no commit waits for the disk, whose pace hides what IDs cost.
single_nowait()
{
	commit=off
	single
	commit=
}

# Likewise, and each statement is parsed and planned.
single_unprepared()
{
	protocol=simple
	single_nowait
	protocol=
}

# take_turns WORK WHICH: in each round the generators to which the condition
# applies, forward in one and backward in the next
take_turns()
{
	work=$1 max_drift=1000 shards=1
	for round in $(seq "$rounds"); do
		printf '%s, round %s of %s ' "$1${count:+ by $count clients}" "$round" "$rounds"
		[ $((round % 2)) = 1 ] && order=ASC || order=DESC
		sql -F '|' -c "SELECT name, expr, tbl, ms FROM bench.generators WHERE $2 ORDER BY ord $order" >"$SCRATCH/turns"
		while IFS='|' read -r name expr tbl ms; do
			"$1" </dev/null
		done <"$SCRATCH/turns"
		echo
	done
}

count=
take_turns ids "expr IS NOT NULL"
take_turns insert "id_column IS NOT NULL"
take_turns copy "id_column IS NOT NULL"

# Of many clients some would fail on a primary key, so these generators get an
# index that is not unique.
sql -c "SELECT format('ALTER TABLE %s DROP CONSTRAINT %I; CREATE INDEX ON %1\$s (id)', tbl, name || '_key')
	FROM bench.generators WHERE may_repeat AND id_column IS NOT NULL" | tr '\n' ';' | sql
take_turns load "id_column IS NOT NULL AND name <> 'given IDs'"

# Contention: as many IDs as sessions can take, 1,000 in a statement
# contend NAME MAX_DRIFT SHARDS SESSIONS
contend()
{
	name=$1 max_drift=$2 shards=$3
	if [ "$name" = bigserial ]; then
		expr="nextval('bench.plain_seq')"
	elif [ "$shards" = 1 ]; then
		expr='shard0.next_id()'
	else
		# pgbench replaces variables within words, too, if the statement is not prepared
		expr='shard:client_id.next_id()'
	fi
	printf '%s\n' '\set n :n + 1' \
		"INSERT INTO bench.arrays SELECT :client_id, :n, array_agg($expr) FROM generate_series(1, 1000);" >"$SCRATCH/script"
	begin "TRUNCATE bench.arrays; ALTER DATABASE $PGDATABASE SET instaid.max_drift = $max_drift"
	clients "$4" "$length" simple
	ms=
	[ "$name" != instaid ] || ms='id >> 23, (id >> 10) & 8191'
	finish bench.from_arrays "$ms"
	index=-
	note contention "$4"
}

turns=$((rounds < 2 ? rounds : 2))
for round in $(seq $turns); do
	printf 'contention, round %s of %s ' "$round" "$turns"
	for count in 1 16 64; do
		contend instaid 1000 1 $count
		contend bigserial 1000 1 $count
	done
	contend instaid 0 1 16
	contend instaid 1000 16 16
	echo
done
sql -c "ALTER DATABASE $PGDATABASE RESET instaid.max_drift"

for count in 1 8 32 64; do
	take_turns single "id_column IS NOT NULL AND name <> 'given IDs'"
done
for count in 1 8 32 64; do
	take_turns single_nowait "name IN ('instaid', 'bigserial', 'published function', 'published verbatim', 'SQL edition')"
	take_turns single_unprepared "name IN ('bigserial', 'published verbatim', 'SQL edition')"
done

. bench/tickets.sh
. bench/readers.sh
. bench/shards.sh
if [ -f "$("$PG_CONFIG" --sharedir)/extension/plproxy.control" ]; then
	. bench/router.sh
else
	echo 'router: left out, this PostgreSQL has no PL/Proxy'
fi

echo
perl bench/report.pl "$SCRATCH/result"
