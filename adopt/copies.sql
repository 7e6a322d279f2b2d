---- Reading a copy ----

-- Where a copy that names no schemas finds its names: in its own search_path, or its owner's, its
-- schema and, if that is not enough, public.  Refuse schemas where another role can put, or has
-- put, functions, operators and casts that are called in place of PostgreSQL's: nextval(text) and
-- %(bigint, integer) are better matches.
CREATE FUNCTION instaid_adopt._search_path_of(function oid, own_path text, with_public boolean)
    RETURNS text LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    me CONSTANT oid := quote_ident(current_user)::regrole;
    path text[];
    others text;
    cures text;
BEGIN
    SELECT ARRAY(SELECT CASE m.name WHEN '$user' THEN current_user ELSE m.name END
                 FROM (SELECT replace(COALESCE(m.name[1], lower(m.name[2])), '""', '"'), m.place
                       FROM regexp_matches(substr(COALESCE(own_path, (
                                SELECT c FROM pg_db_role_setting AS s
                                     CROSS JOIN LATERAL unnest(s.setconfig) AS c
                                WHERE s.setrole IN (p.proowner, 0) AND c LIKE 'search_path=%'
                                  AND s.setdatabase IN (0, (
                                          SELECT d.oid FROM pg_database AS d
                                          WHERE d.datname = current_database()))
                                ORDER BY s.setrole = 0, s.setdatabase = 0 LIMIT 1)), 13),
                                '"((?:[^"]|"")+)"|([^\s,"]+)', 'g') WITH ORDINALITY
                            AS m (name, place)) AS m (name, place) ORDER BY m.place)
           || CASE WHEN own_path IS NULL THEN ARRAY[n.nspname, current_user] END
           || CASE WHEN with_public THEN ARRAY['public'] END
    INTO path FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.oid = function;
    WITH place AS (
        SELECT n.* FROM pg_namespace AS n
        WHERE n.nspname = ANY (path) AND n.nspname <> 'pg_catalog'),
    thing (class, oid, owner, schema) AS (
        SELECT 'pg_proc'::regclass, p.oid, p.proowner, p.pronamespace FROM pg_proc AS p
        UNION ALL
        SELECT 'pg_operator'::regclass, o.oid, o.oprowner, o.oprnamespace FROM pg_operator AS o
        UNION ALL
        -- but for the row types of tables, and arrays
        SELECT 'pg_type'::regclass, t.oid, t.typowner, t.typnamespace
        FROM pg_type AS t LEFT JOIN pg_class AS c ON c.oid = t.typrelid
        WHERE t.typelem = 0 AND COALESCE(c.relkind, 'c') = 'c'
        UNION ALL
        -- between types that the names can mean
        SELECT 'pg_cast'::regclass, c.oid, p.proowner, s.typnamespace
        FROM pg_cast AS c JOIN pg_proc AS p ON p.oid = c.castfunc
             JOIN pg_type AS s ON s.oid = c.castsource JOIN pg_type AS t ON t.oid = c.casttarget
        WHERE t.typnamespace IN (s.typnamespace, 'pg_catalog'::regnamespace)),
    -- few roles own thousands of things
    owner AS MATERIALIZED (SELECT DISTINCT t.owner FROM thing AS t)
    SELECT string_agg(x.what, '; ' ORDER BY x.what), string_agg(DISTINCT x.cure, ' ')
    INTO others, cures
    FROM (SELECT format('schema %I belongs to %s', s.nspname, instaid._ruler(s.nspowner)), NULL
          FROM place AS s WHERE NOT instaid._can_trust(me, s.nspowner)
          UNION ALL
          SELECT format('%s can create objects in schema %I', o.names, s.nspname),
                 format('REVOKE CREATE ON SCHEMA %I FROM %s;', s.nspname, o.names)
          FROM place AS s CROSS JOIN LATERAL instaid._others_with('CREATE', s.nspacl, s.nspowner,
                                                                  me) AS o (names)
          WHERE o.names IS NOT NULL
          UNION ALL
          (SELECT format('%s belongs to %I', pg_describe_object(t.class, t.oid, 0),
                         pg_get_userbyid(t.owner)), NULL
           FROM place AS s JOIN thing AS t ON t.schema = s.oid
                                           OR t.class = 'pg_cast'::regclass
                                              AND t.schema = 'pg_catalog'::regnamespace
           WHERE t.owner IN (SELECT o.owner FROM owner AS o
                             WHERE NOT instaid._can_trust(me, o.owner))
           ORDER BY 1 LIMIT 20)) AS x (what, cure);
    IF others IS NOT NULL THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('other roles could let %s call their code',
                             instaid._signature(function)),
            DETAIL = format('Its names have no schema, and %s.', others),
            HINT = concat(cures || ' ', 'Drop what other roles have put there, or give it to a'
                          ' superuser. Or write the schemas into the text of the function, and'
                          ' RESET its search_path.');
    END IF;
    RETURN (SELECT string_agg(quote_ident(s.name), ', ' ORDER BY s.place)
            FROM (SELECT p.name, min(p.place) FROM unnest(path) WITH ORDINALITY AS p (name, place)
                  WHERE to_regnamespace(quote_ident(p.name)) IS NOT NULL
                  GROUP BY p.name) AS s (name, place)) || ', pg_temp';
END $$;

-- The sequences that this transaction has taken values of.
CREATE FUNCTION instaid_adopt._used_sequences() RETURNS oid[]
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN ARRAY(SELECT c.oid
                 FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation AND c.relkind = 'S'
                      JOIN pg_database AS d ON d.oid = l.database
                                            AND d.datname = current_database()
                 WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation'
                   AND l.mode = 'RowExclusiveLock');
END $$;

-- The last value that this session has taken of a sequence; null if there is none.
CREATE FUNCTION instaid_adopt._session_value(sequence oid) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN currval(sequence);
EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege THEN
    RETURN NULL;
END $$;

-- Call a copy of the caller's, with the values of its default arguments, first as if all its names
-- had a schema.
CREATE FUNCTION instaid_adopt._call_copy(function oid, OUT result text)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    path text := 'pg_catalog, pg_temp';
    tries integer := 0;
    own_path CONSTANT text := (
        SELECT c FROM pg_proc AS p CROSS JOIN LATERAL unnest(p.proconfig) AS c
        WHERE p.oid = function AND c LIKE 'search_path=%');
    query text;
    said text;
BEGIN
    PERFORM instaid._check_owner(p.proowner, 'function', instaid._signature(p.oid))
    FROM pg_proc AS p WHERE p.oid = function;
    -- A SECURITY DEFINER function can be the caller.  Temporary tables are found by any path.
    IF pg_my_temp_schema() > 0 AND (
           EXISTS (SELECT FROM pg_class AS c WHERE c.relnamespace = pg_my_temp_schema()
                                               AND pg_get_userbyid(c.relowner) <> current_user)
           OR EXISTS (SELECT FROM pg_type AS t WHERE t.typnamespace = pg_my_temp_schema()
                                            AND pg_get_userbyid(t.typowner) <> current_user)) THEN
        RAISE insufficient_privilege USING
            MESSAGE = 'another role has temporary objects in this session',
            DETAIL = format('%s could use them.', instaid._signature(function)),
            HINT = 'DISCARD TEMP, or connect again.';
    END IF;
    IF own_path IS NOT NULL THEN
        path := instaid_adopt._search_path_of(function, own_path, false);
        tries := 2;
    END IF;
    LOOP
        BEGIN
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
            PERFORM set_config('search_path', path, true);
            EXECUTE query INTO result;
            -- also after a SET in the function, which lasts
            PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
                    pg_catalog.set_config('standard_conforming_strings', 'on', true),
                    pg_catalog.set_config('quote_all_identifiers', 'off', true);
            RETURN;
        EXCEPTION WHEN undefined_table OR undefined_function OR undefined_object
                       OR invalid_schema_name THEN
            tries := tries + 1;
            IF tries > 2 THEN
                RAISE invalid_parameter_value USING
                    MESSAGE = format('%s names what is not found: %s',
                                     instaid._signature(function), left(SQLERRM, 200)),
                    DETAIL = format('Names without a schema are looked for in %s.', path),
                    HINT = 'Correct its text, or write the schemas into it, and try again. To let'
                           ' it return IDs of a new shard: ' || instaid_adopt._replacing(function);
            END IF;
            path := instaid_adopt._search_path_of(function, NULL, tries = 2);
        WHEN deadlock_detected OR lock_not_available OR serialization_failure THEN
            RAISE;
        WHEN OTHERS OR assert_failure THEN
            GET STACKED DIAGNOSTICS said = PG_EXCEPTION_DETAIL;
            RAISE external_routine_exception USING
                MESSAGE = format('a call of %s fails: %s', instaid._signature(function),
                                 left(SQLERRM, 200)),
                DETAIL = concat(format('Its SQLSTATE is %s.', SQLSTATE),
                                ' It says: ' || left(NULLIF(said, ''), 500)),
                HINT = COALESCE(
                    'It depends on ' || instaid_adopt._session_reads(function) || ': write what'
                    ' clients have there into its text, and try again.',
                    'Correct the function, and try again. To let it return IDs of a new shard: '
                    || instaid_adopt._replacing(function));
        END;
    END LOOP;
END $$;

-- Call a copy, and return the sequences that this took values of.
CREATE FUNCTION instaid_adopt._sequences_of(function oid, OUT sequences oid[])
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    used CONSTANT oid[] := instaid_adopt._used_sequences();
BEGIN
    PERFORM instaid_adopt._call_copy(function);
    sequences := ARRAY(SELECT s FROM unnest(instaid_adopt._used_sequences()) AS s
                       WHERE s <> ALL (used));
END $$;

-- Call a copy: two IDs, two more with other values of its sequence, and the sequence.  It is the
-- one that the first call locked and the second moved, whatever names it, or else one that was in
-- use before.  nextval() keeps its lock until the transaction ends.
CREATE FUNCTION instaid_adopt._try_copy(function oid, OUT ids bigint[],
                                        OUT sequence regclass, OUT made_at timestamptz)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET timezone = 'UTC' AS $$
DECLARE
    used oid[] := instaid_adopt._used_sequences();
    first bigint[];
BEGIN
    -- its text can mean the time zone of its callers
    SET LOCAL timezone TO DEFAULT;
    ids[1] := instaid_adopt._call_copy(function)::bigint;
    made_at := clock_timestamp();
    used := COALESCE((SELECT array_agg(s) FROM unnest(instaid_adopt._used_sequences()) AS s
                      WHERE s <> ALL (used)), used);
    first := ARRAY(SELECT instaid_adopt._session_value(s) FROM unnest(used) AS s);
    ids[2] := instaid_adopt._call_copy(function)::bigint;
    -- if it also has a log with numbers of its own, the one whose low bits are in the IDs, and
    -- that counts for no column
    SELECT u.sequence INTO sequence
    FROM unnest(used, first) AS u (sequence, first)
         CROSS JOIN LATERAL instaid_adopt._session_value(u.sequence) AS l (last)
    WHERE l.last <> u.first
    ORDER BY ((instaid.decode(u.first)).sequence, (instaid.decode(l.last)).sequence)
             = ((instaid.decode(ids[1])).sequence, (instaid.decode(ids[2])).sequence) DESC,
             EXISTS (
        SELECT FROM pg_depend AS d
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = u.sequence
          AND d.classid = 'pg_attrdef'::regclass) LIMIT 1;
    IF sequence IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('%s takes no value of a sequence', instaid._signature(function)),
            DETAIL = format('Two calls returned %s and %s.', COALESCE(ids[1]::text, 'null'),
                            COALESCE(ids[2]::text, 'null')),
            HINT = 'Let its columns default to a new shard: create_shard(), adopt_column().';
    END IF;
    PERFORM instaid._check_sequence(function, sequence, true);
    -- What is above the low bits of the sequence must not run into the shard ID.  Two calls in a
    -- row, and some rows, do not show it; values whose bits of the shard ID are all 0 or 1 do.
    BEGIN
        -- Citus refuses to alter a sequence that it knows
        PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
        -- what follows is rolled back with it
        EXECUTE format('ALTER SEQUENCE %s RESTART', sequence);
        FOR n IN 0 .. 1 LOOP
            PERFORM setval(sequence, GREATEST(q.seqmin, LEAST(q.seqmax, instaid.make_id(
                               instaid.default_epoch() + interval '2 ms',
                               n * instaid._max_shard_id(), 0))), false)
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

-- Other functions of its schema and owner that can be called, and whose text has the published
-- layout.  _copies() would read all functions of the caller for each schema that is refused, and
-- SQL would plan this anew.
CREATE FUNCTION instaid_adopt._published_beside(function oid) RETURNS SETOF oid
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    SELECT o.oid
    FROM pg_proc AS p JOIN pg_proc AS o ON o.pronamespace = p.pronamespace
                                       AND o.proowner = p.proowner AND o.oid <> p.oid
    WHERE p.oid = function AND o.prokind = 'f' AND NOT o.proretset
      AND o.prorettype IN ('bigint'::regtype, 'text'::regtype, 'varchar'::regtype)
      AND o.pronargs = o.pronargdefaults AND o.prosrc ~ '<<\s*23\M' AND o.prosrc ~* 'nextval'
    ORDER BY o.oid;
END $$;

-- The statement that lets a copy return IDs of the shard of its schema, or of a new one: with the
-- number of its IDs, if its text has the published layout, and its IDs may have it.  Otherwise
-- another copy that has it comes first, since the first one gives the shard its number.
CREATE FUNCTION instaid_adopt._replacing(function oid, may_know_number boolean DEFAULT true)
    RETURNS text
    LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    AS $$
    SELECT format('%sSELECT instaid_adopt.replace_copy(%L%s);', b.command,
                  instaid._signature(function), CASE WHEN r.needs_number AND b.command IS NULL
                       THEN format(', %s /* a number that is free on all your servers */',
                                   instaid._free_shard_id(true)) END)
    FROM (SELECT NOT (may_know_number AND p.prosrc ~ '<<\s*23\M')
                 AND NOT EXISTS (SELECT FROM instaid._find_shard(n.nspname))
          FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
          WHERE p.oid = function) AS r (needs_number)
         LEFT JOIN LATERAL (
        SELECT format('SELECT instaid_adopt.replace_copy(%L) /* first, since it keeps its number'
                      ' */; ', instaid._signature(o))
        FROM instaid_adopt._published_beside(function) AS o LIMIT 1) AS b (command)
         ON r.needs_number
$$;

-- The call of adopt_shard() with these arguments: what was passed is in it, too, so that the HINTs
-- of one call after the other come to an end.
CREATE FUNCTION instaid_adopt._adopting(schema_name text, shard_id integer, epoch timestamptz,
                                        renumber boolean) RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC'
    RETURN concat(format('SELECT instaid_adopt.adopt_shard(%L', schema_name), ', ' || shard_id,
                  ', epoch => ' || quote_literal(epoch),
                  CASE WHEN renumber THEN ', renumber => true' END, ');');

-- The times that a function's text has as 12 or 13 digits of milliseconds, 10 of seconds, or a
-- date.
CREATE FUNCTION instaid_adopt._text_epochs(function oid) RETURNS timestamptz[]
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' AS $$
DECLARE
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
            epochs := epochs || literal::timestamptz || (literal::timestamp AT TIME ZONE (
                SELECT s.reset_val FROM pg_settings AS s WHERE s.name = 'TimeZone'));
        EXCEPTION WHEN data_exception THEN
            CONTINUE;
        END;
    END LOOP;
    RETURN epochs;
END $$;

-- The shard ID of an ID that a copy has just made, and its epoch: the one that is passed, one of
-- the function's text, or the default one, if it gives the ID the clock's time.  HINTs repeat the
-- number and renumber that are passed.
CREATE FUNCTION instaid_adopt._read_layout(
    function oid, id bigint, made_at timestamptz, INOUT epoch timestamptz,
    number integer DEFAULT NULL, renumber boolean DEFAULT false, OUT shard_id integer)
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
            MESSAGE = format(CASE WHEN id < 0 THEN '%s returns IDs below 0'
                                  ELSE '%s returns null in place of IDs' END, name),
            DETAIL = format('It returned %s.' || CASE WHEN id < 0 THEN
                                ' The 34.8 years of its epoch are over, its clock and its epoch'
                                ' have different units, or parentheses around its shifts are'
                                ' missing.' ELSE '' END, COALESCE(id::text, 'null')),
            HINT = 'To let it return IDs of a new shard: '
                   || instaid_adopt._replacing(function, id IS NULL);
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
            HINT = 'To let it return IDs of a new shard: '
                   || instaid_adopt._replacing(function, false);
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
            HINT = format('If it is: %s If not: %s', instaid_adopt._adopting(
                              (parse_ident(name, false))[1], number, seen, renumber),
                          instaid_adopt._replacing(function, false));
    END IF;
    epoch := COALESCE(epoch, layout.epoch);
    shard_id := instaid.extract_shard_id(id);
END $$;
