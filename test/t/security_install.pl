# An ordinary role can install the extensions.  A role without rights cannot make a superuser
# run its code by what it plants before, by what it does with the schemas afterwards, or by
# default privileges.  pg_regress has one database, which has the extension.
# not in: version assert_short

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use Docs;
use Mallory;

start_server();

# functions and a view that mallory creates before the extension is installed
my $fakes = q{
	CREATE FUNCTION instaid.create_shard(text, integer) RETURNS void
		LANGUAGE sql AS 'SELECT m.gain()::text::void';
	CREATE FUNCTION instaid.create_shard(text, integer) RETURNS integer
		LANGUAGE sql AS 'SELECT m.gain()';
	CREATE FUNCTION instaid.freeze_shard(text) RETURNS integer
		LANGUAGE sql AS 'SELECT m.gain()';
	CREATE FUNCTION instaid.freeze_shard(varchar) RETURNS integer
		LANGUAGE sql AS 'SELECT m.gain()';
	CREATE FUNCTION instaid.thaw_shard(text) RETURNS integer
		LANGUAGE sql AS 'SELECT m.gain()';
	CREATE FUNCTION instaid.audit(integer DEFAULT 1) RETURNS integer
		LANGUAGE sql AS 'SELECT m.gain()';
	CREATE VIEW instaid.shards AS
		SELECT ''::text AS schema_name, m.gain() AS shard_id, true AS frozen;};
# the statements of a superuser who creates a shard and moves it
my ($before) = map { $_->{text} } section_blocks('docs/moving-by-hand.md', 'Before');
ok($before, 'the documentation has statements for the target of a move');
my $follow = "$before\n" . q{
	SELECT instaid.create_shard('insta5', 5);
	SELECT instaid.freeze_shard('insta5');
	SELECT instaid.thaw_shard('insta5');
	SELECT * FROM instaid.shards;
	DROP SCHEMA insta5 CASCADE;};

### A schema that is there before

for my $empty (1, 0)
{
	my $name = database("before$empty");
	run_as('mallory', $name, 'CREATE SCHEMA instaid;');
	run_as('mallory', $name, $fakes) unless $empty;
	like(as_superuser($name, 'CREATE EXTENSION instaid'),
		qr/ERROR:  55000: schema "instaid" already exists
.*DETAIL:  It belongs to role "?mallory"?/s,
		'an existing schema is refused, '
		  . ($empty ? 'even if it is empty' : 'with objects in it'));
	run_as('mallory', $name, $fakes);
	as_superuser($name, "\\set ON_ERROR_STOP 1\n$follow");
	gained_nothing("installing the extension runs nothing in it");
	like(as_superuser($name, 'ALTER SCHEMA instaid RENAME TO theirs; CREATE EXTENSION instaid'),
		qr/\A\z/, 'after the schema is renamed, the extension can be installed');
	run_as('mallory', $name, $fakes);
	run_as('mallory', $name,
		'ALTER SCHEMA instaid RENAME TO ours; ALTER SCHEMA theirs RENAME TO instaid');
	as_superuser($name, $follow);
	gained_nothing('after the schema is renamed, the extension can be installed, and the old'
		  . ' schema cannot take its place');
}

### Installed by a superuser, by mallory, and by mallory with default privileges

for my $installer ('superuser', 'mallory', 'mallory_with_defaults')
{
	my $name = database("by_$installer");
	run_as('mallory', $name, q{
		ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO PUBLIC, mallory;
		ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO mallory})
	  if $installer eq 'mallory_with_defaults';
	is($installer eq 'superuser' ? as_superuser($name, 'CREATE EXTENSION instaid')
		: run_as('mallory', $name, 'CREATE EXTENSION instaid'),
		'', "the extension is installed by $installer");
	as_superuser($name, q{SELECT instaid.create_shard('insta5', 5)});

	run_as('mallory', $name, $fakes);
	as_superuser($name, $follow);
	gained_nothing("the extension is installed by $installer: mallory cannot add objects to its"
		  . " schema");
	run_as('mallory', $name, qq{
		ALTER SCHEMA instaid RENAME TO ours;
		DROP SCHEMA instaid CASCADE;
		ALTER EXTENSION instaid SET SCHEMA m;
		ALTER EXTENSION instaid DROP SCHEMA instaid;
		ALTER SCHEMA instaid RENAME TO ours;
		CREATE SCHEMA instaid; $fakes});
	as_superuser($name, $follow);
	gained_nothing("the extension is installed by $installer, and cannot replace the schema");
	is($node->safe_psql($name, q{
		SELECT n.nspname FROM pg_namespace AS n
		WHERE n.nspname ~ '^instaid'
		  AND (NOT (SELECT rolsuper FROM pg_roles AS r WHERE r.oid = n.nspowner)
			OR n.nspname = 'instaid' AND (has_schema_privilege('mallory', n.oid, 'CREATE')
				OR has_schema_privilege('alice', n.oid, 'CREATE')))}),
		'', "the extension is installed by $installer, and the schemas belong to a superuser");

	next if $installer eq 'superuser';
	# She owns the extension and can drop it.  A superuser who follows the documentation
	# stops at the first statement.
	run_as('mallory', $name, "DROP EXTENSION instaid CASCADE; CREATE SCHEMA instaid; $fakes");
	like(as_superuser($name, "\\set ON_ERROR_STOP 1\n$follow"),
		qr/ERROR:  55000: schema "instaid" already exists/, 'a schema in its place is refused');
	gained_nothing('a schema in its place is refused, before anything in it is run');
	like(as_superuser($name, 'DROP SCHEMA instaid CASCADE; CREATE EXTENSION instaid'),
		qr/\A(NOTICE:.*\n(DETAIL:.*\n|and .*\n|drop .*\n|LOCATION:.*\n)*)?\z/,
		'the extension can be installed again');
}
like(as_superuser('by_superuser',
	'DROP EXTENSION instaid CASCADE; CREATE EXTENSION instaid SCHEMA m'),
	qr/ERROR:  0A000: .* must be installed in schema/, 'the schema cannot be chosen');
is(as_superuser('by_superuser',
	'CREATE EXTENSION instaid; DROP EXTENSION instaid; CREATE EXTENSION instaid'), '',
	'the extension can be dropped, and installed again');

### Default privileges, which somebody has set before, give no right on objects of the extensions

my $superuser = $node->safe_psql('postgres', 'SELECT current_user');
$node->safe_psql('postgres', 'CREATE ROLE bo LOGIN; CREATE ROLE dba SUPERUSER LOGIN');

# members of the extensions
my $members = q{pg_depend AS d
	JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname ~ '^instaid'
		AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'};
# who has which right on each member, now and in pg_init_privs
my $rights = qq{
	SELECT i.type, i.identity, r.kind, x.grantor::regrole,
		CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END,
		x.privilege_type, x.is_grantable, o.owner::regrole
	FROM $members
	JOIN (SELECT tableoid AS class, oid, 'n' AS type, nspowner AS owner, nspacl AS acl
		  FROM pg_namespace
		  UNION ALL SELECT tableoid, oid, CASE relkind WHEN 'S' THEN 's' ELSE 'r' END,
			relowner, relacl FROM pg_class
		  UNION ALL SELECT tableoid, oid, 'f', proowner, proacl FROM pg_proc
		  UNION ALL SELECT tableoid, oid, 'T', typowner, typacl FROM pg_type
		  UNION ALL SELECT tableoid, oid, 'l', lanowner, lanacl FROM pg_language
		  UNION ALL SELECT tableoid, oid, 'F', fdwowner, fdwacl FROM pg_foreign_data_wrapper) AS o
		ON o.class = d.classid AND o.oid = d.objid
	LEFT JOIN pg_init_privs AS p
		ON p.classoid = d.classid AND p.objoid = d.objid AND p.objsubid = 0
	CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS i
	CROSS JOIN LATERAL (VALUES ('now', o.acl), ('initial', p.initprivs)) AS r (kind, acl)
	CROSS JOIN LATERAL aclexplode(coalesce(r.acl, acldefault(o.type::"char", o.owner))) AS x
	ORDER BY 1, 2, 3, 4, 5, 6};
# members that can have rights, and are not in that list
my $missing = qq{
	SELECT DISTINCT d.classid::regclass FROM $members
	WHERE d.classid::regclass::text NOT IN ('pg_namespace', 'pg_class', 'pg_proc', 'pg_type',
		'pg_language', 'pg_foreign_data_wrapper', 'pg_cast')};

my @extensions = ('instaid', 'instaid_tickets', 'instaid_adopt');

# Statements that grant everything to the role bo and to everybody: in general, and in schemas,
# the one of the control file and those that the script makes
sub hostile_defaults
{
	my $sql = join '', map { "CREATE SCHEMA $_;" } @extensions;
	for my $role ($superuser, 'dba', 'mallory')
	{
		for my $schema ('', map { "IN SCHEMA $_" } 'pg_catalog', @extensions)
		{
			for my $kind ('TABLES', 'SEQUENCES', 'FUNCTIONS', 'TYPES', $schema ? () : 'SCHEMAS')
			{
				my $alter = "ALTER DEFAULT PRIVILEGES FOR ROLE $role $schema GRANT ALL ON $kind";
				$sql .= "$alter TO bo, pg_database_owner WITH GRANT OPTION; $alter TO PUBLIC;";
			}
		}
	}
	return "$sql DROP SCHEMA " . join ', ', @extensions;
}

# Statements that take from PUBLIC what it has by itself
sub taken_defaults
{
	my $sql = '';
	for my $role ($superuser, 'dba', 'mallory')
	{
		$sql .= "ALTER DEFAULT PRIVILEGES FOR ROLE $role REVOKE ALL ON $_ FROM PUBLIC;"
		  for 'FUNCTIONS', 'TYPES';
	}
	return $sql;
}

my $number = 0;
my $expected;
for my $installer ($superuser, 'dba', 'mallory')
{
	my %seen;
	for my $defaults ('fresh', 'hostile', 'taken')
	{
		my $name = 'defaults' . ++$number;
		$node->safe_psql('postgres',
			"CREATE DATABASE $name; GRANT CREATE ON DATABASE $name TO mallory");
		$node->safe_psql($name, hostile_defaults()) if $defaults eq 'hostile';
		is(run_as($installer, $name, join ';', map { "CREATE EXTENSION $_" } @extensions), '',
			"$installer installs the extensions, with $defaults default privileges");
		$seen{$defaults} = $node->safe_psql($name, $rights);
		is($node->safe_psql($name, $missing), '',
			"$installer installs the extensions, with $defaults default privileges, and no"
			  . " member is of another kind");
	}
	is($seen{hostile}, $seen{fresh}, "$installer installs the extensions, which give no rights");
	is($seen{taken}, $seen{fresh}, "$installer installs the extensions, and take none");
	unlike($seen{fresh}, qr/\|bo\|/, "$installer installs the extensions, to another role");
	# no role that can be dropped is in pg_init_privs
	unlike($seen{fresh}, qr/mallory|dba/,
		"$installer installs the extensions, and the installer is not a part of an extension");
	$expected //= $seen{fresh};
	is($seen{fresh}, $expected,
		"$installer installs the extensions, whose objects belong to the same role, whatever"
		  . " role installs it");
	like(run_as('bo', "defaults$number", "CREATE FUNCTION $_.f() RETURNS void LANGUAGE sql AS ''"),
		qr/permission denied for schema $_\n/,
		"$installer installs the extensions, and another role cannot add a function to $_")
	  for @extensions;
}

### An ordinary role owns a database, and dumps and restores it

my %owner = (theirs => 'alice', restored => 'alice', other => 'victim');
$node->safe_psql('postgres', "CREATE DATABASE $_ OWNER $owner{$_}") for sort keys %owner;
is(run_as('alice', 'theirs', q{
	CREATE EXTENSION instaid;
	CREATE EXTENSION instaid_tickets;
	SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id());
	INSERT INTO insta5.photos DEFAULT VALUES;
	SELECT instaid_tickets.create('insta5.ticket', 2, 3);}),
	"\ninsta5.ticket\n", 'an ordinary role uses the extensions');
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
my %database = map { $_ => $node->connstr($_) . " user=$owner{$_}" } keys %owner;
command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $database{theirs} ],
'an ordinary role uses the extensions: dumps its database');
command_ok([ 'pg_restore', '-e', '-j', '2', '-d', $database{restored}, $dump ],
	'an ordinary role uses the extensions: restores it');
command_ok([ 'pg_restore', '-e', '--no-owner', '-d', $database{other}, $dump ],
	'an ordinary role uses the extensions, and another role restores it');
for my $name ('restored', 'other')
{
	is(run_as($owner{$name}, $name, q{
		SELECT instaid.extract_shard_id(insta5.next_id());
		SELECT instaid_tickets.next('insta5.ticket');}),
		"5\n2\n", "an ordinary role uses the extensions, with shard and ticket, in $name");
	is($node->safe_psql($name, q{
		SELECT rolsuper, count(*) FROM pg_namespace JOIN pg_roles AS r ON r.oid = nspowner
		WHERE nspname IN ('instaid', 'instaid_tickets') GROUP BY 1}),
		't|2', 'an ordinary role uses the extensions, and the schemas belong to a superuser');
}

$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP:|XX000|PANIC/, 'the server logged no error of its own');
done_testing();
