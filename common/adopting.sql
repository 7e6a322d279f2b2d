---- Adopting ----

-- The owner of a sequence of a shard; refuse if the owner of a function of the shard, which can
-- name any sequence, or the caller does not have the rights of that role.  Refuse a MINVALUE above
-- 1, too: Citus gives such a range to each worker's copy, which would issue values of another.
CREATE OR REPLACE FUNCTION instaid._sequence_owner(function oid, sequence regclass) RETURNS regrole
    LANGUAGE plpgsql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    main record;
BEGIN
    SELECT p.proname, p.proowner, n.nspname, c.relowner, q.seqmin, q.seqmax INTO main
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace,
         pg_class AS c JOIN pg_sequence AS q ON q.seqrelid = c.oid
    WHERE p.oid = function AND c.oid = sequence AND c.relpersistence <> 't';
    IF NOT FOUND THEN
        RAISE wrong_object_type USING
            MESSAGE = format('%s cannot be the sequence of a shard', sequence),
            DETAIL = 'It is not a sequence, or temporary, or it or the function was just dropped.',
            HINT = 'Pass the sequence that next_id() uses.';
    ELSIF pg_has_role(main.proowner, main.relowner, 'USAGE') IS NOT TRUE THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('sequence %s does not belong to the owner of shard %I',
                             sequence, main.nspname),
            DETAIL = format('Role %I owns it, and role %I owns the function %s().',
                            pg_get_userbyid(main.relowner), pg_get_userbyid(main.proowner),
                            main.proname), HINT = 'Give both to one owner.';
    END IF;
    PERFORM instaid._check_owner(main.relowner, 'sequence', sequence::text);
    IF main.seqmin > 1 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = format('sequence %s cannot serve as a source of IDs', sequence),
            DETAIL = format('It has a range of its own, %s to %s.', main.seqmin, main.seqmax),
            HINT = 'If Citus created this copy for a worker, use the shard on the coordinator.';
    END IF;
    RETURN main.relowner;
END $$;

-- Lock the tables that have a function as a default, and find the largest ID in them: those of its
-- owner, the schema's or a superuser, since any role can write such a default.  An ID that it
-- makes names the shard; the epoch, of its text or the default, gives that ID the clock's time.
CREATE OR REPLACE FUNCTION instaid._take_over_ids(
    schema_name text, INOUT shard_id integer, INOUT epoch timestamptz, renumber boolean,
    adopted oid, adopted_owner regrole, sequence regclass, OUT youngest bigint)
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    function_name CONSTANT text := format('%I.next_id()', schema_name);
    before bigint;
    id bigint;
    second_id bigint;
    made_at timestamptz;
    clock tstzrange;
    literals timestamptz[];
    named integer;
    part record;
    left_out regclass[] := '{}';
    highest bigint;
    place text;
BEGIN
    FOR part IN
        SELECT c.oid::regclass AS relation, t.attname, c.relowner::regrole AS owner,
               (o.rolsuper OR o.oid IN (adopted_owner, n.nspowner)) AND pg_has_role(o.oid, 'USAGE')
               AND (NOT o.rolsuper OR instaid._is_superusers_schema(c.relnamespace))
               AND NOT EXISTS (SELECT FROM instaid._descendants(c.oid) AS h
                               WHERE h.owner <> c.relowner) AS is_ours,
               c.relkind <> 'v' AND instaid._base_type(t.atttypid) IN (
                   'bigint'::regtype, COALESCE(to_regtype('instaid.id'), 'bigint')) AS has_ids
        FROM pg_depend AS d JOIN pg_attrdef AS a ON a.oid = d.objid
             JOIN pg_class AS c ON c.oid = a.adrelid JOIN pg_roles AS o ON o.oid = c.relowner
             JOIN pg_attribute AS t ON t.attrelid = a.adrelid AND t.attnum = a.adnum
             JOIN pg_namespace AS n ON n.nspname = schema_name
        WHERE d.refclassid = 'pg_proc'::regclass AND d.refobjid = adopted
          AND d.classid = 'pg_attrdef'::regclass
          AND c.relkind IN ('r', 'p', 'v') AND c.relpersistence <> 't' ORDER BY c.oid, t.attnum
    LOOP
        IF part.is_ours IS NOT TRUE THEN
            left_out := array_remove(left_out, part.relation) || part.relation;
            CONTINUE;
        END IF;
        PERFORM instaid._execute_as(part.owner, format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE',
                                                       part.relation));
        IF part.has_ids THEN
            highest := instaid._execute_as(part.owner, format('SELECT max(%I)::bigint FROM %s',
                                                              part.attname, part.relation));
            IF youngest IS NULL OR highest > youngest THEN
                youngest := highest;
                place := format('%s.%I', part.relation, part.attname);
            END IF;
        END IF;
    END LOOP;
    IF left_out <> '{}' THEN
        RAISE WARNING 'tables of other owners have IDs of schema %', quote_ident(schema_name) USING
            DETAIL = format('Their rows are not read: %s.', array_to_string(left_out, ', ')),
            HINT = 'If their largest ID is ahead of the clock, pass it to instaid.advance_past().';
    END IF;

    -- Another session can have adopted the schema while this one waited.
    PERFORM instaid._check_new_shard(schema_name, NULL, NULL, adopted);
    -- so that currval() works
    before := instaid._execute_as(adopted_owner, format('SELECT nextval(%L)', sequence::oid));
    id := instaid._execute_as(adopted_owner, format('SELECT %s', function_name));
    second_id := instaid._execute_as(adopted_owner, format('SELECT %s', function_name));
    -- A function can use now(), which is the time when the transaction began.
    clock := tstzrange(now() - interval '1 s', clock_timestamp() + interval '1 s');
    SELECT array_agg(e.epoch), COALESCE(_take_over_ids.epoch, min(e.epoch) FILTER (
               WHERE instaid.extract_timestamp(id, e.epoch) <@ clock), instaid.default_epoch())
    INTO literals, epoch
    FROM regexp_matches(pg_get_functiondef(adopted), E'\\m\\d{13}\\M', 'g') AS m (literal)
         CROSS JOIN LATERAL (SELECT to_timestamp(m.literal[1]::bigint / 1000.0)) AS e (epoch);
    made_at := instaid.extract_timestamp(id, epoch);
    -- With another layout, too, there is an epoch that gives the clock's time.  Where bits of the
    -- sequence are read as the shard ID, a second ID has another one.
    IF epoch <> ALL (literals) OR (made_at <@ clock) IS NOT TRUE
       OR instaid.extract_shard_id(second_id) <> instaid.extract_shard_id(id) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('IDs of %s do not fit the layout, or epoch %s', function_name, epoch),
            DETAIL = format('It returned %s and %s. With this epoch, the time of the first is %s.'
                            ' The clock reads %s.%s', COALESCE(id::text, 'null'),
                            COALESCE(second_id::text, 'null'), made_at, clock_timestamp(),
                            ' Its text names epoch ' || array_to_string(literals, ', ') || '.'),
            HINT = 'If the layout of its IDs is Instagram''s, pass the epoch that it subtracts. If'
                   ' not, use create_shard() and adopt_column().';
    ELSIF currval(sequence) = before THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('%s does not use sequence %s', function_name, sequence),
            HINT = 'Pass the sequence that it uses.';
    ELSIF youngest > instaid.max_id(clock_timestamp() + interval '1 day', epoch) THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('IDs of schema %I are ahead of the clock', schema_name),
            DETAIL = format('The largest is %s in %s. With epoch %s, its time is %s. The clock'
                            ' reads %s.', youngest, place, epoch,
                            instaid.extract_timestamp(youngest, epoch), clock_timestamp()),
            HINT = 'Give that row another ID, or pass the epoch that next_id() subtracts.';
    END IF;
    named := instaid.extract_shard_id(id);
    shard_id := COALESCE(shard_id, named);
    IF named <> shard_id AND NOT renumber THEN
        RAISE invalid_parameter_value USING
            MESSAGE = format('IDs of schema %I name shard %s, and not shard %s', schema_name,
                             named, shard_id),
            HINT = format('Pass %s. To change the number, also pass renumber => true.', named);
    END IF;
    IF youngest IS NOT NULL THEN
        RAISE NOTICE 'IDs of schema % go on above %', quote_ident(schema_name), youngest USING
            DETAIL = format('It is the largest ID, in %s. Its time is %s.', place,
                            instaid.extract_timestamp(youngest, epoch));
    END IF;
END $$;

CREATE OR REPLACE FUNCTION instaid.adopt_shard(schema_name text, shard_id integer DEFAULT NULL,
                                    epoch timestamptz DEFAULT NULL, sequence regclass DEFAULT NULL,
                                    renumber boolean DEFAULT false) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO' SET timezone = 'UTC' SET row_security = off
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    adopted CONSTANT oid := instaid._find_function(schema_name, 'next_id', '');
    owner regrole;
    other_use text;
    youngest bigint;
BEGIN
    PERFORM instaid._check_no_nulls('adopt_shard', json_build_object(
        'schema_name', schema_name, 'renumber', renumber));
    PERFORM instaid._check_read_committed('adopt_shard');
    PERFORM instaid._check_new_shard(schema_name, NULL, NULL, adopted);
    SELECT p.proowner INTO owner FROM pg_proc AS p
    WHERE p.oid = adopted AND p.prokind = 'f' AND p.prorettype = 'bigint'::regtype
      AND NOT p.proretset;
    IF NOT FOUND THEN
        RAISE undefined_function USING
            MESSAGE = format('schema %I has no next_id() that returns bigint', schema_name),
            DETAIL = CASE WHEN adopted IS NOT NULL THEN 'It returns ' || COALESCE(
                               pg_get_function_result(adopted), 'nothing') || '.'
                          ELSE format('There is no such %s.', CASE WHEN to_regnamespace(
                               quote_ident(schema_name)) IS NULL THEN 'schema'
                               ELSE 'function' END) END,
            HINT = 'If a function of another name makes its IDs, rename it to next_id. If no'
                   ' function makes them, use create_shard() and adopt_column().';
    END IF;
    PERFORM instaid._check_owner(owner, 'function', format('%I.next_id()', schema_name));
    -- or else the sequence that its text names
    sequence := COALESCE(sequence, to_regclass(quote_ident(schema_name) || '.table_id_seq'), (
        SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = schema_name AND c.relkind = 'S' AND c.relowner = owner
          AND strpos(pg_get_functiondef(adopted), c.relname) > 0
        ORDER BY length(c.relname) DESC LIMIT 1),
        (quote_ident(schema_name) || '.table_id_seq')::regclass);
    PERFORM instaid._sequence_owner(adopted, sequence);

    -- Citus replaces no function after a transaction has read by several connections.
    PERFORM set_config('citus.multi_shard_modify_mode', 'sequential', true);
    -- _take_over_ids() locks its shards, too, where they are visible
    PERFORM set_config('citus.enable_manual_changes_to_shards', 'on', true);
    SELECT t.* INTO shard_id, epoch, youngest
    FROM instaid._take_over_ids(schema_name, shard_id, epoch, renumber, adopted, owner,
                                sequence) AS t;
    PERFORM instaid._check_new_shard(schema_name, shard_id, epoch, adopted);

    -- A sequence counts the IDs of one epoch, and nothing else.  What a role without rights on
    -- it declares, or uses as a default, must not be able to block its owner.
    SELECT format('Schema %I uses it with epoch %s.', s.schema_name, s.epoch) INTO other_use
    FROM instaid._list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration
    WHERE s.sequence = adopt_shard.sequence AND s.epoch <> adopt_shard.epoch
      AND has_sequence_privilege(p.proowner, s.sequence, 'USAGE, UPDATE')
    UNION ALL
    SELECT format('It also counts for %s.', pg_describe_object(d.classid, d.objid, d.objsubid))
    FROM pg_depend AS d JOIN pg_attrdef AS a ON a.oid = d.objid
         JOIN pg_class AS t ON t.oid = a.adrelid
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = adopt_shard.sequence
      AND d.classid = 'pg_attrdef'::regclass
      AND has_sequence_privilege(t.relowner, d.refobjid, 'USAGE, UPDATE')
      AND NOT EXISTS (SELECT FROM pg_depend AS f
                      WHERE f.classid = d.classid AND f.objid = d.objid
                        AND f.refclassid = 'pg_proc'::regclass AND f.refobjid = adopted)
    UNION ALL
    SELECT format('It also counts for %s.',
                  pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid))
    FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass
      AND d.objid = adopt_shard.sequence AND d.deptype = 'i' LIMIT 1;
    IF FOUND THEN
        RAISE object_in_use USING
            MESSAGE = format('%s cannot be the sequence of a shard', sequence), DETAIL = other_use,
            HINT = 'Pass the sequence and the epoch of next_id(). If a column uses this sequence,'
                   ' too, give it another default first, for example with adopt_column().';
    END IF;
    PERFORM instaid._replace_next_id(schema_name, shard_id, epoch, adopted, sequence, youngest);
END $$;
COMMENT ON FUNCTION instaid.adopt_shard IS 'make a schema with the published function next_id() a '
'shard that continues above its IDs; needs the rights of the owners of all that it changes';

-- The schemas with a copy of the published function that the caller may adopt, and the commands
-- that adopt it.  A function of another name becomes next_id(): defaults and callers follow it.
CREATE OR REPLACE FUNCTION instaid._find_copies(pattern text, OUT schemas text[],
                                     OUT commands text[])
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET quote_all_identifiers = off SET enable_nestloop = off AS $$
DECLARE
    others text;
BEGIN
    WITH copy AS (
        SELECT p.*, n.nspname, c.object, r.is_own,
               instaid._find_function(n.nspname, 'next_id', '') AS next_id,
               count(*) FILTER (WHERE p.pronargs = 0) OVER (PARTITION BY n.nspname, r.is_own) AS n
        FROM instaid._copies AS c JOIN pg_namespace AS n ON n.oid = c.schema
             LEFT JOIN pg_proc AS p ON c.classid = 'pg_proc'::regclass AND p.oid = c.objid
             CROSS JOIN LATERAL pg_has_role(p.proowner, 'USAGE') AS r (is_own)
        WHERE n.nspname LIKE pattern),
    found AS (
        SELECT c.*, (c.is_own AND (c.oid = c.next_id OR c.next_id IS NULL AND c.n = 1
                     AND c.pronargs = 0 AND c.prorettype = 'bigint'::regtype
                     AND NOT c.proretset)) IS TRUE AS is_ours
        FROM copy AS c)
    SELECT COALESCE(array_agg(f.nspname ORDER BY f.nspname) FILTER (WHERE f.is_ours), '{}'),
           string_agg(f.object, ', ' ORDER BY f.object) FILTER (WHERE NOT f.is_ours),
           array_agg(format(
               CASE f.proname WHEN 'next_id' THEN 'SELECT instaid.adopt_shard(%2$L);'
                    ELSE 'ALTER FUNCTION %1$s RENAME TO next_id;'
                         ' SELECT instaid.adopt_shard(%2$L); CREATE FUNCTION %3$I.%4$I(%5$s)'
                         ' RETURNS bigint LANGUAGE sql RETURN %3$I.next_id();%6$s' END,
               f.object, f.nspname, f.nspname, f.proname, pg_get_function_arguments(f.oid),
               concat(
                   CASE WHEN pg_get_userbyid(f.proowner) <> current_user THEN format(
                       ' ALTER FUNCTION %s OWNER TO %s;', f.object, f.proowner::regrole) END,
                   format(' REVOKE ALL ON FUNCTION %s FROM PUBLIC;', f.object), (
                   SELECT format(' GRANT EXECUTE ON FUNCTION %s TO %s;', f.object,
                                 string_agg(COALESCE(quote_ident(r.rolname), 'PUBLIC'), ', '))
                   FROM aclexplode(COALESCE(f.proacl, acldefault('f', f.proowner))) AS x
                        LEFT JOIN pg_roles AS r ON r.oid = x.grantee
                   WHERE x.grantee <> f.proowner HAVING count(*) > 0))) ORDER BY f.nspname)
           FILTER (WHERE f.is_ours)
    INTO schemas, others, commands FROM found AS f;
    IF others IS NOT NULL THEN
        RAISE WARNING 'copies of the published function are left' USING
            DETAIL = format('They belong to another role, have arguments, return no bigint, are a'
                            ' default, or share their schema with a next_id() or another copy:'
                            ' %s.', others),
            HINT = 'Each owner can repeat the call. instaid.audit() has the cures of the others.';
    END IF;
END $$;

-- It commits after each schema, because one transaction cannot hold the locks of thousands, and
-- would keep their writers out.  After an interruption, the same call adopts the rest.
-- A procedure with SET could not commit: operators are qualified.
CREATE OR REPLACE PROCEDURE instaid.adopt_shards(pattern text DEFAULT '%',
                                      dry_run boolean DEFAULT false) LANGUAGE plpgsql AS $$
DECLARE
    schemas pg_catalog.text[];
    commands pg_catalog.text[];
    problems pg_catalog.text[] := '{}';
    context pg_catalog.text;
BEGIN
    PERFORM instaid._check_no_nulls('adopt_shards', pg_catalog.json_build_object(
        'pattern', pattern, 'dry_run', dry_run));
    SELECT c.schemas, c.commands INTO schemas, commands FROM instaid._find_copies(pattern) AS c;
    -- inside a transaction block, this fails before anything is adopted
    COMMIT;
    FOR i IN 1 .. pg_catalog.cardinality(schemas) LOOP
        IF dry_run THEN
            RAISE NOTICE '%', commands[i];
            CONTINUE;
        END IF;
        BEGIN
            PERFORM pg_catalog.set_config('client_min_messages', 'warning', true),
                    pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
            EXECUTE commands[i];
        EXCEPTION WHEN OTHERS OR assert_failure OR query_canceled THEN
            GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
            -- The function of a copy can RAISE this, too, but must not end the call.
            IF SQLSTATE OPERATOR(pg_catalog.=) '57014'
               AND context OPERATOR(pg_catalog.!~) '(?n) at RAISE$' THEN
                RAISE;
            END IF;
            problems := pg_catalog.array_append(problems, pg_catalog.format('%I: %s', schemas[i],
                                                                            SQLERRM));
            RAISE WARNING '%', problems[pg_catalog.cardinality(problems)];
            CONTINUE;
        END;
        COMMIT;
        RAISE NOTICE '% of %: schema % is a shard now', i, pg_catalog.cardinality(schemas),
            pg_catalog.quote_ident(schemas[i]);
    END LOOP;
    IF pg_catalog.cardinality(problems) OPERATOR(pg_catalog.>) 0 THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = pg_catalog.format('%s of %s schemas could not be adopted',
                                        pg_catalog.cardinality(problems),
                                        pg_catalog.cardinality(schemas)),
            DETAIL = pg_catalog.array_to_string(problems, '; '),
            HINT = 'The others are shards now. If a shard ID is taken, and this is the schema that'
                   ' should have it, renumber the other one with instaid.renumber_shard(). Then'
                   ' call adopt_shards() again. To give one of these another number, pass it to'
                   ' instaid.adopt_shard(), and renumber => true.';
    ELSIF pg_catalog.cardinality(schemas) OPERATOR(pg_catalog.=) 0 THEN
        RAISE NOTICE 'no schema LIKE % can be adopted', pg_catalog.quote_literal(pattern);
    END IF;
END $$;
COMMENT ON PROCEDURE instaid.adopt_shards IS 'adopt each schema LIKE the pattern with a copy of '
'the published function that the caller may adopt; commits after each; dry_run only shows how';

CREATE OR REPLACE FUNCTION instaid.renumber_shard(schema_name text, shard_id integer) RETURNS void
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on SET quote_all_identifiers = off AS $$
DECLARE
    shard record;
BEGIN
    PERFORM instaid._check_no_nulls('renumber_shard', json_build_object(
        'schema_name', schema_name, 'shard_id', shard_id));
    PERFORM instaid._check_read_committed('renumber_shard');
    PERFORM instaid._check_name('schema', schema_name);
    SELECT s.*, p.proowner::regrole AS owner INTO shard
    FROM instaid._list_shards() AS s JOIN pg_proc AS p ON p.oid = s.declaration
    WHERE s.schema_name = renumber_shard.schema_name;
    IF NOT FOUND THEN
        RAISE undefined_object USING MESSAGE = format('schema %I is not a shard', schema_name),
            HINT = 'instaid.shards lists the shards of this database.';
    END IF;
    PERFORM instaid._check_owner(shard.owner, 'shard', quote_ident(schema_name));
    IF shard.shard_id = renumber_shard.shard_id THEN
        RAISE NOTICE 'schema % is shard % already', quote_ident(schema_name), shard_id;
    ELSE
        PERFORM instaid._check_new_shard(schema_name, shard_id, shard.epoch, shard.declaration);
        PERFORM instaid._change_shard_id(shard.declaration, shard.sequence, shard_id);
    END IF;
END $$;
COMMENT ON FUNCTION instaid.renumber_shard IS 'wait for the transactions that have taken IDs of a '
'shard, and let new IDs name another one; needs to own the shard, and CREATE on its schema';
