# The models of the clocked sequence and of the SQL edition, searched to the end by
# spin; in TAP.  Run from the top of a source tree; needs spin and gcc.  See test/model/README.md.
#
# FULL=1 adds the faults of the models that the search must find, and larger models
#
# packages: spin
# not in: version assert

set -u
. test/lib/tap.sh

models=$(pwd)/test/model
model=$models/clocked_sequence.pml
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
twice_without_c='(v!=watched)'
unordered='(next>watched)'
reached=' !(((takers==3)&&crashed_after))'

# without FULL, one reading of the clock and two ticks less
size=
[ -n "${FULL:-}" ] || size='-DCLOCK_MAX=2 -DLAST_TICK=7'
check 'no ID comes twice, and IDs increase, if the clock is later after a crash' complete \
	-DORDER $size
check 'no committed ID comes twice, whatever the clock reads after a crash' complete \
	-DFREE_CLOCK -DCOMMITTED_ONLY $size

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

# The SQL edition (sql-edition/next_id.sql)
model=$models/gap.pml

# explored MACRO...: all states were searched, and no state has an error.  Each variant
# leaves out statements of the others, so that not every statement is reached.
explored()
{
	search "$@" >report
	cat report
	! grep -qE 'max search depth too small|reached -DMEMLIM|out of memory|not completed' report &&
		grep -q '^State-vector .* errors: 0$' report
}

check 'SQL edition: no ID comes twice, and IDs increase, with a cancel and a crash' explored -DNS=2
check 'SQL edition: no committed ID comes twice, whatever the clock reads after a crash' \
	explored -DCOMMITTED
check_full 'SQL edition: a guard of sessions - 1 values' explored -DGUARD=1 -DCRASHES=0
check_full 'SQL edition: two cancels and two crashes' explored -DNS=2 -DCANCELS=2 -DCRASHES=2
check_full 'SQL edition: three sessions' explored -DNS=3 -DMS=2
check_full 'SQL edition: three sessions, more milliseconds' explored -DNS=3 -DCRASHES=0
check_full 'SQL edition: three sessions and their smallest guard' \
	explored -DNS=3 -DCRASHES=0 -DGUARD=2

set -- -DCRASHES=0 -DNO_SETVAL_CHECK -DNO_GUARD_CHECK -DNO_ORDER
check 'found: the published function' violation "$twice_without_c" -DPUBLISHED "$@"
check_full 'found: setval() without a guard and a lock' violation "$twice_without_c" -DJUMP "$@"
check_full 'found: setval() without a guard' violation "$twice_without_c" -DLOCKJUMP "$@"
check_full 'found: a guard of sessions - 2 values' \
	violation "$twice_without_c" -DGUARD=0 "$@"
check_full 'found: a guard of sessions - 2 values, of three sessions' \
	violation '((val%(2+1))!=0)' -DNS=3 -DGUARD=1 -DCANCELS=0 -DCRASHES=0
check_full 'found: nextval() without a look' violation "$twice_without_c" -DNO_LOOK "$@"
check_full 'found: the lock is released before setval()' \
	violation "$twice_without_c" -DUNLOCK_EARLY "$@"
check_full 'found: a lock that a cancel does not release' \
	violation '(owner!=(me+1))' -DSESSION_LOCK -DCRASHES=0
echo "1..$n"
