-- A session that compares rows.  A superuser must not read a view that the owner of a table puts in
-- its place: its functions would run with the superuser's rights.  A hash table of 1024 sums does
-- where a sort would write all rows to temporary files.
SET enable_sort = off;
SELECT set_config(name, 'view, foreign-table', false) FROM pg_settings
WHERE name = 'restrict_nonsystem_relation_kind'
