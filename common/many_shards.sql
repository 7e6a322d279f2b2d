---- Many shards ----

-- The part of create_shards() between two commits, 512 shards at most; returns the last one.
CREATE OR REPLACE FUNCTION instaid._create_batch(format text, first integer, INOUT last integer,
                                      epoch timestamptz)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard record;
    created text[];
    others text;
BEGIN
    last := LEAST(last, first + 511);
    PERFORM instaid._lock_shard_id(format(format, n), n) FROM generate_series(first, last) AS n;
    -- One query finds what exists, and one EXECUTE creates a shard: after each CREATE
    -- SCHEMA, PostgreSQL plans every other expression again.
    FOR shard IN
        SELECT n AS shard_id, m.schema_name,
               n = min(n) OVER () OR s.schema_name IS NOT NULL OR x.oid IS NOT NULL
               OR octet_length(m.schema_name) > 63 AS needs_checks,
               format('CREATE SCHEMA %I; ', m.schema_name)
               || instaid._shard_commands(m.schema_name, n, _create_batch.epoch,
                                          format('%I.table_id_seq', m.schema_name)) AS commands
        FROM generate_series(first, last) AS n
             CROSS JOIN LATERAL (SELECT format(format, n)) AS m (schema_name)
             LEFT JOIN pg_namespace AS x ON x.nspname = m.schema_name
             LEFT JOIN instaid._list_shards() AS s ON s.shard_id = n
        WHERE (s.schema_name = m.schema_name AND s.epoch = _create_batch.epoch) IS NOT TRUE
        ORDER BY n
    LOOP
        IF shard.needs_checks THEN
            PERFORM instaid.create_shard(shard.schema_name, shard.shard_id, epoch);
        ELSE
            EXECUTE shard.commands;
            created := created || shard.schema_name;
        END IF;
    END LOOP;
    PERFORM instaid._restrict_schemas(created), instaid._restrict_shards(created);
    SELECT string_agg(format('%I of %s', s.schema_name, p.proowner::regrole), ', ') INTO others
    FROM instaid._list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration
    WHERE s.shard_id BETWEEN first AND last AND pg_get_userbyid(p.proowner) <> current_user;
    IF others IS NOT NULL THEN
        RAISE WARNING 'shards of other roles exist already: %', others;
    END IF;
END $$;

-- It commits after each 512 shards, because one transaction cannot hold the locks of all, and
-- skips those that exist.  Inside a transaction block the first COMMIT fails, before anything is
-- created.  A procedure with SET could not commit: operators are qualified.
CREATE OR REPLACE PROCEDURE instaid.create_shards(format text, first integer, last integer,
                                       epoch timestamptz DEFAULT instaid.default_epoch())
    LANGUAGE plpgsql AS $$
DECLARE
    last_of_batch integer;
BEGIN
    PERFORM instaid._check_no_nulls('create_shards', pg_catalog.json_build_object(
        'format', format, 'first', first, 'last', last, 'epoch', epoch));
    IF first OPERATOR(pg_catalog.<) 0 OR last OPERATOR(pg_catalog.>) instaid._max_shard_id()
       OR first OPERATOR(pg_catalog.>) last THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = pg_catalog.format('shard IDs %s to %s are out of range', first, last),
            DETAIL = pg_catalog.format('Shard IDs are between 0 and %s, and the first must not be'
                                       ' above the last.', instaid._max_shard_id());
    ELSIF format OPERATOR(pg_catalog.!~) '^([^%]|%%)*%s([^%]|%%)*$' THEN
        RAISE invalid_parameter_value USING
            MESSAGE = pg_catalog.format('format "%s" cannot name shards',
                                        pg_catalog."left"(format, 63)),
            DETAIL = 'It must have one %s, the shard ID, as in insta%s. A percent sign is %%.';
    END IF;
    FOR first_of_batch IN first .. last BY 512 LOOP
        IF last OPERATOR(pg_catalog.-) first OPERATOR(pg_catalog.>) 511 THEN
            COMMIT;
        END IF;
        last_of_batch := instaid._create_batch(format, first_of_batch, last, epoch);
        RAISE NOTICE 'shards % to % of % to % exist now', first_of_batch, last_of_batch, first,
            last;
    END LOOP;
END $$;
COMMENT ON PROCEDURE instaid.create_shards IS 'create the missing shards first to last, as '
'create_shard() does, in schemas named format() of the shard ID; commits after every 512';
