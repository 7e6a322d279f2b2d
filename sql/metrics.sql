-- instaid.metrics: what monitoring systems read, a row for each role.  Other tests may have left shards.
SET client_min_messages = error;
SELECT instaid.create_shard('regress_worst', 81);
SELECT instaid.create_shard('regress_ending', 82, date_trunc('day', now()) - interval '12600 days');
SELECT regress_worst.next_id() IS NOT NULL AS made;
SELECT instaid.advance_past('regress_worst.table_id_seq', instaid.make_id(now() + interval '3 h', 81, 0), instaid.default_epoch());
CREATE ROLE regress_instaid_monitor IN ROLE pg_monitor;
CREATE ROLE regress_instaid_nobody;

-- membership in pg_monitor is all that the role needs
SET ROLE regress_instaid_monitor;
SELECT m.shards = (SELECT count(*) FROM instaid.shards) AS shards, m.frozen_shards = (SELECT count(*) FROM instaid.shards WHERE frozen) AS frozen_shards,
    m.unreadable, m.drift_seconds > 10000 AS drifts, m.drift_shard, m.drift_limit_seconds, m.last_id_seconds,
    m.expiry_seconds BETWEEN 0 AND 86400 * 200 AS ends FROM instaid.metrics AS m;

-- a frozen shard issues no IDs, and its end does not matter; the setting is read
SET ROLE regress_instaid_nobody;
SELECT drift_shard, unreadable = shards AS blind, shards > 1 AS shards FROM instaid.metrics;
RESET ROLE;
SELECT frozen_shards AS before FROM instaid.metrics \gset
SELECT instaid.freeze_shard('regress_ending');
SET instaid.max_drift = '5 s';
SELECT frozen_shards - :before AS more, expiry_seconds BETWEEN 0 AND 86400 * 200 AS ends, drift_limit_seconds FROM instaid.metrics;
RESET instaid.max_drift;
-- nor does the time of its IDs
SELECT instaid.freeze_shard('regress_worst');
SELECT drift_shard = 'regress_worst' AS drifts FROM instaid.metrics;
SELECT instaid.thaw_shard('regress_worst');
SELECT drift_shard = 'regress_worst' AS drifts FROM instaid.metrics;

-- a sequence of a table counts
CREATE SEQUENCE regress_worst.likes_id_seq;
CREATE TABLE regress_worst.likes (id bigint DEFAULT regress_worst.next_id('regress_worst.likes_id_seq'::regclass));
SELECT instaid.advance_past('regress_worst.likes_id_seq', instaid.make_id(now() + interval '5 h', 81, 0), instaid.default_epoch());
SET ROLE regress_instaid_monitor;
SELECT drift_shard, drift_seconds BETWEEN 17000 AND 18000 AS five_hours, unreadable FROM instaid.metrics;
RESET ROLE;
DROP TABLE regress_worst.likes;
SELECT drift_shard, drift_seconds BETWEEN 10000 AND 10800 AS three_hours FROM instaid.metrics;

-- A declaration whose sequence is none, or whose owner may not use it, counts for nothing: any role can write one.
CREATE ROLE regress_instaid_mallory;
CREATE SCHEMA regress_none AUTHORIZATION regress_instaid_mallory;
CREATE SCHEMA regress_foreign AUTHORIZATION regress_instaid_mallory;
SELECT shards AS before, 'regress_worst.table_id_seq'::regclass::oid AS foreign FROM instaid.metrics \gset
SET ROLE regress_instaid_mallory;
SET check_function_bodies = off;
CREATE FUNCTION regress_none.next_ids(count integer, sequence regclass DEFAULT 'pg_class') RETURNS SETOF bigint
    LANGUAGE instaid STRICT AS 'shard 77, epoch -62135596800000';
CREATE FUNCTION regress_foreign.next_ids(count integer, sequence regclass DEFAULT :'foreign') RETURNS SETOF bigint
    LANGUAGE instaid STRICT AS 'shard 78, epoch -62135596800000';
RESET check_function_bodies;
SET ROLE regress_instaid_monitor;
SELECT m.shards - :before AS more, m.unreadable, m.drift_shard, m.expiry_seconds > 0 AS later FROM instaid.metrics AS m;
-- A real one hides only what its owner has.
RESET ROLE;
DROP SCHEMA regress_none, regress_foreign CASCADE;
CREATE SCHEMA regress_far AUTHORIZATION regress_instaid_mallory;
SET ROLE regress_instaid_mallory;
SELECT format('shard 77, epoch %s', (extract(epoch FROM date_trunc('day', now()) - interval '12000 days') * 1000)::bigint) AS body \gset
CREATE SEQUENCE regress_far.table_id_seq;
CREATE FUNCTION regress_far.next_ids(count integer, sequence regclass DEFAULT 'regress_far.table_id_seq') RETURNS SETOF bigint
    LANGUAGE instaid STRICT AS :'body';
SELECT setval('regress_far.table_id_seq', (extract(epoch FROM now() + interval '1 year') * 1000)::bigint << 10) > 0 AS set;
SET ROLE regress_instaid_monitor;
SELECT o.owner = 'regress_instaid_mallory' AS is_mallory, o.drift_shard, o.drift_seconds BETWEEN 3000 AND 11000 AS drifts,
    o.drift_seconds > o.drift_limit_seconds AS alarms, o.expiry_shard = 'regress_far' AS is_far
FROM instaid.metrics AS o WHERE o.drift_shard IN ('regress_worst', 'regress_far') ORDER BY 1;
RESET ROLE;
DROP SCHEMA regress_far CASCADE;
DROP ROLE regress_instaid_mallory;

-- columns for collectors: numbers and names only
SELECT string_agg(DISTINCT format_type(atttypid, NULL), ', ') FROM pg_attribute WHERE attrelid = 'instaid.metrics'::regclass AND attnum > 0;

DROP SCHEMA regress_worst, regress_ending CASCADE;
DROP ROLE regress_instaid_monitor, regress_instaid_nobody;
