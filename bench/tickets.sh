# What a value of a ticket costs beside nextval(), one value in each transaction: without a
# step, with a step of 1,000, with a step of what is taken in a second, and with a source.
# Sourced by bench/bench.sh, whose server has the authority in another database.
#
# The column shards has the step.  The percentiles are in the column seconds.

createdb authority
sql -d authority -c 'CREATE EXTENSION instaid_tickets' -c 'CREATE SEQUENCE from_authority' >/dev/null
sql >/dev/null <<-SQL
	CREATE SEQUENCE core_seq;
	CREATE EXTENSION instaid_tickets;
	CREATE SEQUENCE plain;
	CREATE SEQUENCE thousand CACHE 1000;
	CREATE SEQUENCE second;
	CREATE SERVER authority FOREIGN DATA WRAPPER instaid_tickets OPTIONS (host '$SCRATCH', dbname 'authority');
	CREATE USER MAPPING FOR CURRENT_USER SERVER authority;
	CREATE FOREIGN TABLE from_authority (value bigint) SERVER authority
		OPTIONS (sequence 'public.from_authority', step '1000');
SQL

# percentile PER_MILLE: set seconds, of the sorted microseconds in SCRATCH/latencies
percentile()
{
	seconds=$(awk -v p="$1" '{ us[NR] = $1 } END { print us[int(NR * p / 1000 + 0.999)] / 1e6 }' "$SCRATCH/latencies")
}

max_drift=- wal=- index=- duplicates=- inversions=- most=- drift=-
for count in 1 8 32; do
	for round in $(seq "$rounds"); do
		printf 'tickets by %s clients, round %s of %s ' "$count" "$round" "$rounds"
		turns='nextval plain thousand second from_authority'
		# the first round has found out what is taken in a second
		[ $((round % 2)) = 1 ] || turns='from_authority second thousand plain nextval'
		for name in $turns; do
			expr="instaid_tickets.next('$name')"
			case $name in
				nextval) shards=32 expr="nextval('core_seq')" ;;
				plain) shards=32 ;;
				second) shards=$taken ;;
				*) shards=1000 ;;
			esac
			[ "$name" != second ] || sql -c "ALTER SEQUENCE second CACHE $taken"
			sql -c "SELECT $expr" -c CHECKPOINT >/dev/null
			echo "SELECT $expr;" >"$SCRATCH/script"
			rm -f "$SCRATCH"/log/latency.*
			clients "$count" "$length -l --log-prefix=$SCRATCH/log/latency"
			awk '{ print $3 }' "$SCRATCH"/log/latency.* | sort -n >"$SCRATCH/latencies"
			ids=$(wc -l <"$SCRATCH/latencies")
			[ "$name" != thousand ] || taken=$(awk -v n="$ids" -v s="$seconds" 'BEGIN { printf "%d", n / s + 1 }')
			note ticket "$count"
			percentile 500
			note ticket_p50 "$count"
			percentile 990
			note ticket_p99 "$count"
			percentile 999
			note ticket_p999 "$count"
		done
		echo
	done
done
dropdb --force authority 2>/dev/null || dropdb authority
