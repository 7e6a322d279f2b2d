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
    first CONSTANT timestamptz := '4714-11-24 00:00:00+00 BC';
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
    RETURN (instaid_sql._id_ms(created_at, epoch, instaid_sql._max_ms())
            << instaid_sql._ms_shift())
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

---- Old rows ----

CREATE OR REPLACE FUNCTION instaid.make_ids(times timestamptz[], shard_id integer,
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
    PERFORM instaid_sql._check_shard_id(shard_id), instaid_sql._utc_epoch(epoch);
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
        ms := instaid_sql._id_ms(times[i], epoch, 1099511627775);
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
END $$;
COMMENT ON FUNCTION instaid.make_ids IS 'an ID for each of these times, which must be in order; '
'the IDs are different and in order; above 1,024 in a millisecond they are of the next one';

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

CREATE OR REPLACE FUNCTION instaid.interval_to_ids(length interval) RETURNS bigint
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
END $$;
COMMENT ON FUNCTION instaid.interval_to_ids(interval) IS
'the difference between two IDs whose times are that far apart; for tools that partition by '
'integers; error if the interval has months, or is not 1 ms to 2^40 - 1 ms';

\ir ../common/time_ranges.sql

CALL instaid._set_rights();
COMMIT;
