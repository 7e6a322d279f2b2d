-- A publication with the name of a move, whose owner marks.sql does not believe.  $1: the name
SELECT true FROM pg_publication AS p JOIN pg_roles AS r ON r.oid = p.pubowner
WHERE p.pubname = $1 AND r.rolname <> current_user AND NOT r.rolsuper
