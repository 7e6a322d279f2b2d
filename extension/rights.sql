---- Rights ----

-- Whatever role installs the extension, its objects belong to the owner of its schema, but for the
-- node's sequence: with mere rights on it, the owner of the database could not restore its grants.
-- Whatever default privileges grant or revoke, others have the rights that PostgreSQL itself gives
-- to all, and can use the schema, and read the views and the position of the node's sequence.
DO $$
DECLARE
    schema_owner CONSTANT regrole := (SELECT nspowner FROM pg_namespace
                                    WHERE nspname = 'THIS_EXTENSION');
    grantees CONSTANT text := (SELECT string_agg(DISTINCT x.grantee::regrole::text, ', ')
                               FROM pg_default_acl AS d, aclexplode(d.defaclacl) AS x
                               WHERE x.grantee NOT IN (0, schema_owner));
    member record;
BEGIN
    FOR member IN
        SELECT CASE i.type WHEN 'view' THEN 'table' ELSE replace(i.type, '-', ' ') END
               || ' ' || i.identity AS name,
               CASE i.identity WHEN 'instaid.node_id_seq' THEN 'pg_database_owner'::regrole
                               ELSE schema_owner END AS owner,
               CASE WHEN i.type IN ('view', 'sequence') THEN 'SELECT'
                    WHEN i.type IN ('schema', 'language', 'type') THEN 'USAGE'
                    WHEN i.type IN ('function', 'procedure') THEN 'EXECUTE' END AS right_of_all,
               -- only PostgreSQL calls them
               d.objid IN (SELECT unnest(ARRAY[l.lanplcallfoid, l.lanvalidator])
                           FROM pg_language AS l) AS is_handler
        FROM pg_extension AS e
             JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass
                                AND d.refobjid = e.oid AND d.deptype = 'e'
             CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS i
        -- casts, and types of arrays and rows, have no owner or no rights of their own
        WHERE e.extname = 'THIS_EXTENSION'
          AND (i.type NOT IN ('cast', 'type') OR i.identity = 'instaid.id')
    LOOP
        EXECUTE format('ALTER %s OWNER TO %s', member.name, member.owner);
        IF grantees IS NOT NULL THEN
            -- the owner can be one of them
            EXECUTE format('REVOKE ALL ON %1$s FROM %2$s; GRANT ALL ON %1$s TO %3$s',
                           member.name, grantees, member.owner);
        END IF;
        IF member.right_of_all IS NOT NULL THEN
            EXECUTE format('REVOKE ALL ON %s FROM PUBLIC', member.name);
            IF NOT member.is_handler THEN
                EXECUTE format('GRANT %s ON %s TO PUBLIC', member.right_of_all, member.name);
            END IF;
        END IF;
    END LOOP;
END $$;
