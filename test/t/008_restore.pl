# Copies of a database, made in all possible ways: new IDs of a copy must be above all
# IDs of the original, and remain so after a crash of the copy.  The values of next_id(),
# next_ticket() and nextval() do not come again in copies that ALTER SEQUENCE makes, either.
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

# Calls that take values of sequences, each of a sequence of its own.  take() stores some
# values of each call, and returns which were not above those before.  Before a sequence
# is copied, use() lets instaid write its last WAL record, which covers more values.  (In
# the copy of a sequence whose last record core wrote, nextval() believes in that record,
# and up to 32 of its values come again after a crash.)
my $calls = q{
	CREATE TABLE calls (call text PRIMARY KEY);
	CREATE TABLE taken (call text, value bigint);
	CREATE FUNCTION add_calls(name text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		call text;
	BEGIN
		FOREACH call IN ARRAY ARRAY[
			format('instaid.next_id(%L, 7)', 'instaid_tickets.' || quote_ident(name || ' next_id')),
			format('nextval(%L)', 'instaid_tickets.' || quote_ident(name || ' nextval')),
			format('instaid.next_ticket(%L)', name || ' next_ticket'),
			format('nextval(%L)', 'instaid_tickets.' || quote_ident(name || ' nextval of a ticket'))]
		LOOP
			INSERT INTO calls VALUES (call);
		END LOOP;
		FOR call IN SELECT format('instaid_tickets.%I', name || kind) FROM unnest(ARRAY[' next_id', ' nextval']) AS kind LOOP
			EXECUTE 'CREATE SEQUENCE ' || call;
			PERFORM instaid.advance_past(call, instaid.min_id(now() + interval '1 h'), instaid.default_epoch());
		END LOOP;
		PERFORM instaid.create_ticket(name || kind) FROM unnest(ARRAY[' next_ticket', ' nextval of a ticket']) AS kind;
	END $$;
	CREATE FUNCTION use() RETURNS bigint LANGUAGE sql
		SET client_min_messages = error SET instaid.max_drift = '1d' AS $$
		SELECT count(CASE WHEN relname ~ 'ticket$' THEN instaid.next_ticket(relname) ELSE instaid.next_id(oid, 7) END)
		FROM pg_class WHERE relnamespace = 'instaid_tickets'::regnamespace AND relname ~ '(next_id|nextval|ticket)$' $$;
	CREATE FUNCTION take() RETURNS SETOF text LANGUAGE plpgsql
		SET client_min_messages = error SET instaid.max_drift = '1d' AS $$
	DECLARE
		taker text;
		before bigint;
		first bigint;
	BEGIN
		FOR taker IN SELECT call FROM calls ORDER BY 1 LOOP
			SELECT max(value) INTO before FROM taken WHERE call = taker;
			EXECUTE format('WITH new AS (INSERT INTO taken SELECT %L, %s FROM generate_series(1, 10) RETURNING value) SELECT min(value) FROM new', taker, taker) INTO first;
			IF first <= before THEN
				RETURN NEXT format('%s: %s came after %s', taker, first, before);
			END IF;
		END LOOP;
	END $$;};

# The last IDs of the shards, by name
sub last_ids
{
	my ($node, $database) = @_;
	my %last;
	@last{ 'light', 'ahead' } = split /\|/, $node->safe_psql($database,
		'SELECT (SELECT max(id) FROM light.photos), (SELECT max(id) FROM ahead.photos)');
	return %last;
}

# Insert a row into each shard of a copy; the new IDs must be above those in %last.  Let
# the copy crash, and try again.
sub goes_on
{
	my ($name, $node, $database, %last) = @_;
	my $has_calls = $node->safe_psql($database, q{SELECT count(*) FROM pg_class WHERE relname = 'calls'});
	for my $when ($name, "$name, and a crash")
	{
		if ($when ne $name)
		{
			$node->stop('immediate');
			$node->start;
		}
		for my $schema (sort keys %last)
		{
			my $next = $node->safe_psql($database,
				"SET client_min_messages = error; INSERT INTO $schema.photos DEFAULT VALUES RETURNING id");
			cmp_ok($next, '>', $last{$schema}, "$when: new IDs of $schema are above");
			$last{$schema} = $next;
		}
		is($node->safe_psql($database, 'SELECT take()'), '', "$when: no value comes again") if $has_calls;
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
$main->safe_psql('postgres', "$shards $calls SELECT add_calls('copied'), take()");
$main->safe_psql('postgres', "$fill SELECT use()");
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

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($main, 'backup', has_streaming => 1);
$standby->append_conf('postgresql.conf', "archive_mode = off\n");
$standby->start;
$main->wait_for_catchup($standby);
$standby->promote;
goes_on('promoted standby', $standby, 'postgres', %last);
$standby->stop;

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

# Whatever ALTER FUNCTION has made of the functions of shards is restored, with the tables
# whose default they are.
my @alterations = ('PARALLEL SAFE', 'PARALLEL RESTRICTED', 'IMMUTABLE', 'STABLE', 'CALLED ON NULL INPUT', 'SECURITY DEFINER',
	'COST 7', 'SET work_mem = 64', 'RENAME TO renamed', 'SET SCHEMA elsewhere');
my $shard_id = 0;
$main->safe_psql('postgres', "CREATE DATABASE functions; CREATE DATABASE functions_restored");
$main->safe_psql('functions', 'CREATE EXTENSION instaid; CREATE SCHEMA elsewhere');
for my $function ('next_id()', 'next_id(regclass)', 'next_ids(integer, regclass)')
{
	$main->safe_psql('functions', join '', map { $shard_id++; qq{
		SELECT instaid.create_shard('s$shard_id', $shard_id);
		CREATE TABLE s$shard_id.photos (a bigint DEFAULT s$shard_id.next_id(), b bigint DEFAULT s$shard_id.next_id('s$shard_id.table_id_seq'));
		INSERT INTO s$shard_id.photos DEFAULT VALUES;
		ALTER FUNCTION s$shard_id.$function $_;} } @alterations);
}
my @dumps = map {
	my $database = $_;
	$main->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $main->connstr($database) ], 'altered functions are restored')
	  if $database ne 'functions';
	$main->command_ok([ 'pg_dump', '-f', $dump, $main->connstr($database) ], "pg_dump of $database");
	join "\n", sort grep { !/^\\/ } split /\n/, slurp_file($dump);	# dependencies can change the order
} 'functions', 'functions_restored';
is($dumps[1], $dumps[0], '... as they were');

# A copy of a database
$main->safe_psql('template1', 'CHECKPOINT');
for my $strategy ('wal_log', 'file_copy')
{
	$main->safe_psql('postgres', 'SELECT use()');
	$main->safe_psql('template1', "CREATE DATABASE $strategy TEMPLATE postgres STRATEGY $strategy");
	goes_on("TEMPLATE, $strategy", $main, $strategy, %last);
}
my $tablespace = PostgreSQL::Test::Utils::tempdir;
$main->safe_psql('postgres', "CREATE TABLESPACE elsewhere LOCATION '$tablespace'");
%last = last_ids($main, 'wal_log');
$main->safe_psql('wal_log', 'SELECT use()');
$main->safe_psql('postgres', 'ALTER DATABASE wal_log SET TABLESPACE elsewhere');
goes_on('SET TABLESPACE', $main, 'wal_log', %last);

# Each form of ALTER SEQUENCE, most of which copy the sequence to a new file; where
# %1$s.%2$I is the sequence
my %forms = (
	'START'        => 'ALTER SEQUENCE %1$s.%2$I START 7',
	'RESTART'      => 'ALTER SEQUENCE %1$s.%2$I RESTART',
	'RESTART WITH' => 'ALTER SEQUENCE %1$s.%2$I RESTART WITH 5000',
	'MINVALUE'     => 'ALTER SEQUENCE %1$s.%2$I MINVALUE 0',
	'MAXVALUE'     => 'ALTER SEQUENCE %1$s.%2$I MAXVALUE 9223372036854775806',
	'INCREMENT'    => 'ALTER SEQUENCE %1$s.%2$I INCREMENT 1',
	'CACHE'        => 'ALTER SEQUENCE %1$s.%2$I CACHE 1',
	'NO CYCLE'     => 'ALTER SEQUENCE %1$s.%2$I NO CYCLE',
	'AS'           => 'ALTER SEQUENCE %1$s.%2$I AS bigint',
	'OWNED BY'     => 'ALTER SEQUENCE %1$s.%2$I OWNED BY instaid_tickets.owner.id',
	'OWNER TO'     => 'ALTER SEQUENCE %1$s.%2$I OWNER TO CURRENT_USER',
	'SET LOGGED'   => 'ALTER SEQUENCE %1$s.%2$I SET UNLOGGED; ALTER SEQUENCE %1$s.%2$I SET LOGGED',
	'SET SCHEMA'   => 'ALTER SEQUENCE %1$s.%2$I SET SCHEMA public; ALTER SEQUENCE %2$I SET SCHEMA %1$s',
	'RENAME'       => 'ALTER SEQUENCE %1$s.%2$I RENAME TO other; ALTER SEQUENCE %1$s.other RENAME TO %2$I',
	'ROLLBACK'     => 'BEGIN; ALTER SEQUENCE %1$s.%2$I START 7; ROLLBACK');
$main->safe_psql('postgres', 'CREATE DATABASE altered');
$main->safe_psql('altered', "CREATE EXTENSION instaid; CREATE TABLE instaid_tickets.owner (id bigint); $calls");
$main->safe_psql('altered', "SELECT add_calls('$_')") for sort keys %forms;
$main->safe_psql('altered', 'SELECT take(), use()');
$main->safe_psql('altered', qq{
	SELECT format('$forms{$_}', relnamespace::regnamespace, relname) FROM pg_class
	WHERE relname ~ '^$_ (next|nextval)' ORDER BY relname \\gexec
}) for sort keys %forms;
$main->safe_psql('altered', q{DELETE FROM taken WHERE call ~ 'RESTART'});	# it sets them back
goes_on('ALTER SEQUENCE', $main, 'altered');

# Logical replication, and a switchover to the subscriber.  Sequences are not
# replicated; the documentation has a statement that copies their state.
my ($procedure) = section_blocks('docs/operations.md', 'Switching over to a logical subscriber');
ok($procedure, 'the documentation has a statement for a switchover');
my $subscriber = Clients::server('subscriber', { allows_streaming => 'logical' });
$subscriber->safe_psql('postgres', "$shards $calls SELECT add_calls('copied')");
$main->safe_psql('postgres', 'CREATE PUBLICATION p FOR TABLE light.photos, ahead.photos, taken');
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
	$old->safe_psql('postgres', q{SELECT instaid.create_shard('altered', 7); ALTER FUNCTION altered.next_id() PARALLEL SAFE});
	$old->safe_psql('postgres', "$shards $calls SELECT add_calls('upgraded'), take(), use()");
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
