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
-- Calls that have ended can have rounded up to a millisecond ahead of the clock.
CREATE FUNCTION instaid_adopt._replace_next_id(
    schema_name text, shard_id integer, epoch timestamptz, adopted oid, sequence regclass,
    above bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    commands text;
BEGIN
    PERFORM instaid._alter_sequence(sequence, 'AS bigint INCREMENT BY 1 NO MAXVALUE NO CYCLE');
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

-- What a role, or PUBLIC as 0, must be granted to take IDs of a shard.
CREATE FUNCTION instaid_adopt._missing_rights(role oid, schema_name text, sequence regclass)
    RETURNS SETOF text LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT g.what FROM pg_proc AS p
         -- a declaration can name a sequence that its owner has no rights on
         JOIN pg_class AS q ON q.oid = sequence AND pg_has_role(p.proowner, q.relowner, 'USAGE')
         CROSS JOIN LATERAL (VALUES
             (format('USAGE ON SEQUENCE %s', sequence),
              p.prosecdef OR has_sequence_privilege(role, sequence, 'USAGE, UPDATE')),
             (format('EXECUTE ON FUNCTION %I.next_id()', schema_name),
              has_function_privilege(role, p.oid, 'EXECUTE'))) AS g (what, is_granted)
    WHERE p.oid = instaid._find_function(schema_name, 'next_id', '') AND NOT g.is_granted
$$;
