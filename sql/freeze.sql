-- freeze_shard(), thaw_shard() and advance_past().
SET timezone = 'UTC';
SET datestyle = 'ISO';
SELECT instaid.create_shard('regress_f', 5);
SELECT instaid.create_shard('Regress "g"', 6);
CREATE SEQUENCE regress_f.likes_id_seq;
CREATE SEQUENCE regress_f.unrelated_seq;
CREATE TABLE regress_f.photos (id bigint PRIMARY KEY DEFAULT regress_f.next_id(), n serial);
CREATE TABLE regress_f.likes (id bigint PRIMARY KEY DEFAULT regress_f.next_id('regress_f.likes_id_seq'), n integer);
INSERT INTO regress_f.photos (n) VALUES (1);
SELECT instaid._shard_sequences('regress_f');
SELECT instaid._shard_sequences('regress_none');
-- defaults of other roles' tables, and of temporary tables, add no sequence to the shard
CREATE ROLE regress_other;
CREATE SCHEMA regress_o AUTHORIZATION regress_other;
GRANT USAGE ON SCHEMA regress_f TO regress_other;
SET ROLE regress_other;
CREATE TABLE regress_o.t (id bigint DEFAULT regress_f.next_id('regress_f.unrelated_seq'));
CREATE SEQUENCE regress_o.own_seq;
CREATE TABLE regress_o.u (id bigint DEFAULT regress_f.next_id('regress_o.own_seq'));
RESET ROLE;
CREATE TEMPORARY SEQUENCE temp_seq;
CREATE TEMPORARY TABLE temp_table (id bigint DEFAULT regress_f.next_id('temp_seq'));
SELECT instaid._shard_sequences('regress_f');

-- no function of the shard issues an ID, and nextval() fails
SELECT instaid.freeze_shard('regress_f');
SELECT regexp_replace(try, '\d{16}', '...') AS try FROM try('INSERT INTO regress_f.photos (n) VALUES (2)');
SELECT regexp_replace(try, '\d{16}', '...') AS try FROM try('INSERT INTO regress_f.likes (n) VALUES (2)');
SELECT regexp_replace(try, '\d{16}', '...') AS try FROM try('SELECT * FROM regress_f.next_ids(10)');
SELECT regexp_replace(try, '\d{16}', '...') AS try FROM try($$SELECT nextval('regress_f.table_id_seq')$$);
SELECT nextval('regress_f.unrelated_seq');
SELECT schema_name, frozen FROM instaid.shards ORDER BY shard_id;
-- rows can be updated, and another shard goes on
UPDATE regress_f.photos SET n = 3;
SELECT instaid.extract_shard_id("Regress ""g""".next_id());

-- a second freeze changes nothing; after the thaw, IDs continue above the last one
SELECT last_id = (SELECT max(id) FROM regress_f.photos) AS same FROM instaid.shards WHERE shard_id = 5;
SELECT instaid.freeze_shard('regress_f');
SELECT last_id = (SELECT max(id) FROM regress_f.photos) AS same, frozen FROM instaid.shards WHERE shard_id = 5;
SELECT instaid.thaw_shard('regress_f');
SELECT instaid.thaw_shard('regress_f');
WITH i AS (INSERT INTO regress_f.photos (n) VALUES (4) RETURNING id)
SELECT i.id > (SELECT max(id) FROM regress_f.photos) AS above FROM i;
INSERT INTO regress_f.likes (n) VALUES (1);
SELECT schema_name, frozen FROM instaid.shards ORDER BY shard_id;
SELECT min_value, max_value, cycle FROM pg_sequences WHERE schemaname = 'regress_f' AND sequencename = 'table_id_seq';

-- a shard that has issued no ID yet
SELECT instaid.create_shard('regress_h', 7);
SELECT instaid.freeze_shard('regress_h');
SELECT regexp_replace(try, '\d{16}', '...') AS try FROM try('SELECT regress_h.next_id()');
SELECT frozen FROM instaid.shards WHERE shard_id = 7;
-- a rollback undoes a thaw
BEGIN;
SELECT instaid.thaw_shard('regress_h');
SELECT instaid.extract_shard_id(regress_h.next_id());
ROLLBACK;
SELECT regexp_replace(try, '\d{16}', '...') AS try FROM try('SELECT regress_h.next_id()');

-- the error quotes the name as a statement needs it
SELECT instaid.freeze_shard('Regress "g"');
SELECT regexp_replace(try, '\d{16}', '...') AS try FROM try('SELECT "Regress ""g""".next_id()');
-- a MAXVALUE that somebody else has set freezes the shard, too: the error names it
SELECT instaid.thaw_shard('Regress "g"');
ALTER SEQUENCE "Regress ""g""".table_id_seq MAXVALUE 9007199254740990;
SELECT try('SELECT "Regress ""g""".next_id()');
SELECT frozen FROM instaid.shards WHERE shard_id = 6;
SELECT * FROM instaid.audit() WHERE object ~ 'Regress "g"';

-- The declaration does not change.  A sequence that no table uses is frozen when a caller passes
-- it: the shard is.
SELECT instaid.create_shard('regress_w', 61);
CREATE SEQUENCE regress_w.likes_id_seq;
CREATE SEQUENCE regress_w.loose_seq;
CREATE TABLE regress_w.likes (id bigint PRIMARY KEY DEFAULT regress_w.next_id('regress_w.likes_id_seq'));
SELECT instaid.freeze_shard('regress_w');
SELECT prosrc FROM pg_proc WHERE oid = 'regress_w.next_ids(integer, regclass)'::regprocedure;
-- no function takes an ID of its sequences, nor of another one of the owner through the shard
SELECT c.call, split_part(t.try, ' (', 1) AS error
FROM (VALUES
    (1, 'regress_w.next_id()'), (2, $$regress_w.next_id('regress_w.likes_id_seq')$$),
    (3, $$regress_w.next_id('regress_w.loose_seq')$$), (4, 'regress_w.next_ids(1)'),
    (5, $$regress_w.next_ids(2000, 'regress_w.likes_id_seq')$$),
    (6, $$regress_w.next_ids(1, 'regress_w.loose_seq')$$),
    (7, $$instaid.next_id('regress_w.table_id_seq', 61)$$),
    (8, $$instaid.next_id('regress_w.likes_id_seq', 61)$$),
    (10, $$nextval('regress_w.table_id_seq')$$), (11, $$nextval('regress_w.likes_id_seq')$$),
    (12, $$instaid.advance_past('regress_w.table_id_seq', 1, instaid.default_epoch())$$))
    AS c (n, call) CROSS JOIN LATERAL (SELECT * FROM try('SELECT ' || c.call) LIMIT 1) AS t (try)
ORDER BY c.n;
-- A sequence that came later is not bounded.  audit() names it, and a freeze repairs it.
CREATE SEQUENCE regress_w.later_seq;
ALTER TABLE regress_w.likes ALTER id SET DEFAULT regress_w.next_id('regress_w.later_seq');
SELECT split_part(try, ' (', 1) AS error FROM try($$SELECT regress_w.next_id('regress_w.later_seq')$$) LIMIT 1;
SELECT nextval('regress_w.later_seq');
SELECT * FROM instaid.audit() WHERE object ~ '^regress_w';
SELECT instaid.freeze_shard('regress_w');
SELECT * FROM instaid.audit() WHERE object ~ '^regress_w';
SELECT left(try, 41) AS error FROM try($$SELECT nextval('regress_w.later_seq')$$);
-- A table's sequence that stays bounded, as after a restore of that table, is named, too.
SELECT instaid.thaw_shard('regress_w');
ALTER SEQUENCE regress_w.later_seq MAXVALUE 5000;
SELECT try('INSERT INTO regress_w.likes DEFAULT VALUES');
SELECT * FROM instaid.audit() WHERE object ~ '^regress_w';
SELECT instaid.thaw_shard('regress_w');
SELECT * FROM instaid.audit() WHERE object ~ '^regress_w';
ALTER TABLE regress_w.likes ALTER id SET DEFAULT regress_w.next_id('regress_w.likes_id_seq');
-- A transaction that freezes the shard gets no more IDs itself, in the middle of a query either.
BEGIN;
DECLARE ids CURSOR FOR SELECT regress_w.next_id('regress_w.loose_seq') > 0 AS taken FROM generate_series(1, 3);
FETCH ids;
SELECT instaid.freeze_shard('regress_w');
\set VERBOSITY terse
FETCH ids;
\set VERBOSITY default
ROLLBACK;
-- The position of a sequence is dumped once, also if a default passes it to instaid.next_id(), too.
CREATE TABLE regress_f.both (id bigint DEFAULT instaid.next_id('regress_f.likes_id_seq', 5));
SELECT count(*) FROM instaid.dump_positions() AS d WHERE d ~ 'regress_f.likes_id_seq';
DROP TABLE regress_f.both;
-- Freezing must see the newest sequences.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT try($$SELECT instaid.freeze_shard('regress_w')$$,
    $$SELECT instaid.thaw_shard('regress_w')$$);
ROLLBACK;

-- A sequence in another schema, as between two shards: one answer, whoever asks.
CREATE SCHEMA regress_x;
ALTER SEQUENCE regress_w.table_id_seq SET SCHEMA regress_x;
ALTER SEQUENCE regress_x.table_id_seq RENAME TO q;
SELECT regress_w.next_id() AS id \gset
SELECT instaid.freeze_shard('regress_w');
SELECT c.call, l.error
FROM (VALUES (1, 'regress_w.next_id()'), (2, $$regress_w.next_id('regress_w.likes_id_seq')$$),
    (3, $$instaid.next_id('regress_x.q', 61)$$)) AS c (n, call)
    CROSS JOIN LATERAL (SELECT split_part(try, ' is 1', 1) AS error
                        FROM try('SELECT ' || c.call) LIMIT 2) AS l
ORDER BY c.n, l.error;
SELECT frozen, last_id = instaid.settled_id('regress_w') AS settled,
       last_id = instaid.settled_id('regress_w', 'regress_x.q') AS same
FROM instaid.shards WHERE shard_id = 61;
SELECT code, severity, object FROM instaid.audit() WHERE object ~ '^regress_[wx]';
SELECT instaid.thaw_shard('regress_w');
SELECT regress_w.next_id() > :id AS above;
ALTER SEQUENCE regress_x.q SET SCHEMA regress_w;
ALTER SEQUENCE regress_w.q RENAME TO table_id_seq;
DROP SCHEMA regress_x;

-- The owner needs no CREATE on the schema, and no USAGE on the language.
BEGIN;
CREATE ROLE regress_owner;
ALTER SCHEMA regress_w OWNER TO regress_owner;
REVOKE USAGE ON LANGUAGE instaid FROM PUBLIC;
ALTER FUNCTION regress_w.next_id() OWNER TO regress_owner;
ALTER FUNCTION regress_w.next_id(regclass) OWNER TO regress_owner;
ALTER FUNCTION regress_w.next_ids(integer, regclass) OWNER TO regress_owner;
ALTER TABLE regress_w.likes OWNER TO regress_owner;
ALTER SEQUENCE regress_w.table_id_seq OWNER TO regress_owner;
ALTER SEQUENCE regress_w.likes_id_seq OWNER TO regress_owner;
GRANT USAGE ON SCHEMA regress_f TO regress_owner;
REVOKE CREATE ON SCHEMA regress_w FROM regress_owner;
SET ROLE regress_owner;
SELECT instaid.freeze_shard('regress_w');
SELECT schema_name, frozen FROM instaid.shards WHERE schema_name = 'regress_w';
SELECT instaid.thaw_shard('regress_w');
SELECT regress_w.next_id() > 0 AS made;
-- a declaration that another role has written for the sequence is not the owner's to change
RESET ROLE;
ALTER FUNCTION regress_w.next_ids(integer, regclass) OWNER TO CURRENT_USER;
SET ROLE regress_owner;
SELECT instaid.freeze_shard('regress_w');
RESET ROLE;
CREATE ROLE regress_declarer;
GRANT CREATE ON SCHEMA regress_w TO regress_declarer;
ALTER FUNCTION regress_w.next_ids(integer, regclass) OWNER TO regress_declarer;
SET ROLE regress_owner;
SELECT try($$SELECT instaid.thaw_shard('regress_w')$$,
    -- what _lock_sequence() refuses when it is called directly
    $$SELECT instaid._lock_sequence('regress_f.table_id_seq')$$);
SELECT regexp_replace(try, '\d{4,}', '...') AS try FROM try($$SELECT instaid._lock_sequence('regress_w.likes')$$);
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA regress_w CASCADE;
RESET client_min_messages;

-- schemas that are not shards, and a role without the rights
SELECT try($$SELECT instaid.thaw_shard('no such schema')$$);
SELECT instaid.freeze_shard(NULL) IS NULL AS nothing_done;
CREATE ROLE regress_minter;
GRANT USAGE ON SCHEMA regress_f TO regress_minter;
GRANT USAGE, SELECT ON SEQUENCE regress_f.table_id_seq TO regress_minter;
SET ROLE regress_minter;
SELECT try($$SELECT instaid.freeze_shard('regress_f')$$,
    $$SELECT instaid.advance_past('regress_f.table_id_seq', 1, instaid.default_epoch())$$);
RESET ROLE;

-- advance_past() moves a sequence past the IDs of all shards in that millisecond
SELECT instaid.make_id(now() + interval '1 h', 8191, 1023) AS far \gset
SELECT instaid.advance_past('regress_f.table_id_seq', :far, instaid.default_epoch());
SET client_min_messages = error;
SELECT regress_f.next_id() > :far AS above;
-- advance_past() does not move a sequence back
SELECT instaid.advance_past('regress_f.table_id_seq', 0, instaid.default_epoch());
SELECT regress_f.next_id() > :far AS above;
RESET client_min_messages;
SELECT instaid.advance_past('regress_f.table_id_seq', 9223372036854775807, instaid.default_epoch());
SELECT * FROM try('SELECT regress_f.next_id()') LIMIT 1;
-- advance_past() also passes a tick that setval() has set with is_called = false
CREATE SEQUENCE regress_f.not_called;
SELECT setval('regress_f.not_called', ((:far >> 23) + 1314220021721 << 10) + 1023, false) > 0 AS set;
SELECT instaid.advance_past('regress_f.not_called', :far, instaid.default_epoch());
SET client_min_messages = error;
SELECT instaid.next_id('regress_f.not_called', 8191) > :far AS above;
RESET client_min_messages;

-- MAXVALUE is set whatever it was; a MINVALUE above 1 stays
SELECT instaid.create_shard('regress_range', 4242);
ALTER SEQUENCE regress_range.table_id_seq START 1 RESTART MAXVALUE 1125899906842625;
SELECT instaid.freeze_shard('regress_range');
ALTER SEQUENCE regress_range.table_id_seq MAXVALUE 1125899906842625;
SELECT instaid.thaw_shard('regress_range');
SELECT seqmax FROM pg_sequence WHERE seqrelid = 'regress_range.table_id_seq'::regclass;
ALTER SEQUENCE regress_range.table_id_seq
    MINVALUE 844424930131969 MAXVALUE 1125899906842625 START 844424930131969 RESTART;
SELECT try($$SELECT instaid.freeze_shard('regress_range')$$,
    $$SELECT instaid.thaw_shard('regress_range')$$);
SELECT seqmin, seqmax FROM pg_sequence WHERE seqrelid = 'regress_range.table_id_seq'::regclass;
DROP SCHEMA regress_range CASCADE;

-- a frozen shard whose definitions were restored without its data
SELECT instaid.create_shard('regress_bare', 4243);
SELECT regress_bare.next_id() > 0 AS made;
SELECT instaid.freeze_shard('regress_bare');
SELECT setval('regress_bare.table_id_seq', 1, false);
SELECT frozen, last_id FROM instaid.shards WHERE shard_id = 4243;
SELECT left(try, 80) FROM try('SELECT regress_bare.next_id()') LIMIT 1;
SELECT instaid.thaw_shard('regress_bare');
SELECT regress_bare.next_id() > 0 AS made;
-- another function named next_id is no function of the shard, and a sequence that a
-- default passes to it is not the shard's
CREATE ROLE regress_stranger;
GRANT USAGE, CREATE ON SCHEMA regress_bare TO regress_stranger;
DROP FUNCTION regress_bare.next_id(regclass);
SET ROLE regress_stranger;
CREATE SEQUENCE regress_bare.theirs;
CREATE FUNCTION regress_bare.next_id(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE TABLE regress_bare.t (id bigint DEFAULT regress_bare.next_id('regress_bare.theirs'::regclass::text));
CREATE FUNCTION regress_bare.next_id(sequence regclass) RETURNS bigint LANGUAGE instaid STRICT COST 1 AS 'as next_ids(integer, regclass)';
CREATE TABLE regress_bare.t2 (id bigint DEFAULT regress_bare.next_id('regress_bare.theirs'::regclass));
RESET ROLE;
SELECT instaid.freeze_shard('regress_bare');
SELECT instaid._shard_sequences('regress_bare');
-- a declaration without a sequence
SET check_function_bodies = off;
CREATE SCHEMA regress_none;
SELECT try($$CREATE FUNCTION regress_none.next_ids(count integer, sequence regclass DEFAULT '-') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 61, epoch 1577836800000'$$);
RESET check_function_bodies;
DROP SCHEMA regress_none;
SET client_min_messages = warning;
DROP OWNED BY regress_stranger CASCADE;
DROP ROLE regress_stranger;
DROP SCHEMA regress_bare CASCADE;

-- Citus refuses to alter its sequences unless citus.enable_ddl_propagation is off
CREATE SCHEMA regress_citus;
SELECT instaid.create_shard('regress_citus', 62);
CREATE FUNCTION regress_citus.note() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE WARNING '% with propagation %', tg_tag, current_setting('citus.enable_ddl_propagation');
END $$;
CREATE EVENT TRIGGER regress_citus ON ddl_command_start EXECUTE FUNCTION regress_citus.note();
SET citus.enable_ddl_propagation = on;
BEGIN;
SELECT instaid.freeze_shard('regress_citus');
SELECT instaid.thaw_shard('regress_citus');
SHOW citus.enable_ddl_propagation;
COMMIT;
SELECT instaid.freeze_shard('regress_no_shard');
SHOW citus.enable_ddl_propagation;
DROP EVENT TRIGGER regress_citus;
DROP SCHEMA regress_citus CASCADE;

SET client_min_messages = warning;
DROP OWNED BY regress_minter, regress_other CASCADE;
DROP ROLE regress_minter, regress_other;
DROP SCHEMA regress_f, "Regress ""g""", regress_h CASCADE;
