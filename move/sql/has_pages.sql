-- Can a table have rows?  $1: its name
SELECT true FROM pg_class WHERE oid = to_regclass($1) AND relkind = 'r' AND pg_relation_size(oid) > 0
