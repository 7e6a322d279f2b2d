-- Settings of a database or of this role by which the workers of a subscription would fail without a word, or change
-- values.  $1: which side it is
SELECT 'error' AS severity, 'setting' AS code, format('the database of the %s sets %s for each session, and %s',
    $1::text, s, CASE name WHEN 'role' THEN 'who applies changes there would have only the rights of that role'
    ELSE 'a copy that fails there would not tell why' END) AS object,
    format('ALTER DATABASE ... RESET %s', name) AS cure
FROM pg_db_role_setting, unnest(setconfig) AS s, split_part(s, '=', 1) AS name
WHERE setdatabase = {{database}} AND setrole = 0
    AND (name = 'role' AND s <> 'role=none' OR name = 'exit_on_error' AND split_part(s, '=', 2)::boolean)
UNION ALL SELECT 'error', 'setting', format('array_nulls of the %s is off, and a NULL in an array would arrive as a'
    ' text', $1::text), 'ALTER DATABASE or ALTER ROLE ... RESET array_nulls'
FROM pg_settings WHERE name = 'array_nulls' AND reset_val = 'off'
