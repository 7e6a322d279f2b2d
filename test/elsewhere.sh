# The code works with other flags of the compiler, and if the server compiles queries.
# The layout and the text forms are right on emulated architectures, one of which is big
# endian.  In TAP.  Started by test/suites.sh in a source tree that is not built yet.
#
# packages: gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-s390x-linux-gnu
# packages: libc6-dev-s390x-cross qemu-user-static

set -u
. test/lib/tap.sh
. test/lib/private.sh

src=$(pwd)
global=$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global
llvm=$(sed -n 's/^LLVM_BINPATH *= *//p' "$global")
include=$("$PG_CONFIG" --includedir-server)

# serve VARIABLE=VALUE...: build with these variables of make, and start a server
serve()
{
	rm -rf "$work/pg" "$work/build" "$SCRATCH/data"
	PG_CONFIG=$(copy_postgresql "$PG_CONFIG" "$work/pg")
	PATH=$(dirname "$PG_CONFIG"):$PATH
	export PATH
	mkdir "$work/build" && cd "$work/build" &&
		make -s -f "$src/Makefile" PG_CONFIG="$PG_CONFIG" "$@" install && start_server
}

# works_with FLAGS: the regression tests pass on a library that is built with these
works_with()
(
	serve PROFILE="-Wall -Wextra -Werror $1" with_llvm=no &&
		make -s -f "$src/Makefile" PG_CONFIG="$PG_CONFIG" installcheck ISOLATION= &&
		make -s -C tickets -f "$src/tickets/Makefile" PG_CONFIG="$PG_CONFIG" installcheck ISOLATION=
)

# What the server compiled no longer calls our function: it is inlined from its bitcode.
jit_inlines()
(
	serve &&
		psql -Xq -c 'CREATE EXTENSION instaid' -c 'SET jit = on' -c 'SET jit_dump_bitcode = on' \
			-c 'SET jit_above_cost = 0' -c 'SET jit_inline_above_cost = 0' \
			-c 'SET jit_optimize_above_cost = 0' \
			-c 'SELECT count(instaid.extract_shard_id(id)) FROM generate_series(1, 1000) AS id' &&
		calls "$SCRATCH"/data/*.0.bc && ! calls "$SCRATCH"/data/*.0.optimized.bc
)

calls()
{
	"$llvm/llvm-nm" "$1" | grep ' U instaid_extract_shard_id$'
}

# works_on MACHINE TARGET SRC: the target of the fuzzer passes there
works_on()
{
	case $1 in
		s390x) endian=-DWORDS_BIGENDIAN ;;
		*) endian= ;;
	esac
	"$1-linux-gnu-gcc" -static -O2 -fwrapv -Wall -Wextra -Werror $endian \
		-isystem "$include" -I "$3" \
		-o "$work/$2" "test/fuzz/$2_fuzz.c" test/fuzz/random_inputs.c &&
		"qemu-$1-static" "$work/$2"
}

# fails_on MACHINE TARGET FILE FAULT: a fault in a copy of the source is found
fails_on()
{
	rm -rf "$work/faulty"
	cp -R src "$work/faulty" && sed -i "$4" "$work/faulty/$3" && ! cmp "src/$3" "$work/faulty/$3" &&
		! works_on "$1" "$2" "$work/faulty" && [ -x "$work/$2" ]
}

for machine in s390x aarch64; do
	check "$machine: the layout" works_on $machine layout src
	check "$machine: the text forms" works_on $machine text_forms src
done
rm "$work/layout" "$work/text_forms"
check 's390x: faults of the layout are found' fails_on s390x layout layout.h \
	's/since_first % 1000 == 0/since_first % 1000 < 999/'
check 'faults of text forms are found' fails_on s390x text_forms text_forms.h '/^\t"ABC/s/-_"/+\/"/'
check 'built with -O3 and LTO, the regression tests pass' works_with '-O3 -flto'
check 'built with -fsanitize=undefined, they pass' works_with \
	'-fsanitize=undefined -fno-sanitize-recover=all'
! grep -q '^with_llvm[[:space:]]*= yes' "$global" || [ ! -x "$llvm/llvm-nm" ] ||
	check 'a query that is compiled has our function inlined' jit_inlines
echo "1..$n"
