EXISTS (SELECT FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = r.prpubid
    WHERE r.prrelid = c.oid AND p.pubname = $2)
