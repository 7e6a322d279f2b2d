# A coordinator and two workers of Citus: create_shard() reaches all nodes, every way to
# insert gives different IDs, a shard freezes and thaws, and moves while clients insert.
#
# Debian has no package of Citus.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;

my @nodes = map { PostgreSQL::Test::Cluster->new($_) } 'coordinator', 'worker_1', 'worker_2';
$_->init(allows_streaming => 'logical') for @nodes;
my ($coordinator, @workers) = @nodes;
$coordinator->start;
my $available = $coordinator->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'citus'});
$coordinator->stop;
plan skip_all => 'Citus is not installed in this PostgreSQL' if !$available;

my $number = 0;
for my $node (@nodes)
{
	$number++;
	$node->append_conf('postgresql.conf', "$_\n")
	  for q{shared_preload_libraries = 'citus'}, "citus.local_hostname = '" . $node->host . q{'}, 'citus.shard_count = 4',
	  'citus.enable_schema_based_sharding = on', "instaid.node_shard_id = $number";
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION citus');
}
$coordinator->safe_psql('postgres', sprintf "SELECT %s('%s', %d)", @$_)
  for [ 'citus_set_coordinator_host', $coordinator->host, $coordinator->port ], map { [ 'citus_add_node', $_->host, $_->port ] } @workers;
$coordinator->safe_psql('postgres', $_)
  for 'CREATE EXTENSION instaid',
  q{SELECT instaid.create_shard('insta5', 5)},
  'CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer)',
  q{CREATE TABLE likes (id bigint PRIMARY KEY DEFAULT instaid.next_id(), n bigint); SELECT create_distributed_table('likes', 'id')},
  q{CREATE TABLE copies (id bigint DEFAULT instaid.next_id(), n bigint); SELECT create_distributed_table('copies', 'n')};
is($_->safe_psql('postgres', q{SELECT shard_id FROM instaid.shards WHERE schema_name = 'insta5'}), 5, 'create_shard() reaches ' . $_->name) for @nodes;

# IDs are made on the coordinator, except by INSERT ... SELECT from a distributed table.
for my $case ([ 'insta5.photos', 'insta5', '5' ], [ 'likes', 'instaid', '1' ])
{
	my ($table, $schema, $shard) = @$case;
	$coordinator->safe_psql('postgres', $_)
	  for "INSERT INTO $table (n) VALUES (1), (2)",
	  "INSERT INTO $table (n) VALUES (3) RETURNING id",
	  "COPY $table (n) FROM STDIN;\n4\n5\n\\.\n",
	  "INSERT INTO $table (id, n) SELECT id, 6 FROM $schema.next_ids(1000) AS id",
	  "PREPARE p AS INSERT INTO $table (n) VALUES (7); EXECUTE p; EXECUTE p";
	is($coordinator->safe_psql('postgres', "SELECT count(*), min(instaid.extract_shard_id(id)), max(instaid.extract_shard_id(id)) FROM $table"),
		"1007|$shard|$shard", "$table: VALUES, RETURNING, COPY, next_ids() and EXECUTE");
}
$coordinator->safe_psql('postgres', 'INSERT INTO copies (n) SELECT id FROM likes');
is($coordinator->safe_psql('postgres', q{SELECT count(*), count(DISTINCT id), bool_and(instaid.extract_shard_id(id) BETWEEN 1 AND 3) FROM copies}),
	'1007|1007|t', 'INSERT ... SELECT from a distributed table, with the shards of the nodes');

$coordinator->safe_psql('postgres', q{SELECT instaid.freeze_shard('insta5')});
my (undef, undef, $stderr) = $coordinator->psql('postgres', 'INSERT INTO insta5.photos (n) VALUES (1)');
like($stderr, qr/shard insta5 is frozen/, 'freeze_shard()');
$coordinator->safe_psql('postgres', q{SELECT instaid.thaw_shard('insta5')});

my $clients = Clients->start($coordinator, ('INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;') x 3);
for (1 .. 2)
{
	my $other = $coordinator->safe_psql('postgres', q{
		SELECT n.nodeid FROM pg_dist_node AS n
		WHERE n.groupid <> 0 AND NOT EXISTS (SELECT FROM citus_shards AS s
			WHERE s.table_name = 'insta5.photos'::regclass AND (s.nodename, s.nodeport) = (n.nodename, n.nodeport))
		ORDER BY n.nodeid LIMIT 1});
	$coordinator->safe_psql('postgres', "SELECT citus_schema_move('insta5', $other)");
}
is($clients->stop, '', 'citus_schema_move(): no insert fails');
my $sum = Clients::summary($clients->files);
is($sum->{duplicates}, 0, "... none of $sum->{count} IDs comes twice");
is((grep { !Clients::in_order($_) } $clients->files), 0, '... in order for each client');
my %there = map { $_ => 1 } split /\n/, $coordinator->safe_psql('postgres', 'SELECT id FROM insta5.photos');
is((grep { !$there{$_} } map { split /\n/, slurp_file($_) } $clients->files), 0, '... and no row is lost');

$_->stop for @nodes;
done_testing();
