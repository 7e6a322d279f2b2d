# The tests of the project.  One suite more than there are processors runs at a time.  Prints a
# line for each one when it has ended, and the sums at the end.
# Started by test/lib/run.  With the argument "packages" it prints the packages that
# the chosen suites need, and does nothing else.
#
# SUITES chooses the suites, by default "all".  It holds names of suites, of sets
# of suites (below) and of files: "regress isolation/alter test/t/id_crash.pl".

set -eu
. test/lib/private.sh

# Every suite.  Each TAP file is a suite.
installcheck='regress isolation tickets/regress tickets/isolation adopt/regress adopt/isolation'
all="run build lint model fuzz $installcheck pgtap bench memcheck
	$(cd test/t && ls *.pl | sed 's/\.pl$//')"

# "full" is what "make test-matrix FULL=1" runs on one version.
full="$all elsewhere"
# These sets are not in "all", either.  They need programs of others: each file
# test/cluster/*.pl and each folder of clients/ with a file "trial" is a suite.
cluster=$(cd test && ls cluster/*.pl 2>/dev/null | sed 's/\.pl$//')
clients=$(ls clients/*/trial | sed 's,/trial$,,')
# These clients are newer in Debian 13 and 14 than in 12, or only there.  Their trials know
# each version.
newer='clients/psycopg3 clients/sqlalchemy clients/django clients/pgx5 clients/sqlx
	clients/psqlodbc clients/pdo clients/pgbouncer'

# A suite is in each of the sets "version" and "assert", unless its first comment says "# not in:".
# "version" is for other versions of PostgreSQL.  Suites of code that does not depend on the version
# are not in it: arithmetic, clocks, load, rights, procedures of the documentation, and most of the
# SQL edition.  It keeps what uses parts of the server that change: the headers, SQL, WAL, recovery,
# dumps, shared memory, background workers, libpq.  "assert" is for a build with assertions.  It
# leaves out every suite without which the others still execute each line of C that any suite
# executes, and shard_many, which takes minutes there.  "assert_short" is for each change: without
# those of it that execute few lines of their own.  "newest" is what is left of "version"
# when "assert" has run elsewhere, without what takes minutes.

# in_set NAME: the suites of the set
in_set()
{
	for each in $all; do
		case $1-$each in
			assert*-isolation | assert*-pgtap) continue ;;
		esac
		grep -qE "^# not in:.*\<($1|${1%%_*})\>" "$(file_of "$each")" || echo "$each"
	done
}

# suites_of WORD: print the suites that a word of SUITES stands for
suites_of()
{
	case $1 in
		all) echo "$all" ;;
		full) echo "$full" ;;
		cluster) echo "$cluster" ;;
		clients) echo "$clients" ;;
		newer) echo "$newer" ;;
		installcheck) echo "$installcheck" ;;
		version | assert | assert_short) in_set "$1" ;;
		newest)
			echo build $installcheck
			for each in $(in_set version); do
				[ -z "$(sed -n 's/^# in: newest/&/p' "$(file_of "$each")")" ] || echo "$each"
			done
			;;
		tickets/sql/* | adopt/sql/*) echo "${1%.sql}" | sed 's,/sql/,/regress/,' ;;
		tickets/specs/* | adopt/specs/*) echo "${1%.spec}" | sed 's,/specs/,/isolation/,' ;;
		sql/*) basename "$1" .sql | sed 's,^,regress/,' ;;
		specs/* | test/specs/*) basename "$1" .spec | sed 's,^,isolation/,' ;;
		test/pgtap/*.sql) echo "$1" | sed 's,test/pgtap/\(.*\)\.sql,pgtap/\1,' ;;
		test/t/*.pl) basename "$1" .pl ;;
		test/cluster/*.pl) echo "$1" | sed 's,test/\(.*\)\.pl,\1,' ;;
		test/*.sh | test/tools/lint.sh) basename "$1" .sh ;;
		clients/*/*) echo "${1%/*}" ;;
		*) echo "$1" ;;
	esac
}

# exists SUITE: is there a suite of that name?
exists()
{
	case $1 in
		tickets/*/* | adopt/*/*)
			file=${1%%/*}/${1##*/}
			[ -f "${file%/*}/sql/${file#*/}.sql" ] || [ -f "${file%/*}/specs/${file#*/}.spec" ]
			;;
		regress/*) [ -f "sql/${1#*/}.sql" ] ;;
		isolation/*) [ -f "test/specs/${1#*/}.spec" ] ;;
		pgtap/*) [ -f "test/pgtap/${1#*/}.sql" ] ;;
		*) echo " $(echo $full $cluster $clients) " | grep -qF " $1 " ;;
	esac
}

packages_in()
{
	sed -En 's,^(#|--|//) packages: ,,p' "$@"
}

# file_of SUITE: print the file whose first comment describes the suite
file_of()
{
	case $1 in
		regress* | isolation* | tickets/* | adopt/* | pgtap*) echo /dev/null ;;
		lint) echo test/tools/lint.sh ;;
		run | build | elsewhere | model | fuzz | bench | memcheck) echo "test/$1.sh" ;;
		cluster/*) echo "test/$1.pl" ;;
		clients/*) echo "$1/trial" ;;
		*) echo "test/t/$1.pl" ;;
	esac
}

# needs_full SUITE: is it left out, since FULL is not set?
needs_full()
{
	[ -z "${FULL:-}" ] && grep -q '^# only with FULL=1' "$(file_of "$1")"
}

# full_adds SUITE: print what it tests only with FULL set, if that is not set
full_adds()
{
	[ -n "${FULL:-}" ] || sed -n 's/^# FULL=1 adds/; FULL=1 adds/p' "$(file_of "$1")"
}

# packages_of SUITE: print the packages that the suite needs besides those of
# PostgreSQL, as comments of its files declare them
packages_of()
{
	! needs_full "$1" || return 0
	case $1 in
		pgtap*) echo 'libtap-parser-sourcehandler-pgtap-perl postgresql-@PG@-pgtap?' ;;
		clients/*)
			# a client that cannot be had is left out
			packages_in clients/run $(find "$1" -type f) | sed 's/[^ ]\{1,\}/&?/g'
			;;
		*) packages_in $(file_of "$1" | sed 's,.*\.pl$,test/lib/Clients.pm &,') ;;
	esac
}

# left_out SUITE: print why it is not run, or print nothing
left_out()
{
	! needs_full "$1" || { echo 'it takes minutes; set FULL=1'; return; }
	case $1 in
		fuzz)
			grep -q '^CLANG *= *[^ ]' "$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global" ||
				echo 'this PostgreSQL names no clang' ;;
		pgtap*)
			[ -f "$("$PG_CONFIG" --sharedir)/extension/pgtap.control" ] ||
				echo 'pgTAP is not installed in this PostgreSQL' ;;
		memcheck)
			[ -f "$("$PG_CONFIG" --sharedir)/valgrind.supp" ] ||
				echo 'this PostgreSQL is not built for valgrind' ;;
		clients/*)
			command -v dpkg-query >/dev/null || return 0
			major=$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
			for package in $(packages_of "$1" | sed "s/@PG@/$major/g; s/?//g"); do
				status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || :
				command -v "$package" >/dev/null || [ "$status" = installed ] ||
					{ echo "the package $package is missing"; break; }
			done
			;;
	esac
}

# copy_clusters: let initdb, called as PostgreSQL::Test calls it, copy a cluster.  That takes a
# tenth of the time.  A program's first four clusters are of four copies, and so on: two that move
# shards to each other have different system identifiers.
copy_clusters()
{
	bindir=$(dirname "$PG_CONFIG")
	for copy in 0 1 2 3; do
		"$bindir/initdb" -D "$SCRATCH/cluster/$copy" -A trust -N >"$SCRATCH/log/initdb.log"
	done
	for each in "$bindir" "$INSTAID_PLAIN/bin"; do
		mv "$each/initdb" "$each/initdb.made"
		cat >"$each/initdb" <<-EOF
			#!/bin/sh
			[ "\$#\$1\$3\$4\$5" = 5-D-Atrust-N ] || exec "$each/initdb.made" "\$@"
			n=0
			until mkdir "$SCRATCH/cluster/\$PPID.\$n" 2>/dev/null; do n=\$((n + 1)); done
			cp -R "$SCRATCH/cluster/\$((n % 4))" "\$2"
		EOF
		chmod +x "$each/initdb"
	done
}

# Install the extension in a PostgreSQL of our own, and set what TAP tests need.
install()
{
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
	install_private
	[ -z "$others" ] || copy_clusters
	# what PostgreSQL::Test::Cluster wants to know
	pgxs=$(dirname "$(dirname "$("$PG_CONFIG" --pgxs)")")
	PG_REGRESS=$pgxs/test/regress/pg_regress
	TESTDIR=$PWD
	TESTDATADIR=$SCRATCH/tap/data
	export PG_REGRESS TESTDIR TESTDATADIR TESTLOGDIR
	# before PostgreSQL 17 the logs are always there
	mkdir -p "$TESTLOGDIR" tmp_check
	ln -s "$TESTLOGDIR" tmp_check/log
}

# A step of an isolation test that waits in vain for a lock fails after these seconds.
PGISOLATIONTIMEOUT=${PGISOLATIONTIMEOUT:-60}
export PGISOLATIONTIMEOUT

# log_of SUITE: print the name of the file with its output
log_of()
{
	echo "$SCRATCH/log/$(echo "$1" | tr / -).log"
}

# keep SUITE COMMAND...: run it, and keep its output, its exit status and its seconds
keep()
{
	log=$(log_of "$1")
	shift
	started=$(date +%s)
	status=0
	"$@" >"$log" 2>&1 </dev/null 3>&- || status=$?
	echo "$status $(($(date +%s) - started))" >"$log.end"
}

# run_door DOOR/KIND or DOOR/KIND/FILE: run regression or isolation tests of tickets/ or adopt/
run_door()
{
	door=${1%%/*}
	kind=${1#*/}
	file=
	case $kind in
		*/*) file=${kind#*/} kind=${kind%/*} ;;
	esac
	rm -f "$door/regression.diffs" "$door/output_iso/regression.diffs"
	case $kind in
		regress) set -- "$1" ISOLATION= ${file:+REGRESS="$file"} ;;
		isolation) set -- "$1" REGRESS= ${file:+ISOLATION="$file"} ;;
	esac
	name=$1
	shift
	keep "$name" make -s -C "$door" PG_CONFIG="$PG_CONFIG" installcheck "$@"
	diffs=$(log_of "$name").diffs
	cat "$door/regression.diffs" "$door/output_iso/regression.diffs" >"$diffs" 2>/dev/null || :
	[ -s "$diffs" ] || rm "$diffs"
}

# run_suite NAME: run the suite or the file of that name
run_suite()
{
	file=
	case $1 in
		tickets/* | adopt/*) run_door "$1"; return ;;
		*/*) file=${1#*/} ;;
	esac
	case ${1%/*} in
		regress)
			rm -f regression.diffs
			keep "$1" make -s PG_CONFIG="$PG_CONFIG" installcheck ISOLATION= \
				${file:+REGRESS="$file"}
			mv regression.diffs "$(log_of "$1").diffs" 2>/dev/null || :
			;;
		isolation)
			rm -f test/regression.diffs
			keep "$1" make -s PG_CONFIG="$PG_CONFIG" installcheck REGRESS= \
				${file:+ISOLATION="$file"}
			mv test/regression.diffs "$(log_of "$1").diffs" 2>/dev/null || :
			;;
		pgtap)
			keep "$1" sh test/pgtap.sh ${file:+"test/pgtap/$file.sql"}
			;;
		clients) keep "$1" sh clients/run "$file" ;;
		memcheck) keep "$1" sh test/memcheck.sh ;;
		*)
			case $(file_of "$1") in
				*.pl)
					keep "$1" prove --merge --verbose -I "$pgxs/test/perl" -I test/lib \
						"$(file_of "$1")"
					;;
				*) keep "$1" env PG_CONFIG="$installed" SCRATCH="${own:-$SCRATCH}" \
					sh "$(file_of "$1")" ;;
			esac
			;;
	esac
}

# run_shared SUITE...: run them one after the other.  Those that need a server that runs
# already come first, and share one.
run_shared()
{
	rm -rf "$SCRATCH/data"
	[ "$*" = memcheck ] || start_server fsync=off
	for each in "$@"; do
		[ "$each" != memcheck ] || stop_server
		run_suite "$each"
		echo "$each" >&3
	done
	stop_server
}

passed=0
failed=0
failed_suites=
number=0

# report SUITE: print what came of it, and count the tests that passed and failed by
# its output, which is TAP or the format of pg_regress before PostgreSQL 16.  A command
# that fails without naming a failed test, or that runs no test, counts as one failure.
# A command that prints "1..0 # skip REASON" in TAP, and no test, is left out.
report()
{
	log=$(log_of "$1")
	read -r status seconds <"$log.end"
	ok=$(grep -E '^(ok [0-9]|test .* \.\.\. ok)' "$log" | grep -vc '# skip' || :)
	bad=$(grep -cE '^(not ok [0-9]|test .* \.\.\. FAILED)' "$log" || :)
	why=$(sed -En 's/^(1\.\.0 # skip|.* \.\. skipped:) //Ip' "$log" | head -n 1)
	printf '%s of %s: %s ... ' $((number += 1)) $total "$1"
	if [ $((status + ok + bad)) -eq 0 ] && [ -n "$why" ]; then
		echo "left out, $why"
		left_out_suites="$left_out_suites $1"
		return
	fi
	if [ "$bad" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$ok" -eq 0 ]; }; then
		bad=1
	fi
	passed=$((passed + ok))
	failed=$((failed + bad))
	echo "$ok passed, $bad failed ($seconds s)$(full_adds "$1")"
	[ "$bad" -eq 0 ] || failed_suites="$failed_suites $1"
}

# show_failures SUITE: print what failed in it: the names of the failed tests with their
# diagnostics, the diff of pg_regress, or what ended the suite.  Paths are those of the tree.
show_failures()
{
	log=$(log_of "$1")
	echo "== $1"
	{
		# "# TODO" marks a test that may fail
		awk '/^not ok/ && !/# TODO/ { left = 20; found = 1 }
			/^ok / { left = 0 }
			left-- > 0 && (/^not ok/ || /^#/) { print } END { exit !found }' "$log" ||
			grep -E '\.\.\. FAILED' "$log" || {
			# it died
			[ ! -f "$TESTLOGDIR/regress_log_$1" ] || log=$TESTLOGDIR/regress_log_$1
			grep -vE '^(### |# Running|# No postmaster|waiting for server|server st)' "$log" |
				tail -n 30
		}
		[ ! -f "$log.diffs" ] || awk 'NR <= 200
			END { if (NR > 200) print NR - 200 " more lines" }' "$log.diffs"
	} | sed "s,$SCRATCH/\($1/\)*src/,,g; s,$SCRATCH/log/,tmp_check/,g; s,$SCRATCH/,,g"
}

left_out_suites=
private=
alone=
shared=
memcheck=
trials=
others=
for word in ${SUITES:-all}; do
	names=$(suites_of "$word")
	for name in $names; do
		if ! exists "$name"; then
			echo "There is no suite \"$word\".  There are:" \
				all full installcheck version assert assert_short newest cluster clients newer \
				$full $cluster $clients >&2
			exit 2
		fi
		if [ "${1:-}" = packages ]; then
			packages_of "$name"
			continue
		fi
		why=$(left_out "$name")
		if [ -n "$why" ]; then
			echo "$name: left out, $why"
			left_out_suites="$left_out_suites $name"
			continue
		fi
		case $name in
			# they need a source tree that is not built yet
			build | lint | elsewhere) alone="$alone $name" ;;
			run | model | fuzz | bench) others="$others $name" ;;
			regress* | isolation* | tickets/* | adopt/* | pgtap*)
				shared="$shared $name" private=yes ;;
			memcheck) memcheck=$name private=yes ;;
			# they share servers
			clients/*) trials="$trials $name" private=yes ;;
			*) others="$others $name" private=yes ;;
		esac
	done
done
[ "${1:-}" != packages ] || exit 0
total=$(echo $alone $shared $memcheck $trials $others | wc -w)
# Those that take longest begin first, so that the processors have work until the end.
others=$(for name in $others; do
	echo "$(sed -n 's/^# takes \([0-9]*\) s$/\1/p' "$(file_of "$name")" | grep . || echo 0) $name"
done | sort -s -rn -k 1,1 | sed 's/.* //')

TESTLOGDIR=$SCRATCH/log/tap
mkdir "$SCRATCH/log"
began=$(date +%s)
installed=$PG_CONFIG
# a tree for each of those that build in it, or need one that is not built
for name in $alone; do
	mkdir "$SCRATCH/$name"
	cp -R . "$SCRATCH/$name/src"
done
[ -z "$private" ] || install

# They wait more than they compute.  Each writes its name to the pipe when it has ended, and
# "free" when another one can begin.
at_a_time=$(($(nproc) + 1))
mkfifo "$SCRATCH/ended"
exec 3<>"$SCRATCH/ended"
running=0

# begin COMMAND...: start it as soon as there is room
begin()
{
	wait_for $at_a_time
	running=$((running + 1))
	{ "$@" || :; echo free >&3; } &
}

# wait_for LIMIT: report what ends, until fewer than that are running
wait_for()
{
	while [ $running -ge "$1" ]; do
		read -r name <&3
		if [ "$name" = free ]; then
			running=$((running - 1))
		else
			report "$name"
		fi
	done
}

# run_each SUITE...: one after the other
run_each()
{
	for each in "$@"; do
		run_suite "$each"
		echo "$each" >&3
	done
}

# run_alone SUITE: run it in its tree.  What servers it starts are there, too.
run_alone()
{
	own=$SCRATCH/$1
	cd "$own/src"
	run_each "$1"
}

for name in $alone; do
	begin run_alone "$name"
done
[ -z "$shared$memcheck" ] || begin run_shared $shared $memcheck
[ -z "$trials" ] || begin run_each $trials
for other in $others; do
	begin run_each "$other"
done
wait_for 1

[ -z "$left_out_suites" ] || echo "$(echo "$left_out_suites" | wc -w) left out:$left_out_suites"
# at the end, which is what a log of everything is often kept of
for name in $failed_suites; do
	show_failures "$name"
done
echo "All of it took $(($(date +%s) - began)) s"
echo "$passed passed, $failed failed"
[ -z "$failed_suites" ] || echo "failed:$failed_suites"
[ $((passed + failed)) -gt 0 ] || { echo "Nothing was tested" >&2; exit 1; }
[ $failed -eq 0 ]
