-- What a role can do with a shard of another: take IDs, if it may, and nothing else.
BEGIN;
SELECT no_plan();
SET LOCAL client_min_messages = error;

SELECT instaid.create_shard('insta5', 5);
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
CREATE ROLE pgtap_app;
CREATE ROLE pgtap_stranger;
CREATE SCHEMA evil AUTHORIZATION pgtap_app;
GRANT USAGE ON SCHEMA insta5 TO pgtap_app, pgtap_stranger;
GRANT INSERT, SELECT ON insta5.photos TO pgtap_app;
SELECT format('GRANT %s TO pgtap_app', here('right to take IDs')) \gexec
CREATE SEQUENCE other;

SELECT is(try_as('pgtap_app', $$SELECT insta5.next_id() > 0$$), 'true', 'a role with the right takes an ID');
SELECT is(try_as('pgtap_app', $$SELECT count(*) FROM insta5.next_ids(10)$$), '10', 'a role with the right takes many IDs');
SELECT is(try_as('pgtap_app', $$WITH i AS (INSERT INTO insta5.photos (n) VALUES (1) RETURNING id) SELECT id > 0 FROM i$$), 'true', 'a role with the right inserts');
SELECT matches(try_as('pgtap_stranger', 'SELECT insta5.next_id()'), '^42501 ', 'a role without the right takes no ID');
SELECT matches(try_as('pgtap_app', command), '^42501 ', command) FROM unnest(ARRAY[
    $$SELECT setval('insta5.table_id_seq', 5000)$$,
    'ALTER SEQUENCE insta5.table_id_seq CACHE 5',
    $$SELECT instaid.advance_past('insta5.table_id_seq', 5, instaid.default_epoch())$$,
    $$SELECT instaid.freeze_shard('insta5')$$,
    $$SELECT instaid.thaw_shard('insta5')$$,
    $$SELECT instaid.renumber_shard('insta5', 6)$$] || CASE here('edition') WHEN 'SQL edition' THEN ARRAY[
    $$SELECT nextval('insta5.table_id_seq')$$,
    'SELECT last_value FROM insta5.table_id_seq',
    'SELECT * FROM insta5.id_sequence_lock',
    'LOCK TABLE insta5.id_sequence_lock IN ACCESS SHARE MODE',
    $$SELECT instaid_sql._open('insta5.table_id_seq', 5120, instaid_sql._options(5, 1314220021721))$$,
    $$SELECT instaid_sql._take('insta5.table_id_seq', 5120)$$,
    $$SELECT instaid_sql._next_ids('insta5.table_id_seq', instaid_sql._options(5, 1314220021721), 5)$$,
    $$SELECT instaid.add_sequence('insta5', 'x')$$,
    'ALTER DOMAIN insta5.id_sequence DROP CONSTRAINT is_a_sequence_of_this_shard',
    'CREATE TABLE evil.t (s insta5.id_sequence)'] END) AS command;
SELECT is(left(try_as('pgtap_app', $$SELECT insta5.next_id('public.other')$$), 5), here('another sequence of the owner'),
    'a role counts no other sequence of the owner up');
SELECT is((SELECT is_called FROM other), false, 'the other sequence has not moved');
SELECT is(try_as('pgtap_app', 'SELECT count(*) FROM instaid.shards'), '1', 'every role reads the shards');
SELECT is(try_as('pgtap_app', 'SELECT count(*) FROM instaid.audit()'), '0', 'every role reads the findings');
SELECT is(try('SELECT insta5.next_id(NULL)'), 'null', 'no sequence, no ID');

SELECT * FROM finish();
ROLLBACK;
