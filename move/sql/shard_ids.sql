-- $1: the shards
SELECT array_agg(shard_id)::text FROM instaid.shards WHERE schema_name = ANY ($1::text[])
