/* sql-edition/schema.sql */

-- instaid where C is refused: SQL and PL/pgSQL only, without a superuser or a setting.
--
-- all.sql runs all files in psql, as a role with CREATE on the database, in one transaction.  This
-- one comes first, and rights.sql last.  Newer files update what older ones made.
--
-- Schema instaid has the functions of the extension instaid, with their names and arguments.
-- Schema instaid_sql has what the functions of shards call.  Dumps of shards name those
-- functions, so their names and arguments never change.  It also has what functions that read
-- IDs call by name: a view or a generated column still uses them when the schema instaid is
-- renamed to make room for the extension.

-- What follows is parsed now, and must not find a type, an operator or a function that another
-- role has put into a schema of the search path.
DO $$ BEGIN PERFORM pg_catalog.set_config('search_path', 'pg_catalog', true); END $$;

-- What is there already
DO $$
DECLARE
    version CONSTANT text := '1.0';
    there text;
    part record;
BEGIN
    IF pg_catalog.current_setting('search_path') OPERATOR(pg_catalog.<>) 'pg_catalog' THEN
        RAISE no_active_sql_transaction USING
            MESSAGE = 'the SQL edition must be installed in one transaction',
            DETAIL = 'This statement is in another transaction than the one before it.',
            HINT = 'Send all statements as one string, or run their file by psql -1 -f.';
    END IF;
    SELECT substring(obj_description(s.oid, 'pg_namespace'), '([0-9.]+), SQL edition$') INTO there
    FROM pg_namespace AS s JOIN pg_namespace AS i ON i.nspname = 'instaid'
    WHERE s.nspname = 'instaid_sql';
    FOR part IN
        SELECT n.nspname, n.nspowner::regrole AS owner, e.extname, e.extversion,
               pg_get_userbyid(n.nspowner) = current_user AS is_own
        FROM pg_namespace AS n
             LEFT JOIN pg_depend AS d ON d.classid = 'pg_namespace'::regclass AND d.objid = n.oid
                                     AND d.refclassid = 'pg_extension'::regclass
             LEFT JOIN pg_extension AS e ON e.oid = d.refobjid
        WHERE n.nspname IN ('instaid', 'instaid_sql')
        ORDER BY e.extname, n.nspname
    LOOP
        -- pg_tle makes an extension of this edition, which has no language
        IF part.extname IS NOT NULL AND EXISTS (SELECT FROM pg_language AS l
                                                WHERE l.lanname = 'instaid') THEN
            RAISE duplicate_object USING
                MESSAGE = format('extension "%s" is installed', part.extname),
                DETAIL = format('It has version %s, and the functions of this file.',
                                part.extversion),
                HINT = 'Use the extension. '
                       '"Back from the extension" in sql-edition.md leads here.';
        ELSIF NOT part.is_own OR there IS NULL THEN
            RAISE duplicate_schema USING
                MESSAGE = format('schema "%s" already exists', part.nspname),
                DETAIL = format('It belongs to role %s, and %s.', part.owner,
                                COALESCE('the SQL edition of instaid ' || there || ' is there',
                                         'is no part of a complete instaid')),
                HINT = CASE WHEN there IS NULL
                            THEN 'Run nothing in it. Rename or drop it, and run this file again.'
                            ELSE format('To update it: SET ROLE %s;', part.owner) END;
        END IF;
    END LOOP;
    IF string_to_array(there, '.')::integer[] > string_to_array(version, '.')::integer[] THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('the SQL edition of instaid %s is installed', there),
            DETAIL = format('This file has version %s, which is older.', version),
            HINT = 'Run the files of that version, or of a later one.';
    END IF;
    -- CREATE OR REPLACE would keep their owner
    SELECT pg_describe_object(o.class, o.oid, 0) AS name, o.owner::regrole
    INTO part FROM pg_namespace AS n JOIN (
        SELECT tableoid, oid, pronamespace, proowner FROM pg_proc
        UNION ALL SELECT tableoid, oid, relnamespace, relowner FROM pg_class
        UNION ALL SELECT tableoid, oid, typnamespace, typowner FROM pg_type
        UNION ALL SELECT tableoid, oid, oprnamespace, oprowner FROM pg_operator
    ) AS o (class, oid, schema, owner) ON o.schema = n.oid AND o.owner <> n.nspowner
        JOIN pg_roles AS r ON r.oid = o.owner
    WHERE n.nspname IN ('instaid', 'instaid_sql') AND NOT r.rolsuper LIMIT 1;
    IF FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s belongs to another role', part.name),
            DETAIL = format('Its owner is %s, who could replace it.', part.owner),
            HINT = 'Drop it if it is no part of instaid, and run this file again.';
    END IF;
    FOR part IN
        SELECT s.name FROM unnest('{instaid,instaid_sql}'::text[]) AS s (name)
        WHERE to_regnamespace(s.name) IS NULL
    LOOP
        BEGIN
            EXECUTE format('CREATE SCHEMA %s', part.name);
        EXCEPTION WHEN unique_violation THEN
            RAISE object_in_use USING
                MESSAGE = format('another session has just created schema %s', part.name),
                DETAIL = 'It can have installed the SQL edition of instaid at the same time.',
                HINT = 'Run this file again: it updates what is there.';
        END;
        -- Default privileges must not let another role create a function here: next_id() would
        -- call it with the rights of its owner.
        EXECUTE (
            SELECT format('REVOKE ALL ON SCHEMA %1$s FROM %2$s;'
                          ' GRANT USAGE ON SCHEMA %1$s TO PUBLIC', part.name,
                          concat_ws(', ', 'PUBLIC', string_agg(x.grantee::regrole::text, ', ')))
            FROM pg_namespace AS n CROSS JOIN LATERAL aclexplode(n.nspacl) AS x
            WHERE n.nspname = part.name AND x.grantee NOT IN (0, n.nspowner));
    END LOOP;
    -- for rights.sql
    PERFORM set_config('instaid_files.known', array_agg(d.objid)::text, true)
    FROM pg_depend AS d
    WHERE d.refclassid = 'pg_namespace'::regclass
      AND d.refobjid IN ('instaid'::regnamespace, 'instaid_sql'::regnamespace);
    EXECUTE format('COMMENT ON SCHEMA instaid_sql IS %L',
                   format('what the functions of shards call: instaid %s, SQL edition', version));
END $$;
COMMENT ON SCHEMA instaid IS
'Instagram-style IDs: 64 bits, sorted by time, with the number of the shard; SQL edition';

\ir ../common/checks.sql

---- The layout of an ID ----

--     bit 63                          23 22          10 9          0
--         +-----------------------------+--------------+------------+
--         | 41 bits: ms since the epoch | 13: shard ID | 10: count  |
--         +-----------------------------+--------------+------------+
--
-- The widths stand here only.  What follows from them is in functions that return a constant:
-- PostgreSQL calls such a function once, when it plans an expression.  _declare() writes the
-- constants into the functions of a shard.
DO $$
DECLARE
    shard_id_bits CONSTANT integer := 13;
    sequence_bits CONSTANT integer := 10;
    ms_shift CONSTANT integer := shard_id_bits + sequence_bits;
    max_shard_id CONSTANT integer := (1 << shard_id_bits) - 1;
    shard_id_mask CONSTANT bigint := max_shard_id::bigint << sequence_bits;
    last_ms CONSTANT bigint := 9223372036854775807 >> ms_shift;
BEGIN
    EXECUTE (
        SELECT string_agg(format('CREATE OR REPLACE FUNCTION %1$s() RETURNS %2$s LANGUAGE sql'
                                 ' IMMUTABLE STRICT PARALLEL SAFE RETURN %2$s %3$L', n.name,
                                 n.type, n.value), '; ')
        FROM (VALUES
            ('instaid._max_shard_id', 'integer', max_shard_id),
            ('instaid_sql._max_shard_id', 'integer', max_shard_id),
            ('instaid_sql._sequence_bits', 'integer', sequence_bits),
            ('instaid_sql._max_sequence', 'integer', (1 << sequence_bits) - 1),
            ('instaid_sql._ms_shift', 'integer', ms_shift),
            -- the bits below the time, and those of the shard ID alone, and with the sign
            ('instaid_sql._low_bits', 'bigint', (1::bigint << ms_shift) - 1),
            ('instaid_sql._shard_id_mask', 'bigint', shard_id_mask),
            ('instaid_sql._sign_and_shard_id_mask', 'bigint', 1::bigint << 63 | shard_id_mask),
            -- the last millisecond of positive IDs, and of all
            ('instaid_sql._last_ms', 'bigint', last_ms),
            ('instaid_sql._max_ms', 'bigint', last_ms << 1 | 1)) AS n (name, type, value));
END $$;

-- With an epoch before this, the time of each bigint is a timestamp.
CREATE OR REPLACE FUNCTION instaid_sql._end_of_epochs() RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (timestamp '294276-12-31 23:59:59.999'
            - (instaid_sql._max_ms() - 1) * interval '1 ms') AT TIME ZONE 'UTC';

-- The last ID of a shard in a millisecond.
CREATE OR REPLACE FUNCTION instaid_sql._last_in_ms(ms bigint, shard_id integer) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN (ms << instaid_sql._ms_shift()) + (shard_id << instaid_sql._sequence_bits())
           + instaid_sql._max_sequence();

---- Names, shard IDs and owners ----

-- Refuse a name that is too long, or empty.
-- Functions take names as text, because a cast to name truncates those that are too long.
CREATE OR REPLACE FUNCTION instaid._check_name(what text, name text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    max_bytes CONSTANT integer := current_setting('max_identifier_length')::integer;
BEGIN
    IF octet_length(name) > max_bytes THEN
        RAISE name_too_long USING
            MESSAGE = format('%s name "%s..." is too long', what, left(name, max_bytes)),
            DETAIL = format('It has %s bytes; a name has up to %s.', octet_length(name),
                            max_bytes);
    END IF;
    IF name = '' THEN
        RAISE invalid_name USING MESSAGE = format('%s name is empty', what),
            DETAIL = format('A name has 1 to %s bytes.', max_bytes);
    END IF;
END $$;
