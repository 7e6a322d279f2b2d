-- A command that gives PUBLIC its right on schema public, if the source has not taken it: a dump
-- of the schema takes it for there, but a schema that was dropped and made again lacks it.
-- $1: the shards
SELECT 'GRANT USAGE ON SCHEMA public TO PUBLIC'
WHERE 'public' = ANY ($1::text[]) AND has_schema_privilege('public', 'public', 'USAGE')
