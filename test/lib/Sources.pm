# Authorities, from which tickets have their values, as tests make them.

package Sources;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use Time::HiRes qw(sleep);

our @EXPORT = qw(authority sequence create retry);

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

sub create
{
	my ($node, $name, $step, $source) = @_;
	$node->safe_psql('postgres', qq{SELECT instaid.create_ticket('$name', step => $step, source => '$source')});
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
