# instaid-move-plan: which shards of several servers move where, and the commands that it prints,
# run by xargs, while clients write and note what was acknowledged.  They are killed, and go on.
#
# FULL=1 adds four servers with 200 shards of 300 MB, and 1,000 shards
# not in: assert
# takes 70 s

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
my @settings = ('wal_retrieve_retry_interval = 50ms', 'max_replication_slots = 30',
	'max_wal_senders = 30', 'max_logical_replication_workers = 40', 'max_worker_processes = 48',
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
		at($name, 'CREATE EXTENSION instaid');
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

# Run the plan; returns its exit status, and sets $out and $err.
sub planned
{
	my (@args) = @_;
	IPC::Run::run([ 'instaid-move-plan', '--servers', $file, @args ], '<', \undef, '>', \$out,
		'2>', \$err);
	note("instaid-move-plan @args: ", $? >> 8, "\n$out$err") if $? || $ENV{VERBOSE_MOVE};
	return $? >> 8;
}
# Plan, and run what is printed, $jobs at a time, killed after a step if there is one; returns the
# exit status of xargs, and sets $seconds.
sub moved
{
	my ($at, $jobs, @args) = @_;
	my $began = time;
	is(planned(@args), 0, "a plan: @args");
	my $commands = $out;
	local @ENV{ 'MOVE_AT', 'MOVE_DO' } = ($at // '', 'kill -9 $PPID');
	my $program = $at ? Move::stepping() : 'instaid-move';
	$commands =~ s/^instaid-move/$program/mg;
	IPC::Run::run([ 'xargs', '-r', '-d', '\n', '-n', 1, '-P', $jobs, 'sh', '-c' ],
		'<', \$commands, '>', \$out, '2>&1');
	my $rc = $? >> 8;
	$seconds = time - $began;
	note("moves: $rc\n$out") if $rc && !$at;
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
# Shards of about these sizes, in MB, on each server, which have the IDs from $first on
my $first = 1;
sub shards
{
	my ($name, @sizes) = @_;
	for my $size (@sizes)
	{
		at($name, "SET client_min_messages = warning;
			SELECT instaid.create_shard('user$first', $first);
			CREATE TABLE user$first.t (id integer PRIMARY KEY, filler text);
			ALTER TABLE user$first.t ALTER filler SET STORAGE EXTERNAL;
			INSERT INTO user$first.t SELECT i, repeat('x', 1000)
			FROM generate_series(1, 900 * $size) AS i");
		$first++;
	}
	return;
}
# the planned sizes and numbers of shards, and the number of shards that move
sub result
{
	return join(' ', map { sprintf '%s:%d:%.0f', @$_ }
		map { [/^# (\w): .*; then (\d+) shards, ([\d.]+) MB/] }
		grep { /; then / } split /\n/, $err)
	  . ' moved:' . (() = $out =~ s/^.* -- //mgr =~ /\buser\d+/g);
}
shards('a', 5, 4, 3, 2, 1);
shards('b', 5, 5, 5);
servers('a', 'b');
is(planned(), 0, 'a plan for servers of the same size');
like(result(), qr/^a:5:1[56] b:3:1[56] moved:0$/, 'servers of the same size keep their shards');
is($out, '', 'no command is printed for servers of the same size');
servers('a', 'b', 'c');
is(planned(), 0, 'a plan for a third server');
like(result(), qr/^a:\d:1[01] b:2:1[01] c:\d:1[01] moved:[23]$/,
	'a third server gets its part, by few moves');
like($out, qr/^instaid-move --from '.*dbname=\W*b\W.* --to '.*dbname=\W*c\W.* -- user[678]$/m,
	'the commands for a third server are printed');
servers('a', 'b', 'c', 'd');
is(planned('--drain', 'a', '--drain', 'c'), 0, 'a plan that drains two servers');
like(result(), qr/^a:0:0 b:3:1[56] c:0:0 d:5:1[56] moved:5$/,
	'shards of two drained servers go to the lightest one');
is(planned('--drain', 'b', 'user1'), 0, 'a plan that drains a server, for a shard of another one');
like($err, qr/^# b: .*; the arguments, or a move, keep these$/m,
	'shards that are kept are told with the reason');
is($out, '', 'no shard moves but those that are named');
is(planned('--drain', 'a', '--per-move', 2, 'user1', 'user2%', 'user3'), 0,
	'a plan for some shards, two in a move');
is(() = $out =~ /^instaid-move .* -- (?:user[123] ?){1,2}$/mg, 2,
	'--per-move limits the shards of a move');
at('a', q{SELECT instaid.create_shard('odd ''name"', 4000)});
is(planned('--drain', 'a', '--', '--no-verify', '--on-switch', q{echo 'it'"'"'s'}), 0,
	'a plan with names and options that need quotes');
{
	# what the shell makes of it
	IPC::Run::run([ 'sh', '-c', $out =~ s/^\S*instaid-move/printf '%s\\n'/mgr ], '>', \my $shown);
	my @args = split /\n/, $shown;
	ok((grep { $_ eq q{odd 'name"} } @args), 'the shell reads the name of a shard with quotes');
	ok((grep { $_ eq q{echo 'it'"'"'s'} } @args), 'the shell reads an option with quotes');
	ok((grep { $_ eq '--no-verify' } @args), 'options after -- are given to each move');
}
at('a', q{DROP SCHEMA "odd 'name""" CASCADE});
# a name that would be a line or a pattern
{
	my @odd = ("b\ntouch sprung #", "a\n", "c\xc2\x9b2J", 'eval;touch sprung;exit', 'user%');
	my $id = 4000;
	at('a', "SELECT instaid.create_shard(E'" . s/\n/\\n/gr . "', " . $id++ . ')') for @odd;
	is(planned('--drain', 'a', '--', '--check-only'), 0, 'a plan with names of several lines');
	unlike($out, qr/^(?!instaid-move )|user%/m, 'each line is a command, and none has a pattern');
	is(() = $err =~ /^# shard ID \d+ of a stays: its name has a % or a control character$/mg, 4,
		'shards of such names stay');
	is(planned("a\e[2K\r\xc2\x9b"), 5, 'a plan with control characters in an argument');
	like($err, qr/no server has such a shard: a\\x1b\[2K\\x0d\\x9b$/m, 'they are escaped');
	is(planned('--drain', 'a', '--', '--check-only'), 0, 'a plan with such names, again');
	IPC::Run::run([ 'xargs', '-r', '-d', '\n', '-n', 1, 'sh', '-c' ],
		'<', \$out =~ s/^instaid-move/true/mgr, '>', \my $shown, '2>&1');
	ok(!-e 'sprung', 'a name of a shard is no command of the shell');
	at('a', 'DROP SCHEMA "' . $_ . '" CASCADE') for @odd;
}
unlink $file;
append_to_file($file, 'a ' . conninfo('a') . " sslpassword=SECRET password=SECRET\n"
	  . "a host='reach' password = 'SEC\\'RET'\nb " . conninfo('b') . "\n");
is(planned('--drain', 'a'), 0, 'a plan for servers with passwords');
unlike($out . $err, qr/SEC/, 'a password is not printed');
like($err, qr/^# the password of a is left out: put it into ~\/.pgpass$/m,
	'a password that is left out is told');
like($out, qr/ --source-for-target 'host=/, 'a plan tells how others reach a server of two lines');
for my $case ([ "password=SE\\ CRET " . conninfo('a'), conninfo('a') ],
	[ conninfo('a') . ' password=SECRET\\\\', conninfo('a') ],
	map { [ "postgresql:///a?$_->[0]", "postgresql:///a?$_->[1]" ] }
	map { my $at = 'host=' . $node{a}->host . '&port=' . $node{a}->port;
		(["$at&password=SECRET", $at], ["password=SECRET&$at", $at],
			["$at&sslpassword=SE%20CRET&password=SECRET&sslmode=disable",
				"$at&sslmode=disable"]) } 1)
{
	my ($conn, $shown) = @$case;
	unlink $file;
	append_to_file($file, "a $conn\nb " . conninfo('b') . "\n");
	is(planned('--drain', 'a'), 0, "a plan for a server with a password: $conn");
	IPC::Run::run([ 'sh', '-c', $out =~ s/^instaid-move/printf '%s\\n'/mgr ], '>', \my $args);
	is(($args =~ /^--from\n(.*)/m)[0] =~ s/\s+\z//r, $shown,
		"the rest of the connection is printed: $conn");
	like($err, qr/^# the password of a is left out: /m, "the password is left out: $conn");
}

# Wrong usage, and what is in the way
servers('a', 'b');
is(planned(@{ $_->[0] }), 2, "wrong: @{ $_->[0] }"),
  like($err, $_->[1], "the fault is told: @{ $_->[0] }")
  for [ [ '--drain', 'x' ], qr/has no server x\n/ ],
  [ [ map { ('--drain', $_) } 'a', 'b' ], qr/all servers are drained/ ],
  [ [ '--per-move', '0' ], qr/0 is not a number for --per-move/ ],
  [ [ '--run' ], qr/Unknown option: run/ ];
for ([ "a\n", qr/line 1 of .* has no connection/ ], [ "a x=1\n", qr/fewer than two servers/ ],
	[ "a x\nb x\na y\na z\n", qr/line 4 of .* is the third one for a/ ],
	[ "a " . conninfo('a') . "\nb " . conninfo('a') . "\n", qr/a and b are one database/ ])
{
	unlink $file;
	append_to_file($file, $_->[0]);
	is(planned(), 2, "a wrong file of servers: $_->[1]");
	like($err, $_->[1], "the fault of a file of servers is told: $_->[1]");
}
unlink $file;
is(planned(), 2, 'a file of servers that does not exist');

# What other roles have made
servers('a', 'b');
at('b', q{CREATE ROLE mallory; GRANT CREATE ON DATABASE b TO mallory; SET ROLE mallory;
	CREATE PUBLICATION instaid_move_50; COMMENT ON PUBLICATION instaid_move_50 IS 'no json'});
is(planned('--drain', 'a'), 0, 'a plan beside a publication whose comment is not of a move');
at('b', 'DROP PUBLICATION instaid_move_50');
# A schema with the name of the user, in a database that sets a role and has options
{
	my $user = at('b', 'SELECT quote_ident(session_user)');
	at('b', qq{SET ROLE mallory; CREATE SCHEMA $user; GRANT USAGE ON SCHEMA $user TO PUBLIC;
		CREATE FUNCTION $user.convert_to(text, text) RETURNS bytea LANGUAGE plpgsql AS
		\$\$ BEGIN RAISE 'sprung as %, %', session_user, current_user; END \$\$});
	at('b', 'ALTER DATABASE b OWNER TO mallory; ALTER DATABASE b SET role = mallory');
	my $list = slurp_file($file);
	unlink $file;
	append_to_file($file, $list =~ s/^(b\t.*)$/$1 options='-c statement_timeout=0'/mr);
	is(planned('--drain', 'a'), 0, 'a plan of a connection with options');
	unlike($err, qr/sprung/, 'a plan looks nothing up that others can make');
	unlink $file;
	append_to_file($file, $list);
	at('b', "SET ROLE NONE; DROP SCHEMA $user CASCADE; ALTER DATABASE b RESET role;
		ALTER DATABASE b OWNER TO $user");
}
$node{b}->safe_psql('postgres', 'CREATE DATABASE squat');
$node{b}->safe_psql('squat', q{CREATE SCHEMA instaid AUTHORIZATION mallory; SET ROLE mallory;
	CREATE FUNCTION instaid.trap() RETURNS name LANGUAGE plpgsql AS $$ BEGIN RAISE 'sprung'; END $$;
	CREATE VIEW instaid.shards AS SELECT instaid.trap() AS schema_name, 1 AS shard_id;
	GRANT USAGE ON SCHEMA instaid TO PUBLIC; GRANT SELECT ON instaid.shards TO PUBLIC});
append_to_file($file, "squat\t" . $node{b}->connstr('squat') . "\n");
is(planned(), 5, 'a plan refuses a schema instaid of another role');
like($err, qr/schema instaid of squat belongs to mallory.*: give -- --trust mallory\n/,
	'a plan names the role whose code it would run');
unlike($err, qr/sprung/, 'a plan runs nothing of that role');
is(planned('--', '--trust', 'mallory'), 3, 'a plan runs it for a role that is trusted');
$node{b}->safe_psql('squat', 'DROP SCHEMA instaid CASCADE');
is(planned(), 5, 'a plan refuses a database in which another role could make a schema instaid');
like($err, qr/squat has no instaid\n/, 'a plan names the database without instaid');
$node{b}->safe_psql('squat',
	'GRANT CREATE ON DATABASE squat TO mallory; SET ROLE mallory; CREATE EXTENSION instaid');
is(planned(), 5, 'a plan refuses an extension that another role can drop');
like($err, qr/extension instaid of squat belongs to mallory/, 'a plan names whose extension it is');
$node{b}->safe_psql('postgres', 'DROP DATABASE squat');

servers('a', 'b');
is(planned('user1', 'no%'), 5, 'a plan for shards that no server has');
like($err, qr/no server has such a shard: no%\n/, 'shards that no server has are named');
at('b', 'SELECT instaid.create_shard($$twin$$, 1)');
is(planned(), 5, 'a plan for two servers with the same shard ID');
like($err, qr/shard ID 1 is on two servers, a and b/,
	'the shard ID that is on two servers is named');

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
	my @options = ('--drain', 'a', '--per-move', $ENV{FULL} ? 20 : 3);
	my @each = ('--', '--max-stop', 20, '--max-wait', 300);
	note("$count shards, "
		  . at('a', 'SELECT pg_size_pretty(pg_database_size(current_database()))'));
	is(moved(undef, 3, @options, '--', '--check-only'), 0,
		'--check-only finds nothing in the way of any move');
	is(left(), '', '--check-only of all moves changes nothing');
	my $writers = start_writers(8, 0.03, \@names);
	sleep(1);

	# killed at each of these, and the same command goes on
	for my $at ($ENV{FULL} ? 'enabled' : ('slot', 'stopped', 'switched', 'comparing'))
	{
		isnt(moved($at, 3, @options, @each), 0, "all moves are killed after: $at");
		is(planned(@options, @each), 0, "the plan again, after kills after: $at");
		like($err,
			qr/^# under way: \d+ shards from a to \w, (?:copying|switched|back, not compared)$/m,
			"the plan tells the moves that were killed after: $at");
		like($err, qr/^# a: .*; then 0 shards, 0\.0 MB; drained$/m,
			"the plan counts moves as made that were killed after: $at");
		my $sum = 0;
		$sum += $_ for $err =~ /^# \w: .*; then (\d+) shards/mg;
		is($sum, $count, "the plan counts each shard once after: $at");
	}
	is(moved(undef, 3, @options, @each), 0, 'the same command moves all shards');
	note(sprintf 'all shards were moved in %.1f s', $seconds);
	like(counts(), qr/^b:\d+ c:\d+ d:\d+$/, 'the shards are on the others: ' . counts());
	is(planned(@options), 0, 'the plan again after all shards were moved');
	is($out, '', 'the plan has nothing to do after all shards were moved');
	isnt(moved('copy dropped', 2, '--finish'), 0, 'each --finish is killed');
	is(moved(undef, 2, '--finish'), 0, 'each --finish again ends well');
	is(left(), '', '--finish of all moves leaves nothing');
	my $sum = stop_writers($writers);
	is($sum->{wrong}, '',
		"a drain: none of $sum->{count} transactions is lost, and none came twice");
	is(join(' ', grep { !/^(55000|3F000|42P01)$/ } split / /, $sum->{errors}), '',
		'clients of a drained server saw no error but that of a frozen shard');
	note("refused: $sum->{histogram}; the longest $sum->{longest} s");
	is(rows(), $before, 'all earlier rows are there after a server was drained');
}

# One move that fails stops no other
{
	fill(6, 10);
	# the page shows what it prints
	servers('a' .. 'c');
	is(planned('--drain', 'a'), 0, 'a plan as the page has it');
	my ($page) = grep { $_->{shows} } section_blocks('docs/moving-a-shard.md', 'Several servers');
	my $kinds = sub {
		my ($text) = @_;
		$text =~ s/\b[a-z]+\d?: (\d)/SERVER: $1/g;
		$text =~ s/^instaid-move --from '.*' --to '.*' -- user\d.*/COMMAND/mg;
		$text =~ s/\d+(\.\d+)?/N/g;
		return join "\n", sort keys %{ { map { $_ => 1 } split /\n/, $text } };
	};
	is($kinds->($page->{shows}), $kinds->($err . $out), 'the page shows what a plan prints');
	servers('a' .. 'd');
	at('a', 'CREATE VIEW public.w AS SELECT count(*) FROM user3.t');
	is(moved(undef, 2, '--drain', 'a', '--per-move', 1, '--', '--max-stop', 20), 123,
		'a plan with a shard that cannot be moved');
	like($out, qr/^  ! view .*w of the source/m, 'the view that keeps a shard from moving is told');
	like(counts(), qr/^a:1 b:\d c:\d d:\d$/, 'a shard that cannot be moved stops no other');
	at('a', 'DROP VIEW public.w');
	is(moved(undef, 2, '--drain', 'a'), 0, 'the shard moves when the view is gone');
	is(moved(undef, 2, '--finish'), 0, '--finish after one of the moves had failed');
	is(left(), '', '--finish after one of the moves had failed leaves nothing');

	# from here to there by --dump
	is(moved(undef, 2, '--drain', 'b', '--', '--dump'), 0, 'a server is drained by --dump');
	unlike(counts(), qr/b/, 'a server drained by --dump has no shard');
}

# One command for a thousand shards
SKIP:
{
	skip 'only with FULL=1', 5 if !$ENV{FULL};
	my @names = fill(1000, 1000);
	my $before = rows();
	my $writers = start_writers(4, 0.05, \@names);
	is(moved(undef, 3, '--drain', 'a', '--per-move', 50, '--', '--max-stop', 20, '--max-wait', 300),
		0, 'a thousand shards by one command');
	my $took = $seconds;
	is(moved(undef, 3, '--finish'), 0, '--finish of a thousand shards');
	my $sum = stop_writers($writers);
	note(sprintf '%.1f s, refused: %s; the longest %s s', $took + $seconds, $sum->{histogram},
		$sum->{longest});
	is($sum->{wrong}, '',
		"a thousand shards: none of $sum->{count} transactions is lost, and none came twice");
	like(counts(), qr/^b:33\d c:33\d d:33\d$/,
		'a thousand shards are spread: ' . counts());
	is(left(), '', '--finish of a thousand shards leaves nothing');
	is(rows(), $before, 'all rows of a thousand shards are there');
}

done_testing();
