/* examples/batches.sql */

-- Batches of rows of an outbox between two settled IDs, for several workers, as docs/readers.md
-- describes: run after the blocks of the section "An outbox".

CREATE TABLE insta5.batches (after_id bigint PRIMARY KEY, to_id bigint NOT NULL);
INSERT INTO insta5.outbox_readers (name) VALUES ('batches');

CREATE PROCEDURE insta5.make_batch() LANGUAGE plpgsql AS $$
DECLARE
    settled bigint := instaid.settled_id('insta5');
BEGIN
    INSERT INTO insta5.batches
        SELECT last_id, settled FROM insta5.outbox_readers WHERE name = 'batches' AND last_id < settled FOR UPDATE;
    UPDATE insta5.outbox_readers SET last_id = settled WHERE name = 'batches' AND last_id < settled;
END
$$;
