UNION ALL SELECT '{{1}}'::regclass, {{2}}, xmin::text FROM {{3}}
