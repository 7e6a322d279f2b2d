-- For each table, a query of the keys and hashes of its rows.  The bytes of a text depend on the
-- encoding.  $1: the shards, $2: whether both sides have one encoding
SELECT format('%I.%I', n.nspname, c.relname) AS name,
    format(CASE WHEN $2::boolean THEN 'SELECT textin(record_out(ROW(%s))) AS k,'
    ' hashtextextended(textin(record_out(ROW(%s))), 0) AS h FROM ONLY %I.%I AS t'
    ELSE 'SELECT encode(convert_to(textin(record_out(ROW(%s))), ''UTF8''), ''escape'') AS k,'
    ' hashtextextended(encode(convert_to(textin(record_out(ROW(%s))), ''UTF8''), ''hex''), 0) AS h'
    ' FROM ONLY %I.%I AS t' END,
    COALESCE((SELECT string_agg(format('t.%I', a.attname), ', ' ORDER BY a.attname COLLATE "C")
        FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = c.oid AND CASE c.relreplident WHEN 'i' THEN i.indisreplident
            WHEN 'd' THEN i.indisprimary END), columns), columns, n.nspname, c.relname) AS rows
FROM {{tables}} CROSS JOIN LATERAL (SELECT string_agg(format('t.%I', a.attname), ', '
    ORDER BY a.attname COLLATE "C") FROM pg_attribute AS a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS x (columns)
WHERE c.relkind = 'r' AND columns IS NOT NULL ORDER BY 1
