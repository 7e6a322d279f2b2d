-- pg_tle makes an extension of the SQL edition, which has no language.
SELECT COALESCE((SELECT 'the extension ' || extversion FROM pg_extension
    WHERE extname = 'instaid' AND {{is_extension}}),
    (SELECT 'the SQL edition ' || substring(obj_description(oid, 'pg_namespace'), '([0-9.]+), SQL')
     FROM pg_namespace WHERE nspname = 'instaid_sql'), 'no instaid')
