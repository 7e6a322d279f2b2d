# Tickets where servers crash, race and share: what pg_regress cannot reach.
#
# A crash: what bare nextval gives again, next_ticket() does not.  32 sessions
# that use a new name at once.  Two servers, odd and even, one of them killed and
# brought back; a third that joins them.  A dump.
#
# INSTAID_TEST_ROUNDS sets how many crashes under load there are.

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

my $rounds = $ENV{INSTAID_TEST_ROUNDS} ? ($ENV{INSTAID_TEST_ROUNDS} + 1) / 2 : 9;

### A crash, where no flush is left to chance

my $node = Clients::server('crash', 'max_wal_senders = 0', 'wal_writer_delay = 10s', 'autovacuum = off', 'checkpoint_timeout = 1d');
$node->safe_psql('postgres', q{CREATE SEQUENCE s; SELECT instaid.create_ticket('photos'), instaid.create_ticket('leased')});

# One session writes the WAL and does not commit; the other goes on with what it covers.
my @taken;
for my $take ("nextval('s')", "instaid.next_ticket('photos')", "last FROM instaid.lease_ticket('leased', 5)")
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
is("@$nextval", '1 2 3 4 2', 'bare nextval comes again after a crash');
is("@$ticket[0 .. 3]", '1 2 3 4', 'next_ticket() gives the same before it');
cmp_ok($ticket->[4], '>', 4, '... and goes on above after it');
is("@$leased[0 .. 3]", '5 10 15 20', 'lease_ticket() likewise');
cmp_ok($leased->[4], '>', 20, '... goes on above');

# Nor does a ticket vanish whose creation was committed but not flushed.
$node->safe_psql('postgres', q{
	SET synchronous_commit = off;
	BEGIN; SELECT instaid.create_ticket('async'); SELECT nextval('instaid_tickets.async'); COMMIT});
my $async = $node->safe_psql('postgres', q{SELECT instaid.next_ticket('async')});
my $first = $node->safe_psql('postgres', q{
	SET synchronous_commit = off; SET instaid.auto_create_tickets = on; BEGIN; SELECT instaid.next_ticket('first'); ROLLBACK});
$node->stop('immediate');
$node->start;
is("$async $first", '2 1', 'tickets whose creation was committed asynchronously');
cmp_ok($node->safe_psql('postgres', qq{SELECT instaid.next_ticket('$_->[0]')}), '>', $_->[1], "... \"$_->[0]\" goes on above")
  for [ 'async', $async ], [ 'first', $first ];

### Crashes under load.  All values have 19 digits, so that text order will do.

$node->append_conf('postgresql.conf', "client_min_messages = error\n");
$node->safe_psql('postgres', q{
	SELECT instaid.create_ticket('busy', 2, 3, 1000000000000000000), instaid.create_ticket('twin', 1, 3, 1000000000000000000, step => 100);
	CREATE TABLE rows (id bigint PRIMARY KEY);});
my $row   = q{INSERT INTO rows VALUES (instaid.next_ticket('busy')) RETURNING id;};
my $read  = q{SELECT instaid.next_ticket('busy');};
my $lease = q{SELECT generate_series(first, last, increment) FROM instaid.lease_ticket('busy', 40);};
my @commits = ($row, "BEGIN; $row ROLLBACK;", $read, 'BEGIN;' . (" $read" x 2000), $lease);
# in every other round nobody commits, so that no commit flushes WAL
my @open = ('BEGIN;' . (" $read" x 2000), 'BEGIN;' . (" $read" x 2000), 'BEGIN;' . (" $lease" x 1000));
my $twin = q{SELECT instaid.next_ticket('twin');};
my %last = (busy => 0, twin => 0);
for my $round (1 .. $rounds)
{
	my $wal_level = (qw(minimal replica logical))[ $round % 3 ];
	$node->append_conf('postgresql.conf', "wal_level = $wal_level\n");
	$node->restart;
	my $aside = Clients->start($node, $round % 4 > 1 ? 'CHECKPOINT;' : ());
	my %clients = $round % 2
	  ? (busy => Clients->start($node, @open), twin => Clients->start($node, ('BEGIN;' . (" $twin" x 2000)) x 2))
	  : (busy => Clients->start($node, @commits), twin => Clients->start($node, ($twin) x 2));
	sleep(0.3 + rand(0.4));
	$node->stop('immediate');
	my $problems = join '', map { $_->finish } $aside, values %clients;
	$node->start;
	my $count = 0;
	for my $name (sort keys %clients)
	{
		my $sum  = Clients::summary($clients{$name}->files);
		my $next = $node->safe_psql('postgres', "SELECT instaid.next_ticket('$name')");
		$problems .= "$name: $sum->{duplicates} duplicates\n" if $sum->{duplicates};
		$problems .= "$name: $sum->{first} came after $last{$name}\n" if $sum->{count} && $sum->{first} <= $last{$name};
		$problems .= "$name: $next came after $sum->{last}\n" if $next <= $sum->{last};
		$last{$name} = $next;
		$count += $sum->{count};
	}
	is($problems, '', "round $round, wal_level = $wal_level: $count values, and those after the crash are above them");
}
$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP:|XX000|PANIC/, 'the server has nothing to complain of');

### First use: 32 sessions race for each of 10 names; every other one rolls back.

$node = Clients::server('race', 'instaid.auto_create_tickets = on', 'instaid.ticket_server = 2', 'instaid.ticket_servers = 3');
my $gate = Clients::session($node);
$gate->('SELECT pg_advisory_lock(1)');
my $race = PostgreSQL::Test::Utils::tempdir;
my @racers;
for my $i (0 .. 31)
{
	my $script = "SELECT pg_advisory_lock_shared(1);\n";
	for my $name (1 .. 10)
	{
		my $take = "SELECT 'race $name', instaid.next_ticket('race $name');\n";
		$script .= $i % 2 ? "BEGIN;\n$take$take${take}ROLLBACK;\n" : $take x 3;
	}
	append_to_file("$race/$i.sql", $script);
	push @racers, IPC::Run::start([ 'psql', '-XAtq', '-F', '=', '-f', "$race/$i.sql", '-d', $node->connstr('postgres') ],
		'>', "$race/$i.out", '2>&1');
}
$node->poll_query_until('postgres', q{
	SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 1 AND NOT granted}, 32) or die 'the racers do not come';
$gate->('SELECT pg_advisory_unlock(1)');
$_->finish for @racers;
my $all = join '', map { slurp_file("$race/$_.out") } 0 .. 31;
is(join("\n", grep { !/^(race \d+=\d+|)$/ } split /\n/, $all), '', 'first use in 32 sessions at once: no error');
for my $name (1 .. 10)
{
	my @values = sort { $a <=> $b } $all =~ /^race $name=(\d+)$/mg;
	is("@values", join(' ', map { 3 * $_ - 1 } 1 .. 96), "race $name: 96 values from the server's offset on, none twice, none left out");
}
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}), 0, 'no lock is left');
# A session that is cancelled while the worker is at it leaves no lock, either.
# The worker waits for the gate, which is that of create_ticket().
my $holder = Clients::session($node);
$holder->(q{BEGIN; SELECT instaid.create_ticket('held')});
my ($ret, $stdout, $stderr) = $node->psql('postgres', q{SET lock_timeout = '100ms'; SELECT instaid.next_ticket('held')});
like($stderr, qr/lock timeout/, 'first use waits for who is creating the ticket');
$holder->('ROLLBACK');
is($node->safe_psql('postgres', q{SELECT instaid.next_ticket('held')}), 2, '... and creates it if that one gives up');
# A worker that waits for its own caller is not seen by the deadlock detector,
# but the wait has an end, or can be cancelled.
$holder->(q{BEGIN; SELECT instaid.create_ticket('gone'); SELECT instaid.drop_ticket('gone'); SET lock_timeout = '100ms'});
like($holder->(q{SELECT instaid.next_ticket('gone')}), qr/lock timeout.*\n.*creating ticket "gone" on first use/s, 'a transaction cannot lock itself out for ever');
$holder->(q{ROLLBACK; BEGIN; SELECT instaid.create_ticket('left'); SELECT instaid.drop_ticket('left'); SET statement_timeout = '500ms'});
like($holder->(q{SELECT instaid.next_ticket('left')}), qr/statement timeout/, '... and can be cancelled');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 3}), 0, '... which leaves no lock');
$holder->('ROLLBACK');
is($node->safe_psql('postgres', q{SELECT instaid.next_ticket('left')}), 2, '... and the ticket to the next who comes');

# What the worker says gets to the caller; also when it cannot even connect.
$node->safe_psql('postgres', q{CREATE ROLE app LOGIN; GRANT CREATE ON SCHEMA instaid_tickets TO app});
my $app = Clients::session($node);
$app->('SET SESSION AUTHORIZATION app');
is($app->(q{SELECT instaid.next_ticket('by app')}), 2, 'first use with the rights of a role');
is($node->safe_psql('postgres', q{SELECT relowner::regrole FROM pg_class WHERE relname = 'by app'}), 'app', '... whose the ticket is');
($ret, $stdout, $stderr) = $node->psql('postgres', q{SELECT instaid.next_ticket('not here')}, connstr => $node->connstr('postgres') . ' user=app');
is($stderr, '', '... also when it logs in');
# The extension is trusted; who creates it may create tickets, and let others do so.
$node->safe_psql('postgres', 'CREATE DATABASE theirs OWNER app');
is($node->safe_psql('theirs', q{
	CREATE EXTENSION instaid;
	SELECT instaid.create_ticket('photos'), instaid.next_ticket('photos'), instaid.next_ticket('new');
	GRANT CREATE ON SCHEMA instaid_tickets TO PUBLIC;}, connstr => $node->connstr('theirs') . ' user=app'),
	'instaid_tickets.photos|1|2', 'an owner of a database has tickets of his own');
$node->append_conf('postgresql.conf', "max_worker_processes = 0\n");
$node->restart;
($ret, $stdout, $stderr) = $node->psql('postgres', q{SELECT instaid.next_ticket('nobody')});
like($stderr, qr/no background worker is free to create ticket "nobody".*max_worker_processes/s, 'no worker: a clear error');
is($node->safe_psql('postgres', q{SELECT instaid.next_ticket('race 1')}), 290, '... and tickets that are there go on');

### A dump carries tickets, their values and who may use them.

$node->safe_psql('postgres', q{
	SELECT instaid.create_ticket('Odd "name"', 3, 5, 1000, 50, 'integer');
	SELECT * FROM instaid.lease_ticket('Odd "name"', 10);
	GRANT USAGE ON SEQUENCE instaid_tickets."Odd ""name""" TO app;
	CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT instaid.next_ticket('race 1'));
	INSERT INTO photos DEFAULT VALUES;
	CREATE DATABASE restored});
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('postgres') ], 'pg_dump');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr('restored'), $dump ], 'pg_restore');
my $tickets = 'SELECT * FROM instaid.tickets ORDER BY name';
is($node->safe_psql('restored', $tickets), $node->safe_psql('postgres', $tickets), 'it has the tickets and their values');
is($node->safe_psql('restored', q{SET ROLE app; SELECT instaid.next_ticket('Odd "name"')}), 1053, '... and who may use them');
is($node->safe_psql('restored', 'INSERT INTO photos DEFAULT VALUES RETURNING id'), 296, '... and defaults that take of them');
is($node->safe_psql('restored', q{SET ROLE app; SELECT instaid.create_ticket('created there')}), 'instaid_tickets."created there"', '... and who may create them');
$node->stop;

### Two servers and a third.  A client asks a list of hosts, another one first
### each time; when a server goes away under a query it asks again.

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
			my $sql = q{SELECT current_setting('port'), instaid.next_ticket('photos')};
			$answer = `psql -XAtq -F ' ' -d "dbname=postgres host=$host port=$port" -c "$sql" 2>>$file.err`;
			last if $? == 0;
		}
		print $out $answer || "failure\n";
	}
	POSIX::_exit(0);
}

# values by port, in the order of each client
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

# until so many more have come from each of these servers
sub wait_for
{
	my ($more, @nodes) = @_;
	my $before = received();
	for (1 .. 1800)
	{
		my $now = received();
		return if !grep { @{ $now->{ $_->port } // [] } < @{ $before->{ $_->port } // [] } + $more } @nodes;
		sleep(0.1);
	}
	die 'the clients get nothing';
}

my ($odd, $even) = map { Clients::server($_) } 'odd', 'even';
$odd->safe_psql('postgres', q{SELECT instaid.create_ticket('photos', 1, 2)});
$even->safe_psql('postgres', q{SELECT instaid.create_ticket('photos', 2, 2)});
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
is($received->{failure}, undef, 'odd and even: no client fails while one is killed and brought back');
is(scalar(grep { $_ % 2 != 1 } @{ $received->{ $odd->port } }), 0, '... one gives ' . @{ $received->{ $odd->port } } . ' odd values');
is(scalar(grep { $_ % 2 != 0 } @{ $received->{ $even->port } }), 0, '... the other ' . @{ $received->{ $even->port } } . ' even ones');
my %seen;
is(scalar(grep { $seen{$_}++ } map { @$_ } values %$received), 0, '... none of them twice');

# The third joins, as docs/tickets.md has it, while the clients go on.
my $third = Clients::server('third');
my $boundary = 3 * (10000 + $odd->safe_psql('postgres', q{SELECT last_value FROM instaid.tickets}));
($ret, $stdout, $stderr) = $odd->psql('postgres', qq{SELECT instaid.restripe_ticket('photos', 1, 3, $boundary)});
like($stderr, qr/is not guarded/, 'a third server: not without the guard');
$_->safe_psql('postgres', qq{SELECT instaid.guard_ticket('photos', $boundary)}) for $odd, $even;
wait_for(20, $odd, $even);
$odd->safe_psql('postgres', qq{SELECT instaid.restripe_ticket('photos', 1, 3, $boundary)});
wait_for(20, $odd, $even);
$third->safe_psql('postgres', qq{SELECT instaid.create_ticket('photos', 3, 3, $boundary + 1)});
serve($odd, $even, $third);
wait_for(20, $odd, $even, $third);
$even->safe_psql('postgres', qq{SELECT instaid.restripe_ticket('photos', 2, 3, $boundary)});
wait_for(50, $odd, $even, $third);
append_to_file("$dir/stop", '');
waitpid $_, 0 for @clients;

$received = received();
is($received->{failure}, undef, '... no client fails while it joins');
my ($server, %slips) = (0);
for my $n ($odd, $even, $third)
{
	$server++;
	$slips{$server} = grep { $_ > $boundary && $_ % 3 != $server % 3 } @{ $received->{ $n->port } };
	cmp_ok(scalar(grep { $_ > $boundary } @{ $received->{ $n->port } }), '>=', 50, "... server $server gives values above the boundary");
}
is(join(' ', map { $slips{$_} } 1 .. 3), '0 0 0', '... each of its own residue');
%seen = ();
my $count = map { @$_ } values %$received;
is(scalar(grep { $seen{$_}++ } map { @$_ } values %$received), 0, "... none of $count comes twice");

$_->stop for $odd, $even, $third;
unlike(slurp_file($_->logfile), qr/TRAP:|XX000|PANIC/, '... the server has nothing to complain of') for $odd, $even, $third;

done_testing();
