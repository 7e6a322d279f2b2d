-- What each trial starts with
SET client_min_messages = warning;
CREATE EXTENSION instaid;
CREATE EXTENSION instaid_adopt;
SELECT instaid.create_shard('insta5', 5);

CREATE TABLE insta5.photos (
    id      bigint PRIMARY KEY DEFAULT insta5.next_id(),
    caption text
);

-- likers: IDs in an array
CREATE TABLE insta5.comments (
    id       instaid.id PRIMARY KEY DEFAULT insta5.next_id(),
    photo_id instaid.id REFERENCES insta5.photos,
    likers   instaid.id[],
    body     text
);
