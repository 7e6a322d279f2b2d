-- What a database sets for each session, and so for the workers of a subscription, that a move cannot do with.
-- $1: which side it is
SELECT 'error' AS severity, 'setting' AS code, format('the database of the %s sets %s for each session, and %s',
    $1::text, s, CASE name WHEN 'role' THEN 'who applies changes there would have only the rights of that role'
    ELSE 'a copy that fails there would not tell why' END) AS object,
    format('ALTER DATABASE ... RESET %s', name) AS cure
FROM pg_db_role_setting, unnest(setconfig) AS s, split_part(s, '=', 1) AS name
WHERE setdatabase = {{database}} AND setrole = 0
    AND (name = 'role' AND s <> 'role=none' OR name = 'exit_on_error' AND split_part(s, '=', 2)::boolean)
