DROP TABLE outbox, notes, users;
