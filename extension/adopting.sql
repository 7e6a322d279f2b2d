---- What adopting and renumbering replace ----

-- Replace a next_id() that is adopted, which keeps OID, owner, rights and the name of its result.
-- Calls that have ended can have rounded up to a millisecond ahead of the clock.
CREATE FUNCTION instaid._replace_next_id(schema_name text, shard_id integer, epoch timestamptz,
                                         adopted oid, sequence regclass, above bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._alter_sequence(c.relowner, sequence,
                                    'AS bigint INCREMENT BY 1 NO MAXVALUE NO CYCLE')
    FROM pg_class AS c WHERE c.oid = sequence;
    PERFORM instaid.advance_past(sequence, GREATEST(above, instaid.max_id(
        clock_timestamp() + interval '1 ms', epoch)), epoch);
    PERFORM instaid._execute_as(p.proowner, instaid._declaration_commands(
        schema_name, shard_id, epoch, sequence::text, true, pg_get_function_arguments(p.oid),
        CASE WHEN p.prosecdef THEN 'SECURITY DEFINER' ELSE '' END))
    FROM pg_proc AS p WHERE p.oid = adopted;
    IF NOT FOUND THEN
        RAISE undefined_function USING
            MESSAGE = format('function %I.next_id() was dropped meanwhile', schema_name),
            HINT = 'Call adopt_shard() again.';
    END IF;
END $$;

-- Write another shard ID into a declaration.  To freeze waits for all calls; to thaw leaves the
-- millisecond, in which IDs of a smaller shard ID would be below those that were issued.  A shard
-- that was frozen leaves it, too, so that settled_id() does not go back.
CREATE FUNCTION instaid._change_shard_id(declaration oid, sequence regclass, shard_id integer)
    RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard record;
BEGIN
    PERFORM instaid._sequence_owner(declaration, sequence);
    -- nobody else freezes or thaws it
    PERFORM instaid._lock_sequence(sequence);
    SELECT s.* INTO shard FROM instaid._list_shards() AS s WHERE s.declaration = $1;
    PERFORM instaid._set_frozen(shard.schema_name, true);
    PERFORM instaid._execute_as(p.proowner, regexp_replace(
        pg_get_functiondef(p.oid), E'(.*shard )\\d+', E'\\1' || shard_id))
    FROM pg_proc AS p WHERE p.oid = declaration;
    -- by its name, which can have become that of another function
    IF NOT EXISTS (SELECT FROM instaid._list_shards() AS s
                   WHERE s.declaration = $1 AND s.shard_id = $3) THEN
        RAISE serialization_failure USING
            MESSAGE = 'the shard was renamed or replaced meanwhile', HINT = 'Try again.';
    END IF;
    PERFORM instaid._set_frozen(shard.schema_name, false);
    PERFORM instaid._set_frozen(shard.schema_name, true) WHERE shard.frozen;
END $$;

-- What a role, or PUBLIC as 0, must be granted to take IDs of a shard.
CREATE FUNCTION instaid._missing_rights(role oid, schema_name text, sequence regclass)
    RETURNS SETOF text LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED
BEGIN ATOMIC
    SELECT g.what FROM pg_proc AS p
         -- a declaration can name a sequence that its owner has no rights on
         JOIN pg_class AS q ON q.oid = sequence AND pg_has_role(p.proowner, q.relowner, 'USAGE')
         CROSS JOIN LATERAL (VALUES
             (format('USAGE ON SEQUENCE %s', sequence),
              p.prosecdef OR has_sequence_privilege(role, sequence, 'USAGE, UPDATE')),
             (format('EXECUTE ON FUNCTION %I.next_id()', schema_name),
              has_function_privilege(role, p.oid, 'EXECUTE'))) AS g (what, is_granted)
    WHERE p.oid = instaid._find_function(schema_name, 'next_id', '') AND NOT g.is_granted;
END;

-- include common/copies.sql

-- include common/adopting.sql

-- include common/replace_copy.sql

-- include common/adopt_column.sql
