---- Adopting columns ----

-- The statement that drops a view, an index of a materialized view, a rule or a trigger, and those
-- that create it again, with its rights and comments, if search_path is pg_catalog.
CREATE FUNCTION instaid_adopt._recreation(class oid, object oid, OUT removal text,
                                          OUT creation text[])
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    SET extra_float_digits = 1 SET intervalstyle = 'postgres'
BEGIN ATOMIC
    WITH main (kind, name, definition, view, acl) AS (
        SELECT upper(i.type), i.identity, COALESCE(
                   pg_get_ruledef(r.oid), pg_get_triggerdef(t.oid), pg_get_indexdef(c.oid), format(
                   E'CREATE %s %s%s%s AS\n%s%s', upper(i.type), i.identity,
                   (SELECT ' USING ' || quote_ident(m.amname) FROM pg_am AS m
                    WHERE m.oid = c.relam),
                   (SELECT ' WITH (' || string_agg(format('%I = %L', o.option_name,
                                                          o.option_value), ', ') || ')'
                    FROM pg_options_to_table(c.reloptions) AS o),
                   rtrim(pg_get_viewdef(c.oid), ';'),
                   CASE WHEN NOT c.relispopulated THEN E'\n  WITH NO DATA' END)),
               CASE WHEN c.relkind <> 'i' THEN c.oid END,
               -- default privileges give rights to a new view
               CASE WHEN c.relacl IS NOT NULL OR EXISTS (SELECT FROM pg_default_acl)
                    THEN COALESCE(c.relacl, acldefault('r', c.relowner)) END
        FROM pg_identify_object(
                 -- it fails for what is no class
                 CASE WHEN class IN ('pg_class'::regclass, 'pg_rewrite'::regclass,
                                     'pg_trigger'::regclass) THEN class END, object, 0) AS i
             LEFT JOIN pg_rewrite AS r ON class = 'pg_rewrite'::regclass AND r.oid = object
             LEFT JOIN pg_trigger AS t ON class = 'pg_trigger'::regclass AND t.oid = object
             LEFT JOIN pg_class AS c ON class = 'pg_class'::regclass AND c.oid = object),
    grants (command, attnum, n) AS (
        SELECT format('REVOKE ALL ON %s FROM PUBLIC, %s', m.name,
                      string_agg(DISTINCT r.role::regrole::text, ', ')), 0, 0
        FROM main AS m JOIN pg_class AS c ON c.oid = m.view
             CROSS JOIN LATERAL (
                 SELECT c.relowner
                 UNION SELECT (aclexplode(d.defaclacl)).grantee FROM pg_default_acl AS d
                 WHERE d.defaclrole = c.relowner) AS r (role)
        WHERE m.acl IS NOT NULL AND r.role <> 0 GROUP BY m.name
        UNION ALL SELECT format('GRANT %s ON %s TO %s%s',
               string_agg(x.privilege_type || a.columns, ', ' ORDER BY x.n), m.name,
               CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END,
               CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' END), a.attnum, min(x.n)
        FROM main AS m CROSS JOIN LATERAL (
                 SELECT 0, '', m.acl WHERE m.view IS NOT NULL
                 UNION ALL SELECT a.attnum, format(' (%I)', a.attname), a.attacl
                 FROM pg_attribute AS a WHERE a.attrelid = m.view) AS a (attnum, columns, acl)
             CROSS JOIN LATERAL aclexplode(a.acl) WITH ORDINALITY
                 AS x (grantor, grantee, privilege_type, is_grantable, n)
        GROUP BY m.name, a.attnum, x.grantee, x.is_grantable),
    comments (command) AS (
        SELECT format('COMMENT ON %s IS %L', COALESCE('COLUMN ' || m.name || '.'
                      || quote_ident(a.attname), m.kind || ' ' || m.name), d.description)
        FROM main AS m JOIN pg_description AS d ON d.classoid = class AND d.objoid = object
             LEFT JOIN pg_attribute AS a ON a.attrelid = m.view AND a.attnum = d.objsubid
                                        AND a.attnum > 0 ORDER BY d.objsubid)
    SELECT 'DROP ' || m.kind || ' ' || m.name, rtrim(m.definition, ';')
           || ARRAY(SELECT g.command FROM grants AS g ORDER BY g.attnum, g.n)
           || ARRAY(SELECT c.command FROM comments AS c)
    FROM main AS m;
END;

-- The statements that widen an integer column and those that refer to it, and those before and
-- after that drop and create views, rules and triggers; those that lock the views; the other
-- tables that are altered, the sizes of all, and what prevents it; the columns that are widened,
-- as "relation attnum"; why Citus does not change it.
CREATE FUNCTION instaid_adopt._widening_plan(
    table_name regclass, attnum smallint, OUT statements text[],
    OUT removals text[], OUT creations text[], OUT locks text[], OUT other_tables text,
    OUT sizes text, OUT obstacles text, OUT widened text[], OUT of_citus text)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    SET jit = off AS $$
DECLARE
    owner CONSTANT oid := quote_ident(current_user)::regrole;
    kept_by_citus jsonb;  -- columns that it does not change, as "relation attnum"
    tables_of_citus oid[];  -- their rows are elsewhere, mostly on other servers
    classes oid[];  -- of the objects that are dropped and created, in the order of creation
    objects oid[];
BEGIN
    IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
        EXECUTE 'SELECT jsonb_object_agg(format(''%s %s'', a.attrelid::oid, a.attnum),'
                ' CASE WHEN a.attidentity <> '''' THEN ''an identity column of a Citus table'''
                ' ELSE ''the distribution column of a Citus table'' END)'
                ' FILTER (WHERE a.attidentity <> '''''
                ' OR position(format('':varattno %s '', a.attnum) IN p.partkey) > 0),'
                ' array_agg(DISTINCT a.attrelid) FROM pg_catalog.pg_dist_partition AS p'
                ' JOIN pg_attribute AS a ON a.attrelid = p.logicalrelid AND a.attnum > 0'
        INTO kept_by_citus, tables_of_citus;
    END IF;
    of_citus := kept_by_citus ->> format('%s %s', table_name::oid, attnum);
    WITH RECURSIVE family (relid, attnum) AS (
        SELECT table_name::oid, _widening_plan.attnum
        UNION SELECT r.relid, r.attnum FROM family AS f CROSS JOIN LATERAL (
            SELECT k.conrelid, k.conkey[array_position(k.confkey, f.attnum)]
            FROM pg_constraint AS k
            WHERE k.contype = 'f' AND k.confrelid = f.relid AND f.attnum = ANY (k.confkey)
            UNION ALL SELECT other.attrelid, other.attnum
            FROM pg_attribute AS this JOIN pg_attribute AS other ON other.attname = this.attname
                 JOIN pg_inherits AS i
                      ON (i.inhrelid, i.inhparent) IN ((this.attrelid, other.attrelid),
                                                       (other.attrelid, this.attrelid))
            WHERE this.attrelid = f.relid AND this.attnum = f.attnum) AS r (relid, attnum)),
    narrow AS (
        SELECT a.attrelid, a.attnum, a.attname, a.attinhcount, c.relkind, c.relowner, c.reltype,
               c.reloftype, t.typtype, format('%s.%I', c.oid::regclass, a.attname) AS name
        FROM family AS f JOIN pg_attribute AS a ON a.attrelid = f.relid AND a.attnum = f.attnum
             JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_type AS t ON t.oid = a.atttypid
        -- a domain has the output function of its base type
        WHERE t.typoutput IN ('int2out'::regproc, 'int4out'::regproc)),
    altered AS (
        -- a column of a partition is altered through its parent's
        SELECT n.attrelid, string_agg(format('ALTER %I TYPE bigint', n.attname), ', '
                                      ORDER BY n.attnum) AS actions
        FROM narrow AS n WHERE n.attinhcount = 0 GROUP BY n.attrelid),
    -- what ALTER COLUMN TYPE would fail at, perhaps after hours, and what depends on views in it
    dependant (name, class, object, attnum, level) AS (
        SELECT n.name, 'pg_class'::regclass::oid, n.attrelid, n.attnum::integer, 0 FROM narrow AS n
        UNION SELECT CASE t.level WHEN 0 THEN t.name ELSE c.oid::regclass::text END,
               CASE WHEN r.oid IS NULL THEN d.classid ELSE t.class END,
               COALESCE(r.ev_class, d.objid), 0, t.level + 1
        FROM dependant AS t
             JOIN pg_class AS c ON t.class = 'pg_class'::regclass AND c.oid = t.object
                  AND (t.level = 0 OR c.relkind IN ('v', 'm') AND c.relowner = owner)
             JOIN pg_type AS y ON y.oid = c.reltype
             CROSS JOIN LATERAL (VALUES (t.class, c.oid), ('pg_type'::regclass, y.oid),
                                        ('pg_type'::regclass, y.typarray)) AS o (class, object)
             JOIN pg_depend AS d ON d.refclassid = o.class AND d.refobjid = o.object
             LEFT JOIN pg_attrdef AS e ON d.classid = 'pg_attrdef'::regclass AND e.oid = d.objid
             LEFT JOIN pg_trigger AS g ON d.classid = 'pg_trigger'::regclass AND g.oid = d.objid
             -- a view is one by such a rule, and depends on itself
             LEFT JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
                                      AND r.ev_type = '1'
        WHERE CASE WHEN t.level > 0 THEN d.deptype <> 'i' AND r.ev_class IS DISTINCT FROM c.oid
                   ELSE (d.refclassid, d.refobjsubid) = (t.class, t.attnum)
                        AND (d.classid IN ('pg_rewrite'::regclass, 'pg_proc'::regclass,
                                           'pg_trigger'::regclass, 'pg_policy'::regclass,
                                           'pg_publication_rel'::regclass)
                             OR (e.adrelid, e.adnum) <> (c.oid, t.attnum)) END
          -- a partition has its trigger from its parent; views can name each other
          AND COALESCE(g.tgparentid, 0) = 0 AND t.level < 100),
    -- what can be created again has no fault
    recreated AS (
        SELECT t.name, t.class, t.object, t.level, k.oid::regclass AS relation, CASE
            WHEN k.oid IS NULL THEN ''
            WHEN k.relowner <> owner THEN format(' of %I', pg_get_userbyid(k.relowner))
            -- its owner could put another object in its place
            WHEN NOT instaid._can_name(k.relnamespace)
                THEN ' in a schema of another role'
            -- pg_get_viewdef() locks them
            WHEN EXISTS (SELECT FROM pg_rewrite AS w
                              JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass
                                                 AND d.objid = w.oid
                                                 AND d.refclassid = 'pg_class'::regclass
                              JOIN pg_class AS u ON u.oid = d.refobjid AND u.relowner <> owner
                              JOIN pg_roles AS o ON o.oid = u.relowner AND NOT o.rolsuper
                         WHERE w.ev_class = k.oid) THEN ', which names tables of other owners'
            -- Who has, or had, TRIGGER on the table wrote the condition.  To parse a literal in it
            -- can call functions of the owner of its type.
            WHEN EXISTS (SELECT FROM pg_depend AS d
                              JOIN pg_type AS y ON d.refclassid = 'pg_type'::regclass
                                               AND y.oid = d.refobjid
                         WHERE d.classid = t.class AND d.objid = g.oid
                           AND NOT instaid._can_trust(owner, y.typowner))
                THEN ', whose condition has a type of another owner'
            WHEN k.relpersistence = 't' OR r.ev_enabled <> 'O' OR i.indisclustered
                 OR c.reltablespace <> 0
                 OR EXISTS (SELECT FROM pg_trigger AS p
                            WHERE g.oid IN (p.oid, p.tgparentid) AND p.tgenabled <> 'O')
                 OR EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = t.class
                            AND d.objid = t.object AND d.deptype IN ('e', 'x'))
                 OR EXISTS (SELECT FROM pg_seclabel AS l
                            WHERE l.classoid = t.class AND l.objoid = t.object)
                 OR EXISTS (SELECT FROM pg_class AS o
                            WHERE o.oid = c.reltoastrelid AND o.reloptions IS NOT NULL)
                 OR EXISTS (SELECT FROM aclexplode(c.relacl) AS x WHERE x.grantor <> owner)
                 OR EXISTS (SELECT FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid
                                 LEFT JOIN LATERAL aclexplode(a.attacl) AS x ON true
                            WHERE a.attrelid = c.oid AND a.attnum > 0
                              AND (x.grantor <> owner OR a.attoptions::text ~ 'n_distinct'
                                   OR COALESCE(a.attstattarget, -1) <> -1
                                   OR a.attcompression <> '' OR a.attstorage <> y.typstorage))
                THEN ', which cannot be created again as it is' END AS fault
        FROM dependant AS t
             LEFT JOIN pg_class AS c ON t.class = 'pg_class'::regclass AND c.oid = t.object
                                    AND c.relkind IN ('v', 'm', 'i')
             LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
             LEFT JOIN pg_rewrite AS r ON t.class = 'pg_rewrite'::regclass AND r.oid = t.object
             LEFT JOIN pg_trigger AS g ON t.class = 'pg_trigger'::regclass AND g.oid = t.object
             LEFT JOIN pg_class AS k ON k.oid = COALESCE(i.indrelid, c.oid, r.ev_class, g.tgrelid)
        WHERE t.level > 0),
    obstacle (name, description) AS (
        SELECT r.name, pg_describe_object(r.class, r.object, 0) || r.fault FROM recreated AS r
        UNION SELECT n.name, 'the partition key'
        FROM narrow AS n JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass
                                            AND d.objid = n.attrelid AND d.objsubid = n.attnum
        WHERE d.refclassid = d.classid AND d.refobjid = n.attrelid AND d.deptype = 'i'
        UNION
        SELECT n.name, format('column %s.%I of its row type', u.attrelid::regclass, u.attname)
        FROM narrow AS n JOIN pg_attribute AS u ON u.atttypid = n.reltype
        UNION SELECT n.name, CASE
            WHEN n.typtype = 'd' THEN 'its domain'
            WHEN n.reloftype <> 0 THEN 'the type of its table'
            ELSE kept_by_citus ->> format('%s %s', n.attrelid, n.attnum) END FROM narrow AS n
        UNION
        -- PostgreSQL checks a foreign key again, in both tables.  The owner of a schema could put
        -- another table in the place of a superuser's.
        SELECT n.name, format('table %s of %I%s', c.oid::regclass, pg_get_userbyid(c.relowner),
                              CASE WHEN c.relowner = owner THEN ' in a schema of another role' END)
        FROM narrow AS n
             LEFT JOIN pg_constraint AS k ON k.contype = 'f'
                       AND (k.confrelid = n.attrelid AND n.attnum = ANY (k.confkey)
                            OR k.conrelid = n.attrelid AND n.attnum = ANY (k.conkey))
             JOIN pg_class AS c ON c.oid IN (n.attrelid, k.conrelid, k.confrelid)
        WHERE c.relowner <> owner
           OR NOT instaid._can_name(c.relnamespace))
    SELECT array_agg(format('ALTER TABLE %s %s', t.attrelid::regclass, t.actions)
                     ORDER BY t.attrelid),
           -- in the order of an INSERT: its table, and then the older ones that it refers to
           string_agg(t.attrelid::regclass::text, ', ' ORDER BY t.attrelid DESC)
               FILTER (WHERE t.attrelid <> _widening_plan.table_name),
           -- of the owner's tables only: pg_total_relation_size() waits for locks
           (SELECT string_agg(n.name || CASE WHEN n.attrelid = ANY (tables_of_citus) THEN ''
                       ELSE format(' (%s)',
                                   pg_size_pretty(pg_total_relation_size(n.attrelid))) END,
                              ', ' ORDER BY n.name)
            FROM narrow AS n WHERE n.relkind = 'r' AND CASE WHEN n.relowner = owner THEN true END),
           (SELECT string_agg(o.name || ': ' || o.description, '; ' ORDER BY o.name, o.description)
            FROM obstacle AS o),
           (SELECT array_agg(format('%s %s', n.attrelid, n.attnum)) FROM narrow AS n),
           -- readers lock a view before what it names
           (SELECT array_agg(format('ALTER TABLE %s OWNER TO %I', r.relation, current_user)
                             ORDER BY r.level DESC, r.relation)
            FROM (SELECT r.relation, max(r.level) FROM recreated AS r
                  WHERE r.relation NOT IN (SELECT n.attrelid FROM narrow AS n)
                  GROUP BY r.relation) AS r (relation, level)),
           r.classes, r.objects
    INTO statements, other_tables, sizes, obstacles, widened, locks, classes, objects
    FROM altered AS t, (SELECT array_agg(r.class ORDER BY r.level, r.object) AS classes,
                               array_agg(r.object ORDER BY r.level, r.object) AS objects
                        FROM (SELECT r.class, r.object, max(r.level) FROM recreated AS r
                              GROUP BY r.class, r.object) AS r (class, object, level)) AS r
    GROUP BY r.classes, r.objects;
    IF obstacles IS NULL THEN
        SELECT array_agg(r.removal ORDER BY o.n DESC) FILTER (WHERE c.n = 1),
               array_agg(c.command ORDER BY o.n, c.n)
        INTO removals, creations
        FROM unnest(classes, objects) WITH ORDINALITY AS o (class, object, n)
             CROSS JOIN LATERAL instaid_adopt._recreation(o.class, o.object) AS r
             CROSS JOIN LATERAL unnest(r.creation) WITH ORDINALITY AS c (command, n);
    END IF;
END $$;

-- The GRANT statements for roles that can insert into a table, a partition of it or a view, and
-- cannot use the next_id() of the shard.
CREATE FUNCTION instaid_adopt._missing_grants(table_name regclass, schema_name text,
                                              sequence regclass) RETURNS SETOF text
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE entrance (relid) AS (
        SELECT d.relid FROM instaid._descendants(table_name) AS d
        UNION SELECT r.ev_class
        FROM entrance AS e JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass
                                              AND d.refobjid = e.relid
                                              AND d.classid = 'pg_rewrite'::regclass
             JOIN pg_rewrite AS r ON r.oid = d.objid
             -- Rows pass a view with the rights of its owner.  Any role can create one, but must
             -- not let others take IDs.
             JOIN pg_class AS v ON v.oid = r.ev_class
                  AND has_any_column_privilege(v.relowner, e.relid, 'INSERT WITH GRANT OPTION')),
    inserter AS (
        SELECT DISTINCT x.grantee AS role, CASE x.grantee WHEN 0 THEN 'PUBLIC'
                                           ELSE x.grantee::regrole::text END AS name
        FROM entrance AS e JOIN pg_class AS c ON c.oid = e.relid
             JOIN pg_attribute AS a ON a.attrelid = c.oid
             CROSS JOIN LATERAL aclexplode(COALESCE(c.relacl, acldefault('r', c.relowner))
                                           || a.attacl) AS x WHERE x.privilege_type = 'INSERT')
    SELECT format('GRANT %s TO %s', r, i.name)
    FROM inserter AS i CROSS JOIN LATERAL instaid._missing_rights(
             i.role, schema_name, sequence) AS r ORDER BY i.name, r
$$;

CREATE FUNCTION instaid_adopt.adopt_column(table_name regclass, column_name text,
                                           dry_run boolean DEFAULT false) RETURNS SETOF text
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' SET row_security = off
    SET standard_conforming_strings = on SET quote_all_identifiers = off
    SET default_tablespace = '' AS $$
DECLARE
    main record;
    shard record;
    descendants oid[];
    others text;
    is_ours boolean;
    other record;
    widening record;
    alter_column text;
    serial regclass;
    statements text[];
    statement text;
    highest bigint;
    next_id bigint;
    grants text[];
    unreferenced text;
BEGIN
    PERFORM instaid_adopt._check_version();
    PERFORM instaid._check_no_nulls('adopt_column', json_build_object(
        'table_name', table_name, 'column_name', column_name, 'dry_run', dry_run));
    PERFORM instaid._check_read_committed('adopt_column') WHERE NOT dry_run;
    PERFORM instaid._check_name('column', column_name);
    -- before pg_get_expr(), which waits for a lock on the table
    PERFORM instaid._check_table_owner(table_name);
    SELECT format('%s.%I', table_name, column_name) AS name, c.relkind,
           c.relowner::regrole AS owner, n.nspname, a.attnum, a.atttypid, a.attidentity,
           a.attgenerated, pg_get_expr(d.adbin, d.adrelid) AS default_text,
           format('%I.next_id()', n.nspname) AS new_default,
           (SELECT i.inhparent::regclass FROM pg_inherits AS i
            WHERE a.attinhcount > 0 AND i.inhrelid = c.oid LIMIT 1) AS parent INTO main
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
         LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = column_name
                                    AND a.attnum > 0 AND NOT a.attisdropped
         LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.oid = table_name;
    IF main.attnum IS NULL THEN
        RAISE undefined_column USING
            MESSAGE = format('column %I of table %s does not exist', column_name, table_name);
    ELSIF main.relkind NOT IN ('r', 'p') OR main.attgenerated <> '' OR main.parent IS NOT NULL THEN
        RAISE wrong_object_type USING
            MESSAGE = format('column %s cannot have a default of its own', main.name),
            DETAIL = CASE WHEN main.parent IS NOT NULL
                          THEN format('It is inherited: adopt the column of %s.', main.parent)
                          WHEN main.attgenerated <> '' THEN 'It is a generated column.'
                          ELSE 'It is not a column of a table.' END;
    END IF;
    SELECT s.* INTO shard FROM instaid._find_shard(main.nspname) AS s;
    IF NOT FOUND THEN
        RAISE undefined_object USING MESSAGE = format('schema %I is not a shard', main.nspname),
            HINT = 'create_shard() and adopt_shard() make a schema a shard.';
    ELSIF main.atttypid NOT IN ('bigint'::regtype, COALESCE(to_regtype('instaid.id'), 'bigint'),
                                'integer'::regtype, 'smallint'::regtype) THEN
        RAISE datatype_mismatch USING
            MESSAGE = format('column %s is of type %s', main.name, main.atttypid::regtype),
            DETAIL = 'It must be bigint or instaid.id, or integer or smallint, which are widened.';
    END IF;
    -- A default runs with the rights of all who insert, and its name could find each of these.
    SELECT string_agg(format('%s of %I', u.name, pg_get_userbyid(u.owner)), ', ' ORDER BY u.name)
               FILTER (WHERE NOT instaid._can_trust(main.owner, u.owner)), bool_and(u.is_ours)
    INTO others, is_ours
    FROM (SELECT format('schema %I', n.nspname), n.nspowner, NULL::boolean
          FROM pg_namespace AS n WHERE n.nspname = main.nspname
          UNION ALL
          SELECT format('%I.%I(%s)', main.nspname, p.proname, oidvectortypes(p.proargtypes)),
                 -- the next_id() of the SQL edition's adopt_shard() has a parsed body
                 p.proowner, p.oid = d.oid OR p.prolang = d.prolang OR p.prosqlbody IS NOT NULL
          FROM pg_proc AS d JOIN pg_proc AS p ON p.pronamespace = d.pronamespace
               AND (p.oid = d.oid OR p.proname = 'next_id' AND p.pronargs = p.pronargdefaults)
          WHERE d.oid = shard.declaration) AS u (name, owner, is_ours);
    IF others IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('other roles could replace %s', main.new_default),
            DETAIL = format('Table %s belongs to %s. These do not: %s.', table_name, main.owner,
                            others),
            HINT = format('Let the column use a shard of %s, or of a superuser. If you trust the'
                          ' other roles, set its default yourself.', main.owner);
    ELSIF NOT is_ours THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s is no function of shard %s', main.new_default, shard.shard_id),
            DETAIL = 'Its language is another one.',
            HINT = 'Let its owner create it again, as instaid.create_shard() does.';
    END IF;
    SELECT array_agg(d.relid),
           string_agg(format('%s belongs to %s', d.relid::regclass, d.owner), ', ')
               FILTER (WHERE d.owner <> main.owner)
    INTO descendants, others FROM instaid._descendants(table_name) AS d;
    IF others IS NOT NULL THEN
        RAISE feature_not_supported USING
            MESSAGE = format('column %s is inherited by tables of other owners', main.name),
            DETAIL = format('%s. Table %s belongs to %s.', others, table_name, main.owner),
            HINT = 'Give all of them to one owner, or detach those of other owners.';
    END IF;
    SELECT d.adrelid::regclass AS name, pg_get_expr(d.adbin, d.adrelid) AS default_text INTO other
    FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE d.adrelid = ANY (descendants) AND a.attname = column_name
      -- pg_get_expr() waits for a lock on the table: it must not read those of others
      AND CASE WHEN d.adrelid = ANY (descendants)
               THEN pg_get_expr(d.adbin, d.adrelid) IS DISTINCT FROM main.default_text END;
    IF FOUND THEN
        RAISE object_in_use USING
            MESSAGE = format('column %s.%I has a default of its own', other.name, column_name),
            DETAIL = format('Its default is %s. The default of %s would replace it.',
                            other.default_text, main.name), HINT = 'Drop that default first.';
    END IF;
    widening := instaid_adopt._widening_plan(table_name, main.attnum);
    IF widening.of_citus IS NOT NULL AND main.default_text IS DISTINCT FROM main.new_default THEN
        RAISE feature_not_supported USING
            MESSAGE = format('Citus cannot change the default of column %s', main.name),
            DETAIL = format('It is %s.', widening.of_citus),
            HINT = CASE WHEN main.attidentity <> ''
                        THEN 'Create another table, distribute it, and copy the rows.'
                        ELSE 'Call undistribute_table() before, and distribute it afterwards.' END;
    ELSIF widening.obstacles IS NOT NULL THEN
        RAISE feature_not_supported USING
            MESSAGE = format('integer columns that would hold IDs of %s cannot be widened',
                             main.name), DETAIL = widening.obstacles || '.',
            HINT = 'Drop what prevents it, and create that again afterwards.';
    END IF;

    statements := widening.locks || format('LOCK TABLE %s%s IN ACCESS EXCLUSIVE MODE',
                                           widening.other_tables || ', ', table_name);
    IF NOT dry_run THEN
        FOREACH statement IN ARRAY statements LOOP
            EXECUTE statement;
        END LOOP;
        -- the locks can have waited for a change, even one that is in the way
        PERFORM instaid._check_table_owner(table_name);
        IF (SELECT (p.statements, p.removals, p.creations, p.obstacles) IS DISTINCT FROM
                   (widening.statements, widening.removals, widening.creations, NULL)
            FROM instaid_adopt._widening_plan(table_name, main.attnum) AS p) THEN
            RAISE serialization_failure USING
                MESSAGE = format('what depends on %s has changed meanwhile', main.name),
                HINT = 'Repeat the call.';
        END IF;
    END IF;
    PERFORM instaid_adopt._check_sees_rows(table_name);
    EXECUTE format('SELECT max(%I)::bigint FROM %s', column_name, table_name) INTO highest;
    next_id := GREATEST(instaid._last_id(shard.sequence, shard.shard_id, shard.epoch),
                        instaid.min_id(clock_timestamp(), shard.epoch));
    IF highest > next_id THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('column %s has values above the next ID of shard %s',
                             main.name, shard.shard_id),
            DETAIL = format('The highest is %s. If it is an ID, its time is %s. New IDs begin'
                            ' above %s.', highest, instaid.extract_timestamp(highest, shard.epoch),
                            next_id),
            HINT = CASE WHEN highest <= instaid.max_id(clock_timestamp() + interval '1 day',
                                                       shard.epoch)
                        THEN format('To begin above it: SELECT instaid.advance_past(%L, %s, %L);',
                                    shard.sequence, highest, shard.epoch)
                        ELSE concat('Give those rows other values.', (
                            SELECT format(
                                ' Or adopt the column in a schema whose shard has an earlier'
                                ' epoch: SELECT instaid.create_shard(%L, %s, %L); ALTER TABLE %s'
                                ' SET SCHEMA %1$I;', main.nspname || '_' || extract(year FROM e),
                                instaid._free_shard_id(true), e, table_name)
                            FROM instaid_adopt._epoch_above(highest) AS e
                            WHERE instaid.extract_timestamp(-9223372036854775808, e)
                                  > clock_timestamp() + interval '1 year')) END;
    END IF;

    -- First the default, which need not fit the new type, and then the sequence of a serial
    -- column, unless something else uses it: Citus widens no column that one depends on.
    alter_column := format('ALTER TABLE %s ALTER %I', table_name, column_name);
    serial := pg_get_serial_sequence(table_name::text, column_name);
    statements := array_remove(statements || widening.removals || ARRAY[
        CASE WHEN main.attidentity <> '' THEN alter_column || ' DROP IDENTITY'
             WHEN main.default_text <> main.new_default THEN alter_column || ' DROP DEFAULT' END,
        CASE WHEN main.default_text = format('nextval(''%s''::regclass)',
                                             replace(serial::text, '''', ''''''))
             THEN format(CASE WHEN EXISTS (
                     SELECT FROM pg_depend AS d
                          LEFT JOIN (pg_attrdef AS a JOIN pg_attribute AS t
                                     ON t.attrelid = a.adrelid AND t.attnum = a.adnum)
                          ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid
                             AND a.adrelid = ANY (descendants) AND t.attname = column_name
                     WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = serial
                       AND d.deptype = 'n' AND a.oid IS NULL)
                 THEN 'ALTER SEQUENCE %s OWNED BY NONE' ELSE 'DROP SEQUENCE %s' END, serial) END]
        || widening.statements
        || CASE WHEN main.default_text IS DISTINCT FROM main.new_default
                THEN alter_column || ' SET DEFAULT ' || main.new_default END
        || widening.creations, NULL);
    SELECT string_agg(format('%s.%I', a.attrelid::regclass, a.attname), ', '
                      ORDER BY a.attrelid::regclass::text, a.attnum) INTO unreferenced
    FROM pg_class AS t JOIN pg_class AS c ON c.relnamespace = t.relnamespace
                            AND c.relowner = t.relowner AND c.relkind IN ('r', 'p')
         JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND a.attinhcount = 0
         JOIN pg_type AS y ON y.oid = a.atttypid
    WHERE t.oid = table_name AND (c.oid, a.attnum) <> (t.oid, main.attnum)
      -- a foreign key can be that of a partition
      AND (format('%s %s', c.oid, a.attnum) = ANY (widening.widened)) IS NOT TRUE
      -- a domain has the output function of its base type
      AND (y.typoutput IN ('int2out'::regproc, 'int4out'::regproc)
           OR a.atttypid = ANY ('{integer[],smallint[]}'::regtype[]))
      AND EXISTS (
          SELECT FROM unnest('{$,s$,es$,ies$}'::text[], '{"","","",y}'::text[]) AS e (plural, one)
               CROSS JOIN LATERAL concat('_', regexp_replace(t.relname, e.plural, e.one), '_id')
                   AS n (name)
          WHERE right('_' || rtrim(a.attname, 's'), length(n.name)) = n.name)
      AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.contype = 'f' AND k.conrelid = c.oid
                                                       AND a.attnum = ANY (k.conkey));
    IF unreferenced IS NOT NULL THEN
        RAISE NOTICE 'integer columns are named like references to %, and stay as they are',
            table_name USING DETAIL = format('They are %s.', unreferenced),
            HINT = 'Widen those that will hold its IDs, or give them foreign keys first.';
    END IF;
    grants := ARRAY(SELECT g FROM instaid_adopt._missing_grants(
                        table_name, shard.schema_name, shard.sequence) AS g);
    IF grants <> '{}' AND EXISTS (SELECT FROM pg_proc AS p WHERE p.oid = shard.declaration
                                                             AND p.proowner <> main.owner) THEN
        RAISE WARNING 'roles that can insert into % cannot take IDs of shard %', table_name,
            shard.shard_id USING HINT = array_to_string(grants, '; ') || ';';
        grants := '{}';
    END IF;
    statements := statements || grants;
    IF cardinality(statements) = 1 THEN
        RAISE NOTICE 'column % has the IDs of shard % already', main.name, shard.shard_id;
        RETURN;
    END IF;

    IF widening.sizes IS NOT NULL THEN
        RAISE NOTICE 'integer columns become bigint, which rewrites their tables'
            USING DETAIL = format('They are %s.', widening.sizes),
            HINT = 'Afterwards, let all clients reconnect: what their sessions have prepared, also'
                   ' in triggers and functions, can fail.';
    END IF;
    FOREACH statement IN ARRAY statements LOOP
        RETURN NEXT statement;
        IF NOT dry_run THEN
            EXECUTE statement;
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION instaid_adopt.adopt_column IS 'make the next_id() of a shard the default of a '
'serial, identity, integer or bigint column, which it widens with those that refer to it, and '
'create views of them again; return the statements, which dry_run does not run; only for the '
'owner';
