-- Can a table have rows, or is it known to a subscription, which would not copy it then?
-- $1: its name, $2: the OID of the subscription
SELECT true FROM pg_class AS c WHERE oid = to_regclass($1) AND relkind = 'r' AND (pg_relation_size(oid) > 0
    OR EXISTS (SELECT FROM pg_subscription_rel WHERE srsubid = $2::oid AND srrelid = c.oid))
