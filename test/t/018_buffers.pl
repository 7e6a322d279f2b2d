# Buffers of tickets: which tickets get one when there are too few, and what happens
# while a ticket gets no segment.  pg_regress cannot preload the library, set the clock,
# or stop a server that is asked.
#
# packages: faketime

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;
use Clock;
use Segments;
use Sources qw(create);

my @preload = (q{shared_preload_libraries = 'instaid'}, 'autovacuum = off');
my $workers = q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'instaid segments'};

# An authority: plain PostgreSQL, with these sequences
sub authority
{
	my ($name, %sequences) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	$node->start;
	$node->safe_psql('postgres', join ' ', 'CREATE SCHEMA instaid_tickets;', map { qq{CREATE SEQUENCE instaid_tickets."$_" $sequences{$_};} } sort keys %sequences);
	return $node;
}

sub create_sourced
{
	my ($node, $database, $name, $authority) = @_;
	create($node, $name, 10, [$authority], database => $database, connect_timeout => 2);
	return;
}

sub failure
{
	my ($node, $database, $name, $before) = @_;
	my ($ret, $stdout, $stderr) = $node->psql($database, ($before // '') . "SELECT instaid.next_ticket('$name')");
	return $stderr;
}

# Values in another database
sub take_in
{
	my ($node, $database, $name, $count) = @_;
	return $node->safe_psql($database, "SELECT instaid.next_ticket('$name') FROM generate_series(1, $count)");
}

### Several databases share a few buffers.

my $node = Clients::server('few', @preload, 'instaid.max_buffered_tickets = 5');
$node->safe_psql('postgres', q{CREATE DATABASE other; SELECT instaid.create_ticket('mine', step => 10), instaid.create_ticket('late', step => 10)});
$node->safe_psql('other', 'CREATE EXTENSION instaid');

sub fill
{
	$node->safe_psql('other', qq{SELECT instaid.create_ticket('theirs $_', step => 10)}) for 1 .. 5;
	take_in($node, 'other', "theirs $_", 1) for 1 .. 5;
	return;
}

sub use_theirs
{
	take_in($node, 'other', "theirs $_", 1) for 1 .. 5;
	return;
}

fill();
is($node->safe_psql('other', 'SELECT count(*) FROM instaid.segments'), 5, 'the tickets of one database have all buffers');
is($node->safe_psql('postgres', q{SELECT instaid.next_ticket('mine'); SELECT count(*) FROM instaid.segments}), "1\n0", '... and a ticket of another database has values, but no buffer');
$node->safe_psql('other', q{SELECT instaid.drop_ticket(name) FROM instaid.tickets});
is($node->safe_psql('other', 'SELECT count(*) FROM instaid.segments'), 0, 'dropped tickets have no buffers');
take($node, 'mine', 1);
is(segment($node, 'mine', 'refills > 0'), 't', '... and the other ticket gets segments at once');
$node->safe_psql('other', q{BEGIN; SELECT instaid.create_ticket('undone', step => 10); COMMIT; SELECT instaid.next_ticket('undone')});
is($node->safe_psql('other', q{BEGIN; DROP SEQUENCE instaid_tickets.undone; ROLLBACK; SELECT instaid.next_ticket('undone') > 1 AND instaid.next_ticket('undone') > 2}), 't', 'a drop that is rolled back skips values, and repeats none');
$node->safe_psql('other', q{SELECT instaid.drop_ticket('undone')});

# tickets that are not used any more
$node->safe_psql('postgres', q{SELECT instaid.drop_ticket('mine')});
fill();
my @values = take($node, 'late', 1);
is($node->safe_psql('postgres', 'SELECT count(*) FROM instaid.segments'), 0, 'other tickets have all buffers again');
for (1 .. 1800)
{
	push @values, take($node, 'late', 1);
	last if segment($node, 'late', 'name') eq 'late';
	sleep(0.1);
}
push @values, take($node, 'late', 30);
is(segment($node, 'late', 'name'), 'late', '... until some are idle: the ticket gets a buffer');
is(duplicates(@values), 0, '... and no value comes twice');
cmp_ok($node->safe_psql('other', 'SELECT count(*) FROM instaid.segments'), '==', 4, '... and one of the idle tickets has none');
is(duplicates(map { split /\n/, take_in($node, 'other', 'theirs 1', 1) } 1 .. 30), 0, '... and no value of an idle ticket comes twice');

# a ticket with a source needs a buffer, but takes none that is in use
my $use_buffered = q{SELECT count(instaid.next_ticket(name)) FROM instaid.segments};
my $authority = authority('authority', map { $_ => $_ eq 'second' ? 'START 5000' : '' } 'first', 'second', 'wanted', 'patient', 'clock', 'gone');
create_sourced($node, 'postgres', 'first', $authority);
$node->safe_psql($_, $use_buffered) for 'postgres', 'other';
like(failure($node, 'postgres', 'first'), qr/ticket "first" has a source, but no buffer\nDETAIL:  All buffers are in use/, 'a ticket with a source gets no buffer that is in use');
my $first = '';
for (1 .. 1800)
{
	$node->safe_psql('other', $use_buffered);
	(my $failed, $first) = $node->psql('postgres', q{SELECT instaid.next_ticket('first')});
	last unless $failed;
	sleep(0.1);
}
is(join(' ', $first, take($node, 'first', 2)), '1 2 3', '... but gets one that is idle');
is(segment($node, 'late', 'name'), '', '... and another ticket has lost it');
is(join(' ', map { use_theirs(); take($node, 'first', 1) } 1 .. 5), '4 5 6 7 8', '... and keeps it');

# tickets whose source is away replace each other, but no ticket that has values
$node->safe_psql('other', q{SELECT instaid.drop_ticket(min(name)) FROM instaid.segments});
my $theirs = $node->safe_psql('other', q{SELECT name FROM instaid.segments ORDER BY name});
$node->safe_psql('postgres', q{CREATE SERVER nowhere FOREIGN DATA WRAPPER instaid OPTIONS (host '/nowhere'); CREATE USER MAPPING FOR PUBLIC SERVER nowhere;
	SELECT instaid.create_ticket('dead ' || i, source => 'nowhere') FROM generate_series(1, 5) AS i});
take($node, 'first', 1);
my @dead = map { $node->safe_psql('other', $use_buffered); failure($node, 'postgres', "dead $_") } 1 .. 5;
is(scalar(grep { /has no values left from its source/ } @dead), 5, 'five tickets whose source is away share a buffer');
is($node->safe_psql('other', q{SELECT name FROM instaid.segments ORDER BY name}), $theirs, '... and the tickets in use keep theirs');
is(segment($node, 'first', 'name'), 'first', '... also the one with a source');
$node->safe_psql('postgres', q{SELECT instaid.drop_ticket(name) FROM instaid.tickets WHERE name ~ 'dead'; DROP SERVER nowhere CASCADE});

# a database that is dropped
$node->poll_query_until('postgres', "$workers AND datname = 'other'", '0') or die;
$node->safe_psql('postgres', 'DROP DATABASE other; CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION instaid');
fill();
cmp_ok($node->safe_psql('other', 'SELECT count(*) FROM instaid.segments'), '>=', 3, 'the buffers of a database that was dropped are free');
$node->safe_psql('other', q{SELECT instaid.drop_ticket(name) FROM instaid.tickets});

### If all buffers are in use, sessions do no more lookups than otherwise.

my $full = Clients::server('full', @preload, 'instaid.max_buffered_tickets = 200');
$full->safe_psql('postgres', q{SELECT count(instaid.create_ticket('t' || i, step => 10)) FROM generate_series(1, 201) AS i});
$full->safe_psql('postgres', q{SELECT count(instaid.next_ticket('t' || i)) FROM generate_series(1, 200) AS i});
my $lookups = q{SELECT idx_scan FROM pg_stat_sys_tables WHERE relname = 'pg_class'};
# lookups of sessions whose ticket has a buffer, and of sessions whose ticket has none
my @cost = map {
	my $name = $_;
	my $before = $full->safe_psql('postgres', $lookups);
	$full->safe_psql('postgres', "SELECT instaid.next_ticket('$name')") for 1 .. 10;
	$full->safe_psql('postgres', $lookups) - $before;
} 't1', 't201';
is($full->safe_psql('postgres', q{SELECT count(*), count(*) FILTER (WHERE name = 't201') FROM instaid.segments}), '200|0', 'all buffers are in use');
cmp_ok(abs($cost[1] - $cost[0]), '<', 1000, "... new sessions look up no more without a buffer than with one: @cost");
# a call that has found it full keeps none from a buffer that is freed after that
create_sourced($full, 'postgres', 'wanted', $authority);
$full->safe_psql('postgres', $use_buffered);
like(failure($full, 'postgres', 'wanted'), qr/has a source, but no buffer/, '... a ticket with a source has none');
$full->safe_psql('postgres', q{SELECT instaid.drop_ticket('t1')});
is(join(' ', take($full, 'wanted', 1)), 1, '... until one is freed, and then at once');
$full->stop;

### The view shows a ticket with any CACHE.

take($node, 'late', 1);
$node->safe_psql('postgres', q{ALTER SEQUENCE instaid_tickets.late CACHE 9223372036854775807});
is($node->safe_psql('postgres', q{SELECT name, segment_size FROM instaid.segments ORDER BY name}), "first|10\nlate|9223372036854775807", 'the view shows a ticket with the largest CACHE');
$node->safe_psql('postgres', q{ALTER SEQUENCE instaid_tickets.late CACHE 10});

### A ticket with a source is renamed.

$node->safe_psql('postgres', 'ALTER SEQUENCE instaid_tickets.first RENAME TO second');
is(join(' ', take($node, 'second', 3)), '5000 5001 5002', 'a ticket with a source is renamed: it has the values of its new name');
wait_segment($node, 'second', 'spare_left > 0');
is(join(' ', take($node, 'second', 12)), join(' ', 5003 .. 5014), '... and goes on with them');

### The authority is away for a while.

create_sourced($node, 'postgres', 'wanted', $authority);
$authority->stop('immediate');
like(failure($node, 'postgres', 'wanted'), qr/has no values left from its source\nDETAIL:  The last attempt/, 'the source is away');
wait_segment($node, 'wanted', 'failures > 4');
pass('... and the worker asks it again, without a call');
$authority->start;
wait_segment($node, 'wanted', 'refills > 0');
is(segment($node, 'wanted', 'values_left + coalesce(spare_left, 0) > 0 OR spare_left > 0'), 't', '... and when it is back, the ticket gets a segment without a call');
like($node->safe_psql('postgres', q{SELECT instaid.next_ticket('wanted')}), qr/\A\d+\z/, '... and then a call returns a value');

# A worker that tries again does not prevent commands on its database.
$authority->stop('immediate');
create_sourced($node, 'other', 'gone', $authority);
failure($node, 'other', 'gone');
$node->poll_query_until('other', q{SELECT failures > 5 FROM instaid.segments WHERE name = 'gone'}) or die;
my ($ret, $stdout, $stderr) = $node->psql('postgres', 'CREATE DATABASE copy TEMPLATE other');
is($stderr, '', '... a database whose ticket waits can be copied');
($ret, $stdout, $stderr) = $node->psql('postgres', 'DROP DATABASE other');
is($stderr, '', '... and dropped');
$authority->start;
$node->stop;

### The clock is set back.

my $clock = Clock->new;
my $set = PostgreSQL::Test::Cluster->new('set');
$set->init;
$set->append_conf('postgresql.conf', "$_\n") for @preload;
$clock->start($set);
$set->safe_psql('postgres', q{CREATE EXTENSION instaid; SELECT instaid.create_ticket('own', step => 10)});
create_sourced($set, 'postgres', 'clock', $authority);
$authority->stop('immediate');
like(failure($set, 'postgres', 'clock'), qr/The last attempt/, 'the source is away once more');
$clock->set(-3600);
$authority->start;
my $value = '';
for (1 .. 600)
{
	($ret, $value) = $set->psql('postgres', q{SELECT instaid.next_ticket('clock')});
	last if $ret == 0;
	sleep(0.1);
}
is($value, 1, 'the clock is set back by an hour: the source is still asked again');
is(join(' ', map { $clock->set(-3600 * $_); take($set, 'own', 20) } 2 .. 4), join(' ', 1 .. 60), '... and another ticket gets its segments');
is(segment($set, 'own', 'bypasses, failures'), '0|0', '... without a failure');
$set->stop;

### No worker is free.

$node = Clients::server('workers', @preload, 'max_worker_processes = 1', 'max_logical_replication_workers = 0', 'max_parallel_workers = 0');
$node->safe_psql('postgres', q{CREATE DATABASE other; SELECT instaid.create_ticket('own', step => 10)});
$node->safe_psql('other', q{CREATE EXTENSION instaid; SELECT instaid.create_ticket('first', step => 10)});
create_sourced($node, 'postgres', 'patient', $authority);
my $pid = '';
until ($pid && kill 'STOP', $pid)
{
	take_in($node, 'other', 'first', 10);
	$pid = $node->safe_psql('postgres', $workers =~ s/count\(\*\)/pid/r);
}
is(join(' ', map { $node->safe_psql('postgres', q{SELECT instaid.next_ticket('own')}) } 1 .. 3), '1 2 3', 'no worker is free: values come from the sequence');
like(failure($node, 'postgres', 'patient', q{SET instaid.segment_timeout = '1s'; }), qr/DETAIL:  No background worker was free within 1000 ms/, '... and a ticket with a source has no values');
is(segment($node, 'patient', 'waits'), 1, '... after a wait');
$node->safe_psql('postgres', q{SELECT instaid.drop_ticket('patient')});
create_sourced($node, 'postgres', 'patient', $authority);
my $call = Clients->start($node, q{SET instaid.segment_timeout = '120s'; SELECT instaid.next_ticket('patient');});
wait_segment($node, 'patient', 'waits > 0');
kill 'CONT', $pid;
wait_segment($node, 'patient', 'refills > 2');
is($call->stop =~ s/.*terminating connection.*\n//gr, '', '... and the wait ends when a worker is free');

# A database that allows no connections can still have open sessions.
$node->poll_query_until('postgres', $workers, '0') or die;
my $inside = Clients::session($node, 'other');
$inside->('SELECT 1');
$node->safe_psql('postgres', 'ALTER DATABASE other ALLOW_CONNECTIONS false');
my @inside = split /\n/, $inside->(q{SELECT instaid.next_ticket('first') FROM generate_series(1, 100)});
is(scalar(@inside), 100, 'a database that allows no connections: an open session gets values');
is($inside->(q{SELECT refills > 2, bypasses > 20 FROM instaid.segments WHERE name = 'first'}), 't|f', '... from segments');
$node->poll_query_until('postgres', $workers, '0') or die;
is($inside->(q{SET instaid.auto_create_tickets = on; SELECT instaid.next_ticket('new')}), 1, '... and creates a ticket on first use');

$_->stop for $node, $authority;
unlike(slurp_file($_->logfile), qr/TRAP:|XX000|PANIC/, 'the server logged no error of its own') for $node, $set;

done_testing();
