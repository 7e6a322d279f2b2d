-- $1: a slot
SELECT true FROM pg_replication_slots WHERE slot_name = $1 AND active
