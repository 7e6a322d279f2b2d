-- A text of commands.  $1: the shards that were frozen before
SELECT COALESCE(string_agg(format('SELECT instaid.freeze_shard(%L)', s), ';'), 'SELECT')
FROM unnest($1::text[]) AS s
