# The SQL edition (sql-edition/) where a test needs several sessions, roles, databases or pg_dump;
# and both editions where they adopt.  What both do in one session is in test/pgtap/.
#
# FULL=1 adds all 8,192 shards
# not in: assert
# in: newest
# takes 50 s

use strict;
use warnings;

use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

use Clients;
use Docs;
use SqlEdition;

my $node = Clients::server('main', 'autovacuum = off', q{timezone = 'America/New_York'},
	q{intervalstyle = 'postgres'}, 'max_connections = 120', 'max_prepared_transactions = 5');
$node->safe_psql('postgres', 'CREATE ROLE dba LOGIN; CREATE ROLE app LOGIN');
$node->safe_psql('postgres', 'CREATE DATABASE c');
$node->safe_psql('c', 'CREATE EXTENSION instaid_adopt CASCADE');
SqlEdition::install($node, 's');

$node->safe_psql('s', 'CREATE TABLE v AS SELECT generate_series(1, 100000) AS n');

# Many shards at once; with FULL=1 all that there can be
my $last = $ENV{FULL} ? 8191 : 799;
is($node->safe_psql('postgres', 'CREATE DATABASE many; GRANT CREATE ON DATABASE many TO dba')
	. $node->safe_psql('many', SqlEdition::changed(), extra_params => [ '-U', 'dba' ])
	. $node->safe_psql('many', qq{
	SET client_min_messages = error;
	CALL instaid.create_shards('m%%%s "x"', 0, 600);
	CALL instaid.create_shards('m%%%s "x"', 0, $last);
	SELECT count(*), min(shard_id), max(shard_id), max(schema_name COLLATE "C") FROM instaid.shards;
	SELECT count(*) FROM instaid.audit();
	SELECT instaid.extract_shard_id("m%$last ""x""".next_id())}, extra_params => [ '-U', 'dba' ]),
	$last + 1 . "|0|$last|m%99" . ($ENV{FULL} ? 9 : "") . " \"x\"\n0\n$last", 'many shards');

# A repeated call checks the epoch for the shards that it creates.
my $ending = q{'end%%s', 6000, %s, date_trunc('day', now()) - interval '12600 days'};
for my $last (6000, 6001)
{
	$node->psql('s', 'CALL instaid.create_shards(' . sprintf($ending, $last) . ')',
		stderr => \my $warnings);
	like($warnings, qr/WARNING:  shard $last ends in less than five years/,
		"shards up to $last are created with a warning");
}
$node->safe_psql('s', 'DROP SCHEMA end6000, end6001 CASCADE');

# A declaration with a sequence that its owner may not use counts for nothing.  Other roles see what
# the catalogs show.
$node->safe_psql($_, q{SET client_min_messages = error; SELECT instaid.create_shard('taken', 6)})
  for 'c', 's';
is(join(' ', map { $node->safe_psql($_, q{
	SET client_min_messages = error;
	CREATE SCHEMA lent AUTHORIZATION app;
	GRANT USAGE ON SCHEMA taken TO app;
	SET ROLE app;
	SET check_function_bodies = off;
	SELECT CASE WHEN to_regnamespace('instaid_sql') IS NULL
		THEN $$CREATE FUNCTION lent.next_ids(count integer, sequence regclass
			DEFAULT 'taken.table_id_seq') RETURNS SETOF bigint LANGUAGE instaid STRICT
			AS 'shard 91, epoch 631152000001'$$
		ELSE $$SELECT instaid_sql._declare('lent', 91, 631152000001, 'taken.table_id_seq')$$
		END \gexec
	RESET ROLE;
	SELECT count(*) FROM instaid.shards WHERE schema_name = 'lent';
	SELECT count(*) FROM instaid.metrics WHERE owner = 'app';
	DROP SCHEMA lent CASCADE; REVOKE USAGE ON SCHEMA taken FROM app}) } 'c', 's') =~ s/\s+/ /gr,
	'1 0 1 0', 'a shard whose owner may not use its sequence is in no row of metrics');
is(SqlEdition::as_app($node, 's', q{
	SELECT concat_ws(',', shards = unreadable, frozen_shards,
		drift_seconds, last_id_seconds)
	FROM instaid.metrics ORDER BY owner = 'dba'}), 't,0 t,0',
	'metrics show other roles what the catalogs show');

# A function that is called when its schema is adopted does not end the call.
my $raising = join '', map {
	my ($schema, $shard_id, $statement) = @$_;
	qq{CREATE SCHEMA $schema; CREATE SEQUENCE $schema.table_id_seq;
		CREATE FUNCTION $schema.next_id() RETURNS bigint LANGUAGE plpgsql AS \$\$
		BEGIN
			$statement;
			RETURN ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721
				<< 23) | ($shard_id << 10) | nextval('$schema.table_id_seq') % 1024;
		END \$\$;}
} [ 'raising1', 91, 'ASSERT false' ], [ 'raising2', 92, 'RAISE query_canceled' ],
	[ 'raising3', 93, 'NULL' ], [ 'sleeping', 94, 'PERFORM pg_sleep(60)' ];
for my $database ('c', 's')
{
	$node->safe_psql($database, $raising);
	like(($node->psql($database, q{CALL instaid_adopt.adopt_shards('raising%')}))[2],
		qr/schema raising3 is shard 93,.*WARNING:  2 of 3 schemas could not be adopted/s,
		"adopt_shards() goes on after what a function raises, in $database");
	like(($node->psql($database, q{SET statement_timeout = '1 s';
		CALL instaid_adopt.adopt_shards('sleeping')}))[2], qr/ERROR:  canceling statement/,
		"adopt_shards() goes on after what a function raises, in $database, but ends when it is"
		  . " cancelled");
	$node->safe_psql($database, q{DROP SCHEMA raising1, raising2, raising3, sleeping CASCADE});
}

# adopt_column() drops views, rules and triggers of columns that it widens, and creates them again:
# of pg_dump's statements, only types, the default, the serial's sequence, and the right to take
# IDs differ, for a role that may insert.
$node->safe_psql('postgres', q{CREATE ROLE reader; CREATE ROLE "Other Reader"; CREATE ROLE late;
	GRANT CREATE ON DATABASE c TO dba});
my %right = (c => 'USAGE ON SEQUENCE w.table_id_seq',
	s => 'EXECUTE ON FUNCTION w.next_id(sequence w.id_sequence)');
my %printed;
for my $database ('c', 's')
{
	my @as_dba = (extra_params => [ '-U', 'dba' ]);
	$node->safe_psql($database, q{
		SET client_min_messages = error;
		SELECT instaid.create_shard('w', 95);
		CREATE TABLE w.users (id serial PRIMARY KEY, name text, boss integer REFERENCES w.users);
		CREATE TABLE w.posts (id bigserial PRIMARY KEY, user_id integer REFERENCES w.users,
			cat float8);
		CREATE TABLE w.parts (user_id integer REFERENCES w.users, n integer)
			PARTITION BY RANGE (n);
		CREATE TABLE w.parts1 PARTITION OF w.parts FOR VALUES FROM (0) TO (10);
		CREATE TABLE w.log (what text, n bigint);
		INSERT INTO w.users (name, boss) VALUES ('ann', NULL), ('bob', 1);
		INSERT INTO w.posts (user_id) VALUES (1), (1), (2);
		CREATE FUNCTION w.touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
		-- rights of new views, not of those that are created again
		ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO late;
		CREATE VIEW w.plain AS SELECT id, name AS "Na me", boss FROM w.users;
		GRANT SELECT ON w.plain TO reader WITH GRANT OPTION;
		GRANT SELECT ("Na me"), UPDATE ("Na me") ON w.plain TO "Other Reader";
		GRANT INSERT, UPDATE ON w.plain TO PUBLIC;
		REVOKE SELECT ON w.plain FROM late;
		REVOKE DELETE ON w.plain FROM dba;
		COMMENT ON VIEW w.plain IS 'it''s a \view';
		COMMENT ON COLUMN w.plain."Na me" IS 'of the user';
		CREATE VIEW w.barrier WITH (security_barrier, check_option = local, security_invoker) AS
			SELECT id, name FROM w.users WHERE name LIKE 'a\%';
		-- views of views; the first names a column that was renamed
		CREATE VIEW w.a AS SELECT p.user_id, x.boss, 0.1::float8 + p.cat AS f,
			interval '-1 day 2 h' AS i FROM w.posts AS p JOIN w.plain AS x ON x.id = p.user_id;
		ALTER VIEW w.plain RENAME boss TO "Chief";
		CREATE VIEW w.z AS SELECT count(*) AS n, max(user_id) AS m, (SELECT a FROM w.a LIMIT 1)
			FROM w.a;
		CREATE RECURSIVE VIEW w.chain (id, depth) AS
			SELECT id, 0 FROM w.users WHERE boss IS NULL
			UNION ALL SELECT u.id, c.depth + 1 FROM chain c JOIN w.users u ON u.boss = c.id;
		CREATE MATERIALIZED VIEW w.counted WITH (fillfactor = 70, autovacuum_enabled = false) AS
			SELECT u.id, lower(u.name) AS name, count(p.*) AS posts
			FROM w.users AS u LEFT JOIN w.posts AS p ON p.user_id = u.id GROUP BY u.id;
		CREATE UNIQUE INDEX counted_id ON w.counted (id);
		CREATE INDEX ON w.counted (upper(name) text_pattern_ops) WITH (fillfactor = 60)
			WHERE posts > 0;
		COMMENT ON INDEX w.counted_id IS 'one a user';
		COMMENT ON MATERIALIZED VIEW w.counted IS 'counts';
		CREATE MATERIALIZED VIEW w.empty AS SELECT id FROM w.plain WITH NO DATA;
		CREATE VIEW w.over AS SELECT m.*, e.id AS other FROM w.counted AS m, w.empty AS e;
		CREATE RULE ins AS ON INSERT TO w.plain DO INSTEAD
			(INSERT INTO w.users (name) VALUES (new."Na me"); NOTIFY "in; serted");
		COMMENT ON RULE ins ON w.plain IS 'inserts';
		CREATE RULE of_posts AS ON DELETE TO w.posts WHERE old.user_id < 3 DO INSTEAD NOTHING;
		CREATE RULE of_log AS ON UPDATE TO w.log DO ALSO
			INSERT INTO w.log SELECT 'x', n FROM w.z;
		CREATE TRIGGER "in stead" INSTEAD OF UPDATE ON w.a
			FOR EACH ROW EXECUTE FUNCTION w.touch();
		CREATE TRIGGER upd BEFORE UPDATE OF cat, user_id ON w.posts FOR EACH ROW
			WHEN (old.user_id IS DISTINCT FROM new.user_id) EXECUTE FUNCTION w.touch('a ''\b');
		COMMENT ON TRIGGER upd ON w.posts IS 'on posts';
		CREATE CONSTRAINT TRIGGER late AFTER UPDATE OF id ON w.users DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION w.touch();
		CREATE TRIGGER part BEFORE UPDATE OF user_id ON w.parts
			FOR EACH ROW EXECUTE FUNCTION w.touch();}, @as_dba);
	my @dumps;
	for my $dry_run ('true', 'false')
	{
		push @dumps, dumped($database);
		# settings of the session change nothing; PostgreSQL 19 has only one for strings
		my $strings = $node->pg_version->major < 19 ? 'off' : 'on';
		my ($ret, $stdout, $stderr) = $node->psql($database, qq{
			SET extra_float_digits = -10; SET intervalstyle = 'sql_standard';
			SET standard_conforming_strings = $strings; SET quote_all_identifiers = on;
			SET client_min_messages = error;
			SELECT * FROM instaid_adopt.adopt_column('w.users', 'id', $dry_run)},
			@as_dba);
		is($stderr, '', "adopt_column() of a column with views, in $database, dry_run $dry_run");
		push @{ $printed{$database} }, $stdout;
	}
	is($printed{$database}[1], $printed{$database}[0],
		"adopt_column() of a column with views, in $database: shows what it does");
	like($printed{$database}[0], qr/\nGRANT \Q$right{$database}\E TO PUBLIC\z/,
		"adopt_column() of a column with views, in $database, and lets those take IDs who may"
		  . " insert");
	is($dumps[1], $dumps[0],
		"adopt_column() of a column with views, in $database, and a dry run does nothing");
	my $after = dumped($database);
	isnt($after, $dumps[0],
		"adopt_column() of a column with views, in $database: else, the dump differs");
	for ($after, $dumps[0])
	{
		s/\b(?:big|small)?int(?:eger)?\b/int/g;
		s/ DEFAULT w\.next_id\(\)//;
	}
	$after =~ s/^GRANT \Q$right{$database}\E TO PUBLIC;\n//m;
	is($after, $dumps[0], "adopt_column() of a column with views, in $database, by the types only");
	is($node->safe_psql($database, q{
		INSERT INTO w.users (name, boss) SELECT 'new', max(id) FROM w.users;
		INSERT INTO w.posts (user_id) SELECT max(id) FROM w.users;
		SELECT (SELECT count(*) FROM w.counted), (SELECT count(*) FROM w.plain),
			(SELECT instaid.extract_shard_id(m) FROM w.z)}, @as_dba), '2|3|95',
		"adopt_column() of a column with views, in $database, and the views have the rows");
	$node->safe_psql($database, q{SET client_min_messages = error; DROP SCHEMA w CASCADE;
		ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM late}, @as_dba);
}
# Who takes IDs needs another right in each edition.
is($printed{s}[0] =~ s/\Q$right{s}/$right{c}/r, $printed{c}[0],
	'both editions drop and create the same views');

# The statements of pg_dump for the schema w, without a serial's and those of the shard
sub dumped
{
	my ($database) = @_;
	my ($dump, $stderr);
	IPC::Run::run([ 'pg_dump', '-s', '-n', 'w', '-d', $node->connstr($database) ],
		'>', \$dump, '2>', \$stderr) or die $stderr;
	$dump =~ s/^(?:--.*|\\(?:un)?restrict .*|SET .*|)\n//mg;
	return join ";\n", grep { !/users_id_seq|FUNCTION w\.next|id_sequence/ } split /;\n/, $dump;
}

# To let a role read and insert in all tables, as everybody does, covers the lock of the shard, and
# is no finding: no lock that these rights give stops the shard.  Each other right is one.
my $lock_rights = $node->safe_psql('s', q{
	SET client_min_messages = error;
	CREATE ROLE reads_and_inserts; GRANT dba TO CURRENT_USER;
	SET ROLE dba; SELECT instaid.create_shard('locks', 77) \g /dev/null
	GRANT USAGE ON SCHEMA locks TO reads_and_inserts;
	GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA locks TO reads_and_inserts;
	SELECT count(*) FROM instaid.audit() WHERE code = 'lock_right';
	RESET ROLE; SET ROLE reads_and_inserts;
	DO $$ DECLARE m text; BEGIN
		FOREACH m IN ARRAY ARRAY['SHARE UPDATE EXCLUSIVE', 'SHARE', 'SHARE ROW EXCLUSIVE',
			'EXCLUSIVE', 'ACCESS EXCLUSIVE']
		LOOP
			BEGIN EXECUTE format('LOCK TABLE locks.id_sequence_lock IN %s MODE', m);
			RAISE EXCEPTION '%', m; EXCEPTION WHEN insufficient_privilege THEN END;
		END LOOP;
	END $$;
	RESET ROLE; SET ROLE dba;
	GRANT UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER ON locks.id_sequence_lock
		TO reads_and_inserts;
	SELECT cure FROM instaid.audit() WHERE code = 'lock_right';
	SELECT cure FROM instaid.audit() WHERE code = 'lock_right' \gexec
	SELECT count(*) FROM instaid.audit() WHERE code = 'lock_right';
	SELECT format('%s', relacl ~ 'reads_and_inserts') FROM (SELECT relacl::text FROM pg_class
		WHERE oid = 'locks.id_sequence_lock'::regclass) AS c;
	DROP SCHEMA locks CASCADE; RESET ROLE; REVOKE dba FROM CURRENT_USER;
	DROP ROLE reads_and_inserts});
my $revoke = 'REVOKE ALL ON locks.id_sequence_lock FROM reads_and_inserts;';
like($lock_rights, qr/^0\n.*\Q$revoke\E\n0\nf$/, 'rights on the lock of a shard');

# What app can do: use IDs, and nothing else
sub as_app { return SqlEdition::as_app($node, 's', @_) }
$node->safe_psql('s', q{
	CREATE SCHEMA evil AUTHORIZATION app; GRANT CREATE, TEMPORARY ON DATABASE s TO app;
	CREATE ROLE stranger LOGIN; GRANT USAGE ON SCHEMA insta5 TO stranger;
	CREATE SEQUENCE public.other; SELECT setval('public.other', 5200);
	ALTER SEQUENCE public.other OWNER TO dba});
is(as_app('SET client_min_messages = error; SELECT count(*) > 0 FROM instaid.shards;'
	  . ' SELECT count(*) >= 0 FROM instaid.audit()'),
	't t', 'rights on the lock of a shard, and sees what is wrong in schemas that it may not use');
is(as_app(q{
	CREATE FUNCTION evil.bad(bigint,
		bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as %', current_user;
		END $$;
	CREATE FUNCTION evil.bad(bigint,
		integer) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as %', current_user;
		END $$;
	CREATE FUNCTION evil.worse(bigint,
		bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'as %', current_user;
		END $$;
	CREATE FUNCTION evil.nextval(regclass) RETURNS bigint LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'as %', current_user; END $$;
	CREATE FUNCTION evil.floor(float8) RETURNS float8 LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'as %', current_user; END $$;
	CREATE OPERATOR evil.+ (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = evil.bad);
	CREATE OPERATOR evil.+ (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.bad);
	CREATE OPERATOR evil.- (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.bad);
	CREATE OPERATOR evil.& (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.bad);
	CREATE OPERATOR evil.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.worse);
	CREATE OPERATOR evil.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.worse);
	CREATE TEMPORARY TABLE table_id_seq (a integer);
		CREATE TEMPORARY VIEW id_sequence_lock AS SELECT 1;
	SET search_path = evil, pg_temp, pg_catalog, insta5;
	SELECT insta5.next_id() OPERATOR(pg_catalog.>) 0; SELECT pg_sleep(0.003) \g /dev/null
	SELECT insta5.next_id() OPERATOR(pg_catalog.>) 0;
	SELECT pg_catalog.count(*) FROM insta5.next_ids(20);
		SELECT pg_catalog.count(*) FROM insta5.next_ids(2000);
	SELECT instaid.extract_shard_id(insta5.next_id()), instaid.max_id('infinity'),
		instaid.to_shortcode(1)}),
	't t 20 2000 5|9223372036854775807|B',
		'rights on the lock of a shard, nor plants an operator, a function or a temporary view');

# Settings of the database change nothing.  PostgreSQL 19 refuses the first one.
$node->safe_psql('postgres', 'CREATE DATABASE x; GRANT CREATE ON DATABASE x TO dba');
$node->psql('postgres', "ALTER DATABASE x SET $_") for 'standard_conforming_strings = off',
	'quote_all_identifiers = on', q{plpgsql.extra_errors = 'all'}, q{search_path = 'nothing'},
	q{datestyle = 'German'}, 'extra_float_digits = -15', q{bytea_output = 'escape'},
	q{plpgsql.variable_conflict = 'use_column'}, q{default_transaction_isolation = serializable};
$node->safe_psql('x', SqlEdition::changed(), extra_params => [ '-U', 'dba' ]);
is($node->safe_psql('x', q{
	BEGIN ISOLATION LEVEL READ COMMITTED;
	SELECT instaid.create_shard('Q%s "x"', 5, sequence_name => 'it''s "%I"');
	SELECT instaid.add_sequence('Q%s "x"', 'two');
	COMMIT;
	SELECT count(*) FROM "Q%s ""x""".next_ids(2000);
	SELECT pg_sleep(2);
	SELECT instaid.extract_shard_id("Q%s ""x""".next_id());
	SELECT instaid.from_shortcode(instaid.to_shortcode(4035995625349715258));
	SELECT count(*) FROM instaid.audit();
	BEGIN ISOLATION LEVEL READ COMMITTED;
	SELECT instaid.freeze_shard('Q%s "x"'); SELECT instaid.thaw_shard('Q%s "x"');
	COMMIT;
	SELECT schema_name, frozen FROM instaid.shards}, extra_params => [ '-U', 'dba' ]) =~ s/\n+/ /gr,
	' "Q%s ""x"""."two" 2000 5 4035995625349715258 0 Q%s "x"|f',
	'settings of the database change nothing');

# Transactions
$node->safe_psql('s', 'CREATE ROLE tx SUPERUSER LOGIN');
sub outcome { my ($sql) = @_; my ($out, $err); $node->psql('s', "\\set VERBOSITY sqlstate\n$sql",
	stdout => \$out, stderr => \$err, on_error_stop => 0, on_error_die => 0); return join ' ',
	grep { /\S/ } split /\s+/, $out . ' ' . $err =~ s/psql:\S+ ERROR: +//gr }
is(outcome('BEGIN READ ONLY; SELECT insta5.next_id(); ROLLBACK'), '25006',
	'refused in a read-only transaction');
is(outcome(q{
	BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT insta5.next_id() < insta5.next_id();
		SELECT pg_sleep(0.003) \g /dev/null
	SELECT insta5.next_id() AS a \gset
	SAVEPOINT x; SELECT insta5.next_id() AS b \gset
	ROLLBACK TO x; SELECT insta5.next_id() AS c \gset
	RELEASE x; SELECT insta5.next_id() AS d \gset
	SELECT :a < :b AND :b < :c AND :c < :d;
	DISCARD PLANS; SELECT insta5.next_id() > :d; PREPARE TRANSACTION 'p';
		SELECT insta5.next_id() > :d; COMMIT PREPARED 'p'}),
	't t t t', 'isolation levels, savepoints, prepared transactions');
is(outcome(q{
	SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SET max_parallel_workers_per_gather = 2;
	SELECT count(DISTINCT insta5.next_id()) = count(*) FROM v}), 't', 'no parallel plan');

# A transaction that uses two sequences of a shard, and freeze_shard(), which locks them in another
# order: who waits last fails, and nothing is lost.
$node->safe_psql('s', q{SELECT instaid.create_shard('dead', 85);
	SELECT instaid.add_sequence('dead', 'likes'); CREATE TABLE dead.t (n integer, id bigint)});
for my $loser ('the transaction', 'the call')
{
	my @steps = (q{BEGIN; INSERT INTO dead.t SELECT 1, dead.next_id('dead.likes'::regclass)},
		'INSERT INTO dead.t SELECT 2, dead.next_id()');
	my @owner = ('BEGIN; ALTER SEQUENCE dead.table_id_seq CACHE 1',
		q{SELECT instaid.freeze_shard('dead')});
	my $last = Clients::session($node, 's');
	my $first = $node->background_psql('s', on_error_stop => 0);
	my @first = $loser eq 'the call' ? @steps : $owner[1];
	my @last = $loser eq 'the call' ? @owner : @steps;
	$last->(q{SET deadlock_timeout = '10ms'});
	$first->query_safe(q{SET deadlock_timeout = '100s'});
	$first->query_safe(shift @first) if @first > 1;
	$last->(shift @last);
	$first->query_until(qr/asked/, "\\echo asked\n$first[0];\n");
	$node->poll_query_until('s', 'SELECT count(*) = 1 FROM pg_locks WHERE NOT granted')
	  or die 'nobody waits';
	like($last->($last[0]), qr/ERROR:  deadlock detected/, "a deadlock, which $loser finds");
	$last->('ROLLBACK');
	$first->query_safe('COMMIT') if $loser eq 'the call';
	$first->quit;
	is($node->safe_psql('s', q{
		SELECT frozen FROM instaid.shards WHERE schema_name = 'dead';
		SELECT instaid.freeze_shard('dead'); SELECT instaid.thaw_shard('dead');
		INSERT INTO dead.t SELECT 1, dead.next_id('dead.likes'::regclass);
		INSERT INTO dead.t SELECT 2, dead.next_id();
		SELECT count(*), count(DISTINCT (n, id)), bool_and(instaid.extract_shard_id(id) = 85)
		FROM dead.t; TRUNCATE dead.t}) =~ s/\n+/ /gr,
		$loser eq 'the call' ? 'f 4|4|t' : 't 2|2|t',
		"a deadlock, which $loser finds, and loses nothing");
}
$node->safe_psql('s', 'DROP SCHEMA dead CASCADE');

# What one role does to a sequence stops no view or function for others.
$node->safe_psql('s', q{SELECT instaid.create_shard('gone', 84)});
my ($reader, $other) = map { Clients::session($node, 's') } 1, 2;
$reader->('SET client_min_messages = error; BEGIN ISOLATION LEVEL REPEATABLE READ');
my $read = q{SELECT count(s.last_id) FROM instaid.shards AS s, instaid.metrics,
	(SELECT count(*) FROM instaid.audit()) AS a};
$reader->($read);
$other->(q{SET client_min_messages = error; DROP SCHEMA gone CASCADE});
like($reader->($read), qr/^\d+$/, 'a shard that the snapshot shows is dropped');
is($reader->('SELECT sum(unreadable) FROM instaid.metrics'), '1',
	'a shard that the snapshot shows is dropped, and instaid.metrics counts it');
$reader->("ROLLBACK; SET statement_timeout = '60s'");
$other->('BEGIN; ALTER SEQUENCE insta5.table_id_seq RENAME TO other');
is($reader->(q{SELECT last_id FROM instaid.shards WHERE schema_name = 'insta5'}), '',
	'a sequence that is being renamed shows no last_id, and nobody waits');
$other->('ROLLBACK');
is($node->safe_psql('s', q{SET client_min_messages = error; SET ROLE app;
	CREATE SEQUENCE evil.s MINVALUE 9000000000000000000 MAXVALUE 9223372036846396415;
	CREATE FUNCTION evil.next_ids(count integer, q regclass DEFAULT 'evil.s') RETURNS bigint
		LANGUAGE sql RETURN 1;
	CREATE TEMP SEQUENCE s MINVALUE 1314220021721 MAXVALUE 9223372036846396415;
	CREATE FUNCTION pg_temp.next_ids(count integer, q regclass DEFAULT 'pg_temp.s') RETURNS bigint
		LANGUAGE sql RETURN 1;
	SELECT count(*) FROM instaid.shards WHERE schema_name ~ '^(evil|pg_)';
	SELECT count(*) FROM instaid.audit() WHERE object ~ 'evil.s|pg_temp'}), "0\n0",
	'a sequence whose MINVALUE is no time is no shard, nor is one of a temporary schema');

# Another role's functions that look like a shard's declare no shard: the text, the domain and
# next_id() must be of one owner.
is(outcome(q{
	SELECT count(*) FROM instaid.shards \gset
	SELECT max(drift_seconds) AS drift FROM instaid.metrics \gset
	SET client_min_messages = error; CREATE SCHEMA fake AUTHORIZATION app; SET ROLE app;
	CREATE SEQUENCE fake.fake MINVALUE 1314220021721 MAXVALUE 9223372036846467071;
	SELECT setval('fake.fake', 9223372036846467071) \g /dev/null
	GRANT SELECT ON fake.fake TO PUBLIC;
	CREATE FUNCTION fake.next_ids(integer, regclass DEFAULT 'fake.fake') RETURNS bigint
		LANGUAGE sql AS 'SELECT 1 -- instaid_sql._next_ids(';
	CREATE DOMAIN fake.id_sequence AS regclass;
	CREATE FUNCTION fake.next_id(fake.id_sequence) RETURNS bigint SECURITY DEFINER
		LANGUAGE sql AS 'SELECT 1';
	CREATE FUNCTION fake.next_ids(integer, fake.id_sequence DEFAULT 'fake.fake'::regclass)
		RETURNS bigint SECURITY DEFINER LANGUAGE sql AS 'SELECT 1 -- instaid_sql._next_ids(';
	RESET ROLE;
	SELECT count(*) - :count FROM instaid.shards;
	SELECT max(drift_seconds) < :drift + 60 FROM instaid.metrics;
	SELECT instaid.create_shard('insta77', 77);
	SELECT instaid.extract_shard_id(insta77.next_id()); DROP SCHEMA insta77 CASCADE;
	DROP SCHEMA fake CASCADE}),
	'0 t 77', 'functions that look like those of a shard take no shard ID, and move no metric');

# ... nor does a text without end: nothing but its beginning is parsed.
is(outcome(q{
	SELECT count(*) FROM instaid.shards \gset
	SET statement_timeout = '60s'; SET client_min_messages = error;
	CREATE SCHEMA fake AUTHORIZATION app; SET ROLE app;
	SET check_function_bodies = off; CREATE SEQUENCE fake.fake;
	CREATE DOMAIN fake.id_sequence AS regclass;
	CREATE FUNCTION fake.next_id(fake.id_sequence) RETURNS bigint SECURITY DEFINER
		LANGUAGE sql AS 'SELECT 1';
	SELECT format('CREATE OR REPLACE FUNCTION fake.next_ids(integer,
		fake.id_sequence DEFAULT ''fake.fake''::regclass) RETURNS SETOF bigint SECURITY DEFINER
		LANGUAGE plpgsql AS %L; SELECT count(*) - %s FROM instaid.shards', text, :count)
	FROM (SELECT prosrc FROM pg_proc WHERE proname = 'next_ids'
			AND pronamespace = 'insta5'::regnamespace) AS p (source),
		LATERAL (VALUES (E'\nBEGIN\n    RETURN QUERY SELECT instaid_sql._next_ids('
			|| repeat('(123456789012,123456789013,9223372036846577580,', 20000) || E'x;\nEND '),
		(p.source || repeat(' ', 900000)),
		(replace(p.source, '1314220021721', repeat('1', 900000)))) AS t (text) \gexec
	RESET ROLE; DROP SCHEMA fake CASCADE}),
	'0 0 0', 'a text of 900,000 bytes declares no shard, and does not keep its readers');

# Any role can hold the advisory locks of all shard IDs, as it can fill the table of locks.  It
# does not make create_shard() wait, and the error names its session.
my $holder = Clients::session($node, 's');
my $pid = $holder->('SELECT pg_backend_pid()');
$holder->(q{SET ROLE app; SELECT count(pg_advisory_lock(hashtext('instaid shard ID'), n))
	FROM generate_series(0, 99) AS n});
like(($node->psql('s', q{SELECT instaid.create_shard('locked', 99)}))[2],
	qr/is creating a shard with ID 99\nDETAIL:  Session $pid of role .* has the advisory lock/,
	'create_shard() names a session that holds its lock');
$holder->('SELECT pg_advisory_unlock_all()');

# The lock does not depend on the name of a sequence, and follows the schema's.
is(outcome(q{
	SET client_min_messages = error;
	SELECT instaid.create_shard('Re"named', 85, sequence_name => repeat('s', 63)) \g /dev/null
	SELECT instaid.add_sequence('Re"named', 'a"_lock') \g /dev/null
	ALTER SEQUENCE "Re""named"."a""_lock" RENAME TO of_table;
	ALTER SCHEMA "Re""named" RENAME TO "Renamed";
	SELECT pg_sleep(0.005) \g /dev/null
	SELECT count(*) FROM "Renamed".next_ids(2000, '"Renamed".of_table');
	ALTER SEQUENCE "Renamed".of_table RENAME TO other;
	SELECT pg_sleep(0.005) \g /dev/null
	SELECT "Renamed".next_id('"Renamed".other') > 0; SELECT "Renamed".next_id() > 0;
	SELECT count(*) FROM instaid.audit() WHERE object ~ 'Renamed';
	DROP VIEW "Renamed".id_sequence_lock;
	SELECT cure FROM instaid.audit() WHERE code = 'no_lock' \gexec
	SELECT "Renamed".next_id() > 0; DROP SCHEMA "Renamed" CASCADE
	}), '2000 t t 0 t', 'a sequence and a schema are renamed');

# The sequence is in another schema, with the lock or with one of its own, or it belongs to another
# role.  A superuser runs the cure.
my $moves = 'ALTER SEQUENCE away.table_id_seq SET SCHEMA apart;';
for my $harm ("$moves ALTER VIEW away.id_sequence_lock SET SCHEMA apart",
	"$moves CREATE VIEW apart.id_sequence_lock AS SELECT 1 AS lock",
	'RESET ROLE; ALTER SEQUENCE away.table_id_seq OWNER TO CURRENT_USER')
{
	is(outcome(qq{
		SET ROLE dba; SELECT instaid.create_shard('away', 1089) \\g /dev/null
		CREATE SCHEMA apart; $harm}), '', $harm);
	my $cure = $node->safe_psql('s', q{
		SELECT cure FROM instaid.audit()
		WHERE code = 'foreign_sequence' AND object = 'away'});
	$node->safe_psql('s', $cure);
	is(outcome(q{
		SET ROLE dba; SET client_min_messages = error;
		SELECT pg_sleep(0.005) \g /dev/null
		SELECT away.next_id() > 0; SELECT count(*) FROM instaid.audit() WHERE object ~ '^away';
		DROP SCHEMA away, apart CASCADE}), 't 0',
		"a sequence and a schema are renamed, which is mended: $cure");
}

# Sequences are dropped and changed by hand.
is(outcome(q{
	SET client_min_messages = error; SELECT instaid.create_shard('seqs', 88) \g /dev/null
	SELECT instaid.add_sequence('seqs', n) FROM unnest('{a, b, c}'::text[]) AS n \g /dev/null
	CREATE TABLE seqs.t (id bigint DEFAULT seqs.next_id('seqs.a'));
	SELECT instaid.drop_sequence('seqs', 'a'); SELECT instaid.drop_sequence('seqs', 'table_id_seq');
	SELECT instaid.drop_sequence('seqs', 'nothing'); SELECT instaid.drop_sequence('seqs', 'b');
	SELECT instaid._shard_sequences('seqs') AS s ORDER BY s;
	SELECT seqs.next_id('seqs.a') > 0;
	DROP SEQUENCE seqs.c CASCADE; SELECT instaid.freeze_shard('seqs');
	SELECT frozen FROM instaid.shards WHERE schema_name = 'seqs';
	SELECT cure FROM instaid.audit() WHERE code = 'open_type' \gexec
	SELECT instaid._shard_sequences('seqs') AS s ORDER BY s; SELECT instaid.freeze_shard('seqs');
	SELECT instaid.add_sequence('seqs', 'd'); SELECT seqs.next_id('seqs.d');
	SELECT seqs.next_id('seqs.a'); SELECT seqs.next_id(); SELECT instaid.thaw_shard('seqs');
	SELECT seqs.next_id('seqs.d') > 0; SELECT count(*) FROM instaid.audit() WHERE object ~ '^seqs';
	DROP SCHEMA seqs CASCADE}),
	'seqs.table_id_seq seqs.a seqs.c t t seqs.table_id_seq seqs.a seqs.d t 1'
	  . ' 2BP01 42704 42704 55000 55000 55000',
	'drop_sequence(), freeze_shard() after DROP ... CASCADE, and add_sequence() while frozen');
is(outcome(q{
	SET client_min_messages = error; SELECT instaid.create_shard('again', 90);
	SELECT max(i) AS last FROM again.next_ids(1000000) AS i \gset
	ALTER SEQUENCE again.table_id_seq RESTART;
	SELECT instaid.freeze_shard('again'), instaid.thaw_shard('again') \g /dev/null
	SELECT again.next_id() > :last; DROP SCHEMA again CASCADE}),
	't', 'RESTART, freeze_shard() and thaw_shard() repeat no ID');
is(outcome(q{
	SET client_min_messages = error;
	SELECT instaid.create_shard('lost', 100) \g /dev/null
	CREATE TABLE lost.t (id bigint PRIMARY KEY DEFAULT lost.next_id());
	INSERT INTO lost.t SELECT FROM generate_series(1, 20); ANALYZE lost.t;
	DROP SEQUENCE lost.table_id_seq CASCADE;
	SELECT substring(cure, 'adopt_column.*;') FROM instaid.audit() WHERE code = 'lost_default';
	SELECT code, object, substring(cure, '^[^;]*;') AS cure FROM instaid.audit()
	WHERE code = 'lost_shard' \gset
	SELECT :'code', :'object'; :cure
	SELECT instaid.create_shard('lost', instaid.extract_shard_id(max(id))) FROM lost.t \g /dev/null
	SELECT instaid_adopt.adopt_column('lost.t', 'id') \g /dev/null
	SELECT count(*) FROM instaid.audit() WHERE object ~ '^lost';
	INSERT INTO lost.t DEFAULT VALUES; SELECT count(*) FROM lost.t; DROP SCHEMA lost CASCADE}),
	"adopt_column('lost.t', 'id'); lost_shard|lost 0 21",
	'RESTART, freeze_shard() and thaw_shard() repeat no ID, and one of which DROP SEQUENCE has'
	  . ' left the type');

# A copy of another name, with another sequence
is(outcome(q{
	SET client_min_messages = error;
	CREATE SCHEMA named; CREATE SEQUENCE named.global_id_seq; CREATE SEQUENCE named.id;
	CREATE FUNCTION named.id_generator(OUT result bigint) LANGUAGE sql AS $$
		SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23)
			+ (86 << 10) + nextval('named.global_id_seq') % 1024 $$;
	CREATE TABLE named.t (id bigint PRIMARY KEY DEFAULT named.id_generator());
	SELECT code FROM instaid.audit() WHERE object = 'named.id_generator()';
	CALL instaid_adopt.adopt_shards('named');
	SELECT sequence FROM instaid.shards WHERE schema_name = 'named';
	INSERT INTO named.t SELECT result FROM named.id_generator();
	INSERT INTO named.t DEFAULT VALUES;
	SELECT instaid.extract_shard_id(id) FROM named.t; DROP SCHEMA named CASCADE}),
	'copy named.global_id_seq 86 86',
	'adopt_shards() adopts a copy of another name');

# An owner who is no superuser dumps and restores, whole and one schema.
my $dump = $node->backup_dir . '.sql';
my $before = $node->safe_psql('s', 'INSERT INTO insta5.photos (n) VALUES (1) RETURNING id');
$node->safe_psql('postgres', "CREATE DATABASE whole OWNER dba; CREATE DATABASE part OWNER dba");
$node->safe_psql('s',
	'DROP TABLE v; DROP SEQUENCE other; DROP SCHEMA taken, evil CASCADE');
$node->command_ok([ 'pg_dump', '-f', "$dump.whole", '-U', 'dba', $node->connstr('s') ],
	'a dump by the owner');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-U', 'dba', '-f', "$dump.whole",
	$node->connstr('whole') ], 'a dump by the owner: is restored by the owner');
is($node->safe_psql('whole', "SELECT insta5.next_id() > $before, count(*) FROM insta5.photos"),
	't|1', 'a dump by the owner, and goes on above');
is($node->safe_psql('whole',
	'SELECT a.code FROM instaid.audit() AS a WHERE severity = \'error\''), '',
	'a dump by the owner, without a finding');
$node->safe_psql('postgres', 'CREATE DATABASE trap; GRANT CREATE ON DATABASE trap TO app');
$node->safe_psql('trap', q{
	CREATE SCHEMA instaid; GRANT USAGE ON SCHEMA instaid TO dba;
	CREATE FUNCTION instaid.restore_position(text, bigint, timestamptz DEFAULT NULL,
		text DEFAULT NULL, boolean DEFAULT false) RETURNS void LANGUAGE plpgsql
		AS $$ BEGIN RAISE WARNING 'planted'; END $$}, extra_params => [ '-U', 'app' ]);
my $positions = $node->safe_psql('s', 'SELECT instaid.dump_positions()',
	extra_params => [ '-U', 'dba' ]);
my %said = map { $_ => ($node->psql($_, $positions, extra_params => [ '-U', 'dba' ]))[2] } 'trap',
	'whole';
like($said{trap}, qr/\A[^\n]*schema "instaid" is missing, or belongs to another role[^\n]*\z/,
	'dump_positions() runs no function that another role has planted for the owner');
is($said{whole}, '',
	'dump_positions() runs no function that another role has planted for the owner, and those of'
	  . ' its edition');
$node->command_ok([ 'pg_dump', '-n', 'insta5', '-f', "$dump.part", '-U', 'dba',
	$node->connstr('s') ], 'a dump of one shard');
$node->safe_psql('part', SqlEdition::changed(), extra_params => [ '-U', 'dba' ]);
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-U', 'dba', '-f', "$dump.part",
	$node->connstr('part') ], 'a dump of one shard: is restored beside the functions');
is($node->safe_psql('part',
	"SELECT insta5.next_id() > $before, shard_id, frozen FROM instaid.shards"), 't|5|f',
	'a dump of one shard, and goes on above');

# Default privileges, which some clouds set for whole databases, change no right on what this
# edition makes, whether they grant rights, or take away those that PUBLIC has by itself.
# The schema of a shard is its owner's.
my $rights = q{
	SELECT i.type, i.identity,
		CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END, x.privilege_type,
		x.is_grantable
	FROM (SELECT tableoid AS class, oid, 'n' AS kind, nspowner AS owner, nspacl AS acl,
			oid AS schema
		  FROM pg_namespace WHERE nspname ~ '^instaid'
		  UNION ALL SELECT tableoid, oid, CASE relkind WHEN 'S' THEN 's' ELSE 'r' END,
			relowner, relacl, relnamespace FROM pg_class WHERE relkind IN ('S', 'v')
		  UNION ALL SELECT tableoid, oid, 'f', proowner, proacl, pronamespace FROM pg_proc
		  UNION ALL SELECT tableoid, oid, 'T', typowner, typacl, typnamespace FROM pg_type
			WHERE typtype IN ('c', 'd')) AS o
		JOIN pg_namespace AS n ON n.oid = o.schema AND n.nspname ~ '^(insta|many)'
		CROSS JOIN LATERAL pg_identify_object(o.class, o.oid, 0) AS i
		CROSS JOIN LATERAL aclexplode(coalesce(o.acl, acldefault(o.kind::"char", o.owner))) AS x
	ORDER BY 1, 2, 3, 4, 5};
my @kinds = qw(TABLES SEQUENCES FUNCTIONS TYPES);
my %defaults = (
	fresh => sub { '' },
	hostile => sub { my ($kind, $schema) = @_;
		join '', map { "ALTER DEFAULT PRIVILEGES $schema GRANT ALL ON $kind TO $_;" }
			'bo WITH GRANT OPTION', 'app', 'PUBLIC' },
	taken => sub { my ($kind, $schema) = @_;
		"ALTER DEFAULT PRIVILEGES $schema REVOKE ALL ON $kind FROM PUBLIC;" });
my %seen;
$node->safe_psql('postgres', 'CREATE ROLE bo LOGIN');
for my $database ('fresh', 'hostile', 'taken')
{
	my $defaults = $defaults{$database};
	my @as_dba = (extra_params => [ '-U', 'dba' ]);
	$node->safe_psql('postgres',
		"CREATE DATABASE $database; GRANT CREATE ON DATABASE $database TO dba");
	$node->safe_psql($database, 'CREATE SCHEMA insta5;'
		. join('', map { $defaults->($_, '') } @kinds, 'SCHEMAS')
		. join('', map { $defaults->($_, 'IN SCHEMA insta5') } @kinds), @as_dba);
	$node->safe_psql($database, SqlEdition::changed(), extra_params => [ '-U', 'dba' ]);
	$node->safe_psql($database, q{
		SET client_min_messages = error;
		SELECT instaid.create_shard('insta5', 5);
		SELECT instaid.add_sequence('insta5', 'likes_id_seq');
		CALL instaid.create_shards('many%s', 10, 11); SELECT instaid.create_shard('insta12', 12);
		CREATE TABLE insta5.photos (id bigint DEFAULT insta5.next_id());
		GRANT USAGE ON SCHEMA insta5 TO app; GRANT INSERT ON insta5.photos TO app}, @as_dba);
	$seen{$database} = $node->safe_psql($database, $rights);
}
like($seen{fresh}, qr/^function\|insta5.next_id\(.*\ntype\|.*\nview\|instaid.shards\|PUBLIC/ms,
	'rights are compared');
is($seen{$_}, $seen{fresh},
	"rights are compared, and default privileges change none: $_") for 'hostile', 'taken';
is(SqlEdition::as_app($node, 'hostile', q{
	CREATE FUNCTION instaid_sql._open(regclass, bigint, text) RETURNS bigint LANGUAGE sql
		AS 'SELECT 1::bigint';
	CREATE FUNCTION instaid.f() RETURNS void LANGUAGE sql AS '';
	CREATE FUNCTION many10.next_id(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
	CREATE FUNCTION insta12.next_id(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
	SELECT insta5.next_id();
	SELECT count(*) FROM insta5.next_ids(10);
	SELECT many10.next_id();
	SELECT setval('insta5.table_id_seq', 5);
	BEGIN; LOCK TABLE insta5.id_sequence_lock IN SHARE UPDATE EXCLUSIVE MODE; ROLLBACK}),
	join(' ', ('42501') x 9), 'default privileges give no right');

# What changes one shard reads one shard: the rows of catalogs that it reads, and how often it
# reads all shards, do not depend on how many there are.
SqlEdition::install($node, 'far');
my @as_dba = (extra_params => [ '-U', 'dba' ]);
my @far = map { "CALL instaid.create_shards('s%s', $_)" } '10, 29', '30, 329';
my @one = (q{freeze_shard('insta5')}, q{thaw_shard('insta5')}, q{add_sequence('insta5', 'x')},
	q{drop_sequence('insta5', 'x')});
my @rows;
for my $more (@far)
{
	$node->safe_psql('far', $more, @as_dba);
	# of tables and of indexes
	my $count = q{SELECT sum(pg_stat_get_xact_tuples_returned(r)) AS before
		FROM unnest('{pg_class, pg_constraint, pg_depend, pg_proc, pg_sequence, pg_type}'
				::regclass[]) AS c,
			LATERAL (SELECT c UNION SELECT indexrelid FROM pg_index WHERE indrelid = c) AS u (r)};
	# the first round fills the session's caches
	my $round = join '', map { "$count \\gset\nSELECT instaid.$_ \\g /dev/null\n"
		. $count =~ s/AS before/- :before/r . ";\n" } @one;
	my @counts = split /\n/, $node->safe_psql('far', "BEGIN; $round $round", @as_dba);
	push @rows, [ @counts[ 4 .. 7 ] ];
}
cmp_ok($rows[1][$_], '<', $rows[0][$_] + 100,
	"$one[$_] reads $rows[0][$_] rows among 21 shards, $rows[1][$_] among 321") for 0 .. $#one;
is($node->safe_psql('far', q{
	SET track_functions = 'all'; SET client_min_messages = error;
	CREATE SCHEMA copy; CREATE SEQUENCE copy.table_id_seq; ALTER SCHEMA copy OWNER TO dba;
	ALTER SEQUENCE copy.table_id_seq OWNER TO dba; SET ROLE dba;
	CREATE FUNCTION copy.next_id() RETURNS bigint LANGUAGE sql AS $$
		SELECT (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
			| (700 << 10) | nextval('copy.table_id_seq') % 1024 $$;
	CREATE FUNCTION pg_temp.lists() RETURNS bigint LANGUAGE sql RETURN COALESCE(
		pg_stat_get_xact_function_calls('instaid._list_shards()'::regprocedure), 0);
	BEGIN;
	SELECT instaid.freeze_shard('insta5'), instaid.thaw_shard('insta5'),
		instaid.add_sequence('insta5', 'y') \g /dev/null
	SELECT pg_temp.lists(); SELECT instaid.create_shard('another', 701) \g /dev/null
	SELECT pg_temp.lists(); SELECT instaid_adopt.adopt_shard('copy') \g /dev/null
	SELECT pg_temp.lists() <= 3}), "0\n1\nt", 'create_shard() reads all shards once');

# An ID may be 100 ms late, but not by as long as its call waited for the lock.
{
	$node->safe_psql('s', q{SELECT instaid.create_shard('waits', 4321); SELECT waits.next_id()});
	my $holder = Clients::session($node, 's');
	# so that the last ID is too late to be followed
	$holder->('BEGIN; LOCK TABLE waits.id_sequence_lock IN SHARE UPDATE EXCLUSIVE MODE;
		SELECT pg_sleep(0.3)');
	my $out = '';
	my $caller = IPC::Run::start([ $node->installed_command('psql'), '-XAtq', '-d',
		$node->connstr('s'), '-c', q{SELECT extract(epoch FROM
			instaid.extract_timestamp(waits.next_id()))} ], '<', \undef, '>', \$out);
	$node->poll_query_until('s', q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted
		AND relation = 'waits.id_sequence_lock'::regclass}) or die;
	my $released = $holder->('SELECT pg_sleep(0.3); SELECT extract(epoch FROM clock_timestamp())');
	$holder->('ROLLBACK');
	$caller->finish;
	($released) = $released =~ /([\d.]+)\s*$/;
	cmp_ok($out, '>=', $released - 0.1, 'an ID is not older than its call waited');
}

$node->stop;
done_testing();
