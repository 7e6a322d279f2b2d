-- what shards can use, by names that are the same on both sides, with its owner; only superusers
-- make those that have none
(SELECT CASE WHEN c = 'pg_class'::regclass THEN 'relation' ELSE type END || ' ' || identity, c, o, owner
 FROM (SELECT * FROM {{owned}} AS w (c, o, owner) WHERE c <> 'pg_namespace'::regclass
    UNION ALL SELECT tableoid, oid, NULL FROM pg_ts_parser
    UNION ALL SELECT tableoid, oid, NULL FROM pg_ts_template
    UNION ALL SELECT tableoid, oid, NULL FROM pg_am
    UNION ALL SELECT 'pg_authid'::regclass, oid, NULL FROM pg_roles) AS x
 CROSS JOIN LATERAL pg_identify_object(c, o, 0) WHERE (type, identity) <> ('language', 'instaid'))
