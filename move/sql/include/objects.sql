-- what shards can use, by names that are the same on both sides
(SELECT CASE WHEN c = 'pg_class'::regclass THEN 'relation' ELSE type END || ' ' || identity, c, o
 FROM (SELECT tableoid, oid FROM pg_type UNION ALL SELECT tableoid, oid FROM pg_proc
    UNION ALL SELECT tableoid, oid FROM pg_operator UNION ALL SELECT tableoid, oid FROM pg_opclass
    UNION ALL SELECT tableoid, oid FROM pg_opfamily UNION ALL SELECT tableoid, oid FROM pg_collation
    UNION ALL SELECT tableoid, oid FROM pg_ts_config UNION ALL SELECT tableoid, oid FROM pg_ts_dict
    UNION ALL SELECT tableoid, oid FROM pg_ts_parser
    UNION ALL SELECT tableoid, oid FROM pg_ts_template
    UNION ALL SELECT tableoid, oid FROM pg_language WHERE lanname <> 'instaid'
    UNION ALL SELECT tableoid, oid FROM pg_am UNION ALL SELECT tableoid, oid FROM pg_foreign_server
    UNION ALL SELECT tableoid, oid FROM pg_class UNION ALL SELECT tableoid, oid FROM pg_tablespace
    UNION ALL SELECT 'pg_authid'::regclass, oid FROM pg_roles) AS x (c, o)
 CROSS JOIN LATERAL pg_identify_object(c, o, 0))
