/* sql-edition/to_extension.sql */

-- Make the shards of this edition, whose schema instaid has been renamed, shards of the extension
-- (docs/sql-edition.md).

DO $$
BEGIN
    -- functions of this edition have the same names
    IF pg_catalog.to_regprocedure('instaid._convert_shard(text)') IS NULL OR NOT EXISTS (
           SELECT FROM pg_catalog.pg_language AS l
           WHERE l.lanname OPERATOR(pg_catalog.=) 'instaid') THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'sql-edition/to_extension.sql needs the extension instaid',
            DETAIL = 'It is not installed in this database.',
            HINT = 'Do first what "To the extension" in sql-edition.md says.';
    END IF;
END $$;

-- A transaction each.  A shard that cannot be moved stays as it is, and psql goes on.  Those of
-- other roles are left to them.
SELECT pg_catalog.format('SELECT instaid._convert_shard(%L)', s.schema_name)
FROM instaid._sql_edition_shards AS s
WHERE pg_catalog.pg_get_userbyid(s.owner) OPERATOR(pg_catalog.=) current_user
ORDER BY s.schema_name \gexec
SELECT DISTINCT s.owner AS "these roles have the rest"
FROM instaid._sql_edition_shards AS s ORDER BY 1;
