-- $1: names of tables; those that are not here
SELECT string_agg(x, ', ') FROM unnest($1::text[]) AS x WHERE to_regclass(x) IS NULL
