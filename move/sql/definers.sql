-- Whose definitions these are, and who of them is a superuser.  Default privileges run nothing, and
-- every role can have some of its own in any schema.  $1: the shards
{{inside $1::text[]}} SELECT array_agg(DISTINCT r.rolname)::text AS roles,
    (array_agg(DISTINCT r.rolname) FILTER (WHERE r.rolsuper))::text AS superusers
FROM inside JOIN {{owned}} AS w (c, o, owner) USING (c, o) JOIN pg_roles AS r ON r.oid = w.owner
