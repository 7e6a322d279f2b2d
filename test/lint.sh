# Checks of the source that do not depend on the version of PostgreSQL: warnings of
# clang and cppcheck, the version in META.json, and what messages name; in TAP.
# Started by test/suites.sh in a source tree that is not built yet.
#
# packages: cppcheck

set -u
. test/lib/tap.sh

strict='-Wall -Wextra -Werror'
clang=$(sed -n 's/^CLANG *= *//p' "$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global")

# PostgreSQL's flags are for gcc.  Clang may ignore some of them, and may find that a
# macro of the server's headers casts a function.
in_tree()
{
	make -s PG_CONFIG="$PG_CONFIG" CC="$clang" \
		PROFILE="$strict -Wno-unknown-warning-option -Wno-ignored-optimization-argument -Wno-cast-function-type-strict" &&
		make -s PG_CONFIG="$PG_CONFIG" clean
}

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
check 'no message names a page: pages are not installed' \
	sh -c '! grep -n "docs/[a-z]" instaid--1.0.sql src/*.[ch] src/*/*.[ch]'
check 'docs/clients.md shows what the trials run' perl test/clients/recipes.pl
echo "1..$n"
