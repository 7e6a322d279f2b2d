# The benchmark at its smallest size: it runs, it leaves nothing out, and instaid's IDs
# are unique and in order.  Its speed is not tested.
# Started by test/suites.sh.
#
# only with FULL=1: it takes minutes
# packages: postgresql-@PG@-plproxy?
# not in: version assert

. test/lib/tap.sh

result=$work/result

# turns WORK GENERATOR: print the number of such turns in the result that made IDs
turns()
{
	awk -F '\t' -v w="$1" -v g="$2" '$1 == w && $2 == g && $7 > 0 && $8 > 0 { n++ }
		END { print n + 0 }' "$result"
}

# there is one turn of each work; for single rows, one for each number of clients
complete()
{
	for work_and_turns in 'ids 1' 'insert 1' 'copy 1' 'load 1' 'single 4'; do
		for generator in instaid bigserial identity 'published function' 'SQL expression' \
			gen_random_uuid 'SQL edition'; do
			set -- $work_and_turns
			[ "$1 $generator" != 'ids identity' ] || continue
			there=$(turns "$1" "$generator")
			[ "$there" = "$2" ] || { echo "$1, $generator: $there turns"; return 1; }
		done
	done
	[ "$(turns single_nowait instaid)" = 4 ] || { echo 'single_nowait: no turn'; return 1; }
	# four numbers of shards, some of which are equal at a small scale
	for shard_work in create_shard create_shards view_first view view_one audit freeze_shard \
		first_id memory_one memory_all; do
		[ "$(grep -c "^$shard_work	" "$result")" = 4 ] ||
			{ echo "$shard_work: left out"; return 1; }
	done
	# two readers beside transactions of two lengths
	for reader_work_and_lines in 'reader_median 4' 'reader_p99 4' 'settled_id 1'; do
		set -- $reader_work_and_lines
		[ "$(grep -c "^$1	" "$result")" = "$2" ] || { echo "$1: left out"; return 1; }
	done
	# five ways to take a value, three numbers of clients, a rate and three percentiles
	[ "$(grep -c '^ticket' "$result")" = $((5 * 3 * 4)) ] || { echo 'tickets: left out'; return 1; }
	# rows with and without the default: without a router, and with one or two servers behind it
	[ ! -f "$("$PG_CONFIG" --sharedir)/extension/plproxy.control" ] ||
		[ "$(grep -c '^router' "$result")" = 6 ] || { echo 'router: left out'; return 1; }
	# two generators by three numbers of sessions; max_drift, and many shards
	[ "$(grep -c '^contention' "$result")" = 8 ]
}

# all lines of instaid have 0 in this column
none()
{
	awk -F '\t' -v column="$1" '$1 == "work" { for (i = 1; i <= NF; i++) if ($i == column) k = i }
		$2 == "instaid" { lines++; if ($k != 0) { print; bad = 1 } }
		END { exit bad || !lines }' "$result"
}

# a report is made, without a warning of Perl
report()
{
	perl bench/report.pl "$@" "$result" 2>&1 >"$work/report" | grep . && return 1
	[ -s "$work/report" ]
}

check 'the benchmark runs' env SCRATCH="$work" SCALE=0.001 sh bench/bench.sh
check 'every generator has done every work' complete
check 'no ID came twice' none duplicates
check 'the IDs of each session increase' none inversions
check 'the tables' report
check 'the data of the pictures' report --plots

echo "1..$n"
