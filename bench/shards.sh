# What depends on the number of shards: to create them, to look at them, and what a
# session keeps.  Sourced by bench/bench.sh.
#
# Each number of shards has two databases: in one the shards are created one by one, in
# the other by create_shards().  Seconds are in the column of that name; where memory is
# measured, its bytes are in the column ids.

# shard_note WORK: add a measurement to the result; seconds and ids are set
shard_note()
{
	echo "$1${tab}shards${tab}1000$tab$shards${tab}1$tab$round$tab$ids$tab$seconds$tab-$tab-$tab-$tab-$tab-$tab-" >>"$SCRATCH/result"
	printf '.'
}

# shard_time WORK DATABASE STATEMENT...: the last statement, in a session that has run the others
shard_time()
{
	work=$1 database=$2
	shift 2
	seconds=$({
		echo '\o /dev/null'
		while [ $# -gt 1 ]; do echo "$1;"; shift; done
		printf '%s\n' '\o' 'SELECT clock_timestamp() AS start \gset' '\o /dev/null' "$1;" '\o' \
			"SELECT extract(epoch FROM clock_timestamp() - :'start');"
	} | psql -XqAt -v ON_ERROR_STOP=1 -d "$database" 2>>"$SCRATCH/log/shards.log")
	ids=$shards
	shard_note "$work"
}

# shard_memory WORK DATABASE FILE: what a session keeps that has run a file
shard_memory()
{
	seconds=-
	ids=$({ echo '\o /dev/null'; cat "$3"; printf '%s\n' '\o' 'SELECT sum(total_bytes) FROM pg_backend_memory_contexts;'; } |
		psql -XqAt -v ON_ERROR_STOP=1 -d "$2" 2>>"$SCRATCH/log/shards.log")
	shard_note "$1"
}

round=1
for shards in 16 256 4096 8192; do
	shards=$(scaled $shards 4)
	printf '%s shards ' "$shards"
	last=$((shards - 1))
	for database in one many; do
		createdb $database
		sql -d $database -c 'CREATE EXTENSION instaid'
	done

	seq 0 $last | sed 's/.*/SELECT instaid.create_shard('"'insta&', &"');/' >"$SCRATCH/shards.sql"
	started=$(sql -c 'SELECT extract(epoch FROM clock_timestamp())')
	psql -Xq -v ON_ERROR_STOP=1 -d one -f "$SCRATCH/shards.sql" >/dev/null
	seconds=$(sql -c "SELECT extract(epoch FROM clock_timestamp()) - $started")
	ids=$shards
	shard_note create_shard
	shard_time create_shards many "CALL instaid.create_shards('insta%s', 0, $last)"

	seq 0 $last | sed 's/.*/CREATE TABLE insta&.photos (id bigint PRIMARY KEY DEFAULT insta&.next_id(), n integer);/' |
		psql -Xq -v ON_ERROR_STOP=1 -d many
	shard_time view_first many 'SELECT * FROM instaid.shards'
	shard_time view many 'SELECT * FROM instaid.shards' 'SELECT * FROM instaid.shards'
	shard_time view_one many 'SELECT * FROM instaid.shards' "SELECT * FROM instaid.shards WHERE shard_id = $last"
	shard_time audit many 'SELECT * FROM instaid.audit()'
	shard_time freeze_shard many "SELECT instaid.freeze_shard('insta$last')"
	shard_time first_id many "INSERT INTO insta0.photos (n) VALUES (1)"

	: >"$SCRATCH/nothing.sql"
	echo 'INSERT INTO insta0.photos (n) VALUES (1);' >"$SCRATCH/insert.sql"
	seq 0 $((last - 1)) | sed 's/.*/INSERT INTO insta&.photos (n) VALUES (1);/' >"$SCRATCH/inserts.sql"
	seq 0 $((last - 1)) | sed "s/.*/SELECT nextval('insta&.table_id_seq');/" >"$SCRATCH/nextvals.sql"
	seq 0 $((last - 1)) | sed "s/.*/SELECT instaid.next_id('insta&.table_id_seq', 0);/" >"$SCRATCH/next_ids.sql"
	shard_memory memory_idle many "$SCRATCH/nothing.sql"
	shard_memory memory_one many "$SCRATCH/insert.sql"
	shard_memory memory_all many "$SCRATCH/inserts.sql"
	shard_memory memory_nextval many "$SCRATCH/nextvals.sql"
	shard_memory memory_next_id many "$SCRATCH/next_ids.sql"

	for database in one many; do
		dropdb --force $database 2>/dev/null || dropdb $database
	done
	echo
done
