-- The transactions that may still write rows, or tables, of the shards: since the guards refuse, each
-- later one is refused when it has its lock.
-- $1: the shards, $2: only those that are open for so many seconds, if this role sees that
SELECT array_agg(DISTINCT l.virtualtransaction)::text AS transactions,
    string_agg(DISTINCT COALESCE(l.pid::text, 'a prepared transaction'), ', ') AS sessions
FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.granted AND l.database = {{database}} AND l.pid IS DISTINCT FROM pg_backend_pid()
    AND a.backend_type IS DISTINCT FROM 'autovacuum worker'
    AND ($2::float8 = 0 OR l.pid IS NULL
        OR a.xact_start < clock_timestamp() - $2::float8 * interval '1 s')
    AND (l.locktype = 'relation' AND l.mode NOT IN ('AccessShareLock', 'RowShareLock')
        AND l.relation IN (SELECT oid FROM pg_class WHERE relkind IN ('r', 'p')
            AND relnamespace IN {{ours}})
        OR l.locktype = 'object' AND l.classid = 'pg_namespace'::regclass AND l.objid IN {{ours}})
