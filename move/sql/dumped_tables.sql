-- What COPY copies.  $1: the shards
SELECT concat_ws(' ', format('%I.%I', n.nspname, c.relname), '('
    || (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
        WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = '') || ')')
FROM {{tables}} WHERE c.relkind = 'r' ORDER BY 1
