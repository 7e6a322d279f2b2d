# perl clients/recipes.pl [--write] [NAME...]: compare the blocks of clients/NAME/README.md with
# the trial that they are taken from, or of all clients.  With --write, put them into the
# pages instead.  The page of the trial "reading" is docs/clients.md.
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

sub slurp
{
	my ($file) = @_;
	open my $f, '<', $file or die "$file: $!\n";
	local $/;
	return scalar <$f>;
}

# the page that shows the recipes of a trial
sub page
{
	my ($name) = @_;
	return $name eq 'reading' ? 'docs/clients.md' : "clients/$name/README.md";
}

my $write = @ARGV && $ARGV[0] eq '--write' && shift;
my @trials = @ARGV ? @ARGV : map { m,([^/]+)/trial$, } glob 'clients/*/trial';
my $wrong  = 0;

for my $trial (@trials)
{
	# the recipes of its files, by "NAME/FILE WORD"
	my %recipes;
	for my $file (grep { -f && -T && !/\.md$/ } glob "clients/$trial/*")
	{
		my $name = $file =~ s,^clients/,,r;
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
	die "$trial has no recipe\n" unless %recipes;

	my $page = page($trial);
	my %shown;
	my $new = slurp($page) =~ s{^<!-- recipe: (\N*) -->\n(```\w+\n)(.*?)^```\n}{
		my ($recipe, $fence) = ($1, $2);
		die "$page: there is no recipe \"$recipe\"\n" unless defined $recipes{$recipe};
		$shown{$recipe} = 1;
		"<!-- recipe: $recipe -->\n$fence$recipes{$recipe}```\n"
	}gemsr;
	my @missing = grep { !$shown{$_} } sort keys %recipes;
	die "$page does not show: @missing\n" if @missing;
	next if $new eq slurp($page);

	if ($write)
	{
		open my $f, '>', $page or die "$page: $!\n";
		print $f $new;
	}
	else
	{
		open my $f, '|-', 'diff', '-u', $page, '-' or die;
		print $f $new;
		close $f;
		print STDERR "$page differs from its trial; perl clients/recipes.pl --write\n";
		$wrong = 1;
	}
}
exit $wrong;
