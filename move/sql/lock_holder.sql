-- Who holds a lock: any role can.  $1: its number
SELECT format('Session %s of role %I holds its lock.', l.pid, a.usename) AS holder
FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.database = {{database}} AND l.objsubid = 2
    AND l.objid::bigint = $1::bigint & 4294967295
    AND l.classid::bigint = hashtext('instaid-move')::bigint & 4294967295
