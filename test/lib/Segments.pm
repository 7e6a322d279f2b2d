# Functions by which tests look at the segments of tickets.

package Segments;

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(take segment wait_segment duplicates);

# The next values of a ticket, taken by one statement, which waits for a segment.
sub take
{
	my ($node, $name, $count) = @_;
	return split /\n/, $node->safe_psql('postgres',
		"SET instaid.segment_timeout = '120s'; SELECT instaid.next_ticket('$name') FROM generate_series(1, $count)");
}

# Columns of a ticket's row of instaid.segments
sub segment
{
	my ($node, $name, $columns) = @_;
	return $node->safe_psql('postgres', "SELECT $columns FROM instaid.segments WHERE name = '$name'");
}

# Wait until a condition holds for a ticket's row of instaid.segments.
sub wait_segment
{
	my ($node, $name, $condition) = @_;
	$node->poll_query_until('postgres', "SELECT $condition FROM instaid.segments WHERE name = '$name'")
	  or die "no $condition of $name: " . segment($node, $name, 'segments');
	return;
}

# How many of these values came before in the list?
sub duplicates
{
	my %seen;
	return scalar grep { $seen{$_}++ } @_;
}

1;
