-- End the walsender of a worker that is gone, or of a network that is.
-- $1: a slot, $2: the OID of the subscription, or null, $3: the system identifier of its server
SELECT count(pg_terminate_backend(active_pid, 1000)) FROM pg_replication_slots
WHERE active AND (slot_name = $1 OR slot_name ~ format('^pg_%s_sync_[0-9]+_%s$', $2::text, $3::text))
