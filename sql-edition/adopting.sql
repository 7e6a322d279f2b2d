/* sql-edition/adopting.sql */

-- Adopting what exists, and renumbering.

---- What adopting and renumbering replace ----

-- Replace a next_id() that is adopted; its sequence goes on above this ID, and above the IDs of
-- all calls that have ended.  Those can be a millisecond ahead of the clock, if they round up.
-- ALTER SEQUENCE waits for all who have used the sequence, and keeps others out.
-- The replaced function keeps its OID, its owner, its rights, and the name of its result.
CREATE OR REPLACE FUNCTION instaid._replace_next_id(
    schema_name text, shard_id integer, epoch timestamptz, adopted oid, sequence regclass,
    above bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    epoch_ms CONSTANT bigint := extract(epoch FROM epoch) * 1000;
    users text;
    is_usage boolean;
BEGIN
    PERFORM instaid._prepare_sequence(sequence, shard_id, epoch_ms, false);
    PERFORM setval(sequence, make_id, true)
    FROM instaid.make_id(GREATEST(instaid.extract_timestamp(above, epoch),
                                  clock_timestamp() + interval '1 ms'), shard_id,
                         instaid_sql._max_sequence(), epoch);
    PERFORM instaid_sql._declare(schema_name, shard_id, epoch_ms, sequence, adopted => true);
    PERFORM instaid._restrict_shards(ARRAY[schema_name]);
    EXECUTE (
        SELECT format('CREATE OR REPLACE FUNCTION %1$I.next_id(%2$s) RETURNS bigint'
                      ' LANGUAGE sql VOLATILE PARALLEL UNSAFE %3$s'
                      ' RETURN %1$I.next_id(%4$L::regclass)',
                      schema_name, pg_get_function_arguments(p.oid),
                      CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END, sequence)
        FROM pg_proc AS p WHERE p.oid = adopted);
    -- Who could take values of the sequence for the published function can take IDs.
    SELECT instaid._others_with('U%', c.relacl, c.relowner),
           instaid._others_with('UPDATE', c.relacl, c.relowner) IS NULL
    INTO users, is_usage FROM pg_class AS c WHERE c.oid = sequence;
    IF users IS NOT NULL THEN
        EXECUTE format('GRANT EXECUTE ON FUNCTION %1$I.next_id(%1$I.id_sequence),'
                       ' %1$I.next_ids(integer, %1$I.id_sequence) TO %2$s', schema_name, users);
        RAISE WARNING USING MESSAGE = format('other roles have rights on sequence %s', sequence),
            DETAIL = format('They are: %s. They now have EXECUTE on the functions of the shard,'
                            ' and could still %s.', users,
                            CASE WHEN is_usage THEN 'take values, which the shard leaves out'
                                 ELSE 'set the sequence back' END),
            HINT = format('When the transactions of now have ended: REVOKE ALL ON SEQUENCE %s'
                          ' FROM %s;', sequence, users);
    END IF;
END $$;

-- Write another shard ID into the sequences and the functions of a shard.
-- A call that waits for this ends in _elsewhere(), unless the sequence has come to the room of the
-- old shard.  So each transaction gives a shard one number, and not the one whose room ends there.
CREATE OR REPLACE FUNCTION instaid._change_shard_id(
    declaration oid, sequence regclass, shard_id integer) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    renumbered CONSTANT text := current_setting('instaid_files.renumbered', true);
    written xid;
    schema_name text;
    shard record;
    behind bigint;
    part record;
    ms bigint;
    is_frozen boolean;
BEGIN
    SELECT n.nspname, p.xmin INTO schema_name, written
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE p.oid = declaration;
    shard := instaid._lock_shard(schema_name, 'renumber_shard');
    IF declaration = ANY (string_to_array(renumbered, ' ')::oid[])
       OR written IS DISTINCT FROM (SELECT p.xmin FROM pg_proc AS p WHERE p.oid = declaration) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('shard %I was just renumbered, or updated', schema_name),
            DETAIL = format('It is shard %s. A transaction can give it one number.',
                            shard.shard_id),
            HINT = 'Commit, and repeat the call when the transactions that are open now have'
                   ' ended.';
    END IF;
    -- Sessions can run past the room of the new number: this many, with one value each.
    behind := (shard.shard_id - shard_id)::bigint << instaid_sql._sequence_bits()
              & instaid_sql._low_bits();
    IF behind <= instaid_sql._max_sequence() + (
           SELECT sum(s.setting::integer) FROM pg_settings AS s
           WHERE s.name IN ('max_connections', 'max_wal_senders', 'max_worker_processes')) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('shard ID %s is just before %s', shard_id, shard.shard_id),
            DETAIL = 'A call that began before could still take an ID of the old shard.',
            HINT = format('Give the shard another ID first, and %s when the transactions that are'
                          ' open now have ended.', shard_id);
    END IF;
    FOR part IN
        SELECT q.*, s AS name FROM instaid._shard_sequences(schema_name) AS s
               JOIN pg_sequence AS q ON q.seqrelid = s
    LOOP
        -- This lock waits for all transactions that have taken IDs, and keeps others out
        -- until this transaction commits.
        EXECUTE format('ALTER SEQUENCE %s CACHE 1', part.name);
        is_frozen := part.seqmax < (shard.options).maximum_value;
        ms := LEAST((instaid_sql._last_or_ahead(part.name, instaid_sql._clock(shard.options))
                     >> instaid_sql._ms_shift()) + 1, instaid_sql._last_ms());
        EXECUTE format('ALTER SEQUENCE %s MAXVALUE %s RESTART', part.name,
                       instaid_sql._last_in_ms(CASE WHEN is_frozen THEN ms
                                                    ELSE instaid_sql._last_ms() END, shard_id));
        PERFORM setval(part.name, instaid_sql._last_in_ms(ms, shard_id));
    END LOOP;
    PERFORM instaid_sql._declare(schema_name, shard_id, (shard.options).minimum_value, sequence,
                                 or_replace => true);
    PERFORM set_config('instaid_files.renumbered', concat_ws(' ', NULLIF(renumbered, ''),
                                                             declaration), true);
END $$;

-- What a role, or PUBLIC as 0, must be granted to take IDs of a shard.
CREATE OR REPLACE FUNCTION instaid._missing_rights(role oid, schema_name text, sequence regclass)
    RETURNS SETOF text
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT format('EXECUTE ON FUNCTION %I.next_id(%s)', schema_name,
                  pg_get_function_identity_arguments(p.oid))
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace AND n.nspname = schema_name
    WHERE p.proname = 'next_id' AND NOT has_function_privilege(role, p.oid, 'EXECUTE')
    ORDER BY p.pronargs;
END;

\ir ../common/copies.sql

\ir ../common/adopting.sql

\ir ../common/replace_copy.sql

\ir ../common/adopt_column.sql
