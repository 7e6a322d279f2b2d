---- Knowing before it breaks ----

-- include common/audited.sql

-- The sequences of columns that default to instaid.next_id() with a shard ID
CREATE VIEW instaid._lone_sequences AS
    SELECT DISTINCT i.sequence, i.owner FROM instaid._id_columns AS i
    WHERE i.maker IS NULL AND i.sequence IS NOT NULL;

-- The sequences that next_id() moves: of shards and in defaults, if that role has their owner's
-- rights.
CREATE VIEW instaid._audited_sequences AS
    WITH shard AS MATERIALIZED (SELECT s.* FROM instaid._audited_shards AS s)
    SELECT u.sequence, format('%I.%I', n.nspname, c.relname) AS name, u.frozen,
           q.seqmax < instaid._max_tick() AS is_frozen, t.problem AS fault, t.cure,
           t.issued_at - clock_timestamp() AS ahead,
           instaid._drift_limit() AS ahead_limit,
           -- in the last millisecond of its IDs, or at what is no tick any more
           u.expires_at > now() AND t.last_value > 0
           AND COALESCE(t.issued_at, 'infinity') >= u.expires_at - interval '1 ms' AS is_at_end
    FROM (SELECT m.sequence, max(m.expires_at) AS expires_at, bool_or(m.frozen) AS frozen
          FROM (SELECT s.sequence, s.owner, s.expires_at, s.frozen FROM shard AS s
                UNION ALL
                -- only if it belongs to the owner of the shard does freeze_shard() bound it
                SELECT i.sequence, i.owner, s.expires_at, s.frozen AND s.owner = i.owner
                FROM instaid._id_columns AS i JOIN shard AS s ON s.schema = i.maker
                UNION ALL
                SELECT l.sequence, l.owner, instaid._end_of_ids(instaid.default_epoch()), false
                FROM instaid._lone_sequences AS l) AS m
               JOIN pg_class AS o ON o.oid = m.sequence AND o.relpersistence <> 't'
          WHERE pg_has_role(m.owner, o.relowner, 'USAGE') GROUP BY m.sequence) AS u
         JOIN pg_class AS c ON c.oid = u.sequence JOIN pg_namespace AS n ON n.oid = c.relnamespace
         JOIN pg_sequence AS q ON q.seqrelid = u.sequence
         CROSS JOIN LATERAL instaid._sequence_state(u.sequence) AS t;

-- Findings with C, and about the SQL edition
CREATE VIEW instaid._edition_findings (code, severity, object, problem, cure) AS
    SELECT o.code, 'error', f.signature, o.problem,
           CASE o.code WHEN 'shard_function_name' THEN 'Give it this name, or drop it.'
                WHEN 'shard_function_attributes'
                THEN format('ALTER FUNCTION %s VOLATILE STRICT PARALLEL UNSAFE;', f.signature)
                ELSE 'Let it be as instaid.create_shard() creates it;'
                     ' ALTER FUNCTION or a DROP has changed that.' END
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
         JOIN pg_language AS l ON l.oid = p.prolang AND l.lanname = 'instaid'
         CROSS JOIN LATERAL instaid._function_fault(p.oid) AS o
         CROSS JOIN LATERAL format('%I.%I(%s)', n.nspname, p.proname,
                                   oidvectortypes(p.proargtypes)) AS f (signature)
    WHERE o.code IS NOT NULL
    UNION ALL
    -- It was dropped, with CASCADE also from defaults.  A renamed one is found above.
    SELECT 'no_next_id', 'error', s.name, 'has no function next_id()',
           format('Let its owner run: CREATE FUNCTION %s.next_id() RETURNS bigint LANGUAGE instaid'
                  ' STRICT COST 1 AS ''as next_ids(integer, regclass)''; -- Then set the'
                  ' defaults again.', s.name)
    FROM instaid._audited_shards AS s
    WHERE NOT EXISTS (SELECT FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
                      WHERE p.pronamespace = s.schema AND p.pronargs = 0
                        AND (p.proname = 'next_id'
                             OR l.lanname = 'instaid' AND p.proowner = s.owner))
    UNION ALL
    -- It is not frozen or watched, and its shard ID can be taken twice.
    SELECT 'sql_edition_shard', 'warning', quote_ident(n.nspname),
           'is a shard of the SQL edition, which instaid.shards does not show',
           'Move it with sql-edition/to_extension.sql of that edition.'
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.proname = 'next_ids' AND p.pronargs = 2 AND n.nspname !~ '^pg_'
      AND strpos(p.prosrc, 'instaid_sql._next_ids(') > 0
    UNION ALL
    -- pg_upgrade creates the members of an extension one by one: types first, and then casts.
    -- PostgreSQL notes no dependency of an expression on a cast.
    SELECT 'upgrade_order', 'warning', r.name,
           'pg_upgrade creates it before the casts of instaid.id, and fails if it needs one',
           format('INSERT INTO pg_catalog.pg_depend SELECT %L::pg_catalog.regclass,'
                  ' %L::pg_catalog.regtype, 0, %L::pg_catalog.regclass, oid, 0, ''n'' FROM'
                  ' pg_catalog.pg_cast WHERE %L::pg_catalog.regtype OPERATOR(pg_catalog.=) ANY'
                  ' (ARRAY[castsource, casttarget]);', 'pg_catalog.pg_type', r.name,
                  'pg_catalog.pg_cast', 'instaid.id')
    FROM (WITH RECURSIVE used_by (type, of_table) AS (
              SELECT 'instaid.id'::regtype::oid, false
              UNION
              SELECT t.oid, u.of_table OR COALESCE(c.relkind <> 'c', false)
              FROM used_by AS u
                   JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass
                        AND d.refobjid = u.type
                        AND d.classid IN ('pg_type'::regclass, 'pg_class'::regclass)
                   LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
                   JOIN pg_type AS t ON t.oid = COALESCE(c.reltype, d.objid))
          SELECT u.type, bool_or(u.of_table) AS of_table FROM used_by AS u GROUP BY u.type) AS u
         JOIN pg_type AS t ON t.oid = u.type JOIN pg_namespace AS n ON n.oid = t.typnamespace
         LEFT JOIN pg_class AS c ON c.oid = t.typrelid
         CROSS JOIN LATERAL format('%I.%I', n.nspname, t.typname) AS r (name)
    WHERE n.nspname !~ '^pg_'
      -- a range needs an operator class, and a row type what columns have
      AND (t.typtype = 'r' OR u.of_table AND (t.typtype = 'd' OR c.relkind = 'c')
           OR t.typtype = 'd' AND (t.typdefaultbin IS NOT NULL OR EXISTS (
                  SELECT FROM pg_constraint AS k
                  WHERE k.contypid = t.oid AND k.contype = 'c' AND k.convalidated)))
      AND NOT EXISTS (SELECT FROM pg_depend AS d
                      WHERE d.classid = 'pg_type'::regclass AND d.objid = t.oid
                        AND d.refclassid = 'pg_cast'::regclass);

-- include common/findings.sql
