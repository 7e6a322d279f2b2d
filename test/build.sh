# The code builds outside the source tree, without a warning, for Debian's
# PostgreSQL and for one whose directories are elsewhere.  The names in the libraries
# are not those of others, and only tickets and instaid-move need libpq.  In TAP.
# Started by test/suites.sh in a source tree that is not built yet.
# not in: assert

set -u
. test/lib/tap.sh
. test/lib/private.sh

src=$(pwd)
# the compiler can be clang (see test/tools/lint.sh)
strict='-Wall -Wextra -Werror -Wno-unknown-warning-option -Wno-ignored-optimization-argument'
strict="$strict -Wno-cast-function-type-strict"

# "make -f" in an empty directory, as packagers do
out_of_tree()
(
	mkdir "$work/build" && cd "$work/build" &&
		make -s -j"$(nproc)" -f "$src/Makefile" PG_CONFIG="$PG_CONFIG" PROFILE="$strict" &&
		make -s -f "$src/Makefile" PG_CONFIG="$PG_CONFIG" DESTDIR="$work/dest" install &&
		installed "$work/dest" >"$work/installed" && diff "$work/doors" "$work/installed" &&
		make -s -f "$src/Makefile" PG_CONFIG="$PG_CONFIG" DESTDIR="$work/dest" uninstall &&
		! find "$work/dest" -type f | grep .
)

# installed DIRECTORY: print the names of the files there, without bitcode
installed()
{
	find "$1" -name 'instaid*' -type f ! -path '*/bitcode/*' -printf '%f\n' | sort
}

# what a complete build installs
{
	find "$src" -maxdepth 2 '(' -name 'instaid*.control' -o -name 'instaid*--*.sql' ')' \
		-printf '%f\n'
	printf '%s\n' instaid.so instaid_tickets.so instaid-move instaid-move-plan
} | sort >"$work/doors"

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
		make -s -j"$(nproc)" -f "$src/Makefile" PG_CONFIG="$copy" with_llvm=no install &&
		test -f "$("$copy" --pkglibdir)/instaid.so" &&
		test -f "$("$copy" --pkglibdir)/instaid_tickets.so" &&
		# the linker can also find libpq elsewhere
		ls "$("$copy" --libdir)/libpq.so" && ! ls "$("$copy" --libdir)/libother.so"
)

# with objects in the source tree, of another PostgreSQL perhaps
not_beside_a_build()
(
	mkdir "$work/build_beside" && cd "$work/build_beside" || return
	for object in src/instaid.o tickets/common.o; do
		touch "$src/$object"
		! make -s -f "$src/Makefile" PG_CONFIG="$PG_CONFIG" 2>"$work/says"
		status=$?
		rm "$src/$object"
		[ $status -eq 0 ] && grep 'run make clean in it' "$work/says" || return
	done
)

# "make clean" leaves what was there, and "make" assembles the script if a part is newer
in_tree()
(
	cp -R "$src" "$work/tree" && cd "$work/tree" && find . -type f | sort >"$work/before" &&
		touch -d '1 hour ago' instaid--*.sql && echo "-- changed" >>extension/rights.sql &&
		make -s -j4 PG_CONFIG="$PG_CONFIG" with_llvm=no DESTDIR="$work/dest_tree" install &&
		installed "$work/dest_tree" | diff "$work/doors" - &&
		grep -rx -e '-- changed' "$work/dest_tree" && make -s PG_CONFIG="$PG_CONFIG" clean &&
		find . -type f | sort | diff "$work/before" - || return
	# a packager's tree can be read-only
	touch -d '1 hour ago' instaid--*.sql
	make -n PG_CONFIG="$PG_CONFIG" | grep assemble.pl && mkdir "$work/build_old" &&
		cd "$work/build_old" &&
		! make -n -f "$work/tree/Makefile" PG_CONFIG="$PG_CONFIG" | grep assemble.pl
)

# the folder of tickets is an extension of its own for PGXS
tickets_alone()
(
	copy=$(copy_postgresql "$PG_CONFIG" "$work/tickets_alone") && mkdir "$work/build_tickets" &&
		make -s -C "$work/build_tickets" -f "$src/tickets/Makefile" PG_CONFIG="$copy" \
			with_llvm=no install &&
		[ "$(installed "$work/tickets_alone" | tr '\n' ' ')" = \
			"$(cd "$src/tickets" && echo *--*.sql instaid_tickets.control instaid_tickets.so '')" ]
)

# without the development files of libpq
without_libpq()
(
	copy=$(copy_postgresql "$PG_CONFIG" "$work/no_libpq") &&
		rm "$("$copy" --includedir)/libpq-fe.h" &&
		mkdir "$work/build_less" && cd "$work/build_less" || return
	! make -s -f "$src/Makefile" PG_CONFIG="$copy" 2>"$work/says" &&
		grep 'need the development files of libpq; without them, run make TICKETS=no MOVE=no' \
			"$work/says" && [ "$(wc -l <"$work/says")" -eq 1 ] &&
		make -s -f "$src/Makefile" PG_CONFIG="$copy" TICKETS=no MOVE=no with_llvm=no install &&
		installed "$work/no_libpq" >"$work/installed" &&
		grep -v -e tickets -e move "$work/doors" | diff - "$work/installed"
)

# needs LIBRARY: print the libraries that it is linked to
needs()
{
	objdump -p "$work/build/$1.so" | sed -n 's/^ *NEEDED *//p'
}

# instaid links to the C library only, starts no worker, and asks for no shared memory
is_light()
{
	[ "$(needs instaid)" = "$(needs instaid | grep '^libc\.')" ] &&
		! nm -D --undefined-only "$work/build/instaid.so" | grep -E \
			' (PQ.*|shmem_.*_hook|Shmem.*|Request(Addin|Named).*|Register.*Worker)$' &&
		needs tickets/instaid_tickets | grep '^libpq\.' &&
		[ "$(needs tickets/instaid_tickets | grep -c -v -e '^libc\.' -e '^libpq\.')" -eq 0 ]
}

# exports LIBRARY [PREFIX]: it has the functions of its prefix, and no others
exports()
{
	nm -D --defined-only "$work/build/$1.so" | sed 's/.* //' | sort >"$work/exports"
	grep -x _PG_init "$work/exports" &&
		! grep -vE "^($2_.*|pg_finfo_$2_.*|_PG_init|Pg_magic_func)\$" "$work/exports"
}

exports_ours()
{
	exports instaid instaid && ! grep tickets "$work/exports" &&
		exports tickets/instaid_tickets instaid_tickets
}

# Two of our libraries have the functions of src/common/.  Another library has a function
# time_str(), as instaid has, and one sequence_open_locked(), as both have.  Whichever of them
# is loaded first, each calls its own.
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
		extern void sequence_open_locked(void);

		void
		sequence_open_locked(void)
		{
			elog(ERROR, "this is the neighbour's");
		}

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
		psql -Xq -c 'CREATE EXTENSION instaid' -c 'CREATE EXTENSION instaid_tickets' \
			-c "CREATE FUNCTION neighbour() RETURNS text LANGUAGE c AS 'neighbour'" \
			-c "SELECT instaid.create_shard('insta5', 5)" -c 'CREATE SEQUENCE ticket' &&
		for order in 'neighbour instaid instaid_tickets' 'instaid_tickets instaid neighbour' \
			'instaid instaid_tickets neighbour'; do
			{
				printf 'LOAD %s;\n' $(printf "'%s' " $order)
				echo "SELECT instaid_tickets.next('ticket'); SELECT neighbour();
					SELECT instaid.extract_shard_id(insta5.next_id());
					SELECT instaid.extract_timestamp(1, 'infinity')"
			} | psql -XAtq 2>&1 | sed 's/^ERROR:  epoch infinity is .*/ours/; /^[A-Z]*:/d'
		done >"$work/told"
	stop_server
	rm -rf "$SCRATCH/data"
	cat "$work/told"
	[ "$(paste -sd ' ' "$work/told")" = "1 the neighbour's 5 ours 2 the neighbour's 5 ours \
3 the neighbour's 5 ours" ]
)

check 'out of tree, without warnings; "make uninstall" leaves no file' out_of_tree
check 'calls of C go downward in the list of src/README.md' \
	perl test/tools/downward.pl "$work/build"
check 'no build beside objects in the tree' not_beside_a_build
check 'in the tree, and "make" assembles the script; "make clean" leaves no file' in_tree
check 'tickets/ alone' tickets_alone
check 'a private copy of a PostgreSQL with a prefix of its own' one_prefix
check 'without libpq, TICKETS=no MOVE=no' without_libpq
check 'instaid needs the C library only, no worker and no shared memory' is_light
check 'each library exports what PostgreSQL looks up, and nothing else' exports_ours
check 'libraries call their own functions, whichever is loaded first' neighbours
echo "1..$n"
