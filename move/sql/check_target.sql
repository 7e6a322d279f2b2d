-- What of the target would stop a move by any way.  $1: the shards, $2: their IDs, $3: who owns them
SELECT 'error' AS severity, 'schema-exists' AS code,
    format('schema %I exists on the target', nspname) AS object, 'drop or rename it there' AS cure
FROM pg_namespace WHERE nspname = ANY ($1::text[])
UNION ALL SELECT 'error', 'shard-id', format('shard ID %s is schema %I on the target', shard_id,
    schema_name), 'only one of them can have it'
FROM instaid.shards WHERE shard_id = ANY ($2::integer[]) AND schema_name <> ALL ($1::text[])
UNION ALL SELECT 'error', 'create-right', current_user || ' may not create schemas on the target',
    'GRANT CREATE ON DATABASE' WHERE NOT has_database_privilege(current_database(), 'CREATE')
UNION ALL SELECT 'error', 'make-right', format('the shards belong to %I, and in the SQL edition nobody'
    ' else can make them', o), format('connect as %I to the target', o)
FROM unnest($3::text[]) AS o WHERE o <> current_user AND NOT {{is_extension}}
