# Fuzzing of the code that needs no server, with libFuzzer and the sanitizers
# for addresses and undefined behaviour; in TAP.  Started by test/suites.sh.
#
# A target is a file test/fuzz/TARGET_fuzz.c, a function seeds_TARGET here, and lines at
# the end.  It must also find faults that are put into a copy of the source: otherwise
# it would prove nothing.
#
# FULL=1 adds faults that the fuzzer must find, and a million inputs of a target instead of 200,000
# INSTAID_TEST_IDS=N tries N / 20 inputs
#
# packages: libclang-rt-@CLANG@-dev?
# not in: version assert

set -u
. test/lib/tap.sh

runs=$((${INSTAID_TEST_IDS:-$([ -n "${FULL:-}" ] && echo 20000000 || echo 4000000)} / 20))
clang=$(sed -n 's/^CLANG *= *//p' "$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global")
include=$("$PG_CONFIG" --includedir-server)

# compile TARGET SRC PROGRAM: without -fwrapv, which would hide overflows
compile()
{
	"$clang" -g -O1 -Wall -Wextra -Werror -isystem "$include" -I "$2" \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-o "$3" "test/fuzz/$1_fuzz.c"
}

# The sanitizers of old versions of clang do not start if addresses are much randomized
# (google/sanitizers issue 1614).  Not every container lets us switch that off.
if setarch "$(uname -m)" -R true 2>/dev/null; then
	fixed="setarch $(uname -m) -R"
fi

# run RUNS PROGRAM [CORPUS]
run()
{
	runs_now=$1
	shift
	${fixed:-} "$1" -runs="$runs_now" -max_len=64 -print_final_stats=1 -artifact_prefix="$1." \
		${2:+"$2"}
}

# fuzz TARGET: no input fails, and as many inputs as wanted were tried
fuzz()
{
	mkdir "$work/$1.seeds" && "seeds_$1" "$work/$1.seeds" &&
		compile "$1" src "$work/$1" || return
	run "$runs" "$work/$1" "$work/$1.seeds" >"$work/log" 2>&1
	status=$?
	cat "$work/log"
	executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
	[ $status -eq 0 ] && [ "${executed:-0}" -ge "$runs" ]
}

# finds TARGET FILE EDIT: with sed's EDIT of a source file, an input fails, and
# the same input passes without it.  There are no seeds: the fuzzer has to find it.
finds()
{
	mutant=$work/mutant$n
	cp -R src "$mutant.src" &&
		sed "$3" "src/$2" >"$mutant.src/$2" &&
		! cmp "src/$2" "$mutant.src/$2" &&
		compile "$1" "$mutant.src" "$mutant" || return
	! run 1000000 "$mutant" && ${fixed:-} "$work/$1" "$mutant".crash-*
}

# Numbers next to each power of two, as two ticks and as fields.
seeds_layout()
{
	perl -e '
		for my $bit (0 .. 63)
		{
			for my $value (map { (1 << $bit) + $_ } -1, 0, 1)
			{
				open my $seed, ">", "$ARGV[0]/$bit.$value" or die $!;
				print $seed pack("QQL", $value, $value - 1, $value % 2**32) or die $!;
				close $seed or die $!;
			}
		}' "$1"
}

# Valid and invalid texts.
seeds_text_forms()
{
	seed=0
	for text in '' A AB 0 DeIOdt4jVu6 H__________ I__________; do
		seed=$((seed + 1))
		printf %s "$text" >"$1/$seed" || return
	done
}

check "layout.h: $runs inputs" fuzz layout
check_full 'the fuzzer finds a mask one bit short' finds layout layout.h \
	's/& MAX_SHARD_ID/\& (MAX_SHARD_ID >> 1)/'
check_full 'the fuzzer finds a mask that is missing' finds layout layout.h \
	'/tick & MAX_SEQUENCE/s/ & MAX_SEQUENCE//'
check_full 'the fuzzer finds a signed shift of an ID' finds layout layout.h \
	's/(uint64) id >> MS_SHIFT/id >> MS_SHIFT/'
check_full 'the fuzzer finds a tick rounded toward zero' finds layout layout.h \
	's/tick >> SEQUENCE_BITS/tick \/ TICKS_PER_MS/'
check_full 'the fuzzer finds a tick before the epoch that has an ID' finds layout layout.h \
	's/(uint64) (tick_ms(tick) - epoch_ms) <= (uint64) LAST_MS/tick_ms(tick) - epoch_ms <= LAST_MS/'
check_full 'the fuzzer finds a time rounded toward zero' finds layout layout.h \
	's/ - (time % 1000 < 0)//'
check_full 'the fuzzer finds an epoch of microseconds' finds layout layout.h \
	's/since_first % 1000 == 0/since_first % 1000 < 999/'
check_full 'the fuzzer finds undefined behaviour with the right result' finds layout layout.h \
	's/(uint64) ms << SEQUENCE_BITS/(uint64) (ms << SEQUENCE_BITS)/'

check "text_forms.h: $runs inputs" fuzz text_forms
check_full 'the fuzzer finds an overflow that is let through' \
	finds text_forms text_forms.h 's/result > PG_INT64_MAX >> SHORTCODE_BITS/false/'
check_full 'the fuzzer finds digits of another base64' finds text_forms text_forms.h \
	'/^\t"ABC/s/-_"/+\/"/'
check_full 'the fuzzer finds two texts of one ID' finds text_forms text_forms.h \
	's/digit == 0 \&\& \*position == 0 \&\& len > 1/false/'
echo "1..$n"
