-- what DROP SCHEMA ... CASCADE would drop
WITH RECURSIVE inside (c, o) AS (
    SELECT 'pg_namespace'::regclass::oid, oid FROM pg_namespace WHERE nspname = ANY ({{1}})
    UNION SELECT d.classid, d.objid FROM pg_depend AS d JOIN inside AS i
        ON d.refclassid = i.c AND d.refobjid = i.o AND d.deptype IN ('n', 'a', 'i', 'P', 'S'))
