CREATE TABLE insta5.albums (id bigint PRIMARY KEY DEFAULT insta5.next_id(), title text);
