-- The options of pg_dump that choose the shards.  $1: the shards
SELECT '--schema="' || replace(s, '"', '""') || '"' FROM unnest($1::text[]) AS s
