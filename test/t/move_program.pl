# instaid-move between two servers, while clients write and note what was acknowledged: no
# transaction is lost and none comes twice, whatever is killed at whatever step.  Then
# each way in which a move could go wrong that the trials have found.
#
# With an older PostgreSQL in INSTAID_OLD, each move is from it, and goes back to it.
#
# FULL=1 adds kills of servers, --finish and --cancel and cuts of networks at each step, and signals
# not in: assert
# takes 500 s

use strict;
use warnings;

use IPC::Open2 ();
use IPC::Run ();
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use Clients;
use Docs;
use Move;
use SqlEdition;

my @settings = ('wal_retrieve_retry_interval = 50ms', 'max_prepared_transactions = 5',
	'max_replication_slots = 20', 'max_wal_senders = 20', 'fsync = off');
my $older = $ENV{INSTAID_OLD};
my ($old, $new) = map { Clients::server(@$_, 'wal_level = logical', @settings) }
  [ 'a', $older ? { install_path => $older } : {} ], ['b'];
$ENV{PATH} .= ":$older/bin" if $older;
$_->safe_psql('postgres', 'CREATE ROLE app; CREATE ROLE reader; CREATE ROLE own LOGIN')
  for $old, $new;

# The states, without a server; and the page has the same table
my $make = "make -s -C move PG_CONFIG='$ENV{PG_CONFIG}' test_states";
is(system("$make && move/test_states"), 0, 'the program finds no fault in its table of states');
{
	my $page = slurp_file('docs/moving-a-shard.md');
	my $states = `instaid-move --states`;
	ok(index($page, $states) >= 0, 'the page shows the table of states') or diag($states);
}

# The points at which it is killed: those of a move that nothing stops, those that only a run after
# a kill has, and those of --finish and --cancel
my @straight = (
	'begun', 'guards', 'slot', 'dumped', 'subscribed', 'defined', 'enabled', 'both dumped',
	'refreshed', 'following', 'way back published', 'way back slot', 'way back', 'stopping',
	'guarded', 'stopped', 'applied', 'told', 'started', 'switched', 'slot dropped', 'copy ended',
	'unpublished', 'publication dropped', 'advanced', 'way back enabled', 'marked', 'comparing',
	'compared');
my %again = (
	'way back' =>
	  [ 'way back slot dropped', 'way back subscription dropped', 'way back dropped' ],
	'stopping' => ['thawed', 'taken back'], 'guarded' => ['served again']);
my @ending =
  ('detached', 'slots dropped', 'copy dropped', 'guards dropped', 'unpublished', 'ended');
# in turn: each run goes on where the last one was killed, after "subscribed" beyond "defined"
my @moving = map { ($_, @{ $again{$_} // [] }) } grep { $_ ne 'defined' } @straight;
is(join(', ', sort keys %{ { map { $_ => 1 } 'defined', @moving, @ending } }),
	join(', ', grep { !/^(index|rehearsing|rehearsed|made|copied|verified)$/ } Move::steps()),
	'the points at which it is killed are those of the table, and of the parts of its steps');

my ($db, $from, $to) = ('postgres', $old, $new);
my ($rc, $out, $err);
# connection strings to use instead of these servers'
my %through;
# for a slow machine, where clients do not pause or shards are many
my @slow = ('--max-stop', 60, '--max-wait', 300);

# Run the program; returns its exit status, and sets $out and $err.
sub im
{
	my (@args) = @_;
	my @at = ref $args[0] ? shift @args : ();
	($rc, $out, $err) = Move::run(@at, '--from', $through{from} // $from->connstr($db),
		'--to', $through{to} // $to->connstr($db), @args);
	return $rc;
}
# Run it with --from and --to exchanged.
sub exchanged
{
	($from, $to, @through{ 'from', 'to' }) = ($to, $from, @through{ 'to', 'from' });
	im(@_);
	($from, $to, @through{ 'from', 'to' }) = ($to, $from, @through{ 'to', 'from' });
	return $rc;
}
# No move begins on a newer server than its target's, so that a shard gets to the older one by
# the way back.  Afterwards --finish drops the copy of --from here, as it does after a move.
sub back_to_older
{
	return 0 if !$older;
	($from, $to) = ($to, $from) if !im('--reverse', @slow);
	return $rc;
}
# Set a parameter; returns when new sessions have it, because a reload only sends a signal.
sub configure
{
	my ($node, $name, $value) = @_;
	$node->append_conf('postgresql.conf', "$name = $value");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT current_setting('$name') = '$value'")
	  or die "$name is not $value";
	return;
}
sub old { return $old->safe_psql($db, $_[0]) }
sub new { return $new->safe_psql($db, $_[0]) }
sub error_of { my ($node, $sql) = @_; return ($node->psql($db, $sql))[2] }

sub left { return join ' ', map { $_->safe_psql($db, $Move::left) } $old, $new }
sub places { return Move::places($db, $old, $new) }

# The shell command that kills a server with its processes, since one that creates a slot does
# not see that the postmaster is gone; and what starts the server again
sub kill_server
{
	return 'p=$(head -n 1 ' . $_[0]->data_dir . '/postmaster.pid);'
	  . ' kill -9 $p $(cat /proc/$p/task/$p/children) || :';
}
sub start_again
{
	my ($node) = @_;
	for (1 .. 300)
	{
		$node->{_pid} = undef;
		last if $node->start(fail_ok => 1);
		sleep(0.1);
	}
	return;
}

my $schema = q{
	SELECT instaid.create_shard('insta5', 5);
	CREATE SEQUENCE insta5.likes_id_seq;
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), who integer,
		n integer, serial integer GENERATED ALWAYS AS IDENTITY, twice bigint
		GENERATED ALWAYS AS (n * 2) STORED);
	CREATE TABLE insta5.likes (id bigint PRIMARY KEY DEFAULT insta5.next_id('insta5.likes_id_seq'),
		photo_id bigint REFERENCES insta5.photos, place serial);
	CREATE TABLE insta5.events (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer)
		PARTITION BY RANGE (id);
	CREATE TABLE insta5.events_1 PARTITION OF insta5.events DEFAULT;
	CREATE TABLE insta5.counters (who integer PRIMARY KEY, n integer NOT NULL);
	INSERT INTO insta5.counters SELECT generate_series(1, 100), 0;
	COMMENT ON TABLE insta5.photos IS 'with a comment';
	CREATE FUNCTION insta5.odd() RETURNS text LANGUAGE sql AS $f$ SELECT '
\restrict me
\unrestrict me
' $f$;
	GRANT USAGE ON SCHEMA insta5 TO app, reader;
	GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA insta5 TO app;
	GRANT UPDATE (n) ON insta5.photos TO reader;
	GRANT USAGE ON ALL SEQUENCES IN SCHEMA insta5 TO app;
	INSERT INTO insta5.photos (who, n) SELECT 0, generate_series(1, 3000)};

#### Writers ####

# A writer is a process with a psql.  A transaction inserts into three tables, in one of
# two orders, and counts itself.  What was acknowledged is noted.  After 55000, or without the
# shard, it goes on with the other server.
package Writers;

use Time::HiRes qw(sleep time);

my $last_writer = 0;

sub start
{
	my ($class, $count, $pause, @nodes) = @_;
	my $self = bless { dir => PostgreSQL::Test::Utils::tempdir, pids => [],
		who => [ map { ++$last_writer } 1 .. $count ] }, $class;
	for my $who (@{ $self->{who} })
	{
		my $pid = fork // die;
		push @{ $self->{pids} }, $pid;
		next if $pid;
		eval { work($self->{dir}, $who, $pause, map { ref ? $_->connstr($db) : $_ } @nodes) };
		warn $@ if $@;
		POSIX::_exit(0);
	}
	return $self;
}

sub work
{
	my ($dir, $who, $pause, @servers) = @_;
	open my $ledger, '>', "$dir/$who" or die;
	$ledger->autoflush;
	my ($n, $at, $psql, $in, $refused) = (0, 0);
	local $SIG{PIPE} = 'IGNORE';
	open STDERR, '>', "$dir/$who.err";
	my $parent = getppid;
	while (!-e "$dir/stop" && getppid == $parent)
	{
		if (!$psql)
		{
			$psql = IPC::Open2::open2(my $reader, my $writer, 'psql', '-XAtq', '-v',
				'VERBOSITY=sqlstate', '-d', $servers[$at]);
			$in = [ $reader, $writer ];
			$writer->autoflush;
		}
		$n++;
		my @tables = ("INSERT INTO insta5.photos (who, n) VALUES ($who, $n)",
			'INSERT INTO insta5.events (n) VALUES (1)',
			"UPDATE insta5.counters SET n = n + 1 WHERE who = $who",
			'INSERT INTO insta5.likes (photo_id) SELECT max(id) FROM insta5.photos');
		@tables = reverse @tables if $who % 2;
		print { $in->[1] } join('\; ', @tables,
			"SELECT max(id) FROM insta5.photos WHERE who = $who")
		  . ";\n\\echo state :SQLSTATE\n";
		my ($state, $id);
		while (my $line = readline $in->[0])
		{
			$id = $1 if $line =~ /^(\d+)$/;
			$state = $1, last if $line =~ /^state (\w+)/;
		}
		if (defined $state && $state eq '00000')
		{
			print $ledger "$n $id\n";
			printf $ledger "refused %.3f\n", time - $refused if $refused;
			undef $refused;
		}
		else
		{
			print $ledger 'error ', $state // 'lost', "\n";
			$refused //= time if ($state // '') eq '55000';
			if (!defined $state || $state eq '08006' || $state =~ /^57P/)
			{
				close $_ for @$in;
				waitpid $psql, 0;
				undef $psql;
				sleep(0.05);
			}
			elsif ($state =~ /^(55000|3F000|42P01)$/)
			{
				$at = ($at + 1) % @servers;
				close $_ for @$in;
				waitpid $psql, 0;
				undef $psql;
				sleep(0.02);
			}
		}
		sleep($pause * (0.5 + rand)) if $pause;
	}
	return;
}

# End them; returns how many transactions were acknowledged, and what is wrong with them on the
# server that serves the shard now.
sub stop
{
	my ($self, $node) = @_;
	PostgreSQL::Test::Utils::append_to_file("$self->{dir}/stop", '');
	waitpid $_, 0 for @{ $self->{pids} };
	my (%acked, %ids, %errors, @refused, @wrong);
	for my $who (@{ $self->{who} })
	{
		for (split /\n/, PostgreSQL::Test::Utils::slurp_file("$self->{dir}/$who"))
		{
			if (/^refused (.*)/) { push @refused, $1 }
			elsif (/^error (.*)/) { $errors{$1}++ }
			elsif (/^(\d+) (\d+)/)
			{
				$acked{"$who $1"} = 1;
				push @wrong, "ID $2 came twice" if $ids{$2}++;
			}
		}
	}
	my %there;
	for (split /\n/, $node->safe_psql($db,
			q{SELECT who, n, count(*), min(id) FROM insta5.photos WHERE who > 0 GROUP BY 1, 2}))
	{
		my ($who, $n, $count, $id) = split /\|/;
		$there{"$who $n"} = $id;
		push @wrong, "$who $n is there $count times" if $count > 1;
	}
	push @wrong, map { "$_ is lost" } grep { !$there{$_} } sort keys %acked;
	# as many rows in each table, and each identity value once
	push @wrong, split /\n/, $node->safe_psql($db, q{
		SELECT 'counter ' || c.who FROM insta5.counters AS c
		WHERE n <> (SELECT count(*) FROM insta5.photos WHERE who = c.who)
		UNION ALL SELECT 'likes' WHERE (SELECT count(*) FROM insta5.likes)
			<> (SELECT sum(n) FROM insta5.counters)
		UNION ALL SELECT 'events' WHERE (SELECT count(*) FROM insta5.events)
			<> (SELECT sum(n) FROM insta5.counters)
		UNION ALL SELECT 'serial' FROM insta5.photos GROUP BY serial HAVING count(*) > 1
		UNION ALL SELECT 'place' FROM insta5.likes GROUP BY place HAVING count(*) > 1});
	return {
		count  => scalar keys %acked,
		wrong  => join(', ', @wrong[ 0 .. ($#wrong > 9 ? 9 : $#wrong) ]),
		errors => \%errors,
		refused => [ sort { $a <=> $b } @refused ]
	};
}

package main;

#### A move, and back, while clients write ####

old($schema);
is(im('--check-only', 'insta5'), 0, '--check-only finds nothing in the way');
is(left(), ' ', '--check-only changes nothing');

# of writers during the kills, in seconds
my $pause = $ENV{FULL} ? 0.02 : 0.06;
my $writers = Writers->start(4, 0, $old, $new);
is(im('insta5', @slow), 0, 'a move while clients write without a pause');
my $printed = $out;
like($out, qr/verified: 4 tables, \d+ rows, the same/,
	'a move while clients write: the rows are compared');
is(places(), 'insta5 frozen insta5', 'a move while clients write: the target serves the shard');
like(error_of($old, 'INSERT INTO insta5.photos (id) VALUES (1)'), qr/shard insta5 is frozen/,
	'the source refuses superusers after the switch: INSERT');
like(error_of($old, "$_ insta5.events_1" . (/DELETE|TRUNC/ ? '' : ' SET n = 1')),
	qr/shard insta5 is frozen/, "the source refuses superusers after the switch: $_")
  for 'UPDATE', 'DELETE FROM', 'TRUNCATE';
is(new(q{SELECT count(*) FROM pg_class WHERE relnamespace = 'insta5'::regnamespace
	AND relkind = 'r' AND reltuples < 0}), 0,
	'a move while clients write: the target has statistics');
is(im('insta5'), 0, 'the same command after a move finds nothing to do');
like($out, qr/^[^\n]*insta5: moved, the target serves it; next: --finish, or --reverse\n\z/,
	'the same command after a move says that the target serves');
is(im('--cancel'), 5, 'a move is not cancelled after the switch');
sleep(0.3);
is(im('--reverse', @slow), 0, '--reverse while clients write without a pause');
is(places(), 'insta5 insta5 frozen', 'the source serves the shard after --reverse');
sleep(0.3);
my $sum = $writers->stop($old);
is($sum->{wrong}, '',
	"a move and back: none of $sum->{count} transactions is lost, and none came twice");
is(join(' ', grep { !/^(55000|3F000|42P01)$/ } keys %{ $sum->{errors} }), '',
	'a move and back: clients saw no deadlock, and no error but that of a frozen shard');
note("the longest wait after a refusal: $sum->{refused}[-1] s");

is(im('--verify'), 0, '--verify after --reverse finds no difference');
like($out, qr/verified: 4 tables/, '--verify after --reverse compares all tables');
$writers = Writers->start(2, 0.01, $old, $new);
is(im('--verify'), 0, '--verify while clients write finds no difference');
is($writers->stop($old)->{wrong}, '',
	'--verify while clients write loses none of their transactions');

# a commit that the copy shows before its own server does: the session stops between the two
{
	configure($old, 'synchronous_standby_names', 'nobody');
	my $late = IPC::Run::start([ 'psql', '-Xqd', $old->connstr($db),
		'-c', 'INSERT INTO insta5.photos (who, n) VALUES (-1, 0)' ], '<', \undef);
	my $waits = q{FROM pg_stat_activity WHERE wait_event = 'SyncRep'};
	$old->poll_query_until($db, "SELECT count(*) = 1 $waits") or die;
	my $pid = old("SELECT pid $waits");
	kill 'STOP', $pid;
	$old->append_conf('postgresql.conf', q{synchronous_standby_names = ''});
	$old->reload;
	$new->poll_query_until($db, 'SELECT EXISTS (SELECT FROM insta5.photos WHERE who = -1)') or die;
	is(old('SELECT count(*) FROM insta5.photos WHERE who = -1'), 0,
		'a commit is on the copy before its own server shows it');
	my $goes_on = "(sleep 0.4; kill -CONT $pid) >/dev/null 2>&1 &";
	is(im({ at => 'comparing', do => $goes_on }, '--verify'), 0,
		'--verify finds no difference in a row that only the copy shows yet');
	$late->finish;
}

# the page shows what it prints
{
	my ($page) = grep { $_->{shows} } section_blocks('docs/moving-a-shard.md', 'With one command');
	# without seconds, counts and sizes
	my $kinds = sub {
		my ($text) = @_;
		$text =~ s/^ *\d+\.\d\d  //mg;
		$text =~ s/\d[\d.]*( kB| MB| bytes)?/N/g;
		$text =~ s/tables?\b/tables/g;
		return { map { $_ => 1 } split /\n/, $text };
	};
	my ($shown, $printed) = map { $kinds->($_) } $page->{shows}, $printed;
	is(join(', ', grep { !$printed->{$_} } sort keys %$shown), '',
		'the page shows what a move prints');
}

# the copy and the way back end
($from, $to) = ($new, $old);
my $published = PostgreSQL::Test::Utils::tempdir . '/published';
is(im({ at => 'unpublished', do => join(' ', '(',
		(map { 'psql -XAtqd "' . $_->connstr($db)
			  . '" -c "SELECT count(*) FROM pg_publication_rel";' } $old, $new),
		')', '>', $published) }, '--finish'),
	0, '--finish of the way back');
is(slurp_file($published), "0\n0\n",
	'--finish empties the publications before it drops them');
is(places() . left(), 'insta5 - ', '--finish of the way back drops the copy, and leaves nothing');
is(im('--finish'), 0, '--finish again does nothing');
($from, $to) = ($old, $new);

#### Killed at each step ####

# What is served, and where, after a kill and the same command again.  A move is killed at
# each step in turn: each run goes on to the next step.
sub killed_at_each
{
	my ($name, $do, $after, $args, @at) = @_;
	my $reached = 0;
	my @failed;
	for my $at (@at)
	{
		# after a kill, the copy can be whole before the next run looks
		$at .= '|way back published' if $at =~ /^(both dumped|refreshed|following)$/;
		my $got = im({ at => $at, do => $do }, @$args);
		$after->() if $after;
		$reached++ if $got == -1 || $got == 3;
		push @failed, "$at: $got $err" unless $got == -1 || $got == 3 || $got == 0;
	}
	is(im(@$args), 0, "$name: the last run ends well");
	is("@failed", '', "$name: each run was killed, or ended well");
	return $reached;
}
my $serving = sub { return $_[0]->safe_psql($db, q{SELECT NOT frozen FROM instaid.shards}) };
old('UPDATE insta5.counters SET n = 0; TRUNCATE insta5.photos, insta5.likes, insta5.events;');
$writers = Writers->start(3, $pause, $old, $new);
# of --finish and --cancel, too
my @killed_ending = $ENV{FULL} ? @ending[ 0 .. 4 ] : 'slots dropped';
my $n = killed_at_each('killed at each step', undef, undef, ['insta5'], @moving);
is($n, @moving, "a move was killed after each of: @moving");
is(places(), 'insta5 frozen insta5',
	'the target serves the shard after a move that was killed at each step');
is(back_to_older(), 0, 'after a move that was killed at each step, the shard gets to --from');
$n = killed_at_each("--finish killed after: @killed_ending", undef, undef, ['--finish'],
	@killed_ending);
is($n, @killed_ending, "--finish was killed after each of: @killed_ending");
is(places() . left(), $older ? 'insta5 - ' : '- insta5 ',
	'--finish that was killed leaves nothing');
$sum = $writers->stop($to);
is($sum->{wrong}, '',
	"programs killed: none of $sum->{count} transactions is lost, and none came twice");
cmp_ok($sum->{count}, '>', 10, 'programs killed: clients were served meanwhile');

#### Servers killed ####

($from, $to) = ($to, $from);
for my $side ('source', 'target')
{
	$writers = Writers->start(3, $pause, $old, $new);
	my @at = $ENV{FULL} ? @straight[ 0 .. $#straight - 1 ]
	  : $side eq 'source' ? 'switched' : 'told';
	my @failed;
	for my $at (@at)
	{
		my $node = $side eq 'source' ? $from : $to;
		my $got = im({ at => $at, do => kill_server($node) }, 'insta5');
		start_again($node);
		# a program that needs the server no more ends well
		push @failed, "$at: $got" unless $got == 3 || $got == 1
			|| $at =~ /^(publication dropped|way back enabled)$/;
		# then a move of its own for each step
		next unless $ENV{FULL};
		$got = im('insta5');
		push @failed, "after $at: $got" if $got;
		sleep(0.1);
		$got = back_to_older() || im('--finish');
		push @failed, "finished after $at: $got " . left() if $got || left() ne ' ';
		($from, $to) = ($to, $from);
	}
	is("@failed", '', "the $side is killed after: @at");
	is(im('insta5') || back_to_older(), 0,
		"the $side was killed: the same command again moves the shard");
	sleep(0.2);
	$sum = $writers->stop($to);
	is($sum->{wrong}, '',
		"the $side was killed: none of $sum->{count} transactions is lost, and none came twice");
	is(im('--finish'), 0, "the $side was killed: --finish ends well");
	is(left(), ' ', "the $side was killed: --finish leaves nothing");
	($from, $to) = ($to, $from);
}

#### Networks ####

# Something between two machines: it is cut, which closes all connections, or it hangs.
package Network;

use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;

sub new
{
	my ($class, $node, $db) = @_;
	my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20) or die $!;
	my $server = $node->host . '/.s.PGSQL.' . $node->port;
	my $parent = $$;
	my $pid = fork // die;
	if (!$pid)
	{
		my ($is_cut, %other) = (0);
		my $select = IO::Select->new($listen);
		local $SIG{USR1} = sub { $is_cut = 1 };
		local $SIG{USR2} = sub { $is_cut = 0 };
		local $SIG{PIPE} = 'IGNORE';
		my $end = sub {
			my ($end) = @_;
			return unless $other{$end};
			for my $each ($end, delete $other{$end})
			{
				delete $other{$each};
				$select->remove($each);
				close $each;
			}
		};
		while (getppid == $parent)
		{
			my @ready = $select->can_read(0.2);
			if ($is_cut)
			{
				$end->($_) for $select->handles;
			}
			for my $from (@ready)
			{
				if ($from == $listen)
				{
					my $client = $listen->accept;
					my $way = $is_cut ? undef : IO::Socket::UNIX->new(Peer => $server);
					next unless $way;
					$select->add($client, $way);
					@other{ $client, $way } = ($way, $client);
				}
				elsif ($other{$from})
				{
					my $got = sysread $from, my $bytes, 65536;
					for (my $at = 0; $got && $at < $got;)
					{
						my $sent = syswrite $other{$from}, $bytes, $got - $at, $at;
						$got = 0, last unless $sent;
						$at += $sent;
					}
					$end->($from) unless $got;
				}
			}
		}
		POSIX::_exit(0);
	}
	return bless { pid => $pid, connection => 'host=127.0.0.1 port=' . $listen->sockport
		  . " dbname=$db user=" . (getpwuid $<)[0] }, $class;
}
sub DESTROY
{
	my ($self) = @_;
	local $?;
	kill 'KILL', $self->{pid};
	waitpid $self->{pid}, 0;
	return;
}
# The shell command that interrupts it for a while
sub breaks
{
	my ($self, $how, $seconds) = @_;
	my ($off, $on) = @{ { cut => [ 'USR1', 'USR2' ], hung => [ 'STOP', 'CONT' ] }->{$how} };
	# once, and not at each attempt
	my $done = PostgreSQL::Test::Utils::tempdir . '/done';
	return "[ -e $done ] || { >$done; kill -$off $self->{pid};"
	  . " (sleep $seconds; kill -$on $self->{pid}) >/dev/null 2>&1 & }";
}

package main;

($from, $to) = ($old, $new) if places() =~ /^insta5 /;
$writers = Writers->start(3, $pause, $old, $new);
# how, and when, without FULL
my %network = ('program to source' => 'hung stopped', 'program to target' => 'cut started',
	'target to source' => 'cut enabled');
for my $way (sort keys %network)
{
	my @failed;
	for my $how ('cut', 'hung')
	{
		for my $at ('enabled', 'stopped', 'started')
		{
			next unless $ENV{FULL} || "$how $at" eq $network{$way};
			my $network = Network->new($way =~ /to target/ ? $to : $from, $db);
			%through = $way =~ /^target/ ? ()
			  : ($way =~ /to (\w+)/ && $1 eq 'source' ? 'from' : 'to' => $network->{connection});
			my @reach = ('--source-for-target', $way =~ /^target/ ? $network->{connection}
				  : $from->connstr($db), '--target-for-source', $to->connstr($db));
			my $got = im({ at => $at, do => $network->breaks($how, 3) }, 'insta5', '--max-stop', 1,
				@reach);
			push @failed, "$how at $at: $got" unless $got =~ /^[037]$/;
			my $until = time + 60;
			sleep(0.1) while $got && im('insta5', @reach) =~ /^[37]$/ && time < $until;
			push @failed, "$how at $at, again: $rc $err" if $rc;
			%through = ();
			back_to_older() || im('--finish');
			push @failed, "$how at $at, finished: $rc " . left() if $rc || left() ne ' ';
			($from, $to) = ($to, $from);
		}
	}
	is("@failed", '', "the network from $way is cut, or hangs");
}
$sum = $writers->stop($from);
is($sum->{wrong}, '',
	"broken networks: none of $sum->{count} transactions is lost, and none came twice");
note("the longest wait after a refusal: $sum->{refused}[-1] s");
is(im('--prepare', 'insta5', '--source-for-target',
		Network->new($from, $db)->{connection}), 0,
		'--prepare through a network that is then gone');
is(im('--max-wait', 30), 0, 'the next command replaces a network that is gone');
is(back_to_older() || im('--finish'), 0, '--finish of a move whose network was replaced');
($from, $to) = ($to, $from);

#### Cancelled ####

($from, $to) = ($old, $new) if places() =~ /^insta5 /;
my ($switched) = grep { $straight[$_] eq 'switched' } 0 .. $#straight;
my @before = @straight[ 0 .. $switched - 1 ];
{
	my $only = places() . left();
	my @wrong;
	for my $at ($ENV{FULL} ? @before : ('defined', 'told'))
	{
		my $got = im({ at => $at }, 'insta5');
		push @wrong, "$at: moved, $got" if $got != -1;
		$got = im('--cancel');
		push @wrong, "$at: --cancel $got" if $got;
		my $now = places() . left();
		push @wrong, "$at: $now" if $now ne $only;
		push @wrong, "$at: no insert"
		  if error_of($from, 'INSERT INTO insta5.photos (who) VALUES (0)');
	}
	is("@wrong", '', 'cancelled after a kill, both sides are as before');
	is(im({ at => 'stopped' }, 'insta5'), -1,
		'before --cancel, a move is killed while writes are refused');
	is(im({ at => $_ }, '--cancel'), -1, "--cancel is killed after: $_")
	  for $ENV{FULL} ? ('served again', @{ $again{'way back'} }) : (), @killed_ending;
	is(im('--cancel'), 0, "--cancel killed after: @killed_ending");
	is(places() . left(), $only, '--cancel that was killed leaves both sides as before');
	is(im('--cancel'), 0, '--cancel again does nothing');
}

#### What else can happen ####

($from, $to) = ($old, $new);

# A database of this name on both servers, with a shard on the first
sub fresh
{
	my ($name, $sql, %options) = @_;
	$db = $name;
	for my $node ($old, $new)
	{
		$node->safe_psql('postgres', "CREATE DATABASE $db");
		$node->safe_psql($db, $options{install} // 'CREATE EXTENSION instaid');
	}
	old(q{SELECT instaid.create_shard('insta5', 5);
		CREATE TABLE insta5.t (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
		INSERT INTO insta5.t (n) SELECT generate_series(1, 100);} . ($sql // ''));
	return;
}
sub ends
{
	my ($what) = @_;
	is(im('--finish'), 0, "$what: --finish");
	is(left(), ' ', "$what: --finish leaves nothing");
	return;
}

# a session that holds what it is given
sub holds
{
	my ($node, $sql) = @_;
	my $session = Clients::session($node, $db);
	$session->($sql);
	return $session;
}
# the program in the background
sub started
{
	my (@args) = @_;
	my %run = (out => '');
	$run{run} = IPC::Run::start([ 'instaid-move', '--from', $from->connstr($db),
		'--to', $to->connstr($db), @args ], '<', \undef, '>', \$run{out}, '2>&1',
		IPC::Run::timeout(600));
	return \%run;
}
sub ended { my ($run) = @_; $run->{run}->finish; return $? >> 8 }

# After each step, both sides have what the model of move/test/states.c has
fresh('model');
{
	my $seen = PostgreSQL::Test::Utils::tempdir . '/seen';
	my $look = sub {
		my (@sides) = map { q{"} . ($_->connstr($db) =~ s/'//gr) . q{"} } @_;
		return "instaid-move --from $sides[0] --to $sides[1] --status --json | "
		  . q{perl -ne '$s = $1 if /"source": "(.*)",/;}
		  . q{ print "$ENV{MOVE_STEP}: $s | $1\n" if /"target": "(.*)"/'} . " >>$seen";
	};
	is(im({ at => '*', do => $look->($old, $new) }, 'insta5'), 0,
		'a move, seen after each of its steps');
	is(im({ at => '*', do => $look->($new, $old) }, '--reverse'), 0,
		'--reverse, seen after each of its steps');
	($from, $to) = ($new, $old);
	is(im({ at => '*', do => $look->($old, $new) }, '--finish'), 0,
		'--finish, seen after each of its steps');
	($from, $to) = ($old, $new);
	my @model = grep { !/^ended/ } split /\n/, `move/test_states print`;
	my %steps = map { /^(.*?):/ ? ($1 => 1) : () } @model;
	is(join("\n", grep { /^(.*?):/ && $steps{$1} } split /\n/, slurp_file($seen)),
		join("\n", @model), 'each step leaves what the model says');
}

# What is not committed when it switches, and what was created meanwhile
fresh('created', 'GRANT ALL ON SCHEMA insta5 TO app');
is(im('--prepare', 'insta5'), 0, '--prepare, before tables are created');
my $creator = holds($old, 'BEGIN; CREATE TABLE insta5.late (id bigint PRIMARY KEY);
	INSERT INTO insta5.late VALUES (1)');
is(im('--switch', '--max-wait', 1), 8, '--switch waits for a table that is not committed yet');
like($out . $err, qr/session \d+ creates something in the schema/,
	'--switch names the session whose table is not committed yet');
is(places(), 'insta5 insta5 frozen', 'the source serves while --switch waits for a table');
$creator->('COMMIT');
is(im(), 6, 'a table that was committed since is missing on the target');
like($out, qr/only on the source: table insta5\.late/,
	'the table that is missing on the target is named');
new('CREATE TABLE insta5.late (id bigint PRIMARY KEY)');
old('CREATE TABLE insta5.log (n integer); INSERT INTO insta5.log VALUES (1);
	UPDATE insta5.log SET n = 2; DROP TABLE insta5.log; ALTER TABLE insta5.t ADD x integer;
	UPDATE insta5.t SET x = n');
is(im(), 6, 'a table without a key was updated and dropped, and another one altered');
like($out, qr/^  differs: table insta5\.t of .*\n(    .*\n)*    source:     x integer$/m,
	'the table that was altered is named, with the line that differs');
$new->poll_query_until($db, 'SELECT bool_or(apply_error_count > 0) FROM pg_stat_subscription_stats')
  or die;
is(im('--status'), 0, '--status while changes cannot be applied');
like($out, qr/[1-9]\d* errors\n +The server log of the target tells why\.\n/,
	'--status tells where to look when changes cannot be applied');
new('ALTER TABLE insta5.t ADD x integer');
is(im('--max-wait', 30), 0, 'with the same tables on the target, the move goes on');
is(new('SELECT count(*) FROM insta5.late; SELECT count(x) FROM insta5.t'), "1\n100",
	'tables that were created or altered during a move have their rows');
new('ALTER TABLE insta5.t ADD y integer; CREATE TABLE insta5.newer ()');
old('CREATE TABLE insta5.other (n integer)');
is(im('--finish'), 6, '--finish keeps a table that the target lacks');
like($err, qr/insta5\.other/, '--finish names the table that the target lacks');
old('DROP TABLE insta5.other');
is(im('--finish'), 6, '--finish compares no table that has other columns on the target');
old('ALTER TABLE insta5.t ADD y integer; CREATE VIEW public.v AS SELECT * FROM insta5.t');
is(im('--finish'), 5, '--finish keeps a schema that something outside depends on');
like($out, qr/view public\.v/, '--finish names what depends on the schema');
old('DROP VIEW public.v');
ends('tables created meanwhile');

# Without deadlock, whatever clients hold; autovacuum does not hold it up
fresh('held');
$creator = holds($old, 'BEGIN; INSERT INTO insta5.t (n) VALUES (1)');
is(im('--prepare', 'insta5', '--max-wait', 2), 8,
	'--prepare makes no guards during a long transaction');
$creator->('COMMIT');
is(im('--prepare'), 0, '--prepare makes guards when the long transaction has ended');
$creator = holds($old, 'BEGIN; INSERT INTO insta5.t (n) VALUES (2)');
is(im('--switch', '--max-wait', 1, '--max-stop', 0.2), 8,
	'--switch gives up when a long transaction does not end');
is(places(), 'insta5 insta5 frozen', 'the source serves when --switch gives up');
$creator->('COMMIT');
is(im('--switch', '--max-wait', 1, '--max-stop', 0.001), 8,
	'--switch does not keep to a --max-stop of a millisecond');
like($out, qr/taken back: /, '--switch that takes longer than --max-stop is taken back');
is(places(), 'insta5 insta5 frozen', 'the source serves when --switch was taken back');
my $reader = holds($old, 'BEGIN; SELECT count(*) FROM insta5.t');
my $late = holds($old, "BEGIN; SELECT pg_advisory_lock(7)");
is(im('--switch'), 0, '--switch does not wait for readers');
is(new('SELECT count(*) FROM insta5.t'), 102, '--switch beside readers: the target has all rows');
is($reader->('SELECT count(*) FROM insta5.t; COMMIT'), '102',
	'a transaction that reads goes on after the switch');
ends('locks of clients');

# The router, and what fails while writes are refused
fresh('hooked');
my $told = PostgreSQL::Test::Utils::tempdir . '/told';
my $hook = "echo \$INSTAID_MOVE \$INSTAID_MOVE_SHARDS >>$told";
is(im('insta5', '--on-switch', "$hook; false"), 9, 'a router that fails takes the switch back');
is(slurp_file($told), "switch {insta5}\nback {insta5}\n",
	'the router that failed is told that the shard goes back');
like($err, qr/why:  it failed with exit status 1$/m, 'the exit status of the router is told');
is(places(), 'insta5 insta5 frozen', 'the source serves after the router failed');
is(im('--on-switch', '[ $INSTAID_MOVE = back ] || sleep 60', '--max-stop', 3), 9,
	'a router that hangs takes the switch back');
like($err, qr/why:  it took longer than --max-stop$/m,
	'the program tells that the router took longer than --max-stop');
is(error_of($old, 'INSERT INTO insta5.t (n) VALUES (3)'), '',
	'the source takes writes after the router hung');
$new->safe_psql($db, q{CREATE FUNCTION public.no() RETURNS event_trigger LANGUAGE plpgsql AS
	$$ BEGIN RAISE 'not now'; END $$; CREATE EVENT TRIGGER no ON ddl_command_start
	WHEN TAG IN ('ALTER SEQUENCE') EXECUTE FUNCTION public.no()});
is(im('--max-wait', 1), 8, 'the target cannot thaw the shard');
like($err, qr/not now\n.*next: +Remove the cause there/,
	'the error of a target that cannot thaw is told');
unlike($out, qr/taken back/, 'writes are not stopped for a target that cannot thaw');
is(places(), 'insta5 insta5 frozen', 'the source serves when the target cannot thaw');
new('DROP EVENT TRIGGER no');
unlink $told;
is(im('--on-switch', $hook), 0, 'the switch succeeds once the target can thaw');
is(slurp_file($told), "switch {insta5}\n", 'the router is told once of a switch that succeeds');
old(q{CREATE FUNCTION public.no() RETURNS event_trigger LANGUAGE plpgsql AS
	$$ BEGIN RAISE 'not now'; END $$; CREATE EVENT TRIGGER no ON ddl_command_start
	WHEN TAG IN ('DROP SCHEMA') EXECUTE FUNCTION public.no()});
isnt(im('--finish'), 0, '--finish fails when the source cannot drop the schema');
unlike($out, qr/finished/, '--finish that fails does not say that it finished');
old('DROP EVENT TRIGGER no');
ends('a router');

# A target that goes while writes are refused
fresh('gone');
is(im({ at => 'stopped', do => kill_server($new) }, 'insta5'), 3,
	'the target is killed while writes are refused');
is(old('SELECT frozen FROM instaid.shards'), 'f',
	'the source is thawed after the target was killed');
is(error_of($old, 'INSERT INTO insta5.t (n) VALUES (4)'), '',
	'the source takes writes after the target was killed');
start_again($new);
is(im(), 0, 'the same command moves the shard once the target is back');
ends('a target that was killed');

# What the page says for a server that is gone for good, on either side
fresh('gone_for_good');
is(im({ at => 'stopped' }, 'insta5'), -1,
	'before a clean-up by hand, a move is killed while writes are refused');
{
	my ($block) = section_blocks('docs/moving-a-shard.md', 'States');
	new($block->{text});
	$old->poll_query_until($db, 'SELECT NOT bool_or(active) FROM pg_replication_slots') or die;
	old($block->{text});
}
is(left(), ' ', 'the page cleans up without the program: nothing is left on either side');
is(error_of($_, 'INSERT INTO insta5.t (n) VALUES (4)'), '',
	'after the clean-up of the page, writes are taken by server ' . $_->name) for $old, $new;

# It was not gone: what the page says for the older side, when one was cleaned up and both serve
fresh('is_back');
is(im('insta5'), 0, 'a move before its target seems to be gone');
my ($clean_up, $clean_older) =
  map { $_->{text} } section_blocks('docs/moving-a-shard.md', 'States');
old($clean_up);
for my $args ([], ['--reverse'], ['--finish'], ['--cancel'])
{
	my $name = "both sides serve: @{$args}[0 .. $#$args] ";
	is(im(@$args), 5, $name . 'is refused');
	like($err, qr/together\n  why:  The target has insta5 of \w+, not frozen, and the source /,
		"${name}tells");
}
is(exchanged('--finish'), 5, 'both sides serve: --finish of the other direction is refused');
is(im('--status'), 0, 'both sides serve: --status');
like($out, qr/serves:  both sides: FREEZE ONE\n(.*\n)*  next:    keep clients from the side/,
	'both sides serve: --status tells to freeze one');
# this side has no subscription
new($clean_older =~ s/^ALTER SUBSCRIPTION.*\n//r);
is(places() . left(), 'insta5 - ', 'the page cleans up the older side, and the other serves');

# Servers that hang while writes are refused, and come back
fresh('hangs');
my $hung = PostgreSQL::Test::Utils::tempdir . '/hung';
my $hangs = sub {
	my ($node, $seconds) = @_;
	my ($pid) = split /\n/, slurp_file($node->data_dir . '/postmaster.pid');
	my $all = "$pid \$(cat /proc/$pid/task/$pid/children)";
	return ">$hung; kill -STOP $all; (sleep $seconds; kill -CONT $all) >/dev/null 2>&1 &";
};
my $began = time;
is(im({ at => 'applied', do => $hangs->($new, 8) }, 'insta5', '--max-stop', 1), 3,
	'the target hangs while writes are refused');
like($err, qr/the target does not answer/, 'a target that does not answer is told');
cmp_ok(time - (stat $hung)[9], '<', 8, 'the program ends before a hanging target comes back');
is(error_of($old, 'INSERT INTO insta5.t (n) VALUES (4)'), '',
	'the source takes writes after the target hung');
sleep(0.1) while im('--status') == 3 && time < $began + 60;
is(im({ at => 'stopped', do => $hangs->($old, 3) }, '--max-stop', 1), 3,
	'the source hangs while writes are refused');
is(error_of($old, 'INSERT INTO insta5.t (n) VALUES (4)'), '',
	'a source that hung takes writes when it is back');
is(im({ at => 'started', do => $hangs->($new, 3) }, '--max-stop', 1), 0,
	'the target hangs when only it knows what is served');
is(places(), 'insta5 frozen insta5', 'the program waits for a hanging target that may serve');
ends('servers that hung');
fresh('paused');
is(im({ at => 'applied', do => '(sleep 3; kill -CONT $PPID) >/dev/null 2>&1 & kill -STOP $PPID' },
		'insta5', '--max-stop', 1, '--max-wait', 1) =~ /^[38]$/, 1,
	'the program is suspended while writes are refused');
is(error_of($old, 'INSERT INTO insta5.t (n) VALUES (4)'), '',
	'the source takes writes after the program was suspended');
is(im(), 0, 'the same command moves the shard after the program was suspended');
ends('a program that was suspended');

# Signals, and limits of the sessions
fresh('signals');
for my $signal ($ENV{FULL} ? ('HUP', 'INT') : (), 'TERM')
{
	# system() ignores SIGINT while it waits, and a test in the background ignores it
	local $SIG{$signal} = 'DEFAULT';
	my $do = "(sleep 0.5; kill -$signal \$PPID) >/dev/null 2>&1 &";
	is(im({ at => 'stopped', do => $do }, 'insta5', '--on-switch', 'sleep 1'), 8,
		"SIG$signal ends the program");
	is(places(), 'insta5 insta5 frozen', "the source serves after SIG$signal");
}
{
	local $ENV{PGOPTIONS} = '-c idle_session_timeout=500ms'
	  . ($old->pg_version >= 17 ? ' -c transaction_timeout=500ms' : '');
	is(im('--on-switch', 'sleep 1'), 0, 'timeouts of sessions do not end a move');
}
ends('signals');

# A view in the place of a table whose rows are compared, as an owner can put it there
fresh('planted', q{CREATE FUNCTION insta5.code() RETURNS integer LANGUAGE plpgsql AS
	$$ BEGIN RAISE 'this runs as %', current_user; END $$});
my $plants = "psql -qd \"" . $new->connstr($db) . "\" -c 'ALTER TABLE insta5.t RENAME TO u'
	-c 'CREATE VIEW insta5.t AS SELECT id, insta5.code() AS n FROM insta5.u'";
is(im({ at => 'comparing', do => $plants =~ s/\n/ /r }, 'insta5'), 1,
	'a view in the place of a table ends the comparison');
unlike($err, qr/this runs as/, 'a view in the place of a table: none of its functions is run');
like($err, qr/access to non-system view/, 'a view in the place of a table is told');
new('DROP VIEW insta5.t; ALTER TABLE insta5.u RENAME TO t');
ends('a view in the place of a table');

# As the owner of the shard on the source, who may replicate
fresh('owned');
$old->safe_psql('postgres', 'ALTER ROLE own REPLICATION; GRANT CREATE ON DATABASE owned TO own');
old('DROP SCHEMA insta5 CASCADE; SET ROLE own; SELECT instaid.create_shard($$insta5$$, 5);
	CREATE TABLE insta5.t (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
	INSERT INTO insta5.t (n) SELECT generate_series(1, 10)');
{
	my @sides = ('--from', $old->connstr($db) . ' user=own', '--to', $new->connstr($db));
	for my $args ([ '--one-way', '--trust', 'own', 'insta5' ], ['--finish'])
	{
		IPC::Run::run([ 'instaid-move', @sides, @$args ], '<', \undef, '>', \$out, '2>', \$err);
		is($? >> 8, 0, "as the owner: @$args") or diag("$out$err");
	}
	is(new(q{SELECT count(*), nspowner::regrole FROM insta5.t, pg_namespace WHERE nspname = 'insta5'
		GROUP BY 2}) . left(), '10|own ',
		'a move as the owner keeps rows and owner, and leaves nothing');
}

# A column of another role's type that comes between --prepare and --switch
fresh('later');
is(im('--prepare', 'insta5'), 0, 'a move is prepared before a type of another role is used');
$_->safe_psql($db, q{CREATE SCHEMA mal AUTHORIZATION app; SET ROLE app;
	CREATE DOMAIN mal.d AS integer; RESET ROLE; ALTER TABLE insta5.t ADD y mal.d}) for $old, $new;
is(im('--switch'), 5, '--switch asks whose the definitions are that have changed');
like($out, qr/^  ! the shards use .* type mal\.d of the target, which belongs to app:/m,
	'--switch names the type of another role');
is(new('SELECT count(*) FROM pg_publication'), 0, 'no way back is made to definitions of others');
is(im('--switch', '--trust', 'app'), 0, '--switch goes on when the role is trusted');
old('ALTER TABLE insta5.t ADD z mal.d');
new('ALTER TABLE insta5.t ADD z mal.d');
is(im('--reverse'), 5, '--reverse asks whose the definitions are');
ends('a type of another role');

# Guards, statistics, rows that differ, the settings of the switch
fresh('rows', q{CREATE TABLE insta5.p (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
	CREATE TABLE insta5.p1 PARTITION OF insta5.p DEFAULT});
is(im({ at => 'stopped' }, 'insta5'), -1,
	'before a look at both sides, a move is killed while writes are refused');
is(new('SELECT subsynccommit FROM pg_subscription'), 'local',
	'the target confirms changes at once while writes are refused');
like(error_of($_, 'INSERT INTO insta5.p1 VALUES (1)'), qr/shard insta5 is frozen/,
	'rows of a partition are refused by server ' . $_->name) for $old, $new;
is(im('--status'), 0, '--status while writes are refused');
like($out, qr/insta5: stopping: the source refuses writes\n  serves:  none\n/,
	'--status tells that the source refuses writes');
new(q{SET session_replication_role = replica; UPDATE insta5.t SET n = 1000 WHERE n = 50;
	DELETE FROM insta5.t WHERE n = 51; INSERT INTO insta5.t VALUES (7, 7)});
is(im('--verify'), 6, '--verify finds rows that differ');
is(() = $out =~ /^  only on the (?:source: row \(\d{19}\)|target: row \((?:7|\d{19})\))/mg, 4,
	'--verify names rows that differ by their keys');
is(im(), 6, 'the switch is made, and finds rows that differ');
like($out, qr/table insta5\.t differs/, 'the switch names the table whose rows differ');
is(places(), 'insta5 frozen insta5', 'the target serves though rows differ');
is(im(), 6, 'the same command finds the rows that differ again');
new(q{UPDATE insta5.t SET n = 50 WHERE n = 1000; DELETE FROM insta5.t WHERE n = 7});
old(q{SET session_replication_role = replica; DELETE FROM insta5.t
	WHERE n = 51});
is(im({ at => 'comparing' }), -1, 'a move is killed while rows are compared');
is(im('--status'), 0, '--status after a kill while rows are compared');
like($out, qr/next:    run the command again, which compares the rows/,
	'--status tells that rows must still be compared');
is(im(), 0, 'the same command compares the rows after a kill');
like($out, qr/verified: \d tables, 98 rows/, 'the same command compares all rows after a kill');
is(im(), 0, 'the same command again after rows were compared');
unlike($out, qr/verified/, 'rows are compared only once');
ends('rows that differed');
fresh('late');
is(im({ at => 'comparing' }, 'insta5'), -1,
	'before --reverse, a move is killed while rows are compared');
is(im('--reverse'), 0, '--reverse of a move whose rows were not compared');
is(places(), 'insta5 insta5 frozen',
	'--reverse of a move whose rows were not compared: the source serves');
is(exchanged('--finish'), 0, '--finish after --reverse of a move whose rows were not compared');
is(im({ at => 'comparing' }, 'insta5', '--one-way'), -1,
	'a move with --one-way is killed while rows are compared');
new('INSERT INTO insta5.t (n) VALUES (1)');
is(im(), 6, 'a move with --one-way whose rows were not compared, and are not the same any more');
is(im('--no-verify'), 0, 'a move with --one-way ends without a comparison with --no-verify');
like($out, qr/the rows were not compared: --finish does it\n/,
	'a move with --one-way tells that its rows were not compared');
is(im('--finish'), 6, '--finish compares them, if the move did not');
is(im('--finish', '--no-verify'), 0, '--finish with --no-verify');
is(left(), ' ', '--finish with --no-verify leaves nothing');

# Definitions whose texts change when they are restored, and the same ones changed: the kind of the
# object, whose lines are shown
my @changed = (
	[ 'table', q{ALTER TABLE insta5.w DROP CONSTRAINT IF EXISTS k, ADD CONSTRAINT k
		CHECK (state IN ('new', '%s') AND n BETWEEN 1 AND 10 AND n <> 5)}, 'done', 'gone' ],
	[ 'table', 'ALTER TABLE insta5.w ALTER b SET DEFAULT ARRAY[1, %s]::bigint[]', 2, 3 ],
	[ 'index', q{DROP INDEX IF EXISTS insta5.i;
		CREATE INDEX i ON insta5.w (n) WHERE state %s ('new', 'done')}, 'IN', 'NOT IN' ],
	[ 'view', q{CREATE OR REPLACE VIEW insta5.v AS SELECT n FROM insta5.w
		WHERE state IN ('new', 'old') AND (n BETWEEN 1 AND 3 AND n %s 2)
		AND NOT EXISTS (SELECT 1, n UNION ALL SELECT 2, NULL)}, '<>', '>' ],
	[ 'policy', 'DROP POLICY IF EXISTS p ON insta5.w; CREATE POLICY p ON insta5.w USING (%s)',
		q{(state NOT IN ('new', 'done') OR n = 1) AND n = 2},
		q{state NOT IN ('new', 'done') OR (n = 1 AND n = 2)} ],
	[ 'rule', q{CREATE OR REPLACE RULE r AS ON INSERT TO insta5.v WHERE EXISTS (
		SELECT FROM insta5.w WHERE state IN ('new', '%s')) DO INSTEAD NOTHING}, 'a', 'b' ],
	[ 'trigger', q{CREATE OR REPLACE TRIGGER t BEFORE UPDATE ON insta5.w FOR EACH ROW
		WHEN ((NEW.n, OLD.n) = (1, 2) AND NEW.n > %s) EXECUTE FUNCTION insta5.f()}, 1, 2 ],
	[ 'function', q{CREATE OR REPLACE FUNCTION insta5.g(x varchar) RETURNS boolean
		RETURN x IN ('a', 'b') AND (length(x) BETWEEN 1 AND 3 AND x > '%s')}, 'a', 'b' ],
	[ 'domain', q{ALTER DOMAIN insta5.d DROP CONSTRAINT IF EXISTS k;
		ALTER DOMAIN insta5.d ADD CONSTRAINT k CHECK (VALUE %s ANY (ARRAY[1, 2]))}, '=', '<>' ],
	[ 'statistics', q{DROP STATISTICS IF EXISTS insta5.s;
		CREATE STATISTICS insta5.s ON (state IN ('a', '%s')), n FROM insta5.w}, 'b', 'c' ]);
fresh('written', q{CREATE DOMAIN insta5.d AS numeric(5, 2) NOT NULL;
	CREATE TABLE insta5.w (id bigint PRIMARY KEY, state varchar(20), n integer, b integer[],
		d insta5.d,
		EXCLUDE (state WITH =) WHERE (state IN ('new', 'done') AND (n, id) IN ((1, 2), (3, 4))));
	CREATE TABLE insta5.parts (id varchar) PARTITION BY LIST ((id IN ('a', 'b')));
	CREATE FUNCTION insta5.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';}
	. join ';', map { sprintf $_->[1], $_->[2] } @changed);
is(im('--prepare', 'insta5'), 0, 'definitions that a dump writes otherwise do not differ');
old(join ';', map { sprintf $_->[1], $_->[3] } @changed);
is(im(), 6, 'definitions that were changed since differ');
# as the page says, the queries of some are not compared between two versions
my @compared = grep { !$older || $_->[0] !~ /^(?:view|rule|function)$/ } @changed;
like($out, qr/^  differs: $_->[0] /m,
	"a changed definition is named, with its kind: $_->[0], $_->[3]") for @compared;
is(() = $out =~ /^  (?:differs|only on)/mg, @compared - 1,
	'definitions that were not changed are not named');
is(im('--cancel'), 0, '--cancel after definitions were changed');
is(im('--dump', 'insta5'), 0, 'definitions that a dump writes otherwise do not differ with --dump');
ends('definitions written otherwise');

# Default privileges of the target
fresh('privileges');
new('ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader');
is(im('insta5'), 6, 'default privileges of the target stop a move');
like($out, qr/only on the target: acl insta5\.TABLE t of .*\n    GRANT SELECT ON .* TO reader;/,
	'default privileges that would change the rights are told');
is(new("SELECT to_regnamespace('insta5')"), '',
	'default privileges of the target: nothing is left there');
new('ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM reader');
is(im(), 0, 'the same command goes on without default privileges');
ends('default privileges');

# A crash at the end of a table's copy, after its slot was dropped: the state is made by hand
fresh('copied', 'CREATE TABLE insta5.refers (id bigint PRIMARY KEY REFERENCES insta5.t);
	INSERT INTO insta5.refers SELECT id FROM insta5.t LIMIT 10');
is(im('--prepare', 'insta5'), 0, '--prepare, before the slot of a copy is gone');
new(q{ALTER SUBSCRIPTION instaid_move_5 DISABLE});
$new->poll_query_until($db, 'SELECT count(pid) = 0 FROM pg_stat_subscription') or die;
new(q{SET allow_system_table_mods = on; UPDATE pg_subscription_rel SET srsubstate = 'f',
	srsublsn = NULL WHERE srrelid = 'insta5.t'::regclass});
old('UPDATE insta5.t SET n = n + 1');
is(im('--max-wait', 60), 0, 'a copy whose slot is gone is made again');
like($out, qr/copying insta5\.t again/, 'the program tells that it copies a table again');
like($out, qr/verified: 2 tables, 110 rows, the same/, 'a table that is copied again has all rows');
old('ALTER SUBSCRIPTION instaid_move_5 DISABLE');
$new->poll_query_until($db, 'SELECT NOT bool_or(active) FROM pg_replication_slots') or die;
new('SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots');
is(im('--status'), 0, '--status when the slot of the way back is gone');
like($out, qr/next:    --finish: the slot of the way back is lost\n/,
	'--status tells that the slot of the way back is lost');
ends('a table copied again');

# A slot that is lost; slots of table copies
fresh('lost');
is(im('--prepare', 'insta5'), 0, '--prepare, before the slot is lost');
new('ALTER SUBSCRIPTION instaid_move_5 DISABLE');
configure($old, 'max_slot_wal_keep_size', '1MB');
old(q{SELECT pg_logical_emit_message(false, '', repeat('x', 1000)); SELECT pg_switch_wal();
	CHECKPOINT}) for 1 .. 3;
$old->poll_query_until('postgres', "SELECT wal_status = 'lost' FROM pg_replication_slots")
  or die 'the slot is not lost';
is(im('--switch'), 2, '--switch refuses a target that does not follow');
is(im('--status'), 0, '--status of a slot that is lost');
like($out, qr/: the slot of the source is lost\n(.*\n)*  next:    --cancel, and begin again\n/,
	'--status tells that the slot of the source is lost');
is(im(), 7, 'a move does not go on when its slot is lost');
like($err, qr/lost.*\n.*max_slot_wal_keep_size.*\n.*--cancel/,
	'the setting that loses a slot is told, and what to do');
configure($old, 'max_slot_wal_keep_size', '-1');
is(im('--cancel'), 0, '--cancel of a move whose slot is lost');
is(places() . left(), 'insta5 - ', '--cancel of a move whose slot is lost leaves nothing');
is(im({ at => 'defined' }, 'insta5'), -1, 'a move is killed before a copy that fails');
new('ALTER TABLE insta5.t ADD CONSTRAINT bad CHECK (n < 0);
	ALTER SUBSCRIPTION instaid_move_5 ENABLE');
new('ALTER SUBSCRIPTION instaid_move_5 REFRESH PUBLICATION');
$old->poll_query_until($db, "SELECT count(*) > 0 FROM pg_replication_slots
	WHERE slot_name ~ '_sync_'") or die 'no slot of a copy';
is(im(), 6, 'a move does not go on with another definition on the target');
is(im('--cancel'), 0, '--cancel of a move whose copy fails');
is(places() . left(), 'insta5 - ', '--cancel of a move whose copy fails leaves nothing');

# One run at a time; a slot that waits for a transaction of another database
my $here = $db;
$db = 'held';
my $other = holds($old, "BEGIN; CREATE TABLE x ()");
$db = $here;
my $waits = q{SELECT count(*) = 1 FROM pg_stat_activity
	WHERE query ~ 'create_logical' AND wait_event_type = 'Lock' AND pid <> pg_backend_pid()};
my $first = started('insta5');
$old->poll_query_until($db, $waits) or die;
is(im('insta5'), 4, 'a second run of the same move is refused');
like($err, qr/another run is moving insta5 with the source\n.*Session \d+ of role \w+ holds/,
	'a second run names the session of the first');
$first->{run}->kill_kill;
is($old->poll_query_until($db, "SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory'
	AND database = (SELECT oid FROM pg_database WHERE datname = '$db')"), 1,
	'the session of a killed run ends, though it waits');
$first = started('insta5');
$old->poll_query_until($db, $waits) or die;
$other->('COMMIT');
is(ended($first), 0, 'a run whose slot has waited moves the shard');
ends('a slot that waited');

# A shard that was frozen; a name that needs quotes; patterns; sequences; one server
fresh('many', q{CALL instaid.create_shards('user%s', 100, 119);
	DO $$ BEGIN FOR i IN 100..119 LOOP EXECUTE format('CREATE TABLE user%s.t (id bigint PRIMARY KEY
		DEFAULT user%1$s.next_id(), n serial); INSERT INTO user%1$s.t DEFAULT VALUES', i);
	END LOOP; END $$;
	CREATE SEQUENCE user100.down INCREMENT -1; SELECT nextval('user100.down');
	CREATE SEQUENCE user100.unused;
	SELECT instaid.freeze_shard('user101');
	SELECT instaid.create_shard('we"ird ''x'' \5', 7);
	CREATE TABLE "we""ird 'x' \5"."T ""1" (id bigint PRIMARY KEY
		DEFAULT "we""ird 'x' \5".next_id());
	INSERT INTO "we""ird 'x' \5"."T ""1" DEFAULT VALUES});
is(im('user%', q{we"ird 'x' \5}, @slow), 0, '21 shards in one move');
like($out, qr/verified: 21 tables, 21 rows/, '21 shards in one move: all rows are compared');
is(new(q{SELECT string_agg(schema_name, ' ') FROM instaid.shards WHERE frozen;
	SELECT last_value, is_called FROM user100.down; SELECT is_called FROM user100.unused;
	INSERT INTO user102.t DEFAULT VALUES RETURNING n}), "user101\n-1|t\nf\n2",
	'21 shards in one move: the frozen one stays frozen, and sequences go on');
is(im('--status', 'user100'), 0, '--status of one of 21 shards');
like($out, qr/^21 shards: moved, the target serves it/,
	'--status of one of 21 shards tells of all');
is(im('--finish', 'user%'), 2, '--finish refuses a part of 21 shards');
is(im('--reverse', @slow), 0, '--reverse of 21 shards');
is(old(q{SELECT count(*) FROM instaid.shards WHERE NOT frozen; SELECT max(n) FROM user102.t;
	SELECT last_value FROM user100.down}), "21\n2\n-1",
	'21 shards serve after --reverse, with sequences that go on');
is(exchanged('--finish'), 0, '--finish of 21 shards');
is(left(), ' ', '--finish of 21 shards leaves nothing');
{
	my $half = $old->safe_psql('postgres', 'CREATE DATABASE half');
	$old->safe_psql('half', 'CREATE EXTENSION instaid');
	my @sides = ('--from', $old->connstr($db), '--to', $old->connstr('half'));
	$old->command_ok([ 'instaid-move', @sides, 'insta5', '--one-way' ],
		'a move between two databases of one server');
	$old->command_ok([ 'instaid-move', @sides, '--finish' ],
		'--finish of a move between two databases of one server');
	is($old->safe_psql('half', 'SELECT count(*) FROM insta5.t; INSERT INTO insta5.t (n) VALUES (1)'
		  . ' RETURNING n') . left(), "100\n1 ",
		'two databases of one server: the target has all rows, and nothing is left');
}

# A shard in schema public, which each new database has
$db = 'public_shard';
for my $node ($old, $new)
{
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	$node->safe_psql($db, 'CREATE EXTENSION instaid');
}
old(q{SELECT instaid.create_shard('public', 5);
	CREATE TABLE public.t (id bigint PRIMARY KEY DEFAULT public.next_id(), n integer);
	INSERT INTO public.t (n) SELECT generate_series(1, 100)});
is(im('public'), 5, 'a shard in schema public, which the target has');
new('DROP SCHEMA public');
is(im('public'), 0, 'a shard in schema public, which the target has no more');
is(new(q{SELECT has_schema_privilege('app', 'public', 'USAGE'), count(*) FROM public.t}), 't|100',
	'a shard in schema public: other roles keep their right on it');
ends('a shard in schema public');

# Servers that reach each other in another way than the program
fresh('reach');
{
	my $services = PostgreSQL::Test::Utils::tempdir . '/services';
	append_to_file($services, join '', map { '[' . $_->name . "]\nhost=" . $_->host . "\nport="
		. $_->port . "\ndbname=$db\n" } $old, $new);
	local $ENV{PGSERVICEFILE} = $services;
	my @reach = ('--source-for-target', $old->connstr($db), '--target-for-source',
		$new->connstr($db));
	@through{'from', 'to'} = map { 'service=' . $_->name } $old, $new;
	is(im('insta5'), 5, 'servers that do not reach each other');
	like($out, qr/the target's server cannot use the source: .*: give --source-for-target$/m,
		'servers that do not reach each other: the option is told');
	is(im('insta5', @reach), 0, 'a move goes on with --source-for-target');
	is(im('--reverse'), 7, '--reverse without --target-for-source');
	like($err, qr/the target's server cannot .*; give --target-for-source, also with --reverse$/m,
		'--reverse without --target-for-source tells the option');
	is(im('--reverse', @reach), 0, '--reverse with --target-for-source');
	is(exchanged('--finish'), 0, '--finish after --reverse with --target-for-source');
	%through = ();
}

# Any role can hold the lock of a move
{
	my $role = $old->connstr($db) . ' user=own';
	my $psql = IPC::Run::start([ 'psql', '-Xqd', $role, '-c',
			q{SELECT pg_advisory_lock(hashtext('instaid-move'), 5), pg_sleep(180)} ],
		'>', \my $said);
	$old->poll_query_until($db, "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory'
		AND granted AND classid::bigint = hashtext('instaid-move')::bigint & 4294967295") or die;
	is(im('insta5'), 4, 'a role without rights holds the lock of a move');
	like($err, qr/Session \d+ of role own holds its lock\..*\n.*or end the session with pg_term/,
		'the role that holds the lock of a move is named');
	old("SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory'");
	$psql->finish;
	is(im('insta5'), 0, 'the shard moves when the session with the lock has ended');
	ends('a lock held by a role');
}

# A way back that does not come to its end, and what the other direction then does
fresh('astray');
is(im('insta5'), 0, 'a move before a way back that fails');
is(im('--reverse', '--on-switch', 'false'), 9, 'the router fails on the way back');
ends('a way back that was given up');
fresh('astray_older') if $older;
($from, $to) = ($new, $old) if !$older;
for my $way ($older ? () : [], ['--reverse'])
{
	my $name = @$way ? 'a way back' : 'a move';
	is(im('insta5'), 0, 'a move before a way back that is killed') if @$way;
	is(im({ at => 'stopped', do => 'kill -9 $PPID' }, 'insta5', @$way), -1,
		"$name is killed while writes are refused");
	my $before = places();
	($from, $to) = ($to, $from) unless @$way;
	is(im('--status'), 0, "$name was killed: --status in the other direction");
	like($out, qr/a move in the other direction is under way\n/,
		"$name was killed: --status tells of the other direction");
	is(im($_), 5, "$name was killed: the other direction has no $_") for '--cancel', '--finish';
	like($err, qr/exchange --from and --to/,
		"$name was killed: the program tells to exchange --from and --to");
	is(places(), $before, "$name was killed: the other direction drops nothing");
	($from, $to) = ($to, $from) unless @$way;
	is(im('insta5', @$way), 0, "$name was killed: the same command again ends well");
	if (@$way)
	{
		like($out, qr/next, with --from and --to exchanged: --finish, or --reverse/,
			'a way back that was killed tells how to go on');
		is(im('--finish'), 5,
			'--finish after a way back is refused as long as --from and --to are not exchanged');
		like($err, qr/the source serves insta5, which was moved there/,
			'--finish after a way back tells that the source serves');
		is(exchanged('--finish'), 0, '--finish after a way back drops the copy');
		is(left(), ' ', '--finish after a way back leaves nothing');
	}
	else
	{
		ends("$name that was killed");
		($from, $to) = ($to, $from);
	}
}
($from, $to) = ($old, $new);

# A source without the schema
fresh('dropped');
is(im('--prepare', 'insta5'), 0, '--prepare, before the schema is dropped');
old('DROP SCHEMA insta5 CASCADE');
is(im(), 5, 'a move does not go on when the schema of the source is dropped');
like($err, qr/the source has no schema insta5\n.*dropped or renamed/,
	'a schema that was dropped is told');
is(im('--cancel'), 0, '--cancel of a move whose schema was dropped');
is(places() . left(), '- - ', '--cancel of a move whose schema was dropped leaves nothing');
fresh('renamed');
is(im({ at => 'stopped', do => 'kill -9 $PPID' }, 'insta5'), -1,
	'before its schema is renamed, a move is killed while writes are refused');
old('ALTER SCHEMA insta5 RENAME TO insta6');
is(im('--cancel'), 5, '--cancel is refused while the schema has another name');
like($err, qr/the source has insta6, and not insta5\n.*\n.*Rename it back/,
	'--cancel tells to rename the schema back');
old('ALTER SCHEMA insta6 RENAME TO insta5');
is(im('--cancel'), 0, '--cancel when the schema has its name again');
is(places() . left(), 'insta5 - ', 'the source serves after --cancel of a schema that was renamed');

# Two targets, and the other direction, at once
fresh('twice');
$new->safe_psql('postgres', 'CREATE DATABASE third');
$new->safe_psql('third', 'CREATE EXTENSION instaid');
is(im('--prepare', 'insta5'), 0, '--prepare, before another move of the same shard');
$old->command_fails_like([ 'instaid-move', '--from', $old->connstr($db),
		'--to', $new->connstr('third'), 'insta5' ],
	qr/a shard of insta5 is in another move/, 'a shard does not move to two targets at once');
($from, $to) = ($new, $old);
is(im('insta5'), 5, 'a shard does not move back and forth at once');
($from, $to) = ($old, $new);
is(im('--cancel'), 0, '--cancel after other moves of the same shard were refused');

# The SQL edition, and another version
fresh('edition', undef, install => SqlEdition::changed());
is(im('insta5'), 0, 'a move of the SQL edition');
is(places(), 'insta5 frozen insta5', 'the SQL edition: the target serves');
like(error_of($old, 'SELECT insta5.next_id()'), qr/shard insta5 is frozen/,
	'the SQL edition: the source issues no more IDs');
is(new("INSERT INTO insta5.t (n) VALUES (1); SELECT count(*), count(DISTINCT id) FROM insta5.t"),
	'101|101', 'the SQL edition: the target has all rows');
is(im('--reverse'), 0, '--reverse of the SQL edition');
is(old("INSERT INTO insta5.t (n) VALUES (1); SELECT count(*), count(DISTINCT id) FROM insta5.t"),
	'102|102', '--reverse of the SQL edition: the source has all rows');
is(exchanged('--finish'), 0, '--finish of the SQL edition');
is(left(), ' ', '--finish of the SQL edition leaves nothing');
old(q{COMMENT ON SCHEMA instaid_sql IS 'instaid 0.9, SQL edition'});
is(im('--check-only', 'insta5'), 5, 'the SQL edition does not move to another version');
like($out, qr/! the source has the SQL edition 0\.9, and the target the SQL edition 1\.0/,
	'the versions of two SQL editions are told');

# Usage
$db = 'edition';
is(im('nothing'), 5, 'a shard that does not exist');
for my $none ('nothing', 'no%')
{
	is(im('--check-only', 'insta5', $none), 5,
		"a shard that does not exist, beside another: $none");
	like($err, qr/the source has no such shard: $none\n/,
		"the shard that does not exist is named: $none");
}
is(im(), 2, 'a command without a shard is refused');
is(im('--prepare', '--switch'), 2, 'two commands at once are refused');
is(im('--max-stop', $_, 'insta5'), 2,
	"not a number of seconds: --max-stop $_") for 'x', '1s', '-1', 'nan', '', '0';
like($err, qr/0 is not a number for --max-stop\n.*from 0\.001 to 86400/,
	'the range of --max-stop is told');
is(im('--finish', 'insta5'), 0, '--finish when nothing was moved');
$from = $to;
is(im('insta5'), 2, 'one database as source and target is refused');

Move::is_all_met();
done_testing();
