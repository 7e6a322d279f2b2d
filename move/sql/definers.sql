-- Whose definitions these are: superusers that initdb made own without a word.  $1: the shards
{{inside $1::text[]}} SELECT array_agg(DISTINCT r.rolname)::text FROM inside AS i
JOIN pg_shdepend AS d ON d.classid = i.c AND d.objid = i.o AND d.dbid = {{database}}
    AND d.refclassid = 'pg_authid'::regclass AND d.deptype = 'o' JOIN pg_roles AS r ON r.oid = d.refobjid
