-- What audit() finds, as a specification.
BEGIN;
SET LOCAL timezone = 'UTC';
SET LOCAL client_min_messages = warning;
SELECT no_plan();
SELECT here('edition') = 'extension' AS extension \gset

-- whether it is SQL: a function with a polymorphic argument is parsed, and not analyzed
CREATE FUNCTION pg_temp.is_sql(cure text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE FUNCTION pg_temp.cure(anyelement) RETURNS void LANGUAGE sql AS %L', cure);
    DROP FUNCTION pg_temp.cure(anyelement);
    RETURN true;
EXCEPTION WHEN syntax_error THEN
    RETURN false;
END $$;
-- tests that audit() returns this finding, and that its cure is SQL
CREATE FUNCTION pg_temp.finds(code text, severity text, object text, description text) RETURNS text LANGUAGE sql AS
$$ SELECT ok(EXISTS (SELECT FROM instaid.audit() AS a WHERE a.code = $1 AND a.severity = $2 AND a.object = $3 AND a.problem <> ''
                        AND a.cure <> '' AND pg_temp.is_sql(a.cure)), $4) $$;

-- a change of the shard insta6 that audit() finds, and whose cure leaves no finding and the shard
CREATE FUNCTION pg_temp.cured(code text, change text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    cure text;
    left_over text;
    cures integer := 0;
BEGIN
    EXECUTE change;
    FOR cure IN SELECT a.cure FROM instaid.audit() AS a WHERE a.code = $1 LOOP
        EXECUTE cure;
        cures := cures + 1;
    END LOOP;
    SELECT string_agg(a.code || ' ' || a.object, ', ') INTO left_over FROM instaid.audit() AS a;
    EXECUTE format('SELECT concat_ws('' '', %s, instaid.extract_shard_id(insta6.next_id()), %L)', cures, left_over) INTO left_over;
    RETURN is(left_over, '1 6', change || ' is found, and the cure serves');
END $$;

SELECT function_returns('instaid', 'audit', ARRAY['boolean'], 'setof record');
SELECT volatility_is('instaid', 'audit', 'volatile', 'audit is volatile');
SELECT is_empty('SELECT * FROM instaid.audit()', 'there are no findings without a shard');
SELECT instaid.create_shard('insta5', 5), instaid.create_shard('insta6', 6);
SELECT format(here('adds a sequence'), 'insta5', 'likes_id_seq') AS add \gset
:add ;
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id());
CREATE TABLE insta5.likes (id bigint PRIMARY KEY DEFAULT insta5.next_id('insta5.likes_id_seq'), photo_id bigint REFERENCES insta5.photos);
INSERT INTO insta5.photos DEFAULT VALUES;
SELECT is_empty('SELECT * FROM instaid.audit()', 'healthy shards have no findings');
SELECT instaid.freeze_shard('insta5');
SELECT is_empty('SELECT * FROM instaid.audit()', 'a frozen shard has no findings');
SELECT instaid.thaw_shard('insta5');

-- the published function and its faults
CREATE SCHEMA insta1;
CREATE SEQUENCE insta1.table_id_seq;
SET LOCAL check_function_bodies = off;
CREATE FUNCTION insta1.next_id(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := 5;
BEGIN
    SELECT nextval('insta1.table_id_seq') %% 1024 INTO seq_id;
    SELECT FLOOR(EXTRACT(EPOCH FROM now()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END $$;
SET LOCAL check_function_bodies = on;
SELECT pg_temp.finds('copy', 'error', 'insta1.next_id()', 'a copy of the published function');
DROP SCHEMA insta1 CASCADE;
SELECT is_empty('SELECT * FROM instaid.audit()', 'there are no findings without the copy');

-- tables
CREATE TABLE insta6.photos (LIKE insta5.photos INCLUDING ALL);
SELECT pg_temp.finds('foreign_default', 'error', 'insta6.photos.id', 'a table that got another shard''s default by LIKE');
DROP TABLE insta6.photos;
CREATE TABLE insta6.narrow (id integer PRIMARY KEY DEFAULT insta6.next_id());
CREATE TABLE insta6.refers (id integer REFERENCES insta6.narrow);
SELECT pg_temp.finds('narrow_column', 'error', 'insta6.narrow.id', 'an integer that holds IDs');
SELECT pg_temp.finds('narrow_column', 'error', 'insta6.refers.id', 'an integer that refers to IDs');
CREATE DOMAIN insta6.small AS integer;
CREATE DOMAIN insta6.smaller AS insta6.small;
CREATE TABLE insta6.again (id insta6.smaller REFERENCES insta6.narrow);
SELECT pg_temp.finds('narrow_column', 'error', 'insta6.again.id', 'a domain over a domain');
DROP TABLE insta6.again, insta6.refers, insta6.narrow;
CREATE TABLE insta6.bare (id bigint DEFAULT insta6.next_id());
SELECT pg_temp.finds('no_unique_index', 'warning', 'insta6.bare.id', 'IDs without a unique index');
CREATE UNIQUE INDEX ON insta6.bare (id);
SELECT is_empty('SELECT * FROM instaid.audit()', 'IDs without a unique index: none with a unique index');

-- more than 20 alike are one row, or all of them with their cures
SAVEPOINT few;
DO $$ BEGIN FOR n IN 1 .. 21 LOOP EXECUTE format('CREATE TABLE insta6.many%s (id bigint DEFAULT insta6.next_id())', n); END LOOP; END $$;
SELECT pg_temp.finds('no_unique_index', 'warning', 'insta6.many1.id and 20 others', 'one row for 21 tables');
SELECT is((SELECT count(DISTINCT object || cure) FROM instaid.audit(fold => false)), 21::bigint, 'all 21, each with its cure');
DO $$ DECLARE cure text; BEGIN FOR cure IN SELECT a.cure FROM instaid.audit(fold => false) AS a LOOP EXECUTE cure; END LOOP; END $$;
SELECT is_empty('SELECT * FROM instaid.audit(fold => false)', 'the cures of all rows serve');
ROLLBACK TO few;

-- shards and their sequences
SAVEPOINT healthy;
\if :extension
SET LOCAL check_function_bodies = off;
CREATE OR REPLACE FUNCTION insta6.next_ids(count integer, sequence regclass DEFAULT 'insta6.table_id_seq') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 5, epoch 1314220021721';
SELECT pg_temp.finds('shard_id_twice', 'error', 'insta6', 'two schemas with one shard ID');
CREATE OR REPLACE FUNCTION insta6.next_ids(count integer, sequence regclass DEFAULT 'insta5.table_id_seq') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 6, epoch 1577836800000';
SELECT pg_temp.finds('two_epochs', 'error', 'insta6', 'two epochs on one sequence');
ALTER FUNCTION insta6.next_ids(integer, regclass) RENAME TO many;
SELECT pg_temp.finds('shard_function_broken', 'error', 'insta6.next_id()', 'a reference to nothing');
ROLLBACK TO healthy;
ALTER SEQUENCE insta5.likes_id_seq INCREMENT 1 MINVALUE 281474976710657 MAXVALUE 562949953421313 START 281474976710657 RESTART;
SELECT pg_temp.finds('cannot_serve', 'error', 'insta5.likes_id_seq', 'a copy that Citus made for a worker');
SELECT is((SELECT count(*) FROM instaid.audit() WHERE cure ~ '(NO )?(MIN|MAX)VALUE'), 0::bigint, 'no cure changes the range of such a copy');
ROLLBACK TO healthy;
SET LOCAL client_min_messages = error;
SET LOCAL instaid.max_drift = '2 h';
SELECT instaid.advance_past('insta5.table_id_seq', instaid.make_id(now() + interval '1 hour', 5, 0), instaid.default_epoch());
SELECT is((SELECT count(*) FROM instaid.audit() WHERE code = 'ahead_of_clock'), 0::bigint, 'a sequence that is ahead by less than max_drift');
SET LOCAL instaid.max_drift = '1 h';
SELECT instaid.advance_past('insta5.table_id_seq', instaid.make_id(clock_timestamp() + interval '1 h 900 ms', 5, 0), instaid.default_epoch());
SELECT is((SELECT count(*) FROM instaid.audit() WHERE code = 'ahead_of_clock'), 0::bigint, 'a crash, which adds up to a second, is no finding');
SELECT instaid.advance_past('insta5.table_id_seq', instaid.make_id(clock_timestamp() + interval '1 h 1 min', 5, 0), instaid.default_epoch());
SELECT pg_temp.finds('ahead_of_clock', 'warning', 'insta5.table_id_seq', 'a sequence that is ahead by more than both');
\else
-- as a dump of insta5 leaves it whose name was replaced: a restore calls nothing that could warn
SELECT replace(pg_get_functiondef(oid), instaid_sql._options(6, 1314220021721)::text, instaid_sql._options(5, 1314220021721)::text)
FROM pg_proc WHERE proname = 'next_ids' AND pronamespace = 'insta6'::regnamespace \gexec
SELECT pg_temp.finds('shard_id_twice', 'error', 'insta6', 'two schemas with one shard ID');
ROLLBACK TO healthy;
-- each part of a shard that another role owns, or that is missing
CREATE ROLE pgtap_other;
SELECT instaid.create_shard('lost' || n, 100 + n) FROM generate_series(1, 5) AS n;
ALTER FUNCTION lost1.next_ids OWNER TO pgtap_other;
ALTER DOMAIN lost2.id_sequence OWNER TO pgtap_other;
DROP FUNCTION lost3.next_ids;
ALTER FUNCTION lost4.next_ids SECURITY INVOKER;
ALTER FUNCTION lost5.next_ids RENAME TO ids;
SELECT pg_temp.finds('lost_shard', 'error', 'lost' || n, 'lost' || n || ', a part of which is not as it was made') FROM generate_series(1, 5) AS n;
ROLLBACK TO healthy;
SELECT pg_temp.cured(code, change) FROM (VALUES
    ('cannot_serve', 'ALTER SEQUENCE insta6.table_id_seq NO MAXVALUE'),
    ('cannot_serve', 'ALTER SEQUENCE insta6.table_id_seq MAXVALUE 9000000000000000000'),
    ('cannot_serve', 'ALTER SEQUENCE insta6.table_id_seq NO MINVALUE'),
    ('no_lock', 'DROP VIEW insta6.id_sequence_lock')) AS v (code, change);
-- a migration creates the published function beside next_id() of a shard, and the cure drops it
SELECT pg_temp.cured('copy', $f$CREATE FUNCTION insta6.next_id() RETURNS bigint LANGUAGE sql AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23
        | 101 << 10 | nextval('insta6.table_id_seq') % 1024 $$$f$);
\endif
ROLLBACK TO healthy;
-- positions of sequences do not roll back
ALTER SEQUENCE insta5.table_id_seq RESTART;
ALTER SEQUENCE insta6.table_id_seq RESTART;
SAVEPOINT healthy;
ALTER SEQUENCE insta5.likes_id_seq INCREMENT 2;
SELECT pg_temp.finds('cannot_serve', 'error', 'insta5.likes_id_seq', 'a sequence that cannot serve');
ROLLBACK TO healthy;
ALTER SEQUENCE insta5.likes_id_seq SET UNLOGGED;
SELECT pg_temp.finds('unlogged', 'warning', 'insta5.likes_id_seq', 'an unlogged sequence');
SELECT setval('insta6.table_id_seq', CASE WHEN :'extension' THEN 9007199254740992 ELSE seqmax END)
FROM pg_sequence WHERE seqrelid = 'insta6.table_id_seq'::regclass;
SELECT pg_temp.finds('end_of_ids', 'error', 'insta6.table_id_seq', 'a sequence at its end');
ROLLBACK TO healthy;
-- positions of sequences do not roll back
ALTER SEQUENCE insta5.table_id_seq RESTART;
ALTER SEQUENCE insta6.table_id_seq RESTART;
SAVEPOINT healthy;
SELECT is_empty('SELECT * FROM instaid.audit()', 'there are no findings after the repair');
SET LOCAL client_min_messages = error;
SELECT instaid.create_shard('insta9', 9, date_trunc('year', now() + interval '1 year') - ((1::bigint << 40) - 1) * interval '1 ms');
SELECT pg_temp.finds('shard_ends', 'warning', 'insta9', 'a shard that ends soon');
SELECT instaid.advance_past('insta5.table_id_seq', instaid.make_id(now() + interval '1 hour', 5, 0), instaid.default_epoch());
SELECT pg_temp.finds('ahead_of_clock', 'warning', 'insta5.table_id_seq', 'a sequence that is ahead');
ROLLBACK TO healthy;
-- positions of sequences do not roll back
ALTER SEQUENCE insta5.table_id_seq RESTART;
ALTER SEQUENCE insta6.table_id_seq RESTART;
SAVEPOINT healthy;

-- partitions; a cure creates those that are missing
CREATE PROCEDURE pg_temp.cure(object text) LANGUAGE plpgsql AS
$$ BEGIN EXECUTE (SELECT a.cure FROM instaid.audit() AS a WHERE a.object = $1 AND a.code <> 'default_partition'); END $$;
CREATE TABLE insta5.parts (id bigint PRIMARY KEY DEFAULT insta5.next_id()) PARTITION BY RANGE (id);
SELECT pg_temp.finds('no_partition', 'error', 'insta5.parts.id', 'a table without partitions');
SAVEPOINT without;
CALL pg_temp.cure('insta5.parts.id');
SELECT is_empty($$SELECT * FROM instaid.audit() WHERE object = 'insta5.parts.id'$$, 'a table without partitions, with those of the cure');
ROLLBACK TO without;
SELECT instaid.create_partitions('insta5.parts', now() - interval '20 days', now() - interval '10 days', '10 days');
SELECT pg_temp.finds('no_partition', 'error', 'insta5.parts.id', 'partitions ahead: with a partition of the past');
SAVEPOINT past;
SELECT instaid.create_partitions('insta5.parts', now() + interval '10 days', now() + interval '20 days', '10 days');
SELECT pg_temp.finds('no_partition', 'error', 'insta5.parts.id', 'partitions ahead: one of the future');
CALL pg_temp.cure('insta5.parts.id');
SELECT is_empty($$SELECT * FROM instaid.audit() WHERE object = 'insta5.parts.id' AND code = 'no_partition'$$, 'partitions ahead: those of the cure');
ROLLBACK TO past;
SELECT instaid.create_partitions('insta5.parts', now() - interval '10 days', now() + interval '1 day', '11 days');
SELECT pg_temp.finds('last_partition', 'warning', 'insta5.parts.id', 'a last partition that ends soon');
SELECT instaid.freeze_shard('insta5');
SELECT is_empty($$SELECT * FROM instaid.audit() WHERE object = 'insta5.parts.id'$$, 'a frozen shard needs no partition');
SELECT instaid.thaw_shard('insta5');
CALL pg_temp.cure('insta5.parts.id');
SELECT is_empty($$SELECT * FROM instaid.audit() WHERE object = 'insta5.parts.id'$$, 'a frozen shard needs no partition, with those of the cure');
ROLLBACK TO past;
SELECT instaid.create_partitions('insta5.parts', now() - interval '10 days', now() + interval '1 day', '11 days');
CREATE TABLE insta5.rest PARTITION OF insta5.parts DEFAULT;
SELECT is_empty($$SELECT * FROM instaid.audit() WHERE object = 'insta5.parts.id'$$, 'partitions ahead: with a default partition');
SELECT set_config('test.now_part', partition::text, true) FROM instaid.list_partitions('insta5.parts') WHERE to_time > now();
DO $$ BEGIN EXECUTE format('ALTER TABLE insta5.parts DETACH PARTITION %s', current_setting('test.now_part')); END $$;
SELECT pg_temp.finds('default_partition', 'warning', 'insta5.parts.id', 'partitions ahead: that takes the IDs of now, after another one');
SELECT instaid.create_partitions('insta5.parts', now() + interval '1 day', now() + interval '2 days', '1 day');
SELECT pg_temp.finds('default_partition', 'warning', 'insta5.parts.id', 'partitions ahead: before another one');
DO $$ BEGIN EXECUTE (SELECT format('DROP TABLE %s', partition) FROM instaid.list_partitions('insta5.parts') WHERE from_time > now()); END $$;
DO $$ BEGIN EXECUTE (SELECT format('DROP TABLE %s', partition) FROM instaid.list_partitions('insta5.parts') WHERE to_time < now()); END $$;
SELECT results_eq($$SELECT partition, from_time, to_time, first_id, end_id FROM instaid.list_partitions('insta5.parts')$$,
    $$VALUES ('insta5.rest'::regclass, NULL::timestamptz, NULL::timestamptz, NULL::bigint, NULL::bigint)$$, 'list_partitions() of a default partition alone has nulls');
SELECT pg_temp.finds('default_partition', 'warning', 'insta5.parts.id', 'list_partitions() of a default partition alone has nulls, and from its first row on, create_partitions() fails');
DROP TABLE insta5.rest;
DO $$ BEGIN EXECUTE format('DROP TABLE %s', current_setting('test.now_part')); END $$;
SELECT instaid.create_partitions('insta5.parts', now() - interval '10 days', now() + interval '1 day', '11 days');
SELECT instaid.create_partitions('insta5.parts', now() + interval '1 day', now() + interval '12 days', '11 days');
SELECT is_empty($$SELECT * FROM instaid.audit() WHERE object = 'insta5.parts.id'$$, 'partitions ahead: with one more');
DROP TABLE insta5.parts;
CREATE TABLE insta5.parts (id bigint PRIMARY KEY DEFAULT insta5.next_id()) PARTITION BY RANGE (id);
CREATE TABLE insta5.all_parts PARTITION OF insta5.parts FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
SELECT is_empty($$SELECT * FROM instaid.audit() WHERE object = 'insta5.parts.id'$$, 'partitions ahead: with one for all IDs');
DROP TABLE insta5.parts;
CREATE DOMAIN insta5.key AS bigint;
CREATE TABLE insta5.parts (id insta5.key PRIMARY KEY DEFAULT insta5.next_id()) PARTITION BY RANGE (id);
SELECT pg_temp.finds('no_partition', 'error', 'insta5.parts.id', 'a key of a domain, without partitions');
DROP TABLE insta5.parts;

-- what another role has at the ends of bigint breaks nothing for others
CREATE TABLE insta5.parts (id bigint PRIMARY KEY DEFAULT insta5.next_id()) PARTITION BY RANGE (id);
CREATE TABLE insta5.all_parts PARTITION OF insta5.parts FOR VALUES FROM (-9223372036854775808) TO (9223372036854775807);
CREATE TABLE insta5.others (LIKE insta5.parts INCLUDING ALL) PARTITION BY RANGE (id);
CREATE TABLE insta5.none PARTITION OF insta5.others FOR VALUES FROM (MINVALUE) TO (-9223372036854775808);
SELECT results_eq('SELECT code, object FROM instaid.audit() ORDER BY 2', $$VALUES
    ('no_partition', 'insta5.others.id'), ('last_partition', 'insta5.parts.id')$$, 'partitions at the ends of bigint are read');
SELECT isnt_empty('SELECT instaid.dump_positions()', 'dump_positions() reads what is at the ends of bigint');
SELECT isnt_empty('SELECT FROM instaid.metrics, instaid.shards', 'the views read what is at the ends of bigint');
ROLLBACK TO healthy;

-- rights with which another role could do harm, and no others
CREATE ROLE pgtap_app;
CREATE ROLE "B ""o""";
GRANT USAGE ON SEQUENCE insta5.table_id_seq TO pgtap_app;
GRANT ALL ON SEQUENCE insta5.table_id_seq TO "B ""o""";
GRANT ALL ON SCHEMA instaid TO pgtap_app WITH GRANT OPTION;
SELECT try_as('pgtap_app', 'GRANT CREATE ON SCHEMA instaid TO PUBLIC');
SELECT results_eq($$SELECT code, object, cure FROM instaid.audit() WHERE code ~ '_right$' ORDER BY code$$, $$VALUES
    ('schema_right', 'instaid', 'REVOKE CREATE ON SCHEMA instaid FROM PUBLIC, pgtap_app CASCADE;'),
    ('sequence_right', 'insta5.table_id_seq', 'REVOKE UPDATE ON SEQUENCE insta5.table_id_seq FROM "B ""o""" CASCADE;')$$,
    'rights of other roles');
SELECT cure FROM instaid.audit() WHERE code ~ '_right$' \gexec
SELECT is_empty($$SELECT FROM instaid.audit() WHERE code ~ '_right$'$$, 'the cures of rights of other roles take them away');
ROLLBACK TO healthy;

-- a function that creates copies is none, and one that asks its sequence by EXECUTE is one
CREATE SCHEMA makers;
CREATE PROCEDURE makers.tenant(name text) LANGUAGE plpgsql AS $p$ BEGIN
    EXECUTE format($f$ CREATE FUNCTION %I.next_id() RETURNS bigint LANGUAGE sql AS
        $b$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23
            | nextval('%1$I.s') %% 1024 $b$ $f$, name); END $p$;
CREATE FUNCTION makers.copy() RETURNS bigint LANGUAGE plpgsql AS $p$ DECLARE n bigint; BEGIN
    RAISE DEBUG 'CREATE FUNCTION, %%';
    EXECUTE format('SELECT nextval(%L) %% 1024', 'makers.s') INTO n;
    RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23 | n; END $p$;
SELECT results_eq($$SELECT code, object FROM instaid.audit() WHERE object ~ '^makers'$$,
    $$VALUES ('copy', 'makers.copy()')$$, 'a function that creates copies is none');
-- texts with comments that never end
SET LOCAL check_function_bodies = off;
SET LOCAL statement_timeout = '20s';
CREATE SCHEMA slow;
SELECT format('CREATE FUNCTION slow.f%s() RETURNS bigint LANGUAGE sql AS %L', n, repeat('/*a', 33000) || E'--\n')
FROM generate_series(1, 40) AS n \gexec
SELECT is_empty($$SELECT FROM instaid.audit() WHERE object ~ '^slow'$$, 'texts with comments that never end are read');
ROLLBACK TO healthy;

-- DROP SEQUENCE ... CASCADE leaves a table whose IDs name the shard
SET LOCAL client_min_messages = error;
INSERT INTO insta6.bare SELECT FROM generate_series(1, 20);
ALTER TABLE insta6.bare ADD PRIMARY KEY (id);
ANALYZE insta6.bare;
DROP SEQUENCE insta6.table_id_seq CASCADE;
SELECT matches(cure, $$adopt_column\('insta6.bare', 'id'\);$$, 'a column that has lost its default')
FROM instaid.audit() WHERE code = 'lost_default';

SELECT * FROM finish();
ROLLBACK;
