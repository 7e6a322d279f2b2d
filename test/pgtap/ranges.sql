-- Time ranges and partitions, as a specification.
BEGIN;
SET LOCAL timezone = 'UTC';
SELECT plan(42);

SELECT function_returns('instaid', f, ARRAY['timestamp with time zone', 'timestamp with time zone'], 'bigint')
FROM unnest(ARRAY['min_id', 'max_id', '_min_id_from', '_max_id_before']) AS f;
SELECT function_returns('instaid', 'created_between',
    ARRAY['bigint', 'timestamp with time zone', 'timestamp with time zone', 'timestamp with time zone'], 'boolean');
SELECT function_returns('instaid', 'create_partitions',
    ARRAY['regclass', 'timestamp with time zone', 'timestamp with time zone', 'interval', 'timestamp with time zone'], 'setof regclass');
SELECT volatility_is('instaid', f, 'immutable', f || ' is immutable')
FROM unnest(ARRAY['min_id', 'max_id', '_min_id_from', '_max_id_before', 'created_between']) AS f;
SELECT is_strict('instaid', f, f || ' is strict')
FROM unnest(ARRAY['min_id', 'max_id', '_min_id_from', '_max_id_before']) AS f;
SELECT is((SELECT array_agg(DISTINCT proparallel::text ORDER BY proparallel::text) FROM pg_proc WHERE pronamespace = 'instaid'::regnamespace
    AND proname IN ('min_id', 'max_id', '_min_id_from', '_max_id_before', 'created_between')),
    ARRAY['s'], 'all are parallel safe');

-- the smallest and the largest ID of a millisecond
SELECT is(instaid.min_id('2026-01-01 UTC'), instaid.make_id('2026-01-01 UTC', 0, 0), 'the smallest is of shard 0, sequence 0');
SELECT is(instaid.max_id('2026-01-01 UTC'), instaid.make_id('2026-01-01 UTC', 8191, 1023), 'the largest of shard 8191, sequence 1023');
SELECT is(instaid.max_id('2026-01-01 UTC') + 1, instaid.min_id('2026-01-01 00:00:00.001 UTC'), 'no ID is between two milliseconds');
SELECT is(instaid.min_id('2026-01-01 00:00:00.000999 UTC'), instaid.min_id('2026-01-01 UTC'), 'a time is in its millisecond');
SELECT is(instaid.min_id('-infinity'), 0::bigint, 'all times begin at 0');
SELECT is(instaid.max_id('infinity'), 9223372036854775807, 'all times begin at 0, and end at the largest bigint');
SELECT is(instaid.max_id('2011-08-24 21:07:01.720 UTC'), instaid.max_id(instaid.default_epoch()), 'a time before the epoch is its first millisecond');
SELECT is(instaid.min_id('2046-06-27 17:00:49.497 UTC'), instaid.min_id('2046-06-27 17:00:49.496 UTC'), 'a time after the format is its last millisecond');
SELECT is(instaid.min_id('2026-01-01 UTC', '2026-01-01 UTC'), 0::bigint, 'another epoch');
SELECT throws_ok($$SELECT instaid.min_id('2026-01-01', 'infinity')$$, '22023', NULL, 'an infinite epoch');

-- half-open
SELECT ok(instaid.created_between(instaid.min_id('2026-01-01 UTC'), '2026-01-01 UTC', '2026-01-02 UTC'), 'the start is in a range');
SELECT ok(NOT instaid.created_between(instaid.min_id('2026-01-02 UTC'), '2026-01-01 UTC', '2026-01-02 UTC'), 'the end is not');
SELECT ok(instaid.created_between(instaid.min_id('2026-01-02 UTC') - 1, '2026-01-01 UTC', '2026-01-02 UTC'), 'the end is not, but all IDs before it are');
SELECT ok(instaid.created_between(9223372036854775807, '-infinity', 'infinity'), 'the last ID is in the range of all times');
SELECT ok(instaid.created_between(9223372036854775807, '2046-06-27 17:00:49.497 UTC', 'infinity') IS NOT TRUE, 'the last ID is in the range of all times, and not in a range after it');
SELECT ok(instaid.created_between(0, '-infinity', 'infinity'), 'the first ID is in the range of all times');
SELECT ok(NOT instaid.created_between(0, '2026-01-01', '2026-01-01'), 'an empty range contains no ID');
SELECT ok(NOT instaid.created_between(instaid.min_id('2026-01-01 UTC'), '2026-01-02 UTC', '2025-12-31 UTC'), 'a range that ends before it starts contains no ID');
SELECT is((SELECT count(*) FROM generate_series(1, 20000) AS n,
        LATERAL (SELECT instaid.make_id('2026-01-01 UTC'::timestamptz + n % 5 * interval '1 ms', n % 8192, n) AS id,
            '2026-01-01 UTC'::timestamptz + (n * 7 % 6001 - 500) * interval '1 us' AS f,
            '2026-01-01 UTC'::timestamptz + (n * 11 % 6007 - 500) * interval '1 us' AS t) AS v
    WHERE instaid.created_between(id, f, t) IS DISTINCT FROM (instaid.extract_timestamp(id) >= f AND instaid.extract_timestamp(id) < t)),
    0::bigint, 'microseconds: an ID is in a range if, and only if, its time is');

-- integers
SELECT is(instaid.make_id(instaid.default_epoch() + interval '1 day', 0, 0), 86400000::bigint << 23, 'a day of IDs');
SELECT is(instaid.min_id('2026-01-02 UTC') - instaid.min_id('2026-01-01 UTC'), instaid.make_id(instaid.default_epoch() + interval '1 day', 0, 0),
    'a day of IDs: is the difference of two days');

-- partitions
CREATE TABLE photos (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT results_eq($$SELECT create_partitions::text FROM instaid.create_partitions('photos', '2026-01-01 UTC', '2026-01-03 UTC', '1 day')$$,
    ARRAY['photos_20260101', 'photos_20260102'], 'partitions are named by their start');
SELECT is_empty($$SELECT instaid.create_partitions('photos', '2026-01-01 UTC', '2026-01-03 UTC', '1 day')$$, 'partitions are named by their start, and created once');
SELECT col_is_pk('photos_20260101', 'id', 'the primary key is the ID alone');
SELECT throws_ok($$SELECT instaid.create_partitions('photos', '2025-12-15 UTC', '2026-01-15 UTC', '1 month')$$, '42P17', NULL, 'they do not overlap');
SELECT is_partition_of('photos_20260102', 'photos');

SELECT * FROM finish();
ROLLBACK;
