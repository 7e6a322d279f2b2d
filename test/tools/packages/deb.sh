# Build the Debian packages for the chosen PostgreSQL, and leave them in SCRATCH/result.
# Started by test/lib/run.
#
# packages: build-essential debhelper fakeroot help2man postgresql-server-dev-all

set -eu

PG_SUPPORTED_VERSIONS=$("$PG_CONFIG" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
# debian/tests has the tests of the packages, for when they are installed
DEB_BUILD_OPTIONS=nocheck
DEB_BUILD_PROFILES=nocheck
export PG_SUPPORTED_VERSIONS DEB_BUILD_OPTIONS DEB_BUILD_PROFILES

build=$SCRATCH/deb
log=$SCRATCH/log/deb.log
version=$(dpkg-parsechangelog -S Version)
source=instaid-${version%-*}
mkdir -p "$build/$source" "$SCRATCH/log" "$SCRATCH/result"
tar -cf - --exclude=./tmp_check --exclude=./dist . | tar -C "$build/$source" -xf -
cd "$build"
tar -czf "instaid_${version%-*}.orig.tar.gz" --exclude="$source/debian" "$source"
cd "$source"
pg_buildext updatecontrol
echo 'Building the packages'
dpkg-buildpackage -us -uc >"$log" 2>&1 || { tail -n 40 "$log"; exit 1; }
cp ../*.deb ../*.dsc ../*.tar.* ../*.changes ../*.buildinfo "$SCRATCH/result/"
