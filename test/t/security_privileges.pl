# A role without rights cannot make a superuser run its code, or change objects of
# another role, by what it has in a database that a superuser works on: when shards are
# frozen or adopted, when partitions are created, when other servers are asked.  pg_regress
# has one session and one database.
# not in: version

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;
use Mallory;
use SqlEdition;

start_server();

### What a role sees that has only pg_monitor

# the same as a superuser: the alerts of the documentation
$node->safe_psql('postgres',
	'CREATE ROLE watcher LOGIN IN ROLE pg_monitor; CREATE DATABASE watched');
$node->safe_psql('watched', q{
	CREATE EXTENSION instaid;
	SET client_min_messages = error;
	SELECT instaid.create_shard('frozen', 1), instaid.create_shard('ahead', 2);
	SELECT instaid.freeze_shard('frozen');
	CREATE SEQUENCE ahead.likes_id_seq;
	CREATE TABLE ahead.likes (id bigint DEFAULT ahead.next_id('ahead.likes_id_seq'));
	SELECT setval(sequence, (extract(epoch FROM now() + interval '1 h') * 1000)::bigint << 10)
	FROM instaid._shard_sequences('ahead') AS sequence});
my @alerts = grep { /^FROM instaid\.shards/m } map { $_->{text} }
  section_blocks('docs/operations.md', 'What to watch');
is(scalar(@alerts), 1, 'the documentation has a query for shards');
my $sequences = q{
SELECT s, instaid.extract_timestamp(instaid._last_id(s, shard_id, epoch), epoch)
	> clock_timestamp() + interval '2064 ms'
FROM instaid.shards, instaid._shard_sequences(schema_name) AS s WHERE NOT frozen};
for my $alert (@alerts, $sequences)
{
	my $shown = run_as('watcher', 'watched', $alert) =~ s/00:\d\d:[\d.]+/TIME/gr;
	is($shown, as_superuser('watched', $alert) =~ s/00:\d\d:[\d.]+/TIME/gr,
		'a member of pg_monitor sees the alerts');
	unlike($shown, qr/\A\s*\z|ERROR/, 'a member of pg_monitor sees the alerts, and there are some');
}

### Objects of other roles, in one database

my $db = database('shards', 1);
$node->safe_psql($db, q{
	SELECT instaid.create_shard('insta5', 5);
	CREATE TABLE insta5.users (id serial PRIMARY KEY, name text);
	INSERT INTO insta5.users (name) VALUES ('a'), ('b');
	GRANT USAGE ON SCHEMA insta5 TO mallory;
	GRANT REFERENCES ON insta5.users TO mallory;});
# It holds locks for as long as it likes.
my $holder = Clients::session($node, $db);

### adopt_column()

# mallory has a table that refers to a table of another role.  Its CHECK and its index
# would run her code if the table were rewritten.
for my $type ('integer', 'bigint')
{
	run_as('mallory', $db, qq{
		CREATE TABLE m.t (n integer, user_id $type REFERENCES insta5.users,
			CHECK (m.gain(user_id) = 1));
		CREATE INDEX ON m.t (m.gain(user_id));
		INSERT INTO m.t VALUES (1, 1);});
	for my $dry_run ('true', 'false')
	{
		like(as_superuser($db,
			"SELECT * FROM instaid_adopt.adopt_column('insta5.users', 'id', $dry_run)"),
			qr/ERROR:  0A000: .*cannot be widened\nDETAIL:  .*m\.t.*mallory/s,
			'adopt_column(): a referring table of another owner is in the way, '
			  . "$type, dry_run $dry_run");
		gained_nothing('adopt_column(): a referring table of another owner is in the way, and'
			  . ' runs no code of hers');
	}
	run_as('mallory', $db, 'DROP TABLE m.t');
}
# ... also if she creates it while the call waits for her lock
$node->safe_psql($db, 'GRANT USAGE ON SCHEMA insta5 TO mallory');
my $hers = $node->background_psql($db, extra_params => [ '-U', 'mallory' ]);
$hers->query_safe(q{BEGIN;
	CREATE TABLE m.t (user_id bigint REFERENCES insta5.users, CHECK (m.gain(user_id) = 1));
	CREATE INDEX ON m.t ((m.gain())); INSERT INTO m.t VALUES (1)});
my $adopter = $node->background_psql($db, on_error_stop => 0);
$adopter->query_until(qr/asked/,
	"\\echo asked\nSELECT instaid_adopt.adopt_column('insta5.users', 'id');\n\\echo done\n");
$node->poll_query_until($db, q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted})
  or die 'nobody waits';
$hers->query_safe('COMMIT');
$hers->quit;
$adopter->query_until(qr/done/, '');
gained_nothing('adopt_column() looks again when it has the locks');
$adopter->quit;
is($node->safe_psql($db, q{SELECT atttypid::regtype FROM pg_attribute
	WHERE attrelid = 'insta5.users'::regclass AND attname = 'id'}), 'integer',
	'adopt_column() looks again when it has the locks, and refuses a table that came meanwhile');
run_as('mallory', $db, 'DROP TABLE m.t');
# her own table, which a superuser adopts for her
is(run_as('mallory', $db, q{
	SELECT instaid.create_shard('m', 6);
	CREATE TABLE m.users (id serial PRIMARY KEY, CHECK (m.gain(id) = 1));
	CREATE INDEX ON m.users (m.gain(id));
	CREATE INDEX ON m.users ((m.gain())) ;
	INSERT INTO m.users DEFAULT VALUES;
	CREATE TABLE m.refers (user_id integer REFERENCES m.users, CHECK (m.gain(user_id) = 1));
	INSERT INTO m.refers VALUES (1);
	-- what is created again: a literal whose type calls her code when it is parsed
	CREATE DOMAIN m.gaining AS integer CHECK (m.gain(VALUE) = 1);
	CREATE TYPE m.holds AS (g m.gaining);
	CREATE VIEW m.literal AS SELECT id, '(1)'::m.holds AS h FROM m.users;
	CREATE MATERIALIZED VIEW m.filled AS SELECT id, m.gain(id) AS g FROM m.users;
	CREATE INDEX filled_gain ON m.filled (m.gain(id));
	CREATE RULE gain AS ON UPDATE TO m.literal DO INSTEAD SELECT m.gain();
	CREATE FUNCTION m.gaining() RETURNS trigger LANGUAGE plpgsql
		AS 'BEGIN PERFORM m.gain(); RETURN new; END';
	CREATE TRIGGER gain BEFORE UPDATE OF id ON m.users
		FOR EACH ROW EXECUTE FUNCTION m.gaining();}), "\n", 'mallory has a shard of her own');
as_superuser($db, q{
	BEGIN; SET LOCAL ROLE mallory; CREATE VIEW m.v AS SELECT '(1)'::m.holds; COMMIT});
is($node->safe_psql($db, q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'}), 't',
	'a superuser who creates her view with SET ROLE runs her code');
$node->safe_psql($db, 'ALTER ROLE mallory NOSUPERUSER');
as_owner('mallory', $db, "SELECT * FROM instaid_adopt.adopt_column('m.users', 'id', true)");
gained_nothing('adopt_column() of her own table, dry_run');
like(as_owner('mallory', $db, "SELECT * FROM instaid_adopt.adopt_column('m.users', 'id')"),
	qr/SET DEFAULT m\.next_id\(\)\nCREATE VIEW m\.literal.*CREATE INDEX filled_gain/s,
	'adopt_column() of her own table');
gained_nothing('adopt_column() of her own table: runs with her rights');
is($node->safe_psql($db, q{
	SELECT atttypid::regtype FROM pg_attribute
	WHERE attrelid = 'm.refers'::regclass AND attname = 'user_id'}), 'bigint',
	'adopt_column() of her own table, and changes the type');
# a superuser's views that name her table, or that she could give another meaning
run_as('mallory', $db, 'CREATE TABLE m.locked (n integer); GRANT SELECT ON m.locked TO PUBLIC');
as_superuser($db, q{
	CREATE VIEW insta5.names_hers AS SELECT u.id, l.n FROM insta5.users AS u, m.locked AS l;
	CREATE VIEW m.his AS SELECT id FROM insta5.users;});
$holder->('BEGIN; LOCK TABLE m.locked');
like(as_superuser($db, "SELECT * FROM instaid_adopt.adopt_column('insta5.users', 'id', true)"),
	qr/ERROR:  0A000: .*view insta5\.names_hers, which names tables of other.*view m\.his in a/s,
	'a view that names a table of hers is in the way, and its lock is not waited for');
$holder->('ROLLBACK');
as_superuser($db, 'DROP VIEW insta5.names_hers, m.his');
# a superuser's table in her schema
as_superuser($db, 'CREATE TABLE m.refers_too (user_id integer REFERENCES insta5.users)');
like(as_superuser($db, "SELECT * FROM instaid_adopt.adopt_column('insta5.users', 'id', true)"),
	qr/ERROR:  0A000: .*: table m\.refers_too of \w+ in a schema of another role/s,
	'a referring table in whose place she could put another is in the way');
as_superuser($db, 'DROP TABLE m.refers_too');
# a trigger on his table by a role with TRIGGER, whose condition has such a literal
as_superuser($db, 'GRANT TRIGGER ON insta5.users TO mallory');
is(run_as('mallory', $db, q{
	CREATE TRIGGER lure BEFORE UPDATE OF id ON insta5.users FOR EACH ROW
		WHEN ('(1)'::m.holds IS NOT NULL) EXECUTE FUNCTION m.gaining()}), '',
	'mallory has a trigger on a superuser\'s table');
as_superuser($db, 'REVOKE TRIGGER ON insta5.users FROM mallory');
for my $dry_run ('true', 'false')
{
	like(as_superuser($db,
		"SELECT * FROM instaid_adopt.adopt_column('insta5.users', 'id', $dry_run)"),
		qr/ERROR:  0A000: .*trigger lure on table insta5\.users, whose condition has a type/s,
		"mallory has a trigger on a superuser's table, which is in the way, dry_run $dry_run");
	gained_nothing('mallory has a trigger on a superuser\'s table, and runs no code of hers');
}
as_superuser($db, 'DROP TRIGGER lure ON insta5.users');
# a child table of another owner
is(as_superuser($db, q{
	CREATE TABLE insta5.parent (id bigint);
	CREATE TABLE m.child () INHERITS (insta5.parent);
	ALTER TABLE m.child OWNER TO mallory}), '', 'a child table of mallory\'s');
run_as('mallory', $db, q{
	ALTER TABLE m.child ADD CHECK (m.gain(id) = 1);
	CREATE INDEX ON m.child ((m.gain()))});
like(as_superuser($db, q{SELECT * FROM instaid_adopt.adopt_column('insta5.parent', 'id', true)}),
	qr/ERROR:  0A000: .*\nDETAIL:  .*m\.child.*mallory/,
	'a child table of mallory\'s: is in the way');
gained_nothing('a child table of mallory\'s, and runs no code of hers');
# It is refused before anything is locked.
$holder->('BEGIN; LOCK TABLE insta5.users, m.users');
like(run_as('mallory', $db, q{
	SET lock_timeout = '5s';
	SELECT * FROM instaid_adopt.adopt_column('insta5.users', 'id')}),
	qr/ERROR:  42501: must be owner of table insta5\.users/,
	'a role that does not own a table does not wait for its lock');
like(run_as('alice', $db, q{
	SET lock_timeout = '5s';
	SELECT * FROM instaid_adopt.adopt_column('m.users', 'id')}),
	qr/ERROR:  42501: /,
	'a role that does not own a table does not wait for its lock, and another role does not,'
	  . ' either');
$holder->('ROLLBACK');
# what its hints grant
$node->safe_psql($db, q{
	CREATE TABLE insta5.notes (id bigint PRIMARY KEY DEFAULT 0);
	GRANT SELECT ON insta5.notes TO mallory;
	CREATE SCHEMA v AUTHORIZATION victim;
	GRANT USAGE ON SCHEMA v TO PUBLIC;
	SET ROLE victim;
	CREATE SEQUENCE v.invoices START 7});
run_as('mallory', $db, q{
	CREATE VIEW m.notes AS SELECT id FROM insta5.notes; GRANT INSERT ON m.notes TO PUBLIC;
	SET check_function_bodies = off;
	CREATE SCHEMA m13;
	CREATE FUNCTION m13.next_ids(count integer, sequence regclass DEFAULT 'v.invoices')
		RETURNS SETOF bigint LANGUAGE instaid STRICT COST 1
		AS 'shard 113, epoch 1314220021721';
	CREATE FUNCTION m13.next_id() RETURNS bigint LANGUAGE instaid STRICT COST 1
		AS 'as next_ids(integer, regclass)';
	CREATE TABLE m13.t (id bigint);});
unlike(as_superuser($db, "SELECT * FROM instaid_adopt.adopt_column('insta5.notes', 'id', true)"),
	qr/GRANT/, 'adopt_column() grants nothing to mallory, nor to everybody for her');
unlike(as_owner('mallory', $db, "SELECT * FROM instaid_adopt.adopt_column('m13.t', 'id', true)"),
	qr/GRANT/,
	'adopt_column() grants nothing to mallory, nor to everybody for her, nor for a table of hers');

# ... nor to everybody for a view with which she may insert
as_superuser($db, q{CREATE TABLE insta5.posts (id bigint PRIMARY KEY DEFAULT 0);
	GRANT INSERT ON insta5.posts TO mallory});
run_as('mallory', $db,
	'CREATE VIEW m.posts AS SELECT id FROM insta5.posts; GRANT INSERT ON m.posts TO PUBLIC');
like(as_superuser($db, "SELECT * FROM instaid_adopt.adopt_column('insta5.posts', 'id', true)"),
	qr/next_id\(\)\nGRANT USAGE ON SEQUENCE insta5\.table_id_seq TO mallory\n\z/,
	'adopt_column() grants to those who may insert, and to nobody for a view of theirs');

### adopt_shard()

# The published function, in a schema with a shard ID, and a statement that it runs
sub published
{
	my ($schema, $shard_id, $statement) = @_;
	return qq{
		CREATE SCHEMA $schema; CREATE SEQUENCE $schema.table_id_seq;
		CREATE FUNCTION $schema.next_id() RETURNS bigint LANGUAGE plpgsql AS \$\$
		BEGIN
			$statement
			RETURN ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721)
				<< 23) | ($shard_id << 10) | nextval('$schema.table_id_seq') % 1024;
		END \$\$;};
}
is(run_as('mallory', $db, published('m4', 4, 'PERFORM m.gain();') . q{
	CREATE TABLE m4.t (id bigint DEFAULT m4.next_id());
	CREATE INDEX ON m4.t ((m.gain()));
	INSERT INTO m4.t DEFAULT VALUES;}), '', 'mallory has a copy of the published function');
like(as_owner('mallory', $db, q{SELECT instaid_adopt.adopt_shard('m4', 4)}),
	qr/NOTICE:  .*IDs of schema m4 go on above/, 'adopt_shard() of its schema');
gained_nothing('adopt_shard() of its schema: runs with her rights');
is($node->safe_psql($db, q{
	SELECT instaid.extract_shard_id(m4.next_id()),
		(SELECT string_agg(DISTINCT proowner::regrole::text, ' ') FROM pg_proc
		 WHERE pronamespace = 'm4'::regnamespace)}), '4|mallory',
	'adopt_shard() of its schema, and the functions stay hers');
is(as_superuser($db, q{SELECT instaid.renumber_shard('m4', 40)}), "\n",
	'renumber_shard() of her shard');
gained_nothing('renumber_shard() of her shard: runs with her rights');
is($node->safe_psql($db, q{
	SELECT instaid.extract_shard_id(m4.next_id()), proowner::regrole FROM pg_proc
	WHERE oid = 'm4.next_ids(integer,regclass)'::regprocedure}), '40|mallory',
	'renumber_shard() of her shard, and the functions stay hers');
# ... a superuser's function, with a sequence that mallory can set back
run_as('mallory', $db, 'CREATE SEQUENCE m.hers; GRANT ALL ON m.hers TO PUBLIC');
as_superuser($db, published('m7', 7, '') =~ s/nextval\('\K[^']+/m.hers/r);
like(as_superuser($db, q{SELECT instaid_adopt.adopt_shard('m7')}),
	qr/ERROR:  42501: sequence m\.hers does not belong to the owner of shard m7/,
	'adopt_shard() of a superuser\'s function refuses a sequence of hers');
# ... alice's function in mallory's schema, who could put another one in its place meanwhile
run_as('mallory', $db, 'CREATE SCHEMA m14; GRANT ALL ON SCHEMA m14 TO PUBLIC');
run_as('alice', $db, published('m14', 114, '') =~ s/CREATE SCHEMA m14;//r);
like(as_owner('alice', $db, q{SELECT instaid_adopt.adopt_shard('m14')}),
	qr/ERROR:  55000: schema m14 belongs to another role/,
	'adopt_shard() refuses a function of alice in her schema');
# ... a superuser's function with a search_path where she has put operators and functions
as_superuser($db, q{CREATE SCHEMA open; GRANT ALL ON SCHEMA open TO PUBLIC;
	CREATE SEQUENCE open.table_id_seq;
	CREATE FUNCTION open.next_id() RETURNS bigint LANGUAGE plpgsql SET search_path = open AS $$
	BEGIN
		RETURN ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721)
			<< 23) | (115 << 10) | nextval('table_id_seq') % 1024;
	END $$;});
run_as('mallory', $db, q{
	CREATE FUNCTION open.nextval(text) RETURNS bigint LANGUAGE plpgsql
		AS 'BEGIN PERFORM m.gain(); RETURN nextval($1::regclass); END';
	CREATE FUNCTION open.mod(bigint, integer) RETURNS bigint LANGUAGE plpgsql
		AS 'BEGIN PERFORM m.gain(); RETURN mod($1, $2::bigint); END';
	CREATE OPERATOR open.% (FUNCTION = open.mod, LEFTARG = bigint, RIGHTARG = integer)});
as_superuser($db, 'REVOKE ALL ON SCHEMA open FROM PUBLIC');
like(as_superuser($db, q{SELECT instaid_adopt.adopt_shard('open')}),
	qr/42501: other roles could let open\.next_id\(\).*
DETAIL:  .*function open\.mod.*function open\.nextval.*operator open\.%/,
	'adopt_shard() of a superuser\'s function with a search_path names what is in the way');
gained_nothing('adopt_shard() of a superuser\'s function with a search_path names what is in the'
	  . ' way: finds nothing that she has put there');
# ... if mallory's table uses the function of another role
is(run_as('alice', $db, published('a8', 8, '') . q{
	GRANT USAGE ON SCHEMA a8 TO PUBLIC;
	CREATE TABLE a8.t (id bigint DEFAULT a8.next_id());
	INSERT INTO a8.t DEFAULT VALUES;}), '', 'alice has a copy of the published function');
run_as('mallory', $db, q{
	CREATE TABLE m.far (id bigint DEFAULT a8.next_id());
	INSERT INTO m.far VALUES (9223372036854775807);
	CREATE INDEX ON m.far ((m.gain()))});
$holder->('SET ROLE mallory; BEGIN; LOCK TABLE m.far');
like(as_owner('alice', $db, q{
	BEGIN;
	SET LOCAL lock_timeout = '5s';
	SELECT instaid_adopt.adopt_shard('a8', 8);
	SELECT instaid.extract_shard_id(a8.next_id());
	ROLLBACK;}), qr/^8$.*WARNING:  .*other owners.*m\.far/ms,
	'adopt_shard() leaves out tables of other roles that use the function');
$holder->('ROLLBACK; RESET ROLE');
gained_nothing('adopt_shard() leaves out tables of other roles that use the function, and runs'
	  . ' no code of theirs');
# ... and a default of hers that passes an argument keeps nobody from adopting
run_as('alice', $db, published('a9', 9, '') =~ s/next_id\(\)/new_id(n integer DEFAULT 1)/r
	. 'GRANT USAGE ON SCHEMA a9 TO PUBLIC');
run_as('mallory', $db, 'CREATE TABLE m.passes (id bigint DEFAULT a9.new_id(7))');
like(as_owner('alice', $db, q{BEGIN; SELECT instaid_adopt.adopt_shard('a9');
	SELECT shard_id FROM instaid.shards WHERE schema_name = 'a9'; ROLLBACK}), qr/^9$/m,
	'adopt_shard() does not mind what argument she passes');
# ... and a superuser's function in mallory's schema is not called by its name, which she can
# give to another one while adopt_shard() waits for her table
run_as('mallory', $db, 'CREATE SCHEMA m11; GRANT ALL ON SCHEMA m11 TO PUBLIC');
as_superuser($db, published('m11', 111, '') =~ s/CREATE SCHEMA m11;//r);
my $adopt = q{SELECT instaid_adopt.adopt_shard('m11', 111)};
like(as_superuser($db, $adopt), qr/ERROR:  55000: schema m11 belongs to another role
.*HINT:  .*ALTER FUNCTION m11\.next_id\(\) OWNER TO mallory;/s,
	'adopt_shard() leaves a superuser\'s function in her schema alone');
as_superuser($db, q{
	ALTER FUNCTION m11.next_id() OWNER TO mallory;
	ALTER SEQUENCE m11.table_id_seq OWNER TO mallory});
is(as_owner('mallory', $db, "$adopt; SELECT instaid.extract_shard_id(m11.next_id())"), "\n111\n",
	'adopt_shard() leaves a superuser\'s function in her schema alone, until it is hers');
# ... even while her own function is being called
is(run_as('mallory', $db, published('m10', 10, q{
	PERFORM nextval('m10.table_id_seq');
	ALTER SCHEMA m10 RENAME TO m10_away; CREATE SCHEMA m10; CREATE SEQUENCE m10.table_id_seq;
	CREATE VIEW m10.t AS SELECT m.gain()::bigint AS id;
	GRANT USAGE ON SCHEMA m10 TO PUBLIC; GRANT SELECT ON m10.t TO PUBLIC;})), '',
	'mallory has a function that renames its schema');
$node->safe_psql($db, 'CREATE TABLE m10.t (id bigint DEFAULT m10.next_id())');
like(as_owner('mallory', $db, q{SELECT instaid_adopt.adopt_shard('m10', 10)}),
	qr/WARNING:  .*\n.*Their rows are not read: m10\.t\./,
	'adopt_shard() leaves a superuser\'s table in it out');
gained_nothing('adopt_shard() leaves a superuser\'s table in it out, and does not read'
	  . ' mallory\'s view with a superuser\'s rights');

# what her functions raise does not end adopt_shards(), even what WHEN OTHERS does not catch
run_as('mallory', $db, published('z1', 131, 'ASSERT false;')
	  . published('z2', 132, qq{PERFORM z2."a\nb"();})
	  . qq{CREATE FUNCTION z2."a\nb"() RETURNS void LANGUAGE plpgsql
		AS 'BEGIN RAISE query_canceled; END';});
run_as('alice', $db, published('z3', 133, ''));
like(as_owner('mallory', $db, q{CALL instaid_adopt.adopt_shards('z_')}),
	qr/z1\.next_id\(\) fails: assertion failed.*z2\.next_id\(\)|z1: .*z2: /s,
	'adopt_shards() goes on after a function that raises an error');
is(as_superuser($db, q{CALL instaid_adopt.adopt_shards('z_')})
	=~ /mallory has 2: z1\.next_id\(\), \.\.\.\n/, 1,
	'adopt_shards() goes on after a function that raises an error, and has a line for each owner');
like(run_as('alice', $db, q{CALL instaid_adopt.adopt_shards('z_')}), qr/schema z3 is shard 133/,
	'adopt_shards() goes on after a function that raises an error, which adopts its own');
run_as('mallory', $db, published('y1', 134, 'PERFORM pg_sleep(180);'));
like(run_as('mallory', $db, q{SET statement_timeout = '5s'; CALL instaid_adopt.adopt_shards('y_')}),
	qr/ERROR:  57014: canceling statement due to statement timeout\n/,
	'adopt_shards() goes on after a function that raises an error, and ends when the statement'
	  . ' is cancelled');

### A function of hers that declares what belongs to others

run_as('victim', $db, q{
	CREATE SCHEMA w; GRANT USAGE ON SCHEMA w TO mallory;
	CREATE TABLE w.hidden (n integer); CREATE SEQUENCE w.counter; CREATE SEQUENCE w.shown;
	GRANT USAGE ON SEQUENCE w.shown TO mallory});
for my $hidden ('hidden', 'counter')
{
	is(run_as('mallory', $db, qq{
		SET check_function_bodies = off;
		CREATE SCHEMA m_$hidden;
		CREATE FUNCTION m_$hidden.next_ids(count integer, sequence regclass DEFAULT 'w.$hidden')
			RETURNS SETOF bigint LANGUAGE instaid STRICT COST 1
			AS 'shard 115, epoch 1314220021721';
		CREATE FUNCTION m_$hidden.next_id(sequence regclass) RETURNS bigint
			LANGUAGE instaid STRICT COST 1 AS 'as next_ids(integer, regclass)';
		BEGIN;
		SELECT m_$hidden.next_id('w.shown') > 0, count(*) FROM m_$hidden.next_ids(2, 'w.shown');
		SELECT relation::regclass FROM pg_locks WHERE pid = pg_backend_pid()
			AND relation IN (SELECT oid FROM pg_class WHERE relnamespace = 'w'::regnamespace);
		COMMIT;
		DROP SCHEMA m_$hidden CASCADE}) =~ s/^NOTICE.*\n(?:^(?:DETAIL|LOCATION|drop|and).*\n)*//mgr,
		"t|2\nw.shown\n", "she locks no $hidden of others");
}

### create_shard(): a shard ID that she locks, and a schema that she makes in the meantime

my $holder_pid = $holder->('SELECT pg_backend_pid()');
$holder->(q{SET ROLE mallory; BEGIN; SELECT instaid._lock_shard_id('m', 112)});
like(as_superuser($db, q{SELECT instaid.create_shard('m12', 112)}),
	qr/ERROR:  55P03: another transaction .* with ID 112\nDETAIL:  Process $holder_pid has the/,
	'a superuser\'s create_shard() does not wait for the lock of a shard ID, and names who has it');
$holder->('ROLLBACK; BEGIN; CREATE SCHEMA m12; GRANT ALL ON SCHEMA m12 TO PUBLIC');
my $waiting = $node->background_psql($db, on_error_stop => 0);
$waiting->query_until(qr/asked/,
	"\\echo asked\nSELECT instaid.create_shard('m12', 112);\n\\echo done\n");
$node->poll_query_until($db, q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted})
  or die 'nobody waits';
$holder->('COMMIT; RESET ROLE');
$waiting->query_until(qr/done/, '');
$waiting->quit;
is($node->safe_psql($db,
	q{SELECT count(*) FROM pg_proc WHERE pronamespace = 'm12'::regnamespace}), '0',
	'a superuser\'s create_shard() does not use a schema that mallory has made meanwhile');

### create_partitions()

my $two_days = q{'2026-01-01 UTC', '2026-01-03 UTC', '1 day'};
my $one_day = q{'2026-01-01 UTC', '2026-01-02 UTC', '1 day'};
# a table of mallory, with an index on her function
is(run_as('mallory', $db, q{
	CREATE TABLE m.views (id bigint, CHECK (m.gain(id) = 1)) PARTITION BY RANGE (id);
	CREATE TABLE m.views_default PARTITION OF m.views DEFAULT;
	CREATE INDEX ON m.views ((m.gain()));
	CREATE INDEX ON m.views (m.gain(id));
	INSERT INTO m.views VALUES (5);}), '', 'mallory has a partitioned table');
is(as_owner('mallory', $db, "SELECT * FROM instaid.create_partitions('m.views', $two_days)"),
	"m.views_20260101\nm.views_20260102\n", 'create_partitions() of that table');
gained_nothing('create_partitions() of that table: runs with her rights');
is($node->safe_psql($db, q{
	SELECT DISTINCT relowner::regrole FROM pg_class
	WHERE relname ~ '^views_2026' AND relkind = 'r'}), 'mallory',
	'create_partitions() of that table, and she owns the partitions');
as_superuser($db, q{
	INSERT INTO m.views_20260101
		SELECT instaid.make_id('2026-01-01 12:00 UTC', 1, 1) WHERE false;
	ANALYZE m.views_20260101});
gained_nothing('create_partitions() of that table, and ANALYZE runs with her rights, too');
# a default partition of mallory
$node->safe_psql($db, q{
	CREATE TABLE insta5.parts (id bigint) PARTITION BY RANGE (id);
	CREATE TABLE insta5.parts_default PARTITION OF insta5.parts DEFAULT;
	ALTER TABLE insta5.parts_default OWNER TO mallory});
run_as('mallory', $db, q{
	ALTER TABLE insta5.parts_default ADD CHECK (m.gain() = 1);
	CREATE INDEX ON insta5.parts_default ((m.gain()))});
like(as_superuser($db, "SELECT instaid.create_partitions('insta5.parts', $one_day)"),
	qr/ERROR:  55000: default partition insta5\.parts_default does not belong to the owner of/,
	'create_partitions() does not read a default partition of another owner');
gained_nothing('create_partitions() does not read a default partition of another owner, and'
	  . ' PostgreSQL does not, either');
# a superuser's table in a schema of mallory, who can put another table in its place
$node->safe_psql($db, q{
	CREATE TABLE m.theirs (id bigint) PARTITION BY RANGE (id);
	CREATE TABLE m.ids (id bigint)});
like(as_superuser($db, "SELECT $_"),
	qr/ERROR:  55000: table (m\.\w+) belongs to a superuser, and its schema does not
.*HINT:  Give it to the owner of the schema: ALTER TABLE \1 OWNER TO mallory;$/ms,
	"$_ of a superuser's table in mallory's schema")
  for "instaid.create_partitions('m.theirs', $one_day)",
	q{instaid_adopt.adopt_column('m.ids', 'id')};

### freeze_shard(), thaw_shard(): a shard whose sequence belongs to another role

is(run_as('mallory', $db, q{
	SELECT instaid.create_shard('m9', 9);
	CREATE TABLE m9.t (id bigint DEFAULT m9.next_id('m9.table_id_seq'))}), "\n",
	'mallory has a shard');
$node->safe_psql($db, q{
	GRANT USAGE, CREATE ON SCHEMA m9 TO victim;
	ALTER SEQUENCE m9.table_id_seq OWNER TO victim});
my $state = q{
	SELECT seqmax, last_value FROM pg_sequence, m9.table_id_seq
	WHERE seqrelid = 'm9.table_id_seq'::regclass};
for my $call (q{freeze_shard('m9')}, q{thaw_shard('m9')}, q{renumber_shard('m9', 90)})
{
	$node->safe_psql($db, 'ALTER SEQUENCE m9.table_id_seq START 1 RESTART MAXVALUE 99999')
	  if $call =~ /thaw/;
	my $was = $node->safe_psql($db, $state);
	like(as_superuser($db, "SELECT instaid.$call"),
		qr/ERROR:  42501: sequence m9\.table_id_seq does not belong to the owner of shard m9
DETAIL:  .*victim.*mallory/, "$call is refused for a sequence of another owner");
	is($node->safe_psql($db, $state), $was,
		"$call is refused for a sequence of another owner, and the sequence does not change");
}
$node->safe_psql($db, q{
	ALTER SEQUENCE m9.table_id_seq OWNER TO mallory;
	ALTER SEQUENCE m9.table_id_seq NO MAXVALUE});
is(as_superuser($db, q{
	SELECT instaid.freeze_shard('m9');
	SELECT frozen FROM instaid.shards WHERE schema_name = 'm9';
	SELECT instaid.thaw_shard('m9')}), "\nt\n\n",
	'a shard whose owner owns the sequence is frozen and thawed');

### Nothing switches roles: what a switch leaves behind cannot be listed

is(join(' ', grep { slurp_file($_) =~ /SetUserIdAndSecContext|SetCurrentRoleId|SetSessionAuthor/ }
	glob 'src/*.[ch] src/*/*.[ch]'), '', 'no C of the extension switches roles');
is(join("\n", map { my $file = $_; map { "$file: $_" }
		  grep { !/Connect as %s|THEN 'SET ROLE|To update it: SET ROLE/ }
		  slurp_file($file) =~
		  /^(?! *--)(.*SET (?:LOCAL )?(?:ROLE|SESSION AUTHORIZATION)\b.*)/mg }
		  grep { !/--/ }
		  glob '{common,extension,adopt,sql-edition}/*.sql examples/remove_shards.sql'),
	'', 'no C of the extension switches roles, and no function');
is($node->safe_psql($db, q{SELECT count(*) FROM pg_proc
	WHERE pronamespace::regnamespace::text ~ '^instaid' AND prosecdef}), 0,
	'no C of the extension switches roles: none is SECURITY DEFINER');

### Views and functions that read objects of all roles

as_superuser($db, q{
	SELECT * FROM instaid.shards;
	SELECT * FROM instaid.audit()});
gained_nothing('views and audit() run no code of others');
is(as_superuser($db,
	q{SELECT instaid.settled_id('m9') >= 0, instaid.settled_id('m9', 'm9.table_id_seq') >= 0}),
	"t|t\n", 'settled_id() of mallory\'s shard');
gained_nothing('settled_id() of mallory\'s shard: runs no code of hers');

### A next_id() that another role could replace, and the cures of audit()

for my $edition ('extension', 'SQL')
{
	my $db = database("next_id_\L$edition", $edition eq 'extension');
	$node->safe_psql($db, SqlEdition::changed() . SqlEdition::adopting()) if $edition eq 'SQL';
	$node->safe_psql($db, q{
		GRANT CREATE ON SCHEMA public TO mallory, victim;	-- as up to PostgreSQL 14
		SELECT instaid.create_shard('insta5', 5);
		GRANT USAGE, CREATE ON SCHEMA insta5 TO victim;
		CREATE TABLE public.orders (id serial PRIMARY KEY)});
	# Her next_id() runs her code with the rights of whoever inserts.
	my $hers = q{next_id() RETURNS bigint LANGUAGE plpgsql
		AS 'BEGIN PERFORM m.attempt(); RETURN 1; END'};
	run_as('mallory', $db, join '', map { my ($schema, $shard_id) = @$_; qq{
		SELECT instaid.create_shard('$schema', $shard_id); DROP FUNCTION $schema.next_id}
		. ($edition eq 'SQL' ? qq{;
		CREATE FUNCTION $schema.next_id(sequence $schema.id_sequence) RETURNS bigint
			SECURITY DEFINER LANGUAGE sql RETURN 1} : '()') . qq{;
		CREATE FUNCTION $schema.$hers;} } [ 'public', 71 ], [ 'h', 70 ]);
	run_as('mallory', $db, q{
		GRANT USAGE, CREATE ON SCHEMA h TO victim; GRANT USAGE ON SCHEMA m TO PUBLIC});
	run_as('victim', $db, q{
		SELECT instaid.create_shard('v5', 55); GRANT USAGE, CREATE ON SCHEMA v5 TO mallory;
		CREATE TABLE public.notes (id bigint); CREATE TABLE h.notes (id bigint);
		CREATE TABLE v5.notes (id bigint); CREATE TABLE insta5.notes (id bigint)});
	run_as('mallory', $db, "CREATE FUNCTION v5.$hers");

	like(as_superuser($db, q{SELECT instaid.create_shard('public', 6)}),
		qr/DETAIL:  It is shard 71 of role mallory, with epoch/,
		"$edition: create_shard() says whose shard a schema is");
	my $adopt = 'SELECT * FROM instaid_adopt.adopt_column';
	my $refused = as_superuser($db, "$adopt('public.orders', 'id')");
	like($refused, qr/ERROR:  55000: other roles could replace public\.next_id\(\)
DETAIL:  .*: public\.next_id\(\) of mallory, public\.next_ids\(.*\) of mallory\.\n/,
		"$edition: adopt_column() does not give a table the next_id() of another role");
	# by whatever name the superuser has
	is(Clients::hints($refused) =~ s/shard of \w+,/shard of ...,/r,
		'Let the column use a shard of ..., or of a superuser. If you trust'
		  . ' the other roles, set its default yourself.',
		"$edition: adopt_column() says whose shard the column can use");
	like(run_as('victim', $db, "$adopt('h.notes', 'id', true)"),
		qr/ERROR:  55000: .*\nDETAIL:  .*: h\.next_id\(\) of mallory, .*, schema h of mallory\./,
		"$edition: a dry run of adopt_column() does not give it, either");
	like(run_as('victim', $db, "$adopt('insta5.notes', 'id')"),
		qr/^ALTER TABLE .* SET DEFAULT insta5\.next_id\(\)$/m,
		"$edition: adopt_column() gives a table the next_id() of a superuser");
	as_superuser($db,
		"ALTER DATABASE $db OWNER TO victim; ALTER SCHEMA v5 OWNER TO pg_database_owner");
	like(run_as('victim', $db, "$adopt('v5.notes', 'id')"), $edition eq 'SQL'
		? qr/ERROR:  55000: .*\nDETAIL:  .* do not: v5\.next_id\(\) of mallory\.\n/
		: qr/^ALTER TABLE .* SET DEFAULT v5\.next_id\(\)$/m,
		"$edition: adopt_column() gives a table the next_id() of its owner, unless she could add"
		  . " a function that is found");
	# replace_copy() of victim's function, where the next_id() beside it is hers
	run_as('victim', $db, q{
		CREATE FUNCTION v5.old_id() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';}
		. ($edition eq 'SQL' ? '' : 'DROP FUNCTION v5.next_id() CASCADE'));
	run_as('mallory', $db, "CREATE FUNCTION v5.$hers") if $edition ne 'SQL';
	like(run_as('victim', $db, q{SELECT instaid_adopt.replace_copy('v5.old_id()')}),
		qr/ERROR:  22023: schema v5 is a shard already/,
		"$edition: replace_copy() does not call the next_id() of another role, either");
	as_superuser($db, "ALTER DATABASE $db OWNER TO CURRENT_USER");
	# Each finding there is, of what she has, and of a superuser's tables beside it
	my $declared = sub {
		my ($schema, $shard_id, $epoch, $sequence) = @_;
		return "CREATE SCHEMA $schema; CREATE SEQUENCE $schema.s; " . ($edition eq 'SQL'
			? "SELECT instaid_sql._declare('$schema', $shard_id, $epoch, '$sequence');"
			: "CREATE FUNCTION $schema.next_ids(count integer,
				sequence regclass DEFAULT '$sequence') RETURNS SETOF bigint
				LANGUAGE instaid STRICT COST 1 AS 'shard $shard_id, epoch $epoch';");
	};
	$node->safe_psql($db, q{
		GRANT CREATE ON SCHEMA instaid TO alice;
		GRANT USAGE, CREATE ON SCHEMA insta5 TO mallory;
		CREATE TABLE h.lured (id bigint PRIMARY KEY DEFAULT insta5.next_id());
		CREATE TABLE public.lured (id bigint PRIMARY KEY DEFAULT insta5.next_id());
		CREATE TABLE h.ticks (id bigint PRIMARY KEY DEFAULT nextval('h.table_id_seq'));
		CREATE TABLE h.narrow (id integer DEFAULT h.next_id());});
	is(run_as('mallory', $db, "\\o /dev/null\nSET client_min_messages = error;\n"
		. published('c', 72, 'PERFORM m.attempt();')
		. $declared->('e1', 73, 1577836800000, 'h.table_id_seq')
		. $declared->('e2', 70, 1314220021721, 'e2.s')
		. $declared->('e3', 74, 700000000000, 'e3.s')
		. ($edition eq 'SQL' ? '' : $declared->('e4', 75, 7258118400000, 'e4.s')) . q{
		SELECT instaid.create_shard('q' || n, 80 + n) FROM generate_series(1, 10) AS n;
		SET check_function_bodies = off;
		DO $$ BEGIN FOR i IN 1..3 LOOP
			EXECUTE format('CREATE FUNCTION e3.long%s() RETURNS bigint LANGUAGE plpgsql AS %L',
				i, 'nextval(' || repeat('''''', 45000));
		END LOOP; END $$;
		CREATE TABLE h.t (id integer DEFAULT h.next_id() CHECK (m.gain(id) = 1));
		CREATE INDEX ON h.t (m.gain(id)); CREATE INDEX ON h.t ((m.gain()));
		CREATE TABLE h.p0 (id bigint PRIMARY KEY DEFAULT h.next_id(), CHECK (m.gain(id) = 1))
			PARTITION BY RANGE (id);
		CREATE INDEX ON h.p0 ((m.gain()));
		CREATE TABLE h.p1 (LIKE h.p0 INCLUDING ALL) PARTITION BY RANGE (id);
		CREATE TABLE h.p2 (LIKE h.p0 INCLUDING ALL) PARTITION BY RANGE (id);
		SELECT instaid.create_partitions('h.p1', now() - interval '10 days',
			now() + interval '1 day', '11 days');
		SELECT instaid.create_partitions('h.p2', now() - interval '20 days',
			now() - interval '10 days', '10 days');
		CREATE TABLE h.later PARTITION OF h.p2 DEFAULT;
		CREATE TABLE h.p3 (LIKE h.p0 INCLUDING ALL) PARTITION BY RANGE (id);
		CREATE TABLE h.p3_all PARTITION OF h.p3 FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
		CREATE TABLE h.refers (id bigint REFERENCES h.p3_all CHECK (m.gain(id) = 1));
		CREATE INDEX ON h.refers ((m.gain()));
		ALTER SEQUENCE q1.table_id_seq INCREMENT 2;
		SELECT setval(seqrelid, seqmax) FROM pg_sequence
		WHERE seqrelid = 'q2.table_id_seq'::regclass;
		ALTER SEQUENCE q3.table_id_seq SET UNLOGGED;
		SELECT instaid.advance_past('q4.table_id_seq', instaid.min_id(now() + interval '1 h'),
			instaid.default_epoch());
		GRANT UPDATE ON SEQUENCE q5.table_id_seq TO PUBLIC;
		CREATE SCHEMA x; CREATE TABLE x.t (id bigint UNIQUE CHECK (m.gain(id) = 1));
		CREATE INDEX ON x.t ((m.gain()));
		INSERT INTO x.t SELECT instaid.make_id(now(), 99, n) FROM generate_series(1, 20) AS n;
		ANALYZE x.t;} . ($edition eq 'SQL' ? q{
		SELECT instaid.add_sequence('q6', 'more');
		ALTER DOMAIN q7.id_sequence DROP CONSTRAINT is_a_sequence_of_this_shard;
		DROP VIEW q8.id_sequence_lock; GRANT TRIGGER ON q9.id_sequence_lock TO PUBLIC;
		CREATE FUNCTION x.next_id(integer DEFAULT 1) RETURNS bigint SECURITY DEFINER
			LANGUAGE plpgsql AS 'BEGIN PERFORM m.attempt(); RETURN instaid_sql._open(1); END';
		CREATE DOMAIN x.id_sequence AS regclass CHECK (m.gain() = 1);}
		: q{
		CREATE SEQUENCE q6.more; CREATE DOMAIN x.d AS instaid.id DEFAULT 5;
		ALTER FUNCTION q7.next_id() STABLE; DROP FUNCTION q8.next_id();
		DROP FUNCTION q10.next_ids(integer, regclass) CASCADE;
		ALTER FUNCTION q9.next_ids(integer, regclass) RENAME TO many;
		CREATE FUNCTION x.next_ids(integer, integer) RETURNS SETOF bigint LANGUAGE plpgsql
			AS 'BEGIN PERFORM m.attempt(), instaid_sql._next_ids(1); END';
		}) . q{
		CREATE FUNCTION insta5.next_id(text) RETURNS bigint LANGUAGE plpgsql
			AS 'BEGIN PERFORM m.attempt(); RETURN 1; END';
		CREATE TABLE q6.t (id bigint PRIMARY KEY DEFAULT q6.next_id('q6.more'));
		SELECT seqmax FROM pg_sequence WHERE seqrelid = 'q6.more'::regclass \gset
		SELECT instaid.freeze_shard('q6');
		ALTER SEQUENCE q6.more MAXVALUE :seqmax;}), '', 'mallory has all that');
	my @findings = map { [ split /\t/ ] } split /\n/, $node->safe_psql($db,
		q{SELECT concat_ws(E'\t', code, object, problem, cure) FROM instaid.audit()});
	my %cures = map { $_->[0] => $_->[3] } @findings;
	my @codes = slurp_file('docs/reference.md') =~ /^\| `(\w+)` \|.*\| (?:both|\Q$edition\E) \|$/mg;
	is(join(' ', sort keys %cures), join(' ', sort @codes),
		"$edition: audit() finds all that there can be");
	is(join(' ', map { "$_->[1] $_->[2]" } grep { $_->[0] eq 'foreign_function' } @findings),
		'h.narrow.id role mallory could replace the function of its default',
		"$edition: audit() finds all that there can be, with the next_id() of another role, but"
		  . " not hers in her tables");
	gained_nothing("$edition: audit() finds all that there can be, and runs no code of hers");
	# what is a sentence: it names no next_id(), and leaves rows and partitions to their owner
	unlike(join("\n", map { $_->[3] } @findings), qr/\b(?:h|public|its)[. ]next_id\(/,
		'no cure names her next_id()');
	# each is SQL: a function with a polymorphic argument is parsed, and not analyzed
	is(as_superuser($db, q{
		DO $$ DECLARE a record; BEGIN FOR a IN SELECT * FROM instaid.audit() LOOP
			EXECUTE format('CREATE FUNCTION pg_temp.cure(anyelement) RETURNS void
				LANGUAGE sql AS %L', a.cure);
			DROP FUNCTION pg_temp.cure(anyelement);
		END LOOP; END $$}), '', 'no cure names her next_id(): each cure is SQL');
	like($cures{$_}, qr/\bowner\b|as role mallory/, "the cure of $_ is for the owner of the table")
	  for 'no_partition', 'last_partition', 'default_partition', 'ahead_of_clock', 'narrow_column',
		'partition_reference';
	for my $table ('h.lured', 'public.lured', 'h.ticks')
	{
		like(as_superuser($db, "$adopt('$table', 'id'); INSERT INTO $table DEFAULT VALUES"),
			qr/ERROR:  55000: /, "adopt_column() of $table, as its cure says");
		gained_nothing("adopt_column() of $table, as its cure says, and an INSERT run no code of"
			  . " hers");
	}
	for my $finding (grep { $_->[3] =~ /\b[A-Z]{4,} .*;/ } @findings)
	{
		my ($statement) = $finding->[3] =~ /\b([A-Z]{4,} .*;)/;
		as_superuser($db, $statement);
		gained_nothing("$finding->[0]: $statement");
	}
}

### A schema that mallory has made before the extension instaid_adopt could

my $squatted = database('squatted');
$node->safe_psql($squatted, 'CREATE EXTENSION instaid; ' . published('insta9', 9, ''));
is(run_as('mallory', $squatted, q{
	CREATE SCHEMA instaid_adopt;
	CREATE FUNCTION instaid_adopt.adopt_shard(text) RETURNS integer LANGUAGE sql
		AS 'SELECT m.attempt()';
	CREATE PROCEDURE instaid_adopt.adopt_shards() LANGUAGE sql AS 'SELECT m.attempt()';
	GRANT USAGE ON SCHEMA instaid_adopt, m TO PUBLIC}),
	'', 'mallory has a schema instaid_adopt, where that is missing');
my $cure = $node->safe_psql($squatted, 'SELECT cure FROM instaid.audit()');
is($cure, 'CREATE EXTENSION instaid_adopt; -- Then audit() has another cure.',
	'mallory has a schema instaid_adopt, where that is missing, which no cure calls');
my $said = as_superuser($squatted, "$cure\nSELECT instaid.create_shard('insta9', 9);");
like($said, qr/ERROR:  55000: schema "instaid_adopt" already exists\nHINT:  Run nothing in it/,
	'the extension refuses the schema that the cure made');
unlike($said, qr/instaid_adopt\./, 'no HINT calls what stands in that schema');
gained_nothing('the cure runs nothing of hers');

### The positions of a database, which a superuser restores in another one

my $planted = q{
	CREATE SCHEMA IF NOT EXISTS instaid;
	GRANT USAGE ON SCHEMA instaid, m TO PUBLIC;
	CREATE FUNCTION instaid.restore_position(text, bigint, timestamptz, text, boolean, text)
		RETURNS integer LANGUAGE sql AS 'SELECT m.attempt()';
	CREATE FUNCTION instaid.restore_position(unknown, unknown, unknown, unknown, unknown,
		unknown)
		RETURNS integer LANGUAGE sql AS 'SELECT m.attempt()'};
run_as('mallory', $db, q{
	SELECT instaid.create_shard('m"; SELECT m.attempt(); \\\\ --', 120,
		sequence_name => E'q\n\\\\! touch planted\n\'');
	SELECT "m""; SELECT m.attempt(); \\\\ --".next_id();
	SELECT instaid.create_shard('m15', 125); SELECT m15.next_id();
	SET check_function_bodies = off;
	CREATE SCHEMA m14;
	CREATE FUNCTION m14.next_ids(count integer, sequence regclass DEFAULT 'v.invoices')
		RETURNS SETOF bigint LANGUAGE instaid STRICT COST 1
		AS 'shard 114, epoch 1314220021721';
	CREATE SCHEMA planted; GRANT USAGE ON SCHEMA planted TO PUBLIC;
	CREATE FUNCTION planted.to_regclass(text) RETURNS regclass LANGUAGE sql
		AS 'SELECT m.attempt()::regclass';
	CREATE FUNCTION planted.equal(name, unknown) RETURNS boolean LANGUAGE sql
		AS 'SELECT m.attempt() = 1';
	CREATE FUNCTION planted.equal(name, text) RETURNS boolean LANGUAGE sql
		AS 'SELECT m.attempt() = 1';
	CREATE OPERATOR planted.= (FUNCTION = planted.equal, LEFTARG = name, RIGHTARG = text)});
$node->safe_psql($db, q{
	ALTER SEQUENCE m15.table_id_seq OWNER TO alice});
$node->safe_psql($db, q{SELECT instaid.freeze_shard('m9')});
my $positions = as_superuser($db, "SET search_path = planted, m, pg_catalog;
	SELECT * FROM instaid.dump_positions()");
like($positions, qr/touch planted.*m15\.table_id_seq.*'m9', 't', 'mallory'\);/s,
	'dump_positions() by a superuser, also of a sequence of alice\'s in her shard');
like($positions, qr/^WARNING: .*the position of sequence v\.invoices is left out$/m,
	'dump_positions() by a superuser, also of a sequence of alice\'s in her shard, and says that'
	  . ' it leaves out a sequence that another role\'s shard names');
gained_nothing('dump_positions() by a superuser, also of a sequence of alice\'s in her shard:'
	  . ' runs no code of others');
$positions =~ s/^(?:WARNING|DETAIL|HINT|LOCATION): .*\n//mg;
my $restored = as_superuser($db, "SET search_path = planted, m, pg_catalog;\n$positions");
is($restored =~ s/^WARNING: .*v\.invoices not restored: it was left out\n(?:[DHL].*\n)+//mgr
	=~ s/^\s*\n//mgr, '',
	'dump_positions() by a superuser, also of a sequence of alice\'s in her shard, and its'
	  . ' statements run where others have planted functions and operators');
is(run_as('victim', $db, q{SELECT nextval('v.invoices')}), "7\n",
	'dump_positions() by a superuser, also of a sequence of alice\'s in her shard, and leave a'
	  . ' sequence alone that another role\'s shard names');
is($node->safe_psql($db, q{SELECT frozen FROM instaid.shards WHERE schema_name = 'm9'}), 't',
	'dump_positions() by a superuser, also of a sequence of alice\'s in her shard, and freeze'
	  . ' what is frozen');
gained_nothing('dump_positions() by a superuser, also of a sequence of alice\'s in her shard,'
	  . ' and run no code of theirs');
ok(!-e 'planted',
	'dump_positions() by a superuser, also of a sequence of alice\'s in her shard, nor a command'
	  . ' of psql');
my $trap = database('trap');
run_as('mallory', $trap, 'CREATE SCHEMA instaid; GRANT USAGE ON SCHEMA instaid TO PUBLIC');
run_as('mallory', $trap, $planted);
like(as_superuser($trap, $positions), qr/^schema "instaid" is missing, or belongs to another role/m,
	'dump_positions() by a superuser, also of a sequence of alice\'s in her shard, and do not'
	  . ' run where instaid is a schema of mallory\'s');
gained_nothing('dump_positions() by a superuser, also of a sequence of alice\'s in her shard,'
	  . ' whose functions they would call');
# relations of hers in place of the sequences
run_as('mallory', $db, q{
	ALTER SEQUENCE m4.table_id_seq RENAME TO away;
	CREATE VIEW m4.table_id_seq AS SELECT m.gain() AS last_value;
	GRANT USAGE ON SCHEMA m4 TO PUBLIC;
	GRANT ALL ON m4.table_id_seq TO PUBLIC});
like(as_superuser($db, $positions), qr/WARNING:  42704: position of sequence m4\.table_id_seq not/,
	'dump_positions() by a superuser, also of a sequence of alice\'s in her shard, and name a'
	  . ' view that has the name of a sequence');
gained_nothing('dump_positions() by a superuser, also of a sequence of alice\'s in her shard,'
	  . ' and do not read it');
run_as('mallory', $db, 'DROP VIEW m4.table_id_seq; ALTER SEQUENCE m4.away RENAME TO table_id_seq');

### The node's shard

like(run_as('mallory', $db, $_), qr/ERROR:  42501/, "mallory cannot run: $_")
  for 'SELECT instaid.next_id()',
  q{SELECT instaid.next_ids(1)},
  q{SELECT nextval('instaid.node_id_seq')},
  q{SELECT setval('instaid.node_id_seq', 1)},
  'ALTER SEQUENCE instaid.node_id_seq RESTART',
  q{SELECT instaid.freeze_shard('instaid')},
  q{SELECT instaid.advance_past('instaid.node_id_seq', 1, instaid.default_epoch())},
  q{CREATE OR REPLACE FUNCTION instaid.next_id() RETURNS bigint
	LANGUAGE sql AS 'SELECT 1::bigint'};

$node->stop;
unlike(slurp_file($node->logfile), qr/TRAP:|XX000|PANIC/, 'the server logged no error of its own');
done_testing();
