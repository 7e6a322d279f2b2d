-- Who creates something in a shard that is not committed.  $1: the shards
SELECT string_agg(DISTINCT COALESCE(pid::text, 'of a prepared transaction'), ', ') FROM pg_locks
WHERE granted AND database = {{database}} AND pid IS DISTINCT FROM pg_backend_pid()
    AND locktype = 'object' AND classid = 'pg_namespace'::regclass AND objid IN {{ours}}
