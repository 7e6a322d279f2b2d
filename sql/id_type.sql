-- The type instaid.id: a bigint that is a string in JSON.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SELECT instaid.create_shard('typed', 77);
CREATE TABLE typed.photos (
    id instaid.id PRIMARY KEY DEFAULT typed.next_id(),
    caption text UNIQUE
);

-- it is read and written like bigint
SELECT v::instaid.id FROM unnest(ARRAY['0', ' 4001511883701836730 ', '-9223372036854775808', '9223372036854775807']) AS v;
SELECT try($$SELECT '9223372036854775808'::instaid.id$$,
    $$SELECT 'DeIOdt4jVu6'::instaid.id$$,
    $$SELECT ''::instaid.id$$);
SELECT instaid.id_send(4001511883701836730::instaid.id) = int8send(4001511883701836730) AS same;

-- a shard's next_id() as the default, constants of every kind, and the other functions
INSERT INTO typed.photos (caption) VALUES ('made');
INSERT INTO typed.photos VALUES (5, 'integer'), (4001511883701836730, 'bigint'), ('908540701891980503', 'string');
SELECT instaid.extract_shard_id(id), (instaid.decode(id)).shard_id FROM typed.photos WHERE caption = 'made';
SELECT d.*, instaid.to_shortcode(id), instaid.from_shortcode(instaid.to_shortcode(id)) = id AS same
FROM typed.photos, instaid.decode(id) AS d WHERE caption = 'bigint';
INSERT INTO typed.photos VALUES (5, 'twice');
DELETE FROM typed.photos WHERE caption = 'made';

-- every way to JSON
CREATE DOMAIN typed.photo_id AS instaid.id CHECK (VALUE >= 0);
CREATE TYPE typed.pair AS (a instaid.id, b bigint);
SELECT to_json(id), to_jsonb(id), row_to_json(p), to_jsonb(p), json_build_object('id', id), jsonb_build_object('id', id),
    json_build_array(id), jsonb_build_array(id), json_build_object(id, 1), jsonb_build_object(id, 1)
FROM typed.photos AS p WHERE caption = 'bigint' \gx
SELECT json_agg(id ORDER BY id), jsonb_agg(id ORDER BY id), json_agg(p ORDER BY id), jsonb_agg(p ORDER BY id),
    json_object_agg(caption, id ORDER BY id), jsonb_object_agg(caption, id), to_json(array_agg(id ORDER BY id)),
    to_jsonb(array_agg(id ORDER BY id)), array_to_json(array_agg(id ORDER BY id))
FROM typed.photos AS p \gx
SELECT to_json(id::typed.photo_id), to_jsonb(id::typed.photo_id), to_json(ARRAY[id::typed.photo_id]),
    to_jsonb(ARRAY[id::typed.photo_id]), to_json(ROW(id, 7)::typed.pair), to_jsonb(ROW(id, 7)::typed.pair),
    to_json(ARRAY[ARRAY[id]]), to_json(NULL::instaid.id)
FROM typed.photos WHERE caption = 'bigint' \gx
-- a bigint is a number in JSON, and so is the result of arithmetic
SELECT to_json(4001511883701836730), to_json(id + 1), to_json(max(id)), to_json(max(id)::instaid.id)
FROM typed.photos WHERE caption = 'bigint' GROUP BY id;
-- from JSON, it can be a string or a number
SELECT * FROM json_populate_recordset(NULL::typed.photos,
    '[{"id": "4001511883701836730", "caption": "a string"}, {"id": 4001511883701836730, "caption": "a number"}]');

-- the type of an expression that mixes instaid.id and another type
SELECT pg_typeof(COALESCE(id, 0)) AS integer, pg_typeof(COALESCE(id, 4001511883701836730)) AS bigint,
    pg_typeof(CASE WHEN id > 0 THEN id ELSE '7' END) AS string, pg_typeof(array_append(ARRAY[id], 4001511883701836730)) AS appended,
    pg_typeof(greatest(id, 0)) AS greatest, pg_typeof(lag(id) OVER ()) AS lag, pg_typeof(max(id) OVER ()) AS max,
    pg_typeof(id + 1) AS sum, pg_typeof(id & 1023::bigint) AS masked
FROM typed.photos LIMIT 1 \gx
-- A bigint becomes an instaid.id by assignment only.  What is mixed with bigint is a bigint,
-- whichever stands first, and so is what is computed.  An integer gives way.
CREATE VIEW typed.both_types AS
    SELECT id, 7::bigint AS b, ARRAY[id] AS ids, ARRAY[7::bigint] AS bs FROM typed.photos;
CREATE FUNCTION type_of(expression text) RETURNS regtype LANGUAGE plpgsql AS $$
DECLARE type regtype;
BEGIN
    EXECUTE format('SELECT pg_typeof(%s) FROM typed.both_types LIMIT 1', expression) INTO type;
    RETURN type;
END $$;
SELECT format(e, 'id', 'b') AS expression, type_of(format(e, 'id', 'b')) AS type,
    type_of(format(e, 'b', 'id')) AS reversed
FROM unnest(ARRAY['COALESCE(%s, %s)', 'GREATEST(%s, %s)', 'CASE WHEN b > 0 THEN %s ELSE %s END',
    '(ARRAY[%s, %s])[1]', 'COALESCE(0, %s, %s)', 'COALESCE(%s, 0, %s)', 'NULLIF(%s, %s)', '%s + %s',
    'lag(%s, 1, %s) OVER ()', '(%1$ss || %2$ss)[1]', '(%1$ss || %2$s)[1]', '(%1$s || %2$ss)[1]',
    '(SELECT u FROM (SELECT %s UNION ALL SELECT %s) AS u (u) LIMIT 1)',
    '(SELECT u FROM (SELECT %s INTERSECT SELECT %s) AS u (u))',
    '(SELECT v FROM (VALUES (%s), (%s)) AS v (v) LIMIT 1)',
    '(SELECT v FROM (VALUES (%s)) AS v (v) JOIN (VALUES (%s)) AS w (v) USING (v))']) AS e;
SELECT e AS expression, type_of(e) AS type
FROM unnest(ARRAY['COALESCE(id, 0)', 'COALESCE(0, id)', 'COALESCE(1::smallint, id)', 'ids || 5',
    'min(id) OVER ()', 'max(id) OVER ()', 'max(id) OVER ()::instaid.id', '(array_agg(id) OVER ())[1]',
    'sum(id) OVER ()', 'generate_series(id, id)', 'abs(id)']) AS e;
-- to JSON likewise
SELECT to_json(COALESCE(id, b)) AS json, to_json(COALESCE(b, id)) AS reversed
FROM typed.both_types LIMIT 1;
-- assignment: INSERT, UPDATE, COPY, a default, a generated column, and what functions return
CREATE TABLE typed.assigned (id instaid.id DEFAULT 4001511883701836730, ids instaid.id[],
    n instaid.id GENERATED ALWAYS AS (4001511883701836730 + 1) STORED);
INSERT INTO typed.assigned (id, ids) SELECT b, bs FROM typed.both_types LIMIT 1;
INSERT INTO typed.assigned VALUES (DEFAULT, ARRAY[4001511883701836730]);
UPDATE typed.assigned SET id = id + 1::bigint, ids = ids || 9::bigint RETURNING id, ids, n;
COPY typed.assigned (id, ids) FROM stdin;
4001511883701836730	{1,2}
\.
COPY (SELECT id, ids FROM typed.assigned ORDER BY id) TO stdout;
CREATE FUNCTION typed.sql_id() RETURNS instaid.id LANGUAGE sql RETURN 7::bigint;
CREATE FUNCTION typed.plpgsql_id() RETURNS instaid.id LANGUAGE plpgsql AS
$$ DECLARE x instaid.id := 5::bigint; BEGIN x := x + 1; RETURN x::bigint + 1; END $$;
SELECT typed.sql_id() = typed.plpgsql_id() AS same;
-- an argument is no assignment
SELECT try($$SELECT instaid.id_send(4001511883701836730)$$) LIMIT 1; -- 19 words the rest anew
-- Why max(id) is a bigint: an aggregate would need a sort operator of instaid.id for the index.
SELECT try($$CREATE AGGREGATE typed.max(instaid.id) (SFUNC = pg_catalog.int8larger, STYPE = bigint,
    SORTOP = OPERATOR(pg_catalog.>))$$);
SELECT 5::instaid.id = 5 AS integer, 5 = 5::instaid.id, 5::instaid.id = 5::bigint AS bigint, 5::instaid.id = 5::smallint AS smallint,
    5::instaid.id = '5' AS string, 5::instaid.id = 5::instaid.id AS id, 5::instaid.id IN (4, 5) AS integers,
    5::instaid.id IN (4001511883701836730, 5) AS mixed, 5::instaid.id IN ('4', '5') AS strings,
    5::instaid.id = ANY ('{4,5}'::bigint[]) AS bigints, 5::instaid.id = ANY ('{4,5}'::instaid.id[]) AS ids,
    5::instaid.id BETWEEN 5 AND 5::bigint AS between, 5::instaid.id IS DISTINCT FROM 5 AS different,
    ARRAY[5]::instaid.id[] = '{5}' AS arrays, ROW(5::instaid.id) = ROW(5) AS rows \gx
-- what drivers send: smallint, numeric, text, and arrays of them
CREATE TABLE typed.sent (b bigint, id instaid.id, bs bigint[], ids instaid.id[]);
PREPARE sent_smallint(smallint) AS INSERT INTO typed.sent VALUES ($1, $1, ARRAY[$1], ARRAY[$1]) RETURNING *;
EXECUTE sent_smallint(7);
PREPARE sent_numeric(numeric) AS INSERT INTO typed.sent VALUES ($1, $1, ARRAY[$1], ARRAY[$1]) RETURNING *;
EXECUTE sent_numeric(4001511883701836730);
EXECUTE sent_numeric(4001511883701836729.6);
EXECUTE sent_numeric(9223372036854775808);
EXECUTE sent_numeric('NaN');
PREPARE sent_smallints(smallint[]) AS SELECT count(*) FROM typed.sent WHERE id = ANY ($1) AND b = ANY ($1);
EXECUTE sent_smallints('{7}');
INSERT INTO typed.sent VALUES ('8', '8', '{8,9}', '{8,9}'), (8::smallint, 8::smallint, '{}', '{}')
RETURNING *;
SELECT COALESCE(id, 1::smallint) AS coalesce, pg_typeof(COALESCE(1::smallint, id)), ids || 5::smallint AS appended FROM typed.sent
UNION SELECT 5::smallint, NULL, NULL ORDER BY 1 LIMIT 2;
-- text is allowed and refused as for bigint
SELECT e, (SELECT try(replace(e, 'TYPE', 'bigint')) LIMIT 1) AS bigint, (SELECT try(replace(e, 'TYPE', 'instaid.id')) LIMIT 1) AS id
FROM unnest(ARRAY[$$SELECT 8::TYPE = '8'$$, $$SELECT 8::TYPE = ANY ('{8,9}')$$, $$SELECT 8::TYPE IN ('8', '9')$$,
    $$SELECT '8'::text::TYPE$$, $$SELECT '{8,9}'::text[]::TYPE[]$$, $$SELECT ARRAY['8', '9']::TYPE[]$$,
    $$SELECT 8::TYPE = '8'::text$$, $$SELECT 8::TYPE = ANY (ARRAY['8', '9'])$$,
    $$SELECT ARRAY[8::TYPE] = '{8}'$$, $$SELECT ARRAY[8::TYPE] = ARRAY['8']$$]) AS e (e);
-- assigned to columns of numeric and integer
CREATE TABLE typed.received (n numeric, few numeric(3), i integer);
INSERT INTO typed.received SELECT id, id, id FROM typed.sent WHERE id < 10 RETURNING *;
INSERT INTO typed.received (n) SELECT max(id)::instaid.id FROM typed.sent RETURNING n;
INSERT INTO typed.received (i) SELECT max(id)::instaid.id FROM typed.sent;
-- overloaded functions and operators work as for bigint, or fail
SELECT abs(id), -id AS minus, id % 10 AS mod, sum(id) OVER (), pg_typeof(sum(id) OVER ()), to_char(id, '9')
FROM typed.sent WHERE id = 7;
SELECT try($$SELECT id = 5.0 FROM typed.sent$$) LIMIT 1;
SELECT try($$SELECT round(id) FROM typed.sent$$) LIMIT 1;

-- results are the same with the schema in search_path
SET search_path = public, instaid;
SELECT id = 5 AS equal, id < 5::bigint AS less, id = '5' AS string, id IN (4, 5) AS integers,
    int4('5') AS int4, int4(id), id('5') FROM typed.photos WHERE caption = 'integer';
RESET search_path;
SELECT DISTINCT id FROM (VALUES (5::instaid.id), (5), (7)) AS v (id) ORDER BY id;
SELECT id, count(*) FROM (VALUES (5::instaid.id), (5::bigint), (7)) AS v (id) GROUP BY id ORDER BY id DESC;

-- Indexes: plan() shows what a plan lacks; only the first plan lacks something.
CREATE FUNCTION plan(statement text, VARIADIC wanted text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE plan text := ''; line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || statement LOOP
        plan := plan || line || E'\n';
    END LOOP;
    FOREACH line IN ARRAY wanted LOOP
        IF plan !~ line THEN
            RETURN NEXT 'no ' || line || E' in\n' || plan;
        END IF;
    END LOOP;
END $$;
CREATE TABLE typed.ids (id instaid.id PRIMARY KEY, hashed instaid.id);
CREATE TABLE typed.bigints (id bigint PRIMARY KEY);
INSERT INTO typed.ids SELECT n, n FROM generate_series(1, 20000) AS n;
INSERT INTO typed.bigints SELECT generate_series(1, 20000);
CREATE INDEX ids_hashed ON typed.ids USING hash (hashed);
ANALYZE typed.ids, typed.bigints;
SELECT count(*) AS lacking FROM plan('SELECT * FROM typed.ids WHERE id + 0 = 5', 'ids_pkey');

-- each condition uses the B-tree index, and none is a filter
SELECT c AS condition, plan('SELECT * FROM typed.ids WHERE id ' || c, 'ids_pkey', 'Index Cond', '^(?!.*Filter)')
FROM unnest(ARRAY['= 5', '= 5::smallint', '= 4001511883701836730', $$= '5'$$, '= 5::instaid.id', '< 5', '>= 19990', 'BETWEEN 5 AND 7::bigint',
    'IN (5, 6)', 'IN (5::bigint, 6)', $$IN ('5', '6')$$, '= ANY (ARRAY[5, 6])', $$= ANY ('{5,6}'::bigint[])$$, $$= ANY ('{5,6}'::instaid.id[])$$]) AS c;
SELECT plan('SELECT * FROM typed.ids WHERE hashed = 5', 'ids_hashed');
SELECT plan('SELECT * FROM typed.ids WHERE hashed = 5::instaid.id', 'ids_hashed');
SELECT plan('SELECT max(id), min(id) FROM typed.ids', 'Scan Backward using ids_pkey', 'Scan using ids_pkey');
SELECT plan('SELECT max(id)::instaid.id FROM typed.ids', 'Limit', 'Scan Backward using ids_pkey');
SELECT plan('SELECT * FROM typed.ids ORDER BY id LIMIT 3', 'Index Scan using ids_pkey');
SELECT plan('SELECT * FROM typed.ids ORDER BY id DESC LIMIT 3', 'Index Scan Backward using ids_pkey');
-- a parameter of a driver, without a type or as bigint, also in a plan that knows no value
PREPARE by_id AS SELECT * FROM typed.ids WHERE id = $1;
SELECT plan('EXECUTE by_id (5)', 'ids_pkey');
PREPARE by_bigint (bigint) AS SELECT * FROM typed.ids WHERE id = $1;
SELECT plan('EXECUTE by_bigint (5)', 'ids_pkey', 'Index Cond', '^(?!.*Filter)');
PREPARE by_bigints (bigint[]) AS SELECT * FROM typed.ids WHERE id = ANY ($1);
SET plan_cache_mode = force_generic_plan;
SELECT plan('EXECUTE by_bigint (5)', 'ids_pkey', 'Index Cond: ..id.::bigint = .1', '^(?!.*Filter)');
SELECT plan('EXECUTE by_bigints (''{5,6}'')', 'ids_pkey', 'Index Cond: ..id.::bigint = ANY', '^(?!.*Filter)');
RESET plan_cache_mode;

-- joins with bigint use the index of either table, a hash, or a merge without a sort
SELECT plan('SELECT * FROM typed.ids AS i JOIN typed.bigints AS b ON i.id = b.id WHERE i.hashed = 5', 'bigints_pkey');
SELECT plan('SELECT * FROM typed.ids AS i JOIN typed.bigints AS b ON i.id = b.id WHERE b.id = 5', 'ids_pkey', 'bigints_pkey');
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT plan('SELECT * FROM typed.ids AS i JOIN typed.bigints AS b USING (id)', 'Hash Join');
SET enable_mergejoin = on;
SET enable_hashjoin = off;
SET enable_sort = off;
SELECT plan('SELECT * FROM typed.ids AS i JOIN typed.bigints AS b USING (id) ORDER BY i.id',
    'Merge Join', 'Index.* Scan using ids_pkey', 'Index.* Scan using bigints_pkey', '^(?!.*Sort)');
RESET ALL;
SELECT count(*), sum(i.id) FROM typed.ids AS i JOIN typed.bigints AS b USING (id);

-- foreign keys from bigint to instaid.id, and from instaid.id to bigint
CREATE TABLE typed.likes (photo_id bigint REFERENCES typed.photos, seen_id instaid.id REFERENCES typed.bigints);
INSERT INTO typed.likes VALUES (5, 5), (4001511883701836730, NULL);
INSERT INTO typed.likes VALUES (6, 5);
INSERT INTO typed.likes VALUES (5, -6);
DELETE FROM typed.photos WHERE id = 5;
DELETE FROM typed.bigints WHERE id = 5;

-- partitions
CREATE TABLE typed.parts (id instaid.id PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE typed.parts_1 PARTITION OF typed.parts FOR VALUES FROM (0) TO ('4001511883701836730');
CREATE TABLE typed.parts_2 PARTITION OF typed.parts FOR VALUES FROM (4001511883701836730) TO (MAXVALUE);
INSERT INTO typed.parts VALUES (5), (4001511883701836730);
SELECT tableoid::regclass, id FROM typed.parts ORDER BY id;
SELECT plan('SELECT * FROM typed.parts WHERE id = 5', 'parts_1', '^(?!.*parts_2)');

-- ALTER TABLE changes bigint to instaid.id and back, and rewrites neither the table
-- nor an index.
CREATE TABLE typed.adopted (id bigint PRIMARY KEY, parent bigint REFERENCES typed.adopted);
INSERT INTO typed.adopted VALUES (5, NULL), (6, 5);
CREATE VIEW files AS SELECT c.relname, pg_relation_filenode(c.oid) AS file FROM pg_class AS c
WHERE c.relname LIKE 'adopted%' AND c.relnamespace = 'typed'::regnamespace;
CREATE TABLE files_before AS TABLE files;
ALTER TABLE typed.adopted ALTER id TYPE instaid.id, ALTER parent TYPE instaid.id;
SELECT json_agg(a ORDER BY id) FROM typed.adopted AS a;
SELECT count(*) FROM (TABLE files INTERSECT TABLE files_before) AS same;
ALTER TABLE typed.adopted ALTER id TYPE bigint, ALTER parent TYPE bigint;
SELECT count(*) FROM (TABLE files INTERSECT TABLE files_before) AS same;

DROP VIEW files;
DROP TABLE files_before;
DROP FUNCTION plan, type_of;
SET client_min_messages = warning;
DROP SCHEMA typed CASCADE;
