# How near IDs are to the clock, on an idle and on an overloaded server, and what WAL
# is written and flushed for them.  This needs settings of the server, several
# sessions at once, and a crash.
# not in: version assert

use strict;
use warnings;

use IPC::Run ();
use List::Util qw(max);
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

# Only what is tested here writes or flushes WAL.
my $node = Clients::server('main', 'autovacuum = off', 'checkpoint_timeout = 1d',
	'wal_writer_delay = 10s',
	'synchronous_commit = off');
$node->safe_psql('postgres', q{
	SELECT instaid.create_shard('insta5', 5);
	CREATE SEQUENCE core_seq;
});

# Idle: the clock read the ID's millisecond during the call.
is($node->safe_psql('postgres', q{
	SELECT count(*) FROM (
		SELECT clock_timestamp() AS before, insta5.next_id() AS id, clock_timestamp() AS after,
			pg_sleep(0.003)
		FROM generate_series(1, 200) OFFSET 0) AS v
	WHERE instaid.extract_timestamp(id) NOT BETWEEN before - interval '1 ms' AND after}),
	0, 'on an idle server, IDs have the time of the clock');

# Sessions take five million IDs at once.  Returns how many ms these were ahead of the clock
# at most; it is read after each thousand IDs.
sub most_ahead
{
	my ($max_drift, $sessions) = @_;
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
				FROM (SELECT instaid.extract_timestamp(
								(SELECT max(id) FROM insta5.next_ids(1000 + 0 * n) AS id))
							 - clock_timestamp() AS drift
					  FROM generate_series(1, 5000 / $sessions) AS n OFFSET 0) AS v},
			'>', \$out[$session]);
	}
	$_->finish or die "psql: $?" for @psql;
	return max(@out);
}

# Overload: the IDs run ahead of the clock by max_drift, plus 64 ms at most.  A busy machine
# may have to try more than once before the sessions are faster than the clock.
for my $case ([ 0, 16 ], [ 200, 8 ], [ 1000, 8 ])
{
	my ($max_drift, $sessions) = @$case;
	my $most = most_ahead($max_drift, $sessions);
	for my $try (2 .. 10)
	{
		last if $most >= $max_drift;
		$most = max($most, most_ahead($max_drift, $sessions));
	}
	cmp_ok($most, '<=', $max_drift + 64,
		"max_drift $max_drift, $sessions sessions: $most ms ahead at most");
	cmp_ok($most, '>=', $max_drift,
		"max_drift $max_drift, $sessions sessions, and there was overload") if $max_drift;
	# let the clock catch up
	$node->poll_query_until('postgres', q{SELECT drift = '0' FROM instaid.shards}) or die;
}

# The warning comes once a minute, not once per call.  The sequence is set ahead, as
# it is after the clock is set back.
my ($stdout, $stderr);
$node->psql('postgres', q{
	SELECT setval('insta5.table_id_seq', ((extract(epoch FROM now()) * 1000)::bigint + 5000) << 10);
	SELECT clock_timestamp() AS before \gset
	SELECT count(insta5.next_id()) FROM generate_series(1, 10240);
	SELECT clock_timestamp() - :'before' >= interval '576 ms';
	SELECT count(*) FROM insta5.next_ids(10240);},
	stdout => \$stdout, stderr => \$stderr);
my @warnings = $stderr =~ /WARNING/g;
is(scalar(@warnings), 1, 'one warning of a sequence that is too far ahead');
like($stderr, qr/WARNING:  IDs of sequence insta5\.table_id_seq are \d+ ms ahead of the clock\n/,
	'one warning of a sequence that is too far ahead, which says how far it is ahead');
is(Clients::hints($stderr),
	q{Either the server's clock was set back, or the sequence was set ahead, or the server has just}
	  . ' restarted after a crash.', 'the warning of a sequence that is too far ahead says why');

# There is no warning of what overload alone can cause, which is max_drift and the
# longest wait.  The sequence is set further ahead than max_drift, by less than two
# such waits, and the call waits once.
$node->psql('postgres', q{
	SET instaid.max_drift = '1 h';
	SELECT setval('insta5.table_id_seq',
		((extract(epoch FROM clock_timestamp()) * 1000)::bigint + 3600000 + 100 << 10) + 1023),
		insta5.next_id();},
	stderr => \$stderr);
is($stderr, '', 'no warning of mere overload');

$node->safe_psql('postgres', q{SELECT setval('insta5.table_id_seq', 1)});

# The pace in the statements above: 64 ms for each of the nine ms that they opened.
like($stdout, qr/^10240\nt\n10240$/m,
	'a sequence that is too far ahead is slowed to 16 IDs per ms');

# WAL: one record for each second of ticks.
my $written = q{
	SELECT pg_current_wal_insert_lsn() AS before \gset
	SELECT count(%s) FROM generate_series(1, 1000000);
	SELECT pg_current_wal_insert_lsn() - :'before';};
sub wal_of
{
	my ($call) = @_;
	my $out = $node->safe_psql('postgres', 'SET client_min_messages = error;'
		. sprintf($written, $call));
	return (split /\n/, $out)[-1];
}
my $ours = wal_of('insta5.next_id()');
my $cores = wal_of("nextval('core_seq')");
cmp_ok($ours, '<', 10_000, "a million IDs write $ours bytes of WAL");
cmp_ok($cores, '>', 1_000_000,
	"a million IDs write $ours bytes of WAL, where nextval writes $cores");

# No session writes and flushes a record only because it uses a sequence for the first
# time.  One record is for a second of IDs, whoever takes them.  The tests
# run with fsync = off, so writes are counted.
my $writes = $node->safe_psql('postgres',
	q{SELECT current_setting('server_version_num')::integer}) < 180000 ?
  'SELECT wal_write FROM pg_stat_wal' : q{SELECT sum(writes) FROM pg_stat_io WHERE object = 'wal'};
$node->safe_psql('postgres', q{
	CREATE SEQUENCE far;
	SELECT instaid.advance_past('far', instaid.min_id(now() + interval '1 h'),
		instaid.default_epoch());
	CHECKPOINT});
{
	my ($name, $call) = ('IDs ahead of the clock', q{instaid.next_id('far', 5)});
	my $file   = $node->basedir . '/connect.sql';
	my $before = $node->safe_psql('postgres', $writes);
	unlink $file;
	append_to_file($file, "SET client_min_messages = error; SET instaid.max_drift = '1d';
		SELECT $call;");
	$node->command_ok([ 'pgbench', '-n', '-C', '-c', '4', '-t', '100', '-f', $file,
		$node->connstr('postgres') ],
		"400 sessions take $name");
	my $flushes = $node->safe_psql('postgres', $writes) - $before;
	cmp_ok($flushes, '<', 40, "400 sessions take $name, with $flushes flushes of WAL");
}

# A transaction that logs has an XID, so that its commit flushes the record and
# waits for synchronous standbys.
is($node->safe_psql('postgres', q{
	CHECKPOINT;
	BEGIN;
	SELECT insta5.next_id() > 0;
	SELECT pg_current_xact_id_if_assigned() IS NOT NULL;}), "t\nt",
	'a transaction that logs a record has an XID');

# IDs ahead of the clock do not come again after a crash, even if their transaction
# did not commit, or if the last record is older than a checkpoint; nor do the values of
# nextval(), once they are committed.  Two million IDs take more than one record, and an hour
# is longer than the restart takes.
$node->safe_psql('postgres', q{
	SELECT instaid.advance_past('insta5.table_id_seq',
		instaid.min_id(now() + interval '1 h'), instaid.default_epoch())});
my $ahead = q{
	SET instaid.max_drift = '1d';
	BEGIN;
	SELECT max((SELECT max(id) FROM insta5.next_ids(1000000 + 0 * n) AS id))
	FROM generate_series(1, 2) AS n;};
for my $case (
	[ 'next_ids', $ahead ],
	[ 'next_id',
		"$ahead SELECT max(id) FROM (SELECT insta5.next_id() AS id
			FROM generate_series(1, 2000000) OFFSET 0) AS v;" ],
	[ 'after a checkpoint', "$ahead COMMIT; CHECKPOINT;
		SELECT max(id) FROM insta5.next_ids(1000) AS id;" ],
	[ 'nextval after a checkpoint', "$ahead COMMIT; CHECKPOINT; SELECT insta5.next_id();
		SET synchronous_commit = on;
		SELECT max(((t >> 10) - 1314220021721 << 23) | (5 << 10) | (t & 1023))
		FROM (SELECT nextval('insta5.table_id_seq') AS t
			FROM generate_series(1, 1000) OFFSET 0) AS v;" ])
{
	my ($name, $statements) = @$case;
	my $last = (split /\n/, $node->safe_psql('postgres', $statements))[-1];
	$node->stop('immediate');
	$node->start;
	my $next = $node->safe_psql('postgres',
		'SET client_min_messages = error; SELECT insta5.next_id()');
	cmp_ok($next, '>', $last, "crash, $name: new IDs are above the old ones");
	my $skipped = ($next >> 23) - ($last >> 23);
	cmp_ok($skipped, '<=', 1001, "crash, $name: new IDs are above the old ones, by $skipped ms");
}

# A sequence that another session sets back in the millisecond of an ID does not
# repeat that ID: the other session waits until the millisecond is over.
$node->safe_psql('postgres', q{
	CREATE EXTENSION dblink;
	SELECT setval('insta5.table_id_seq', 1);});
for my $case ([ 'setval', '' ], [ 'setval and nextval', q{nextval('insta5.table_id_seq'),} ],
	[ 'setval and advance_past',
		q{instaid.advance_past('insta5.table_id_seq', 0, instaid.default_epoch()),} ])
{
	my ($name, $then) = @$case;
	is($node->safe_psql('postgres', qq{
		SELECT dblink_connect('dbname=' || current_database()
			|| ' host=' || split_part(current_setting('unix_socket_directories'), ',', 1)
			|| ' port=' || current_setting('port'));
		SELECT count(id), count(DISTINCT id) FROM (
			SELECT setval('insta5.table_id_seq', 5000), $then insta5.next_id() AS here,
				setval('insta5.table_id_seq', 5000), $then
				(SELECT id
				 FROM dblink('SELECT insta5.next_id() -- ' || n) AS d (id bigint)) AS there
			FROM generate_series(1, 200) AS n OFFSET 0) AS v, unnest(ARRAY[here, there]) AS id;}),
		"OK\n400|400", "$name within a millisecond does not repeat an ID");
}

# Nor does the session that calls advance_past() go back.
is($node->safe_psql('postgres', q{
	SELECT count(*) FROM (
		SELECT id, lag(id) OVER (ORDER BY n) AS before FROM (
			SELECT n, setval('insta5.table_id_seq', 5000),
				instaid.advance_past('insta5.table_id_seq', 0, instaid.default_epoch()),
				insta5.next_id() AS id
			FROM generate_series(1, 200) AS n OFFSET 0) AS v) AS w
	WHERE id <= before}),
	0, 'after setval and advance_past, a session\'s IDs increase');

# No transaction ID can be assigned, since the lock table is full.  The error leaves the
# sequence's page unlocked, also when only a subtransaction ends.
my ($taker, $locker) = map { Clients::session($node) } 1 .. 2;
$taker->('SELECT insta5.next_id()');
$node->safe_psql('postgres', 'CHECKPOINT');
$locker->(q{DO $$
	BEGIN
		FOR n IN 1 .. 1000000000 LOOP
			PERFORM pg_advisory_lock(n);
		END LOOP;
	EXCEPTION WHEN out_of_memory THEN
	END $$});
like($taker->('BEGIN; SAVEPOINT s; SELECT insta5.next_id()'), qr/ERROR:  out of shared memory/,
	'a record that cannot be written');
$locker->('SELECT pg_advisory_unlock_all()');
is($taker->('ROLLBACK TO s; SELECT insta5.next_id() > 0; COMMIT'), 't',
	'a record that cannot be written: does not leave the page locked');

# A transaction creates a sequence and takes values, and its commit is not flushed.  IDs
# ahead of the clock that are taken after the commit do not come again after a crash.  (The
# commit of ALTER SEQUENCE is always flushed, since it drops a file.)
$node->append_conf('postgresql.conf', "wal_level = replica\n");
$node->restart;
for my $session ('this', 'another')
{
	my @statements = (
		"SET instaid.max_drift = '1d'; BEGIN; CREATE SEQUENCE $session;
			SELECT count((SELECT max(id) FROM insta5.next_ids(1000000 + 0 * n, '$session') AS id))
			FROM generate_series(1, 8) AS n; COMMIT;",
		"SET client_min_messages = error; SELECT instaid.next_id('$session', 5)");
	@statements = join '', @statements if $session eq 'this';
	my $last;
	$last = (split /\n/, $node->safe_psql('postgres', $_))[-1] for @statements;
	$node->stop('immediate');
	$node->start;
	my $next = $node->safe_psql('postgres', "SET client_min_messages = error;
		CREATE SEQUENCE IF NOT EXISTS $session; SELECT instaid.next_id('$session', 5)");
	cmp_ok($next, '>', $last,
		'crash after an asynchronous commit of a new sequence: '
		  . "no ID comes again ($session session)");
}

$node->stop;
done_testing();
