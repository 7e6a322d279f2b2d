# The model of the clocked sequence, searched to the end by spin; in TAP.
# Run from the top of a source tree; needs spin and gcc.  See docs/model.md.

set -u

model=$(pwd)/test/model/clocked_sequence.pml
dir=$(mktemp -d "${SCRATCH:-${TMPDIR:-/tmp}}/model.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM
cd "$dir" || exit 1

# search MACRO...: the verifier's report goes to the file "report".  Invalid
# end states are no news (-E): a sequence may reach its last tick.
search()
{
	rm -rf ./* &&
		cp "$model" model.pml &&
		spin -a "$@" model.pml >report 2>&1 &&
		gcc -w -O2 -DSAFETY -DMEMLIM=4000 -o pan pan.c >>report 2>&1 &&
		./pan -E -m100000 -w24 >>report 2>&1
}

# truncated: did the search stop short of the whole?
truncated()
{
	grep -qE 'max search depth too small|reached -DMEMLIM|out of memory|not completed' report
}

# All states seen, no error in any, and no statement that was never reached.
complete()
{
	search "$@" && ! truncated &&
		grep -q '^State-vector .* errors: 0$' report &&
		test "$(grep -cE '^	model\.pml:[0-9]+, state' report)" -eq \
			"$(grep -c '"-end-"' report)"
}

# The search ends at the assertion that is meant, not for another reason.
violation()
{
	assertion=$1
	shift
	search "$@" &&
		grep -qF "pan:1: assertion violated $assertion (at depth" report &&
		grep -q '^State-vector .* errors: 1$' report
}

n=0
check()
{
	name=$1
	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' report
	fi
}

holds()
{
	name=$1
	shift
	check "$name" complete "$@"
}

fails()
{
	name=$1
	shift
	check "found: $name" violation "$@"
}

# the assertions as spin prints them
twice='(next!=watched)'
unordered='(next>watched)'
reached=' !(((takers==3)&&crashed_after))'

holds 'no ID comes twice, if the clock is later after a crash'
holds 'nor with CACHE 2' -DCACHE=2
holds 'IDs increase across sessions and crashes, on the same condition' -DORDER
holds 'no committed ID comes twice, whatever the clock reads after a crash' \
	-DFREE_CLOCK -DCOMMITTED_ONLY

fails 'IDs of both sessions, after a crash that followed an ID ahead of the clock' \
	"$reached" -DREACH
fails 'an ID without a commit comes twice, with the clock set back across a crash' \
	"$twice" -DFREE_CLOCK
fails 'the same, with the clock still in the same millisecond' "$twice" -DSAME_MS
fails 'a committed ID comes twice, if its commit does not flush WAL' \
	"$twice" -DFREE_CLOCK -DCOMMITTED_ONLY -DASYNC_COMMIT

fails 'no flush when the tick is ahead of the clock' "$twice" -DNO_FLUSH
fails 'no lock' "$twice" -DNO_LOCK
fails 'no lock, by the order' "$unordered" -DORDER -DNO_LOCK
fails 'no record after a checkpoint' "$twice" -DNO_LOG_AFTER_CHECKPOINT
fails 'a record that is not ahead' "$twice" -DNO_LOG_AHEAD
fails 'the page marked dirty after the look at the redo pointer' "$twice" -DDIRTY_AFTER_REDO
fails 'the same, and the ID was committed' \
	"$twice" -DFREE_CLOCK -DCOMMITTED_ONLY -DDIRTY_AFTER_REDO
fails 'the page marked dirty after its record' "$twice" -DDIRTY_AFTER_INSERT
echo "1..$n"
