-- What would fire for each row that is applied.  $1: the shards
SELECT 'error' AS severity, 'trigger-fires' AS code, format('trigger %I of %s is ENABLE %s, and would'
    ' fire for each row that is copied', t.tgname, t.tgrelid::regclass,
    CASE t.tgenabled WHEN 'A' THEN 'ALWAYS' ELSE 'REPLICA' END) AS object,
    format('ALTER TABLE %s ENABLE TRIGGER %I', t.tgrelid::regclass, t.tgname) AS cure
FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
WHERE c.relnamespace IN {{ours}} AND t.tgenabled IN ('A', 'R') AND NOT t.tgisinternal
