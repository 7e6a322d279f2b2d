# Authorities, from which tickets have their values, as tests make them.

package Sources;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use Time::HiRes qw(sleep);

our @EXPORT = qw(authority sequence source create retry);

# A server that has no instaid
sub authority
{
	my ($name, @settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name, install_path => $ENV{INSTAID_PLAIN});
	$node->init;
	$node->append_conf('postgresql.conf', "$_\n") for 'log_statement = none', @settings;
	$node->start;
	$node->safe_psql('postgres', 'CREATE SCHEMA instaid_tickets');
	return $node;
}

sub sequence
{
	my ($node, $name, $options) = @_;
	$node->safe_psql('postgres', qq{CREATE SEQUENCE instaid_tickets."$name" $options});
	return;
}

# The foreign servers of a node for these authorities, as an array in SQL.  Options
# are those of the servers, but for user and password, which everybody's mapping has.
sub source
{
	my ($node, $authorities, %options) = @_;
	my $database = delete $options{database} // 'postgres';
	my %mapping = map { $_ => delete $options{$_} } grep { exists $options{$_} } 'user', 'password';
	my $list = sub { my (%of) = @_; return join ', ', map { "$_ '$of{$_}'" } sort keys %of };
	my $who = %mapping ? 'OPTIONS (' . $list->(%mapping) . ')' : '';
	my @names;

	for my $authority (@$authorities)
	{
		my $name = join ' ', $authority->name, @options{ sort keys %options }, grep { defined } $mapping{user};
		my $where = $list->(host => $authority->host, port => $authority->port, dbname => 'postgres', connect_timeout => 60, %options);
		$node->safe_psql($database, qq{SET client_min_messages = warning;
			CREATE SERVER IF NOT EXISTS "$name" FOREIGN DATA WRAPPER instaid OPTIONS ($where);
			CREATE USER MAPPING IF NOT EXISTS FOR PUBLIC SERVER "$name" $who});
		push @names, $name;
	}
	return 'ARRAY[' . join(', ', map { "'$_'" } @names) . ']';
}

sub create
{
	my ($node, $name, $step, $authorities, %options) = @_;
	my $source = source($node, $authorities, %options);
	$node->safe_psql($options{database} // 'postgres', qq{SELECT instaid.create_ticket('$name', step => $step, source => $source)});
	return;
}

# Call until there is a value.
sub retry
{
	my ($node, $name) = @_;
	for (1 .. 1800)
	{
		my ($ret, $stdout) = $node->psql('postgres', "SELECT instaid.next_ticket('$name')");
		return $stdout if $ret == 0;
		sleep(0.1);
	}
	return '';
}

1;
