/* sql-edition/missing.sql */

-- What only the extension has: each of these functions says so.
-- Run instaid.sql first.

BEGIN;
DO $$
BEGIN
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog', true);
    IF NOT EXISTS (SELECT FROM pg_namespace AS n
                   WHERE n.nspname = 'instaid' AND pg_get_userbyid(n.nspowner) = current_user)
       OR to_regprocedure('instaid._begin_file(text,text,json)') IS NULL THEN
        RAISE object_not_in_prerequisite_state USING
            MESSAGE = 'sql-edition/missing.sql needs sql-edition/instaid.sql',
            DETAIL = format('Role %I has not run it in this database.', current_user),
            HINT = 'Run that file first, as the same role.';
    END IF;
END $$;
CALL instaid._begin_file('missing.sql', '1.0');

---- What this edition lacks ----

-- A caller would need UPDATE on the sequence, and could set it back.
CREATE OR REPLACE FUNCTION instaid.next_id(sequence regclass, shard_id integer,
                                epoch timestamptz DEFAULT instaid.default_epoch()) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('instaid.next_id()', 'Use the next_id() of a shard, which'
                                      ' instaid.create_shard() creates.');
END $$;
COMMENT ON FUNCTION instaid.next_id(regclass, integer, timestamptz) IS
'not in this edition: fails';

CREATE OR REPLACE FUNCTION instaid.next_ids(sequence regclass, shard_id integer, count integer,
                                 epoch timestamptz DEFAULT instaid.default_epoch())
    RETURNS SETOF bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('instaid.next_ids()', 'Use the next_ids() of a shard, which'
                                      ' instaid.create_shard() creates.');
END $$;
COMMENT ON FUNCTION instaid.next_ids(regclass, integer, integer, timestamptz) IS
'not in this edition: fails';

CREATE OR REPLACE FUNCTION instaid.next_id() RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('The shard of the node', 'Use the next_id() of a shard,'
                                      ' which instaid.create_shard() creates.');
END $$;
COMMENT ON FUNCTION instaid.next_id() IS 'not in this edition: fails';

CREATE OR REPLACE FUNCTION instaid.next_ids(count integer, sequence regclass DEFAULT NULL)
    RETURNS SETOF bigint
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('The shard of the node', 'Use the next_ids() of a shard,'
                                      ' which instaid.create_shard() creates.');
END $$;
COMMENT ON FUNCTION instaid.next_ids(integer, regclass) IS 'not in this edition: fails';

CREATE OR REPLACE FUNCTION instaid.settled_id(schema_name text, wait boolean DEFAULT true)
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('settled_id()', 'Store pg_current_xact_id() in each row, and'
                                      ' read below pg_snapshot_xmin(pg_current_snapshot()).');
END $$;
COMMENT ON FUNCTION instaid.settled_id(text, boolean) IS 'an ID of a shard up to which no open '
'transaction has taken one; waits for those, or returns null if wait is false';

CREATE OR REPLACE FUNCTION instaid.settled_id(sequence regclass, shard_id integer,
                                   epoch timestamptz DEFAULT instaid.default_epoch(),
                                   wait boolean DEFAULT true) RETURNS bigint
    LANGUAGE plpgsql VOLATILE STRICT PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('settled_id()', 'Store pg_current_xact_id() in each row, and'
                                      ' read below pg_snapshot_xmin(pg_current_snapshot()).');
END $$;
COMMENT ON FUNCTION instaid.settled_id(regclass, int, timestamptz, boolean) IS 'an ID of a '
'sequence, as settled_id(text, boolean); needs USAGE or SELECT on the sequence';

CREATE OR REPLACE FUNCTION instaid.audit_servers(servers text[],
                                      OUT severity text, OUT object text, OUT problem text,
                                      OUT cure text) RETURNS SETOF record
    LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE AS $$
BEGIN
    PERFORM instaid._refuse_without_c('audit_servers()', 'Compare instaid.shards of the servers.');
END $$;
COMMENT ON FUNCTION instaid.audit_servers(text[]) IS 'not in this edition: fails';

---- Rights ----

CALL instaid._set_rights();
COMMIT;
