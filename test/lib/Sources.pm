# Tickets that have their values from other servers, as tests make and watch them.

package Sources;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(sleep);

our @EXPORT = qw(source create take failure retry segment wait_segment session_as duplicates
  log_count);

# The foreign server of a node for these authorities, whose name is returned.  Options are those of
# the server, but for user and password, which everybody's mapping has.
sub source
{
	my ($node, $authorities, %options) = @_;
	my $database = delete $options{database} // 'postgres';
	my %mapping = map { $_ => delete $options{$_} } grep { exists $options{$_} }
	  'user', 'password';
	my $list = sub { my (%of) = @_; return join ', ', map { "$_ '$of{$_}'" } sort keys %of };
	my $who = %mapping ? 'OPTIONS (' . $list->(%mapping) . ')' : '';
	my $name = join ' ', (map { $_->name } @$authorities), @options{ sort keys %options },
	  grep { defined } $mapping{user};
	my $where = $list->(
		host => join(',', map { $_->host } @$authorities),
		port => join(',', map { $_->port } @$authorities),
		dbname => 'postgres', connect_timeout => 60, %options);
	$node->safe_psql($database, qq{SET client_min_messages = warning;
		CREATE SERVER IF NOT EXISTS "$name" FOREIGN DATA WRAPPER instaid_tickets OPTIONS ($where);
		CREATE USER MAPPING IF NOT EXISTS FOR PUBLIC SERVER "$name" $who});
	return $name;
}

# Create a ticket at each of these authorities, which gets a number of its own, and the
# ticket that has its values from them.
sub create
{
	my ($node, $name, $step, $authorities, %options) = @_;
	my $servers = @$authorities;
	my $quoted = $name =~ /^[a-z_]+$/ ? $name : '"' . $name =~ s/"/""/gr . '"';
	my $of = "public.$quoted";
	for my $server (1 .. $servers)
	{
		$authorities->[ $server - 1 ]->safe_psql('postgres', qq{
			SELECT instaid_tickets.create('public.$quoted', $server, $servers,
				if_not_exists => true)});
	}
	my $source = source($node, $authorities, %options);
	$node->safe_psql($options{database} // 'postgres',
		qq{CREATE FOREIGN TABLE public.$quoted (value bigint) SERVER "$source"
			OPTIONS (sequence '$of', step '$step')});
	return;
}

# The next values of a ticket, taken by one statement, which waits for a segment
sub take
{
	my ($node, $name, $count, $database) = @_;
	return split /\n/, $node->safe_psql($database // 'postgres',
		"SET instaid_tickets.segment_timeout = '120s';
		SELECT instaid_tickets.next(format('%I', '$name')::regclass)
			FROM generate_series(1, $count)");
}

# The error of a call
sub failure
{
	my ($node, $name, $timeout) = @_;
	my ($ret, $stdout, $stderr) = $node->psql('postgres',
		'SET instaid_tickets.segment_timeout = ' . ($timeout // 60000)
		  . "; SELECT instaid_tickets.next(format('%I', '$name')::regclass)");
	return $stderr;
}

# Call until there is a value.
sub retry
{
	my ($node, $name) = @_;
	for (1 .. 1800)
	{
		my ($ret, $stdout) = $node->psql('postgres',
			"SELECT instaid_tickets.next(format('%I', '$name')::regclass)");
		return $stdout if $ret == 0;
		sleep(0.05);
	}
	return '';
}

# Columns of a ticket's row of instaid_tickets.segments
sub segment
{
	my ($node, $name, $columns) = @_;
	return $node->safe_psql('postgres',
		"SELECT $columns FROM instaid_tickets.segments
			WHERE ticket = format('%I', '$name')::regclass");
}

# Wait until a condition holds for a ticket's row of instaid_tickets.segments.
sub wait_segment
{
	my ($node, $name, $condition) = @_;
	$node->poll_query_until('postgres',
		"SELECT $condition FROM instaid_tickets.segments
			WHERE ticket = format('%I', '$name')::regclass")
	  or die "no $condition of $name: " . segment($node, $name, '*');
	return;
}

# A session of another role
sub session_as
{
	my ($role, $node) = @_;
	local $ENV{PGUSER} = $role;
	return Clients::session($node);
}

# How many of these values came before in the list?
sub duplicates
{
	my %seen;
	return scalar grep { $seen{$_}++ } @_;
}

# How often is this in the log of a server?  A worker logs after it has told the calls that wait:
# therefore this waits until it is there.
sub log_count
{
	my ($node, $pattern) = @_;
	my $count = 0;
	for (1 .. 1800)
	{
		last if $count = () = slurp_file($node->logfile) =~ /$pattern/g;
		sleep(0.1);
	}
	return $count;
}

1;
