# docs/engines/postgres_fdw.md, on two servers and a router: clients
# insert through foreign tables, a read by ID goes to one server, and a default that is
# imported lets the router make IDs.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;
use Docs;

my %nodes = map { $_ => Clients::server($_) } qw(one two router);
my $router = $nodes{router};
my @blocks = section_blocks('docs/engines/postgres_fdw.md', 'postgres_fdw');
$_->{text} =~ s/host '(\w+)', dbname 'app'/sprintf "host '%s', port '%s', dbname 'postgres'",
	$nodes{$1}->host, $nodes{$1}->port/eg
  for @blocks;
follow(\@blocks, %nodes);

# Two clients for each shard
my $clients = Clients->start($router,
	map { "INSERT INTO photos_$_ (caption) VALUES ('sunset') RETURNING id;" } 5, 5, 6, 6);
$router->poll_query_until('postgres', 'SELECT count(*) >= 2000 FROM photos') or die;
is($clients->stop, '', 'clients insert through the router');
is(scalar(grep { Clients::in_order($_) } $clients->files), 4,
	'clients insert through the router, and the IDs of each increase');

my @received = map { [ split /\n/, slurp_file($_) ] } $clients->files;
my %different = map { $_ => 1 } map { @$_ } @received;
my $count = map { @$_ } @received;
is(scalar(keys %different), $count, 'clients insert through the router, and none comes twice');
is(join(' ', map { my %shards = map { $_ >> 10 & 8191 => 1 } @$_; keys %shards } @received),
	'5 5 6 6',
	'clients insert through the router, and each has the shard of its server');
is($router->safe_psql('postgres', "SELECT count(*) FROM photos WHERE id = ANY ('{"
	. join(',', keys %different) . "}')"),
	$count, 'clients insert through the router, and no row is lost');
diag("$count IDs");

# which servers a query asks, by the names of the partitions
sub asks
{
	my ($sql) = @_;
	my $plan = $router->safe_psql('postgres', "SET plan_cache_mode = force_generic_plan;
		PREPARE by_id (bigint) AS SELECT * FROM photos WHERE id = \$1
			AND instaid.extract_shard_id(id) = instaid.extract_shard_id(\$1);
		EXPLAIN (COSTS OFF) $sql");
	return join ' ', $plan =~ /Foreign Scan on (\w+)/g;
}
my ($five, $six) = map { $_->[0] } @received[ 0, 2 ];
is(asks("SELECT * FROM photos WHERE id = $five"), 'photos_5 photos_6',
	'a read by ID alone asks every server');
is(asks("SELECT * FROM photos WHERE id = $five
	AND instaid.extract_shard_id(id) = instaid.extract_shard_id($five)"), 'photos_5',
	'a read by ID and shard asks one server');
is(asks("EXECUTE by_id ($five)") . ' ' . asks("EXECUTE by_id ($six)"), 'photos_5 photos_6',
	'a read by ID and shard asks one server, also with a generic plan');

# who makes the IDs: the last ID of the shard at each place
sub last_ids
{
	return map { $_->safe_psql('postgres',
		q{SELECT pg_sequence_last_value('insta5.table_id_seq')}) } @_;
}
$router->safe_psql('postgres', 'CREATE SCHEMA insta5');
my $insert = q{INSERT INTO insta5.photos (caption) VALUES ('breakfast')};
my $import_default = "IMPORT FOREIGN SCHEMA insta5 FROM SERVER one INTO insta5
	OPTIONS (import_default 'true'); $insert";
my ($ret, $stdout, $stderr) = $router->psql('postgres', $import_default);
like($stderr, qr/ERROR:  function insta5.next_id\(\) does not exist/,
	'import_default fails where there is no shard');

$router->safe_psql('postgres', q{SELECT instaid.create_shard('insta5', 5)});
my ($server, $before) = last_ids($nodes{one}, $router);
$router->safe_psql('postgres', $import_default);
my ($server_after, $after) = last_ids($nodes{one}, $router);
is($server_after, $server,
	'with a shard on the router, an imported default takes no ID of the server');
isnt($after, $before,
	'with a shard on the router, an imported default takes no ID of the server, and the router'
	  . ' makes IDs of the same shard');

$router->safe_psql('postgres', 'DROP SCHEMA insta5 CASCADE');
$router->safe_psql('postgres',
	"CREATE SCHEMA insta5; IMPORT FOREIGN SCHEMA insta5 FROM SERVER one INTO insta5; $insert");
isnt((last_ids($nodes{one}))[0], $server, 'without import_default, the server makes the ID');

$_->stop for values %nodes;
done_testing();
