-- One run at a time: the server ends this session, and with it the lock, when its program is gone.
-- $1: the number of the lock
SELECT pg_try_advisory_lock(hashtext('instaid-move'), $1::integer) AS got
