-- What would stop a move by any way.  $1: the shards
SELECT 'error' AS severity, 'owner-right' AS code, format('%s is not a superuser of the source, and'
    ' has not the rights of the owner of schema %s', current_user, min(nspname)) AS object,
    'GRANT that role' AS cure
FROM pg_namespace, pg_roles AS r WHERE pg_namespace.oid IN {{ours}} AND NOT pg_has_role(nspowner, 'USAGE')
    AND r.rolname = current_user AND NOT r.rolsuper HAVING count(*) > 0
UNION ALL SELECT 'error', 'create-right', current_user
    || ' may not create publications on the source', 'GRANT CREATE ON DATABASE'
WHERE NOT has_database_privilege(current_database(), 'CREATE')
UNION ALL SELECT 'error', 'freeze-right', format('schema %I belongs to %s, and in the SQL edition'
    ' nobody else can freeze this shard', s.schema_name, c.relowner::regrole),
    format('connect as %s to the source', c.relowner::regrole)
FROM instaid.shards AS s JOIN pg_class AS c ON c.oid = s.sequence
WHERE s.schema_name = ANY ($1::text[])
    AND c.relowner <> (SELECT oid FROM pg_roles WHERE rolname = current_user) AND NOT {{is_extension}}
UNION ALL SELECT DISTINCT 'error', 'default-privileges', format('%s has default privileges in'
    ' schema %I, which this role cannot restore', d.defaclrole::regrole, n.nspname),
    format('ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA %I REVOKE ...', d.defaclrole::regrole,
        n.nspname)
FROM pg_default_acl AS d JOIN pg_namespace AS n ON n.oid = d.defaclnamespace
WHERE n.oid IN {{ours}} AND NOT pg_has_role(d.defaclrole, 'USAGE')
UNION ALL SELECT 'error', 'prepared-transaction', format('a prepared transaction, %L, is open since'
    ' %s, and the slot would wait for it', gid, prepared), 'COMMIT PREPARED or ROLLBACK PREPARED'
FROM pg_prepared_xacts
UNION ALL SELECT 'error', 'key-crosses', format('foreign key %I of %s refers to %s, and crosses the'
    ' schemas', k.conname, k.conrelid::regclass, k.confrelid::regclass),
    format('ALTER TABLE %s DROP CONSTRAINT %I', k.conrelid::regclass, k.conname)
FROM pg_constraint AS k JOIN pg_class AS t ON t.oid = k.conrelid
    JOIN pg_class AS r ON r.oid = k.confrelid
WHERE k.contype = 'f' AND k.conparentid = 0
    AND (t.relnamespace IN {{ours}}) <> (r.relnamespace IN {{ours}})
UNION ALL SELECT 'error', 'cast', format('the cast from %s to %s does not move, since pg_dump writes'
    ' casts of whole databases only', castsource::regtype, casttarget::regtype),
    'drop it, and create it on the target after the move'
FROM pg_cast AS z JOIN pg_type AS s ON s.oid = castsource JOIN pg_type AS t ON t.oid = casttarget
WHERE s.typnamespace IN {{ours}} AND t.typnamespace IN {{ours}} AND NOT EXISTS (
    SELECT FROM pg_depend WHERE classid = z.tableoid AND objid = z.oid AND deptype IN ('e', 'i'))
UNION ALL SELECT 'error', 'subscribed', format('subscription %I writes to %s of the source, and would'
    ' not follow the shard', s.subname, r.srrelid::regclass), 'drop or change it'
FROM pg_subscription_rel AS r JOIN pg_subscription AS s ON s.oid = r.srsubid
    JOIN pg_class AS c ON c.oid = r.srrelid WHERE c.relnamespace IN {{ours}}
UNION ALL SELECT 'error', 'extension-inside', format('extension %I is in schema %I', e.extname,
    n.nspname), format('CREATE SCHEMA extensions; ALTER EXTENSION %I SET SCHEMA extensions', e.extname)
FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE n.oid IN {{ours}}
UNION ALL SELECT 'error', 'lock-table', format('the lock table has no room for the %s relations of'
    ' the shards', n), 'raise max_locks_per_transaction, and restart, or move fewer shards at once'
FROM (SELECT count(*) FROM pg_class WHERE relnamespace IN {{ours}}) AS x (n)
WHERE n > current_setting('max_locks_per_transaction')::integer
    * current_setting('max_connections')::integer / 2
UNION ALL SELECT 'remark', 'published', format('publication %I also publishes %s, and will not follow'
    ' the shard', pubname, CASE count(*) WHEN 1 THEN min(format('%I.%I', schemaname, tablename))
    ELSE count(*) || ' tables of it' END), 'have a publication of the target publish that, too'
FROM pg_publication_tables
WHERE schemaname = ANY ($1::text[]) AND pubname !~ '^instaid_move_[0-9]+$' GROUP BY pubname
UNION ALL SELECT 'remark', 'large-objects', format('column %I of %s may name large objects, which do'
    ' not move', a.attname, c.oid::regclass), 'copy them by hand'
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid JOIN pg_type AS t ON t.oid = a.atttypid
WHERE c.relnamespace IN {{ours}} AND c.relkind = 'r' AND a.attnum > 0
    AND (t.oid = 'oid'::regtype OR t.typbasetype = 'oid'::regtype)
    AND EXISTS (SELECT FROM pg_largeobject_metadata)
