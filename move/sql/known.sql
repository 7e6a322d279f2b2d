-- How many tables a subscription knows.  $1: its name
SELECT count(*) FROM pg_subscription_rel AS r JOIN pg_subscription AS s ON s.oid = r.srsubid
WHERE s.subname = $1 AND s.subdbid = {{database}}
