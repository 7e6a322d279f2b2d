-- Which schemas of instaid belong to a role that is no superuser, not this one, and not trusted.
-- $1: the roles that are trusted, or null
SELECT n.nspname AS name, r.rolname AS owner
FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner
WHERE n.nspname IN ('instaid', 'instaid_sql') AND NOT r.rolsuper AND r.rolname <> current_user
    AND r.rolname <> ALL (COALESCE($1::text[], '{}')) ORDER BY n.nspname
