/* sql-edition/positions.sql */

-- Where all shards and tickets stand, for a database that takes the place of this one.

\ir begin.sql
CALL instaid._begin_file('positions.sql', '{"tickets.sql": "instaid.next_ticket(text)"}');

---- Positions of sequences ----

-- No column has an ID of a sequence that no shard has.
CREATE OR REPLACE VIEW instaid._lone_sequences AS
    SELECT NULL::oid AS sequence, NULL::oid AS owner WHERE false;

\ir ../common/positions.sql

CALL instaid._set_rights();
COMMIT;
