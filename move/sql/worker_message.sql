-- The last error of a subscription, in the last MB of the server's log, if it is a text there.  The
-- context of an apply worker's error has its OID.  That of a copy comes after the start of its worker.
-- $1: the OID, $2: the name
WITH lines (line, n) AS (SELECT x.* FROM (SELECT pg_current_logfile('stderr')) AS f (name)
    CROSS JOIN LATERAL (SELECT pg_read_file(name, greatest(0, (pg_stat_file(name)).size - 1000000),
        1000000) WHERE name IS NOT NULL OFFSET 0) AS t (log)
    CROSS JOIN LATERAL regexp_split_to_table(log, '\n') WITH ORDINALITY AS x)
SELECT substring(line, 'ERROR: +(.*)') FROM lines WHERE n = greatest(
    (SELECT max(n) FROM lines WHERE line LIKE '%ERROR: %' AND n < (
        SELECT max(n) FROM lines WHERE line LIKE format('%%CONTEXT: %%"pg_%s"%%', $1::oid))),
    (SELECT min(n) FROM lines WHERE line LIKE '%ERROR: %' AND n > (SELECT max(n) FROM lines
        WHERE line LIKE format('%%logical replication table synchronization worker for'
            ' subscription "%s"%%', $2::text))))
