/* sql-edition/positions.sql */

-- Where all shards and tickets stand, for a database that takes the place of this one.

\ir begin.sql
CALL instaid._begin_file('positions.sql', '{"tickets.sql": "instaid.next_ticket(text)"}');

---- Positions of sequences ----

-- The last ID of a sequence of a shard, or the last value of another one; null if there is none,
-- or if it was not read.
CREATE OR REPLACE FUNCTION instaid._position(sequence regclass, shard_id integer,
                                             epoch timestamptz, OUT last bigint,
                                             OUT is_read boolean)
    LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
    SELECT s.last_value, s.is_read FROM instaid._last_value(sequence) AS s;
END;

-- No column has an ID of a sequence that no shard has.
CREATE OR REPLACE VIEW instaid._lone_sequences AS
    SELECT NULL::oid AS sequence, NULL::oid AS owner WHERE false;

\ir ../common/positions.sql

CALL instaid._set_rights();
COMMIT;
