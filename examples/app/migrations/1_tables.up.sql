CREATE TABLE users (
    id   bigint PRIMARY KEY DEFAULT next_id(),
    name text NOT NULL
);

CREATE TABLE notes (
    id      bigint PRIMARY KEY DEFAULT next_id(),
    user_id bigint NOT NULL REFERENCES users,
    body    text NOT NULL
);

CREATE TABLE outbox (
    id      bigint PRIMARY KEY DEFAULT next_id(),
    payload jsonb NOT NULL
);
