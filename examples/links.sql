/* examples/links.sql */

-- Texts for public addresses that show neither the time nor the shard of an ID, as
-- docs/public-addresses.md describes: run as the owner of the key.

BEGIN;
SET LOCAL search_path = pg_catalog;
CREATE SCHEMA links;
CREATE EXTENSION pgcrypto SCHEMA links;

CREATE TABLE links.keys (
    version integer PRIMARY KEY CHECK (version > 0),
    key     bytea NOT NULL DEFAULT links.gen_random_bytes(32) CHECK (length(key) = 32)
);
INSERT INTO links.keys VALUES (1, DEFAULT);

-- 32 bits that depend on the key, the round, and one half of the number
CREATE FUNCTION links.round(round integer, half bigint, key bytea) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN ('x' || encode(substr(links.encrypt(
        '\x0102010001000a0400000008000000000000000000000000000000'
            || substr(int4send(round), 4) || substr(int8send(half), 5),
        key, 'aes-cbc/pad:none'), 21, 4), 'hex'))::bit(32)::bigint;

-- the number that stands for another one
CREATE FUNCTION links.hide(id bigint, key bytea) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    a bigint := id >> 32 & 4294967295;
    b bigint := id & 4294967295;
    c bigint;
BEGIN
    FOR round IN 0 .. 9 LOOP
        c := a + links.round(round, b, key) & 4294967295;
        a := b;
        b := c;
    END LOOP;
    RETURN a << 32 | b;
END $$;

-- and back
CREATE FUNCTION links.reveal(hidden bigint, key bytea) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    a bigint := hidden >> 32 & 4294967295;
    b bigint := hidden & 4294967295;
    c bigint;
BEGIN
    FOR round IN REVERSE 9 .. 0 LOOP
        c := b - links.round(round, a, key) & 4294967295;
        b := a;
        a := c;
    END LOOP;
    RETURN a << 32 | b;
END $$;

-- the text: the version of the newest key, and 11 base64url digits
CREATE FUNCTION links.to_text(id bigint) RETURNS text
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    newest links.keys;
BEGIN
    SELECT * INTO STRICT newest FROM links.keys ORDER BY version DESC LIMIT 1;
    RETURN newest.version || rtrim(translate(encode(int8send(links.hide(id, newest.key)), 'base64'),
                                             '+/', '-_'), '=');
END $$;

-- and back; null for a text that to_text() cannot have returned
CREATE FUNCTION links.from_text(hidden text) RETURNS bigint
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    digits text := translate(right(hidden, 11), '-_', '+/') || '=';
BEGIN
    IF hidden !~ '^[1-9][0-9]*[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]$' THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT links.reveal(('x' || encode(decode(digits, 'base64'), 'hex'))::bit(64)::bigint, key)
            FROM links.keys WHERE version::text = left(hidden, -11));
END $$;

REVOKE EXECUTE ON FUNCTION links.to_text, links.from_text FROM PUBLIC;
COMMIT;
