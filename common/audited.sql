---- What audit() looks at ----

-- A superuser may run audit() over everybody's objects.  Therefore:
--
-- - It runs nothing that a user wrote, waits for no lock, and does not fail.  What is parsed is
--   not deparsed: that can lock a table, and fails if it is nested deeply.  What is very long is
--   not read, nor what is very much of one role.  regclass and regprocedure are not used for
--   names: they look at all other objects of the name.
-- - A cure that is SQL runs nothing of another role, and names no function that another role can
--   replace.  Where PostgreSQL itself runs an owner's code with the caller's rights, such as a
--   CHECK during ALTER COLUMN TYPE, the cure is left to the owner.
-- - The planner knows neither how many shards there are nor what a CTE gives.  Joins by hash take
--   linear time whatever there is.

-- Column defaults, but those of temporary tables.  The planner omits a LEFT JOIN that is not used.
CREATE OR REPLACE VIEW instaid._defaults AS
    SELECT d.oid, d.adrelid AS relid, d.adnum AS attnum, c.relnamespace AS schema,
           c.relowner AS owner, c.relkind, c.relispartition AS is_partition,
           d.adbin AS expression, format('%I.%I', n.nspname, c.relname) AS table_name,
           quote_ident(a.attname) AS column_name,
           format('%I.%I.%I', n.nspname, c.relname, a.attname) AS name
    FROM pg_attrdef AS d JOIN pg_class AS c ON c.oid = d.adrelid
         LEFT JOIN pg_namespace AS n ON n.oid = c.relnamespace
         LEFT JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE c.relpersistence <> 't';

-- What names the role in a cure that nobody else can run; empty for the caller itself.  It cannot
-- end the comment.
CREATE OR REPLACE FUNCTION instaid._as_role(owner oid) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN CASE WHEN pg_get_userbyid(owner) = current_user THEN ''
                ELSE format('/* as role %s: */ ', translate(
                         quote_ident(pg_get_userbyid(owner)), '*/', '__')) END;

-- The functions with nextval() in their text, and whether it is read: of each owner, the shortest
-- ones up to a limit.  The work is for quotes and comments above all, some 10 us for each: two
-- seconds at most.  8,192 copies are half the limit.  octet_length() does not decompress a text.
CREATE OR REPLACE VIEW instaid._sources AS
    SELECT f.oid, f.owner, f.prosrc AS text, f.is_short
           AND sum(f.work) OVER (PARTITION BY f.owner ORDER BY f.work, f.oid) <= 200000 AS is_read
    FROM (SELECT p.oid, p.owner, p.prosrc, p.bytes <= 30000000 AS is_short,
                 CASE WHEN p.bytes <= 30000000
                      THEN length(p.prosrc) / 100
                           + length(p.prosrc) - length(translate(p.prosrc, '''-/$', ''))
                 END AS work
          FROM (SELECT p.oid, p.proowner AS owner, p.prosrc,
                       sum(octet_length(p.prosrc)) OVER (
                           PARTITION BY p.proowner ORDER BY octet_length(p.prosrc), p.oid) AS bytes
                FROM pg_proc AS p
                WHERE p.prolang = ANY (ARRAY(SELECT l.oid FROM pg_language AS l
                                             WHERE l.lanname IN ('sql', 'plpgsql')))
                  AND octet_length(p.prosrc) < 100000) AS p
          WHERE CASE WHEN p.bytes <= 30000000
                     THEN strpos(p.prosrc, 'instaid_sql._') = 0
                          AND p.prosrc ~* $re$\mnextval\M$re$
                     ELSE true END) AS f;

-- Copies of the published function: all, or those in schemas LIKE a pattern that belong to a role,
-- or to roles that it is a member of, whose texts alone are then read.
-- A copy calls nextval(), reads a clock and shifts to the left.
CREATE OR REPLACE FUNCTION instaid._copies(
    pattern text DEFAULT '%', member name DEFAULT NULL, OUT classid oid, OUT objid oid,
    OUT schema oid, OUT owner oid, OUT object text)
    RETURNS SETOF record LANGUAGE sql STABLE PARALLEL RESTRICTED ROWS 100
    SET search_path = pg_catalog, pg_temp SET enable_nestloop = off SET jit = off
BEGIN ATOMIC
    -- The text of functions.  A string becomes a quote; a comment, and all between the first and
    -- the last dollar quotes, which often makes functions, a space.  What is open ends with the
    -- text.  Dollar quotes keep backslashes whatever standard_conforming_strings is.
    WITH place AS MATERIALIZED (
        SELECT n.oid FROM pg_namespace AS n
        WHERE n.nspname LIKE pattern
          -- neither the SQL edition, of which this can be another version, nor PostgreSQL
          AND n.nspname !~ '^(pg_|information_schema$|instaid(_sql|_adopt|$))'),
    source AS MATERIALIZED (
        SELECT p.oid, regexp_replace(p.text, $re$(?x)
                   \mE(') (?:[^'\\]|\\.)* '? | (') [^']* '? | --[^\n\r]*
                   | /\*(?:[^*]|\*+[^*/])*(?:\*+/)? | \$\w*\$ .* \$\w*\$$re$,
                   $re$\1\2 $re$, 'gi') AS code
        FROM instaid._sources AS p JOIN pg_proc AS f ON f.oid = p.oid
        -- of the owner, by which the limit counts: PostgreSQL reads no text of others
        WHERE p.is_read AND (member IS NULL OR pg_has_role(member, p.owner, 'MEMBER'))
          AND f.pronamespace IN (SELECT s.oid FROM place AS s)),
    -- What is parsed, and depends on a sequence.  pg_depend has no functions and operators of
    -- pg_catalog.
    parsed AS (
        SELECT t.classid, t.objid, t.tree
        FROM (SELECT 'pg_proc'::regclass::oid, p.oid, p.pronamespace, p.proowner,
                     p.prosqlbody::text
              FROM pg_proc AS p
              UNION ALL
              SELECT 'pg_attrdef'::regclass::oid, a.oid, c.relnamespace, c.relowner, a.adbin::text
              FROM pg_attrdef AS a JOIN pg_class AS c ON c.oid = a.adrelid)
             AS t (classid, objid, schema, owner, tree)
        WHERE t.schema IN (SELECT s.oid FROM place AS s)
          AND (member IS NULL OR pg_has_role(member, t.owner, 'MEMBER'))
          AND octet_length(t.tree) < 1000000 AND (t.classid, t.objid) IN (
            SELECT d.classid, d.objid
            FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.refobjid AND c.relkind = 'S'
            WHERE d.refclassid = 'pg_class'::regclass)),
    copy (classid, objid) AS MATERIALIZED (
        -- by 16 to 24 bits, by a variable or a sum, or multiplies by such a power of 2
        SELECT 'pg_proc'::regclass::oid, s.oid FROM source AS s
        WHERE s.code ~* $re$\m(?:nextval\s*\(|execute\M)$re$
          AND s.code ~* $re$(?x)\m(?:clock_timestamp | now | timeofday | localtimestamp
                            | current_timestamp | (?:statement|transaction)_timestamp)\M$re$
          AND s.code ~* $re$(?x)(?:[a-z_)\]"]|\d{9}|\*\s*1000) \s*<<[\s(]*
                            (?:1[6-9]\M | 2[0-4]\M | \d+\s*[-+*] | [a-z_]\w*\M(?!\s*>>))
                            | \*[\s(]*(?:8388608|4194304)\M | \^ | \mpow(?:er)?\s*\($re$
        UNION ALL
        SELECT p.classid, p.objid FROM parsed AS p
        WHERE p.tree ~ (SELECT string_agg(format(':funcid %s |', f.oid), '') || 'SQLVALUEFUNCTION '
                        FROM pg_proc AS f WHERE f.pronamespace = 'pg_catalog'::regnamespace
                          AND f.proname IN ('clock_timestamp', 'now', 'statement_timestamp',
                                            'timeofday', 'transaction_timestamp'))
          AND p.tree ~ (SELECT string_agg(format(':opno %s ', o.oid), '|') FROM pg_operator AS o
                        WHERE o.oprnamespace = 'pg_catalog'::regnamespace
                          AND o.oprname IN ('<<', '%', '^')))
    SELECT c.classid, c.objid, p.pronamespace, p.proowner,
           format('%I.%I(%s)', n.nspname, p.proname, oidvectortypes(p.proargtypes))
    FROM copy AS c JOIN pg_proc AS p ON p.oid = c.objid
         JOIN pg_namespace AS n ON n.oid = p.pronamespace
    -- not of extensions
    WHERE c.classid = 'pg_proc'::regclass
      AND NOT EXISTS (SELECT FROM pg_depend AS e WHERE e.classid = c.classid AND e.objid = c.objid
                                                   AND e.deptype = 'e')
    UNION ALL
    SELECT c.classid, c.objid, d.schema, d.owner, d.name
    FROM copy AS c JOIN instaid._defaults AS d ON d.oid = c.objid
    WHERE c.classid = 'pg_attrdef'::regclass AND NOT d.is_partition;
END;

-- The shards of this database.  has_sequence: any role may declare a shard with a sequence that it
-- has no rights on.
CREATE OR REPLACE VIEW instaid._audited_shards AS
    SELECT p.pronamespace AS schema, s.schema_name, quote_ident(s.schema_name) AS name,
           s.shard_id, s.epoch, s.frozen, p.proowner AS owner, s.sequence::oid AS sequence,
           pg_has_role(p.proowner, c.relowner, 'USAGE') AS has_sequence,
           instaid._end_of_ids(s.epoch) AS expires_at
    FROM instaid._list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration
         LEFT JOIN pg_class AS c ON c.oid = s.sequence;

-- Columns whose default is a next_id(), or a function that adopt_shard() has made to call it; its
-- schema (null for instaid.next_id() with a shard ID), the sequence that it passes, and who can
-- replace it
CREATE OR REPLACE VIEW instaid._id_columns AS
    WITH maker (oid, next_id) AS (
        SELECT p.oid, p.oid FROM pg_proc AS p WHERE p.proname = 'next_id'
        UNION
        -- of a function that calls several, one
        SELECT w.oid, min(p.oid)
        FROM pg_proc AS p JOIN pg_depend AS d ON d.refclassid = 'pg_proc'::regclass
                                             AND d.refobjid = p.oid
                                             AND d.classid = 'pg_proc'::regclass
             JOIN pg_proc AS w ON w.oid = d.objid AND w.pronamespace = p.pronamespace
                              AND w.proowner = p.proowner AND w.prorettype = p.prorettype
        WHERE p.proname = 'next_id' AND w.proname !~ '^next_ids?$' GROUP BY w.oid)
    SELECT d.*, CASE WHEN n.nspname <> 'instaid' OR p.pronargs = 0 THEN n.oid END AS maker,
           q.oid AS sequence, q.relnamespace AS sequence_schema,
           ARRAY[p.proowner, n.nspowner] AS makers
    FROM maker AS m JOIN pg_proc AS p ON p.oid = m.next_id
         JOIN pg_namespace AS n ON n.oid = p.pronamespace
         JOIN pg_depend AS f ON f.refclassid = 'pg_proc'::regclass AND f.refobjid = m.oid
                            AND f.classid = 'pg_attrdef'::regclass
         JOIN instaid._defaults AS d ON d.oid = f.objid
         LEFT JOIN (pg_depend AS u JOIN pg_class AS q ON q.oid = u.refobjid AND q.relkind = 'S'
                                                     AND q.relpersistence <> 't')
              ON u.classid = f.classid AND u.objid = d.oid AND u.refclassid = 'pg_class'::regclass;

-- The roles, other than these owners and superusers, with a privilege LIKE this; null if none.
CREATE OR REPLACE FUNCTION instaid._others_with(privilege text, acl aclitem[],
                                                VARIADIC owners oid[]) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT string_agg(DISTINCT COALESCE(quote_ident(r.rolname), 'PUBLIC'), ', ')
            FROM aclexplode(acl) AS x LEFT JOIN pg_roles AS r ON r.oid = x.grantee
            WHERE x.privilege_type ~ privilege AND x.grantee <> ALL (owners)
              AND r.rolsuper IS NOT TRUE);
