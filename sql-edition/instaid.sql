/* sql-edition/instaid.sql */

--
-- instaid where C is refused: SQL and PL/pgSQL only, without a superuser or a setting.
--
-- sql-edition/all.sql runs all files in psql.  Each file can also be run alone, as a role with
-- CREATE on the database, and is one transaction.  This file and shards.sql are complete for a new
-- application, and each other file adds a subject.  They are two files because one would
-- have more than 1,500 lines: this one has what next_id() calls, and shards.sql what makes,
-- lists, freezes and updates shards.  A newer version of the files updates an older one.
--
-- A shard's sequence holds the ID that it issued last:
--
--     bit 63                          23 22          10 9          0
--         +-----------------------------+--------------+------------+
--         | 41 bits: ms since the epoch | 13: shard ID | 10: count  |
--         +-----------------------------+--------------+------------+
--
-- From one millisecond to the next, a sequence has 8,388,608 values.  1,024 of them are IDs
-- of the shard, and the others are a guard:
--
-- - nextval() only counts within a millisecond.  A session looks at the sequence before each
--   nextval(), and does not call it if there is no room.  A value past the room is dropped.
--   The count therefore exceeds the room by less than the number of sessions, and PostgreSQL
--   has at most 262,143: it never reaches the next millisecond.
-- - setval() opens a millisecond.  Only the session that has the shard's lock calls it, and
--   only for a later millisecond than it has seen under the lock.
--
-- So the sequence never goes back, and no value is issued twice.  Neither a step of the clock
-- nor a session that stops changes this, because the clock only chooses which millisecond is
-- opened.  test/model/gap.pml is the proof.
--
-- An ID ahead of the clock is issued only if the commit of its transaction flushes WAL.
-- Otherwise a crash could lose the setval() of another transaction, and the ID would come
-- again: see _flush_at_commit().
--
-- Nothing here sleeps: pg_sleep() goes by the clock, and a step back would make it long.
--
-- Schema instaid has the functions of the extension instaid, with their names and arguments.
-- Schema instaid_sql has what the functions of shards call.  Dumps of shards name those
-- functions, so their names and arguments never change.  It also has what functions that read
-- IDs call by name: a view or a generated column still uses them when the schema instaid is
-- renamed to make room for the extension.
--

BEGIN;
-- What follows is parsed now, and must not find an operator or a function that another role has
-- put into a schema of the search path.
DO $$ BEGIN PERFORM pg_catalog.set_config('search_path', 'pg_catalog', true); END $$;

-- What is there already
DO $$
DECLARE
    version CONSTANT text := '1.0';
    there text;
    part record;
BEGIN
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
        WHERE n.nspname IN ('instaid', 'instaid_sql', 'instaid_tickets')
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
        ELSIF NOT part.is_own OR there IS NULL AND part.nspname <> 'instaid_tickets' THEN
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
    SELECT pg_describe_object(d.classid, d.objid, 0) AS name, o.refobjid::regrole AS owner
    INTO part FROM pg_depend AS d JOIN pg_namespace AS n ON n.oid = d.refobjid
         JOIN pg_shdepend AS o ON o.classid = d.classid AND o.objid = d.objid AND o.deptype = 'o'
         JOIN pg_database AS b ON b.oid = o.dbid AND b.datname = current_database()
    WHERE d.refclassid = 'pg_namespace'::regclass AND n.nspname IN ('instaid', 'instaid_sql')
      AND o.refobjid <> n.nspowner LIMIT 1;
    IF FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s belongs to another role', part.name),
            DETAIL = format('Its owner is %s, who could replace it.', part.owner),
            HINT = 'Drop it if it is no part of instaid, and run this file again.';
    END IF;
    FOR part IN
        SELECT s.name FROM unnest('{instaid,instaid_sql,instaid_tickets}'::text[]) AS s (name)
        WHERE to_regnamespace(s.name) IS NULL
    LOOP
        EXECUTE format('CREATE SCHEMA %s', part.name);
        -- Default privileges must not let another role create a function here: next_id() would
        -- call it with the rights of its owner.
        EXECUTE (
            SELECT format('REVOKE ALL ON SCHEMA %1$s FROM %2$s;'
                          ' GRANT USAGE ON SCHEMA %1$s TO PUBLIC', part.name,
                          concat_ws(', ', 'PUBLIC', string_agg(x.grantee::regrole::text, ', ')))
            FROM pg_namespace AS n CROSS JOIN LATERAL aclexplode(n.nspacl) AS x
            WHERE n.nspname = part.name AND x.grantee NOT IN (0, n.nspowner));
    END LOOP;
    EXECUTE format('COMMENT ON SCHEMA instaid_sql IS %L',
                   format('what the functions of shards call: instaid %s, SQL edition', version));
END $$;
COMMENT ON SCHEMA instaid IS
'Instagram-style IDs: 64 bits, sorted by time, with the number of the shard; SQL edition';
COMMENT ON SCHEMA instaid_tickets IS 'the tickets of instaid, one sequence each';

-- Begin a file of a version, which needs other files, and of each of them a function.  Note what
-- exists before it, for _set_rights().
CREATE OR REPLACE PROCEDURE instaid._begin_file(file text, version text, needs json DEFAULT '{}')
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    there CONSTANT text := substring(obj_description('instaid_sql'::regnamespace, 'pg_namespace'),
                                     '([0-9.]+), SQL edition$');
    missing text;
BEGIN
    SELECT n.key INTO missing FROM json_each_text(needs) AS n
    WHERE to_regprocedure(n.value) IS NULL LIMIT 1;
    IF there <> version OR missing IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sql-edition/%s needs sql-edition/%s', file,
                             CASE WHEN there <> version THEN 'instaid.sql' ELSE missing END),
            DETAIL = format('The file has version %s, and version %s is installed.',
                            version, there),
            HINT = format('Run that file of version %s first.', version);
    END IF;
    PERFORM set_config('instaid_files.known', array_agg(d.objid)::text, true)
    FROM pg_depend AS d
    WHERE d.refclassid = 'pg_namespace'::regclass
      AND d.refobjid IN ('instaid'::regnamespace, 'instaid_sql'::regnamespace)
      AND (file <> 'instaid.sql'
           OR d.objid <> 'instaid._begin_file(text,text,json)'::regprocedure);
END $$;
CALL instaid._begin_file('instaid.sql', '1.0');

---- Checks (both editions) ----

-- Refuse null arguments of a function that is not STRICT.
CREATE OR REPLACE FUNCTION instaid._check_no_nulls(routine text, arguments json) RETURNS void
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    nulls CONSTANT text := (SELECT string_agg(a.key, ', ') FROM json_each_text(arguments) AS a
                            WHERE a.value IS NULL);
BEGIN
    IF nulls IS NOT NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = format('arguments of %s() must not be null', routine),
            DETAIL = format('These are null: %s.', nulls);
    END IF;
END $$;

-- Refuse an isolation level that does not show what other transactions commit meanwhile.
CREATE OR REPLACE FUNCTION instaid._check_read_committed(routine text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
        RAISE invalid_transaction_state USING
            MESSAGE = format('%s() must run in a READ COMMITTED transaction', routine),
            DETAIL = 'Otherwise it would not see the rows of the transactions that it waits for.',
            HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED;';
    END IF;
END $$;

-- Refuse a caller who does not have the rights of the owner of an object.
CREATE OR REPLACE FUNCTION instaid._check_owner(owner regrole, kind text, object text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT pg_has_role(owner, 'USAGE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of %s %s', kind, object),
            DETAIL = format('Its owner is %s.', owner);
    END IF;
END $$;

-- The function of a schema with a name and argument types; null if there is none.  A look-up by
-- its name alone, as for regprocedure, would read the next_id() of thousands of schemas.
CREATE OR REPLACE FUNCTION instaid._find_function(schema_name text, function_name name,
                                       argument_types oidvector) RETURNS oid
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN (SELECT p.oid FROM pg_proc AS p
            WHERE p.proname = function_name AND p.proargtypes = argument_types AND p.pronamespace
                  = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = schema_name));

-- Whether a schema belongs to a superuser, or to the owner of the database, who is one.
-- A role that is not a superuser can put other objects in place of those in its schema.
CREATE OR REPLACE FUNCTION instaid._is_superusers_schema(schema oid) RETURNS boolean
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN (SELECT o.rolsuper OR o.rolname = 'pg_database_owner' AND d.rolsuper
            FROM pg_namespace AS n JOIN pg_roles AS o ON o.oid = n.nspowner
                 JOIN pg_database AS b ON b.datname = current_database()
                 JOIN pg_roles AS d ON d.oid = b.datdba WHERE n.oid = schema);

---- Checks of this edition ----

-- Refuse a name that is too long, or empty.
-- Functions take names as text, because a cast to name truncates those that are too long.
CREATE OR REPLACE FUNCTION instaid._check_name(what text, name text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    max_bytes CONSTANT integer := current_setting('max_identifier_length');
BEGIN
    IF octet_length(name) > max_bytes THEN
        RAISE name_too_long USING
            MESSAGE = format('%s name "%s..." is too long', what, left(name, max_bytes)),
            DETAIL = format('It has %s bytes; a name has up to %s.', octet_length(name),
                            max_bytes);
    END IF;
    IF name = '' THEN
        RAISE invalid_name USING
            MESSAGE = format('%s name is empty', what),
            DETAIL = format('A name has 1 to %s bytes.', max_bytes);
    END IF;
END $$;

-- Refuse a shard ID that is out of range.
CREATE OR REPLACE FUNCTION instaid_sql._check_shard_id(shard_id integer) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF shard_id NOT BETWEEN 0 AND 8191 THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('shard ID %s is out of range', shard_id),
            DETAIL = 'A shard ID is between 0 and 8191.';
    END IF;
END $$;

-- Run a command of the caller, who must be this role; return the first column of its first
-- row.
-- Tables, indexes and views can hold code of their owner.  Without C, nothing can run it with
-- the owner's rights only.  Therefore the caller must be the owner.
CREATE OR REPLACE FUNCTION instaid._execute_as(role regrole, command text) RETURNS text
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    result text;
BEGIN
    IF role::oid <> (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('role %s must run this itself', role),
            DETAIL = 'It owns an object that the call uses. Code in this object would run with'
                     ' the rights of the caller.',
            HINT = format('Connect as %s, or, if you trust this role, SET ROLE %1$s;', role);
    END IF;
    IF command ~ '^SELECT ' THEN
        EXECUTE command INTO result;
    ELSE
        EXECUTE command;
    END IF;
    RETURN result;
END $$;

-- Refuse what only the extension has, and say what to do instead.
CREATE OR REPLACE FUNCTION instaid._refuse_without_c(what text, instead text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE feature_not_supported USING
        MESSAGE = 'this edition of instaid has no C',
        DETAIL = what || ' needs the extension instaid.',
        HINT = instead;
END $$;

---- Reading and packing IDs ----

-- The functions that queries call for each row are in SQL without branches, so that PostgreSQL
-- replaces the call with its expression.  It evaluates what depends on a constant epoch only
-- once.  A timestamptz and an interval would not do: adding them depends on the time zone.

CREATE OR REPLACE FUNCTION instaid.default_epoch() RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN timestamptz '2011-08-24 21:07:01.721+00';
COMMENT ON FUNCTION instaid.default_epoch() IS 'Instagram''s epoch, 1314220021721 ms after 1970';

-- Say why an epoch cannot be used.
CREATE OR REPLACE FUNCTION instaid_sql._refuse_epoch(epoch timestamptz) RETURNS timestamp
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' AS $$
DECLARE
    first CONSTANT timestamptz := '4714-11-24 00:00:00+00 BC';
    last CONSTANT timestamptz := '294207-04-27 08:12:24.448+00';
    excess integer;
BEGIN
    IF epoch < first OR epoch >= last + interval '1 ms' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('epoch %s is out of range', epoch),
            DETAIL = format('An epoch must be between %s and %s.', first, last);
    END IF;
    excess := extract(microseconds FROM epoch)::integer % 1000;
    RAISE invalid_parameter_value USING
        MESSAGE = format('epoch %s is not a whole millisecond', epoch),
        DETAIL = format('It is %s us after a whole millisecond. IDs count milliseconds.', excess),
        HINT = format('Pass %s.', epoch - excess * interval '1 us');
END $$;

-- An epoch in UTC; refuse one that is infinite, out of range, or not a whole millisecond.
-- With an epoch before the end, the time of each bigint is a timestamp.
CREATE OR REPLACE FUNCTION instaid_sql._utc_epoch(epoch timestamptz) RETURNS timestamp
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    -- without SET, because queries call it for each row if the epoch is not constant
    IF epoch OPERATOR(pg_catalog.>=) pg_catalog.timestamptz '4714-11-24 00:00:00+00 BC'
       AND epoch OPERATOR(pg_catalog.<) pg_catalog.timestamptz '294207-04-27 08:12:24.449+00'
       AND pg_catalog.date_part('microseconds', epoch)::pg_catalog.int4
           OPERATOR(pg_catalog.%) 1000 OPERATOR(pg_catalog.=) 0
    THEN
        RETURN pg_catalog.timezone('UTC', epoch);
    END IF;
    RETURN instaid_sql._refuse_epoch(epoch);
END $$;

-- The milliseconds from the epoch to a time, which must be from 0 to last_ms.
CREATE OR REPLACE FUNCTION instaid_sql._id_ms(created_at timestamptz, epoch timestamptz,
                                   last_ms bigint)
    RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' AS $$
DECLARE
    ms CONSTANT numeric := floor(instaid_sql._ms_since(epoch, created_at));
BEGIN
    IF ms NOT BETWEEN 0 AND last_ms THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('time %s is out of range for an ID', created_at),
            DETAIL = format('The time must be between the epoch, %s, and %s ms after it.', epoch,
                            last_ms);
    END IF;
    RETURN ms;
END $$;

CREATE OR REPLACE FUNCTION instaid.make_id(created_at timestamptz, shard_id integer,
                                sequence bigint,
                                epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid_sql._check_shard_id(shard_id);
    RETURN (instaid_sql._id_ms(created_at, epoch, 2199023255551) << 23) | (shard_id << 10)
           | (sequence & 1023);
END $$;
COMMENT ON FUNCTION instaid.make_id(timestamptz, integer, bigint, timestamptz) IS
'the ID that has this time, shard ID and sequence; the time is rounded down to the '
'millisecond, the sequence taken modulo 1024; error if the shard ID is not 0 to 8191, or the '
'time is before the epoch or 2^41 ms or more after it';

-- The 41 bits of the time have no sign.
CREATE OR REPLACE FUNCTION instaid.extract_timestamp(id bigint,
                                          epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (instaid_sql._utc_epoch(epoch) + (id >> 23 & 2199023255551) * interval '1 ms')
           AT TIME ZONE 'UTC';
COMMENT ON FUNCTION instaid.extract_timestamp(bigint, timestamptz) IS
'the time of an ID, to the millisecond';

CREATE OR REPLACE FUNCTION instaid.extract_shard_id(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (id >> 10 & 8191)::integer;
COMMENT ON FUNCTION instaid.extract_shard_id(bigint) IS 'the shard ID of an ID, 0 to 8191';

CREATE OR REPLACE FUNCTION instaid.extract_sequence(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (id & 1023)::integer;
COMMENT ON FUNCTION instaid.extract_sequence(bigint) IS 'the sequence field of an ID, 0 to 1023';

CREATE OR REPLACE FUNCTION instaid.decode(id bigint,
                               epoch timestamptz DEFAULT instaid.default_epoch(),
                               OUT created_at timestamptz, OUT shard_id integer,
                               OUT sequence integer)
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ROW(instaid.extract_timestamp(id, epoch), instaid.extract_shard_id(id),
               instaid.extract_sequence(id));
COMMENT ON FUNCTION instaid.decode(bigint, timestamptz) IS
'the time of an ID (to the millisecond), its shard ID (0 to 8191) and its sequence field (0 '
'to 1023)';

---- Time ranges ----

-- The milliseconds from an epoch to a time, with fractions.
-- In numeric, because times can be infinite.  The result counts from the epoch.
CREATE OR REPLACE FUNCTION instaid_sql._ms_since(epoch timestamptz, created_at timestamptz)
    RETURNS numeric
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (extract(epoch FROM created_at AT TIME ZONE 'UTC')
            - extract(epoch FROM instaid_sql._utc_epoch(epoch))) * 1000;
END $$;

-- The first millisecond of the format that begins at a time or after it; 2^40 if there is
-- none.
-- The bounds of created_between():
--
--                 before the epoch    in the format       after it
--  min_id_from    0                   smallest, time >=   null
--  max_id_before  -1                  largest, time <     9223372036854775807
--
-- The first whole millisecond since the epoch that is not before a time
CREATE OR REPLACE FUNCTION instaid_sql._first_ms_from(created_at timestamptz, epoch timestamptz)
    RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN LEAST(GREATEST(ceil(instaid_sql._ms_since(epoch, created_at)), 0), 1099511627776);
END $$;

CREATE OR REPLACE FUNCTION instaid.min_id_from(created_at timestamptz,
                                    epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN NULLIF(instaid_sql._first_ms_from(created_at, epoch), 1099511627776) << 23;
COMMENT ON FUNCTION instaid.min_id_from(timestamptz, timestamptz) IS
'the smallest ID whose time is not before created_at; null if there is none';

CREATE OR REPLACE FUNCTION instaid.max_id_before(created_at timestamptz,
                                      epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (instaid_sql._first_ms_from(created_at, epoch) - 1 << 23) + 8388607;
COMMENT ON FUNCTION instaid.max_id_before(timestamptz, timestamptz) IS
'the largest ID whose time is before created_at; -1 if there is none';

---- Time ranges (both editions) ----

-- Not STRICT: PostgreSQL would not inline an AND.  Each time is used once, so that it can be a
-- subselect.  ">=", because "> the largest before" does not prune the partition that ends there.
CREATE OR REPLACE FUNCTION instaid.created_between(
    id bigint, from_time timestamptz, to_time timestamptz,
    epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN id >= instaid.min_id_from(from_time, epoch)
           AND id <= instaid.max_id_before(to_time, epoch);
COMMENT ON FUNCTION instaid.created_between(bigint, timestamptz, timestamptz, timestamptz) IS
'whether an ID has a time from from_time on, before to_time; uses indexes, prunes partitions';

---- Making IDs ----

-- The arguments of these functions:
--
-- - sequence: a sequence of the shard.
-- - options: what pg_sequence_parameters() must say of it.  START and MINVALUE are the epoch in
--   milliseconds since 1970, and MAXVALUE is the last ID of the shard.  So a sequence tells
--   whose it is, in a dump, too.
-- - t: what the clock reads, as the first ID of the shard in that millisecond.
--
-- They run with the rights of the shard's owner.  8387584 are the bits of the shard ID.  What
-- each INSERT can reach does without SET, which costs more than qualified names.

DO $$
BEGIN
    IF to_regtype('instaid_sql.sequence_options') IS NULL THEN
        CREATE TYPE instaid_sql.sequence_options AS (
            start_value bigint, minimum_value bigint, maximum_value bigint, increment bigint,
            cycle_option boolean, cache_size bigint, data_type oid);
    END IF;
END $$;
COMMENT ON TYPE instaid_sql.sequence_options IS 'what pg_sequence_parameters() returns';

-- The options of the sequences of this shard and epoch.
CREATE OR REPLACE FUNCTION instaid_sql._options(shard_id integer, epoch_ms bigint)
    RETURNS instaid_sql.sequence_options
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ROW(epoch_ms, epoch_ms, (1099511627775 << 23) + (shard_id << 10) + 1023, 1, false, 1,
               20)::instaid_sql.sequence_options;

-- The first ID of a shard in the millisecond that the clock reads.
-- A cast to bigint rounds to the nearest.  Therefore half a millisecond is taken away, less half
-- a microsecond for the error of a double.  A clock that reads a time before 1991, or after the
-- last ID, is an error: bigint is out of range.
CREATE OR REPLACE FUNCTION instaid_sql._clock(options instaid_sql.sequence_options) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (date_part('epoch', clock_timestamp()) * 1000
            - (options.minimum_value + 0.4995::float8))::bigint * 8388608
           + (options.maximum_value & 8387584);
END $$;

-- Say why a sequence cannot serve.
CREATE OR REPLACE FUNCTION instaid_sql._refuse(sequence regclass,
                                    options instaid_sql.sequence_options)
    RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    actual CONSTANT record := pg_sequence_parameters(sequence);
    main record;
BEGIN
    SELECT n.nspname, c.relname INTO main
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = sequence;
    IF actual.maximum_value < options.maximum_value
       AND (actual.maximum_value # options.maximum_value) & 8388607 = 0 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('shard %I is frozen', main.nspname),
            DETAIL = format('Its sequence "%s" makes no IDs until the shard is thawed.',
                            main.relname),
            HINT = format('If the shard was moved, use it in its new place. Otherwise its owner'
                          ' can thaw it: SELECT instaid.thaw_shard(%L);', main.nspname);
    ELSIF (actual.minimum_value, actual.maximum_value)
          <> (options.minimum_value, options.maximum_value) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence "%s" cannot serve as a source of IDs', main.relname),
            DETAIL = format('It has a range of its own, %s to %s. Those of this shard have the'
                            ' range %s to %s.', actual.minimum_value, actual.maximum_value,
                            options.minimum_value, options.maximum_value),
            HINT = 'Use a sequence of the shard, as instaid.add_sequence() creates it. If this is'
                   ' one, instaid.audit() has the cure.';
    END IF;
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = format('sequence "%s" cannot serve as a source of IDs', main.relname),
        DETAIL = format('Its parameters are %s. They must be %s.', actual, options),
        HINT = format('ALTER SEQUENCE %I.%I AS bigint INCREMENT BY 1 START WITH %s CACHE 1'
                      ' NO CYCLE;', main.nspname, main.relname, actual.minimum_value);
END $$;

-- Whether the extension makes the IDs of a sequence now.
-- The extension's adopt_shard() gives the sequence its range of ticks, and next_id() another
-- name.  A call that waited for that meanwhile ends here.  It has not looked at the sequence
-- yet: the first look keeps ALTER SEQUENCE out until the transaction ends.
CREATE OR REPLACE FUNCTION instaid_sql._is_adopted(sequence regclass) RETURNS boolean
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- not by the snapshot of the transaction, which may not have the new function
    RETURN (pg_sequence_parameters(sequence)).minimum_value = 1
           AND COALESCE(strpos(pg_get_functiondef(to_regprocedure(format(
                            '%s.next_ids(integer, regclass)',
                            (pg_identify_object('pg_class'::regclass, sequence, 0)).schema))),
                               ' LANGUAGE instaid') > 0, false);
END $$;

-- These options, or those that renumber_shard() has given to the sequence and its shard.
-- A call that waited for that meanwhile ends here, or in _elsewhere().
CREATE OR REPLACE FUNCTION instaid_sql._renumbered(sequence regclass,
                                        options instaid_sql.sequence_options)
    RETURNS instaid_sql.sequence_options
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    actual CONSTANT record := pg_sequence_parameters(sequence);
BEGIN
    -- the text of now, which the snapshot of a transaction may not have
    IF actual <> options AND EXISTS (
        SELECT FROM pg_class AS c JOIN pg_proc AS p ON p.pronamespace = c.relnamespace
        WHERE c.oid = sequence AND p.proname = 'next_ids' AND p.prokind = 'f'
          AND strpos(pg_get_functiondef(p.oid), actual::text) > 0)
    THEN
        RETURN instaid_sql._options((actual.maximum_value >> 10 & 8191)::integer,
                                    actual.minimum_value);
    END IF;
    RETURN options;
END $$;

-- The next ID of a sequence that was renumbered, or that the extension has adopted; refuse any
-- other that cannot serve.
CREATE OR REPLACE FUNCTION instaid_sql._elsewhere(sequence regclass,
                                       options instaid_sql.sequence_options)
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    renumbered CONSTANT instaid_sql.sequence_options := instaid_sql._renumbered(sequence, options);
    id bigint;
BEGIN
    IF renumbered <> options THEN
        RETURN instaid_sql._open(sequence, instaid_sql._clock(renumbered), renumbered);
    ELSIF NOT instaid_sql._is_adopted(sequence) THEN
        PERFORM instaid_sql._refuse(sequence, options);
    END IF;
    EXECUTE 'SELECT instaid.next_id($1, $2, $3)' INTO id
        USING sequence, (options.maximum_value >> 10 & 8191)::integer,
              to_timestamp(options.minimum_value / 1000.0);
    RETURN id;
END $$;

-- Lock a sequence for setval(); false if the extension has adopted it; refuse any other that
-- cannot serve.
-- The lock is of a view: nobody else may lock it, and ANALYZE, which would take the same lock,
-- leaves views alone.  An advisory lock could be held by any role.  The sequences of a shard
-- share one lock, which their schema tells.  If the schema was renamed meanwhile, its old name
-- can be that of another shard: then the lock of the new name is taken, too.
--
-- Who has the lock sends nothing to the client: one that asks for debugging messages, and does
-- not read them, would keep it.
CREATE OR REPLACE FUNCTION instaid_sql._lock(sequence regclass,
                                  options instaid_sql.sequence_options)
    RETURNS boolean
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    schema text;
    locked text;
BEGIN
    LOOP
        IF pg_sequence_parameters(sequence) <> options THEN
            PERFORM instaid_sql._refuse(sequence, options)
            WHERE NOT instaid_sql._is_adopted(sequence);
            RETURN false;
        END IF;
        schema := (pg_identify_object('pg_class'::regclass, sequence, 0)).schema;
        EXIT WHEN schema = locked;
        EXECUTE format('LOCK %s.id_sequence_lock IN SHARE UPDATE EXCLUSIVE MODE', schema);
        locked := schema;
    END LOOP;
    RETURN true;
END $$;

-- The next ID of a sequence whose lock the caller has.
-- Under the lock, where the sequence may be at or after t: an ID of the millisecond in which it
-- is, or else the first of a later one.  An ID may be up to 100 ms late, as in _share().
CREATE OR REPLACE FUNCTION instaid_sql._take(sequence regclass, t bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    base CONSTANT bigint := t & 8387584;
    last bigint := instaid_sql._last_or_ahead(sequence, t);
    id bigint;
BEGIN
    IF last >= t - (100::bigint << 23) AND (last + 1 - base) & 8387584 = 0 THEN
        id := nextval(sequence);
    END IF;
    IF ((id - base) & 8387584 = 0) IS NOT TRUE THEN
        last := COALESCE(id, last);
        -- the low bits run on
        id := setval(sequence, GREATEST(t, instaid_sql._ms_after(sequence, last, base))
                               + (last + 1 & 1023));
    END IF;
    IF id > t + 1023 THEN
        PERFORM instaid_sql._flush_at_commit();
    END IF;
    RETURN id;
END $$;

-- The first ID of the millisecond after the one of a value; error if there is none.
CREATE OR REPLACE FUNCTION instaid_sql._ms_after(sequence regclass, last bigint, base bigint)
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF last - base >> 23 >= 1099511627775 THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('sequence %s is past the last ID of its epoch', sequence),
            DETAIL = format('The sequence is at %s. The clock reads %s.', last, clock_timestamp()),
            HINT = 'If the sequence was set too far by mistake, set it back with setval().';
    END IF;
    RETURN (last - base | 8388607) + 1 + base;
END $$;

-- The last value of a sequence; if it was restarted, one that is 2.1 s ahead of the clock.
-- A sequence that was RESTARTed, or restored without data, begins after all that next_ids() can
-- have reserved.  From PostgreSQL 17 on, pg_sequence_last_value() is null for want of a
-- privilege, too, and setval() could then go back.
CREATE OR REPLACE FUNCTION instaid_sql._last_or_ahead(sequence regclass, t bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last CONSTANT bigint := pg_sequence_last_value(sequence);
BEGIN
    IF last IS NULL AND NOT has_sequence_privilege(sequence, 'SELECT, USAGE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied for sequence %s', sequence);
    END IF;
    RETURN COALESCE(last, t + (2100::bigint << 23) + 1023);
END $$;

-- The next ID of a sequence that has no room in the millisecond of the clock.
-- Opens the millisecond of the clock, or takes an ID of a later one.  The lock is taken in a
-- subtransaction that is always rolled back: by the RAISE, by an error, or by a cancel.  What
-- setval() did stays.  An exception that is raised for this must not be caught as another:
-- SQLSTATE 'ID000' would be the whole class ID.
CREATE OR REPLACE FUNCTION instaid_sql._open(sequence regclass, t bigint,
                                  options instaid_sql.sequence_options) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET client_min_messages = error AS $$
DECLARE
    schema pg_catalog.text;
    id bigint;
BEGIN
    BEGIN
        -- _lock(), without the call and the wait; null if the sequence cannot serve
        schema := (pg_catalog.pg_identify_object('pg_catalog.pg_class'::pg_catalog.regclass,
                                                 sequence, 0)).schema;
        EXECUTE CASE
            WHEN pg_catalog.pg_sequence_parameters(sequence) OPERATOR(pg_catalog.*=) options
            THEN 'LOCK ' OPERATOR(pg_catalog.||) schema OPERATOR(pg_catalog.||)
                 '.id_sequence_lock IN SHARE UPDATE EXCLUSIVE MODE NOWAIT' END;
        id := CASE
            WHEN pg_catalog.pg_sequence_last_value(sequence) OPERATOR(pg_catalog.<) t
                 AND (pg_catalog.pg_identify_object('pg_catalog.pg_class'::pg_catalog.regclass,
                                                    sequence, 0)).schema
                     OPERATOR(pg_catalog.=) schema
            THEN pg_catalog.setval(sequence, t OPERATOR(pg_catalog.+) (
                     pg_catalog.pg_sequence_last_value(sequence) OPERATOR(pg_catalog.+) 1
                     OPERATOR(pg_catalog.&) 1023)) END;
        IF id IS NULL THEN
            PERFORM instaid_sql._lock(sequence, options);
            id := instaid_sql._take(sequence, t);
        END IF;
        RAISE SQLSTATE 'ID001';
    EXCEPTION
        WHEN SQLSTATE 'ID001' THEN
            RETURN id;
        WHEN null_value_not_allowed THEN
            RETURN instaid_sql._elsewhere(sequence, options);
        WHEN lock_not_available THEN
            NULL;
    END;
    RETURN instaid_sql._share(sequence, t, options);
END $$;

-- The next ID of a sequence while another session has its lock.
-- Another session opens a millisecond, and may be off the processor.  An ID that is up to 100 ms
-- late is better than a queue, which gives one ID for each turn of the lock.
CREATE OR REPLACE FUNCTION instaid_sql._share(sequence regclass, t bigint,
                                   options instaid_sql.sequence_options) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET client_min_messages = error AS $$
DECLARE
    late CONSTANT bigint := t - (100::bigint << 23);
    -- less t, both are 0 in an ID of this shard that is not before t
    sign_and_shard CONSTANT bigint := -9223372036846388224;
    id bigint;
BEGIN
    FOR i IN 1 .. 50 LOOP
        id := CASE WHEN pg_sequence_last_value(sequence) + 1 - late & sign_and_shard = 0
                   THEN nextval(sequence) END;
        IF (id - t) & 8387584 = 0 THEN
            IF id > t + 1023 THEN
                PERFORM instaid_sql._flush_at_commit();
            END IF;
            RETURN id;
        END IF;
    END LOOP;
    PERFORM instaid_sql._lock(sequence, options);
    id := instaid_sql._take(sequence, instaid_sql._clock(options));
    RAISE SQLSTATE 'ID001';
EXCEPTION WHEN SQLSTATE 'ID001' THEN
    RETURN id;
END $$;

-- Let the COMMIT of this transaction flush the WAL of all transactions so far.
-- An ID ahead of the clock is only as durable as the setval() that opened its millisecond, which
-- can be of a transaction that is still open.  COMMIT flushes it if its own transaction has
-- written WAL.  A transaction ID alone does not make it flush.
--
-- One case is left: a transaction that has an ID and has written no WAL, for example because it
-- only writes to temporary tables.
CREATE OR REPLACE FUNCTION instaid_sql._flush_at_commit() RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF pg_current_xact_id_if_assigned() IS NULL THEN
        PERFORM pg_logical_emit_message(true, 'instaid', ''::text);
    END IF;
END $$;

-- The first of many IDs, 1024 in each millisecond; null if too many are reserved already.
-- Reserves whole milliseconds by one setval().  Null if the sequence is over a second ahead of
-- the clock, since taking the IDs one by one is slower, or if the extension has adopted it.
CREATE OR REPLACE FUNCTION instaid_sql._reserve(sequence regclass,
                                     options instaid_sql.sequence_options,
                                     count integer) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET client_min_messages = error AS $$
DECLARE
    t bigint;
    last bigint;
    first bigint;
BEGIN
    IF NOT instaid_sql._lock(sequence, options) THEN
        RETURN NULL;
    END IF;
    t := instaid_sql._clock(options);
    last := instaid_sql._last_or_ahead(sequence, t);
    IF last <= t + (1000::bigint << 23) THEN
        first := GREATEST(t, instaid_sql._ms_after(sequence, last, t & 8387584));
        PERFORM setval(sequence, first + ((count - 1)::bigint >> 10 << 23) + (count - 1 & 1023));
    END IF;
    RAISE SQLSTATE 'ID001';
EXCEPTION WHEN SQLSTATE 'ID001' THEN
    RETURN first;
END $$;

-- The next IDs of a sequence, in increasing order.
CREATE OR REPLACE FUNCTION instaid_sql._next_ids(sequence regclass,
                                      options instaid_sql.sequence_options,
                                      count integer) RETURNS SETOF bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE ROWS 1000
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    base bigint;
    -- less t, both are 0 in an ID of this shard that is not before t
    sign_and_shard CONSTANT bigint := -9223372036846388224;
    t bigint;
    id bigint;
BEGIN
    IF count NOT BETWEEN 1 AND 1000000 THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('count %s is out of range', count),
            DETAIL = 'The count must be between 1 and 1000000.';
    END IF;
    -- the first look, before the options are compared
    PERFORM pg_sequence_last_value(sequence);
    options := instaid_sql._renumbered(sequence, options);
    base := options.maximum_value & 8387584;
    IF count >= 1024 THEN
        id := instaid_sql._reserve(sequence, options, count);
    END IF;
    IF id IS NOT NULL THEN
        -- most of them are ahead of the clock
        PERFORM instaid_sql._flush_at_commit();
        RETURN QUERY SELECT id + (n >> 10 << 23) + (n & 1023)
                     FROM generate_series(0::bigint, count - 1) AS n;
        RETURN;
    END IF;
    -- as next_id() does
    FOR i IN 1 .. count LOOP
        t := (date_part('epoch', clock_timestamp()) * 1000
              - (options.minimum_value + 0.4995::float8))::bigint * 8388608 + base;
        id := CASE WHEN pg_sequence_last_value(sequence) + 1 - t & sign_and_shard = 0
                   THEN nextval(sequence) END;
        IF (id - t) & 8387584 = 0 THEN
            IF id > t + 1023 AND pg_current_xact_id_if_assigned() IS NULL THEN
                PERFORM instaid_sql._flush_at_commit();
            END IF;
        ELSE
            id := instaid_sql._open(sequence, t, options);
        END IF;
        RETURN NEXT id;
    END LOOP;
END $$;

-- Create the type and the functions of a shard, or replace the functions.
-- The functions of a shard are in its schema, belong to its owner, and hold its shard ID and
-- its epoch as constants.  An adopted shard has a next_id() without arguments beside them.
--
-- next_id() runs with the rights of its owner, so that no other role needs any right on the
-- sequence: who has UPDATE could set it back.  A caller can pass a sequence.  The type of the
-- parameter admits only those of the shard; a sequence of another shard, whose nextval() runs
-- past its room, would look like one of this shard.  The type and the default follow when the
-- sequence or the schema is renamed.
--
-- It has as few expressions as possible: PL/pgSQL prepares each of them anew in each
-- transaction.  It is without SET, so it names everything in full.
CREATE OR REPLACE FUNCTION instaid_sql._declare(schema_name text, shard_id integer,
                                     epoch_ms bigint, sequence regclass,
                                     adopted boolean DEFAULT false,
                                     or_replace boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $create$
DECLARE
    options CONSTANT instaid_sql.sequence_options := instaid_sql._options(shard_id, epoch_ms);
    default_value CONSTANT text := format('%L::regclass', sequence);
BEGIN
    IF or_replace THEN
        SELECT p.pronargdefaults = 0 INTO adopted FROM pg_proc AS p
        WHERE p.oid = instaid._find_function(
            schema_name, 'next_id',
            to_regtype(format('%I.id_sequence', schema_name))::oid::text::oidvector);
    ELSE
        EXECUTE format('CREATE DOMAIN %I.id_sequence AS regclass'
                       ' CONSTRAINT is_a_sequence_of_this_shard CHECK (VALUE = %s)', schema_name,
                       default_value);
    END IF;
    EXECUTE format($f$
CREATE %7$s FUNCTION %1$I.next_id(sequence %1$I.id_sequence %3$s) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER AS $$
DECLARE
    -- The first ID of this shard 3 ms before the millisecond that the clock reads.  To open a
    -- millisecond takes longest; so a busy shard does it 250 times a second, and not 1,000.
    t CONSTANT pg_catalog.int8 := (
            pg_catalog.date_part('epoch', pg_catalog.clock_timestamp())
            OPERATOR(pg_catalog.*) 1000::pg_catalog.float8
            OPERATOR(pg_catalog.-) %4$s::pg_catalog.float8)::pg_catalog.int8
        OPERATOR(pg_catalog.*) 8388608 OPERATOR(pg_catalog.+) %5$s;
    -- There is room if the next value is an ID of this shard, and not before t: less t, its
    -- sign and the bits of the shard ID are 0.
    id CONSTANT pg_catalog.int8 := CASE
        WHEN (pg_catalog.pg_sequence_last_value(sequence)
                OPERATOR(pg_catalog.+) 1 OPERATOR(pg_catalog.-) t)
             OPERATOR(pg_catalog.&) (-9223372036846388224) OPERATOR(pg_catalog.=) 0
        THEN pg_catalog.nextval(sequence) END;
BEGIN
    IF id IS NULL THEN
        RETURN instaid_sql._open(sequence, t OPERATOR(pg_catalog.+) 25165824,
                                 %6$L::instaid_sql.sequence_options);
    ELSIF (id OPERATOR(pg_catalog.-) t) OPERATOR(pg_catalog.&) (-25166848) OPERATOR(pg_catalog.=) 0
    THEN
        RETURN id;                      -- of the last four milliseconds
    ELSIF id OPERATOR(pg_catalog.&) 8387584 OPERATOR(pg_catalog.=) %5$s THEN
        IF pg_catalog.pg_current_xact_id_if_assigned() IS NULL THEN     -- ahead of it
            PERFORM instaid_sql._flush_at_commit();
        END IF;
        RETURN id;
    END IF;
    -- past the room: others took the rest of it
    RETURN instaid_sql._open(sequence, t OPERATOR(pg_catalog.+) 25165824,
                             %6$L::instaid_sql.sequence_options);
END $$;
CREATE %7$s FUNCTION %1$I.next_ids(count integer, sequence %1$I.id_sequence DEFAULT %2$s)
    RETURNS SETOF bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER ROWS 1000
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT instaid_sql._next_ids(sequence, %6$L::instaid_sql.sequence_options, count);
END $$;
$f$, schema_name, default_value,
     CASE WHEN adopted IS NOT TRUE THEN 'DEFAULT ' || default_value END, epoch_ms + 3.4995,
     shard_id << 10, options, CASE WHEN or_replace THEN 'OR REPLACE' END);
END
$create$;

---- Rights ----

-- Give PUBLIC its rights on the new functions, views and types of this edition, and no role
-- others; those that were there keep their rights.  Default privileges, which some clouds set for
-- whole databases, grant rights or take them away.  Each file ends with this.
CREATE OR REPLACE PROCEDURE instaid._set_rights()
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    others CONSTANT text := concat_ws(', ', 'PUBLIC', (
        SELECT string_agg(DISTINCT x.grantee::regrole::text, ', ')
        FROM pg_default_acl AS d CROSS JOIN LATERAL aclexplode(d.defaclacl) AS x
             JOIN pg_roles AS r ON r.oid = x.grantee AND r.rolname <> current_user));
    known CONSTANT oid[] := NULLIF(current_setting('instaid_files.known'), '');
BEGIN
    EXECUTE (
        SELECT COALESCE(string_agg(format('REVOKE ALL ON %1$s %2$s FROM %3$s;'
                                          ' GRANT %4$s ON %1$s %2$s TO PUBLIC;', k.kind,
                                          o.identity, others, k.public_right), ''), '')
        FROM pg_depend AS d CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS o
             JOIN (VALUES ('function', 'FUNCTION', 'EXECUTE'),
                          ('procedure', 'PROCEDURE', 'EXECUTE'), ('view', 'TABLE', 'SELECT'),
                          ('type', 'TYPE', 'USAGE'))
                  AS k (type, kind, public_right) ON k.type = o.type
        WHERE d.refclassid = 'pg_namespace'::regclass AND (d.objid = ANY (known)) IS NOT TRUE
          AND d.refobjid IN ('instaid'::regnamespace, 'instaid_sql'::regnamespace));
END $$;
CALL instaid._set_rights();
COMMIT;
