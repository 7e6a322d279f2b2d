-- Amounts travel as texts.  $1: the shards, $2: lc_monetary of the target
SELECT 'error' AS severity, 'setting' AS code, format('column %I of %s is of type money, and lc_monetary is %s on'
    ' the source and %s on the target, which can take amounts for others', a.attname, c.oid::regclass, reset_val,
    $2::text) AS object, 'ALTER DATABASE ... SET lc_monetary, as the other side has it' AS cure
FROM pg_settings, {{tables}} JOIN pg_attribute AS a ON a.attrelid = c.oid JOIN pg_type AS t ON t.oid = a.atttypid
WHERE name = 'lc_monetary' AND reset_val <> $2::text AND c.relkind = 'r'
    AND 'money'::regtype IN (t.oid, t.typelem, t.typbasetype)
