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
UNION ALL SELECT 'error', 'sync-workers', 'max_sync_workers_per_subscription of the target is 0',
    'raise it' WHERE current_setting('max_sync_workers_per_subscription') = '0'
UNION ALL SELECT 'remark', 'slow-start', 'wal_retrieve_retry_interval of the target is '
    || current_setting('wal_retrieve_retry_interval') || ', and each move waits for that long',
    '100ms needs a reload only'
WHERE (SELECT setting::integer FROM pg_settings WHERE name = 'wal_retrieve_retry_interval') > 500
    AND current_setting('server_version_num')::integer < 160000
