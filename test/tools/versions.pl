# The places that name versions of PostgreSQL, and what they must name, by the table of
# test/tools/folders.sh; prints a line for each that names another.  This is the list of what a
# new major version changes, besides src/common/compat.h.  Started by test/tools/lint.sh.

use strict;
use warnings;

sub slurp { local (@ARGV, $/) = @_; return scalar <> }

my @rows = map { [split] } grep { /^\s*(?:table=')?\d\d(?:-\w+)?\s/ }
  map { s/^table='//r } split /\n/, slurp('test/tools/folders.sh');
my %majors = map { $_->[0] =~ /^(\d+)/ => $_->[2] eq '-' } @rows;
my ($oldest, $newest) = (sort keys %majors)[ 0, -1 ];
# the newest that is no release candidate
my ($current) = sort { $b <=> $a } grep { $majors{$_} } keys %majors;

my $any = qr/(\d\d)/;
my @places = (
	(map { [ $_, qr/PostgreSQL $any to $any/, $oldest, $newest ] } 'README.md', 'docs/install.md',
		'docs/sql-edition.md', 'test/README.md'),
	[ 'test/README.md', qr/^\| $any \(release candidate/m, $newest ],
	[ '.ci/run', qr/^$any  +test-matrix VERSIONS=$any SUITES=newest/m, $newest, $newest ],
	[ '.ci/run', qr/^$any-assert/m, $current ],
	[ '.github/workflows/test.yml', qr/PG_MAJOR: $any/, $current ],
	(map { [ $_, qr/^ARG PG_MAJOR=$any/m, $current ] } 'Dockerfile',
		'packaging/kubernetes/Dockerfile'),
	[ 'test/tools/packages/image.sh', qr/pg_upgrade from $any to $any/, $current, $newest ],
	[ 'test/tools/packages.sh', qr/PG_MAJOR=$any/, $newest ],
	[ 'debian/pgversions', qr/^$any\+/, $oldest ],
	[ 'META.json', qr/"PostgreSQL": "$any/, $oldest ],
	[ 'test/lib/run', qr/"\$version" -ge $any/, $oldest ]);
my $wrong = 0;
for my $place (@places)
{
	my ($file, $pattern, @versions) = @$place;
	my @found = slurp($file) =~ $pattern;
	next if "@found" eq "@versions";
	print "$file: names PostgreSQL ", @found ? "@found" : 'nowhere', ", not @versions\n";
	$wrong = 1;
}
exit $wrong;
