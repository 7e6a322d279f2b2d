# The code builds outside the source tree, without a warning, for Debian's
# PostgreSQL and for one whose directories are elsewhere; in TAP.
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
			-o -name 'instaid--*.sql' | wc -l)" -eq 3
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
		# the linker can also find libpq elsewhere
		ls "$("$copy" --libdir)/libpq.so" && ! ls "$("$copy" --libdir)/libother.so"
)

check 'out of tree, without warnings' out_of_tree
check 'a private copy of a PostgreSQL with a prefix of its own' one_prefix
check 'another library'\''s function of the name of ours is not called' \
	sh -c 'readelf -d "$1" | grep SYMBOLIC' sh "$work/build/instaid.so"
echo "1..$n"
