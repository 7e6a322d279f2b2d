# shared.pl [write]: compare the functions that both editions have, instaid--1.0.sql and
# managed/instaid.sql.  Those that do not need C have the same text in both; "write" copies
# it from the extension.

use strict;
use warnings;

# what differs on purpose, besides functions that need C in the extension
my %own = map { $_ => 1 } qw(_check_new_shard _create_batch _missing_grants
	adopt_shard audit audit_servers create_shard create_ticket freeze_shard lease_ticket
	list_shards shard_sequences thaw_shard);

sub text { local (@ARGV, $/) = @_; return scalar <> }

# the functions of a script, each with its COMMENT, up to the empty line after them
my $function = qr/^CREATE FUNCTION instaid\.(\w+)\(.*?\n(?=\n\S|\z)/ms;

my ($extension, $managed) = map { text($_) } 'instaid--1.0.sql', 'managed/instaid.sql';
my %text;
while ($extension =~ /$function/g)
{
	my ($name, $text) = ($1, $&);
	# the type is not in the other edition, nor is Citus
	$text =~ s/, 'instaid\.id'::regtype//g;
	$text =~ s/ or instaid\.id//g;
	$text{$name} = $text unless $own{$name} || $text =~ /\bLANGUAGE (c|instaid) /;
}
my @differ;
$managed =~ s{$function}{
	my ($name, $old) = ($1, $&);
	push @differ, $name if exists $text{$name} && $text{$name} ne $old;
	$text{$name} // $old}ge;
if (@ARGV && $ARGV[0] eq 'write')
{
	open my $file, '>', 'managed/instaid.sql' or die $!;
	print $file $managed;
	close $file or die $!;
}
elsif (@differ)
{
	print "differ: @differ\nTo copy them: perl test/lib/shared.pl write\n";
	exit 1;
}
