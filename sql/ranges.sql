-- Time ranges: their bounds, the use of an index, and the pruning of partitions.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';

-- the smallest and the largest ID of a millisecond, over all shards
SELECT d.* FROM (VALUES (instaid.min_id('2026-10-05 21:56:50.506 UTC')), (instaid.max_id('2026-10-05 21:56:50.506999 UTC'))) AS v (id),
    instaid.decode(id) AS d;
SELECT d.* FROM (VALUES (instaid.min_id('2026-10-05 UTC', '2026-01-01 UTC')), (instaid.max_id('2026-10-05 UTC', '2026-01-01 UTC'))) AS v (id),
    instaid.decode(id, '2026-01-01 UTC') AS d;

-- times outside the format count as its first or last millisecond
SELECT t, instaid.min_id(t), instaid.max_id(t), instaid._min_id_from(t), instaid._max_id_before(t)
FROM (VALUES ('-infinity'::timestamptz), ('4714-11-24 00:00:00 BC UTC'), ('2011-08-24 21:07:01.720999 UTC'), ('2011-08-24 21:07:01.721 UTC'),
    ('2011-08-24 21:07:01.721001 UTC'), ('2011-08-24 21:07:01.722 UTC'), ('2046-06-27 17:00:49.496 UTC'),
    ('2046-06-27 17:00:49.496001 UTC'), ('2046-06-27 17:00:49.497 UTC'), ('294276-12-31 23:59:59.999999 UTC'), ('infinity')) AS v (t);
-- epochs so far away that the difference does not fit
SELECT t, epoch, instaid.min_id(t, epoch), instaid.max_id(t, epoch), instaid._min_id_from(t, epoch), instaid._max_id_before(t, epoch)
FROM (VALUES ('294276-12-31 23:59:59.999999 UTC'::timestamptz), ('4714-11-24 00:00:00 BC UTC'), ('infinity'), ('-infinity')) AS v (t),
    (VALUES ('294207-04-27 08:12:24.447 UTC'::timestamptz), ('4714-11-24 00:00:00 BC UTC')) AS e (epoch);

-- An ID is in a range if, and only if, its time is.  The bounds are within
-- microseconds of the times of some IDs.
SELECT epoch, count(*), count(*) FILTER (WHERE ours) AS inside, count(*) FILTER (WHERE ours IS DISTINCT FROM theirs) AS wrong
FROM (VALUES (instaid.default_epoch()), ('1969-07-20 20:17:40.123 UTC')) AS e (epoch),
    (VALUES (0), (8388607), (8388608), (3800086217995845632), (3800086217995845631), (9223372036854775807)) AS i (id),
    LATERAL (SELECT instaid.extract_timestamp(id, epoch) AS created_at) AS c,
    (VALUES (-2000), (-1001), (-1000), (-999), (-500), (-1), (0), (1), (500), (999), (1000), (1001), (2000)) AS a (a),
    (VALUES (-2000), (-1001), (-1000), (-999), (-500), (-1), (0), (1), (500), (999), (1000), (1001), (2000)) AS b (b),
    LATERAL (SELECT created_at + a * interval '1 us' AS from_time, created_at + b * interval '1 us' AS to_time) AS r,
    LATERAL (SELECT instaid.created_between(id, from_time, to_time, epoch) IS TRUE AS ours, created_at >= from_time AND created_at < to_time AS theirs) AS o
GROUP BY epoch ORDER BY epoch;
-- all times, the last millisecond, and ranges that contain no ID
SELECT id, instaid.created_between(id, '-infinity', 'infinity') AS always,
    instaid.created_between(id, '-infinity', '2046-06-27 17:00:49.496 UTC') AS before,
    instaid.created_between(id, '2046-06-27 17:00:49.496 UTC', '2046-06-27 17:00:49.497 UTC') AS last_ms,
    instaid.created_between(id, '2046-06-27 17:00:49.497 UTC', 'infinity') IS TRUE AS after,
    instaid.created_between(id, 'infinity', '-infinity') IS TRUE AS backwards
FROM (VALUES (0), (9223372036846387199), (9223372036846387200), (9223372036854775807), (-1)) AS v (id);
-- null arguments give null
SELECT instaid.created_between(NULL, '-infinity', 'infinity'), instaid.created_between(1, NULL, 'infinity'),
    instaid.created_between(1, '-infinity', NULL), instaid.created_between(1, '-infinity', 'infinity', NULL),
    instaid.min_id(NULL), instaid.max_id('2026-01-01', NULL), instaid._min_id_from(NULL), instaid._max_id_before(NULL);

SELECT try($$SELECT instaid.min_id('2026-01-01', 'infinity')$$,
    $$SELECT instaid.max_id('2026-01-01', '-infinity')$$,
    $$SELECT instaid.created_between(1, '2026-01-01', '2026-01-02', 'infinity')$$);

-- The bounds become conditions of an index scan on the primary key; no call of
-- created_between() is left.
CREATE TABLE regress_photos (id bigint PRIMARY KEY, n integer);
INSERT INTO regress_photos SELECT instaid.make_id('2012-01-01 UTC'::timestamptz + n * interval '1 hour', n % 8192, n), n FROM generate_series(0, 95) AS n;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (VERBOSE, COSTS OFF) SELECT n FROM regress_photos WHERE instaid.created_between(id, '2012-01-02 UTC', '2012-01-03 UTC');
EXPLAIN (VERBOSE, COSTS OFF) SELECT n FROM regress_photos WHERE instaid.created_between(id, now() - interval '1 day', 'infinity');
EXPLAIN (COSTS OFF) SELECT n FROM regress_photos WHERE id >= instaid.min_id('2012-01-02 UTC') AND id < instaid.min_id('2012-01-03 UTC');
SELECT count(*), min(n), max(n) FROM regress_photos WHERE instaid.created_between(id, '2012-01-02 UTC', '2012-01-03 UTC');
-- created_between() is also inlined with a subselect or a longer expression
CREATE FUNCTION calls_left(condition text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
    EXECUTE 'EXPLAIN (VERBOSE, FORMAT json) SELECT n FROM regress_photos WHERE ' || condition INTO plan;
    RETURN plan::text LIKE '%created_between%' OR plan::text NOT LIKE '%Index Cond%';
END $$;
SELECT condition, calls_left(condition) FROM (VALUES
    ($$instaid.created_between(id, (SELECT now()), (SELECT 'infinity'::timestamptz))$$),
    ($$instaid.created_between(id, date_trunc('day', now() - 2 * interval '1 day', 'UTC') + interval '1 h' * n, now(), date_trunc('day', now() - interval '1 y'))$$),
    ($$instaid.created_between(id, 'yesterday', 'today', '2026-01-01 UTC')$$)) AS v (condition);
SELECT count(*), min(n), max(n) FROM regress_photos
WHERE instaid.created_between(id, (SELECT '2012-01-02 UTC'::timestamptz), (SELECT '2012-01-03 UTC'::timestamptz));

-- partitions are pruned for constants when the statement is planned
CREATE TABLE regress_parts (id bigint PRIMARY KEY, n integer) PARTITION BY RANGE (id);
SELECT * FROM instaid.create_partitions('regress_parts', '2012-01-01 UTC', '2012-01-05 UTC', '1 day');
CREATE TABLE regress_parts_recent PARTITION OF regress_parts FOR VALUES FROM (1500000000000000000) TO (MAXVALUE);
INSERT INTO regress_parts SELECT * FROM regress_photos;
EXPLAIN (COSTS OFF) SELECT n FROM regress_parts WHERE instaid.created_between(id, '2012-01-02 UTC', '2012-01-03 UTC');
EXPLAIN (COSTS OFF) SELECT n FROM regress_parts WHERE instaid.created_between(id, '2012-01-02 23:00 UTC', '2012-01-03 00:00:00.000001 UTC');
SELECT count(*) FROM regress_parts WHERE instaid.created_between(id, '2047-01-01 UTC', 'infinity');
-- partitions are pruned for now() when the statement starts
EXPLAIN (COSTS OFF) SELECT n FROM regress_parts WHERE instaid.created_between(id, now() - interval '1 day', 'infinity');
-- partitions are pruned for parameters
SET plan_cache_mode = force_generic_plan;
PREPARE between_times (timestamptz, timestamptz) AS SELECT n FROM regress_parts WHERE instaid.created_between(id, $1, $2);
EXPLAIN (COSTS OFF) EXECUTE between_times ('2012-01-02 UTC', '2012-01-03 UTC');
EXPLAIN (COSTS OFF) EXECUTE between_times ('infinity', 'infinity');
PREPARE how_many (timestamptz, timestamptz) AS SELECT count(*), min(n), max(n) FROM regress_parts WHERE instaid.created_between(id, $1, $2);
EXECUTE how_many ('2012-01-02 UTC', '2012-01-03 UTC');
EXECUTE how_many ('2012-01-02 UTC', NULL);

RESET plan_cache_mode;
RESET enable_seqscan;
RESET enable_bitmapscan;
DROP TABLE regress_photos, regress_parts;
DROP FUNCTION calls_left;
