# assemble.pl SCRIPT: write this script of an extension, such as instaid--1.0.sql, to standard
# output.
#
# It is made of the files below.  A line "-- include FILE" in them stands for that file, VERSION
# for the version of the script, and THIS_EXTENSION for the extension's name.

use strict;
use warnings;

my %parts = (
	'instaid' => [ map { "extension/$_" } qw(schema ids shards positions audit renumbering rights) ],
	'adopt/instaid_adopt' => [ 'adopt/schema', 'adopt/extension', 'adopt/copies', 'adopt/evidence',
		'adopt/adopt_shard', 'adopt/replace_copy', 'adopt/adopt_column', 'extension/rights' ]);

sub text { local (@ARGV, $/) = @_; return scalar <> }

# CREATE EXTENSION must not take over what another role has put there
sub common { return text($_[0]) =~ s{^CREATE OR REPLACE }{CREATE }mgr }

my ($script, $extension, $version) = $ARGV[0] =~ m,\A((?:\w+/)?(\w+))--([\d.]+)\.sql\z, or die;
print "/* $extension--$version.sql, which \"make script\" assembles: do not edit it */\n\n";
print join "\n", map {
	text("$_.sql") =~ s/^-- include (\S+)\n/common($1)/gemr =~ s/\bVERSION\b/$version/gr
	  =~ s/\bTHIS_EXTENSION\b/$extension/gr
} @{ $parts{$script} };
