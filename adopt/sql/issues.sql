-- A block for each fault that people met.  publish() and try() are those of adopt.sql.
SET timezone = 'UTC';
SET datestyle = 'ISO';
CREATE ROLE regress_inserter;

-- setval(sequence, max(id)), which scripts run after a restore, is no position
CALL publish('issue1', 501);
CREATE TABLE issue1.t (id bigint PRIMARY KEY DEFAULT issue1.next_id(), n integer);
INSERT INTO issue1.t DEFAULT VALUES;
SELECT setval('issue1.table_id_seq', max(id)) IS NOT NULL AS set FROM issue1.t;
SET client_min_messages = warning;
SELECT instaid_adopt.adopt_shard('issue1');
RESET client_min_messages;
INSERT INTO issue1.t DEFAULT VALUES;
SELECT count(*), max(instaid.extract_timestamp(id)) - now() < interval '1 min' AS of_now FROM issue1.t;
-- START is none, too, so that RESTART does no harm
ALTER SEQUENCE issue1.table_id_seq RESTART;
SELECT instaid.extract_timestamp(issue1.next_id()) - now() < interval '1 min' AS of_now;

-- a script puts the functions back at each start: adopt_shards() takes them again; a number that was
-- changed stays, and an ID of the copy is no ID of the shard
SELECT instaid.renumber_shard('issue1', 502);
CREATE FUNCTION publish_again() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    CREATE OR REPLACE FUNCTION issue1.next_id(OUT result bigint) LANGUAGE plpgsql AS $body$
        BEGIN
            result := nextval('issue1.table_id_seq') % 1024;
            result := result | ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23)
                | (501 << 10);
        END $body$;
END $$;
SELECT publish_again();
SELECT code, object FROM instaid.audit() WHERE object LIKE 'issue1%';
CALL instaid_adopt.adopt_shards('issue_', dry_run => true);
SELECT code, object FROM instaid.audit() WHERE object LIKE 'issue1%';
CALL instaid_adopt.adopt_shards('issue_');
SELECT code, object FROM instaid.audit() WHERE object LIKE 'issue1%';
INSERT INTO issue1.t DEFAULT VALUES;
SELECT instaid.extract_shard_id(max(id)) FROM issue1.t;
SELECT try($$SELECT instaid_adopt.adopt_shard('issue1')$$);
-- what the number or the epoch of the shard is not
SELECT publish_again();
SELECT try($$SELECT instaid_adopt.adopt_shard('issue1', 501)$$);
SELECT instaid.freeze_shard('issue1');
SELECT try($$SELECT instaid_adopt.adopt_shard('issue1')$$);
SELECT instaid.thaw_shard('issue1');
-- its sequence can have been set meanwhile
SELECT setval('issue1.table_id_seq', max(id)) IS NOT NULL AS set FROM issue1.t;
CALL instaid_adopt.adopt_shards('issue_');
SELECT instaid.extract_timestamp(issue1.next_id()) - now() < interval '1 min' AS of_now;

-- replace_copy() takes an ID of the copy, and does not fail in the same millisecond
DO $$
BEGIN
    PERFORM set_config('client_min_messages', 'warning', true);
    FOR i IN 1 .. 40 LOOP
        PERFORM publish_again(), instaid_adopt.replace_copy('issue1.next_id()');
    END LOOP;
END $$;

-- one copy fails, and the others are adopted; what its function says is marked as its own, and short
CALL publish('issue2', 503);
CALL publish('issue3', 504);
CREATE OR REPLACE FUNCTION issue3.next_id(OUT result bigint) LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', repeat('a', 1000) USING DETAIL = repeat('b', 1000), HINT = 'GRANT postgres TO PUBLIC;';
    result := floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint << 23 | (nextval('issue3.table_id_seq') % 1024);
END $$;
\set VERBOSITY terse
CALL instaid_adopt.adopt_shards('issue_');
\set VERBOSITY default
SELECT schema_name, shard_id FROM instaid.shards WHERE schema_name LIKE 'issue_' ORDER BY 1;
SELECT string_agg(DISTINCT length(t)::text, ' ') AS length, bool_or(t LIKE '%GRANT%') AS with_its_hint
FROM try($$SELECT instaid_adopt.adopt_shard('issue3')$$) AS t;
SET client_min_messages = warning;
DROP SCHEMA issue3 CASCADE;
RESET client_min_messages;

-- schemas with one number: a statement for each, with another number
CALL publish('issue4', 505);
CALL publish('issue5', 505);
CALL publish('issue6', 505);
CALL instaid_adopt.adopt_shards('issue_', dry_run => true);
CALL instaid_adopt.adopt_shards('issue_');
SET client_min_messages = warning;
DROP SCHEMA issue5, issue6 CASCADE;
RESET client_min_messages;

-- the epoch is not in the text, or has 12 digits
CALL publish('issue7', 506);
SELECT replace(pg_get_functiondef('issue7.next_id()'::regprocedure), '1314220021721', '978034262000') \gexec
SELECT regexp_replace(try($$SELECT instaid_adopt.adopt_shard('issue7')$$), '\d{19}', '...');
SELECT epoch FROM instaid.shards WHERE shard_id = 506;

-- adopt_column() grants what roles need that can insert
SELECT instaid.create_shard('issue8', 508);
CREATE TABLE issue8.t (id serial PRIMARY KEY, n integer);
GRANT USAGE ON SCHEMA issue8 TO regress_inserter;
GRANT INSERT ON issue8.t TO regress_inserter;
GRANT USAGE ON SEQUENCE issue8.t_id_seq TO regress_inserter;
SET client_min_messages = warning;
SELECT instaid_adopt.adopt_column('issue8.t', 'id');
SET ROLE regress_inserter;
INSERT INTO issue8.t (n) VALUES (1);
RESET ROLE;
-- audit() finds a role that may insert, and cannot take IDs, and its cure is enough
REVOKE USAGE ON SEQUENCE issue8.table_id_seq FROM regress_inserter;
SELECT code, severity, object, problem, cure FROM instaid.audit() WHERE object LIKE 'issue8%';
SELECT cure FROM instaid.audit() WHERE code = 'missing_right' \gexec
SELECT code FROM instaid.audit() WHERE object LIKE 'issue8%';
-- so is a second call
REVOKE USAGE ON SEQUENCE issue8.table_id_seq FROM regress_inserter;
SELECT instaid_adopt.adopt_column('issue8.t', 'id');
RESET client_min_messages;
SELECT instaid_adopt.adopt_column('issue8.t', 'id');
-- columns that are named like references, of a domain, too
CREATE DOMAIN issue8.number AS integer;
CREATE TABLE issue8.part (t_id integer, other_t_id issue8.number);
SELECT instaid_adopt.adopt_column('issue8.t', 'id');
-- values above the IDs of today
CREATE TABLE issue8.above (id bigint PRIMARY KEY);
INSERT INTO issue8.above VALUES (5000712345678901234);
SELECT regexp_replace(try($$SELECT instaid_adopt.adopt_column('issue8.above', 'id')$$), 'above \d{19}|shard\(.*', '...', 'g');

-- a default in the published layout keeps the number of its IDs, which ANALYZE has noted
CREATE SCHEMA issue9;
CREATE SEQUENCE issue9.ticks;
CREATE TABLE issue9.t (n integer, id bigint PRIMARY KEY DEFAULT
    (((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23) | (514 << 10) | (nextval('issue9.ticks') % 1024));
SELECT cure FROM instaid.audit() WHERE object LIKE 'issue9%';
INSERT INTO issue9.t SELECT generate_series(1, 30);
ANALYZE issue9.t;
SELECT cure FROM instaid.audit() WHERE object LIKE 'issue9%' \gexec
INSERT INTO issue9.t DEFAULT VALUES;
SELECT instaid.extract_shard_id(max(id)) FROM issue9.t;

-- HINTs keep what was passed, so that one who follows them gets somewhere: a statement, what it says,
-- the statement of its HINT, and so on
CREATE FUNCTION follow(statement text, choice text DEFAULT 'adopt_shard') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE hint text;
BEGIN
    FOR i IN 1 .. 5 LOOP
        RETURN NEXT statement;
        EXIT WHEN statement IS NULL;
        BEGIN
            EXECUTE statement;
            RETURN;
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
            RETURN NEXT '  ' || SQLERRM;
        END;
        statement := substring(hint FROM format('SELECT instaid_adopt\.%s[^;]*;', choice));
    END LOOP;
END $$;
SET client_min_messages = warning;
-- an epoch that is not in the text, and a sequence number that runs into the shard ID
CREATE SCHEMA issue10;
CREATE SEQUENCE issue10.table_id_seq;
CREATE FUNCTION issue10.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - x'16F5E66E800'::bigint) << 23
        | (nextval('issue10.table_id_seq') % 8388608);
END $$;
SELECT follow($f$SELECT instaid_adopt.adopt_shard('issue10')$f$);
-- and a number that is a session's, where the rows name one or several
CREATE SCHEMA issue11;
CREATE SEQUENCE issue11.table_id_seq;
CREATE FUNCTION issue11.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - x'16F5E66E800'::bigint) << 23
        | (current_setting('issue11.shard')::integer << 10) | (nextval('issue11.table_id_seq') % 1024);
END $$;
CREATE TABLE issue11.t (id bigint PRIMARY KEY DEFAULT issue11.next_id());
SET issue11.shard = 520;
INSERT INTO issue11.t DEFAULT VALUES;
BEGIN;
SELECT follow($f$SELECT instaid_adopt.adopt_shard('issue11')$f$);
ROLLBACK;
SET issue11.shard = 521;
INSERT INTO issue11.t DEFAULT VALUES;
SELECT follow($f$SELECT instaid_adopt.adopt_shard('issue11', 522)$f$);
-- and a number that is taken: the HINT of create_shard() names one that is free, and no call
CREATE SCHEMA issue12;
CREATE SEQUENCE issue12.table_id_seq;
CREATE FUNCTION issue12.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - x'16F5E66E800'::bigint) << 23
        | (522 << 10) | (nextval('issue12.table_id_seq') % 1024);
END $$;
SELECT follow($f$SELECT instaid_adopt.adopt_shard('issue12')$f$);
SELECT follow($f$SELECT instaid_adopt.adopt_shard('issue12', 523, '2020-01-01 00:00:00+00')$f$);
-- a function beside it in the shard, which came later, whose text has no epoch
CREATE SEQUENCE issue12.other_seq;
CREATE FUNCTION issue12.other_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - x'16F5E66E800'::bigint) << 23
        | (523 << 10) | (nextval('issue12.other_seq') % 1024);
END $$;
SELECT follow($f$SELECT instaid_adopt.adopt_shard('issue12')$f$);
-- replace_copy() keeps the epoch, too
CREATE SCHEMA issue13;
CREATE SEQUENCE issue13.ticks;
CREATE FUNCTION issue13.new_id() RETURNS bigint LANGUAGE sql AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint << 20 | nextval('issue13.ticks') % 1024 $$;
SELECT follow($f$SELECT instaid_adopt.replace_copy('issue13.new_id()', epoch => '2010-01-01 UTC')$f$, 'replace_copy');
SELECT schema_name, shard_id, epoch FROM instaid.shards WHERE schema_name ~ '^issue1.' ORDER BY schema_name;
DROP SCHEMA issue10, issue11, issue12, issue13 CASCADE;

-- where the number is not known, the first statement of the HINT is enough: IDs below 0, and another
-- layout with the published shift
CREATE SCHEMA issue14;
CREATE SEQUENCE issue14.table_id_seq;
CREATE FUNCTION issue14.next_id() RETURNS bigint LANGUAGE sql AS $$
    SELECT (((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23) | (21 << 10)
        | (nextval('issue14.table_id_seq') % 1024) | (1::bigint << 63) $$;
SELECT regexp_replace(try($$SELECT instaid_adopt.adopt_shard('issue14')$$), 'returned -\d+', 'returned ...');
SELECT follow($f$SELECT instaid_adopt.adopt_shard('issue14')$f$, 'replace_copy');
CREATE SCHEMA issue15;
CREATE SEQUENCE issue15.table_id_seq;
CREATE FUNCTION issue15.next_id() RETURNS bigint LANGUAGE sql AS $$
    SELECT (((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) / 2 << 23) | (21 << 10)
        | (nextval('issue15.table_id_seq') % 1024) $$;
SELECT follow($f$SELECT instaid_adopt.adopt_shard('issue15')$f$, 'replace_copy');
-- a copy in the published layout beside another one gives the shard its number, and its epoch unless
-- the text of the other one has an earlier one, which a WARNING says
CREATE SCHEMA issue16;
CREATE SEQUENCE issue16.a_seq;
CREATE SEQUENCE issue16.b_seq;
CREATE FUNCTION issue16.a() RETURNS bigint LANGUAGE sql AS $$
    SELECT (((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 22) | (99 << 12)
        | (nextval('issue16.a_seq') % 4096) $$;
CREATE FUNCTION issue16.b() RETURNS bigint LANGUAGE sql AS $$
    SELECT (((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1467327600000) << 23) | (531 << 10)
        | (nextval('issue16.b_seq') % 1024) $$;
SELECT regexp_replace(try($$SELECT instaid_adopt.adopt_shard('issue16')$$), 'returned \d+', 'returned ...');
BEGIN;
SELECT instaid_adopt.replace_copy('issue16.a()', 532);
ROLLBACK;
-- a cure of audit() says it, too
CREATE FUNCTION issue16.c(n integer) RETURNS bigint LANGUAGE sql AS $$
    SELECT (((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 22) | (n << 12)
        | (nextval('issue16.a_seq') % 4096) $$;
SELECT object, cure FROM instaid.audit() WHERE object ~ '^issue16' ORDER BY object;
DROP FUNCTION issue16.c(integer);
BEGIN;
SELECT instaid_adopt.replace_copy('issue16.b()', 531, '2016-06-30 23:00:00+00');
SELECT shard_id, epoch FROM instaid.shards WHERE schema_name = 'issue16';
ROLLBACK;
SELECT instaid_adopt.replace_copy('issue16.b()'); SELECT instaid_adopt.replace_copy('issue16.a()');
SELECT shard_id, epoch FROM instaid.shards WHERE schema_name = 'issue16';
SELECT instaid.extract_shard_id(issue16.a()) AS a, instaid.extract_shard_id(issue16.b()) AS b;
DROP SCHEMA issue14, issue15, issue16 CASCADE;
-- null is not below 0
CREATE SCHEMA issue21;
CREATE SEQUENCE issue21.table_id_seq;
CREATE FUNCTION issue21.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('issue21.table_id_seq');
    RETURN NULL;
END $$;
SELECT try($$SELECT instaid_adopt.adopt_shard('issue21')$$);
DROP SCHEMA issue21 CASCADE;
RESET client_min_messages;

-- a domain is another type: no cure speaks of arguments that a function does not have
CREATE DOMAIN big AS bigint;
CREATE SCHEMA issue20;
CREATE SEQUENCE issue20.table_id_seq;
CREATE FUNCTION issue20.a() RETURNS big LANGUAGE sql AS $$
    SELECT (((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23) | (21 << 10)
        | (nextval('issue20.table_id_seq') % 1024) $$;
CREATE FUNCTION issue20.b(n integer) RETURNS big LANGUAGE sql AS $$
    SELECT (((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23) | (n << 10)
        | (nextval('issue20.table_id_seq') % 1024) $$;
SELECT object, cure FROM instaid.audit() WHERE object ~ '^issue20' ORDER BY object;
-- the cure
SET client_min_messages = warning;
SELECT instaid.create_shard('issue20', 543, sequence_name => 'ids');
CREATE OR REPLACE FUNCTION issue20.a() RETURNS big LANGUAGE sql VOLATILE AS 'SELECT issue20.next_id()';
SELECT instaid.extract_shard_id(issue20.a());
DROP SCHEMA issue20 CASCADE;
DROP DOMAIN big;
RESET client_min_messages;

-- a column is widened: a session that has run a trigger with it must reconnect, and is told
SET client_min_messages = warning;
SELECT instaid.create_shard('issue19', 542);
RESET client_min_messages;
CREATE TABLE issue19.customers (id serial PRIMARY KEY);
CREATE TABLE issue19.payments (customer_id integer NOT NULL REFERENCES issue19.customers);
CREATE FUNCTION issue19.note(customer bigint) RETURNS void LANGUAGE plpgsql AS 'BEGIN PERFORM customer; END';
CREATE FUNCTION issue19.note_it() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM issue19.note(NEW.customer_id); RETURN NULL; END';
CREATE TRIGGER note_it AFTER INSERT ON issue19.payments FOR EACH ROW EXECUTE FUNCTION issue19.note_it();
INSERT INTO issue19.customers DEFAULT VALUES;
INSERT INTO issue19.payments VALUES (1);
SELECT count(*) FROM instaid_adopt.adopt_column('issue19.customers', 'id');
SELECT regexp_replace(try('INSERT INTO issue19.payments VALUES (1)'), 'parameter \d+', 'parameter ...');
\c -
SET timezone = 'UTC';
SET datestyle = 'ISO';
INSERT INTO issue19.payments VALUES (1);
-- a column whose foreign keys are those of partitions does not stay as it is
CREATE TABLE issue19.boxes (id serial PRIMARY KEY);
CREATE TABLE issue19.moves (box_id integer, part integer) PARTITION BY LIST (part);
CREATE TABLE issue19.moves1 PARTITION OF issue19.moves FOR VALUES IN (1);
ALTER TABLE issue19.moves1 ADD FOREIGN KEY (box_id) REFERENCES issue19.boxes;
CREATE TABLE issue19.lists (box_id integer);
SELECT statement FROM instaid_adopt.adopt_column('issue19.boxes', 'id') AS statement;
SELECT attrelid::regclass, atttypid::regtype FROM pg_attribute
WHERE attname = 'box_id' AND attrelid::regclass::text ~ '^issue19' ORDER BY 1;
SET client_min_messages = warning;
DROP SCHEMA issue19 CASCADE;
RESET client_min_messages;

-- row level security that also hides rows from the owner: the HINT has the statements
CREATE ROLE regress_forced;
SET client_min_messages = warning;
SELECT instaid.create_shard('issue17', 540);
CALL publish('issue18', 541);
ALTER SCHEMA issue17 OWNER TO regress_forced;
ALTER SCHEMA issue18 OWNER TO regress_forced;
ALTER FUNCTION issue18.next_id() OWNER TO regress_forced;
ALTER SEQUENCE issue18.table_id_seq OWNER TO regress_forced;
SET ROLE regress_forced;
CREATE TABLE issue17."T" (id bigserial PRIMARY KEY);
CREATE TABLE issue18."T" (id bigint PRIMARY KEY DEFAULT issue18.next_id());
INSERT INTO issue18."T" DEFAULT VALUES;
ALTER TABLE issue17."T" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE issue18."T" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT try($$SELECT instaid_adopt.adopt_shard('issue18')$$, $$SELECT instaid_adopt.adopt_column('issue17."T"', 'id')$$);
ALTER TABLE issue18."T" NO FORCE ROW LEVEL SECURITY;
SELECT instaid_adopt.adopt_shard('issue18');
ALTER TABLE issue18."T" FORCE ROW LEVEL SECURITY;
-- a role that sees all rows needs no change
RESET ROLE;
ALTER ROLE regress_forced BYPASSRLS;
SET ROLE regress_forced;
SELECT count(*) FROM instaid_adopt.adopt_column('issue17."T"', 'id');
RESET ROLE;
DROP SCHEMA issue17, issue18 CASCADE;
DROP ROLE regress_forced;
RESET client_min_messages;

SET client_min_messages = warning;
DROP SCHEMA issue1 CASCADE;
DROP SCHEMA issue2 CASCADE;
DROP SCHEMA issue4 CASCADE;
DROP SCHEMA issue7 CASCADE;
DROP SCHEMA issue8 CASCADE;
DROP SCHEMA issue9 CASCADE;
DROP ROLE regress_inserter;
DROP FUNCTION publish_again();
DROP PROCEDURE publish;
