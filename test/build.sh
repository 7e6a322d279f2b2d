# The code builds in all the ways it should, without a warning; in TAP.
# Started by test/suites.sh in a source tree that is built already.

set -u

n=0
check()
{
	name=$1
	shift
	n=$((n + 1))
	if "$@" >"$SCRATCH/build.out" 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' "$SCRATCH/build.out"
	fi
}

src=$(pwd)
strict='-Wall -Wextra -Werror'
clang=$(sed -n 's/^CLANG *= *//p' "$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global")

# out_of_tree DIR MAKE-ARGUMENTS: build in an empty directory
out_of_tree()
{
	mkdir "$SCRATCH/$1"
	cd "$SCRATCH/$1" || return
	shift
	make -s -f "$src/Makefile" PG_CONFIG="$PG_CONFIG" "$@" && test -f instaid.so
}

# install_elsewhere: "make install" from such a build brings all files
install_elsewhere()
{
	cd "$SCRATCH/gcc" &&
		make -s -f "$src/Makefile" PG_CONFIG="$PG_CONFIG" DESTDIR="$SCRATCH/dest" install &&
		test "$(find "$SCRATCH/dest" -name 'instaid*.so' -o -name 'instaid.control' \
			-o -name 'instaid--*.sql' | wc -l)" -eq 3
}

check 'gcc, out of tree, no warnings' out_of_tree gcc PROFILE="$strict"
# PostgreSQL was built with gcc's flags; that clang ignores some is no news
check 'clang, out of tree, no warnings' out_of_tree clang CC="$clang" \
	PROFILE="$strict -Wno-unknown-warning-option -Wno-ignored-optimization-argument"
check 'installs from out of tree' install_elsewhere
check 'cppcheck' cppcheck --quiet --error-exitcode=1 --std=c99 --inline-suppr \
	--enable=warning,performance,portability --suppress=missingInclude \
	-DINT64CONST\(x\)=x src
check 'META.json has the version of the control file' perl -MJSON::PP -e '
	local $/;
	open my $m, "<", "META.json"; my $meta = decode_json(<$m>);
	open my $c, "<", "instaid.control"; my ($v) = <$c> =~ /^default_version = .([\d.]+)./m;
	$meta->{version} eq "$v.0" && $meta->{provides}{instaid}{version} eq "$v.0"
	    && -f $meta->{provides}{instaid}{file} or die "META.json: $meta->{version}, control: $v\n"'
echo "1..$n"
