---- Tickets ----

-- It belongs to the owner of the schema instaid, because a superuser's statements name its parts.
-- An empty one, as tools that dump a schema create first, is replaced.
DO $$
DECLARE
    owner CONSTANT regrole := (SELECT nspowner FROM pg_namespace WHERE nspname = 'instaid');
    installer CONSTANT regrole := (SELECT extowner FROM pg_extension WHERE extname = 'instaid');
    old CONSTANT pg_namespace := (SELECT n FROM pg_namespace AS n
                                  WHERE n.nspname = 'instaid_tickets');
    is_empty CONSTANT boolean := NOT EXISTS (
        SELECT FROM pg_depend WHERE (refclassid, refobjid) = ('pg_namespace'::regclass, old.oid));
BEGIN
    IF is_empty AND (old.nspowner = installer
                     OR (SELECT rolsuper FROM pg_roles WHERE oid = old.nspowner)) THEN
        DROP SCHEMA instaid_tickets;
    ELSIF old.oid IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'schema "instaid_tickets" already exists',
            DETAIL = CASE WHEN NOT is_empty THEN 'It is not empty.'
                          ELSE format('It belongs to role %s.', old.nspowner::regrole) END,
            HINT = 'Rename or drop it, and create the extension again.';
    END IF;
    EXECUTE format('CREATE SCHEMA instaid_tickets AUTHORIZATION %s', owner);
END $$;
COMMENT ON SCHEMA instaid_tickets IS 'the tickets of instaid, a sequence each, or a foreign table';

CREATE FUNCTION instaid.next_ticket(name text) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_next_ticket';
COMMENT ON FUNCTION instaid.next_ticket(text) IS 'the next value of a ticket, which is never '
'issued again; needs USAGE or UPDATE on its sequence, or UPDATE on its foreign table';

CREATE FUNCTION instaid.lease_ticket(name text, count bigint,
                                     OUT first bigint, OUT last bigint, OUT increment bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_lease_ticket';
COMMENT ON FUNCTION instaid.lease_ticket IS 'the next count values of a ticket, from first to '
'last by increment, which are never issued again; needs USAGE or UPDATE on its sequence';

CREATE FUNCTION instaid.ticket_sequence(name text, missing_ok boolean DEFAULT false)
    RETURNS regclass
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_ticket_sequence';
COMMENT ON FUNCTION instaid.ticket_sequence IS 'the sequence of a ticket, or the foreign table of '
'one with a source, for GRANT and ALTER; if there is none, null with missing_ok, or else an error';

-- The validator of the foreign-data wrapper instaid.
CREATE FUNCTION instaid._check_options(options text[], catalog oid) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF catalog <> 'pg_foreign_table'::regclass THEN
        PERFORM postgresql_fdw_validator(options, catalog);
    ELSIF array_to_string(options, ',') !~ '^(step=[0-9]{1,10})?$'
          OR substr(options[1], 6)::bigint NOT BETWEEN 1 AND 2147483647 THEN
        RAISE fdw_invalid_option_name USING
            MESSAGE = format('invalid option %L', array_to_string(options, ',')),
            DETAIL = 'A ticket with a source has one option, step, from 1 to 2147483647.';
    END IF;
END $$;

-- A ticket with a source is a foreign table on its server, which nobody reads or writes.
CREATE FOREIGN DATA WRAPPER instaid VALIDATOR instaid._check_options;
COMMENT ON FOREIGN DATA WRAPPER instaid IS 'the servers that issue values of tickets';

-- The position of a ticket, for the view instaid.tickets; with a source, also its servers, and
-- whether the library instaid_sources is preloaded, as it must be.
CREATE FUNCTION instaid._ticket_state(
    ticket regclass, OUT last_value bigint, OUT values_left bigint, OUT off_stripe boolean,
    OUT source text, OUT step bigint, OUT is_preloaded boolean)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'instaid_ticket_state';

CREATE VIEW instaid.tickets AS
    -- in numeric, because any sequence can be there
    SELECT c.relname AS name,
           (CASE WHEN q.seqincrement > 0
                 THEN mod(mod(q.seqstart - 1::numeric, q.seqincrement) + q.seqincrement,
                          q.seqincrement) + 1 END)::bigint AS server,
           CASE WHEN q.seqincrement > 0 THEN q.seqincrement END AS servers,
           COALESCE(q.seqcache, s.step) AS step, s.last_value, s.values_left, s.off_stripe,
           s.source, c.oid::regclass AS sequence
    FROM pg_catalog.pg_namespace AS n
         -- no index of pg_class has the schema
         JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_namespace'::regclass
              AND d.refobjid = n.oid AND d.classid = 'pg_catalog.pg_class'::regclass
         JOIN pg_catalog.pg_class AS c ON c.oid = d.objid AND c.relkind IN ('S', 'f')
         LEFT JOIN pg_catalog.pg_sequence AS q ON q.seqrelid = c.oid
         CROSS JOIN LATERAL instaid._ticket_state(c.oid) AS s
    WHERE n.nspname = 'instaid_tickets'
      AND (c.relkind = 'S' OR s.source IS NOT NULL
           -- a further server of another one
           AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits AS i WHERE i.inhrelid = c.oid));
COMMENT ON VIEW instaid.tickets IS 'the tickets of this database; last_value, values_left and '
'off_stripe need USAGE or SELECT on the sequence, or membership in pg_read_all_stats';

-- Segments in shared memory; see the view instaid.segments.
CREATE FUNCTION instaid._segment_state() RETURNS TABLE (
    ticket regclass, state text, next_value bigint, last_value bigint, values_left bigint,
    spare_first bigint, spare_last bigint, spare_left bigint, waits bigint, refills bigint,
    segment_size bigint, server text, refilled_at timestamptz, refill_us bigint, failures bigint,
    failed_at timestamptz, failure text)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'instaid_segment_state';

CREATE VIEW instaid.segments AS
    SELECT c.relname AS name, s.state, s.segment_size, s.next_value, s.last_value, s.values_left,
           s.spare_first, s.spare_last, s.spare_left, s.server, s.refills, s.refilled_at,
           s.refill_us * '1 microsecond'::interval AS refill_duration, s.waits, s.failures,
           s.failed_at, s.failure, s.ticket AS sequence
    FROM instaid._segment_state() AS s JOIN pg_catalog.pg_class AS c ON c.oid = s.ticket;
COMMENT ON VIEW instaid.segments IS 'the tickets that have a source and are in use; only those on '
'which the role has UPDATE or SELECT, or all for members of pg_read_all_stats';

-- Keep others from creating a ticket of this name until the transaction ends.
CREATE FUNCTION instaid._lock_ticket_name(name text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_lock_ticket_name';

CREATE FUNCTION instaid.create_ticket(name text, server integer DEFAULT 1,
                                      servers integer DEFAULT 1, start bigint DEFAULT 1,
                                      step integer DEFAULT 1, data_type regtype DEFAULT 'bigint',
                                      source text[] DEFAULT NULL) RETURNS regclass
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_citus_worker boolean;
    first numeric;
    odd record;
    part text;
    n integer := 1;
BEGIN
    PERFORM instaid._check_new_ticket(name, server, servers, start, step, data_type);
    -- only superusers create anything in pg_catalog
    IF to_regclass('pg_catalog.pg_dist_local_group') IS NOT NULL THEN
        EXECUTE 'SELECT groupid <> 0 FROM pg_catalog.pg_dist_local_group' INTO is_citus_worker;
    END IF;
    IF source IS NOT NULL AND (server <> 1 OR servers <> 1 OR start <> 1) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('ticket %I cannot have a source and a server or start', name),
            DETAIL = format('The server is %s of %s; the start is %s.', server, servers, start),
            HINT = 'Set INCREMENT and START of the sequences on the servers of the source.';
    ELSIF source IS NULL AND servers = 1 AND is_citus_worker THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %I cannot be created on a worker of Citus', name),
            DETAIL = 'It would issue the values of the other nodes.',
            HINT = 'Create it on the coordinator, and use it there, or on each node with a server'
                   ' of its own and the number of all nodes as servers.';
    END IF;
    -- Two sessions cannot both find a name free; autocreate.c waits for the same lock.
    PERFORM instaid._lock_ticket_name(name);
    IF instaid.ticket_sequence(name, missing_ok => true) IS NOT NULL THEN
        RAISE duplicate_table USING MESSAGE = format('ticket %I already exists', name),
            HINT = format('To use it: SELECT instaid.next_ticket(%L); to begin again, drop it with'
                          ' drop_ticket(), or choose another name.', name);
    END IF;
    IF source IS NULL THEN
        -- the smallest value in the stripe of the server that is not below start
        first := start + mod(mod(server - start::numeric, servers) + servers, servers);
        EXECUTE format('CREATE SEQUENCE instaid_tickets.%I AS %s INCREMENT BY %s START WITH %s'
                       ' CACHE %s', name, data_type, servers, first, step);
        -- with UPDATE, which default privileges can give, another role could set it back
        EXECUTE format('REVOKE UPDATE ON SEQUENCE instaid_tickets.%I FROM %s', name,
                       instaid._default_grantees());
    ELSE
        -- arrays can have other dimensions and bounds
        source := ARRAY(SELECT unnest(source));
        IF cardinality(source) NOT BETWEEN 1 AND 16 OR array_position(source, NULL) IS NOT NULL
           OR cardinality(source) > (SELECT count(DISTINCT u) FROM unnest(source) AS u) THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('%s cannot be the source of a ticket', left(source::text, 200)),
                DETAIL = 'A source is an array of 1 to 16 different names of foreign servers.';
        END IF;
        PERFORM instaid._check_name('server', u) FROM unnest(source) AS u;
        SELECT u.name, w.fdwname INTO odd
        FROM unnest(source) AS u (name) LEFT JOIN pg_foreign_server AS s ON s.srvname = u.name
             LEFT JOIN pg_foreign_data_wrapper AS w ON w.oid = s.srvfdw
        WHERE w.fdwname IS DISTINCT FROM 'instaid' LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION USING ERRCODE = CASE WHEN odd.fdwname IS NULL THEN 'undefined_object'
                                                 ELSE 'wrong_object_type' END,
                MESSAGE = format('server %I cannot be the source of a ticket', odd.name),
                DETAIL = COALESCE('Its wrapper is ' || quote_ident(odd.fdwname) || '.',
                                  'It does not exist.'),
                HINT = 'CREATE SERVER ... FOREIGN DATA WRAPPER instaid.';
        END IF;
        EXECUTE format('CREATE FOREIGN TABLE instaid_tickets.%I (value %s) SERVER %I'
                       ' OPTIONS (step %L)', name, data_type, source[1], step);
        -- Each further server has a table that inherits.  A renamed ticket's keep the old name.
        FOR i IN 2 .. cardinality(source) LOOP
            LOOP
                n := n + 1;
                IF n > 999 THEN
                    RAISE duplicate_table USING
                        MESSAGE = format('no name is free for server %I of ticket %I', source[i],
                                         name),
                        DETAIL = format('%I to %I are taken.', name || '@002', name || '@999'),
                        HINT = 'Drop what has these names in the schema instaid_tickets, or choose'
                               ' another name.';
                END IF;
                part := name || to_char(n, '"@"FM000');
                PERFORM instaid._check_name('foreign table', part);
                EXIT WHEN to_regclass(format('instaid_tickets.%I', part)) IS NULL;
            END LOOP;
            EXECUTE format('CREATE FOREIGN TABLE instaid_tickets.%I ()'
                           ' INHERITS (instaid_tickets.%I) SERVER %I', part, name, source[i]);
        END LOOP;
        IF NOT (instaid._ticket_state(instaid.ticket_sequence(name))).is_preloaded THEN
            RAISE WARNING USING
                MESSAGE = format('ticket %I has a source, and the library instaid_sources is not'
                                 ' preloaded', name),
                DETAIL = 'next_ticket() fails until it is.',
                HINT = 'Install instaid_sources if this server lacks it, add it to'
                       ' shared_preload_libraries, and restart the server.';
        END IF;
    END IF;
    EXECUTE format('COMMENT ON %s instaid_tickets.%I IS %L',
                   CASE WHEN source IS NULL THEN 'SEQUENCE' ELSE 'FOREIGN TABLE' END, name,
                   'a ticket of instaid: use instaid.next_ticket()');
    RETURN instaid.ticket_sequence(name);
END $$;
COMMENT ON FUNCTION instaid.create_ticket(text, int, int, bigint, int, regtype, text[]) IS
'create a ticket: values from start on, server modulo servers, or those of foreign servers';

-- include common/tickets.sql

-- The last ID of a sequence, or, without an epoch, its last value; null if there is none, or if it
-- was not read.  One that setval() took past the end of the format stands there.
CREATE FUNCTION instaid._position(sequence regclass, shard_id integer, epoch timestamptz,
                                  OUT last bigint, OUT is_read boolean)
    LANGUAGE sql VOLATILE PARALLEL RESTRICTED
BEGIN ATOMIC
    SELECT CASE WHEN epoch IS NULL THEN s.last_value
                WHEN s.last_value > 0 AND COALESCE(s.issued_at, 'infinity') >= epoch
                THEN instaid.make_id(
                    LEAST(s.issued_at, instaid.extract_timestamp(9223372036854775807, epoch)),
                    shard_id, s.last_value, epoch) END, s.is_read
    FROM instaid._sequence_state(sequence) AS s;
END;

-- include common/positions.sql

-- What the view metrics has besides shards and tickets.
-- Load can add 64 ms to the drift, and a crash a second.  _segment_state() loads the library,
-- which defines the setting.
CREATE VIEW instaid._edition_metrics AS
    SELECT EXTRACT(epoch FROM pg_catalog.current_setting('instaid.max_drift')::interval
                              + '1064 ms')::double precision AS drift_limit_seconds,
           COALESCE(sum(e.failures), 0)::bigint AS failed_refills,
           count(*) FILTER (WHERE e.is_failing) AS failing_tickets,
           count(*) FILTER (WHERE e.is_failing AND e.values_left = 0 AND e.spare_left = 0)
               AS empty_tickets
    FROM (SELECT *, failed_at > COALESCE(refilled_at, '-infinity') AS is_failing
          FROM instaid.segments) AS e;

-- include common/metrics.sql
