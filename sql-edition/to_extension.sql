/* sql-edition/to_extension.sql */

-- Make the shards of this edition, whose schema instaid has been renamed, shards of the extension
-- (docs/sql-edition.md).
-- Run it with psql, on a connection without a pooler: what it creates ends with the session.

BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
DO $$
BEGIN
    -- functions of this edition have the same names
    IF NOT EXISTS (SELECT FROM pg_language WHERE lanname = 'instaid') THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'sql-edition/to_extension.sql needs the extension instaid',
            DETAIL = 'It is not installed in this database.',
            HINT = 'Do first what "To the extension" in sql-edition.md says.';
    END IF;
END $$;

-- Their functions have a parameter of a type of the schema, and call those of instaid_sql.
CREATE OR REPLACE TEMPORARY VIEW shards_to_move AS
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

-- Make one of them a shard of the extension.
-- ALTER SEQUENCE waits for all who have taken IDs.  What comes later waits at its first look
-- at the sequence, and then continues in the extension.  A statement for several rows goes on
-- with the old functions, by their OIDs: they are renamed, not dropped.
CREATE OR REPLACE FUNCTION pg_temp.move_shard(schema_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET timezone = 'UTC'
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    main CONSTANT oid := instaid._find_function(schema_name, 'next_id', '');
    shard record;
    tables regclass[];
    part record;
    last bigint;
BEGIN
    SELECT s.* INTO shard FROM pg_temp.shards_to_move AS s
    WHERE s.schema_name = move_shard.schema_name;
    IF NOT FOUND THEN
        RAISE undefined_object USING
            MESSAGE = format('schema %I is not a shard of the SQL edition', schema_name);
    END IF;
    PERFORM instaid._check_owner(shard.owner, 'schema', quote_ident(schema_name));
    PERFORM instaid._check_new_shard(schema_name, shard.shard_id, shard.epoch,
                                     COALESCE(main, shard.next_id));
    SELECT n.nspowner::regrole AS owner INTO part FROM pg_namespace AS n
    WHERE n.oid = shard.schema AND NOT instaid._can_trust(shard.owner, n.nspowner);
    IF FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('schema %I belongs to another role than its shard', schema_name),
            DETAIL = format('Role %s could put functions in the place of those of %s meanwhile.',
                            part.owner, shard.owner),
            HINT = format('Give it to this role: ALTER SCHEMA %I OWNER TO %s;', schema_name,
                          shard.owner);
    END IF;

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
    PERFORM instaid._execute_as(shard.owner, format(
        'GRANT EXECUTE ON FUNCTION %1$I.next_id(), %1$I.next_id(regclass),'
        ' %1$I.next_ids(integer, regclass) TO %2$s', schema_name,
        CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END))
    FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS x
    WHERE p.oid = shard.next_id AND x.grantee <> p.proowner;

    -- A default of another form goes on with the old function.
    PERFORM instaid._execute_as(shard.owner, format(
        'ALTER TABLE ONLY %s ALTER %s SET DEFAULT %I.next_id(%s)', a.table_name, a.column_name,
        schema_name, m.sequence[1]))
    FROM instaid._defaults AS a
         -- pg_get_expr() waits for a lock on the table: it must not read those of others
         CROSS JOIN LATERAL regexp_match(
             CASE WHEN a.relid = ANY (tables)
                  THEN replace(pg_get_expr(a.expression, a.relid),
                               format('%I.sql_edition_next_id(', schema_name), 'old(') END,
             '^old\((?:\((''.*''::regclass)\)::[^()]*)?\)$') AS m (sequence)
    WHERE a.relid = ANY (tables) AND m.sequence IS NOT NULL;
    PERFORM instaid.freeze_shard(schema_name) WHERE shard.is_frozen;
END $$;
COMMIT;

-- A transaction each.  A shard that cannot be moved stays as it is, and psql goes on.
SELECT pg_catalog.format('SELECT pg_temp.move_shard(%L)', s.schema_name)
FROM pg_temp.shards_to_move AS s ORDER BY s.schema_name \gexec
