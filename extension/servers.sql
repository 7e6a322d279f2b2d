---- One shard ID on two servers ----

-- What audit_servers() asks each server.  Later versions keep it, and what it returns.
CREATE FUNCTION instaid._server_state() RETURNS jsonb LANGUAGE sql VOLATILE PARALLEL RESTRICTED
    RETURN jsonb_build_object(
        'version', (SELECT e.extversion FROM pg_extension AS e WHERE e.extname = 'instaid'),
        'system', (SELECT c.system_identifier FROM pg_control_system() AS c)::text,
        'database', (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()),
        -- null for a standby
        'started_at', CASE WHEN NOT pg_is_in_recovery()
                           THEN extract(epoch FROM pg_postmaster_start_time()) END,
        'clock', extract(epoch FROM clock_timestamp()),
        'shards', (SELECT COALESCE(jsonb_agg(jsonb_build_object(
                       'schema_name', s.schema_name, 'shard_id', s.shard_id,
                       'epoch', to_char(s.epoch AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS+00'),
                       -- or a range of its own stops it, as on a worker of Citus
                       'frozen', q.seqmin > 1 OR q.seqmax < 9007199254740991,
                       'used', t.last_value IS NOT NULL)), '[]')
                   FROM instaid._list_shards() AS s
                        LEFT JOIN pg_sequence AS q ON q.seqrelid = s.sequence
                        CROSS JOIN LATERAL instaid._sequence_state(s.sequence) AS t),
        'tickets', (SELECT COALESCE(jsonb_agg(jsonb_build_object(
                        'ticket', c.relname, 'first', q.seqstart, 'last', q.seqmax,
                        'increment', q.seqincrement)), '[]')
                    FROM pg_sequence AS q JOIN pg_class AS c ON c.oid = q.seqrelid
                    WHERE c.relnamespace = 'instaid_tickets'::regnamespace
                      AND q.seqincrement > 0));

-- What is wrong with what servers have answered; a part of audit_servers().
CREATE FUNCTION instaid._compare_servers(states jsonb, OUT severity text, OUT object text,
                                         OUT problem text, OUT cure text) RETURNS SETOF record
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    -- number 0 is this server
    WITH answer AS MATERIALIZED (
        SELECT a.* FROM jsonb_to_recordset(states) AS a (
            number integer, name text, asked_at numeric, answered_at numeric, version text,
            system text, database oid, started_at numeric, clock numeric, shards jsonb,
            tickets jsonb)),
    -- Two names of one server count once.  So do the standbys of one primary, if the primary is
    -- not there.  A copy has the identifier of the original, and has started at another time.
    server AS MATERIALIZED (
        SELECT DISTINCT ON (a.system, a.database, a.started_at) a.* FROM answer AS a
        WHERE a.started_at IS NOT NULL OR NOT EXISTS (
            SELECT FROM answer AS p
            WHERE p.system = a.system AND p.database = a.database AND p.started_at IS NOT NULL)
        ORDER BY a.system, a.database, a.started_at, a.number),
    shard AS MATERIALIZED (
        SELECT v.number, v.name, v.system, v.started_at, h.*,
               h.schema_name = 'instaid' AS is_node, h.frozen IS NOT TRUE AS is_live
        FROM server AS v, jsonb_to_recordset(v.shards) AS h (
            schema_name text, shard_id integer, epoch text, frozen boolean, used boolean)),
    epoch AS MATERIALIZED (
        SELECT s.number, s.name, string_agg(DISTINCT s.epoch, ', ' ORDER BY s.epoch) AS epochs
        FROM shard AS s WHERE s.is_live GROUP BY s.number, s.name),
    ticket AS MATERIALIZED (
        SELECT v.number, v.name, t.* FROM server AS v, jsonb_to_recordset(v.tickets) AS t (
            ticket text, first numeric, last numeric, increment numeric)),
    conflict (name, other, shard_id, ticket, problem, cure) AS (
        SELECT b.name, a.name, a.shard_id, NULL, f.problem, f.cure
        FROM shard AS a JOIN shard AS b ON b.shard_id = a.shard_id AND b.number > a.number
             CROSS JOIN LATERAL (VALUES
            (a.is_live AND b.is_live AND NOT a.is_node AND NOT b.is_node,
             'issues IDs of the same shards as %s: %s',
             'If one is a copy of the other, stop it. Otherwise give each shard another ID on one'
             ' of the servers, with instaid.renumber_shard(), or freeze it there.'),
            (a.is_live AND b.is_live AND a.is_node <> b.is_node,
             'issues IDs of the same shards as %s, one of them by its instaid.node_shard_id: %s',
             'Set instaid.node_shard_id to a number that no shard has.'),
            -- Databases of one server have the same setting, whether they use it or not.
            (a.is_live AND b.is_live AND a.is_node AND b.is_node
             AND (a.used AND b.used OR a.system <> b.system OR a.started_at <> b.started_at),
             'has the same instaid.node_shard_id as %s: %s',
             'Set instaid.node_shard_id to another number. If one is a copy of the other, stop'
             ' it.'),
            (a.epoch <> b.epoch,
             'uses other epochs than %s for the same shard IDs, so that IDs can repeat: %s',
             'Give each another shard ID on one of the servers, with instaid.renumber_shard().'
             ' IDs that exist on both servers can be equal.')) AS f (applies, problem, cure)
        WHERE f.applies
        UNION
        -- Ranges and progressions meet: while servers are added, a range ends at the boundary.
        SELECT b.name, a.name, NULL, a.ticket, 'issues values of the same tickets as %s: %s',
               'Create them with a number of its own for each server. If one server is a copy of'
               ' the other, stop it. If a ticket is not shared, rename it on one of the servers.'
        FROM ticket AS a
             JOIN ticket AS b ON b.ticket = a.ticket AND b.number > a.number
                                 AND a.first <= b.last AND b.first <= a.last
                                 AND mod(a.first - b.first,
                                         NULLIF(gcd(a.increment, b.increment), 0)) = 0)
    SELECT 'error', f.name,
           format(f.problem, f.other, array_to_string(f.items[1:10], ', ')
                  || CASE WHEN cardinality(f.items) > 10
                          THEN format(' and %s others', cardinality(f.items) - 10) ELSE '' END),
           f.cure
    FROM (SELECT c.name, c.other, c.problem, c.cure,
                 array_agg(COALESCE(c.shard_id::text, quote_ident(c.ticket))
                           ORDER BY c.shard_id, c.ticket COLLATE "C") AS items
          FROM conflict AS c GROUP BY c.name, c.other, c.problem, c.cure) AS f
    UNION ALL
    SELECT 'warning', e.name, format('its shards have epoch %s, and those of %s have epoch %s',
                                     e.epochs, o.name, o.epochs),
           'Do not sort IDs of both together. Create further shards with one epoch.'
    FROM epoch AS e JOIN epoch AS o ON o.number = (SELECT min(m.number) FROM epoch AS m)
    WHERE e.epochs <> o.epochs
    UNION ALL SELECT 'warning', a.name, f.problem, f.cure
    FROM answer AS a JOIN answer AS o ON o.number = 0
         -- It read its clock between the question and the answer.
         CROSS JOIN LATERAL (SELECT GREATEST(a.clock - a.answered_at, 0)
                                    + LEAST(a.clock - a.asked_at, 0)) AS d (seconds)
         CROSS JOIN LATERAL (VALUES
        (a.version <> o.version,
         format('its extension has version %s, and this one %s', a.version, o.version),
         'Install the newer one on both, and run ALTER EXTENSION instaid UPDATE where it is'
         ' older.'),
        -- _server_state() has loaded the library, which defines the setting
        (abs(d.seconds) > extract(epoch FROM current_setting('instaid.max_drift')::interval),
         format('its clock is %s s %s the clock of this server', round(abs(d.seconds), 1),
                CASE WHEN d.seconds > 0 THEN 'ahead of' ELSE 'behind' END),
         'Let a time service set both clocks.')) AS f (applies, problem, cure) WHERE f.applies;
END;

CREATE FUNCTION instaid.audit_servers(servers text[], OUT severity text, OUT object text,
                                      OUT problem text, OUT cure text) RETURNS SETOF record
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_superuser CONSTANT boolean := (SELECT r.rolsuper FROM pg_roles AS r
                                      WHERE r.rolname = current_user);
    dblink record;
    part record;
    states jsonb;
    state jsonb;
    asked_at timestamptz;
    detail text;
    context text;
BEGIN
    -- a list that a query made from nothing must not look like a good result
    IF (array_ndims(servers) = 1 AND array_position(servers, NULL) IS NULL) IS NOT TRUE THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'argument servers must name one or more foreign servers',
            DETAIL = 'It is null or empty, contains a null, or has more than one dimension.',
            HINT = 'audit() looks at this server alone.';
    END IF;
    SELECT n.nspname, n.oid INTO dblink
    FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
    WHERE e.extname = 'dblink';
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'extension "dblink" does not exist',
            DETAIL = 'audit_servers() asks the servers by dblink, which comes with PostgreSQL.',
            HINT = 'As a superuser: CREATE SCHEMA dblink; CREATE EXTENSION dblink SCHEMA dblink;';
    -- The owner of the schema could rename it, and give its name to another one.
    ELSIF is_superuser AND NOT instaid._is_superusers_schema(dblink.oid) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('schema %I of extension dblink belongs to another role',
                             dblink.nspname),
            DETAIL = 'That role could put other functions in place of the functions of dblink.',
            HINT = 'CREATE SCHEMA dblink; ALTER EXTENSION dblink SET SCHEMA dblink;';
    END IF;
    -- These fail without USAGE on the schema, and if there is no such server.
    PERFORM format('%I.dblink(text, text)', dblink.nspname)::regprocedure;
    PERFORM has_server_privilege(u.name, 'USAGE') FROM unnest(servers) AS u (name);
    states := jsonb_build_array(jsonb_build_object('number', 0, 'name', 'this server')
                                || instaid._server_state());
    FOR part IN
        SELECT row_number() OVER (ORDER BY s.srvname) AS number, s.srvname::text AS name,
               r.rolname AS owner, r.rolsuper,
               (SELECT o.option_value FROM pg_options_to_table(s.srvoptions) AS o
                WHERE o.option_name = 'connect_timeout') AS connect_timeout
        FROM pg_foreign_server AS s JOIN pg_roles AS r ON r.oid = s.srvowner
        WHERE s.srvname = ANY (servers)
    LOOP
        object := quote_ident(part.name);
        IF is_superuser AND NOT part.rolsuper THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('server %s belongs to another role', object),
                DETAIL = format('Its owner, %I, could lead the connection of a superuser to code'
                                ' of that role.', part.owner),
                HINT = format('Connect as another role, or: ALTER SERVER %s OWNER TO %I;', object,
                              current_user);
        END IF;
        IF COALESCE(part.connect_timeout, '0') = '0' THEN
            RETURN QUERY VALUES (
                'warning', object, 'has no connect_timeout: if it hangs, audit_servers() hangs',
                format('ALTER SERVER %s OPTIONS (%s connect_timeout ''5'');', object,
                       CASE WHEN part.connect_timeout IS NULL THEN 'ADD' ELSE 'SET' END));
        END IF;
        asked_at := clock_timestamp();
        BEGIN
            EXECUTE format('SELECT t.state::jsonb FROM %I.dblink($1, $2) AS t (state text)',
                           dblink.nspname) INTO STRICT state
            USING part.name, text 'SET LOCAL statement_timeout = 10000;'
                                  ' SELECT instaid._server_state()';
            state := state || jsonb_build_object(
                'number', part.number, 'name', object, 'asked_at', extract(epoch FROM asked_at),
                'answered_at', extract(epoch FROM clock_timestamp()));
            -- an answer that cannot be read is a finding, too
            PERFORM FROM instaid._compare_servers(jsonb_build_array(state));
            states := states || state;
        EXCEPTION WHEN OTHERS OR assert_failure OR query_canceled THEN
            GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, context = PG_EXCEPTION_CONTEXT;
            -- Before 10 s, this statement and not the other server's; later, a server hangs.
            IF SQLSTATE = '57014' AND clock_timestamp() < asked_at + interval '10 s'
               AND context !~ 'while executing query on ' THEN
                RAISE;
            END IF;
            RETURN QUERY VALUES (
                'error', object, 'does not answer: ' || regexp_replace(
                    concat_ws(': ', SQLERRM, NULLIF(detail, '')), '[[:space:]]+', ' ', 'g'),
                CASE WHEN SQLSTATE IN ('3F000', '42883')
                     THEN 'Create the extension instaid, of the same version, in its database.'
                     ELSE 'Start it, or correct the options of the server and the user mapping.'
                END);
        END;
    END LOOP;
    RETURN QUERY SELECT f.* FROM instaid._compare_servers(states) AS f
                 ORDER BY f.severity COLLATE "C", f.object COLLATE "C", f.problem COLLATE "C";
END $$;
COMMENT ON FUNCTION instaid.audit_servers IS 'findings about shard IDs, epochs, tickets, clocks '
'and versions of this server and of others, which it asks by dblink; none if all is well';
