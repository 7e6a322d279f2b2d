/* sql-edition/ids.sql */

-- Reading and packing IDs, time ranges, IDs as text, partitions by time.

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
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' AS $$
DECLARE
    first CONSTANT timestamptz := timestamptz '4714-11-24 00:00:00+00 BC';
    last CONSTANT timestamptz := instaid_sql._end_of_epochs() - interval '1 ms';
    excess integer;
BEGIN
    IF epoch < first OR epoch >= instaid_sql._end_of_epochs() THEN
        RAISE invalid_parameter_value USING MESSAGE = format('epoch %s is out of range', epoch),
            DETAIL = format('An epoch must be between %s and %s.', first, last);
    END IF;
    excess := extract(microseconds FROM epoch)::integer % 1000;
    RAISE invalid_parameter_value USING
        MESSAGE = format('epoch %s is not a whole millisecond', epoch),
        DETAIL = format('It is %s us after a whole millisecond. IDs count milliseconds.', excess),
        HINT = format('Pass %s.', epoch - excess * interval '1 us');
END $$;

-- An epoch in UTC; refuse one that is infinite, out of range, or not a whole millisecond.
CREATE OR REPLACE FUNCTION instaid_sql._utc_epoch(epoch timestamptz) RETURNS timestamp
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    -- without SET, because queries call it for each row if the epoch is not constant
    IF epoch OPERATOR(pg_catalog.>=) pg_catalog.timestamptz '4714-11-24 00:00:00+00 BC'
       AND epoch OPERATOR(pg_catalog.<) instaid_sql._end_of_epochs()
       AND pg_catalog.date_part('microseconds', epoch)::pg_catalog.int4
           OPERATOR(pg_catalog.%) 1000 OPERATOR(pg_catalog.=) 0
    THEN
        RETURN pg_catalog.timezone('UTC', epoch);
    END IF;
    RETURN instaid_sql._refuse_epoch(epoch);
END $$;

CREATE OR REPLACE FUNCTION instaid.make_id(
    created_at timestamptz, shard_id integer, sequence bigint,
    epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' AS $$
DECLARE
    ms numeric;
BEGIN
    IF shard_id NOT BETWEEN 0 AND instaid_sql._max_shard_id() THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('shard ID %s is out of range', shard_id),
            DETAIL = format('A shard ID is between 0 and %s.', instaid_sql._max_shard_id());
    END IF;
    ms := floor(instaid_sql._ms_since(epoch, created_at));
    IF ms NOT BETWEEN 0 AND instaid_sql._max_ms() THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('time %s is out of range for an ID', created_at),
            DETAIL = format('The time must be between the epoch, %s, and %s ms after it.', epoch,
                            instaid_sql._max_ms());
    END IF;
    RETURN (ms::bigint << instaid_sql._ms_shift())
           | (shard_id << instaid_sql._sequence_bits()) | (sequence & instaid_sql._max_sequence());
END $$;
COMMENT ON FUNCTION instaid.make_id IS 'the ID of a time, rounded down to 1 ms, a shard ID, and '
'the low bits of a sequence; error if the shard ID, or the time since the epoch, does not fit';

-- The bits of the time have no sign.
CREATE OR REPLACE FUNCTION instaid.extract_timestamp(
    id bigint, epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (instaid_sql._utc_epoch(epoch)
            + (id >> instaid_sql._ms_shift() & instaid_sql._max_ms()) * interval '1 ms')
           AT TIME ZONE 'UTC';
COMMENT ON FUNCTION instaid.extract_timestamp(bigint, timestamptz) IS
'the time of an ID, to the millisecond';

CREATE OR REPLACE FUNCTION instaid.extract_shard_id(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (id >> instaid_sql._sequence_bits() & instaid_sql._max_shard_id())::integer;
COMMENT ON FUNCTION instaid.extract_shard_id(bigint) IS 'the shard ID of an ID';

CREATE OR REPLACE FUNCTION instaid.decode(
    id bigint, epoch timestamptz DEFAULT instaid.default_epoch(), OUT created_at timestamptz,
    OUT shard_id integer, OUT sequence integer)
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ROW(instaid.extract_timestamp(id, epoch), instaid.extract_shard_id(id),
               (id & instaid_sql._max_sequence())::integer);
COMMENT ON FUNCTION instaid.decode IS 'the time of an ID, its shard ID and its sequence field';

---- Bounds of times ----

-- The milliseconds from an epoch to a time, with fractions.
-- In numeric, because times can be infinite.  The result counts from the epoch.
CREATE OR REPLACE FUNCTION instaid_sql._ms_since(epoch timestamptz, created_at timestamptz)
    RETURNS numeric
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (extract(epoch FROM created_at AT TIME ZONE 'UTC')
            - extract(epoch FROM instaid_sql._utc_epoch(epoch))) * 1000;
END $$;

-- The first millisecond of the format that begins at a time or after it; the one after the last
-- if there is none.
CREATE OR REPLACE FUNCTION instaid_sql._first_ms_from(created_at timestamptz, epoch timestamptz)
    RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN LEAST(GREATEST(ceil(instaid_sql._ms_since(epoch, created_at)), 0),
                 instaid_sql._last_ms() + 1);
END $$;

-- The bounds of created_between():
--
--                 before the epoch    in the format       after it
--  _min_id_from   0                   smallest, time >=   null
--  _max_id_before -1                  largest, time <     9223372036854775807
CREATE OR REPLACE FUNCTION instaid._min_id_from(
    created_at timestamptz, epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN NULLIF(instaid_sql._first_ms_from(created_at, epoch), instaid_sql._last_ms() + 1)
           << instaid_sql._ms_shift();

-- The largest ID whose time is before created_at; -1 if there is none.
CREATE OR REPLACE FUNCTION instaid._max_id_before(
    created_at timestamptz, epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (instaid_sql._first_ms_from(created_at, epoch) - 1 << instaid_sql._ms_shift())
           + instaid_sql._low_bits();

CREATE OR REPLACE FUNCTION instaid.min_id(created_at timestamptz,
                               epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN LEAST(GREATEST(floor(instaid_sql._ms_since(epoch, created_at)), 0),
                 instaid_sql._last_ms())::bigint << instaid_sql._ms_shift();
COMMENT ON FUNCTION instaid.min_id(timestamptz, timestamptz) IS
'the smallest ID of a millisecond, in all shards; times outside the format count as its ends';

CREATE OR REPLACE FUNCTION instaid.max_id(created_at timestamptz,
                               epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN instaid.min_id(created_at, epoch) | instaid_sql._low_bits();
COMMENT ON FUNCTION instaid.max_id(timestamptz, timestamptz) IS
'the largest ID of a millisecond, in all shards; times outside the format count as its ends';

\ir ../common/time_ranges.sql

---- Text forms ----

--  digits             bits  length  0   2^63 - 1
--  A-Z a-z 0-9 - _    6     1..11   A   H__________

-- Refuse an ID that has no text form.
CREATE OR REPLACE FUNCTION instaid_sql._refuse_negative(id bigint) RETURNS text
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE numeric_value_out_of_range USING MESSAGE = format('ID %s has no text form', id),
        DETAIL = 'Only IDs from 0 to 9223372036854775807 have one.';
END $$;

-- Twelve digits of base64 are 9 bytes.  The first digit is 0.
CREATE OR REPLACE FUNCTION instaid.to_shortcode(id bigint) RETURNS text
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN CASE WHEN id < 0 THEN instaid_sql._refuse_negative(id) WHEN id = 0 THEN 'A'
                ELSE ltrim(translate(encode(decode('00', 'hex') || int8send(id), 'base64'),
                                     '+/', '-_'), 'A') END;
COMMENT ON FUNCTION instaid.to_shortcode(bigint) IS
'an ID as in Instagram''s addresses: 1 to 11 base64url digits; error if it is negative';

-- The first fault from the left counts.
CREATE OR REPLACE FUNCTION instaid.from_shortcode(shortcode text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    alphabet CONSTANT text := 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    explanation CONSTANT text := 'A shortcode has 1 to 11 of the digits A-Z, a-z, 0-9, - and _.';
    id bigint := 0;
    digit integer;
    character text;
    fault text;
    -- the first 64 bytes, in whole characters
    shown text := left(shortcode, 64);
BEGIN
    IF shortcode = '' THEN
        RAISE invalid_text_representation USING MESSAGE = 'shortcode is empty',
            DETAIL = explanation;
    END IF;
    FOR position IN 1 .. length(shortcode) LOOP
        character := substr(shortcode, position, 1);
        digit := strpos(alphabet, character) - 1;
        fault := CASE
            WHEN digit < 0 THEN 'invalid character "%s" at position %s of shortcode "%s"'
            WHEN digit = 0 AND position = 1 AND shortcode <> character
            THEN 'leading zero "%s" at position %s of shortcode "%s"'
            WHEN id > 9223372036854775807 >> 6
            THEN 'digit "%s" at position %s of shortcode "%s" makes the ID too large' END;
        IF fault IS NOT NULL THEN
            WHILE octet_length(shown) > 64 LOOP
                shown := left(shown, -1);
            END LOOP;
            RAISE invalid_text_representation USING
                MESSAGE = format(fault, character, position, shown),
                DETAIL = CASE
                    WHEN digit < 0 THEN explanation
                    WHEN digit = 0 AND position = 1
                    THEN 'The shortcode of an ID has no leading zeros.'
                    ELSE 'The largest ID is 9223372036854775807, written "H__________".' END,
                HINT = CASE WHEN digit = 0 AND position = 1
                            THEN format('Remove the leading "%s".', character) ELSE '' END;
        END IF;
        id := id << 6 | digit;
    END LOOP;
    RETURN id;
END $$;
COMMENT ON FUNCTION instaid.from_shortcode IS 'the ID of a shortcode; error for other text';

\ir ../common/partitions.sql
