# Failover to a synchronous standby: no value of a ticket is issued twice.  pg_regress
# has no standby.
#
# INSTAID_TEST_ROUNDS=5 shortens it.

use strict;
use warnings;

use File::Spec;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;
use Sources;

my @settings = ('wal_level = replica', 'max_wal_senders = 5', 'hot_standby = on', 'autovacuum = off', 'checkpoint_timeout = 1d');
my $rounds = $ENV{INSTAID_TEST_ROUNDS} ? ($ENV{INSTAID_TEST_ROUNDS} + 3) / 4 : 5;

### The standby is away: which calls wait for it, by synchronous_commit

my $node = Clients::server('alone', @settings);
$node->safe_psql('postgres', q{SELECT instaid.create_ticket(name, step => step) FROM (VALUES ('plain', 1), ('leased', 1), ('stepped', 10)) AS t (name, step)});
take($node, $_, 1) for 'plain', 'leased', 'stepped';

sub set_standbys
{
	my ($names) = @_;
	$node->append_conf('postgresql.conf', "synchronous_standby_names = '$names'\n");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('synchronous_standby_names') = '$names'") or die;
	return;
}

# Start a session, and do not wait for it.  It has used the ticket before, so that it
# writes only the records that are due.
my $dir = PostgreSQL::Test::Utils::tempdir;

sub begin
{
	my ($name, $before, $sql) = @_;
	my @statements = ('SET synchronous_commit = local', split(/; */, $before), 'RESET synchronous_commit', split /; */, $sql);
	my $psql = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') . " application_name=$name", map { ('-c', $_) } @statements ],
		'<', File::Spec->devnull, '>', "$dir/$name", '2>&1');
	return { name => $name, psql => $psql, file => "$dir/$name" };
}

# Wait until a session waits for the standby, or has printed a second line.  Return
# 'waits', or its output.
sub outcome
{
	my ($session) = @_;
	for (1 .. 1800)
	{
		return 'waits' if $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE application_name = '$session->{name}' AND wait_event = 'SyncRep'");
		my $output = slurp_file($session->{file});
		return $output if $output =~ /\n./;
		sleep(0.1);
	}
	die "$session->{name} does nothing";
}

# Wait for the end of a session, and return its output after the first value.
sub end
{
	my ($session) = @_;
	eval { $session->{psql}->finish };
	return slurp_file($session->{file}) =~ s/\A\d+\n//r;
}

set_standbys('nobody');
for my $case (
	[ 'plain',  q{SELECT instaid.next_ticket('plain')} ],
	[ 'leased', q{SELECT last FROM instaid.lease_ticket('leased', 3)} ],
	[ 'stepped', q{SELECT instaid.next_ticket('stepped')} ])
{
	my ($ticket, $take) = @$case;
	my $before = '';
	# A session with an open transaction has written the record that covers the next values.
	my $local = Clients::session($node);
	$local->("CHECKPOINT; SET synchronous_commit = local; $before BEGIN");
	my $taken = $local->($take);
	like($taken, qr/^\d+$/m, "$ticket: synchronous_commit = local does not wait for a standby");
	# All other sessions wait for the standby before they return a value.
	my $open = begin("open_$ticket", "$before $take", "BEGIN; $take; ROLLBACK");
	is(outcome($open), 'waits', "$ticket: a call in a transaction waits");
	my @calls = map { begin("call_${ticket}_$_", "$before $take", "SET synchronous_commit = $_; $take") } 'on', 'remote_write', 'remote_apply';
	is(outcome($_), 'waits', "$ticket: ... and so does a single call, although the record is another session's: $_->{name}") for @calls;
	my $off = $local->("COMMIT; SET synchronous_commit = off; $take");
	like($off, qr/^\d+$/m, "$ticket: ... but not with synchronous_commit = off");

	# A call that is cancelled returns no value.
	$local->(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name ~ '_on$'});
	like(end(shift @calls), qr/\AWARNING: .*\n(DETAIL: .*\n)?ERROR:  canceling statement due to user request\n\z/, "$ticket: a call that is cancelled returns no value");
	$local->(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ '_remote_write$'});
	unlike(end(shift @calls), qr/^\d+$/m, "$ticket: a call that is terminated returns no value");
	my $slow = begin("slow_$ticket", "$before $take", "SET statement_timeout = '300ms'; $take");
	like(end($slow), qr/\AWARNING: .*\n(DETAIL: .*\n)?ERROR:  canceling statement due to statement timeout\n\z/, "$ticket: a call that reaches statement_timeout returns no value");

	# The standby is no longer required, and the others go on.
	set_standbys('');
	my @values = map { end($_) } $open, @calls;
	is(duplicates(split /\s+/, "$taken $off @values"), 0, "$ticket: without the standby the calls go on, and no value comes twice");
	like("@values", qr/\A\d+\n \d+\n\z/, '... one value for each call');
	set_standbys('nobody');
}

$node->stop;

### The standby takes over, under load.

# All values have 19 digits, so that text order will do.  One ticket has a step.
my @tickets = ('plain', 'stepped');
my %take = map { $_ => "SELECT instaid.next_ticket('$_');" } @tickets;
for my $round (1 .. $rounds)
{
	my $primary = Clients::server("primary_$round", @settings);
	$primary->safe_psql('postgres', q{SELECT instaid.create_ticket('plain', 2, 3, 1000000000000000000), instaid.create_ticket('stepped', 2, 3, 1000000000000000000, step => 500)});
	$primary->backup('backup');
	my $standby = PostgreSQL::Test::Cluster->new("standby_$round");
	$standby->init_from_backup($primary, 'backup', has_streaming => 1);
	$standby->start;
	$primary->append_conf('postgresql.conf', "synchronous_standby_names = '*'\n");
	$primary->reload;
	$primary->poll_query_until('postgres', q{SELECT sync_state = 'sync' FROM pg_stat_replication}) or die;

	my %clients = map { $_ => Clients->start($primary, ($take{$_}) x 3, "BEGIN; $take{$_} ROLLBACK;") } @tickets;
	sleep(0.3 + rand(0.3));
	# WAL that is written from now on does not reach the standby
	my $sender = $primary->safe_psql('postgres', 'SELECT pid FROM pg_stat_replication');
	kill 'STOP', $sender;
	# until all clients wait for it
	$primary->poll_query_until('postgres', q{SELECT count(*) >= 8 FROM pg_stat_activity WHERE wait_event = 'SyncRep'}) or die;
	$primary->kill9;
	kill 'KILL', $sender;
	my %problems = map { $_ => $clients{$_}->finish } @tickets;
	$standby->promote;
	my %after = map { $_ => Clients->start($standby, ("SET synchronous_commit = local; $take{$_}") x 2) } @tickets;
	$standby->poll_query_until('postgres', q{SELECT pg_sleep(0.1) IS NOT NULL AND count(*) = 2 FROM instaid.tickets WHERE last_value IS NOT NULL}) or die;
	for my $name (@tickets)
	{
		$problems{$name} .= $after{$name}->stop;
		is($problems{$name} =~ s/.*terminating connection.*\n//gr, '', "$name, failover $round: no statement fails");
		my $old = Clients::summary($clients{$name}->files);
		my $new = Clients::summary($after{$name}->files);
		my $all = Clients::summary($clients{$name}->files, $after{$name}->files);
		is($all->{duplicates}, 0, "$name, failover $round: none of $old->{count} values and $new->{count} later values comes twice");
		cmp_ok($new->{count}, '>', 0, '... and there are later values');
	}
	$standby->stop;
	unlike(slurp_file($_->logfile), qr/TRAP:|XX000|PANIC/, '... the server logged no error of its own') for $primary, $standby;
}

done_testing();
