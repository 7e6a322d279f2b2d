-- The sequences that issue the IDs of the shards, an array of OIDs: with --dump, they can be gone.
-- $1: the shards
SELECT COALESCE(array_agg(q::oid), '{}')::text FROM unnest($1::text[]) AS s
CROSS JOIN LATERAL instaid._shard_sequences(s) AS q
