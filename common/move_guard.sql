---- The guards of instaid-move ----

-- Statement triggers of the tables of a shard that moves: they refuse writes while there is a
-- schema with the name of the move, which instaid-move creates to stop all tables of all shards at
-- once.  A name is looked up in a cache that is up to date when a statement has its lock, and not
-- with the snapshot of a transaction, as a row of a table would be.
-- It runs for each statement: a SET would cost more than the rest, and no name needs search_path.
CREATE OR REPLACE FUNCTION instaid._move_guard() RETURNS trigger
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
    IF pg_catalog.to_regnamespace(TG_ARGV[0]) IS NOT NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = pg_catalog.format('shard %I is frozen', TG_TABLE_SCHEMA),
            DETAIL = 'It is being moved to another database, or was moved.',
            HINT = 'Use the shard in its new place.';
    END IF;
    RETURN NULL;
END $$;
