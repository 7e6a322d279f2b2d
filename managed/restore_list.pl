# restore_list.pl DUMP: how to restore a dump of a database with the extension into one with
# managed/instaid.sql.  DUMP is of a format that pg_restore reads.
#
# Prints a list for "pg_restore -L", without the extension and without what the shards
# consist of.  Comments ";SQL" in it are the statements that create the shards anew.

use strict;
use warnings;

my ($dump) = @ARGV;
die "usage: restore_list.pl DUMP\n" unless defined $dump && @ARGV == 1;

# read COMMAND...: what a command prints
sub read_from
{
	open my $output, '-|', @_ or die "$_[0]: $!\n";
	local $/;
	my $text = <$output>;
	close $output or exit 1;
	return $text;
}

my $name   = qr/(?:"(?:[^"]|"")+"|\w+)/;
my $schema = read_from('pg_restore', '-s', '-f', '-', $dump);
my (@sql, %shard, %sequence);
my @declared = $schema =~ /^CREATE FUNCTION ($name)\.next_ids\(count integer, sequence regclass DEFAULT '($name)\.($name)'::regclass\) RETURNS SETOF \S+
(?:.*\n)*?\s+AS (?:'|\$\w*\$)(.*?)(?:'|\$\w*\$);$/mg;
while (my ($home, $place, $sequence, $declaration) = splice @declared, 0, 4)
{
	my ($id, $epoch, $frozen) = $declaration =~ /^shard (\d+), epoch ([^,]+)(, frozen)?$/ or next;
	die "the sequence of shard $home is in schema $place\n" if $place ne $home;
	$shard{$home} = 1;
	$sequence{"$home.$sequence"} = 1;
	push @sql, sprintf "SELECT instaid.create_shard(%s, %d, '%s', %s);", literal($home), $id, $epoch, literal($sequence);
	for my $other ($schema =~ /\b\Q$home\E\.next_id\('\Q$home\E\.($name)'::regclass\)/g)
	{
		push @sql, sprintf "SELECT instaid.add_sequence(%s, %s);", literal($home), literal($other)
		  unless $sequence{"$home.$other"}++;
	}
	# who could use the sequence or the function
	my %users = map { $_ => 1 } $schema =~ /^GRANT [A-Z,]+ ON (?:SEQUENCE \Q$home.$sequence\E|FUNCTION \Q$home\E\.next_id\w*\([^)]*\)) TO ($name);$/mg;
	push @sql, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA $home TO " . join(', ', sort keys %users) . ';' if %users;
	push @sql, sprintf "SELECT instaid.freeze_shard(%s);", literal($home) if $frozen;
}
die "the dump has no shard of the extension\n" unless %shard;

# A name as a string: PostgreSQL prints names with quotes where they need them
sub literal
{
	my ($quoted) = @_;
	$quoted =~ s/^"(.*)"$/$1/ and $quoted =~ s/""/"/g;
	$quoted =~ s/'/''/g;
	return "'$quoted'";
}
sub plain { return literal($_[0]) =~ s/^'(.*)'$/$1/r =~ s/''/'/gr }

my %home = map { plain($_) => 1 } keys %shard;
my %made = map { /^($name)\.($name)$/ ? (plain($1) . ' ' . plain($2) => 1) : () } keys %sequence;
print map { ";SQL $_\n" } @sql;
for my $line (split /\n/, read_from('pg_restore', '-l', $dump))
{
	# number; catalog object kind schema name owner
	my ($entry) = $line =~ /^\d+; \d+ \d+ (.*)$/ or next;
	next if $entry =~ /^(?:COMMENT |ACL )?- (?:EXTENSION|SCHEMA) instaid(?:_tickets)?\b/ || $entry =~ /^(?:EXTENSION|COMMENT|ACL|SCHEMA|DEFAULT ACL) - (?:EXTENSION |SCHEMA )?instaid(?:_tickets)?\b/;
	next if $entry =~ /^SCHEMA - (.*) \S+$/ && $home{$1};
	next if $entry =~ /^(?:SEQUENCE|SEQUENCE SET|SEQUENCE OWNED BY) (.*) (\S+) \S+$/ && $made{"$1 $2"};
	next if $entry =~ /^(?:ACL|COMMENT) (.*) SEQUENCE (\S+) \S+$/ && $made{"$1 $2"};
	next if $entry =~ /^(?:ACL |COMMENT )?(?:FUNCTION )?(.*?) (?:FUNCTION )?next_ids?\([^)]*\) \S+$/ && $home{$1};
	# the sequence of the extension itself, and its tickets
	next if $entry =~ /^SEQUENCE SET instaid /;
	print "$line\n";
}
