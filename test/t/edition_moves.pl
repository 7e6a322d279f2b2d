# Shards that move while clients insert: from the published function to the SQL
# edition (sql-edition/), from there to the extension, and back by a dump.  No insert may
# fail, and no ID may come twice.  pg_regress has one session.
#
# FULL=1 adds longer runs, of a million IDs
# not in: version assert

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;
use Docs;
use SqlEdition;

my $ids  = $ENV{FULL} ? 1_000_000 : 30_000;
my $node = Clients::server('main', 'autovacuum = off', 'max_connections = 120',
	'max_locks_per_transaction = 128');
$node->safe_psql('postgres', 'CREATE ROLE dba LOGIN; CREATE ROLE app LOGIN');
$node->safe_psql('postgres', 'CREATE DATABASE m; GRANT CREATE ON DATABASE m TO dba');

sub as_dba
{
	my ($sql) = @_;
	return $node->safe_psql('m', $sql, extra_params => [ '-U', 'dba' ]);
}

# Sessions of app insert by statements of each kind.  A transaction takes an ID and inserts
# only what it knows not to wait for a lock that waits for it.
my $row = "INSERT INTO insta5.photos (n) VALUES (1) RETURNING began, id, nextval('insta5.steps');";
my @statements = (
	$row,
	"INSERT INTO insta5.photos (n) SELECT generate_series(1, 300)"
	  . " RETURNING began, id, nextval('insta5.steps');",
	"PREPARE p AS INSERT INTO insta5.photos (n) VALUES (2)"
	  . " RETURNING began, id, nextval('insta5.steps'); EXECUTE p; EXECUTE p; EXECUTE p;"
	  . " DEALLOCATE p;",
	"BEGIN; $row $row COMMIT;",
	"BEGIN ISOLATION LEVEL REPEATABLE READ; $row $row COMMIT;");

# Run statements of the superuser, or of dba, between inserts; return the sessions.
sub while_inserting
{
	my ($name, $move, @more) = @_;
	my $sessions = SqlEdition->sessions($node, 'm', 10, @statements, @more);
	my $deadline = time + 300;
	my $wait = sub {
		my ($count) = @_;
		sleep(0.1) while $sessions->received < $count * 40 && time < $deadline;
	};
	$wait->($ids / 2);
	$move->();
	$wait->($ids);
	my $sum = $sessions->stop->findings;
	cmp_ok($sum->{count}, '>', $ids / 3, "$name: $sum->{count} IDs");
	is($sessions->errors(qr/terminating connection|connection to server|server closed/), '',
		"$name: no insert failed");
	return $sum;
}

# The published function, with a sequence in another schema
as_dba(q{
	CREATE SCHEMA counters; CREATE SEQUENCE counters.table_id_seq; CREATE SCHEMA insta5;
	CREATE SEQUENCE insta5.steps;
	CREATE FUNCTION insta5.next_id(OUT result bigint) LANGUAGE plpgsql AS $$
	DECLARE
		our_epoch bigint := 1314220021721;
		seq_id bigint;
		now_millis bigint;
		shard_id int := 5;
	BEGIN
		SELECT nextval('counters.table_id_seq') % 1024 INTO seq_id;
		SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
		result := (now_millis - our_epoch) << 23;
		result := result | (shard_id << 10);
		result := result | (seq_id);
	END
	$$;
	CREATE TABLE insta5.photos (began bigint DEFAULT nextval('insta5.steps'),
		id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
	GRANT USAGE ON SCHEMA counters, insta5 TO app; GRANT INSERT, SELECT ON insta5.photos TO app;
	GRANT USAGE ON ALL SEQUENCES IN SCHEMA counters, insta5 TO app});
# with a key, the published function fails now and then by itself
as_dba('ALTER TABLE insta5.photos DROP CONSTRAINT photos_pkey');
as_dba('BEGIN;' . SqlEdition::changed() . 'COMMIT');
as_dba(SqlEdition::adopting());
my $step;
while_inserting('from the published function', sub {
	as_dba(q{CALL instaid_adopt.adopt_shards('insta5')});
	$step = as_dba(q{SELECT nextval('insta5.steps')});
});
is(as_dba("SELECT count(*) FROM (SELECT FROM insta5.photos GROUP BY id
	HAVING count(*) > 1 AND max(began) > $step) AS t"),
	0, "no ID of the shard repeats another");
is(SqlEdition::as_app($node, 'm', q{SELECT nextval('counters.table_id_seq') > 0;
	SELECT setval('counters.table_id_seq', 1)}), 't 42501', 'roles keep nextval() alone');
is(as_dba(q{SELECT count(*) FROM instaid.audit() WHERE object = 'counters.table_id_seq'}), 0,
	'roles keep nextval() alone, and audit() finds nothing');
as_dba('REVOKE ALL ON SEQUENCE counters.table_id_seq FROM app');

# Other shard IDs, above the old one and below it
my @many = ("SELECT s, i, nextval('insta5.steps')"
	  . " FROM (SELECT nextval('insta5.steps') AS s OFFSET 0) AS x,"
	  . " insta5.next_ids(2000 + 0 * s::integer) AS i;",
	"SELECT s, i, nextval('insta5.steps')"
	  . " FROM (SELECT nextval('insta5.steps') AS s OFFSET 0) AS x,"
	  . " insta5.next_ids(20 + 0 * s::integer) AS i;");
$step = as_dba(q{SELECT nextval('insta5.steps')});
my $sum = while_inserting('renumbered', sub {
	for my $shard_id (4096, 3, 5)
	{
		as_dba("SELECT instaid.renumber_shard('insta5', $shard_id)");
		sleep(0.2);
	}
}, @many);
is($sum->{twice}, 0, 'roles keep nextval() alone, and no ID came twice');
is($sum->{inverted}, 0, 'roles keep nextval() alone, and IDs increase');
is(as_dba("SELECT string_agg(shard_id::text, ' ' ORDER BY id) FROM (
		SELECT id, instaid.extract_shard_id(id) AS shard_id,
			lag(instaid.extract_shard_id(id)) OVER (ORDER BY id) AS before
		FROM insta5.photos WHERE began > $step) AS s
	WHERE shard_id IS DISTINCT FROM before"), '5 4096 3 5',
	'roles keep nextval() alone, of one shard after the other');

# The extension
as_dba(q{
	SELECT instaid.create_shard('insta6', 6); SELECT instaid.add_sequence('insta6', 'likes_id_seq');
	CREATE TABLE insta6.photos (LIKE insta5.photos); CREATE SEQUENCE insta6.steps;
	ALTER TABLE insta6.photos ALTER began SET DEFAULT nextval('insta5.steps'),
		ALTER id SET DEFAULT insta6.next_id();
	CREATE TABLE insta6.likes (began bigint DEFAULT nextval('insta5.steps'), id bigint PRIMARY KEY
		DEFAULT insta6.next_id('insta6.likes_id_seq'), n integer);
	CREATE TABLE insta6.codes (id bigint CHECK (instaid.extract_shard_id(id) = 6),
		code text NOT NULL GENERATED ALWAYS AS (instaid.to_shortcode(id)) STORED UNIQUE
			CHECK (code <> ''),
		shard integer DEFAULT instaid.extract_shard_id(6144));
	-- a string with the names that the move gives or takes away
	CREATE TABLE insta6.texts (code text DEFAULT 'insta6.sql_edition_next_id()::insta6.id_sequence '
		|| insta6.next_id('insta6.likes_id_seq'));
	CREATE INDEX codes_at ON insta6.codes (instaid.extract_timestamp(id));
	CREATE VIEW insta6.today WITH (security_invoker, security_barrier = off) AS
		SELECT * FROM insta6.photos WHERE instaid.created_between(id, 'today', 'infinity');
	CREATE FUNCTION insta6.add(integer) RETURNS bigint LANGUAGE sql BEGIN ATOMIC
		INSERT INTO insta6.likes (id, n) VALUES (insta6.next_id('insta6.likes_id_seq'), $1)
		RETURNING id; END;
	GRANT USAGE ON SCHEMA insta6 TO app; GRANT INSERT, SELECT ON insta6.photos, insta6.likes TO app;
	GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA insta6 TO app;
	-- a copy with another layout, which is replaced
	CREATE SCHEMA insta7; CREATE SEQUENCE insta7.ids;
	CREATE FUNCTION insta7.made(OUT result bigint) LANGUAGE plpgsql AS $$ BEGIN
		result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
			- 1577836800000) << 22 | nextval('insta7.ids') % 4096; END $$;
	CREATE TABLE insta7.photos (id bigint PRIMARY KEY DEFAULT insta7.made());
	SELECT instaid_adopt.replace_copy('insta7.made()', 7)});
# a shard that cannot be moved does not stop the others
$node->safe_psql('m', q{SET ROLE dba; SELECT instaid.create_shard('insta1', 1); RESET ROLE;
	ALTER SEQUENCE insta1.table_id_seq OWNER TO app;
	CREATE SCHEMA insta2 AUTHORIZATION app; GRANT ALL ON SCHEMA insta2 TO dba;
	SET ROLE dba; SELECT instaid.create_shard('insta2', 2)});
like(my $beside = ($node->psql('m', 'CREATE EXTENSION instaid'))[2],
	qr/"instaid" already exists\n.*role dba.*\n/,
	'CREATE EXTENSION is refused beside the SQL edition');
is(Clients::hints($beside), 'If you trust that role, and it is the SQL edition, do as "To the'
	  . ' extension" in sql-edition.md says. Otherwise run nothing in it. Rename or drop it, and'
	  . ' create the extension again.', 'CREATE EXTENSION tells where to read on');
like(($node->psql('m', slurp_file('sql-edition/to_extension.sql')))[2],
	qr/\A[^\n]*ERROR:  sql-edition\/to_extension\.sql needs the extension instaid/,
	'to the extension: what moves the shards needs the extension');
my $move_said;
$sum = while_inserting('to the extension', sub {
	$node->psql('m', q{
		BEGIN;
		ALTER SCHEMA instaid RENAME TO instaid_sql_edition;
		CREATE EXTENSION instaid;
		CREATE TABLE audited AS SELECT * FROM instaid.audit();
		COMMIT});
	# as the owner of the shards
	$node->psql('m', slurp_file('sql-edition/to_extension.sql'), extra_params => [ '-U', 'dba' ],
		on_error_stop => 0, on_error_die => 0, stderr => \$move_said);
	}, "SELECT s, i, nextval('insta5.steps')"
	  . " FROM (SELECT nextval('insta5.steps') AS s OFFSET 0) AS x,"
	  . " insta5.next_ids(2000 + 0 * s::integer) AS i;",
	"INSERT INTO insta6.photos (n) SELECT generate_series(1, 20);",
	"INSERT INTO insta6.likes (n) VALUES (1);");
is($sum->{twice}, 0, 'to the extension: no ID came twice');
is($sum->{inverted}, 0, 'to the extension: IDs increase');
like($move_said, qr/\A[^\n]*ERROR:[^\n]*\n[^\n]*insta1\..*
[^\n]*ERROR:  schema insta2 belongs to another role(?!.*ERROR)/s,
	'to the extension: two errors name shards whose sequence, or schema, belongs to another role');
is($node->safe_psql('m', q{SELECT object FROM instaid.audit()
	WHERE code = 'sql_edition_shard'; DROP SCHEMA insta1, insta2 CASCADE}), "insta1\ninsta2",
	'to the extension: left, and audit() names them');
my $cure = '-- Move it with sql-edition/to_extension.sql of that edition.';
is($node->safe_psql('m', q{
	SELECT object, cure FROM audited WHERE code = 'sql_edition_shard' ORDER BY 1}),
	join("\n", map { "insta$_|$cure" } 1, 2, 5, 6, 7),
	'audit() of the extension knows the shards before');
is($node->safe_psql('m', q{
	GRANT CREATE ON SCHEMA instaid_sql TO app;
	SELECT cure FROM instaid.audit() WHERE object = 'instaid_sql';
	SELECT cure FROM instaid.audit() WHERE object = 'instaid_sql' \gexec
	SELECT cure FROM instaid.audit() WHERE object = 'instaid_sql'}),
	'REVOKE CREATE ON SCHEMA instaid_sql FROM app CASCADE;',
	'audit() of the extension knows the shards before, and who could add functions to instaid_sql');
my $functions = q{SELECT string_agg(p.oid::regprocedure || p.prosrc || p.prolang, ',' ORDER BY
	p.oid) FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
	WHERE n.nspname ~ '^inst'};
my $kept = $node->safe_psql('m', $functions);
$node->psql('m', SqlEdition::changed(), on_error_stop => 0, on_error_die => 0);
is($node->safe_psql('m', $functions), $kept,
	'the script never replaces functions of the extension, even if psql goes on after an error');
is($node->safe_psql('m', q{SELECT object FROM audited WHERE code = 'copy'}), '',
	'the script beside the extension: and takes none of their functions for a copy of the'
	  . ' published one');
is($node->safe_psql('m', q{SELECT object FROM instaid.audit() WHERE code = 'sql_edition_shard'}),
	'', 'the script beside the extension: nor what is left of them afterwards for shards');
is($node->safe_psql('m', q{
	SELECT string_agg(format('%s %s', d.adrelid::regclass, pg_get_expr(d.adbin, d.adrelid)),
		', ' ORDER BY d.adrelid)
	FROM pg_attrdef AS d WHERE pg_get_expr(d.adbin, d.adrelid) ~ 'next_id'}),
	"insta5.photos insta5.next_id(), insta6.photos insta6.next_id(),"
	  . " insta6.likes insta6.next_id('insta6.likes_id_seq'::regclass),"
	  . " insta6.texts ('insta6.sql_edition_next_id()::insta6.id_sequence '::text"
	  . " || insta6.next_id('insta6.likes_id_seq'::regclass))",
		'tables keep their defaults');
$node->safe_psql('m', 'DROP TABLE insta6.texts');
# Following docs/sql-edition.md loses nothing: the query names what uses the old functions, and the
# drop fails as a whole before its commands have run.
my ($query, $drop) = map { slurp_file("sql-edition/$_.sql") } 'dependants', 'drop';
sub commands
{
	return map { /^([^|]+)\|dba\|(.*)/s } split /\n(?=\w[^|\n]+\|)/, $node->safe_psql('m', $query);
}
my $call = 'SELECT insta6.add(1) > 0; INSERT INTO insta7.photos DEFAULT VALUES RETURNING id > 0';
is($node->safe_psql('m', $call), "t\nt", 'functions with a parsed body go on');
my %old = commands();
is(join(', ', grep { /function/ } sort keys %old),
	'function insta6.add(integer), function insta7.made()',
	'functions with a parsed body go on, and use the old functions, as the page tells');
like(($node->psql('m', $drop))[2], qr/ERROR:  these shards are left: insta5, insta6, insta7
DETAIL:  .*: insta\d\.sql_edition_next_id\(.*
HINT:  .*sql-edition\/dependants\.sql/,
	'functions with a parsed body go on, without which nothing is dropped');
$node->safe_psql('m', join ';', 'SET ROLE dba', @old{ grep { /function/ } keys %old });
$node->safe_psql('m', q{
	DROP FUNCTION insta5.sql_edition_next_id, insta5.sql_edition_next_ids,
		insta6.sql_edition_next_id, insta6.sql_edition_next_ids,
		insta7.sql_edition_next_id, insta7.sql_edition_next_ids;
	DROP DOMAIN insta5.id_sequence, insta6.id_sequence, insta7.id_sequence;
	INSERT INTO insta6.codes (id) SELECT id FROM insta6.photos ORDER BY id DESC LIMIT 10;
	-- the owner of the edition is no superuser, who may not trust this role any more
	SET ROLE dba;
	CREATE OR REPLACE FUNCTION instaid_sql_edition._list_shards(OUT schema_name name,
		OUT shard_id integer, OUT epoch timestamptz, OUT sequence regclass, OUT declaration oid,
		OUT frozen boolean) RETURNS SETOF record LANGUAGE plpgsql
		AS 'BEGIN ALTER ROLE dba SUPERUSER; END'});
sub kept
{
	return $node->safe_psql('m', q{
		SELECT count(code), count(DISTINCT code), sum(shard) FROM insta6.codes;
		SELECT count(*) > 10, (SELECT reloptions FROM pg_class WHERE relname = 'today')
		FROM insta6.today;
		SELECT a.attname, a.attnotnull FROM pg_attribute AS a
		WHERE a.attrelid = 'insta6.codes'::regclass AND a.attgenerated = 's';
		SELECT conname FROM pg_constraint WHERE conrelid = 'insta6.codes'::regclass
			AND contype <> 'n' ORDER BY 1;
		SELECT c.relname FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
		WHERE i.indrelid = 'insta6.codes'::regclass ORDER BY 1});
}
my $kept = kept();
my @calls = (q{min_id('2026-01-01+00')}, q{max_id('2026-01-01+00')}, 'extract_timestamp(5)',
	q{created_between(5, '2026-01-01+00', 'infinity')}, q{make_id('2026-01-01+00', 5, 5)},
	q{from_shortcode('B')}, 'to_shortcode(5)', 'decode(5)');
is($node->safe_psql('m', join ' UNION ALL ',
	map { "SELECT \$\$$_\$\$ WHERE instaid_sql_edition.$_ "
	  . "IS DISTINCT FROM instaid.$_" } @calls), '',
	'the old functions return what the new ones do');
is($kept, "10|10|60\nt|{security_invoker=true,security_barrier=off}\ncode|t\ncodes_code_check"
	  . "\ncodes_code_key\ncodes_id_check\ncodes_at\ncodes_code_key",
	'objects of other schemas use the old functions');
like(($node->psql('m', $drop))[2],
	qr/ERROR:  cannot drop .*DETAIL:.*view insta6\.today depends on function/s,
	'objects of other schemas use the old functions: the old schemas are not dropped before'
	  . ' these are created again');
$node->safe_psql('m', q{GRANT CREATE ON SCHEMA public TO app; SET ROLE app;
	CREATE FUNCTION public.concat(text, text) RETURNS text LANGUAGE sql RETURN $1 || ' planted'});
my %command = commands();
is(join(', ', sort keys %command), join(', ', 'constraint codes_id_check on table insta6.codes',
	'default value for column code of table insta6.codes',
	'default value for column shard of table insta6.codes', 'index insta6.codes_at',
	'rule _RETURN on view insta6.today'), 'objects of other schemas use the old functions: the'
		  . ' page names them all');
unlike("@{[ %command ]}", qr/planted/,
	'objects of other schemas use the old functions, by no function that another role has planted');
$node->safe_psql('m', join ';', 'SET ROLE dba', values %command);
is($node->safe_psql('m', $query), '',
	'objects of other schemas use the old functions, and none after its commands');
$node->safe_psql('m', q{
	CREATE FUNCTION insta6.uses() RETURNS text LANGUAGE sql
		RETURN instaid_sql_edition.to_shortcode(7);
	CREATE DOMAIN insta6.odd AS bigint CHECK (instaid_sql_edition.to_shortcode(VALUE) <> '');
	CREATE POLICY old ON insta6.codes USING (instaid_sql_edition.to_shortcode(id) <> '')});
my ($odd, $uses, $policy) = split /\n(?=function|policy)/, $node->safe_psql('m', $query);
is("$odd, $policy", 'constraint odd_check||, policy old on table insta6.codes||',
	'objects of other schemas use the old functions, but for what has no command');
$node->safe_psql('m', ($uses =~ s/.*?\|.*?\|//r)
	. 'DROP DOMAIN insta6.odd; DROP POLICY old ON insta6.codes');
is($node->safe_psql('m', $drop) . kept(), $kept,
	'objects of other schemas use the old functions, with which nothing is lost');
is($node->safe_psql('m', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'dba'}), 'f',
	'objects of other schemas use the old functions, and no code of the owner of the edition has'
	  . ' run');
is($node->safe_psql('m', q{
	SELECT nspname FROM pg_namespace WHERE nspname ~ '^instaid_sql';
	SELECT count(*) - count(DISTINCT id) FROM insta6.photos;
	SELECT count(*) FROM instaid.audit() WHERE code ~ 'sql_edition';
	INSERT INTO insta6.likes (n) VALUES (2) RETURNING instaid.extract_shard_id(id)}), "0\n0\n6",
	'the old functions can go');
is($node->safe_psql('m', $call), "t\nt",
	'the old functions can go, and those with a parsed body go on');
like(($node->psql('m', 'INSERT INTO insta6.codes VALUES (1)'))[2], qr/codes_id_check/,
	'the old functions can go, and a check goes on');

# Back
$node->safe_psql('m', q{
	CREATE TABLE insta6.notes (id serial PRIMARY KEY, photo_id bigint,
		made_at timestamptz GENERATED ALWAYS AS (instaid.extract_timestamp(photo_id)) STORED);
	INSERT INTO insta6.notes (photo_id) SELECT id FROM insta6.photos LIMIT 10;
	-- as it is if nobody drops what is left of the move
	CREATE DOMAIN insta5.id_sequence AS regclass;
	CREATE FUNCTION insta5.sql_edition_next_ids(integer, insta5.id_sequence) RETURNS bigint
		LANGUAGE sql RETURN 1;
	SELECT instaid.freeze_shard('insta5')});
# What looks like a declaration in a function of another role, or is one in another language, is
# none, nor what looks like a default in the name of a column.
$node->safe_psql('m', q{
	CREATE SCHEMA x AUTHORIZATION app; SET ROLE app; CREATE SEQUENCE x.s;
	CREATE TABLE x.t ("id bigint DEFAULT insta6.next_id('insta6.photos'::regclass)" integer,
		id bigint);
	SET check_function_bodies = off;
	CREATE FUNCTION x.next_ids(count integer, sequence regclass DEFAULT 'x.s'::regclass)
		RETURNS SETOF bigint LANGUAGE sql AS 'shard 6, epoch 1577836800000';
	CREATE FUNCTION x.f() RETURNS text LANGUAGE sql AS $body$ SELECT $text$
CREATE FUNCTION x.next_ids(count integer, sequence regclass DEFAULT 'x.s'::regclass)
	RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1
    AS $x$shard 6, epoch 1577836800000'); ALTER ROLE app SUPERUSER; --$x$;
$text$ $body$});
my $last = $node->safe_psql('m', 'SELECT max(id) FROM insta6.photos');
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('m') ],
	'a dump of the extension');
my $cures = `make -s sql-edition-restore-list DUMP=$dump 2>&1`;
like($cures, qr/^the sequence of shard insta5 is in schema counters: (ALTER SEQUENCE .*;)/,
	'a dump of the extension, of a shard whose sequence is in another schema is refused');
$node->safe_psql('m', $cures =~ /: (ALTER SEQUENCE .*;)/);
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('m') ],
	'a dump of the extension, with the cure');
$node->safe_psql('postgres', 'CREATE DATABASE back');
$node->safe_psql('back', SqlEdition::changed());
my $list = `make -s sql-edition-restore-list DUMP=$dump`;
append_to_file("$dump.list", $list);
my $statements = `perl sql-edition/restore_list.pl --sql $dump`;
unlike($statements, qr/'x'/,
	'a dump of the extension: lists what the extension declares, and nothing planted');
$node->safe_psql('back', $statements);
$node->command_ok([ 'pg_restore', '-e', '-L', "$dump.list", '-d', $node->connstr('back'), $dump ],
	'a dump of the extension: is restored without it');
is($node->safe_psql('back', qq{
	SELECT count(*) FROM pg_extension WHERE extname = 'instaid';
	SELECT insta6.next_id() > $last;
	INSERT INTO insta6.likes (n) VALUES (3) RETURNING instaid.extract_shard_id(id);
	SELECT count(*), count(made_at) FROM insta6.notes;
	INSERT INTO insta6.notes (photo_id) VALUES (1) RETURNING id;
	SELECT count(*) FROM instaid.audit() WHERE severity = 'error';
	SELECT schema_name FROM instaid.shards WHERE frozen}), "0\nt\n6\n10|10\n11\n0\ninsta5",
	'a dump of the extension, with its rows, defaults and generated columns, and its frozen shard');
is(SqlEdition::as_app($node, 'back', 'INSERT INTO insta6.photos (n) VALUES (1) RETURNING n'), '1',
	'a dump of the extension, and its rights');

$node->stop;
done_testing();
