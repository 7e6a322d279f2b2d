/* sql-edition/audit.sql */

-- What breaks, and what monitoring asks.

-- No column has an ID of a sequence that no shard has.
CREATE OR REPLACE VIEW instaid._lone_sequences AS
    SELECT NULL::oid AS sequence, NULL::oid AS owner WHERE false;

\ir ../common/positions.sql

-- next_ids() and RESTART go up to 2.1 s ahead of the clock.
CREATE OR REPLACE FUNCTION instaid._drift_limit() RETURNS interval
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN interval '5 s';

\ir ../common/metrics.sql

---- Knowing before it breaks ----

\ir ../common/audited.sql

-- The sequences of shards, if the owner of the shard has the rights of theirs
CREATE OR REPLACE VIEW instaid._audited_sequences AS
    WITH shard AS MATERIALIZED (SELECT s.* FROM instaid._audited_shards AS s)
    SELECT q.seqrelid AS sequence, format('%I.%I', n.nspname, c.relname) AS name, s.frozen,
           f.is_frozen,
           CASE WHEN q.seqmax <> o.maximum_value AND NOT f.is_frozen
                     OR (q.seqtypid, q.seqincrement, q.seqcache, q.seqcycle, q.seqmin, q.seqstart)
                        <> (o.data_type, o.increment, o.cache_size, o.cycle_option,
                            o.minimum_value, o.start_value)
                THEN 'Its options are not those of this shard''s sequences.' END AS fault,
           format('ALTER SEQUENCE %I.%I AS bigint INCREMENT BY 1 MINVALUE %s MAXVALUE %s'
                  ' START WITH %3$s CACHE 1 NO CYCLE;', n.nspname, c.relname, o.minimum_value,
                  CASE WHEN f.is_frozen THEN q.seqmax ELSE o.maximum_value END) AS cure,
           instaid.extract_timestamp(t.last, s.epoch) - clock_timestamp() AS ahead,
           instaid._drift_limit() AS ahead_limit,
           s.expires_at > now() AND t.last >= o.maximum_value AS is_at_end
    FROM (SELECT s.schema, s.sequence FROM shard AS s
          UNION
          -- those of add_sequence()
          SELECT t.typnamespace, d.refobjid
          FROM pg_type AS t JOIN pg_constraint AS k ON k.contypid = t.oid
               JOIN pg_depend AS d ON d.classid = 'pg_constraint'::regclass AND d.objid = k.oid
                                  AND d.refclassid = 'pg_class'::regclass
          WHERE t.typname = 'id_sequence') AS u (schema, sequence)
         JOIN shard AS s ON s.schema = u.schema
         JOIN pg_sequence AS q ON q.seqrelid = u.sequence
         JOIN pg_class AS c ON c.oid = u.sequence AND pg_has_role(s.owner, c.relowner, 'USAGE')
         JOIN pg_namespace AS n ON n.oid = c.relnamespace
         CROSS JOIN LATERAL instaid_sql._options(
             s.shard_id, (extract(epoch FROM s.epoch) * 1000)::bigint) AS o
         CROSS JOIN LATERAL instaid._position(u.sequence, NULL, NULL) AS t
         CROSS JOIN LATERAL (
        -- as instaid._freeze_sequence() leaves it, the last ID of an earlier millisecond
        SELECT q.seqmax < o.maximum_value
               AND (q.seqmax # o.maximum_value) & instaid_sql._low_bits() = 0) AS f (is_frozen);

-- No statements give a shard of this edition another sequence.
CREATE OR REPLACE FUNCTION instaid._own_sequence(schema_name text, shard_id integer,
                                       epoch timestamptz, sequence oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN NULL::text;

-- What comes before a cure that calls instaid_adopt; null if that is there.  Any role could have
-- made a schema of this name, whose functions the cure would call.
CREATE OR REPLACE FUNCTION instaid._before_adopting() RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN CASE WHEN NOT EXISTS (SELECT FROM pg_namespace AS a JOIN pg_namespace AS n
                                             ON n.nspowner = a.nspowner AND n.nspname = 'instaid'
                                 WHERE a.nspname = 'instaid_adopt')
                THEN '-- Run sql-edition/adopting.sql, as the owner of schema instaid. Then'
                     ' audit() has another cure.' END;

-- What a role, or PUBLIC as 0, must be granted to take IDs of a shard
CREATE OR REPLACE FUNCTION instaid._missing_rights(role oid, schema_name text, sequence regclass)
    RETURNS SETOF text
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT format('EXECUTE ON FUNCTION %I.next_id(%s)', schema_name,
                  pg_get_function_identity_arguments(p.oid))
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace AND n.nspname = schema_name
    WHERE p.proname = 'next_id' AND NOT has_function_privilege(role, p.oid, 'EXECUTE')
    ORDER BY p.pronargs;
END;

-- Findings of this edition
CREATE OR REPLACE VIEW instaid._edition_findings (code, severity, object, problem, cure) AS
    WITH shard AS MATERIALIZED (SELECT s.* FROM instaid._audited_shards AS s)
    -- after DROP SEQUENCE ... CASCADE
    SELECT 'open_type', 'error', s.name,
           'its type id_sequence admits sequences of other shards: its IDs can repeat',
           format('SELECT instaid._admit_sequences(%L);', s.schema_name)
    FROM shard AS s
    WHERE NOT EXISTS (
        SELECT FROM pg_type AS t JOIN pg_constraint AS c ON c.contypid = t.oid
               JOIN pg_depend AS d ON d.classid = 'pg_constraint'::regclass AND d.objid = c.oid
        WHERE t.typnamespace = s.schema AND t.typname = 'id_sequence'
          AND d.refclassid = 'pg_class'::regclass AND d.refobjid = s.sequence)
    UNION ALL
    -- create_shard() does not see its shard ID.
    SELECT 'lost_shard', 'error', quote_ident(n.nspname),
           format('functions of a shard that is not in instaid.shards: %s',
                  string_agg(format('%I(%s)', p.proname, oidvectortypes(p.proargtypes)), ', ')),
           '-- If they say what instaid.create_shard() makes them say, give next_id(), next_ids()'
           ' and their type to one role. Otherwise let its tables use another shard, and drop what'
           ' is left.'
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname !~ '^(pg_|instaid)'
      AND n.oid NOT IN (SELECT s.schema FROM shard AS s)
      AND (strpos(p.prosrc, 'RETURN instaid_sql._open(') > 0
           OR strpos(p.prosrc, 'SELECT instaid_sql._next_ids(') > 0)
    GROUP BY n.nspname
    UNION ALL
    -- DROP SEQUENCE ... CASCADE drops functions and defaults, and leaves the type.
    SELECT 'lost_shard', 'error', quote_ident(n.nspname),
           'its type id_sequence is left of a shard: next_id() was dropped, and defaults with it',
           format('DROP DOMAIN %I.id_sequence; -- If its tables need IDs, call'
                  ' instaid.create_shard() with their shard ID, and instaid_adopt.adopt_column()'
                  ' for each.', n.nspname)
    FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace
    WHERE t.typname = 'id_sequence' AND t.typbasetype = 'regclass'::regtype
      AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_proc'::regclass
                      AND d.refclassid = 'pg_type'::regclass AND d.refobjid = t.oid)
    UNION ALL
    SELECT 'no_lock', 'error', s.name, 'its owner has no id_sequence_lock: next_id() fails',
           format('CREATE VIEW %I.id_sequence_lock AS SELECT 1 AS lock; -- As the owner of the'
                  ' shard.', n.nspname)
    FROM shard AS s JOIN pg_class AS c ON c.oid = s.sequence
         JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE NOT EXISTS (SELECT FROM pg_class AS k WHERE k.relname = 'id_sequence_lock'
                      AND k.relnamespace = n.oid AND k.relowner = s.owner)
    UNION ALL
    SELECT 'lock_right', 'error', s.name,
           format('role %s has a right on its id_sequence_lock, and could stop it', r.names),
           format('REVOKE ALL ON %I.id_sequence_lock FROM %s;', n.nspname, r.names)
    FROM shard AS s JOIN pg_class AS c ON c.oid = s.sequence
         JOIN pg_namespace AS n ON n.oid = c.relnamespace
         JOIN pg_class AS k ON k.relnamespace = n.oid AND k.relname = 'id_sequence_lock'
         CROSS JOIN LATERAL instaid._others_with(
                        -- who may read it, or insert, as GRANT ... ON ALL TABLES lets a role,
                        -- gets no lock that stops the shard
                        '^(?!SELECT$|INSERT$)', k.relacl, k.relowner) AS r (names)
    WHERE r.names IS NOT NULL;

\ir ../common/findings.sql
