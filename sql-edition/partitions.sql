/* sql-edition/partitions.sql */

-- Partitions by time.

\ir begin.sql
CALL instaid._begin_file('partitions.sql', '{"ids.sql": "instaid.default_epoch()"}');

\ir ../common/partitions.sql

CALL instaid._set_rights();
COMMIT;
