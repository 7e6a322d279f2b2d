-- Tickets in one session, and their creation on first use.  test/t/012_tickets.pl tests
-- crashes and several servers.

-- the next values of a ticket
CREATE FUNCTION take(name text, count integer DEFAULT 1) RETURNS bigint[] LANGUAGE sql
    BEGIN ATOMIC SELECT array_agg(v ORDER BY n) FROM (
        SELECT n, instaid.next_ticket(name) AS v FROM generate_series(1, count) AS n) AS t; END;

-- a ticket counts by one; its sequence has its settings
SELECT instaid.create_ticket('photos');
SELECT instaid.next_ticket('photos');
SELECT take('photos', 4);
SELECT data_type, start_value, increment_by, cache_size, cycle, last_value FROM pg_sequences
WHERE schemaname = 'instaid_tickets' AND sequencename = 'photos';
-- a column default
CREATE TABLE tickets_photos (id bigint PRIMARY KEY DEFAULT instaid.next_ticket('photos'), caption text);
INSERT INTO tickets_photos (caption) VALUES ('breakfast'), ('sunset') RETURNING id;
-- odd and even
SELECT instaid.create_ticket('odd', 1, 2), instaid.create_ticket('even', server => 2, servers => 2);
SELECT take('odd', 5), take('even', 5);
-- drivers pass arguments without types
PREPARE create_odd AS SELECT instaid.create_ticket($1, $2);
DEALLOCATE create_odd;
-- the first value is the smallest at or above start that is the server's
SELECT server, start, (take(name))[1] AS first
FROM (SELECT format('%s from %s', server, start) AS name, * FROM generate_series(1, 3) AS server, generate_series(1, 7) AS start) AS t,
    LATERAL instaid.create_ticket(name, server, 3, start)
ORDER BY start, server;
-- a ticket can start above the maximum of a column, with the residue of its server
SELECT instaid.create_ticket('seeded', 2, 4, start => (SELECT max(id) + 1 FROM tickets_photos));
SELECT take('seeded', 2);

-- names are independent: 10,000 values of one do not move the others
SELECT (take('photos', 10000))[10000];
SELECT name, server, servers, step, last_value, values_left, off_stripe, sequence FROM instaid.tickets
WHERE name IN ('photos', 'odd', 'even', 'seeded') ORDER BY name;
-- a rollback, even to a savepoint, returns no value
BEGIN;
SELECT take('odd', 2);
SAVEPOINT s;
SELECT take('odd');
ROLLBACK TO s;
SELECT take('odd');
ROLLBACK;
SELECT take('odd');

-- a name can be any text of up to 63 bytes
SELECT instaid.create_ticket(n) FROM unnest(ARRAY['Photos', 'a "b" ''c''', 'select', 'naïve', '$$', ' ', repeat('x', 63), 'a.b', E'tab\tnewline\n']) AS n;
SELECT n, take(n, 2) FROM unnest(ARRAY['Photos', 'a "b" ''c''', 'select', 'naïve', '$$', ' ', repeat('x', 63), 'a.b', E'tab\tnewline\n']) AS n;
-- a longer one is refused rather than truncated, wherever it is used
SELECT try(format(statement, repeat('x', 63) || 'y'))
FROM unnest(ARRAY['SELECT instaid.create_ticket(%L)', 'SELECT instaid.next_ticket(%L)', 'SELECT * FROM instaid.lease_ticket(%L, 1)',
    'SELECT instaid.drop_ticket(%L)', 'SELECT instaid.guard_ticket(%L, 2)', 'SELECT instaid.restripe_ticket(%L, 1, 1, 2)']) AS statement;
SELECT try(format('SELECT instaid.next_ticket(%L)', repeat('é', 32)));
SELECT try($$SELECT instaid.create_ticket('')$$);

-- lease_ticket() takes a block of values at once
SELECT instaid.create_ticket('leased', 3, 5);
SELECT * FROM instaid.lease_ticket('leased', 1);
SELECT * FROM instaid.lease_ticket('leased', 1000);
SELECT take('leased', 2);
SELECT first, (last - first) / increment + 1 AS count FROM instaid.lease_ticket('leased', 1000000);
SELECT take('leased');
SELECT try($$SELECT * FROM instaid.lease_ticket('leased', 0)$$);
SELECT instaid.next_ticket(NULL) IS NULL AS null, first FROM instaid.lease_ticket('leased', NULL);

-- the step is the CACHE of the sequence; a session that ends loses no values
SELECT instaid.create_ticket('stepped', step => 100);
SELECT take('stepped', 2);
\c
SELECT take('stepped', 2);
SELECT step, last_value FROM instaid.tickets WHERE name = 'stepped';
-- core's functions on the same sequence
SELECT nextval('instaid_tickets.leased');
SELECT instaid.next_ticket('leased') - currval('instaid_tickets.leased') AS increment;
SELECT setval('instaid_tickets.leased', 20005003);
SELECT take('leased', 2);
SELECT setval('instaid_tickets.leased', 30000003, false);
SELECT take('leased', 2);
SELECT nextval('instaid_tickets.leased');

-- a setval() that leaves the stripe is shown, and the next value is in the stripe again
SELECT setval('instaid_tickets.odd', 100);
SELECT last_value, values_left, off_stripe FROM instaid.tickets WHERE name = 'odd';
SELECT * FROM instaid.audit() WHERE object ~ 'odd';
SELECT take('odd', 2);
SELECT last_value, values_left, off_stripe FROM instaid.tickets WHERE name = 'odd';
SELECT setval('instaid_tickets.odd', 200, false);
SELECT last_value, values_left, off_stripe FROM instaid.tickets WHERE name = 'odd';
SELECT take('odd', 2);
SELECT setval('instaid_tickets.seeded', 3, false);
SELECT off_stripe FROM instaid.tickets WHERE name = 'seeded';
SELECT take('seeded', 2);
-- an INCREMENT that is changed alone is shown, too
ALTER SEQUENCE instaid_tickets.odd INCREMENT 3;
SELECT servers, last_value, off_stripe FROM instaid.tickets WHERE name = 'odd';
SELECT take('odd', 2);

-- at the end of integer, every further call fails
SELECT instaid.create_ticket('small', 2, 2, 2147483640, data_type => 'integer');
SELECT take('small', 3);
SELECT values_left FROM instaid.tickets WHERE name = 'small';
SELECT try($$SELECT * FROM instaid.lease_ticket('small', 2)$$);
SELECT take('small');
SELECT try($$SELECT instaid.next_ticket('small')$$);
SELECT try($$SELECT nextval('instaid_tickets.small')$$);
SELECT last_value, values_left FROM instaid.tickets WHERE name = 'small';
-- the statement of the hint widens the type
ALTER SEQUENCE instaid_tickets.small AS bigint;
SELECT take('small');
-- a ticket of one value
BEGIN;
SELECT instaid.create_ticket('single', data_type => 'integer', start => 2147483647);
SELECT take('single');
SELECT try($$SELECT instaid.next_ticket('single')$$) LIMIT 1;
ROLLBACK;
-- the end of bigint, and of smallint
SELECT instaid.create_ticket('large', 3, 3, 9223372036854775800), instaid.create_ticket('tiny', data_type => 'smallint', start => 32766);
SELECT take('large', 3);
SELECT try($$SELECT instaid.next_ticket('large')$$);
SELECT try($$SELECT * FROM instaid.lease_ticket('photos', 9223372036854775807)$$);
SELECT take('tiny', 2);
SELECT try($$SELECT instaid.next_ticket('tiny')$$);

-- a MAXVALUE is a guard
ALTER SEQUENCE instaid_tickets.even MAXVALUE 13;
SELECT values_left FROM instaid.tickets WHERE name = 'even';
SELECT take('even');
SELECT try($$SELECT instaid.next_ticket('even')$$);
ALTER SEQUENCE instaid_tickets.even NO MAXVALUE;
SELECT take('even');

-- from two servers to three: boundary, guard, restart
SELECT instaid.drop_ticket('odd'), instaid.drop_ticket('even');
SELECT instaid.create_ticket('odd', 1, 2), instaid.create_ticket('even', 2, 2);
SELECT take('odd', 50), (take('even', 60))[60] AS even;
-- another order fails
SELECT try($$SELECT instaid.restripe_ticket('odd', 1, 3, 300)$$);
SELECT try($$SELECT instaid.guard_ticket('odd', 98)$$);
SELECT instaid.guard_ticket('odd', 300), instaid.guard_ticket('even', 300);
SELECT name, last_value, values_left FROM instaid.tickets WHERE name IN ('odd', 'even') ORDER BY name;
SELECT try($$SELECT instaid.restripe_ticket('odd', 1, 3, 303)$$);
SELECT try($$SELECT instaid.guard_ticket('odd', 303)$$);
SELECT instaid.guard_ticket('odd', 300);
SELECT try($$SELECT instaid.restripe_ticket('odd', 1, 7, 300)$$);
SELECT try($$SELECT instaid.restripe_ticket('odd', 4, 3, 300)$$);
SELECT try($$SELECT instaid.restripe_ticket('odd', 0, 3, 300)$$);
SELECT try($$SELECT instaid.restripe_ticket('odd', 0, 0, 300)$$);
SELECT instaid.restripe_ticket('odd', 1, 3, 300);
SELECT instaid.create_ticket('third', 3, 3, 301);
SELECT take('odd', 3), take('even', 3), take('third', 3);
SELECT instaid.restripe_ticket('even', 2, 3, 300);
SELECT take('odd', 2), take('even', 3), take('third', 2);
SELECT name, server, servers, last_value, off_stripe FROM instaid.tickets WHERE name IN ('odd', 'even', 'third') ORDER BY server;
-- a second restripe_ticket() fails
SELECT try($$SELECT instaid.restripe_ticket('odd', 1, 3, 300)$$);
-- a ticket that has issued nothing, and the limits of boundaries
SELECT instaid.create_ticket('fresh', 1, 2, 1001);
SELECT try($$SELECT instaid.guard_ticket('fresh', 1000)$$);
SELECT try($$SELECT instaid.guard_ticket('fresh', 9223372036854775807)$$);
SELECT instaid.guard_ticket('fresh', 1002);
SELECT instaid.restripe_ticket('fresh', 3, 3, 1002);
SELECT take('fresh');
SELECT instaid.create_ticket('at one');
SELECT try($$SELECT instaid.guard_ticket('at one', 1)$$);
-- a rollback undoes guard_ticket() and restripe_ticket()
BEGIN;
SELECT instaid.guard_ticket('fresh', 1200);
SELECT instaid.restripe_ticket('fresh', 1, 2, 1200);
ROLLBACK;
SELECT server, servers, last_value FROM instaid.tickets WHERE name = 'fresh';
SELECT take('fresh');

-- what create_ticket() refuses, and calls for a ticket that does not exist
SELECT try($$SELECT instaid.create_ticket('photos')$$);
SELECT try($$SELECT instaid.create_ticket('bad', 3, 2)$$);
SELECT try($$SELECT instaid.create_ticket('bad', 0, 2)$$);
SELECT try($$SELECT instaid.create_ticket('bad', 1, 0)$$);
SELECT try($$SELECT instaid.create_ticket('bad', start => 0)$$);
SELECT try($$SELECT instaid.create_ticket('bad', step => 0)$$);
SELECT try($$SELECT instaid.create_ticket('bad', data_type => 'numeric')$$);
SELECT try($$SELECT instaid.create_ticket('bad', data_type => 'integer', start => 2147483648)$$);
SELECT try($$SELECT instaid.create_ticket('bad', 2, 2, start => 9223372036854775807)$$);
SELECT try($$SELECT instaid.create_ticket('bad', start => NULL)$$);
SELECT try($$SELECT instaid.next_ticket('bad')$$);
SELECT try($$SELECT * FROM instaid.lease_ticket('bad', 2)$$);
SELECT try($$SELECT instaid.drop_ticket('bad')$$);
SELECT try($$SELECT instaid.guard_ticket('bad', 10)$$);
SELECT try($$SELECT instaid.restripe_ticket('bad', 1, 2, 10)$$);
-- the name is checked first, and no message repeats all of a long name
SELECT substr(try, 1, 100) AS try FROM (SELECT try(format('SELECT instaid.create_ticket(%L, 7, 3, source => ARRAY[%L])', repeat('z', 10000000), 'tickets1'))) AS t;
SELECT substr(try, 1, 100) AS try FROM (SELECT try(format('SELECT instaid.next_ticket(%L)', repeat('é', 5000000)))) AS t;
SELECT try($$SELECT instaid.create_ticket(NULL, step => NULL)$$);
-- sequences that somebody has altered
ALTER SEQUENCE instaid_tickets.fresh CYCLE;
SELECT try($$SELECT instaid.next_ticket('fresh')$$);
ALTER SEQUENCE instaid_tickets.fresh NO CYCLE;
ALTER SEQUENCE instaid_tickets.fresh SET UNLOGGED;
SELECT try($$SELECT instaid.next_ticket('fresh')$$);
CREATE SEQUENCE instaid_tickets.downwards INCREMENT -1;
CREATE SEQUENCE instaid_tickets.strange INCREMENT 9223372036854775807 MINVALUE -9223372036854775808 START -9223372036854775807;
CREATE TABLE instaid_tickets.no_ticket ();
SELECT try($$SELECT instaid.next_ticket('downwards')$$);
-- a refusal is not remembered as a ticket
SELECT try($$SELECT instaid.next_ticket('downwards')$$);
SELECT try($$SELECT instaid.next_ticket('no_ticket')$$);
SELECT try(format('SELECT instaid.%s', call)) FROM unnest(ARRAY['guard_ticket(''downwards'', 10)', 'restripe_ticket(''downwards'', 1, 2, 10)']) AS call;
-- PostgreSQL's messages differ between versions
SELECT left(line, 5) FROM unnest(ARRAY['guard_ticket(''no_ticket'', 10)', 'restripe_ticket(''no_ticket'', 1, 2, 10)']) AS call,
    try(format('SELECT instaid.%s', call)) AS line WHERE line ~ '^[0-9A-Z]{5}: ';
SELECT take('strange', 3);
SELECT name, server, servers, last_value, values_left, off_stripe FROM instaid.tickets WHERE name IN ('fresh', 'downwards', 'strange') ORDER BY name;
DROP TABLE instaid_tickets.no_ticket;
DROP SEQUENCE instaid_tickets.downwards, instaid_tickets.strange;

-- a read-only transaction takes no value, as with nextval()
BEGIN READ ONLY;
SELECT instaid.next_ticket('photos');
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM instaid.lease_ticket('photos', 1);
ROLLBACK;

-- which rights each function needs
CREATE ROLE regress_ticket_owner;
CREATE ROLE regress_ticket_app;
SET ROLE regress_ticket_owner;
SELECT try($$SELECT instaid.create_ticket('theirs')$$);
RESET ROLE;
GRANT CREATE ON SCHEMA instaid_tickets TO regress_ticket_owner;
SET ROLE regress_ticket_owner;
SELECT instaid.create_ticket('theirs');
SELECT take('theirs');
SET ROLE regress_ticket_app;
SELECT try($$SELECT instaid.next_ticket('theirs')$$);
SELECT try($$SELECT * FROM instaid.lease_ticket('theirs', 1)$$);
SELECT name, server, last_value, values_left, off_stripe FROM instaid.tickets WHERE name = 'theirs';
-- what takes no value asks for no right to take one
SELECT instaid.ticket_sequence('theirs');
SELECT try($$SELECT instaid.drop_ticket('theirs')$$);
SELECT try($$SELECT instaid.guard_ticket('theirs', 100)$$);
SELECT try($$SELECT instaid.restripe_ticket('theirs', 1, 2, 100)$$);
RESET ROLE;
GRANT CREATE ON SCHEMA instaid_tickets TO regress_ticket_app;
SET ROLE regress_ticket_app;
SELECT try($$SELECT instaid.create_ticket('theirs')$$);
RESET ROLE;
REVOKE CREATE ON SCHEMA instaid_tickets FROM regress_ticket_app;
SET ROLE regress_ticket_owner;
GRANT USAGE ON SEQUENCE instaid_tickets.theirs TO regress_ticket_app;
SET ROLE regress_ticket_app;
SELECT take('theirs');
SELECT name, last_value FROM instaid.tickets WHERE name = 'theirs';
SELECT try($$SELECT instaid.drop_ticket('theirs')$$);
SELECT try($$SELECT instaid.guard_ticket('theirs', 100)$$);
SELECT try($$SELECT instaid.restripe_ticket('theirs', 1, 2, 100)$$);

-- creation on first use is off by default, needs the caller's rights, and uses the
-- server of the settings
SELECT try($$SELECT instaid.next_ticket('unknown')$$);
SET instaid.auto_create_tickets = on;
SELECT * FROM try($$SELECT instaid.next_ticket('unknown')$$);
SET instaid.ticket_server = 2;
SET ROLE regress_ticket_owner;
BEGIN;
SELECT instaid.next_ticket('unknown');
ROLLBACK;
RESET ROLE;
SELECT tickets.name, servers, last_value, pg_get_userbyid(relowner) FROM instaid.tickets, pg_class WHERE oid = sequence AND tickets.name = 'unknown';
SELECT take('unknown', 2);
SET instaid.ticket_servers = 3;
SET instaid.ticket_server = 2;
SELECT instaid.next_ticket('second of three');
SELECT * FROM instaid.lease_ticket('leased on first use', 3);
SELECT instaid.next_ticket('Odd "name"''s');
SELECT name, server, servers, last_value FROM instaid.tickets WHERE name IN ('second of three', 'leased on first use', 'Odd "name"''s') ORDER BY name;
-- a ticket that this transaction has dropped or renamed
BEGIN;
SELECT instaid.drop_ticket('second of three');
SELECT * FROM try($$SELECT instaid.next_ticket('second of three')$$);
ROLLBACK;
BEGIN;
ALTER SEQUENCE instaid_tickets."second of three" RENAME TO renamed;
SELECT try($$SELECT instaid.next_ticket('second of three')$$);
SELECT instaid.next_ticket('renamed');
ROLLBACK;
-- names and settings that first use refuses
SET instaid.ticket_server = 4;
SELECT try($$SELECT instaid.next_ticket('fourth of three')$$);
RESET instaid.ticket_server;
SELECT try(format('SELECT instaid.next_ticket(%L)', repeat('y', 64)));
BEGIN READ ONLY;
SELECT instaid.next_ticket('not here');
ROLLBACK;
RESET instaid.ticket_servers;
RESET instaid.auto_create_tickets;
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';

-- the worker's own transaction can write if the caller's can
ALTER ROLE CURRENT_USER SET default_transaction_read_only = on;
SET default_transaction_read_only = on;
SET instaid.auto_create_tickets = on;
BEGIN READ WRITE;
SELECT instaid.next_ticket('read only by default');
COMMIT;
SET default_transaction_read_only = off;
RESET instaid.auto_create_tickets;
ALTER ROLE CURRENT_USER RESET default_transaction_read_only;
-- settings that change how text is read and names are written (PostgreSQL 19 does not
-- have the first one)
SELECT current_setting('server_version_num')::integer < 190000 AS has_escapes \gset
SET client_min_messages = error;
\if :has_escapes
SET standard_conforming_strings = off;
\endif
SET quote_all_identifiers = on;
CREATE SERVER "back\slash ""1""" FOREIGN DATA WRAPPER instaid;
SELECT instaid.create_ticket(E'back\\slash', 1, 2, step => 3), instaid.create_ticket('quoted', 2, 2),
    instaid.create_ticket(E'\\from elsewhere', source => ARRAY[E'back\\slash "1"']);
SELECT instaid.next_ticket(E'back\\slash'), instaid.next_ticket('quoted'), first, last FROM instaid.lease_ticket('quoted', 2);
SELECT instaid.guard_ticket(E'back\\slash', 300), instaid.guard_ticket('quoted', 300);
SELECT instaid.restripe_ticket(E'back\\slash', 1, 3, 300), instaid.restripe_ticket('quoted', 2, 3, 300);
SELECT instaid.next_ticket(E'back\\slash'), instaid.next_ticket('quoted');
SELECT name, server, servers, step, last_value, source, sequence FROM instaid.tickets WHERE name IN (E'back\\slash', 'quoted', E'\\from elsewhere') ORDER BY name;
SELECT try($$SELECT instaid.create_ticket('quoted')$$);
SELECT instaid.drop_ticket(E'back\\slash'), instaid.drop_ticket('quoted'), instaid.drop_ticket(E'\\from elsewhere');
DROP SERVER "back\slash ""1""";
RESET standard_conforming_strings;
RESET quote_all_identifiers;
RESET client_min_messages;

-- a step changes how much is logged, and no value
SELECT instaid.create_ticket('by the thousand', 1, 2, step => 1000);
SELECT take('by the thousand', 5);
SELECT last_value FROM instaid.tickets WHERE name = 'by the thousand';

-- a session remembers names, until something that they rest on changes
SELECT instaid.create_ticket('here'), instaid.create_ticket('there', start => 100);
SELECT take('here'), take('there');
ALTER SEQUENCE instaid_tickets.here RENAME TO away;
ALTER SEQUENCE instaid_tickets.there RENAME TO here;
SELECT take('here'), take('away');
SELECT * FROM try($$SELECT instaid.next_ticket('there')$$) LIMIT 1;
SELECT instaid.drop_ticket('here');
SELECT instaid.create_ticket('here', start => 7);
SELECT take('here');
ALTER SEQUENCE instaid_tickets.here INCREMENT 10 RESTART 1007;
SELECT take('here', 2);
SELECT setval('instaid_tickets.here', 2007);
SELECT take('here');
-- what is rolled back
BEGIN;
SAVEPOINT s;
ALTER SEQUENCE instaid_tickets.here RESTART 5007;
SELECT take('here', 2);
ROLLBACK TO s;
SELECT take('here');
ALTER SEQUENCE instaid_tickets.here RENAME TO elsewhere;
SELECT take('elsewhere');
ROLLBACK;
SELECT take('here');
-- rights, roles and the schema
GRANT USAGE ON SEQUENCE instaid_tickets.here TO regress_ticket_app;
SET ROLE regress_ticket_app;
SELECT take('here');
SET ROLE regress_ticket_owner;
SELECT * FROM try($$SELECT instaid.next_ticket('here')$$) LIMIT 1;
RESET ROLE;
REVOKE USAGE ON SEQUENCE instaid_tickets.here FROM regress_ticket_app;
SET ROLE regress_ticket_app;
SELECT * FROM try($$SELECT instaid.next_ticket('here')$$) LIMIT 1;
RESET ROLE;
GRANT USAGE ON SEQUENCE instaid_tickets.here TO regress_ticket_owner;
GRANT regress_ticket_owner TO regress_ticket_app;
SET ROLE regress_ticket_app;
SELECT take('here');
RESET ROLE;
REVOKE regress_ticket_owner FROM regress_ticket_app;
SET ROLE regress_ticket_app;
SELECT * FROM try($$SELECT instaid.next_ticket('here')$$) LIMIT 1;
RESET ROLE;
REVOKE USAGE ON SCHEMA instaid_tickets FROM PUBLIC;
SET ROLE regress_ticket_owner;
SELECT * FROM try($$SELECT instaid.next_ticket('here')$$) LIMIT 1;
RESET ROLE;
GRANT USAGE ON SCHEMA instaid_tickets TO PUBLIC;
SELECT take('here');

-- a ticket with a source is a foreign table
SELECT count(*) FROM instaid.segments;
CREATE SERVER tickets1 FOREIGN DATA WRAPPER instaid OPTIONS (host 'a', dbname 'tickets');
CREATE SERVER "Tickets, 2" FOREIGN DATA WRAPPER instaid OPTIONS (host 'b', dbname 'tickets', connect_timeout '5');
CREATE USER MAPPING FOR PUBLIC SERVER tickets1 OPTIONS (user 'leaser', password 'secret');
CREATE USER MAPPING FOR CURRENT_USER SERVER "Tickets, 2" OPTIONS (user 'leaser');
SELECT instaid.create_ticket('from elsewhere', step => 10, source => ARRAY['tickets1', 'Tickets, 2']);
SET client_min_messages = error;
-- ... and one more for each further server, which is no ticket
SELECT * FROM try($$SELECT instaid.next_ticket('from elsewhere@002')$$);
SELECT * FROM try($$SELECT instaid.drop_ticket('from elsewhere@002')$$);
SELECT * FROM try($$SELECT instaid.create_ticket('from elsewhere@002')$$);
SELECT instaid.create_ticket('from one', data_type => 'smallint', source => ARRAY['tickets1']);
SELECT name, server, servers, step, last_value, values_left, off_stripe, source, sequence FROM instaid.tickets WHERE name LIKE 'from%' ORDER BY name;
SELECT c.relname, s.srvname, f.ftoptions, a.atttypid::regtype FROM pg_foreign_table AS f JOIN pg_class AS c ON c.oid = f.ftrelid JOIN pg_foreign_server AS s ON s.oid = f.ftserver
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = 1 ORDER BY c.relname;
SELECT * FROM try($$SELECT instaid.next_ticket('from elsewhere')$$);
SELECT * FROM try($$SELECT instaid.lease_ticket('from elsewhere', 5)$$);
SELECT left(message, 5) AS sqlstate FROM try($$SELECT nextval('instaid_tickets."from elsewhere"')$$) AS message LIMIT 1;
SELECT * FROM try($$SELECT instaid.guard_ticket('from elsewhere', 100)$$);
SELECT * FROM try($$SELECT instaid.restripe_ticket('from elsewhere', 1, 2, 100)$$);
SELECT * FROM try($$SELECT * FROM instaid_tickets."from elsewhere"$$);
SELECT * FROM try($$SELECT instaid.create_ticket('from elsewhere')$$);
-- no transaction but the committed one can use it
BEGIN;
SELECT instaid.create_ticket('not yet', source => ARRAY['tickets1']);
SELECT * FROM try($$SELECT instaid.next_ticket('not yet')$$);
ROLLBACK;
-- the ticket depends on its servers, and follows them
SELECT replace(try, CURRENT_USER, 'me') AS try FROM try($$DROP SERVER "Tickets, 2"$$);
BEGIN;
DROP SERVER tickets1 CASCADE;
SELECT name FROM instaid.tickets WHERE name LIKE 'from%';
ROLLBACK;
ALTER SERVER tickets1 RENAME TO tickets3;
ALTER FOREIGN TABLE instaid_tickets."from elsewhere" OPTIONS (SET step '20');
SELECT name, step, source FROM instaid.tickets WHERE name LIKE 'from%' ORDER BY name;
SELECT * FROM try($$ALTER FOREIGN TABLE instaid_tickets."from elsewhere" OPTIONS (SET step '0')$$);
SELECT * FROM try($$ALTER FOREIGN TABLE instaid_tickets."from elsewhere" OPTIONS (ADD host 'a')$$);
SELECT * FROM try($$CREATE SERVER bad FOREIGN DATA WRAPPER instaid OPTIONS (password 'secret')$$) LIMIT 1;
-- instaid is no provider of security labels
SELECT * FROM try($$SECURITY LABEL ON TABLE tickets_photos IS 'label'$$);
-- the source can be null
SELECT instaid.create_ticket('of its own', source => NULL);
SELECT name, source FROM instaid.tickets WHERE name = 'of its own';
SELECT instaid.drop_ticket(name) FROM unnest(ARRAY['of its own', 'from one']) AS name;
-- an array of other dimensions and bounds; a name that a renamed ticket had
SELECT instaid.create_ticket('old name', source => '[5:6][0:0]={{tickets3},{"Tickets, 2"}}'::text[]);
ALTER FOREIGN TABLE instaid_tickets."old name" RENAME TO "new name";
SELECT instaid.create_ticket('old name', source => ARRAY['Tickets, 2', 'tickets3']);
SELECT name, source FROM instaid.tickets WHERE name ~ '(old|new) name' ORDER BY name;
SELECT instaid.drop_ticket(name) FROM unnest(ARRAY['old name', 'new name']) AS name;
SELECT relname FROM pg_class WHERE relname ~ '(old|new) name';
SELECT * FROM try($$SELECT instaid.create_ticket('bad', start => 7, source => ARRAY['tickets3'])$$);
SELECT * FROM try($$SELECT instaid.create_ticket('bad', 2, 2, source => ARRAY['tickets3'])$$);
SELECT * FROM try($$SELECT instaid.create_ticket('bad', 1, 2, source => ARRAY['tickets3'])$$);
SELECT * FROM try($$SELECT instaid.create_ticket('bad', source => ARRAY['tickets1'])$$);
SELECT * FROM try($$SELECT instaid.create_ticket('bad', source => ARRAY['tickets3, Tickets 2'])$$);
SELECT * FROM try($$SELECT instaid.create_ticket('bad', source => ARRAY[''])$$);
SELECT * FROM try($$SELECT instaid.create_ticket('bad', source => ARRAY[]::text[])$$);
SELECT * FROM try($$SELECT instaid.create_ticket('bad', source => ARRAY['tickets3', NULL])$$);
SELECT * FROM try($$SELECT instaid.create_ticket('bad', source => ARRAY['tickets3', 'Tickets, 2', 'tickets3'])$$);
SELECT * FROM try($$SELECT instaid.create_ticket('bad', source => array_fill('tickets3'::text, ARRAY[17]))$$);
SELECT * FROM try(format('SELECT instaid.create_ticket(%L, source => ARRAY[%L])', 'bad', repeat('a', 1000)));
SELECT * FROM try(format($$SELECT instaid.create_ticket(%L, source => ARRAY['tickets3', 'Tickets, 2'])$$, repeat('b', 61)));
-- all names for the table of the second server are taken
BEGIN;
SET LOCAL statement_timeout = '60s';
DO $$
BEGIN
    FOR i IN 2 .. 1000 LOOP
        EXECUTE format('CREATE SEQUENCE instaid_tickets.%I', 'many' || to_char(i, '"@"FM000'));
    END LOOP;
END $$;
SELECT * FROM try($$SELECT instaid.create_ticket('many', source => ARRAY['tickets3', 'Tickets, 2'])$$);
ROLLBACK;
CREATE FOREIGN DATA WRAPPER regress_wrapper;
CREATE SERVER other FOREIGN DATA WRAPPER regress_wrapper;
SELECT * FROM try($$SELECT instaid.create_ticket('bad', source => ARRAY['other'])$$);
-- a foreign table of another wrapper is no ticket
CREATE FOREIGN TABLE instaid_tickets.bad (value bigint) SERVER other;
SELECT * FROM try($$SELECT instaid.next_ticket('bad')$$);
SELECT name FROM instaid.tickets WHERE name = 'bad';
DROP SERVER other CASCADE;
DROP FOREIGN DATA WRAPPER regress_wrapper;
-- audit() finds what is missing
DROP USER MAPPING FOR CURRENT_USER SERVER "Tickets, 2";
SELECT code, object, replace(problem, CURRENT_USER, 'me') AS problem FROM instaid.audit() WHERE object ~ 'elsewhere';
SELECT instaid.drop_ticket('from elsewhere');
DROP SERVER "Tickets, 2";
-- the owner of a ticket needs USAGE on its servers, when it is created and later
SET ROLE regress_ticket_owner;
SELECT * FROM try($$SELECT instaid.create_ticket('theirs, from elsewhere', source => ARRAY['tickets3'])$$);
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER tickets3 TO regress_ticket_owner;
SET ROLE regress_ticket_owner;
SELECT instaid.create_ticket('theirs, from elsewhere', source => ARRAY['tickets3']);
SELECT * FROM try($$SELECT instaid.next_ticket('theirs, from elsewhere')$$) LIMIT 1;
SET ROLE regress_ticket_app;
SELECT * FROM try($$SELECT instaid.next_ticket('theirs, from elsewhere')$$);
RESET ROLE;
SELECT instaid.drop_ticket('theirs, from elsewhere');
RESET client_min_messages;

-- DROP EXTENSION fails while there are tickets
BEGIN;
\set VERBOSITY terse
DROP EXTENSION instaid;
\set VERBOSITY default
ROLLBACK;

SET client_min_messages = warning;
DROP TABLE tickets_photos;
DROP FUNCTION take;
SELECT instaid.drop_ticket(name) FROM instaid.tickets \g /dev/null
SELECT count(*) FROM instaid.tickets;
DROP OWNED BY regress_ticket_owner, regress_ticket_app;
DROP ROLE regress_ticket_owner, regress_ticket_app;
