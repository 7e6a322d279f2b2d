-- The indexes of large tables that are made after the copy: none of a key, and none with what
-- pg_get_indexdef() does not tell.  $1: the shards, $2: the least size of a table, in bytes
SELECT x.oid::regclass::text AS name, pg_get_indexdef(x.oid) AS definition
FROM {{tables}} JOIN pg_index AS i ON i.indrelid = c.oid JOIN pg_class AS x ON x.oid = i.indexrelid
WHERE c.relkind = 'r' AND c.relreplident <> 'f' AND pg_relation_size(c.oid) >= $2::bigint
    AND i.indisvalid AND NOT i.indisunique AND NOT i.indisexclusion AND NOT i.indisclustered
    AND NOT x.relispartition AND x.reltablespace = 0
    AND NOT EXISTS (SELECT FROM pg_description WHERE classoid = x.tableoid AND objoid = x.oid)
    AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = x.oid AND attstattarget >= 0)
    AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = x.tableoid AND objid = x.oid
        AND deptype IN ('e', 'x'))
ORDER BY c.oid, x.oid
