-- What a side has of a move.  $1: its shards, $2: its name, $3: the other database
SELECT m->>'state' AS mark, COALESCE((m->'one_way')::boolean, false) AS one_way,
    COALESCE((m->'dump')::boolean, false) AS by_dump, m->>'lsn' AS lsn, m->>'time' AS "time",
    slot.slot_name IS NOT NULL AS has_slot,
    COALESCE(slot.wal_status = 'lost', false) AS slot_lost,
    s.oid AS subscription, s.subslotname IS NOT NULL AS attached,
    COALESCE(s.subenabled, false) AS enabled,
    (SELECT count(*) FROM pg_subscription_rel WHERE srsubid = s.oid) AS known,
    NOT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubid = s.oid AND srsubstate <> 'r')
        AND obj_description(to_regnamespace($2), 'pg_namespace') IS NULL AS ready,
    to_regnamespace($2) IS NOT NULL AS refuses,
    (SELECT r.rolname FROM pg_namespace AS n JOIN pg_roles AS r ON r.oid = n.nspowner
     WHERE n.nspname = $2 AND NOT r.rolsuper AND r.rolname <> current_user) AS other,
    (SELECT count(*) FROM pg_publication_rel AS r JOIN pg_publication AS q ON q.oid = r.prpubid
     WHERE q.pubname = $2) AS published,
    NOT EXISTS (SELECT FROM {{tables}} WHERE c.relkind = 'r' AND NOT {{is_published}})
        AS publishes_all,
    (SELECT string_agg(format('%I of %s', schema_name, nspowner::regrole), ', ')
     FROM instaid.shards JOIN pg_namespace ON nspname = schema_name
     WHERE schema_name = ANY ($1::text[]) AND NOT frozen) AS serves
FROM (SELECT $2::text || '_' || {{database}}) AS x (slot)
LEFT JOIN pg_replication_slots AS slot ON slot.slot_name = x.slot
LEFT JOIN pg_subscription AS s ON s.subname = $2 AND s.subdbid = {{database}}
LEFT JOIN (SELECT CASE WHEN r.rolname = current_user OR r.rolsuper
        THEN obj_description(p.oid, 'pg_publication')::jsonb END
    FROM pg_publication AS p JOIN pg_roles AS r ON r.oid = p.pubowner WHERE p.pubname = $2)
    AS y (m) ON m->>'to' = $3
