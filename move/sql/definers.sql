-- Whose definitions these are, and who of them is a superuser: those that initdb made own without
-- a word.  Default privileges run nothing, and every role can have some of its own in any schema.
-- $1: the shards
{{inside $1::text[]}} SELECT array_agg(DISTINCT r.rolname)::text AS roles,
    (array_agg(DISTINCT r.rolname) FILTER (WHERE r.rolsuper))::text AS superusers
FROM inside AS i JOIN pg_shdepend AS d ON d.classid = i.c AND d.objid = i.o
    AND d.dbid = {{database}} AND d.refclassid = 'pg_authid'::regclass AND d.deptype = 'o'
JOIN pg_roles AS r ON r.oid = d.refobjid WHERE i.c <> 'pg_default_acl'::regclass
