# Install, test, upgrade and purge the packages in an empty Debian; in TAP.
# test/tools/packages.sh runs this there as root, with the version as its argument.

set -u
cd /src
. test/lib/tap.sh

major=$1
package=postgresql-$major-instaid
lib=/usr/lib/postgresql/$major/lib
examples=/usr/share/doc/$package/examples
cp /logs/result/"$package"_*.deb /logs/result/"$package"-*_*.deb /logs/result/instaid-move_*.deb \
	/tmp/ || exit
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

# serves: the first package does what it is for, and audit() finds no error
last=0
serves()
{
	before=$last
	last=$(query 'SELECT insta5.next_id()') && [ "$last" -gt "$before" ] &&
		query 'SELECT shards FROM instaid.metrics' | grep -x 1 &&
		[ "$(query "SELECT count(*) FROM instaid.audit() WHERE severity = 'error'")" = 0 ]
}

# has EXTENSION: can it be created on this server?
has()
{
	query "SELECT name FROM pg_available_extensions WHERE name = '$1'" | grep -x "$1"
}

# as docs/install.md says; the package brings PostgreSQL, and starts it
install_alone()
{
	apt-get update -q && install_deb /tmp/"$package"_*.deb &&
		{ pg_ctlcluster "$major" main status || pg_ctlcluster "$major" main start; } &&
		! ldd "$lib/instaid.so" | grep libpq && ! has instaid_tickets && ! has instaid_adopt &&
		query "CREATE EXTENSION instaid; SELECT instaid.create_shard('insta5', 5)" && serves
}

# the source is another database of the server
install_tickets()
{
	install_deb /tmp/"$package"-tickets_*.deb && ldd "$lib/instaid_tickets.so" | grep libpq &&
		query 'CREATE DATABASE authority' &&
		query "CREATE EXTENSION instaid_tickets; CREATE SEQUENCE invoices START 7 CACHE 10;
			SELECT instaid_tickets.next('invoices')" authority | grep -x 7 &&
		query "CREATE EXTENSION instaid_tickets;
			CREATE SERVER authority FOREIGN DATA WRAPPER instaid_tickets
				OPTIONS (host '/var/run/postgresql', dbname 'authority');
			CREATE USER MAPPING FOR CURRENT_USER SERVER authority;
			CREATE FOREIGN TABLE invoices (value bigint) SERVER authority
				OPTIONS (sequence 'public.invoices', step '10')" &&
		! query "SELECT instaid_tickets.next('invoices')" 2>"$work/says" &&
		grep 'HINT:.* shared_preload_libraries' "$work/says" &&
		query "ALTER SYSTEM SET shared_preload_libraries = 'instaid_tickets'" &&
		pg_ctlcluster "$major" main restart &&
		[ "$(query "SELECT instaid_tickets.next('invoices') > 7")" = t ] && serves
}

install_adopt()
{
	install_deb /tmp/"$package"-adopt_*.deb && query "CREATE EXTENSION instaid_adopt" &&
		has instaid_adopt && query 'DROP EXTENSION instaid_adopt' && serves
}

# between two databases of the server
moves_shard()
{
	move="instaid-move --from dbname=authority --to dbname=moved"
	install_deb /tmp/instaid-move_*.deb && query 'ALTER SYSTEM SET wal_level = logical' && pg_ctlcluster "$major" main restart &&
		query 'CREATE DATABASE moved' && query 'CREATE EXTENSION instaid' moved &&
		query "CREATE EXTENSION instaid; SELECT instaid.create_shard('insta6', 6);
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
	set -- "$package" "$package-tickets" "$package-adopt" instaid-move
	for deb in "$@"; do
		dpkg-deb -R /tmp/"$deb"_*.deb "$work/next" &&
			sed -i 's/^Version: .*/&+next/; s/-instaid (= [^)]*/&+next/' "$work/next/DEBIAN/control" &&
			dpkg-deb -b "$work/next" "$work/$deb.deb" && rm -r "$work/next" || return
	done
	chmod 755 "$work" && install_deb "$work"/*.deb &&
		[ "$(dpkg-query -W "$@" | grep -c '+next$')" = 4 ] &&
		query 'ALTER EXTENSION instaid UPDATE; ALTER EXTENSION instaid_tickets UPDATE' && serves &&
		pg_ctlcluster "$major" main restart &&
		[ "$(query "SELECT instaid_tickets.next('invoices') > 7")" = t ] && serves
}

# each of the other packages can go, and the first one serves
purge_others()
{
	query 'DROP EXTENSION instaid_tickets CASCADE' &&
		query 'DROP EXTENSION instaid_tickets' authority &&
		query 'ALTER SYSTEM RESET shared_preload_libraries' &&
		pg_ctlcluster "$major" main restart || return
	for other in "$package-adopt" "$package-tickets" instaid-move; do
		apt-get purge -y -q "$other" && serves || return
	done
	! has instaid_tickets && ! has instaid_adopt && ! command -v instaid-move
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
check 'tickets have values, and those with a source when the library is preloaded' install_tickets
check 'instaid_adopt comes, and goes' install_adopt
check 'instaid-move moves a shard' moves_shard
check 'the SQL edition runs from the examples' install_sql_edition
check 'the packages are tested there by autopkgtest' run_autopkgtest
check 'the packages are upgraded, and IDs and tickets go on' upgrade
check 'the other packages are purged, and the first one serves' purge_others
check 'the first package is purged, and leaves no file' purge
pg_ctlcluster "$major" main stop
echo "1..$n"
