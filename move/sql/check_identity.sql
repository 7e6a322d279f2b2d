-- Why the updates and deletes of tables would fail if they were published.
-- $1: the shards, $2: those without identity get REPLICA IDENTITY FULL for the time of the move
SELECT CASE WHEN $2::boolean THEN 'remark' ELSE 'error' END AS severity, 'replica-identity' AS code,
    format('table %s has no replica identity, and its UPDATE and DELETE would fail',
        c.oid::regclass) AS object,
    CASE WHEN $2::boolean THEN 'it gets REPLICA IDENTITY FULL for the time of the move' ELSE
    format('give it a primary key%s, or ALTER TABLE %s REPLICA IDENTITY FULL, or --full-identity',
        CASE WHEN EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary
            AND NOT indimmediate) THEN ' that is not deferrable' END, c.oid::regclass) END AS cure
FROM pg_class AS c WHERE c.relnamespace IN {{ours}} AND {{lacks_identity}}
UNION ALL SELECT 'error', 'no-equality', format('table %s has REPLICA IDENTITY FULL, and the type of'
    ' its column %I has no equality, so that its UPDATE and DELETE could not be applied',
    c.oid::regclass, a.attname), 'give it a primary key'
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
    AND NOT a.attisdropped JOIN pg_type AS t ON t.oid = a.atttypid
WHERE c.relnamespace IN {{ours}} AND c.relkind = 'r'
    AND (c.relreplident = 'f' OR $2::boolean AND {{lacks_identity}})
    AND t.typtype = 'b' AND t.typelem = 0 AND NOT EXISTS (SELECT FROM pg_opclass AS k
        JOIN pg_am AS m ON m.oid = k.opcmethod AND m.amname IN ('btree', 'hash') AND k.opcdefault
        WHERE k.opcintype = t.oid OR EXISTS (SELECT FROM pg_cast WHERE castsource = t.oid
            AND casttarget = k.opcintype AND castmethod = 'b' AND castcontext = 'i'))
UNION ALL SELECT 'error', 'generated-key', format('column %I of %s is generated, and part of its'
    ' replica identity, which is not replicated', a.attname, c.oid::regclass),
    format('ALTER TABLE %s REPLICA IDENTITY USING INDEX another one, or FULL', c.oid::regclass)
FROM pg_class AS c JOIN pg_index AS i ON i.indrelid = c.oid
    AND CASE c.relreplident WHEN 'i' THEN i.indisreplident WHEN 'd' THEN i.indisprimary END
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) AND a.attgenerated <> ''
WHERE c.relnamespace IN {{ours}} AND c.relkind = 'r'
