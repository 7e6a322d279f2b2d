# Shard IDs that two servers use, by the loop of docs/clusters.md, and shard IDs from a ticket of
# one server: a router, two servers, a standby, and the source of a shard that was moved.
# not in: assert_short

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;

my $one = Clients::server('one', { allows_streaming => 1 }, 'instaid.node_shard_id = 1001');
my $two = Clients::server('two', 'instaid.node_shard_id = 1002');
my $router = Clients::server('router', 'instaid.node_shard_id = 1000');

# What the loop prints about these servers, asked by a role with the rights of the page
$_->safe_psql('postgres', 'CREATE ROLE monitor LOGIN IN ROLE pg_monitor') for $one, $two, $router;

sub asked
{
	my ($node, $database) = @_;
	$database //= 'postgres';
	return 'host=' . $node->host . ' port=' . $node->port . " dbname=$database user=monitor";
}

sub found
{
	return Clients::shards_on_two_servers(map { ref eq 'ARRAY' ? asked(@$_) : asked($_) } @_);
}
my $none = 'success: ';
sub twice { return "failure: shard IDs that two servers use: @_\n" }

### A healthy set

$one->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($one, 'backup', has_streaming => 1);
$standby->start;

# Move a shard: freeze, dump, restore, thaw
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';

sub copy_shard
{
	my ($schema) = @_;
	$one->command_ok([ 'pg_dump', '-n', $schema, '-f', $dump, $one->connstr('postgres') ],
		"dump of $schema");
	$two->command_ok(
		[ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $two->connstr('postgres') ],
		"dump of $schema: is restored");
	return;
}

# The statements that create a shard and use it
sub use_shard
{
	my ($number) = @_;
	return "SELECT instaid.create_shard('insta$number', $number); SELECT insta$number.next_id()";
}
$one->safe_psql('postgres', use_shard($_)) for 1, 5;
$two->safe_psql('postgres', use_shard(2));
$one->safe_psql('postgres', q{SELECT instaid.freeze_shard('insta5')});
copy_shard('insta5');
$two->safe_psql('postgres', q{SELECT instaid.thaw_shard('insta5')});
$_->safe_psql('postgres', 'SELECT instaid.next_id()') for $one, $two, $router;
$one->wait_for_catchup($standby);
is(found($one, $two, $router, $standby), $none,
	'nothing is found in a healthy set, with a standby and a frozen source');

### A number that two servers use

for my $case (
	# a server, a statement that does it, one that undoes it, and the number
	[ 'the same DDL on two servers', $one, use_shard(2), 'DROP SCHEMA insta2 CASCADE', 2 ],
	[ 'a source that was not frozen in a move', $one,
		q{SELECT instaid.thaw_shard('insta5')}, q{SELECT instaid.freeze_shard('insta5')}, 5 ],
	[ 'a router that has a shard of its own name', $router,
		use_shard(2), 'DROP SCHEMA insta2 CASCADE', 2 ],
	[ 'a schema with the node shard ID of another server', $two,
		use_shard(1001), 'DROP SCHEMA insta1001 CASCADE', 1001 ])
{
	my ($name, $node, $do, $undo, $number) = @$case;
	$node->safe_psql('postgres', $do);
	is(found($one, $two, $router), twice($number), $name);
	$node->safe_psql('postgres', $undo);
	is(found($one, $two, $router), $none,
		'nothing is found in a healthy set, with a standby and a frozen source, which is undone');
}

# a dump that is restored while the shard lives, and a clone that was started
copy_shard('insta1');
is(found($one, $two), twice(1), 'a dump of a shard that was not frozen');
$two->safe_psql('postgres', 'DROP SCHEMA insta1 CASCADE');
$standby->promote;
is(found($one, $two, $standby), twice(1, 1001), 'a copy of a server that was promoted');

# two databases of one server
$two->safe_psql('postgres', 'CREATE DATABASE other');
like(found($two, [ $two, 'other' ]), qr/^failure: .*instaid.*\na server does not answer\n$/s,
	'a database without the extension does not answer');
$two->safe_psql('other', 'CREATE EXTENSION instaid');
is(found($two, [ $two, 'other' ]), $none, 'a second database, which does not use the node shard');
$two->safe_psql('other', 'SELECT instaid.next_id()');
is(found($two, [ $two, 'other' ]), twice(1002),
	'a second database, which does not use the node shard, and then uses it');
$standby->stop;
like(found($one, $standby, $two), qr/^failure: .*a server does not answer\n$/s,
	'a server that is down makes the loop fail');

### Shard IDs from a ticket of the router: docs/clusters.md

$router->safe_psql('postgres',
	q{CREATE EXTENSION instaid_tickets; CREATE SEQUENCE shard_ids AS smallint START 3000});
my $superuser = $router->safe_psql('postgres', 'SELECT current_user');
$_->safe_psql('postgres', sprintf q{
	CREATE SCHEMA dblink; CREATE EXTENSION dblink SCHEMA dblink;
	CREATE SERVER authority FOREIGN DATA WRAPPER dblink_fdw
		OPTIONS (host '%s', port '%s', dbname 'postgres');
	CREATE USER MAPPING FOR PUBLIC SERVER authority OPTIONS (user '%s', password 'secret')},
	$router->host, $router->port, $superuser)
  for $one, $two;

# The statement that creates a shard on a server, and uses it
sub tenant
{
	my ($name) = @_;
	return qq{
		SELECT instaid.create_shard('$name', shard_id)
		FROM dblink.dblink('authority', 'SELECT instaid_tickets.next(''shard_ids'')::integer')
			AS t (shard_id integer);
		SELECT $name.next_id()};
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
is(found($one, $two), $none,
	'each shard has a number of its own, and failures leave out theirs, which the loop confirms');

# the authority is restored from an old backup
my $restore = q{SELECT setval('shard_ids', 3000, false)};
$router->safe_psql('postgres', $restore);
($status, $stdout, $stderr) = $one->psql('postgres', tenant('tenant4'));
like($stderr, qr/ERROR:  shard ID 3000 is taken/,
	'a number that the authority repeats is refused on the server that has it');
$router->safe_psql('postgres', $restore);
$two->safe_psql('postgres', tenant('tenant4'));
is(found($one, $two), twice(3000),
	'a number that the authority repeats is refused on the server that has it, and found if'
	  . ' another server uses it');

done_testing();
