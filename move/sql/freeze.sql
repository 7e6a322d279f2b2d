-- Commands.  $1: the shards
SELECT format('SELECT instaid.freeze_shard(%L)', s) FROM unnest($1::text[]) AS s
