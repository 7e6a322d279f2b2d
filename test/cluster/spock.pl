# Spock: nodes that all accept inserts, each with a shard ID of its own.  A node is killed, one
# joins, and one is removed and comes back as a copy of another.  It runs the blocks of the
# page docs/engines/spock.md.
#
# Debian has no package of Spock, and Spock needs a patched server.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;

my @blocks = section_blocks('docs/engines/spock.md', 'Spock');
my ($settings) = map { $_->{text} } grep { $_->{language} eq 'conf' } @blocks;
my ($extension, $create, $copy, $adopt) =
  map { $_->{text} } grep { $_->{language} eq 'sql' } @blocks;
my %nodes;

# A node, with the settings of the page; without Spock if it is a copy.
sub configure
{
	my ($node, $number) = @_;
	$node->append_conf('postgresql.conf',
		$settings =~ s/^instaid\.node_shard_id = \K1/$number/mr
		# what Spock's manual asks for
		  . join('', map { "$_\n" } 'wal_level = logical', 'track_commit_timestamp = on',
			map { "max_$_ = 20" } qw(worker_processes replication_slots wal_senders))
		  . "max_connections = 60\n"
		# Spock writes no conflict into its table without it
		  . "spock.save_resolutions = on\n");
	$nodes{$number} = $node;
	return $node;
}

sub new_node
{
	my ($number) = @_;
	my $node = PostgreSQL::Test::Cluster->new("n$number");
	$node->init(allows_streaming => 'logical');
	configure($node, $number)->start;
	run($number, "CREATE EXTENSION spock; $extension");
	return $node;
}

sub run
{
	my ($number, $sql) = @_;
	return $nodes{$number}->safe_psql('postgres', $sql);
}

sub dsn
{
	my ($number) = @_;
	return $nodes{$number}->connstr('postgres') . ' user=' . run($number, 'SELECT current_user');
}

sub create_node
{
	my ($number) = @_;
	return run($number, "SELECT spock.node_create('n$number', \$d\$" . dsn($number) . '$d$)');
}

# One node receives the changes of another, and first its tables if $sync is set.  Spock takes
# subscriptions whose names differ only after the last underscore as one, with several readers.
sub subscribe
{
	my ($to, $from, $sync) = @_;
	$sync = $sync ? 'true' : 'false';
	run($to, "SELECT spock.sub_create('sub_n${from}n$to', \$d\$" . dsn($from)
		  . "\$d\$, '{default, default_insert_only, ddl_sql}', $sync, $sync, '{}')");
	$nodes{$to}->poll_query_until('postgres', "SELECT status = 'replicating'
		FROM spock.sub_show_status() WHERE subscription_name = 'sub_n${from}n$to'") or die;
	run($to, "SELECT spock.sub_wait_for_sync('sub_n${from}n$to')");
	return;
}

# Every node has applied what all others have committed.
sub catch_up
{
	for my $from (values %nodes)
	{
		$from->poll_query_until('postgres', 'SELECT COALESCE(bool_and(confirmed_flush_lsn >= '
			  . "'" . $from->safe_psql('postgres', 'SELECT pg_current_wal_lsn()') . q{'), true)
			FROM pg_replication_slots}) or die;
	}
	return;
}

sub wait_for
{
	my ($number, $sql) = @_;
	$nodes{$number}->poll_query_until('postgres', $sql) or die "n$number: $sql";
	return;
}

my @received;

sub start_clients
{
	return map { Clients->start($nodes{$_}, { retry => 1 },
		("INSERT INTO photos (caption) VALUES ('sunset') RETURNING id;") x 2) } @_;
}

sub stop_clients
{
	my (@clients) = @_;
	$_->stop for @clients;
	push @received, map { $_->files } @clients;
	return;
}

# How many conflicts of two different rows a node has seen.  A node that was killed receives some
# rows again: both rows then have the same contents, origin and time of commit.
sub conflicts
{
	return run($_[0], 'SELECT count(*) FROM spock.resolutions
		WHERE (local_tuple, local_origin, local_timestamp)
			IS DISTINCT FROM (remote_tuple, remote_origin, remote_timestamp)');
}

# All nodes have the same rows, every ID that a client received is there, and none came twice.
sub same_rows
{
	my ($name) = @_;
	catch_up();
	my %found = map { $_ => run($_, 'SELECT count(*), count(DISTINCT id), sum(id) FROM photos') }
	  sort keys %nodes;
	my ($first) = sort keys %found;
	my ($count) = split /\|/, $found{$first};
	is(join(' ', map { $found{$_} } sort keys %found),
		join(' ', ($found{$first}) x keys %found), "$name: all nodes have the same rows");
	my %different;
	for my $file (@received)
	{
		$different{$_}++ for grep { /^\d+$/ } split /\n/, slurp_file($file);
	}
	is(scalar(grep { $_ > 1 } values %different), 0,
		"$name: all nodes have the same rows: no ID was issued twice");
	my %stored = map { $_ => 1 } split /\n/, run($first, 'SELECT id FROM photos');
	is(scalar(grep { !$stored{$_} } keys %different), 0,
		"$name: all nodes have the same rows, and none that a client has is lost");
	is(join(' ', map { conflicts($_) } sort keys %nodes),
		join(' ', (0) x keys %nodes), "$name: all nodes have the same rows: Spock saw no conflict");
	is(join(' ', map { run($_, 'SELECT count(*) FROM spock.exception_log') } sort keys %nodes),
		join(' ', (0) x keys %nodes), "$name: all nodes have the same rows, and no exception");
	Clients::report("$name: $count rows on each of " . keys(%nodes) . ' nodes');
	return;
}

my $first = PostgreSQL::Test::Cluster->new('n1');
$first->init(allows_streaming => 'logical');
$first->start;
plan skip_all => 'Spock is not installed in this PostgreSQL'
  if !$first->safe_psql('postgres',
	q{SELECT count(*) FROM pg_available_extensions WHERE name = 'spock'});
configure($first, 1);
$first->restart;
run(1, "CREATE EXTENSION spock; $extension");
new_node(2);
create_node($_) for 1, 2;
note run(1, q{SELECT 'Spock ' || extversion FROM pg_extension WHERE extname = 'spock'});
subscribe(1, 2);
subscribe(2, 1);

### Two nodes

run(1, $create);
catch_up();
is(run(2, q{SELECT pg_get_expr(adbin, 0) FROM pg_attrdef WHERE adrelid = 'photos'::regclass}),
	'instaid.next_id()', 'a table travels with its default');
my @clients = start_clients(1, 2);
wait_for($_, 'SELECT count(DISTINCT instaid.extract_shard_id(id)) = 2 FROM photos') for 1, 2;
pass('each node has IDs of its own shard, and of the other');

# a node is killed under load
Clients::crash($nodes{2});
$_->finish for $clients[1];
wait_for(1, 'SELECT count(*) > 4000 FROM photos');
$nodes{2}->start;
push @received, $clients[1]->files;
($clients[1]) = start_clients(2);
my $before = run(2, 'SELECT count(*) FROM photos');
wait_for(2, "SELECT count(*) > $before + 2000 FROM photos");
stop_clients(@clients);
same_rows('a node was killed');
is(run(1, q{SELECT count(*) FROM spock.sequence_state}), 0, 'no sequence is replicated');

### A third node joins, with the tables of the first

new_node(3);
create_node(3);
subscribe(3, 1, 1);
subscribe(3, 2);
subscribe($_, 3) for 1, 2;
@clients = start_clients(1 .. 3);
$before = run(3, 'SELECT count(*) FROM photos');
wait_for($_, "SELECT count(*) > $before + 5000 FROM photos") for 1 .. 3;
stop_clients(@clients);
same_rows('a third node has joined');

### It is removed, and comes back as a copy of the first

run($_, "SELECT spock.sub_drop('sub_n3n$_')") for 1, 2;
run(3, "SELECT spock.sub_drop('sub_n${_}n3')") for 1, 2;
run(3, q{SELECT spock.node_drop('n3')});
$nodes{3}->stop;
delete $nodes{3};
$nodes{1}->backup('copy');
my $node = PostgreSQL::Test::Cluster->new('copy');
$node->init_from_backup($nodes{1}, 'copy', has_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->start;
$nodes{1}->wait_for_catchup($node);

# The shard IDs that two of the nodes use
sub twice
{
	return Clients::shards_on_two_servers(map { $nodes{$_}->connstr('postgres') =~ s/'//gr } @_);
}
$node->safe_psql('postgres', $copy);
$node->promote;
is($node->safe_psql('postgres', 'SHOW instaid.node_shard_id'), '3',
	'the copy has a number of its own');
$node->safe_psql('postgres', 'DROP EXTENSION spock CASCADE;
	SELECT pg_replication_origin_drop(roname) FROM pg_replication_origin');
configure($node, 3)->restart;
run(3, 'CREATE EXTENSION spock');
create_node(3);
run(3, q{SELECT spock.repset_add_all_tables('default', '{public}')});
subscribe(3, $_) for 1, 2;
subscribe($_, 3) for 1, 2;
@clients = start_clients(1 .. 3);
$before = run(3, 'SELECT count(*) FROM photos');
wait_for($_, "SELECT count(*) > $before + 5000 FROM photos") for 1 .. 3;
stop_clients(@clients);
same_rows('a copy has joined');
is(run(1, 'SELECT string_agg(DISTINCT instaid.extract_shard_id(id)::text, $$ $$) FROM photos'),
	'1 2 3', 'the copy has a number of its own, with the shards of three nodes');

### A number that two nodes have, a shard that all have, a table that exists

is(twice(1 .. 3), 'success: ', 'no shard ID is used twice by three nodes');
run(3, 'ALTER SYSTEM SET instaid.node_shard_id = 2; SELECT pg_reload_conf()');
wait_for(3, q{SELECT current_setting('instaid.node_shard_id') = '2'});
like(twice(1 .. 3), qr/: 2$/,
	'no shard ID is used twice by three nodes, and a number that two nodes have is found');
run(3, 'ALTER SYSTEM RESET instaid.node_shard_id; SELECT pg_reload_conf()');
wait_for(3, q{SELECT current_setting('instaid.node_shard_id') = '3'});
run(1, q{SELECT instaid.create_shard('insta5', 5)});
catch_up();
is(run(2, q{SELECT shard_id FROM instaid.shards WHERE schema_name = 'insta5'}), '5',
	'a schema shard travels, too');
run($_, 'SELECT insta5.next_id()') for 1, 2;
like(twice(1 .. 3), qr/: 5$/, 'a schema shard travels, too, and is found');
run(1, 'CREATE TABLE orders (id serial PRIMARY KEY, n integer);
	CREATE TABLE lines (order_id integer PRIMARY KEY REFERENCES orders);
	INSERT INTO orders (n) VALUES (1)');
catch_up();
run(1, $adopt);
catch_up();
run($_, 'WITH o AS (INSERT INTO orders (n) VALUES (2) RETURNING id)
	INSERT INTO lines SELECT id FROM o') for 1 .. 3;
catch_up();
is(run($_, 'SELECT count(*), string_agg(DISTINCT instaid.extract_shard_id(id)::text, $$ $$)
		FROM orders WHERE n = 2'), '3|1 2 3',
	"n$_: rows of an existing table get IDs of their nodes")
  for 1 .. 3;

### What the checks above would have seen, and a sequence that is replicated by mistake

# two nodes insert a row each with one ID before they receive the other row
run($_, 'SELECT spock.sub_disable(subscription_name, true) FROM spock.sub_show_status()') for 1, 2;
run($_, "INSERT INTO photos VALUES (1, 'of n$_')") for 1, 2;
run($_, 'SELECT spock.sub_enable(subscription_name, true) FROM spock.sub_show_status()') for 1, 2;
catch_up();
is(conflicts($_), 1, "n$_: Spock's table names a conflict") for 1, 2;

run(1, q{SELECT spock.repset_add_all_seqs('default', '{instaid}')});
is(run(1, 'SELECT set_seqoid::regclass FROM spock.replication_set_seq'), 'instaid.node_id_seq',
	'repset_add_all_seqs() takes the sequence of the node');
run(2, "INSERT INTO photos (caption) VALUES ('last')");
$before = run(2, 'SELECT last_value FROM instaid.node_id_seq');
run(1, q{SELECT spock.sync_seq('instaid.node_id_seq')});
wait_for(2, "SELECT last_value < $before FROM instaid.node_id_seq");
pass('repset_add_all_seqs() takes the sequence of the node, and sync_seq() sets it back on'
	  . ' another node');
$_->stop for values %nodes;
done_testing();
