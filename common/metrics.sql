---- Monitoring ----

CREATE OR REPLACE VIEW instaid.metrics AS
    SELECT s.shards, s.frozen_shards, s.unreadable + t.unreadable AS unreadable,
           CASE WHEN s.age IS NOT NULL THEN GREATEST(-s.age, 0) END AS drift_seconds,
           CASE WHEN s.age < 0 THEN s.newest_shard END AS drift_shard, e.drift_limit_seconds,
           CASE WHEN s.age IS NOT NULL THEN GREATEST(s.age, 0) END AS last_id_seconds,
           s.expiry_seconds, t.tickets, t.ticket_values_left, t.ticket, e.failed_refills,
           e.failing_tickets, e.empty_tickets
    -- a frozen shard issues no IDs: neither their time nor their end matters
    FROM (SELECT count(*) AS shards, count(*) FILTER (WHERE h.frozen) AS frozen_shards,
                 count(*) FILTER (WHERE h.last_id IS NULL AND NOT (
                     instaid._position(h.sequence, h.shard_id, h.epoch)).is_read) AS unreadable,
                 (array_agg(h.schema_name ORDER BY h.last_issued_at DESC NULLS LAST)
                  FILTER (WHERE NOT h.frozen))[1] AS newest_shard,
                 EXTRACT(epoch FROM pg_catalog.clock_timestamp()
                                    - max(h.last_issued_at) FILTER (WHERE NOT h.frozen))
                     ::double precision AS age,
                 EXTRACT(epoch FROM min(h.expires_at) FILTER (WHERE NOT h.frozen)
                                    - pg_catalog.clock_timestamp())
                     ::double precision AS expiry_seconds
          FROM instaid.shards AS h) AS s
         CROSS JOIN (SELECT count(*) AS tickets, min(values_left) AS ticket_values_left,
                            (array_agg(name ORDER BY values_left, name)
                             FILTER (WHERE values_left IS NOT NULL))[1] AS ticket,
                            count(*) FILTER (WHERE COALESCE(values_left::text, source) IS NULL)
                                AS unreadable
                     FROM instaid.tickets) AS t
         CROSS JOIN instaid._edition_metrics AS e;
COMMENT ON VIEW instaid.metrics IS 'one row for a monitoring system; it leaves out what the role '
'does not see in the views shards and tickets, and counts it as unreadable';
