# The server's clock is moved while clients take IDs.  No ID may come twice,
# the IDs of each client must increase, and no client may wait long.  A busy machine can
# delay a client as well, so a wait counts if it comes in each of three trials.
#
# not in: version assert

use strict;
use warnings;

use List::Util qw(max);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;
use Clock;
use Docs;
use SqlEdition;

my $clock = Clock->new;
my $node  = Clients::server('main', 'autovacuum = off', 'checkpoint_timeout = 1d');
$node->stop;
$clock->start($node);
$node->safe_psql('postgres', q{
	SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
	CREATE SEQUENCE core_seq;
});

$clock->set(-1000);
cmp_ok(abs($clock->offset($node) + 1000), '<', 100, 'the clock of the server moves');

# The wait for a clock that was set back has a name.
$node->safe_psql('postgres', 'SELECT insta5.next_id()');
$clock->set(-3_600_000);
my $slow = Clients->start($node, 'SELECT insta5.next_id();');
my $wait_event = $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000 ?
  'InstaidClock' : 'Extension';
$node->poll_query_until('postgres', qq{SELECT count(*) > 0 FROM pg_stat_activity
	WHERE wait_event = '$wait_event' AND query ~ 'next_id' AND pid <> pg_backend_pid()})
  or die 'no session waits for the clock';
is($slow->stop, '', 'a session waits for a clock that was set back, and goes on');
$clock->set(-1000);

# Each case begins two hours after the case before, since the shard may still be ahead
# of the clock from that case.
my $base = 0;

my $row      = 'INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;';
my $timed    = '\timing on \\\\ SELECT insta5.next_id();';
my $control  = q{\timing on \\\\ SELECT nextval('core_seq');};
my $overload = 'SELECT max(id) FROM insta5.next_ids(20000) AS id;';

# Remove the times that psql's \timing printed from a file, and return the longest, in ms.
sub slowest
{
	my ($file) = @_;
	my @lines = split /^/, slurp_file($file);
	open my $rest, '>', $file or die $!;
	print $rest grep { !/^Time/ } @lines;
	close $rest or die $!;
	return max(0, map { /^Time: ([\d.]+) ms/ } @lines);
}

# Move the clock to these offsets in turn, while clients take IDs.  Add what is found to
# %$found, and return how much longer than nextval() the slowest ID took, in ms: the time of
# nextval() shows how long this machine delays any statement.
sub move
{
	my ($found, $offsets, @more) = @_;
	$base += 7200;
	$clock->set($base);
	my $clients = Clients->start($node, $timed, $control,
		$row, $row, "BEGIN; $row ROLLBACK;", 'COPY (SELECT insta5.next_ids(100)) TO STDOUT;',
		@more);
	for my $offset (@$offsets)
	{
		$clock->set($base + $offset);
		sleep(@$offsets > 3 ? 0.1 : 0.5);
	}
	my ($ours, $cores, @rest) = $clients->files;
	# the time of a call that waits comes when its wait is over
	my ($size, $tenths) = (-s $ours, 0);
	sleep(0.1) while -s $ours == $size && $tenths++ < 100;
	$found->{errors} .= $clients->stop;
	my $longer = max(slowest($ours), 100 * $tenths) - slowest($cores);
	my $sum = Clients::summary($ours, @rest);
	$found->{$_} += $sum->{$_} for 'count', 'duplicates';
	$found->{unordered} += grep { !Clients::in_order($_) } $ours, @rest;
	return $longer;
}

for my $case (
	# name, offsets to which the clock is set in turn, in seconds, more load
	[ 'back 5 ms', [ 0, -0.005 ] ],
	[ 'back 3 s', [ 0, -3 ] ],
	[ 'back 1 h', [ 0, -3600 ] ],
	[ 'forward 1 h and back', [ 0, 3600, 0 ] ],
	[ 'back and forth', [ 0, (-0.005, 0.005, -0.1, 0) x 5 ] ],
	[ 'back 3 s, overload', [ 0, -3 ], $overload, $overload ])
{
	my ($name, @moves) = @$case;
	my %found = (errors => '');
	my $longer;
	for my $trial (1 .. 3)
	{
		$longer = move(\%found, @moves);
		last if $longer < 200;
	}
	is($found{errors}, '', "$name: no errors");
	cmp_ok($found{count}, '>', 0, "$name: there are IDs");
	is($found{duplicates}, 0, "$name: none of $found{count} IDs came twice");
	is($found{unordered}, 0, "$name: the IDs of each client increase");
	cmp_ok($longer, '<', 200, "$name: no ID took longer than nextval() by $longer ms");
}

# The warning comes when the clock was set back, and again after a minute.
$base += 7200;
$clock->set($base);
my @steps = (
	# offset of the clock, number of warnings
	[ 0, 0, 'no warning while the clock goes on' ],
	[ -3600, 1, 'a warning when the clock is set back' ],
	[ -3600 + 50, 0, 'no second warning within a minute' ],
	[ -3600 + 70, 1, 'a second warning after a minute' ]);
my ($stdout, $stderr);
$node->psql('postgres',
	join('', map { '\! ' . $clock->command($base + $_->[0])
				. "\n\\warn step\n"
				. "SELECT count(insta5.next_id()) FROM generate_series(1, 3000);\n" } @steps),
	stdout => \$stdout, stderr => \$stderr);
my (undef, @heard) = split /^step\n/m, $stderr;
for my $i (0 .. $#steps)
{
	my ($offset, $expected, $name) = @{ $steps[$i] };
	my $warning = qr/WARNING:  IDs of sequence \w+\.table_id_seq are (\d+) ms ahead of the clock$/m;
	my @drifts = $heard[$i] =~ /$warning/g;
	is(scalar(@drifts), $expected, $name);
	cmp_ok(abs($_ + 1000 * $offset), '<', 5000, "$name: with the drift, $_ ms") for @drifts;
}

# The clock is set back while the server is down after a crash: no ID of a committed
# row comes again.
for my $offset (-0.005, -3, -3600)
{
	$base += 7200;
	$clock->set($base);
	my $clients = Clients->start($node, ($row) x 4, "BEGIN; $row ROLLBACK;",
		'SELECT insta5.next_id();');
	sleep(0.5);
	$node->stop('immediate');
	$clients->finish;
	$clock->set($base + $offset);
	$clock->start($node);
	my $sum = Clients::summary(($clients->files)[ 0 .. 3 ]);
	my $next = $node->safe_psql('postgres', "SET client_min_messages = error; $row");
	cmp_ok($sum->{count}, '>', 0, "crash, and $offset s: there are committed rows");
	cmp_ok($next, '>', $sum->{last},
		"crash, and $offset s: new IDs are above those of $sum->{count} committed rows");
}

# A committed advance_past() holds after a crash, whatever the clock reads, even if the
# WAL record that covers it belongs to a transaction that is still open.
$base += 7200;
$clock->set($base);
$node->safe_psql('postgres', q{ALTER SYSTEM SET wal_writer_delay = '10s'; SELECT pg_reload_conf();
	CREATE SEQUENCE s});
# a session writes a record for the first ID that it takes from a sequence
my $committed = Clients::session($node);
$committed->(q{SELECT instaid.next_id('s', 0)});
my $open = Clients::session($node);
$open->(q{CHECKPOINT; BEGIN; SELECT instaid.next_id('s', 0)});
my $past = $committed->(q{
	SELECT instaid.max_id(clock_timestamp() + interval '400 ms') AS id,
		pg_current_wal_insert_lsn() AS written \gset
	SELECT instaid.advance_past('s', :id, instaid.default_epoch()) \g /dev/null
	SELECT pg_current_wal_flush_lsn() >= :'written', :id});
$node->stop('immediate');
$clock->set($base - 3600);
$clock->start($node);
like($past, qr/^t\|\d+$/, 'advance_past() flushes the record of another transaction');
my $id = (split /\|/, $past)[1];
cmp_ok($node->safe_psql('postgres',
	q{SET client_min_messages = error; SELECT instaid.next_id('s', 0)}), '>', $id,
	'advance_past() flushes the record of another transaction, so that a crash does not undo it');
$node->safe_psql('postgres', q{ALTER SYSTEM RESET wal_writer_delay; SELECT pg_reload_conf()});

# The clock was wrong by ten years.  The statements that bring the shard back are those
# of the documentation.
my ($procedure) = section_blocks('docs/operations.md', 'The clock was wrong');
ok($procedure, 'the documentation has statements for it');
$base += 7200;
$clock->set($base);
$node->safe_psql('postgres', q{
	TRUNCATE insta5.photos;
	CREATE SEQUENCE insta5.likes_id_seq;
	CREATE TABLE insta5.likes (id bigint PRIMARY KEY DEFAULT insta5.next_id('insta5.likes_id_seq'),
		photo_id bigint REFERENCES insta5.photos ON UPDATE CASCADE);
	INSERT INTO insta5.photos (n) VALUES (0);});
my $right = $node->safe_psql('postgres', 'SELECT id FROM insta5.photos');
$clock->set($base + 10 * 365.25 * 86400);
$node->safe_psql('postgres', q{
	INSERT INTO insta5.photos (n) SELECT generate_series(1, 2000);
	INSERT INTO insta5.likes (photo_id) SELECT id FROM insta5.photos ORDER BY n DESC;});
$clock->set($base + 60);
$node->safe_psql('postgres',
	'SET client_min_messages = error; INSERT INTO insta5.photos (n) VALUES (2001)');
my $years = $node->safe_psql('postgres',
	q{SELECT extract(year FROM justify_interval(drift)) FROM instaid.shards});
cmp_ok($years, '>=', 9, "a shard is $years years ahead");
$node->safe_psql('postgres', $procedure->{text});
is($node->safe_psql('postgres', q{
	SELECT drift,
		instaid.extract_timestamp(instaid._last_id('insta5.likes_id_seq', 5)) <= clock_timestamp()
		FROM instaid.shards}),
	'00:00:00|t', "a shard is $years years ahead, and brought back");
is($node->safe_psql('postgres', q{SELECT id FROM insta5.photos WHERE n = 0}), $right,
	'rows from before have kept their IDs');
is($node->safe_psql('postgres', q{
	SELECT count(*), count(DISTINCT id),
		bool_and(instaid.extract_timestamp(id) <= clock_timestamp()),
		array_agg(n ORDER BY id) = array_agg(n ORDER BY n) FROM insta5.photos}),
	'2002|2002|t|t', 'the other rows have IDs of the present, in the same order');
is($node->safe_psql('postgres', q{
	SELECT count(*), bool_and(instaid.extract_timestamp(l.id) <= clock_timestamp()),
		array_agg(n ORDER BY l.id) = array_agg(n ORDER BY n DESC)
	FROM insta5.likes AS l JOIN insta5.photos AS p ON p.id = photo_id}),
	'2001|t|t', 'the other rows have IDs of the present, in the same order, as do rows of other'
		  . ' tables, and references to them');
is($node->safe_psql('postgres',
	q{INSERT INTO insta5.photos (n) VALUES (2002)
		RETURNING id > (SELECT max(id) FROM insta5.photos)}),
	't', 'the other rows have IDs of the present, in the same order, and new IDs are above them');

# The clock was seconds ahead, and reaches wrong IDs soon.  The same statements leave no row above
# new IDs, in either edition.
my $plain = SqlEdition::server('plain', $clock, 'autovacuum = off');
SqlEdition::install($plain, 'm');
for my $edition (
	[ 'extension', $node, 'postgres', 'CREATE SEQUENCE insta5.likes_id_seq' ],
	[ 'SQL edition', $plain, 'm', q{SELECT instaid.add_sequence('insta5', 'likes_id_seq')},
		extra_params => [ '-U', 'dba' ] ])
{
	my ($name, $server, $database, $sequence, @role) = @$edition;
	my $query = sub { return $server->safe_psql($database, $_[0], @role) };
	$base += 3600;
	$clock->set($base + 50);
	$query->(qq{
		SET client_min_messages = error;
		DROP TABLE IF EXISTS insta5.photos, insta5.likes;
		DROP SEQUENCE IF EXISTS insta5.likes_id_seq;
		$sequence;
		CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
		CREATE TABLE insta5.likes (photo_id bigint REFERENCES insta5.photos ON UPDATE CASCADE,
			id bigint PRIMARY KEY DEFAULT insta5.next_id('insta5.likes_id_seq'::regclass));
		-- as if the clock had come to be wrong little by little
		INSERT INTO insta5.photos SELECT instaid.make_id(clock_timestamp()
			- n * interval '50 ms', 5, 1000) FROM generate_series(1, 1200) AS n;
		INSERT INTO insta5.photos (n) SELECT generate_series(1, 2000);
		INSERT INTO insta5.likes (photo_id) SELECT id FROM insta5.photos;});
	$clock->set($base);
	$query->($procedure->{text});
	is($query->(q{
		SELECT (SELECT max(id) < insta5.next_id() FROM insta5.photos),
			(SELECT max(id) < insta5.next_id('insta5.likes_id_seq'::regclass) FROM insta5.likes),
			(SELECT count(*) FROM insta5.photos JOIN insta5.likes ON photo_id = photos.id)}),
		't|t|3200', "$name: no row is above new IDs");
}

$node->stop;
$plain->stop;
unlike(slurp_file($node->logfile), qr/TRAP:|XX000/, 'the server logged no error of its own');
done_testing();
