---- Renumbering ----

CREATE OR REPLACE FUNCTION instaid.renumber_shard(schema_name text, shard_id integer) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    shard record;
BEGIN
    PERFORM instaid._check_no_nulls('renumber_shard', json_build_object(
        'schema_name', schema_name, 'shard_id', shard_id));
    PERFORM instaid._check_read_committed('renumber_shard');
    PERFORM instaid._check_name('schema', schema_name);
    SELECT s.*, p.proowner::regrole AS owner INTO shard
    FROM instaid._find_shard(schema_name) AS s JOIN pg_proc AS p ON p.oid = s.declaration;
    IF NOT FOUND THEN
        RAISE undefined_object USING MESSAGE = format('schema %I is not a shard', schema_name),
            HINT = 'instaid.shards lists the shards of this database.';
    END IF;
    PERFORM instaid._check_owner(shard.owner, 'shard', quote_ident(schema_name));
    IF shard.shard_id = renumber_shard.shard_id THEN
        RAISE NOTICE 'schema % is shard % already', quote_ident(schema_name), shard_id;
    ELSE
        PERFORM instaid._check_new_shard(schema_name, shard_id, shard.epoch, shard.declaration);
        PERFORM instaid._change_shard_id(shard.declaration, shard.sequence, shard_id);
    END IF;
END $$;
COMMENT ON FUNCTION instaid.renumber_shard IS 'wait for the transactions that have taken IDs of a '
'shard, and let new IDs name another one; needs to own the shard, and CREATE on its schema';
