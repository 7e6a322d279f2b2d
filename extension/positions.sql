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

-- include common/positions.sql

-- Load can add 64 ms to the drift, and a crash a second.  _list_shards() has loaded what defines
-- the setting.
CREATE FUNCTION instaid._drift_limit() RETURNS double precision
    LANGUAGE sql STABLE PARALLEL RESTRICTED
    RETURN EXTRACT(epoch FROM pg_catalog.current_setting('instaid.max_drift')::interval
                              + '1064 ms')::double precision;

-- include common/metrics.sql
