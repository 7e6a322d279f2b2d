-- A text of commands.  To thaw a shard that issues IDs would wait.
-- $1: the shards, $2: those that were frozen before the move, and stay so
SELECT COALESCE(string_agg(format('SELECT instaid.thaw_shard(%L)', s), ';'), 'SELECT')
FROM unnest($1::text[]) AS s WHERE s <> ALL ($2::text[])
    AND s IN (SELECT schema_name FROM instaid.shards WHERE frozen)
