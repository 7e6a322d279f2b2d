---- Replacing a copy ----

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
    IF shard_id IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = format('schema %I is not a shard yet', main.nspname),
            HINT = format('Pass the shard ID that it is to have, for example %s.',
                          instaid._free_shard_id(true));
    END IF;
    epoch := COALESCE(epoch, CASE
        WHEN (largest < instaid.min_id(clock_timestamp())) IS NOT FALSE
        THEN instaid.default_epoch()
        ELSE date_trunc('year', clock_timestamp() - interval '1 day' - (
                 instaid.extract_timestamp(largest) - instaid.default_epoch())) END);
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
    largest bigint;
    returned text;
BEGIN
    PERFORM instaid_adopt._check_version();
    PERFORM instaid._check_no_nulls('replace_copy', json_build_object('copy', copy));
    PERFORM instaid._check_read_committed('replace_copy');
    SELECT p.proname, p.prosecdef, p.prorettype::regtype AS type, n.nspname, n.oid AS schema,
           p.proowner::regrole AS owner, p.pronargs = p.pronargdefaults AS is_callable,
           pg_get_function_arguments(p.oid) AS arguments,
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
    largest := (instaid_adopt._lock_tables_of(main.schema, ARRAY[copy])).largest;
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
    ELSIF main.proname = 'next_id' AND main.is_ambiguous THEN
        RAISE feature_not_supported USING
            MESSAGE = format('%s cannot stand beside the next_id() of a shard', copy),
            DETAIL = 'Calls with a number or a sequence would be ambiguous.',
            HINT = 'Rename it, and its callers, and try again.';
    END IF;
    IF main.is_callable THEN
        BEGIN
            returned := instaid_adopt._call_copy(copy);
        EXCEPTION WHEN invalid_parameter_value THEN
            NULL;  -- it has never made an ID
        END;
        largest := GREATEST(largest, CASE main.type WHEN 'bigint'::regtype THEN returned
                                          ELSE substring(returned FROM '[1-8]\d{18}$|\d{1,18}$')
                                          END::bigint);
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
    ELSIF shard.shard_id IS NULL THEN
        PERFORM instaid_adopt._create_shard_beside(copy, shard_id, epoch, largest);
        SELECT s.* INTO shard FROM instaid._find_shard(main.nspname) AS s;
    END IF;
    IF largest >= instaid.min_id(clock_timestamp(), shard.epoch) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s has made IDs above those of shard %s', copy, shard.shard_id),
            DETAIL = format('The largest is %s. With epoch %s, its time is %s.', largest,
                            shard.epoch, instaid.extract_timestamp(largest, shard.epoch)),
            HINT = 'Pass an earlier epoch. If the schema is a shard already, move the function and'
                   ' its tables to another schema first.';
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
        USING DETAIL = format('The epoch is %s.', shard.epoch);
    -- so that who inserts goes on
    returned := (
        SELECT string_agg(DISTINCT g, ' ')
        FROM pg_depend AS d JOIN pg_attrdef AS a ON a.oid = d.objid
             JOIN pg_class AS c ON c.oid = a.adrelid AND c.relowner = main.owner
             CROSS JOIN LATERAL instaid_adopt._missing_grants(a.adrelid, main.nspname,
                                                              shard.sequence) AS g
        WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = copy
          AND d.classid = 'pg_attrdef'::regclass);
    IF returned IS NOT NULL THEN
        EXECUTE returned;
        RAISE NOTICE 'roles that can insert can take IDs of shard % now', shard.shard_id
            USING DETAIL = returned;
    END IF;
END $$;
COMMENT ON FUNCTION instaid_adopt.replace_copy IS 'let a copy of the published function that '
'cannot be adopted return the IDs of its schema''s shard, which is created with an epoch whose '
'IDs are above its own; only for the owner of all that it changes';
