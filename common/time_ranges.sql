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

CREATE OR REPLACE FUNCTION instaid.integer_now() RETURNS bigint
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN instaid.min_id(pg_catalog.now());
COMMENT ON FUNCTION instaid.integer_now() IS 'min_id(now()), for tools that partition by integers';
