-- Queries on the catalogs.  All except the last two must return no rows.

CREATE TEMPORARY VIEW member AS
    SELECT d.classid, d.objid, pg_describe_object(d.classid, d.objid, 0) COLLATE "C" AS object
    FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
         LEFT JOIN pg_type AS t ON d.classid = 'pg_type'::regclass AND t.oid = d.objid
    WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'instaid'
      -- PostgreSQL creates the array types, and the row types of views
      AND (t.oid IS NULL OR t.typtype <> 'c' AND t.typelem = 0);
CREATE TEMPORARY VIEW routine AS
    SELECT p.*, m.object, l.lanname
    FROM member AS m JOIN pg_proc AS p ON p.oid = m.objid JOIN pg_language AS l ON l.oid = p.prolang
    WHERE m.classid = 'pg_proc'::regclass;

-- every public object of the extension has a comment, but for casts: core's have none either
SELECT object FROM member WHERE object !~ '\._' AND classid <> 'pg_cast'::regclass AND obj_description(objid, classid::regclass::name) IS NULL;

-- parallel safe functions are not volatile; immutable functions are strict, except for
-- created_between(), which is inlined
SELECT object FROM routine WHERE provolatile = 'v' AND proparallel = 's';
SELECT object FROM routine WHERE provolatile = 'i' AND NOT (proisstrict AND proparallel = 's') AND proname <> 'created_between';

-- no function is SECURITY DEFINER; functions in PL/pgSQL pin search_path, and
-- functions in SQL have a parsed body
SELECT object FROM routine WHERE prosecdef;
-- a procedure with SET could not commit; the guard runs for each statement
SELECT object FROM routine WHERE lanname = 'plpgsql' AND prokind <> 'p' AND proname <> '_move_guard' AND NOT COALESCE(proconfig @> '{"search_path=pg_catalog, pg_temp"}', false);
SELECT object FROM routine WHERE lanname = 'sql' AND prosqlbody IS NULL;

-- everybody can use the extension, but for what only PostgreSQL calls, and cannot create objects in its schemas
SELECT object FROM routine WHERE NOT has_function_privilege('public', oid, 'EXECUTE');
SELECT object FROM member WHERE classid = 'pg_class'::regclass AND NOT has_table_privilege('public', objid, 'SELECT');
SELECT object FROM member WHERE classid = 'pg_namespace'::regclass
  AND (NOT has_schema_privilege('public', objid, 'USAGE') OR has_schema_privilege('public', objid, 'CREATE'));

-- the objects and the settings of the extension
SELECT m.object, r.provolatile AS volatile, r.proisstrict AS strict, r.proparallel AS parallel
FROM member AS m LEFT JOIN routine AS r ON m.classid = 'pg_proc'::regclass AND r.oid = m.objid
ORDER BY m.object;
LOAD 'instaid';
SELECT name, setting, unit, context, min_val FROM pg_settings WHERE name LIKE 'instaid.%';
SET instaid.no_such_setting = 1;
