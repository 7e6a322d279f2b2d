-- Tickets, as a specification.
BEGIN;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION instaid;
SELECT plan(44);

-- the objects
SELECT has_schema('instaid_tickets');
SELECT has_view('instaid', 'tickets', 'the view instaid.tickets');
SELECT columns_are('instaid', 'tickets', ARRAY['name', 'server', 'servers', 'step', 'last_value', 'values_left', 'off_stripe', 'source', 'sequence']);
SELECT has_view('instaid', 'segments', 'the view instaid.segments');
SELECT columns_are('instaid', 'segments', ARRAY['name', 'state', 'segment_size', 'next_value', 'last_value', 'values_left', 'spare_first', 'spare_last',
    'spare_left', 'server', 'refills', 'refilled_at', 'refill_duration', 'waits', 'failures', 'failed_at', 'failure', 'sequence']);
SELECT function_returns('instaid', 'next_ticket', ARRAY['text'], 'bigint');
SELECT function_returns('instaid', 'create_ticket', ARRAY['text', 'integer', 'integer', 'bigint', 'integer', 'regtype', 'text[]'], 'regclass');
SELECT volatility_is('instaid', f, 'volatile', f || ' is volatile') FROM unnest(ARRAY['next_ticket', 'lease_ticket', 'create_ticket']) AS f;
SELECT is(current_setting('instaid.auto_create_tickets', true), 'off', 'names are not created on first use')
FROM (SELECT instaid.ticket_sequence('loads the library', missing_ok => true)) AS loaded;
SELECT schema_privs_are('instaid_tickets', 'public', ARRAY['USAGE'], 'everybody can use the schema, and cannot create objects in it');

-- a ticket is a sequence, and the sequence's attributes are its configuration
SELECT is(instaid.create_ticket('photos')::text, 'instaid_tickets.photos', 'create_ticket() returns the sequence');
SELECT has_sequence('instaid_tickets', 'photos', 'the sequence is in the schema');
SELECT results_eq('SELECT instaid.next_ticket(''photos'') FROM generate_series(1, 100)', 'SELECT generate_series(1, 100)::bigint', 'a ticket counts by one from 1');
SELECT is(instaid.create_ticket('Tickets32', 2, 3, 100, 50, 'integer')::text, 'instaid_tickets."Tickets32"', 'a ticket with all arguments');
SELECT row_eq($$SELECT data_type, start_value, increment_by, cache_size, cycle FROM pg_sequences WHERE sequencename = 'Tickets32'$$,
    ROW('integer'::regtype, 101::bigint, 3::bigint, 50::bigint, false), 'the sequence has its type, residue, servers and step');
SELECT row_eq($$SELECT server, servers, step, last_value, values_left, off_stripe FROM instaid.tickets WHERE name = 'Tickets32'$$,
    ROW(2::bigint, 3::bigint, 50::bigint, NULL::bigint, 715827849::bigint, false), '... and the view shows them');
SELECT is(count(*), 0::bigint, 'the values of each of five servers have its residue, and begin at or above start')
FROM generate_series(1, 5) AS server, unnest(ARRAY[1, 2, 5, 6, 1000, 1001]) AS start,
    LATERAL (SELECT format('%s %s', server, start) AS name) AS n,
    LATERAL instaid.create_ticket(n.name, server, 5, start),
    LATERAL instaid.lease_ticket(n.name, 3) AS l
WHERE NOT (l.first BETWEEN start AND start + 4 AND l.first % 5 = server % 5 AND l.last = l.first + 10 AND l.increment = 5);

-- names are independent of each other, and can be any text
SELECT instaid.create_ticket(n) FROM unnest(ARRAY['a', 'A', 'a b', '"', '''', 'ключ', repeat('n', 63)]) AS n;
SELECT is(instaid.next_ticket(n), 1::bigint, 'the first value of ' || n) FROM unnest(ARRAY['a', 'A', 'a b', '"', '''', 'ключ', repeat('n', 63)]) AS n;
SELECT is((SELECT last FROM instaid.lease_ticket('a', 10000)), 10001::bigint, '10,000 values of one ticket');
SELECT is(instaid.next_ticket('A'), 2::bigint, '... do not move the others');

-- a rollback returns no value
SAVEPOINT s;
SELECT is(instaid.next_ticket('photos'), 101::bigint, 'a value');
ROLLBACK TO s;
SELECT is(instaid.next_ticket('photos'), 102::bigint, '... is not issued again after a rollback');

-- the stripe
SELECT setval('instaid_tickets."Tickets32"', 201);
SELECT is(off_stripe, true, 'a setval() that leaves the stripe is shown') FROM instaid.tickets WHERE name = 'Tickets32';
SELECT is(instaid.next_ticket('Tickets32'), 203::bigint, '... and the next value is in the stripe again');

-- the end
SELECT setval('instaid_tickets."Tickets32"', 2147483642);
SELECT is(instaid.next_ticket('Tickets32'), 2147483645::bigint, 'the last value of its residue');
SELECT throws_ok($$SELECT instaid.next_ticket('Tickets32')$$, '2200H', 'ticket "Tickets32" is used up', '... is the last value');

-- calls that are refused
SELECT throws_ok($$SELECT instaid.next_ticket('nobody')$$, '42P01', 'ticket "nobody" does not exist', 'an unknown name');
SELECT throws_ok($$SELECT instaid.create_ticket('photos')$$, '42P07', 'ticket photos already exists', 'a name that is taken');
SELECT throws_ok(format('SELECT instaid.create_ticket(%L)', repeat('n', 64)), '42622', NULL, 'a name of 64 bytes');
SELECT throws_ok($$SELECT instaid.create_ticket('bad', 3, 2)$$, '22003', 'server 3 is out of range', 'the third of two servers');
SELECT throws_ok($$SELECT instaid.restripe_ticket('photos', 1, 3, 300)$$, '55000', 'ticket photos is not guarded at 300', 'restriping without a guard');
SELECT throws_ok($$SELECT instaid.guard_ticket('photos', 101)$$, '55000', 'ticket photos has gone past boundary 101', 'a guard below the last value');

-- one more server
SELECT instaid.guard_ticket('photos', 300);
SELECT throws_ok($$SELECT instaid.lease_ticket('photos', 199)$$, '2200H', 'ticket "photos" has reached its guard', 'the guard holds');
SELECT instaid.restripe_ticket('photos', 2, 3, 300);
SELECT is((SELECT ARRAY[first, last, increment] FROM instaid.lease_ticket('photos', 3)), ARRAY[302, 308, 3]::bigint[], 'after restripe_ticket(), the ticket goes on above the boundary');

SELECT instaid.create_ticket('audited', 1, 2);
SELECT setval('instaid_tickets.audited', 100);
SELECT results_eq('SELECT severity, object FROM instaid.audit()', $$VALUES ('error', 'instaid_tickets."Tickets32"'), ('warning', 'instaid_tickets.audited')$$,
    'audit() finds a ticket that is used up, and one off its stripe');
SELECT instaid.next_ticket('audited');
SELECT results_eq('SELECT severity, object FROM instaid.audit()', $$VALUES ('error', 'instaid_tickets."Tickets32"')$$, 'next_ticket() repairs the second');

SELECT * FROM finish();
ROLLBACK;
