# assemble.pl: write the script of the extension to standard output.
#
# It is made of the files below.  A line "-- include FILE: SECTION" in them stands for a
# section of a file of the SQL edition, whose heading is "---- SECTION (both editions) ----".
# VERSION stands for the version of the control file.

use strict;
use warnings;

sub text { local (@ARGV, $/) = @_; return scalar <> }

my ($version) = text('instaid.control') =~ /^default_version = '(.*)'/m or die;
my @parts = map { text("extension/$_.sql") } qw(schema ids shards tickets audit servers);
for (@parts)
{
	s{^-- include (\S+): (.*)\n}{
		my ($file, $section) = ($1, $2);
		text($file) =~ /^(---- \Q$section\E) \(both editions\)( ----\n.*?)(?=\n\n---- |\n*\z)/ms
			or die "$file has no section \"$section (both editions)\"\n";
		# CREATE EXTENSION must not take over what another role has put there
		"$1$2\n" =~ s/^CREATE OR REPLACE /CREATE /mgr}gem;
	s/\bVERSION\b/$version/g;
}
print join "\n", @parts;
