#!/bin/sh
#
# test/tools/matrix.sh [prepare] [VERSION...]: tests on each PostgreSQL of the table,
# in a Debian that has it.
#
# By default these are the tests that depend on the version, with short load
# tests.  With FULL set these are all tests, with load tests of full length.  SUITES
# chooses other tests.
#
# test/tools/folders.sh makes the Debians, and "prepare" does nothing else.  The logs of
# tests that fail are left in tmp_check/VERSION.

set -eu
. "$(dirname "$0")/folders.sh"

prepare_only=
if [ "${1:-}" = prepare ]; then
	prepare_only=yes
	shift
fi
versions=${*:-$(echo "$table" |
	awk -v all="${FULL:-}$prepare_only" 'all != "" || $4 != "-" { print $1 }')}
for version in $versions; do row "$version"; done

# run_suites VARIABLE=VALUE...: the tests in this folder
run_suites()
{
	in_folder env INSTAID_LOGS=/logs/tmp_check "$@" /src/test/lib/run test/suites.sh 2>&1 |
		tee "$logs/output"
}

failed_in()
{
	sed -n 's/^failed: //p' "$1" | tail -n 1
}

seconds()
{
	echo $(($(date +%s) - $1))
}

passed=0
failed=0
failed_suites=
for version in $versions; do
	row "$version"
	began=$(date +%s)
	take_folder "$release" "$release${arch:+-$arch}"
	echo "== PostgreSQL $version, Debian $release"
	major=${version%%-*}
	if [ "$version" = "$major-assert" ]; then
		in_background in_folder /src/test/tools/build-assert "$major" >"$logs/build" 2>&1 ||
			{ tail -n 20 "$logs/build" >&2
				fail "Could not build PostgreSQL $major with assertions in $folder"; }
		set -- PG_CONFIG="/opt/postgresql-$version/bin/pg_config"
	elif [ -n "$arch" ]; then
		# there is no pg_config in PATH, and no apt
		set -- PG_CONFIG="/usr/lib/postgresql/$major/bin/pg_config"
	else
		set -- PG_MAJOR="$major" PG_MAJOR_OLD="$old"
	fi
	# an empty script: this only installs the packages
	in_background in_folder env INSTAID_LOGS=/logs/tmp_check "$@" /src/test/lib/run /dev/null
	prepared="PostgreSQL $version: prepared in $(seconds "$began") s"
	if [ -n "$prepare_only" ]; then
		echo "$prepared"
	else
		if [ -n "${FULL:-}" ]; then
			set -- SUITES="${SUITES:-$full}" "$@"
		else
			# here the load tests are about the version, and short ones show that
			set -- SUITES="${SUITES:-${suites:-$full}}" \
				INSTAID_TEST_IDS="${INSTAID_TEST_IDS:-1000000}" \
				INSTAID_TEST_ROUNDS="${INSTAID_TEST_ROUNDS:-5}" "$@"
		fi
		began=$(date +%s)
		: >"$logs/output"
		in_background run_suites "$@"
		echo "$prepared, tested in $(seconds "$began") s"

		sum=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$logs/output" | tail -n 1)
		[ "${sum:-0 0}" != '0 0' ] || sum='0 1'		# nothing was tested
		passed=$((passed + ${sum% *}))
		failed=$((failed + ${sum#* }))
		[ "${sum#* }" -eq 0 ] ||
			failed_suites="$failed_suites $version ($(failed_in "$logs/output"))"
		keep_logs
	fi
	exec 9>&-
done
[ -z "$prepare_only" ] || exit 0

[ -z "$failed_suites" ] || echo "failed:$failed_suites"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
