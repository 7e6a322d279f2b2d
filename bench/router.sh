# What a router costs: eight clients insert a row in each call of a function, on a server,
# and through PL/Proxy on one server and on two.  The ID is a default, or comes with the
# call.  Sourced by bench/bench.sh, whose server is the router.
#
# The column shards says how many servers there are behind the router; 0 is without one.

for server in 1 2; do
	initdb -D "$SCRATCH/server$server" -U postgres -A trust -E UTF8 --no-locale >/dev/null
	# no commit waits for the disk, whose pace hides what a router costs
	printf '%s\n' $settings "listen_addresses=''" "unix_socket_directories='$SCRATCH/server$server'" \
		shared_buffers=256MB synchronous_commit=off >>"$SCRATCH/server$server/postgresql.conf"
	pg_ctl -D "$SCRATCH/server$server" -l "$SCRATCH/log/server$server.log" -w -s start
	sql -h "$SCRATCH/server$server" >/dev/null <<-SQL
		CREATE EXTENSION instaid;
		SELECT instaid.create_shard('insta', $server);
		CREATE TABLE insta.instaid (id bigint PRIMARY KEY DEFAULT insta.next_id(), client integer, n integer);
		CREATE TABLE insta.given (id bigint PRIMARY KEY, client integer, n integer);
		CREATE FUNCTION add_instaid(server integer, given bigint, client integer, n integer) RETURNS bigint LANGUAGE plpgsql AS
			'BEGIN INSERT INTO insta.instaid (client, n) VALUES (client, n) RETURNING id INTO given; RETURN given; END';
		CREATE FUNCTION add_given(server integer, given bigint, client integer, n integer) RETURNS bigint LANGUAGE plpgsql AS
			'BEGIN INSERT INTO insta.given (id, client, n) VALUES (given, client, n) RETURNING id INTO given; RETURN given; END';
	SQL
done
sql <<-SQL
	CREATE EXTENSION plproxy;
	CREATE SERVER behind1 FOREIGN DATA WRAPPER plproxy OPTIONS (p0 'host=$SCRATCH/server1');
	CREATE SERVER behind2 FOREIGN DATA WRAPPER plproxy OPTIONS (p0 'host=$SCRATCH/server1', p1 'host=$SCRATCH/server2');
	CREATE USER MAPPING FOR postgres SERVER behind1 OPTIONS (user 'postgres');
	CREATE USER MAPPING FOR postgres SERVER behind2 OPTIONS (user 'postgres');
SQL
for shards in 1 2; do
	for table in instaid given; do
		sql -c "CREATE FUNCTION add_$table$shards(server integer, given bigint, client integer, n integer) RETURNS bigint
			LANGUAGE plproxy AS 'CLUSTER ''behind$shards''; RUN ON server; TARGET add_$table;'"
	done
done

# look SERVER: print how many IDs there are, duplicates, and IDs below the previous one of their client
look()
{
	sql -h "$SCRATCH/server$1" -c "SELECT count(*), count(*) - count(DISTINCT id), count(*) FILTER (WHERE back)
		FROM (SELECT id, id < lag(id) OVER (PARTITION BY client ORDER BY n) AS back FROM insta.$table) AS t"
}

max_drift=- wal=- index=- most=- drift=-
for round in $(seq "$rounds"); do
	printf 'router, round %s of %s ' "$round" "$rounds"
	turns='0 given,0 instaid,1 given,1 instaid,2 given,2 instaid'
	[ $((round % 2)) = 1 ] || turns='2 instaid,2 given,1 instaid,1 given,0 instaid,0 given'
	echo "$turns" | tr , '\n' >"$SCRATCH/turns"
	while read -r shards table; do
		for server in 1 2; do
			sql -h "$SCRATCH/server$server" -c "TRUNCATE insta.$table" -c CHECKPOINT </dev/null
		done
		function=add_$table$shards
		[ "$shards" != 0 ] || { function=add_$table; PGHOST=$SCRATCH/server1; }
		printf '%s\n' '\set n :n + 1' "SELECT $function(:client_id, :client_id * 100000000 + :n, :client_id, :n);" >"$SCRATCH/script"
		clients 8 "$length" </dev/null
		PGHOST=$SCRATCH
		set -- $(look 1) $(look 2)
		ids=$(($1 + $4)) duplicates=$(($2 + $5)) inversions=$(($3 + $6))
		[ $table = instaid ] && name=instaid || name='given IDs'
		note router 8
	done <"$SCRATCH/turns"
	echo
done
for server in 1 2; do
	pg_ctl -D "$SCRATCH/server$server" -m fast -s stop
done
