---- What the text and the rows of a copy tell ----

-- What a function, or one that it calls, reads of the session, and where; null if nothing.
-- Clients can have another number there than the caller.  Comments count, too: a shard ID that is
-- passed settles it.
CREATE FUNCTION instaid_adopt._session_reads(function oid) RETURNS text
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (
    WITH RECURSIVE source AS NOT MATERIALIZED (
        SELECT p.oid, p.proowner, n.nspname, p.proconfig::text AS settings,
               COALESCE(pg_get_function_sqlbody(p.oid), p.prosrc) AS text
        FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE octet_length(p.prosrc) < 100000),
    called (oid) AS (
        SELECT function
        UNION
        SELECT f.oid
        FROM called AS c JOIN source AS p ON p.oid = c.oid
             -- the names before parentheses
             CROSS JOIN LATERAL (
                 SELECT DISTINCT lower(r[1]), lower(r[2])
                 FROM regexp_matches(p.text, '(?:"?([\w$]+)"?\s*\.\s*)?"?([\w$]+)"?\s*\(', 'g')
                      AS r) AS m (schema, name)
             JOIN pg_proc AS f ON f.proname = m.name
             JOIN pg_namespace AS n ON n.oid = f.pronamespace
        WHERE n.nspname <> 'pg_catalog'
          AND (n.nspname = m.schema
               -- no others are found
               OR m.schema IS NULL AND instaid._can_trust(p.proowner, f.proowner) AND (
                   n.nspname IN (p.nspname, 'public', current_user)
                   OR strpos(p.settings, n.nspname) > 0)))
    SELECT format('%s in %s', lower(r.names[1]), instaid._signature(p.oid))
    FROM called AS c JOIN source AS p ON p.oid = c.oid
         CROSS JOIN LATERAL regexp_match(p.text, $re$(?xi)
             \m(current_setting | pg_settings | current_user | session_user | current_role
                | current_schemas? | inet_(?:client|server)_(?:addr|port) | pg_backend_pid
                | pg_stat_activity | pg_my_temp_schema)\M
             | '\s* (show) \s
             # user is a word of its own only as a value
             | (?:[=(,|] | \m(?:select|return)\M) \s* (user) \s* (?:[,);|] | :: | $)$re$) AS m
         CROSS JOIN LATERAL (SELECT array_remove(m, NULL)) AS r (names)
    WHERE m IS NOT NULL ORDER BY c.oid = function DESC, 1 LIMIT 1);
END $$;

-- The caller's functions that name one of these in their text, or name one that does.  PL/pgSQL
-- keeps the plan, which SQL would make anew for each schema; so also below.
CREATE FUNCTION instaid_adopt._callers(functions oid[]) RETURNS SETOF oid
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE own AS MATERIALIZED (
        SELECT p.oid, p.pronamespace AS schema, p.prosrc AS text FROM pg_proc AS p
        WHERE p.proowner = (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user)
          -- the hundreds of our functions, or PostgreSQL's, are none
          AND p.pronamespace::regnamespace::text NOT IN (
              'instaid', 'instaid_adopt', 'pg_catalog', 'information_schema')
          AND octet_length(p.prosrc) < 100000),
    caller (oid) AS (
        SELECT f FROM unnest(functions) AS f
        UNION
        SELECT p.oid
        FROM caller AS c JOIN pg_proc AS f ON f.oid = c.oid
             JOIN pg_namespace AS n ON n.oid = f.pronamespace
             CROSS JOIN LATERAL (SELECT regexp_replace(n.nspname, '(\W)', '\\\1', 'g'),
                                        regexp_replace(f.proname, '(\W)', '\\\1', 'g'))
                                AS r (schema, name)
             CROSS JOIN LATERAL (
                 SELECT d.objid FROM pg_depend AS d
                 WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = f.oid
                   AND d.classid = 'pg_proc'::regclass
                 UNION ALL
                 SELECT o.oid FROM own AS o
                 -- what is cheap, first
                 WHERE (o.schema = n.oid OR n.nspname = 'public' OR strpos(o.text, n.nspname) > 0)
                   AND strpos(lower(o.text), lower(f.proname)) > 0
                   AND o.text ~* CASE
                       WHEN o.schema = n.oid OR n.nspname = 'public'
                       THEN format('(?:%s"?\s*\.\s*"?|(?<![\w.$"])"?)%s"?\s*\(', r.schema, r.name)
                       ELSE format('\m%s"?\s*\.\s*"?%s"?\s*\(', r.schema, r.name) END)
                 AS u (oid)
             JOIN pg_proc AS p ON p.oid = u.oid
        WHERE pg_get_userbyid(p.proowner) = current_user)
    SELECT c.oid FROM caller AS c WHERE c.oid <> ALL (functions);
END $$;

-- The columns that hold IDs of these functions: as their default or that of their domain says, or
-- without one, if they are unique, and a trigger or else clients can fill them; these come last.
CREATE FUNCTION instaid_adopt._columns_of(schema oid, functions oid[]) RETURNS jsonb
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    RETURN (
    WITH used AS MATERIALIZED (
        SELECT d.classid, d.objid
        FROM (SELECT f FROM unnest(functions) AS f
              UNION SELECT c FROM instaid_adopt._callers(functions) AS c) AS f (oid)
             JOIN pg_depend AS d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = f.oid),
    by_default AS (
        SELECT a.adrelid, a.adnum FROM used AS u JOIN pg_attrdef AS a ON a.oid = u.objid
        WHERE u.classid = 'pg_attrdef'::regclass
        UNION
        SELECT a.attrelid, a.attnum
        FROM used AS u JOIN pg_depend AS d ON d.refclassid = 'pg_type'::regclass
                            AND d.refobjid = u.objid AND d.classid = 'pg_class'::regclass
             JOIN pg_attribute AS a ON a.attrelid = d.objid AND a.attnum = d.objsubid
        WHERE u.classid = 'pg_type'::regclass AND NOT a.atthasdef),
    by_trigger AS (
        SELECT t.tgrelid FROM used AS u JOIN pg_trigger AS t ON t.oid = u.objid
        WHERE u.classid = 'pg_trigger'::regclass AND t.tgparentid = 0)
    SELECT COALESCE(jsonb_agg(jsonb_build_object(
               'relid', k.relid, 'relation', c.oid::regclass, 'attname', t.attname,
               'filled_by', k.filled_by,
               -- a domain has the output function of its base type
               'has_ids', c.relkind <> 'v' AND y.typoutput IN (
                   'int8out'::regproc, COALESCE(to_regproc('instaid.id_out'), 'int8out')),
               -- to read a child runs code of its owner
               'is_ours', pg_get_userbyid(c.relowner) = current_user
                          AND instaid._can_name(c.relnamespace)
                          AND NOT EXISTS (SELECT FROM instaid._descendants(c.oid) AS h
                                          WHERE h.owner <> c.relowner))
               ORDER BY k.filled_by DESC, k.relid, k.attnum), '[]')
    FROM (SELECT b.adrelid, b.adnum, 'default' FROM by_default AS b
          UNION ALL
          SELECT c.oid, a.attnum, CASE WHEN c.oid IN (SELECT t.tgrelid FROM by_trigger AS t)
                                       THEN 'trigger' ELSE 'clients' END
          FROM pg_class AS c JOIN pg_index AS x ON x.indrelid = c.oid
               JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = x.indkey[0]
          WHERE c.oid IN (SELECT t.tgrelid FROM by_trigger AS t
                          UNION SELECT d.objid FROM pg_depend AS d
                          WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = schema
                            AND d.classid = 'pg_class'::regclass)
            AND pg_get_userbyid(c.relowner) = current_user AND c.relkind IN ('r', 'p')
            AND NOT c.relispartition AND NOT c.relforcerowsecurity
            AND x.indisunique AND x.indisvalid AND x.indnkeyatts = 1 AND x.indpred IS NULL
            AND a.atttypid IN ('bigint'::regtype, COALESCE(to_regtype('instaid.id'), 'bigint'))
            AND NOT a.atthasdef AND a.attidentity = ''
            AND (c.oid, a.attnum) NOT IN (SELECT b.adrelid, b.adnum FROM by_default AS b)
            -- it has the IDs of another table
            AND NOT EXISTS (SELECT FROM pg_constraint AS f WHERE f.conrelid = c.oid
                            AND f.contype = 'f' AND a.attnum = ANY (f.conkey)))
         AS k (relid, attnum, filled_by)
         JOIN pg_class AS c ON c.oid = k.relid
         JOIN pg_attribute AS t ON t.attrelid = k.relid AND t.attnum = k.attnum
         JOIN pg_type AS y ON y.oid = t.atttypid
    WHERE c.relkind IN ('r', 'p', 'v') AND c.relpersistence <> 't');
END $$;

-- The largest ID, and the shard IDs of the newest rows, in columns that triggers fill; if there
-- are none, in those that clients fill, which can hold other numbers, too: only if the rows of a
-- column name one shard.  Without an epoch, whatever the time of the IDs is.
CREATE FUNCTION instaid_adopt._look_at_rows(
    columns jsonb, epoch timestamptz, OUT largest bigint, OUT place text, OUT shard_ids integer[],
    OUT filled_by text)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET row_security = off AS $$
DECLARE
    part record;
    last_id bigint;
    named integer[];
BEGIN
    shard_ids := '{}';
    FOR part IN
        SELECT k.* FROM jsonb_to_recordset(columns)
                        AS k (relation text, attname text, filled_by text, is_ours boolean)
        WHERE k.filled_by <> 'default' AND k.is_ours
    LOOP
        EXIT WHEN filled_by <> part.filled_by;
        EXECUTE format('SELECT max(r.id), array_agg(DISTINCT instaid.extract_shard_id(r.id))'
                       ' FROM (SELECT %1$I::bigint AS id FROM %2$s'
                       ' WHERE %1$I BETWEEN %3$s AND %4$s ORDER BY %1$I DESC LIMIT 5000) AS r',
                       part.attname, part.relation,
                       instaid.min_id(COALESCE(epoch, instaid.default_epoch()) + interval '1 day',
                                      COALESCE(epoch, instaid.default_epoch())),
                       CASE WHEN epoch IS NULL THEN 9223372036854775807
                            ELSE instaid.max_id(clock_timestamp() + interval '1 day', epoch) END)
        INTO last_id, named;
        CONTINUE WHEN last_id IS NULL OR part.filled_by = 'clients' AND cardinality(named) > 1;
        filled_by := part.filled_by;
        shard_ids := shard_ids || named;
        IF largest IS NULL OR last_id > largest THEN
            largest := last_id;
            place := format('%s.%I', part.relation, part.attname);
        END IF;
    END LOOP;
END $$;

-- The shard ID that all of these rows name; null if there are none, or several.
CREATE FUNCTION instaid_adopt._number_of_rows(shard_ids integer[]) RETURNS integer
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT min(s) FROM unnest(shard_ids) AS s HAVING min(s) = max(s));
