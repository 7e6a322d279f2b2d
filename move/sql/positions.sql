-- Formats a query for the commands that carry positions, a query by sequences.sql, to the other side,
-- which can be ahead: by the thaw, or by clients that took values while it was frozen.  A sequence of
-- IDs goes on by itself if it was not used.  $1: that query
SELECT format($q$SELECT COALESCE(string_agg(CASE
    WHEN up IS NULL THEN format('SELECT setval(%%L, %%s, %%L)', name, last, called)
    WHEN NOT called THEN format('SELECT setval(%%1$L, %%2$s, false)'
        ' WHERE COALESCE(pg_sequence_last_value(%%1$L) %%3$s %%2$s, true)',
        name, last, CASE WHEN up THEN '<' ELSE '>' END)
    ELSE format('SELECT setval(%%1$L, %%3$s(%%2$s, pg_sequence_last_value(%%1$L)))',
        name, last, CASE WHEN up THEN 'greatest' ELSE 'least' END) END, ';'), 'SELECT')
    FROM (%s) AS s WHERE called OR NOT is_id$q$, $1::text)
