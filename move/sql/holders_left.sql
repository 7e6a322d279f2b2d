-- $1: virtual transactions
SELECT true FROM pg_locks
WHERE virtualtransaction = ANY ($1::text[]) AND pid IS DISTINCT FROM pg_backend_pid() LIMIT 1
