-- Is there a sequence that stands beyond a value?  $1: its name, $2: the value
SELECT true FROM pg_sequence AS q WHERE q.seqrelid = to_regclass($1) AND CASE WHEN q.seqincrement > 0
    THEN COALESCE(pg_sequence_last_value(q.seqrelid), q.seqstart) > $2::bigint
    ELSE COALESCE(pg_sequence_last_value(q.seqrelid), q.seqstart) < $2::bigint END
