-- What a new slot waits for.
SELECT string_agg(pid::text, ', ') FROM pg_stat_activity
WHERE backend_xid IS NOT NULL AND xact_start < now() - interval '1 s'
