-- adopt_shard() and adopt_column(), as a specification.
BEGIN;
SET LOCAL client_min_messages = error;
SELECT plan(26);

SELECT volatility_is('instaid_adopt', 'adopt_shard', 'volatile', 'adopt_shard is volatile');
SELECT volatility_is('instaid_adopt', 'adopt_column', 'volatile', 'adopt_column is volatile');
SELECT function_returns('instaid_adopt', 'adopt_column', 'setof text', 'adopt_column returns statements');

-- a schema with the published arithmetic, and 1,000 of its IDs
\set schema insta6
\set shard_id 6
\ir ../lib/published.sql
CREATE TABLE insta6.photos (id bigint PRIMARY KEY DEFAULT insta6.next_id(), n integer);
INSERT INTO insta6.photos (n) SELECT generate_series(1, 1000);
CREATE TEMP TABLE before AS SELECT max(id) AS id, 'insta6.next_id()'::regprocedure AS function FROM insta6.photos;

SELECT throws_ok($$SELECT instaid.create_shard('insta6', 6)$$, '42723', 'schema insta6 already has a function next_id()', 'create_shard() refuses the schema');
SELECT throws_ok($$SELECT instaid_adopt.adopt_shard('insta7', 7)$$, '42883', NULL, 'a schema without next_id() is not adopted');
SELECT throws_ok($$SELECT instaid_adopt.adopt_shard('insta6', 6, now() - interval '1 day')$$, '22023', NULL, 'a wrong epoch is refused');
SELECT is((SELECT code FROM instaid.audit() WHERE object = 'insta6.next_id()'), 'copy', 'audit() finds it');
SELECT lives_ok($$SELECT instaid_adopt.adopt_shard('insta6', 6)$$, 'the schema is adopted');
SELECT is_empty('SELECT * FROM instaid.audit()', 'audit() finds nothing any more');
SELECT is('insta6.next_id()'::regprocedure, (SELECT function FROM before), 'next_id() is the same object');
SELECT is((SELECT l.lanname::text FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang WHERE p.oid = 'insta6.next_id()'::regprocedure), here('language of next_id()'), 'its language');
SELECT has_function('insta6', 'next_ids', 'the schema has next_ids()');
SELECT throws_ok($$SELECT insta6.next_id('insta6.photos')$$, NULL, NULL, 'next_id() refuses what is no sequence');
SELECT col_default_is('insta6', 'photos', 'id', 'insta6.next_id()', 'the default is the same');
SELECT lives_ok($$INSERT INTO insta6.photos (n) SELECT generate_series(1001, 3000)$$);
SELECT cmp_ok((SELECT min(id) FROM insta6.photos WHERE n > 1000), '>', (SELECT id FROM before), 'new IDs are above all old IDs');
SELECT is((SELECT array_agg(n ORDER BY id) FROM insta6.photos WHERE n > 1000), (SELECT array_agg(n) FROM generate_series(1001, 3000) AS n), 'new IDs are above all old IDs, in order');
SELECT is((SELECT array_agg(DISTINCT instaid.extract_shard_id(id)) FROM insta6.photos), ARRAY[6], 'new IDs are above all old IDs, of the same shard');
SELECT throws_ok($$SELECT instaid_adopt.adopt_shard('insta6', 6)$$, '42723', NULL, 'a shard is not adopted twice');

CREATE TABLE insta6.users (id serial PRIMARY KEY);
CREATE TABLE insta6.posts (user_id integer REFERENCES insta6.users);
INSERT INTO insta6.users SELECT FROM generate_series(1, 10);
INSERT INTO insta6.posts SELECT id FROM insta6.users;
SELECT set_eq($$SELECT instaid_adopt.adopt_column('insta6.users', 'id', dry_run => true)$$, $$VALUES
    ('LOCK TABLE insta6.posts, insta6.users IN ACCESS EXCLUSIVE MODE'), ('ALTER TABLE insta6.users ALTER id DROP DEFAULT'),
    ('ALTER TABLE insta6.users ALTER id TYPE bigint'), ('ALTER TABLE insta6.posts ALTER user_id TYPE bigint'),
    ('ALTER TABLE insta6.users ALTER id SET DEFAULT insta6.next_id()'), ('DROP SEQUENCE insta6.users_id_seq')$$,
    'a dry run shows the statements');
SELECT col_type_is('insta6', 'users', 'id', 'integer', 'a dry run shows the statements, and changes nothing');
SELECT is((SELECT count(*) FROM instaid_adopt.adopt_column('insta6.users', 'id')), 6::bigint, 'the column is adopted');
SELECT col_type_is('insta6', 'posts', 'user_id', 'bigint', 'the column is adopted, and so is the column that refers to it');
SELECT fk_ok('insta6', 'posts', 'user_id', 'insta6', 'users', 'id');
SELECT results_eq($$WITH u AS (INSERT INTO insta6.users DEFAULT VALUES RETURNING id) SELECT instaid.extract_shard_id(id) FROM u$$, ARRAY[6], 'new rows have IDs of the shard');
SELECT is((SELECT array_agg(id ORDER BY id) FROM insta6.users WHERE id < 1000), ARRAY[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]::bigint[], 'old rows keep their IDs');

SELECT * FROM finish();
ROLLBACK;
