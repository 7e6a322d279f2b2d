-- Rollback, savepoints, errors, setval(), ALTER SEQUENCE and TRUNCATE between two
-- calls: no ID repeats, IDs increase, and nothing stays locked.
SELECT instaid.create_shard('regress_l', 7);
-- takes so many IDs, and returns the last one
CREATE FUNCTION take(count integer DEFAULT 1) RETURNS bigint LANGUAGE sql
    BEGIN ATOMIC SELECT max(id) FROM regress_l.next_ids(count) AS id; END;

-- a rollback gives no ID back
BEGIN;
SELECT take(5000) AS a \gset
ROLLBACK;
SELECT take() AS b \gset
SELECT :b > :a AS increasing;

-- a rollback to a savepoint gives no ID back; the transaction keeps the lock
BEGIN;
SAVEPOINT s;
SELECT take() AS a \gset
SELECT mode, granted FROM pg_locks WHERE relation = 'regress_l.table_id_seq'::regclass AND pid = pg_backend_pid();
ROLLBACK TO s;
SELECT mode, granted FROM pg_locks WHERE relation = 'regress_l.table_id_seq'::regclass AND pid = pg_backend_pid();
SELECT take() AS b \gset
COMMIT;
SELECT :b > :a AS increasing;
SELECT count(*) AS locks FROM pg_locks WHERE relation = 'regress_l.table_id_seq'::regclass AND pid = pg_backend_pid();

-- an error in a statement that took IDs
SELECT take() / 0;
SELECT take() AS a \gset
SELECT :a > :b AS increasing;

DISCARD ALL;
SELECT take() AS b \gset
SELECT :b > :a AS increasing;

-- setval() sets the sequence back, also within one statement and one millisecond
SELECT setval('regress_l.table_id_seq', 5000) \g /dev/null
SELECT take() AS a \gset
SELECT :a > :b AS increasing;
SELECT count(*), count(DISTINCT id)
FROM (SELECT setval('regress_l.table_id_seq', 5000), take() AS id FROM generate_series(1, 100)) AS v;
-- setval() sets back a sequence that is ahead of the clock
SELECT take(300000) AS a \gset
SELECT setval('regress_l.table_id_seq', 1) \g /dev/null
SELECT take() AS b \gset
SELECT :b > :a AS increasing;
SELECT setval('regress_l.table_id_seq', 1, false) \g /dev/null
SELECT take() AS a \gset
SELECT :a > :b AS increasing;
-- ... to the low bits of the last ID, which is a second ahead of the clock, so that a busy machine
-- is still behind it in the next statement
SELECT take(1000000) AS b \gset
SELECT setval('regress_l.table_id_seq', 5120 + (:b & 1023), false) \g /dev/null
SELECT take() AS a \gset
SELECT :a > :b AS increasing;

-- ALTER SEQUENCE outside of and in a transaction, with and without a rollback
SELECT take() AS a \gset
ALTER SEQUENCE regress_l.table_id_seq RESTART;
SELECT take(300000) AS b \gset
SELECT :b > :a AS increasing;
BEGIN;
ALTER SEQUENCE regress_l.table_id_seq RESTART CACHE 20;
SELECT take() AS a \gset
SELECT :a > :b AS increasing;
ROLLBACK;
SELECT take() AS b \gset
SELECT :b > :a AS increasing;
BEGIN;
SELECT take() AS a \gset
ALTER SEQUENCE regress_l.table_id_seq RESTART CACHE 20;
SAVEPOINT s;
ALTER SEQUENCE regress_l.table_id_seq CACHE 30;
SELECT take() AS b \gset
SELECT :b > :a AS increasing;
ROLLBACK TO s;
SELECT take() AS a \gset
SELECT :a > :b AS increasing;
COMMIT;
SELECT take() AS b \gset
SELECT :b > :a AS increasing;
-- an option with which the sequence cannot serve takes effect at once
BEGIN;
SELECT take() > 0 AS served;
ALTER SEQUENCE regress_l.table_id_seq INCREMENT 2;
\set VERBOSITY sqlstate
SELECT take();
ROLLBACK;
\set VERBOSITY default

-- TRUNCATE ... RESTART IDENTITY of a table with a sequence of its own
CREATE TABLE regress_l.stars (id bigint PRIMARY KEY);
CREATE SEQUENCE regress_l.stars_id_seq OWNED BY regress_l.stars.id;
ALTER TABLE regress_l.stars ALTER id SET DEFAULT regress_l.next_id('regress_l.stars_id_seq');
CREATE TABLE seen (id bigint UNIQUE);
WITH i AS (INSERT INTO regress_l.stars SELECT FROM generate_series(1, 50000) RETURNING id) INSERT INTO seen TABLE i;
TRUNCATE regress_l.stars RESTART IDENTITY;
WITH i AS (INSERT INTO regress_l.stars SELECT FROM generate_series(1, 50000) RETURNING id) INSERT INTO seen TABLE i;
BEGIN;
TRUNCATE regress_l.stars RESTART IDENTITY;
INSERT INTO regress_l.stars SELECT FROM generate_series(1, 50000);
SELECT max(id) AS a FROM regress_l.stars \gset
ROLLBACK;
WITH i AS (INSERT INTO regress_l.stars SELECT FROM generate_series(1, 50000) RETURNING id) INSERT INTO seen TABLE i;
SELECT count(*), min(id) FILTER (WHERE n > 100000) > :a AS past_rolled_back
FROM (SELECT id, row_number() OVER (ORDER BY id) AS n FROM seen) AS v;

-- a call that waits for the clock can be interrupted
SELECT setval('regress_l.table_id_seq',
              ((extract(epoch FROM now()) * 1000)::bigint + 3600000 << 10) + 1023) \g /dev/null
SET client_min_messages = error;
SET statement_timeout = '50ms';
SELECT regress_l.next_id();
RESET statement_timeout;
SELECT count(*) AS locks FROM pg_locks WHERE relation = 'regress_l.table_id_seq'::regclass AND pid = pg_backend_pid();
-- the wait ends by itself
SELECT (instaid.decode(regress_l.next_id())).sequence;
RESET client_min_messages;

-- a sequence that was dropped
SELECT 'regress_l.stars_id_seq'::regclass::oid AS oid \gset
SELECT regress_l.next_id(:oid) > 0 AS made;
DROP TABLE regress_l.stars;
SELECT replace(try, :'oid', '...') FROM try('SELECT regress_l.next_id(' || :oid || ')');
DROP SEQUENCE regress_l.table_id_seq;
BEGIN;
SET LOCAL client_min_messages = warning;
DROP SEQUENCE regress_l.table_id_seq CASCADE;
SELECT * FROM try('SELECT regress_l.next_id()') LIMIT 1;	-- the rest differs between versions
ROLLBACK;
SELECT take() > 0 AS still_there;

SET client_min_messages = warning;
DROP TABLE seen;
DROP FUNCTION take;
DROP SCHEMA regress_l CASCADE;
