/* sql-edition/all.sql */

-- The whole SQL edition, for psql: \i sql-edition/all.sql
\set ON_ERROR_STOP on
\ir instaid.sql
\ir shards.sql
\ir many_shards.sql
\ir partitions.sql
\ir text_forms.sql
\ir tickets.sql
\ir positions.sql
\ir audit.sql
\ir adopting.sql
\ir missing.sql
