---- Monitoring ----

-- Any role can declare a shard, also with a sequence that it may not use, or with another
-- relation: this counts for nothing.  A shard that can issue IDs hides only those of its owner.
-- For superusers, too: as shards, it runs no code of their owners.
CREATE OR REPLACE VIEW instaid.metrics AS
    SELECT pg_catalog.pg_get_userbyid(s.owner) AS owner, s.shards, s.frozen_shards, s.unreadable,
           CASE WHEN s.age IS NOT NULL THEN GREATEST(-s.age, 0) END AS drift_seconds,
           CASE WHEN s.age < 0 THEN s.newest_shard END AS drift_shard,
           EXTRACT(epoch FROM instaid._drift_limit())::double precision AS drift_limit_seconds,
           CASE WHEN s.age IS NOT NULL THEN GREATEST(s.age, 0) END AS last_id_seconds,
           EXTRACT(epoch FROM s.expires_at - pg_catalog.clock_timestamp())::double precision
               AS expiry_seconds, s.expiry_shard
    -- a frozen shard issues no IDs: neither their time nor their end matters
    FROM (SELECT h.owner, count(*) AS shards, count(*) FILTER (WHERE h.frozen) AS frozen_shards,
                 count(*) FILTER (WHERE NOT h.is_read) AS unreadable,
                 (array_agg(h.schema_name ORDER BY h.last_issued_at DESC NULLS LAST)
                  FILTER (WHERE NOT h.frozen))[1] AS newest_shard,
                 EXTRACT(epoch FROM pg_catalog.clock_timestamp()
                                    - max(h.last_issued_at) FILTER (WHERE NOT h.frozen))
                     ::double precision AS age,
                 min(h.expires_at) FILTER (WHERE NOT h.frozen) AS expires_at,
                 (array_agg(h.schema_name ORDER BY h.expires_at, h.schema_name)
                  FILTER (WHERE NOT h.frozen))[1] AS expiry_shard
          FROM (SELECT p.proowner AS owner, l.schema_name, l.frozen, o.is_read,
                       instaid.extract_timestamp(o.last, l.epoch) AS last_issued_at,
                       instaid._end_of_ids(l.epoch) AS expires_at
                FROM instaid._list_shards() AS l JOIN pg_proc AS p ON p.oid = l.declaration
                     JOIN pg_class AS c ON c.oid = l.sequence
                     -- tables can have sequences of their own
                     CROSS JOIN LATERAL (
                    SELECT bool_and(i.is_read) AS is_read, max(i.last) AS last
                    FROM instaid._shard_sequences(l.schema_name) AS q
                         CROSS JOIN LATERAL instaid._position(q, l.shard_id, l.epoch) AS i) AS o
                WHERE CASE c.relkind WHEN 'S'
                           -- null if it was dropped since the snapshot
                           THEN has_sequence_privilege(p.proowner, c.oid, 'USAGE, UPDATE')
                                IS NOT FALSE END) AS h
          GROUP BY h.owner) AS s;
COMMENT ON VIEW instaid.metrics IS 'the shards of each role, for a monitoring system; it '
'leaves out what the caller does not see in the view shards, and counts it as unreadable';
