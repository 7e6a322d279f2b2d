-- What a new slot waits for.
SELECT string_agg(x, ', ') FROM (
    SELECT 'session ' || pid FROM pg_stat_activity
    WHERE backend_xid IS NOT NULL AND xact_start < now() - interval '1 s'
    UNION ALL SELECT format('prepared transaction %L of database %I', gid, database)
    FROM pg_prepared_xacts) AS u (x)
