# A demonstration on a private server: clients fill two shards, and a table with the
# published function.  Then it decodes IDs, and takes values of a ticket.
# Started by test/lib/run.  With KEEP set the server is left running.

set -eu
. test/lib/private.sh

title()
{
	printf '\n== %s\n\n' "$*"
}

# show SQL: print a statement, then run it
show()
{
	printf '%s\n' "$1"
	psql -XqP footer=off -v ON_ERROR_STOP=1 -c "$1"
}

# with_dots COMMAND...: run it, and print a dot every three seconds
with_dots()
{
	while sleep 3; do printf .; done &
	dots=$!
	"$@"
	kill $dots
	echo
}

server=$PG_CONFIG
[ "$(command -v pg_config)" = "$server" ] && option= || option=" PG_CONFIG=$server"
printf 'Building instaid, and starting a server '
with_dots install_private
with_dots start_server "max_connections = 40" "timezone = 'UTC'"

title 'Two shards, and the published table in each'
show 'CREATE EXTENSION instaid;'
for n in 5 6; do
	show "SELECT instaid.create_shard('insta$n', $n);" | grep -v '^ *$\|create_shard *$\|^-*$'
	show "CREATE TABLE insta$n.our_table (
    \"id\" bigint NOT NULL DEFAULT insta$n.next_id(),
    user_id integer
);"
done

psql -Xq -v ON_ERROR_STOP=1 -v schema=published -v shard_id=5 -f test/lib/published.sql \
	-c 'CREATE TABLE published.our_table (
		"id" bigint NOT NULL DEFAULT published.next_id(), user_id integer)'

title '16 clients insert 640,000 rows into each, 2,000 in a statement'
for schema in insta5 insta6 published; do
	echo "INSERT INTO $schema.our_table (user_id) SELECT generate_series(1, 2000);" \
		>"$SCRATCH/load.sql"
	printf '%-10s' "$schema"
	pgbench -n -c 16 -j 2 -t 20 -f "$SCRATCH/load.sql" >"$SCRATCH/log/pgbench.log" 2>&1
	sed -n 's/^tps = \([0-9]*\).*/\1 statements a second/p' "$SCRATCH/log/pgbench.log"
done

title 'What they have made'
with_dots psql -Xq <<'SQL'
CREATE VIEW loaded AS
    SELECT 'instaid, insta5' AS generator, id FROM insta5.our_table
    UNION ALL SELECT 'instaid, insta6', id FROM insta6.our_table
    UNION ALL SELECT 'published function', id FROM published.our_table;
CREATE TABLE made AS
SELECT generator, sum(ids) AS rows, sum(ids) - sum(distinct_ids) AS duplicates,
    round(avg(ids)) AS "IDs per ms", max(ids) AS "in the fullest ms"
FROM (SELECT generator, count(*) AS ids, count(DISTINCT id) AS distinct_ids
      FROM loaded GROUP BY generator, id >> 23) AS per_ms
GROUP BY generator;
SQL
psql -XqP footer=off -c 'SELECT * FROM made ORDER BY generator'
duplicates=$(psql -XAtc "
	SELECT count(*) - count(DISTINCT id) FROM loaded WHERE generator LIKE 'instaid%'")

title 'Each ID says when and where it was made'
show "SELECT id, d.* FROM (SELECT max(id) AS id FROM insta5.our_table
    UNION ALL SELECT max(id) FROM insta6.our_table) AS t, instaid.decode(id) AS d;"
show "SELECT schema_name, shard_id, last_issued_at, drift, expires_at
FROM instaid.shards ORDER BY shard_id;"

title 'Two IDs of Instagram'
show "SELECT id, d.*
FROM (VALUES (908540701891980503), (4001511883701836730)) AS t (id), instaid.decode(id) AS d;"

title 'Two readers poll a table for new IDs, while 8 clients insert and commit later'
psql -Xq -v ON_ERROR_STOP=1 -f test/lib/readers.sql
cat >"$SCRATCH/writer.sql" <<'SQL'
\set ms random(0, 20)
BEGIN;
INSERT INTO insta5.events (writer) VALUES (:client_id);
\sleep :ms ms
COMMIT;
SQL
psql -Xq -c "CALL read_events('naive')" &
psql -Xq -c "CALL read_events('settled')" &
pgbench -n -c 8 -j 2 -T 3 -f "$SCRATCH/writer.sql" >"$SCRATCH/log/writers.log" 2>&1
psql -Xq -c 'INSERT INTO stop DEFAULT VALUES'
wait
show 'SELECT * FROM readers ORDER BY reader;'
missed=$(psql -XAtc "SELECT missed + \"read twice\" FROM readers WHERE reader = 'settled'")

title 'A ticket that two servers share: this one issues odd numbers'
show 'CREATE EXTENSION instaid_tickets;'
show 'CREATE SEQUENCE invoices INCREMENT 2 START 1;'
show "SELECT instaid_tickets.next('invoices') FROM generate_series(1, 3);"

title 'A ticket with a step: one flush of WAL serves 1,000 calls, in all sessions'
show 'CREATE SEQUENCE orders CACHE 1000;'
show "SELECT max(instaid_tickets.next('orders')) FROM generate_series(1, 500);"

title 'To go on with a server of your own'
version=$("$server" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
if [ -d /etc/postgresql-common ] &&
	! ls /etc/postgresql/$version/*/postgresql.conf >/dev/null 2>&1; then
	echo "pg_createcluster $version main --start      # as root: there is no server yet"
fi
cat <<END
make$option
make$option install      # as the owner of PostgreSQL's files, which is usually root
psql -c 'CREATE EXTENSION instaid'      # in each database
END

if [ -n "${KEEP:-}" ]; then
	trap - EXIT
	touch "$SCRATCH/keep"
	title 'The server is left running'
	echo "Connect:  psql -h $PGHOST -U $PGUSER $PGDATABASE"
	echo "Remove:   kill \$(head -n 1 $SCRATCH/data/postmaster.pid) && sleep 1; rm -rf $SCRATCH"
fi

[ "$duplicates" -eq 0 ] && [ "$missed" -eq 0 ]
