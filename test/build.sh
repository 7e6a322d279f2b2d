# The code builds outside the source tree, without a warning, for Debian's
# PostgreSQL and for one whose directories are elsewhere.  The names in the libraries
# are not those of others, and only one of them needs libpq.  In TAP.
# Started by test/suites.sh in a source tree that is not built yet.

set -u
. test/lib/tap.sh
. test/lib/private.sh

src=$(pwd)
# the compiler can be clang (see test/lint.sh)
strict='-Wall -Wextra -Werror -Wno-unknown-warning-option -Wno-ignored-optimization-argument'
strict="$strict -Wno-cast-function-type-strict"

# "make -f" in an empty directory, as packagers do
out_of_tree()
(
	mkdir "$work/build" && cd "$work/build" &&
		make -s -j"$(nproc)" -f "$src/Makefile" PG_CONFIG="$PG_CONFIG" PROFILE="$strict" &&
		make -s -f "$src/Makefile" PG_CONFIG="$PG_CONFIG" DESTDIR="$work/dest" install &&
		test "$(find "$work/dest" -name 'instaid*.so' -o -name 'instaid.control' \
			-o -name 'instaid-move' | wc -l)" -eq 4 &&
		test "$(find "$work/dest" -name 'instaid--*.sql' | wc -l)" -eq \
			"$(ls "$src"/instaid--*.sql | wc -l)"
)

# A PostgreSQL that was built with "./configure --prefix" has all directories in one:
# bin, include, lib and share.  This one is made of Debian's files.  Its pg_config finds
# them relative to itself, as the real one does.
one_prefix()
(
	prefix=$work/prefix
	mkdir -p "$prefix/bin" "$prefix/include/postgresql" "$prefix/lib" "$prefix/share"
	for header in "$("$PG_CONFIG" --includedir)"/libpq-*.h "$("$PG_CONFIG" --includedir)"/p*.h; do
		ln -s "$header" "$prefix/include/"
	done
	ln -s "$("$PG_CONFIG" --includedir-server)" "$prefix/include/postgresql/server"
	ln -s "$("$PG_CONFIG" --pkglibdir)" "$prefix/lib/postgresql"
	ln -s "$("$PG_CONFIG" --sharedir)" "$prefix/share/postgresql"
	echo "not really a library" >"$prefix/lib/libother.so"
	ln -s "$("$PG_CONFIG" --libdir)"/libpq.so* "$prefix/lib/"
	cat >"$prefix/bin/pg_config" <<-SCRIPT
		#!/bin/sh
		top=\$(cd "\$(dirname "\$0")/.." && pwd)
		case \$1 in
			--bindir) echo "\$top/bin" ;;
			--includedir) echo "\$top/include" ;;
			--pkgincludedir) echo "\$top/include/postgresql" ;;
			--includedir-server) echo "\$top/include/postgresql/server" ;;
			--libdir) echo "\$top/lib" ;;
			--pkglibdir) echo "\$top/lib/postgresql" ;;
			--sharedir) echo "\$top/share/postgresql" ;;
			--pgxs) echo "\$top/lib/postgresql/pgxs/src/makefiles/pgxs.mk" ;;
			*) exec "$PG_CONFIG" "\$@" ;;
		esac
	SCRIPT
	chmod +x "$prefix/bin/pg_config"

	copy=$(copy_postgresql "$prefix/bin/pg_config" "$work/copy") &&
		mkdir "$work/build_one" && cd "$work/build_one" &&
		make -s -j"$(nproc)" -f "$src/Makefile" PG_CONFIG="$copy" PROFILE="$strict" install &&
		test -f "$("$copy" --pkglibdir)/instaid.so" &&
		test -f "$("$copy" --pkglibdir)/instaid_sources.so" &&
		# the linker can also find libpq elsewhere
		ls "$("$copy" --libdir)/libpq.so" && ! ls "$("$copy" --libdir)/libother.so"
)

# with objects in the source tree, of another PostgreSQL perhaps
not_beside_a_build()
(
	touch "$src/src/instaid.o" && mkdir "$work/build_beside" && cd "$work/build_beside" || return
	! make -s -f "$src/Makefile" PG_CONFIG="$PG_CONFIG" 2>"$work/says"
	status=$?
	rm "$src/src/instaid.o"
	[ $status -eq 0 ] && grep 'run make clean in it' "$work/says"
)

# without the development files of libpq
without_libpq()
(
	copy=$(copy_postgresql "$PG_CONFIG" "$work/no_libpq") &&
		rm "$("$copy" --includedir)/libpq-fe.h" &&
		mkdir "$work/build_less" && cd "$work/build_less" || return
	! make -s -f "$src/Makefile" PG_CONFIG="$copy" 2>"$work/says" &&
		grep 'need the development files of libpq; without them, make SOURCES=no' "$work/says" &&
		make -s -f "$src/Makefile" PG_CONFIG="$copy" SOURCES=no install &&
		( cd "$("$copy" --pkglibdir)" && ls instaid*.so ) >"$work/installed" &&
		[ "$(cat "$work/installed")" = instaid.so ] && ! [ -e "$("$copy" --bindir)/instaid-move" ]
)

# needs LIBRARY: print the libraries that it is linked to
needs()
{
	objdump -p "$work/build/$1.so" | sed -n 's/^ *NEEDED *//p'
}

# instaid links to the C library only, and asks for no shared memory
is_light()
{
	[ "$(needs instaid)" = "$(needs instaid | grep '^libc\.')" ] &&
		! nm -D --undefined-only "$work/build/instaid.so" |
			grep -E ' (PQ.*|shmem_.*_hook|ShmemInitStruct|Request(AddinShmem|NamedLWLock).*)$' &&
		needs instaid_sources | grep '^libpq\.'
}

# exports LIBRARY: print what it exports
exports()
{
	nm -D --defined-only "$work/build/$1.so" | sed 's/.* //' | sort
}

exports_ours()
(
	exports instaid >"$work/exports" && grep -x _PG_init "$work/exports" &&
		! grep -vE '^(instaid_.*|pg_finfo_instaid_.*|_PG_init|Pg_magic_func)$' "$work/exports" &&
		printf '%s\n' _PG_init Pg_magic_func instaid_refill_worker | sort >"$work/expected" &&
		exports instaid_sources | diff "$work/expected" - &&
		! grep -x instaid_refill_worker "$work/exports"
)

# Another library has a function time_str(), as ours has.  Whichever of them is loaded
# first, each calls its own.
neighbours()
(
	copy=$(copy_postgresql "$PG_CONFIG" "$work/pg")
	PATH=$(dirname "$copy"):$PATH
	export PATH
	cat >"$work/neighbour.c" <<-'C'
		#include "postgres.h"
		#include "fmgr.h"
		#include "utils/builtins.h"

		PG_MODULE_MAGIC;
		PG_FUNCTION_INFO_V1(neighbour);
		extern const char *time_str(int64 time);

		const char *
		time_str(int64 time)
		{
			return "the neighbour's";
		}

		Datum
		neighbour(PG_FUNCTION_ARGS)
		{
			PG_RETURN_TEXT_P(cstring_to_text(time_str(0)));
		}
	C
	cc -O2 -shared -fPIC -I "$("$copy" --includedir-server)" \
		-o "$("$copy" --pkglibdir)/neighbour.so" "$work/neighbour.c" &&
		cd "$work/build" && make -s -f "$src/Makefile" PG_CONFIG="$copy" install && start_server &&
		psql -Xq -c 'CREATE EXTENSION instaid' \
			-c "CREATE FUNCTION neighbour() RETURNS text LANGUAGE c AS 'neighbour'" &&
		for first in instaid neighbour; do
			psql -XAtq -c "LOAD '$first'" -c 'SELECT neighbour()' \
				-c "SELECT instaid.extract_timestamp(1, 'infinity')" 2>&1
		done >"$work/told"
	stop_server
	rm -rf "$SCRATCH/data"
	cat "$work/told"
	[ "$(grep -c "^the neighbour's" "$work/told")" = 2 ] &&
		[ "$(grep -c '^ERROR:  epoch infinity is ' "$work/told")" = 2 ]
)

check 'out of tree, without warnings' out_of_tree
check 'calls of C go downward in the list of src/README.md' perl test/downward.pl "$work/build"
check '... but not beside objects in the tree' not_beside_a_build
check 'a private copy of a PostgreSQL with a prefix of its own' one_prefix
check 'without libpq, SOURCES=no' without_libpq
check 'only instaid_sources needs libpq and shared memory' is_light
check 'each library exports what PostgreSQL looks up, and nothing else' exports_ours
check 'a library with a function of the name of one of ours calls its own, and we ours' neighbours
echo "1..$n"
