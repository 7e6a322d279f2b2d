-- Schemas that have guards of a move, and are not its shards.  $1: those, $2: its name
SELECT string_agg(DISTINCT n.nspname, ', ') FROM pg_trigger AS t
JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname <> ALL ($1::text[]) AND {{is_guard}}
