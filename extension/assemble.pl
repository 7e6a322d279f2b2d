# assemble.pl: write the script of the extension to standard output.
#
# It is made of the files below.  A line "-- include FILE" in them stands for that file of
# common/, and VERSION for the version of the control file.

use strict;
use warnings;

sub text { local (@ARGV, $/) = @_; return scalar <> }

my ($version) = text('instaid.control') =~ /^default_version = '(.*)'/m or die;
my @parts = map { text("extension/$_.sql") } qw(schema ids shards positions audit adopting rights);
for (@parts)
{
	# CREATE EXTENSION must not take over what another role has put there
	s/^-- include (\S+)\n/text($1) =~ s{^CREATE OR REPLACE }{CREATE }mgr/gem;
	s/\bVERSION\b/$version/g;
}
print join "\n", @parts;
