-- adopt_shard(), for the published function, and adopt_column(), for columns with
-- other defaults.
SET timezone = 'UTC';
SET datestyle = 'ISO';
CREATE EXTENSION instaid_adopt CASCADE;

\getenv top PG_ABS_SRCDIR
\set try :top '/../test/lib/try.sql'
\i :try

-- creates a schema with the published function
CREATE PROCEDURE publish(schema_name text, shard_id integer) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE SCHEMA %I', schema_name);
    EXECUTE format('CREATE SEQUENCE %I.table_id_seq', schema_name);
    EXECUTE format($f$CREATE FUNCTION %1$I.next_id(OUT result bigint) LANGUAGE plpgsql AS $body$
        BEGIN
            result := nextval('%1$I.table_id_seq') %% 1024;
            result := result | ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23)
                | (%2$s << 10);
        END $body$ $f$, schema_name, shard_id);
END $$;

-- new IDs are above all IDs of the schema's tables, and columns keep their defaults
CALL publish('Adopt "1"', 401);
ALTER SEQUENCE "Adopt ""1""".table_id_seq AS integer MAXVALUE 100000 CYCLE CACHE 7;
CREATE TABLE "Adopt ""1""".photos (id bigint PRIMARY KEY DEFAULT "Adopt ""1""".next_id(), n integer);
CREATE TABLE "Adopt ""1""".likes (id instaid.id PRIMARY KEY DEFAULT "Adopt ""1""".next_id(), n integer);
CREATE TABLE "Adopt ""1""".views (id bigint DEFAULT "Adopt ""1""".next_id(), "N" text) PARTITION BY RANGE (id);
CREATE TABLE "Adopt ""1""".views_all PARTITION OF "Adopt ""1""".views DEFAULT;
ALTER TABLE "Adopt ""1""".views ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE TABLE "Adopt ""1""".odd (code text DEFAULT "Adopt ""1""".next_id()::text);
INSERT INTO "Adopt ""1""".photos SELECT instaid.make_id('2020-01-01 UTC', 401, 1), 0;
INSERT INTO "Adopt ""1""".likes SELECT instaid.make_id('2020-01-03 UTC', 401, 5), 0;
INSERT INTO "Adopt ""1""".views SELECT instaid.make_id('2020-01-02 UTC', 401, 3), 'zero';
PREPARE insert_photo AS INSERT INTO "Adopt ""1""".photos (n) VALUES (1);
SELECT '"Adopt ""1""".next_id()'::regprocedure::oid AS oid \gset
SELECT clock_timestamp() AS before \gset
SELECT instaid_adopt.adopt_shard('Adopt "1"', 401);
SELECT '"Adopt ""1""".next_id()'::regprocedure::oid = :oid AS same_oid;
\sf "Adopt ""1""".next_id()
\df "Adopt ""1""".*
SELECT seqtypid::regtype, seqincrement, seqmax, seqcycle, seqcache FROM pg_sequence
WHERE seqrelid = '"Adopt ""1""".table_id_seq'::regclass;
SELECT obj_description('"Adopt ""1""".table_id_seq'::regclass);
SELECT schema_name, shard_id, epoch, sequence, last_issued_at BETWEEN :'before' AND clock_timestamp() AS of_the_clock
FROM instaid.shards WHERE shard_id = 401;
EXECUTE insert_photo;
INSERT INTO "Adopt ""1""".photos (n) SELECT generate_series(2, 3000);
SELECT count(*), count(DISTINCT id), bool_and(instaid.extract_shard_id(id) = 401) AS of_shard,
    array_agg(n ORDER BY id) = array_agg(n ORDER BY n) AS in_order FROM "Adopt ""1""".photos;
SELECT result > (SELECT max(id) FROM "Adopt ""1""".photos) AS above FROM "Adopt ""1""".next_id();
-- an adopted shard works after its schema is renamed
ALTER SCHEMA "Adopt ""1""" RENAME TO adopt1;
SELECT instaid.extract_shard_id(adopt1.next_id());

-- new IDs are also above an ID that is an hour ahead of the clock
CALL publish('adopt2', 402);
CREATE TABLE adopt2.t (id bigint DEFAULT adopt2.next_id());
INSERT INTO adopt2.t SELECT instaid.make_id(now() + interval '1 hour', 402, 9);
SET client_min_messages = warning;
SELECT instaid_adopt.adopt_shard('adopt2', 402);
SET client_min_messages = error;
SELECT max(id) < adopt2.next_id() AS above FROM adopt2.t;
RESET client_min_messages;

-- a schema without IDs, with a sequence of another schema, another epoch, and a
-- SECURITY DEFINER function
CREATE ROLE regress_adopter;
CREATE SCHEMA adopt3 AUTHORIZATION regress_adopter;
CREATE SEQUENCE ids;
ALTER SEQUENCE ids OWNER TO regress_adopter;
CREATE FUNCTION adopt3.next_id() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS $$
    SELECT (((extract(epoch FROM clock_timestamp()) - 1577836800) * 1000)::bigint << 23) | (403 << 10) | (nextval('public.ids') % 1024) $$;
ALTER FUNCTION adopt3.next_id() OWNER TO regress_adopter;
CREATE TABLE adopt3.t (id bigint DEFAULT adopt3.next_id(), own bigint);
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt3', 403)$$);
SET ROLE regress_adopter;
SELECT instaid_adopt.adopt_shard('adopt3', 403);
RESET ROLE;
SELECT schema_name, epoch, sequence FROM instaid.shards WHERE shard_id = 403;
SELECT p.oid::regprocedure, proowner::regrole, prosecdef FROM pg_proc AS p
WHERE pronamespace = 'adopt3'::regnamespace ORDER BY p.oid::regprocedure::text;
DROP SCHEMA adopt3 CASCADE;

-- a function that fails must be repaired first; the column has a domain as its type, and a
-- view has the function as a default
CALL publish('adopt3', 403);
CREATE OR REPLACE FUNCTION adopt3.next_id(OUT result bigint) LANGUAGE plpgsql AS $$
BEGIN result := nextval('adopt3.table_id_seq') %% 1024; END $$;
CREATE DOMAIN adopt3.big AS bigint;
CREATE DOMAIN adopt3.id AS adopt3.big;
CREATE TABLE adopt3.t (id adopt3.id DEFAULT adopt3.next_id());
CREATE VIEW adopt3.v AS SELECT id FROM adopt3.t;
ALTER VIEW adopt3.v ALTER id SET DEFAULT adopt3.next_id();
INSERT INTO adopt3.t SELECT instaid.make_id('2020-01-01 UTC', 403, 1);
-- what PostgreSQL adds to this message differs between versions
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt3', 403)$$) LIMIT 1;
CREATE OR REPLACE FUNCTION adopt3.next_id(OUT result bigint) LANGUAGE plpgsql AS $$
BEGIN result := instaid.make_id(clock_timestamp(), 403, nextval('adopt3.table_id_seq')); END $$;
SELECT instaid_adopt.adopt_shard('adopt3', 403);
INSERT INTO adopt3.v DEFAULT VALUES;
SELECT instaid.extract_shard_id(id) FROM adopt3.t;
DROP SCHEMA adopt3 CASCADE;

-- the function names another shard: that is an error, unless it is on purpose
CALL publish('adopt4', 1);
CREATE TABLE adopt4.t (id bigint PRIMARY KEY DEFAULT adopt4.next_id());
INSERT INTO adopt4.t SELECT instaid.make_id('2020-01-01 UTC', 1, 1);
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt4', 404)$$);
SELECT instaid_adopt.adopt_shard('adopt4', 404, renumber => true);
INSERT INTO adopt4.t DEFAULT VALUES;
SELECT instaid.extract_shard_id(id) FROM adopt4.t ORDER BY id;

-- the function knows its shard ID, and its epoch, as milliseconds in its text
CALL publish('adopt_e', 407);
SELECT replace(replace(pg_get_functiondef('adopt_e.next_id()'::regprocedure), '1314220021721', '1387263000000'),
    'BEGIN', 'DECLARE other bigint := 1400000000000; BEGIN') \gexec
SELECT instaid_adopt.adopt_shard('adopt_e');
SELECT shard_id, epoch FROM instaid.shards WHERE schema_name = 'adopt_e';
SELECT instaid.extract_shard_id(adopt_e.next_id());
DROP SCHEMA adopt_e CASCADE;
CREATE SCHEMA adopt_e;
CREATE SEQUENCE adopt_e.table_id_seq;
CREATE FUNCTION adopt_e.next_id() RETURNS bigint LANGUAGE sql
    RETURN ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1420070400000) << 23) | (408 << 10)
        | (nextval('adopt_e.table_id_seq') % 1024);
SELECT instaid_adopt.adopt_shard('adopt_e');
SELECT shard_id, epoch FROM instaid.shards WHERE schema_name = 'adopt_e';
DROP SCHEMA adopt_e CASCADE;
-- an epoch that the text does not name is refused
CALL publish('adopt_e', 409);
SELECT regexp_replace(try($$SELECT instaid_adopt.adopt_shard('adopt_e', epoch => '2011-08-24 21:07:02 UTC')$$),
    'returned \d+', '...', 'g');
DROP SCHEMA adopt_e CASCADE;
-- so is another layout, with an epoch that fits it
CALL publish('adopt_e', 409);
SELECT replace(replace(pg_get_functiondef('adopt_e.next_id()'::regprocedure), '<< 23', '<< 22'), '% 1024', '% 4096') \gexec
SELECT split_part(try(format($$SELECT instaid_adopt.adopt_shard('adopt_e', epoch => %L)$$, date_trunc('milliseconds',
    clock_timestamp() - (instaid.extract_timestamp(adopt_e.next_id()) - instaid.default_epoch())))), 'epoch', 1) AS refused LIMIT 1;
DROP SCHEMA adopt_e CASCADE;
-- and another order of the bits, whose shard ID would be that of the sequence
CALL publish('adopt_e', 409);
SELECT replace(replace(pg_get_functiondef('adopt_e.next_id()'::regprocedure), '(409 << 10)', '409'), '% 1024', '% 1024 << 13') \gexec
SELECT split_part(try($$SELECT instaid_adopt.adopt_shard('adopt_e')$$), 'epoch', 1) AS refused LIMIT 1;
DROP SCHEMA adopt_e CASCADE;
-- in seconds, or with a fraction of them
CALL publish('adopt_e', 409);
SELECT replace(pg_get_functiondef('adopt_e.next_id()'::regprocedure), '1314220021721', '(1387263000.5 * 1000)::bigint') \gexec
SELECT split_part(t, 'epoch', 1) FROM try($$SELECT instaid_adopt.adopt_shard('adopt_e', epoch => '2013-12-17 06:50:00.500 CET')$$) AS t LIMIT 1;
SELECT instaid_adopt.adopt_shard('adopt_e');
SELECT shard_id, epoch FROM instaid.shards WHERE schema_name = 'adopt_e';
DROP SCHEMA adopt_e CASCADE;
-- as a date, in the time zone of the database and in UTC
CALL publish('adopt_e', 409);
SELECT current_setting('timezone') AS zone \gset
SELECT format('ALTER DATABASE %I SET timezone = ''America/New_York''', current_database()) \gexec
\c -
SELECT replace(pg_get_functiondef('adopt_e.next_id()'::regprocedure), '1314220021721', 'extract(epoch FROM timestamptz ''2016-01-01'')::bigint * 1000') \gexec
SELECT replace(replace(pg_get_functiondef('adopt_e.next_id()'::regprocedure), 'timestamptz', 'timestamp'), '.next_id', '.next_id_of_utc') \gexec
SELECT regexp_replace(try($$SELECT instaid_adopt.adopt_shard('adopt_e')$$), 'returned \d+', '...');
DROP FUNCTION adopt_e.next_id_of_utc();
SELECT instaid_adopt.adopt_shard('adopt_e');
SET timezone = 'UTC';
SELECT epoch FROM instaid.shards WHERE schema_name = 'adopt_e';
SELECT format('ALTER DATABASE %I SET timezone = %L', current_database(), :'zone') \gexec
\c -
SET timezone = 'UTC';
SET datestyle = 'ISO';
DROP SCHEMA adopt_e CASCADE;
-- one that no text names is printed
CALL publish('adopt_e', 409);
CREATE FUNCTION adopt_e.our_epoch() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 1387263000000';
SELECT replace(pg_get_functiondef('adopt_e.next_id()'::regprocedure), '1314220021721', 'adopt_e.our_epoch()') \gexec
-- with the milliseconds that a call took, from 20 on
SELECT regexp_replace(regexp_replace(try($$SELECT instaid_adopt.adopt_shard('adopt_e')$$), 'returned \d+', '...'),
    '(06:50:00)\.\d+', '\1', 'g');
SELECT instaid_adopt.adopt_shard('adopt_e', epoch => '2013-12-17 06:50:00+00');
DROP SCHEMA adopt_e CASCADE;

-- what adopt_shard() refuses; it changes nothing then
CALL publish('adopt5', 405);
CREATE TABLE adopt5.t (id bigint PRIMARY KEY DEFAULT adopt5.next_id());
INSERT INTO adopt5.t SELECT instaid.make_id('2020-01-01 UTC', 405, 1);
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt5', 401)$$,
    $$SELECT instaid_adopt.adopt_shard('adopt5', 401, renumber => true)$$,
    $$SELECT instaid_adopt.adopt_shard('adopt5', 9000, renumber => true)$$,
    $$SELECT instaid_adopt.adopt_shard('adopt4', 405)$$,
    $$SELECT instaid_adopt.adopt_shard(NULL, 405)$$,
    $$SELECT instaid_adopt.adopt_shard('adopt5', renumber => NULL)$$,
    $$SELECT instaid_adopt.adopt_shard('adopt5', 405, 'infinity')$$);
-- sequences that are temporary, of another role, or none
CREATE TEMP SEQUENCE temp_seq;
CREATE SEQUENCE adopt5.foreign_seq;
ALTER SEQUENCE adopt5.foreign_seq OWNER TO regress_adopter;
SELECT pg_get_functiondef('adopt5.next_id()'::regprocedure) AS text \gset
SELECT replace(:'text', 'adopt5.table_id_seq', s), $$SELECT try('SELECT instaid_adopt.adopt_shard(''adopt5'')')$$
FROM unnest('{temp_seq,adopt5.foreign_seq,adopt5.gone}'::text[]) AS s \gexec
SELECT replace(:'text', $$nextval('adopt5.table_id_seq')$$, '5') \gexec
SELECT regexp_replace(try($$SELECT instaid_adopt.adopt_shard('adopt5')$$), '\d{19} and \d{19}', '...');
SELECT :'text' \gexec
DROP SEQUENCE temp_seq, adopt5.foreign_seq;
CREATE TABLE adopt5.counted (n bigint DEFAULT nextval('adopt5.table_id_seq'), i bigint GENERATED ALWAYS AS IDENTITY);
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt5', 405)$$);
DROP TABLE adopt5.counted;
-- a superuser's function in a schema of the database's owner, who is another role
BEGIN;
SELECT format('ALTER DATABASE %I OWNER TO regress_adopter', current_database()) \gexec
CREATE SEQUENCE public.adopt_p;
CREATE FUNCTION public.next_id() RETURNS bigint LANGUAGE sql
    AS $$ SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23) + (426 << 10) + nextval('public.adopt_p') % 1024 $$;
SELECT cure FROM instaid.audit() WHERE object = 'public.next_id()';
SELECT try($$SELECT instaid_adopt.adopt_shard('public')$$);
ALTER FUNCTION public.next_id() OWNER TO regress_adopter;
ALTER SEQUENCE public.adopt_p OWNER TO regress_adopter;
SET ROLE regress_adopter;
SELECT instaid_adopt.adopt_shard('public');
ROLLBACK;
-- the sequence of another shard
CREATE SCHEMA adopt6;
CREATE FUNCTION adopt6.next_id() RETURNS bigint LANGUAGE sql
    RETURN instaid.make_id(clock_timestamp(), 406, nextval('adopt1.table_id_seq'), '2020-01-01 UTC');
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt6', 406, '2020-01-01 UTC')$$);
SELECT lanname FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang WHERE p.oid = 'adopt6.next_id()'::regprocedure;
DROP SCHEMA adopt6 CASCADE;
-- Citus gives each worker's copy of a sequence a range by its group.  The ticks of the
-- years 2023 to 2029 are in the range of group 6.
SELECT format('ALTER SEQUENCE adopt5.table_id_seq MINVALUE %s MAXVALUE %s START %1$s RESTART', g * (1::bigint << 48) + 1, (g + 1) * (1::bigint << 48) + 1),
    $$SELECT try('SELECT instaid_adopt.adopt_shard(''adopt5'', 405)')$$,
    $$SELECT seqmin, seqmax FROM pg_sequence WHERE seqrelid = 'adopt5.table_id_seq'::regclass$$
FROM unnest(ARRAY[1, 6, 32766]) AS g \gexec
ALTER SEQUENCE adopt5.table_id_seq NO MINVALUE NO MAXVALUE START 1 RESTART;
SELECT try($$SELECT instaid_adopt.adopt_shard('instaid', 405)$$);
SELECT try(format('SELECT instaid_adopt.adopt_shard(%L, 405)', schema))
FROM unnest(ARRAY['information_schema', 'pg_catalog', 'pg_toast', 'pg_mine']) AS schema;
SELECT try($$SELECT instaid_adopt.adopt_shard('nowhere', 405)$$,
    $$SELECT instaid.create_shard('adopt5', 405)$$);
-- read with another epoch, the function's IDs do not have the time of the clock
SET client_min_messages = warning;
SELECT regexp_replace(try($$SELECT instaid_adopt.adopt_shard('adopt5', 405, date_trunc('second', now()) - interval '3 years')$$),
    'not 2\S+ \S+|returned \d+', '...', 'g');
RESET client_min_messages;
CREATE TABLE adopt5.free (id bigint DEFAULT adopt5.next_id());
INSERT INTO adopt5.free VALUES (9223372036854775807);
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt5', 405)$$);
-- a day is the limit
UPDATE adopt5.free SET id = instaid.max_id(clock_timestamp() + interval '25 hours');
SELECT says FROM try($$SELECT instaid_adopt.adopt_shard('adopt5', 405)$$) AS says LIMIT 1;
DELETE FROM adopt5.free;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt5', 405)$$);
ROLLBACK;
ALTER FUNCTION adopt5.next_id() RENAME TO new_id;
CREATE FUNCTION adopt5.next_id() RETURNS integer LANGUAGE sql AS 'SELECT 1';
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt5', 405)$$);
DROP FUNCTION adopt5.next_id();
CREATE PROCEDURE adopt5.next_id() LANGUAGE sql AS 'SELECT 1';
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt5', 405)$$);
DROP PROCEDURE adopt5.next_id();
ALTER FUNCTION adopt5.new_id() RENAME TO next_id;
CREATE FUNCTION adopt5.next_ids(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt5', 405)$$);
DROP FUNCTION adopt5.next_ids(integer);
GRANT USAGE ON SCHEMA adopt5 TO regress_adopter;
SET ROLE regress_adopter;
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt5', 405)$$);
RESET ROLE;
SELECT lanname FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang WHERE p.oid = 'adopt5.next_id()'::regprocedure;
BEGIN;
SELECT instaid_adopt.adopt_shard('adopt5', 405);
ROLLBACK;
SELECT p.oid::regprocedure, lanname, last_value < 1000 AS small FROM adopt5.table_id_seq, pg_proc AS p JOIN pg_language AS l ON l.oid = prolang
WHERE pronamespace = 'adopt5'::regnamespace;

-- adopt_shards() adopts what it can, and names the rest
CALL publish('adopt "m" 1', 411);
CALL publish('adopt_m2', 412);
CALL publish('adopt_m3', 412);
CALL publish('adopt_m4', 414);
CALL publish('adopt5_m', 415);
CREATE TABLE adopt_m4.t (id bigint PRIMARY KEY DEFAULT adopt_m4.next_id());
INSERT INTO adopt_m4.t SELECT FROM generate_series(1, 3);
ALTER FUNCTION adopt5_m.next_id() OWNER TO regress_adopter;
CREATE SCHEMA adopt_m5;
CREATE SEQUENCE adopt_m5.global_id_seq;
CREATE FUNCTION adopt_m5.id_generator(OUT result bigint) LANGUAGE plpgsql AS $$
BEGIN
    result := ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23)
              + (410 << 10) + nextval('adopt_m5.global_id_seq') % 1024;
END $$;
CREATE TABLE adopt_m5.t (id bigint PRIMARY KEY DEFAULT adopt_m5.id_generator());
REVOKE EXECUTE ON FUNCTION adopt_m5.id_generator FROM PUBLIC;
GRANT EXECUTE ON FUNCTION adopt_m5.id_generator TO pg_monitor;
-- copies that cannot be adopted, or name two shards, are named, and left
CREATE SCHEMA adopt_m6;
CREATE SEQUENCE adopt_m6.s;
CREATE FUNCTION adopt_m6.a() RETURNS bigint LANGUAGE sql
    AS $$ SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23) + (422 << 10) + nextval('adopt_m6.s') % 1024 $$;
CREATE FUNCTION adopt_m6."B"() RETURNS bigint LANGUAGE sql
    AS $$ SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23) + (421 << 10) + nextval('adopt_m6.s') % 1024 $$;
CREATE FUNCTION adopt_m6.c(shard integer) RETURNS bigint LANGUAGE sql
    AS $$ SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23) + (shard << 10) + nextval('adopt_m6.s') % 1024 $$;
CREATE SCHEMA adopt_m7;
CREATE FUNCTION adopt_m7.many() RETURNS SETOF bigint LANGUAGE sql
    AS $$ SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23) + nextval('adopt_m6.s') % 1024 $$;
SELECT code FROM instaid.audit() WHERE object = 'adopt_m7.many()';
CREATE TABLE adopt_m6.t (id bigint PRIMARY KEY DEFAULT (extract(epoch FROM clock_timestamp())::bigint << 23) + nextval('adopt_m6.s') % 1024);
SELECT code FROM instaid.audit() WHERE object = 'adopt_m5.id_generator()';
CALL instaid_adopt.adopt_shards('adopt%m%', true);
CALL instaid_adopt.adopt_shards('nothing%');
BEGIN;
CALL instaid_adopt.adopt_shards('adopt%');
ROLLBACK;
CALL instaid_adopt.adopt_shards(NULL);
CALL instaid_adopt.adopt_shards('adopt_m%');
SELECT schema_name, shard_id FROM instaid.shards WHERE schema_name ~ '^adopt.+m' ORDER BY 1;
INSERT INTO adopt_m5.t VALUES (DEFAULT) RETURNING instaid.extract_shard_id(id);
SELECT instaid.extract_shard_id(result) FROM adopt_m5.id_generator();
SELECT r.rolname, has_function_privilege(r.oid, 'adopt_m5.id_generator()', 'EXECUTE') FROM pg_roles AS r
WHERE r.rolname IN ('pg_monitor', 'pg_checkpoint') ORDER BY 1;
SET client_min_messages = warning;
DROP SCHEMA adopt_m5, adopt_m6, adopt_m7 CASCADE;
RESET client_min_messages;
SELECT instaid_adopt.adopt_shard('adopt_m3', 413, renumber => true);
GRANT CREATE ON SCHEMA adopt5_m TO regress_adopter;
ALTER SEQUENCE adopt5_m.table_id_seq OWNER TO regress_adopter;
ALTER SCHEMA adopt5_m OWNER TO regress_adopter;
SET ROLE regress_adopter;
\set VERBOSITY terse
CALL instaid_adopt.adopt_shards('adopt%m%');
\set VERBOSITY default
RESET ROLE;
CALL instaid_adopt.adopt_shards('adopt%m%');
SELECT schema_name, shard_id FROM instaid.shards WHERE schema_name ~ '^adopt.+m' ORDER BY 1;

-- a sequence that this transaction has used before, and another one
CALL publish('adopt_t', 431);
CREATE SEQUENCE adopt_t.other;
BEGIN;
SELECT nextval('adopt_t.table_id_seq'), nextval('adopt_t.other');
SELECT instaid_adopt.adopt_shard('adopt_t');
SELECT sequence FROM instaid.shards WHERE schema_name = 'adopt_t';
ROLLBACK;
-- names without a schema are looked up where no other role has, or can put, what is called in their place
CREATE OR REPLACE FUNCTION adopt_t.next_id(OUT result bigint) LANGUAGE plpgsql AS $$
BEGIN
    result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23 | (431 << 10)
        | nextval('table_id_seq') % 1024;
    SET search_path = adopt_t, public;
END $$;
GRANT ALL ON SCHEMA adopt_t TO PUBLIC;
SET ROLE regress_adopter;
CREATE FUNCTION adopt_t.mod(bigint, integer) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''called''; END';
CREATE OPERATOR adopt_t.% (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = adopt_t.mod);
RESET ROLE;
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt_t')$$);
REVOKE CREATE ON SCHEMA adopt_t FROM PUBLIC;
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt_t')$$);
DROP OPERATOR adopt_t.% (bigint, integer);
ALTER FUNCTION adopt_t.mod(bigint, integer) OWNER TO CURRENT_USER;
CREATE TYPE adopt_t.odd AS (n bigint);
CREATE FUNCTION adopt_t.odd(text) RETURNS adopt_t.odd LANGUAGE sql RETURN ROW(1)::adopt_t.odd;
CREATE CAST (text AS adopt_t.odd) WITH FUNCTION adopt_t.odd(text) AS IMPLICIT;
-- what it SETs is no path of ours; it lasts as if it had been called by hand
SELECT instaid_adopt.adopt_shard('adopt_t');
SHOW search_path;
RESET search_path;
SELECT shard_id, sequence FROM instaid.shards WHERE schema_name = 'adopt_t';
SET client_min_messages = warning;
DROP SCHEMA adopt_t CASCADE;
RESET client_min_messages;
-- many schemas: one row of audit(), and a NOTICE for each
SELECT format('CALL publish(''adopt_z%s'', %s)', n, 4000 + n) FROM generate_series(1, 25) AS n \gexec
SELECT code, object, cure FROM instaid.audit() WHERE object ~ 'others$';
\set VERBOSITY terse
CALL instaid_adopt.adopt_shards('adopt\_z%', true);
CALL instaid_adopt.adopt_shards('adopt\_z%');
\set VERBOSITY default
SELECT count(*), min(shard_id), max(shard_id) FROM instaid.shards WHERE schema_name ~ '^adopt_z';
SET client_min_messages = warning;
SELECT format('DROP SCHEMA adopt_z%s CASCADE', n) FROM generate_series(1, 25) AS n \gexec
RESET client_min_messages;

-- several functions of a schema, one of which has an argument: one is next_id(), and the others call it
CREATE SCHEMA adopt_s;
CREATE TABLE adopt_s.items (id bigserial PRIMARY KEY, n integer);
CREATE TABLE adopt_s.users (id bigserial PRIMARY KEY, n integer);
CREATE FUNCTION adopt_s.items_id(OUT id bigint) LANGUAGE sql
    AS $$ SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23) + (424 << 10) + nextval('adopt_s.items_id_seq') % 1024 $$;
CREATE FUNCTION adopt_s.users_id(shard integer DEFAULT 424) RETURNS bigint LANGUAGE sql SECURITY DEFINER
    AS $$ SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23) + (shard << 10) + nextval('adopt_s.users_id_seq') % 1024 $$;
ALTER TABLE adopt_s.items ALTER id SET DEFAULT adopt_s.items_id();
ALTER TABLE adopt_s.users ALTER id SET DEFAULT adopt_s.users_id();
INSERT INTO adopt_s.items (n) VALUES (1);
INSERT INTO adopt_s.users (n) VALUES (1);
CREATE ROLE regress_user;
GRANT USAGE ON SCHEMA adopt_s TO regress_user;
GRANT INSERT ON adopt_s.items, adopt_s.users TO regress_user;
GRANT USAGE ON SEQUENCE adopt_s.users_id_seq TO regress_user;
CALL instaid_adopt.adopt_shards('adopt_s');
\df adopt_s.*
SET ROLE regress_user;
INSERT INTO adopt_s.items (n) VALUES (2);
INSERT INTO adopt_s.users (n) VALUES (2);
RESET ROLE;
SELECT t, count(DISTINCT id), array_agg(DISTINCT instaid.extract_shard_id(id)) AS shards
FROM (SELECT 'items', id FROM adopt_s.items UNION ALL SELECT 'users', id FROM adopt_s.users) AS r (t, id) GROUP BY t ORDER BY t;
SELECT adopt_s.users_id(5) AS other, instaid.extract_shard_id(adopt_s.users_id(424)) AS same, adopt_s.items_id() < adopt_s.next_id() AS above;
-- audit() watches the columns of both
SELECT table_name || '.' || column_name FROM instaid._id_columns WHERE table_name ~ '^adopt_s' ORDER BY 1;
DROP TABLE adopt_s.items, adopt_s.users;
-- a sequence of another schema
CREATE SCHEMA adopt_q;
CREATE SEQUENCE adopt_s.q;
CREATE FUNCTION adopt_q.next_id() RETURNS bigint LANGUAGE sql
    AS $$ SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23) + (425 << 10) + nextval('adopt_s.q') % 1024 $$;
SELECT instaid_adopt.adopt_shard('adopt_q');
SELECT code, cure FROM instaid.audit() WHERE object = 'adopt_q';
CREATE SCHEMA adopt_q2;
ALTER SEQUENCE adopt_s.q SET SCHEMA adopt_q2;
SELECT code, cure FROM instaid.audit() WHERE object = 'adopt_q';
ALTER SEQUENCE adopt_q2.q SET SCHEMA adopt_q;
SELECT code, cure FROM instaid.audit() WHERE object = 'adopt_q';
SET client_min_messages = warning;
DROP SCHEMA adopt_s, adopt_q, adopt_q2 CASCADE;
RESET client_min_messages;
DROP ROLE regress_user;

-- replace_copy(): a copy that cannot be adopted returns IDs of a shard, above its own
CREATE SCHEMA adopt_c;
CREATE SEQUENCE adopt_c.table_id_seq;
CREATE FUNCTION adopt_c.next_id(name text) RETURNS bigint LANGUAGE plpgsql
    AS $$ BEGIN RETURN (extract(epoch FROM now()) * 1000)::bigint << 22 | (7 << 12) | nextval('adopt_c.' || name) % 4096; END $$;
CREATE FUNCTION adopt_c.code() RETURNS varchar LANGUAGE plpgsql
    AS $$ BEGIN RETURN 'c-' || ((extract(epoch FROM now()) * 1000)::bigint - 1314220021721 << 23 | nextval('adopt_c.table_id_seq') % 4096); END $$;
CREATE FUNCTION adopt_c.hex() RETURNS text LANGUAGE plpgsql
    AS $$ BEGIN RETURN to_hex((extract(epoch FROM now()) * 1000)::bigint - 1314220021721 << 23 | nextval('adopt_c.table_id_seq') % 4096) || '-'; END $$;
CREATE FUNCTION adopt_c.pair() RETURNS bigint[] LANGUAGE sql
    AS $$ SELECT ARRAY[(extract(epoch FROM now()) * 1000)::bigint << 23 | nextval('adopt_c.table_id_seq')] $$;
CREATE TABLE adopt_c.t (id bigint PRIMARY KEY DEFAULT adopt_c.next_id('table_id_seq'), code text DEFAULT adopt_c.code());
INSERT INTO adopt_c.t SELECT FROM generate_series(1, 3);
SELECT try($$SELECT instaid.create_shard('adopt_c', 418)$$);
SELECT code, object, cure FROM instaid.audit() WHERE object ~ '^adopt_c' ORDER BY object COLLATE "C";
SELECT regexp_replace(try(format('SELECT instaid_adopt.replace_copy(%s)', arguments)), 'largest is \d+|time is \S+ \S+', '...', 'g')
FROM unnest(ARRAY['NULL, 418', '''adopt_c.code()''', '''adopt_c.pair()'', 418', '''adopt_c.code()'', 8192',
    '''adopt_c.code()'', 416', '''adopt_c.next_id(text)'', 418, ''2020-01-01 UTC''']) AS arguments;
SELECT regexp_replace(try($$SELECT instaid_adopt.replace_copy('adopt_c.hex()', 418)$$), 'returned \S+,', '...');
SELECT p.oid::regprocedure FROM pg_proc AS p WHERE pronamespace = 'adopt_c'::regnamespace ORDER BY p.oid::regprocedure::text;
SET ROLE regress_adopter;
SELECT try($$SELECT instaid_adopt.replace_copy('adopt_c.code()', 418)$$);
RESET ROLE;
GRANT INSERT ON adopt_c.t TO regress_adopter;
SELECT max(id) AS last FROM adopt_c.t \gset
SET client_min_messages = warning;     -- its epoch depends on the time of now
SELECT instaid_adopt.replace_copy('adopt_c.next_id(text)', 418);
SELECT regexp_replace(try($$SELECT instaid_adopt.replace_copy('adopt_c.code()', 419)$$), 'of \S+, with epoch \S+ \S+ \S+ owns', '...');
SELECT instaid_adopt.replace_copy('adopt_c.code()');
RESET client_min_messages;
INSERT INTO adopt_c.t DEFAULT VALUES
RETURNING id > :last AS above, instaid.extract_shard_id(id), regexp_replace(code, '\d+', '...'), instaid.extract_shard_id(substr(code, 3)::bigint) AS of_code;
SELECT schema_name, shard_id, epoch < '2011-01-01' AS is_early, sequence FROM instaid.shards WHERE schema_name = 'adopt_c';
SELECT code, object FROM instaid.audit() WHERE object ~ '^adopt_c' ORDER BY object COLLATE "C";
-- next_id() of another layout gets another name
CREATE SCHEMA adopt_d;
CREATE SEQUENCE adopt_d.table_id_seq;
CREATE FUNCTION adopt_d.next_id() RETURNS bigint LANGUAGE sql
    AS $$ SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 22) + nextval('adopt_d.table_id_seq') % 4096 $$;
CREATE TABLE adopt_d.t (id bigint PRIMARY KEY DEFAULT adopt_d.next_id());
INSERT INTO adopt_d.t DEFAULT VALUES;
SELECT instaid_adopt.replace_copy('adopt_d.next_id()', 419);
INSERT INTO adopt_d.t DEFAULT VALUES;
SELECT instaid.extract_shard_id(max(id)) FROM adopt_d.t;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'adopt_d.t'::regclass;
-- what returns IDs of the shard is refused: next_id() would call itself
CREATE FUNCTION adopt_d.next_id(count regclass, name text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
SELECT try(format('SELECT instaid_adopt.replace_copy(%L)', p.oid::regprocedure)) FROM pg_proc AS p
WHERE pronamespace = 'adopt_d'::regnamespace AND proname <> 'next_ids' ORDER BY p.oid::regprocedure::text;
-- next_id() that got its old text back calls the shard's again
CREATE OR REPLACE FUNCTION adopt_d.next_id() RETURNS bigint LANGUAGE sql
    AS $$ SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 22) + nextval('adopt_d.table_id_seq') % 4096 $$;
SELECT cure FROM instaid.audit() WHERE object = 'adopt_d.next_id()';
SELECT instaid_adopt.replace_copy('adopt_d.next_id()');
INSERT INTO adopt_d.t SELECT FROM generate_series(1, 3);
SELECT count(*), instaid.extract_shard_id(max(id)) FROM adopt_d.t;
SELECT code FROM instaid.audit() WHERE object ~ '^adopt_d';
SET client_min_messages = warning;
DROP SCHEMA adopt_c, adopt_d CASCADE;
RESET client_min_messages;

-- renumber_shard(): new IDs name another shard, and are above the old ones
SELECT try($$SELECT instaid.create_shard('adopt_n', 413)$$);
SELECT max(id) AS last FROM adopt_m4.t \gset
SELECT 'adopt_m4.next_ids(integer,regclass)'::regprocedure::oid AS oid \gset
ALTER FUNCTION adopt_m4.next_ids(integer, regclass) COST 7;
GRANT EXECUTE ON FUNCTION adopt_m4.next_ids(integer, regclass) TO regress_adopter;
COMMENT ON FUNCTION adopt_m4.next_ids(integer, regclass) IS 'kept';
PREPARE take AS INSERT INTO adopt_m4.t DEFAULT VALUES RETURNING id > :last AS above, instaid.extract_shard_id(id);
EXECUTE take;
SELECT instaid.renumber_shard('adopt_m4', 416);
EXECUTE take;
SELECT instaid.extract_shard_id(adopt_m4.next_id('adopt_m4.table_id_seq')), instaid.extract_shard_id(i) FROM adopt_m4.next_ids(1) AS i;
SELECT oid = :oid AS same, procost, obj_description(oid, 'pg_proc'), proacl IS NOT NULL AS has_acl, prosrc FROM pg_proc
WHERE oid = 'adopt_m4.next_ids(integer,regclass)'::regprocedure;
SELECT shard_id, epoch, frozen FROM instaid.shards WHERE schema_name = 'adopt_m4';
SELECT code FROM instaid.audit() WHERE object ~ 'adopt_m4';
-- IDs ahead of the clock: those of a smaller shard ID are above them, also after a freeze
SET client_min_messages = error;
SELECT instaid.create_shard('adopt_o', 500);
CREATE SEQUENCE adopt_o.own;
CREATE TABLE adopt_o.t (id bigint PRIMARY KEY DEFAULT adopt_o.next_id('adopt_o.own'));
SELECT instaid.advance_past(q, instaid.max_id(now() + interval '1 h'), instaid.default_epoch()) FROM instaid._shard_sequences('adopt_o') AS q;
SELECT adopt_o.next_id() AS id, adopt_o.next_id('adopt_o.own') AS own, instaid.renumber_shard('adopt_o', 3) \gset old_
SELECT adopt_o.next_id() AS id, adopt_o.next_id('adopt_o.own') AS own, instaid.freeze_shard('adopt_o') \gset new_
SELECT instaid.renumber_shard('adopt_o', 2), instaid.thaw_shard('adopt_o');
SELECT :new_id > :old_id AS above, :new_own > :old_own AS own, adopt_o.next_id() > :new_id AS thawed, adopt_o.next_id('adopt_o.own') > :new_own AS own;
DROP SCHEMA adopt_o CASCADE;
RESET client_min_messages;
-- a frozen shard stays frozen; the old shard ID is free, and the new one taken
SELECT instaid.freeze_shard('adopt_m4');
SELECT instaid.renumber_shard('adopt_m4', 417);
SELECT t AS error FROM try('EXECUTE take') AS t LIMIT 1;
SELECT shard_id, frozen, instaid.extract_shard_id(last_id) FROM instaid.shards WHERE schema_name = 'adopt_m4';
SELECT instaid.thaw_shard('adopt_m4');
EXECUTE take;
SELECT instaid.create_shard('adopt_n', 416);
SELECT try(format('SELECT instaid.renumber_shard(%s)', arguments))
FROM unnest(ARRAY['''adopt_n'', 417', '''adopt_n'', 8192', '''adopt_n'', -1', '''adopt_n'', NULL', '''nowhere'', 418',
    '''instaid'', 418', '''adopt_n'', 416', 'repeat(''x'', 64), 418']) AS arguments;
SET ROLE regress_adopter;
SELECT try($$SELECT instaid.renumber_shard('adopt_n', 418)$$);
RESET ROLE;
-- what is left after a ROLLBACK
BEGIN;
SELECT instaid.renumber_shard('adopt_n', 418);
SELECT instaid.extract_shard_id(adopt_n.next_id());
ROLLBACK;
SELECT instaid.extract_shard_id(adopt_n.next_id());
-- a schema whose name looks like a declaration
ALTER SCHEMA adopt_n RENAME TO "shard 416, epoch";
SELECT instaid.renumber_shard('shard 416, epoch', 8191);
SELECT instaid.extract_shard_id("shard 416, epoch".next_id());
SELECT try($$SELECT instaid.create_shard('adopt_n', 417)$$);
SET client_min_messages = warning;
DROP SCHEMA "adopt ""m"" 1", adopt_m2, adopt_m3, adopt_m4, adopt5_m, "shard 416, epoch" CASCADE;
RESET client_min_messages;

-- a serial column: roles that can insert need USAGE on the shard's sequence
CREATE TABLE adopt1.s (id bigserial PRIMARY KEY, n integer);
INSERT INTO adopt1.s (n) SELECT generate_series(1, 3);
GRANT INSERT ON adopt1.s TO regress_adopter;
GRANT INSERT (n) ON adopt1.s TO PUBLIC;
SELECT * FROM instaid_adopt.adopt_column('adopt1.s', 'id', dry_run => true);
\d adopt1.s
GRANT USAGE ON SEQUENCE adopt1.table_id_seq TO regress_adopter, PUBLIC;
SELECT * FROM instaid_adopt.adopt_column('adopt1.s', 'id');
\d adopt1.s
INSERT INTO adopt1.s (n) VALUES (4);
SELECT n, instaid.extract_shard_id(id) FROM adopt1.s ORDER BY id;
SELECT * FROM instaid_adopt.adopt_column('adopt1.s', 'id');

-- a sequence that another column uses is not dropped
CREATE TABLE adopt1.s2 (id bigserial);
CREATE TABLE adopt1.s3 (id bigint DEFAULT nextval('adopt1.s2_id_seq'), other integer DEFAULT 5);
SELECT * FROM instaid_adopt.adopt_column('adopt1.s2', 'id');
SELECT * FROM instaid_adopt.adopt_column('adopt1.s3', 'id');
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid IN ('adopt1.s2'::regclass, 'adopt1.s3'::regclass) ORDER BY 1;

-- nor one that another column of the same table uses, with the same default
CREATE TABLE adopt1.s4 (id bigserial, other integer DEFAULT nextval('adopt1.s4_id_seq')) PARTITION BY RANGE (id);
CREATE TABLE adopt1.s4_all PARTITION OF adopt1.s4 DEFAULT;
SELECT * FROM instaid_adopt.adopt_column('adopt1.s4', 'id', true);
SELECT * FROM instaid_adopt.adopt_column('adopt1.s4', 'id');
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid IN ('adopt1.s4'::regclass, 'adopt1.s4_all'::regclass) ORDER BY 1;
-- a sequence whose name needs quotes is dropped
CREATE TABLE adopt1."s\5 'x'" (id bigserial);
CREATE TABLE adopt1.s5_heir () INHERITS (adopt1."s\5 'x'");
SELECT * FROM instaid_adopt.adopt_column('adopt1."s\5 ''x''"', 'id');

-- identity columns, a column without a default, and a column of type instaid.id with
-- another default
CREATE TABLE adopt1."I" ("Id" bigint GENERATED ALWAYS AS IDENTITY (START 1000), by_default smallint GENERATED BY DEFAULT AS IDENTITY);
INSERT INTO adopt1."I" DEFAULT VALUES;
SELECT * FROM instaid_adopt.adopt_column('adopt1."I"', 'Id');
SELECT * FROM instaid_adopt.adopt_column('adopt1."I"', 'by_default');
\d adopt1."I"
INSERT INTO adopt1."I" DEFAULT VALUES RETURNING instaid.extract_shard_id("Id"), instaid.extract_shard_id(by_default);
CREATE TABLE adopt1.plain (id bigint PRIMARY KEY, j instaid.id DEFAULT 5);
SELECT * FROM instaid_adopt.adopt_column('adopt1.plain', 'id');
SELECT * FROM instaid_adopt.adopt_column('adopt1.plain', 'j');
INSERT INTO adopt1.plain DEFAULT VALUES RETURNING instaid.extract_shard_id(id), instaid.extract_shard_id(j);

-- an integer column becomes bigint, with all columns that refer to it, through two
-- tables and in partitions
CREATE TABLE adopt1.users (id serial PRIMARY KEY, boss integer REFERENCES adopt1.users, big bigint REFERENCES adopt1.users);
CREATE TABLE adopt1.profiles (user_id integer PRIMARY KEY REFERENCES adopt1.users ON DELETE CASCADE);
CREATE TABLE adopt1.prefs (user_id smallint REFERENCES adopt1.profiles, part integer) PARTITION BY LIST (part);
CREATE TABLE adopt1.prefs1 PARTITION OF adopt1.prefs FOR VALUES IN (1);
CREATE TABLE adopt1.prefs2 (part integer, user_id smallint);
ALTER TABLE adopt1.prefs ATTACH PARTITION adopt1.prefs2 FOR VALUES IN (2);
CREATE TABLE adopt1.pairs (a integer, b integer REFERENCES adopt1.users, unrelated integer);
INSERT INTO adopt1.users (boss) VALUES (NULL), (1), (2);
INSERT INTO adopt1.profiles SELECT id FROM adopt1.users;
INSERT INTO adopt1.prefs VALUES (1, 1), (2, 2);
INSERT INTO adopt1.pairs VALUES (1, 3, 5);
SELECT statement FROM instaid_adopt.adopt_column('adopt1.users', 'id', true) AS statement;
-- the error names everything that prevents the change, even in a dry run
CREATE DOMAIN small AS integer;
CREATE DOMAIN smaller AS small;
CREATE TYPE typed AS (user_id integer);
BEGIN;
CREATE TABLE adopt1.odd_child (user_id small REFERENCES adopt1.users);
CREATE TABLE adopt1.odd_grandchild (user_id smaller REFERENCES adopt1.users);
CREATE TABLE adopt1.odd_typed OF typed (FOREIGN KEY (user_id) REFERENCES adopt1.users);
CREATE TABLE adopt1.odd_row (holds adopt1.profiles);
CREATE TABLE adopt1.odd_generated (user_id integer REFERENCES adopt1.users, twice integer GENERATED ALWAYS AS (user_id * 2) STORED);
CREATE TABLE adopt1.odd_key (user_id integer REFERENCES adopt1.users) PARTITION BY RANGE (user_id);
CREATE TABLE adopt1.odd_expression (user_id integer REFERENCES adopt1.users) PARTITION BY RANGE ((user_id / 2));
CREATE TABLE adopt1.odd_rule (user_id integer REFERENCES adopt1.users);
CREATE RULE odd AS ON DELETE TO adopt1.odd_rule WHERE old.user_id < 3 DO INSTEAD NOTHING;
CREATE POLICY odd ON adopt1.odd_rule USING (user_id > 0);
CREATE FUNCTION adopt1.odd_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE TRIGGER odd BEFORE UPDATE OF user_id ON adopt1.odd_rule FOR EACH ROW EXECUTE FUNCTION adopt1.odd_trigger();
CREATE FUNCTION adopt1.odd_function() RETURNS integer LANGUAGE sql BEGIN ATOMIC SELECT user_id FROM adopt1.odd_rule; END;
SET LOCAL client_min_messages = error;     -- there can be a warning of wal_level
CREATE PUBLICATION regress_odd FOR TABLE adopt1.odd_rule WHERE (user_id > 4);
RESET client_min_messages;
CREATE VIEW adopt1.bosses AS SELECT boss FROM adopt1.users;
CREATE TABLE adopt1.odd_owner (user_id integer REFERENCES adopt1.users);
ALTER TABLE adopt1.odd_owner OWNER TO regress_adopter;
SELECT regexp_split_to_table(try($$SELECT * FROM instaid_adopt.adopt_column('adopt1.users', 'id', true)$$), '; ');
CREATE ROLE regress_adopter2;
GRANT ALL ON SCHEMA adopt1 TO regress_adopter2;
ALTER TABLE adopt1.users OWNER TO regress_adopter2;
SET ROLE regress_adopter2;
SELECT regexp_matches(try($$SELECT * FROM instaid_adopt.adopt_column('adopt1.users', 'id', true)$$), 'adopt1.odd_owner[^;]*');
ROLLBACK;
-- what it cannot create again as it was, or must not look at
CREATE ROLE regress_viewer;
BEGIN;
GRANT USAGE ON SCHEMA adopt1 TO regress_viewer, regress_adopter;
CREATE VIEW adopt1.whole AS SELECT boss AS id FROM adopt1.users;
CREATE VIEW adopt1.defaulted AS SELECT id FROM adopt1.whole;
ALTER VIEW adopt1.defaulted ALTER id SET DEFAULT 5;
CREATE TEMPORARY VIEW temporary AS SELECT id FROM adopt1.whole;
CREATE VIEW adopt1.granted AS SELECT id FROM adopt1.users;
GRANT SELECT ON adopt1.granted TO regress_adopter WITH GRANT OPTION;
CREATE VIEW adopt1.granted_column AS SELECT id FROM adopt1.users;
GRANT SELECT (id) ON adopt1.granted_column TO regress_adopter WITH GRANT OPTION;
SET LOCAL ROLE regress_adopter;
GRANT SELECT ON adopt1.granted TO regress_viewer;
GRANT SELECT (id) ON adopt1.granted_column TO regress_viewer;
RESET ROLE;
CREATE MATERIALIZED VIEW adopt1.mat AS SELECT id, id / 2 AS half FROM adopt1.users;
CREATE INDEX clustered ON adopt1.mat (id);
ALTER MATERIALIZED VIEW adopt1.mat CLUSTER ON clustered;
CREATE STATISTICS adopt1.stats ON id, half FROM adopt1.mat;
CREATE INDEX targeted ON adopt1.mat ((half + 1));
ALTER INDEX adopt1.targeted ALTER 1 SET STATISTICS 7;
CREATE MATERIALIZED VIEW adopt1.distinct AS SELECT id FROM adopt1.users;
ALTER MATERIALIZED VIEW adopt1.distinct ALTER id SET (n_distinct = 5);
CREATE MATERIALIZED VIEW adopt1.toasted WITH (toast.autovacuum_enabled = off) AS SELECT id, ''::text FROM adopt1.users;
CREATE VIEW adopt1.of_extension AS SELECT id FROM adopt1.users;
ALTER EXTENSION plpgsql ADD VIEW adopt1.of_extension;
CREATE FUNCTION adopt1.row_of_view() RETURNS SETOF adopt1.whole LANGUAGE sql AS 'SELECT 1';
CREATE TABLE adopt1.other (id integer, w adopt1.whole[]);
CREATE POLICY of_view ON adopt1.other USING (id IN (SELECT w.id FROM adopt1.whole AS w));
CREATE RULE disabled AS ON DELETE TO adopt1.profiles WHERE old.user_id < 3 DO INSTEAD NOTHING;
ALTER TABLE adopt1.profiles DISABLE RULE disabled;
CREATE FUNCTION adopt1.odd_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE TRIGGER disabled BEFORE UPDATE OF user_id ON adopt1.prefs FOR EACH ROW EXECUTE FUNCTION adopt1.odd_trigger();
ALTER TABLE adopt1.prefs2 DISABLE TRIGGER disabled;
CREATE VIEW adopt1.of_viewer AS SELECT id FROM adopt1.users;
ALTER VIEW adopt1.of_viewer OWNER TO regress_viewer;
CREATE SCHEMA regress_viewer AUTHORIZATION regress_viewer;
CREATE VIEW regress_viewer.elsewhere AS SELECT id FROM adopt1.users;
CREATE TABLE regress_viewer.t (n integer);
ALTER TABLE regress_viewer.t OWNER TO regress_viewer;
CREATE VIEW adopt1.names_other AS SELECT id FROM adopt1.users, regress_viewer.t;
SELECT regexp_split_to_table(try($$SELECT * FROM instaid_adopt.adopt_column('adopt1.users', 'id', true)$$), '; ');
ROLLBACK;
DROP ROLE regress_viewer;
-- views that name each other
BEGIN;
CREATE VIEW adopt1.one AS SELECT id FROM adopt1.users;
CREATE VIEW adopt1.two AS SELECT id FROM adopt1.one;
CREATE OR REPLACE VIEW adopt1.one AS SELECT u.id FROM adopt1.users AS u, adopt1.two;
SELECT try($$SELECT * FROM instaid_adopt.adopt_column('adopt1.users', 'id', true)$$);
ROLLBACK;
-- columns named like references stay as they are, and are named
CREATE TABLE adopt1.boxes (id serial, box_id integer);
CREATE TABLE adopt1.categories (id bigserial, boxes_id smallint, sandbox_id integer);
CREATE TABLE adopt1.named (box_id bigint, big_box_ids integer[], boxe_id integer, boxid integer, category_id integer,
    box_id_2 integer, other_box_id integer REFERENCES adopt1.users);
SELECT statement FROM instaid_adopt.adopt_column('adopt1.boxes', 'id', true) AS statement;
SELECT statement FROM instaid_adopt.adopt_column('adopt1.categories', 'id', true) AS statement;
DROP TABLE adopt1.boxes, adopt1.categories, adopt1.named;
SELECT statement FROM instaid_adopt.adopt_column('adopt1.users', 'id') AS statement;
SELECT attrelid::regclass, attname, atttypid::regtype FROM pg_attribute
WHERE attrelid::regclass::text ~ '^adopt1\.(users|profiles|prefs|pairs)\d?$' AND attnum > 0 ORDER BY 1, 2;
SELECT conrelid::regclass, convalidated FROM pg_constraint
WHERE contype = 'f' AND conrelid::regclass::text ~ '^adopt1\.' ORDER BY conrelid, conname;
INSERT INTO adopt1.users (boss) VALUES (3);
WITH u AS (SELECT max(id) AS id FROM adopt1.users), p AS (INSERT INTO adopt1.profiles SELECT id FROM u RETURNING *)
SELECT instaid.extract_shard_id(user_id) FROM p;
INSERT INTO adopt1.prefs SELECT max(user_id), 2 FROM adopt1.profiles;
SELECT try($$INSERT INTO adopt1.prefs VALUES (99, 1)$$);
DELETE FROM adopt1.prefs;
DELETE FROM adopt1.pairs;
UPDATE adopt1.users SET boss = NULL;
DELETE FROM adopt1.users WHERE id > 3;
SELECT count(*) FROM adopt1.profiles;

-- roles that can insert through a view or into a child table need rights on the
-- sequence and on next_id()
CREATE TABLE adopt1.parent (id bigint, n integer);
CREATE TABLE adopt1.child () INHERITS (adopt1.parent);
CREATE VIEW adopt1.window AS SELECT * FROM adopt1.parent;
REVOKE USAGE ON SEQUENCE adopt1.table_id_seq FROM regress_adopter, PUBLIC;
GRANT INSERT ON adopt1.window TO regress_adopter;
CREATE ROLE "Regress 3";
GRANT INSERT ON adopt1.child TO "Regress 3";
REVOKE EXECUTE ON FUNCTION adopt1.next_id() FROM PUBLIC;
SELECT * FROM instaid_adopt.adopt_column('adopt1.parent', 'id', true);
GRANT EXECUTE ON FUNCTION adopt1.next_id() TO PUBLIC;
-- a child table with a default of its own is refused
ALTER TABLE adopt1.child ALTER id SET DEFAULT adopt4.next_id();
SELECT try(format('SELECT instaid_adopt.adopt_column(''adopt1.parent'', %L)', repeat('x', 64)));
SELECT try($$SELECT * FROM instaid_adopt.adopt_column('adopt1.parent', 'id')$$);
DROP TABLE adopt1.parent CASCADE;
DROP ROLE "Regress 3";

-- a partitioned table, and not one of its partitions
CREATE TABLE adopt1.logs (id serial, part integer) PARTITION BY LIST (part);
CREATE TABLE adopt1.logs1 PARTITION OF adopt1.logs FOR VALUES IN (1);
INSERT INTO adopt1.logs (part) VALUES (1);
SELECT try($$SELECT * FROM instaid_adopt.adopt_column('adopt1.logs1', 'id')$$);
SELECT * FROM instaid_adopt.adopt_column('adopt1.logs', 'id');
INSERT INTO adopt1.logs (part) VALUES (1);
INSERT INTO adopt1.logs1 (part) VALUES (1);
SELECT instaid.extract_shard_id(id) FROM adopt1.logs ORDER BY id;

-- what adopt_column() refuses
SELECT try($$SELECT * FROM instaid_adopt.adopt_column(NULL, 'id')$$,
    $$SELECT * FROM instaid_adopt.adopt_column('adopt1.plain', 'nothing')$$,
    $$SELECT * FROM instaid_adopt.adopt_column('adopt1.plain', 'ctid')$$,
    $$SELECT * FROM instaid_adopt.adopt_column(999999999::oid, 'id')$$,
    $$SELECT * FROM instaid_adopt.adopt_column('adopt1.odd', 'code')$$,
    $$SELECT * FROM instaid_adopt.adopt_column('adopt5.t', 'id')$$);
CREATE VIEW adopt1.v AS SELECT id FROM adopt1.plain;
SELECT try($$SELECT * FROM instaid_adopt.adopt_column('adopt1.v', 'id')$$);
CREATE TABLE adopt1.gen (id bigint GENERATED ALWAYS AS (n * 2) STORED, n bigint);
SELECT try($$SELECT * FROM instaid_adopt.adopt_column('adopt1.gen', 'id')$$);
SET ROLE regress_adopter;
SELECT try($$SELECT * FROM instaid_adopt.adopt_column('adopt1.s3', 'id')$$);
RESET ROLE;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT try($$SELECT * FROM instaid_adopt.adopt_column('adopt1.gen', 'n')$$);
ROLLBACK;
CREATE TABLE adopt1.ahead (id bigserial);
INSERT INTO adopt1.ahead VALUES (1), (instaid.make_id('2046-01-01 UTC', 401, 7));
SELECT regexp_replace(try($$SELECT * FROM instaid_adopt.adopt_column('adopt1.ahead', 'id')$$), 'above \d+', 'above ...');
DELETE FROM adopt1.ahead WHERE id > 1;
INSERT INTO adopt1.ahead VALUES (instaid.make_id(now() + interval '1 hour', 401, 7));
SELECT regexp_replace(try($$SELECT * FROM instaid_adopt.adopt_column('adopt1.ahead', 'id', true)$$),
    '\d{19}|\d{4}-\d\d-\d\d [^ ]*', '...', 'g');
\d adopt1.ahead

DROP OWNED BY regress_adopter CASCADE;
DROP ROLE regress_adopter;
-- objects of a role without rights on the sequence do not prevent the adoption
CALL publish('adopt_r', 471);
CREATE ROLE regress_stranger;
CREATE SCHEMA regress_stranger AUTHORIZATION regress_stranger;
SELECT 'adopt_r.table_id_seq'::regclass::oid AS sequence \gset
SET ROLE regress_stranger;
CREATE TEMPORARY TABLE lure (id bigint DEFAULT nextval(:sequence::regclass));
CREATE TABLE regress_stranger.lure (id bigint DEFAULT nextval(:sequence::regclass));
SET check_function_bodies = off;
CREATE FUNCTION regress_stranger.next_ids(count integer, sequence regclass DEFAULT :'sequence') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 77, epoch 1577836800000';
RESET check_function_bodies;
RESET ROLE;
SET client_min_messages = warning;
-- but what they have left in this session
SELECT try($$SELECT instaid_adopt.adopt_shard('adopt_r', 471)$$);
DISCARD TEMP;
SELECT instaid_adopt.adopt_shard('adopt_r', 471);
SELECT code, object FROM instaid.audit() WHERE object ~ '^(adopt_r|regress_stranger)' ORDER BY object COLLATE "C", code COLLATE "C";
DROP OWNED BY regress_stranger CASCADE;
DROP ROLE regress_stranger;
DROP SCHEMA adopt_r CASCADE;
RESET client_min_messages;

SET client_min_messages = warning;
DROP SCHEMA adopt1, adopt2, adopt4, adopt5 CASCADE;
DROP DOMAIN smaller, small;
DROP TYPE typed;
RESET client_min_messages;

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
SELECT instaid_adopt.adopt_shard('regress_citus', 62);
SHOW citus.enable_ddl_propagation;
COMMIT;
SHOW citus.enable_ddl_propagation;
DROP EVENT TRIGGER regress_citus;
DROP SCHEMA regress_citus CASCADE;

SELECT try(format('SELECT instaid_adopt.adopt_shard(%L, 8)', repeat('x', 64)));

-- another version of instaid is refused, whatever is called
BEGIN;
UPDATE pg_extension SET extversion = '1.1' WHERE extname = 'instaid';
SELECT try('SELECT instaid_adopt.' || call) FROM unnest(ARRAY[
    $$adopt_shard('regress_n')$$, $$replace_copy('now()')$$, $$adopt_column('pg_class', 'oid')$$]) AS call;
SELECT try('CALL instaid_adopt.adopt_shards()');
ROLLBACK;

-- it holds nothing: what it has adopted goes on without it
CALL publish('adopt_gone', 70);
CREATE TABLE adopt_gone.photos (id bigint PRIMARY KEY DEFAULT adopt_gone.next_id(), n serial);
SELECT instaid_adopt.adopt_shard('adopt_gone');
SELECT count(*) FROM instaid_adopt.adopt_column('adopt_gone.photos', 'n');
DROP EXTENSION instaid_adopt;
INSERT INTO adopt_gone.photos DEFAULT VALUES;
SELECT instaid.extract_shard_id(id) AS id, instaid.extract_shard_id(n) AS n FROM adopt_gone.photos;
-- 18 shows the place in the script, too
\set SHOW_CONTEXT never
CREATE SCHEMA instaid_adopt;
CREATE EXTENSION instaid_adopt;
\set SHOW_CONTEXT errors
DROP SCHEMA instaid_adopt;
CREATE EXTENSION instaid_adopt;
DROP EXTENSION instaid;
DROP SCHEMA adopt_gone CASCADE;
