-- Which other sessions have locks of the shards.  $1: the shards
SELECT string_agg(DISTINCT CASE WHEN l.pid IS NULL THEN 'a prepared transaction'
    ELSE concat_ws(' of ', 'session ' || l.pid, quote_ident(a.usename)) END, ', ')
FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.granted AND l.database = {{database}} AND l.pid IS DISTINCT FROM pg_backend_pid()
    AND (l.locktype = 'relation' AND l.relation IN (SELECT oid FROM pg_class WHERE relnamespace IN {{ours}})
        OR l.locktype = 'object' AND l.classid = 'pg_namespace'::regclass AND l.objid IN {{ours}})
