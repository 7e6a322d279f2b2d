-- Which of the shards are frozen.  $1: the shards
SELECT ARRAY(SELECT schema_name FROM instaid.shards WHERE schema_name = ANY ($1::text[]) AND frozen
    ORDER BY shard_id)::text
