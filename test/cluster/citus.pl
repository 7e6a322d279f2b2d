# A coordinator and two workers of Citus: create_shard() reaches all nodes, every way to
# insert gives different IDs or fails, what exists is adopted, a shard freezes and thaws,
# and moves while clients insert.  It follows docs/engines/citus.md.
#
# Debian has no package of Citus.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;

my @nodes = map { PostgreSQL::Test::Cluster->new($_) } qw(coordinator worker_1 worker_2 late);
$_->init(allows_streaming => 'logical') for @nodes;
my ($coordinator, @workers) = @nodes;
my $late = pop @workers;

# Run statements on a node, each in a transaction of its own, and return what the last
# one prints.
sub run_on
{
	my ($node, @statements) = @_;
	my $result;
	$result = $node->safe_psql('postgres', $_) for @statements;
	return $result;
}

sub run
{
	my (@statements) = @_;
	return run_on($coordinator, @statements);
}

# What a statement prints if it fails
sub failure
{
	my ($sql, $node) = @_;
	my ($status, undef, $stderr) = ($node // $coordinator)->psql('postgres', $sql);
	return $status ? $stderr : 'no error';
}

$coordinator->start;
my $available = run(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'citus'});
$coordinator->stop;
plan skip_all => 'Citus is not installed in this PostgreSQL' if !$available;

# The worker that joins late has the number of worker_1.
my %number = map { $nodes[$_]->name => $_ + 1 } 0 .. 2;
$number{ $late->name } = 2;
for my $node (@nodes)
{
	$node->append_conf('postgresql.conf', "$_\n")
	  for q{shared_preload_libraries = 'citus'},
	  "citus.local_hostname = '" . $node->host . q{'},
	  'citus.shard_count = 4',
	  'citus.enable_schema_based_sharding = on',
	  'citus.recover_2pc_interval = -1',
	  "instaid.node_shard_id = $number{$node->name}";
	$node->start;
	run_on($node, 'CREATE EXTENSION citus');
}
run(sprintf q{SELECT citus_set_coordinator_host('%s', %d)}, $coordinator->host, $coordinator->port);
run(sprintf q{SELECT citus_add_node('%s', %d)}, $_->host, $_->port) for @workers;
run('CREATE EXTENSION instaid', 'CREATE EXTENSION instaid_adopt',
	q{SELECT instaid.create_shard('insta5', 5)},
	'CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer)',
	'CREATE TABLE likes (id bigint PRIMARY KEY DEFAULT instaid.next_id(), n bigint)',
	q{SELECT create_distributed_table('likes', 'id')},
	'CREATE TABLE copies (id bigint DEFAULT instaid.next_id(), n bigint)',
	q{SELECT create_distributed_table('copies', 'n')});
my $shard_5 = q{SELECT shard_id FROM instaid.shards WHERE schema_name = 'insta5'};
is(run_on($_, $shard_5), 5, 'create_shard() reaches ' . $_->name) for $coordinator, @workers;

### Find a shard ID that two servers use

# The shard IDs that two of these nodes use
sub twice
{
	return Clients::shards_on_two_servers(map { $_->connstr('postgres') =~ s/'//gr } @_);
}
is(twice($coordinator, @workers), 'success: ',
	q{a worker's copy of a shard issues no IDs});
run(q{SELECT instaid.create_shard('insta2', 2)}, 'SELECT insta2.next_id()');
run_on($workers[0], 'SELECT instaid.next_id()');
like(twice($coordinator, @workers), qr/: 2$/,
	'a shard with the number of a worker is found');
run('DROP SCHEMA insta2 CASCADE');

### Where rows are inserted

for my $case ([ 'insta5.photos', 'insta5', '5' ], [ 'likes', 'instaid', '1' ])
{
	my ($table, $schema, $shard) = @$case;
	run("INSERT INTO $table (n) VALUES (1), (2)",
		"INSERT INTO $table (n) VALUES (3) RETURNING id",
		"COPY $table (n) FROM STDIN;\n4\n5\n\\.\n",
		"INSERT INTO $table (id, n) SELECT id, 6 FROM $schema.next_ids(1000) AS id",
		"PREPARE p AS INSERT INTO $table (n) VALUES (7); EXECUTE p; EXECUTE p");
	is(run("SELECT count(*), min(s), max(s) FROM $table, instaid.extract_shard_id(id) AS s"),
		"1007|$shard|$shard", "$table: VALUES, RETURNING, COPY, next_ids() and EXECUTE");
}
is(run('INSERT INTO copies (n) SELECT id FROM likes', q{
	SELECT count(*), count(DISTINCT id), min(s), max(s)
	FROM copies, instaid.extract_shard_id(id) AS s}),
	'1007|1007|2|3', 'INSERT ... SELECT from a distributed table, with the shards of the workers');
my $insert = 'INSERT INTO copies (n) VALUES (1) RETURNING instaid.extract_shard_id(id)';
is(run_on($_, $insert), $number{ $_->name }, $_->name . ' inserts with its number') for @workers;

my $refused = qr/ERROR:  sequence "table_id_seq" cannot serve as a source of IDs\n/;
my %blocks = map {
	my $section = $_;
	$section => [ section_blocks('docs/engines/citus.md', $section) ]
} 'Citus', 'Where rows are inserted', 'The shard of the node on Citus';
$_->{text} =~ s/DATABASE app/DATABASE postgres/ for @{ $blocks{Citus} };
run('CREATE ROLE other LOGIN', 'GRANT CREATE ON DATABASE postgres TO other');
like(failure(q{SET ROLE other; SELECT instaid.create_shard('insta9', 9)}),
	qr/schema "insta9" does not exist/, 'another role: create_shard() cannot create the schema');
follow($blocks{Citus}, coordinator => $coordinator);
is(run_on($_, $shard_5 =~ s/insta5/insta6/r), 6,
	'another role: create_shard() cannot create the schema, and reaches ' . $_->name . ' after it')
  for @workers;

run('SET citus.enable_schema_based_sharding = off;' . q{
	SELECT instaid.create_shard('insta7', 7);
	CREATE TABLE insta7.events (user_id bigint);
	SELECT create_distributed_table('insta7.events', 'user_id');
	INSERT INTO insta7.events SELECT generate_series(1, 100);
	CREATE TABLE insta7.likes (id bigint DEFAULT insta7.next_id(), user_id bigint);
	SELECT create_distributed_table('insta7.likes', 'user_id')});
my ($temporary) = @{ $blocks{'Where rows are inserted'} };
follow([$temporary], coordinator => $coordinator);
run(q{INSERT INTO insta7.likes (user_id)
	SELECT user_id FROM (SELECT user_id FROM insta7.events OFFSET 0) AS e WHERE user_id = 7});
is(run(q{SELECT count(*), count(DISTINCT id), min(s), max(s)
	FROM insta7.likes, instaid.extract_shard_id(id) AS s}),
	'2|2|7|7', 'INSERT ... SELECT as the page has it, and through a subquery with OFFSET 0');
run(q{SELECT instaid.create_shard('insta8', 8)},
	'CREATE TABLE insta8.events (user_id bigint)',
	'INSERT INTO insta8.events SELECT generate_series(1, 100)');
run('SET citus.enable_schema_based_sharding = off;' . $_) for q{
	CREATE TABLE insta7.single (user_id bigint);
	SELECT create_distributed_table('insta7.single', 'user_id', shard_count => 1,
		colocate_with => 'none');
	INSERT INTO insta7.single SELECT generate_series(1, 100)}, q{
	CREATE TABLE insta7.everywhere (id bigint DEFAULT insta7.next_id(), user_id bigint);
	SELECT create_reference_table('insta7.everywhere')},
	'CREATE TABLE plain (id bigint DEFAULT insta7.next_id(), user_id bigint)';
my %has_rows = ('insta7.events' => 100, 'insta7.events WHERE user_id = 7' => 1,
	'insta7.events WHERE user_id IN (7, 8)' => 2, 'insta7.single' => 100, 'insta8.events' => 100);
for my $target ('insta7.likes', 'insta7.everywhere', 'plain')
{
	for my $source (sort keys %has_rows)
	{
		my $into = "INSERT INTO $target (user_id) SELECT user_id FROM";
		my $rows = $has_rows{$source};
		run("DELETE FROM $target",
			$temporary->{text} =~ s/insta7\.likes/$target/r
			  =~ s/insta7\.events WHERE user_id = 7/$source/r);
		is(run(qq{SELECT count(*), count(DISTINCT id), min(s), max(s)
			FROM $target, instaid.extract_shard_id(id) AS s}),
			"$rows|$rows|7|7", "$target: from a temporary table, as the page has it, of $source");
		my $several = $source eq 'insta7.events' || $source =~ /IN/;
		for my $statement ("$into (SELECT user_id FROM $source OFFSET 0) AS e",
			$into =~ s/(?=SELECT)/WITH e AS MATERIALIZED (SELECT user_id FROM $source) /r . ' e')
		{
			like(failure($statement), $several ? qr/^no error$/ : $refused,
				($several ? 'runs: ' : 'refused: ') . $statement);
		}
		like(failure("$into $source LIMIT 100"), $refused, "refused: $into $source");
	}
}
for my $where ('inside', 'outside')
{
	my $subquery = $where eq 'inside' ? 'WHERE user_id = $1 OFFSET 0) AS e'
	  : 'OFFSET 0) AS e WHERE user_id = $1';
	my $insert = "INSERT INTO insta7.likes (user_id)"
	  . " SELECT user_id FROM (SELECT user_id FROM insta7.events $subquery";
	my $expected = $where eq 'inside' ? $refused : qr/^no error$/;
	like(failure("PREPARE p (bigint) AS $insert;" . 'EXECUTE p (7);' x 7), $expected,
		"a prepared statement with its condition $where");
	run(qq{CREATE OR REPLACE FUNCTION public.copy(bigint) RETURNS void LANGUAGE plpgsql
		AS 'BEGIN $insert; END'});
	like(failure('SELECT public.copy(7)'), $expected, "a function with its condition $where");
}
like(failure("INSERT INTO insta7.likes (user_id) SELECT user_id FROM insta7.events $_"),
	$refused, "$_ at the top is refused") for 'OFFSET 0', 'ORDER BY user_id';
like(failure('SELECT insta7.next_id() FROM insta7.events'),
	qr/$refused.*HINT:  On Citus, insert on the coordinator, .* a temporary table\./s,
	'SELECT next_id() FROM a distributed table is refused, and the hint names the way');
like(failure('INSERT INTO insta7.likes (user_id) VALUES (1)', $workers[0]), $refused,
	'an INSERT on a worker is refused');
run(q{
	CREATE FUNCTION insta7.add(n bigint) RETURNS void LANGUAGE plpgsql
		AS 'BEGIN INSERT INTO insta7.likes (user_id) VALUES (n); END'},
	q{SELECT create_distributed_function('insta7.add(bigint)', 'n',
		colocate_with => 'insta7.likes')});
like(failure('SELECT insta7.add(1)'), $refused, 'a delegated function is refused');
like(failure(q{
	MERGE INTO insta7.likes AS l USING insta7.events AS e ON l.user_id = e.user_id
	WHEN NOT MATCHED THEN INSERT (user_id) VALUES (e.user_id)}),
	qr/non-IMMUTABLE functions are not yet supported in MERGE/, 'MERGE is refused');
run('CREATE TABLE typed (id instaid.id)');
like(failure(q{SELECT create_distributed_table('typed', 'id', colocate_with => 'likes')}),
	qr/cannot colocate tables/, 'instaid.id and bigint cannot be co-located');

### Tickets

# Citus copies the sequence of a default to the workers, with a range for each.  Their values would
# not be short, and the worker of another cluster has the same range.
run('CREATE EXTENSION instaid_tickets', 'CREATE SEQUENCE invoice INCREMENT 3 START 2',
	q{CREATE TABLE invoices (n integer, number bigint DEFAULT instaid_tickets.next('invoice'))},
	q{SELECT create_distributed_table('invoices', 'n')},
	'INSERT INTO invoices SELECT generate_series(1, 53)');
is(run('SELECT count(*), count(DISTINCT number), max(number) FROM invoices'), '53|53|158',
	'the coordinator takes values of a ticket for rows on all nodes');
my $copied = qr/ERROR:  sequence "invoice" cannot serve .*\n.*copy that Citus has created/;
like(failure('INSERT INTO invoices (n) SELECT n FROM invoices'), $copied,
	'a default that a worker calls is refused');
like(failure(q{SELECT instaid_tickets.next('invoice')}, $_), $copied,
	'a default that a worker calls is refused, and a call on ' . $_->name)
  for @workers;
is(run('CREATE TEMP TABLE again AS SELECT n FROM invoices; INSERT INTO invoices (n) TABLE again;
	SELECT count(*), count(DISTINCT number), max(number) < 400 FROM invoices'), '106|106|t',
	'a default that a worker calls is refused, and a temporary table is the way');
run('CREATE SEQUENCE small AS integer',
	q{CREATE TABLE smalls (n integer, number integer DEFAULT instaid_tickets.next('small'))},
	q{SELECT create_distributed_table('smalls', 'n')}, 'INSERT INTO smalls VALUES (1), (2)');
like(failure('INSERT INTO smalls (n) SELECT n FROM smalls'),
	qr/is used up\n.*HINT:  On Citus, take values on the coordinator only\.$/ms,
	'a worker has no values of an integer sequence');
my $refused_on_worker = failure(
	q{SELECT instaid_tickets.create('public.counter', if_not_exists => true)}, $workers[0]);
like($refused_on_worker, qr/sequence public.counter cannot be created on a worker of Citus\n/,
	'create() is refused on a worker');
is(Clients::hints($refused_on_worker), 'Create it on the coordinator, and use it there, or on each'
	  . ' node with a server of its own and the number of all nodes as servers.',
	'create() on a worker says where to create it');
run_on($_,
	"SELECT instaid_tickets.create('public.striped', server => $number{$_->name}, servers => 3)")
  for $coordinator, @workers;
is(join(' ', map { run_on($_, q{SELECT instaid_tickets.next('striped')}) } $coordinator, @workers),
	'1 2 3', 'create() works with a server of its own on each node');

### Readers

# A coordinator that waits for a standby has not committed on the workers yet.
run('DELETE FROM insta7.likes', q{ALTER SYSTEM SET synchronous_standby_names = 'nobody'},
	'SELECT pg_reload_conf()');
$coordinator->poll_query_until('postgres',
	q{SELECT current_setting('synchronous_standby_names') = 'nobody'}) or die;
# the checkpointer lets sessions wait for standbys; it reads the setting first
$coordinator->safe_psql('postgres', 'CHECKPOINT');
my $output;
my $inserter = IPC::Run::start([ 'psql', '-Xq', '-d', $coordinator->connstr('postgres'), '-c',
		'INSERT INTO insta7.likes (user_id) SELECT generate_series(1, 80)' ],
	'<', \undef, '>&', \$output);
my $waiting = q{pg_stat_activity WHERE wait_event = 'SyncRep' AND query ~ '^INSERT'};
$coordinator->poll_query_until('postgres', "SELECT count(*) = 1 FROM $waiting") or die;
$workers[0]->stop('immediate');
run("SELECT pg_cancel_backend(pid) FROM $waiting");
$inserter->finish;
run('ALTER SYSTEM RESET synchronous_standby_names', 'SELECT pg_reload_conf()');
$coordinator->poll_query_until('postgres',
	q{SELECT current_setting('synchronous_standby_names') = ''}) or die;
$workers[0]->start;
my $settled = run(q{SELECT instaid.settled_id('insta7')});
my $rows = "SELECT count(*) FROM insta7.likes WHERE id <= $settled";
cmp_ok(run($rows), '<', 80, 'a worker crashes in a commit: rows below a settled ID are missing');
is(run('SELECT recover_prepared_transactions()', $rows), 80,
	'a worker crashes in a commit, until the commit is finished');

my $session = Clients::session($workers[0]);
my $id = $session->('BEGIN; INSERT INTO copies (n) VALUES (1) RETURNING id');
cmp_ok(run('INSERT INTO copies (n) VALUES (1)',
		q{SELECT instaid.settled_id('instaid', wait => false)}),
	'>', $id, q{settled_id('instaid') ignores transactions of other nodes});
$session->('ROLLBACK; \q');

### Existing tables

my $find_copies = q{
	SELECT nodename, nodeport, result FROM run_command_on_workers($$
		SELECT string_agg(object, '; ') FROM instaid.audit() WHERE code = 'copy' $$)
	WHERE result <> ''};
for my $language ('sql', 'plpgsql')
{
	my $schema = "old_$language";
	my $id = "(floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23)"
	  . " | (21 << 10) | (nextval(''$schema.table_id_seq'') % 1024)";
	my $body = $language eq 'sql' ? 'RETURN ' . ($id =~ s/''/'/gr) : "AS 'BEGIN RETURN $id; END'";
	run(qq{
		SET citus.enable_schema_based_sharding = off;
		CREATE SCHEMA $schema;
		CREATE SEQUENCE $schema.table_id_seq;
		CREATE FUNCTION $schema.next_id() RETURNS bigint LANGUAGE $language $body},
		"CREATE TABLE $schema.photos (id bigint DEFAULT $schema.next_id(), n integer)",
		"SELECT create_distributed_table('$schema.photos', 'n')",
		"INSERT INTO $schema.photos (n) SELECT generate_series(1, 10)",
		"CREATE TABLE $schema.tags (id bigint DEFAULT $schema.next_id())",
		"SELECT create_reference_table('$schema.tags')");
	is(scalar(() = run($find_copies) =~ /$schema/g),
		2, "$language: audit() finds the published function on the workers");
	like(failure("SELECT instaid_adopt.adopt_shard('$schema', 21)", $workers[0]),
		qr/ERROR/,
		"$language: audit() finds the published function on the workers, where adopt_shard()"
		  . " fails");
	# with the shards of tables visible, too
	my $visible = $language eq 'sql' ? 'on' : 'off';
	is(run("SET citus.override_table_visibility = $visible;"
			  . "SELECT instaid_adopt.adopt_shard('$schema', 21)", $find_copies),
		'', "$language: audit() finds the published function on the workers, and which replaces"
			  . " the function everywhere, override_table_visibility = $visible");
	is(run_on($_, $shard_5 =~ s/insta5/$schema/r), 21,
		"$language: audit() finds the published function on the workers, as " . $_->name . ' shows')
	  for @workers;
	run("INSERT INTO $schema.photos (n) SELECT generate_series(1, 20000)");
	like(failure("INSERT INTO $schema.photos (n) SELECT n FROM $schema.photos"),
		$refused,
		"$language: audit() finds the published function on the workers, and no worker makes IDs");
	is(run("SELECT count(*), count(DISTINCT id) FROM $schema.photos"),
		'20010|20010', "$language: audit() finds the published function on the workers, and none"
			  . " comes twice");
	run("DROP SCHEMA $schema CASCADE");
}

# a column, the schema of its table, how the table is distributed, and the error
my $identity = 'bigint GENERATED ALWAYS AS IDENTITY';
my $by_n = q{SELECT create_distributed_table('insta7.t', 'n')};
my $by_id = q{SELECT create_distributed_table('insta7.t', 'id')};
my $everywhere = q{SELECT create_reference_table('insta7.t')};
for my $case (
	[ 'serial', 'insta7', $by_n ],
	[ 'bigserial', 'insta7', $by_n ],
	[ 'serial', 'insta7', $everywhere ],
	[ 'serial', 'insta8', 'SELECT' ],
	[ 'serial', 'insta7', $by_id, qr/the distribution column of a Citus table\.
HINT:  Call undistribute_table\(\) before, and distribute it afterwards\.$/m ],
	[ $identity, 'insta7', $by_n, qr/an identity column of a Citus table\.
HINT:  Create another table, distribute it, and copy the rows\.$/m ])
{
	my ($column, $schema, $distribute, $error) = @$case;
	my $insert = "INSERT INTO $schema.t (n) SELECT generate_series(1, 10)";
	run("CREATE TABLE $schema.t (id $column, n integer)", $distribute, $insert);
	my $name = "adopt_column() of a $column in $schema, $distribute";
	like(failure("SELECT * FROM instaid_adopt.adopt_column('$schema.t', 'id')"),
		$error ? qr/ERROR:  Citus cannot change the default of column insta7\.t\.id\n.*$error/s
			: qr/^no error$/, $name);
	is(run($insert, qq{
		SELECT count(*), count(DISTINCT id),
			   count(*) FILTER (WHERE 'insta' || instaid.extract_shard_id(id) = '$schema')
		FROM $schema.t}),
		$error ? '20|20|0' : '20|20|10', "$name, and then rows are inserted");
	run("DROP TABLE $schema.t");
}
run('CREATE TABLE insta7.users (id serial PRIMARY KEY)',
	'CREATE TABLE insta7.pets (user_id integer REFERENCES insta7.users)',
	q{SELECT create_reference_table('insta7.users')},
	q{SELECT create_distributed_table('insta7.pets', 'user_id')});
like(failure(q{SELECT instaid_adopt.adopt_column('insta7.users', 'id')}),
	qr/cannot be widened\n.*insta7\.pets\.user_id: the distribution column of a Citus table\./,
	"adopt_column() on Citus: a distribution column that refers to the column is an obstacle");

run('CREATE TABLE insta7.sized (id serial PRIMARY KEY)',
	q{SELECT create_reference_table('insta7.sized')});
my (undef, undef, $said) = $coordinator->psql('postgres',
	q{SELECT instaid_adopt.adopt_column('insta7.sized', 'id', dry_run => true)});
like($said, qr/They are insta7\.sized\.id\.$/m,
	"adopt_column() on Citus shows no size of a shell table");

### What Citus refuses

# each with what works instead
my $propagation = 'citus.enable_ddl_propagation';
for my $option ('RESTART', 'CACHE 10')
{
	my $alter = "ALTER SEQUENCE insta7.table_id_seq $option";
	like(failure($alter), qr/Altering a distributed sequence/, "$alter is refused");
	is(failure("SET $propagation = off; $alter"), 'no error',
		"$alter is refused, and not with $propagation off");
}
run('CREATE TABLE insta7.renumbered (id bigint DEFAULT insta7.next_id(), n integer)',
	q{SELECT create_distributed_table('insta7.renumbered', 'n')},
	'INSERT INTO insta7.renumbered SELECT i, i FROM generate_series(1, 100) AS i');
like(failure('UPDATE insta7.renumbered SET id = insta7.next_id()'),
	qr/must not be VOLATILE/, 'UPDATE with next_id() is refused');
is(run(q{
	CREATE TEMPORARY TABLE new AS SELECT id FROM insta7.renumbered;
	ALTER TABLE new ADD new_id bigint DEFAULT insta7.next_id();
	UPDATE insta7.renumbered AS r SET id = new_id FROM new AS n WHERE n.id = r.id},
		'SELECT count(DISTINCT id), count(DISTINCT n), min(s), max(s)
		FROM insta7.renumbered, instaid.extract_shard_id(id) AS s'),
	'100|100|7|7', "renumbering on Citus works with a temporary table of the new IDs");
run('CREATE TABLE insta7.by_id (id bigint DEFAULT insta7.next_id(), n integer)',
	q{SELECT create_distributed_table('insta7.by_id', 'id')},
	'CREATE SEQUENCE insta7.other_id_seq',
	q{CREATE TABLE insta7.by_n (id bigint DEFAULT insta7.next_id('insta7.other_id_seq'),
		n integer)},
	q{SELECT create_distributed_table('insta7.by_n', 'n')});
for my $case (
	[ 'by_id', qr/involving partition column/, q{SELECT undistribute_table('insta7.by_id')},
		q{SELECT create_distributed_table('insta7.by_id', 'id')} ],
	[ 'by_n', qr/a default coming from a sequence/,
		'ALTER TABLE insta7.by_n ALTER id DROP DEFAULT', q{
		ALTER TABLE insta7.by_n ALTER id SET DEFAULT insta7.next_id('insta7.other_id_seq')} ])
{
	my ($table, $error, $before, $after) = @$case;
	my $alter = "ALTER TABLE insta7.$table ALTER id TYPE instaid.id";
	like(failure($alter), $error, "$alter is refused");
	is(run($before, $alter, $after, "INSERT INTO insta7.$table (n) SELECT generate_series(1, 10)",
			"SELECT count(DISTINCT id), min(pg_typeof(id)::text) FROM insta7.$table"),
		'10|instaid.id', "$alter is refused, and works between $before and the opposite");
}

run('CREATE SEQUENCE insta7.likes_id_seq',
	q{ALTER TABLE insta7.likes ALTER id SET DEFAULT nextval('insta7.likes_id_seq')},
	'INSERT INTO insta7.likes (user_id) SELECT user_id FROM insta7.events');
run_on($_, 'INSERT INTO insta7.likes (user_id) VALUES (1)') for @workers;
is(run('SELECT count(*), count(DISTINCT id) FROM insta7.likes'),
	'182|182', 'the way back to bigserial, on all nodes');

### Freezing and moving

run(q{SELECT instaid.freeze_shard('insta5')});
like(failure('INSERT INTO insta5.photos (n) VALUES (1)'),
	qr/shard insta5 is frozen/, 'freeze_shard()');
run(q{SELECT instaid.thaw_shard('insta5')});

my $clients = Clients->start($coordinator,
	('INSERT INTO insta5.photos DEFAULT VALUES RETURNING id;') x 3);
for (1 .. 2)
{
	my $other = run(q{
		SELECT n.nodeid FROM pg_dist_node AS n
		WHERE n.groupid <> 0 AND NOT EXISTS (SELECT FROM citus_shards AS s
			WHERE s.table_name = 'insta5.photos'::regclass
			  AND (s.nodename, s.nodeport) = (n.nodename, n.nodeport))
		ORDER BY n.nodeid LIMIT 1});
	run("SELECT citus_schema_move('insta5', $other)");
}
is($clients->stop, '', 'citus_schema_move(): no insert fails');
my $sum = Clients::summary($clients->files);
is($sum->{duplicates}, 0,
	"citus_schema_move(): no insert fails: none of $sum->{count} IDs comes twice");
is((grep { !Clients::in_order($_) } $clients->files), 0,
	'citus_schema_move(): no insert fails, in order for each client');
my %there = map { $_ => 1 } split /\n/, run('SELECT id FROM insta5.photos');
is((grep { !$there{$_} } map { split /\n/, slurp_file($_) } $clients->files),
	0, 'citus_schema_move(): no insert fails, and no row is lost');

### A worker joins

my ($grant, $number_of_clone) = @{ $blocks{'The shard of the node on Citus'} };
follow([$grant], coordinator => $coordinator);
my $granted = q{SELECT has_sequence_privilege('app', 'instaid.node_id_seq', 'USAGE')};
is(run_on($_, $granted), 't', 'the GRANT of the page reaches ' . $_->name) for @workers;
run(q{SELECT instaid.freeze_shard('insta6')});
run(sprintf q{SELECT citus_add_node('%s', %d)}, $late->host, $late->port);
is(run_on($late, $granted), 'f',
	'the GRANT of the page does not reach a worker that is added later');
run_on($late, 'SELECT instaid.next_id()');
like(twice(@workers, $late), qr/: 2$/,
	'a worker that is added later has a number that another worker has');
# Its copy of the sequence has a range of its own.  Therefore it issues no IDs, frozen or not.
like(failure('SELECT insta6.next_id()', $_),
	qr/sequence "table_id_seq" cannot serve as a source of IDs/,
	'an added worker issues no IDs of a frozen shard, like ' . $_->name) for $late, $workers[0];

### A clone of a worker

SKIP:
{
	skip 'this Citus has no citus_add_clone_node()', 5
	  if !run(q{SELECT count(*) FROM pg_proc WHERE proname = 'citus_add_clone_node'});

	# Citus finds the connection of a clone by its host.
	my $clone = PostgreSQL::Test::Cluster->new('clone');
	$workers[1]->backup('clone');
	$clone->init_from_backup($workers[1], 'clone', has_streaming => 1);
	$clone->append_conf('postgresql.conf', sprintf q{primary_conninfo = '%s application_name=%s'},
		$workers[1]->connstr, $clone->host);
	chmod 0600, $clone->data_dir . '/server.key' or die;
	$clone->start;
	push @nodes, $clone;
	my $node_id = run(sprintf q{SELECT citus_add_clone_node('%s', %d, '%s', %d)},
		map { $_->host, $_->port } $clone, $workers[1]);
	is(run_on($clone, 'SHOW instaid.node_shard_id'), 3, 'a clone has the number of its worker');
	follow([$number_of_clone], clone => $clone);
	$workers[1]->wait_for_catchup($clone->host);
	run("SELECT citus_promote_clone_and_rebalance($node_id)");
	is(run_on($clone, $insert), 4,
		'a clone has the number of its worker, and inserts with the number that the page gave it');
	is(run_on($workers[1], $insert), 3,
		'a clone has the number of its worker, while the worker keeps its own');
	like(failure('SELECT insta5.next_id()', $clone), $refused,
		'a clone has the number of its worker, and the copies of shards on the clone issue no IDs');
	is(twice($coordinator, $workers[1], $clone), 'success: ',
		'a clone has the number of its worker, and no shard ID is used twice');
}

$_->stop for @nodes;
done_testing();
