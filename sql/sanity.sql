-- Queries on the catalogs that must return no rows (but for the last ones).

-- every object of the extension has a comment
SELECT d.classid::regclass, pg_describe_object(d.classid, d.objid, 0)
FROM pg_depend AS d JOIN pg_extension AS e ON d.refobjid = e.oid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'instaid'
  AND obj_description(d.objid, d.classid::regclass::name) IS NULL
  AND (d.classid <> 'pg_type'::regclass OR d.objid = 'instaid.id'::regtype);
SELECT attrelid::regclass, attname FROM pg_attribute
WHERE attrelid IN ('instaid.shards'::regclass, 'instaid.tickets'::regclass) AND attnum > 0 AND col_description(attrelid, attnum) IS NULL;

-- what computes is immutable, strict and safe; what generates is not immutable
SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'instaid'::regnamespace
  AND proname ~ '^(make|extract|decode|default|min|max|interval|to_|from_|id)' AND (provolatile, proisstrict, proparallel) <> ('i', true, 's');
SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'instaid'::regnamespace
  AND proname ~ '^(next|lease)' AND (provolatile, proisstrict, proparallel) <> ('v', true, 'u');

-- nothing runs with its owner's rights; PL/pgSQL has its search_path pinned
SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'instaid'::regnamespace AND prosecdef;
SELECT p.oid::regprocedure FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang
WHERE pronamespace = 'instaid'::regnamespace AND lanname = 'plpgsql'
  AND NOT COALESCE(proconfig @> '{"search_path=pg_catalog, pg_temp"}', false);
SELECT p.oid::regprocedure FROM pg_proc AS p JOIN pg_language AS l ON l.oid = prolang
WHERE pronamespace = 'instaid'::regnamespace AND lanname = 'sql' AND prosqlbody IS NULL;

-- everybody may use it
SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'instaid'::regnamespace
  AND NOT has_function_privilege('public', oid, 'EXECUTE');
SELECT 1 WHERE NOT has_schema_privilege('public', 'instaid', 'USAGE')
  OR NOT has_table_privilege('public', 'instaid.shards', 'SELECT')
  OR NOT has_schema_privilege('public', 'instaid_tickets', 'USAGE')
  OR NOT has_table_privilege('public', 'instaid.tickets', 'SELECT');
-- but not create tickets
SELECT 1 WHERE has_schema_privilege('public', 'instaid_tickets', 'CREATE');

-- all that there is
SELECT * FROM (
    SELECT pg_describe_object(classid, objid, 0) COLLATE "C" AS object FROM pg_depend
    WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
      AND (classid <> 'pg_type'::regclass OR objid = 'instaid.id'::regtype)
      AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'instaid')) AS v
ORDER BY object;
LOAD 'instaid';
SELECT name, setting, unit, context, min_val FROM pg_settings WHERE name LIKE 'instaid.%';
SET instaid.no_such_setting = 1;
