-- For superusers, too: it reads declarations and sequences, and runs no code of their owners.
CREATE OR REPLACE VIEW instaid.shards AS
    SELECT s.schema_name, s.shard_id, s.epoch, s.sequence, i.last_id,
           instaid.extract_timestamp(i.last_id, s.epoch) AS last_issued_at,
           CASE WHEN i.newest_id IS NOT NULL
                THEN GREATEST(instaid.extract_timestamp(i.newest_id, s.epoch)
                              - pg_catalog.clock_timestamp(), '0'::interval)
           END AS drift, s.frozen,
           instaid._end_of_ids(s.epoch) AS expires_at,
           i.newest_sequence AS drift_sequence
    FROM instaid._list_shards() AS s
         -- tables can have sequences of their own
         CROSS JOIN LATERAL (
        SELECT max(l.id) FILTER (WHERE q.oid = s.sequence), max(l.id),
               (array_agg(q.oid ORDER BY l.id DESC) FILTER (WHERE l.id IS NOT NULL))[1]
        FROM instaid._shard_sequences(s.schema_name) AS q (oid)
             CROSS JOIN LATERAL (SELECT instaid._last_id(q.oid, s.shard_id, s.epoch)) AS l (id))
         AS i (last_id, newest_id, newest_sequence);
