-- Commands that end the publication of tables.  An UPDATE or DELETE that begins at that moment can
-- fail with "cache lookup failed for publication": it has read which publications its table is in,
-- and then looks for this one.  Therefore each table leaves it while nobody writes to it.
-- $1: the shards, $2: the publication
SELECT format('LOCK TABLE ONLY %1$I.%2$I IN SHARE ROW EXCLUSIVE MODE;'
    ' ALTER PUBLICATION %3$I DROP TABLE ONLY %1$I.%2$I', n.nspname, c.relname, $2::text)
FROM {{tables}} WHERE c.relkind = 'r' AND {{is_published}}
