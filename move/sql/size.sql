-- What the shards need.  $1: the shards, $2: when the move began, in seconds of the clock, or null
SELECT count(*) AS tables, pg_size_pretty(COALESCE(sum(pg_total_relation_size(c.oid)), 0)) AS size,
    COALESCE(sum(pg_relation_size(c.oid)), 0) AS bytes,
    extract(epoch FROM clock_timestamp()) - $2::numeric AS seconds
FROM {{tables}} WHERE c.relkind = 'r'
