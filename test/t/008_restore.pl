# Copies of a database, made in all possible ways: new IDs of a copy must be above all
# IDs of the original.
#
# The sequence of shard "ahead" is an hour ahead of the clock, as it is after the clock
# was set back: a copy can only know this from the state of the sequence.  Shard
# "light" follows the clock, and gives IDs while it is copied and afterwards.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;

my $shards = q{
	SELECT instaid.create_shard('light', 5);
	SELECT instaid.create_shard('ahead', 6);
	CREATE TABLE light.photos (id bigint PRIMARY KEY DEFAULT light.next_id(), n integer);
	CREATE TABLE ahead.photos (id bigint PRIMARY KEY DEFAULT ahead.next_id(), n integer);};
my $fill = q{
	SET client_min_messages = error;
	SELECT setval('ahead.table_id_seq', (extract(epoch FROM now() + interval '1 h') * 1000)::bigint << 10);
	INSERT INTO ahead.photos (n) SELECT generate_series(1, 3000);
	INSERT INTO light.photos (n) SELECT generate_series(1, 3000);};

# The last IDs of the shards, by name
sub last_ids
{
	my ($node, $database) = @_;
	my %last;
	@last{ 'light', 'ahead' } = split /\|/, $node->safe_psql($database,
		'SELECT (SELECT max(id) FROM light.photos), (SELECT max(id) FROM ahead.photos)');
	return %last;
}

# Insert a row into each shard of a copy; the new IDs must be above those in %last.
sub goes_on
{
	my ($name, $node, $database, %last) = @_;
	for my $schema (sort keys %last)
	{
		my $next = $node->safe_psql($database,
			"SET client_min_messages = error; INSERT INTO $schema.photos DEFAULT VALUES RETURNING id");
		cmp_ok($next, '>', $last{$schema}, "$name: new IDs of $schema are above");
	}
	return;
}

# A role installs the extension in a database, creates a ticket, and lets the role app create others.
sub install_as
{
	my ($node, $role, $attributes, $owns_database) = @_;
	$node->safe_psql('postgres', "CREATE ROLE $role LOGIN $attributes; CREATE DATABASE by_$role" . ($owns_database ? " OWNER $role" : ''));
	$node->safe_psql("by_$role", qq{
		GRANT CREATE ON DATABASE by_$role TO $role;
		SET SESSION AUTHORIZATION $role;
		CREATE EXTENSION instaid;
		SELECT instaid.create_ticket('photos'), instaid.next_ticket('photos');
		GRANT CREATE ON SCHEMA instaid_tickets TO app;
		GRANT USAGE ON SEQUENCE instaid.node_id_seq TO app;});
	return;
}

# The role that installed the extension leaves.
sub leave
{
	my ($node, $role) = @_;
	$node->safe_psql("by_$role", "REASSIGN OWNED BY $role TO CURRENT_USER; DROP OWNED BY $role; DROP ROLE $role");
	return;
}

# role, its attributes, whether it owns the database
my @installers = (['trusted', '', 0], ['owner', '', 1], ['administrator', 'SUPERUSER', 0]);

my $main = Clients::server('main', { has_archiving => 1, allows_streaming => 'logical' });
$main->safe_psql('postgres', $shards);
$main->safe_psql('postgres', $fill);
my %last = last_ids($main, 'postgres');

# pg_basebackup, and recovery to a point in time, under load
my $clients = Clients->start($main, ('INSERT INTO light.photos DEFAULT VALUES RETURNING id;') x 4);
$main->backup('backup');
$main->safe_psql('postgres', $fill);
my %later = last_ids($main, 'postgres');
my $segment = $main->safe_psql('postgres', q{SELECT pg_walfile_name(pg_create_restore_point('later'))});
$main->safe_psql('postgres', 'SELECT pg_switch_wal()');
$main->poll_query_until('postgres', "SELECT last_archived_wal >= '$segment' FROM pg_stat_archiver") or die;
$clients->stop;
$last{light} = $later{light} = Clients::summary($clients->files)->{last};

my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($main, 'backup');
$copy->append_conf('postgresql.conf', "archive_mode = off\n");	# it is on the same timeline
$copy->start;
goes_on('pg_basebackup', $copy, 'postgres', %last);
$copy->stop;

my $point = PostgreSQL::Test::Cluster->new('point');
$point->init_from_backup($main, 'backup', has_restoring => 1, standby => 0);
$point->append_conf('postgresql.conf', "recovery_target_name = 'later'\nrecovery_target_action = 'promote'\n");
$point->start;
$point->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die;
goes_on('point in time', $point, 'postgres', %later);
$point->stop;

# pg_dump of the database, and of one shard, which is renamed
%last = last_ids($main, 'postgres');
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
$main->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $main->connstr('postgres') ], 'pg_dump');
$main->safe_psql('postgres', 'CREATE DATABASE restored');
$main->command_ok([ 'pg_restore', '-e', '-d', $main->connstr('restored'), $dump ], 'pg_restore');
goes_on('pg_restore', $main, 'restored', %last);

$main->command_ok([ 'pg_dump', '-n', 'ahead', '-f', $dump, $main->connstr('postgres') ], 'pg_dump -n');
$main->safe_psql('postgres', 'CREATE DATABASE moved');
$main->safe_psql('moved', q{CREATE EXTENSION instaid});
$main->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $main->connstr('moved') ], 'psql');
$main->safe_psql('moved', 'ALTER SCHEMA ahead RENAME TO "another name"');
goes_on('pg_dump -n', $main, 'moved', '"another name"' => $last{ahead});
is($main->safe_psql('moved', 'SELECT schema_name, shard_id FROM instaid.shards'), 'another name|6', 'pg_dump -n: the shard keeps its ID');

# The rights of the role that installed the extension, and what it granted, are in a dump.  When the role
# has left, the database can be dumped and restored.
$main->safe_psql('postgres', 'CREATE ROLE app');
for my $installer (@installers)
{
	my ($role, undef, $owns_database) = @$installer;
	install_as($main, @$installer);
	for my $when ('before', 'after')
	{
		$main->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $main->connstr("by_$role") ], "installed by $role: pg_dump $when it leaves");
		$main->safe_psql('postgres', 'CREATE DATABASE copy' . ($owns_database && $when eq 'before' ? " OWNER $role" : ''));
		$main->command_ok([ 'pg_restore', '-e', '-d', $main->connstr('copy'), $dump ], '... pg_restore -e');
		is($main->safe_psql('copy', qq{SET SESSION AUTHORIZATION $_; SELECT instaid.create_ticket('by $_')}), qq{instaid_tickets."by $_"}, "... $_ can create tickets")
			for $when eq 'before' ? ($role, 'app') : ();
		is($main->safe_psql('copy', q{SELECT instaid.next_ticket('photos')}), 2, '... and the ticket goes on');
		$main->safe_psql('postgres', 'DROP DATABASE copy');
		leave($main, $role) if $when eq 'before';
	}
}

# A copy of a database, and a crash after it was made
$main->safe_psql('template1', 'CHECKPOINT');
for my $strategy ('wal_log', 'file_copy')
{
	$main->safe_psql('template1', "CREATE DATABASE $strategy TEMPLATE postgres STRATEGY $strategy");
	goes_on("TEMPLATE, $strategy", $main, $strategy, %last);
	my %last_of_copy = last_ids($main, $strategy);
	$main->stop('immediate');
	$main->start;
	goes_on("TEMPLATE, $strategy, and a crash", $main, $strategy, %last_of_copy);
}

# Logical replication, and a switchover to the subscriber.  Sequences are not
# replicated; the documentation has a statement that copies their state.
my ($procedure) = section_blocks('docs/operations.md', 'Switching over to a logical subscriber');
ok($procedure, 'the documentation has a statement for a switchover');
my $subscriber = Clients::server('subscriber', { allows_streaming => 'logical' });
$subscriber->safe_psql('postgres', $shards);
$main->safe_psql('postgres', 'CREATE PUBLICATION p FOR TABLE light.photos, ahead.photos');
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION \$\$" . $main->connstr('postgres') . '$$ PUBLICATION p');
$subscriber->wait_for_subscription_sync($main, 's');
$main->safe_psql('postgres', $fill);
%last = last_ids($main, 'postgres');
$main->wait_for_catchup('s');
$subscriber->safe_psql('postgres', $main->safe_psql('postgres', $procedure->{text}));
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');
is($subscriber->safe_psql('postgres', 'SELECT max(id) FROM ahead.photos'), $last{ahead}, 'logical replication: the rows are there');
goes_on('logical replication', $subscriber, 'postgres', %last);
$subscriber->stop;
$main->stop;

# pg_upgrade from the older PostgreSQL in INSTAID_OLD, or else to the same version
{
	# checksums are the default only since PostgreSQL 18
	my @initdb = (extra => [ '--data-checksums', '--locale=C', '--encoding=UTF8' ]);
	my $old = Clients::server('old', { @initdb, install_path => $ENV{INSTAID_OLD} });
	$old->safe_psql('postgres', $shards);
	$old->safe_psql('postgres', $fill);
	$old->safe_psql('postgres', 'CREATE TABLE typed AS SELECT id::instaid.id FROM light.photos; ALTER TABLE typed ADD PRIMARY KEY (id)');
	$old->safe_psql('postgres', q{SELECT instaid.create_ticket('photos', 2, 3); SELECT instaid.lease_ticket('photos', 100)});
	$old->safe_psql('postgres', 'CREATE ROLE app');
	for my $installer (@installers)
	{
		install_as($old, @$installer);
		leave($old, $installer->[0]);
	}
	%last = last_ids($old, 'postgres');
	$old->append_conf('postgresql.conf', 'instaid.node_shard_id = 8');
	$old->reload;
	my $node_id = $old->safe_psql('postgres', q{
		SET client_min_messages = error;
		SELECT setval('instaid.node_id_seq', last_value) FROM ahead.table_id_seq \gset
		SELECT instaid.next_id()});
	$old->stop;

	my $new = PostgreSQL::Test::Cluster->new('new');
	$new->init(@initdb);
	$new->append_conf('postgresql.conf', 'instaid.node_shard_id = 8');
	chdir PostgreSQL::Test::Utils::tempdir or die $!;
	command_ok([ 'pg_upgrade', '--no-sync',
			'-b', $old->config_data('--bindir'), '-d', $old->data_dir, '-p', $old->port,
			'-B', $new->config_data('--bindir'), '-D', $new->data_dir, '-P', $new->port, '-s', $new->host ],
		'pg_upgrade')
		or diag(map { slurp_file($_) } glob($new->data_dir . '/pg_upgrade_output.d/*/log/*'));
	$new->start;
	goes_on('pg_upgrade', $new, 'postgres', %last);
	cmp_ok($new->safe_psql('postgres', 'SET client_min_messages = error; SELECT instaid.next_id()'), '>', $node_id,
		'pg_upgrade: new IDs of the node are above');
	is($new->safe_psql('postgres', q{
		SET enable_seqscan = off;
		SELECT count(*), count((SELECT id FROM typed WHERE id = p.id)), (SELECT count(*) FROM typed WHERE id = 5) FROM light.photos AS p WHERE n > 0}),
		'3000|3000|0', 'pg_upgrade: columns of instaid.id, and their indexes');
	is($new->safe_psql('postgres', q{SELECT instaid.next_ticket('photos')}), 302, 'pg_upgrade: a ticket goes on');
	is($new->safe_psql("by_$_->[0]", q{SELECT instaid.next_ticket('photos')}), 2, "pg_upgrade: ... and one whose extension $_->[0] installed") for @installers;
	$new->stop;
}

done_testing();
