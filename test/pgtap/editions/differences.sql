-- What differs between the editions, each with its reason.  The files of test/pgtap/ read it by
-- here(); all else that they say is the same in both.  docs/sql-edition.md tells users.
CREATE TABLE differences (what text PRIMARY KEY, in_extension text, in_sql_edition text, reason text NOT NULL);
INSERT INTO differences VALUES
    ('edition', 'extension', 'SQL edition', 'what this database has'),
    ('type instaid.id', 'yes', 'no', 'a type of its own needs functions in C'),
    ('adds a sequence', 'CREATE SEQUENCE %s.%s', 'SELECT instaid.add_sequence(%L, %L)',
        'here a sequence has a range that keeps nextval() from clients, and a place in the domain id_sequence'),
    ('next_id() of a shard, functions', '2', '1', 'one argument, of a domain that refuses sequences of others, has a default'),
    ('language of next_id()', 'instaid', 'sql', 'a language needs a handler in C'),
    ('position before the first ID', 'none', 'set', 'the sequence begins at the time of the shard''s creation'),
    ('settled_id()', 'a bigint', E'0A000 the SQL edition of instaid cannot do this\n| settled_id() needs the extension instaid.\n'
        '| Store pg_current_xact_id() in each row, and read below pg_snapshot_xmin(pg_current_snapshot()).',
        'it reads the IDs of open transactions in shared memory'),
    ('advance_past() the last ID', '', E'2200H ID 9223372036854775807 is past the last ID of sequence taken.table_id_seq\n'
        '| Its time is 2060-11-03 19:53:47.775+00; the IDs of the sequence end at 2046-06-27 17:00:49.497+00.',
        'a sequence ends with the epoch in its range'),
    ('epoch in the future', E'; an epoch can be up to 34.8 years before it.\n| Correct the server''s clock, or pass the epoch of the shard.', '.',
        'here an INSERT computes the epoch''s range, and the text has to be short'),
    ('second renumber_shard() in a transaction', 'done', '55000', 'other sessions would not notice the first one'),
    ('renumber_shard() to the number below', 'done', '55000', 'the ends of the two ranges would meet'),
    ('right to take IDs', 'USAGE ON SEQUENCE insta5.table_id_seq', 'EXECUTE ON ALL FUNCTIONS IN SCHEMA insta5',
        'here the functions run with the rights of their owner, since a role with USAGE could set the sequence back'),
    ('another sequence of the owner', '42501', '23514', 'the domain of the argument refuses it');

CREATE FUNCTION here(what text) RETURNS text LANGUAGE sql STABLE RETURN (
    SELECT CASE WHEN to_regnamespace('instaid_sql') IS NULL THEN d.in_extension ELSE d.in_sql_edition END
    FROM differences AS d WHERE d.what = here.what);
