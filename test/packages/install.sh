# Install, test, upgrade and purge the packages in an empty Debian; in TAP.
# test/packages.sh runs this there as root, with the version as its argument.

set -u
cd /src
. test/lib/tap.sh

major=$1
package=postgresql-$major-instaid
lib=/usr/lib/postgresql/$major/lib
examples=/usr/share/doc/$package/examples
cp /logs/result/"$package"_*.deb /logs/result/"$package"-sources_*.deb /tmp/ || exit
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

# query SQL [DATABASE]
query()
{
	su postgres -c "psql -XAtq -v ON_ERROR_STOP=1 -d ${2:-postgres} -c \"$1\""
}

install_deb()
{
	apt-get install -y -q --no-install-recommends "$@"
}

# serves ERRORS: the first package does what it is for, and audit() finds this many errors
last=0
plain=0
serves()
{
	before=$last
	plain=$((plain + 1))
	last=$(query 'SELECT insta5.next_id()') && [ "$last" -gt "$before" ] &&
		[ "$(query "SELECT instaid.next_ticket('plain')")" = $plain ] &&
		query 'SELECT shards, tickets FROM instaid.metrics' | grep '^1|' &&
		[ "$(query "SELECT count(*) FROM instaid.audit() WHERE severity = 'error'")" = "$1" ]
}

# as docs/install.md says; the package brings PostgreSQL, and starts it
install_alone()
{
	apt-get update -q && install_deb /tmp/"$package"_*.deb &&
		{ pg_ctlcluster "$major" main status || pg_ctlcluster "$major" main start; } &&
		! ldd "$lib/instaid.so" | grep libpq && ! [ -e "$lib/instaid_sources.so" ] &&
		query "CREATE EXTENSION instaid; SELECT instaid.create_shard('insta5', 5);
			SELECT instaid.create_ticket('plain')" && serves 0
}

# the source is another database of the server
lacks_sources()
{
	query 'CREATE DATABASE authority' &&
		query "CREATE EXTENSION instaid;
			SELECT instaid.create_ticket('invoices', start => 7, step => 10)" authority &&
		query "CREATE SERVER authority FOREIGN DATA WRAPPER instaid
				OPTIONS (host '/var/run/postgresql', dbname 'authority');
			CREATE USER MAPPING FOR CURRENT_USER SERVER authority;
			SELECT instaid.create_ticket('invoices', step => 10, source => ARRAY['authority'])" &&
		refuses_source
}

refuses_source()
{
	! query "SELECT instaid.next_ticket('invoices')" 2>"$work/says" &&
		grep 'HINT:  Install instaid_sources .* add it to shared_preload_libraries' "$work/says" &&
		serves 1
}

install_sources()
{
	install_deb /tmp/"$package"-sources_*.deb && ldd "$lib/instaid_sources.so" | grep libpq &&
		query "ALTER SYSTEM SET shared_preload_libraries = 'instaid_sources'" &&
		pg_ctlcluster "$major" main restart &&
		[ "$(query "SELECT instaid.next_ticket('invoices')")" = 7 ] && serves 0
}

# between two databases of the server
moves_shard()
{
	move="/usr/lib/postgresql/$major/bin/instaid-move --from dbname=authority --to dbname=moved"
	query 'ALTER SYSTEM SET wal_level = logical' && pg_ctlcluster "$major" main restart &&
		query 'CREATE DATABASE moved' && query 'CREATE EXTENSION instaid' moved &&
		query "SELECT instaid.create_shard('insta6', 6);
			CREATE TABLE insta6.photos (id bigint PRIMARY KEY DEFAULT insta6.next_id());
			INSERT INTO insta6.photos SELECT FROM generate_series(1, 3)" authority &&
		su postgres -c "$move insta6" && su postgres -c "$move --finish insta6" &&
		query 'INSERT INTO insta6.photos DEFAULT VALUES' moved &&
		[ "$(query 'SELECT count(*) FROM insta6.photos' moved)" = 4 ] &&
		[ "$(query "SELECT to_regnamespace('insta6') IS NULL" authority)" = t ]
}

install_sql_edition()
{
	query 'CREATE DATABASE managed' &&
		su postgres -c "psql -Xq -v ON_ERROR_STOP=1 -d managed -f $examples/sql-edition/all.sql" &&
		query "SELECT instaid.create_shard('insta5', 5); SELECT insta5.next_id()" managed
}

run_autopkgtest()
{
	apt-get update -q && install_deb autopkgtest dpkg-dev &&
		autopkgtest --no-built-binaries /logs/result/*.dsc -- null
}

# to the same files in packages of the next version
upgrade()
{
	for deb in "$package" "$package-sources"; do
		dpkg-deb -R /tmp/"$deb"_*.deb "$work/next" &&
			sed -i 's/^Version: .*/&+next/; s/-instaid (= [^)]*/&+next/' "$work/next/DEBIAN/control" &&
			dpkg-deb -b "$work/next" "$work/$deb.deb" && rm -r "$work/next" || return
	done
	chmod 755 "$work" && install_deb "$work/$package.deb" "$work/$package-sources.deb" &&
		[ "$(dpkg-query -W "$package" "$package-sources" | grep -c '+next$')" = 2 ] &&
		query 'ALTER EXTENSION instaid UPDATE' && serves 0 &&
		pg_ctlcluster "$major" main restart &&
		[ "$(query "SELECT instaid.next_ticket('invoices') > 7")" = t ] && serves 0
}

purge_sources()
{
	query 'ALTER SYSTEM RESET shared_preload_libraries' && pg_ctlcluster "$major" main restart &&
		apt-get purge -y -q "$package-sources" && ! [ -e "$lib/instaid_sources.so" ] &&
		! [ -e "$lib/../bin/instaid-move" ] &&
		refuses_source
}

# with the file of the page, where it has the shard that was moved
purge()
{
	su postgres -c "cd /usr/share/doc/$package &&
			psql -Xq -d moved -f examples/remove_shards.sql -c 'DROP EXTENSION instaid'" &&
		query 'INSERT INTO insta6.photos DEFAULT VALUES' moved &&
		query 'DROP EXTENSION instaid CASCADE' && apt-get purge -y -q "$package" && query 'SELECT 1' &&
		! find /etc/postgresql /usr /var/lib/postgresql -name '*instaid*' | grep .
}

check 'the first package alone serves an empty Debian, with PostgreSQL' install_alone
check '... and says what a ticket with a source needs' lacks_sources
check 'the second package is installed and preloaded, and the ticket has values' install_sources
check '... and its instaid-move moves a shard' moves_shard
check 'the SQL edition runs from the examples' install_sql_edition
check 'the packages are tested there by autopkgtest' run_autopkgtest
check '... are upgraded, and IDs and tickets go on' upgrade
check 'the second package is purged, and the first one serves' purge_sources
check '... is purged, and leaves no file' purge
pg_ctlcluster "$major" main stop
echo "1..$n"
