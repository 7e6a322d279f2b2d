# Folders with a Debian each, to be sourced by scripts that root runs.
#
# Each Debian is a folder made with debootstrap or mmdebstrap.  It is kept in
# INSTAID_MATRIX (by default /var/cache/instaid-matrix) for the next run.  The mounts
# and processes of a run are gone when it ends, even by Ctrl-C.

# The columns are: the version, the Debian, where else the packages are, the suites
# (see test/suites.sh) by default and with FULL, separated by commas, and an old version for
# pg_upgrade.
# A version with "-" for the suites runs if FULL is set or if it is named: "make
# test" runs all tests on 15.  "18-assert" is built from Debian's source package with
# assertions.  "15-arm64" and "15-s390x" have Debian's packages of that architecture,
# which qemu-user emulates.  s390x is big endian.
table='15        bookworm  -             -        full    -
       15-arm64  bookworm  -             -        regress,pgtap -
       15-s390x  bookworm  -             -        regress,pgtap -
       17        trixie    -             version  all,newer -
       18        forky     -             version  all,newer 15
       18-assert forky     -             assert_short assert -
       19        sid       experimental  version  all     15'

top=$(cd "$(dirname "$0")/../.." && pwd)
cache=${INSTAID_MATRIX:-/var/cache/instaid-matrix}

fail()
{
	echo "$*" >&2
	exit 1
}

# row VERSION: set variables to what the table says of it
row()
{
	set -- $(echo "$table" | awk -v v="$1" '$1 == v')
	[ $# -eq 6 ] || fail "The versions are: $(echo "$table" | awk '{ printf "%s ", $1 }')"
	version=$1 release=$2 also=${3#-} suites=${4#-} full=$(echo "$5" | tr , ' ') old=${6#-}
	# Debian's name of the architecture that is emulated, and qemu's
	case $version in
		*-arm64) arch=arm64 machine=aarch64 ;;
		*-s390x) arch=s390x machine=s390x ;;
		*) arch= ;;
	esac
}

# emulating COMMAND...: run it where programs of this row's architecture can run.  The
# kernel forgets the format of their files when the last mount of binfmt_misc is gone.
emulating()
{
	[ -n "$arch" ] || { "$@"; return; }
	unshare --mount sh -euc '
		formats=/proc/sys/fs/binfmt_misc
		mount -t binfmt_misc binfmt_misc $formats
		[ -e $formats/qemu-$1 ] || cat /usr/lib/binfmt.d/qemu-$1.conf >$formats/register
		shift
		exec "$@"
	' sh "$machine" "$@"
}

# Make the folder of a Debian release, unless a complete one exists.
make_folder()
{
	[ ! -e "$folder/complete" ] || return 0
	rm -rf "$folder"
	if [ -n "$arch" ]; then
		unpack_folder || return
	else
		bootstrap_folder || return
	fi
	mkdir "$folder/src" "$folder/logs"
	touch "$folder/complete"
}

# Make the folder of an architecture that is emulated.  All packages are unpacked, and
# none is configured, since that takes most of the time in the emulation.
unpack_folder()
{
	mmdebstrap --variant=extract --architectures="$arch" \
		--aptopt='Acquire::Check-Valid-Until "false"' \
		--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include='?essential' \
		--include="gcc libc6-dev make" \
		--include="postgresql-${version%-*} postgresql-server-dev-${version%-*}" \
		--include="postgresql-${version%-*}-pgtap libtap-parser-sourcehandler-pgtap-perl" \
		"$release" "$folder" "$mirror" || return
	# what configuring would have made
	cp "$folder/usr/share/base-passwd/passwd.master" "$folder/etc/passwd"
	cp "$folder/usr/share/base-passwd/group.master" "$folder/etc/group"
	ln -s gcc "$folder/usr/bin/cc"
	ln -s mawk "$folder/usr/bin/awk"
}

bootstrap_folder()
{
	# sid's script, since an older debootstrap has none for a newer Debian; the
	# mounts end with the namespace
	unshare --mount debootstrap --variant=minbase --include=ca-certificates \
		"$release" "$folder" "$mirror" /usr/share/debootstrap/scripts/sid || return
	# of whichever row: rows of one release share its folder
	older=$(echo "$table" |
		awk -v r="$release" '{ of[$1] = $2 } $2 == r && $6 in of { print of[$6] }')
	for suite in $release $also $older; do
		printf 'deb %s %s main\ndeb-src %s %s main\n' "$mirror" "$suite" "$mirror" "$suite"
	done >"$folder/etc/apt/sources.list"
	[ -z "$also" ] ||
		printf '%s\n' "Package: src:postgresql-$version src:postgresql-common" \
			"Pin: release a=$also" 'Pin-Priority: 990' >"$folder/etc/apt/preferences.d/instaid"
	# a mirror that was not renewed lately is good enough
	echo 'Acquire::Check-Valid-Until "false";' >"$folder/etc/apt/apt.conf.d/99instaid"
}

# in_folder COMMAND...: run it there, with this source tree as /src, read-only, and the
# directory "logs" as /logs.  If "throwaway" is set, the folder stays as it is: what the
# command writes is kept in memory and gone at the end.
in_folder()
{
	emulating sh -c 'echo $$ >"$1"; shift; exec "$@"' sh "$logs/unshare" \
		unshare --mount --pid --fork --kill-child=TERM sh -euc '
		folder=$1 top=$2 logs=$3 throwaway=$4
		shift 4
		if [ -n "$throwaway" ]; then
			mount -t tmpfs tmpfs /mnt
			mkdir /mnt/upper /mnt/work /mnt/folder
			mount -t overlay -o lowerdir="$folder",upperdir=/mnt/upper,workdir=/mnt/work overlay \
				/mnt/folder
			folder=/mnt/folder
		fi
		mount --bind -o ro "$top" "$folder/src"
		mount --bind "$logs" "$folder/logs"
		mount --rbind /dev "$folder/dev"
		mount -t proc proc "$folder/proc"
		mount -t tmpfs -o mode=1777 tmpfs "$folder/dev/shm"
		mount -t tmpfs -o mode=1777 tmpfs "$folder/tmp"
		cp -L /etc/resolv.conf "$folder/etc/resolv.conf"
		exec chroot "$folder" "$@"
	' sh "$folder" "$top" "$logs" "${throwaway:-}" "$@"
}

[ "$(id -u)" = 0 ] ||
	fail "This makes Debian folders and mounts in them: run it as root."
unshare --mount --pid --fork true 2>/dev/null ||
	fail "This needs mounts and processes of its own, but unshare --mount --pid is refused here."
command -v apt-get >/dev/null ||
	fail "This takes each PostgreSQL from Debian, but there is no apt-get here."
# have PROGRAM PACKAGE: install the package, unless the program is there
have()
{
	command -v "$1" >/dev/null ||
		{ apt-get update -q &&
			apt-get install -y -q -o DPkg::Lock::Timeout=600 --no-install-recommends "$2"
		} >/dev/null ||
		fail "Missing package; as root: apt-get install $2"
}
have debootstrap debootstrap
# the mirror that apt uses here
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' |
	grep -v security | head -n 1)
[ -n "$mirror" ] || fail "apt has no mirror of Debian: see /etc/apt/sources.list.d"

mkdir -p "$cache"
logs=$(mktemp -d)

# Stop what runs in a folder: politely at first, which keeps its logs.
stop_in_folder()
{
	[ -f "$logs/unshare" ] || return 0
	outside=$(cat "$logs/unshare")
	inside=$(cat "/proc/$outside/task/$outside/children" 2>/dev/null || :)
	[ -n "$inside" ] || return 0
	kill -s KILL "$outside"
	for second in $(seq 30); do
		[ -e "/proc/${inside% }/cwd" ] || return 0
		sleep 1
	done
	kill -s KILL $inside 2>/dev/null || :
}

keep_logs()
{
	[ -d "$logs/tmp_check" ] || return 0
	mkdir -p "$top/tmp_check"
	rm -rf "$top/tmp_check/$version"
	mv "$logs/tmp_check" "$top/tmp_check/$version"
}

finish()
{
	status=$?
	trap '' INT TERM HUP PIPE
	stop_in_folder
	keep_logs
	rm -rf "$logs"
	exit $status
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM HUP

# in_background COMMAND...: run it, and let this script handle a signal at once
in_background()
{
	"$@" &
	wait $!
}

# take_folder RELEASE [NAME]: have the folder of that name, which no other run uses
take_folder()
{
	release=$1
	[ -z "$arch" ] ||
		{ have "qemu-$machine-static" qemu-user-static && have mmdebstrap mmdebstrap; }
	folder=$cache/${2:-$1}
	exec 9>"$folder.lock"
	flock 9
	in_background make_folder >"$logs/debootstrap" 2>&1 ||
		{ tail -n 20 "$logs/debootstrap" >&2
			fail "Could not make a Debian $release from $mirror in $folder"; }
}
