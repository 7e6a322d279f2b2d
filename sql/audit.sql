-- audit() finds nothing in a healthy database, and finds each fault that this file makes.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET intervalstyle = 'postgres';
SET client_min_messages = warning;
-- audit(), if each cure is SQL: a function with a polymorphic argument is parsed, and not analyzed.
CREATE FUNCTION audited() RETURNS TABLE (code text, severity text, object text, problem text, cure text)
    LANGUAGE plpgsql AS $$
BEGIN
    FOR code, severity, object, problem, cure IN SELECT * FROM instaid.audit() LOOP
        BEGIN
            EXECUTE format('CREATE FUNCTION pg_temp.cure(anyelement) RETURNS void LANGUAGE sql AS %L', cure);
            DROP FUNCTION pg_temp.cure(anyelement);
        EXCEPTION WHEN syntax_error THEN
            RAISE '% of %: % is no SQL', code, object, cure;
        END;
        RETURN NEXT;
    END LOOP;
END $$;
-- The findings without their cures, which are shown once.
CREATE VIEW findings AS SELECT code, object, problem FROM audited();

--
-- A healthy database
--
SELECT * FROM audited();
SELECT instaid.create_shard('regress_5', 5);
SELECT instaid.create_shard('Regress "6"', 6, '2020-01-01 UTC', 'Odd''s seq');
SELECT instaid.create_shard('regress_7', 7);
CREATE SEQUENCE regress_5.likes_id_seq CACHE 20;
CREATE TABLE regress_5.photos (id bigint PRIMARY KEY DEFAULT regress_5.next_id(), n serial, at timestamptz DEFAULT now());
CREATE TABLE regress_5.likes (id bigint PRIMARY KEY DEFAULT regress_5.next_id('regress_5.likes_id_seq'),
    photo_id bigint REFERENCES regress_5.photos ON UPDATE CASCADE);
CREATE TABLE regress_5.comments (id instaid.id DEFAULT regress_5.next_id(), photo_id instaid.id REFERENCES regress_5.photos, UNIQUE (id));
CREATE TABLE regress_5.views (id bigint PRIMARY KEY DEFAULT regress_5.next_id(), photo_id bigint REFERENCES regress_5.photos)
    PARTITION BY RANGE (id);
SELECT count(*) FROM instaid.create_partitions('regress_5.views', '2020-01-01 UTC', '2040-01-01 UTC', '20 years');
SELECT count(*) FROM instaid.create_partitions('regress_5.views', '2040-01-01 UTC', '2040-04-01 UTC', '1 month');
CREATE TABLE regress_5.later PARTITION OF regress_5.views DEFAULT;
CREATE TABLE "Regress ""6"""."Odd.table" ("the ""id""" bigint UNIQUE DEFAULT "Regress ""6""".next_id(), small smallint);
-- tables of other schemas can take IDs of the shard; a default can call instaid.next_id()
CREATE TABLE public.regress_outside (id bigint PRIMARY KEY DEFAULT regress_5.next_id(), other bigint UNIQUE DEFAULT instaid.next_id('regress_5.table_id_seq', 5));
CREATE TEMPORARY TABLE temp_copy (id integer DEFAULT regress_5.next_id());
INSERT INTO regress_5.photos (n) SELECT generate_series(1, 10);
INSERT INTO regress_5.likes (photo_id) SELECT id FROM regress_5.photos;
-- a frozen shard is no finding
SELECT instaid.extract_shard_id(regress_7.next_id());
SELECT instaid.freeze_shard('regress_7');
-- functions with sequences, clocks and shifts that make no IDs
CREATE FUNCTION regress_5.ticket() RETURNS bigint LANGUAGE sql RETURN nextval('regress_5.photos_n_seq');
CREATE FUNCTION regress_5.later() RETURNS bigint LANGUAGE plpgsql AS $$
<<here>>
BEGIN
    <<inner>>
    BEGIN NULL; END;
    -- clock_timestamp() << 23
    /* nextval('regress_5.photos_n_seq') << 23 */
    RAISE NOTICE '<< 23 -- %% now(';
    PERFORM bit '1' << 23;
    RETURN nextval('regress_5.photos_n_seq') + extract(epoch FROM now())::bigint;
END $$;
CREATE FUNCTION regress_5.flags() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    new.flags := new.flags | (1 << 20) | (new.n << 3); new.id := nextval('regress_5.likes_id_seq'); new.updated := now();
    PERFORM pg_advisory_xact_lock((new.n::bigint << 32) | 7);
    RETURN new;
END $$;
CREATE FUNCTION regress_5.empty() RETURNS void LANGUAGE sql AS '';
SELECT * FROM audited();

--
-- Copies of the published function
--
CREATE SCHEMA insta1;
CREATE SEQUENCE insta1.table_id_seq;
SET check_function_bodies = off;
CREATE OR REPLACE FUNCTION insta1.next_id(OUT result bigint) AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := 5;
BEGIN
    SELECT nextval('insta1.table_id_seq') %% 1024 INTO seq_id;

    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END;
$$ LANGUAGE PLPGSQL;
RESET check_function_bodies;
CREATE TABLE insta1.photos (id bigint PRIMARY KEY DEFAULT insta1.next_id());
SELECT * FROM audited();
-- another copy, which finds its sequence by search_path
CREATE SCHEMA insta2;
CREATE SEQUENCE insta2.table_id_seq CACHE 2;
CREATE FUNCTION insta2.id_generator(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE shard_id CONSTANT int = 5;
BEGIN
    result := (FLOOR(EXTRACT(EPOCH FROM NOW ()) * 1000)::bigint - 1577836800000)<<23 | (shard_id::bigint << 10) | (NEXTVAL('Table_id_SEQ')%1024);
END $$;
SELECT * FROM findings;
-- arithmetic without a shift; a sequence with another name
CREATE OR REPLACE FUNCTION insta2.id_generator(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE shard_id CONSTANT int = 9000; seq text := '"insta2".ids';
BEGIN
    result := FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint * 8388608 + shard_id * 1024 + nextval(seq::regclass) % 1024;
END $$;
CREATE SEQUENCE insta2.ids CACHE 3;
SELECT * FROM findings WHERE object ~ '^insta2';
DROP SCHEMA insta1, insta2 CASCADE;

-- Seventeen ways to write the function.  None is called.
CREATE SCHEMA insta3;
CREATE SEQUENCE insta3.table_id_seq;
CREATE SEQUENCE insta3."Odd ""seq""" CACHE 7;
SET check_function_bodies = off;
SELECT format('CREATE FUNCTION insta3.f%s(p_seq text DEFAULT %L, q_seq regclass DEFAULT %L) RETURNS bigint LANGUAGE %s', n, '', 'insta3.table_id_seq', body)
FROM (VALUES
    ( 1, $$sql RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23 | 31 << 10 | nextval('insta3.table_id_seq') % 1024$$),
    ( 2, $$sql RETURN floor(extract(epoch FROM now()) * 1000)::bigint - 1314220021721 << 23 | 32::bigint << 10 | nextval('insta3.table_id_seq'::text) % 1024$$),
    ( 3, $$sql BEGIN ATOMIC SELECT power(2, 23)::bigint * extract(epoch FROM current_timestamp)::bigint | (33 << 10) | nextval('insta3."Odd ""seq"""'); END$$),
    ( 4, $$sql AS 'SELECT (extract(epoch FROM localtimestamp) * 1000)::bigint << 23 | 34 << 10 | nextval($2)'$$),
    ( 5, $$plpgsql AS 'BEGIN RETURN (extract(epoch FROM transaction_timestamp()) * 1000)::bigint<<23|35<<10|nextval(p_seq); END'$$),
    ( 6, $$plpgsql AS 'BEGIN RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint<<23|36<<10|nextval(q_seq); END'$$),
    ( 7, $$plpgsql AS 'BEGIN RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint<<23|37<<10|nextval(current_schema || ''.table_id_seq''); END'$$),
    ( 8, $$plpgsql AS 'BEGIN RETURN (extract(epoch FROM timeofday()::timestamp) * 1000)::bigint<<23|38<<10|nextval(format(''%I.s'', p_seq)); END'$$),
    ( 9, $$plpgsql AS 'BEGIN RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint<<23|39<<10|nextval(''insta3."Odd ""seq"""'') /* %% now() */ %/**/1024; END'$$),
    (10, $$plpgsql AS 'BEGIN RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint<<22|nextval(q_seq); END'$$),
    (11, $$plpgsql AS 'BEGIN RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint << (64-41) | (41 << (64-41-13)) | nextval(q_seq) % 1024; END'$$),
    (12, $$sql RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint << (64-41) | 42 << (64-41-13) | nextval('insta3.table_id_seq')$$),
    (13, $$plpgsql AS 'DECLARE n bigint; BEGIN EXECUTE ''SELECT nextval($1)'' INTO n USING q_seq; RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint<<23|n; END'$$),
    (14, $$sql RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint * 8388608 + 44 * 1024 + nextval('insta3.table_id_seq') % 1024$$),
    -- a comment counts as a space, and not as an argument
    (15, $$plpgsql AS 'BEGIN RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint << /* 41 bits */ 23 | 45 << 10 | nextval(q_seq); END'$$),
    (16, $$plpgsql AS 'BEGIN RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint /* ms */ << -- (13 + 10) bits
        23 | 46 << 10 | nextval/**/(/* ''it'' */ q_seq); END'$$),
    (17, $$plpgsql AS 'BEGIN RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint * /* 2^23 */ 8388608 + 47 * 1024 + nextval(q_seq); END'$$)) AS v (n, body) \gexec
RESET check_function_bodies;
-- settings of the session do not change the findings
CREATE TEMPORARY TABLE seen AS SELECT * FROM findings;
SELECT current_setting('server_version_num')::integer < 190000 AS has_escapes \gset
SET client_min_messages = error;
\if :has_escapes
SET standard_conforming_strings = off;
\endif
SET quote_all_identifiers = on;
SET max_stack_depth = '100kB';
CREATE TEMPORARY TABLE seen_again AS SELECT * FROM findings;
RESET standard_conforming_strings;
SET client_min_messages = warning;
RESET quote_all_identifiers;
RESET max_stack_depth;
SELECT count(*) AS found FROM seen;
SELECT count(*) FROM seen JOIN seen_again AS a ON a.code = seen.code AND a.problem = seen.problem AND replace(a.object, '"', '') = seen.object;
DROP TABLE seen, seen_again;
SELECT code, object FROM findings;
DROP SCHEMA insta3 CASCADE;

-- the arithmetic in a column default
CREATE TABLE regress_5.inlined (id bigint PRIMARY KEY);
CREATE SEQUENCE regress_5.inlined_seq CACHE 4;
ALTER TABLE regress_5.inlined ALTER id SET DEFAULT
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << 23 | 5 << 10 | nextval('regress_5.inlined_seq') % 1024;
SELECT * FROM findings;
ALTER TABLE regress_5.inlined ALTER id SET DEFAULT regress_5.next_id();
SELECT * FROM findings;

-- a copy with another name, after strings and comments with quotes
CREATE SCHEMA insta4;
CREATE SEQUENCE insta4.table_id_seq;
CREATE FUNCTION insta4.id_generator() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN /* it's */
    PERFORM E'it\'s'; RETURN ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721 << (10 + 13)) | (4 << 10) | (nextval('insta4.table_id_seq') % 1024);
END $$;
CREATE FUNCTION insta4.by_name() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN insta4.id_generator(); END';
SELECT * FROM findings;
-- with the extension that cures it; by adopt_shards(), callers of the old name go on
CREATE EXTENSION instaid_adopt;
SELECT * FROM findings;
CALL instaid_adopt.adopt_shards('insta4');
SELECT instaid.extract_shard_id(insta4.by_name()), count(*) FROM findings;
DROP SCHEMA insta4 CASCADE;

CREATE SCHEMA regress_8;
CREATE SEQUENCE regress_8.s;
-- what makes copies is none
CREATE PROCEDURE regress_8.new_tenant(n integer) LANGUAGE plpgsql AS $p$
BEGIN
    EXECUTE format($f$ CREATE SCHEMA t%1$s; CREATE SEQUENCE t%1$s.table_id_seq;
        Create or Replace
            Function t%1$s.next_id() RETURNS bigint LANGUAGE sql AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721
            << 23 | %1$s << 10 | nextval('t%1$s.table_id_seq') %% 1024 $$; $f$, n);
END $p$;
SELECT * FROM findings;
DROP PROCEDURE regress_8.new_tenant;
CREATE FUNCTION regress_8.prepare(name text) RETURNS bigint LANGUAGE plpgsql AS $p$
BEGIN
    EXECUTE format($f$ ALTER TABLE %1$I.t ALTER id SET DEFAULT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23
        | nextval('%1$I.table_id_seq') %% 1024) $f$, name);
    RETURN 1;
END $p$;
SELECT * FROM findings;
-- but one that makes something else, and an ID, is
CREATE OR REPLACE FUNCTION regress_8.prepare(name text) RETURNS bigint LANGUAGE plpgsql AS $p$
DECLARE seq bigint;
BEGIN
    EXECUTE $f$ CREATE FUNCTION regress_8.helper() RETURNS integer LANGUAGE sql RETURN 1 $f$;
    EXECUTE format('SELECT nextval(%L) %% 1024', 'regress_8.s') INTO seq;
    RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23 | seq;
END $p$;
SELECT * FROM findings;
DROP FUNCTION regress_8.prepare;
-- a shard whose next_id() was dropped
SELECT instaid.create_shard('regress_9', 9);
DROP FUNCTION regress_9.next_id();
SELECT * FROM audited();
SELECT cure FROM audited() \gexec
SELECT * FROM audited();
DROP SCHEMA regress_9 CASCADE;
-- declares a shard by hand, like a restore, which does not check other objects
CREATE PROCEDURE declare_shard(schema_name text, shard_id integer, sequence text, epoch bigint DEFAULT 1314220021721)
    LANGUAGE plpgsql SET check_function_bodies = off AS $$
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION %I.next_ids(count integer, sequence regclass DEFAULT %L) RETURNS SETOF bigint'
                   ' LANGUAGE instaid STRICT COST 1 AS ''shard %s, epoch %s''', schema_name, sequence, shard_id, epoch);
    EXECUTE format('CREATE OR REPLACE FUNCTION %I.next_id() RETURNS bigint'
                   ' LANGUAGE instaid STRICT COST 1 AS ''as next_ids(integer, regclass)''', schema_name);
END $$;
CALL declare_shard('regress_8', 8, 'regress_8.s');
SELECT * FROM findings;

--
-- Tables that use the function or the sequence of another shard
--
CREATE TABLE regress_8.photos (LIKE regress_5.photos INCLUDING DEFAULTS INCLUDING INDEXES);
CREATE TABLE regress_8.likes (id bigint PRIMARY KEY DEFAULT instaid.next_id('regress_5.likes_id_seq', 8));
-- ticks, but not the values of another sequence, or of a function
CREATE TABLE regress_8.ticks (id bigint PRIMARY KEY DEFAULT nextval('regress_5.table_id_seq') * 2, other bigint DEFAULT nextval('regress_5.likes_id_seq'));
CREATE TABLE regress_8.parts (id instaid.id DEFAULT nextval('regress_8.s')) PARTITION BY RANGE (id);
CREATE TABLE regress_8.part PARTITION OF regress_8.parts DEFAULT;
SELECT * FROM audited();
ALTER TABLE regress_8.photos ALTER id SET DEFAULT regress_8.next_id();
ALTER TABLE regress_8.likes ALTER id SET DEFAULT regress_8.next_id();
DROP TABLE regress_8.ticks, regress_8.parts;
SELECT * FROM findings;
-- more than 20 findings of a problem are one row, also if each has a cure of its own
SELECT format('CREATE TABLE regress_8.many_%s (id bigint PRIMARY KEY DEFAULT regress_5.next_id())', n)
FROM generate_series(10, 30) AS n \gexec
SELECT * FROM audited();
CREATE PROCEDURE cure(code text) LANGUAGE plpgsql AS $$
DECLARE cure text;
BEGIN
    FOR cure IN SELECT a.cure FROM audited() AS a WHERE a.code = $1 LOOP
        EXECUTE cure;
    END LOOP;
END $$;
CALL cure('foreign_default');
SELECT count(*) FROM findings;
CALL cure('foreign_default');
SELECT * FROM findings;
SELECT format('DROP TABLE regress_8.many_%s', n) FROM generate_series(10, 30) AS n \gexec
-- INCLUDING ALL also copies a CHECK of the shard, which the new default would not pass
CREATE TABLE regress_5.checked (id bigint PRIMARY KEY DEFAULT regress_5.next_id(), tagged instaid.id UNIQUE DEFAULT regress_5.next_id(), n bigint CHECK (instaid.extract_shard_id(n) = 5),
    CONSTRAINT "is 5" CHECK (instaid.extract_shard_id(id) = 5), CONSTRAINT tagged_5 CHECK (instaid.extract_shard_id(tagged) = 5), CHECK (id > 0));
CREATE TABLE regress_8.checked (LIKE regress_5.checked INCLUDING ALL);
SELECT * FROM audited();
DROP TABLE regress_5.checked, regress_8.checked;
-- a shard that is dropped takes the defaults of its columns with it; the IDs show it
SELECT instaid.create_shard('regress_gone', 77);
CREATE TABLE regress_gone."Odd.t" ("Id" bigint PRIMARY KEY DEFAULT regress_gone.next_id(), other bigint UNIQUE);
CREATE TABLE regress_gone.typed (id instaid.id PRIMARY KEY DEFAULT regress_gone.next_id());
CREATE TABLE regress_gone.refers (id bigint PRIMARY KEY REFERENCES regress_gone."Odd.t");
CREATE TABLE regress_gone.few (id bigint PRIMARY KEY DEFAULT regress_gone.next_id());
INSERT INTO regress_gone."Odd.t" (other) SELECT n FROM generate_series(1, 20) AS n;
INSERT INTO regress_gone.typed SELECT FROM generate_series(1, 20);
INSERT INTO regress_gone.refers SELECT "Id" FROM regress_gone."Odd.t";
INSERT INTO regress_gone.few SELECT FROM generate_series(1, 9);
-- elsewhere, IDs of a shard of the database, or of another schema that is a shard, need no default
CREATE TABLE public.regress_elsewhere (id bigint PRIMARY KEY);
INSERT INTO public.regress_elsewhere SELECT instaid.make_id('2026-01-01 UTC', 5, n) FROM generate_series(1, 20) AS n;
CREATE TABLE regress_8.of_gone (id bigint PRIMARY KEY);
INSERT INTO regress_8.of_gone SELECT "Id" FROM regress_gone."Odd.t";
ANALYZE regress_gone."Odd.t", regress_gone.typed, regress_gone.refers, regress_gone.few, public.regress_elsewhere, regress_8.of_gone;
SELECT * FROM findings WHERE code = 'lost_default';
DROP SEQUENCE regress_gone.table_id_seq CASCADE;
SELECT object, problem, cure FROM audited() WHERE code = 'lost_default';
SELECT cure FROM audited() WHERE code = 'lost_default' \gexec
SELECT object FROM audited() WHERE code = 'lost_default';
SELECT instaid.extract_shard_id(min("Id")), count(*) FROM regress_gone."Odd.t";
INSERT INTO regress_gone."Odd.t" DEFAULT VALUES RETURNING instaid.extract_shard_id("Id");
INSERT INTO regress_gone.typed DEFAULT VALUES RETURNING instaid.extract_shard_id(id);
DROP SCHEMA regress_gone CASCADE;
DROP TABLE public.regress_elsewhere, regress_8.of_gone;
-- a foreign key that followed its table, which became a partition
CREATE TABLE regress_5.old (id bigint PRIMARY KEY DEFAULT regress_5.next_id());
CREATE TABLE regress_5.refers_old (id bigint PRIMARY KEY REFERENCES regress_5.old);
ALTER TABLE regress_5.old RENAME TO "Old";
CREATE TABLE regress_5.old (LIKE regress_5."Old" INCLUDING ALL) PARTITION BY RANGE (id);
ALTER TABLE regress_5.old ATTACH PARTITION regress_5."Old" FOR VALUES FROM (MINVALUE) TO (MAXVALUE);
CREATE TABLE regress_5.refers_all (id bigint PRIMARY KEY REFERENCES regress_5.old);
SELECT code, severity, object, problem, cure FROM audited();
ALTER TABLE regress_5.refers_old DROP CONSTRAINT refers_old_id_fkey, ADD FOREIGN KEY (id) REFERENCES regress_5.old;
SELECT * FROM findings;
DROP TABLE regress_5.refers_old, regress_5.refers_all, regress_5.old;

--
-- Integer columns
--
CREATE TABLE regress_5.narrow (id integer PRIMARY KEY DEFAULT regress_5.next_id());
CREATE DOMAIN regress_5.small AS smallint;
CREATE TABLE regress_5.refers (id integer PRIMARY KEY REFERENCES regress_5.narrow, again integer REFERENCES regress_5.refers);
CREATE DOMAIN regress_5.smaller AS regress_5.small;
CREATE TABLE regress_5.refers_id (n regress_5.small REFERENCES regress_5.comments (id), m regress_5.smaller REFERENCES regress_5.photos);
CREATE TABLE regress_5.parts (narrow_id integer REFERENCES regress_5.narrow, n integer) PARTITION BY LIST (n);
CREATE TABLE regress_5.part_1 PARTITION OF regress_5.parts FOR VALUES IN (1);
-- a float rounds IDs
CREATE TABLE regress_5.floats (id double precision PRIMARY KEY DEFAULT regress_5.next_id());
SELECT * FROM audited();
DROP TABLE regress_5.refers_id, regress_5.floats;
SELECT count(*) FROM instaid_adopt.adopt_column('regress_5.narrow', 'id');
SELECT * FROM findings;

--
-- No unique index on the ID alone
--
CREATE TABLE regress_5.bare (id bigint DEFAULT regress_5.next_id(), n integer);
CREATE UNIQUE INDEX ON regress_5.bare (id) WHERE n > 0;
CREATE UNIQUE INDEX ON regress_5.bare (id, n);
CREATE UNIQUE INDEX ON regress_5.bare ((id + 1));
CREATE INDEX ON regress_5.bare (id);
CREATE TABLE regress_5.by_n (id bigint DEFAULT regress_5.next_id(), n integer, PRIMARY KEY (id, n)) PARTITION BY LIST (n);
CREATE TABLE regress_5.by_n_1 PARTITION OF regress_5.by_n FOR VALUES IN (1);
SELECT * FROM audited();
CREATE UNIQUE INDEX ON regress_5.bare (id);
SELECT * FROM findings;
DROP TABLE regress_5.by_n;

--
-- Two schemas with one shard ID
--
CREATE SCHEMA regress_9;
CALL declare_shard('regress_9', 5, 'regress_8.s');
SELECT * FROM audited();
-- a second epoch on a sequence
CALL declare_shard('regress_9', 9, 'regress_8.s', 1577836800000);
SELECT * FROM audited();
DROP SCHEMA regress_9 CASCADE;
-- a schema that was cloned, with functions that name the sequence of the other one; the cure does not
-- set its IDs back
CREATE SCHEMA regress_9;
CALL declare_shard('regress_9', 9, 'regress_8.s');
CREATE SEQUENCE regress_9.s;
SELECT instaid.advance_past('regress_8.s', instaid.make_id(now() + interval '1 h', 8, 0), instaid.default_epoch());
SET client_min_messages = error;
SELECT regress_9.next_id() AS before \gset
SELECT cure FROM audited() WHERE code = 'foreign_sequence';
CALL cure('foreign_sequence');
SELECT regress_9.next_id() > :before AS above, (SELECT sequence FROM instaid.shards WHERE shard_id = 9),
    (SELECT count(*) FROM findings WHERE code = 'foreign_sequence');
DROP SEQUENCE regress_9.s CASCADE;
CALL declare_shard('regress_9', 9, 'regress_8.s');
SELECT cure FROM audited() WHERE code = 'foreign_sequence';
CALL cure('foreign_sequence');
SELECT regress_9.next_id() > :before AS above, (SELECT sequence FROM instaid.shards WHERE shard_id = 9);
SET client_min_messages = warning;
ALTER SEQUENCE regress_8.s RESTART;
DROP SCHEMA regress_9 CASCADE;
-- an epoch of the future, which create_shard() refuses
CREATE SCHEMA regress_9;
CREATE SEQUENCE regress_9.s;
CALL declare_shard('regress_9', 9, 'regress_9.s', 7258118400000);
SELECT * FROM audited();
SELECT try('SELECT regress_9.next_id()');
DROP SCHEMA regress_9 CASCADE;
-- a shard whose next_ids() was dropped, and all that depends on it
SELECT instaid.create_shard('regress_9', 9);
CREATE TABLE regress_9.t (id bigint PRIMARY KEY DEFAULT regress_9.next_id());
DROP FUNCTION regress_9.next_ids(integer, regclass) CASCADE;
SELECT * FROM audited();
SELECT instaid.create_shard('regress_9', 9, sequence_name => 'again');
DROP SEQUENCE regress_9.table_id_seq;
SELECT * FROM findings;
DROP SCHEMA regress_9 CASCADE;
-- a frozen shard repeats nothing, unless the other one has another epoch
SELECT instaid.create_shard('regress_9', 9);
SELECT instaid.freeze_shard('regress_9');
CREATE SCHEMA regress_10;
CALL declare_shard('regress_10', 9, 'regress_8.s');
SELECT * FROM findings;
CALL declare_shard('regress_10', 9, 'regress_8.s', 1577836800000);
SELECT * FROM findings WHERE code = 'shard_id_twice';
DROP SCHEMA regress_9, regress_10 CASCADE;

--
-- Functions of a shard that ALTER FUNCTION has broken
--
CREATE SCHEMA regress_9;
CREATE SEQUENCE regress_9.s;
CALL declare_shard('regress_9', 9, 'regress_9.s');
ALTER FUNCTION regress_9.next_ids(integer, regclass) IMMUTABLE;
ALTER FUNCTION regress_9.next_id() STABLE;
SELECT * FROM audited();
ALTER FUNCTION regress_9.next_ids(integer, regclass) VOLATILE CALLED ON NULL INPUT;
ALTER FUNCTION regress_9.next_id() VOLATILE;
SELECT * FROM audited();
ALTER FUNCTION regress_9.next_ids(integer, regclass) PARALLEL RESTRICTED;
ALTER FUNCTION regress_9.next_id() PARALLEL SAFE;
SELECT * FROM findings;
SELECT cure FROM audited() WHERE code = 'shard_function_attributes' \gexec
ALTER FUNCTION regress_9.next_id() RENAME TO one;
SELECT * FROM audited();
ALTER FUNCTION regress_9.one() RENAME TO next_id;
ALTER FUNCTION regress_9.next_ids(integer, regclass) RENAME TO many;
SELECT * FROM audited();
CREATE FUNCTION regress_9.next_ids(integer, regclass) RETURNS SETOF bigint LANGUAGE sql RETURN 1;
SELECT * FROM audited();
DROP SCHEMA regress_9 CASCADE;
-- a restore does not check which object the default names
CREATE SCHEMA regress_9;
CALL declare_shard('regress_9', 9, 'regress_5.photos');
SELECT * FROM audited() WHERE object ~ 'regress_9';
DROP SCHEMA regress_9 CASCADE;

--
-- Sequences that cannot serve
--
ALTER SEQUENCE regress_8.s CYCLE;
ALTER SEQUENCE "Regress ""6"""."Odd's seq" INCREMENT 2;
ALTER SEQUENCE regress_5.likes_id_seq AS integer RESTART;
ALTER SEQUENCE regress_5.table_id_seq MAXVALUE 9007199254740990;
SELECT * FROM audited();
SELECT cure FROM audited() WHERE code = 'cannot_serve' \gexec
SELECT * FROM findings;
ALTER SEQUENCE regress_5.table_id_seq NO MAXVALUE;
-- Citus gives each worker's copy of a sequence a range of its own.  A shard whose
-- sequence is at its own MAXVALUE is frozen.
ALTER SEQUENCE regress_5.table_id_seq MINVALUE 844424930131969 MAXVALUE 1125899906842625 START 844424930131969 RESTART;
ALTER SEQUENCE "Regress ""6"""."Odd's seq" MINVALUE 281474976710657 MAXVALUE 562949953421313 START 281474976710657 RESTART;
ALTER SEQUENCE regress_8.s MAXVALUE 1000;
SELECT setval('regress_8.s', 1000);
SELECT * FROM findings;
SELECT DISTINCT code, cure FROM audited() ORDER BY 1, 2;
ALTER SEQUENCE regress_5.table_id_seq NO MINVALUE NO MAXVALUE START 1 RESTART;
ALTER SEQUENCE "Regress ""6"""."Odd's seq" NO MINVALUE NO MAXVALUE START 1 RESTART;
ALTER SEQUENCE regress_8.s NO MAXVALUE;
SELECT * FROM findings;
-- past the end; setval() can set a sequence to a value that is no tick
SELECT setval('regress_8.s', 9223372036854775807) > 0 AS far;
SELECT instaid.advance_past('regress_5.likes_id_seq', 9223372036854775807, instaid.default_epoch());
SELECT code, severity, object, problem, cure FROM audited();
SELECT cure FROM audited() WHERE code = 'end_of_ids' \gexec
SELECT * FROM findings;
ALTER SEQUENCE regress_5.likes_id_seq RESTART;
-- unlogged
ALTER SEQUENCE regress_8.s SET UNLOGGED;
SELECT * FROM audited();
SELECT cure FROM audited() \gexec
SELECT * FROM findings;

--
-- Shards near their end, and sequences ahead of the clock
--
BEGIN;
SET LOCAL client_min_messages = error;
SELECT instaid.create_shard('regress_old', 99,
    date_trunc('year', now() + interval '1 year') - ((1::bigint << 40) - 1) * interval '1 ms');
SELECT code, severity, object, regexp_replace(problem, 'at .*', 'at ...') AS problem, cure FROM audited();
SAVEPOINT ends;
CALL declare_shard('regress_old', 99, 'regress_old.table_id_seq', 315532800000);
-- its sequence stands at the clock, past the last ID: RESTART would not help
DO 'BEGIN PERFORM regress_old.next_id(); EXCEPTION WHEN invalid_parameter_value THEN END';
SELECT code, severity, object, problem FROM audited();
ROLLBACK TO ends;
-- the tables of such a shard take the IDs of another one
SELECT instaid.create_shard('regress_new', 98, '2026-01-01 UTC');
CREATE TABLE regress_old.t (id bigint PRIMARY KEY DEFAULT regress_new.next_id());
SELECT object, problem FROM findings WHERE code = 'foreign_default';
SELECT instaid.freeze_shard('regress_old');
SELECT * FROM audited();
ROLLBACK;
SELECT instaid.advance_past('regress_8.s', instaid.make_id(now() + interval '1 h', 8, 0), instaid.default_epoch());
SELECT instaid.advance_past('regress_5.likes_id_seq', instaid.make_id(now() + interval '1 h', 5, 0), instaid.default_epoch());
SELECT code, severity, object, regexp_replace(problem, 'are .* ahead', 'are ... ahead') AS problem, cure FROM audited();
SET instaid.max_drift = '1 h';
SELECT * FROM findings;
RESET instaid.max_drift;

--
-- An ordinary role gets the findings of the catalogs.  For the state of a sequence it
-- needs rights on it.
--
CREATE TABLE regress_8.bare (id bigint DEFAULT regress_8.next_id());
CREATE ROLE regress_auditor;
SET ROLE regress_auditor;
SELECT code, object FROM audited();
RESET ROLE;
GRANT SELECT ON regress_8.s TO regress_auditor;
SET ROLE regress_auditor;
SELECT code, object FROM audited();
RESET ROLE;
-- with UPDATE, it could set the sequence back
GRANT ALL ON regress_8.s TO regress_auditor, PUBLIC;
SELECT * FROM audited() WHERE code = 'sequence_right';
SELECT cure FROM audited() WHERE code = 'sequence_right' \gexec
SELECT code, object FROM findings;
DROP OWNED BY regress_auditor;
DROP ROLE regress_auditor;
REVOKE ALL ON regress_8.s FROM PUBLIC;
DROP TABLE regress_8.bare;
ALTER SEQUENCE regress_8.s RESTART;
ALTER SEQUENCE regress_5.likes_id_seq RESTART;

--
-- Who may create in the schema of a shard can put functions there that calls find
--
CREATE ROLE regress_auditor;
GRANT CREATE ON SCHEMA regress_8 TO regress_auditor, PUBLIC;
SET ROLE regress_auditor;
CREATE FUNCTION regress_8.next_id(text) RETURNS bigint LANGUAGE sql RETURN 1;
RESET ROLE;
SELECT * FROM audited() WHERE object ~ '^regress_8' AND code IN ('schema_right', 'planted_function');
SELECT cure FROM audited() WHERE code = 'schema_right' \gexec
DROP FUNCTION regress_8.next_id(text);
SELECT code, object FROM findings;
-- not the owner of the schema, nor of the shard
ALTER SCHEMA regress_8 OWNER TO regress_auditor;
GRANT CREATE ON SCHEMA regress_8 TO CURRENT_USER;
SELECT code, object FROM findings;
ALTER SCHEMA regress_8 OWNER TO CURRENT_USER;
REVOKE ALL ON SCHEMA regress_8 FROM regress_auditor;
DROP ROLE regress_auditor;

--
-- No cure makes a superuser run code of another role, or what another role chose
--
CREATE ROLE regress_mallory;
GRANT USAGE, CREATE ON SCHEMA regress_5 TO regress_mallory;
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO regress_mallory', current_database()); END $$;
CREATE TABLE regress_5.orders (id serial, n integer);
ALTER SEQUENCE regress_5.orders_id_seq CYCLE CACHE 10;
GRANT REFERENCES ON regress_5.photos TO regress_mallory;
CREATE SCHEMA regress_13;
GRANT USAGE, CREATE ON SCHEMA regress_13 TO regress_mallory;
CREATE SEQUENCE regress_13.s;
CREATE TABLE regress_5.elsewhere (id bigint PRIMARY KEY DEFAULT regress_5.next_id('regress_13.s'));
SET ROLE regress_mallory;
-- ALTER COLUMN TYPE runs her CHECK
CREATE FUNCTION regress_5.mallory(n bigint) RETURNS boolean LANGUAGE sql RETURN true;
CREATE TABLE regress_5.trap (id integer UNIQUE DEFAULT regress_5.next_id() CHECK (regress_5.mallory(id)));
CREATE TABLE regress_5.snare (id integer REFERENCES regress_5.photos CHECK (regress_5.mallory(id)));
-- no cure alters another role's sequence because she names it
CREATE TABLE regress_5.names (id bigint UNIQUE DEFAULT instaid.next_id('regress_5.orders_id_seq', 5));
CREATE FUNCTION regress_5.copy() RETURNS bigint LANGUAGE plpgsql AS
$$ BEGIN RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23 | nextval('regress_5.orders_id_seq'); END $$;
-- no cure changes another role's default because she has a next_id() where its sequence is
CREATE FUNCTION regress_13.next_id() RETURNS bigint LANGUAGE plpgsql AS
$$ BEGIN RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23 | nextval('regress_13.s'); END $$;
-- no cure gives another role's table her next_id()
SELECT instaid.create_shard('regress_9', 9);
CREATE SCHEMA regress_10;
CREATE FUNCTION regress_10.next_id() RETURNS bigint LANGUAGE sql RETURN 1;
SELECT code, object, cure FROM audited();
-- a declaration with another's sequence, which is not checked
SET check_function_bodies = off;
CREATE SCHEMA regress_11;
CREATE FUNCTION regress_11.next_ids(count integer, sequence regclass DEFAULT 'regress_5.orders_id_seq') RETURNS SETOF bigint
    LANGUAGE instaid STRICT COST 1 AS 'shard 11, epoch 1314220021721';
CREATE FUNCTION regress_11.next_id() RETURNS bigint LANGUAGE instaid STRICT COST 1 AS 'as next_ids(integer, regclass)';
RESET check_function_bodies;
-- a superuser's tables refer to hers, and stand in her schema
CREATE TABLE regress_9.photos (id bigint PRIMARY KEY DEFAULT regress_9.next_id());
CREATE INDEX ON regress_9.photos (regress_5.mallory(id));
RESET ROLE;
CREATE TABLE regress_5.replies (photo_id integer REFERENCES regress_9.photos);
CREATE TABLE regress_9.replaced (id integer UNIQUE DEFAULT regress_9.next_id());
-- a superuser's shard in her schema, with her next_id()
SELECT instaid.create_shard('regress_12', 12);
ALTER SCHEMA regress_12 OWNER TO regress_mallory;
SET ROLE regress_mallory;
DROP FUNCTION regress_12.next_id();
CREATE FUNCTION regress_12.next_id() RETURNS bigint LANGUAGE sql RETURN 1;
RESET ROLE;
CREATE TABLE regress_12.lured (id bigint PRIMARY KEY DEFAULT regress_5.next_id());
CREATE TABLE regress_12.ticks (id bigint PRIMARY KEY DEFAULT nextval('regress_12.table_id_seq'));
CREATE TABLE regress_9.lured (id bigint PRIMARY KEY DEFAULT regress_5.next_id());
CREATE TABLE regress_10.lured (id bigint PRIMARY KEY DEFAULT regress_5.next_id());
-- a superuser's table, with a child of hers
CREATE TABLE regress_5.parent (id integer UNIQUE REFERENCES regress_5.photos);
CREATE TABLE regress_5.child (CHECK (regress_5.mallory(id))) INHERITS (regress_5.parent);
ALTER TABLE regress_5.child OWNER TO regress_mallory;
-- her shard, with a sequence of another role
ALTER SEQUENCE regress_9.table_id_seq OWNER TO CURRENT_USER;
ALTER SEQUENCE regress_9.table_id_seq CYCLE;
SELECT code, object, problem, cure FROM audited();
DROP SCHEMA regress_12 CASCADE;
DROP TABLE regress_5.child, regress_5.parent, regress_5.names, regress_5.replies, regress_5.orders, regress_5.elsewhere CASCADE;
DROP SCHEMA regress_13 CASCADE;
DROP FUNCTION regress_5.copy();
DROP OWNED BY regress_mallory CASCADE;
DROP ROLE regress_mallory;
SELECT * FROM findings;

--
-- Functions of a role with much text are not read, and keep nobody from reading others
--
CREATE ROLE regress_mallory;
GRANT CREATE ON SCHEMA regress_8 TO regress_mallory;
SET ROLE regress_mallory;
SET check_function_bodies = off;
\set ECHO none
SELECT format('CREATE FUNCTION regress_8.slow_%s() RETURNS bigint LANGUAGE plpgsql AS %L', n,
              'nextval( now << 23' || repeat('''''', 40000)) FROM generate_series(1, 4) AS n \gexec
\set ECHO all
CREATE FUNCTION regress_8.short() RETURNS bigint LANGUAGE plpgsql AS
$$ BEGIN RETURN (extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23 | nextval('regress_8.s'); END $$;
RESET check_function_bodies;
RESET ROLE;
SELECT code, severity, object, problem, cure FROM audited() WHERE code IN ('copy', 'unread_functions');
DROP OWNED BY regress_mallory;
DROP ROLE regress_mallory;

--
-- audit() does not fail because of what it reads, and runs nothing of it
--
-- what is long is read in part; deep expressions are read
SET client_min_messages = error;
-- some architectures need more stack
SET max_stack_depth = '7MB';
DO $$ BEGIN
    EXECUTE 'CREATE TABLE regress_5.deep (id bigint DEFAULT nextval(''regress_5.likes_id_seq'')' || repeat(' + 1', 7000) || ')';
    EXECUTE 'CREATE TABLE regress_5.deep_id (id bigint UNIQUE DEFAULT regress_5.next_id()' || repeat(' + 1', 7000) || ')';
    EXECUTE 'CREATE FUNCTION regress_5.deep() RETURNS bigint LANGUAGE sql RETURN now()::text::bigint << (nextval(''regress_5.likes_id_seq'')'
        || repeat(' + 1', 2000) || ')::integer';
    EXECUTE 'CREATE FUNCTION regress_5.long() RETURNS bigint LANGUAGE plpgsql AS ''BEGIN RETURN 1; /* nextval(now() << 23 '
        || repeat('x', 100000) || '*/ END''';
    -- names in parsed code that look like a part of it
    EXECUTE 'CREATE FUNCTION regress_5.names() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT nextval(''regress_5.likes_id_seq'') AS funcid,'
        ' 1 AS opno, 2 AS "SQLVALUEFUNCTION", 3 AS ":funcid 99999999999 {:opno 99999999999 }", '':opno 99999999999 ''::text AS ":funcid"; SELECT 1; END';
END $$;
-- a function like one of the SQL edition, with a sequence whose bounds are no epoch and no ID
CREATE SEQUENCE regress_5.far MINVALUE 9000000000000000000;
CREATE SEQUENCE regress_5.far_down INCREMENT -9223372036854775808 MINVALUE -9223372036854775808 MAXVALUE -9223372036854775807;
CREATE DOMAIN regress_5.id_sequence AS regclass;
CREATE FUNCTION regress_5.next_id(regress_5.id_sequence) RETURNS bigint LANGUAGE sql RETURN 1;
CREATE FUNCTION regress_5.next_ids(integer, regress_5.id_sequence DEFAULT COALESCE('regress_5.far'::regclass, 'regress_5.far_down'::regclass))
    RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN /* instaid_sql._next_ids( */ 1; END';
-- and one in a temporary schema, which any role has, with a sequence whose MINVALUE is an epoch
CREATE TEMPORARY SEQUENCE near MINVALUE 1314220021721;
CREATE DOMAIN pg_temp.id_sequence AS regclass;
CREATE FUNCTION pg_temp.next_id(pg_temp.id_sequence) RETURNS bigint LANGUAGE sql RETURN 1;
CREATE FUNCTION pg_temp.next_ids(integer, pg_temp.id_sequence DEFAULT 'near'::regclass)
    RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN /* instaid_sql._next_ids( */ 1; END';
SET client_min_messages = warning;
SELECT * FROM audited();
SET max_stack_depth = '100kB';
SELECT count(*) FROM findings;
RESET max_stack_depth;
DROP TABLE regress_5.deep, regress_5.deep_id;
DROP FUNCTION regress_5.deep(), regress_5.long(), regress_5.names();
DROP DOMAIN regress_5.id_sequence, pg_temp.id_sequence CASCADE;
DROP SEQUENCE regress_5.far, regress_5.far_down, near;
-- types that pg_upgrade creates before the casts of instaid.id; the others need no cast, or come later
CREATE SCHEMA regress_types;
CREATE DOMAIN regress_types.checked AS instaid.id CHECK (value > 0);
CREATE DOMAIN regress_types."Odd's" AS instaid.id DEFAULT regress_5.next_id();
CREATE DOMAIN regress_types.list AS instaid.id[] CHECK (value[1] > 0);
CREATE TYPE regress_types.span AS RANGE (subtype = instaid.id);
CREATE TABLE regress_types.albums (id instaid.id PRIMARY KEY DEFAULT regress_5.next_id());
CREATE TYPE regress_types.albums_pair AS (a regress_types.albums, b regress_types.albums);
CREATE DOMAIN regress_types.album AS regress_types.albums;
CREATE VIEW regress_types.album_numbers AS SELECT id::bigint, 1::regress_types.checked AS checked FROM regress_types.albums;
CREATE TYPE regress_types.number AS (a regress_types.album_numbers);
CREATE DOMAIN regress_types.plain AS instaid.id;
CREATE DOMAIN regress_types.not_valid AS instaid.id;
ALTER DOMAIN regress_types.not_valid ADD CHECK (value > 0) NOT VALID;
CREATE DOMAIN regress_types.big AS bigint DEFAULT regress_5.next_id() CHECK (value > 0);
CREATE TYPE regress_types.pair AS (a instaid.id, b regress_types.plain[]);
CREATE DOMAIN pg_temp.short AS instaid.id CHECK (value > 0);
SELECT * FROM findings;
SELECT cure FROM audited() WHERE object ~ 'Odd' \gx
-- an operator of another role is not called
CREATE FUNCTION regress_types.planted(regtype, oid) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE ''planted''; END';
CREATE OPERATOR regress_types.= (FUNCTION = regress_types.planted, LEFTARG = regtype, RIGHTARG = oid);
SET search_path = regress_types, public;
SELECT cure FROM audited() \gexec
RESET search_path;
SELECT * FROM findings;
DROP DOMAIN pg_temp.short;
DROP SCHEMA regress_types CASCADE;
-- an odd name adds no statement to a cure
CREATE SCHEMA U&"regress; DROP TABLE x; --\000a\005c! ""'";
CREATE UNLOGGED SEQUENCE U&"regress; DROP TABLE x; --\000a\005c! ""'".U&"s;\000a\005c! ""'";
SELECT format('CREATE TABLE %s (id bigint DEFAULT regress_5.next_id(%L))', replace(s.name, U&'s;\000a', 't;'), s.name)
FROM (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE relname ~ '^s;') AS s (name) \gexec
SELECT code, object, cure FROM audited();
SELECT cure FROM audited() WHERE code = 'unlogged' \gexec
SELECT * FROM findings;
DROP SCHEMA U&"regress; DROP TABLE x; --\000a\005c! ""'" CASCADE;
CREATE SCHEMA "Été .""%s";
SET check_function_bodies = off;
\set ECHO none
SELECT format('CREATE FUNCTION "Été .""%%s"."f ''%s %%I"() RETURNS bigint LANGUAGE plpgsql AS %L', n, body)
FROM (VALUES (1, $$nextval('"') now() << 23 ''$$), (2, $$nextval('a.b.c.d.e') now() << 23 nextval(E'\'') nextval('') nextval(' "a . b" ') shard_id := 99999999999999999999;$$),
    (3, $$nextval(now() << 23 | (sérial << 10) 'unterminated$$), (4, $$nextval(now() << 23 | x << 10 /* unterminated$$), (5, $$nextval(now()) << 23 "unterminated$$),
    (6, repeat('a', 20000) || ' << 10 nextval(now() << 23'),
    (7, 'nextval(now() << 23 ' || repeat('/*', 20000)), (8, 'nextval(now() << 23 ' || repeat('''a', 20001)),
    (9, 'nextval(now() << 23 ' || repeat('shard ', 20000)), (10, 'nextval(now() << 23 ' || repeat('nextval(', 20000)),
    (11, 'nextval(now() << 23 ' || repeat('(', 20000)), (12, 'nextval(now() << 23 x' || repeat(' ', 20000)),
    (13, $$nextval(now() << 23 | shard << 10; shard int := -1; \1 \\ %s %1$s$$)) AS v (n, body) \gexec
\set ECHO all
RESET check_function_bodies;
CREATE TABLE "Été .""%s"."t %s" (gone integer, "id %s" bigint DEFAULT regress_5.next_id());
ALTER TABLE "Été .""%s"."t %s" DROP gone;
CREATE VIEW "Été .""%s".v AS SELECT 1::integer AS id;
ALTER VIEW "Été .""%s".v ALTER id SET DEFAULT regress_5.next_id();
CREATE FOREIGN DATA WRAPPER regress_audit;
CREATE SERVER regress_audit FOREIGN DATA WRAPPER regress_audit;
CREATE FOREIGN TABLE regress_5.abroad (id bigint DEFAULT regress_5.next_id()) SERVER regress_audit;
SELECT * FROM findings;

DROP FOREIGN DATA WRAPPER regress_audit CASCADE;

DROP TABLE temp_copy, public.regress_outside;
DROP SCHEMA regress_5, "Regress ""6""", regress_7, regress_8, "Été .""%s" CASCADE;

DROP VIEW findings;
DROP FUNCTION audited;
DROP PROCEDURE cure;
DROP EXTENSION instaid_adopt;
SELECT * FROM instaid.audit();
DROP PROCEDURE declare_shard;
