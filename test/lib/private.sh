# A PostgreSQL of our own, to be sourced by scripts that test/lib/run starts.
#
# SCRATCH is the directory to keep everything in, PG_CONFIG that of the
# installed PostgreSQL, which is copied and not touched.

# Make a copy of the installed PostgreSQL with the extension in it.
#
# PostgreSQL finds its files relative to its programs, so a tree of the same
# shape works.  Only the programs must be real copies: they look where they are.
install_private()
{
	for dir in --sharedir --pkglibdir --includedir-server --pkgincludedir; do
		dir=$("$PG_CONFIG" $dir)
		mkdir -p "$SCRATCH/pg$(dirname "$dir")"
		cp -Rs "$dir" "$SCRATCH/pg$(dirname "$dir")/" 2>/dev/null || :
	done
	# lest an instaid that is installed already be written to, through a link
	find "$SCRATCH/pg" -depth -name 'instaid*' -exec rm -rf {} +

	bindir=$("$PG_CONFIG" --bindir)
	rm -rf "$SCRATCH/pg$bindir"
	mkdir -p "$SCRATCH/pg$bindir"
	cp "$bindir"/* "$SCRATCH/pg$bindir/"

	PATH=$SCRATCH/pg$bindir:$PATH
	PG_CONFIG=$SCRATCH/pg$bindir/pg_config
	export PATH PG_CONFIG

	make -s PG_CONFIG="$PG_CONFIG" install
}

# Start a server that listens on a socket in SCRATCH, and point libpq there.
# Arguments are settings, name=value.
start_server()
{
	initdb -D "$SCRATCH/data" -U postgres -A trust -E UTF8 --no-locale >/dev/null
	for setting in "listen_addresses=''" "unix_socket_directories='$SCRATCH'" "$@"; do
		echo "$setting" >>"$SCRATCH/data/postgresql.conf"
	done
	mkdir -p "$SCRATCH/log"
	pg_ctl -D "$SCRATCH/data" -l "$SCRATCH/log/server.log" -w -s start
	PGHOST=$SCRATCH PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
	export PGHOST PGPORT PGUSER PGDATABASE
	trap stop_server EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

stop_server()
{
	pg_ctl -D "$SCRATCH/data" -m immediate -s stop 2>/dev/null || :
}
