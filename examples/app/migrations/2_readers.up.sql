CREATE INDEX ON notes (user_id, id);
CREATE TABLE outbox_position (last_id bigint NOT NULL);
INSERT INTO outbox_position VALUES (0);
