-- What a side lacks for the workers of a subscription.
-- $1: its name, $2: how many workers it needs
SELECT 'error' AS severity, 'workers' AS code, format('the %s has %s free logical replication workers,'
    ' and a move needs %s', $1::text, free, $2::text) AS object,
    format('raise max_logical_replication_workers (%s), and restart', m) AS cure
FROM (SELECT current_setting('max_logical_replication_workers')::integer - count(pid),
    current_setting('max_logical_replication_workers') FROM pg_stat_subscription) AS x (free, m)
WHERE free < $2::integer
UNION ALL SELECT 'error', 'worker-processes', format('max_worker_processes of the %s is %s, of which'
    ' %s are free, and a move needs %s', $1::text, m, free, $2::text), 'raise it, and restart'
FROM (SELECT current_setting('max_worker_processes')::integer - count(*),
    current_setting('max_worker_processes') FROM pg_stat_activity WHERE backend_type LIKE '%worker%'
    AND backend_type NOT LIKE 'autovacuum%' OR backend_type LIKE 'logical replication%launcher')
    AS x (free, m) WHERE free < $2::integer
UNION ALL SELECT 'error', 'origins', format('the %s has %s free replication origins, and a subscription'
    ' needs one, and one for each table that is copied', $1::text, m::integer - n),
    format('raise %s (%s), and restart', name, m)
FROM (SELECT count(*) FROM pg_replication_origin) AS x (n), LATERAL (
    SELECT name, setting FROM pg_settings
    WHERE name IN ('max_active_replication_origins', 'max_replication_slots') ORDER BY name LIMIT 1)
    AS y (name, m)
WHERE m::integer - n < $2::integer
