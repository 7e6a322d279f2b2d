-- Why the source could not replicate.  $1: the shards, $2: the number of their tables
SELECT 'error' AS severity, 'wal-level' AS code,
    'wal_level of the source is ' || current_setting('wal_level') AS object,
    'set it to logical, and restart' AS cure WHERE current_setting('wal_level') <> 'logical'
UNION ALL SELECT 'error', 'slots', format('the source has %s free replication slots, and a move needs'
    ' %s', free, 2 + least(4, $2::integer)),
    format('raise max_replication_slots (%s), and restart', m)
FROM (SELECT current_setting('max_replication_slots')::integer - count(*),
    current_setting('max_replication_slots') FROM pg_replication_slots) AS x (free, m)
WHERE free < 2 + least(4, $2::integer)
UNION ALL SELECT 'error', 'senders', format('the source has %s free WAL senders, and a move needs %s',
    free, 1 + least(4, $2::integer)), format('raise max_wal_senders (%s), and restart', m)
FROM (SELECT current_setting('max_wal_senders')::integer - count(*),
    current_setting('max_wal_senders') FROM pg_stat_replication) AS x (free, m)
WHERE free < 1 + least(4, $2::integer)
UNION ALL SELECT 'error', 'may-not-replicate', current_user
    || ' is not a superuser of the source, and may not replicate',
    'ALTER ROLE ... REPLICATION, or move with --dump'
FROM pg_roles WHERE rolname = current_user AND NOT rolsuper AND NOT rolreplication
UNION ALL SELECT 'error', 'unlogged', format('table %s is unlogged, and is not replicated',
    oid::regclass), format('ALTER TABLE %s SET LOGGED', oid::regclass)
FROM pg_class WHERE relnamespace IN {{ours}} AND relkind = 'r' AND relpersistence = 'u'
UNION ALL SELECT 'remark', 'materialized-view', format('materialized view %s arrives without rows',
    oid::regclass), 'REFRESH it on the target'
FROM pg_class WHERE relnamespace IN {{ours}} AND relkind = 'm'
UNION ALL SELECT 'remark', 'wal-limit', format('max_slot_wal_keep_size is %s, and a copy that takes'
    ' longer is lost', current_setting('max_slot_wal_keep_size')), 'the move then begins again'
WHERE current_setting('max_slot_wal_keep_size') <> '-1'
