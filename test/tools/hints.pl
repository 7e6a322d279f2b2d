# Each HINT of the sources stands whole in a test: in an expected output, or in a string of a test.
# A HINT that a page shows is one of the sources.  Prints what is otherwise.
# Started by test/tools/lint.sh.  A hint that no other test needs has its row in
# test/t/message_hints.pl.
#
# A hint that is put together counts by its texts; a value in it, as of %s, can be anything.
#
# What instaid-move says to do next stands in test/move_next.txt, whose lines its suites
# provoke.  A last argument of fail() or of finding() that is not there is told, too.

use strict;
use warnings;

sub slurp { local (@ARGV, $/) = @_; return join '', <> }

# A name is changed between two statements of a function, which no test can time.
my %not_provoked = map { $_ => 1 } (
	'extension/renumbering.sql: Try again.',
	'extension/shards.sql: Try again.',
	'adopt/extension.sql: Call adopt_shard() again.');

my $c_string = qr/"((?:[^"\\]|\\.)*)"/;
my $sql_string = qr/'((?:[^']|'')*)'/;

# The first argument of C, or an expression of SQL, from here on: up to a comma, a semicolon or a
# parenthesis that was not opened in it
sub expression
{
	my ($text, $string) = @_;
	my ($depth, $expression) = (0, '');
	while ($text =~ /\G($string|.)/gs)
	{
		my $token = $1;
		last if $token =~ /^[,;)]$/ && !$depth;
		$depth += $token eq '(' ? 1 : $token eq ')' ? -1 : 0;
		$expression .= $token;
	}
	return $expression;
}

# Each text: [ file, text ]
my @hints;

sub add
{
	my ($file, @texts) = @_;
	# what has no two words is a part like " Then "
	push @hints, map { [ $file, $_ ] } grep { /[A-Za-z]{2}\W.*[A-Za-z]{2}/ } @texts;
	return;
}

for my $file (glob '{src,src/common,tickets/src}/*.c')
{
	my $text = slurp($file) =~ s{/\*.*?\*/}{}gsr;
	# macros are hints, too
	$text =~ s/#define \w+_HINT (".*")$/errhint($1)/gm;
	while ($text =~ /\berrhint\(/g)
	{
		my $hint = expression(substr($text, pos $text), $c_string) =~ s/"\s*"//gr;
		add($file, map { s/\\(.)/$1/gr } $hint =~ /$c_string/g);
	}
}
for my $file (glob '{common,extension,sql-edition}/*.sql adopt/[!i]*.sql tickets/*--*.sql')
{
	my $text = slurp($file) =~ s/^((?:[^'\n]|'[^'\n]*')*?)--.*/$1/mgr;
	while ($text =~ /\bhint\s*:?=\s*/gi)
	{
		my $hint = expression(substr($text, pos $text), $sql_string) =~ s/'\s*\n\s*'//gr;
		add($file, map { s/''/'/gr } $hint =~ /$sql_string/g);
	}
}

# What tests say: strings of Perl that are joined by dots are one
my $tests = join "\n", map { slurp($_) } glob '{.,tickets,adopt}/expected/*.out';
$tests .= join "\n", map { slurp($_) =~ s/'\s*\n\s*'//gr =~ s/''/'/gr }
  glob 'test/pgtap/*.sql test/pgtap/*/*.sql';
my $end = qr/(?<!\\)['"\}]/;
$tests .= join "\n",
  map { slurp($_) =~ s/$end\s*\.\s*(?:q\{|['"])//gr =~ s/\\([.*+?()\[\]{}|^\$\/])/$1/gr }
  glob 'test/{t,cluster}/*.pl';
my $wrong = 0;
my @patterns;
my @next = split /\n/, slurp('test/move_next.txt');
for my $file (glob 'move/*.c')
{
	my $text = slurp($file) =~ s{/\*.*?\*/}{}gsr;
	while ($text =~ /\b(?:fail|finding)\(m, /g)
	{
		my ($last, $at) = ('', pos $text);
		while (length(my $argument = expression(substr($text, $at), $c_string)))
		{
			$last = $argument;
			$at += length($argument) + 1;
			last if substr($text, $at - 1, 1) ne ',';
		}
		$last =~ s/"\s*"//g;
		for my $next (map { s/\\(.)/$1/gr } $last =~ /$c_string/g)
		{
			# what begins with a comma is added to a cause, too
			next if $next !~ /^[^,].*[A-Za-z]{2}\W.*[A-Za-z]{2}/;
			next if grep { index($_, $next =~ s/%s$//r) == 0 } @next;
			print "$file: test/move_next.txt has no \"$next\"\n";
			$wrong = 1;
		}
	}
}
for (@hints)
{
	my ($file, $hint) = @$_;
	push @patterns, join '[^\n]*?', map { quotemeta } split /%(?:\d+\$)?[a-zA-Z]/, $hint, -1;
	next if $tests =~ /$patterns[-1]/ || $not_provoked{"$file: $hint"};
	print "$file: no test has \"$hint\"\n";
	$wrong = 1;
}
for my $page ('README.md', glob 'docs/*.md docs/*/*.md')
{
	for my $shown (slurp($page) =~ /^HINT:  (.*)/mg)
	{
		next if grep { $shown =~ /$_/ } @patterns;
		print "$page: no source has \"$shown\"\n";
		$wrong = 1;
	}
}
@hints > 150 or die 'only ' . @hints . ' hints';
exit $wrong;
