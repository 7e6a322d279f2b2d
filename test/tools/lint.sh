# Checks of the source that do not depend on the version of PostgreSQL: warnings of
# clang and cppcheck, the version, the generated script, and what messages name; in TAP.
# Started by test/suites.sh in a source tree that is not built yet.
#
# packages: cppcheck
# not in: version assert

set -u
. test/lib/tap.sh

strict='-Wall -Wextra -Werror'
clang=$(sed -n 's/^CLANG *= *//p' "$(dirname "$("$PG_CONFIG" --pgxs)")/../Makefile.global")

# PostgreSQL's flags are for gcc.  Clang may ignore some of them, and may find that a
# macro of the server's headers casts a function.
in_tree()
{
	make -s -j"$(nproc)" PG_CONFIG="$PG_CONFIG" CC="$clang" \
		PROFILE="$strict -Wno-unknown-warning-option -Wno-ignored-optimization-argument\
 -Wno-cast-function-type-strict" &&
		make -s PG_CONFIG="$PG_CONFIG" clean
}

# in_width COLUMNS FILE...: no line is wider; a tab has four columns
in_width()
{
	columns=$1
	shift
	! for file in "$@"; do
		expand -t 4 "$file" | awk -v file="$file" -v columns="$columns" \
			'length > columns { print file ": " FNR }'
	done | grep .
}

# before make, which assembles it again
check 'the scripts are what make script assembles' sh -c '
	for script in instaid--*.sql adopt/instaid_adopt--*.sql; do
		perl extension/assemble.pl "$script" | diff "$script" - || exit
	done'
[ -z "$clang" ] || check 'clang, in the tree, without warnings' in_tree
check 'cppcheck' cppcheck --quiet --error-exitcode=1 --std=c99 \
	--enable=warning,performance,portability --suppress=normalCheckLevelMaxBranches \
	--suppress=preprocessorErrorDirective:tickets/src/lease.c \
	-D'INT64CONST(x)=(x##LL)' -D'foreach(cell,list)=while (next_cell(&cell, list))' \
	-DERROR=21 -DPG_VERSION_NUM=150000 -D'ereport(level,rest)=if ((level) == ERROR) abort()' \
	src tickets/src move
check 'one version is everywhere' perl -MJSON::PP -e '
	sub text { local (@ARGV, $/) = @_; scalar <> }
	my ($v) = text("instaid.control") =~ /^default_version = .([\d.]+)./m;
	my $meta = decode_json(text("META.json"));
	my %found = (
		"META.json" => $meta->{version} =~ s/\.\d+$//r,
		"CHANGELOG.md" => text("CHANGELOG.md") =~ /^## (\d+\.\d+)/m,
		"README.md" => text("README.md") =~ /^Release (\d+\.\d+) runs on/m);
	for my $extension (qw(instaid instaid_tickets instaid_adopt)) {
		my $provides = $meta->{provides}{$extension};
		-f $provides->{file} or die "there is no $provides->{file}, which META.json names\n";
		($found{"META.json, file of $extension"}) = $provides->{file} =~ /--(.*)\.sql$/;
		my ($control) = grep { -f } glob "{.,*}/$extension.control";
		($found{$control}) = text($control) =~ /^default_version = .([\d.]+)./m;
	}
	for (glob "sql-edition/*.sql") {
		my $file = text($_);
		$found{$_} = $1 while $file =~
		  /(?:version CONSTANT text := \x27|the SQL edition of instaid )([\d.]+)\x27/g;
	}
	for (glob "docs/*.md clients/*/README.md packaging/*/* clients/pglite/*.ts") {
		my $file = text($_);
		$found{"$_, $&"} = $1 while $file =~ /\b(?:instaid[-:]|version: \x27)(\d+\.\d+)/g;
	}
	my @others = grep { $found{$_} ne $v } sort keys %found;
	die map { "$_ has the version $found{$_}, and instaid.control has $v\n" } @others if @others;
	my %release = (
		(map { ("META.json, provides $_" => $meta->{provides}{$_}{version}) }
			keys %{ $meta->{provides} }),
		"debian/changelog" => text("debian/changelog") =~ /^instaid \((.*)-/,
		"packaging/rpm/instaid.spec" => text("packaging/rpm/instaid.spec") =~ /^Version: *(.*)$/m,
		"README.md, the zip" => text("README.md") =~ /instaid-([\d.]+)\.zip/);
	@others = grep { $release{$_} ne $meta->{version} } sort keys %release;
	die map { "$_ has the version $release{$_}, and META.json has $meta->{version}\n" } @others
		if @others'
written='extension/*.sql common/*.sql sql-edition/*.sql tickets/*.sql adopt/[!i]*.sql'
check 'lines of SQL are under 100 columns' in_width 99 $written
check 'each private function and view of SQL has a comment above it' perl -ne '
	print "$ARGV: $1\n" and $bad = 1
		if /^CREATE (?:OR REPLACE )?(?:FUNCTION|VIEW) (instaid\w*\._\w+)/ && $above !~ /^-- /;
	$above = $_; END { exit $bad }' $written
check 'no file of SQL is longer than 1,000 lines' sh -c '
	! wc -l "$@" | awk "\$1 > 1000 && \$2 != \"total\"" | grep .' sh $written
check 'lines of tests have at most 100 columns' in_width 100 \
	.ci/run sql-edition/*.sh sql-edition/*.pl test/*.sh test/*.pl test/lib/* \
	test/tools/*.* \
	test/t/*.pl test/cluster/*.pl
check 'names of tests are whole: none begins with "..."' perl -ne '
	print "$ARGV: $_" and $bad = 1 if m/(?:["\x27`]|\bq\w?\W)(?:[^"\x27`]*: )?\.\.\. \S/;
	END { exit $bad }' \
	test/t/*.pl test/cluster/*.pl test/lib/*.pm test/pgtap/*.sql test/*.sh test/tools/packages/* \
	$(find clients -maxdepth 2 -type f ! -name "*.md")
check 'a suite names what FULL=1 adds to it' sh -c '
	! grep -LE "^# (FULL=1 adds|only with FULL=1)" $(grep -lE "FULL(}|:-)|^check_full" \
		test/t/*.pl test/cluster/*.pl test/bench.sh test/fuzz.sh test/memcheck.sh test/model.sh \
		test/run.sh) | grep .'
sources='src/*.[ch] src/common/*.[ch] tickets/src/*.[ch] move/*.[ch]'
check 'no message names a page: pages are not installed' \
	sh -c '! grep -n "docs/[a-z]" "$@"' sh *--*.sql tickets/*.sql adopt/*.sql $sources
check 'only compat.h knows versions of PostgreSQL' \
	sh -c '! grep -n PG_VERSION_NUM "$@"' sh $(ls $sources | grep -vx src/common/compat.h)
# both libraries compile src/common/, and share nothing else
check 'C includes files of its folder, and libraries those of src/common/' perl -e '
	my %ours = map { s,.*/,,r => 1 } glob "{src,src/common,tickets/src,move}/*.h";
	for my $file (glob "{src,src/common,tickets/src,move}/*.[ch]") {
		my ($folder) = $file =~ m,(.*)/,;
		my @may = ($folder, $folder eq "move" ? () : "src/common");
		open my $text, "<", $file or die $!;
		while (<$text>) {
			my ($header) = m,^#include "((?:\.\./.*/)?[^/]*)", or next;
			die "$file: $_" if $header =~ m,/, || $ours{$header} && !grep { -f "$_/$header" } @may;
		}
	}'
check 'a test has each HINT whole' perl test/tools/hints.pl
check 'each place names the versions that the folders have' perl test/tools/versions.pl
check 'debian/control is debian/control.in for PostgreSQL 15' sh -c '
	sed "s/PGVERSION/15/" debian/control.in | diff - debian/control'
check 'bench/tables.md has the tables of bench/result.tsv' sh -c '
	perl bench/report.pl bench/result.tsv | diff - bench/tables.md'
check 'links of the pages lead somewhere' perl test/pages.pl
check 'the pages of the clients show what their trials run' perl clients/recipes.pl
echo "1..$n"
