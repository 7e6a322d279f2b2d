# The regression tests on a server that runs under valgrind's memcheck; in TAP.
# The PostgreSQL must be built with USE_VALGRIND, which tells valgrind of its memory
# contexts; the version matrix builds one.  Started by test/suites.sh, which has
# installed the extension.

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
# Four files are left out, since they take minutes here and reach little C code that the
# others do not: "generate" and "usage" make very many IDs, "audit" is mostly SQL, and the
# fuzzer runs the code of "text_forms" under sanitizers.
make -s PG_CONFIG="$PG_CONFIG" installcheck ISOLATION= \
	REGRESS="$(sed -n 's/^REGRESS = //p' Makefile | sed -E 's/ (generate|usage|audit|text_forms)\b//g')" || status=$?
pg_ctl -D "$SCRATCH/data" -m fast -s stop

# Find errors in frames of instaid.  Memory that is still allocated at the end is not an
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
			next if $error =~ m{<kind>Leak_} || $error !~ m{<obj>[^<]*instaid\.so};
			$errors++;
			print "# $_\n" for $error =~ m{<(?:text|what|fn)>(.*?)<}g;
		}
	}
	print $errors ? "not ok" : "ok", " 1 - $errors errors of memcheck in frames of instaid, in $processes processes\n";
	print $processes > 10 ? "ok" : "not ok", " 2 - valgrind ran the server\n";' "$reports"/*
[ $status -eq 0 ] && echo 'ok 3 - the regression tests pass' || echo 'not ok 3 - the regression tests pass'
echo 1..3
