---- Tickets and their servers ----

-- What create_ticket() and restripe_ticket() check.
CREATE OR REPLACE FUNCTION instaid._check_ticket_server(server integer, servers integer)
    RETURNS void
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF server NOT BETWEEN 1 AND servers THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('server %s is out of range', server),
            DETAIL = format('A server is between 1 and the number of servers, %s, which must be at'
                            ' least 1.', servers);
    END IF;
END $$;

-- What create_ticket() of both editions checks.
CREATE OR REPLACE FUNCTION instaid._check_new_ticket(name text, server integer, servers integer,
                                          start bigint, step integer, data_type regtype)
    RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._check_no_nulls('create_ticket', json_build_object(
        'name', name, 'server', server, 'servers', servers, 'start', start, 'step', step,
        'data_type', data_type));
    -- refuses what is no name, before any message repeats it
    PERFORM instaid.ticket_sequence(name, missing_ok => true);
    PERFORM instaid._check_ticket_server(server, servers);
    IF data_type NOT IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('type %s cannot be the type of a ticket', data_type),
            DETAIL = 'A ticket is smallint, integer or bigint.';
    ELSIF start < 1 THEN
        RAISE numeric_value_out_of_range USING MESSAGE = format('start %s is out of range', start),
            DETAIL = 'Tickets begin at 1 or above.';
    ELSIF step < 1 THEN
        RAISE numeric_value_out_of_range USING MESSAGE = format('step %s is out of range', step),
            DETAIL = 'A step is at least 1.';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION instaid.drop_ticket(name text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ticket regclass := instaid.ticket_sequence(name);
BEGIN
    IF EXISTS (SELECT FROM pg_class WHERE oid = ticket AND relkind = 'f') THEN
        EXECUTE (SELECT 'DROP FOREIGN TABLE ' || string_agg(d.relid::regclass::text, ', ')
                 FROM instaid._descendants(ticket) AS d);
    ELSE
        EXECUTE format('DROP SEQUENCE instaid_tickets.%I', name);
    END IF;
END $$;
COMMENT ON FUNCTION instaid.drop_ticket(text) IS 'drop a ticket; a new one begins again';

-- Keep other sessions from taking values of a ticket until the transaction ends; needs to own it.
CREATE OR REPLACE FUNCTION instaid._lock_ticket(name text, how text DEFAULT 'NO CYCLE')
    RETURNS regclass
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence regclass;
    locked regclass;
    step bigint;
BEGIN
    LOOP
        sequence := instaid.ticket_sequence(name);
        SELECT q.seqincrement INTO step FROM pg_sequence AS q WHERE q.seqrelid = sequence;
        IF step < 0 THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('sequence %s cannot serve as a ticket', sequence),
                DETAIL = format('Its INCREMENT is %s; it must count up.', step),
                HINT = format('Its owner can set it right with ALTER SEQUENCE %s.', sequence);
        ELSIF step IS NULL THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('ticket %s has its values from a source', sequence),
                DETAIL = 'There is nothing to guard or to restripe here.',
                HINT = 'Guard and restripe the ticket at each server of its source.';
        END IF;
        EXIT WHEN sequence = locked;
        -- This waits for all transactions that have taken values.  The statement has the name,
        -- because a regclass whose sequence is dropped meanwhile is printed as a number.
        EXECUTE format('ALTER SEQUENCE instaid_tickets.%I %s', name, how);
        locked := sequence;
    END LOOP;
    RETURN sequence;
END $$;

CREATE OR REPLACE FUNCTION instaid.guard_ticket(name text, boundary bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence regclass := instaid._lock_ticket(name);
    stands_at bigint;
    last_of_type bigint;
    guard bigint;
BEGIN
    EXECUTE format('SELECT last_value FROM instaid_tickets.%I', name) INTO stands_at;
    SELECT GREATEST(stands_at, start_value), maximum_value,
           CASE data_type WHEN 'smallint'::regtype THEN 32767
                          WHEN 'integer'::regtype THEN 2147483647 ELSE 9223372036854775807 END
    INTO stands_at, guard, last_of_type FROM pg_sequence_parameters(sequence);
    IF boundary < stands_at THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %I has gone past boundary %s', name, boundary),
            DETAIL = format('It stands at %s.', stands_at),
            HINT = 'Choose a boundary above the last value of every server, for all of them.';
    ELSIF boundary < 2 OR boundary >= last_of_type THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('boundary %s is out of range', boundary),
            DETAIL = format('It must be at least 2 and less than %s, the end of the type.',
                            last_of_type);
    ELSIF boundary > guard THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %I is guarded at %s already', name, guard),
            DETAIL = 'A server that was restriped at that boundary issues values above it.',
            HINT = format('If no server was, remove the guard on every server, and guard the'
                          ' ticket again: ALTER SEQUENCE %s NO MAXVALUE;', sequence);
    END IF;
    EXECUTE format('ALTER SEQUENCE instaid_tickets.%I MAXVALUE %s', name, boundary);
END $$;
COMMENT ON FUNCTION instaid.guard_ticket IS 'let a ticket issue no value above boundary, or '
'refuse if it has: the first step to change the number of servers, on all; needs to own it';

CREATE OR REPLACE FUNCTION instaid.restripe_ticket(name text, server integer, servers integer,
                                        boundary bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    guard bigint;
BEGIN
    PERFORM instaid._check_ticket_server(server, servers);
    guard := (pg_sequence_parameters(instaid._lock_ticket(name))).maximum_value;
    IF mod(boundary, servers) <> 0 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('boundary %s is not a multiple of %s', boundary, servers),
            DETAIL = 'The values of each server must begin right above the boundary.',
            HINT = format('The next multiple is %s; guard the ticket there on every server.',
                          boundary + servers::numeric - mod(boundary, servers));
    ELSIF guard <> boundary THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %I is not guarded at %s', name, boundary),
            DETAIL = format('Its MAXVALUE is %s. A server without the guard could issue values'
                            ' above the boundary that belong to another server now.', guard),
            HINT = format('First, on every server that has the ticket:'
                          ' SELECT instaid.guard_ticket(%L, %s);', name, boundary);
    END IF;
    EXECUTE format('ALTER SEQUENCE instaid_tickets.%I INCREMENT BY %s NO MAXVALUE START WITH %s'
                   ' RESTART', name, servers, boundary + server);
END $$;
COMMENT ON FUNCTION instaid.restripe_ticket IS 'let a ticket that is guarded at boundary, a '
'multiple of servers, continue above it, as server number server of servers; needs to own it';
