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
           -- the time of the first ID that would be negative
           instaid.extract_timestamp(-9223372036854775808, e.epoch) AS expires_at
    FROM instaid.list_shards() AS s
         CROSS JOIN LATERAL (SELECT COALESCE(s.epoch, instaid.default_epoch())) AS e (epoch)
         CROSS JOIN LATERAL (SELECT instaid.last_id(s.sequence, s.shard_id)) AS i (last_id)
         CROSS JOIN LATERAL (SELECT instaid.extract_timestamp(i.last_id, e.epoch)) AS t (last_issued_at);
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
COMMENT ON COLUMN instaid.shards.expires_at IS 'end of the shard: its IDs would be negative from here on';

CREATE FUNCTION instaid.create_shard(schema_name name, shard_id integer,
                                     epoch timestamptz DEFAULT instaid.default_epoch(),
                                     sequence_name name DEFAULT 'table_id_seq') RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO'
    SET timezone = 'UTC'
AS $$
DECLARE
    sequence text;
    arguments text;
    expires_at timestamptz;
    other record;
BEGIN
    IF schema_name IS NULL OR shard_id IS NULL OR epoch IS NULL OR sequence_name IS NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = 'create_shard() does not take a null',
            DETAIL = format('schema_name is %L, shard_id is %L, epoch is %L, sequence_name is %L.',
                            schema_name, shard_id, epoch, sequence_name);
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
        WHERE s.schema_name = create_shard.schema_name;
    IF FOUND THEN
        RAISE duplicate_function USING
            MESSAGE = format('schema %I already has a function next_id()', schema_name),
            DETAIL = format('It makes the schema shard %s.', other.shard_id),
            HINT = 'A schema is one shard: choose another schema.';
    END IF;
    SELECT s.* INTO other FROM instaid.list_shards() AS s
        WHERE s.shard_id = create_shard.shard_id;
    IF FOUND THEN
        RAISE duplicate_object USING
            MESSAGE = format('shard ID %s is taken by schema %I', shard_id, other.schema_name),
            DETAIL = 'IDs of the two shards would repeat each other.',
            HINT = (SELECT COALESCE(format('Shard ID %s is free', min(n)), 'No shard ID is free')
                           || '; instaid.shards lists those that are taken.'
                    FROM generate_series(0, 8191) AS n
                    WHERE n NOT IN (SELECT s.shard_id FROM instaid.list_shards() AS s));
    END IF;
    SELECT p.oid::regprocedure AS routine, p.proname INTO other
        FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = schema_name AND p.proname IN ('next_id', 'next_ids')
        ORDER BY p.proname, p.pronargs LIMIT 1;
    IF FOUND THEN
        RAISE duplicate_function USING
            MESSAGE = format('schema %I already has a function %s()', schema_name, other.proname),
            DETAIL = format('It is %s.', other.routine),
            HINT = format('Rename it first: ALTER ROUTINE %s RENAME TO old_%s; '
                          'column defaults that use it go on using it.', other.routine, other.proname);
    END IF;
    sequence := format('%I.%I', schema_name, sequence_name);
    IF to_regclass(sequence) IS NOT NULL THEN
        RAISE duplicate_table USING
            MESSAGE = format('relation %s already exists', sequence),
            HINT = 'Pass another sequence_name, or drop the relation if nothing uses it.';
    END IF;

    IF expires_at < clock_timestamp() + interval '5 years' THEN
        RAISE WARNING USING
            MESSAGE = format('shard %s ends in less than five years', shard_id),
            DETAIL = format('With epoch %s its last ID is made at %s.', epoch, expires_at);
    END IF;
    SELECT count(*) AS shards, min(s.schema_name::text) AS schema_name INTO other
        FROM instaid.list_shards() AS s
        WHERE COALESCE(s.epoch, instaid.default_epoch()) <> create_shard.epoch;
    IF other.shards > 0 THEN
        RAISE NOTICE USING
            MESSAGE = format('epoch %s differs from that of other shards', epoch),
            DETAIL = format('Shards with another epoch: %s, such as schema %I. Their IDs and this shard''s do not sort by time together.',
                            other.shards, other.schema_name);
    END IF;

    IF to_regnamespace(quote_ident(schema_name)) IS NULL THEN
        EXECUTE format('CREATE SCHEMA %I', schema_name);
    END IF;
    EXECUTE format('CREATE SEQUENCE %s', sequence);
    EXECUTE format('COMMENT ON SEQUENCE %s IS %L', sequence,
                   format('ticks of shard %s: ms since %s << 10 | sequence', shard_id, epoch));

    -- Standard bodies: they are inlined, follow what they name through a
    -- rename, do not depend on search_path, and are dumped with the schema.
    arguments := format('%s, %L::timestamptz', shard_id, epoch);
    EXECUTE format('CREATE FUNCTION %I.next_id() RETURNS bigint'
                   ' LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE'
                   ' RETURN instaid.next_id(%L::regclass, %s)',
                   schema_name, sequence, arguments);
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
END
$$;
COMMENT ON FUNCTION instaid.create_shard(name, integer, timestamptz, name) IS
'make a schema a shard: create it if it is missing, its sequence, and its functions next_id(), next_id(regclass) and next_ids(integer); needs CREATE on the database or on the schema';
