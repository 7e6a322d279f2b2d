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
           q.seqmax < instaid._max_tick() AS is_frozen, t.problem AS fault,
           -- it can be words
           CASE WHEN t.cure LIKE 'ALTER SEQUENCE %' THEN t.cure ELSE '-- ' || t.cure END AS cure,
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

-- The statements that give a shard a sequence of its own, above the IDs of the one that it has.
-- The one in its schema with the name of that one can have issued IDs before.
CREATE FUNCTION instaid._own_sequence(schema_name text, shard_id integer, epoch timestamptz,
                                      sequence oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT concat(CASE WHEN o.oid IS NULL THEN format('CREATE SEQUENCE %s; ', r.own) END,
                format('SELECT pg_catalog.setval(%1$L, GREATEST(pg_catalog.'
                       'pg_sequence_last_value(%2$L), pg_catalog.pg_sequence_last_value(%1$L)));'
                       ' CREATE OR REPLACE FUNCTION %3$I.next_ids(count integer, sequence regclass'
                       ' DEFAULT %1$L) RETURNS SETOF bigint LANGUAGE instaid STRICT COST 1'
                       ' AS %4$L; -- As the owner of the shard.', r.own, r.other, schema_name,
                       format('shard %s, epoch %s', shard_id,
                              (extract(epoch FROM epoch) * 1000)::bigint)))
            FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
                 CROSS JOIN LATERAL (SELECT format('%I.%I', schema_name, c.relname),
                                            format('%I.%I', n.nspname, c.relname))
                      AS r (own, other)
                 LEFT JOIN pg_class AS o ON o.relname = c.relname AND o.relkind = 'S'
                      AND o.relnamespace = (SELECT i.oid FROM pg_namespace AS i
                                            WHERE i.nspname = schema_name)
            WHERE c.oid = sequence AND c.relkind = 'S' AND n.nspname <> schema_name);

-- What comes before a cure that calls instaid_adopt; null if that is there.  Any role could have
-- made a schema of this name, whose functions the cure would call.
CREATE FUNCTION instaid._before_adopting() RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN CASE WHEN NOT EXISTS (SELECT FROM pg_extension AS e WHERE e.extname = 'instaid_adopt')
                THEN 'CREATE EXTENSION instaid_adopt; -- Then audit() has another cure.' END;

-- What a role, or PUBLIC as 0, must be granted to take IDs of a shard
CREATE FUNCTION instaid._missing_rights(role oid, schema_name text, sequence regclass)
    RETURNS SETOF text LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
BEGIN ATOMIC
    SELECT g.what FROM pg_proc AS p
         -- a declaration can name a sequence that its owner has no rights on
         JOIN pg_class AS q ON q.oid = sequence AND pg_has_role(p.proowner, q.relowner, 'USAGE')
         JOIN pg_namespace AS n ON n.oid = q.relnamespace
         CROSS JOIN LATERAL (VALUES
             (format('USAGE ON SEQUENCE %I.%I', n.nspname, q.relname),
              p.prosecdef OR has_sequence_privilege(role, sequence, 'USAGE, UPDATE')),
             (format('EXECUTE ON FUNCTION %I.next_id()', schema_name),
              has_function_privilege(role, p.oid, 'EXECUTE'))) AS g (what, is_granted)
    WHERE p.oid = instaid._find_function(schema_name, 'next_id', '') AND NOT g.is_granted;
END;

-- Findings with C, and about the SQL edition
CREATE VIEW instaid._edition_findings (code, severity, object, problem, cure) AS
    SELECT o.code, 'error', f.signature, o.problem,
           CASE o.code WHEN 'shard_function_name' THEN '-- Give it this name, or drop it.'
                WHEN 'shard_function_attributes'
                THEN format('ALTER FUNCTION %s VOLATILE STRICT PARALLEL UNSAFE;', f.signature)
                ELSE '-- Let it be as instaid.create_shard() creates it;'
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
           format('CREATE FUNCTION %s.next_id() RETURNS bigint LANGUAGE instaid STRICT COST 1 AS'
                  ' ''as next_ids(integer, regclass)''; -- As the owner of the shard. Then set the'
                  ' defaults again.', s.name)
    FROM instaid._audited_shards AS s
    WHERE NOT EXISTS (SELECT FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
                      WHERE p.pronamespace = s.schema AND p.pronargs = 0
                        AND (p.proname = 'next_id'
                             OR l.lanname = 'instaid' AND p.proowner = s.owner))
    UNION ALL
    -- It was not created by create_shard().
    SELECT 'future_epoch', 'error', s.name,
           format('its epoch, %s, is in the future: next_id() fails', s.epoch),
           '-- Declare it with an epoch of the past, as instaid.create_shard() does.'
    FROM instaid._audited_shards AS s WHERE s.epoch > now()
    UNION ALL
    -- DROP FUNCTION next_ids(...) CASCADE drops the shard's functions and the defaults of columns,
    -- and leaves a sequence with the COMMENT of a shard.
    SELECT 'lost_shard', 'error', format('%I.%I', n.nspname, c.relname),
           'is left of a shard: its functions were dropped, and the defaults of columns with them',
           '-- If its tables need IDs, call instaid.create_shard() with the shard ID and epoch'
           ' that it had, and another sequence_name, and adopt_column() for each. Then drop it.'
    FROM pg_description AS d JOIN pg_class AS c ON c.oid = d.objoid AND c.relkind = 'S'
         JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE d.classoid = 'pg_class'::regclass AND d.objsubid = 0
      AND d.description = 'ticks: ms since 1970, and a count in each'
      AND n.nspname <> 'instaid'
      AND NOT EXISTS (SELECT FROM instaid._audited_shards AS s
                      WHERE s.schema = c.relnamespace OR s.sequence = c.oid)
    UNION ALL
    -- It is not frozen or watched, and its shard ID can be taken twice.
    SELECT 'sql_edition_shard', 'warning', quote_ident(n.nspname),
           'is a shard of the SQL edition, which instaid.shards does not show',
           '-- Move it with sql-edition/to_extension.sql of that edition.'
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.proname = 'next_ids' AND p.pronargs = 2 AND n.nspname !~ '^pg_'
      AND strpos(p.prosrc, 'instaid_sql._next_ids(') > 0
    UNION ALL
    -- pg_upgrade creates the members of an extension one by one: types first, and then casts.
    -- PostgreSQL notes no dependency of an expression on a cast.
    SELECT 'upgrade_order', 'warning', r.name,
           'pg_upgrade creates ' || f.what || ' before the casts of instaid.id, and fails if it'
           ' needs one', f.cure
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
         CROSS JOIN LATERAL (
        -- The first statement prints what undoes the second one.  NOT VALID: to check rows runs
        -- code of the owner, and PostgreSQL refuses it if a composite type uses the domain.
        SELECT format('its CHECK %I', k.conname),
               format('SELECT pg_catalog.concat(%L, pg_catalog.pg_get_constraintdef(oid),'
                      ' '' NOT VALID;'') AS "after pg_upgrade" FROM pg_catalog.pg_constraint'
                      ' WHERE contypid OPERATOR(pg_catalog.=) %L::pg_catalog.regtype AND conname'
                      ' OPERATOR(pg_catalog.=) %L; ALTER DOMAIN %s DROP CONSTRAINT %I; -- Keep'
                      ' what this prints, for the owner of the domain.',
                      format('ALTER DOMAIN %s ADD CONSTRAINT %I ', r.name, k.conname), r.name,
                      k.conname, r.name, k.conname)
        FROM pg_constraint AS k
        WHERE k.contypid = t.oid AND k.contype = 'c' AND k.convalidated
        UNION ALL
        SELECT 'its DEFAULT',
               format('SELECT pg_catalog.concat(%L, pg_catalog.pg_get_expr(typdefaultbin, 0),'
                      ' '';'') AS "after pg_upgrade" FROM pg_catalog.pg_type WHERE oid'
                      ' OPERATOR(pg_catalog.=) %L::pg_catalog.regtype; ALTER DOMAIN %s DROP'
                      ' DEFAULT; -- Keep what this prints, for the owner of the domain.',
                      format('ALTER DOMAIN %s SET DEFAULT ', r.name), r.name, r.name)
        WHERE t.typtype = 'd' AND t.typdefaultbin IS NOT NULL
        UNION ALL
        -- it needs an operator class
        SELECT 'it', '-- Use a range of bigint instead.' WHERE t.typtype = 'r'
        UNION ALL
        -- a row type needs what columns have
        SELECT 'it', '-- Use bigint in the rows that it is made of, or drop it before pg_upgrade,'
                     ' and create it again afterwards.'
        WHERE u.of_table AND (t.typtype = 'd' OR c.relkind = 'c')) AS f (what, cure)
    WHERE n.nspname !~ '^pg_';

-- include common/findings.sql
