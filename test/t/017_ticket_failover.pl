# Tickets where a synchronous standby takes over: no value comes again that the
# standby did not have.  It needs servers that stream, are killed and promoted,
# which pg_regress has not.
#
# INSTAID_TEST_ROUNDS sets how many failovers under load there are.

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

my @settings = (q{shared_preload_libraries = 'instaid'}, 'wal_level = replica', 'max_wal_senders = 5', 'hot_standby = on', 'autovacuum = off', 'checkpoint_timeout = 1d');
my $rounds = $ENV{INSTAID_TEST_ROUNDS} ? ($ENV{INSTAID_TEST_ROUNDS} + 3) / 4 : 5;

### The standby is away: what a value costs, by synchronous_commit

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

# A session that is not waited for.  It has used the ticket before, so that it
# writes no record but those that are due.
my $dir = PostgreSQL::Test::Utils::tempdir;

sub begin
{
	my ($name, $before, $sql) = @_;
	my @statements = ('SET synchronous_commit = local', split(/; */, $before), 'RESET synchronous_commit', split /; */, $sql);
	my $psql = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') . " application_name=$name", map { ('-c', $_) } @statements ],
		'<', File::Spec->devnull, '>', "$dir/$name", '2>&1');
	return { name => $name, psql => $psql, file => "$dir/$name" };
}

# Wait until a session waits for the standby, or has printed a second line; 'waits', or what it has printed.
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

# What a session prints after its first value
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
	[ 'stepped', q{SELECT instaid.next_ticket('stepped')}, q{SET instaid.segment_timeout = 0;} ])
{
	my ($ticket, $take, $before) = @$case;
	$before //= '';
	# The record that covers what comes next is that of a session which is open ...
	my $local = Clients::session($node);
	$local->("CHECKPOINT; SET synchronous_commit = local; $before BEGIN");
	my $taken = $local->($ticket eq 'stepped' ? "$take FROM generate_series(1, 30)" : $take);
	like($taken, qr/^\d+$/m, "$ticket: synchronous_commit = local does not wait for a standby");
	# ... and others wait for the standby, all of them, before they return a value.
	my $open = begin("open_$ticket", "$before $take", "BEGIN; $take; ROLLBACK");
	is(outcome($open), 'waits', "$ticket: a call in a transaction waits");
	my @calls = map { begin("call_${ticket}_$_", "$before $take", "SET synchronous_commit = $_; $take") } 'on', 'remote_write', 'remote_apply';
	is(outcome($_), 'waits', "$ticket: ... and one by itself that finds a record of another's: $_->{name}") for @calls;
	my $off = $local->("COMMIT; SET synchronous_commit = off; $take");
	like($off, qr/^\d+$/m, "$ticket: ... but with synchronous_commit = off");

	# Cancelled, it has no value.
	$local->(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name ~ '_on$'});
	like(end(shift @calls), qr/\AWARNING: .*\n(DETAIL: .*\n)?ERROR:  canceling statement due to user request\n\z/, "$ticket: one that is cancelled returns no value");
	$local->(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name ~ '_remote_write$'});
	unlike(end(shift @calls), qr/^\d+$/m, "$ticket: ... nor one that is ended");
	my $slow = begin("slow_$ticket", "$before $take", "SET statement_timeout = '300ms'; $take");
	like(end($slow), qr/\AWARNING: .*\n(DETAIL: .*\n)?ERROR:  canceling statement due to statement timeout\n\z/, "$ticket: ... nor one that takes too long");

	# No standby is asked for any more: the others go on.
	set_standbys('');
	my @values = map { end($_) } $open, @calls;
	is(duplicates(split /\s+/, "$taken $off @values"), 0, "$ticket: without the standby they go on, with values of their own");
	like("@values", qr/\A\d+\n \d+\n\z/, '... one each');
	set_standbys('nobody');
}

# A segment that the worker took is not given before the standby has it, whatever the worker was told.
set_standbys('');
$node->safe_psql('postgres', q{ALTER DATABASE postgres SET synchronous_commit = local; SELECT instaid.create_ticket('local', step => 10)});
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'instaid segments'});
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'instaid segments'}) or die;
set_standbys('nobody');
take($node, 'local', 1);
wait_segment($node, 'local', 'spare_left > 0 OR values_left > 5');
my $call = begin('call_local', q{SELECT instaid.next_ticket('local')}, q{SET synchronous_commit = on; SELECT instaid.next_ticket('local')});
is(outcome($call), 'waits', 'a value of a segment: the session waits for what the worker did not');
set_standbys('');
like(end($call), qr/\A\d+\n\z/, '... and has it then');
$node->stop;

### The standby takes over, under load.

# All values have 19 digits, so that text order will do.
for my $case ([ 'plain', 1 ], [ 'with segments', 5 ])
{
	my ($name, $step) = @$case;
	my $begin = q{SET instaid.segment_timeout = '20ms';};
	my $take  = q{SELECT instaid.next_ticket('busy');};
	for my $round (1 .. $rounds)
	{
		my $primary = Clients::server("primary_${step}_$round", @settings, "instaid.segment_target_duration = '1ms'");
		$primary->safe_psql('postgres', qq{SELECT instaid.create_ticket('busy', 2, 3, 1000000000000000000, step => $step)});
		$primary->backup('backup');
		my $standby = PostgreSQL::Test::Cluster->new("standby_${step}_$round");
		$standby->init_from_backup($primary, 'backup', has_streaming => 1);
		$standby->start;
		$primary->append_conf('postgresql.conf', "synchronous_standby_names = '*'\n");
		$primary->reload;
		$primary->poll_query_until('postgres', q{SELECT sync_state = 'sync' FROM pg_stat_replication}) or die;

		my $clients = Clients->start($primary, ("$begin $take") x 5, "$begin BEGIN; $take ROLLBACK;");
		sleep(0.3 + rand(0.3));
		# what is written from now on does not get to the standby
		my $sender = $primary->safe_psql('postgres', 'SELECT pid FROM pg_stat_replication');
		kill 'STOP', $sender;
		sleep(0.6);
		$primary->kill9;
		kill 'KILL', $sender;
		my $problems = $clients->finish;
		$standby->promote;
		my $after = Clients->start($standby, ("SET synchronous_commit = local; $begin $take") x 2);
		sleep(0.3);
		$problems .= $after->stop;
		is($problems =~ s/.*terminating connection.*\n//gr, '', "$name, failover $round: no statement fails");

		my $old = Clients::summary($clients->files);
		my $new = Clients::summary($after->files);
		my $all = Clients::summary($clients->files, $after->files);
		is($all->{duplicates}, 0, "$name, failover $round: none of $old->{count} values and $new->{count} after them comes twice");
		cmp_ok($new->{count}, '>', 0, '... of which there are some');
		$standby->stop;
		unlike(slurp_file($_->logfile), qr/TRAP:|XX000|PANIC/, '... the server has nothing to complain of') for $primary, $standby;
	}
}

done_testing();
