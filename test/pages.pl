# Links, pictures and turns of phrase of all pages; prints a line for each fault.  A link must
# lead to a file of the tree, and its anchor to a heading.  Started by test/tools/lint.sh.

use strict;
use warnings;

# What a native writer does not write, and how often all pages together do, as in "there is no
# such ticket"
my %turns_at_most = ('is no ' => 11, ', too[.,]' => 0, 'has them' => 0);

my $wrong = 0;

sub wrong
{
	print "$_[0]\n";
	$wrong++;
	return;
}

sub slurp
{
	my ($file) = @_;
	open my $text, '<', $file or die "$file: $!";
	local $/;
	return scalar <$text>;
}

# A page without its blocks of code and its comments
sub prose
{
	my ($file) = @_;
	return slurp($file) =~ s/^( *)```.*\n(?:.*\n)*?\1```$//mgr =~ s/<!--.*?-->//sgr;
}

# The anchors that GitHub makes of the headings of a page: a heading that stands twice has
# a number the second time.
sub anchors
{
	my ($file) = @_;
	my (%seen, %anchors);
	for my $heading (prose($file) =~ /^#+ +(.*?) *$/mg)
	{
		$heading =~ s/\[([^]]*)\]\([^)]*\)/$1/g;
		my $anchor = lc $heading =~ s/[^\w\- ]//gr =~ tr/ /-/r;
		my $times = $seen{$anchor}++;
		$anchors{ $times ? "$anchor-$times" : $anchor } = 1;
	}
	return \%anchors;
}

my @pages = grep { -f } qw(README.md CHANGELOG.md CONTRIBUTING.md RELEASING.md SECURITY.md),
  glob '*/*.md */*/*.md .github/*.md .github/*/*.md';
my ($links, %turns, %anchors, %shown) = (0);
for my $page (@pages)
{
	my ($prose, $folder) = (prose($page), $page =~ m,^(.*/), ? $1 : '');
	while ($prose =~ /\]\(([^)\s]+)\)/g)
	{
		my ($link, $path, $anchor) = ($1, split /#/, $1, 2);
		next if $link =~ /^[a-z]+:/;
		$links++;
		my $target = $path eq '' ? $page : $folder . $path;
		1 while $target =~ s,[^/]+/\.\./,,;
		$shown{$target} = 1;
		if (!-e $target) { wrong("$page: no file $link") }
		elsif (defined $anchor && $target =~ /\.md$/)
		{
			$anchors{$target} //= anchors($target);
			wrong("$page: no heading $link") unless $anchors{$target}{$anchor};
		}
	}
	next unless $page =~ m,^(README|docs/|clients/|monitoring/|bench/README|test/),;
	for my $turn (keys %turns_at_most)
	{
		$turns{$turn} += () = $prose =~ /$turn/g;
	}
}

# A picture has its content as text, and is drawn for both themes.
for my $picture (glob 'docs/pictures/*.svg')
{
	my $svg = slurp($picture);
	wrong("$picture: no $_")
	  for grep { index($svg, $_) < 0 } '<title ', '<desc ', 'prefers-color-scheme: dark';
	wrong("$picture is in no page") unless $shown{$picture};
	# what draws SVG and is no browser may not know variables
	while ($svg =~ /\b(\w+): (var\(--\w+\))/g)
	{
		my ($property, $variable, $before) = ($1, $2, substr $svg, 0, $-[0]);
		wrong("$picture: no plain $property before $variable")
		  unless $before =~ /\b$property: #[0-9a-f]{3,6}; \z/;
	}
}

# the pages that alerts name
for my $file (glob 'monitoring/*.yaml')
{
	for (slurp($file) =~ /\bpage: (\S+\.md\S*)/g)
	{
		my ($target, $anchor) = split /#/;
		$links++;
		wrong("$file: no heading $_")
		  unless -e $target && (!defined $anchor || anchors($target)->{$anchor});
	}
}

wrong('no link was followed') unless $links;
for my $turn (sort keys %turns_at_most)
{
	wrong("\"$turn\" stands $turns{$turn} times, and $turns_at_most{$turn} are allowed")
	  if $turns{$turn} > $turns_at_most{$turn};
}
exit($wrong ? 1 : 0);
