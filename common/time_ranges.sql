---- Time ranges ----

-- Not STRICT: PostgreSQL would not inline an AND.  Each time is used once, so that it can be a
-- subselect.  ">=", because "> the largest before" does not prune the partition that ends there.
CREATE OR REPLACE FUNCTION instaid.created_between(
    id bigint, from_time timestamptz, to_time timestamptz,
    epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN id >= instaid._min_id_from(from_time, epoch)
           AND id <= instaid._max_id_before(to_time, epoch);
COMMENT ON FUNCTION instaid.created_between(bigint, timestamptz, timestamptz, timestamptz) IS
'whether an ID has a time from from_time on, before to_time; uses indexes, prunes partitions';

-- The end of an epoch's IDs: the time of the first one that would be negative.
CREATE OR REPLACE FUNCTION instaid._end_of_ids(epoch timestamptz) RETURNS timestamptz
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN instaid.extract_timestamp(-9223372036854775808, epoch);
