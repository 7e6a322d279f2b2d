---- Findings of audit() ----

-- A finding is an error if IDs repeat, name a wrong shard, or are refused now; a warning if that
-- will happen, or if a guarantee is weaker.  A test finds codes by the severity beside them.
--
-- A cure is SQL: statements, and then a comment, or only a comment.  A comment contains no names,
-- since a name can have lines.  A cure can be sent as one query: what commits stands alone.

-- Copies of the published function, shards, and roles that could plant functions
CREATE OR REPLACE VIEW instaid._shard_findings (code, severity, object, problem, cure) AS
    WITH shard AS MATERIALIZED (SELECT s.* FROM instaid._audited_shards AS s),
    copy AS MATERIALIZED (SELECT c.* FROM instaid._copies() AS c),
    -- the shard IDs of columns whose default is a copy, if ANALYZE has noted one that is free
    used (object, shard_id) AS (
        SELECT c.object, min(i.shard_id)
        FROM copy AS c JOIN pg_stats AS t
                  ON format('%I.%I.%I', t.schemaname, t.tablename, t.attname) = c.object
             CROSS JOIN LATERAL unnest(t.histogram_bounds::text::text[]) AS h (id)
             CROSS JOIN LATERAL (SELECT CASE WHEN h.id ~ '^[0-9]{16,19}$'
                                             THEN div(h.id::numeric, 1024) % 8192 END)
                                AS i (shard_id)
        WHERE c.classid = 'pg_attrdef'::regclass GROUP BY c.object
        HAVING min(i.shard_id) = max(i.shard_id) AND count(*) >= 10
           AND min(i.shard_id) NOT IN (SELECT s.shard_id FROM shard AS s))
    -- Two sessions can get the same nextval() and the same time.  A clock that is set back repeats
    -- IDs, too.
    SELECT 'copy', 'error', c.object, 'copy of the published function: its IDs repeat',
           CASE WHEN c.free IS NULL AND NOT c.is_shard
                THEN '-- No shard ID is free in this database. Drop a shard that nothing uses.'
                WHEN p.oid IS NULL
                THEN concat(c.before,
                            CASE WHEN NOT c.is_shard
                                 THEN format('SELECT instaid.create_shard(%L, %s, sequence_name =>'
                                             ' ''shard_id_seq''); ', n.nspname, COALESCE(
                                u.shard_id::text, format('%s /* a number that is free on all your'
                                                         ' servers */', c.free))) END,
                            format('SELECT * FROM instaid_adopt.adopt_column(%L, %L); -- As the'
                                   ' owner of the schema.', d.table_name,
                                   (parse_ident(d.column_name))[1]))
                WHEN p.proretset OR p.prorettype NOT IN ('bigint'::regtype, 'text'::regtype,
                                                         'varchar'::regtype)
                     -- a text that is no number, or an argument that could be a sequence
                     OR p.prorettype <> 'bigint'::regtype AND (p.prosrc ~* 'encode|to_hex'
                                                               OR p.pronargs > p.pronargdefaults)
                     OR p.proname = 'next_id' AND p.pronargs > p.pronargdefaults
                        AND p.proargtypes[0] IN ('bigint'::regtype, 'integer'::regtype,
                                                 'regclass'::regtype)
                THEN concat('-- Write it anew, under another name if it is next_id(), so that it'
                            ' calls next_id() of a shard', CASE WHEN p.pronargs > 0
                            THEN ', whose IDs do not contain its arguments' END, '.')
                -- beside next_id() of the SQL edition, which has an argument with a default
                WHEN c.is_shard AND p.proname = 'next_id' AND p.pronargs = 0 AND EXISTS (
                         SELECT FROM pg_proc AS o
                         WHERE o.pronamespace = c.schema AND o.proname = 'next_id'
                           AND o.pronargs = 1 AND o.pronargdefaults = 1)
                THEN format('DROP FUNCTION %s; -- If it is the default of columns, rename it'
                            ' first, and give them another one with adopt_column().', c.object)
                WHEN p.pronargs > p.pronargdefaults OR p.prorettype <> 'bigint'::regtype
                     OR c.is_shard
                -- it keeps the number of IDs in the published layout
                THEN format('%sSELECT instaid_adopt.replace_copy(%L%s); -- %sIf nothing calls it,'
                            ' drop it instead.', c.before, c.object,
                            CASE WHEN NOT c.is_shard AND p.prosrc !~ $re$<<\s*23\M$re$
                                 THEN format(', %s /* a number that is free on all your'
                                             ' servers */', c.free) END,
                            CASE WHEN c.is_shard THEN ''
                                 WHEN p.prosrc ~ $re$<<\s*23\M$re$
                                 THEN 'If its rows do not name one number, pass the one of the'
                                      ' error''s HINT. '
                                 -- the first one gives the shard its number
                                 WHEN bool_or(p.prosrc ~ $re$<<\s*23\M$re$)
                                      OVER (PARTITION BY c.schema)
                                 THEN 'After the other copies of the schema, which then keep'
                                      ' their number. ' END)
                WHEN p.proname = 'next_id' AND p.pronargs > 0
                THEN format('%sALTER FUNCTION %s RENAME TO old_next_id; SELECT'
                            ' instaid_adopt.adopt_shard(%L); -- Defaults follow it.', c.before,
                            c.object, n.nspname)
                WHEN NOT instaid._can_trust(p.proowner, n.nspowner)
                THEN '-- Read its text. If it is right, give the function and its sequence to the'
                     ' owner of the schema, and then call adopt_shards() as this role.'
                WHEN f.proowner <> p.proowner
                THEN format('%sALTER ROUTINE %I.next_id() RENAME TO old_next_id; %sSELECT'
                            ' instaid_adopt.adopt_shard(%L); -- Defaults follow it.',
                            instaid._as_role(f.proowner), n.nspname, c.before, n.nspname)
                ELSE CASE c.before WHEN '' THEN 'CALL instaid_adopt.adopt_shards();'
                          ELSE format('%sSELECT instaid_adopt.adopt_shard(%L);', c.before,
                                      n.nspname) END
                     || ' -- If the function has %%, write % first.' END
    -- a number of its own for each schema, from the largest one down
    FROM (SELECT c.*, c.schema IN (SELECT s.schema FROM shard AS s) AS is_shard,
                 instaid._as_role(c.owner) AS before,
                 (SELECT array_agg(n ORDER BY n DESC)
                  FROM generate_series(0, instaid._max_shard_id()) AS n
                  WHERE n NOT IN (SELECT s.shard_id FROM shard AS s))[
                     dense_rank() OVER (ORDER BY c.schema)] AS free
          FROM copy AS c) AS c
         JOIN pg_namespace AS n ON n.oid = c.schema
         LEFT JOIN pg_proc AS p ON c.classid = 'pg_proc'::regclass AND p.oid = c.objid
         LEFT JOIN pg_proc AS f ON f.oid = instaid._find_function(n.nspname, 'next_id', '')
         LEFT JOIN instaid._defaults AS d ON c.classid = 'pg_attrdef'::regclass AND d.oid = c.objid
         LEFT JOIN used AS u ON d.name = u.object
    UNION ALL
    SELECT 'unread_functions', 'warning', quote_ident(pg_get_userbyid(u.owner)),
           'has so much text in functions that not all of it was searched for copies of the'
           ' published function',
           '-- Look for nextval() in its longest functions, or drop those that nothing uses.'
    FROM instaid._sources AS u WHERE NOT u.is_read GROUP BY u.owner
    UNION ALL
    SELECT f.code, f.severity, s.name, f.problem, f.cure
    FROM (SELECT s.*, COALESCE(lag(s.name) OVER w, lead(s.name) OVER w) AS twin,
                 count(*) FILTER (WHERE NOT s.frozen) OVER i AS live,
                 min(s.epoch) OVER i < max(s.epoch) OVER i AS twin_has_other_epoch,
                 s.has_sequence AND min(s.epoch) OVER q < max(s.epoch) OVER q AS has_two_epochs
          FROM shard AS s
          WINDOW i AS (PARTITION BY s.shard_id), w AS (i ORDER BY s.name COLLATE "C"),
                 q AS (PARTITION BY s.sequence, s.has_sequence)) AS s
         LEFT JOIN pg_class AS c ON c.oid = s.sequence
         LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
         CROSS JOIN LATERAL (VALUES
        -- create_shard() refuses it; a restore, a rename, or a function by hand does not.  With
        -- two epochs, a new ID can be an ID of the past.
        ('shard_id_twice', 'error',
         s.twin IS NOT NULL AND (s.live > 1 OR s.live = 1 AND s.twin_has_other_epoch),
         format('shard ID %s is also that of schema %s', s.shard_id, s.twin),
         '-- Give one that is not frozen another shard ID, with instaid.renumber_shard() or, for'
         ' schema instaid, the setting instaid.node_shard_id.'),
        ('two_epochs', 'error', s.has_two_epochs,
         'its sequence serves a shard of another epoch, too: their IDs repeat',
         '-- Let its tables use a shard with a sequence of its own.'),
        -- pg_dump -n leaves it behind, or that role can set it back.  The node's belongs to
        -- pg_database_owner.
        ('foreign_sequence', 'warning',
         (n.oid, c.relowner) <> (s.schema, s.owner) AND s.name <> 'instaid',
         format('its sequence, %I.%I, is not in its schema, or not of its owner', n.nspname,
                c.relname), CASE WHEN c.relowner = s.owner AND n.oid NOT IN (
                                          SELECT o.schema FROM instaid._audited_shards AS o)
                -- the lock of the SQL edition is in the schema of the sequence
                THEN concat((SELECT format('CREATE VIEW %1$s.id_sequence_lock AS SELECT 1 AS lock;'
                                           ' ALTER VIEW %1$s.id_sequence_lock OWNER TO %2$I; ',
                                           s.name, pg_get_userbyid(s.owner))
                             FROM pg_class AS l WHERE l.relnamespace IN (n.oid, s.schema)
                               AND l.relname = 'id_sequence_lock' AND l.relkind = 'v'
                             HAVING bool_and(l.relnamespace = n.oid)),
                            format('ALTER SEQUENCE %I.%I SET SCHEMA %s;', n.nspname, c.relname,
                                   s.name))
                -- who owns its schema can drop it
                WHEN n.oid = s.schema AND n.nspowner = s.owner
                THEN format('ALTER SEQUENCE %I.%I OWNER TO %I; -- If only this shard uses it.',
                            n.nspname, c.relname, pg_get_userbyid(s.owner))
                ELSE COALESCE(instaid._own_sequence(s.schema_name, s.shard_id, s.epoch,
                                                    s.sequence),
                              '-- Let its tables use a shard with a sequence of its own.') END),
        -- large tables need long to move to another shard
        ('shard_ends', CASE WHEN s.expires_at < now() THEN 'error' ELSE 'warning' END,
         NOT s.frozen AND s.expires_at < now() + interval '5 years',
         format('its IDs end at %s', s.expires_at),
         '-- Let its tables use another shard, with a later epoch. Then freeze this one.'))
        AS f (code, severity, applies, problem, cure) WHERE f.applies
    UNION ALL
    -- Calls by name, new defaults, and restored ones find it, or are ambiguous.
    SELECT 'planted_function', 'error',
           format('%s.%I(%s)', s.name, p.proname, oidvectortypes(p.proargtypes)),
           format('role %I has put it into the schema of a shard: calls of %s() can fail, or find'
                  ' it', o.rolname, p.proname),
           format('DROP ROUTINE %s.%I(%s);', s.name, p.proname, oidvectortypes(p.proargtypes))
    FROM shard AS s JOIN pg_namespace AS n ON n.oid = s.schema
         JOIN pg_proc AS p ON p.pronamespace = s.schema AND p.proname IN ('next_id', 'next_ids')
         JOIN pg_roles AS o ON o.oid = p.proowner
    WHERE p.proowner NOT IN (s.owner, n.nspowner) AND NOT o.rolsuper
    UNION ALL
    SELECT 'schema_right', 'warning', quote_ident(n.nspname),
           format('role %s has CREATE on it, and could put functions there that others call',
                  r.names),
           format('REVOKE CREATE ON SCHEMA %I FROM %s CASCADE;', n.nspname, r.names)
    FROM pg_namespace AS n LEFT JOIN shard AS s ON s.schema = n.oid AND s.name <> 'instaid'
         CROSS JOIN LATERAL instaid._others_with('CREATE', n.nspacl, n.nspowner,
                                                 COALESCE(s.owner, n.nspowner)) AS r (names)
    WHERE r.names IS NOT NULL
      AND (s.schema IS NOT NULL OR n.nspname IN ('instaid', 'instaid_sql'));

-- Columns with IDs of another schema, or ticks, or that are too narrow for IDs, or not unique, or
-- without a partition for the IDs of now, or soon none
CREATE OR REPLACE VIEW instaid._column_findings (code, severity, object, problem, cure) AS
    WITH RECURSIVE shard AS MATERIALIZED (SELECT s.* FROM instaid._audited_shards AS s),
    id_column AS MATERIALIZED (
        SELECT i.* FROM instaid._id_columns AS i
        WHERE i.maker IS NULL OR i.maker IN (SELECT s.schema FROM shard AS s)),
    -- columns that hold an ID, or refer to one
    holder (relid, attnum) AS (
        SELECT i.relid, i.attnum FROM id_column AS i
        UNION
        SELECT f.conrelid, k.attnum
        FROM holder AS h JOIN pg_constraint AS f ON f.confrelid = h.relid
             CROSS JOIN LATERAL unnest(f.conkey, f.confkey) AS k (attnum, refers_to)
        WHERE f.contype = 'f' AND f.conparentid = 0 AND k.refers_to = h.attnum),
    -- DROP SEQUENCE ... CASCADE drops a shard with the defaults of its columns, and leaves only
    -- their values, which ANALYZE has noted: IDs of a shard have all the same bits in the middle.
    -- These are the columns that can be such.
    bare AS MATERIALIZED (
        SELECT n.nspname AS schema_name, c.relname AS table_name, a.attname AS column_name,
               c.relowner AS owner
        FROM pg_index AS x JOIN pg_class AS c ON c.oid = x.indrelid
             JOIN pg_namespace AS n ON n.oid = c.relnamespace
             JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = x.indkey[0]
        WHERE x.indisunique AND x.indnkeyatts = 1 AND c.relkind IN ('r', 'p')
          AND c.relpersistence <> 't' AND NOT c.relispartition
          -- a name is looked up once, and not for each column
          AND a.atttypid IN ('bigint'::regtype,
                             (SELECT COALESCE(to_regtype('instaid.id'), 'bigint')))
          AND NOT a.atthasdef AND a.attidentity = '' AND n.nspname !~ '^pg_'
          AND NOT EXISTS (SELECT FROM shard AS s WHERE s.schema = n.oid)
          AND NOT EXISTS (SELECT FROM pg_constraint AS f WHERE f.conrelid = c.oid
                          AND f.contype = 'f' AND a.attnum = ANY (f.conkey))),
    -- Tables partitioned by range of their IDs.  takes_now is null if list_partitions() reads no
    -- bounds, as those of a domain.
    parted AS MATERIALIZED (
        SELECT i.name, i.relid, i.table_name, r.*,
               -- one up to the next partition, or a year of them
               (SELECT format('%sSELECT * FROM instaid.create_partitions(%L, %L, %L, %L, %L); --'
                              ' Another step will do, too.', instaid._as_role(i.owner),
                              i.table_name, t.since,
                              COALESCE(r.begins_at, t.since + interval '1 year'),
                              -- without days, which daylight saving time changes
                              COALESCE(make_interval(secs => extract(
                                           epoch FROM r.begins_at - t.since)::float8),
                                       '1 month'), s.epoch)
                FROM (SELECT CASE WHEN r.takes_now THEN r.ends_at
                                  ELSE GREATEST(date_trunc('month', now()), r.ended_at) END)
                     AS t (since)) AS cure
        FROM id_column AS i JOIN shard AS s ON s.schema = i.maker
             JOIN pg_partitioned_table AS p ON p.partrelid = i.relid AND p.partattrs[0] = i.attnum
             CROSS JOIN LATERAL (
            SELECT bool_or(l.is_now) AS takes_now,
                   COALESCE(bool_or(l.is_now) FILTER (WHERE l.from_time IS NOT NULL), false)
                       AS has_range_of_now,
                   bool_or(l.end_id IS NULL) AS is_open, max(l.to_time) AS ends_at,
                   -- the partitions before and after now
                   max(l.to_time) FILTER (WHERE l.end_id <= l.now_id) AS ended_at,
                   min(l.from_time) FILTER (WHERE l.first_id > l.now_id) AS begins_at,
                   -- numeric, because a bound can be any bigint
                   (array_agg(l.end_id::numeric - l.first_id ORDER BY l.end_id DESC))[1]
                       > max(l.end_id)::numeric - min(l.now_id) AS is_short
            FROM (SELECT l.*, n.id AS now_id, (l.first_id <= n.id) IS NOT FALSE
                                          AND (l.end_id > n.id) IS NOT FALSE AS is_now
                  FROM instaid.min_id(now(), s.epoch) AS n (id)
                       CROSS JOIN LATERAL instaid.list_partitions(i.relid, s.epoch) AS l) AS l)
            AS r
        WHERE NOT s.frozen AND NOT i.is_partition AND p.partstrat = 'r' AND p.partnatts = 1)
    -- CREATE TABLE ... (LIKE template INCLUDING ALL) keeps the template's shard and its CHECK.
    -- Tables of a frozen shard can use another one, for example with a later epoch.
    SELECT 'foreign_default', 'error', i.name,
           concat(format('its default uses the shard in schema %I', n.nspname),
                  '; CHECK ' || k.names || ' reads the shard ID and can refuse another'),
           concat(instaid._as_role(i.owner), k.drops,
                  format('SELECT * FROM instaid_adopt.adopt_column(%L, %L); -- New IDs then have'
                         ' the number of this schema''s shard.', i.table_name,
                         (parse_ident(i.column_name))[1]))
    FROM id_column AS i JOIN shard AS s ON s.schema = i.schema AND NOT s.frozen
         JOIN shard AS o ON o.schema = CASE WHEN i.maker <> i.schema THEN i.maker
                                            ELSE i.sequence_schema END
         JOIN pg_namespace AS n ON n.oid = o.schema
         CROSS JOIN LATERAL (
        SELECT string_agg(quote_ident(k.conname), ', ' ORDER BY k.conname),
               string_agg(format('ALTER TABLE %s DROP CONSTRAINT %I; ', i.table_name, k.conname),
                          '' ORDER BY k.conname)
        FROM pg_constraint AS k JOIN pg_depend AS d ON d.objid = k.oid
        WHERE k.conrelid = i.relid AND k.contype = 'c' AND i.attnum = ANY (k.conkey)
          AND d.classid = 'pg_constraint'::regclass AND d.refclassid = 'pg_proc'::regclass
          AND d.refobjid = 'instaid.extract_shard_id(bigint)'::regprocedure)
             AS k (names, drops)
    WHERE o.schema <> i.schema AND NOT i.is_partition
    UNION ALL
    SELECT 'ticks', 'error', d.name,
           'its default takes values of a shard''s sequence, which are not IDs',
           format('%sSELECT * FROM instaid_adopt.adopt_column(%L, %L);', instaid._as_role(d.owner),
                  d.table_name, (parse_ident(d.column_name))[1])
    FROM shard AS s JOIN pg_depend AS p ON p.refclassid = 'pg_class'::regclass
                                       AND p.refobjid = s.sequence
                                       AND p.classid = 'pg_attrdef'::regclass
         JOIN instaid._defaults AS d ON d.oid = p.objid
    WHERE s.has_sequence AND NOT d.is_partition AND NOT EXISTS (
        SELECT FROM pg_depend AS f WHERE f.classid = p.classid AND f.objid = p.objid
                                     AND f.refclassid = 'pg_proc'::regclass)
    UNION ALL
    -- Its code runs with the rights of all who insert.
    SELECT 'foreign_function', 'warning', i.name,
           format('role %s could replace the function of its default', r.names),
           '-- Unless all who insert trust this role, let the column use a shard of the table''s'
           ' owner, or of a superuser.'
    FROM id_column AS i CROSS JOIN LATERAL (
        SELECT string_agg(DISTINCT quote_ident(pg_get_userbyid(u.owner)), ', ')
        FROM unnest(i.makers) AS u (owner)
        WHERE u.owner <> i.owner AND NOT instaid._can_trust(i.owner, u.owner)) AS r (names)
    WHERE r.names IS NOT NULL AND NOT i.is_partition
    UNION ALL
    -- It can insert only with IDs that it has from elsewhere.
    SELECT 'missing_right', 'warning', i.name,
           format('role %s can insert, and cannot take IDs', x.name),
           -- any role can name the shard of another one in a default
           CASE WHEN bool_and(pg_has_role(i.owner, s.owner, 'USAGE'))
                THEN string_agg(DISTINCT format('GRANT %s TO %s;', r, x.name), ' ')
                ELSE '-- If this role may take IDs of the shard, grant it USAGE on the schema and'
                     ' the sequence.' END
    FROM id_column AS i JOIN shard AS s ON s.schema = i.maker AND NOT s.frozen
         JOIN pg_class AS c ON c.oid = i.relid AND c.relkind IN ('r', 'p')
         CROSS JOIN LATERAL (
        SELECT DISTINCT x.grantee, CASE x.grantee WHEN 0 THEN 'PUBLIC'
                                   ELSE quote_ident(pg_get_userbyid(x.grantee)) END
        FROM pg_attribute AS a CROSS JOIN LATERAL aclexplode(
                 COALESCE(c.relacl, acldefault('r', c.relowner)) || a.attacl) AS x
        WHERE a.attrelid = c.oid AND x.privilege_type = 'INSERT'
          -- row security can stop a role whose right is a default one
          AND (NOT c.relrowsecurity OR x.grantee = 0
               OR EXISTS (SELECT FROM pg_roles AS r WHERE r.oid = x.grantee AND r.rolbypassrls)
               OR EXISTS (SELECT FROM pg_policy AS p CROSS JOIN unnest(p.polroles) AS r (role)
                          WHERE p.polrelid = c.oid AND p.polpermissive AND p.polcmd IN ('a', '*')
                            AND (r.role = 0 OR pg_has_role(x.grantee, r.role, 'MEMBER'))))
    ) AS x (role, name)
         CROSS JOIN LATERAL instaid._missing_rights(x.role, s.schema_name, s.sequence) AS r
    WHERE i.sequence IS NULL AND NOT i.is_partition GROUP BY i.name, x.name
    UNION ALL
    SELECT 'narrow_column', 'error', format('%I.%I.%I', n.nspname, c.relname, a.attname),
           format('its type, %s, cannot hold IDs', format_type(t.oid, NULL)),
           concat('-- ', CASE WHEN pg_get_userbyid(c.relowner) = current_user THEN 'Make'
                              ELSE 'As its owner, make' END, ' it bigint: with adopt_column() on'
                  ' the column that takes the IDs, which also widens references, or, if no table'
                  ' of another role refers to it or inherits it, with ALTER TABLE. Both rewrite'
                  ' the table.')
    FROM holder AS h JOIN pg_attribute AS a ON a.attrelid = h.relid AND a.attnum = h.attnum
         JOIN pg_type AS t ON t.oid = a.atttypid JOIN pg_class AS c ON c.oid = a.attrelid
         JOIN pg_namespace AS n ON n.oid = c.relnamespace
    -- a domain has the output function of its base type
    WHERE t.typoutput IN ('int2out'::regproc, 'int4out'::regproc, 'float4out'::regproc,
                          'float8out'::regproc)
      AND c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't' AND a.attinhcount = 0
    UNION ALL
    -- Only an index refuses an ID that was inserted by hand, or came twice in a restore.
    SELECT 'no_unique_index', 'warning', i.name, 'no unique index on the ID alone',
           CASE i.relkind
                WHEN 'r' THEN format('CREATE UNIQUE INDEX ON %s (%s); -- Writers wait for it,'
                                     ' unless you add CONCURRENTLY.', i.table_name, i.column_name)
                ELSE '-- Create one. The ID must be the partition key.' END
    FROM id_column AS i
    WHERE i.relkind IN ('r', 'p') AND NOT i.is_partition AND NOT EXISTS (
        SELECT FROM pg_index AS x WHERE x.indrelid = i.relid AND x.indisunique AND x.indisvalid
        AND x.indnkeyatts = 1 AND x.indkey[0] = i.attnum AND x.indpred IS NULL)
    UNION ALL
    SELECT 'lost_default', 'warning', quote_ident(b.schema_name),
           format('has IDs of shard %s, which this database does not have, in columns without'
                  ' default: %s', v.shard_id,
                  string_agg(DISTINCT format('%I.%I', b.table_name, b.column_name), ', ')),
           format('%sSELECT instaid.create_shard(%L, %s); %s -- If their shard was dropped. Pass'
                  ' the epoch that it had, if it is not the default.',
                  instaid._as_role(b.owner), b.schema_name, v.shard_id,
                  string_agg(DISTINCT format('SELECT * FROM instaid_adopt.adopt_column(%L, %L);',
                                             format('%I.%I', b.schema_name, b.table_name),
                                             b.column_name), ' '))
    FROM bare AS b JOIN pg_stats AS p ON p.schemaname = b.schema_name
                       AND p.tablename = b.table_name AND p.attname = b.column_name
         CROSS JOIN LATERAL (
        SELECT instaid.extract_shard_id(min(h.id))
        -- read for these columns only: others have other types
        FROM unnest(CASE WHEN b.column_name IS NOT NULL
                         THEN p.histogram_bounds::text::bigint[] END) AS h (id)
        HAVING count(*) >= 10 AND min(h.id) >= 1::bigint << 40
           AND count(DISTINCT instaid.extract_shard_id(h.id)) = 1) AS v (shard_id)
    WHERE NOT EXISTS (SELECT FROM shard AS s WHERE s.shard_id = v.shard_id)
    GROUP BY b.schema_name, b.owner, v.shard_id
    UNION ALL
    -- A foreign key follows its table when this is renamed and becomes a partition of another.
    SELECT 'partition_reference', 'warning', format('%I.%I.%I', n.nspname, c.relname, f.conname),
           format('its foreign key refers to %I.%I alone, a partition of %s: it refuses the IDs of'
                  ' other partitions', o.nspname, t.relname, p.table_name),
           '-- As its owner, drop it, and add it again with a reference to the whole table.'
    FROM parted AS p JOIN pg_inherits AS h ON h.inhparent = p.relid
         JOIN pg_constraint AS f ON f.confrelid = h.inhrelid AND f.contype = 'f'
                                AND f.conparentid = 0
         JOIN pg_class AS c ON c.oid = f.conrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
         JOIN pg_class AS t ON t.oid = h.inhrelid JOIN pg_namespace AS o ON o.oid = t.relnamespace
    UNION ALL
    SELECT f.code, f.severity, p.name, f.problem, f.cure
    FROM parted AS p CROSS JOIN LATERAL (VALUES
        ('no_partition', 'error', COALESCE(NOT p.takes_now, NOT EXISTS (
             SELECT FROM pg_inherits AS h WHERE h.inhparent = p.relid)),
         'no partition takes the IDs of now: INSERT fails', p.cure),
        ('last_partition', 'warning', p.takes_now AND p.is_short AND NOT p.is_open,
         format('its last partition ends at %s, within its own length', p.ends_at), p.cure),
        -- From the first row on, it keeps a partition for the same time from being created.
        ('default_partition', 'warning', p.takes_now AND NOT p.has_range_of_now,
         CASE WHEN p.ended_at IS NULL THEN 'no other partition takes the IDs of now'
              ELSE format('its partitions ended at %s', p.ended_at) END
         || ': rows go to the default partition',
         '-- As its owner, detach the default partition, create others, and insert its rows into'
         ' the table.'))
        AS f (code, severity, applies, problem, cure) WHERE f.applies;

-- Sequences that next_id() moves
CREATE OR REPLACE VIEW instaid._sequence_findings (code, severity, object, problem, cure) AS
    SELECT f.code, f.severity, q.name, f.problem, f.cure
    FROM instaid._audited_sequences AS q JOIN pg_class AS c ON c.oid = q.sequence
         CROSS JOIN LATERAL instaid._others_with('UPDATE', c.relacl, c.relowner) AS r (names)
         CROSS JOIN LATERAL (VALUES
        ('cannot_serve', 'error', q.fault IS NOT NULL,
         'cannot serve as a source of IDs. ' || q.fault, q.cure),
        -- It can be newer than the freeze, or a restore of a table alone.
        ('half_frozen', CASE WHEN q.frozen THEN 'warning' ELSE 'error' END,
         q.fault IS NULL AND q.frozen <> q.is_frozen,
         CASE WHEN q.frozen THEN 'is not frozen, but its shard is: nextval() still moves it'
              ELSE 'is frozen by a MAXVALUE, but its shard is not: next_id() fails' END,
         '-- Use instaid.freeze_shard() or instaid.thaw_shard() on the shard.'),
        ('end_of_ids', 'error', q.fault IS NULL AND q.is_at_end AND NOT q.is_frozen,
         'has reached the last ID: next_id() fails',
         format('ALTER SEQUENCE %s RESTART; -- If it was set too far by mistake.', q.name)),
        ('unlogged', 'warning', c.relpersistence = 'u',
         'is unlogged: it forgets its IDs in a crash',
         format('ALTER SEQUENCE %s SET LOGGED;', q.name)),
        -- The clock was set back.
        ('ahead_of_clock', 'warning', q.ahead > q.ahead_limit AND NOT q.is_at_end,
         format('its IDs are %s ahead of the clock, by more than %s', q.ahead, q.ahead_limit),
         '-- Set the server''s clock right, and wait until it has passed the time of these IDs. If'
         ' that takes too long, let the owner of the tables RESTART the sequence and give new IDs'
         ' to rows of the future, in one transaction.'),
        ('sequence_right', 'warning', r.names IS NOT NULL,
         format('role %s has UPDATE on it, and could set it back, so that IDs repeat', r.names),
         format('REVOKE UPDATE ON SEQUENCE %s FROM %s CASCADE;', q.name, r.names)))
        AS f (code, severity, applies, problem, cure) WHERE f.applies;

CREATE OR REPLACE FUNCTION instaid.audit(fold boolean DEFAULT true, OUT code text,
                                         OUT severity text, OUT object text, OUT problem text,
                                         OUT cure text) RETURNS SETOF record
    LANGUAGE sql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET enable_nestloop = off SET jit = off
BEGIN ATOMIC
    -- one row for what more than 20 objects have in common, whatever their cures
    SELECT f.code, f.severity, CASE WHEN f.is_folded
               THEN format('%s and %s others', f.object, f.count - 1) ELSE f.object END,
           f.problem, CASE WHEN f.is_folded AND f.has_cures
               -- after a comment
               THEN format(E'%s\n-- This is for the first one. audit(fold => false) has all.',
                           f.cure)
               ELSE f.cure END
    FROM (SELECT f.*, count(*) OVER w, row_number() OVER o AS place,
                 (fold AND count(*) OVER w > 20) IS TRUE AS is_folded,
                 min(f.cure) OVER w <> max(f.cure) OVER w AS has_cures
          FROM (SELECT a.code, a.severity, a.object, a.problem,
                       CASE WHEN strpos(a.cure, 'instaid_adopt.') > 0
                            THEN COALESCE(instaid._before_adopting(), a.cure) ELSE a.cure END
                FROM (TABLE instaid._shard_findings UNION TABLE instaid._column_findings
                      UNION TABLE instaid._sequence_findings
                      UNION TABLE instaid._edition_findings) AS a)
               AS f (code, severity, object, problem, cure)
          WINDOW w AS (PARTITION BY f.code, f.severity, f.problem),
                 o AS (w ORDER BY f.object COLLATE "C", f.cure COLLATE "C")) AS f
    WHERE NOT f.is_folded OR f.place = 1
    ORDER BY f.severity COLLATE "C", f.object COLLATE "C", f.code COLLATE "C", f.cure COLLATE "C";
END;
COMMENT ON FUNCTION instaid.audit(boolean) IS
'what makes IDs repeat or fail, or will do so; one row for more than 20 alike, unless fold is'
' false';
