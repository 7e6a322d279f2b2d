/* instaid_tickets--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION instaid_tickets" to load this file. \quit

-- Not by the control file's "schema": it must be new, be dropped with the extension, and belong to
-- a superuser, since its owner could add functions that are found in place of ours.
DO $$
BEGIN
    IF to_regnamespace('instaid_tickets') IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'schema "instaid_tickets" already exists',
            HINT = 'Run nothing in it. Rename or drop it, and create the extension again.';
    END IF;
    EXECUTE format('CREATE SCHEMA instaid_tickets AUTHORIZATION %s',
                   (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'pg_catalog'));
END $$;
COMMENT ON SCHEMA instaid_tickets IS 'functions for sequences as tickets';

---- Values ----

CREATE FUNCTION instaid_tickets.next(ticket regclass) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_tickets_next';
COMMENT ON FUNCTION instaid_tickets.next IS 'the next value of a sequence, which is never issued '
'again; needs USAGE or UPDATE on it, or UPDATE on a foreign table';

CREATE FUNCTION instaid_tickets.lease(ticket regclass, count bigint,
                                      OUT first bigint, OUT last bigint, OUT increment bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_tickets_lease';
COMMENT ON FUNCTION instaid_tickets.lease IS 'the next count values of a sequence, from first to '
'last by increment, which are never issued again; needs USAGE or UPDATE on it';

---- Servers that share a ticket ----

-- Refuse a server that is not one of so many.
CREATE FUNCTION instaid_tickets._check_server(server integer, servers integer) RETURNS void
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF server NOT BETWEEN 1 AND servers THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('server %s is out of range', server),
            DETAIL = format('A server is between 1 and the number of servers, %s, which must be at'
                            ' least 1.', servers);
    END IF;
END $$;

-- CREATE SEQUENCE, with the first value of a server's stripe that is not below start.  With
-- if_not_exists, sessions can call it at once: each gets the sequence of one of them.
CREATE FUNCTION instaid_tickets.create(
    name text, server integer DEFAULT 1, servers integer DEFAULT 1, start bigint DEFAULT 1,
    step integer DEFAULT 1, data_type regtype DEFAULT 'bigint',
    if_not_exists boolean DEFAULT false) RETURNS regclass
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parts CONSTANT text[] := parse_ident(name);
    first numeric;
    is_citus_worker boolean := false;
BEGIN
    -- one that is too long would be cut, and could be another's
    IF cardinality(parts) <> 2 OR octet_length(parts[2]) > 63 THEN
        RAISE invalid_name USING
            MESSAGE = format('%L does not name a schema and a sequence', left(name, 200)),
            HINT = 'Write it like app.invoices, with double quotes where SQL needs them, and up to'
                   ' 63 bytes for the sequence.';
    END IF;
    PERFORM instaid_tickets._check_server(server, servers);
    -- only superusers create anything in pg_catalog
    IF to_regclass('pg_catalog.pg_dist_local_group') IS NOT NULL THEN
        EXECUTE 'SELECT groupid <> 0 FROM pg_catalog.pg_dist_local_group' INTO is_citus_worker;
    END IF;
    IF servers = 1 AND is_citus_worker THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence %s cannot be created on a worker of Citus', name),
            DETAIL = 'It would issue the values of the other nodes.',
            HINT = 'Create it on the coordinator, and use it there, or on each node with a server'
                   ' of its own and the number of all nodes as servers.';
    END IF;
    LOOP
        IF if_not_exists AND to_regclass(name) IS NOT NULL THEN
            RETURN to_regclass(name);
        END IF;
        -- any first value is in the stripe of one of the servers
        first := start + mod(mod(server - start::numeric, servers) + servers, servers);
        BEGIN
            EXECUTE format('CREATE SEQUENCE %I.%I AS %s INCREMENT BY %s START WITH %s CACHE %s',
                           parts[1], parts[2], data_type, servers, first, step);
            -- the caller may take values in this transaction, which must not outlive the sequence
            IF current_setting('synchronous_commit') = 'off' THEN
                PERFORM set_config('synchronous_commit', 'local', true);
            END IF;
            RETURN to_regclass(name);
        EXCEPTION
            -- another session has created it meanwhile, and has committed
            WHEN duplicate_table OR unique_violation THEN
                IF NOT if_not_exists THEN
                    RAISE;
                END IF;
        END;
    END LOOP;
END $$;
COMMENT ON FUNCTION instaid_tickets.create IS 'create a sequence whose values are server modulo '
'servers, from start on';

-- Wait for all transactions that have taken values, and keep others from taking some, and from
-- another name, until the transaction ends; needs to own the sequence.
CREATE FUNCTION instaid_tickets._lock(ticket regclass) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_tickets_lock';

CREATE FUNCTION instaid_tickets.guard(ticket regclass, boundary bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    stands_at bigint;
    is_at_end boolean;
    guard bigint;
BEGIN
    PERFORM instaid_tickets._lock(ticket);
    -- by OID: a name can be another's by now, since renaming a schema waits for no lock
    SELECT GREATEST(pg_sequence_last_value(ticket), start_value), maximum_value,
           boundary >= CASE data_type WHEN 'smallint'::regtype THEN 32767
                                      WHEN 'integer'::regtype THEN 2147483647
                                      ELSE 9223372036854775807 END
    INTO stands_at, guard, is_at_end FROM pg_sequence_parameters(ticket);
    IF boundary < stands_at THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %s has gone past boundary %s', ticket, boundary),
            DETAIL = format('It stands at %s.', stands_at),
            HINT = 'Choose a boundary above the last value of every server, for all of them.';
    ELSIF boundary < 2 OR is_at_end THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('boundary %s is out of range', boundary),
            DETAIL = 'It must be at least 2 and less than the end of the type.';
    ELSIF boundary > guard THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %s is guarded at %s already', ticket, guard),
            DETAIL = 'A server that was restriped at that boundary issues values above it.',
            HINT = format('If no server was, remove the guard on every server, and guard the'
                          ' ticket again: ALTER SEQUENCE %s NO MAXVALUE;', ticket);
    END IF;
    EXECUTE format('ALTER SEQUENCE %s MAXVALUE %s', ticket, boundary);
END $$;
COMMENT ON FUNCTION instaid_tickets.guard IS 'let a sequence issue no value above boundary, or '
'refuse if it has: the first step to change the number of servers, on all; needs to own it';

CREATE FUNCTION instaid_tickets.restripe(ticket regclass, server integer, servers integer,
                                         boundary bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    guard bigint;
BEGIN
    PERFORM instaid_tickets._check_server(server, servers);
    PERFORM instaid_tickets._lock(ticket);
    guard := (pg_sequence_parameters(ticket)).maximum_value;
    IF mod(boundary, servers) <> 0 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('boundary %s is not a multiple of %s', boundary, servers),
            DETAIL = 'The values of each server must begin right above the boundary.',
            HINT = format('The next multiple is %s; guard the ticket there on every server.',
                          boundary + servers::numeric - mod(boundary, servers));
    ELSIF guard <> boundary THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %s is not guarded at %s', ticket, boundary),
            DETAIL = format('Its MAXVALUE is %s. A server without the guard could issue values'
                            ' above the boundary that belong to another server now.', guard),
            HINT = format('First, on every server that has the ticket:'
                          ' SELECT instaid_tickets.guard(%L, %s);', ticket, boundary);
    END IF;
    EXECUTE format('ALTER SEQUENCE %s INCREMENT BY %s NO MAXVALUE START WITH %s RESTART', ticket,
                   servers, boundary + server);
END $$;
COMMENT ON FUNCTION instaid_tickets.restripe IS 'let a sequence that is guarded at boundary, a '
'multiple of servers, continue above it, as server number server of servers; needs to own it';

---- Values from other servers ----

-- Refuse options that libpq or the wrapper does not know: see source.c.
CREATE FUNCTION instaid_tickets._validator(options text[], catalog oid) RETURNS void
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_tickets_validator';

-- A ticket with a source is a foreign table of this wrapper, which nobody reads or writes.
CREATE FOREIGN DATA WRAPPER instaid_tickets VALIDATOR instaid_tickets._validator;
COMMENT ON FOREIGN DATA WRAPPER instaid_tickets IS 'servers that lease values of their sequences';

-- Segments in shared memory; see the view segments.
CREATE FUNCTION instaid_tickets._segment_state() RETURNS TABLE (
    ticket regclass, state text, next_value bigint, last_value bigint, values_left bigint,
    spare_first bigint, spare_last bigint, spare_left bigint, waits bigint, refills bigint,
    segment_size bigint, host text, refilled_at timestamptz, refill_us bigint, failures bigint,
    failed_at timestamptz, failure text)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
    AS 'MODULE_PATHNAME', 'instaid_tickets_segment_state';

CREATE VIEW instaid_tickets.segments AS
    SELECT s.ticket, s.state, s.segment_size, s.next_value, s.last_value, s.values_left,
           s.spare_first, s.spare_last, s.spare_left, s.host, s.refills, s.refilled_at,
           s.refill_us * '1 microsecond'::interval AS refill_duration, s.waits, s.failures,
           s.failed_at, s.failure
    -- what was dropped keeps its place for a while
    FROM instaid_tickets._segment_state() AS s JOIN pg_catalog.pg_class AS c ON c.oid = s.ticket;
COMMENT ON VIEW instaid_tickets.segments IS 'the tickets that have a source and are in use; only '
'those on which the role has UPDATE or SELECT, or all for members of pg_read_all_stats';

-- Is there shared memory for segments?
CREATE FUNCTION instaid_tickets._is_preloaded() RETURNS boolean
    LANGUAGE c STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'instaid_tickets_is_preloaded';

---- The list of tickets, and what is wrong with them ----

-- Where a sequence stands, why it cannot be a ticket, and whether next() or lease() was the last
-- to write its page; nulls if the role may not see it, or another transaction is changing it.
CREATE FUNCTION instaid_tickets._state(
    sequence regclass, OUT last_value bigint, OUT values_left bigint, OUT off_stripe boolean,
    OUT fault text, OUT is_taken boolean)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'instaid_tickets_state';

-- The sequences that something passes to next() or lease(), and whether its owner may call them.
-- Anybody can create a default that names any sequence.
CREATE VIEW instaid_tickets._uses AS
    SELECT DISTINCT d.refobjid AS sequence
    FROM pg_catalog.pg_depend AS f
         JOIN pg_catalog.pg_depend AS d ON (d.classid, d.objid) = (f.classid, f.objid)
                                       AND d.refclassid = 'pg_catalog.pg_class'::regclass
         LEFT JOIN pg_catalog.pg_attrdef AS a
                ON f.classid = 'pg_catalog.pg_attrdef'::regclass AND a.oid = f.objid
         LEFT JOIN pg_catalog.pg_rewrite AS r
                ON f.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = f.objid
         LEFT JOIN pg_catalog.pg_proc AS p
                ON f.classid = 'pg_catalog.pg_proc'::regclass AND p.oid = f.objid
         LEFT JOIN pg_catalog.pg_class AS c ON c.oid IN (a.adrelid, r.ev_class)
         JOIN pg_catalog.pg_sequence AS q ON q.seqrelid = d.refobjid
    WHERE f.refclassid = 'pg_catalog.pg_proc'::regclass
      AND f.refobjid IN ('instaid_tickets.next(regclass)'::regprocedure,
                         'instaid_tickets.lease(regclass, bigint)'::regprocedure)
      AND pg_catalog.has_sequence_privilege(COALESCE(c.relowner, p.proowner), q.seqrelid,
                                            'USAGE, UPDATE');

-- No catalog says that a sequence is a ticket.  It is one if something passes it to next() or
-- lease(), if one of the two was the last to take a value of it, or if it counts for several
-- servers.
CREATE VIEW instaid_tickets.tickets AS
    SELECT q.seqrelid::regclass AS ticket,
           (CASE WHEN q.seqincrement > 0
                 THEN mod(mod(q.seqstart - 1::numeric, q.seqincrement) + q.seqincrement,
                          q.seqincrement) + 1 END)::bigint AS server,
           CASE WHEN q.seqincrement > 0 THEN q.seqincrement END AS servers,
           q.seqcache AS step, s.last_value, s.values_left, s.off_stripe,
           NULL::name AS source, s.fault, u.sequence IS NOT NULL AS is_used
    FROM pg_catalog.pg_sequence AS q CROSS JOIN LATERAL instaid_tickets._state(q.seqrelid) AS s
         LEFT JOIN instaid_tickets._uses AS u ON u.sequence = q.seqrelid
    WHERE u.sequence IS NOT NULL OR q.seqincrement > 1 OR s.is_taken
    UNION ALL
    SELECT f.ftrelid, NULL, NULL,
           COALESCE((SELECT o.option_value::bigint
                     FROM pg_catalog.pg_options_to_table(f.ftoptions) AS o
                     WHERE o.option_name = 'step'), 1),
           NULL, NULL, NULL, s.srvname, NULL, true
    FROM pg_catalog.pg_foreign_table AS f
         JOIN pg_catalog.pg_foreign_server AS s ON s.oid = f.ftserver
         JOIN pg_catalog.pg_foreign_data_wrapper AS w ON w.oid = s.srvfdw
    WHERE w.fdwname = 'instaid_tickets';
COMMENT ON VIEW instaid_tickets.tickets IS 'the sequences of this database that are used as '
'tickets, as far as that can be seen; positions need USAGE or SELECT on the sequence, or '
'membership in pg_read_all_stats';

CREATE FUNCTION instaid_tickets.audit(OUT code text, OUT severity text, OUT object text,
                                      OUT problem text, OUT cure text) RETURNS SETOF record
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT f.code, f.severity, t.ticket::text, f.problem, f.cure
    FROM instaid_tickets.tickets AS t JOIN pg_class AS c ON c.oid = t.ticket
         CROSS JOIN LATERAL (
        SELECT string_agg(DISTINCT COALESCE(quote_ident(r.rolname), 'PUBLIC'), ', ') AS names
        FROM aclexplode(c.relacl) AS x LEFT JOIN pg_roles AS r ON r.oid = x.grantee
        WHERE x.privilege_type = 'UPDATE' AND x.grantee <> c.relowner AND r.rolsuper IS NOT TRUE
          AND c.relkind = 'S') AS u
         CROSS JOIN LATERAL (VALUES
        ('unfit', 'error', t.fault IS NOT NULL, 'cannot serve as a ticket. ' || t.fault,
         'Use a sequence that is permanent, counts up, does not cycle, and issues nothing else.'),
        ('ends', CASE t.values_left WHEN 0 THEN 'error' ELSE 'warning' END,
         t.values_left < 1000 AND NOT t.off_stripe, format('has %s values left', t.values_left),
         format('At a guard, continue with instaid_tickets.restripe(). If the columns that store'
                ' its values are of type bigint: ALTER SEQUENCE %s AS bigint NO MAXVALUE;',
                t.ticket)),
        -- setval() or ALTER SEQUENCE left it so: nextval() gives what another server gives
        ('off_stripe', 'warning', t.off_stripe, 'stands at a value of another server',
         format('SELECT instaid_tickets.next(%L);', t.ticket)),
        ('update_right', 'warning', t.is_used AND u.names IS NOT NULL,
         format('role %s has UPDATE on it, and could set it back', u.names),
         format('REVOKE UPDATE ON SEQUENCE %s FROM %s CASCADE;', t.ticket, u.names)),
        ('not_preloaded', 'error', t.source IS NOT NULL AND NOT instaid_tickets._is_preloaded(),
         'has a source, and the library instaid_tickets is not preloaded: next() fails',
         'Add instaid_tickets to shared_preload_libraries, and restart the server.'))
        AS f (code, severity, applies, problem, cure)
    WHERE f.applies ORDER BY f.severity, t.ticket::text, f.code;
END;
COMMENT ON FUNCTION instaid_tickets.audit IS 'what makes tickets repeat or fail, or will do so';

CREATE VIEW instaid_tickets.metrics AS
    SELECT t.*, e.*
    FROM (SELECT count(*) AS tickets, min(values_left) AS values_left,
                 (array_agg(ticket::text ORDER BY values_left, ticket::text)
                  FILTER (WHERE values_left IS NOT NULL))[1] AS ticket,
                 count(*) FILTER (WHERE values_left IS NULL AND source IS NULL AND fault IS NULL)
                     AS unreadable
          FROM instaid_tickets.tickets) AS t
         CROSS JOIN (
        SELECT COALESCE(sum(e.failures), 0)::bigint AS failed_refills,
               count(*) FILTER (WHERE e.is_failing) AS failing,
               count(*) FILTER (WHERE e.is_failing AND e.values_left = 0 AND e.spare_left = 0)
                   AS empty
        FROM (SELECT *, failed_at > COALESCE(refilled_at, '-infinity') AS is_failing
              FROM instaid_tickets.segments) AS e) AS e;
COMMENT ON VIEW instaid_tickets.metrics IS 'one row for a monitoring system';

---- Rights ----

-- Whatever role installs the extension, its objects belong to the owner of its schema.  Whatever
-- default privileges grant or revoke, all roles can use the schema, call the functions, and read
-- the views.
DO $$
DECLARE
    owner CONSTANT regrole := (SELECT nspowner FROM pg_namespace
                               WHERE nspname = 'instaid_tickets');
    grantees CONSTANT text := (SELECT string_agg(DISTINCT x.grantee::regrole::text, ', ')
                               FROM pg_default_acl AS d, aclexplode(d.defaclacl) AS x
                               WHERE x.grantee NOT IN (0, owner));
    member record;
BEGIN
    FOR member IN
        SELECT CASE i.type WHEN 'view' THEN 'table' ELSE replace(i.type, '-', ' ') END
               || ' ' || i.identity AS name,
               CASE i.type WHEN 'view' THEN 'SELECT' WHEN 'schema' THEN 'USAGE'
                           WHEN 'function' THEN 'EXECUTE' END AS right_of_all
        FROM pg_extension AS e
             JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass
                                AND d.refobjid = e.oid AND d.deptype = 'e'
             CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS i
        WHERE e.extname = 'instaid_tickets' AND i.type <> 'type'
    LOOP
        EXECUTE format('ALTER %s OWNER TO %s', member.name, owner);
        IF grantees IS NOT NULL THEN
            EXECUTE format('REVOKE ALL ON %1$s FROM %2$s; GRANT ALL ON %1$s TO %3$s',
                           member.name, grantees, owner);
        END IF;
        IF member.right_of_all IS NOT NULL THEN
            EXECUTE format('REVOKE ALL ON %1$s FROM PUBLIC; GRANT %2$s ON %1$s TO PUBLIC',
                           member.name, member.right_of_all);
        END IF;
    END LOOP;
END $$;
