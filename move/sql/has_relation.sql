-- $1: the name of a table or an index
SELECT to_regclass($1)
