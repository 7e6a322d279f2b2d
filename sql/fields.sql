-- The fields of an ID: packing, unpacking, and the limits of each.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- the fields of IDs that Instagram made
SELECT id, d.* FROM (VALUES (908540701891980503), (4001511883701836730)) AS v (id),
    instaid.decode(id) AS d;

-- one set bit in each field
SELECT i AS bit, extract(epoch FROM instaid.extract_timestamp(1::bigint << i, '1970-01-01 UTC')) * 1000 AS ms,
    instaid.extract_shard_id(1::bigint << i) AS shard_id,
    instaid.extract_sequence(1::bigint << i) AS sequence
FROM generate_series(0, 63) AS i;

-- 0, -1, and both ends of bigint
SELECT id, d.* FROM (VALUES (0), (9223372036854775807), (-9223372036854775808), (-1)) AS v (id),
    instaid.decode(id) AS d;

-- every value of the small fields, and the ends of the time, are packed and unpacked
SELECT count(*) FROM generate_series(0, 8191) AS shard_id
WHERE instaid.extract_shard_id(instaid.make_id('2024-02-29 23:59:59.999 UTC', shard_id, shard_id)) = shard_id
  AND instaid.extract_sequence(instaid.make_id('2024-02-29 23:59:59.999 UTC', shard_id, shard_id)) = shard_id % 1024
  AND instaid.extract_timestamp(instaid.make_id('2024-02-29 23:59:59.999 UTC', shard_id, shard_id)) = '2024-02-29 23:59:59.999 UTC';
SELECT ms, instaid.make_id(instaid.default_epoch() + ms * interval '1 ms', 8191, 1023) AS id,
    instaid.extract_timestamp(instaid.make_id(instaid.default_epoch() + ms * interval '1 ms', 8191, 1023))
        = instaid.default_epoch() + ms * interval '1 ms' AS same
FROM (VALUES (0), (1), (1::bigint << 40), ((1::bigint << 40) - 1), ((1::bigint << 41) - 1)) AS v (ms);

-- over a million and a half milliseconds, IDs increase with the time, whatever the
-- other fields are
SELECT count(*), count(DISTINCT id), bool_and(id > before) AS increasing
FROM (SELECT id, lag(id) OVER (ORDER BY ms) AS before
      FROM (SELECT ms, instaid.make_id('2026-01-01 UTC'::timestamptz + ms * interval '1 ms', 8191 - ms % 8192, -ms) AS id
            FROM generate_series(0, 1500000, 10) AS ms) AS a) AS b WHERE before IS NOT NULL;

-- the time is rounded down, the sequence taken modulo 1024
SELECT instaid.extract_timestamp(instaid.make_id('2026-10-05 21:56:50.506999 UTC', 0, 0));
SELECT instaid.extract_timestamp(instaid.make_id('2011-08-24 21:07:01.721999 UTC', 0, 0)) = instaid.default_epoch() AS first_ms;
SELECT n, instaid.extract_sequence(instaid.make_id('2026-01-01', 5, n))
FROM (VALUES (1023), (1024), (5001), (-1), (9223372036854775807), (-9223372036854775808)) AS v (n);

-- the published example: the sequence is at 5001, and the shard is 1341
SELECT d.* FROM instaid.decode(instaid.make_id('2011-09-09 22:16:03.721 UTC', 1341, 5001)) AS d;

-- another epoch
SELECT instaid.make_id('2020-01-01 00:00:00.001 UTC', 1, 1, '2020-01-01 UTC') AS id,
    instaid.extract_timestamp((1 << 23) | (1 << 10) | 1, '2020-01-01 UTC');
SELECT d.* FROM instaid.decode(8389633, '2020-01-01 UTC') AS d;

-- a null gives a null
SELECT instaid.make_id(NULL, 1, 1), instaid.make_id('2020-01-01', NULL, 1),
    instaid.make_id('2020-01-01', 1, NULL), instaid.make_id('2020-01-01', 1, 1, NULL),
    instaid.extract_timestamp(NULL), instaid.extract_timestamp(1, NULL),
    instaid.extract_shard_id(NULL), instaid.extract_sequence(NULL),
    instaid.decode(NULL), instaid.decode(1, NULL);

-- arguments that do not fit are refused
SELECT try($$SELECT instaid.make_id('2026-01-01', 8192, 1)$$);
SELECT try($$SELECT instaid.make_id('2026-01-01', -1, 1)$$);
SELECT try($$SELECT instaid.make_id('2011-08-24 21:07:01.720999 UTC', 1, 1)$$);
SELECT try($$SELECT instaid.make_id(instaid.default_epoch() + (1::bigint << 41) * interval '1 ms', 1, 1)$$);
SELECT try($$SELECT instaid.make_id('infinity', 1, 1)$$);
SELECT try($$SELECT instaid.make_id('-infinity', 1, 1)$$);
SELECT try($$SELECT instaid.make_id('294276-12-31 23:59:59 UTC', 1, 1, '4713-01-01 00:00:00 BC UTC')$$);
SELECT try($$SELECT instaid.make_id('2026-01-01', 1, 1, 'infinity')$$);
SELECT instaid.extract_timestamp(-1, '294207-04-27 08:12:24.448 UTC');
SELECT try($$SELECT instaid.extract_timestamp(-1, '294207-04-27 08:12:24.449 UTC')$$);
-- an epoch is a whole millisecond
SELECT try($$SELECT instaid.extract_timestamp(-1, '2011-08-24 21:07:01.721001 UTC')$$);
SELECT try($$SELECT instaid.decode(1, '2011-08-24 21:07:01.720999 UTC')$$);
SELECT try($$SELECT instaid.make_id(now(), 1, 1, '1969-12-31 23:59:59.999999 UTC')$$);
SELECT try($$SELECT instaid.min_id(now(), '4714-11-24 00:00:00.000001 BC UTC')$$);
SELECT try($$SELECT instaid.created_between(1, now(), now(), '2020-01-01 00:00:00.0001 UTC')$$);
SELECT try($$SELECT instaid.decode(1, '-infinity')$$);

-- IDs for rows of the past: the low bits run on where the rows of a millisecond fit
SELECT t, d.* FROM unnest(ARRAY['2020-01-01 10:00:00.0004', '2020-01-01 10:00:00.0009', '2020-01-01 10:00:00.001', '2020-01-02']::timestamptz[]) WITH ORDINALITY AS t (t, n)
JOIN instaid.make_ids(ARRAY['2020-01-01 10:00:00.0004', '2020-01-01 10:00:00.0009', '2020-01-01 10:00:00.001', '2020-01-02']::timestamptz[], 5) WITH ORDINALITY AS i (id, n) USING (n),
    instaid.decode(id) AS d ORDER BY n;
SELECT min(n) AS first, max(n) AS last, d.created_at, min(d.sequence), max(d.sequence)
FROM instaid.make_ids(array_fill('2020-01-01 10:00'::timestamptz, ARRAY[3]) || array_fill('2020-01-01 10:00:01'::timestamptz, ARRAY[1022])
        || array_fill('2020-01-01 10:00:02'::timestamptz, ARRAY[2500]) || '2020-01-01 10:00:02.001'::timestamptz, 5) WITH ORDINALITY AS i (id, n),
    instaid.decode(id) AS d
GROUP BY d.created_at ORDER BY d.created_at;
-- none, and nulls
SELECT count(*) FROM instaid.make_ids('{}', 5);
SELECT (SELECT count(*) FROM instaid.make_ids(NULL, 5)) + (SELECT count(*) FROM instaid.make_ids('{2020-01-01}', NULL))
    + (SELECT count(*) FROM instaid.make_ids('{2020-01-01}', 5, NULL)) AS count;
-- both ends
SELECT instaid.make_ids(ARRAY[instaid.default_epoch(), '2046-06-27 17:00:49.496999 UTC'], 0);
SELECT instaid.make_ids('{1900-01-01 00:00:00.001 UTC}', 5, '1900-01-01 UTC') = (1 << 23) + 5 * 1024 AS before_1970;
SELECT max(id) FROM instaid.make_ids(array_fill('2046-06-27 17:00:49.496 UTC'::timestamptz, ARRAY[1024]), 8191) AS id;
SELECT try($$SELECT instaid.make_ids(array_fill('2046-06-27 17:00:49.496 UTC'::timestamptz, ARRAY[1025]), 8191)$$);
SELECT try($$SELECT instaid.make_ids('{2046-06-27 17:00:49.497 UTC}', 1)$$);
SELECT try($$SELECT instaid.make_ids('{2011-08-24 21:07:01.720999 UTC}', 1)$$);
SELECT try($$SELECT instaid.make_ids('{2020-01-01 UTC, infinity}', 1)$$);
SELECT try($$SELECT instaid.make_ids('{-infinity}', 1)$$);
SELECT try($$SELECT instaid.make_ids('{2020-01-01 UTC, NULL, 2020-01-01 UTC}', 1)$$);
SELECT try($$SELECT instaid.make_ids('{2020-01-02 UTC, 2020-01-03 UTC, 2020-01-02 23:59:59.999999 UTC}', 1)$$);
SELECT try($$SELECT instaid.make_ids('{2020-01-01}', 8192)$$);
SELECT try($$SELECT instaid.make_ids('{2020-01-01}', 1, '2020-01-01 00:00:00.0001 UTC')$$);
