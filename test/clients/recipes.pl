# perl test/clients/recipes.pl [--write]: compare the blocks of docs/clients.md with the
# trials that they are taken from.  With --write, put them into the page instead.
#
# A recipe is what stands in a file of a trial between these two lines, which are comments
# of its language.  If the same word is used again, the parts are joined.
#
#   # recipe: WORD
#   # end of recipe
#
# In the page, this line stands above a block: <!-- recipe: NAME/FILE WORD -->

use strict;
use warnings;

my $page = 'docs/clients.md';

sub slurp
{
	my ($file) = @_;
	open my $f, '<', $file or die "$file: $!\n";
	local $/;
	return scalar <$f>;
}

# the recipes of the files, by "NAME/FILE WORD"
my %recipes;
for my $file (grep { -f && -T } glob 'test/clients/*/* clients/*/*')
{
	my $name = $file =~ s,^test/clients/,,r;
	my ($indent, $word);
	for (split /^/, slurp($file))
	{
		if (/^(\s*).*\brecipe: (\w+)/) { ($indent, $word) = ($1, $2) }
		elsif (/\bend of recipe\b/) { undef $word }
		elsif (defined $word) { $recipes{"$name $word"} .= s/^$indent//r }
	}
	die "$file: recipe \"$word\" does not end\n" if defined $word;
}
s/\n+\z/\n/ for values %recipes;

my %shown;
my $new = slurp($page) =~ s{^<!-- recipe: (\N*) -->\n(```\w+\n)(.*?)^```\n}{
	my ($recipe, $fence) = ($1, $2);
	die "$page: there is no recipe \"$recipe\"\n" unless defined $recipes{$recipe};
	$shown{$recipe} = 1;
	"<!-- recipe: $recipe -->\n$fence$recipes{$recipe}```\n"
}gemsr;

if (@ARGV)
{
	open my $f, '>', $page or die "$page: $!\n";
	print $f $new;
}
elsif ($new ne slurp($page))
{
	open my $f, '|-', 'diff', '-u', $page, '-' or die;
	print $f $new;
	close $f;
	die "$page differs from the trials; perl test/clients/recipes.pl --write\n";
}
my @missing = grep { !$shown{$_} } sort keys %recipes;
die "$page does not show: @missing\n" if @missing;
for my $trial (glob 'test/clients/*/trial')
{
	my ($name) = $trial =~ m,([^/]+)/trial$,;
	die "$page has no recipe of $name\n" unless grep { m,^\Q$name\E/, } keys %shown;
}
