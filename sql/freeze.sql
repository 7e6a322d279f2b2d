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
SELECT instaid.shard_sequences('regress_f');
SELECT instaid.shard_sequences('regress_none');
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
SELECT instaid.shard_sequences('regress_f');

-- no function of the shard issues an ID, and nextval() fails
SELECT instaid.freeze_shard('regress_f');
SELECT try('INSERT INTO regress_f.photos (n) VALUES (2)');
SELECT try('INSERT INTO regress_f.likes (n) VALUES (2)');
SELECT try('SELECT * FROM regress_f.next_ids(10)');
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
SELECT try('SELECT regress_h.next_id()');
SELECT frozen FROM instaid.shards WHERE shard_id = 7;
-- a rollback undoes a thaw
BEGIN;
SELECT instaid.thaw_shard('regress_h');
SELECT instaid.extract_shard_id(regress_h.next_id());
ROLLBACK;
SELECT try('SELECT regress_h.next_id()');

-- the error quotes the name as a statement needs it
SELECT instaid.freeze_shard('Regress "g"');
SELECT try('SELECT "Regress ""g""".next_id()');
-- a sequence with a small MAXVALUE is not frozen for that alone
ALTER SEQUENCE "Regress ""g""".table_id_seq MAXVALUE 9007199254740990;
SELECT try('SELECT "Regress ""g""".next_id()');

-- schemas that are not shards, and a role without the rights
SELECT try($$SELECT instaid.freeze_shard('public')$$);
SELECT try($$SELECT instaid.thaw_shard('no such schema')$$);
SELECT instaid.freeze_shard(NULL) IS NULL AS nothing_done;
CREATE ROLE regress_minter;
GRANT USAGE ON SCHEMA regress_f TO regress_minter;
GRANT USAGE, SELECT ON SEQUENCE regress_f.table_id_seq TO regress_minter;
SET ROLE regress_minter;
SELECT try($$SELECT instaid.freeze_shard('regress_f')$$);
SELECT try($$SELECT instaid.advance_past('regress_f.table_id_seq', 1, instaid.default_epoch())$$);
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
SELECT try($$SELECT instaid.advance_past('regress_f.table_id_seq', -1, instaid.default_epoch())$$);
SELECT instaid.advance_past('regress_f.table_id_seq', 9223372036854775807, instaid.default_epoch());
SELECT * FROM try('SELECT regress_f.next_id()') LIMIT 1;
-- advance_past() also passes a tick that setval() has set with is_called = false
CREATE SEQUENCE regress_f.not_called;
SELECT setval('regress_f.not_called', ((:far >> 23) + 1314220021721 << 10) + 1023, false) > 0 AS set;
SELECT instaid.advance_past('regress_f.not_called', :far, instaid.default_epoch());
SET client_min_messages = error;
SELECT instaid.next_id('regress_f.not_called', 8191) > :far AS above;
RESET client_min_messages;

-- a sequence with a range of its own is not widened
SELECT instaid.create_shard('regress_range', 4242);
ALTER SEQUENCE regress_range.table_id_seq START 1 RESTART MAXVALUE 1125899906842625;
SELECT try($$SELECT instaid.freeze_shard('regress_range')$$);
SELECT try($$SELECT instaid.thaw_shard('regress_range')$$);
ALTER SEQUENCE regress_range.table_id_seq MINVALUE 844424930131969 START 844424930131969 RESTART;
SELECT try($$SELECT instaid.freeze_shard('regress_range')$$);
SELECT try($$SELECT instaid.thaw_shard('regress_range')$$);
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
SET ROLE regress_stranger;
CREATE SEQUENCE regress_bare.theirs;
CREATE FUNCTION regress_bare.next_id(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE TABLE regress_bare.t (id bigint DEFAULT regress_bare.next_id('regress_bare.theirs'::regclass::text));
RESET ROLE;
SELECT instaid.freeze_shard('regress_bare');
SELECT instaid.shard_sequences('regress_bare');
-- a declaration without a sequence
SET check_function_bodies = off;
CREATE SCHEMA regress_none;
SELECT try($$CREATE FUNCTION regress_none.next_ids(count integer, sequence regclass DEFAULT '-') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 61, epoch 2020-01-01 00:00:00+00'$$);
RESET check_function_bodies;
DROP SCHEMA regress_none;
SET client_min_messages = warning;
DROP OWNED BY regress_stranger CASCADE;
DROP ROLE regress_stranger;
DROP SCHEMA regress_bare CASCADE;

-- Citus refuses to alter its sequences unless citus.enable_ddl_propagation is off.  It must be on
-- for functions, so that workers do not keep the old one.
CREATE SCHEMA regress_citus;
CREATE SEQUENCE regress_citus.table_id_seq;
CREATE FUNCTION regress_citus.next_id() RETURNS bigint LANGUAGE sql AS
    $$SELECT instaid.make_id(clock_timestamp(), 62, nextval('regress_citus.table_id_seq'))$$;
CREATE FUNCTION regress_citus.note() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE WARNING '% with propagation %', tg_tag, current_setting('citus.enable_ddl_propagation');
END $$;
CREATE EVENT TRIGGER regress_citus ON ddl_command_start EXECUTE FUNCTION regress_citus.note();
SET citus.enable_ddl_propagation = on;
BEGIN;
SELECT instaid.adopt_shard('regress_citus', 62);
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
