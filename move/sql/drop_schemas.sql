-- A text of commands.  $1: the shards, $2: the name of the move
SELECT COALESCE(string_agg(format('DROP SCHEMA %I CASCADE', nspname), ';'), 'SELECT')
FROM pg_namespace WHERE nspname = ANY ($1::text[] || $2::text)
