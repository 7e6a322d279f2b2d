/* sql-edition/adopting.sql */

-- Adopting what exists, in the schema instaid_adopt: for psql, as the role that ran all.sql, whose
-- version it must have.  The schema holds nothing, and can be dropped when it has done its work.
\set caller_on_error_stop :ON_ERROR_STOP
\set ON_ERROR_STOP on
BEGIN;
-- What follows is parsed now, and must not find what another role has put into a schema.
DO $$ BEGIN PERFORM pg_catalog.set_config('search_path', 'pg_catalog', true); END $$;

DO $$
DECLARE
    version CONSTANT text := '1.0';
    there CONSTANT text := (
        SELECT substring(obj_description(s.oid, 'pg_namespace'), '([0-9.]+), SQL edition$')
        FROM pg_namespace AS s JOIN pg_namespace AS i USING (nspowner)
        WHERE s.nspname = 'instaid_sql' AND i.nspname = 'instaid'
          AND pg_get_userbyid(nspowner) = current_user);
BEGIN
    IF pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.<>) 'pg_catalog' THEN
        RAISE no_active_sql_transaction USING
            MESSAGE = 'adopting must be installed in one transaction',
            DETAIL = 'This statement is in another transaction than the one before it.',
            HINT = 'Send all statements as one string, or run their file by psql -1 -f.';
    ELSIF there IS DISTINCT FROM version
          OR EXISTS (SELECT FROM pg_language AS l WHERE l.lanname = 'instaid') THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('role %I has not installed the SQL edition of instaid %s',
                             current_user, version),
            DETAIL = COALESCE(format('Its version is %s.', there), 'It does not exist here, or'
                              ' belongs to another role.'),
            HINT = 'Run sql-edition/all.sql of this version first. With the extension instaid:'
                   ' CREATE EXTENSION instaid_adopt;';
    ELSIF to_regnamespace('instaid_adopt') IS NOT NULL THEN
        RAISE duplicate_schema USING MESSAGE = 'schema "instaid_adopt" already exists',
            HINT = 'Run nothing in it. Rename it, or DROP SCHEMA instaid_adopt CASCADE; and run'
                   ' this file again.';
    END IF;
    EXECUTE format('CREATE SCHEMA instaid_adopt; REVOKE ALL ON SCHEMA instaid_adopt FROM %s;'
                   ' GRANT USAGE ON SCHEMA instaid_adopt TO PUBLIC; COMMENT ON SCHEMA'
                   ' instaid_adopt IS ''adopting what exists: instaid %s, SQL edition''',
                   instaid._default_grantees(), version);
    -- for rights.sql
    PERFORM set_config('instaid_files.known', array_agg(d.objid)::text, true)
    FROM pg_depend AS d
    WHERE d.refclassid = 'pg_namespace'::regclass
      AND d.refobjid IN ('instaid'::regnamespace, 'instaid_sql'::regnamespace);
END $$;

---- What this edition does in its own way ----

-- Refuse to work with another version of instaid, whose private functions can be others, or with
-- the extension.
CREATE FUNCTION instaid_adopt._check_version() RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    here CONSTANT text := obj_description('instaid_adopt'::regnamespace, 'pg_namespace');
    there CONSTANT text := obj_description(to_regnamespace('instaid_sql'), 'pg_namespace');
    is_extension CONSTANT boolean := EXISTS (SELECT FROM pg_language AS l
                                             WHERE l.lanname = 'instaid');
BEGIN
    IF is_extension OR substring(here, '[0-9.]+, ') IS DISTINCT FROM substring(there, '[0-9.]+, ')
    THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('this instaid_adopt works only with %s', substring(here, ': (.*)')),
            HINT = 'DROP SCHEMA instaid_adopt CASCADE; It holds nothing. Then '
                   || CASE WHEN is_extension THEN 'CREATE EXTENSION instaid_adopt;'
                      ELSE 'run sql-edition/adopting.sql of the version of instaid.' END;
    END IF;
END $$;

-- The command that puts a next_id() of a shard in the place of this function.
CREATE FUNCTION instaid_adopt._next_id_command(schema_name text, function oid, sequence regclass)
    RETURNS text LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('CREATE OR REPLACE FUNCTION %1$I.next_id(%2$s) RETURNS bigint LANGUAGE sql'
                  ' VOLATILE PARALLEL UNSAFE %3$s RETURN %1$I.next_id(%4$L::regclass)',
                  schema_name, pg_get_function_arguments(p.oid),
                  CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END, sequence)
    FROM pg_proc AS p WHERE p.oid = function
$$;

-- Wait for all who have used the sequence of a shard.
CREATE FUNCTION instaid_adopt._hold_position(schema_name text, sequence regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._lock_shard(schema_name, 'adopt_shard');
END $$;

-- Replace a next_id() that is adopted; its sequence goes on above this ID, and above the IDs of
-- all calls that have ended.  Those can be a millisecond ahead of the clock, if they round up.
-- ALTER SEQUENCE waits for all who have used the sequence, and keeps others out.
-- The replaced function keeps its OID, its owner, its rights, and the name of its result.
CREATE FUNCTION instaid_adopt._replace_next_id(
    schema_name text, shard_id integer, epoch timestamptz, adopted oid, sequence regclass,
    above bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    epoch_ms CONSTANT bigint := extract(epoch FROM epoch) * 1000;
    users text;
    is_usage boolean;
BEGIN
    PERFORM instaid._prepare_sequence(sequence, shard_id, epoch_ms, false);
    PERFORM setval(sequence, make_id, true)
    FROM instaid.make_id(GREATEST(instaid.extract_timestamp(above, epoch),
                                  clock_timestamp() + interval '1 ms'), shard_id,
                         instaid_sql._max_sequence(), epoch);
    PERFORM instaid_sql._declare(schema_name, shard_id, epoch_ms, sequence, adopted => true);
    PERFORM instaid._restrict_shards(ARRAY[schema_name]);
    EXECUTE instaid_adopt._next_id_command(schema_name, adopted, sequence);
    -- Who could take values of the sequence for the published function can take IDs.
    SELECT instaid._others_with('^U', c.relacl, c.relowner),
           instaid._others_with('UPDATE', c.relacl, c.relowner) IS NULL
    INTO users, is_usage FROM pg_class AS c WHERE c.oid = sequence;
    IF users IS NOT NULL THEN
        EXECUTE format('GRANT EXECUTE ON FUNCTION %1$I.next_id(%1$I.id_sequence),'
                       ' %1$I.next_ids(integer, %1$I.id_sequence) TO %2$s', schema_name, users);
        RAISE WARNING USING MESSAGE = format('other roles have rights on sequence %s', sequence),
            DETAIL = format('They are: %s. They now have EXECUTE on the functions of the shard,'
                            ' and could still %s.', users,
                            CASE WHEN is_usage THEN 'take values, which the shard leaves out'
                                 ELSE 'set the sequence back' END),
            HINT = format('When the transactions of now have ended: REVOKE ALL ON SEQUENCE %s'
                          ' FROM %s;', sequence, users);
    END IF;
END $$;

\ir ../adopt/copies.sql

\ir ../adopt/evidence.sql

\ir ../adopt/adopt_shard.sql

\ir ../adopt/replace_copy.sql

\ir ../adopt/adopt_column.sql

\ir rights.sql
COMMIT;
\set ON_ERROR_STOP :caller_on_error_stop
\unset caller_on_error_stop
