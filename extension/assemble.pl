# assemble.pl EXTENSION: write the script of the extension to standard output.
#
# It is made of the files below.  A line "-- include FILE" in them stands for that file, VERSION
# for the version of the control file, and THIS_EXTENSION for its name.

use strict;
use warnings;

my %parts = (
	instaid => [ map { "extension/$_" } qw(schema ids shards positions audit renumbering servers
		rights) ],
	instaid_adopt => [ 'adopt/schema', 'adopt/extension', 'adopt/copies', 'adopt/evidence',
		'adopt/adopt_shard', 'adopt/replace_copy', 'adopt/adopt_column', 'extension/rights' ]);

sub text { local (@ARGV, $/) = @_; return scalar <> }

# CREATE EXTENSION must not take over what another role has put there
sub common { return text($_[0]) =~ s{^CREATE OR REPLACE }{CREATE }mgr }

my ($extension) = @ARGV;
my $folder = $extension eq 'instaid' ? '' : 'adopt/';
my ($version) = text("$folder$extension.control") =~ /^default_version = '(.*)'/m or die;
print join "\n", map {
	common("$_.sql") =~ s/^-- include (\S+)\n/common($1)/gemr =~ s/\bVERSION\b/$version/gr
	  =~ s/\bTHIS_EXTENSION\b/$extension/gr
} @{ $parts{$extension} };
