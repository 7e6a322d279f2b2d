-- $1: the shards
SELECT format('ANALYZE %I.%I', n.nspname, c.relname) FROM {{tables}}
WHERE c.relkind = 'r' AND c.reltuples < 0
