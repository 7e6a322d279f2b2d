-- Commands.  To make an index counts the rows, and analyzes nothing.  $1: the shards
SELECT format('ANALYZE %I.%I', n.nspname, c.relname) FROM {{tables}}
WHERE c.relkind = 'r' AND pg_stat_get_last_analyze_time(c.oid) IS NULL
    AND pg_stat_get_last_autoanalyze_time(c.oid) IS NULL
