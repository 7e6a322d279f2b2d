-- create_partitions(): partitions by time, on the ID.
SET timezone = 'America/New_York';      -- must not matter
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';
SELECT instaid.create_shard('regress_p', 5);

-- the bounds of a table's partitions as times, in UTC
CREATE FUNCTION bounds(parent regclass) RETURNS TABLE (partition regclass, from_time timestamp, to_time timestamp)
    LANGUAGE sql AS $$
    SELECT inhrelid::regclass, instaid.extract_timestamp(b[1]::bigint) AT TIME ZONE 'UTC',
        instaid.extract_timestamp(NULLIF(b[2], 'MAXVALUE')::bigint) AT TIME ZONE 'UTC'
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid,
        regexp_match(pg_get_expr(relpartbound, inhrelid), '\(''?(\w+)''?\) TO \(''?(\w+)''?\)') AS b
    WHERE inhparent = parent ORDER BY b[1]::bigint
$$;

-- The primary key is the ID alone.
CREATE TABLE regress_p.photos (id bigint PRIMARY KEY DEFAULT regress_p.next_id(), n integer) PARTITION BY RANGE (id);
SELECT * FROM instaid.create_partitions('regress_p.photos', '2026-01-01 UTC', '2026-01-04 UTC', '1 day');
SELECT * FROM bounds('regress_p.photos');
SELECT conrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint
WHERE contype = 'p' AND conrelid::regclass::text LIKE 'regress_p.%' ORDER BY 1;
-- the time of an ID decides in which partition it is
INSERT INTO regress_p.photos SELECT id, n FROM generate_series(0, 2) AS n, LATERAL (VALUES
    (instaid.min_id('2026-01-01 UTC'::timestamptz + n * interval '1 day')),
    (instaid.max_id('2026-01-01 23:59:59.999 UTC'::timestamptz + n * interval '1 day'))) AS v (id);
SELECT tableoid::regclass, count(*), min(instaid.extract_timestamp(id) AT TIME ZONE 'UTC'), max(instaid.extract_timestamp(id) AT TIME ZONE 'UTC')
FROM regress_p.photos GROUP BY tableoid ORDER BY 1;
INSERT INTO regress_p.photos SELECT max(id) FROM regress_p.photos;
CREATE TABLE regress_p.likes (id bigint PRIMARY KEY, photo_id bigint NOT NULL REFERENCES regress_p.photos);
INSERT INTO regress_p.likes SELECT 1, max(id) FROM regress_p.photos;
INSERT INTO regress_p.likes VALUES (2, 1);

-- a second call adds only the partitions that are missing
SELECT * FROM instaid.create_partitions('regress_p.photos', '2026-01-01 UTC', '2026-01-04 UTC', '1 day');
DROP TABLE regress_p.likes, regress_p.photos_20260102;
ALTER TABLE regress_p.photos_20260103 RENAME TO photos_renamed;
SELECT * FROM instaid.create_partitions('regress_p.photos', '2025-12-31 UTC', '2026-01-04 00:00:01 UTC', '1 day');
SELECT * FROM bounds('regress_p.photos');
-- new IDs go into the partition of today
CREATE TABLE regress_p.now (id bigint PRIMARY KEY DEFAULT regress_p.next_id(), n integer) PARTITION BY RANGE (id);
SELECT count(*) FROM instaid.create_partitions('regress_p.now', date_trunc('day', now(), 'UTC'), now() + interval '1 day', '1 day');
INSERT INTO regress_p.now (n) VALUES (1) RETURNING tableoid::regclass::text = 'regress_p.now_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD') AS today;

-- months and years, over changes of daylight saving time, and from the 31st of a month
CREATE TABLE regress_p.months (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT count(*) FROM instaid.create_partitions('regress_p.months', '2026-02-01 UTC', '2026-05-01 UTC', '1 month');
SELECT count(*) FROM instaid.create_partitions('regress_p.months', '2024-01-31 UTC', '2024-04-01 UTC', '1 month');
SELECT * FROM bounds('regress_p.months');
-- the first contains the epoch, the last the end of the format
CREATE TABLE regress_p.years (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT count(*) FROM instaid.create_partitions('regress_p.years', '2011-01-01 UTC', '2013-01-01 UTC', '1 year');
SELECT * FROM instaid.create_partitions('regress_p.years', '2045-01-01 UTC', '2046-06-27 17:00:49.497 UTC', '1 year');
SELECT * FROM bounds('regress_p.years');
INSERT INTO regress_p.years VALUES (0), (9223372036854775807);
SELECT * FROM instaid.create_partitions('regress_p.years', '2046-01-01 UTC', '2046-01-02 UTC', '1 year');

-- a table that was attached holds several steps, and the call creates the others; a part of a step is in the way
CREATE TABLE regress_p.attached (id bigint PRIMARY KEY);
ALTER TABLE regress_p.attached RENAME TO attached_old;
CREATE TABLE regress_p.attached (LIKE regress_p.attached_old INCLUDING ALL) PARTITION BY RANGE (id);
ALTER TABLE regress_p.attached ATTACH PARTITION regress_p.attached_old FOR VALUES FROM (MINVALUE) TO (instaid.min_id('2026-03-01 UTC'));
SELECT * FROM instaid.create_partitions('regress_p.attached', '2026-01-01 UTC', '2026-04-01 UTC', '1 month');
SELECT try($$SELECT instaid.create_partitions('regress_p.attached', '2026-02-15 UTC', '2026-03-15 UTC', '1 month')$$);
SELECT partition FROM instaid.list_partitions('regress_p.attached');

-- names have the time of day if the step is shorter than a day, or does not begin at
-- midnight
CREATE TABLE regress_p."Odd ""name""" (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT * FROM instaid.create_partitions('regress_p."Odd ""name"""', '2026-01-01 UTC', '2026-01-02 UTC', '12 hours');
SELECT * FROM instaid.create_partitions('regress_p."Odd ""name"""', '2026-01-03', '2026-01-04', '1 day');
SELECT * FROM instaid.create_partitions('regress_p."Odd ""name"""', '2026-01-05 00:00:59.5 UTC', '2026-01-05 00:01 UTC', '250 ms');
SELECT * FROM instaid.create_partitions('regress_p."Odd ""name"""', '2026-01-06 00:00:00.0005 UTC', '2026-01-06 00:00:00.001 UTC', '1 ms');
SELECT * FROM instaid.create_partitions('regress_p."Odd ""name"""', '2026-01-07 UTC', '2026-01-08 UTC', '36 hours');
SELECT * FROM instaid.create_partitions('regress_p."Odd ""name"""', '2026-01-09 UTC', '2026-01-10 UTC', '24 hours');
SELECT * FROM bounds('regress_p."Odd ""name"""');

-- another epoch
CREATE TABLE regress_p.young (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
SELECT * FROM instaid.create_partitions('regress_p.young', '2026-01-01 UTC', '2026-01-03 UTC', '1 day', '2026-01-01 12:00 UTC');
INSERT INTO regress_p.young VALUES (0), (instaid.make_id('2026-01-02 UTC', 5, 1, '2026-01-01 12:00 UTC')) RETURNING tableoid::regclass;

-- tables and rows that are in the way
SELECT try($$SELECT instaid.create_partitions('regress_p.photos', '2025-12-31 UTC', '2026-01-05 UTC', '2 days')$$,
    $$SELECT instaid.create_partitions('regress_p.years', '2046-05-01 UTC', '2046-06-01 UTC', '1 month')$$);
CREATE TABLE regress_p.by_hand PARTITION OF regress_p.months FOR VALUES FROM (MINVALUE) TO (5000);
SELECT try($$SELECT instaid.create_partitions('regress_p.months', '2011-08-01 UTC', '2011-09-01 UTC', '1 month')$$);
CREATE VIEW regress_p.months_20260501 AS SELECT 1;
SELECT try($$SELECT instaid.create_partitions('regress_p.months', '2026-05-01 UTC', '2026-06-01 UTC', '1 month')$$);
CREATE TABLE regress_p.months_default PARTITION OF regress_p.months DEFAULT;
INSERT INTO regress_p.months VALUES (instaid.max_id('2026-07-31 23:59:59.999 UTC'));
SELECT try($$SELECT instaid.create_partitions('regress_p.months', '2026-06-01 UTC', '2026-08-01 UTC', '1 month')$$);
SELECT * FROM instaid.create_partitions('regress_p.months', '2026-08-01 UTC', '2026-09-01 UTC', '1 month');
-- the statements of the hint move the rows
BEGIN;
ALTER TABLE regress_p.months DETACH PARTITION regress_p.months_default;
SELECT * FROM instaid.create_partitions('regress_p.months', '2026-06-01 UTC', '2026-08-01 UTC', '1 month');
WITH moved AS (DELETE FROM regress_p.months_default RETURNING *) INSERT INTO regress_p.months SELECT * FROM moved RETURNING tableoid::regclass;
ALTER TABLE regress_p.months ATTACH PARTITION regress_p.months_default DEFAULT;
COMMIT;
-- rows of another partition are not the default partition's
SELECT try($$SELECT instaid.create_partitions('regress_p.months', '2026-07-15 UTC', '2026-08-15 UTC', '1 month')$$);
-- a step that is longer than the format
CREATE TABLE regress_p.one (id bigint) PARTITION BY RANGE (id);
SELECT * FROM instaid.create_partitions('regress_p.one', '2026-01-01 UTC', '2027-01-01 UTC', '1000 years');
SELECT * FROM bounds('regress_p.one');

-- list_partitions(): in the order of their IDs, and the default partition last
SET timezone = 'UTC';
SELECT * FROM instaid.list_partitions('regress_p.months') ORDER BY end_id DESC NULLS LAST LIMIT 3;
SELECT partition, from_time, to_time FROM instaid.list_partitions('regress_p.months') WHERE from_time = '-infinity' OR from_time IS NULL;
SELECT partition, from_time, to_time FROM instaid.list_partitions('regress_p.young', '2026-01-01 12:00 UTC');
SELECT partition, to_time, end_id FROM instaid.list_partitions('regress_p.one');
-- bounds within a millisecond, below all IDs, and of all IDs
CREATE TABLE regress_p.odd_bounds (id bigint) PARTITION BY RANGE (id);
CREATE TABLE regress_p.below PARTITION OF regress_p.odd_bounds FOR VALUES FROM (MINVALUE) TO (-5);
CREATE TABLE regress_p.zero PARTITION OF regress_p.odd_bounds FOR VALUES FROM (-5) TO (1);
CREATE TABLE regress_p.within PARTITION OF regress_p.odd_bounds FOR VALUES FROM (8388609) TO (16777217);
SELECT * FROM instaid.list_partitions('regress_p.odd_bounds', '2020-01-01 UTC');
SELECT try($$SELECT instaid.create_partitions('regress_p.odd_bounds', '2020-01-01 00:00:00.001 UTC', '2020-01-01 00:00:00.003 UTC', '2 ms', '2020-01-01 UTC')$$);
CREATE TABLE regress_p.all_ids (id bigint) PARTITION BY RANGE (id);
CREATE TABLE regress_p.everything PARTITION OF regress_p.all_ids FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
SELECT * FROM instaid.list_partitions('regress_p.all_ids');
-- tables that are not partitioned by IDs have no rows
CREATE TABLE regress_p.by_text (id text) PARTITION BY RANGE (id);
CREATE TABLE regress_p.by_text_1 PARTITION OF regress_p.by_text FOR VALUES FROM ('1') TO ('99999999999999999999');
CREATE TABLE regress_p.by_text_2 PARTITION OF regress_p.by_text FOR VALUES FROM ('B') TO ('C');
CREATE TABLE regress_p.by_list_of (id bigint) PARTITION BY LIST (id);
CREATE TABLE regress_p.by_list_of_1 PARTITION OF regress_p.by_list_of FOR VALUES IN (1);
SELECT count(*) FROM pg_class AS c, instaid.list_partitions(c.oid) WHERE c.oid IN ('regress_p.by_text'::regclass, 'regress_p.by_list_of'::regclass, 'regress_p.within'::regclass);
-- it waits for no lock, and reads all tables at once
SELECT count(*) > 20 AS many FROM pg_class AS c, instaid.list_partitions(c.oid);
-- retention
SELECT format('DROP TABLE %s', partition) FROM instaid.list_partitions('regress_p.months') WHERE to_time < '2026-05-01 UTC' ORDER BY from_time \gexec
SELECT partition, from_time, to_time FROM instaid.list_partitions('regress_p.months');
SET timezone = 'America/New_York';

-- arguments that are refused
SELECT try($$SELECT instaid.create_partitions('regress_p.photos', '2027-01-01 UTC', '2027-01-02 UTC', '-1 day')$$,
    $$SELECT instaid.create_partitions('regress_p.photos', '2027-02-01 UTC', '2027-04-01 UTC', '1 month -29 days')$$,
    -- after the last millisecond of the format
    $$SELECT instaid.create_partitions('regress_p.months', '2046-06-27 17:00:49.4965 UTC', '2046-06-27 17:00:49.497 UTC', '1 ms')$$,
    $$SELECT instaid.create_partitions('regress_p.photos', '-infinity', '2012-01-01 UTC', '1 day')$$,
    $$SELECT instaid.create_partitions('regress_p.photos', '2046-06-01 UTC', '2046-07-01 UTC', '1 day')$$,
    $$SELECT instaid.create_partitions('regress_p.photos', '2046-06-01 UTC', 'infinity', '1 day')$$,
    $$SELECT instaid.create_partitions('regress_p.photos', '2027-01-01 UTC', '2027-01-02 UTC', '1 day', 'infinity')$$);
CREATE TABLE regress_p.plain (id bigint PRIMARY KEY);
CREATE TABLE regress_p.by_list (id bigint PRIMARY KEY) PARTITION BY LIST (id);
CREATE TABLE regress_p.by_two (id bigint, n bigint) PARTITION BY RANGE (id, n);
CREATE TABLE regress_p.by_int (id integer) PARTITION BY RANGE (id);
CREATE TABLE regress_p.by_expression (id bigint) PARTITION BY RANGE ((id + 1));
SELECT n, try(format('SELECT instaid.create_partitions(%L, %L, %L, %L)', 'regress_p.' || n, '2027-01-01 UTC', '2027-01-02 UTC', '1 day'))
FROM unnest('{plain,by_list,by_two,by_int,by_expression,plain_pkey}'::text[]) AS n;
SELECT try($$SELECT instaid.create_partitions(0, '2027-01-01 UTC', '2027-01-02 UTC', '1 day')$$);
-- a name can have 63 bytes, and not 64
CREATE TABLE regress_p.a23456789012345678901234567890123456789012345678901234 (id bigint) PARTITION BY RANGE (id);
SELECT * FROM instaid.create_partitions('regress_p.a23456789012345678901234567890123456789012345678901234', '2027-01-01 UTC', '2027-01-02 UTC', '1 day');
ALTER TABLE regress_p.a23456789012345678901234567890123456789012345678901234 RENAME TO a234567890123456789012345678901234567890123456789012345;
SELECT try($$SELECT instaid.create_partitions('regress_p.a234567890123456789012345678901234567890123456789012345', '2027-01-02 UTC', '2027-01-03 UTC', '1 day')$$);

-- only the table's owner can create partitions, and owns them
CREATE ROLE regress_p_owner;
CREATE ROLE regress_p_other;
GRANT USAGE ON SCHEMA regress_p TO regress_p_owner, regress_p_other;
GRANT ALL ON regress_p.young TO regress_p_other;
ALTER TABLE regress_p.young OWNER TO regress_p_owner;
SET ROLE regress_p_other;
SELECT try($$SELECT instaid.create_partitions('regress_p.young', '2026-01-03 UTC', '2026-01-04 UTC', '1 day', '2026-01-01 12:00 UTC')$$);
SET ROLE regress_p_owner;
SELECT try($$SELECT instaid.create_partitions('regress_p.young', '2026-01-03 UTC', '2026-01-04 UTC', '1 day', '2026-01-01 12:00 UTC')$$);
RESET ROLE;
GRANT CREATE ON SCHEMA regress_p TO regress_p_owner;
SET ROLE regress_p_owner;
SELECT * FROM instaid.create_partitions('regress_p.young', '2026-01-03 UTC', '2026-01-04 UTC', '1 day', '2026-01-01 12:00 UTC');
RESET ROLE;
SELECT relname, relowner::regrole FROM pg_class WHERE oid = 'regress_p.young_20260103'::regclass;

-- partitions of a temporary table are temporary
CREATE TEMPORARY TABLE regress_temporary (id bigint) PARTITION BY RANGE (id);
SELECT count(*) FROM instaid.create_partitions('regress_temporary', '2027-01-01 UTC', '2027-01-02 UTC', '1 day');
SELECT relname, relpersistence FROM pg_class WHERE relname = 'regress_temporary_20270101';

-- a key of type instaid.id
CREATE TABLE regress_p.typed (id instaid.id PRIMARY KEY) PARTITION BY RANGE (id);
SELECT * FROM instaid.create_partitions('regress_p.typed', '2027-01-01 UTC', '2027-01-03 UTC', '1 day');
SELECT * FROM instaid.create_partitions('regress_p.typed', '2027-01-01 UTC', '2027-01-03 UTC', '1 day');

SET client_min_messages = warning;
DROP SCHEMA regress_p CASCADE;
DROP FUNCTION bounds;
DROP TABLE regress_temporary;
DROP ROLE regress_p_owner, regress_p_other;
