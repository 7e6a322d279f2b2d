-- A query for the position of each sequence, which needs a session that reads no views; null if there
-- is none.  $1: the shards, $2: the sequences of IDs
SELECT string_agg(format('SELECT %1$L AS name, last_value AS last, is_called AS called,'
    ' %2$L::boolean AS is_id, %3$L::boolean AS up,'
    ' CASE WHEN log_cnt = 0 THEN %4$s ELSE 0 END AS step FROM %1$s',
    format('%I.%I', n.nspname, c.relname), c.oid = ANY ($2::oid[]),
    CASE WHEN NOT q.seqcycle THEN q.seqincrement > 0 END, q.seqincrement),
    ' UNION ALL ' ORDER BY n.nspname, c.relname)
FROM {{tables}} JOIN pg_sequence AS q ON q.seqrelid = c.oid
