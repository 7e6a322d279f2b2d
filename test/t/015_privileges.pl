# A role without rights cannot make a superuser run its code, or change objects of
# another role.
#
# The role mallory can create schemas.  She plants code where a superuser who follows
# the documentation could run it: by installing the extension, by moving, freezing or
# adopting shards, by creating partitions, or by asking other servers.  Her code makes
# her a superuser if it runs with a superuser's rights, or can get them back.  Another
# role, victim, owns objects that nothing of hers may change.  pg_regress has one
# session and one database.

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "log_statement = none\nautovacuum = off\nlock_timeout = '20s'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE mallory LOGIN; CREATE ROLE alice LOGIN; CREATE ROLE victim LOGIN');

# Run statements in a database as a role; return what psql says.
sub run_as
{
	my ($role, $database, $sql) = @_;
	my ($stdout, $stderr) = ('', '');
	IPC::Run::run([ 'psql', '-XAtq', '-d', $node->connstr($database) . " user=$role" ],
		'<', \"\\set VERBOSITY verbose\n$sql", '>', \$stdout, '2>', \$stderr);
	return "$stdout$stderr";
}

sub as_superuser
{
	my ($database, $sql) = @_;
	my $superuser = $node->safe_psql('postgres', 'SELECT rolname FROM pg_roles WHERE oid = 10');
	return run_as($superuser, $database, $sql);
}

# Test that no role has become a superuser.
sub gained_nothing
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($node->safe_psql('postgres', q{SELECT rolname FROM pg_roles WHERE rolsuper AND rolname IN ('mallory', 'alice', 'victim')}), '', $name);
	return $node->safe_psql('postgres', 'ALTER ROLE mallory NOSUPERUSER');
}

# A database in which mallory has a schema with the code that she plants.  This code
# goes on after errors, and tries to get back to the role that logged in.
sub database
{
	my ($name, $extension) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name; GRANT CREATE ON DATABASE $name TO mallory, alice, victim");
	$node->safe_psql($name, 'CREATE EXTENSION instaid') if $extension;
	run_as('mallory', $name, q{
		CREATE SCHEMA m;
		-- VOLATILE, since it writes; indexes and CHECKs call it by functions that are marked IMMUTABLE
		CREATE FUNCTION m.attempt() RETURNS integer LANGUAGE plpgsql AS $$
		DECLARE
			attempt text;
		BEGIN
			FOREACH attempt IN ARRAY ARRAY['ALTER ROLE mallory SUPERUSER', 'RESET ROLE', 'ALTER ROLE mallory SUPERUSER',
				'RESET SESSION AUTHORIZATION', 'ALTER ROLE mallory SUPERUSER'] LOOP
				BEGIN
					EXECUTE attempt;
				EXCEPTION WHEN OTHERS THEN
				END;
			END LOOP;
			RETURN 1;
		END $$;
		CREATE FUNCTION m.gain() RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN m.attempt(); END $$;
		CREATE FUNCTION m.gain(bigint) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN m.gain(); END $$;});
	as_superuser($name, 'SELECT m.gain()');
	is($node->safe_psql('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'}), 't', "$name: the code gains if a superuser runs it");
	$node->safe_psql('postgres', 'ALTER ROLE mallory NOSUPERUSER');
	return $name;
}

### The schema of the extension

# functions and a view that mallory creates before the extension is installed
my $fakes = q{
	CREATE FUNCTION instaid.create_shard(text, integer) RETURNS void LANGUAGE sql AS 'SELECT m.gain()::text::void';
	CREATE FUNCTION instaid.create_shard(text, integer) RETURNS integer LANGUAGE sql AS 'SELECT m.gain()';
	CREATE FUNCTION instaid.freeze_shard(text) RETURNS integer LANGUAGE sql AS 'SELECT m.gain()';
	CREATE FUNCTION instaid.freeze_shard(varchar) RETURNS integer LANGUAGE sql AS 'SELECT m.gain()';
	CREATE FUNCTION instaid.thaw_shard(text) RETURNS integer LANGUAGE sql AS 'SELECT m.gain()';
	CREATE FUNCTION instaid.audit(integer DEFAULT 1) RETURNS integer LANGUAGE sql AS 'SELECT m.gain()';
	CREATE VIEW instaid.shards AS SELECT ''::text AS schema_name, m.gain() AS shard_id, true AS frozen;};
# the statements of a superuser who creates a shard and moves it
my ($before) = map { $_->{text} } section_blocks('docs/moving-a-shard.md', 'Before');
ok($before, 'the documentation has statements for the target of a move');
my $follow = "$before\n" . q{
	SELECT instaid.create_shard('insta5', 5);
	SELECT instaid.freeze_shard('insta5');
	SELECT instaid.thaw_shard('insta5');
	SELECT * FROM instaid.shards;
	DROP SCHEMA insta5 CASCADE;};

for my $empty (1, 0)
{
	my $name = database("before$empty");
	run_as('mallory', $name, 'CREATE SCHEMA instaid;');
	run_as('mallory', $name, $fakes) unless $empty;
	like(as_superuser($name, 'CREATE EXTENSION instaid'), qr/ERROR:  55000: schema "instaid" already exists\n.*DETAIL:  It belongs to role "?mallory"?/s,
		'an existing schema is refused, ' . ($empty ? 'even if it is empty' : 'with objects in it'));
	run_as('mallory', $name, $fakes);
	as_superuser($name, "\\set ON_ERROR_STOP 1\n$follow");
	gained_nothing('... and installing the extension runs nothing in it');
	like(as_superuser($name, 'ALTER SCHEMA instaid RENAME TO theirs; CREATE EXTENSION instaid'), qr/\A\z/, 'after the schema is renamed, the extension can be installed');
	run_as('mallory', $name, $fakes);
	run_as('mallory', $name, 'ALTER SCHEMA instaid RENAME TO ours; ALTER SCHEMA theirs RENAME TO instaid');
	as_superuser($name, $follow);
	gained_nothing('... and the old schema cannot take its place');
}

# installed by a superuser, by mallory, and by mallory with default privileges
for my $installer ('superuser', 'mallory', 'mallory_with_defaults')
{
	my $name = database("by_$installer");
	run_as('mallory', $name, 'ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO PUBLIC, mallory; ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO mallory')
	  if $installer eq 'mallory_with_defaults';
	is($installer eq 'superuser' ? as_superuser($name, 'CREATE EXTENSION instaid') : run_as('mallory', $name, 'CREATE EXTENSION instaid'),
		'', "the extension is installed by $installer");
	as_superuser($name, q{SELECT instaid.create_shard('insta5', 5)});

	run_as('mallory', $name, $fakes);
	as_superuser($name, $follow);
	gained_nothing('... mallory cannot add objects to its schema');
	run_as('mallory', $name, qq{ALTER SCHEMA instaid RENAME TO ours; DROP SCHEMA instaid CASCADE;
		ALTER EXTENSION instaid SET SCHEMA m; ALTER EXTENSION instaid DROP SCHEMA instaid; ALTER SCHEMA instaid RENAME TO ours;
		CREATE SCHEMA instaid; $fakes});
	as_superuser($name, $follow);
	gained_nothing('... and cannot replace the schema');
	is($node->safe_psql($name, q{
			SELECT n.nspname FROM pg_namespace AS n
			WHERE n.nspname ~ '^instaid'
			  AND (NOT (SELECT rolsuper FROM pg_roles AS r WHERE r.oid = n.nspowner)
			       OR n.nspname = 'instaid' AND (has_schema_privilege('mallory', n.oid, 'CREATE') OR has_schema_privilege('alice', n.oid, 'CREATE')))}),
		'', '... and the schemas belong to a superuser');

	# the schema of the tickets
	next if $installer eq 'superuser';
	is(run_as('mallory', $name, q{SELECT instaid.create_ticket('photos'); SELECT instaid.next_ticket('photos');
			GRANT CREATE ON SCHEMA instaid_tickets TO alice}),
		"instaid_tickets.photos\n1\n", 'the installer may create tickets');
	is(run_as('alice', $name, q{SELECT instaid.create_ticket('likes'); SELECT instaid.next_ticket('likes');}),
		"instaid_tickets.likes\n1\n", '... and can grant this right');
	run_as('mallory', $name, q{
		ALTER SCHEMA instaid_tickets RENAME TO ours;
		CREATE SCHEMA instaid_tickets;
		CREATE VIEW instaid_tickets.photos AS SELECT m.gain()::bigint AS last_value, 0::bigint AS log_cnt, true AS is_called;
		CREATE VIEW instaid_tickets.planted AS SELECT m.gain()::bigint AS last_value, 0::bigint AS log_cnt, true AS is_called;
		CREATE FUNCTION instaid_tickets.int8eq(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT m.gain() = 1';
		CREATE OPERATOR instaid_tickets.= (FUNCTION = instaid_tickets.int8eq, LEFTARG = bigint, RIGHTARG = bigint);});
	for my $ticket ('photos', 'planted', 'likes')
	{
		as_superuser($name, qq{
			SELECT * FROM instaid.tickets; SELECT * FROM instaid.segments; SELECT instaid.next_ticket('$ticket');
			SELECT instaid.lease_ticket('$ticket', 5); SELECT instaid.guard_ticket('$ticket', 1000);
			SELECT instaid.restripe_ticket('$ticket', 1, 2, 1000); SELECT * FROM instaid.audit(); SELECT instaid.drop_ticket('$ticket');});
	}
	gained_nothing('code in the schema of the tickets is not run');
	is($node->safe_psql($name, q{SELECT count(*) FROM pg_namespace WHERE nspname = 'ours'}), 0, '... and the schema is not renamed');

	# She owns the extension and can drop it.  A superuser who follows the documentation
	# stops at the first statement.
	run_as('mallory', $name, "DROP EXTENSION instaid CASCADE; CREATE SCHEMA instaid; $fakes");
	like(as_superuser($name, "\\set ON_ERROR_STOP 1\n$follow"), qr/ERROR:  55000: schema "instaid" already exists/, 'a schema in its place is refused');
	gained_nothing('... before anything in it is run');
	like(as_superuser($name, 'DROP SCHEMA instaid CASCADE; CREATE EXTENSION instaid'), qr/\A(NOTICE:.*\n(DETAIL:.*\n|and .*\n|drop .*\n|LOCATION:.*\n)*)?\z/, 'the extension can be installed again');
}
like(as_superuser('by_superuser', 'DROP EXTENSION instaid CASCADE; CREATE EXTENSION instaid SCHEMA m'), qr/ERROR:  0A000: .* must be installed in schema/,
	'the schema cannot be chosen');
is(as_superuser('by_superuser', 'CREATE EXTENSION instaid; DROP EXTENSION instaid; CREATE EXTENSION instaid'), '', 'the extension can be dropped, and installed again');

# Default privileges, which somebody has set before, give no right on objects of the extension.
{
	my $superuser = $node->safe_psql('postgres', 'SELECT rolname FROM pg_roles WHERE oid = 10');
	$node->safe_psql('postgres', 'CREATE ROLE bo LOGIN; CREATE ROLE dba SUPERUSER LOGIN');
	# who has which right on each member of the extension, now and in pg_init_privs
	my $rights = q{
		SELECT i.type, i.identity, r.kind, x.grantor::regrole, CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END,
		       x.privilege_type, x.is_grantable, o.owner::regrole
		FROM pg_depend AS d
		     JOIN (SELECT tableoid AS class, oid, 'n' AS type, nspowner AS owner, nspacl AS acl FROM pg_namespace
		           UNION ALL SELECT tableoid, oid, CASE relkind WHEN 'S' THEN 's' ELSE 'r' END, relowner, relacl FROM pg_class
		           UNION ALL SELECT tableoid, oid, 'f', proowner, proacl FROM pg_proc
		           UNION ALL SELECT tableoid, oid, 'T', typowner, typacl FROM pg_type
		           UNION ALL SELECT tableoid, oid, 'l', lanowner, lanacl FROM pg_language
		           UNION ALL SELECT tableoid, oid, 'F', fdwowner, fdwacl FROM pg_foreign_data_wrapper) AS o
		          ON o.class = d.classid AND o.oid = d.objid
		     LEFT JOIN pg_init_privs AS p ON p.classoid = d.classid AND p.objoid = d.objid AND p.objsubid = 0
		     CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS i
		     CROSS JOIN LATERAL (VALUES ('now', o.acl), ('initial', p.initprivs)) AS r (kind, acl)
		     CROSS JOIN LATERAL aclexplode(coalesce(r.acl, acldefault(o.type::"char", o.owner))) AS x
		WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
		  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'instaid')
		ORDER BY 1, 2, 3, 4, 5, 6};
	# members that can have rights, and are not in that list
	my $missing = q{
		SELECT DISTINCT d.classid::regclass FROM pg_depend AS d
		WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
		  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'instaid')
		  AND d.classid::regclass::text NOT IN ('pg_namespace', 'pg_class', 'pg_proc', 'pg_type', 'pg_language', 'pg_foreign_data_wrapper', 'pg_cast')};
	my @kinds = ('TABLES', 'SEQUENCES', 'FUNCTIONS', 'TYPES');
	my $number = 0;
	my $expected;
	for my $installer ($superuser, 'dba', 'mallory')
	{
		my %seen;
		for my $defaults ('fresh', 'hostile')
		{
			my $name = 'defaults' . ++$number;
			$node->safe_psql('postgres', qq{CREATE DATABASE $name; GRANT CREATE ON DATABASE $name TO mallory});
			# in general, and in schemas: the one of the control file, and those that the script makes
			$node->safe_psql($name, 'CREATE SCHEMA instaid; CREATE SCHEMA instaid_tickets;' . join('', map {
				my $role = $_;
				map {
					my $schema = $_;
					map { "ALTER DEFAULT PRIVILEGES FOR ROLE $role $schema GRANT ALL ON $_ TO bo WITH GRANT OPTION;
						ALTER DEFAULT PRIVILEGES FOR ROLE $role $schema GRANT ALL ON $_ TO PUBLIC;" } @kinds, $schema ? () : 'SCHEMAS';
				} '', 'IN SCHEMA pg_catalog', 'IN SCHEMA instaid', 'IN SCHEMA instaid_tickets';
			} $superuser, 'dba', 'mallory') . 'DROP SCHEMA instaid, instaid_tickets') if $defaults eq 'hostile';
			is(run_as($installer, $name, 'CREATE EXTENSION instaid'), '', "$installer installs the extension, with $defaults default privileges");
			$seen{$defaults} = $node->safe_psql($name, $rights);
			is($node->safe_psql($name, $missing), '', '... and no member is of another kind');
		}
		is($seen{hostile}, $seen{fresh}, "... which give no rights");
		unlike($seen{fresh}, qr/\|bo\|/, '... to another role');
		# no role that can be dropped is in pg_init_privs, and only the installer's own rights differ
		unlike($seen{fresh}, qr/\|initial\|.*(?:mallory|dba)/, '... and the installer is not a part of the extension');
		my $common = join "\n", grep { !/\|now\|[^|]*\|mallory\|/ } split /\n/, $seen{fresh};
		$expected //= $common;
		is($common, $expected, '... whose objects belong to the same role, whatever role installs it');
		is(run_as('bo', "defaults$number", q{CREATE FUNCTION instaid.adopt_column(text, text) RETURNS void LANGUAGE sql AS ''}) =~ s/.*(permission denied for schema instaid)\n.*/$1/sr,
			'permission denied for schema instaid', '... and another role cannot add a function');
	}
}

# An ordinary role owns a database, and dumps and restores it.
$node->safe_psql('postgres', 'CREATE DATABASE theirs OWNER alice; CREATE DATABASE restored OWNER alice; CREATE DATABASE other OWNER victim');
is(run_as('alice', 'theirs', q{
		CREATE EXTENSION instaid;
		SELECT instaid.create_shard('insta5', 5);
		CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id());
		INSERT INTO insta5.photos DEFAULT VALUES;
		SELECT instaid.create_ticket('photos', 2, 3);}), "\ninstaid_tickets.photos\n", 'an ordinary role uses the extension');
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
command_ok([ 'pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('theirs') . ' user=alice' ], '... dumps its database');
command_ok([ 'pg_restore', '-e', '-j', '2', '-d', $node->connstr('restored') . ' user=alice', $dump ], '... restores it');
command_ok([ 'pg_restore', '-e', '--no-owner', '-d', $node->connstr('other') . ' user=victim', $dump ], '... and another role restores it');
for my $copy ([ 'restored', 'alice' ], [ 'other', 'victim' ])
{
	my ($name, $role) = @$copy;
	is(run_as($role, $name, q{SELECT instaid.extract_shard_id(insta5.next_id()); SELECT instaid.next_ticket('photos'); SELECT instaid.create_ticket('new')}),
		"5\n2\ninstaid_tickets.new\n", "... with shard and tickets, in $name");
	is($node->safe_psql($name, q{SELECT rolsuper FROM pg_namespace JOIN pg_roles AS r ON r.oid = nspowner WHERE nspname = 'instaid'}), 't',
		'... and the schema belongs to a superuser');
}

### What a role sees that has only pg_monitor

# the same as a superuser: the alerts of the documentation
$node->safe_psql('postgres', 'CREATE ROLE watcher LOGIN IN ROLE pg_monitor; CREATE DATABASE watched');
$node->safe_psql('watched', q{
	CREATE EXTENSION instaid;
	SET client_min_messages = error;
	SELECT instaid.create_shard('frozen', 1), instaid.create_shard('ahead', 2), instaid.create_ticket('near'), instaid.next_ticket('near');
	SELECT instaid.freeze_shard('frozen'), instaid.guard_ticket('near', 1000);
	CREATE SEQUENCE ahead.likes_id_seq;
	CREATE TABLE ahead.likes (id bigint DEFAULT ahead.next_id('ahead.likes_id_seq'));
	SELECT setval(sequence, (extract(epoch FROM now() + interval '1 h') * 1000)::bigint << 10) FROM instaid.shard_sequences('ahead') AS sequence});
my @alerts = grep { /^FROM instaid\.(?:shards|tickets)/m } map { $_->{text} } section_blocks('docs/operations.md', 'What to watch');
is(scalar(@alerts), 3, 'the documentation has queries for shards, for sequences and for tickets');
for my $alert (@alerts)
{
	my $shown = run_as('watcher', 'watched', $alert) =~ s/00:\d\d:[\d.]+/TIME/gr;
	is($shown, as_superuser('watched', $alert) =~ s/00:\d\d:[\d.]+/TIME/gr, 'a member of pg_monitor sees the alerts');
	unlike($shown, qr/\A\s*\z|ERROR/, '... and there are some');
}

### Objects of other roles, in one database

my $db = database('shards', 1);
$node->safe_psql($db, q{
	SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.users (id serial PRIMARY KEY, name text);
	INSERT INTO insta5.users (name) VALUES ('a'), ('b');
	GRANT USAGE ON SCHEMA insta5 TO mallory;
	GRANT REFERENCES ON insta5.users TO mallory;});

# adopt_column(): mallory has a table that refers to a table of another role.  Its CHECK
# and its index would run her code if the table were rewritten.
for my $type ('integer', 'bigint')
{
	run_as('mallory', $db, qq{
		CREATE TABLE m.t (n integer, user_id $type REFERENCES insta5.users, CHECK (m.gain(user_id) = 1));
		CREATE INDEX ON m.t (m.gain(user_id));
		INSERT INTO m.t VALUES (1, 1);});
	for my $dry_run ('true', 'false')
	{
		like(as_superuser($db, "SELECT * FROM instaid.adopt_column('insta5.users', 'id', $dry_run)"),
			qr/ERROR:  0A000: .*cannot be widened\nDETAIL:  .*m\.t.*mallory/s, "adopt_column(): a referring table of another owner is in the way, $type, dry_run $dry_run");
		gained_nothing('... and runs no code of hers');
	}
	run_as('mallory', $db, 'DROP TABLE m.t');
}
# her own table, which a superuser adopts for her
is(run_as('mallory', $db, q{
		SELECT instaid.create_shard('m', 6);
		CREATE TABLE m.users (id serial PRIMARY KEY, CHECK (m.gain(id) = 1));
		CREATE INDEX ON m.users (m.gain(id));
		CREATE INDEX ON m.users ((m.gain())) ;
		INSERT INTO m.users DEFAULT VALUES;
		CREATE TABLE m.refers (user_id integer REFERENCES m.users, CHECK (m.gain(user_id) = 1));
		INSERT INTO m.refers VALUES (1);}), "\n", 'mallory has a shard of her own');
as_superuser($db, "SELECT * FROM instaid.adopt_column('m.users', 'id', true)");
gained_nothing('adopt_column() of her own table, dry_run');
like(as_superuser($db, "SELECT * FROM instaid.adopt_column('m.users', 'id')"), qr/SET DEFAULT m\.next_id\(\)/, 'adopt_column() of her own table');
gained_nothing('... runs with her rights');
is($node->safe_psql($db, q{SELECT atttypid::regtype FROM pg_attribute WHERE attrelid = 'm.refers'::regclass AND attname = 'user_id'}), 'bigint', '... and changes the type');
# a child table of another owner
is(as_superuser($db, q{CREATE TABLE insta5.parent (id bigint); CREATE TABLE m.child () INHERITS (insta5.parent); ALTER TABLE m.child OWNER TO mallory}), '', 'a child table of mallory\'s');
run_as('mallory', $db, 'ALTER TABLE m.child ADD CHECK (m.gain(id) = 1); CREATE INDEX ON m.child ((m.gain()))');
like(as_superuser($db, q{SELECT * FROM instaid.adopt_column('insta5.parent', 'id', true)}), qr/ERROR:  0A000: .*\nDETAIL:  .*m\.child.*mallory/, '... is in the way');
gained_nothing('... and runs no code of hers');
# It is refused before anything is locked.
my $holder = Clients::session($node);
$holder->('\c ' . $db);
$holder->('BEGIN; LOCK TABLE insta5.users, m.users');
like(run_as('mallory', $db, q{SET lock_timeout = '5s'; SELECT * FROM instaid.adopt_column('insta5.users', 'id')}), qr/ERROR:  42501: must be owner of table insta5\.users/,
	'a role that does not own a table does not wait for its lock');
like(run_as('alice', $db, q{SET lock_timeout = '5s'; SELECT * FROM instaid.adopt_column('m.users', 'id')}), qr/ERROR:  42501: /, '... and another role does not, either');
$holder->('ROLLBACK');

# adopt_shard(): an old function of mallory
my $old = q{CREATE SCHEMA %1$s; CREATE SEQUENCE %1$s.table_id_seq;
	CREATE FUNCTION %1$s.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
	BEGIN
		%3$s
		RETURN ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23) | (%2$s << 10) | nextval('%1$s.table_id_seq') %% 1024;
	END $$;};
is(run_as('mallory', $db, sprintf($old, 'm4', 4, 'PERFORM m.gain();') . q{
		CREATE TABLE m4.t (id bigint DEFAULT m4.next_id());
		CREATE INDEX ON m4.t ((m.gain()));
		INSERT INTO m4.t DEFAULT VALUES;}), '', 'mallory has a copy of the published function');
like(as_superuser($db, q{SELECT instaid.adopt_shard('m4', 4)}), qr/NOTICE:  .*IDs of schema m4 go on above/, 'adopt_shard() of its schema');
gained_nothing('... runs with her rights');
is($node->safe_psql($db, q{SELECT instaid.extract_shard_id(m4.next_id()), (SELECT string_agg(DISTINCT proowner::regrole::text, ' ') FROM pg_proc
	WHERE pronamespace = 'm4'::regnamespace)}), '4|mallory', '... and the functions stay hers');
# ... with a sequence that is not hers
is(run_as('victim', $db, q{CREATE SCHEMA v; GRANT USAGE ON SCHEMA v TO PUBLIC; CREATE SEQUENCE v.invoices START 7; SELECT nextval('v.invoices')}), "7\n", 'victim has a sequence');
run_as('mallory', $db, sprintf($old, 'm7', 7, ''));
like(as_superuser($db, q{SELECT instaid.adopt_shard('m7', 7, sequence => 'v.invoices')}), qr/ERROR:  42501: .*v\.invoices/, 'adopt_shard() leaves a sequence of another owner alone');
is(run_as('victim', $db, q{SELECT nextval('v.invoices')}), "8\n", '... and the sequence goes on');
# ... if mallory's table uses the function of another role
is(run_as('alice', $db, sprintf($old, 'a8', 8, '') . q{
		GRANT USAGE ON SCHEMA a8 TO PUBLIC;
		CREATE TABLE a8.t (id bigint DEFAULT a8.next_id()); INSERT INTO a8.t DEFAULT VALUES;}), '', 'alice has a copy of the published function');
run_as('mallory', $db, q{CREATE TABLE m.far (id bigint DEFAULT a8.next_id()); INSERT INTO m.far VALUES (9223372036854775807); CREATE INDEX ON m.far ((m.gain()))});
$holder->('SET ROLE mallory; BEGIN; LOCK TABLE m.far');
for my $role ('alice', 'superuser')
{
	my $adopt = q{BEGIN; SET LOCAL lock_timeout = '5s'; SELECT instaid.adopt_shard('a8', 8); SELECT instaid.extract_shard_id(a8.next_id()); ROLLBACK;};
	like($role eq 'alice' ? run_as('alice', $db, $adopt) : as_superuser($db, $adopt),
		qr/^8$.*WARNING:  .*other owners.*m\.far/ms, "adopt_shard() by $role leaves out tables of other roles that use the function");
}
$holder->('ROLLBACK; RESET ROLE');
gained_nothing('... and runs no code of theirs');

# ... and a superuser's function in mallory's schema is not called by its name, which she can
# give to another one while adopt_shard() waits for her table
run_as('mallory', $db, 'CREATE SCHEMA m11; GRANT ALL ON SCHEMA m11 TO PUBLIC');
as_superuser($db, (sprintf($old, 'm11', 111, '') =~ s/CREATE SCHEMA m11;//r));
my $adopt = q{SELECT instaid.adopt_shard('m11', 111)};
like(as_superuser($db, $adopt), qr/ERROR:  55000: schema m11 belongs to another role\n.*HINT:  .*ALTER FUNCTION m11\.next_id\(\) OWNER TO mallory;/s,
	'adopt_shard() leaves a superuser\'s function in her schema alone');
as_superuser($db, 'ALTER FUNCTION m11.next_id() OWNER TO mallory; ALTER SEQUENCE m11.table_id_seq OWNER TO mallory');
is(as_superuser($db, "$adopt; SELECT instaid.extract_shard_id(m11.next_id())"), "\n111\n", '... until it is hers');

# create_shard(): a schema that she makes in the meantime
{
	$holder->('SET ROLE mallory; BEGIN; SELECT instaid._lock_shard_id(\'m\', 112)');
	my $waiting = $node->background_psql($db, on_error_stop => 0);
	$waiting->query_until(qr/asked/, "\\echo asked\nSELECT instaid.create_shard('m12', 112);\n\\echo done\n");
	$node->poll_query_until($db, q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted}) or die 'nobody waits';
	run_as('mallory', $db, 'CREATE SCHEMA m12; GRANT ALL ON SCHEMA m12 TO PUBLIC');
	$holder->('COMMIT; RESET ROLE');
	$waiting->query_until(qr/done/, '');
	$waiting->quit;
	is($node->safe_psql($db, q{SELECT count(*) FROM pg_proc WHERE pronamespace = 'm12'::regnamespace}), '0', 'a superuser\'s create_shard() does not use a schema that mallory has made meanwhile');
}

# adopt_column(): what its hints grant
$node->safe_psql($db, q{CREATE TABLE insta5.notes (id bigint PRIMARY KEY DEFAULT 0); GRANT SELECT ON insta5.notes TO mallory});
run_as('mallory', $db, q{
	CREATE VIEW m.notes AS SELECT id FROM insta5.notes; GRANT INSERT ON m.notes TO PUBLIC;
	SET check_function_bodies = off;
	CREATE SCHEMA m13;
	CREATE FUNCTION m13.next_ids(count integer, sequence regclass DEFAULT 'v.invoices') RETURNS SETOF bigint LANGUAGE instaid STRICT COST 1
		AS 'shard 113, epoch 2011-08-24 21:07:01.721+00';
	CREATE FUNCTION m13.next_id() RETURNS bigint LANGUAGE instaid STRICT COST 1 AS 'as next_ids(integer, regclass)';
	CREATE TABLE m13.t (id bigint);});
unlike(as_superuser($db, "SELECT * FROM instaid.adopt_column('$_', 'id', true)"), qr/GRANT/, "adopt_column() of $_ grants nothing to mallory, nor to everybody for her")
  for 'insta5.notes', 'm13.t';

# create_partitions(): a table of mallory, with an index on her function
is(run_as('mallory', $db, q{
		CREATE TABLE m.views (id bigint, CHECK (m.gain(id) = 1)) PARTITION BY RANGE (id);
		CREATE TABLE m.views_default PARTITION OF m.views DEFAULT;
		CREATE INDEX ON m.views ((m.gain()));
		CREATE INDEX ON m.views (m.gain(id));
		INSERT INTO m.views VALUES (5);}), '', 'mallory has a partitioned table');
is(as_superuser($db, q{SELECT * FROM instaid.create_partitions('m.views', '2026-01-01 UTC', '2026-01-03 UTC', '1 day')}), "m.views_20260101\nm.views_20260102\n",
	'create_partitions() of that table');
gained_nothing('... runs with her rights');
is($node->safe_psql($db, q{SELECT DISTINCT relowner::regrole FROM pg_class WHERE relname ~ '^views_2026' AND relkind = 'r'}), 'mallory', '... and she owns the partitions');
as_superuser($db, q{INSERT INTO m.views_20260101 SELECT instaid.make_id('2026-01-01 12:00 UTC', 1, 1) WHERE false; ANALYZE m.views_20260101});
gained_nothing('... and ANALYZE runs with her rights, too');

# A superuser's table is in a schema of mallory, who can put another table in its place.
$node->safe_psql($db, 'CREATE TABLE m.theirs (id bigint) PARTITION BY RANGE (id); CREATE TABLE m.ids (id bigint)');
like(as_superuser($db, "SELECT instaid.$_"), qr/ERROR:  55000: table m\.\w+ belongs to a superuser, and its schema does not\n.*HINT:  .*OWNER TO mallory;/s, "$_ of a superuser's table in mallory's schema")
  for q{create_partitions('m.theirs', '2026-01-01 UTC', '2026-01-02 UTC', '1 day')}, q{adopt_column('m.ids', 'id')};
# ... even while her own function is being called
is(run_as('mallory', $db, sprintf($old, 'm10', 10, q{
		PERFORM nextval('m10.table_id_seq');
		ALTER SCHEMA m10 RENAME TO m10_away; CREATE SCHEMA m10; CREATE SEQUENCE m10.table_id_seq;
		CREATE VIEW m10.t AS SELECT m.gain()::bigint AS id; GRANT USAGE ON SCHEMA m10 TO PUBLIC; GRANT SELECT ON m10.t TO PUBLIC;})), '', 'mallory has a function that renames its schema');
$node->safe_psql($db, 'CREATE TABLE m10.t (id bigint DEFAULT m10.next_id())');
like(as_superuser($db, q{SELECT instaid.adopt_shard('m10', 10)}), qr/WARNING:  .*\n.*Their rows are not read: m10\.t\./, 'adopt_shard() leaves a superuser\'s table in it out');
gained_nothing('... and does not read mallory\'s view with a superuser\'s rights');
# A default partition of mallory
$node->safe_psql($db, q{
	CREATE TABLE insta5.parts (id bigint) PARTITION BY RANGE (id);
	CREATE TABLE insta5.parts_default PARTITION OF insta5.parts DEFAULT; ALTER TABLE insta5.parts_default OWNER TO mallory});
run_as('mallory', $db, 'ALTER TABLE insta5.parts_default ADD CHECK (m.gain() = 1); CREATE INDEX ON insta5.parts_default ((m.gain()))');
like(as_superuser($db, q{SELECT instaid.create_partitions('insta5.parts', '2026-01-01 UTC', '2026-01-02 UTC', '1 day')}),
	qr/ERROR:  55000: default partition insta5\.parts_default does not belong to the owner of table/, 'create_partitions() does not read a default partition of another owner');
gained_nothing('... and PostgreSQL does not, either');

# freeze_shard(), thaw_shard(): a shard whose sequence belongs to another role
is(run_as('mallory', $db, q{SELECT instaid.create_shard('m9', 9); CREATE TABLE m9.t (id bigint DEFAULT m9.next_id('m9.table_id_seq'))}), "\n", 'mallory has a shard');
$node->safe_psql($db, 'GRANT USAGE, CREATE ON SCHEMA m9 TO victim; ALTER SEQUENCE m9.table_id_seq OWNER TO victim');
my $state = 'SELECT seqmax, last_value FROM pg_sequence, m9.table_id_seq WHERE seqrelid = $$m9.table_id_seq$$::regclass';
for my $call ("freeze_shard('m9')", "thaw_shard('m9')")
{
	$node->safe_psql($db, 'ALTER SEQUENCE m9.table_id_seq START 1 RESTART MAXVALUE 99999') if $call =~ /thaw/;
	my $was = $node->safe_psql($db, $state);
	like(as_superuser($db, "SELECT instaid.$call"), qr/ERROR:  42501: sequence m9\.table_id_seq does not belong to the owner of shard m9\nDETAIL:  .*victim.*mallory/,
		"$call is refused for a sequence of another owner");
	is($node->safe_psql($db, $state), $was, '... and the sequence does not change');
}
$node->safe_psql($db, 'ALTER SEQUENCE m9.table_id_seq OWNER TO mallory; ALTER SEQUENCE m9.table_id_seq NO MAXVALUE');
is(as_superuser($db, q{SELECT instaid.freeze_shard('m9'); SELECT frozen FROM instaid.shards WHERE schema_name = 'm9'; SELECT instaid.thaw_shard('m9')}), "\nt\n\n",
	'a shard whose owner owns the sequence is frozen and thawed');

### _execute_as(), with which the functions use a role's rights

for my $call (
	[ 'mallory', q{SELECT instaid._execute_as('postgres', 'ALTER ROLE mallory SUPERUSER')} ],
	[ 'mallory', q{SELECT instaid._execute_as((SELECT oid FROM pg_roles WHERE rolsuper LIMIT 1)::regrole, 'ALTER ROLE mallory SUPERUSER')} ],
	[ 'mallory', q{SELECT instaid._execute_as('alice', 'DROP SCHEMA a8 CASCADE')} ],
	[ 'mallory', q{SELECT instaid._execute_as('pg_write_server_files', 'SELECT 1')} ])
{
	like(run_as($call->[0], $db, $call->[1]), qr/ERROR:  (42501: permission denied to act as role|42704: role "postgres" does not exist)/, "$call->[1] by mallory is refused");
}
like(run_as('mallory', $db, q{SELECT instaid._execute_as(999999999::oid::regrole, 'SELECT 1')}), qr/ERROR:  42704: /, 'no such role');
$node->safe_psql($db, 'GRANT alice TO victim');
is(run_as('victim', $db, q{SELECT instaid._execute_as('alice', 'SELECT current_user'), current_user}), "alice|victim\n", 'a member of a role can act as it');
like(run_as('victim', $db, qq{SELECT instaid._execute_as('alice', '$_->[0]')}), $_->[1], "... but not: $_->[0]")
  for [ 'SET ROLE victim', qr/ERROR:  42501: cannot set parameter "role" within security-restricted operation/ ],
  [ 'RESET SESSION AUTHORIZATION', qr/ERROR:  42501: / ],
  [ 'CREATE TEMPORARY TABLE t ()', qr/ERROR:  42501: / ],
  [ 'COMMIT', qr/ERROR:  2D000: / ],
  [ 'COPY (SELECT 1) TO STDOUT', qr/ERROR:  0A000: / ];
is(run_as('victim', $db, q{
		SET search_path = v;
		SELECT instaid._execute_as('alice', 'SHOW search_path'), instaid._execute_as('alice', 'SELECT 1 WHERE false') IS NULL;
		SELECT instaid._execute_as('alice', 'SET work_mem = ''77MB''');
		DO $$ BEGIN PERFORM instaid._execute_as('alice', 'SELECT 1/0'); EXCEPTION WHEN division_by_zero THEN RAISE NOTICE '%', current_user; END $$;
		SELECT current_user, current_setting('search_path'), current_setting('work_mem');}) =~ s/^LOCATION:.*\n//mr,
	"pg_catalog, pg_temp|t\n\nvictim|v|4MB\nNOTICE:  00000: victim\n", 'afterwards the role and the settings are as before, even after an error');

# Views and functions that read objects of all roles
as_superuser($db, 'SELECT * FROM instaid.shards; SELECT * FROM instaid.tickets; SELECT * FROM instaid.segments; SELECT * FROM instaid.audit()');
gained_nothing('views and audit() run no code of others');
is(as_superuser($db, q{SELECT instaid.settled_id('m9') >= 0, instaid.settled_id('m9.table_id_seq', 9) >= 0}), "t|t\n", 'settled_id() of mallory\'s shard');
gained_nothing('... runs no code of hers');

### Servers that a superuser asks

{
	my $asked = database('asked', 1);
	$node->safe_psql($asked, 'CREATE EXTENSION dblink SCHEMA m');
	$node->safe_psql($asked, sprintf q{
		CREATE SERVER s FOREIGN DATA WRAPPER dblink_fdw OPTIONS (host '%s', port '%s', dbname 'asked', connect_timeout '20');
		CREATE USER MAPPING FOR PUBLIC SERVER s}, $node->host, $node->port);
	my $audit = q{SELECT * FROM instaid.audit_servers('{s}');};
	my $plant = q{
		CREATE SCHEMA %1$s;
		GRANT ALL ON SCHEMA %1$s TO PUBLIC;
		CREATE FUNCTION %1$s.dblink(text, text) RETURNS SETOF record LANGUAGE sql AS 'SELECT m.attempt()::text';
		CREATE FUNCTION %1$s.dblink(unknown, text) RETURNS SETOF record LANGUAGE sql AS 'SELECT m.attempt()::text';};
	run_as('mallory', $asked, sprintf $plant, 'planted');
	my $refused = as_superuser($asked, $audit);
	like($refused, qr/ERROR:  55000: schema m of extension dblink belongs to another role/, 'dblink in a schema of another role is not called');
	my ($hint) = $refused =~ /HINT:  (.*)/;
	run_as('mallory', $asked, 'ALTER SCHEMA m RENAME TO m2; ' . sprintf $plant, 'm');
	as_superuser($asked, $hint);
	run_as('mallory', $asked, sprintf($plant, 'dblink') . sprintf $plant, 'instaid');
	unlike(as_superuser($asked, $audit), qr/ERROR/, '... and is called after the statement of the hint');
	as_superuser($asked, "SET search_path = planted, m, pg_catalog; $audit");
	gained_nothing('... and no code of hers runs');
	# where her own server leads
	$node->safe_psql($asked, 'GRANT USAGE ON FOREIGN DATA WRAPPER dblink_fdw TO mallory');
	my $trap = database('trap');
	run_as('mallory', $trap, q{
		CREATE SCHEMA instaid; GRANT USAGE ON SCHEMA instaid TO PUBLIC; GRANT USAGE ON SCHEMA m TO PUBLIC;
		CREATE FUNCTION instaid._server_state() RETURNS jsonb LANGUAGE sql AS 'SELECT to_jsonb(m.attempt())'});
	run_as('mallory', $asked, sprintf q{
		CREATE SERVER lure FOREIGN DATA WRAPPER dblink_fdw OPTIONS (host '%s', port '%s', dbname 'trap', connect_timeout '20');
		CREATE USER MAPPING FOR PUBLIC SERVER lure}, $node->host, $node->port);
	like(as_superuser($asked, q{SELECT * FROM instaid.audit_servers('{s,lure}')}), qr/ERROR:  55000: server lure belongs to another role/, 'her server is not asked');
	gained_nothing('... and no code of hers runs there');
	like(run_as('mallory', $asked, $audit), qr/permission denied for (schema dblink|foreign server s)/, 'mallory cannot ask a server that she has no right to use');
	like(run_as('mallory', $asked, $_), qr/ERROR:  42501/, "mallory cannot run: $_")
	  for 'SELECT instaid.next_id()', q{SELECT instaid.next_ids(1)}, q{SELECT nextval('instaid.node_id_seq')}, q{SELECT setval('instaid.node_id_seq', 1)},
		'ALTER SEQUENCE instaid.node_id_seq RESTART', q{SELECT instaid.freeze_shard('instaid')}, q{SELECT instaid.advance_past('instaid.node_id_seq', 1, instaid.default_epoch())},
		q{CREATE OR REPLACE FUNCTION instaid.next_id() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'};
}

### Settings that change what text means

# Each function in PL/pgSQL that users call, with how it is called
my %call = (
	audit_servers     => q{string_agg(a::text, ';') FROM instaid.audit_servers('{here}') AS a},
	create_shard      => q{instaid.create_shard('q1', 11)},
	freeze_shard      => q{instaid.freeze_shard('q1')},
	thaw_shard        => q{instaid.thaw_shard('q1')},
	adopt_shard       => q{instaid.adopt_shard('q2', 12)},
	adopt_column      => q{string_agg(a, ';') FROM instaid.adopt_column('q1.users', 'id') AS a},
	create_partitions => q{string_agg(p::text, ';') FROM instaid.create_partitions('q1.views', '2026-01-01 UTC', '2026-01-03 UTC', '1 day') AS p},
	create_ticket     => q{instaid.create_ticket('q')},
	guard_ticket      => q{instaid.guard_ticket('q', 1000)},
	restripe_ticket   => q{instaid.restripe_ticket('q', 1, 2, 1000)},
	drop_ticket       => q{instaid.drop_ticket('q')});
my @order = qw(create_shard freeze_shard thaw_shard adopt_shard adopt_column create_partitions create_partitions create_ticket guard_ticket restripe_ticket drop_ticket audit_servers);
as_superuser($db, sprintf q{
	CREATE SCHEMA dblink; CREATE EXTENSION dblink SCHEMA dblink;
	CREATE SERVER here FOREIGN DATA WRAPPER dblink_fdw OPTIONS (host '%s', port '%s', dbname '%s', connect_timeout '20');
	CREATE USER MAPPING FOR CURRENT_USER SERVER here}, $node->host, $node->port, $db);
is($node->safe_psql($db, q{
		SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang
		WHERE pronamespace = 'instaid'::regnamespace AND lanname = 'plpgsql' AND proname !~ '^_'}),
	join(' ', sort keys %call), 'each function in PL/pgSQL is called');
my %said;
for my $settings ('', 'standard_conforming_strings=off', 'quote_all_identifiers=on')
{
	next if $settings =~ /strings/ && $node->safe_psql($db, 'SHOW server_version_num') >= 190000;	# it is always on there
	local $ENV{PGOPTIONS} = !$settings ? '' : $settings =~ /strings/ ? "-c $settings -c escape_string_warning=off" : "-c $settings";
	run_as('alice', $db, sprintf($old, 'q2', 12, ''));
	for my $function (@order)
	{
		my $said = as_superuser($db, "SELECT $call{$function}") =~ s/"//gr =~ s/^LOCATION:.*\n//mgr =~ s/\d{19}|\d{4}-\d\d-\d\d \d.*/.../gr;
		as_superuser($db, q{CREATE TABLE q1.users (id serial PRIMARY KEY); CREATE TABLE q1.refers (user_id integer REFERENCES q1.users);
			CREATE TABLE q1.views (id bigint) PARTITION BY RANGE (id); CREATE TABLE q1.views_default PARTITION OF q1.views DEFAULT;}) if $function eq 'create_shard';
		unlike($said, qr/ERROR/, "$function() with $settings") if $settings;
		$said{$settings} .= $said;
	}
	as_superuser($db, 'DROP SCHEMA q1, q2 CASCADE');
	is($said{$settings}, $said{''}, "$settings changes nothing") if $settings;
}

# Names that are too long are not truncated, and no shard is created in schemas of
# PostgreSQL or instaid.
my $long = 'x' x 64;
for my $call ("create_shard('$long', 21)", "create_shard('q3', 21, sequence_name => '$long')", "freeze_shard('$long')", "thaw_shard('$long')", "adopt_shard('$long', 21)",
	"adopt_column('m.users', '$long')")
{
	like(as_superuser($db, "SELECT instaid.$call"), qr/ERROR:  42622: .*name .*too long\nDETAIL:  It has 64 bytes; a name has up to 63\./, $call =~ s/x{64}/.../r . ' is refused');
}
for my $schema ('information_schema', 'pg_catalog', 'pg_toast', 'instaid', 'instaid_tickets', 'pg_mine')
{
	like(as_superuser($db, "SELECT instaid.$_('$schema', 21)"), qr/ERROR:  42939: schema $schema cannot be a shard/, "$_('$schema', 21) is refused") for 'create_shard', 'adopt_shard';
}

$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP:|XX000|PANIC/, 'the server logged no error of its own');
done_testing();
