-- Whose the objects with these names are, but for superusers, this role and those that are trusted.
-- A function can be called in the place of another one with other parameters, and so can a type.
-- $1: the names, $2: the roles that are trusted, or null
SELECT u.name, r.rolname AS owner FROM {{objects}} AS u (name, c, o) JOIN pg_roles AS r ON r.oid = u.owner
WHERE {{callable u.name}} IN (SELECT {{callable x}} FROM unnest($1::text[]) AS x)
    AND NOT r.rolsuper AND r.rolname <> current_user
    AND r.rolname <> ALL (COALESCE($2::text[], '{}')) ORDER BY u.name COLLATE "C"
