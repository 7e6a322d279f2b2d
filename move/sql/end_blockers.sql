-- Ends the sessions that a session waits for, if this role may, and names all of them.
-- $1: the process of that session
SELECT CASE b.pid WHEN 0 THEN 'a prepared transaction'
    ELSE format('session %s of role %s', b.pid, COALESCE(a.usename, 'unknown')) END AS name,
    CASE WHEN me.rolsuper OR NOT r.rolsuper AND (pg_has_role(r.oid, 'USAGE')
        OR pg_has_role('pg_signal_backend', 'USAGE')) THEN pg_terminate_backend(b.pid) END AS is_ended
FROM unnest(pg_blocking_pids($1::integer)) AS b (pid) LEFT JOIN pg_stat_activity AS a ON a.pid = b.pid
LEFT JOIN pg_roles AS r ON r.oid = a.usesysid JOIN pg_roles AS me ON me.rolname = current_user
