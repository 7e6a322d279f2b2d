-- A query for what the catalogs say of the shards: rows of pg_class and pg_sequence without what a
-- TRUNCATE, a freeze or a guard changes, and of all else who wrote them last.  It reads only those
-- catalogs that have something of the shards now, since CREATE SCHEMA lets all plans be made anew
-- while writes are refused.  Of the others it tells only what has come.
-- $1: the shards, $2: the sequences of IDs
{{inside $1::text[]}}
SELECT format($q$ {{inside %1$L::text[]}}, x (c, o, v) AS (
    SELECT c, o, '' FROM inside WHERE c = ANY (%3$L::oid[])
    UNION ALL SELECT tableoid, oid, md5((to_jsonb(k) - 'relfilenode' - 'relpages' - 'reltuples'
        - 'relallvisible' - 'relallfrozen' - 'relfrozenxid' - 'relminmxid' - 'relhasindex'
        - 'relhastriggers')::text)
    FROM pg_class AS k WHERE k.oid IN (SELECT o FROM inside WHERE c = 'pg_class'::regclass)
    UNION ALL SELECT 'pg_class'::regclass, seqrelid, (to_jsonb(q)
        - CASE WHEN seqrelid = ANY (%2$L::oid[]) THEN 'seqmax' ELSE '' END)::text
    FROM pg_sequence AS q WHERE seqrelid IN (SELECT o FROM inside WHERE c = 'pg_class'::regclass)
    UNION ALL SELECT classoid, objoid, xmin::text FROM pg_description
    WHERE (classoid, objoid) IN (SELECT c, o FROM inside)
    UNION ALL SELECT inhparent, inhrelid, 'child' FROM pg_inherits
    WHERE inhparent IN (SELECT o FROM inside WHERE c = 'pg_class'::regclass)
    %4$s)
    SELECT md5(string_agg(concat_ws(' ', c, o, v), ',' ORDER BY c, o, v COLLATE "C")) FROM x $q$,
    $1::text[], $2::oid[], array_agg(DISTINCT class) FILTER (WHERE NOT is_read),
    string_agg(format('UNION ALL SELECT %s::oid, %I, xmin::text FROM %s'
        ' WHERE %2$I IN (SELECT o FROM inside WHERE c = %1$s) %4$s', class, key, catalog::regclass,
        CASE catalog WHEN 'pg_trigger'::regclass THEN 'AND tgname <> ''instaid_move_guard''' END), ' ')
        FILTER (WHERE is_read))
FROM (VALUES ('pg_trigger'::regclass, 'oid', 'pg_trigger'::regclass),
    ('pg_namespace', 'oid', 'pg_namespace'),
    ('pg_type', 'oid', 'pg_type'), ('pg_type', 'enumtypid', 'pg_enum'),
    ('pg_type', 'rngtypid', 'pg_range'),
    ('pg_proc', 'oid', 'pg_proc'), ('pg_proc', 'aggfnoid', 'pg_aggregate'),
    ('pg_class', 'attrelid', 'pg_attribute'), ('pg_class', 'indexrelid', 'pg_index'),
    ('pg_class', 'inhrelid', 'pg_inherits'),
    ('pg_attrdef', 'oid', 'pg_attrdef'), ('pg_constraint', 'oid', 'pg_constraint'),
    ('pg_rewrite', 'oid', 'pg_rewrite'), ('pg_policy', 'oid', 'pg_policy'),
    ('pg_operator', 'oid', 'pg_operator'), ('pg_opclass', 'oid', 'pg_opclass'),
    ('pg_opfamily', 'oid', 'pg_opfamily'), ('pg_opfamily', 'amopfamily', 'pg_amop'),
    ('pg_opfamily', 'amprocfamily', 'pg_amproc'), ('pg_cast', 'oid', 'pg_cast'),
    ('pg_collation', 'oid', 'pg_collation'), ('pg_conversion', 'oid', 'pg_conversion'),
    ('pg_ts_config', 'oid', 'pg_ts_config'), ('pg_ts_config', 'mapcfg', 'pg_ts_config_map'),
    ('pg_ts_dict', 'oid', 'pg_ts_dict'), ('pg_ts_parser', 'oid', 'pg_ts_parser'),
    ('pg_ts_template', 'oid', 'pg_ts_template'), ('pg_statistic_ext', 'oid', 'pg_statistic_ext'),
    ('pg_default_acl', 'oid', 'pg_default_acl')) AS k (of, key, catalog)
CROSS JOIN LATERAL (SELECT of::oid, of = 'pg_trigger'::regclass OR of IN (SELECT c FROM inside))
    AS y (class, is_read)
