-- $1: these roles, $2: those that are trusted, or null
SELECT x FROM unnest($1::text[]) AS x
WHERE x <> current_user AND x <> ALL (COALESCE($2::text[], '{}'))
    AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = x AND rolsuper)
