# A PostgreSQL of our own, to be sourced by scripts that test/lib/run starts.
#
# Everything is kept in the directory SCRATCH.  PG_CONFIG is the pg_config of the
# installed PostgreSQL, which is copied and not changed.

# copy_postgresql PG_CONFIG DIRECTORY: copy that PostgreSQL to the directory,
# without the extension, and print the pg_config of the copy.
#
# PostgreSQL finds its files relative to its programs, so a tree of the same shape
# works.  Links will do, except for the programs: they look where they really are.
copy_postgresql()
{
	for dir in --sharedir --pkglibdir --includedir-server --pkgincludedir; do
		dir=$("$1" $dir)
		mkdir -p "$2$dir"
		cp -Rs "$dir/." "$2$dir/" 2>/dev/null || :
	done
	# the client's headers and library, which may be among those of other packages
	includedir=$("$1" --includedir)
	libdir=$("$1" --libdir)
	mkdir -p "$2$includedir" "$2$libdir"
	cp -Rs "$includedir"/libpq* "$includedir"/pg_config*.h "$includedir/postgres_ext.h" \
		"$2$includedir/" 2>/dev/null || :
	cp -Rs "$libdir"/libpq* "$libdir"/libpg* "$2$libdir/" 2>/dev/null || :
	# an instaid that is installed must not be overwritten through a link
	find "$2$("$1" --sharedir)" "$2$("$1" --pkglibdir)" -depth -mindepth 1 -name 'instaid*' \
		-exec rm -rf {} +

	dir=$("$1" --bindir)
	rm -rf "$2$dir"
	mkdir -p "$2$dir"
	cp "$dir"/* "$2$dir/"
	rm -f "$2$dir"/instaid-move*
	echo "$2$dir/pg_config"
}

# Make a copy of the installed PostgreSQL with the extension in it, and use that
# from now on.  Bitcode for the JIT compiler takes as long as the rest; test/elsewhere.sh uses it.
install_private()
{
	PG_CONFIG=$(copy_postgresql "$PG_CONFIG" "$SCRATCH/pg")
	PATH=$(dirname "$PG_CONFIG"):$PATH
	export PATH PG_CONFIG
	make -s -j"$(nproc)" PG_CONFIG="$PG_CONFIG" with_llvm=no install
}

# Start a server that listens on a socket in SCRATCH, and let libpq connect there.
# Arguments are settings, name=value.  POSTGRES can name another server program.
start_server()
{
	initdb -D "$SCRATCH/data" -U postgres -A trust -E UTF8 --no-locale >/dev/null
	for setting in "listen_addresses=''" "unix_socket_directories='$SCRATCH'" "$@"; do
		echo "$setting" >>"$SCRATCH/data/postgresql.conf"
	done
	run_server
	trap stop_server EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
}

# Start the server that is there.
run_server()
{
	mkdir -p "$SCRATCH/log"
	pg_ctl -D "$SCRATCH/data" -l "$SCRATCH/log/server.log" -w -s ${POSTGRES:+-p "$POSTGRES"} start
	PGHOST=$SCRATCH PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
	export PGHOST PGPORT PGUSER PGDATABASE
}

stop_server()
{
	pg_ctl -D "$SCRATCH/data" -m immediate -s stop 2>/dev/null || :
}
