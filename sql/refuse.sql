-- next_id() refuses sequences that cannot serve, and values out of range.
CREATE SCHEMA regress_r;
SET search_path = regress_r, public;
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- the hint has the statement that repairs the sequence, unless it has a range of its
-- own; the statement repairs all of these
CREATE SEQUENCE an_integer AS integer;
CREATE SEQUENCE by_two INCREMENT 2;
CREATE SEQUENCE downwards INCREMENT -1;
CREATE SEQUENCE too_short MAXVALUE 9007199254740990;
CREATE SEQUENCE "Round" CYCLE;
SELECT try($$SELECT instaid.next_id('an_integer', 5)$$,
    $$SELECT instaid.next_id('by_two', 5)$$,
    $$SELECT instaid.next_id('downwards', 5)$$,
    $$SELECT instaid.next_id('too_short', 5)$$,
    $$SELECT instaid.next_id('"Round"', 5)$$);
SELECT format('ALTER SEQUENCE %I AS bigint INCREMENT BY 1 NO MAXVALUE NO CYCLE', sequencename)
FROM pg_sequences WHERE schemaname = 'regress_r' \gexec
SELECT sequencename, instaid.extract_shard_id(instaid.next_id(quote_ident(sequencename)::regclass, 5))
FROM pg_sequences WHERE schemaname = 'regress_r' ORDER BY sequencename COLLATE "C";

-- The error says that the sequence has a range of its own, or is frozen, and no hint says to
-- widen it.  Citus gives each worker's copy of a sequence a range by its group.
CREATE SEQUENCE citus_1 MINVALUE 281474976710657 MAXVALUE 562949953421313;
SELECT try($$SELECT instaid.next_id('citus_1', 5)$$);
SELECT format('CREATE SEQUENCE citus_%s MINVALUE %s MAXVALUE %s', g, g * (1::bigint << 48) + 1, (g + 1) * (1::bigint << 48) + 1)
FROM unnest(ARRAY[2, 3, 6, 7, 8, 31, 32, 100, 32766]) AS g \gexec
CREATE SEQUENCE citus_integer AS integer MINVALUE 268435457 MAXVALUE 536870913;
CREATE SEQUENCE from_a_million MINVALUE 1000000;
CREATE SEQUENCE an_integer_to_100000 AS integer MAXVALUE 100000;
CREATE SEQUENCE down_from_50 INCREMENT -1 MAXVALUE 50;
-- a sequence at its own MAXVALUE is used up, as a frozen one is
CREATE SEQUENCE used_up MAXVALUE 3;
SELECT nextval('used_up') FROM generate_series(1, 3);
SELECT last_value FROM instaid._sequence_state('used_up');
SELECT try($$SELECT instaid.next_id('used_up', 5)$$);
SELECT count(*), count(*) FILTER (WHERE e[1] ~ '^55000: sequence .* cannot serve' AND e[2] ~ 'range of its own' AND e[3] !~ 'ALTER') AS told,
       count(*) FILTER (WHERE e[3] ~ 'NO M(IN|AX)VALUE') AS widened
FROM pg_sequences, LATERAL (SELECT array_agg(l) AS e FROM try(format('SELECT instaid.next_id(%L, 5)', sequencename)) AS l) AS t
WHERE schemaname = 'regress_r' AND sequencename ~ '^(citus|from_a|used_up|an_integer_to|down_from)';
-- a negative MINVALUE does no harm
CREATE SEQUENCE from_below MINVALUE -1000 START -5;
SELECT instaid.extract_timestamp(instaid.next_id('from_below', 5)) <= clock_timestamp() AS works;
-- a shard that was frozen before its first ID has no last ID
SELECT instaid.create_shard('regress_unused', 78);
SELECT instaid.freeze_shard('regress_unused');
SELECT frozen FROM instaid.shards WHERE schema_name = 'regress_unused';
SELECT regexp_replace(try, '\d{16}', '...') AS try FROM try($$SELECT regress_unused.next_id()$$);
SELECT instaid.thaw_shard('regress_unused');
SELECT instaid.extract_timestamp(regress_unused.next_id()) <= clock_timestamp() + interval '1064 ms' AS works;

-- objects that are not sequences
CREATE TABLE a_table (id bigint);
CREATE VIEW a_view AS SELECT 1 AS id;
SELECT try($$SELECT instaid.next_id('a_table', 5)$$,
    $$SELECT instaid.next_id('a_view', 5)$$,
    $$SELECT instaid.next_id(4::oid::regclass, 5)$$);

-- a temporary sequence serves its own session, also in a read-only transaction
CREATE TEMPORARY SEQUENCE mine;
SELECT instaid.extract_shard_id(instaid.next_id('mine', 5)) FROM generate_series(1, 2);
BEGIN READ ONLY;
SELECT instaid.extract_shard_id(instaid.next_id('mine', 5));
COMMIT;
-- an unlogged sequence serves all sessions
CREATE UNLOGGED TABLE unlogged (id bigint GENERATED ALWAYS AS IDENTITY);
SELECT instaid.extract_shard_id(instaid.next_id('unlogged_id_seq', 5)) FROM generate_series(1, 2);

-- arguments
SELECT instaid.create_shard('regress_r', 0, sequence_name => 's');
SELECT try($$SELECT instaid.next_id('s', 8192)$$,
    $$SELECT instaid.next_id('s', -1)$$,
    $$SELECT * FROM next_ids(0)$$,
    $$SELECT * FROM next_ids(1000001)$$,
    $$SELECT instaid.next_id('s', 5, 'infinity')$$,
    $$SELECT instaid.next_id('s', 5, '-infinity')$$);

-- an epoch in the future, and one whose IDs have ended
SELECT try($$SELECT instaid.next_id('s', 5, '2100-01-01 UTC')$$,
    $$SELECT instaid.next_id('s', 5, '1970-01-01 UTC')$$,
    $$SELECT instaid.next_id('s', 5, '4713-01-01 BC UTC')$$,
    $$SELECT instaid.next_id('s', 5, '294276-12-31 UTC')$$);

SELECT try($$SELECT instaid.next_id('s', 5, '2020-01-01 00:00:00.000001 UTC')$$,
    $$SELECT instaid._last_id('s', 5, '2020-01-01 00:00:00.000001 UTC')$$,
    $$SELECT instaid.advance_past('s', 5, '2020-01-01 00:00:00.000001 UTC')$$,
    $$SELECT instaid.advance_past('s', 5, '2100-01-01 UTC')$$);
-- _last_id() of an unused sequence, and of a tick before the epoch
CREATE SEQUENCE plain;
SELECT instaid._last_id('plain', 5), l.* FROM instaid._sequence_state('plain') AS l;
SELECT nextval('plain');
SELECT instaid._last_id('plain', 5), l.* FROM instaid._sequence_state('plain') AS l;

-- the last ID of an epoch is issued; after it, a call fails, and IDs do not wrap
SELECT (1314220021721 + (1::bigint << 40)) << 10 AS end \gset
SELECT setval('s', :end - 3) - :end AS behind;
SET client_min_messages = error;
SELECT instaid.next_id('s', 0), instaid.next_id('s', 8191);
RESET client_min_messages;
SELECT try($$SELECT instaid.next_id('s', 0)$$,
    $$SELECT * FROM next_ids(10)$$);
SELECT instaid._last_id('s', 0) IS NULL AS none, instaid.extract_timestamp(instaid._last_id('s', 0, '2020-01-01 UTC'), '2020-01-01 UTC') AS another;
-- a call also fails after the last tick
SELECT setval('s', 9007199254740990);
SET client_min_messages = error;
SELECT instaid.next_id('s', 8191, '2240-01-01 UTC');
RESET client_min_messages;
SELECT try($$SELECT instaid.next_id('s', 0, '2240-01-01 UTC')$$);
SELECT last_value FROM s;
SELECT setval('s', 9223372036854775807);
SELECT try($$SELECT instaid.next_id('s', 0)$$);
SELECT setval('s', 1, false);
SELECT instaid.extract_timestamp(instaid.next_id('s', 0)) <= clock_timestamp() AS works_again;
-- a batch can take the last IDs of an epoch, and no more
SELECT setval('s', :end - 4) - :end AS behind;
SET client_min_messages = error;
SELECT count(*) FROM next_ids(3);
SELECT try($$SELECT * FROM next_ids(1)$$);
RESET client_min_messages;

SET client_min_messages = warning;
DROP SCHEMA regress_r, regress_unused CASCADE;

-- when no shard ID is free, the HINT names none
BEGIN;
SELECT instaid.create_shard('refuse_5', 5);
CREATE OR REPLACE FUNCTION instaid._free_shard_id(from_top boolean) RETURNS integer
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED RETURN NULL::integer;
SELECT try($$SELECT instaid.create_shard('refuse_6', 5)$$);
ROLLBACK;

-- the settings, and one that does not exist
LOAD 'instaid';
SELECT name, setting, unit, context, min_val FROM pg_settings WHERE name LIKE 'instaid.%';
SET instaid.no_such_setting = 1;
