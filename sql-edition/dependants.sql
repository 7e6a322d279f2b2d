/* sql-edition/dependants.sql */

-- What uses the schemas instaid_sql_edition, or instaid if it was not moved, and instaid_sql, or
-- the old functions of shards, and the command that makes it use the extension instead: for the
-- SQL edition that was moved, or is removed (docs/sql-edition.md).
-- Run it as the owner of the table, view or function: it can call functions of that role.

BEGIN;
SET LOCAL search_path = pg_catalog;
WITH old AS (SELECT objid FROM pg_depend WHERE refclassid = 'pg_namespace'::regclass
             AND refobjid IN (COALESCE(to_regnamespace('instaid_sql_edition'),
                                      to_regnamespace('instaid')), 'instaid_sql'::regnamespace)
             UNION
             SELECT oid FROM pg_proc WHERE proname ~ '^sql_edition_next_ids?$'
                                       AND strpos(prosrc, 'instaid_sql._') > 0)
SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid) AS object,
       COALESCE(c.relowner, p.proowner)::regrole AS owner,
       regexp_replace(replace(replace(CASE
    WHEN a.attgenerated = 's'
    THEN format('ALTER TABLE %1$s DROP %2$I, ADD %2$I %3$s GENERATED ALWAYS AS (%4$s) STORED',
                c.oid::regclass, a.attname, concat(format_type(a.atttypid, a.atttypmod),
                                                   CASE WHEN a.attnotnull THEN ' NOT NULL' END),
                pg_get_expr(e.adbin, c.oid))
         || (SELECT COALESCE(string_agg('; ' || pg_get_indexdef(x.indexrelid), ''), '')
             FROM pg_index AS x WHERE x.indrelid = c.oid AND a.attnum = ANY (x.indkey)
                                  AND NOT EXISTS (SELECT FROM pg_constraint AS k
                                                  WHERE k.conindid = x.indexrelid))
         || (SELECT COALESCE(string_agg(format('; ALTER TABLE %s ADD CONSTRAINT %I %s',
                                               c.oid::regclass, k.conname,
                                               pg_get_constraintdef(k.oid)), ''), '')
             FROM pg_constraint AS k WHERE k.conrelid = c.oid AND a.attnum = ANY (k.conkey)
                                       AND k.contype <> 'n')
    WHEN a.attgenerated = ''
    THEN format('ALTER TABLE %s ALTER %I SET DEFAULT %s', c.oid::regclass, a.attname,
                pg_get_expr(e.adbin, c.oid))
    WHEN k.conrelid > 0
    THEN format('ALTER TABLE %1$s DROP CONSTRAINT %2$I, ADD CONSTRAINT %2$I %3$s', c.oid::regclass,
                k.conname, pg_get_constraintdef(k.oid))
    WHEN i.indrelid > 0
    THEN format('DROP INDEX %s; %s', i.indexrelid::regclass,
                replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON '))
    WHEN c.relkind = 'v'
    THEN format('CREATE OR REPLACE VIEW %s%s AS %s', c.oid::regclass,
                ' WITH (' || array_to_string(c.reloptions, ', ') || ')',
                rtrim(pg_get_viewdef(c.oid), ';'))
    WHEN p.prokind IN ('f', 'p')
    THEN pg_get_functiondef(p.oid)
    END || ';', 'instaid_sql_edition.', 'instaid.'), '.sql_edition_next_id', '.next_id'),
                      '::(\w+|"([^"]|"")+")\.id_sequence\M', '', 'g') AS command
FROM pg_depend AS d
     LEFT JOIN pg_attrdef AS e ON (d.classid, d.objid) = (e.tableoid, e.oid)
     LEFT JOIN pg_attribute AS a ON (a.attrelid, a.attnum) = (e.adrelid, e.adnum)
     LEFT JOIN pg_constraint AS k ON (d.classid, d.objid) = (k.tableoid, k.oid)
     LEFT JOIN pg_index AS i ON (d.classid, d.objid) = ('pg_class'::regclass, i.indexrelid)
     LEFT JOIN pg_rewrite AS w ON (d.classid, d.objid) = (w.tableoid, w.oid)
     LEFT JOIN pg_proc AS p ON (d.classid, d.objid) = (p.tableoid, p.oid)
     LEFT JOIN pg_class AS c ON c.oid = COALESCE(e.adrelid, k.conrelid, i.indrelid, w.ev_class)
WHERE d.refobjid IN (TABLE old) AND COALESCE(w.ev_class, d.objid) NOT IN (TABLE old)
  AND d.deptype = 'n' AND c.relispartition IS NOT TRUE;
COMMIT;
