/* sql-edition/shards.sql */

-- Shards: the list of them, create_shard(), freezing and thawing.

---- Shards ----

-- The shards.  A shard is declared by the function next_ids() of its schema, whose default is its
-- sequence.  A frozen sequence has the last ID of an earlier millisecond as its MAXVALUE.  Any
-- role can create functions of these names.  They declare a shard only with the type and the text
-- that _declare() gives them, if all of it belongs to one role, and with an epoch from 1990 to
-- 2100.  Of a text, which can be very long, only the beginning is parsed.
--
-- The planner cannot know how many shards there are.  OFFSET 0 keeps it to one look-up by a whole
-- key after the other.
CREATE OR REPLACE VIEW instaid._declared_shards AS
    SELECT n.nspname AS schema_name, p.shard_id, to_timestamp(p.epoch_ms / 1000.0) AS epoch,
           q.seqrelid::regclass AS sequence, p.oid AS declaration,
           q.seqmax >> instaid_sql._ms_shift() < instaid_sql._last_ms()
           AND q.seqmax & instaid_sql._low_bits() = instaid_sql._last_in_ms(0, p.shard_id)
           AS frozen
    FROM pg_namespace AS n
         CROSS JOIN LATERAL (
        SELECT t.oid, t.typowner FROM pg_type AS t
        WHERE t.typname = 'id_sequence' AND t.typnamespace = n.oid OFFSET 0) AS t
         CROSS JOIN LATERAL (
        SELECT FROM pg_proc AS f
        WHERE f.proname = 'next_id' AND f.proargtypes = t.oid::text::oidvector
          AND f.pronamespace = n.oid AND f.proowner = t.typowner AND f.prosecdef OFFSET 0) AS f
         CROSS JOIN LATERAL (
        SELECT p.oid, p.prosrc,
               substring(left(split_part(left(p.prosrc, 150), ',', 3), 13), '^[0-9]+$')::bigint,
               mod(substring(left(split_part(left(p.prosrc, 150), ',', 4), 19),
                             '^[0-9]+$')::numeric,
                   instaid_sql._low_bits() + 1)::integer >> instaid_sql._sequence_bits()
        FROM pg_proc AS p
        WHERE p.proname = 'next_ids' AND p.pronamespace = n.oid AND p.proargtypes
              = format('%s %s', 'integer'::regtype::oid, t.oid)::oidvector
          AND p.proowner = t.typowner AND p.prosecdef AND p.pronargdefaults = 1 OFFSET 0)
         AS p (oid, prosrc, epoch_ms, shard_id)
         CROSS JOIN LATERAL (
        SELECT d.refobjid FROM pg_depend AS d
        WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid
          AND d.refclassid = 'pg_class'::regclass OFFSET 0) AS d
         JOIN pg_sequence AS q ON q.seqrelid = d.refobjid
    WHERE n.nspname !~ '^pg_' AND p.epoch_ms BETWEEN 631152000001 AND 4102444800000
      AND p.prosrc = format(E'\nBEGIN\n    RETURN QUERY SELECT instaid_sql._next_ids(sequence,'
                            ' %L::instaid_sql.sequence_options, count);\nEND ',
                            instaid_sql._options(p.shard_id, p.epoch_ms));

-- All shards
CREATE OR REPLACE FUNCTION instaid._list_shards(
    OUT schema_name name, OUT shard_id integer, OUT epoch timestamptz, OUT sequence regclass,
    OUT declaration oid, OUT frozen boolean) RETURNS SETOF record
    LANGUAGE sql STABLE STRICT PARALLEL RESTRICTED ROWS 100 SET search_path = pg_catalog, pg_temp
    SET jit = off
BEGIN ATOMIC
    TABLE instaid._declared_shards;
END;

-- The shard of a schema.  PostgreSQL puts this query into the one that calls it.
CREATE OR REPLACE FUNCTION instaid._find_shard(
    schema text, OUT schema_name name, OUT shard_id integer, OUT epoch timestamptz,
    OUT sequence regclass, OUT declaration oid, OUT frozen boolean) RETURNS SETOF record
    LANGUAGE sql STABLE PARALLEL RESTRICTED ROWS 1
BEGIN ATOMIC
    SELECT s.* FROM instaid._declared_shards AS s WHERE s.schema_name = schema;
END;

-- The last value of a sequence, null if it was never used, and whether it was read: not without
-- SELECT on it, and while its owner changes it.  It is the last ID of a shard, whatever the other
-- arguments.
-- To read last_value takes a lock until the transaction ends, and thousands of them do not fit
-- into the lock table.  A subtransaction that is rolled back releases it, but not the lock of
-- pg_sequence_last_value().  Who can rename a sequence or its schema can put a table or a view
-- under the name, and planning alone then calls functions of that role.  Therefore a sequence is
-- read by name only if it and its schema, which the reader can use, belong to the reader, to a
-- superuser, or to the owner of these functions.  audit() sets enable_nestloop = off, with which
-- each call would read all schemas.
CREATE OR REPLACE FUNCTION instaid._position(
    sequence regclass, shard_id integer, epoch timestamptz, OUT last bigint, OUT is_read boolean)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET lock_timeout = '1ms' SET enable_nestloop = on AS $$
BEGIN
    IF has_sequence_privilege(sequence, 'SELECT') IS NOT TRUE THEN
        is_read := false;
        RETURN;
    ELSIF (SELECT bool_and(has_schema_privilege(n.oid, 'USAGE') AND (
                      r.rolsuper OR r.rolname = current_user OR r.oid = i.nspowner))
           FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
                JOIN pg_roles AS r ON r.oid IN (c.relowner, n.nspowner)
                JOIN pg_namespace AS i ON i.nspname = 'instaid'
           WHERE c.oid = sequence)
    THEN
        EXECUTE format('SELECT CASE WHEN is_called THEN last_value END, true FROM %s', sequence)
        INTO last, is_read;
    ELSE
        last := pg_sequence_last_value(sequence);
        is_read := true;
    END IF;
    RAISE SQLSTATE 'ID001';
EXCEPTION
    WHEN SQLSTATE 'ID001' THEN
        -- the old file of one that was just altered is empty
        is_read := COALESCE(is_read, false);
    -- each SQLSTATE of the classes 42, 55, 58 and XX: it is dropped, renamed or locked; and an
    -- unlogged one, on a standby
    WHEN syntax_error_or_access_rule_violation OR object_not_in_prerequisite_state
         OR system_error OR internal_error OR feature_not_supported THEN
        is_read := false;
END $$;

-- The last ID that a sequence of a shard issued; null if there is none, if it is a sequence of
-- another shard or epoch, and without SELECT on it.
CREATE OR REPLACE FUNCTION instaid._last_id(sequence regclass, shard_id integer, epoch timestamptz)
    RETURNS bigint
    LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    RETURN (SELECT (instaid._position(sequence, shard_id, epoch)).last FROM pg_sequence AS q
            WHERE q.seqrelid = sequence AND q.seqmin = extract(epoch FROM epoch) * 1000
              AND instaid.extract_shard_id(q.seqmax) = shard_id);

-- The sequences that issue the IDs of a shard: the one of its next_id(), and those of
-- add_sequence().  Neither STRICT nor with a setting: views contain its query.
CREATE OR REPLACE FUNCTION instaid._shard_sequences(schema_name text) RETURNS SETOF regclass
    LANGUAGE sql STABLE PARALLEL RESTRICTED ROWS 1
BEGIN ATOMIC
    SELECT DISTINCT q.seqrelid::regclass
    FROM pg_type AS t
         CROSS JOIN LATERAL (
        SELECT 'pg_constraint'::regclass, c.oid FROM pg_constraint AS c WHERE c.contypid = t.oid
        UNION ALL
        SELECT 'pg_proc'::regclass, instaid._find_function(
            schema_name, 'next_ids', format('%s %s', 'integer'::regtype::oid, t.oid)::oidvector))
                            AS o (class, oid)
         CROSS JOIN LATERAL (
        SELECT q.seqrelid FROM pg_depend AS d JOIN pg_sequence AS q ON q.seqrelid = d.refobjid
        WHERE d.classid = o.class AND d.objid = o.oid AND d.refclassid = 'pg_class'::regclass
        OFFSET 0) AS q
    WHERE t.typname = 'id_sequence'
      AND t.typnamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = schema_name)
    ORDER BY 1;
END;

\ir ../common/shards.sql
COMMENT ON VIEW instaid.shards IS
'the shards of this database, one row each; last_id, last_issued_at and drift need SELECT on '
'the sequence';

---- Creating shards ----

-- Give a sequence the range of a sequence of a shard, and its schema the lock.
-- The sequence begins at the end of the millisecond that the clock reads: the first call opens
-- the next one.  Default privileges, which some clouds set for whole databases, must not let
-- other roles use the sequence or the lock.
CREATE OR REPLACE FUNCTION instaid._prepare_sequence(sequence regclass, shard_id integer,
                                          epoch_ms bigint, is_new boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    schema CONSTANT text := (pg_identify_object('pg_class'::regclass, sequence, 0)).schema;
    lock CONSTANT text := schema || '.id_sequence_lock';
    options CONSTANT instaid_sql.sequence_options := instaid_sql._options(shard_id, epoch_ms);
BEGIN
    EXECUTE format('ALTER SEQUENCE %s AS bigint INCREMENT BY 1 MINVALUE %s MAXVALUE %s'
                   ' START WITH %s RESTART CACHE 1 NO CYCLE', sequence, epoch_ms,
                   options.maximum_value, epoch_ms);
    PERFORM setval(sequence, instaid_sql._clock(options) + instaid_sql._max_sequence());
    EXECUTE format('COMMENT ON SEQUENCE %s IS %L', sequence,
                   'the last ID of the shard; no role but its owner needs a right on it');
    -- also if another shard has a sequence in this schema
    IF NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = to_regclass(lock) AND c.relkind = 'v'
                                               AND pg_get_userbyid(c.relowner) = current_user)
    THEN
        EXECUTE format('CREATE VIEW %s AS SELECT 1 AS lock', lock);
        EXECUTE format('COMMENT ON VIEW %s IS %L', lock,
                       'the lock of the sequences of the shard; it must keep this name');
    END IF;
    EXECUTE format('REVOKE ALL ON %s FROM %s', concat_ws(', ', lock, CASE WHEN is_new THEN sequence
                                                               END), instaid._default_grantees());
END $$;

-- Let nobody but the owner use the functions of these shards, and their type.  To take IDs needs
-- no right on the type; a table with a column of it would keep add_sequence() waiting.
-- For many shards at once: PostgreSQL looks a function up by its name among all schemas.
CREATE OR REPLACE FUNCTION instaid._restrict_shards(schemas text[]) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    EXECUTE (
        SELECT format('REVOKE ALL ON FUNCTION %2$s FROM %1$s; REVOKE ALL ON TYPE %3$s FROM %1$s',
                      instaid._default_grantees(),
                      string_agg(format('%1$I.next_id(%1$I.id_sequence),'
                                        ' %1$I.next_ids(integer, %1$I.id_sequence)', s), ', '),
                      string_agg(format('%I.id_sequence', s), ', '))
        FROM unnest(schemas) AS s);
END $$;

-- Keep other sessions from creating a shard with this ID until the transaction ends; refuse an
-- isolation level that would not show what they have created before.
-- Any role can hold an advisory lock.  Therefore this does not wait, and names the session.
CREATE OR REPLACE FUNCTION instaid._lock_shard_id(schema_name text, shard_id integer) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM instaid._check_read_committed('create_shard');
    IF NOT pg_try_advisory_xact_lock(hashtext('instaid shard ID'), shard_id) THEN
        RAISE lock_not_available USING
            MESSAGE = format('another transaction is creating a shard with ID %s', shard_id),
            DETAIL = COALESCE((
                SELECT format('Session %s of role %s has the advisory lock of this ID, which any'
                              ' role can take.', l.pid, a.usename)
                FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
                WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.objid = shard_id
                  AND l.classid = (hashtext('instaid shard ID') & 4294967295)::oid AND l.granted
                  AND a.datname = current_database()), 'It has not ended yet.'),
            HINT = 'Repeat the call when it has ended.';
    END IF;
END $$;

-- What conflicts with a new shard: the schema that has its shard ID, a function of its schema
-- with the name of one that it needs, and the epoch of another shard.  The function that is
-- adopted comes last: it hides none of the others.  With -1, only the schema is looked at.
CREATE OR REPLACE FUNCTION instaid._find_conflict(schema_name text, shard_id integer,
                                       OUT taken_by name, OUT routine oid, OUT other_schema name,
                                       OUT other_epoch timestamptz)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT min(s.schema_name) FILTER (WHERE s.shard_id = _find_conflict.shard_id),
           (array_agg(s.schema_name ORDER BY s.shard_id))[1],
           (array_agg(s.epoch ORDER BY s.shard_id))[1]
    INTO taken_by, other_schema, other_epoch FROM instaid._list_shards() AS s
    WHERE _find_conflict.shard_id >= 0;
    SELECT p.oid INTO routine FROM pg_proc AS p
    WHERE p.pronamespace = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = schema_name)
      AND (p.proname = 'next_id' AND p.pronargs < 2 OR p.proname = 'next_ids' AND p.pronargs < 3)
    ORDER BY p.proname DESC, p.pronargs DESC LIMIT 1;
END $$;

-- The commands that make a schema a shard.
CREATE OR REPLACE FUNCTION instaid._shard_commands(schema_name text, shard_id integer,
                                        epoch timestamptz, sequence text) RETURNS text
    LANGUAGE sql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    RETURN format('CREATE SEQUENCE %1$s;'
                  ' SELECT instaid._prepare_sequence(%1$L, %2$s, %3$s, true);'
                  ' SELECT instaid_sql._declare(%4$L, %2$s, %3$s, %1$L)', sequence, shard_id,
                  (extract(epoch FROM epoch) * 1000)::bigint, schema_name);

\ir ../common/create_shard.sql

\ir ../common/many_shards.sql

\ir ../common/move_guard.sql

---- Reading in batches ----

CREATE OR REPLACE FUNCTION instaid.settled_id(schema_name text, sequence regclass DEFAULT NULL,
                                              wait boolean DEFAULT true) RETURNS bigint
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE feature_not_supported USING MESSAGE = 'the SQL edition of instaid cannot do this',
        DETAIL = 'settled_id() needs the extension instaid.',
        HINT = 'Store pg_current_xact_id() in each row, and read below'
               ' pg_snapshot_xmin(pg_current_snapshot()).';
END $$;
COMMENT ON FUNCTION instaid.settled_id IS
'not in this edition: fails, and says what to do instead';

---- Moving and protecting shards ----

-- A shard of the caller, its owner, and the options of its sequences; nobody else changes it until
-- the transaction ends.  Refuse a schema that is not a shard, and a caller who does not own the
-- shard and the sequences.
-- ALTER SEQUENCE waits for the transactions that have taken IDs of its first sequence, and keeps
-- others out.  Calls that were before this in the queue can have changed the shard.
CREATE OR REPLACE FUNCTION instaid._lock_shard(
    schema_name text, routine text, OUT shard_id integer, OUT sequence regclass, OUT owner regrole,
    OUT options instaid_sql.sequence_options)
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    epoch_ms bigint;
    locked regclass;
BEGIN
    -- Otherwise the caller would not see the newest sequences.
    PERFORM instaid._check_read_committed(routine), instaid._check_name('schema', schema_name);
    LOOP
        SELECT s.shard_id, s.sequence, p.proowner, (extract(epoch FROM s.epoch) * 1000)::bigint
        INTO shard_id, sequence, owner, epoch_ms
        FROM instaid._find_shard(schema_name) AS s JOIN pg_proc AS p ON p.oid = s.declaration;
        IF NOT FOUND THEN
            RAISE undefined_object USING MESSAGE = format('schema %I is not a shard', schema_name),
                HINT = 'instaid.shards lists the shards of this database.';
        END IF;
        PERFORM instaid._check_owner(owner, 'shard', quote_ident(schema_name));
        PERFORM instaid._check_owner(c.relowner, 'sequence', c.oid::regclass::text)
        FROM instaid._shard_sequences(schema_name) AS q JOIN pg_class AS c ON c.oid = q;
        EXIT WHEN sequence = locked;
        EXECUTE format('ALTER SEQUENCE %s CACHE 1', sequence);
        locked := sequence;
    END LOOP;
    options := instaid_sql._options(shard_id, epoch_ms);
END $$;

-- Let the type of a shard admit the sequences of the shard, and no others.
-- DROP SEQUENCE ... CASCADE drops its constraint.  The sequences of add_sequence() are in the
-- schema, and have the range of the shard.
CREATE OR REPLACE FUNCTION instaid._admit_sequences(schema_name text,
                                         left_out regclass DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard CONSTANT record := instaid._lock_shard(schema_name, '_admit_sequences');
BEGIN
    EXECUTE (
        SELECT format('ALTER DOMAIN %1$I.id_sequence'
                      ' DROP CONSTRAINT IF EXISTS is_a_sequence_of_this_shard;'
                      ' ALTER DOMAIN %1$I.id_sequence'
                      ' ADD CONSTRAINT is_a_sequence_of_this_shard CHECK (%2$s)', schema_name,
                      string_agg(format('VALUE = %L::regclass', u.oid::regclass), ' OR '
                                 ORDER BY u.oid))
        FROM (SELECT s::oid FROM instaid._shard_sequences(schema_name) AS s
              UNION
              SELECT q.seqrelid
              FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.objid
                   JOIN pg_sequence AS q ON q.seqrelid = d.objid
              WHERE d.refclassid = 'pg_namespace'::regclass
                AND d.refobjid = to_regnamespace(quote_ident(schema_name))
                AND d.classid = 'pg_class'::regclass AND c.relowner = shard.owner
                AND q.seqmin = (shard.options).minimum_value
                AND (q.seqmax # (shard.options).maximum_value)
                    & instaid_sql._low_bits() = 0) AS u (oid)
        WHERE u.oid IS DISTINCT FROM left_out);
END $$;

-- The MAXVALUE of a frozen sequence is the last ID of the millisecond in which it stands.
-- The lock waits for all transactions that have taken IDs, and keeps others out until this one
-- commits.
CREATE OR REPLACE FUNCTION instaid._freeze_sequence(sequence regclass,
                                         options instaid_sql.sequence_options) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    base CONSTANT bigint := options.maximum_value & instaid_sql._shard_id_mask();
    last bigint;
BEGIN
    EXECUTE format('ALTER SEQUENCE %s CACHE 1', sequence);
    -- one that a dump has brought frozen stays where it was
    last := COALESCE(pg_sequence_last_value(sequence),
                     (SELECT seqmax FROM pg_sequence
                      WHERE seqrelid = sequence AND seqmax < options.maximum_value
                      AND (seqmax # options.maximum_value) & instaid_sql._low_bits() = 0),
                     -- _clock() would refuse a time past the last ID
                     instaid_sql._last_or_ahead(sequence, instaid_sql._clock(options)));
    -- if nextval() ran past the room, in the next one
    last := (last - base + instaid_sql._shard_id_mask() >> instaid_sql._ms_shift()
             << instaid_sql._ms_shift()) + base + instaid_sql._max_sequence();
    PERFORM setval(sequence, last);
    EXECUTE format('ALTER SEQUENCE %s MAXVALUE %s', sequence, last);
END $$;

CREATE OR REPLACE FUNCTION instaid.add_sequence(schema_name text, sequence_name text)
    RETURNS regclass
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence CONSTANT text := format('%I.%I', schema_name, sequence_name);
    shard record;
BEGIN
    PERFORM instaid._check_name('sequence', sequence_name);
    shard := instaid._lock_shard(schema_name, 'add_sequence');
    IF to_regclass(sequence) IS NOT NULL THEN
        RAISE duplicate_table USING MESSAGE = format('relation %s already exists', sequence),
            HINT = 'Pass another name, or drop the relation if nothing uses it.';
    END IF;
    EXECUTE format('CREATE SEQUENCE %s', sequence);
    PERFORM instaid._prepare_sequence(sequence::regclass, shard.shard_id,
                                      (shard.options).minimum_value, true);
    PERFORM instaid._freeze_sequence(sequence::regclass, shard.options) FROM pg_sequence AS q
    WHERE q.seqrelid = shard.sequence AND q.seqmax < (shard.options).maximum_value;
    PERFORM instaid._admit_sequences(schema_name);
    RETURN sequence::regclass;
END $$;
COMMENT ON FUNCTION instaid.add_sequence IS 'create a sequence of a shard for a table, whose '
'default is then next_id(sequence); waits for the transactions that have taken IDs';

CREATE OR REPLACE FUNCTION instaid.drop_sequence(schema_name text, sequence_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    sequence CONSTANT text := format('%I.%I', schema_name, sequence_name);
    shard record;
BEGIN
    shard := instaid._lock_shard(schema_name, 'drop_sequence');
    IF to_regclass(sequence) = shard.sequence
       OR (to_regclass(sequence) IN (SELECT s FROM instaid._shard_sequences(schema_name) AS s))
          IS NOT TRUE THEN
        RAISE undefined_object USING
            MESSAGE = format('%s is not a sequence of add_sequence()', sequence),
            DETAIL = format('Those of the shard are %s. The first one, %s, stays.', (
                SELECT string_agg(s::text, ', ') FROM instaid._shard_sequences(schema_name) AS s),
                shard.sequence);
    END IF;
    PERFORM instaid._admit_sequences(schema_name, to_regclass(sequence));
    EXECUTE format('DROP SEQUENCE %s', sequence);
END $$;
COMMENT ON FUNCTION instaid.drop_sequence IS 'drop a sequence of add_sequence(), which no default '
'uses any more; waits for the transactions that have taken IDs';

CREATE OR REPLACE FUNCTION instaid.advance_past(sequence regclass, id bigint, epoch timestamptz)
    RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET client_min_messages = error AS $$
DECLARE
    main record;
    options instaid_sql.sequence_options;
    ms bigint;
    target bigint;
    last bigint;
BEGIN
    PERFORM instaid_sql._utc_epoch(epoch);
    IF epoch > clock_timestamp() THEN
        RAISE invalid_parameter_value USING MESSAGE = format('epoch %s is in the future', epoch),
            DETAIL = format('The clock reads %s.', clock_timestamp());
    END IF;
    IF id < 0 THEN
        RAISE numeric_value_out_of_range USING MESSAGE = format('ID %s is out of range', id),
            DETAIL = 'An ID must be between 0 and 9223372036854775807.';
    END IF;
    SELECT q.seqmin, instaid.extract_shard_id(q.seqmax) AS shard_id INTO main
    FROM pg_sequence AS q
    WHERE q.seqrelid = sequence AND q.seqmin BETWEEN 631152000001 AND 4102444800000;
    IF NOT FOUND THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('%s is not a sequence of a shard', sequence),
            HINT = 'instaid.shards lists the shards of this database.';
    END IF;
    options := instaid_sql._options(main.shard_id, main.seqmin);
    ms := (id >> instaid_sql._ms_shift()) + (extract(epoch FROM epoch) * 1000)::bigint
          - main.seqmin;
    IF ms >= instaid_sql._last_ms() THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('ID %s is past the last ID of sequence %s', id, sequence),
            DETAIL = format('Its time is %s; the IDs of the sequence end at %s.',
                            instaid.extract_timestamp(id, epoch),
                            instaid._end_of_ids(to_timestamp(main.seqmin / 1000.0)));
    END IF;
    -- keeps ALTER SEQUENCE out
    PERFORM pg_sequence_last_value(sequence);
    PERFORM instaid_sql._lock(sequence, options);
    target := instaid_sql._last_in_ms(ms, main.shard_id);
    last := pg_sequence_last_value(sequence);
    -- Others count on within the millisecond that is open, and setval() would undo that.  A
    -- sequence that was RESTARTed has no value, and nobody counts on.
    PERFORM setval(sequence, GREATEST(target, instaid_sql._last_or_ahead(
                       sequence, instaid_sql._clock(options))))
    WHERE (last >= target) IS NOT TRUE;
    PERFORM instaid_sql._flush_at_commit();
    RAISE SQLSTATE 'ID001';
EXCEPTION WHEN SQLSTATE 'ID001' THEN
    RETURN;
END $$;
COMMENT ON FUNCTION instaid.advance_past IS 'let a sequence issue only IDs above this one, '
'whatever their shard; error if the ID is negative; needs to own the sequence';

CREATE OR REPLACE FUNCTION instaid.freeze_shard(schema_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard CONSTANT record := instaid._lock_shard(schema_name, 'freeze_shard');
BEGIN
    PERFORM instaid._freeze_sequence(q, shard.options)
    FROM instaid._shard_sequences(schema_name) AS q;
END $$;
COMMENT ON FUNCTION instaid.freeze_shard IS 'wait for the transactions that have taken IDs of a '
'shard, and stop it; needs to own it';

CREATE OR REPLACE FUNCTION instaid.thaw_shard(schema_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    shard CONSTANT record := instaid._lock_shard(schema_name, 'thaw_shard');
BEGIN
    EXECUTE (SELECT string_agg(format('ALTER SEQUENCE %s MAXVALUE %s', q,
                                      (shard.options).maximum_value), '; ')
             FROM instaid._shard_sequences(schema_name) AS q);
END $$;
COMMENT ON FUNCTION instaid.thaw_shard(text) IS 'let a frozen shard issue IDs again';

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

\ir ../common/renumbering.sql

-- Make a shard of the extension, which instaid-move has restored, a shard of this edition.  What
-- is there in place of its functions cannot be called, but tells what they were, and who used
-- them.
CREATE OR REPLACE FUNCTION instaid._convert_shard(schema_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    shard record;
    functions oid[];
    sequences regclass[];
    defaults text;
    drops text;
    users text;
    grantees text;
BEGIN
    SELECT p.proowner::regrole AS owner, d.refobjid::regclass AS sequence, m[1]::integer AS id,
           m[2]::bigint AS epoch_ms, f.oid AS next_id, f.prosecdef,
           q.seqmax < (1::bigint << 53) - 1 AS is_frozen
    INTO shard
    FROM pg_proc AS p
         CROSS JOIN LATERAL regexp_match(p.prosrc, '^shard (\d{1,4}), epoch (\d{1,15})$') AS m
         JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
                            AND d.refclassid = 'pg_class'::regclass
         JOIN pg_sequence AS q ON q.seqrelid = d.refobjid
         JOIN pg_proc AS f ON f.oid = instaid._find_function(schema_name, 'next_id', '')
    WHERE p.oid = instaid._find_function(schema_name, 'next_ids', '23 2205');
    IF NOT FOUND THEN
        RAISE undefined_object USING
            MESSAGE = format('schema %I is not a shard of the extension', schema_name);
    END IF;
    PERFORM instaid._check_owner(shard.owner, 'shard', quote_ident(schema_name));
    functions := ARRAY(
        SELECT p.oid FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = schema_name AND p.proowner = shard.owner
          AND (p.prosrc = 'as next_ids(integer, regclass)' OR p.proname = 'next_ids'
               AND p.proargtypes = '23 2205'::oidvector));
    -- those of the tables, as _shard_sequences() of the extension finds them
    sequences := shard.sequence || ARRAY(
        SELECT DISTINCT q.oid::regclass
        FROM pg_depend AS f
             JOIN pg_depend AS d ON d.classid = f.classid AND d.objid = f.objid
                                AND d.refclassid = 'pg_class'::regclass
             JOIN pg_class AS q ON q.oid = d.refobjid AND q.relkind = 'S'
        WHERE f.classid = 'pg_attrdef'::regclass AND f.refclassid = 'pg_proc'::regclass
          AND f.refobjid = instaid._find_function(schema_name, 'next_id', '2205')
          AND q.oid <> shard.sequence
          AND q.relowner = shard.owner ORDER BY 1);
    SELECT string_agg(CASE u.role WHEN 0 THEN 'PUBLIC' ELSE u.role::regrole::text END, ', ')
    INTO users
    FROM (SELECT x.grantee
          FROM pg_proc AS p CROSS JOIN LATERAL aclexplode(COALESCE(
                   p.proacl, acldefault('f', p.proowner))) AS x WHERE p.oid = shard.next_id
          UNION
          SELECT x.grantee FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS x
          WHERE c.oid = ANY (sequences)) AS u (role)
    WHERE u.role <> shard.owner AND has_function_privilege(u.role, shard.next_id, 'EXECUTE')
      AND (shard.prosecdef OR EXISTS (
              SELECT FROM unnest(sequences) AS s
              WHERE has_sequence_privilege(u.role, s, 'USAGE, UPDATE')));

    -- The defaults are the same text with the new functions.  What else uses the old ones keeps
    -- them from being dropped.
    SELECT string_agg(format('ALTER TABLE ONLY %s ALTER %I SET DEFAULT %s', c.oid::regclass,
                             a.attname, pg_get_expr(d.adbin, d.adrelid)), '; '),
           string_agg(format('ALTER TABLE ONLY %s ALTER %I DROP DEFAULT', c.oid::regclass,
                             a.attname), '; ')
    INTO defaults, drops
    FROM pg_attrdef AS d JOIN pg_class AS c ON c.oid = d.adrelid AND c.relowner = shard.owner
         JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
    WHERE d.oid IN (SELECT f.objid FROM pg_depend AS f
                    WHERE f.classid = 'pg_attrdef'::regclass
                      AND f.refclassid = 'pg_proc'::regclass AND f.refobjid = ANY (functions));
    EXECUTE concat_ws('; ', drops, (
        SELECT 'DROP FUNCTION ' || string_agg(instaid._signature(f), ', ')
        FROM unnest(functions) AS f));

    PERFORM instaid._check_new_shard(schema_name, shard.id, to_timestamp(shard.epoch_ms / 1000.0));
    SELECT string_agg(DISTINCT CASE x.grantee WHEN 0 THEN 'PUBLIC'
                                              ELSE x.grantee::regrole::text END, ', ')
    INTO grantees
    FROM pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS x
    WHERE c.oid = ANY (sequences) AND x.grantee <> c.relowner;
    FOR i IN 1 .. cardinality(sequences) LOOP
        IF grantees IS NOT NULL THEN
            EXECUTE format('REVOKE USAGE, UPDATE ON SEQUENCE %s FROM %s CASCADE', sequences[i],
                           grantees);
        END IF;
        PERFORM instaid._prepare_sequence(sequences[i], shard.id, shard.epoch_ms, false);
    END LOOP;
    PERFORM instaid_sql._declare(schema_name, shard.id, shard.epoch_ms, shard.sequence);
    PERFORM instaid._restrict_shards(ARRAY[schema_name]), instaid._admit_sequences(schema_name);
    EXECUTE concat_ws('; ', defaults, format(
        'GRANT EXECUTE ON FUNCTION %1$I.next_id(%1$I.id_sequence),'
        ' %1$I.next_ids(integer, %1$I.id_sequence) TO ', schema_name) || users);
    PERFORM instaid.freeze_shard(schema_name) WHERE shard.is_frozen;
END $$;
