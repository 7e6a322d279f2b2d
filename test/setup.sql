-- What the pages of the documentation take for granted, and readers need not see: a comment
-- "<!-- setup SERVER: NAME -->" in a page stands for the block NAME here (test/lib/Docs.pm).

---- readme_1
CREATE ROLE app LOGIN;

---- readme_2
SET ROLE app;
BEGIN;
INSERT INTO insta5.photos (caption) VALUES ('lunch') RETURNING id;
SELECT count(*) FROM insta5.next_ids(3);
ROLLBACK;

---- readme_3
CREATE ROLE app LOGIN;
GRANT USAGE ON SCHEMA insta5 TO app;
GRANT INSERT, SELECT ON insta5.photos TO app;

---- adopting_1
\set schema insta7
\set shard_id 7
\i test/lib/published.sql

---- adopting_2
\set schema insta3
\set shard_id 3
\i test/lib/published.sql
ALTER FUNCTION insta3.next_id() RENAME TO id_generator;
\set schema insta4
\set shard_id 4
\i test/lib/published.sql
CREATE TABLE insta4.photos (id bigint PRIMARY KEY DEFAULT insta4.next_id(), caption text);
INSERT INTO insta4.photos (caption) SELECT 'breakfast' FROM generate_series(1, 3);

---- adopting_back
\i sql-edition/all.sql
\i sql-edition/adopting.sql
\set schema tenant7
\set shard_id 7
\i test/lib/published.sql
\set schema 'Tenant 8'
\set shard_id 8
\i test/lib/published.sql
SELECT pg_get_functiondef(oid) || ';' FROM pg_proc WHERE proname = 'next_id' AND pronargs = 0
\g (format=unaligned tuples_only=on) old_next_ids.sql
CALL instaid_adopt.adopt_shards();

---- adopting_many
\set schema user1
\set shard_id 1001
\i test/lib/published.sql
\set schema user2
\set shard_id 1002
\i test/lib/published.sql

---- adopting_tenants
\set schema org1
\set shard_id 1
\i test/lib/published.sql
\set schema org2
\i test/lib/published.sql

---- adopting_replace
CREATE SCHEMA app;
CREATE SEQUENCE app.photos_seq;
CREATE FUNCTION app.generate_id(name text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1387263000000) << 22 | nextval(name) % 4096;
END $$;
CREATE TABLE app.photos (id bigint PRIMARY KEY DEFAULT app.generate_id('app.photos_seq'));
INSERT INTO app.photos SELECT FROM generate_series(1, 3);

---- adopting_3
CREATE SCHEMA shop;
CREATE TABLE shop.albums (id serial PRIMARY KEY, title text);
CREATE TABLE shop.songs (id serial PRIMARY KEY, album_id integer NOT NULL REFERENCES shop.albums);
INSERT INTO shop.albums (title) VALUES ('first'), ('second');
INSERT INTO shop.songs (album_id) VALUES (1), (2);
CREATE FUNCTION shop.count_songs(album integer) RETURNS bigint LANGUAGE sql
    AS 'SELECT count(*) FROM shop.songs WHERE album_id = album';

---- adopting_5
CREATE SCHEMA store;
CREATE TABLE store.customers (
    id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name       text,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE store.orders (
    id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    customer_id uuid NOT NULL REFERENCES store.customers,
    created_at  timestamptz NOT NULL DEFAULT now()
);
INSERT INTO store.customers (name, created_at) VALUES ('Ada', '2026-01-01 10:00 UTC'), ('Ben', '2026-01-02 11:30 UTC');
INSERT INTO store.orders (customer_id, created_at) SELECT id, created_at + interval '1 hour' FROM store.customers;

---- applications_1
CREATE EXTENSION instaid;
SELECT instaid.create_shard('insta5', 5);
CREATE TABLE old_photos (caption text, taken_at timestamptz);
INSERT INTO old_photos VALUES ('breakfast', '2026-01-01 10:00 UTC'), ('lunch', '2026-01-01 12:30 UTC'),
    ('cake', '2026-01-01 12:30 UTC'), ('slide', '2009-05-05 UTC'), ('film', '1984-01-01 UTC');

---- backup_1
CREATE EXTENSION instaid;
SELECT instaid.create_shard('insta5', 5);
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), caption text);
INSERT INTO insta5.photos (caption) VALUES ('breakfast'), ('sunset');
CREATE EXTENSION instaid_tickets;
CREATE SEQUENCE invoices;
SELECT instaid_tickets.next('invoices') FROM generate_series(1, 3);

---- backup_2
CREATE ROLE installer;
CREATE ROLE new_owner;

---- backup_3
INSERT INTO insta5.photos (caption) VALUES ('during the migration');
SELECT instaid_tickets.next('invoices');
SELECT instaid.create_shard('insta6', 6);
SELECT insta6.next_id();

---- clients_1
CREATE EXTENSION instaid;
SELECT instaid.create_shard('insta5', 5);
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), caption text);

---- clients_2
DROP TABLE insta5.photos;

---- sql_edition_1
CREATE ROLE app LOGIN;

---- sql_edition_2
SET ROLE app;
BEGIN;
INSERT INTO insta5.photos (title) VALUES ('lunch') RETURNING id;
SELECT count(*) FROM insta5.next_ids(3);
ROLLBACK;

---- sql_edition_3
CREATE ROLE anon;
CREATE ROLE authenticated;
CREATE SCHEMA auth;
CREATE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql STABLE
    RETURN (current_setting('request.jwt.claims', true)::json ->> 'sub')::uuid;
GRANT USAGE ON SCHEMA auth TO anon, authenticated;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO anon, authenticated;

---- sql_edition_4
SET request.jwt.claims = '{"sub": "00000000-0000-0000-0000-000000000001"}';
SET ROLE authenticated;
INSERT INTO public.notes (note) VALUES ('first');
SELECT 1 / (SELECT count(*) FROM notes_as_text AS t JOIN notes AS n ON n.id = t.id::bigint
            WHERE instaid.extract_shard_id(n.id) = 6);
SET request.jwt.claims = '{"sub": "00000000-0000-0000-0000-000000000002"}';
SELECT 1 / (1 - count(*)) FROM notes;
SET ROLE anon;
DO $$
BEGIN
    INSERT INTO public.notes (note) VALUES ('second');
    RAISE 'anon inserts';
EXCEPTION WHEN insufficient_privilege THEN
END
$$;
RESET ROLE;
SELECT 1 / (1 - count(*)) FROM instaid.audit();

---- sql_edition_5
\i sql-edition/all.sql
SELECT instaid.create_shard('insta5', 5);
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), title text);
INSERT INTO insta5.photos (title) VALUES ('breakfast');

---- sql_edition_6
\i sql-edition/all.sql
SELECT instaid.create_shard('insta5', 5);
SELECT instaid.add_sequence('insta5', 'likes_id_seq');
CREATE SEQUENCE insta5.invoices;
SELECT instaid.create_shard('insta6', 6, '2026-01-01 UTC');
SELECT instaid.create_shard('insta7', 7);
SELECT instaid.freeze_shard('insta7');

---- sql_edition_7
-- of both shards, and of the sequence that no column uses
SELECT 1 / (count(*) = 3)::integer
FROM unnest(ARRAY[insta5.next_id(), insta5.next_id('insta5.likes_id_seq'::regclass),
                  insta6.next_id() + (instaid.min_id('2026-01-01 UTC'))]) AS id
WHERE instaid.extract_timestamp(id) > now() + interval '9 min';
SELECT 1 / (last_value = 1)::integer FROM insta5.invoices;

---- operations_1
CREATE EXTENSION instaid;
SELECT instaid.create_shard('insta5', 5);
CREATE SEQUENCE insta5.likes_id_seq;
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id());
CREATE TABLE insta5.likes (id bigint PRIMARY KEY DEFAULT insta5.next_id('insta5.likes_id_seq'),
    photo_id bigint REFERENCES insta5.photos ON UPDATE CASCADE);

---- partitions_1
CREATE EXTENSION instaid;
SELECT instaid.create_shard('insta5', 5);

---- partitions_2
SELECT instaid.create_partitions('insta5.photos', '2020-01-01 UTC', '2020-03-01 UTC', '1 month');

---- partitions_3
CREATE TABLE insta5.albums (id bigint PRIMARY KEY DEFAULT insta5.next_id(), title text);
CREATE TABLE insta5.songs (id bigint PRIMARY KEY DEFAULT insta5.next_id(),
    album_id bigint NOT NULL REFERENCES insta5.albums);
CREATE VIEW insta5.titles AS SELECT id, title FROM insta5.albums;
CREATE FUNCTION insta5.full_title(insta5.albums) RETURNS text LANGUAGE sql AS 'SELECT $1.title';
INSERT INTO insta5.albums VALUES (instaid.make_id('2026-11-20 UTC', 5, 1), 'first');
INSERT INTO insta5.songs (album_id) SELECT id FROM insta5.albums;
CREATE ROLE reports;
GRANT USAGE ON SCHEMA insta5 TO reports;
GRANT INSERT ON insta5.albums TO reports;
GRANT SELECT (id, title) ON insta5.albums TO reports;
GRANT SELECT ON insta5.titles TO reports;

---- public_1
CREATE EXTENSION instaid;
SELECT instaid.create_shard('insta5', 5);
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), caption text);
INSERT INTO insta5.photos VALUES (4001511883701836730, 'sunset'), (4001511883701836731, 'sunrise');
CREATE ROLE web;
CREATE ROLE reports;
GRANT USAGE ON SCHEMA insta5 TO web, reports;
GRANT SELECT ON insta5.photos TO web, reports;

---- readers_1
CREATE EXTENSION instaid;
SELECT instaid.create_shard('insta5', 5);

---- readers_2
SELECT instaid.create_shard('insta6', 6);
CREATE TABLE insta6.outbox (id bigint PRIMARY KEY DEFAULT insta6.next_id(), topic text, payload jsonb);
CREATE TABLE insta6.outbox_readers (name text PRIMARY KEY, last_id bigint NOT NULL DEFAULT 0);
INSERT INTO insta6.outbox (topic) VALUES ('mail'), ('sms');
INSERT INTO insta6.outbox_readers SELECT 'gateway', min(id) FROM insta6.outbox;

---- readers_3
\set file `sed '1,/^INSERT INTO/d; s/insta5/insta6/g' examples/outbox_without_c.sql`
:file
INSERT INTO insta6.outbox (topic) VALUES ('push');

---- reference_1
CREATE EXTENSION instaid;

---- reference_tickets_1
CREATE EXTENSION instaid_tickets;

---- tickets_1
CREATE EXTENSION instaid_tickets;

---- tickets_2
CREATE EXTENSION instaid_tickets;
CREATE TABLE albums AS SELECT generate_series(1, 10) AS id;

---- tickets_3
CREATE EXTENSION instaid_tickets;

---- tickets_4
CREATE EXTENSION instaid_tickets;

---- tickets_5
CREATE EXTENSION instaid_tickets;

---- monitoring_1
CREATE EXTENSION instaid;

---- monitoring_3
\i sql-edition/all.sql
SELECT instaid.create_shard('insta5', 5);
CREATE ROLE monitor LOGIN IN ROLE pg_monitor;

---- monitoring_2
SELECT instaid.create_shard('insta6', 6);
CREATE TABLE insta6.photos (id bigint PRIMARY KEY DEFAULT insta6.next_id());
INSERT INTO insta6.photos DEFAULT VALUES;
DROP SEQUENCE insta6.table_id_seq CASCADE;

---- reference_adopt
SELECT instaid.create_shard('insta5', 5);

---- backup_damaged
\c postgres
CREATE DATABASE app_damaged TEMPLATE app;
