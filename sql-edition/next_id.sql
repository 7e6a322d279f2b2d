/* sql-edition/next_id.sql */

-- Making IDs.  These functions, and those that _declare() creates in the schema of a shard, are
-- all that an INSERT runs with the rights of the shard's owner.
--
-- A shard's sequence holds the ID that it issued last.  schema.sql shows the layout of an ID.
-- From one millisecond to the next, a sequence has 8,388,608 values.  1,024 of them are IDs of
-- the shard, and the others are a guard:
--
-- - nextval() only counts within a millisecond.  A session looks at the sequence before each
--   nextval(), and does not call it if there is no room.  A value past the room is dropped.
--   The count therefore exceeds the room by less than the number of sessions, and PostgreSQL
--   has at most 262,143: it never reaches the next millisecond.
-- - setval() opens a millisecond.  Only the session that has the shard's lock calls it, and
--   only for a later millisecond than it has seen under the lock.
--
-- So the sequence never goes back, and no value is issued twice.  Neither a step of the clock
-- nor a session that stops changes this, because the clock only chooses which millisecond is
-- opened.  test/model/gap.pml is the proof.
--
-- An ID ahead of the clock is issued only if the commit of its transaction flushes WAL.
-- Otherwise a crash could lose the setval() of another transaction, and the ID would come
-- again: see _flush_at_commit().
--
-- Nothing here sleeps: pg_sleep() goes by the clock, and a step back would make it long.

---- Making IDs ----

-- The arguments of these functions:
--
-- - sequence: a sequence of the shard.
-- - options: what pg_sequence_parameters() must say of it.  START and MINVALUE are the epoch in
--   milliseconds since 1970, and MAXVALUE is the last ID of the shard.  So a sequence tells
--   whose it is, in a dump, too.
-- - t: what the clock reads, as the first ID of the shard in that millisecond.
--
-- They run with the rights of the shard's owner.  What each INSERT can reach does without SET,
-- which costs more than qualified names.

DO $$
BEGIN
    IF to_regtype('instaid_sql.sequence_options') IS NULL THEN
        CREATE TYPE instaid_sql.sequence_options AS (
            start_value bigint, minimum_value bigint, maximum_value bigint, increment bigint,
            cycle_option boolean, cache_size bigint, data_type oid);
    END IF;
END $$;
COMMENT ON TYPE instaid_sql.sequence_options IS 'what pg_sequence_parameters() returns';

-- The options of the sequences of this shard and epoch.
CREATE OR REPLACE FUNCTION instaid_sql._options(shard_id integer, epoch_ms bigint)
    RETURNS instaid_sql.sequence_options
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN ROW(epoch_ms, epoch_ms,
               instaid_sql._last_in_ms(instaid_sql._last_ms(), shard_id), 1, false, 1,
               20)::instaid_sql.sequence_options;

-- The first ID of a shard in the millisecond that the clock reads.
-- A cast to bigint rounds to the nearest.  Therefore half a millisecond is taken away, less half
-- a microsecond for the error of a double.  A clock that reads a time before the epoch counts as
-- the epoch: it was set back, and the sequence goes on.  One that reads a time after the last ID
-- is refused, before it moves the sequence to its end.
CREATE OR REPLACE FUNCTION instaid_sql._clock(options instaid_sql.sequence_options) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    clock CONSTANT timestamptz := clock_timestamp();
    ms CONSTANT bigint := GREATEST(date_part('epoch', clock) * 1000
                                   - (options.minimum_value + 0.4995::float8), 0);
BEGIN
    IF ms > instaid_sql._last_ms() THEN
        RAISE invalid_parameter_value USING MESSAGE = format('the IDs of epoch %s are used up',
                             to_timestamp(options.minimum_value / 1000.0)),
            DETAIL = format('The clock reads %s; an epoch can be up to 34.8 years before it.',
                            clock),
            HINT = 'Correct the server''s clock, or let tables use a shard with a later epoch.';
    END IF;
    RETURN ms * (1::bigint << instaid_sql._ms_shift())
           + (options.maximum_value & instaid_sql._shard_id_mask());
END $$;

-- Say why a sequence cannot serve, unless the extension makes its IDs now.
-- The extension gives the sequence its range of ticks, and next_id() another name.  A call that
-- waited for that meanwhile ends here.  It has not looked at the sequence yet: the first look
-- keeps ALTER SEQUENCE out until the transaction ends.
-- The sequence of an adopted shard can be in any schema.  So this looks for the extension, and not
-- by the snapshot of the transaction, which may not have it.
CREATE OR REPLACE FUNCTION instaid_sql._refuse_unless_adopted(
    sequence regclass, options instaid_sql.sequence_options) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    actual CONSTANT record := pg_sequence_parameters(sequence);
    main record;
BEGIN
    IF actual.minimum_value = 1
       AND to_regprocedure('instaid.next_id(regclass, integer, timestamptz)') IS NOT NULL THEN
        RETURN;
    END IF;
    SELECT n.nspname, c.relname INTO main
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = sequence;
    IF actual.maximum_value < options.maximum_value
       AND (actual.maximum_value # options.maximum_value) & instaid_sql._low_bits() = 0 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('shard %I is frozen', main.nspname),
            DETAIL = format('Its sequence "%s" makes no IDs until the shard is thawed.',
                            main.relname),
            HINT = format('If the shard was moved, use it in its new place. Otherwise its owner'
                          ' can thaw it: SELECT instaid.thaw_shard(%L);', main.nspname);
    ELSIF (actual.minimum_value, actual.maximum_value)
          <> (options.minimum_value, options.maximum_value) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence "%s" cannot serve as a source of IDs', main.relname),
            DETAIL = format('It has a range of its own, %s to %s. Those of this shard have the'
                            ' range %s to %s.', actual.minimum_value, actual.maximum_value,
                            options.minimum_value, options.maximum_value),
            HINT = 'Use a sequence of the shard, as instaid.add_sequence() creates it. If this is'
                   ' one, instaid.audit() has the cure.';
    END IF;
    RAISE object_not_in_prerequisite_state USING
        MESSAGE = format('sequence "%s" cannot serve as a source of IDs', main.relname),
        DETAIL = format('Its parameters are %s. They must be %s.', actual, options),
        HINT = format('ALTER SEQUENCE %I.%I AS bigint INCREMENT BY 1 START WITH %s CACHE 1'
                      ' NO CYCLE;', main.nspname, main.relname, actual.minimum_value);
END $$;

-- These options, or those that renumber_shard() has given to the sequence and its shard.
-- A call that waited for that meanwhile ends here, or in _elsewhere().
CREATE OR REPLACE FUNCTION instaid_sql._renumbered(
    sequence regclass, options instaid_sql.sequence_options) RETURNS instaid_sql.sequence_options
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    actual CONSTANT record := pg_sequence_parameters(sequence);
BEGIN
    -- The text of now, which the snapshot of a transaction may not have.  An adopted shard's
    -- sequence can be in another schema; those of add_sequence() are in the shard's.
    IF actual <> options AND EXISTS (
        SELECT FROM pg_proc AS p
        WHERE p.proname = 'next_ids' AND p.prokind = 'f'
          AND pg_get_userbyid(p.proowner) = current_user
          AND p.oid IN (
              SELECT d.objid FROM pg_depend AS d
              WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_class'::regclass
                AND d.refobjid = sequence
              UNION ALL
              SELECT n.oid FROM pg_class AS c JOIN pg_proc AS n ON n.pronamespace = c.relnamespace
              WHERE c.oid = sequence AND n.proname = 'next_ids')
          AND strpos(pg_get_functiondef(p.oid), actual::text) > 0)
    THEN
        RETURN instaid_sql._options((actual.maximum_value >> instaid_sql._sequence_bits()
                                     & instaid_sql._max_shard_id())::integer,
                                    actual.minimum_value);
    END IF;
    RETURN options;
END $$;

-- The next ID of a sequence that was renumbered, or that the extension has adopted; refuse any
-- other that cannot serve.
CREATE OR REPLACE FUNCTION instaid_sql._elsewhere(
    sequence regclass, options instaid_sql.sequence_options) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    renumbered CONSTANT instaid_sql.sequence_options := instaid_sql._renumbered(sequence, options);
    id bigint;
BEGIN
    IF renumbered <> options THEN
        RETURN instaid_sql._open(sequence, instaid_sql._clock(renumbered), renumbered);
    END IF;
    PERFORM instaid_sql._refuse_unless_adopted(sequence, options);
    EXECUTE 'SELECT instaid.next_id($1, $2, $3)' INTO id
        USING sequence, (options.maximum_value >> instaid_sql._sequence_bits()
                         & instaid_sql._max_shard_id())::integer,
              to_timestamp(options.minimum_value / 1000.0);
    RETURN id;
END $$;

-- Lock a sequence for setval(); false if the extension has adopted it; refuse any other that
-- cannot serve.
-- The lock is of a view: ANALYZE, which would take the same lock, leaves views alone.  Roles with
-- USAGE on the schema can hold it, as they can any sequence: PostgreSQL locks some names before it
-- checks rights (SECURITY.md).  An advisory lock could be held by any role.  The sequences of a
-- shard share one lock, which their schema tells.  If the schema was renamed meanwhile, its old
-- name can be that of another shard: then the lock of the new name is taken, too.
--
-- Who has the lock sends nothing to the client: one that asks for debugging messages, and does
-- not read them, would keep it.
CREATE OR REPLACE FUNCTION instaid_sql._lock(
    sequence regclass, options instaid_sql.sequence_options) RETURNS boolean
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    schema text;
    locked text;
BEGIN
    LOOP
        IF pg_sequence_parameters(sequence) <> options THEN
            PERFORM instaid_sql._refuse_unless_adopted(sequence, options);
            RETURN false;
        END IF;
        schema := (pg_identify_object('pg_class'::regclass, sequence, 0)).schema;
        EXIT WHEN schema = locked;
        EXECUTE format('LOCK %s.id_sequence_lock IN SHARE UPDATE EXCLUSIVE MODE', schema);
        locked := schema;
    END LOOP;
    RETURN true;
END $$;

-- The next ID of a sequence whose lock the caller has.
-- Under the lock, where the sequence may be at or after t: an ID of the millisecond in which it
-- is, or else the first of a later one.  An ID may be up to 100 ms late, as in _share().
CREATE OR REPLACE FUNCTION instaid_sql._take(sequence regclass, t bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    base CONSTANT bigint := t & instaid_sql._shard_id_mask();
    last bigint := instaid_sql._last_or_ahead(sequence, t);
    id bigint;
BEGIN
    IF last >= t - (100::bigint << instaid_sql._ms_shift())
       AND (last + 1 - base) & instaid_sql._shard_id_mask() = 0 THEN
        id := nextval(sequence);
    END IF;
    IF ((id - base) & instaid_sql._shard_id_mask() = 0) IS NOT TRUE THEN
        last := COALESCE(id, last);
        -- the low bits run on
        id := setval(sequence, GREATEST(t, instaid_sql._ms_after(sequence, last, base))
                               + (last + 1 & instaid_sql._max_sequence()));
    END IF;
    IF id > t + instaid_sql._max_sequence() THEN
        PERFORM instaid_sql._flush_at_commit();
    END IF;
    RETURN id;
END $$;

-- The first ID of the millisecond after the one of a value; error if there is none.
CREATE OR REPLACE FUNCTION instaid_sql._ms_after(sequence regclass, last bigint, base bigint)
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF last - base >> instaid_sql._ms_shift() >= instaid_sql._last_ms() THEN
        RAISE sequence_generator_limit_exceeded USING
            MESSAGE = format('sequence %s is past the last ID of its epoch', sequence),
            DETAIL = format('The sequence is at %s. The clock reads %s.', last, clock_timestamp()),
            HINT = 'If the sequence was set too far by mistake, set it back with setval().';
    END IF;
    RETURN (last - base | instaid_sql._low_bits()) + 1 + base;
END $$;

-- The last value of a sequence; if it was restarted, one that is 2.1 s ahead of the clock.
-- A sequence that was RESTARTed, or restored without data, begins after all that next_ids() can
-- have reserved.  From PostgreSQL 17 on, pg_sequence_last_value() is null for want of a
-- privilege, too, and setval() could then go back.
CREATE OR REPLACE FUNCTION instaid_sql._last_or_ahead(sequence regclass, t bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last CONSTANT bigint := pg_sequence_last_value(sequence);
BEGIN
    IF last IS NULL AND NOT has_sequence_privilege(sequence, 'SELECT, USAGE') THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('permission denied for sequence %s', sequence);
    END IF;
    RETURN COALESCE(last, t + (2100::bigint << instaid_sql._ms_shift())
                          + instaid_sql._max_sequence());
END $$;

-- The next ID of a sequence that has no room in the millisecond of the clock.
-- Opens the millisecond of the clock, or takes an ID of a later one.  The lock is taken in a
-- subtransaction that is always rolled back: by the RAISE, by an error, or by a cancel.  What
-- setval() did stays.  An exception that is raised for this must not be caught as another:
-- SQLSTATE 'ID000' would be the whole class ID.
CREATE OR REPLACE FUNCTION instaid_sql._open(sequence regclass, t bigint,
                                  options instaid_sql.sequence_options) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET client_min_messages = error AS $$
DECLARE
    schema pg_catalog.text;
    id bigint;
BEGIN
    BEGIN
        -- _lock(), without the call and the wait; null if the sequence cannot serve
        schema := (pg_catalog.pg_identify_object('pg_catalog.pg_class'::pg_catalog.regclass,
                                                 sequence, 0)).schema;
        EXECUTE CASE
            WHEN pg_catalog.pg_sequence_parameters(sequence) OPERATOR(pg_catalog.*=) options
            THEN 'LOCK ' OPERATOR(pg_catalog.||) schema OPERATOR(pg_catalog.||)
                 '.id_sequence_lock IN SHARE UPDATE EXCLUSIVE MODE NOWAIT' END;
        id := CASE
            WHEN pg_catalog.pg_sequence_last_value(sequence) OPERATOR(pg_catalog.<) t
                 -- The last millisecond also stands for a clock past it: _clock() tells.
                 AND t OPERATOR(pg_catalog.<) 9223372036846387200
                 AND (pg_catalog.pg_identify_object('pg_catalog.pg_class'::pg_catalog.regclass,
                                                    sequence, 0)).schema
                     OPERATOR(pg_catalog.=) schema
            THEN pg_catalog.setval(sequence, t OPERATOR(pg_catalog.+) (
                     pg_catalog.pg_sequence_last_value(sequence) OPERATOR(pg_catalog.+) 1
                     OPERATOR(pg_catalog.&) instaid_sql._max_sequence())) END;
        IF id IS NULL THEN
            PERFORM instaid_sql._lock(sequence, options);
            id := instaid_sql._take(sequence, instaid_sql._clock(options));
        END IF;
        RAISE SQLSTATE 'ID001';
    EXCEPTION
        WHEN SQLSTATE 'ID001' THEN
            RETURN id;
        WHEN null_value_not_allowed THEN
            RETURN instaid_sql._elsewhere(sequence, options);
        WHEN lock_not_available THEN
            NULL;
    END;
    RETURN instaid_sql._share(sequence, t, options);
END $$;

-- The next ID of a sequence while another session has its lock.
-- Another session opens a millisecond, and may be off the processor.  An ID that is up to 100 ms
-- late is better than a queue, which gives one ID for each turn of the lock.
CREATE OR REPLACE FUNCTION instaid_sql._share(sequence regclass, t bigint,
                                   options instaid_sql.sequence_options) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET client_min_messages = error AS $$
DECLARE
    late CONSTANT bigint := t - (100::bigint << instaid_sql._ms_shift());
    id bigint;
BEGIN
    FOR i IN 1 .. 50 LOOP
        -- less late, both are 0 in an ID of this shard that is not before late
        id := CASE WHEN pg_sequence_last_value(sequence) + 1 - late
                        & instaid_sql._sign_and_shard_id_mask() = 0
                   THEN nextval(sequence) END;
        IF (id - t) & instaid_sql._shard_id_mask() = 0 THEN
            IF id > t + instaid_sql._max_sequence() THEN
                PERFORM instaid_sql._flush_at_commit();
            END IF;
            RETURN id;
        END IF;
    END LOOP;
    PERFORM instaid_sql._lock(sequence, options);
    id := instaid_sql._take(sequence, instaid_sql._clock(options));
    RAISE SQLSTATE 'ID001';
EXCEPTION WHEN SQLSTATE 'ID001' THEN
    RETURN id;
END $$;

-- Let the COMMIT of this transaction flush the WAL of all transactions so far.
-- An ID ahead of the clock is only as durable as the setval() that opened its millisecond, which
-- can be of a transaction that is still open.  COMMIT flushes it if its own transaction has
-- written WAL.  A transaction ID alone does not make it flush.
--
-- One case is left: a transaction that has an ID and has written no WAL, for example because it
-- only writes to temporary tables.
CREATE OR REPLACE FUNCTION instaid_sql._flush_at_commit() RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF pg_current_xact_id_if_assigned() IS NULL THEN
        PERFORM pg_logical_emit_message(true, 'instaid', ''::text);
    END IF;
END $$;

-- The first of many IDs, which fill milliseconds; null if too many are reserved already.
-- Reserves whole milliseconds by one setval().  Null if the sequence is over a second ahead of
-- the clock, since taking the IDs one by one is slower, or if the extension has adopted it.
CREATE OR REPLACE FUNCTION instaid_sql._reserve(
    sequence regclass, options instaid_sql.sequence_options, count integer) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET client_min_messages = error AS $$
DECLARE
    t bigint;
    last bigint;
    first bigint;
BEGIN
    IF NOT instaid_sql._lock(sequence, options) THEN
        RETURN NULL;
    END IF;
    t := instaid_sql._clock(options);
    last := instaid_sql._last_or_ahead(sequence, t);
    IF last <= t + (1000::bigint << instaid_sql._ms_shift()) THEN
        first := GREATEST(t, instaid_sql._ms_after(sequence, last,
                                                   t & instaid_sql._shard_id_mask()));
        PERFORM setval(sequence, first
                       + ((count - 1)::bigint >> instaid_sql._sequence_bits()
                          << instaid_sql._ms_shift())
                       + (count - 1 & instaid_sql._max_sequence()));
    END IF;
    RAISE SQLSTATE 'ID001';
EXCEPTION WHEN SQLSTATE 'ID001' THEN
    RETURN first;
END $$;

-- The next IDs of a sequence, in increasing order.
CREATE OR REPLACE FUNCTION instaid_sql._next_ids(
    sequence regclass, options instaid_sql.sequence_options, count integer) RETURNS SETOF bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE ROWS 1000
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    base bigint;
    t bigint;
    id bigint;
BEGIN
    IF count NOT BETWEEN 1 AND 1000000 THEN
        RAISE numeric_value_out_of_range USING MESSAGE = format('count %s is out of range', count),
            DETAIL = 'The count must be between 1 and 1000000.';
    END IF;
    -- the first look, before the options are compared
    PERFORM pg_sequence_last_value(sequence);
    options := instaid_sql._renumbered(sequence, options);
    base := options.maximum_value & instaid_sql._shard_id_mask();
    IF count > instaid_sql._max_sequence() THEN
        id := instaid_sql._reserve(sequence, options, count);
    END IF;
    IF id IS NOT NULL THEN
        -- most of them are ahead of the clock
        PERFORM instaid_sql._flush_at_commit();
        RETURN QUERY SELECT id + (n >> instaid_sql._sequence_bits() << instaid_sql._ms_shift())
                            + (n & instaid_sql._max_sequence())
                     FROM generate_series(0::bigint, count - 1) AS n;
        RETURN;
    END IF;
    -- as next_id() does
    FOR i IN 1 .. count LOOP
        t := LEAST(GREATEST(date_part('epoch', clock_timestamp()) * 1000
                            - (options.minimum_value + 0.4995::float8), 0),
                   instaid_sql._last_ms())::bigint
             * (1::bigint << instaid_sql._ms_shift()) + base;
        id := CASE WHEN pg_sequence_last_value(sequence) + 1 - t
                        & instaid_sql._sign_and_shard_id_mask() = 0
                   THEN nextval(sequence) END;
        IF (id - t) & instaid_sql._shard_id_mask() = 0 THEN
            IF id > t + instaid_sql._max_sequence()
               AND pg_current_xact_id_if_assigned() IS NULL THEN
                PERFORM instaid_sql._flush_at_commit();
            END IF;
        ELSE
            id := instaid_sql._open(sequence, t, options);
        END IF;
        RETURN NEXT id;
    END LOOP;
END $$;

-- Create the type and the functions of a shard, or replace the functions.
-- The functions of a shard are in its schema, belong to its owner, and hold its shard ID and
-- its epoch as constants.  An adopted shard has a next_id() without arguments beside them.
--
-- next_id() runs with the rights of its owner, so that no other role needs any right on the
-- sequence: who has UPDATE could set it back.  A caller can pass a sequence.  The type of the
-- parameter admits only those of the shard; a sequence of another shard, whose nextval() runs
-- past its room, would look like one of this shard.  The type and the default follow when the
-- sequence or the schema is renamed.
--
-- It has as few expressions as possible: PL/pgSQL prepares each of them anew in each
-- transaction.  It is without SET, so it names everything in full.
CREATE OR REPLACE FUNCTION instaid_sql._declare(
    schema_name text, shard_id integer, epoch_ms bigint, sequence regclass,
    adopted boolean DEFAULT false, or_replace boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $create$
DECLARE
    options CONSTANT instaid_sql.sequence_options := instaid_sql._options(shard_id, epoch_ms);
    default_value CONSTANT text := format('%L::regclass', sequence);
    three_ms CONSTANT bigint := 3::bigint << instaid_sql._ms_shift();
BEGIN
    IF or_replace THEN
        SELECT p.pronargdefaults = 0 INTO adopted FROM pg_proc AS p
        WHERE p.oid = instaid._find_function(
            schema_name, 'next_id',
            to_regtype(format('%I.id_sequence', schema_name))::oid::text::oidvector);
    ELSE
        EXECUTE format('CREATE DOMAIN %I.id_sequence AS regclass'
                       ' CONSTRAINT is_a_sequence_of_this_shard CHECK (VALUE = %s)', schema_name,
                       default_value);
    END IF;
    EXECUTE format($f$
CREATE %7$s FUNCTION %1$I.next_id(sequence %1$I.id_sequence %3$s) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER AS $$
DECLARE
    -- The first ID of shard 0 three ms before the millisecond that the clock reads.  To open a
    -- millisecond takes longest; so a busy shard does it 250 times a second, and not 1,000.
    -- It stays within the IDs of the epoch: see _clock().
    t CONSTANT pg_catalog.int8 := LEAST(GREATEST(
            pg_catalog.date_part('epoch', pg_catalog.clock_timestamp())
            OPERATOR(pg_catalog.*) 1000::pg_catalog.float8
            OPERATOR(pg_catalog.-) %4$s::pg_catalog.float8,
            0::pg_catalog.float8), %13$s::pg_catalog.float8)::pg_catalog.int8
        OPERATOR(pg_catalog.*) %8$s;
    -- There is room if the next value is an ID of this shard, and not before t: less t, its
    -- sign is 0, and it has the bits of the shard ID.
    id CONSTANT pg_catalog.int8 := CASE
        WHEN (pg_catalog.pg_sequence_last_value(sequence)
                OPERATOR(pg_catalog.+) 1 OPERATOR(pg_catalog.-) t)
             OPERATOR(pg_catalog.&) (%9$s) OPERATOR(pg_catalog.=) %5$s
        THEN pg_catalog.nextval(sequence) END;
BEGIN
    IF id IS NULL THEN
        RETURN instaid_sql._open(sequence, t OPERATOR(pg_catalog.+) %10$s,
                                 %6$L::instaid_sql.sequence_options);
    ELSIF (id OPERATOR(pg_catalog.-) t) OPERATOR(pg_catalog.&) (%11$s) OPERATOR(pg_catalog.=) %5$s
    THEN
        RETURN id;                      -- of the last four milliseconds
    ELSIF id OPERATOR(pg_catalog.&) %12$s OPERATOR(pg_catalog.=) %5$s THEN
        IF pg_catalog.pg_current_xact_id_if_assigned() IS NULL THEN     -- ahead of it
            PERFORM instaid_sql._flush_at_commit();
        END IF;
        RETURN id;
    END IF;
    -- past the room: others took the rest of it
    RETURN instaid_sql._open(sequence, t OPERATOR(pg_catalog.+) %10$s,
                             %6$L::instaid_sql.sequence_options);
END $$;
CREATE %7$s FUNCTION %1$I.next_ids(count integer, sequence %1$I.id_sequence DEFAULT %2$s)
    RETURNS SETOF bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER ROWS 1000
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT instaid_sql._next_ids(sequence, %6$L::instaid_sql.sequence_options, count);
END $$;
$f$, schema_name, default_value,
     CASE WHEN adopted IS NOT TRUE THEN 'DEFAULT ' || default_value END, epoch_ms + 3.4995,
     shard_id << instaid_sql._sequence_bits(), options,
     CASE WHEN or_replace THEN 'OR REPLACE' END, 1::bigint << instaid_sql._ms_shift(),
     instaid_sql._sign_and_shard_id_mask(), three_ms + (shard_id << instaid_sql._sequence_bits()),
     ~ (three_ms | instaid_sql._max_sequence()),
     instaid_sql._shard_id_mask(), instaid_sql._last_ms() - 3);
END
$create$;
