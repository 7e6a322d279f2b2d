-- A table of shard insta5 that writers fill, and readers that poll it: one that reads
-- up to settled_id(), and a naive one that reads what it sees.  Used by the
-- demonstration, the benchmark and a test.

CREATE TABLE insta5.events (id bigint PRIMARY KEY DEFAULT insta5.next_id(), writer integer);
CREATE TABLE seen (reader text, id bigint, seen_at timestamptz DEFAULT clock_timestamp());
CREATE TABLE progress (reader text PRIMARY KEY, last bigint);
INSERT INTO progress VALUES ('settled', 0), ('naive', 0);
-- a row in it stops the readers
CREATE TABLE stop ();

-- Like any consumer, it commits what it has read together with its position.
CREATE PROCEDURE read_events(reader text) LANGUAGE plpgsql AS $$
DECLARE
    stopped boolean;
    upto bigint;
    previous bigint := 0;
BEGIN
    LOOP
        stopped := EXISTS (SELECT FROM stop);
        IF reader = 'settled' THEN
            upto := instaid.settled_id('insta5');
        ELSE
            upto := COALESCE((SELECT max(id) FROM insta5.events), 0);
        END IF;
        IF upto < previous THEN
            RAISE '% went back from % to %', reader, previous, upto;
        END IF;
        INSERT INTO seen SELECT reader, id FROM insta5.events WHERE id > previous AND id <= upto;
        UPDATE progress SET last = upto WHERE progress.reader = read_events.reader;
        previous := upto;
        COMMIT;
        EXIT WHEN stopped;
        -- leave the writers some of the processor
        PERFORM pg_sleep(0.001);
    END LOOP;
END
$$;

CREATE VIEW readers AS
    SELECT p.reader, count(*) AS rows, count(*) FILTER (WHERE s.times IS NULL) AS missed,
           count(*) FILTER (WHERE s.times > 1) AS "read twice"
    FROM progress AS p CROSS JOIN insta5.events AS e
         LEFT JOIN (SELECT reader, id, count(*) AS times FROM seen GROUP BY reader, id) AS s
             USING (reader, id)
    GROUP BY p.reader;
