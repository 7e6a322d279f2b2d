-- Whose the objects with these names are, but for superusers, this role and those that are trusted.
-- A function can be called in the place of another one with other parameters, and so can a type.
-- Owners are asked first, since to name all objects of a server takes a third of a second.
-- $1: the names, $2: the roles that are trusted, or null
WITH others (role, name) AS (SELECT oid, rolname FROM pg_roles WHERE NOT rolsuper
    AND rolname <> current_user AND rolname <> ALL (COALESCE($2::text[], '{}')))
SELECT u.name, r.name AS owner
FROM {{objects owner = ANY (ARRAY(SELECT role FROM others))}} AS u (name, c, o, owner)
JOIN others AS r ON r.role = u.owner
WHERE {{callable u.name}} IN (SELECT {{callable x}} FROM unnest($1::text[]) AS x)
ORDER BY u.name COLLATE "C"
