# instaid-move --plan: which shards of several servers move where, and the moves, while clients
# write and note what was acknowledged.  The plan is killed, and goes on.
#
# FULL=1 adds four servers with 200 shards of 300 MB, and 1,000 shards
# not in: assert

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

# Four databases, a to d.  Two are on each server, or with FULL one.
my @settings = ('wal_retrieve_retry_interval = 10ms', 'max_replication_slots = 30',
	'max_wal_senders = 30', 'max_logical_replication_workers = 16', 'max_worker_processes = 24',
	'fsync = off', 'max_locks_per_transaction = 512');
# from 18, what counts ways back has a setting of its own
push @settings, 'max_active_replication_origins = 30'
  if `$ENV{PG_CONFIG} --version` =~ /(\d+)/ && $1 >= 18;
my @nodes = map { Clients::server("server_$_", { allows_streaming => 'logical' }, @settings) }
  1 .. ($ENV{FULL} ? 4 : 2);
my %node = map { $_ => $nodes[ (ord($_) - ord 'a') % @nodes ] } 'a' .. 'd';
my $file = PostgreSQL::Test::Utils::tempdir . '/servers';
my ($out, $err, $seconds);

sub at { my ($name, $sql) = @_; return $node{$name}->safe_psql($name, $sql) }
sub conninfo { my ($name) = @_; return $node{$name}->connstr($name) }
sub fresh
{
	for my $name (sort keys %node)
	{
		$node{$name}->safe_psql('postgres', "DROP DATABASE IF EXISTS $name");
		$node{$name}->safe_psql('postgres', "CREATE DATABASE $name");
		at($name, 'CREATE EXTENSION instaid;
			CREATE TABLE public.weights (name text, weight numeric)');
	}
	return;
}
sub servers
{
	my (@names) = @_;
	unlink $file;
	append_to_file($file,
		join '', "# the servers\n\n", map { "$_\t" . conninfo($_) . "\n" } @names);
	return;
}

# Run the plan; returns its exit status, and sets $out, $err and $seconds.
sub planned
{
	my (@args) = @_;
	my @at = ref $args[0] ? shift @args : ();
	my $began = time;
	(my $rc, $out, $err) = Move::run(@at, '--plan', '--servers', $file, @args);
	$seconds = time - $began;
	return $rc;
}

# Which server serves how many shards
sub serving
{
	my %served;
	for my $name (sort keys %node)
	{
		push @{ $served{$_} }, $name
		  for split /\n/, at($name, 'SELECT schema_name FROM instaid.shards WHERE NOT frozen');
	}
	return \%served;
}
sub counts
{
	my %count;
	$count{"@$_"}++ for values %{ serving() };
	return join ' ', map { "$_:$count{$_}" } sort keys %count;
}
my $left = "$Move::left UNION ALL SELECT schema_name FROM instaid.shards WHERE frozen";
sub left { return join ' ', grep { $_ } map { at($_, $left) } sort keys %node }

#### What is planned ####

fresh();
# Shards of these weights on each server, which have the IDs from $first on
my $first = 1;
sub shards
{
	my ($name, @weights) = @_;
	my $last = $first + $#weights;
	at($name, "SET client_min_messages = warning;
		CALL instaid.create_shards('user%s', $first, $last);
		INSERT INTO public.weights SELECT 'user' || i + $first - 1, w
		FROM unnest(ARRAY[@{[ join ',', @weights ]}]::numeric[]) WITH ORDINALITY AS x (w, i)");
	$first = $last + 1;
	return;
}
my @weights = ('--weights', 'SELECT name, weight FROM public.weights');
# the planned weights and numbers of shards, and the number of shards that move
sub result
{
	my ($moved) = $out =~ /^# (?:1 move|\d+ moves) of (1(?= shard,)|\d+(?= shards,))/m;
	return join(' ', map { join ':', @$_ }
		map { [/^# (\w): .*; then (\d+) shards, weight ([\d.e+]+)/] }
		grep { /; then / } split /\n/, $out)
	  . " moved:$moved";
}

shards('a', 50, 40, 30, 20, 10, (0) x 10);
shards('b', 50, 50, 50, (0) x 10);
servers('a', 'b');
is(planned(@weights), 0, 'servers of the same weight');
is(result(), 'a:15:150 b:13:150 moved:0', '... keep their shards');
is(() = $out =~ /^\S*instaid-move/mg, 0, '... and no command is printed');
servers('a', 'b', 'c');
is(planned(@weights), 0, 'a third server');
is(result(), 'a:11:100 b:9:100 c:8:100 moved:8',
	'... gets the heaviest that fit, and its part of the small ones');
like($out, qr/^\S*instaid-move --from '.*dbname=\W*b\W.* --to '.*dbname=\W*c\W.* -- user16 /m,
	'... and the commands are printed');
servers('a', 'b', 'c', 'd');
is(planned(@weights, '--drain', 'a', '--drain', 'c'), 0, 'two servers are drained');
like(result(), qr/^a:0:0 b:\d+:150 c:0:0 d:\d+:150 moved:15$/, '... onto the lightest ones');
is(planned(@weights, 'user1', 'user2%'), 0, 'only some shards may move');
unlike($out =~ s/^#.*//mgr, qr/user(?!1\b|2)/, '... and no others are moved');
is(planned('--weights', 'SELECT name, weight * 1e9 FROM public.weights', '--drain', 'b', 'user1'),
	0, 'a drained server');
like($out, qr/^# b keeps 13 shards: the arguments leave them out/m,
	'... whose shards may not move');
at('a', q{SELECT instaid.create_shard('odd ''name"', 4000)});
is(planned(@weights, '--drain', 'a', '--no-verify', '--on-switch', q{echo 'it'"'"'s'}), 0,
	'quotes');
{
	# what the shell makes of it
	IPC::Run::run([ 'sh', '-c', $out =~ s/^\S*instaid-move/printf '%s\\n'/mgr ], '>', \my $shown);
	my @args = split /\n/, $shown;
	ok((grep { $_ eq q{odd 'name"} } @args), '... of a shard');
	ok((grep { $_ eq q{echo 'it'"'"'s'} } @args), '... and of an option');
	ok((grep { $_ eq '--no-verify' } @args), '... which it gives to each move');
}
at('a', q{DROP SCHEMA "odd 'name""" CASCADE});

# Wrong usage, and what is in the way
is(planned(@{ $_->[0] }), 2, "wrong: @{ $_->[0] }"), like($err, $_->[1], '... is told')
  for [ [ '--drain', 'x' ], qr/has no server x\n/ ],
  [ [ map { ('--drain', $_) } 'a' .. 'd' ], qr/all servers are drained/ ],
  [ [ '--jobs', '0' ], qr/0 is not a number for --jobs\n.*from 1 to 64/ ],
  [ [ '--per-move', '1x' ], qr/1x is not a number for --per-move/ ],
  [ [ '--run', '--status' ], qr/more than one command/ ],
  [ [ '--cancel', '--finish' ], qr/more than one command/ ],
  [ [ '--prepare' ], qr/unrecognized option/ ],
  [ [ '--weights', 'SELECT 1' ], qr/must have two columns/ ],
  [ [ '--weights', q{SELECT 'user1', -1} ], qr/-1 is not a weight\n.*user1 on the server a/ ];
is(planned('--weights', 'SELECT x'), 1, 'weights that fail');
like($err, qr/column "x" does not exist/, '... tell why');
is(planned('--weights', 'WITH x AS (DELETE FROM public.weights RETURNING *) SELECT * FROM x'), 1,
	'... and write nothing');
for ([ "a\n", qr/line 1 of .* has no connection/ ], [ "a x=1\n", qr/fewer than two servers/ ],
	[ "a x\nb x\na y\na z\n", qr/line 4 of .* is the third one for a/ ],
	[ "a " . conninfo('a') . "\nb " . conninfo('a') . "\n", qr/a and b are one database/ ])
{
	unlink $file;
	append_to_file($file, $_->[0]);
	is(planned(), 2, 'a file that is not one of servers');
	like($err, $_->[1], '... is told');
}
unlink $file;
is(planned(), 2, 'no file');
servers('a', 'b');
is(planned('user1', 'nothing', 'no%'), 5, 'shards that no server has');
like($err, qr/no server has such a shard: nothing, no%\n/, '... are named');
at('b', 'SELECT instaid.create_shard($$twin$$, 1)');
is(planned(), 5, 'a shard ID that is on two servers');
like($err, qr/shard ID 1 is on two servers\n.*user1 of the server a, and twin of the server b/,
	'... is named');

#### A server is drained while clients write ####

# A writer is a process with a psql for each server.  Each transaction inserts into one of the
# shards and counts itself.  What was acknowledged is noted.  After 55000, or without the
# shard, it looks for the shard on the other servers.
sub write_to
{
	my ($dir, $who, $pause, $shards) = @_;
	my (%psql, %at);
	my @names = sort keys %node;
	open my $ledger, '>', "$dir/$who" or die;
	$ledger->autoflush;
	open STDERR, '>', "$dir/$who.err";
	my $parent = getppid;
	my $n = 0;
	while (!-e "$dir/stop" && getppid == $parent)
	{
		my $shard = $shards->[ rand @$shards ];
		my $refused;
		$n++;
		while (!-e "$dir/stop")
		{
			my $name = $names[ ($at{$shard} //= 0) % @names ];
			$psql{$name} //= do {
				IPC::Open2::open2(my $reader, my $writer, 'psql', '-XAtq', '-v',
					'VERBOSITY=sqlstate', '-d', conninfo($name));
				$writer->autoflush;
				[ $reader, $writer ];
			};
			print { $psql{$name}[1] }
			  "INSERT INTO $shard.t (who, n) VALUES ($who, $n) RETURNING id\\;"
			  . " UPDATE $shard.counts SET n = n + 1 WHERE who = $who;\n\\echo state :SQLSTATE\n";
			my ($state, $id);
			while (my $line = readline $psql{$name}[0])
			{
				$id = $1 if $line =~ /^(\d+)$/;
				$state = $1, last if $line =~ /^state (\w+)/;
			}
			if (($state // '') eq '00000')
			{
				print $ledger "$shard $n $id\n";
				printf $ledger "refused %.3f\n", time - $refused if $refused;
				last;
			}
			print $ledger 'error ', $state // 'lost', "\n";
			die 'lost' if !defined $state;
			$refused //= time;
			$at{$shard}++;
			sleep(0.005);
		}
		sleep($pause * (0.5 + rand));
	}
	return;
}
sub start_writers
{
	my ($count, $pause, $shards) = @_;
	my %writers = (dir => PostgreSQL::Test::Utils::tempdir, pids => []);
	for my $who (1 .. $count)
	{
		my $pid = fork // die;
		push @{ $writers{pids} }, $pid;
		next if $pid;
		eval { write_to($writers{dir}, $who, $pause, $shards); 1 } or warn $@;
		POSIX::_exit(0);
	}
	return \%writers;
}
# End them; returns how many transactions were acknowledged, and what is wrong with them.
sub stop_writers
{
	my ($writers) = @_;
	append_to_file("$writers->{dir}/stop", '');
	waitpid $_, 0 for @{ $writers->{pids} };
	my (%acked, %ids, %there, %errors, @refused, @wrong);
	for my $who (1 .. @{ $writers->{pids} })
	{
		for (split /\n/, slurp_file("$writers->{dir}/$who"))
		{
			if (/^refused (.*)/) { push @refused, $1 }
			elsif (/^error (.*)/) { $errors{$1}++ }
			elsif (/^(\w+) (\d+) (\d+)/)
			{
				$acked{"$1 $who $2"} = $3;
				push @wrong, "ID $3 came twice" if $ids{$3}++;
			}
		}
	}
	my $served = serving();
	my %of;
	push @{ $of{"@{ $served->{$_} }"} }, $_ for sort keys %$served;
	for my $name (sort keys %of)
	{
		push @wrong, "$_ is served by: $name" for $name =~ / / ? @{ $of{$name} } : ();
		next if $name =~ / /;
		for (split /\n/, at($name, join ' UNION ALL ', map {
					"SELECT '$_', who, n, count(*), min(id) FROM $_.t WHERE who > 0 GROUP BY who, n
					UNION ALL SELECT 'counter', 0, 0, 0, 0 FROM $_.counts AS c
					WHERE n <> (SELECT count(*) FROM $_.t WHERE who = c.who)" } @{ $of{$name} }))
		{
			my ($shard, $who, $n, $count, $id) = split /\|/;
			push @wrong, "$_ is wrong" if $shard eq 'counter';
			$there{"$shard $who $n"} = $id;
			push @wrong, "$shard $who $n is there $count times" if $count > 1;
		}
	}
	push @wrong, map { "$_ is lost" } grep { ($there{$_} // '') ne $acked{$_} } sort keys %acked;
	@refused = sort { $a <=> $b } @refused;
	my %histogram;
	for my $s (@refused)
	{
		my ($below) = grep { $s < $_ } 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 999;
		$histogram{$below}++;
	}
	return {
		count     => scalar keys %acked,
		wrong     => join(', ', @wrong[ 0 .. ($#wrong > 9 ? 9 : $#wrong) ]),
		errors    => join(' ', sort keys %errors),
		histogram => join(', ', map { "$histogram{$_} < $_ s" } sort { $a <=> $b } keys %histogram),
		longest   => $refused[-1] // 0
	};
}

# Shards on a, with rows: the first have many, the last none
sub fill
{
	my ($count, $rows) = @_;
	fresh();
	servers('a' .. 'd');
	at('a', "SET client_min_messages = warning; CALL instaid.create_shards('user%s', 1, $count)");
	at('a', qq{DO \$\$ BEGIN FOR i IN $_ .. least($_ + 49, $count) LOOP EXECUTE format(
		'CREATE TABLE user%1\$s.t (id bigint PRIMARY KEY DEFAULT user%1\$s.next_id(), who integer,
			n integer, filler text);
		CREATE TABLE user%1\$s.counts (who integer PRIMARY KEY, n integer);
		INSERT INTO user%1\$s.counts SELECT generate_series(1, 8), 0;
		INSERT INTO user%1\$s.t (who, n, filler) SELECT 0, 0, repeat(''x'', 100)
		FROM generate_series(1, %2\$s)', i, $rows / (i * i)); END LOOP; END \$\$})
	  for map { 50 * $_ + 1 } 0 .. ($count - 1) / 50;
	return map { "user$_" } 1 .. $count;
}
sub rows
{
	my $served = serving();
	my $sum = 0;
	for my $name (sort keys %node)
	{
		# each by itself: from 19, a query of 200 tables pins more buffers than there are
		$sum += $_
		  for split /\n/, at($name, join ';',
			map { "SELECT count(*) FROM $_.t WHERE who = 0" }
			grep { "@{ $served->{$_} }" eq $name } sort keys %$served);
	}
	return $sum;
}

{
	my ($count, $rows) = $ENV{FULL} ? (200, 1_000_000) : (12, 3000);
	my @names = fill($count, $rows);
	my $before = rows();
	my @options = ('--drain', 'a', '--jobs', 3, '--per-move', $ENV{FULL} ? 20 : 3, '--max-stop', 20,
		'--max-wait', 300);
	note("$count shards, "
		  . at('a', 'SELECT pg_size_pretty(pg_database_size(current_database()))'));
	is(planned(@options, '--check-only'), 0, 'nothing is in the way of a server that is drained');
	is(left(), '', '... and nothing was changed');
	my $writers = start_writers(8, 0.03, \@names);
	sleep(1);

	# killed while it copies, where its moves are held however fast they are
	my $held = PostgreSQL::Test::Utils::tempdir . '/held';
	append_to_file($held, '');
	my $run = do {
		local $ENV{MOVE_AT} = 'enabled';
		local $ENV{MOVE_DO} = "echo held; while test -e '$held'; do sleep 0.1; done";
		IPC::Run::start([ Move::stepping(), '--plan', '--servers', $file, @options, '--run' ],
			'<', \undef, '>', \$out, '2>&1', IPC::Run::timeout(600));
	};
	$run->pump until $out =~ /^\[1 a > \w\] held/m || !$run->pumpable;
	is(planned('--run'), 4, 'a second plan');
	like($err, qr/another plan is run with the server a\n.*Session \d+ of role \w+ holds its lock/,
		'... is told of the first');
	$run->signal('KILL');
	unlink $held;
	$run->finish;
	isnt(left(), '', 'killed while it runs');
	# its moves end with it
	my $busy = q{SELECT count(*) = 0 FROM pg_locks WHERE locktype = 'advisory'};
	for my $node (@nodes)
	{
		ok($node->poll_query_until('postgres', $busy), '... with its moves');
	}
	is(planned('--status'), 0, '--status');
	like($out, qr/^\[1 a > \w\] [^:]+: (being copied|the target follows)/m, '... tells of them');
	is(planned(@options), 0, 'the plan again');
	like($out, qr/^# under way: \d+ shards from a to \w, begun/m,
		'... has those that are under way');
	is(planned(@options, '--run'), 0, 'the same command moves all shards');
	is(sprintf('%.1f', $seconds) > 0, 1, sprintf '... in %.1f s', $seconds);
	like(counts(), qr/^b:\d+ c:\d+ d:\d+$/, '... to the others: ' . counts());
	like($out, qr/^ +[\d.]+  (\d+) of \1 moves made; next: --plan --finish$/m, '... and says so');
	is(planned(@options, '--run'), 0, 'the same command again');
	like($out, qr/^# 0 moves of 0 shards/m, '... has nothing to do');
	is(planned('--finish'), 0, '--finish of all');
	is(left(), '', '... leaves nothing');
	my $sum = stop_writers($writers);
	is($sum->{wrong}, '', "none of $sum->{count} transactions is lost, and none came twice");
	is(join(' ', grep { !/^(55000|3F000|42P01)$/ } split / /, $sum->{errors}), '',
		'... and the clients saw no other error than that of a frozen shard, or none');
	note("refused: $sum->{histogram}; the longest $sum->{longest} s");
	is(rows(), $before, '... and all rows that were there are there');
}

# Its moves are killed at each state, and the same command goes on
{
	fill(8, 1000);
	my $before = rows();
	my @args = ('--drain', 'a', '--per-move', 2, '--jobs', 4, '--max-stop', 20, '--run');
	for my $at ([ 'slot', 'begun' ], [ 'stopped', 'begun' ],
		[ 'switched', 'switched, not cleaned up' ], [ 'source marked', 'switched, not cleaned up' ],
		[ 'comparing', 'moved, not compared' ])
	{
		is(planned({ at => $at->[0] }, @args), 1, "all moves are killed after: $at->[0]");
		is(planned('--drain', 'a'), 0, '... and the plan');
		like($out, qr/^# under way: 2 shards from a to \w, $at->[1]$/m, '... has them');
		like($out, qr/^# a: .*; then 0 shards, 0 bytes; drained$/m, '... as if they were made');
		my $sum = 0;
		$sum += $_ for $out =~ /^# \w: .*; then (\d+) shards/mg;
		is($sum, 8, '... and counts each shard once');
	}
	is(planned(@args), 0, 'the same command');
	like(counts(), qr/^b:\d c:\d d:\d$/, '... ends them: ' . counts());
	is(planned({ at => 'copy dropped' }, '--finish'), 1, '--finish is killed');
	is(planned('--finish'), 0, '... and goes on');
	is(left(), '', '... and nothing is left');
	is(rows(), $before, '... but all rows');
}

# The router is told where a shard goes; the ways back need room; one move that fails stops
# no other
{
	my @names = fill(6, 10);
	# the page shows what it prints
	servers('a' .. 'c');
	is(planned(), 0, 'a plan');
	my ($page) = grep { $_->{shows} } section_blocks('docs/moving-a-shard.md', 'Several servers');
	my $kinds = sub {
		my ($text) = @_;
		$text =~ s/\b[a-z]+\d?: (\d)/SERVER: $1/g;
		$text =~ s/^\S*instaid-move --from '.*' --to '.*' -- user\d.*/COMMAND/mg;
		$text =~ s/\d+ [kMG]?B\b|\d+ bytes|\d+/N/g;
		return join "\n", sort keys %{ { map { $_ => 1 } split /\n/, $text } };
	};
	is($kinds->($page->{shows}), $kinds->($out), 'the page shows what it prints');
	servers('a' .. 'd');
	my $told = PostgreSQL::Test::Utils::tempdir . '/told';
	at('a', 'CREATE VIEW public.w AS SELECT count(*) FROM user3.t');
	is(planned('--drain', 'a', '--per-move', 1, '--run', '--finish', '--max-stop', 20,
			'--on-switch',
			"echo \$INSTAID_MOVE_SHARDS \$INSTAID_MOVE_FROM \$INSTAID_MOVE_TO >>$told"),
		5, 'a shard that cannot be moved');
	like($out, qr/\[\d a > \w\]   ! view .*w/, '... is told');
	is(join(' ', sort map { s/ [bcd]$/ x/r } split /\n/, slurp_file($told)),
		join(' ', map { "{user$_} a x" } 1, 2, 4, 5, 6),
		'... the others are moved, and the router told');
	like(counts(), qr/^a:1 b:\d c:\d d:\d$/, '... and only that one is left');
	is(left(), '', '... because each of the others was finished');
	at('a', 'DROP VIEW public.w');
	is(planned('--drain', 'a', '--run', '--finish'), 0, 'then it is moved');
	unlike(counts(), qr/a/, '... too');

	is(planned('--run', 'user1'), 0, 'servers that are balanced');
	@names = fill(6, 10);
	$node{a}->append_conf('postgresql.conf', 'max_logical_replication_workers = 4');
	$node{a}->restart;
	for my $run ('--check-only', '--run')
	{
		is(planned('--drain', 'a', '--per-move', 1, $run), 5, "$run: too many ways back");
		like($out, qr/^  ! the ways back need 6 of the 4 free .* workers .* server a until/m,
			'... are told');
	}
	is(left(), '', '... before anything is changed');
	is(planned('--drain', 'a', '--per-move', 1, '--run', '--one-way', '--max-stop', 20), 0,
		'without a way back, it goes');
	is(planned('--plan', '--cancel'), 0, 'what is switched');
	is(() = counts() =~ /\d/g, 3, '... is not cancelled: ' . counts());
	is(planned('--finish'), 0, '... but finished');
	is(left(), '', '... with nothing left');

	# from here to there by --dump, as printed
	is(planned('--drain', 'b', '--dump'), 0, 'by --dump');
	is(system('sh', '-c', $out . "\nexit 0"), 0, '... as it is printed');
	unlike(counts(), qr/b/, '... to the shell');
}

# One command for a thousand shards
SKIP:
{
	skip 'only with FULL=1', 5 if !$ENV{FULL};
	my @names = fill(1000, 1000);
	my $before = rows();
	my $writers = start_writers(4, 0.05, \@names);
	is(planned('--drain', 'a', '--run', '--finish', '--per-move', 50, '--jobs', 3, '--max-stop', 20,
			'--max-wait', 300), 0, 'a thousand shards by one command');
	my $sum = stop_writers($writers);
	note(sprintf '%.1f s, refused: %s; the longest %s s', $seconds, $sum->{histogram},
		$sum->{longest});
	is($sum->{wrong}, '', "none of $sum->{count} transactions is lost, and none came twice");
	like(counts(), qr/^b:33\d c:33\d d:33\d$/, '... they are spread: ' . counts());
	is(left(), '', '... nothing is left');
	is(rows(), $before, '... and all rows are there');
}

done_testing();
