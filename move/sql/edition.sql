-- Which instaid is there, and a role that could put something else in its place, if that is no
-- superuser, not this one, and not trusted.  Nobody else can do so after this one statement: hence
-- no row without the schema.  pg_tle makes an extension of the SQL edition, which has no language.
-- $1: the roles that are trusted, or null
SELECT COALESCE((SELECT 'the extension ' || extversion FROM pg_extension
    WHERE extname = 'instaid' AND {{is_extension}}),
    (SELECT 'the SQL edition ' || substring(obj_description(oid, 'pg_namespace'), '([0-9.]+), SQL')
     FROM pg_namespace WHERE nspname = 'instaid_sql')) AS edition, x.name, x.owner
FROM pg_namespace AS i LEFT JOIN LATERAL (SELECT w.name, r.rolname AS owner
    FROM (SELECT 'schema ' || nspname, nspowner FROM pg_namespace
          WHERE nspname IN ('instaid', 'instaid_sql')
          UNION ALL SELECT 'extension instaid', extowner FROM pg_extension WHERE extname = 'instaid')
        AS w (name, owner) JOIN pg_roles AS r ON r.oid = w.owner
    WHERE NOT r.rolsuper AND r.rolname <> current_user
        AND r.rolname <> ALL (COALESCE($1::text[], '{}')) ORDER BY w.name LIMIT 1) AS x ON true
WHERE i.nspname = 'instaid'
