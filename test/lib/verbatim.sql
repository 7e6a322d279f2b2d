-- The function that Instagram published, word for word but for the names and the shard ID.
-- published.sql has a faster form of it.

CREATE SCHEMA verbatim;
CREATE SEQUENCE verbatim.table_id_seq;
CREATE FUNCTION verbatim.next_id(OUT result bigint) AS $$
DECLARE
    our_epoch bigint := 1314220021721;
    seq_id bigint;
    now_millis bigint;
    shard_id int := 5;
BEGIN
    SELECT nextval('verbatim.table_id_seq') % 1024 INTO seq_id;

    SELECT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) INTO now_millis;
    result := (now_millis - our_epoch) << 23;
    result := result | (shard_id << 10);
    result := result | (seq_id);
END;
$$ LANGUAGE plpgsql;
