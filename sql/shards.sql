-- create_shard(), create_shards(), what they refuse, and the view of shards.
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
    last_issued_at BETWEEN now() - interval '1 minute' AND now() + interval '2 s' AS of_now,
    drift = '0' AS of_the_clock
FROM instaid.shards AS s, instaid.decode(last_id, s.epoch) AS d WHERE s.shard_id = 6;

-- drift is the time by which a sequence is ahead of the clock
SELECT setval('regress_5.table_id_seq',
              (extract(epoch FROM now()) * 1000)::bigint + 3600000 << 10) \g /dev/null
SELECT drift BETWEEN interval '59 minutes' AND interval '61 minutes' AS an_hour FROM instaid.shards WHERE shard_id = 5;
-- of the sequence that is furthest ahead, also if the shard's own sequence has no ID yet
SELECT instaid.create_shard('regress_own', 7);
CREATE SEQUENCE regress_own.likes_id_seq;
CREATE TABLE regress_own.likes (id bigint DEFAULT regress_own.next_id('regress_own.likes_id_seq'::regclass));
SELECT last_id, last_issued_at, drift, drift_sequence FROM instaid.shards WHERE shard_id = 7;
SELECT instaid.advance_past('regress_own.likes_id_seq', instaid.make_id(now() + interval '1 h', 7, 0), instaid.default_epoch());
SELECT last_id, last_issued_at, drift BETWEEN interval '59 minutes' AND interval '61 minutes' AS an_hour, drift_sequence
FROM instaid.shards WHERE shard_id = 7;
SELECT regress_own.next_id() IS NOT NULL AS made;
SELECT last_issued_at < now() + interval '2 s' AS of_now, sequence, drift_sequence FROM instaid.shards WHERE shard_id = 7;
SELECT instaid.advance_past('regress_own.table_id_seq', instaid.make_id(now() + interval '2 h', 7, 0), instaid.default_epoch());
SELECT drift > interval '119 minutes' AS two_hours, drift_sequence FROM instaid.shards WHERE shard_id = 7;
DROP SCHEMA regress_own CASCADE;
-- a value that is no tick is not shown as an ID
SELECT setval('regress_5.table_id_seq', 9223372036854775807) \g /dev/null
SELECT last_id, drift FROM instaid.shards WHERE shard_id = 5;
-- a tick past the last ID of the epoch is not shown as an ID, either
SELECT setval('regress_5.table_id_seq', 9007199254740991) \g /dev/null
SELECT last_id, drift FROM instaid.shards WHERE shard_id = 5;

-- PostgreSQL can describe what a shard depends on, and the lock of a shard ID
BEGIN;
SELECT instaid.create_shard('regress_described', 1234);
SELECT count(*) > 0 AS described FROM pg_depend
WHERE pg_describe_object(refclassid, refobjid, refobjsubid) <> '';
SELECT count(*) AS undescribed FROM pg_locks
WHERE locktype = 'object' AND pg_describe_object(classid, objid, objsubid) IS NULL
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
ROLLBACK;

-- a renamed schema is the same shard
ALTER SCHEMA "Regress ""6""" RENAME TO regress_6;
ALTER SEQUENCE regress_6."Odd's seq" RENAME TO renamed_seq;
SELECT schema_name, sequence FROM instaid.shards WHERE shard_id = 6;
SELECT instaid.extract_shard_id(regress_6.next_id()), count(*) FROM regress_6.next_ids(3);

-- a schema that exists already can become a shard
CREATE SCHEMA regress_7;
SELECT instaid.create_shard('regress_7', 8191, sequence_name => 'ids');
SELECT instaid.extract_shard_id(regress_7.next_id());

-- a schema has one next_id()
CREATE SCHEMA regress_9;
CREATE FUNCTION regress_9.next_id(OUT result bigint) LANGUAGE sql AS 'SELECT 1::bigint';
SELECT try($$SELECT instaid.create_shard('regress_9', 9)$$);
ALTER ROUTINE regress_9.next_id() RENAME TO old_next_id;
CREATE PROCEDURE regress_9.next_ids(integer) LANGUAGE sql AS '';
SELECT try($$SELECT instaid.create_shard('regress_9', 9)$$);
ALTER ROUTINE regress_9.next_ids(integer) RENAME TO old_next_ids;
SELECT instaid.create_shard('regress_9', 9);
CREATE SCHEMA regress_10;
CREATE SEQUENCE regress_10.table_id_seq;
SELECT try($$SELECT instaid.create_shard('regress_10', 10)$$);
-- the first IDs of a new shard have the time of the clock
SELECT instaid.create_shard('regress_again', 40);
CREATE TABLE regress_again.photos (id bigint PRIMARY KEY DEFAULT regress_again.next_id());
INSERT INTO regress_again.photos SELECT FROM generate_series(1, 2);
SELECT count(*) FROM regress_again.photos WHERE instaid.created_between(id, now() - interval '1 day', now());
-- a shard that is dropped and created again at once repeats no ID
SELECT max(id) AS last FROM regress_again.photos \gset
SET client_min_messages = warning;
DROP SCHEMA regress_again CASCADE;
SELECT instaid.create_shard('regress_again', 40);
SELECT regress_again.next_id() > :last AS above;
DROP SCHEMA regress_again CASCADE;
RESET client_min_messages;
-- arguments that are out of range
SELECT try($$SELECT instaid.create_shard('regress_8', 8, '-infinity')$$,
    $$SELECT instaid.create_shard('regress_8', 8, '2100-01-01 UTC')$$);
-- nothing of a refused shard is left
SELECT count(*) FROM pg_namespace WHERE nspname = 'regress_8';
SELECT schema_name, shard_id FROM instaid.shards ORDER BY shard_id;

-- a shard that ends in less than five years is created with a warning
SET client_min_messages = warning;
BEGIN;
\set VERBOSITY terse
SELECT instaid.create_shard('regress_8', 8,
    date_trunc('year', now() + interval '1 year') - ((1::bigint << 40) - 1) * interval '1 ms');
-- create_shards() says it once, for the first shard that is missing
SELECT epoch AS ending FROM instaid.shards WHERE schema_name = 'regress_8' \gset
CALL instaid.create_shards('regress_w%s', 2000, 2001, :'ending');
CALL instaid.create_shards('regress_w%s', 2000, 2003, :'ending');
\set VERBOSITY default
ROLLBACK;
RESET client_min_messages;
-- and it refuses an epoch that is over, whatever has it already
BEGIN;
CREATE SCHEMA regress_w2000;
CREATE SEQUENCE regress_w2000.ids;
CREATE FUNCTION regress_w2000.next_ids(count integer, sequence regclass DEFAULT 'regress_w2000.ids') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 2000, epoch 315532800000';
SELECT try($$CALL instaid.create_shards('regress_w%s', 2000, 2001, '1980-01-01 UTC')$$);
ROLLBACK;

-- create_shards() commits after each 512 shards.  A second call creates those that are
-- missing.
CALL instaid.create_shards('regress_m%s', 100, 700);
SELECT count(*), min(shard_id), max(shard_id), count(DISTINCT sequence) FROM instaid.shards WHERE schema_name ~ '^regress_m';
SELECT instaid.extract_shard_id(regress_m345.next_id());
SET client_min_messages = warning;
DROP SCHEMA regress_m345, regress_m346, regress_m700 CASCADE;
RESET client_min_messages;
CALL instaid.create_shards('regress_m%s', 100, 700);
SELECT count(*) FROM instaid.shards WHERE schema_name ~ '^regress_m';
-- ... and names those of other roles, which others can change
ALTER FUNCTION regress_m345.next_ids(integer, regclass) OWNER TO pg_monitor;
CALL instaid.create_shards('regress_m%s', 340, 350);
-- in a transaction block, create_shards() creates 512 shards at most
BEGIN;
CALL instaid.create_shards('regress_n%s', 1000, 1511);
ROLLBACK;
BEGIN;
CALL instaid.create_shards('regress_n%s', 1000, 1512);
ROLLBACK;
SELECT count(*) FROM pg_namespace WHERE nspname ~ '^regress_n';
-- what create_shards() refuses
\set SHOW_CONTEXT never
CALL instaid.create_shards('regress_o%s', 99, 101);
CALL instaid.create_shards('regress_m%s', 100, 101, '2020-01-01 UTC');
CALL instaid.create_shards('pg_o%s', 99, 99);
CALL instaid.create_shards('regress_one', 2000, 2001);
CALL instaid.create_shards('regress_one', 2000, 2000);
CALL instaid.create_shards('regress_%s_%s', 2000, 2001);
CALL instaid.create_shards('regress_%2$s', 2000, 2001);
CALL instaid.create_shards('regress_%100000000s', 2000, 2001);
SELECT try($$CALL instaid.create_shards('regress_%s', 5, 2147483647)$$);
CALL instaid.create_shards(repeat('x', 61) || '%s', 100, 100);
CALL instaid.create_shards('regress_o%s', 8000, 8192);
CALL instaid.create_shards('regress_o%s', 10, 9);
CALL instaid.create_shards('regress_o%s', NULL, 9);
SELECT schema_name FROM instaid.shards WHERE schema_name !~ '^regress_(m|\d)';
SET client_min_messages = warning;
DO $$
DECLARE schema regnamespace;
BEGIN
    FOR schema IN SELECT oid FROM pg_namespace WHERE nspname ~ '^regress_m' LOOP
        EXECUTE format('DROP SCHEMA %s CASCADE', schema);
    END LOOP;
END $$;
RESET client_min_messages;

\set SHOW_CONTEXT errors
-- names, and an epoch, that are refused
SELECT try($$SELECT instaid.create_shard('pg_regress', 8)$$,
    $$SELECT instaid.create_shard('regress_8', 8, sequence_name => repeat('x', 64))$$);
SELECT try(format('SELECT instaid.' || call, repeat('x', 64)))
FROM unnest(ARRAY['freeze_shard(%L)', 'thaw_shard(%L)']) AS call;

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
-- columns that the role has no right to read are null
SELECT schema_name, last_id IS NULL AS hidden, drift IS NULL AS and_drift FROM instaid.shards WHERE shard_id IN (6, 8) ORDER BY shard_id;
RESET ROLE;

-- a superuser cannot create a shard in a schema whose owner could put other functions there
GRANT CREATE ON DATABASE :db TO regress_instaid_dev;
SET ROLE regress_instaid_dev;
CREATE SCHEMA regress_lure;
-- a role cannot lock a shard ID by naming its temporary schema
CREATE TEMPORARY TABLE mine ();
SELECT nspname AS temporary FROM pg_namespace WHERE oid = pg_my_temp_schema() \gset
\set VERBOSITY sqlstate
SELECT instaid._lock_shard_id(:'temporary', 55);
\set VERBOSITY default
RESET ROLE;
SELECT try($$SELECT instaid.create_shard('regress_lure', 55)$$);
\set SHOW_CONTEXT never
ALTER SCHEMA regress_lure RENAME TO regress_lur55;
CALL instaid.create_shards('regress_lur%s', 55, 55);
\set SHOW_CONTEXT errors
SET ROLE regress_instaid_dev;
SELECT instaid.create_shard('regress_lur55', 55);
DROP TABLE mine;
RESET ROLE;

-- after its schema is dropped, a shard is not listed any more
SET client_min_messages = warning;
SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace WHERE nspname LIKE 'regress\_%' ORDER BY oid DESC \gexec
SELECT * FROM instaid.shards;
REVOKE CREATE ON DATABASE :db FROM regress_instaid_dev;
DROP ROLE regress_instaid_dev;
