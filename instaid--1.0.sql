/* instaid--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION instaid" to load this file. \quit

-- Schema instaid may have been there before, and may be anybody's.  Nothing below
-- is to be looked up in it, and nothing may be in it now that a user could take for
-- ours.  What its owner adds later is no different from any schema's.
SET LOCAL search_path TO pg_catalog, pg_temp;

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_depend
               WHERE refclassid = 'pg_namespace'::regclass AND refobjid = 'instaid'::regnamespace
                 AND classid <> 'pg_extension'::regclass) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'schema "instaid" is not empty',
            DETAIL = 'The extension needs the schema for itself.',
            HINT = 'Drop what is in it, or rename it, and create the extension again.';
    END IF;
END
$$;

-- The functions are for everybody; what generates needs rights on a sequence.
GRANT USAGE ON SCHEMA instaid TO PUBLIC;
COMMENT ON SCHEMA instaid IS
'Instagram-style IDs: 64-bit, sorted by time, named by shard';

--
-- The layout of an ID
--

CREATE FUNCTION instaid.default_epoch() RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN '2011-08-24 21:07:01.721+00'::timestamptz;
COMMENT ON FUNCTION instaid.default_epoch() IS
'the epoch that Instagram published: 1314220021721 ms after 1970-01-01 00:00 UTC';

CREATE FUNCTION instaid.make_id(created_at timestamptz, shard_id integer, sequence bigint,
                                epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_make_id';
COMMENT ON FUNCTION instaid.make_id(timestamptz, integer, bigint, timestamptz) IS
'pack an ID from a time (rounded down to the ms, from the epoch to 2^41 ms after it), a shard ID (0 to 8191) and a sequence value (taken modulo 1024)';

CREATE FUNCTION instaid.extract_timestamp(id bigint,
                                          epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS timestamptz
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_extract_timestamp';
COMMENT ON FUNCTION instaid.extract_timestamp(bigint, timestamptz) IS
'the time of an ID, to the millisecond';

CREATE FUNCTION instaid.extract_shard_id(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_extract_shard_id';
COMMENT ON FUNCTION instaid.extract_shard_id(bigint) IS
'the shard that made an ID, 0 to 8191';

CREATE FUNCTION instaid.extract_sequence(id bigint) RETURNS integer
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_extract_sequence';
COMMENT ON FUNCTION instaid.extract_sequence(bigint) IS
'the sequence field of an ID, 0 to 1023';

CREATE FUNCTION instaid.decode(id bigint,
                               epoch timestamptz DEFAULT instaid.default_epoch(),
                               OUT created_at timestamptz, OUT shard_id integer, OUT sequence integer)
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_decode';
COMMENT ON FUNCTION instaid.decode(bigint, timestamptz) IS
'the time, the shard and the sequence field of an ID';

--
-- Time ranges
--

CREATE FUNCTION instaid.min_id(created_at timestamptz,
                               epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_min_id';
COMMENT ON FUNCTION instaid.min_id(timestamptz, timestamptz) IS
'the smallest ID of a millisecond, over all shards; a time outside the format counts as its first or last millisecond';

CREATE FUNCTION instaid.max_id(created_at timestamptz,
                               epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_max_id';
COMMENT ON FUNCTION instaid.max_id(timestamptz, timestamptz) IS
'the largest ID of a millisecond, over all shards; a time outside the format counts as its first or last millisecond';

CREATE FUNCTION instaid.min_id_from(created_at timestamptz,
                                    epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_min_id_from';
COMMENT ON FUNCTION instaid.min_id_from(timestamptz, timestamptz) IS
'the smallest ID that is not older than a time; null if all are older';

CREATE FUNCTION instaid.max_id_before(created_at timestamptz,
                                      epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_max_id_before';
COMMENT ON FUNCTION instaid.max_id_before(timestamptz, timestamptz) IS
'the largest ID that is older than a time; -1 if none is';

-- Not STRICT, which would keep an AND from being inlined.  Each time is used
-- once, so that it may be a subselect.  ">=", since "> the largest before" does
-- not prune the partition that ends there.
CREATE FUNCTION instaid.created_between(id bigint, from_time timestamptz, to_time timestamptz,
                                        epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN id >= instaid.min_id_from(from_time, epoch) AND id <= instaid.max_id_before(to_time, epoch);
COMMENT ON FUNCTION instaid.created_between(bigint, timestamptz, timestamptz, timestamptz) IS
'whether an ID was made at from_time or later, and before to_time; is inlined, so an index on the ID is used and partitions are pruned';

CREATE FUNCTION instaid.integer_now() RETURNS bigint
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN instaid.min_id(pg_catalog.now());
COMMENT ON FUNCTION instaid.integer_now() IS
'the smallest ID of now(), with the default epoch, for tools that partition on integers';

CREATE FUNCTION instaid.interval_to_ids(length interval) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_interval_to_ids';
COMMENT ON FUNCTION instaid.interval_to_ids(interval) IS
'by how much two IDs differ whose times are so far apart (1 ms to 2^40 ms, no months), for tools that partition on integers';

--
-- Text forms
--

CREATE FUNCTION instaid.to_shortcode(id bigint) RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_to_shortcode';
COMMENT ON FUNCTION instaid.to_shortcode(bigint) IS
'an ID as Instagram has it in addresses: base64url digits, the most significant first, no padding';

CREATE FUNCTION instaid.from_shortcode(shortcode text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_from_shortcode';
COMMENT ON FUNCTION instaid.from_shortcode(text) IS
'the ID of a shortcode';

CREATE FUNCTION instaid.to_base32(id bigint) RETURNS text
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_to_base32';
COMMENT ON FUNCTION instaid.to_base32(bigint) IS
'an ID as 13 of Crockford''s base32 digits, which sort as the IDs do (COLLATE "C")';

CREATE FUNCTION instaid.from_base32(base32 text) RETURNS bigint
    LANGUAGE c IMMUTABLE STRICT PARALLEL SAFE
    AS 'MODULE_PATHNAME', 'instaid_from_base32';
COMMENT ON FUNCTION instaid.from_base32(text) IS
'the ID of 13 base32 digits; case and hyphens are ignored, I and L are 1, O is 0';

--
-- A bigint that is a string in JSON
--

-- Its operators, and the operator classes of its indexes, are bigint's, as varchar's
-- are text's.  Operators of its own would have to be in pg_catalog to be found,
-- operator classes of its own would have to be in integer_ops to compare with an
-- integer, and pg_upgrade drops what an extension adds to that family.

CREATE TYPE instaid.id;

CREATE FUNCTION instaid.id_in(cstring) RETURNS instaid.id
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE
    AS 'int8in';
COMMENT ON FUNCTION instaid.id_in(cstring) IS 'I/O';

CREATE FUNCTION instaid.id_out(instaid.id) RETURNS cstring
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE
    AS 'int8out';
COMMENT ON FUNCTION instaid.id_out(instaid.id) IS 'I/O';

CREATE FUNCTION instaid.id_recv(internal) RETURNS instaid.id
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE
    AS 'int8recv';
COMMENT ON FUNCTION instaid.id_recv(internal) IS 'I/O';

CREATE FUNCTION instaid.id_send(instaid.id) RETURNS bytea
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE
    AS 'int8send';
COMMENT ON FUNCTION instaid.id_send(instaid.id) IS 'I/O';

-- The category is bigint's, so that COALESCE(id, 0) and id IN (1, 2) find a common type.
CREATE TYPE instaid.id (
    INPUT = instaid.id_in,
    OUTPUT = instaid.id_out,
    RECEIVE = instaid.id_recv,
    SEND = instaid.id_send,
    LIKE = pg_catalog.int8,
    CATEGORY = 'N'
);
COMMENT ON TYPE instaid.id IS
'a bigint that JSON has as a string, so that JavaScript does not round it';

CREATE CAST (instaid.id AS bigint) WITHOUT FUNCTION AS IMPLICIT;
COMMENT ON CAST (instaid.id AS bigint) IS 'the same bits; gives the type bigint''s operators';

CREATE CAST (bigint AS instaid.id) WITHOUT FUNCTION AS IMPLICIT;
COMMENT ON CAST (bigint AS instaid.id) IS 'the same bits';

CREATE FUNCTION instaid.id(integer) RETURNS instaid.id
    LANGUAGE internal IMMUTABLE STRICT PARALLEL SAFE
    AS 'int48';
COMMENT ON FUNCTION instaid.id(integer) IS 'convert integer to instaid.id';

CREATE CAST (integer AS instaid.id) WITH FUNCTION instaid.id(integer) AS IMPLICIT;
COMMENT ON CAST (integer AS instaid.id) IS 'for integer constants';

--
-- The generator
--

CREATE FUNCTION instaid.next_id(sequence regclass, shard_id integer,
                                epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'instaid_next_id';
COMMENT ON FUNCTION instaid.next_id(regclass, integer, timestamptz) IS
'the next ID of a sequence, greater than all that it gave before; needs USAGE or UPDATE on the sequence';

CREATE FUNCTION instaid.next_ids(sequence regclass, shard_id integer, count integer,
                                 epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS SETOF bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE ROWS 1000
    AS 'MODULE_PATHNAME', 'instaid_next_ids';
COMMENT ON FUNCTION instaid.next_ids(regclass, integer, integer, timestamptz) IS
'the next 1 to 1000000 IDs of a sequence, in increasing order; needs USAGE or UPDATE on the sequence';

--
-- Shards
--

CREATE FUNCTION instaid.last_id(sequence regclass, shard_id integer) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
    AS 'MODULE_PATHNAME', 'instaid_last_id';
COMMENT ON FUNCTION instaid.last_id(regclass, integer) IS
'the last ID that a sequence gave, or reserved for a session; null if none, or without USAGE or SELECT on the sequence';

CREATE FUNCTION instaid.list_shards(OUT schema_name name, OUT shard_id integer,
                                    OUT epoch timestamptz, OUT sequence regclass) RETURNS SETOF record
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 10
    AS 'MODULE_PATHNAME', 'instaid_list_shards';
COMMENT ON FUNCTION instaid.list_shards() IS
'what the next_id() functions of this database pass to instaid.next_id(), null for the default epoch; see the view instaid.shards';

CREATE VIEW instaid.shards AS
    SELECT s.schema_name, s.shard_id, e.epoch, s.sequence, i.last_id, t.last_issued_at,
           CASE WHEN t.last_issued_at IS NOT NULL
                THEN GREATEST(t.last_issued_at - pg_catalog.clock_timestamp(), '0'::interval) END AS drift,
           -- as freeze_shard() leaves it: the last tick is the MAXVALUE
           ((i.last_id >> 23 << 10) | (i.last_id & 1023)) = q.seqmax AS frozen,
           -- the time of the first ID that would be negative
           instaid.extract_timestamp(-9223372036854775808, e.epoch) AS expires_at
    FROM instaid.list_shards() AS s
         CROSS JOIN LATERAL (SELECT COALESCE(s.epoch, instaid.default_epoch())) AS e (epoch)
         CROSS JOIN LATERAL (SELECT instaid.last_id(s.sequence, s.shard_id)) AS i (last_id)
         CROSS JOIN LATERAL (SELECT instaid.extract_timestamp(i.last_id, e.epoch)) AS t (last_issued_at)
         JOIN pg_catalog.pg_sequence AS q ON q.seqrelid = s.sequence;
GRANT SELECT ON instaid.shards TO PUBLIC;
COMMENT ON VIEW instaid.shards IS
'the shards of this database, one row each; last_id and what follows from it need USAGE or SELECT on the sequence';
COMMENT ON COLUMN instaid.shards.schema_name IS 'schema that is the shard';
COMMENT ON COLUMN instaid.shards.shard_id IS 'number of the shard in its IDs, 0 to 8191';
COMMENT ON COLUMN instaid.shards.epoch IS 'time from which its IDs count milliseconds';
COMMENT ON COLUMN instaid.shards.sequence IS 'sequence that its next_id() advances';
COMMENT ON COLUMN instaid.shards.last_id IS 'last ID that the sequence gave, or reserved for a session; on a standby and after a crash up to a second more';
COMMENT ON COLUMN instaid.shards.last_issued_at IS 'time in that ID';
COMMENT ON COLUMN instaid.shards.drift IS 'how far that time is ahead of the clock';
COMMENT ON COLUMN instaid.shards.frozen IS 'whether freeze_shard() has stopped it';
COMMENT ON COLUMN instaid.shards.expires_at IS 'end of the shard: its IDs would be negative from here on';

-- Refuses what cannot be a shard, and keeps others from making one until we commit.
CREATE FUNCTION instaid.check_new_shard(schema_name name, shard_id integer, epoch timestamptz, sequence text,
                                        adopted regprocedure DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO'
    SET timezone = 'UTC'
AS $$
DECLARE
    expires_at timestamptz;
    other record;
BEGIN
    IF schema_name IS NULL OR shard_id IS NULL OR epoch IS NULL OR sequence IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = 'a shard cannot be made of a null',
            DETAIL = format('The schema is %L, the shard ID is %L, the epoch is %L, the sequence is %L.',
                            schema_name, shard_id, epoch, sequence);
    END IF;
    IF schema_name = 'instaid' THEN
        RAISE reserved_name USING
            MESSAGE = 'schema instaid cannot be a shard',
            DETAIL = 'It holds the functions of the extension.',
            HINT = 'Choose another schema.';
    END IF;
    IF shard_id NOT BETWEEN 0 AND 8191 THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('shard ID %s is out of range', shard_id),
            DETAIL = 'A shard ID is between 0 and 8191.';
    END IF;
    expires_at := instaid.extract_timestamp(-9223372036854775808, epoch);   -- refuses -infinity
    IF epoch > clock_timestamp() OR expires_at <= clock_timestamp() THEN
        RAISE invalid_parameter_value USING
            MESSAGE = CASE WHEN epoch > clock_timestamp() THEN format('epoch %s is in the future', epoch)
                           ELSE format('epoch %s leaves no time: its IDs ended at %s', epoch, expires_at) END,
            DETAIL = format('The clock reads %s; an epoch can be up to 34.8 years before it.', clock_timestamp()),
            HINT = 'The default epoch serves until 2046; a new shard may take today''s date.';
    END IF;

    -- Two sessions cannot both find a shard ID free: one waits for the other,
    -- and list_shards() then sees what it did, whatever the isolation level.
    PERFORM pg_advisory_xact_lock('pg_class'::regclass::oid::integer,
                                  'instaid.shards'::regclass::oid::integer);

    SELECT s.* INTO other FROM instaid.list_shards() AS s
        WHERE s.schema_name = check_new_shard.schema_name;
    IF FOUND THEN
        RAISE duplicate_function USING
            MESSAGE = format('schema %I already has a function next_id()', schema_name),
            DETAIL = format('It makes the schema shard %s.', other.shard_id),
            HINT = 'A schema is one shard: choose another schema, if this is not the one that was meant.';
    END IF;
    SELECT s.* INTO other FROM instaid.list_shards() AS s
        WHERE s.shard_id = check_new_shard.shard_id;
    IF FOUND THEN
        RAISE duplicate_object USING
            MESSAGE = format('shard ID %s is taken by schema %I', shard_id, other.schema_name),
            DETAIL = 'IDs of the two shards would repeat each other.',
            HINT = (SELECT COALESCE(format('Shard ID %s is free', min(n)), 'No shard ID is free')
                           || '; instaid.shards lists those that are taken.'
                    FROM generate_series(0, 8191) AS n
                    WHERE n NOT IN (SELECT s.shard_id FROM instaid.list_shards() AS s));
    END IF;
    SELECT p.oid::regprocedure AS routine, p.proname, p.pronargs INTO other
        FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = schema_name AND p.proname IN ('next_id', 'next_ids')
          AND p.oid IS DISTINCT FROM adopted::oid
        ORDER BY p.proname, p.pronargs LIMIT 1;
    IF FOUND THEN
        RAISE duplicate_function USING
            MESSAGE = format('schema %I already has a function %s()', schema_name, other.proname),
            DETAIL = format('It is %s.', other.routine),
            HINT = CASE WHEN other.proname = 'next_id' AND other.pronargs = 0
                        THEN format('To take it over: SELECT instaid.adopt_shard(%L, %s); to keep it, rename it', schema_name, shard_id)
                        ELSE 'Rename it' END
                   || format(' first: ALTER ROUTINE %s RENAME TO old_%s; column defaults that use it go on using it.',
                             other.routine, other.proname);
    END IF;

    IF expires_at < clock_timestamp() + interval '5 years' THEN
        RAISE WARNING USING
            MESSAGE = format('shard %s ends in less than five years', shard_id),
            DETAIL = format('With epoch %s its last ID is made at %s.', epoch, expires_at);
    END IF;
    SELECT count(*) AS shards, min(s.schema_name::text) AS schema_name INTO other
        FROM instaid.list_shards() AS s
        WHERE COALESCE(s.epoch, instaid.default_epoch()) <> check_new_shard.epoch;
    IF other.shards > 0 THEN
        RAISE NOTICE USING
            MESSAGE = format('epoch %s differs from that of other shards', epoch),
            DETAIL = format('Shards with another epoch: %s, such as schema %I. Their IDs and this shard''s do not sort by time together.',
                            other.shards, other.schema_name);
    END IF;
END
$$;
COMMENT ON FUNCTION instaid.check_new_shard(name, integer, timestamptz, text, regprocedure) IS
'what create_shard() and adopt_shard() check';

CREATE FUNCTION instaid.define_shard(schema_name name, shard_id integer, epoch timestamptz, sequence regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO'
    SET timezone = 'UTC'
AS $$
DECLARE
    arguments text := format('%s, %L::timestamptz', shard_id, epoch);
    out_argument text;
    rights text;
BEGIN
    -- A next_id() that is replaced keeps the name of its result, and whose rights it has.
    SELECT pg_get_function_arguments(p.oid), CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END INTO out_argument, rights
        FROM pg_proc AS p WHERE p.oid = to_regprocedure(format('%I.next_id()', schema_name));

    -- Standard bodies: they are inlined, follow what they name through a
    -- rename, do not depend on search_path, and are dumped with the schema.
    EXECUTE format('CREATE OR REPLACE FUNCTION %I.next_id(%s) RETURNS bigint'
                   ' LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE %s'
                   ' RETURN instaid.next_id(%L::regclass, %s)',
                   schema_name, out_argument, rights, sequence, arguments);
    EXECUTE format('CREATE FUNCTION %I.next_id(sequence regclass) RETURNS bigint'
                   ' LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE'
                   ' RETURN instaid.next_id(sequence, %s)',
                   schema_name, arguments);
    EXECUTE format('CREATE FUNCTION %I.next_ids(count integer) RETURNS SETOF bigint'
                   ' LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE ROWS 1000'
                   ' RETURN instaid.next_ids(%L::regclass, %s, count, %L::timestamptz)',
                   schema_name, sequence, shard_id, epoch);
    EXECUTE format('COMMENT ON FUNCTION %I.next_id() IS %L', schema_name,
                   format('the next ID of shard %s, unique in all its tables', shard_id));
    EXECUTE format('COMMENT ON FUNCTION %I.next_id(regclass) IS %L', schema_name,
                   format('the next ID of shard %s by a sequence of a table''s own, unique in that table only', shard_id));
    EXECUTE format('COMMENT ON FUNCTION %I.next_ids(integer) IS %L', schema_name,
                   format('the next 1 to 1000000 IDs of shard %s, in increasing order', shard_id));
    EXECUTE format('COMMENT ON SEQUENCE %s IS %L', sequence,
                   format('ticks of shard %s: ms since %s << 10 | sequence', shard_id, epoch));
END
$$;
COMMENT ON FUNCTION instaid.define_shard(name, integer, timestamptz, regclass) IS
'create the functions of a shard, for create_shard() and adopt_shard()';

CREATE FUNCTION instaid.create_shard(schema_name name, shard_id integer,
                                     epoch timestamptz DEFAULT instaid.default_epoch(),
                                     sequence_name name DEFAULT 'table_id_seq') RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    sequence text := quote_ident(schema_name) || '.' || quote_ident(sequence_name);
BEGIN
    PERFORM instaid.check_new_shard(schema_name, shard_id, epoch, sequence);
    IF to_regclass(sequence) IS NOT NULL THEN
        RAISE duplicate_table USING
            MESSAGE = format('relation %s already exists', sequence),
            HINT = 'Pass another sequence_name, or drop the relation if nothing uses it.';
    END IF;

    IF to_regnamespace(quote_ident(schema_name)) IS NULL THEN
        EXECUTE format('CREATE SCHEMA %I', schema_name);
    END IF;
    EXECUTE format('CREATE SEQUENCE %s', sequence);
    PERFORM instaid.define_shard(schema_name, shard_id, epoch, sequence::regclass);
END
$$;
COMMENT ON FUNCTION instaid.create_shard(name, integer, timestamptz, name) IS
'make a schema a shard: create it if it is missing, its sequence, and its functions next_id(), next_id(regclass) and next_ids(integer); needs CREATE on the database or on the schema';

--
-- Protecting a shard
--

CREATE FUNCTION instaid.advance_past(sequence regclass, id bigint) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'instaid_advance_past';
COMMENT ON FUNCTION instaid.advance_past(regclass, bigint) IS
'let a sequence give only IDs above that one from now on, whatever its shard; needs UPDATE on the sequence';

CREATE FUNCTION instaid.shard_sequences(schema_name name) RETURNS SETOF regclass
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
BEGIN ATOMIC
    SELECT s.sequence FROM instaid.list_shards() AS s
    WHERE s.schema_name = shard_sequences.schema_name
    UNION
    -- Those that column defaults pass to next_id(regclass).  Anybody may write
    -- such a default, so table and sequence must be the shard owner's.
    SELECT c.oid::regclass
    FROM pg_namespace AS n
         JOIN pg_proc AS p ON p.pronamespace = n.oid AND p.proname = 'next_id'
         JOIN pg_depend AS f ON f.refclassid = 'pg_proc'::regclass AND f.refobjid = p.oid
                            AND f.classid = 'pg_attrdef'::regclass
         JOIN pg_attrdef AS a ON a.oid = f.objid
         JOIN pg_class AS t ON t.oid = a.adrelid AND t.relowner = p.proowner
         JOIN pg_depend AS d ON d.classid = f.classid AND d.objid = f.objid
                            AND d.refclassid = 'pg_class'::regclass
         JOIN pg_class AS c ON c.oid = d.refobjid AND c.relowner = p.proowner
                           AND c.relkind = 'S' AND c.relpersistence <> 't'
    WHERE n.nspname = shard_sequences.schema_name
    ORDER BY 1;
END;
COMMENT ON FUNCTION instaid.shard_sequences(name) IS
'the sequences that give the IDs of a shard: that of its next_id(), and those that tables of its owner have of their own';

CREATE FUNCTION instaid.freeze_shard(schema_name name) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    sequence regclass;
    tick bigint;
BEGIN
    FOR sequence IN SELECT instaid.shard_sequences(schema_name) LOOP
        -- This lock waits for all transactions that have taken IDs, and keeps
        -- others out until we commit.
        EXECUTE format('ALTER SEQUENCE %s NO MAXVALUE', sequence);
        -- a MAXVALUE is above MINVALUE, and not below START
        EXECUTE format('SELECT setval(seqrelid, GREATEST(last_value, seqmin + 1, seqstart))'
                       ' FROM %s, pg_sequence WHERE seqrelid = %L::regclass', sequence, sequence) INTO tick;
        EXECUTE format('ALTER SEQUENCE %s MAXVALUE %s', sequence, tick);
    END LOOP;
    IF NOT FOUND THEN
        RAISE undefined_object USING
            MESSAGE = format('schema %I is not a shard', schema_name),
            HINT = 'instaid.shards lists the shards of this database.';
    END IF;
END
$$;
COMMENT ON FUNCTION instaid.freeze_shard(name) IS
'wait for the transactions that have taken IDs of a shard, then let it give no more; needs ownership of its sequences';

CREATE FUNCTION instaid.thaw_shard(schema_name name) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    sequence regclass;
BEGIN
    FOR sequence IN SELECT instaid.shard_sequences(schema_name) LOOP
        EXECUTE format('ALTER SEQUENCE %s NO MAXVALUE', sequence);
    END LOOP;
    IF NOT FOUND THEN
        RAISE undefined_object USING
            MESSAGE = format('schema %I is not a shard', schema_name),
            HINT = 'instaid.shards lists the shards of this database.';
    END IF;
END
$$;
COMMENT ON FUNCTION instaid.thaw_shard(name) IS
'let a shard that freeze_shard() stopped give IDs again; needs ownership of its sequences';

--
-- Adopting what exists
--

CREATE FUNCTION instaid.adopt_shard(schema_name name, shard_id integer,
                                    epoch timestamptz DEFAULT instaid.default_epoch(),
                                    sequence regclass DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO'
    SET timezone = 'UTC'
    SET row_security = off
AS $$
DECLARE
    adopted CONSTANT regprocedure := to_regprocedure(quote_ident(schema_name) || '.next_id()');
    sequence_text CONSTANT text := COALESCE(sequence::text, quote_ident(schema_name) || '.table_id_seq');
    owner regrole;
    other record;
    tables text;
    queries text;
    before bigint;
    after bigint;
    id bigint;
    failure text;
    youngest bigint;
    place text;
BEGIN
    PERFORM instaid.check_new_shard(schema_name, shard_id, epoch, sequence_text, adopted);
    IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
        RAISE invalid_transaction_state USING
            MESSAGE = 'adopt_shard() must run in a READ COMMITTED transaction',
            DETAIL = 'Else it would not see the IDs of the transactions that it waits for.',
            HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED;';
    END IF;
    SELECT p.proowner INTO owner FROM pg_proc AS p
        WHERE p.oid = adopted AND p.prokind = 'f' AND p.prorettype = 'bigint'::regtype AND NOT p.proretset;
    IF NOT FOUND THEN
        RAISE undefined_function USING
            MESSAGE = format('schema %I has no function next_id() that gives a bigint', schema_name),
            DETAIL = COALESCE((SELECT format('%s gives %s.', adopted, COALESCE(pg_get_function_result(p.oid), 'nothing'))
                               FROM pg_proc AS p WHERE p.oid = adopted),
                              format('There is no %s %I.', CASE WHEN to_regnamespace(quote_ident(schema_name)) IS NULL
                                                                THEN 'schema' ELSE 'function next_id() in schema' END, schema_name)),
            HINT = 'If its IDs are made by a function of another name: ALTER FUNCTION ... RENAME TO next_id; column defaults'
                   ' go on using it. If they are not made by a function, use create_shard() and adopt_column().';
    END IF;
    sequence := to_regclass(sequence_text);
    IF NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = sequence AND c.relkind = 'S' AND c.relpersistence <> 't') THEN
        RAISE EXCEPTION USING
            ERRCODE = CASE WHEN sequence IS NULL THEN 'undefined_table' ELSE 'wrong_object_type' END,
            MESSAGE = format('%s cannot be the sequence of a shard', sequence_text),
            DETAIL = CASE WHEN sequence IS NULL THEN 'It does not exist.' ELSE 'It is not a sequence, or it is temporary.' END,
            HINT = 'Pass the sequence that next_id() uses.';
    END IF;

    -- A sequence counts the ticks of one epoch, and nothing else.
    SELECT s.schema_name INTO other FROM instaid.list_shards() AS s
        WHERE s.sequence = adopt_shard.sequence AND COALESCE(s.epoch, instaid.default_epoch()) <> adopt_shard.epoch;
    IF FOUND THEN
        RAISE object_in_use USING
            MESSAGE = format('%s cannot be the sequence of a shard', sequence_text),
            DETAIL = format('It is that of schema %I, whose epoch is another.', other.schema_name),
            HINT = 'Pass the sequence that next_id() uses, and its epoch.';
    END IF;
    SELECT pg_describe_object(d.classid, d.objid, d.objsubid) AS name INTO other
        FROM pg_depend AS d
        WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = sequence AND d.classid = 'pg_attrdef'::regclass
          AND NOT EXISTS (SELECT FROM pg_depend AS f WHERE f.classid = d.classid AND f.objid = d.objid
                                                       AND f.refclassid = 'pg_proc'::regclass AND f.refobjid = adopted)
        UNION ALL
        SELECT pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
        FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence AND d.deptype = 'i'
        LIMIT 1;
    IF FOUND THEN
        RAISE object_in_use USING
            MESSAGE = format('%s cannot be the sequence of a shard', sequence_text),
            DETAIL = format('It also counts for %s.', other.name),
            HINT = 'Pass the sequence that next_id() uses. If it is this, give the column another default first; in a shard, adopt_column() does.';
    END IF;

    -- Whoever inserts with the old function as a default is waited for, and who
    -- comes later sees the new one.  A call that waits for the sequence ends as
    -- it began, in the old one: so IDs go on a second ahead of the clock.
    SELECT string_agg(DISTINCT c.oid::regclass::text, ', '),
           string_agg(format('SELECT max(%I)::bigint AS id, %L AS place FROM %s', t.attname,
                             format('%s.%I', c.oid::regclass, t.attname), c.oid::regclass), ' UNION ALL ')
               FILTER (WHERE COALESCE(NULLIF(y.typbasetype, 0), y.oid) IN ('bigint'::regtype, 'instaid.id'::regtype)
                         AND c.relkind <> 'v')
        INTO tables, queries
        FROM pg_depend AS d JOIN pg_attrdef AS a ON a.oid = d.objid
             JOIN pg_class AS c ON c.oid = a.adrelid
             JOIN pg_attribute AS t ON t.attrelid = a.adrelid AND t.attnum = a.adnum
             JOIN pg_type AS y ON y.oid = t.atttypid
        WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = adopted AND d.classid = 'pg_attrdef'::regclass
          AND c.relkind IN ('r', 'p', 'v') AND c.relpersistence <> 't';
    IF tables IS NOT NULL THEN
        EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', tables);
    END IF;

    -- What the old function is, it says itself: it is called once.  currval() fails
    -- for a sequence that this session has not used.
    BEGIN
        BEGIN
            before := currval(sequence);
        EXCEPTION WHEN object_not_in_prerequisite_state THEN
        END;
        EXECUTE format('SELECT %I.next_id()', schema_name) INTO id;
        BEGIN
            after := currval(sequence);
        EXCEPTION WHEN object_not_in_prerequisite_state THEN
        END;
    EXCEPTION WHEN OTHERS THEN
        failure := SQLERRM;
    END;
    IF failure IS NOT NULL THEN
        RAISE WARNING USING
            MESSAGE = format('cannot check what %s makes', adopted),
            DETAIL = format('It fails: %s.', failure),
            HINT = 'See that its shard ID, its epoch and its sequence are those that were passed; if not, roll back.';
    ELSIF id IS NULL OR abs(extract(epoch FROM instaid.extract_timestamp(id, epoch) - clock_timestamp())) > 86400 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('the IDs of %s are not of epoch %s', adopted, epoch),
            DETAIL = format('It gave %s, of %s with that epoch. The clock reads %s.',
                            COALESCE(id::text, 'null'), instaid.extract_timestamp(id, epoch), clock_timestamp()),
            HINT = format('If its layout is Instagram''s, its epoch is about %s. If not, use create_shard() and adopt_column().',
                          COALESCE(epoch - (instaid.extract_timestamp(id, epoch) - clock_timestamp()), epoch));
    ELSIF after IS NOT DISTINCT FROM before THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('%s does not use sequence %s', adopted, sequence),
            HINT = 'Pass the sequence that it uses.';
    END IF;
    EXECUTE format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE NO CYCLE', sequence);

    IF queries IS NOT NULL THEN
        EXECUTE format('SELECT id, place FROM (%s) AS i ORDER BY id DESC NULLS LAST LIMIT 1', queries) INTO youngest, place;
    END IF;
    IF youngest > instaid.max_id(clock_timestamp() + interval '1 day', epoch) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('IDs of schema %I are ahead of the clock', schema_name),
            DETAIL = format('The youngest is %s in %s: with epoch %s it is of %s. The clock reads %s.',
                            youngest, place, epoch, instaid.extract_timestamp(youngest, epoch), clock_timestamp()),
            HINT = 'If next_id() did not make that ID, give the row another one; else pass the epoch that next_id() subtracts.';
    END IF;
    PERFORM instaid.advance_past(sequence, GREATEST(youngest, instaid.max_id(clock_timestamp() + interval '1 s', epoch)));

    PERFORM instaid.define_shard(schema_name, shard_id, epoch, sequence);
    IF owner <> current_user::regrole THEN
        EXECUTE format('ALTER FUNCTION %I.next_id(regclass) OWNER TO %s', schema_name, owner);
        EXECUTE format('ALTER FUNCTION %I.next_ids(integer) OWNER TO %s', schema_name, owner);
    END IF;

    IF instaid.extract_shard_id(COALESCE(id, youngest)) <> shard_id THEN
        RAISE WARNING USING
            MESSAGE = format('IDs of schema %I named shard %s', schema_name, instaid.extract_shard_id(COALESCE(id, youngest))),
            DETAIL = format('From now on they name shard %s.', shard_id),
            HINT = 'If that is not meant, roll back, and pass the shard ID that next_id() had.';
    END IF;
    IF youngest IS NOT NULL THEN
        RAISE NOTICE USING
            MESSAGE = format('IDs of schema %I go on above %s', schema_name, youngest),
            DETAIL = format('That is the youngest, in %s, of %s.', place, instaid.extract_timestamp(youngest, epoch));
    END IF;
END
$$;
COMMENT ON FUNCTION instaid.adopt_shard(name, integer, timestamptz, regclass) IS
'make a schema a shard that has the published function as next_id(): replace the function, widen the sequence (table_id_seq by default), and go on above the IDs of all columns that default to it; needs to own the function, the sequence and the tables';

CREATE FUNCTION instaid.adopt_column(table_name regclass, column_name name, dry_run boolean DEFAULT false) RETURNS SETOF text
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO'
    SET timezone = 'UTC'
    SET row_security = off
AS $$
DECLARE
    main record;
    heirs oid[];
    serial regclass;
    family record;
    statements text[];
    statement text;
    highest bigint;
    next_id bigint;
    grants text;
BEGIN
    IF table_name IS NULL OR column_name IS NULL OR dry_run IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = 'adopt_column() does not take a null',
            DETAIL = format('table_name is %L, column_name is %L, dry_run is %L.', table_name, column_name, dry_run);
    END IF;
    IF NOT dry_run AND current_setting('transaction_isolation') NOT LIKE 'read %' THEN
        RAISE invalid_transaction_state USING
            MESSAGE = 'adopt_column() must run in a READ COMMITTED transaction',
            DETAIL = 'Else it would not see the rows of the transactions that it waits for.',
            HINT = 'BEGIN ISOLATION LEVEL READ COMMITTED;';
    END IF;

    SELECT c.relkind, n.nspname, a.attname, a.attnum, a.atttypid, a.attidentity, a.attgenerated,
           d.oid AS default_oid, pg_get_expr(d.adbin, d.adrelid) AS default_text,
           format('%s.%I', c.oid::regclass, column_name) AS name,
           (SELECT i.inhparent::regclass FROM pg_inherits AS i WHERE a.attinhcount > 0 AND i.inhrelid = c.oid LIMIT 1) AS parent,
           s.shard_id, s.epoch, s.sequence INTO main
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
             LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = column_name AND a.attnum > 0 AND NOT a.attisdropped
             LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
             LEFT JOIN instaid.shards AS s ON s.schema_name = n.nspname
        WHERE c.oid = table_name;
    IF main.attname IS NULL THEN
        RAISE undefined_column USING
            MESSAGE = format('column %I does not exist', column_name),
            DETAIL = format('It was looked for in %s.', table_name);
    END IF;
    IF main.relkind NOT IN ('r', 'p') OR main.attgenerated <> '' THEN
        RAISE wrong_object_type USING
            MESSAGE = format('column %s cannot have a default of its own', main.name),
            DETAIL = CASE WHEN main.attgenerated <> '' THEN 'It is a generated column.' ELSE 'It is not in a table.' END;
    END IF;
    IF main.parent IS NOT NULL THEN
        RAISE wrong_object_type USING
            MESSAGE = format('column %s is inherited', main.name),
            HINT = format('Adopt that of the parent: SELECT * FROM instaid.adopt_column(%L, %L);', main.parent, column_name);
    END IF;
    IF main.shard_id IS NULL THEN
        RAISE undefined_object USING
            MESSAGE = format('schema %I is not a shard', main.nspname),
            HINT = 'instaid.shards lists the shards of this database; create_shard() and adopt_shard() make one.';
    END IF;
    IF main.atttypid NOT IN ('bigint'::regtype, 'instaid.id'::regtype, 'integer'::regtype, 'smallint'::regtype) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('column %s is of type %s', main.name, format_type(main.atttypid, NULL)),
            DETAIL = 'IDs are bigint; integer and smallint are widened to it.';
    END IF;

    -- Its partitions and children get the default, too.
    WITH RECURSIVE heir (relid) AS (
            SELECT table_name::oid
        UNION
            SELECT i.inhrelid FROM heir AS h JOIN pg_inherits AS i ON i.inhparent = h.relid)
    SELECT array_agg(h.relid) INTO heirs FROM heir AS h;
    SELECT format('%s.%I', d.adrelid::regclass, a.attname) AS name, pg_get_expr(d.adbin, d.adrelid) AS default_text INTO family
        FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
        WHERE d.adrelid = ANY (heirs) AND a.attname = column_name AND pg_get_expr(d.adbin, d.adrelid) IS DISTINCT FROM main.default_text;
    IF FOUND THEN
        RAISE object_in_use USING
            MESSAGE = format('column %s has a default of its own', family.name),
            DETAIL = format('It is %s, and would be replaced with that of %s.', family.default_text, main.name),
            HINT = 'Drop that default first.';
    END IF;

    -- The column, those that refer to it, and those that refer to them.  A column
    -- of a partition is altered through its parent's, and the other way round a
    -- foreign key may refer to a partition.
    WITH RECURSIVE family (relid, attnum) AS (
            SELECT table_name::oid, main.attnum
        UNION
            SELECT r.relid, r.attnum FROM family AS f CROSS JOIN LATERAL (
                SELECT k.conrelid, k.conkey[array_position(k.confkey, f.attnum)]
                FROM pg_constraint AS k
                WHERE k.contype = 'f' AND k.confrelid = f.relid AND f.attnum = ANY (k.confkey)
            UNION ALL
                SELECT other.attrelid, other.attnum
                FROM pg_attribute AS this JOIN pg_attribute AS other ON other.attname = this.attname
                     JOIN pg_inherits AS i ON (i.inhrelid, i.inhparent) IN ((this.attrelid, other.attrelid),
                                                                            (other.attrelid, this.attrelid))
                WHERE this.attrelid = f.relid AND this.attnum = f.attnum) AS r (relid, attnum)),
        narrow AS (
            SELECT a.attrelid, a.attnum, a.attname, a.attinhcount, c.relkind, c.relowner, c.reltype, c.reloftype, t.typtype,
                   a.attrelid::regclass AS table_name, format('%s.%I', a.attrelid::regclass, a.attname) AS name
            FROM family AS f JOIN pg_attribute AS a ON a.attrelid = f.relid AND a.attnum = f.attnum
                 JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_type AS t ON t.oid = a.atttypid
            WHERE COALESCE(NULLIF(t.typbasetype, 0), t.oid) IN ('integer'::regtype, 'smallint'::regtype)),
        altered AS (
            SELECT n.attrelid, n.table_name::text,
                   format('ALTER TABLE %s %s', n.table_name,
                          string_agg(format('ALTER %I TYPE bigint', n.attname), ', ' ORDER BY n.attnum)) AS statement
            FROM narrow AS n WHERE n.attinhcount = 0 GROUP BY n.attrelid, n.table_name)
    SELECT (SELECT array_agg(t.statement ORDER BY t.attrelid) FROM altered AS t) AS statements,
           -- Who inserts a row locks its table first, and then what the row refers
           -- to, which is mostly older: so do we.
           (SELECT string_agg(t.table_name, ', ' ORDER BY t.attrelid DESC) FROM altered AS t
            WHERE t.attrelid <> adopt_column.table_name) AS others,
           (SELECT string_agg(format('%s (%s)', n.name, pg_size_pretty(pg_total_relation_size(n.attrelid))), ', ' ORDER BY n.name)
            FROM narrow AS n WHERE n.relkind = 'r') AS sizes,
           -- what ALTER COLUMN TYPE would stumble over, perhaps after hours
           (SELECT string_agg(DISTINCT format('%s: %s', n.name, o.obstacle), '; ')
            FROM narrow AS n CROSS JOIN LATERAL (
                SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
                FROM pg_depend AS d LEFT JOIN pg_attrdef AS e ON d.classid = 'pg_attrdef'::regclass AND e.oid = d.objid
                WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = n.attrelid AND d.refobjsubid = n.attnum
                  AND (d.classid IN ('pg_rewrite'::regclass, 'pg_proc'::regclass, 'pg_trigger'::regclass,
                                     'pg_policy'::regclass, 'pg_publication_rel'::regclass)
                       OR (e.adrelid, e.adnum) <> (n.attrelid, n.attnum))
            UNION ALL
                SELECT 'the partition key' FROM pg_depend AS d
                WHERE d.classid = 'pg_class'::regclass AND d.objid = n.attrelid AND d.objsubid = n.attnum
                  AND d.refclassid = d.classid AND d.refobjid = n.attrelid AND d.deptype = 'i'
            UNION ALL
                SELECT format('column %s.%I of its row type', u.attrelid::regclass, u.attname)
                FROM pg_attribute AS u WHERE u.atttypid = n.reltype
            UNION ALL
                SELECT CASE WHEN n.typtype = 'd' THEN 'its domain'
                            WHEN n.reloftype <> 0 THEN 'the type of its table'
                            WHEN NOT pg_has_role(n.relowner, 'USAGE') THEN format('the owner of its table, %I', pg_get_userbyid(n.relowner))
                       END) AS o (obstacle)
            WHERE o.obstacle IS NOT NULL) AS obstacles
        INTO family;
    IF family.obstacles IS NOT NULL THEN
        RAISE feature_not_supported USING
            MESSAGE = format('integer columns that would hold IDs of %s cannot be widened', main.name),
            DETAIL = family.obstacles || '.',
            HINT = 'Drop what is in the way, and create it again afterwards.';
    END IF;

    statements := ARRAY[format('LOCK TABLE %s%s IN ACCESS EXCLUSIVE MODE', family.others || ', ', table_name)];
    IF NOT dry_run THEN
        EXECUTE statements[1];
    END IF;
    EXECUTE format('SELECT max(%I)::bigint FROM %s', column_name, table_name) INTO highest;
    next_id := GREATEST(instaid.last_id(main.sequence, main.shard_id), instaid.min_id(clock_timestamp(), main.epoch));
    IF highest > next_id THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column %s has values above the next ID of shard %s', main.name, main.shard_id),
            DETAIL = format('The highest is %s, of %s if it is an ID; IDs go on above %s.',
                            highest, instaid.extract_timestamp(highest, main.epoch), next_id),
            HINT = CASE WHEN highest <= instaid.max_id(clock_timestamp() + interval '1 day', main.epoch)
                        THEN format('To go on above it: SELECT instaid.advance_past(%L, %s);', main.sequence, highest)
                        ELSE 'Give those rows other values.' END;
    END IF;

    -- The default goes before the type changes, as it need not fit the new one.  A
    -- serial's sequence goes, too, unless something else uses it.
    serial := pg_get_serial_sequence(table_name::text, column_name);
    IF main.default_text = format('%I.next_id()', main.nspname) THEN
        statements := statements || family.statements;
    ELSE
        IF main.attidentity <> '' THEN
            statements := statements || format('ALTER TABLE %s ALTER %I DROP IDENTITY', table_name, column_name);
        ELSIF main.default_oid IS NOT NULL THEN
            statements := statements || format('ALTER TABLE %s ALTER %I DROP DEFAULT', table_name, column_name);
        END IF;
        statements := statements || family.statements
            || format('ALTER TABLE %s ALTER %I SET DEFAULT %I.next_id()', table_name, column_name, main.nspname);
        IF main.default_text = format('nextval(%L::regclass)', serial) THEN
            statements := statements || format(
                CASE WHEN EXISTS (SELECT FROM pg_depend AS d LEFT JOIN pg_attrdef AS a ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid
                                  WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = serial AND d.deptype = 'n'
                                    AND (a.adrelid = ANY (heirs) AND pg_get_expr(a.adbin, a.adrelid) = main.default_text) IS NOT TRUE)
                     THEN 'ALTER SEQUENCE %s OWNED BY NONE' ELSE 'DROP SEQUENCE %s' END, serial);
        END IF;
    END IF;
    IF cardinality(statements) = 1 THEN
        RAISE NOTICE USING MESSAGE = format('column %s has the IDs of shard %s already', main.name, main.shard_id);
        RETURN;
    END IF;

    IF family.sizes IS NOT NULL THEN
        RAISE NOTICE USING
            MESSAGE = 'integer columns become bigint, which rewrites their tables',
            DETAIL = format('They are %s.', family.sizes);
    END IF;
    -- Who may insert, also into a partition, or through a view
    WITH RECURSIVE entrance (relid) AS (
            SELECT unnest(heirs)
        UNION
            SELECT r.ev_class
            FROM entrance AS e JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = e.relid
                                                  AND d.classid = 'pg_rewrite'::regclass
                 JOIN pg_rewrite AS r ON r.oid = d.objid),
        inserter AS (
            SELECT DISTINCT x.grantee, CASE WHEN x.grantee = 0 THEN 'public' ELSE pg_get_userbyid(x.grantee) END AS name
            FROM entrance AS e JOIN pg_class AS c ON c.oid = e.relid JOIN pg_attribute AS a ON a.attrelid = c.oid
                 CROSS JOIN LATERAL aclexplode(COALESCE(c.relacl, acldefault('r', c.relowner)) || a.attacl) AS x
            WHERE x.privilege_type = 'INSERT')
    SELECT string_agg(format('GRANT %s TO %s;', g.what, CASE WHEN i.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(i.name) END),
                      ' ' ORDER BY i.name, g.what)
        INTO grants
        FROM inserter AS i CROSS JOIN pg_proc AS p
             CROSS JOIN LATERAL (VALUES
                 (format('USAGE ON SEQUENCE %s', main.sequence),
                  p.prosecdef OR has_sequence_privilege(i.name, main.sequence, 'USAGE, UPDATE')),
                 (format('EXECUTE ON FUNCTION %s', p.oid::regprocedure), has_function_privilege(i.name, p.oid, 'EXECUTE')))
                 AS g (what, is_granted)
        WHERE p.oid = format('%I.next_id()', main.nspname)::regprocedure AND NOT g.is_granted;
    IF grants IS NOT NULL THEN
        RAISE WARNING USING
            MESSAGE = format('roles that may insert into %s may not take IDs of shard %s', table_name, main.shard_id),
            DETAIL = 'Their inserts will fail: permission denied.',
            HINT = grants;
    END IF;

    FOREACH statement IN ARRAY statements LOOP
        RETURN NEXT statement;
        IF NOT dry_run THEN
            EXECUTE statement;
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION instaid.adopt_column(regclass, name, boolean) IS
'let a serial, identity, integer or bigint column of a table in a shard have the next_id() of the shard as its default; integer columns are widened, with those that refer to them; return the statements that do it, which dry_run only shows; needs to own the tables';

--
-- Tickets
--

-- The creator of the extension may create tickets, and may let others do so.
DO $$
BEGIN
    EXECUTE format('CREATE SCHEMA instaid_tickets AUTHORIZATION %I',
                   (SELECT pg_get_userbyid(extowner) FROM pg_extension WHERE extname = 'instaid'));
END
$$;
GRANT USAGE ON SCHEMA instaid_tickets TO PUBLIC;
COMMENT ON SCHEMA instaid_tickets IS
'the tickets of instaid, a sequence each';

CREATE FUNCTION instaid.next_ticket(name text) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'instaid_next_ticket';
COMMENT ON FUNCTION instaid.next_ticket(text) IS
'the next value of a ticket, never to be given again; needs USAGE or UPDATE on its sequence';

CREATE FUNCTION instaid.lease_ticket(name text, count bigint,
                                     OUT first bigint, OUT last bigint, OUT increment bigint)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'instaid_lease_ticket';
COMMENT ON FUNCTION instaid.lease_ticket(text, bigint) IS
'the next so many values of a ticket, from first to last by increment, never to be given again; needs USAGE or UPDATE on its sequence';

CREATE FUNCTION instaid.ticket_sequence(name text, missing_ok boolean DEFAULT false) RETURNS regclass
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'instaid_ticket_sequence';
COMMENT ON FUNCTION instaid.ticket_sequence(text, boolean) IS
'the sequence that a ticket is, to be used in GRANT and ALTER SEQUENCE; with missing_ok null if there is none';

CREATE FUNCTION instaid.ticket_state(sequence regclass,
                                     OUT last_value bigint, OUT values_left bigint, OUT phase_slipped boolean)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
    AS 'MODULE_PATHNAME', 'instaid_ticket_state';
COMMENT ON FUNCTION instaid.ticket_state(regclass) IS
'where a ticket stands; see the view instaid.tickets';

CREATE VIEW instaid.tickets AS
    -- in numeric, as anybody's sequence may be there
    SELECT c.relname AS name,
           (CASE WHEN l.label IS NULL AND q.seqmax > 0
                 THEN mod(mod(q.seqstart - 1::numeric, q.seqincrement) + q.seqincrement, q.seqincrement) + 1 END)::bigint AS server,
           CASE WHEN l.label IS NULL AND q.seqmax > 0 THEN q.seqincrement END AS servers, q.seqcache AS step,
           s.last_value, s.values_left, s.phase_slipped, l.label AS source, c.oid::regclass AS sequence
    FROM pg_catalog.pg_namespace AS n
         JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid
         JOIN pg_catalog.pg_sequence AS q ON q.seqrelid = c.oid
         CROSS JOIN LATERAL instaid.ticket_state(c.oid) AS s
         LEFT JOIN pg_catalog.pg_seclabel AS l
                   ON l.objoid = c.oid AND l.classoid = 'pg_catalog.pg_class'::regclass AND l.objsubid = 0 AND l.provider = 'instaid'
    WHERE n.nspname = 'instaid_tickets';
GRANT SELECT ON instaid.tickets TO PUBLIC;
COMMENT ON VIEW instaid.tickets IS
'the tickets of this database, one row each; last_value, values_left and phase_slipped need USAGE or SELECT on the sequence';
COMMENT ON COLUMN instaid.tickets.name IS 'name of the ticket';
COMMENT ON COLUMN instaid.tickets.server IS 'which of the servers this is: the residue of its values modulo servers, or servers for 0';
COMMENT ON COLUMN instaid.tickets.servers IS 'how many servers share the ticket: the difference from one value to the next';
COMMENT ON COLUMN instaid.tickets.step IS 'shortest length of a segment: the CACHE of the sequence';
COMMENT ON COLUMN instaid.tickets.last_value IS 'last value that was given, or is in a segment, null if there is none; on a standby and after a crash up to 32 values more';
COMMENT ON COLUMN instaid.tickets.values_left IS 'how many there are until the guard, or else the end of the type';
COMMENT ON COLUMN instaid.tickets.phase_slipped IS 'whether setval() or ALTER SEQUENCE left it at a value of another server; next_ticket() goes on at the next of its own, nextval() does not';
COMMENT ON COLUMN instaid.tickets.source IS 'connection string of the servers that the values come from; server, servers and what follows step are theirs then, and null here';
COMMENT ON COLUMN instaid.tickets.sequence IS 'sequence that the ticket is';

CREATE FUNCTION instaid.segment_state(OUT sequence regclass, OUT steps bigint,
                                      OUT next_value bigint, OUT last_value bigint, OUT values_left bigint,
                                      OUT spare_first bigint, OUT spare_last bigint, OUT spare_left bigint,
                                      OUT refills bigint, OUT refilled_at timestamptz, OUT refill_us bigint,
                                      OUT waits bigint, OUT bypassed bigint,
                                      OUT failures bigint, OUT failed_at timestamptz, OUT failure text,
                                      OUT sources_overlap boolean) RETURNS SETOF record
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED
    AS 'MODULE_PATHNAME', 'instaid_segment_state';
COMMENT ON FUNCTION instaid.segment_state() IS
'segments in shared memory; see the view instaid.segments';

CREATE VIEW instaid.segments AS
    SELECT c.relname AS name, s.steps * q.seqcache AS length,
           s.next_value, s.last_value, s.values_left, s.spare_first, s.spare_last, s.spare_left,
           s.refills, s.refilled_at, s.refill_us * '1 microsecond'::interval AS refill_duration,
           s.waits, s.bypassed, s.failures, s.failed_at, s.failure, s.sources_overlap, s.sequence
    FROM instaid.segment_state() AS s
         JOIN pg_catalog.pg_class AS c ON c.oid = s.sequence
         JOIN pg_catalog.pg_sequence AS q ON q.seqrelid = c.oid;
GRANT SELECT ON instaid.segments TO PUBLIC;
COMMENT ON VIEW instaid.segments IS
'the tickets of this database that have segments in shared memory since the server started, if one has USAGE or SELECT on the sequence, one row each';
COMMENT ON COLUMN instaid.segments.name IS 'name of the ticket';
COMMENT ON COLUMN instaid.segments.length IS 'how many values are asked for at once: the step, or a multiple that follows demand';
COMMENT ON COLUMN instaid.segments.next_value IS 'value that comes next, null if there is none';
COMMENT ON COLUMN instaid.segments.last_value IS 'last value of the segment that is given out';
COMMENT ON COLUMN instaid.segments.values_left IS 'how many values it has left';
COMMENT ON COLUMN instaid.segments.spare_first IS 'first value of the segment that comes after it, null if there is none yet';
COMMENT ON COLUMN instaid.segments.spare_last IS 'last value of that segment';
COMMENT ON COLUMN instaid.segments.spare_left IS 'how many values that segment has';
COMMENT ON COLUMN instaid.segments.refills IS 'how many segments have come';
COMMENT ON COLUMN instaid.segments.refilled_at IS 'when the last one came';
COMMENT ON COLUMN instaid.segments.refill_duration IS 'how long that took';
COMMENT ON COLUMN instaid.segments.waits IS 'how many calls found both segments empty, and waited';
COMMENT ON COLUMN instaid.segments.bypassed IS 'how many calls found both segments empty, and took their value from the sequence itself';
COMMENT ON COLUMN instaid.segments.failures IS 'how many attempts to get a segment failed, or had to go on to another server';
COMMENT ON COLUMN instaid.segments.failed_at IS 'when the last one failed';
COMMENT ON COLUMN instaid.segments.failure IS 'why the last one failed; only the owner of the ticket and members of pg_read_all_stats see it';
COMMENT ON COLUMN instaid.segments.sources_overlap IS 'whether two servers of the source give the same values, as far as is known since the server started; they give no segment then';
COMMENT ON COLUMN instaid.segments.sequence IS 'sequence that the ticket is';

CREATE FUNCTION instaid.check_ticket_server(server integer, servers integer) RETURNS void
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF servers < 1 THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('%s servers are out of range', servers),
            DETAIL = 'A ticket has at least one server.';
    END IF;
    IF server NOT BETWEEN 1 AND servers THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('server %s is out of range', server),
            DETAIL = format('A server is between 1 and the number of servers, %s.', servers);
    END IF;
END
$$;
COMMENT ON FUNCTION instaid.check_ticket_server(integer, integer) IS
'what create_ticket() and restripe_ticket() check';

CREATE FUNCTION instaid.lock_ticket_name(name text) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE
    AS 'MODULE_PATHNAME', 'instaid_lock_ticket_name';
COMMENT ON FUNCTION instaid.lock_ticket_name(text) IS
'keep others from creating a ticket of this name until the transaction ends; needs CREATE on the schema instaid_tickets';

CREATE FUNCTION instaid.create_ticket(name text, server integer DEFAULT 1, servers integer DEFAULT 1,
                                      start bigint DEFAULT 1, step integer DEFAULT 1,
                                      data_type regtype DEFAULT 'bigint', source text DEFAULT '') RETURNS regclass
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    last_of_type bigint := CASE data_type WHEN 'smallint'::regtype THEN 32767 WHEN 'integer'::regtype THEN 2147483647
                                          WHEN 'bigint'::regtype THEN 9223372036854775807 END;
    first numeric;
BEGIN
    IF name IS NULL OR server IS NULL OR servers IS NULL OR start IS NULL OR step IS NULL OR data_type IS NULL OR source IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = 'arguments of create_ticket() must not be null',
            DETAIL = format('These are null: %s.', concat_ws(', ',
                CASE WHEN name IS NULL THEN 'name' END, CASE WHEN server IS NULL THEN 'server' END,
                CASE WHEN servers IS NULL THEN 'servers' END, CASE WHEN start IS NULL THEN 'start' END,
                CASE WHEN step IS NULL THEN 'step' END, CASE WHEN data_type IS NULL THEN 'data_type' END,
                CASE WHEN source IS NULL THEN 'source' END));
    END IF;
    -- refuses what is no name, before any message repeats it
    PERFORM instaid.ticket_sequence(name, missing_ok => true);
    IF source <> '' AND (server <> 1 OR servers <> 1 OR start <> 1) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('ticket %s cannot have a source and a server or start of its own', quote_ident(name)),
            DETAIL = format('The server is %s of %s, the start is %s; those of the source count.', server, servers, start),
            HINT = 'Leave them out, and give the sequences of the source their INCREMENT and START.';
    END IF;
    PERFORM instaid.check_ticket_server(server, servers);
    IF last_of_type IS NULL THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('type %s cannot be that of a ticket', data_type),
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
    -- the smallest value of the server's residue that is not below start
    first := start + mod(mod(server - start::numeric, servers) + servers, servers);
    IF first >= last_of_type THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('start %s leaves no values', start),
            DETAIL = format('The first value of server %s would be %s; the last of type %s is %s.',
                            server, first, data_type, last_of_type);
    END IF;
    -- Two sessions cannot both find a name free: one waits for the other.  Creating
    -- on first use (autocreate.c) waits for the same lock.
    PERFORM instaid.lock_ticket_name(name);
    IF instaid.ticket_sequence(name, missing_ok => true) IS NOT NULL THEN
        RAISE duplicate_table USING
            MESSAGE = format('ticket %s already exists', quote_ident(name)),
            HINT = format('To use it: SELECT instaid.next_ticket(%L); to begin anew, drop_ticket() it first, or give it another name.', name);
    END IF;
    IF source = '' THEN
        EXECUTE format('CREATE SEQUENCE instaid_tickets.%I AS %s INCREMENT BY %s START WITH %s CACHE %s',
                       name, data_type, servers, first, step);
    ELSE
        -- nothing is left of it, so that nextval() gives no value that the source gives, too
        EXECUTE format('CREATE SEQUENCE instaid_tickets.%I AS %s MINVALUE -2 MAXVALUE -1 START WITH -1 CACHE %s',
                       name, data_type, step);
        PERFORM setval(instaid.ticket_sequence(name), -1);
        EXECUTE format('SECURITY LABEL FOR instaid ON SEQUENCE instaid_tickets.%I IS %L', name, source);
        IF current_setting('instaid.max_buffered_tickets', true) IS NULL THEN
            RAISE WARNING USING
                MESSAGE = format('ticket %s has a source, but no buffer', quote_ident(name)),
                DETAIL = 'The server was started without instaid in shared_preload_libraries.',
                HINT = 'Add it there, and restart the server.';
        END IF;
    END IF;
    EXECUTE format('COMMENT ON SEQUENCE instaid_tickets.%I IS %L', name,
                   'a ticket of instaid: use instaid.next_ticket()');
    RETURN instaid.ticket_sequence(name);
END
$$;
COMMENT ON FUNCTION instaid.create_ticket(text, integer, integer, bigint, integer, regtype, text) IS
'create a named ticket, whose values on this server are start or above, and server modulo servers, or come from other servers; return its sequence; needs CREATE on the schema instaid_tickets';

CREATE FUNCTION instaid.check_is_authority(sequence regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    step bigint;
    guard bigint;
BEGIN
    SELECT seqincrement, seqmax INTO step, guard FROM pg_sequence WHERE seqrelid = sequence;
    IF step < 0 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence %s cannot serve as a ticket', sequence),
            DETAIL = format('Its INCREMENT is %s; it must count up.', step),
            HINT = format('Its owner can set it right with ALTER SEQUENCE %s.', sequence);
    END IF;
    IF guard < 0 OR EXISTS (SELECT FROM pg_seclabel
                            WHERE objoid = sequence AND classoid = 'pg_class'::regclass AND objsubid = 0 AND provider = 'instaid') THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %s has its values from a source', sequence),
            DETAIL = 'There is nothing to guard or to restripe here.',
            HINT = 'Change the number of servers at the source: see "A third server" in docs/tickets.md.';
    END IF;
END
$$;
COMMENT ON FUNCTION instaid.check_is_authority(regclass) IS
'what guard_ticket() and restripe_ticket() check';

CREATE FUNCTION instaid.drop_ticket(name text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM instaid.ticket_sequence(name);
    EXECUTE format('DROP SEQUENCE instaid_tickets.%I', name);
END
$$;
COMMENT ON FUNCTION instaid.drop_ticket(text) IS
'drop a ticket; one that is created under its name begins anew; needs to own its sequence';

CREATE FUNCTION instaid.lock_ticket(name text) RETURNS regclass
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    sequence regclass := instaid.ticket_sequence(name);
BEGIN
    PERFORM instaid.check_is_authority(sequence);
    -- This lock waits for all transactions that have taken values, and keeps
    -- others out until we commit.  A regclass whose sequence is dropped meanwhile
    -- would be printed as a number, so the statement has the name.
    EXECUTE format('ALTER SEQUENCE instaid_tickets.%I NO CYCLE', name);
    IF sequence <> instaid.ticket_sequence(name) THEN
        sequence := instaid.ticket_sequence(name);
        PERFORM instaid.check_is_authority(sequence);
    END IF;
    RETURN sequence;
END
$$;
COMMENT ON FUNCTION instaid.lock_ticket(text) IS
'what guard_ticket() and restripe_ticket() begin with: keep others from taking values of a ticket until the transaction ends; needs to own its sequence';

CREATE FUNCTION instaid.guard_ticket(name text, floor bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    sequence regclass := instaid.lock_ticket(name);
    stands_at bigint;
    last_of_type bigint;
    guard bigint;
BEGIN
    EXECUTE format('SELECT last_value FROM instaid_tickets.%I', name) INTO stands_at;
    SELECT GREATEST(stands_at, start_value), maximum_value,
           CASE data_type WHEN 'smallint'::regtype THEN 32767 WHEN 'integer'::regtype THEN 2147483647 ELSE 9223372036854775807 END
    INTO stands_at, guard, last_of_type FROM pg_sequence_parameters(sequence);
    IF floor < stands_at THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %s has gone past floor %s', quote_ident(name), floor),
            DETAIL = format('It stands at %s.', stands_at),
            HINT = 'Choose a floor that is above the last value of every server, and guard the ticket at that on all of them.';
    END IF;
    IF floor < 2 OR floor >= last_of_type THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('floor %s is out of range', floor),
            DETAIL = format('It must be at least 2 and less than %s, the end of the type.', last_of_type);
    END IF;
    IF floor > guard THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %s is guarded at %s already', quote_ident(name), guard),
            DETAIL = 'A server that was restriped at that floor gives values above it.',
            HINT = format('If none was, lift the guard on every server, and guard the ticket anew: ALTER SEQUENCE %s NO MAXVALUE;', sequence);
    END IF;
    EXECUTE format('ALTER SEQUENCE instaid_tickets.%I MAXVALUE %s', name, floor);
END
$$;
COMMENT ON FUNCTION instaid.guard_ticket(text, bigint) IS
'let a ticket give no value above floor, or refuse if it has: the first step of a change of the number of servers, on all of them; needs to own its sequence';

CREATE FUNCTION instaid.restripe_ticket(name text, server integer, servers integer, floor bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    sequence regclass := instaid.ticket_sequence(name);
    guard bigint;
BEGIN
    PERFORM instaid.check_ticket_server(server, servers);
    PERFORM instaid.check_is_authority(sequence);
    IF mod(floor, servers) <> 0 THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('floor %s is not a multiple of %s', floor, servers),
            DETAIL = 'The values of each server are to begin right above the floor.',
            HINT = format('The next multiple is %s; guard the ticket at that on every server.',
                          floor + servers::numeric - mod(floor, servers));
    END IF;
    sequence := instaid.lock_ticket(name);
    SELECT maximum_value INTO guard FROM pg_sequence_parameters(sequence);
    IF guard <> floor THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('ticket %s is not guarded at %s', quote_ident(name), floor),
            DETAIL = format('Its MAXVALUE is %s. Without the guard on all servers, one could give values above the floor that are another''s now.', guard),
            HINT = format('First, on every server that has the ticket: SELECT instaid.guard_ticket(%L, %s);', name, floor);
    END IF;
    EXECUTE format('ALTER SEQUENCE instaid_tickets.%I INCREMENT BY %s NO MAXVALUE START WITH %s RESTART',
                   name, servers, floor + server);
END
$$;
COMMENT ON FUNCTION instaid.restripe_ticket(text, integer, integer, bigint) IS
'let a ticket that is guarded at floor go on above it, as one of so many servers; needs to own its sequence';

--
-- Partitions
--

CREATE FUNCTION instaid.create_partitions(parent regclass, from_time timestamptz, to_time timestamptz, step interval,
                                          epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS SETOF regclass
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO'
    SET timezone = 'UTC'
AS $$
DECLARE
    max_partitions CONSTANT integer := 1000;
    expires_at timestamptz;
    main record;
    starts timestamptz[];
    part record;
    name_format text;
    partition_name text;
    partition text;
    occupied boolean;
BEGIN
    IF parent IS NULL OR from_time IS NULL OR to_time IS NULL OR step IS NULL OR epoch IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = 'create_partitions() does not take a null',
            DETAIL = format('parent is %L, from_time is %L, to_time is %L, step is %L, epoch is %L.',
                            parent, from_time, to_time, step, epoch);
    END IF;
    SELECT c.relname, c.relowner, n.nspname, p.partstrat, a.attname, a.atttypid,
           COALESCE('partitioned by ' || pg_get_partkeydef(c.oid), 'not partitioned') AS key INTO main
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
             LEFT JOIN pg_partitioned_table AS p ON p.partrelid = c.oid
             LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = p.partattrs[0] AND p.partnatts = 1
        WHERE c.oid = parent;
    IF main.partstrat <> 'r' OR main.atttypid NOT IN ('bigint'::regtype, 'instaid.id'::regtype) IS NOT FALSE THEN
        RAISE wrong_object_type USING
            MESSAGE = format('%s is not partitioned by range of one bigint column', parent),
            DETAIL = format('It is %s.', COALESCE(main.key, 'not there')),
            HINT = 'Create the table with PARTITION BY RANGE (id), where id is the bigint of its IDs.';
    END IF;
    IF NOT pg_has_role(main.relowner, 'USAGE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of table %s', parent),
            DETAIL = format('Its owner is %I.', pg_get_userbyid(main.relowner));
    END IF;
    IF step < '1 ms' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('step %s is too short', step),
            DETAIL = 'A step is at least one millisecond.';
    END IF;
    IF from_time >= to_time THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('there is no time from %s to %s', from_time, to_time),
            DETAIL = 'from_time must be before to_time.';
    END IF;
    expires_at := instaid.extract_timestamp(-9223372036854775808, epoch);   -- refuses an infinite epoch
    IF from_time + step <= epoch OR to_time > expires_at THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('times from %s to %s are out of range for an ID', from_time, to_time),
            DETAIL = format('With epoch %s, partitions can begin at %s and end at %s.', epoch, epoch, expires_at);
    END IF;

    -- By multiples of the step, as months are not all of a length: those of a
    -- 31st begin on the last day of shorter ones, and on the 31st again.
    WITH RECURSIVE series (n, since) AS (
            SELECT 0, from_time
        UNION ALL
            SELECT n + 1, from_time + (n + 1) * step FROM series
            WHERE from_time + (n + 1) * step < to_time AND n < max_partitions)
    SELECT array_agg(since ORDER BY n) INTO starts FROM series;
    IF cardinality(starts) > max_partitions THEN
        RAISE program_limit_exceeded USING
            MESSAGE = format('too many partitions from %s to %s', from_time, to_time),
            DETAIL = format('One call makes up to %s; with step %s they would end at %s.',
                            max_partitions, step, starts[max_partitions + 1]),
            HINT = 'Choose a longer step, or an earlier to_time.';
    END IF;
    SELECT CASE WHEN step >= '1 day' AND bool_and(since = date_trunc('day', since)) THEN 'YYYYMMDD'
                WHEN bool_and(since = date_trunc('second', since)) THEN 'YYYYMMDD_HH24MISS'
                ELSE 'YYYYMMDD_HH24MISSUS' END
        INTO name_format FROM unnest(starts) AS since;

    -- Two sessions cannot both find a partition missing: one waits for the other.
    -- Rows can be read and written meanwhile.
    EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent);

    -- MINVALUE and MAXVALUE are no numbers, and so null, which a range takes for
    -- no bound; so is the end of a partition that ends after the format.
    FOR part IN
        WITH existing AS MATERIALIZED (
            SELECT i.inhrelid::regclass AS name, i.inhdetachpending AS is_leaving,
                   int8range(substring(b.bound FROM 'FROM \(''?(-?\d+)''?\)')::bigint,
                             substring(b.bound FROM 'TO \(''?(-?\d+)''?\)')::bigint) AS ids
            FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
                 CROSS JOIN LATERAL pg_get_expr(c.relpartbound, c.oid) AS b (bound)
            WHERE i.inhparent = parent AND b.bound <> 'DEFAULT')
        SELECT w.*, e.name, e.is_leaving, e.ids AS others_ids, p.partdefid::regclass AS default_name
        FROM unnest(starts) WITH ORDINALITY AS s (since, n)
             CROSS JOIN LATERAL (SELECT s.since, from_time + s.n * step AS until) AS u
             CROSS JOIN LATERAL (SELECT instaid.min_id_from(u.since, epoch) AS first_id,
                                        instaid.min_id_from(u.until, epoch) AS end_id) AS b
             CROSS JOIN LATERAL (SELECT u.*, b.*, CASE WHEN b.first_id >= b.end_id THEN 'empty'
                                                       ELSE int8range(b.first_id, b.end_id) END AS ids) AS w
             CROSS JOIN pg_partitioned_table AS p
             LEFT JOIN LATERAL (SELECT * FROM existing WHERE existing.ids && w.ids ORDER BY existing.ids LIMIT 1) AS e ON true
        WHERE p.partrelid = parent
        ORDER BY s.n
    LOOP
        IF part.first_id IS NULL OR part.first_id >= part.end_id THEN
            RAISE invalid_parameter_value USING
                MESSAGE = format('a partition from %s to %s would hold no ID', part.since, part.until),
                DETAIL = format('The step is %s.', step);
        END IF;
        IF part.ids = part.others_ids AND NOT part.is_leaving THEN
            CONTINUE;
        END IF;
        IF part.name IS NOT NULL THEN
            RAISE invalid_object_definition USING
                MESSAGE = format('a partition from %s to %s would overlap %s', part.since, part.until, part.name),
                DETAIL = format('That one has IDs from %s to %s, which is from %s to %s%s.',
                                COALESCE(lower(part.others_ids)::text, 'MINVALUE'),
                                COALESCE(upper(part.others_ids)::text, 'MAXVALUE'),
                                COALESCE(instaid.extract_timestamp(lower(part.others_ids), epoch), '-infinity'),
                                COALESCE(instaid.extract_timestamp(upper(part.others_ids), epoch), 'infinity'),
                                CASE WHEN part.is_leaving THEN '; it is being detached' ELSE '' END),
                HINT = 'Choose from_time and step so that partitions begin and end where it does, or detach it.';
        END IF;

        partition_name := format('%s_%s', main.relname, to_char(part.since, name_format));
        IF octet_length(partition_name) > current_setting('max_identifier_length')::integer THEN
            RAISE name_too_long USING
                MESSAGE = format('partition name %I is too long', partition_name),
                DETAIL = format('It has %s bytes; a name has up to %s.', octet_length(partition_name),
                                current_setting('max_identifier_length')),
                HINT = 'Give the table a shorter name.';
        END IF;
        partition := format('%I.%I', main.nspname, partition_name);
        IF to_regclass(partition) IS NOT NULL THEN
            RAISE duplicate_table USING
                MESSAGE = format('relation %s already exists', partition),
                DETAIL = format('The partition from %s to %s would have that name.', part.since, part.until),
                HINT = 'Rename it, or drop it if nothing uses it.';
        END IF;
        IF part.default_name <> 0 THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I BETWEEN %s AND %s)', part.default_name, main.attname,
                           part.first_id, COALESCE(part.end_id - 1, 9223372036854775807)) INTO occupied;
            IF occupied THEN
                RAISE check_violation USING
                    MESSAGE = format('default partition %s has rows from %s to %s', part.default_name, part.since, part.until),
                    DETAIL = 'They belong into the new partition, and do not move by themselves.',
                    HINT = 'Detach the default partition, create the others, and insert its rows into the table.';
            END IF;
        END IF;
        EXECUTE format('CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%s) TO (%s)',
                       partition, parent, part.first_id, COALESCE(part.end_id::text, 'MAXVALUE'));
        RETURN NEXT partition::regclass;
    END LOOP;
END
$$;
COMMENT ON FUNCTION instaid.create_partitions(regclass, timestamptz, timestamptz, interval, timestamptz) IS
'create the partitions of a table, by range of its IDs, that are missing from from_time until to_time is covered, one a step; return them; needs to own the table';

--
-- Knowing before it breaks
--

-- An error: IDs repeat, name a wrong shard, or are refused, now.  A warning: they
-- will, or something weakens what is guaranteed.
--
-- Reads catalogs, and the text of users' functions; runs nothing of theirs.  The
-- patterns are made so that no text takes them long, nor makes them fail.
CREATE FUNCTION instaid.audit(OUT severity text, OUT object text, OUT problem text, OUT cure text) RETURNS SETOF record
    LANGUAGE sql VOLATILE PARALLEL RESTRICTED
    SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    WITH RECURSIVE shard AS MATERIALIZED (
        SELECT s.*, n.oid AS schema
        FROM instaid.shards AS s JOIN pg_namespace AS n ON n.nspname = s.schema_name),

    -- What users wrote in SQL and PL/pgSQL.  A standard body has no text; it is
    -- deparsed only if it calls nextval(), as that locks the tables in it.
    routine AS MATERIALIZED (
        SELECT p.oid, p.pronamespace AS schema, p.proname, p.pronargs, p.prorettype,
               pg_get_function_arguments(p.oid) AS arguments,
               CASE WHEN p.prosqlbody IS NULL THEN p.prosrc
                    WHEN p.prosqlbody::text LIKE '%:funcid ' || 'nextval(regclass)'::regprocedure::oid::text || ' %'
                    THEN pg_get_function_sqlbody(p.oid) END AS body,
               p.prosqlbody IS NOT NULL AS is_parsed
        FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
             JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE l.lanname IN ('sql', 'plpgsql') AND n.nspname !~ '^(pg_|information_schema$)'
          AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
                                                       AND d.deptype = 'e')),

    -- ... and in column defaults, if it is more than nextval().  There are no columns
    -- in it, so it is deparsed without its table, which would be locked.
    source AS (
        SELECT r.oid AS routine, NULL::oid AS default_oid, r.oid::regprocedure::text AS name, NULL::text AS column_default,
               r.schema, r.proname, r.pronargs, r.prorettype, r.arguments, r.body, r.is_parsed
        FROM routine AS r
        WHERE r.body ILIKE '%nextval%' OR r.proname = 'next_id' AND r.body ILIKE '%instaid%'
        UNION ALL
        SELECT NULL, d.oid, format('%s.%I', c.oid::regclass, a.attname),
               format('ALTER TABLE %s ALTER %I SET DEFAULT ', c.oid::regclass, a.attname),
               c.relnamespace, NULL, NULL, NULL, '', pg_get_expr(d.adbin, 0), true
        FROM pg_attrdef AS d JOIN pg_class AS c ON c.oid = d.adrelid
             JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
        WHERE c.relpersistence <> 't' AND NOT c.relispartition
          AND d.adbin::text LIKE '%{OPEXPR%:funcid ' || 'nextval(regclass)'::regprocedure::oid::text || ' %'),

    -- Comments do not count; in "bare", strings do not, either.  What opens and
    -- is not closed ends with the text, lest each place be tried to the end.
    code AS MATERIALIZED (
        SELECT s.*, t.text, regexp_replace(t.text, '\mE''(?:[^''\\]|\\.|'''')*''?|''(?:[^'']|'''')*''?', '''''', 'gi') AS bare
        FROM source AS s
             CROSS JOIN LATERAL (SELECT regexp_replace(s.body,
                 '(\mE''(?:[^''\\]|\\.|'''')*''?|''(?:[^'']|'''')*''?|"[^"]*"?)|--[^\n\r]*|/\*(?:[^*]|\*+[^*/])*(?:\*+/)?', '\1 ', 'gi')) AS t (text)),

    -- nextval(), a clock, and a shift to the left by as much as milliseconds have
    -- below them, or by a variable, or what does the same
    arithmetic AS MATERIALIZED (
        SELECT c.*, (regexp_match(c.text, '\m(\d{12,13})\M'))[1] AS epoch_ms,
               (regexp_match(c.text, '\m(\w{1,63})[''\s)]*(?:::\s*\w+)?[\s)]*<<\s*10\M'))[1] AS shard,
               (regexp_match(c.text, '\mnextval\s*\(\s*(\w{1,63})\s*(?:::\s*regclass\s*)?\)', 'i'))[1] AS sequence_variable
        FROM code AS c
        WHERE c.text ~* '\mnextval\s*\('
          AND c.bare ~* '\m(?:(?:clock_timestamp|now|statement_timestamp|transaction_timestamp|timeofday)\s*\(|(?:current_timestamp|localtimestamp)\M)'
          AND c.bare ~* '(?:[a-z_)\]\"]|\d{9})\s*<<\s*[(''\s]*(?:1[6-9]\M|2[0-4]\M|\d+\s*\+|[a-z_])|\^\s*[(''\s]*2[0-4]\M|\mpow(?:er)?\s*\([\s(]*2|\*\s*[(''\s]*(?:8388608|4194304)\M'),

    -- The shard ID: the number that is shifted by ten bits, or the one that the
    -- variable there, or another that is named so, begins with.
    copy AS MATERIALIZED (
        SELECT a.*, n.nspname, COALESCE(
                   (regexp_match(a.shard, '^\d{1,9}$'))[1],
                   (regexp_match(a.text, '\m' || a.shard || '\M\s*(?:constant\s+)?(?:\w+\s*)?(?::=|=|\mdefault\M)\s*\(?\s*(\d{1,9})\M', 'i'))[1],
                   (regexp_match(a.text, '\m\w{0,50}shard\w{0,50}\M\s*(?:constant\s+)?(?:\w+\s*)?(?::=|=|\mdefault\M)\s*\(?\s*(\d{1,9})\M', 'i'))[1]
               )::integer AS shard_id
        FROM arithmetic AS a JOIN pg_namespace AS n ON n.oid = a.schema),

    -- What a sequence may be called: in its own schema, without it.
    sequence_name AS MATERIALIZED (
        SELECT s.oid, v.name, v.schema
        FROM pg_class AS s JOIN pg_namespace AS n ON n.oid = s.relnamespace
             CROSS JOIN LATERAL (VALUES (n.nspname || '.' || s.relname, NULL::oid),
                                        (format('%I.%I', n.nspname, s.relname), NULL),
                                        (s.relname::text, n.oid), (quote_ident(s.relname), n.oid)) AS v (name, schema)
        WHERE s.relkind = 'S' AND s.relpersistence <> 't'),

    -- The strings of a copy, as names: folded to lower case if nothing is quoted
    copy_string AS MATERIALIZED (
        SELECT DISTINCT COALESCE(c.routine, c.default_oid) AS copy, c.schema, v.name
        FROM copy AS c
             CROSS JOIN LATERAL regexp_matches(c.text, '''((?:[^'']|'''')*)''', 'g') AS m (string)
             CROSS JOIN LATERAL (SELECT replace(m.string[1], '''''', '''')) AS l (literal)
             CROSS JOIN LATERAL (SELECT CASE WHEN l.literal LIKE '%"%' THEN l.literal ELSE lower(l.literal) END) AS k (name)
             CROSS JOIN LATERAL (VALUES (k.name), (replace(k.name, '"', ''))) AS v (name)),

    -- Its sequences: those that it has parsed, and whatever string names one.
    copy_sequence AS MATERIALIZED (
        SELECT COALESCE(c.routine, c.default_oid) AS copy, d.refobjid AS sequence
        FROM copy AS c JOIN pg_depend AS d ON d.objid = COALESCE(c.routine, c.default_oid)
             JOIN pg_class AS s ON s.oid = d.refobjid AND s.relkind = 'S'
        WHERE d.classid = CASE WHEN c.routine IS NOT NULL THEN 'pg_proc'::regclass ELSE 'pg_attrdef'::regclass END
          AND d.refclassid = 'pg_class'::regclass
        UNION
        SELECT c.copy, s.oid FROM copy_string AS c JOIN sequence_name AS s ON s.name = c.name
        WHERE s.schema IS NULL OR s.schema = c.schema),

    home AS MATERIALIZED (
        SELECT p.pronamespace AS schema FROM pg_proc AS p WHERE p.proname = 'next_id' AND p.pronargs = 0),

    -- A copy becomes a shard where it is, by adopt_shard(), if it is one's next_id().
    copy_cure AS MATERIALIZED (
        SELECT c.*, q.sequence,
               CASE WHEN c.default_oid IS NOT NULL AND EXISTS (SELECT FROM shard AS s WHERE s.schema = c.schema)
                    THEN format('%s%I.next_id();', c.column_default, c.nspname)
                    WHEN c.default_oid IS NOT NULL OR c.pronargs > 0 OR c.prorettype <> 'bigint'::regtype
                    THEN 'Let columns default to the next_id() of a shard instead; instaid.create_shard() makes one.'
                    WHEN c.proname <> 'next_id' AND c.schema IN (SELECT h.schema FROM home AS h)
                    THEN format('Let columns default to %I.next_id() instead.', c.nspname)
                    WHEN EXISTS (SELECT FROM shard AS s WHERE s.shard_id = c.shard_id)
                      OR EXISTS (SELECT FROM copy AS o WHERE o.shard_id = c.shard_id AND o.schema <> c.schema)
                    THEN format('Choose another shard ID, such as %s, and pass it to instaid.adopt_shard(%L, shard_id).',
                                (SELECT min(n) FROM generate_series(0, 8191) AS n
                                 WHERE n NOT IN (SELECT s.shard_id FROM shard AS s)
                                   AND n NOT IN (SELECT o.shard_id FROM copy AS o WHERE o.shard_id IS NOT NULL)), c.nspname)
                    WHEN c.shard_id BETWEEN 0 AND 8191
                    -- who calls it by another name goes on doing so
                    THEN format(CASE WHEN c.proname = 'next_id' THEN '%1$s'
                                     ELSE 'BEGIN; ALTER FUNCTION %2$s RENAME TO next_id; %1$s'
                                          ' CREATE FUNCTION %2$s RETURNS bigint LANGUAGE sql RETURN %3$I.next_id(); COMMIT;' END,
                                format('SELECT instaid.adopt_shard(%L, %s%s%s);', c.nspname, c.shard_id,
                                       CASE WHEN c.epoch_ms <> '1314220021721' THEN format(', to_timestamp(%s / 1000.0)', c.epoch_ms) END,
                                       ', sequence => ' || quote_literal(NULLIF(q.sequence::regclass::text,
                                                                                quote_ident(c.nspname) || '.table_id_seq'))),
                                c.name, c.nspname)
                    ELSE format('Find out which shard ID from 0 to 8191 the schema is to have, and pass it to instaid.adopt_shard(%L, shard_id).', c.nspname)
               END AS cure
        FROM copy AS c
             LEFT JOIN LATERAL (SELECT min(s.sequence) AS sequence FROM copy_sequence AS s
                                WHERE s.copy = COALESCE(c.routine, c.default_oid)) AS q ON true),

    -- A next_id() that instaid.shards cannot read
    hidden AS MATERIALIZED (
        SELECT r.oid, r.schema FROM routine AS r
        WHERE r.proname = 'next_id' AND r.pronargs = 0 AND r.schema NOT IN (SELECT s.schema FROM shard AS s)
          AND (EXISTS (SELECT FROM code AS c WHERE c.routine = r.oid AND c.text ~* '\minstaid\M"?\s*\.\s*"?next_id\M')
               OR EXISTS (SELECT FROM pg_depend AS d
                          WHERE d.classid = 'pg_proc'::regclass AND d.objid = r.oid AND d.refclassid = d.classid
                            AND d.refobjid = 'instaid.next_id(regclass, integer, timestamptz)'::regprocedure))),

    -- Columns whose default makes IDs, and who makes them: null for instaid.next_id() itself
    id_function (oid, schema, is_copy) AS (
        SELECT p.oid, p.pronamespace, false FROM pg_proc AS p JOIN shard AS s ON s.schema = p.pronamespace
        WHERE p.proname = 'next_id'
        UNION
        SELECT h.oid, h.schema, false FROM hidden AS h
        UNION
        SELECT 'instaid.next_id(regclass, integer, timestamptz)'::regprocedure, NULL, false
        UNION
        SELECT c.routine, c.schema, true FROM copy AS c WHERE c.routine IS NOT NULL),
    id_column AS MATERIALIZED (
        SELECT a.attrelid, a.attnum, a.attname, a.atttypid, c.relnamespace, c.relkind, c.relispartition,
               d.oid AS default_oid, i.schema AS minted_in, i.is_copy
        FROM (SELECT d.objid AS oid, f.schema, f.is_copy
              FROM id_function AS f JOIN pg_depend AS d ON d.refobjid = f.oid
              WHERE d.refclassid = 'pg_proc'::regclass AND d.classid = 'pg_attrdef'::regclass
              UNION
              SELECT c.default_oid, NULL, true FROM copy AS c WHERE c.default_oid IS NOT NULL) AS i
             JOIN pg_attrdef AS d ON d.oid = i.oid
             JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
             JOIN pg_class AS c ON c.oid = d.adrelid
        WHERE c.relpersistence <> 't'),
    default_sequence AS MATERIALIZED (
        SELECT i.attrelid, i.attname, i.relnamespace, i.relispartition, i.minted_in, i.is_copy,
               s.oid AS sequence, s.relnamespace AS sequence_schema
        FROM id_column AS i JOIN pg_depend AS d ON d.objid = i.default_oid
             JOIN pg_class AS s ON s.oid = d.refobjid
        WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass
          AND s.relkind = 'S' AND s.relpersistence <> 't'),

    -- ... and those that refer to such a column, or to one that refers to it
    holder (relid, attnum) AS (
        SELECT i.attrelid, i.attnum FROM id_column AS i
        UNION
        SELECT a.attrelid, a.attnum FROM pg_attribute AS a WHERE a.atttypid = 'instaid.id'::regtype
        UNION
        SELECT f.conrelid, k.attnum
        FROM holder AS h JOIN pg_constraint AS f ON f.confrelid = h.relid
             CROSS JOIN LATERAL unnest(f.conkey, f.confkey) AS k (attnum, refers_to)
        WHERE f.contype = 'f' AND f.conparentid = 0 AND k.refers_to = h.attnum),

    -- The sequences that instaid.next_id() moves, and where they stand: null if
    -- the role may not see it.  A value past the last tick is no ID's: core knows
    -- it, but fails if the sequence is just being dropped.  last_id() has waited
    -- for that, and whether the sequence is there is seen right after it.
    used (sequence, shard_id, epoch) AS (
        SELECT s.sequence::oid, s.shard_id, s.epoch FROM shard AS s
        UNION
        SELECT d.sequence, s.shard_id, s.epoch
        FROM default_sequence AS d LEFT JOIN shard AS s ON s.schema = d.minted_in
        WHERE NOT d.is_copy),
    clocked AS MATERIALIZED (
        SELECT u.sequence::regclass::text AS name, c.relpersistence, q.seqtypid, q.seqincrement, q.seqcycle, q.seqmax,
               1125899906842623 AS last_tick, r.is_readable, t.tick,
               instaid.extract_timestamp(i.last_id, u.epoch) - clock_timestamp() AS drift
        FROM used AS u JOIN pg_class AS c ON c.oid = u.sequence JOIN pg_sequence AS q ON q.seqrelid = c.oid
             CROSS JOIN LATERAL (SELECT has_sequence_privilege(c.oid, 'USAGE, SELECT')
                                        AND (c.relpersistence = 'p' OR NOT pg_is_in_recovery())) AS r (is_readable)
             CROSS JOIN LATERAL (SELECT instaid.last_id(c.oid, 0)) AS i (last_id)
             CROSS JOIN LATERAL (SELECT COALESCE((i.last_id >> 23 << 10) | (i.last_id & 1023),
                                                 CASE WHEN r.is_readable AND instaid.last_id(c.oid, 0) IS NULL
                                                           AND has_sequence_privilege(c.oid, 'USAGE, SELECT')
                                                      THEN pg_sequence_last_value(c.oid) END)) AS t (tick)),

    finding (severity, object, problem, cure) AS (
        -- It takes nextval and the time in two steps, so that two sessions can pair
        -- the same of both; and it repeats IDs when the clock is set back.
        SELECT 'error', c.name, 'copy of the published function: its IDs repeat', c.cure
        FROM copy_cure AS c
        UNION ALL
        -- from a page that doubled the percent sign: every call fails
        SELECT 'error', c.name, 'has the operator %%, which does not exist', c.cure
        FROM copy_cure AS c WHERE c.bare ~ '%%'
        UNION ALL
        -- A clock that stands still: the 1,025th ID of a transaction is the first again.
        SELECT 'error', c.name, 'reads a clock that stands still in a statement: its 1,025th ID is the first again', c.cure
        FROM copy_cure AS c
        WHERE c.bare ~* '\m(?:(?:now|statement_timestamp|transaction_timestamp)\s*\(|(?:current_timestamp|localtimestamp)\M)'
          AND c.bare !~* '\m(?:clock_timestamp|timeofday)\s*\('
        UNION ALL
        -- A name in text is looked up at each call: after a rename it is not found,
        -- or search_path finds another.  Only what is parsed once holds a regclass.
        SELECT 'warning', c.name, 'names its sequence in its text: it fails after a rename', c.cure
        FROM copy_cure AS c
        WHERE CASE WHEN c.is_parsed THEN c.text LIKE '%nextval((%'       -- is cast when it runs
                   ELSE c.text ~* '\mnextval\s*\(\s*(?:E?''|(?:format|concat|concat_ws|quote_ident|cast)\s*\(|[^;'')]*(?:\|\||::\s*text))'
                        OR c.text || ';' || c.arguments
                           ~* ('\m' || c.sequence_variable || '\s+(?:constant\s+)?(?:text|varchar|character\s+varying|name)\M') END
        UNION ALL
        -- A session takes values beforehand, and uses them in a later millisecond.
        SELECT 'error', c.name, format('its sequence %s has CACHE %s: its IDs repeat at any rate', q.sequence::regclass, s.seqcache),
               format('ALTER SEQUENCE %s CACHE 1;', q.sequence::regclass)
        FROM copy AS c JOIN copy_sequence AS q ON q.copy = COALESCE(c.routine, c.default_oid)
             JOIN pg_sequence AS s ON s.seqrelid = q.sequence
        WHERE s.seqcache > 1
        UNION ALL
        -- 13 bits: more run over into the time.
        SELECT 'error', c.name, format('shard ID %s is above 8191: its IDs name another shard, and another time', c.shard_id), c.cure
        FROM copy_cure AS c WHERE c.shard_id > 8191
        UNION ALL
        -- Pasted with its shard ID: two sequences give the same values.
        SELECT 'error', c.name, format('shard ID %s is also that of %s', c.shard_id, o.name),
               'Give one of them another shard ID; instaid.shards lists those that are taken.'
        FROM copy_cure AS c
             JOIN (SELECT p.name, p.shard_id, p.schema, p.sequence FROM copy_cure AS p
                   UNION ALL
                   SELECT format('%I.next_id()', s.schema_name), s.shard_id, s.schema, s.sequence::oid FROM shard AS s) AS o
             ON o.shard_id = c.shard_id AND o.name <> c.name
        WHERE (o.schema, o.sequence) IS DISTINCT FROM (c.schema, c.sequence)
        UNION ALL
        -- What is not seen is not frozen, watched, or kept from being taken twice.
        SELECT 'warning', h.oid::regprocedure::text, 'calls instaid.next_id() in a way that instaid.shards does not see',
               'Replace its body by RETURN instaid.next_id(sequence, shard_id), LANGUAGE sql, with constants.'
        FROM hidden AS h
        UNION ALL
        -- CREATE TABLE ... (LIKE template INCLUDING DEFAULTS) keeps the template's shard.
        SELECT 'error', format('%s.%I', i.attrelid::regclass, i.attname),
               format(CASE WHEN i.is_sequence THEN 'its sequence is that of schema %I' ELSE 'its IDs are those of schema %I' END, n.nspname),
               format('ALTER TABLE %s ALTER %I SET DEFAULT %I.next_id();', i.attrelid::regclass, i.attname, m.nspname)
        FROM (SELECT c.attrelid, c.attname, c.relnamespace, c.relispartition, c.minted_in AS schema, false AS is_sequence
              FROM id_column AS c
              UNION
              SELECT d.attrelid, d.attname, d.relnamespace, d.relispartition, d.sequence_schema, true FROM default_sequence AS d
              WHERE d.sequence_schema IS DISTINCT FROM d.minted_in) AS i
             JOIN pg_namespace AS n ON n.oid = i.schema
             JOIN pg_namespace AS m ON m.oid = i.relnamespace
        WHERE i.schema <> i.relnamespace AND NOT i.relispartition AND i.relnamespace IN (SELECT h.schema FROM home AS h)
          AND (i.schema IN (SELECT h.schema FROM home AS h) OR i.schema IN (SELECT c.schema FROM copy AS c))
        UNION ALL
        -- instaid.next_id() with the shard ID of another schema
        SELECT 'error', format('%s.%I', i.attrelid::regclass, i.attname),
               CASE WHEN own.shard_id <> n.shard_id THEN format('its IDs name shard %s, and its schema is shard %s', n.shard_id, own.shard_id)
                    ELSE format('shard ID %s is also that of schema %I', n.shard_id, s.schema_name) END,
               format('ALTER TABLE %s ALTER %I SET DEFAULT %I.next_id();', i.attrelid::regclass, i.attname,
                      COALESCE(own.schema_name, s.schema_name))
        FROM id_column AS i JOIN pg_attrdef AS d ON d.oid = i.default_oid
             CROSS JOIN LATERAL (SELECT (regexp_match(pg_get_expr(d.adbin, d.adrelid),
                                                      '\minstaid\.next_id\(.*, (\d{1,4})\M'))[1]::integer) AS n (shard_id)
             LEFT JOIN shard AS own ON own.schema = i.relnamespace
             LEFT JOIN shard AS s ON s.shard_id = n.shard_id
        WHERE i.minted_in IS NULL AND NOT i.is_copy AND NOT i.relispartition
          AND (own.shard_id <> n.shard_id
               OR s.schema <> i.relnamespace
                  AND NOT EXISTS (SELECT FROM default_sequence AS q JOIN shard AS o ON o.schema = q.sequence_schema
                                  WHERE q.attrelid = i.attrelid AND q.attname = i.attname AND o.shard_id = n.shard_id))
        UNION ALL
        -- An ID does not fit into it: "integer out of range"; a float rounds it.
        SELECT 'error', format('%s.%I', a.attrelid::regclass, a.attname),
               format('type %s %s', format_type(a.atttypid, NULL),
                      CASE WHEN i.attrelid IS NULL THEN 'cannot hold the IDs that it refers to' ELSE 'cannot hold its IDs' END),
               CASE WHEN i.minted_in = c.relnamespace AND NOT i.is_copy
                      AND c.relkind <> 'f' AND t.oid IN ('integer'::regtype, 'smallint'::regtype) AND c.relnamespace IN (SELECT s.schema FROM shard AS s)
                    THEN format('SELECT * FROM instaid.adopt_column(%L, %L);', a.attrelid::regclass, a.attname)
                    ELSE format('ALTER %s %s ALTER %I TYPE bigint;', CASE c.relkind WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END,
                                a.attrelid::regclass, a.attname) END
        FROM holder AS h JOIN pg_attribute AS a ON a.attrelid = h.relid AND a.attnum = h.attnum
             JOIN pg_type AS t ON t.oid = a.atttypid
             JOIN pg_class AS c ON c.oid = a.attrelid
             LEFT JOIN id_column AS i ON i.attrelid = a.attrelid AND i.attnum = a.attnum
        WHERE COALESCE(NULLIF(t.typbasetype, 0), t.oid) IN ('integer'::regtype, 'smallint'::regtype, 'real'::regtype, 'double precision'::regtype)
          AND c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't' AND a.attinhcount = 0
        UNION ALL
        -- Only an index refuses an ID that was inserted by hand, or came twice in a restore.
        SELECT 'warning', format('%s.%I', i.attrelid::regclass, i.attname), 'no unique index on the ID alone',
               CASE WHEN p.partrelid IS NOT NULL AND (p.partnatts <> 1 OR p.partattrs[0] <> i.attnum)
                    THEN 'Partition the table by its ID: a unique index must have all columns of the partition key.'
                    ELSE format('CREATE UNIQUE INDEX ON %s (%I);', i.attrelid::regclass, i.attname) END
        FROM id_column AS i LEFT JOIN pg_partitioned_table AS p ON p.partrelid = i.attrelid
        WHERE i.relkind IN ('r', 'p') AND NOT i.relispartition
          AND NOT EXISTS (SELECT FROM pg_index AS x
                          WHERE x.indrelid = i.attrelid AND x.indisunique AND x.indisvalid AND x.indnkeyatts = 1
                            AND x.indkey[0] = i.attnum AND x.indpred IS NULL)
        UNION ALL
        -- create_shard() refuses it; a restore, a rename, or a function by hand does not.
        SELECT 'error', quote_ident(s.schema_name), format('shard ID %s is also that of schema %I', s.shard_id, o.schema_name),
               'Let one of them give no more IDs, with instaid.freeze_shard(), and have its tables use a shard with another ID.'
        FROM shard AS s JOIN shard AS o ON o.shard_id = s.shard_id AND o.schema <> s.schema
        UNION ALL
        -- as next_id() itself checks; a frozen one has its MAXVALUE on purpose
        SELECT 'error', q.name, w.complaint,
               format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 NO MAXVALUE NO CYCLE;', q.name)
        FROM clocked AS q
             CROSS JOIN LATERAL (SELECT CASE
                 WHEN q.seqtypid <> 'bigint'::regtype
                 THEN format('cannot serve: its type is %s; it must be bigint', format_type(q.seqtypid, NULL))
                 WHEN q.seqincrement <> 1 THEN format('cannot serve: its INCREMENT is %s; it must be 1', q.seqincrement)
                 WHEN q.seqcycle THEN 'cannot serve: it is defined with CYCLE'
                 WHEN q.seqmax < q.last_tick AND q.is_readable AND q.tick IS DISTINCT FROM q.seqmax
                 THEN format('cannot serve: its MAXVALUE is %s; it must be at least %s', q.seqmax, q.last_tick) END) AS w (complaint)
        WHERE w.complaint IS NOT NULL
        UNION ALL
        -- setval() or advance_past() took it too far, or its time is over
        SELECT 'error', q.name, 'has reached the last tick of the ID format', format('ALTER SEQUENCE %s RESTART;', q.name)
        FROM clocked AS q WHERE q.tick >= q.last_tick AND q.seqmax >= q.last_tick
        UNION ALL
        -- After a crash it starts from the clock: IDs that were ahead of it come again.
        SELECT 'warning', q.name, 'is unlogged: it forgets its IDs in a crash', format('ALTER SEQUENCE %s SET LOGGED;', q.name)
        FROM clocked AS q WHERE q.relpersistence = 'u'
        UNION ALL
        -- setval() or ALTER SEQUENCE left it so: nextval() gives what another server gives
        SELECT 'warning', t.sequence::text, 'stands at a value of another server', format('SELECT instaid.next_ticket(%L);', t.name)
        FROM instaid.tickets AS t WHERE t.phase_slipped
        UNION ALL
        -- create_ticket() left it at its end
        SELECT 'error', t.sequence::text, 'has a source, and was altered: nextval() gives what the source gives, too',
               format('ALTER SEQUENCE %s MINVALUE -2 MAXVALUE -1 START -1 RESTART; SELECT setval(%L, -1);', t.sequence, t.sequence)
        FROM instaid.tickets AS t JOIN pg_sequence AS q ON q.seqrelid = t.sequence
        WHERE t.source IS NOT NULL AND q.seqmax >= 0
        UNION ALL
        SELECT 'error', t.sequence::text, 'has lost its source: next_ticket() fails',
               format('SECURITY LABEL FOR instaid ON SEQUENCE %s IS ''host=...'';', t.sequence)
        FROM instaid.tickets AS t JOIN pg_sequence AS q ON q.seqrelid = t.sequence
        WHERE t.source IS NULL AND q.seqmax < 0 AND q.seqincrement > 0
        UNION ALL
        SELECT 'error', t.sequence::text, 'has a source, but no buffer: next_ticket() fails',
               'Add instaid to shared_preload_libraries, and restart the server.'
        FROM instaid.tickets AS t
        WHERE t.source IS NOT NULL AND current_setting('instaid.max_buffered_tickets', true) IS NULL
        UNION ALL
        -- next_id() fails then; tables need years to move
        SELECT CASE WHEN s.expires_at <= clock_timestamp() THEN 'error' ELSE 'warning' END, quote_ident(s.schema_name),
               format(CASE WHEN s.expires_at <= clock_timestamp() THEN 'its IDs ended at %s' ELSE 'its IDs end at %s, in under five years' END,
                      s.expires_at),
               'Let its tables use another shard, with a later epoch: instaid.create_shard(schema_name, shard_id, epoch).'
        FROM shard AS s WHERE s.expires_at < clock_timestamp() + interval '5 years'
        UNION ALL
        -- The clock was set back: the time in IDs is wrong, and they come slowly.
        SELECT 'warning', q.name, format('its IDs are %s ahead of the clock; instaid.max_drift is %s', q.drift, d.max_drift),
               'Set the server''s clock right; if it was wrong by much, see docs/operations.md, else wait.'
        FROM clocked AS q
             CROSS JOIN LATERAL (SELECT g.setting::integer * interval '1 ms' AS max_drift
                                 FROM pg_settings AS g WHERE g.name = 'instaid.max_drift') AS d
        WHERE q.drift > d.max_drift + interval '64 ms' AND q.tick < q.last_tick)
    SELECT f.severity, f.object, f.problem, f.cure
    FROM (SELECT DISTINCT * FROM finding) AS f
    ORDER BY f.severity COLLATE "C", f.object COLLATE "C", f.problem COLLATE "C";
END;
COMMENT ON FUNCTION instaid.audit() IS
'what repeats, refuses or endangers the IDs of this database: a row a finding, none if all is well';
