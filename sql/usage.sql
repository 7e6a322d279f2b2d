-- No argument of a function of instaid lets a role with only USAGE on the sequence of
-- a shard move it away from the clock.
SET timezone = 'UTC';
SET client_min_messages = error;
SELECT instaid.create_shard('regress_u', 17);
CREATE ROLE regress_instaid_user;
GRANT USAGE ON SCHEMA regress_u TO regress_instaid_user;
GRANT USAGE ON SEQUENCE regress_u.table_id_seq TO regress_instaid_user;
SET instaid.max_drift = 0;

-- Each function of the extension and of the shard whose required arguments have these
-- types, with each combination of these values.  After each call, the next ID of the
-- shard must have the time of the clock, or be ahead by what max_drift and one wait
-- allow.
CREATE FUNCTION try_all(OUT calls bigint, OUT succeeded bigint, OUT failed_by text, OUT moved_by text[]) LANGUAGE plpgsql AS $$
DECLARE
    routine regproc;
    call text;
    failures text[];
BEGIN
    calls := 0;
    succeeded := 0;
    FOR routine, call IN
        WITH RECURSIVE value (type, text) AS (
            VALUES ('regclass'::regtype, 'regress_u.table_id_seq'),
                   ('integer', '0'), ('integer', '17'), ('integer', '2000'), ('integer', '2147483647'), ('integer', '-1'),
                   ('bigint', '0'), ('bigint', '9223372036854775807'), ('bigint', '4001511883701836730'), ('bigint', '-1'),
                   ('timestamptz', '-infinity'), ('timestamptz', '4714-11-24 00:00:00+00 BC'), ('timestamptz', '1960-01-01 00:00:00+00'),
                   ('timestamptz', '1970-01-01 00:00:00+00'), ('timestamptz', '1995-01-01 00:00:00+00'),
                   ('timestamptz', '2026-01-01 00:00:00+00'), ('timestamptz', '2040-01-01 00:00:00+00'), ('timestamptz', '294276-12-31 00:00:00+00'),
                   ('timestamptz', 'infinity'), ('boolean', 'true'),
                   ('text', 'regress_u'), ('text', 'table_id_seq'), ('interval', '1 year')),
        arguments (routine, count, list) AS (
            SELECT p.oid, 0, '{}'::text[] FROM pg_proc AS p WHERE p.pronamespace IN ('instaid'::regnamespace, 'regress_u'::regnamespace)
            UNION ALL
            SELECT a.routine, a.count + 1, a.list || format('%L::%s', v.text, v.type)
            FROM arguments AS a JOIN pg_proc AS p ON p.oid = a.routine
                 JOIN value AS v ON v.type = p.proargtypes[a.count]::regtype
            WHERE a.count < p.pronargs)
        SELECT p.oid, format('SELECT count(*) FROM %s(%s)', p.oid::regproc, array_to_string(a.list, ', '))
        FROM arguments AS a JOIN pg_proc AS p ON p.oid = a.routine
        WHERE a.count >= p.pronargs - p.pronargdefaults AND p.prokind = 'f' AND p.proname <> 'audit'
    LOOP
        calls := calls + 1;
        BEGIN
            SET LOCAL ROLE regress_instaid_user;
            EXECUTE call;
            SET LOCAL ROLE NONE;
            succeeded := succeeded + 1;
        EXCEPTION WHEN OTHERS THEN
            failures := failures || format('%s: %s', routine, SQLSTATE);
        END;
        IF instaid.extract_timestamp(regress_u.next_id()) > clock_timestamp() + interval '64 ms' THEN
            moved_by := moved_by || call;
            PERFORM setval('regress_u.table_id_seq', 1);
        END IF;
    END LOOP;
    -- this failure shows that the role has no further rights
    SELECT string_agg(DISTINCT f, ', ' ORDER BY f) INTO failed_by
        FROM unnest(failures) AS f WHERE f ~ '^instaid\.advance_past:';
END
$$;
SELECT calls > 2000 AS many, succeeded > 1000 AS most, failed_by, moved_by[1:5] FROM try_all();

SET client_min_messages = warning;
RESET instaid.max_drift;
DROP FUNCTION try_all;
DROP SCHEMA regress_u CASCADE;
DROP ROLE regress_instaid_user;
