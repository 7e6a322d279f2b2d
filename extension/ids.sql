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

-- include common/time_ranges.sql

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

-- include common/partitions.sql
