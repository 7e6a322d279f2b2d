/* sql-edition/drop.sql */

-- Drop what is left of the SQL edition in instaid_sql_edition, or in instaid if it was not moved,
-- and in instaid_sql, unless something uses it, as sql-edition/dependants.sql shows.

BEGIN;
SET LOCAL search_path = pg_catalog;
DO $$
DECLARE
    edition CONSTANT regnamespace := COALESCE(to_regnamespace('instaid_sql_edition'),
                                              to_regnamespace('instaid'));
    command text;
    is_dropped boolean := true;
    -- nothing of the edition is called, whose owner need not be trusted any more
    shards text;
    functions text;
BEGIN
    SELECT string_agg(DISTINCT n.nspname, ', '),
           string_agg(p.oid::regprocedure::text, ', ' ORDER BY p.oid)
    INTO shards, functions FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.proname ~ '^(sql_edition_)?next_ids?$' AND n.nspname !~ '^pg_'
      AND strpos(p.prosrc, 'instaid_sql._') > 0;
    IF shards IS NOT NULL THEN
        RAISE 'these shards are left: %', shards USING
            DETAIL = 'Functions of this edition make their IDs: ' || functions,
            HINT = 'If they were moved, drop the functions when sql-edition/dependants.sql shows'
                   ' nothing that uses them.';
    END IF;
    WHILE is_dropped LOOP
        is_dropped := false;
        FOR command IN
            -- what names a schema in its query or its body depends on it, too
            SELECT DISTINCT format('DROP %s %s', o.type, o.identity)
            FROM pg_depend AS d CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS o
            WHERE d.refclassid = 'pg_namespace'::regclass AND d.classid <> 'pg_rewrite'::regclass
              AND d.refobjid IN (edition, 'instaid_sql'::regnamespace)
        LOOP
            BEGIN
                EXECUTE command;
                is_dropped := true;
            EXCEPTION WHEN dependent_objects_still_exist THEN
                -- in a later round
            END;
        END LOOP;
    END LOOP;
    EXECUTE format('DROP SCHEMA %s, instaid_sql', edition);
END
$$;
COMMIT;
