-- Shards: making them, refusing to, and reading them from the catalogs.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SELECT instaid.create_shard('regress_5', 5);
SELECT instaid.create_shard('Regress "6"', 6, '2020-01-01 UTC', 'Odd''s seq');
\sf regress_5.next_id()
\df "Regress ""6""".*
SELECT instaid.extract_shard_id("Regress ""6""".next_id());
SELECT schema_name, shard_id, epoch, sequence, last_id, last_issued_at, drift, expires_at
FROM instaid.shards WHERE shard_id = 5;
SELECT schema_name, s.shard_id, epoch, s.sequence, expires_at,
    d.shard_id AS same_shard, last_issued_at = d.created_at AS same_time,
    last_issued_at BETWEEN now() - interval '1 minute' AND clock_timestamp() AS of_now, drift
FROM instaid.shards AS s, instaid.decode(last_id, s.epoch) AS d WHERE s.shard_id = 6;

-- drift is how far a sequence is ahead
SELECT setval('regress_5.table_id_seq',
              (extract(epoch FROM now() - instaid.default_epoch()) * 1000)::bigint + 3600000 << 10) \g /dev/null
SELECT drift BETWEEN interval '59 minutes' AND interval '61 minutes' AS an_hour FROM instaid.shards WHERE shard_id = 5;
-- a value that is no tick is not shown as one
SELECT setval('regress_5.table_id_seq', 9223372036854775807) \g /dev/null
SELECT last_id, drift FROM instaid.shards WHERE shard_id = 5;

-- a renamed schema is the same shard
ALTER SCHEMA "Regress ""6""" RENAME TO regress_6;
ALTER SEQUENCE regress_6."Odd's seq" RENAME TO renamed_seq;
SELECT schema_name, sequence FROM instaid.shards WHERE shard_id = 6;
SELECT instaid.extract_shard_id(regress_6.next_id()), count(*) FROM regress_6.next_ids(3);

-- a schema that exists, made by somebody else
CREATE SCHEMA regress_7;
SELECT instaid.create_shard('regress_7', 8191, sequence_name => 'ids');
SELECT instaid.extract_shard_id(regress_7.next_id());

-- one shard ID, one schema
SELECT try($$SELECT instaid.create_shard('regress_8', 5)$$);
-- one schema, one next_id()
SELECT try($$SELECT instaid.create_shard('regress_5', 8)$$);
CREATE SCHEMA regress_9;
CREATE FUNCTION regress_9.next_id(OUT result bigint) LANGUAGE sql AS 'SELECT 1::bigint';
SELECT try($$SELECT instaid.create_shard('regress_9', 9)$$);
ALTER FUNCTION regress_9.next_id() RENAME TO old_next_id;
SELECT instaid.create_shard('regress_9', 9);
CREATE SCHEMA regress_10;
CREATE SEQUENCE regress_10.table_id_seq;
SELECT try($$SELECT instaid.create_shard('regress_10', 10)$$);
-- ranges
SELECT try($$SELECT instaid.create_shard('regress_8', 8192)$$);
SELECT try($$SELECT instaid.create_shard('regress_8', -1)$$);
SELECT try($$SELECT instaid.create_shard(NULL, 8)$$);
SELECT try($$SELECT instaid.create_shard('regress_8', NULL)$$);
SELECT try($$SELECT instaid.create_shard('regress_8', 8, NULL)$$);
SELECT try($$SELECT instaid.create_shard('regress_8', 8, '-infinity')$$);
SELECT try($$SELECT instaid.create_shard('regress_8', 8, 'infinity')$$);
SELECT try($$SELECT instaid.create_shard('regress_8', 8, '2100-01-01 UTC')$$);
SELECT try($$SELECT instaid.create_shard('regress_8', 8, '1970-01-01 UTC')$$);
-- nothing of a refused shard is left
SELECT count(*) FROM pg_namespace WHERE nspname = 'regress_8';
SELECT schema_name, shard_id FROM instaid.shards ORDER BY shard_id;

-- under five years to its end: it is made, with a warning
SET client_min_messages = warning;
BEGIN;
\set VERBOSITY terse
SELECT instaid.create_shard('regress_8', 8,
    date_trunc('year', now() + interval '1 year') - ((1::bigint << 40) - 1) * interval '1 ms');
\set VERBOSITY default
ROLLBACK;
RESET client_min_messages;

-- a wrapper written by hand is a shard if it has the form of one
CREATE SCHEMA regress_11;
CREATE SEQUENCE regress_11.s;
CREATE FUNCTION regress_11.next_id() RETURNS bigint LANGUAGE sql
    BEGIN ATOMIC SELECT instaid.next_id('regress_11.s', 5 + 6); END;
SELECT schema_name, shard_id, epoch, sequence FROM instaid.shards WHERE shard_id = 11;
SELECT try($$SELECT instaid.create_shard('regress_8', 11)$$);
-- and none if it has not
CREATE SCHEMA regress_12;
CREATE FUNCTION regress_12.next_id() RETURNS bigint LANGUAGE sql
    RETURN instaid.next_id('regress_11.s', (random() * 5)::integer);
CREATE FUNCTION regress_12.next_id(integer) RETURNS bigint LANGUAGE sql
    RETURN instaid.next_id('regress_11.s', 12);
CREATE SCHEMA regress_13;
CREATE FUNCTION regress_13.next_id() RETURNS bigint LANGUAGE sql
    BEGIN ATOMIC SELECT 1; SELECT instaid.next_id('regress_11.s', 13); END;
CREATE SCHEMA regress_14;
CREATE FUNCTION regress_14.next_id() RETURNS bigint LANGUAGE sql RETURN NULL::bigint;
CREATE SCHEMA regress_15;
CREATE TABLE regress_15.t (id bigint);
CREATE FUNCTION regress_15.next_id() RETURNS bigint LANGUAGE sql
    BEGIN ATOMIC INSERT INTO regress_15.t SELECT 1 RETURNING instaid.next_id('regress_11.s', 15); END;
SELECT schema_name, shard_id FROM instaid.shards ORDER BY shard_id;

-- an ordinary role with CREATE on the database
SELECT current_database() AS db \gset
CREATE ROLE regress_instaid_dev;
SET ROLE regress_instaid_dev;
SELECT try($$SELECT instaid.create_shard('regress_8', 8)$$);
RESET ROLE;
GRANT CREATE ON DATABASE :db TO regress_instaid_dev;
SET ROLE regress_instaid_dev;
SELECT instaid.create_shard('regress_8', 8);
SELECT instaid.extract_shard_id(regress_8.next_id());
-- what it may not read is null for it
SELECT schema_name, last_id IS NULL AS hidden, drift FROM instaid.shards WHERE shard_id IN (6, 8) ORDER BY shard_id;
RESET ROLE;

-- a dropped schema is no shard, and its ID free again
SET client_min_messages = warning;
DROP SCHEMA regress_5, regress_6, regress_7, regress_8, regress_9, regress_10,
    regress_11, regress_12, regress_13, regress_14, regress_15 CASCADE;
SELECT * FROM instaid.shards;
REVOKE CREATE ON DATABASE :db FROM regress_instaid_dev;
DROP ROLE regress_instaid_dev;
