/* sql-edition/audit.sql */

-- What breaks, and what monitoring asks.

\ir begin.sql
CALL instaid._begin_file('audit.sql', '{
    "partitions.sql": "instaid.list_partitions(regclass,timestamptz)",
    "tickets.sql": "instaid.next_ticket(text)"}');

-- What the view metrics has besides shards and tickets.
-- next_ids() and RESTART go up to 2.1 s ahead of the clock.
CREATE OR REPLACE VIEW instaid._edition_metrics AS
    SELECT 5::double precision AS drift_limit_seconds, 0::bigint AS failed_refills,
           0::bigint AS failing_tickets, 0::bigint AS empty_tickets;

\ir ../common/metrics.sql

---- Knowing before it breaks ----

-- audit() only reads catalogs and sequences.  It runs nothing that it finds.

-- Copies of the published function; for audit().
-- A copy calls nextval(), reads a clock, and shifts to the left.  Comments and strings do not
-- count.
CREATE OR REPLACE VIEW instaid._copies AS
    SELECT 'pg_proc'::regclass::oid AS classid, p.oid AS objid, n.oid AS schema, n.nspname,
           p.proowner AS owner, p.proname, p.pronargs,
           CASE WHEN NOT p.proretset THEN p.prorettype END AS prorettype,
           pg_catalog.format('%I.%I(%s)', n.nspname, p.proname,
                             pg_catalog.oidvectortypes(p.proargtypes)) AS object,
           NULL AS alteration, c.code, true AS is_copy
    FROM pg_catalog.pg_proc AS p
         JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
         JOIN pg_catalog.pg_language AS l ON l.oid = p.prolang
         CROSS JOIN LATERAL (SELECT pg_catalog.regexp_replace(
             -- in linear time, whatever the text is; what is open ends with it
             p.prosrc, E'\\mE''(?:[^''\\\\]|\\\\.)*''?|''[^'']*''?|--[^\\n\\r]*'
                       '|/\\*(?:[^*]|\\*+[^*/])*(?:\\*+/)?'
                       '|\\$\\w*\\$.*\\$\\w*\\$', ' ', 'gi')) AS c (code)
    WHERE l.lanname IN ('sql', 'plpgsql') AND n.nspname !~ '^(pg_|instaid|information_schema$)'
      AND CASE WHEN octet_length(p.prosrc) < 100000
               THEN strpos(p.prosrc, 'instaid_sql._') = 0
                    AND p.prosrc ~* '[[:<:]]nextval[[:>:]]'
                    AND c.code ~* '[[:<:]](nextval[[:space:]]*[(]|execute[[:>:]])'
                    AND c.code ~* '[[:<:]](clock_timestamp|now|statement_timestamp|timeofday'
                                  '|transaction_timestamp|current_timestamp|localtimestamp)[[:>:]]'
                    AND c.code ~* '<<|[*][[:space:]]*(8388608|4194304)[[:>:]]|[[.^.]]|power'
               END;

-- The shards of this database; for audit().
CREATE OR REPLACE VIEW instaid._audited_shards AS
    SELECT p.pronamespace AS schema, quote_ident(s.schema_name) AS name, s.shard_id, s.epoch,
           s.sequence::oid AS sequence, s.frozen, p.proowner AS owner
    FROM instaid._list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration;

-- Columns whose default makes IDs; for audit().  is_own is false for copies.
CREATE OR REPLACE VIEW instaid._id_columns AS
    SELECT a.adrelid AS relid, t.attnum, n.oid AS schema, c.relowner AS owner, c.relkind,
           c.relispartition AS is_partition, o.table_name, o.column_name, t.atttypid AS type,
           o.table_name || '.' || o.column_name AS name, m.schema AS maker_schema, m.is_own
    FROM (SELECT p.oid, p.pronamespace, true
          FROM instaid._audited_shards AS s JOIN pg_proc AS p ON p.pronamespace = s.schema
                                                             AND p.proname = 'next_id'
          UNION ALL
          SELECT y.objid, y.schema, false FROM instaid._copies AS y) AS m (oid, schema, is_own)
         JOIN pg_depend AS d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = m.oid
                            AND d.classid = 'pg_attrdef'::regclass
         JOIN pg_attrdef AS a ON a.oid = d.objid
         JOIN pg_attribute AS t ON t.attrelid = a.adrelid AND t.attnum = a.adnum
         JOIN pg_class AS c ON c.oid = a.adrelid AND c.relpersistence <> 't'
         JOIN pg_namespace AS n ON n.oid = c.relnamespace
         CROSS JOIN LATERAL (SELECT format('%I.%I', n.nspname, c.relname), quote_ident(t.attname))
                            AS o (table_name, column_name);

\ir ../common/findings.sql

---- All findings ----

-- The findings of audit().
CREATE OR REPLACE FUNCTION instaid._audit(OUT severity text, OUT object text, OUT problem text,
                               OUT cure text) RETURNS SETOF record
    LANGUAGE sql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET jit = off
BEGIN ATOMIC
    WITH shard AS MATERIALIZED (
        SELECT s.*, n.nspname AS schema_name, instaid_sql._options(
            s.shard_id, (extract(epoch FROM s.epoch) * 1000)::bigint) AS options
        FROM instaid._audited_shards AS s JOIN pg_namespace AS n ON n.oid = s.schema),
    copy AS MATERIALIZED (SELECT y.* FROM instaid._copies AS y),
    id_column AS MATERIALIZED (SELECT i.*, instaid._base_type(i.type) AS base_type
                               FROM instaid._id_columns AS i),
    sequence AS MATERIALIZED (
        SELECT s.schema, s.schema_name, s.shard_id, s.epoch, s.owner, s.options, c.relowner,
               c.relacl, c.relpersistence, q.*, i.identity AS name,
               q.seqmax < (s.options).maximum_value
               AND (q.seqmax # (s.options).maximum_value) & 8388607 = 0 AS is_frozen,
               i.schema || '.id_sequence_lock' AS lock_name, k.oid AS lock
        FROM shard AS s CROSS JOIN LATERAL instaid._shard_sequences(s.schema_name) AS r
             JOIN pg_class AS c ON c.oid = r JOIN pg_sequence AS q ON q.seqrelid = r
             LEFT JOIN pg_class AS k ON k.relnamespace = c.relnamespace
                                     AND k.relname = 'id_sequence_lock'
             CROSS JOIN LATERAL pg_identify_object('pg_class'::regclass, r, 0) AS i)
    -- It takes nextval and the time in two steps, so that two sessions can pair the same of
    -- both; and it repeats IDs when the clock is set back.
    SELECT 'error', y.object, 'copy of the published function: its IDs repeat',
           CASE WHEN y.code ~ '%%' THEN 'Write % in this copy, and call audit() again.'
                WHEN NOT y.schema_is_shard AND y.pronargs = 0
                     AND y.prorettype = 'bigint'::regtype
                     AND (y.proname = 'next_id'
                          OR instaid._find_function(y.nspname, 'next_id', '') IS NULL AND y.n = 1)
                THEN CASE y.proname WHEN 'next_id' THEN format('SELECT instaid.adopt_shard(%L);',
                                                               y.nspname)
                          ELSE format('CALL instaid.adopt_shards(%L);', regexp_replace(
                                   y.nspname, E'([\\\\%_])', E'\\\\\\1', 'g')) END
                ELSE 'Let columns default to the next_id() of a shard instead;'
                     ' instaid.create_shard() makes one.' END
    FROM (SELECT c.*, c.schema IN (SELECT s.schema FROM shard AS s) AS schema_is_shard,
                 count(*) FILTER (WHERE c.pronargs = 0) OVER (PARTITION BY c.nspname) AS n
          FROM copy AS c) AS y
    UNION ALL
    SELECT 'error', i.name, format('its type is %s: it cannot hold IDs', i.base_type),
           CASE WHEN i.maker_schema = i.schema AND i.is_own
                     AND i.base_type IN ('integer'::regtype, 'smallint'::regtype)
                THEN format('SELECT * FROM instaid.adopt_column(%L, %s);', i.table_name,
                            quote_literal(i.column_name))
                -- it calls functions that the owner has put into the table
                ELSE CASE WHEN pg_get_userbyid(i.owner) <> current_user
                          THEN format('Connect as its owner, %s, and run: ', i.owner::regrole)
                          ELSE '' END
                     || format('ALTER TABLE %s ALTER %s TYPE bigint;', i.table_name,
                               i.column_name) END
    FROM id_column AS i
    WHERE i.base_type IN ('integer'::regtype, 'smallint'::regtype, 'real'::regtype,
                          'double precision'::regtype)
    UNION ALL
    -- CREATE TABLE ... (LIKE template INCLUDING DEFAULTS) keeps the template's shard.
    SELECT 'error', i.name, format('its IDs are those of schema %I', n.nspname),
           format('ALTER TABLE %s ALTER %s SET DEFAULT %s.next_id();', i.table_name, i.column_name,
                  s.name)
    FROM id_column AS i JOIN shard AS s ON s.schema = i.schema
         JOIN pg_namespace AS n ON n.oid = i.maker_schema
    WHERE i.maker_schema <> i.schema AND NOT s.frozen
    UNION ALL
    SELECT 'warning', i.name,
           'there is no unique index on it alone: a copy of an ID is not refused',
           CASE WHEN p.partnatts <> 1 OR p.partattrs[0] <> i.attnum
                THEN 'Partition the table by its ID:'
                     ' a unique index must have all columns of the partition key.'
                ELSE format('CREATE UNIQUE INDEX ON %s (%s);', i.table_name, i.column_name) END
    FROM id_column AS i LEFT JOIN pg_partitioned_table AS p ON p.partrelid = i.relid
    WHERE i.relkind IN ('r', 'p') AND NOT i.is_partition AND NOT EXISTS (
        SELECT FROM pg_index AS x WHERE x.indrelid = i.relid AND x.indisunique AND x.indisvalid
        AND x.indnkeyatts = 1 AND x.indkey[0] = i.attnum AND x.indpred IS NULL)
    UNION ALL
    SELECT 'error', s.name, 'its type id_sequence admits sequences of other shards: its IDs can'
           ' repeat', format('SELECT instaid._admit_sequences(%L);', s.schema_name)
    FROM shard AS s
    WHERE NOT EXISTS (
        SELECT FROM pg_type AS t JOIN pg_constraint AS c ON c.contypid = t.oid
               JOIN pg_depend AS d ON d.classid = 'pg_constraint'::regclass AND d.objid = c.oid
        WHERE t.typnamespace = s.schema AND t.typname = 'id_sequence'
          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = s.sequence)
    UNION ALL
    -- Calls by name, new defaults, and restored ones find it, or are ambiguous.
    SELECT 'error', format('%s.%I(%s)', s.name, p.proname, oidvectortypes(p.proargtypes)),
           format('role %s has put it into the schema of a shard: calls of %s() can fail, or find'
                  ' it', p.proowner::regrole, p.proname),
           'Drop it, and revoke CREATE on the schema.'
    FROM shard AS s JOIN pg_namespace AS n ON n.oid = s.schema
         JOIN pg_proc AS p ON p.pronamespace = s.schema AND p.proname IN ('next_id', 'next_ids')
         JOIN pg_roles AS o ON o.oid = p.proowner
    WHERE p.proowner NOT IN (s.owner, n.nspowner) AND NOT o.rolsuper
    UNION ALL
    -- create_shard() does not see its shard ID.
    SELECT 'error', quote_ident(n.nspname),
           format('functions of a shard that is not in instaid.shards: %s',
                  string_agg(format('%I(%s)', p.proname, oidvectortypes(p.proargtypes)), ', ')),
           'Give next_id(), next_ids() and their type to one role, if they are there, or let its'
           ' tables use another shard, and drop what is left.'
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname !~ '^(pg_|instaid)' AND n.oid NOT IN (SELECT s.schema FROM shard AS s)
      AND (strpos(p.prosrc, 'RETURN instaid_sql._open(') > 0
           OR strpos(p.prosrc, 'SELECT instaid_sql._next_ids(') > 0)
    GROUP BY n.nspname
    UNION ALL
    SELECT 'error', q.name, 'cannot serve: ' || w.complaint,
           format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 MINVALUE %s MAXVALUE %s'
                  ' START WITH %2$s CACHE 1 NO CYCLE;', q.name, (q.options).minimum_value,
                  CASE WHEN q.is_frozen THEN q.seqmax ELSE (q.options).maximum_value END)
    FROM sequence AS q CROSS JOIN LATERAL (SELECT CASE
        WHEN q.seqtypid <> 'bigint'::regtype
        THEN format('its type is %s; it must be bigint', format_type(q.seqtypid, NULL))
        WHEN q.seqincrement <> 1 THEN format('its INCREMENT is %s; it must be 1', q.seqincrement)
        WHEN q.seqcache <> 1 THEN format('its CACHE is %s; it must be 1', q.seqcache)
        WHEN q.seqcycle THEN 'it is defined with CYCLE'
        WHEN q.seqmin <> (q.options).minimum_value
        THEN format('its MINVALUE is %s; it must be %s', q.seqmin, (q.options).minimum_value)
        WHEN q.seqmax <> (q.options).maximum_value AND NOT q.is_frozen
        THEN format('its MAXVALUE is %s; it must be %s', q.seqmax, (q.options).maximum_value)
        WHEN q.seqstart <> q.seqmin
        THEN format('its START is %s; it must be %s', q.seqstart, q.seqmin) END) AS w (complaint)
    WHERE w.complaint IS NOT NULL
    UNION ALL
    SELECT 'error', q.name, 'has no lock: next_id() fails',
           format('CREATE VIEW %s AS SELECT 1 AS lock;', q.lock_name)
    FROM sequence AS q WHERE q.lock IS NULL
    UNION ALL
    SELECT 'error', q.name, format('does not belong to the owner of the shard, %s',
                                   q.owner::regrole),
           'Give the sequence, its lock and the functions of the shard to one role.'
    FROM sequence AS q LEFT JOIN pg_class AS k ON k.oid = q.lock
    WHERE q.relowner <> q.owner OR k.relowner <> q.owner
    UNION ALL
    -- setval() could set it back, and the lock could stop the shard; nextval() is no danger
    SELECT CASE WHEN bool_and(r.is_usage) THEN 'warning' ELSE 'error' END, r.name,
           format('role %s has rights on it: it could %s', string_agg(DISTINCT r.grantee, ', '),
                  CASE WHEN bool_and(r.is_usage) THEN 'take values, which the shard leaves out'
                       ELSE 'repeat IDs, or stop the shard' END),
           format('REVOKE ALL ON %s FROM %s;', r.name, string_agg(DISTINCT r.grantee, ', '))
    FROM (SELECT i.identity AS name, CASE WHEN x.grantee = 0 THEN 'PUBLIC'
                                          ELSE x.grantee::regrole::text END AS grantee,
                 x.privilege_type = 'USAGE' AS is_usage
          FROM sequence AS q JOIN pg_class AS c ON c.oid IN (q.seqrelid, q.lock)
               CROSS JOIN LATERAL pg_identify_object('pg_class'::regclass, c.oid, 0) AS i
               CROSS JOIN LATERAL aclexplode(c.relacl) AS x
          WHERE x.grantee <> c.relowner
            AND (c.oid = q.lock OR x.privilege_type IN ('USAGE', 'UPDATE'))) AS r
    GROUP BY r.name
    UNION ALL
    -- After a crash it starts from the clock: IDs that were ahead of it come again.
    SELECT 'warning', q.name, 'is unlogged: it forgets its IDs in a crash',
           format('ALTER SEQUENCE %s SET LOGGED;', q.name)
    FROM sequence AS q WHERE q.relpersistence = 'u'
    UNION ALL
    -- next_ids() and RESTART go up to 2.1 s ahead
    SELECT 'warning', s.name, format('its IDs are %s ahead of the clock', s.drift),
           'Set the server''s clock right, or wait until it has passed the time of these IDs.'
    FROM (SELECT q.name, instaid.extract_timestamp(t.last_value, q.epoch)
                         - clock_timestamp() AS drift
          FROM sequence AS q CROSS JOIN LATERAL instaid._last_value(q.seqrelid) AS t) AS s
    WHERE s.drift > interval '5 s'
    UNION ALL
    -- setval() or ALTER SEQUENCE left it so: nextval() gives what another server gives
    SELECT 'error', t.sequence::text, 'stands at a value of another server: next_ticket() fails',
           format('ALTER SEQUENCE %s RESTART WITH %s;', t.sequence,
                  t.last_value::numeric + t.servers
                  - mod(mod(t.last_value::numeric - t.server, t.servers) + t.servers, t.servers))
    FROM instaid.tickets AS t WHERE t.off_stripe
    UNION ALL TABLE instaid._shard_id_findings
    UNION ALL TABLE instaid._partition_findings
    UNION ALL TABLE instaid._ending_tickets
    UNION ALL TABLE instaid._right_findings;
END;

CREATE OR REPLACE FUNCTION instaid.audit(OUT severity text, OUT object text, OUT problem text,
                              OUT cure text) RETURNS SETOF record
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE NOTICE USING
        MESSAGE = 'this is the SQL edition of instaid 1.0',
        DETAIL = 'It does not check the values of columns, foreign keys, or parsed code.';
    RETURN QUERY SELECT f.* FROM instaid._audit() AS f
                 ORDER BY f.severity COLLATE "C", f.object COLLATE "C", f.problem COLLATE "C";
END $$;
COMMENT ON FUNCTION instaid.audit() IS 'what makes IDs or tickets repeat or fail, or will do so';

CALL instaid._set_rights();
COMMIT;
