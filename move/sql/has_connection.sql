-- $1: the OID of a subscription, $2: a connection string
SELECT true FROM pg_subscription WHERE oid = $1::oid AND subconninfo = $2
