---- Adopting ----

-- Refuse a table whose policies hide rows from the caller, too, who owns it.
CREATE FUNCTION instaid_adopt._check_sees_rows(table_name regclass) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF row_security_active(table_name) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('policies of table %s can hide rows from its owner', table_name),
            DETAIL = 'It has FORCE ROW LEVEL SECURITY. The largest ID must be found.',
            HINT = format('Before: ALTER TABLE %1$s NO FORCE ROW LEVEL SECURITY; Afterwards: ALTER'
                          ' TABLE %1$s FORCE ROW LEVEL SECURITY;', table_name);
    END IF;
END $$;

-- Lock the tables of these columns whose defaults make IDs, and find the largest ID in them, and
-- the shard IDs of the newest rows.  Any role can write such a default: only tables of the caller
-- are read.
CREATE FUNCTION instaid_adopt._lock_tables_of(
    schema_name text, columns jsonb, OUT largest bigint, OUT place text, OUT shard_ids integer[])
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part record;
    seen bigint[];
    left_out text[] := ARRAY[]::text[];
BEGIN
    shard_ids := '{}';
    FOR part IN
        SELECT k.* FROM jsonb_to_recordset(columns)
                        AS k (relid oid, relation text, attname text, filled_by text,
                              has_ids boolean, is_ours boolean)
        WHERE k.filled_by = 'default'
    LOOP
        IF NOT part.is_ours THEN
            left_out := array_remove(left_out, part.relation) || part.relation;
            CONTINUE;
        END IF;
        EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', part.relation);
        -- it can have been given away, or got a child, meanwhile
        IF EXISTS (SELECT FROM instaid._descendants(part.relid) AS h
                   WHERE pg_get_userbyid(h.owner) <> current_user) THEN
            RAISE serialization_failure USING
                MESSAGE = format('table %s has changed its owner meanwhile', part.relation),
                HINT = 'Try again.';
        END IF;
        CONTINUE WHEN NOT part.has_ids;
        PERFORM instaid_adopt._check_sees_rows(part.relid);
        EXECUTE format(
            -- An index gives them.  A value below a day after the epoch is no such ID.
            'SELECT ARRAY[max(r.id)] || array_agg(DISTINCT instaid.extract_shard_id(r.id)::bigint)'
            ' FILTER (WHERE r.id > instaid.make_id(instaid.default_epoch() + ''1 day'', 0, 0))'
            ' FROM (SELECT %1$I::bigint AS id FROM %2$s WHERE %1$I IS NOT NULL'
            ' ORDER BY %1$I DESC LIMIT 5000) AS r', part.attname, part.relation) INTO seen;
        shard_ids := shard_ids || seen[2:]::integer[];
        IF largest IS NULL OR seen[1] > largest THEN
            largest := seen[1];
            place := format('%s.%I', part.relation, part.attname);
        END IF;
    END LOOP;
    IF left_out <> '{}' THEN
        RAISE WARNING 'tables of other owners have IDs of schema %', quote_ident(schema_name) USING
            DETAIL = format('Their rows are not read: %s.', array_to_string(left_out, ', ')),
            HINT = 'If their largest ID is ahead of the clock, pass it to instaid.advance_past().';
    END IF;
END $$;

-- Copies of the published function in schemas LIKE a pattern that belong to the caller, or to
-- roles that it is a member of; why one is not adopted, null if it is.  The first one of a schema
-- is next_id(), or becomes it.
CREATE FUNCTION instaid_adopt._found_copies(
    pattern text, OUT schema_name name, OUT object text, OUT function oid, OUT owner regrole,
    OUT is_own boolean, OUT place bigint, OUT reason text)
    RETURNS SETOF record LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET enable_nestloop = off SET jit = off AS $$
    WITH copy AS (
        SELECT n.nspname AS schema_name, c.object, p.oid AS function, c.owner, p.pronargs,
               p.proname, f.oid AS next_id, f.proowner AS next_id_owner,
               pg_get_userbyid(c.owner) = current_user AS is_own,
               CASE WHEN p.oid IS NULL THEN 'is a default'
                    WHEN pg_get_userbyid(c.owner) <> current_user
                    THEN format('belongs to %I', pg_get_userbyid(c.owner))
                    WHEN NOT instaid._can_trust(p.proowner, n.nspowner)
                    THEN format('belongs to %I, and its schema to %s',
                                pg_get_userbyid(p.proowner), instaid._ruler(n.nspowner))
                    WHEN p.prorettype <> 'bigint'::regtype OR p.proretset
                    THEN 'returns ' || pg_get_function_result(p.oid)
                    WHEN p.pronargs > p.pronargdefaults THEN 'has arguments' END AS reason,
               s.owner IS NOT NULL AS is_shard, s.owner AS shard_owner,
               p.proname = 'next_id' AND EXISTS (
                   SELECT FROM pg_proc AS o
                   WHERE o.proname = 'next_id' AND o.pronamespace = n.oid AND o.oid <> p.oid
                     AND o.pronargs = o.pronargdefaults) AS is_ambiguous
        FROM instaid._copies(pattern, current_user) AS c JOIN pg_namespace AS n ON n.oid = c.schema
             LEFT JOIN (SELECT l.schema_name, d.proowner AS owner
                        FROM instaid._list_shards() AS l
                             JOIN pg_proc AS d ON d.oid = l.declaration)
                  AS s ON s.schema_name = n.nspname
             LEFT JOIN pg_proc AS p ON c.classid = 'pg_proc'::regclass AND p.oid = c.objid
             LEFT JOIN pg_proc AS f ON f.oid = instaid._find_function(n.nspname, 'next_id', ''))
    SELECT c.schema_name, c.object, c.function, c.owner, c.is_own, row_number() OVER w,
           COALESCE(c.reason, CASE
               WHEN c.is_shard AND c.is_ambiguous
               THEN format('stands beside the next_id() of a shard, so that calls are ambiguous:'
                           ' DROP FUNCTION %s', c.object)
               WHEN c.is_shard AND c.owner <> c.shard_owner
               THEN 'stands beside the next_id() of a shard'
               WHEN c.is_shard THEN NULL
               WHEN c.next_id_owner <> c.owner
               THEN format('stands beside the next_id() of %I',
                           pg_get_userbyid(c.next_id_owner)) END)
    FROM copy AS c
    WINDOW w AS (PARTITION BY c.schema_name, c.reason IS NULL
                 ORDER BY c.function = c.next_id DESC NULLS LAST, c.pronargs,
                 c.proname COLLATE "C")
$$;

-- Refuse IDs that are far ahead of the clock.
CREATE FUNCTION instaid_adopt._check_clock(schema_name text, epoch timestamptz, largest bigint,
                                           place text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' AS $$
BEGIN
    IF largest > instaid.max_id(clock_timestamp() + interval '1 day', epoch) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('IDs of schema %I are ahead of the clock', schema_name),
            DETAIL = format('The largest is %s in %s. With epoch %s, its time is %s. The clock'
                            ' reads %s.', largest, place, epoch,
                            instaid.extract_timestamp(largest, epoch), clock_timestamp()),
            HINT = 'Give that row another ID, or pass the epoch that next_id() subtracts.';
    END IF;
END $$;

-- This shard ID if it is free, or else another one, from the top, after so many that are free.
CREATE FUNCTION instaid_adopt._free_or_other(shard_id integer, left_out integer[] DEFAULT '{}',
                                             number integer DEFAULT 0) RETURNS integer
    LANGUAGE sql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT n FROM generate_series(0, instaid._max_shard_id()) AS n
    WHERE n NOT IN (SELECT s.shard_id FROM instaid._list_shards() AS s) AND n <> ALL (left_out)
    ORDER BY n = $1 DESC NULLS LAST, n DESC OFFSET number LIMIT 1
$$;

-- Let functions of a shard that something has put back, such as a script that creates them at each
-- start, call its next_id() again.  Number, epoch and position stay.
CREATE FUNCTION instaid_adopt._adopt_again(schema_name text, copies oid[], INOUT shard_id integer,
                                           INOUT epoch timestamptz)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' SET row_security = off AS $$
DECLARE
    next_id CONSTANT oid := instaid._find_function(schema_name, 'next_id', '');
    shard record;
    taken record;
    function oid;
    seen record;
    layout record;
    command text;
BEGIN
    SELECT s.*, p.proowner::regrole AS owner, p.pronamespace AS schema INTO STRICT shard
    FROM instaid._find_shard(schema_name) AS s JOIN pg_proc AS p ON p.oid = s.declaration;
    PERFORM instaid._check_owner(shard.owner, 'shard', quote_ident(schema_name));
    IF shard.shard_id <> shard_id OR shard.epoch <> epoch THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('schema %I is a shard already', schema_name),
            DETAIL = format('It is shard %s, with epoch %s.', shard.shard_id, shard.epoch),
            HINT = 'Pass neither. instaid.renumber_shard() gives a shard another number.';
    ELSIF shard.frozen THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('shard %I is frozen', schema_name),
            HINT = format('First: SELECT instaid.thaw_shard(%L);', schema_name);
    END IF;
    taken := instaid_adopt._lock_tables_of(
        schema_name, instaid_adopt._columns_of(shard.schema, copies));
    PERFORM instaid_adopt._check_clock(schema_name, shard.epoch, taken.largest, taken.place);
    FOREACH function IN ARRAY copies LOOP
        -- one that takes values of the sequence of this shard belongs to it
        CONTINUE WHEN function = next_id
                      OR shard.sequence = ANY (instaid_adopt._sequences_of(function));
        seen := instaid_adopt._try_copy(function);
        layout := instaid_adopt._read_layout(function, seen.ids[1], seen.made_at, epoch);
        IF (layout.shard_id, layout.epoch) <> (shard.shard_id, shard.epoch) THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('%s stands beside the next_id() of a shard',
                                 instaid._signature(function)),
                DETAIL = format('Its IDs name shard %s, with epoch %s. Schema %I is shard %s, with'
                                ' epoch %s.', layout.shard_id, layout.epoch, schema_name,
                                shard.shard_id, shard.epoch),
                HINT = 'To let it return IDs of this shard: '
                       || instaid_adopt._replacing(function);
        END IF;
    END LOOP;
    -- waits for all who have used the sequence
    PERFORM instaid_adopt._hold_position(schema_name, shard.sequence);
    PERFORM instaid.advance_past(shard.sequence, GREATEST(taken.largest, instaid.max_id(
        clock_timestamp() + interval '1 ms', shard.epoch)), shard.epoch);
    FOR command IN
        SELECT CASE f WHEN next_id
                    THEN instaid_adopt._next_id_command(schema_name, f, shard.sequence)
                    ELSE instaid_adopt._wrapper_command(schema_name, f) END
        FROM unnest(copies) AS f ORDER BY f = next_id DESC
    LOOP
        EXECUTE command;
    END LOOP;
    shard_id := shard.shard_id;
    epoch := shard.epoch;
END $$;

-- The command that lets a function call the next_id() of its schema.  With other arguments than
-- the default, which could mean another shard, it returns null.
CREATE FUNCTION instaid_adopt._wrapper_command(schema_name text, function oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
    SELECT format(
        'CREATE OR REPLACE FUNCTION %I.%I(%s) RETURNS bigint LANGUAGE sql VOLATILE PARALLEL'
        ' UNSAFE %s RETURN ' || CASE p.pronargs WHEN 0 THEN '%1$I.next_id()'
            ELSE 'CASE WHEN ROW(%5$s) IS NOT DISTINCT FROM ROW(%6$s) THEN %1$I.next_id() END' END,
        schema_name, p.proname, pg_get_function_arguments(p.oid),
        CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END, (
            SELECT string_agg('$' || g, ', ' ORDER BY g)
            FROM generate_series(1, p.pronargs) AS g), pg_get_expr(p.proargdefaults, 0))
    FROM pg_proc AS p WHERE p.oid = function
$$;

-- Adopt the next_id() of a schema, and its copies.  Without a next_id(), the first becomes it.
CREATE FUNCTION instaid_adopt._adopt(schema_name text, copies oid[],
                                     INOUT shard_id integer, INOUT epoch timestamptz,
                                     renumber boolean)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' SET row_security = off
    SET standard_conforming_strings = on SET quote_all_identifiers = off
    -- to plan or compile each statement for each schema takes twice as long as to run them
    SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
    next_id oid := instaid._find_function(schema_name, 'next_id', '');
    -- a next_id() that is no copy can call one of them
    functions CONSTANT oid[] := array_remove(next_id || array_remove(copies, next_id), NULL);
    passed_epoch CONSTANT timestamptz := epoch;
    main record;
    columns jsonb;
    taken record;
    function oid;
    seen record;
    layout record;
    named integer;
    first_epoch timestamptz;
    sequences regclass[] := '{}'::regclass[];
    others text;
    part record;
    reads text;  -- what the functions read of the session
    rows record;
    number_of_rows integer;
    other_use text;
    made text;  -- the name of the function that is made
    wrappers text[];
    command text;
BEGIN
    PERFORM instaid._check_read_committed('adopt_shard');
    PERFORM instaid._check_owner(p.proowner, 'function', instaid._signature(p.oid))
    FROM pg_proc AS p WHERE p.oid = ANY (functions);
    IF (instaid._find_conflict(schema_name, -1)).routine <> functions[1] AND copies <> '{}'
       AND EXISTS (SELECT FROM instaid._find_shard(schema_name)) THEN
        SELECT a.* INTO shard_id, epoch
        FROM instaid_adopt._adopt_again(schema_name, copies, shard_id, epoch) AS a;
        RETURN;
    END IF;
    -- refuses an epoch that is out of range
    PERFORM instaid.make_id(epoch, 0, 0, epoch),
            instaid._check_new_shard(schema_name, NULL, NULL, COALESCE(next_id, functions[1]));
    SELECT p.proname, p.pronargs, p.proacl, p.proowner AS owner, n.oid AS schema INTO main
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.oid = functions[1] AND p.prokind = 'f' AND p.prorettype = 'bigint'::regtype
      AND NOT p.proretset;
    IF NOT FOUND THEN
        RAISE undefined_function USING
            MESSAGE = format('schema %I has no next_id() that returns bigint', schema_name),
            DETAIL = CASE WHEN next_id IS NOT NULL THEN 'It returns ' || COALESCE(
                               pg_get_function_result(next_id), 'nothing') || '.'
                          ELSE format('There is no such %s.', CASE WHEN to_regnamespace(
                               quote_ident(schema_name)) IS NULL THEN 'schema'
                               ELSE 'function' END) END,
            HINT = COALESCE('If another function makes its IDs: ALTER ROUTINE '
                            || instaid._signature(next_id) || ' RENAME TO old_next_id; ',
                            'If a function of another name makes its IDs, rename it to next_id. ')
                   || 'If no function makes them, use create_shard() and adopt_column().';
    END IF;
    PERFORM instaid._check_ruler(schema_name, functions[1]);
    IF EXISTS (SELECT FROM pg_proc AS p WHERE p.oid = ANY (functions) AND p.proname = 'next_id'
                                          AND p.pronargs > 0) THEN
        RAISE duplicate_function USING
            MESSAGE = format('schema %I has a next_id() with an argument', schema_name),
            DETAIL = 'Beside the next_id() of a shard, calls without it would be ambiguous.',
            HINT = format('Rename it: ALTER FUNCTION %s RENAME TO old_next_id; Defaults follow'
                          ' it.', instaid._signature(functions[1]));
    END IF;

    -- Citus replaces no function after a transaction has read by several connections.
    PERFORM set_config('citus.multi_shard_modify_mode', 'sequential', true);
    -- The tables' shards are locked, too, where they are visible.
    PERFORM set_config('citus.enable_manual_changes_to_shards', 'on', true);
    columns := instaid_adopt._columns_of(main.schema, functions);
    taken := instaid_adopt._lock_tables_of(schema_name, columns);
    -- while this waited, another session can have adopted the schema, or its owner changed it
    PERFORM instaid._check_new_shard(schema_name, NULL, NULL, COALESCE(next_id, functions[1]));
    IF (SELECT count(*) FROM pg_proc AS p WHERE p.oid = ANY (functions) AND p.proowner = main.owner
                                            AND p.pronamespace = main.schema)
       < cardinality(functions) THEN
        RAISE serialization_failure USING
            MESSAGE = format('functions of schema %I were dropped or changed meanwhile',
                             schema_name), HINT = 'Try again.';
    END IF;

    -- With another argument than its default, the function could mean another shard.  Any role can
    -- write such a default.
    SELECT p.oid, format('%s.%I', a.adrelid::regclass, t.attname) AS name INTO part
    FROM pg_proc AS p JOIN pg_depend AS d ON d.refclassid = 'pg_proc'::regclass
                                         AND d.refobjid = p.oid
         JOIN pg_attrdef AS a ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid
         JOIN pg_attribute AS t ON t.attrelid = a.adrelid AND t.attnum = a.adnum
         JOIN pg_class AS c ON c.oid = a.adrelid
    WHERE p.oid = ANY (functions) AND p.pronargs > 0
      -- not for each table of the database
      AND CASE WHEN a.adbin::text ~ format(':funcid %s [^({]*:args [(]', p.oid)
               THEN instaid._can_trust(main.owner, c.relowner) END LIMIT 1;
    IF FOUND THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('the default of column %s passes an argument to %s', part.name,
                             instaid._signature(part.oid)),
            HINT = 'To let it return IDs of a new shard: ' || instaid_adopt._replacing(part.oid);
    END IF;
    wrappers := ARRAY(
        SELECT instaid_adopt._wrapper_command(schema_name, f) FROM unnest(functions) AS f
        WHERE f <> COALESCE(next_id, 0));

    FOREACH function IN ARRAY functions LOOP
        seen := instaid_adopt._try_copy(function);
        layout := instaid_adopt._read_layout(function, seen.ids[1], seen.made_at, passed_epoch,
                                             shard_id, renumber);
        IF layout.epoch <> first_epoch THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('functions of schema %I have several epochs', schema_name),
                DETAIL = format('%s has %s, and %s has %s.', instaid._signature(functions[1]),
                                first_epoch, instaid._signature(function), layout.epoch),
                HINT = format('To let both return IDs of a new shard: %s SELECT'
                              ' instaid_adopt.replace_copy(%L);',
                              instaid_adopt._replacing(functions[1]),
                              instaid._signature(function));
        END IF;
        first_epoch := layout.epoch;
        named := COALESCE(named, layout.shard_id);
        sequences := sequences || seen.sequence;
        others := NULLIF(concat_ws('; ', others, (
            SELECT format('%s: %s', instaid._signature(function),
                          string_agg(DISTINCT s::text, ', '))
            FROM unnest(seen.ids) AS i CROSS JOIN LATERAL instaid.extract_shard_id(i) AS s
            HAVING bool_or(s <> named))), '');
    END LOOP;
    epoch := first_epoch;
    rows := instaid_adopt._look_at_rows(columns, epoch);
    -- clients' rows count only where no others are
    IF rows.filled_by = 'trigger' OR taken.shard_ids = '{}' THEN
        taken.shard_ids := taken.shard_ids || rows.shard_ids;
        IF taken.largest IS NULL OR rows.largest > taken.largest THEN
            taken.largest := rows.largest;
            taken.place := rows.place;
        END IF;
    END IF;
    number_of_rows := instaid_adopt._number_of_rows(taken.shard_ids);
    SELECT r INTO reads
    FROM unnest(functions) AS f CROSS JOIN LATERAL instaid_adopt._session_reads(f) AS r
    WHERE r IS NOT NULL LIMIT 1;
    IF reads IS NOT NULL THEN
        IF shard_id IS NULL THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('the shard ID of %s is that of a session',
                                 instaid._signature(functions[1])),
                DETAIL = concat(format('It depends on %s, where clients can have another one. In'
                                       ' this session, an ID names shard %s.', reads, named),
                                (SELECT ' The newest rows name ' || string_agg(
                                            DISTINCT s::text, ', ') || '.'
                                 FROM unnest(taken.shard_ids) AS s)),
                HINT = CASE WHEN number_of_rows IS NULL
                            THEN 'Pass the shard ID of the clients to instaid_adopt.adopt_shard().'
                            ELSE 'If the rows are right: ' || instaid_adopt._adopting(
                                schema_name, number_of_rows, passed_epoch, renumber) END;
        END IF;
        named := COALESCE(number_of_rows, shard_id);
    END IF;
    others := NULLIF(concat_ws('; ', others, (
        SELECT 'the newest rows: ' || string_agg(DISTINCT s::text, ', ')
        FROM unnest(taken.shard_ids) AS s HAVING bool_or(s <> named))), '');
    PERFORM instaid_adopt._check_clock(schema_name, epoch, taken.largest, taken.place);
    IF others IS NOT NULL AND NOT renumber THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('IDs of schema %I name several shards', schema_name),
            DETAIL = format('The first ID names shard %s. With other values of the sequence, or in'
                            ' the tables, IDs name others: %s.', named, others),
            HINT = 'To give new IDs one number: ' || instaid_adopt._adopting(
                schema_name, instaid_adopt._free_or_other(COALESCE(shard_id, number_of_rows,
                                                                   named)),
                passed_epoch, true);
    ELSIF named <> shard_id AND NOT renumber THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('IDs of schema %I name shard %s, and not shard %s', schema_name,
                             named, shard_id),
            HINT = format('Pass %s. To change the number: %s', named, instaid_adopt._adopting(
                              schema_name, shard_id, passed_epoch, true));
    END IF;
    shard_id := COALESCE(shard_id, named);
    IF taken.largest IS NOT NULL THEN
        RAISE NOTICE 'IDs of schema % go on above %', quote_ident(schema_name), taken.largest USING
            DETAIL = format('It is the largest ID, in %s. Its time is %s.', taken.place,
                            instaid.extract_timestamp(taken.largest, epoch));
    END IF;

    -- A sequence counts the IDs of one shard, and nothing else.  What a role without rights on
    -- it declares, or uses as a default, must not be able to block its owner.
    SELECT format('It is the sequence of shard %I.', s.schema_name) INTO other_use
    FROM pg_depend AS d JOIN pg_proc AS p ON p.oid = d.objid
         JOIN pg_namespace AS n ON n.oid = p.pronamespace
         CROSS JOIN LATERAL instaid._find_shard(n.nspname) AS s
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = sequences[1]
      AND d.classid = 'pg_proc'::regclass AND s.sequence = sequences[1]
      AND has_sequence_privilege(p.proowner, s.sequence, 'USAGE, UPDATE')
    UNION ALL
    SELECT format('It also counts for %s.', pg_describe_object(d.classid, d.objid, d.objsubid))
    FROM pg_depend AS d JOIN pg_attrdef AS a ON a.oid = d.objid
         JOIN pg_class AS t ON t.oid = a.adrelid
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = sequences[1]
      AND d.classid = 'pg_attrdef'::regclass
      AND has_sequence_privilege(t.relowner, d.refobjid, 'USAGE, UPDATE')
      AND NOT EXISTS (SELECT FROM pg_depend AS f
                      WHERE f.classid = d.classid AND f.objid = d.objid
                        AND f.refclassid = 'pg_proc'::regclass AND f.refobjid = ANY (functions))
    UNION ALL
    SELECT format('It also counts for %s.',
                  pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid))
    FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass
      AND d.objid = sequences[1] AND d.deptype = 'i' LIMIT 1;
    IF FOUND THEN
        RAISE object_in_use USING
            MESSAGE = format('%s cannot be the sequence of a shard', sequences[1]),
            DETAIL = other_use,
            HINT = 'To let it return IDs of a new shard: '
                   || instaid_adopt._replacing(functions[1]);
    END IF;
    -- Defaults follow the first function.
    IF next_id IS NULL THEN
        made := CASE main.pronargs WHEN 0 THEN main.proname ELSE 'next_id' END;
        EXECUTE CASE main.pronargs WHEN 0
            THEN format('ALTER FUNCTION %s RENAME TO next_id', instaid._signature(functions[1]))
            ELSE format('CREATE FUNCTION %I.next_id() RETURNS bigint LANGUAGE sql RETURN 0',
                        schema_name) END;
        next_id := instaid._find_function(schema_name, 'next_id', '');
    END IF;
    PERFORM instaid._check_new_shard(schema_name, shard_id, epoch, next_id);

    -- so that a table can be dropped whose serial column had it
    IF EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass
               AND d.objid = sequences[1] AND d.deptype = 'a') THEN
        EXECUTE format('ALTER SEQUENCE %s OWNED BY NONE', sequences[1]);
    END IF;
    PERFORM instaid_adopt._replace_next_id(schema_name, shard_id, epoch, next_id, sequences[1],
                                     taken.largest);

    -- The others call it, and so does a function with the old name.
    FOREACH command IN ARRAY wrappers LOOP
        EXECUTE command;
    END LOOP;
    -- The function that was made has the rights of the one beside it.
    IF made IS NOT NULL THEN
        EXECUTE concat(
            format('REVOKE ALL ON FUNCTION %I.%I() FROM PUBLIC', schema_name, made),
            format('; GRANT EXECUTE ON FUNCTION %I.%I() TO ', schema_name, made)
            || instaid._others_with('EXECUTE', COALESCE(
                   main.proacl, acldefault('f', main.owner)), main.owner));
    END IF;
    -- Who could take values of their sequences can take IDs.
    FOR command IN
        SELECT format('GRANT %s TO %s', r, x.name)
        FROM (SELECT DISTINCT a.grantee, CASE a.grantee WHEN 0 THEN 'PUBLIC'
                                         ELSE a.grantee::regrole::text END AS name
              FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
              WHERE c.oid = ANY (sequences[2:]) AND a.grantee <> c.relowner
                AND a.privilege_type IN ('USAGE', 'UPDATE')) AS x
             CROSS JOIN LATERAL instaid._missing_rights(x.grantee, schema_name, sequences[1]) AS r
    LOOP
        EXECUTE command;
    END LOOP;
END $$;

CREATE FUNCTION instaid_adopt.adopt_shard(
    schema_name text, shard_id integer DEFAULT NULL, epoch timestamptz DEFAULT NULL,
    renumber boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    pattern CONSTANT text := regexp_replace(schema_name, '([\\%_])', '\\\1', 'g');
    copies oid[];
BEGIN
    PERFORM instaid_adopt._check_version();
    PERFORM instaid._check_no_nulls('adopt_shard', json_build_object(
        'schema_name', schema_name, 'renumber', renumber));
    copies := ARRAY(SELECT c.function FROM instaid_adopt._found_copies(pattern) AS c
                    WHERE c.reason IS NULL ORDER BY c.place);
    IF copies = '{}' AND instaid._find_function(schema_name, 'next_id', '') IS NULL THEN
        PERFORM instaid._check_owner(p.proowner, 'function', c.object)
        FROM instaid_adopt._found_copies(pattern) AS c JOIN pg_proc AS p ON p.oid = c.function;
    END IF;
    PERFORM instaid_adopt._adopt(schema_name, copies, shard_id, epoch, renumber);
END $$;
COMMENT ON FUNCTION instaid_adopt.adopt_shard IS 'make a schema with copies of the published '
'function a shard that continues above their IDs; only for the owner of all that it changes';

-- The schemas with copies that the caller may adopt, and the copies of each.
CREATE FUNCTION instaid_adopt._find_copies(pattern text, OUT schemas text[], OUT functions text[])
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    mine text;
    others text;
BEGIN
    WITH found AS MATERIALIZED (SELECT c.* FROM instaid_adopt._found_copies(pattern) AS c)
    SELECT COALESCE(array_agg(s.schema_name ORDER BY s.schema_name), '{}'),
           array_agg(s.functions ORDER BY s.schema_name), (
               SELECT string_agg(format('%s %s', f.object, f.reason), '; ' ORDER BY f.object)
               FROM found AS f WHERE f.reason IS NOT NULL AND f.is_own), (
               SELECT string_agg(format('%s has %s: %s%s', o.owner, o.count, o.first,
                                        CASE WHEN o.count > 1 THEN ', ...' END), E'\n'
                                 ORDER BY o.owner)
               FROM (SELECT f.owner::text, count(*), min(f.object) AS first
                     FROM found AS f WHERE NOT f.is_own GROUP BY f.owner) AS o)
    INTO schemas, functions, mine, others
    FROM (SELECT f.schema_name, array_agg(f.function ORDER BY f.place)::text
          FROM found AS f WHERE f.reason IS NULL GROUP BY f.schema_name)
         AS s (schema_name, functions);
    IF mine IS NOT NULL THEN
        RAISE WARNING 'copies of the published function are left' USING DETAIL = mine || '.',
            HINT = 'instaid.audit() has their cures.';
    END IF;
    IF others IS NOT NULL THEN
        RAISE WARNING 'copies of the published function belong to other roles'
            USING DETAIL = others,
            HINT = format('%s Then: CALL instaid_adopt.adopt_shards(%L);',
                          instaid._how_to_be('each of them'), pattern);
    END IF;
END $$;

-- Adopt the copies in a schema, or only try to.  What prevents it is a WARNING.  number is how
-- many schemas were left before: each statement has a shard ID of its own.
CREATE FUNCTION instaid_adopt._try_adopting(
    schema_name text, functions oid[], dry_run boolean, number integer, INOUT shard_ids integer[],
    OUT adopted text, OUT problem text)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard record;
    context text;
    detail text;
    hint text;
BEGIN
    -- what a dry run warns of has not happened
    PERFORM set_config('client_min_messages', CASE WHEN dry_run THEN 'error' ELSE 'warning' END,
                       true);
    shard := instaid_adopt._adopt(schema_name, functions, NULL, NULL, false);
    IF shard.shard_id = ANY (shard_ids) THEN
        RAISE duplicate_object USING
            MESSAGE = format('shard ID %s would be that of another schema', shard.shard_id),
            DETAIL = 'A dry run rolls back each schema, and has tried the other one before.';
    END IF;
    shard_ids := shard_ids || shard.shard_id;
    adopted := format('schema %I %s shard %s, epoch %s', schema_name,
                      CASE WHEN dry_run THEN 'can be' ELSE 'is' END, shard.shard_id,
                      to_char(shard.epoch AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS"+00"'));
    IF dry_run THEN
        RAISE SQLSTATE 'ID001';
    END IF;
EXCEPTION WHEN OTHERS OR assert_failure OR query_canceled THEN
    IF adopted IS NULL THEN
        GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT,
            detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
        -- The function of a copy can RAISE this, too, but must not end the call.
        IF SQLSTATE = '57014' AND context !~ '(?n) at RAISE$' THEN
            RAISE;
        END IF;
        -- only a shard ID that is taken has this SQLSTATE
        IF SQLSTATE = '42710' THEN
            hint := 'To give it another number: ' || instaid_adopt._adopting(
                schema_name, instaid_adopt._free_or_other(NULL, shard_ids, number), NULL, true);
        ELSIF SQLSTATE = '57014' THEN
            hint := 'The function says so: correct it, and try again.';
        END IF;
        problem := format('%I: %s', schema_name, left(SQLERRM, 500));
        RAISE WARNING '%', problem USING
            DETAIL = COALESCE(NULLIF(left(detail, 2000), ''), format('SQLSTATE %s', SQLSTATE)),
            HINT = CASE WHEN hint <> '' THEN hint WHEN SQLSTATE = '55P03'
                        THEN 'Call again when the transactions of now have ended.'
                        ELSE 'Mend the cause, and try again.' END;
    END IF;
END $$;

-- It commits after each schema, because one transaction cannot hold the locks of thousands, and
-- would keep their writers out.  After an interruption, the same call adopts the rest.
-- A procedure with SET could not commit: operators are qualified.
CREATE PROCEDURE instaid_adopt.adopt_shards(pattern text DEFAULT '%',
                                      dry_run boolean DEFAULT false) LANGUAGE plpgsql AS $$
DECLARE
    copies pg_catalog.record;
    last pg_catalog.int4;
    result pg_catalog.record;
    shard_ids pg_catalog.int4[] := '{}'::pg_catalog.int4[];
    problems pg_catalog.text[] := '{}'::pg_catalog.text[];
BEGIN
    PERFORM instaid_adopt._check_version();
    PERFORM instaid._check_no_nulls('adopt_shards', pg_catalog.json_build_object(
        'pattern', pattern, 'dry_run', dry_run));
    SELECT c.* INTO copies FROM instaid_adopt._find_copies(pattern) AS c;
    last := pg_catalog.cardinality(copies.schemas);
    -- inside a transaction block, this fails before anything is adopted
    COMMIT;
    FOR i IN 1 .. last LOOP
        SELECT a.* INTO result FROM instaid_adopt._try_adopting(
            copies.schemas[i], copies.functions[i]::pg_catalog.oid[], dry_run,
            pg_catalog.cardinality(problems), shard_ids) AS a;
        COMMIT;
        shard_ids := result.shard_ids;
        IF result.adopted IS NULL THEN
            problems := pg_catalog.array_append(problems, result.problem);
        ELSE
            RAISE NOTICE '%', result.adopted;
        END IF;
    END LOOP;
    IF problems OPERATOR(pg_catalog.<>) '{}' THEN
        -- an error would look as if all was rolled back
        RAISE WARNING '% of % schemas could not be adopted', pg_catalog.cardinality(problems), last
            USING DETAIL = pg_catalog.left(pg_catalog.array_to_string(problems, '; '), 10000),
            HINT = CASE WHEN dry_run
                             OR pg_catalog.cardinality(problems) OPERATOR(pg_catalog.=) last
                        THEN '' ELSE 'The others are shards, which is committed. ' END
                   OPERATOR(pg_catalog.||)
                   'Each WARNING says what to do. Then call adopt_shards() again. If a shard ID is'
                   ' taken, and this is the schema that should have it, renumber the other one'
                   ' with instaid.renumber_shard().';
    ELSIF last OPERATOR(pg_catalog.=) 0 THEN
        RAISE NOTICE 'no schema LIKE % can be adopted', pg_catalog.quote_literal(pattern);
    END IF;
END $$;
COMMENT ON PROCEDURE instaid_adopt.adopt_shards IS 'adopt each schema LIKE the pattern with '
'copies of the published function that the caller may adopt; commits after each; dry_run rolls '
'back instead';
