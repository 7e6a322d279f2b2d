-- Queries on the catalogs, as in test/pgtap/catalog.sql for instaid.  All except the last two must return no rows.
CREATE TEMPORARY VIEW member AS
    SELECT d.classid, d.objid, pg_describe_object(d.classid, d.objid, 0) COLLATE "C" AS object
    FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
    WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'instaid_tickets'
      AND d.classid <> 'pg_type'::regclass;
CREATE TEMPORARY VIEW routine AS
    SELECT p.*, m.object, l.lanname
    FROM member AS m JOIN pg_proc AS p ON p.oid = m.objid JOIN pg_language AS l ON l.oid = p.prolang
    WHERE m.classid = 'pg_proc'::regclass;

-- every public object has a comment
SELECT object FROM member WHERE object !~ '\._' AND obj_description(objid, classid::regclass::name) IS NULL;
-- parallel safe functions are not volatile; immutable functions are strict
SELECT object FROM routine WHERE provolatile = 'v' AND proparallel = 's';
SELECT object FROM routine WHERE provolatile = 'i' AND NOT (proisstrict AND proparallel = 's');
-- no function is SECURITY DEFINER; functions in PL/pgSQL pin search_path, and functions in SQL
-- have a parsed body
SELECT object FROM routine WHERE prosecdef;
SELECT object FROM routine WHERE lanname = 'plpgsql' AND NOT COALESCE(proconfig @> '{"search_path=pg_catalog, pg_temp"}', false);
SELECT object FROM routine WHERE lanname = 'sql' AND prosqlbody IS NULL;
-- everybody can use the extension, but cannot create objects in its schema
SELECT object FROM routine WHERE NOT has_function_privilege('public', oid, 'EXECUTE');
SELECT object FROM member WHERE classid = 'pg_class'::regclass AND NOT has_table_privilege('public', objid, 'SELECT');
SELECT object FROM member WHERE classid = 'pg_namespace'::regclass
  AND (NOT has_schema_privilege('public', objid, 'USAGE') OR has_schema_privilege('public', objid, 'CREATE'));

-- default privileges change none of this
CREATE ROLE regress_default;
SET client_min_messages = warning;
DROP EXTENSION instaid_tickets;
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO regress_default, PUBLIC;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO regress_default;
CREATE EXTENSION instaid_tickets;
ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM regress_default, PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE ALL ON SCHEMAS FROM regress_default;
RESET client_min_messages;
SELECT object FROM routine WHERE NOT has_function_privilege('public', oid, 'EXECUTE');
SELECT object FROM member WHERE classid = 'pg_class'::regclass
  AND (NOT has_table_privilege('public', objid, 'SELECT') OR has_table_privilege('regress_default', objid, 'INSERT, UPDATE, DELETE'));
SELECT object FROM member WHERE classid = 'pg_namespace'::regclass AND has_schema_privilege('regress_default', objid, 'CREATE');
DROP ROLE regress_default;

-- the objects and the settings of the extension
SELECT m.object, r.provolatile AS volatile, r.proisstrict AS strict, r.proparallel AS parallel
FROM member AS m LEFT JOIN routine AS r ON m.classid = 'pg_proc'::regclass AND r.oid = m.objid
ORDER BY m.object;
LOAD 'instaid_tickets';
SELECT name, setting, unit, context, min_val FROM pg_settings WHERE name LIKE 'instaid_tickets.%';
SET instaid_tickets.no_such_setting = 1;
