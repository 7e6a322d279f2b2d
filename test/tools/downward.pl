# downward.pl DIRECTORY: check that calls of C go downward in the list of src/README.md.  The
# objects are in the directory, where the source tree was built.
use strict;
use warnings;

my ($build) = @ARGV;
open my $map, '<', 'src/README.md' or die "src/README.md: $!";
my @files = map { /^\| `(\S+)\.c` / ? $1 : () } <$map>;
my %is_listed = map { $_ => 1 } @files;
my @missing = grep { !$is_listed{$_} } map { s,^src/|\.c$,,gr } glob 'src/*.c src/*/*.c';
print "src/README.md lacks $_.c\n" for @missing;

my (%defined_in, %place, @calls);
for my $file (@files)
{
	$place{$file} = keys %place;
	for (`nm $build/src/$file.o`)
	{
		my ($type, $symbol) = /(\S) (\S+)$/ or next;
		push @calls, [ $file, $symbol ] if $type eq 'U';
		$defined_in{$symbol} = $file if $type =~ /[TDBRC]/;
	}
	die "$build/src/$file.o" if $?;
}
my @upward = grep { $place{ $defined_in{ $_->[1] } } < $place{ $_->[0] } }
  grep { exists $defined_in{ $_->[1] } } @calls;
print "$_->[0].c uses $_->[1] of $defined_in{$_->[1]}.c, which is above it\n" for @upward;
exit(@missing || @upward ? 1 : 0);
