-- $1: these roles, $2: those that are trusted, or null, $3: those that are superusers where the
-- definitions are, or null
SELECT x FROM unnest($1::text[]) AS x LEFT JOIN pg_roles AS r ON r.rolname = x
WHERE x <> ALL (COALESCE($2::text[], '{}'))
    AND CASE WHEN r.rolsuper THEN x <> ALL (COALESCE($3::text[], '{}')) ELSE x <> current_user END
