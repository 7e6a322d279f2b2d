-- The marks of moves: comments on publications, JSON.  Everyone who may create publications can
-- write such a comment, so the owner counts.  $1: names and patterns of shards, or null for all
SELECT pubname AS name, m->>'from' AS "from", m->>'to' AS "to",
    m->>'state' = 'prepared' AS is_prepared, shards::text AS shards,
    (m->'shards')::text AS shown, ARRAY(SELECT jsonb_array_elements_text(m->'frozen'))::text AS frozen,
    ARRAY(SELECT jsonb_array_elements_text(m->'full'))::text AS "full",
    NOT EXISTS (SELECT FROM unnest(shards) AS s WHERE NOT {{matches s}})
    AND NOT EXISTS (SELECT FROM unnest($1::text[]) AS q WHERE NOT EXISTS (
        SELECT FROM unnest(shards) AS s WHERE {{fits s|q}})) AS is_all
FROM (SELECT p.pubname, CASE WHEN r.rolname = current_user OR r.rolsuper
          THEN obj_description(p.oid, 'pg_publication')::jsonb END
      FROM pg_publication AS p JOIN pg_roles AS r ON r.oid = p.pubowner
      WHERE p.pubname ~ '^instaid_move_[0-9]+$') AS x (pubname, m)
    CROSS JOIN LATERAL (SELECT ARRAY(SELECT jsonb_array_elements_text(m->'shards'))) AS y (shards)
WHERE m IS NOT NULL
    AND ($1 IS NULL OR EXISTS (SELECT FROM unnest(shards) AS s WHERE {{matches s}}))
ORDER BY pubname
