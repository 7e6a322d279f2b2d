-- Shards and the IDs that they issue, as a specification.
BEGIN;
SET LOCAL timezone = 'UTC';
SELECT no_plan();

SELECT columns_are('instaid', 'shards', ARRAY['schema_name', 'shard_id', 'epoch', 'sequence',
    'last_id', 'last_issued_at', 'drift', 'frozen', 'expires_at', 'drift_sequence']);
SELECT col_type_is('instaid', 'shards', 'drift', 'interval', 'drift is an interval');

-- a shard is a schema with a sequence and three functions
SELECT lives_ok($$SELECT instaid.create_shard('insta5', 5)$$, 'a shard is created');
SELECT has_schema('insta5');
SELECT has_sequence('insta5', 'table_id_seq', 'it has a sequence');
SELECT is((SELECT count(*)::text FROM pg_proc WHERE pronamespace = 'insta5'::regnamespace AND proname = 'next_id'),
    here('next_id() of a shard, functions'), 'it has next_id(), without and with a sequence');
SELECT volatility_is('insta5', 'next_id', 'volatile', 'next_id is volatile');
SELECT volatility_is('insta5', 'next_ids', 'volatile', 'next_ids is volatile');
SELECT function_returns('insta5', 'next_ids', 'setof bigint', 'next_ids returns a set');
SELECT results_eq($$SELECT schema_name, shard_id, epoch, sequence, expires_at FROM instaid.shards$$,
    $$VALUES ('insta5'::name, 5, instaid.default_epoch(), 'insta5.table_id_seq'::regclass, '2046-06-27 17:00:49.497 UTC'::timestamptz)$$,
    'instaid.shards has its row');
SELECT is(CASE WHEN last_id IS NULL AND last_issued_at IS NULL AND drift IS NULL THEN 'none' ELSE 'set' END,
    here('position before the first ID'), 'its position, with nothing issued yet') FROM instaid.shards;

-- IDs are the default of a column
SELECT lives_ok($$CREATE TABLE insta5.our_table (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer)$$);
SELECT lives_ok($$INSERT INTO insta5.our_table (n) SELECT generate_series(1, 10000)$$);
SELECT is((SELECT count(DISTINCT instaid.extract_shard_id(id)) FROM insta5.our_table), 1::bigint, 'all IDs are of one shard');
SELECT is((SELECT max(instaid.extract_shard_id(id)) FROM insta5.our_table), 5, 'all IDs are of one shard, of this one');
SELECT ok((SELECT bool_and(instaid.extract_timestamp(id) BETWEEN now() - interval '1 ms' AND clock_timestamp() + interval '1064 ms')
    FROM insta5.our_table), 'their times are the time of the insert');
SELECT is((SELECT array_agg(n ORDER BY id) FROM insta5.our_table), (SELECT array_agg(n) FROM generate_series(1, 10000) AS n),
    'they are in the order of the rows');
SELECT is((SELECT last_id FROM instaid.shards), (SELECT max(id) FROM insta5.our_table), 'instaid.shards shows the last ID');
SELECT is((SELECT last_issued_at FROM instaid.shards), instaid.extract_timestamp((SELECT max(id) FROM insta5.our_table)), 'instaid.shards shows the last ID, with its time');

-- many at once
SELECT is((SELECT count(DISTINCT id) FROM insta5.next_ids(5000) AS id), 5000::bigint, 'next_ids returns as many IDs as it is asked for');
SELECT is((SELECT max(n) FROM (SELECT count(*) FROM insta5.next_ids(5000) AS id GROUP BY id >> 23) AS m (n)), 1024::bigint, 'a full millisecond has 1,024 IDs');
SELECT throws_ok('SELECT * FROM insta5.next_ids(0)', '22003', 'count 0 is out of range', 'a count of 0 is refused');
SELECT throws_ok('SELECT * FROM insta5.next_ids(1000001)', '22003', 'count 1000001 is out of range', 'a count over a million is refused');

-- one shard ID, one schema, one next_id
SELECT throws_ok($$SELECT instaid.create_shard('insta6', 5)$$, '42710', 'shard ID 5 is taken by schema insta5', 'a shard ID is not used twice');
SELECT throws_ok($$SELECT instaid.create_shard('insta5', 6)$$, '42723', 'schema insta5 is a shard already', 'a schema is not made a shard twice');
SELECT throws_ok($$SELECT instaid.create_shard('insta6', 8192)$$, '22003', 'shard ID 8192 is out of range', 'the last shard ID is 8191');
SELECT throws_ok($$SELECT instaid.create_shard('insta6', 6, now() + interval '1 day')$$, '22023', NULL, 'an epoch in the future is refused');
SELECT throws_ok($$SELECT instaid.create_shard('insta6', 6, now() - interval '35 years')$$, '22023', NULL, 'an epoch whose IDs have ended is refused');

-- a shard follows its schema
ALTER SCHEMA insta5 RENAME TO five;
SELECT is((SELECT (schema_name, shard_id, sequence)::text FROM instaid.shards), '(five,5,five.table_id_seq)', 'a renamed schema is the same shard');
SELECT lives_ok('INSERT INTO five.our_table (n) VALUES (1)', 'a renamed schema is the same shard, and its tables still take IDs');

SELECT * FROM finish();
ROLLBACK;
