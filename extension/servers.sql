---- One shard ID on two servers ----

-- What audit_servers() asks each server: which database it is, and the shard IDs that make IDs
-- there.  Later versions keep it, and what it returns.
CREATE FUNCTION instaid._server_state(OUT database text, OUT started_at numeric, OUT clock numeric,
                                      OUT shard_ids integer[])
    LANGUAGE sql VOLATILE PARALLEL RESTRICTED
BEGIN ATOMIC
    SELECT concat_ws(' ', (SELECT c.system_identifier FROM pg_control_system() AS c),
                     current_database()),
           -- null for a standby
           CASE WHEN NOT pg_is_in_recovery()
                THEN extract(epoch FROM pg_postmaster_start_time()) END,
           extract(epoch FROM clock_timestamp()), array_agg(s.shard_id ORDER BY s.shard_id)
    FROM instaid._list_shards() AS s CROSS JOIN LATERAL instaid._sequence_state(s.sequence) AS t
    -- a range of its own stops it, as on a worker of Citus
    WHERE NOT s.frozen AND t.problem IS NULL
      -- databases of one server have the same number, whether they use it or not
      AND (s.schema_name <> 'instaid' OR t.last_value IS NOT NULL OR NOT t.is_read);
END;

CREATE FUNCTION instaid.audit_servers(servers text[], OUT code text, OUT severity text,
                                      OUT object text, OUT problem text, OUT cure text)
    RETURNS SETOF record
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    dblink record;
    part record;
    state record;
    states jsonb;
    asked_at timestamptz;
    ahead numeric;
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
    SELECT n.nspname, n.nspowner INTO dblink
    FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
    WHERE e.extname = 'dblink';
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'extension "dblink" does not exist',
            DETAIL = 'audit_servers() asks the servers by dblink, which comes with PostgreSQL.',
            HINT = 'As a superuser: CREATE SCHEMA dblink; CREATE EXTENSION dblink SCHEMA dblink;';
    -- The owner of the schema could rename it, and give its name to another one.
    ELSIF NOT instaid._can_trust(quote_ident(current_user)::regrole, dblink.nspowner) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('schema %I of extension dblink belongs to another role',
                             dblink.nspname),
            DETAIL = 'That role could put other functions in place of the functions of dblink.',
            HINT = 'CREATE SCHEMA dblink; ALTER EXTENSION dblink SET SCHEMA dblink;';
    END IF;
    -- These fail without USAGE on the schema, and if there is no such server.
    PERFORM format('%I.dblink(text, text)', dblink.nspname)::regprocedure;
    PERFORM has_server_privilege(u.name, 'USAGE') FROM unnest(servers) AS u (name);
    SELECT jsonb_build_array(to_jsonb(s) || '{"name": "this server"}') INTO states
    FROM instaid._server_state() AS s;
    FOR part IN
        SELECT s.srvname AS name, r.rolname AS owner,
               NOT r.rolsuper AND me.rolsuper AS is_foreign
        FROM pg_foreign_server AS s JOIN pg_roles AS r ON r.oid = s.srvowner
             JOIN pg_roles AS me ON me.rolname = current_user
        WHERE s.srvname = ANY (servers) ORDER BY s.srvname
    LOOP
        object := quote_ident(part.name);
        IF part.is_foreign THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('server %s belongs to another role', object),
                DETAIL = format('Its owner, %I, could lead the connection of a superuser to code'
                                ' of that role.', part.owner),
                HINT = format('Connect as another role, or: ALTER SERVER %s OWNER TO %I;', object,
                              current_user);
        END IF;
        asked_at := clock_timestamp();
        BEGIN
            EXECUTE format('SELECT t.* FROM %I.dblink($1, $2) AS t (database text, started_at'
                           ' numeric, clock numeric, shard_ids integer[])', dblink.nspname)
            INTO STRICT state
            USING part.name::text, text 'SET LOCAL statement_timeout = 5000;'
                                        ' SELECT * FROM instaid._server_state()';
            states := states || (to_jsonb(state) || jsonb_build_object('name', object));
            -- It read its clock between the question and the answer.
            ahead := round(GREATEST(state.clock - extract(epoch FROM clock_timestamp()), 0)
                           + LEAST(state.clock - extract(epoch FROM asked_at), 0), 1);
            RETURN QUERY SELECT
                'clocks_apart', 'warning', object,
                format('its clock is %s s %s the clock of this server', abs(ahead),
                       CASE WHEN ahead > 0 THEN 'ahead of' ELSE 'behind' END),
                'Let a time service set both clocks.'
            WHERE abs(ahead) > 1;
        EXCEPTION WHEN OTHERS OR assert_failure OR query_canceled THEN
            GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, context = PG_EXCEPTION_CONTEXT;
            -- Before 10 s, this statement was cancelled: the server's own ends after 5 s, and only
            -- then does dblink see a cancel.  Later, a server hangs.
            IF SQLSTATE = '57014' AND clock_timestamp() < asked_at + interval '10 s'
               AND context !~ 'while executing query on ' THEN
                RAISE;
            END IF;
            RETURN QUERY VALUES (
                'server_does_not_answer', 'error', object, 'does not answer: ' || regexp_replace(
                    concat_ws(': ', SQLERRM, NULLIF(detail, '')), '[[:space:]]+', ' ', 'g'),
                'Start it, create the extension instaid of the same version in its database, or'
                ' correct the options of the server and the user mapping.');
        END;
    END LOOP;
    RETURN QUERY
    WITH answer AS MATERIALIZED (
        SELECT a.number, s.*
        FROM jsonb_array_elements(states) WITH ORDINALITY AS a (state, number),
             jsonb_to_record(a.state) AS s (name text, database text, started_at numeric,
                                            shard_ids integer[])),
    -- Two names of one server count once, and so does a primary with its standbys.  A copy that
    -- was promoted has started at another time.
    live AS MATERIALIZED (
        SELECT DISTINCT ON (a.database, a.started_at, u.shard_id) a.*, u.shard_id
        FROM answer AS a, unnest(a.shard_ids) AS u (shard_id)
        WHERE a.started_at IS NOT NULL OR NOT EXISTS (
            SELECT FROM answer AS p WHERE p.database = a.database AND p.started_at IS NOT NULL)
        ORDER BY a.database, a.started_at, u.shard_id, a.number)
    SELECT 'shard_id_on_two_servers', 'error', b.name,
           format('issues IDs of the same shards as %s: %s%s', a.name, array_to_string(
                      (array_agg(a.shard_id ORDER BY a.shard_id))[1:10], ', '),
                  CASE WHEN count(*) > 10 THEN ', ...' END),
           'If one is a copy of the other, stop it. Otherwise give each shard another ID on one of'
           ' the servers, with instaid.renumber_shard() or, for schema instaid, the setting'
           ' instaid.node_shard_id, or freeze it there.'
    FROM live AS a JOIN live AS b ON b.shard_id = a.shard_id AND b.number > a.number
    GROUP BY b.name, a.name ORDER BY b.name COLLATE "C", a.name COLLATE "C";
END $$;
COMMENT ON FUNCTION instaid.audit_servers IS 'findings about shard IDs and clocks of this '
'server and of others, which it asks by dblink; none if all is well';
