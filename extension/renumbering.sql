-- Write another shard ID into a declaration.  To freeze waits for all calls; to thaw leaves the
-- millisecond, in which IDs of a smaller shard ID would be below those that were issued.  A shard
-- that was frozen leaves it, too, so that settled_id() does not go back.
CREATE FUNCTION instaid._change_shard_id(declaration oid, sequence regclass, shard_id integer)
    RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard record;
BEGIN
    PERFORM instaid._sequence_owner(declaration, sequence);
    -- nobody else freezes or thaws it
    PERFORM instaid._lock_sequence(sequence);
    SELECT s.* INTO shard FROM instaid._list_shards() AS s WHERE s.declaration = $1;
    PERFORM instaid._set_frozen(shard.schema_name, true);
    PERFORM instaid._execute_as(p.proowner, regexp_replace(
        pg_get_functiondef(p.oid), E'(.*shard )\\d+', E'\\1' || shard_id))
    FROM pg_proc AS p WHERE p.oid = declaration;
    -- by its name, which can have become that of another function
    IF NOT EXISTS (SELECT FROM instaid._list_shards() AS s
                   WHERE s.declaration = $1 AND s.shard_id = $3) THEN
        RAISE serialization_failure USING
            MESSAGE = 'the shard was renamed or replaced meanwhile', HINT = 'Try again.';
    END IF;
    PERFORM instaid._set_frozen(shard.schema_name, false);
    PERFORM instaid._set_frozen(shard.schema_name, true) WHERE shard.frozen;
END $$;

-- include common/renumbering.sql

---- Shards of the SQL edition ----

-- Their functions have a parameter of a type of the schema, and call those of instaid_sql.
CREATE VIEW instaid._sql_edition_shards AS
    SELECT p.pronamespace AS schema, n.nspname AS schema_name, p.oid AS next_ids,
           f.oid AS next_id, p.proowner::regrole AS owner, q.seqrelid AS sequence,
           instaid.extract_shard_id(q.seqmax) AS shard_id,
           to_timestamp(q.seqmin / 1000.0) AS epoch,
           q.seqmax < instaid.min_id('infinity') AS is_frozen
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
         JOIN pg_proc AS f ON f.pronamespace = p.pronamespace AND f.proname = 'next_id'
                          AND f.pronargs = 1 AND f.proargtypes[0] = p.proargtypes[1]
         JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
                            AND d.refclassid = 'pg_class'::regclass
         JOIN pg_sequence AS q ON q.seqrelid = d.refobjid
    WHERE p.proname = 'next_ids' AND p.pronargs = 2 AND n.nspname !~ '^pg_'
      AND strpos(p.prosrc, 'instaid_sql._next_ids(') > 0
      -- An epoch is a time from 1990 to 2100; of other values, to_timestamp() can fail.
      AND q.seqmin BETWEEN 631152000001 AND 4102444800000;

-- Make one of them a shard of the extension: one that is in use, as for
-- sql-edition/to_extension.sql, or one that instaid-move has restored.
-- ALTER SEQUENCE waits for all who have taken IDs.  What comes later waits at its first look
-- at the sequence, and then continues in the extension.  A statement for several rows goes on
-- with the old functions, by their OIDs: they are renamed, not dropped.
CREATE FUNCTION instaid._convert_shard(schema_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET timezone = 'UTC'
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    main CONSTANT oid := instaid._find_function(schema_name, 'next_id', '');
    shard record;
    tables regclass[];
    defaults text[];
    other_type CONSTANT text := 'id_sequence_' || gen_random_uuid();
    part record;
    last bigint;
BEGIN
    SELECT s.* INTO shard FROM instaid._sql_edition_shards AS s
    WHERE s.schema_name = _convert_shard.schema_name;
    IF NOT FOUND THEN
        RAISE undefined_object USING
            MESSAGE = format('schema %I is not a shard of the SQL edition', schema_name);
    END IF;
    PERFORM instaid._check_owner(shard.owner, 'schema', quote_ident(schema_name));
    PERFORM instaid._check_new_shard(schema_name, shard.shard_id, shard.epoch,
                                     COALESCE(main, shard.next_id));
    PERFORM instaid._check_ruler(shard.owner, schema_name, shard.next_id);

    -- The tables are locked before the sequences, as by an INSERT.
    tables := ARRAY(
        SELECT DISTINCT a.relid FROM pg_depend AS d JOIN instaid._defaults AS a ON a.oid = d.objid
               JOIN pg_roles AS o ON o.oid = a.owner
        WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_proc'::regclass
          AND d.refobjid = shard.next_id AND a.owner = shard.owner
          AND (NOT o.rolsuper OR instaid._is_superusers_schema(a.schema)) ORDER BY a.relid);
    PERFORM instaid._execute_as(shard.owner, format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE',
                                                    t)) FROM unnest(tables) AS t;
    FOR part IN
        SELECT c.oid::regclass AS name
        FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.refobjid AND c.relkind = 'S'
             LEFT JOIN pg_constraint AS k ON d.classid = 'pg_constraint'::regclass
                                         AND k.oid = d.objid
             LEFT JOIN pg_type AS t ON t.oid = k.contypid AND t.typnamespace = shard.schema
        WHERE d.refclassid = 'pg_class'::regclass AND c.relowner = shard.owner
          AND (t.oid IS NOT NULL OR d.classid = 'pg_proc'::regclass AND d.objid = shard.next_ids)
        -- in the order of freeze_shard(), which another session can call
        GROUP BY c.oid ORDER BY c.oid <> shard.sequence, c.oid
    LOOP
        PERFORM instaid._lock_sequence(part.name);
        last := pg_sequence_last_value(part.name);
        PERFORM instaid._alter_sequence(shard.owner, part.name, 'AS bigint INCREMENT BY 1'
            ' NO MINVALUE NO MAXVALUE START WITH 1 RESTART CACHE 1 NO CYCLE');
        PERFORM instaid.advance_past(part.name, last, shard.epoch);
    END LOOP;

    -- The text of a default, without its cast to the old type, will call the next_id() of the
    -- extension.  So that no string in it is taken for this cast, the type has another name.
    PERFORM instaid._execute_as(shard.owner, format('ALTER DOMAIN %I.id_sequence RENAME TO %I',
                                                    schema_name, other_type));
    defaults := ARRAY(
        SELECT format('ALTER TABLE ONLY %s ALTER %s SET DEFAULT %s', a.table_name, a.column_name,
                      replace(pg_get_expr(a.expression, a.relid),
                              format('::%I.%I', schema_name, other_type), ''))
        FROM instaid._defaults AS a
             JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid
                                AND d.refclassid = 'pg_proc'::regclass
                                AND d.refobjid = shard.next_id
        WHERE a.relid = ANY (tables));
    PERFORM instaid._execute_as(shard.owner, format('ALTER DOMAIN %I.%I RENAME TO id_sequence',
                                                    schema_name, other_type));

    PERFORM instaid._execute_as(shard.owner, format(
        'DROP VIEW IF EXISTS %1$I.id_sequence_lock;'
        ' ALTER FUNCTION %1$I.next_id(%2$s) RENAME TO sql_edition_next_id;'
        ' ALTER FUNCTION %1$I.next_ids(integer, %2$s) RENAME TO sql_edition_next_ids; %3$s;'
        -- As before, no role needs a right on the sequence.
        ' ALTER FUNCTION %1$I.next_id(regclass) SECURITY DEFINER;'
        ' ALTER FUNCTION %1$I.next_ids(integer, regclass) SECURITY DEFINER;'
        ' REVOKE ALL ON FUNCTION %1$I.next_id(), %1$I.next_id(regclass),'
        ' %1$I.next_ids(integer, regclass) FROM PUBLIC', schema_name, p.proargtypes[0]::regtype,
        instaid._declaration_commands(schema_name, shard.shard_id, shard.epoch,
                                      shard.sequence::regclass::text, true,
                                      COALESCE(pg_get_function_arguments(main), ''),
                                      'SECURITY DEFINER')))
    FROM pg_proc AS p WHERE p.oid = shard.next_id;
    -- Default privileges must not let other roles take IDs.
    PERFORM instaid._execute_as(shard.owner, format(
        'REVOKE ALL ON FUNCTION %s FROM %s', p.oid::regprocedure, x.grantee::regrole))
    FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS x
    WHERE x.grantee <> p.proowner AND p.oid <> COALESCE(main, 0)
      AND p.oid IN (instaid._find_function(schema_name, 'next_id', ''),
                    instaid._find_function(schema_name, 'next_id', '2205'),
                    instaid._find_function(schema_name, 'next_ids', '23 2205'));
    PERFORM instaid._execute_as(shard.owner, format(
        'GRANT EXECUTE ON FUNCTION %1$I.next_id(), %1$I.next_id(regclass),'
        ' %1$I.next_ids(integer, regclass) TO ', schema_name)
        || instaid._others_with('EXECUTE', p.proacl, p.proowner))
    FROM pg_proc AS p WHERE p.oid = shard.next_id;

    PERFORM instaid._execute_as(shard.owner, d) FROM unnest(defaults) AS d;
    PERFORM instaid.freeze_shard(schema_name) WHERE shard.is_frozen;
END $$;
