/* instaid_adopt--1.0.sql, which "make script" assembles: do not edit it */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION instaid_adopt" to load this file. \quit

-- Not by the control file's "schema": it must be new, be dropped with the extension, and belong to
-- a superuser, since its owner could add functions that are found in place of ours.
DO $$
BEGIN
    IF to_regnamespace('instaid_adopt') IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'schema "instaid_adopt" already exists',
            HINT = 'Run nothing in it. Rename or drop it, and create the extension again.';
    END IF;
    EXECUTE format('CREATE SCHEMA instaid_adopt AUTHORIZATION %s',
                   (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'pg_catalog'));
END $$;
COMMENT ON SCHEMA instaid_adopt IS 'functions that give IDs of instaid to what exists';

---- What the extension does in its own way ----

-- Refuse to work with another version of instaid, whose private functions can be others.  Bodies
-- that call those are texts: a dependency would keep an update of instaid from dropping them.
CREATE FUNCTION instaid_adopt._check_version() RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    there CONSTANT text := (SELECT e.extversion FROM pg_extension AS e
                            WHERE e.extname = 'instaid');
BEGIN
    IF there IS DISTINCT FROM '1.0' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('instaid_adopt 1.0 does not work with instaid %s', there),
            HINT = 'DROP EXTENSION instaid_adopt, and create it again. It holds nothing.';
    END IF;
END $$;

-- Replace a next_id() that is adopted, which keeps OID, owner, rights and the name of its result.
-- The value of its sequence, and where that starts, are no positions: people set it to an ID.
-- Calls that have ended can have rounded up to a millisecond ahead of the clock.
CREATE FUNCTION instaid_adopt._replace_next_id(
    schema_name text, shard_id integer, epoch timestamptz, adopted oid, sequence regclass,
    above bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    commands text;
BEGIN
    PERFORM instaid._alter_sequence(sequence, 'AS bigint INCREMENT BY 1 NO MINVALUE NO MAXVALUE'
                                              ' START WITH 1 RESTART NO CYCLE');
    PERFORM instaid.advance_past(sequence, GREATEST(above, instaid.max_id(
        clock_timestamp() + interval '1 ms', epoch)), epoch);
    commands := instaid._declaration_commands(
        schema_name, shard_id, epoch, sequence::text, true, pg_get_function_arguments(p.oid),
        CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' ELSE '' END)
    FROM pg_proc AS p WHERE p.oid = adopted;
    IF commands IS NULL THEN
        RAISE undefined_function USING
            MESSAGE = format('function %I.next_id() was dropped meanwhile', schema_name),
            HINT = 'Call adopt_shard() again.';
    END IF;
    EXECUTE commands;
END $$;

-- The command that puts the next_id() of a shard in the place of this function.
CREATE FUNCTION instaid_adopt._next_id_command(schema_name text, function oid, sequence regclass)
    RETURNS text LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('CREATE OR REPLACE FUNCTION %I.next_id(%s) RETURNS bigint LANGUAGE instaid'
                  ' STRICT VOLATILE PARALLEL UNSAFE COST 1 %s'
                  ' AS ''as next_ids(integer, regclass)''',
                  schema_name, pg_get_function_arguments(p.oid),
                  CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END)
    FROM pg_proc AS p WHERE p.oid = function
$$;

-- Wait for all who have used the sequence of a shard.  If it stands more than a day ahead of the
-- clock, or past all ticks, it was set to an ID, which is no position.
CREATE FUNCTION instaid_adopt._hold_position(schema_name text, sequence regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._lock_sequence(sequence);
    PERFORM instaid._alter_sequence(sequence, 'START WITH 1 RESTART')
    FROM instaid._sequence_state(sequence) AS s
    WHERE s.last_value > 0
      AND COALESCE(s.issued_at, 'infinity') > clock_timestamp() + interval '1 day';
END $$;

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

---- What the text and the rows of a copy tell ----

-- What a function, or one that it calls, reads of the session, and where; null if nothing.
-- Clients can have another number there than the caller.  Comments count, too: a shard ID that is
-- passed settles it.
CREATE FUNCTION instaid_adopt._session_reads(function oid) RETURNS text
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
    WITH RECURSIVE source AS NOT MATERIALIZED (
        SELECT p.oid, p.proowner, n.nspname, p.proconfig::text AS settings,
               COALESCE(pg_get_function_sqlbody(p.oid), p.prosrc) AS text
        FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE octet_length(p.prosrc) < 100000),
    called (oid) AS (
        SELECT function
        UNION
        SELECT f.oid
        FROM called AS c JOIN source AS p ON p.oid = c.oid
             -- the names before parentheses
             CROSS JOIN LATERAL (
                 SELECT DISTINCT lower(r[1]), lower(r[2])
                 FROM regexp_matches(p.text, '(?:"?([\w$]+)"?\s*\.\s*)?"?([\w$]+)"?\s*\(', 'g')
                      AS r) AS m (schema, name)
             JOIN pg_proc AS f ON f.proname = m.name
             JOIN pg_namespace AS n ON n.oid = f.pronamespace
        WHERE n.nspname <> 'pg_catalog'
          AND (n.nspname = m.schema
               -- no others are found
               OR m.schema IS NULL AND instaid._can_trust(p.proowner, f.proowner) AND (
                   n.nspname IN (p.nspname, 'public', current_user)
                   OR strpos(p.settings, n.nspname) > 0)))
    SELECT format('%s in %s', lower(r.names[1]), instaid._signature(p.oid))
    FROM called AS c JOIN source AS p ON p.oid = c.oid
         CROSS JOIN LATERAL regexp_match(p.text, $re$(?xi)
             \m(current_setting | pg_settings | current_user | session_user | current_role
                | current_schemas? | inet_(?:client|server)_(?:addr|port) | pg_backend_pid
                | pg_stat_activity | pg_my_temp_schema)\M
             | '\s* (show) \s
             # user is a word of its own only as a value
             | (?:[=(,|] | \m(?:select|return)\M) \s* (user) \s* (?:[,);|] | :: | $)$re$) AS m
         CROSS JOIN LATERAL (SELECT array_remove(m, NULL)) AS r (names)
    WHERE m IS NOT NULL ORDER BY c.oid = function DESC, 1 LIMIT 1);
END $$;

-- The caller's functions that name one of these in their text, or name one that does.  PL/pgSQL
-- keeps the plan, which SQL would make anew for each schema; so also below.
CREATE FUNCTION instaid_adopt._callers(functions oid[]) RETURNS SETOF oid
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE own AS MATERIALIZED (
        SELECT p.oid, p.pronamespace AS schema, p.prosrc AS text FROM pg_proc AS p
        WHERE p.proowner = (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user)
          -- the hundreds of our functions, or PostgreSQL's, are none
          AND p.pronamespace::regnamespace::text NOT IN (
              'instaid', 'instaid_adopt', 'pg_catalog', 'information_schema')
          AND octet_length(p.prosrc) < 100000),
    caller (oid) AS (
        SELECT f FROM unnest(functions) AS f
        UNION
        SELECT p.oid
        FROM caller AS c JOIN pg_proc AS f ON f.oid = c.oid
             JOIN pg_namespace AS n ON n.oid = f.pronamespace
             CROSS JOIN LATERAL (SELECT regexp_replace(n.nspname, '(\W)', '\\\1', 'g'),
                                        regexp_replace(f.proname, '(\W)', '\\\1', 'g'))
                                AS r (schema, name)
             CROSS JOIN LATERAL (
                 SELECT d.objid FROM pg_depend AS d
                 WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = f.oid
                   AND d.classid = 'pg_proc'::regclass
                 UNION ALL
                 SELECT o.oid FROM own AS o
                 -- what is cheap, first
                 WHERE (o.schema = n.oid OR n.nspname = 'public' OR strpos(o.text, n.nspname) > 0)
                   AND strpos(lower(o.text), lower(f.proname)) > 0
                   AND o.text ~* CASE
                       WHEN o.schema = n.oid OR n.nspname = 'public'
                       THEN format('(?:%s"?\s*\.\s*"?|(?<![\w.$"])"?)%s"?\s*\(', r.schema, r.name)
                       ELSE format('\m%s"?\s*\.\s*"?%s"?\s*\(', r.schema, r.name) END)
                 AS u (oid)
             JOIN pg_proc AS p ON p.oid = u.oid
        WHERE pg_get_userbyid(p.proowner) = current_user)
    SELECT c.oid FROM caller AS c WHERE c.oid <> ALL (functions);
END $$;

-- The columns that hold IDs of these functions: as their default or that of their domain says, or
-- without one, if they are unique, and a trigger or else clients can fill them; these come last.
CREATE FUNCTION instaid_adopt._columns_of(schema oid, functions oid[]) RETURNS jsonb
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    RETURN (
    WITH used AS MATERIALIZED (
        SELECT d.classid, d.objid
        FROM (SELECT f FROM unnest(functions) AS f
              UNION SELECT c FROM instaid_adopt._callers(functions) AS c) AS f (oid)
             JOIN pg_depend AS d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = f.oid),
    by_default AS (
        SELECT a.adrelid, a.adnum FROM used AS u JOIN pg_attrdef AS a ON a.oid = u.objid
        WHERE u.classid = 'pg_attrdef'::regclass
        UNION
        SELECT a.attrelid, a.attnum
        FROM used AS u JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass
                            AND d.refobjid = u.objid AND d.classid = 'pg_class'::regclass
             JOIN pg_attribute AS a ON a.attrelid = d.objid AND a.attnum = d.objsubid
        WHERE u.classid = 'pg_type'::regclass AND NOT a.atthasdef),
    by_trigger AS (
        SELECT t.tgrelid FROM used AS u JOIN pg_trigger AS t ON t.oid = u.objid
        WHERE u.classid = 'pg_trigger'::regclass AND t.tgparentid = 0)
    SELECT COALESCE(jsonb_agg(jsonb_build_object(
               'relid', k.relid, 'relation', c.oid::regclass, 'attname', t.attname,
               'filled_by', k.filled_by,
               -- a domain has the output function of its base type
               'has_ids', c.relkind <> 'v' AND y.typoutput IN (
                   'int8out'::regproc, COALESCE(to_regproc('instaid.id_out'), 'int8out')),
               -- to read a child runs code of its owner
               'is_ours', pg_get_userbyid(c.relowner) = current_user
                          AND instaid._can_name(c.relnamespace)
                          AND NOT EXISTS (SELECT FROM instaid._descendants(c.oid) AS h
                                          WHERE h.owner <> c.relowner))
               ORDER BY k.filled_by DESC, k.relid, k.attnum), '[]')
    FROM (SELECT b.adrelid, b.adnum, 'default' FROM by_default AS b
          UNION ALL
          SELECT c.oid, a.attnum, CASE WHEN c.oid IN (SELECT t.tgrelid FROM by_trigger AS t)
                                       THEN 'trigger' ELSE 'clients' END
          FROM pg_class AS c JOIN pg_index AS x ON x.indrelid = c.oid
               JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = x.indkey[0]
          WHERE c.oid IN (SELECT t.tgrelid FROM by_trigger AS t
                          UNION SELECT d.objid FROM pg_depend AS d
                          WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = schema
                            AND d.classid = 'pg_class'::regclass)
            AND pg_get_userbyid(c.relowner) = current_user AND c.relkind IN ('r', 'p')
            AND NOT c.relispartition AND NOT c.relforcerowsecurity
            AND x.indisunique AND x.indisvalid AND x.indnkeyatts = 1 AND x.indpred IS NULL
            AND a.atttypid IN ('bigint'::regtype, COALESCE(to_regtype('instaid.id'), 'bigint'))
            AND NOT a.atthasdef AND a.attidentity = ''
            AND (c.oid, a.attnum) NOT IN (SELECT b.adrelid, b.adnum FROM by_default AS b)
            -- it has the IDs of another table
            AND NOT EXISTS (SELECT FROM pg_constraint AS f WHERE f.conrelid = c.oid
                            AND f.contype = 'f' AND a.attnum = ANY (f.conkey)))
         AS k (relid, attnum, filled_by)
         JOIN pg_class AS c ON c.oid = k.relid
         JOIN pg_attribute AS t ON t.attrelid = k.relid AND t.attnum = k.attnum
         JOIN pg_type AS y ON y.oid = t.atttypid
    WHERE c.relkind IN ('r', 'p', 'v') AND c.relpersistence <> 't');
END $$;

-- The largest ID, and the shard IDs of the newest rows, in columns that triggers fill; if there
-- are none, in those that clients fill, which can hold other numbers, too: only if the rows of a
-- column name one shard.  Without an epoch, whatever the time of the IDs is.
CREATE FUNCTION instaid_adopt._look_at_rows(
    columns jsonb, epoch timestamptz, OUT largest bigint, OUT place text, OUT shard_ids integer[],
    OUT filled_by text)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET row_security = off AS $$
DECLARE
    part record;
    last_id bigint;
    named integer[];
BEGIN
    shard_ids := '{}';
    FOR part IN
        SELECT k.* FROM jsonb_to_recordset(columns)
                        AS k (relation text, attname text, filled_by text, is_ours boolean)
        WHERE k.filled_by <> 'default' AND k.is_ours
    LOOP
        EXIT WHEN filled_by <> part.filled_by;
        EXECUTE format('SELECT max(r.id), array_agg(DISTINCT instaid.extract_shard_id(r.id))'
                       ' FROM (SELECT %1$I::bigint AS id FROM %2$s'
                       ' WHERE %1$I BETWEEN %3$s AND %4$s ORDER BY %1$I DESC LIMIT 5000) AS r',
                       part.attname, part.relation,
                       instaid.min_id(COALESCE(epoch, instaid.default_epoch()) + interval '1 day',
                                      COALESCE(epoch, instaid.default_epoch())),
                       CASE WHEN epoch IS NULL THEN 9223372036854775807
                            ELSE instaid.max_id(clock_timestamp() + interval '1 day', epoch) END)
        INTO last_id, named;
        CONTINUE WHEN last_id IS NULL OR part.filled_by = 'clients' AND cardinality(named) > 1;
        filled_by := part.filled_by;
        shard_ids := shard_ids || named;
        IF largest IS NULL OR last_id > largest THEN
            largest := last_id;
            place := format('%s.%I', part.relation, part.attname);
        END IF;
    END LOOP;
END $$;

-- The shard ID that all of these rows name; null if there are none, or several.
CREATE FUNCTION instaid_adopt._number_of_rows(shard_ids integer[]) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT min(s) FROM unnest(shard_ids) AS s HAVING min(s) = max(s));

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

---- Replacing a copy ----

-- An epoch with which the IDs of today are above this one.
CREATE FUNCTION instaid_adopt._epoch_above(id bigint) RETURNS timestamptz
    LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    SET timezone = 'UTC' AS $$
    SELECT date_trunc('year', clock_timestamp() - interval '1 day'
                              - (instaid.extract_timestamp(id) - instaid.default_epoch()))
$$;

-- The shard ID and the epoch of a copy in the published layout, from the ID that it has just
-- returned, or else from the newest row and the shard IDs of all, if its text has the shift; nulls
-- if they are not known.
CREATE FUNCTION instaid_adopt._known_layout(
    function oid, id bigint, made_at timestamptz, newest bigint, shard_ids integer[],
    OUT shard_id integer, OUT epoch timestamptz)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    number_of_rows CONSTANT integer := instaid_adopt._number_of_rows(shard_ids);
BEGIN
    IF id IS NOT NULL THEN
        BEGIN
            SELECT l.shard_id, l.epoch INTO shard_id, epoch
            FROM instaid_adopt._read_layout(function, id, made_at, NULL) AS l;
        EXCEPTION WHEN invalid_parameter_value THEN
            RETURN;  -- another layout
        END;
        IF instaid_adopt._session_reads(function) IS NOT NULL THEN
            shard_id := number_of_rows;
        ELSIF shard_id <> ANY (shard_ids) THEN
            shard_id := NULL;
        END IF;
    ELSIF EXISTS (SELECT FROM pg_proc AS p WHERE p.oid = function AND p.prosrc ~ '<<\s*23\M') THEN
        SELECT min(e), number_of_rows INTO epoch, shard_id
        FROM unnest(instaid_adopt._text_epochs(function)) AS e
        WHERE e BETWEEN '1990-01-01 UTC' AND clock_timestamp()
          AND e + (newest >> 23) * interval '1 ms' < clock_timestamp() + interval '1 day'
        HAVING min(e) = max(e);
    END IF;
END $$;

-- Make the schema of a copy a shard, with IDs above this one.  A copy that is in the way of the
-- shard's functions gets another name.
CREATE FUNCTION instaid_adopt._create_shard_beside(
    copy oid, shard_id integer, epoch timestamptz, largest bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' AS $$
DECLARE
    main record;
BEGIN
    SELECT n.nspname, p.proname, p.pronargs,
           p.proname IN ('next_id', 'next_ids') AS is_in_the_way INTO main
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE p.oid = copy;
    epoch := COALESCE(epoch, CASE
        WHEN (largest < instaid.min_id(clock_timestamp())) IS NOT FALSE
        THEN instaid.default_epoch() ELSE instaid_adopt._epoch_above(largest) END);
    IF main.is_in_the_way THEN
        EXECUTE format('ALTER FUNCTION %s RENAME TO old_%s', instaid._signature(copy),
                       main.proname);
    END IF;
    PERFORM instaid.create_shard(
        main.nspname, shard_id, epoch,
        CASE WHEN to_regclass(quote_ident(main.nspname) || '.table_id_seq') IS NULL
             THEN 'table_id_seq' ELSE 'shard_id_seq' END);
    -- next_id(text) and the like can stand beside the shard's
    IF main.is_in_the_way AND main.pronargs > 0 THEN
        EXECUTE format('ALTER FUNCTION %s RENAME TO %s', instaid._signature(copy), main.proname);
    END IF;
END $$;

-- Locks of tables come first, as in _adopt().
CREATE FUNCTION instaid_adopt.replace_copy(
    copy regprocedure, shard_id integer DEFAULT NULL, epoch timestamptz DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' SET row_security = off
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    main record;
    shard record;
    columns jsonb;
    taken record;
    rows record;
    known record;
    beside record;
    used CONSTANT oid[] := instaid_adopt._used_sequences();
    sequences oid[];  -- those of the copy
    largest bigint;
    returned text;
    id bigint;  -- of what it returned
    made_at timestamptz;
    grants text;
BEGIN
    PERFORM instaid_adopt._check_version();
    PERFORM instaid._check_no_nulls('replace_copy', json_build_object('copy', copy));
    PERFORM instaid._check_read_committed('replace_copy');
    SELECT p.proname, p.prosecdef, p.prorettype::regtype AS type, n.nspname, n.oid AS schema,
           p.proowner::regrole AS owner, p.pronargs = p.pronargdefaults AS is_callable,
           p.pronargs > 0 AS has_arguments, pg_get_function_arguments(p.oid) AS arguments,
           p.proargtypes[0] IN ('bigint'::regtype, 'integer'::regtype, 'regclass'::regtype)
           AS is_ambiguous INTO main
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.oid = copy AND p.prokind = 'f' AND NOT p.proretset
      AND p.prorettype IN ('bigint'::regtype, 'text'::regtype, 'varchar'::regtype);
    IF NOT FOUND THEN
        RAISE wrong_object_type USING MESSAGE = format('%s cannot return IDs of a shard', copy),
            DETAIL = 'It must be a function that returns a bigint, text or varchar.',
            HINT = 'Write it anew, so that it calls next_id() of a shard.';
    END IF;
    PERFORM instaid._check_owner(main.owner, 'function', copy::text);
    PERFORM instaid._check_ruler(main.nspname, copy);
    columns := instaid_adopt._columns_of(main.schema, ARRAY[copy]);
    taken := instaid_adopt._lock_tables_of(main.nspname, columns);
    SELECT s.*, p.proowner::regrole AS owner INTO shard
    FROM instaid._find_shard(main.nspname) AS s JOIN pg_proc AS p ON p.oid = s.declaration;
    -- next_id() would call itself
    IF FOUND AND EXISTS (
        SELECT FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
        WHERE p.oid = copy AND (l.lanname = 'instaid' OR strpos(p.prosrc, 'instaid_sql._') > 0
                                OR EXISTS (
            SELECT FROM pg_depend AS d JOIN pg_proc AS f ON f.oid = d.refobjid
            WHERE d.classid = 'pg_proc'::regclass AND d.objid = copy
              AND d.refclassid = 'pg_proc'::regclass AND f.proname = 'next_id'
              AND f.pronamespace = main.schema)))
    THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s returns IDs of shard %s already', copy, shard.shard_id),
            DETAIL = 'It belongs to the shard, or calls its next_id().';
    ELSIF shard.shard_id IS NOT NULL AND main.proname = 'next_id' AND main.is_callable AND EXISTS (
        SELECT FROM pg_proc AS p
        WHERE p.proname = 'next_id' AND p.pronamespace = main.schema AND p.oid <> copy
          AND p.pronargs = p.pronargdefaults) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s stands beside the next_id() of a shard', copy),
            DETAIL = 'Calls without arguments are ambiguous, and fail.',
            HINT = format('DROP FUNCTION %s;', instaid._signature(copy));
    ELSIF main.proname = 'next_id' AND main.is_ambiguous THEN
        RAISE feature_not_supported USING
            MESSAGE = format('%s cannot stand beside the next_id() of a shard', copy),
            DETAIL = 'Calls with a number or a sequence would be ambiguous.',
            HINT = 'Rename it, and its callers, and try again.';
    END IF;
    IF main.is_callable THEN
        BEGIN
            returned := instaid_adopt._call_copy(copy);
            made_at := clock_timestamp();
            id := CASE main.type WHEN 'bigint'::regtype THEN returned
                       ELSE substring(returned FROM '[1-8]\d{18}$|\d{1,18}$') END::bigint;
            sequences := ARRAY(SELECT s FROM unnest(instaid_adopt._used_sequences()) AS s
                               WHERE s <> ALL (used));
        EXCEPTION WHEN invalid_parameter_value THEN
            NULL;  -- it has never made an ID
        END;
    END IF;
    IF main.type <> 'bigint'::regtype AND (returned !~ '\d{15}$') IS NOT FALSE THEN
        RAISE feature_not_supported USING
            MESSAGE = format('%s returns a text whose form is not known', copy),
            DETAIL = COALESCE('It returned ' || returned || ', which does not end with an ID in'
                              ' digits.', 'It cannot be called without arguments.'),
            HINT = 'Write it anew, so that it calls next_id() of a shard.';
    END IF;

    IF shard.shard_id IS NOT NULL AND (
           shard.owner <> main.owner OR shard.shard_id <> replace_copy.shard_id
           OR shard.epoch <> replace_copy.epoch OR EXISTS (
               -- another role's would be called in place of the shard's
               SELECT FROM pg_proc AS p WHERE p.proowner <> main.owner
               AND p.oid = instaid._find_function(main.nspname, 'next_id', ''))) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('schema %I is a shard already', main.nspname),
            DETAIL = format('It is shard %s of %s, with epoch %s. %s owns %s.', shard.shard_id,
                            shard.owner, shard.epoch, main.owner, copy),
            HINT = 'A schema is one shard. Pass no other number or epoch, and give the function,'
                   ' and next_id(), to the owner of the shard.';
    END IF;
    rows := instaid_adopt._look_at_rows(columns, shard.epoch);
    IF rows.filled_by = 'clients' AND (main.is_callable OR taken.largest IS NOT NULL) THEN
        rows.largest := NULL;
        rows.shard_ids := '{}'::integer[];
    END IF;
    largest := GREATEST(taken.largest, rows.largest, id);
    IF largest IS NULL AND NOT main.is_callable THEN
        RAISE WARNING 'no ID of % is known', copy USING
            DETAIL = 'It cannot be called without arguments, and no rows of its tables show one.'
                     ' New IDs can be below old ones.',
            HINT = 'If it has made IDs, roll back, and pass an earlier epoch.';
    END IF;
    IF shard.shard_id IS NULL THEN
        known := instaid_adopt._known_layout(copy, id, made_at, largest,
                                             taken.shard_ids || rows.shard_ids);
        IF COALESCE(shard_id, known.shard_id) IS NULL THEN
            RAISE null_value_not_allowed USING
                MESSAGE = format('schema %I is not a shard yet', main.nspname),
                DETAIL = format('%s does not tell the shard ID that it is to have.', copy),
                HINT = format('Pass one that is free on all your servers: SELECT'
                              ' instaid_adopt.replace_copy(%L, %s%s);', instaid._signature(copy),
                              instaid._free_shard_id(true), ', ' || quote_literal(epoch));
        END IF;
        SELECT o AS oid INTO beside FROM instaid_adopt._published_beside(copy) AS o
        WHERE known.shard_id IS NULL LIMIT 1;
        IF FOUND THEN
            RAISE WARNING 'new IDs of % will not keep their number', instaid._signature(beside.oid)
                USING DETAIL = format('Their schema becomes shard %s, which was passed for %s.',
                                      shard_id, copy),
                HINT = 'If they should keep it, roll back, and call this first: '
                       || instaid_adopt._replacing(beside.oid);
        END IF;
        -- the other copies of the schema need one that is not later than theirs
        SELECT instaid._signature(p.oid) AS name, e AS epoch INTO beside
        FROM instaid._copies('%', current_user) AS c JOIN pg_proc AS p ON p.oid = c.objid
             CROSS JOIN LATERAL unnest(instaid_adopt._text_epochs(p.oid)) AS e
        WHERE c.classid = 'pg_proc'::regclass AND c.schema = main.schema AND p.oid <> copy
          AND p.proowner = main.owner AND e >= '1990-01-01 UTC' AND e < known.epoch
        ORDER BY e LIMIT 1;
        IF FOUND AND epoch IS NULL THEN
            RAISE WARNING 'new IDs of % do not keep their epoch', copy USING
                DETAIL = format('It was %s. They have %s, which is in the text of %s, so that it'
                                ' can be replaced, too.', known.epoch, beside.epoch, beside.name),
                HINT = format('If they should keep it, roll back, and pass it: SELECT'
                              ' instaid_adopt.replace_copy(%L, %s, %L);', instaid._signature(copy),
                              COALESCE(shard_id, known.shard_id), known.epoch);
            known.epoch := beside.epoch;
        END IF;
        PERFORM instaid_adopt._create_shard_beside(
            copy, COALESCE(shard_id, known.shard_id), COALESCE(epoch, known.epoch), largest);
        SELECT s.* INTO shard FROM instaid._find_shard(main.nspname) AS s;
    END IF;
    IF largest > instaid.max_id(clock_timestamp() + interval '1 day', shard.epoch) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s has made IDs above those of shard %s', copy, shard.shard_id),
            DETAIL = format('The largest is %s. With epoch %s, its time is %s.', largest,
                            shard.epoch, instaid.extract_timestamp(largest, shard.epoch)),
            HINT = 'Pass an earlier epoch. If the schema is a shard already, move the function and'
                   ' its tables to another schema first.';
    -- what is below 0 is below each ID
    ELSIF largest >= 0 AND NOT shard.frozen THEN
        PERFORM instaid.advance_past(shard.sequence, largest, shard.epoch);
    END IF;
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION %I.%I(%s) RETURNS %s LANGUAGE sql VOLATILE PARALLEL UNSAFE %s'
        ' RETURN %s%1$I.next_id(%7$s)', main.nspname,
        (SELECT p.proname FROM pg_proc AS p WHERE p.oid = copy), main.arguments, main.type,
        CASE WHEN main.prosecdef THEN 'SECURITY DEFINER' END,
        CASE WHEN main.type <> 'bigint'::regtype
             THEN format('%L || ', regexp_replace(returned, '\d+$', '')) END,
        -- the shard's own, which got its old text back
        CASE WHEN copy = instaid._find_function(main.nspname, 'next_id', '')
             THEN format('%L::regclass', shard.sequence) END);
    RAISE NOTICE '% returns IDs of shard % now', copy, shard.shard_id
        USING DETAIL = format('The epoch is %s. The IDs end at %s.', shard.epoch,
                              instaid.extract_timestamp(-9223372036854775808, shard.epoch))
                       || CASE WHEN main.has_arguments
                               THEN ' Its arguments have no effect any more.' ELSE '' END;

    -- Who could insert goes on: into tables with such a default, or who could call it, with rights
    -- on its sequence.  If it cannot be called, this can be each of the schema.
    SELECT string_agg(g.command, '; ' ORDER BY g.command) INTO grants
    FROM (SELECT m
          FROM (SELECT DISTINCT t.oid
                FROM jsonb_to_recordset(columns) AS c (relid oid, filled_by text)
                     JOIN pg_class AS t ON t.oid = c.relid AND t.relowner = main.owner
                WHERE c.filled_by <> 'clients') AS t (relid)
               CROSS JOIN LATERAL instaid_adopt._missing_grants(
                   t.relid, main.nspname, shard.sequence) AS m
          UNION
          SELECT format('GRANT %s TO %s', r, CASE x.grantee WHEN 0 THEN 'PUBLIC'
                                                   ELSE x.grantee::regrole::text END)
          FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS x
               CROSS JOIN LATERAL instaid._missing_rights(x.grantee, main.nspname, shard.sequence)
                                  AS r
          WHERE c.relkind = 'S' AND x.privilege_type IN ('USAGE', 'UPDATE')
            AND c.relowner = main.owner AND NOT main.prosecdef
            AND CASE WHEN sequences <> '{}' THEN c.oid = ANY (sequences)
                     ELSE c.relnamespace = main.schema END
            AND has_function_privilege(x.grantee, copy, 'EXECUTE')) AS g (command);
    IF grants IS NOT NULL THEN
        EXECUTE grants;
        RAISE NOTICE 'roles that could insert can take IDs of shard % now', shard.shard_id
            USING DETAIL = grants || ';';
    END IF;
END $$;
COMMENT ON FUNCTION instaid_adopt.replace_copy IS 'let a copy of the published function that '
'cannot be adopted return the IDs of its schema''s shard, which is created with an epoch whose '
'IDs are above its own; only for the owner of all that it changes';

---- Adopting columns ----

-- The statement that drops a view, an index of a materialized view, a rule or a trigger, and those
-- that create it again, with its rights and comments, if search_path is pg_catalog.
CREATE FUNCTION instaid_adopt._recreation(class oid, object oid, OUT removal text,
                                          OUT creation text[])
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    SET extra_float_digits = 1 SET intervalstyle = 'postgres'
BEGIN ATOMIC
    WITH main (kind, name, definition, view, acl) AS (
        SELECT upper(i.type), i.identity, COALESCE(
                   pg_get_ruledef(r.oid), pg_get_triggerdef(t.oid), pg_get_indexdef(c.oid), format(
                   E'CREATE %s %s%s%s AS\n%s%s', upper(i.type), i.identity,
                   (SELECT ' USING ' || quote_ident(m.amname) FROM pg_am AS m
                    WHERE m.oid = c.relam),
                   (SELECT ' WITH (' || string_agg(format('%I = %L', o.option_name,
                                                          o.option_value), ', ') || ')'
                    FROM pg_options_to_table(c.reloptions) AS o),
                   rtrim(pg_get_viewdef(c.oid), ';'),
                   CASE WHEN NOT c.relispopulated THEN E'\n  WITH NO DATA' END)),
               CASE WHEN c.relkind <> 'i' THEN c.oid END,
               -- default privileges give rights to a new view
               CASE WHEN c.relacl IS NOT NULL OR EXISTS (SELECT FROM pg_default_acl)
                    THEN COALESCE(c.relacl, acldefault('r', c.relowner)) END
        FROM pg_identify_object(
                 -- it fails for what is no class
                 CASE WHEN class IN ('pg_class'::regclass, 'pg_rewrite'::regclass,
                                     'pg_trigger'::regclass) THEN class END, object, 0) AS i
             LEFT JOIN pg_rewrite AS r ON class = 'pg_rewrite'::regclass AND r.oid = object
             LEFT JOIN pg_trigger AS t ON class = 'pg_trigger'::regclass AND t.oid = object
             LEFT JOIN pg_class AS c ON class = 'pg_class'::regclass AND c.oid = object),
    grants (command, attnum, n) AS (
        SELECT format('REVOKE ALL ON %s FROM PUBLIC, %s', m.name,
                      string_agg(DISTINCT r.role::regrole::text, ', ')), 0, 0
        FROM main AS m JOIN pg_class AS c ON c.oid = m.view
             CROSS JOIN LATERAL (
                 SELECT c.relowner
                 UNION SELECT (aclexplode(d.defaclacl)).grantee FROM pg_default_acl AS d
                 WHERE d.defaclrole = c.relowner) AS r (role)
        WHERE m.acl IS NOT NULL AND r.role <> 0 GROUP BY m.name
        UNION ALL SELECT format('GRANT %s ON %s TO %s%s',
               string_agg(x.privilege_type || a.columns, ', ' ORDER BY x.n), m.name,
               CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END,
               CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' END), a.attnum, min(x.n)
        FROM main AS m CROSS JOIN LATERAL (
                 SELECT 0, '', m.acl WHERE m.view IS NOT NULL
                 UNION ALL SELECT a.attnum, format(' (%I)', a.attname), a.attacl
                 FROM pg_attribute AS a WHERE a.attrelid = m.view) AS a (attnum, columns, acl)
             CROSS JOIN LATERAL aclexplode(a.acl) WITH ORDINALITY
                 AS x (grantor, grantee, privilege_type, is_grantable, n)
        GROUP BY m.name, a.attnum, x.grantee, x.is_grantable),
    comments (command) AS (
        SELECT format('COMMENT ON %s IS %L', COALESCE('COLUMN ' || m.name || '.'
                      || quote_ident(a.attname), m.kind || ' ' || m.name), d.description)
        FROM main AS m JOIN pg_description AS d ON d.classoid = class AND d.objoid = object
             LEFT JOIN pg_attribute AS a ON a.attrelid = m.view AND a.attnum = d.objsubid
                                        AND a.attnum > 0 ORDER BY d.objsubid)
    SELECT 'DROP ' || m.kind || ' ' || m.name, rtrim(m.definition, ';')
           || ARRAY(SELECT g.command FROM grants AS g ORDER BY g.attnum, g.n)
           || ARRAY(SELECT c.command FROM comments AS c)
    FROM main AS m;
END;

-- The statements that widen an integer column and those that refer to it, and those before and
-- after that drop and create views, rules and triggers; those that lock the views; the other
-- tables that are altered, the sizes of all, and what prevents it; the columns that are widened,
-- as "relation attnum"; why Citus does not change it.
CREATE FUNCTION instaid_adopt._widening_plan(
    table_name regclass, attnum smallint, OUT statements text[],
    OUT removals text[], OUT creations text[], OUT locks text[], OUT other_tables text,
    OUT sizes text, OUT obstacles text, OUT widened text[], OUT of_citus text)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    SET jit = off AS $$
DECLARE
    owner CONSTANT oid := quote_ident(current_user)::regrole;
    kept_by_citus jsonb;  -- columns that it does not change, as "relation attnum"
    tables_of_citus oid[];  -- their rows are elsewhere, mostly on other servers
    classes oid[];  -- of the objects that are dropped and created, in the order of creation
    objects oid[];
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        EXECUTE 'SELECT jsonb_object_agg(format(''%s %s'', a.attrelid::oid, a.attnum),'
                ' CASE WHEN a.attidentity <> '''' THEN ''an identity column of a Citus table'''
                ' ELSE ''the distribution column of a Citus table'' END)'
                ' FILTER (WHERE a.attidentity <> '''''
                ' OR position(format('':varattno %s '', a.attnum) IN p.partkey) > 0),'
                ' array_agg(DISTINCT a.attrelid) FROM pg_catalog.pg_dist_partition AS p'
                ' JOIN pg_attribute AS a ON a.attrelid = p.logicalrelid AND a.attnum > 0'
        INTO kept_by_citus, tables_of_citus;
    END IF;
    of_citus := kept_by_citus ->> format('%s %s', table_name::oid, attnum);
    WITH RECURSIVE family (relid, attnum) AS (
        SELECT table_name::oid, _widening_plan.attnum
        UNION SELECT r.relid, r.attnum FROM family AS f CROSS JOIN LATERAL (
            SELECT k.conrelid, k.conkey[array_position(k.confkey, f.attnum)]
            FROM pg_constraint AS k
            WHERE k.contype = 'f' AND k.confrelid = f.relid AND f.attnum = ANY (k.confkey)
            UNION ALL SELECT other.attrelid, other.attnum
            FROM pg_attribute AS this JOIN pg_attribute AS other ON other.attname = this.attname
                 JOIN pg_inherits AS i
                      ON (i.inhrelid, i.inhparent) IN ((this.attrelid, other.attrelid),
                                                       (other.attrelid, this.attrelid))
            WHERE this.attrelid = f.relid AND this.attnum = f.attnum) AS r (relid, attnum)),
    narrow AS (
        SELECT a.attrelid, a.attnum, a.attname, a.attinhcount, c.relkind, c.relowner, c.reltype,
               c.reloftype, t.typtype, format('%s.%I', c.oid::regclass, a.attname) AS name
        FROM family AS f JOIN pg_attribute AS a ON a.attrelid = f.relid AND a.attnum = f.attnum
             JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_type AS t ON t.oid = a.atttypid
        -- a domain has the output function of its base type
        WHERE t.typoutput IN ('int2out'::regproc, 'int4out'::regproc)),
    altered AS (
        -- a column of a partition is altered through its parent's
        SELECT n.attrelid, string_agg(format('ALTER %I TYPE bigint', n.attname), ', '
                                      ORDER BY n.attnum) AS actions
        FROM narrow AS n WHERE n.attinhcount = 0 GROUP BY n.attrelid),
    -- what ALTER COLUMN TYPE would fail at, perhaps after hours, and what depends on views in it
    dependant (name, class, object, attnum, level) AS (
        SELECT n.name, 'pg_class'::regclass::oid, n.attrelid, n.attnum::integer, 0 FROM narrow AS n
        UNION SELECT CASE t.level WHEN 0 THEN t.name ELSE c.oid::regclass::text END,
               CASE WHEN r.oid IS NULL THEN d.classid ELSE t.class END,
               COALESCE(r.ev_class, d.objid), 0, t.level + 1
        FROM dependant AS t
             JOIN pg_class AS c ON t.class = 'pg_class'::regclass AND c.oid = t.object
                  AND (t.level = 0 OR c.relkind IN ('v', 'm') AND c.relowner = owner)
             JOIN pg_type AS y ON y.oid = c.reltype
             CROSS JOIN LATERAL (VALUES (t.class, c.oid), ('pg_type'::regclass, y.oid),
                                        ('pg_type'::regclass, y.typarray)) AS o (class, object)
             JOIN pg_depend AS d ON d.refclassid = o.class AND d.refobjid = o.object
             LEFT JOIN pg_attrdef AS e ON d.classid = 'pg_attrdef'::regclass AND e.oid = d.objid
             LEFT JOIN pg_trigger AS g ON d.classid = 'pg_trigger'::regclass AND g.oid = d.objid
             -- a view is one by such a rule, and depends on itself
             LEFT JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
                                      AND r.ev_type = '1'
        WHERE CASE WHEN t.level > 0 THEN d.deptype <> 'i' AND r.ev_class IS DISTINCT FROM c.oid
                   ELSE (d.refclassid, d.refobjsubid) = (t.class, t.attnum)
                        AND (d.classid IN ('pg_rewrite'::regclass, 'pg_proc'::regclass,
                                           'pg_trigger'::regclass, 'pg_policy'::regclass,
                                           'pg_publication_rel'::regclass)
                             OR (e.adrelid, e.adnum) <> (c.oid, t.attnum)) END
          -- a partition has its trigger from its parent; views can name each other
          AND COALESCE(g.tgparentid, 0) = 0 AND t.level < 100),
    -- what can be created again has no fault
    recreated AS (
        SELECT t.name, t.class, t.object, t.level, k.oid::regclass AS relation, CASE
            WHEN k.oid IS NULL THEN ''
            WHEN k.relowner <> owner THEN format(' of %I', pg_get_userbyid(k.relowner))
            -- its owner could put another object in its place
            WHEN NOT instaid._can_name(k.relnamespace)
                THEN ' in a schema of another role'
            -- pg_get_viewdef() locks them
            WHEN EXISTS (SELECT FROM pg_rewrite AS w
                              JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass
                                                 AND d.objid = w.oid
                                                 AND d.refclassid = 'pg_class'::regclass
                              JOIN pg_class AS u ON u.oid = d.refobjid AND u.relowner <> owner
                              JOIN pg_roles AS o ON o.oid = u.relowner AND NOT o.rolsuper
                         WHERE w.ev_class = k.oid) THEN ', which names tables of other owners'
            -- Who has, or had, TRIGGER on the table wrote the condition.  To parse a literal in it
            -- can call functions of the owner of its type.
            WHEN EXISTS (SELECT FROM pg_depend AS d
                              JOIN pg_type AS y ON d.refclassid = 'pg_type'::regclass
                                               AND y.oid = d.refobjid
                         WHERE d.classid = t.class AND d.objid = g.oid
                           AND NOT instaid._can_trust(owner, y.typowner))
                THEN ', whose condition has a type of another owner'
            WHEN k.relpersistence = 't' OR r.ev_enabled <> 'O' OR i.indisclustered
                 OR c.reltablespace <> 0
                 OR EXISTS (SELECT FROM pg_trigger AS p
                            WHERE g.oid IN (p.oid, p.tgparentid) AND p.tgenabled <> 'O')
                 OR EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = t.class
                            AND d.objid = t.object AND d.deptype IN ('e', 'x'))
                 OR EXISTS (SELECT FROM pg_seclabel AS l
                            WHERE l.classoid = t.class AND l.objoid = t.object)
                 OR EXISTS (SELECT FROM pg_class AS o
                            WHERE o.oid = c.reltoastrelid AND o.reloptions IS NOT NULL)
                 OR EXISTS (SELECT FROM aclexplode(c.relacl) AS x WHERE x.grantor <> owner)
                 OR EXISTS (SELECT FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid
                                 LEFT JOIN LATERAL aclexplode(a.attacl) AS x ON true
                            WHERE a.attrelid = c.oid AND a.attnum > 0
                              AND (x.grantor <> owner OR a.attoptions::text ~ 'n_distinct'
                                   OR COALESCE(a.attstattarget, -1) <> -1
                                   OR a.attcompression <> '' OR a.attstorage <> y.typstorage))
                THEN ', which cannot be created again as it is' END AS fault
        FROM dependant AS t
             LEFT JOIN pg_class AS c ON t.class = 'pg_class'::regclass AND c.oid = t.object
                                    AND c.relkind IN ('v', 'm', 'i')
             LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
             LEFT JOIN pg_rewrite AS r ON t.class = 'pg_rewrite'::regclass AND r.oid = t.object
             LEFT JOIN pg_trigger AS g ON t.class = 'pg_trigger'::regclass AND g.oid = t.object
             LEFT JOIN pg_class AS k ON k.oid = COALESCE(i.indrelid, c.oid, r.ev_class, g.tgrelid)
        WHERE t.level > 0),
    obstacle (name, description) AS (
        SELECT r.name, pg_describe_object(r.class, r.object, 0) || r.fault FROM recreated AS r
        UNION SELECT n.name, 'the partition key'
        FROM narrow AS n JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass
                                            AND d.objid = n.attrelid AND d.objsubid = n.attnum
        WHERE d.refclassid = d.classid AND d.refobjid = n.attrelid AND d.deptype = 'i'
        UNION
        SELECT n.name, format('column %s.%I of its row type', u.attrelid::regclass, u.attname)
        FROM narrow AS n JOIN pg_attribute AS u ON u.atttypid = n.reltype
        UNION SELECT n.name, CASE
            WHEN n.typtype = 'd' THEN 'its domain'
            WHEN n.reloftype <> 0 THEN 'the type of its table'
            ELSE kept_by_citus ->> format('%s %s', n.attrelid, n.attnum) END FROM narrow AS n
        UNION
        -- PostgreSQL checks a foreign key again, in both tables.  The owner of a schema could put
        -- another table in the place of a superuser's.
        SELECT n.name, format('table %s of %I%s', c.oid::regclass, pg_get_userbyid(c.relowner),
                              CASE WHEN c.relowner = owner THEN ' in a schema of another role' END)
        FROM narrow AS n
             LEFT JOIN pg_constraint AS k ON k.contype = 'f'
                       AND (k.confrelid = n.attrelid AND n.attnum = ANY (k.confkey)
                            OR k.conrelid = n.attrelid AND n.attnum = ANY (k.conkey))
             JOIN pg_class AS c ON c.oid IN (n.attrelid, k.conrelid, k.confrelid)
        WHERE c.relowner <> owner
           OR NOT instaid._can_name(c.relnamespace))
    SELECT array_agg(format('ALTER TABLE %s %s', t.attrelid::regclass, t.actions)
                     ORDER BY t.attrelid),
           -- in the order of an INSERT: its table, and then the older ones that it refers to
           string_agg(t.attrelid::regclass::text, ', ' ORDER BY t.attrelid DESC)
               FILTER (WHERE t.attrelid <> _widening_plan.table_name),
           -- of the owner's tables only: pg_total_relation_size() waits for locks
           (SELECT string_agg(n.name || CASE WHEN n.attrelid = ANY (tables_of_citus) THEN ''
                       ELSE format(' (%s)',
                                   pg_size_pretty(pg_total_relation_size(n.attrelid))) END,
                              ', ' ORDER BY n.name)
            FROM narrow AS n WHERE n.relkind = 'r' AND CASE WHEN n.relowner = owner THEN true END),
           (SELECT string_agg(o.name || ': ' || o.description, '; ' ORDER BY o.name, o.description)
            FROM obstacle AS o),
           (SELECT array_agg(format('%s %s', n.attrelid, n.attnum)) FROM narrow AS n),
           -- readers lock a view before what it names
           (SELECT array_agg(format('ALTER TABLE %s OWNER TO %I', r.relation, current_user)
                             ORDER BY r.level DESC, r.relation)
            FROM (SELECT r.relation, max(r.level) FROM recreated AS r
                  WHERE r.relation NOT IN (SELECT n.attrelid FROM narrow AS n)
                  GROUP BY r.relation) AS r (relation, level)),
           r.classes, r.objects
    INTO statements, other_tables, sizes, obstacles, widened, locks, classes, objects
    FROM altered AS t, (SELECT array_agg(r.class ORDER BY r.level, r.object) AS classes,
                               array_agg(r.object ORDER BY r.level, r.object) AS objects
                        FROM (SELECT r.class, r.object, max(r.level) FROM recreated AS r
                              GROUP BY r.class, r.object) AS r (class, object, level)) AS r
    GROUP BY r.classes, r.objects;
    IF obstacles IS NULL THEN
        SELECT array_agg(r.removal ORDER BY o.n DESC) FILTER (WHERE c.n = 1),
               array_agg(c.command ORDER BY o.n, c.n)
        INTO removals, creations
        FROM unnest(classes, objects) WITH ORDINALITY AS o (class, object, n)
             CROSS JOIN LATERAL instaid_adopt._recreation(o.class, o.object) AS r
             CROSS JOIN LATERAL unnest(r.creation) WITH ORDINALITY AS c (command, n);
    END IF;
END $$;

-- The GRANT statements for roles that can insert into a table, a partition of it or a view, and
-- cannot use the next_id() of the shard.
CREATE FUNCTION instaid_adopt._missing_grants(table_name regclass, schema_name text,
                                              sequence regclass) RETURNS SETOF text
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE entrance (relid) AS (
        SELECT d.relid FROM instaid._descendants(table_name) AS d
        UNION SELECT r.ev_class
        FROM entrance AS e JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass
                                              AND d.refobjid = e.relid
                                              AND d.classid = 'pg_rewrite'::regclass
             JOIN pg_rewrite AS r ON r.oid = d.objid
             -- Rows pass a view with the rights of its owner.  Any role can create one, but must
             -- not let others take IDs.
             JOIN pg_class AS v ON v.oid = r.ev_class
                  AND has_any_column_privilege(v.relowner, e.relid, 'INSERT WITH GRANT OPTION')),
    inserter AS (
        SELECT DISTINCT x.grantee AS role, CASE x.grantee WHEN 0 THEN 'PUBLIC'
                                           ELSE x.grantee::regrole::text END AS name
        FROM entrance AS e JOIN pg_class AS c ON c.oid = e.relid
             JOIN pg_attribute AS a ON a.attrelid = c.oid
             CROSS JOIN LATERAL aclexplode(COALESCE(c.relacl, acldefault('r', c.relowner))
                                           || a.attacl) AS x WHERE x.privilege_type = 'INSERT')
    SELECT format('GRANT %s TO %s', r, i.name)
    FROM inserter AS i CROSS JOIN LATERAL instaid._missing_rights(
             i.role, schema_name, sequence) AS r ORDER BY i.name, r
$$;

CREATE FUNCTION instaid_adopt.adopt_column(table_name regclass, column_name text,
                                           dry_run boolean DEFAULT false) RETURNS SETOF text
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' SET row_security = off
    SET standard_conforming_strings = on SET quote_all_identifiers = off
    SET default_tablespace = '' AS $$
DECLARE
    main record;
    shard record;
    descendants oid[];
    others text;
    is_ours boolean;
    other record;
    widening record;
    alter_column text;
    serial regclass;
    statements text[];
    statement text;
    highest bigint;
    next_id bigint;
    grants text[];
    unreferenced text;
BEGIN
    PERFORM instaid_adopt._check_version();
    PERFORM instaid._check_no_nulls('adopt_column', json_build_object(
        'table_name', table_name, 'column_name', column_name, 'dry_run', dry_run));
    PERFORM instaid._check_read_committed('adopt_column') WHERE NOT dry_run;
    PERFORM instaid._check_name('column', column_name);
    -- before pg_get_expr(), which waits for a lock on the table
    PERFORM instaid._check_table_owner(table_name);
    SELECT format('%s.%I', table_name, column_name) AS name, c.relkind,
           c.relowner::regrole AS owner, n.nspname, a.attnum, a.atttypid, a.attidentity,
           a.attgenerated, pg_get_expr(d.adbin, d.adrelid) AS default_text,
           format('%I.next_id()', n.nspname) AS new_default,
           (SELECT i.inhparent::regclass FROM pg_inherits AS i
            WHERE a.attinhcount > 0 AND i.inhrelid = c.oid LIMIT 1) AS parent INTO main
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
         LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = column_name
                                    AND a.attnum > 0 AND NOT a.attisdropped
         LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.oid = table_name;
    IF main.attnum IS NULL THEN
        RAISE undefined_column USING
            MESSAGE = format('column %I of table %s does not exist', column_name, table_name);
    ELSIF main.relkind NOT IN ('r', 'p') OR main.attgenerated <> '' OR main.parent IS NOT NULL THEN
        RAISE wrong_object_type USING
            MESSAGE = format('column %s cannot have a default of its own', main.name),
            DETAIL = CASE WHEN main.parent IS NOT NULL
                          THEN format('It is inherited: adopt the column of %s.', main.parent)
                          WHEN main.attgenerated <> '' THEN 'It is a generated column.'
                          ELSE 'It is not a column of a table.' END;
    END IF;
    SELECT s.* INTO shard FROM instaid._find_shard(main.nspname) AS s;
    IF NOT FOUND THEN
        RAISE undefined_object USING MESSAGE = format('schema %I is not a shard', main.nspname),
            HINT = 'create_shard() and adopt_shard() make a schema a shard.';
    ELSIF main.atttypid NOT IN ('bigint'::regtype, COALESCE(to_regtype('instaid.id'), 'bigint'),
                                'integer'::regtype, 'smallint'::regtype) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('column %s is of type %s', main.name, main.atttypid::regtype),
            DETAIL = 'It must be bigint or instaid.id, or integer or smallint, which are widened.';
    END IF;
    -- A default runs with the rights of all who insert, and its name could find each of these.
    SELECT string_agg(format('%s of %I', u.name, pg_get_userbyid(u.owner)), ', ' ORDER BY u.name)
               FILTER (WHERE NOT instaid._can_trust(main.owner, u.owner)), bool_and(u.is_ours)
    INTO others, is_ours
    FROM (SELECT format('schema %I', n.nspname), n.nspowner, NULL::boolean
          FROM pg_namespace AS n WHERE n.nspname = main.nspname
          UNION ALL
          SELECT format('%I.%I(%s)', main.nspname, p.proname, oidvectortypes(p.proargtypes)),
                 -- the next_id() of the SQL edition's adopt_shard() has a parsed body
                 p.proowner, p.oid = d.oid OR p.prolang = d.prolang OR p.prosqlbody IS NOT NULL
          FROM pg_proc AS d JOIN pg_proc AS p ON p.pronamespace = d.pronamespace
               AND (p.oid = d.oid OR p.proname = 'next_id' AND p.pronargs = p.pronargdefaults)
          WHERE d.oid = shard.declaration) AS u (name, owner, is_ours);
    IF others IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('other roles could replace %s', main.new_default),
            DETAIL = format('Table %s belongs to %s. These do not: %s.', table_name, main.owner,
                            others),
            HINT = format('Let the column use a shard of %s, or of a superuser. If you trust the'
                          ' other roles, set its default yourself.', main.owner);
    ELSIF NOT is_ours THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s is no function of shard %s', main.new_default, shard.shard_id),
            DETAIL = 'Its language is another one.',
            HINT = 'Let its owner create it again, as instaid.create_shard() does.';
    END IF;
    SELECT array_agg(d.relid),
           string_agg(format('%s belongs to %s', d.relid::regclass, d.owner), ', ')
               FILTER (WHERE d.owner <> main.owner)
    INTO descendants, others FROM instaid._descendants(table_name) AS d;
    IF others IS NOT NULL THEN
        RAISE feature_not_supported USING
            MESSAGE = format('column %s is inherited by tables of other owners', main.name),
            DETAIL = format('%s. Table %s belongs to %s.', others, table_name, main.owner),
            HINT = 'Give all of them to one owner, or detach those of other owners.';
    END IF;
    SELECT d.adrelid::regclass AS name, pg_get_expr(d.adbin, d.adrelid) AS default_text INTO other
    FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE d.adrelid = ANY (descendants) AND a.attname = column_name
      -- pg_get_expr() waits for a lock on the table: it must not read those of others
      AND CASE WHEN d.adrelid = ANY (descendants)
               THEN pg_get_expr(d.adbin, d.adrelid) IS DISTINCT FROM main.default_text END;
    IF FOUND THEN
        RAISE object_in_use USING
            MESSAGE = format('column %s.%I has a default of its own', other.name, column_name),
            DETAIL = format('Its default is %s. The default of %s would replace it.',
                            other.default_text, main.name), HINT = 'Drop that default first.';
    END IF;
    widening := instaid_adopt._widening_plan(table_name, main.attnum);
    IF widening.of_citus IS NOT NULL AND main.default_text IS DISTINCT FROM main.new_default THEN
        RAISE feature_not_supported USING
            MESSAGE = format('Citus cannot change the default of column %s', main.name),
            DETAIL = format('It is %s.', widening.of_citus),
            HINT = CASE WHEN main.attidentity <> ''
                        THEN 'Create another table, distribute it, and copy the rows.'
                        ELSE 'Call undistribute_table() before, and distribute it afterwards.' END;
    ELSIF widening.obstacles IS NOT NULL THEN
        RAISE feature_not_supported USING
            MESSAGE = format('integer columns that would hold IDs of %s cannot be widened',
                             main.name), DETAIL = widening.obstacles || '.',
            HINT = 'Drop what prevents it, and create that again afterwards.';
    END IF;

    statements := widening.locks || format('LOCK TABLE %s%s IN ACCESS EXCLUSIVE MODE',
                                           widening.other_tables || ', ', table_name);
    IF NOT dry_run THEN
        FOREACH statement IN ARRAY statements LOOP
            EXECUTE statement;
        END LOOP;
        -- the locks can have waited for a change, even one that is in the way
        PERFORM instaid._check_table_owner(table_name);
        IF (SELECT (p.statements, p.removals, p.creations, p.obstacles) IS DISTINCT FROM
                   (widening.statements, widening.removals, widening.creations, NULL)
            FROM instaid_adopt._widening_plan(table_name, main.attnum) AS p) THEN
            RAISE serialization_failure USING
                MESSAGE = format('what depends on %s has changed meanwhile', main.name),
                HINT = 'Repeat the call.';
        END IF;
    END IF;
    PERFORM instaid_adopt._check_sees_rows(table_name);
    EXECUTE format('SELECT max(%I)::bigint FROM %s', column_name, table_name) INTO highest;
    next_id := GREATEST(instaid._last_id(shard.sequence, shard.shard_id, shard.epoch),
                        instaid.min_id(clock_timestamp(), shard.epoch));
    IF highest > next_id THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column %s has values above the next ID of shard %s',
                             main.name, shard.shard_id),
            DETAIL = format('The highest is %s. If it is an ID, its time is %s. New IDs begin'
                            ' above %s.', highest, instaid.extract_timestamp(highest, shard.epoch),
                            next_id),
            HINT = CASE WHEN highest <= instaid.max_id(clock_timestamp() + interval '1 day',
                                                       shard.epoch)
                        THEN format('To begin above it: SELECT instaid.advance_past(%L, %s, %L);',
                                    shard.sequence, highest, shard.epoch)
                        ELSE concat('Give those rows other values.', (
                            SELECT format(
                                ' Or adopt the column in a schema whose shard has an earlier'
                                ' epoch: SELECT instaid.create_shard(%L, %s, %L); ALTER TABLE %s'
                                ' SET SCHEMA %1$I;', main.nspname || '_' || extract(year FROM e),
                                instaid._free_shard_id(true), e, table_name)
                            FROM instaid_adopt._epoch_above(highest) AS e
                            WHERE instaid.extract_timestamp(-9223372036854775808, e)
                                  > clock_timestamp() + interval '1 year')) END;
    END IF;

    -- First the default, which need not fit the new type, and then the sequence of a serial
    -- column, unless something else uses it: Citus widens no column that one depends on.
    alter_column := format('ALTER TABLE %s ALTER %I', table_name, column_name);
    serial := pg_get_serial_sequence(table_name::text, column_name);
    statements := array_remove(statements || widening.removals || ARRAY[
        CASE WHEN main.attidentity <> '' THEN alter_column || ' DROP IDENTITY'
             WHEN main.default_text <> main.new_default THEN alter_column || ' DROP DEFAULT' END,
        CASE WHEN main.default_text = format('nextval(''%s''::regclass)',
                                             replace(serial::text, '''', ''''''))
             THEN format(CASE WHEN EXISTS (
                     SELECT FROM pg_depend AS d
                          LEFT JOIN (pg_attrdef AS a JOIN pg_attribute AS t
                                     ON t.attrelid = a.adrelid AND t.attnum = a.adnum)
                          ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid
                             AND a.adrelid = ANY (descendants) AND t.attname = column_name
                     WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = serial
                       AND d.deptype = 'n' AND a.oid IS NULL)
                 THEN 'ALTER SEQUENCE %s OWNED BY NONE' ELSE 'DROP SEQUENCE %s' END, serial) END]
        || widening.statements
        || CASE WHEN main.default_text IS DISTINCT FROM main.new_default
                THEN alter_column || ' SET DEFAULT ' || main.new_default END
        || widening.creations, NULL);
    SELECT string_agg(format('%s.%I', a.attrelid::regclass, a.attname), ', '
                      ORDER BY a.attrelid::regclass::text, a.attnum) INTO unreferenced
    FROM pg_class AS t JOIN pg_class AS c ON c.relnamespace = t.relnamespace
                            AND c.relowner = t.relowner AND c.relkind IN ('r', 'p')
         JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND a.attinhcount = 0
         JOIN pg_type AS y ON y.oid = a.atttypid
    WHERE t.oid = table_name AND (c.oid, a.attnum) <> (t.oid, main.attnum)
      -- a foreign key can be that of a partition
      AND (format('%s %s', c.oid, a.attnum) = ANY (widening.widened)) IS NOT TRUE
      -- a domain has the output function of its base type
      AND (y.typoutput IN ('int2out'::regproc, 'int4out'::regproc)
           OR a.atttypid = ANY ('{integer[],smallint[]}'::regtype[]))
      AND EXISTS (
          SELECT FROM unnest('{$,s$,es$,ies$}'::text[], '{"","","",y}'::text[]) AS e (plural, one)
               CROSS JOIN LATERAL concat('_', regexp_replace(t.relname, e.plural, e.one), '_id')
                   AS n (name)
          WHERE right('_' || rtrim(a.attname, 's'), length(n.name)) = n.name)
      AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.contype = 'f' AND k.conrelid = c.oid
                                                       AND a.attnum = ANY (k.conkey));
    IF unreferenced IS NOT NULL THEN
        RAISE NOTICE 'integer columns are named like references to %, and stay as they are',
            table_name USING DETAIL = format('They are %s.', unreferenced),
            HINT = 'Widen those that will hold its IDs, or give them foreign keys first.';
    END IF;
    grants := ARRAY(SELECT g FROM instaid_adopt._missing_grants(
                        table_name, shard.schema_name, shard.sequence) AS g);
    IF grants <> '{}' AND EXISTS (SELECT FROM pg_proc AS p WHERE p.oid = shard.declaration
                                                             AND p.proowner <> main.owner) THEN
        RAISE WARNING 'roles that can insert into % cannot take IDs of shard %', table_name,
            shard.shard_id USING HINT = array_to_string(grants, '; ') || ';';
        grants := '{}';
    END IF;
    statements := statements || grants;
    IF cardinality(statements) = 1 THEN
        RAISE NOTICE 'column % has the IDs of shard % already', main.name, shard.shard_id;
        RETURN;
    END IF;

    IF widening.sizes IS NOT NULL THEN
        RAISE NOTICE 'integer columns become bigint, which rewrites their tables'
            USING DETAIL = format('They are %s.', widening.sizes),
            HINT = 'Afterwards, let all clients reconnect: what their sessions have prepared, also'
                   ' in triggers and functions, can fail.';
    END IF;
    FOREACH statement IN ARRAY statements LOOP
        RETURN NEXT statement;
        IF NOT dry_run THEN
            EXECUTE statement;
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION instaid_adopt.adopt_column IS 'make the next_id() of a shard the default of a '
'serial, identity, integer or bigint column, which it widens with those that refer to it, and '
'create views of them again; return the statements, which dry_run does not run; only for the '
'owner';

---- Rights ----

-- Whatever role installs the extension, its objects belong to the owner of its schema, but for the
-- node's sequence: with mere rights on it, the owner of the database could not restore its grants.
-- Whatever default privileges grant or revoke, others have the rights that PostgreSQL itself gives
-- to all, and can use the schema, and read the views and the position of the node's sequence.
DO $$
DECLARE
    schema_owner CONSTANT regrole := (SELECT nspowner FROM pg_namespace
                                    WHERE nspname = 'instaid_adopt');
    grantees CONSTANT text := (SELECT string_agg(DISTINCT x.grantee::regrole::text, ', ')
                               FROM pg_default_acl AS d, aclexplode(d.defaclacl) AS x
                               WHERE x.grantee NOT IN (0, schema_owner));
    member record;
BEGIN
    FOR member IN
        SELECT CASE i.type WHEN 'view' THEN 'table' ELSE replace(i.type, '-', ' ') END
               || ' ' || i.identity AS name,
               CASE i.identity WHEN 'instaid.node_id_seq' THEN 'pg_database_owner'::regrole
                               ELSE schema_owner END AS owner,
               CASE WHEN i.type IN ('view', 'sequence') THEN 'SELECT'
                    WHEN i.type IN ('schema', 'language', 'type') THEN 'USAGE'
                    WHEN i.type IN ('function', 'procedure') THEN 'EXECUTE' END AS right_of_all,
               -- only PostgreSQL calls them
               d.objid IN (SELECT unnest(ARRAY[l.lanplcallfoid, l.lanvalidator])
                           FROM pg_language AS l) AS is_handler
        FROM pg_extension AS e
             JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass
                                AND d.refobjid = e.oid AND d.deptype = 'e'
             CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS i
        -- casts, and types of arrays and rows, have no owner or no rights of their own
        WHERE e.extname = 'instaid_adopt'
          AND (i.type NOT IN ('cast', 'type') OR i.identity = 'instaid.id')
    LOOP
        EXECUTE format('ALTER %s OWNER TO %s', member.name, member.owner);
        IF grantees IS NOT NULL THEN
            -- the owner can be one of them
            EXECUTE format('REVOKE ALL ON %1$s FROM %2$s; GRANT ALL ON %1$s TO %3$s',
                           member.name, grantees, member.owner);
        END IF;
        IF member.right_of_all IS NOT NULL THEN
            EXECUTE format('REVOKE ALL ON %s FROM PUBLIC', member.name);
            IF NOT member.is_handler THEN
                EXECUTE format('GRANT %s ON %s TO PUBLIC', member.right_of_all, member.name);
            END IF;
        END IF;
    END LOOP;
END $$;
