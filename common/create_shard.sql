---- Creating shards ----

-- A shard ID that is free in this database: the one after the highest, or else one between.
-- From the top, it is hardly one of a copy that is not adopted yet.
CREATE OR REPLACE FUNCTION instaid._free_shard_id(from_top boolean) RETURNS integer
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT n FROM generate_series(0, instaid._max_shard_id()) AS n
    WHERE n NOT IN (SELECT s.shard_id FROM instaid._list_shards() AS s)
    ORDER BY CASE WHEN from_top THEN - n END,
             n < (SELECT max(s.shard_id) FROM instaid._list_shards() AS s), n LIMIT 1;
END;

-- Refuse a schema whose owner could put another function in place of one that the caller has
-- there, or would create.
CREATE OR REPLACE FUNCTION instaid._check_ruler(schema_name text, function oid)
    RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner CONSTANT regrole := (SELECT instaid._ruler(n.nspowner) FROM pg_namespace AS n
                               WHERE n.nspname = schema_name);
BEGIN
    IF NOT instaid._can_trust(quote_ident(current_user)::regrole, owner) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('schema %I belongs to another role', schema_name),
            DETAIL = format('Role %s, its owner, could put other functions there.', owner),
            HINT = CASE WHEN function IS NULL
                        THEN 'Let that role create the shard, or choose another schema.'
                        ELSE format('Give the function, and its sequence, to that role: ALTER'
                                    ' FUNCTION %s OWNER TO %s;', instaid._signature(function),
                                    owner) END;
    END IF;
END $$;

-- Refuse a sequence of a shard if the owner of a function of the shard, which can name any
-- sequence, or the caller does not have the rights of its owner.  To call that function, the
-- caller must own both.  Refuse a MINVALUE above 1, too: Citus gives such a range to each worker's
-- copy, which would issue values of another.
CREATE OR REPLACE FUNCTION instaid._check_sequence(function oid, sequence regclass,
                                                   is_called boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    main record;
BEGIN
    SELECT p.proname, p.proowner, n.nspname, c.relowner, q.seqmin, q.seqmax INTO main
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace,
         pg_class AS c JOIN pg_sequence AS q ON q.seqrelid = c.oid
    WHERE p.oid = function AND c.oid = sequence AND c.relpersistence <> 't';
    IF NOT FOUND THEN
        RAISE wrong_object_type USING
            MESSAGE = format('%s cannot be the sequence of a shard', sequence),
            DETAIL = 'It is not a sequence, or temporary, or it or the function was just dropped.';
    ELSIF pg_has_role(main.proowner, main.relowner, 'USAGE') IS NOT TRUE
          OR is_called AND main.proowner <> main.relowner THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('sequence %s does not belong to the owner of shard %I',
                             sequence, main.nspname),
            DETAIL = format('Role %I owns it, and role %I owns the function %s().',
                            pg_get_userbyid(main.relowner), pg_get_userbyid(main.proowner),
                            main.proname),
            HINT = format('Give both to one owner: ALTER SEQUENCE %s OWNER TO %I;', sequence,
                          pg_get_userbyid(main.proowner));
    ELSIF NOT pg_has_role(main.relowner, 'USAGE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of sequence %s', sequence),
            DETAIL = format('Its owner is %I.', pg_get_userbyid(main.relowner));
    ELSIF main.seqmin > 1 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence %s cannot serve as a source of IDs', sequence),
            DETAIL = format('It has a range of its own, %s to %s.', main.seqmin, main.seqmax),
            HINT = 'If Citus created this copy for a worker, use the shard on the coordinator.'
                   || CASE main.proname WHEN 'next_ids' THEN '' ELSE format(
                          ' If another shard has it: SELECT instaid_adopt.replace_copy(%L, %s);',
                          instaid._signature(function), instaid._free_shard_id(true)) END;
    END IF;
END $$;

-- Refuse what cannot be a shard; keep other sessions from creating a shard with this ID until the
-- transaction ends.  If shard ID and epoch are null, only look at the schema.
CREATE OR REPLACE FUNCTION instaid._check_new_shard(schema_name text, shard_id integer,
                                         epoch timestamptz, adopted oid DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET timezone = 'UTC' AS $$
DECLARE
    expires_at timestamptz;
    default_ends_at CONSTANT timestamptz := instaid._end_of_ids(instaid.default_epoch());
    conflict record;
    other record;
BEGIN
    PERFORM instaid._check_name('schema', schema_name);
    IF schema_name ~ '^(instaid|instaid_sql|information_schema|pg_.*)$' THEN
        RAISE reserved_name USING MESSAGE = format('schema %I cannot be a shard', schema_name),
            DETAIL = 'It belongs to the extension or the server.', HINT = 'Choose another schema.';
    END IF;
    -- refuses what is out of range, and an epoch that is not a whole millisecond
    PERFORM instaid.make_id(epoch, shard_id, 0, epoch);
    expires_at := CASE WHEN epoch <= clock_timestamp()
                       THEN instaid._end_of_ids(epoch) END;
    IF shard_id IS NOT NULL AND (expires_at > clock_timestamp()) IS NOT TRUE THEN
        RAISE invalid_parameter_value USING
            MESSAGE = CASE WHEN expires_at IS NULL THEN format('epoch %s is in the future', epoch)
                           ELSE format('IDs with epoch %s ended at %s', epoch, expires_at) END,
            DETAIL = format('The clock reads %s; an epoch can be up to %s years before it.',
                            clock_timestamp(),
                            round(extract(epoch FROM default_ends_at - instaid.default_epoch())
                                  / 31557600, 1)),
            HINT = format('Use the default epoch, which serves until %s, or the date of today.',
                          extract(year FROM default_ends_at));
    END IF;

    -- a superuser who renumbers another role's shard puts no function there
    PERFORM instaid._check_ruler(schema_name, adopted) FROM pg_roles AS r
    WHERE r.rolsuper AND r.rolname = current_user AND NOT EXISTS (
        SELECT FROM pg_proc AS p WHERE p.oid = adopted AND p.proowner <> r.oid);

    -- Two sessions cannot both find a shard ID free: one of them fails.
    PERFORM instaid._lock_shard_id(schema_name, shard_id);
    conflict := instaid._find_conflict(schema_name, COALESCE(shard_id, -1));
    IF conflict.routine <> COALESCE(adopted, 0) THEN
        SELECT s.shard_id, s.epoch, pg_get_userbyid(p.proowner) AS owner INTO other
        FROM instaid._find_shard(schema_name) AS s JOIN pg_proc AS p ON p.oid = s.declaration;
        IF FOUND THEN
            RAISE duplicate_function USING
                MESSAGE = format('schema %I is a shard already', schema_name),
                DETAIL = format('It is shard %s%s, with epoch %s.', other.shard_id,
                                ' of role ' || quote_ident(NULLIF(other.owner, current_user)),
                                other.epoch),
                HINT = 'A schema is one shard. Choose another schema if you need another shard.';
        END IF;
        SELECT p.proname, p.proname = 'next_id' AND p.pronargs = 0 AS can_be_adopted,
               instaid._signature(p.oid) AS name
        INTO other FROM pg_proc AS p WHERE p.oid = conflict.routine;
        RAISE duplicate_function USING
            MESSAGE = format('schema %I already has a function %s()', schema_name, other.proname),
            DETAIL = format('It is %s.', other.name),
            HINT = format('Rename it: ALTER ROUTINE %s RENAME TO old_%s; defaults follow it.',
                          other.name, other.proname)
                   || CASE WHEN other.can_be_adopted
                           -- any role could have made a schema instaid_adopt
                           THEN ' Or let adopt_shard() of the extension instaid_adopt replace it.'
                           ELSE '' END;
    END IF;
    IF shard_id IS NULL THEN
        RETURN;
    ELSIF conflict.taken_by IS NOT NULL THEN
        RAISE duplicate_object USING
            MESSAGE = format('shard ID %s is taken by schema %I', shard_id, conflict.taken_by),
            DETAIL = CASE WHEN conflict.taken_by = 'instaid'
                          THEN 'It is the setting instaid.node_shard_id of this server. '
                          ELSE '' END || 'The two shards would issue the same IDs.',
            -- format() of a null is not null
            HINT = COALESCE('Shard ID ' || instaid._free_shard_id(false)
                            || ' is free in this database; instaid.shards lists those that are'
                               ' taken. A copy that is not adopted can use others.',
                            'No shard ID is free in this database: drop a shard that nothing'
                            ' uses. instaid.shards lists them.');
    END IF;

    IF expires_at < clock_timestamp() + interval '5 years' THEN
        RAISE WARNING USING MESSAGE = format('shard %s ends in less than five years', shard_id),
            DETAIL = format('With epoch %s, its IDs end at %s.', epoch, expires_at);
    END IF;
    IF conflict.other_epoch <> epoch THEN
        RAISE NOTICE USING
            MESSAGE = format('epoch %s differs from the epoch of other shards', epoch),
            DETAIL = format('Schema %I has epoch %s. The IDs of the two shards do not sort by time'
                            ' together.', conflict.other_schema, conflict.other_epoch);
    END IF;
END $$;

-- Default privileges must not let other roles create functions beside those of these new shards.
CREATE OR REPLACE FUNCTION instaid._restrict_schemas(schemas text[]) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE (
        SELECT format('REVOKE CREATE ON SCHEMA %s FROM %s', string_agg(quote_ident(s), ', '),
                      instaid._default_grantees())
        FROM unnest(schemas) AS s);
END $$;

CREATE OR REPLACE FUNCTION instaid.create_shard(schema_name text, shard_id integer,
                                     epoch timestamptz DEFAULT instaid.default_epoch(),
                                     sequence_name text DEFAULT 'table_id_seq') RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence CONSTANT text := quote_ident(schema_name) || '.' || quote_ident(sequence_name);
    -- A schema that another role creates after the checks is refused.
    is_missing CONSTANT boolean := to_regnamespace(quote_ident(schema_name)) IS NULL;
BEGIN
    PERFORM instaid._check_no_nulls('create_shard', json_build_object(
        'schema_name', schema_name, 'shard_id', shard_id, 'epoch', epoch,
        'sequence_name', sequence_name));
    PERFORM instaid._check_name('sequence', sequence_name);
    PERFORM instaid._check_new_shard(schema_name, shard_id, epoch);
    IF to_regclass(sequence) IS NOT NULL THEN
        RAISE duplicate_table USING MESSAGE = format('relation %s already exists', sequence),
            HINT = 'Pass another sequence_name, or drop the relation if nothing uses it.';
    END IF;
    IF is_missing THEN
        EXECUTE format('CREATE SCHEMA %I', schema_name);
        PERFORM instaid._restrict_schemas(ARRAY[schema_name]);
    END IF;
    EXECUTE instaid._shard_commands(schema_name, shard_id, epoch, sequence);
    PERFORM instaid._restrict_shards(ARRAY[schema_name]);
END $$;
COMMENT ON FUNCTION instaid.create_shard IS 'make a schema, which is created if it is missing, a '
'shard, with a sequence, next_id() and next_ids(); needs CREATE on the schema, or on the database';
