# Every test of the project, one progress line a suite, the sum at the end.
# Started by test/lib/run.

set -eu
. test/lib/private.sh

passed=0
failed=0

# suite NAME COMMAND: run it, and count what its output says of single tests,
# in TAP or as pg_regress before PostgreSQL 16 puts it.  A command that fails
# without naming a failed test, or that runs none, counts as one failure.
suite()
{
	name=$1
	shift
	log=$SCRATCH/log/$name.log
	started=$(date +%s)
	status=0
	"$@" >"$log" 2>&1 </dev/null || status=$?
	ok=$(grep -E '^(ok [0-9]|test .* \.\.\. ok)' "$log" | grep -vc '# skip' || :)
	bad=$(grep -cE '^(not ok [0-9]|test .* \.\.\. FAILED)' "$log" || :)
	if [ "$bad" -eq 0 ] && { [ $status -ne 0 ] || [ "$ok" -eq 0 ]; }; then
		bad=1
	fi
	passed=$((passed + ok))
	failed=$((failed + bad))
	echo "$name: $ok passed, $bad failed ($(($(date +%s) - started)) s)"
	[ "$bad" -eq 0 ] || tail -n 60 "$log"
}

mkdir "$SCRATCH/log"
suite build sh test/build.sh
suite model sh test/model.sh
if grep -q '^CLANG *= *[^ ]' "$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global"; then
	suite fuzz sh test/fuzz.sh
else
	echo "fuzz: left out, this PostgreSQL names no clang"
fi

# for a standby that has no instaid
INSTAID_PLAIN=$(copy_postgresql "$PG_CONFIG" "$SCRATCH/plain")
INSTAID_PLAIN=${INSTAID_PLAIN%/bin/pg_config}
export INSTAID_PLAIN
# for pg_upgrade
if [ -n "${PG_MAJOR_OLD:-}" ]; then
	old=$(copy_postgresql "/usr/lib/postgresql/$PG_MAJOR_OLD/bin/pg_config" "$SCRATCH/old")
	mkdir "$SCRATCH/build_old"
	make -s -C "$SCRATCH/build_old" -f "$PWD/Makefile" PG_CONFIG="$old" install
	INSTAID_OLD=${old%/bin/pg_config}
	export INSTAID_OLD
fi

installed=$PG_CONFIG
install_private
start_server
suite regress make -s PG_CONFIG="$PG_CONFIG" installcheck ISOLATION=
cp regression.diffs "$SCRATCH/log/" 2>/dev/null && cat regression.diffs
suite isolation make -s PG_CONFIG="$PG_CONFIG" installcheck REGRESS=
cp test/regression.diffs "$SCRATCH/log/isolation.diffs" 2>/dev/null && cat test/regression.diffs
if [ -f "$("$PG_CONFIG" --sharedir)/extension/pgtap.control" ]; then
	createdb pgtap
	suite pgtap pg_prove -d pgtap --verbose test/pgtap/*.sql
else
	echo "pgtap: left out, pgTAP is not packaged for this PostgreSQL"
fi
stop_server
suite bench env PG_CONFIG="$installed" sh test/bench.sh
if [ -f "$("$PG_CONFIG" --sharedir)/valgrind.supp" ]; then
	suite memcheck sh test/memcheck.sh
fi

# what PostgreSQL::Test::Cluster wants to know
pgxs=$(dirname "$(dirname "$("$PG_CONFIG" --pgxs)")")
PG_REGRESS=$pgxs/test/regress/pg_regress
TESTDIR=$PWD
TESTDATADIR=$SCRATCH/tap/data
TESTLOGDIR=$SCRATCH/log/tap
export PG_REGRESS TESTDIR TESTDATADIR TESTLOGDIR
mkdir -p "$TESTLOGDIR"
for test in test/t/*.pl; do
	suite "$(basename "$test" .pl)" prove --verbose -I "$pgxs/test/perl" -I test/lib "$test"
	# before PostgreSQL 17 the logs are always here
	cp -R tmp_check/log/. "$TESTLOGDIR/" 2>/dev/null || :
done

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
