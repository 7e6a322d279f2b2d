# The code builds in all the ways it should, without a warning, and META.json
# agrees with it; in TAP.
# Started by test/suites.sh in a source tree that is not built yet.

set -u
. test/lib/tap.sh
. test/lib/private.sh

src=$(pwd)
strict='-Wall -Wextra -Werror'
clang=$(sed -n 's/^CLANG *= *//p' "$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global")

# "make -f" in an empty directory, as packagers do
out_of_tree()
(
	mkdir "$work/build" && cd "$work/build" &&
		make -s -f "$src/Makefile" PG_CONFIG="$PG_CONFIG" PROFILE="$strict" &&
		make -s -f "$src/Makefile" PG_CONFIG="$PG_CONFIG" DESTDIR="$work/dest" install &&
		test "$(find "$work/dest" -name 'instaid*.so' -o -name 'instaid.control' \
			-o -name 'instaid--*.sql' | wc -l)" -eq 3
)

# A PostgreSQL that was built with "./configure --prefix" has another shape than
# Debian's: one folder with bin, include, lib and share.  This one is made of
# Debian's files; its pg_config finds them beside itself, as the real one does.
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
		make -s -f "$src/Makefile" PG_CONFIG="$copy" PROFILE="$strict" install &&
		test -f "$("$copy" --pkglibdir)/instaid.so" &&
		# the linker might have found it elsewhere
		ls "$("$copy" --libdir)/libpq.so" && ! ls "$("$copy" --libdir)/libother.so"
)

# PostgreSQL's own flags are gcc's; that clang ignores some is no news, nor that
# a macro of its headers casts a function
in_tree()
{
	make -s PG_CONFIG="$PG_CONFIG" CC="$clang" \
		PROFILE="$strict -Wno-unknown-warning-option -Wno-ignored-optimization-argument -Wno-cast-function-type-strict" &&
		make -s PG_CONFIG="$PG_CONFIG" clean
}

check 'gcc, out of tree, without warnings' out_of_tree
check 'a private copy of a PostgreSQL with a prefix of its own' one_prefix
[ -z "$clang" ] || check 'clang, in the tree, without warnings' in_tree
check 'cppcheck' cppcheck --quiet --error-exitcode=1 --std=c99 \
	--enable=warning,performance,portability --suppress=normalCheckLevelMaxBranches -D'INT64CONST(x)=(x##LL)' \
	-D'foreach(cell,list)=while (next_cell(&cell, list))' -DERROR=21 -D'ereport(level,rest)=if ((level) == ERROR) abort()' src
check 'META.json has the version of the control file' perl -MJSON::PP -e '
	local $/;
	open my $m, "<", "META.json"; my $meta = decode_json(<$m>);
	open my $c, "<", "instaid.control"; my ($v) = <$c> =~ /^default_version = .([\d.]+)./m;
	$meta->{version} eq "$v.0" && $meta->{provides}{instaid}{version} eq "$v.0"
	    && -f $meta->{provides}{instaid}{file} or die "META.json: $meta->{version}, control: $v\n"'
echo "1..$n"
