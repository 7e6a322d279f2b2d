# Numbers in README.md and docs/ that are no longer those of the benchmark; prints a line for
# each.  A number that has a comment after it is compared with the counts of
# bench/instructions.expected for PostgreSQL 15: 0.92<!-- = insert sent / serial sent -->.
# "16 sequences" is their rate in the table of contention, "create_shards()" the milliseconds of
# 8,192 shards, and "least bigserial" the lowest rate of the SQL edition as a part of that of
# bigserial; these are in bench/tables.md.  The tables of bench/tables.md
# must be those that bench/report.pl makes from bench/result.tsv.
# Started by test/tools/lint.sh.

use strict;
use warnings;

my ($wrong, $compared) = (0, 0);

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

my $tables = slurp('bench/tables.md');
my %count = slurp('bench/instructions.expected') =~ /^15 x86_64 \| (.+) \| ([\d.]+)$/mg;
($count{'16 sequences'}) = $tables =~ /^\| instaid, CACHE 1 \| 16 \| 16 \| 1000 \| (\d+) /m;
($count{'create_shards()'}) = $tables =~ /^\| create_shards\(\) .* (\d+) \|$/m;
for my $other ('published verbatim', 'bigserial')
{
	my ($rates) = $tables =~ /the SQL edition has ([\d., ]+) of the rate of $other,/;
	@count{ "least $other", "most $other" } = (sort { $a <=> $b } split /, /, $rates)[ 0, -1 ];
}
$count{million} = 1_000_000;
$count{thousand} = 1_000;

for my $file ('README.md', glob 'docs/*.md')
{
	my $page = slurp($file);
	while ($page =~ /([\d.,]*\d)<!-- = (.+?) -->/g)
	{
		my ($shown, $of) = ($1, $2);
		my ($count, $other) =
		  map { $count{$_} // die "$file: nothing counts \"$_\"\n" } split ' / ', $of;
		my ($decimals) = map { length } $shown =~ /\.(\d+)$/ ? $1 : '';
		my $is = sprintf "%.${decimals}f", $count / ($other // 1);
		wrong("$file: $shown is $is now: $of") if $shown =~ s/,//gr ne $is;
		$compared++;
	}
}
wrong('no number was compared') unless $compared;
wrong('bench/tables.md has other tables: make bench-docs')
	if $tables ne `$^X bench/report.pl bench/result.tsv`;
exit($wrong ? 1 : 0);
