-- Sequences that columns take values of, but that do not move, and the last value.  $1: the shards
SELECT DISTINCT format('%I.%I', n.nspname, s.relname) AS name,
    COALESCE(pg_sequence_last_value(s.oid), q.seqstart) AS last FROM pg_attrdef AS d
JOIN pg_class AS c ON c.oid = d.adrelid
JOIN pg_depend AS e ON e.classid = 'pg_attrdef'::regclass AND e.objid = d.oid
    AND e.refclassid = 'pg_class'::regclass
JOIN pg_class AS s ON s.oid = e.refobjid AND s.relkind = 'S'
JOIN pg_namespace AS n ON n.oid = s.relnamespace JOIN pg_sequence AS q ON q.seqrelid = s.oid
WHERE c.relnamespace IN {{ours}} AND s.relnamespace NOT IN {{ours}} ORDER BY 1
