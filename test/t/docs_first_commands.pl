# The commands that README lets one paste: a clone, make demo and make test.  Its address is one
# that does not exist, so git is told to fetch this tree instead; apt-get does nothing, since the
# packages are there.  Of make test, one file runs.
# not in: version assert
#
# packages: git
# not in: version assert
# takes 100 s

use strict;
use warnings;

use Cwd ();
use PostgreSQL::Test::Utils;
use Test::More;

use Docs;

my $directory = PostgreSQL::Test::Utils::tempdir;
my ($demo, $test) = map { $_->{text} } section_blocks('README.md', 'Try it');
my ($address) = $demo =~ m{git clone (https://\S+)} or die $demo;

# the tree as git would have it, without what a build leaves
my $tree = "$directory/tree";
system('sh', '-ec', q{
	mkdir "$1" && tar -chf - --exclude=.git --exclude=node_modules --exclude=tmp_check \
		--exclude=results --exclude=exports.list --exclude='*.o' --exclude='*.bc' \
		--exclude='*.so' . | tar -C "$1" -xf -
	cd "$1" && git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -qm tree},
	'sh', $tree) == 0 or die 'no repository';

mkdir "$directory/bin";
append_to_file("$directory/bin/apt-get", "#!/bin/sh\necho \"\$@\" >>'$directory/installed'\n");
chmod 0755, "$directory/bin/apt-get";

local %ENV = (%ENV,
	PATH => "$directory/bin:$ENV{PATH}",
	GIT_CONFIG_COUNT => 1,
	GIT_CONFIG_KEY_0 => "url.$tree.insteadOf",
	GIT_CONFIG_VALUE_0 => $address);
# what test/lib/run and make have set for this run: MAKEFLAGS has SUITES, and make would run
# this suite again
delete @ENV{qw(SCRATCH SUITES FULL RESULT KEEP MAKEFLAGS MAKEOVERRIDES MAKELEVEL MFLAGS)};

my $started = time;
my $printed = `cd $directory && { sh -ec '$demo' ; } 2>&1`;
is($?, 0, 'make demo as README has it') or diag($printed);
note('make demo took ' . (time - $started) . ' s');
like(slurp_file("$directory/installed"), qr/^update\n.*install -y git make/,
	'make demo as README has it, after the packages that an empty Debian lacks');

# README's tables have the rows that it prints; only the first numbers differ
my $readme = slurp_file('README.md');
my ($published) = $printed =~ /^ published function \|\s*(\d+) \|/m or die $printed;
my @instaid = $printed =~ /^ instaid, insta\d +\|\s*(\d+) \|\s*(\d+)/mg;
is("@instaid", "$published 0 $published 0", 'the demonstration: no duplicate');
my ($thousands) = $readme =~ /16 clients insert ([\d,]+) rows/;
is($thousands =~ tr/,//dr, $published,
	'the demonstration: no duplicate, of as many rows as README says');
like($printed, qr/^ naive +\| +\d+ \| +[1-9]\d* \|/m,
	'the demonstration: no duplicate: a naive reader misses rows');
like($printed, qr/^ settled +\| +\d+ \| +0 \|/m,
	'the demonstration: no duplicate, and one by settled_id() none');
like($readme, qr/^\| instaid, shard \d \| 0 \|(?:.*\n)+\| the same, up to .* \| 0 \|$/m,
	'the demonstration: no duplicate, which README shows');

$printed = do
{
	local $ENV{SUITES} = 'sql/fields.sql';
	`cd $directory/instaid && { $test } 2>&1`;
};
is($?, 0, 'make test as README has it') or diag($printed);
like($printed, qr/^[1-9]\d* passed, 0 failed$/m,
	'make test as README has it, which says what has passed');

done_testing();
