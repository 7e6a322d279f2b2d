# What a transaction holds, and leaves behind, when it is prepared, cancelled or rolled back:
# locks, pinned pages and files.  And what sessions see of each other: temporary sequences,
# and shards that come and go, or are damaged.  This needs more than one session, and settings.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

my $node = Clients::server('main', 'max_prepared_transactions = 2', 'synchronous_commit = off');
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_buffercache;
	SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
});

my $nothing_left = q{
	SELECT (SELECT count(*) FROM pg_locks WHERE relation = 'insta5.table_id_seq'::regclass
		AND pid IS DISTINCT FROM pg_backend_pid()),
		(SELECT coalesce(sum(pinning_backends), 0) FROM pg_buffercache
		 WHERE relfilenode = pg_relation_filenode('insta5.table_id_seq'))};

sub next_id
{
	return $node->safe_psql('postgres', 'SET client_min_messages = error; SELECT insta5.next_id()');
}

# A prepared transaction keeps its lock on the sequence, which blocks only ALTER.
my $prepared = $node->safe_psql('postgres', q{
	BEGIN;
	INSERT INTO insta5.photos (n) SELECT generate_series(1, 10);
	SELECT max(id) FROM insta5.photos;
	PREPARE TRANSACTION 'p';});
cmp_ok(next_id(), '>', $prepared, 'IDs go on past a prepared transaction');
is($node->safe_psql('postgres',
	q{SELECT mode FROM pg_locks WHERE relation = 'insta5.table_id_seq'::regclass}),
	'RowExclusiveLock', 'the prepared transaction holds the lock');
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
is($node->safe_psql('postgres', $nothing_left), '0|0', 'nothing is held when it is committed');
$node->safe_psql('postgres', q{BEGIN; INSERT INTO insta5.photos (n) VALUES (11);
	PREPARE TRANSACTION 'p'});
$node->restart;
my $after_restart = next_id();
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});
cmp_ok($after_restart, '>', $prepared, 'IDs go on past a prepared transaction and a restart');
is($node->safe_psql('postgres', $nothing_left), '0|0', 'nothing is held when it is rolled back');
# It has no process: that of the session that prepared it, or now has its place, is innocent.
my $error;
$node->psql('postgres', q{
	BEGIN; SELECT instaid.create_shard('prepared', 6); PREPARE TRANSACTION 'p';
	SELECT instaid.create_shard('other', 6)}, stderr => \$error);
like($error, qr/ERROR:  another transaction .* with ID 6\nDETAIL:  It has not ended yet\./,
	'a prepared transaction that creates a shard is not mistaken for a process');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});

# Statements that are cancelled while they make IDs, and while they wait for the clock
for my $case (
	# max_drift, where the sequence begins, in ms from the clock, and whether it waits
	[ 'making IDs', '1d', 0, 'wait_event IS NULL' ],
	[ 'waiting for the clock', '0', 3600000, q{wait_event IN ('Extension', 'InstaidClock')} ])
{
	my ($name, $max_drift, $ahead, $does_it) = @$case;
	my $err = '';
	my $begin = $node->safe_psql('postgres', qq{
		SELECT setval('insta5.table_id_seq',
			(extract(epoch FROM now()) * 1000 + $ahead)::bigint << 10)});
	my $psql = IPC::Run::start([ 'psql', '-Xq', '-d',
		$node->connstr('postgres') . q{ application_name=victim},
			'-c', 'SET client_min_messages = error', '-c', "SET instaid.max_drift = '$max_drift'",
			'-c', 'SELECT count(insta5.next_id())
				FROM generate_series(1, 10000) AS a, generate_series(1, 10000) AS b' ],
		'<', \undef, '>', '/dev/null', '2>', \$err);
	$node->poll_query_until('postgres', qq{
		SELECT count(*) = 1 FROM pg_stat_activity, insta5.table_id_seq
		WHERE application_name = 'victim' AND $does_it AND last_value > $begin}) or die;
	$node->safe_psql('postgres',
		q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'victim'});
	$psql->finish;
	like($err, qr/canceling statement due to user request/, "a statement is cancelled while $name");
	is($node->safe_psql('postgres', $nothing_left), '0|0',
		"a statement is cancelled while $name, and leaves neither lock nor pin");
}
# how to bring back a sequence that is ahead by mistake
$node->safe_psql('postgres', q{SELECT setval('insta5.table_id_seq', 1)});
is($node->safe_psql('postgres', q{
	SELECT instaid.extract_timestamp(insta5.next_id()) BETWEEN now() - interval '1 s'
		AND clock_timestamp()}),
	't', 'setval sets the sequence back');

# The page of the sequence that was used last stays pinned until the transaction ends.
# The pages of other sequences are not pinned.
my $pins = q{
	SELECT string_agg(relname || ' ' || pinning_backends, ', ' ORDER BY relname)
	FROM pg_buffercache AS b
	JOIN pg_class AS c ON pg_relation_filenode(c.oid) = b.relfilenode WHERE relname ~ '_pin$'
		AND pinning_backends > 0;};
$node->safe_psql('postgres', 'CREATE SEQUENCE a_pin; CREATE SEQUENCE b_pin;
	CREATE TABLE pinned_ids (id bigint UNIQUE)');
for my $case (
	[ 'a transaction', "BEGIN; SELECT instaid.next_id('a_pin', 5) > 0;
		$pins SELECT instaid.next_id('b_pin', 5) > 0; $pins COMMIT", "t\na_pin 1\nt\nb_pin 1" ],
	[ 'a savepoint that is rolled back',
		"BEGIN; SAVEPOINT s; SELECT instaid.next_id('a_pin', 5) > 0; ROLLBACK TO s; $pins COMMIT",
		"t\na_pin 1" ],
	[ 'a transaction that is rolled back',
		"BEGIN; SELECT instaid.next_id('a_pin', 5) > 0; ROLLBACK", 't' ],
	[ 'a prepared transaction', "BEGIN; SELECT instaid.next_id('a_pin', 5) > 0;
		PREPARE TRANSACTION 'p'; $pins COMMIT PREPARED 'p'", "t\n" ],
	[ 'commits in a procedure',
		q{DO $$ BEGIN FOR i IN 1 .. 3 LOOP PERFORM instaid.next_id('a_pin', 5);
			IF i = 2 THEN ROLLBACK; ELSE COMMIT; END IF; END LOOP; END $$}, '' ],
	[ 'a cursor that is held',
		q{BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT * FROM insta5.next_ids(3, 'a_pin');
		FETCH 1 FROM c \g /dev/null
		COMMIT}, '' ])
{
	my ($name, $sql, $expected) = @$case;
	is($node->safe_psql('postgres', $sql), $expected, "$name: one page is pinned while it is used");
	is($node->safe_psql('postgres', $pins), '',
		"$name: one page is pinned while it is used, and none afterwards");
}
# A file that is removed with a savepoint must not be pinned.
for my $case (
	[ 'CREATE SEQUENCE c_pin', '' ],
	[ 'ALTER SEQUENCE a_pin RESTART', 'SELECT instaid.next_id(%s, 5);' ],
	[ 'ALTER SEQUENCE a_pin SET UNLOGGED', 'SELECT instaid.next_id(%s, 5);' ],
	[ 'ALTER SEQUENCE a_pin RESTART', '' ])
{
	my ($way, $before) = @$case;
	my $sequence = $way =~ /(\w_pin)/ ? "'$1'" : die;
	my $ids = $node->safe_psql('postgres', sprintf(qq{
		BEGIN; $before SAVEPOINT s; $way; SELECT instaid.next_id(%s, 5) FROM generate_series(1, 3);
		SAVEPOINT t; SELECT instaid.next_id(%s, 5); ROLLBACK TO s;
		SELECT instaid.next_id('b_pin', 5); COMMIT;}, ($sequence) x 3));
	is(scalar(split /\n/, $ids), ($before ? 1 : 0) + 5,
		"$way, rolled back to a savepoint: no error");
	is($node->safe_psql('postgres', $pins), '',
		"$way, rolled back to a savepoint, and nothing is left pinned");
}
# a transaction may drop a sequence that it has used
$node->safe_psql('postgres', q{CREATE SEQUENCE d_pin});
is($node->safe_psql('postgres', q{BEGIN; SELECT instaid.next_id('d_pin', 5) > 0;
	DROP SEQUENCE d_pin; COMMIT; SELECT to_regclass('d_pin') IS NULL}),
	"t\nt", 'a transaction drops the sequence that it has used');

# Another session's temporary sequence
my $other = Clients::session($node);
my $oid = $other->("CREATE TEMPORARY SEQUENCE theirs; SELECT 'theirs'::regclass::oid");
my ($ret, $stdout, $stderr) = $node->psql('postgres',
	"\\set VERBOSITY verbose\nSELECT instaid.next_id($oid, 5)");
like($stderr,
	qr/0A000: cannot access temporary sequence "theirs" of another session\n/,
	'temporary sequences of other sessions are refused');
is(Clients::hints($stderr), 'Create the sequence without TEMPORARY.',
	'the error of a temporary sequence says how to create it');

# One session lists shards while another creates and drops some: there is no error.
my $tempdir = PostgreSQL::Test::Utils::tempdir;
append_to_file("$tempdir/look.sql", 'SELECT * FROM instaid.shards;');
append_to_file("$tempdir/come_and_go.sql",
	"SELECT instaid.create_shard('z:client_id', 100 + :client_id);\n"
	  . 'DROP SCHEMA z:client_id CASCADE;');
my @pgbench = map {
	IPC::Run::start(
		[ 'pgbench', '-n', '-c', '2', '-T', '2', '-f', "$tempdir/$_.sql",
			$node->connstr('postgres') ],
		'<', \undef, '&>', '/dev/null')
} 'look', 'come_and_go';
ok((!grep { !$_->finish } @pgbench), 'shards can be listed while others are created and dropped');

# An error of the reader that is not one of the file, here a lack of buffers, leaves the
# transaction as any error does.
($ret, $stdout, $stderr) = $node->psql('postgres', q{
	\set VERBOSITY sqlstate
	SET temp_buffers = 100;
	CREATE TABLE kept (n integer);
	CREATE TEMP SEQUENCE s;
	SELECT FROM instaid.next_id('s', 5);
	CREATE TEMP TABLE pages (x text);
	ALTER TABLE pages ALTER x SET STORAGE PLAIN;
	INSERT INTO pages SELECT repeat('x', 5000) FROM generate_series(1, 200);
	-- a cursor pins the page that it reads, until there is no other one
	CREATE PROCEDURE pin_all() LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 0 .. 199 LOOP
			BEGIN
				EXECUTE format('DECLARE c%1$s CURSOR FOR SELECT FROM pages WHERE ctid = %2$L', i,
					format('(%s,1)', i));
				EXECUTE format('MOVE c%s', i);
			EXCEPTION WHEN insufficient_resources THEN EXIT;
			END;
		END LOOP;
	END $$;
	BEGIN;
	CALL pin_all();
	INSERT INTO kept VALUES (1);
	SELECT instaid._last_id('s', 5);
	ROLLBACK;
	BEGIN;
	CALL pin_all();
	DO $$
	BEGIN
		INSERT INTO kept VALUES (2);
		PERFORM instaid._last_id('s', 5);
	EXCEPTION WHEN insufficient_resources THEN INSERT INTO kept VALUES (3);
	END $$;
	COMMIT;
	INSERT INTO kept VALUES (4);
	SELECT string_agg(n::text, ' ' ORDER BY n) FROM kept}, on_error_stop => 0);
is("$stdout|" . join(' ', $stderr =~ /ERROR:  (\S+)/g), "3 4|53000",
	'an error while a sequence is read is rolled back as any other');

# A sequence whose file is missing, as it can be for a moment on a standby that replays ALTER
# SEQUENCE, one whose file may not be read, one whose page is not a sequence's, and one whose tuple
# has another format.
my ($missing, $broken, $closed, $longer) = map {
	$node->safe_psql('postgres', qq{SELECT instaid.create_shard('insta$_', $_);
		SELECT FROM insta$_.next_id(); SELECT pg_relation_filepath('insta$_.table_id_seq')})
	  =~ /(\S+)\s*\z/
} 6, 7, 8, 9;
# the checksum of the page is wrong, too
$node->append_conf('postgresql.conf', 'ignore_checksum_failure = on');
$node->stop;
unlink $node->data_dir . "/$missing" or die $!;
chmod 0, $node->data_dir . "/$closed" or die $!;
open my $page, '+<:raw', $node->data_dir . "/$broken" or die $!;
seek $page, 8192 - 8, 0 or die $!;
print $page pack 'L', 5;
close $page or die $!;
# the length is in the upper 15 bits of the pointer, after the 24 bytes of the page's header
open $page, '+<:raw', $node->data_dir . "/$longer" or die $!;
seek $page, 24, 0 or die $!;
read $page, my $pointer, 4 or die $!;
seek $page, 24, 0 or die $!;
print $page pack 'L', unpack('L', $pointer) + (8 << 17);
close $page or die $!;
$node->start;
is($node->safe_psql('postgres',
	'SELECT shard_id, last_id IS NOT NULL FROM instaid.shards ORDER BY shard_id'),
	"5|t\n6|f\n7|f\n8|f\n9|f", 'sequences that cannot be read do not break the list of shards');
is($node->safe_psql('postgres', 'SELECT shards, unreadable FROM instaid.metrics'),
	'5|4', 'sequences that cannot be read do not break the list of shards, and are counted');
for my $call ('next_id', 'settled_id')
{
	($ret, $stdout, $stderr) = $node->psql('postgres', $call eq 'next_id' ?
		'SELECT insta6.next_id()' : "SELECT instaid.settled_id('insta6')");
	like($stderr, qr/could not open file/, "$call() shows why");
}
# the error leaves the page unlocked
my $magic = qr/bad magic number in sequence with OID \d+: 00000005/;
my $length = qr/tuple of sequence with OID \d+ has 49 bytes, not 41/;
for my $case ([ 'insta7.next_id()', $magic ], [ "instaid.settled_id('insta7')", $magic ],
	[ 'insta9.next_id()', $length ], [ "instaid.settled_id('insta9')", $length ])
{
	my ($call, $error) = @$case;
	($ret, $stdout, $stderr) = $node->psql('postgres', "SET statement_timeout = '60s';
		BEGIN; SAVEPOINT s; SELECT $call; ROLLBACK TO s; SELECT $call; ROLLBACK TO s;",
		on_error_stop => 0);
	like($stderr, qr/$error.*$error/s, "$call fails each time for a page of something else");
}

$node->stop;
unlike(slurp_file($node->logfile), qr/\bleak\b|PANIC|TRAP:|XX000/,
	'the server logged no leak, and no error of its own');
done_testing();
