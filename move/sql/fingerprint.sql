-- What the catalogs say of the shards: rows of pg_class and pg_sequence without what a TRUNCATE, a
-- freeze or a guard changes, and of all else who wrote them last.
-- $1: the shards, $2: the sequences of IDs
{{inside}}, x (c, o, v) AS (
    SELECT tableoid, oid, md5((to_jsonb(k) - 'relfilenode' - 'relpages' - 'reltuples'
        - 'relallvisible' - 'relallfrozen' - 'relfrozenxid' - 'relminmxid' - 'relhasindex'
        - 'relhastriggers')::text)
    FROM pg_class AS k WHERE k.oid IN (SELECT o FROM inside WHERE c = 'pg_class'::regclass)
    UNION ALL SELECT 'pg_class'::regclass, seqrelid, (to_jsonb(q)
        - CASE WHEN seqrelid = ANY ($2::oid[]) THEN 'seqmax' ELSE '' END)::text
    FROM pg_sequence AS q WHERE seqrelid IN (SELECT o FROM inside WHERE c = 'pg_class'::regclass)
    {{xmin pg_trigger WHERE tgname <> 'instaid_move_guard'}}
    {{xmin pg_namespace}}
    {{xmin pg_type}}
    {{xmin pg_proc}}
    {{xmin pg_attrdef}}
    {{xmin pg_constraint}}
    {{xmin pg_rewrite}}
    {{xmin pg_policy}}
    {{xmin pg_operator}}
    {{xmin pg_opclass}}
    {{xmin pg_opfamily}}
    {{xmin pg_cast}}
    {{xmin pg_collation}}
    {{xmin pg_conversion}}
    {{xmin pg_ts_config}}
    {{xmin pg_ts_dict}}
    {{xmin pg_ts_parser}}
    {{xmin pg_ts_template}}
    {{xmin pg_statistic_ext}}
    {{xmin pg_default_acl}}
    {{xmin_as pg_class|attrelid|pg_attribute}}
    {{xmin_as pg_class|indexrelid|pg_index}}
    {{xmin_as pg_class|inhrelid|pg_inherits}}
    {{xmin_as pg_type|enumtypid|pg_enum}}
    {{xmin_as pg_type|rngtypid|pg_range}}
    {{xmin_as pg_proc|aggfnoid|pg_aggregate}}
    {{xmin_as pg_opfamily|amopfamily|pg_amop}}
    {{xmin_as pg_opfamily|amprocfamily|pg_amproc}}
    {{xmin_as pg_ts_config|mapcfg|pg_ts_config_map}}
    UNION ALL SELECT classoid, objoid, xmin::text FROM pg_description)
SELECT md5(string_agg(concat_ws(' ', c, o, v), ',' ORDER BY c, o, v COLLATE "C")) FROM x
WHERE (c, o) IN (SELECT c, o FROM inside) AND c <> 'pg_publication_rel'::regclass
