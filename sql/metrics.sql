-- instaid.metrics: what monitoring systems read.  Other tests may have left shards.
SET client_min_messages = error;
SELECT instaid.create_shard('regress_worst', 81);
SELECT instaid.create_shard('regress_ending', 82, date_trunc('day', now()) - interval '12600 days');
SELECT instaid.create_ticket('regress_few', data_type => 'smallint');
SELECT instaid.guard_ticket('regress_few', 7);
SELECT instaid.next_ticket('regress_few');
SELECT regress_worst.next_id() IS NOT NULL AS made;
SELECT instaid.advance_past('regress_worst.table_id_seq', instaid.make_id(now() + interval '3 h', 81, 0), instaid.default_epoch());
CREATE ROLE regress_instaid_monitor IN ROLE pg_monitor;
CREATE ROLE regress_instaid_nobody;

-- membership in pg_monitor is all that the role needs
SET ROLE regress_instaid_monitor;
SELECT m.shards = (SELECT count(*) FROM instaid.shards) AS shards, m.frozen_shards = (SELECT count(*) FROM instaid.shards WHERE frozen) AS frozen_shards,
    m.unreadable, m.drift_seconds > 10000 AS drifts, m.drift_shard, m.drift_limit_seconds, m.last_id_seconds,
    m.expiry_seconds BETWEEN 0 AND 86400 * 200 AS ends, m.tickets = (SELECT count(*) FROM instaid.tickets) AS tickets,
    m.ticket_values_left, m.ticket, m.failed_refills IS NOT NULL AS failed_refills, m.failing_tickets, m.empty_tickets FROM instaid.metrics AS m;

-- a frozen shard issues no IDs, and its end does not matter; the setting is read
SET ROLE regress_instaid_nobody;
SELECT drift_shard, unreadable = shards + tickets AS blind, shards > 1 AS shards, ticket FROM instaid.metrics;
RESET ROLE;
SELECT frozen_shards AS before FROM instaid.metrics \gset
SELECT instaid.freeze_shard('regress_ending');
SET instaid.max_drift = '5 s';
SELECT frozen_shards - :before AS more, expiry_seconds BETWEEN 0 AND 86400 * 200 AS ends, drift_limit_seconds FROM instaid.metrics;
RESET instaid.max_drift;
-- nor does the time of its IDs
SELECT instaid.freeze_shard('regress_worst');
SELECT drift_shard = 'regress_worst' AS drifts FROM instaid.metrics;
SELECT instaid.thaw_shard('regress_worst');
SELECT drift_shard = 'regress_worst' AS drifts FROM instaid.metrics;

-- columns for collectors: numbers and names only
SELECT string_agg(DISTINCT format_type(atttypid, NULL), ', ') FROM pg_attribute WHERE attrelid = 'instaid.metrics'::regclass AND attnum > 0;

DROP SCHEMA regress_worst, regress_ending CASCADE;
SELECT instaid.drop_ticket('regress_few');
DROP ROLE regress_instaid_monitor, regress_instaid_nobody;
