-- Which roles can make IDs, and in which transactions and processes.
SELECT instaid.create_shard('regress_s', 9);
CREATE TABLE regress_s.photos (id bigint PRIMARY KEY DEFAULT regress_s.next_id(), caption text);
CREATE ROLE regress_instaid_app;
CREATE ROLE regress_instaid_team;
CREATE ROLE regress_instaid_other;
GRANT CREATE ON SCHEMA public TO regress_instaid_app;

-- INSERT needs USAGE on the schema and the sequence and INSERT on the table
GRANT USAGE ON SCHEMA regress_s TO regress_instaid_app, regress_instaid_other;
GRANT INSERT ON regress_s.photos TO regress_instaid_app;
SET ROLE regress_instaid_app;
INSERT INTO regress_s.photos (caption) VALUES ('x');
RESET ROLE;
GRANT USAGE ON SEQUENCE regress_s.table_id_seq TO regress_instaid_app;
SET ROLE regress_instaid_app;
INSERT INTO regress_s.photos (caption) VALUES ('x');
SELECT regress_s.next_id() > 0 AS made, count(*) FROM regress_s.next_ids(10);
-- UPDATE on the sequence is enough, too
RESET ROLE;
REVOKE USAGE ON SEQUENCE regress_s.table_id_seq FROM regress_instaid_app;
GRANT UPDATE ON SEQUENCE regress_s.table_id_seq TO regress_instaid_app;
SET ROLE regress_instaid_app;
INSERT INTO regress_s.photos (caption) VALUES ('x');
RESET ROLE;
-- SELECT is not enough
REVOKE UPDATE ON SEQUENCE regress_s.table_id_seq FROM regress_instaid_app;
GRANT SELECT ON SEQUENCE regress_s.table_id_seq TO regress_instaid_app;
SET ROLE regress_instaid_app;
INSERT INTO regress_s.photos (caption) VALUES ('x');
RESET ROLE;

-- a privilege or a membership that is revoked within the transaction no longer counts
BEGIN;
GRANT USAGE ON SEQUENCE regress_s.table_id_seq TO regress_instaid_app;
SET LOCAL ROLE regress_instaid_app;
INSERT INTO regress_s.photos (caption) VALUES ('x');
RESET ROLE;
REVOKE USAGE ON SEQUENCE regress_s.table_id_seq FROM regress_instaid_app;
SET LOCAL ROLE regress_instaid_app;
SAVEPOINT s;
INSERT INTO regress_s.photos (caption) VALUES ('x');
ROLLBACK TO s;
INSERT INTO regress_s.photos (caption) VALUES ('x');
ROLLBACK;
GRANT USAGE ON SEQUENCE regress_s.table_id_seq TO regress_instaid_team;
GRANT regress_instaid_team TO regress_instaid_app;
BEGIN;
SET LOCAL ROLE regress_instaid_app;
INSERT INTO regress_s.photos (caption) VALUES ('x');
RESET ROLE;
REVOKE regress_instaid_team FROM regress_instaid_app;
SET LOCAL ROLE regress_instaid_app;
INSERT INTO regress_s.photos (caption) VALUES ('x');
ROLLBACK;

-- a member of pg_monitor sees where shards and other sequences stand, and can use none
CREATE ROLE regress_instaid_monitor IN ROLE pg_monitor;
CREATE SEQUENCE regress_s.own_seq;
CREATE TABLE regress_s.own (id bigint DEFAULT regress_s.next_id('regress_s.own_seq'));
INSERT INTO regress_s.own DEFAULT VALUES;
SET ROLE regress_instaid_monitor;
SELECT last_id IS NOT NULL AS last_id, last_issued_at IS NOT NULL AS last_issued_at,
    drift IS NOT NULL AS drift, frozen
FROM instaid.shards WHERE schema_name = 'regress_s';
SELECT sequence, instaid._last_id(sequence, 9) IS NOT NULL AS last_id FROM instaid._shard_sequences('regress_s') AS sequence;
SET ROLE regress_instaid_other;
SELECT last_id, last_issued_at, drift, frozen FROM instaid.shards WHERE schema_name = 'regress_s';
RESET ROLE;
DROP ROLE regress_instaid_monitor;

-- pg_database_owner's privileges follow the owner of the database, from the next
-- transaction on
SELECT current_user AS me, current_database() AS db \gset
\set ECHO none
ALTER DATABASE :"db" OWNER TO regress_instaid_other;
\set ECHO all
GRANT USAGE ON SEQUENCE regress_s.table_id_seq TO pg_database_owner;
SET ROLE regress_instaid_other;
SELECT regress_s.next_id() > 0 AS made;
RESET ROLE;
\set ECHO none
ALTER DATABASE :"db" OWNER TO :"me";
\set ECHO all
SET ROLE regress_instaid_other;
SELECT regress_s.next_id() > 0 AS made;
RESET ROLE;
REVOKE USAGE ON SEQUENCE regress_s.table_id_seq FROM pg_database_owner;

-- what the session remembers of one role's rights does not count for another role
BEGIN;
SELECT regress_s.next_id() > 0 AS made;
SET LOCAL ROLE regress_instaid_app;
SELECT regress_s.next_id() > 0 AS made;
SET LOCAL ROLE regress_instaid_other;
SELECT regress_s.next_id();
ROLLBACK;
-- a role without rights gets no lock, which a rollback to a savepoint would leave, and
-- does not wait for one
BEGIN;
SET LOCAL ROLE regress_instaid_other;
SELECT try(format('SELECT %s', call)) FROM unnest(ARRAY['regress_s.next_id()', 'count(*) FROM regress_s.next_ids(1)',
    $$instaid.next_id('regress_s.table_id_seq', 9)$$, $$instaid.next_id('regress_s.photos', 9)$$, $$instaid.next_id('pg_class', 9)$$,
    $$instaid.next_id(4::oid, 9)$$, $$instaid.settled_id('regress_s')$$, $$instaid.settled_id('pg_class', 9)$$,
    $$instaid.advance_past('regress_s.table_id_seq', 1, instaid.default_epoch())$$]) WITH ORDINALITY AS c (call, n) ORDER BY n;
SELECT relation::regclass, mode FROM pg_locks
WHERE pid = pg_backend_pid() AND (relation IN ('regress_s.table_id_seq'::regclass, 'regress_s.photos'::regclass) OR mode = 'RowExclusiveLock');
ROLLBACK;
-- a SECURITY DEFINER function uses the rights of its owner
CREATE FUNCTION regress_s.lent() RETURNS bigint LANGUAGE sql SECURITY DEFINER RETURN regress_s.next_id();
SET ROLE regress_instaid_other;
SELECT regress_s.lent() > 0 AS made;
SELECT regress_s.lent() > 0 AS made, regress_s.next_id();
RESET ROLE;

-- a hostile search_path changes nothing
CREATE SCHEMA regress_evil;
CREATE FUNCTION regress_evil.clock_timestamp() RETURNS timestamptz LANGUAGE sql RETURN '1999-01-01'::timestamptz;
CREATE FUNCTION regress_evil.next_id(regclass, integer, timestamptz) RETURNS bigint LANGUAGE sql RETURN 666;
CREATE FUNCTION regress_evil.evil_or(bigint, bigint) RETURNS bigint LANGUAGE sql RETURN 666;
CREATE OPERATOR regress_evil.| (FUNCTION = regress_evil.evil_or, LEFTARG = bigint, RIGHTARG = bigint);
CREATE SEQUENCE regress_evil.table_id_seq;
SET search_path = regress_evil, pg_catalog, regress_s;
SELECT instaid.extract_timestamp(regress_s.next_id()) > now() - interval '1 minute' AS of_now;
INSERT INTO photos (caption) VALUES ('x') RETURNING instaid.extract_shard_id(id);
SELECT shard_id, last_id <> 666 AS real, last_issued_at > now() - interval '1 minute' AS of_now
FROM instaid.shards WHERE schema_name = 'regress_s';
SELECT instaid.create_shard('regress_t', 10);
SELECT instaid.extract_shard_id(regress_t.next_id());
SELECT is_called FROM regress_evil.table_id_seq;
RESET search_path;
SELECT set_config('search_path', '', false);
INSERT INTO regress_s.photos (caption) VALUES ('x') RETURNING instaid.extract_shard_id(id);
RESET search_path;

-- a read-only transaction takes no ID, as with nextval(); decoding works
\set VERBOSITY sqlstate
BEGIN READ ONLY;
SAVEPOINT s;
SELECT nextval('regress_s.table_id_seq');
ROLLBACK TO s;
SELECT regress_s.next_id();
ROLLBACK TO s;
SELECT * FROM regress_s.next_ids(2);
ROLLBACK TO s;
-- the error names the function
SELECT try('SELECT regress_s.next_id()');
SELECT try('SELECT regress_s.next_ids(2)');
SELECT try($$SELECT instaid.advance_past('regress_s.table_id_seq', 0, instaid.default_epoch())$$);
SELECT shard_id, sequence FROM instaid.decode(4001511883701836730);
SELECT shard_id FROM instaid.shards WHERE schema_name = 'regress_s';
COMMIT;
-- a transaction can become read-only after it has made IDs
BEGIN;
SELECT regress_s.next_id() > 0 AS made;
SET TRANSACTION READ ONLY;
SELECT regress_s.next_id();
ROLLBACK;
\set VERBOSITY default
-- a function that is wrongly marked PARALLEL SAFE gets no ID in a worker
CREATE FUNCTION regress_s.lie() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE
    AS 'BEGIN RETURN regress_s.next_id(); END';
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off;
CREATE TABLE regress_s.big AS SELECT generate_series(1, 10000) AS n;
ANALYZE regress_s.big;
\set SHOW_CONTEXT never
SELECT count(regress_s.lie()) FROM regress_s.big;
SELECT count(DISTINCT instaid.extract_shard_id(n)) FROM regress_s.big;
EXPLAIN (COSTS OFF) SELECT count(instaid.extract_shard_id(n)) FROM regress_s.big;
EXPLAIN (COSTS OFF) SELECT count(regress_s.next_id()) FROM regress_s.big;
RESET ALL;

SET client_min_messages = warning;
DROP SCHEMA regress_s, regress_t, regress_evil CASCADE;
REVOKE CREATE ON SCHEMA public FROM regress_instaid_app;
DROP ROLE regress_instaid_app, regress_instaid_team, regress_instaid_other;

-- default privileges let no other role set a shard back, or put a function beside those of a shard
CREATE ROLE regress_instaid_other;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO regress_instaid_other, PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO regress_instaid_other WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO PUBLIC;
SELECT instaid.create_shard('regress_d', 18);
CALL instaid.create_shards('regress_d%s', 20, 21);
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SEQUENCES FROM regress_instaid_other, PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM regress_instaid_other, PUBLIC;
SELECT s, has_sequence_privilege(r, s, 'USAGE') AS usage, has_sequence_privilege(r, s, 'UPDATE') AS update
FROM unnest(ARRAY['regress_d.table_id_seq']) AS s, unnest(ARRAY['regress_instaid_other', 'public']) AS r ORDER BY s, r;
SELECT s, has_schema_privilege(r, s, 'USAGE') AS usage, has_schema_privilege(r, s, 'CREATE') AS create
FROM unnest(ARRAY['regress_d', 'regress_d20', 'regress_d21']) AS s, unnest(ARRAY['regress_instaid_other', 'public']) AS r ORDER BY s, r;
SET client_min_messages = warning;
DROP SCHEMA regress_d, regress_d20, regress_d21 CASCADE;
DROP ROLE regress_instaid_other;
