-- Tickets with a source as objects.  test/t/ticket_sources.pl has authorities that lease values.
SET client_min_messages = warning;
\getenv top PG_ABS_SRCDIR
\set try :top '/../test/lib/try.sql'
\i :try

-- options of servers and mappings are those of libpq
CREATE SERVER authorities FOREIGN DATA WRAPPER instaid_tickets OPTIONS (
    host 'ticket1,ticket2', port '5432', dbname 'app', sslmode 'verify-full', sslrootcert '/etc/ssl/ca.pem',
    channel_binding 'require', target_session_attrs 'read-write', keepalives_idle '10', connect_timeout '3');
CREATE USER MAPPING FOR CURRENT_USER SERVER authorities OPTIONS (user 'leaser', password 'secret');
SELECT option, try(format('ALTER SERVER authorities OPTIONS (ADD %I %L)', option, 'x'))
FROM unnest(ARRAY['user', 'password', 'sslpassword', 'client_encoding', 'replication', 'authtype', 'tty', 'nonsense']) AS option;
SELECT option, try(format('ALTER USER MAPPING FOR CURRENT_USER SERVER authorities OPTIONS (ADD %I %L)', option, 'x'))
FROM unnest(ARRAY['sslpassword', 'host', 'nonsense']) AS option;
SELECT try($$CREATE FOREIGN DATA WRAPPER regress_other VALIDATOR instaid_tickets._validator OPTIONS (host 'x')$$) LIMIT 1;

-- a foreign table has the options sequence, which it needs, and step
SELECT try(format('CREATE FOREIGN TABLE remote (value bigint) SERVER authorities OPTIONS (%s)', options))
FROM unnest(ARRAY['step ''5''', 'sequence ''app.x'', step ''0''', 'sequence ''app.x'', step ''x''', 'sequence ''app.x'', color ''red''']) AS options;
CREATE FOREIGN TABLE remote (value bigint) SERVER authorities OPTIONS (sequence 'app.remote', step '100');
CREATE FOREIGN TABLE others (value bigint) SERVER authorities OPTIONS (sequence 'app.others');
SELECT ticket, server, servers, step, source, is_used FROM instaid_tickets.tickets ORDER BY ticket::text;
-- nobody reads or writes it
SELECT try('TABLE remote'), try('INSERT INTO remote VALUES (1)');
-- it has no values to lease, and cannot be guarded
SELECT try($$SELECT * FROM instaid_tickets.lease('remote', 1)$$,
    $$SELECT instaid_tickets.guard('remote', 1)$$,
    -- this server has not preloaded the library
    $$SELECT instaid_tickets.next('remote')$$);
SELECT * FROM instaid_tickets.audit();
SELECT count(*) FROM instaid_tickets.segments;
-- a foreign table of another wrapper is no ticket
CREATE FOREIGN DATA WRAPPER regress_other;
CREATE SERVER regress_other FOREIGN DATA WRAPPER regress_other;
CREATE FOREIGN TABLE not_ours (value bigint) SERVER regress_other;
SELECT try($$SELECT instaid_tickets.next('not_ours')$$);
-- another role needs UPDATE
CREATE ROLE regress_source_app;
SET ROLE regress_source_app;
SELECT try($$SELECT instaid_tickets.next('remote')$$);
RESET ROLE;
-- one that is not committed cannot be seen by the worker
BEGIN;
CREATE FOREIGN TABLE fresh (value bigint) SERVER authorities OPTIONS (sequence 'app.fresh');
SELECT try($$SELECT instaid_tickets.next('fresh')$$);
ROLLBACK;
-- a default depends on the table, and the table on the server
CREATE TABLE uses (id bigint DEFAULT instaid_tickets.next('remote'));
\set VERBOSITY terse
DROP FOREIGN TABLE remote;
DROP SERVER authorities;
ALTER FOREIGN TABLE remote RENAME TO renamed;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'uses'::regclass;
DROP TABLE uses;
DROP SERVER authorities CASCADE;
DROP FOREIGN DATA WRAPPER regress_other CASCADE;
DROP ROLE regress_source_app;
DROP FUNCTION try;
