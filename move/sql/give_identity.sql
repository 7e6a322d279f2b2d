-- Commands.  $1: such tables
SELECT format('ALTER TABLE %s REPLICA IDENTITY FULL', c.oid::regclass) FROM unnest($1::text[]) AS x
JOIN pg_class AS c ON c.oid = to_regclass(substr(x, 3)) WHERE c.relreplident <> 'f'
