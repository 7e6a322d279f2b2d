CREATE EXTENSION instaid_tickets;
\getenv top PG_ABS_SRCDIR
\set try :top '/../test/lib/try.sql'
\i :try
-- Tickets in one session.  test/t/ticket_values.pl tests crashes and several servers.

-- the next values of a ticket
CREATE FUNCTION take(name text, count integer DEFAULT 1) RETURNS bigint[] LANGUAGE sql
    BEGIN ATOMIC SELECT array_agg(v ORDER BY n) FROM (
        SELECT n, instaid_tickets.next(format('public.%I', name)::regclass) AS v FROM generate_series(1, count) AS n) AS t; END;

-- a ticket counts by one; its sequence has its settings
SELECT instaid_tickets.create('public.photos');
SELECT instaid_tickets.next('photos');
SELECT take('photos', 4);
SELECT data_type, start_value, increment_by, cache_size, cycle, last_value FROM pg_sequences
WHERE schemaname = 'public' AND sequencename = 'photos';
-- a column default
CREATE TABLE tickets_photos (id bigint PRIMARY KEY DEFAULT instaid_tickets.next('photos'::regclass), caption text);
INSERT INTO tickets_photos (caption) VALUES ('breakfast'), ('sunset') RETURNING id;
-- odd and even
SELECT instaid_tickets.create('public.odd', 1, 2), instaid_tickets.create('public.even', server => 2, servers => 2);
SELECT take('odd', 5), take('even', 5);
-- drivers pass arguments without types
PREPARE create_odd AS SELECT instaid_tickets.create($1, $2);
DEALLOCATE create_odd;
-- the first value is the smallest at or above start that is the server's
SELECT server, start, (take(name))[1] AS first
FROM (SELECT format('s%s_%s', server, start) AS name, * FROM generate_series(1, 3) AS server, generate_series(1, 7) AS start) AS t,
    LATERAL instaid_tickets.create('public.' || name, server, 3, start)
ORDER BY start, server;
-- a ticket can start above the maximum of a column, with the residue of its server
SELECT instaid_tickets.create('public.seeded', 2, 4, start => (SELECT max(id) + 1 FROM tickets_photos));
SELECT take('seeded', 2);

-- names are independent: 10,000 values of one do not move the others
SELECT (take('photos', 10000))[10000];
SELECT ticket, server, servers, step, last_value, values_left, off_stripe FROM instaid_tickets.tickets
WHERE ticket::text IN ('photos', 'odd', 'even', 'seeded') ORDER BY ticket::text;
-- a rollback, even to a savepoint, returns no value
BEGIN;
SELECT take('odd', 2);
SAVEPOINT s;
SELECT take('odd');
ROLLBACK TO s;
SELECT take('odd');
ROLLBACK;
SELECT take('odd');

-- lease() takes a block of values at once
SELECT instaid_tickets.create('public.leased', 3, 5);
SELECT * FROM instaid_tickets.lease('leased', 1);
SELECT * FROM instaid_tickets.lease('leased', 1000);
SELECT take('leased', 2);
SELECT first, (last - first) / increment + 1 AS count FROM instaid_tickets.lease('leased', 1000000);
SELECT take('leased');
SELECT try($$SELECT * FROM instaid_tickets.lease('leased', 0)$$);
SELECT instaid_tickets.next(NULL) IS NULL AS null, first FROM instaid_tickets.lease('leased', NULL);

-- the step is the CACHE of the sequence; a session that ends loses no values
SELECT instaid_tickets.create('public.stepped', step => 100);
SELECT take('stepped', 2);
\c
SELECT take('stepped', 2);
SELECT step, last_value FROM instaid_tickets.tickets WHERE ticket::text = 'stepped';
-- core's functions on the same sequence
SELECT nextval('public.leased');
SELECT instaid_tickets.next('leased') - currval('public.leased') AS increment;
SELECT setval('public.leased', 20005003);
SELECT take('leased', 2);
SELECT setval('public.leased', 30000003, false);
SELECT take('leased', 2);
SELECT nextval('public.leased');

-- a setval() that leaves the stripe is shown, and the next value is in the stripe again
SELECT setval('public.odd', 100);
SELECT last_value, values_left, off_stripe FROM instaid_tickets.tickets WHERE ticket::text = 'odd';
SELECT * FROM instaid_tickets.audit() WHERE object ~ 'odd';
SELECT take('odd', 2);
SELECT last_value, values_left, off_stripe FROM instaid_tickets.tickets WHERE ticket::text = 'odd';
SELECT setval('public.odd', 200, false);
SELECT last_value, values_left, off_stripe FROM instaid_tickets.tickets WHERE ticket::text = 'odd';
SELECT take('odd', 2);
SELECT setval('public.seeded', 3, false);
SELECT off_stripe FROM instaid_tickets.tickets WHERE ticket::text = 'seeded';
SELECT take('seeded', 2);
-- an INCREMENT that is changed alone is shown, too
ALTER SEQUENCE public.odd INCREMENT 3;
SELECT servers, last_value, off_stripe FROM instaid_tickets.tickets WHERE ticket::text = 'odd';
SELECT take('odd', 2);

-- at the end of integer, every further call fails
SELECT instaid_tickets.create('public.small', 2, 2, 2147483640, data_type => 'integer');
SELECT take('small', 3);
SELECT values_left FROM instaid_tickets.tickets WHERE ticket::text = 'small';
SELECT try($$SELECT * FROM instaid_tickets.lease('small', 2)$$);
SELECT take('small');
SELECT try($$SELECT instaid_tickets.next('small')$$,
    $$SELECT nextval('public.small')$$);
SELECT last_value, values_left FROM instaid_tickets.tickets WHERE ticket::text = 'small';
-- the statement of the hint widens the type
ALTER SEQUENCE public.small AS bigint;
SELECT take('small');
-- a ticket of one value
BEGIN;
SELECT instaid_tickets.create('public.single', data_type => 'integer', start => 2147483647);
SELECT take('single');
SELECT try($$SELECT instaid_tickets.next('single')$$) LIMIT 1;
ROLLBACK;
-- the end of bigint, and of smallint
SELECT instaid_tickets.create('public.large', 3, 3, 9223372036854775800), instaid_tickets.create('public.tiny', data_type => 'smallint', start => 32766);
SELECT take('large', 3);
SELECT try($$SELECT instaid_tickets.next('large')$$,
    $$SELECT * FROM instaid_tickets.lease('photos', 9223372036854775807)$$);
SELECT take('tiny', 2);
SELECT try($$SELECT instaid_tickets.next('tiny')$$);

-- a MAXVALUE is a guard
ALTER SEQUENCE public.even MAXVALUE 13;
SELECT values_left FROM instaid_tickets.tickets WHERE ticket::text = 'even';
SELECT take('even');
SELECT try($$SELECT instaid_tickets.next('even')$$);
ALTER SEQUENCE public.even NO MAXVALUE;
SELECT take('even');

-- from two servers to three: boundary, guard, restart
DROP SEQUENCE odd, even;
SELECT instaid_tickets.create('public.odd', 1, 2), instaid_tickets.create('public.even', 2, 2);
SELECT take('odd', 50), (take('even', 60))[60] AS even;
-- another order fails
SELECT try($$SELECT instaid_tickets.restripe('odd', 1, 3, 300)$$,
    $$SELECT instaid_tickets.guard('odd', 98)$$);
SELECT instaid_tickets.guard('odd', 300), instaid_tickets.guard('even', 300);
SELECT ticket, last_value, values_left FROM instaid_tickets.tickets WHERE ticket::text IN ('odd', 'even') ORDER BY ticket::text;
SELECT try($$SELECT instaid_tickets.restripe('odd', 1, 3, 303)$$,
    $$SELECT instaid_tickets.guard('odd', 303)$$);
SELECT instaid_tickets.guard('odd', 300);
SELECT try($$SELECT instaid_tickets.restripe('odd', 1, 7, 300)$$,
    $$SELECT instaid_tickets.restripe('odd', 4, 3, 300)$$,
    $$SELECT instaid_tickets.restripe('odd', 0, 3, 300)$$,
    $$SELECT instaid_tickets.restripe('odd', 0, 0, 300)$$);
SELECT instaid_tickets.restripe('odd', 1, 3, 300);
SELECT instaid_tickets.create('public.third', 3, 3, 301);
SELECT take('odd', 3), take('even', 3), take('third', 3);
SELECT instaid_tickets.restripe('even', 2, 3, 300);
SELECT take('odd', 2), take('even', 3), take('third', 2);
SELECT ticket, server, servers, last_value, off_stripe FROM instaid_tickets.tickets WHERE ticket::text IN ('odd', 'even', 'third') ORDER BY server;
-- a second restripe() fails
SELECT try($$SELECT instaid_tickets.restripe('odd', 1, 3, 300)$$);
-- a ticket that has issued nothing, and the limits of boundaries
SELECT instaid_tickets.create('public.fresh', 1, 2, 1001);
SELECT try($$SELECT instaid_tickets.guard('fresh', 1000)$$,
    $$SELECT instaid_tickets.guard('fresh', 9223372036854775807)$$);
SELECT instaid_tickets.guard('fresh', 1002);
SELECT instaid_tickets.restripe('fresh', 3, 3, 1002);
SELECT take('fresh');
SELECT instaid_tickets.create('public.at_one');
SELECT try($$SELECT instaid_tickets.guard('at_one', 1)$$);
-- a rollback undoes guard() and restripe()
BEGIN;
SELECT instaid_tickets.guard('fresh', 1200);
SELECT instaid_tickets.restripe('fresh', 1, 2, 1200);
ROLLBACK;
SELECT server, servers, last_value FROM instaid_tickets.tickets WHERE ticket::text = 'fresh';
SELECT take('fresh');

-- what create() refuses, and calls for a ticket that does not exist
SELECT try(format('SELECT instaid_tickets.create(%L)', name)) FROM unnest(ARRAY['photos', 'a.public.photos', '', 'public.' || repeat('x', 64)]) AS name;
SELECT try($$SELECT instaid_tickets.create('public.1')$$) LIMIT 1;
SELECT try($$SELECT instaid_tickets.create('public.photos')$$,
    $$SELECT instaid_tickets.create('public.bad', 3, 2)$$,
    $$SELECT instaid_tickets.create('public.bad', 0, 2)$$,
    $$SELECT instaid_tickets.create('public.bad', 1, 0)$$,
    $$SELECT instaid_tickets.create('public.bad', start => 0)$$,
    $$SELECT instaid_tickets.create('public.bad', step => 0)$$,
    $$SELECT instaid_tickets.create('public.bad', data_type => 'numeric')$$,
    $$SELECT instaid_tickets.create('public.bad', data_type => 'integer', start => 2147483648)$$,
    $$SELECT instaid_tickets.create('public.bad', 2, 2, start => 9223372036854775807)$$);
SELECT instaid_tickets.create('public.bad', start => NULL) IS NULL AS null;
SELECT try($$SELECT instaid_tickets.next('bad')$$,
    $$SELECT * FROM instaid_tickets.lease('bad', 2)$$,
    $$DROP SEQUENCE bad$$,
    $$SELECT instaid_tickets.guard('bad', 10)$$,
    $$SELECT instaid_tickets.restripe('bad', 1, 2, 10)$$);
-- sequences that somebody has altered
ALTER SEQUENCE public.fresh CYCLE;
SELECT try($$SELECT instaid_tickets.next('fresh')$$);
ALTER SEQUENCE public.fresh NO CYCLE;
ALTER SEQUENCE public.fresh SET UNLOGGED;
SELECT try($$SELECT instaid_tickets.next('fresh')$$);
-- as Citus copies a sequence to a worker
CREATE SEQUENCE of_worker MINVALUE 281474976710657 START 281474976710657;
SELECT try($$SELECT instaid_tickets.next('of_worker')$$);
DROP SEQUENCE of_worker;
CREATE TEMPORARY SEQUENCE passing;
SELECT try($$SELECT instaid_tickets.next('passing')$$);
DROP SEQUENCE passing;
CREATE SEQUENCE downwards INCREMENT -1;
CREATE SEQUENCE strange INCREMENT 9223372036854775807 MINVALUE -9223372036854775808 START -9223372036854775807;
CREATE TABLE public.no_ticket ();
SELECT try($$SELECT instaid_tickets.next('downwards')$$,
    -- a refusal is not remembered as a ticket
    $$SELECT instaid_tickets.next('downwards')$$,
    $$SELECT instaid_tickets.next('no_ticket')$$);
SELECT try(format('SELECT instaid_tickets.%s', call)) FROM unnest(ARRAY['guard(''downwards'', 10)', 'restripe(''downwards'', 1, 2, 10)']) AS call;
-- PostgreSQL's messages differ between versions
SELECT left(line, 5) FROM unnest(ARRAY['guard(''no_ticket'', 10)', 'restripe(''no_ticket'', 1, 2, 10)']) AS call,
    try(format('SELECT instaid_tickets.%s', call)) AS line WHERE line ~ '^[0-9A-Z]{5}: ';
SELECT take('strange', 3);
SELECT ticket, server, servers, last_value, values_left, off_stripe FROM instaid_tickets.tickets WHERE ticket::text IN ('fresh', 'downwards', 'strange') ORDER BY ticket::text;
DROP TABLE public.no_ticket;
DROP SEQUENCE public.downwards, public.strange;

-- a read-only transaction takes no value, as with nextval()
BEGIN READ ONLY;
SELECT instaid_tickets.next('photos');
ROLLBACK;
BEGIN READ ONLY;
SELECT * FROM instaid_tickets.lease('photos', 1);
ROLLBACK;

-- which rights each function needs
CREATE ROLE regress_ticket_owner;
CREATE ROLE regress_ticket_app;
SET ROLE regress_ticket_owner;
SELECT try($$SELECT instaid_tickets.create('public.theirs')$$);
RESET ROLE;
GRANT CREATE ON SCHEMA public TO regress_ticket_owner;
SET ROLE regress_ticket_owner;
SELECT instaid_tickets.create('public.theirs');
SELECT take('theirs');
SET ROLE regress_ticket_app;
SELECT try($$SELECT instaid_tickets.next('theirs')$$,
    $$SELECT * FROM instaid_tickets.lease('theirs', 1)$$);
SELECT ticket, server, last_value, values_left, off_stripe FROM instaid_tickets.tickets WHERE ticket::text = 'theirs';
-- what takes no value asks for no right to take one
SELECT try($$DROP SEQUENCE theirs$$,
    $$SELECT instaid_tickets.guard('theirs', 100)$$,
    $$SELECT instaid_tickets.restripe('theirs', 1, 2, 100)$$);
RESET ROLE;
GRANT CREATE ON SCHEMA public TO regress_ticket_app;
SET ROLE regress_ticket_app;
SELECT try($$SELECT instaid_tickets.create('public.theirs')$$);
RESET ROLE;
REVOKE CREATE ON SCHEMA public FROM regress_ticket_app;
SET ROLE regress_ticket_owner;
GRANT USAGE ON SEQUENCE public.theirs TO regress_ticket_app;
SET ROLE regress_ticket_app;
SELECT take('theirs');
SELECT ticket, last_value FROM instaid_tickets.tickets WHERE ticket::text = 'theirs';
SELECT try($$DROP SEQUENCE theirs$$,
    $$SELECT instaid_tickets.guard('theirs', 100)$$,
    $$SELECT instaid_tickets.restripe('theirs', 1, 2, 100)$$);

RESET ROLE;
-- a step changes how much is logged, and no value
SELECT instaid_tickets.create('public.by_the_thousand', 1, 2, step => 1000);
SELECT take('by_the_thousand', 5);
SELECT last_value FROM instaid_tickets.tickets WHERE ticket::text = 'by_the_thousand';

-- a session remembers tickets, until something that they rest on changes
SELECT instaid_tickets.create('public.here'), instaid_tickets.create('public.there', start => 100);
SELECT take('here'), take('there');
ALTER SEQUENCE public.here RENAME TO away;
ALTER SEQUENCE public.there RENAME TO here;
SELECT take('here'), take('away');
SELECT * FROM try($$SELECT instaid_tickets.next('there')$$) LIMIT 1;
DROP SEQUENCE here;
SELECT instaid_tickets.create('public.here', start => 7);
SELECT take('here');
ALTER SEQUENCE public.here INCREMENT 10 RESTART 1007;
SELECT take('here', 2);
SELECT setval('public.here', 2007);
SELECT take('here');
-- what is rolled back
BEGIN;
SAVEPOINT s;
ALTER SEQUENCE public.here RESTART 5007;
SELECT take('here', 2);
ROLLBACK TO s;
SELECT take('here');
ALTER SEQUENCE public.here RENAME TO elsewhere;
SELECT take('elsewhere');
ROLLBACK;
SELECT take('here');
-- rights and roles
GRANT USAGE ON SEQUENCE public.here TO regress_ticket_app;
SET ROLE regress_ticket_app;
SELECT take('here');
SET ROLE regress_ticket_owner;
SELECT * FROM try($$SELECT instaid_tickets.next('here')$$) LIMIT 1;
RESET ROLE;
REVOKE USAGE ON SEQUENCE public.here FROM regress_ticket_app;
SET ROLE regress_ticket_app;
SELECT * FROM try($$SELECT instaid_tickets.next('here')$$) LIMIT 1;
RESET ROLE;
GRANT USAGE ON SEQUENCE public.here TO regress_ticket_owner;
GRANT regress_ticket_owner TO regress_ticket_app;
SET ROLE regress_ticket_app;
SELECT take('here');
RESET ROLE;
REVOKE regress_ticket_owner FROM regress_ticket_app;
SET ROLE regress_ticket_app;
SELECT * FROM try($$SELECT instaid_tickets.next('here')$$) LIMIT 1;
RESET ROLE;
SELECT take('here');

-- if_not_exists returns what exists, which keeps its options; names are those of SQL
SELECT instaid_tickets.create('public.first_use', if_not_exists => true);
SELECT take('first_use', 2);
SELECT instaid_tickets.create('public.first_use', 2, 3, 100, if_not_exists => true);
SELECT take('first_use');
CREATE SCHEMA counters;
CREATE FUNCTION counters.next(name text) RETURNS bigint LANGUAGE sql
    RETURN instaid_tickets.next(instaid_tickets.create(format('counters.%I', name), if_not_exists => true));
SELECT name, counters.next(name), counters.next(name) FROM unnest(ARRAY['Photos', 'a "b" ''c''', 'select', ' ', 'a.b']) AS name;
-- values that are taken in the transaction that creates the sequence do not outlive it
SET synchronous_commit = off;
BEGIN;
SELECT instaid_tickets.create('counters.async', if_not_exists => true);
SHOW synchronous_commit;
COMMIT;
SHOW synchronous_commit;
RESET synchronous_commit;

-- a ticket is listed if something passes it to next(), if it counts for several servers, or if
-- next() or lease() was the last to take a value of it, which nextval() and setval() hide
CREATE SEQUENCE plain;
CREATE SEQUENCE striped INCREMENT 2;
CREATE TABLE user_of (id bigint DEFAULT instaid_tickets.next('plain'));
CREATE SEQUENCE leased_by_clients;
CREATE SEQUENCE of_clients;
CREATE SEQUENCE of_nobody;
CREATE VIEW listed AS SELECT ticket, servers, is_used FROM instaid_tickets.tickets
    WHERE ticket::text IN ('plain', 'striped', 'leased_by_clients', 'of_clients', 'of_nobody') ORDER BY ticket::text;
SELECT * FROM listed;
SELECT nextval('of_nobody'), take('of_clients'), first FROM instaid_tickets.lease('leased_by_clients', 3);
SELECT * FROM listed;
SELECT nextval('of_clients'), setval('leased_by_clients', 10);
SELECT * FROM listed;
SELECT take('of_clients');
SELECT * FROM listed;
-- a view and a function with a parsed body pass one to next(), too
CREATE VIEW passes AS SELECT instaid_tickets.next('of_nobody');
SELECT * FROM listed WHERE ticket::text = 'of_nobody';
DROP VIEW passes;
CREATE FUNCTION passes() RETURNS bigint LANGUAGE sql RETURN instaid_tickets.next('of_nobody');
SELECT * FROM listed WHERE ticket::text = 'of_nobody';
DROP FUNCTION passes;
-- a default of a role without rights on the sequence says nothing about it
GRANT CREATE ON SCHEMA public TO regress_ticket_app;
SET ROLE regress_ticket_app;
CREATE TABLE public.theirs_not (id bigint DEFAULT instaid_tickets.next('of_nobody'));
RESET ROLE;
SELECT * FROM listed WHERE ticket::text = 'of_nobody';
DROP TABLE public.theirs_not;

-- what is wrong
CREATE SEQUENCE counts_down INCREMENT -1;
CREATE SEQUENCE ending MAXVALUE 500;
CREATE SEQUENCE ended MAXVALUE 2;
SELECT take('ended', 2);
CREATE SEQUENCE settable;
GRANT UPDATE ON SEQUENCE settable TO regress_ticket_app, PUBLIC;
CREATE TABLE audited (a bigint DEFAULT instaid_tickets.next('counts_down'), b bigint DEFAULT instaid_tickets.next('ending'),
    c bigint DEFAULT instaid_tickets.next('ended'), d bigint DEFAULT instaid_tickets.next('settable'));
SELECT * FROM instaid_tickets.audit() WHERE object ~ 'counts_down|ending|ended|settable';
SELECT tickets > 10 AS tickets, values_left, ticket, unreadable, failed_refills, failing, empty FROM instaid_tickets.metrics;
-- a role without rights on a sequence sees that there is one
SET ROLE regress_ticket_app;
SELECT ticket, last_value, values_left, fault FROM instaid_tickets.tickets WHERE ticket::text = 'ending';
SELECT count(*) FROM instaid_tickets.audit() WHERE object ~ 'ending|ended';
SELECT unreadable > 0 AS unreadable FROM instaid_tickets.metrics;
RESET ROLE;

-- a default depends on its sequence, and on next(); a rename does not matter
SELECT try('DROP SEQUENCE plain');
\set VERBOSITY terse
DROP EXTENSION instaid_tickets;
\set VERBOSITY default
ALTER SEQUENCE plain RENAME TO renamed;
ALTER SEQUENCE renamed SET SCHEMA counters;
INSERT INTO user_of VALUES (DEFAULT) RETURNING id;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'user_of'::regclass;
-- a serial is adopted in place
CREATE TABLE old (id serial, n int);
INSERT INTO old (n) VALUES (1), (2);
ALTER TABLE old ALTER id SET DEFAULT instaid_tickets.next('old_id_seq');
INSERT INTO old (n) VALUES (3) RETURNING id;

SET client_min_messages = warning;
DROP SCHEMA counters CASCADE;
DROP TABLE tickets_photos, user_of, audited, old;
DROP VIEW listed;
DROP FUNCTION take, try;
SELECT format('DROP SEQUENCE %s', string_agg(seqrelid::regclass::text, ', ')) FROM pg_sequence \gexec
DROP OWNED BY regress_ticket_owner, regress_ticket_app;
DROP ROLE regress_ticket_owner, regress_ticket_app;
