-- Why the target could not subscribe.
SELECT 'error' AS severity, 'may-not-subscribe' AS code, current_user
    || ' is not a superuser of the target, which PostgreSQL 15 needs for a subscription' AS object,
    CASE WHEN {{is_extension}} THEN 'use a superuser' ELSE 'make this role one, since only'
        ' the owner moves a shard in the SQL edition' END || ', or move with --dump' AS cure
FROM pg_roles WHERE rolname = current_user AND NOT rolsuper
    AND current_setting('server_version_num')::integer < 160000
UNION ALL SELECT 'error', 'may-not-subscribe', current_user
    || ' may not create subscriptions on the target',
    'GRANT pg_create_subscription TO it, and CREATE on the database'
FROM pg_roles WHERE rolname = current_user AND NOT rolsuper
    AND current_setting('server_version_num')::integer >= 160000
    AND NOT (SELECT pg_has_role(r.oid, 'USAGE') FROM pg_roles AS r
        WHERE r.rolname = 'pg_create_subscription')
UNION ALL SELECT 'error', 'workers', format('the target has %s free logical replication workers, and a'
    ' move needs 2', free), format('raise max_logical_replication_workers (%s), and restart', m)
FROM (SELECT current_setting('max_logical_replication_workers')::integer - count(pid),
    current_setting('max_logical_replication_workers') FROM pg_stat_subscription) AS x (free, m)
WHERE free < 2
UNION ALL SELECT 'error', 'worker-processes', format('max_worker_processes of the target is %s, of'
    ' which %s are free, and a move needs 2', m, free), 'raise it, and restart'
FROM (SELECT current_setting('max_worker_processes')::integer - count(*),
    current_setting('max_worker_processes') FROM pg_stat_activity WHERE backend_type LIKE '%worker%'
    AND backend_type NOT LIKE 'autovacuum%' OR backend_type LIKE 'logical replication%launcher')
    AS x (free, m) WHERE free < 2
UNION ALL SELECT 'error', 'sync-workers', 'max_sync_workers_per_subscription of the target is 0',
    'raise it' WHERE current_setting('max_sync_workers_per_subscription') = '0'
UNION ALL SELECT 'error', 'origins', 'max_replication_slots of the target is '
    || current_setting('max_replication_slots') || ', and its subscriptions need one each, and one'
    ' for each table that is copied', 'raise it, and restart'
FROM (SELECT count(*) FROM pg_replication_origin) AS x (n)
WHERE current_setting('max_replication_slots')::integer - n < 2
UNION ALL SELECT 'remark', 'slow-start', 'wal_retrieve_retry_interval of the target is '
    || current_setting('wal_retrieve_retry_interval') || ', and each move waits for that long',
    '100ms needs a reload only'
WHERE (SELECT setting::integer FROM pg_settings WHERE name = 'wal_retrieve_retry_interval') > 500
    AND current_setting('server_version_num')::integer < 160000
