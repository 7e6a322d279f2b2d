-- The connection of a subscription.  $1: its OID
SELECT subconninfo FROM pg_subscription WHERE oid = $1::oid
