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
              (extract(epoch FROM now()) * 1000)::bigint + 3600000 << 10) \g /dev/null
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
-- one schema, one shard, one next_id()
SELECT try($$SELECT instaid.create_shard('regress_5', 8)$$);
CREATE SCHEMA regress_9;
CREATE FUNCTION regress_9.next_id(OUT result bigint) LANGUAGE sql AS 'SELECT 1::bigint';
SELECT try($$SELECT instaid.create_shard('regress_9', 9)$$);
ALTER ROUTINE regress_9.next_id() RENAME TO old_next_id;
CREATE PROCEDURE regress_9.next_ids() LANGUAGE sql AS '';
SELECT try($$SELECT instaid.create_shard('regress_9', 9)$$);
ALTER ROUTINE regress_9.next_ids() RENAME TO old_next_ids;
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

-- a wrapper written by hand is a shard if it calls the generator with constants
CREATE SCHEMA regress_11;
CREATE SEQUENCE regress_11.s;
CREATE FUNCTION regress_11.next_id() RETURNS bigint LANGUAGE sql
    BEGIN ATOMIC SELECT instaid.next_id('regress_11.s', 11); END;
SELECT schema_name, shard_id, epoch, sequence FROM instaid.shards WHERE shard_id = 11;
SELECT try($$SELECT instaid.create_shard('regress_8', 11)$$);
-- a temporary function is not
CREATE FUNCTION pg_temp.next_id() RETURNS bigint LANGUAGE sql RETURN instaid.next_id('regress_11.s', 14);
-- and none if it does anything else; nothing of it is run to find out
CREATE SCHEMA regress_12;
CREATE TABLE regress_12.t (id bigint);
CREATE FUNCTION regress_12.mine() RETURNS integer LANGUAGE plpgsql IMMUTABLE
    AS $$ BEGIN RAISE EXCEPTION 'this runs with the rights of whoever looks'; END $$;
SELECT format('CREATE SCHEMA regress_12_%s', n),
    format('CREATE FUNCTION regress_12_%s.next_id() RETURNS bigint LANGUAGE sql %s', n, body)
FROM (VALUES
    (1, $$RETURN instaid.next_id('regress_11.s', (random() * 5)::integer)$$),
    (2, $$RETURN regress_12.mine()$$),
    (3, $$RETURN instaid.next_id('regress_11.s', regress_12.mine())$$),
    (4, $$RETURN instaid.next_id('regress_12.t', 12)$$),
    (5, $$RETURN instaid.next_id('regress_11.s', 9000)$$),
    (6, $$RETURN instaid.next_id('regress_11.s', 12, 'infinity')$$),
    (7, $$RETURN instaid.next_id('regress_11.s', 12, '294276-01-01 UTC')$$),
    (8, $$RETURN instaid.next_id('regress_11.s', NULL)$$),
    (9, $$RETURN instaid.next_id(4::oid, 12)$$),
    (10, $$RETURN 12::bigint$$),
    (11, $$RETURN regress_11.next_id()$$),
    (12, $$BEGIN ATOMIC SELECT 1; SELECT instaid.next_id('regress_11.s', 12); END$$),
    (13, $$BEGIN ATOMIC INSERT INTO regress_12.t SELECT 1 RETURNING instaid.next_id('regress_11.s', 12); END$$),
    (14, $$BEGIN ATOMIC SELECT instaid.next_id('regress_11.s', 12) FROM regress_12.t LIMIT 1; END$$),
    (15, $$AS 'SELECT instaid.next_id(''regress_11.s'', 12)'$$)) AS v (n, body) \gexec
CREATE FUNCTION regress_12.next_id(integer) RETURNS bigint LANGUAGE sql
    RETURN instaid.next_id('regress_11.s', 12);
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
SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace WHERE nspname LIKE 'regress\_%' ORDER BY oid DESC \gexec
SELECT * FROM instaid.shards;
REVOKE CREATE ON DATABASE :db FROM regress_instaid_dev;
DROP ROLE regress_instaid_dev;
