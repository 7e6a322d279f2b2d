-- How many tables a subscription knows.  $1: its OID
SELECT count(*) FROM pg_subscription_rel WHERE srsubid = $1::oid
