# Tickets that have their values from other servers, their authorities.  These are killed
# and restarted, hang, count alike, are set back, or send what no server should.  pg_regress
# has one server, and cannot preload the library.
# takes 60 s

use strict;
use warnings;

use File::Spec;
use IO::Socket::INET;
use IPC::Run ();
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use Clients;
use Sources;

@Clients::extensions = ('instaid_tickets');

my @quiet = ('autovacuum = off', 'checkpoint_timeout = 1d');
my $dir = PostgreSQL::Test::Utils::tempdir;
my ($ret, $stdout, $stderr);

my ($odd, $even) =
  map { Clients::server($_, @quiet, 'wal_level = replica', 'max_wal_senders = 1') } 'odd', 'even';
# a role that needs a password
$odd->safe_psql('postgres', q{CREATE ROLE leaser LOGIN PASSWORD 'secret'});
{
	my $hba = slurp_file($odd->data_dir . '/pg_hba.conf');
	unlink $odd->data_dir . '/pg_hba.conf';
	$odd->append_conf('pg_hba.conf', "local all leaser scram-sha-256\n$hba");
	$odd->reload;
}
my ($one, $two) = map {
	Clients::server(
		$_, @quiet,
		q{shared_preload_libraries = 'instaid_tickets'},
		'wal_level = replica',
		'max_wal_senders = 2')
} 'one', 'two';

# Run a statement in a session of its own, and do not wait for it.
sub begin
{
	my ($node, @sql) = @_;
	my $out = '';
	my @psql = ('psql', '-XAtq', '-d', $node->connstr('postgres'), map { ('-c', $_) } @sql);
	my $psql = IPC::Run::start(\@psql, '<', File::Spec->devnull, '>', \$out, '2>&1');
	return sub { eval { $psql->finish }; return $out };
}

### Two segments, from two authorities

create($_, 'photos', 100, [ $odd, $even ]) for $one, $two;
my @from_one = take($one, 'photos', 9);
is("@from_one", join(' ', map { 2 * $_ - 1 } 1 .. 9), 'a server leases from the first authority');
is( segment(
		$one, 'photos',
		'state, next_value, last_value, values_left, spare_left, host, refills, waits'),
	'idle|19|199|91|0|' . $odd->host . ':' . $odd->port . '|1|1',
	'a server leases from the first authority, and after nine of a hundred values there is only'
	  . ' the first segment');
my @from_two = take($two, 'photos', 9);
is( "@from_two",
	join(' ', map { 199 + 2 * $_ } 1 .. 9),
	'a server leases from the first authority, and another server leases the next segment');
push @from_one, take($one, 'photos', 1);
wait_segment($one, 'photos', 'spare_left > 0');
is(segment($one, 'photos', 'next_value, last_value, spare_first, spare_last, segment_size'),
	'21|199|401|599|100', 'a server leases from the first authority, and the first server leases'
		  . ' again when a tenth is used');
is( $one->safe_psql(
		'postgres',
		q{SELECT server, servers, step, last_value, source, ticket
			FROM instaid_tickets.tickets WHERE ticket::text ~ 'photos'}
	),
	'||100||odd even|photos',
	'a server leases from the first authority, and the view of tickets has one row for it');
is($one->safe_psql('postgres', q{SELECT count(*) FROM instaid_tickets.audit()}),
	0, 'a server leases from the first authority, and audit() finds nothing');

# one of the two is killed, and then the other one
create($one, 'first_refill', 100, [ $odd, $even ]);
create($one, 'gone', 100, [ $odd, $even ]);
$odd->stop('immediate');
push @from_one, take($one, 'photos', 1000);
push @from_two, take($two, 'photos', 1000);
my @odd = grep { $_ % 2 } @from_one;
is(scalar(@odd), 200, 'one authority is killed: the values that were leased from it are used');
is(duplicates(@from_one, @from_two), 0, 'one authority is killed, and no value comes twice');
is( segment(
		$one, 'photos',
		"failures, failure ~ 'host .*:${\ $odd->port}.: connection to server',
			host ~ ':${\ $even->port}\$'"),
	'1|t|t', 'one authority is killed, and the view shows the failure, and which server serves');
my $warning = qr/WARNING:  could not refill ticket public.photos from one of its hosts\n/;
my $host    = qr/[^"]*:${\ $even->port}/;
my $hint    = qr/HINT:  The next segments come from host "$host", as long as it answers\.$/m;
is(log_count($one, qr/$warning.*host "[^"]*:${\ $odd->port}".*\n.*$hint/),
	1, 'one authority is killed, and the log shows it once');
my $metrics = 'SELECT failed_refills > 0, failing, empty FROM instaid_tickets.metrics';
take($one, 'first_refill', 1);
is(segment($one, 'first_refill', q{refills, failures, failed_at <= refilled_at}),
	'1|1|t', 'a refill that had to try another server did not fail');
is($one->safe_psql('postgres', $metrics), 't|0|0',
	'a refill that had to try another server did not fail, and the metrics show no failing ticket');
take($one, 'photos', 1) until segment($one, 'photos', 'spare_left > 0') eq 't';
$even->stop('immediate');
my $left = segment($one, 'photos', 'values_left + spare_left');
my @rest = take($one, 'photos', $left);
is(duplicates(@from_one, @from_two, @rest),
	0, "both are killed: the $left values in memory are used");
push @from_one, @rest;
like(
	failure($one, 'photos'),
	qr/ERROR:  ticket public.photos has no values left from its source
DETAIL:  The last attempt, at .*, failed: .*connection to server.*; .*connection to server.*
HINT:  Call again: a source that failed is asked again within 5 s\.$/m,
	"both are killed, and then an error shows the failures of both");
failure($one, 'photos') for 1 .. 10;
cmp_ok(segment($one, 'photos',
	'failures'), '<', 12, "both are killed, and not every call asks again");
my $asks_again = 'Calls ask again, after 100 ms at first and 5000 ms at most;'
  . ' instaid_tickets.segments shows failures.';
is(log_count($one, qr/WARNING:  could not refill ticket public.photos
.*DETAIL:.*\n.*HINT:  \Q$asks_again\E\n/),
	1, "both are killed, and the log has one warning");
is(segment($one, 'photos', 'state'), 'failed', "both are killed, and the view says failed");
is($one->safe_psql('postgres', $metrics), 't|1|1',
	"both are killed, and the metrics an empty ticket");
failure($one, 'gone');
is($one->safe_psql('postgres', "$metrics; DROP FOREIGN TABLE gone; $metrics"),
	"t|2|2\nt|1|1", "both are killed, but not one that is dropped");
$odd->start;
push @from_one, retry($one, 'photos'), take($one, 'photos', 1000);
is(duplicates(@from_one, @from_two),
	0, 'when one of them is back, the ticket goes on, with new values');
my $again = qr/LOG:  ticket public.photos is refilled again, from host/;
is(log_count($one, qr/$again "[^"]*:${\ $odd->port}"/),
	1, 'when one of them is back, the ticket goes on, with new values, and the log says so');
is($one->safe_psql('postgres', $metrics), 't|0|0',
	'when one of them is back, the ticket goes on, with new values, and the metrics show it at'
	  . ' once');
$even->start;
$one->safe_psql('postgres', q{DROP FOREIGN TABLE first_refill});

### One buffer for all sessions, whose segments follow demand

create($one, 'hot', 10, [$odd]);
$one->safe_psql('postgres', 'CREATE TABLE got (value bigint)');
append_to_file("$dir/hot.sql", q{INSERT INTO got SELECT instaid_tickets.next('hot')
	FROM generate_series(1, 100);});
$one->command_ok(
	[ 'pgbench', '-n', @$_, '-f', "$dir/hot.sql", '-h', $one->host, '-p', $one->port, 'postgres' ],
	"pgbench @$_") for [ '-C', '-c', 4, '-t', 10 ], [ '-c', 32, '-j', 2, '-t', 50 ];
is( $one->safe_psql(
		'postgres',
		q{SELECT count(*), count(DISTINCT value), max(value) <= (SELECT last_value
			FROM instaid_tickets.segments WHERE ticket::text = 'hot') FROM got}
	),
	'164000|164000|t',
	'sessions that end take no more than they use, and no value comes twice');

# Use up the segment that is in use, and a tenth of the next one.  Return the length of the
# segment that follows.
sub use_up
{
	my ($name) = @_;
	wait_segment($one, $name, 'spare_left > 0');
	my ($left, $spare, $refills) = split /\|/,
	  segment($one, $name, 'values_left, spare_left, refills');
	take($one, $name, $left + int(($spare + 9) / 10));
	wait_segment($one, $name, "refills > $refills");
	return segment($one, $name, 'spare_left');
}

sub set_duration
{
	my ($duration) = @_;
	$one->safe_psql('postgres',
		"ALTER SYSTEM SET instaid_tickets.segment_target_duration = '$duration'");
	$one->reload;
	# workers have the postmaster's setting
	$one->poll_query_until('postgres',
		"SELECT current_setting('instaid_tickets.segment_target_duration') = '$duration'")
	  or die;
	return;
}
create($one, 'pace', 10, [ $odd, $even ]);
create($one, 'long', 300000, [$odd]);
take($one, 'pace', 1);
take($one, 'long', 30000);
set_duration('1h');
is(join(' ', map { use_up('pace') } 1 .. 4),
	'20 40 80 160',
	'a segment that does not last for the target duration is followed by a longer one');
set_duration('1ms');
is( join(' ', map { use_up('pace') } 1 .. 6),
	'80 40 20 10 10 10',
	'a segment that does not last for the target duration is followed by a longer one: one that'
	  . ' lasts longer, by a shorter one; none is shorter than the step');
set_duration('1h');
is( join(' ', map { use_up('long') } 1 .. 3),
	'600000 900000 900000',
	'no segment is longer than a million');
set_duration('15min');

### An authority that hangs delays neither other tickets nor other commands.

create($one, $_, 10, [$odd]) for 'stuck', 'fine';
my $holder = Clients::session($odd);
take($one, 'stuck', 5);
wait_segment($one, 'stuck', 'spare_left > 0');
$holder->(q{BEGIN; ALTER SEQUENCE public.stuck NO CYCLE});
is( join(' ', take($one, 'stuck', 15)),
	join(' ', 6 .. 20),
	'a refill is held up: calls go on while there are values');
is(segment($one, 'stuck', 'waits'), 1, 'a refill is held up: calls with values left do not wait');
like(
	failure($one, 'stuck', 100),
	qr/DETAIL:  The source has not answered within 100 ms/,
	'a refill is held up: calls then wait for instaid_tickets.segment_timeout');
my @fine = take($one, 'fine', 200);
is("@fine", join(' ', 1 .. 200),
	'a refill is held up, and another ticket takes values from the same server');
($ret, $stdout, $stderr) =
  $one->psql('postgres', q{SET lock_timeout = '20s'; DROP FOREIGN TABLE stuck});
is($stderr, '', 'a refill is held up, and the ticket that waits can be dropped');
$one->safe_psql('postgres', 'CREATE DATABASE other');
$one->safe_psql('other', 'CREATE EXTENSION instaid_tickets');
create($one, 'stuck', 10, [$odd], database => 'other');
$one->psql('other', q{SET instaid_tickets.segment_timeout = '10ms';
	SELECT instaid_tickets.next('stuck')});
($ret, $stdout, $stderr) = $one->psql('postgres', 'CREATE DATABASE copy TEMPLATE other');
is($stderr, '', 'a refill is held up, and a database whose ticket waits can be copied');
$one->psql('other', q{SET instaid_tickets.segment_timeout = '10ms';
	SELECT instaid_tickets.next('stuck')});
($ret, $stdout, $stderr) = $one->psql('postgres', 'DROP DATABASE other');
is($stderr, '', 'a refill is held up, and dropped');
$holder->('COMMIT');

# It accepts connections, but does not answer: the other one is asked.
$odd->safe_psql('postgres', q{SELECT instaid_tickets.create('public.hung', 1, 2)});
$even->safe_psql('postgres', q{SELECT instaid_tickets.create('public.hung', 2, 2)});
$one->safe_psql('postgres',
	sprintf q{CREATE FOREIGN TABLE hung (value bigint) SERVER "%s"
		OPTIONS (sequence 'public.hung', step '10')},
	source($one, [ $odd, $even ], connect_timeout => 1));
my ($postmaster) = slurp_file($odd->data_dir . '/postmaster.pid') =~ /^(\d+)/;
kill 'STOP', $postmaster;
is(join(' ', take($one, 'hung', 3)), '2 4 6', 'one of two servers hangs: the other is asked');
like(
	segment($one, 'hung', 'failure'),
	qr/host "[^"]*:${\ $odd->port}": no answer in time/,
	'one of two servers hangs, and the view shows the failure');
kill 'CONT', $postmaster;

# The worker is terminated while it waits.  Those of earlier tickets have ended.
my $worker = q{FROM pg_stat_activity WHERE backend_type = 'instaid_tickets segments'};
$one->poll_query_until('postgres', "SELECT count(*) = 0 $worker") or die;
create($one, 'killed', 10, [$odd]);
$holder->(q{BEGIN; ALTER SEQUENCE public.killed NO CYCLE});
my $call =
  begin($one, q{SET instaid_tickets.segment_timeout = '120s'},
	q{SELECT instaid_tickets.next('killed')});
my $event =
  $one->safe_psql('postgres', 'SHOW server_version_num') >= 170000
  ? 'InstaidTicketAuthority'
  : 'Extension';
$one->poll_query_until('postgres', "SELECT wait_event = '$event' $worker") or die;
my $of_call = $event =~ s/Authority/Segment/r;
ok( $one->poll_query_until(
		'postgres',
		qq{SELECT wait_event = '$of_call'
			FROM pg_stat_activity WHERE query ~ 'next..killed' AND pid <> pg_backend_pid()}
	),
	'a call that waits for a segment says so');
$one->safe_psql('postgres', "SELECT pg_terminate_backend(pid) $worker");
like(
	$call->(),
	qr/ERROR:  ticket public.killed has no values left.*\n.*the background worker was terminated/,
	'the worker is terminated: the call fails');
$holder->('COMMIT');
cmp_ok(retry($one, 'killed'), '>', 0, 'the worker is terminated, and the next calls have values');

# The worker is stopped, and what it leases is left out.
$one->poll_query_until('postgres', "SELECT count(*) = 0 $worker") or die;
create($one, 'halted', 10, [$odd], connect_timeout => 5);
$holder->(q{BEGIN; ALTER SEQUENCE public.halted NO CYCLE});
# It is stopped while the authority has its question, and not before, nor when it has given up.
my $asked = q{SELECT count(*) > 0 FROM pg_locks WHERE NOT granted
	AND relation = 'public.halted'::regclass};
my $halted;
for (1 .. 1000)
{
	failure($one, 'halted', 10);
	next if $odd->safe_psql('postgres', $asked) ne 't';
	$halted = $one->safe_psql('postgres', "SELECT pid $worker") or next;
	kill 'STOP', $halted;
	last if $odd->safe_psql('postgres', $asked) eq 't';
	kill 'CONT', $halted;
}
$holder->('COMMIT');
$odd->poll_query_until('postgres', 'SELECT last_value >= 10 FROM public.halted') or die;
# to be continued

### An authority that crashes, or has a synchronous standby that is away

create($_, 'durable', 5, [$odd]) for $one, $two;
$holder->(q{CHECKPOINT; BEGIN; SELECT instaid_tickets.next('durable')});
my @before = take($one, 'durable', 5);
$odd->stop('immediate');
$odd->start;
my @after = take($two, 'durable', 20);
is( duplicates(1, @before, @after),
	0,
	'an authority crashes while its last record is of an open transaction: no value comes twice');
cmp_ok($after[0], '>', $before[-1],
	'an authority crashes while its last record is of an open transaction, and later values are'
	  . ' above');
create($one, 'replicated', 5, [$odd]);
$odd->append_conf('postgresql.conf', "synchronous_standby_names = 'nobody'\n");
$odd->reload;
$odd->poll_query_until('postgres',
	q{SELECT current_setting('synchronous_standby_names') = 'nobody'})
  or die;
# The checkpointer lets sessions wait for standbys.  It reads the setting first.
$odd->safe_psql('postgres', 'CHECKPOINT');
$call =
  begin($one, q{SET instaid_tickets.segment_timeout = '120s'},
	q{SELECT instaid_tickets.next('replicated')});
my $waiting =
  q{FROM pg_stat_activity WHERE application_name = 'instaid_tickets' AND wait_event = 'SyncRep'};
$odd->poll_query_until('postgres', "SELECT count(*) = 1 $waiting") or die;
$odd->safe_psql('postgres', "SELECT pg_cancel_backend(pid) $waiting");
like(
	$call->(),
	qr/failed: server "odd", host "[^"]*:${\ $odd->port}": canceling statement/,
	'its wait for its standby is cancelled, and it gives no value');
$odd->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
$odd->reload;
cmp_ok(retry($one,
	'replicated'), '>', 5, 'its wait for its standby is cancelled, and it gives no value, and'
		  . ' later a value above that segment');

### Authorities that count alike, or were set back

my $why = 'this server has had such values: it counts as another authority does, or was set back';
my $refused = qr/host "[^"]*": it leased \d+ to \d+ by \d+, and $why/;
$_->safe_psql('postgres', q{SELECT instaid_tickets.create('public.alike')}) for $odd, $even;
create($one, 'alike', 10, [ $odd, $even ]);
my @alike = take($one, 'alike', 5);
$odd->stop('immediate');

# Take values until the log says that a lease was refused.  What is refused is left out at the
# authority, so that it soon leases values above.
sub take_until_refused
{
	my ($name) = @_;
	my @values;
	for (1 .. 300)
	{
		push @values, split /\n/,
		  ( $one->psql(
				'postgres', "SELECT instaid_tickets.next('$name') FROM generate_series(1, 25)"))[1];
		return @values
		  if slurp_file($one->logfile) =~ /could not refill ticket public.$name.*\n.*$refused/;
	}
	return @values;
}
push @alike, take_until_refused('alike');
like(
	slurp_file($one->logfile),
	qr/could not refill ticket public.alike.*\n.*$refused/,
	'two authorities that count alike: the second one is refused, and the log says which');
cmp_ok(segment($one, 'alike',
	'failures'), '>', 0, 'two authorities that count alike, and the view counts it');
$odd->start;
push @alike, retry($one, 'alike');
is(duplicates(@alike), 0,
	'two authorities that count alike, and none of ' . @alike . ' values comes twice');
# set back, as by a restore
create($one, 'restored', 10, [$odd]);
my @restored = take($one, 'restored', 100);
$odd->safe_psql('postgres', q{SELECT setval('public.restored', 3)});
push @restored, take_until_refused('restored');
like(segment($one, 'restored', 'failure'),
	$refused, 'an authority that was set back is refused, and the view says so');
push @restored, retry($one, 'restored');
is(duplicates(@restored), 0,
	'an authority that was set back is refused, until it is above its values again, and none of '
	  . @restored . ' comes twice');
# one server under two names, and two stripes of one server
$odd->safe_psql('postgres', q{SELECT instaid_tickets.create('public.aliases')});
$one->safe_psql('postgres',
	sprintf q{CREATE FOREIGN TABLE aliases (value bigint) SERVER "%s"
		OPTIONS (sequence 'public.aliases', step '10')}, source($one, [$odd, $odd]));
is(join(' ', take($one, 'aliases', 100)), join(' ', 1 .. 100), 'one server with two names');

### From two authorities to three, by the steps of docs/tickets.md, while they are used

create($_, 'restriped', 10, [ $odd, $even ]) for $one, $two;
my @restriped = map { take($_, 'restriped', 30) } $one, $two;
$_->safe_psql('postgres', q{SELECT instaid_tickets.guard('restriped', 3000)}) for $odd, $even;
push @restriped, take($_, 'restriped', 30) for $one, $two;
$odd->safe_psql('postgres', q{SELECT instaid_tickets.restripe('restriped', 1, 3, 3000)});
push @restriped, take($_, 'restriped', 60) for $one, $two;
$even->safe_psql('postgres', q{SELECT instaid_tickets.restripe('restriped', 2, 3, 3000)});
push @restriped, take($_, 'restriped', 100) for $one, $two;
is(scalar(@restriped) . ' ' . duplicates(@restriped),
	'440 0', 'the number of servers is changed, and no value comes twice');
is(scalar(grep { $_ > 3000 && $_ % 3 == 0 } @restriped),
	0,
	'the number of servers is changed, and no value comes twice, and the values of the third'
	  . ' server are not used');
# the end of an authority, and of the type
$odd->safe_psql('postgres',
	q{SELECT instaid_tickets.create('public.ends', start => 1);
		SELECT instaid_tickets.guard('ends', 30);
		SELECT instaid_tickets.create('public.wide', start => 32760)}
);
create($one, 'ends', 10, [$odd]);
# The second segment comes before the first one is used up, so that only the third one is longer.
# It would pass the guard: calls may fail until a shorter one is leased.
my @ends = take($one, 'ends', 1);
wait_segment($one, 'ends', 'spare_left > 0');
push @ends, retry($one, 'ends') for 2 .. 30;
is("@ends", join(' ', 1 .. 30), 'the last values of an authority');
like(
	failure($one, 'ends'),
	qr/host "[^"]*:${\ $odd->port}": ticket public.ends has reached its guard/,
	'the last values of an authority: are the last');
# the server reads a number in hexadecimal from PostgreSQL 16 on
my $five = $one->pg_version >= 16 ? '0x5' : '5';
$one->safe_psql('postgres',
	qq{CREATE FOREIGN TABLE wide (value smallint) SERVER "odd"
		OPTIONS (sequence 'public.wide', step '$five')});
is(join(' ', take($one, 'wide', 8)), join(' ', 32760 .. 32767), 'the last values of the type');
like(
	failure($one, 'wide'),
	qr/host "[^"]*:${\ $odd->port}": it leased values from \d+ on, past the end of/,
	'the last values of the type: are the last');
$one->safe_psql('postgres', q{CREATE FOREIGN TABLE nobody (value bigint) SERVER odd
	OPTIONS (sequence 'public.nobody')});
like(
	failure($one, 'nobody'),
	qr/host "[^"]*:${\ $odd->port}": relation "public.nobody" does not exist/,
	'an authority without the ticket');
create($one, q{Pho"to}, 1, [$odd]);
is(join(' ', map { take($one, q{Pho"to}, 1) } 1 .. 5), '1 2 3 4 5', 'an odd name, and a step of 1');

### Answers that no honest server gives

sub message
{
	my ($type, $body) = @_;
	return $type . pack('N', 4 + length $body) . $body;
}

sub row
{
	return message('D', pack('n', scalar @_) . join '', map { pack('N', length) . $_ } @_);
}

my $fields = message(
	'T',
	pack('n', 3) . join '',
	map { pack 'Z*NnNnNn', $_, 0, 0, 20, 8, -1, 0 } 'first',
	'last', 'increment');
my $end = message('C', "SELECT 1\0") . message('Z', 'I');
my $notice = message('N', "SNOTICE\0C00000\0Mnothing" . ('x' x 1000) . "\0\0");
my $not_one_row = qr/its answer is not one row of three numbers/;
my $error = message('E',
		"SFATAL\0VFATAL\0C28000\0Mbroken \xff\xfe\xc3( bytes \e[31m\r\n\x01 and more "
	  . ('y' x 20000)
	  . "\0\0");
for my $case (
	[ 'refuses', $error, qr/broken \?\?\?\( bytes \?\[31m \? and more y+/ ],
	[ 'fails', $error, qr/broken \?\?\?\( bytes \?\[31m \? and more y+/ ],
	[ 'copies', message('H', pack 'Cn', 0, 0), qr/unexpected answer, PGRES_COPY_OUT/ ],
	[ 'lies', $fields . row(1, 5, 1) . $end,
		qr/it leased 1 to 5 by 1, which are not 10 values above 0/ ],
	[ 'counts down', $fields . row(10, 1, -1) . $end, qr/leased 10 to 1 by -1, which are not 10/ ],
	[ 'has two rows', $fields . row(1, 10, 1) . row(11, 20, 1), $not_one_row ],
	[ 'has no row', $fields . $end, qr/the connection ended|its answer/ ],
	[ 'sends rows without end', sub { row('1' x 1000, '2', '3') }, $not_one_row, $fields ],
	[ 'sends notices without end', sub { $notice }, qr/its answer is too long|no answer in time/ ],
	[ 'sends a message of 1 GB', sub { 'x' x 65536 },
		qr/memory|too long|lost synchronization|in time/, $fields . 'D' . pack('N', 1000000000) ])
{
	my ($name, $answer, $pattern, $first) = @$case;
	my $listening = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', ReuseAddr => 1)
	  or die $!;
	my $liar = fork() // die;
	if ($liar == 0)
	{
		# since PostgreSQL 17, Cluster.pm dies of a signal, and then stops its servers
		$SIG{TERM} = 'DEFAULT';
		$SIG{PIPE} = 'IGNORE';
		while (my $client = $listening->accept)
		{
			sysread($client, my $hello, 1024);
			if ($name ne 'refuses')
			{
				syswrite($client, message('R', pack 'N', 0) . message('Z', 'I'));
				sysread($client, my $query, 65536);
			}
			syswrite($client, $first) if $first;
			if (ref $answer)
			{
				my $part = $answer->();
				1 while syswrite($client, $part);
			}
			else
			{
				print $client $answer;
			}
			close $client;
		}
		POSIX::_exit(0);
	}
	my $port = $listening->sockport;
	$one->safe_psql('postgres', qq{
		CREATE SERVER "$name" FOREIGN DATA WRAPPER instaid_tickets
			OPTIONS (host '127.0.0.1', port '$port',
			dbname 'postgres', connect_timeout '20', sslmode 'disable');
		CREATE USER MAPPING FOR PUBLIC SERVER "$name" OPTIONS (user 'me');
		CREATE FOREIGN TABLE "$name" (value bigint) SERVER "$name"
			OPTIONS (sequence 'public."$name"', step '10')});
	my $said = failure($one, $name);
	like($said, $pattern, "a server that $name: the reason");
	cmp_ok(length($said), '<', 1500, "a server that $name, which is short");
	is( segment(
			$one,
			$name,
			q{convert_from(convert_to(failure, 'UTF8'), 'UTF8') = failure AND length(failure) < 600}
		),
		't',
		"a server that $name, in the view, too");
	kill 'TERM', $liar;
	waitpid $liar, 0;
	close $listening;
}
cmp_ok(-s $one->logfile, '<', 1000000, "what wrong answers write into the log stays short");

# The worker that was stopped above is now past its deadline, or will soon be.
my $overdue = 'the background worker has not ended in time';
like(failure($one, 'halted'), qr/DETAIL:  The last attempt, .* failed: $overdue/,
	'a worker that hangs is given up');
is(log_count($one, qr/LOG:  could not refill ticket public.halted\n.*DETAIL:  $overdue/),
	1, 'a worker that hangs is given up, and the log says so');
cmp_ok(retry($one,
	'halted'), '>', 10, 'a worker that hangs is given up, and another one leases values');
kill 'CONT', $halted;

### The owner of the ticket needs USAGE, and a mapping with a password that the server asks for.

sub source_failure
{
	my ($name, $pattern, $what) = @_;
	for (1 .. 100)
	{
		last if failure($one, $name);
	}
	for (1 .. 200)
	{
		last if segment($one, $name, 'failure') =~ /$pattern/;
		failure($one, $name);
		sleep(0.05);
	}
	like(segment($one, $name, 'failure'), qr/$pattern/, $what);
	return;
}

$odd->safe_psql('postgres',
	q{SELECT instaid_tickets.create('public.ours'); GRANT USAGE ON SEQUENCE public.ours TO leaser}
);
$one->safe_psql('postgres', sprintf q{
	CREATE ROLE app LOGIN; GRANT CREATE ON SCHEMA public TO app;
	CREATE SERVER guarded FOREIGN DATA WRAPPER instaid_tickets
		OPTIONS (host '%s', port '%s', dbname 'postgres', connect_timeout '60')},
	$odd->host, $odd->port);
my $create = q{SET ROLE app;
	CREATE FOREIGN TABLE public.ours (value bigint) SERVER guarded
		OPTIONS (sequence 'public.ours', step '10')};
($ret, $stdout, $stderr) = $one->psql('postgres', $create);
like(
	$stderr,
	qr/ERROR:  permission denied for foreign server guarded$/m,
	'a role without USAGE on the server');
$one->safe_psql('postgres', "GRANT USAGE ON FOREIGN SERVER guarded TO app; $create");
source_failure('ours', 'server "guarded", host "[^"]*": there is no user mapping for role "app"',
	'without a user mapping');
$one->safe_psql('postgres', q{CREATE USER MAPPING FOR app SERVER guarded OPTIONS (user 'leaser')});
source_failure('ours',
	'server "guarded", host "[^"]*": the user mapping for role "app" has no password',
	'a mapping without a password');
$one->safe_psql('postgres',
	'CREATE ROLE stranger LOGIN; CREATE ROLE watcher LOGIN; GRANT pg_read_all_stats TO watcher');
my $seen = q{SELECT count(*) FROM instaid_tickets.segments
	WHERE ticket::text = 'ours' AND failure ~ 'password'};
is($one->safe_psql('postgres',
	"SET ROLE stranger; $seen"), 0, 'a mapping without a password, but not for every role');
is($one->safe_psql('postgres', "SET ROLE watcher; $seen"),
	1, 'a mapping without a password, but for members of pg_read_all_stats');
$one->safe_psql('postgres',
	q{ALTER USER MAPPING FOR app SERVER guarded OPTIONS (ADD password 'mistyped')});
source_failure('ours', 'password authentication failed for user "leaser"', 'with a wrong password');
$one->safe_psql(
	'postgres',
	sprintf
	  q{ALTER USER MAPPING FOR app SERVER guarded OPTIONS (SET password 'secret', SET user '%s')},
	$odd->safe_psql('postgres', 'SELECT current_user'));
source_failure('ours',
	'server "guarded", host "[^"]*": it did not ask for a password; it must, unless superusers',
	'with a password that the server does not ask for');
$one->safe_psql('postgres',
	q{ALTER USER MAPPING FOR app SERVER guarded OPTIONS (SET user 'leaser')});
my @ours = (retry($one, 'ours'), take($one, 'ours', 5));
is("@ours", '1 2 3 4 5 6', 'with the right password, the ticket has values');
is($one->safe_psql('postgres', q{SELECT count(*) FROM instaid_tickets.audit()
	WHERE object ~ 'ours'}),
	0, 'with the right password, the ticket has values, and audit() finds nothing');
# a superuser's ticket, and a server whose owner can change its address
$one->safe_psql('postgres', q{CREATE FOREIGN TABLE trusting (value bigint) SERVER guarded
	OPTIONS (sequence 'public.trusting');
	CREATE USER MAPPING FOR CURRENT_USER SERVER guarded; ALTER SERVER guarded OWNER TO app});
source_failure('trusting',
	'server "guarded", host "[^"]*": the user mapping for role "[^"]*" has no password',
	'a superuser does not trust the server of another role');
$one->safe_psql('postgres', q{ALTER SERVER guarded OWNER TO CURRENT_USER;
	DROP FOREIGN TABLE trusting;
	DROP USER MAPPING FOR CURRENT_USER SERVER guarded;
	GRANT USAGE ON FOREIGN SERVER guarded TO app});
$one->safe_psql('postgres', 'REVOKE USAGE ON FOREIGN SERVER guarded FROM app');
for (1 .. 1000)
{
	my ($ret, $stdout) = $one->psql('postgres', q{SELECT instaid_tickets.next('ours')});
	last if $ret;
	push @ours, $stdout;
}
source_failure('ours', 'server "guarded", host "[^"]*": role "app" has no USAGE on it',
	'REVOKE takes effect at the next segment');
$one->safe_psql('postgres', 'GRANT USAGE ON FOREIGN SERVER guarded TO app');
push @ours, retry($one, 'ours'), take($one, 'ours', 30);
is(duplicates(@ours), 0, 'GRANT takes effect, too, and no value comes twice');
is($one->safe_psql('postgres', q{SET ROLE app; SELECT count(*)
	FROM pg_foreign_table, instaid_tickets.tickets AS t, instaid_tickets.segments AS s,
		instaid_tickets.audit() AS a
	WHERE concat(ftoptions, t, s, a) ~ 'secret"|mistyped'}), 0, 'passwords are in no view');
unlike(slurp_file($_->logfile), qr/mistyped|password '/,
	'passwords are in no view, and in no log') for $one, $odd;

# who may take values, and see why there are none
my $stranger = session_as('stranger', $one);
$stranger->('BEGIN; SAVEPOINT s');
for my $call (q{next('ours')}, q{lease('ours', 1)})
{
	like(
		$stranger->("SELECT instaid_tickets.$call"),
		qr/ERROR:  permission denied for foreign table ours/,
		"$call by a role without rights");
	$stranger->('ROLLBACK TO s');
}
($ret, $stdout, $stderr) = $one->psql('postgres',
	q{SET lock_timeout = '5s'; BEGIN; DROP FOREIGN TABLE public.ours; ROLLBACK});
is($stderr, '',
	"$call by a role without rights, which holds no lock, even if its transaction is open");
$stranger->('ROLLBACK');
$one->safe_psql('postgres', q{
	CREATE SERVER nowhere FOREIGN DATA WRAPPER instaid_tickets
		OPTIONS (host '/nowhere/at/all', dbname 'postgres');
	CREATE USER MAPPING FOR app SERVER nowhere OPTIONS (user 'me', password 'secret');
	GRANT USAGE ON FOREIGN SERVER nowhere TO app;
	CREATE FOREIGN TABLE public.hidden (value bigint) SERVER nowhere
		OPTIONS (sequence 'public.hidden', step '10');
	GRANT UPDATE ON public.hidden TO stranger, watcher;
	ALTER FOREIGN TABLE public.hidden OWNER TO app});
for my $case ([ 'stranger', 0 ], [ 'watcher', 1 ], [ 'app', 1 ])
{
	my ($role, $sees) = @$case;
	my ($ret, $stdout, $stderr) =
	  $one->psql('postgres', qq{SET ROLE "$role"; SELECT instaid_tickets.next('hidden')});
	my $shown = $stderr
	  . $one->safe_psql('postgres',
		qq{SET ROLE "$role"; SELECT failure FROM instaid_tickets.segments
			WHERE ticket::text = 'hidden'});
	my @paths = $shown =~ m{nowhere/at/all}g;
	is( scalar(@paths),
		$sees ? 4 : 0,
		"$role: " . ($sees ? 'shows the reason' : 'does not show file names'));
	like($shown, qr/<insufficient privilege>/,
		"$call by a role without rights, but says that a privilege is missing")
	  unless $sees;
}

### Servers and tickets that are dropped or renamed

($ret, $stdout, $stderr) = $one->psql('postgres', 'DROP SERVER guarded');
like(
	$stderr,
	qr/cannot drop server guarded because .*foreign table ours depends on server/s,
	'a server that a ticket uses is not dropped');
is( $one->safe_psql(
		'postgres',
		q{BEGIN; SET client_min_messages = error; DROP SERVER guarded CASCADE;
			SELECT count(*) FROM instaid_tickets.tickets WHERE ticket::text = 'ours'; ROLLBACK}
	),
	0,
	'a server that a ticket uses is not dropped, and CASCADE drops the ticket, too');
$one->safe_psql('postgres', 'ALTER SERVER guarded RENAME TO "other name"');
is($one->safe_psql('postgres', q{SELECT source FROM instaid_tickets.tickets
	WHERE ticket::text = 'ours'}),
	'other name', 'a ticket follows a server that is renamed');
push @ours, take($one, 'ours', 500);
is(duplicates(@ours), 0, 'a ticket follows a server that is renamed, and goes on');
create($one, 'first', 10, [ $odd, $even ]);
take($one, 'first', 3);
$odd->safe_psql('postgres', q{SELECT instaid_tickets.create('public.second', start => 5000)});
$one->safe_psql('postgres', q{ALTER FOREIGN TABLE first RENAME TO second;
	ALTER FOREIGN TABLE second OPTIONS (SET sequence 'public.second')});
my @second = take($one, 'second', 60);
cmp_ok($second[-1], '>=', 5000, 'a ticket of another sequence has its values after those at hand');
is( $one->safe_psql(
		'postgres', q{SELECT ticket, source FROM instaid_tickets.tickets
			WHERE ticket::text ~ '^(first|second)'}),
	'second|odd even',
	'a ticket of another sequence has its values after those at hand, and keeps its servers');
$one->safe_psql('postgres', q{DROP FOREIGN TABLE second});
is( $one->safe_psql('postgres', q{SELECT count(*) FROM pg_class WHERE relname ~ '^(first|second)'}),
	0,
	'a ticket of another sequence has its values after those at hand, and is dropped with all'
	  . ' that belongs to it');

### Dumps

my $query = q{SELECT ticket, step, source FROM instaid_tickets.tickets ORDER BY ticket::text};
my $mappings =
  q{SELECT srvname, usename, array(SELECT unnest(umoptions) ORDER BY 1)
	FROM pg_user_mappings ORDER BY 1, 2};
my $expected = join "\n", map { $one->safe_psql('postgres', $_) } $query, $mappings;
$one->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/dump", '-d', $one->connstr('postgres') ],
	'pg_dump');
$one->command_ok([ 'pg_dump', '-Fp', '-f', "$dir/dump.sql", '-d', $one->connstr('postgres') ],
	'a ticket of another sequence has its values after those at hand, as SQL');
# on a server that does not preload it
$even->safe_psql('postgres', "CREATE ROLE $_ LOGIN") for 'app', 'stranger', 'watcher';
for my $case (
	[ 'session', [ 'pg_restore', '--exit-on-error', "$dir/dump" ] ],
	[ 'jobs', [ 'pg_restore', '--exit-on-error', '-j', '4', "$dir/dump" ] ],
	[ 'sections', map { [ 'pg_restore', '--exit-on-error', "--section=$_", "$dir/dump" ] }
			'pre-data', 'data', 'post-data' ],
	[ 'sql', [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/dump.sql" ] ])
{
	my ($name, @commands) = @$case;
	$even->safe_psql('postgres', "CREATE DATABASE $name");
	$even->command_ok([ @$_, '-d', $even->connstr($name) ], "restored: $name") for @commands;
	is(join("\n", map { $even->safe_psql($name, $_) } $query, $mappings),
		$expected,
		'a ticket of another sequence has its values after those at hand, with the sources,'
		  . ' their servers and mappings');
}
$one->safe_psql('postgres', 'CREATE DATABASE restored');
$one->command_ok([ 'pg_restore', '--exit-on-error', '-d', $one->connstr('restored'), "$dir/dump" ],
	'pg_restore');
is( duplicates(@fine, take($one, 'fine', 1, 'restored')) +
	  duplicates(@ours, take($one, 'ours', 1, 'restored')),
	0,
	'a ticket of another sequence has its values after those at hand, and a restored ticket'
	  . ' takes new values from its source');
# the schema alone, and a ticket alone, where the extension and the servers are
for my $case ([ 'schema', '-n', 'public' ], [ 'ticket', '-t', 'public.photos*' ])
{
	my ($name, @options) = @$case;
	$one->command_ok([ 'pg_dump', '-f', "$dir/$name", @options, '-d', $one->connstr('postgres') ],
		"pg_dump @options");
	$one->safe_psql('postgres', "CREATE DATABASE $name");
	$one->safe_psql($name, 'CREATE EXTENSION instaid_tickets');
	$one->safe_psql($name, $_)
	  for split /\n/,
	  $one->safe_psql('postgres',
		q{SELECT format('CREATE SERVER %I FOREIGN DATA WRAPPER instaid_tickets', srvname)
			FROM pg_foreign_server}
	  );
	my $sql = slurp_file("$dir/$name") =~ s/^CREATE SCHEMA.*//mr;
	append_to_file("$dir/$name.sql", $sql);
	$one->command_ok([ 'psql', '-Xq', '-f', "$dir/$name.sql", '-d', $one->connstr($name) ],
		'a ticket of another sequence has its values after those at hand, and restore');
	is( $one->safe_psql(
			$name, q{SELECT ticket, step, source FROM instaid_tickets.tickets
				WHERE ticket::text = 'photos'}),
		'photos|100|odd even',
		'a ticket of another sequence has its values after those at hand, with the source');
}

### No free worker, and tickets that take all places in memory

$two->append_conf('postgresql.conf', "max_worker_processes = 0\n");
$two->restart;
like(
	failure($two, 'photos', 200),
	qr/DETAIL:  No background worker was free within 200 ms\.
HINT:  Increase max_worker_processes\.$/m,
	'no worker is free: a call waits, and fails');
# what a call says that does not wait
$two->safe_psql('postgres', q{
	CREATE FUNCTION try(ticket text) RETURNS text LANGUAGE plpgsql
		SET instaid_tickets.segment_timeout = 0 AS $$
	DECLARE
		said text; hint text;
	BEGIN
		RETURN instaid_tickets.next(ticket::regclass);
	EXCEPTION WHEN OTHERS THEN
		GET STACKED DIAGNOSTICS said = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
		RETURN said || ' ' || hint;
	END $$});
$two->safe_psql('postgres', join ';', map { "CREATE FOREIGN TABLE t$_ (value bigint)
	SERVER \"odd even\" OPTIONS (sequence 'public.t$_')" } 1 .. 1001);
my ($no_worker, $no_place) =
  ('No background worker was free within 0 ms. Increase max_worker_processes.',
	'1000 tickets with a source are in use. A ticket that is not used for 10 s makes room.');
my $filled = time;
is( $two->safe_psql('postgres', q{SELECT said, min(i), count(*)
		FROM (SELECT i, try('t' || i) AS said FROM generate_series(1, 1001) AS i) AS t
		GROUP BY said ORDER BY min(i)}),
	"$no_worker|1|999\n$no_place|1000|2",
	'a thousand tickets are in use, and the next one says so');
is($two->safe_psql('postgres', 'SELECT count(*) FROM instaid_tickets.segments'),
	1000, 'a thousand tickets are in use, and the next one says so, and the view shows them');

### A crash under load

create($one, 'busy', 50, [ $odd, $even ]);
for my $authority ($odd, $even)
{
	$authority->safe_psql('postgres',
		q{SELECT setval('public.busy', 1000000000000000000 + last_value)
			FROM public.busy}
	);
}
my $read = q{SELECT instaid_tickets.next('busy');};
my @seen;
for my $round (1 .. 2)
{
	my $clients =
	  Clients->start($one, $read, 'BEGIN;' . (" $read" x 500), "BEGIN; $read ROLLBACK;", $read);
	wait_segment($one, 'busy', 'refills > 2');
	$one->stop('immediate');
	my $problems = $clients->finish;
	$one->start;
	push @seen, map { split /\n/, slurp_file($_) } $clients->files;
	is($problems . duplicates(@seen),
		0, 'crash under load: none of ' . @seen . ' values comes twice');
}

### What is idle makes room.  The first ticket that was used is not idle, but the second is.

my $turn = q{SELECT try('photos'), try('t1000')};
$two->poll_query_until('postgres', $turn, "$no_worker|$no_worker")
  or die 'no place becomes free';
cmp_ok(time - $filled, '>', 10, 'a ticket has the place of another one after 10 s');
is( $two->safe_psql('postgres', q{
		SELECT count(*), string_agg(ticket::text, ' ' ORDER BY ticket::text)
		FILTER (WHERE ticket::text IN ('photos', 't1', 't2', 't1000'))
			FROM instaid_tickets.segments}),
	'1000|photos t1000 t2',
	'a ticket has the place of another one after 10 s, of the one that was idle for longest');
$two->append_conf('postgresql.conf', "max_worker_processes = 8\n");
$two->restart;
is(duplicates(@from_one, @from_two, take($two, 'photos', 10)),
	0, 'after a restart, the ticket goes on');

$_->stop for $one, $two, $odd, $even;
unlike(slurp_file($_->logfile), qr/TRAP:|XX000|PANIC/, 'the server logged no error of its own')
  for $one, $two, $odd, $even;

done_testing();
