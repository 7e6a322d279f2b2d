-- Whose the objects with these names are, but for superusers, this role and those that are trusted.
-- $1: the names, $2: the roles that are trusted, or null
SELECT u.name, r.rolname AS owner FROM {{objects}} AS u (name, c, o)
LEFT JOIN pg_shdepend AS d ON d.classid = u.c AND d.objid = u.o AND d.dbid IN (0, {{database}})
    AND d.refclassid = 'pg_authid'::regclass AND d.deptype = 'o'
LEFT JOIN pg_type AS t ON u.c = 'pg_type'::regclass AND t.oid = u.o
JOIN pg_roles AS r ON r.oid = COALESCE(d.refobjid, t.typowner)
WHERE u.name = ANY ($1::text[]) AND NOT r.rolsuper AND r.rolname <> current_user
    AND r.rolname <> ALL (COALESCE($2::text[], '{}')) ORDER BY u.name COLLATE "C"
