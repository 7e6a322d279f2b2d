-- How a copy goes.  PostgreSQL 19 has another name for the errors of copies of tables.
-- $1: the OID of the subscription
SELECT count(*) FILTER (WHERE r.srsubstate = 'r') AS copied, count(*) AS tables,
    COALESCE(sum(pg_relation_size(r.srrelid)), 0) AS bytes,
    pg_size_pretty(COALESCE(sum(pg_relation_size(r.srrelid)), 0)) AS size,
    (SELECT COALESCE(sum(x.value::bigint), 0)
     FROM pg_stat_subscription_stats AS s, jsonb_each_text(to_jsonb(s)) AS x
     WHERE s.subid = $1::oid AND x.key IN ('apply_error_count', 'sync_error_count',
         'sync_table_error_count')) AS errors
FROM pg_subscription_rel AS r WHERE r.srsubid = $1::oid
