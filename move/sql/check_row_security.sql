-- Tables whose copy would lack rows.  $1: the shards, $2: the role that reads them for the target
SELECT 'error' AS severity, 'row-security' AS code, format('row security of %s hides rows from %I, who reads them for'
    ' the target', c.oid::regclass, rolname) AS object, 'ALTER ROLE ... BYPASSRLS, or let the owner of the table read,'
    ' without FORCE ROW LEVEL SECURITY' AS cure
FROM pg_roles AS r, {{tables}} WHERE rolname = $2::text AND relkind = 'r' AND relrowsecurity
    AND NOT rolsuper AND NOT rolbypassrls AND (relforcerowsecurity OR NOT pg_has_role(r.oid, relowner, 'USAGE'))
