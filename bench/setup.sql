-- What bench/bench.sh measures: the generators, a table for each, and the
-- query that looks at what they made.  A generator that is not there, in the
-- server or as an extension, is left out.

-- the SQL edition, whose schemas make room for the extension
\ir ../sql-edition/all.sql
SELECT instaid.create_shard('sql_edition', 6);
ALTER SCHEMA instaid RENAME TO instaid_sql_edition;

CREATE EXTENSION instaid;
CREATE SCHEMA bench;

CREATE TABLE bench.generators (
    ord        serial,
    name       text,
    expr       text,               -- makes one ID; null if only a table can
    id_column  text,               -- the definition of a primary key that it fills; null for none
    ms         text,               -- the millisecond of an ID, if IDs have one
    may_repeat boolean DEFAULT false,
    tbl        text GENERATED ALWAYS AS ('bench.' || replace(name, ' ', '_')) STORED
);

-- what an ID costs is a turn's time less that of the loop around it
INSERT INTO bench.generators (name, expr) VALUES ('empty loop', 'i');

-- what a row costs when its ID comes with it: no generator can be below that
INSERT INTO bench.generators (name, id_column) VALUES ('given IDs', 'bigint');

SELECT instaid.create_shard('insta1', 101);
INSERT INTO bench.generators (name, expr, id_column, ms) VALUES
    ('instaid', 'insta1.next_id()', 'bigint DEFAULT insta1.next_id()', 'id >> 23');

CREATE SEQUENCE bench.plain_seq;
INSERT INTO bench.generators (name, expr, id_column) VALUES
    ('bigserial', 'nextval(''bench.plain_seq'')', 'bigserial'),
    ('identity', NULL, 'bigint GENERATED ALWAYS AS IDENTITY');

\set schema published
\set shard_id 5
\ir ../test/lib/published.sql
\ir ../test/lib/verbatim.sql
-- The same arithmetic, inlined.
CREATE SEQUENCE bench.expression_seq;
CREATE FUNCTION bench.expression() RETURNS bigint LANGUAGE sql
    RETURN ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23)
        | (5 << 10) | (nextval('bench.expression_seq') % 1024);
INSERT INTO bench.generators (name, expr, id_column, ms, may_repeat) VALUES
    ('published function', 'published.next_id()', 'bigint DEFAULT published.next_id()', 'id >> 23', true),
    ('published verbatim', 'verbatim.next_id()', 'bigint DEFAULT verbatim.next_id()', 'id >> 23', true),
    ('SQL expression', 'bench.expression()', 'bigint DEFAULT bench.expression()', 'id >> 23', true);

INSERT INTO bench.generators (name, expr, id_column, ms) VALUES
    ('SQL edition', 'sql_edition.next_id()', 'bigint DEFAULT sql_edition.next_id()', 'id >> 23');

INSERT INTO bench.generators (name, expr, id_column) VALUES
    ('gen_random_uuid', 'gen_random_uuid()', 'uuid DEFAULT gen_random_uuid()');

SELECT to_regprocedure('pg_catalog.uuidv7()') IS NOT NULL AS uuidv7,
    bool_or(name = 'snowflake') AS snowflake,
    bool_or(name = 'pg_uuidv7') AS pg_uuidv7,
    bool_or(name = 'pgx_ulid') AS pgx_ulid
FROM pg_available_extensions \gset
\if :uuidv7
    INSERT INTO bench.generators (name, expr, id_column) VALUES
        ('uuidv7', 'uuidv7()', 'uuid DEFAULT uuidv7()');
\endif
\if :snowflake
    CREATE EXTENSION snowflake;
    ALTER DATABASE :"DBNAME" SET snowflake.node = 1;
    CREATE SEQUENCE bench.snowflake_seq;
    INSERT INTO bench.generators (name, expr, id_column, ms) VALUES
        ('pgEdge snowflake', 'snowflake.nextval(''bench.snowflake_seq'')',
         'bigint DEFAULT snowflake.nextval(''bench.snowflake_seq'')', 'id >> 22');
\endif
\if :pg_uuidv7
    CREATE EXTENSION pg_uuidv7;
    INSERT INTO bench.generators (name, expr, id_column) VALUES
        ('pg_uuidv7', 'uuid_generate_v7()', 'uuid DEFAULT uuid_generate_v7()');
\endif
\if :pgx_ulid
    CREATE EXTENSION pgx_ulid;
    INSERT INTO bench.generators (name, expr, id_column) VALUES
        ('pgx_ulid', 'gen_ulid()', 'ulid DEFAULT gen_ulid()');
\endif

-- client and n: whose row it is, and its number in the order of their making
SELECT format('CREATE TABLE %s (id %s, client integer, n integer, CONSTRAINT %I PRIMARY KEY (id))',
              tbl, id_column, name || '_key')
FROM bench.generators WHERE id_column IS NOT NULL \gexec

-- Sessions on one sequence, or each on a shard of its own: client 3 on shard3.
-- IDs are stored as arrays, which costs next to nothing.
SELECT instaid.create_shard('shard' || n, n) FROM generate_series(0, 15) AS n;
CREATE UNLOGGED TABLE bench.arrays (client integer, n integer, ids bigint[]);
ALTER TABLE bench.arrays ALTER ids SET STORAGE EXTERNAL;
CREATE VIEW bench.from_arrays AS
    SELECT client, n * 1000 + place AS n, id
    FROM bench.arrays, unnest(ids) WITH ORDINALITY AS u (id, place);

-- How many milliseconds the sequence that is furthest ahead is ahead of the clock
CREATE FUNCTION bench.drift() RETURNS float8 LANGUAGE sql
BEGIN ATOMIC
    SELECT greatest(0, max(extract(epoch FROM instaid.extract_timestamp(instaid._last_id(s.name, s.shard))
                                   - clock_timestamp()) * 1000))
    FROM (VALUES ('insta1.table_id_seq'::regclass, 101),
                 ('shard0.table_id_seq', 0), ('shard1.table_id_seq', 1), ('shard2.table_id_seq', 2),
                 ('shard3.table_id_seq', 3), ('shard4.table_id_seq', 4), ('shard5.table_id_seq', 5),
                 ('shard6.table_id_seq', 6), ('shard7.table_id_seq', 7), ('shard8.table_id_seq', 8),
                 ('shard9.table_id_seq', 9), ('shard10.table_id_seq', 10), ('shard11.table_id_seq', 11),
                 ('shard12.table_id_seq', 12), ('shard13.table_id_seq', 13), ('shard14.table_id_seq', 14),
                 ('shard15.table_id_seq', 15)) AS s (name, shard);
END;

-- What there is in a table: how many IDs, how many of them again, how many
-- below the one before them in their session, how many in the fullest
-- millisecond.
CREATE FUNCTION bench.look(tbl text, ms text, OUT ids bigint, OUT duplicates bigint,
                           OUT inversions bigint, OUT most bigint) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT count(*), count(*) - count(DISTINCT id) FROM %s', tbl) INTO ids, duplicates;
    EXECUTE format('SELECT count(*) FROM (SELECT id < lag(id) OVER (PARTITION BY client ORDER BY n) AS back
                                          FROM %s) AS t WHERE back', tbl) INTO inversions;
    IF ms <> '' THEN
        EXECUTE format('SELECT max(count) FROM (SELECT count(*) FROM %s GROUP BY %s) AS t', tbl, ms) INTO most;
    END IF;
END
$$;
