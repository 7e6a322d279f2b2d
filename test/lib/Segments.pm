# Segments of tickets, as tests look at them.

package Segments;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(take segment wait_segment duplicates);

# The next values of a ticket, in one statement, which waits for a segment.
sub take
{
	my ($node, $name, $count) = @_;
	return split /\n/, $node->safe_psql('postgres',
		"SET instaid.segment_timeout = '120s'; SELECT instaid.next_ticket('$name') FROM generate_series(1, $count)");
}

# Columns of the view
sub segment
{
	my ($node, $name, $columns) = @_;
	return $node->safe_psql('postgres', "SELECT $columns FROM instaid.segments WHERE name = '$name'");
}

# Wait until a row of the view is so.
sub wait_segment
{
	my ($node, $name, $condition) = @_;
	$node->poll_query_until('postgres', "SELECT $condition FROM instaid.segments WHERE name = '$name'")
	  or die "no $condition of $name: " . segment($node, $name, 'segments');
	return;
}

# How many of these are there twice?
sub duplicates
{
	my %seen;
	return scalar grep { $seen{$_}++ } @_;
}

1;
