-- $1: the shards
SELECT array_agg(format('%I.%I', n.nspname, c.relname))::text FROM {{tables}} WHERE c.relkind = 'r'
