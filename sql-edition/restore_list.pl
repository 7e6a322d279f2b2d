# restore_list.pl [--sql] DUMP: how to restore a dump of a database with the extension into one with
# the SQL edition.  DUMP is of a format that pg_restore reads.
#
# Prints a list for "pg_restore -L", without the extension and without what the shards
# consist of.  With --sql, prints the statements that create the shards anew.

use strict;
use warnings;

my $wants_sql = @ARGV == 2 && $ARGV[0] eq '--sql' && shift @ARGV;
my ($dump) = @ARGV;
die "usage: restore_list.pl [--sql] DUMP\n" unless defined $dump && @ARGV == 1;

# what a command prints
sub output_of
{
	open my $output, '-|', @_ or die "$_[0]: $!\n";
	local $/;
	my $text = <$output>;
	close $output or exit 1;
	return $text;
}

# a name as PostgreSQL prints it, without the quotes that it may need
sub plain
{
	my ($name) = @_;
	return $name =~ /\A"(.*)"\z/s ? $1 =~ s/""/"/gr : $name;
}

sub literal { return "'" . plain($_[0]) =~ s/'/''/gr . "'" }

# The statements of a script.  Any role can write what looks like a statement into the body of a
# function: what is quoted belongs to the statement around it.
sub statements
{
	my ($script) = @_;
	my @statements = ('');
	while ($script =~ m{\G(?:(--[^\n]*|;)|(E'(?:[^'\\]|\\.)*'|'[^']*'|"[^"]*"
		|\$((?:[^\W\d]\w*)?)\$.*?\$\3\$|[^\W\d][\w\$]*|[^-;'"\$\w]+|.))}gcsx)
	{
		if (defined $2) { $statements[-1] .= $2 }
		elsif ($1 eq ';') { push @statements, '' }
	}
	s/\A\s+// for @statements;
	return @statements;
}

# A line of the list, and one of the statements, has one name.
sub one_line
{
	for my $name (@_)
	{
		die "a name with a line break: $name\nRename it, and repeat the dump.\n"
		  if $name =~ /[\r\n]/;
	}
	return;
}

my $name       = qr/(?:"(?:[^"]|"")+"|\w+)/;
my $quoted     = qr/E'(?:[^'\\]|\\.)*'|'[^']*'|"[^"]*"/s;
my @statements = statements(output_of('pg_restore', '-s', '-f', '-', $dump));
# what can have defaults, apart from functions, who owns it, and who has rights
my @tables = grep { /\A(?:CREATE|ALTER) (?:FOREIGN |UNLOGGED )?TABLE / } @statements;
my %owner  = map { /\AALTER (?:\w+ )+($name\.$name.*) OWNER TO ($name)\z/s ? ($1 => $2) : () }
  @statements;
my @grants = grep { /\AGRANT / } @statements;
my (@sql, %is_shard, %is_made);
for my $function (@statements)
{
	my ($home, $place, $sequence, $id, $epoch) = $function =~ /
		\ACREATE\ FUNCTION\ ($name)\.next_ids\(count\ integer,\ sequence\ regclass
		\ DEFAULT\ '($name)\.($name)'::regclass\)\ RETURNS\ SETOF\ [\w.]+
		\s+LANGUAGE\ instaid\b[^'"]*
		\s+AS\ (?:'|\$\w*\$)shard\ (\d{1,4}),\ epoch\ (-?\d+)(?:'|\$\w*\$)\z/x
	  or next;
	# a frozen shard has a MAXVALUE below the last tick
	my ($maximum) = map { /\ACREATE SEQUENCE \Q$home.$sequence\E\n.* MAXVALUE (\d+)$/ms }
	  @statements;
	my $is_frozen = defined $maximum && $maximum < 2**53 - 1;
	die "the sequence of shard $home is in schema $place: "
	  . "ALTER SEQUENCE $place.$sequence SET SCHEMA $home; Then repeat the dump.\n"
	  if $place ne $home;
	one_line($home, $sequence);
	$is_shard{ plain($home) } = 1;
	$is_made{ plain($home) . ' ' . plain($sequence) } = 1;
	push @sql, sprintf "SELECT instaid.create_shard(%s, %d, timestamptz 'epoch' + '%s ms', %s);",
	  literal($home), $id, $epoch, literal($sequence);
	# Sequences that tables of the owner pass to it.  Names of columns can look like a default.
	my $by = $owner{"$home.next_ids(count integer, sequence regclass)"};
	my $default = qr/$quoted|DEFAULT \Q$home\E\.next_id\('\Q$home\E\.($name)'::regclass\)/;
	for my $other (map {
			/\A(?:CREATE|ALTER) (?:(?:FOREIGN|UNLOGGED) )?TABLE (?:ONLY )?($name\.$name)/;
			($owner{ $1 // '' } // '') eq ($by // '')
			  ? grep { defined } /$default/gs
			  : () } @tables)
	{
		next unless grep { /\ACREATE SEQUENCE \Q$home.$other\E\s/ } @statements;
		one_line($other);
		push @sql, sprintf "SELECT instaid.add_sequence(%s, %s);", literal($home), literal($other)
		  unless $is_made{ plain($home) . ' ' . plain($other) }++;
	}
	# who could use the sequence or the functions
	my %users = map { $_ => 1 } map { /
		\AGRANT\ [A-Z,]+\ ON\ (?:SEQUENCE\ \Q$home.$sequence\E|FUNCTION\ \Q$home\E\.next_ids?\(.*\))
		\ TO\ ($name)\z/x } @grants;
	one_line(keys %users);
	push @sql, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA $home TO $_;" for sort keys %users;
	push @sql, sprintf "SELECT instaid.freeze_shard(%s);", literal($home) if $is_frozen;
}
die "the dump has no shard of the extension\n" unless %is_shard;

if ($wants_sql)
{
	print map { "$_\n" } @sql;
	exit;
}
for my $line (split /\n/, output_of('pg_restore', '-l', $dump))
{
	# number; catalog object kind schema name owner
	my ($entry) = $line =~ /^\d+; \d+ \d+ (.*)$/ or next;
	# the extension and its schema
	next if $entry =~ /^(?:ACL - |COMMENT - )?(?:EXTENSION|SCHEMA) (?:- )?instaid\b/;
	next if $entry =~ /^SEQUENCE SET instaid /;
	# the shards, and what is left of their time without the extension
	next if $entry =~ /^SCHEMA - (.*) \S+$/ && $is_shard{$1};
	next if $entry =~ /^SEQUENCE(?: SET)? (.*) (\S+) \S+$/ && $is_made{"$1 $2"};
	next if $entry =~ /^(?:ACL|COMMENT) (.*) SEQUENCE (\S+) \S+$/ && $is_made{"$1 $2"};
	next if $entry =~ /^FUNCTION (.*) (?:sql_edition_)?next_ids?\(.*\) \S+$/ && $is_shard{$1};
	next if $entry =~ /^(?:ACL|COMMENT) (.*) FUNCTION (?:sql_edition_)?next_ids?\(.*\) \S+$/
	  && $is_shard{$1};
	next if $entry =~ /^DOMAIN (.*) id_sequence \S+$/ && $is_shard{$1};
	print "$line\n";
}
