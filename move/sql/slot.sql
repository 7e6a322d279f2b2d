-- $1: its name
SELECT active, wal_status, COALESCE(pg_current_wal_insert_lsn() - confirmed_flush_lsn, 0) AS behind,
    pg_size_pretty(pg_current_wal_lsn() - restart_lsn) AS held
FROM pg_replication_slots WHERE slot_name = $1 AND database = current_database()
