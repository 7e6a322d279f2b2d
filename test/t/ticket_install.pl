# The extension instaid_tickets as an object: who can install it, what others can plant, with and
# without instaid, dumps, and a standby without the library.  pg_regress has one database.
# not in: assert_short

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;
use Mallory;

start_server();

### Installed by roles that have CREATE on the database, with default privileges of others

# A role owns the database, or has only CREATE there; default privileges give all to all, and take
# from PUBLIC what it has by itself.
my $members = q{
	SELECT i.identity, o.owner::regrole,
		CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END, x.privilege_type
	FROM pg_depend AS d
	JOIN pg_extension AS e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
		AND d.deptype = 'e' AND e.extname = 'instaid_tickets'
	JOIN (SELECT tableoid AS class, oid, 'n' AS type, nspowner AS owner, nspacl AS acl
		  FROM pg_namespace
		  UNION ALL SELECT tableoid, oid, 'r', relowner, relacl FROM pg_class
		  UNION ALL SELECT tableoid, oid, 'f', proowner, proacl FROM pg_proc
		  UNION ALL SELECT tableoid, oid, 'F', fdwowner, fdwacl FROM pg_foreign_data_wrapper) AS o
		ON o.class = d.classid AND o.oid = d.objid
	CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS i
	CROSS JOIN LATERAL aclexplode(coalesce(o.acl, acldefault(o.type::"char", o.owner))) AS x
	ORDER BY 1, 2, 3, 4};
my %rights;
for my $installer ('superuser', 'mallory', 'hostile')
{
	my $name = database("by_$installer", 0);
	run_as('mallory', $name, join '', map {
		my $kind = $_;
		("ALTER DEFAULT PRIVILEGES REVOKE ALL ON $kind FROM PUBLIC;",
		"ALTER DEFAULT PRIVILEGES GRANT ALL ON $kind TO alice WITH GRANT OPTION;") }
		qw(TABLES FUNCTIONS SCHEMAS)) if $installer eq 'hostile';
	is($installer eq 'superuser' ? as_superuser($name, 'CREATE EXTENSION instaid_tickets')
		: run_as('mallory', $name, 'CREATE EXTENSION instaid_tickets'), '',
		"the extension is installed by $installer");
	$rights{$installer} = $node->safe_psql($name, $members);
	is($rights{$installer}, $rights{superuser},
		"the extension is installed by $installer, and belongs to the same role, with its rights");
	like(run_as('mallory', $name, q{
		CREATE FUNCTION instaid_tickets.next(integer) RETURNS integer LANGUAGE sql AS '';}),
		qr/permission denied for schema instaid_tickets/,
		"the extension is installed by $installer, and mallory adds nothing to its schema");
	is(run_as('mallory', $name, q{CREATE SEQUENCE m.s; SELECT instaid_tickets.next('m.s'),
			instaid_tickets.create('m.t', 1, 2)}), "1|m.t\n",
			"the extension is installed by $installer, whose functions she can call");
}
like($rights{superuser}, qr/instaid_tickets\.next\(.*\|PUBLIC\|EXECUTE/, 'rights are compared');
my $there = database('there', 0);
run_as('mallory', $there, 'CREATE SCHEMA instaid_tickets');
like(as_superuser($there, 'CREATE EXTENSION instaid_tickets'),
	qr/ERROR:  55000: schema "instaid_tickets" already exists/,
	'a schema that is there is refused');

### What mallory owns, and a superuser calls, lists or audits

my $db = database('attack', 0);
as_superuser($db, 'CREATE EXTENSION instaid_tickets; CREATE SCHEMA v; CREATE SEQUENCE v.victims;
	ALTER SCHEMA v OWNER TO victim; ALTER SEQUENCE v.victims OWNER TO victim;
	GRANT USAGE ON SCHEMA v TO mallory;
	GRANT USAGE ON FOREIGN DATA WRAPPER instaid_tickets TO mallory');
my $fake = 'm.gain()::bigint AS last_value, 0::bigint AS log_cnt, true AS is_called';
is(run_as('mallory', $db, qq{
	SET client_min_messages = error;
	CREATE VIEW m.view AS SELECT $fake;
	CREATE SEQUENCE m.down INCREMENT -1; CREATE UNLOGGED SEQUENCE m.unlogged;
	CREATE SEQUENCE m.wide INCREMENT 9223372036854775807 MINVALUE -9223372036854775808
		START -9223372036854775808;
	CREATE SEQUENCE m."a "" b; DROP TABLE x" INCREMENT 2;
	CREATE SEQUENCE m.guarded;
	CREATE TABLE m.t (a bigint DEFAULT instaid_tickets.next('m.down'),
		b bigint DEFAULT instaid_tickets.next('m.unlogged'),
		c bigint DEFAULT instaid_tickets.next('m."a "" b; DROP TABLE x"'),
		d bigint DEFAULT instaid_tickets.next('v.victims'));
	CREATE FUNCTION m.next(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT m.gain()';
	CREATE FUNCTION m.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql
		AS 'SELECT m.gain()::text';
	CREATE SERVER hers FOREIGN DATA WRAPPER instaid_tickets OPTIONS (host '/nowhere');
	CREATE FOREIGN TABLE m.foreign (value bigint) SERVER hers OPTIONS (sequence 'x; SELECT 1');
	CREATE FOREIGN TABLE m.odd (value text) SERVER hers OPTIONS (sequence '''');
	CREATE FOREIGN TABLE m.none () SERVER hers
		OPTIONS (sequence 's')}), '', 'mallory has all that');
my $calls = join ';', map { my $ticket = $_; map { "SELECT instaid_tickets.$_" }
	"next('$ticket')", "lease('$ticket', 3)", "guard('$ticket', 100)",
	"restripe('$ticket', 1, 2, 100)" }
	qw(m.view m.down m.unlogged m.wide m.guarded m.foreign m.odd m.none),
	'm."a "" b; DROP TABLE x"';
my $said = as_superuser($db, "SET search_path = m, public; $calls;
	SELECT * FROM instaid_tickets.tickets; SELECT * FROM instaid_tickets.segments;
	SELECT * FROM instaid_tickets.audit(); SELECT * FROM instaid_tickets.metrics;
	SELECT instaid_tickets.create('m.view', if_not_exists => true);");
gained_nothing('functions, views and audit() run no code of hers');
unlike($said, qr/XX000|server closed|internal/, 'mallory has all that, and nothing breaks');
is($node->safe_psql($db, 'SELECT count(*) > 5 FROM instaid_tickets.tickets;
	SELECT count(*) FROM instaid_tickets.tickets WHERE ticket::text ~ $$victims$$;
	SELECT count(*) FROM instaid_tickets.metrics'), "t\n0\n1",
	'mallory has all that, and all can be listed, but her default says nothing about the'
	  . ' sequence of another role');
as_superuser($db, q{SELECT cure FROM instaid_tickets.audit() WHERE cure ~ '^(ALTER|SELECT|REVOKE)'
	\gexec});
gained_nothing('mallory has all that, nor do the cures');
for my $call (q{next('v.victims')}, q{lease('v.victims', 1)}, q{guard('v.victims', 10)},
	q{restripe('v.victims', 1, 2, 10)}, q{create('v.mine')})
{
	like(run_as('mallory', $db, "SELECT instaid_tickets.$call"),
		qr/ERROR:  42501: (?:permission denied|must be owner)/, "mallory cannot call $call");
}
# The schema of the sequence is renamed between the check and ALTER SEQUENCE, which goes by name.
my $holder = Clients::session($node, $db);
$holder->(q{BEGIN; SELECT instaid_tickets.next('m.guarded')});
my $waiting = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr($db), '-c',
	q{SELECT instaid_tickets.guard('m.guarded', 100)} ], '<', \undef, '>&', \my $waited,
	IPC::Run::timeout(180));
$node->poll_query_until($db, 'SELECT count(*) = 1 FROM pg_locks WHERE NOT granted') or die;
run_as('mallory', $db, qq{ALTER SCHEMA m RENAME TO m2; CREATE SCHEMA m;
	CREATE VIEW m.guarded AS SELECT m2.gain()::bigint AS last_value, true AS is_called});
$holder->('COMMIT');
$waiting->finish;
gained_nothing('a schema in the place of another runs nothing');
run_as('mallory', $db, 'DROP SCHEMA m CASCADE; ALTER SCHEMA m2 RENAME TO m');

### With instaid: either order of creation and of removal, and neither needs the other

for my $order ([ 'instaid', 'instaid_tickets' ], [ 'instaid_tickets', 'instaid' ])
{
	for my $drop ($order, [ reverse @$order ])
	{
		$node->safe_psql('postgres', 'DROP DATABASE IF EXISTS pair; CREATE DATABASE pair');
		my $uses = { instaid => q{SELECT instaid.create_shard('insta5', 5);
			SELECT insta5.next_id() > 0;
				SELECT count(*) FROM instaid.audit(); DROP SCHEMA insta5 CASCADE},
			instaid_tickets => q{CREATE SEQUENCE s; SELECT instaid_tickets.next('s');
				SELECT count(*) FROM instaid_tickets.audit(); DROP SEQUENCE s} };
		$node->safe_psql('pair', "CREATE EXTENSION $_") for @$order;
		$node->safe_psql('pair', "SET client_min_messages = error; $uses->{$_}") for @$order;
		$node->safe_psql('pair', "SET client_min_messages = error;
			DROP EXTENSION $drop->[0]; $uses->{ $drop->[1] }; DROP EXTENSION $drop->[1]");
		is($node->safe_psql('pair', q{SELECT count(*) FROM pg_namespace
			WHERE nspname ~ '^insta'}), 0,
			"@$order are created, and @$drop dropped");
	}
}
for my $libraries ('instaid,instaid_tickets', 'instaid_tickets,instaid', 'instaid_tickets')
{
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'\n");
	$node->restart;
	is($node->safe_psql('by_superuser', 'CREATE EXTENSION instaid;
		SELECT instaid_tickets._is_preloaded(), count(*) FROM instaid.audit();
		SHOW instaid_tickets.segment_timeout; DROP EXTENSION instaid'), "t|0\n5s",
		"both work if $libraries is preloaded");
}

### Dumps: of the whole, and of one schema, which has its tickets

$node->safe_psql('postgres', "CREATE DATABASE $_ OWNER alice") for 'source', 'whole', 'part';
run_as('alice', 'source', q{
	CREATE EXTENSION instaid_tickets; CREATE EXTENSION instaid;
	CREATE SCHEMA app;
	CREATE SEQUENCE app.invoices INCREMENT 5 START 2 CACHE 100;
	CREATE TABLE app.bills (no bigint DEFAULT instaid_tickets.next('app.invoices'));
	INSERT INTO app.bills VALUES (DEFAULT), (DEFAULT), (DEFAULT);
	SELECT instaid_tickets.guard('app.invoices', 1000)});
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
for my $case ([ 'whole', '-Fc' ], [ 'part', '-Fc', '-n', 'app' ])
{
	my ($name, @options) = @$case;
	run_as('alice', $name, 'CREATE EXTENSION instaid_tickets') if $name eq 'part';
	command_ok([ 'pg_dump', @options, '-f', $dump, '-d', $node->connstr('source') . ' user=alice' ],
		"pg_dump of the $name");
	command_ok([ 'pg_restore', '-e', '-d', $node->connstr($name) . ' user=alice', $dump ],
		"pg_dump of the $name: is restored by its owner");
	is($node->safe_psql($name, 'INSERT INTO app.bills DEFAULT VALUES RETURNING no;
		SELECT values_left, step, is_used FROM instaid_tickets.tickets'), "17\n196|100|t",
		"pg_dump of the $name, and goes on, with its guard and its step");
}
# An older state goes on above a newer one by a statement of the page.
my ($positions) = grep { /setval/ } map { $_->{text} } section_blocks('docs/tickets.md', 'Backups');
$node->safe_psql('whole', $node->safe_psql('source',
	q{INSERT INTO app.bills SELECT instaid_tickets.next('app.invoices')
		FROM generate_series(1, 50) RETURNING 0 \g /dev/null} . "\n$positions"));
is($node->safe_psql('whole', 'INSERT INTO app.bills DEFAULT VALUES RETURNING no'), 267,
	'an older state goes on above a newer one');

$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP:|XX000|PANIC/, 'the server logged no error of its own');

### A standby whose PostgreSQL has no instaid_tickets, and which takes over

@Clients::extensions = ('instaid_tickets');
my $primary = Clients::server('primary', { allows_streaming => 1 });
$primary->safe_psql('postgres', q{CREATE SEQUENCE invoices INCREMENT 2 START 2 CACHE 100;
	CREATE TABLE bills (no bigint DEFAULT instaid_tickets.next('invoices'))});
$primary->backup('backup');
my $plain = PostgreSQL::Test::Cluster->new('plain', install_path => $ENV{INSTAID_PLAIN});
$plain->init_from_backup($primary, 'backup', has_streaming => 1);
$plain->start;
$primary->safe_psql('postgres', 'INSERT INTO bills VALUES (DEFAULT)') for 1 .. 3;
$primary->wait_for_catchup($plain);
is($plain->safe_psql('postgres', 'SELECT max(no) FROM bills'), 6, 'a standby without the library');
$primary->stop;
$plain->promote;
like(($plain->psql('postgres', 'INSERT INTO bills VALUES (DEFAULT)'))[2],
	qr/could not access file "instaid_tickets"/,
	'a standby without the library: cannot go on by itself');
cmp_ok($plain->safe_psql('postgres', q{
	ALTER SEQUENCE invoices CACHE 1;
	ALTER TABLE bills ALTER no SET DEFAULT nextval('invoices');
	INSERT INTO bills VALUES (DEFAULT) RETURNING no}), '>', 6,
	'a standby without the library, but with nextval()');
is($plain->safe_psql('postgres',
	'SELECT max(no) % 2 FROM bills'), 0, 'a standby without the library, in its stripe');

done_testing();
