/* sql-edition/all.sql */

-- The SQL edition, for psql: \i sql-edition/all.sql
-- adopting.sql, which can follow, is for what exists already.
\set caller_on_error_stop :ON_ERROR_STOP
\set ON_ERROR_STOP on
BEGIN;
\ir schema.sql
\ir ids.sql
\ir next_id.sql
\ir shards.sql
\ir audit.sql
\ir rights.sql
COMMIT;
\set ON_ERROR_STOP :caller_on_error_stop
\unset caller_on_error_stop
