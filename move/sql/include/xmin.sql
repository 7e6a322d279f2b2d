UNION ALL SELECT tableoid, oid, xmin::text FROM {{1}}
