-- The language instaid: declarations of shards, those that it refuses, and sessions
-- that notice a change of a declaration.
SET timezone = 'UTC';
SET datestyle = 'ISO';
CREATE SCHEMA regress_d;
SET search_path = regress_d, public;
CREATE SEQUENCE ids;

-- A declaration by hand, with white space around it, and the functions that refer to it
CREATE FUNCTION next_ids(count integer, sequence regclass DEFAULT 'ids') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS $$
    shard 5, epoch 1583020799999
$$;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE instaid STRICT COST 1 AS 'as next_ids(integer, regclass)';
CREATE FUNCTION next_id(sequence regclass) RETURNS instaid.id LANGUAGE instaid STRICT COST 1 AS 'as next_ids(integer, regclass)';
SELECT schema_name, shard_id, epoch, sequence FROM instaid.shards;
CREATE SEQUENCE own;
SELECT instaid.extract_shard_id(next_id()), instaid.extract_shard_id(next_id('own')),
    (SELECT count(DISTINCT id) FROM next_ids(3000) AS id), (SELECT count(*) FROM next_ids(2, 'own')),
    instaid.extract_timestamp(next_id(), '2020-02-29 23:59:59.999 UTC') BETWEEN now() - interval '1 s' AND clock_timestamp() + interval '1 s' AS of_now;
SELECT pg_typeof(next_id()), pg_typeof(next_id('own'));
SELECT next_id(NULL), (SELECT count(*) FROM next_ids(NULL)), (SELECT count(*) FROM next_ids(1, NULL));
-- as a default, the function is called without a plan of its own
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO photos (n) VALUES (1);
INSERT INTO photos (n) SELECT generate_series(1, 3000) RETURNING n, id \g /dev/null
COPY photos (n) FROM stdin;
1
2
\.
SELECT count(DISTINCT instaid.extract_shard_id(id)), count(*) FROM photos;
SELECT count(*) FROM (SELECT n, lag(n) OVER (ORDER BY id) AS before FROM photos WHERE n > 2) AS v WHERE before > n;

-- Declarations that are refused.  Each error says what is wrong and what is legal.
CREATE FUNCTION refuse(body text, declared_default text DEFAULT $$DEFAULT 'regress_d.ids'$$) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM try(format('CREATE FUNCTION regress_e.next_ids(count integer, sequence regclass %s)'
        ' RETURNS SETOF bigint LANGUAGE instaid STRICT AS %L', declared_default, body)) AS line WHERE line !~ '^HINT: Use instaid\.create_shard\(\)';
END $$;
CREATE SCHEMA regress_e;
SELECT refuse(body) FROM (VALUES
    (1, ''), (2, 'Shard 5, epoch 1314220021721'), (3, 'shard'), (4, 'shard five, epoch 1314220021721'),
    (5, 'shard 8192, epoch 1314220021721'), (6, 'shard 99999999999999999999, epoch 1314220021721'),
    (7, 'shard -1, epoch 1314220021721'), (8, 'shard 5'), (9, 'shard 5, 1314220021721'),
    (10, 'shard 5, epoch'), (11, 'shard 5, epoch infinity'), (12, 'shard 5, epoch 2011-08-24'),
    (13, 'shard 5, epoch 2011-08-24 21:07:01.721+00'), (14, 'shard 5, epoch -'),
    (15, 'shard 5, epoch +5'), (16, 'shard 5, epoch 1314220021721.5'),
    (17, 'shard 5, epoch 1314220021721, cache 5'), (18, 'shard 5, epoch 99999999999999999999'),
    (19, 'shard 5, epoch -300000000000000'), (20, 'shard 5,  epoch 1314220021000'),
    (21, 'as next_ids(integer, regclass)'), (22, repeat(' ', 2000) || 'shard 5, epoch 1314220021000'),
    (23, 'shard 5, frozen'), (24, 'shard 5, epoch 1314220021000, frozen'), (25, 'frozen')) AS v (n, body) ORDER BY n;
-- all these errors have the same hint
SELECT try($$CREATE FUNCTION regress_e.next_ids(count integer, sequence regclass DEFAULT 'ids') RETURNS SETOF bigint LANGUAGE instaid STRICT AS 'x'$$);
SELECT refuse('shard 6, epoch 1583020799999', d) FROM (VALUES (1, ''), (2, 'DEFAULT NULL'), (3, 'DEFAULT regress_d.photos''::regclass'),
    (4, $$DEFAULT 'regress_d.photos'$$), (5, $$DEFAULT ('ids'::text)::regclass$$), (6, $$DEFAULT now()::text::regclass$$), (7, $$DEFAULT 4$$), (8, $$DEFAULT '-'$$)) AS v (n, d) WHERE n <> 3 ORDER BY n;
-- signatures and attributes that are refused
SELECT try('CREATE FUNCTION regress_e.' || f) FROM (VALUES
    (1, $$next_id(integer) RETURNS bigint LANGUAGE instaid STRICT AS 'as next_ids(integer, regclass)'$$),
    (2, $$make_id() RETURNS bigint LANGUAGE instaid STRICT AS 'as next_ids(integer, regclass)'$$),
    (3, $$next_id() RETURNS integer LANGUAGE instaid STRICT AS 'as next_ids(integer, regclass)'$$),
    (4, $$next_id() RETURNS SETOF bigint LANGUAGE instaid STRICT AS 'as next_ids(integer, regclass)'$$),
    (5, $$next_ids(integer, regclass DEFAULT 'ids') RETURNS bigint LANGUAGE instaid STRICT AS 'shard 6, epoch 1583020799999'$$),
    (6, $$next_id() RETURNS trigger LANGUAGE instaid STRICT AS 'as next_ids(integer, regclass)'$$),
    (7, $$next_id() RETURNS event_trigger LANGUAGE instaid STRICT AS 'as next_ids(integer, regclass)'$$),
    (8, $$next_id() RETURNS bigint LANGUAGE instaid AS 'as next_ids(integer, regclass)'$$),
    (9, $$next_id() RETURNS bigint LANGUAGE instaid STRICT STABLE AS 'as next_ids(integer, regclass)'$$),
    (10, $$next_id() RETURNS bigint LANGUAGE instaid STRICT PARALLEL SAFE AS 'as next_ids(integer, regclass)'$$),
    (11, $$next_id() RETURNS bigint LANGUAGE instaid STRICT AS 'as next_ids(integer, regclass)'$$),
    (12, $$next_id() RETURNS bigint LANGUAGE instaid STRICT AS 'shard 5, epoch 1583020799999'$$)) AS v (n, f) ORDER BY n;
SELECT try($$CREATE PROCEDURE regress_e.next_id() LANGUAGE instaid AS 'as next_ids(integer, regclass)'$$);
SELECT try('DO LANGUAGE instaid ''shard 5''');

-- a second epoch on one sequence repeats IDs, as audit() says; a second shard ID does not
SELECT refuse('shard 6, epoch 1583020800000');
SELECT code, severity, object FROM instaid.audit() WHERE object ~ '^regress_[de]$';
DROP FUNCTION regress_e.next_ids(integer, regclass);
SELECT refuse('shard 6, epoch 1583020799999');
SELECT schema_name, shard_id, sequence FROM instaid.shards ORDER BY shard_id;
DROP FUNCTION regress_e.next_ids(integer, regclass);

-- A restore creates functions with check_function_bodies = off, perhaps before the
-- objects that they need.  Their bodies are still checked.
SET check_function_bodies = off;
CREATE FUNCTION regress_e.next_id() RETURNS bigint LANGUAGE instaid STRICT COST 1 AS 'as next_ids(integer, regclass)';
SELECT refuse('shard 9000, epoch 1583020799999');
SELECT refuse('shard 6, epoch 1583020800000');
RESET check_function_bodies;
SELECT instaid.extract_shard_id(regress_e.next_id());
DROP SCHEMA regress_e CASCADE;

-- A session that has used the function notices CREATE OR REPLACE, even in the same
-- statement, and the rollback of it.
SELECT instaid.extract_shard_id(next_id());
BEGIN;
CREATE OR REPLACE FUNCTION next_ids(count integer, sequence regclass DEFAULT 'ids') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 7, epoch 1583020799999';
SELECT instaid.extract_shard_id(next_id()), (SELECT instaid.extract_shard_id(id) FROM next_ids(1) AS id);
ROLLBACK;
SELECT instaid.extract_shard_id(next_id()), (SELECT instaid.extract_shard_id(id) FROM next_ids(1) AS id);
CREATE FUNCTION redeclare(shard_id integer) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION next_ids(count integer, sequence regclass DEFAULT ''ids'') RETURNS SETOF bigint
        LANGUAGE instaid STRICT COST 1 AS ''shard %s, epoch 1583020799999''', shard_id);
    RETURN shard_id;
END $$;
SELECT redeclare(n), instaid.extract_shard_id(next_id()) FROM generate_series(5, 8) AS n;
SELECT schema_name, shard_id FROM instaid.shards;
-- another sequence as the default
CREATE OR REPLACE FUNCTION next_ids(count integer, sequence regclass DEFAULT 'own') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 5, epoch 1583020799999';
SELECT last_value AS before FROM own \gset
SELECT instaid.extract_shard_id(next_id());
SELECT last_value > :before AS moved FROM own;
SELECT shard_id, sequence FROM instaid.shards;

-- VACUUM FULL can put a row where the same transaction had written another.
CREATE SCHEMA regress_v;
CREATE SEQUENCE regress_v.s;
VACUUM FULL pg_proc;
BEGIN;
CREATE FUNCTION regress_v.next_ids(count integer, sequence regclass DEFAULT 'regress_v.s') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 1, epoch 1314220021721';
SELECT instaid.extract_shard_id(id) FROM regress_v.next_ids(1) AS id;
CREATE OR REPLACE FUNCTION regress_v.next_ids(count integer, sequence regclass DEFAULT 'regress_v.s') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 2, epoch 1314220021721';
COMMIT;
VACUUM FULL pg_proc;
SELECT instaid.extract_shard_id(id) FROM regress_v.next_ids(1) AS id;
-- A cursor outlives its function.
CREATE FUNCTION regress_v.next_id() RETURNS bigint LANGUAGE instaid STRICT COST 1 AS 'as next_ids(integer, regclass)';
BEGIN;
DECLARE c CURSOR FOR SELECT regress_v.next_id() > 0 FROM generate_series(1, 3);
FETCH 1 FROM c;
SET LOCAL client_min_messages = warning;
DROP SEQUENCE regress_v.s CASCADE;
\set VERBOSITY sqlstate
FETCH 1 FROM c;
\set VERBOSITY default
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA regress_v CASCADE;
RESET client_min_messages;

-- ALTER FUNCTION runs no validator, and can break a declaration.
ALTER FUNCTION next_id() STABLE;
SELECT try('SELECT regress_d.next_id()');
ALTER FUNCTION next_id() VOLATILE;
ALTER FUNCTION next_ids(integer, regclass) IMMUTABLE;
SELECT try('SELECT * FROM regress_d.next_ids(1)');
ALTER FUNCTION next_ids(integer, regclass) VOLATILE CALLED ON NULL INPUT;
SELECT try('SELECT * FROM regress_d.next_ids(NULL)');
ALTER FUNCTION next_ids(integer, regclass) STRICT;
ALTER FUNCTION next_id(regclass) CALLED ON NULL INPUT;
SELECT try('SELECT regress_d.next_id(NULL)');
ALTER FUNCTION next_ids(integer, regclass) RENAME TO many;
SELECT try('SELECT regress_d.next_id()');
-- a function that is not named next_ids declares nothing: its shard ID is free
SELECT try('SELECT * FROM regress_d.many(1)');
SELECT schema_name, shard_id FROM instaid.shards ORDER BY shard_id;
CREATE SCHEMA regress_f;
SELECT instaid.create_shard('regress_f', 5, '2020-02-29 23:59:59.999+00');
SET client_min_messages = warning;
DROP SCHEMA regress_f CASCADE;
RESET client_min_messages;
ALTER FUNCTION many(integer, regclass) RENAME TO next_ids;
SELECT instaid.extract_shard_id(next_id());

-- A sequence that a shard uses, and a function that a default uses, cannot be dropped.
DROP SEQUENCE own;
DROP FUNCTION next_ids(integer, regclass);
DROP FUNCTION next_id();
-- a direct call of the validator writes nothing
SELECT count(*) AS before FROM pg_depend \gset
SELECT instaid._validator('next_id()'::regprocedure), instaid._validator('next_ids(integer, regclass)'::regprocedure);
SELECT count(*) - :before AS written FROM pg_depend;
-- not even in the transaction that creates a function
BEGIN;
CREATE OR REPLACE FUNCTION next_id() RETURNS bigint LANGUAGE instaid STRICT COST 1 AS 'as next_ids(integer, regclass)';
SELECT instaid._validator('next_id()'::regprocedure), instaid._validator('next_id()'::regprocedure);
SELECT count(*) - :before AS written FROM pg_depend;
ROLLBACK;
\set VERBOSITY sqlstate
SELECT instaid._validator('pg_catalog.now()'::regprocedure);
\set VERBOSITY default
SELECT try('SELECT instaid._validator(0)');
-- the handler makes no ID for a function of another language, such as itself
SELECT try('SELECT instaid._call_handler() IS NULL');

-- A call needs EXECUTE on the function and USAGE on the sequence, unless the function
-- is SECURITY DEFINER.
CREATE ROLE regress_instaid_app;
GRANT USAGE ON SCHEMA regress_d TO regress_instaid_app;
SET ROLE regress_instaid_app;
SELECT try('SELECT instaid._validator(0)');
SELECT try('SELECT instaid._call_handler() IS NULL');
SELECT try('SELECT regress_d.next_id()');
RESET ROLE;
ALTER FUNCTION next_id() SECURITY DEFINER;
SET ROLE regress_instaid_app;
SELECT instaid.extract_shard_id(next_id());
SELECT try('SELECT * FROM regress_d.next_ids(1)');
RESET ROLE;
REVOKE EXECUTE ON FUNCTION next_id() FROM PUBLIC;
SET ROLE regress_instaid_app;
SELECT try('SELECT regress_d.next_id()');
-- a role cannot declare a shard with a sequence that it has no right to use
RESET ROLE;
CREATE SCHEMA regress_9 AUTHORIZATION regress_instaid_app;
SET ROLE regress_instaid_app;
CREATE FUNCTION regress_9.next_ids(count integer, sequence regclass DEFAULT 'regress_d.own') RETURNS SETOF bigint
    LANGUAGE instaid STRICT AS 'shard 9, epoch 1583020799999';
RESET ROLE;
-- A SECURITY DEFINER function moves the shard's own sequences only: its callers need no right on them.
CREATE ROLE regress_instaid_shop;
CREATE SCHEMA regress_shop AUTHORIZATION regress_instaid_shop;
SET ROLE regress_instaid_shop;
SELECT instaid.create_shard('regress_shop', 13);
CREATE SEQUENCE regress_shop.invoices;
CREATE SEQUENCE regress_shop.likes_id_seq;
CREATE TABLE regress_shop.likes (id bigint DEFAULT regress_shop.next_id('regress_shop.likes_id_seq'::regclass));
CREATE TABLE regress_shop.invoices_of (id bigserial);
GRANT USAGE ON SCHEMA regress_shop TO PUBLIC;
ALTER FUNCTION regress_shop.next_ids(integer, regclass) SECURITY DEFINER;
ALTER FUNCTION regress_shop.next_id(regclass) SECURITY DEFINER;
SET ROLE regress_instaid_app;
CREATE TABLE regress_9.t (id bigint DEFAULT regress_shop.next_id('regress_shop.invoices'::regclass));
SELECT call, try FROM unnest(ARRAY['next_ids(1, c)', 'next_id(c)', 'next_ids(1, x)', 'next_id(x)', 'next_id(f)', 'next_id(z)']) AS call
    CROSS JOIN LATERAL (SELECT * FROM try(format('SELECT regress_shop.%s FROM (VALUES (%L::regclass, %L::regclass, %L::regclass, %L::regclass)) AS v (c, x, f, z)',
        call, 'regress_shop.invoices', 'regress_shop.invoices_of_id_seq', 'regress_d.own', 'pg_class')) LIMIT 1) AS t;
SELECT try('INSERT INTO regress_9.t DEFAULT VALUES');
-- in the middle of a query, too; its own ones are served
SELECT try($$SELECT regress_shop.next_id(s) FROM unnest('{regress_shop.likes_id_seq,regress_shop.table_id_seq,regress_shop.invoices}'::regclass[]) AS s$$);
SELECT count(regress_shop.next_id(s)) FROM unnest('{regress_shop.likes_id_seq,regress_shop.table_id_seq,regress_shop.likes_id_seq}'::regclass[]) AS s;
SELECT instaid.extract_shard_id(id) FROM regress_shop.next_ids(2, 'regress_shop.likes_id_seq') AS id;
RESET ROLE;
SELECT last_value, is_called FROM regress_shop.invoices;
-- nor does it follow the declaration of another role, who can name any sequence there
ALTER FUNCTION regress_shop.next_id() SECURITY DEFINER;
ALTER SCHEMA regress_shop OWNER TO regress_instaid_app;
ALTER FUNCTION regress_shop.next_ids(integer, regclass) OWNER TO regress_instaid_app;
SET ROLE regress_instaid_app;
SET check_function_bodies = off;
CREATE OR REPLACE FUNCTION regress_shop.next_ids(count integer, sequence regclass DEFAULT 'regress_shop.invoices')
    RETURNS SETOF bigint LANGUAGE instaid STRICT AS 'shard 13, epoch 1314220021721';
RESET check_function_bodies;
SELECT try('SELECT regress_shop.next_id()');
RESET ROLE;
SELECT last_value, is_called FROM regress_shop.invoices;
SELECT code, object, problem FROM instaid.audit() WHERE object ~ '^regress_shop' AND code = 'shard_function_broken';
SET client_min_messages = warning;
DROP SCHEMA regress_shop CASCADE;
RESET client_min_messages;
DROP ROLE regress_instaid_shop;
-- a temporary function declares no shard, in a restore either
SET check_function_bodies = off;
CREATE FUNCTION pg_temp.next_ids(count integer, sequence regclass DEFAULT 'regress_d.own') RETURNS SETOF bigint
    LANGUAGE instaid STRICT AS 'shard 9, epoch 1583020799999';
RESET check_function_bodies;
-- the list of shards follows each change, also one that is rolled back
SELECT schema_name, shard_id FROM instaid.shards;
BEGIN;
SELECT instaid.create_shard('regress_12', 12, '2020-02-29 23:59:59.999 UTC');
ALTER SCHEMA regress_d RENAME TO regress_e;
SELECT schema_name, shard_id FROM instaid.shards ORDER BY shard_id;
SAVEPOINT s;
DROP FUNCTION regress_12.next_ids CASCADE;
SELECT schema_name, shard_id FROM instaid.shards ORDER BY shard_id;
ROLLBACK TO s;
SELECT schema_name, shard_id FROM instaid.shards ORDER BY shard_id;
ROLLBACK;
SELECT schema_name, shard_id FROM instaid.shards ORDER BY shard_id;

-- No setting changes what a declaration means.
SET datestyle = 'German';
SET timezone = 'Asia/Kolkata';
SELECT extract(epoch FROM epoch) FROM instaid.shards WHERE shard_id = 5;
SELECT instaid.create_shard('regress_10', 10, '2020-02-29 23:59:59.999 UTC');
SELECT prosrc FROM pg_proc WHERE pronamespace = 'regress_10'::regnamespace AND proname = 'next_ids';
RESET datestyle;
RESET timezone;

-- Creation is by commands, and event triggers see them.
CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%', tg_tag; END $$;
CREATE EVENT TRIGGER regress_note ON ddl_command_end EXECUTE FUNCTION note();
SELECT instaid.create_shard('regress_11', 11, '2020-02-29 23:59:59.999 UTC');
DROP EVENT TRIGGER regress_note;

-- A schema that was dumped and renamed, as a new tenant from a template, has the number of the
-- first.  A restore does not check bodies, and is told; so is a session that has looked before.
SET client_min_messages = notice;
\set VERBOSITY terse
CREATE SCHEMA regress_13;
CREATE SEQUENCE regress_13.table_id_seq;
SET check_function_bodies = off;
CREATE FUNCTION regress_13.next_ids(count integer, sequence regclass DEFAULT 'regress_13.table_id_seq') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 10, epoch 1583020799999';
DROP FUNCTION regress_13.next_ids;
CREATE FUNCTION regress_13.next_ids(count integer, sequence regclass DEFAULT 'regress_13.table_id_seq') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 13, epoch 1583020799999';
\set VERBOSITY default
-- the same declaration again is no twin of itself
CREATE OR REPLACE FUNCTION regress_13.next_ids(count integer, sequence regclass DEFAULT 'regress_13.table_id_seq') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 13, epoch 1583020799999';
CREATE OR REPLACE FUNCTION regress_13.next_ids(count integer, sequence regclass DEFAULT 'regress_13.table_id_seq') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 10, epoch 1583020799999';
RESET check_function_bodies;
SELECT instaid.renumber_shard('regress_13', 14);
SELECT schema_name, shard_id FROM instaid.shards WHERE schema_name IN ('regress_10', 'regress_13') ORDER BY shard_id;

SET client_min_messages = warning;
DROP SCHEMA regress_d, regress_9, regress_10, regress_11, regress_13 CASCADE;
DROP ROLE regress_instaid_app;
