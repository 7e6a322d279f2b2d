---- Checks ----

-- Refuse null arguments of a function that is not STRICT.
CREATE OR REPLACE FUNCTION instaid._check_no_nulls(routine text, arguments json) RETURNS void
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    nulls CONSTANT text := (SELECT string_agg(a.key, ', ') FROM json_each_text(arguments) AS a
                            WHERE a.value IS NULL);
BEGIN
    IF nulls IS NOT NULL THEN
        RAISE null_value_not_allowed USING
            MESSAGE = format('arguments of %s() must not be null', routine),
            DETAIL = format('These are null: %s.', nulls);
    END IF;
END $$;

-- Refuse an isolation level that does not show what other transactions commit meanwhile.
CREATE OR REPLACE FUNCTION instaid._check_read_committed(routine text) RETURNS void
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF current_setting('transaction_isolation') NOT LIKE 'read %' THEN
        RAISE invalid_transaction_state USING
            MESSAGE = format('%s() must run in a READ COMMITTED transaction', routine),
            DETAIL = 'Otherwise it would not see the rows of the transactions that it waits for.',
            HINT = 'SET default_transaction_isolation = ''read committed''; or, for a function,'
                   ' BEGIN ISOLATION LEVEL READ COMMITTED;';
    END IF;
END $$;

-- How to become the owner of an object.  In a superuser's session, SET ROLE is no wall: the code
-- of that role could RESET it.  The role that logged in is the one that pg_stat_activity shows.
CREATE OR REPLACE FUNCTION instaid._how_to_be(role text) RETURNS text
    LANGUAGE sql VOLATILE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    RETURN CASE
        WHEN role = 'pg_database_owner'
        THEN 'SET ROLE pg_database_owner; as the owner of the database.'
        WHEN EXISTS (SELECT FROM pg_roles AS r
                     WHERE r.rolsuper AND (r.rolname = session_user OR r.oid IN (
                         SELECT a.usesysid FROM pg_stat_get_activity(pg_backend_pid()) AS a)))
        THEN format('Connect as %s. SET ROLE is not enough: its code could RESET it.', role)
        ELSE format('Connect as %s, or SET ROLE %1$s; if you trust it, and all whose code its'
                    ' tables run.', role) END;

-- Refuse a caller who does not own an object, even if it is a member of the owner or a superuser:
-- a function, and the CHECKs, indexes and triggers of a table, are code of the owner, which runs
-- with the rights of the caller.
CREATE OR REPLACE FUNCTION instaid._check_owner(owner oid, kind text, object text) RETURNS void
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp
    AS $$
BEGIN
    IF pg_get_userbyid(owner) <> current_user THEN
        RAISE insufficient_privilege USING
            MESSAGE = format('must be owner of %s %s', kind, object),
            DETAIL = format('It belongs to role %I, and its code would run with the rights of %I.',
                            pg_get_userbyid(owner), current_user),
            HINT = instaid._how_to_be(quote_ident(pg_get_userbyid(owner)));
    END IF;
END $$;

-- The function of a schema with a name and argument types; null if there is none.  A look-up by
-- its name alone, as for regprocedure, would read the next_id() of thousands of schemas.
CREATE OR REPLACE FUNCTION instaid._find_function(schema_name text, function_name name,
                                       argument_types oidvector) RETURNS oid
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT p.oid FROM pg_proc AS p
            WHERE p.proname = function_name AND p.proargtypes = argument_types AND p.pronamespace
                  = (SELECT n.oid FROM pg_namespace AS n WHERE n.nspname = schema_name));
END $$;

-- The signature of a function, as regprocedure shows it to all who do not have its schema in their
-- search_path.  To show a regprocedure reads all functions of the name, as above.
CREATE OR REPLACE FUNCTION instaid._signature(function oid) RETURNS text
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT format('%I.%I(%s)', n.nspname, p.proname, oidvectortypes(p.proargtypes))
            FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
            WHERE p.oid = function);
END $$;

-- The role of an owner.  That of pg_database_owner, which nobody can log in as, is its member.
CREATE OR REPLACE FUNCTION instaid._ruler(owner oid) RETURNS regrole
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT CASE pg_get_userbyid(owner) WHEN 'pg_database_owner' THEN d.datdba
                                               ELSE owner END
            FROM pg_database AS d WHERE d.datname = current_database());
END $$;

-- Whether a role can rely on what another one owns and could replace: that one is a superuser, has
-- its rights already, or owns instaid.
CREATE OR REPLACE FUNCTION instaid._can_trust(role oid, owner oid) RETURNS boolean
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT pg_has_role(r, role, 'USAGE') OR r = i.nspowner
            FROM pg_namespace AS i CROSS JOIN instaid._ruler(owner) AS r
            WHERE i.nspname = 'instaid');
END $$;

-- Whether the caller may name objects in a schema: its owner can put other objects in their place,
-- which matters to superusers, and to others as much as with each statement of theirs.
CREATE OR REPLACE FUNCTION instaid._can_name(schema oid) RETURNS boolean
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN (SELECT NOT r.rolsuper OR instaid._can_trust(r.oid, n.nspowner)
            FROM pg_namespace AS n JOIN pg_roles AS r ON r.rolname = current_user
            WHERE n.oid = schema);
END $$;

-- The roles that default privileges can give rights on new objects of the caller.
CREATE OR REPLACE FUNCTION instaid._default_grantees() RETURNS text
    LANGUAGE sql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    RETURN concat_ws(', ', 'PUBLIC', (
        SELECT string_agg(DISTINCT x.grantee::regrole::text, ', ')
        FROM pg_default_acl AS d CROSS JOIN LATERAL aclexplode(d.defaclacl) AS x
             JOIN pg_roles AS r ON r.oid = x.grantee AND r.rolname <> current_user));
