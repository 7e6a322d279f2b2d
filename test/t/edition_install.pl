# Installing, updating and removing the SQL edition: what it refuses to be installed
# over, default privileges that are an attack, an update while clients insert, and columns that
# keep their values without it.  pg_regress has one role and one session.
# not in: assert

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

use Clients;
use Docs;
use SqlEdition;

my $node = SqlEdition::server('main', 'autovacuum = off');
$node->safe_psql('postgres', 'CREATE ROLE mallory LOGIN; CREATE ROLE other LOGIN');
my $script = SqlEdition::changed();
my ($version) = SqlEdition::version();
my $later = $version =~ s/(\d+)$/$1 + 10/er;

sub database
{
	my ($name) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name;
		GRANT CREATE ON DATABASE $name TO dba, mallory, other");
	return $name;
}

# What psql says about statements of a role; errors with their DETAIL and HINT, without those of
# statements that PostgreSQL ignored because one before them failed
sub run_as
{
	my ($role, $database, $sql) = @_;
	my ($out, $err) = ('', '');
	# from a file, because psql that ends at an error breaks a pipe
	my $file = PostgreSQL::Test::Utils::tempdir . '/sql';
	append_to_file($file, $sql);
	IPC::Run::run([ $node->installed_command('psql'), '-XAtq', '-U', $role, '-d',
		$node->connstr($database), '-f', $file ], '<', \undef, '>', \$out, '2>', \$err);
	unlink $file;
	$err =~ s/^psql:\S+ //mg;
	$err =~ s/^ERROR:  current transaction is aborted.*\n//mg;
	$err =~ s/^(CONTEXT|SQL statement|PL\/pgSQL function|LINE| +\^).*\n?//mg;
	return join "\n", grep { /\S/ } map { s/\s+\z//r } $out, $err;
}

### Two sessions at once

database('at_once');
my $first = Clients::session($node, 'at_once');
$first->('BEGIN');
$first->("SET LOCAL ROLE dba");
$first->('CREATE SCHEMA instaid');
my $second = IPC::Run::start([ 'psql', '-XAtq', '-U', 'dba', '-d', $node->connstr('at_once'),
	'-f', 'sql-edition/all.sql' ], '<', \undef, '>', \my $said, '2>&1');
$node->poll_query_until('at_once', q{
	SELECT count(*) = 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'});
$first->('COMMIT');
$second->finish;
like($said, qr/ERROR:  another session has just created schema instaid\n.*
HINT:  Run this file again: it updates what is there\.$/m,
	'the edition is installed by two sessions at once: one is told to run it again');

### All files by one command, which leaves nothing in the session of a pooler

database('session');
my $all = "\\i sql-edition/all.sql\n";
my $shown = q{SHOW search_path; SELECT current_setting('instaid_files.known')};
is(run_as('dba', 'session', qq{$all $shown}), '"$user", public',
	'all.sql leaves the search path as it was');
is(run_as('dba', 'session', qq{$all $shown}), '"$user", public',
	'all.sql leaves the search path as it was: a second time');
for my $value ('on', 'off')
{
	is(run_as('dba', 'session', "\\set ON_ERROR_STOP $value\n$all\\echo :ON_ERROR_STOP\n"),
		$value, "all.sql leaves the search path as it was, and ON_ERROR_STOP as it was, $value");
}
my $failed = run_as('dba', database('aborted'),
	qq{CREATE SCHEMA instaid;\n$script SHOW search_path});
like($failed, qr/^ERROR:  schema "instaid" already exists/m,
	'a script that fails ends at the error');
like($failed, qr/^"\$user", public/m, 'an error leaves the search path as it was');
like(run_as('dba', 'aborted', $all), qr/\AERROR:  schema "instaid" already exists\n.*\n.*\z/,
	'all.sql ends at the first error');
is($node->safe_psql('aborted', q{SELECT nspname FROM pg_namespace WHERE nspname ~ '^instaid'}),
	'instaid', 'all.sql ends at the first error, with nothing done');

### One text, for tools that have a transaction of their own

$node->command_ok([ 'make', '-s', 'sql-edition' ], 'make sql-edition');
my $one = slurp_file("dist/sql-edition/instaid-$version.sql");
unlike($one, qr/^(\\|(BEGIN|COMMIT|ROLLBACK);)/m,
	'make sql-edition: writes a text without commands of psql, and without an end of the'
	  . ' transaction');
my $objects = q{
	SELECT pg_describe_object(d.classid, d.objid, 0), p.proacl, c.relacl,
		obj_description(d.objid, d.classid::regclass::name), o.text
	FROM pg_depend AS d LEFT JOIN pg_proc AS p ON p.oid = d.objid
		LEFT JOIN pg_class AS c ON c.oid = d.objid
		LEFT JOIN LATERAL (SELECT COALESCE(pg_get_functiondef(p.oid), pg_get_viewdef(c.oid)))
			AS o (text) ON true
	WHERE d.refclassid = 'pg_namespace'::regclass
		AND d.refobjid::regnamespace::text ~ '^instaid' ORDER BY 1};
database('one');
is(run_as('dba', 'one', "BEGIN; CREATE SCHEMA app; $one ROLLBACK;
	SELECT nspname FROM pg_namespace WHERE nspname ~ '^(app|instaid)'; SHOW search_path"),
	'"$user", public', 'a transaction that is rolled back leaves nothing of it');
is(run_as('dba', 'one', "SET search_path = app; BEGIN; CREATE SCHEMA app; $one
	SHOW search_path; SELECT instaid.create_shard('insta5', 5); CREATE TABLE photos (id bigint
		PRIMARY KEY DEFAULT insta5.next_id()); INSERT INTO photos SELECT; COMMIT; SHOW search_path;
	SELECT instaid.extract_shard_id(id) FROM app.photos"), "app\n\napp\n5",
	'a transaction that goes on finds the names that it found before');
is($node->safe_psql('one', $objects), $node->safe_psql('session', $objects),
	'one text makes the same objects as all.sql');
# \gexec sends the whole text as one query
my $query = sub { return 'SELECT $_one_$' . $_[0] . '$_one_$ \gexec' . "\n" };
is(run_as('dba', database('query'), $query->("$one SELECT 1/0"))
	. run_as('dba', 'query', q{SELECT nspname FROM pg_namespace WHERE nspname ~ '^instaid'}),
	'ERROR:  division by zero', 'one query with an error in its end leaves nothing');
is(run_as('dba', 'query', $query->($one) . 'SHOW search_path'), '"$user", public',
	'one query without an error installs all');
is(run_as('dba', 'query', $query->($one) x 2), '', 'one query updates what is there');
is($node->safe_psql('query', $objects), $node->safe_psql('session', $objects),
	'one query makes the same objects');
like(run_as('dba', database('statements'), "\\set ON_ERROR_STOP on\n$one"),
	qr/\AERROR:  the SQL edition must be installed in one transaction
.*\nHINT:  Send all statements as one string, or run their file by psql -1 -f\.$/m,
	'each statement in a transaction of its own is refused');
is($node->safe_psql('statements', q{SELECT nspname FROM pg_namespace WHERE nspname ~ '^instaid'}),
	'', 'each statement in a transaction of its own is refused, with nothing done');

### Adopting, which is a file and a schema of its own

my $adopting = "\\i sql-edition/adopting.sql\n";
my $adopts = q{CALL instaid_adopt.adopt_shards()};
database('adopting');
my $needs = run_as('dba', 'adopting', $adopting);
like($needs, qr/\AERROR:  role dba has not installed the SQL edition of instaid \Q$version\E\n/,
	'adopting.sql needs the SQL edition');
is(Clients::hints($needs), 'Run sql-edition/all.sql of this version first. With the extension'
	  . ' instaid: CREATE EXTENSION instaid_adopt;', 'adopting.sql says what to run first');
run_as('dba', 'adopting', $script);
like(run_as('mallory', 'adopting', $adopting), qr/\AERROR:  role mallory has not installed/,
	'adopting.sql needs the owner of the SQL edition');
is(run_as('dba', 'adopting', $adopting . $shown), '"$user", public',
	'the owner of the SQL edition installs adopting.sql');
is(run_as('dba', 'adopting', $adopts), q{NOTICE:  no schema LIKE '%' can be adopted},
	'the owner of the SQL edition adopts');
is(run_as('dba', 'adopting', $adopting), qq{ERROR:  schema "instaid_adopt" already exists\n}
	  . 'HINT:  Run nothing in it. Rename it, or DROP SCHEMA instaid_adopt CASCADE; and run this'
	  . ' file again.', 'adopting.sql can be installed once');
my $adopting_objects = $node->safe_psql('adopting', $objects);
run_as('dba', 'adopting', "COMMENT ON SCHEMA instaid_sql IS 'instaid $later, SQL edition'");
for my $call ($adopts, map { "SELECT instaid_adopt.$_" } q{adopt_shard('x')},
	q{replace_copy('now()')}, q{adopt_column('pg_class', 'oid')})
{
	is(run_as('dba', 'adopting', $call),
		"ERROR:  this instaid_adopt works only with instaid $version, SQL edition\n"
		  . 'HINT:  DROP SCHEMA instaid_adopt CASCADE; It holds nothing. Then run'
		  . ' sql-edition/adopting.sql of the version of instaid.',
		"another version of instaid is refused: $call");
}
like(run_as('dba', 'adopting', "DROP SCHEMA instaid_adopt CASCADE; $adopting"),
	qr/ERROR:  role dba has not installed.*\nDETAIL:  Its version is \Q$later\E\./,
	"another version of instaid is refused, and so is a file of another version");
my $one_to_adopt = slurp_file("dist/sql-edition/instaid_adopt-$version.sql");
unlike($one_to_adopt, qr/^(\\|(BEGIN|COMMIT|ROLLBACK);)/m, 'one text, without commands of psql');
is(run_as('dba', 'query', $query->($one_to_adopt)), '',
	'one text, without commands of psql, which can be one query');
is($node->safe_psql('query', $objects), $adopting_objects,
	'one text, without commands of psql, with the same objects');
like(run_as('dba', 'one', "\\set ON_ERROR_STOP on\n$one_to_adopt"),
	qr/\AERROR:  adopting must be installed in one transaction
.*\nHINT:  Send all statements as one string, or run their file by psql -1 -f\.$/m,
	'one text, without commands of psql, and must be one transaction');

### What is there already

my $there;
for my $case (
	# what is done before, the role that installs, the error, its DETAIL and HINT
	[ q{CREATE SCHEMA instaid}, 'mallory', 'schema "instaid" already exists',
		'is no part of a complete instaid',
		'Run nothing in it. Rename or drop it, and run this file again.' ],
	[ q{CREATE SCHEMA instaid_sql}, 'dba', 'schema "instaid_sql" already exists',
		'belongs to role mallory',
		'Run nothing in it. Rename or drop it, and run this file again.' ],
	[ $script, 'other', 'schema "instaid" already exists',
		"belongs to role dba, and the SQL edition of instaid \Q$version\E is there",
		'To update it: SET ROLE dba;' ],
	[ "$script ALTER SCHEMA instaid RENAME TO instaid_sql_edition", 'dba',
		'schema "instaid_sql" already exists', 'is no part of a complete instaid',
		'Run nothing in it. Rename or drop it, and run this file again.' ],
	[ $script =~ s/'\Q$version\E'/'$later'/gr, 'dba',
		"the SQL edition of instaid \Q$later\E is installed",
		"This file has version \Q$version\E", 'Run the files of that version, or of a later one.' ])
{
	my ($before, $role, $error, $detail, $hint) = @$case;
	my $name = database('there' . ++$there);
	run_as($before =~ /^CREATE/ ? 'mallory' : 'dba', $name, $before);
	like(run_as($role, $name, $script),
		qr/\AERROR:  $error\nDETAIL:  .*$detail.*\nHINT:  \Q$hint\E$/m, "refused: $error");
}
# what another role has put there, with a right that an administrator gave
database('planted');
run_as('dba', 'planted', $script);
# a next_id() beside that of a shard
run_as('dba', 'planted', q{
	SELECT instaid.create_shard('insta5', 5); GRANT CREATE, USAGE ON SCHEMA insta5 TO mallory});
run_as('mallory', 'planted', q{
	CREATE FUNCTION insta5.next_id() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'});
is(run_as('dba', 'planted', $script), '', 'an update goes on beside what is planted in a shard');
is(run_as('dba', 'planted', q{
	SET client_min_messages = warning; SELECT instaid.renumber_shard('insta5', 6);
	SELECT code, object FROM instaid.audit();
	SELECT instaid.extract_shard_id(insta5.next_id('insta5.table_id_seq'))}),
	"\nplanted_function|insta5.next_id()\nschema_right|insta5\n6",
	'an update goes on beside what is planted in a shard, as renumber_shard() does, and audit()'
	  . ' names it');
# a type that a search_path finds first
database('typed');
run_as('mallory', 'typed', q{
	CREATE SCHEMA m; GRANT USAGE ON SCHEMA m TO PUBLIC;
	CREATE FUNCTION m.is_text(pg_catalog.text) RETURNS boolean LANGUAGE plpgsql
		AS $$ BEGIN RAISE WARNING 'planted'; RETURN true; END $$;
	CREATE DOMAIN m.text AS pg_catalog.text CHECK (m.is_text(VALUE))});
is(run_as('dba', 'typed', "SET search_path = m, pg_catalog;\n$script"), '',
	'no file finds a type of another role');
$node->safe_psql('planted', 'GRANT CREATE ON SCHEMA instaid_sql TO mallory');
run_as('mallory', 'planted', q{CREATE FUNCTION instaid_sql._open(regclass, bigint, text)
	RETURNS bigint LANGUAGE sql AS 'SELECT 1'});
like(run_as('dba', 'planted', $script),
	qr/\AERROR:  function instaid_sql\._open\(.*\) belongs to another role\n.*owner is mallory.*
HINT:  Drop it if it is no part of instaid, and run this file again\.$/m,
	'an update does not adopt what another role has planted');
run_as('mallory', 'planted', 'DROP FUNCTION instaid_sql._open(regclass, bigint, text)');
$node->safe_psql('planted', q{CREATE FUNCTION instaid_sql._open(regclass, bigint, text)
	RETURNS bigint LANGUAGE sql AS 'SELECT 1';
	ALTER FUNCTION instaid_sql._open(regclass, bigint, text) OWNER TO pg_monitor});
like(run_as('dba', 'planted', $script),
	qr/\AERROR:  function .* belongs to another role\n.*owner is pg_monitor/,
	'an update does not adopt what a predefined role has');

### Update

# all rights that other roles have on an object, or the lack of one
my $rights = q{
	SELECT o.name, CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END,
		x.privilege_type
	FROM (SELECT n.nspname::text, n.nspowner, COALESCE(n.nspacl, acldefault('n', n.nspowner))
		  FROM pg_namespace AS n WHERE n.nspname ~ '^instaid'
		  UNION ALL
		  SELECT p.oid::regprocedure::text, p.proowner,
			  COALESCE(p.proacl, acldefault('f', p.proowner))
		  FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
		  WHERE n.nspname ~ '^(instaid|insta5$)'
		  UNION ALL
		  SELECT c.oid::regclass::text, c.relowner,
			  COALESCE(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char",
				  c.relowner))
		  FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
		  WHERE n.nspname ~ '^(instaid|insta5$)' AND c.relkind IN ('v', 'S')
		  UNION ALL
		  SELECT t.oid::regtype::text, t.typowner, COALESCE(t.typacl, acldefault('T', t.typowner))
		  FROM pg_type AS t WHERE t.oid = 'instaid_sql.sequence_options'::regtype)
		 AS o (name, owner, acl)
		 CROSS JOIN LATERAL aclexplode(o.acl) AS x
	ORDER BY 1, 2, 3};

SqlEdition::install($node, 'updated');
$node->safe_psql('updated', 'GRANT CREATE ON DATABASE updated TO other');
run_as('dba', 'updated', q{
	SELECT instaid.add_sequence('insta5', 'likes_id_seq');
	CREATE TABLE insta5.likes (id bigint PRIMARY KEY
		DEFAULT insta5.next_id('insta5.likes_id_seq'));
	CREATE TABLE insta5.uses (id bigint DEFAULT insta5.next_id(),
		at timestamptz GENERATED ALWAYS AS (instaid.extract_timestamp(id)) STORED);
	INSERT INTO insta5.uses DEFAULT VALUES;
	REVOKE EXECUTE ON FUNCTION instaid.create_shard FROM PUBLIC;
	GRANT EXECUTE ON FUNCTION instaid.create_shard TO other});
run_as('other', 'updated', q{SELECT instaid.create_shard('insta8', 8)});
my $before = $node->safe_psql('updated', $rights);
my $next = $script =~ s/'\Q$version\E'/'$later'/gr;
$next =~ s/(-- There is room if)/-- as of $later\n    $1/ or die;
$next =~ s/('the time of an ID, to the millisecond)/$1, as of $later/ or die;
my $row = "INSERT INTO insta5.photos (n) VALUES (1) RETURNING began, id, nextval('insta5.steps');";
my $sessions = SqlEdition->sessions($node, 'updated', 8, $row, $row =~ s/\(n\) VALUES \(1\)/(n)
	SELECT generate_series(1, 300)/r =~ s/\n\s+/ /gr, "BEGIN; $row $row COMMIT;");
my $deadline = time + 180;
sleep(0.05) while $sessions->received < 40 * 5_000 && time < $deadline;
is(run_as('dba', 'updated', $next), '', 'an update');
my $received = $sessions->received;
sleep(0.05) while $sessions->received < $received + 40 * 5_000 && time < $deadline;
my $sum = $sessions->stop->findings;
cmp_ok($sum->{count}, '>', 9_000, "an update, while clients insert $sum->{count} IDs");
is("$sum->{twice} $sum->{inverted} "
	  . $sessions->errors(qr/terminating connection|connection to server|server closed/), '0 0 ',
	'an update, of which none fails or comes twice');
is($node->safe_psql('updated', $rights), $before, 'an update, and rights stay');
is(run_as('other', 'updated', q{SELECT instaid.create_shard('insta9', 9);
	SELECT instaid.extract_shard_id(insta8.next_id())}), "\n8",
	'an update, and shards of other roles');
is($node->safe_psql('updated', qq{
	SELECT string_agg(pronamespace::regnamespace::text, ' ') FROM pg_proc
	WHERE proname = 'next_id' AND strpos(prosrc, 'as of $later') > 0;
	SELECT obj_description('instaid.extract_timestamp'::regproc), obj_description(
		'instaid_sql'::regnamespace);
	SELECT count(*) FROM instaid.shards;
	INSERT INTO insta5.likes DEFAULT VALUES RETURNING id > 0;
	SELECT at = instaid.extract_timestamp(id) FROM insta5.uses}),
	"insta9\nthe time of an ID, to the millisecond, as of $later|what the functions of shards call:"
	  . " instaid $later, SQL edition\n3\nt\nt", 'after an update, new shards have the new text');
my $texts = q{SELECT string_agg(p.oid::regprocedure || p.prosrc, ',' ORDER BY p.oid)
	FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname ~ '^inst'};
my $kept = $node->safe_psql('updated', $texts);
like(run_as('dba', 'updated', $script),
	qr/\AERROR:  the SQL edition of instaid \Q$later\E is installed/,
	'no way back');
is($node->safe_psql('updated', $texts), $kept, 'no way back, even if psql goes on after an error');
$before = $node->safe_psql('updated', $rights);
is(run_as('dba', 'updated', $next), '', 'the same version again');
is($node->safe_psql('updated', $rights), $before, 'the same version again: changes no right');

### The way back from what was adopted

my ($back) = grep { /aclexplode/ } map { $_->{text} } section_blocks('docs/adopting.md',
	'The way back in the SQL edition');
my $texts_file = PostgreSQL::Test::Utils::tempdir . '/old_next_ids.sql';
$back =~ s/old_next_ids\.sql/$texts_file/ or die;
database('back');
run_as('dba', 'back', $script . $adopting);
run_as('dba', 'back', q{SELECT instaid.create_shard('made', 9)});
my %of = (t1 => 1, t2 => 2, '"Ten ""ant"' => 3, stays => 4, used => 5);
run_as('dba', 'back', join '', map { qq{
	CREATE SCHEMA $_; CREATE SEQUENCE $_.table_id_seq;
	CREATE FUNCTION $_.next_id(OUT result bigint) LANGUAGE plpgsql AS \$\$ BEGIN
		result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721)
			<< 23 | ($of{$_} << 10) | nextval('$_.table_id_seq') % 1024; END \$\$;
	CREATE TABLE $_.photos (id bigint PRIMARY KEY DEFAULT $_.next_id());
	GRANT USAGE ON SCHEMA $_ TO app; GRANT USAGE ON SEQUENCE $_.table_id_seq TO app;
	GRANT INSERT, SELECT ON $_.photos TO app;} } sort keys %of);
run_as('other', 'back', q{SELECT instaid.create_shard('theirs', 10)});
append_to_file($texts_file, run_as('dba', 'back', q{
	SELECT pg_get_functiondef(oid) || ';' FROM pg_proc WHERE proname = 'next_id'
		AND pronargs = 0 AND pronamespace <> 'stays'::regnamespace}));
like(run_as('dba', 'back', $adopts), qr/schema t2 is shard 2/, 'schemas are adopted');
run_as('dba', 'back', q{REVOKE ALL ON SEQUENCE t1.table_id_seq FROM app;
	CREATE VIEW used.one AS SELECT used.next_id('used.table_id_seq')});
my $insert = join '', map { "INSERT INTO $_.photos DEFAULT VALUES RETURNING
	instaid.extract_shard_id(id);" } sort keys %of;
like(run_as('dba', 'back', $back), qr/^ERROR:  cannot drop desired.*
DETAIL:  view used\.one depends on function used\.next_id/m,
	'the way back names what uses the functions of a shard');
my $left = q{SELECT string_agg(schema_name, ' ' ORDER BY shard_id) FROM instaid.shards};
is(run_as('dba', 'back', $left), 'stays used made theirs',
	'the way back leaves shards that have not gone back, and those of others');
is(run_as('dba', 'back', 'DROP VIEW used.one;' . $back),
	qq{"Ten ""ant".next_id()\nt1.next_id()\nt2.next_id()\nused.next_id()},
	'the way back can be repeated, and audit() finds the copies');
is(run_as('dba', 'back', $left), 'stays made theirs',
	'the way back can be repeated, and does the rest');
is(run_as('app', 'back', $insert), "3\n4\n1\n2\n5", 'the way back lets clients insert');
is(run_as('dba', 'back', q{SELECT string_agg(n.nspname, ' ' ORDER BY n.nspname)
	FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
	WHERE c.relname = 'id_sequence_lock'}), 'made stays theirs',
	'the way back drops locks that no shard uses');
like(run_as('dba', 'back', $adopts), qr/schema "Ten ""ant" is shard 3/,
	'what has gone back can be adopted again');
is(run_as('dba', 'back', $left) . run_as('app', 'back', $insert) . run_as('dba', 'back',
	q{SELECT code FROM instaid.audit()}), "t1 t2 Ten \"ant stays used made theirs3\n4\n1\n2\n5",
	'what has gone back can be adopted again, and clients insert');

### Removing: what drop.sql leaves; install_removing.pl removes shards

my ($remove) = map { $_->{text} =~ s/^.*drop\.sql\n//mr }
  grep { $_->{text} =~ /drop\.sql/ } section_blocks('docs/sql-edition.md', 'Removing this edition');
my ($using, $drop) = map { slurp_file("sql-edition/$_.sql") } 'dependants', 'drop';
database('removed');
run_as('dba', 'removed', $script);
run_as('dba', 'removed', q{
	SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
	INSERT INTO insta5.photos (n) VALUES (1), (2);
	CREATE TABLE insta5.times (id bigint, at timestamptz
		GENERATED ALWAYS AS (instaid.extract_timestamp(id)) STORED)});
unlike(run_as('dba', 'removed', $remove), qr/ERROR/, 'shards are removed');
run_as('dba', 'removed', q{SELECT instaid.create_shard('insta7', 7)});
my $has_shards = run_as('dba', 'removed', $drop);
like($has_shards, qr/^ERROR:  these shards are left: insta7$/m,
	'the edition stays while it has shards');
is(Clients::hints($has_shards), 'If they were moved, drop the functions when'
	  . ' sql-edition/dependants.sql shows nothing that uses them.',
	'drop.sql says when the functions of shards can be dropped');
run_as('dba', 'removed', 'DROP SCHEMA insta7 CASCADE');
like(run_as('dba', 'removed', $using), qr/column at of table insta5\.times\|/,
	'what uses functions is named');
like(run_as('dba', 'removed', $drop), qr/^ERROR:.*insta5\.times depends/ms,
	'what uses functions is named, and kept');
run_as('dba', 'removed', 'ALTER TABLE insta5.times DROP at');
is(run_as('dba', 'removed', $drop), '', 'all of the edition goes when nothing uses it');
is(run_as('dba', 'removed', q{
	INSERT INTO insta5.photos (n) VALUES (3);
	SELECT count(*), max(id) FILTER (WHERE n = 3) = max(id) FILTER (WHERE n < 3) + 1
	FROM insta5.photos;
	SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'insta5.photos'::regclass;
	SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE nspname ~ '^instaid'}),
	"3|t\nnextval('insta5.table_id_seq'::regclass)", 'columns count on without the edition');
is(run_as('dba', 'removed', $script), '', 'the edition can be installed again');

done_testing();
