# Readers poll a table for new IDs, while eight writers take IDs, wait, and commit or
# not.  One reader reads up to settled_id(), and one reads all rows that it sees.  Further
# tests have prepared transactions, which isolation tests cannot count on, a restart, and
# a standby.
#
# FULL=1 adds twice as many transactions
# INSTAID_TEST_IDS shortens it; INSTAID_TEST_SEED repeats what the writers do.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;

my $writers = 8;
my $ids = $ENV{INSTAID_TEST_IDS} || ($ENV{FULL} ? 20_000_000 : 10_000_000);
my $transactions = int($ids / 20_000) || 1;
my $seed = srand($ENV{INSTAID_TEST_SEED} // time);
note "INSTAID_TEST_SEED=$seed";

my $node = PostgreSQL::Test::Cluster->new('primary');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf',
	join "\n", 'log_statement = none', 'max_connections = 40',
	'max_prepared_transactions = 20', 'wal_writer_delay = 10s', '');
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION instaid;
	SELECT instaid.create_shard('insta5', 5);
	-- the ID of a tick that core's nextval() gave
	CREATE FUNCTION id_of(tick bigint) RETURNS bigint LANGUAGE sql IMMUTABLE
		RETURN ((tick >> 10) - 1314220021721 << 23) | (5 << 10) | (tick & 1023);});
$node->safe_psql('postgres', slurp_file('test/lib/readers.sql'));

# What a writer can do in a transaction.  Between the ID and the end of the
# transaction it waits; PAUSE stands for that.
my @plain = (
	# the row at once, or only before the commit
	'BEGIN; INSERT INTO insta5.events (writer) VALUES (:writer); PAUSE COMMIT;',
	'BEGIN; SELECT insta5.next_id() AS id \gset
PAUSE INSERT INTO insta5.events VALUES (:id, :writer); COMMIT;',
	# without a transaction block
	'INSERT INTO insta5.events (writer) SELECT :writer FROM generate_series(1, 10);',
	'INSERT INTO insta5.events (writer) SELECT :writer
		FROM (SELECT insta5.next_id(), pg_sleep(0.001)) AS unused;',
	# lost
	'BEGIN; INSERT INTO insta5.events (writer) VALUES (:writer); PAUSE ROLLBACK;',
	# savepoints: the ID of one that was rolled back is used after all
	'BEGIN; SAVEPOINT s; INSERT INTO insta5.events (writer) VALUES (:writer); ROLLBACK TO s;
		INSERT INTO insta5.events (writer) VALUES (:writer); PAUSE COMMIT;',
	'BEGIN; SAVEPOINT s; SELECT insta5.next_id() AS id \gset
ROLLBACK TO s; PAUSE INSERT INTO insta5.events VALUES (:id, :writer); COMMIT;',
	# IDs by the hundred, and from a cursor
	'BEGIN; INSERT INTO insta5.events SELECT id, :writer FROM insta5.next_ids(100) AS id;
		PAUSE COMMIT;',
	'BEGIN; DECLARE c CURSOR FOR SELECT id FROM insta5.next_ids(3) AS id; FETCH c \gset
PAUSE INSERT INTO insta5.events VALUES (:id, :writer); FETCH c \gset
INSERT INTO insta5.events VALUES (:id, :writer); COMMIT;',
	# prepared
	"BEGIN; INSERT INTO insta5.events (writer) VALUES (:writer); PREPARE TRANSACTION 'GID';
		PAUSE COMMIT PREPARED 'GID';",
	"BEGIN; INSERT INTO insta5.events (writer) VALUES (:writer); PREPARE TRANSACTION 'GID';
		PAUSE ROLLBACK PREPARED 'GID';",
	"BEGIN; SAVEPOINT s; INSERT INTO insta5.events (writer) VALUES (:writer); RELEASE s;
		PAUSE PREPARE TRANSACTION 'GID'; PAUSE COMMIT PREPARED 'GID';");
my $nextval = q{BEGIN; SELECT id_of(nextval('insta5.table_id_seq')) AS id \gset
PAUSE INSERT INTO insta5.events VALUES (:id, :writer); COMMIT;};

# Mostly short pauses, some that are longer than all others' transactions.
sub pause
{
	my $seconds = int(rand 20) ? rand 0.005 : rand 0.1;
	return sprintf "SELECT FROM pg_sleep(%.4f);", $seconds;
}

sub script
{
	my ($writer, @kinds) = @_;
	my $script = "\\set writer $writer\n";
	for my $n (1 .. $transactions)
	{
		$script .= $kinds[ rand @kinds ] =~ s/GID/writer$writer-$n/gr =~ s/PAUSE/pause()/ger . "\n";
	}
	return $script;
}

my $dir = PostgreSQL::Test::Utils::tempdir;
my $started = 0;

# Start a psql that runs these statements; its output is in the file that is returned.
sub start_psql
{
	my ($sql) = @_;
	my $file = "$dir/" . ++$started;
	append_to_file("$file.sql", $sql);
	my $psql = IPC::Run::start([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d',
		$node->connstr('postgres'), '-f', "$file.sql" ],
		'>', "$file.out", '2>&1');
	return ($psql, "$file.out");
}

# Start several; return whether all of them end without an error.
sub all_succeed
{
	return !grep { !$_->finish } @_;
}

# Start one that waits for a lock, let it go, and return what it printed.
sub let_go
{
	my ($sql, $release) = @_;
	my ($psql, $file) = start_psql($sql);
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE '%settled_id%'
			AND wait_event_type = 'Lock'")
	  or die 'it does not wait';
	$release->();
	$psql->finish;
	return slurp_file($file);
}

my @readers = map { (start_psql("CALL read_events('$_')"))[0] } 'settled', 'naive';

# Beside the load, one case that does not depend on luck: the naive reader is
# past this ID before the row is committed.
my $late = Clients::session($node);
$late->('BEGIN; INSERT INTO insta5.events (writer) VALUES (0)');
$node->safe_psql('postgres', 'INSERT INTO insta5.events (writer) VALUES (0)');
my $passed_by = $node->poll_query_until('postgres',
	"SELECT last >= (SELECT max(id) FROM insta5.events WHERE writer = 0) FROM progress
		WHERE reader = 'naive'");

my @psql =
	map { (start_psql(script($_, @plain, $nextval)))[0] } 1 .. $writers;
$late->('COMMIT');
ok(all_succeed(@psql), "$writers writers, $transactions transactions each");
$node->safe_psql('postgres', 'INSERT INTO stop DEFAULT VALUES');
ok(all_succeed(@readers),
	"$writers writers, $transactions transactions each, and the readers finish without an error");

my ($rows, $missed, $twice) = split / /,
$node->safe_psql('postgres',
	q{SELECT concat_ws(' ', rows, missed, "read twice") FROM readers WHERE reader = 'settled'});
cmp_ok($rows, '>', $transactions * $writers,
	"$writers writers, $transactions transactions each: $rows rows");
is($missed, 0,
	"$writers writers, $transactions transactions each: the reader up to settled_id() misses none");
is($twice, 0, "$writers writers, $transactions transactions each, and reads none twice");
$missed = $node->safe_psql('postgres', q{SELECT missed FROM readers WHERE reader = 'naive'});
ok($passed_by && $missed > 0,
	"$writers writers, $transactions transactions each: the naive reader misses $missed");

### A prepared transaction, also after a crash

my $reader = Clients::session($node);
my $not_now = q{SELECT instaid.settled_id('insta5', wait => false) IS NULL};
$node->safe_psql('postgres', q{BEGIN; INSERT INTO insta5.events (writer) VALUES (99);
	PREPARE TRANSACTION 'early'});
for my $when ('a prepared transaction',
"$writers writers, $transactions transactions each, after a crash")
{
	is($reader->($not_now), 't', "$when is not settled");
	like($reader->("SET lock_timeout = '50ms'; SELECT instaid.settled_id('insta5');
		RESET lock_timeout"), qr/^ERROR:  canceling statement due to lock timeout/,
		"$when is not settled: lock_timeout ends the wait for it");
	like($reader->("SET statement_timeout = '50ms'; SELECT instaid.settled_id('insta5');
		RESET statement_timeout"), qr/^ERROR:  canceling statement due to statement timeout/,
		"$when is not settled, and so does statement_timeout");
	last if $when =~ /crash/;
	$node->stop('immediate');
	$node->start;
	$reader = Clients::session($node);
}
is( let_go(
		q{SELECT instaid.settled_id('insta5') AS settled \gset
SELECT count(*) FROM insta5.events WHERE writer = 99 AND id <= :settled;},
		sub {
			is($node->safe_psql('postgres',
				q{SELECT pg_blocking_pids(pid) FROM pg_stat_activity WHERE query LIKE '%settled_id%'
					AND wait_event_type = 'Lock'}),
				'{0}', "an open transaction is not settled: pg_blocking_pids() shows that it"
					  . " waits for one");
			$node->safe_psql('postgres', q{COMMIT PREPARED 'early'});
		}),
	"1\n", "an open transaction is not settled, and when it is committed, a reader that waited"
		  . " finds its row");
# the sequence stands up to a second ahead of where it was
my $settled = $reader->(q{SELECT instaid.settled_id('insta5')});
is($reader->("SELECT $settled >= max(id) FROM insta5.events"), 't',
	'after the crash, the rows before it are settled');
is($reader->("SELECT insta5.next_id() > $settled"), 't',
	'after the crash, the rows before it are settled, and new IDs are above');

### A crash just after the call

# A rollback does not flush the WAL record of the first ID after a checkpoint.  This
# shard was not used before, and is thus not ahead of the clock.
$reader->(q{SELECT instaid.create_shard('insta7', 7); SELECT insta7.next_id(); CHECKPOINT});
$reader->('BEGIN; SELECT insta7.next_id(); ROLLBACK');
$settled = $reader->(q{SELECT instaid.settled_id('insta7')});
$node->stop('immediate');
$node->start;
$reader = Clients::session($node);
is($reader->("SELECT instaid.settled_id('insta7') >= $settled"), 't',
	'after a crash, settled_id() does not go back');

### A role without any rights can make a reader wait, until its transaction ends

my $oid = $node->safe_psql('postgres',
	q{CREATE ROLE stranger; SELECT 'insta7.table_id_seq'::regclass::oid});
my $stranger = Clients::session($node);
like($stranger->("SET ROLE stranger; BEGIN; SAVEPOINT s; SELECT nextval($oid); ROLLBACK TO s"),
	qr/permission denied/, 'a role without rights');
is($reader->(q{SELECT instaid.settled_id('insta7', wait => false) IS NULL}), 't',
	'a role without rights: makes a reader wait');
$stranger->('ROLLBACK');
is($reader->(q{SELECT instaid.settled_id('insta7', wait => false) IS NULL}), 'f',
	'a role without rights, until its transaction ends');

### A sequence that is dropped while a reader waits for its lock

$node->safe_psql('postgres', q{SELECT instaid.create_shard('insta6', 6); SELECT insta6.next_id()});
my $dropper = Clients::session($node);
$dropper->(q{SET client_min_messages = error; BEGIN; DROP SCHEMA insta6 CASCADE});
like(let_go(q{SELECT instaid.settled_id('insta6')}, sub { $dropper->('COMMIT') }),
	qr/ERROR:  sequence with OID \d+ does not exist$/m, 'a sequence that is gone is an error');

### What docs/readers.md says about deleting and exporting

my @page = blocks(slurp_file('docs/readers.md'));
$node->safe_psql('postgres', 'CREATE DATABASE page');
$node->safe_psql('page', $_->{text}) for grep { $_->{language} eq 'sql' } @page;
my ($delete) = map { $_->{text} } grep { $_->{section} eq 'Deleting old rows' } @page;

# Two rows are read and in no batch; one is in a batch that a worker has open.
$node->safe_psql('page', q{INSERT INTO insta5.outbox (topic, payload) VALUES ('third', '{}')});
$node->safe_psql('page',
	'CALL insta5.make_batch();
	UPDATE insta5.outbox_readers SET last_id = (SELECT max(id) FROM insta5.outbox)');
my $worker = Clients::session($node, 'page');
for my $case ([ 'a worker has its batch open', 'BEGIN; DELETE FROM insta5.batches', 'third' ],
	[ 'a worker has given its batch back', 'ROLLBACK', 'third' ],
	[ 'a worker is done with its batch', 'DELETE FROM insta5.batches', '' ])
{
	my ($name, $sql, $left) = @$case;
	$worker->($sql);
	is($node->safe_psql('page', "$delete; SELECT topic FROM insta5.outbox"), $left,
		"deleting what all have read: $name");
}

# The outbox for the SQL edition, which needs no function of instaid but next_id()
$node->safe_psql('postgres', 'CREATE DATABASE plain');
$node->safe_psql('plain', q{CREATE EXTENSION instaid; SELECT instaid.create_shard('insta5', 5);}
	. slurp_file('examples/outbox_without_c.sql'));
my $read = q{SELECT string_agg(topic, ' ') FROM insta5.read_outbox('gateway', 2)};
my $late = Clients::session($node, 'plain');
$late->(q{BEGIN; INSERT INTO insta5.outbox (topic, payload) VALUES ('first', '1')});
$node->safe_psql('plain', q{INSERT INTO insta5.outbox (topic, payload)
	SELECT n, '2' FROM (VALUES ('second'), ('third')) AS v (n)});
is($node->safe_psql('plain', $read), '', 
	'outbox of the SQL edition: nothing while an earlier one is open');
$late->('COMMIT');
is($node->safe_psql('plain', "$read; $read; $read"), "first second\nthird\n",
	'outbox of the SQL edition, and then each row, once');

my ($script) = map { $_->{text} } grep { $_->{section} eq 'Incremental export' } @page;
append_to_file("$dir/export.sh", $script);
mkdir "$dir/export";

sub export
{
	local ($ENV{PGHOST}, $ENV{PGPORT}, $ENV{PGDATABASE}, $ENV{PGOPTIONS}) =
		($node->host, $node->port, 'page', '-c lock_timeout=1s');
	return IPC::Run::run([ 'sh', '-c', "cd $dir/export && exec sh ../export.sh" ], '>&',
		\my $output);
}

my $insert = q{INSERT INTO insta5.outbox (topic, payload) VALUES ('export', '{}')};
$node->safe_psql('page', $insert);
ok(export(), 'an export');
$worker->("BEGIN; $insert");
ok(!export(), 'an export: fails if settled_id() does');
$worker->("COMMIT; $insert; ALTER TABLE insta5.outbox RENAME TO hidden");
ok(!export(), 'an export: fails if COPY does');
$worker->('ALTER TABLE insta5.hidden RENAME TO outbox');
open my $lock, '>>', "$dir/export/lock" or die $!;
flock $lock, 2 or die $!;
ok(!export(), 'an export: fails while another one runs');
close $lock;
ok(export(), 'an export, and another one');
my @exported = map { (split /\t/)[0] } map { split /\n/,
	slurp_file($_) } sort glob "$dir/export/after_*";
is("@exported", $node->safe_psql('page',
	q{SELECT string_agg(id::text, ' ' ORDER BY id) FROM insta5.outbox}),
	'an export: have all rows, each once');

### A standby, up to an LSN

$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
my ($refused) = ($standby->psql('postgres', q{SELECT instaid.settled_id('insta5')}))[2];
like($refused, qr/ settled_id\(\) cannot be used during recovery\n/, 'a standby cannot tell');
is(Clients::hints($refused), q{Call it on the primary, then pg_logical_emit_message(true, '', ''),}
	  . ' and read here when pg_last_wal_replay_lsn() has reached the position that this returns.',
	'the error of a standby says where to call settled_id()');

my @psql = map { (start_psql(script($_, @plain)))[0] } 1 .. 4;
my $different = 0;
my $compare = 'SELECT count(*), sum(id) FROM insta5.events WHERE id <=';
for (1 .. 10)
{
	my $upto = $node->safe_psql('postgres', q{SELECT instaid.settled_id('insta5')});
	my $lsn = $node->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', '')});
	if ($node->pg_version->major >= 19)
	{
		$standby->safe_psql('postgres', "WAIT FOR LSN '$lsn' WITH (TIMEOUT '180s')");
	}
	else
	{
		$standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$lsn'")
			or die 'the standby does not follow';
	}
	$different++ if $standby->safe_psql('postgres',
		"$compare $upto") ne $node->safe_psql('postgres', "$compare $upto");
}
ok(all_succeed(@psql), 'writers, while a standby is read');
is($different, 0,
	'writers, while a standby is read: it has the rows of the primary, up to the settled ID');

# The WAL writer sleeps for 10 s, and does not flush the WAL of an idle transaction.
my $idle = Clients::session($node);
$idle->('BEGIN; INSERT INTO seen (id) VALUES (0)');
my $lsn = $node->safe_psql('postgres', q{SELECT pg_logical_emit_message(true, '', '')});
is($node->safe_psql('postgres', "SELECT pg_current_wal_flush_lsn() >= '$lsn'"), 't',
	'the position for the standby is flushed');
$idle->('ROLLBACK');

$standby->stop;
$node->stop;
done_testing();
