# Checks that print TAP, to be sourced.  They keep files in the directory "work".
# A script ends with: echo "1..$n"

work=$(mktemp -d "${SCRATCH:-${TMPDIR:-/tmp}}/check.XXXXXX") || exit
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

n=0

# check NAME COMMAND...: run a command as a test; if it fails, show what it printed
check()
{
	name=$1
	shift
	n=$((n + 1))
	if "$@" >"$work/output" 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		tail -n 60 "$work/output" | sed 's/^/# /'
	fi
}

# check_full NAME COMMAND...: like check, but only with FULL=1
check_full()
{
	[ -z "${FULL:-}" ] || check "$@"
}
