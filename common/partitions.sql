---- Partitions ----

-- Refuse a caller who does not own a table, and a superuser's table whose place the owner of its
-- schema could give to another one before a command that names it.
CREATE OR REPLACE FUNCTION instaid._check_table_owner(relation regclass) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    main record;
BEGIN
    SELECT c.relowner, n.oid, n.nspname, n.nspowner::regrole AS schema_owner INTO main
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = relation;
    PERFORM instaid._check_owner(main.relowner, 'table', relation::text);
    IF NOT instaid._can_name(main.oid) THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('table %s belongs to a superuser, and its schema does not', relation),
            DETAIL = format('Role %s, which owns schema %I, could put another table in its place'
                            ' meanwhile.', main.schema_owner, main.nspname),
            HINT = format('Give it to the owner of the schema: ALTER TABLE %s OWNER TO %s;',
                          relation, main.schema_owner);
    END IF;
END $$;

-- A table, its partitions and its children, at all levels, and their owners.
CREATE OR REPLACE FUNCTION instaid._descendants(relation oid, OUT relid oid, OUT owner regrole)
    RETURNS SETOF record LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    WITH RECURSIVE descendant (relid) AS (
        SELECT relation
        UNION SELECT i.inhrelid FROM descendant AS d, pg_inherits AS i WHERE i.inhparent = d.relid)
    -- not by a join, which can read all of pg_class
    SELECT d.relid, (SELECT c.relowner FROM pg_class AS c WHERE c.oid = d.relid)
    FROM descendant AS d ORDER BY d.relid;
END;

-- Tables with other partitions give no rows.  Without their OID, pg_get_expr() takes no lock.
-- audit(), which joins all catalogs by hash, calls this for one table after another.
CREATE OR REPLACE FUNCTION instaid.list_partitions(
    parent regclass, epoch timestamptz DEFAULT instaid.default_epoch(), OUT partition regclass,
    OUT from_time timestamptz, OUT to_time timestamptz, OUT first_id bigint, OUT end_id bigint)
    RETURNS SETOF record LANGUAGE sql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp SET enable_nestloop = on
BEGIN ATOMIC
    SELECT t.oid::regclass,
           CASE WHEN b.bound[1] = 'MINVALUE' THEN '-infinity' WHEN n.first_id <= 0 THEN epoch
                ELSE instaid.extract_timestamp(n.first_id, epoch) END,
           CASE WHEN b.bound[2] = 'MAXVALUE' THEN 'infinity' WHEN n.end_id <= 0 THEN epoch
                -- a bound within a millisecond leaves IDs of it
                ELSE instaid.extract_timestamp(n.end_id - 1, epoch) + interval '1 ms' END,
           n.first_id, n.end_id
    FROM (SELECT c.oid, pg_get_expr(c.relpartbound, 0) AS bounds
          FROM pg_partitioned_table AS p
               JOIN pg_attribute AS a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
               JOIN pg_inherits AS i ON i.inhparent = p.partrelid AND NOT i.inhdetachpending
               JOIN pg_class AS c ON c.oid = i.inhrelid
          WHERE p.partrelid = parent AND p.partstrat = 'r' AND p.partnatts = 1
            AND a.atttypid IN ('bigint'::regtype,
                               COALESCE(to_regtype('instaid.id'), 'bigint'::regtype))
          -- the bounds of others are not read below
          OFFSET 0) AS t
         CROSS JOIN LATERAL regexp_match(t.bounds,
             '^FOR VALUES FROM [(]''?([^'')]+)''?[)] TO [(]''?([^'')]+)''?[)]$') AS b (bound)
         CROSS JOIN LATERAL (SELECT NULLIF(b.bound[1], 'MINVALUE')::bigint,
                                    NULLIF(b.bound[2], 'MAXVALUE')::bigint) AS n (first_id, end_id)
    ORDER BY b.bound IS NULL, n.end_id;
END;
COMMENT ON FUNCTION instaid.list_partitions IS 'the partitions of a table by range of its IDs, '
'with the bounds as times and as IDs; the default partition, with nulls, is last';

CREATE OR REPLACE FUNCTION instaid.create_partitions(parent regclass, from_time timestamptz,
                                          to_time timestamptz, step interval,
                                          epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS SETOF regclass LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
    SET search_path = pg_catalog, pg_temp SET datestyle = 'ISO' SET timezone = 'UTC'
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    max_partitions CONSTANT integer := 1000;
    main record;
    expires_at timestamptz;
    name_format text;
    part record;
    other record;
    name text;
    has_rows boolean := false;
BEGIN
    PERFORM instaid._check_no_nulls('create_partitions', json_build_object(
        'parent', parent, 'from_time', from_time, 'to_time', to_time, 'step', step,
        'epoch', epoch));
    SELECT c.relname, n.nspname, c.relowner::regrole AS owner, a.attname INTO main
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
         JOIN pg_partitioned_table AS p ON p.partrelid = c.oid
         JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = p.partattrs[0]
    WHERE c.oid = parent AND p.partstrat = 'r' AND p.partnatts = 1
      AND a.atttypid IN ('bigint'::regtype, COALESCE(to_regtype('instaid.id'), 'bigint'));
    IF NOT FOUND THEN
        RAISE wrong_object_type USING
            MESSAGE = format('%s is not partitioned by range of one bigint column', parent),
            DETAIL = COALESCE('It is partitioned by ' || pg_get_partkeydef(parent) || '.',
                              'It is not partitioned.'),
            HINT = 'Create the table with PARTITION BY RANGE (id), where id is a bigint column.';
    END IF;
    PERFORM instaid._check_table_owner(parent);
    IF step < '1 ms' OR from_time >= to_time THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('step %s does not lead from %s to %s', step, from_time, to_time),
            DETAIL = 'from_time must be before to_time, and the step at least 1 ms.';
    END IF;
    -- longer than the format; a thousand of them are not past the times of PostgreSQL
    step := LEAST(step, '200 years');
    -- refuses an infinite epoch
    expires_at := instaid._end_of_ids(epoch);
    IF from_time + step <= epoch OR to_time > expires_at THEN
        RAISE numeric_value_out_of_range USING
            MESSAGE = format('times from %s to %s are out of range for an ID', from_time, to_time),
            DETAIL = format('With epoch %s, partitions can begin at %s and end at %s.',
                            epoch, epoch, expires_at);
    ELSIF from_time + max_partitions * step < to_time THEN
        RAISE program_limit_exceeded USING
            MESSAGE = format('too many partitions from %s to %s', from_time, to_time),
            DETAIL = format('One call creates up to %s; with step %s they would end at %s.',
                            max_partitions, step, from_time + max_partitions * step),
            HINT = 'Choose a longer step, or an earlier to_time.';
    END IF;
    name_format := CASE
        WHEN from_time = date_trunc('day', from_time)
             AND step = date_trunc('day', justify_hours(step)) THEN 'YYYYMMDD'
        WHEN from_time = date_trunc('second', from_time)
             AND step = date_trunc('second', step) THEN 'YYYYMMDD_HH24MISS'
        ELSE 'YYYYMMDD_HH24MISSUS' END;

    -- Two sessions cannot both find a partition missing: one waits for the other.
    EXECUTE format('LOCK TABLE ONLY %s IN SHARE UPDATE EXCLUSIVE MODE', parent);
    -- it can have another owner now
    PERFORM instaid._check_table_owner(parent);
    FOR part IN
        SELECT s.since, s.until, i.first_id, i.end_id,
               (SELECT NULLIF(p.partdefid, 0)::regclass FROM pg_partitioned_table AS p
                WHERE p.partrelid = parent) AS default_partition
        FROM generate_series(0, max_partitions - 1) AS n
             -- by multiples of the step: after a shorter month, the 31st comes again
             CROSS JOIN LATERAL (SELECT from_time + n * step AS since,
                                        from_time + (n + 1) * step AS until) AS s
             CROSS JOIN LATERAL (SELECT instaid._min_id_from(s.since, epoch) AS first_id,
                                        instaid._min_id_from(s.until, epoch) AS end_id) AS i
        -- a partition can hold several steps, as a table that was attached does
        WHERE s.since < to_time AND NOT EXISTS (
            SELECT FROM instaid.list_partitions(parent) AS p
            WHERE p.from_time IS NOT NULL AND (p.first_id IS NULL OR p.first_id <= i.first_id)
              AND (p.end_id IS NULL OR p.end_id >= i.end_id)) ORDER BY n
    LOOP
        -- PostgreSQL reads the default partition, which can hold code of its owner.
        IF EXISTS (SELECT FROM instaid._descendants(part.default_partition) AS d
                   WHERE d.owner <> main.owner) THEN
            RAISE object_not_in_prerequisite_state USING
                MESSAGE = format('default partition %s does not belong to the owner of table %s',
                                 part.default_partition, parent),
                DETAIL = format('The owner, %s, must be able to read it and its partitions.',
                                main.owner),
                HINT = 'Give them to one owner, or detach the default partition.';
        END IF;
        name := format('%s_%s', main.relname, to_char(part.since, name_format));
        PERFORM instaid._check_name('partition', name);
        name := format('%I.%I', main.nspname, name);
        IF to_regclass(name) IS NOT NULL THEN
            RAISE duplicate_table USING MESSAGE = format('relation %s already exists', name),
                DETAIL = format('It is not the partition from %s to %s, or is being detached.',
                                part.since, part.until),
                HINT = 'Choose from_time and step as before, or rename it, or drop it if nothing'
                       ' uses it.';
        END IF;
        -- PostgreSQL refuses the following, too, and does not say what to do.
        SELECT p.* INTO other FROM instaid.list_partitions(parent, epoch) AS p
        WHERE p.from_time IS NOT NULL AND part.first_id IS NOT NULL
          AND (p.first_id < part.end_id) IS NOT FALSE
          AND (p.end_id > part.first_id) IS NOT FALSE LIMIT 1;
        IF FOUND THEN
            RAISE invalid_object_definition USING
                MESSAGE = format('partition %s would overlap partition %s', name, other.partition),
                DETAIL = format('It would be from %s to %s, and that one is from %s to %s.',
                                part.since, part.until, other.from_time, other.to_time),
                HINT = 'Choose from_time and step so that a step begins where that one ends.';
        END IF;
        IF part.default_partition IS NOT NULL THEN
            EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %I BETWEEN %L AND %s)',
                           part.default_partition, main.attname, part.first_id,
                           COALESCE(part.end_id - 1, 9223372036854775807)) INTO has_rows;
        END IF;
        IF has_rows THEN
            RAISE check_violation USING
                MESSAGE = format('default partition %s has rows from %s to %s',
                                 part.default_partition, part.since, part.until),
                DETAIL = 'They belong in the new partition. PostgreSQL does not move them.',
                HINT = 'Let its owner detach the default partition, create the others, and insert'
                       ' its rows into the table.';
        END IF;
        EXECUTE format(
            'CREATE TABLE %s PARTITION OF %s FOR VALUES FROM (%s) TO (%s)', name, parent,
            COALESCE(quote_literal(part.first_id), 'MAXVALUE'),
            COALESCE(quote_literal(part.end_id), 'MAXVALUE'));
        RETURN NEXT name::regclass;
    END LOOP;
END $$;
COMMENT ON FUNCTION instaid.create_partitions IS 'create and return the missing partitions of a '
'table by range of its IDs, one for each step, up to 1000; only for the owner';
