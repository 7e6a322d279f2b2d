---- Making IDs ----

-- Two functions: each statement that is not prepared would evaluate a default value again.
CREATE FUNCTION instaid.next_id(sequence regclass, shard_id integer) RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_next_id';
COMMENT ON FUNCTION instaid.next_id(regclass, integer) IS 'the next ID, with the default epoch';

CREATE FUNCTION instaid.next_id(sequence regclass, shard_id integer, epoch timestamptz)
    RETURNS bigint
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_next_id';
COMMENT ON FUNCTION instaid.next_id(regclass, int, timestamptz) IS 'the next ID of a sequence; '
'greater than all before; needs USAGE or UPDATE on it';

-- The last value of a sequence, and its time if it is a tick; why it cannot serve as a source of
-- IDs, and what to do, null if it can; whether it was read: not while it is altered or dropped,
-- and without USAGE or SELECT on it or pg_read_all_stats.
CREATE FUNCTION instaid._sequence_state(sequence regclass, OUT last_value bigint,
                                        OUT issued_at timestamptz, OUT problem text, OUT cure text,
                                        OUT is_read boolean)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'instaid_sequence_state';

-- The last ID of a sequence; null if there is none, or if it was not read.  One that setval() took
-- past the end of the format stands there.
CREATE FUNCTION instaid._position(sequence regclass, shard_id integer, epoch timestamptz,
                                  OUT last bigint, OUT is_read boolean)
    LANGUAGE sql VOLATILE PARALLEL RESTRICTED
BEGIN ATOMIC
    SELECT CASE WHEN s.last_value > 0 AND COALESCE(s.issued_at, 'infinity') >= epoch
                THEN instaid.make_id(
                    LEAST(s.issued_at, instaid.extract_timestamp(9223372036854775807, epoch)),
                    shard_id, s.last_value, epoch) END, s.is_read
    FROM instaid._sequence_state(sequence) AS s;
END;

-- The last ID that a sequence issued; null if there is none, and if it was not read.
CREATE FUNCTION instaid._last_id(sequence regclass, shard_id integer,
                                epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED
    RETURN (SELECT instaid.make_id(s.issued_at, shard_id, s.last_value, epoch)
            FROM instaid._sequence_state(sequence) AS s
            WHERE s.issued_at >= epoch AND s.issued_at < instaid._end_of_ids(epoch));

---- Shards ----

-- A shard is declared by functions in the language instaid: see src/declaration.c.
CREATE FUNCTION instaid._call_handler() RETURNS language_handler
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_call_handler';

-- Refuses functions in the language instaid that are not functions of a shard.
CREATE FUNCTION instaid._validator(oid) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_validator';

CREATE TRUSTED LANGUAGE instaid HANDLER instaid._call_handler VALIDATOR instaid._validator;
COMMENT ON LANGUAGE instaid IS 'a schema with next_ids(integer, regclass) in it is a shard';

-- The shard of the node: of this server, in this database.  Its shard ID is a setting, so that the
-- same DDL can run on every node.  pg_dump writes the position of its sequence.
CREATE SEQUENCE instaid.node_id_seq;
COMMENT ON SEQUENCE instaid.node_id_seq IS 'ticks: ms since 1970, and a count in each';
SELECT pg_catalog.pg_extension_config_dump('instaid.node_id_seq', '');

CREATE FUNCTION instaid.next_ids(count integer, sequence regclass DEFAULT 'instaid.node_id_seq')
    RETURNS SETOF bigint
    LANGUAGE instaid VOLATILE STRICT PARALLEL UNSAFE COST 1
    AS 'node shard, epoch 1314220021721';
COMMENT ON FUNCTION instaid.next_ids(integer, regclass) IS
'the next 1 to 1000000 IDs of the shard of the node, in increasing order; see instaid.next_id()';

CREATE FUNCTION instaid.next_id() RETURNS bigint
    LANGUAGE instaid VOLATILE STRICT PARALLEL UNSAFE COST 1 AS 'as next_ids(integer, regclass)';
COMMENT ON FUNCTION instaid.next_id() IS 'the next ID of the shard of the node, whose shard ID is '
'the setting instaid.node_shard_id; needs USAGE or UPDATE on the sequence instaid.node_id_seq';

-- What shards declare, and the OIDs of declarations.
CREATE FUNCTION instaid._list_shards(OUT schema_name name, OUT shard_id integer,
                                    OUT epoch timestamptz, OUT sequence regclass,
                                    OUT declaration oid, OUT frozen boolean) RETURNS SETOF record
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 100
    AS 'MODULE_PATHNAME', 'instaid_list_shards';

-- The shard of a schema
CREATE FUNCTION instaid._find_shard(schema text, OUT schema_name name, OUT shard_id integer,
                                    OUT epoch timestamptz, OUT sequence regclass,
                                    OUT declaration oid, OUT frozen boolean) RETURNS SETOF record
    LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED ROWS 1
BEGIN ATOMIC
    SELECT s.* FROM instaid._list_shards() AS s WHERE s.schema_name = schema;
END;

-- What ALTER FUNCTION or DROP has made wrong with a function of a shard, for audit(); or nulls.
CREATE FUNCTION instaid._function_fault(function oid, OUT code text, OUT problem text)
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'instaid_function_fault';

-- The sequences that issue the IDs of a shard: the one of its next_id() first, and those that
-- tables of its owner pass to next_id(regclass).
CREATE FUNCTION instaid._shard_sequences(schema_name text) RETURNS SETOF regclass
    LANGUAGE c VOLATILE STRICT PARALLEL RESTRICTED ROWS 1
    AS 'MODULE_PATHNAME', 'instaid_shard_sequences';

-- include common/shards.sql
COMMENT ON VIEW instaid.shards IS 'the shards of this database; last_id, last_issued_at and drift '
'need USAGE or SELECT on the sequence, or membership in pg_read_all_stats';

-- Keep others from creating a shard with this ID until the transaction ends.
CREATE FUNCTION instaid._lock_shard_id(schema_name text, shard_id integer) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_lock_shard_id';

-- Who has the shard ID of a new shard, and a function that it needs; the epoch of another shard.
CREATE FUNCTION instaid._find_conflict(schema_name text, shard_id integer, OUT taken_by name,
                                       OUT routine oid, OUT other_schema name,
                                       OUT other_epoch timestamptz)
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_find_conflict';

-- The commands that create the functions of a shard, or replace its next_id().
-- Unlike catalog changes in C, they fire event triggers.  None looks a function up by its name,
-- as COMMENT, GRANT and ALTER do: among thousands of that name, this takes 20 ms and 8 MB.
CREATE FUNCTION instaid._declaration_commands(
    schema_name text, shard_id integer, epoch timestamptz, sequence text,
    or_replace boolean DEFAULT false, arguments text DEFAULT '', security text DEFAULT '')
    RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN format('CREATE FUNCTION %1$I.next_ids(count integer, sequence regclass DEFAULT %2$L)'
                  ' RETURNS SETOF bigint LANGUAGE instaid STRICT COST 1 AS %3$L;'
                  ' CREATE FUNCTION %1$I.next_id(sequence regclass) RETURNS bigint'
                  ' LANGUAGE instaid STRICT COST 1 AS ''as next_ids(integer, regclass)'';'
                  ' CREATE %4$s FUNCTION %1$I.next_id(%5$s) RETURNS bigint LANGUAGE instaid STRICT'
                  ' VOLATILE PARALLEL UNSAFE COST 1 %6$s AS ''as next_ids(integer, regclass)'';'
                  ' COMMENT ON SEQUENCE %2$s IS ''ticks: ms since 1970, and a count in each''',
                  schema_name, sequence,
                  format('shard %s, epoch %s', shard_id,
                         (extract(epoch FROM epoch) * 1000)::bigint),
                  CASE WHEN or_replace THEN 'OR REPLACE' END, arguments, security);

-- The commands that make a schema a shard.
CREATE FUNCTION instaid._shard_commands(schema_name text, shard_id integer, epoch timestamptz,
                                        sequence text) RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE
    RETURN format('CREATE SEQUENCE %s; ', sequence)
           || instaid._declaration_commands(schema_name, shard_id, epoch, sequence);

-- Default privileges must not let other roles set the sequences of these shards back.
CREATE FUNCTION instaid._restrict_shards(schemas text[]) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE (
        SELECT format('REVOKE UPDATE ON SEQUENCE %s FROM %s', string_agg(q::text, ', '),
                      instaid._default_grantees())
        FROM unnest(schemas) AS s CROSS JOIN LATERAL instaid._shard_sequences(s) AS q);
END $$;

-- include common/create_shard.sql

-- include common/many_shards.sql

-- include common/move_guard.sql

---- Reading in batches ----

CREATE FUNCTION instaid.settled_id(schema_name text, sequence regclass DEFAULT NULL,
                                   wait boolean DEFAULT true) RETURNS bigint
    LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_settled_id';
COMMENT ON FUNCTION instaid.settled_id IS 'an ID of a shard, or of a sequence of one of its '
'tables, up to which no open transaction has taken one; waits for those, or returns null if wait '
'is false; needs USAGE or SELECT on the sequence';

---- Moving and protecting shards ----

-- For superusers, too: it sets the page of a sequence, by its OID, and runs no code.
CREATE FUNCTION instaid.advance_past(sequence regclass, id bigint, epoch timestamptz) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_advance_past';
COMMENT ON FUNCTION instaid.advance_past IS 'let a sequence issue only IDs above this one, '
'whatever their shard; error if the ID is negative; needs UPDATE on the sequence';

-- Lock a sequence as ALTER SEQUENCE does; needs the rights of its owner.
CREATE FUNCTION instaid._lock_sequence(sequence regclass) RETURNS void
    LANGUAGE c VOLATILE STRICT PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'instaid_lock_sequence';

-- While ALTER SEQUENCE waits, the owner of the schema can give its name to another sequence.
-- Therefore lock it first, and then see whether it has another file, as after these options.
-- Citus refuses to alter a sequence that it knows, unless its setting is off.  Workers' copies
-- of the sequence have a range of their own, and issue no IDs.
CREATE FUNCTION instaid._alter_sequence(sequence regclass, options text)
    RETURNS void LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET citus.enable_ddl_propagation = off AS $$
DECLARE
    file oid;
BEGIN
    PERFORM instaid._lock_sequence(sequence);
    file := pg_relation_filenode(sequence);
    EXECUTE format('ALTER SEQUENCE %s %s', sequence, options);
    IF pg_relation_filenode(sequence) = file THEN
        RAISE serialization_failure USING
            MESSAGE = format('sequence %s was renamed meanwhile', sequence), HINT = 'Try again.';
    END IF;
END $$;

-- Let the sequences of a shard end where they stand, or go on.  For superusers, too: it locks and
-- alters sequences only, which runs no code of their owners.
-- The lock waits for all transactions that have taken IDs.  The declared sequence comes first: all
-- who use another one have locked it, too.  Each is looked up when the lock of the one before is
-- there: by then, the schema can have another name, and the declaration another sequence.
CREATE FUNCTION instaid._set_frozen(schema_name text, frozen boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    declaration CONSTANT oid := instaid._find_function(schema_name, 'next_ids', '23 2205');
    done regclass[] := '{}'::regclass[];
    sequence regclass;
    max_value bigint;
BEGIN
    PERFORM instaid._check_name('schema', schema_name);
    -- It would not see the newest sequences.
    PERFORM instaid._check_read_committed(CASE WHEN frozen THEN 'freeze_shard'
                                               ELSE 'thaw_shard' END);
    LOOP
        SELECT s.name INTO sequence
        FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
             CROSS JOIN instaid._shard_sequences(n.nspname) WITH ORDINALITY AS s (name, place)
        WHERE p.oid = declaration AND s.name <> ALL (done) ORDER BY s.place LIMIT 1;
        EXIT WHEN NOT FOUND;
        PERFORM instaid._check_sequence(declaration, sequence);
        PERFORM instaid._lock_sequence(sequence);
        max_value := (pg_sequence_parameters(sequence)).maximum_value;
        PERFORM instaid._alter_sequence(sequence, 'NO MAXVALUE');
        IF frozen THEN
            -- A MAXVALUE must be above MINVALUE, and not below START.
            max_value := setval(sequence, LEAST(GREATEST(COALESCE(
                             pg_sequence_last_value(sequence), nextval(sequence)),
                             p.minimum_value + 1, p.start_value), instaid._max_tick() - 1))
            FROM pg_sequence_parameters(sequence) AS p;
            PERFORM instaid._alter_sequence(sequence, 'MAXVALUE ' || max_value);
        ELSIF max_value < instaid._max_tick() THEN
            -- It goes on in the next millisecond.  A dump without data has the last tick as
            -- MAXVALUE only.
            PERFORM setval(sequence, LEAST((COALESCE(pg_sequence_last_value(sequence), max_value)
                                            | instaid._max_sequence()) + 1, instaid._max_tick()));
        END IF;
        done := done || sequence;
    END LOOP;
    IF done = '{}' THEN
        RAISE undefined_object USING MESSAGE = format('schema %I is not a shard', schema_name),
            HINT = 'instaid.shards lists the shards of this database.';
    END IF;
END $$;

CREATE FUNCTION instaid.freeze_shard(schema_name text) RETURNS void
    LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE RETURN instaid._set_frozen(schema_name, true);
COMMENT ON FUNCTION instaid.freeze_shard IS 'wait for the transactions that have taken IDs of a '
'shard, and stop it; its owner and the caller need the rights of the owners of its sequences';

CREATE FUNCTION instaid.thaw_shard(schema_name text) RETURNS void
    LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE RETURN instaid._set_frozen(schema_name, false);
COMMENT ON FUNCTION instaid.thaw_shard(text) IS 'let a frozen shard issue IDs again';
