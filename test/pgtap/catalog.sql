-- What each edition has in the catalogs.  docs/reference.md has the list of all public functions,
-- which docs_reference compares.
BEGIN;
SELECT no_plan();
SELECT instaid.create_shard('insta5', 5);
CREATE TEMP VIEW routine AS
    SELECT p.oid::regprocedure AS routine, p.*, l.lanname, coalesce(array_to_string(proconfig, ' '), '') AS settings
    FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang JOIN pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname IN ('instaid', 'instaid_sql', 'instaid_adopt');

SELECT is_empty('SELECT routine FROM routine WHERE proname !~ ''^_'' AND obj_description(oid, ''pg_proc'') IS NULL',
    'each public function has a description');
SELECT is_empty('SELECT oid::regclass FROM pg_class WHERE relnamespace = ''instaid''::regnamespace AND relkind = ''v'' AND relname !~ ''^_'' AND obj_description(oid, ''pg_class'') IS NULL',
    'each public view has a description');
SELECT is((SELECT count(DISTINCT proowner) FROM routine), 1::bigint, 'all belong to the role that installed them');
SELECT is_empty('SELECT routine FROM routine WHERE prosecdef', 'no function has the rights of its owner, apart from those of shards');
SELECT is_empty($$SELECT routine FROM routine WHERE provolatile = 'v' AND proparallel = 's'
    AND pronamespace = 'instaid'::regnamespace$$, 'no volatile function is parallel safe');
SELECT is_empty($$SELECT routine FROM routine WHERE provolatile = 'i' AND proname !~ '^_' AND pronamespace = 'instaid'::regnamespace
    AND NOT (proisstrict AND proparallel = 's') AND proname <> 'created_between'$$, 'immutable functions are strict, but for one that is inlined');
SELECT is_empty($$SELECT routine FROM routine WHERE settings ~ 'search_path' AND settings !~ 'search_path=(pg_catalog, pg_temp|"")'$$,
    'no function finds what others create');
SELECT is_empty($$SELECT oid::regclass FROM pg_class WHERE relnamespace = 'instaid'::regnamespace AND relkind = 'v'
    AND NOT has_table_privilege('public', oid, 'SELECT') AND relname !~ '^_'$$, 'everybody can read the public views');
SELECT is_empty($$SELECT routine FROM routine WHERE lanname = 'sql' AND prosqlbody IS NULL AND settings !~ 'search_path'
    AND regexp_replace(prosrc, '''[^'']*''', '', 'g') ~ '[^.(]\m(nextval|setval|floor|format|clock_timestamp|pg_[a-z_]+)\('$$,
    'a function in SQL has a parsed body, or qualifies its names');
SELECT is_empty($$SELECT routine FROM routine WHERE NOT has_function_privilege('public', oid, 'EXECUTE')
    AND pronamespace = 'instaid'::regnamespace AND proname !~ '^_'$$, 'everybody can use the public functions');
SELECT is_empty($$SELECT nspname FROM pg_namespace WHERE nspname IN ('instaid', 'instaid_sql', 'instaid_adopt')
    AND has_schema_privilege('public', oid, 'CREATE')$$, 'nobody else creates objects in their schemas');
SELECT is_empty($$SELECT routine FROM routine WHERE proname !~ '^_lock' AND prosrc ~ 'instaid_sql[.]_lock|id_sequence_lock IN SHARE'
    AND pronamespace <> 'instaid_adopt'::regnamespace AND settings !~ 'client_min_messages=error'$$,
    'nobody who has the lock waits for a client that does not read its messages');

-- Linters, such as Supabase's, list each function without SET search_path.
CREATE TEMP TABLE without (reason text, names text);
INSERT INTO without VALUES
    ('a procedure that commits', 'instaid_adopt.adopt_shards instaid.create_shards'),
    ('a trigger calls it for each statement', 'instaid._move_guard');
INSERT INTO without SELECT * FROM (VALUES
    ('its expression takes the place of a call for each row', 'instaid.created_between instaid.decode instaid.default_epoch
        instaid.extract_shard_id instaid.extract_timestamp instaid.max_id instaid.min_id instaid.to_shortcode
        instaid._end_of_ids instaid._max_id_before instaid._min_id_from'),
    ('it is a constant', 'instaid._max_shard_id instaid_sql._end_of_epochs instaid_sql._last_ms instaid_sql._low_bits instaid_sql._max_ms
        instaid_sql._max_sequence instaid_sql._max_shard_id instaid_sql._ms_shift instaid_sql._sequence_bits
        instaid_sql._shard_id_mask instaid_sql._sign_and_shard_id_mask'),
    ('an INSERT, or a query for each row, calls it', 'insta5.next_id instaid_sql._open instaid_sql._utc_epoch'),
    ('PostgreSQL makes it part of the query', 'instaid._descendants instaid._find_shard instaid._shard_sequences')) AS v
WHERE here('edition') = 'SQL edition';
-- those of the extension in C and in parsed SQL name nothing
SELECT set_eq($$SELECT DISTINCT p.pronamespace::regnamespace || '.' || p.proname FROM pg_proc AS p
        JOIN pg_namespace AS n ON n.oid = p.pronamespace JOIN pg_language AS l ON l.oid = p.prolang
        WHERE n.nspname IN ('insta5', 'instaid', 'instaid_sql', 'instaid_adopt')
        AND coalesce(array_to_string(p.proconfig, ' '), '') !~ '\msearch_path='
        AND (here('edition') = 'SQL edition' OR l.lanname = 'plpgsql')$$,
    $$SELECT DISTINCT unnest(regexp_split_to_array(names, '\s+')) FROM without$$, 'functions without SET search_path have a reason');

SELECT * FROM finish();
ROLLBACK;
