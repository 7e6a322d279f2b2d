-- The fields of an ID: packing, unpacking, and the limits of each.
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- the fields of IDs that Instagram made
SELECT id, d.* FROM (VALUES (908540701891980503), (4001511883701836730)) AS v (id),
    instaid.decode(id) AS d;

-- one set bit in each field
SELECT i AS bit, extract(epoch FROM instaid.extract_timestamp(1::bigint << i, '1970-01-01 UTC')) * 1000 AS ms,
    instaid.extract_shard_id(1::bigint << i) AS shard_id,
    (instaid.decode(1::bigint << i)).sequence AS sequence
FROM generate_series(0, 63) AS i;

-- 0, -1, and both ends of bigint
SELECT id, d.* FROM (VALUES (0), (9223372036854775807), (-9223372036854775808), (-1)) AS v (id),
    instaid.decode(id) AS d;

-- every value of the small fields, and the ends of the time, are packed and unpacked
SELECT count(*) FROM generate_series(0, 8191) AS shard_id
WHERE instaid.extract_shard_id(instaid.make_id('2024-02-29 23:59:59.999 UTC', shard_id, shard_id)) = shard_id
  AND (instaid.decode(instaid.make_id('2024-02-29 23:59:59.999 UTC', shard_id, shard_id))).sequence = shard_id % 1024
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
SELECT n, (instaid.decode(instaid.make_id('2026-01-01', 5, n))).sequence
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
    instaid.extract_shard_id(NULL),
    instaid.decode(NULL), instaid.decode(1, NULL);

-- arguments that do not fit are refused
SELECT try($$SELECT instaid.make_id('2026-01-01', 8192, 1)$$,
    $$SELECT instaid.make_id('2026-01-01', -1, 1)$$,
    $$SELECT instaid.make_id('2011-08-24 21:07:01.720999 UTC', 1, 1)$$,
    $$SELECT instaid.make_id(instaid.default_epoch() + (1::bigint << 41) * interval '1 ms', 1, 1)$$,
    $$SELECT instaid.make_id('infinity', 1, 1)$$,
    $$SELECT instaid.make_id('-infinity', 1, 1)$$,
    $$SELECT instaid.make_id('294276-12-31 23:59:59 UTC', 1, 1, '4713-01-01 00:00:00 BC UTC')$$,
    $$SELECT instaid.make_id('2026-01-01', 1, 1, 'infinity')$$);
SELECT instaid.extract_timestamp(-1, '294207-04-27 08:12:24.448 UTC');
SELECT try($$SELECT instaid.extract_timestamp(-1, '294207-04-27 08:12:24.449 UTC')$$,
    -- an epoch is a whole millisecond
    $$SELECT instaid.extract_timestamp(-1, '2011-08-24 21:07:01.721001 UTC')$$,
    $$SELECT instaid.decode(1, '2011-08-24 21:07:01.720999 UTC')$$,
    $$SELECT instaid.make_id(now(), 1, 1, '1969-12-31 23:59:59.999999 UTC')$$,
    $$SELECT instaid.min_id(now(), '4714-11-24 00:00:00.000001 BC UTC')$$,
    $$SELECT instaid.created_between(1, now(), now(), '2020-01-01 00:00:00.0001 UTC')$$,
    $$SELECT instaid.decode(1, '-infinity')$$);

-- The query for old rows of docs/applications.md: 2,500 rows of a millisecond and rows of the
-- next ones, ties, rows from the epoch on, and random times with many rows a millisecond
CREATE TABLE old_photos (caption serial, taken_at timestamptz);
INSERT INTO old_photos (taken_at) SELECT '2020-01-01 UTC' FROM generate_series(1, 2500);
INSERT INTO old_photos (taken_at) SELECT '2020-01-01 00:00:00.001999 UTC' FROM generate_series(1, 100);
INSERT INTO old_photos (taken_at) SELECT '2020-01-01 00:00:00.003 UTC' FROM generate_series(1, 3);
INSERT INTO old_photos (taken_at) SELECT instaid.default_epoch() + n * interval '1 us' FROM generate_series(0, 1999, 999) AS n;
INSERT INTO old_photos (taken_at) SELECT '2020-01-02 UTC'::timestamptz + trunc(random() * 200000) * interval '1 ms' + n % 1000 * interval '1 us'
FROM generate_series(1, 100000) AS n;
INSERT INTO old_photos (taken_at) SELECT '2020-01-02 UTC'::timestamptz + trunc(random() * 50) * interval '1 s' FROM generate_series(1, 100000);
CREATE VIEW new_photos (id, caption) AS
SELECT instaid.make_id(timestamptz 'epoch' + (tick >> 10) * interval '1 ms', 5, tick), caption
FROM (SELECT caption, n + max(earliest - n) OVER (ORDER BY n) AS tick
      FROM (SELECT caption, floor(extract(epoch FROM taken_at) * 1000)::bigint << 10 AS earliest,
                   row_number() OVER (ORDER BY taken_at NULLS FIRST, caption) AS n
            FROM old_photos) AS a) AS b;
SELECT d.created_at, count(*), min(d.sequence), max(d.sequence) FROM new_photos, instaid.decode(id) AS d
WHERE d.created_at < '2020-01-02 UTC' GROUP BY d.created_at ORDER BY d.created_at;
-- Each row has an ID, all differ, and they are in order of the time.  An ID is the first of its
-- millisecond, or the next one after the row before.
SELECT count(*), count(DISTINCT id), bool_and(tick > before) AS in_order, bool_and(shard_id = 5) AS shard,
    bool_and(CASE WHEN tick = before + 1 THEN created_at >= ms ELSE created_at = ms AND sequence = 0 END) AS earliest
FROM (SELECT *, lag(tick) OVER (ORDER BY taken_at, caption) AS before
      FROM (SELECT id, caption, taken_at, date_trunc('milliseconds', taken_at) AS ms, d.*,
                   (extract(epoch FROM d.created_at) * 1000)::bigint << 10 | d.sequence AS tick
            FROM new_photos JOIN old_photos USING (caption), instaid.decode(id) AS d) AS a) AS b;
-- the time zone does not matter
CREATE TABLE in_utc AS SELECT * FROM new_photos;
SET timezone = 'America/New_York';
SELECT count(*) FROM (SELECT * FROM new_photos EXCEPT SELECT * FROM in_utc) AS d;
SET timezone = 'UTC';
-- rows without a time have no ID, and a time before the epoch is refused
INSERT INTO old_photos (taken_at) VALUES (NULL), (NULL);
SELECT count(*), count(DISTINCT id) FROM new_photos;
SELECT count(*) FROM (SELECT id FROM in_utc EXCEPT SELECT id FROM new_photos) AS d;
INSERT INTO old_photos (taken_at) VALUES ('2011-08-24 21:07:01.720999 UTC');
SELECT try('SELECT * FROM new_photos');
DROP VIEW new_photos;
DROP TABLE old_photos, in_utc;
