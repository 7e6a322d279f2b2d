/* instaid--1.0.sql */

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
SELECT instaid._check_library('1.0');

---- Checks ----

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
END $$;

-- Refuse an isolation level that does not show what other transactions commit meanwhile.
CREATE FUNCTION instaid._check_read_committed(routine text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
        RAISE invalid_transaction_state USING
            MESSAGE = format('%s() must run in a READ COMMITTED transaction', routine),
            DETAIL = 'Otherwise it would not see the rows of the transactions that it waits for.',
            HINT = 'SET default_transaction_isolation = ''read committed''; or, for a function,'
                   ' BEGIN ISOLATION LEVEL READ COMMITTED;';
    END IF;
END $$;

-- Refuse a caller who does not have the rights of the owner of an object.
CREATE FUNCTION instaid._check_owner(owner regrole, kind text, object text) RETURNS void
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
CREATE FUNCTION instaid._find_function(schema_name text, function_name name,
                                       argument_types oidvector) RETURNS oid
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT p.oid FROM pg_proc AS p
            WHERE p.proname = function_name AND p.proargtypes = argument_types AND p.pronamespace
                  = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = schema_name));

-- The signature of a function, as regprocedure shows it to all who do not have its schema in their
-- search_path.  To show a regprocedure reads all functions of the name, as above.
CREATE FUNCTION instaid._signature(function oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT format('%I.%I(%s)', n.nspname, p.proname, oidvectortypes(p.proargtypes))
            FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
            WHERE p.oid = function);

-- Whether a schema belongs to a superuser, or to the owner of the database, who is one.
-- A role that is not a superuser can put other objects in place of those in its schema.
CREATE FUNCTION instaid._is_superusers_schema(schema oid) RETURNS boolean
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT o.rolsuper OR o.rolname = 'pg_database_owner' AND d.rolsuper
            FROM pg_namespace AS n JOIN pg_roles AS o ON o.oid = n.nspowner
                 JOIN pg_database AS b ON b.datname = current_database()
                 JOIN pg_roles AS d ON d.oid = b.datdba WHERE n.oid = schema);

-- The role of an owner.  That of pg_database_owner, which nobody can log in as, is its member.
CREATE FUNCTION instaid._ruler(owner oid) RETURNS regrole
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT CASE pg_get_userbyid(owner) WHEN 'pg_database_owner' THEN d.datdba
                                               ELSE owner END
            FROM pg_database AS d WHERE d.datname = current_database());

-- Whether a role can rely on what another one owns and could replace: that one is a superuser, has
-- its rights already, or owns instaid.
CREATE FUNCTION instaid._can_trust(role oid, owner oid) RETURNS boolean
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT pg_has_role(r, role, 'USAGE') OR r = i.nspowner
            FROM pg_namespace AS i CROSS JOIN instaid._ruler(owner) AS r
            WHERE i.nspname = 'instaid');

-- The roles that default privileges can give rights on new objects of the caller.
CREATE FUNCTION instaid._default_grantees() RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN concat_ws(', ', 'PUBLIC', (
        SELECT string_agg(DISTINCT x.grantee::regrole::text, ', ')
        FROM pg_default_acl AS d CROSS JOIN LATERAL aclexplode(d.defaclacl) AS x
             JOIN pg_roles AS r ON r.oid = x.grantee AND r.rolname <> current_user));

---- Checks that need C ----

-- Run a command as a role that the caller can SET ROLE to, and return its first value.
CREATE FUNCTION instaid._execute_as(role regrole, command text) RETURNS text
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_execute_as';

-- Refuse a name that is too long, or empty.
-- Functions take names as text, because a cast to name truncates those that are too long.
CREATE FUNCTION instaid._check_name(what text, name text) RETURNS void
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_check_name';

---- The layout of an ID ----

-- The largest shard ID, as src/ids/layout.h defines it.
CREATE FUNCTION instaid._max_shard_id() RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_max_shard_id';

-- The largest sequence field of an ID, and of a tick.
CREATE FUNCTION instaid._max_sequence() RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_max_sequence';

-- The last tick, where a sequence ends that is not frozen.
CREATE FUNCTION instaid._max_tick() RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_max_tick';

---- Reading and packing IDs ----

CREATE FUNCTION instaid.default_epoch() RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_default_epoch';
COMMENT ON FUNCTION instaid.default_epoch() IS 'Instagram''s epoch, 1314220021721 ms after 1970';

CREATE FUNCTION instaid.make_id(created_at timestamptz, shard_id integer, sequence bigint,
                                epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_make_id';
COMMENT ON FUNCTION instaid.make_id IS 'the ID of a time, rounded down to 1 ms, a shard ID, and '
'the low bits of a sequence; error if the shard ID, or the time since the epoch, does not fit';

CREATE FUNCTION instaid.extract_timestamp(
    id bigint, epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_extract_timestamp';
COMMENT ON FUNCTION instaid.extract_timestamp IS 'the time of an ID, to the millisecond';

CREATE FUNCTION instaid.extract_shard_id(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_extract_shard_id';
COMMENT ON FUNCTION instaid.extract_shard_id(bigint) IS 'the shard ID of an ID';

CREATE FUNCTION instaid.decode(id bigint, epoch timestamptz DEFAULT instaid.default_epoch(),
                               OUT created_at timestamptz, OUT shard_id integer,
                               OUT sequence integer)
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_decode';
COMMENT ON FUNCTION instaid.decode IS 'the time of an ID, its shard ID and its sequence field';

CREATE FUNCTION instaid.min_id(created_at timestamptz,
                               epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_min_id';
COMMENT ON FUNCTION instaid.min_id(timestamptz, timestamptz) IS
'the smallest ID of a millisecond, in all shards; times outside the format count as its ends';

CREATE FUNCTION instaid.max_id(created_at timestamptz,
                               epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_max_id';
COMMENT ON FUNCTION instaid.max_id(timestamptz, timestamptz) IS
'the largest ID of a millisecond, in all shards; times outside the format count as its ends';

-- The smallest ID not before a time; null if none.
CREATE FUNCTION instaid._min_id_from(
    created_at timestamptz, epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_min_id_from';

-- The largest ID before a time; -1 if there is none.
CREATE FUNCTION instaid._max_id_before(
    created_at timestamptz, epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_max_id_before';

---- Time ranges ----

-- Not STRICT: PostgreSQL would not inline an AND.  Each time is used once, so that it can be a
-- subselect.  ">=", because "> the largest before" does not prune the partition that ends there.
CREATE FUNCTION instaid.created_between(
    id bigint, from_time timestamptz, to_time timestamptz,
    epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN id >= instaid._min_id_from(from_time, epoch)
           AND id <= instaid._max_id_before(to_time, epoch);
COMMENT ON FUNCTION instaid.created_between(bigint, timestamptz, timestamptz, timestamptz) IS
'whether an ID has a time from from_time on, before to_time; uses indexes, prunes partitions';

CREATE FUNCTION instaid.integer_now() RETURNS bigint
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN instaid.min_id(pg_catalog.now());
COMMENT ON FUNCTION instaid.integer_now() IS 'min_id(now()), for tools that partition by integers';

---- Text forms ----

CREATE FUNCTION instaid.to_shortcode(id bigint) RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_to_shortcode';
COMMENT ON FUNCTION instaid.to_shortcode(bigint) IS
'an ID as in Instagram''s addresses: 1 to 11 base64url digits; error if it is negative';

CREATE FUNCTION instaid.from_shortcode(shortcode text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_from_shortcode';
COMMENT ON FUNCTION instaid.from_shortcode IS 'the ID of a shortcode; error for other text';

---- The type instaid.id ----

-- Its operators, and the operator classes of its indexes, are bigint's, as varchar's are text's.
-- Its own would have to be in pg_catalog, in integer_ops, where pg_upgrade drops what an extension
-- adds.  Therefore max(id) is a bigint: max(instaid.id) would read the whole table, since an index
-- serves an aggregate only by a sort operator of the argument's own type, in its own family.
CREATE TYPE instaid.id;

CREATE FUNCTION instaid.id_in(cstring) RETURNS instaid.id
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8in';
COMMENT ON FUNCTION instaid.id_in(cstring) IS 'I/O';
CREATE FUNCTION instaid.id_out(instaid.id) RETURNS cstring
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8out';
COMMENT ON FUNCTION instaid.id_out(instaid.id) IS 'I/O';
CREATE FUNCTION instaid.id_recv(internal) RETURNS instaid.id
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8recv';
COMMENT ON FUNCTION instaid.id_recv(internal) IS 'I/O';
CREATE FUNCTION instaid.id_send(instaid.id) RETURNS bytea
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8send';
COMMENT ON FUNCTION instaid.id_send(instaid.id) IS 'I/O';

-- In the category of bigint, COALESCE(id, 0) and id IN (1, 2) find a common type.
CREATE TYPE instaid.id (INPUT = instaid.id_in, OUTPUT = instaid.id_out, RECEIVE = instaid.id_recv,
                        SEND = instaid.id_send, LIKE = pg_catalog.int8, CATEGORY = 'N');
COMMENT ON TYPE instaid.id IS 'a bigint that is a string in JSON: JavaScript does not round it';

CREATE CAST (instaid.id AS bigint) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (bigint AS instaid.id) WITHOUT FUNCTION AS IMPLICIT;

-- pg_upgrade would refuse casts with functions of pg_catalog: it creates them before those above.
CREATE FUNCTION instaid.id(integer) RETURNS instaid.id
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int48';
COMMENT ON FUNCTION instaid.id(integer) IS 'convert integer to instaid.id';
CREATE CAST (integer AS instaid.id) WITH FUNCTION instaid.id(integer) AS IMPLICIT;

-- Drivers send smallint and numeric.  With implicit casts of numeric, abs(id) would be ambiguous.
CREATE FUNCTION instaid.id(smallint) RETURNS instaid.id
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int28';
COMMENT ON FUNCTION instaid.id(smallint) IS 'convert smallint to instaid.id';
CREATE CAST (smallint AS instaid.id) WITH FUNCTION instaid.id(smallint) AS IMPLICIT;

CREATE FUNCTION instaid.id(numeric) RETURNS instaid.id
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'numeric_int8';
COMMENT ON FUNCTION instaid.id(numeric) IS 'convert numeric to instaid.id';
CREATE CAST (numeric AS instaid.id) WITH FUNCTION instaid.id(numeric) AS ASSIGNMENT;

CREATE FUNCTION instaid.numeric(instaid.id) RETURNS numeric
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int8_numeric';
COMMENT ON FUNCTION instaid.numeric(instaid.id) IS 'convert instaid.id to numeric';
CREATE CAST (instaid.id AS numeric) WITH FUNCTION instaid.numeric(instaid.id) AS ASSIGNMENT;

CREATE FUNCTION instaid.int4(instaid.id) RETURNS integer
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE AS 'int84';
COMMENT ON FUNCTION instaid.int4(instaid.id) IS 'convert instaid.id to integer';
CREATE CAST (instaid.id AS integer) WITH FUNCTION instaid.int4(instaid.id) AS ASSIGNMENT;

---- Partitions ----

-- Refuse a caller without the rights of the owner of a table, and a superuser's table whose place
-- the owner of its schema could give to another one before a command that names it.
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
END $$;

-- A table, its partitions and its children, at all levels, and their owners.
CREATE FUNCTION instaid._descendants(relation oid, OUT relid oid, OUT owner regrole)
    RETURNS SETOF record LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH RECURSIVE descendant (relid) AS (
        SELECT relation
        UNION SELECT i.inhrelid FROM descendant AS d, pg_inherits AS i WHERE i.inhparent = d.relid)
    SELECT d.relid, c.relowner
    FROM descendant AS d JOIN pg_class AS c ON c.oid = d.relid ORDER BY d.relid;
END;

-- Tables with other partitions give no rows.  Without their OID, pg_get_expr() takes no lock.
-- audit(), which joins all catalogs by hash, calls this for one table after another.
CREATE FUNCTION instaid.list_partitions(
    parent regclass, epoch timestamptz DEFAULT instaid.default_epoch(), OUT partition regclass,
    OUT from_time timestamptz, OUT to_time timestamptz, OUT first_id bigint, OUT end_id bigint)
    RETURNS SETOF record LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp SET enable_nestloop = on
BEGIN ATOMIC
    SELECT t.oid::regclass,
           CASE WHEN b.bound[1] = 'MINVALUE' THEN '-infinity' WHEN n.first_id <= 0 THEN epoch
                ELSE instaid.extract_timestamp(n.first_id, epoch) END,
           CASE WHEN b.bound[2] = 'MAXVALUE' THEN 'infinity' WHEN n.end_id <= 0 THEN epoch
                -- a bound within a millisecond leaves IDs of it
                ELSE instaid.extract_timestamp(n.end_id - 1, epoch) + interval '1 ms' END,
           n.first_id, n.end_id
    FROM (SELECT c.oid, pg_get_expr(c.relpartbound, 0) AS bounds
          FROM pg_partitioned_table AS p
               JOIN pg_attribute AS a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
               JOIN pg_inherits AS i ON i.inhparent = p.partrelid AND NOT i.inhdetachpending
               JOIN pg_class AS c ON c.oid = i.inhrelid
          WHERE p.partrelid = parent AND p.partstrat = 'r' AND p.partnatts = 1
            AND a.atttypid IN ('bigint'::regtype,
                               COALESCE(to_regtype('instaid.id'), 'bigint'::regtype))
          -- the bounds of others are not read below
          OFFSET 0) AS t
         CROSS JOIN LATERAL regexp_match(t.bounds,
             '^FOR VALUES FROM [(]''?([^'')]+)''?[)] TO [(]''?([^'')]+)''?[)]$') AS b (bound)
         CROSS JOIN LATERAL (SELECT NULLIF(b.bound[1], 'MINVALUE')::bigint,
                                    NULLIF(b.bound[2], 'MAXVALUE')::bigint) AS n (first_id, end_id)
    ORDER BY b.bound IS NULL, n.end_id;
END;
COMMENT ON FUNCTION instaid.list_partitions IS 'the partitions of a table by range of its IDs, '
'with the bounds as times and as IDs; the default partition, with nulls, is last';

CREATE FUNCTION instaid.create_partitions(parent regclass, from_time timestamptz,
                                          to_time timestamptz, step interval,
                                          epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS SETOF regclass LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET timezone = 'UTC'
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    max_partitions CONSTANT integer := 1000;
    main record;
    expires_at timestamptz;
    name_format text;
    part record;
    other record;
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
      AND a.atttypid IN ('bigint'::regtype, COALESCE(to_regtype('instaid.id'), 'bigint'));
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
    -- longer than the format; a thousand of them are not past the times of PostgreSQL
    step := LEAST(step, '200 years');
    -- refuses an infinite epoch
    expires_at := instaid.extract_timestamp(-9223372036854775808, epoch);
    IF from_time + step <= epoch OR to_time > expires_at THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('times from %s to %s are out of range for an ID', from_time, to_time),
            DETAIL = format('With epoch %s, partitions can begin at %s and end at %s.',
                            epoch, epoch, expires_at);
    ELSIF from_time + max_partitions * step < to_time THEN
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

    -- Two sessions cannot both find a partition missing: one waits for the other.  All that
    -- follows runs as the owner: an index can hold code that runs when the table is read.
    PERFORM instaid._execute_as(main.owner, format(
        'LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent));
    FOR part IN
        SELECT s.since, s.until, i.first_id, i.end_id,
               (SELECT NULLIF(p.partdefid, 0)::regclass FROM pg_partitioned_table AS p
                WHERE p.partrelid = parent) AS default_partition
        FROM generate_series(0, max_partitions - 1) AS n
             -- by multiples of the step: after a shorter month, the 31st comes again
             CROSS JOIN LATERAL (SELECT from_time + n * step AS since,
                                        from_time + (n + 1) * step AS until) AS s
             CROSS JOIN LATERAL (SELECT instaid._min_id_from(s.since, epoch) AS first_id,
                                        instaid._min_id_from(s.until, epoch) AS end_id) AS i
        -- a partition can hold several steps, as a table that was attached does
        WHERE s.since < to_time AND NOT EXISTS (
            SELECT FROM instaid.list_partitions(parent) AS p
            WHERE p.from_time IS NOT NULL AND (p.first_id IS NULL OR p.first_id <= i.first_id)
              AND (p.end_id IS NULL OR p.end_id >= i.end_id)) ORDER BY n
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
        -- PostgreSQL refuses the following, too, and does not say what to do.
        SELECT p.* INTO other FROM instaid.list_partitions(parent, epoch) AS p
        WHERE p.from_time IS NOT NULL AND part.first_id IS NOT NULL
          AND (p.first_id < part.end_id) IS NOT FALSE
          AND (p.end_id > part.first_id) IS NOT FALSE LIMIT 1;
        IF FOUND THEN
            RAISE invalid_object_definition USING
                MESSAGE = format('partition %s would overlap partition %s', name, other.partition),
                DETAIL = format('It would be from %s to %s, and that one is from %s to %s.',
                                part.since, part.until, other.from_time, other.to_time),
                HINT = 'Choose from_time and step so that a step begins where that one ends.';
        END IF;
        IF part.default_partition IS NOT NULL AND instaid._execute_as(main.owner, format(
               'SELECT EXISTS (SELECT FROM %s WHERE %I BETWEEN %L AND %s)',
               part.default_partition, main.attname, part.first_id,
               COALESCE(part.end_id - 1, 9223372036854775807)))::boolean THEN
            RAISE check_violation USING
                MESSAGE = format('default partition %s has rows from %s to %s',
                                 part.default_partition, part.since, part.until),
                DETAIL = 'They belong in the new partition. PostgreSQL does not move them.',
                HINT = 'Let its owner detach the default partition, create the others, and insert'
                       ' its rows into the table.';
        END IF;
        PERFORM instaid._execute_as(main.owner, format(
            'CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%s) TO (%s)', name, parent,
            COALESCE(quote_literal(part.first_id), 'MAXVALUE'),
            COALESCE(quote_literal(part.end_id), 'MAXVALUE')));
        RETURN NEXT name::regclass;
    END LOOP;
END $$;
COMMENT ON FUNCTION instaid.create_partitions IS 'create and return the missing partitions of a '
'table by range of its IDs, one for each step, up to 1000; needs the rights of the owner';

---- Making IDs ----

-- Two functions: each statement that is not prepared would evaluate a default value again.
CREATE FUNCTION instaid.next_id(sequence regclass, shard_id integer) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_next_id';
COMMENT ON FUNCTION instaid.next_id(regclass, integer) IS 'the next ID, with the default epoch';

CREATE FUNCTION instaid.next_id(sequence regclass, shard_id integer, epoch timestamptz)
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_next_id';
COMMENT ON FUNCTION instaid.next_id(regclass, int, timestamptz) IS 'the next ID of a sequence; '
'greater than all before; needs USAGE or UPDATE on it';

CREATE FUNCTION instaid.next_ids(sequence regclass, shard_id integer, count integer,
                                 epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS SETOF bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE ROWS 1000 AS 'MODULE_PATHNAME', 'instaid_next_ids';
COMMENT ON FUNCTION instaid.next_ids(regclass, int, int, timestamptz) IS 'the next 1 to 1000000 '
'IDs of a sequence, in increasing order; needs USAGE or UPDATE on it';

-- The last ID that a sequence issued; null if there is none, while it is dropped, and without
-- USAGE or SELECT on it or pg_read_all_stats.
CREATE FUNCTION instaid._last_id(sequence regclass, shard_id integer,
                                epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'instaid_last_id';

-- The last value of a sequence, and its time if it is a tick, null in the cases of _last_id(); why
-- it cannot serve as a source of IDs, and what to do, null if it can; whether it was read.
CREATE FUNCTION instaid._sequence_state(sequence regclass, OUT last_value bigint,
                                        OUT issued_at timestamptz, OUT problem text, OUT cure text,
                                        OUT is_read boolean)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'instaid_sequence_state';

---- Shards ----

-- A shard is declared by functions in the language instaid: see src/ids/declaration.c.
CREATE FUNCTION instaid._call_handler() RETURNS language_handler
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_call_handler';

-- Refuses functions in the language instaid that are not functions of a shard.
CREATE FUNCTION instaid._validator(oid) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_validator';

CREATE TRUSTED LANGUAGE instaid HANDLER instaid._call_handler VALIDATOR instaid._validator;
COMMENT ON LANGUAGE instaid IS 'a schema with next_ids(integer, regclass) in it is a shard';

-- The shard of the node: of this server, in this database.  Its shard ID is a setting, so that the
-- same DDL can run on every node.  pg_dump writes the position of its sequence.
CREATE SEQUENCE instaid.node_id_seq;
COMMENT ON SEQUENCE instaid.node_id_seq IS 'ticks: ms since 1970, and a count in each';
SELECT pg_catalog.pg_extension_config_dump('instaid.node_id_seq', '');

CREATE FUNCTION instaid.next_ids(count integer, sequence regclass DEFAULT 'instaid.node_id_seq')
    RETURNS SETOF bigint
    LANGUAGE instaid VOLATILE STRICT PARALLEL UNSAFE COST 1
    AS 'node shard, epoch 1314220021721';
COMMENT ON FUNCTION instaid.next_ids(integer, regclass) IS
'the next 1 to 1000000 IDs of the shard of the node, in increasing order; see instaid.next_id()';

CREATE FUNCTION instaid.next_id() RETURNS bigint
    LANGUAGE instaid VOLATILE STRICT PARALLEL UNSAFE COST 1 AS 'as next_ids(integer, regclass)';
COMMENT ON FUNCTION instaid.next_id() IS 'the next ID of the shard of the node, whose shard ID is '
'the setting instaid.node_shard_id; needs USAGE or UPDATE on the sequence instaid.node_id_seq';

-- What shards declare, and the OIDs of declarations.
CREATE FUNCTION instaid._list_shards(OUT schema_name name, OUT shard_id integer,
                                    OUT epoch timestamptz, OUT sequence regclass,
                                    OUT declaration oid, OUT frozen boolean) RETURNS SETOF record
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 100
    AS 'MODULE_PATHNAME', 'instaid_list_shards';

-- The shard of a schema
CREATE FUNCTION instaid._find_shard(schema text, OUT schema_name name, OUT shard_id integer,
                                    OUT epoch timestamptz, OUT sequence regclass,
                                    OUT declaration oid, OUT frozen boolean) RETURNS SETOF record
    LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED ROWS 1
BEGIN ATOMIC
    SELECT s.* FROM instaid._list_shards() AS s WHERE s.schema_name = schema;
END;

-- What ALTER FUNCTION or DROP has made wrong with a function of a shard, for audit(); or nulls.
CREATE FUNCTION instaid._function_fault(function oid, OUT code text, OUT problem text)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'instaid_function_fault';

-- The sequences that issue the IDs of a shard: the one of its next_id() first, and those that
-- tables of its owner pass to next_id(regclass).
-- The views call it for thousands of shards.  It is not STRICT, so that they contain its query.
-- OFFSET 0 keeps the planner, which can know little of pg_depend, to look-ups by a whole key.
-- 23 is integer, 2205 regclass: an array's cast is not shown, and pg_upgrade fails without it.
CREATE FUNCTION instaid._shard_sequences(schema_name text) RETURNS SETOF regclass
    LANGUAGE sql STABLE PARALLEL RESTRICTED ROWS 1
BEGIN ATOMIC
    SELECT u.oid::regclass
    FROM pg_proc AS s JOIN pg_language AS l ON l.oid = s.prolang AND l.lanname = 'instaid'
         CROSS JOIN LATERAL (
             SELECT c.oid, 1
             FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.refobjid AND c.relkind = 'S'
             WHERE d.classid = 'pg_proc'::regclass AND d.objid = s.oid
               AND d.refclassid = 'pg_class'::regclass
             UNION ALL
             -- The sequences that column defaults pass to next_id(regclass).  Any role can write
             -- such a default, so table and sequence must belong to the owner of the shard.
             SELECT c.oid, 2
             FROM pg_proc AS r
                  CROSS JOIN LATERAL (
                      SELECT f.classid, f.objid FROM pg_depend AS f
                      WHERE f.refclassid = 'pg_proc'::regclass AND f.refobjid = r.oid OFFSET 0)
                  AS f
                  CROSS JOIN LATERAL (
                      SELECT d.refclassid, d.refobjid FROM pg_depend AS d
                      WHERE d.classid = 'pg_attrdef'::regclass AND d.objid = f.objid OFFSET 0)
                  AS d
                  JOIN pg_attrdef AS a ON a.oid = f.objid
                  JOIN pg_class AS t ON t.oid = a.adrelid AND t.relowner = r.proowner
                  JOIN pg_class AS c ON c.oid = d.refobjid AND c.relowner = r.proowner
                                    AND c.relkind = 'S' AND c.relpersistence <> 't'
             WHERE r.proname = 'next_id' AND r.pronamespace = s.pronamespace
               AND r.proargtypes = '2205'::oidvector AND r.prolang = s.prolang
               AND r.proowner = s.proowner AND f.classid = 'pg_attrdef'::regclass
               AND d.refclassid = 'pg_class'::regclass) AS u (oid, place)
    WHERE s.oid = instaid._find_function(schema_name, 'next_ids', '23 2205'::oidvector)
    GROUP BY u.oid ORDER BY min(u.place), u.oid;
END;

CREATE VIEW instaid.shards AS
    SELECT s.schema_name, s.shard_id, s.epoch, s.sequence, i.last_id,
           instaid.extract_timestamp(i.last_id, s.epoch) AS last_issued_at,
           CASE WHEN i.newest_id IS NOT NULL
                THEN GREATEST(instaid.extract_timestamp(i.newest_id, s.epoch)
                              - pg_catalog.clock_timestamp(), '0'::interval)
           END AS drift, s.frozen,
           -- the time of the first ID that would be negative
           instaid.extract_timestamp(-9223372036854775808, s.epoch) AS expires_at,
           i.newest_sequence AS drift_sequence
    FROM instaid._list_shards() AS s
         -- tables can have sequences of their own
         CROSS JOIN LATERAL (
        SELECT max(l.id) FILTER (WHERE q.oid = s.sequence), max(l.id),
               (array_agg(q.oid ORDER BY l.id DESC) FILTER (WHERE l.id IS NOT NULL))[1]
        FROM instaid._shard_sequences(s.schema_name) AS q (oid)
             CROSS JOIN LATERAL (SELECT instaid._last_id(q.oid, s.shard_id, s.epoch)) AS l (id))
         AS i (last_id, newest_id, newest_sequence);
COMMENT ON VIEW instaid.shards IS 'the shards of this database; last_id, last_issued_at and drift '
'need USAGE or SELECT on the sequence, or membership in pg_read_all_stats';

-- Keep others from creating a shard with this ID until the transaction ends.
CREATE FUNCTION instaid._lock_shard_id(schema_name text, shard_id integer) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_lock_shard_id';

-- Who has the shard ID of a new shard, and a function that it needs; the epoch of another shard.
CREATE FUNCTION instaid._find_conflict(schema_name text, shard_id integer, OUT taken_by name,
                                       OUT routine oid, OUT other_schema name,
                                       OUT other_epoch timestamptz)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_find_conflict';

-- The commands that create the functions of a shard, or replace its next_id().
-- Unlike catalog changes in C, they fire event triggers.  None looks a function up by its name,
-- as COMMENT, GRANT and ALTER do: among thousands of that name, this takes 20 ms and 8 MB.
CREATE FUNCTION instaid._declaration_commands(
    schema_name text, shard_id integer, epoch timestamptz, sequence text,
    or_replace boolean DEFAULT false, arguments text DEFAULT '', security text DEFAULT '')
    RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN format('CREATE FUNCTION %1$I.next_ids(count integer, sequence regclass DEFAULT %2$L)'
                  ' RETURNS SETOF bigint LANGUAGE instaid STRICT COST 1 AS %3$L;'
                  ' CREATE FUNCTION %1$I.next_id(sequence regclass) RETURNS bigint'
                  ' LANGUAGE instaid STRICT COST 1 AS ''as next_ids(integer, regclass)'';'
                  ' CREATE %4$s FUNCTION %1$I.next_id(%5$s) RETURNS bigint LANGUAGE instaid STRICT'
                  ' VOLATILE PARALLEL UNSAFE COST 1 %6$s AS ''as next_ids(integer, regclass)'';'
                  ' COMMENT ON SEQUENCE %2$s IS ''ticks: ms since 1970, and a count in each''',
                  schema_name, sequence,
                  format('shard %s, epoch %s', shard_id,
                         (extract(epoch FROM epoch) * 1000)::bigint),
                  CASE WHEN or_replace THEN 'OR REPLACE' END, arguments, security);

-- The commands that make a schema a shard.
CREATE FUNCTION instaid._shard_commands(schema_name text, shard_id integer, epoch timestamptz,
                                        sequence text) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN format('CREATE SEQUENCE %s; ', sequence)
           || instaid._declaration_commands(schema_name, shard_id, epoch, sequence);

-- Default privileges must not let other roles set the sequences of these shards back.
CREATE FUNCTION instaid._restrict_shards(schemas text[]) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE (
        SELECT format('REVOKE UPDATE ON SEQUENCE %s FROM %s', string_agg(q::text, ', '),
                      instaid._default_grantees())
        FROM unnest(schemas) AS s CROSS JOIN LATERAL instaid._shard_sequences(s) AS q);
END $$;

---- Creating shards ----

-- A shard ID that is free in this database: the one after the highest, or else one between.
-- From the top, it is hardly one of a copy that is not adopted yet.
CREATE FUNCTION instaid._free_shard_id(from_top boolean) RETURNS integer
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT n FROM generate_series(0, instaid._max_shard_id()) AS n
    WHERE n NOT IN (SELECT s.shard_id FROM instaid._list_shards() AS s)
    ORDER BY CASE WHEN from_top THEN - n END,
             n < (SELECT max(s.shard_id) FROM instaid._list_shards() AS s), n LIMIT 1;
END;

-- Refuse a schema whose owner could put another function in place of one that a role has there, or
-- would create.
CREATE FUNCTION instaid._check_ruler(role regrole, schema_name text, function oid)
    RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner CONSTANT regrole := (SELECT instaid._ruler(n.nspowner) FROM pg_namespace AS n
                               WHERE n.nspname = schema_name);
BEGIN
    IF NOT instaid._can_trust(role, owner) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('schema %I belongs to another role', schema_name),
            DETAIL = format('Role %s, its owner, could put other functions there.', owner),
            HINT = CASE WHEN function IS NULL
                        THEN 'Let that role create the shard, or choose another schema.'
                        ELSE format('Give the function, and its sequence, to that role: ALTER'
                                    ' FUNCTION %s OWNER TO %s;', instaid._signature(function),
                                    owner) END;
    END IF;
END $$;

-- Refuse what cannot be a shard; keep other sessions from creating a shard with this ID until the
-- transaction ends.  If shard ID and epoch are null, only look at the schema.
CREATE FUNCTION instaid._check_new_shard(schema_name text, shard_id integer,
                                         epoch timestamptz, adopted oid DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET timezone = 'UTC' AS $$
DECLARE
    expires_at timestamptz;
    -- the time of the first ID that would be negative
    default_ends_at CONSTANT timestamptz := instaid.extract_timestamp(-9223372036854775808);
    conflict record;
    other record;
BEGIN
    PERFORM instaid._check_name('schema', schema_name);
    IF schema_name ~ '^(instaid|instaid_sql|information_schema|pg_.*)$' THEN
        RAISE reserved_name USING MESSAGE = format('schema %I cannot be a shard', schema_name),
            DETAIL = 'It belongs to the extension or the server.', HINT = 'Choose another schema.';
    END IF;
    -- refuses what is out of range, and an epoch that is not a whole millisecond
    PERFORM instaid.make_id(epoch, shard_id, 0, epoch);
    expires_at := CASE WHEN epoch <= clock_timestamp()
                       THEN instaid.extract_timestamp(-9223372036854775808, epoch) END;
    IF shard_id IS NOT NULL AND (expires_at > clock_timestamp()) IS NOT TRUE THEN
        RAISE invalid_parameter_value USING
            MESSAGE = CASE WHEN expires_at IS NULL THEN format('epoch %s is in the future', epoch)
                           ELSE format('IDs with epoch %s ended at %s', epoch, expires_at) END,
            DETAIL = format('The clock reads %s; an epoch can be up to %s years before it.',
                            clock_timestamp(),
                            round(extract(epoch FROM default_ends_at - instaid.default_epoch())
                                  / 31557600, 1)),
            HINT = format('Use the default epoch, which serves until %s, or the date of today.',
                          extract(year FROM default_ends_at));
    END IF;

    PERFORM instaid._check_ruler(r.oid, schema_name, adopted) FROM pg_roles AS r
    WHERE r.rolsuper AND r.rolname = COALESCE((SELECT pg_get_userbyid(p.proowner) FROM pg_proc AS p
                                               WHERE p.oid = adopted), current_user);

    -- Two sessions cannot both find a shard ID free: one of them fails.
    PERFORM instaid._lock_shard_id(schema_name, shard_id);
    conflict := instaid._find_conflict(schema_name, COALESCE(shard_id, -1));
    IF conflict.routine <> COALESCE(adopted, 0) THEN
        SELECT s.shard_id, s.epoch, pg_get_userbyid(p.proowner) AS owner INTO other
        FROM instaid._find_shard(schema_name) AS s JOIN pg_proc AS p ON p.oid = s.declaration;
        IF FOUND THEN
            RAISE duplicate_function USING
                MESSAGE = format('schema %I is a shard already', schema_name),
                DETAIL = format('It is shard %s%s, with epoch %s.', other.shard_id,
                                ' of role ' || quote_ident(NULLIF(other.owner, current_user)),
                                other.epoch),
                HINT = 'A schema is one shard. Choose another schema if you need another shard.';
        END IF;
        SELECT p.proname, p.proname = 'next_id' AND p.pronargs = 0 AS can_be_adopted,
               instaid._signature(p.oid) AS name
        INTO other FROM pg_proc AS p WHERE p.oid = conflict.routine;
        RAISE duplicate_function USING
            MESSAGE = format('schema %I already has a function %s()', schema_name, other.proname),
            DETAIL = format('It is %s.', other.name),
            HINT = format('Rename it: ALTER ROUTINE %s RENAME TO old_%s; defaults follow it.',
                          other.name, other.proname)
                   || CASE WHEN other.can_be_adopted
                           THEN format(' Or replace it: SELECT instaid.adopt_shard(%L);',
                                       schema_name) ELSE '' END;
    END IF;
    IF shard_id IS NULL THEN
        RETURN;
    ELSIF conflict.taken_by IS NOT NULL THEN
        RAISE duplicate_object USING
            MESSAGE = format('shard ID %s is taken by schema %I', shard_id, conflict.taken_by),
            DETAIL = CASE WHEN conflict.taken_by = 'instaid'
                          THEN 'It is the setting instaid.node_shard_id of this server. '
                          ELSE '' END || 'The two shards would issue the same IDs.',
            HINT = COALESCE(format('Shard ID %s is free in this database',
                                   instaid._free_shard_id(false)), 'No shard ID is free')
                   || '; instaid.shards lists those that are taken. A copy'
                   ' that is not adopted can use others.';
    END IF;

    IF expires_at < clock_timestamp() + interval '5 years' THEN
        RAISE WARNING USING MESSAGE = format('shard %s ends in less than five years', shard_id),
            DETAIL = format('With epoch %s, its IDs end at %s.', epoch, expires_at);
    END IF;
    IF conflict.other_epoch <> epoch THEN
        RAISE NOTICE USING
            MESSAGE = format('epoch %s differs from the epoch of other shards', epoch),
            DETAIL = format('Schema %I has epoch %s. The IDs of the two shards do not sort by time'
                            ' together.', conflict.other_schema, conflict.other_epoch);
    END IF;
END $$;

-- Default privileges must not let other roles create functions beside those of these new shards.
CREATE FUNCTION instaid._restrict_schemas(schemas text[]) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE (
        SELECT format('REVOKE CREATE ON SCHEMA %s FROM %s', string_agg(quote_ident(s), ', '),
                      instaid._default_grantees())
        FROM unnest(schemas) AS s);
END $$;

CREATE FUNCTION instaid.create_shard(schema_name text, shard_id integer,
                                     epoch timestamptz DEFAULT instaid.default_epoch(),
                                     sequence_name text DEFAULT 'table_id_seq') RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence CONSTANT text := quote_ident(schema_name) || '.' || quote_ident(sequence_name);
    -- A schema that another role creates after the checks is refused.
    is_missing CONSTANT boolean := to_regnamespace(quote_ident(schema_name)) IS NULL;
BEGIN
    PERFORM instaid._check_no_nulls('create_shard', json_build_object(
        'schema_name', schema_name, 'shard_id', shard_id, 'epoch', epoch,
        'sequence_name', sequence_name));
    PERFORM instaid._check_name('sequence', sequence_name);
    PERFORM instaid._check_new_shard(schema_name, shard_id, epoch);
    IF to_regclass(sequence) IS NOT NULL THEN
        RAISE duplicate_table USING MESSAGE = format('relation %s already exists', sequence),
            HINT = 'Pass another sequence_name, or drop the relation if nothing uses it.';
    END IF;
    IF is_missing THEN
        EXECUTE format('CREATE SCHEMA %I', schema_name);
        PERFORM instaid._restrict_schemas(ARRAY[schema_name]);
    END IF;
    EXECUTE instaid._shard_commands(schema_name, shard_id, epoch, sequence);
    PERFORM instaid._restrict_shards(ARRAY[schema_name]);
END $$;
COMMENT ON FUNCTION instaid.create_shard IS 'make a schema, which is created if it is missing, a '
'shard, with a sequence, next_id() and next_ids(); needs CREATE on the schema, or on the database';

---- Many shards ----

-- The part of create_shards() between two commits, 512 shards at most; returns the last one.
CREATE FUNCTION instaid._create_batch(format text, first integer, INOUT last integer,
                                      epoch timestamptz)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard record;
    created text[];
    others text;
BEGIN
    last := LEAST(last, first + 511);
    PERFORM instaid._lock_shard_id(format(format, n), n) FROM generate_series(first, last) AS n;
    -- One query finds what exists, and one EXECUTE creates a shard: after each CREATE
    -- SCHEMA, PostgreSQL plans every other expression again.
    FOR shard IN
        SELECT n AS shard_id, m.schema_name,
               n = min(n) OVER () OR s.schema_name IS NOT NULL OR x.oid IS NOT NULL
               OR octet_length(m.schema_name) > 63 AS needs_checks,
               format('CREATE SCHEMA %I; ', m.schema_name)
               || instaid._shard_commands(m.schema_name, n, _create_batch.epoch,
                                          format('%I.table_id_seq', m.schema_name)) AS commands
        FROM generate_series(first, last) AS n
             CROSS JOIN LATERAL (SELECT format(format, n)) AS m (schema_name)
             LEFT JOIN pg_namespace AS x ON x.nspname = m.schema_name
             LEFT JOIN instaid._list_shards() AS s ON s.shard_id = n
        WHERE (s.schema_name = m.schema_name AND s.epoch = _create_batch.epoch) IS NOT TRUE
        ORDER BY n
    LOOP
        IF shard.needs_checks THEN
            PERFORM instaid.create_shard(shard.schema_name, shard.shard_id, epoch);
        ELSE
            EXECUTE shard.commands;
            created := created || shard.schema_name;
        END IF;
    END LOOP;
    PERFORM instaid._restrict_schemas(created), instaid._restrict_shards(created);
    SELECT string_agg(format('%I of %s', s.schema_name, p.proowner::regrole), ', ') INTO others
    FROM instaid._list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration
    WHERE s.shard_id BETWEEN first AND last AND pg_get_userbyid(p.proowner) <> current_user;
    IF others IS NOT NULL THEN
        RAISE WARNING 'shards of other roles exist already: %', others;
    END IF;
END $$;

-- It commits after each 512 shards, because one transaction cannot hold the locks of all, and
-- skips those that exist.  Inside a transaction block the first COMMIT fails, before anything is
-- created.  A procedure with SET could not commit: operators are qualified.
CREATE PROCEDURE instaid.create_shards(format text, first integer, last integer,
                                       epoch timestamptz DEFAULT instaid.default_epoch())
    LANGUAGE plpgsql AS $$
DECLARE
    last_of_batch integer;
BEGIN
    PERFORM instaid._check_no_nulls('create_shards', pg_catalog.json_build_object(
        'format', format, 'first', first, 'last', last, 'epoch', epoch));
    IF first OPERATOR(pg_catalog.<) 0 OR last OPERATOR(pg_catalog.>) instaid._max_shard_id()
       OR first OPERATOR(pg_catalog.>) last THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = pg_catalog.format('shard IDs %s to %s are out of range', first, last),
            DETAIL = pg_catalog.format('Shard IDs are between 0 and %s, and the first must not be'
                                       ' above the last.', instaid._max_shard_id());
    ELSIF format OPERATOR(pg_catalog.!~) '^([^%]|%%)*%s([^%]|%%)*$' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = pg_catalog.format('format "%s" cannot name shards',
                                        pg_catalog."left"(format, 63)),
            DETAIL = 'It must have one %s, the shard ID, as in insta%s. A percent sign is %%.';
    END IF;
    FOR first_of_batch IN first .. last BY 512 LOOP
        IF last OPERATOR(pg_catalog.-) first OPERATOR(pg_catalog.>) 511 THEN
            COMMIT;
        END IF;
        last_of_batch := instaid._create_batch(format, first_of_batch, last, epoch);
        RAISE NOTICE 'shards % to % of % to % exist now', first_of_batch, last_of_batch, first,
            last;
    END LOOP;
END $$;
COMMENT ON PROCEDURE instaid.create_shards IS 'create the missing shards first to last, as '
'create_shard() does, in schemas named format() of the shard ID; commits after every 512';

---- The guards of instaid-move ----

-- Statement triggers of the tables of a shard that moves: they refuse writes while there is a
-- schema with the name of the move, which instaid-move creates to stop all tables of all shards at
-- once.  A name is looked up in a cache that is up to date when a statement has its lock, and not
-- with the snapshot of a transaction, as a row of a table would be.
-- It runs for each statement: a SET would cost more than the rest, and no name needs search_path.
CREATE FUNCTION instaid._move_guard() RETURNS trigger
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
    IF pg_catalog.to_regnamespace(TG_ARGV[0]) IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = pg_catalog.format('shard %I is frozen', TG_TABLE_SCHEMA),
            DETAIL = 'It is being moved to another database, or was moved.',
            HINT = 'Use the shard in its new place.';
    END IF;
    RETURN NULL;
END $$;

---- Reading in batches ----

CREATE FUNCTION instaid.settled_id(schema_name text, sequence regclass DEFAULT '-',
                                   wait boolean DEFAULT true) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_settled_id';
COMMENT ON FUNCTION instaid.settled_id IS 'an ID of a shard, or of a sequence of one of its '
'tables, up to which no open transaction has taken one; waits for those, or returns null if wait '
'is false; needs USAGE or SELECT on the sequence';

---- Moving and protecting shards ----

CREATE FUNCTION instaid.advance_past(sequence regclass, id bigint, epoch timestamptz) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_advance_past';
COMMENT ON FUNCTION instaid.advance_past IS 'let a sequence issue only IDs above this one, '
'whatever their shard; error if the ID is negative; needs UPDATE on the sequence';

-- Lock a sequence as ALTER SEQUENCE does; needs the rights of its owner.
CREATE FUNCTION instaid._lock_sequence(sequence regclass) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_lock_sequence';

-- While ALTER SEQUENCE waits, the owner of the schema can give its name to another sequence.
-- Therefore lock it first, and then see whether it has another file, as after these options.
-- Citus refuses to alter a sequence that it knows, unless its setting is off.  Workers' copies
-- of the sequence have a range of their own, and issue no IDs.
CREATE FUNCTION instaid._alter_sequence(owner regrole, sequence regclass, options text)
    RETURNS void LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET citus.enable_ddl_propagation = off AS $$
DECLARE
    file oid;
BEGIN
    PERFORM instaid._lock_sequence(sequence);
    file := pg_relation_filenode(sequence);
    PERFORM instaid._execute_as(owner, format('ALTER SEQUENCE %s %s', sequence, options));
    IF pg_relation_filenode(sequence) = file THEN
        RAISE serialization_failure USING
            MESSAGE = format('sequence %s was renamed meanwhile', sequence), HINT = 'Try again.';
    END IF;
END $$;

-- Let the sequences of a shard end where they stand, or go on.
-- The lock waits for all transactions that have taken IDs.  The declared sequence comes first: all
-- who use another one have locked it, too.  Each is looked up when the lock of the one before is
-- there: by then, the schema can have another name, and the declaration another sequence.
CREATE FUNCTION instaid._set_frozen(schema_name text, frozen boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    declaration CONSTANT oid := instaid._find_function(schema_name, 'next_ids', '23 2205');
    done regclass[] := '{}'::regclass[];
    sequence regclass;
    owner regrole;
    max_value bigint;
BEGIN
    PERFORM instaid._check_name('schema', schema_name);
    -- It would not see the newest sequences.
    PERFORM instaid._check_read_committed(CASE WHEN frozen THEN 'freeze_shard'
                                               ELSE 'thaw_shard' END);
    LOOP
        SELECT s.name INTO sequence
        FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
             CROSS JOIN instaid._shard_sequences(n.nspname) WITH ORDINALITY AS s (name, place)
        WHERE p.oid = declaration AND s.name <> ALL (done) ORDER BY s.place LIMIT 1;
        EXIT WHEN NOT FOUND;
        owner := instaid._sequence_owner(declaration, sequence);
        PERFORM instaid._lock_sequence(sequence);
        max_value := (pg_sequence_parameters(sequence)).maximum_value;
        PERFORM instaid._alter_sequence(owner, sequence, 'NO MAXVALUE');
        IF frozen THEN
            -- A MAXVALUE must be above MINVALUE, and not below START.
            max_value := instaid._execute_as(owner, format(
                'SELECT setval(%1$L::regclass, LEAST(GREATEST(COALESCE('
                ' pg_sequence_last_value(%1$L), nextval(%1$L)), minimum_value + 1, start_value),'
                ' %2$s)) FROM pg_sequence_parameters(%1$s)', sequence::oid,
                instaid._max_tick() - 1))::bigint;
            PERFORM instaid._alter_sequence(owner, sequence, 'MAXVALUE ' || max_value);
        ELSIF max_value < instaid._max_tick() THEN
            -- It goes on in the next millisecond.  A dump without data has the last tick as
            -- MAXVALUE only.
            PERFORM instaid._execute_as(owner, format(
                'SELECT setval(%1$L, LEAST((COALESCE(pg_sequence_last_value(%1$L), %2$s) | %3$s)'
                ' + 1, %4$s))', sequence::oid, max_value, instaid._max_sequence(),
                instaid._max_tick()));
        END IF;
        done := done || sequence;
    END LOOP;
    IF done = '{}' THEN
        RAISE undefined_object USING MESSAGE = format('schema %I is not a shard', schema_name),
            HINT = 'instaid.shards lists the shards of this database.';
    END IF;
END $$;

CREATE FUNCTION instaid.freeze_shard(schema_name text) RETURNS void
    LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE RETURN instaid._set_frozen(schema_name, true);
COMMENT ON FUNCTION instaid.freeze_shard IS 'wait for the transactions that have taken IDs of a '
'shard, and stop it; its owner and the caller need the rights of the owners of its sequences';

CREATE FUNCTION instaid.thaw_shard(schema_name text) RETURNS void
    LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE RETURN instaid._set_frozen(schema_name, false);
COMMENT ON FUNCTION instaid.thaw_shard(text) IS 'let a frozen shard issue IDs again';

---- Positions and metrics ----

-- The last ID of a sequence; null if there is none, or if it was not read.  One that setval() took
-- past the end of the format stands there.
CREATE FUNCTION instaid._position(sequence regclass, shard_id integer, epoch timestamptz,
                                  OUT last bigint, OUT is_read boolean)
    LANGUAGE sql VOLATILE PARALLEL RESTRICTED
BEGIN ATOMIC
    SELECT CASE WHEN s.last_value > 0 AND COALESCE(s.issued_at, 'infinity') >= epoch
                THEN instaid.make_id(
                    LEAST(s.issued_at, instaid.extract_timestamp(9223372036854775807, epoch)),
                    shard_id, s.last_value, epoch) END, s.is_read
    FROM instaid._sequence_state(sequence) AS s;
END;

---- Positions of a database ----

-- Names are literals, in the encoding that a statement sets; freeze_shard() needs READ COMMITTED.
-- The script ends where a role that its user need not trust could have made the functions.
CREATE FUNCTION instaid.dump_positions() RETURNS SETOF text
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET timezone = 'UTC' AS $$
DECLARE
    part record;
BEGIN
    RETURN QUERY SELECT format($head$SET default_transaction_isolation = 'read committed';
SET client_encoding = %L;
SELECT NOT EXISTS (
    SELECT FROM pg_catalog.pg_namespace AS n
         JOIN pg_catalog.pg_roles AS o ON o.oid OPERATOR(pg_catalog.=) n.nspowner
    WHERE n.nspname OPERATOR(pg_catalog.=) 'instaid' AND (o.rolsuper OR NOT r.rolsuper
          AND o.rolname OPERATOR(pg_catalog.=) ANY (ARRAY[current_user, %L]))) AS is_foreign
FROM pg_catalog.pg_roles AS r WHERE r.rolname OPERATOR(pg_catalog.=) current_user \gset
    \if :is_foreign
    \warn 'schema "instaid" is missing, or belongs to another role: run this as that role'
    \quit
    \endif$head$, pg_client_encoding(), pg_get_userbyid(n.nspowner))
    FROM pg_namespace AS n WHERE n.nspname = 'instaid';
    FOR part IN
        SELECT p.*, format('%I.%I', n.nspname, c.relname) AS name,
               count(p.schema_name) OVER (PARTITION BY p.sequence) AS shards,
               COALESCE(p.last, 0) AS position,
               -- any role may declare a shard with a sequence of another one, but not put it there
               pg_has_role(COALESCE(p.owner, c.relowner), c.relowner, 'USAGE')
               OR n.oid = p.schema AND n.nspowner = p.owner AS is_theirs
        FROM (SELECT s.schema_name, s.frozen, q.sequence, q.place, s.epoch,
                     i.last, i.is_read, d.proowner AS owner, d.pronamespace AS schema
              FROM instaid._list_shards() AS s JOIN pg_proc AS d ON d.oid = s.declaration
                   CROSS JOIN LATERAL instaid._shard_sequences(s.schema_name)
                                      WITH ORDINALITY AS q (sequence, place)
                   CROSS JOIN LATERAL instaid._position(q.sequence, s.shard_id, s.epoch) AS i
              UNION ALL
              SELECT NULL, false, l.sequence, 1, instaid.default_epoch(), i.last, i.is_read,
                     l.owner, NULL
              FROM instaid._lone_sequences AS l CROSS JOIN LATERAL instaid._position(
                       l.sequence, 0, instaid.default_epoch()) AS i) AS p JOIN pg_class AS c ON c.oid = p.sequence
             JOIN pg_namespace AS n ON n.oid = c.relnamespace
        ORDER BY p.schema_name, p.place, c.relname
    LOOP
        -- a default can pass a sequence of a shard to instaid.next_id(), too
        CONTINUE WHEN part.schema_name IS NULL AND part.shards > 0;
        IF NOT (part.is_read AND part.is_theirs) THEN
            RAISE WARNING USING
                MESSAGE = format('the position of sequence %s is left out', part.name),
                DETAIL = CASE WHEN part.is_read
                              THEN 'It belongs to another role than the shard or table it is for.'
                              ELSE 'It is hidden from the role, being altered, or damaged.' END,
                HINT = 'Correct that, and call dump_positions() again, as a superuser.';
            RETURN NEXT format('SELECT instaid.restore_position(%L, NULL);', part.name);
        END IF;
        IF part.is_theirs AND (part.position > 0 OR part.frozen) THEN
            RETURN NEXT format('SELECT instaid.restore_position(%L, %L, %L, %L, %L);', part.name,
                               part.position, part.epoch, part.schema_name, part.frozen);
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION instaid.dump_positions IS 'statements that let shards of another '
'state of this database go on above those of this one, and freeze the shards that are frozen here';

-- Only warnings: neither an error nor another's lock keeps psql from running the next statement.
CREATE FUNCTION instaid.restore_position(
    sequence_name text, last bigint, epoch timestamptz DEFAULT NULL,
    shard text DEFAULT NULL, frozen boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '1s' AS $$
DECLARE
    sequence regclass;
    options record;
    detail text;
    hint text;
BEGIN
    SELECT * INTO options FROM pg_sequence WHERE seqrelid = to_regclass(sequence_name);
    sequence := options.seqrelid;
    IF last IS NULL THEN
        RAISE undefined_object USING MESSAGE = 'it was left out',
            HINT = 'Dump the positions again, and see the warnings.';
    ELSIF sequence IS NULL THEN
        RAISE undefined_object USING MESSAGE = 'it does not exist',
            DETAIL = 'No sequence has this name here.',
            HINT = 'If it has another name here, repeat the call with that name.';
    ELSE
        -- A shard that is frozen here can stand lower, and stays frozen.  Nobody sees it thawed.
        frozen := frozen OR options.seqmax < instaid.min_id('infinity')
                  AND (SELECT s.frozen FROM instaid._find_shard(shard) AS s);
        PERFORM instaid.thaw_shard(shard) WHERE frozen;
        PERFORM instaid.advance_past(sequence, last, epoch) WHERE last > 0;
        PERFORM instaid.freeze_shard(shard) WHERE frozen;
    END IF;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RAISE WARNING USING ERRCODE = SQLSTATE,
        MESSAGE = format('position of sequence %s not restored: %s', sequence_name, SQLERRM),
        DETAIL = COALESCE(NULLIF(detail, ''), 'It stays where it is.'),
        HINT = COALESCE(NULLIF(hint, ''), 'Correct the cause, and repeat the call.');
END $$;
COMMENT ON FUNCTION instaid.restore_position IS 'let a sequence go on above an ID; freeze its '
'shard; a warning if that cannot be done';

-- Load can add 64 ms to the drift, and a crash a second.  _list_shards() has loaded what defines
-- the setting.
CREATE FUNCTION instaid._drift_limit() RETURNS double precision
    LANGUAGE sql STABLE PARALLEL RESTRICTED
    RETURN EXTRACT(epoch FROM pg_catalog.current_setting('instaid.max_drift')::interval
                              + '1064 ms')::double precision;

---- Monitoring ----

-- Any role can declare a shard, also with a sequence that it may not use, or with another
-- relation: this counts for nothing.  A shard that can issue IDs hides only those of its owner.
CREATE VIEW instaid.metrics_by_owner AS
    SELECT pg_catalog.pg_get_userbyid(s.owner) AS owner, s.shards, s.frozen_shards, s.unreadable,
           CASE WHEN s.age IS NOT NULL THEN GREATEST(-s.age, 0) END AS drift_seconds,
           CASE WHEN s.age < 0 THEN s.newest_shard END AS drift_shard, instaid._drift_limit() AS drift_limit_seconds,
           CASE WHEN s.age IS NOT NULL THEN GREATEST(s.age, 0) END AS last_id_seconds,
           EXTRACT(epoch FROM s.expires_at - pg_catalog.clock_timestamp())::double precision
               AS expiry_seconds, s.expiry_shard
    -- a frozen shard issues no IDs: neither their time nor their end matters
    FROM (SELECT h.owner, count(*) AS shards, count(*) FILTER (WHERE h.frozen) AS frozen_shards,
                 count(*) FILTER (WHERE NOT h.is_read) AS unreadable,
                 (array_agg(h.schema_name ORDER BY h.last_issued_at DESC NULLS LAST)
                  FILTER (WHERE NOT h.frozen))[1] AS newest_shard,
                 EXTRACT(epoch FROM pg_catalog.clock_timestamp()
                                    - max(h.last_issued_at) FILTER (WHERE NOT h.frozen))
                     ::double precision AS age,
                 min(h.expires_at) FILTER (WHERE NOT h.frozen) AS expires_at,
                 (array_agg(h.schema_name ORDER BY h.expires_at, h.schema_name)
                  FILTER (WHERE NOT h.frozen))[1] AS expiry_shard
          FROM (SELECT p.proowner AS owner, l.schema_name, l.frozen, o.is_read,
                       instaid.extract_timestamp(o.last, l.epoch) AS last_issued_at,
                       instaid.extract_timestamp(-9223372036854775808, l.epoch) AS expires_at
                FROM instaid._list_shards() AS l JOIN pg_proc AS p ON p.oid = l.declaration
                     JOIN pg_class AS c ON c.oid = l.sequence
                     -- tables can have sequences of their own
                     CROSS JOIN LATERAL (
                    SELECT bool_and(i.is_read) AS is_read, max(i.last) AS last
                    FROM instaid._shard_sequences(l.schema_name) AS q
                         CROSS JOIN LATERAL instaid._position(q, l.shard_id, l.epoch) AS i) AS o
                WHERE CASE c.relkind WHEN 'S'
                           -- null if it was dropped since the snapshot
                           THEN has_sequence_privilege(p.proowner, c.oid, 'USAGE, UPDATE')
                                IS NOT FALSE END) AS h
          GROUP BY h.owner) AS s;
COMMENT ON VIEW instaid.metrics_by_owner IS 'the shards of each role, for a monitoring system; as '
'metrics, it counts as unreadable what the role does not see';

CREATE VIEW instaid.metrics AS
    SELECT COALESCE(sum(o.shards), 0)::bigint AS shards,
           COALESCE(sum(o.frozen_shards), 0)::bigint AS frozen_shards,
           COALESCE(sum(o.unreadable), 0)::bigint AS unreadable,
           max(o.drift_seconds) AS drift_seconds,
           (array_agg(o.drift_shard ORDER BY o.drift_seconds DESC NULLS LAST))[1] AS drift_shard,
           instaid._drift_limit() AS drift_limit_seconds,
           min(o.last_id_seconds) AS last_id_seconds, min(o.expiry_seconds) AS expiry_seconds
    FROM instaid.metrics_by_owner AS o;
COMMENT ON VIEW instaid.metrics IS 'one row for a monitoring system; it leaves out what the role '
'does not see in the view shards, and counts it as unreadable';

---- Knowing before it breaks ----

---- What audit() looks at ----

-- A superuser may run audit() over everybody's objects.  Therefore:
--
-- - It runs nothing that a user wrote, waits for no lock, and does not fail.  What is parsed is
--   not deparsed: that can lock a table, and fails if it is nested deeply.  What is very long is
--   not read.  regclass and regprocedure are not used for names: they look at all other objects of
--   the name.
-- - A cure that is SQL runs nothing of another role, and names no function that another role can
--   replace.  Where PostgreSQL itself runs an owner's code with the caller's rights, such as a
--   CHECK during ALTER COLUMN TYPE, the cure is left to the owner.
-- - The planner knows neither how many shards there are nor what a CTE gives.  Joins by hash take
--   linear time whatever there is.

-- Column defaults, but those of temporary tables.  The planner omits a LEFT JOIN that is not used.
CREATE VIEW instaid._defaults AS
    SELECT d.oid, d.adrelid AS relid, d.adnum AS attnum, c.relnamespace AS schema,
           c.relowner AS owner, c.relkind, c.relispartition AS is_partition,
           d.adbin AS expression, format('%I.%I', n.nspname, c.relname) AS table_name,
           quote_ident(a.attname) AS column_name,
           format('%I.%I.%I', n.nspname, c.relname, a.attname) AS name
    FROM pg_attrdef AS d JOIN pg_class AS c ON c.oid = d.adrelid
         LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
         LEFT JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE c.relpersistence <> 't';

-- Copies of the published function.  A copy calls nextval(), reads a clock and shifts to the left.
CREATE VIEW instaid._copies AS
    -- The text of functions.  A string becomes a quote; a comment, and all between the first and
    -- the last dollar quotes, which often makes functions, a space.  What is open ends with the
    -- text.  Dollar quotes keep backslashes whatever standard_conforming_strings is.
    WITH source AS MATERIALIZED (
        SELECT p.oid, regexp_replace(p.prosrc, $re$(?x)
                   \mE(') (?:[^'\\]|\\.)* '? | (') [^']* '? | --[^\n\r]*
                   | /\*(?:[^*]|\*+[^*/])*(?:\*+/)? | \$\w*\$ .* \$\w*\$$re$,
                   $re$\1\2 $re$, 'gi') AS code
        FROM pg_proc AS p
        WHERE p.prolang = ANY (ARRAY(SELECT l.oid FROM pg_language AS l
                                     WHERE l.lanname IN ('sql', 'plpgsql')))
          AND CASE WHEN octet_length(p.prosrc) < 100000
                   THEN strpos(p.prosrc, 'instaid_sql._') = 0 AND p.prosrc ~* $re$\mnextval\M$re$
              END),
    -- What is parsed, and depends on a sequence.  pg_depend has no functions and operators of
    -- pg_catalog.
    parsed AS (
        SELECT t.classid, t.objid, t.tree
        FROM (SELECT 'pg_proc'::regclass::oid, p.oid, p.prosqlbody::text FROM pg_proc AS p
              UNION ALL
              SELECT 'pg_attrdef'::regclass::oid, a.oid, a.adbin::text FROM pg_attrdef AS a)
             AS t (classid, objid, tree)
        WHERE octet_length(t.tree) < 1000000 AND (t.classid, t.objid) IN (
            SELECT d.classid, d.objid
            FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.refobjid AND c.relkind = 'S'
            WHERE d.refclassid = 'pg_class'::regclass)),
    copy (classid, objid) AS MATERIALIZED (
        -- by 16 to 24 bits, by a variable or a sum, or multiplies by such a power of 2
        SELECT 'pg_proc'::regclass::oid, s.oid FROM source AS s
        WHERE s.code ~* $re$\m(?:nextval\s*\(|execute\M)$re$
          AND s.code ~* $re$(?x)\m(?:clock_timestamp | now | timeofday | localtimestamp
                            | current_timestamp | (?:statement|transaction)_timestamp)\M$re$
          AND s.code ~* $re$(?x)(?:[a-z_)\]"]|\d{9}|\*\s*1000) \s*<<[\s(]*
                            (?:1[6-9]\M | 2[0-4]\M | \d+\s*[-+*] | [a-z_]\w*\M(?!\s*>>))
                            | \*[\s(]*(?:8388608|4194304)\M | \^ | \mpow(?:er)?\s*\($re$
        UNION ALL
        SELECT p.classid, p.objid FROM parsed AS p
        WHERE p.tree ~ (SELECT string_agg(format(':funcid %s |', f.oid), '') || 'SQLVALUEFUNCTION '
                        FROM pg_proc AS f WHERE f.pronamespace = 'pg_catalog'::regnamespace
                          AND f.proname IN ('clock_timestamp', 'now', 'statement_timestamp',
                                            'timeofday', 'transaction_timestamp'))
          AND p.tree ~ (SELECT string_agg(format(':opno %s ', o.oid), '|') FROM pg_operator AS o
                        WHERE o.oprnamespace = 'pg_catalog'::regnamespace
                          AND o.oprname IN ('<<', '%', '^')))
    SELECT c.classid, c.objid, p.pronamespace AS schema,
           format('%I.%I(%s)', n.nspname, p.proname, oidvectortypes(p.proargtypes)) AS object
    FROM copy AS c JOIN pg_proc AS p ON p.oid = c.objid
         JOIN pg_namespace AS n ON n.oid = p.pronamespace
    -- neither the SQL edition, of which this can be another version, nor other extensions
    WHERE c.classid = 'pg_proc'::regclass
      AND n.nspname !~ '^(pg_|information_schema$|instaid(_sql|$))'
      AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = c.classid AND e.objid = c.objid
                                                   AND e.deptype = 'e')
    UNION ALL
    SELECT c.classid, c.objid, d.schema, d.name
    FROM copy AS c JOIN instaid._defaults AS d ON d.oid = c.objid
    WHERE c.classid = 'pg_attrdef'::regclass AND NOT d.is_partition;

-- The shards of this database.  has_sequence: any role may declare a shard with a sequence that it
-- has no rights on.  expires_at is the time of the first ID that would be negative.
CREATE VIEW instaid._audited_shards AS
    SELECT p.pronamespace AS schema, s.schema_name, quote_ident(s.schema_name) AS name,
           s.shard_id, s.epoch, s.frozen, p.proowner AS owner, s.sequence::oid AS sequence,
           pg_has_role(p.proowner, c.relowner, 'USAGE') AS has_sequence,
           instaid.extract_timestamp(-9223372036854775808, s.epoch) AS expires_at
    FROM instaid._list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration
         LEFT JOIN pg_class AS c ON c.oid = s.sequence;

-- Columns whose default is a next_id(), or a function that adopt_shard() has made to call it; its
-- schema (null for instaid.next_id() with a shard ID), the sequence that it passes, and who can
-- replace it
CREATE VIEW instaid._id_columns AS
    WITH maker (oid, next_id) AS (
        SELECT p.oid, p.oid FROM pg_proc AS p WHERE p.proname = 'next_id'
        UNION
        SELECT w.oid, p.oid
        FROM pg_proc AS p JOIN pg_depend AS d ON d.refclassid = 'pg_proc'::regclass
                                             AND d.refobjid = p.oid
                                             AND d.classid = 'pg_proc'::regclass
             JOIN pg_proc AS w ON w.oid = d.objid AND w.pronamespace = p.pronamespace
                              AND w.proowner = p.proowner AND w.prorettype = p.prorettype
        WHERE p.proname = 'next_id' AND w.proname !~ '^next_ids?$')
    SELECT d.*, CASE WHEN n.nspname <> 'instaid' OR p.pronargs = 0 THEN n.oid END AS maker,
           q.oid AS sequence, q.relnamespace AS sequence_schema,
           ARRAY[p.proowner, n.nspowner] AS makers
    FROM maker AS m JOIN pg_proc AS p ON p.oid = m.next_id
         JOIN pg_namespace AS n ON n.oid = p.pronamespace
         JOIN pg_depend AS f ON f.refclassid = 'pg_proc'::regclass AND f.refobjid = m.oid
                            AND f.classid = 'pg_attrdef'::regclass
         JOIN instaid._defaults AS d ON d.oid = f.objid
         LEFT JOIN (pg_depend AS u JOIN pg_class AS q ON q.oid = u.refobjid AND q.relkind = 'S'
                                                     AND q.relpersistence <> 't')
              ON u.classid = f.classid AND u.objid = d.oid AND u.refclassid = 'pg_class'::regclass;

-- The roles, other than these owners and superusers, with a privilege LIKE this; null if none.
CREATE FUNCTION instaid._others_with(privilege text, acl aclitem[],
                                                VARIADIC owners oid[]) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT string_agg(DISTINCT COALESCE(quote_ident(r.rolname), 'PUBLIC'), ', ')
            FROM aclexplode(acl) AS x LEFT JOIN pg_roles AS r ON r.oid = x.grantee
            WHERE x.privilege_type LIKE privilege AND x.grantee <> ALL (owners)
              AND r.rolsuper IS NOT TRUE);

-- The sequences of columns that default to instaid.next_id() with a shard ID
CREATE VIEW instaid._lone_sequences AS
    SELECT DISTINCT i.sequence, i.owner FROM instaid._id_columns AS i
    WHERE i.maker IS NULL AND i.sequence IS NOT NULL;

-- The sequences that next_id() moves: of shards and in defaults, if that role has their owner's
-- rights.
CREATE VIEW instaid._audited_sequences AS
    WITH shard AS MATERIALIZED (SELECT s.* FROM instaid._audited_shards AS s)
    SELECT u.sequence, format('%I.%I', n.nspname, c.relname) AS name, u.frozen,
           q.seqmax < instaid._max_tick() AS is_frozen, t.problem AS fault, t.cure,
           t.issued_at - clock_timestamp() AS ahead,
           -- metrics.drift_limit_seconds; _list_shards() has loaded what defines the setting
           current_setting('instaid.max_drift', true)::interval + interval '1064 ms'
           AS ahead_limit,
           -- in the last millisecond of its IDs, or at what is no tick any more
           u.expires_at > now() AND t.last_value > 0
           AND COALESCE(t.issued_at, 'infinity') >= u.expires_at - interval '1 ms' AS is_at_end
    FROM (SELECT m.sequence, max(m.expires_at) AS expires_at, bool_or(m.frozen) AS frozen
          FROM (SELECT s.sequence, s.owner, s.expires_at, s.frozen FROM shard AS s
                UNION ALL
                -- only if it belongs to the owner of the shard does freeze_shard() bound it
                SELECT i.sequence, i.owner, s.expires_at, s.frozen AND s.owner = i.owner
                FROM instaid._id_columns AS i JOIN shard AS s ON s.schema = i.maker
                UNION ALL
                SELECT l.sequence, l.owner, instaid.extract_timestamp(-9223372036854775808), false
                FROM instaid._lone_sequences AS l) AS m
               JOIN pg_class AS o ON o.oid = m.sequence AND o.relpersistence <> 't'
          WHERE pg_has_role(m.owner, o.relowner, 'USAGE') GROUP BY m.sequence) AS u
         JOIN pg_class AS c ON c.oid = u.sequence JOIN pg_namespace AS n ON n.oid = c.relnamespace
         JOIN pg_sequence AS q ON q.seqrelid = u.sequence
         CROSS JOIN LATERAL instaid._sequence_state(u.sequence) AS t;

-- Findings with C, and about the SQL edition
CREATE VIEW instaid._edition_findings (code, severity, object, problem, cure) AS
    SELECT o.code, 'error', f.signature, o.problem,
           CASE o.code WHEN 'shard_function_name' THEN 'Give it this name, or drop it.'
                WHEN 'shard_function_attributes'
                THEN format('ALTER FUNCTION %s VOLATILE STRICT PARALLEL UNSAFE;', f.signature)
                ELSE 'Let it be as instaid.create_shard() creates it;'
                     ' ALTER FUNCTION or a DROP has changed that.' END
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
         JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname = 'instaid'
         CROSS JOIN LATERAL instaid._function_fault(p.oid) AS o
         CROSS JOIN LATERAL format('%I.%I(%s)', n.nspname, p.proname,
                                   oidvectortypes(p.proargtypes)) AS f (signature)
    WHERE o.code IS NOT NULL
    UNION ALL
    -- It was dropped, with CASCADE also from defaults.  A renamed one is found above.
    SELECT 'no_next_id', 'error', s.name, 'has no function next_id()',
           format('Let its owner run: CREATE FUNCTION %s.next_id() RETURNS bigint LANGUAGE instaid'
                  ' STRICT COST 1 AS ''as next_ids(integer, regclass)''; -- Then set the'
                  ' defaults again.', s.name)
    FROM instaid._audited_shards AS s
    WHERE NOT EXISTS (SELECT FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
                      WHERE p.pronamespace = s.schema AND p.pronargs = 0
                        AND (p.proname = 'next_id'
                             OR l.lanname = 'instaid' AND p.proowner = s.owner))
    UNION ALL
    -- It is not frozen or watched, and its shard ID can be taken twice.
    SELECT 'sql_edition_shard', 'warning', quote_ident(n.nspname),
           'is a shard of the SQL edition, which instaid.shards does not show',
           'Move it with sql-edition/to_extension.sql of that edition.'
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.proname = 'next_ids' AND p.pronargs = 2 AND n.nspname !~ '^pg_'
      AND strpos(p.prosrc, 'instaid_sql._next_ids(') > 0
    UNION ALL
    -- pg_upgrade creates the members of an extension one by one: types first, and then casts.
    -- PostgreSQL notes no dependency of an expression on a cast.
    SELECT 'upgrade_order', 'warning', r.name,
           'pg_upgrade creates it before the casts of instaid.id, and fails if it needs one',
           format('INSERT INTO pg_catalog.pg_depend SELECT %L::pg_catalog.regclass,'
                  ' %L::pg_catalog.regtype, 0, %L::pg_catalog.regclass, oid, 0, ''n'' FROM'
                  ' pg_catalog.pg_cast WHERE %L::pg_catalog.regtype OPERATOR(pg_catalog.=) ANY'
                  ' (ARRAY[castsource, casttarget]);', 'pg_catalog.pg_type', r.name,
                  'pg_catalog.pg_cast', 'instaid.id')
    FROM (WITH RECURSIVE used_by (type, of_table) AS (
              SELECT 'instaid.id'::regtype::oid, false
              UNION
              SELECT t.oid, u.of_table OR COALESCE(c.relkind <> 'c', false)
              FROM used_by AS u
                   JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass
                        AND d.refobjid = u.type
                        AND d.classid IN ('pg_type'::regclass, 'pg_class'::regclass)
                   LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                   JOIN pg_type AS t ON t.oid = COALESCE(c.reltype, d.objid))
          SELECT u.type, bool_or(u.of_table) AS of_table FROM used_by AS u GROUP BY u.type) AS u
         JOIN pg_type AS t ON t.oid = u.type JOIN pg_namespace AS n ON n.oid = t.typnamespace
         LEFT JOIN pg_class AS c ON c.oid = t.typrelid
         CROSS JOIN LATERAL format('%I.%I', n.nspname, t.typname) AS r (name)
    WHERE n.nspname !~ '^pg_'
      -- a range needs an operator class, and a row type what columns have
      AND (t.typtype = 'r' OR u.of_table AND (t.typtype = 'd' OR c.relkind = 'c')
           OR t.typtype = 'd' AND (t.typdefaultbin IS NOT NULL OR EXISTS (
                  SELECT FROM pg_constraint AS k
                  WHERE k.contypid = t.oid AND k.contype = 'c' AND k.convalidated)))
      AND NOT EXISTS (SELECT FROM pg_depend AS d
                      WHERE d.classid = 'pg_type'::regclass AND d.objid = t.oid
                        AND d.refclassid = 'pg_cast'::regclass);

---- Findings of audit() ----

-- A finding is an error if IDs repeat, name a wrong shard, or are refused now; a warning if that
-- will happen, or if a guarantee is weaker.  A test finds codes by the severity beside them.  What
-- follows a statement in a cure is a comment, without names: a name can have lines.

-- Copies of the published function, shards, and roles that could plant functions
CREATE VIEW instaid._shard_findings (code, severity, object, problem, cure) AS
    WITH shard AS MATERIALIZED (SELECT s.* FROM instaid._audited_shards AS s)
    -- Two sessions can get the same nextval() and the same time.  A clock that is set back repeats
    -- IDs, too.
    SELECT 'copy', 'error', c.object, 'copy of the published function: its IDs repeat',
           CASE WHEN p.oid IS NULL
                THEN concat('Let the owner of the schema run: ',
                            CASE WHEN NOT c.is_shard
                                 THEN format('SELECT instaid.create_shard(%L, %s, sequence_name =>'
                                             ' ''shard_id_seq''); ', n.nspname, c.free) END,
                            format('SELECT * FROM instaid.adopt_column(%L, %L);', d.table_name,
                                   (parse_ident(d.column_name))[1]))
                WHEN p.proretset OR p.prorettype NOT IN ('bigint'::regtype, 'text'::regtype,
                                                         'varchar'::regtype)
                     -- a text that is no number, or an argument that could be a sequence
                     OR p.prorettype <> 'bigint'::regtype AND (p.prosrc ~* 'encode|to_hex'
                                                               OR p.pronargs > p.pronargdefaults)
                     OR p.proname = 'next_id' AND p.pronargs > p.pronargdefaults
                        AND p.proargtypes[0] IN ('bigint'::regtype, 'integer'::regtype,
                                                 'regclass'::regtype)
                THEN 'Write it anew, under another name if it is next_id(), so that it calls'
                     ' next_id() of a shard.'
                WHEN p.pronargs > p.pronargdefaults OR p.prorettype <> 'bigint'::regtype
                     OR c.is_shard
                THEN format('SELECT instaid.replace_copy(%L%s); If nothing calls it: DROP FUNCTION'
                            ' %1$s;', c.object, CASE WHEN NOT c.is_shard THEN ', ' || c.free END)
                WHEN p.proname = 'next_id' AND p.pronargs > 0
                THEN format('ALTER FUNCTION %s RENAME TO old_next_id; CALL instaid.adopt_shards();'
                            ' -- Defaults follow it.', c.object)
                WHEN NOT instaid._can_trust(p.proowner, n.nspowner)
                THEN format('Read its text, and give the function and its sequence to role %s.'
                            ' Then: CALL instaid.adopt_shards();', instaid._ruler(n.nspowner))
                WHEN f.proowner <> p.proowner
                THEN format('ALTER ROUTINE %I.next_id() RENAME TO old_next_id; CALL'
                            ' instaid.adopt_shards(); -- Defaults follow it.', n.nspname)
                ELSE 'CALL instaid.adopt_shards(); -- It says what to do with a copy that it'
                     ' leaves. If the function has %%, write % first.' END
    -- a number of its own for each schema
    FROM (SELECT c.*, instaid._free_shard_id(true) + 1 - dense_rank() OVER (ORDER BY c.schema)
                      AS free, c.schema IN (SELECT s.schema FROM shard AS s) AS is_shard
          FROM instaid._copies AS c) AS c
         JOIN pg_namespace AS n ON n.oid = c.schema
         LEFT JOIN pg_proc AS p ON c.classid = 'pg_proc'::regclass AND p.oid = c.objid
         LEFT JOIN pg_proc AS f ON f.oid = instaid._find_function(n.nspname, 'next_id', '')
         LEFT JOIN instaid._defaults AS d ON c.classid = 'pg_attrdef'::regclass AND d.oid = c.objid
    UNION ALL
    SELECT f.code, f.severity, s.name, f.problem, f.cure
    FROM (SELECT s.*, COALESCE(lag(s.name) OVER w, lead(s.name) OVER w) AS twin,
                 count(*) FILTER (WHERE NOT s.frozen) OVER i AS live,
                 min(s.epoch) OVER i < max(s.epoch) OVER i AS twin_has_other_epoch,
                 s.has_sequence AND min(s.epoch) OVER q < max(s.epoch) OVER q AS has_two_epochs
          FROM shard AS s
          WINDOW i AS (PARTITION BY s.shard_id), w AS (i ORDER BY s.name COLLATE "C"),
                 q AS (PARTITION BY s.sequence, s.has_sequence)) AS s
         LEFT JOIN pg_class AS c ON c.oid = s.sequence
         LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
         CROSS JOIN LATERAL (VALUES
        -- create_shard() refuses it; a restore, a rename, or a function by hand does not.  With
        -- two epochs, a new ID can be an ID of the past.
        ('shard_id_twice', 'error',
         s.twin IS NOT NULL AND (s.live > 1 OR s.live = 1 AND s.twin_has_other_epoch),
         format('shard ID %s is also that of schema %s', s.shard_id, s.twin),
         'Give one that is not frozen another shard ID, with instaid.renumber_shard() or, for'
         ' schema instaid, the setting instaid.node_shard_id.'),
        ('two_epochs', 'error', s.has_two_epochs,
         'its sequence serves a shard of another epoch, too: their IDs repeat',
         'Let its tables use a shard with a sequence of its own.'),
        -- pg_dump -n leaves it behind, or that role can set it back.  The node's belongs to
        -- pg_database_owner.
        ('foreign_sequence', 'warning',
         (n.oid, c.relowner) <> (s.schema, s.owner) AND s.name <> 'instaid',
         format('its sequence, %I.%I, is not in its schema, or not of its owner', n.nspname,
                c.relname), CASE WHEN c.relowner = s.owner AND n.oid NOT IN (
                                          SELECT o.schema FROM instaid._audited_shards AS o)
                -- the lock of the SQL edition is in the schema of the sequence
                THEN concat((SELECT format('CREATE VIEW %1$s.id_sequence_lock AS SELECT 1 AS lock;'
                                           ' ALTER VIEW %1$s.id_sequence_lock OWNER TO %2$I; ',
                                           s.name, pg_get_userbyid(s.owner))
                             FROM pg_class AS l WHERE l.relnamespace IN (n.oid, s.schema)
                               AND l.relname = 'id_sequence_lock' AND l.relkind = 'v'
                             HAVING bool_and(l.relnamespace = n.oid)),
                            format('ALTER SEQUENCE %I.%I SET SCHEMA %s;', n.nspname, c.relname,
                                   s.name))
                -- who owns its schema can drop it
                WHEN n.oid = s.schema AND n.nspowner = s.owner
                THEN format('If only this shard uses it: ALTER SEQUENCE %I.%I OWNER TO %I;',
                            n.nspname, c.relname, pg_get_userbyid(s.owner))
                ELSE 'Let its tables use a shard with a sequence of its own.' END),
        -- large tables need long to move to another shard
        ('shard_ends', CASE WHEN s.expires_at < now() THEN 'error' ELSE 'warning' END,
         NOT s.frozen AND s.expires_at < now() + interval '5 years',
         format('its IDs end at %s', s.expires_at),
         'Let its tables use another shard, with a later epoch. Then freeze this one.'))
        AS f (code, severity, applies, problem, cure) WHERE f.applies
    UNION ALL
    -- Calls by name, new defaults, and restored ones find it, or are ambiguous.
    SELECT 'planted_function', 'error',
           format('%s.%I(%s)', s.name, p.proname, oidvectortypes(p.proargtypes)),
           format('role %I has put it into the schema of a shard: calls of %s() can fail, or find'
                  ' it', o.rolname, p.proname),
           format('DROP ROUTINE %s.%I(%s); -- Also revoke CREATE on the schema.', s.name,
                  p.proname, oidvectortypes(p.proargtypes))
    FROM shard AS s JOIN pg_namespace AS n ON n.oid = s.schema
         JOIN pg_proc AS p ON p.pronamespace = s.schema AND p.proname IN ('next_id', 'next_ids')
         JOIN pg_roles AS o ON o.oid = p.proowner
    WHERE p.proowner NOT IN (s.owner, n.nspowner) AND NOT o.rolsuper
    UNION ALL
    SELECT 'schema_right', 'warning', quote_ident(n.nspname),
           format('role %s has CREATE on it, and could put functions there that others call',
                  r.names),
           format('REVOKE CREATE ON SCHEMA %I FROM %s CASCADE;', n.nspname, r.names)
    FROM pg_namespace AS n LEFT JOIN shard AS s ON s.schema = n.oid AND s.name <> 'instaid'
         CROSS JOIN LATERAL instaid._others_with('CREATE', n.nspacl, n.nspowner,
                                                 COALESCE(s.owner, n.nspowner)) AS r (names)
    WHERE r.names IS NOT NULL
      AND (s.schema IS NOT NULL OR n.nspname IN ('instaid', 'instaid_sql'));

-- Columns with IDs of another schema, or ticks, or that are too narrow for IDs, or not unique, or
-- without a partition for the IDs of now, or soon none
CREATE VIEW instaid._column_findings (code, severity, object, problem, cure) AS
    WITH RECURSIVE shard AS MATERIALIZED (SELECT s.* FROM instaid._audited_shards AS s),
    id_column AS MATERIALIZED (
        SELECT i.* FROM instaid._id_columns AS i
        WHERE i.maker IS NULL OR i.maker IN (SELECT s.schema FROM shard AS s)),
    -- columns that hold an ID, or refer to one
    holder (relid, attnum) AS (
        SELECT i.relid, i.attnum FROM id_column AS i
        UNION
        SELECT f.conrelid, k.attnum
        FROM holder AS h JOIN pg_constraint AS f ON f.confrelid = h.relid
             CROSS JOIN LATERAL unnest(f.conkey, f.confkey) AS k (attnum, refers_to)
        WHERE f.contype = 'f' AND f.conparentid = 0 AND k.refers_to = h.attnum),
    -- DROP SEQUENCE ... CASCADE drops a shard with the defaults of its columns, and leaves only
    -- their values, which ANALYZE has noted: IDs of a shard have all the same bits in the middle.
    -- These are the columns that can be such.
    bare AS MATERIALIZED (
        SELECT n.nspname AS schema_name, c.relname AS table_name, a.attname AS column_name
        FROM pg_index AS x JOIN pg_class AS c ON c.oid = x.indrelid
             JOIN pg_namespace AS n ON n.oid = c.relnamespace
             JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = x.indkey[0]
        WHERE x.indisunique AND x.indnkeyatts = 1 AND c.relkind IN ('r', 'p')
          AND c.relpersistence <> 't' AND NOT c.relispartition
          -- a name is looked up once, and not for each column
          AND a.atttypid IN ('bigint'::regtype,
                             (SELECT COALESCE(to_regtype('instaid.id'), 'bigint')))
          AND NOT a.atthasdef AND a.attidentity = '' AND n.nspname !~ '^pg_'
          AND NOT EXISTS (SELECT FROM shard AS s WHERE s.schema = n.oid)
          AND NOT EXISTS (SELECT FROM pg_constraint AS f WHERE f.conrelid = c.oid
                          AND f.contype = 'f' AND a.attnum = ANY (f.conkey))),
    -- Tables partitioned by range of their IDs.  takes_now is null if list_partitions() reads no
    -- bounds, as those of a domain.
    parted AS MATERIALIZED (
        SELECT i.name, i.relid, i.table_name, r.*,
               format('Create partitions from the end of the last one on, with'
                      ' instaid.create_partitions(%L, from_time, to_time, step, %L), or let its'
                      ' owner create a default one.', i.table_name, s.epoch) AS cure
        FROM id_column AS i JOIN shard AS s ON s.schema = i.maker
             JOIN pg_partitioned_table AS p ON p.partrelid = i.relid AND p.partattrs[0] = i.attnum
             CROSS JOIN LATERAL (
            SELECT bool_or((l.first_id <= n.id) IS NOT FALSE
                           AND (l.end_id > n.id) IS NOT FALSE) AS takes_now,
                   bool_or(l.end_id IS NULL) AS is_open, max(l.to_time) AS ends_at,
                   bool_and((l.end_id <= n.id) IS TRUE) FILTER (WHERE l.from_time IS NOT NULL)
                       AS have_ended,
                   -- numeric, because a bound can be any bigint
                   (array_agg(l.end_id::numeric - l.first_id ORDER BY l.end_id DESC))[1]
                       > max(l.end_id)::numeric - min(n.id) AS is_short
            FROM instaid.min_id(now(), s.epoch) AS n (id)
                 CROSS JOIN LATERAL instaid.list_partitions(i.relid, s.epoch) AS l) AS r
        WHERE NOT s.frozen AND NOT i.is_partition AND p.partstrat = 'r' AND p.partnatts = 1)
    -- CREATE TABLE ... (LIKE template INCLUDING ALL) keeps the template's shard and its CHECK.
    -- Tables of a frozen shard can use another one, for example with a later epoch.
    SELECT 'foreign_default', 'error', i.name,
           concat(format('its default uses the shard in schema %I', n.nspname),
                  '; CHECK ' || k.names || ' reads the shard ID and can refuse another'),
           concat(CASE WHEN k.names IS NOT NULL
                       THEN 'First let the owner of the table drop that CHECK, or let it admit'
                            ' this shard. Then: ' END,
                  format('SELECT * FROM instaid.adopt_column(%L, %L); -- It refuses what others'
                         ' could replace.', i.table_name, (parse_ident(i.column_name))[1]))
    FROM id_column AS i JOIN shard AS s ON s.schema = i.schema AND NOT s.frozen
         JOIN shard AS o ON o.schema = CASE WHEN i.maker <> i.schema THEN i.maker
                                            ELSE i.sequence_schema END
         JOIN pg_namespace AS n ON n.oid = o.schema
         CROSS JOIN LATERAL (
        SELECT string_agg(quote_ident(k.conname), ', ' ORDER BY k.conname)
        FROM pg_constraint AS k JOIN pg_depend AS d ON d.objid = k.oid
        WHERE k.conrelid = i.relid AND k.contype = 'c' AND i.attnum = ANY (k.conkey)
          AND d.classid = 'pg_constraint'::regclass AND d.refclassid = 'pg_proc'::regclass
          AND d.refobjid = 'instaid.extract_shard_id(bigint)'::regprocedure) AS k (names)
    WHERE o.schema <> i.schema AND NOT i.is_partition
    UNION ALL
    SELECT 'ticks', 'error', d.name,
           'its default takes values of a shard''s sequence, which are not IDs',
           format('SELECT * FROM instaid.adopt_column(%L, %L); -- It refuses what others'
                  ' could replace.', d.table_name, (parse_ident(d.column_name))[1])
    FROM shard AS s JOIN pg_depend AS p ON p.refclassid = 'pg_class'::regclass
                                       AND p.refobjid = s.sequence
                                       AND p.classid = 'pg_attrdef'::regclass
         JOIN instaid._defaults AS d ON d.oid = p.objid
    WHERE s.has_sequence AND NOT d.is_partition AND NOT EXISTS (
        SELECT FROM pg_depend AS f WHERE f.classid = p.classid AND f.objid = p.objid
                                     AND f.refclassid = 'pg_proc'::regclass)
    UNION ALL
    -- Its code runs with the rights of all who insert.
    SELECT 'foreign_function', 'warning', i.name,
           format('role %s could replace the function of its default', r.names),
           'Unless all who insert trust this role, let the column use a shard of the table''s'
           ' owner, or of a superuser.'
    FROM id_column AS i CROSS JOIN LATERAL (
        SELECT string_agg(DISTINCT quote_ident(pg_get_userbyid(u.owner)), ', ')
        FROM unnest(i.makers) AS u (owner)
        WHERE u.owner <> i.owner AND NOT instaid._can_trust(i.owner, u.owner)) AS r (names)
    WHERE r.names IS NOT NULL AND NOT i.is_partition
    UNION ALL
    SELECT 'narrow_column', 'error', format('%I.%I.%I', n.nspname, c.relname, a.attname),
           format('its type, %s, cannot hold IDs', format_type(t.oid, NULL)),
           'Let its owner make it bigint: with instaid.adopt_column() on the column that takes the'
           ' IDs, which also widens references, or, if no table of another role refers to it or'
           ' inherits it, with ALTER TABLE. Both rewrite the table.'
    FROM holder AS h JOIN pg_attribute AS a ON a.attrelid = h.relid AND a.attnum = h.attnum
         JOIN pg_type AS t ON t.oid = a.atttypid JOIN pg_class AS c ON c.oid = a.attrelid
         JOIN pg_namespace AS n ON n.oid = c.relnamespace
    -- a domain has the output function of its base type
    WHERE t.typoutput IN ('int2out'::regproc, 'int4out'::regproc, 'float4out'::regproc,
                          'float8out'::regproc)
      AND c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't' AND a.attinhcount = 0
    UNION ALL
    -- Only an index refuses an ID that was inserted by hand, or came twice in a restore.
    SELECT 'no_unique_index', 'warning', i.name, 'no unique index on the ID alone',
           'Create one. If the table is partitioned, its ID must be the partition key.'
    FROM id_column AS i
    WHERE i.relkind IN ('r', 'p') AND NOT i.is_partition AND NOT EXISTS (
        SELECT FROM pg_index AS x WHERE x.indrelid = i.relid AND x.indisunique AND x.indisvalid
        AND x.indnkeyatts = 1 AND x.indkey[0] = i.attnum AND x.indpred IS NULL)
    UNION ALL
    SELECT 'lost_default', 'warning', quote_ident(b.schema_name),
           format('has IDs of shard %s, which this database does not have, in columns without'
                  ' default: %s', v.shard_id,
                  string_agg(DISTINCT format('%I.%I', b.table_name, b.column_name), ', ')),
           format('If their shard was dropped, let the owner of the schema run: SELECT'
                  ' instaid.create_shard(%L, %s); %s -- Pass the epoch that it had, if it is not'
                  ' the default.', b.schema_name, v.shard_id,
                  string_agg(DISTINCT format('SELECT * FROM instaid.adopt_column(%L, %L);',
                                             format('%I.%I', b.schema_name, b.table_name),
                                             b.column_name), ' '))
    FROM bare AS b JOIN pg_stats AS p ON p.schemaname = b.schema_name
                       AND p.tablename = b.table_name AND p.attname = b.column_name
         CROSS JOIN LATERAL (
        SELECT instaid.extract_shard_id(min(h.id))
        -- read for these columns only: others have other types
        FROM unnest(CASE WHEN b.column_name IS NOT NULL
                         THEN p.histogram_bounds::text::bigint[] END) AS h (id)
        HAVING count(*) >= 10 AND min(h.id) >= 1::bigint << 40
           AND count(DISTINCT instaid.extract_shard_id(h.id)) = 1) AS v (shard_id)
    WHERE NOT EXISTS (SELECT FROM shard AS s WHERE s.shard_id = v.shard_id)
    GROUP BY b.schema_name, v.shard_id
    UNION ALL
    -- A foreign key follows its table when this is renamed and becomes a partition of another.
    SELECT 'partition_reference', 'warning', format('%I.%I.%I', n.nspname, c.relname, f.conname),
           format('its foreign key refers to %I.%I alone, a partition of %s: it refuses the IDs of'
                  ' other partitions', o.nspname, t.relname, p.table_name),
           format('Let its owner drop it, and add it again with REFERENCES %s.', p.table_name)
    FROM parted AS p JOIN pg_inherits AS h ON h.inhparent = p.relid
         JOIN pg_constraint AS f ON f.confrelid = h.inhrelid AND f.contype = 'f'
                                AND f.conparentid = 0
         JOIN pg_class AS c ON c.oid = f.conrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
         JOIN pg_class AS t ON t.oid = h.inhrelid JOIN pg_namespace AS o ON o.oid = t.relnamespace
    UNION ALL
    SELECT f.code, f.severity, p.name, f.problem, f.cure
    FROM parted AS p CROSS JOIN LATERAL (VALUES
        ('no_partition', 'error', COALESCE(NOT p.takes_now, NOT EXISTS (
             SELECT FROM pg_inherits AS h WHERE h.inhparent = p.relid)),
         'no partition takes the IDs of now: INSERT fails', p.cure),
        ('last_partition', 'warning', p.takes_now AND p.is_short AND NOT p.is_open,
         format('its last partition ends at %s, within its own length', p.ends_at), p.cure),
        -- only when the others have ended: it keeps new ones from being created
        ('default_partition', 'warning', p.takes_now AND p.have_ended,
         format('its partitions ended at %s: rows go to the default partition', p.ends_at),
         'Let its owner detach the default partition, create others, and insert its rows into'
         ' the table.'))
        AS f (code, severity, applies, problem, cure) WHERE f.applies;

-- Sequences that next_id() moves
CREATE VIEW instaid._sequence_findings (code, severity, object, problem, cure) AS
    SELECT f.code, f.severity, q.name, f.problem, f.cure
    FROM instaid._audited_sequences AS q JOIN pg_class AS c ON c.oid = q.sequence
         CROSS JOIN LATERAL instaid._others_with('UPDATE', c.relacl, c.relowner) AS r (names)
         CROSS JOIN LATERAL (VALUES
        ('cannot_serve', 'error', q.fault IS NOT NULL,
         'cannot serve as a source of IDs. ' || q.fault, q.cure),
        -- It can be newer than the freeze, or a restore of a table alone.
        ('half_frozen', CASE WHEN q.frozen THEN 'warning' ELSE 'error' END,
         q.fault IS NULL AND q.frozen <> q.is_frozen,
         CASE WHEN q.frozen THEN 'is not frozen, but its shard is: nextval() still moves it'
              ELSE 'is frozen by a MAXVALUE, but its shard is not: next_id() fails' END,
         'Use instaid.freeze_shard() or instaid.thaw_shard() on the shard.'),
        ('end_of_ids', 'error', q.fault IS NULL AND q.is_at_end AND NOT q.is_frozen,
         'has reached the last ID: next_id() fails',
         format('If it was set too far by mistake: ALTER SEQUENCE %s RESTART;', q.name)),
        ('unlogged', 'warning', c.relpersistence = 'u',
         'is unlogged: it forgets its IDs in a crash',
         format('ALTER SEQUENCE %s SET LOGGED;', q.name)),
        -- The clock was set back.
        ('ahead_of_clock', 'warning', q.ahead > q.ahead_limit AND NOT q.is_at_end,
         format('its IDs are %s ahead of the clock, by more than %s', q.ahead, q.ahead_limit),
         'Set the server''s clock right, and wait until it has passed the time of these IDs. If'
         ' that takes too long, let the owner of the tables RESTART the sequence and give new IDs'
         ' to rows of the future, in one transaction.'),
        ('sequence_right', 'warning', r.names IS NOT NULL,
         format('role %s has UPDATE on it, and could set it back, so that IDs repeat', r.names),
         format('REVOKE UPDATE ON SEQUENCE %s FROM %s CASCADE;', q.name, r.names)))
        AS f (code, severity, applies, problem, cure) WHERE f.applies;

CREATE FUNCTION instaid.audit(OUT code text, OUT severity text, OUT object text,
                                         OUT problem text, OUT cure text) RETURNS SETOF record
    LANGUAGE sql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET enable_nestloop = off SET jit = off
BEGIN ATOMIC
    -- one row for what more than 20 objects have in common
    SELECT f.code, f.severity, CASE WHEN f.count > 20
               THEN format('%s and %s others', f.object, f.count - 1) ELSE f.object END,
           f.problem, f.cure
    FROM (SELECT f.*, count(*) OVER w, row_number() OVER (w ORDER BY f.object COLLATE "C") AS place
          FROM (TABLE instaid._shard_findings UNION TABLE instaid._column_findings
                UNION TABLE instaid._sequence_findings
                UNION TABLE instaid._edition_findings) AS f
          WINDOW w AS (PARTITION BY f.code, f.severity, f.problem, f.cure)) AS f
    WHERE f.count <= 20 OR f.place = 1
    ORDER BY f.severity COLLATE "C", f.object COLLATE "C", f.code COLLATE "C";
END;
COMMENT ON FUNCTION instaid.audit() IS 'what makes IDs repeat or fail, or will do so';

---- What adopting and renumbering replace ----

-- Replace a next_id() that is adopted, which keeps OID, owner, rights and the name of its result.
-- Calls that have ended can have rounded up to a millisecond ahead of the clock.
CREATE FUNCTION instaid._replace_next_id(schema_name text, shard_id integer, epoch timestamptz,
                                         adopted oid, sequence regclass, above bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._alter_sequence(c.relowner, sequence,
                                    'AS bigint INCREMENT BY 1 NO MAXVALUE NO CYCLE')
    FROM pg_class AS c WHERE c.oid = sequence;
    PERFORM instaid.advance_past(sequence, GREATEST(above, instaid.max_id(
        clock_timestamp() + interval '1 ms', epoch)), epoch);
    PERFORM instaid._execute_as(p.proowner, instaid._declaration_commands(
        schema_name, shard_id, epoch, sequence::text, true, pg_get_function_arguments(p.oid),
        CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' ELSE '' END))
    FROM pg_proc AS p WHERE p.oid = adopted;
    IF NOT FOUND THEN
        RAISE undefined_function USING
            MESSAGE = format('function %I.next_id() was dropped meanwhile', schema_name),
            HINT = 'Call adopt_shard() again.';
    END IF;
END $$;

-- Write another shard ID into a declaration.  To freeze waits for all calls; to thaw leaves the
-- millisecond, in which IDs of a smaller shard ID would be below those that were issued.  A shard
-- that was frozen leaves it, too, so that settled_id() does not go back.
CREATE FUNCTION instaid._change_shard_id(declaration oid, sequence regclass, shard_id integer)
    RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard record;
BEGIN
    PERFORM instaid._sequence_owner(declaration, sequence);
    -- nobody else freezes or thaws it
    PERFORM instaid._lock_sequence(sequence);
    SELECT s.* INTO shard FROM instaid._list_shards() AS s WHERE s.declaration = $1;
    PERFORM instaid._set_frozen(shard.schema_name, true);
    PERFORM instaid._execute_as(p.proowner, regexp_replace(
        pg_get_functiondef(p.oid), E'(.*shard )\\d+', E'\\1' || shard_id))
    FROM pg_proc AS p WHERE p.oid = declaration;
    -- by its name, which can have become that of another function
    IF NOT EXISTS (SELECT FROM instaid._list_shards() AS s
                   WHERE s.declaration = $1 AND s.shard_id = $3) THEN
        RAISE serialization_failure USING
            MESSAGE = 'the shard was renamed or replaced meanwhile', HINT = 'Try again.';
    END IF;
    PERFORM instaid._set_frozen(shard.schema_name, false);
    PERFORM instaid._set_frozen(shard.schema_name, true) WHERE shard.frozen;
END $$;

-- What a role, or PUBLIC as 0, must be granted to take IDs of a shard.
CREATE FUNCTION instaid._missing_rights(role oid, schema_name text, sequence regclass)
    RETURNS SETOF text LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
BEGIN ATOMIC
    SELECT g.what FROM pg_proc AS p
         -- a declaration can name a sequence that its owner has no rights on
         JOIN pg_class AS q ON q.oid = sequence AND pg_has_role(p.proowner, q.relowner, 'USAGE')
         CROSS JOIN LATERAL (VALUES
             (format('USAGE ON SEQUENCE %s', sequence),
              p.prosecdef OR has_sequence_privilege(role, sequence, 'USAGE, UPDATE')),
             (format('EXECUTE ON FUNCTION %I.next_id()', schema_name),
              has_function_privilege(role, p.oid, 'EXECUTE'))) AS g (what, is_granted)
    WHERE p.oid = instaid._find_function(schema_name, 'next_id', '') AND NOT g.is_granted;
END;

---- Reading a copy ----

-- The owner of a sequence of a shard; refuse if the owner of a function of the shard, which can
-- name any sequence, or the caller does not have the rights of that role.  Refuse a MINVALUE above
-- 1, too: Citus gives such a range to each worker's copy, which would issue values of another.
CREATE FUNCTION instaid._sequence_owner(function oid, sequence regclass) RETURNS regrole
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    main record;
BEGIN
    SELECT p.proname, p.proowner, n.nspname, c.relowner, q.seqmin, q.seqmax INTO main
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace,
         pg_class AS c JOIN pg_sequence AS q ON q.seqrelid = c.oid
    WHERE p.oid = function AND c.oid = sequence AND c.relpersistence <> 't';
    IF NOT FOUND THEN
        RAISE wrong_object_type USING
            MESSAGE = format('%s cannot be the sequence of a shard', sequence),
            DETAIL = 'It is not a sequence, or temporary, or it or the function was just dropped.';
    ELSIF pg_has_role(main.proowner, main.relowner, 'USAGE') IS NOT TRUE THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('sequence %s does not belong to the owner of shard %I',
                             sequence, main.nspname),
            DETAIL = format('Role %I owns it, and role %I owns the function %s().',
                            pg_get_userbyid(main.relowner), pg_get_userbyid(main.proowner),
                            main.proname), HINT = 'Give both to one owner.';
    END IF;
    PERFORM instaid._check_owner(main.relowner, 'sequence', sequence::text);
    IF main.seqmin > 1 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence %s cannot serve as a source of IDs', sequence),
            DETAIL = format('It has a range of its own, %s to %s.', main.seqmin, main.seqmax),
            HINT = 'If Citus created this copy for a worker, use the shard on the coordinator.'
                   || CASE main.proname WHEN 'next_ids' THEN '' ELSE ' If another shard has it: '
                           || instaid._replacing(function) END;
    END IF;
    RETURN main.relowner;
END $$;

-- Let a function that is about to be called find what its text names without a schema: in its own
-- search_path or its owner's, in its schema and in public.  Whoever can create functions and
-- operators there, or has done so, could have the caller run them: nextval(text) and
-- %(bigint, integer) are better matches than PostgreSQL's own.  So the function gets no
-- search_path: the names of its owner's and of superusers' objects are written out in its text.
CREATE FUNCTION instaid._qualify_names(function oid) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    main record;
    definition text;
    path text[];
    part record;
BEGIN
    SELECT p.proowner::regrole AS owner, n.nspname, (
               SELECT c FROM unnest(p.proconfig) AS c WHERE c LIKE 'search_path=%') AS own_path, (
               SELECT c FROM pg_db_role_setting AS s CROSS JOIN LATERAL unnest(s.setconfig) AS c
               WHERE s.setrole IN (p.proowner, 0) AND c LIKE 'search_path=%' AND s.setdatabase IN (
                   0, (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()))
               ORDER BY s.setrole = 0, s.setdatabase = 0 LIMIT 1) AS role_path INTO main
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE p.oid = function;
    path := ARRAY(SELECT replace(COALESCE(m.name[1], lower(m.name[2])), '""', '"')
                  FROM regexp_matches(substr(COALESCE(main.own_path, main.role_path), 13),
                                      '"((?:[^"]|"")+)"|([^\s,"]+)', 'g')
                       WITH ORDINALITY AS m (name, place)
                  ORDER BY m.place) || ARRAY[main.nspname, pg_get_userbyid(main.owner), 'public'];
    PERFORM instaid._execute_as(main.owner, format('ALTER FUNCTION %s RESET search_path',
                                                   instaid._signature(function)))
    WHERE main.own_path IS NOT NULL;
    definition := pg_get_functiondef(function);
    FOR part IN
        SELECT DISTINCT ON (o.is_function, o.relname)
               replace(format('%I.%I', n.nspname, o.relname), '\', '\\') AS name, o.relkind,
               regexp_replace(quote_ident(o.relname), '(\W)', '\\\1', 'g') AS pattern,
               CASE WHEN quote_ident(o.relname) LIKE '"%' THEN 'g' ELSE 'gi' END AS flags
        FROM (SELECT false, c.relname, c.relnamespace, c.relowner, c.relkind
              FROM pg_class AS c
              WHERE c.relkind IN ('S', 'r', 'p', 'v') AND c.relpersistence <> 't'
              UNION ALL
              SELECT true, p.proname, p.pronamespace, p.proowner, 'f' FROM pg_proc AS p)
              AS o (is_function, relname, relnamespace, relowner, relkind)
             JOIN pg_namespace AS n ON n.oid = o.relnamespace AND n.nspname = ANY (path)
             JOIN pg_roles AS r ON r.oid = o.relowner
        WHERE strpos(lower(definition), lower(o.relname)) > 0 AND n.nspname <> 'pg_catalog'
          -- a name must not end the dollar quotes
          AND (r.rolsuper OR r.oid = main.owner) AND strpos(n.nspname || o.relname, '$') = 0
        ORDER BY o.is_function, o.relname, array_position(path, n.nspname::text)
    LOOP
        definition := CASE part.relkind
            WHEN 'S' THEN regexp_replace(definition, format('''\s*%s\s*''', part.pattern),
                                         quote_literal(replace(part.name, '\\', '\')), part.flags)
            WHEN 'f' THEN regexp_replace(definition, format('(?<![\w$."])%s(?=\s*\()',
                                                            part.pattern), part.name, part.flags)
            ELSE regexp_replace(definition, format('(\m(?:FROM|JOIN|INSERT\s+INTO|UPDATE)\s+)'
                                                   '%s(?![\w$.])', part.pattern),
                                '\1' || part.name,
                                part.flags || 'i') END;
    END LOOP;
    PERFORM instaid._execute_as(main.owner, definition)
    WHERE definition <> pg_get_functiondef(function);
END $$;

-- The sequences that this transaction has taken values of.
CREATE FUNCTION instaid._used_sequences() RETURNS oid[]
    LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT COALESCE(array_agg(c.oid), '{}')
            FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation AND c.relkind = 'S'
                 JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database()
            WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation'
              AND l.mode = 'RowExclusiveLock');

-- The last value that this session has taken of a sequence; null if there is none.
CREATE FUNCTION instaid._session_value(role regrole, sequence oid) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN instaid._execute_as(role, format('SELECT currval(%L)', sequence))::bigint;
EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege THEN
    RETURN NULL;
END $$;

-- Call a copy as its owner, with the values of its default arguments: no function that another
-- role puts beside it is found in its place.
CREATE FUNCTION instaid._call_copy(function oid, OUT result text)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner regrole;
    needs_names boolean;
    query text;
BEGIN
    SELECT p.proowner, EXISTS (SELECT FROM unnest(p.proconfig) AS c WHERE c LIKE 'search_path=%')
    INTO owner, needs_names FROM pg_proc AS p WHERE p.oid = function;
    LOOP
        BEGIN
            PERFORM instaid._qualify_names(function) WHERE needs_names;
            -- in which a default can be the name of a sequence
            SELECT format('SELECT %I.%I(%s)', n.nspname, p.proname, (
                       SELECT string_agg(format('(%s)::%s', pg_get_function_arg_default(
                                  p.oid, a.place::integer), format_type(a.type, NULL)), ', '
                                  ORDER BY a.place)
                       FROM unnest(COALESCE(p.proallargtypes, p.proargtypes::oid[]),
                                   p.proargmodes) WITH ORDINALITY AS a (type, mode, place)
                       WHERE COALESCE(a.mode, 'i') IN ('i', 'b'))) INTO query
            FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
            WHERE p.oid = function;
            result := instaid._execute_as(owner, query);
            RETURN;
        EXCEPTION WHEN undefined_table OR undefined_function OR undefined_object
                       OR invalid_schema_name THEN
            IF needs_names THEN
                RAISE invalid_parameter_value USING
                    MESSAGE = format('%s names what is not found: %s',
                                     instaid._signature(function), SQLERRM),
                    DETAIL = 'Names without a schema are looked for in its own search_path or its'
                             ' owner''s, its schema and public, among objects of its owner and of'
                             ' superusers.',
                    HINT = 'Correct its text, or write the schemas into it, and try again. To let'
                           ' it return IDs of a new shard: ' || instaid._replacing(function);
            END IF;
            needs_names := true;
        END;
    END LOOP;
END $$;

-- Call a copy: two IDs, two more with other values of its sequence, and the sequence.  It is the
-- one that the first call locked and the second moved, whatever names it, or else one that was in
-- use before.  nextval() keeps its lock until the transaction ends.
CREATE FUNCTION instaid._try_copy(function oid, OUT ids bigint[], OUT sequence regclass,
                                             OUT made_at timestamptz)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET timezone = 'UTC' AS $$
DECLARE
    owner CONSTANT regrole := (SELECT p.proowner FROM pg_proc AS p WHERE p.oid = function);
    used oid[] := instaid._used_sequences();
    first bigint[];
    part record;
BEGIN
    -- its text can mean the time zone of its callers
    PERFORM set_config('timezone', s.reset_val, true) FROM pg_settings AS s
    WHERE s.name = 'TimeZone';
    ids[1] := instaid._call_copy(function)::bigint;
    made_at := clock_timestamp();
    used := COALESCE((SELECT array_agg(s) FROM unnest(instaid._used_sequences()) AS s
                      WHERE s <> ALL (used)), used);
    first := ARRAY(SELECT instaid._session_value(owner, s) FROM unnest(used) AS s);
    ids[2] := instaid._call_copy(function)::bigint;
    -- if it also has a log with numbers of its own, the one whose low bits are in the IDs, and
    -- that counts for no column
    SELECT u.sequence, c.relowner::regrole AS relowner INTO part
    FROM unnest(used, first) AS u (sequence, first) JOIN pg_class AS c ON c.oid = u.sequence
         CROSS JOIN LATERAL instaid._session_value(owner, u.sequence) AS l (last)
    WHERE l.last <> u.first
    ORDER BY ((instaid.decode(u.first)).sequence, (instaid.decode(l.last)).sequence)
             = ((instaid.decode(ids[1])).sequence, (instaid.decode(ids[2])).sequence) DESC,
             EXISTS (
        SELECT FROM pg_depend AS d
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = u.sequence
          AND d.classid = 'pg_attrdef'::regclass) LIMIT 1;
    sequence := part.sequence;
    IF sequence IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('%s takes no value of a sequence', instaid._signature(function)),
            DETAIL = format('Two calls returned %s and %s.', COALESCE(ids[1]::text, 'null'),
                            COALESCE(ids[2]::text, 'null')),
            HINT = 'Let its columns default to a new shard: create_shard(), adopt_column().';
    END IF;
    PERFORM instaid._sequence_owner(function, sequence);
    -- a superuser has the rights of all roles
    IF part.relowner <> owner AND (SELECT r.rolsuper FROM pg_roles AS r WHERE r.oid = owner) THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('sequence %s belongs to another role', sequence),
            DETAIL = format('Role %s could set it back, and a superuser owns the function %s.',
                            part.relowner, instaid._signature(function)),
            HINT = 'Give both to one owner.';
    END IF;
    -- What is above the low bits of the sequence must not run into the shard ID.  Two calls in a
    -- row, and some rows, do not show it; values whose bits of the shard ID are all 0 or 1 do.
    BEGIN
        -- Citus refuses to alter a sequence that it knows
        PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
        FOR n IN 0 .. 1 LOOP
            PERFORM instaid._execute_as(part.relowner, format(
                'ALTER SEQUENCE %s RESTART %s', sequence, GREATEST(q.seqmin, LEAST(q.seqmax,
                    instaid.make_id(instaid.default_epoch() + interval '2 ms',
                                    n * instaid._max_shard_id(), 0)))))
            FROM pg_sequence AS q WHERE q.seqrelid = sequence;
            ids := ids || instaid._call_copy(function)::bigint;
        END LOOP;
        RAISE SQLSTATE 'ID001';
    EXCEPTION WHEN SQLSTATE 'ID001' THEN
        IF cardinality(ids) < 4 THEN
            RAISE;
        END IF;
    END;
END $$;

-- The statement that lets a copy return IDs of a new shard.
CREATE FUNCTION instaid._replacing(function oid) RETURNS text
    LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    RETURN format('SELECT instaid.replace_copy(%L, %s);', instaid._signature(function),
                  instaid._free_shard_id(true));

-- The shard ID of an ID that a copy has just made, and its epoch: the one that is passed, one of
-- the function's text, or the default one, if it gives the ID the clock's time.
CREATE FUNCTION instaid._read_layout(function oid, id bigint, made_at timestamptz,
                                                INOUT epoch timestamptz, OUT shard_id integer)
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' SET standard_conforming_strings = on AS $$
DECLARE
    zone CONSTANT text := (SELECT s.reset_val FROM pg_settings AS s WHERE s.name = 'TimeZone');
    source CONSTANT text := pg_get_functiondef(function);
    name CONSTANT text := instaid._signature(function);
    epochs timestamptz[] := ARRAY(
        SELECT to_timestamp((m.literal[1]::numeric / u.unit)::double precision)
        FROM regexp_matches(source, '\m(\d{13}|\d{10}(?:\.\d+)?)\M', 'g') AS m (literal)
             CROSS JOIN (VALUES (1), (1000)) AS u (unit)
        WHERE m.literal[1] !~ '^\d{13}$' OR u.unit = 1000);
    literal text;
    layout record;
    seen timestamptz;
BEGIN
    IF id IS NULL OR id < 0 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('%s returns %s', name, COALESCE('IDs below 0', 'null')),
            DETAIL = format('It returned %s.' || CASE WHEN id < 0 THEN
                                ' The 34.8 years of its epoch are over, or its clock and its epoch'
                                ' have different units.' ELSE '' END, COALESCE(id::text, 'null')),
            HINT = 'To let it return IDs of a new shard: ' || instaid._replacing(function);
    END IF;
    FOR literal IN SELECT m[1] FROM regexp_matches(source, '''(\d{4}-\d\d?-\d\d?[^'']{0,30})''',
                                                   'g') AS m
    LOOP
        BEGIN
            -- a timestamp, or a timestamptz in the time zone of its callers
            epochs := epochs || literal::timestamptz || (literal::timestamp AT TIME ZONE zone);
        EXCEPTION WHEN data_exception THEN
            CONTINUE;
        END;
    END LOOP;
    -- the time of the ID, read in this layout or another one
    SELECT l.* INTO layout
    FROM (SELECT e, interval '1 s' FROM unnest(epochs) AS e
          UNION ALL SELECT to_timestamp(0), interval '1 s'
          UNION ALL SELECT instaid.default_epoch(), interval '20 ms') AS e (epoch, tolerance)
         CROSS JOIN generate_series(16, 32) AS bits
         CROSS JOIN unnest('{0.001,1}'::numeric[]) AS unit
         CROSS JOIN LATERAL (
        SELECT e.epoch, bits, unit, CASE WHEN (id >> bits) * unit < 5000000000
               THEN e.epoch + (id >> bits) * unit * interval '1 s' END AS issued_at) AS l
    -- a function can use now(), which is the time when the transaction began
    WHERE l.issued_at BETWEEN now() - e.tolerance AND made_at + e.tolerance
    ORDER BY LEAST(abs(extract(epoch FROM l.issued_at - made_at)),
                   abs(extract(epoch FROM l.issued_at - now()))) LIMIT 1;
    IF (layout.bits, layout.unit) <> (23, 0.001) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('IDs of %s have another layout', name),
            DETAIL = format('It returned %s: the time since %s in %s, and %s bits. Instagram''s'
                            ' has milliseconds, and 23 bits.', id, layout.epoch,
                            CASE layout.unit WHEN 1 THEN 'seconds' ELSE 'milliseconds' END,
                            layout.bits),
            HINT = 'To let it return IDs of a new shard: ' || instaid._replacing(function);
    END IF;
    seen := date_trunc('milliseconds', made_at) - (id >> 23) * interval '1 ms';
    IF epoch <> COALESCE(layout.epoch, CASE WHEN abs(extract(epoch FROM epoch - seen)) < 1
                                            THEN epoch END, 'infinity')
       OR COALESCE(epoch, layout.epoch) IS NULL THEN
        IF extract(milliseconds FROM seen)::integer % 1000 < 20 THEN
            seen := date_trunc('seconds', seen);
        END IF;
        seen := COALESCE(layout.epoch, seen);
        RAISE invalid_parameter_value USING MESSAGE = format('the epoch of %s is not %s', name,
                             COALESCE(epoch::text, 'in its text')),
            DETAIL = format('It returned %s. If its layout is Instagram''s, its epoch is about'
                            ' %s.', id, seen),
            HINT = format('If it is: SELECT instaid.adopt_shard(%L, epoch => %L); If not: %s',
                          (parse_ident(name, false))[1], seen, instaid._replacing(function));
    END IF;
    epoch := COALESCE(epoch, layout.epoch);
    shard_id := instaid.extract_shard_id(id);
END $$;

---- Adopting ----

-- Lock the tables that have functions as a default, and find the largest ID in them, and the shard
-- IDs of the newest rows: in tables of the functions' owner, the schema's or a superuser, since
-- any role can write such a default.
CREATE FUNCTION instaid._lock_tables_of(schema oid, functions oid[], owner regrole,
                                                   OUT largest bigint, OUT place text,
                                                   OUT shard_ids integer[])
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    part record;
    seen bigint[];
    left_out regclass[] := '{}'::regclass[];
BEGIN
    shard_ids := '{}';
    FOR part IN
        SELECT c.oid::regclass AS relation, t.attname, c.relowner::regrole AS owner,
               (o.rolsuper OR o.oid IN (_lock_tables_of.owner, n.nspowner))
               AND pg_has_role(o.oid, 'USAGE')
               AND (NOT o.rolsuper OR instaid._is_superusers_schema(c.relnamespace))
               AND NOT EXISTS (SELECT FROM instaid._descendants(c.oid) AS h
                               WHERE h.owner <> c.relowner) AS is_ours,
               -- a domain has the output function of its base type
               c.relkind <> 'v' AND y.typoutput IN (
                   'int8out'::regproc, COALESCE(to_regproc('instaid.id_out'), 'int8out'))
               AS has_ids
        FROM pg_depend AS d JOIN pg_attrdef AS a ON a.oid = d.objid
             JOIN pg_class AS c ON c.oid = a.adrelid JOIN pg_roles AS o ON o.oid = c.relowner
             JOIN pg_attribute AS t ON t.attrelid = a.adrelid AND t.attnum = a.adnum
             JOIN pg_type AS y ON y.oid = t.atttypid JOIN pg_namespace AS n ON n.oid = schema
        WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = ANY (functions)
          AND d.classid = 'pg_attrdef'::regclass
          AND c.relkind IN ('r', 'p', 'v') AND c.relpersistence <> 't' ORDER BY c.oid, t.attnum
    LOOP
        IF part.is_ours IS NOT TRUE THEN
            left_out := array_remove(left_out, part.relation) || part.relation;
            CONTINUE;
        END IF;
        PERFORM instaid._execute_as(part.owner, format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE',
                                                       part.relation));
        CONTINUE WHEN NOT part.has_ids;
        seen := instaid._execute_as(part.owner, format(
            -- An index gives them.  A value below a day after the epoch is no such ID.
            'SELECT ARRAY[max(r.id)] || array_agg(DISTINCT instaid.extract_shard_id(r.id)::bigint)'
            ' FILTER (WHERE r.id > instaid.make_id(instaid.default_epoch() + ''1 day'', 0, 0))'
            ' FROM (SELECT %1$I::bigint AS id FROM %2$s WHERE %1$I IS NOT NULL'
            ' ORDER BY %1$I DESC LIMIT 5000) AS r', part.attname, part.relation))::bigint[];
        shard_ids := shard_ids || seen[2:]::integer[];
        IF largest IS NULL OR seen[1] > largest THEN
            largest := seen[1];
            place := format('%s.%I', part.relation, part.attname);
        END IF;
    END LOOP;
    IF left_out <> '{}' THEN
        RAISE WARNING 'tables of other owners have IDs of schema %',
            (SELECT quote_ident(n.nspname) FROM pg_namespace AS n WHERE n.oid = schema) USING
            DETAIL = format('Their rows are not read: %s.', array_to_string(left_out, ', ')),
            HINT = 'If their largest ID is ahead of the clock, pass it to instaid.advance_past().';
    END IF;
END $$;

-- Copies of the published function, and why one is not adopted, null if it is.  The first one of a
-- schema is next_id(), or becomes it.
CREATE VIEW instaid._found_copies AS
    WITH copy AS (
        SELECT n.nspname AS schema_name, c.object, p.oid AS function, p.proowner, p.pronargs,
               p.proname, f.oid AS next_id, pg_get_userbyid(f.proowner) AS next_id_owner,
               CASE WHEN p.oid IS NULL THEN 'is a default'
                    WHEN pg_has_role(p.proowner, 'USAGE') IS NOT TRUE
                    THEN format('belongs to %I', pg_get_userbyid(p.proowner))
                    WHEN NOT instaid._can_trust(p.proowner, n.nspowner)
                    THEN format('belongs to %I, and its schema to %s',
                                pg_get_userbyid(p.proowner), instaid._ruler(n.nspowner))
                    WHEN p.prorettype <> 'bigint'::regtype OR p.proretset
                    THEN 'returns ' || pg_get_function_result(p.oid)
                    WHEN p.pronargs > p.pronargdefaults THEN 'has arguments' END AS reason,
               n.nspname IN (SELECT s.schema_name FROM instaid._list_shards() AS s) AS is_shard
        FROM instaid._copies AS c JOIN pg_namespace AS n ON n.oid = c.schema
             LEFT JOIN pg_proc AS p ON c.classid = 'pg_proc'::regclass AND p.oid = c.objid
             LEFT JOIN pg_proc AS f ON f.oid = instaid._find_function(n.nspname, 'next_id', ''))
    SELECT c.schema_name, c.object, c.function, row_number() OVER w AS place,
           COALESCE(c.reason, CASE
               WHEN c.is_shard THEN 'stands beside the next_id() of a shard'
               WHEN c.next_id_owner <> pg_get_userbyid(c.proowner)
               THEN format('stands beside the next_id() of %I', c.next_id_owner)
               -- any role can create copies in some schemas
               WHEN c.next_id IS NULL AND min(c.proowner) OVER s < max(c.proowner) OVER s
               THEN 'stands beside a copy of another owner' END) AS reason
    FROM copy AS c
    WINDOW s AS (PARTITION BY c.schema_name, c.reason IS NULL),
           w AS (s ORDER BY c.function = c.next_id DESC NULLS LAST, c.pronargs,
                 c.proname COLLATE "C");

-- Adopt the next_id() of a schema, and its copies.  Without a next_id(), the first becomes it.
CREATE FUNCTION instaid._adopt(schema_name text, copies oid[],
                                          INOUT shard_id integer, INOUT epoch timestamptz,
                                          renumber boolean)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' SET row_security = off
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    next_id oid := instaid._find_function(schema_name, 'next_id', '');
    -- a next_id() that is no copy can call one of them
    functions CONSTANT oid[] := array_remove(next_id || array_remove(copies, next_id), NULL);
    main record;
    taken record;
    function oid;
    seen record;
    layout record;
    named integer;
    first_epoch timestamptz;
    sequences regclass[] := '{}'::regclass[];
    others text;
    part record;
    other_use text;
    made text;  -- the name of the function that is made
    wrappers text[];
BEGIN
    PERFORM instaid._check_read_committed('adopt_shard');
    -- refuses an epoch that is out of range
    PERFORM instaid.make_id(epoch, 0, 0, epoch),
            instaid._check_new_shard(schema_name, NULL, NULL, COALESCE(next_id, functions[1]));
    SELECT p.proname, p.pronargs, p.proacl, p.proowner::regrole AS owner, n.oid AS schema INTO main
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.oid = functions[1] AND p.prokind = 'f' AND p.prorettype = 'bigint'::regtype
      AND NOT p.proretset;
    IF NOT FOUND THEN
        RAISE undefined_function USING
            MESSAGE = format('schema %I has no next_id() that returns bigint', schema_name),
            DETAIL = CASE WHEN next_id IS NOT NULL THEN 'It returns ' || COALESCE(
                               pg_get_function_result(next_id), 'nothing') || '.'
                          ELSE format('There is no such %s.', CASE WHEN to_regnamespace(
                               quote_ident(schema_name)) IS NULL THEN 'schema'
                               ELSE 'function' END) END,
            HINT = COALESCE('If another function makes its IDs: ALTER ROUTINE '
                            || instaid._signature(next_id) || ' RENAME TO old_next_id; ',
                            'If a function of another name makes its IDs, rename it to next_id. ')
                   || 'If no function makes them, use create_shard() and adopt_column().';
    END IF;
    PERFORM instaid._check_owner(main.owner, 'function', instaid._signature(functions[1]));
    PERFORM instaid._check_ruler(main.owner, schema_name, functions[1]);
    IF EXISTS (SELECT FROM pg_proc AS p WHERE p.oid = ANY (functions) AND p.proname = 'next_id'
                                          AND p.pronargs > 0) THEN
        RAISE duplicate_function USING
            MESSAGE = format('schema %I has a next_id() with an argument', schema_name),
            DETAIL = 'Beside the next_id() of a shard, calls without it would be ambiguous.',
            HINT = format('Rename it: ALTER FUNCTION %s RENAME TO old_next_id; Defaults follow'
                          ' it.', instaid._signature(functions[1]));
    END IF;

    -- Citus replaces no function after a transaction has read by several connections.
    PERFORM set_config('citus.multi_shard_modify_mode', 'sequential', true);
    -- The tables' shards are locked, too, where they are visible.
    PERFORM set_config('citus.enable_manual_changes_to_shards', 'on', true);
    taken := instaid._lock_tables_of(main.schema, functions, main.owner);
    -- while this waited, another session can have adopted the schema, or its owner changed it
    PERFORM instaid._check_new_shard(schema_name, NULL, NULL, COALESCE(next_id, functions[1]));
    IF (SELECT count(*) FROM pg_proc AS p WHERE p.oid = ANY (functions) AND p.proowner = main.owner
                                            AND p.pronamespace = main.schema)
       < cardinality(functions) THEN
        RAISE serialization_failure USING
            MESSAGE = format('functions of schema %I were dropped or changed meanwhile',
                             schema_name), HINT = 'Try again.';
    END IF;

    -- With another argument than its default, the function could mean another shard.  Any role can
    -- write such a default.
    SELECT p.oid, format('%s.%I', a.adrelid::regclass, t.attname) AS name INTO part
    FROM pg_proc AS p JOIN pg_depend AS d ON d.refclassid = 'pg_proc'::regclass
                                         AND d.refobjid = p.oid
         JOIN pg_attrdef AS a ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid
         JOIN pg_attribute AS t ON t.attrelid = a.adrelid AND t.attnum = a.adnum
         JOIN pg_class AS c ON c.oid = a.adrelid
    WHERE p.oid = ANY (functions) AND p.pronargs > 0
      AND instaid._can_trust(main.owner, c.relowner)
      AND a.adbin::text ~ format(':funcid %s [^({]*:args [(]', p.oid) LIMIT 1;
    IF FOUND THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('the default of column %s passes an argument to %s', part.name,
                             instaid._signature(part.oid)),
            HINT = 'To let it return IDs of a new shard: ' || instaid._replacing(part.oid);
    END IF;
    wrappers := ARRAY(
        SELECT format(
            'CREATE OR REPLACE FUNCTION %I.%I(%s) RETURNS bigint LANGUAGE sql VOLATILE PARALLEL'
            ' UNSAFE %s RETURN ' || CASE p.pronargs WHEN 0 THEN '%1$I.next_id()'
                ELSE 'CASE WHEN ROW(%5$s) IS NOT DISTINCT FROM ROW(%6$s) THEN %1$I.next_id() END'
                END, schema_name, p.proname, pg_get_function_arguments(p.oid),
            CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END, (
                SELECT string_agg('$' || g, ', ' ORDER BY g)
                FROM generate_series(1, p.pronargs) AS g), pg_get_expr(p.proargdefaults, 0))
        FROM pg_proc AS p WHERE p.oid = ANY (functions) AND p.oid <> COALESCE(next_id, 0));

    FOREACH function IN ARRAY functions LOOP
        seen := instaid._try_copy(function);
        layout := instaid._read_layout(function, seen.ids[1], seen.made_at, _adopt.epoch);
        IF layout.epoch <> first_epoch THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('functions of schema %I have several epochs', schema_name),
                DETAIL = format('%s has %s, and %s has %s.', instaid._signature(functions[1]),
                                first_epoch, instaid._signature(function), layout.epoch),
                HINT = format('To let both return IDs of a new shard: %s SELECT'
                              ' instaid.replace_copy(%L);', instaid._replacing(functions[1]),
                              instaid._signature(function));
        END IF;
        first_epoch := layout.epoch;
        named := COALESCE(named, layout.shard_id);
        sequences := sequences || seen.sequence;
        others := NULLIF(concat_ws('; ', others, (
            SELECT format('%s: %s', instaid._signature(function),
                          string_agg(DISTINCT s::text, ', '))
            FROM unnest(seen.ids) AS i CROSS JOIN LATERAL instaid.extract_shard_id(i) AS s
            HAVING bool_or(s <> named))), '');
    END LOOP;
    epoch := first_epoch;
    others := NULLIF(concat_ws('; ', others, (
        SELECT 'the newest rows: ' || string_agg(DISTINCT s::text, ', ')
        FROM unnest(taken.shard_ids) AS s HAVING bool_or(s <> named))), '');
    shard_id := COALESCE(shard_id, named);
    IF taken.largest > instaid.max_id(clock_timestamp() + interval '1 day', epoch) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('IDs of schema %I are ahead of the clock', schema_name),
            DETAIL = format('The largest is %s in %s. With epoch %s, its time is %s. The clock'
                            ' reads %s.', taken.largest, taken.place, epoch,
                            instaid.extract_timestamp(taken.largest, epoch), clock_timestamp()),
            HINT = 'Give that row another ID, or pass the epoch that next_id() subtracts.';
    ELSIF others IS NOT NULL AND NOT renumber THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('IDs of schema %I name several shards', schema_name),
            DETAIL = format('The first ID names shard %s. With other values of the sequence, or in'
                            ' the tables, IDs name others: %s.', named, others),
            HINT = format('To give new IDs one number: SELECT instaid.adopt_shard(%L, %s,'
                          ' renumber => true);', schema_name, named);
    ELSIF named <> shard_id AND NOT renumber THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('IDs of schema %I name shard %s, and not shard %s', schema_name,
                             named, shard_id),
            HINT = format('Pass %s. To change the number, also pass renumber => true.', named);
    END IF;
    IF taken.largest IS NOT NULL THEN
        RAISE NOTICE 'IDs of schema % go on above %', quote_ident(schema_name), taken.largest USING
            DETAIL = format('It is the largest ID, in %s. Its time is %s.', taken.place,
                            instaid.extract_timestamp(taken.largest, epoch));
    END IF;

    -- A sequence counts the IDs of one shard, and nothing else.  What a role without rights on
    -- it declares, or uses as a default, must not be able to block its owner.
    SELECT format('It is the sequence of shard %I.', s.schema_name) INTO other_use
    FROM pg_depend AS d JOIN pg_proc AS p ON p.oid = d.objid
         JOIN pg_namespace AS n ON n.oid = p.pronamespace
         CROSS JOIN LATERAL instaid._find_shard(n.nspname) AS s
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = sequences[1]
      AND d.classid = 'pg_proc'::regclass AND s.sequence = sequences[1]
      AND has_sequence_privilege(p.proowner, s.sequence, 'USAGE, UPDATE')
    UNION ALL
    SELECT format('It also counts for %s.', pg_describe_object(d.classid, d.objid, d.objsubid))
    FROM pg_depend AS d JOIN pg_attrdef AS a ON a.oid = d.objid
         JOIN pg_class AS t ON t.oid = a.adrelid
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = sequences[1]
      AND d.classid = 'pg_attrdef'::regclass
      AND has_sequence_privilege(t.relowner, d.refobjid, 'USAGE, UPDATE')
      AND NOT EXISTS (SELECT FROM pg_depend AS f
                      WHERE f.classid = d.classid AND f.objid = d.objid
                        AND f.refclassid = 'pg_proc'::regclass AND f.refobjid = ANY (functions))
    UNION ALL
    SELECT format('It also counts for %s.',
                  pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid))
    FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass
      AND d.objid = sequences[1] AND d.deptype = 'i' LIMIT 1;
    IF FOUND THEN
        RAISE object_in_use USING
            MESSAGE = format('%s cannot be the sequence of a shard', sequences[1]),
            DETAIL = other_use,
            HINT = 'To let it return IDs of a new shard: ' || instaid._replacing(functions[1]);
    END IF;
    -- Defaults follow the first function.
    IF next_id IS NULL THEN
        made := CASE main.pronargs WHEN 0 THEN main.proname ELSE 'next_id' END;
        PERFORM instaid._execute_as(main.owner, CASE main.pronargs WHEN 0
            THEN format('ALTER FUNCTION %s RENAME TO next_id', instaid._signature(functions[1]))
            ELSE format('CREATE FUNCTION %I.next_id() RETURNS bigint LANGUAGE sql RETURN 0',
                        schema_name) END);
        next_id := instaid._find_function(schema_name, 'next_id', '');
    END IF;
    PERFORM instaid._check_new_shard(schema_name, shard_id, epoch, next_id);

    -- so that a table can be dropped whose serial column had it
    PERFORM instaid._execute_as(c.relowner, format('ALTER SEQUENCE %s OWNED BY NONE',
                                                   sequences[1]))
    FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.objid
    WHERE d.classid = 'pg_class'::regclass AND d.objid = sequences[1] AND d.deptype = 'a';
    PERFORM instaid._replace_next_id(schema_name, shard_id, epoch, next_id, sequences[1],
                                     taken.largest);

    -- The others call it, and so does a function with the old name.  With other arguments than the
    -- default, which could mean another shard, they return null.
    PERFORM instaid._execute_as(main.owner, w) FROM unnest(wrappers) AS w;
    -- the function that was made has the rights of the one beside it
    PERFORM instaid._execute_as(main.owner, concat(
        format('REVOKE ALL ON FUNCTION %I.%I() FROM PUBLIC', schema_name, made),
        format('; GRANT EXECUTE ON FUNCTION %I.%I() TO ', schema_name, made)
        || instaid._others_with('EXECUTE', COALESCE(main.proacl, acldefault('f', main.owner)),
                                main.owner))) WHERE made IS NOT NULL;
    -- Who could take values of their sequences can take IDs.
    PERFORM instaid._execute_as(CASE WHEN r LIKE '% ON SEQUENCE %' THEN q.relowner
                                     ELSE main.owner END, format('GRANT %s TO %s', r, x.name))
    FROM (SELECT DISTINCT a.grantee, CASE a.grantee WHEN 0 THEN 'PUBLIC'
                                     ELSE a.grantee::regrole::text END AS name
          FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a
          WHERE c.oid = ANY (sequences[2:]) AND a.grantee <> c.relowner
            AND a.privilege_type IN ('USAGE', 'UPDATE')) AS x
         JOIN pg_class AS q ON q.oid = sequences[1]
         CROSS JOIN LATERAL instaid._missing_rights(x.grantee, schema_name, sequences[1]) AS r;
END $$;

CREATE FUNCTION instaid.adopt_shard(schema_name text, shard_id integer DEFAULT NULL,
                                               epoch timestamptz DEFAULT NULL,
                                               renumber boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._check_no_nulls('adopt_shard', json_build_object(
        'schema_name', schema_name, 'renumber', renumber));
    PERFORM instaid._adopt(schema_name, ARRAY(
        SELECT c.function FROM instaid._found_copies AS c
        WHERE c.schema_name = adopt_shard.schema_name AND c.reason IS NULL ORDER BY c.place),
        shard_id, epoch, renumber);
END $$;
COMMENT ON FUNCTION instaid.adopt_shard IS 'make a schema with copies of the published function a '
'shard that continues above their IDs; needs the rights of the owners of all that it changes';

-- The schemas with copies that the caller may adopt, and the copies of each.
CREATE FUNCTION instaid._find_copies(pattern text, OUT schemas text[],
                                                OUT functions text[])
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET enable_nestloop = off SET jit = off AS $$
DECLARE
    others text;
BEGIN
    WITH found AS MATERIALIZED (SELECT c.* FROM instaid._found_copies AS c
                                WHERE c.schema_name LIKE pattern)
    SELECT COALESCE(array_agg(s.schema_name ORDER BY s.schema_name), '{}'),
           array_agg(s.functions ORDER BY s.schema_name), (
               SELECT string_agg(format('%s %s', f.object, f.reason), '; ' ORDER BY f.object)
               FROM found AS f WHERE f.reason IS NOT NULL)
    INTO schemas, functions, others
    FROM (SELECT f.schema_name, array_agg(f.function ORDER BY f.place)::text
          FROM found AS f WHERE f.reason IS NULL GROUP BY f.schema_name)
         AS s (schema_name, functions);
    IF others IS NOT NULL THEN
        RAISE WARNING 'copies of the published function are left' USING DETAIL = others || '.',
            HINT = 'Each owner can repeat the call. instaid.audit() has the cures of the others.';
    END IF;
END $$;

-- Adopt the copies in a schema, or only try to.  What prevents it is a WARNING.
CREATE FUNCTION instaid._try_adopting(
    schema_name text, functions oid[], dry_run boolean, INOUT shard_ids integer[],
    OUT adopted text, OUT problem text)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard record;
    context text;
    detail text;
    hint text;
BEGIN
    -- what a dry run warns of has not happened
    PERFORM set_config('client_min_messages', CASE WHEN dry_run THEN 'error' ELSE 'warning' END,
                       true);
    shard := instaid._adopt(schema_name, functions, NULL, NULL, false);
    IF shard.shard_id = ANY (shard_ids) THEN
        RAISE duplicate_object USING
            MESSAGE = format('shard ID %s would be that of another schema', shard.shard_id),
            DETAIL = 'A dry run rolls back each schema, and has tried the other one before.',
            HINT = format('To give it another number: SELECT instaid.adopt_shard(%L, %s,'
                          ' renumber => true);', schema_name, instaid._free_shard_id(true));
    END IF;
    shard_ids := shard_ids || shard.shard_id;
    adopted := format('schema %I is shard %s, epoch %s', schema_name, shard.shard_id,
                      to_char(shard.epoch AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS"+00"'));
    IF dry_run THEN
        RAISE SQLSTATE 'ID001';
    END IF;
EXCEPTION WHEN OTHERS OR assert_failure OR query_canceled THEN
    IF adopted IS NULL THEN
        GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT,
            detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
        -- The function of a copy can RAISE this, too, but must not end the call.
        IF SQLSTATE = '57014' AND context !~ '(?n) at RAISE$' THEN
            RAISE;
        END IF;
        problem := format('%I: %s', schema_name, SQLERRM);
        RAISE WARNING '%', problem USING
            DETAIL = COALESCE(NULLIF(detail, ''), format('SQLSTATE %s', SQLSTATE)),
            HINT = CASE WHEN hint <> '' THEN hint WHEN SQLSTATE = '55P03'
                        THEN 'Call again when the transactions of now have ended.'
                        ELSE 'Mend the cause, and try again.' END;
    END IF;
END $$;

-- It commits after each schema, because one transaction cannot hold the locks of thousands, and
-- would keep their writers out.  After an interruption, the same call adopts the rest.
-- A procedure with SET could not commit: operators are qualified.
CREATE PROCEDURE instaid.adopt_shards(pattern text DEFAULT '%',
                                      dry_run boolean DEFAULT false) LANGUAGE plpgsql AS $$
DECLARE
    copies pg_catalog.record;
    last pg_catalog.int4;
    result pg_catalog.record;
    shard_ids pg_catalog.int4[] := '{}'::pg_catalog.int4[];
    problems pg_catalog.text[] := '{}'::pg_catalog.text[];
    adopted pg_catalog.text[] := '{}'::pg_catalog.text[];
BEGIN
    PERFORM instaid._check_no_nulls('adopt_shards', pg_catalog.json_build_object(
        'pattern', pattern, 'dry_run', dry_run));
    SELECT c.* INTO copies FROM instaid._find_copies(pattern) AS c;
    last := pg_catalog.cardinality(copies.schemas);
    -- inside a transaction block, this fails before anything is adopted
    COMMIT;
    FOR i IN 1 .. last LOOP
        SELECT a.* INTO result FROM instaid._try_adopting(
            copies.schemas[i], copies.functions[i]::pg_catalog.oid[], dry_run, shard_ids) AS a;
        COMMIT;
        shard_ids := result.shard_ids;
        IF result.adopted IS NULL THEN
            problems := pg_catalog.array_append(problems, result.problem);
        ELSE
            adopted := pg_catalog.array_append(adopted, result.adopted);
        END IF;
        IF pg_catalog.cardinality(adopted) OPERATOR(pg_catalog.=) 100
           OR i OPERATOR(pg_catalog.=) last AND adopted OPERATOR(pg_catalog.<>) '{}' THEN
            RAISE NOTICE '% of % schemas %',
                i OPERATOR(pg_catalog.-) pg_catalog.cardinality(problems), last,
                CASE WHEN dry_run THEN 'can be adopted' ELSE 'are shards now' END
                USING DETAIL = pg_catalog.array_to_string(adopted, E'\n');
            adopted := '{}';
        END IF;
    END LOOP;
    IF problems OPERATOR(pg_catalog.<>) '{}' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = pg_catalog.format('%s of %s schemas could not be adopted',
                                        pg_catalog.cardinality(problems), last),
            DETAIL = pg_catalog.array_to_string(problems, '; '),
            HINT = 'Each WARNING says what to do. Then call adopt_shards() again. If a shard ID is'
                   ' taken, and this is the schema that should have it, renumber the other one'
                   ' with instaid.renumber_shard(). To give one of these another number, pass it'
                   ' to instaid.adopt_shard(), and renumber => true.';
    ELSIF last OPERATOR(pg_catalog.=) 0 THEN
        RAISE NOTICE 'no schema LIKE % can be adopted', pg_catalog.quote_literal(pattern);
    END IF;
END $$;
COMMENT ON PROCEDURE instaid.adopt_shards IS 'adopt each schema LIKE the pattern with copies of '
'the published function that the caller may adopt; commits after each; dry_run rolls back instead';

CREATE FUNCTION instaid.renumber_shard(schema_name text, shard_id integer) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    shard record;
BEGIN
    PERFORM instaid._check_no_nulls('renumber_shard', json_build_object(
        'schema_name', schema_name, 'shard_id', shard_id));
    PERFORM instaid._check_read_committed('renumber_shard');
    PERFORM instaid._check_name('schema', schema_name);
    SELECT s.*, p.proowner::regrole AS owner INTO shard
    FROM instaid._find_shard(schema_name) AS s JOIN pg_proc AS p ON p.oid = s.declaration;
    IF NOT FOUND THEN
        RAISE undefined_object USING MESSAGE = format('schema %I is not a shard', schema_name),
            HINT = 'instaid.shards lists the shards of this database.';
    END IF;
    PERFORM instaid._check_owner(shard.owner, 'shard', quote_ident(schema_name));
    IF shard.shard_id = renumber_shard.shard_id THEN
        RAISE NOTICE 'schema % is shard % already', quote_ident(schema_name), shard_id;
    ELSE
        PERFORM instaid._check_new_shard(schema_name, shard_id, shard.epoch, shard.declaration);
        PERFORM instaid._change_shard_id(shard.declaration, shard.sequence, shard_id);
    END IF;
END $$;
COMMENT ON FUNCTION instaid.renumber_shard IS 'wait for the transactions that have taken IDs of a '
'shard, and let new IDs name another one; needs to own the shard, and CREATE on its schema';

---- Replacing a copy ----

-- Make the schema of a copy a shard, with IDs above this one.  A copy that is in the way of the
-- shard's functions gets another name.
CREATE FUNCTION instaid._create_shard_beside(
    copy oid, shard_id integer, epoch timestamptz, largest bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' AS $$
DECLARE
    main record;
BEGIN
    SELECT p.proowner::regrole AS owner, n.nspname, p.proname, p.pronargs,
           p.proname IN ('next_id', 'next_ids') AS is_in_the_way INTO main
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE p.oid = copy;
    IF shard_id IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = format('schema %I is not a shard yet', main.nspname),
            HINT = format('Pass the shard ID that it is to have, for example %s.',
                          instaid._free_shard_id(true));
    END IF;
    epoch := COALESCE(epoch, CASE
        WHEN (largest < instaid.min_id(clock_timestamp())) IS NOT FALSE
        THEN instaid.default_epoch()
        ELSE date_trunc('year', clock_timestamp() - interval '1 day' - (
                 instaid.extract_timestamp(largest) - instaid.default_epoch())) END);
    PERFORM instaid._execute_as(main.owner, format(
        'ALTER FUNCTION %s RENAME TO old_%s', instaid._signature(copy), main.proname))
    WHERE main.is_in_the_way;
    PERFORM instaid._execute_as(main.owner, format(
        'SELECT instaid.create_shard(%L, %s, %L, %L)', main.nspname, shard_id, epoch,
        CASE WHEN to_regclass(quote_ident(main.nspname) || '.table_id_seq') IS NULL
             THEN 'table_id_seq' ELSE 'shard_id_seq' END));
    -- next_id(text) and the like can stand beside the shard's
    PERFORM instaid._execute_as(main.owner, format(
        'ALTER FUNCTION %s RENAME TO %s', instaid._signature(copy), main.proname))
    WHERE main.is_in_the_way AND main.pronargs > 0;
END $$;

-- Locks of tables come first, as in _adopt().
CREATE FUNCTION instaid.replace_copy(copy regprocedure, shard_id integer DEFAULT NULL,
                                                epoch timestamptz DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' SET row_security = off
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    main record;
    shard record;
    largest bigint;
    returned text;
BEGIN
    PERFORM instaid._check_no_nulls('replace_copy', json_build_object('copy', copy));
    PERFORM instaid._check_read_committed('replace_copy');
    SELECT p.proname, p.prosecdef, p.prorettype::regtype AS type, n.nspname, n.oid AS schema,
           p.proowner::regrole AS owner, p.pronargs = p.pronargdefaults AS is_callable,
           pg_get_function_arguments(p.oid) AS arguments,
           p.proargtypes[0] IN ('bigint'::regtype, 'integer'::regtype, 'regclass'::regtype)
           AS is_ambiguous INTO main
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.oid = copy AND p.prokind = 'f' AND NOT p.proretset
      AND p.prorettype IN ('bigint'::regtype, 'text'::regtype, 'varchar'::regtype);
    IF NOT FOUND THEN
        RAISE wrong_object_type USING MESSAGE = format('%s cannot return IDs of a shard', copy),
            DETAIL = 'It must be a function that returns a bigint, text or varchar.',
            HINT = 'Write it anew, so that it calls next_id() of a shard.';
    END IF;
    PERFORM instaid._check_owner(main.owner, 'function', copy::text);
    PERFORM instaid._check_ruler(main.owner, main.nspname, copy);
    largest := (instaid._lock_tables_of(main.schema, ARRAY[copy], main.owner)).largest;
    SELECT s.*, p.proowner::regrole AS owner INTO shard
    FROM instaid._find_shard(main.nspname) AS s JOIN pg_proc AS p ON p.oid = s.declaration;
    -- next_id() would call itself
    IF FOUND AND EXISTS (
        SELECT FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
        WHERE p.oid = copy AND (l.lanname = 'instaid' OR strpos(p.prosrc, 'instaid_sql._') > 0
                                OR EXISTS (
            SELECT FROM pg_depend AS d JOIN pg_proc AS f ON f.oid = d.refobjid
            WHERE d.classid = 'pg_proc'::regclass AND d.objid = copy
              AND d.refclassid = 'pg_proc'::regclass AND f.proname = 'next_id'
              AND f.pronamespace = main.schema)))
    THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s returns IDs of shard %s already', copy, shard.shard_id),
            DETAIL = 'It belongs to the shard, or calls its next_id().';
    ELSIF main.proname = 'next_id' AND main.is_ambiguous THEN
        RAISE feature_not_supported USING
            MESSAGE = format('%s cannot stand beside the next_id() of a shard', copy),
            DETAIL = 'Calls with a number or a sequence would be ambiguous.',
            HINT = 'Rename it, and its callers, and try again.';
    END IF;
    IF main.is_callable THEN
        BEGIN
            returned := instaid._call_copy(copy);
        EXCEPTION WHEN invalid_parameter_value THEN
            NULL;  -- it has never made an ID
        END;
        largest := GREATEST(largest, CASE main.type WHEN 'bigint'::regtype THEN returned
                                          ELSE substring(returned FROM '[1-8]\d{18}$|\d{1,18}$')
                                          END::bigint);
    END IF;
    IF main.type <> 'bigint'::regtype AND (returned !~ '\d{15}$') IS NOT FALSE THEN
        RAISE feature_not_supported USING
            MESSAGE = format('%s returns a text whose form is not known', copy),
            DETAIL = COALESCE('It returned ' || returned || ', which does not end with an ID in'
                              ' digits.', 'It cannot be called without arguments.'),
            HINT = 'Write it anew, so that it calls next_id() of a shard.';
    END IF;

    IF shard.shard_id IS NOT NULL AND (
           shard.owner <> main.owner OR shard.shard_id <> replace_copy.shard_id
           OR shard.epoch <> replace_copy.epoch OR EXISTS (
               -- another role's would be called in place of the shard's
               SELECT FROM pg_proc AS p WHERE p.proowner <> main.owner
               AND p.oid = instaid._find_function(main.nspname, 'next_id', ''))) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('schema %I is a shard already', main.nspname),
            DETAIL = format('It is shard %s of %s, with epoch %s. %s owns %s.', shard.shard_id,
                            shard.owner, shard.epoch, main.owner, copy),
            HINT = 'A schema is one shard. Pass no other number or epoch, and give the function,'
                   ' and next_id(), to the owner of the shard.';
    ELSIF shard.shard_id IS NULL THEN
        PERFORM instaid._create_shard_beside(copy, shard_id, epoch, largest);
        SELECT s.* INTO shard FROM instaid._find_shard(main.nspname) AS s;
    END IF;
    IF largest >= instaid.min_id(clock_timestamp(), shard.epoch) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s has made IDs above those of shard %s', copy, shard.shard_id),
            DETAIL = format('The largest is %s. With epoch %s, its time is %s.', largest,
                            shard.epoch, instaid.extract_timestamp(largest, shard.epoch)),
            HINT = 'Pass an earlier epoch. If the schema is a shard already, move the function and'
                   ' its tables to another schema first.';
    END IF;
    PERFORM instaid._execute_as(main.owner, format(
        'CREATE OR REPLACE FUNCTION %I.%I(%s) RETURNS %s LANGUAGE sql VOLATILE PARALLEL UNSAFE %s'
        ' RETURN %s%1$I.next_id(%7$s)', main.nspname,
        (SELECT p.proname FROM pg_proc AS p WHERE p.oid = copy), main.arguments, main.type,
        CASE WHEN main.prosecdef THEN 'SECURITY DEFINER' END,
        CASE WHEN main.type <> 'bigint'::regtype
             THEN format('%L || ', regexp_replace(returned, '\d+$', '')) END,
        -- the shard's own, which got its old text back
        CASE WHEN copy = instaid._find_function(main.nspname, 'next_id', '')
             THEN format('%L::regclass', shard.sequence) END));
    RAISE NOTICE '% returns IDs of shard % now', copy, shard.shard_id
        USING DETAIL = format('The epoch is %s.', shard.epoch);
    -- so that who inserts goes on
    returned := (
        SELECT string_agg(DISTINCT g, ' ')
        FROM pg_depend AS d JOIN pg_attrdef AS a ON a.oid = d.objid
             JOIN pg_class AS c ON c.oid = a.adrelid AND c.relowner = main.owner
             CROSS JOIN LATERAL instaid._missing_grants(a.adrelid, main.nspname, shard.sequence)
                                AS g
        WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = copy
          AND d.classid = 'pg_attrdef'::regclass);
    IF returned IS NOT NULL THEN
        PERFORM instaid._execute_as(main.owner, returned);
        RAISE NOTICE 'roles that can insert can take IDs of shard % now', shard.shard_id
            USING DETAIL = returned;
    END IF;
END $$;
COMMENT ON FUNCTION instaid.replace_copy IS 'let a copy of the published function that cannot be '
'adopted return the IDs of its schema''s shard, which is created with an epoch whose IDs are '
'above its own; needs the rights of the owners of all that it changes';

---- Adopting columns ----

-- The statement that drops a view, an index of a materialized view, a rule or a trigger, and those
-- that create it again, with its rights and comments, if search_path is pg_catalog.
CREATE FUNCTION instaid._recreation(class oid, object oid, OUT removal text,
                                    OUT creation text[])
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    SET extra_float_digits = 1 SET intervalstyle = 'postgres'
BEGIN ATOMIC
    WITH main (kind, name, definition, view, acl) AS (
        SELECT upper(i.type), i.identity, COALESCE(
                   pg_get_ruledef(r.oid), pg_get_triggerdef(t.oid), pg_get_indexdef(c.oid), format(
                   E'CREATE %s %s%s%s AS\n%s%s', upper(i.type), i.identity,
                   (SELECT ' USING ' || quote_ident(m.amname) FROM pg_am AS m
                    WHERE m.oid = c.relam),
                   (SELECT ' WITH (' || string_agg(format('%I = %L', o.option_name,
                                                          o.option_value), ', ') || ')'
                    FROM pg_options_to_table(c.reloptions) AS o),
                   rtrim(pg_get_viewdef(c.oid), ';'),
                   CASE WHEN NOT c.relispopulated THEN E'\n  WITH NO DATA' END)),
               CASE WHEN c.relkind <> 'i' THEN c.oid END,
               -- default privileges give rights to a new view
               CASE WHEN c.relacl IS NOT NULL OR EXISTS (SELECT FROM pg_default_acl)
                    THEN COALESCE(c.relacl, acldefault('r', c.relowner)) END
        FROM pg_identify_object(class, object, 0) AS i
             LEFT JOIN pg_rewrite AS r ON class = 'pg_rewrite'::regclass AND r.oid = object
             LEFT JOIN pg_trigger AS t ON class = 'pg_trigger'::regclass AND t.oid = object
             LEFT JOIN pg_class AS c ON class = 'pg_class'::regclass AND c.oid = object),
    grants (command, attnum, n) AS (
        SELECT format('REVOKE ALL ON %s FROM PUBLIC, %s', m.name,
                      string_agg(DISTINCT r.role::regrole::text, ', ')), 0, 0
        FROM main AS m JOIN pg_class AS c ON c.oid = m.view
             CROSS JOIN LATERAL (
                 SELECT c.relowner
                 UNION SELECT (aclexplode(d.defaclacl)).grantee FROM pg_default_acl AS d
                 WHERE d.defaclrole = c.relowner) AS r (role)
        WHERE m.acl IS NOT NULL AND r.role <> 0 GROUP BY m.name
        UNION ALL SELECT format('GRANT %s ON %s TO %s%s',
               string_agg(x.privilege_type || a.columns, ', ' ORDER BY x.n), m.name,
               CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END,
               CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' END), a.attnum, min(x.n)
        FROM main AS m CROSS JOIN LATERAL (
                 SELECT 0, '', m.acl WHERE m.view IS NOT NULL
                 UNION ALL SELECT a.attnum, format(' (%I)', a.attname), a.attacl
                 FROM pg_attribute AS a WHERE a.attrelid = m.view) AS a (attnum, columns, acl)
             CROSS JOIN LATERAL aclexplode(a.acl) WITH ORDINALITY
                 AS x (grantor, grantee, privilege_type, is_grantable, n)
        GROUP BY m.name, a.attnum, x.grantee, x.is_grantable),
    comments (command) AS (
        SELECT format('COMMENT ON %s IS %L', COALESCE('COLUMN ' || m.name || '.'
                      || quote_ident(a.attname), m.kind || ' ' || m.name), d.description)
        FROM main AS m JOIN pg_description AS d ON d.classoid = class AND d.objoid = object
             LEFT JOIN pg_attribute AS a ON a.attrelid = m.view AND a.attnum = d.objsubid
                                        AND a.attnum > 0 ORDER BY d.objsubid)
    SELECT 'DROP ' || m.kind || ' ' || m.name, rtrim(m.definition, ';')
           || ARRAY(SELECT g.command FROM grants AS g ORDER BY g.attnum, g.n)
           || ARRAY(SELECT c.command FROM comments AS c)
    FROM main AS m;
END;

-- The statements that widen an integer column and those that refer to it, and those before and
-- after that drop and create views, rules and triggers; those that lock the views; the other
-- tables that are altered, the sizes of all, and what prevents it; why Citus does not change it.
CREATE FUNCTION instaid._widening_plan(
    table_name regclass, attnum smallint, owner regrole, OUT statements text[],
    OUT removals text[], OUT creations text[], OUT locks text[], OUT other_tables text,
    OUT sizes text, OUT obstacles text, OUT of_citus text)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    SET jit = off AS $$
DECLARE
    kept_by_citus jsonb;  -- columns that it does not change, as "relation attnum"
    tables_of_citus oid[];  -- their rows are elsewhere, mostly on other servers
    classes oid[];  -- of the objects that are dropped and created, in the order of creation
    objects oid[];
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        EXECUTE 'SELECT jsonb_object_agg(format(''%s %s'', a.attrelid::oid, a.attnum),'
                ' CASE WHEN a.attidentity <> '''' THEN ''an identity column of a Citus table'''
                ' ELSE ''the distribution column of a Citus table'' END)'
                ' FILTER (WHERE a.attidentity <> '''''
                ' OR position(format('':varattno %s '', a.attnum) IN p.partkey) > 0),'
                ' array_agg(DISTINCT a.attrelid) FROM pg_catalog.pg_dist_partition AS p'
                ' JOIN pg_attribute AS a ON a.attrelid = p.logicalrelid AND a.attnum > 0'
        INTO kept_by_citus, tables_of_citus;
    END IF;
    of_citus := kept_by_citus ->> format('%s %s', table_name::oid, attnum);
    WITH RECURSIVE family (relid, attnum) AS (
        SELECT table_name::oid, _widening_plan.attnum
        UNION SELECT r.relid, r.attnum FROM family AS f CROSS JOIN LATERAL (
            SELECT k.conrelid, k.conkey[array_position(k.confkey, f.attnum)]
            FROM pg_constraint AS k
            WHERE k.contype = 'f' AND k.confrelid = f.relid AND f.attnum = ANY (k.confkey)
            UNION ALL SELECT other.attrelid, other.attnum
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
        -- a domain has the output function of its base type
        WHERE t.typoutput IN ('int2out'::regproc, 'int4out'::regproc)),
    altered AS (
        -- a column of a partition is altered through its parent's
        SELECT n.attrelid, string_agg(format('ALTER %I TYPE bigint', n.attname), ', '
                                      ORDER BY n.attnum) AS actions
        FROM narrow AS n WHERE n.attinhcount = 0 GROUP BY n.attrelid),
    -- what ALTER COLUMN TYPE would fail at, perhaps after hours, and what depends on views in it
    dependant (name, class, object, attnum, level) AS (
        SELECT n.name, 'pg_class'::regclass::oid, n.attrelid, n.attnum::integer, 0 FROM narrow AS n
        UNION SELECT CASE t.level WHEN 0 THEN t.name ELSE c.oid::regclass::text END,
               CASE WHEN r.oid IS NULL THEN d.classid ELSE t.class END,
               COALESCE(r.ev_class, d.objid), 0, t.level + 1
        FROM dependant AS t
             JOIN pg_class AS c ON t.class = 'pg_class'::regclass AND c.oid = t.object
                  AND (t.level = 0 OR c.relkind IN ('v', 'm') AND c.relowner = owner)
             JOIN pg_type AS y ON y.oid = c.reltype
             CROSS JOIN LATERAL (VALUES (t.class, c.oid), ('pg_type'::regclass, y.oid),
                                        ('pg_type'::regclass, y.typarray)) AS o (class, object)
             JOIN pg_depend AS d ON d.refclassid = o.class AND d.refobjid = o.object
             LEFT JOIN pg_attrdef AS e ON d.classid = 'pg_attrdef'::regclass AND e.oid = d.objid
             LEFT JOIN pg_trigger AS g ON d.classid = 'pg_trigger'::regclass AND g.oid = d.objid
             -- a view is one by such a rule, and depends on itself
             LEFT JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
                                      AND r.ev_type = '1'
        WHERE CASE WHEN t.level > 0 THEN d.deptype <> 'i' AND r.ev_class IS DISTINCT FROM c.oid
                   ELSE (d.refclassid, d.refobjsubid) = (t.class, t.attnum)
                        AND (d.classid IN ('pg_rewrite'::regclass, 'pg_proc'::regclass,
                                           'pg_trigger'::regclass, 'pg_policy'::regclass,
                                           'pg_publication_rel'::regclass)
                             OR (e.adrelid, e.adnum) <> (c.oid, t.attnum)) END
          -- a partition has its trigger from its parent; views can name each other
          AND COALESCE(g.tgparentid, 0) = 0 AND t.level < 100),
    -- what can be created again has no fault
    recreated AS (
        SELECT t.name, t.class, t.object, t.level, k.oid::regclass AS relation, CASE
            WHEN k.oid IS NULL THEN ''
            WHEN k.relowner <> owner THEN format(' of %I', pg_get_userbyid(k.relowner))
            -- its owner could put another object in its place
            WHEN s.rolsuper AND NOT instaid._is_superusers_schema(k.relnamespace)
                THEN ' in a schema of another role'
            -- pg_get_viewdef() locks them
            WHEN EXISTS (SELECT FROM pg_rewrite AS w
                              JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass
                                                 AND d.objid = w.oid
                                                 AND d.refclassid = 'pg_class'::regclass
                              JOIN pg_class AS u ON u.oid = d.refobjid AND u.relowner <> owner
                              JOIN pg_roles AS o ON o.oid = u.relowner AND NOT o.rolsuper
                         WHERE w.ev_class = k.oid) THEN ', which names tables of other owners'
            -- Who has, or had, TRIGGER on the table wrote the condition.  To parse a literal in it
            -- can call functions of the owner of its type.
            WHEN EXISTS (SELECT FROM pg_depend AS d
                              JOIN pg_type AS y ON d.refclassid = 'pg_type'::regclass
                                               AND y.oid = d.refobjid
                         WHERE d.classid = t.class AND d.objid = g.oid
                           AND NOT instaid._can_trust(owner, y.typowner))
                THEN ', whose condition has a type of another owner'
            WHEN k.relpersistence = 't' OR r.ev_enabled <> 'O' OR i.indisclustered
                 OR c.reltablespace <> 0
                 OR EXISTS (SELECT FROM pg_trigger AS p
                            WHERE g.oid IN (p.oid, p.tgparentid) AND p.tgenabled <> 'O')
                 OR EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = t.class
                            AND d.objid = t.object AND d.deptype IN ('e', 'x'))
                 OR EXISTS (SELECT FROM pg_seclabel AS l
                            WHERE l.classoid = t.class AND l.objoid = t.object)
                 OR EXISTS (SELECT FROM pg_class AS o
                            WHERE o.oid = c.reltoastrelid AND o.reloptions IS NOT NULL)
                 OR EXISTS (SELECT FROM aclexplode(c.relacl) AS x WHERE x.grantor <> owner)
                 OR EXISTS (SELECT FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid
                                 LEFT JOIN LATERAL aclexplode(a.attacl) AS x ON true
                            WHERE a.attrelid = c.oid AND a.attnum > 0
                              AND (x.grantor <> owner OR a.attoptions::text ~ 'n_distinct'
                                   OR COALESCE(a.attstattarget, -1) <> -1
                                   OR a.attcompression <> '' OR a.attstorage <> y.typstorage))
                THEN ', which cannot be created again as it is' END AS fault
        FROM dependant AS t JOIN pg_roles AS s ON s.oid = owner
             LEFT JOIN pg_class AS c ON t.class = 'pg_class'::regclass AND c.oid = t.object
                                    AND c.relkind IN ('v', 'm', 'i')
             LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
             LEFT JOIN pg_rewrite AS r ON t.class = 'pg_rewrite'::regclass AND r.oid = t.object
             LEFT JOIN pg_trigger AS g ON t.class = 'pg_trigger'::regclass AND g.oid = t.object
             LEFT JOIN pg_class AS k ON k.oid = COALESCE(i.indrelid, c.oid, r.ev_class, g.tgrelid)
        WHERE t.level > 0),
    obstacle (name, description) AS (
        SELECT r.name, pg_describe_object(r.class, r.object, 0) || r.fault FROM recreated AS r
        UNION SELECT n.name, 'the partition key'
        FROM narrow AS n JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass
                                            AND d.objid = n.attrelid AND d.objsubid = n.attnum
        WHERE d.refclassid = d.classid AND d.refobjid = n.attrelid AND d.deptype = 'i'
        UNION
        SELECT n.name, format('column %s.%I of its row type', u.attrelid::regclass, u.attname)
        FROM narrow AS n JOIN pg_attribute AS u ON u.atttypid = n.reltype
        UNION SELECT n.name, CASE
            WHEN n.typtype = 'd' THEN 'its domain'
            WHEN n.reloftype <> 0 THEN 'the type of its table'
            ELSE kept_by_citus ->> format('%s %s', n.attrelid, n.attnum) END FROM narrow AS n
        UNION
        -- PostgreSQL checks a foreign key again, in both tables.  The owner of a schema could put
        -- another table in the place of a superuser's.
        SELECT n.name, format('table %s of %I%s', c.oid::regclass, pg_get_userbyid(c.relowner),
                              CASE WHEN c.relowner = owner THEN ' in a schema of another role' END)
        FROM narrow AS n JOIN pg_roles AS s ON s.oid = owner
             LEFT JOIN pg_constraint AS k ON k.contype = 'f'
                       AND (k.confrelid = n.attrelid AND n.attnum = ANY (k.confkey)
                            OR k.conrelid = n.attrelid AND n.attnum = ANY (k.conkey))
             JOIN pg_class AS c ON c.oid IN (n.attrelid, k.conrelid, k.confrelid)
        WHERE c.relowner <> owner
           OR s.rolsuper AND NOT instaid._is_superusers_schema(c.relnamespace))
    SELECT array_agg(format('ALTER TABLE %s %s', t.attrelid::regclass, t.actions)
                     ORDER BY t.attrelid),
           -- in the order of an INSERT: its table, and then the older ones that it refers to
           string_agg(t.attrelid::regclass::text, ', ' ORDER BY t.attrelid DESC)
               FILTER (WHERE t.attrelid <> _widening_plan.table_name),
           -- of the owner's tables only: pg_total_relation_size() waits for locks
           (SELECT string_agg(n.name || CASE WHEN n.attrelid = ANY (tables_of_citus) THEN ''
                       ELSE format(' (%s)',
                                   pg_size_pretty(pg_total_relation_size(n.attrelid))) END,
                              ', ' ORDER BY n.name)
            FROM narrow AS n WHERE n.relkind = 'r' AND CASE WHEN n.relowner = owner THEN true END),
           (SELECT string_agg(o.name || ': ' || o.description, '; ' ORDER BY o.name, o.description)
            FROM obstacle AS o),
           -- readers lock a view before what it names
           (SELECT array_agg(format('ALTER TABLE %s OWNER TO %s', r.relation, owner)
                             ORDER BY r.level DESC, r.relation)
            FROM (SELECT r.relation, max(r.level) FROM recreated AS r
                  WHERE r.relation NOT IN (SELECT n.attrelid FROM narrow AS n)
                  GROUP BY r.relation) AS r (relation, level)),
           r.classes, r.objects
    INTO statements, other_tables, sizes, obstacles, locks, classes, objects
    FROM altered AS t, (SELECT array_agg(r.class ORDER BY r.level, r.object) AS classes,
                               array_agg(r.object ORDER BY r.level, r.object) AS objects
                        FROM (SELECT r.class, r.object, max(r.level) FROM recreated AS r
                              GROUP BY r.class, r.object) AS r (class, object, level)) AS r
    GROUP BY r.classes, r.objects;
    IF obstacles IS NULL THEN
        SELECT array_agg(r.removal ORDER BY o.n DESC) FILTER (WHERE c.n = 1),
               array_agg(c.command ORDER BY o.n, c.n)
        INTO removals, creations
        FROM unnest(classes, objects) WITH ORDINALITY AS o (class, object, n)
             CROSS JOIN LATERAL instaid._recreation(o.class, o.object) AS r
             CROSS JOIN LATERAL unnest(r.creation) WITH ORDINALITY AS c (command, n);
    END IF;
END $$;

-- The GRANT statements for roles that can insert into a table, a partition of it or a view, and
-- cannot use the next_id() of the shard; null if there are none.
CREATE FUNCTION instaid._missing_grants(table_name regclass, schema_name text,
                                        sequence regclass) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH RECURSIVE entrance (relid) AS (
        SELECT d.relid FROM instaid._descendants(table_name) AS d
        UNION SELECT r.ev_class
        FROM entrance AS e JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass
                                              AND d.refobjid = e.relid
                                              AND d.classid = 'pg_rewrite'::regclass
             JOIN pg_rewrite AS r ON r.oid = d.objid
             -- Rows pass a view with the rights of its owner.  Any role can create one, but must
             -- not let others take IDs.
             JOIN pg_class AS v ON v.oid = r.ev_class
                  AND has_any_column_privilege(v.relowner, e.relid, 'INSERT WITH GRANT OPTION')),
    inserter AS (
        SELECT DISTINCT x.grantee AS role, CASE x.grantee WHEN 0 THEN 'PUBLIC'
                                           ELSE x.grantee::regrole::text END AS name
        FROM entrance AS e JOIN pg_class AS c ON c.oid = e.relid
             JOIN pg_attribute AS a ON a.attrelid = c.oid
             CROSS JOIN LATERAL aclexplode(COALESCE(c.relacl, acldefault('r', c.relowner))
                                           || a.attacl) AS x WHERE x.privilege_type = 'INSERT')
    SELECT string_agg(format('GRANT %s TO %s;', r, i.name), ' ' ORDER BY i.name, r)
    FROM inserter AS i CROSS JOIN LATERAL instaid._missing_rights(i.role, schema_name, sequence)
                                          AS r;
END;

CREATE FUNCTION instaid.adopt_column(table_name regclass, column_name text,
                                     dry_run boolean DEFAULT false) RETURNS SETOF text
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' SET row_security = off
    SET standard_conforming_strings = on SET quote_all_identifiers = off
    SET default_tablespace = '' AS $$
DECLARE
    main record;
    shard record;
    descendants oid[];
    others text;
    is_ours boolean;
    other record;
    widening record;
    alter_column text;
    serial regclass;
    statements text[];
    statement text;
    highest bigint;
    next_id bigint;
    grants text;
    unreferenced text;
BEGIN
    PERFORM instaid._check_no_nulls('adopt_column', json_build_object(
        'table_name', table_name, 'column_name', column_name, 'dry_run', dry_run));
    PERFORM instaid._check_read_committed('adopt_column') WHERE NOT dry_run;
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
    ELSIF main.relkind NOT IN ('r', 'p') OR main.attgenerated <> '' OR main.parent IS NOT NULL THEN
        RAISE wrong_object_type USING
            MESSAGE = format('column %s cannot have a default of its own', main.name),
            DETAIL = CASE WHEN main.parent IS NOT NULL
                          THEN format('It is inherited: adopt the column of %s.', main.parent)
                          WHEN main.attgenerated <> '' THEN 'It is a generated column.'
                          ELSE 'It is not a column of a table.' END;
    END IF;
    SELECT s.* INTO shard FROM instaid._find_shard(main.nspname) AS s;
    IF NOT FOUND THEN
        RAISE undefined_object USING MESSAGE = format('schema %I is not a shard', main.nspname),
            HINT = 'create_shard() and adopt_shard() make a schema a shard.';
    ELSIF main.atttypid NOT IN ('bigint'::regtype, COALESCE(to_regtype('instaid.id'), 'bigint'),
                                'integer'::regtype, 'smallint'::regtype) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('column %s is of type %s', main.name, main.atttypid::regtype),
            DETAIL = 'It must be bigint or instaid.id, or integer or smallint, which are widened.';
    END IF;
    -- A default runs with the rights of all who insert, and its name could find each of these.
    SELECT string_agg(format('%s of %I', u.name, pg_get_userbyid(u.owner)), ', ' ORDER BY u.name)
               FILTER (WHERE NOT instaid._can_trust(main.owner, u.owner)), bool_and(u.is_ours)
    INTO others, is_ours
    FROM (SELECT format('schema %I', n.nspname), n.nspowner, NULL::boolean
          FROM pg_namespace AS n WHERE n.nspname = main.nspname
          UNION ALL
          SELECT format('%I.%I(%s)', main.nspname, p.proname, oidvectortypes(p.proargtypes)),
                 -- the next_id() of the SQL edition's adopt_shard() has a parsed body
                 p.proowner, p.oid = d.oid OR p.prolang = d.prolang OR p.prosqlbody IS NOT NULL
          FROM pg_proc AS d JOIN pg_proc AS p ON p.pronamespace = d.pronamespace
               AND (p.oid = d.oid OR p.proname = 'next_id' AND p.pronargs = p.pronargdefaults)
          WHERE d.oid = shard.declaration) AS u (name, owner, is_ours);
    IF others IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('other roles could replace %s', main.new_default),
            DETAIL = format('Table %s belongs to %s. These do not: %s.', table_name, main.owner,
                            others),
            HINT = format('Let the column use a shard of %s, or of a superuser. If you trust the'
                          ' other roles, set its default yourself.', main.owner);
    ELSIF NOT is_ours THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s is no function of shard %s', main.new_default, shard.shard_id),
            DETAIL = 'Its language is another one.',
            HINT = 'Let its owner create it again, as instaid.create_shard() does.';
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
                            other.default_text, main.name), HINT = 'Drop that default first.';
    END IF;
    widening := instaid._widening_plan(table_name, main.attnum, main.owner);
    IF widening.of_citus IS NOT NULL AND main.default_text IS DISTINCT FROM main.new_default THEN
        RAISE feature_not_supported USING
            MESSAGE = format('Citus cannot change the default of column %s', main.name),
            DETAIL = format('It is %s.', widening.of_citus),
            HINT = CASE WHEN main.attidentity <> ''
                        THEN 'Create another table, distribute it, and copy the rows.'
                        ELSE 'Call undistribute_table() before, and distribute it afterwards.' END;
    ELSIF widening.obstacles IS NOT NULL THEN
        RAISE feature_not_supported USING
            MESSAGE = format('integer columns that would hold IDs of %s cannot be widened',
                             main.name), DETAIL = widening.obstacles || '.',
            HINT = 'Drop what prevents it, and create that again afterwards.';
    END IF;

    statements := widening.locks || format('LOCK TABLE %s%s IN ACCESS EXCLUSIVE MODE',
                                           widening.other_tables || ', ', table_name);
    IF NOT dry_run THEN
        PERFORM instaid._execute_as(main.owner, s.command) FROM unnest(statements) AS s (command);
        -- the locks can have waited for a change, even one that is in the way
        IF (SELECT (p.statements, p.removals, p.creations, p.obstacles) IS DISTINCT FROM
                   (widening.statements, widening.removals, widening.creations, NULL)
            FROM instaid._widening_plan(table_name, main.attnum, main.owner) AS p) THEN
            RAISE serialization_failure USING
                MESSAGE = format('what depends on %s has changed meanwhile', main.name),
                HINT = 'Repeat the call.';
        END IF;
    END IF;
    highest := instaid._execute_as(main.owner, format('SELECT max(%I)::bigint FROM %s',
                                                 column_name, table_name))::bigint;
    next_id := GREATEST(instaid._last_id(shard.sequence, shard.shard_id, shard.epoch),
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

    -- First the default, which need not fit the new type, and then the sequence of a serial
    -- column, unless something else uses it: Citus widens no column that one depends on.
    alter_column := format('ALTER TABLE %s ALTER %I', table_name, column_name);
    serial := pg_get_serial_sequence(table_name::text, column_name);
    statements := array_remove(statements || widening.removals || ARRAY[
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
                THEN alter_column || ' SET DEFAULT ' || main.new_default END
        || widening.creations, NULL);
    SELECT string_agg(format('%s.%I', a.attrelid::regclass, a.attname), ', '
                      ORDER BY a.attrelid::regclass::text, a.attnum) INTO unreferenced
    FROM pg_class AS t JOIN pg_class AS c ON c.relnamespace = t.relnamespace
                            AND c.relowner = t.relowner AND c.relkind IN ('r', 'p')
         JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND a.attinhcount = 0
    WHERE t.oid = table_name AND (c.oid, a.attnum) <> (t.oid, main.attnum)
      AND a.atttypid = ANY ('{integer,smallint,integer[],smallint[]}'::regtype[])
      AND EXISTS (
          SELECT FROM unnest('{$,s$,es$,ies$}'::text[], '{"","","",y}'::text[]) AS e (plural, one)
               CROSS JOIN LATERAL concat('_', regexp_replace(t.relname, e.plural, e.one), '_id')
                   AS n (name)
          WHERE right('_' || rtrim(a.attname, 's'), length(n.name)) = n.name)
      AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.contype = 'f' AND k.conrelid = c.oid
                                                       AND a.attnum = ANY (k.conkey));
    IF unreferenced IS NOT NULL THEN
        RAISE NOTICE 'integer columns are named like references to %, and stay as they are',
            table_name USING DETAIL = format('They are %s.', unreferenced),
            HINT = 'Widen those that will hold its IDs, or give them foreign keys first.';
    END IF;
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
        PERFORM instaid._execute_as(main.owner, statement) WHERE NOT dry_run;
    END LOOP;
END $$;
COMMENT ON FUNCTION instaid.adopt_column IS 'make the next_id() of a shard the default of a '
'serial, identity, integer or bigint column, which it widens with those that refer to it, and '
'create views of them again; return the statements, which dry_run does not run; needs to own all';

---- Shards of the SQL edition ----

-- Their functions have a parameter of a type of the schema, and call those of instaid_sql.
CREATE VIEW instaid._sql_edition_shards AS
    SELECT p.pronamespace AS schema, n.nspname AS schema_name, p.oid AS next_ids,
           f.oid AS next_id, p.proowner::regrole AS owner, q.seqrelid AS sequence,
           instaid.extract_shard_id(q.seqmax) AS shard_id,
           to_timestamp(q.seqmin / 1000.0) AS epoch,
           q.seqmax < instaid.min_id('infinity') AS is_frozen
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
         JOIN pg_proc AS f ON f.pronamespace = p.pronamespace AND f.proname = 'next_id'
                          AND f.pronargs = 1 AND f.proargtypes[0] = p.proargtypes[1]
         JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
                            AND d.refclassid = 'pg_class'::regclass
         JOIN pg_sequence AS q ON q.seqrelid = d.refobjid
    WHERE p.proname = 'next_ids' AND p.pronargs = 2 AND n.nspname !~ '^pg_'
      AND strpos(p.prosrc, 'instaid_sql._next_ids(') > 0
      -- An epoch is a time from 1990 to 2100; of other values, to_timestamp() can fail.
      AND q.seqmin BETWEEN 631152000001 AND 4102444800000;

-- Make one of them a shard of the extension: one that is in use, as for
-- sql-edition/to_extension.sql, or one that instaid-move has restored.
-- ALTER SEQUENCE waits for all who have taken IDs.  What comes later waits at its first look
-- at the sequence, and then continues in the extension.  A statement for several rows goes on
-- with the old functions, by their OIDs: they are renamed, not dropped.
CREATE FUNCTION instaid._convert_shard(schema_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET timezone = 'UTC'
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    main CONSTANT oid := instaid._find_function(schema_name, 'next_id', '');
    shard record;
    tables regclass[];
    defaults text[];
    other_type CONSTANT text := 'id_sequence_' || gen_random_uuid();
    part record;
    last bigint;
BEGIN
    SELECT s.* INTO shard FROM instaid._sql_edition_shards AS s
    WHERE s.schema_name = _convert_shard.schema_name;
    IF NOT FOUND THEN
        RAISE undefined_object USING
            MESSAGE = format('schema %I is not a shard of the SQL edition', schema_name);
    END IF;
    PERFORM instaid._check_owner(shard.owner, 'schema', quote_ident(schema_name));
    PERFORM instaid._check_new_shard(schema_name, shard.shard_id, shard.epoch,
                                     COALESCE(main, shard.next_id));
    PERFORM instaid._check_ruler(shard.owner, schema_name, shard.next_id);

    -- The tables are locked before the sequences, as by an INSERT.
    tables := ARRAY(
        SELECT DISTINCT a.relid FROM pg_depend AS d JOIN instaid._defaults AS a ON a.oid = d.objid
               JOIN pg_roles AS o ON o.oid = a.owner
        WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_proc'::regclass
          AND d.refobjid = shard.next_id AND a.owner = shard.owner
          AND (NOT o.rolsuper OR instaid._is_superusers_schema(a.schema)) ORDER BY a.relid);
    PERFORM instaid._execute_as(shard.owner, format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE',
                                                    t)) FROM unnest(tables) AS t;
    FOR part IN
        SELECT c.oid::regclass AS name
        FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.refobjid AND c.relkind = 'S'
             LEFT JOIN pg_constraint AS k ON d.classid = 'pg_constraint'::regclass
                                         AND k.oid = d.objid
             LEFT JOIN pg_type AS t ON t.oid = k.contypid AND t.typnamespace = shard.schema
        WHERE d.refclassid = 'pg_class'::regclass AND c.relowner = shard.owner
          AND (t.oid IS NOT NULL OR d.classid = 'pg_proc'::regclass AND d.objid = shard.next_ids)
        -- in the order of freeze_shard(), which another session can call
        GROUP BY c.oid ORDER BY c.oid <> shard.sequence, c.oid
    LOOP
        PERFORM instaid._lock_sequence(part.name);
        last := pg_sequence_last_value(part.name);
        PERFORM instaid._alter_sequence(shard.owner, part.name, 'AS bigint INCREMENT BY 1'
            ' NO MINVALUE NO MAXVALUE START WITH 1 RESTART CACHE 1 NO CYCLE');
        PERFORM instaid.advance_past(part.name, last, shard.epoch);
    END LOOP;

    -- The text of a default, without its cast to the old type, will call the next_id() of the
    -- extension.  So that no string in it is taken for this cast, the type has another name.
    PERFORM instaid._execute_as(shard.owner, format('ALTER DOMAIN %I.id_sequence RENAME TO %I',
                                                    schema_name, other_type));
    defaults := ARRAY(
        SELECT format('ALTER TABLE ONLY %s ALTER %s SET DEFAULT %s', a.table_name, a.column_name,
                      replace(pg_get_expr(a.expression, a.relid),
                              format('::%I.%I', schema_name, other_type), ''))
        FROM instaid._defaults AS a
             JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid
                                AND d.refclassid = 'pg_proc'::regclass
                                AND d.refobjid = shard.next_id
        WHERE a.relid = ANY (tables));
    PERFORM instaid._execute_as(shard.owner, format('ALTER DOMAIN %I.%I RENAME TO id_sequence',
                                                    schema_name, other_type));

    PERFORM instaid._execute_as(shard.owner, format(
        'DROP VIEW IF EXISTS %1$I.id_sequence_lock;'
        ' ALTER FUNCTION %1$I.next_id(%2$s) RENAME TO sql_edition_next_id;'
        ' ALTER FUNCTION %1$I.next_ids(integer, %2$s) RENAME TO sql_edition_next_ids; %3$s;'
        -- As before, no role needs a right on the sequence.
        ' ALTER FUNCTION %1$I.next_id(regclass) SECURITY DEFINER;'
        ' ALTER FUNCTION %1$I.next_ids(integer, regclass) SECURITY DEFINER;'
        ' REVOKE ALL ON FUNCTION %1$I.next_id(), %1$I.next_id(regclass),'
        ' %1$I.next_ids(integer, regclass) FROM PUBLIC', schema_name, p.proargtypes[0]::regtype,
        instaid._declaration_commands(schema_name, shard.shard_id, shard.epoch,
                                      shard.sequence::regclass::text, true,
                                      COALESCE(pg_get_function_arguments(main), ''),
                                      'SECURITY DEFINER')))
    FROM pg_proc AS p WHERE p.oid = shard.next_id;
    -- Default privileges must not let other roles take IDs.
    PERFORM instaid._execute_as(shard.owner, format(
        'REVOKE ALL ON FUNCTION %s FROM %s', p.oid::regprocedure, x.grantee::regrole))
    FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS x
    WHERE x.grantee <> p.proowner AND p.oid <> COALESCE(main, 0)
      AND p.oid IN (instaid._find_function(schema_name, 'next_id', ''),
                    instaid._find_function(schema_name, 'next_id', '2205'),
                    instaid._find_function(schema_name, 'next_ids', '23 2205'));
    PERFORM instaid._execute_as(shard.owner, format(
        'GRANT EXECUTE ON FUNCTION %1$I.next_id(), %1$I.next_id(regclass),'
        ' %1$I.next_ids(integer, regclass) TO ', schema_name)
        || instaid._others_with('EXECUTE', p.proacl, p.proowner))
    FROM pg_proc AS p WHERE p.oid = shard.next_id;

    PERFORM instaid._execute_as(shard.owner, d) FROM unnest(defaults) AS d;
    PERFORM instaid.freeze_shard(schema_name) WHERE shard.is_frozen;
END $$;

---- One shard ID on two servers ----

-- What audit_servers() asks each server: which database it is, and the shard IDs that make IDs
-- there.  Later versions keep it, and what it returns.
CREATE FUNCTION instaid._server_state(OUT database text, OUT started_at numeric, OUT clock numeric,
                                      OUT shard_ids integer[])
    LANGUAGE sql VOLATILE PARALLEL RESTRICTED
BEGIN ATOMIC
    SELECT concat_ws(' ', (SELECT c.system_identifier FROM pg_control_system() AS c),
                     current_database()),
           -- null for a standby
           CASE WHEN NOT pg_is_in_recovery()
                THEN extract(epoch FROM pg_postmaster_start_time()) END,
           extract(epoch FROM clock_timestamp()), array_agg(s.shard_id ORDER BY s.shard_id)
    FROM instaid._list_shards() AS s CROSS JOIN LATERAL instaid._sequence_state(s.sequence) AS t
    -- a range of its own stops it, as on a worker of Citus
    WHERE NOT s.frozen AND t.problem IS NULL
      -- databases of one server have the same number, whether they use it or not
      AND (s.schema_name <> 'instaid' OR t.last_value IS NOT NULL OR NOT t.is_read);
END;

CREATE FUNCTION instaid.audit_servers(servers text[], OUT code text, OUT severity text,
                                      OUT object text, OUT problem text, OUT cure text)
    RETURNS SETOF record
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    dblink record;
    part record;
    state record;
    states jsonb;
    asked_at timestamptz;
    ahead numeric;
    detail text;
    context text;
BEGIN
    -- a list that a query made from nothing must not look like a good result
    IF (array_ndims(servers) = 1 AND array_position(servers, NULL) IS NULL) IS NOT TRUE THEN
        RAISE invalid_parameter_value USING
            MESSAGE = 'argument servers must name one or more foreign servers',
            DETAIL = 'It is null or empty, contains a null, or has more than one dimension.',
            HINT = 'audit() looks at this server alone.';
    END IF;
    SELECT n.nspname, n.nspowner INTO dblink
    FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
    WHERE e.extname = 'dblink';
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'extension "dblink" does not exist',
            DETAIL = 'audit_servers() asks the servers by dblink, which comes with PostgreSQL.',
            HINT = 'As a superuser: CREATE SCHEMA dblink; CREATE EXTENSION dblink SCHEMA dblink;';
    -- The owner of the schema could rename it, and give its name to another one.
    ELSIF NOT instaid._can_trust(quote_ident(current_user)::regrole, dblink.nspowner) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('schema %I of extension dblink belongs to another role',
                             dblink.nspname),
            DETAIL = 'That role could put other functions in place of the functions of dblink.',
            HINT = 'CREATE SCHEMA dblink; ALTER EXTENSION dblink SET SCHEMA dblink;';
    END IF;
    -- These fail without USAGE on the schema, and if there is no such server.
    PERFORM format('%I.dblink(text, text)', dblink.nspname)::regprocedure;
    PERFORM has_server_privilege(u.name, 'USAGE') FROM unnest(servers) AS u (name);
    SELECT jsonb_build_array(to_jsonb(s) || '{"name": "this server"}') INTO states
    FROM instaid._server_state() AS s;
    FOR part IN
        SELECT s.srvname AS name, r.rolname AS owner,
               NOT r.rolsuper AND me.rolsuper AS is_foreign
        FROM pg_foreign_server AS s JOIN pg_roles AS r ON r.oid = s.srvowner
             JOIN pg_roles AS me ON me.rolname = current_user
        WHERE s.srvname = ANY (servers) ORDER BY s.srvname
    LOOP
        object := quote_ident(part.name);
        IF part.is_foreign THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('server %s belongs to another role', object),
                DETAIL = format('Its owner, %I, could lead the connection of a superuser to code'
                                ' of that role.', part.owner),
                HINT = format('Connect as another role, or: ALTER SERVER %s OWNER TO %I;', object,
                              current_user);
        END IF;
        asked_at := clock_timestamp();
        BEGIN
            EXECUTE format('SELECT t.* FROM %I.dblink($1, $2) AS t (database text, started_at'
                           ' numeric, clock numeric, shard_ids integer[])', dblink.nspname)
            INTO STRICT state
            USING part.name::text, text 'SET LOCAL statement_timeout = 5000;'
                                        ' SELECT * FROM instaid._server_state()';
            states := states || (to_jsonb(state) || jsonb_build_object('name', object));
            -- It read its clock between the question and the answer.
            ahead := round(GREATEST(state.clock - extract(epoch FROM clock_timestamp()), 0)
                           + LEAST(state.clock - extract(epoch FROM asked_at), 0), 1);
            RETURN QUERY SELECT
                'clocks_apart', 'warning', object,
                format('its clock is %s s %s the clock of this server', abs(ahead),
                       CASE WHEN ahead > 0 THEN 'ahead of' ELSE 'behind' END),
                'Let a time service set both clocks.'
            WHERE abs(ahead) > 1;
        EXCEPTION WHEN OTHERS OR assert_failure OR query_canceled THEN
            GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, context = PG_EXCEPTION_CONTEXT;
            -- Before 10 s, this statement was cancelled: the server's own ends after 5 s, and only
            -- then does dblink see a cancel.  Later, a server hangs.
            IF SQLSTATE = '57014' AND clock_timestamp() < asked_at + interval '10 s'
               AND context !~ 'while executing query on ' THEN
                RAISE;
            END IF;
            RETURN QUERY VALUES (
                'server_does_not_answer', 'error', object, 'does not answer: ' || regexp_replace(
                    concat_ws(': ', SQLERRM, NULLIF(detail, '')), '[[:space:]]+', ' ', 'g'),
                'Start it, create the extension instaid of the same version in its database, or'
                ' correct the options of the server and the user mapping.');
        END;
    END LOOP;
    RETURN QUERY
    WITH answer AS MATERIALIZED (
        SELECT a.number, s.*
        FROM jsonb_array_elements(states) WITH ORDINALITY AS a (state, number),
             jsonb_to_record(a.state) AS s (name text, database text, started_at numeric,
                                            shard_ids integer[])),
    -- Two names of one server count once, and so does a primary with its standbys.  A copy that
    -- was promoted has started at another time.
    live AS MATERIALIZED (
        SELECT DISTINCT ON (a.database, a.started_at, u.shard_id) a.*, u.shard_id
        FROM answer AS a, unnest(a.shard_ids) AS u (shard_id)
        WHERE a.started_at IS NOT NULL OR NOT EXISTS (
            SELECT FROM answer AS p WHERE p.database = a.database AND p.started_at IS NOT NULL)
        ORDER BY a.database, a.started_at, u.shard_id, a.number)
    SELECT 'shard_id_on_two_servers', 'error', b.name,
           format('issues IDs of the same shards as %s: %s%s', a.name, array_to_string(
                      (array_agg(a.shard_id ORDER BY a.shard_id))[1:10], ', '),
                  CASE WHEN count(*) > 10 THEN ', ...' END),
           'If one is a copy of the other, stop it. Otherwise give each shard another ID on one of'
           ' the servers, with instaid.renumber_shard() or, for schema instaid, the setting'
           ' instaid.node_shard_id, or freeze it there.'
    FROM live AS a JOIN live AS b ON b.shard_id = a.shard_id AND b.number > a.number
    GROUP BY b.name, a.name ORDER BY b.name COLLATE "C", a.name COLLATE "C";
END $$;
COMMENT ON FUNCTION instaid.audit_servers IS 'findings about shard IDs and clocks of this '
'server and of others, which it asks by dblink; none if all is well';

---- Rights ----

-- Whatever role installs the extension, its objects belong to the owner of its schema, but for the
-- node's sequence: with mere rights on it, the owner of the database could not restore its grants.
-- Whatever default privileges grant, others have the rights that PostgreSQL itself gives to all,
-- and can use the schema, and read the views and the position of the node's sequence.
DO $$
DECLARE
    schema_owner CONSTANT regrole := (SELECT nspowner FROM pg_namespace WHERE nspname = 'instaid');
    grantees CONSTANT text := (SELECT string_agg(DISTINCT x.grantee::regrole::text, ', ')
                               FROM pg_default_acl AS d, aclexplode(d.defaclacl) AS x
                               WHERE x.grantee NOT IN (0, schema_owner));
    member record;
BEGIN
    FOR member IN
        SELECT CASE i.type WHEN 'view' THEN 'table' ELSE replace(i.type, '-', ' ') END
               || ' ' || i.identity AS name,
               CASE i.identity WHEN 'instaid.node_id_seq' THEN 'pg_database_owner'::regrole
                               ELSE schema_owner END AS owner,
               CASE WHEN i.type IN ('view', 'sequence') THEN 'SELECT'
                    WHEN i.type = 'schema' THEN 'USAGE' END AS right_of_all
        FROM pg_extension AS e
             JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass
                                AND d.refobjid = e.oid AND d.deptype = 'e'
             CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS i
        -- casts, and types of arrays and rows, have no owner or no rights of their own
        WHERE e.extname = 'instaid'
          AND (i.type NOT IN ('cast', 'type') OR i.identity = 'instaid.id')
    LOOP
        EXECUTE format('ALTER %s OWNER TO %s', member.name, member.owner);
        IF grantees IS NOT NULL THEN
            -- the owner can be one of them
            EXECUTE format('REVOKE ALL ON %1$s FROM %2$s; GRANT ALL ON %1$s TO %3$s',
                           member.name, grantees, member.owner);
        END IF;
        IF member.right_of_all IS NOT NULL THEN
            EXECUTE format('REVOKE ALL ON %1$s FROM PUBLIC; GRANT %2$s ON %1$s TO PUBLIC',
                           member.name, member.right_of_all);
        END IF;
    END LOOP;
END $$;
