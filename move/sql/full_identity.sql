-- The tables that get REPLICA IDENTITY FULL for the time of the move, each behind what it had.
-- $1: the shards
SELECT COALESCE(array_agg(format('%s %I.%I', c.relreplident, n.nspname, c.relname)), '{}')::text
FROM {{tables}} WHERE {{lacks_identity}}
