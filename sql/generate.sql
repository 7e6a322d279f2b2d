-- The IDs that one session takes from a sequence.
SET timezone = 'UTC';
SELECT instaid.create_shard('regress_g', 1341);

-- the published example: the sequence stands at 5000, the shard is 1341
SELECT setval('regress_g.table_id_seq', 5000);
SELECT d.shard_id, d.sequence FROM instaid.decode(regress_g.next_id()) AS d;
SELECT d.shard_id, d.sequence FROM instaid.decode(regress_g.next_id()) AS d;

-- an ID has the time at which it was issued, to the millisecond
SELECT instaid.extract_timestamp(id) BETWEEN before - interval '1 ms' AND clock_timestamp() AS of_now
FROM (SELECT clock_timestamp() AS before, regress_g.next_id() AS id OFFSET 0) AS v;

-- within a statement, IDs are in the order of the rows, even if they are ahead of the clock
CREATE TABLE regress_g.likes (id bigint PRIMARY KEY DEFAULT regress_g.next_id(), n integer);
CREATE TABLE regress_g.photos (id bigint PRIMARY KEY DEFAULT regress_g.next_id(), n integer);
INSERT INTO regress_g.likes (n) SELECT generate_series(1, 3000);
SELECT count(*) AS inversions
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM regress_g.likes) AS v WHERE id <= before;
SELECT count(*) AS ids, count(*) FILTER (WHERE id <= before) AS inversions,
    max(id >> 23) - min(id >> 23) >= 1000000 / 1024 - 1 AS within_1024_a_ms
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before
      FROM (SELECT n, regress_g.next_id() AS id FROM generate_series(1, 1000000) AS n OFFSET 0) AS a) AS b;

-- two tables of one shard never share an ID; COPY uses the same default
COPY regress_g.photos (n) FROM stdin;
1
2
3
\.
INSERT INTO regress_g.photos (n) SELECT generate_series(4, 3000);
SELECT count(*), count(DISTINCT id) FROM (TABLE regress_g.likes UNION ALL TABLE regress_g.photos) AS v;
SELECT max(l.id) < min(p.id) AS in_order FROM regress_g.likes AS l, regress_g.photos AS p;

-- after sequence 1023, IDs continue in the next millisecond
SET instaid.max_drift = '1d';
SELECT setval('regress_g.table_id_seq',
              ((extract(epoch FROM now()) * 1000)::bigint + 3600000 << 10) + 1022) IS NOT NULL AS set;
SELECT id - lag(id) OVER (ORDER BY id) AS step, (instaid.decode(id)).sequence
FROM regress_g.next_ids(4) AS id;
-- ahead of the clock, each call takes the next tick
SELECT b - a FROM (SELECT regress_g.next_id() AS a, regress_g.next_id() AS b OFFSET 0) AS v;
-- setval() can also set the sequence back
SELECT setval('regress_g.table_id_seq', 1);
RESET instaid.max_drift;
SELECT instaid.extract_timestamp(regress_g.next_id()) < clock_timestamp() + interval '2 s' AS back;

-- next_ids() returns as many IDs as it is asked for, in order
SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE id <= before) AS inversions
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before
      FROM regress_g.next_ids(100000) WITH ORDINALITY AS v (id, n)) AS w;
SELECT count(*) FROM regress_g.next_ids(1);
SELECT count(*) FROM (SELECT regress_g.next_ids(1000000)) AS v;
-- next_ids() and next_id() by turns
SELECT count(*), count(DISTINCT id), count(*) FILTER (WHERE id <= before) AS inversions
FROM (SELECT id, lag(id) OVER (ORDER BY n, o) AS before
      FROM generate_series(1, 500) AS n,
          LATERAL (SELECT id, o FROM regress_g.next_ids(n) WITH ORDINALITY AS s (id, o)
                   UNION ALL SELECT regress_g.next_id(), n + 1) AS v (id, o)) AS w;

-- setval() sets the low bits, whatever the session remembers
SELECT setval('regress_g.table_id_seq', 5000);
SELECT d.shard_id, d.sequence FROM instaid.decode(regress_g.next_id()) AS d;

-- a table with a sequence of its own
CREATE SEQUENCE regress_g.stars_id_seq;
CREATE TABLE regress_g.stars (id bigint PRIMARY KEY DEFAULT regress_g.next_id('regress_g.stars_id_seq'));
ALTER SEQUENCE regress_g.stars_id_seq OWNED BY regress_g.stars.id;
INSERT INTO regress_g.stars SELECT FROM generate_series(1, 1000);
SELECT count(*), min(instaid.extract_shard_id(id)), max(instaid.extract_shard_id(id)) FROM regress_g.stars;

-- a null gives no ID
SELECT instaid.next_id(NULL, 5), instaid.next_id('regress_g.table_id_seq', NULL),
    instaid.next_id('regress_g.table_id_seq', 5, NULL), regress_g.next_id(NULL);
SELECT * FROM regress_g.next_ids(NULL);

-- CACHE has no effect: each call takes one tick
CREATE SEQUENCE regress_g.cached CACHE 50;
SELECT (instaid.decode(regress_g.next_id('regress_g.cached'))).sequence;
SELECT last_value & 1023 AS taken FROM regress_g.cached;

-- nextval() and next_id() can share a sequence
SELECT count(*), count(DISTINCT tick), count(*) FILTER (WHERE tick <= before) AS inversions
FROM (SELECT tick, lag(tick) OVER (ORDER BY n) AS before
      FROM (SELECT n, CASE WHEN n % 3 = 0 THEN nextval('regress_g.stars_id_seq')
                           ELSE ((id >> 23) + 1314220021721 << 10) | (id & 1023) END AS tick
            FROM (SELECT n, CASE WHEN n % 3 <> 0 THEN regress_g.next_id('regress_g.stars_id_seq') END AS id
                  FROM generate_series(1, 100000) AS n OFFSET 0) AS a) AS b) AS c;

SET client_min_messages = warning;
DROP SCHEMA regress_g CASCADE;
