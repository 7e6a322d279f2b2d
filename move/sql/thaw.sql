-- Commands.  To thaw a shard that issues IDs would wait.
-- $1: the shards, $2: those that were frozen before the move, and stay so
SELECT format('SELECT instaid.thaw_shard(%L)', s) FROM unnest($1::text[]) AS s
WHERE s <> ALL ($2::text[]) AND s IN (SELECT schema_name FROM instaid.shards WHERE frozen)
