-- what shards can use, by names that are the same on both sides, with its owner, if {{1}} holds; only
-- superusers make those that have none
(SELECT CASE WHEN c = 'pg_class'::regclass THEN 'relation' ELSE type END || ' ' || identity, c, o, owner
 FROM (SELECT * FROM (SELECT * FROM {{owned}} AS w
        UNION ALL SELECT tableoid, oid, NULL FROM pg_ts_parser
        UNION ALL SELECT tableoid, oid, NULL FROM pg_ts_template
        UNION ALL SELECT tableoid, oid, NULL FROM pg_am
        UNION ALL SELECT 'pg_authid'::regclass, oid, NULL FROM pg_roles) AS x (c, o, owner)
    WHERE c <> 'pg_namespace'::regclass AND {{1}}) AS y
 CROSS JOIN LATERAL pg_identify_object(c, o, 0) WHERE (type, identity) <> ('language', 'instaid'))
