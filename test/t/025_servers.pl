# audit_servers() finds conflicts between servers, and finds nothing in a healthy set: a
# router, two servers, a standby, and the source of a shard that was moved.
#
# packages: faketime

use strict;
use warnings;

use IO::Socket::INET;
use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Clock;
use Docs;

my $clock = Clock->new;
my $one = Clients::server('one', { allows_streaming => 1 }, 'instaid.node_shard_id = 1001');
my $two = Clients::server('two', 'instaid.node_shard_id = 1002');
$two->stop;
$clock->start($two);
my $router =
  Clients::server('router', { allows_streaming => 1 }, 'instaid.node_shard_id = 1000');
my $superuser = $router->safe_psql('postgres', 'SELECT current_user');

# Let the router know a server under a name.
sub name_server
{
	my ($name, $node, $database) = @_;
	$database //= 'postgres';
	my ($host, $port) = ($node->host, $node->port);
	return $router->safe_psql('postgres', qq{
		CREATE SERVER $name FOREIGN DATA WRAPPER dblink_fdw
			OPTIONS (host '$host', port '$port', dbname '$database', connect_timeout '20');
		CREATE USER MAPPING FOR PUBLIC SERVER $name
			OPTIONS (user '$superuser', password 'secret')});
}

# The findings of these servers: code, object and problem
my %severity;

sub findings
{
	my ($servers, $node) = @_;
	my $found = '';
	for (split /\n/, ($node // $router)->safe_psql('postgres', qq{
		SELECT concat_ws(' ', severity, code, object, problem)
		FROM instaid.audit_servers('{$servers}')}))
	{
		my ($severity, $code) = /^(\w+) (\w+)/;
		$severity{$code} = $severity;
		$found .= s/^\w+ //r . "\n";
	}
	unlike($found, qr/secret/, 'findings have no password');
	return $found =~ s/\n\z//r;
}

sub failure
{
	my ($sql, %options) = @_;
	my ($status, $stdout, $stderr) = $router->psql('postgres', $sql, %options);
	return $status ? $stderr : 'no error';
}

### audit_servers() needs dblink and servers.

my $no_dblink = qr/ERROR:  extension "dblink" does not exist
.*HINT:  As a superuser: CREATE SCHEMA dblink; CREATE EXTENSION dblink SCHEMA dblink;/s;
like(failure(q{SELECT instaid.audit_servers('{one}')}), $no_dblink, 'dblink is not installed');
$router->safe_psql('postgres', 'CREATE SCHEMA dblink; CREATE EXTENSION dblink SCHEMA dblink');
my $no_names = qr/ERROR:  argument servers must name one or more foreign servers
DETAIL:  It is null or empty, contains a null, or has more than one dimension./;
for my $case (
	[ 'the server does not exist', q{'{one}'}, qr/ERROR:  server "one" does not exist/ ],
	[ 'a connection string is no server', q{ARRAY['host=/tmp']},
		qr/ERROR:  server "host=\/tmp" does not exist/ ],
	[ 'a null is no server', q{ARRAY['one', NULL]}, $no_names ],
	[ 'a list of lists is no list of servers', q{'{{one},{two}}'}, $no_names ],
	[ 'NULL is an error, and not an empty result', 'NULL', $no_names ],
	[ q{'{}' is an error, and not an empty result}, q{'{}'}, $no_names ])
{
	my ($name, $servers, $expected) = @$case;
	like(failure("SELECT instaid.audit_servers($servers)"), $expected, $name);
}

### A healthy set

name_server('one', $one);
name_server('two', $two);
name_server('self', $router);
name_server('again', $one);
$one->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($one, 'backup', has_streaming => 1);
$standby->start;
name_server('standby', $standby);
$router->backup('backup');
my $router_standby = PostgreSQL::Test::Cluster->new('router_standby');
$router_standby->init_from_backup($router, 'backup', has_streaming => 1);
$router_standby->start;

# Move a shard: freeze, dump, restore, thaw
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';

sub copy_shard
{
	my ($schema) = @_;
	$one->command_ok([ 'pg_dump', '-n', $schema, '-f', $dump, $one->connstr('postgres') ],
		"dump of $schema");
	$two->command_ok(
		[ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $two->connstr('postgres') ],
		'... is restored');
	return;
}
$one->safe_psql('postgres', qq{SELECT instaid.create_shard('insta$_', $_)}) for 1, 5;
$two->safe_psql('postgres', q{SELECT instaid.create_shard('insta2', 2)});
$one->safe_psql('postgres',
	q{SELECT insta5.next_id(); SELECT instaid.freeze_shard('insta5')});
copy_shard('insta5');
$two->safe_psql('postgres', q{SELECT instaid.thaw_shard('insta5')});
$_->safe_psql('postgres', 'SELECT instaid.next_id()') for $one, $two, $router;
$one->wait_for_catchup($standby);
$router->wait_for_catchup($router_standby);

my $all = 'one,two,self,again,standby';
is(findings($all), '',
	'nothing is found in a healthy set, with a standby and a frozen source');
is(findings($all, $router_standby), '', '... and a call on a standby finds nothing');
is(findings('standby,two'), '', '... and nothing is found if only the standby is asked');
is($router->safe_psql('postgres',
	q{SELECT count(*) FROM instaid.audit_servers(ARRAY['one', 'two']::name[])}), 0,
	'the names can be of type name');
is($one->safe_psql('postgres', q{
	CREATE ROLE stranger;
	SET ROLE stranger;
	SELECT shard_ids FROM instaid._server_state()}),
	'{1,1001}', 'a role without rights on the sequences sees which shards are not frozen');
$_->poll_query_until('postgres', q{
	SELECT count(*) = 0 FROM pg_stat_activity
	WHERE query ~ '_server_state' AND pid <> pg_backend_pid()}) or die
  for $one, $two;
pass('no connection stays open');

# the recipe for cron
my ($recipe) = map { $_->{text} } grep { $_->{language} eq 'sh' }
  section_blocks('docs/clusters.md', 'Find a shard ID that two servers use');

sub recipe
{
	my ($command) = @_;
	local ($ENV{PGHOST}, $ENV{PGPORT}, $ENV{PGDATABASE}) =
	  ($router->host, $router->port, 'postgres');
	my $output = '';
	my $ok = IPC::Run::run([ 'sh', '-c', $command // $recipe ], '<', \undef, '>&', \$output);
	return ($ok ? 'success' : 'failure') . ": $output";
}
is(recipe(), 'success: ', 'the recipe for cron is silent');

### Findings

my $twice = 'shard_id_on_two_servers two issues IDs of the same shards as';

for my $case (
	# a server, a statement that does it, one that undoes it, and the finding
	[ 'the same DDL on two servers', $one,
		q{SELECT instaid.create_shard('insta2', 2)}, 'DROP SCHEMA insta2 CASCADE',
		"$twice one: 2" ],
	[ 'a source that was not frozen in a move', $one,
		q{SELECT instaid.thaw_shard('insta5')}, q{SELECT instaid.freeze_shard('insta5')},
		"$twice one: 5" ],
	[ 'a router that has a shard of its own name', $router,
		q{SELECT instaid.create_shard('insta2', 2)}, 'DROP SCHEMA insta2 CASCADE',
		"$twice this server: 2" ],
	[ 'a schema with the node shard ID of another server', $two,
		q{SELECT instaid.create_shard('insta1001', 1001)}, 'DROP SCHEMA insta1001 CASCADE',
		"$twice one: 1001" ])
{
	my ($name, $node, $do, $undo, $finding) = @$case;
	$node->safe_psql('postgres', $do);
	is(findings('one,two'), $finding, $name);
	$node->safe_psql('postgres', $undo);
	is(findings('one,two'), '', '... which is undone');
}

# more than ten
$_->safe_psql('postgres', q{CALL instaid.create_shards('many%s', 100, 119)}) for $one, $two;
$one->wait_for_catchup($standby);
my $ten = join(', ', 100 .. 109) . ', ...';
is(findings($all), "$twice again: $ten", 'many shards make one finding');
is(findings('standby,two'), "$twice standby: $ten", '... also if only the standby is asked');
like(recipe(), qr/^failure: \w+\|error\|two\|issues .* as one: 100, .*\|If one is a copy of the/,
	'the recipe for cron prints it, and fails');
$_->safe_psql('postgres', q{
	SELECT format('DROP SCHEMA many%s CASCADE', n) FROM generate_series(100, 119) AS n \gexec})
  for $one, $two;

# a dump that is restored while the shard lives
copy_shard('insta1');
is(findings('one,two'), "$twice one: 1", 'a dump of a shard that was not frozen');
$two->safe_psql('postgres', 'DROP SCHEMA insta1 CASCADE');

# one number for two nodes
sub set_node_shard
{
	my ($shard_id) = @_;
	$two->append_conf('postgresql.conf', "instaid.node_shard_id = $shard_id");
	$two->reload;
	return $two->poll_query_until('postgres',
		"SELECT current_setting('instaid.node_shard_id') = '$shard_id'");
}
set_node_shard(1001) or die;
is(findings('one,two'), "$twice one: 1001", 'one node shard twice');
set_node_shard(1002) or die;

# a clone that was started
my $clone = PostgreSQL::Test::Cluster->new('clone');
$clone->init_from_backup($one, 'backup');
$clone->start;
name_server('clone', $clone);
$clone->safe_psql('postgres', q{SELECT instaid.create_shard('insta1', 1)});
my $cloned = 'shard_id_on_two_servers one issues IDs of the same shards as clone: 1';
is(findings('one,two,clone'), $cloned, 'a clone that was started');
$clone->safe_psql('postgres', 'SELECT instaid.next_id()');
is(findings('one,two,clone'), "$cloned, 1001",
	'... and then uses its node shard');
$clone->stop;

# two databases of one server
$two->safe_psql('postgres', 'CREATE DATABASE other');
name_server('other', $two, 'other');
is(findings('two,other'),
	'server_does_not_answer other does not answer: schema "instaid" does not exist',
	'a database without the extension');
$two->safe_psql('other', 'CREATE EXTENSION instaid');
is(findings('two,other'), '', 'a second database, which does not use the node shard');
$two->safe_psql('other', 'SELECT instaid.next_id()');
is(findings('two,other'), "$twice other: 1002", '... and then uses it');

# answers of something else
$two->safe_psql('postgres', q{CREATE DATABASE fake});
$two->safe_psql('fake', 'CREATE SCHEMA instaid');
name_server('fake', $two, 'fake');
my $silent = 'server_does_not_answer fake does not answer:';

# Let the server "fake" answer with what a function of this result and text returns.
sub fake
{
	my ($result, $text) = @_;
	return $two->safe_psql('fake', qq{
		DROP FUNCTION IF EXISTS instaid._server_state();
		CREATE FUNCTION instaid._server_state() RETURNS $result
			LANGUAGE plpgsql AS \$\$BEGIN $text; END\$\$});
}
my $columns = 'TABLE (d text, s text, c text, i text)';
for my $case (
	[ 'text', q{RETURN 'no row'}, qr/^$silent .+$/ ],
	[ $columns, 'RETURN', qr/^$silent query returned no rows$/ ],
	[ $columns, q{RETURN QUERY SELECT d, s, c, i FROM generate_series(1, 2)},
		qr/^$silent query returned more than one row/ ],
	[ $columns, q{RETURN QUERY VALUES (d, 'x', c, i)}, qr/^$silent invalid input .+"x"$/ ],
	[ $columns, q{RETURN QUERY VALUES (d, s, c, '5')}, qr/^$silent malformed array .+$/ ],
	[ $columns, q{RETURN QUERY VALUES (d, s, c, i)}, qr/^$/ ],
	# errors that WHEN OTHERS does not catch
	[ 'text', 'ASSERT false', qr/^$silent assertion failed$/ ],
	[ 'text', 'RAISE query_canceled', qr/^$silent query_canceled$/ ])
{
	my ($result, $text, $expected) = @$case;
	fake($result, $text);
	like(findings('fake,one,two'), $expected, "an answer by $text");
}

# servers that do not answer
fake('text', 'PERFORM pg_sleep(180)');
is(findings('fake'), "$silent canceling statement due to statement timeout",
	'the query of a server hangs');
like(failure(q{SET statement_timeout = '3s'; SELECT instaid.audit_servers('{fake}')}),
	qr/ERROR:  canceling statement due to statement timeout/,
	'... and the statement itself can be cancelled');
is(recipe($recipe =~ s/\{one,two\}/{fake}/r =~ s/timeout 120/timeout 2/r),
	"failure: no answer within 120 s\n", '... does not stop the recipe for cron');
my $hole = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die $!;
$router->safe_psql('postgres', sprintf q{
	CREATE SERVER hole FOREIGN DATA WRAPPER dblink_fdw
		OPTIONS (host '127.0.0.1', port '%s', connect_timeout '2');
	CREATE USER MAPPING FOR PUBLIC SERVER hole OPTIONS (user 'x', password 'secret')},
	$hole->sockport);
# On newer versions, dblink can wait for a connection without connect_timeout.
local $ENV{PGOPTIONS} =
  $router->pg_version->major >= 16 ? '-c statement_timeout=15s' : '';
$standby->stop;
$one->safe_psql('postgres', q{SELECT instaid.create_shard('insta2', 2)});
my $no_connection = 'could not establish connection:';
my $timeout = 'canceling statement due to statement timeout';
like(findings('hole,one,standby,two'),
	qr/^server_does_not_answer hole does not answer: ($no_connection .*timeout expired|$timeout)
server_does_not_answer standby does not answer: $no_connection .*
$twice one: 2$/,
	'servers that hang or are down do not hide the others');
$one->safe_psql('postgres', 'DROP SCHEMA insta2 CASCADE');

# the clock
for my $case ([ 'ahead', 30, 'ahead of' ], [ 'behind', -30, 'behind' ])
{
	my ($name, $offset, $where) = @$case;
	$clock->set($offset);
	like(findings('one,two'),
		qr/^clocks_apart two its clock is (2\d|30)\.\d s $where the clock of this server$/,
		"a clock that is $name");
}
$clock->set(0);

### Shard IDs from a ticket of the router: docs/clusters.md

$router->safe_psql('postgres',
	q{CREATE EXTENSION instaid_tickets; CREATE SEQUENCE shard_ids AS smallint START 3000});
$_->safe_psql('postgres', sprintf q{
	CREATE SCHEMA dblink; CREATE EXTENSION dblink SCHEMA dblink;
	CREATE SERVER authority FOREIGN DATA WRAPPER dblink_fdw
		OPTIONS (host '%s', port '%s', dbname 'postgres');
	CREATE USER MAPPING FOR PUBLIC SERVER authority OPTIONS (user '%s', password 'secret')},
	$router->host, $router->port, $superuser)
  for $one, $two;

# The statement that creates a shard on a server
sub tenant
{
	my ($name) = @_;
	return qq{
		SELECT instaid.create_shard('$name', shard_id)
		FROM dblink.dblink('authority', 'SELECT instaid_tickets.next(''shard_ids'')::integer')
			AS t (shard_id integer)};
}

sub shard_id_of
{
	my ($node, $name) = @_;
	return $node->safe_psql('postgres',
		"SELECT shard_id FROM instaid.shards WHERE schema_name = '$name'");
}
$one->safe_psql('postgres', tenant('tenant1'));
$two->safe_psql('postgres', 'BEGIN; ' . tenant('tenant2') . '; ROLLBACK');
$two->safe_psql('postgres', tenant('tenant2'));
my ($status, $stdout, $stderr) = $one->psql('postgres', tenant('tenant1'));
like($stderr, qr/ERROR:  schema tenant1 is a shard already/,
	'create_shard() fails after it took a number');
$one->safe_psql('postgres', tenant('tenant3'));
my @shard_ids =
  (shard_id_of($one, 'tenant1'), shard_id_of($two, 'tenant2'), shard_id_of($one, 'tenant3'));
is("@shard_ids", '3000 3002 3004',
	'each shard has a number of its own, and failures leave out theirs');
is(findings('one,two'), '', '... which audit_servers() confirms');

# the authority is restored from an old backup
my $restore = q{SELECT setval('shard_ids', 3000, false)};
$router->safe_psql('postgres', $restore);
($status, $stdout, $stderr) = $one->psql('postgres', tenant('tenant4'));
like($stderr, qr/ERROR:  shard ID 3000 is taken/,
	'a number that the authority repeats is refused on the server that has it');
$router->safe_psql('postgres', $restore);
$two->safe_psql('postgres', tenant('tenant4'));
is(findings('one,two'), "$twice one: 3000", '... and found if another server has it');

### A role that is not a superuser

$router->safe_psql('postgres', 'CREATE ROLE app LOGIN');
my @app = (connstr => $router->connstr('postgres') . ' user=app');
like(failure(q{SELECT instaid.audit_servers('{one}')}, @app),
	qr/ERROR:  permission denied for schema dblink/,
	'a role without rights on the schema of dblink');
$router->safe_psql('postgres', 'GRANT USAGE ON SCHEMA dblink TO app');
like($router->safe_psql('postgres',
	q{SELECT problem FROM instaid.audit_servers('{one}')}, @app),
	qr/^does not answer: permission denied for foreign server one/,
	'dblink decides who may ask a server');

my ($section) = slurp_file('docs/reference.md') =~ /^### audit_servers\n(.*?)^##/ms;
is_deeply({ $section =~ /^\| `(\w+)` \| (\w+) \|/mg }, \%severity,
	'the reference has all findings, with their severities');

done_testing();
