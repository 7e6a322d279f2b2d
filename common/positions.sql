---- Positions of a database ----

-- Names are literals, in the encoding that a statement sets; freeze_shard() needs READ COMMITTED.
-- The script ends where a role that its user need not trust could have made the functions.
-- For superusers, too: it reads catalogs and sequences, and runs no code of their owners.
CREATE OR REPLACE FUNCTION instaid.dump_positions() RETURNS SETOF text
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET timezone = 'UTC' AS $$
DECLARE
    part record;
BEGIN
    RETURN QUERY SELECT format($head$SET default_transaction_isolation = 'read committed';
SET client_encoding = %L;
SELECT NOT EXISTS (
    SELECT FROM pg_catalog.pg_namespace AS n
         JOIN pg_catalog.pg_roles AS o ON o.oid OPERATOR(pg_catalog.=) n.nspowner
    WHERE n.nspname OPERATOR(pg_catalog.=) 'instaid' AND (o.rolsuper OR NOT r.rolsuper
          AND o.rolname OPERATOR(pg_catalog.=) ANY (ARRAY[current_user, %L]))) AS is_foreign
FROM pg_catalog.pg_roles AS r WHERE r.rolname OPERATOR(pg_catalog.=) current_user \gset
    \if :is_foreign
    \warn 'schema "instaid" is missing, or belongs to another role: run this as that role'
    \quit
    \endif$head$, pg_client_encoding(), pg_get_userbyid(n.nspowner))
    FROM pg_namespace AS n WHERE n.nspname = 'instaid';
    FOR part IN
        SELECT p.*, format('%I.%I', n.nspname, c.relname) AS name,
               pg_get_userbyid(c.relowner) AS role,
               count(p.schema_name) OVER (PARTITION BY p.sequence) AS shards,
               COALESCE(p.last, 0) AS position,
               -- any role may declare a shard with a sequence of another one, but not put it there
               pg_has_role(COALESCE(p.owner, c.relowner), c.relowner, 'USAGE')
               OR n.oid = p.schema AND n.nspowner = p.owner AS is_theirs
        FROM (SELECT s.schema_name, s.frozen, q.sequence, q.place, s.epoch,
                     i.last, i.is_read, d.proowner AS owner, d.pronamespace AS schema
              FROM instaid._list_shards() AS s JOIN pg_proc AS d ON d.oid = s.declaration
                   CROSS JOIN LATERAL instaid._shard_sequences(s.schema_name)
                                      WITH ORDINALITY AS q (sequence, place)
                   CROSS JOIN LATERAL instaid._position(q.sequence, s.shard_id, s.epoch) AS i
              UNION ALL
              SELECT NULL, false, l.sequence, 1, instaid.default_epoch(), i.last, i.is_read,
                     l.owner, NULL
              FROM instaid._lone_sequences AS l CROSS JOIN LATERAL instaid._position(
                       l.sequence, 0, instaid.default_epoch()) AS i) AS p
             JOIN pg_class AS c ON c.oid = p.sequence
             JOIN pg_namespace AS n ON n.oid = c.relnamespace
        ORDER BY p.schema_name, p.place, c.relname
    LOOP
        -- a default can pass a sequence of a shard to instaid.next_id(), too
        CONTINUE WHEN part.schema_name IS NULL AND part.shards > 0;
        IF NOT (part.is_read AND part.is_theirs) THEN
            RAISE WARNING USING
                MESSAGE = format('the position of sequence %s is left out', part.name),
                DETAIL = CASE WHEN part.is_read
                              THEN 'It belongs to another role than the shard or table it is for.'
                              ELSE 'It is hidden from the role, being altered, or damaged.' END,
                HINT = 'Correct that, and call dump_positions() again, as a superuser.';
            RETURN NEXT format('SELECT instaid.restore_position(%L, NULL);', part.name);
        END IF;
        IF part.is_theirs AND (part.position > 0 OR part.frozen) THEN
            RETURN NEXT format('SELECT instaid.restore_position(%L, %L, %L, %L, %L, %L);',
                               part.name, part.position, part.epoch, part.schema_name,
                               part.frozen, part.role);
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION instaid.dump_positions IS 'statements that let shards of another '
'state of this database go on above those of this one, and freeze the shards that are frozen here';

-- Only warnings: neither an error nor another's lock keeps psql from running the next statement.
-- For superusers, too: it alters sequences only, which runs no code of their owners.
CREATE OR REPLACE FUNCTION instaid.restore_position(
    sequence_name text, last bigint, epoch timestamptz DEFAULT NULL,
    shard text DEFAULT NULL, frozen boolean DEFAULT false, owner text DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '1s' AS $$
DECLARE
    sequence regclass;
    options record;
    role name;
    detail text;
    hint text;
BEGIN
    SELECT * INTO options FROM pg_sequence WHERE seqrelid = to_regclass(sequence_name);
    sequence := options.seqrelid;
    SELECT pg_get_userbyid(relowner) INTO role FROM pg_class WHERE oid = sequence;
    IF last IS NULL THEN
        RAISE undefined_object USING MESSAGE = 'it was left out',
            HINT = 'Dump the positions again, and see the warnings.';
    ELSIF sequence IS NULL THEN
        RAISE undefined_object USING MESSAGE = 'it does not exist',
            DETAIL = 'No sequence has this name here.',
            HINT = 'If it has another name here, repeat the call with that name.';
    ELSIF role <> owner THEN
        -- any role could have made one of that name in the state that is gone
        RAISE object_not_in_prerequisite_state USING MESSAGE = 'it belongs to another role',
            DETAIL = format('The position is of a sequence of %I, and this one belongs to %I.',
                            owner, role),
            HINT = 'If it is the same shard, repeat the call without the owner.';
    ELSE
        -- A shard that is frozen here can stand lower, and stays frozen.  Nobody sees it thawed.
        frozen := frozen OR options.seqmax < instaid.min_id('infinity')
                  AND (SELECT s.frozen FROM instaid._find_shard(shard) AS s);
        PERFORM instaid.thaw_shard(shard) WHERE frozen;
        PERFORM instaid.advance_past(sequence, last, epoch) WHERE last > 0;
        PERFORM instaid.freeze_shard(shard) WHERE frozen;
    END IF;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RAISE WARNING USING ERRCODE = SQLSTATE,
        MESSAGE = format('position of sequence %s not restored: %s', sequence_name, SQLERRM),
        DETAIL = COALESCE(NULLIF(detail, ''), 'It stays where it is.'),
        HINT = COALESCE(NULLIF(hint, ''), 'Correct the cause, and repeat the call.');
END $$;
COMMENT ON FUNCTION instaid.restore_position IS 'let a sequence go on above an ID; freeze its '
'shard; a warning if that cannot be done';
