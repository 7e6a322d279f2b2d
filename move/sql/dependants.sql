-- What DROP SCHEMA ... CASCADE would drop outside of the schemas, without types, indexes and
-- constraints of such a table; and whether it is a partition or child of one of theirs.
-- $1: the shards
{{inside $1::text[]}}, whose (c, o) AS (
    SELECT CASE WHEN r.oid IS NULL THEN i.c ELSE 'pg_class'::regclass END, COALESCE(r.oid, i.o)
    FROM inside AS i
    LEFT JOIN pg_trigger AS t ON i.c = 'pg_trigger'::regclass AND t.oid = i.o
    LEFT JOIN pg_rewrite AS w ON i.c = 'pg_rewrite'::regclass AND w.oid = i.o
    LEFT JOIN pg_attrdef AS d ON i.c = 'pg_attrdef'::regclass AND d.oid = i.o
    LEFT JOIN pg_policy AS p ON i.c = 'pg_policy'::regclass AND p.oid = i.o
    LEFT JOIN pg_class AS r ON r.oid IN (t.tgrelid, w.ev_class, d.adrelid, p.polrelid)
    WHERE NOT COALESCE(t.tgisinternal, false) AND i.c NOT IN ('pg_publication_rel'::regclass,
        'pg_publication_namespace'::regclass, 'pg_default_acl'::regclass))
SELECT DISTINCT pg_describe_object(c, o, 0) COLLATE "C" AS object, c = 'pg_class'::regclass
    AND o IN (SELECT inhrelid FROM pg_inherits AS h JOIN pg_class AS p ON p.oid = h.inhparent
        WHERE p.relnamespace IN {{ours}}) AS is_child
FROM whose
LEFT JOIN pg_cast AS z ON c = 'pg_cast'::regclass AND z.oid = o
LEFT JOIN pg_constraint AS k ON c = 'pg_constraint'::regclass AND k.oid = o
LEFT JOIN pg_index AS x ON c = 'pg_class'::regclass AND x.indexrelid = o
LEFT JOIN pg_type AS y ON c = 'pg_type'::regclass AND y.oid = o
LEFT JOIN pg_type AS e ON e.oid = y.typelem
CROSS JOIN LATERAL pg_identify_object(c, o, 0) AS s
WHERE COALESCE((SELECT quote_ident(nspname) FROM pg_namespace
    WHERE oid = CASE WHEN c = 'pg_namespace'::regclass THEN o ELSE k.connamespace END), s.schema, '')
    <> ALL (SELECT quote_ident(n) FROM unnest($1::text[]) AS n)
    AND NOT COALESCE((SELECT bool_and(typnamespace IN {{ours}}) FROM pg_type
        WHERE pg_type.oid IN (z.castsource, z.casttarget)), false)
    AND NOT EXISTS (SELECT FROM pg_depend AS m JOIN pg_extension AS b ON b.oid = m.refobjid
        WHERE m.classid = c AND m.objid = o AND m.deptype = 'e' AND b.extnamespace IN {{ours}})
    AND NOT EXISTS (SELECT FROM pg_opfamily AS f WHERE f.opfnamespace IN {{ours}} AND f.oid IN (
        SELECT amprocfamily FROM pg_amproc WHERE c = 'pg_amproc'::regclass AND pg_amproc.oid = o
        UNION SELECT amopfamily FROM pg_amop WHERE c = 'pg_amop'::regclass AND pg_amop.oid = o))
    AND COALESCE(s.schema, '') <> 'pg_toast' AND COALESCE(x.indrelid, k.conrelid,
        nullif(e.typrelid, 0), y.typrelid, 0) NOT IN (SELECT o FROM whose WHERE c = 'pg_class'::regclass)
ORDER BY 1
