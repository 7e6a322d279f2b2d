# What pg_dump and pg_upgrade take along: IDs and values that go on above the original, also
# after a crash; a shard whose schema has another name; functions that ALTER FUNCTION has
# changed; columns of the type instaid.id, and types made of it; rights, of PUBLIC and of a role
# that has left; domains that default to a shard's next_id(), in the SQL edition, too.
# pg_regress has neither program.
# not in: assert
# in: newest
# takes 50 s

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Copies;
use SqlEdition;

@Clients::extensions = ('instaid', 'instaid_tickets');

my $main = Clients::server('main');
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';

# Dump a database, or what the options choose of it.
sub dump_of
{
	my ($database, $name, @options) = @_;
	return $main->command_ok(
		[ 'pg_dump', @options, '-f', $dump, '-d', $main->connstr($database) ], $name);
}

# Restore the dump into a database, from the custom format or from SQL.
sub restore
{
	my ($database, $name) = @_;
	my @program = slurp_file($dump) =~ /\APGDMP/ ? ('pg_restore', '-e', $dump)
	  : ('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump);
	return $main->command_ok([ @program, '-d', $main->connstr($database) ], $name);
}

### A database, whose shard "ahead" has another name, and columns of the type

$main->safe_psql('postgres', "$shards $calls SELECT add_calls('copied'), take()");
$main->safe_psql('postgres', "$fill SELECT use()");
my %last = last_ids($main, 'postgres');
$last{'"another name"'} = delete $last{ahead};
$main->safe_psql('postgres', qq{
	ALTER SCHEMA ahead RENAME TO "another name";
	CREATE TABLE light.likes (
		id instaid.id PRIMARY KEY DEFAULT light.next_id(),
		photo_id instaid.id REFERENCES light.photos);
	INSERT INTO light.likes (photo_id) SELECT id FROM light.photos;
	CREATE TABLE copied (id bigint, photo_id instaid.id);
	COPY light.likes TO '$dump.binary' (FORMAT binary);
	COPY copied FROM '$dump.binary' (FORMAT binary);
	CREATE DATABASE restored});
is($main->safe_psql('postgres', q{
	SELECT count(*), (SELECT count(*) FROM copied)
	FROM light.likes JOIN copied USING (id, photo_id)}),
	'3000|3000', 'instaid.id is copied in binary, and has the format of bigint');
dump_of('postgres', 'pg_dump of a database', '-Fc');
restore('restored', 'instaid.id is copied in binary, and has the format of bigint: is restored');
goes_on('pg_restore', $main, 'restored', %last);
is($main->safe_psql('restored', q{
	INSERT INTO light.likes DEFAULT VALUES;
	SELECT bool_and(jsonb_typeof(to_jsonb(l)->'id') = 'string'), count(*)
	FROM light.likes AS l JOIN light.photos AS p ON p.id = l.photo_id}),
	't|3000', 'instaid.id is copied in binary, and has the format of bigint, and with its tables'
		  . ' of the type');
# a role without rights on the shard may decode there
is($main->safe_psql('restored', q{
	CREATE ROLE reader;
	SET ROLE reader;
	SELECT shard_id FROM instaid.decode(4001511883701836730)}),
	'854', 'instaid.id is copied in binary, and has the format of bigint, and with the rights of'
		  . ' PUBLIC');

### One shard, into another database that has the extension

dump_of('postgres', 'pg_dump -n', '-n', '"another name"');
$main->safe_psql('postgres', 'CREATE DATABASE moved');
$main->safe_psql('moved', 'CREATE EXTENSION instaid');
restore('moved', '"another name": is restored');
$main->safe_psql('moved', 'ALTER SCHEMA "another name" RENAME TO renamed');
goes_on('pg_dump -n', $main, 'moved', renamed => $last{'"another name"'});
is($main->safe_psql('moved', q{
	SELECT schema_name, shard_id, epoch = instaid.default_epoch(), sequence,
		instaid.extract_shard_id(renamed.next_id())
	FROM instaid.shards}),
	'renamed|6|t|renamed.table_id_seq|6', 'pg_dump -n: the restored schema is the same shard');

### Types made of instaid.id, and a domain that defaults to a shard's next_id()

my $types = q{
	SELECT instaid.create_shard('types', 9);
	CREATE DOMAIN types.big AS bigint DEFAULT types.next_id()
		CHECK (instaid.extract_shard_id(value) = 9);
	CREATE DOMAIN types.plain AS instaid.id NOT NULL;
	CREATE DOMAIN types.checked AS instaid.id CHECK (value > 0);
	CREATE DOMAIN types.of_shard AS instaid.id DEFAULT types.next_id()
		CHECK (instaid.extract_shard_id(value) = 9);
	CREATE DOMAIN types.list AS instaid.id[] CHECK (value[1] > 0);
	CREATE TYPE types.span AS RANGE (subtype = instaid.id);
	CREATE TYPE types.pair AS (a instaid.id, b types.checked);
	CREATE TABLE types.photos (id instaid.id PRIMARY KEY DEFAULT types.next_id(), ids instaid.id[],
		shard_id integer GENERATED ALWAYS AS (instaid.extract_shard_id(id)) STORED,
		CHECK (id > 0)) PARTITION BY RANGE (id);
	CREATE TABLE types.early PARTITION OF types.photos FOR VALUES FROM (0) TO (4001511883701836730);
	CREATE TABLE types.late PARTITION OF types.photos
		FOR VALUES FROM (4001511883701836730) TO (MAXVALUE);
	CREATE TYPE types.album AS (cover types.photos, name text);
	CREATE TABLE types.uses (id types.of_shard PRIMARY KEY, big types.big, plain types.plain,
		checked types.checked, list types.list, span types.span, pair types.pair,
		album types.album);
	INSERT INTO types.photos (id, ids) VALUES (5, '{5,6}'), (DEFAULT, NULL);
	INSERT INTO types.uses (plain, checked, list, span, pair, album)
	SELECT id, id, ARRAY[id], types.span(id, NULL), ROW(id, 7)::types.pair, ROW(p, 'x')::types.album
	FROM types.photos AS p};
# The rows, new ones of each default, and which values are refused
sub uses
{
	my ($node, $database) = @_;
	return $node->safe_psql($database, q{
		SELECT u FROM types.uses AS u ORDER BY plain;
		SELECT p.tableoid::regclass, p FROM types.photos AS p ORDER BY id;
		BEGIN;
		INSERT INTO types.uses (plain) VALUES (8) RETURNING instaid.extract_shard_id(id), big > id;
		INSERT INTO types.photos DEFAULT VALUES RETURNING shard_id;
		ROLLBACK;
		SELECT conrelid::regclass::text, contypid::regtype::text, pg_get_constraintdef(oid)
		FROM pg_constraint WHERE connamespace = 'types'::regnamespace AND contype = 'c'
		ORDER BY 1, 2;
		SELECT pg_get_expr(relpartbound, oid) FROM pg_class
		WHERE oid IN ('types.early'::regclass, 'types.late'::regclass) ORDER BY 1});
}
# what audit() says of them
my $cures = q{SELECT cure FROM instaid.audit() WHERE code = 'upgrade_order' ORDER BY object};

$main->safe_psql('postgres', $types);
my $uses = uses($main, 'postgres');
for my $format ('plain', 'custom')
{
	dump_of('postgres', "types made of instaid.id: pg_dump, $format", '-F', $format);
	$main->safe_psql('postgres', "CREATE DATABASE types_$format");
	restore("types_$format", 'pg_dump -n: the restored schema is the same shard: is restored');
	is(uses($main,
		"types_$format"), $uses, 'pg_dump -n: the restored schema is the same shard, as it was');
}

### Functions of shards, whatever ALTER FUNCTION has made of them

my @alterations = ('PARALLEL SAFE', 'PARALLEL RESTRICTED', 'IMMUTABLE', 'STABLE',
	'CALLED ON NULL INPUT', 'SECURITY DEFINER', 'COST 7', 'SET work_mem = 64',
	'RENAME TO renamed', 'SET SCHEMA elsewhere');
my $shard_id = 0;
my $altered = 'CREATE EXTENSION instaid; CREATE SCHEMA elsewhere;';
for my $function ('next_id()', 'next_id(regclass)', 'next_ids(integer, regclass)')
{
	for my $alteration (@alterations)
	{
		my $schema = 's' . ++$shard_id;
		# a table whose defaults they are is restored, too
		$altered .= qq{
			SELECT instaid.create_shard('$schema', $shard_id);
			CREATE TABLE $schema.photos (
				a bigint DEFAULT $schema.next_id(),
				b bigint DEFAULT $schema.next_id('$schema.table_id_seq'));
			INSERT INTO $schema.photos DEFAULT VALUES;
			ALTER FUNCTION $schema.$function $alteration;};
	}
}
$main->safe_psql('postgres', 'CREATE DATABASE functions; CREATE DATABASE functions_restored');
$main->safe_psql('functions', $altered);
my @dumps = map {
	restore($_, 'altered functions are restored') if $_ ne 'functions';
	dump_of($_, "pg_dump of $_");
	# dependencies can change the order
	join "\n", sort grep { !/^\\/ } split /\n/, slurp_file($dump);
} 'functions', 'functions_restored';
is($dumps[1], $dumps[0], "pg_dump of $_, as they were");

### A database where backslashes are escapes, and whose dump says so; PostgreSQL 19 refuses that

$main->safe_psql('postgres',
	'CREATE DATABASE escapes; CREATE DATABASE escapes_sql; CREATE DATABASE escapes_custom');
$main->safe_psql('escapes', q{
	CREATE EXTENSION instaid;
	SELECT instaid.create_shard(E'back\\\\slash', 5);
	CREATE TABLE "back\\slash".photos (id instaid.id PRIMARY KEY DEFAULT "back\\slash".next_id());
	INSERT INTO "back\\slash".photos DEFAULT VALUES});
$main->psql('postgres', 'ALTER DATABASE escapes SET standard_conforming_strings = off');
for my $format ('sql', 'custom')
{
	dump_of('escapes', "pg_dump of a database where backslashes are escapes: $format",
		$format eq 'custom' ? '-Fc' : '-Fp');
	restore("escapes_$format", "pg_dump of $_: is restored");
	is($main->safe_psql("escapes_$format", q{
		INSERT INTO "back\\slash".photos DEFAULT VALUES;
		SELECT count(*) FROM "back\\slash".photos;
		SELECT schema_name, shard_id FROM instaid.shards; SELECT count(*) FROM instaid.audit()}),
		'2' . "\nback\\slash|5\n0", "pg_dump of $_, and goes on");
}

### The rights of the role that installed the extension, and what it granted

# A role installs the extension in a database, and lets the role app use the node's sequence.
sub install_as
{
	my ($node, $role, $attributes, $owns_database) = @_;
	my $may_grant = $attributes || $owns_database ? '' : qq{
		RESET SESSION AUTHORIZATION;
		GRANT USAGE ON SEQUENCE instaid.node_id_seq TO $role WITH GRANT OPTION;
		SET SESSION AUTHORIZATION $role;};
	$node->safe_psql('postgres', "CREATE ROLE $role LOGIN $attributes;
		CREATE DATABASE by_$role" . ($owns_database ? " OWNER $role" : ''));
	$node->safe_psql("by_$role", qq{
		GRANT CREATE ON DATABASE by_$role TO $role;
		SET SESSION AUTHORIZATION $role;
		CREATE EXTENSION instaid;
		$may_grant
		GRANT USAGE ON SEQUENCE instaid.node_id_seq TO app;});
	return;
}

# The role that installed the extension leaves.
sub leave
{
	my ($node, $role) = @_;
	$node->safe_psql("by_$role",
		"REASSIGN OWNED BY $role TO CURRENT_USER; DROP OWNED BY $role; DROP ROLE $role");
	return;
}

# role, its attributes, whether it owns the database
my @installers =
  ([ 'trusted', '', 0 ], [ 'owner', '', 1 ], [ 'administrator', 'SUPERUSER', 0 ]);

# When the role has left, the database can still be dumped and restored.
$main->safe_psql('postgres', 'CREATE ROLE app');
for my $installer (@installers)
{
	my ($role, undef, $owns_database) = @$installer;
	install_as($main, @$installer);
	for my $when ('before', 'after')
	{
		dump_of("by_$role", "installed by $role: pg_dump $when it leaves", '-Fc');
		$main->safe_psql('postgres',
			'CREATE DATABASE copy' . ($owns_database && $when eq 'before' ? " OWNER $role" : ''));
		restore('copy', "pg_dump of $_: pg_restore -e");
		is($main->safe_psql('copy', q{
			SELECT has_sequence_privilege('app', 'instaid.node_id_seq', 'USAGE')}), 't',
			"pg_dump of $_, with what it granted") if $when eq 'before';
		$main->safe_psql('postgres', 'DROP DATABASE copy');
		leave($main, $role) if $when eq 'before';
	}
}
$main->stop;

### pg_upgrade from the older PostgreSQL in INSTAID_OLD, or else to the same version

# checksums are the default only since PostgreSQL 18
my @initdb = (extra => [ '--data-checksums', '--locale=C', '--encoding=UTF8' ]);
my $old = Clients::server('old', { @initdb, install_path => $ENV{INSTAID_OLD} });
$old->safe_psql('postgres', qq{
	SELECT instaid.create_shard('altered', 7);
	ALTER FUNCTION altered.next_id() PARALLEL SAFE;
	$shards
	$calls
	SELECT add_calls('upgraded')});
$old->safe_psql('postgres', 'SELECT take(), use()');
$old->safe_psql('postgres', qq{
	$fill
	CREATE TABLE typed AS SELECT id::instaid.id FROM light.photos;
	ALTER TABLE typed ADD PRIMARY KEY (id);
	CREATE SEQUENCE public.invoices INCREMENT 3 START 2;
	CREATE TABLE public.bills (no bigint DEFAULT instaid_tickets.next('public.invoices'));
	SELECT instaid_tickets.lease('public.invoices', 100);
	CREATE ROLE app LOGIN; CREATE ROLE dba LOGIN});
for my $installer (@installers)
{
	install_as($old, @$installer);
	leave($old, $installer->[0]);
}
$old->safe_psql('postgres', "$types;
	ALTER TABLE types.uses DROP span, DROP album; DROP TYPE types.span, types.album");
$uses = uses($old, 'postgres');
my $undo = $old->safe_psql('postgres', "SET search_path = ''; $cures \\gexec");
is($old->safe_psql('postgres', $cures), '',
	'audit() has cures for what pg_upgrade would not create, but for ranges and rows');
# a domain of the SQL edition that defaults to a shard's next_id()
SqlEdition::install($old, 'sql_edition');
$old->safe_psql('sql_edition', q{
	SET ROLE dba;
	SELECT instaid.add_sequence('insta5', 'extra_seq');
	CREATE DOMAIN insta5.id AS bigint DEFAULT insta5.next_id()
		CHECK (instaid.extract_shard_id(value) = 5);
	CREATE DOMAIN insta5.extra AS bigint DEFAULT insta5.next_id('insta5.extra_seq');
	CREATE TABLE insta5.t (id insta5.id PRIMARY KEY, extra insta5.extra);
	INSERT INTO insta5.t DEFAULT VALUES});
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
	'-B', $new->config_data('--bindir'), '-D', $new->data_dir, '-P', $new->port,
	'-s', $new->host ],
	'pg_upgrade')
  or diag(map { slurp_file($_) } glob($new->data_dir . '/pg_upgrade_output.d/*/log/*'));
$new->start;
goes_on('pg_upgrade', $new, 'postgres', %last);
cmp_ok($new->safe_psql('postgres',
	'SET client_min_messages = error; SELECT instaid.next_id()'), '>', $node_id,
	'pg_upgrade: new IDs of the node are above');
is($new->safe_psql('postgres', q{
	SET enable_seqscan = off;
	SELECT count(*), count((SELECT id FROM typed WHERE id = p.id)),
		(SELECT count(*) FROM typed WHERE id = 5)
	FROM light.photos AS p WHERE n > 0}),
	'3000|3000|0', 'pg_upgrade: columns of instaid.id, and their indexes');
$new->safe_psql('postgres', $undo);
is(uses($new, 'postgres') =~ s/ NOT VALID$//mgr, $uses,
	'pg_upgrade: types made of instaid.id, with what the cures have printed');
is($new->safe_psql('sql_edition', q{INSERT INTO insta5.t DEFAULT VALUES
	RETURNING id > (SELECT max(id) FROM insta5.t), extra > (SELECT max(extra) FROM insta5.t)}),
	't|t',
	"pg_upgrade: a domain over bigint that defaults to a shard's next_id(), in the SQL edition");
is($new->safe_psql('postgres', 'INSERT INTO public.bills DEFAULT VALUES RETURNING no'), 302,
	'pg_upgrade: a ticket goes on, and the default that uses it');
$new->stop;

done_testing();
