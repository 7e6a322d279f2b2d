-- Drop the slot of a move, and those of copies of its tables.
-- $1: a slot, $2: the OID of the subscription, or null, $3: the system identifier of its server
SELECT count(pg_drop_replication_slot(slot_name)) FROM pg_replication_slots
WHERE database = current_database()
    AND (slot_name = $1 OR slot_name ~ format('^pg_%s_sync_[0-9]+_%s$', $2::text, $3::text))
