# The images: what is in that for CloudNativePG serves PostgreSQL 18 and 19, which have no
# instaid of their own, and so does what Dockerfile compiles; in TAP.  Started by test/lib/run.
#
# packages: build-essential debhelper fakeroot help2man postgresql-server-dev-all
# packages: postgresql-18 postgresql-server-dev-18 postgresql-19 postgresql-server-dev-19

set -u
. test/lib/tap.sh
. test/lib/private.sh

bin()
{
	echo "/usr/lib/postgresql/$1/bin"
}

mount_point()
{
	echo "$SCRATCH/extensions$1/instaid"
}

# image MAJOR: build the packages, and lay out the image where CloudNativePG would mount it, by
# the steps of the Dockerfile
image()
{
	image=$(mount_point "$1")
	PG_CONFIG=$(bin "$1")/pg_config SCRATCH=$SCRATCH/$1 sh test/tools/packages/deb.sh || return
	for deb in $(sed -n "s/\${PG_MAJOR}/$1/g; s,dist/,,g; s,^COPY \(.*\.deb\) .*,\1,p" \
		packaging/kubernetes/Dockerfile); do
		dpkg -x "$SCRATCH/$1/result"/$deb "$work/package$1" || return
	done
	sed -n "s/\${PG_MAJOR}/$1/g; s,^COPY --from=package /package,$work/package$1,p" \
		packaging/kubernetes/Dockerfile >"$work/copies" && [ "$(wc -l <"$work/copies")" -eq 3 ] || return
	while read -r from to; do
		case $from in
			*/) from=$from. ;;
		esac
		mkdir -p "$image$to" && cp -R "$from" "$image$to" || return
	done <"$work/copies"
}

# the paths of CloudNativePG's documentation
has_layout()
(
	cd "$(mount_point "$1")" && [ "$(ls)" = "$(printf 'lib\nlicenses\nshare')" ] &&
		for extension in instaid instaid_tickets instaid_adopt; do
			ls "share/extension/$extension.control" share/extension/"$extension"--*.sql || return
		done &&
		ls lib/instaid.so lib/instaid_tickets.so lib/bitcode/instaid \
			"licenses/postgresql-$1-instaid/copyright"
)

# init MAJOR SHARE LIB: a cluster with these directories in its paths
init()
{
	rm -rf "$SCRATCH/data$1"
	"$(bin "$1")/initdb" -D "$SCRATCH/data$1" -U postgres -A trust -E UTF8 --no-locale >/dev/null &&
		cat >>"$SCRATCH/data$1/postgresql.conf" <<-END
			listen_addresses = ''
			unix_socket_directories = '$SCRATCH'
			shared_preload_libraries = 'instaid_tickets'
			extension_control_path = '\$system:$2'
			dynamic_library_path = '\$libdir:$3'
		END
}

init_with_image()
{
	init "$1" "$(mount_point "$1")/share" "$(mount_point "$1")/lib"
}

start()
{
	log=$SCRATCH/log/server$1
	"$(bin "$1")/pg_ctl" -D "$SCRATCH/data$1" -l "$log" -w -s start || { cat "$log"; return 1; }
}

stop()
{
	"$(bin "$1")/pg_ctl" -D "$SCRATCH/data$1" -w -s -m fast stop
}

query()
{
	psql -XAtq -h "$SCRATCH" -U postgres -v ON_ERROR_STOP=1 "$@"
}

no_errors()
{
	query -c 'SELECT * FROM instaid.audit()' >"$work/audit" && ! grep ^error "$work/audit"
}

# the server itself has no instaid, and the image has
uses_image()
{
	init_with_image "$1" && start "$1" &&
		! find "$(bin "$1")/.." "/usr/share/postgresql/$1" -name 'instaid*' | grep . &&
		query -c 'CREATE EXTENSION instaid_adopt CASCADE' -c 'DROP EXTENSION instaid_adopt' \
			-c "SELECT instaid.create_shard('insta5', 5)" \
			-c 'CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id())' \
			-c 'INSERT INTO insta5.photos SELECT FROM generate_series(1, 2000)' &&
		[ "$(query -c 'SELECT instaid.extract_shard_id(max(id)) FROM insta5.photos')" = 5 ] && no_errors
}

# a background worker gets the values from another database
has_source()
{
	query -c 'CREATE DATABASE authority' &&
		query -d authority -c 'CREATE EXTENSION instaid_tickets' \
			-c 'CREATE SEQUENCE invoices START 7 CACHE 10' \
			-c "CREATE ROLE leaser LOGIN PASSWORD 'secret'" \
			-c 'GRANT USAGE ON SEQUENCE invoices TO leaser' &&
		query -c 'CREATE EXTENSION instaid_tickets' \
			-c "CREATE SERVER authority FOREIGN DATA WRAPPER instaid_tickets
				OPTIONS (host '$SCRATCH', dbname 'authority')" \
			-c "CREATE USER MAPPING FOR CURRENT_USER SERVER authority
				OPTIONS (user 'leaser', password 'secret')" \
			-c "CREATE FOREIGN TABLE invoices (value bigint) SERVER authority
				OPTIONS (sequence 'public.invoices', step '10')" &&
		[ "$(query -c "SELECT instaid_tickets.next('invoices')")" = 7 ]
}

upgrades()
{
	before=$(query -c 'SELECT max(id) FROM insta5.photos') && stop 18 && init_with_image 19 &&
		(cd "$SCRATCH" && "$(bin 19)/pg_upgrade" -b "$(bin 18)" -B "$(bin 19)" \
			-d data18 -D data19 -U postgres) &&
		start 19 && query -c 'INSERT INTO insta5.photos DEFAULT VALUES' &&
		[ "$(query -c "SELECT count(*) FROM insta5.photos WHERE id > $before")" = 1 ] &&
		[ "$(query -c "SELECT instaid_tickets.next('invoices') > 7")" = t ] && no_errors
}

# installed MAJOR PG_CONFIG VARIABLE=VALUE...: install with these variables of make, and use it
installed()
{
	major=$1
	pg_config=$2
	shift 2
	rm -rf "$SCRATCH/other" "$work/build"
	mkdir "$work/build" &&
		make -s -C "$work/build" -f "$PWD/Makefile" PG_CONFIG="$pg_config" "$@" install &&
		control=$(find "$SCRATCH/other" -name instaid.control | grep .) &&
		library=$(find "$SCRATCH/other" -name instaid.so | grep .) &&
		find "$SCRATCH/other" -name instaid-move | grep . &&
		init "$major" "${control%/extension/instaid.control}" "${library%/instaid.so}" &&
		start "$major" && query -c 'CREATE EXTENSION instaid' \
			-c "SELECT instaid.create_shard('insta5', 5)" -c 'SELECT insta5.next_id()' && stop "$major"
}

in_directories()
{
	installed "$1" "$(bin "$1")/pg_config" \
		datadir="$SCRATCH/other/share" pkglibdir="$SCRATCH/other/lib" bindir="$SCRATCH/other/bin"
}

# Debian's PostgreSQL was configured with directories that do not depend on prefix; this one
# is as if it had been built with the default ones.
by_prefix()
{
	copy=$(copy_postgresql "$(bin "$1")/pg_config" "$work/pg$1") &&
		global=$(dirname "$("$copy" --pgxs)")/../Makefile.global &&
		sed -e 's,^datarootdir := /.*,datarootdir := ${prefix}/share,' \
			-e 's,^datadir := /.*,datadir := ${datarootdir},' \
			-e 's,^bindir := /.*,bindir := ${exec_prefix}/bin,' \
			-e 's,^libdir := /.*,libdir := ${exec_prefix}/lib,' \
			-e 's,^override pkglibdir := /.*,override pkglibdir := $(pkglibdir)/postgresql,' \
			"$global" >"$work/global" && rm "$global" && cp "$work/global" "$global" &&
		installed "$1" "$copy" prefix="$SCRATCH/other"
}

# compiled MAJOR: run the steps of the Dockerfile's first stage in a directory, and see that
# the second one gets the files of the extension, and nothing else
compiled()
{
	root=$work/docker
	rm -rf "$root" && mkdir -p "$root/src" || return
	sed -n "s/\${PG_MAJOR}/$1/g; s,^COPY \([^-].*\) /src,cp -R \1 $root/src,p
		s,^RUN make -C /src \(.*\) DESTDIR=/instaid,make -s -C $root/src \1 DESTDIR=$root/instaid,p" \
		Dockerfile >"$work/steps" && [ "$(wc -l <"$work/steps")" -eq 6 ] || return
	sh -eu "$work/steps" || return
	[ "$(sed -n '/^FROM.*}$/,$p' Dockerfile | grep -v '^FROM')" = 'COPY --from=build /instaid/ /' ] &&
		"$root/instaid$(bin "$1")/instaid-move" --help | grep '^ *--reverse' &&
		! find "$root/instaid" -type f ! -path "*/usr/lib/postgresql/$1/lib/*" \
			! -path "*/usr/share/postgresql/$1/extension/*" ! -path "*/bin/instaid-move*" | grep .
}

uses_compiled()
{
	init "$1" "$work/docker/instaid/usr/share/postgresql/$1" \
		"$work/docker/instaid/usr/lib/postgresql/$1/lib" && start "$1" &&
		query -c 'CREATE EXTENSION instaid' -c "SELECT instaid.create_shard('insta5', 5)" \
			-c 'SELECT insta5.next_id()' && no_errors && stop "$1"
}

mkdir "$SCRATCH/log" "$SCRATCH/18" "$SCRATCH/19"
for major in 18 19; do
	check "the image for PostgreSQL $major is built" image $major
	check "the image for PostgreSQL $major has the layout of CloudNativePG" has_layout $major
done
check 'PostgreSQL 19 makes IDs by the image' uses_image 19
check 'PostgreSQL 19 has tickets with a source by the image' has_source
stop 19
check 'PostgreSQL 18 makes IDs by the image' uses_image 18
check 'PostgreSQL 18 has tickets with a source by the image' has_source
check 'pg_upgrade from 18 to 19, each with its image' upgrades
stop 19
check 'make install prefix=DIRECTORY' by_prefix 18
for major in 18 19; do
	check "Dockerfile compiles for PostgreSQL $major" compiled $major
	check "what Dockerfile compiles, a server of PostgreSQL $major loads" uses_compiled $major
	check "make install with directories, for PostgreSQL $major" in_directories $major
done
echo "1..$n"
