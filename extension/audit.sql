---- Knowing before it breaks ----

-- A superuser may run audit() over everybody's objects.  Therefore:
--
-- - It runs nothing that a user wrote, waits for no lock, and does not fail.  An expression is
--   matched as it is stored: deparsing it can lock a table, fails if it is nested deeply, and
--   depends on settings.  What is very long is not read.  regclass and regprocedure are not used
--   for names: they look at all other objects of the name.
-- - A cure that is SQL runs nothing of another role either, and alters no object of one role
--   because of what another wrote.  Where PostgreSQL itself runs an owner's code with the
--   caller's rights, such as a CHECK during ALTER COLUMN TYPE, the cure is left to the owner.
--   SET ROLE would not do: that code could reset it.
-- - The planner knows neither how many shards there are nor what a CTE gives.  Joins by hash take
--   linear time whatever there is.
--
-- A finding is an error if IDs repeat, name a wrong shard, or are refused now; a warning if that
-- will happen, or if a guarantee is weaker.

-- The shards of this database, and the owners of their declarations
CREATE VIEW instaid._audited_shards AS
    SELECT p.pronamespace AS schema, quote_ident(s.schema_name) AS name, s.shard_id, s.epoch,
           s.sequence::oid AS sequence, s.frozen, p.proowner AS owner
    FROM instaid._list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration;

-- The same, and what their owners can do
CREATE VIEW instaid._owned_shards AS
    SELECT s.*, r.rolsuper AS is_superuser,
           -- anybody may declare a shard with another's sequence, and cannot use it
           r.rolsuper OR s.owner = q.relowner AS has_sequence,
           -- whether no other role can put another function in place of next_id()
           (n.nspowner = s.owner OR instaid._is_superusers_schema(n.oid))
           AND EXISTS (SELECT FROM pg_proc AS f JOIN pg_language AS l ON l.oid = f.prolang
                       WHERE f.proname = 'next_id' AND f.proargtypes = ''::oidvector
                         AND f.pronamespace = n.oid AND l.lanname = 'instaid'
                         AND f.proowner = s.owner) AS keeps_next_id
    FROM instaid._audited_shards AS s LEFT JOIN pg_namespace AS n ON n.oid = s.schema
         LEFT JOIN pg_roles AS r ON r.oid = s.owner LEFT JOIN pg_class AS q ON q.oid = s.sequence;

-- Copies of the published function, and what else calls instaid.next_id(): functions, defaults
CREATE VIEW instaid._copies AS
    -- The text of functions; of what is parsed, as standard SQL bodies and column defaults, the
    -- names of functions and operators, in their order: one pattern fits both.
    WITH written AS NOT MATERIALIZED (
        SELECT 'pg_proc'::regclass::oid AS classid, p.oid AS objid, n.oid AS schema, n.nspname,
               p.proowner AS owner, p.proname, p.pronargs,
               CASE WHEN NOT p.proretset THEN p.prorettype END AS prorettype,
               format('%I.%I(%s)', n.nspname, p.proname, oidvectortypes(p.proargtypes)) AS object,
               NULL AS alteration, left(p.prosrc, 100000) AS source,
               left(p.prosqlbody::text, 1000000) AS parsed
        FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE p.prolang = ANY (ARRAY(SELECT l.oid FROM pg_language AS l
                                     WHERE l.lanname IN ('sql', 'plpgsql')))
          -- Functions of the SQL edition are no copies.
          AND n.nspname !~ '^(pg_|information_schema$|instaid_sql$)'
          AND strpos(p.prosrc, 'instaid_sql._') = 0
          AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_proc'::regclass
                                                       AND d.objid = p.oid AND d.deptype = 'e')
        UNION ALL
        SELECT 'pg_attrdef'::regclass, d.oid, d.schema, n.nspname, d.owner, NULL, NULL, NULL,
               d.table_name || '.' || d.column_name,
               format('ALTER TABLE %s ALTER %s', d.table_name, d.column_name), '',
               left(d.expression::text, 1000000)
        FROM instaid._defaults AS d JOIN pg_namespace AS n ON n.oid = d.schema
        WHERE NOT d.is_partition),
    code AS MATERIALIZED (
        SELECT w.*, CASE WHEN w.parsed IS NULL
            -- A string becomes a quote; a comment, and all between the first and the last dollar
            -- quotes, which often makes functions, a space.  What is open ends with the text.
            THEN regexp_replace(w.source, '\mE('')(?:[^''\\]|\\.)*''?|('')[^'']*''?|--[^\n\r]*'
                                          '|/\*(?:[^*]|\*+[^*/])*(?:\*+/)?|\$\w*\$.*\$\w*\$',
                                '\1\2 ', 'gi')
            ELSE (SELECT string_agg(CASE m.word[1]
                         WHEN 'funcid' THEN (
                             SELECT CASE WHEN p.pronamespace = 'instaid'::regnamespace
                                         THEN 'instaid.' ELSE '' END
                                    || format('%s(%s)', p.proname, left('x', p.pronargs))
                             FROM pg_proc AS p WHERE p.oid = m.word[2]::oid)
                         WHEN 'opno' THEN (SELECT format('x %s x', o.oprname)
                                           FROM pg_operator AS o WHERE o.oid = m.word[2]::oid)
                         ELSE 'current_timestamp' END, ' ')
                  FROM regexp_matches(w.parsed, '(funcid|opno) (\d+)|SQLVALUEFUNCTION ', 'g')
                       AS m (word)) END AS code
        FROM written AS w
        WHERE w.source ~* '\mnextval\M' OR w.proname = 'next_id' AND w.pronargs = 0 OR w.parsed
              ~ format('funcid %s ', 'nextval(regclass)'::regprocedure::oid))
    -- A copy calls nextval(), reads a clock, and shifts to the left by 16 to 24 bits, by a
    -- variable or a sum, or multiplies by such a power.  OFFSET 0 lets each pattern run once.
    SELECT c.classid, c.objid, c.schema, c.nspname, c.owner, c.proname, c.pronargs, c.prorettype,
           c.object, c.alteration, c.code, k.is_copy
    FROM code AS c CROSS JOIN LATERAL (
        SELECT c.code ~* '\m(?:nextval\s*\(|execute\M)'
           AND c.code ~* '\m(?:clock_timestamp|now|timeofday|localtimestamp'
                         '|current_timestamp|(?:statement|transaction)_timestamp)\M'
           AND c.code ~* '(?:[a-z_)\]"]|\d{9})\s*<<[\s(]*(?:1[6-9]\M|2[0-4]\M|\d+\s*[-+*]'
                         '|[a-z_]\w*\M(?!\s*>>))|\*[\s(]*(?:8388608|4194304)\M'
                         '|\^|\mpow(?:er)?\s*\(|x % x' OFFSET 0) AS k (is_copy)
    WHERE k.is_copy OR c.proname = 'next_id' AND c.pronargs = 0
                       AND c.code ~* '\minstaid"?\s*\.\s*"?next_id"?\s*\(\s*[^\s)]'
                       AND c.schema NOT IN (SELECT s.schema FROM instaid._audited_shards AS s);

-- Defaults that make IDs, the sequence that they name, and a shard ID that they pass.
-- maker_schema is that of the function, or null for instaid.next_id() with a shard ID; is_own is
-- false for copies.
CREATE VIEW instaid._id_defaults AS
    SELECT d.*, d.table_name || '.' || d.column_name AS name, m.schema AS maker_schema,
           m.is_own, q.oid AS sequence, q.relnamespace AS sequence_schema,
           -- of the eight bytes of a constant, two are not 0: the first or the last
           (SELECT ((b.byte[1]::integer | b.byte[4]::integer) & 255)
                   + ((b.byte[2]::integer | b.byte[3]::integer) & 255) * 256
            FROM regexp_match(left(d.expression::text, 1000000), format(
                ':funcid (?:%s) [^{]*\{CONST :consttype %s [^{}]*\} \{CONST :consttype %s'
                ' [^{}]*:constvalue 4 \[ (-?\d+) (-?\d+) 0 0 0 0 (-?\d+) (-?\d+) \]',
                (SELECT string_agg(f.oid::text, '|') FROM pg_proc AS f
                 WHERE f.proname = 'next_id' AND f.pronargs > 0
                   AND f.pronamespace = 'instaid'::regnamespace),
                'regclass'::regtype::oid, 'integer'::regtype::oid)) AS b (byte)
            WHERE m.schema IS NULL) AS shard_id
    FROM (SELECT 'pg_proc'::regclass::oid, p.oid,
                 CASE WHEN p.pronamespace <> 'instaid'::regnamespace OR p.pronargs = 0
                      THEN p.pronamespace END, true
          FROM pg_proc AS p
          WHERE p.proname = 'next_id'
            AND (p.pronamespace = 'instaid'::regnamespace
                 OR p.pronamespace IN (SELECT s.schema FROM instaid._audited_shards AS s))
          -- A default that is a copy makes the IDs itself.
          UNION ALL SELECT c.classid, c.objid, c.schema, false FROM instaid._copies AS c)
         AS m (classid, objid, schema, is_own)
         LEFT JOIN pg_depend AS p ON p.refclassid = m.classid AND p.refobjid = m.objid
                                 AND p.classid = 'pg_attrdef'::regclass
         JOIN instaid._defaults AS d
              ON d.oid = CASE m.classid WHEN 'pg_proc'::regclass THEN p.objid ELSE m.objid END
         LEFT JOIN (pg_depend AS u JOIN pg_class AS q ON q.oid = u.refobjid AND q.relkind = 'S'
                                                     AND q.relpersistence <> 't')
              ON u.classid = 'pg_attrdef'::regclass AND u.objid = d.oid
                 AND u.refclassid = 'pg_class'::regclass;

-- Columns whose default makes IDs
CREATE VIEW instaid._id_columns AS
    SELECT i.relid, i.attnum, i.schema, i.owner, i.relkind, i.is_partition, i.table_name,
           i.column_name, i.type, i.name, i.maker_schema, i.is_own
    FROM instaid._id_defaults AS i;

-- The sequences of columns that default to instaid.next_id() with a shard ID
CREATE VIEW instaid._lone_sequences AS
    SELECT DISTINCT i.sequence, i.owner FROM instaid._id_defaults AS i
    WHERE i.is_own AND i.maker_schema IS NULL AND i.sequence IS NOT NULL;

-- Functions and defaults that make IDs in their own way
CREATE VIEW instaid._copy_findings (severity, object, problem, cure) AS
    WITH shard AS MATERIALIZED (SELECT s.* FROM instaid._owned_shards AS s),
    found AS MATERIALIZED (
        SELECT c.*, CASE
            WHEN c.code ~ '%%' THEN 'Write % in this copy, and call audit() again.'
            WHEN NOT c.is_copy
            THEN format('Pass its shard ID to instaid.adopt_shard(%L, shard_id).', c.nspname)
            WHEN c.alteration IS NOT NULL AND s.keeps_next_id
                 AND (s.owner = c.owner OR s.is_superuser)
            THEN format('%s SET DEFAULT %s.next_id();', c.alteration, s.name)
            WHEN s.schema IS NULL AND c.pronargs = 0 AND c.prorettype = 'bigint'::regtype
                 AND (c.proname = 'next_id'
                      OR instaid._find_function(c.nspname, 'next_id', '') IS NULL AND 1
                         = count(*) FILTER (WHERE c.pronargs = 0) OVER (PARTITION BY c.schema))
            THEN CASE c.proname WHEN 'next_id' THEN format('SELECT instaid.adopt_shard(%L);',
                                                           c.nspname)
                      ELSE format('CALL instaid.adopt_shards(%L);',
                                  regexp_replace(c.nspname, '([\\%_])', '\\\1', 'g')) END
            ELSE 'Let columns default to the next_id() of a shard instead;'
                 ' instaid.create_shard() makes one.' END AS cure
        FROM instaid._copies AS c LEFT JOIN shard AS s ON s.schema = c.schema)
    SELECT f.severity, c.object, f.problem, c.cure
    FROM found AS c CROSS JOIN LATERAL (VALUES
        -- A copy takes nextval and the time in two steps, so that two sessions can get the same
        -- of both.  It also repeats IDs when the clock is set back.
        (c.is_copy, 'error', 'copy of the published function: its IDs repeat'),
        -- Some web pages double the percent sign.  Every call of such a copy fails.
        (c.is_copy AND c.code ~ '%%', 'error', 'has the operator %%, which does not exist'),
        (c.is_copy AND c.code !~* '\m(?:clock_timestamp|timeofday)\M', 'error',
         'reads a clock that stands still in a statement: its 1,025th ID is the first again'),
        -- A name in text is looked up at each call: after a rename it is not found,
        -- or search_path finds another.  An argument can be a regclass, which follows a rename.
        (c.is_copy AND c.code
         ~* '\mnextval\s*\((?!\s*[\w$]+\s*\))|nextval\(x\) regclass\(x\)|\mexecute\M',
         'warning', 'names its sequence in its text: it fails after a rename'),
        -- What is not seen is not frozen or watched, and its shard ID can be taken twice.
        (NOT c.is_copy, 'warning',
         'calls instaid.next_id() in a way that instaid.shards does not see'))
        AS f (applies, severity, problem) WHERE f.applies;

-- Columns with IDs of another schema, or ticks, or that are too narrow for IDs, or not unique
CREATE VIEW instaid._column_findings (severity, object, problem, cure) AS
    WITH RECURSIVE shard AS MATERIALIZED (SELECT s.* FROM instaid._owned_shards AS s),
    id_column AS MATERIALIZED (SELECT i.* FROM instaid._id_defaults AS i),
    -- Schemas with a next_id() of their owner or of a superuser.  Tables of a frozen shard can use
    -- another one, for example with a later epoch.
    home AS MATERIALIZED (
        SELECT n.oid AS schema FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
             LEFT JOIN shard AS s ON s.schema = n.oid
        WHERE p.proname = 'next_id' AND p.pronargs = 0 AND s.frozen IS NOT TRUE
          AND pg_has_role(p.proowner, n.nspowner, 'USAGE')),
    -- Columns that take what is not their schema's, and the schema whose IDs they should take
    misled (table_name, column_name, owner, is_partition, problem, remedy) AS (
        -- CREATE TABLE ... (LIKE template INCLUDING DEFAULTS) keeps the template's shard.
        SELECT i.table_name, i.column_name, i.owner, i.is_partition,
               format('its %s of schema %I', o.what, n.nspname), i.schema
        FROM id_column AS i CROSS JOIN LATERAL (VALUES
                 (i.maker_schema, 'IDs are those'),
                 (NULLIF(i.sequence_schema, i.maker_schema), 'sequence is that'))
                 AS o (schema, what)
             JOIN pg_namespace AS n ON n.oid = o.schema
        WHERE o.schema <> i.schema AND i.schema IN (SELECT h.schema FROM home AS h)
          AND (o.schema = i.maker_schema OR o.schema IN (SELECT h.schema FROM home AS h))
        UNION ALL
        -- instaid.next_id() with the shard ID of another schema
        SELECT i.table_name, i.column_name, i.owner, i.is_partition,
               COALESCE(format('its IDs name shard %s, and its schema is shard ', i.shard_id)
                        || own.shard_id,
                        format('shard ID %s is also that of schema %s', i.shard_id, s.name)),
               COALESCE(own.schema, s.schema)
        FROM id_column AS i LEFT JOIN shard AS own ON own.schema = i.schema
             LEFT JOIN shard AS q ON q.schema = i.sequence_schema
             LEFT JOIN (SELECT DISTINCT ON (a.shard_id) a.* FROM shard AS a
                        ORDER BY a.shard_id, a.name COLLATE "C") AS s ON s.shard_id = i.shard_id
        WHERE own.shard_id <> i.shard_id AND NOT own.frozen
           OR own.schema IS NULL AND s.schema IS NOT NULL
              AND q.shard_id IS DISTINCT FROM i.shard_id
        UNION ALL
        -- The default is nothing but the call, and casts to the type of the column.  OFFSET 0
        -- spares the other defaults the pattern.
        SELECT d.table_name, d.column_name, d.owner, d.is_partition,
               'its default is nextval() of a shard''s sequence, which gives ticks, and not IDs',
               d.remedy
        FROM (SELECT d.*, s.schema AS remedy
              FROM shard AS s JOIN pg_depend AS p ON p.refclassid = 'pg_class'::regclass
                                                 AND p.refobjid = s.sequence
                   JOIN instaid._defaults AS d ON p.classid = 'pg_attrdef'::regclass
                                              AND d.oid = p.objid
              WHERE s.has_sequence OFFSET 0) AS d
        WHERE left(d.expression::text, 600) ~ format(
            '^\{((RELABELTYPE|COERCETODOMAIN) :arg \{|FUNCEXPR [^{]*:funcformat [12] [^{]*\{)*'
            'FUNCEXPR :funcid %s ', 'nextval(regclass)'::regprocedure::oid)),
    -- Columns that hold an ID, refer to one, or refer to one that does
    holder (relid, attnum) AS (
        SELECT i.relid, i.attnum FROM id_column AS i
        UNION
        SELECT a.attrelid, a.attnum FROM pg_attribute AS a WHERE a.atttypid = 'instaid.id'::regtype
        UNION SELECT f.conrelid, k.attnum
        FROM holder AS h JOIN pg_constraint AS f ON f.confrelid = h.relid
             CROSS JOIN LATERAL unnest(f.conkey, f.confkey) AS k (attnum, refers_to)
        WHERE f.contype = 'f' AND f.conparentid = 0 AND k.refers_to = h.attnum)
    SELECT 'error', m.table_name || '.' || m.column_name, m.problem,
           CASE WHEN s.keeps_next_id AND (s.owner = m.owner OR s.is_superuser)
                THEN format('ALTER TABLE %s ALTER %s SET DEFAULT %I.next_id();', m.table_name,
                            m.column_name, n.nspname)
                ELSE format('If you trust the owner of schema %I, let it default to its next_id()'
                            ' instead.', n.nspname) END
    FROM misled AS m JOIN pg_namespace AS n ON n.oid = m.remedy
         LEFT JOIN shard AS s ON s.schema = m.remedy WHERE NOT m.is_partition
    UNION ALL
    -- An ID does not fit into it, or a float rounds it.  To alter such a table reads, checks or
    -- alters children and both tables of a foreign key, too.
    SELECT 'error', w.table_name || '.' || w.column_name,
           format('type %s cannot hold IDs', format_type(w.type, NULL)),
           CASE WHEN EXISTS (SELECT FROM instaid._descendants(w.relid) AS d
                             WHERE d.owner <> w.relowner)
                  OR w.relid IN (SELECT unnest(ARRAY[k.conrelid, k.confrelid])
                                 FROM pg_constraint AS k JOIN pg_class AS a ON a.oid = k.conrelid
                                      JOIN pg_class AS b ON b.oid = k.confrelid
                                 WHERE k.contype = 'f' AND b.relowner <> a.relowner)
                THEN 'Separate it from the tables of other roles that inherit from it, or that'
                     ' foreign keys connect with it, and call audit() again.'
                WHEN o.rolsuper AND NOT instaid._is_superusers_schema(w.relnamespace)
                THEN 'Give it to the owner of its schema, and call audit() again.'
                ELSE format(CASE WHEN o.rolsuper OR o.rolname = current_user THEN '%2$s;'
                                 ELSE 'Connect as its owner, %1$I, and run: %2$s' END, o.rolname,
                            format('ALTER %sTABLE %s ALTER %s TYPE bigint', CASE w.relkind
                                   WHEN 'f' THEN 'FOREIGN ' END, w.table_name, w.column_name)) END
    FROM (SELECT a.attrelid AS relid, format('%I.%I', n.nspname, c.relname) AS table_name,
                 quote_ident(a.attname) AS column_name, c.relowner, c.relnamespace, c.relkind,
                 t.oid AS type
          FROM holder AS h JOIN pg_attribute AS a ON a.attrelid = h.relid AND a.attnum = h.attnum
               JOIN pg_type AS t ON t.oid = a.atttypid JOIN pg_class AS c ON c.oid = a.attrelid
               JOIN pg_namespace AS n ON n.oid = c.relnamespace
          WHERE CASE WHEN t.typtype = 'd' THEN instaid._base_type(t.oid) ELSE t.oid END
                IN ('int4'::regtype, 'int2'::regtype, 'float4'::regtype, 'float8'::regtype)
            AND c.relkind IN ('r', 'p', 'f') AND c.relpersistence <> 't' AND a.attinhcount = 0)
         AS w JOIN pg_roles AS o ON o.oid = w.relowner
    UNION ALL
    -- Only an index refuses an ID that was inserted by hand, or came twice in a restore.
    SELECT 'warning', i.name, 'no unique index on the ID alone',
           CASE WHEN p.partnatts <> 1 OR p.partattrs[0] <> i.attnum
                THEN 'Partition the table by its ID:'
                     ' a unique index must have all columns of the partition key.'
                ELSE format('CREATE UNIQUE INDEX ON %s (%s);', i.table_name, i.column_name) END
    FROM id_column AS i LEFT JOIN pg_partitioned_table AS p ON p.partrelid = i.relid
    WHERE i.relkind IN ('r', 'p') AND NOT i.is_partition AND NOT EXISTS (
        SELECT FROM pg_index AS x WHERE x.indrelid = i.relid AND x.indisunique AND x.indisvalid
        AND x.indnkeyatts = 1 AND x.indkey[0] = i.attnum AND x.indpred IS NULL);

-- Values in the columns of a shard that are not its IDs
CREATE VIEW instaid._value_findings (severity, object, problem, cure) AS
    -- Columns for which a shard makes IDs, and keys of its schema without a default: an ORM may
    -- take their values from the sequence: ticks, or 1, 2, 3 until next_id() is called.
    WITH filled (relid, attnum, schema, has_default) AS MATERIALIZED (
        SELECT i.relid, i.attnum, i.maker_schema, true FROM instaid._id_columns AS i WHERE i.is_own
        UNION SELECT x.indrelid, x.indkey[0], c.relnamespace, false
        FROM pg_index AS x JOIN pg_class AS c ON c.oid = x.indrelid
             JOIN pg_attribute AS a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[0]
        WHERE x.indisprimary AND x.indnkeyatts = 1 AND NOT a.atthasdef AND a.attidentity = ''),
    -- To read a sample of the values in the statistics runs no code, and waits for nothing.
    sample AS MATERIALIZED (
        SELECT format('%I.%I', n.nspname, c.relname) AS table_name,
               quote_ident(a.attname) AS column_name, f.has_default, s.name AS shard, s.shard_id,
               s.epoch, t.histogram_bounds::text::bigint[] AS bounds,
               (instaid._sequence_state(s.sequence)).last_value AS position,
               EXISTS (SELECT FROM pg_constraint AS k
                       WHERE k.conrelid = f.relid AND k.contype = 'f'
                         AND f.attnum = ANY (k.conkey)) AS is_reference
        FROM filled AS f JOIN instaid._audited_shards AS s ON s.schema = f.schema
             JOIN pg_class AS c ON c.oid = f.relid JOIN pg_namespace AS n ON n.oid = c.relnamespace
             JOIN pg_attribute AS a ON a.attrelid = f.relid AND a.attnum = f.attnum
             -- a partition has statistics of its own, which are refreshed more often
             JOIN pg_stats AS t ON t.schemaname = n.nspname AND t.tablename = c.relname
                                   AND t.attname = a.attname AND NOT t.inherited
        WHERE a.atttypid IN ('bigint'::regtype, 'instaid.id'::regtype)),
    wrong AS (
        SELECT m.*, v.value, v.value = m.bounds[cardinality(m.bounds)] AS is_newest, i.made_at,
               -- A tick, or a small value.  A key without a default is not one that was adopted.
               -- Another column is like it as long as its sequence has given only small values.
               to_timestamp((v.value >> 10) / 1000.0) BETWEEN m.epoch AND now() + interval '1 day'
               OR i.made_at = m.epoch
                  AND (NOT m.has_default AND NOT m.is_reference
                       OR v.value <= m.position AND m.position < 8388608) AS is_nextval
        FROM sample AS m CROSS JOIN LATERAL unnest(m.bounds) AS v (value)
             CROSS JOIN LATERAL instaid.extract_timestamp(v.value, m.epoch) AS i (made_at)
        -- The first 2^23 values have the time of the epoch, when no shard can have made IDs.
        WHERE v.value > 0
          AND (instaid.extract_shard_id(v.value) <> m.shard_id OR i.made_at = m.epoch))
    SELECT 'warning', w.table_name || '.' || w.column_name,
           COALESCE('it has values of nextval() on a sequence, which are not IDs, such as '
                    || max(w.value) FILTER (WHERE w.is_nextval),
                    format('the newest value, %s, names shard %s, and not %s', max(w.value),
                           instaid.extract_shard_id(max(w.value)), w.shard_id)),
           CASE WHEN bool_or(w.is_nextval) THEN 'Let' ELSE 'After a renumbering, wait for an'
                ' ANALYZE that samples a new ID. Otherwise let' END
           -- A constraint that a row violates refuses each UPDATE of it, even if NOT VALID.
           || format(' the default make the ID: insert without the column, and use RETURNING.'
                  ' If nothing refers to the rows with such values, its owner can give them IDs:'
                  ' UPDATE %1$s SET %2$s = %3$s.next_id() WHERE %4$s; When none are left, ALTER'
                  ' TABLE %1$s ADD CHECK (NOT (%4$s)); refuses such values.', w.table_name,
                  w.column_name, w.shard,
                  -- what was adopted names the first day
                  format('%1$s >= 724775731200000 AND instaid.extract_shard_id(%1$s) <> %2$s%3$s',
                         w.column_name, w.shard_id,
                         CASE WHEN bool_or(w.is_nextval AND w.value < 8388608)
                              THEN format(' OR %s < 8388608', w.column_name) END))
    FROM wrong AS w
    WHERE w.is_nextval
          -- The values of a column that was adopted are smaller: they name its first day.
       OR w.has_default AND w.is_newest AND w.made_at > w.epoch + interval '1 day'
    GROUP BY w.table_name, w.column_name, w.shard, w.shard_id;

-- Shards, their declarations, and shards of the SQL edition
CREATE VIEW instaid._shard_findings (severity, object, problem, cure) AS
    SELECT f.severity, s.name, f.problem,
           'Let its tables use a shard with a sequence of its own; create_shard() makes one.'
    FROM (SELECT s.*, s.has_sequence AND min(s.epoch) OVER w < max(s.epoch) OVER w AS is_mixed
          FROM instaid._owned_shards AS s
          WINDOW w AS (PARTITION BY s.sequence, s.has_sequence)) AS s
         JOIN pg_class AS c ON c.oid = s.sequence JOIN pg_namespace AS n ON n.oid = c.relnamespace
         CROSS JOIN LATERAL (VALUES
        (s.is_mixed, 'error',
         'its sequence serves a shard of another epoch, too: their IDs repeat'),
        (c.relnamespace <> s.schema, 'warning',
         format('its sequence %I.%I is not in it', n.nspname, c.relname)),
        -- The other owner may set it back.  The node's belongs to pg_database_owner.
        (c.relnamespace = s.schema AND c.relowner <> s.owner AND n.nspname <> 'instaid', 'warning',
         format('its sequence %I.%I belongs to %I, and its next_id() to %I', n.nspname, c.relname,
                pg_get_userbyid(c.relowner), pg_get_userbyid(s.owner))))
        AS f (applies, severity, problem) WHERE f.applies
    UNION ALL
    SELECT 'error', f.signature, o.problem,
           CASE o.code WHEN 'shard_function_name' THEN 'Give it this name, or drop it.'
                WHEN 'shard_function_attributes'
                THEN format('ALTER FUNCTION %s VOLATILE STRICT PARALLEL UNSAFE;', f.signature)
                ELSE 'Let it be as instaid.create_shard() creates it;'
                     ' ALTER FUNCTION or a DROP has changed that.' END
    FROM instaid._odd_declarations() AS o JOIN pg_proc AS p ON p.oid = o.function
         JOIN pg_namespace AS n ON n.oid = p.pronamespace
         CROSS JOIN LATERAL format('%I.%I(%s)', n.nspname, p.proname,
                                   oidvectortypes(p.proargtypes)) AS f (signature)
    UNION ALL
    -- it was dropped, with CASCADE also from defaults
    SELECT 'error', s.name, 'has no function next_id()',
           format('Let its owner run: CREATE FUNCTION %s.next_id() RETURNS bigint LANGUAGE instaid'
                  ' STRICT COST 1 AS ''as next_ids(integer, regclass)''; and set the defaults'
                  ' again.', s.name)
    FROM instaid._audited_shards AS s
    WHERE NOT EXISTS (SELECT FROM pg_proc AS p WHERE p.pronamespace = s.schema
                      AND p.pronargs = 0 AND (p.proname = 'next_id' OR p.prosrc ~ '^as '))
    UNION ALL
    -- It is not frozen or watched, and its shard ID can be taken twice.
    SELECT 'warning', quote_ident(n.nspname),
           'is a shard of the SQL edition, which instaid.shards does not show',
           'Move it with sql-edition/to_extension.sql of that edition.'
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.proname = 'next_ids' AND p.pronargs = 2 AND n.nspname !~ '^pg_'
      AND strpos(p.prosrc, 'instaid_sql._next_ids(') > 0
    UNION ALL
    SELECT 'warning', format('%I.%I(%s)', n.nspname, p.proname, oidvectortypes(p.proargtypes)),
           'is left over from the SQL edition',
           format('When no column or function uses it any more, drop it, or the type'
                  ' %I.id_sequence.', n.nspname)
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE p.proname ~ '^sql_edition_next_ids?$' AND strpos(p.prosrc, 'instaid_sql._') > 0;

-- Sequences that next_id() moves
CREATE VIEW instaid._sequence_findings (severity, object, problem, cure) AS
    WITH shard AS MATERIALIZED (SELECT s.schema, s.sequence, s.epoch, s.owner, s.frozen
                                FROM instaid._audited_shards AS s),
    -- those of shards and in defaults, and the role that says so
    used (sequence, epoch, owner, frozen) AS (
        SELECT s.sequence, s.epoch, s.owner, s.frozen FROM shard AS s
        UNION
        SELECT i.sequence, COALESCE(s.epoch, instaid.default_epoch()), i.owner,
               -- only then does freeze_shard() bound it
               COALESCE(s.frozen AND s.owner = i.owner, false)
        FROM instaid._id_defaults AS i LEFT JOIN shard AS s ON s.schema = i.maker_schema
        WHERE i.is_own AND i.sequence IS NOT NULL),
    -- Those that belong to that role.  The drift is null if the position cannot be read.
    clocked AS MATERIALIZED (
        SELECT format('%I.%I', n.nspname, c.relname) AS name, c.relpersistence, q.seqmax,
               bool_or(u.frozen) OVER (PARTITION BY c.oid) AS frozen,
               t.issued_at - clock_timestamp() AS drift,
               -- _list_shards() has loaded the library, which defines the setting
               current_setting('instaid.max_drift')::interval AS max_drift,
               -- in the last millisecond of positive IDs, or past it, or at the last tick
               t.last_value >= 9007199254740991 OR t.issued_at >= instaid.extract_timestamp(
                   instaid.min_id('infinity', u.epoch), u.epoch) AS is_at_end,
               instaid.extract_timestamp(-9223372036854775808, u.epoch) < now() AS is_over,
               t.problem AS fault, t.cure
        FROM used AS u JOIN pg_class AS c ON c.oid = u.sequence
                 AND (c.relowner = u.owner OR c.oid = 'instaid.node_id_seq'::regclass)
             JOIN pg_namespace AS n ON n.oid = c.relnamespace
             JOIN pg_sequence AS q ON q.seqrelid = c.oid
             CROSS JOIN LATERAL instaid._sequence_state(c.oid) AS t WHERE c.relpersistence <> 't')
    SELECT f.severity, q.name, f.problem, f.cure
    FROM clocked AS q CROSS JOIN LATERAL (VALUES
        (q.fault IS NOT NULL, 'error', 'cannot serve as a source of IDs. ' || q.fault, q.cure),
        -- It can be newer than the freeze, or a restore of a table alone.
        (q.frozen AND q.seqmax >= 9007199254740991, 'warning',
         'has no MAXVALUE, but its shard is frozen: nextval() still moves it',
         'Use instaid.freeze_shard() or instaid.thaw_shard() on the shard.'),
        (NOT q.frozen AND q.seqmax < 9007199254740991 AND q.fault IS NULL, 'error',
         'has a MAXVALUE that is too low for IDs, but is not a sequence of a frozen shard',
         'If it is a sequence of a shard, use instaid.thaw_shard(), or instaid.freeze_shard() if'
         ' the shard should issue no IDs. Otherwise use a sequence without MAXVALUE.'),
        -- setval() or advance_past() took it too far
        (q.is_at_end AND q.fault IS NULL AND NOT q.frozen AND NOT q.is_over, 'error',
         'has reached the last tick of the ID format',
         format('ALTER SEQUENCE %s RESTART;', q.name)),
        (q.relpersistence = 'u', 'warning', 'is unlogged: it forgets its IDs in a crash',
         format('ALTER SEQUENCE %s SET LOGGED;', q.name)),
        -- The clock was set back.  The limit is metrics.drift_limit_seconds.
        (NOT q.is_at_end AND q.drift > q.max_drift + interval '1064 ms', 'warning',
         format('its IDs are %s ahead of the clock; instaid.max_drift is %s', q.drift,
                q.max_drift),
         'Set the server''s clock right, and wait until it has passed the time of these IDs. If'
         ' that takes too long, RESTART the sequence and give new IDs to rows of the future, in'
         ' one transaction.')) AS f (applies, severity, problem, cure) WHERE f.applies;

-- Tickets whose next_ticket() fails, or takes what is another server's
CREATE VIEW instaid._ticket_findings (severity, object, problem, cure) AS
    SELECT f.severity, format('instaid_tickets.%I', t.name), f.problem, f.cure
    FROM instaid.tickets AS t CROSS JOIN LATERAL instaid._ticket_state(t.sequence) AS s
         CROSS JOIN LATERAL (VALUES
        -- setval() or ALTER SEQUENCE left it so: nextval() gives what another server gives
        (s.off_stripe, 'warning', 'stands at a value of another server',
         format('SELECT instaid.next_ticket(%L);', t.name)),
        (s.failure IS NOT NULL, 'error', 'cannot ask ' || s.failure,
         'Create or grant what is missing.'),
        (NOT s.is_preloaded, 'error',
         'has a source, and the library instaid_sources is not preloaded: next_ticket() fails',
         'Install instaid_sources if this server lacks it, add it to shared_preload_libraries, and'
         ' restart the server.'))
        AS f (applies, severity, problem, cure) WHERE f.applies;

-- include common/findings.sql

CREATE FUNCTION instaid.audit(OUT severity text, OUT object text, OUT problem text,
                              OUT cure text) RETURNS SETOF record
    LANGUAGE sql VOLATILE PARALLEL RESTRICTED
    SET search_path = pg_catalog, pg_temp SET enable_nestloop = off SET jit = off
BEGIN ATOMIC
    SELECT f.severity, f.object, f.problem,
           -- Citus refuses some of the cures.
           CASE WHEN NOT EXISTS (SELECT FROM pg_extension AS e WHERE e.extname = 'citus')
                THEN f.cure
                WHEN starts_with(f.cure, 'ALTER SEQUENCE ')
                THEN 'SET citus.enable_ddl_propagation = off; ' || f.cure
                     || ' RESET citus.enable_ddl_propagation;'
                WHEN starts_with(f.cure, 'CREATE UNIQUE INDEX ')
                THEN 'Create a unique index on it; a distributed table must be distributed by this'
                     ' column first.'
                WHEN f.cure ~ '^ALTER TABLE |instaid\.(adopt|create)_'
                     AND instaid._is_citus_worker()
                THEN f.cure || ' Do this on the coordinator: this is a worker of Citus.'
                ELSE f.cure END
    FROM (TABLE instaid._copy_findings UNION TABLE instaid._column_findings
          UNION TABLE instaid._value_findings UNION TABLE instaid._shard_findings
          UNION TABLE instaid._shard_id_findings UNION TABLE instaid._sequence_findings
          UNION TABLE instaid._ticket_findings UNION TABLE instaid._partition_findings
          UNION TABLE instaid._ending_tickets UNION TABLE instaid._right_findings) AS f
    ORDER BY f.severity COLLATE "C", f.object COLLATE "C", f.problem COLLATE "C";
END;
COMMENT ON FUNCTION instaid.audit() IS 'what makes IDs or tickets repeat or fail, or will do so';
