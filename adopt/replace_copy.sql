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
