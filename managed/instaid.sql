/* managed/instaid.sql */

--
-- instaid where C is refused: SQL and PL/pgSQL only, without a superuser or a setting.
--
-- Run this file once in each database, as a role with CREATE on the database, in one
-- transaction: psql -1 -f instaid.sql.  A web console that runs a text as a whole does, too.
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
-- functions, so their names and arguments never change.
--

-- Views and some functions are parsed now, and must not find an operator or a function that
-- another role has put into a schema of the search path.
SET search_path = pg_catalog;

CREATE SCHEMA instaid;
CREATE SCHEMA instaid_sql;
CREATE SCHEMA instaid_tickets;
GRANT USAGE ON SCHEMA instaid, instaid_sql, instaid_tickets TO PUBLIC;
COMMENT ON SCHEMA instaid IS
'Instagram-style IDs: 64 bits, sorted by time, with the number of the shard; edition without C';
COMMENT ON SCHEMA instaid_sql IS 'what the functions of shards call';
COMMENT ON SCHEMA instaid_tickets IS 'the tickets of instaid, one sequence each';

--
-- Private functions that several parts use
--

-- Refuse null arguments of a function that is not STRICT.
CREATE FUNCTION instaid._check_no_nulls(routine text, arguments json) RETURNS void
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
END
$$;

-- Refuse an isolation level that does not show what other transactions commit meanwhile.
CREATE FUNCTION instaid._check_read_committed(routine text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
        RAISE invalid_transaction_state USING
            MESSAGE = format('%s() must run in a READ COMMITTED transaction', routine),
            DETAIL = 'Otherwise it would not see the rows of the transactions that it waits for.',
            HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED;';
    END IF;
END
$$;

-- Refuse a caller who does not have the rights of the owner of an object.
CREATE FUNCTION instaid._check_owner(owner regrole, kind text, object text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT pg_has_role(owner, 'USAGE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of %s %s', kind, object),
            DETAIL = format('Its owner is %s.', owner);
    END IF;
END
$$;

-- Refuse a name that is too long, or empty.
-- Functions take names as text, because a cast to name truncates those that are too long.
CREATE FUNCTION instaid._check_name(what text, name text) RETURNS void
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
END
$$;

-- Refuse a schema name that no shard can have.
CREATE FUNCTION instaid._check_shard_schema(schema_name text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._check_name('schema', schema_name);
    IF schema_name ~ '^(instaid|instaid_sql|instaid_tickets|information_schema|pg_.*)$' THEN
        RAISE reserved_name USING MESSAGE = format('schema %I cannot be a shard', schema_name),
            DETAIL = 'It belongs to the extension or the server.',
            HINT = 'Choose another schema.';
    END IF;
END
$$;

-- Refuse a shard ID that is out of range.
CREATE FUNCTION instaid._check_shard_id(shard_id integer) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF shard_id NOT BETWEEN 0 AND 8191 THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('shard ID %s is out of range', shard_id),
            DETAIL = 'A shard ID is between 0 and 8191.';
    END IF;
END
$$;

-- The function of a schema with a name and argument types; null if there is none.
-- By the whole key of an index: thousands of schemas have a next_id(), and a look-up by
-- its name alone, as in a cast to regprocedure, reads all of them.
CREATE FUNCTION instaid._find_function(schema_name text, function_name name,
                                       argument_types oidvector) RETURNS oid
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT p.oid FROM pg_proc AS p
    WHERE p.proname = function_name AND p.proargtypes = argument_types
      AND p.pronamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = schema_name);
END;

-- Whether a schema belongs to a superuser, or to the owner of the database, who is one.
-- A role that is not a superuser can put other objects in place of those in its schema.
CREATE FUNCTION instaid._is_superusers_schema(schema oid) RETURNS boolean
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT o.rolsuper OR o.rolname = 'pg_database_owner' AND d.rolsuper
    FROM pg_namespace AS n JOIN pg_roles AS o ON o.oid = n.nspowner
         JOIN pg_database AS b ON b.datname = current_database()
         JOIN pg_roles AS d ON d.oid = b.datdba
    WHERE n.oid = schema;
END;

-- Refuse a caller who does not have the rights of the owner of a table.  Refuse a superuser's
-- table if the owner of its schema could put another table in its place, after this look and
-- before a command that names the table.
CREATE FUNCTION instaid._check_table_owner(relation regclass) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    main record;
BEGIN
    SELECT o.oid::regrole AS owner, n.nspname, n.nspowner::regrole AS schema_owner,
           o.rolsuper AND NOT instaid._is_superusers_schema(n.oid) AS can_be_replaced INTO main
    FROM pg_class AS c JOIN pg_roles AS o ON o.oid = c.relowner
         JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = relation;
    PERFORM instaid._check_owner(main.owner, 'table', relation::text);
    IF main.can_be_replaced THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('table %s belongs to a superuser, and its schema does not', relation),
            DETAIL = format('Role %s, which owns schema %I, could put another table in its place'
                            ' meanwhile.', main.schema_owner, main.nspname),
            HINT = format('Give it to the owner of the schema: ALTER TABLE %s OWNER TO %s;',
                          relation, main.schema_owner);
    END IF;
END
$$;

-- A table, its partitions and its children, at all levels, and their owners.
CREATE FUNCTION instaid._descendants(relation oid, OUT relid oid, OUT owner regrole)
    RETURNS SETOF record
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    WITH RECURSIVE descendant (relid) AS (
        SELECT relation
        UNION
        SELECT i.inhrelid FROM descendant AS d JOIN pg_inherits AS i ON i.inhparent = d.relid)
    SELECT d.relid, c.relowner
    FROM descendant AS d JOIN pg_class AS c ON c.oid = d.relid ORDER BY d.relid;
END;

-- Run a command of the caller, who must be this role; return the first column of its first
-- row.
-- Tables, indexes and views can hold code of their owner.  Without C nothing can run it with
-- the owner's rights only.  Therefore the caller must be the owner.
CREATE FUNCTION instaid._execute_as(role regrole, command text) RETURNS text
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    result text;
BEGIN
    IF role::oid <> (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('role %s must run this itself', role),
            DETAIL = 'It owns an object that the call uses. Code in this object would run with'
                     ' the rights of the caller.',
            HINT = format('SET ROLE %s;', role);
    END IF;
    IF command ~ '^SELECT ' THEN
        EXECUTE command INTO result;
    ELSE
        EXECUTE command;
    END IF;
    RETURN result;
END
$$;

-- The type under a domain, or under a domain over a domain; any other type unchanged; null
-- if the type does not exist.
CREATE FUNCTION instaid._base_type(type regtype) RETURNS regtype
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    WITH RECURSIVE layer (oid, typtype, typbasetype) AS (
        SELECT t.oid, t.typtype, t.typbasetype FROM pg_type AS t WHERE t.oid = type
        UNION ALL
        SELECT t.oid, t.typtype, t.typbasetype
        FROM layer AS l JOIN pg_type AS t ON t.oid = l.typbasetype
        WHERE l.typtype = 'd')
    SELECT l.oid::regtype FROM layer AS l WHERE l.typtype <> 'd';
END;

--
-- Reading and packing IDs
--

-- The functions that queries call for each row are in SQL without branches, so that PostgreSQL
-- replaces the call with its expression.  It evaluates what depends on a constant epoch only
-- once.  A timestamptz and an interval would not do: adding them depends on the time zone.

CREATE FUNCTION instaid.default_epoch() RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN timestamptz '2011-08-24 21:07:01.721+00';
COMMENT ON FUNCTION instaid.default_epoch() IS
'the epoch that Instagram published: 1314220021721 ms after 1970-01-01 00:00 UTC';

-- Say why an epoch cannot be used.
CREATE FUNCTION instaid._refuse_epoch(epoch timestamptz) RETURNS timestamp
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' AS $$
DECLARE
    first CONSTANT timestamptz := '4714-11-24 00:00:00+00 BC';
    last CONSTANT timestamptz := '294207-04-27 08:12:24.448+00';
    excess integer;
BEGIN
    IF NOT isfinite(epoch) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('epoch %s is not a point in time', epoch),
            DETAIL = 'An epoch must be finite.';
    ELSIF epoch < first OR epoch >= last + interval '1 ms' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('epoch %s is out of range', epoch),
            DETAIL = format('An epoch must be between %s and %s.', first, last);
    END IF;
    excess := extract(microseconds FROM epoch)::integer % 1000;
    RAISE invalid_parameter_value USING
        MESSAGE = format('epoch %s is not a whole millisecond', epoch),
        DETAIL = format('It is %s us after a whole millisecond. IDs count milliseconds.', excess),
        HINT = format('Pass %s.', epoch - excess * interval '1 us');
END
$$;

-- An epoch in UTC; refuse one that is infinite, out of range, or not a whole millisecond.
-- With an epoch before the end, the time of each bigint is a timestamp.
CREATE FUNCTION instaid._utc_epoch(epoch timestamptz) RETURNS timestamp
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
    RETURN instaid._refuse_epoch(epoch);
END
$$;

-- The milliseconds from the epoch to a time, which must be from 0 to last_ms.
CREATE FUNCTION instaid._id_ms(created_at timestamptz, epoch timestamptz, last_ms bigint)
    RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' AS $$
DECLARE
    ms CONSTANT numeric := floor(instaid._ms_since(epoch, created_at));
BEGIN
    IF ms NOT BETWEEN 0 AND last_ms THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('time %s is out of range for an ID', created_at),
            DETAIL = format('The time must be between the epoch, %s, and %s ms after it.', epoch,
                            last_ms);
    END IF;
    RETURN ms;
END
$$;

CREATE FUNCTION instaid.make_id(created_at timestamptz, shard_id integer, sequence bigint,
                                epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._check_shard_id(shard_id);
    RETURN (instaid._id_ms(created_at, epoch, 2199023255551) << 23) | (shard_id << 10)
           | (sequence & 1023);
END
$$;
COMMENT ON FUNCTION instaid.make_id(timestamptz, integer, bigint, timestamptz) IS
'the ID that has this time, shard ID and sequence; the time is rounded down to the '
'millisecond, the sequence taken modulo 1024; error if the shard ID is not 0 to 8191, or the '
'time is before the epoch or 2^41 ms or more after it';

CREATE FUNCTION instaid.make_ids(times timestamptz[], shard_id integer,
                                 epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS SETOF bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' AS $$
DECLARE
    total CONSTANT integer := cardinality(times);
    -- the last ID without its shard ID
    last bigint := -1;
    ms bigint;
    in_ms integer;
BEGIN
    PERFORM instaid._check_shard_id(shard_id), instaid._utc_epoch(epoch);
    -- all dimensions in one
    times := ARRAY(SELECT t FROM unnest(times) AS t);
    FOR i IN 1 .. total LOOP
        IF times[i] IS NULL THEN
            RAISE null_value_not_allowed USING
                MESSAGE = 'times must not contain a null',
                DETAIL = format('Time %s of %s is null.', i, total),
                HINT = 'Leave such rows out, or pass another time for them.';
        ELSIF times[i] < times[i - 1] THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('time %s is earlier than the time before it, %s', times[i],
                                 times[i - 1]),
                DETAIL = format('It is time %s of %s. IDs increase, and so must their times.', i,
                                total),
                HINT = 'Sort the times, as in array_agg(created_at ORDER BY created_at).';
        END IF;
        ms := instaid._id_ms(times[i], epoch, 1099511627775);
        last := last + 1;
        IF last >> 10 < ms THEN
            in_ms := 1;
            WHILE in_ms < 1024 AND date_trunc('milliseconds', times[i + in_ms])
                                   = date_trunc('milliseconds', times[i]) LOOP
                in_ms := in_ms + 1;
            END LOOP;
            -- the sequence field runs on, if the rows of the millisecond fit
            last := (ms << 10) + CASE WHEN (last & 1023) + in_ms <= 1024 THEN last & 1023
                                      ELSE 0 END;
        END IF;
        IF last >> 10 > 1099511627775 THEN
            RAISE sequence_generator_limit_exceeded USING
                MESSAGE = format('the IDs of epoch %s are used up', epoch),
                DETAIL = format('Time %s of %s, %s, is one of more than 1024 in the last'
                                ' milliseconds.', i, total, times[i]),
                HINT = 'Pass a later epoch.';
        END IF;
        RETURN NEXT (last >> 10 << 23) + (shard_id << 10) + (last & 1023);
    END LOOP;
END
$$;
COMMENT ON FUNCTION instaid.make_ids(timestamptz[], integer, timestamptz) IS
'an ID for each of these times, which must be in order; the IDs are different and in order; '
'above 1,024 in a millisecond they are of the next one';

-- The 41 bits of the time have no sign.
CREATE FUNCTION instaid.extract_timestamp(id bigint,
                                          epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (instaid._utc_epoch(epoch) + (id >> 23 & 2199023255551) * interval '1 ms')
           AT TIME ZONE 'UTC';
COMMENT ON FUNCTION instaid.extract_timestamp(bigint, timestamptz) IS
'the time of an ID, to the millisecond';

CREATE FUNCTION instaid.extract_shard_id(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (id >> 10 & 8191)::integer;
COMMENT ON FUNCTION instaid.extract_shard_id(bigint) IS 'the shard ID of an ID, 0 to 8191';

CREATE FUNCTION instaid.extract_sequence(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (id & 1023)::integer;
COMMENT ON FUNCTION instaid.extract_sequence(bigint) IS 'the sequence field of an ID, 0 to 1023';

CREATE FUNCTION instaid.decode(id bigint,
                               epoch timestamptz DEFAULT instaid.default_epoch(),
                               OUT created_at timestamptz, OUT shard_id integer,
                               OUT sequence integer)
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ROW(instaid.extract_timestamp(id, epoch), instaid.extract_shard_id(id),
               instaid.extract_sequence(id));
COMMENT ON FUNCTION instaid.decode(bigint, timestamptz) IS
'the time of an ID (to the millisecond), its shard ID (0 to 8191) and its sequence field (0 '
'to 1023)';

--
-- Time ranges and partitions
--

-- The milliseconds from an epoch to a time, with fractions.
-- In numeric, because times can be infinite.  The result counts from the epoch.
CREATE FUNCTION instaid._ms_since(epoch timestamptz, created_at timestamptz) RETURNS numeric
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (extract(epoch FROM created_at AT TIME ZONE 'UTC')
            - extract(epoch FROM instaid._utc_epoch(epoch))) * 1000;
END
$$;

CREATE FUNCTION instaid.min_id(created_at timestamptz,
                               epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN LEAST(GREATEST(floor(instaid._ms_since(epoch, created_at)), 0),
                 1099511627775)::bigint << 23;
COMMENT ON FUNCTION instaid.min_id(timestamptz, timestamptz) IS
'the smallest ID of a millisecond, over all shards; a time before the epoch counts as the '
'first millisecond of the format, and a time after its end as the last';

CREATE FUNCTION instaid.max_id(created_at timestamptz,
                               epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (LEAST(GREATEST(floor(instaid._ms_since(epoch, created_at)), 0),
                  1099511627775)::bigint << 23) | 8388607;
COMMENT ON FUNCTION instaid.max_id(timestamptz, timestamptz) IS
'the largest ID of a millisecond, over all shards; a time before the epoch counts as the '
'first millisecond of the format, and a time after its end as the last';

-- The first millisecond of the format that begins at a time or after it; 2^40 if there is
-- none.
-- The bounds of created_between():
--
--                 before the epoch    in the format       after it
--  min_id_from    0                   smallest, time >=   null
--  max_id_before  -1                  largest, time <     9223372036854775807
--
-- The first whole millisecond since the epoch that is not before a time
CREATE FUNCTION instaid._first_ms_from(created_at timestamptz, epoch timestamptz) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN LEAST(GREATEST(ceil(instaid._ms_since(epoch, created_at)), 0), 1099511627776);
END
$$;

CREATE FUNCTION instaid.min_id_from(created_at timestamptz,
                                    epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN NULLIF(instaid._first_ms_from(created_at, epoch), 1099511627776) << 23;
COMMENT ON FUNCTION instaid.min_id_from(timestamptz, timestamptz) IS
'the smallest ID whose time is not before created_at; null if there is none';

CREATE FUNCTION instaid.max_id_before(created_at timestamptz,
                                      epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (instaid._first_ms_from(created_at, epoch) - 1 << 23) + 8388607;
COMMENT ON FUNCTION instaid.max_id_before(timestamptz, timestamptz) IS
'the largest ID whose time is before created_at; -1 if there is none';

-- Not STRICT: PostgreSQL would not inline an AND.  Each time is used once, so that it can
-- be a subselect.  ">=", because "> the largest before" does not prune the partition that
-- ends there.
CREATE FUNCTION instaid.created_between(id bigint, from_time timestamptz, to_time timestamptz,
                                        epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN id >= instaid.min_id_from(from_time, epoch)
           AND id <= instaid.max_id_before(to_time, epoch);
COMMENT ON FUNCTION instaid.created_between(bigint, timestamptz, timestamptz, timestamptz) IS
'whether an ID has a time from from_time on, before to_time; uses indexes, prunes partitions';

CREATE FUNCTION instaid.integer_now() RETURNS bigint
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN instaid.min_id(pg_catalog.now());
COMMENT ON FUNCTION instaid.integer_now() IS
'the smallest ID of now(), with the default epoch; for tools that partition by integers';

CREATE FUNCTION instaid.interval_to_ids(length interval) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ms numeric;
BEGIN
    IF extract(year FROM length) <> 0 OR extract(month FROM length) <> 0 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('interval %s has no fixed length', length),
            DETAIL = 'Months and years differ in length.',
            HINT = 'Give the interval in days, such as 30 days.';
    END IF;
    ms := floor(extract(epoch FROM length) * 1000);
    IF ms NOT BETWEEN 1 AND 1099511627775 THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('interval %s is out of range', length),
            DETAIL = 'The interval must be between 1 and 1099511627775 ms.';
    END IF;
    RETURN ms::bigint << 23;
END
$$;
COMMENT ON FUNCTION instaid.interval_to_ids(interval) IS
'the difference between two IDs whose times are that far apart; for tools that partition by '
'integers; error if the interval has months, or is not 1 ms to 2^40 - 1 ms';

CREATE FUNCTION instaid.create_partitions(parent regclass, from_time timestamptz,
                                          to_time timestamptz, step interval,
                                          epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS SETOF regclass
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET timezone = 'UTC'
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    max_partitions CONSTANT integer := 1000;
    main record;
    expires_at timestamptz;
    name_format text;
    part record;
    name text;
BEGIN
    PERFORM instaid._check_no_nulls('create_partitions', json_build_object(
        'parent', parent, 'from_time', from_time, 'to_time', to_time, 'step', step,
        'epoch', epoch));
    SELECT c.relname, n.nspname, c.relowner::regrole AS owner, a.attname INTO main
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
         JOIN pg_partitioned_table AS p ON p.partrelid = c.oid
         JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = p.partattrs[0]
    WHERE c.oid = parent AND p.partstrat = 'r' AND p.partnatts = 1
      AND a.atttypid IN ('bigint'::regtype);
    IF NOT FOUND THEN
        RAISE wrong_object_type USING
            MESSAGE = format('%s is not partitioned by range of one bigint column', parent),
            DETAIL = COALESCE('It is partitioned by ' || pg_get_partkeydef(parent) || '.',
                              'It is not partitioned.'),
            HINT = 'Create the table with PARTITION BY RANGE (id), where id is a bigint column.';
    END IF;
    PERFORM instaid._check_table_owner(parent);
    IF step < '1 ms' OR from_time >= to_time THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('step %s does not lead from %s to %s', step, from_time, to_time),
            DETAIL = 'from_time must be before to_time, and the step at least 1 ms.';
    END IF;
    -- longer than the format, and a thousand of them are not past the times of PostgreSQL
    step := LEAST(step, '200 years');
    -- refuses an infinite epoch
    expires_at := instaid.extract_timestamp(-9223372036854775808, epoch);
    IF from_time + step <= epoch OR to_time > expires_at THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('times from %s to %s are out of range for an ID', from_time, to_time),
            DETAIL = format('With epoch %s, partitions can begin at %s and end at %s.',
                            epoch, epoch, expires_at);
    END IF;
    IF from_time + max_partitions * step < to_time THEN
        RAISE program_limit_exceeded USING
            MESSAGE = format('too many partitions from %s to %s', from_time, to_time),
            DETAIL = format('One call creates up to %s; with step %s they would end at %s.',
                            max_partitions, step, from_time + max_partitions * step),
            HINT = 'Choose a longer step, or an earlier to_time.';
    END IF;
    name_format := CASE
        WHEN from_time = date_trunc('day', from_time)
             AND step = date_trunc('day', justify_hours(step)) THEN 'YYYYMMDD'
        WHEN from_time = date_trunc('second', from_time)
             AND step = date_trunc('second', step) THEN 'YYYYMMDD_HH24MISS'
        ELSE 'YYYYMMDD_HH24MISSUS' END;

    -- Two sessions cannot both find a partition missing: one waits for the other.  Rows can
    -- be read and written meanwhile.  This and all that follows runs as the owner: indexes,
    -- for example, can hold code that runs when the table is read.
    PERFORM instaid._execute_as(main.owner, format(
        'LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent));
    FOR part IN
        SELECT s.since, s.until, i.first_id, i.end_id, b.bounds,
               (SELECT NULLIF(p.partdefid, 0)::regclass FROM pg_partitioned_table AS p
                WHERE p.partrelid = parent) AS default_partition
        FROM generate_series(0, max_partitions - 1) AS n
             -- By multiples of the step, because months differ in length: after the last day of
             -- a shorter month comes the 31st again.
             CROSS JOIN LATERAL (VALUES (from_time + n * step, from_time + (n + 1) * step))
                                AS s (since, until)
             CROSS JOIN LATERAL (VALUES (instaid.min_id_from(s.since, epoch),
                                         instaid.min_id_from(s.until, epoch)))
                                AS i (first_id, end_id)
             CROSS JOIN LATERAL replace(format('FOR VALUES FROM (%L) TO (%L)', i.first_id,
                                               i.end_id), 'NULL', 'MAXVALUE') AS b (bounds)
        -- without the table's OID, pg_get_expr() takes no lock
        WHERE s.since < to_time AND b.bounds NOT IN (
            SELECT pg_get_expr(c.relpartbound, 0)
            FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
            WHERE i.inhparent = parent AND NOT i.inhdetachpending)
        ORDER BY n
    LOOP
        -- PostgreSQL reads the default partition, which can hold code of its owner.
        IF EXISTS (SELECT FROM instaid._descendants(part.default_partition) AS d
                   WHERE d.owner <> main.owner) THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('default partition %s does not belong to the owner of table %s',
                                 part.default_partition, parent),
                DETAIL = format('The owner, %s, must be able to read it and its partitions.',
                                main.owner),
                HINT = 'Give them to one owner, or detach the default partition.';
        END IF;
        name := format('%s_%s', main.relname, to_char(part.since, name_format));
        PERFORM instaid._check_name('partition', name);
        name := format('%I.%I', main.nspname, name);
        IF to_regclass(name) IS NOT NULL THEN
            RAISE duplicate_table USING MESSAGE = format('relation %s already exists', name),
                DETAIL = format('It is not the partition from %s to %s, or is being detached.',
                                part.since, part.until),
                HINT = 'Choose from_time and step as before, or rename it, or drop it if nothing'
                       ' uses it.';
        END IF;
        -- PostgreSQL refuses it, too, and does not say what to do.
        IF part.default_partition IS NOT NULL AND instaid._execute_as(main.owner, format(
               'SELECT EXISTS (SELECT FROM %s WHERE %I BETWEEN %L AND %s)',
               part.default_partition, main.attname, part.first_id,
               COALESCE(part.end_id - 1, 9223372036854775807)))::boolean THEN
            RAISE check_violation USING
                MESSAGE = format('default partition %s has rows from %s to %s',
                                 part.default_partition, part.since, part.until),
                DETAIL = 'They belong in the new partition. PostgreSQL does not move them.',
                HINT = 'Detach the default partition, create the others, and insert its rows into'
                       ' the table.';
        END IF;
        -- PostgreSQL refuses a partition that overlaps another one.
        PERFORM instaid._execute_as(main.owner, format(
            'CREATE TABLE %s PARTITION OF %s %s', name, parent, part.bounds));
        RETURN NEXT name::regclass;
    END LOOP;
END
$$;
COMMENT ON FUNCTION instaid.create_partitions(regclass, timestamptz, timestamptz, interval,
                                              timestamptz) IS
'create and return the missing partitions of a table by range of its IDs, up to 1000, one for '
'each step from from_time until to_time is covered; the caller needs the rights of the owner';

--
-- Text forms
--

--                 digits                           bits  length  0         2^63 - 1
--  shortcode      A-Z a-z 0-9 - _                  6     1..11   A         H__________
--  base32         0-9 A-Z without I, L, O and U    5     13      000...0   7ZZZZZZZZZZZZ

-- Refuse an ID that has no text form.
CREATE FUNCTION instaid._refuse_negative(id bigint) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE numeric_value_out_of_range USING
        MESSAGE = format('ID %s has no text form', id),
        DETAIL = 'Only IDs from 0 to 9223372036854775807 have one.';
END
$$;

-- Twelve digits of base64 are 9 bytes.  The first digit is 0.
CREATE FUNCTION instaid.to_shortcode(id bigint) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN id < 0 THEN instaid._refuse_negative(id) WHEN id = 0 THEN 'A'
                ELSE ltrim(translate(encode(decode('00', 'hex') || int8send(id), 'base64'),
                                     '+/', '-_'), 'A') END;
COMMENT ON FUNCTION instaid.to_shortcode(bigint) IS
'an ID as Instagram writes it in addresses: 1 to 11 base64url digits, the most significant '
'first, without padding; error if it is negative';

CREATE FUNCTION instaid.to_base32(id bigint) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    result text := '';
BEGIN
    IF id < 0 THEN
        RETURN instaid._refuse_negative(id);
    END IF;
    FOR i IN 1 .. 13 LOOP
        result := substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', (id & 31)::integer + 1, 1) || result;
        id := id >> 5;
    END LOOP;
    RETURN result;
END
$$;
COMMENT ON FUNCTION instaid.to_base32(bigint) IS
'an ID as 13 of Crockford''s base32 digits, which sort as the IDs do (COLLATE "C"); error if '
'it is negative';

-- The number that digits of an alphabet stand for.
CREATE FUNCTION instaid._from_digits(digits text, alphabet text, bits integer) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    id bigint := 0;
BEGIN
    FOR i IN 1 .. length(digits) LOOP
        id := id << bits | strpos(alphabet, substr(digits, i, 1)) - 1;
    END LOOP;
    RETURN id;
END
$$;

-- Say why a text is no shortcode, or no base32.
-- The first fault from the left counts.
CREATE FUNCTION instaid._refuse_digits(input text, form text, digits text, alphabet text,
                                       bits integer, most integer, last text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    is_shortcode CONSTANT boolean := form = 'shortcode';
    id bigint := 0;
    count integer := 0;
    position integer := 0;
    digit integer;
    character text;
    fault text;
    -- the first 64 bytes, in whole characters
    shown text := left(input, 64);
BEGIN
    WHILE octet_length(shown) > 64 LOOP
        shown := left(shown, -1);
    END LOOP;
    WHILE fault IS NULL LOOP
        position := position + 1;
        character := substr(input, position, 1);
        CONTINUE WHEN character = '-' AND NOT is_shortcode;
        digit := strpos(alphabet, substr(digits, position, 1)) - 1;
        fault := CASE
            WHEN character = '' THEN '%3$s "%4$s" ends too early, at position %5$s'
            WHEN digit < 0 THEN 'invalid character "%1$s" at position %2$s of %3$s "%4$s"'
            WHEN is_shortcode AND digit = 0 AND position = 1 AND input <> character
            THEN 'leading zero "%1$s" at position %2$s of %3$s "%4$s"'
            WHEN CASE WHEN is_shortcode THEN id > 9223372036854775807 >> bits
                      ELSE count = 0 AND digit > 7 END
            THEN 'digit "%1$s" at position %2$s of %3$s "%4$s" makes the ID too large'
            WHEN count = most
            THEN 'digit "%1$s" at position %2$s of %3$s "%4$s" is one too many' END;
        id := id << bits | digit;
        count := count + 1;
    END LOOP;
    IF fault LIKE 'leading %' THEN
        RAISE invalid_text_representation USING
            MESSAGE = format(fault, character, position, form, shown),
            DETAIL = format('The %s of an ID has no leading zeros.', form),
            HINT = format('Remove the leading "%s".', character);
    END IF;
    RAISE invalid_text_representation USING
        MESSAGE = CASE WHEN input = '' THEN form || ' is empty'
                       ELSE format(fault, character, position, form, shown, position - 1) END,
        DETAIL = CASE WHEN fault LIKE '%too large'
                      THEN format('The largest ID is 9223372036854775807, written "%s".', last)
                      WHEN is_shortcode
                      THEN 'A shortcode has 1 to 11 of the digits A-Z, a-z, 0-9, - and _.'
                      ELSE 'Base32 has 13 of the digits 0-9 and A-Z without U. Hyphens are'
                           ' ignored.'
                 END;
END
$$;

CREATE FUNCTION instaid.from_shortcode(shortcode text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    alphabet CONSTANT text := 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
BEGIN
    -- one zero, or up to 63 bits without leading zeros
    IF shortcode ~ '^(A|[B-Za-z0-9_-][A-Za-z0-9_-]{0,9}|[B-H][A-Za-z0-9_-]{10})$' THEN
        RETURN instaid._from_digits(shortcode, alphabet, 6);
    END IF;
    RETURN instaid._refuse_digits(shortcode, 'shortcode', shortcode, alphabet, 6, 11,
                                  'H__________');
END
$$;
COMMENT ON FUNCTION instaid.from_shortcode(text) IS
'the ID of a shortcode; error for text that to_shortcode() does not return';

CREATE FUNCTION instaid.from_base32(base32 text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    alphabet CONSTANT text := '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
    digits CONSTANT text := translate(base32, 'abcdefghijklmnopqrstuvwxyzILO',
                                      'ABCDEFGH1JK1MN0PQRSTUVWXYZ110');
    plain CONSTANT text := replace(digits, '-', '');
BEGIN
    IF plain ~ '^[0-7][0-9A-HJKMNP-TV-Z]{12}$' THEN
        RETURN instaid._from_digits(plain, alphabet, 5);
    END IF;
    RETURN instaid._refuse_digits(base32, 'base32', digits, alphabet, 5, 13, '7ZZZZZZZZZZZZ');
END
$$;
COMMENT ON FUNCTION instaid.from_base32(text) IS
'the ID of 13 base32 digits; case and hyphens are ignored, I and L are read as 1, O as 0; '
'error for other text';

--
-- Making IDs
--

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

CREATE TYPE instaid_sql.sequence_options AS (
    start_value bigint,
    minimum_value bigint,
    maximum_value bigint,
    increment bigint,
    cycle_option boolean,
    cache_size bigint,
    data_type oid
);
COMMENT ON TYPE instaid_sql.sequence_options IS 'what pg_sequence_parameters() returns';

-- The options of the sequences of this shard and epoch.
CREATE FUNCTION instaid_sql._options(shard_id integer, epoch_ms bigint)
    RETURNS instaid_sql.sequence_options
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ROW(epoch_ms, epoch_ms, (1099511627775 << 23) + (shard_id << 10) + 1023, 1, false, 1,
               20)::instaid_sql.sequence_options;

-- The first ID of a shard in the millisecond that the clock reads.
-- A cast to bigint rounds to the nearest.  Therefore half a millisecond is taken away, less half
-- a microsecond for the error of a double.  A clock that reads a time before 1991, or after the
-- last ID, is an error: bigint is out of range.
CREATE FUNCTION instaid_sql._clock(options instaid_sql.sequence_options) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (date_part('epoch', clock_timestamp()) * 1000
            - (options.minimum_value + 0.4995::float8))::bigint * 8388608
           + (options.maximum_value & 8387584);
END
$$;

-- Say why a sequence cannot serve.
CREATE FUNCTION instaid_sql._refuse(sequence regclass, options instaid_sql.sequence_options)
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
            HINT = 'Use a sequence of the shard: instaid.add_sequence() creates one.';
    END IF;
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = format('sequence "%s" cannot serve as a source of IDs', main.relname),
        DETAIL = format('Its parameters are %s. They must be %s.', actual, options),
        HINT = format('ALTER SEQUENCE %I.%I AS bigint INCREMENT BY 1 START WITH %s CACHE 1'
                      ' NO CYCLE;', main.nspname, main.relname, actual.minimum_value);
END
$$;

-- Whether the extension makes the IDs of a sequence now.
-- The extension's adopt_shard() gives the sequence its range of ticks, and next_id() another
-- name.  A call that waited for that meanwhile ends here.  It has not looked at the sequence
-- yet: the first look keeps ALTER SEQUENCE out until the transaction ends.
CREATE FUNCTION instaid_sql._is_adopted(sequence regclass) RETURNS boolean
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (pg_sequence_parameters(sequence)).minimum_value = 1
           AND EXISTS (SELECT FROM pg_class AS c
                            JOIN pg_proc AS p ON p.pronamespace = c.relnamespace
                                              AND p.proname = 'next_ids'
                            JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname = 'instaid'
                       WHERE c.oid = sequence);
END
$$;

-- The next ID of a sequence that the extension has adopted; refuse any other that cannot
-- serve.
CREATE FUNCTION instaid_sql._elsewhere(sequence regclass, options instaid_sql.sequence_options)
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    id bigint;
BEGIN
    IF NOT instaid_sql._is_adopted(sequence) THEN
        PERFORM instaid_sql._refuse(sequence, options);
    END IF;
    EXECUTE 'SELECT instaid.next_id($1, $2, $3)' INTO id
        USING sequence, (options.maximum_value >> 10 & 8191)::integer,
              to_timestamp(options.minimum_value / 1000.0);
    RETURN id;
END
$$;

-- The command that locks a sequence for setval(); null if the extension has adopted it;
-- refuse any other that cannot serve.
-- The lock is of a view: nobody else may lock it, and ANALYZE, which would take the same lock,
-- leaves views alone.  An advisory lock could be held by any role.  The identity of a sequence
-- is always qualified, whatever search_path is.  A sequence "q" has the lock "q_lock".
CREATE FUNCTION instaid_sql._lock_command(sequence regclass, options instaid_sql.sequence_options)
    RETURNS text
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF pg_sequence_parameters(sequence) = options THEN
        RETURN replace('LOCK ' || (pg_identify_object('pg_class'::regclass, sequence, 0)).identity
                       || '_lock IN SHARE UPDATE EXCLUSIVE MODE', '"_lock', '_lock"');
    ELSIF NOT instaid_sql._is_adopted(sequence) THEN
        PERFORM instaid_sql._refuse(sequence, options);
    END IF;
    RETURN NULL;
END
$$;

-- The next ID of a sequence whose lock the caller has.
-- Under the lock, where the sequence may be at or after t: an ID of the millisecond in which it
-- is, or else the first of a later one.  An ID may be up to 100 ms late, as in _share().
CREATE FUNCTION instaid_sql._take(sequence regclass, t bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    base CONSTANT bigint := t & 8387584;
    last bigint := instaid_sql._last_value(sequence, t);
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
END
$$;

-- The first ID of the millisecond after the one of a value; error if there is none.
CREATE FUNCTION instaid_sql._ms_after(sequence regclass, last bigint, base bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF last - base >> 23 >= 1099511627775 THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('sequence %s is past the last ID of its epoch', sequence),
            DETAIL = format('The sequence is at %s. The clock reads %s.', last, clock_timestamp()),
            HINT = 'If the sequence was set too far by mistake, set it back with setval().';
    END IF;
    RETURN (last - base | 8388607) + 1 + base;
END
$$;

-- The last value of a sequence; if it was restarted, one that is 2.1 s ahead of the clock.
-- A sequence that was RESTARTed, or restored without data, begins after all that next_ids() can
-- have reserved.  From PostgreSQL 17 on, pg_sequence_last_value() is null for want of a
-- privilege, too, and setval() could then go back.
CREATE FUNCTION instaid_sql._last_value(sequence regclass, t bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last CONSTANT bigint := pg_sequence_last_value(sequence);
BEGIN
    IF last IS NULL AND NOT has_sequence_privilege(sequence, 'SELECT, USAGE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied for sequence %s', sequence);
    END IF;
    RETURN COALESCE(last, t + (2100::bigint << 23) + 1023);
END
$$;

-- The next ID of a sequence that has no room in the millisecond of the clock.
-- Opens the millisecond of the clock, or takes an ID of a later one.  The lock is taken in a
-- subtransaction that is always rolled back: by the RAISE, by an error, or by a cancel.  What
-- setval() did stays.  An exception that is raised for this must not be caught as another:
-- SQLSTATE 'ID000' would be the whole class ID.
CREATE FUNCTION instaid_sql._open(sequence regclass, t bigint,
                                  options instaid_sql.sequence_options) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
DECLARE
    id bigint;
BEGIN
    BEGIN
        -- _lock_command(), without the call, and null if the sequence cannot serve
        EXECUTE CASE
            WHEN pg_catalog.pg_sequence_parameters(sequence) OPERATOR(pg_catalog.*=) options
            THEN pg_catalog.replace('LOCK ' OPERATOR(pg_catalog.||)
                     (pg_catalog.pg_identify_object('pg_catalog.pg_class'::pg_catalog.regclass,
                                                    sequence, 0)).identity
                     OPERATOR(pg_catalog.||) '_lock IN SHARE UPDATE EXCLUSIVE MODE NOWAIT',
                     '"_lock', '_lock"') END;
        id := CASE
            WHEN pg_catalog.pg_sequence_last_value(sequence) OPERATOR(pg_catalog.<) t
            THEN pg_catalog.setval(sequence, t OPERATOR(pg_catalog.+) (
                     pg_catalog.pg_sequence_last_value(sequence) OPERATOR(pg_catalog.+) 1
                     OPERATOR(pg_catalog.&) 1023)) END;
        IF id IS NULL THEN
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
END
$$;

-- The next ID of a sequence while another session has its lock.
-- Another session opens a millisecond, and may be off the processor.  An ID that is up to 100 ms
-- late is better than a queue, which gives one ID for each turn of the lock.
CREATE FUNCTION instaid_sql._share(sequence regclass, t bigint,
                                   options instaid_sql.sequence_options) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    late CONSTANT bigint := t - (100::bigint << 23);
    id bigint;
BEGIN
    FOR i IN 1 .. 50 LOOP
        id := CASE WHEN pg_sequence_last_value(sequence) + 1 - late & -9223372036846388224 = 0
                   THEN nextval(sequence) END;
        IF (id - t) & 8387584 = 0 THEN
            IF id > t + 1023 THEN
                PERFORM instaid_sql._flush_at_commit();
            END IF;
            RETURN id;
        END IF;
    END LOOP;
    EXECUTE instaid_sql._lock_command(sequence, options);
    id := instaid_sql._take(sequence, instaid_sql._clock(options));
    RAISE SQLSTATE 'ID001';
EXCEPTION WHEN SQLSTATE 'ID001' THEN
    RETURN id;
END
$$;

-- Let the COMMIT of this transaction flush the WAL of all transactions so far.
-- An ID ahead of the clock is only as durable as the setval() that opened its millisecond, which
-- can be of a transaction that is still open.  COMMIT flushes it if its own transaction has
-- written WAL.  A transaction ID alone does not make it flush.
--
-- One case is left: a transaction that has an ID and has written no WAL, for example because it
-- only writes to temporary tables.
CREATE FUNCTION instaid_sql._flush_at_commit() RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF pg_current_xact_id_if_assigned() IS NULL THEN
        PERFORM pg_logical_emit_message(true, 'instaid', ''::text);
    END IF;
END
$$;

-- The first of many IDs, 1024 in each millisecond; null if too many are reserved already.
-- Reserves whole milliseconds by one setval().  Null if the sequence is over a second ahead of
-- the clock, since taking the IDs one by one is slower, or if the extension has adopted it.
CREATE FUNCTION instaid_sql._reserve(sequence regclass, options instaid_sql.sequence_options,
                                     count integer) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    command CONSTANT text := instaid_sql._lock_command(sequence, options);
    t bigint;
    last bigint;
    first bigint;
BEGIN
    IF command IS NULL THEN
        RETURN NULL;
    END IF;
    EXECUTE command;
    t := instaid_sql._clock(options);
    last := instaid_sql._last_value(sequence, t);
    IF last <= t + (1000::bigint << 23) THEN
        first := GREATEST(t, instaid_sql._ms_after(sequence, last, t & 8387584));
        PERFORM setval(sequence, first + ((count - 1)::bigint >> 10 << 23) + (count - 1 & 1023));
    END IF;
    RAISE SQLSTATE 'ID001';
EXCEPTION WHEN SQLSTATE 'ID001' THEN
    RETURN first;
END
$$;

-- The next IDs of a sequence, in increasing order.
CREATE FUNCTION instaid_sql._next_ids(sequence regclass, options instaid_sql.sequence_options,
                                      count integer) RETURNS SETOF bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE ROWS 1000
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    base CONSTANT bigint := options.maximum_value & 8387584;
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
        id := CASE WHEN pg_sequence_last_value(sequence) + 1 - t & -9223372036846388224 = 0
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
END
$$;

-- Create the type and the functions of a shard.
-- The functions of a shard are in its schema, belong to its owner, and hold its shard ID and
-- its epoch as constants.
--
-- next_id() runs with the rights of its owner, so that no other role needs any right on the
-- sequence: who has UPDATE could set it back.  A caller can pass a sequence.  The type of the
-- parameter admits only those of the shard; a sequence of another shard, whose nextval() runs
-- past its room, would look like one of this shard.  The type and the default follow when the
-- sequence or the schema is renamed.
--
-- It has as few expressions as possible: PL/pgSQL prepares each of them anew in each
-- transaction.  It is without SET, so it names everything in full.
CREATE FUNCTION instaid_sql._declare(schema_name text, shard_id integer, epoch_ms bigint,
                                     sequence regclass, adopted oid DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
AS $create$
DECLARE
    options CONSTANT instaid_sql.sequence_options := instaid_sql._options(shard_id, epoch_ms);
    default_value CONSTANT text := format('%L::regclass', sequence);
BEGIN
    EXECUTE format($f$
CREATE DOMAIN %1$I.id_sequence AS regclass
    CONSTRAINT is_a_sequence_of_this_shard CHECK (VALUE = %2$s);
CREATE FUNCTION %1$I.next_id(sequence %1$I.id_sequence %3$s) RETURNS bigint
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
        RETURN instaid_sql._open(sequence, t OPERATOR(pg_catalog.+) 25165824, %6$L);
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
    RETURN instaid_sql._open(sequence, t OPERATOR(pg_catalog.+) 25165824, %6$L);
END
$$;
CREATE FUNCTION %1$I.next_ids(count integer, sequence %1$I.id_sequence DEFAULT %2$s)
    RETURNS SETOF bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER ROWS 1000
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT instaid_sql._next_ids(sequence, %6$L, count);
END
$$;
$f$, schema_name, default_value, CASE WHEN adopted IS NULL THEN 'DEFAULT ' || default_value END,
     epoch_ms + 3.4995, shard_id << 10, options);
END
$create$;

--
-- Shards
--

-- A shard is declared by the function next_ids() of its schema, whose default is its sequence.
-- A frozen sequence has the last ID of an earlier millisecond as its MAXVALUE.  MINVALUE tells
-- it from an ordinary sequence: an epoch that can serve is between 1990 and 2100.
CREATE FUNCTION instaid.list_shards(OUT schema_name name, OUT shard_id integer,
                                    OUT epoch timestamptz, OUT sequence regclass,
                                    OUT declaration oid) RETURNS SETOF record
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED ROWS 100
    SET search_path = pg_catalog, pg_temp SET enable_nestloop = off
BEGIN ATOMIC
    SELECT n.nspname, instaid.extract_shard_id(q.seqmax), to_timestamp(q.seqmin / 1000.0),
           q.seqrelid::regclass, p.oid
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
         JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
                            AND d.refclassid = 'pg_class'::regclass
         JOIN pg_sequence AS q ON q.seqrelid = d.refobjid
    WHERE p.proname = 'next_ids' AND p.pronargs = 2 AND p.pronargdefaults = 1
      AND n.nspname !~ '^pg_' AND q.seqmin BETWEEN 631152000001 AND 4102444800000
      AND instaid.extract_sequence(q.seqmax) = 1023;
END;
COMMENT ON FUNCTION instaid.list_shards() IS
'what the shards of this database declare, and the OIDs of the declaring functions; see the '
'view instaid.shards';

-- The last value of a sequence; null if it was never used, without SELECT on it, and while its
-- owner changes it.
-- To read last_value takes a lock until the transaction ends, and thousands of them do not fit
-- into the lock table.  A subtransaction that is rolled back releases it, but not the lock of
-- pg_sequence_last_value().  Who can rename a sequence or its schema can put a table or a view
-- under the name, and planning alone then calls functions of that role.  Therefore a sequence is
-- read by name only if it and its schema belong to the reader, to a superuser, or to the owner
-- of these functions.
CREATE FUNCTION instaid._last_value(sequence regclass) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '1ms' AS $$
DECLARE
    last bigint;
BEGIN
    IF has_sequence_privilege(sequence, 'SELECT') IS NOT TRUE THEN
        RETURN NULL;
    ELSIF (SELECT bool_and(r.rolsuper OR r.rolname = current_user OR r.oid = i.nspowner)
           FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
                JOIN pg_roles AS r ON r.oid IN (c.relowner, n.nspowner)
                JOIN pg_namespace AS i ON i.nspname = 'instaid'
           WHERE c.oid = sequence)
    THEN
        EXECUTE format('SELECT last_value FROM %s WHERE is_called', sequence) INTO last;
    ELSE
        last := pg_sequence_last_value(sequence);
    END IF;
    RAISE SQLSTATE 'ID001';
EXCEPTION
    WHEN SQLSTATE 'ID001' THEN
        RETURN last;
    -- each SQLSTATE of the classes 42, 55 and XX: it is dropped, renamed or locked
    WHEN syntax_error_or_access_rule_violation OR object_not_in_prerequisite_state
         OR internal_error THEN
        RETURN NULL;
END
$$;

CREATE FUNCTION instaid.last_id(sequence regclass, shard_id integer,
                                epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._utc_epoch(epoch), instaid._check_shard_id(shard_id);
    RETURN (SELECT pg_sequence_last_value(sequence) FROM pg_sequence AS q
            WHERE q.seqrelid = sequence AND q.seqmin = extract(epoch FROM epoch) * 1000
              AND instaid.extract_shard_id(q.seqmax) = shard_id
              AND has_sequence_privilege(sequence, 'SELECT'));
END
$$;
COMMENT ON FUNCTION instaid.last_id(regclass, integer, timestamptz) IS
'the last ID that a sequence of a shard issued; null if there is none, if it is a sequence of '
'another shard or epoch, and without SELECT on it';

CREATE VIEW instaid.shards AS
    SELECT s.schema_name, s.shard_id, s.epoch, s.sequence, i.last_id, t.last_issued_at,
           GREATEST(t.last_issued_at - pg_catalog.clock_timestamp(), '0'::interval) AS drift,
           q.seqmax >> 23 < 1099511627775 AS frozen,
           -- the time of the first ID that would be negative
           instaid.extract_timestamp(-9223372036854775808, s.epoch) AS expires_at
    FROM instaid.list_shards() AS s JOIN pg_catalog.pg_sequence AS q ON q.seqrelid = s.sequence
         CROSS JOIN LATERAL (SELECT instaid._last_value(s.sequence)) AS i (last_id)
         CROSS JOIN LATERAL (SELECT instaid.extract_timestamp(i.last_id, s.epoch))
                            AS t (last_issued_at);
GRANT SELECT ON instaid.shards TO PUBLIC;
COMMENT ON VIEW instaid.shards IS
'the shards of this database, one row each; last_id, last_issued_at and drift need SELECT on '
'the sequence';
COMMENT ON COLUMN instaid.shards.schema_name IS 'schema that is the shard';
COMMENT ON COLUMN instaid.shards.shard_id IS 'shard ID in its IDs, 0 to 8191';
COMMENT ON COLUMN instaid.shards.epoch IS 'time from which its IDs count milliseconds';
COMMENT ON COLUMN instaid.shards.sequence IS 'sequence that its next_id() advances';
COMMENT ON COLUMN instaid.shards.last_id IS
'last ID that the sequence issued or reserved; on a standby and after a crash, up to 32 more';
COMMENT ON COLUMN instaid.shards.last_issued_at IS 'time of that ID';
COMMENT ON COLUMN instaid.shards.drift IS 'how far that time is ahead of the clock';
COMMENT ON COLUMN instaid.shards.frozen IS 'whether freeze_shard() has stopped the shard';
COMMENT ON COLUMN instaid.shards.expires_at IS
'time when the IDs of the shard end: later IDs would be negative';

CREATE FUNCTION instaid.shard_sequences(schema_name text) RETURNS SETOF regclass
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
BEGIN ATOMIC
    SELECT d.refobjid::regclass
    FROM pg_type AS t JOIN pg_constraint AS c ON c.contypid = t.oid
         JOIN pg_depend AS d ON d.classid = 'pg_constraint'::regclass AND d.objid = c.oid
                            AND d.refclassid = 'pg_class'::regclass
         JOIN pg_sequence AS q ON q.seqrelid = d.refobjid
    WHERE t.typname = 'id_sequence'
      AND t.typnamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = schema_name)
    ORDER BY 1;
END;
COMMENT ON FUNCTION instaid.shard_sequences(text) IS
'the sequences that issue the IDs of a shard: the one of its next_id(), and those of '
'add_sequence()';

-- The time when the IDs of an epoch end; refuse an epoch that no new shard can have.
CREATE FUNCTION instaid._check_epoch(epoch timestamptz) RETURNS timestamptz
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    expires_at timestamptz;
BEGIN
    IF NOT isfinite(epoch) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('epoch %s is not a point in time', epoch),
            DETAIL = 'An epoch must be finite.';
    END IF;
    IF epoch <= clock_timestamp() THEN
        -- refuses an epoch that is not a whole millisecond
        expires_at := instaid.extract_timestamp(-9223372036854775808, epoch);
    END IF;
    IF expires_at IS NULL OR expires_at <= clock_timestamp() THEN
        RAISE invalid_parameter_value USING
            MESSAGE = CASE WHEN expires_at IS NULL THEN format('epoch %s is in the future', epoch)
                           ELSE format('IDs with epoch %s ended at %s', epoch, expires_at) END,
            DETAIL = format('The clock reads %s; an epoch can be up to 34.8 years before it.',
                            clock_timestamp()),
            HINT = 'Use the default epoch, which serves until 2046, or the date of today.';
    END IF;
    RETURN expires_at;
END
$$;

-- Keep other sessions from creating a shard with this ID until the transaction ends.
-- Two sessions cannot both find a shard ID free: one of them fails.  Neither waits, because any
-- role can hold an advisory lock.
CREATE FUNCTION instaid._lock_shard_id(shard_id integer) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._check_shard_id(shard_id);
    IF NOT pg_try_advisory_xact_lock(hashtext('instaid shard ID'), shard_id) THEN
        RAISE lock_not_available USING
            MESSAGE = format('another transaction creates a shard with ID %s', shard_id),
            DETAIL = 'It has not ended yet.',
            HINT = 'Repeat the call when it has ended.';
    END IF;
END
$$;

-- What create_shard() and adopt_shard() check.
CREATE FUNCTION instaid._check_new_shard(schema_name text, shard_id integer, epoch timestamptz,
                                         adopted oid DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO'
    SET timezone = 'UTC' AS $$
DECLARE
    expires_at timestamptz;
    other record;
BEGIN
    PERFORM instaid._check_shard_schema(schema_name), instaid._check_shard_id(shard_id);
    expires_at := instaid._check_epoch(epoch);

    -- The owner of a schema can put other functions in place of a superuser's.
    SELECT pg_get_userbyid(n.nspowner) AS owner INTO other
    FROM pg_namespace AS n
    WHERE n.nspname = schema_name AND NOT instaid._is_superusers_schema(n.oid);
    IF FOUND AND (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('schema %I belongs to another role', schema_name),
            DETAIL = format('Its owner, %I, could replace functions of a superuser.', other.owner),
            HINT = format('SET ROLE %I first, or choose another schema.', other.owner);
    END IF;

    PERFORM instaid._lock_shard_id(shard_id);
    SELECT s.shard_id, s.epoch INTO other FROM instaid.list_shards() AS s
    WHERE s.schema_name = _check_new_shard.schema_name;
    IF FOUND THEN
        RAISE duplicate_function USING
            MESSAGE = format('schema %I is a shard already', schema_name),
            DETAIL = format('It declares "shard %s, epoch %s".', other.shard_id, other.epoch),
            HINT = 'A schema is one shard. Choose another schema if you need another shard.';
    END IF;
    SELECT p.proname, p.proname = 'next_id' AND p.pronargs = 0 AS can_be_adopted,
           format('%I.%I(%s)', schema_name, p.proname, oidvectortypes(p.proargtypes)) AS routine
    INTO other
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname = schema_name AND p.oid IS DISTINCT FROM adopted
      AND (p.proname = 'next_id' AND p.pronargs < 2 OR p.proname = 'next_ids' AND p.pronargs < 3)
    ORDER BY p.proname, p.pronargs LIMIT 1;
    IF FOUND THEN
        RAISE duplicate_function USING
            MESSAGE = format('schema %I already has a function %s()', schema_name, other.proname),
            DETAIL = format('It is %s.', other.routine),
            HINT = format('Rename it: ALTER ROUTINE %s RENAME TO old_%s; defaults follow it.',
                          other.routine, other.proname)
                   || CASE WHEN other.can_be_adopted
                           THEN format(' Or replace it: SELECT instaid.adopt_shard(%L, %s);',
                                       schema_name, shard_id) ELSE '' END;
    END IF;
    SELECT s.schema_name INTO other FROM instaid.list_shards() AS s
    WHERE s.shard_id = _check_new_shard.shard_id ORDER BY s.schema_name LIMIT 1;
    IF FOUND THEN
        RAISE duplicate_object USING
            MESSAGE = format('shard ID %s is taken by schema %I', shard_id, other.schema_name),
            DETAIL = 'The two shards would issue the same IDs.',
            HINT = (SELECT COALESCE('Shard ID ' || min(n) || ' is free', 'No shard ID is free')
                           || '; instaid.shards lists those that are taken.'
                    FROM generate_series(0, 8191) AS n
                    WHERE n NOT IN (SELECT s.shard_id FROM instaid.list_shards() AS s));
    END IF;

    IF expires_at < clock_timestamp() + interval '5 years' THEN
        RAISE WARNING USING
            MESSAGE = format('shard %s ends in less than five years', shard_id),
            DETAIL = format('With epoch %s, its IDs end at %s.', epoch, expires_at);
    END IF;
    SELECT s.schema_name, s.epoch INTO other FROM instaid.list_shards() AS s
    WHERE s.epoch <> _check_new_shard.epoch LIMIT 1;
    IF FOUND THEN
        RAISE NOTICE USING
            MESSAGE = format('epoch %s differs from the epoch of other shards', epoch),
            DETAIL = format('Schema %I has epoch %s. The IDs of the two shards do not sort by time'
                            ' together.', other.schema_name, other.epoch);
    END IF;
END
$$;

-- Give a sequence the range and the lock of a sequence of a shard.
-- The sequence begins at the end of the millisecond that the clock reads: the first call opens
-- the next one.  Default privileges, which some clouds set for whole databases, must not let
-- other roles use the sequence or the lock.
CREATE FUNCTION instaid._prepare_sequence(sequence text, lock text, shard_id integer,
                                          epoch timestamptz, is_new boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    epoch_ms CONSTANT bigint := extract(epoch FROM epoch) * 1000;
    part record;
BEGIN
    EXECUTE format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 MINVALUE %s MAXVALUE %s'
                   ' START WITH %s RESTART CACHE 1 NO CYCLE', sequence, epoch_ms,
                   (1099511627775 << 23) + (shard_id << 10) + 1023, epoch_ms);
    PERFORM setval(sequence::regclass,
                   instaid_sql._clock(instaid_sql._options(shard_id, epoch_ms)) + 1023);
    EXECUTE format('COMMENT ON SEQUENCE %s IS %L', sequence,
                   format('the last ID of shard %s; no role but its owner needs a right on it',
                          shard_id));
    EXECUTE format('CREATE VIEW %s AS SELECT %L::text AS lock_of', lock, sequence);
    EXECUTE format('COMMENT ON VIEW %s IS %L', lock,
                   'the lock of a sequence; rename it with the sequence');
    FOR part IN
        SELECT DISTINCT c.oid::regclass AS name,
               CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END AS grantee
        FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS x
        WHERE c.oid IN (CASE WHEN is_new THEN sequence::regclass END, lock::regclass)
          AND x.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %s', part.name, part.grantee);
    END LOOP;
END
$$;

-- Let nobody but the owner use the functions of these shards.
-- For many shards at once: PostgreSQL looks a function up by its name among all schemas.
CREATE FUNCTION instaid._revoke_from_public(schemas text[]) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE (SELECT format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', string_agg(format(
                 '%1$I.next_id(%1$I.id_sequence), %1$I.next_ids(integer, %1$I.id_sequence)', s),
                 ', '))
             FROM unnest(schemas) AS s);
END
$$;

-- Create the sequence and the functions of a shard.
CREATE FUNCTION instaid._create_shard(schema_name text, shard_id integer, epoch timestamptz,
                                      sequence_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence CONSTANT text := format('%I.%I', schema_name, sequence_name);
BEGIN
    EXECUTE format('CREATE SEQUENCE %s', sequence);
    PERFORM instaid._prepare_sequence(sequence, format('%I.%I', schema_name,
                                                       sequence_name || '_lock'),
                                      shard_id, epoch, true);
    PERFORM instaid_sql._declare(schema_name, shard_id, (extract(epoch FROM epoch) * 1000)::bigint,
                                 sequence::regclass);
END
$$;

CREATE FUNCTION instaid.create_shard(schema_name text, shard_id integer,
                                     epoch timestamptz DEFAULT instaid.default_epoch(),
                                     sequence_name text DEFAULT 'table_id_seq') RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._check_no_nulls('create_shard', json_build_object(
        'schema_name', schema_name, 'shard_id', shard_id, 'epoch', epoch,
        'sequence_name', sequence_name));
    PERFORM instaid._check_sequence_name(schema_name, sequence_name);
    PERFORM instaid._check_new_shard(schema_name, shard_id, epoch);
    PERFORM instaid._check_is_free(schema_name, sequence_name);
    -- A schema that another role creates after the checks is refused.
    IF NOT EXISTS (SELECT FROM pg_namespace AS n WHERE n.nspname = create_shard.schema_name) THEN
        EXECUTE format('CREATE SCHEMA %I', schema_name);
    END IF;
    PERFORM instaid._create_shard(schema_name, shard_id, epoch, sequence_name);
    PERFORM instaid._revoke_from_public(ARRAY[schema_name]);
END
$$;
COMMENT ON FUNCTION instaid.create_shard(text, integer, timestamptz, text) IS
'make a schema a shard: create the schema if it is missing, a sequence, and the functions '
'next_id(), next_id(sequence), whose IDs are unique only among those of that sequence, and '
'next_ids(count, sequence); error if shard_id is not 0 to 8191, or taken; needs CREATE on the '
'schema, or on the database if the schema is missing';

-- Refuse a name that is too long, or empty, for a sequence that has a lock.
-- The lock of a name with "_lock after a quote could not be found: see _lock_command().
CREATE FUNCTION instaid._check_sequence_name(schema_name text, sequence_name text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._check_name('sequence', sequence_name);
    IF octet_length(sequence_name) > 58 THEN
        RAISE name_too_long USING
            MESSAGE = format('sequence name "%s..." is too long', left(sequence_name, 58)),
            DETAIL = format('It has %s bytes; the name of its lock, which ends in "_lock", has up'
                            ' to 63.', octet_length(sequence_name));
    ELSIF strpos(schema_name || sequence_name, '"_lock') > 0 THEN
        RAISE invalid_name USING
            MESSAGE = format('sequence %I.%I cannot have a lock', schema_name, sequence_name),
            DETAIL = 'Its name has a quote before "_lock".';
    END IF;
END
$$;

-- Refuse a name of a sequence if a relation has it, or the name of its lock.
CREATE FUNCTION instaid._check_is_free(schema_name text, sequence_name text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[sequence_name, sequence_name || '_lock'] LOOP
        IF to_regclass(format('%I.%I', schema_name, name)) IS NOT NULL THEN
            RAISE duplicate_table USING
                MESSAGE = format('relation %I.%I already exists', schema_name, name),
                HINT = 'Pass another sequence_name, or drop the relation if nothing uses it.';
        END IF;
    END LOOP;
END
$$;

-- The part of create_shards() between two commits.
CREATE FUNCTION instaid._create_batch(format text, first integer, last integer,
                                      epoch timestamptz) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard record;
    created text[];
BEGIN
    PERFORM instaid._check_shard_id(first), instaid._check_shard_id(last);
    IF format !~ '^([^%]|%%)*%s([^%]|%%)*$' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('format "%s" cannot name shards', left(format, 63)),
            DETAIL = 'It must have one %s, the shard ID, as in insta%s. A percent sign is %%.';
    END IF;

    -- one query finds what exists
    FOR shard IN
        SELECT n AS shard_id, m.schema_name,
               n = min(n) OVER () OR s.schema_name IS NOT NULL OR x.oid IS NOT NULL
               OR octet_length(m.schema_name) > 63 AS needs_checks
        FROM generate_series(first, last) AS n
             CROSS JOIN LATERAL (SELECT format(format, n)) AS m (schema_name)
             LEFT JOIN pg_namespace AS x ON x.nspname = m.schema_name
             LEFT JOIN instaid.list_shards() AS s ON s.shard_id = n
        WHERE (s.schema_name = m.schema_name AND s.epoch = _create_batch.epoch) IS NOT TRUE
        ORDER BY n
    LOOP
        IF shard.needs_checks THEN
            PERFORM instaid.create_shard(shard.schema_name, shard.shard_id, epoch);
        ELSE
            PERFORM instaid._lock_shard_id(shard.shard_id);
            EXECUTE format('CREATE SCHEMA %I', shard.schema_name);
            PERFORM instaid._create_shard(shard.schema_name, shard.shard_id, epoch,
                                          'table_id_seq');
            created := created || shard.schema_name;
        END IF;
    END LOOP;
    PERFORM instaid._revoke_from_public(created);
END
$$;

-- A procedure with SET could not commit.
CREATE PROCEDURE instaid.create_shards(format text, first integer, last integer,
                                       epoch timestamptz DEFAULT instaid.default_epoch())
    LANGUAGE plpgsql AS $$
DECLARE
    last_of_batch integer;
BEGIN
    PERFORM instaid._check_batches(format, first, last, epoch);
    FOR first_of_batch IN first .. last BY 512 LOOP
        last_of_batch := LEAST(first_of_batch OPERATOR(pg_catalog.+) 511, last);
        PERFORM instaid._create_batch(format, first_of_batch, last_of_batch, epoch);
        -- in a transaction block this fails, and one batch does not need it
        IF last OPERATOR(pg_catalog.-) first OPERATOR(pg_catalog.>=) 512 THEN
            COMMIT;
        END IF;
        RAISE NOTICE 'shards % to % of % to % exist now', first_of_batch, last_of_batch, first,
            last;
    END LOOP;
END
$$;
COMMENT ON PROCEDURE instaid.create_shards(text, integer, integer, timestamptz) IS
'create the shards first to last (0 to 8191), as create_shard() does; format() of the shard '
'ID is the name of each schema; commits after every 512 shards, with a notice, and skips '
'shards that exist';

-- What create_shards() checks.
CREATE FUNCTION instaid._check_batches(format text, first integer, last integer, epoch timestamptz)
    RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._check_no_nulls('create_shards', json_build_object(
        'format', format, 'first', first, 'last', last, 'epoch', epoch));
    IF first < 0 OR last > 8191 OR first > last THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('shard IDs %s to %s are out of range', first, last),
            DETAIL = 'Shard IDs are between 0 and 8191, and the first must not be above the last.';
    END IF;
END
$$;

-- A shard; refuse a schema that is not one, and a caller who does not own it.
-- The owner of the shard's sequences, as far as this edition can act for the caller
CREATE FUNCTION instaid._check_owned_shard(schema_name text) RETURNS record
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard record;
BEGIN
    PERFORM instaid._check_name('schema', schema_name);
    SELECT s.schema_name, s.shard_id, s.epoch, s.sequence, p.proowner::regrole AS owner INTO shard
    FROM instaid.list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration
    WHERE s.schema_name = _check_owned_shard.schema_name;
    IF NOT FOUND THEN
        RAISE undefined_object USING
            MESSAGE = format('schema %I is not a shard', schema_name),
            HINT = 'instaid.shards lists the shards of this database.';
    END IF;
    PERFORM instaid._execute_as(shard.owner, 'SELECT');
    PERFORM instaid._check_owner(c.relowner::regrole, 'sequence', c.oid::regclass::text)
    FROM instaid.shard_sequences(schema_name) AS q JOIN pg_class AS c ON c.oid = q;
    RETURN shard;
END
$$;

CREATE FUNCTION instaid.add_sequence(schema_name text, sequence_name text) RETURNS regclass
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence CONSTANT text := format('%I.%I', schema_name, sequence_name);
    shard record := instaid._check_owned_shard(schema_name);
BEGIN
    PERFORM instaid._check_sequence_name(schema_name, sequence_name);
    PERFORM instaid._check_is_free(schema_name, sequence_name);
    EXECUTE format('CREATE SEQUENCE %s', sequence);
    PERFORM instaid._prepare_sequence(sequence, format('%I.%I', schema_name,
                                                       sequence_name || '_lock'),
                                      shard.shard_id, shard.epoch, true);
    EXECUTE (
        SELECT format('ALTER DOMAIN %1$I.id_sequence'
                      ' DROP CONSTRAINT is_a_sequence_of_this_shard;'
                      ' ALTER DOMAIN %1$I.id_sequence'
                      ' ADD CONSTRAINT is_a_sequence_of_this_shard CHECK (%2$s)', schema_name,
                      string_agg(format('VALUE = %L::regclass', q), ' OR ' ORDER BY q))
        FROM (SELECT q FROM instaid.shard_sequences(schema_name) AS q
              UNION SELECT sequence::regclass) AS s (q));
    RETURN sequence::regclass;
END
$$;
COMMENT ON FUNCTION instaid.add_sequence(text, text) IS
'create a sequence of a shard for a table, whose default is then next_id(sequence); its IDs are '
'unique only among those of that sequence';

--
-- Adopting what exists
--

-- Lock the tables that have a function as a default, and return the largest ID in them.
-- Sessions that insert finish first, and those that come later use the new function.  Any role
-- can write such a default.  Only tables of the owner of the function or of the schema, or of a
-- superuser, are locked and read: the others cannot delay us.
--
-- The function is called once, to see whether its IDs have this epoch and come from this
-- sequence.  A call that fails is a warning.
CREATE FUNCTION instaid._take_over_ids(schema_name text, shard_id integer, epoch timestamptz,
                                       adopted oid, adopted_owner regrole, sequence regclass)
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    function_name CONSTANT text := format('%I.next_id()', schema_name);
    before bigint;
    id bigint;
    made_at timestamptz;
    part record;
    left_out regclass[] := '{}';
    highest bigint;
    youngest bigint;
    place text;
BEGIN
    FOR part IN
        SELECT c.oid::regclass AS relation, t.attname, c.relowner::regrole AS owner,
               (o.rolsuper OR o.oid IN (adopted_owner, n.nspowner)) AND pg_has_role(o.oid, 'USAGE')
               AND (NOT o.rolsuper OR instaid._is_superusers_schema(c.relnamespace))
               AND NOT EXISTS (SELECT FROM instaid._descendants(c.oid) AS h
                               WHERE h.owner <> c.relowner) AS is_ours,
               c.relkind <> 'v' AND instaid._base_type(t.atttypid)
                                    IN ('bigint'::regtype) AS has_ids
        FROM pg_depend AS d JOIN pg_attrdef AS a ON a.oid = d.objid
             JOIN pg_class AS c ON c.oid = a.adrelid JOIN pg_roles AS o ON o.oid = c.relowner
             JOIN pg_attribute AS t ON t.attrelid = a.adrelid AND t.attnum = a.adnum
             JOIN pg_namespace AS n ON n.nspname = schema_name
        WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = adopted
          AND d.classid = 'pg_attrdef'::regclass
          AND c.relkind IN ('r', 'p', 'v') AND c.relpersistence <> 't'
        ORDER BY c.oid, t.attnum
    LOOP
        IF part.is_ours IS NOT TRUE THEN
            left_out := array_remove(left_out, part.relation) || part.relation;
            CONTINUE;
        END IF;
        PERFORM instaid._execute_as(part.owner, format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE',
                                                       part.relation));
        IF part.has_ids THEN
            highest := instaid._execute_as(part.owner, format('SELECT max(%I)::bigint FROM %s',
                                                              part.attname, part.relation));
            IF youngest IS NULL OR highest > youngest THEN
                youngest := highest;
                place := format('%s.%I', part.relation, part.attname);
            END IF;
        END IF;
    END LOOP;
    IF left_out <> '{}' THEN
        RAISE WARNING 'tables of other owners have IDs of schema %', quote_ident(schema_name) USING
            DETAIL = format('Their rows are not read: %s%s.',
                            array_to_string(left_out[1:10], ', '),
                            CASE WHEN cardinality(left_out) > 10 THEN ', and others' END),
            HINT = 'If their largest ID is ahead of the clock, pass it to instaid.advance_past().';
    END IF;

    BEGIN
        -- so that currval() works
        before := instaid._execute_as(adopted_owner, format('SELECT nextval(%L)', sequence::oid));
        id := instaid._execute_as(adopted_owner, format('SELECT %s', function_name));
    EXCEPTION WHEN transaction_rollback OR lock_not_available THEN
        RAISE;
    WHEN OTHERS THEN
        before := NULL;
        RAISE WARNING 'could not check the IDs of %', function_name USING
            DETAIL = format('The call failed: %s.', SQLERRM),
            HINT = 'Roll back unless the shard ID, epoch and sequence are those in its text.';
    END;
    IF before IS NOT NULL THEN
        made_at := instaid.extract_timestamp(id, epoch);
        IF id IS NULL OR abs(extract(epoch FROM made_at - clock_timestamp())) > 86400 THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('IDs of %s do not fit epoch %s', function_name, epoch),
                DETAIL = format('It returned %s. With this epoch, the time of the ID is %s. The'
                                ' clock reads %s.', COALESCE(id::text, 'null'), made_at,
                                clock_timestamp()),
                HINT = format('If the layout of its IDs is Instagram''s, its epoch is about %s.'
                              ' If not, use create_shard() and adopt_column().',
                              COALESCE(epoch - (made_at - clock_timestamp()), epoch));
        ELSIF currval(sequence) = before THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('%s does not use sequence %s', function_name, sequence),
                HINT = 'Pass the sequence that it uses.';
        END IF;
    END IF;
    IF youngest > instaid.max_id(clock_timestamp() + interval '1 day', epoch) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('IDs of schema %I are ahead of the clock', schema_name),
            DETAIL = format('The largest is %s in %s. With epoch %s, its time is %s. The clock'
                            ' reads %s.', youngest, place, epoch,
                            instaid.extract_timestamp(youngest, epoch), clock_timestamp()),
            HINT = 'Give that row another ID, or pass the epoch that next_id() subtracts.';
    END IF;
    IF instaid.extract_shard_id(COALESCE(id, youngest)) <> shard_id THEN
        RAISE WARNING 'IDs of schema % named shard %, and not %', quote_ident(schema_name),
            instaid.extract_shard_id(COALESCE(id, youngest)), shard_id USING
            HINT = 'If you do not want that, roll back, and pass the old shard ID.';
    END IF;
    IF youngest IS NOT NULL THEN
        RAISE NOTICE 'IDs of schema % go on above %', quote_ident(schema_name), youngest USING
            DETAIL = format('It is the largest ID, in %s. Its time is %s.', place,
                            instaid.extract_timestamp(youngest, epoch));
    END IF;
    RETURN youngest;
END
$$;

-- Let the roles that can use a sequence use the functions of its shard.
-- Who could take values of the sequence for the published function can take IDs.
CREATE FUNCTION instaid._grant_to_users(schema_name text, sequence regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    users text;
BEGIN
    SELECT string_agg(DISTINCT CASE WHEN x.grantee = 0 THEN 'PUBLIC'
                                    ELSE x.grantee::regrole::text END, ', ') INTO users
    FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS x
    WHERE c.oid = sequence AND x.grantee <> c.relowner AND x.privilege_type IN ('USAGE', 'UPDATE');
    IF users IS NOT NULL THEN
        EXECUTE format('GRANT EXECUTE ON FUNCTION %1$I.next_id(%1$I.id_sequence),'
                       ' %1$I.next_ids(integer, %1$I.id_sequence) TO %2$s', schema_name, users);
        RAISE WARNING USING
            MESSAGE = format('other roles have rights on sequence %s', sequence),
            DETAIL = format('They are: %s. They now have EXECUTE on the functions of the shard,'
                            ' and could still set the sequence back.', users),
            HINT = format('When the transactions of now have ended: REVOKE ALL ON SEQUENCE %s'
                          ' FROM %s;', sequence, users);
    END IF;
END
$$;

CREATE FUNCTION instaid.adopt_shard(schema_name text, shard_id integer,
                                    epoch timestamptz DEFAULT instaid.default_epoch(),
                                    sequence regclass DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' SET row_security = off
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    adopted CONSTANT oid := instaid._find_function(schema_name, 'next_id', '');
    owner regrole;
    main record;
    other_use text;
    youngest bigint;
BEGIN
    PERFORM instaid._check_no_nulls('adopt_shard', json_build_object(
        'schema_name', schema_name, 'shard_id', shard_id, 'epoch', epoch));
    PERFORM instaid._check_new_shard(schema_name, shard_id, epoch, adopted);
    PERFORM instaid._check_read_committed('adopt_shard');
    SELECT p.proowner INTO owner FROM pg_proc AS p
    WHERE p.oid = adopted AND p.prokind = 'f' AND p.prorettype = 'bigint'::regtype
      AND NOT p.proretset;
    IF NOT FOUND THEN
        RAISE undefined_function USING
            MESSAGE = format('schema %I has no next_id() that returns bigint', schema_name),
            DETAIL = CASE WHEN adopted IS NOT NULL
                          THEN format('Its next_id() returns %s.',
                                      COALESCE(pg_get_function_result(adopted), 'nothing'))
                          WHEN to_regnamespace(quote_ident(schema_name)) IS NULL
                          THEN 'There is no such schema.'
                          ELSE 'There is no such function in the schema.' END,
            HINT = 'If a function of another name makes its IDs, rename it to next_id. If no'
                   ' function makes them, use create_shard() and adopt_column().';
    END IF;
    PERFORM instaid._check_owner(owner, 'function', format('%I.next_id()', schema_name));
    sequence := COALESCE(sequence, (quote_ident(schema_name) || '.table_id_seq')::regclass);
    SELECT c.relname, n.nspname, c.relowner::regrole AS owner INTO main
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = sequence AND c.relkind = 'S' AND c.relpersistence <> 't';
    IF NOT FOUND THEN
        RAISE wrong_object_type USING
            MESSAGE = format('%s cannot be the sequence of a shard', sequence),
            DETAIL = 'It is not a sequence, or it is temporary.',
            HINT = 'Pass the sequence that next_id() uses.';
    END IF;
    PERFORM instaid._check_owner(main.owner, 'sequence', sequence::text);
    PERFORM instaid._check_sequence_name(main.nspname, main.relname);
    -- A sequence counts the ticks of one epoch, and nothing else.  What a role without
    -- rights on the sequence declares, or uses as a default, does not count: that role
    -- cannot use the sequence, and must not be able to block its owner.
    SELECT format('Schema %I uses it with epoch %s.', s.schema_name, s.epoch) INTO other_use
    FROM instaid.list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration
    WHERE s.sequence = adopt_shard.sequence
      AND s.epoch <> adopt_shard.epoch
      AND has_sequence_privilege(p.proowner, s.sequence, 'USAGE, UPDATE')
    UNION ALL
    SELECT format('It also counts for %s.',
                  pg_describe_object(d.classid, d.objid, d.objsubid))
    FROM pg_depend AS d JOIN pg_attrdef AS a ON a.oid = d.objid
         JOIN pg_class AS c ON c.oid = a.adrelid
    WHERE d.refclassid = 'pg_class'::regclass
      AND d.refobjid = adopt_shard.sequence
      AND d.classid = 'pg_attrdef'::regclass
      AND has_sequence_privilege(c.relowner, d.refobjid, 'USAGE, UPDATE')
      AND NOT EXISTS (SELECT FROM pg_depend AS f
                      WHERE f.classid = d.classid AND f.objid = d.objid
                        AND f.refclassid = 'pg_proc'::regclass AND f.refobjid = adopted)
    UNION ALL
    SELECT format('It also counts for %s.',
                  pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid))
    FROM pg_depend AS d
    WHERE d.classid = 'pg_class'::regclass
      AND d.objid = adopt_shard.sequence AND d.deptype = 'i'
    LIMIT 1;
    IF FOUND THEN
        RAISE object_in_use USING
            MESSAGE = format('%s cannot be the sequence of a shard', sequence),
            DETAIL = other_use,
            HINT = 'Pass the sequence and the epoch of next_id(). If a column uses this sequence,'
                   ' too, give it another default first, for example with adopt_column().';
    END IF;

    youngest := instaid._take_over_ids(schema_name, shard_id, epoch, adopted, owner, sequence);
    -- This lock waits for all who have used the sequence, and keeps others out.  A call that
    -- waits for it still ends in the old function: for these calls, new IDs begin a second
    -- ahead of the clock.
    PERFORM instaid._prepare_sequence(sequence::text, format('%I.%I', main.nspname,
                                                             main.relname || '_lock'),
                                      shard_id, epoch, false);
    PERFORM setval(sequence, make_id, true)
    FROM instaid.make_id(GREATEST(instaid.extract_timestamp(youngest, epoch),
                                  clock_timestamp() + interval '1 s'), shard_id, 1023, epoch);
    PERFORM instaid_sql._declare(schema_name, shard_id, (extract(epoch FROM epoch) * 1000)::bigint,
                                 sequence, adopted);
    PERFORM instaid._revoke_from_public(ARRAY[schema_name]);
    PERFORM instaid._grant_to_users(schema_name, sequence);
    -- the replaced function keeps its OID, its owner, its rights, and the name of its result
    EXECUTE (
        SELECT format('CREATE OR REPLACE FUNCTION %1$I.next_id(%2$s) RETURNS bigint'
                      ' LANGUAGE sql VOLATILE PARALLEL UNSAFE %3$s'
                      ' RETURN %1$I.next_id(%4$L::regclass)',
                      schema_name, pg_get_function_arguments(p.oid),
                      CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END, sequence)
        FROM pg_proc AS p WHERE p.oid = adopted);
END
$$;
COMMENT ON FUNCTION instaid.adopt_shard(text, integer, timestamptz, regclass) IS
'make a schema with the published function next_id() a shard: call the function once, replace '
'it, give its sequence (table_id_seq by default) the range of the shard, and continue above the '
'IDs of the columns that use it; the caller must own the function, the sequence and the tables';

-- The statements that widen an integer column and, through foreign keys and partitions, the
-- columns that refer to it; the other tables that they alter, the sizes of all, and what prevents
-- it.
CREATE FUNCTION instaid._widening_plan(table_name regclass, attnum smallint, owner regrole,
                                       OUT statements text[], OUT other_tables text,
                                       OUT sizes text, OUT obstacles text, OUT of_citus text)
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    kept_by_citus jsonb;  -- columns that it does not change, as "relation attnum"
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        EXECUTE 'SELECT jsonb_object_agg(format(''%s %s'', a.attrelid::oid, a.attnum),'
                ' CASE WHEN a.attidentity <> '''' THEN ''an identity column of a Citus table'''
                ' ELSE ''the distribution column of a Citus table'' END)'
                ' FROM pg_catalog.pg_dist_partition AS p'
                ' JOIN pg_attribute AS a ON a.attrelid = p.logicalrelid AND a.attnum > 0'
                ' WHERE a.attidentity <> '''''
                ' OR position(format('':varattno %s '', a.attnum) IN p.partkey) > 0'
        INTO kept_by_citus;
    END IF;
    of_citus := kept_by_citus ->> format('%s %s', table_name::oid, attnum);
    WITH RECURSIVE family (relid, attnum) AS (
        SELECT table_name::oid, _widening_plan.attnum
        UNION
        SELECT r.relid, r.attnum FROM family AS f CROSS JOIN LATERAL (
            SELECT k.conrelid, k.conkey[array_position(k.confkey, f.attnum)]
            FROM pg_constraint AS k
            WHERE k.contype = 'f' AND k.confrelid = f.relid AND f.attnum = ANY (k.confkey)
            UNION ALL
            SELECT other.attrelid, other.attnum
            FROM pg_attribute AS this JOIN pg_attribute AS other ON other.attname = this.attname
                 JOIN pg_inherits AS i
                      ON (i.inhrelid, i.inhparent) IN ((this.attrelid, other.attrelid),
                                                       (other.attrelid, this.attrelid))
            WHERE this.attrelid = f.relid AND this.attnum = f.attnum) AS r (relid, attnum)),
    narrow AS (
        SELECT a.attrelid, a.attnum, a.attname, a.attinhcount, c.relkind, c.relowner, c.reltype,
               c.reloftype, t.typtype, format('%s.%I', c.oid::regclass, a.attname) AS name
        FROM family AS f JOIN pg_attribute AS a ON a.attrelid = f.relid AND a.attnum = f.attnum
             JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_type AS t ON t.oid = a.atttypid
        WHERE instaid._base_type(a.atttypid) IN ('integer'::regtype, 'smallint'::regtype)),
    altered AS (
        -- a column of a partition is altered through its parent's
        SELECT n.attrelid, string_agg(format('ALTER %I TYPE bigint', n.attname), ', '
                                      ORDER BY n.attnum) AS actions
        FROM narrow AS n WHERE n.attinhcount = 0 GROUP BY n.attrelid),
    -- what ALTER COLUMN TYPE would fail at, perhaps after hours
    obstacle (name, description) AS (
        SELECT n.name, pg_describe_object(d.classid, d.objid, d.objsubid)
        FROM narrow AS n JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass
                                            AND d.refobjid = n.attrelid
                                            AND d.refobjsubid = n.attnum
             LEFT JOIN pg_attrdef AS e ON d.classid = 'pg_attrdef'::regclass AND e.oid = d.objid
        WHERE d.classid IN ('pg_rewrite'::regclass, 'pg_proc'::regclass, 'pg_trigger'::regclass,
                            'pg_policy'::regclass, 'pg_publication_rel'::regclass)
           OR (e.adrelid, e.adnum) <> (n.attrelid, n.attnum)
        UNION
        SELECT n.name, 'the partition key'
        FROM narrow AS n JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass
                                            AND d.objid = n.attrelid AND d.objsubid = n.attnum
        WHERE d.refclassid = d.classid AND d.refobjid = n.attrelid AND d.deptype = 'i'
        UNION
        SELECT n.name, format('column %s.%I of its row type', u.attrelid::regclass, u.attname)
        FROM narrow AS n JOIN pg_attribute AS u ON u.atttypid = n.reltype
        UNION
        SELECT n.name, CASE WHEN n.typtype = 'd' THEN 'its domain'
                            WHEN n.reloftype <> 0 THEN 'the type of its table'
                            ELSE kept_by_citus ->> format('%s %s', n.attrelid, n.attnum) END
        FROM narrow AS n
        UNION
        -- PostgreSQL checks a foreign key again, in both tables
        SELECT n.name, format('table %s of %I', c.oid::regclass, pg_get_userbyid(c.relowner))
        FROM narrow AS n
             LEFT JOIN pg_constraint AS k
                       ON k.contype = 'f'
                          AND (k.confrelid = n.attrelid AND n.attnum = ANY (k.confkey)
                               OR k.conrelid = n.attrelid AND n.attnum = ANY (k.conkey))
             JOIN pg_class AS c ON c.oid IN (n.attrelid, k.conrelid, k.confrelid)
                               AND c.relowner <> owner)
    SELECT array_agg(format('ALTER TABLE %s %s', t.attrelid::regclass, t.actions)
                     ORDER BY t.attrelid),
           -- An INSERT locks its table first, and then the tables that the row refers
           -- to, which are mostly older.  This is the same order.
           string_agg(t.attrelid::regclass::text, ', ' ORDER BY t.attrelid DESC)
               FILTER (WHERE t.attrelid <> _widening_plan.table_name),
           -- of the owner's tables only: pg_total_relation_size() waits for locks
           (SELECT string_agg(format('%s (%s)', n.name,
                                     pg_size_pretty(pg_total_relation_size(n.attrelid))),
                              ', ' ORDER BY n.name)
            FROM narrow AS n WHERE n.relkind = 'r' AND CASE WHEN n.relowner = owner THEN true END),
           (SELECT string_agg(o.name || ': ' || o.description, '; ' ORDER BY o.name, o.description)
            FROM obstacle AS o)
    INTO statements, other_tables, sizes, obstacles FROM altered AS t;
END
$$;

-- The GRANT statements for roles that can insert into a table, a partition of it or a view, and
-- cannot use the next_id() of the shard; null if there are none.
CREATE FUNCTION instaid._missing_grants(table_name regclass, schema_name text,
                                        sequence regclass) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
BEGIN ATOMIC
    WITH RECURSIVE entrance (relid) AS (
        SELECT d.relid FROM instaid._descendants(table_name) AS d
        UNION
        SELECT r.ev_class
        FROM entrance AS e JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass
                                              AND d.refobjid = e.relid
                                              AND d.classid = 'pg_rewrite'::regclass
             JOIN pg_rewrite AS r ON r.oid = d.objid
             -- any role can create a view; rows pass it with the rights of its owner
             JOIN pg_class AS v ON v.oid = r.ev_class
                  AND has_any_column_privilege(v.relowner, e.relid, 'INSERT')),
    inserter AS (
        SELECT DISTINCT CASE WHEN x.grantee = 0 THEN 'public'
                             ELSE pg_get_userbyid(x.grantee) END AS name,
                        CASE WHEN x.grantee = 0 THEN 'PUBLIC'
                             ELSE quote_ident(pg_get_userbyid(x.grantee)) END AS grantee
        FROM entrance AS e JOIN pg_class AS c ON c.oid = e.relid
             JOIN pg_attribute AS a ON a.attrelid = c.oid
             CROSS JOIN LATERAL aclexplode(COALESCE(c.relacl, acldefault('r', c.relowner))
                                           || a.attacl) AS x
        WHERE x.privilege_type = 'INSERT')
    SELECT string_agg(format('GRANT EXECUTE ON FUNCTION %I.next_id(%s) TO %s;', schema_name,
                             pg_get_function_identity_arguments(p.oid), i.grantee), ' '
                      ORDER BY i.name, p.pronargs)
    FROM inserter AS i
         JOIN pg_proc AS p ON p.proname = 'next_id'
         JOIN pg_namespace AS n ON n.oid = p.pronamespace AND n.nspname = schema_name
    WHERE NOT has_function_privilege(i.name, p.oid, 'EXECUTE');
END;

CREATE FUNCTION instaid.adopt_column(table_name regclass, column_name text,
                                     dry_run boolean DEFAULT false) RETURNS SETOF text
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' SET row_security = off
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    main record;
    shard record;
    descendants oid[];
    others text;
    other record;
    widening record;
    alter_column text;
    serial regclass;
    statements text[];
    statement text;
    highest bigint;
    next_id bigint;
    grants text;
BEGIN
    PERFORM instaid._check_no_nulls('adopt_column', json_build_object(
        'table_name', table_name, 'column_name', column_name, 'dry_run', dry_run));
    IF NOT dry_run THEN
        PERFORM instaid._check_read_committed('adopt_column');
    END IF;
    PERFORM instaid._check_name('column', column_name);
    -- before pg_get_expr(), which waits for a lock on the table
    PERFORM instaid._check_table_owner(table_name);
    SELECT format('%s.%I', table_name, column_name) AS name, c.relkind,
           c.relowner::regrole AS owner, n.nspname, a.attnum, a.atttypid, a.attidentity,
           a.attgenerated, pg_get_expr(d.adbin, d.adrelid) AS default_text,
           format('%I.next_id()', n.nspname) AS new_default,
           (SELECT i.inhparent::regclass FROM pg_inherits AS i
            WHERE a.attinhcount > 0 AND i.inhrelid = c.oid LIMIT 1) AS parent INTO main
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
         LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = column_name
                                    AND a.attnum > 0 AND NOT a.attisdropped
         LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.oid = table_name;
    IF main.attnum IS NULL THEN
        RAISE undefined_column USING
            MESSAGE = format('column %I of table %s does not exist', column_name, table_name);
    END IF;
    IF main.relkind NOT IN ('r', 'p') OR main.attgenerated <> '' OR main.parent IS NOT NULL THEN
        RAISE wrong_object_type USING
            MESSAGE = format('column %s cannot have a default of its own', main.name),
            DETAIL = CASE WHEN main.parent IS NOT NULL
                          THEN format('It is inherited: adopt the column of %s.', main.parent)
                          WHEN main.attgenerated <> '' THEN 'It is a generated column.'
                          ELSE 'It is not a column of a table.' END;
    END IF;
    SELECT s.* INTO shard FROM instaid.list_shards() AS s WHERE s.schema_name = main.nspname;
    IF NOT FOUND THEN
        RAISE undefined_object USING
            MESSAGE = format('schema %I is not a shard', main.nspname),
            HINT = 'create_shard() and adopt_shard() make a schema a shard.';
    END IF;
    IF main.atttypid NOT IN ('bigint'::regtype,
                             'integer'::regtype, 'smallint'::regtype) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('column %s is of type %s', main.name,
                             format_type(main.atttypid, NULL)),
            DETAIL = 'It must be bigint, or integer or smallint, which are widened.';
    END IF;
    SELECT array_agg(d.relid),
           string_agg(format('%s belongs to %s', d.relid::regclass, d.owner), ', ')
               FILTER (WHERE d.owner <> main.owner)
    INTO descendants, others FROM instaid._descendants(table_name) AS d;
    IF others IS NOT NULL THEN
        RAISE feature_not_supported USING
            MESSAGE = format('column %s is inherited by tables of other owners', main.name),
            DETAIL = format('%s. Table %s belongs to %s.', others, table_name, main.owner),
            HINT = 'Give all of them to one owner, or detach those of other owners.';
    END IF;
    SELECT d.adrelid::regclass AS name, pg_get_expr(d.adbin, d.adrelid) AS default_text INTO other
    FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE d.adrelid = ANY (descendants) AND a.attname = column_name
      -- pg_get_expr() waits for a lock on the table: it must not read those of others
      AND CASE WHEN d.adrelid = ANY (descendants)
               THEN pg_get_expr(d.adbin, d.adrelid) IS DISTINCT FROM main.default_text END;
    IF FOUND THEN
        RAISE object_in_use USING
            MESSAGE = format('column %s.%I has a default of its own', other.name, column_name),
            DETAIL = format('Its default is %s. The default of %s would replace it.',
                            other.default_text, main.name),
            HINT = 'Drop that default first.';
    END IF;
    widening := instaid._widening_plan(table_name, main.attnum, main.owner);
    IF widening.of_citus IS NOT NULL AND main.default_text IS DISTINCT FROM main.new_default THEN
        RAISE feature_not_supported USING
            MESSAGE = format('Citus cannot change the default of column %s', main.name),
            DETAIL = format('It is %s.', widening.of_citus),
            HINT = CASE WHEN main.attidentity <> ''
                        THEN 'Create another table, distribute it, and copy the rows.'
                        ELSE 'Call undistribute_table() before, and distribute it afterwards.' END;
    END IF;
    IF widening.obstacles IS NOT NULL THEN
        RAISE feature_not_supported USING
            MESSAGE = format('integer columns that would hold IDs of %s cannot be widened',
                             main.name),
            DETAIL = widening.obstacles || '.',
            HINT = 'Drop what prevents it, and create that again afterwards.';
    END IF;

    statements := ARRAY[format('LOCK TABLE %s%s IN ACCESS EXCLUSIVE MODE',
                               widening.other_tables || ', ', table_name)];
    IF NOT dry_run THEN
        PERFORM instaid._execute_as(main.owner, statements[1]);
    END IF;
    highest := instaid._execute_as(main.owner, format('SELECT max(%I)::bigint FROM %s',
                                                 column_name, table_name));
    next_id := GREATEST(instaid.last_id(shard.sequence, shard.shard_id, shard.epoch),
                        instaid.min_id(clock_timestamp(), shard.epoch));
    IF highest > next_id THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column %s has values above the next ID of shard %s',
                             main.name, shard.shard_id),
            DETAIL = format('The highest is %s. If it is an ID, its time is %s. New IDs begin'
                            ' above %s.', highest, instaid.extract_timestamp(highest, shard.epoch),
                            next_id),
            HINT = CASE WHEN highest <= instaid.max_id(clock_timestamp() + interval '1 day',
                                                       shard.epoch)
                        THEN format('To begin above it: SELECT instaid.advance_past(%L, %s, %L);',
                                    shard.sequence, highest, shard.epoch)
                        ELSE 'Give those rows other values.' END;
    END IF;

    -- The default goes first, because it need not fit the new type, and then the sequence of a
    -- serial column, unless something else uses it: Citus widens no column that one depends on.
    alter_column := format('ALTER TABLE %s ALTER %I', table_name, column_name);
    serial := pg_get_serial_sequence(table_name::text, column_name);
    statements := array_remove(statements || ARRAY[
        CASE WHEN main.attidentity <> '' THEN alter_column || ' DROP IDENTITY'
             WHEN main.default_text <> main.new_default THEN alter_column || ' DROP DEFAULT' END,
        CASE WHEN main.default_text = format('nextval(''%s''::regclass)',
                                             replace(serial::text, '''', ''''''))
             THEN format(CASE WHEN EXISTS (
                     SELECT FROM pg_depend AS d
                          LEFT JOIN (pg_attrdef AS a JOIN pg_attribute AS t
                                     ON t.attrelid = a.adrelid AND t.attnum = a.adnum)
                          ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid
                             AND a.adrelid = ANY (descendants) AND t.attname = column_name
                     WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = serial
                       AND d.deptype = 'n' AND a.oid IS NULL)
                 THEN 'ALTER SEQUENCE %s OWNED BY NONE' ELSE 'DROP SEQUENCE %s' END, serial) END]
        || widening.statements
        || CASE WHEN main.default_text IS DISTINCT FROM main.new_default
                THEN alter_column || ' SET DEFAULT ' || main.new_default END, NULL);
    IF cardinality(statements) = 1 THEN
        RAISE NOTICE 'column % has the IDs of shard % already', main.name, shard.shard_id;
        RETURN;
    END IF;

    IF widening.sizes IS NOT NULL THEN
        RAISE NOTICE 'integer columns become bigint, which rewrites their tables'
            USING DETAIL = format('They are %s.', widening.sizes);
    END IF;
    grants := instaid._missing_grants(table_name, shard.schema_name, shard.sequence);
    IF grants IS NOT NULL THEN
        RAISE WARNING 'roles that can insert into % cannot take IDs of shard %', table_name,
            shard.shard_id USING HINT = grants;
    END IF;
    FOREACH statement IN ARRAY statements LOOP
        RETURN NEXT statement;
        IF NOT dry_run THEN
            PERFORM instaid._execute_as(main.owner, statement);
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION instaid.adopt_column(regclass, text, boolean) IS
'make the next_id() of a shard the default of a serial, identity, integer or bigint column; '
'widen an integer column, and those that refer to it, to bigint; return the statements, which '
'dry_run does not run; acts with the rights of the owner of the table, which the caller '
'needs, on tables of that owner only';

--
-- Moving and protecting shards
--

CREATE FUNCTION instaid.advance_past(sequence regclass, id bigint, epoch timestamptz) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    main record;
    options instaid_sql.sequence_options;
    ms bigint;
    last bigint;
BEGIN
    PERFORM instaid._utc_epoch(epoch);
    IF epoch > clock_timestamp() THEN
        PERFORM instaid._check_epoch(epoch);
    END IF;
    IF id < 0 THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('ID %s is out of range', id),
            DETAIL = 'An ID must be between 0 and 9223372036854775807.';
    END IF;
    SELECT q.seqmin, instaid.extract_shard_id(q.seqmax) AS shard_id INTO main
    FROM pg_sequence AS q
    WHERE q.seqrelid = sequence AND q.seqmin BETWEEN 631152000001 AND 4102444800000;
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s is not a sequence of a shard', sequence),
            HINT = 'instaid.shards lists the shards of this database.';
    END IF;
    options := instaid_sql._options(main.shard_id, main.seqmin);
    ms := (id >> 23) + (extract(epoch FROM epoch) * 1000)::bigint - main.seqmin;
    IF ms >= 1099511627775 THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('ID %s is past the last ID of sequence %s', id, sequence),
            DETAIL = format('Its time is %s; the IDs of the sequence end at %s.',
                            instaid.extract_timestamp(id, epoch),
                            instaid.extract_timestamp(-9223372036854775808,
                                                      to_timestamp(main.seqmin / 1000.0)));
    END IF;
    EXECUTE instaid_sql._lock_command(sequence, options);
    last := GREATEST(pg_sequence_last_value(sequence), (ms << 23) + (main.shard_id << 10) + 1023);
    -- a sequence that was RESTARTed has no value yet
    last := GREATEST(last, instaid_sql._last_value(sequence, instaid_sql._clock(options)));
    PERFORM setval(sequence, last);
    PERFORM instaid_sql._flush_at_commit();
    RAISE SQLSTATE 'ID001';
EXCEPTION WHEN SQLSTATE 'ID001' THEN
    RETURN;
END
$$;
COMMENT ON FUNCTION instaid.advance_past(regclass, bigint, timestamptz) IS
'let a sequence issue only IDs above this one, whatever their shard; error if the ID is '
'negative; needs to own the sequence';

-- The MAXVALUE of a frozen sequence is the last ID of the millisecond in which it stands.
CREATE FUNCTION instaid.freeze_shard(schema_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard CONSTANT record := instaid._check_owned_shard(schema_name);
    base CONSTANT bigint := shard.shard_id << 10;
    part regclass;
    last bigint;
BEGIN
    -- It would not see the newest sequences.
    PERFORM instaid._check_read_committed('freeze_shard');
    FOR part IN SELECT q FROM instaid.shard_sequences(schema_name) AS q LOOP
        -- This lock waits for all transactions that have taken IDs, and keeps others out
        -- until this transaction commits.
        EXECUTE format('ALTER SEQUENCE %s CACHE 1', part);
        last := COALESCE(pg_sequence_last_value(part),
                         instaid.max_id(clock_timestamp(), shard.epoch));
        -- if nextval() ran past the room, in the next one
        last := (last - base + 8388607 - 1023 >> 23 << 23) + base + 1023;
        PERFORM setval(part, last);
        EXECUTE format('ALTER SEQUENCE %s MAXVALUE %s', part, last);
    END LOOP;
END
$$;
COMMENT ON FUNCTION instaid.freeze_shard(text) IS
'wait for the transactions that have taken IDs of a shard, and then stop the shard; needs to '
'own it';

CREATE FUNCTION instaid.thaw_shard(schema_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard CONSTANT record := instaid._check_owned_shard(schema_name);
    part regclass;
BEGIN
    PERFORM instaid._check_read_committed('thaw_shard');
    FOR part IN SELECT q FROM instaid.shard_sequences(schema_name) AS q LOOP
        EXECUTE format('ALTER SEQUENCE %s MAXVALUE %s', part,
                       (1099511627775 << 23) + (shard.shard_id << 10) + 1023);
    END LOOP;
END
$$;
COMMENT ON FUNCTION instaid.thaw_shard(text) IS
'let a frozen shard issue IDs again; needs to own it';

--
-- Tickets
--

CREATE FUNCTION instaid.ticket_sequence(name text, missing_ok boolean DEFAULT false)
    RETURNS regclass
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence regclass;
BEGIN
    PERFORM instaid._check_name('ticket', name);
    -- not by the snapshot, which can show a sequence that was dropped
    sequence := to_regclass(format('instaid_tickets.%I', name));
    IF EXISTS (SELECT FROM pg_class AS c WHERE c.oid = sequence AND c.relkind <> 'S') THEN
        RAISE wrong_object_type USING
            MESSAGE = format('"%s" is not a sequence', name),
            DETAIL = format('A ticket is a sequence; %s is another kind of relation.',
                            format('instaid_tickets.%I', name)),
            HINT = 'Use another name, or rename that relation.';
    ELSIF sequence IS NULL AND NOT missing_ok THEN
        RAISE undefined_table USING
            MESSAGE = format('ticket "%s" does not exist', name),
            DETAIL = 'The view instaid.tickets lists all tickets.',
            HINT = format('Create it: SELECT instaid.create_ticket(%L);', name);
    END IF;
    RETURN sequence;
END
$$;
COMMENT ON FUNCTION instaid.ticket_sequence(text, boolean) IS
'the sequence of a ticket, for GRANT and ALTER SEQUENCE; if there is none, null with '
'missing_ok, or else an error';

-- Refuse a ticket that stands at a value of another server.
CREATE FUNCTION instaid._refuse_stripe(sequence regclass, value numeric) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    main record;
BEGIN
    SELECT c.relname, p.* INTO main
    FROM pg_sequence_parameters(sequence) AS p LEFT JOIN pg_class AS c ON c.oid = sequence;
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = format('ticket "%s" stands at a value of another server', main.relname),
        DETAIL = format('It stands at %s. Its values are %s plus multiples of %s.', value,
                        main.start_value, main.increment),
        HINT = format('ALTER SEQUENCE %s RESTART WITH %s;', sequence,
                      value + main.increment
                      - mod(mod(value - main.start_value, main.increment) + main.increment,
                            main.increment));
END
$$;

-- Where a ticket stands; refuse a sequence that cannot serve, or has too few values left.
-- The value of a ticket is START plus a multiple of INCREMENT, which is the number of servers.
CREATE FUNCTION instaid._check_ticket(sequence regclass, wanted bigint,
                                      OUT last_value bigint, OUT increment bigint)
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    main record;
    value numeric;
    qualified text;
    left_over numeric;
    last_of_type bigint;
BEGIN
    -- This locks the sequence, so that its name and options stay as they are.  The catalog would
    -- show those of the snapshot, and the value is one that came after it.
    IF has_sequence_privilege(sequence, 'USAGE, SELECT') THEN
        value := pg_sequence_last_value(sequence);
    END IF;
    SELECT c.relname, c.relpersistence, p.* INTO main
    FROM pg_sequence_parameters(sequence) AS p LEFT JOIN pg_class AS c ON c.oid = sequence;
    -- If it was never used, or set by RESTART or setval(), it stands before the value that comes
    -- next.  The lock keeps its name only in a schema that other roles cannot rename.
    qualified := sequence;
    IF value IS NULL AND has_sequence_privilege(sequence, 'SELECT')
       AND starts_with(qualified, 'instaid_tickets.') THEN
        EXECUTE format('SELECT last_value::numeric - %s FROM %s', main.increment, qualified)
        INTO value;
    END IF;
    IF main.increment <= 0 OR main.cycle_option OR main.relpersistence <> 'p' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence "%s" cannot serve as a ticket', main.relname),
            DETAIL = CASE WHEN main.increment <= 0
                          THEN format('Its INCREMENT is %s; it must count up.', main.increment)
                          WHEN main.cycle_option
                          THEN 'It is defined with CYCLE; a ticket must not repeat its values.'
                          ELSE 'It is UNLOGGED; a crash would set it back.' END,
            HINT = format('Its owner can set it right with ALTER SEQUENCE %s.', sequence);
    ELSIF mod(value - main.start_value, main.increment) <> 0 THEN
        PERFORM instaid._refuse_stripe(sequence, value);
    END IF;
    value := COALESCE(value, main.start_value::numeric - main.increment);
    left_over := div(main.maximum_value - value, main.increment);
    IF left_over < wanted THEN
        last_of_type := CASE main.data_type WHEN 'smallint'::regtype THEN 32767
                                            WHEN 'integer'::regtype THEN 2147483647
                                            ELSE 9223372036854775807 END;
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format(CASE WHEN main.maximum_value < last_of_type
                                  THEN 'ticket "%s" has reached its guard'
                                  ELSE 'ticket "%s" is used up' END, main.relname),
            DETAIL = format('Values wanted: %s; values left until %s, %s: %s.', wanted,
                            main.maximum_value,
                            CASE WHEN main.maximum_value < last_of_type THEN 'its MAXVALUE'
                                 ELSE 'the end of ' || main.data_type::regtype END, left_over),
            HINT = CASE WHEN main.maximum_value < last_of_type
                        THEN format('If the number of servers is being changed, continue with'
                                    ' restripe_ticket(); otherwise the owner can remove the guard:'
                                    ' ALTER SEQUENCE %s NO MAXVALUE;', sequence)
                        WHEN main.data_type <> 'bigint'::regtype
                        THEN format('If the columns that store its values are of type bigint, its'
                                    ' owner can widen it: ALTER SEQUENCE %s AS bigint;', sequence)
                        WHEN left_over > 0 THEN 'Lease at most as many as are left.'
                        ELSE 'If it was set too far by mistake, set it back with setval().' END;
    END IF;
    last_value := value;
    increment := main.increment;
END
$$;

-- A value is durable when the caller's transaction commits: the WAL record that covers it can
-- be of a transaction that is still open.
CREATE FUNCTION instaid.next_ticket(name text) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence CONSTANT regclass := instaid.ticket_sequence(name);
    value bigint;
BEGIN
    PERFORM instaid._check_ticket(sequence, 1);
    value := nextval(sequence);
    -- without SELECT, where RESTART or setval() left it is seen only now
    IF (SELECT mod(value - p.start_value::numeric, p.increment) <> 0
        FROM pg_sequence_parameters(sequence) AS p) THEN
        PERFORM instaid._refuse_stripe(sequence, value);
    END IF;
    PERFORM instaid_sql._flush_at_commit();
    RETURN value;
END
$$;
COMMENT ON FUNCTION instaid.next_ticket(text) IS
'the next value of a ticket, which is never issued again once the transaction has committed; '
'needs USAGE or UPDATE on its sequence';

-- What create_ticket() and restripe_ticket() check.
CREATE FUNCTION instaid._check_ticket_server(server integer, servers integer) RETURNS void
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF server NOT BETWEEN 1 AND servers THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('server %s is out of range', server),
            DETAIL = format('A server is between 1 and the number of servers, %s, which must be at'
                            ' least 1.', servers);
    END IF;
END
$$;

CREATE FUNCTION instaid.create_ticket(name text, server integer DEFAULT 1,
                                      servers integer DEFAULT 1,
                                      start bigint DEFAULT 1, step integer DEFAULT 1,
                                      data_type regtype DEFAULT 'bigint', source text DEFAULT NULL)
    RETURNS regclass
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    first numeric;
BEGIN
    PERFORM instaid._check_no_nulls('create_ticket', json_build_object(
        'name', name, 'server', server, 'servers', servers, 'start', start, 'step', step,
        'data_type', data_type));
    -- refuses what is no name, before any message repeats it
    PERFORM instaid.ticket_sequence(name, missing_ok => true);
    IF source IS NOT NULL OR step > 1 THEN
        PERFORM instaid._refuse_without_c('A ticket with a source, or with a step,',
                                          'Leave out source and step.');
    END IF;
    PERFORM instaid._check_ticket_server(server, servers);
    IF data_type NOT IN ('smallint'::regtype, 'integer'::regtype, 'bigint'::regtype) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('type %s cannot be the type of a ticket', data_type),
            DETAIL = 'A ticket is smallint, integer or bigint.';
    END IF;
    IF start < 1 THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('start %s is out of range', start),
            DETAIL = 'Tickets begin at 1 or above.';
    END IF;
    IF step < 1 THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('step %s is out of range', step),
            DETAIL = 'A step is at least 1.';
    END IF;
    -- the smallest value in the stripe of the server that is not below start
    first := start + mod(mod(server - start::numeric, servers) + servers, servers);
    IF instaid.ticket_sequence(name, missing_ok => true) IS NOT NULL THEN
        RAISE duplicate_table USING
            MESSAGE = format('ticket %s already exists', quote_ident(name)),
            HINT = format('To use it: SELECT instaid.next_ticket(%L); to begin again, drop it with'
                          ' drop_ticket(), or choose another name.', name);
    END IF;
    EXECUTE format('CREATE SEQUENCE instaid_tickets.%I AS %s INCREMENT BY %s START WITH %s', name,
                   data_type, servers, first);
    EXECUTE format('COMMENT ON SEQUENCE instaid_tickets.%I IS %L', name,
                   'a ticket of instaid: use instaid.next_ticket()');
    RETURN instaid.ticket_sequence(name);
END
$$;
COMMENT ON FUNCTION instaid.create_ticket(text, integer, integer, bigint, integer, regtype,
                                          text) IS
'create a named ticket, whose values on this server are start or above, and server modulo '
'servers; return its sequence; needs CREATE on the schema instaid_tickets';

CREATE FUNCTION instaid.drop_ticket(name text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    ticket regclass := instaid.ticket_sequence(name);
BEGIN
    IF EXISTS (SELECT FROM pg_class WHERE oid = ticket AND relkind = 'f') THEN
        EXECUTE (SELECT 'DROP FOREIGN TABLE ' || string_agg(t.part::regclass::text, ', ')
                 FROM (SELECT ticket AS part UNION ALL
                       SELECT inhrelid FROM pg_inherits WHERE inhparent = ticket) AS t);
    ELSE
        EXECUTE format('DROP SEQUENCE instaid_tickets.%I', name);
    END IF;
END
$$;
COMMENT ON FUNCTION instaid.drop_ticket(text) IS
'drop a ticket; a new ticket with its name begins again; needs to own it';

-- Keep other sessions from taking values of a ticket until the transaction ends; needs to
-- own its sequence.
CREATE FUNCTION instaid._lock_ticket(name text) RETURNS regclass
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence regclass;
    locked regclass;
    step bigint;
BEGIN
    LOOP
        sequence := instaid.ticket_sequence(name);
        SELECT q.seqincrement INTO step FROM pg_sequence AS q WHERE q.seqrelid = sequence;
        IF step < 0 THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('sequence %s cannot serve as a ticket', sequence),
                DETAIL = format('Its INCREMENT is %s; it must count up.', step),
                HINT = format('Its owner can set it right with ALTER SEQUENCE %s.', sequence);
        END IF;
        IF step IS NULL THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('ticket %s has its values from a source', sequence),
                DETAIL = 'There is nothing to guard or to restripe here.',
                HINT = 'Guard and restripe the ticket at each server of its source.';
        END IF;
        EXIT WHEN sequence = locked;
        -- This lock waits for all transactions that have taken values, and keeps others out
        -- until this transaction commits.  The statement has the name, because a regclass whose
        -- sequence is dropped meanwhile is printed as a number.
        EXECUTE format('ALTER SEQUENCE instaid_tickets.%I NO CYCLE', name);
        locked := sequence;
    END LOOP;
    RETURN sequence;
END
$$;

CREATE FUNCTION instaid.guard_ticket(name text, boundary bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence regclass := instaid._lock_ticket(name);
    stands_at bigint;
    last_of_type bigint;
    guard bigint;
BEGIN
    EXECUTE format('SELECT last_value FROM instaid_tickets.%I', name) INTO stands_at;
    SELECT GREATEST(stands_at, start_value), maximum_value,
           CASE data_type WHEN 'smallint'::regtype THEN 32767
                          WHEN 'integer'::regtype THEN 2147483647
                          ELSE 9223372036854775807 END
    INTO stands_at, guard, last_of_type FROM pg_sequence_parameters(sequence);
    IF boundary < stands_at THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %s has gone past boundary %s', quote_ident(name), boundary),
            DETAIL = format('It stands at %s.', stands_at),
            HINT = 'Choose a boundary above the last value of every server, and guard the ticket'
                   ' there on all of them.';
    END IF;
    IF boundary < 2 OR boundary >= last_of_type THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('boundary %s is out of range', boundary),
            DETAIL = format('It must be at least 2 and less than %s, the end of the type.',
                            last_of_type);
    END IF;
    IF boundary > guard THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %s is guarded at %s already', quote_ident(name), guard),
            DETAIL = 'A server that was restriped at that boundary issues values above it.',
            HINT = format('If no server was, remove the guard on every server, and guard the'
                          ' ticket again: ALTER SEQUENCE %s NO MAXVALUE;', sequence);
    END IF;
    EXECUTE format('ALTER SEQUENCE instaid_tickets.%I MAXVALUE %s', name, boundary);
END
$$;
COMMENT ON FUNCTION instaid.guard_ticket(text, bigint) IS
'let a ticket issue no value above boundary, or refuse if it has: the first step to change '
'the number of servers, on all of them; needs to own its sequence';

CREATE FUNCTION instaid.restripe_ticket(name text, server integer, servers integer,
                                        boundary bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    guard bigint;
BEGIN
    PERFORM instaid._check_ticket_server(server, servers);
    guard := (pg_sequence_parameters(instaid._lock_ticket(name))).maximum_value;
    IF mod(boundary, servers) <> 0 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('boundary %s is not a multiple of %s', boundary, servers),
            DETAIL = 'The values of each server must begin right above the boundary.',
            HINT = format('The next multiple is %s; guard the ticket there on every server.',
                          boundary + servers::numeric - mod(boundary, servers));
    END IF;
    IF guard <> boundary THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %s is not guarded at %s', quote_ident(name), boundary),
            DETAIL = format('Its MAXVALUE is %s. A server without the guard could issue values'
                            ' above the boundary that belong to another server now.', guard),
            HINT = format('First, on every server that has the ticket:'
                          ' SELECT instaid.guard_ticket(%L, %s);', name, boundary);
    END IF;
    EXECUTE format('ALTER SEQUENCE instaid_tickets.%I INCREMENT BY %s NO MAXVALUE START WITH %s'
                   ' RESTART', name, servers, boundary + server);
END
$$;
COMMENT ON FUNCTION instaid.restripe_ticket(text, integer, integer, bigint) IS
'let a ticket that is guarded at boundary continue above it, as server number server of '
'servers; error if boundary is not a multiple of servers; needs to own its sequence';

-- nextval() takes one value at a time, and setval() could go back while others call nextval().
-- Therefore a lease waits for the transactions that have taken values.
CREATE FUNCTION instaid.lease_ticket(name text, count bigint,
                                     OUT first bigint, OUT last bigint, OUT increment bigint)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence regclass;
    state record;
BEGIN
    IF count < 1 THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('count %s is out of range', count),
            DETAIL = 'A lease has at least one value.';
    END IF;
    sequence := instaid._lock_ticket(name);
    IF NOT has_sequence_privilege(sequence, 'SELECT') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied for sequence %s', sequence),
            DETAIL = 'A lease needs SELECT to see where the ticket stands.';
    END IF;
    state := instaid._check_ticket(sequence, count);
    increment := state.increment;
    first := state.last_value + increment;
    last := first + (count - 1) * increment;
    PERFORM setval(sequence, last);
END
$$;
COMMENT ON FUNCTION instaid.lease_ticket(text, bigint) IS
'the next count values of a ticket, from first to last by increment; waits for the transactions '
'that have taken values; error if count is less than 1; needs to own its sequence';

CREATE VIEW instaid.tickets AS
    -- in numeric, because any sequence can be there
    SELECT c.relname AS name,
           (mod(mod(q.seqstart - 1::numeric, q.seqincrement) + q.seqincrement, q.seqincrement)
            + 1)::bigint AS server,
           q.seqincrement AS servers, q.seqcache AS step, s.last_value,
           LEAST(GREATEST(div(q.seqmax::numeric
                              - COALESCE(s.last_value, q.seqstart::numeric - q.seqincrement),
                              q.seqincrement), 0), 9223372036854775807)::bigint AS values_left,
           COALESCE(mod(s.last_value::numeric - q.seqstart, q.seqincrement) <> 0, false)
           AS off_stripe,
           NULL::text AS source, c.oid::regclass AS sequence
    FROM pg_catalog.pg_namespace AS n
         JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid
         JOIN pg_catalog.pg_sequence AS q ON q.seqrelid = c.oid
         CROSS JOIN LATERAL (SELECT instaid._last_value(c.oid)) AS s (last_value)
    WHERE n.nspname = 'instaid_tickets';
GRANT SELECT ON instaid.tickets TO PUBLIC;
COMMENT ON VIEW instaid.tickets IS
'the tickets of this database, one row each; last_value needs SELECT on the sequence';
COMMENT ON COLUMN instaid.tickets.name IS 'name of the ticket';
COMMENT ON COLUMN instaid.tickets.server IS
'number of this server: the remainder of its values divided by servers, or servers if that is '
'0';
COMMENT ON COLUMN instaid.tickets.servers IS
'number of servers that share the ticket: the difference from one value to the next';
COMMENT ON COLUMN instaid.tickets.step IS 'the CACHE of the sequence, which must be 1';
COMMENT ON COLUMN instaid.tickets.last_value IS
'last value that was issued, null if there is none; on a standby and after a crash, up to 32 '
'values more';
COMMENT ON COLUMN instaid.tickets.values_left IS
'number of values up to the guard, or else up to the end of the type';
COMMENT ON COLUMN instaid.tickets.off_stripe IS
'whether setval() or ALTER SEQUENCE left the sequence at a value of another server';
COMMENT ON COLUMN instaid.tickets.source IS 'null in this edition';
COMMENT ON COLUMN instaid.tickets.sequence IS 'sequence that is the ticket';

CREATE VIEW instaid.metrics AS
    SELECT s.shards, s.frozen_shards, s.unreadable_shards,
           CASE WHEN s.age IS NOT NULL THEN GREATEST(-s.age, 0) END AS drift_seconds,
           CASE WHEN s.age < 0 THEN s.last_shard END AS drift_shard,
           -- next_ids() and RESTART go up to 2.1 s ahead
           5::double precision AS drift_limit_seconds,
           CASE WHEN s.age IS NOT NULL THEN GREATEST(s.age, 0) END AS last_id_seconds,
           s.expiry_seconds, t.tickets, t.ticket_values_left, t.ticket,
           0::bigint AS failed_refills
    FROM (SELECT count(*) AS shards, count(*) FILTER (WHERE frozen) AS frozen_shards,
                 count(*) FILTER (WHERE NOT pg_catalog.has_sequence_privilege(sequence, 'SELECT'))
                     AS unreadable_shards,
                 (array_agg(schema_name ORDER BY last_issued_at DESC NULLS LAST))[1]
                     AS last_shard,
                 EXTRACT(epoch FROM pg_catalog.clock_timestamp() - max(last_issued_at))
                     ::double precision AS age,
                 EXTRACT(epoch FROM min(expires_at) FILTER (WHERE NOT frozen)
                                    - pg_catalog.clock_timestamp())
                     ::double precision AS expiry_seconds
          FROM instaid.shards) AS s
         CROSS JOIN (SELECT count(*) AS tickets, min(values_left) AS ticket_values_left,
                            (array_agg(name ORDER BY values_left, name)
                             FILTER (WHERE values_left IS NOT NULL))[1] AS ticket
                     FROM instaid.tickets) AS t;
GRANT SELECT ON instaid.metrics TO PUBLIC;
COMMENT ON VIEW instaid.metrics IS
'one row for a monitoring system, whose role must have SELECT on the sequences to see all of it';
COMMENT ON COLUMN instaid.metrics.shards IS 'number of shards';
COMMENT ON COLUMN instaid.metrics.frozen_shards IS 'number of shards that are frozen';
COMMENT ON COLUMN instaid.metrics.unreadable_shards IS
'number of shards whose last ID the role cannot see';
COMMENT ON COLUMN instaid.metrics.drift_seconds IS
'how far the last ID of any shard is ahead of the clock; null if there is no ID';
COMMENT ON COLUMN instaid.metrics.drift_shard IS
'the shard whose last ID is furthest ahead; null if none is';
COMMENT ON COLUMN instaid.metrics.drift_limit_seconds IS
'a greater drift means that the clock was set back, or a sequence was set ahead';
COMMENT ON COLUMN instaid.metrics.last_id_seconds IS 'time since the last ID of all shards';
COMMENT ON COLUMN instaid.metrics.expiry_seconds IS
'time until the IDs of a shard end, for the one that ends first and is not frozen';
COMMENT ON COLUMN instaid.metrics.tickets IS 'number of tickets';
COMMENT ON COLUMN instaid.metrics.ticket_values_left IS
'number of values that are left of the ticket that has the fewest';
COMMENT ON COLUMN instaid.metrics.ticket IS 'name of that ticket';
COMMENT ON COLUMN instaid.metrics.failed_refills IS '0 in this edition';

--
-- Knowing before it breaks
--

-- audit() only reads catalogs and sequences.  It runs nothing that it finds.

-- Copies of the published function; for audit().
-- A copy calls nextval(), reads a clock, and shifts to the left.  Comments and strings do not
-- count, apart from the name in nextval('...').
CREATE VIEW instaid._copies AS
    SELECT p.oid, p.pronamespace, n.nspname, p.proowner,
           pg_catalog.format('%I.%I(%s)', n.nspname, p.proname,
                             pg_catalog.oidvectortypes(p.proargtypes)) AS object,
           p.proname, p.pronargs, c.code
    FROM pg_catalog.pg_proc AS p
         JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
         JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang
         CROSS JOIN LATERAL (SELECT pg_catalog.regexp_replace(
             p.prosrc, '--[^' || chr(10) || ']*|/[*].*?[*]/', ' ', 'g')) AS c (code)
    WHERE l.lanname IN ('sql', 'plpgsql') AND n.nspname !~ '^(pg_|instaid|information_schema$)'
      AND CASE WHEN octet_length(p.prosrc) < 100000
               THEN strpos(p.prosrc, 'instaid_sql._') = 0
                    AND c.code ~* '[[:<:]]nextval[[:space:]]*[(]'
                    AND c.code ~* '[[:<:]](clock_timestamp|now|statement_timestamp|timeofday'
                                  '|transaction_timestamp|current_timestamp|localtimestamp)[[:>:]]'
                    AND c.code ~* '<<|[*][[:space:]]*(8388608|4194304)[[:>:]]|[[.^.]]|power'
               END;
GRANT SELECT ON instaid._copies TO PUBLIC;

-- Columns whose default makes IDs; for audit().
CREATE VIEW instaid._id_columns AS
    SELECT a.adrelid, t.attnum, n.oid AS schema, m.schema AS maker, m.is_copy,
           pg_catalog.format('%I.%I', n.nspname, c.relname) AS table_name,
           pg_catalog.quote_ident(t.attname) AS column_name, c.relkind, c.relispartition,
           instaid._base_type(t.atttypid) AS type
    FROM (SELECT p.oid, p.pronamespace, false
          FROM instaid.list_shards() AS s JOIN pg_catalog.pg_proc AS d ON d.oid = s.declaration
               JOIN pg_catalog.pg_proc AS p ON p.pronamespace = d.pronamespace
                                           AND p.proname = 'next_id'
          UNION ALL
          SELECT y.oid, y.pronamespace, true FROM instaid._copies AS y) AS m (oid, schema, is_copy)
         JOIN pg_catalog.pg_depend AS d ON d.refclassid = 'pg_catalog.pg_proc'::regclass
                                       AND d.refobjid = m.oid
                                       AND d.classid = 'pg_catalog.pg_attrdef'::regclass
         JOIN pg_catalog.pg_attrdef AS a ON a.oid = d.objid
         JOIN pg_catalog.pg_attribute AS t ON t.attrelid = a.adrelid AND t.attnum = a.adnum
         JOIN pg_catalog.pg_class AS c ON c.oid = a.adrelid AND c.relpersistence <> 't'
         JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace;
GRANT SELECT ON instaid._id_columns TO PUBLIC;

-- The findings of audit().
CREATE FUNCTION instaid._audit(OUT severity text, OUT object text, OUT problem text,
                               OUT cure text) RETURNS SETOF record
    LANGUAGE sql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET jit = off
BEGIN ATOMIC
    WITH shard AS MATERIALIZED (
        SELECT s.*, n.oid AS schema, quote_ident(s.schema_name) AS name, p.proowner
        FROM instaid.list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration
             JOIN pg_namespace AS n ON n.oid = p.pronamespace),
    copy AS MATERIALIZED (SELECT y.* FROM instaid._copies AS y),
    id_column AS MATERIALIZED (
        SELECT i.*, i.table_name || '.' || i.column_name AS name FROM instaid._id_columns AS i),
    sequence AS MATERIALIZED (
        SELECT s.schema, s.schema_name, s.shard_id, s.epoch, s.proowner, c.relowner, c.relacl,
               c.relpersistence, c.relname, q.*, i.identity AS name, k.oid AS lock
        FROM shard AS s CROSS JOIN LATERAL instaid.shard_sequences(s.schema_name) AS r
             JOIN pg_class AS c ON c.oid = r JOIN pg_sequence AS q ON q.seqrelid = r
             LEFT JOIN pg_class AS k ON k.relnamespace = c.relnamespace
                                     AND k.relname = (c.relname || '_lock')::name
             CROSS JOIN LATERAL pg_identify_object('pg_class'::regclass, r, 0) AS i)
    -- It takes nextval and the time in two steps, so that two sessions can pair the same of
    -- both; and it repeats IDs when the clock is set back.
    SELECT 'error', y.object, 'copy of the published function: its IDs repeat',
           CASE WHEN y.schema_is_shard OR y.pronargs > 0 OR y.proname <> 'next_id'
                THEN 'Let columns default to the next_id() of a shard instead;'
                     ' instaid.create_shard() makes one.'
                ELSE format('Find its shard ID in its text, and pass it to'
                            ' instaid.adopt_shard(%L, shard_id).', y.nspname) END
    FROM (SELECT c.*, c.pronamespace IN (SELECT s.schema FROM shard AS s) AS schema_is_shard
          FROM copy AS c) AS y
    UNION ALL
    -- A session takes values beforehand, and uses them in a later millisecond.
    SELECT 'error', y.object, format('its sequence %s has CACHE %s: its IDs repeat at any rate',
                                     i.identity, q.seqcache),
           format('ALTER SEQUENCE %s CACHE 1;', i.identity)
    FROM copy AS y JOIN pg_class AS c ON c.relnamespace = y.pronamespace
                                      AND c.relowner = y.proowner
                                      AND strpos(y.code, c.relname) > 0
         JOIN pg_sequence AS q ON q.seqrelid = c.oid
         CROSS JOIN LATERAL pg_identify_object('pg_class'::regclass, c.oid, 0) AS i
    WHERE q.seqcache > 1
    UNION ALL
    SELECT 'error', i.name, format('its type is %s: it cannot hold IDs', i.type),
           CASE WHEN i.maker = i.schema AND NOT i.is_copy
                     AND i.type IN ('integer'::regtype, 'smallint'::regtype)
                THEN format('SELECT * FROM instaid.adopt_column(%L, %s);', i.table_name,
                            quote_literal(i.column_name))
                ELSE format('ALTER TABLE %s ALTER %s TYPE bigint;', i.table_name, i.column_name)
           END
    FROM id_column AS i
    WHERE i.type IN ('integer'::regtype, 'smallint'::regtype, 'real'::regtype,
                     'double precision'::regtype)
    UNION ALL
    -- CREATE TABLE ... (LIKE template INCLUDING DEFAULTS) keeps the template's shard.
    SELECT 'error', i.name, format('its IDs are those of schema %I', n.nspname),
           format('ALTER TABLE %s ALTER %s SET DEFAULT %s.next_id();', i.table_name, i.column_name,
                  s.name)
    FROM id_column AS i JOIN shard AS s ON s.schema = i.schema
         JOIN pg_namespace AS n ON n.oid = i.maker
    WHERE i.maker <> i.schema
    UNION ALL
    SELECT 'warning', i.name,
           'there is no unique index on it alone: a copy of an ID is not refused',
           format('CREATE UNIQUE INDEX ON %s (%s);', i.table_name, i.column_name)
    FROM id_column AS i
    WHERE i.relkind IN ('r', 'p') AND NOT i.relispartition AND NOT EXISTS (
        SELECT FROM pg_index AS x WHERE x.indrelid = i.adrelid AND x.indisunique AND x.indisvalid
        AND x.indnkeyatts = 1 AND x.indkey[0] = i.attnum AND x.indpred IS NULL)
    UNION ALL
    -- create_shard() refuses it; a restore, a rename, or a function by hand does not.
    SELECT 'error', s.name, format('shard ID %s is also that of schema %s', s.shard_id, s.other),
           'Let one of them give no more IDs, with instaid.freeze_shard(), and have its tables use'
           ' a shard with another ID.'
    FROM (SELECT s.name, s.shard_id, COALESCE(lag(s.name) OVER w, lead(s.name) OVER w) AS other
          FROM shard AS s JOIN pg_sequence AS q ON q.seqrelid = s.sequence
          WHERE q.seqmax >> 23 = 1099511627775
          WINDOW w AS (PARTITION BY s.shard_id ORDER BY s.name COLLATE "C")) AS s
    WHERE s.other IS NOT NULL
    UNION ALL
    SELECT CASE WHEN e.expires_at <= now() THEN 'error' ELSE 'warning' END, s.name,
           format(CASE WHEN e.expires_at <= now() THEN 'its IDs ended at %s'
                       ELSE 'its IDs end at %s, in under five years' END, e.expires_at),
           'Let its tables use another shard, with a later epoch:'
           ' instaid.create_shard(schema_name, shard_id, epoch).'
    FROM shard AS s CROSS JOIN LATERAL (
             SELECT instaid.extract_timestamp(-9223372036854775808, s.epoch)) AS e (expires_at)
    WHERE e.expires_at < now() + interval '5 years'
    UNION ALL
    SELECT 'error', s.name, 'its type id_sequence admits sequences of other shards: its IDs can'
           ' repeat', format('Create its constraint again: SELECT instaid.add_sequence(%L, name);',
                             s.schema_name)
    FROM shard AS s
    WHERE s.sequence NOT IN (SELECT r FROM instaid.shard_sequences(s.schema_name) AS r)
    UNION ALL
    SELECT 'error', q.name, 'cannot serve: ' || w.complaint,
           format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 START WITH %s CACHE 1 NO CYCLE;',
                  q.name, q.seqmin)
    FROM sequence AS q CROSS JOIN LATERAL (SELECT CASE
        WHEN q.seqtypid <> 'bigint'::regtype
        THEN format('its type is %s; it must be bigint', format_type(q.seqtypid, NULL))
        WHEN q.seqincrement <> 1 THEN format('its INCREMENT is %s; it must be 1', q.seqincrement)
        WHEN q.seqcache <> 1 THEN format('its CACHE is %s; it must be 1', q.seqcache)
        WHEN q.seqcycle THEN 'it is defined with CYCLE'
        WHEN q.seqstart <> q.seqmin
        THEN format('its START is %s; it must be %s', q.seqstart, q.seqmin) END) AS w (complaint)
    WHERE w.complaint IS NOT NULL
    UNION ALL
    SELECT 'error', q.name, 'has no lock: next_id() fails',
           format('Rename the view that is its lock to %I, or create it: CREATE VIEW %s AS SELECT'
                  ' 1 AS lock_of;', q.relname || '_lock',
                  replace(q.name || '_lock', '"_lock', '_lock"'))
    FROM sequence AS q WHERE q.lock IS NULL
    UNION ALL
    SELECT 'error', q.name, format('does not belong to the owner of the shard, %s',
                                   q.proowner::regrole),
           'Give the sequence, its lock and the functions of the shard to one role.'
    FROM sequence AS q LEFT JOIN pg_class AS k ON k.oid = q.lock
    WHERE q.relowner <> q.proowner OR k.relowner <> q.proowner
    UNION ALL
    -- setval() could set it back, and the lock could stop the shard
    SELECT 'error', r.name, format('role %s has rights on it: it could repeat IDs, or stop the'
                                   ' shard', string_agg(DISTINCT r.grantee, ', ')),
           format('REVOKE ALL ON %s FROM %s;', r.name, string_agg(DISTINCT r.grantee, ', '))
    FROM (SELECT i.identity AS name, CASE WHEN x.grantee = 0 THEN 'PUBLIC'
                                          ELSE x.grantee::regrole::text END AS grantee
          FROM sequence AS q JOIN pg_class AS c ON c.oid IN (q.seqrelid, q.lock)
               CROSS JOIN LATERAL pg_identify_object('pg_class'::regclass, c.oid, 0) AS i
               CROSS JOIN LATERAL aclexplode(c.relacl) AS x
          WHERE x.grantee <> c.relowner
            AND (c.oid = q.lock OR x.privilege_type IN ('USAGE', 'UPDATE'))) AS r
    GROUP BY r.name
    UNION ALL
    -- After a crash it starts from the clock: IDs that were ahead of it come again.
    SELECT 'warning', q.name, 'is unlogged: it forgets its IDs in a crash',
           format('ALTER SEQUENCE %s SET LOGGED;', q.name)
    FROM sequence AS q WHERE q.relpersistence = 'u'
    UNION ALL
    -- next_ids() and RESTART go up to 2.1 s ahead
    SELECT 'warning', s.name, format('its IDs are %s ahead of the clock', s.drift),
           'Set the server''s clock right, or wait until it has passed the time of these IDs.'
    FROM (SELECT q.name, instaid.extract_timestamp(instaid._last_value(q.seqrelid), q.epoch)
                         - clock_timestamp() AS drift FROM sequence AS q) AS s
    WHERE s.drift > interval '5 s'
    UNION ALL
    -- setval() or ALTER SEQUENCE left it so: nextval() gives what another server gives
    SELECT 'error', t.sequence::text, 'stands at a value of another server: next_ticket() fails',
           format('ALTER SEQUENCE %s RESTART WITH %s;', t.sequence,
                  t.last_value::numeric + t.servers
                  - mod(mod(t.last_value::numeric - t.server, t.servers) + t.servers, t.servers))
    FROM instaid.tickets AS t WHERE t.off_stripe;
END;

CREATE FUNCTION instaid.audit(OUT severity text, OUT object text, OUT problem text,
                              OUT cure text) RETURNS SETOF record
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE NOTICE USING
        MESSAGE = 'this is instaid 1.0 without C',
        DETAIL = 'It does not check the values of columns, foreign keys, or parsed code.';
    RETURN QUERY SELECT f.* FROM instaid._audit() AS f
                 ORDER BY f.severity COLLATE "C", f.object COLLATE "C", f.problem COLLATE "C";
END
$$;
COMMENT ON FUNCTION instaid.audit() IS
'what makes IDs or tickets repeat or fail, or will make them; one row each, no row if there is '
'nothing';

--
-- What this edition lacks
--

-- Fail, and say what to do instead.
CREATE FUNCTION instaid._refuse_without_c(what text, instead text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE feature_not_supported USING
        MESSAGE = 'this edition of instaid has no C',
        DETAIL = what || ' needs the extension instaid.',
        HINT = instead;
END
$$;

-- A caller would need UPDATE on the sequence, and could set it back.
CREATE FUNCTION instaid.next_id(sequence regclass, shard_id integer,
                                epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('instaid.next_id()', 'Use the next_id() of a shard, which'
                                      ' instaid.create_shard() creates.');
END
$$;
COMMENT ON FUNCTION instaid.next_id(regclass, integer, timestamptz) IS
'not in this edition: fails';

CREATE FUNCTION instaid.next_ids(sequence regclass, shard_id integer, count integer,
                                 epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS SETOF bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('instaid.next_ids()', 'Use the next_ids() of a shard, which'
                                      ' instaid.create_shard() creates.');
END
$$;
COMMENT ON FUNCTION instaid.next_ids(regclass, integer, integer, timestamptz) IS
'not in this edition: fails';

CREATE FUNCTION instaid.next_id() RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('The shard of the node', 'Use the next_id() of a shard,'
                                      ' which instaid.create_shard() creates.');
END
$$;
COMMENT ON FUNCTION instaid.next_id() IS 'not in this edition: fails';

CREATE FUNCTION instaid.next_ids(count integer, sequence regclass DEFAULT NULL)
    RETURNS SETOF bigint
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('The shard of the node', 'Use the next_ids() of a shard,'
                                      ' which instaid.create_shard() creates.');
END
$$;
COMMENT ON FUNCTION instaid.next_ids(integer, regclass) IS 'not in this edition: fails';

CREATE FUNCTION instaid.settled_id(schema_name text, wait boolean DEFAULT true) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('settled_id()', 'Read IDs that are older than the longest'
                                      ' transaction that inserts.');
END
$$;
COMMENT ON FUNCTION instaid.settled_id(text, boolean) IS 'not in this edition: fails';

CREATE FUNCTION instaid.settled_id(sequence regclass, shard_id integer,
                                   epoch timestamptz DEFAULT instaid.default_epoch(),
                                   wait boolean DEFAULT true) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('settled_id()', 'Read IDs that are older than the longest'
                                      ' transaction that inserts.');
END
$$;
COMMENT ON FUNCTION instaid.settled_id(regclass, integer, timestamptz, boolean) IS
'not in this edition: fails';

CREATE FUNCTION instaid.create_ticket(name text, source text[], server integer DEFAULT 1,
                                      servers integer DEFAULT 1, start bigint DEFAULT 1,
                                      step integer DEFAULT 1, data_type regtype DEFAULT 'bigint')
    RETURNS regclass
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('A ticket with a source', 'Leave out source.');
END
$$;
COMMENT ON FUNCTION instaid.create_ticket(text, text[], integer, integer, bigint, integer,
                                          regtype) IS
'not in this edition: fails';

CREATE FUNCTION instaid.audit_servers(servers text[],
                                      OUT severity text, OUT object text, OUT problem text,
                                      OUT cure text) RETURNS SETOF record
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('audit_servers()', 'Compare instaid.shards of the servers.');
END
$$;
COMMENT ON FUNCTION instaid.audit_servers(text[]) IS 'not in this edition: fails';

-- Some databases have default privileges that leave PUBLIC without EXECUTE.
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA instaid, instaid_sql TO PUBLIC;

RESET search_path;
