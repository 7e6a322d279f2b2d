-- The command that marks a move.  $1: its shards, $2: its name, $3: those that were frozen before,
-- $4: from, $5: to, $6: the state, $7: without a way back, $8: by --dump, $9: see full_identity.sql
SELECT format('COMMENT ON PUBLICATION %I IS %L', $2::text, jsonb_build_object('shards', $1::text[],
    'frozen', $3::text[], 'from', $4::text, 'to', $5::text, 'state', $6::text,
    'lsn', pg_current_wal_flush_lsn(), 'one_way', $7::boolean, 'dump', $8::boolean,
    'full', $9::text[],
    'time', extract(epoch FROM clock_timestamp())))
