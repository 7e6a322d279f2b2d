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
    ('second renumber_shard() in a transaction', '', E'55000 shard taken was just renumbered, or updated\n| It is shard 20. A transaction can give it one number.\n'
        '| Commit, and repeat the call when the transactions that are open now have ended.', 'other sessions would not notice the first one'),
    ('renumber_shard() to the number below', '', E'55000 shard ID 5 is just before 6\n| A call that began before could still take an ID of the old shard.\n'
        '| Give the shard another ID first, and 5 when the transactions that are open now have ended.', 'the ends of the two ranges would meet'),
    ('next_id() of a frozen shard', E'55000 shard taken is frozen\n| The MAXVALUE of sequence taken.table_id_seq is 1, which is too low for IDs.\n'
        '| If the shard was moved, use it in its new place; otherwise use instaid.thaw_shard(). If the sequence is not a shard''s, use one without MAXVALUE.',
        E'55000 shard taken is frozen\n| Its sequence "table_id_seq" makes no IDs until the shard is thawed.\n'
        '| If the shard was moved, use it in its new place. Otherwise its owner can thaw it: SELECT instaid.thaw_shard(''taken'');',
        'the extension also serves sequences of no shard'),
    ('next_id() with INCREMENT 2', E'55000 sequence "table_id_seq" cannot serve as a source of IDs\n| Its INCREMENT is 2; it must be 1.\n'
        '| ALTER SEQUENCE fresh.table_id_seq AS bigint INCREMENT BY 1 NO CYCLE;',
        E'55000 sequence "table_id_seq" cannot serve as a source of IDs\n'
        '| Its parameters are (...). They must be (...).\n'
        '| ALTER SEQUENCE fresh.table_id_seq AS bigint INCREMENT BY 1 START WITH 1314220021721 CACHE 1 NO CYCLE;',
        'here all options must be as they were, at one comparison for each call'),
    ('next_id() past the end', E'2200H sequence "table_id_seq" has reached the last tick\n| The sequence is at 9223372036854775807. The last tick is 9007199254740991.\n'
        '| If the sequence was set too far by mistake, set it back with setval().',
        E'2200H sequence taken.table_id_seq is past the last ID of its epoch\n| The sequence is at 9223372036846394367. The clock reads ....\n'
        '| If the sequence was set too far by mistake, set it back with setval().',
        'a sequence ends with the epoch in its range'),
    ('right to take IDs', 'USAGE ON SEQUENCE insta5.table_id_seq', 'EXECUTE ON ALL FUNCTIONS IN SCHEMA insta5',
        'here the functions run with the rights of their owner, since a role with USAGE could set the sequence back'),
    ('another sequence of the owner', '42501', '23514', 'the domain of the argument refuses it');

CREATE FUNCTION here(what text) RETURNS text LANGUAGE sql STABLE RETURN (
    SELECT CASE WHEN to_regnamespace('instaid_sql') IS NULL THEN d.in_extension ELSE d.in_sql_edition END
    FROM differences AS d WHERE d.what = here.what);
