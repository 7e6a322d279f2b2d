# The regression tests on a server that runs under valgrind's memcheck; in TAP.
# The PostgreSQL must be built with USE_VALGRIND, which tells valgrind of its memory
# contexts; the version matrix builds one.  Started by test/suites.sh, which has
# installed the extension.
#
# FULL=1 adds ten files of the regression tests, and one with small numbers
# not in: version

set -eu
. test/lib/private.sh

reports=$SCRATCH/memcheck
mkdir -p "$reports"
cat >"$SCRATCH/valgrind-postgres" <<WRAPPER
#!/bin/sh
exec valgrind --quiet --trace-children=yes --leak-check=no --num-callers=30 \
	--suppressions='$("$PG_CONFIG" --sharedir)/valgrind.supp' \
	--xml=yes --xml-file='$reports/%p' "$("$PG_CONFIG" --bindir)/postgres" "\$@"
WRAPPER
chmod +x "$SCRATCH/valgrind-postgres"
rm -rf "$SCRATCH/data"
POSTGRES=$SCRATCH/valgrind-postgres
start_server

status=0
# Five files are left out, since they take minutes here and reach little C code that the
# others do not: "generate", "usage" and "fields" make very many IDs, "audit" is mostly SQL, and
# the fuzzer runs the code of "text_forms" under sanitizers.  Without FULL more are left out.
# "shards", or with FULL "fields", runs with small numbers, and without a comparison.  The
# statements below reach the C code that only the others do, but for the texts of errors.
left_out='generate|usage|audit|text_forms|fields'
for_full='id_type|lifecycle|shards|declare|freeze|partitions|roles|ranges|settled|metrics'
[ -n "${FULL:-}" ] || left_out="$left_out|$for_full"
make -s -C tickets PG_CONFIG="$PG_CONFIG" installcheck ISOLATION= || status=$?
make -s PG_CONFIG="$PG_CONFIG" installcheck ISOLATION= \
	REGRESS="$(sed -n 's/^REGRESS = //p' Makefile | sed -E "s/ ($left_out)\b//g")" || status=$?
small=sql/shards.sql
[ -z "${FULL:-}" ] || small=sql/fields.sql
sed "s/100, 700/100, 109/; s/1000, 151[12]/1000, 1003/; s/'photos', 10000/'photos', 10/
	s/10000000/10000/; s/1500000, 10/15000, 10/; s/(1, 100000)/(1, 100)/" \
	$small | psql -Xq -d contrib_regression
psql -Xq -v ON_ERROR_STOP=1 <<'SQL' || status=$?
CREATE EXTENSION instaid;
SELECT instaid.create_shard('insta5', 5);
SELECT instaid.from_shortcode(instaid.to_shortcode(id))
FROM instaid.make_id('2026-11-22 UTC', 5, 1) AS id;
SELECT insta5.next_id();
SELECT setval('insta5.table_id_seq', 1);
SELECT insta5.next_id();
SELECT instaid.advance_past('insta5.table_id_seq', insta5.next_id() + 1, instaid.default_epoch());
ALTER FUNCTION insta5.next_id() STABLE;
SELECT instaid._function_fault('insta5.next_id()'::regprocedure);
SQL
pg_ctl -D "$SCRATCH/data" -m fast -s stop

# Find errors in frames of our libraries.  Memory that is still allocated at the end is not an
# error, since a server keeps memory until it exits.
perl -e '
	my ($errors, $processes) = (0, 0);
	for my $file (@ARGV)
	{
		local (@ARGV, $/) = $file;
		my $report = <>;
		$processes++ if $report =~ m{<preamble>};
		for my $error ($report =~ m{<error>.*?</error>}sg)
		{
			next if $error =~ m{<kind>Leak_} || $error !~ m{<obj>[^<]*instaid(?:_tickets)?\.so};
			$errors++;
			print "# $_\n" for $error =~ m{<(?:text|what|fn)>(.*?)<}g;
		}
	}
	print $errors ? "not ok" : "ok",
		" 1 - $errors errors of memcheck in frames of instaid, in $processes processes\n";
	print $processes > 10 ? "ok" : "not ok", " 2 - valgrind ran the server\n";' "$reports"/*
[ $status -eq 0 ] || printf 'not '
echo 'ok 3 - the regression tests pass'
echo 1..3
