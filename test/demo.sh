# The main job, shown on a private server: two shards, filled by concurrent
# clients, beside the published function under the same load; a ticket that two
# servers share; and segments.
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

echo 'Building instaid and starting a private server ...'
install_private
start_server "max_connections = 40" "timezone = 'UTC'" "shared_preload_libraries = 'instaid'"

title 'Two shards, and the published table in each'
show 'CREATE EXTENSION instaid;'
for n in 5 6; do
	show "SELECT instaid.create_shard('insta$n', $n);" | grep -v '^ *$\|create_shard *$\|^-*$'
	show "CREATE TABLE insta$n.our_table (
    \"id\" bigint NOT NULL DEFAULT insta$n.next_id(),
    user_id integer
);"
done

# The published arithmetic, in the form that everybody copied: nextval first,
# the clock afterwards.
psql -Xq <<'SQL'
CREATE SCHEMA published;
CREATE SEQUENCE published.table_id_seq;
CREATE FUNCTION published.next_id(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    seq_id bigint;
    now_ms bigint;
BEGIN
    seq_id := nextval('published.table_id_seq') % 1024;
    now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
    result := ((now_ms - 1314220021721) << 23) | (5 << 10) | seq_id;
END
$$;
CREATE TABLE published.our_table (
    "id" bigint NOT NULL DEFAULT published.next_id(),
    user_id integer
);
SQL

title 'Each filled by 16 clients, 2,000 rows a statement, 640,000 rows'
for schema in insta5 insta6 published; do
	echo "INSERT INTO $schema.our_table (user_id) SELECT generate_series(1, 2000);" >"$SCRATCH/load.sql"
	printf '%-10s' "$schema"
	pgbench -n -c 16 -j 2 -t 20 -f "$SCRATCH/load.sql" 2>"$SCRATCH/log/pgbench.log" |
		sed -n 's/^tps = \([0-9]*\).*/\1 statements a second/p'
done

title 'What came of it'
psql -XqP footer=off <<'SQL'
CREATE VIEW loaded AS
    SELECT 'instaid, insta5' AS generator, id FROM insta5.our_table
    UNION ALL SELECT 'instaid, insta6', id FROM insta6.our_table
    UNION ALL SELECT 'published function', id FROM published.our_table;
SELECT generator, sum(ids) AS rows, sum(ids) - sum(distinct_ids) AS duplicates,
    round(avg(ids)) AS "IDs a ms", max(ids) AS "in the fullest ms"
FROM (SELECT generator, count(*) AS ids, count(DISTINCT id) AS distinct_ids
      FROM loaded GROUP BY generator, id >> 23) AS per_ms
GROUP BY generator ORDER BY generator;
SQL
duplicates=$(psql -XAtc "SELECT count(*) - count(DISTINCT id) FROM loaded WHERE generator LIKE 'instaid%'")

title 'IDs say when and where they were made'
show "SELECT id, d.* FROM (SELECT max(id) AS id FROM insta5.our_table
    UNION ALL SELECT max(id) FROM insta6.our_table) AS t, instaid.decode(id) AS d;"
show "SELECT schema_name, shard_id, last_issued_at, drift, expires_at FROM instaid.shards ORDER BY shard_id;"

title 'Two of Instagram'\''s own'
show "SELECT id, d.* FROM (VALUES (908540701891980503), (4001511883701836730)) AS t (id), instaid.decode(id) AS d;"

title 'A ticket: small numbers from two servers, odd and even'
# a second server, beside the first
initdb -D "$SCRATCH/even" -U postgres -A trust -E UTF8 --no-locale >/dev/null
printf "%s\n" "listen_addresses=''" "unix_socket_directories='$SCRATCH'" "port=5433" >>"$SCRATCH/even/postgresql.conf"
start_even()
{
	pg_ctl -D "$SCRATCH/even" -l "$SCRATCH/log/even.log" -w -s start
}
stop_both()
{
	pg_ctl -D "$SCRATCH/even" -m immediate -s stop 2>/dev/null || :
	stop_server
}
trap stop_both EXIT
start_even
show "SELECT instaid.create_ticket('invoices', server => 1, servers => 2);"
psql -Xq -p 5433 -c 'CREATE EXTENSION instaid'
echo 'And on the other server:'
PGPORT=5433 show "SELECT instaid.create_ticket('invoices', server => 2, servers => 2);"

# Four clients, 150 tickets each: another server first each time, and again if
# it goes away under the query.  One server is killed, and comes back.
ask()
{
	psql -XAt -d "host=$SCRATCH,$SCRATCH port=$1,$2" -c "SELECT instaid.next_ticket('invoices')" 2>/dev/null
}
echo 'Four clients ask the two in turn, 600 times. One server is killed, and brought back.'
clients=
for client in 1 2 3 4; do
	for turn in $(seq 75); do
		ask 5432 5433 || ask 5433 5432 || echo failure
		ask 5433 5432 || ask 5432 5433 || echo failure
	done >"$SCRATCH/client$client" &
	clients="$clients $!"
done
while [ "$(cat "$SCRATCH"/client? | wc -l)" -lt 200 ]; do sleep 0.1; done
pg_ctl -D "$SCRATCH/even" -m immediate -s stop
while [ "$(cat "$SCRATCH"/client? | wc -l)" -lt 400 ]; do sleep 0.1; done
start_even
wait $clients
cat "$SCRATCH"/client? | awk '
	{ total++ }
	/failure/ { failures++; next }
	{ if ($1 % 2) odd++; else even++; if (seen[$1]++) duplicates++ }
	END { printf "%d tickets: %d odd, %d even, %d duplicates, %d failures\n", total, odd, even, duplicates, failures
		exit total != 600 || duplicates + failures > 0 || odd == 0 || even == 0 }' || duplicates=$((duplicates + 1))
show 'SELECT name, server, servers, last_value, values_left FROM instaid.tickets;'

title 'A segment: tickets out of shared memory, and from another server'
show "SELECT instaid.create_ticket('orders', step => 1000);"
echo '200 connections that come, take a value and go:'
echo "SELECT instaid.next_ticket('orders');" >"$SCRATCH/order.sql"
pgbench -n -C -c 10 -t 20 -f "$SCRATCH/order.sql" >"$SCRATCH/log/orders.log" 2>&1
show 'SELECT name, next_value, last_value, values_left, spare_first, spare_last, waits FROM instaid.segments;'
echo 'The other server, which needs no instaid for this, is made an authority:'
PGPORT=5433 show 'CREATE SEQUENCE instaid_tickets.leased;'
show "SELECT instaid.create_ticket('leased', step => 100, source => 'host=$SCRATCH port=5433 dbname=postgres user=postgres');"
show "SELECT count(*), min(t), max(t) FROM (SELECT instaid.next_ticket('leased') AS t FROM generate_series(1, 50)) AS taken;"
until [ "$(psql -XAtc "SELECT spare_left FROM instaid.segments WHERE name = 'leased'")" -gt 0 ]; do sleep 0.1; done
echo 'It is killed. What has been leased of it is given, and then there is an error:'
pg_ctl -D "$SCRATCH/even" -m immediate -s stop
show "SELECT count(*), min(t), max(t) FROM (SELECT instaid.next_ticket('leased') AS t FROM generate_series(1, 150)) AS taken;"
show "SELECT instaid.next_ticket('leased');" 2>&1 | cut -c 1-110
trap stop_server EXIT

if [ -n "${KEEP:-}" ]; then
	trap - EXIT
	touch "$SCRATCH/keep"
	title 'The server is left running'
	echo "Connect:  psql -h $PGHOST -U $PGUSER $PGDATABASE"
	echo "Remove:   kill \$(head -n 1 $SCRATCH/data/postmaster.pid) && sleep 1; rm -rf $SCRATCH"
fi

[ "$duplicates" -eq 0 ]
