# Install, test, upgrade and purge the package in an empty Debian; in TAP.
# test/packages.sh runs this there as root, with the version as its argument.

set -u
cd /src
. test/lib/tap.sh

major=$1
package=postgresql-$major-instaid
deb=$(ls /logs/result/"$package"_*_*.deb) || exit
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

query()
{
	su postgres -c "psql -XAtq -v ON_ERROR_STOP=1 -c \"$1\""
}

# as docs/install.md says; the package brings PostgreSQL, and starts it
install_deb()
{
	cp "$deb" /tmp/ && apt-get update -q &&
		apt-get install -y -q --no-install-recommends "/tmp/${deb##*/}" &&
		{ pg_ctlcluster "$major" main status || pg_ctlcluster "$major" main start; } &&
		query "CREATE EXTENSION instaid; SELECT instaid.create_shard('insta5', 5)" &&
		first=$(query 'SELECT insta5.next_id()') && [ "$first" -gt 0 ]
}

run_autopkgtest()
{
	apt-get update -q && apt-get install -y -q --no-install-recommends autopkgtest dpkg-dev &&
		autopkgtest --no-built-binaries /logs/result/*.dsc -- null
}

# to the same files in a package of the next version
upgrade_deb()
{
	dpkg-deb -R "$deb" "$work/next" && sed -i 's/^Version: .*/&+next/' "$work/next/DEBIAN/control" &&
		dpkg-deb -b "$work/next" "$work/next.deb" && chmod 755 "$work" &&
		apt-get install -y -q "$work/next.deb" && dpkg-query -W "$package" | grep -F +next &&
		query 'ALTER EXTENSION instaid UPDATE' &&
		second=$(query 'SELECT insta5.next_id()') && [ "$second" -gt "$first" ]
}

purge_deb()
{
	query 'DROP EXTENSION instaid CASCADE' && apt-get purge -y -q "$package" && query 'SELECT 1' &&
		! find /etc/postgresql /usr /var/lib/postgresql -name '*instaid*' | grep .
}

check 'the package is installed into an empty Debian, with PostgreSQL' install_deb
check '... is tested there by autopkgtest' run_autopkgtest
check '... is upgraded, and IDs go on' upgrade_deb
check '... is purged, and leaves no file' purge_deb
pg_ctlcluster "$major" main stop
echo "1..$n"
