/* sql-edition/audit.sql */

-- What breaks, and what monitoring asks.
-- Run instaid.sql, shards.sql, partitions.sql, tickets.sql first.

BEGIN;
DO $$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog', true);
    IF NOT EXISTS (SELECT FROM pg_namespace AS n
                   WHERE n.nspname = 'instaid' AND pg_get_userbyid(n.nspowner) = current_user)
       OR to_regprocedure('instaid._begin_file(text,text,json)') IS NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'sql-edition/audit.sql needs sql-edition/instaid.sql',
            DETAIL = format('Role %I has not run it in this database.', current_user),
            HINT = 'Run that file first, as the same role.';
    END IF;
END $$;
CALL instaid._begin_file('audit.sql', '1.0', '{
    "shards.sql": "instaid.list_shards()",
    "partitions.sql": "instaid.list_partitions(regclass,timestamptz)",
    "tickets.sql": "instaid.next_ticket(text)"}');

---- Monitoring ----

CREATE OR REPLACE VIEW instaid.metrics AS
    SELECT s.shards, s.frozen_shards, s.unreadable + t.unreadable AS unreadable,
           CASE WHEN s.age IS NOT NULL THEN GREATEST(-s.age, 0) END AS drift_seconds,
           CASE WHEN s.age < 0 THEN s.last_shard END AS drift_shard,
           -- next_ids() and RESTART go up to 2.1 s ahead
           5::double precision AS drift_limit_seconds,
           CASE WHEN s.age IS NOT NULL THEN GREATEST(s.age, 0) END AS last_id_seconds,
           s.expiry_seconds, t.tickets, t.ticket_values_left, t.ticket,
           0::bigint AS failed_refills, 0::bigint AS failing_tickets, 0::bigint AS empty_tickets
    FROM (SELECT count(*) AS shards, count(*) FILTER (WHERE frozen) AS frozen_shards,
                 count(*) FILTER (WHERE NOT pg_catalog.has_sequence_privilege(sequence, 'SELECT'))
                     AS unreadable,
                 (array_agg(schema_name ORDER BY last_issued_at DESC NULLS LAST)
                  FILTER (WHERE NOT frozen))[1] AS last_shard,
                 EXTRACT(epoch FROM pg_catalog.clock_timestamp()
                                    - max(last_issued_at) FILTER (WHERE NOT frozen))
                     ::double precision AS age,
                 EXTRACT(epoch FROM min(expires_at) FILTER (WHERE NOT frozen)
                                    - pg_catalog.clock_timestamp())
                     ::double precision AS expiry_seconds
          FROM instaid.shards) AS s
         CROSS JOIN (SELECT count(*) AS tickets, min(values_left) AS ticket_values_left,
                            (array_agg(name ORDER BY values_left, name)
                             FILTER (WHERE values_left IS NOT NULL))[1] AS ticket,
                            count(*) - count(values_left) AS unreadable
                     FROM instaid.tickets) AS t;
COMMENT ON VIEW instaid.metrics IS
'one row for a monitoring system, whose role must have SELECT on the sequences to see all of it';

---- Knowing before it breaks ----

-- audit() only reads catalogs and sequences.  It runs nothing that it finds.

-- Copies of the published function; for audit().
-- A copy calls nextval(), reads a clock, and shifts to the left.  Comments and strings do not
-- count.
CREATE OR REPLACE VIEW instaid._copies AS
    SELECT p.oid, p.pronamespace, n.nspname, p.proowner,
           pg_catalog.format('%I.%I(%s)', n.nspname, p.proname,
                             pg_catalog.oidvectortypes(p.proargtypes)) AS object,
           p.proname, p.pronargs,
           CASE WHEN NOT p.proretset THEN p.prorettype END AS prorettype, c.code
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
    SELECT p.pronamespace AS schema, quote_ident(s.schema_name) AS name, s.schema_name,
           s.shard_id, s.epoch, s.sequence, p.proowner AS owner, o.options,
           q.seqmax < (o.options).maximum_value
           AND (q.seqmax # (o.options).maximum_value) & 8388607 = 0 AS frozen
    FROM instaid.list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration
         JOIN pg_sequence AS q ON q.seqrelid = s.sequence
         CROSS JOIN LATERAL (SELECT instaid_sql._options(
             s.shard_id, (extract(epoch FROM s.epoch) * 1000)::bigint)) AS o (options);

-- Columns whose default makes IDs; for audit().  is_own is false for copies.
CREATE OR REPLACE VIEW instaid._id_columns AS
    SELECT a.adrelid AS relid, t.attnum, n.oid AS schema, m.schema AS maker_schema, m.is_own,
           o.table_name, o.column_name, o.table_name || '.' || o.column_name AS name, c.relkind,
           c.relowner AS owner, c.relispartition AS is_partition,
           instaid._base_type(t.atttypid) AS type
    FROM (SELECT p.oid, p.pronamespace, true
          FROM instaid._audited_shards AS s JOIN pg_proc AS p ON p.pronamespace = s.schema
                                                             AND p.proname = 'next_id'
          UNION ALL
          SELECT y.oid, y.pronamespace, false FROM instaid._copies AS y) AS m (oid, schema, is_own)
         JOIN pg_depend AS d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = m.oid
                            AND d.classid = 'pg_attrdef'::regclass
         JOIN pg_attrdef AS a ON a.oid = d.objid
         JOIN pg_attribute AS t ON t.attrelid = a.adrelid AND t.attnum = a.adnum
         JOIN pg_class AS c ON c.oid = a.adrelid AND c.relpersistence <> 't'
         JOIN pg_namespace AS n ON n.oid = c.relnamespace
         CROSS JOIN LATERAL (SELECT format('%I.%I', n.nspname, c.relname), quote_ident(t.attname))
                            AS o (table_name, column_name);

---- Findings of audit() (both editions) ----

-- Shard IDs that two shards have, and IDs that end
CREATE OR REPLACE VIEW instaid._shard_id_findings (severity, object, problem, cure) AS
    -- create_shard() refuses it; a restore, a rename, or a function by hand does not.
    SELECT 'error', s.name, format('shard ID %s is also that of schema %s', s.shard_id, s.other),
           CASE WHEN s.live = 1
                THEN 'With two epochs, a new ID can be an ID of the past. Give the one that is not'
                     ' frozen another shard ID, with ' || s.command || '.'
                ELSE 'Give one of them another shard ID, with ' || s.command || ', or freeze it,'
                     ' if no table needs its IDs, with instaid.freeze_shard().' END
    FROM (SELECT s.name, s.shard_id, COALESCE(lag(s.name) OVER w, lead(s.name) OVER w) AS other,
                 count(*) FILTER (WHERE NOT s.frozen) OVER i AS live,
                 min(s.epoch) OVER i <> max(s.epoch) OVER i AS has_two_epochs,
                 CASE WHEN bool_or(s.name = 'instaid') OVER i
                      THEN 'instaid.renumber_shard(), or the setting instaid.node_shard_id'
                      ELSE 'instaid.renumber_shard()' END AS command
          FROM instaid._audited_shards AS s
          WINDOW i AS (PARTITION BY s.shard_id), w AS (i ORDER BY s.name COLLATE "C")) AS s
    WHERE s.other IS NOT NULL AND (s.live > 1 OR s.live = 1 AND s.has_two_epochs)
    UNION ALL
    -- next_id() fails after that time.  Large tables need long to move to another shard.
    SELECT CASE WHEN e.expires_at <= now() THEN 'error' ELSE 'warning' END, s.name,
           format(CASE WHEN e.expires_at <= now() THEN 'its IDs ended at %s'
                       ELSE 'its IDs end at %s, in under five years' END, e.expires_at),
           'Let its tables use another shard, with a later epoch:'
           ' instaid.create_shard(schema_name, shard_id, epoch). Then freeze this one.'
    FROM instaid._audited_shards AS s
         -- the time of the first ID that would be negative
         CROSS JOIN LATERAL instaid.extract_timestamp(-9223372036854775808, s.epoch)
                            AS e (expires_at)
    WHERE NOT s.frozen AND e.expires_at < now() + interval '5 years';

-- Tables partitioned by range of their IDs without a partition for the IDs of now, or soon none.
-- takes_now is null if list_partitions() reads no bounds, as those of a domain.  A default
-- partition is a finding only when the others have ended: it keeps new ones from being created.
CREATE OR REPLACE VIEW instaid._partition_findings (severity, object, problem, cure) AS
    SELECT CASE WHEN r.takes_now THEN 'warning' ELSE 'error' END, i.name,
           format(CASE WHEN r.takes_now IS NOT TRUE
                       THEN 'no partition takes the IDs of now: INSERT fails'
                       WHEN r.have_ended
                       THEN 'its partitions ended at %s: rows go to the default partition'
                       ELSE 'its last partition ends at %s, within its own length' END, r.ends_at),
           format(CASE WHEN r.takes_now AND r.have_ended
                       THEN 'Detach the default partition, create partitions, with %s, and insert'
                            ' its rows into the table.'
                       ELSE 'Create partitions, from the end of the last, with %s, or a default'
                            ' one.' END,
                  format('instaid.create_partitions(%L, from_time, to_time, step, %L)',
                         i.table_name, s.epoch))
    FROM instaid._id_columns AS i JOIN instaid._audited_shards AS s ON s.schema = i.maker_schema
         JOIN pg_partitioned_table AS p ON p.partrelid = i.relid AND p.partattrs[0] = i.attnum
         CROSS JOIN LATERAL (
        SELECT bool_or((l.first_id <= n.id) IS NOT FALSE
                       AND (l.end_id > n.id) IS NOT FALSE) AS takes_now,
               bool_or(l.end_id IS NULL) AS is_open, max(l.to_time) AS ends_at,
               bool_and((l.end_id <= n.id) IS TRUE) FILTER (WHERE l.from_time IS NOT NULL)
                   AS have_ended,
               -- numeric, because a bound can be any bigint
               (array_agg(l.end_id::numeric - l.first_id ORDER BY l.end_id DESC))[1]
                   > max(l.end_id)::numeric - min(n.id) AS is_short
        FROM instaid.min_id(now(), s.epoch) AS n (id)
             CROSS JOIN LATERAL instaid.list_partitions(i.relid, s.epoch) AS l) AS r
    WHERE i.is_own AND NOT s.frozen AND NOT i.is_partition AND p.partstrat = 'r'
      AND p.partnatts = 1
      AND (COALESCE(NOT r.takes_now, NOT EXISTS (SELECT FROM pg_inherits AS h
                                                 WHERE h.inhparent = i.relid))
           OR r.have_ended OR r.is_short AND NOT r.is_open);

-- Tickets whose next_ticket() fails, or will after less than 1,000 values; for audit()
CREATE OR REPLACE VIEW instaid._ending_tickets (severity, object, problem, cure) AS
    SELECT CASE t.values_left WHEN 0 THEN 'error' ELSE 'warning' END,
           format('instaid_tickets.%I', t.name),
           format(CASE WHEN t.values_left > 0 THEN 'has %s values left until %s'
                       WHEN e.is_guarded THEN 'has reached its guard: next_ticket() fails'
                       ELSE 'is used up: next_ticket() fails' END, t.values_left,
                  CASE WHEN e.is_guarded THEN 'its guard'
                       ELSE 'the end of ' || format_type(q.seqtypid, NULL) END),
           CASE WHEN e.is_guarded
                THEN format('If the number of servers is being changed, continue with'
                            ' restripe_ticket(). Otherwise remove the guard: ALTER SEQUENCE'
                            ' instaid_tickets.%I NO MAXVALUE;', t.name)
                WHEN q.seqtypid <> 'bigint'::regtype
                THEN format('If the columns that store its values are of type bigint, widen it:'
                            ' ALTER SEQUENCE instaid_tickets.%I AS bigint;', t.name)
                ELSE 'If it was set too far by mistake, set it back with setval().' END
    FROM instaid.tickets AS t JOIN pg_sequence AS q ON q.seqrelid = t.sequence
         CROSS JOIN LATERAL (SELECT q.seqmax < CASE q.seqtypid
                                    WHEN 'smallint'::regtype THEN 32767
                                    WHEN 'integer'::regtype THEN 2147483647
                                    ELSE 9223372036854775807 END) AS e (is_guarded)
    WHERE t.values_left < 1000 AND NOT t.off_stripe;

-- Roles that could add functions, which are found in the place of ours, or set a ticket back.
CREATE OR REPLACE VIEW instaid._right_findings (severity, object, problem, cure) AS
    SELECT 'warning', o.name, format('role %s has %s on it, and could %s', r.names, o.privilege,
                                     o.harm),
           -- CASCADE takes what such a role has granted
           format('REVOKE %s ON %s %s FROM %s CASCADE;', o.privilege, o.kind, o.name, r.names)
    FROM (SELECT 'SCHEMA', n.nspname, n.nspowner, n.nspacl, 'CREATE',
                 'let others call its own functions there'
          FROM pg_namespace AS n WHERE n.nspname IN ('instaid', 'instaid_sql')
          UNION ALL
          SELECT 'SEQUENCE', format('instaid_tickets.%I', c.relname), c.relowner, c.relacl,
                 'UPDATE', 'set the ticket back'
          FROM pg_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.oid
          WHERE n.nspname = 'instaid_tickets' AND c.relkind = 'S')
         AS o (kind, name, owner, acl, privilege, harm)
         CROSS JOIN LATERAL (
        SELECT string_agg(DISTINCT COALESCE(quote_ident(a.rolname), 'PUBLIC'), ', ')
        FROM aclexplode(o.acl) AS x LEFT JOIN pg_roles AS a ON a.oid = x.grantee
        WHERE x.privilege_type = o.privilege AND x.grantee <> o.owner
          AND a.rolsuper IS NOT TRUE) AS r (names)
    WHERE r.names IS NOT NULL;

---- All findings ----

-- The findings of audit().
CREATE OR REPLACE FUNCTION instaid._audit(OUT severity text, OUT object text, OUT problem text,
                               OUT cure text) RETURNS SETOF record
    LANGUAGE sql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET jit = off
BEGIN ATOMIC
    WITH shard AS MATERIALIZED (SELECT s.* FROM instaid._audited_shards AS s),
    copy AS MATERIALIZED (SELECT y.* FROM instaid._copies AS y),
    id_column AS MATERIALIZED (SELECT i.* FROM instaid._id_columns AS i),
    sequence AS MATERIALIZED (
        SELECT s.schema, s.schema_name, s.shard_id, s.epoch, s.owner, s.options, c.relowner,
               c.relacl, c.relpersistence, q.*, i.identity AS name,
               q.seqmax < (s.options).maximum_value
               AND (q.seqmax # (s.options).maximum_value) & 8388607 = 0 AS is_frozen,
               i.schema || '.id_sequence_lock' AS lock_name, k.oid AS lock
        FROM shard AS s CROSS JOIN LATERAL instaid.shard_sequences(s.schema_name) AS r
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
    FROM (SELECT c.*, c.pronamespace IN (SELECT s.schema FROM shard AS s) AS schema_is_shard,
                 count(*) FILTER (WHERE c.pronargs = 0) OVER (PARTITION BY c.nspname) AS n
          FROM copy AS c) AS y
    UNION ALL
    SELECT 'error', i.name, format('its type is %s: it cannot hold IDs', i.type),
           CASE WHEN i.maker_schema = i.schema AND i.is_own
                     AND i.type IN ('integer'::regtype, 'smallint'::regtype)
                THEN format('SELECT * FROM instaid.adopt_column(%L, %s);', i.table_name,
                            quote_literal(i.column_name))
                -- it calls functions that the owner has put into the table
                ELSE CASE WHEN pg_get_userbyid(i.owner) <> current_user
                          THEN format('Connect as its owner, %s, and run: ', i.owner::regrole)
                          ELSE '' END
                     || format('ALTER TABLE %s ALTER %s TYPE bigint;', i.table_name,
                               i.column_name) END
    FROM id_column AS i
    WHERE i.type IN ('integer'::regtype, 'smallint'::regtype, 'real'::regtype,
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
          FROM sequence AS q CROSS JOIN LATERAL instaid._sequence_state(q.seqrelid) AS t) AS s
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

---- Rights ----

CALL instaid._set_rights();
COMMIT;
