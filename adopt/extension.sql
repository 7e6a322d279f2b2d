---- What the extension does in its own way ----

-- Refuse to work with another version of instaid, whose private functions can be others.  Bodies
-- that call those are texts: a dependency would keep an update of instaid from dropping them.
CREATE FUNCTION instaid_adopt._check_version() RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    there CONSTANT text := (SELECT e.extversion FROM pg_extension AS e
                            WHERE e.extname = 'instaid');
BEGIN
    IF there IS DISTINCT FROM 'VERSION' THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('instaid_adopt VERSION does not work with instaid %s', there),
            HINT = 'DROP EXTENSION instaid_adopt, and create it again. It holds nothing.';
    END IF;
END $$;

-- Replace a next_id() that is adopted, which keeps OID, owner, rights and the name of its result.
-- The value of its sequence, and where that starts, are no positions: people set it to an ID.
-- Calls that have ended can have rounded up to a millisecond ahead of the clock.
CREATE FUNCTION instaid_adopt._replace_next_id(
    schema_name text, shard_id integer, epoch timestamptz, adopted oid, sequence regclass,
    above bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    commands text;
BEGIN
    PERFORM instaid._alter_sequence(sequence, 'AS bigint INCREMENT BY 1 NO MINVALUE NO MAXVALUE'
                                              ' START WITH 1 RESTART NO CYCLE');
    PERFORM instaid.advance_past(sequence, GREATEST(above, instaid.max_id(
        clock_timestamp() + interval '1 ms', epoch)), epoch);
    commands := instaid._declaration_commands(
        schema_name, shard_id, epoch, sequence::text, true, pg_get_function_arguments(p.oid),
        CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' ELSE '' END)
    FROM pg_proc AS p WHERE p.oid = adopted;
    IF commands IS NULL THEN
        RAISE undefined_function USING
            MESSAGE = format('function %I.next_id() was dropped meanwhile', schema_name),
            HINT = 'Call adopt_shard() again.';
    END IF;
    EXECUTE commands;
END $$;

-- The command that puts the next_id() of a shard in the place of this function.
CREATE FUNCTION instaid_adopt._next_id_command(schema_name text, function oid, sequence regclass)
    RETURNS text LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('CREATE OR REPLACE FUNCTION %I.next_id(%s) RETURNS bigint LANGUAGE instaid'
                  ' STRICT VOLATILE PARALLEL UNSAFE COST 1 %s'
                  ' AS ''as next_ids(integer, regclass)''',
                  schema_name, pg_get_function_arguments(p.oid),
                  CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' END)
    FROM pg_proc AS p WHERE p.oid = function
$$;

-- Wait for all who have used the sequence of a shard.  If it stands more than a day ahead of the
-- clock, or past all ticks, it was set to an ID, which is no position.
CREATE FUNCTION instaid_adopt._hold_position(schema_name text, sequence regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._lock_sequence(sequence);
    PERFORM instaid._alter_sequence(sequence, 'START WITH 1 RESTART')
    FROM instaid._sequence_state(sequence) AS s
    WHERE s.last_value > 0
      AND COALESCE(s.issued_at, 'infinity') > clock_timestamp() + interval '1 day';
END $$;
