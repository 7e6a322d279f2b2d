-- Who else owns instaid, and is no superuser.
SELECT r.rolname FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner
WHERE n.nspname = 'instaid' AND NOT r.rolsuper AND r.rolname <> current_user
