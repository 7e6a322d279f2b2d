-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION instaid" to load this file. \quit

---- Schema ----

-- Not by the control file's "schema": it must be new, be dropped with the extension, and belong to
-- a superuser, since its owner could add functions that are found in place of ours.  Another role
-- may be adding something to an empty one, in a session whose changes are not visible yet.
DO $$
DECLARE
    owner CONSTANT regrole := (SELECT nspowner FROM pg_namespace WHERE nspname = 'instaid');
BEGIN
    IF owner IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'schema "instaid" already exists',
            DETAIL = format('It belongs to role %s.', owner),
            HINT = CASE WHEN to_regnamespace('instaid_sql') IS NULL THEN 'Run '
                        ELSE 'If you trust that role, and it is the SQL edition, do as "To'
                             ' the extension" in sql-edition.md says. Otherwise run ' END
                   || 'nothing in it. Rename or drop it, and create the extension again.';
    END IF;
    EXECUTE format('CREATE SCHEMA instaid AUTHORIZATION %s',
                   (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'pg_catalog'));
END $$;
COMMENT ON SCHEMA instaid IS 'Instagram-style IDs: 64 bits, sorted by time, with their shard ID';

-- Fails if the loaded library is older than that version; each script calls this first.
CREATE FUNCTION instaid._check_library(version text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_check_library';
SELECT instaid._check_library('VERSION');

-- include common/checks.sql

---- Checks that need C ----

-- Run a command as a role that the caller can SET ROLE to, and return its first value.
CREATE FUNCTION instaid._execute_as(role regrole, command text) RETURNS text
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_execute_as';

-- Refuse a name that is too long, or empty.
-- Functions take names as text, because a cast to name truncates those that are too long.
CREATE FUNCTION instaid._check_name(what text, name text) RETURNS void
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_check_name';
