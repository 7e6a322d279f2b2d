# Cases that need more than one session, or a server with special settings: prepared
# transactions, cancelled statements, buffer pins, temporary sequences of other
# sessions, wal_level = minimal, a standby, dump and restore.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

my $node = Clients::server('main', { allows_streaming => 1 }, 'max_prepared_transactions = 2');
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_buffercache;
	SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
});

my $nothing_left = q{
	SELECT (SELECT count(*) FROM pg_locks WHERE relation = 'insta5.table_id_seq'::regclass AND pid IS DISTINCT FROM pg_backend_pid()),
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
is($node->safe_psql('postgres', q{SELECT mode FROM pg_locks WHERE relation = 'insta5.table_id_seq'::regclass}),
	'RowExclusiveLock', 'the prepared transaction holds the lock');
$node->safe_psql('postgres', q{COMMIT PREPARED 'p'});
is($node->safe_psql('postgres', $nothing_left), '0|0', 'nothing is held when it is committed');
$node->safe_psql('postgres', q{BEGIN; INSERT INTO insta5.photos (n) VALUES (11); PREPARE TRANSACTION 'p'});
$node->restart;
my $after_restart = next_id();
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'p'});
cmp_ok($after_restart, '>', $prepared, 'IDs go on past a prepared transaction and a restart');
is($node->safe_psql('postgres', $nothing_left), '0|0', 'nothing is held when it is rolled back');

# Statements that are cancelled while they make IDs, and while they wait for the clock
# (an hour ahead, max_drift 0).
for my $case ([ 'making IDs', '' ],
	[ 'waiting for the clock', q{
		SELECT setval('insta5.table_id_seq', ((extract(epoch FROM now()) * 1000)::bigint + 3600000) << 10);} ])
{
	my ($name, $before) = @$case;
	my $err = '';
	$node->safe_psql('postgres', $before) if $before;
	my $psql = IPC::Run::start([ 'psql', '-Xq', '-d', $node->connstr('postgres') . q{ application_name=victim},
			'-c', 'SET client_min_messages = error', '-c', 'SET instaid.max_drift = 0',
			'-c', 'SELECT count(insta5.next_id()) FROM generate_series(1, 100000000)' ],
		'<', \undef, '>', '/dev/null', '2>', \$err);
	$node->poll_query_until('postgres', q{
		SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'victim' AND query ~ 'next_id'}) or die;
	$node->poll_query_until('postgres', q{
		SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'victim' AND wait_event = 'Extension'}) or die
	  if $before;
	$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'victim'});
	$psql->finish;
	like($err, qr/canceling statement due to user request/, "a statement is cancelled while $name");
	is($node->safe_psql('postgres', $nothing_left), '0|0', '... and leaves neither lock nor pin');
}
# how to bring back a sequence that is ahead by mistake
$node->safe_psql('postgres', q{SELECT setval('insta5.table_id_seq', 1)});
is($node->safe_psql('postgres', q{
	SELECT instaid.extract_timestamp(insta5.next_id()) BETWEEN now() - interval '1 s' AND clock_timestamp()}),
	't', 'setval sets the sequence back');

# The page of the sequence that was used last stays pinned until the transaction ends.
# The pages of other sequences are not pinned.
my $pins = q{
	SELECT string_agg(relname || ' ' || pinning_backends, ', ' ORDER BY relname) FROM pg_buffercache AS b
	JOIN pg_class AS c ON pg_relation_filenode(c.oid) = b.relfilenode WHERE relname ~ '_pin$' AND pinning_backends > 0;};
$node->safe_psql('postgres', 'CREATE SEQUENCE a_pin; CREATE SEQUENCE b_pin; CREATE TABLE pinned_ids (id bigint UNIQUE)');
for my $case (
	[ 'a transaction', "BEGIN; SELECT instaid.next_id('a_pin', 5) > 0; $pins SELECT instaid.next_id('b_pin', 5) > 0; $pins COMMIT", "t\na_pin 1\nt\nb_pin 1" ],
	[ 'a savepoint that is rolled back', "BEGIN; SAVEPOINT s; SELECT instaid.next_id('a_pin', 5) > 0; ROLLBACK TO s; $pins COMMIT", "t\na_pin 1" ],
	[ 'a transaction that is rolled back', "BEGIN; SELECT instaid.next_id('a_pin', 5) > 0; ROLLBACK", 't' ],
	[ 'a prepared transaction', "BEGIN; SELECT instaid.next_id('a_pin', 5) > 0; PREPARE TRANSACTION 'p'; $pins COMMIT PREPARED 'p'", "t\n" ],
	[ 'commits in a procedure', q{DO $$ BEGIN FOR i IN 1 .. 3 LOOP PERFORM instaid.next_id('a_pin', 5); IF i = 2 THEN ROLLBACK; ELSE COMMIT; END IF; END LOOP; END $$}, '' ],
	[ 'a cursor that is held', q{BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT * FROM instaid.next_ids('a_pin', 5, 3); FETCH 1 FROM c \g /dev/null
		COMMIT}, '' ])
{
	my ($name, $sql, $expected) = @$case;
	is($node->safe_psql('postgres', $sql), $expected, "$name: one page is pinned while it is used");
	is($node->safe_psql('postgres', $pins), '', '... and none afterwards');
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
	is(scalar(split /\n/, $ids), ($before ? 1 : 0) + 5, "$way, rolled back to a savepoint: no error");
	is($node->safe_psql('postgres', $pins), '', '... and nothing is left pinned');
}
# a transaction may drop a sequence that it has used
$node->safe_psql('postgres', q{CREATE SEQUENCE d_pin});
is($node->safe_psql('postgres', q{BEGIN; SELECT instaid.next_id('d_pin', 5) > 0; DROP SEQUENCE d_pin; COMMIT; SELECT to_regclass('d_pin') IS NULL}),
	"t\nt", 'a transaction drops the sequence that it has used');

# Another session's temporary sequence
my $other = Clients::session($node);
my $oid = $other->("CREATE TEMPORARY SEQUENCE theirs; SELECT 'theirs'::regclass::oid");
my ($ret, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT instaid.next_id($oid, 5)");
like($stderr, qr/ERROR:  0A000: cannot access temporary sequence "theirs" of another session\nHINT:.* without TEMPORARY/, 'temporary sequences of other sessions are refused');

# A standby refuses to make IDs, as nextval does.  It decodes IDs and shows the shards.
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
next_id();
$node->wait_for_catchup($standby);
for my $call ('insta5.next_id()', 'insta5.next_ids(10)', q{nextval('insta5.table_id_seq')})
{
	($ret, $stdout, $stderr) = $standby->psql('postgres', "\\set VERBOSITY verbose\nSELECT $call");
	like($stderr, qr/ERROR:  25006: /, "a standby refuses $call");
}
is($standby->safe_psql('postgres', 'SELECT instaid.extract_shard_id(4001511883701836730), count(*) FROM instaid.decode(1)'),
	'854|1', 'a standby decodes');
is($standby->safe_psql('postgres', q{SELECT schema_name, shard_id, last_id > 0, drift < '2 s' FROM instaid.shards}),
	'insta5|5|t|t', 'a standby shows the shards');
$standby->stop;

# A shard is dumped, and restored into another database that has the extension.  It
# is the same shard there, and its IDs go on above the restored ones.
$node->safe_psql('postgres', q{ALTER SCHEMA insta5 RENAME TO "insta 5"});
$node->safe_psql('postgres', q{INSERT INTO "insta 5".photos (n) VALUES (1)});
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
$node->run_log([ 'pg_dump', '-n', '"insta 5"', '-f', $dump, '-d', $node->connstr('postgres') ]);
$node->safe_psql('postgres', 'CREATE DATABASE copy');
$node->safe_psql('copy', 'CREATE EXTENSION instaid');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $node->connstr('copy') ],
	'pg_dump -n of a shard restores');
is($node->safe_psql('copy', 'SELECT schema_name, shard_id, epoch = instaid.default_epoch(), sequence FROM instaid.shards'),
	'insta 5|5|t|"insta 5".table_id_seq', 'the restored schema is the same shard');
is($node->safe_psql('copy', q{
	WITH i AS (INSERT INTO "insta 5".photos (n) VALUES (2) RETURNING id)
	SELECT i.id > (SELECT max(id) FROM "insta 5".photos), instaid.extract_shard_id(i.id) FROM i}),
	't|5', 'its IDs go on');

# The whole database with its extension, and a table that uses the type
$node->safe_psql('copy', q{
	CREATE TABLE "insta 5".likes (id instaid.id PRIMARY KEY DEFAULT "insta 5".next_id(), photo_id instaid.id REFERENCES "insta 5".photos);
	INSERT INTO "insta 5".likes (photo_id) SELECT id FROM "insta 5".photos;
	CREATE TABLE copied (id bigint, photo_id instaid.id);});
$node->safe_psql('copy', qq{COPY "insta 5".likes TO '$dump.binary' (FORMAT binary); COPY copied FROM '$dump.binary' (FORMAT binary)});
is($node->safe_psql('copy', q{SELECT count(*) > 10, count(*) = (SELECT count(*) FROM copied) FROM "insta 5".likes JOIN copied USING (id, photo_id)}),
	't|t', 'instaid.id is copied in binary, and has the format of bigint');
$node->run_log([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('copy') ]);
$node->safe_psql('postgres', 'CREATE DATABASE whole');
$node->command_ok([ 'pg_restore', '-e', '-d', $node->connstr('whole'), $dump ], 'pg_dump of a database restores');
is($node->safe_psql('whole', q{
	SELECT (SELECT shard_id FROM instaid.shards), "insta 5".next_id() > max(id) FROM "insta 5".photos}),
	'5|t', '... with its shard');
is($node->safe_psql('whole', q{
	INSERT INTO "insta 5".likes DEFAULT VALUES;
	SELECT bool_and(jsonb_typeof(to_jsonb(l)->'id') = 'string'), count(*) > 10 FROM "insta 5".likes AS l JOIN "insta 5".photos AS p ON p.id = l.photo_id}),
	't|t', '... and with its tables of the type');
# a role without rights on the shard may decode there
is($node->safe_psql('whole', q{
	CREATE ROLE reader; SET ROLE reader; SELECT shard_id FROM instaid.decode(4001511883701836730)}),
	'854', '... and with the rights of PUBLIC');

# A role that may create schemas can have created one with the extension's name.
$node->safe_psql('postgres', q{CREATE DATABASE planted; CREATE ROLE mallory; GRANT CREATE ON DATABASE planted TO mallory});
$node->safe_psql('planted', q{
	SET ROLE mallory;
	CREATE SCHEMA instaid;
	CREATE FUNCTION instaid.create_shard(text, integer) RETURNS void LANGUAGE sql RETURN NULL::void;
	-- a better match than pg_catalog's for an unwary comparison
	CREATE FUNCTION instaid.never(oid, regclass) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''planted''; END';
	CREATE FUNCTION instaid.never(oid, regnamespace) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''planted''; END';
	CREATE OPERATOR instaid.= (FUNCTION = instaid.never, LEFTARG = oid, RIGHTARG = regclass);
	CREATE OPERATOR instaid.= (FUNCTION = instaid.never, LEFTARG = oid, RIGHTARG = regnamespace);
	CREATE OPERATOR instaid.<> (FUNCTION = instaid.never, LEFTARG = oid, RIGHTARG = regclass);});
($ret, $stdout, $stderr) = $node->psql('planted', "\\set VERBOSITY verbose\nCREATE EXTENSION instaid");
like($stderr, qr/ERROR:  55000: schema "instaid" already exists/, 'an existing schema is refused');
$node->safe_psql('planted', q{
	SET ROLE mallory; DROP SCHEMA instaid CASCADE; CREATE EXTENSION instaid});
is($node->safe_psql('planted', q{SELECT extowner::regrole FROM pg_extension WHERE extname = 'instaid'}),
	'mallory', 'an ordinary role may create the extension');
$node->safe_psql('planted', q{DROP EXTENSION instaid; CREATE EXTENSION instaid});

# A tool's dump of a schema can have created the schema of the tickets before.
for my $case (
	[ 'CREATE SCHEMA instaid_tickets', '', 'an empty schema of a superuser is replaced' ],
	[ 'CREATE SCHEMA instaid_tickets AUTHORIZATION mallory; SET ROLE mallory', '', 'an empty schema of the installer is replaced' ],
	[ 'CREATE SCHEMA instaid_tickets AUTHORIZATION mallory', 'It belongs to role mallory.', 'an empty schema of another role is refused' ],
	[ 'CREATE SCHEMA instaid_tickets; SET ROLE mallory', '', 'a superuser has created it for the installer' ],
	[ 'CREATE SCHEMA instaid_tickets; CREATE FUNCTION instaid_tickets.f() RETURNS integer LANGUAGE sql RETURN 1', 'It is not empty.', 'a function is in the way' ],
	[ 'CREATE SCHEMA instaid_tickets; CREATE TYPE instaid_tickets.t AS ENUM ()', 'It is not empty.', 'a type is in the way' ],
	[ 'SET ROLE mallory; CREATE SCHEMA instaid_tickets; CREATE SEQUENCE instaid_tickets.photos', 'It is not empty.', 'a sequence is in the way' ])
{
	my ($before, $detail, $what) = @$case;
	($ret, $stdout, $stderr) = $node->psql('planted', qq{
		SET client_min_messages = error;
		DROP EXTENSION IF EXISTS instaid;
		DROP SCHEMA IF EXISTS instaid_tickets CASCADE;
		$before;
		\\set VERBOSITY verbose
		CREATE EXTENSION instaid;
		RESET ROLE;
		SELECT nspowner::regrole, nspname IN (SELECT (pg_identify_object(classid, objid, objsubid)).name FROM pg_depend WHERE deptype = 'e') FROM pg_namespace WHERE nspname = 'instaid_tickets'}, on_error_stop => 0);
	if ($detail) { like($stderr, qr/ERROR:  55000: schema "instaid_tickets" already exists\n.*DETAIL:  \Q$detail\E/s, $what) }
	else { is($stdout, $node->safe_psql('postgres', 'SELECT current_user') . '|t', $what) }
}
$node->safe_psql('planted', 'DROP SCHEMA instaid_tickets CASCADE; CREATE EXTENSION instaid');

# The script is parsed with the settings of the session.  PostgreSQL 19 does not have
# this setting.
($ret, $stdout, $stderr) = $node->psql('planted', "SET client_min_messages = error;\nDROP EXTENSION instaid;\nSET standard_conforming_strings = off;\n\\set VERBOSITY verbose\nCREATE EXTENSION instaid");
like($stderr, qr/ERROR:  55000: standard_conforming_strings is off|ERROR:  non-standard string literals are not supported/, 'a session where backslashes are escapes is refused');

# One session lists shards while another creates and drops some: there is no error.
$node->append_conf('postgresql.conf', "synchronous_commit = off\n");
$node->reload;
my $tempdir = PostgreSQL::Test::Utils::tempdir;
append_to_file("$tempdir/look.sql", 'SELECT * FROM instaid.shards;');
append_to_file("$tempdir/come_and_go.sql",
	"SELECT instaid.create_shard('z:client_id', 100 + :client_id);\nDROP SCHEMA z:client_id CASCADE;");
my @pgbench = map {
	IPC::Run::start([ 'pgbench', '-n', '-c', '2', '-T', '5', '-f', "$tempdir/$_.sql", '-h', $node->host, '-p', $node->port, 'postgres' ],
		'<', \undef, '&>', '/dev/null')
} 'look', 'come_and_go';
ok((!grep { !$_->finish } @pgbench), 'shards can be listed while others are created and dropped');

# SET LOGGED and TEMPLATE copy a sequence with its log_cnt, but not the WAL record that
# log_cnt refers to.
$node->safe_psql('postgres', 'CREATE DATABASE made_logged');
$node->safe_psql('made_logged', 'CREATE EXTENSION instaid; CREATE UNLOGGED SEQUENCE s; CREATE SEQUENCE t');
my $eight_million = q{SET instaid.max_drift = '1h';
	SELECT max((SELECT max(id) FROM instaid.next_ids('%s', 5, 1000000 + 0 * n) AS id)) FROM generate_series(1, 8) AS n;};
$node->safe_psql('made_logged', sprintf($eight_million, $_)) for 's', 't';
$node->safe_psql('made_logged', 'ALTER SEQUENCE s SET LOGGED');
$node->safe_psql('postgres', 'CREATE DATABASE copied TEMPLATE made_logged');
my $logged = $node->safe_psql('made_logged', q{SELECT max(id) FROM instaid.next_ids('s', 5, 1000) AS id});
my $copied = $node->safe_psql('copied', q{SELECT max(id) FROM instaid.next_ids('t', 5, 1000) AS id});
$node->stop('immediate');
$node->start;
cmp_ok($node->safe_psql('made_logged', q{SET client_min_messages = error; SELECT instaid.next_id('s', 5)}), '>', $logged,
	'SET LOGGED: IDs go on after a crash');
cmp_ok($node->safe_psql('copied', q{SET client_min_messages = error; SELECT instaid.next_id('t', 5)}), '>', $copied,
	'TEMPLATE: IDs go on after a crash');
$node->stop;

# wal_level = minimal: IDs of the transaction that created the sequence are not in the
# WAL.  IDs after its commit must be.
# With this wal_skip_threshold new files are logged when the transaction commits.
my $minimal = Clients::server('minimal', 'wal_level = minimal', 'max_wal_senders = 0', 'wal_skip_threshold = 1GB',
	'checkpoint_timeout = 1d');
for my $way ('CREATE SEQUENCE s', 'ALTER SEQUENCE s RESTART')
{
	# seconds ahead of the clock at the commit: only WAL can say where the sequence is
	my $last = $minimal->safe_psql('postgres', qq{
		SET instaid.max_drift = '1h';
		BEGIN;
		$way;
		SELECT max((SELECT max(id) FROM instaid.next_ids('s', 5, 1000000 + 0 * n) AS id)) FROM generate_series(1, 8) AS n;
		COMMIT;
		SELECT max(id) FROM instaid.next_ids('s', 5, 1000) AS id;});
	$last =~ s/.*\n//s;
	$minimal->stop('immediate');
	$minimal->start;
	my $next = $minimal->safe_psql('postgres', q{
		SET client_min_messages = error; SELECT instaid.next_id('s', 5)});
	cmp_ok($next, '>', $last, "wal_level = minimal, $way: IDs go on after a crash");
	$minimal->safe_psql('postgres', q{SELECT setval('s', 1)});
}

# The WAL writer soon flushes a record of a transaction that does not commit.  Nothing
# else flushes it here.
is($minimal->safe_psql('postgres', q{
	CREATE SEQUENCE open;
	CHECKPOINT;
	BEGIN;
	SELECT instaid.next_id('open', 5) > 0;
	DO $$
	DECLARE logged pg_lsn := pg_current_wal_insert_lsn();
	BEGIN
		FOR i IN 1 .. 600 LOOP
			EXIT WHEN pg_current_wal_flush_lsn() >= logged;
			PERFORM pg_sleep(0.1);
		END LOOP;
		PERFORM set_config('test.flushed', (pg_current_wal_flush_lsn() >= logged)::text, false);
	END $$;
	SELECT current_setting('test.flushed')}), "t\ntrue", 'the record of an open transaction is soon flushed');

# Other sessions use the old file in the millisecond of a RESTART.  They wait until the
# millisecond is over, and notifications interrupt this wait.
$minimal->safe_psql('postgres', 'CREATE TABLE ids (id bigint); CREATE SEQUENCE r');
append_to_file($minimal->basedir . '/restart.sql', q{LISTEN restarted;
BEGIN;
ALTER SEQUENCE r RESTART;
INSERT INTO ids SELECT instaid.next_id('r', 5);
NOTIFY restarted;
COMMIT;
});
$minimal->command_ok([ 'pgbench', '-n', '-c', '8', '-t', '300', '-f', $minimal->basedir . '/restart.sql', $minimal->connstr('postgres') ],
	'sessions restart a sequence in turn');
is($minimal->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM ids'), '2400|2400', '... and no ID comes twice');
$minimal->stop;

# No server has logged an error of its own.
for my $log ($node->logfile, $standby->logfile, $minimal->logfile)
{
	unlike(slurp_file($log), qr/\bleak\b|PANIC|TRAP:|XX000/, 'the server logged no leak, and no error of its own');
}

done_testing();
