-- Why the target could not replicate back.
SELECT 'error' AS severity, 'wal-level' AS code,
    'wal_level of the target is ' || current_setting('wal_level') AS object,
    'set it to logical, and restart, or move with --one-way' AS cure
WHERE current_setting('wal_level') <> 'logical'
UNION ALL SELECT 'error', 'slots', 'the target has no free replication slot for the way back',
    'raise max_replication_slots, and restart, or move with --one-way'
FROM pg_replication_slots HAVING count(*) >= current_setting('max_replication_slots')::integer
UNION ALL SELECT 'error', 'senders', 'the target has no free WAL sender for the way back',
    'raise max_wal_senders, and restart, or move with --one-way'
FROM pg_stat_replication HAVING count(*) >= current_setting('max_wal_senders')::integer
UNION ALL SELECT 'error', 'prepared-transaction', format('a prepared transaction of the target, %L in'
    ' database %I, is open since %s, and the slot of the way back would wait for it', gid, database,
    prepared), 'COMMIT PREPARED or ROLLBACK PREPARED there, or move with --one-way'
FROM pg_prepared_xacts
