-- $1: such names, $2: those of instaid, or the others
SELECT string_agg(x, ', ' ORDER BY x COLLATE "C") FROM (
    SELECT unnest($1::text[]) EXCEPT SELECT name FROM {{objects true}} AS u (name, c, o)) AS m (x)
WHERE (x ~ '^\w+ instaid(_sql)?\.') = $2::boolean
