-- Queries on the catalogs.  All except the last must return no rows.

SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS instaid_adopt CASCADE;
RESET client_min_messages;
CREATE TEMPORARY VIEW member AS
    SELECT d.classid, d.objid, pg_describe_object(d.classid, d.objid, 0) COLLATE "C" AS object
    FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
    WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'instaid_adopt';
CREATE TEMPORARY VIEW routine AS
    SELECT p.*, m.object, l.lanname
    FROM member AS m JOIN pg_proc AS p ON p.oid = m.objid JOIN pg_language AS l ON l.oid = p.prolang
    WHERE m.classid = 'pg_proc'::regclass;

-- every public object of the extension has a comment
SELECT object FROM member WHERE object !~ '\._' AND obj_description(objid, classid::regclass::name) IS NULL;

-- parallel safe functions are not volatile; immutable functions are strict
SELECT object FROM routine WHERE provolatile = 'v' AND proparallel = 's';
SELECT object FROM routine WHERE provolatile = 'i' AND NOT (proisstrict AND proparallel = 's');

-- no function is SECURITY DEFINER; all pin search_path
SELECT object FROM routine WHERE prosecdef;
-- a procedure with SET could not commit
SELECT object FROM routine WHERE prokind <> 'p' AND NOT COALESCE(proconfig @> '{"search_path=pg_catalog, pg_temp"}', false);
-- nothing depends on a private object of instaid, which an update can then drop
SELECT object, pg_describe_object(d.refclassid, d.refobjid, 0)
FROM member AS m JOIN pg_depend AS d USING (classid, objid)
WHERE pg_describe_object(d.refclassid, d.refobjid, 0) ~ '\minstaid\._';

-- everybody can use the extension, but cannot create objects in its schemas
SELECT object FROM routine WHERE NOT has_function_privilege('public', oid, 'EXECUTE');
SELECT object FROM member WHERE classid = 'pg_class'::regclass AND NOT has_table_privilege('public', objid, 'SELECT');
SELECT object FROM member WHERE classid = 'pg_namespace'::regclass
  AND (NOT has_schema_privilege('public', objid, 'USAGE') OR has_schema_privilege('public', objid, 'CREATE'));

-- the objects of the extension
SELECT m.object, r.provolatile AS volatile, r.proisstrict AS strict, r.proparallel AS parallel
FROM member AS m LEFT JOIN routine AS r ON m.classid = 'pg_proc'::regclass AND r.oid = m.objid
ORDER BY m.object;

-- what is no object gives nothing
SELECT o.class, r.* FROM unnest('{0, 1, 1247, 1259, 2618, 2620}'::oid[]) AS o (class)
     CROSS JOIN LATERAL instaid_adopt._recreation(o.class, 1) AS r WHERE r.removal IS NOT NULL;
