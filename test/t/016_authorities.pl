# Faults of an authority, a server that tickets take their values from: it issues
# values of another authority, or sends errors that are not valid text.  Roles without
# rights on its sequences try to stop it.  pg_regress has one server, and cannot set
# the clock.
#
# packages: faketime

use strict;
use warnings;

use IO::Socket::INET;
use IPC::Run ();
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use Clients;
use Docs;
use Clock;
use Segments;
use Sources;

my $dir = PostgreSQL::Test::Utils::tempdir;

sub failure
{
	my ($node, $name) = @_;
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "SET instaid.segment_timeout = '60s'; SELECT instaid.next_ticket('$name')");
	return $stderr;
}

# A session of another role
sub session_as
{
	my ($role, $node) = @_;
	local $ENV{PGUSER} = $role;
	return Clients::session($node);
}

my ($left, $right) = map { authority($_) } 'left', 'right';
my $clock = Clock->new;
my $one = PostgreSQL::Test::Cluster->new('one');
$one->init;
$one->append_conf('postgresql.conf', "$_\n") for 'log_statement = none', q{shared_preload_libraries = 'instaid'}, 'autovacuum = off';
$clock->start($one);
$one->safe_psql('postgres', 'CREATE EXTENSION instaid');
my $two = Clients::server('two', q{shared_preload_libraries = 'instaid'});

### Two authorities that issue the same values

my $overlap = qr/server "[^"]*" gives values that server "[^"]*" gives, too: START \d+ INCREMENT \d+, and START \d+ INCREMENT \d+/;
sequence($_, 'same', 'INCREMENT 2 START 1') for $left, $right;
create($one, 'same', 10, [$left, $right]);
create($two, 'same', 10, [$right, $left]);
for my $node ($one, $two)
{
	like(failure($node, 'same'), $overlap, 'two authorities that both have START 1: refused, by ' . $node->name);
	is(segment($node, 'same', 'sources_overlap, refills'), 't|0', '... and the view shows the overlap');
	like(slurp_file($node->logfile), qr/WARNING:  could not refill ticket "same"\n.*$overlap/, '... and the log shows it');
	is($node->safe_psql('postgres', q{SELECT severity, object, problem FROM instaid.audit() WHERE object ~ 'same'}), 'error|instaid_tickets.same|two servers of its source give the same values', '... and audit() finds it');
}
is($left->safe_psql('postgres', 'SELECT is_called FROM instaid_tickets.same'), 'f', '... and no value is taken');
# one of them is corrected
$right->safe_psql('postgres', 'ALTER SEQUENCE instaid_tickets.same START 2 RESTART');
my @mended = (retry($one, 'same'), retry($two, 'same'));
is("@mended", '1 2', '... until one of them has another START');
is(segment($one, 'same', 'sources_overlap'), 'f', '... and the view shows no overlap');
is($one->safe_psql('postgres', q{SELECT problem FROM instaid.audit() WHERE object ~ 'same'}), '', '... and audit() finds nothing any more');

# an overlap is also found if one of them is away at first, and if increments differ
for my $case ([ 'INCREMENT 2 START 1', 'INCREMENT 2 START 7' ], [ '', '' ], [ 'INCREMENT 2 START 1', 'INCREMENT 3 START 3' ], [ 'INCREMENT 4 START 2', 'INCREMENT 6 START 4' ])
{
	my ($first, $second) = @$case;
	my $name = "$first / $second";
	sequence($left, $name, $first);
	sequence($right, $name, $second);
	create($one, $name, 10, [$left, $right]);
	$right->stop;
	my @taken = take($one, $name, 5);
	$right->start;
	$left->stop;
	# the values that are left in the buffer, and then an error
	my $error = '';
	for (1 .. 100)
	{
		$error = failure($one, $name);
		last if $error;
	}
	like($error, $overlap, "$name: the other one is refused");
	$left->start;
}
# these have no value in common
for my $case ([ 'INCREMENT 2 START 1', 'INCREMENT 2 START 1000' ], [ 'INCREMENT 4 START 1', 'INCREMENT 6 START 2' ],
	[ 'INCREMENT 3 START 301', 'INCREMENT 2 START 2 MAXVALUE 300' ], [ 'MAXVALUE 1000', 'START 1001' ])
{
	my ($first, $second) = @$case;
	my $name = "$first / $second";
	sequence($left, $name, $first);
	sequence($right, $name, $second);
	create($one, $name, 10, [$left, $right]);
	create($two, $name, 10, [$right, $left]);
	my @taken = (take($one, $name, 30), take($two, $name, 30));
	is(scalar(@taken) . ' ' . duplicates(@taken), '60 0', "$name: no value in common, and both serve");
}

# From two servers to three, by the steps of docs/tickets.md.  Each is restriped while it
# is used.
sequence($left, 'restriped', 'INCREMENT 2 START 1');
sequence($right, 'restriped', 'INCREMENT 2 START 2');
create($one, 'restriped', 10, [$left, $right]);
create($two, 'restriped', 10, [$right, $left]);
my @restriped = (take($one, 'restriped', 30), take($two, 'restriped', 30));
$_->safe_psql('postgres', 'ALTER SEQUENCE instaid_tickets.restriped MAXVALUE 3000') for $left, $right;
push @restriped, take($_, 'restriped', 30) for $one, $two;
$left->safe_psql('postgres', 'ALTER SEQUENCE instaid_tickets.restriped NO MAXVALUE INCREMENT 3 START 3001 RESTART');
push @restriped, take($_, 'restriped', 60) for $one, $two;
$right->safe_psql('postgres', 'ALTER SEQUENCE instaid_tickets.restriped NO MAXVALUE INCREMENT 3 START 3002 RESTART');
push @restriped, take($_, 'restriped', 100) for $one, $two;
is(scalar(@restriped) . ' ' . duplicates(@restriped), '440 0', 'a change of the number of servers is no overlap, and no value comes twice');
is(scalar(grep { $_ > 3000 && $_ % 3 == 0 } @restriped), 0, '... and the values of the third server are not used');
is(join(' ', map { segment($_, 'restriped', 'failures') } $one, $two), '0 0', '... and no lease fails');
# while a lease waits for the lock that leases take
sequence($left, 'drawn', 'INCREMENT 2 START 1');
create($one, 'drawn', 10, [$left]);
my $drawn = $left->safe_psql('postgres', q{SELECT 'instaid_tickets.drawn'::regclass::oid});
my $leaser = Clients::session($left);
$leaser->("SELECT pg_advisory_lock($drawn, 0)");
my $draws = IPC::Run::start([ 'psql', '-XAtq', '-d', $one->connstr('postgres'), '-c', q{SET instaid.segment_timeout = '120s'},
	'-c', q{SELECT instaid.next_ticket('drawn')} ], '>', "$dir/drawn", '2>&1');
$left->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'instaid' AND wait_event = 'PgSleep'}) or die;
$left->safe_psql('postgres', 'ALTER SEQUENCE instaid_tickets.drawn INCREMENT 3 START 3001 RESTART');
$leaser->('SELECT pg_advisory_unlock_all()');
$draws->finish;
my $after = slurp_file("$dir/drawn");
like($after, qr/\A\d+\n\z/, 'an authority is restriped during a lease: the ticket has a value');
is(join(' ', $after >= 3001, $after % 3, segment($one, 'drawn', 'failures')), '1 1 0', '... of the new residue, and the lease does not fail');
# a single authority
sequence($left, 'alone', '');
create($one, 'alone', 10, [$left]);
my @alone = take($one, 'alone', 5);
$left->safe_psql('postgres', 'ALTER SEQUENCE instaid_tickets.alone INCREMENT 5 START 1004 RESTART');
push @alone, take($one, 'alone', 80);
is(duplicates(@alone) . ' ' . $alone[-1] % 5, '0 4', 'a single server is restriped');
# START is raised without RESTART: the authority would still issue values of the other one
sequence($left, 'below', 'INCREMENT 2 MAXVALUE 1001');
sequence($right, 'below', 'INCREMENT 2');
$right->safe_psql('postgres', 'ALTER SEQUENCE instaid_tickets.below START 100001');
create($one, 'below', 10, [$left, $right]);
create($two, 'below', 10, [$right, $left]);
my @below = (take($one, 'below', 15), take($two, 'below', 15));
is(scalar(@below) . ' ' . duplicates(@below), '30 0', 'an authority stands below its START: no value comes twice');
like(segment($two, 'below', 'failure'), qr/instaid_tickets\.below stands below its START, 100001, at \d+/, '... and the view shows why');
$right->safe_psql('postgres', 'ALTER SEQUENCE instaid_tickets.below RESTART');
$left->safe_psql('postgres', q{SELECT setval('instaid_tickets.below', 1001)});
push @below, take($_, 'below', 200) for $one, $two;
is(duplicates(@below) . ' ' . ($below[-1] > 100000), '0 1', '... until it is restarted');
# MAXVALUE is raised during a lease, after it was compared
sequence($left, 'raised', 'MAXVALUE 10');
create($one, 'raised', 10, [$left]);
my $raised = $left->safe_psql('postgres', q{SELECT 'instaid_tickets.raised'::regclass::oid});
$leaser->("SELECT pg_advisory_lock($raised, 0)");
$draws = IPC::Run::start([ 'psql', '-XAtq', '-d', $one->connstr('postgres'), '-c', q{SET instaid.segment_timeout = '120s'},
	'-c', q{SELECT instaid.next_ticket('raised')} ], '>', "$dir/raised", '2>&1');
$left->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'instaid' AND wait_event = 'PgSleep'}) or die;
$left->safe_psql('postgres', q{ALTER SEQUENCE instaid_tickets.raised NO MAXVALUE; SELECT setval('instaid_tickets.raised', 100)});
$leaser->('SELECT pg_advisory_unlock_all()');
$draws->finish;
is(slurp_file("$dir/raised"), "111\n", 'values above the MAXVALUE that was compared are skipped');
is(segment($one, 'raised', 'failures'), 0, '... and the lease does not fail');
# one authority is away, and the other one is altered to issue its values
sequence($left, 'away', 'INCREMENT 2 START 1');
sequence($right, 'away', 'INCREMENT 2 START 2');
create($one, 'away', 10, [$left, $right]);
my @away = take($one, 'away', 1);
$left->stop;
push @away, take($one, 'away', 1) while @away < 200 && $away[-1] % 2;
is($away[-1] % 2, 0, 'one authority is away');
$right->safe_psql('postgres', 'ALTER SEQUENCE instaid_tickets.away INCREMENT 1');
my (undef, undef, $away) = $one->psql('postgres', q{SET instaid.segment_timeout = '60s'; SELECT instaid.next_ticket('away') FROM generate_series(1, 3000)});
like($away, $overlap, '... and the other one, which now issues its values, is refused');
is(segment($one, 'away', 'sources_overlap'), 't', '... and the view shows the overlap');
$left->start;
# one server with two names
sequence($left, 'aliases', '');
my ($alias) = source($one, [$left], connect_timeout => 57) =~ /'(.*)'/;
$one->safe_psql('postgres', qq{SELECT instaid.create_ticket('aliases', step => 10, source => ARRAY['left', '$alias'])});
is(join(' ', take($one, 'aliases', 3)), '1 2 3', 'a server with two names does not overlap with itself');
# two databases of one server
$left->safe_psql('postgres', 'CREATE DATABASE other');
$left->safe_psql('other', 'CREATE SCHEMA instaid_tickets; CREATE SEQUENCE instaid_tickets.databases');
sequence($left, 'databases', '');
my ($other) = source($one, [$left], dbname => 'other') =~ /'(.*)'/;
$one->safe_psql('postgres', qq{SELECT instaid.create_ticket('databases', step => 10, source => ARRAY['left', '$other'])});
like(failure($one, 'databases'), $overlap, 'two databases of one server that issue the same values: refused');

### Roles without rights cannot stop others.

$_->safe_psql('postgres', 'CREATE ROLE stranger LOGIN') for $left, $one;
sequence($left, 'locked', '');
create($_, 'locked', 100, [$left]) for $one, $two;
my $key = $left->safe_psql('postgres', q{SELECT 'instaid_tickets.locked'::regclass::oid});
my $stranger = session_as('stranger', $left);
is($stranger->("SELECT count(pg_advisory_lock($key, n)) FROM generate_series(0, 99) AS n"), '100', 'a role without rights holds the lock that leases take');
my @runs;
for my $node ($one, $two)
{
	my $out = "$dir/locked " . $node->name;
	push @runs, [ IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', q{SET instaid.segment_timeout = '60s'},
		'-c', q{SELECT instaid.next_ticket('locked') FROM generate_series(1, 3000)} ], '>', $out, '2>&1'), $out ];
}
$_->[0]->finish for @runs;
my @locked = map { split /\n/, slurp_file($_->[1]) } @runs;
is(scalar(grep { /^\d+$/ } @locked) . ' ' . duplicates(@locked), '6000 0', '... two servers take values, and none comes twice');
is(join(' ', map { segment($_, 'locked', 'failures') } $one, $two), '0 0', '... and no lease fails');
$stranger->('SELECT pg_advisory_unlock_all()');

my $schema = $one->safe_psql('postgres', q{SELECT 'instaid_tickets'::regnamespace::oid});
$stranger = session_as('stranger', $one);
$stranger->("SELECT pg_advisory_lock($schema, hashtext('wanted'))");
my ($ret, $stdout, $stderr) = $one->psql('postgres', q{SET lock_timeout = '10s'; SELECT instaid.create_ticket('wanted')});
is($stderr, '', 'a role without rights cannot prevent the creation of a ticket');
$stranger->('SELECT pg_advisory_unlock_all()');
$stranger->(q{BEGIN});
like($stranger->(q{SELECT instaid._lock_ticket_name('wanted too')}), qr/permission denied for schema instaid_tickets/, '... and cannot take the lock that create_ticket() takes');
$stranger->(q{ROLLBACK});

# a call that is refused holds no lock on the sequence
$stranger->('BEGIN; SAVEPOINT s');
for my $call (q{next_ticket('locked')}, q{lease_ticket('locked', 1)})
{
	like($stranger->("SELECT instaid.$call"), qr/ERROR:  permission denied for sequence locked\nHINT:  Its owner can permit it/, "$call by a role without rights");
	$stranger->('ROLLBACK TO s');
}
($ret, $stdout, $stderr) = $one->psql('postgres', q{SET lock_timeout = '2s'; ALTER SEQUENCE instaid_tickets.locked CACHE 200});
is($stderr, '', '... holds no lock, even if its transaction is open');
$stranger->('ROLLBACK');

### Answers that are not valid

# Two servers send a long error that is not valid UTF-8, one of them after a connection,
# the other one after a query.  A third server answers with COPY.
my $nonsense = "broken \xff\xfe\xc3( bytes \e[31m\r\n\x01 and more ";

sub message
{
	my ($type, $body) = @_;
	return $type . pack('N', 4 + length $body) . $body;
}

for my $case ([ 'refuses', 20000 ], [ 'fails', 16777216 ], [ 'copies', 0 ])
{
	my ($name, $length) = @$case;
	my $error = message('E', "SFATAL\0VFATAL\0C28000\0M$nonsense" . ('y' x $length) . "\0\0");
	my $listening = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', ReuseAddr => 1) or die $!;
	my $liar = fork() // die;
	if ($liar == 0)
	{
		# since PostgreSQL 17, Cluster.pm dies of a signal, and then stops its servers
		$SIG{TERM} = 'DEFAULT';
		while (my $client = $listening->accept)
		{
			sysread($client, my $hello, 1024);
			if ($name ne 'refuses')
			{
				syswrite($client, message('R', pack 'N', 0) . message('Z', 'I'));
				sysread($client, my $query, 65536);
			}
			print $client $name eq 'copies' ? message('H', pack 'Cn', 0, 0) : $error;
			close $client;
		}
		POSIX::_exit(0);
	}
	my $port = $listening->sockport;
	$one->safe_psql('postgres', qq{
		CREATE SERVER "$name" FOREIGN DATA WRAPPER instaid OPTIONS (host '127.0.0.1', port '$port', dbname 'postgres', connect_timeout '60', sslmode 'disable');
		CREATE USER MAPPING FOR PUBLIC SERVER "$name" OPTIONS (user 'me');
		SELECT instaid.create_ticket('$name', step => 10, source => '$name')});
	my $said = failure($one, $name);
	if ($name eq 'copies')
	{
		like($said, qr/server "copies": unexpected answer, PGRES_COPY_OUT/, 'a server that answers with COPY: the error says so');
		kill 'TERM', $liar;
		waitpid $liar, 0;
		next;
	}
	like($said, qr/broken \?\?\?\( bytes \?\[31m \? and more y+/, "a server that $name: invalid bytes in its error are replaced");
	cmp_ok(length($said), '<', 1500, '... and a long error is cut');
	is(segment($one, $name, q{convert_from(convert_to(failure, 'UTF8'), 'UTF8') = failure AND length(failure) < 600}), 't', '... in the view, too');
	kill 'TERM', $liar;
	waitpid $liar, 0;
	close $listening;
}
cmp_ok(-s $one->logfile, '<', 1000000, '... in the log, too');

### Rights to see the reason of a failure

$left->safe_psql('postgres', 'CREATE ROLE app LOGIN');
$one->safe_psql('postgres', q{
	CREATE ROLE app LOGIN; CREATE ROLE owner LOGIN; CREATE ROLE watcher LOGIN; GRANT pg_read_all_stats TO watcher});
$one->safe_psql('postgres', q{
	CREATE SERVER nowhere FOREIGN DATA WRAPPER instaid OPTIONS (host '/nowhere/at/all', dbname 'postgres');
	CREATE USER MAPPING FOR owner SERVER nowhere OPTIONS (user 'me', password 'secret');
	GRANT USAGE ON FOREIGN SERVER nowhere TO owner;
	SELECT instaid.create_ticket('hidden', step => 10, source => 'nowhere')});
$one->safe_psql('postgres', q{
	GRANT USAGE ON SEQUENCE instaid_tickets.hidden TO app, watcher; GRANT CREATE ON SCHEMA instaid_tickets TO owner; ALTER SEQUENCE instaid_tickets.hidden OWNER TO owner});
my $superuser = $one->safe_psql('postgres', 'SELECT current_user');
for my $case ([ 'app', 0 ], [ 'watcher', 1 ], [ 'owner', 1 ], [ $superuser, 1 ])
{
	my ($role, $sees) = @$case;
	my ($ret, $stdout, $stderr) = $one->psql('postgres', qq{SET ROLE "$role"; SELECT instaid.next_ticket('hidden')});
	like($stderr, qr/ERROR:  ticket "hidden" has no values left from its source/, "$role: the ticket fails");
	my $shown = $stderr . $one->safe_psql('postgres', qq{SET ROLE "$role"; SELECT failure FROM instaid.segments WHERE name = 'hidden'});
	my @paths = $shown =~ m{nowhere/at/all}g;
	is(scalar(@paths), $sees ? 2 : 0, $sees ? '... and shows the reason' : '... and does not show file names');
	like($shown, qr/<insufficient privilege>/, '... but says that a privilege is missing') unless $sees;
}

# the alert of the documentation, for a role that has only pg_monitor
my ($alert) = grep { /^FROM instaid\.segments/m } map { $_->{text} } section_blocks('docs/operations.md', 'What to watch');
$one->safe_psql('postgres', 'CREATE ROLE monitor LOGIN IN ROLE pg_monitor');
like($one->safe_psql('postgres', "SET ROLE monitor; $alert"), qr{^hidden\|.*nowhere/at/all}m, 'a member of pg_monitor sees a ticket whose source fails');

### The last values before MAXVALUE

sequence($left, 'last', 'INCREMENT 2 MAXVALUE 50');
$left->safe_psql('postgres', q{SELECT setval('instaid_tickets.last', 41, false)});
create($one, 'last', 10, [$left]);
is(join(' ', take($one, 'last', 5)), '41 43 45 47 49', 'the last values, of a sequence that was set with is_called false');
like(failure($one, 'last'), qr/reached maximum value/, '... are the last');
sequence($left, 'huge', 'INCREMENT 4000000000000000000 START 1');
create($one, 'huge', 10, [$left]);
is(join(' ', take($one, 'huge', 3)), '1 4000000000000000001 8000000000000000001', 'a huge increment');
# a role that can write, but does not by default
$left->safe_psql('postgres', q{ALTER ROLE app SET default_transaction_read_only = on; GRANT USAGE ON SCHEMA instaid_tickets TO app});
sequence($left, 'readonly', '');
$left->safe_psql('postgres', 'GRANT USAGE ON SEQUENCE instaid_tickets.readonly TO app');
create($one, 'readonly', 10, [$left], user => 'app');
is(join(' ', take($one, 'readonly', 2)), '1 2', 'a role whose transactions are read-only by default');

### A ticket with a source, whose sequence was altered, is dumped and restored.

sequence($left, 'altered', '');
create($one, 'altered', 10, [$left]);
my @altered = take($one, 'altered', 3);
$one->safe_psql('postgres', 'ALTER SEQUENCE instaid_tickets.altered MINVALUE 1 MAXVALUE 1000 START 1 RESTART');
for my $format ('custom', 'plain')
{
	$one->safe_psql('postgres', "CREATE DATABASE restored_$format");
	$one->command_ok([ 'pg_dump', "--format=$format", '-f', "$dir/$format", '-t', 'instaid_tickets.altered', '-e', 'instaid', '-d', $one->connstr('postgres') ], "pg_dump, $format");
	$one->safe_psql("restored_$format", 'CREATE EXTENSION instaid');
	source($one, [$left], database => "restored_$format");
	$one->command_ok($format eq 'plain' ? [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/$format", '-d', $one->connstr("restored_$format") ]
		: [ 'pg_restore', '--exit-on-error', '-t', 'altered', '-d', $one->connstr("restored_$format"), "$dir/$format" ], '... and restore');
	push @altered, $one->safe_psql("restored_$format", q{SET instaid.segment_timeout = '60s'; SELECT instaid.next_ticket('altered')});
}
is(scalar(@altered) . ' ' . duplicates(@altered), '5 0', '... restored tickets take new values from the source');

### First use with no worker free

$one->stop;
$one->append_conf('postgresql.conf', 'max_worker_processes = 0');
$clock->start($one);
my @first;
my $began = time;
for my $i (1 .. 6)
{
	push @first, [ IPC::Run::start([ 'psql', '-XAtq', '-d', $one->connstr('postgres'), '-c', 'SET instaid.auto_create_tickets = on',
		'-c', q{SELECT instaid.next_ticket('first')} ], '>', "$dir/first $i", '2>&1'), "$dir/first $i" ];
}
# the clock is set back by an hour; waits are measured with another clock
sleep(1);
$clock->set(-3600);
$_->[0]->finish for @first;
my $took = time - $began;
my @errors = map { slurp_file($_->[1]) } @first;
is(scalar(grep { /ERROR:  (no background worker is free to create|could not create) ticket "first"/ } @errors), 6, 'six sessions find no worker');
cmp_ok($took, '<', 40, '... and do not wait one after the other');

# the timeout of a server that hangs does not change when the clock is set back
$one->stop;
$one->append_conf('postgresql.conf', 'max_worker_processes = 8');
$clock->set(0);
$clock->start($one);
sequence($_->[0], 'hung', "INCREMENT 2 START $_->[1]") for [ $left, 1 ], [ $right, 2 ];
create($one, 'hung', 10, [$left, $right], connect_timeout => 5);
my ($postmaster) = slurp_file($left->data_dir . '/postmaster.pid') =~ /^(\d+)/;
kill 'STOP', $postmaster;
my $caller = IPC::Run::start([ 'psql', '-XAtq', '-d', $one->connstr('postgres'), '-c', q{SET instaid.segment_timeout = '120s'},
	'-c', q{SELECT instaid.next_ticket('hung')} ], '>', "$dir/hung", '2>&1');
$one->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'instaid segments'});
sleep(1);
$clock->set(-3600);
wait_segment($one, 'hung', 'refills > 0');
like(segment($one, 'hung', 'failure'), qr/no answer within 5000 ms/, 'a server that hangs reaches its timeout, even if the clock is set back');
kill 'CONT', $postmaster;
$caller->finish;

$_->stop for $one, $two, $left, $right;
unlike(slurp_file($_->logfile), qr/TRAP:|XX000|PANIC/, 'the server logged no error of its own') for $one, $two, $left, $right;

done_testing();
