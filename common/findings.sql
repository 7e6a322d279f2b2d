---- Findings of audit() ----

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
