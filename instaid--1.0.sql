/* instaid--1.0.sql, which "make script" assembles: do not edit it */

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

-- How to become the owner of an object.  In a superuser's session, SET ROLE is no wall: the code
-- of that role could RESET it.  The role that logged in is the one that pg_stat_activity shows.
CREATE FUNCTION instaid._how_to_be(role text) RETURNS text
    LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    RETURN CASE
        WHEN role = 'pg_database_owner'
        THEN 'SET ROLE pg_database_owner; as the owner of the database.'
        WHEN EXISTS (SELECT FROM pg_roles AS r
                     WHERE r.rolsuper AND (r.rolname = session_user OR r.oid IN (
                         SELECT a.usesysid FROM pg_stat_get_activity(pg_backend_pid()) AS a)))
        THEN format('Connect as %s. SET ROLE is not enough: its code could RESET it.', role)
        ELSE format('Connect as %s, or SET ROLE %1$s; if you trust it, and all whose code its'
                    ' tables run.', role) END;

-- Refuse a caller who does not own an object, even if it is a member of the owner or a superuser:
-- a function, and the CHECKs, indexes and triggers of a table, are code of the owner, which runs
-- with the rights of the caller.
CREATE FUNCTION instaid._check_owner(owner oid, kind text, object text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF pg_get_userbyid(owner) <> current_user THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of %s %s', kind, object),
            DETAIL = format('It belongs to role %I, and its code would run with the rights of %I.',
                            pg_get_userbyid(owner), current_user),
            HINT = instaid._how_to_be(quote_ident(pg_get_userbyid(owner)));
    END IF;
END $$;

-- The function of a schema with a name and argument types; null if there is none.  A look-up by
-- its name alone, as for regprocedure, would read the next_id() of thousands of schemas.
CREATE FUNCTION instaid._find_function(schema_name text, function_name name,
                                       argument_types oidvector) RETURNS oid
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT p.oid FROM pg_proc AS p
            WHERE p.proname = function_name AND p.proargtypes = argument_types AND p.pronamespace
                  = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = schema_name));
END $$;

-- The signature of a function, as regprocedure shows it to all who do not have its schema in their
-- search_path.  To show a regprocedure reads all functions of the name, as above.
CREATE FUNCTION instaid._signature(function oid) RETURNS text
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT format('%I.%I(%s)', n.nspname, p.proname, oidvectortypes(p.proargtypes))
            FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
            WHERE p.oid = function);
END $$;

-- The role of an owner.  That of pg_database_owner, which nobody can log in as, is its member.
CREATE FUNCTION instaid._ruler(owner oid) RETURNS regrole
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT CASE pg_get_userbyid(owner) WHEN 'pg_database_owner' THEN d.datdba
                                               ELSE owner END
            FROM pg_database AS d WHERE d.datname = current_database());
END $$;

-- Whether a role can rely on what another one owns and could replace: that one is a superuser, has
-- its rights already, or owns instaid.
CREATE FUNCTION instaid._can_trust(role oid, owner oid) RETURNS boolean
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT pg_has_role(r, role, 'USAGE') OR r = i.nspowner
            FROM pg_namespace AS i CROSS JOIN instaid._ruler(owner) AS r
            WHERE i.nspname = 'instaid');
END $$;

-- Whether the caller may name objects in a schema: its owner can put other objects in their place,
-- which matters to superusers, and to others as much as with each statement of theirs.
CREATE FUNCTION instaid._can_name(schema oid) RETURNS boolean
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT NOT r.rolsuper OR instaid._can_trust(r.oid, n.nspowner)
            FROM pg_namespace AS n JOIN pg_roles AS r ON r.rolname = current_user
            WHERE n.oid = schema);
END $$;

-- The roles that default privileges can give rights on new objects of the caller.
CREATE FUNCTION instaid._default_grantees() RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN concat_ws(', ', 'PUBLIC', (
        SELECT string_agg(DISTINCT x.grantee::regrole::text, ', ')
        FROM pg_default_acl AS d CROSS JOIN LATERAL aclexplode(d.defaclacl) AS x
             JOIN pg_roles AS r ON r.oid = x.grantee AND r.rolname <> current_user));

---- Checks that need C ----

-- Refuse a name that is too long, or empty.
-- Functions take names as text, because a cast to name truncates those that are too long.
CREATE FUNCTION instaid._check_name(what text, name text) RETURNS void
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_check_name';

---- The layout of an ID ----

-- The largest shard ID, as src/layout.h defines it.
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

-- The end of an epoch's IDs: the time of the first one that would be negative.
CREATE FUNCTION instaid._end_of_ids(epoch timestamptz) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN instaid.extract_timestamp(-9223372036854775808, epoch);

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

-- In the category of bigint, COALESCE(id, 0) and id IN (1, 2) find a common type.  A bigint
-- becomes an instaid.id only by assignment: if both casts were implicit, the order of operands
-- would decide which of the two types an expression has.
CREATE TYPE instaid.id (INPUT = instaid.id_in, OUTPUT = instaid.id_out, RECEIVE = instaid.id_recv,
                        SEND = instaid.id_send, LIKE = pg_catalog.int8, CATEGORY = 'N');
COMMENT ON TYPE instaid.id IS 'a bigint that is a string in JSON: JavaScript does not round it';

CREATE CAST (instaid.id AS bigint) WITHOUT FUNCTION AS IMPLICIT;
CREATE CAST (bigint AS instaid.id) WITHOUT FUNCTION AS ASSIGNMENT;

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

-- Refuse a caller who does not own a table, and a superuser's table whose place the owner of its
-- schema could give to another one before a command that names it.
CREATE FUNCTION instaid._check_table_owner(relation regclass) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    main record;
BEGIN
    SELECT c.relowner, n.oid, n.nspname, n.nspowner::regrole AS schema_owner INTO main
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = relation;
    PERFORM instaid._check_owner(main.relowner, 'table', relation::text);
    IF NOT instaid._can_name(main.oid) THEN
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
    RETURNS SETOF record LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    WITH RECURSIVE descendant (relid) AS (
        SELECT relation
        UNION SELECT i.inhrelid FROM descendant AS d, pg_inherits AS i WHERE i.inhparent = d.relid)
    -- not by a join, which can read all of pg_class
    SELECT d.relid, (SELECT c.relowner FROM pg_class AS c WHERE c.oid = d.relid)
    FROM descendant AS d ORDER BY d.relid;
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
    has_rows boolean := false;
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
    expires_at := instaid._end_of_ids(epoch);
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

    -- Two sessions cannot both find a partition missing: one waits for the other.
    EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent);
    -- it can have another owner now
    PERFORM instaid._check_table_owner(parent);
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
        IF part.default_partition IS NOT NULL THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I BETWEEN %L AND %s)',
                           part.default_partition, main.attname, part.first_id,
                           COALESCE(part.end_id - 1, 9223372036854775807)) INTO has_rows;
        END IF;
        IF has_rows THEN
            RAISE check_violation USING
                MESSAGE = format('default partition %s has rows from %s to %s',
                                 part.default_partition, part.since, part.until),
                DETAIL = 'They belong in the new partition. PostgreSQL does not move them.',
                HINT = 'Let its owner detach the default partition, create the others, and insert'
                       ' its rows into the table.';
        END IF;
        EXECUTE format(
            'CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%s) TO (%s)', name, parent,
            COALESCE(quote_literal(part.first_id), 'MAXVALUE'),
            COALESCE(quote_literal(part.end_id), 'MAXVALUE'));
        RETURN NEXT name::regclass;
    END LOOP;
END $$;
COMMENT ON FUNCTION instaid.create_partitions IS 'create and return the missing partitions of a '
'table by range of its IDs, one for each step, up to 1000; only for the owner';

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

-- The last value of a sequence, and its time if it is a tick; why it cannot serve as a source of
-- IDs, and what to do, null if it can; whether it was read: not while it is altered or dropped,
-- and without USAGE or SELECT on it or pg_read_all_stats.
CREATE FUNCTION instaid._sequence_state(sequence regclass, OUT last_value bigint,
                                        OUT issued_at timestamptz, OUT problem text, OUT cure text,
                                        OUT is_read boolean)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'instaid_sequence_state';

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

-- The last ID that a sequence issued; null if there is none, and if it was not read.
CREATE FUNCTION instaid._last_id(sequence regclass, shard_id integer,
                                epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED
    RETURN (SELECT instaid.make_id(s.issued_at, shard_id, s.last_value, epoch)
            FROM instaid._sequence_state(sequence) AS s
            WHERE s.issued_at >= epoch AND s.issued_at < instaid._end_of_ids(epoch));

---- Shards ----

-- A shard is declared by functions in the language instaid: see src/declaration.c.
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
CREATE FUNCTION instaid._shard_sequences(schema_name text) RETURNS SETOF regclass
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 1
    AS 'MODULE_PATHNAME', 'instaid_shard_sequences';

-- For superusers, too: it reads declarations and sequences, and runs no code of their owners.
CREATE VIEW instaid.shards AS
    SELECT s.schema_name, s.shard_id, s.epoch, s.sequence, i.last_id,
           instaid.extract_timestamp(i.last_id, s.epoch) AS last_issued_at,
           CASE WHEN i.newest_id IS NOT NULL
                THEN GREATEST(instaid.extract_timestamp(i.newest_id, s.epoch)
                              - pg_catalog.clock_timestamp(), '0'::interval)
           END AS drift, s.frozen,
           instaid._end_of_ids(s.epoch) AS expires_at,
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

-- Refuse a schema whose owner could put another function in place of one that the caller has
-- there, or would create.
CREATE FUNCTION instaid._check_ruler(schema_name text, function oid)
    RETURNS void
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner CONSTANT regrole := (SELECT instaid._ruler(n.nspowner) FROM pg_namespace AS n
                               WHERE n.nspname = schema_name);
BEGIN
    IF NOT instaid._can_trust(quote_ident(current_user)::regrole, owner) THEN
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

-- Refuse a sequence of a shard if the owner of a function of the shard, which can name any
-- sequence, or the caller does not have the rights of its owner.  To call that function, the
-- caller must own both.  Refuse a MINVALUE above 1, too: Citus gives such a range to each worker's
-- copy, which would issue values of another.
CREATE FUNCTION instaid._check_sequence(function oid, sequence regclass,
                                                   is_called boolean DEFAULT false) RETURNS void
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
    ELSIF pg_has_role(main.proowner, main.relowner, 'USAGE') IS NOT TRUE
          OR is_called AND main.proowner <> main.relowner THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('sequence %s does not belong to the owner of shard %I',
                             sequence, main.nspname),
            DETAIL = format('Role %I owns it, and role %I owns the function %s().',
                            pg_get_userbyid(main.relowner), pg_get_userbyid(main.proowner),
                            main.proname),
            HINT = format('Give both to one owner: ALTER SEQUENCE %s OWNER TO %I;', sequence,
                          pg_get_userbyid(main.proowner));
    ELSIF NOT pg_has_role(main.relowner, 'USAGE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of sequence %s', sequence),
            DETAIL = format('Its owner is %I.', pg_get_userbyid(main.relowner));
    ELSIF main.seqmin > 1 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence %s cannot serve as a source of IDs', sequence),
            DETAIL = format('It has a range of its own, %s to %s.', main.seqmin, main.seqmax),
            HINT = 'If Citus created this copy for a worker, use the shard on the coordinator.'
                   || CASE main.proname WHEN 'next_ids' THEN '' ELSE format(
                          ' If another shard has it: SELECT instaid_adopt.replace_copy(%L, %s);',
                          instaid._signature(function), instaid._free_shard_id(true)) END;
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
    default_ends_at CONSTANT timestamptz := instaid._end_of_ids(instaid.default_epoch());
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
                       THEN instaid._end_of_ids(epoch) END;
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

    -- a superuser who renumbers another role's shard puts no function there
    PERFORM instaid._check_ruler(schema_name, adopted) FROM pg_roles AS r
    WHERE r.rolsuper AND r.rolname = current_user AND NOT EXISTS (
        SELECT FROM pg_proc AS p WHERE p.oid = adopted AND p.proowner <> r.oid);

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
                           -- any role could have made a schema instaid_adopt
                           THEN ' Or let adopt_shard() of the extension instaid_adopt replace it.'
                           ELSE '' END;
    END IF;
    IF shard_id IS NULL THEN
        RETURN;
    ELSIF conflict.taken_by IS NOT NULL THEN
        RAISE duplicate_object USING
            MESSAGE = format('shard ID %s is taken by schema %I', shard_id, conflict.taken_by),
            DETAIL = CASE WHEN conflict.taken_by = 'instaid'
                          THEN 'It is the setting instaid.node_shard_id of this server. '
                          ELSE '' END || 'The two shards would issue the same IDs.',
            -- format() of a null is not null
            HINT = COALESCE('Shard ID ' || instaid._free_shard_id(false)
                            || ' is free in this database; instaid.shards lists those that are'
                               ' taken. A copy that is not adopted can use others.',
                            'No shard ID is free in this database: drop a shard that nothing'
                            ' uses. instaid.shards lists them.');
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

CREATE FUNCTION instaid.settled_id(schema_name text, sequence regclass DEFAULT NULL,
                                   wait boolean DEFAULT true) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_settled_id';
COMMENT ON FUNCTION instaid.settled_id IS 'an ID of a shard, or of a sequence of one of its '
'tables, up to which no open transaction has taken one; waits for those, or returns null if wait '
'is false; needs USAGE or SELECT on the sequence';

---- Moving and protecting shards ----

-- For superusers, too: it sets the page of a sequence, by its OID, and runs no code.
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
CREATE FUNCTION instaid._alter_sequence(sequence regclass, options text)
    RETURNS void LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET citus.enable_ddl_propagation = off AS $$
DECLARE
    file oid;
BEGIN
    PERFORM instaid._lock_sequence(sequence);
    file := pg_relation_filenode(sequence);
    EXECUTE format('ALTER SEQUENCE %s %s', sequence, options);
    IF pg_relation_filenode(sequence) = file THEN
        RAISE serialization_failure USING
            MESSAGE = format('sequence %s was renamed meanwhile', sequence), HINT = 'Try again.';
    END IF;
END $$;

-- Let the sequences of a shard end where they stand, or go on.  For superusers, too: it locks and
-- alters sequences only, which runs no code of their owners.
-- The lock waits for all transactions that have taken IDs.  The declared sequence comes first: all
-- who use another one have locked it, too.  Each is looked up when the lock of the one before is
-- there: by then, the schema can have another name, and the declaration another sequence.
CREATE FUNCTION instaid._set_frozen(schema_name text, frozen boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    declaration CONSTANT oid := instaid._find_function(schema_name, 'next_ids', '23 2205');
    done regclass[] := '{}'::regclass[];
    sequence regclass;
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
        PERFORM instaid._check_sequence(declaration, sequence);
        PERFORM instaid._lock_sequence(sequence);
        max_value := (pg_sequence_parameters(sequence)).maximum_value;
        PERFORM instaid._alter_sequence(sequence, 'NO MAXVALUE');
        IF frozen THEN
            -- A MAXVALUE must be above MINVALUE, and not below START.
            max_value := setval(sequence, LEAST(GREATEST(COALESCE(
                             pg_sequence_last_value(sequence), nextval(sequence)),
                             p.minimum_value + 1, p.start_value), instaid._max_tick() - 1))
            FROM pg_sequence_parameters(sequence) AS p;
            PERFORM instaid._alter_sequence(sequence, 'MAXVALUE ' || max_value);
        ELSIF max_value < instaid._max_tick() THEN
            -- It goes on in the next millisecond.  A dump without data has the last tick as
            -- MAXVALUE only.
            PERFORM setval(sequence, LEAST((COALESCE(pg_sequence_last_value(sequence), max_value)
                                            | instaid._max_sequence()) + 1, instaid._max_tick()));
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

---- Positions of a database ----

-- Names are literals, in the encoding that a statement sets; freeze_shard() needs READ COMMITTED.
-- The script ends where a role that its user need not trust could have made the functions.
-- For superusers, too: it reads catalogs and sequences, and runs no code of their owners.
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
               pg_get_userbyid(c.relowner) AS role,
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
                       l.sequence, 0, instaid.default_epoch()) AS i) AS p
             JOIN pg_class AS c ON c.oid = p.sequence
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
            RETURN NEXT format('SELECT instaid.restore_position(%L, %L, %L, %L, %L, %L);',
                               part.name, part.position, part.epoch, part.schema_name,
                               part.frozen, part.role);
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION instaid.dump_positions IS 'statements that let shards of another '
'state of this database go on above those of this one, and freeze the shards that are frozen here';

-- Only warnings: neither an error nor another's lock keeps psql from running the next statement.
-- For superusers, too: it alters sequences only, which runs no code of their owners.
CREATE FUNCTION instaid.restore_position(
    sequence_name text, last bigint, epoch timestamptz DEFAULT NULL,
    shard text DEFAULT NULL, frozen boolean DEFAULT false, owner text DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '1s' AS $$
DECLARE
    sequence regclass;
    options record;
    role name;
    detail text;
    hint text;
BEGIN
    SELECT * INTO options FROM pg_sequence WHERE seqrelid = to_regclass(sequence_name);
    sequence := options.seqrelid;
    SELECT pg_get_userbyid(relowner) INTO role FROM pg_class WHERE oid = sequence;
    IF last IS NULL THEN
        RAISE undefined_object USING MESSAGE = 'it was left out',
            HINT = 'Dump the positions again, and see the warnings.';
    ELSIF sequence IS NULL THEN
        RAISE undefined_object USING MESSAGE = 'it does not exist',
            DETAIL = 'No sequence has this name here.',
            HINT = 'If it has another name here, repeat the call with that name.';
    ELSIF role <> owner THEN
        -- any role could have made one of that name in the state that is gone
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'it belongs to another role',
            DETAIL = format('The position is of a sequence of %I, and this one belongs to %I.',
                            owner, role),
            HINT = 'If it is the same shard, repeat the call without the owner.';
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

-- How far load and a crash can take a sequence ahead of the clock.
CREATE FUNCTION instaid._drift_limit() RETURNS interval
    LANGUAGE c STABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'instaid_drift_limit';

---- Monitoring ----

-- Any role can declare a shard, also with a sequence that it may not use, or with another
-- relation: this counts for nothing.  A shard that can issue IDs hides only those of its owner.
-- For superusers, too: as shards, it runs no code of their owners.
CREATE VIEW instaid.metrics AS
    SELECT pg_catalog.pg_get_userbyid(s.owner) AS owner, s.shards, s.frozen_shards, s.unreadable,
           CASE WHEN s.age IS NOT NULL THEN GREATEST(-s.age, 0) END AS drift_seconds,
           CASE WHEN s.age < 0 THEN s.newest_shard END AS drift_shard,
           EXTRACT(epoch FROM instaid._drift_limit())::double precision AS drift_limit_seconds,
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
                       instaid._end_of_ids(l.epoch) AS expires_at
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
COMMENT ON VIEW instaid.metrics IS 'the shards of each role, for a monitoring system; it '
'leaves out what the caller does not see in the view shards, and counts it as unreadable';

---- Knowing before it breaks ----

---- What audit() looks at ----

-- A superuser may run audit() over everybody's objects.  Therefore:
--
-- - It runs nothing that a user wrote, waits for no lock, and does not fail.  What is parsed is
--   not deparsed: that can lock a table, and fails if it is nested deeply.  What is very long is
--   not read, nor what is very much of one role.  regclass and regprocedure are not used for
--   names: they look at all other objects of the name.
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

-- What names the role in a cure that nobody else can run; empty for the caller itself.  It cannot
-- end the comment.
CREATE FUNCTION instaid._as_role(owner oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN CASE WHEN pg_get_userbyid(owner) = current_user THEN ''
                ELSE format('/* as role %s: */ ', translate(
                         quote_ident(pg_get_userbyid(owner)), '*/', '__')) END;

-- The functions with nextval() in their text, and whether it is read: of each owner, the shortest
-- ones up to a limit.  The work is for quotes and comments above all, some 10 us for each: two
-- seconds at most.  8,192 copies are half the limit.  octet_length() does not decompress a text.
CREATE VIEW instaid._sources AS
    SELECT f.oid, f.owner, f.prosrc AS text, f.is_short
           AND sum(f.work) OVER (PARTITION BY f.owner ORDER BY f.work, f.oid) <= 200000 AS is_read
    FROM (SELECT p.oid, p.owner, p.prosrc, p.bytes <= 30000000 AS is_short,
                 CASE WHEN p.bytes <= 30000000
                      THEN length(p.prosrc) / 100
                           + length(p.prosrc) - length(translate(p.prosrc, '''-/$', ''))
                 END AS work
          FROM (SELECT p.oid, p.proowner AS owner, p.prosrc,
                       sum(octet_length(p.prosrc)) OVER (
                           PARTITION BY p.proowner ORDER BY octet_length(p.prosrc), p.oid) AS bytes
                FROM pg_proc AS p
                WHERE p.prolang = ANY (ARRAY(SELECT l.oid FROM pg_language AS l
                                             WHERE l.lanname IN ('sql', 'plpgsql')))
                  AND octet_length(p.prosrc) < 100000) AS p
          WHERE CASE WHEN p.bytes <= 30000000
                     THEN strpos(p.prosrc, 'instaid_sql._') = 0
                          AND p.prosrc ~* $re$\mnextval\M$re$
                     ELSE true END) AS f;

-- Copies of the published function: all, or those in schemas LIKE a pattern that belong to a role,
-- or to roles that it is a member of, whose texts alone are then read.
-- A copy calls nextval(), reads a clock and shifts to the left.
CREATE FUNCTION instaid._copies(
    pattern text DEFAULT '%', member name DEFAULT NULL, OUT classid oid, OUT objid oid,
    OUT schema oid, OUT owner oid, OUT object text)
    RETURNS SETOF record LANGUAGE sql STABLE PARALLEL RESTRICTED ROWS 100
    SET search_path = pg_catalog, pg_temp SET enable_nestloop = off SET jit = off
BEGIN ATOMIC
    -- The text of functions.  A string becomes a quote; a comment, and all between the first and
    -- the last dollar quotes, which often makes functions, a space.  What is open ends with the
    -- text.  Dollar quotes keep backslashes whatever standard_conforming_strings is.
    WITH place AS MATERIALIZED (
        SELECT n.oid FROM pg_namespace AS n
        WHERE n.nspname LIKE pattern
          -- neither the SQL edition, of which this can be another version, nor PostgreSQL
          AND n.nspname !~ '^(pg_|information_schema$|instaid(_sql|_adopt|$))'),
    source AS MATERIALIZED (
        SELECT p.oid, regexp_replace(p.text, $re$(?x)
                   \mE(') (?:[^'\\]|\\.)* '? | (') [^']* '? | --[^\n\r]*
                   | /\*(?:[^*]|\*+[^*/])*(?:\*+/)? | \$\w*\$ .* \$\w*\$$re$,
                   $re$\1\2 $re$, 'gi') AS code
        FROM instaid._sources AS p JOIN pg_proc AS f ON f.oid = p.oid
        -- of the owner, by which the limit counts: PostgreSQL reads no text of others
        WHERE p.is_read AND (member IS NULL OR pg_has_role(member, p.owner, 'MEMBER'))
          AND f.pronamespace IN (SELECT s.oid FROM place AS s)),
    -- What is parsed, and depends on a sequence.  pg_depend has no functions and operators of
    -- pg_catalog.
    parsed AS (
        SELECT t.classid, t.objid, t.tree
        FROM (SELECT 'pg_proc'::regclass::oid, p.oid, p.pronamespace, p.proowner,
                     p.prosqlbody::text
              FROM pg_proc AS p
              UNION ALL
              SELECT 'pg_attrdef'::regclass::oid, a.oid, c.relnamespace, c.relowner, a.adbin::text
              FROM pg_attrdef AS a JOIN pg_class AS c ON c.oid = a.adrelid)
             AS t (classid, objid, schema, owner, tree)
        WHERE t.schema IN (SELECT s.oid FROM place AS s)
          AND (member IS NULL OR pg_has_role(member, t.owner, 'MEMBER'))
          AND octet_length(t.tree) < 1000000 AND (t.classid, t.objid) IN (
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
    SELECT c.classid, c.objid, p.pronamespace, p.proowner,
           format('%I.%I(%s)', n.nspname, p.proname, oidvectortypes(p.proargtypes))
    FROM copy AS c JOIN pg_proc AS p ON p.oid = c.objid
         JOIN pg_namespace AS n ON n.oid = p.pronamespace
    -- not of extensions
    WHERE c.classid = 'pg_proc'::regclass
      AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = c.classid AND e.objid = c.objid
                                                   AND e.deptype = 'e')
    UNION ALL
    SELECT c.classid, c.objid, d.schema, d.owner, d.name
    FROM copy AS c JOIN instaid._defaults AS d ON d.oid = c.objid
    WHERE c.classid = 'pg_attrdef'::regclass AND NOT d.is_partition;
END;

-- The shards of this database.  has_sequence: any role may declare a shard with a sequence that it
-- has no rights on.
CREATE VIEW instaid._audited_shards AS
    SELECT p.pronamespace AS schema, s.schema_name, quote_ident(s.schema_name) AS name,
           s.shard_id, s.epoch, s.frozen, p.proowner AS owner, s.sequence::oid AS sequence,
           pg_has_role(p.proowner, c.relowner, 'USAGE') AS has_sequence,
           instaid._end_of_ids(s.epoch) AS expires_at
    FROM instaid._list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration
         LEFT JOIN pg_class AS c ON c.oid = s.sequence;

-- Columns whose default is a next_id(), or a function that adopt_shard() has made to call it; its
-- schema (null for instaid.next_id() with a shard ID), the sequence that it passes, and who can
-- replace it
CREATE VIEW instaid._id_columns AS
    WITH maker (oid, next_id) AS (
        SELECT p.oid, p.oid FROM pg_proc AS p WHERE p.proname = 'next_id'
        UNION
        -- of a function that calls several, one
        SELECT w.oid, min(p.oid)
        FROM pg_proc AS p JOIN pg_depend AS d ON d.refclassid = 'pg_proc'::regclass
                                             AND d.refobjid = p.oid
                                             AND d.classid = 'pg_proc'::regclass
             JOIN pg_proc AS w ON w.oid = d.objid AND w.pronamespace = p.pronamespace
                              AND w.proowner = p.proowner AND w.prorettype = p.prorettype
        WHERE p.proname = 'next_id' AND w.proname !~ '^next_ids?$' GROUP BY w.oid)
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
            WHERE x.privilege_type ~ privilege AND x.grantee <> ALL (owners)
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
           q.seqmax < instaid._max_tick() AS is_frozen, t.problem AS fault,
           -- it can be words
           CASE WHEN t.cure LIKE 'ALTER SEQUENCE %' THEN t.cure ELSE '-- ' || t.cure END AS cure,
           t.issued_at - clock_timestamp() AS ahead,
           instaid._drift_limit() AS ahead_limit,
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
                SELECT l.sequence, l.owner, instaid._end_of_ids(instaid.default_epoch()), false
                FROM instaid._lone_sequences AS l) AS m
               JOIN pg_class AS o ON o.oid = m.sequence AND o.relpersistence <> 't'
          WHERE pg_has_role(m.owner, o.relowner, 'USAGE') GROUP BY m.sequence) AS u
         JOIN pg_class AS c ON c.oid = u.sequence JOIN pg_namespace AS n ON n.oid = c.relnamespace
         JOIN pg_sequence AS q ON q.seqrelid = u.sequence
         CROSS JOIN LATERAL instaid._sequence_state(u.sequence) AS t;

-- The statements that give a shard a sequence of its own, above the IDs of the one that it has.
-- The one in its schema with the name of that one can have issued IDs before.
CREATE FUNCTION instaid._own_sequence(schema_name text, shard_id integer, epoch timestamptz,
                                      sequence oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT concat(CASE WHEN o.oid IS NULL THEN format('CREATE SEQUENCE %s; ', r.own) END,
                format('SELECT pg_catalog.setval(%1$L, GREATEST(pg_catalog.'
                       'pg_sequence_last_value(%2$L), pg_catalog.pg_sequence_last_value(%1$L)));'
                       ' CREATE OR REPLACE FUNCTION %3$I.next_ids(count integer, sequence regclass'
                       ' DEFAULT %1$L) RETURNS SETOF bigint LANGUAGE instaid STRICT COST 1'
                       ' AS %4$L; -- As the owner of the shard.', r.own, r.other, schema_name,
                       format('shard %s, epoch %s', shard_id,
                              (extract(epoch FROM epoch) * 1000)::bigint)))
            FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
                 CROSS JOIN LATERAL (SELECT format('%I.%I', schema_name, c.relname),
                                            format('%I.%I', n.nspname, c.relname))
                      AS r (own, other)
                 LEFT JOIN pg_class AS o ON o.relname = c.relname AND o.relkind = 'S'
                      AND o.relnamespace = (SELECT i.oid FROM pg_namespace AS i
                                            WHERE i.nspname = schema_name)
            WHERE c.oid = sequence AND c.relkind = 'S' AND n.nspname <> schema_name);

-- What comes before a cure that calls instaid_adopt; null if that is there.  Any role could have
-- made a schema of this name, whose functions the cure would call.
CREATE FUNCTION instaid._before_adopting() RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN CASE WHEN NOT EXISTS (SELECT FROM pg_extension AS e WHERE e.extname = 'instaid_adopt')
                THEN 'CREATE EXTENSION instaid_adopt; -- Then audit() has another cure.' END;

-- What a role, or PUBLIC as 0, must be granted to take IDs of a shard
CREATE FUNCTION instaid._missing_rights(role oid, schema_name text, sequence regclass)
    RETURNS SETOF text LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
BEGIN ATOMIC
    SELECT g.what FROM pg_proc AS p
         -- a declaration can name a sequence that its owner has no rights on
         JOIN pg_class AS q ON q.oid = sequence AND pg_has_role(p.proowner, q.relowner, 'USAGE')
         JOIN pg_namespace AS n ON n.oid = q.relnamespace
         CROSS JOIN LATERAL (VALUES
             (format('USAGE ON SEQUENCE %I.%I', n.nspname, q.relname),
              p.prosecdef OR has_sequence_privilege(role, sequence, 'USAGE, UPDATE')),
             (format('EXECUTE ON FUNCTION %I.next_id()', schema_name),
              has_function_privilege(role, p.oid, 'EXECUTE'))) AS g (what, is_granted)
    WHERE p.oid = instaid._find_function(schema_name, 'next_id', '') AND NOT g.is_granted;
END;

-- Findings with C, and about the SQL edition
CREATE VIEW instaid._edition_findings (code, severity, object, problem, cure) AS
    SELECT o.code, 'error', f.signature, o.problem,
           CASE o.code WHEN 'shard_function_name' THEN '-- Give it this name, or drop it.'
                WHEN 'shard_function_attributes'
                THEN format('ALTER FUNCTION %s VOLATILE STRICT PARALLEL UNSAFE;', f.signature)
                ELSE '-- Let it be as instaid.create_shard() creates it;'
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
           format('CREATE FUNCTION %s.next_id() RETURNS bigint LANGUAGE instaid STRICT COST 1 AS'
                  ' ''as next_ids(integer, regclass)''; -- As the owner of the shard. Then set the'
                  ' defaults again.', s.name)
    FROM instaid._audited_shards AS s
    WHERE NOT EXISTS (SELECT FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
                      WHERE p.pronamespace = s.schema AND p.pronargs = 0
                        AND (p.proname = 'next_id'
                             OR l.lanname = 'instaid' AND p.proowner = s.owner))
    UNION ALL
    -- It was not created by create_shard().
    SELECT 'future_epoch', 'error', s.name,
           format('its epoch, %s, is in the future: next_id() fails', s.epoch),
           '-- Declare it with an epoch of the past, as instaid.create_shard() does.'
    FROM instaid._audited_shards AS s WHERE s.epoch > now()
    UNION ALL
    -- DROP FUNCTION next_ids(...) CASCADE drops the shard's functions and the defaults of columns,
    -- and leaves a sequence with the COMMENT of a shard.
    SELECT 'lost_shard', 'error', format('%I.%I', n.nspname, c.relname),
           'is left of a shard: its functions were dropped, and the defaults of columns with them',
           '-- If its tables need IDs, call instaid.create_shard() with the shard ID and epoch'
           ' that it had, and another sequence_name, and adopt_column() for each. Then drop it.'
    FROM pg_description AS d JOIN pg_class AS c ON c.oid = d.objoid AND c.relkind = 'S'
         JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE d.classoid = 'pg_class'::regclass AND d.objsubid = 0
      AND d.description = 'ticks: ms since 1970, and a count in each'
      AND n.nspname <> 'instaid'
      AND NOT EXISTS (SELECT FROM instaid._audited_shards AS s
                      WHERE s.schema = c.relnamespace OR s.sequence = c.oid)
    UNION ALL
    -- It is not frozen or watched, and its shard ID can be taken twice.
    SELECT 'sql_edition_shard', 'warning', quote_ident(n.nspname),
           'is a shard of the SQL edition, which instaid.shards does not show',
           '-- Move it with sql-edition/to_extension.sql of that edition.'
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.proname = 'next_ids' AND p.pronargs = 2 AND n.nspname !~ '^pg_'
      AND strpos(p.prosrc, 'instaid_sql._next_ids(') > 0
    UNION ALL
    -- pg_upgrade creates the members of an extension one by one: types first, and then casts.
    -- PostgreSQL notes no dependency of an expression on a cast.
    SELECT 'upgrade_order', 'warning', r.name,
           'pg_upgrade creates ' || f.what || ' before the casts of instaid.id, and fails if it'
           ' needs one', f.cure
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
         CROSS JOIN LATERAL (
        -- The first statement prints what undoes the second one.  NOT VALID: to check rows runs
        -- code of the owner, and PostgreSQL refuses it if a composite type uses the domain.
        SELECT format('its CHECK %I', k.conname),
               format('SELECT pg_catalog.concat(%L, pg_catalog.pg_get_constraintdef(oid),'
                      ' '' NOT VALID;'') AS "after pg_upgrade" FROM pg_catalog.pg_constraint'
                      ' WHERE contypid OPERATOR(pg_catalog.=) %L::pg_catalog.regtype AND conname'
                      ' OPERATOR(pg_catalog.=) %L; ALTER DOMAIN %s DROP CONSTRAINT %I; -- Keep'
                      ' what this prints, for the owner of the domain.',
                      format('ALTER DOMAIN %s ADD CONSTRAINT %I ', r.name, k.conname), r.name,
                      k.conname, r.name, k.conname)
        FROM pg_constraint AS k
        WHERE k.contypid = t.oid AND k.contype = 'c' AND k.convalidated
        UNION ALL
        SELECT 'its DEFAULT',
               format('SELECT pg_catalog.concat(%L, pg_catalog.pg_get_expr(typdefaultbin, 0),'
                      ' '';'') AS "after pg_upgrade" FROM pg_catalog.pg_type WHERE oid'
                      ' OPERATOR(pg_catalog.=) %L::pg_catalog.regtype; ALTER DOMAIN %s DROP'
                      ' DEFAULT; -- Keep what this prints, for the owner of the domain.',
                      format('ALTER DOMAIN %s SET DEFAULT ', r.name), r.name, r.name)
        WHERE t.typtype = 'd' AND t.typdefaultbin IS NOT NULL
        UNION ALL
        -- it needs an operator class
        SELECT 'it', '-- Use a range of bigint instead.' WHERE t.typtype = 'r'
        UNION ALL
        -- a row type needs what columns have
        SELECT 'it', '-- Use bigint in the rows that it is made of, or drop it before pg_upgrade,'
                     ' and create it again afterwards.'
        WHERE u.of_table AND (t.typtype = 'd' OR c.relkind = 'c')) AS f (what, cure)
    WHERE n.nspname !~ '^pg_';

---- Findings of audit() ----

-- A finding is an error if IDs repeat, name a wrong shard, or are refused now; a warning if that
-- will happen, or if a guarantee is weaker.  A test finds codes by the severity beside them.
--
-- A cure is SQL: statements, and then a comment, or only a comment.  A comment contains no names,
-- since a name can have lines.  A cure can be sent as one query: what commits stands alone.

-- Copies of the published function, shards, and roles that could plant functions
CREATE VIEW instaid._shard_findings (code, severity, object, problem, cure) AS
    WITH shard AS MATERIALIZED (SELECT s.* FROM instaid._audited_shards AS s),
    copy AS MATERIALIZED (SELECT c.* FROM instaid._copies() AS c),
    -- the shard IDs of columns whose default is a copy, if ANALYZE has noted one that is free
    used (object, shard_id) AS (
        SELECT c.object, min(i.shard_id)
        FROM copy AS c JOIN pg_stats AS t
                  ON format('%I.%I.%I', t.schemaname, t.tablename, t.attname) = c.object
             CROSS JOIN LATERAL unnest(t.histogram_bounds::text::text[]) AS h (id)
             CROSS JOIN LATERAL (SELECT CASE WHEN h.id ~ '^[0-9]{16,19}$'
                                             THEN div(h.id::numeric, 1024) % 8192 END)
                                AS i (shard_id)
        WHERE c.classid = 'pg_attrdef'::regclass GROUP BY c.object
        HAVING min(i.shard_id) = max(i.shard_id) AND count(*) >= 10
           AND min(i.shard_id) NOT IN (SELECT s.shard_id FROM shard AS s))
    -- Two sessions can get the same nextval() and the same time.  A clock that is set back repeats
    -- IDs, too.
    SELECT 'copy', 'error', c.object, 'copy of the published function: its IDs repeat',
           CASE WHEN c.free IS NULL AND NOT c.is_shard
                THEN '-- No shard ID is free in this database. Drop a shard that nothing uses.'
                WHEN p.oid IS NULL
                THEN concat(c.before,
                            CASE WHEN NOT c.is_shard
                                 THEN format('SELECT instaid.create_shard(%L, %s, sequence_name =>'
                                             ' ''shard_id_seq''); ', n.nspname, COALESCE(
                                u.shard_id::text, format('%s /* a number that is free on all your'
                                                         ' servers */', c.free))) END,
                            format('SELECT * FROM instaid_adopt.adopt_column(%L, %L); -- As the'
                                   ' owner of the schema.', d.table_name,
                                   (parse_ident(d.column_name))[1]))
                WHEN p.proretset OR p.prorettype NOT IN ('bigint'::regtype, 'text'::regtype,
                                                         'varchar'::regtype)
                     -- a text that is no number, or an argument that could be a sequence
                     OR p.prorettype <> 'bigint'::regtype AND (p.prosrc ~* 'encode|to_hex'
                                                               OR p.pronargs > p.pronargdefaults)
                     OR p.proname = 'next_id' AND p.pronargs > p.pronargdefaults
                        AND p.proargtypes[0] IN ('bigint'::regtype, 'integer'::regtype,
                                                 'regclass'::regtype)
                THEN concat('-- Write it anew, under another name if it is next_id(), so that it'
                            ' calls next_id() of a shard', CASE WHEN p.pronargs > 0
                            THEN ', whose IDs do not contain its arguments' END, '.')
                -- beside next_id() of the SQL edition, which has an argument with a default
                WHEN c.is_shard AND p.proname = 'next_id' AND p.pronargs = 0 AND EXISTS (
                         SELECT FROM pg_proc AS o
                         WHERE o.pronamespace = c.schema AND o.proname = 'next_id'
                           AND o.pronargs = 1 AND o.pronargdefaults = 1)
                THEN format('DROP FUNCTION %s; -- If it is the default of columns, rename it'
                            ' first, and give them another one with adopt_column().', c.object)
                WHEN p.pronargs > p.pronargdefaults OR p.prorettype <> 'bigint'::regtype
                     OR c.is_shard
                -- it keeps the number of IDs in the published layout
                THEN format('%sSELECT instaid_adopt.replace_copy(%L%s); -- %sIf nothing calls it,'
                            ' drop it instead.', c.before, c.object,
                            CASE WHEN NOT c.is_shard AND p.prosrc !~ $re$<<\s*23\M$re$
                                 THEN format(', %s /* a number that is free on all your'
                                             ' servers */', c.free) END,
                            CASE WHEN c.is_shard THEN ''
                                 WHEN p.prosrc ~ $re$<<\s*23\M$re$
                                 THEN 'If its rows do not name one number, pass the one of the'
                                      ' error''s HINT. '
                                 -- the first one gives the shard its number
                                 WHEN bool_or(p.prosrc ~ $re$<<\s*23\M$re$)
                                      OVER (PARTITION BY c.schema)
                                 THEN 'After the other copies of the schema, which then keep'
                                      ' their number. ' END)
                WHEN p.proname = 'next_id' AND p.pronargs > 0
                THEN format('%sALTER FUNCTION %s RENAME TO old_next_id; SELECT'
                            ' instaid_adopt.adopt_shard(%L); -- Defaults follow it.', c.before,
                            c.object, n.nspname)
                WHEN NOT instaid._can_trust(p.proowner, n.nspowner)
                THEN '-- Read its text. If it is right, give the function and its sequence to the'
                     ' owner of the schema, and then call adopt_shards() as this role.'
                WHEN f.proowner <> p.proowner
                THEN format('%sALTER ROUTINE %I.next_id() RENAME TO old_next_id; %sSELECT'
                            ' instaid_adopt.adopt_shard(%L); -- Defaults follow it.',
                            instaid._as_role(f.proowner), n.nspname, c.before, n.nspname)
                ELSE CASE c.before WHEN '' THEN 'CALL instaid_adopt.adopt_shards();'
                          ELSE format('%sSELECT instaid_adopt.adopt_shard(%L);', c.before,
                                      n.nspname) END
                     || ' -- If the function has %%, write % first.' END
    -- a number of its own for each schema, from the largest one down
    FROM (SELECT c.*, c.schema IN (SELECT s.schema FROM shard AS s) AS is_shard,
                 instaid._as_role(c.owner) AS before,
                 (SELECT array_agg(n ORDER BY n DESC)
                  FROM generate_series(0, instaid._max_shard_id()) AS n
                  WHERE n NOT IN (SELECT s.shard_id FROM shard AS s))[
                     dense_rank() OVER (ORDER BY c.schema)] AS free
          FROM copy AS c) AS c
         JOIN pg_namespace AS n ON n.oid = c.schema
         LEFT JOIN pg_proc AS p ON c.classid = 'pg_proc'::regclass AND p.oid = c.objid
         LEFT JOIN pg_proc AS f ON f.oid = instaid._find_function(n.nspname, 'next_id', '')
         LEFT JOIN instaid._defaults AS d ON c.classid = 'pg_attrdef'::regclass AND d.oid = c.objid
         LEFT JOIN used AS u ON d.name = u.object
    UNION ALL
    SELECT 'unread_functions', 'warning', quote_ident(pg_get_userbyid(u.owner)),
           'has so much text in functions that not all of it was searched for copies of the'
           ' published function',
           '-- Look for nextval() in its longest functions, or drop those that nothing uses.'
    FROM instaid._sources AS u WHERE NOT u.is_read GROUP BY u.owner
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
         '-- Give one that is not frozen another shard ID, with instaid.renumber_shard() or, for'
         ' schema instaid, the setting instaid.node_shard_id.'),
        ('two_epochs', 'error', s.has_two_epochs,
         'its sequence serves a shard of another epoch, too: their IDs repeat',
         '-- Let its tables use a shard with a sequence of its own.'),
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
                THEN format('ALTER SEQUENCE %I.%I OWNER TO %I; -- If only this shard uses it.',
                            n.nspname, c.relname, pg_get_userbyid(s.owner))
                ELSE COALESCE(instaid._own_sequence(s.schema_name, s.shard_id, s.epoch,
                                                    s.sequence),
                              '-- Let its tables use a shard with a sequence of its own.') END),
        -- large tables need long to move to another shard
        ('shard_ends', CASE WHEN s.expires_at < now() THEN 'error' ELSE 'warning' END,
         NOT s.frozen AND s.expires_at < now() + interval '5 years',
         format('its IDs end at %s', s.expires_at),
         '-- Let its tables use another shard, with a later epoch. Then freeze this one.'))
        AS f (code, severity, applies, problem, cure) WHERE f.applies
    UNION ALL
    -- Calls by name, new defaults, and restored ones find it, or are ambiguous.
    SELECT 'planted_function', 'error',
           format('%s.%I(%s)', s.name, p.proname, oidvectortypes(p.proargtypes)),
           format('role %I has put it into the schema of a shard: calls of %s() can fail, or find'
                  ' it', o.rolname, p.proname),
           format('DROP ROUTINE %s.%I(%s);', s.name, p.proname, oidvectortypes(p.proargtypes))
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
        SELECT n.nspname AS schema_name, c.relname AS table_name, a.attname AS column_name,
               c.relowner AS owner
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
               -- one up to the next partition, or a year of them
               (SELECT format('%sSELECT * FROM instaid.create_partitions(%L, %L, %L, %L, %L); --'
                              ' Another step will do, too.', instaid._as_role(i.owner),
                              i.table_name, t.since,
                              COALESCE(r.begins_at, t.since + interval '1 year'),
                              -- without days, which daylight saving time changes
                              COALESCE(make_interval(secs => extract(
                                           epoch FROM r.begins_at - t.since)::float8),
                                       '1 month'), s.epoch)
                FROM (SELECT CASE WHEN r.takes_now THEN r.ends_at
                                  ELSE GREATEST(date_trunc('month', now()), r.ended_at) END)
                     AS t (since)) AS cure
        FROM id_column AS i JOIN shard AS s ON s.schema = i.maker
             JOIN pg_partitioned_table AS p ON p.partrelid = i.relid AND p.partattrs[0] = i.attnum
             CROSS JOIN LATERAL (
            SELECT bool_or(l.is_now) AS takes_now,
                   COALESCE(bool_or(l.is_now) FILTER (WHERE l.from_time IS NOT NULL), false)
                       AS has_range_of_now,
                   bool_or(l.end_id IS NULL) AS is_open, max(l.to_time) AS ends_at,
                   -- the partitions before and after now
                   max(l.to_time) FILTER (WHERE l.end_id <= l.now_id) AS ended_at,
                   min(l.from_time) FILTER (WHERE l.first_id > l.now_id) AS begins_at,
                   -- numeric, because a bound can be any bigint
                   (array_agg(l.end_id::numeric - l.first_id ORDER BY l.end_id DESC))[1]
                       > max(l.end_id)::numeric - min(l.now_id) AS is_short
            FROM (SELECT l.*, n.id AS now_id, (l.first_id <= n.id) IS NOT FALSE
                                          AND (l.end_id > n.id) IS NOT FALSE AS is_now
                  FROM instaid.min_id(now(), s.epoch) AS n (id)
                       CROSS JOIN LATERAL instaid.list_partitions(i.relid, s.epoch) AS l) AS l)
            AS r
        WHERE NOT s.frozen AND NOT i.is_partition AND p.partstrat = 'r' AND p.partnatts = 1)
    -- CREATE TABLE ... (LIKE template INCLUDING ALL) keeps the template's shard and its CHECK.
    -- Tables of a frozen shard can use another one, for example with a later epoch.
    SELECT 'foreign_default', 'error', i.name,
           concat(format('its default uses the shard in schema %I', n.nspname),
                  '; CHECK ' || k.names || ' reads the shard ID and can refuse another'),
           concat(instaid._as_role(i.owner), k.drops,
                  format('SELECT * FROM instaid_adopt.adopt_column(%L, %L); -- New IDs then have'
                         ' the number of this schema''s shard.', i.table_name,
                         (parse_ident(i.column_name))[1]))
    FROM id_column AS i JOIN shard AS s ON s.schema = i.schema AND NOT s.frozen
         JOIN shard AS o ON o.schema = CASE WHEN i.maker <> i.schema THEN i.maker
                                            ELSE i.sequence_schema END
         JOIN pg_namespace AS n ON n.oid = o.schema
         CROSS JOIN LATERAL (
        SELECT string_agg(quote_ident(k.conname), ', ' ORDER BY k.conname),
               string_agg(format('ALTER TABLE %s DROP CONSTRAINT %I; ', i.table_name, k.conname),
                          '' ORDER BY k.conname)
        FROM pg_constraint AS k JOIN pg_depend AS d ON d.objid = k.oid
        WHERE k.conrelid = i.relid AND k.contype = 'c' AND i.attnum = ANY (k.conkey)
          AND d.classid = 'pg_constraint'::regclass AND d.refclassid = 'pg_proc'::regclass
          AND d.refobjid = 'instaid.extract_shard_id(bigint)'::regprocedure)
             AS k (names, drops)
    WHERE o.schema <> i.schema AND NOT i.is_partition
    UNION ALL
    SELECT 'ticks', 'error', d.name,
           'its default takes values of a shard''s sequence, which are not IDs',
           format('%sSELECT * FROM instaid_adopt.adopt_column(%L, %L);', instaid._as_role(d.owner),
                  d.table_name, (parse_ident(d.column_name))[1])
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
           '-- Unless all who insert trust this role, let the column use a shard of the table''s'
           ' owner, or of a superuser.'
    FROM id_column AS i CROSS JOIN LATERAL (
        SELECT string_agg(DISTINCT quote_ident(pg_get_userbyid(u.owner)), ', ')
        FROM unnest(i.makers) AS u (owner)
        WHERE u.owner <> i.owner AND NOT instaid._can_trust(i.owner, u.owner)) AS r (names)
    WHERE r.names IS NOT NULL AND NOT i.is_partition
    UNION ALL
    -- It can insert only with IDs that it has from elsewhere.
    SELECT 'missing_right', 'warning', i.name,
           format('role %s can insert, and cannot take IDs', x.name),
           -- any role can name the shard of another one in a default
           CASE WHEN bool_and(pg_has_role(i.owner, s.owner, 'USAGE'))
                THEN string_agg(DISTINCT format('GRANT %s TO %s;', r, x.name), ' ')
                ELSE '-- If this role may take IDs of the shard, grant it USAGE on the schema and'
                     ' the sequence.' END
    FROM id_column AS i JOIN shard AS s ON s.schema = i.maker AND NOT s.frozen
         JOIN pg_class AS c ON c.oid = i.relid AND c.relkind IN ('r', 'p')
         CROSS JOIN LATERAL (
        SELECT DISTINCT x.grantee, CASE x.grantee WHEN 0 THEN 'PUBLIC'
                                   ELSE quote_ident(pg_get_userbyid(x.grantee)) END
        FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(
                 COALESCE(c.relacl, acldefault('r', c.relowner)) || a.attacl) AS x
        WHERE a.attrelid = c.oid AND x.privilege_type = 'INSERT'
          -- row security can stop a role whose right is a default one
          AND (NOT c.relrowsecurity OR x.grantee = 0
               OR EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = x.grantee AND r.rolbypassrls)
               OR EXISTS (SELECT FROM pg_policy AS p CROSS JOIN unnest(p.polroles) AS r (role)
                          WHERE p.polrelid = c.oid AND p.polpermissive AND p.polcmd IN ('a', '*')
                            AND (r.role = 0 OR pg_has_role(x.grantee, r.role, 'MEMBER'))))
    ) AS x (role, name)
         CROSS JOIN LATERAL instaid._missing_rights(x.role, s.schema_name, s.sequence) AS r
    WHERE i.sequence IS NULL AND NOT i.is_partition GROUP BY i.name, x.name
    UNION ALL
    SELECT 'narrow_column', 'error', format('%I.%I.%I', n.nspname, c.relname, a.attname),
           format('its type, %s, cannot hold IDs', format_type(t.oid, NULL)),
           concat('-- ', CASE WHEN pg_get_userbyid(c.relowner) = current_user THEN 'Make'
                              ELSE 'As its owner, make' END, ' it bigint: with adopt_column() on'
                  ' the column that takes the IDs, which also widens references, or, if no table'
                  ' of another role refers to it or inherits it, with ALTER TABLE. Both rewrite'
                  ' the table.')
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
           CASE i.relkind
                WHEN 'r' THEN format('CREATE UNIQUE INDEX ON %s (%s); -- Writers wait for it,'
                                     ' unless you add CONCURRENTLY.', i.table_name, i.column_name)
                ELSE '-- Create one. The ID must be the partition key.' END
    FROM id_column AS i
    WHERE i.relkind IN ('r', 'p') AND NOT i.is_partition AND NOT EXISTS (
        SELECT FROM pg_index AS x WHERE x.indrelid = i.relid AND x.indisunique AND x.indisvalid
        AND x.indnkeyatts = 1 AND x.indkey[0] = i.attnum AND x.indpred IS NULL)
    UNION ALL
    SELECT 'lost_default', 'warning', quote_ident(b.schema_name),
           format('has IDs of shard %s, which this database does not have, in columns without'
                  ' default: %s', v.shard_id,
                  string_agg(DISTINCT format('%I.%I', b.table_name, b.column_name), ', ')),
           format('%sSELECT instaid.create_shard(%L, %s); %s -- If their shard was dropped. Pass'
                  ' the epoch that it had, if it is not the default.',
                  instaid._as_role(b.owner), b.schema_name, v.shard_id,
                  string_agg(DISTINCT format('SELECT * FROM instaid_adopt.adopt_column(%L, %L);',
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
    GROUP BY b.schema_name, b.owner, v.shard_id
    UNION ALL
    -- A foreign key follows its table when this is renamed and becomes a partition of another.
    SELECT 'partition_reference', 'warning', format('%I.%I.%I', n.nspname, c.relname, f.conname),
           format('its foreign key refers to %I.%I alone, a partition of %s: it refuses the IDs of'
                  ' other partitions', o.nspname, t.relname, p.table_name),
           '-- As its owner, drop it, and add it again with a reference to the whole table.'
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
        -- From the first row on, it keeps a partition for the same time from being created.
        ('default_partition', 'warning', p.takes_now AND NOT p.has_range_of_now,
         CASE WHEN p.ended_at IS NULL THEN 'no other partition takes the IDs of now'
              ELSE format('its partitions ended at %s', p.ended_at) END
         || ': rows go to the default partition',
         '-- As its owner, detach the default partition, create others, and insert its rows into'
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
         '-- Use instaid.freeze_shard() or instaid.thaw_shard() on the shard.'),
        ('end_of_ids', 'error', q.fault IS NULL AND q.is_at_end AND NOT q.is_frozen,
         'has reached the last ID: next_id() fails',
         format('ALTER SEQUENCE %s RESTART; -- If it was set too far by mistake.', q.name)),
        ('unlogged', 'warning', c.relpersistence = 'u',
         'is unlogged: it forgets its IDs in a crash',
         format('ALTER SEQUENCE %s SET LOGGED;', q.name)),
        -- The clock was set back.
        ('ahead_of_clock', 'warning', q.ahead > q.ahead_limit AND NOT q.is_at_end,
         format('its IDs are %s ahead of the clock, by more than %s', q.ahead, q.ahead_limit),
         '-- Set the server''s clock right, and wait until it has passed the time of these IDs. If'
         ' that takes too long, let the owner of the tables RESTART the sequence and give new IDs'
         ' to rows of the future, in one transaction.'),
        ('sequence_right', 'warning', r.names IS NOT NULL,
         format('role %s has UPDATE on it, and could set it back, so that IDs repeat', r.names),
         format('REVOKE UPDATE ON SEQUENCE %s FROM %s CASCADE;', q.name, r.names)))
        AS f (code, severity, applies, problem, cure) WHERE f.applies;

CREATE FUNCTION instaid.audit(fold boolean DEFAULT true, OUT code text,
                                         OUT severity text, OUT object text, OUT problem text,
                                         OUT cure text) RETURNS SETOF record
    LANGUAGE sql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET enable_nestloop = off SET jit = off
BEGIN ATOMIC
    -- one row for what more than 20 objects have in common, whatever their cures
    SELECT f.code, f.severity, CASE WHEN f.is_folded
               THEN format('%s and %s others', f.object, f.count - 1) ELSE f.object END,
           f.problem, CASE WHEN f.is_folded AND f.has_cures
               -- after a comment
               THEN format(E'%s\n-- This is for the first one. audit(fold => false) has all.',
                           f.cure)
               ELSE f.cure END
    FROM (SELECT f.*, count(*) OVER w, row_number() OVER o AS place,
                 (fold AND count(*) OVER w > 20) IS TRUE AS is_folded,
                 min(f.cure) OVER w <> max(f.cure) OVER w AS has_cures
          FROM (SELECT a.code, a.severity, a.object, a.problem,
                       CASE WHEN strpos(a.cure, 'instaid_adopt.') > 0
                            THEN COALESCE(instaid._before_adopting(), a.cure) ELSE a.cure END
                FROM (TABLE instaid._shard_findings UNION TABLE instaid._column_findings
                      UNION TABLE instaid._sequence_findings
                      UNION TABLE instaid._edition_findings) AS a)
               AS f (code, severity, object, problem, cure)
          WINDOW w AS (PARTITION BY f.code, f.severity, f.problem),
                 o AS (w ORDER BY f.object COLLATE "C", f.cure COLLATE "C")) AS f
    WHERE NOT f.is_folded OR f.place = 1
    ORDER BY f.severity COLLATE "C", f.object COLLATE "C", f.code COLLATE "C", f.cure COLLATE "C";
END;
COMMENT ON FUNCTION instaid.audit(boolean) IS
'what makes IDs repeat or fail, or will do so; one row for more than 20 alike, unless fold is'
' false';

-- Write another shard ID into a declaration.  To freeze waits for all calls; to thaw leaves the
-- millisecond, in which IDs of a smaller shard ID would be below those that were issued.  A shard
-- that was frozen leaves it, too, so that settled_id() does not go back.
CREATE FUNCTION instaid._change_shard_id(declaration oid, sequence regclass, shard_id integer)
    RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard record;
BEGIN
    PERFORM instaid._check_sequence(declaration, sequence);
    -- nobody else freezes or thaws it
    PERFORM instaid._lock_sequence(sequence);
    SELECT s.* INTO shard FROM instaid._list_shards() AS s WHERE s.declaration = $1;
    PERFORM instaid._set_frozen(shard.schema_name, true);
    EXECUTE regexp_replace(pg_get_functiondef(declaration), E'(.*shard )\\d+',
                           E'\\1' || shard_id);
    -- by its name, which can have become that of another function
    IF NOT EXISTS (SELECT FROM instaid._list_shards() AS s
                   WHERE s.declaration = $1 AND s.shard_id = $3) THEN
        RAISE serialization_failure USING
            MESSAGE = 'the shard was renamed or replaced meanwhile', HINT = 'Try again.';
    END IF;
    PERFORM instaid._set_frozen(shard.schema_name, false);
    PERFORM instaid._set_frozen(shard.schema_name, true) WHERE shard.frozen;
END $$;

---- Renumbering ----

-- For superusers, too: it locks and alters sequences, and replaces functions of the language
-- instaid or of this edition, which runs no code of their owner.
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
    IF NOT pg_has_role(shard.owner, 'USAGE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of shard %I', schema_name),
            DETAIL = format('Its owner is %s.', shard.owner);
    END IF;
    IF shard.shard_id = renumber_shard.shard_id THEN
        RAISE NOTICE 'schema % is shard % already', quote_ident(schema_name), shard_id;
    ELSE
        PERFORM instaid._check_new_shard(schema_name, shard_id, shard.epoch, shard.declaration);
        PERFORM instaid._change_shard_id(shard.declaration, shard.sequence, shard_id);
    END IF;
END $$;
COMMENT ON FUNCTION instaid.renumber_shard IS 'wait for the transactions that have taken IDs of a '
'shard, and let new IDs name another one; needs to own the shard, and CREATE on its schema';

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
    command text;
    last bigint;
BEGIN
    SELECT s.* INTO shard FROM instaid._sql_edition_shards AS s
    WHERE s.schema_name = _convert_shard.schema_name;
    IF NOT FOUND THEN
        RAISE undefined_object USING
            MESSAGE = format('schema %I is not a shard of the SQL edition', schema_name);
    END IF;
    PERFORM instaid._check_owner(shard.owner, 'shard', quote_ident(schema_name));
    PERFORM instaid._check_new_shard(schema_name, shard.shard_id, shard.epoch,
                                     COALESCE(main, shard.next_id));
    PERFORM instaid._check_ruler(schema_name, shard.next_id);

    -- The tables are locked before the sequences, as by an INSERT.
    tables := ARRAY(
        SELECT DISTINCT a.relid FROM pg_depend AS d JOIN instaid._defaults AS a ON a.oid = d.objid
        WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_proc'::regclass
          AND d.refobjid = shard.next_id AND a.owner = shard.owner
          AND instaid._can_name(a.schema) ORDER BY a.relid);
    FOREACH command IN ARRAY tables::text[] LOOP
        EXECUTE format('LOCK TABLE ONLY %s IN ACCESS EXCLUSIVE MODE', command);
    END LOOP;
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
        PERFORM instaid._alter_sequence(part.name, 'AS bigint INCREMENT BY 1'
            ' NO MINVALUE NO MAXVALUE START WITH 1 RESTART CACHE 1 NO CYCLE');
        PERFORM instaid.advance_past(part.name, last, shard.epoch);
    END LOOP;

    -- The text of a default, without its cast to the old type, will call the next_id() of the
    -- extension.  So that no string in it is taken for this cast, the type has another name.
    EXECUTE format('ALTER DOMAIN %I.id_sequence RENAME TO %I', schema_name, other_type);
    defaults := ARRAY(
        SELECT format('ALTER TABLE ONLY %s ALTER %s SET DEFAULT %s', a.table_name, a.column_name,
                      replace(pg_get_expr(a.expression, a.relid),
                              format('::%I.%I', schema_name, other_type), ''))
        FROM instaid._defaults AS a
             JOIN pg_depend AS d ON d.classid = 'pg_attrdef'::regclass AND d.objid = a.oid
                                AND d.refclassid = 'pg_proc'::regclass
                                AND d.refobjid = shard.next_id
        WHERE a.relid = ANY (tables));
    EXECUTE format('ALTER DOMAIN %I.%I RENAME TO id_sequence', schema_name, other_type);

    EXECUTE (SELECT format(
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
                                      'SECURITY DEFINER'))
    FROM pg_proc AS p WHERE p.oid = shard.next_id);
    -- Default privileges must not let other roles take IDs.
    FOR command IN
        SELECT format('REVOKE ALL ON FUNCTION %s FROM %s', p.oid::regprocedure,
                      x.grantee::regrole)
        FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(p.proacl) AS x
        WHERE x.grantee <> p.proowner AND p.oid <> COALESCE(main, 0)
          AND p.oid IN (instaid._find_function(schema_name, 'next_id', ''),
                        instaid._find_function(schema_name, 'next_id', '2205'),
                        instaid._find_function(schema_name, 'next_ids', '23 2205'))
        UNION ALL
        SELECT * FROM (
            SELECT format('GRANT EXECUTE ON FUNCTION %1$I.next_id(), %1$I.next_id(regclass),'
                          ' %1$I.next_ids(integer, regclass) TO ', schema_name)
                   || instaid._others_with('EXECUTE', p.proacl, p.proowner)
            FROM pg_proc AS p WHERE p.oid = shard.next_id) AS g (command)
        WHERE g.command IS NOT NULL
        UNION ALL
        SELECT d FROM unnest(defaults) AS d
    LOOP
        EXECUTE command;
    END LOOP;
    PERFORM instaid.freeze_shard(schema_name) WHERE shard.is_frozen;
END $$;

---- Rights ----

-- Whatever role installs the extension, its objects belong to the owner of its schema, but for the
-- node's sequence: with mere rights on it, the owner of the database could not restore its grants.
-- Whatever default privileges grant or revoke, others have the rights that PostgreSQL itself gives
-- to all, and can use the schema, and read the views and the position of the node's sequence.
DO $$
DECLARE
    schema_owner CONSTANT regrole := (SELECT nspowner FROM pg_namespace
                                    WHERE nspname = 'instaid');
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
                    WHEN i.type IN ('schema', 'language', 'type') THEN 'USAGE'
                    WHEN i.type IN ('function', 'procedure') THEN 'EXECUTE' END AS right_of_all,
               -- only PostgreSQL calls them
               d.objid IN (SELECT unnest(ARRAY[l.lanplcallfoid, l.lanvalidator])
                           FROM pg_language AS l) AS is_handler
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
            EXECUTE format('REVOKE ALL ON %s FROM PUBLIC', member.name);
            IF NOT member.is_handler THEN
                EXECUTE format('GRANT %s ON %s TO PUBLIC', member.right_of_all, member.name);
            END IF;
        END IF;
    END LOOP;
END $$;
