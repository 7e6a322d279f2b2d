-- The marks of other roles, which marks.sql does not believe: such a comment can be anything, and is
-- no JSON here.  $1: names and patterns of shards, $2: without these, the other database
SELECT p.pubname AS name, r.rolname AS owner
FROM pg_publication AS p JOIN pg_roles AS r ON r.oid = p.pubowner
    CROSS JOIN LATERAL obj_description(p.oid, 'pg_publication') AS comment
    CROSS JOIN LATERAL unnest(COALESCE($1::text[], ARRAY[$2::text])) AS q
WHERE p.pubname ~ '^instaid_move_[0-9]+$' AND r.rolname <> current_user AND NOT r.rolsuper
    AND {{fits comment|format('%%%s%%', to_json(q))}}
ORDER BY p.pubname
