# instaid-move between two servers, while clients write and note what was acknowledged: no
# transaction is lost and none comes twice, whatever is killed at whatever step.  Then
# each way in which a move could go wrong that the trials have found.
#
# FULL=1 adds a kill of the program and of either server at every step, and cancels after each

use strict;
use warnings;

use IPC::Open2 ();
use IPC::Run ();
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

use Clients;
use SqlEdition;

my @settings = ('wal_retrieve_retry_interval = 100ms', 'max_prepared_transactions = 5',
	'max_replication_slots = 20', 'max_wal_senders = 20', 'fsync = off');
my ($old, $new) = map { Clients::server($_, { allows_streaming => 'logical' }, @settings) } 'a', 'b';
$_->safe_psql('postgres', 'CREATE ROLE app; CREATE ROLE reader; CREATE ROLE own LOGIN')
  for $old, $new;

# The program, and one that does something after a step
my $tool = 'instaid-move';
my $stepping = PostgreSQL::Test::Utils::tempdir . '/instaid-move';
{
	chomp(my ($include, $lib) = map { `$ENV{PG_CONFIG} $_` } '--includedir', '--libdir');
	system('cc', '-O1', '-g', '-D_GNU_SOURCE', '-DINSTAID_MOVE_STEP=move_step', "-I$include",
		'src/move/instaid-move.c', 'src/move/servers.c', 'test/lib/move_step.c', "-L$lib", '-lpq',
		'-o', $stepping) == 0 or die 'cannot compile';
}
my @steps = slurp_file('src/move/instaid-move.c') =~ /\bstep\("([^"]+)"\)/g;

my ($db, $from, $to) = ('postgres', $old, $new);
my ($rc, $out, $err);

# Run the program; returns its exit status, and sets $out and $err.
sub im
{
	my (@args) = @_;
	($out, $err) = ('', '');
	my %at = ref $args[0] ? %{ shift @args } : ();
	local $ENV{MOVE_AT} = $at{at} // '';
	local $ENV{MOVE_DO} = $at{do} // 'kill -9 $PPID';
	IPC::Run::run([ %at ? $stepping : $tool, '--from', $from->connstr($db), '--to',
			$to->connstr($db), @args ], '<', \undef, '>', \$out, '2>', \$err,
		IPC::Run::timeout(180));
	note("instaid-move @args", %at ? " at $at{at}" : '', ": ", $? >> 8, $? & 127 ? ' killed' : '',
		"\n$out$err") if $? || $ENV{VERBOSE_MOVE};
	return $rc = $? & 127 ? -1 : $? >> 8;
}
sub old { return $old->safe_psql($db, $_[0]) }
sub new { return $new->safe_psql($db, $_[0]) }
sub error_of { my ($node, $sql) = @_; return ($node->psql($db, $sql))[2] }

# What a move must not leave behind, on both sides
my $left = q{
	SELECT 'slot ' || slot_name FROM pg_replication_slots
	UNION ALL SELECT 'publication ' || pubname FROM pg_publication WHERE pubname ~ '^instaid_move'
	UNION ALL SELECT 'subscription ' || subname FROM pg_subscription
	UNION ALL SELECT 'guard ' || tgrelid::regclass FROM pg_trigger WHERE tgname = 'instaid_move_guard'
	UNION ALL SELECT 'guard ' || oid::regprocedure FROM pg_proc WHERE proname = 'instaid_move_guard'};
sub left { return join ' ', map { $_->safe_psql($db, $left) } $old, $new }
# Which sides have a shard, and serve it
sub places
{
	return join ' ', map { $_->safe_psql($db, q{SELECT string_agg(schema_name
		|| CASE WHEN frozen THEN ' frozen' ELSE '' END, ',' ORDER BY schema_name)
		FROM instaid.shards}) || '-' } $old, $new;
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
		eval { work($self->{dir}, $who, $pause, map { $_->connstr($db) } @nodes) };
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
		print { $in->[1] } join('\; ', @tables, "SELECT max(id) FROM insta5.photos WHERE who = $who")
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
				$at = 1 - $at;
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
is(im('--check-only', 'insta5'), 0, 'nothing is in the way');
is(left(), ' ', '... and nothing was changed');

my $writers = Writers->start(4, 0, $old, $new);
is(im('insta5'), 0, 'a move while clients write without a pause');
like($out, qr/verified: 4 tables, \d+ rows, the same/, '... and its rows are compared');
is(places(), 'insta5 frozen insta5', '... and the shard is served by the target');
like(error_of($old, 'INSERT INTO insta5.photos (id) VALUES (1)'), qr/shard insta5 is frozen/,
	'... no more by the source, which refuses superusers');
like(error_of($old, "$_ insta5.events_1" . (/DELETE|TRUNC/ ? '' : ' SET n = 1')),
	qr/shard insta5 is frozen/, "... and their $_") for 'UPDATE', 'DELETE FROM', 'TRUNCATE';
is(new(q{SELECT count(*) FROM pg_class WHERE relnamespace = 'insta5'::regnamespace
	AND relkind = 'r' AND reltuples < 0}), 0, '... the target has statistics');
is(im('insta5'), 0, '... the same command again finds nothing to do');
like($out, qr/^[^\n]*insta5: moved, the target serves it; next: --finish, or --reverse\n\z/, '... and says so');
is(im('--cancel'), 5, '... which cannot be cancelled');
sleep(0.3);
is(im('--reverse'), 0, 'back, with what was written meanwhile');
is(places(), 'insta5 insta5 frozen', '... to the source');
is(im('--verify'), 0, 'the copy follows');
sleep(0.3);
my $sum = $writers->stop($old);
is($sum->{wrong}, '', "none of $sum->{count} transactions is lost, and none came twice");
is(join(' ', grep { !/^(55000|3F000|42P01)$/ } keys %{ $sum->{errors} }), '',
	'... and the clients saw no deadlock, and no error but that of a frozen shard');
note("the longest wait after a refusal: $sum->{refused}[-1] s");

# the copy and the way back end
($from, $to) = ($new, $old);
is(im('--finish'), 0, '--finish of the way back');
is(places() . left(), 'insta5 - ', '... drops the copy, and leaves nothing');
is(im('--finish'), 0, '... and again does nothing');
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
		my $got = im({ at => $at, do => $do }, @$args);
		$after->() if $after;
		$reached++ if $got == -1 || $got == 3;
		push @failed, "$at: $got $err" unless $got == -1 || $got == 3 || $got == 0;
	}
	is(im(@$args), 0, "$name: ends well");
	is("@failed", '', "$name: ... and each run was killed, or ended well");
	return $reached;
}
my $serving = sub { return $_[0]->safe_psql($db, q{SELECT NOT frozen FROM instaid.shards}) };
old('UPDATE insta5.counters SET n = 0; TRUNCATE insta5.photos, insta5.likes, insta5.events;');
$writers = Writers->start(3, 0.02, $old, $new);
my @ending = ('detached', 'slots dropped', 'copy dropped', 'guards dropped');
my @moving = grep { my $s = $_; !grep { $s eq $_ } @ending, 'served again', 'way back dropped',
	'taken back', 'refreshed' } @steps;
my $n = killed_at_each('killed at each step', undef, undef, ['insta5'], 'begun', 'guards', 'slot',
	'dumped', 'defined', 'enabled', 'refreshed', 'following',
	grep { !/^(begun|guards|slot|dumped|defined|enabled|following)$/ } @moving);
cmp_ok($n, '>=', @moving, "... at all of @moving");
is(places(), 'insta5 frozen insta5', '... the target has it');
$n = killed_at_each('--finish killed at each step', undef, undef, ['--finish'], @ending);
is($n, @ending, '... at all');
is(places() . left(), '- insta5 ', '... and nothing is left');
$sum = $writers->stop($new);
is($sum->{wrong}, '', "none of $sum->{count} transactions is lost, and none came twice");
cmp_ok($sum->{count}, '>', 30, '... and the clients were served meanwhile');

#### Servers killed ####

# The shell command that kills a server, and what starts it again
sub kill_server { return 'kill -9 $(head -n 1 ' . $_[0]->data_dir . '/postmaster.pid)' }
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
($from, $to) = ($new, $old);
for my $node ($new, $old)
{
	my $side = $node == $from ? 'source' : 'target';
	$writers = Writers->start(3, 0.02, $old, $new);
	my @at = $ENV{FULL} ? @moving : $node == $from ? ('slot', 'stopped', 'switched')
	  : ('defined', 'told', 'source marked');
	my @failed;
	for my $at (@at)
	{
		my $got = im({ at => $at, do => kill_server($node) }, 'insta5');
		start_again($node) unless $got == 0;
		push @failed, "$at: $got" unless $got == 3 || $got == 1;
	}
	is("@failed", '', "the $side is killed after: @at");
	is(im('insta5'), 0, '... and the same command again moves the shard');
	sleep(0.2);
	$sum = $writers->stop($to);
	is($sum->{wrong}, '', "... none of $sum->{count} transactions is lost, and none came twice");
	is(im('--finish'), 0, '... and it ends');
	is(left(), ' ', '... with nothing left');
	($from, $to) = ($to, $from);
}
# here it is again on $new

#### Cancelled ####

($from, $to) = ($new, $old);
my @before = grep { !/^(switched|source marked|slot dropped|subscription dropped|publication dropped|advanced|way back enabled)$/ } @moving;
{
	my $was = $from->safe_psql($db, q{SELECT max(id) FROM insta5.photos});
	my @wrong;
	for my $at ($ENV{FULL} ? @before : ('begun', 'slot', 'defined', 'way back', 'stopping', 'told'))
	{
		my $got = im({ at => $at }, 'insta5');
		push @wrong, "$at: moved, $got" if $got != -1;
		$got = im('--cancel');
		push @wrong, "$at: --cancel $got" if $got;
		my $now = places() . left();
		push @wrong, "$at: $now" if $now ne '- insta5 ';
		push @wrong, "$at: no insert" if error_of($from, 'INSERT INTO insta5.photos (who) VALUES (0)');
	}
	is("@wrong", '', 'cancelled after a kill, both sides are as before');
	im('--prepare', 'insta5');
	is($rc, 0, '--prepare');
	im({ at => $_ }, '--cancel') for 'served again', 'way back dropped', @ending;
	is(im('--cancel'), 0, '--cancel killed at each step');
	is(places() . left(), '- insta5 ', '... leaves both sides as before');
	is(im('--cancel'), 0, '... and again does nothing');
}

done_testing();
