-- What would run at a DELETE although session_replication_role is replica.  $1: a table
SELECT 'It has a trigger or a rule on the target that is ENABLE ALWAYS or REPLICA.'
FROM pg_class AS c WHERE c.oid = to_regclass($1) AND (c.relkind <> 'r'
    OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND tgenabled IN ('A', 'R'))
    OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid AND ev_enabled IN ('A', 'R')))
