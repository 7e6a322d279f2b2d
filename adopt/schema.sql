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
