-- Ends the sessions that hold a lock for which a session waits, if this role may, and names them.
-- Those that only wait in the same queue, before it, are innocent, unless nobody else is in its way:
-- they wait for a lock that would not be.
-- $1: the process of that session
SELECT CASE b.pid WHEN 0 THEN 'a prepared transaction'
    ELSE format('session %s of role %s', b.pid, COALESCE(a.usename, 'unknown')) END AS name,
    CASE WHEN me.rolsuper OR NOT r.rolsuper AND (pg_has_role(r.oid, 'USAGE')
        OR pg_has_role('pg_signal_backend', 'USAGE')) THEN pg_terminate_backend(b.pid) END AS is_ended
FROM (SELECT pid, holds OR NOT bool_or(holds) OVER ()
    FROM (SELECT pid, pid = 0 OR EXISTS (SELECT FROM pg_locks AS has JOIN pg_locks AS wants
              ON ROW(has.locktype, has.database, has.relation, has.virtualxid, has.transactionid,
                  has.classid, has.objid) IS NOT DISTINCT FROM ROW(wants.locktype, wants.database,
                  wants.relation, wants.virtualxid, wants.transactionid, wants.classid, wants.objid)
              WHERE wants.pid = $1::integer AND NOT wants.granted AND has.pid = x.pid AND has.granted)
          FROM unnest(pg_blocking_pids($1::integer)) AS x (pid)) AS y (pid, holds)) AS b (pid, is_in_the_way)
LEFT JOIN pg_stat_activity AS a ON a.pid = b.pid
LEFT JOIN pg_roles AS r ON r.oid = a.usesysid JOIN pg_roles AS me ON me.rolname = current_user
WHERE b.is_in_the_way
