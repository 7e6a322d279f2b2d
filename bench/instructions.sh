# How many instructions an ID takes, compared with core's nextval() and with the
# counts in bench/instructions.expected.  Started by test/lib/run.
#
# Fails if a count of ours grew by more than 5 %, or misses its target.  With
# STORE set it prints the lines to be stored, each after "expected: ", and does
# not compare; "make bench-instructions-store" puts them into the file.
#
# callgrind counts what a single-user server executes: the machine's speed and
# its load do not matter, and a row that costs one branch more is seen.  What
# it does not count is the kernel: reading the clock is some 25 ns that
# nextval() does not have, and that "make bench" would show.
#
# Each statement is run for two numbers of rows.  The difference is what the
# rows cost, without start, parser and planner; from that the same of an empty
# loop is taken away.
#
# packages: valgrind

set -eu
. test/lib/private.sh

# name | target | unit of the target | empty loop | rows | IDs a row | statement
#
# A * is where the number of rows goes.  "ahead" is next_id() while the
# sequence is ahead of the clock, when every ID depends on flushed WAL.
#
# The empty loop is count(g), and reads g, as the loops do with which the targets
# were set; count(next_id()) does not read it.  What that is worth is told below
# the table, with the ratios against a loop that does not read g either.
#
# "sent" is a statement as most drivers send it, parsed and planned each time; "rows" is
# INSERT ... SELECT.  "brought rows" bring their IDs: no generator can be below them, and
# the target is how far above them the shard's may be, in parts of bigserial's.
#
# The SQL edition comes first: nothing of the extension is loaded then.
# "each TABLE" is a transaction for each row, which executes a prepared INSERT, and "each sent
# TABLE" one that is not prepared.  The clock goes on by some 80 microseconds in each, so that
# few of them open a millisecond; with "each opens TABLE" all do.
rows='FROM generate_series(1, *) AS g'
bigint_rows='FROM generate_series(1::bigint, *::bigint) AS g'
cases="
bare loop     | -    | -       | -         | 5000 | 1    | SELECT count(1) $rows
loop          | -    | -       | -         | 5000 | 1    | SELECT count(g) $rows
bigint loop   | -    | -       | -         | 5000 | 1    | SELECT count(g) $bigint_rows
verbatim      | -    | nextval | loop      | 500  | 1    | SELECT count(verbatim.next_id()) $rows
SQL edition     | 0.50 | verbatim | loop     | 5000 | 1    | SELECT count(sql_edition.next_id()) $rows
serial each   | -    | nextval | bare loop | 50  | 1    | each own_serial
verbatim each | -    | nextval | bare loop | 50  | 1    | each verbatim.photos
SQL edition each | 1.00 | verbatim each | bare loop | 50 | 1 | each sql_edition.photos
SQL edition each opens | 2.15 | verbatim each | bare loop | 50 | 1 | each opens sql_edition.photos
serial each sent | - | nextval | bare loop | 50  | 1    | each sent own_serial
verbatim each sent | - | nextval | bare loop | 50 | 1   | each sent verbatim.photos
SQL edition each sent | 1.05 | verbatim each sent | bare loop | 50 | 1 | each sent sql_edition.photos
from loop     | -    | -       | -         | 20   | 1000 | SELECT count(i) $rows, generate_series(1::bigint, 1000 + 0 * g) AS i
nextval       | -    | nextval | loop      | 5000 | 1    | SELECT count(nextval('core_seq')) $rows
next_id       | 0.34 | nextval | loop      | 5000 | 1    | SELECT count(insta5.next_id()) $rows
ahead         | 0.34 | nextval | loop      | 5000 | 1    | SELECT count(insta5.next_id('ahead_seq')) $rows
next_ids 1000 | 0.05 | nextval | from loop | 20   | 1000 | SELECT count(i) $rows, insta5.next_ids(1000 + 0 * g) AS i
in FROM       | 0.05 | nextval | from loop | 20   | 1000 | SELECT count(i) $rows, instaid.next_ids('insta5.table_id_seq', 5, 1000 + 0 * g) AS i
ticket        | 1.28 | nextval | loop      | 5000 | 1    | SELECT count(instaid_tickets.next('plain')) $rows
ticket 1000   | 1.28 | nextval | loop      | 5000 | 1    | SELECT count(instaid_tickets.next('stepped')) $rows
id >> 23      | -    | nextval | bigint loop | 5000 | 1  | SELECT count(g >> 23) $bigint_rows
extract_timestamp | 1.50 | id >> 23 | bigint loop | 5000 | 1 | SELECT count(instaid.extract_timestamp(g)) $bigint_rows
insert loop   | -    | -       | -         | 500  | 1    | DO \$\$ BEGIN FOR i IN 1..* LOOP NULL; END LOOP; END \$\$
serial sent   | -    | nextval | insert loop | 500 | 1   | DO \$\$ BEGIN FOR i IN 1..* LOOP EXECUTE 'INSERT INTO serial (n) VALUES (1)'; END LOOP; END \$\$
insert sent   | 1.00 | serial sent | insert loop | 500 | 1 | DO \$\$ BEGIN FOR i IN 1..* LOOP EXECUTE 'INSERT INTO photos (n) VALUES (1)'; END LOOP; END \$\$
serial prepared | -  | nextval | insert loop | 500 | 1   | DO \$\$ BEGIN FOR i IN 1..* LOOP INSERT INTO serial (n) VALUES (1); END LOOP; END \$\$
insert prepared | 1.00 | serial prepared | insert loop | 500 | 1 | DO \$\$ BEGIN FOR i IN 1..* LOOP INSERT INTO photos (n) VALUES (1); END LOOP; END \$\$
serial rows   | -    | nextval | loop      | 5000 | 1    | INSERT INTO serial (n) SELECT g $rows
brought rows  | -    | serial rows | loop  | 5000 | 1    | INSERT INTO brought (id, n) SELECT g + (SELECT coalesce(max(id), 0) FROM brought), g $rows
insert rows   | 0.05 | serial rows above brought rows | loop | 5000 | 1 | INSERT INTO photos (n) SELECT g $rows
default epoch | -    | nextval | insert loop | 500 | 1   | DO \$\$ BEGIN FOR i IN 1..* LOOP EXECUTE 'SELECT instaid.next_id(''insta5.table_id_seq'', 5)'; END LOOP; END \$\$
epoch passed  | -    | nextval | insert loop | 500 | 1   | DO \$\$ BEGIN FOR i IN 1..* LOOP EXECUTE 'SELECT instaid.next_id(''insta5.table_id_seq'', 5, ''2011-08-24 21:07:01.721+00'')'; END LOOP; END \$\$
published     | -    | nextval | loop      | 500  | 1    | SELECT count(published.next_id()) $rows
uuid          | -    | nextval | loop      | 2000 | 1    | SELECT count(gen_random_uuid()) $rows
"
[ "$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')" -lt 18 ] || cases="$cases
uuidv7        | -    | nextval | loop      | 2000 | 1    | SELECT count(uuidv7()) $rows
"

mkdir -p "$SCRATCH/log"
install_private >"$SCRATCH/log/install.log" 2>&1 || { cat "$SCRATCH/log/install.log" >&2; exit 1; }
cc -O2 -shared -fPIC -o "$SCRATCH/clock.so" bench/instructions_clock.c
start_server autovacuum=off
psql -Xq -v ON_ERROR_STOP=1 >"$SCRATCH/log/setup.log" <<'SQL'
-- the SQL edition, whose schemas make room for the extension
\i sql-edition/all.sql
SELECT instaid.create_shard('sql_edition', 6);
-- A sequence that was never used begins 2.1 s ahead of the clock, on another path.
SELECT sql_edition.next_id();
CREATE TABLE sql_edition.photos (id bigint PRIMARY KEY DEFAULT sql_edition.next_id(), n integer);
ALTER SCHEMA instaid RENAME TO instaid_sql_edition;
\i test/lib/verbatim.sql
CREATE TABLE verbatim.photos (id bigint PRIMARY KEY DEFAULT verbatim.next_id(), n integer);
CREATE EXTENSION instaid;
CREATE EXTENSION instaid_tickets;
SELECT instaid.create_shard('insta5', 5);
CREATE SEQUENCE core_seq;
CREATE SEQUENCE ahead_seq;
CREATE SEQUENCE plain;
CREATE SEQUENCE stepped CACHE 1000;
CREATE TABLE serial (id bigserial PRIMARY KEY, n integer);
CREATE TABLE own_serial (id bigserial PRIMARY KEY, n integer);
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
CREATE TABLE brought (id bigint PRIMARY KEY, n integer);
\set schema published
\set shard_id 5
\i test/lib/published.sql
SQL
pg_ctl -D "$SCRATCH/data" -m fast -s stop

# Each case three times: once to fill the caches, and then the two that count.
# callgrind writes a file of counts at each statement's first step.  In
# single-user mode a line is a statement.  A number before it says which count it is a
# part of; what has none is not counted.
{
	echo "$cases" | awk -F ' *[|] *' -v OFS='\t' 'NF {
		table = $7 ~ /^each / ? substr($7, 6) : ""
		opens = sub(/^opens /, "", table)
		sent = sub(/^sent /, "", table)
		insert = "INSERT INTO " table " (n) VALUES (1)"
		# half a second, which the clock of the cases never catches up with
		if ($1 == "ahead")
			print "", "SELECT instaid.advance_past(\047ahead_seq\047, instaid.max_id(clock_timestamp()" \
				" + \047500 ms\047), instaid.default_epoch())"
		if (table)
			print "", "PREPARE each" NR " AS " insert
		for (i = 1; i <= 3; i++) {
			n = i < 3 ? $5 / 5 : $5 + $5 / 5
			count++
			statement = $7
			sub(/1, \*/, "1, " n, statement)
			sub(/\*::bigint/, n "::bigint", statement)
			sub(/1\.\.\*/, "1.." n, statement)
			for (k = 1; k <= (table ? n : 1); k++) {
				if (opens)
					print "", "SELECT count(clock_timestamp()) FROM generate_series(1, 300)"
				print count, !table ? statement : sent ? insert : "EXECUTE each" NR
			}
		}
	}'
} >"$SCRATCH/numbered"
cut -f 2 "$SCRATCH/numbered" >"$SCRATCH/statements"
log=$SCRATCH/log/count.log
LD_PRELOAD="$SCRATCH/clock.so" valgrind --tool=callgrind \
	--callgrind-out-file="$SCRATCH/counts" --dump-before=pg_parse_query \
	"$(command -v postgres)" --single -D "$SCRATCH/data" -c fsync=off -c log_checkpoints=off postgres \
	<"$SCRATCH/statements" >"$log" 2>&1 &&
	! grep -a 'ERROR: ' "$log" ||
	{ tail -n 20 "$log" >&2; exit 1; }

# The first file is the start; what comes after the last statement is in the file without a
# number.
statements=$(wc -l <"$SCRATCH/statements")
for i in $(seq 2 "$statements") ''; do
	sed -n 's/^totals: //p' "$SCRATCH/counts${i:+.$i}"
done >"$SCRATCH/each"
[ "$(wc -l <"$SCRATCH/each")" -eq "$statements" ] ||
	{ echo "callgrind does not tell the statements apart" >&2; exit 1; }
# Of statements that are counted together, the median counts: now and then one of them fills a
# cache.
cut -f 1 "$SCRATCH/numbered" | paste - "$SCRATCH/each" | sort -s -k1,1n -k2,2n |
	awk -F '\t' '$1 { n[$1]++; value[$1, n[$1]] = $2 }
		END { for (i = 1; i in n; i++) print n[i] * value[i, int((n[i] + 1) / 2)] }' >"$SCRATCH/totals"

# A count of ours has grown if it did so both in itself and against nextval() in
# the same run.  When a new minor version, or another compiler, makes all of the
# server's code longer, the second stays; when it makes nextval() shorter, the
# first does.  A fault of ours shows in both.
build="$("$PG_CONFIG" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/') $(uname -m)"
echo "$cases" | perl -we '
	use strict;
	my ($build, $store, $totals, $expected) = @ARGV;
	my (@cases, %per_id, %net, %old);

	open my $t, "<", $totals or die $!;
	while (<STDIN>)
	{
		next unless /\S/;
		chomp;
		my ($name, $target, $unit, $loop, $rows, $ids) = split / *[|] */;
		my @total = map { 0 + <$t> } 1 .. 3;
		$per_id{$name} = ($total[2] - $total[1]) / ($rows * $ids);
		next if $loop eq "-";
		$net{$name} = $per_id{$name} - $per_id{$loop};
		push @cases, [ $name, $target, $unit ];
	}

	open my $e, "<", $expected or die "$expected: $!";
	my @others = grep { !/^\Q$build\E [|]/ } <$e>;
	if ($store)
	{
		push @others, map { sprintf "%s | %s | %.1f\n", $build, $_->[0], $net{ $_->[0] } } @cases;
		# the versions in order, the comment first
		my ($of_a, $of_b);
		print map { "expected: $_" } sort {
			($of_a) = $a =~ /^(\d+)/;
			($of_b) = $b =~ /^(\d+)/;
			($of_a // 0) <=> ($of_b // 0)
		} @others;
		exit;
	}
	seek $e, 0, 0;
	/^\Q$build\E [|] (.*?) [|] ([\d.]+)$/ and $old{$1} = $2 while <$e>;

	print "Instructions per ID, PostgreSQL $build\n\n";
	printf "%-20s %9s %9s %8s   %s\n", "", "now", "stored", "/nextval", "target";
	my @faults;
	for (@cases)
	{
		my ($name, $target, $unit) = @$_;
		my $now = $net{$name};
		my $told = "";
		if ($target ne "-")
		{
			my ($part, $floor) = $unit =~ /^(.*) above (.*)$/;
			my $of = $floor ? ($now - $net{$floor}) / $net{$part} : $now / $net{$unit};
			$told = sprintf "%.3f of %.2f %s", $of, $target, $unit;
			push @faults, sprintf "%s: %.3f of %s, the target is %.2f", $name, $of, $unit, $target
			  if $of > $target;
			push @faults, sprintf "%s: %.1f instructions, %.1f %% more than stored", $name, $now, 100 * ($now / $old{$name} - 1)
			  if $old{$name} && $now > 1.05 * $old{$name}
			  && $now / $net{nextval} > 1.05 * $old{$name} / $old{nextval};
		}
		printf "%-20s %9.1f %9s %8.4f   %s\n", $name, $now, $old{$name} // "-", $now / $net{nextval}, $told;
	}
	my $read = $per_id{loop} - $per_id{"bare loop"};
	printf "\nThe empty loop reads a column, %.0f instructions.  Without: %s of nextval.\n", $read,
	  join ", ", map { sprintf "$_ %.3f", ($net{$_} + $read) / ($net{nextval} + $read) } "next_id", "ahead";
	print "No counts are stored for this build: make bench-instructions-store\n" unless %old;
	print "\n" if @faults;
	print "FAILED: $_\n" for @faults;
	exit(@faults ? 1 : 0);
	' "$build" "${STORE:-}" "$SCRATCH/totals" bench/instructions.expected
