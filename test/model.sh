# The model of the clocked sequence, searched to the end by spin; in TAP.
# Run from the top of a source tree; needs spin and gcc.  See docs/model.md.
#
# FULL=1 adds the faults of the model that the search must find
#
# packages: spin

set -u
. test/lib/tap.sh

model=$(pwd)/test/model/clocked_sequence.pml
mkdir "$work/model" && cd "$work/model" || exit

# search MACRO...: print the verifier's report.  Invalid end states are not reported
# (-E): a sequence may reach its last tick.
search()
{
	rm -f pan*
	cp "$model" model.pml &&
		spin -a "$@" model.pml &&
		gcc -w -O2 -DSAFETY -DMEMLIM=4000 -o pan pan.c &&
		./pan -E -m100000 -w24
}

# All states were searched, no state has an error, and every statement was reached.
complete()
{
	search "$@" >report
	cat report
	! grep -qE 'max search depth too small|reached -DMEMLIM|out of memory|not completed' report &&
		grep -q '^State-vector .* errors: 0$' report &&
		test "$(grep -cE '^	model\.pml:[0-9]+, state' report)" -eq \
			"$(grep -c '"-end-"' report)"
}

# violation ASSERTION MACRO...: the search ends because this assertion fails
violation()
{
	assertion=$1
	shift
	search "$@" >report
	cat report
	grep -qF "pan:1: assertion violated $assertion (at depth" report &&
		grep -q '^State-vector .* errors: 1$' report
}

# the assertions as spin prints them
twice='(next!=watched)'
unordered='(next>watched)'
reached=' !(((takers==3)&&crashed_after))'

check 'no ID comes twice, if the clock is later after a crash' complete
check 'nor with CACHE 2' complete -DCACHE=2
check 'IDs increase across sessions and crashes, on the same condition' complete -DORDER
check 'no committed ID comes twice, whatever the clock reads after a crash' complete \
	-DFREE_CLOCK -DCOMMITTED_ONLY

# without this, the searches above would prove nothing
check 'found: IDs of both sessions, after a crash that followed an ID ahead of the clock' \
	violation "$reached" -DREACH
check_full 'found: an ID without a commit comes twice, with the clock set back across a crash' \
	violation "$twice" -DFREE_CLOCK
check_full 'found: the same, with the clock still in the same millisecond' \
	violation "$twice" -DSAME_MS
check_full 'found: a committed ID comes twice, if its commit does not flush WAL' \
	violation "$twice" -DFREE_CLOCK -DCOMMITTED_ONLY -DASYNC_COMMIT

check_full 'found: no flush when the tick is ahead of the clock' violation "$twice" -DNO_FLUSH
check_full 'found: no lock' violation "$twice" -DNO_LOCK
check_full 'found: no lock, by the order' violation "$unordered" -DORDER -DNO_LOCK
check_full 'found: no record after a checkpoint' violation "$twice" -DNO_LOG_AFTER_CHECKPOINT
check_full 'found: a record that is not ahead' violation "$twice" -DNO_LOG_AHEAD
check_full 'found: the page marked dirty after the look at the redo pointer' \
	violation "$twice" -DDIRTY_AFTER_REDO
check_full 'found: the same, and the ID was committed' \
	violation "$twice" -DFREE_CLOCK -DCOMMITTED_ONLY -DDIRTY_AFTER_REDO
check_full 'found: the page marked dirty after its record' \
	violation "$twice" -DDIRTY_AFTER_INSERT
echo "1..$n"
