-- The layout of an ID, as a specification.
BEGIN;
SET LOCAL timezone = 'UTC';
SELECT no_plan();

SELECT function_returns('instaid', 'default_epoch', ARRAY[]::name[], 'timestamp with time zone');
SELECT function_returns('instaid', 'make_id', ARRAY['timestamp with time zone', 'integer', 'bigint', 'timestamp with time zone'], 'bigint');
SELECT function_returns('instaid', 'extract_timestamp', ARRAY['bigint', 'timestamp with time zone'], 'timestamp with time zone');
SELECT function_returns('instaid', 'extract_shard_id', ARRAY['bigint'], 'integer');
SELECT volatility_is('instaid', f, 'immutable', f || ' is immutable')
FROM unnest(ARRAY['default_epoch', 'make_id', 'extract_timestamp', 'extract_shard_id', 'decode']) AS f;
SELECT is_strict('instaid', f, f || ' is strict')
FROM unnest(ARRAY['default_epoch', 'make_id', 'extract_timestamp', 'extract_shard_id', 'decode']) AS f;

-- the epoch that Instagram published
SELECT is(instaid.default_epoch(), '2011-08-24 21:07:01.721+00'::timestamptz, 'the default epoch');
SELECT is(extract(epoch FROM instaid.default_epoch()) * 1000, 1314220021721::numeric, 'the default epoch, in Unix milliseconds');

-- real IDs of Instagram, which other projects decode in their tests
CREATE TEMP TABLE vectors (id bigint, shortcode text, created_at timestamp, shard_id integer, sequence integer);
\copy vectors FROM 'test/vectors.tsv' (FORMAT csv, DELIMITER E'\t', HEADER)
SELECT is((SELECT count(*) FROM vectors AS v, instaid.decode(v.id) AS d
    WHERE (d.created_at AT TIME ZONE 'UTC', d.shard_id, d.sequence) = (v.created_at, v.shard_id, v.sequence)), 7::bigint, 'the fields of seven photos');
SELECT is((SELECT count(*) FROM vectors WHERE instaid.to_shortcode(id) = shortcode AND instaid.from_shortcode(shortcode) = id), 7::bigint, 'the fields of seven photos, and their shortcodes');

-- the published example: user 31341 of 2000 shards, sequence 5001, 1387263000 ms after the epoch
SELECT is(instaid.make_id(instaid.default_epoch() + interval '1387263000 ms', 31341 % 2000, 5001),
    (1387263000::bigint << 23) | (1341 << 10) | (5001 % 1024), 'the arithmetic of the published function');
SELECT is((instaid.decode(instaid.make_id('2020-01-01', 1341, 5001))).sequence, 905, 'a sequence of 5001 gives 905');

-- each field at its ends, the others at theirs
SELECT is(instaid.make_id(instaid.default_epoch(), 0, 0), 0::bigint, 'the smallest ID');
SELECT is(instaid.make_id(instaid.default_epoch(), 0, 1023), 1023::bigint, 'bits 0 to 9 are the sequence');
SELECT is(instaid.make_id(instaid.default_epoch(), 8191, 0), 8191::bigint << 10, 'bits 10 to 22 are the shard ID');
SELECT is(instaid.make_id(instaid.default_epoch() + interval '1 ms', 0, 0), 1::bigint << 23, 'bits 23 up are milliseconds');
SELECT is(instaid.make_id('2046-06-27 17:00:49.496 UTC', 8191, 1023), 9223372036854775807, 'the last positive ID');
SELECT is(instaid.make_id('2046-06-27 17:00:49.497 UTC', 0, 0), '-9223372036854775808'::bigint, 'the 41st bit of time is the sign');
SELECT is(instaid.make_id('2081-04-30 12:54:37.272 UTC', 8191, 1023), -1::bigint, 'the last ID of all');

-- and back
SELECT is(instaid.decode(-1)::text, '("2081-04-30 12:54:37.272+00",8191,1023)', 'all 41 bits of time are read');
SELECT is(instaid.extract_shard_id((5000::bigint << 10) | 777), 5000, 'a shard ID over 4095 is not negative');
SELECT is((instaid.decode((5000::bigint << 10) | 777)).sequence, 777, 'a sequence over 511 is not negative');
SELECT is(instaid.extract_timestamp(4001511883701836730, '1970-01-01 UTC'), '1985-02-12 00:49:48.785 UTC'::timestamptz, 'another epoch');

-- an independent model of the packing: powers of two and decimal arithmetic
SELECT is((SELECT count(*) FROM generate_series(1, 10000) AS n,
        LATERAL (SELECT (n * 219902325::numeric + n % 7) AS ms, n * 31 % 8192 AS shard, n * 17 % 1024 AS seq) AS f,
        LATERAL (SELECT (ms * 8388608 + shard * 1024 + seq) AS whole) AS w,
        LATERAL (SELECT (CASE WHEN whole >= 9223372036854775808 THEN whole - 18446744073709551616 ELSE whole END)::bigint AS id) AS i
    WHERE instaid.make_id(instaid.default_epoch() + ms * interval '1 ms', shard::integer, seq) <> id
       OR instaid.extract_timestamp(id) <> instaid.default_epoch() + ms * interval '1 ms'
       OR instaid.extract_shard_id(id) <> shard OR (instaid.decode(id)).sequence <> seq),
    0::bigint, '10,000 IDs over the whole range agree with a model in decimals');

-- values that an ID cannot hold
SELECT throws_ok($$SELECT instaid.make_id('2020-01-01', 8192, 0)$$, '22003', 'shard ID 8192 is out of range', 'a shard ID too large');
SELECT throws_ok($$SELECT instaid.make_id('2020-01-01', -1, 0)$$, '22003', 'shard ID -1 is out of range', 'a negative shard ID');
SELECT throws_ok($$SELECT instaid.make_id('2011-08-24 21:07:01.720 UTC', 0, 0)$$, '22003', NULL, 'a time before the epoch');
SELECT throws_ok($$SELECT instaid.make_id('2081-04-30 12:54:37.273 UTC', 0, 0)$$, '22003', NULL, 'a time after the format');
SELECT throws_ok($$SELECT instaid.make_id('2020-01-01', 0, 0, 'infinity')$$, '22023', NULL, 'an infinite epoch');

SELECT * FROM finish();
ROLLBACK;
