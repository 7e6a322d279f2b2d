-- What the types with these names are, and the types of which they are made, but for those of
-- extensions.  $1: names, $2: tell the checks of domains, which another version can write otherwise
WITH RECURSIVE used (t) AS (
    SELECT o FROM {{objects c = 'pg_type'::regclass}} AS u (name, c, o) WHERE name = ANY ($1::text[])
    UNION SELECT x.t FROM used JOIN pg_type AS y ON y.oid = used.t CROSS JOIN LATERAL (
        SELECT y.typelem UNION ALL SELECT y.typbasetype
        UNION ALL SELECT unnest(ARRAY[rngtypid, rngsubtype]) FROM pg_range
        WHERE y.oid IN (rngtypid, rngmultitypid)
        UNION ALL SELECT atttypid FROM pg_attribute WHERE attrelid = y.typrelid AND attnum > 0)
        AS x (t))
SELECT format_type(t.oid, NULL) AS name, CASE t.typtype
    WHEN 'c' THEN format('(%s)', (
        SELECT string_agg(format('%I %s', attname, format_type(atttypid, atttypmod)), ', '
            ORDER BY attnum)
        FROM pg_attribute WHERE attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped))
    WHEN 'e' THEN format('ENUM (%s)', (SELECT string_agg(quote_literal(enumlabel), ', '
        ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid))
    WHEN 'r' THEN format('RANGE (%s)', (
        SELECT format_type(rngsubtype, NULL) FROM pg_range WHERE rngtypid = t.oid))
    ELSE format_type(t.typbasetype, t.typtypmod) || CASE WHEN t.typnotnull THEN ' NOT NULL' ELSE '' END
        || COALESCE(' ' || (SELECT string_agg(CASE WHEN $2::boolean THEN pg_get_constraintdef(oid)
            ELSE 'CHECK' END, ' ' ORDER BY conname COLLATE "C")
            FROM pg_constraint WHERE contypid = t.oid AND contype = 'c'), '') END AS definition
FROM pg_type AS t WHERE t.oid IN (SELECT t FROM used) AND t.typtype IN ('c', 'e', 'r', 'd')
    AND NOT EXISTS (
        SELECT FROM pg_depend WHERE classid = t.tableoid AND objid = t.oid AND deptype = 'e')
