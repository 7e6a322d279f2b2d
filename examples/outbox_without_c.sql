/* examples/outbox_without_c.sql */

-- An outbox whose readers miss no row, without settled_id(), as docs/readers.md describes.
-- They read in the order of transactions, and only what every open transaction is newer than.

CREATE TABLE insta5.outbox (
    id      bigint PRIMARY KEY DEFAULT insta5.next_id(),
    topic   text NOT NULL,
    payload jsonb NOT NULL,
    xact    xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX ON insta5.outbox (xact, id);
CREATE TABLE insta5.outbox_readers (
    name      text PRIMARY KEY,
    last_xact xid8 NOT NULL DEFAULT '0',
    last_id   bigint NOT NULL DEFAULT 0
);
INSERT INTO insta5.outbox_readers (name) VALUES ('gateway'), ('indexer');

CREATE FUNCTION insta5.read_outbox(reader text, max_rows integer) RETURNS SETOF insta5.outbox
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    last insta5.outbox_readers;
    event insta5.outbox;
BEGIN
    SELECT * INTO STRICT last FROM insta5.outbox_readers WHERE name = reader FOR UPDATE;
    FOR event IN
        SELECT * FROM insta5.outbox WHERE (xact, id) > (last.last_xact, last.last_id)
            AND xact < pg_snapshot_xmin(pg_current_snapshot())
        ORDER BY xact, id LIMIT max_rows
    LOOP
        last.last_xact := event.xact;
        last.last_id := event.id;
        RETURN NEXT event;
    END LOOP;
    UPDATE insta5.outbox_readers SET last_xact = last.last_xact, last_id = last.last_id WHERE name = reader;
END
$$;
