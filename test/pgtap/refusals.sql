-- What callers meet when a call is refused: the SQLSTATE, the message, the detail and the hint, each
-- whole.  The rows are in order: some change what a later one finds.  Not in one transaction, since
-- a shard of the SQL edition is renumbered once in one.
SET client_min_messages = error;
SET timezone = 'UTC';
SELECT no_plan();

SELECT instaid.create_shard('taken', 6);
CREATE SCHEMA taken2;
CREATE FUNCTION taken2.next_ids(count integer) RETURNS integer LANGUAGE sql RETURN 1;
CREATE SCHEMA copy;
CREATE SEQUENCE copy.table_id_seq;
CREATE FUNCTION copy.next_id() RETURNS bigint LANGUAGE sql AS $$
    SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1387263000000 << 23)
        + (7 << 10) + nextval('copy.table_id_seq') % 1024 $$;
CREATE SCHEMA has_function;
CREATE FUNCTION has_function.next_id() RETURNS integer LANGUAGE sql RETURN 1;
CREATE TABLE t (id serial PRIMARY KEY);
CREATE TABLE taken.t (id serial PRIMARY KEY, n integer, words text);
CREATE TABLE taken.p (id bigint PRIMARY KEY) PARTITION BY RANGE (id);

SELECT is(try('SELECT ' || command), outcome, command) FROM (VALUES
    ($$instaid.create_shard(NULL, 5)$$, $$22004 arguments of create_shard() must not be null
| These are null: schema_name.$$),
    ($$instaid.create_shard('', 5)$$, $$42602 schema name is empty
| A name has 1 to 63 bytes.$$),
    ($$instaid.create_shard(repeat('x', 64), 5)$$, $$42622 schema name "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..." is too long
| It has 64 bytes; a name has up to 63.$$),
    ($$instaid.create_shard('pg_x', 5)$$, $$42939 schema pg_x cannot be a shard
| It belongs to the extension or the server.
| Choose another schema.$$),
    ($$instaid.create_shard('instaid', 5)$$, $$42939 schema instaid cannot be a shard
| It belongs to the extension or the server.
| Choose another schema.$$),
    ($$instaid.create_shard('information_schema', 5)$$, $$42939 schema information_schema cannot be a shard
| It belongs to the extension or the server.
| Choose another schema.$$),
    ($$instaid.create_shard('x', -1)$$, $$22003 shard ID -1 is out of range
| A shard ID is between 0 and 8191.$$),
    ($$instaid.create_shard('x', 8192)$$, $$22003 shard ID 8192 is out of range
| A shard ID is between 0 and 8191.$$),
    ($$instaid.create_shard('x', 7, 'infinity')$$, $$22023 epoch infinity is out of range
| An epoch must be between 4714-11-24 00:00:00+00 BC and 294207-04-27 08:12:24.448+00.$$),
    ($$instaid.create_shard('x', 7, '1990-01-01+00')$$, $$22023 IDs with epoch 1990-01-01 00:00:00+00 ended at 2024-11-03 19:53:47.776+00
| The clock reads ...; an epoch can be up to 34.8 years before it.
| Use the default epoch, which serves until 2046, or the date of today.$$),
    ($$instaid.create_shard('x', 7, '2020-01-01 00:00:00.0001+00')$$, $$22023 epoch 2020-01-01 00:00:00.0001+00 is not a whole millisecond
| It is 100 us after a whole millisecond. IDs count milliseconds.
| Pass 2020-01-01 00:00:00+00.$$),
    ($$instaid.create_shard('x', 7, sequence_name => '')$$, $$42602 sequence name is empty
| A name has 1 to 63 bytes.$$),
    ($$instaid.create_shard('x', 6)$$, $$42710 shard ID 6 is taken by schema taken
| The two shards would issue the same IDs.
| Shard ID 7 is free in this database; instaid.shards lists those that are taken. A copy that is not adopted can use others.$$),
    ($$instaid.create_shard('taken', 7)$$, $$42723 schema taken is a shard already
| It is shard 6, with epoch 2011-08-24 21:07:01.721+00.
| A schema is one shard. Choose another schema if you need another shard.$$),
    ($$instaid.create_shard('taken2', 7)$$, $$42723 schema taken2 already has a function next_ids()
| It is taken2.next_ids(integer).
| Rename it: ALTER ROUTINE taken2.next_ids(integer) RENAME TO old_next_ids; defaults follow it.$$),
    ($$instaid.create_shard('has_function', 7)$$, $$42723 schema has_function already has a function next_id()
| It is has_function.next_id().
| Rename it: ALTER ROUTINE has_function.next_id() RENAME TO old_next_id; defaults follow it. Or let adopt_shard() of the extension instaid_adopt replace it.$$),
    ($$instaid.create_shard('copy', 7)$$, $$42723 schema copy already has a function next_id()
| It is copy.next_id().
| Rename it: ALTER ROUTINE copy.next_id() RENAME TO old_next_id; defaults follow it. Or let adopt_shard() of the extension instaid_adopt replace it.$$),
    ($$instaid.create_shard('x', NULL)$$, $$22004 arguments of create_shard() must not be null
| These are null: shard_id.$$),
    ($$instaid.create_shard('x', 8, NULL)$$, $$22004 arguments of create_shard() must not be null
| These are null: epoch.$$),
    ($$instaid.freeze_shard('nothing')$$, $$42704 schema nothing is not a shard
| instaid.shards lists the shards of this database.$$),
    ($$instaid.thaw_shard('nothing')$$, $$42704 schema nothing is not a shard
| instaid.shards lists the shards of this database.$$),
    ($$instaid.freeze_shard(repeat('x', 64))$$, $$42622 schema name "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..." is too long
| It has 64 bytes; a name has up to 63.$$),
    ($$instaid.freeze_shard(NULL)$$, $$null$$),
    ($$instaid.advance_past('taken.table_id_seq', -1, instaid.default_epoch())$$, $$22003 ID -1 is out of range
| An ID must be between 0 and 9223372036854775807.$$),
    ($$instaid.advance_past('taken.table_id_seq', 5, 'infinity')$$, $$22023 epoch infinity is out of range
| An epoch must be between 4714-11-24 00:00:00+00 BC and 294207-04-27 08:12:24.448+00.$$),
    ($$(SELECT count(*) FROM taken.next_ids(0))$$, $$22003 count 0 is out of range
| The count must be between 1 and 1000000.$$),
    ($$(SELECT count(*) FROM taken.next_ids(1000001))$$, $$22003 count 1000001 is out of range
| The count must be between 1 and 1000000.$$),
    ($$instaid_adopt.adopt_shard('nothing', 7)$$, $$42883 schema nothing has no next_id() that returns bigint
| There is no such schema.
| If a function of another name makes its IDs, rename it to next_id. If no function makes them, use create_shard() and adopt_column().$$),
    ($$instaid_adopt.adopt_shard(NULL, 7)$$, $$22004 arguments of adopt_shard() must not be null
| These are null: schema_name.$$),
    ($$instaid_adopt.adopt_shard('taken2', 9000)$$, $$42723 schema taken2 already has a function next_ids()
| It is taken2.next_ids(integer).
| Rename it: ALTER ROUTINE taken2.next_ids(integer) RENAME TO old_next_ids; defaults follow it.$$),
    ($$instaid_adopt.adopt_shard('has_function', 7)$$, $$42883 schema has_function has no next_id() that returns bigint
| It returns integer.
| If another function makes its IDs: ALTER ROUTINE has_function.next_id() RENAME TO old_next_id; If no function makes them, use create_shard() and adopt_column().$$),
    ($$instaid_adopt.adopt_shard('has_function')$$, $$42883 schema has_function has no next_id() that returns bigint
| It returns integer.
| If another function makes its IDs: ALTER ROUTINE has_function.next_id() RENAME TO old_next_id; If no function makes them, use create_shard() and adopt_column().$$),
    ($$instaid_adopt.adopt_shard('copy', 8)$$, $$22023 IDs of schema copy name shard 7, and not shard 8
| Pass 7. To change the number: SELECT instaid_adopt.adopt_shard('copy', 8, renumber => true);$$),
    ($$instaid_adopt.adopt_shard('copy', 6, renumber => true)$$, $$42710 shard ID 6 is taken by schema taken
| The two shards would issue the same IDs.
| Shard ID 7 is free in this database; instaid.shards lists those that are taken. A copy that is not adopted can use others.$$),
    ($$instaid_adopt.adopt_shard('taken')$$, $$42723 schema taken is a shard already
| It is shard 6, with epoch 2011-08-24 21:07:01.721+00.
| A schema is one shard. Choose another schema if you need another shard.$$),
    ($$instaid_adopt.adopt_shard('copy', renumber => NULL)$$, $$22004 arguments of adopt_shard() must not be null
| These are null: renumber.$$),
    ($$instaid_adopt.adopt_shard('copy')$$, $$$$),
    ($$instaid.renumber_shard('taken', 7)$$, $$42710 shard ID 7 is taken by schema copy
| The two shards would issue the same IDs.
| Shard ID 8 is free in this database; instaid.shards lists those that are taken. A copy that is not adopted can use others.$$),
    ($$instaid.renumber_shard('taken', 8192)$$, $$22003 shard ID 8192 is out of range
| A shard ID is between 0 and 8191.$$),
    ($$instaid.renumber_shard('taken', NULL)$$, $$22004 arguments of renumber_shard() must not be null
| These are null: shard_id.$$),
    ($$instaid.renumber_shard('nothing', 8)$$, $$42704 schema nothing is not a shard
| instaid.shards lists the shards of this database.$$),
    ($$instaid_adopt.adopt_column('taken.t', 'nothing')$$, $$42703 column nothing of table taken.t does not exist$$),
    ($$instaid_adopt.adopt_column('taken.t', 'words', true)$$, $$42804 column taken.t.words is of type text
| It must be bigint or instaid.id, or integer or smallint, which are widened.$$),
    ($$instaid_adopt.adopt_column('public.t', 'id', true)$$, $$42704 schema public is not a shard
| create_shard() and adopt_shard() make a schema a shard.$$),
    ($$instaid_adopt.adopt_column('taken.t', NULL)$$, $$22004 arguments of adopt_column() must not be null
| These are null: column_name.$$),
    ($$instaid.create_partitions(NULL, '2026-01-01', '2026-02-01', '1 day')$$, $$22004 arguments of create_partitions() must not be null
| These are null: parent.$$),
    ($$instaid.create_partitions('public.t', '2026-01-01', '2026-02-01', '1 day')$$, $$42809 public.t is not partitioned by range of one bigint column
| It is not partitioned.
| Create the table with PARTITION BY RANGE (id), where id is a bigint column.$$),
    ($$instaid.create_partitions('taken.p', '2026-01-01+00', '2026-01-01+00', '1 day')$$, $$22023 step 1 day does not lead from 2026-01-01 00:00:00+00 to 2026-01-01 00:00:00+00
| from_time must be before to_time, and the step at least 1 ms.$$),
    ($$instaid.create_partitions('taken.p', '2026-01-01+00', '2026-02-01+00', '0')$$, $$22023 step 00:00:00 does not lead from 2026-01-01 00:00:00+00 to 2026-02-01 00:00:00+00
| from_time must be before to_time, and the step at least 1 ms.$$),
    ($$instaid.create_partitions('taken.p', '2026-01-01+00', '2026-01-02+00', '999 us')$$, $$22023 step 00:00:00.000999 does not lead from 2026-01-01 00:00:00+00 to 2026-01-02 00:00:00+00
| from_time must be before to_time, and the step at least 1 ms.$$),
    ($$instaid.create_partitions('taken.p', '2011-01-01+00', '2012-01-01+00', '1 day')$$, $$22003 times from 2011-01-01 00:00:00+00 to 2012-01-01 00:00:00+00 are out of range for an ID
| With epoch 2011-08-24 21:07:01.721+00, partitions can begin at 2011-08-24 21:07:01.721+00 and end at 2046-06-27 17:00:49.497+00.$$),
    ($$instaid.create_partitions('taken.p', '2026-01-01+00', '2126-02-01+00', '1 day')$$, $$22003 times from 2026-01-01 00:00:00+00 to 2126-02-01 00:00:00+00 are out of range for an ID
| With epoch 2011-08-24 21:07:01.721+00, partitions can begin at 2011-08-24 21:07:01.721+00 and end at 2046-06-27 17:00:49.497+00.$$),
    ($$instaid.create_partitions('taken.p', '2026-01-01+00', '2030-01-01+00', '1 day')$$, $$54000 too many partitions from 2026-01-01 00:00:00+00 to 2030-01-01 00:00:00+00
| One call creates up to 1000; with step 1 day they would end at 2028-09-27 00:00:00+00.
| Choose a longer step, or an earlier to_time.$$)) AS v (command, outcome);
SELECT is((SELECT (shard_id, epoch)::text FROM instaid.shards WHERE schema_name = 'copy'), '(7,"2013-12-17 06:50:00+00")', 'the copy was adopted');
SELECT is(try($$SELECT instaid.advance_past('taken.table_id_seq', 4611686018427387904, '2126-01-01+00')$$),
    E'22023 epoch 2126-01-01 00:00:00+00 is in the future\n| The clock reads ...' || here('epoch in the future'), 'an epoch in the future');
SELECT is(try($$SELECT instaid.advance_past('taken.table_id_seq', 9223372036854775807, '2026-01-01+00')$$),
    here('advance_past() the last ID'), 'the last ID of an epoch');
SELECT is(CASE WHEN outcome ~ '^\d{18,19}$' THEN 'a bigint' ELSE outcome END, here('settled_id()'), 'settled_id()')
FROM try($$SELECT instaid.settled_id('taken')$$) AS outcome;
ALTER SEQUENCE taken.table_id_seq RESTART;

-- each is a transaction of its own
SELECT format(statement, number) FROM unnest('{8, 10, 8191, 0, 6}'::integer[]) WITH ORDINALITY AS n (number, n), unnest(ARRAY[
    'SELECT instaid.freeze_shard(''taken'')',
    'SELECT instaid.renumber_shard(''taken'', %1$s)',
    'SELECT is((SELECT (shard_id, frozen)::text FROM instaid.shards WHERE schema_name = ''taken''), ''(%1$s,t)'', ''renumbered to %1$s'')',
    'SELECT instaid.thaw_shard(''taken'')',
    'SELECT is(instaid.extract_shard_id(taken.next_id()), %1$s, ''next_id() of shard %1$s'')',
    'SELECT is(instaid.extract_shard_id(taken.next_ids(1)), %1$s, ''next_ids() of shard %1$s'')']) WITH ORDINALITY AS s (statement, m)
ORDER BY n, m \gexec

BEGIN;
SELECT instaid.freeze_shard('taken');
SELECT is(try(format('SELECT instaid.renumber_shard(''taken'', %s)', number)), coalesce(here(what), ''), what)
FROM (VALUES (1, 5, 'renumber_shard() to the number below'), (2, 20, 'the first renumber_shard() in a transaction'),
    (3, 22, 'second renumber_shard() in a transaction')) AS v (n, number, what) ORDER BY n;
ROLLBACK;

-- what next_id() refuses
BEGIN;
SELECT instaid.freeze_shard('taken');
SELECT is(regexp_replace(try('SELECT taken.next_id()'), 'is \d+, which', 'is 1, which'), here('next_id() of a frozen shard'), 'next_id() of a frozen shard');
ROLLBACK;
BEGIN;
SELECT instaid.create_shard('fresh', 30);
ALTER SEQUENCE fresh.table_id_seq INCREMENT 2;
SELECT is(regexp_replace(try('SELECT fresh.next_id()'), '\(1314[^)]*\)', '(...)', 'g'), here('next_id() with INCREMENT 2'), 'next_id() with INCREMENT 2');
ROLLBACK;
SELECT setval('taken.table_id_seq', seqmax) FROM pg_sequence WHERE seqrelid = 'taken.table_id_seq'::regclass;
SELECT is(try('SELECT taken.next_id()'), here('next_id() past the end'), 'next_id() past the end');
ALTER SEQUENCE taken.table_id_seq RESTART;

-- what create_partitions() would run belongs to other roles
BEGIN;
CREATE ROLE pgtap_app;
ALTER TABLE taken.p OWNER TO pgtap_app;
SELECT is(replace(try($$SELECT instaid.create_partitions('taken.p', '2026-01-01+00', '2026-01-02+00', '1 day')$$), current_user, 'postgres'), $$42501 must be owner of table taken.p
| It belongs to role pgtap_app, and its code would run with the rights of postgres.
| Connect as pgtap_app. SET ROLE is not enough: its code could RESET it.$$, 'create_partitions() of a table of another role');
ALTER TABLE taken.p OWNER TO CURRENT_USER;
DROP TABLE taken.p;
CREATE TABLE taken.p (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE taken.rest PARTITION OF taken.p DEFAULT;
ALTER TABLE taken.rest OWNER TO pgtap_app;
SELECT is(replace(try($$SELECT instaid.create_partitions('taken.p', '2026-01-01+00', '2026-01-02+00', '1 day')$$), current_user, 'postgres'), $$55000 default partition taken.rest does not belong to the owner of table taken.p
| The owner, postgres, must be able to read it and its partitions.
| Give them to one owner, or detach the default partition.$$, 'create_partitions() beside a default partition of another role');
ROLLBACK;

-- what only the SQL edition has
SELECT here('edition') = 'SQL edition' AS sql_edition \gset
\if :sql_edition
SELECT is(try($$SELECT instaid.add_sequence('taken', 't')$$), E'42P07 relation taken.t already exists\n'
    '| Pass another name, or drop the relation if nothing uses it.', 'add_sequence() of a name that is taken');
SELECT is(try($$SELECT instaid.drop_sequence('taken', 'none')$$), E'42704 taken."none" is not a sequence of add_sequence()\n'
    '| Those of the shard are taken.table_id_seq. The first one, taken.table_id_seq, stays.', 'drop_sequence() of what is none');
\endif

-- what is newer than the snapshot would be missed
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT is(try(format('SELECT instaid.%s', call)), format(E'25000 %s() must run in a READ COMMITTED transaction\n'
    '| Otherwise it would not see the rows of the transactions that it waits for.\n'
    '| SET default_transaction_isolation = ''read committed''; or, for a function, BEGIN ISOLATION LEVEL READ COMMITTED;',
    substring(call, '\w+')), call || ' in REPEATABLE READ')
FROM unnest(ARRAY['freeze_shard(''taken'')', 'thaw_shard(''taken'')'] || CASE here('edition') WHEN 'SQL edition' THEN ARRAY[
    'create_shard(''x'', 9)', 'add_sequence(''taken'', ''x'')', 'drop_sequence(''taken'', ''x'')'] END) AS call;
COMMIT;

SELECT * FROM finish();
DROP TABLE t;
DROP SCHEMA taken, taken2, copy, has_function CASCADE;
