# Segments of tickets: what the background worker does, and what happens without it.
# pg_regress cannot preload the library, or crash a server.
#
# The tests wait for conditions, except where a segment, a load or a delay must last for
# a time.  They hold the worker up by stopping its process.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;
use Segments;

my @preload = (q{shared_preload_libraries = 'instaid'});
my $patient = q{SET instaid.segment_timeout = '120s';};

# numbers from first to last
sub series
{
	my ($first, $last, $increment) = @_;
	return join ' ', map { $first + $_ * $increment } 0 .. ($last - $first) / $increment;
}

sub worker
{
	my ($node) = @_;
	return $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'instaid segments' AND datname = 'postgres'});
}

# Make the worker start, and stop its process.
sub stop_worker
{
	my ($node) = @_;
	my $pid = '';
	until ($pid && kill 'STOP', $pid)
	{
		$node->safe_psql('postgres', q{SELECT instaid.drop_ticket(name) FROM instaid.tickets WHERE name = 'wake';
			SELECT instaid.create_ticket('wake', step => 10)});
		take($node, 'wake', 1);
		$pid = worker($node);
	}
	return $pid;
}

my $node = Clients::server('segments', @preload, 'autovacuum = off', 'checkpoint_timeout = 1d');

### The worker takes a segment ahead of demand.

$node->safe_psql('postgres', q{SELECT instaid.create_ticket('ahead', 2, 3, step => 100)});
my @values = take($node, 'ahead', 9);
is(segment($node, 'ahead', 'next_value, last_value, values_left, spare_left, refills, waits'), '29|299|91|0|1|1', 'after nine of a hundred values there is only the first segment');
push @values, take($node, 'ahead', 1);
wait_segment($node, 'ahead', 'spare_left > 0');
is(segment($node, 'ahead', 'next_value, last_value, spare_first, spare_last, spare_left, segment_size'), '32|299|302|599|100|100', 'the tenth value asks for the second segment');
push @values, take($node, 'ahead', 95);
is("@values", series(2, 314, 3), 'values are in order, from one segment to the next');
is(segment($node, 'ahead', 'waits, bypasses, failures'), '1|0|0', '... and only the first call waited');
is($node->safe_psql('postgres', q{SELECT refilled_at <= now() AND refill_duration > '0' FROM instaid.segments WHERE name = 'ahead'}), 't', '... and the view shows the time and duration of the refill');

### The values are the same if the library is not preloaded.

my $plain = Clients::server('plain');
my @statements = (
	q{SELECT instaid.create_ticket('same', 2, 3, 100, step => 10)},
	(q{SELECT string_agg(v::text, ' ') FROM (SELECT instaid.next_ticket('same') AS v FROM generate_series(1, 37)) AS t}) x 3,
	q{SELECT setval('instaid_tickets.same', 5000)},
	(q{SELECT instaid.next_ticket('same')}) x 12,
	q{SELECT instaid.guard_ticket('same', 6000)},
	q{SELECT instaid.restripe_ticket('same', 1, 4, 6000)},
	(q{SELECT instaid.next_ticket('same')}) x 12);
is_deeply([ map { $node->safe_psql('postgres', $_) } @statements ], [ map { $plain->safe_psql('postgres', $_) } @statements ], 'a server without the library preloaded gives the same values');
is($plain->safe_psql('postgres', 'SELECT count(*) FROM instaid.segments'), 0, '... and has no segments');
$plain->stop;

### 200 short connections

my $dir = PostgreSQL::Test::Utils::tempdir;
$node->safe_psql('postgres', q{
	SELECT instaid.create_ticket('short', step => 1000), instaid.create_ticket('hot', step => 10);
	CREATE SEQUENCE cached CACHE 1000;
	CREATE TABLE got (name text, value bigint)});

sub pgbench
{
	my ($sql, @options) = @_;
	append_to_file("$dir/" . @options . '.sql', $sql);
	$node->command_ok([ 'pgbench', '-n', @options, '-f', "$dir/" . @options . '.sql', '-h', $node->host, '-p', $node->port, 'postgres' ], "pgbench @options");
	return;
}
pgbench(q{INSERT INTO got VALUES ('short', instaid.next_ticket('short')), ('cached', nextval('cached'));}, '-C', '-c', 10, '-t', 20);
is($node->safe_psql('postgres', q{SELECT count(DISTINCT value), max(value) FROM got WHERE name = 'short'}), '200|200', '200 short connections take 200 values');
cmp_ok($node->safe_psql('postgres', 'SELECT last_value FROM instaid_tickets.short'), '<=', 2000, '... from two segments at most');
is($node->safe_psql('postgres', 'SELECT last_value FROM cached'), 200 * 1000, '... and nextval() with this CACHE uses 200,000 values');

### 64 clients, with a step of 10

pgbench(q{INSERT INTO got SELECT 'hot', instaid.next_ticket('hot') FROM generate_series(1, 100);}, '-c', 64, '-j', 2, '-t', 100);
is($node->safe_psql('postgres', q{SELECT count(*), count(DISTINCT value) FROM got WHERE name = 'hot'}), '640000|640000', '64 clients take 10,000 values each with a step of 10, and none comes twice');
note('of 640,000 calls ' . segment($node, 'hot', q{format('%s waited, %s went to the sequence; %s refills, the last one of %s', waits, bypasses, refills, segment_size)}));

### The worker is held up for half a second and more.

$node->safe_psql('postgres', q{
	SELECT instaid.create_ticket('held', step => 100000);
	CREATE FUNCTION slowest(ticket text, calls integer, OUT ms numeric) LANGUAGE plpgsql AS $$
	DECLARE started timestamptz;
	BEGIN
		ms := 0;
		FOR i IN 1 .. calls LOOP
			started := clock_timestamp();
			PERFORM instaid.next_ticket(ticket);
			ms := greatest(ms, extract(epoch FROM clock_timestamp() - started) * 1000);
		END LOOP;
	END $$});
take($node, 'held', 1);
my $stopped = stop_worker($node);
my $slowest = $node->safe_psql('postgres', q{SELECT slowest('held', 50000)});
sleep(0.5);
$slowest .= ', ' . $node->safe_psql('postgres', q{SELECT slowest('held', 45000)});
is(segment($node, 'held', 'spare_left, values_left, waits, bypasses'), '0|4999|1|0', 'the refill is held up: no further call waits while the buffer has values');
note("the slowest call of 50000, and of 45000 half a second later: $slowest ms");

# When the buffer is empty, only the first call waits, up to segment_timeout.
$node->safe_psql('postgres', q{SELECT instaid.create_ticket('empty', step => 10)});
@values = split /\n/, $node->safe_psql('postgres', q{SET instaid.segment_timeout = '200ms'; SELECT instaid.next_ticket('empty') FROM generate_series(1, 30)});
is("@values", series(1, 30, 1), 'both segments are empty: values come from the sequence');
is(segment($node, 'empty', 'waits, bypasses, refills'), '1|30|0', '... after a wait of the first call');
kill 'CONT', $stopped;
wait_segment($node, 'empty', 'refills > 0');
wait_segment($node, 'held', 'spare_left > 0');
is(join(' ', take($node, 'empty', 3)), '31 32 33', '... and they go on when the worker is back');

# The worker is terminated during a refill, and another one starts.
$stopped = stop_worker($node);
$node->safe_psql('postgres', q{SELECT instaid.create_ticket('killed', step => 10)});
my $asked = Clients->start($node, "$patient SELECT instaid.next_ticket('killed');");
wait_segment($node, 'killed', 'waits > 0');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($stopped)");
kill 'CONT', $stopped;
wait_segment($node, 'killed', 'refills > 2');
is($asked->stop =~ s/.*terminating connection.*\n//gr, '', 'the worker is terminated: another one serves the client that waits');
is(duplicates(map { split /\n/, slurp_file($_) } $asked->files), 0, '... and no value comes twice');

### Tickets do not wait for each other: if one is locked, the other goes on.

$node->safe_psql('postgres', q{SELECT instaid.create_ticket('locked', step => 10), instaid.create_ticket('free', step => 10)});
my ($taker, $alterer) = (Clients::session($node), Clients::session($node));
$taker->(q{BEGIN; SET instaid.segment_timeout = '100ms'; SELECT instaid.next_ticket('locked')});
my $alter = Clients->start($node, q{ALTER SEQUENCE instaid_tickets.locked NO CYCLE;});
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND relation = 'instaid_tickets.locked'::regclass}) or die;
is(duplicates(split /\n/, $taker->(q{SELECT instaid.next_ticket('locked') FROM generate_series(1, 100)})), 0, 'the sequence of a ticket is locked: its values come from the sequence');
is(join(' ', take($node, 'free', 1000)), series(1, 1000, 1), '... and another ticket goes on');
cmp_ok(segment($node, 'locked', 'bypasses'), '>', 0, '... calls of the first have bypassed its segments');
is(segment($node, 'free', 'bypasses, failures'), '0|0', '... and no call of the other');
$taker->('COMMIT');
$alter->stop;

### The step follows demand.

# Use up the segment that is in use, and a tenth of the next one.  Return the length of
# the segment that follows.
sub use_up
{
	my ($name) = @_;
	wait_segment($node, $name, 'spare_left > 0');
	my ($left, $spare, $refills) = split /\|/, segment($node, $name, 'values_left, spare_left, refills');
	take($node, $name, $left);
	take($node, $name, ($spare + 9) / 10);
	wait_segment($node, $name, "refills > $refills");
	return segment($node, $name, 'spare_left');
}

sub set_duration
{
	my ($duration) = @_;
	$node->append_conf('postgresql.conf', "instaid.segment_target_duration = '$duration'\n");
	$node->reload;
	# a new worker reads the setting
	$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'instaid segments'});
	$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'instaid segments'}) or die;
	return;
}

set_duration('1h');
$node->safe_psql('postgres', q{SELECT instaid.create_ticket('pace', 3, 7, step => 10), instaid.create_ticket('long', step => 300000)});
take($node, $_, 1) for 'pace', 'long';
is(join(' ', map { use_up('pace') } 1 .. 4), '20 40 80 160', 'a segment that does not last for the target duration is followed by a longer one');
set_duration('4s');
wait_segment($node, 'pace', 'spare_left > 0');
sleep(5);
is(use_up('pace'), 160, '... one that lasts for up to twice that duration, by one of the same length');
set_duration('1ms');
is(join(' ', map { use_up('pace') } 1 .. 6), '80 40 20 10 10 10', '... one that lasts longer, by a shorter one; none is shorter than the step');
is($node->safe_psql('postgres', q{SELECT cache_size, increment_by FROM pg_sequences WHERE sequencename = 'pace'}), '10|7', '... and the sequence keeps its CACHE');
set_duration('1h');
take($node, 'long', 30000);
is(join(' ', map { use_up('long') } 1 .. 3), '600000 900000 900000', 'no segment is longer than a million');
set_duration('15min');

### A change of the sequence takes effect at once.

my $taken;
$node->safe_psql('postgres', q{SELECT instaid.create_ticket('set', step => 100)});
is(join(' ', take($node, 'set', 3)), '1 2 3', 'before setval()');
for my $case ([ 'setval(%s, 5000)', 5001 ], [ 'setval(%s, 10)', 11 ], [ 'setval(%s, 500, false)', 500 ])
{
	wait_segment($node, 'set', 'values_left > 0');
	my ($call, $value) = @$case;
	$node->safe_psql('postgres', 'SELECT ' . sprintf $call, q{'instaid_tickets.set'});
	is(join(' ', take($node, 'set', 3)), series($value, $value + 2, 1), "after $call");
}
$node->safe_psql('postgres', q{ALTER SEQUENCE instaid_tickets.set RESTART 7000});
is(join(' ', take($node, 'set', 3)), '7000 7001 7002', 'after ALTER SEQUENCE ... RESTART');
is($node->safe_psql('postgres', q{BEGIN; ALTER SEQUENCE instaid_tickets.set RESTART 9000;
	SELECT instaid.next_ticket('set'), instaid.next_ticket('set'); ROLLBACK; SELECT instaid.next_ticket('set')}), "9000|9001\n7003", 'in a transaction that is rolled back');
is($node->safe_psql('postgres', q{SELECT first >= 7100 FROM instaid.lease_ticket('set', 5); SELECT instaid.next_ticket('set')}), "t\n7004", 'lease_ticket() does not use the buffer');
my $drawn = $node->safe_psql('postgres', q{SELECT nextval('instaid_tickets.set')});
cmp_ok((take($node, 'set', 1))[0], '>=', $drawn + 100, 'after nextval(), the ticket goes on above the values that nextval() reserved');
# a setval() takes effect even if the sequence has the same value afterwards
take($node, 'set', 20);
wait_segment($node, 'set', 'spare_left > 0');
$taken = $node->safe_psql('postgres', q{SELECT last_value FROM instaid_tickets.set});
$node->safe_psql('postgres', qq{SELECT setval('instaid_tickets.set', $taken - 100); SELECT nextval('instaid_tickets.set')});
is(join(' ', take($node, 'set', 2)), join(' ', $taken + 1, $taken + 2), 'after setval() and nextval(), which leave the same value');
take($node, 'set', 20);
wait_segment($node, 'set', 'spare_left > 0');
$taken = $node->safe_psql('postgres', q{SELECT last_value FROM instaid_tickets.set});
$node->safe_psql('postgres', qq{SELECT setval('instaid_tickets.set', $taken, false)});
is(join(' ', take($node, 'set', 2)), join(' ', $taken, $taken + 1), 'after setval() to the value that it has');
is($node->safe_psql('postgres', q{BEGIN; SELECT instaid.create_ticket('undone', step => 5), instaid.next_ticket('undone'), instaid.next_ticket('undone'); ROLLBACK;
	SELECT instaid.create_ticket('undone', step => 5), instaid.next_ticket('undone')}), "instaid_tickets.undone|1|2\ninstaid_tickets.undone|1", 'a ticket whose creation was rolled back is created again');
$node->safe_psql('postgres', q{SELECT instaid.drop_ticket('undone')});
is($node->safe_psql('postgres', q{SELECT instaid.create_ticket('undone', step => 5), instaid.next_ticket('undone')}), 'instaid_tickets.undone|1', '... and so is a ticket that was dropped');
$node->safe_psql('postgres', q{SELECT instaid.create_ticket('end', step => 10, data_type => 'smallint'); SELECT setval('instaid_tickets.end', 32750)});
is(join(' ', take($node, 'end', 17)), series(32751, 32767, 1), 'at the end of the type, the segment is shorter');
my ($ret, $stdout, $stderr) = $node->psql('postgres', q{SELECT instaid.next_ticket('end')});
like($stderr, qr/ticket "end" is used up/, '... and then the ticket is used up');

# rights on the view
$node->safe_psql('postgres', q{CREATE ROLE app; CREATE ROLE stranger; GRANT USAGE ON SEQUENCE instaid_tickets.set TO app});
is($node->safe_psql('postgres', q{SET ROLE app; SELECT name FROM instaid.segments; SET ROLE stranger; SELECT name FROM instaid.segments; SELECT count(*) FROM instaid._segment_state()}), "set\n0", 'a role sees the segments of the tickets that it may use');

# a database that a worker was connected to can be dropped
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', q{CREATE EXTENSION instaid; SELECT instaid.create_ticket('ahead', step => 10), instaid.next_ticket('ahead')});
is($node->safe_psql('other', q{SELECT instaid.next_ticket('ahead')}), 2, 'another database has tickets of its own');
$node->safe_psql('postgres', 'DROP DATABASE other');

### Crashes

@values = take($node, 'ahead', 5);
wait_segment($node, 'ahead', 'spare_left > 0');
$taken = $node->safe_psql('postgres', q{SELECT last_value FROM instaid_tickets.ahead});
$node->stop('immediate');
$node->start;
my ($next) = take($node, 'ahead', 1);
cmp_ok($next, '>', $taken, 'after a crash, the ticket goes on above the buffered values');
cmp_ok($next, '<=', $taken + 33 * 3, '... and skips 32 values at most');

$node->safe_psql('postgres', q{SELECT instaid.create_ticket('busy', 2, 3, 1000000000000000000, step => 50)});
my $last = 0;
for my $round (1 .. 4)
{
	my $read = "$patient SELECT instaid.next_ticket('busy');";
	my $clients = Clients->start($node, $read, "BEGIN;" . (" $read" x 500), "BEGIN; $read ROLLBACK;", $read);
	my $aside = Clients->start($node, $round % 2 ? 'CHECKPOINT;' : ());
	sleep(0.3 + rand(0.4));
	$node->stop('immediate');
	my $problems = join '', map { $_->finish } $clients, $aside;
	$node->start;
	my $sum = Clients::summary($clients->files);
	$problems .= "$sum->{duplicates} duplicates\n" if $sum->{duplicates};
	$problems .= "$sum->{first} came after $last\n" if $sum->{first} <= $last;
	$last = $sum->{last};
	is($problems, '', "crash $round under load: none of $sum->{count} values comes twice, and all are above those before");
}

# no worker is free
$node->append_conf('postgresql.conf', "max_worker_processes = 0\n");
$node->restart;
($next) = take($node, 'ahead', 1);
is(join(' ', take($node, 'ahead', 5)), series($next + 3, $next + 15, 3), 'without a free worker, values come from the sequence');
is(segment($node, 'ahead', 'waits, bypasses, failure'), '0|6|no background worker is free; max_worker_processes can be increased', '... and no call waits');
like(slurp_file($node->logfile), qr/could not refill ticket "ahead"\n.*no background worker is free.*\n.*HINT:  The next attempt is made when a call needs a value; instaid.segments shows it\./, '... and the log says when there is another attempt');

# there is a buffer for one ticket only; the buffer of a dropped ticket is used again
$node->append_conf('postgresql.conf', "max_worker_processes = 8\ninstaid.max_buffered_tickets = 1\n");
$node->restart;
take($node, 'ahead', 1);
is(join(' ', take($node, 'set', 3)) =~ s/(\d+) (\d+) (\d+)/$2 == $1 + 1 && $3 == $2 + 1/er, 1, 'a ticket without a buffer takes its values one by one');
is($node->safe_psql('postgres', 'SELECT name FROM instaid.segments'), 'ahead', '... and has no segments');
$node->safe_psql('postgres', q{SELECT instaid.drop_ticket('ahead')});
take($node, 'set', 1);
is($node->safe_psql('postgres', 'SELECT name FROM instaid.segments'), 'set', '... until the other ticket is dropped');
$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP:|XX000|PANIC/, 'the server logged no error of its own');

### A segment is not used before a synchronous standby has it.

my $primary = Clients::server('primary', @preload, 'wal_level = replica', 'max_wal_senders = 5');
$primary->safe_psql('postgres', q{SELECT instaid.create_ticket('late', step => 100)});
my $local = Clients::session($primary);
$local->(q{SET synchronous_commit = local; SET instaid.segment_timeout = '50ms'});
$primary->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'\n");
$primary->reload;
$local->(q{SELECT instaid.next_ticket('late')}) until worker($primary);
my $waits = q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'instaid segments' AND wait_event = 'SyncRep'};
$primary->poll_query_until('postgres', $waits, '1') or die 'the worker does not wait';
$local->('SELECT pg_cancel_backend(' . worker($primary) . ')');
is($primary->safe_psql('postgres', $waits), 1, 'the standby is away: the worker waits, even if it is cancelled');
$stopped = worker($primary);
$local->("SELECT pg_terminate_backend($stopped)");
$primary->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $stopped") or die;
is(segment($primary, 'late', 'refills, values_left, spare_left'), '0|0|0', '... and is terminated without a segment');
# setval() sets the sequence while the next worker waits
$local->(q{SELECT instaid.next_ticket('late')}) until worker($primary);
$primary->poll_query_until('postgres', $waits, '1') or die 'the worker does not wait';
is($local->(q{SELECT setval('instaid_tickets.late', 5000); SELECT instaid.next_ticket('late')}), "5000\n5001", '... calls take values from the sequence, as setval() has left it');
$primary->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
$primary->reload;
wait_segment($primary, 'late', 'refills > 0');
cmp_ok((take($primary, 'late', 1))[0], '>', 5001, '... and the segment that was taken before setval() is not used');

### A standby is promoted.

$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;
$primary->safe_psql('postgres', q{SELECT instaid.create_ticket('photos', step => 100)});
@values = take($primary, 'photos', 50);
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
$primary->stop('immediate');
$standby->promote;
cmp_ok((take($standby, 'photos', 1))[0], '>', $values[-1], 'a standby goes on above the values of its primary');
$standby->stop;

done_testing();
