/* sql-edition/tickets.sql */

-- Tickets, and where all shards and tickets of a database stand.

---- Tickets ----

CREATE OR REPLACE FUNCTION instaid.ticket_sequence(name text, missing_ok boolean DEFAULT false)
    RETURNS regclass
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence regclass;
BEGIN
    PERFORM instaid._check_name('ticket', name);
    -- not by the snapshot, which can show a sequence that was dropped
    sequence := to_regclass(format('instaid_tickets.%I', name));
    IF EXISTS (SELECT FROM pg_class AS c WHERE c.oid = sequence AND c.relkind <> 'S') THEN
        RAISE wrong_object_type USING MESSAGE = format('"%s" is not a sequence', name),
            DETAIL = format('A ticket is a sequence; %s is another kind of relation.',
                            format('instaid_tickets.%I', name)),
            HINT = 'Use another name, or rename that relation.';
    ELSIF sequence IS NULL AND NOT missing_ok THEN
        RAISE undefined_table USING MESSAGE = format('ticket "%s" does not exist', name),
            DETAIL = 'The view instaid.tickets lists all tickets.',
            HINT = format('Create it: SELECT instaid.create_ticket(%L);', name);
    END IF;
    RETURN sequence;
END $$;
COMMENT ON FUNCTION instaid.ticket_sequence(text, boolean) IS 'the sequence of a ticket, for '
'GRANT and ALTER SEQUENCE; if there is none, null with missing_ok, or else an error';

-- Where a ticket stands, unless the caller has its value; refuse a sequence that cannot serve, or
-- has too few values left.
-- The value of a ticket is START plus a multiple of INCREMENT, which is the number of servers.
CREATE OR REPLACE FUNCTION instaid._check_ticket(
    sequence regclass, wanted bigint, value numeric DEFAULT NULL, OUT last_value bigint,
    OUT increment bigint)
    LANGUAGE plpgsql VOLATILE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    main record;
    qualified text;
    left_over numeric;
    last_of_type bigint;
BEGIN
    -- This locks the sequence, so that its name and options stay as they are.  The catalog would
    -- show those of the snapshot, and the value is one that came after it.
    IF value IS NULL AND has_sequence_privilege(sequence, 'USAGE, SELECT') THEN
        value := pg_sequence_last_value(sequence);
    END IF;
    SELECT c.relname, c.relpersistence, p.* INTO main
    FROM pg_sequence_parameters(sequence) AS p LEFT JOIN pg_class AS c ON c.oid = sequence;
    -- If it was never used, or set by RESTART or setval(), it stands before the value that comes
    -- next.  The lock keeps its name only in a schema that other roles cannot rename.
    qualified := sequence;
    IF value IS NULL AND has_sequence_privilege(sequence, 'SELECT')
       AND starts_with(qualified, 'instaid_tickets.') THEN
        EXECUTE format('SELECT last_value::numeric - %s FROM %s', main.increment, qualified)
        INTO value;
    END IF;
    IF main.increment <= 0 OR main.cycle_option OR main.relpersistence <> 'p' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence "%s" cannot serve as a ticket', main.relname),
            DETAIL = CASE WHEN main.increment <= 0
                          THEN format('Its INCREMENT is %s; it must count up.', main.increment)
                          WHEN main.cycle_option
                          THEN 'It is defined with CYCLE; a ticket must not repeat its values.'
                          ELSE 'It is UNLOGGED; a crash would set it back.' END,
            HINT = format('Its owner can set it right with ALTER SEQUENCE %s.', sequence);
    ELSIF mod(value - main.start_value, main.increment) <> 0 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket "%s" stands at a value of another server', main.relname),
            DETAIL = format('It stands at %s. Its values are %s plus multiples of %s.', value,
                            main.start_value, main.increment),
            HINT = format('ALTER SEQUENCE %s RESTART WITH %s;', sequence,
                          value + main.increment
                          - mod(mod(value - main.start_value, main.increment) + main.increment,
                                main.increment));
    END IF;
    value := COALESCE(value, main.start_value::numeric - main.increment);
    left_over := div(main.maximum_value - value, main.increment);
    IF left_over < wanted THEN
        last_of_type := CASE main.data_type WHEN 'smallint'::regtype THEN 32767
                                            WHEN 'integer'::regtype THEN 2147483647
                                            ELSE 9223372036854775807 END;
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format(CASE WHEN main.maximum_value < last_of_type
                                  THEN 'ticket "%s" has reached its guard'
                                  ELSE 'ticket "%s" is used up' END, main.relname),
            DETAIL = format('Values wanted: %s; values left until %s, %s: %s.', wanted,
                            main.maximum_value,
                            CASE WHEN main.maximum_value < last_of_type THEN 'its MAXVALUE'
                                 ELSE 'the end of ' || main.data_type::regtype END, left_over),
            HINT = CASE WHEN main.maximum_value < last_of_type
                        THEN format('If the number of servers is being changed, continue with'
                                    ' restripe_ticket(); otherwise the owner can remove the guard:'
                                    ' ALTER SEQUENCE %s NO MAXVALUE;', sequence)
                        WHEN main.data_type <> 'bigint'::regtype
                        THEN format('If the columns that store its values are of type bigint, its'
                                    ' owner can widen it: ALTER SEQUENCE %s AS bigint;', sequence)
                        WHEN left_over > 0 THEN 'Lease at most as many as are left.'
                        ELSE 'If it was set too far by mistake, set it back with setval().' END;
    END IF;
    last_value := value;
    increment := main.increment;
END $$;

-- A value is durable when the caller's transaction commits: the WAL record that covers it can
-- be of a transaction that is still open.  A transaction that has an ID and no WAL would not
-- flush it.
CREATE OR REPLACE FUNCTION instaid.next_ticket(name text) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence CONSTANT regclass := instaid.ticket_sequence(name);
    value bigint;
BEGIN
    PERFORM instaid._check_ticket(sequence, 1);
    value := nextval(sequence);
    -- without SELECT, where RESTART or setval() left it is seen only now
    PERFORM instaid._check_ticket(sequence, 0, value);
    PERFORM pg_logical_emit_message(true, 'instaid', ''::text);
    RETURN value;
END $$;
COMMENT ON FUNCTION instaid.next_ticket(text) IS 'the next value of a ticket, which is never '
'issued again once the transaction has committed; needs USAGE or UPDATE on its sequence';

---- Creating tickets ----

CREATE OR REPLACE FUNCTION instaid.create_ticket(
    name text, server integer DEFAULT 1, servers integer DEFAULT 1, start bigint DEFAULT 1,
    step integer DEFAULT 1, data_type regtype DEFAULT 'bigint', source text[] DEFAULT NULL)
    RETURNS regclass
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first numeric;
BEGIN
    PERFORM instaid._check_new_ticket(name, server, servers, start, step, data_type);
    IF source IS NOT NULL OR step > 1 THEN
        RAISE feature_not_supported USING MESSAGE = 'the SQL edition of instaid cannot do this',
            DETAIL = 'A ticket with a source, or with a step, needs the extension instaid.',
            HINT = 'Leave out source and step.';
    END IF;
    -- the smallest value in the stripe of the server that is not below start
    first := start + mod(mod(server - start::numeric, servers) + servers, servers);
    IF instaid.ticket_sequence(name, missing_ok => true) IS NOT NULL THEN
        RAISE duplicate_table USING
            MESSAGE = format('ticket %s already exists', quote_ident(name)),
            HINT = format('To use it: SELECT instaid.next_ticket(%L); to begin again, drop it with'
                          ' drop_ticket(), or choose another name.', name);
    END IF;
    EXECUTE format('CREATE SEQUENCE instaid_tickets.%I AS %s INCREMENT BY %s START WITH %s', name,
                   data_type, servers, first);
    -- with UPDATE, which default privileges can give, another role could set it back
    EXECUTE format('REVOKE UPDATE ON SEQUENCE instaid_tickets.%I FROM %s', name,
                   instaid._default_grantees());
    EXECUTE format('COMMENT ON SEQUENCE instaid_tickets.%I IS %L', name,
                   'a ticket of instaid: use instaid.next_ticket()');
    RETURN instaid.ticket_sequence(name);
END $$;
COMMENT ON FUNCTION instaid.create_ticket(text, int, int, bigint, int, regtype, text[]) IS
'create a ticket: values from start on, server modulo servers, or those of foreign servers';

\ir ../common/tickets.sql

---- Leases and the list of tickets ----

-- nextval() takes one value at a time, and setval() could go back while others call nextval().
-- Therefore a lease waits for the transactions that have taken values.  Of all forms of ALTER
-- SEQUENCE, only OWNED BY makes no new file, which a rollback would undo with the setval().
CREATE OR REPLACE FUNCTION instaid.lease_ticket(name text, count bigint,
                                     OUT first bigint, OUT last bigint, OUT increment bigint)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence regclass;
    state record;
BEGIN
    IF count < 1 THEN
        RAISE numeric_value_out_of_range USING MESSAGE = format('count %s is out of range', count),
            DETAIL = 'A lease has at least one value.';
    END IF;
    sequence := instaid._lock_ticket(name, 'OWNED BY ' || COALESCE((
        SELECT format('%s.%I', a.attrelid::regclass, a.attname)
        FROM pg_depend AS d JOIN pg_attribute AS a
             ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
        WHERE d.classid = 'pg_class'::regclass AND d.deptype = 'a'
          AND d.objid = instaid.ticket_sequence(name)), 'NONE'));
    IF NOT has_sequence_privilege(sequence, 'SELECT') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied for sequence %s', sequence),
            DETAIL = 'A lease needs SELECT to see where the ticket stands.';
    END IF;
    state := instaid._check_ticket(sequence, count);
    increment := state.increment;
    first := state.last_value + increment;
    last := first + (count - 1) * increment;
    PERFORM setval(sequence, last);
END $$;
COMMENT ON FUNCTION instaid.lease_ticket IS 'the next count values of a ticket, from first to '
'last by increment; waits for the transactions that have taken values; needs to own its sequence';

CREATE OR REPLACE VIEW instaid.tickets AS
    -- in numeric, because any sequence can be there
    SELECT c.relname AS name,
           (mod(mod(q.seqstart - 1::numeric, q.seqincrement) + q.seqincrement, q.seqincrement)
            + 1)::bigint AS server,
           q.seqincrement AS servers, q.seqcache AS step, s.last_value,
           CASE WHEN s.is_read
                THEN LEAST(GREATEST(div(q.seqmax::numeric
                              - COALESCE(s.last_value, q.seqstart::numeric - q.seqincrement),
                              q.seqincrement), 0), 9223372036854775807)::bigint END AS values_left,
           COALESCE(mod(s.last_value::numeric - q.seqstart, q.seqincrement) <> 0, false)
           AS off_stripe,
           NULL::text AS source, c.oid::regclass AS sequence
    FROM pg_catalog.pg_namespace AS n
         JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid
         JOIN pg_catalog.pg_sequence AS q ON q.seqrelid = c.oid
         CROSS JOIN LATERAL instaid._position(c.oid, NULL, NULL) AS s (last_value, is_read)
    WHERE n.nspname = 'instaid_tickets';
COMMENT ON VIEW instaid.tickets IS
'the tickets of this database; last_value, values_left and off_stripe need SELECT on the sequence';

---- Positions of sequences ----

-- No column has an ID of a sequence that no shard has.
CREATE OR REPLACE VIEW instaid._lone_sequences AS
    SELECT NULL::oid AS sequence, NULL::oid AS owner WHERE false;

\ir ../common/positions.sql
