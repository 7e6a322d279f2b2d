-- Copies of the published function, in the shapes that public repositories have: names, arguments,
-- layouts, epochs, sequences and callers as they stand there, each one written anew as a small
-- database.  test/t/adopt_shapes.pl loads each shape into a database of its own, and adopts it.
--
-- A shape begins with its name, and says what is expected of adopt_shards():
--
--	adopted: schema NAME shard ID epoch MILLISECONDS, a line for each schema
--	refused: a pattern that the reason matches; with "adopted", it is so in one of the editions
--	insert:  the tables that get rows, by their defaults or a trigger (photos, if not given); each
--	         has a column id, which has the ID, and a column n
--	later:   tables that get their first rows after the adoption
--	call:    expressions that make IDs besides
--	app:     a table that the role app can insert into, or statements that it can run, before and
--	         afterwards
--	cure:    which statements of the cures to run, as a pattern, if it is not the first case; - if
--	         the function must be written anew
--	keeps:   codes of warnings of audit() that stay
--	cured:   the shard that the cures make, as for "adopted"
--
-- :owner owns the database and the shape, and :superuser is a superuser.

---- public_unqualified
-- the commonest of all: in public, and its sequence has no schema
-- adopted: schema public shard 5 epoch 1314220021721
-- call: next_id()
CREATE SEQUENCE table_id_seq;
CREATE FUNCTION next_id(OUT result bigint) AS $$
DECLARE
    epoch_ms bigint := 1314220021721;
    tick bigint;
    ms bigint;
    number int := 5;
BEGIN
    SELECT nextval('table_id_seq') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - epoch_ms) << 23;
    result := result | (number << 10);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE photos (id bigint NOT NULL DEFAULT next_id() PRIMARY KEY, n integer);

---- published
-- as it was published: a schema of its own, and all names qualified
-- adopted: schema insta5 shard 5 epoch 1314220021721
-- insert: insta5.photos
-- call: insta5.next_id()
CREATE SCHEMA insta5;
CREATE SEQUENCE insta5.table_id_seq;
CREATE FUNCTION insta5.next_id(OUT result bigint) AS $$
DECLARE
    epoch_ms bigint := 1314220021721;
    tick bigint;
    ms bigint;
    number int := 5;
BEGIN
    SELECT nextval('insta5.table_id_seq') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - epoch_ms) << 23;
    result := result | (number << 10);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE insta5.photos (id bigint NOT NULL DEFAULT insta5.next_id() PRIMARY KEY, n integer);

---- public_qualified
-- in public, with the schema written out, and START and the other options of a dump
-- adopted: schema public shard 5 epoch 1314220021721
-- call: public.next_id()
CREATE SEQUENCE public.table_id_seq INCREMENT 1 START 490605638 MINVALUE 1
    MAXVALUE 9223372036854775807 CACHE 1;
CREATE FUNCTION "public"."next_id"(OUT "result" int8) RETURNS "pg_catalog"."int8" AS $body$
DECLARE
    start_ms bigint := 1314220021721;
    tick bigint;
    ms bigint;
    number int := 5;
BEGIN
    SELECT nextval('public.table_id_seq') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - start_ms) << 23;
    result := result | (number << 10);
    result := result | (tick);
END;
$body$ LANGUAGE plpgsql VOLATILE COST 100;
CREATE TABLE public.photos (id int8 DEFAULT public.next_id() NOT NULL PRIMARY KEY, n integer);

---- other_name
-- another name, and one function for several tables
-- adopted: schema public shard 1 epoch 1496675741352
-- insert: photos likes
-- call: id_generator()
CREATE SEQUENCE global_id_sequence;
CREATE FUNCTION id_generator(OUT result bigint) AS $$
DECLARE
    epoch_ms bigint := 1496675741352;
    tick bigint;
    ms bigint;
    -- which shard this is: each schema needs another one
    number int := 1;
BEGIN
    SELECT nextval('global_id_sequence') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - epoch_ms) << 23;
    result := result | (number << 10);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE photos (id bigint DEFAULT id_generator() NOT NULL PRIMARY KEY, n integer);
CREATE TABLE likes (id bigint DEFAULT id_generator() NOT NULL, n integer);

---- other_name_of_schema
-- another name in a schema of its own, qualified; the tables are in public
-- adopted: schema shard_1 shard 1 epoch 1314220021721
-- insert: messages
-- call: shard_1.id_generator()
CREATE SCHEMA shard_1;
CREATE SEQUENCE shard_1.global_id_sequence;
CREATE FUNCTION shard_1.id_generator(OUT result bigint) AS $$
DECLARE
    epoch_ms bigint := 1314220021721;
    tick bigint;
    ms bigint;
    number int := 1;
BEGIN
    SELECT nextval('shard_1.global_id_sequence') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - epoch_ms) << 23;
    result := result | (number << 10);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE messages (chat bigint, id bigint NOT NULL DEFAULT shard_1.id_generator(), n integer);

---- returns_value
-- RETURNS, and a RETURN at the end, instead of an OUT argument
-- adopted: schema public shard 1 epoch 1314220021721
-- call: generate_id()
CREATE SEQUENCE public.global_id_seq;
CREATE FUNCTION public.generate_id() RETURNS bigint LANGUAGE 'plpgsql' AS $body$
DECLARE
    epoch_ms bigint := 1314220021721;
    tick bigint;
    ms bigint;
    number int := 1;
    id bigint := 0;
BEGIN
    SELECT nextval('public.global_id_seq') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    id := (ms - epoch_ms) << 23;
    id := id | (number << 10);
    id := id | (tick);
    RETURN id;
END;
$body$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT generate_id(), n integer);

---- one_expression
-- one RETURN with all of it, clock and sequence in the DECLARE part
-- adopted: schema app shard 12 epoch 1577836800000
-- insert: app.photos
-- call: app.new_id()
CREATE SCHEMA app;
CREATE SEQUENCE app.ids;
CREATE FUNCTION app.new_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ms CONSTANT bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    tick CONSTANT bigint := nextval('app.ids') % 1024;
BEGIN
    RETURN ((ms - 1577836800000) << 23) | (12 << 10) | tick;
END $$;
CREATE TABLE app.photos (id bigint PRIMARY KEY DEFAULT app.new_id(), n integer);

---- search_path_of_session
-- made under SET search_path: the function names no schema, nor do the defaults
-- adopted: schema membership shard 1 epoch 1072915200000
-- insert: membership.users membership.logins
CREATE SCHEMA membership;
SET search_path = membership;
CREATE SEQUENCE id_sequence;
CREATE FUNCTION id_generator(OUT new_id bigint) AS $$
DECLARE
    epoch_ms bigint := 1072915200000;
    tick bigint;
    ms bigint;
    number int := 1;
BEGIN
    SELECT nextval('id_sequence') %1024 INTO tick;
    SELECT floor(extract(epoch FROM now()) * 1000) INTO ms;
    new_id := (ms - epoch_ms) << 23;
    new_id := new_id | (number << 10);
    new_id := new_id | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE users (id bigint PRIMARY KEY NOT NULL DEFAULT id_generator(), n integer);
CREATE TABLE logins (id bigint PRIMARY KEY NOT NULL DEFAULT id_generator(), n integer);
-- it is how the application connects
ALTER ROLE :"owner" IN DATABASE :"DBNAME" SET search_path = membership;

---- search_path_of_role
-- a schema that only the search_path of a role names; the function has its own clock and no FLOOR
-- adopted: schema tenant shard 1337 epoch 1609459200000
-- insert: photos
-- call: next_id()
CREATE SCHEMA tenant;
ALTER ROLE :"owner" IN DATABASE :"DBNAME" SET search_path = tenant, public;
SET search_path = tenant, public;
CREATE SEQUENCE id_seq;
CREATE FUNCTION next_id(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    epoch_ms bigint := 1609459200000;
    tick bigint;
    ms bigint;
    number int := 1337;
BEGIN
    SELECT nextval('id_seq') % 1024 INTO tick;
    ms := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    result := (ms - epoch_ms) << 23;
    result := result | (number::bigint << 10);
    result := result | tick;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- search_path_of_role_two_schemas
-- the sequence is in a schema that only the search_path of a role names, and not the function's
-- adopted: schema code shard 3 epoch 1600000000000
-- insert: code.photos
-- call: code.new_id()
CREATE SCHEMA code;
CREATE SCHEMA data;
ALTER ROLE :"owner" IN DATABASE :"DBNAME" SET search_path = code, data;
SET search_path = code, data;
CREATE SEQUENCE data.ticks;
CREATE FUNCTION code.new_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ms bigint;
BEGIN
    ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
    RETURN (ms - 1600000000000) << 23 | (3 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE code.photos (id bigint PRIMARY KEY DEFAULT code.new_id(), n integer);

---- search_path_of_function
-- a function with its own search_path, which names a schema besides its own
-- adopted: schema code shard 3 epoch 1600000000000
-- insert: code.photos
-- call: code.new_id()
CREATE SCHEMA code;
CREATE SCHEMA data;
CREATE SEQUENCE data.ticks;
CREATE FUNCTION code.new_id() RETURNS bigint LANGUAGE plpgsql SET search_path = data, code AS $$
DECLARE
    ms bigint;
BEGIN
    ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
    RETURN (ms - 1600000000000) << 23 | (3 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE code.photos (id bigint PRIMARY KEY DEFAULT code.new_id(), n integer);

---- search_path_public
-- a function with SET search_path = public
-- adopted: schema public shard 2 epoch 1600000000000
-- call: new_id()
CREATE SEQUENCE ticks;
CREATE FUNCTION new_id() RETURNS bigint LANGUAGE plpgsql SET search_path = public AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN (ms - 1600000000000) << 23 | (2 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT new_id(), n integer);

---- search_path_in_body
-- a SET as a statement of the function, which stays for the session
-- adopted: schema college shard 1 epoch 1483200000000
-- insert: college.works
-- call: college.id_generator()
CREATE SCHEMA college;
CREATE SEQUENCE college.id_sequence;
CREATE FUNCTION college.id_generator(OUT new_id bigint) AS $$
DECLARE
    epoch_ms bigint := 1483200000000;
    tick bigint;
    ms bigint;
    number int := 1;
BEGIN
    SET search_path = college;
    SELECT nextval('id_sequence') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM now()) * 1000) INTO ms;
    new_id := (ms - epoch_ms) << 23;
    new_id := new_id | (number << 10);
    new_id := new_id | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE college.works (id bigint PRIMARY KEY DEFAULT college.id_generator(), n integer);

---- sequence_elsewhere
-- the sequence is in another schema: audit() has the line that moves it
-- adopted: schema s38 shard 38 epoch 1314220021721
-- insert: s38.photos
-- call: s38.next_id()
CREATE SCHEMA s38;
CREATE SCHEMA seqs;
CREATE SEQUENCE seqs.seq38;
CREATE FUNCTION s38.next_id(OUT id bigint) LANGUAGE plpgsql AS $$
DECLARE
    ms bigint;
BEGIN
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    id := (ms - 1314220021721) << 23 | (38 << 10) | nextval('seqs.seq38') % 1024;
END $$;
CREATE TABLE s38.photos (id bigint PRIMARY KEY DEFAULT s38.next_id(), n integer);

---- sequence_in_variable
-- the sequence's name is in a variable
-- adopted: schema public shard 9 epoch 1555977600000
-- call: next_id()
CREATE SEQUENCE photos_seq;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    source text := 'photos_seq';
    epoch_ms bigint := 1555977600000;
    ms bigint;
    tick bigint;
BEGIN
    SELECT nextval(source) % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    RETURN ((ms - epoch_ms) << 23) | (9 << 10) | tick;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- sequence_in_qualified_variable
-- the same with a schema, concatenated
-- adopted: schema shop shard 9 epoch 1555977600000
-- insert: shop.photos
-- call: shop.next_id()
CREATE SCHEMA shop;
CREATE SEQUENCE shop.photos_seq;
CREATE FUNCTION shop.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    place text := 'shop';
    epoch_ms bigint := 1555977600000;
    ms bigint;
    tick bigint;
BEGIN
    SELECT nextval(place || '.photos_seq') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    RETURN ((ms - epoch_ms) << 23) | (9 << 10) | tick;
END $$;
CREATE TABLE shop.photos (id bigint PRIMARY KEY DEFAULT shop.next_id(), n integer);

---- sequence_in_format
-- the sequence's name is made by format()
-- adopted: schema shop shard 10 epoch 1555977600000
-- insert: shop.photos
-- call: shop.next_id()
CREATE SCHEMA shop;
CREATE SEQUENCE shop."Ticks of all";
CREATE FUNCTION shop.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    epoch_ms bigint := 1555977600000;
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN ((ms - epoch_ms) << 23) | (10 << 10)
        | nextval(format('%I.%I', 'shop', 'Ticks of all')::regclass) % 1024;
END $$;
CREATE TABLE shop.photos (id bigint PRIMARY KEY DEFAULT shop.next_id(), n integer);

---- sequence_in_execute
-- nextval() is in a string that EXECUTE runs
-- adopted: schema shop shard 11 epoch 1555977600000
-- insert: shop.photos
-- call: shop.next_id()
CREATE SCHEMA shop;
CREATE SEQUENCE shop.ticks;
CREATE FUNCTION shop.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    epoch_ms bigint := 1555977600000;
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    tick bigint;
BEGIN
    EXECUTE 'SELECT nextval(''shop.ticks'') % 1024' INTO tick;
    RETURN ((ms - epoch_ms) << 23) | (11 << 10) | tick;
END $$;
CREATE TABLE shop.photos (id bigint PRIMARY KEY DEFAULT shop.next_id(), n integer);

---- sequence_as_regclass
-- a cast to regclass, of a name without a schema
-- adopted: schema public shard 0 epoch 1314220021721
-- call: next_id()
CREATE SEQUENCE table_id_seq;
CREATE FUNCTION next_id(OUT result bigint) AS $$
DECLARE
    epoch_ms bigint := 1314220021721;
    tick bigint;
    ms bigint;
    number int := 0;
BEGIN
    SELECT nextval('table_id_seq'::regclass) % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - epoch_ms) << 23;
    result := result | (number << 10);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- sequence_of_serial
-- a serial column got the function as its default, which uses the sequence of the column
-- adopted: schema public shard 4 epoch 1314220021721
-- insert: tokens
-- call: generate_next_tokens_id()
CREATE TABLE tokens (id bigserial PRIMARY KEY, n integer);
INSERT INTO tokens (n) SELECT generate_series(1, 20);
CREATE FUNCTION generate_next_tokens_id(OUT result bigint) AS $$
DECLARE
    epoch_ms bigint := 1314220021721;
    tick bigint;
    ms bigint;
    number int := 4;
BEGIN
    SELECT nextval('tokens_id_seq')::bigint % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - epoch_ms) << 23;
    result := result | (number << 10);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
ALTER TABLE tokens ALTER id SET DEFAULT generate_next_tokens_id();

---- sequence_owned
-- the sequence of a table belongs to its column, and has values of 0 to 1023 only
-- adopted: schema library shard 7 epoch 1640995200000
-- insert: library.spaces
-- call: library.next_space()
CREATE SCHEMA library;
CREATE TABLE library.spaces (id bigint PRIMARY KEY, n integer);
CREATE SEQUENCE library.spaces_seq MINVALUE 0 MAXVALUE 1023 CYCLE OWNED BY library.spaces.id;
CREATE FUNCTION library.next_space(OUT id bigint) AS $$
DECLARE
    epoch_ms bigint := 1640995200000;
    ms bigint;
BEGIN
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    id := (ms - epoch_ms) << 23;
    id := id | (7 << 10);
    id := id | nextval('library.spaces_seq');
END;
$$ LANGUAGE plpgsql;
ALTER TABLE library.spaces ALTER id SET DEFAULT library.next_space();

---- function_of_each_table
-- a function for each table, each on the sequence of its table; a role may use some
-- adopted: schema public shard 8 epoch 1314220021721
-- insert: items clients actions
-- call: generate_next_items_id(); generate_next_clients_id(); generate_next_actions_id()
-- app: clients
CREATE TABLE items (id bigserial PRIMARY KEY, n integer);
CREATE TABLE clients (id bigserial PRIMARY KEY, n integer);
CREATE TABLE actions (id bigserial PRIMARY KEY, n integer);
CREATE FUNCTION generate_next_items_id(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    ms bigint;
BEGIN
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1314220021721) << 23 | (8 << 10) | nextval('items_id_seq')::bigint % 1024;
END $$;
CREATE FUNCTION generate_next_clients_id(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    ms bigint;
BEGIN
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1314220021721) << 23 | (8 << 10) | nextval('clients_id_seq')::bigint % 1024;
END $$;
CREATE FUNCTION generate_next_actions_id(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    ms bigint;
BEGIN
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1314220021721) << 23 | (8 << 10) | nextval('actions_id_seq')::bigint % 1024;
END $$;
ALTER TABLE items ALTER id SET DEFAULT generate_next_items_id();
ALTER TABLE clients ALTER id SET DEFAULT generate_next_clients_id();
ALTER TABLE actions ALTER id SET DEFAULT generate_next_actions_id();
GRANT INSERT ON clients TO app;
GRANT USAGE ON SEQUENCE clients_id_seq TO app;

---- function_beside_next_id
-- next_id() and another function, each with a sequence of its own in the schema
-- adopted: schema forum shard 21 epoch 1420070400000
-- insert: forum.posts forum.votes
-- call: forum.next_id(); forum.next_vote_id()
CREATE SCHEMA forum;
CREATE SEQUENCE forum.posts_seq;
CREATE SEQUENCE forum.votes_seq;
CREATE FUNCTION forum.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1420070400000) << 23
        | (21 << 10) | (nextval('forum.posts_seq') % 1024);
END $$;
CREATE FUNCTION forum.next_vote_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1420070400000) << 23
        | (21 << 10) | (nextval('forum.votes_seq') % 1024);
END $$;
CREATE TABLE forum.posts (id bigint PRIMARY KEY DEFAULT forum.next_id(), n integer);
CREATE TABLE forum.votes (id bigint PRIMARY KEY DEFAULT forum.next_vote_id(), n integer);

---- two_functions_one_sequence
-- two functions that use one sequence; the tables use one of them each
-- adopted: schema public shard 0 epoch 1505706041000
-- insert: users files
-- call: next_id(); id_generator()
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id(OUT id bigint) LANGUAGE plpgsql AS $$
DECLARE
    epoch_ms bigint := 1505706041000;
BEGIN
    id := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - epoch_ms) << 23;
    id := id | (0 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE FUNCTION id_generator(OUT id bigint) LANGUAGE plpgsql AS $$
DECLARE
    epoch_ms bigint := 1505706041000;
BEGIN
    id := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - epoch_ms) << 23;
    id := id | (0 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE users (id bigint PRIMARY KEY DEFAULT next_id(), n integer);
CREATE TABLE files (id bigint PRIMARY KEY DEFAULT id_generator(), n integer);

---- many_schemas
-- a loop made the schemas, and wrote a number into each function
-- adopted: schema hv_0001 shard 1 epoch 1379365531352
-- adopted: schema hv_0002 shard 2 epoch 1379365531352
-- adopted: schema hv_0003 shard 3 epoch 1379365531352
-- insert: hv_0001.entities hv_0002.entities hv_0003.entities
-- call: hv_0002.next_id()
DO $do$
DECLARE
    place text;
BEGIN
    FOR i IN 1 .. 3 LOOP
        place := 'hv_' || lpad(i::text, 4, '0');
        EXECUTE 'CREATE SCHEMA ' || place;
        EXECUTE 'CREATE SEQUENCE ' || place || '.table_id_seq';
        EXECUTE 'CREATE FUNCTION ' || place || '.next_id(OUT result bigint) AS $$ DECLARE'
            ' ms bigint; BEGIN SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO ms;'
            ' result := (ms - 1379365531352) << 23; result := result | (' || i || ' << 10);'
            ' result := result | (nextval(''' || place || '.table_id_seq'') % 1024); END; $$'
            ' LANGUAGE PLPGSQL;';
        EXECUTE 'CREATE TABLE ' || place || '.entities (id bigint NOT NULL DEFAULT ' || place
            || '.next_id(), n integer, CONSTRAINT entities_pk PRIMARY KEY (id))';
    END LOOP;
END $do$;

---- sql_language
-- a function in SQL, with comments between; no name has a schema
-- adopted: schema public shard 5 epoch 1620488843862
-- call: next_id()
CREATE SEQUENCE seq_id START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE sql AS $$
    SELECT ((floor(extract(epoch FROM clock_timestamp()) * 1000) /* ms */
             - 1620488843862 /* epoch */)::bigint << 23)
           | (5 /* shard */ << 10)
           | (nextval('seq_id') % 1024 /* tick */);
$$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- sql_language_of_schemas
-- functions in SQL in schemas of their own, whose number is a sum
-- adopted: schema rel_0 shard 1 epoch 1314220021721
-- adopted: schema rel_1 shard 2 epoch 1314220021721
-- insert: rel_0.moments rel_1.moments
-- call: rel_0.next_id(); rel_1.next_id()
CREATE SCHEMA rel_0;
CREATE SCHEMA rel_1;
CREATE SEQUENCE rel_0.rel_id_seq;
CREATE SEQUENCE rel_1.rel_id_seq;
CREATE FUNCTION rel_0.next_id() RETURNS bigint LANGUAGE sql AS $$
    SELECT (floor(extract(epoch FROM clock_timestamp()) * 1000) - 1314220021721)::bigint << 23
           | (1 + 0 << 10) | (nextval('rel_0.rel_id_seq') % 1024) $$;
CREATE FUNCTION rel_1.next_id() RETURNS bigint LANGUAGE sql AS $$
    SELECT (floor(extract(epoch FROM clock_timestamp()) * 1000) - 1314220021721)::bigint << 23
           | (1 + 1 << 10) | (nextval('rel_1.rel_id_seq') % 1024) $$;
CREATE TABLE rel_0.moments (id bigint PRIMARY KEY DEFAULT rel_0.next_id(), n integer);
CREATE TABLE rel_1.moments (id bigint PRIMARY KEY DEFAULT rel_1.next_id(), n integer);

---- sql_return
-- a function in SQL with a RETURN: it is parsed, and its names are fixed
-- adopted: schema public shard 6 epoch 1420070400000
-- call: new_id()
CREATE SEQUENCE ticks;
CREATE FUNCTION new_id() RETURNS bigint LANGUAGE sql
    RETURN ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1420070400000) << 23)
        | (6 << 10) | (nextval('ticks') % 1024);
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT new_id(), n integer);

---- sequence_of_integer
-- a sequence AS integer, and the table's column is a smaller one's
-- adopted: schema public shard 3 epoch 1648150338000
-- call: next_id()
CREATE SEQUENCE table_id_seq AS integer;
CREATE FUNCTION next_id(OUT id bigint) LANGUAGE plpgsql AS $$
DECLARE
    ms bigint;
BEGIN
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    id := (ms - 1648150338000) << 23 | (3 << 10) | nextval('table_id_seq') % 1024;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- sequence_of_smallint
-- a sequence AS smallint that cycles
-- adopted: schema public shard 3 epoch 1648150338000
-- call: next_id()
CREATE SEQUENCE table_id_seq AS smallint CYCLE;
CREATE FUNCTION next_id(OUT id bigint) LANGUAGE plpgsql AS $$
DECLARE
    ms bigint;
BEGIN
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    id := (ms - 1648150338000) << 23 | (3 << 10) | nextval('table_id_seq') % 1024;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- sequence_that_cycles
-- the sequence has values of 0 to 1023, and the function no modulus
-- adopted: schema public shard 17 epoch 1656633600000
-- call: next_id()
CREATE SEQUENCE ticks MINVALUE 0 MAXVALUE 1023 CYCLE;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1656633600000) << 23
        | (17 << 10) | nextval('ticks');
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- sequence_with_cache
-- sessions cache values
-- adopted: schema public shard 18 epoch 1656633600000
-- call: next_id()
CREATE SEQUENCE ticks CACHE 50 CYCLE MAXVALUE 100000;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1656633600000) << 23
        | (18 << 10) | nextval('ticks') % 1024;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- sequence_from_1000
-- a sequence that began at 1000, in steps of 10
-- adopted: schema public shard 5 epoch 1568851200000
-- call: next_id()
CREATE SEQUENCE table_id_seq AS bigint START WITH 1000 INCREMENT BY 10;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1568851200000) << 23
        | (5 << 10) | nextval('table_id_seq') % 1024;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- mod_function
-- mod() instead of the operator, in a function whose body is between single quotes
-- adopted: schema bugs shard 5 epoch 1314220021721
-- insert: bugs.reports
-- call: bugs.next_id()
CREATE SCHEMA bugs;
CREATE SEQUENCE bugs.table_id_seq START WITH 1 INCREMENT BY 1;
CREATE FUNCTION bugs.next_id(OUT result bigint) AS '
DECLARE
    epoch_ms bigint := 1314220021721;
    tick bigint;
    ms bigint;
    number int := 5;
BEGIN
    SELECT MOD(nextval(''bugs.table_id_seq''), 1024) INTO tick;
    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - epoch_ms) << 23;
    result := result | (number <<10);
    result := result | (tick);
END;
' LANGUAGE plpgsql;
CREATE TABLE bugs.reports (id bigint PRIMARY KEY DEFAULT bugs.next_id(), n integer);

---- mod_of_mod
-- a modulus that would be right for values below 0, too
-- adopted: schema mill shard 1 epoch 1487721600000
-- insert: mill.admins mill.categories
-- call: mill.next_id()
CREATE SCHEMA mill;
CREATE SEQUENCE mill.table_id_seq;
CREATE FUNCTION mill.next_id(OUT result bigint) AS $$
DECLARE
    ms bigint;
    tick bigint;
BEGIN
    SELECT mod(1024 + mod(nextval('mill.table_id_seq'), 1024), 1024) INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1487721600000) << 23;
    result := result | (1 << 10);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE mill.admins (id bigint PRIMARY KEY DEFAULT mill.next_id(), n integer);
CREATE TABLE mill.categories (id bigint PRIMARY KEY DEFAULT mill.next_id(), n integer);

---- minus_one
-- the first value counts as 0
-- adopted: schema public shard 2 epoch 1577836800000
-- call: next_id()
CREATE SEQUENCE users_seq;
CREATE FUNCTION next_id(OUT result bigint) AS $$
DECLARE
    ms bigint;
    tick bigint;
BEGIN
    SELECT (nextval('users_seq') - 1) % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := ((ms - 1577836800000) << 23) | (2 << 10) | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- and_1023
-- a mask instead of a modulus, and of the number, too
-- adopted: schema public shard 300 epoch 1577836800000
-- call: next_id()
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    number bigint := 300;
BEGIN
    RETURN ((ms - 1577836800000) << 23) | ((number & 8191) << 10) | (nextval('ticks') & 1023);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- modulus_in_variable
-- the modulus is a variable, whose name says something else
-- adopted: schema shard3 shard 3 epoch 1314220021721
-- insert: shard3.messages
-- call: shard3.next_id()
CREATE SCHEMA shard3;
CREATE SEQUENCE shard3.message_seq;
CREATE FUNCTION shard3.next_id(OUT result bigint) AS $$
DECLARE
    epoch_ms bigint := 1314220021721;
    tick bigint;
    ms bigint;
    number int := 3;
    max_shard bigint := 1024;
BEGIN
    SELECT nextval('shard3.message_seq') % max_shard INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - epoch_ms) << 23;
    result := result | (number << 10);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE shard3.messages (id bigint PRIMARY KEY DEFAULT shard3.next_id(), n integer);

---- shift_in_expression
-- the shift is what is left of 64 bits
-- adopted: schema public shard 44 epoch 1314220021721
-- call: next_id()
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id(OUT id bigint) LANGUAGE plpgsql AS $$
DECLARE
    ms bigint;
BEGIN
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    id := (ms - 1314220021721) << (64 - 41);
    id := id | (44 << (64 - 41 - 13));
    id := id | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- sums_and_products
-- arithmetic without bits
-- adopted: schema public shard 77 epoch 1577836800000
-- call: next_id()
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN (ms - 1577836800000) * 8388608 + 77 * 1024 + nextval('ticks') % 1024;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- powers
-- powers of 2 instead of shifts
-- adopted: schema public shard 78 epoch 1577836800000
-- call: next_id()
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN (ms - 1577836800000) * (2 ^ 23)::bigint + 78 * power(2, 10)::bigint
        + mod(nextval('ticks'), 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- time_of_transaction
-- now() instead of clock_timestamp()
-- adopted: schema public shard 1 epoch 1072915200000
-- call: id_generator()
CREATE SEQUENCE id_sequence;
CREATE FUNCTION id_generator(OUT new_id bigint) AS $$
DECLARE
    ms bigint;
BEGIN
    SELECT floor(extract(epoch FROM now()) * 1000) INTO ms;
    new_id := (ms - 1072915200000) << 23 | (1 << 10) | (nextval('id_sequence') % 1024);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT id_generator(), n integer);

---- time_rounded
-- a cast instead of floor(), so that times are rounded; date_part() instead of extract()
-- adopted: schema public shard 1 epoch 1704067200000
-- call: snowflake_id()
CREATE SEQUENCE snowflake_seq;
CREATE FUNCTION snowflake_id() RETURNS bigint AS $$
DECLARE
    ms bigint;
    tick bigint;
BEGIN
    tick := nextval('snowflake_seq') % 1024;
    ms := (date_part('epoch', clock_timestamp()) * 1000)::bigint;
    RETURN ((ms - 1704067200000) << 23) | (1 << 10) | tick;
END;
$$ LANGUAGE plpgsql;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake_id(), n integer);

---- without_shard
-- nothing but the time and the sequence
-- adopted: schema public shard 0 epoch 1314220021721
-- call: generate_id()
CREATE SEQUENCE public.global_id_seq;
CREATE FUNCTION public.generate_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    tick bigint;
    ms bigint;
    id bigint := 0;
BEGIN
    SELECT nextval('public.global_id_seq') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    id := (ms - 1314220021721) << 23;
    id := id | (tick);
    RETURN id;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT generate_id(), n integer);

---- commented_shard
-- the shard is commented out, and an older version of the function, with another epoch
-- adopted: schema public shard 0 epoch 1708214400000
-- call: next_id()
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id(OUT result bigint) AS $$
-- DECLARE
--     epoch_ms bigint := 1314220021721;
--     number int := 5;
DECLARE
    epoch_ms bigint := 1708214400000; -- 2024-02-18 00:00:00 UTC
    -- number int := 1;
    tick bigint;
    ms bigint;
BEGIN
    SELECT nextval('ticks') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - epoch_ms) << 23;
    -- result := result | (number << 10);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- shard_shifted_by_18
-- the shard is above what the modulus leaves free: it is shard 256, whatever its name is
-- adopted: schema noetl shard 256 epoch 1704067200000
-- insert: noetl.jobs
-- call: noetl.snowflake_id()
CREATE SCHEMA noetl;
CREATE SEQUENCE noetl.snowflake_seq;
CREATE FUNCTION noetl.snowflake_id() RETURNS bigint AS $$
DECLARE
    number int := 1;
    ms bigint;
    tick bigint;
BEGIN
    SELECT nextval('noetl.snowflake_seq') % 1024 INTO tick;
    ms := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    RETURN ((ms - 1704067200000) << 23) | ((number & 31) << 18) | (tick & 262143);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE noetl.jobs (id bigint PRIMARY KEY DEFAULT noetl.snowflake_id(), n integer);

---- shard_of_setting
-- the number is a setting of the database: another session could have another one
-- refused: session.*current_setting
-- cured: schema public shard 27 epoch 1577836800000
-- call: next_id()
\connect - :superuser
ALTER DATABASE :"DBNAME" SET app.shard = '27';
\connect - :owner
CREATE SEQUENCE table_id_seq;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    number int := current_setting('app.shard')::int;
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN ((ms - 1577836800000) << 23) | (number << 10) | (nextval('table_id_seq') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- shard_of_table
-- the number is in a table, which has no schema in the text
-- adopted: schema public shard 28 epoch 1577836800000
-- call: next_id()
CREATE SEQUENCE table_id_seq;
CREATE TABLE shard_config (number int NOT NULL);
INSERT INTO shard_config VALUES (28);
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    id int;
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    SELECT number INTO id FROM shard_config LIMIT 1;
    RETURN ((ms - 1577836800000) << 23) | (id << 10) | (nextval('table_id_seq') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- shard_of_function
-- the number is what another function returns, which has no schema in the text
-- adopted: schema public shard 29 epoch 1698105600011
-- call: next_id()
CREATE SEQUENCE table_id_seq;
CREATE FUNCTION get_shard_index() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 29';
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    number int := get_shard_index();
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN ((ms - 1698105600011) << 23) | (number << 10) | (nextval('table_id_seq') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- shard_of_database_name
-- the number is the end of a name
-- adopted: schema tenant_31 shard 31 epoch 1577836800000
-- insert: tenant_31.photos
-- call: tenant_31.next_id()
CREATE SCHEMA tenant_31;
CREATE SEQUENCE tenant_31.ticks;
CREATE FUNCTION tenant_31.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    number int := substring('tenant_31' from E'\\d+$')::int;
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN ((ms - 1577836800000) << 23) | (number << 10) | (nextval('tenant_31.ticks') % 1024);
END $$;
CREATE TABLE tenant_31.photos (id bigint PRIMARY KEY DEFAULT tenant_31.next_id(), n integer);

---- called_by_trigger
-- no default: a trigger fills the column
-- adopted: schema public shard 32 epoch 1577836800000
-- call: next_id()
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 23
        | (32 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE FUNCTION set_id() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id IS NULL THEN
        NEW.id := next_id();
    END IF;
    RETURN NEW;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY, n integer);
CREATE TRIGGER set_id BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION set_id();

---- quoted_names
-- all names need quotes
-- adopted: schema Shop"5" shard 33 epoch 1577836800000
-- insert: "Shop""5"""."Photos"
-- call: "Shop""5"""."nextId"()
CREATE SCHEMA "Shop""5""";
CREATE SEQUENCE "Shop""5"""."Table_ID_seq";
CREATE FUNCTION "Shop""5"""."nextId"(OUT "Result" bigint) LANGUAGE plpgsql AS $$
DECLARE
    "nowMs" bigint;
BEGIN
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO "nowMs";
    "Result" := ("nowMs" - 1577836800000) << 23 | (33 << 10)
        | (nextval('"Shop""5"""."Table_ID_seq"') % 1024);
END $$;
CREATE TABLE "Shop""5"""."Photos" ("ID" bigint PRIMARY KEY DEFAULT "Shop""5"""."nextId"(),
    n integer);

---- default_shard_argument
-- the number is an argument, which no caller passes
-- adopted: schema public shard 6 epoch 1577836800000
-- call: generate_id()
CREATE SEQUENCE table_id_seq;
CREATE FUNCTION generate_id(shard_id int DEFAULT 6) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN ((ms - 1577836800000) << 23) | (shard_id << 10) | (nextval('table_id_seq') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT generate_id(), n integer);

---- default_sequence_argument
-- the sequence is an argument, which no caller passes
-- adopted: schema public shard 1 epoch 1716973200000
-- call: snowflake_id()
CREATE SEQUENCE global_snowflake_seq;
CREATE FUNCTION snowflake_id(seq_name text DEFAULT 'global_snowflake_seq') RETURNS bigint AS $$
DECLARE
    worker bigint := 1;
    tick bigint;
    ms bigint;
BEGIN
    SELECT nextval(seq_name) % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    RETURN (ms - 1716973200000) << 23 | (worker << 10) | tick;
END;
$$ LANGUAGE plpgsql;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake_id(), n integer);

---- security_definer
-- callers have no right on the sequence
-- adopted: schema public shard 34 epoch 1577836800000
-- call: next_id()
-- app: photos
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 23
        | (34 << 10) | (nextval('ticks') % 1024);
END $$;
REVOKE ALL ON FUNCTION next_id() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION next_id() TO app;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);
GRANT INSERT ON photos TO app;

---- granted
-- another name, and rights of another role on all of it
-- adopted: schema api shard 35 epoch 1577836800000
-- insert: api.photos
-- call: api.new_id()
-- app: api.photos
CREATE SCHEMA api;
GRANT USAGE ON SCHEMA api TO app;
CREATE SEQUENCE api.global_id_sequence;
GRANT USAGE ON SEQUENCE api.global_id_sequence TO app;
CREATE FUNCTION api.new_id(OUT id bigint) LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    id := (ms - 1577836800000) << 23 | (35 << 10)
        | (nextval('api.global_id_sequence') % 1024);
END $$;
REVOKE ALL ON FUNCTION api.new_id() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION api.new_id() TO app;
CREATE TABLE api.photos (id bigint PRIMARY KEY DEFAULT api.new_id(), n integer);
GRANT INSERT ON api.photos TO app;

---- marked_stable
-- marked STABLE, PARALLEL SAFE and STRICT, which it is not
-- adopted: schema public shard 36 epoch 1577836800000
-- call: next_id()
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE COST 1 AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 23
        | (36 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- writes_a_log
-- the function counts its calls in a table with a serial
-- adopted: schema public shard 37 epoch 1577836800000
-- call: next_id()
CREATE TABLE calls (call serial, at timestamptz DEFAULT now());
CREATE SEQUENCE table_id_seq;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    INSERT INTO calls DEFAULT VALUES;
    RETURN (ms - 1577836800000) << 23 | (37 << 10) | (nextval('table_id_seq') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- rows_of_before
-- the table was a serial's, and the rows of then are there
-- adopted: schema public shard 39 epoch 1577836800000
-- call: next_id()
CREATE TABLE photos (id bigint PRIMARY KEY, n integer);
INSERT INTO photos SELECT g, g FROM generate_series(1, 6000) AS g;
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 23
        | (39 << 10) | (nextval('ticks') % 1024);
END $$;
ALTER TABLE photos ALTER id SET DEFAULT next_id();

---- partitioned
-- a partitioned table, and partitions with the default, too
-- adopted: schema public shard 1 epoch 1577836800000
-- insert: players
-- call: next_id()
CREATE SEQUENCE players_id_seq START WITH 1;
CREATE FUNCTION next_id(OUT result bigint) AS $$
DECLARE
    number int := 1;
    tick bigint;
    ms bigint;
BEGIN
    SELECT nextval('players_id_seq') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1577836800000) << 23;
    result := result | (number << 10);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE players (id bigint NOT NULL DEFAULT next_id(), n integer) PARTITION BY HASH (n);
CREATE TABLE players_0 PARTITION OF players FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE players_1 PARTITION OF players FOR VALUES WITH (MODULUS 2, REMAINDER 1);

---- column_of_text
-- the function returns bigint, and columns are of type varchar
-- adopted: schema public shard 5 epoch 1314220021721
-- insert: reasons
-- call: next_id()
CREATE SEQUENCE public.table_id_seq;
CREATE FUNCTION public.next_id(OUT result int8) LANGUAGE plpgsql AS $$
DECLARE
    ms bigint;
BEGIN
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1314220021721) << 23 | (5 << 10) | (nextval('public.table_id_seq') % 1024);
END $$;
CREATE TABLE public.reasons (id varchar DEFAULT next_id() NOT NULL PRIMARY KEY, n integer);

---- called_by_functions
-- besides the default: other functions and a view call it
-- adopted: schema public shard 40 epoch 1577836800000
-- call: next_id(); next_of_photos(); (SELECT id FROM next_ids_view)
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 23
        | (40 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE FUNCTION next_of_photos() RETURNS bigint LANGUAGE sql AS 'SELECT public.next_id()';
CREATE VIEW next_ids_view AS SELECT next_id() AS id;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- epoch_of_10_digits
-- seconds, times 1000 after the subtraction
-- adopted: schema public shard 41 epoch 1387263000000
-- call: next_id()
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    start_s CONSTANT bigint := 1387263000;
BEGIN
    RETURN floor((extract(epoch FROM clock_timestamp()) - start_s) * 1000)::bigint << 23
        | (41 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- epoch_as_product
-- seconds, times 1000 in the declaration
-- adopted: schema public shard 42 epoch 1387263000000
-- call: next_id()
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    epoch_ms CONSTANT bigint := 1387263000 * 1000::bigint;
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN (ms - epoch_ms) << 23 | (42 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- epoch_of_date
-- a date, as a book has it; its time is midnight in UTC
-- adopted: schema shard_9 shard 9 epoch 1451606400000
-- insert: shard_9.photos
-- call: shard_9.next_unique_id()
CREATE SCHEMA shard_9;
CREATE SEQUENCE shard_9.table_id_seq;
CREATE FUNCTION shard_9.next_unique_id() RETURNS bigint AS $$
DECLARE
    number int := 9;
    epoch date := '2016-01-01';
    epoch_ms bigint;
    ms bigint;
    id bigint;
BEGIN
    epoch_ms := floor(extract(epoch FROM epoch) * 1000);
    ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
    id := (ms - epoch_ms) << 23 | (number << 10) | (nextval('shard_9.table_id_seq') % 1024);
    RETURN id;
END;
$$ LANGUAGE plpgsql;
CREATE TABLE shard_9.photos (id bigint PRIMARY KEY DEFAULT shard_9.next_unique_id(), n integer);

---- epoch_of_zone
-- a timestamptz without a zone: midnight in the zone of the database, which is New York
-- adopted: schema public shard 43 epoch 1451624400000
-- call: next_id()
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    start timestamptz := '2016-01-01';
    ms bigint := floor(extract(epoch FROM clock_timestamp() - start) * 1000);
BEGIN
    RETURN ms << 23 | (43 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- epoch_of_timestamp
-- a timestamp with a time and a zone
-- adopted: schema public shard 45 epoch 1502725500000
-- call: next_id()
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    epoch_ms bigint := extract(epoch FROM timestamptz '2017-08-14 15:45:00+00') * 1000;
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN (ms - epoch_ms) << 23 | (45 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- epoch_of_function
-- the text has no epoch, because another function returns it: what the IDs show is what to pass
-- refused: epoch => '2016-01-01 00:00:00\+00'
CREATE SEQUENCE ticks;
CREATE FUNCTION my_epoch() RETURNS bigint LANGUAGE sql IMMUTABLE
    AS 'SELECT (1451606400 * 1000::bigint)';
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    epoch_ms bigint := my_epoch();
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN (ms - epoch_ms) << 23 | (46 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- layout_23_13
-- 10 bits of shard above 13 bits of sequence
-- refused: layout|several shards
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id(OUT result bigint) AS $$
DECLARE
    number int := 5;
    tick bigint;
    ms bigint;
BEGIN
    SELECT nextval('ticks') % 8192 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1314220021721) << 23;
    result := result | (number << 13);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- layout_23_16
-- 7 bits of shard above 16 bits of sequence
-- refused: layout|several shards
-- insert: zion.photos
CREATE SCHEMA zion;
CREATE SEQUENCE zion.table_id_seq;
CREATE FUNCTION zion.next_unique_id() RETURNS bigint AS $$
DECLARE
    number int := 1;
    epoch date := '2021-01-01';
    epoch_ms bigint;
    ms bigint;
BEGIN
    epoch_ms := floor(extract(epoch FROM epoch) * 1000);
    ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
    RETURN (ms - epoch_ms) << 23 | (number << 16) | (nextval('zion.table_id_seq') % 65536);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE zion.photos (id bigint PRIMARY KEY DEFAULT zion.next_unique_id(), n integer);

---- overlap_4096
-- 12 bits of sequence, of which the upper two are also those of the shard
-- refused: layout|several shards
CREATE SEQUENCE counter_seq;
CREATE FUNCTION get_id(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    number int := 1;
    tick bigint;
    ms bigint;
BEGIN
    SELECT nextval('counter_seq') % 4096 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1514754000000) << 23;
    result := result | (number << 10);
    result := result | (tick);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT get_id(), n integer);

---- overlap_2048
-- 11 bits of sequence, and shard 0: half of the IDs are those of shard 1
-- refused: layout|several shards
CREATE SEQUENCE si_id_seq;
CREATE FUNCTION next_si_id(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    number int := 0;
    max_shard bigint := 2048;
    tick bigint;
    ms bigint;
BEGIN
    SELECT nextval('si_id_seq') % max_shard INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1608072994248) << 23;
    result := result | (number << 10);
    result := result | (tick);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_si_id(), n integer);

---- without_shard_23_bits
-- 23 bits of sequence
-- refused: layout|several shards
CREATE SEQUENCE "id_seq";
CREATE FUNCTION next_id(OUT result bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    tick bigint;
    ms bigint;
BEGIN
    SELECT nextval('id_seq') % 8388608 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1735689600000) << 23;
    result := result | tick;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- without_modulus
-- the whole value of the sequence, which now is small
-- refused: layout|several shards
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN (ms - 1577836800000) << 23 | (4 << 10) | nextval('ticks');
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- random_shard
-- a number that is another one in each call
-- refused: layout|several shards
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    number bigint := floor(random() * 1024);
BEGIN
    RETURN (ms - 1577836800000) << 23 | (number << 13) | (nextval('ticks') % 1024 << 3);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- layout_22_12
-- as Twitter's
-- refused: layout
CREATE SEQUENCE public.global_id_seq;
CREATE FUNCTION public.sfid() RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
    number int := 1;
    tick bigint;
    ms bigint;
    id bigint := 0;
BEGIN
    SELECT nextval('public.global_id_seq') % 4096 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    id := (ms - 1288834974657) << 22;
    id := id | (number << 12);
    id := id | (tick);
    RETURN id;
END $body$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT sfid(), n integer);

---- layout_22_10
-- 12 bits of shard
-- refused: layout
CREATE SEQUENCE public.table_id_seq;
CREATE FUNCTION public.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    number int := 20;
    ms bigint;
    tick bigint;
BEGIN
    SELECT nextval('table_id_seq') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    RETURN (ms - 1636331031000) << 22 | (number << 10) | tick;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- layout_22_9
-- the shard overlaps the sequence, and the epoch is one of seconds
-- refused: layout
CREATE SEQUENCE global_snowflake_id_seq;
CREATE FUNCTION create_snowflake() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    epoch_ms bigint := 1577836800;
    number int := 1;
    tick bigint;
    ms bigint;
    id bigint := 0;
BEGIN
    SELECT nextval('global_snowflake_id_seq') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    id := (ms - epoch_ms) << 22;
    id := id | (number << 9);
    id := id | (tick);
    RETURN id;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT create_snowflake(), n integer);

---- layout_22_cycle
-- 22 bits, and a sequence from 1 to 1024
-- refused: layout
CREATE SEQUENCE public.snowflake_id_seq START WITH 1 INCREMENT BY 1 MAXVALUE 1024 CYCLE;
CREATE FUNCTION public.snowflake_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    worker int := 1;
    tick bigint;
    ms bigint;
BEGIN
    SELECT nextval('public.snowflake_id_seq') INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    RETURN (ms - 1288834974657) << 22 | (worker << 12) | tick;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake_id(), n integer);

---- layout_21_15
-- 6 bits of shard, 15 of sequence, and no epoch
-- refused: layout
CREATE SEQUENCE public.global_id_sequence;
CREATE FUNCTION public.snowflake(OUT result bigint) AS $$
DECLARE
    epoch_ms bigint := 0;
    number int := 1;
    tick bigint;
    ms bigint;
BEGIN
    SELECT nextval('public.global_id_sequence') % 32768 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - epoch_ms) << 21;
    result := result | (number << 15);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake(), n integer);

---- layout_20
-- 44 bits of time, and 20 of the sequence
-- refused: layout
-- insert: spot.photos
CREATE SCHEMA spot;
CREATE SEQUENCE spot.id_seq;
CREATE FUNCTION spot.id_gen(OUT result bigint) AS $$
DECLARE
    tick bigint;
    ms bigint;
BEGIN
    SELECT nextval('spot.id_seq') % 1048576 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1609121549443) << 20;
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE spot.photos (id bigint PRIMARY KEY DEFAULT spot.id_gen(), n integer);

---- layout_16
-- 48 bits of time, and 16 of the sequence
-- refused: layout
CREATE SEQUENCE snowflake_seq;
CREATE FUNCTION snowflake_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    ms bigint;
    tick bigint;
BEGIN
    ms := floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    tick := nextval('snowflake_seq') % 65536;
    RETURN ((ms - 1704067200000) << 16) | tick;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT snowflake_id(), n integer);

---- epoch_in_seconds
-- seconds are subtracted from milliseconds: IDs are below 0
-- refused: below 0
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    epoch_ms bigint := 1577836800;
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN (ms - epoch_ms) << 23 | (1 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- epoch_10000
-- an epoch of 1970, whose 34.8 years are over: IDs are below 0
-- refused: below 0
-- insert: attributes objects
CREATE SEQUENCE global_id_sequence;
CREATE FUNCTION id_generator(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    epoch_ms bigint := 10000;
    ms bigint;
BEGIN
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - epoch_ms) << 23 | (1 << 10) | (nextval('global_id_sequence') % 1024);
END $$;
CREATE TABLE attributes (id bigint PRIMARY KEY DEFAULT id_generator(), n integer);
CREATE TABLE objects (id bigint PRIMARY KEY DEFAULT id_generator(), n integer);

---- clock_in_seconds
-- the clock in seconds, the epoch in milliseconds, and the difference times 1000
-- refused: layout|clock
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    s bigint := floor(extract(epoch FROM clock_timestamp()));
BEGIN
    RETURN (s - 1594958459980) * 1000 << 23 | (5 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- wrapper
-- next_id() calls the copy, and tables use both
-- adopted: schema w shard 6 epoch 1314220021721
-- insert: w.photos w.likes
-- call: w.next_id(); w.id_generator()
CREATE SCHEMA w;
CREATE SEQUENCE w.ticks;
CREATE FUNCTION w.id_generator() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
        | (6 << 10) | (nextval('w.ticks') % 1024);
END $$;
CREATE FUNCTION w.next_id() RETURNS bigint LANGUAGE sql AS 'SELECT w.id_generator()';
CREATE TABLE w.photos (id bigint PRIMARY KEY DEFAULT w.next_id(), n integer);
CREATE TABLE w.likes (id bigint PRIMARY KEY DEFAULT w.id_generator(), n integer);

---- one_sequence
-- two schemas with one sequence: the second needs one of its own
-- adopted: schema one shard 1 epoch 1314220021721
-- refused: two: .*(?:sequence of shard one|range of its own)
-- insert: one.photos two.photos
-- keeps: foreign_sequence
CREATE SEQUENCE ticks;
CREATE SCHEMA one;
CREATE FUNCTION one.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
        | (1 << 10) | (nextval('public.ticks') % 1024);
END $$;
CREATE TABLE one.photos (id bigint PRIMARY KEY DEFAULT one.next_id(), n integer);
CREATE SCHEMA two;
CREATE FUNCTION two.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
        | (2 << 10) | (nextval('public.ticks') % 1024);
END $$;
CREATE TABLE two.photos (id bigint PRIMARY KEY DEFAULT two.next_id(), n integer);

---- sequence_also_of_serial
-- the sequence also counts for another column
-- refused: also counts for
CREATE TABLE photos (number bigserial, id bigint PRIMARY KEY, n integer);
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
        | (5 << 10) | (nextval('photos_number_seq') % 1024);
END $$;
ALTER TABLE photos ALTER id SET DEFAULT next_id();

---- sequence_argument
-- the sequence's name is an argument: a function for all tables
-- refused: argument
-- insert: users tasks
CREATE FUNCTION next_id(OUT result bigint, seq text) AS $$
DECLARE
    tick bigint;
    ms bigint;
    number int := 5;
BEGIN
    SELECT nextval(seq) % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1570665600000) << 23;
    result := result | (number <<10);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE SEQUENCE users_id_seq;
CREATE SEQUENCE tasks_id_seq;
CREATE TABLE users (id bigint NOT NULL DEFAULT next_id('users_id_seq') PRIMARY KEY, n integer);
CREATE TABLE tasks (id bigint NOT NULL DEFAULT next_id('tasks_id_seq') PRIMARY KEY, n integer);

---- regclass_argument
-- the sequence is an argument of next_id(), as that of a shard has it
-- refused: argument
-- cure: -
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
        | (5 << 10) | (nextval(seq) % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id('ticks'), n integer);

---- sequence_argument_other_name
-- the same with another name, and a default for the number
-- refused: argument
CREATE FUNCTION generate_snowflake(seq text, number integer DEFAULT 1, OUT snowflake bigint)
    LANGUAGE plpgsql AS $$
DECLARE
    tick bigint;
    ms bigint;
BEGIN
    SELECT nextval(seq) % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    snowflake := (ms - 1708214400000) << 23;
    snowflake := snowflake | (number << 10);
    snowflake := snowflake | (tick);
END $$;
CREATE SEQUENCE photos_id_seq;
CREATE TABLE photos (id bigint NOT NULL DEFAULT generate_snowflake('photos_id_seq'::text)
    PRIMARY KEY, n integer);

---- unnamed_arguments
-- arguments without names
-- refused: argument
CREATE FUNCTION next_sharded_id(varchar, int, OUT result bigint) AS $$
DECLARE
    source ALIAS FOR $1;
    number ALIAS FOR $2;
    ms bigint;
BEGIN
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1351728000000) << 23 | (number << 10) | (nextval(source::regclass) % 1024);
END;
$$ LANGUAGE plpgsql;
CREATE SEQUENCE photos_id_seq;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_sharded_id('photos_id_seq', 3), n integer);

---- table_argument
-- the table's name is an argument, of which the sequence's is made
-- refused: argument
-- insert: pmi.projects
CREATE SCHEMA pmi;
CREATE FUNCTION pmi.generate_id(tab_name varchar) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    number int := 1;
    tick bigint;
    ms bigint;
BEGIN
    SELECT nextval('pmi.table_' || tab_name || '_id_seq') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    RETURN (ms - 1482046573767) << 23 | (number << 10) | tick;
END $$;
CREATE SEQUENCE pmi.table_project_id_seq MAXVALUE 999999999999999999;
CREATE TABLE pmi.projects (id bigint NOT NULL PRIMARY KEY
    DEFAULT pmi.generate_id('project'::varchar), n integer);

---- shard_argument
-- the number is an argument, and each table passes another one
-- refused: argument
-- insert: photos likes
CREATE SEQUENCE ticks;
CREATE FUNCTION new_id(shard_id int) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1451606400000) << 23
        | (shard_id << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT new_id(1), n integer);
CREATE TABLE likes (id bigint PRIMARY KEY DEFAULT new_id(2), n integer);

---- default_argument_passed
-- the number is an argument with a default, and a table passes another one
-- refused: argument|several shards
-- insert: photos likes
CREATE SEQUENCE ticks;
CREATE FUNCTION new_id(shard_id int DEFAULT 1) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1451606400000) << 23
        | (shard_id << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT new_id(), n integer);
CREATE TABLE likes (id bigint PRIMARY KEY DEFAULT new_id(2), n integer);

---- default_argument_passed_later
-- the same, and the other table has no row yet
-- refused: argument
-- later: likes
CREATE SEQUENCE ticks;
CREATE FUNCTION new_id(shard_id int DEFAULT 1) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1451606400000) << 23
        | (shard_id << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT new_id(), n integer);
CREATE TABLE likes (id bigint PRIMARY KEY DEFAULT new_id(2), n integer);

---- two_numbers
-- two functions of a schema, with two numbers and one sequence
-- refused: 1\b.*\b2|2\b.*\b1
-- insert: photos likes
CREATE SEQUENCE ticks;
CREATE FUNCTION photo_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1451606400000) << 23
        | (1 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE FUNCTION like_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1451606400000) << 23
        | (2 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT photo_id(), n integer);
CREATE TABLE likes (id bigint PRIMARY KEY DEFAULT like_id(), n integer);

---- two_epochs
-- two functions of a schema, with two epochs
-- refused: 2016-01-01.*2020-01-01|2020-01-01.*2016-01-01
-- insert: photos likes
CREATE SEQUENCE photo_ticks;
CREATE SEQUENCE like_ticks;
CREATE FUNCTION photo_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1451606400000) << 23
        | (1 << 10) | (nextval('photo_ticks') % 1024);
END $$;
CREATE FUNCTION like_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 23
        | (1 << 10) | (nextval('like_ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT photo_id(), n integer);
CREATE TABLE likes (id bigint PRIMARY KEY DEFAULT like_id(), n integer);

---- kind_argument
-- 3 bits are an argument, which one function for each kind of row passes
-- refused: argument
-- insert: users records
-- cure: -
CREATE SEQUENCE public.table_id_seq;
CREATE FUNCTION public.next_id(bigint, OUT result bigint) AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
    number bigint := floor(random() * 1024);
    tick bigint := nextval('public.table_id_seq') % 1024;
    kind ALIAS FOR $1;
BEGIN
    result := (ms - 1672531200000) << 23;
    result := result | (number << 13);
    result := result | (tick << 3);
    result := result | (kind % 8);
END;
$$ LANGUAGE plpgsql;
CREATE FUNCTION public.next_record_id(OUT result bigint) LANGUAGE plpgsql AS $$
BEGIN result := public.next_id(0); END $$;
CREATE FUNCTION public.next_user_id(OUT result bigint) LANGUAGE plpgsql AS $$
BEGIN result := public.next_id(1); END $$;
CREATE TABLE users (id bigint PRIMARY KEY DEFAULT next_user_id(), n integer);
CREATE TABLE records (id bigint PRIMARY KEY DEFAULT next_record_id(), n integer);

---- trigger_function
-- the trigger's function is the copy itself, and makes the sequence's name of the table's
-- refused: returns trigger
-- cure: -
CREATE SEQUENCE photos_id_seq;
CREATE FUNCTION set_id() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    NEW.id := (ms - 1577836800000) << 23 | (47 << 10)
        | (nextval(TG_TABLE_SCHEMA || '.' || TG_TABLE_NAME || '_id_seq') % 1024);
    RETURN NEW;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY, n integer);
CREATE TRIGGER set_id BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION set_id();

---- returns_text
-- the result is cast to text
-- refused: returns text
CREATE SEQUENCE global_id_sequence;
CREATE FUNCTION id_generator(number int DEFAULT 1) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    tick bigint;
    ms bigint;
    id bigint;
BEGIN
    SELECT nextval('global_id_sequence') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    id := (ms - 1314220021721) << 23;
    id := id | (number << 10);
    id := id | (tick);
    RETURN id::text;
END $$;
CREATE TABLE photos (id text PRIMARY KEY DEFAULT id_generator(), n integer);

---- returns_varchar
-- an OUT argument of type varchar
-- refused: returns character varying
CREATE SEQUENCE global_id_sequence;
CREATE FUNCTION id_generator(OUT result varchar) AS $$
DECLARE
    tick bigint;
    ms bigint;
    r bigint;
    number int := 1;
BEGIN
    SELECT CAST(nextval('global_id_sequence') % 1024 AS bigint) INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    r := (ms - 1314220021721) << 23;
    r := r | (number << 10);
    r := r | (tick);
    result := CAST(r AS varchar);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE photos (id varchar NOT NULL PRIMARY KEY DEFAULT id_generator(), n integer);

---- returns_prefix
-- a prefix that the column passes, and the ID in hexadecimal digits
-- refused: returns text
-- cure: -
CREATE SEQUENCE chain_id_seq;
CREATE FUNCTION next_chain_id(prefix text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    number int := 4;
    tick bigint;
    ms bigint;
    id bigint;
BEGIN
    SELECT nextval('chain_id_seq') % 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    id := (ms - 1433333333333) << 23;
    id := id | (number << 10);
    id := id | (tick);
    RETURN prefix || encode(int8send(id), 'hex');
END $$;
CREATE TABLE photos (id text PRIMARY KEY DEFAULT next_chain_id('at'::text), n integer);

---- returns_base64
-- the ID in base64
-- refused: returns text
-- cure: -
CREATE SEQUENCE ticks;
CREATE FUNCTION short_id() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN encode(int8send((ms - 1451606400000) << 23 | (4 << 10)
                           | (nextval('ticks') % 1024)), 'base64');
END $$;
CREATE TABLE photos (id text PRIMARY KEY DEFAULT short_id(), n integer);

---- returns_numeric
-- the type is wider than it need be
-- refused: returns numeric
-- cure: -
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    ms bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    RETURN (ms - 1451606400000) << 23 | (4 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id numeric(20) PRIMARY KEY DEFAULT next_id(), n integer);

---- default_is_expression
-- no function: the default is the expression itself
-- refused: default
-- insert: photos likes
CREATE SEQUENCE ticks;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT
    ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1451606400000) << 23)
    | (4 << 10) | (nextval('ticks') % 1024), n integer);
CREATE TABLE likes (id bigint PRIMARY KEY DEFAULT
    ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1451606400000) << 23)
    | (4 << 10) | (nextval('ticks') % 1024), n integer);

---- percent_percent
-- pasted from a page that doubles the sign: it has never worked
-- refused: %%
-- insert: -
CREATE SEQUENCE table_id_seq;
CREATE FUNCTION next_id(OUT result bigint) AS $$
DECLARE
    tick bigint;
    ms bigint;
    number int := 5;
BEGIN
    SELECT nextval('table_id_seq') %% 1024 INTO tick;
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO ms;
    result := (ms - 1314220021721) << 23;
    result := result | (number <<10);
    result := result | (tick);
END;
$$ LANGUAGE plpgsql;
CREATE TABLE photos (id bigint NOT NULL DEFAULT next_id() PRIMARY KEY, n integer);

---- beside_a_shard
-- a shard is there already, and a table still uses the copy
-- refused: next_id
-- insert: photos likes
SELECT instaid.create_shard('public', 50);
CREATE SEQUENCE ticks;
CREATE FUNCTION id_generator() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1451606400000) << 23
        | (50 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);
CREATE TABLE likes (id bigint PRIMARY KEY DEFAULT id_generator(), n integer);

---- beside_a_shard_unused
-- a shard is there already, and nothing calls the copy any more
-- refused: next_id
SELECT instaid.create_shard('public', 50);
CREATE SEQUENCE ticks;
CREATE FUNCTION id_generator() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1451606400000) << 23
        | (50 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- one_sequence_of_schemas
-- two schemas have functions with numbers of their own, and one sequence
-- adopted: schema a shard 51 epoch 1451606400000
-- adopted: schema b shard 52 epoch 1451606400000
-- refused: ticks.*\ba\b|\ba\b.*ticks
-- insert: a.photos b.photos
-- call: a.next_id(); b.next_id()
-- keeps: foreign_sequence
CREATE SEQUENCE public.ticks;
CREATE SCHEMA a;
CREATE SCHEMA b;
CREATE FUNCTION a.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1451606400000) << 23
        | (51 << 10) | (nextval('public.ticks') % 1024);
END $$;
CREATE FUNCTION b.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1451606400000) << 23
        | (52 << 10) | (nextval('public.ticks') % 1024);
END $$;
CREATE TABLE a.photos (id bigint PRIMARY KEY DEFAULT a.next_id(), n integer);
CREATE TABLE b.photos (id bigint PRIMARY KEY DEFAULT b.next_id(), n integer);

---- sequence_set_to_an_id
-- as scripts do after a restore, which the published function does not mind
-- adopted: schema insta5 shard 5 epoch 1314220021721
-- insert: insta5.photos
CREATE SCHEMA insta5;
CREATE SEQUENCE insta5.table_id_seq;
CREATE FUNCTION insta5.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
        | (5 << 10) | (nextval('insta5.table_id_seq') % 1024);
END $$;
CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id(), n integer);
INSERT INTO insta5.photos DEFAULT VALUES;
SELECT setval('insta5.table_id_seq', max(id)) FROM insta5.photos;

---- sequence_ahead
-- a value that would be a time of 2031, and the sequence starts even later
-- adopted: schema public shard 5 epoch 1314220021721
CREATE SEQUENCE table_id_seq START 4035636552913653763;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
        | (5 << 10) | (nextval('table_id_seq') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);
SELECT setval('table_id_seq', 2000000000000000);

---- setting_of_clients
-- the number is a setting that only the clients have
-- refused: session.*current_setting.*21
-- cured: schema insta21 shard 21 epoch 1577836800000
-- insert: insta21.photos
CREATE SCHEMA insta21;
CREATE SEQUENCE insta21.ticks;
CREATE FUNCTION insta21.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    number int := COALESCE(NULLIF(current_setting('app.shard', true), '')::int, 0);
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 23
        | (number << 10) | (nextval('insta21.ticks') % 1024);
END $$;
CREATE TABLE insta21.photos (id bigint PRIMARY KEY DEFAULT insta21.next_id(), n integer);
SET app.shard = 21;

---- setting_of_clients_in_a_trigger
-- the same, and a trigger of a table without a default asks a function for the number
-- refused: session.*current_setting.*21
-- cured: schema insta21 shard 21 epoch 1577836800000
-- insert: insta21.photos
CREATE SCHEMA insta21;
CREATE SEQUENCE insta21.ticks;
CREATE FUNCTION insta21.number() RETURNS int LANGUAGE sql STABLE AS $$
    SELECT COALESCE(NULLIF(current_setting('app.shard', true), '')::int, 0) $$;
CREATE FUNCTION insta21.next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 23
        | (insta21.number() << 10) | (nextval('insta21.ticks') % 1024);
END $$;
CREATE FUNCTION insta21.fill() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.id := COALESCE(NEW.id, insta21.next_id());
    RETURN NEW;
END $$;
CREATE TABLE insta21.photos (id bigint PRIMARY KEY, n integer);
CREATE TRIGGER fill BEFORE INSERT ON insta21.photos FOR EACH ROW EXECUTE FUNCTION insta21.fill();
SET app.shard = 21;

---- number_of_role
-- the number is that of the role
-- refused: session.*current_user.*3
-- cured: schema public shard 3 epoch 1577836800000
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    number int := CASE current_user WHEN 'app' THEN 4 ELSE 3 END;
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 23
        | (number << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- number_of_schema
-- the number is in the name of the schema, which clients have in their search_path
-- refused: fails.*current_schema.*into its text
-- cure: -
-- insert: user18.photos
CREATE SCHEMA user18;
CREATE SEQUENCE user18.id_seq;
CREATE FUNCTION user18.next_id(OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    number int := regexp_replace(current_schema(), '\D', '', 'g')::int;
BEGIN
    result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1420070400000) << 23
        | (number << 10) | (nextval('id_seq') % 1024);
END $$;
SET search_path = user18;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id(), n integer);

---- changed_number
-- a trigger calls it, and the text was changed after the rows were made
-- refused: shard 4.*the newest rows: 6
-- cured: schema public shard 6 epoch 1577836800000
-- insert: -
CREATE SEQUENCE ticks;
CREATE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 23
        | (6 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.id := next_id();
    RETURN NEW;
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY, n integer);
CREATE TRIGGER fill BEFORE INSERT ON photos FOR EACH ROW EXECUTE FUNCTION fill();
INSERT INTO photos (n) VALUES (1), (2);
CREATE OR REPLACE FUNCTION next_id() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 23
        | (4 << 10) | (nextval('ticks') % 1024);
END $$;

---- callers_of_each_kind
-- another layout; clients call it, and a trigger, a domain and another function
-- refused: layout
-- insert: a.by_trigger a.by_domain a.by_function a.photos
-- call: a.flake()
-- app: INSERT INTO a.by_call VALUES (a.flake(), 1);
-- app: INSERT INTO a.by_trigger (n) VALUES (1);
-- app: INSERT INTO a.by_domain (n) VALUES (1);
-- app: INSERT INTO a.by_function (n) VALUES (1)
CREATE SCHEMA a;
CREATE SEQUENCE a.ticks;
CREATE FUNCTION a.flake() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1577836800000) << 22
        | (1 << 12) | (nextval('a.ticks') % 4096);
END $$;
CREATE FUNCTION a.fill() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.id := a.flake();
    RETURN NEW;
END $$;
CREATE FUNCTION a.wrapped() RETURNS bigint LANGUAGE sql AS $$ SELECT a.flake() $$;
CREATE DOMAIN a.key AS bigint DEFAULT a.flake();
CREATE TABLE a.by_call (id bigint PRIMARY KEY, n integer);
CREATE TABLE a.by_trigger (id bigint PRIMARY KEY, n integer);
CREATE TRIGGER fill BEFORE INSERT ON a.by_trigger FOR EACH ROW EXECUTE FUNCTION a.fill();
CREATE TABLE a.by_domain (id a.key PRIMARY KEY, n integer);
CREATE TABLE a.by_function (id bigint PRIMARY KEY DEFAULT a.wrapped(), n integer);
CREATE TABLE a.photos (id bigint PRIMARY KEY DEFAULT a.flake(), n integer);
GRANT USAGE ON SCHEMA a TO app;
GRANT USAGE ON SEQUENCE a.ticks TO app;
GRANT INSERT ON ALL TABLES IN SCHEMA a TO app;

---- called_with_arguments
-- the published layout with arguments, which clients pass
-- refused: argument
-- cured: schema public shard 7 epoch 1321009887123
-- insert: -
-- app: INSERT INTO polls VALUES (sharded_id('polls_id_seq', 7), 1)
CREATE SEQUENCE polls_id_seq;
CREATE FUNCTION sharded_id(varchar, int, OUT result bigint) LANGUAGE plpgsql AS $$
DECLARE
    name ALIAS FOR $1;
    number ALIAS FOR $2;
BEGIN
    result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1321009887123) << 23
        | (number << 10) | (nextval(name::regclass) % 1024);
END $$;
CREATE TABLE photos (id text PRIMARY KEY, n integer);
CREATE TABLE polls (id bigint PRIMARY KEY, n integer);
INSERT INTO polls SELECT sharded_id('polls_id_seq', 7), n FROM generate_series(1, 10) AS n;
GRANT USAGE ON SEQUENCE polls_id_seq TO app;
GRANT INSERT ON polls TO app;

---- sequence_argument_of_another_epoch
-- the name of the sequence is an argument; number and epoch stay
-- refused: argument
-- cured: schema public shard 5 epoch 1581692400000
CREATE SEQUENCE photos_id_seq;
CREATE FUNCTION public.next_id(seq text, OUT result bigint) LANGUAGE plpgsql AS $$
BEGIN
    result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1581692400000) << 23
        | (5 << 10) | (nextval(seq) % 1024);
END $$;
CREATE TABLE photos (id bigint PRIMARY KEY DEFAULT next_id('photos_id_seq'), n integer);

---- as_text_of_another_epoch
-- the published layout as a text; number and epoch stay
-- refused: character varying
-- cured: schema public shard 6 epoch 1581692400000
CREATE SEQUENCE ticks;
CREATE FUNCTION text_id(OUT result varchar) LANGUAGE plpgsql AS $$
BEGIN
    result := (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1581692400000) << 23
        | (6 << 10) | (nextval('ticks') % 1024);
END $$;
CREATE TABLE photos (id varchar PRIMARY KEY DEFAULT text_id(), n integer);

---- above_the_default_epoch
-- IDs above those of today, of a trigger that passes an argument: the epoch must be earlier
-- refused: argument
-- insert: k.photos
CREATE SCHEMA k;
CREATE SEQUENCE k.ticks;
CREATE FUNCTION k.snowflake_id(machine integer) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN ((floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1609459200) << 22)
        | (machine << 12) | (nextval('k.ticks') % 4096);
END $$;
CREATE FUNCTION k.fill() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.id := k.snowflake_id(1);
    RETURN NEW;
END $$;
CREATE TABLE k.photos (id bigint PRIMARY KEY, n integer);
CREATE TRIGGER fill BEFORE INSERT ON k.photos FOR EACH ROW EXECUTE FUNCTION k.fill();

---- one_number_of_schemas
-- a migration that ran for each tenant, with one number
-- adopted: schema a shard 1 epoch 1546300800000
-- refused: taken by schema a
-- cure: 819
-- insert: a.photos b.photos c.photos
CREATE SCHEMA a;
CREATE SCHEMA b;
CREATE SCHEMA c;
SELECT format($f$
    CREATE SEQUENCE %1$s.ticks;
    CREATE FUNCTION %1$s.next_id() RETURNS bigint LANGUAGE plpgsql AS $b$
    BEGIN
        RETURN (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1546300800000) << 23
            | (1 << 10) | (nextval('%1$s.ticks') %% 1024);
    END $b$;
    CREATE TABLE %1$s.photos (id bigint PRIMARY KEY DEFAULT %1$s.next_id(), n integer)$f$, s)
FROM unnest('{a,b,c}'::text[]) AS s \gexec
