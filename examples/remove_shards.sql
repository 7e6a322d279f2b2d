/* examples/remove_shards.sql */

-- Columns with IDs go on without instaid, in both editions, as docs/operations.md describes: they
-- count on with the sequences of their shards, and the functions of the shards go, with those that
-- do nothing but call next_id(), as adopt_shard() leaves them.  Nothing is dropped that something
-- still uses, and no column.  Run it with psql, as each owner of tables and shards: what belongs to
-- others stays, and is listed at the end.

\set ON_ERROR_STOP on
SET lock_timeout = '5 s';

-- Columns of the type instaid.id become bigint.  This changes no data, and rewrites no table.
CREATE OR REPLACE FUNCTION pg_temp.plain_columns(relation oid) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $$
BEGIN
    PERFORM instaid._check_table_owner(relation);
    EXECUTE format('ALTER TABLE %s %s', relation::regclass, (
        SELECT string_agg(format('ALTER %I TYPE bigint', a.attname), ', ') FROM pg_attribute AS a
        WHERE a.attrelid = relation AND a.atttypid = to_regtype('instaid.id')
          AND a.attnum > 0));
END $$;

-- The columns of one shard.  Tables are locked before its sequences, as by an INSERT.
CREATE OR REPLACE FUNCTION pg_temp.remove_shard(schema_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off SET row_security = off
AS $$
DECLARE
    shard record;
    part record;
    other record;
    value bigint;
    largest bigint;
    users text;
    command text;
BEGIN
    SELECT p.pronamespace AS schema, p.proowner AS owner, s.sequence, s.frozen INTO shard
    FROM instaid._list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration
    WHERE s.schema_name = remove_shard.schema_name;
    PERFORM instaid._check_owner(shard.owner, 'shard', quote_ident(schema_name));
    IF shard.frozen THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('shard %I is frozen', schema_name),
            HINT = format('If it was not moved: SELECT instaid.thaw_shard(%L);', schema_name);
    END IF;
    CREATE TEMPORARY TABLE columns (relid oid, table_name text, column_name text,
                                    sequence oid) ON COMMIT DROP;
    -- What other roles default to its next_id(), or inherit, keeps the functions: DROP names it
    -- below.  To read a child can call functions of its owner.
    INSERT INTO pg_temp.columns
    SELECT i.relid, i.table_name, i.column_name, COALESCE(i.sequence, shard.sequence)
    FROM instaid._id_columns AS i
    WHERE i.maker = shard.schema AND i.owner = shard.owner AND NOT i.is_partition
      AND NOT EXISTS (SELECT FROM instaid._descendants(i.relid) AS d WHERE d.owner <> i.owner);
    FOR part IN SELECT DISTINCT c.relid, c.table_name FROM pg_temp.columns AS c ORDER BY c.relid
    LOOP
        PERFORM instaid._check_table_owner(part.relid);
        EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', part.table_name);
        PERFORM instaid._check_table_owner(d.relid) FROM instaid._descendants(part.relid) AS d;
    END LOOP;
    SELECT c.table_name, c.column_name, t.oid::regtype AS type,
           pg_get_expr(d.adbin, d.adrelid) AS default_text INTO part
    FROM pg_temp.columns AS c JOIN pg_attrdef AS d ON d.adrelid = c.relid
         JOIN pg_attribute AS a ON a.attrelid = c.relid AND a.attnum = d.adnum
                               AND quote_ident(a.attname) = c.column_name
         JOIN pg_type AS t ON t.oid = a.atttypid AND t.typcategory <> 'N' LIMIT 1;
    IF FOUND THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('column %s.%s is of type %s', part.table_name, part.column_name,
                             part.type),
            DETAIL = format('Its default is %s. Its largest ID is not known.', part.default_text),
            HINT = format('Give it another default, for example of a sequence that begins above'
                          ' its IDs: ALTER TABLE %s ALTER %s SET DEFAULT ...;', part.table_name,
                          part.column_name);
    END IF;
    FOR part IN SELECT DISTINCT c.sequence::regclass AS name FROM pg_temp.columns AS c
    LOOP
        PERFORM instaid._check_owner(c.relowner, 'sequence', part.name::text)
        FROM pg_class AS c WHERE c.oid = part.name;
        largest := NULL;
        FOR other IN SELECT c.* FROM pg_temp.columns AS c WHERE c.sequence = part.name
        LOOP
            EXECUTE format('SELECT max(%s)::bigint FROM %s', other.column_name, other.table_name)
            INTO value;
            largest := GREATEST(largest, value);
        END LOOP;
        -- unlike setval(), it is undone if a later step fails
        IF largest IS NOT NULL THEN
            EXECUTE format('ALTER SEQUENCE %s RESTART WITH %s', part.name,
                           GREATEST(largest, pg_sequence_last_value(part.name)) + 1);
        END IF;
        -- who could take IDs can count on
        FOR command IN
            SELECT format('GRANT USAGE ON SEQUENCE %s TO %s', part.name,
                          CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END)
            FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS x
            WHERE p.pronamespace = shard.schema AND p.proname = 'next_id' AND p.prosecdef
              AND x.grantee <> p.proowner
        LOOP
            EXECUTE command;
        END LOOP;
        -- what it counts from now on are no ticks
        EXECUTE format('COMMENT ON SEQUENCE %s IS NULL', part.name);
    END LOOP;
    FOR part IN SELECT c.* FROM pg_temp.columns AS c LOOP
        EXECUTE format('ALTER TABLE %s ALTER %s SET DEFAULT nextval(%L)', part.table_name,
                       part.column_name, part.sequence::regclass);
    END LOOP;
    BEGIN
        SELECT format('DROP FUNCTION %s', string_agg(
            format('%I.%I(%s)', schema_name, p.proname, pg_get_function_identity_arguments(p.oid)),
            ', ')) INTO command
        FROM pg_proc AS p
        WHERE p.pronamespace = shard.schema AND p.proowner = shard.owner
          AND (p.proname = 'next_id' AND p.pronargs = 0 OR p.proname IN ('next_id', 'next_ids')
               AND (p.proargtypes[p.pronargs - 1] IN (
                        'regclass'::regtype, to_regtype(format('%I.id_sequence', schema_name))))
                   IS TRUE
               -- of adopt_shard() and replace_copy()
               OR replace(pg_get_function_sqlbody(p.oid), format('%I.next_id()', schema_name), '')
                  ~ '^RETURN (CASE\s+WHEN .* THEN\s+ELSE NULL::bigint\s+END)?$');
        EXECUTE command;
    EXCEPTION WHEN dependent_objects_still_exist THEN
        GET STACKED DIAGNOSTICS users = PG_EXCEPTION_DETAIL;
        RAISE dependent_objects_still_exist USING
            MESSAGE = format('functions of shard %I are still used', schema_name), DETAIL = users,
            HINT = 'Drop what uses them, or change it, and run this file again.';
    END;
    IF to_regnamespace('instaid_sql') IS NOT NULL
       AND NOT EXISTS (SELECT FROM pg_language WHERE lanname = 'instaid') THEN
        EXECUTE format('DROP DOMAIN %1$I.id_sequence; DROP VIEW IF EXISTS %1$I.id_sequence_lock',
                       schema_name);
    END IF;
END $$;

-- A transaction each.  What belongs to others is left to them.
SELECT pg_catalog.format('SELECT pg_temp.plain_columns(%s::pg_catalog.oid)', c.oid)
FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid
WHERE a.atttypid = pg_catalog.to_regtype('instaid.id') AND a.attinhcount = 0
  AND c.relkind IN ('r', 'p') AND pg_catalog.pg_get_userbyid(c.relowner) = current_user
  AND NOT EXISTS (SELECT FROM instaid._descendants(c.oid) AS d WHERE d.owner <> c.relowner)
GROUP BY c.oid \gexec
SELECT pg_catalog.format('SELECT pg_temp.remove_shard(%L::pg_catalog.text)', s.schema_name)
FROM instaid._list_shards() AS s JOIN pg_catalog.pg_proc AS p ON p.oid = s.declaration
WHERE s.schema_name <> 'instaid' AND pg_catalog.pg_get_userbyid(p.proowner) = current_user
ORDER BY s.schema_name \gexec
SELECT DISTINCT pg_catalog.pg_get_userbyid(o.owner) AS "connect as these roles for the rest"
FROM (SELECT p.proowner FROM instaid._list_shards() AS s JOIN pg_catalog.pg_proc AS p
           ON p.oid = s.declaration WHERE s.schema_name <> 'instaid'
      UNION ALL
      SELECT c.relowner FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_class AS c
           ON c.oid = a.attrelid
      WHERE a.atttypid = pg_catalog.to_regtype('instaid.id') AND a.attinhcount = 0
        AND c.relkind IN ('r', 'p')) AS o (owner) ORDER BY 1;
