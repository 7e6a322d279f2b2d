-- A foreign key or a child that crosses the schemas is told by check_source.sql.  $1: the shards
{{inside $1::text[]}} SELECT array_agg(DISTINCT name COLLATE "C" ORDER BY name COLLATE "C")::text
FROM {{objects true}} AS u (name, c, o) WHERE (c, o) IN (
    SELECT d.refclassid, d.refobjid FROM pg_depend AS d JOIN inside AS i
        ON d.classid = i.c AND d.objid = i.o WHERE d.refclassid <> 'pg_class'::regclass
        OR d.classid NOT IN ('pg_class'::regclass, 'pg_constraint'::regclass)
    GROUP BY i.c, i.o, d.refclassid, d.refobjid HAVING bool_and(d.deptype = 'n')
    UNION SELECT d.refclassid, d.refobjid FROM pg_shdepend AS d JOIN inside AS i
        ON d.classid = i.c AND d.objid = i.o WHERE d.dbid = {{database}}
    UNION SELECT 'pg_authid'::regclass, oid FROM pg_roles WHERE rolname = current_user)
    AND (c, o) NOT IN (SELECT c, o FROM inside)
