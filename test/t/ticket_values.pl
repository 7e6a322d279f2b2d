# Tickets in crashes, races and dumps, and on several servers.  pg_regress has one
# session and one server.
#
# After a crash, nextval() can return a value again; instaid_tickets.next() does not.  32
# sessions use a new name at once.  One of two servers, odd and even, is killed and
# restarted, and a third one joins them.
#
# FULL=1 adds rounds
# INSTAID_TEST_ROUNDS=5 shortens it.

use strict;
use warnings;

use File::Spec;
use IPC::Run ();
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;

@Clients::extensions = ('instaid_tickets');

my $rounds = $ENV{INSTAID_TEST_ROUNDS} ? ($ENV{INSTAID_TEST_ROUNDS} + 1) / 2
  : $ENV{FULL} ? 18 : 4;

### A crash.  No background process flushes WAL by chance.

my $node = Clients::server(
	'crash',
	'wal_level = replica',
	'max_wal_senders = 0',
	'wal_writer_delay = 10s',
	'autovacuum = off',
	'checkpoint_timeout = 1d');
$node->safe_psql('postgres',
	q{CREATE SEQUENCE s;
		SELECT instaid_tickets.create('public.photos'), instaid_tickets.create('public.leased')});

# One session writes the WAL record and does not commit.  The other takes values that this
# record covers.
my @taken;
for my $take (
	"nextval('s')",
	"instaid_tickets.next('photos')",
	"last FROM instaid_tickets.lease('leased', 5)")
{
	my ($one, $other) = (Clients::session($node), Clients::session($node));
	my @values = $other->("SELECT $take");
	$node->safe_psql('postgres', 'CHECKPOINT');
	push @values, $one->("BEGIN; SELECT $take"), $other->("SELECT $take"), $other->("SELECT $take");
	$node->stop('immediate');
	$node->start;
	push @taken, [ @values, $node->safe_psql('postgres', "SELECT $take") ];
}
my ($nextval, $ticket, $leased) = @taken;
is("@$nextval", '1 2 3 4 2', 'after a crash, nextval() returns a value again');
is("@$ticket[0 .. 3]", '1 2 3 4', 'before the crash, next() returns the same values');
cmp_ok($ticket->[4], '>', 4,
	'before the crash, next() returns the same values, and after it a value above them');
is("@$leased[0 .. 3]", '5 10 15 20', 'before the crash, lease() returns blocks of five');
cmp_ok($leased->[4], '>', 20,
	'before the crash, lease() returns blocks of five, and after it a block above them');

# A ticket does not vanish if its creation was committed, but not flushed.
$node->safe_psql('postgres', q{
	SET synchronous_commit = off;
	BEGIN; SELECT instaid_tickets.create('public.async'); SELECT nextval('public.async'); COMMIT});
my $async = $node->safe_psql('postgres', q{SELECT instaid_tickets.next('async')});
my $first = $node->safe_psql('postgres', q{
	SET synchronous_commit = off;
	SELECT instaid_tickets.next(instaid_tickets.create('public.first', if_not_exists => true))});
$first = $node->safe_psql('postgres', q{SELECT instaid_tickets.next('first')});
# The session that creates it and takes its first value in one transaction waits for that
# commit, too.
my $taken = $node->safe_psql('postgres', q{
	SET synchronous_commit = off;
	BEGIN; SELECT instaid_tickets.create('public.taken') \g /dev/null
	SELECT instaid_tickets.next('taken'); COMMIT; SELECT instaid_tickets.next('taken')});
$node->stop('immediate');
$node->start;
is("$async $first $taken", "2 2 1\n2", 'tickets are created with synchronous_commit = off');
for my $case ([ 'async', $async ], [ 'first', $first ], [ 'taken', 2 ])
{
	my ($name, $last) = @$case;
	cmp_ok($node->safe_psql('postgres', "SELECT instaid_tickets.next('$name')"),
		'>', $last, qq{after a crash, "$name" goes on above its last value});
}

### A step is how many values one record covers.  Its flush serves all sessions and transactions.

$node->safe_psql('postgres', q{SELECT instaid_tickets.create('public.stepped', step => 1000)});
# fsync is off in tests, and a flush only writes
my $writes = $node->safe_psql('postgres', 'SHOW server_version_num') >= 180000
  ? q{SELECT sum(writes) FROM pg_stat_io WHERE object = 'wal'} : 'SELECT wal_write
	FROM pg_stat_wal';
$node->safe_psql('postgres', q{SELECT instaid_tickets.next('stepped')});
append_to_file($node->basedir . '/stepped.sql', q{SELECT instaid_tickets.next('stepped');});

# What sessions have written so far.  They report it when they end, which can be after their
# client has.
sub written
{
	$node->poll_query_until('postgres',
		q{SELECT count(*) = 0 FROM pg_stat_activity
			WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()})
	  or die 'sessions do not end';
	return $node->safe_psql('postgres', $writes);
}
for my $case ([ 10000, 10, '-c', 8, '-t', 1250 ], [ 200, 0, '-C', '-c', 4, '-t', 50 ])
{
	my ($calls, $records, @options) = @$case;
	my $before = written();
	my $began = time;
	my $was = $node->safe_psql('postgres', 'SELECT last_value FROM public.stepped');
	$node->command_ok(
		[   'pgbench', '-n',        @options, '-f',        $node->basedir . '/stepped.sql',
			'-h',      $node->host, '-p',     $node->port, 'postgres' ],
		"pgbench @options");
	is($node->safe_psql('postgres', 'SELECT last_value FROM public.stepped') - $was,
		$calls, "$calls calls take as many values");
	my $flushes = written() - $before;
	# background processes write a record now and then
	my $most = 2 * $records + (time - $began) / 5;
	ok( $flushes >= $records && $flushes <= $most + 1,
		"$calls calls take as many values, and flush WAL $records to $most times: $flushes");
}
my $stepped = $node->safe_psql('postgres', 'SELECT last_value FROM public.stepped');
$node->stop('immediate');
$node->start;
my $after = $node->safe_psql('postgres', q{SELECT instaid_tickets.next('stepped')});
ok($after > $stepped && $after <= $stepped + 1001,
	"after a crash at $stepped, the ticket leaves out a step at most: $after");

### Crashes under load.  All values have 19 digits, so that text order will do.

$node->append_conf('postgresql.conf', "client_min_messages = error\n");
$node->safe_psql('postgres', q{
	SELECT instaid_tickets.create('public.busy', 2, 3, 1000000000000000000);
	SELECT instaid_tickets.create('public.twin', 1, 3, 1000000000000000000, step => 100);
	CREATE TABLE rows (id bigint PRIMARY KEY);});
my $row   = q{INSERT INTO rows VALUES (instaid_tickets.next('busy')) RETURNING id;};
my $read  = q{SELECT instaid_tickets.next('busy');};
my $lease =
  q{SELECT generate_series(first, last, increment) FROM instaid_tickets.lease('busy', 40);};
my @commits = ($row, "BEGIN; $row ROLLBACK;", $read, 'BEGIN;' . (" $read" x 2000), $lease);
# in every other round no client commits, so that no commit flushes WAL
my @open =
  ('BEGIN;' . (" $read" x 2000), 'BEGIN;' . (" $read" x 2000), 'BEGIN;' . (" $lease" x 1000));
my $twin = q{SELECT instaid_tickets.next('twin');};
my %last = (busy => 0, twin => 0);
for my $round (1 .. $rounds)
{
	my $wal_level = (qw(minimal replica logical))[ $round % 3 ];
	$node->append_conf('postgresql.conf', "wal_level = $wal_level\n");
	$node->restart;
	my $aside = Clients->start($node, $round % 4 > 1 ? 'CHECKPOINT;' : ());
	my %clients = $round % 2
	  ? (
		busy => Clients->start($node, @open),
		twin => Clients->start($node, ('BEGIN;' . (" $twin" x 2000)) x 2))
	  : (
		busy => Clients->start($node, @commits),
		twin => Clients->start($node, ($twin) x 2));
	sleep(0.3 + rand(0.4));
	$node->stop('immediate');
	my $problems = join '', map { $_->finish } $aside, values %clients;
	$node->start;
	my $count = 0;
	for my $name (sort keys %clients)
	{
		my $sum  = Clients::summary($clients{$name}->files);
		my $next = $node->safe_psql('postgres', "SELECT instaid_tickets.next('$name')");
		$problems .= "$name: $sum->{duplicates} duplicates\n" if $sum->{duplicates};
		$problems .= "$name: $sum->{first} came after $last{$name}\n"
		  if $sum->{count} && $sum->{first} <= $last{$name};
		$problems .= "$name: $next came after $sum->{last}\n" if $next <= $sum->{last};
		$last{$name} = $next;
		$count += $sum->{count};
	}
	is($problems, '',
		"round $round, wal_level = $wal_level: the values after the crash are above $count others");
}
$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP:|XX000|PANIC/, 'the server logged no error of its own');

### First use: 32 sessions race for each of 10 names.  Every other session rolls back what it takes.

$node = Clients::server('race');
my $gate = Clients::session($node);
$gate->('SELECT pg_advisory_lock(1)');
my $race = PostgreSQL::Test::Utils::tempdir;
my @racers;
for my $i (0 .. 31)
{
	my $script = "SELECT pg_advisory_lock_shared(1);\n";
	for my $name (1 .. 10)
	{
		my $created = "instaid_tickets.create('public.race_$name', 2, 3, if_not_exists => true)";
		my $create = "SELECT $created \\g /dev/null\n";
		my $take = "SELECT 'race $name', instaid_tickets.next('race_$name');\n";
		$script .= $i % 2 ? "${create}BEGIN;\n$take$take${take}ROLLBACK;\n"
		  : "SELECT 'race $name', instaid_tickets.next($created);\n" . $take x 2;
	}
	$script .= "SELECT pg_advisory_unlock_shared(1) \\g /dev/null\n";
	append_to_file("$race/$i.sql", $script);
	my @psql = ('psql', '-XAtq', '-F', '=', '-f', "$race/$i.sql");
	push @racers,
	  IPC::Run::start([ @psql, '-d', $node->connstr('postgres') ], '>', "$race/$i.out", '2>&1');
}
$node->poll_query_until('postgres', q{SELECT count(*) FROM pg_locks
	WHERE locktype = 'advisory' AND objid = 1 AND NOT granted}, 32)
  or die 'the racers do not come';
$gate->('SELECT pg_advisory_unlock(1)');
$_->finish for @racers;
my $all = join '', map { slurp_file("$race/$_.out") } 0 .. 31;
is(join("\n", grep { !/^(race \d+=\d+|)$/ } split /\n/, $all),
	'', 'first use in 32 sessions at once: no error');
for my $name (1 .. 10)
{
	my @values = sort { $a <=> $b } $all =~ /^race $name=(\d+)$/mg;
	is( "@values",
		join(' ', map { 3 * $_ - 1 } 1 .. 96),
		"race $name: 96 values from the server's offset on, none of them missing or twice");
}
$node->safe_psql('postgres', q{CREATE ROLE app LOGIN; GRANT CREATE ON SCHEMA public TO app});
my ($ret, $stdout, $stderr);

### A dump has tickets, their values and their privileges.

$node->safe_psql('postgres', q{
	SELECT instaid_tickets.create('public."Odd ""name"""', 3, 5, 1000, 50, 'integer');
	SELECT * FROM instaid_tickets.lease('"Odd ""name"""', 10);
	GRANT USAGE ON SEQUENCE public."Odd ""name""" TO app;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT instaid_tickets.next('race_1'::regclass));
	INSERT INTO photos DEFAULT VALUES;
	CREATE DATABASE restored});
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('postgres') ], 'pg_dump');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('restored'), $dump ],
	'pg_restore');
my $tickets = 'SELECT ticket, server, servers, last_value FROM instaid_tickets.tickets
	ORDER BY ticket::text';
is( $node->safe_psql('restored', $tickets),
	$node->safe_psql('postgres', $tickets),
	'the restored database has the tickets and their values');
is($node->safe_psql('restored', q{SET ROLE app; SELECT instaid_tickets.next('"Odd ""name"""')}),
	1053, 'the restored database has the tickets and their values, and the privileges on them');
is($node->safe_psql('restored', 'INSERT INTO photos DEFAULT VALUES RETURNING id'),
	293, 'the restored database has the tickets and their values, and the defaults that use them');
is( $node->safe_psql('restored', q{SET ROLE app;
	SELECT instaid_tickets.create('public.created_there')}),
	'created_there',
	'the restored database has the tickets and their values, and the privilege to create them');
$node->stop;

### Two servers, and then a third.  A client connects to a list of hosts, each time in
### another order.  If a server goes away during a query, the client tries again.

my $dir   = File::Spec->rel2abs(PostgreSQL::Test::Utils::tempdir);
my $hosts = "$dir/hosts";
my @files;

sub serve
{
	my (@nodes) = @_;
	append_to_file("$hosts.new", join '', map { $_->host . ' ' . $_->port . "\n" } @nodes);
	rename "$hosts.new", $hosts or die $!;
	return;
}

sub start_client
{
	my ($file) = @_;
	my $test = $$;
	my $pid = fork // die $!;
	return $pid if $pid;
	open my $out, '>', $file or POSIX::_exit(1);
	$out->autoflush(1);
	for (my $turn = $$; !-e "$dir/stop" && getppid == $test; $turn++)
	{
		my $answer = '';
		for my $try (1 .. 5)
		{
			my @list = map { [split] } split /\n/, slurp_file($hosts);
			push @list, shift @list for 1 .. ($turn + $try) % @list;
			my ($host, $port) = map { my $i = $_; join ',', map { $_->[$i] } @list } 0, 1;
			my $sql = q{SELECT current_setting('port'), instaid_tickets.next('photos')};
			$answer =
			  `psql -XAtq -F ' ' -d "dbname=postgres host=$host port=$port" -c "$sql" 2>>$file.err`;
			last if $? == 0;
		}
		print $out $answer || "failure\n";
	}
	POSIX::_exit(0);
}

# The values by port, in the order of each client
sub received
{
	my %by_port;
	for my $line (map { split /\n/, slurp_file($_) } @files)
	{
		my ($port, $value) = split / /, $line;
		push @{ $by_port{$port} }, $value;
	}
	return \%by_port;
}

# Wait until the clients have so many more values of each of these servers.
sub wait_for
{
	my ($more, @nodes) = @_;
	my $before = received();
	for (1 .. 1800)
	{
		my $now = received();
		return
		  if !grep { @{ $now->{ $_->port } // [] } < @{ $before->{ $_->port } // [] } + $more }
		  @nodes;
		sleep(0.1);
	}
	die 'the clients get nothing';
}

my ($odd, $even) = map { Clients::server($_) } 'odd', 'even';
$odd->safe_psql('postgres', q{SELECT instaid_tickets.create('public.photos', 1, 2)});
$even->safe_psql('postgres', q{SELECT instaid_tickets.create('public.photos', 2, 2)});
serve($odd, $even);
@files = map { "$dir/client$_" } 1 .. 6;
append_to_file($_, '') for @files;
my @clients = map { start_client($_) } @files;

wait_for(50, $odd, $even);
$odd->stop('immediate');
wait_for(100, $even);
$odd->start;
wait_for(50, $odd, $even);
my $received = received();
is($received->{failure}, undef,
	'odd and even: no client fails while one server is killed and restarted');
is(scalar(grep { $_ % 2 != 1 } @{ $received->{ $odd->port } }),
	0, 'odd and even: one issues ' . @{ $received->{ $odd->port } } . ' odd values');
is(scalar(grep { $_ % 2 != 0 } @{ $received->{ $even->port } }),
	0, 'odd and even: the other one issues ' . @{ $received->{ $even->port } } . ' even values');
my %seen;
is(scalar(grep { $seen{$_}++ } map { @$_ } values %$received), 0,
	'odd and even, and no value comes twice');

# The third server joins by the steps of docs/tickets.md, while the clients go on.
my $third = Clients::server('third');
my $boundary =
  3 * (10000 + $odd->safe_psql('postgres', 'SELECT last_value FROM instaid_tickets.tickets'));
($ret, $stdout, $stderr) =
  $odd->psql('postgres', qq{SELECT instaid_tickets.restripe('photos', 1, 3, $boundary)});
like($stderr, qr/is not guarded/, 'a third server: restripe() fails without the guard');
$_->safe_psql('postgres', qq{SELECT instaid_tickets.guard('photos', $boundary)}) for $odd, $even;
wait_for(20, $odd, $even);
$odd->safe_psql('postgres', qq{SELECT instaid_tickets.restripe('photos', 1, 3, $boundary)});
wait_for(20, $odd, $even);
$third->safe_psql('postgres',
	qq{SELECT instaid_tickets.create('public.photos', 3, 3, $boundary + 1)});
serve($odd, $even, $third);
wait_for(20, $odd, $even, $third);
$even->safe_psql('postgres', qq{SELECT instaid_tickets.restripe('photos', 2, 3, $boundary)});
# of these, each client can have taken one before
wait_for(50 + @clients, $odd, $even, $third);
append_to_file("$dir/stop", '');
waitpid $_, 0 for @clients;

$received = received();
is($received->{failure}, undef, 'a third server: no client fails while it joins');
my ($server, %slips) = (0);
for my $n ($odd, $even, $third)
{
	$server++;
	$slips{$server} = grep { $_ > $boundary && $_ % 3 != $server % 3 } @{ $received->{ $n->port } };
	cmp_ok(scalar(grep { $_ > $boundary } @{ $received->{ $n->port } }),
		'>=', 50, "a third server: server $server issues values above the boundary");
}
is(join(' ', map { $slips{$_} } 1 .. 3), '0 0 0', 'a third server: each with its own residue');
%seen = ();
my $count = map { @$_ } values %$received;
is(scalar(grep { $seen{$_}++ } map { @$_ } values %$received),
	0, "a third server, and none of $count values comes twice");

$_->stop for $odd, $even, $third;
unlike(slurp_file($_->logfile), qr/TRAP:|XX000|PANIC/,
	'a third server: the server logged no error of its own')
  for $odd, $even, $third;

done_testing();
