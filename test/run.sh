# test/lib/run: what it says when something is missing, and that it leaves nothing behind,
# even by Ctrl-C; in TAP.  Started by test/suites.sh.
#
# FULL=1 adds the installation of packages, by an apt-get that only waits, and the demonstration
#
# PATH is a directory of links to the programs of this machine, some of which are taken
# away or replaced.  No package is installed.
# not in: version assert

set -u
. test/lib/tap.sh

run=$PWD/test/lib/run
real=$PG_CONFIG
mkdir "$work/bin" "$work/tmp" "$work/etc"
for dir in /usr/sbin /usr/bin /sbin /bin; do
	cp -s $dir/* "$work/bin/" 2>/dev/null
done
rm -f "$work"/bin/apt* "$work"/bin/dpkg* "$work/bin/pg_config"
unset PG_CONFIG PG_MAJOR PG_MAJOR_OLD SUITES
path=$PATH
export PATH="$work/bin" TMPDIR="$work/tmp" INSTAID_LOGS="$work/logs" INSTAID_ETC="$work/etc"

# program NAME: make a program of standard input
program()
{
	rm -f "$work/bin/$1"
	{ echo '#!/bin/sh'; cat; } >"$work/bin/$1"
	chmod +x "$work/bin/$1"
}

# refuses PATTERN VARIABLE=VALUE...: a run fails, and prints one line, which matches
refuses()
{
	pattern=$1
	shift
	! env "$@" "$run" "${script:-$work/script}" >"$work/said" 2>&1 || return
	cat "$work/said"
	[ "$(wc -l <"$work/said")" -eq 1 ] && grep -qx "$pattern" "$work/said" && nothing_left
}

nothing_left()
{
	[ -z "$(find "$work/tmp" "$work/etc" -mindepth 1)" ]
}

# a pg_config of another version, or with other directories
echo "[ \"\$1\" != --version ] && exec '$real' \"\$@\" || echo 'PostgreSQL 14.3'" |
	program pg_config-14
echo "[ \"\$1\" != --bindir ] && exec '$real' \"\$@\" || echo /nowhere/bin" |
	program pg_config-client
echo "[ \"\$1\" != --includedir-server ] || { echo /nowhere/server; exit; }
case \$1 in --bindir) cd '$work/bin'; pwd ;; *) exec '$real' \"\$@\" ;; esac" |
	program pg_config-server
echo "case \$1 in --bindir) echo /nowhere/bin ;; --pgxs) echo /nowhere/pgxs.mk ;;
	*) exec '$real' \"\$@\" ;; esac" | program pg_config-pgxs
ln -sf "$("$real" --bindir)/initdb" "$work/bin/initdb"
echo 'exit 0' >"$work/script"

relative()
(
	cd "$work" && refuses "$work/bin/pg_config-14 is of .*" PG_CONFIG=bin/pg_config-14
)

# PGXS can be absent where make does not need it
no_pgxs()
{
	! make "$1" PG_CONFIG=pg_config-pgxs >"$work/said" 2>&1 || return
	cat "$work/said"
	grep -qx "$2" "$work/said"
}

# a tree in which "make" has run: a build in its copy would take what is there for its own
without_built()
(
	mkdir -p "$work/tree/test/lib" "$work/tree/src" && cd "$work/tree" && cp "$run" test/lib/ &&
		mkdir tickets move &&
		touch src/fields.o src/fields.bc src/exports.list instaid.so tickets/common.o \
			tickets/instaid_tickets.so move/instaid-move src/fields.c &&
		echo '[ "$(find src inst* tickets move -type f)" = src/fields.c ]' >script &&
		env PG_CONFIG="$real" test/lib/run "$work/tree/script"
)

check 'PG_CONFIG that does not exist' refuses \
	'There is no program /nowhere: set PG_CONFIG to a pg_config\.' PG_CONFIG=/nowhere
check 'PG_CONFIG that is another program' refuses 'true is not a pg_config.*' PG_CONFIG=true
check 'PG_CONFIG of an old version' refuses \
	'.* is of PostgreSQL 14, and instaid needs 15 or later.*' PG_CONFIG=pg_config-14
check 'PG_CONFIG of an old version, relative to this directory' relative
check 'PG_MAJOR of an old version' refuses 'PostgreSQL 14 is too old: .*' PG_MAJOR=14
check 'PG_CONFIG without a server' refuses \
	'.* has no server: there is no /nowhere/bin/initdb\.' PG_CONFIG=pg_config-client
check 'PG_CONFIG without headers' refuses \
	'.* no development files: there is no /nowhere/server/postgres.h\.' PG_CONFIG=pg_config-server
check 'make without PGXS' no_pgxs all \
	'pg_config-pgxs not found, or its PostgreSQL has no development files: .*'
check 'make demo without PGXS' no_pgxs demo \
	'The PostgreSQL of pg_config-pgxs has no server: .*'
echo 'case $1 in --default-signal*) exit 125 ;; esac; exec /usr/bin/env "$@"' | program env
check 'an env without --default-signal' env PG_CONFIG="$real" "$run" "$work/script"
cp -sf /usr/bin/env "$work/bin/"
check 'the copy of the tree is without what make has built there' without_built
check 'no pg_config' refuses 'There is no pg_config in PATH: .*'
echo '# packages: no-such-program libipc-no-such-perl?' >"$work/script"
check 'no apt: programs are named' refuses 'Missing: no-such-program' PG_CONFIG="$real"
rm "$work/bin/cc" "$work/bin/make"
script=test/demo.sh
check 'the demonstration needs a compiler, make and PostgreSQL' refuses \
	'Missing: cc make' PG_CONFIG="$real"
script=
cp -s /usr/bin/cc /usr/bin/make "$work/bin/"

program apt-cache <<'END'
echo "Package: $2"
END
program apt-get <<'END'
exit 1
END
check 'with apt, an ordinary user is told the packages' refuses \
	'Missing packages; as root: apt-get install libipc-no-such-perl no-such-program' \
	PG_CONFIG="$real"

# From here on, the run believes that it is root, and apt-get tells what it is doing.
program id <<'END'
echo 0
END
program apt-get <<END
case "\$*" in
	*--assume-no*) echo '0 upgraded, 3 newly installed, 0 to remove'; exit 1 ;;
	*--download-only*) phase=downloading ;;
	*\ install*) phase=installing ;;
	*) exit ;;
esac
touch "$work/phase.\$phase"
[ -e "$work/until.\$phase" ] || exit 0
while [ -e "$work/until.\$phase" ]; do sleep 0.1; done
touch "$work/ended.\$phase"
exit 1
END

# installs LINE...: a run whose installation fails prints these lines, among others, and
# goes on while it takes longer than the five seconds after which it shows a sign of life
installs()
{
	touch "$work/until.installing"
	{ sleep 7; rm "$work/until.installing"; } &
	! "$run" "$work/script" >"$work/said" 2>&1 || return
	cat "$work/said"
	for line in "$@"; do
		grep -qxF "$line" "$work/said" || return
	done
	nothing_left
}

# interrupted PHASE: a run ends by Ctrl-C in this phase of apt-get
interrupted()
{
	rm -f "$work"/phase.* "$work"/ended.*
	touch "$work/until.$1"
	env --default-signal=INT "$run" "$work/script" >"$work/said" 2>&1 &
	until [ -e "$work/phase.$1" ]; do sleep 0.1; done
	there=$(find "$work/etc" -name '*.conf')
	kill -s INT $!
	# an installation goes on to its end
	[ "$1" = downloading ] || { sleep 1; kill -0 $! && rm "$work/until.$1"; } || return
	wait $!
	status=$?
	rm -f "$work/until.$1"
	cat "$work/said"
	[ $status -eq 130 ] && nothing_left || return
	case $1 in
		downloading) [ -z "$there" ] && [ ! -e "$work/ended.$1" ] ;;
		installing) [ -n "$there" ] && [ -e "$work/ended.$1" ] ;;
	esac
}

export PG_CONFIG="$real"
check_full 'as root, the run tells what it installs and how to remove it' installs \
	'Installing libipc-no-such-perl no-such-program (3 with what they need)' \
	'To remove them again: apt-get autoremove --purge libipc-no-such-perl no-such-program' \
	'Could not install libipc-no-such-perl no-such-program'
check_full 'Ctrl-C during a download' interrupted downloading
check_full 'Ctrl-C during an installation, which goes on to its end' interrupted installing
rm "$work/bin/id" "$work"/bin/apt*
cp -s /usr/bin/id "$work/bin/"

cat >"$work/script" <<'END'
. test/lib/private.sh
[ "${PSQL_PAGER-unset}" = '' ] || exit 7
mkdir "$SCRATCH/log"
echo kept >"$SCRATCH/log/some.log"
PATH=$("$PG_CONFIG" --bindir):$PATH
start_server
sleep 1000 &
touch "$TMPDIR/../../serving"
wait
END

# Ctrl-C while a server runs: it stops, and its log is kept
server_stops()
{
	env --default-signal=INT "$run" "$work/script" &
	for tenth in $(seq 600); do
		[ ! -e "$work/serving" ] || break
		sleep 0.1
	done
	server=$(cat "$work"/tmp/*/data/postmaster.pid | head -n 1)
	kill -0 "$server"
	there=$?
	kill -s INT $!
	wait $!
	status=$?
	# it removes its files before it exits
	for tenth in $(seq 100); do
		kill -0 "$server" || break
		sleep 0.1
	done
	echo "status $status after $tenth tenths"
	[ $there -eq 0 ] && [ $status -eq 130 ] && [ "$tenth" -lt 100 ] && nothing_left &&
		grep -q kept "$work/logs/some.log"
}
check 'Ctrl-C while a server runs: it stops, and the logs are kept' server_stops

# make demo tells at once what it does, and is never silent for long: 2 s and 10 s, unless
# the machine is so slow that these are a small part of the whole
demonstration()
{
	PATH=$path perl -MTime::HiRes=time -e '
		my ($began, $before, @silences) = (time) x 2;
		open my $demo, "-|", @ARGV or die $!;
		while (sysread $demo, my $text, 4096)
		{
			print $text;
			push @silences, time - $before;
			$before = time;
		}
		close $demo or die "it fails\n";
		my ($longest) = sort { $b <=> $a } @silences;
		print "silent for $silences[0] s at first, and for $longest s at most\n";
		my $whole = time - $began;
		exit($silences[0] > 2 && $silences[0] > $whole / 10
			|| $longest > 10 && $longest > $whole / 3)' \
		make demo PG_CONFIG="$real" && nothing_left
}
check_full 'the demonstration passes, and is not silent for long' demonstration
echo "1..$n"
