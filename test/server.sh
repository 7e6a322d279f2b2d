#!/bin/sh
# To edit and test in seconds, without a copy of the tree.
#
#   start       make server: a copy of PG_CONFIG's PostgreSQL with a server that stays; prints what
#               to set, for eval "$(make -s server)"
#   stop        make server-stop
#   prove FILE...  make prove_installcheck: TAP tests, on the PostgreSQL of PG_CONFIG, as installed
#
# The copy is in the directory SERVER, by default in /tmp.  No server runs as root: root's belong
# to the user postgres, or else nobody.
set -eu
cd "$(dirname "$0")/.."
. test/lib/private.sh

as_user=
if [ "$(id -u)" = 0 ]; then
	user=postgres
	id $user >/dev/null 2>&1 || user=nobody
	as_user="setpriv --reuid=$user --regid=$(id -g $user) --init-groups"
fi
SCRATCH=${SERVER:-/tmp/instaid-server.$(id -u)}

# The directory of somebody else, who came first, is not used.  Root's belongs to the server's user,
# and this file to root.
not_of_others()
{
	{ [ -O "$SCRATCH/bindir" ] && [ ! -L "$SCRATCH/bindir" ]; } ||
		{ [ -O "$SCRATCH" ] && [ ! -e "$SCRATCH/bindir" ]; } ||
		{ echo "$SCRATCH belongs to another user: set SERVER" >&2; exit 1; }
}

start()
{
	[ -d "$SCRATCH" ] || mkdir -m 755 "$SCRATCH"
	not_of_others
	if [ ! -f "$SCRATCH/bindir" ]; then
		# "plain" stays without instaid
		copy_postgresql "$PG_CONFIG" "$SCRATCH/plain" >/dev/null
		copied=$(copy_postgresql "$PG_CONFIG" "$SCRATCH/pg")
		mkdir "$SCRATCH/log"
		[ -z "$as_user" ] || chown "$user" "$SCRATCH" "$SCRATCH/log"
		dirname "$copied" >"$SCRATCH/bindir"
	fi
	# its user may not be able to read this tree, as in /root
	PATH=$(cat "$SCRATCH/bindir"):$PATH SCRATCH=$SCRATCH \
		$as_user sh -c "$(cat test/lib/private.sh)"'
		cd "$SCRATCH"
		pg_ctl -D data status >/dev/null 2>&1 ||
			if [ -d data ]; then run_server; else start_server unix_socket_permissions=0700; fi
		trap - EXIT' >&2
	echo "export PATH='$(cat "$SCRATCH/bindir")':\"\$PATH\" PGHOST='$SCRATCH'"
	echo 'export PGPORT=5432 PGUSER=postgres PG_CONFIG=pg_config'
}

stop()
{
	not_of_others
	$as_user "$(cat "$SCRATCH/bindir")/pg_ctl" -D "$SCRATCH/data" -m immediate -s stop || :
	rm -rf "$SCRATCH"
}

prove()
{
	pgxs=$(dirname "$(dirname "$("$PG_CONFIG" --pgxs)")")
	bindir=$("$PG_CONFIG" --bindir)
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	# before PostgreSQL 17 the logs are always in tmp_check
	mkdir -p "$scratch/log" "$scratch/tree"
	if $as_user test -r "$PWD/Makefile"; then
		ln -s "$PWD"/* "$scratch/tree/"
		# a test builds there
		rm "$scratch/tree/move"
		cp -R move "$scratch/tree/"
	else
		cp -R "$PWD"/* "$scratch/tree/"
	fi
	rm -rf "$scratch/tree/tmp_check"
	mkdir "$scratch/tree/tmp_check"
	ln -s "$scratch/log" "$scratch/tree/tmp_check/log"
	[ -z "$as_user" ] || chown -R "$user" "$scratch"
	plain=$(echo "$bindir" | sed 's,/pg/,/plain/,; s,/bin$,,')
	status=0
	top=$PWD
	cd "$scratch/tree"
	$as_user env -u PGHOST -u PGPORT -u PGUSER -u PGDATABASE PATH="$bindir:$PATH" HOME="$scratch" \
		PG_CONFIG="$bindir/pg_config" PG_REGRESS="$pgxs/test/regress/pg_regress" TESTDIR="$PWD" \
		TESTDATADIR="$scratch/data" TESTLOGDIR="$scratch/log" SCRATCH="$scratch" \
		TMPDIR="$scratch" INSTAID_PLAIN="$plain" \
		prove -I "$pgxs/test/perl" -I test/lib "$@" || status=$?
	[ $status = 0 ] || { rm -rf "$top/tmp_check"; cp -R "$scratch/log" "$top/tmp_check"; }
	return $status
}

"$@"
