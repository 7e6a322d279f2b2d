-- a table c without what tells its rows apart
(c.relkind = 'r' AND (c.relreplident = 'n' OR c.relreplident = 'd' AND NOT EXISTS (
        SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary AND indimmediate)
    OR c.relreplident = 'i' AND NOT EXISTS (
        SELECT FROM pg_index WHERE indrelid = c.oid AND indisreplident)))
