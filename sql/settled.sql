-- settled_id() in one session.  test/specs/settled.spec and test/t/id_readers.pl
-- test it with several.
SET timezone = 'UTC';
SELECT instaid.create_shard('regress_s', 5);
CREATE TABLE regress_s.photos (id bigint PRIMARY KEY DEFAULT regress_s.next_id(), n integer);

-- while the shard has no ID, the result is below every ID
SELECT instaid.settled_id('regress_s') AS settled \gset
INSERT INTO regress_s.photos (n) VALUES (1), (2);
SELECT min(id) > :settled AS is_below FROM regress_s.photos;
SELECT instaid.settled_id('regress_s') = max(id) AS is_last FROM regress_s.photos;
-- the result is the last ID, even if it was rolled back, or taken by nextval()
BEGIN;
SAVEPOINT s;
SELECT count(*) FROM regress_s.next_ids(10);
ROLLBACK;
SELECT instaid.settled_id('regress_s') = instaid._last_id('regress_s.table_id_seq', 5) AS is_last;
SELECT nextval('regress_s.table_id_seq') AS tick \gset
SELECT instaid.settled_id('regress_s') & 1023 = :tick & 1023 AS is_last;

-- the ways to call it
SELECT instaid.settled_id('regress_s') AS settled \gset
SELECT form, settled = :settled AS same FROM (VALUES
    ('schema', instaid.settled_id('regress_s')),
    ('schema, wait by name', instaid.settled_id('regress_s', wait => true)),
    ('schema by name', instaid.settled_id(schema_name => 'regress_s', wait => false)),
    ('sequence', instaid.settled_id('regress_s', 'regress_s.table_id_seq')),
    ('sequence, wait', instaid.settled_id('regress_s', 'regress_s.table_id_seq', false)),
    ('sequence by name', instaid.settled_id('regress_s', sequence => 'regress_s.table_id_seq', wait => 'no')),
    ('the default', instaid.settled_id('regress_s', NULL)))
    AS call (form, settled);
SELECT instaid.settled_id(NULL) IS NULL AS nothing, instaid.settled_id('regress_s', wait => NULL) IS NULL AS nothing;
SELECT try($$SELECT instaid.settled_id('regress_s', '-')$$);

-- the result has the epoch and the ID of the shard
SET client_min_messages = warning;
SELECT instaid.create_shard('Regress "t"', 6, '2020-01-01 UTC');
RESET client_min_messages;
SELECT "Regress ""t""".next_id() AS id \gset
SELECT instaid.settled_id('Regress "t"') = :id AS is_last;
-- but not of a sequence of another shard
SELECT try($$SELECT instaid.settled_id('Regress "t"', 'regress_s.table_id_seq')$$);
-- a sequence that is before the first ID of an epoch, or past the last
CREATE SCHEMA regress_late;
CREATE SEQUENCE regress_late.ids;
CREATE FUNCTION regress_late.next_ids(count integer, sequence regclass DEFAULT 'regress_late.ids') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 7, epoch 7258118400000';
SELECT setval('regress_late.ids', (extract(epoch FROM now()) * 1000)::bigint << 10) > 0 AS set;
SELECT instaid.settled_id('regress_late');
CREATE SCHEMA regress_early;
CREATE SEQUENCE regress_early.ids;
CREATE FUNCTION regress_early.next_ids(count integer, sequence regclass DEFAULT 'regress_early.ids') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 8, epoch -2208988800000';
SELECT setval('regress_early.ids', (extract(epoch FROM now()) * 1000)::bigint << 10) > 0 AS set;
SELECT instaid.settled_id('regress_early') = instaid.make_id('1900-01-01 UTC'::timestamptz + interval '1 ms' * ((1::bigint << 40) - 1), 8, 1023, '1900-01-01 UTC') AS last;
DROP SCHEMA regress_late, regress_early CASCADE;

-- it does not go back when the shard gets a smaller number, whether it is frozen or not
SELECT instaid.create_shard('regress_r', 20);
SELECT count(*) FROM regress_r.next_ids(10);
SELECT instaid.settled_id('regress_r') AS settled \gset
SELECT instaid.renumber_shard('regress_r', 19);
SELECT instaid.settled_id('regress_r') > :settled AS above, instaid.settled_id('regress_r') AS settled \gset r_
SELECT :'r_above' AS above;
SELECT regress_r.next_id() > :r_settled AS above;
SELECT instaid.freeze_shard('regress_r');
SELECT instaid.settled_id('regress_r') AS settled \gset
SELECT instaid.renumber_shard('regress_r', 18);
SELECT instaid.settled_id('regress_r') > :settled AS above, frozen FROM instaid.shards WHERE schema_name = 'regress_r';
SELECT instaid.thaw_shard('regress_r');
SELECT regress_r.next_id() > :settled AS above;
DROP SCHEMA regress_r CASCADE;
-- a frozen shard, and a thawed one
SELECT instaid.freeze_shard('regress_s');
SELECT instaid.settled_id('regress_s') > :settled AS above, instaid.settled_id('regress_s') AS settled \gset
SELECT instaid.settled_id('regress_s') = last_id AS is_last FROM instaid.shards WHERE shard_id = 5;
SELECT instaid.thaw_shard('regress_s');
SELECT instaid.settled_id('regress_s') >= :settled AS not_below;
SELECT regress_s.next_id() > :settled AS above;
-- a frozen shard without an ID
SELECT instaid.create_shard('regress_v', 7);
SELECT instaid.freeze_shard('regress_v');
SELECT instaid.settled_id('regress_v') < instaid.min_id('2020-01-01') AS is_below, last_id FROM instaid.shards WHERE shard_id = 7;
-- ... whose sequence is in another schema
ALTER SEQUENCE regress_v.table_id_seq RENAME TO elsewhere;
ALTER SEQUENCE regress_v.elsewhere SET SCHEMA regress_s;
SELECT instaid.settled_id('regress_v') < instaid.min_id('2020-01-01') AS is_below, last_id FROM instaid.shards WHERE shard_id = 7;

-- a sequence that is ahead of the clock
SELECT instaid.make_id(now() + interval '1 h', 8191, 1023) AS far \gset
SELECT instaid.advance_past('regress_s.table_id_seq', :far, instaid.default_epoch());
SELECT instaid.settled_id('regress_s') >> 23 = :far >> 23 AS there;
-- a sequence that was set back, or to a value that is no tick
SELECT setval('regress_s.table_id_seq', 1);
SELECT instaid.settled_id('regress_s');
ALTER SEQUENCE regress_s.table_id_seq MINVALUE -9223372036854775807;
SELECT setval('regress_s.table_id_seq', -9223372036854775807, false);
SELECT instaid.settled_id('regress_s');
SELECT setval('regress_s.table_id_seq', 9223372036854775807);
SELECT instaid.settled_id('regress_s') = instaid.make_id(instaid.default_epoch() + interval '1 ms' * ((1::bigint << 40) - 1), 5, 1023) AS last;
SELECT setval('regress_s.table_id_seq', 1);

-- settled_id() does not keep its lock, and can be called in a read-only transaction
INSERT INTO regress_s.photos (n) VALUES (3);
BEGIN READ ONLY;
SELECT instaid.settled_id('regress_s') = max(id) AS is_last FROM regress_s.photos;
SELECT mode FROM pg_locks WHERE relation = 'regress_s.table_id_seq'::regclass;
COMMIT;

-- settled_id() fails in a transaction that has locked the sequence: it has taken IDs,
-- read pg_sequences, or altered the sequence
BEGIN;
SELECT regress_s.next_id() > 0 AS taken;
SAVEPOINT s;
SELECT instaid.settled_id('regress_s');
ROLLBACK TO s;
SELECT instaid.settled_id('regress_s', wait => false);
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT nextval('regress_s.table_id_seq') > 0 AS taken;
ROLLBACK TO s;
SELECT try($$SELECT instaid.settled_id('regress_s')$$);
-- another shard has another sequence
SELECT instaid.settled_id('Regress "t"') > 0 AS settled;
ROLLBACK;
BEGIN;
SELECT count(*) > 0 AS has_sequences FROM pg_sequences;
SELECT try($$SELECT instaid.settled_id('regress_s')$$);
ROLLBACK;
BEGIN;
ALTER SEQUENCE regress_s.table_id_seq CACHE 2;
SELECT try($$SELECT instaid.settled_id('regress_s')$$);
ROLLBACK;
-- settled_id() fails with isolation level REPEATABLE READ or SERIALIZABLE
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT instaid.settled_id('regress_s');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT instaid.settled_id('regress_s');
ROLLBACK;

-- the rights that settled_id() needs
CREATE ROLE regress_reader;
CREATE SEQUENCE regress_s.other_seq;
SET ROLE regress_reader;
SELECT try($$SELECT instaid.settled_id('regress_s')$$);
RESET ROLE;
GRANT USAGE ON SCHEMA regress_s TO regress_reader;
SET ROLE regress_reader;
SELECT try($$SELECT instaid.settled_id('regress_s')$$);
RESET ROLE;
GRANT SELECT ON SEQUENCE regress_s.table_id_seq TO regress_reader;
GRANT USAGE ON SEQUENCE regress_s.other_seq TO regress_reader;
SET ROLE regress_reader;
SELECT instaid.settled_id('regress_s') > 0 AS settled;
SELECT instaid.settled_id('regress_s', 'regress_s.other_seq') AS settled;
RESET ROLE;

-- arguments that are refused
SELECT try($$SELECT instaid.settled_id('public')$$,
    $$SELECT instaid.settled_id('no such schema')$$,
    $$SELECT instaid.settled_id('')$$);
SELECT try(format('SELECT instaid.settled_id(%L)', repeat('x', 63)));
SELECT try(format('SELECT instaid.settled_id(%L)', repeat('x', 64)));
SELECT try($$SELECT instaid.settled_id('regress_s.table_id_seq')$$,
    $$SELECT instaid.settled_id('regress_s', 'regress_s.photos')$$,
    $$SELECT instaid.settled_id('regress_s', 1)$$);
CREATE SCHEMA regress_w;
CREATE FUNCTION regress_w.next_ids(count integer, sequence regclass) RETURNS SETOF bigint LANGUAGE sql AS 'SELECT 1::bigint';
SELECT try($$SELECT instaid.settled_id('regress_w')$$);
-- a sequence that cannot serve
CREATE SEQUENCE regress_w.cycle_seq CYCLE;
CREATE SEQUENCE regress_w.short_seq MAXVALUE 9;
CREATE SEQUENCE regress_w.even_seq INCREMENT 2;
SELECT try(format('SELECT instaid.settled_id(''regress_s'', %L)', sequence)) FROM (VALUES
    (1, 'regress_w.cycle_seq'), (2, 'regress_w.short_seq'), (3, 'regress_w.even_seq')) AS s (n, sequence) ORDER BY n;
-- temporary and unlogged sequences
CREATE TEMPORARY SEQUENCE regress_temp_seq;
SELECT nextval('regress_temp_seq');
SELECT instaid.settled_id('regress_s', 'regress_temp_seq');
CREATE UNLOGGED SEQUENCE regress_s.unlogged_seq;
SELECT instaid.next_id('regress_s.unlogged_seq', 5) AS id \gset
SELECT instaid.settled_id('regress_s', 'regress_s.unlogged_seq') = :id AS is_last;

SET client_min_messages = warning;
DROP OWNED BY regress_reader;
DROP ROLE regress_reader;
DROP SCHEMA regress_s, "Regress ""t""", regress_v, regress_w CASCADE;
