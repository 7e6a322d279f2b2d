-- What a move would part.  $1: the shards
SELECT 'error' AS severity, 'child-crosses' AS code, format('%s and its child %s are not both in the'
    ' moved schemas', i.inhparent::regclass, i.inhrelid::regclass) AS object,
    'detach one, or move it' AS cure
FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid JOIN pg_class AS p ON p.oid = i.inhparent
WHERE c.relkind IN ('r', 'p', 'f') AND (c.relnamespace IN {{ours}}) <> (p.relnamespace IN {{ours}})
