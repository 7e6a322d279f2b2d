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

@Clients::extensions = ('instaid_tickets');

my @settings = (
	'wal_level = replica',
	'max_wal_senders = 5',
	'hot_standby = on',
	'autovacuum = off',
	'checkpoint_timeout = 1d',
	# for pg_rewind
	'wal_log_hints = on',
	'wal_keep_size = 1GB');
my $rounds = $ENV{INSTAID_TEST_ROUNDS} ? ($ENV{INSTAID_TEST_ROUNDS} + 3) / 4 : 5;

### The standby is away: which calls wait for it, by synchronous_commit

my $node = Clients::server('primary', @settings);
$node->safe_psql('postgres',
	q{SELECT instaid_tickets.create('public.' || name, step => step)
		FROM (VALUES ('plain', 1), ('leased', 1), ('stepped', 10)) AS t (name, step)}
);
take($node, $_, 1) for 'plain', 'leased', 'stepped';

sub set_standbys
{
	my ($names) = @_;
	$node->append_conf('postgresql.conf', "synchronous_standby_names = '$names'\n");
	$node->reload;
	$node->poll_query_until('postgres',
		"SELECT current_setting('synchronous_standby_names') = '$names'")
	  or die;
	# the checkpointer lets sessions wait for standbys; it reads the setting first
	$node->safe_psql('postgres', 'CHECKPOINT');
	return;
}

# Start a session, and do not wait for it.  It has used the ticket before, so that it
# writes only the records that are due.
my $dir = PostgreSQL::Test::Utils::tempdir;

sub begin
{
	my ($name, $before, $sql) = @_;
	my @statements =
	  ('SET synchronous_commit = local', $before, 'RESET synchronous_commit', split /; */, $sql);
	my @psql = ('psql', '-XAtq', '-d', $node->connstr('postgres') . " application_name=$name",
		map { ('-c', $_) } @statements);
	my $psql = IPC::Run::start(\@psql, '<', File::Spec->devnull, '>', "$dir/$name", '2>&1');
	return { name => $name, psql => $psql, file => "$dir/$name" };
}

# Wait until a session waits for the standby, or has printed a second line.  Return
# 'waits', or its output.
sub outcome
{
	my ($session) = @_;
	for (1 .. 1800)
	{
		return 'waits'
		  if $node->safe_psql('postgres',
			"SELECT count(*) FROM pg_stat_activity
				WHERE application_name = '$session->{name}' AND wait_event = 'SyncRep'"
		  );
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

my $cancelled = qr/\AERROR:  canceling statement that waits for a synchronous standby
DETAIL:  The standby has not confirmed that it has the values that were taken\.\n\z/;
for my $case (
	[ 'plain',  q{SELECT instaid_tickets.next('plain')} ],
	[ 'leased', q{SELECT last FROM instaid_tickets.lease('leased', 3)} ],
	[ 'stepped', q{SELECT instaid_tickets.next('stepped')} ])
{
	my ($ticket, $take) = @$case;
	set_standbys('nobody');
	# A session with an open transaction has written the record that covers the next values.
	my $local = Clients::session($node);
	$local->("CHECKPOINT; SET synchronous_commit = local; BEGIN");
	my $taken = $local->($take);
	like($taken, qr/^\d+$/m, "$ticket: synchronous_commit = local does not wait for a standby");
	# All other sessions wait for the standby before they return a value.
	my $open = begin("open_$ticket", $take, "BEGIN; $take; ROLLBACK");
	is(outcome($open), 'waits', "$ticket: a call in a transaction waits");
	my @calls =
	  map { begin("call_${ticket}_$_", $take, "SET synchronous_commit = $_; $take") }
	  'on', 'remote_write', 'remote_apply';
	is(outcome($_), 'waits',
		"$ticket: a call in a transaction waits, and so do calls that another session's record"
		  . " covers: $_->{name}")
	  for @calls;
	my $off = $local->("COMMIT; SET synchronous_commit = off; $take");
	like($off, qr/^\d+$/m, "$ticket: a call does not wait with synchronous_commit = off");

	# A call that is cancelled returns no value.
	$local->(
		q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name ~ '_on$'});
	like(end(shift @calls), $cancelled, "$ticket: a call that is cancelled returns no value");
	$local->(
		q{SELECT pg_terminate_backend(pid)
			FROM pg_stat_activity WHERE application_name ~ '_remote_write$'}
	);
	unlike(end(shift @calls), qr/^\d+$/m, "$ticket: a call that is terminated returns no value");
	my $slow = begin("slow_$ticket", $take, "SET statement_timeout = '300ms'; $take");
	like(end($slow), $cancelled,
		"$ticket: a call that reaches statement_timeout returns no value");

	# The standby is no longer required, and the others go on, also one that has something else
	# to do, as all have during a DROP DATABASE.
	$local->(
		q{SELECT pg_log_backend_memory_contexts(pid)
			FROM pg_stat_activity WHERE application_name ~ '_remote_apply$'}
	);
	set_standbys('');
	my @values = map { end($_) } $open, @calls;
	is(duplicates(split /\s+/, "$taken $off @values"),
		0, "$ticket: without the standby the calls go on, and no value comes twice");
	like("@values", qr/\A\d+\n \d+\n\z/,
		"$ticket: without the standby the calls go on, and no value comes twice: one value for"
		  . " each call");
}

### The standby takes over under load, and the old primary becomes its standby, in turns.

# All values have 19 digits, so that text order will do.  One ticket has a step.
my @tickets = ('busy', 'leaping');
my %take  = map { $_ => "SELECT instaid_tickets.next('$_');" } @tickets;
my %files = map { $_ => [] } @tickets;
$node->safe_psql('postgres', q{
	SELECT instaid_tickets.create('public.busy', 2, 3, 1000000000000000000);
	SELECT instaid_tickets.create('public.leaping', 2, 3, 1000000000000000000, step => 500)});
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
for my $round (1 .. $rounds)
{
	set_standbys('*');
	$node->poll_query_until('postgres', q{SELECT sync_state = 'sync' FROM pg_stat_replication})
	  or die;
	my %clients =
	  map { $_ => Clients->start($node, ($take{$_}) x 3, "BEGIN; $take{$_} ROLLBACK;") } @tickets;
	sleep(0.3 + rand(0.3));
	# WAL that is written from now on does not reach the standby
	my $sender = $node->safe_psql('postgres', 'SELECT pid FROM pg_stat_replication');
	kill 'STOP', $sender;
	# until all clients wait for it
	$node->poll_query_until('postgres',
		q{SELECT count(*) >= 8 FROM pg_stat_activity WHERE wait_event = 'SyncRep'})
	  or die;
	Clients::crash($node);
	my %problems = map { $_ => $clients{$_}->finish } @tickets;
	$standby->promote;
	my %after =
	  map { $_ => Clients->start($standby, ("SET synchronous_commit = local; $take{$_}") x 2) }
	  @tickets;
	for (1 .. 1800)
	{
		last unless grep { !-s $_ } map { $_->files } values %after;
		sleep(0.1);
	}
	for my $name (@tickets)
	{
		$problems{$name} .= $after{$name}->stop;
		is($problems{$name} =~ s/.*terminating connection.*\n//gr,
			'', "$name, failover $round: no statement fails");
		my $new = Clients::summary($after{$name}->files);
		cmp_ok($new->{count}, '>', 0,
			"$name, failover $round: the new primary returns $new->{count} values");
		push @{ $files{$name} }, $clients{$name}->files, $after{$name}->files;
		my $all = Clients::summary(@{ $files{$name} });
		is($all->{duplicates}, 0,
			"$name, failover $round, and none of $all->{count} values so far comes twice");
	}
	follow($node, $standby) if $round < $rounds;
	($node, $standby) = ($standby, $node);
}
$node->stop;
unlike(slurp_file($_->logfile), qr/TRAP:|XX000|PANIC/, 'the server logged no error of its own')
  for $node, $standby;

# Let a primary that was killed follow the one that took over.
sub follow
{
	my ($old, $new) = @_;
	my $settings = slurp_file($old->data_dir . '/postgresql.conf');
	# before PostgreSQL 16, pg_rewind looks for the new timeline in the last checkpoint
	$new->safe_psql('postgres', 'CHECKPOINT');
	$old->command_ok(
		[ 'pg_rewind', '-D', $old->data_dir, '--source-server', $new->connstr('postgres') ],
		'the server logged no error of its own, and the old primary follows it');
	# this is the new one's
	unlink $old->data_dir . '/postgresql.conf';
	$old->append_conf('postgresql.conf', $settings);
	$old->enable_streaming($new);
	$old->start;
	return;
}

done_testing();
