# The shard of the node: one setting on each of two servers, the same DDL on both, and no ID
# twice.  pg_regress has one server.  It cannot change postgresql.conf, or the settings of
# a session before it loads the library.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Clock;

# Change the setting, and wait until new sessions see it.
sub set_node_shard
{
	my ($node, $shard_id, $seen) = @_;
	$seen //= $shard_id;
	$node->safe_psql('postgres', $_)
	  for "LOAD 'instaid'; ALTER SYSTEM SET instaid.node_shard_id = $shard_id",
	  'SELECT pg_reload_conf()';
	$node->poll_query_until('postgres',
		"SELECT current_setting('instaid.node_shard_id', true) = '$seen'") or die;
	return;
}

# The error of a statement
sub failure
{
	my ($node, $sql, %options) = @_;
	my ($status, $stdout, $stderr) = $node->psql($options{database} // 'postgres', $sql,
		connstr => $options{connstr});
	return $status ? $stderr : 'no error';
}

my $clock = Clock->new;
my $first = Clients::server('first', { allows_streaming => 1 });
$first->stop;
$clock->start($first);
my $second = Clients::server('second');

### The setting

my $unset = failure($first, 'SELECT instaid.next_id()');
my $how = 'HINT:  A superuser sets it to a number from 0 to 8191 that no other server and no'
  . ' other shard has: ALTER SYSTEM SET instaid.node_shard_id = number; and then SELECT'
  . ' pg_reload_conf\(\);';
like($unset, qr/ERROR:  instaid.node_shard_id is not set\nDETAIL:  .*\n$how/,
	'without a shard ID, next_id() says how to set it');
is(failure($first, "SELECT instaid.$_"), $unset, "instaid.$_, too")
  for 'next_ids(3)', q{settled_id('instaid')};
is($first->safe_psql('postgres', 'SELECT count(*) FROM instaid.shards'), 0, 'it is no shard yet');

my ($hint) = $unset =~ /(ALTER SYSTEM SET .*= )number;/;
my $session = Clients::session($first);
$session->('SELECT instaid.next_id()');
is($session->("${hint}8192"),
	'ERROR:  8192 is outside the valid range for parameter "instaid.node_shard_id" (-1 .. 8191)',
	'the shard ID has a range');
is($session->("${hint}1"), '', 'the hint works in the session that got the error');
$session->('SELECT pg_reload_conf()');
set_node_shard($second, 2);
set_node_shard($first, 1);

# Whatever a session does, it gets IDs of shard 1, or none.
my $which = 'SELECT DISTINCT instaid.extract_shard_id(instaid.next_id())';
$first->safe_psql('postgres', q{CREATE ROLE app LOGIN;
	GRANT USAGE ON SEQUENCE instaid.node_id_seq TO app; CREATE DATABASE preloaded});
$first->safe_psql('preloaded', q{CREATE EXTENSION instaid;
	GRANT USAGE ON SEQUENCE instaid.node_id_seq TO app});
$first->safe_psql('postgres',
	q{ALTER DATABASE preloaded SET session_preload_libraries = 'instaid'});
for my $database ('postgres', 'preloaded')
{
	my $superuser = $first->connstr($database);
	for my $connection ($superuser, "$superuser user=app")
	{
		for my $case (
			[ 'SET', 'SET instaid.node_shard_id = 7' ],
			[ 'SET LOCAL', 'BEGIN; SET LOCAL instaid.node_shard_id = 7' ],
			[ 'set_config()', q{SELECT FROM set_config('instaid.node_shard_id', '7', false)} ],
			[ 'SET after the first ID',
				'SELECT FROM instaid.next_id(); SET instaid.node_shard_id = 7' ],
			[ 'an update of pg_settings',
				q{UPDATE pg_settings SET setting = 7 WHERE name = 'instaid.node_shard_id'} ],
			[ 'a function that sets it',
				q{CREATE FUNCTION pg_temp.f() RETURNS bigint LANGUAGE sql
					SET instaid.node_shard_id = 7 AS 'SELECT instaid.next_id()';
					SELECT FROM pg_temp.f()} ],
			[ 'PGOPTIONS', '', q{ options='-c instaid.node_shard_id=7'} ])
		{
			my ($name, $sql, $options) = @$case;
			my (undef, $stdout, $stderr) = $first->psql($database, "$sql;\n$which",
				on_error_stop => 0,
				connstr => $connection . ($options // ''));
			like("$stdout\n$stderr", qr/^1$|ERROR: /m, "$name: shard 1 or an error");
			unlike($stdout, qr/^7$/m, "$name: shard 1 or an error, and not shard 7");
		}
	}
}
my $refused = qr/ERROR:  instaid.node_shard_id is not set/;
for my $statement ('ALTER ROLE app', 'ALTER DATABASE postgres',
	'ALTER ROLE app IN DATABASE postgres')
{
	$first->psql('postgres', "$statement SET instaid.node_shard_id = 7");
	like(failure($first, $which, connstr => $first->connstr('postgres') . ' user=app'),
		qr/parameter "instaid.node_shard_id" cannot be changed now\n.*$refused/,
		"$statement SET before the library is loaded: no ID");
	$first->safe_psql('postgres', "$statement RESET instaid.node_shard_id");
	like(failure($first, "LOAD 'instaid'; $statement SET instaid.node_shard_id = 7"),
		qr/cannot be changed now/, "$statement SET: refused");
}
is($first->safe_psql('postgres', $which), 1, 'the setting stays');

# An open cursor goes on with the new shard ID after a reload.
$session->('BEGIN; DECLARE c CURSOR FOR
	SELECT instaid.extract_shard_id(i) FROM (SELECT instaid.next_ids(100000)) AS n (i)');
is($session->('FETCH c'), 1, 'a cursor');
set_node_shard($first, 3);
like($session->('MOVE 2000 FROM c; FETCH c'), qr/^3$/m, 'a cursor, and a reload');
$session->('COMMIT');
set_node_shard($first, 1);

# A role of its own for each right
$first->safe_psql('postgres', 'REVOKE USAGE ON SEQUENCE instaid.node_id_seq FROM app');
my $as_app = $first->connstr('postgres') . ' user=app';
like(failure($first, 'SELECT instaid.next_id()', connstr => $as_app),
	qr/denied for sequence node_id_seq\nHINT: .* USAGE ON SEQUENCE instaid.node_id_seq TO app;/,
	'USAGE on the sequence is needed');
like(failure($first, q{SELECT nextval('instaid.node_id_seq')}, connstr => $as_app),
	qr/permission denied/, 'a cursor, by nextval(), too');
like(failure($first, q{SELECT setval('instaid.node_id_seq', 1)}, connstr => $as_app),
	qr/permission denied/, 'a cursor, and setval()');
like(failure($first, q{CREATE SCHEMA mine CREATE SEQUENCE s;
	CREATE FUNCTION mine.next_ids(count integer, sequence regclass DEFAULT 'mine.s')
		RETURNS SETOF bigint LANGUAGE instaid STRICT
	AS 'node shard, epoch 1314220021721'}),
	qr/DETAIL:  Only the extension itself declares the shard of the node/,
	'nothing else declares the shard of the node');

### The shard, as any other

is($first->safe_psql('postgres', q{
	SELECT schema_name, shard_id, sequence, last_issued_at <= clock_timestamp(), drift, frozen
	FROM instaid.shards}),
	'instaid|1|instaid.node_id_seq|t|00:00:00|f', 'the view');
like(failure($first, q{SELECT instaid.create_shard('insta1', 1)}),
	qr/ID 1 is taken by schema instaid\nDETAIL: .* setting instaid.node_shard_id of this server\./,
	'no other shard has its ID');
like(failure($first, q{CALL instaid.create_shards('insta%s', 0, 2)}),
	qr/ERROR:  shard ID 1 is taken by schema instaid/,
	'no other shard has its ID, in create_shards(), too');
$first->safe_psql('postgres', q{SELECT instaid.create_shard('insta4', 4)});
set_node_shard($first, 4);
is($first->safe_psql('postgres', 'SELECT code, object, problem FROM instaid.audit()'),
	join("\n", map {
		"shard_id_twice|$_->[0]|shard ID 4 is also that of schema $_->[1]"
	} [ 'insta4', 'instaid' ], [ 'instaid', 'insta4' ]), 'audit() finds one that has it already');
set_node_shard($first, 1);
is($first->safe_psql('postgres', q{
	SELECT instaid.freeze_shard('instaid'); SELECT frozen FROM instaid.shards
	WHERE schema_name = 'instaid'}), "\nt", 'it is frozen');
like(failure($first, 'SELECT instaid.next_id()'), qr/ERROR:  shard instaid is frozen/,
	'it is frozen, and issues nothing');
$first->safe_psql('postgres', q{SELECT instaid.thaw_shard('instaid')});
is($first->safe_psql('postgres', 'SELECT instaid.next_id() AS id \gset
	SELECT instaid.settled_id(\'instaid\') = :id'), 't', 'it is thawed; settled_id()');
is($first->safe_psql('postgres', q{
	CREATE TABLE t (id bigint PRIMARY KEY DEFAULT instaid.next_id());
	CREATE TABLE insta4.t (id bigint PRIMARY KEY
		DEFAULT instaid.next_id('insta4.table_id_seq', 4));
	INSERT INTO insta4.t SELECT FROM generate_series(1, 3);
	ANALYZE t, insta4.t;
	SELECT * FROM instaid.audit()}), '',
	'audit() finds nothing in tables with its IDs, and with those of instaid.next_id(...)');

### Two nodes

$first->safe_psql('postgres', q{
	CREATE SCHEMA app;
	CREATE TABLE app.photos (id bigint PRIMARY KEY DEFAULT instaid.next_id(), n integer)});
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
$first->command_ok([ 'pg_dump', '-n', 'app', '-f', $dump, $first->connstr('postgres') ], 'pg_dump');
$second->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d',
	$second->connstr('postgres') ], 'the same DDL on the second node');
my @inserts = (('INSERT INTO app.photos DEFAULT VALUES RETURNING id;') x 2,
	'INSERT INTO app.photos (n) SELECT generate_series(1, 2000) RETURNING id;',
	'SELECT instaid.next_ids(5000);');
my @loads = map { Clients->start($_, @inserts) } $first, $second;
$_->{node}->poll_query_until('postgres', 'SELECT count(*) > 20000 FROM app.photos') or die
	for @loads;
is($_->stop, '', 'no insert failed') for @loads;
my @files = map { $_->files } @loads;
ok(Clients::in_order($_), 'a client\'s IDs are in order') for @files;
my $sum = Clients::summary(@files);
is($sum->{duplicates}, 0, "no ID of two nodes came twice, of $sum->{count}");
is($_->safe_psql('postgres', 'SELECT string_agg(DISTINCT instaid.extract_shard_id(id)::text, $$,$$)
	FROM app.photos'), $_ == $first ? 1 : 2,
	'each node has its own') for $first, $second;

### Standby, crash, dump and restore

$first->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($first, 'backup', has_streaming => 1);
$standby->start;
$first->wait_for_catchup($standby);
like(failure($standby, 'SELECT instaid.next_id()'), qr/read-only transaction|during recovery/,
	'a standby issues no ID');
is($standby->safe_psql('postgres',
	q{SELECT shard_id, last_id > 0 FROM instaid.shards WHERE schema_name = 'instaid'}), '1|t',
	'a standby issues no ID, and shows the shard');
$standby->stop;

# The clock is an hour ahead, and is set back: only the sequence knows how far IDs are.
# The owner of the database, who is no superuser, installs, dumps and restores.
$first->safe_psql('postgres', 'CREATE ROLE alice LOGIN CREATEDB');
my $alice = sub { my ($database) = @_; return $first->connstr($database) . ' user=alice' };
my $issue = 'SET client_min_messages = error; INSERT INTO photos DEFAULT VALUES RETURNING id';
$first->safe_psql('postgres', 'CREATE DATABASE hers', connstr => $alice->('postgres'));
$first->safe_psql('postgres', q{
	CREATE EXTENSION instaid;
	CREATE SCHEMA s;
	CREATE TABLE s.photos (id bigint PRIMARY KEY DEFAULT instaid.next_id());
	ALTER DATABASE hers SET search_path = s;
	GRANT USAGE ON SEQUENCE instaid.node_id_seq TO app}, connstr => $alice->('hers'));
$clock->set(3600);
my $last = $first->safe_psql('postgres', $issue, connstr => $alice->('hers'));
$clock->set(0);
$first->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $alice->('hers') ],
	'the owner of a database dumps it');
$first->safe_psql('postgres', 'CREATE DATABASE restored', connstr => $alice->('postgres'));
$first->command_ok([ 'pg_restore', '-e', '-d', $alice->('restored'), $dump ],
	'the owner of a database dumps it, and restores it');
cmp_ok($first->safe_psql('postgres', $issue =~ s/photos/s.photos/r,
	connstr => $alice->('restored')), '>', $last, 'IDs go on above those of the dump');
is($first->safe_psql('postgres',
	q{SELECT has_sequence_privilege('app', 'instaid.node_id_seq', 'USAGE')},
	connstr => $alice->('restored')), 't', 'a GRANT is restored');
$last = $first->safe_psql('postgres', $issue, connstr => $alice->('hers'));
$first->stop('immediate');
$clock->start($first);
cmp_ok($first->safe_psql('postgres', $issue, connstr => $alice->('hers')), '>', $last,
	'IDs go on after a crash');
$first->command_ok([ 'pg_dump', '-f', $dump, $first->connstr('preloaded') . ' user=alice' ],
	'a role without rights on the sequence can dump a database');

### A server that preloads the library

# Each session inherits what the server has read at its start.
$second->append_conf('postgresql.conf', "shared_preload_libraries = 'instaid'\n");
$second->restart;
is($second->safe_psql('postgres', $which), 2, 'the setting of a server that preloads the library');
set_node_shard($second, 'DEFAULT', -1);
like(failure($second, 'SELECT instaid.next_id()'), qr/ERROR:  instaid.node_shard_id is not set/,
	'the setting of a server that preloads the library: is reset');
is(failure($second, q{SELECT instaid.create_shard('insta2', 2)}), 'no error',
	'the setting of a server that preloads the library, and another shard can have its ID');

done_testing();
