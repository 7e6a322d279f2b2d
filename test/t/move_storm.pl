# Twenty shards move to and fro between two servers, in groups of five, while eight writers note
# what was acknowledged, and a reader reads by settled_id() as in docs/readers.md, from either
# server.  The program is killed at random moments, and servers crash.  Each run that was
# killed is repeated, until it ends well.  In the end, no transaction is lost, none is there
# twice, and the reader has each row once.  move_program.pl kills at chosen steps.
#
# FULL=1 adds ten minutes instead of 20 s, or INSTAID_MOVE_SECONDS
# INSTAID_TEST_SEED repeats what is chosen
# not in: version assert

use strict;
use warnings;

use IPC::Open2 ();
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use Clients;

my $seconds = $ENV{INSTAID_MOVE_SECONDS} || ($ENV{FULL} ? 600 : 20);
my $seed = srand($ENV{INSTAID_TEST_SEED} // time);
note "INSTAID_TEST_SEED=$seed";

my @settings = ('wal_retrieve_retry_interval = 100ms', 'max_replication_slots = 40',
	'max_wal_senders = 40', 'max_logical_replication_workers = 20', 'max_worker_processes = 30');
my $old = $ENV{INSTAID_OLD};
# allows_streaming of 19 sets what older versions do not know
my @nodes = (
	Clients::server('a', $old ? { install_path => $old } : {}, 'wal_level = logical', @settings),
	Clients::server('b', {}, 'wal_level = logical', @settings));
$ENV{PATH} .= ":$old/bin" if $old;
my @connections = map { $_->connstr('postgres') } @nodes;
my @shards = map { my $group = $_; map { "$group$_" } 1 .. 5 } 'a' .. 'd';
my $dir = PostgreSQL::Test::Utils::tempdir;

my $n = 0;
$nodes[0]->safe_psql('postgres', join '', map { $n++; qq{
	SELECT instaid.create_shard('$_', $n);
	CREATE TABLE $_.outbox (id bigint PRIMARY KEY DEFAULT $_.next_id(), who integer, n integer);
	CREATE TABLE $_.counters (who integer PRIMARY KEY, n integer NOT NULL);
	INSERT INTO $_.counters SELECT generate_series(1, 8), 0;} } @shards);

#### Clients ####

package Session;

# A psql that stays open on each server, as the connections of a pool
sub new { return bless [], $_[0] }

# Run SQL; returns SQLSTATE, or "lost", and the lines of the result.
sub run
{
	my ($self, $side, $sql) = @_;
	if (!$self->[$side])
	{
		my $pid = IPC::Open2::open2(my $out, my $in, 'psql', '-XAtq', '-v', 'VERBOSITY=verbose',
			'-d', $connections[$side]);
		$in->autoflush;
		$self->[$side] = [ $pid, $out, $in ];
	}
	my ($pid, $out, $in) = @{ $self->[$side] };
	my @lines;
	print $in "$sql;\n\\echo state :SQLSTATE\n";
	while (my $line = readline $out)
	{
		chomp $line;
		return ($1, @lines) if $line =~ /^state (\w+)/ && $1 !~ /^(08|57P)/;
		push @lines, $line;
	}
	close $_ for $out, $in;
	waitpid $pid, 0;
	undef $self->[$side];
	Time::HiRes::sleep(0.05);
	return 'lost';
}

package main;

# Run a function in a process of its own until there is a file "stop".
sub client
{
	my ($name, $code) = @_;
	my $parent = $$;
	my $pid = fork // die;
	return $pid if $pid;
	local $SIG{PIPE} = 'IGNORE';
	open STDERR, '>', "$dir/$name.err";
	open my $ledger, '>', "$dir/$name" or die;
	$ledger->autoflush;
	eval { $code->($ledger, sub { return -e "$dir/stop" || getppid != $parent }); 1 }
	  or print $ledger "failed $@";
	POSIX::_exit(0);
}

# Transactions of one shard after the other, at 25 a second.  Notes what is acknowledged, and
# how long it took after the first refusal.
sub write_rows
{
	my ($who, $ledger, $ends) = @_;
	my ($session, %at, $i) = (Session->new);
	my $next = time;
	while (!$ends->())
	{
		my $shard = $shards[ rand @shards ];
		my ($refused, $lost);
		until ($ends->())
		{
			$i++;
			my $begins = time;
			my ($state) = $session->run($at{$shard} // 0, join '\; ',
				"INSERT INTO $shard.outbox (who, n) VALUES ($who, $i)",
				"UPDATE $shard.counters SET n = n + 1 WHERE who = $who");
			if ($state eq '00000')
			{
				print $ledger "acked $shard $i\n";
				printf $ledger "%s %.3f\n", $lost ? 'back' : 'refused', time - $refused if $refused;
				last;
			}
			print $ledger "error $state\n";
			$refused //= $begins;
			$lost = 1 if $state !~ /^(55000|3F000|42P01)$/;
			$at{$shard} = 1 - ($at{$shard} // 0);
			sleep(0.01);
		}
		$next += 0.04;
		# this process can lose its processor between two looks at the clock
		my $left = $next - time;
		sleep($left) if $left > 0;
		$next = time if $left < -1;
	}
	return;
}

# Read each shard up to settled_id(), from either server, and note the rows.
sub read_rows
{
	my ($ledger, $ends) = @_;
	my ($session, %position) = (Session->new);
	for (my $last_round = 0; !$last_round;)
	{
		$last_round = $ends->();
		for my $shard (@shards)
		{
			for my $side ($last_round ? (0, 1) : int rand 2)
			{
				my $from = $position{$shard} // 0;
				my ($state, $settled) = $session->run($side, "SELECT instaid.settled_id('$shard')");
				next unless $state eq '00000' && $settled > $from;
				($state, my @rows) = $session->run($side, "SELECT id, who, n FROM $shard.outbox"
					  . " WHERE id > $from AND id <= $settled ORDER BY id");
				next unless $state eq '00000';
				print $ledger "read $shard $_\n" for @rows;
				$position{$shard} = $settled;
			}
		}
		sleep(0.05);
	}
	return;
}

use POSIX ();
my @clients = map { my $who = $_; client("writer$who", sub { write_rows($who, @_) }) } 1 .. 8;
my $reader = client('reader', \&read_rows);

#### Moves ####

# where each group is, and whether it has a way back
my %at = map { $_ => 0 } 'a' .. 'd';
my (%way_back, %done, @failed, @switches);
my ($killed, $crashed) = (0, 0);

# Run the program, and kill it or a server meanwhile; returns its exit status.
sub run_once
{
	my ($damage, @args) = @_;
	my $out = '';
	my $run = IPC::Run::start([ 'instaid-move', @args ], '<', \undef, '>', \$out, '2>&1');
	my $until = time + 5 * rand() ** 2;
	$run->pump_nb, sleep(0.01) while time < $until && $run->pumpable;
	if ($damage eq 'kill' && $run->pumpable)
	{
		$killed++;
		$run->signal('KILL');
	}
	elsif ($damage =~ /crash (\d)/)
	{
		$crashed++;
		Clients::crash($nodes[$1]);
		for (1 .. 100) { last if $nodes[$1]->start(fail_ok => 1); sleep(0.1); }
	}
	$run->finish;
	push @switches, $1 while $out =~ /refused for (\d+) ms/g;
	my $rc = $? & 127 ? -1 : $? >> 8;
	note("@args: $rc\n$out") if $rc > 0 || $ENV{VERBOSE_MOVE};
	return $rc;
}

my $end = time + $seconds;
while (time < $end)
{
	my $group = ('a' .. 'd')[ rand 4 ];
	my $side = $at{$group};
	# from a newer version there is a way back only
	my $may_stay = !$old || !$side;
	my $command = !$way_back{$group} ? 'move' : $may_stay && rand() < 0.5 ? 'finish' : 'reverse';
	my @args = ('--from', $connections[$side], '--to', $connections[ 1 - $side ], "$group%",
		'--max-stop', 10, '--max-wait', 120);
	# "source" and "target" are those of the move that was made
	@args[ 1, 3 ] = @args[ 3, 1 ] if $command ne 'move';
	push @args, "--$command" if $command ne 'move';
	my $rc = -1;
	for (my $i = 0; $rc && $i < 20; $i++)
	{
		my $chance = $i < 5 ? rand : 1;
		$rc = run_once($chance < 0.4 ? 'kill' : $chance < 0.55 ? 'crash ' . int rand 2 : '', @args);
		sleep(0.2) if $rc > 0;
	}
	if ($rc)
	{
		push @failed, "$command of $group: $rc";
		last;
	}
	$done{$command}++;
	$way_back{$group} = $command ne 'finish';
	$at{$group} = 1 - $side if $command ne 'finish';
}
sleep(1);
append_to_file("$dir/stop", '');
waitpid $_, 0 for @clients, $reader;

#### What is there in the end ####

is("@failed", '', 'each command ended well when it was repeated');
note("$killed programs killed, $crashed servers crashed; "
	  . join(', ', map { "$done{$_} $_" } sort keys %done));

my (%acked, %read, %there, %errors, %waits, @wrong);
for my $who (1 .. 8)
{
	for (split /\n/, slurp_file("$dir/writer$who"))
	{
		if (/^acked (\w+) (\d+)/) { $acked{"$1 $who $2"} = 1 }
		elsif (/^error (\w+)/) { $errors{$1}++ }
		elsif (/^(refused|back) (.*)/) { push @{ $waits{$1} }, $2 }
		else { push @wrong, "writer $who: $_" }
	}
}
for (split /\n/, slurp_file("$dir/reader"))
{
	if (/^read (\w+) (\d+)\|(\d+)\|(\d+)/) { $read{"$1 $3 $4"}++ }
	else { push @wrong, "reader: $_" }
}
for my $shard (@shards)
{
	my $node = $nodes[ $at{ substr $shard, 0, 1 } ];
	$there{"$shard $_"}++ for split /\n/,
	  $node->safe_psql('postgres', "SELECT who || ' ' || n FROM $shard.outbox");
	push @wrong, split /\n/, $node->safe_psql('postgres', qq{SELECT '$shard counter ' || who
		FROM $shard.counters AS c
		WHERE n <> (SELECT count(*) FROM $shard.outbox WHERE who = c.who)});
}
is(join(', ', @wrong), '', 'the rows of each transaction are there together');
sub some { my (@all) = sort @_; return @all ? @all . ": @all[ 0 .. ($#all > 4 ? 4 : $#all) ]" : '' }
is(some(grep { !$there{$_} } keys %acked), '', 'of ' . keys(%acked) . ' transactions none is lost');
is(some(grep { $there{$_} > 1 } keys %there), '', 'no transaction is there twice');
is(some(grep { !$read{$_} } keys %there), '', 'the reader missed no transaction');
is(some(grep { $read{$_} > 1 || !$there{$_} } keys %read), '',
	'the reader has each transaction once');
note(keys(%acked) . ' transactions acknowledged, ' . keys(%there) . ' are there, '
	  . keys(%read) . ' read');
cmp_ok(keys %acked, '>', 5 * $seconds, 'the clients were served meanwhile');
my $usual = qr/00000|55000|3F000|42P01|lost|57P0.|08\w\w\w/;
is(join(' ', grep { !/^$usual$/ } keys %errors), '',
	'the clients saw no error but of a frozen shard, or of a server that is gone')
  or diag(grep { /^(ERROR|FATAL|PANIC):  (?!$usual)/ }
	  map { split /^(?=[A-Z]+:  \w{5}: )/m, slurp_file("$dir/writer$_.err") } 1 .. 8);

# How long clients waited: "refused" by a move, or killed programs; "back" if a server was gone, too
for my $kind ('refused', 'back')
{
	my %count;
	my @limits = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10);
	for my $wait (@{ $waits{$kind} })
	{
		my ($limit) = grep { $wait < $_ } @limits, 9999;
		$count{$limit}++;
	}
	note("$kind: " . join ', ', map { "below $_ s: $count{$_}" } grep { $count{$_} } @limits, 9999);
}
my @sorted = sort { $a <=> $b } @switches;
note(@sorted . " switches refused writes for $sorted[0] to $sorted[-1] ms, median "
	. $sorted[ @sorted / 2 ])
  if @sorted;

done_testing();
