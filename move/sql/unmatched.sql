-- $1: names and patterns; those that no shard fits
SELECT array_agg(p)::text FROM unnest($1::text[]) AS p
WHERE NOT EXISTS (SELECT FROM instaid.shards WHERE {{fits schema_name::text|p}})
