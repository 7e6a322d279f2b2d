-- The wrappers are inlined: what runs is the C function with constants.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SELECT instaid.create_shard('regress_e', 5);
CREATE TABLE regress_e.photos (id bigint PRIMARY KEY DEFAULT regress_e.next_id(), n integer);
CREATE SEQUENCE regress_e.own_seq;
CREATE TABLE regress_e.own (id bigint PRIMARY KEY DEFAULT regress_e.next_id('regress_e.own_seq'), n integer);

EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO regress_e.photos (n) VALUES (1);
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO regress_e.photos (n) SELECT n FROM generate_series(1, 10) AS n;
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO regress_e.own (n) VALUES (1), (2);
EXPLAIN (VERBOSE, COSTS OFF) SELECT regress_e.next_id();

-- a default that is not inlined would call the SQL function once a row
SET track_functions = 'all';
SELECT pg_stat_force_next_flush();
INSERT INTO regress_e.photos (n) SELECT generate_series(1, 10);
COPY regress_e.photos (n) FROM stdin;
1
2
\.
SELECT pg_stat_force_next_flush();
SELECT schemaname, funcname, calls FROM pg_stat_user_functions WHERE schemaname IN ('regress_e', 'instaid') ORDER BY funcname;
RESET track_functions;

-- the sequence cannot go without its functions, nor they without the defaults
DROP SEQUENCE regress_e.table_id_seq;
DROP FUNCTION regress_e.next_id();

SET client_min_messages = warning;
DROP SCHEMA regress_e CASCADE;
