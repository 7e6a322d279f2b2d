-- $1: shards; their schemas that do not exist
SELECT string_agg(s, ', ') FROM unnest($1::text[]) AS s WHERE s NOT IN (SELECT nspname FROM pg_namespace)
