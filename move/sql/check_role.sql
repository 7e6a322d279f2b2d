-- A role that a database sets for each session, and so for the workers of a subscription.
-- $1: which side it is
SELECT 'error' AS severity, 'role-setting' AS code, format('the database of the %s sets %s for each'
    ' session, and who applies changes there would have only the rights of that role', $1::text, s) AS object,
    'ALTER DATABASE ... RESET role' AS cure
FROM pg_db_role_setting, unnest(setconfig) AS s
WHERE setdatabase = {{database}} AND setrole = 0 AND s LIKE 'role=%' AND s <> 'role=none'
