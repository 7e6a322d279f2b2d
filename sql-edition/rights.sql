/* sql-edition/rights.sql */

-- Give PUBLIC its rights on the new functions, views and types of this edition, and no role
-- others; those that were there keep their rights.  Default privileges, which some clouds set for
-- whole databases, grant rights or take them away.

DO $$
DECLARE
    known CONSTANT oid[] := NULLIF(current_setting('instaid_files.known'), '')::oid[];
BEGIN
    EXECUTE (
        SELECT COALESCE(string_agg(format('REVOKE ALL ON %1$s %2$s FROM %3$s;'
                                          ' GRANT %4$s ON %1$s %2$s TO PUBLIC;', k.kind,
                                          o.identity, instaid._default_grantees(),
                                          k.public_right), ''), '')
        FROM pg_depend AS d CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS o
             JOIN (VALUES ('function', 'FUNCTION', 'EXECUTE'),
                          ('procedure', 'PROCEDURE', 'EXECUTE'), ('view', 'TABLE', 'SELECT'),
                          ('type', 'TYPE', 'USAGE'))
                  AS k (type, kind, public_right) ON k.type = o.type
        WHERE d.refclassid = 'pg_namespace'::regclass AND (d.objid = ANY (known)) IS NOT TRUE
          AND d.refobjid IN (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname IN (
                                 'instaid', 'instaid_sql', 'instaid_adopt')));
END $$;
