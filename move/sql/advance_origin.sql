-- $1: a subscription, $2: a position
SELECT pg_replication_origin_advance('pg_' || oid, $2::pg_lsn) FROM pg_subscription AS s
WHERE subname = $1 AND subdbid = {{database}}
    AND COALESCE(pg_replication_origin_progress('pg_' || oid, false) < $2::pg_lsn, true)
