# How near IDs are to the clock, idle and overloaded, and what WAL is written
# and flushed for them.  This needs settings of the server's, several sessions
# at once, and a crash.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
# Nothing but what is tested here writes or flushes WAL.
$node->append_conf('postgresql.conf', q{
	autovacuum = off
	checkpoint_timeout = '1d'
	wal_writer_delay = '10s'
	synchronous_commit = off
});
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION instaid;
	SELECT instaid.create_shard('insta5', 5);
	CREATE SEQUENCE core_seq;
});

# Idle: the ID's millisecond is one that the clock read during the call.
is($node->safe_psql('postgres', q{
	SELECT count(*) FROM (
		SELECT clock_timestamp() AS before, insta5.next_id() AS id, clock_timestamp() AS after, pg_sleep(0.003)
		FROM generate_series(1, 200) OFFSET 0) AS v
	WHERE instaid.extract_timestamp(id) NOT BETWEEN before - interval '1 ms' AND after}),
	0, 'idle, IDs have the time of the clock');

# Overload: the IDs run ahead by max_drift, plus 64 ms at most.  The clock is
# read after each thousand IDs.
for my $case ([ 0, 16 ], [ 200, 4 ], [ 1000, 2 ])
{
	my ($max_drift, $sessions) = @$case;
	my (@psql, @out);
	for my $session (0 .. $sessions - 1)
	{
		$out[$session] = '';
		push @psql, IPC::Run::start(
			[ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres') ],
			'<', \qq{
				SET client_min_messages = error;
				SET instaid.max_drift = $max_drift;
				SELECT ceil(extract(epoch FROM max(drift)) * 1000)
				FROM (SELECT instaid.extract_timestamp((SELECT max(id) FROM insta5.next_ids(1000 + 0 * n) AS id))
							 - clock_timestamp() AS drift
					  FROM generate_series(1, 5000 / $sessions) AS n OFFSET 0) AS v},
			'>', \$out[$session]);
	}
	$_->finish or die "psql: $?" for @psql;
	my ($most) = sort { $b <=> $a } map { $_ + 0 } @out;
	cmp_ok($most, '<=', $max_drift + 64, "max_drift $max_drift, $sessions sessions: $most ms ahead at most");
	cmp_ok($most, '>=', $max_drift, '... and there was overload') if $max_drift;
	# let the clock catch up
	$node->poll_query_until('postgres', q{SELECT drift = '0' FROM instaid.shards}) or die;
}

# What sessions reserve with CACHE and drop does not drive the sequence ahead.
$node->safe_psql('postgres', 'ALTER SEQUENCE insta5.table_id_seq CACHE 1000');
append_to_file($node->basedir . '/single.sql', 'SELECT insta5.next_id();');
$node->command_ok([ 'pgbench', '-n', '-c', '8', '-T', '3', '-f', $node->basedir . '/single.sql', $node->connstr('postgres') ],
	'8 sessions take single IDs with CACHE 1000');
my $drift = $node->safe_psql('postgres', q{SELECT extract(epoch FROM drift) * 1000 FROM instaid.shards});
cmp_ok($drift, '<', 100, "... and the sequence is $drift ms ahead");
$node->safe_psql('postgres', 'ALTER SEQUENCE insta5.table_id_seq CACHE 1');

# The warning: once a minute, not once a call.  The sequence is set ahead, as a
# clock that is set back would leave it.
my ($stdout, $stderr);
$node->psql('postgres', q{
	SELECT setval('insta5.table_id_seq', ((extract(epoch FROM now()) * 1000)::bigint + 5000) << 10);
	SELECT clock_timestamp() AS before \gset
	SELECT count(insta5.next_id()) FROM generate_series(1, 10240);
	SELECT clock_timestamp() - :'before' >= interval '576 ms';
	SELECT count(*) FROM insta5.next_ids(10240);},
	stdout => \$stdout, stderr => \$stderr);
my @warnings = $stderr =~ /WARNING/g;
is(scalar(@warnings), 1, 'a sequence that is too far ahead is told of once');
like($stderr, qr/WARNING:  IDs of sequence "table_id_seq" are \d+ ms ahead of the clock\nDETAIL:.*max_drift.*\nHINT:.*clock/, '... with how far and why');

# What overload can bring about is not told of: max_drift and the longest wait.
# The sequence is set further ahead than max_drift, by less than two such waits,
# and the call waits once.
$node->psql('postgres', q{
	SET instaid.max_drift = '1 h';
	SELECT setval('insta5.table_id_seq', ((extract(epoch FROM clock_timestamp()) * 1000)::bigint + 3600000 + 100 << 10) + 1023), insta5.next_id();},
	stderr => \$stderr);
is($stderr, '', 'overload is no reason for a warning');

$node->safe_psql('postgres', q{SELECT setval('insta5.table_id_seq', 1)});

# The pace is kept there: 64 ms for each of the nine ms that were opened.
like($stdout, qr/^10240\nt\n10240$/m, '... and slowed to 16 IDs a ms');

# WAL: a record for each second of ticks.
my $written = q{
	SELECT pg_current_wal_insert_lsn() AS before \gset
	SELECT count(%s) FROM generate_series(1, 1000000);
	SELECT pg_current_wal_insert_lsn() - :'before';};
sub wal_of
{
	my ($call) = @_;
	my $out = $node->safe_psql('postgres', 'SET client_min_messages = error;' . sprintf($written, $call));
	return (split /\n/, $out)[-1];
}
my $ours = wal_of('insta5.next_id()');
my $cores = wal_of("nextval('core_seq')");
cmp_ok($ours, '<', 10_000, "a million IDs write $ours bytes of WAL");
cmp_ok($cores, '>', 1_000_000, "... where nextval writes $cores");

# A transaction that logs has an XID, so that its commit flushes the record and
# waits for synchronous standbys.
is($node->safe_psql('postgres', q{
	CHECKPOINT;
	BEGIN;
	SELECT insta5.next_id() > 0;
	SELECT pg_current_xact_id_if_assigned() IS NOT NULL;}), "t\nt", 'a transaction that logs a record has an XID');

# What is ahead of the clock is not given again after a crash: neither where
# the transaction that has it did not commit, nor where the last record is from
# before a checkpoint.  With max_drift = 1h the IDs run ahead by seconds, more
# than the restart takes.
my $ahead = q{
	SET instaid.max_drift = '1h';
	BEGIN;
	SELECT max((SELECT max(id) FROM insta5.next_ids(1000000 + 0 * n) AS id)) FROM generate_series(1, 8) AS n;};
for my $case (
	[ 'next_ids', $ahead ],
	[ 'next_id', "$ahead SELECT max(id) FROM (SELECT insta5.next_id() AS id FROM generate_series(1, 2000000) OFFSET 0) AS v;" ],
	[ 'after a checkpoint', "$ahead COMMIT; CHECKPOINT; SELECT max(id) FROM insta5.next_ids(1000) AS id;" ],
	[ 'nextval after a checkpoint', "$ahead COMMIT; CHECKPOINT; SELECT insta5.next_id();
		SELECT max(((t >> 10) - 1314220021721 << 23) | (5 << 10) | (t & 1023)) FROM (SELECT nextval('insta5.table_id_seq') AS t FROM generate_series(1, 1000) OFFSET 0) AS v;" ])
{
	my ($name, $statements) = @$case;
	my $last = (split /\n/, $node->safe_psql('postgres', $statements))[-1];
	$node->stop('immediate');
	$node->start;
	my $next = $node->safe_psql('postgres', 'SET client_min_messages = error; SELECT insta5.next_id()');
	cmp_ok($next, '>', $last, "crash, $name: IDs go on above those that were given");
	diag("$name: the restart outlasted the lead, so the clock alone would do")
	  if $node->safe_psql('postgres', "SELECT instaid.extract_timestamp($last) < clock_timestamp()") eq 't';
	my $skipped = ($next >> 23) - ($last >> 23);
	cmp_ok($skipped, '<=', 2000, "... by $skipped ms");
}

# Set back by another session in the millisecond in which it gave an ID, a
# sequence does not give it again: the other session waits that ms out.
$node->safe_psql('postgres', q{
	CREATE EXTENSION dblink;
	SELECT setval('insta5.table_id_seq', 1);});
for my $case ([ 'setval', '' ], [ 'setval and nextval', q{nextval('insta5.table_id_seq'),} ])
{
	my ($name, $nextval) = @$case;
	is($node->safe_psql('postgres', qq{
		SELECT dblink_connect('dbname=' || current_database() || ' host=' || split_part(current_setting('unix_socket_directories'), ',', 1)
			|| ' port=' || current_setting('port'));
		SELECT count(*), count(*) FILTER (WHERE here = there) FROM (
			SELECT setval('insta5.table_id_seq', 5000), $nextval insta5.next_id() AS here,
				setval('insta5.table_id_seq', 5000), $nextval
				(SELECT id + 0 * n FROM dblink('SELECT insta5.next_id()') AS d (id bigint)) AS there
			FROM generate_series(1, 200) AS n OFFSET 0) AS v;}),
		"OK\n200|0", "$name within a millisecond does not repeat an ID");
}

$node->stop;
done_testing();
