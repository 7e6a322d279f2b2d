DROP TABLE outbox_position;
DROP INDEX notes_user_id_id_idx;
