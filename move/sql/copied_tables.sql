-- A line for each table whose copy is finished: its slot, and its name.
-- $1: the OID of the subscription, $2: the system identifier of its server
SELECT array_agg(format('%s %I.%I', format('pg_%s_sync_%s_%s', r.srsubid, r.srrelid, $2::text),
    n.nspname, c.relname))::text FROM pg_subscription_rel AS r JOIN pg_class AS c ON c.oid = r.srrelid
JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE r.srsubid = $1::oid AND r.srsubstate = 'f'
