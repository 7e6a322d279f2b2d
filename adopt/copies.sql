---- Reading a copy ----

-- Let a function that is about to be called find what its text names without a schema: in its own
-- search_path or its owner's, in its schema and in public.  Whoever can create functions and
-- operators there, or has done so, could have the caller run them: nextval(text) and
-- %(bigint, integer) are better matches than PostgreSQL's own.  So the function gets no
-- search_path: the names of its owner's and of superusers' objects are written out in its text.
CREATE FUNCTION instaid_adopt._qualify_names(function oid) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    main record;
    definition text;
    path text[];
    part record;
BEGIN
    SELECT p.proowner::regrole AS owner, n.nspname, (
               SELECT c FROM unnest(p.proconfig) AS c WHERE c LIKE 'search_path=%') AS own_path, (
               SELECT c FROM pg_db_role_setting AS s CROSS JOIN LATERAL unnest(s.setconfig) AS c
               WHERE s.setrole IN (p.proowner, 0) AND c LIKE 'search_path=%' AND s.setdatabase IN (
                   0, (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()))
               ORDER BY s.setrole = 0, s.setdatabase = 0 LIMIT 1) AS role_path INTO main
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE p.oid = function;
    path := ARRAY(SELECT replace(COALESCE(m.name[1], lower(m.name[2])), '""', '"')
                  FROM regexp_matches(substr(COALESCE(main.own_path, main.role_path), 13),
                                      '"((?:[^"]|"")+)"|([^\s,"]+)', 'g')
                       WITH ORDINALITY AS m (name, place)
                  ORDER BY m.place) || ARRAY[main.nspname, pg_get_userbyid(main.owner), 'public'];
    PERFORM instaid._execute_as(main.owner, format('ALTER FUNCTION %s RESET search_path',
                                                   instaid._signature(function)))
    WHERE main.own_path IS NOT NULL;
    definition := pg_get_functiondef(function);
    FOR part IN
        SELECT DISTINCT ON (o.is_function, o.relname)
               replace(format('%I.%I', n.nspname, o.relname), '\', '\\') AS name, o.relkind,
               regexp_replace(quote_ident(o.relname), '(\W)', '\\\1', 'g') AS pattern,
               CASE WHEN quote_ident(o.relname) LIKE '"%' THEN 'g' ELSE 'gi' END AS flags
        FROM (SELECT false, c.relname, c.relnamespace, c.relowner, c.relkind
              FROM pg_class AS c
              WHERE c.relkind IN ('S', 'r', 'p', 'v') AND c.relpersistence <> 't'
              UNION ALL
              SELECT true, p.proname, p.pronamespace, p.proowner, 'f' FROM pg_proc AS p)
              AS o (is_function, relname, relnamespace, relowner, relkind)
             JOIN pg_namespace AS n ON n.oid = o.relnamespace AND n.nspname = ANY (path)
             JOIN pg_roles AS r ON r.oid = o.relowner
        WHERE strpos(lower(definition), lower(o.relname)) > 0 AND n.nspname <> 'pg_catalog'
          -- a name must not end the dollar quotes
          AND (r.rolsuper OR r.oid = main.owner) AND strpos(n.nspname || o.relname, '$') = 0
        ORDER BY o.is_function, o.relname, array_position(path, n.nspname::text)
    LOOP
        definition := CASE part.relkind
            WHEN 'S' THEN regexp_replace(definition, format('''\s*%s\s*''', part.pattern),
                                         quote_literal(replace(part.name, '\\', '\')), part.flags)
            WHEN 'f' THEN regexp_replace(definition, format('(?<![\w$."])%s(?=\s*\()',
                                                            part.pattern), part.name, part.flags)
            ELSE regexp_replace(definition, format('(\m(?:FROM|JOIN|INSERT\s+INTO|UPDATE)\s+)'
                                                   '%s(?![\w$.])', part.pattern),
                                '\1' || part.name,
                                part.flags || 'i') END;
    END LOOP;
    PERFORM instaid._execute_as(main.owner, definition)
    WHERE definition <> pg_get_functiondef(function);
END $$;

-- The sequences that this transaction has taken values of.
CREATE FUNCTION instaid_adopt._used_sequences() RETURNS oid[]
    LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT COALESCE(array_agg(c.oid), '{}')
            FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation AND c.relkind = 'S'
                 JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database()
            WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation'
              AND l.mode = 'RowExclusiveLock');

-- The last value that this session has taken of a sequence; null if there is none.
CREATE FUNCTION instaid_adopt._session_value(role regrole, sequence oid) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN instaid._execute_as(role, format('SELECT currval(%L)', sequence))::bigint;
EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege THEN
    RETURN NULL;
END $$;

-- Call a copy as its owner, with the values of its default arguments: no function that another
-- role puts beside it is found in its place.
CREATE FUNCTION instaid_adopt._call_copy(function oid, OUT result text)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner regrole;
    needs_names boolean;
    query text;
    said text;
BEGIN
    SELECT p.proowner, EXISTS (SELECT FROM unnest(p.proconfig) AS c WHERE c LIKE 'search_path=%')
    INTO owner, needs_names FROM pg_proc AS p WHERE p.oid = function;
    LOOP
        BEGIN
            PERFORM instaid_adopt._qualify_names(function) WHERE needs_names;
            -- in which a default can be the name of a sequence
            SELECT format('SELECT %I.%I(%s)', n.nspname, p.proname, (
                       SELECT string_agg(format('(%s)::%s', pg_get_function_arg_default(
                                  p.oid, a.place::integer), format_type(a.type, NULL)), ', '
                                  ORDER BY a.place)
                       FROM unnest(COALESCE(p.proallargtypes, p.proargtypes::oid[]),
                                   p.proargmodes) WITH ORDINALITY AS a (type, mode, place)
                       WHERE COALESCE(a.mode, 'i') IN ('i', 'b'))) INTO query
            FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
            WHERE p.oid = function;
            result := instaid._execute_as(owner, query);
            RETURN;
        EXCEPTION WHEN undefined_table OR undefined_function OR undefined_object
                       OR invalid_schema_name THEN
            IF needs_names THEN
                RAISE invalid_parameter_value USING
                    MESSAGE = format('%s names what is not found: %s',
                                     instaid._signature(function), left(SQLERRM, 200)),
                    DETAIL = 'Names without a schema are looked for in its own search_path or its'
                             ' owner''s, its schema and public, among objects of its owner and of'
                             ' superusers.',
                    HINT = 'Correct its text, or write the schemas into it, and try again. To let'
                           ' it return IDs of a new shard: ' || instaid_adopt._replacing(function);
            END IF;
            needs_names := true;
        WHEN deadlock_detected OR lock_not_available OR serialization_failure THEN
            RAISE;
        WHEN OTHERS OR assert_failure THEN
            GET STACKED DIAGNOSTICS said = PG_EXCEPTION_DETAIL;
            RAISE external_routine_exception USING
                MESSAGE = format('%s fails: %s', instaid._signature(function),
                                 left(SQLERRM, 200)),
                DETAIL = concat(format('Its SQLSTATE is %s.', SQLSTATE),
                                ' It says: ' || left(NULLIF(said, ''), 500)),
                HINT = 'Correct the function, and try again. To let it return IDs of a new shard: '
                       || instaid_adopt._replacing(function);
        END;
    END LOOP;
END $$;

-- Call a copy: two IDs, two more with other values of its sequence, and the sequence.  It is the
-- one that the first call locked and the second moved, whatever names it, or else one that was in
-- use before.  nextval() keeps its lock until the transaction ends.
CREATE FUNCTION instaid_adopt._try_copy(function oid, OUT ids bigint[],
                                        OUT sequence regclass, OUT made_at timestamptz)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET timezone = 'UTC' AS $$
DECLARE
    owner CONSTANT regrole := (SELECT p.proowner FROM pg_proc AS p WHERE p.oid = function);
    used oid[] := instaid_adopt._used_sequences();
    first bigint[];
    part record;
BEGIN
    -- its text can mean the time zone of its callers
    PERFORM set_config('timezone', s.reset_val, true) FROM pg_settings AS s
    WHERE s.name = 'TimeZone';
    ids[1] := instaid_adopt._call_copy(function)::bigint;
    made_at := clock_timestamp();
    used := COALESCE((SELECT array_agg(s) FROM unnest(instaid_adopt._used_sequences()) AS s
                      WHERE s <> ALL (used)), used);
    first := ARRAY(SELECT instaid_adopt._session_value(owner, s) FROM unnest(used) AS s);
    ids[2] := instaid_adopt._call_copy(function)::bigint;
    -- if it also has a log with numbers of its own, the one whose low bits are in the IDs, and
    -- that counts for no column
    SELECT u.sequence, c.relowner::regrole AS relowner INTO part
    FROM unnest(used, first) AS u (sequence, first) JOIN pg_class AS c ON c.oid = u.sequence
         CROSS JOIN LATERAL instaid_adopt._session_value(owner, u.sequence) AS l (last)
    WHERE l.last <> u.first
    ORDER BY ((instaid.decode(u.first)).sequence, (instaid.decode(l.last)).sequence)
             = ((instaid.decode(ids[1])).sequence, (instaid.decode(ids[2])).sequence) DESC,
             EXISTS (
        SELECT FROM pg_depend AS d
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = u.sequence
          AND d.classid = 'pg_attrdef'::regclass) LIMIT 1;
    sequence := part.sequence;
    IF sequence IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('%s takes no value of a sequence', instaid._signature(function)),
            DETAIL = format('Two calls returned %s and %s.', COALESCE(ids[1]::text, 'null'),
                            COALESCE(ids[2]::text, 'null')),
            HINT = 'Let its columns default to a new shard: create_shard(), adopt_column().';
    END IF;
    PERFORM instaid._sequence_owner(function, sequence);
    -- a superuser has the rights of all roles
    IF part.relowner <> owner AND (SELECT r.rolsuper FROM pg_roles AS r WHERE r.oid = owner) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('sequence %s belongs to another role', sequence),
            DETAIL = format('Role %s could set it back, and a superuser owns the function %s.',
                            part.relowner, instaid._signature(function)),
            HINT = 'Give both to one owner.';
    END IF;
    -- What is above the low bits of the sequence must not run into the shard ID.  Two calls in a
    -- row, and some rows, do not show it; values whose bits of the shard ID are all 0 or 1 do.
    BEGIN
        -- Citus refuses to alter a sequence that it knows
        PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
        FOR n IN 0 .. 1 LOOP
            PERFORM instaid._execute_as(part.relowner, format(
                'ALTER SEQUENCE %s RESTART %s', sequence, GREATEST(q.seqmin, LEAST(q.seqmax,
                    instaid.make_id(instaid.default_epoch() + interval '2 ms',
                                    n * instaid._max_shard_id(), 0)))))
            FROM pg_sequence AS q WHERE q.seqrelid = sequence;
            ids := ids || instaid_adopt._call_copy(function)::bigint;
        END LOOP;
        RAISE SQLSTATE 'ID001';
    EXCEPTION WHEN SQLSTATE 'ID001' THEN
        IF cardinality(ids) < 4 THEN
            RAISE;
        END IF;
    END;
END $$;

-- The statement that lets a copy return IDs of the shard of its schema, or of a new one: with the
-- number of its IDs, if its text has the published layout.
CREATE FUNCTION instaid_adopt._replacing(function oid) RETURNS text
    LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT format('SELECT instaid_adopt.replace_copy(%L%s);', instaid._signature(function),
                  CASE WHEN p.prosrc !~ '<<\s*23\M'
                            AND NOT EXISTS (SELECT FROM instaid._find_shard(n.nspname))
                       THEN format(', %s /* a number that is free on all your servers */',
                                   instaid._free_shard_id(true)) END)
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE p.oid = function
$$;

-- The times that a function's text has as 12 or 13 digits of milliseconds, 10 of seconds, or a date.
CREATE FUNCTION instaid_adopt._text_epochs(function oid) RETURNS timestamptz[]
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' AS $$
DECLARE
    zone CONSTANT text := (SELECT s.reset_val FROM pg_settings AS s WHERE s.name = 'TimeZone');
    source CONSTANT text := pg_get_functiondef(function);
    epochs timestamptz[] := ARRAY(
        SELECT to_timestamp((m.literal[1]::numeric / u.unit)::double precision)
        FROM regexp_matches(source, '\m(\d{12,13}|\d{10}(?:\.\d+)?)\M', 'g') AS m (literal)
             CROSS JOIN (VALUES (1), (1000)) AS u (unit)
        WHERE m.literal[1] !~ '^\d{12,13}$' OR u.unit = 1000);
    literal text;
BEGIN
    FOR literal IN SELECT m[1] FROM regexp_matches(source, '''(\d{4}-\d\d?-\d\d?[^'']{0,30})''',
                                                   'g') AS m
    LOOP
        BEGIN
            -- a timestamp, or a timestamptz in the time zone of its callers
            epochs := epochs || literal::timestamptz || (literal::timestamp AT TIME ZONE zone);
        EXCEPTION WHEN data_exception THEN
            CONTINUE;
        END;
    END LOOP;
    RETURN epochs;
END $$;

-- The shard ID of an ID that a copy has just made, and its epoch: the one that is passed, one of
-- the function's text, or the default one, if it gives the ID the clock's time.
CREATE FUNCTION instaid_adopt._read_layout(function oid, id bigint, made_at timestamptz,
                                                INOUT epoch timestamptz, OUT shard_id integer)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' SET standard_conforming_strings = on AS $$
DECLARE
    name CONSTANT text := instaid._signature(function);
    epochs CONSTANT timestamptz[] := instaid_adopt._text_epochs(function);
    layout record;
    seen timestamptz;
BEGIN
    IF id IS NULL OR id < 0 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('%s returns %s', name, COALESCE('IDs below 0', 'null')),
            DETAIL = format('It returned %s.' || CASE WHEN id < 0 THEN
                                ' The 34.8 years of its epoch are over, or its clock and its epoch'
                                ' have different units.' ELSE '' END, COALESCE(id::text, 'null')),
            HINT = 'To let it return IDs of a new shard: ' || instaid_adopt._replacing(function);
    END IF;
    -- the time of the ID, read in this layout or another one
    SELECT l.* INTO layout
    FROM (SELECT e, interval '1 s' FROM unnest(epochs) AS e
          UNION ALL SELECT to_timestamp(0), interval '1 s'
          UNION ALL SELECT instaid.default_epoch(), interval '20 ms') AS e (epoch, tolerance)
         CROSS JOIN generate_series(16, 32) AS bits
         CROSS JOIN unnest('{0.001,1}'::numeric[]) AS unit
         CROSS JOIN LATERAL (
        SELECT e.epoch, bits, unit, CASE WHEN (id >> bits) * unit < 5000000000
               THEN e.epoch + (id >> bits) * unit * interval '1 s' END AS issued_at) AS l
    -- a function can use now(), which is the time when the transaction began
    WHERE l.issued_at BETWEEN now() - e.tolerance AND made_at + e.tolerance
    ORDER BY LEAST(abs(extract(epoch FROM l.issued_at - made_at)),
                   abs(extract(epoch FROM l.issued_at - now()))) LIMIT 1;
    IF (layout.bits, layout.unit) <> (23, 0.001) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('IDs of %s have another layout', name),
            DETAIL = format('It returned %s: the time since %s in %s, and %s bits. Instagram''s'
                            ' has milliseconds, and 23 bits.', id, layout.epoch,
                            CASE layout.unit WHEN 1 THEN 'seconds' ELSE 'milliseconds' END,
                            layout.bits),
            HINT = 'To let it return IDs of a new shard: ' || instaid_adopt._replacing(function);
    END IF;
    seen := date_trunc('milliseconds', made_at) - (id >> 23) * interval '1 ms';
    IF epoch <> COALESCE(layout.epoch, CASE WHEN abs(extract(epoch FROM epoch - seen)) < 1
                                            THEN epoch END, 'infinity')
       OR COALESCE(epoch, layout.epoch) IS NULL THEN
        IF extract(milliseconds FROM seen)::integer % 1000 < 20 THEN
            seen := date_trunc('seconds', seen);
        END IF;
        seen := COALESCE(layout.epoch, seen);
        RAISE invalid_parameter_value USING MESSAGE = format('the epoch of %s is not %s', name,
                             COALESCE(epoch::text, 'found in its text')),
            DETAIL = format('It returned %s. If its layout is Instagram''s, its epoch is about'
                            ' %s.', id, seen),
            HINT = format('If it is: SELECT instaid_adopt.adopt_shard(%L, epoch => %L); If not:'
                          ' %s', (parse_ident(name, false))[1], seen,
                          instaid_adopt._replacing(function));
    END IF;
    epoch := COALESCE(epoch, layout.epoch);
    shard_id := instaid.extract_shard_id(id);
END $$;
