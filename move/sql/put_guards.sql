-- Commands for the tables without a guard that works: with its function, its argument and its events
-- (62: BEFORE INSERT, DELETE, UPDATE or TRUNCATE, for each statement), and enabled.
-- $1: the shards, $2: the name of the move
SELECT CASE WHEN t.oid IS NOT NULL
    THEN format('DROP TRIGGER instaid_move_guard ON %I.%I; ', n.nspname, c.relname) ELSE '' END
    || format('CREATE TRIGGER instaid_move_guard BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE'
    ' ON %I.%I FOR EACH STATEMENT EXECUTE FUNCTION instaid._move_guard(%L)',
    n.nspname, c.relname, $2::text)
FROM {{tables}} LEFT JOIN pg_trigger AS t ON t.tgrelid = c.oid AND t.tgname = 'instaid_move_guard'
WHERE c.relkind IN ('r', 'p') AND NOT COALESCE({{is_guard}} AND t.tgtype = 62
    AND t.tgenabled = 'O' AND t.tgqual IS NULL, false)
ORDER BY c.oid
