/* managed/all.sql */

-- The whole edition without C, for psql: psql -1 -v ON_ERROR_STOP=1 -f managed/all.sql
\ir instaid.sql
\ir shards.sql
\ir many_shards.sql
\ir partitions.sql
\ir text_forms.sql
\ir adopting.sql
\ir tickets.sql
\ir positions.sql
\ir audit.sql
\ir missing.sql
