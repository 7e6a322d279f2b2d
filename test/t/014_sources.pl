# Segments that are leased from other servers, which do not have instaid.  These servers
# are killed and restarted, do not answer, or serve other clients, too.  pg_regress has
# one server.

use strict;
use warnings;

use File::Spec;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;
use Segments;
use Sources;

my @preload = (q{shared_preload_libraries = 'instaid'});
my $patient = q{SET instaid.segment_timeout = '120s';};
my $dir = PostgreSQL::Test::Utils::tempdir;

sub failure
{
	my ($node, $name) = @_;
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT instaid.next_ticket('$name')");
	return $stderr;
}

sub log_count
{
	my ($node, $pattern) = @_;
	return scalar(() = slurp_file($node->logfile) =~ /$pattern/g);
}

# WAL is flushed only if somebody waits for it
my @quiet = ('wal_writer_delay = 10s', 'autovacuum = off', 'checkpoint_timeout = 1d', 'synchronous_commit = off', 'wal_level = replica', 'max_wal_senders = 1');
my ($odd, $even) = map { authority($_, @quiet) } 'odd', 'even';
# a role that needs a password
$odd->safe_psql('postgres', q{CREATE ROLE leaser LOGIN PASSWORD 'secret'; GRANT USAGE ON SCHEMA instaid_tickets TO leaser});
{
	my $hba = slurp_file($odd->data_dir . '/pg_hba.conf');
	unlink $odd->data_dir . '/pg_hba.conf';
	$odd->append_conf('pg_hba.conf', "local all leaser scram-sha-256\n$hba");
	$odd->reload;
}
my ($one, $two) = map { Clients::server($_, @preload) } 'one', 'two';
my %leaser = (user => 'leaser', password => 'secret');

### Odd and even

sequence($odd, 'photos', 'INCREMENT 2 START 1');
sequence($even, 'photos', 'INCREMENT 2 START 2');
create($_, 'photos', 100, [$odd, $even]) for $one, $two;
my @from_one = take($one, 'photos', 9);
my @from_two = take($two, 'photos', 9);
is("@from_one", '1 3 5 7 9 11 13 15 17', 'a server leases from the first authority');
is("@from_two", '201 203 205 207 209 211 213 215 217', '... another server leases the next segment');
push @from_one, take($one, 'photos', 1);
wait_segment($one, 'photos', 'spare_left > 0');
is(segment($one, 'photos', 'next_value, last_value, spare_first, spare_last'), '21|199|401|599', '... the first server leases again when a tenth is used');
is($one->safe_psql('postgres', q{SELECT server, servers, last_value, source IS NOT NULL FROM instaid.tickets WHERE name = 'photos'}), '|||t', '... and the view of tickets does not show the stripe');

$odd->stop('immediate');
push @from_one, take($one, 'photos', 1000);
push @from_two, take($two, 'photos', 1000);
my @odd = grep { $_ % 2 } @from_one;
is(join(' ', @odd[ 190 .. 199 ]), '581 583 585 587 589 591 593 595 597 599', 'one authority is killed: the values that were leased from it are used');
is(scalar(@odd), 200, '... to the last value');
is(scalar(@from_one) - @odd, 810, '... and then the values of the other authority');
is(duplicates(@from_one, @from_two), 0, '... and no value comes twice');
is(segment($one, 'photos', 'failures, failure ~ \'connection to server\''), '1|t', '... and the view shows the failure');
is(log_count($one, qr/WARNING:  could not refill ticket "photos" from one of its servers/), 1, '... and the log shows it once');

### Both authorities are away.

# how much of a segment is used by now depends on how long each of them lasted
for (1 .. 1000)
{
	last if segment($one, 'photos', 'spare_left > 0') eq 't';
	push @from_one, take($one, 'photos', 10);
	sleep(0.1);
}
$even->stop('immediate');
my $left = segment($one, 'photos', 'values_left + spare_left');
push @from_one, take($one, 'photos', $left);
is(duplicates(@from_one, @from_two), 0, "both are killed: the $left values in the buffer are used");
my $error = failure($one, 'photos');
like($error, qr/ERROR:  ticket "photos" has no values left from its source\nDETAIL:  The last attempt, at .*, failed: .*connection to server.*; .*connection to server.*\nHINT:  The background worker asks the source again/, '... and then an error shows the failures of both');
failure($one, 'photos') for 1 .. 30;
cmp_ok(segment($one, 'photos', 'failures'), '<', 15, '... not every call asks again');
is(log_count($one, qr/WARNING:  could not refill ticket "photos"\n/), 1, '... and the log has one warning');

$odd->start;
my $again = retry($one, 'photos');
isnt($again, '', 'when one of them is back, the ticket goes on by itself');
push @from_one, $again, take($one, 'photos', 1000);
is(duplicates(@from_one, @from_two), 0, '... with new values');
is(log_count($one, qr/LOG:  ticket "photos" can be refilled again/), 1, '... and the log says so');
$even->start;

### An authority flushes the WAL of the values that it issues.

sequence($odd, 'durable', '');
create($_, 'durable', 5, [$odd]) for $one, $two;
my $holder = Clients::session($odd);
# this writes the WAL that covers the next 32, and does not flush it
$holder->(q{SELECT nextval('instaid_tickets.durable'); CHECKPOINT});
$holder->(q{BEGIN; SELECT nextval('instaid_tickets.durable')});
my @before = take($one, 'durable', 5);
$odd->stop('immediate');
$odd->start;
my @after = take($two, 'durable', 20);
is("@before", '3 4 5 6 7', 'a segment, while the transaction that wrote its WAL record is open');
is(duplicates(@before, @after), 0, '... after a crash, the authority issues other values');
cmp_ok($after[0], '>', 7, '... above the first ones');

# If it has a synchronous standby, it waits for it.  A commit whose wait is cancelled gives
# only a warning.
sub set_standbys
{
	my ($names) = @_;
	$odd->append_conf('postgresql.conf', "synchronous_standby_names = '$names'\n");
	$odd->reload;
	$odd->poll_query_until('postgres', "SELECT current_setting('synchronous_standby_names') = '$names'") or die;
	return;
}

$odd->safe_psql('postgres', 'ALTER ROLE leaser SET client_min_messages = error');
for my $case ([ 'replicated' ], [ 'replicated, without warnings', %leaser ])
{
	my ($name, %options) = @$case;
	sequence($odd, $name, '');
	$odd->safe_psql('postgres', qq{GRANT USAGE ON SEQUENCE instaid_tickets."$name" TO leaser});
	create($one, $name, 5, [$odd], %options);
	set_standbys('nobody');
	my $call = IPC::Run::start([ 'psql', '-XAtq', '-d', $one->connstr('postgres'), '-c', $patient, '-c', "SELECT instaid.next_ticket('$name')" ],
		'<', File::Spec->devnull, '>', "$dir/$name", '2>&1');
	my $waiting = q{FROM pg_stat_activity WHERE application_name = 'instaid' AND wait_event = 'SyncRep'};
	$odd->poll_query_until('postgres', "SELECT count(*) = 1 $waiting") or die;
	$odd->safe_psql('postgres', "SELECT pg_cancel_backend(pid) $waiting");
	$call->finish;
	like(slurp_file("$dir/$name"), qr/\AERROR:  ticket "$name" has no values left from its source\nDETAIL:  .*: canceling wait for synchronous replication due to user request\n/, "$name: an authority's wait for its standby is cancelled, and it issues no value");
	set_standbys('');
	cmp_ok(retry($one, $name), '>', 5, '... and later a value above that segment');
}
$odd->safe_psql('postgres', 'ALTER ROLE leaser RESET client_min_messages');

### Others use the same sequence.

sequence($odd, 'shared', '');
create($_, 'shared', 20, [$odd]) for $one, $two;
my $others = Clients->start($odd, (q{SELECT nextval('instaid_tickets.shared');}) x 2);
my @leased;
push @leased, take($one, 'shared', 400), take($two, 'shared', 400) for 1 .. 3;
is($others->stop =~ s/.*terminating connection.*\n//gr, '', 'others call nextval() at the same time');
my @drawn = map { split /\n/, slurp_file($_) } $others->files;
is(duplicates(@leased, @drawn), 0, '... ' . @drawn . ' times, and no value comes twice');

# with CACHE, nextval() does not split a segment
sequence($odd, 'cached', 'INCREMENT 3 CACHE 50');
create($one, 'cached', 70, [$odd]);
$others = Clients->start($odd, (q{SELECT nextval('instaid_tickets.cached');}) x 2);
wait_segment($one, 'cached', 'spare_left > 0') if take($one, 'cached', 10);
my @segments = split /\|/, segment($one, 'cached', '(last_value - next_value) / 3 + 11, spare_left');
$others->stop;
is(scalar(grep { $_ % 50 } @segments), 0, "segments of @segments values are whole blocks of a CACHE of 50");

### A source that does not answer does not delay others.

sequence($odd, $_, '') for 'stuck', 'fine';
create($one, $_, 10, [$odd]) for 'stuck', 'fine';
$one->safe_psql('postgres', q{SELECT instaid.create_ticket('own', step => 10)});
$holder = Clients::session($odd);
$holder->(q{BEGIN; ALTER SEQUENCE instaid_tickets.stuck NO CYCLE});
my ($ret, $stdout, $stderr) = $one->psql('postgres', q{SET instaid.segment_timeout = '300ms'; SELECT instaid.next_ticket('stuck')});
like($stderr, qr/DETAIL:  The source has not answered within 300 ms/, 'a source does not answer');
my @fine = take($one, 'fine', 200);
is(duplicates(@fine, 0), 0, '... another ticket takes values from the same server');
is(join(' ', take($one, 'own', 200)), join(' ', 1 .. 200), '... and a ticket without a source goes on');
sequence($odd, 'dropped', '');
create($one, 'dropped', 10, [$odd]);
$holder->(q{ALTER SEQUENCE instaid_tickets.dropped NO CYCLE});
$one->psql('postgres', q{SET instaid.segment_timeout = '10ms'; SELECT instaid.next_ticket('dropped')});
($ret, $stdout, $stderr) = $one->psql('postgres', q{SET lock_timeout = '20s'; SELECT instaid.drop_ticket('dropped')});
is($stderr, '', '... and a ticket that waits can be dropped');
is(segment($one, 'fine', 'failures, bypasses') . ' ' . segment($one, 'own', 'failures, bypasses'), '0|0 0|0', '... and the other tickets had no failure');
$holder->('COMMIT');
wait_segment($one, 'stuck', 'refills > 0 OR failures > 0');
cmp_ok(retry($one, 'stuck'), '>=', 1, '... and when the source answers, the ticket goes on');

# A server accepts connections, but does not answer.  The other one is asked.
sequence($_, 'hung', '') for $odd, $even;
create($one, 'hung', 10, [$odd, $even], connect_timeout => 4);
$one->safe_psql('postgres', 'CREATE DATABASE other');
$one->safe_psql('other', 'CREATE EXTENSION instaid');
create($one, 'hung', 1, [$odd], database => 'other', connect_timeout => 2);
my ($postmaster) = slurp_file($odd->data_dir . '/postmaster.pid') =~ /^(\d+)/;
kill 'STOP', $postmaster;
is(join(' ', take($one, 'hung', 3)), '1 2 3', 'one of two servers hangs: the other is asked');
like(segment($one, 'hung', 'failure'), qr/: no answer within 4000 ms/, '... and the view shows the failure');
$one->psql('other', q{SET instaid.segment_timeout = '10ms'; SELECT instaid.next_ticket('hung')});
($ret, $stdout, $stderr) = $one->psql('postgres', 'DROP DATABASE other');
is($stderr, '', '... and a database whose ticket waits can be dropped');
# as many leases as the worker may have files
my $few = Clients::server('few', @preload, 'max_files_per_process = 100');
my $source = source($few, [$odd]);
$few->safe_psql('postgres', qq{SELECT instaid.create_ticket('hung ' || i, source => $source) FROM generate_series(1, 40) AS i});
$few->psql('postgres', join('; ', q{SET instaid.segment_timeout = '1ms'}, map { "SELECT instaid.next_ticket('hung $_')" } 1 .. 40), on_error_stop => 0);
$few->poll_query_until('postgres', q{SELECT count(*) > 0 FROM instaid.segments WHERE failures > 0}) or die;
is($few->safe_psql('postgres', q{SELECT DISTINCT failure FROM instaid.segments WHERE failures > 0}),
	'server "odd": could not open a connection: the background worker has too many open files, or is out of memory', 'more tickets ask it than the worker can open files: the reason');
unlike(slurp_file($few->logfile), qr/exited with exit code/, '... and the worker goes on');
$few->stop;
kill 'CONT', $postmaster;

# a segment that takes the server too long ends after half of the timeout
sequence($odd, 'long', '');
create($one, 'long', 2147483647, [$odd], connect_timeout => 8);
my @long = take($one, 'long', 3);
is("@long", '1 2 3', 'a segment that takes its server too long');
cmp_ok(segment($one, 'long', 'last_value'), '<=', 1000000, '... is no longer than a million');

### A step of 1, odd names, another source

sequence($odd, q{Pho""to's}, 'START 1000');
$one->safe_psql('postgres', q{SELECT instaid.create_ticket('Pho"to''s', source => } . source($one, [$odd]) . q{)});
is(join(' ', map { $one->safe_psql('postgres', qq{$patient SELECT instaid.next_ticket('Pho"to''s')}) } 1 .. 5), '1000 1001 1002 1003 1004', 'an odd name, and a step of 1');

sequence($odd, 'secret', '');
$odd->safe_psql('postgres', 'GRANT USAGE ON SEQUENCE instaid_tickets.secret TO leaser');
create($one, 'secret', 10, [$odd], %leaser);
is(join(' ', take($one, 'secret', 3)), '1 2 3', 'a server that needs a password');
$one->safe_psql('postgres', q{SECURITY LABEL FOR instaid ON SEQUENCE instaid_tickets.secret IS 'even'});
sequence($even, 'secret', 'START 5000');
my @changed = take($one, 'secret', 40);
is("@changed[37 .. 39]", join(' ', map { $changed[37] + $_ } 0 .. 2), 'a ticket gets another source: its last values are consecutive');
cmp_ok($changed[39], '>=', 5000, '... and come from the new source');

# the ticket's own sequence is altered, and still issues no value
$one->safe_psql('postgres', 'ALTER SEQUENCE instaid_tickets.secret MINVALUE 1 MAXVALUE 1000 START 1 RESTART');
my @altered = take($one, 'secret', 20);
is(duplicates(@changed, @altered), 0, 'an altered sequence gives no values of its own');
cmp_ok($altered[0], '>', 5000, '... and the source goes on');
$one->safe_psql('postgres', $one->safe_psql('postgres', q{SELECT cure FROM instaid.audit() WHERE object ~ 'secret' AND problem ~ 'altered'}));
is($one->safe_psql('postgres', q{SELECT object FROM instaid.audit() WHERE object ~ 'secret'}), '', '... and the cure of audit() repairs it');

# A ticket that has values of its own in its buffer is set back, and gets a source.
sequence($odd, 'late', 'START 5000');
$one->safe_psql('postgres', q{SELECT instaid.create_ticket('late', step => 1000)});
for my $set_back ('ALTER SEQUENCE instaid_tickets.late RESTART', q{SELECT setval('instaid_tickets.late', 1, false)})
{
	is(join(' ', take($one, 'late', 3)), '1 2 3', 'a ticket without a source');
	$one->safe_psql('postgres', "$set_back; SECURITY LABEL FOR instaid ON SEQUENCE instaid_tickets.late IS 'odd'");
	cmp_ok((take($one, 'late', 1))[0], '>=', 5000, "... gets one, after $set_back: the values that were buffered are left out");
	$one->safe_psql('postgres', q{
		ALTER SEQUENCE instaid_tickets.late MINVALUE -2 MAXVALUE -1 START -1 RESTART;
		SECURITY LABEL FOR instaid ON SEQUENCE instaid_tickets.late IS NULL;
		ALTER SEQUENCE instaid_tickets.late MINVALUE 1 MAXVALUE 1000000 START 1 RESTART});
}

### Sequences and servers that cannot be a source

$odd->safe_psql('postgres', 'CREATE TABLE instaid_tickets."a table" ()');
sequence($odd, 'circle', 'CYCLE');
$odd->safe_psql('postgres', 'CREATE UNLOGGED SEQUENCE instaid_tickets.unlogged');
sequence($odd, 'downwards', 'INCREMENT -1');
sequence($odd, 'slipped', 'INCREMENT 2');
$odd->safe_psql('postgres', q{SELECT setval('instaid_tickets.slipped', 100)});
sequence($odd, 'at its end', 'MAXVALUE 10');
$odd->safe_psql('postgres', q{SELECT setval('instaid_tickets."at its end"', 10)});
sequence($odd, 'wide', 'START 3000000000');
sequence($odd, 'denied', '');
for my $case (
	[ 'nobody', qr/relation "instaid_tickets.nobody" does not exist/ ],
	[ 'a table', qr/instaid_tickets.a table does not count up, or has CYCLE, or is UNLOGGED, or is no sequence/ ],
	[ 'unlogged', qr/instaid_tickets.unlogged does not count up, or has CYCLE, or is UNLOGGED/ ],
	[ 'circle', qr/instaid_tickets.circle does not count up, or has CYCLE/ ],
	[ 'downwards', qr/instaid_tickets.downwards does not count up/ ],
	[ 'slipped', qr/instaid_tickets.slipped stands at a value of another server/ ],
	[ 'at its end', qr/nextval: reached maximum value of sequence "at its end" \(10\)/ ],
	[ 'wide', qr/instaid_tickets.wide is past the end of the ticket's type, at 3000000000/, q{, data_type => 'integer'} ],
	[ 'denied', qr/permission denied for sequence denied/, '', %leaser ],
	[ 'no such service', qr/server "odd nothing": definition of service "nothing" not found/, '', service => 'nothing' ])
{
	my ($ticket, $pattern, $more, %options) = @$case;
	my $source = source($one, [$odd], %options);
	$one->safe_psql('postgres', qq{SELECT instaid.create_ticket('$ticket', step => 10, source => $source} . ($more // '') . ')');
	like(failure($one, $ticket), $pattern, "$ticket: refused, with the reason");
}
is($odd->safe_psql('postgres', q{SELECT last_value FROM instaid_tickets.circle}), 1, 'no value was taken from a sequence that cannot serve');
# a sequence at its end
sequence($odd, 'ends', 'INCREMENT 2 MAXVALUE 50');
create($one, 'ends', 10, [$odd]);
is(join(' ', take($one, 'ends', 25)), join(' ', map { 2 * $_ - 1 } 1 .. 25), 'the last values of an authority');
like(failure($one, 'ends'), qr/reached maximum value/, '... are the last');

### The owner of the ticket needs USAGE, and a mapping with a password that the server asks for.

sub source_failure
{
	my ($node, $name, $pattern, $what) = @_;
	my $error = '';
	for (1 .. 100)
	{
		last if $error = failure($node, $name);
	}
	# the worker may have been resting since it failed for another reason
	$node->poll_query_until('postgres', "SELECT failure ~ '$pattern' FROM instaid.segments WHERE name = '$name'");
	like(segment($node, $name, 'failure'), qr/$pattern/, $what);
	my $found = $node->safe_psql('postgres', "SELECT problem FROM instaid.audit() WHERE object ~ '$name'");
	return $found;
}

sequence($odd, 'ours', '');
$odd->safe_psql('postgres', 'GRANT USAGE ON SEQUENCE instaid_tickets.ours TO leaser');
$one->safe_psql('postgres', sprintf q{
	CREATE ROLE app LOGIN; GRANT CREATE ON SCHEMA instaid_tickets TO app;
	CREATE SERVER guarded FOREIGN DATA WRAPPER instaid OPTIONS (host '%s', port '%s', dbname 'postgres', connect_timeout '60')}, $odd->host, $odd->port);
my $create = q{SET ROLE app; SELECT instaid.create_ticket('ours', step => 10, source => 'guarded')};
($ret, $stdout, $stderr) = $one->psql('postgres', $create);
like($stderr, qr/ERROR:  permission denied for foreign server guarded\nHINT:  Its owner can permit it: GRANT USAGE ON FOREIGN SERVER guarded TO app;/, 'a role without USAGE on the server');
$one->safe_psql('postgres', "GRANT USAGE ON FOREIGN SERVER guarded TO app; $create");
like(source_failure($one, 'ours', 'server "guarded": there is no user mapping for role "app"', 'without a user mapping'),
	qr/cannot ask server "guarded": there is no user mapping/, '... which audit() finds');
$one->safe_psql('postgres', q{CREATE USER MAPPING FOR app SERVER guarded OPTIONS (user 'leaser')});
like(source_failure($one, 'ours', 'server "guarded": the user mapping for role "app" has no password', 'a mapping without a password'),
	qr/has no password/, '... which audit() finds');
$one->safe_psql('postgres', q{ALTER USER MAPPING FOR app SERVER guarded OPTIONS (ADD password 'mistyped')});
source_failure($one, 'ours', 'password authentication failed for user "leaser"', 'with a wrong password');
$one->safe_psql('postgres', sprintf q{ALTER USER MAPPING FOR app SERVER guarded OPTIONS (SET password 'secret', SET user '%s')}, $odd->safe_psql('postgres', 'SELECT current_user'));
source_failure($one, 'ours', 'server "guarded": it did not ask for a password; it must, unless superusers own both', 'with a password that the server does not ask for');
$one->safe_psql('postgres', q{ALTER USER MAPPING FOR app SERVER guarded OPTIONS (SET user 'leaser')});
my @ours = (retry($one, 'ours'), take($one, 'ours', 5));
is("@ours", '1 2 3 4 5 6', 'with the right password, the ticket has values');
is($one->safe_psql('postgres', q{SELECT count(*) FROM instaid.audit() WHERE object ~ 'ours'}), 0, '... and audit() finds nothing');

# a superuser's ticket, and a server whose owner can change its address
$one->safe_psql('postgres', q{SELECT instaid.create_ticket('trusting', source => 'guarded');
	CREATE USER MAPPING FOR CURRENT_USER SERVER guarded; ALTER SERVER guarded OWNER TO app});
source_failure($one, 'trusting', 'server "guarded": the user mapping for role "[^"]*" has no password', 'a superuser does not trust the server of another role');
$one->safe_psql('postgres', q{ALTER SERVER guarded OWNER TO CURRENT_USER; SELECT instaid.drop_ticket('trusting');
	DROP USER MAPPING FOR CURRENT_USER SERVER guarded; GRANT USAGE ON FOREIGN SERVER guarded TO app});

$one->safe_psql('postgres', 'REVOKE USAGE ON FOREIGN SERVER guarded FROM app');
for (1 .. 1000)
{
	my ($ret, $stdout) = $one->psql('postgres', q{SELECT instaid.next_ticket('ours')});
	last if $ret;
	push @ours, $stdout;
}
like(source_failure($one, 'ours', 'server "guarded": role "app" has no USAGE on it', 'REVOKE takes effect at the next segment'),
	qr/has no USAGE/, '... which audit() finds');
$one->safe_psql('postgres', 'GRANT USAGE ON FOREIGN SERVER guarded TO app');
push @ours, retry($one, 'ours'), take($one, 'ours', 30);
is(duplicates(@ours), 0, 'GRANT takes effect, too, and no value comes twice');
is($one->safe_psql('postgres', q{SET ROLE app; SELECT count(*) FROM pg_seclabel, instaid.tickets AS t, instaid.segments AS s, instaid.audit() AS a
	WHERE concat(label, t, s, a) ~ 'secret"|mistyped'}), 0, 'passwords are in no view');
unlike(slurp_file($_->logfile), qr/mistyped|password '/, '... and in no log') for $one, $odd;

### Servers that are dropped, renamed or moved

($ret, $stdout, $stderr) = $one->psql('postgres', 'DROP SERVER guarded');
like($stderr, qr/cannot drop server guarded because other objects depend on it\nDETAIL:.*sequence instaid_tickets.ours depends on server guarded/s, 'a server that a ticket uses is not dropped');
is($one->safe_psql('postgres', q{BEGIN; SET client_min_messages = error; DROP SERVER guarded CASCADE; SELECT count(*) FROM instaid.tickets WHERE name = 'ours'; ROLLBACK}), 0, '... and CASCADE drops the ticket, too');
$one->safe_psql('postgres', q{CREATE SERVER several FOREIGN DATA WRAPPER instaid OPTIONS (host 'a,b')});
($ret, $stdout, $stderr) = $one->psql('postgres', q{SELECT instaid.create_ticket('several', source => 'several')});
like($stderr, qr/server "several" has several hosts/, 'a server with several hosts is refused');

sequence($odd, 'renamed', '');
create($one, 'renamed', 1, [$odd], dbname => 'postgres', connect_timeout => 59);
my @renamed = take($one, 'renamed', 1);
$one->safe_psql('postgres', 'ALTER SERVER "odd 59 postgres" RENAME TO "another name"');
push @renamed, map { split /\n/, ($one->psql('postgres', q{SELECT instaid.next_ticket('renamed')}))[1] } 1 .. 5;
like(source_failure($one, 'renamed', 'server "odd 59 postgres": there is no such foreign server', 'a server is renamed: the failure has the old name'),
	qr/cannot ask server "odd 59 postgres": there is no such foreign server/, '... and audit() finds it');
$one->safe_psql('postgres', q{SECURITY LABEL FOR instaid ON SEQUENCE instaid_tickets.renamed IS '"another name"'});
push @renamed, retry($one, 'renamed');
is(duplicates(@renamed), 0, '... until the ticket has the new name');

# another server gets the name: it is not asked until the source is set again
sequence($even, 'renamed', 'START 1000');
$one->safe_psql('postgres', sprintf q{ALTER SERVER "another name" RENAME TO "old name";
	CREATE SERVER "another name" FOREIGN DATA WRAPPER instaid OPTIONS (host '%s', port '%s', dbname 'postgres', connect_timeout '60');
	CREATE USER MAPPING FOR PUBLIC SERVER "another name"}, $even->host, $even->port);
like(source_failure($one, 'renamed', 'server "another name": the source was set when another server had this name', 'another server has the name of one that was renamed'),
	qr/cannot ask server "another name": the source was set when/, '... which audit() finds');
$one->safe_psql('postgres', q{SECURITY LABEL FOR instaid ON SEQUENCE instaid_tickets.renamed IS '"another name"'});
cmp_ok(retry($one, 'renamed'), '>=', 1000, '... until the source is set to it');
is($one->safe_psql('postgres', q{SELECT problem FROM instaid.audit() WHERE object ~ 'renamed'}), '', '... and audit() finds nothing any more');

# a server gets another address: what was known of its values is forgotten
sequence($_, 'moved', '') for $odd, $even;
create($one, 'moved', 1, [$odd, $even], connect_timeout => 58);
like(failure($one, 'moved'), qr/gives values that/, 'two servers with the same values');
$one->safe_psql('postgres', q{ALTER SERVER "even 58" OPTIONS (SET port '1')});
isnt(retry($one, 'moved'), '', '... one gets another address, and the ticket has values');
is(segment($one, 'moved', 'sources_overlap'), 'f', '... and the view shows no overlap');

### Dumps

# restored on a server that does not preload the library
my $plain = Clients::server('plain');
$plain->safe_psql('postgres', 'CREATE ROLE app LOGIN');
my $query = q{SELECT name, step, source, array(SELECT s.srvname FROM pg_depend AS d JOIN pg_foreign_server AS s ON s.oid = d.refobjid
	WHERE d.objid = t.sequence AND d.refclassid = 'pg_foreign_server'::regclass AND d.deptype = 'n' ORDER BY 1) AS depends FROM instaid.tickets AS t ORDER BY 1};
my $mappings = q{SELECT srvname, usename, array(SELECT unnest(umoptions) ORDER BY 1) FROM pg_user_mappings ORDER BY 1, 2};
my $expected = join "\n", map { $one->safe_psql('postgres', $_) } $query, $mappings;
like($expected, qr/^photos\|100\|odd, even\|\{even,odd\}$/m, 'a ticket depends on its servers');
$one->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/dump", '-d', $one->connstr('postgres') ], 'pg_dump');
$one->command_ok([ 'pg_dump', '-Fp', '-f', "$dir/dump.sql", '-d', $one->connstr('postgres') ], '... as SQL');
for my $case (
	[ 'session', [ 'pg_restore', '--exit-on-error', "$dir/dump" ] ],
	[ 'transaction', [ 'pg_restore', '-1', "$dir/dump" ] ],
	[ 'jobs', [ 'pg_restore', '--exit-on-error', '-j', '4', "$dir/dump" ] ],
	[ 'sections', map { [ 'pg_restore', '--exit-on-error', "--section=$_", "$dir/dump" ] } 'pre-data', 'data', 'post-data' ],
	[ 'sql', [ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/dump.sql" ] ])
{
	my ($name, @commands) = @$case;
	$plain->safe_psql('postgres', "CREATE DATABASE $name");
	$plain->command_ok([ @$_, '-d', $plain->connstr($name) ], "restored: $name") for @commands;
	is(join("\n", map { $plain->safe_psql($name, $_) } $query, $mappings), $expected, '... with the sources, their servers and mappings');
}
$one->safe_psql('postgres', 'CREATE DATABASE restored');
$one->command_ok([ 'pg_restore', '--exit-on-error', '-d', $one->connstr('restored'), "$dir/dump" ], 'pg_restore');
my @more = map { $one->safe_psql('restored', "$patient SELECT instaid.next_ticket('$_')") } 'fine', 'ours';
is(duplicates(@fine, $more[0]) + duplicates(@ours, $more[1]), 0, '... and a restored ticket takes new values from its source');

# the owner of a ticket and its server dumps them, and restores them where the extension is
$one->safe_psql('postgres', "CREATE DATABASE $_") for 'theirs', 'theirs_restored';
$one->safe_psql($_, 'CREATE EXTENSION instaid; GRANT USAGE ON FOREIGN DATA WRAPPER instaid TO app; GRANT CREATE ON SCHEMA instaid_tickets TO app') for 'theirs', 'theirs_restored';
$one->safe_psql('theirs', sprintf q{
	SET ROLE app;
	CREATE SERVER theirs FOREIGN DATA WRAPPER instaid OPTIONS (host '%s', port '%s', dbname 'postgres', connect_timeout '60');
	CREATE USER MAPPING FOR app SERVER theirs OPTIONS (user 'leaser', password 'secret');
	SELECT instaid.create_ticket('ours', step => 10, source => 'theirs')}, $odd->host, $odd->port);
my @theirs = $one->safe_psql('theirs', "$patient SELECT instaid.next_ticket('ours')");
{
	local $ENV{PGUSER} = 'app';
	$one->command_ok([ 'pg_dump', '-Fc', '-f', "$dir/theirs", '-d', $one->connstr('theirs') ], 'an owner dumps');
	my ($list) = run_command([ 'pg_restore', '-l', "$dir/theirs" ]);
	# only the owner of the extension can restore the state of instaid.node_id_seq
	append_to_file("$dir/list", join '', map { "$_\n" } grep { /SERVER|USER MAPPING|SEQUENCE|SECURITY LABEL/ && !/node_id_seq/ } split /\n/, $list);
	$one->command_ok([ 'pg_restore', '--exit-on-error', '-L', "$dir/list", '-d', $one->connstr('theirs_restored'), "$dir/theirs" ], '... and restores');
}
push @theirs, $one->safe_psql('theirs_restored', "$patient SELECT instaid.next_ticket('ours')");
is(duplicates(@ours, @theirs), 0, '... and takes new values');
$plain->stop;

$_->stop for $one, $two, $odd, $even;
unlike(slurp_file($_->logfile), qr/TRAP:|XX000|PANIC/, 'the server logged no error of its own') for $one, $two, $odd, $even;

done_testing();
