-- Commands that give back what the tables had.  $1: such tables
SELECT format('ALTER TABLE %s REPLICA IDENTITY %s', c.oid::regclass,
    CASE left(x, 1) WHEN 'n' THEN 'NOTHING' ELSE 'DEFAULT' END) FROM unnest($1::text[]) AS x
JOIN pg_class AS c ON c.oid = to_regclass(substr(x, 3)) WHERE c.relreplident = 'f'
