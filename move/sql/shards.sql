-- The shards of a new move.  $1: names and patterns
SELECT array_agg(schema_name ORDER BY shard_id)::text AS shards,
    'instaid_move_' || min(shard_id) AS name,
    COALESCE(array_agg(schema_name ORDER BY shard_id) FILTER (WHERE frozen), '{}')::text AS frozen
FROM instaid.shards WHERE {{matches schema_name::text}}
