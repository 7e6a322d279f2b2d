#!/bin/sh
#
# test/tools/packages.sh [VERSION...]: packages are built in a Debian of each version, and
# installed, tested, upgraded and purged in an empty one.  Without a version, so is the
# image for Kubernetes.  The Dockerfiles are checked.

set -eu
. "$(dirname "$0")/folders.sh"

# count LOG: add the tests of a script to the sums
passed=0
failed=0
count()
{
	passed=$((passed + $(grep -c '^ok' "$1" || :)))
	failed=$((failed + $(grep -c '^not ok' "$1" || :)))
	grep -q '^1\.\.[1-9]' "$1" || failed=$((failed + 1))	# it ended early
}

for version in ${*:-15 17}; do
	row "$version"
	echo "== PostgreSQL $version, Debian $release"
	rm -rf "$logs/result"
	take_folder "$release"
	in_background in_folder env INSTAID_LOGS=/logs/tmp_check PG_MAJOR="$version" \
		RESULT=/logs/result \
		/src/test/lib/run test/tools/packages/build.sh >"$logs/build" 2>&1 || :
	cat "$logs/build"
	count "$logs/build"
	keep_logs

	take_folder "$release" "$release-empty"
	throwaway=yes
	in_background in_folder sh /src/test/tools/packages/install.sh "$version" \
		>"$logs/install" 2>&1 || :
	throwaway=
	cat "$logs/install"
	count "$logs/install"
	exec 9>&-
done
if [ $# -eq 0 ]; then
	echo "== the image for Kubernetes, PostgreSQL 18 and 19"
	row 19
	take_folder "$release"
	in_background in_folder env INSTAID_LOGS=/logs/tmp_check PG_MAJOR=19 \
		/src/test/lib/run test/tools/packages/image.sh >"$logs/image" 2>&1 || :
	cat "$logs/image"
	count "$logs/image"
	keep_logs
	exec 9>&-
fi
# The registry of npm is set for this machine, and not in the folders.
have npx npm
for dockerfile in Dockerfile packaging/kubernetes/Dockerfile; do
	if npx --yes dockerfile-utils@0.16.3 lint "$top/$dockerfile"; then
		echo "ok - $dockerfile is clean"
		passed=$((passed + 1))
	else
		echo "not ok - $dockerfile is clean"
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
