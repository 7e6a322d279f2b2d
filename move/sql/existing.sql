-- $1: shards; their schemas that exist
SELECT string_agg(nspname, ', ') FROM pg_namespace WHERE nspname = ANY ($1::text[])
