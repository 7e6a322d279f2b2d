-- Who owns what an edition makes of a shard: its functions.  $1: the shards
SELECT array_agg(DISTINCT pg_get_userbyid(p.proowner))::text FROM pg_proc AS p
LEFT JOIN pg_type AS t ON t.oid = p.proargtypes[p.pronargs - 1]
WHERE p.pronamespace IN {{ours}}
    AND (p.proname, p.pronargs) IN (('next_id', 0), ('next_id', 1), ('next_ids', 2))
    AND (p.pronargs = 0 OR t.typname IN ('regclass', 'id_sequence'))
