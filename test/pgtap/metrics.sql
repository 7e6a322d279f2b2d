-- The view metrics, which monitoring systems read: a row for each owner of shards.
BEGIN;
SELECT no_plan();
SET LOCAL client_min_messages = error;

SELECT columns_are('instaid', 'metrics', ARRAY['owner', 'shards', 'frozen_shards', 'drift_shard', 'drift_seconds', 'drift_limit_seconds',
    'last_id_seconds', 'expiry_shard', 'expiry_seconds', 'unreadable']);
SELECT instaid.create_shard('ahead', 6), instaid.create_shard('frozen', 83),
    instaid.create_shard('ending', 82, date_trunc('day', now()) - interval '12600 days');
SELECT instaid.freeze_shard('frozen');
SELECT instaid.advance_past('ahead.table_id_seq', instaid.min_id(now() + '3 h'), instaid.default_epoch());
SELECT results_eq($$SELECT shards, frozen_shards, unreadable, drift_seconds BETWEEN 10000 AND 10800, drift_shard, drift_seconds > drift_limit_seconds,
        last_id_seconds, expiry_shard, expiry_seconds BETWEEN 0 AND 86400 * 200 FROM instaid.metrics WHERE owner = current_user$$,
    $$VALUES (3::bigint, 1::bigint, 0::bigint, true, 'ahead'::name, true, 0::float8, 'ending'::name, true)$$, 'the row of an owner');
SELECT instaid.freeze_shard('ahead'::name);
SELECT results_eq('SELECT drift_shard IS NULL, frozen_shards FROM instaid.metrics WHERE owner = current_user', 'VALUES (true, 2::bigint)',
    'the drift of frozen shards does not count');
SELECT instaid.thaw_shard('ahead'::name);

-- the sequence of a table
SELECT instaid.create_shard('own', 95);
SELECT format(here('adds a sequence'), 'own'::name, 'likes_id_seq') AS add \gset
:add ;
CREATE TABLE own.likes (id bigint DEFAULT own.next_id('own.likes_id_seq'::regclass));
SELECT instaid.advance_past('own.likes_id_seq', instaid.min_id(now() + '1 day'), instaid.default_epoch());
SELECT own.next_id() > 0;
SELECT results_eq($$SELECT drift BETWEEN '23 h' AND '25 h', sequence::text, drift_sequence::text, last_issued_at < now() + '1 min'
    FROM instaid.shards WHERE schema_name = 'own'$$, $$VALUES (true, 'own.table_id_seq', 'own.likes_id_seq', true)$$,
    'the drift of a sequence of a table is that of its shard');
SELECT results_eq('SELECT drift_shard, drift_seconds BETWEEN 80000 AND 86500, unreadable FROM instaid.metrics WHERE owner = current_user',
    $$VALUES ('own'::name, true, 0::bigint)$$, 'the drift of a sequence of a table is that of the owner');
SELECT instaid.freeze_shard('own'::name);
SELECT is((SELECT drift_shard FROM instaid.metrics WHERE owner = current_user), 'ahead'::name, 'the drift of a sequence of a frozen shard does not count');

-- a shard of another role that is further ahead hides only others of that role
CREATE ROLE pgtap_app;
CREATE SCHEMA far AUTHORIZATION pgtap_app;
SELECT is(try_as('pgtap_app', $$SELECT instaid.create_shard('far', 90)$$), '', 'another role makes a shard');
SELECT is(try_as('pgtap_app', $$SELECT instaid.advance_past('far.table_id_seq', instaid.min_id(now() + '1 day'), instaid.default_epoch())$$), '',
    'the shard of another role is set further ahead');
SELECT results_eq($$SELECT owner, drift_shard, drift_seconds > 80000, expiry_shard FROM instaid.metrics
    WHERE owner IN (current_user, 'pgtap_app'::name) ORDER BY owner <> current_user$$,
    $$VALUES (current_user, 'ahead'::name, false, 'ending'::name), ('pgtap_app'::name, 'far'::name, true, 'far'::name)$$, 'each owner has a row of its own');

SELECT * FROM finish();
ROLLBACK;
