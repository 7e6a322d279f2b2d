/* sql-edition/ids.sql */

-- Reading and packing IDs, time ranges, IDs for old rows.

\ir begin.sql
CALL instaid._begin_file('ids.sql');

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
    first CONSTANT timestamptz := timestamptz '4714-11-24 00:00:00+00 BC';
    last CONSTANT timestamptz := instaid_sql._end_of_epochs() - interval '1 ms';
    excess integer;
BEGIN
    IF epoch < first OR epoch >= instaid_sql._end_of_epochs() THEN
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

CREATE OR REPLACE FUNCTION instaid.make_id(created_at timestamptz, shard_id integer,
                                sequence bigint,
                                epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' AS $$
DECLARE
    ms numeric;
BEGIN
    PERFORM instaid_sql._check_shard_id(shard_id);
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
COMMENT ON FUNCTION instaid.make_id(timestamptz, integer, bigint, timestamptz) IS
'the ID that has this time, shard ID and sequence; the time is rounded down to the '
'millisecond, and of the sequence the low bits count; error if the shard ID or the time, counted '
'from the epoch, does not fit';

-- The bits of the time have no sign.
CREATE OR REPLACE FUNCTION instaid.extract_timestamp(id bigint,
                                          epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS timestamptz
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

CREATE OR REPLACE FUNCTION instaid.extract_sequence(id bigint) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (id & instaid_sql._max_sequence())::integer;
COMMENT ON FUNCTION instaid.extract_sequence(bigint) IS 'the sequence field of an ID';

CREATE OR REPLACE FUNCTION instaid.decode(id bigint,
                               epoch timestamptz DEFAULT instaid.default_epoch(),
                               OUT created_at timestamptz, OUT shard_id integer,
                               OUT sequence integer)
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ROW(instaid.extract_timestamp(id, epoch), instaid.extract_shard_id(id),
               instaid.extract_sequence(id));
COMMENT ON FUNCTION instaid.decode(bigint, timestamptz) IS
'the time of an ID (to the millisecond), its shard ID and its sequence field';

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
CREATE OR REPLACE FUNCTION instaid._min_id_from(created_at timestamptz,
                                    epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN NULLIF(instaid_sql._first_ms_from(created_at, epoch), instaid_sql._last_ms() + 1)
           << instaid_sql._ms_shift();

-- The largest ID whose time is before created_at; -1 if there is none.
CREATE OR REPLACE FUNCTION instaid._max_id_before(created_at timestamptz,
                                      epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (instaid_sql._first_ms_from(created_at, epoch) - 1 << instaid_sql._ms_shift())
           + instaid_sql._low_bits();

CREATE OR REPLACE FUNCTION instaid.min_id(created_at timestamptz,
                               epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN LEAST(GREATEST(floor(instaid_sql._ms_since(epoch, created_at)), 0),
                 instaid_sql._last_ms())::bigint << instaid_sql._ms_shift();
COMMENT ON FUNCTION instaid.min_id(timestamptz, timestamptz) IS
'the smallest ID of a millisecond, over all shards; a time before the epoch counts as the '
'first millisecond of the format, and a time after its end as the last';

CREATE OR REPLACE FUNCTION instaid.max_id(created_at timestamptz,
                               epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (LEAST(GREATEST(floor(instaid_sql._ms_since(epoch, created_at)), 0),
                  instaid_sql._last_ms())::bigint << instaid_sql._ms_shift())
           | instaid_sql._low_bits();
COMMENT ON FUNCTION instaid.max_id(timestamptz, timestamptz) IS
'the largest ID of a millisecond, over all shards; a time before the epoch counts as the '
'first millisecond of the format, and a time after its end as the last';

\ir ../common/time_ranges.sql

CALL instaid._set_rights();
COMMIT;
