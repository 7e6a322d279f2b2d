# How far readers that poll for new IDs are behind eight writers, and what settled_id()
# costs when no transaction is in flight.  Sourced by bench/bench.sh.
#
# The column shards says for how many ms each transaction stays open after its INSERT, the
# column seconds how long after its ID a row was read: the median, and the 99th
# percentile.  The column inversions counts the rows that the reader has missed.

# reader_note WORK READER PAUSE: add a measurement to the result; ids, seconds and missed are set
reader_note()
{
	echo "$1$tab$2${tab}1000$tab$3${tab}8${tab}1$tab$ids$tab$seconds$tab-$tab-$tab-$tab$missed$tab-$tab-" >>"$SCRATCH/result"
	printf '.'
}

printf 'readers '
createdb readers
sql -d readers -c 'CREATE EXTENSION instaid' -c "SELECT instaid.create_shard('insta5', 5)" -f test/lib/readers.sql >/dev/null
for pause in 0 10; do
	sql -d readers -c 'TRUNCATE insta5.events, seen, stop'
	printf '%s\n' 'BEGIN;' 'INSERT INTO insta5.events (writer) VALUES (:client_id);' "\\sleep $pause ms" 'COMMIT;' >"$SCRATCH/script"
	readers=
	for reader in naive settled; do
		sql -d readers -c "CALL read_events('$reader')" &
		readers="$readers $!"
	done
	pgbench -n -c 8 -j 2 $length -f "$SCRATCH/script" readers >"$SCRATCH/log/pgbench.log" 2>&1
	sql -d readers -c 'INSERT INTO stop DEFAULT VALUES'
	wait $readers
	for reader in naive settled; do
		set -- $(sql -d readers -c "SELECT rows, missed FROM readers WHERE reader = '$reader'" \
			-c "SELECT extract(epoch FROM percentile_disc(0.5) WITHIN GROUP (ORDER BY seen_at - instaid.extract_timestamp(id))),
				extract(epoch FROM percentile_disc(0.99) WITHIN GROUP (ORDER BY seen_at - instaid.extract_timestamp(id)))
				FROM seen WHERE reader = '$reader'")
		ids=$1 missed=$2
		seconds=$3
		reader_note reader_median $reader $pause
		seconds=$4
		reader_note reader_p99 $reader $pause
	done
done
dropdb readers

ids=$(scaled 100000 1000) missed=-
timed "DO \$\$ BEGIN FOR i IN 1..$ids LOOP PERFORM instaid.settled_id('insta1'); END LOOP; END \$\$"
reader_note settled_id settled 0
echo
