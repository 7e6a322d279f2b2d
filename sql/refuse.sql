-- What next_id() refuses: sequences that cannot serve, values out of range.
CREATE SCHEMA regress_r;
SET search_path = regress_r, public;
SET timezone = 'UTC';
SET datestyle = 'ISO';

-- each is refused with the statement that mends it, and the statement does
CREATE SEQUENCE an_integer AS integer;
CREATE SEQUENCE by_two INCREMENT 2;
CREATE SEQUENCE downwards INCREMENT -1;
CREATE SEQUENCE too_short MAXVALUE 9007199254740990;
CREATE SEQUENCE "Round" CYCLE;
SELECT try($$SELECT instaid.next_id('an_integer', 5)$$);
SELECT try($$SELECT instaid.next_id('by_two', 5)$$);
SELECT try($$SELECT instaid.next_id('downwards', 5)$$);
SELECT try($$SELECT instaid.next_id('too_short', 5)$$);
SELECT try($$SELECT instaid.next_id('"Round"', 5)$$);
SELECT try($$SELECT * FROM instaid.next_ids('"Round"', 5, 10)$$);
SELECT format('ALTER SEQUENCE %I AS bigint INCREMENT BY 1 NO MAXVALUE NO CYCLE', sequencename)
FROM pg_sequences WHERE schemaname = 'regress_r' \gexec
SELECT sequencename, instaid.extract_shard_id(instaid.next_id(quote_ident(sequencename)::regclass, 5))
FROM pg_sequences WHERE schemaname = 'regress_r' ORDER BY sequencename COLLATE "C";

-- what is not a sequence
CREATE TABLE a_table (id bigint);
CREATE VIEW a_view AS SELECT 1 AS id;
SELECT try($$SELECT instaid.next_id('a_table', 5)$$);
SELECT try($$SELECT instaid.next_id('a_view', 5)$$);
SELECT try($$SELECT instaid.next_id(4::oid::regclass, 5)$$);

-- a temporary one serves its own session, also in a read-only transaction
CREATE TEMPORARY SEQUENCE mine;
SELECT instaid.extract_shard_id(instaid.next_id('mine', 5)) FROM generate_series(1, 2);
BEGIN READ ONLY;
SELECT instaid.extract_shard_id(instaid.next_id('mine', 5));
COMMIT;
-- an unlogged one serves all
CREATE UNLOGGED TABLE unlogged (id bigint GENERATED ALWAYS AS IDENTITY);
SELECT instaid.extract_shard_id(instaid.next_id('unlogged_id_seq', 5)) FROM generate_series(1, 2);

-- arguments
CREATE SEQUENCE s;
SELECT try($$SELECT instaid.next_id('s', 8192)$$);
SELECT try($$SELECT instaid.next_id('s', -1)$$);
SELECT try($$SELECT * FROM instaid.next_ids('s', 8192, 1)$$);
SELECT try($$SELECT * FROM instaid.next_ids('s', 5, 0)$$);
SELECT try($$SELECT * FROM instaid.next_ids('s', 5, 1000001)$$);
SELECT try($$SELECT instaid.next_id('s', 5, 'infinity')$$);
SELECT try($$SELECT instaid.next_id('s', 5, '-infinity')$$);
SELECT try($$SELECT * FROM instaid.next_ids('s', 5, 1, 'infinity')$$);

-- an epoch to come, and one that is over
SELECT try($$SELECT instaid.next_id('s', 5, '2100-01-01 UTC')$$);
SELECT try($$SELECT instaid.next_id('s', 5, '1970-01-01 UTC')$$);
SELECT try($$SELECT instaid.next_id('s', 5, '4713-01-01 BC UTC')$$);
SELECT try($$SELECT instaid.next_id('s', 5, '294276-12-31 UTC')$$);

SELECT try($$SELECT * FROM instaid.next_ids('s', 5, 1, '2020-01-01 00:00:00.000001 UTC')$$);
SELECT try($$SELECT instaid.last_id('s', 5, '2020-01-01 00:00:00.000001 UTC')$$);
SELECT try($$SELECT instaid.advance_past('s', 5, '2020-01-01 00:00:00.000001 UTC')$$);
SELECT try($$SELECT instaid.advance_past('s', 5, '2100-01-01 UTC')$$);
-- the epoch of a sequence that nothing was taken of, and of a tick before it
CREATE SEQUENCE plain;
SELECT instaid.last_id('plain', 5), l.* FROM instaid._last_tick('plain') AS l;
SELECT nextval('plain');
SELECT instaid.last_id('plain', 5), l.* FROM instaid._last_tick('plain') AS l;

-- the last ID of an epoch is given, the next is not, nor does it wrap
SELECT (1314220021721 + (1::bigint << 40)) << 10 AS end \gset
SELECT setval('s', :end - 3) - :end AS behind;
SET client_min_messages = error;
SELECT instaid.next_id('s', 0), instaid.next_id('s', 8191);
RESET client_min_messages;
SELECT try($$SELECT instaid.next_id('s', 0)$$);
SELECT try($$SELECT * FROM instaid.next_ids('s', 0, 10)$$);
SELECT instaid.last_id('s', 0) IS NULL AS none, instaid.extract_timestamp(instaid.last_id('s', 0, '2020-01-01 UTC'), '2020-01-01 UTC') AS another;
-- nor is one past the last tick
SELECT setval('s', 9007199254740990);
SET client_min_messages = error;
SELECT instaid.next_id('s', 8191, '2240-01-01 UTC');
RESET client_min_messages;
SELECT try($$SELECT instaid.next_id('s', 0, '2240-01-01 UTC')$$);
SELECT try($$SELECT * FROM instaid.next_ids('s', 0, 10, '2240-01-01 UTC')$$);
SELECT last_value FROM s;
SELECT setval('s', 9223372036854775807);
SELECT try($$SELECT instaid.next_id('s', 0)$$);
SELECT setval('s', 1, false);
SELECT instaid.extract_timestamp(instaid.next_id('s', 0)) <= clock_timestamp() AS works_again;
-- a batch ends with the epoch, too
SELECT setval('s', :end - 4) - :end AS behind;
SET client_min_messages = error;
SELECT count(*) FROM instaid.next_ids('s', 0, 3);
SELECT try($$SELECT * FROM instaid.next_ids('s', 0, 1)$$);
RESET client_min_messages;

SET client_min_messages = warning;
DROP SCHEMA regress_r CASCADE;
