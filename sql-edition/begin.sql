/* sql-edition/begin.sql */

-- How each file but schema.sql begins: psql includes this.

BEGIN;
-- What follows is parsed now, and must not find a type, an operator or a function that another
-- role has put into a schema of the search path.
DO $$ BEGIN PERFORM pg_catalog.set_config('search_path', 'pg_catalog', true); END $$;
DO $$
DECLARE
    version CONSTANT text := '1.0';
    there text;
BEGIN
    -- Who owns the schema instaid made _begin_file(), which runs with the rights of this role.
    SELECT substring(obj_description(s.oid, 'pg_namespace'), '([0-9.]+), SQL edition$') INTO there
    FROM pg_namespace AS s JOIN pg_namespace AS i ON i.nspname = 'instaid'
    WHERE s.nspname = 'instaid_sql' AND pg_get_userbyid(i.nspowner) = current_user;
    IF there IS DISTINCT FROM version THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'sql-edition/schema.sql must be run first',
            DETAIL = COALESCE(
                'This file has version ' || version || ', and version ' || there || ' is there.',
                format('Role %I has not run it in this database.', current_user)),
            HINT = format('Run that file of version %s, as the same role.', version);
    END IF;
END $$;
